//! Tokens to a tree of tests, still without types.
//!
//! ```text
//!   filter  := or
//!   or      := xor  { ("or" | "||") xor }
//!   xor     := and  { ("xor" | "^^") and }
//!   and     := unary { ("and" | "&&") unary }
//!   unary   := ("not" | "!") unary | "(" or ")" | test
//!   test    := ["any" | "all"] operand [ relation operand { relation operand } | ["not"] "in" set ]
//!   operand := sum { "&" sum }                          sum     := product { ("+" | "-") product }
//!   product := factor { ("*" | "/" | "%") factor }      factor  := ("-" | "+") factor | item { "[" slice "]" }
//!   item    := value [ "#" layers ] | function "(" operand { "," operand } ")" | "{" operand "}"
//!   set     := "{" element { [","] element } "}"        element := ["-"] value [ ".." ["-"] value ]
//! ```

use std::ops::Range;

use super::error::Fault;
use super::lexer::{Op, Token};

/// How deep parentheses and negations may nest.
const MAX_DEPTH: usize = 50;

pub type Span = Range<usize>;

/// A filter.
#[derive(Debug)]
pub enum Expr {
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Vec<Expr>),
    Not(Box<Expr>),
    /// The operand is there.
    Present(Operand),
    /// A relation.
    Relation {
        left: Operand,
        op: Op,
        place: Span,
        right: Operand,
        all: Option<bool>,
    },
    /// One of several values or ranges.
    In {
        left: Operand,
        set: Vec<(Literal, Option<Literal>)>,
        all: bool,
    },
}

/// One side of a relation.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A field's name or a value.
    Value(Literal),
    /// A field in some of the layers of its protocol.
    Layer(Literal, String, Span),
    /// Some bytes of it.
    Slice(Box<Operand>, String, Span),
    /// A function with its arguments; the span is the name's.
    Function(String, Span, Vec<Operand>),
    /// What is below zero of it; the span is the sign's.
    Negative(Box<Operand>, Span),
    /// Two of them make one; the span is the operator's.
    Arithmetic(Op, Span, Box<(Operand, Operand)>),
}

impl Operand {
    pub fn span(&self) -> Span {
        match self {
            Self::Value(l) => l.at.clone(),
            Self::Layer(l, _, at) => l.at.start..at.end,
            Self::Slice(inner, _, at) => inner.span().start..at.end,
            Self::Function(_, at, arguments) => at.start..arguments.last().map_or(at.end, |a| a.span().end),
            Self::Negative(inner, at) => at.start..inner.span().end,
            Self::Arithmetic(_, _, both) => both.0.span().start..both.1.span().end,
        }
    }
}

/// A word or a string.
#[derive(Clone, Debug)]
pub struct Literal {
    pub token: Token,
    pub at: Span,
}

struct Parser<'t> {
    tokens: &'t [(Span, Token)],
    at: usize,
    end: usize,
    depth: usize,
}

/// Parses a whole filter; `end` is the length of its text.
pub fn parse(tokens: &[(Span, Token)], end: usize) -> Result<Expr, Fault> {
    let mut p = Parser { tokens, at: 0, end, depth: 0 };
    if tokens.is_empty() {
        return Err(Fault::new(0..end, "the filter is empty"));
    }
    let e = p.or()?;
    match p.peek() {
        None => Ok(e),
        Some((at, Token::Op(Op::Close))) => Err(Fault::new(at.clone(), "this ) closes nothing")),
        Some((at, _)) => Err(Fault::new(at.clone(), "an operator is missing before this: and, or, ==, in, contains …")),
    }
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t (Span, Token)> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<&'t (Span, Token)> {
        let t = self.tokens.get(self.at);
        self.at += usize::from(t.is_some());
        t
    }

    fn eat(&mut self, op: Op) -> bool {
        let is = matches!(self.peek(), Some((_, Token::Op(o))) if *o == op);
        self.at += usize::from(is);
        is
    }

    fn here(&self) -> Span {
        self.peek().map_or(self.end..self.end, |(at, _)| at.clone())
    }

    fn or(&mut self) -> Result<Expr, Fault> {
        self.several(Op::Or, Self::xor, Expr::Or)
    }

    fn xor(&mut self) -> Result<Expr, Fault> {
        self.several(Op::Xor, Self::and, Expr::Xor)
    }

    fn and(&mut self) -> Result<Expr, Fault> {
        self.several(Op::And, Self::unary, Expr::And)
    }

    /// `part op part op …`: a list, so that a long filter is not a deep one.
    fn several(
        &mut self,
        op: Op,
        part: fn(&mut Self) -> Result<Expr, Fault>,
        join: fn(Vec<Expr>) -> Expr,
    ) -> Result<Expr, Fault> {
        let first = part(self)?;
        if !self.eat(op) {
            return Ok(first);
        }
        let mut all = vec![first, part(self)?];
        while self.eat(op) {
            all.push(part(self)?);
        }
        Ok(join(all))
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::new(self.here(), format!("nested more than {MAX_DEPTH} deep")));
        }
        let e = if self.eat(Op::Not) {
            Expr::Not(Box::new(self.unary()?))
        } else if self.eat(Op::Open) {
            let e = self.or()?;
            let here = self.here();
            if !self.eat(Op::Close) {
                return Err(Fault::new(here, "a ) is missing here"));
            }
            e
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(e)
    }

    fn test(&mut self) -> Result<Expr, Fault> {
        let all = match self.peek() {
            Some((_, Token::Op(Op::All))) => Some(true),
            Some((_, Token::Op(Op::Any))) => Some(false),
            _ => None,
        };
        self.at += usize::from(all.is_some());
        let left = self.operand()?;
        // any but not in the set: not one of them is in it, as with !=
        let not =
            matches!(self.tokens.get(self.at..self.at + 2), Some([(_, Token::Op(Op::Not)), (_, Token::Op(Op::In))]));
        self.at += usize::from(not);
        if self.eat(Op::In) {
            let set = Expr::In { left, set: self.set()?, all: all == Some(true) };
            return Ok(if not { Expr::Not(Box::new(set)) } else { set });
        }
        let Some((op, place)) = self.relation() else { return Ok(Expr::Present(left)) };
        let mut right = self.operand()?;
        let mut chain = vec![Expr::Relation { left, op, place, right: right.clone(), all }];
        // 1 < field < 5
        while let Some((op, place)) = self.relation() {
            let next = self.operand()?;
            chain.push(Expr::Relation { left: right, op, place, right: next.clone(), all });
            right = next;
        }
        Ok(Expr::And(chain))
    }

    fn relation(&mut self) -> Option<(Op, Span)> {
        let (at, Token::Op(op)) = self.peek()? else { return None };
        let is = matches!(
            op,
            Op::Equal
                | Op::AllEqual
                | Op::NotEqual
                | Op::AnyNotEqual
                | Op::Greater
                | Op::Less
                | Op::GreaterEqual
                | Op::LessEqual
                | Op::Contains
                | Op::Matches
        );
        self.at += usize::from(is);
        is.then(|| (*op, at.clone()))
    }

    fn operand(&mut self) -> Result<Operand, Fault> {
        self.arithmetic(&[Op::BitAnd], |p| {
            p.arithmetic(&[Op::Plus, Op::Minus], |p| p.arithmetic(&[Op::Star, Op::Divide, Op::Modulo], Self::factor))
        })
    }

    /// `part op part op …`, from the left.
    fn arithmetic(&mut self, ops: &[Op], part: impl Fn(&mut Self) -> Result<Operand, Fault>) -> Result<Operand, Fault> {
        let mut left = part(self)?;
        let mut count = 0;
        while let Some((at, Token::Op(op))) = self.peek()
            && ops.contains(op)
        {
            count += 1;
            if count > MAX_DEPTH {
                return Err(Fault::new(at.clone(), format!("more than {MAX_DEPTH} operators in a row")));
            }
            self.at += 1;
            left = Operand::Arithmetic(*op, at.clone(), Box::new((left, part(self)?)));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Operand, Fault> {
        self.depth += 1;
        let depth = self.depth;
        // whatever depth the tests have, calculations may have as much again
        if depth > 2 * MAX_DEPTH {
            return Err(Fault::new(self.here(), format!("nested more than {MAX_DEPTH} deep")));
        }
        let here = self.here();
        let mut operand = if self.eat(Op::Minus) {
            Operand::Negative(Box::new(self.factor()?), here)
        } else if self.eat(Op::Plus) {
            self.factor()?
        } else if self.eat(Op::OpenSet) {
            let inner = self.operand()?;
            let here = self.here();
            if !self.eat(Op::CloseSet) {
                return Err(Fault::new(here, "a } is missing here"));
            }
            inner
        } else {
            self.item()?
        };
        while let Some((at, Token::Slice(s))) = self.peek() {
            self.depth += 1; // slices of slices nest, too
            if self.depth > 2 * MAX_DEPTH {
                return Err(Fault::new(at.clone(), format!("nested more than {MAX_DEPTH} deep")));
            }
            operand = Operand::Slice(Box::new(operand), s.clone(), at.clone());
            self.at += 1;
        }
        self.depth = depth - 1;
        Ok(operand)
    }

    fn item(&mut self) -> Result<Operand, Fault> {
        let value = self.value("a field or a value is missing here")?;
        if let Token::Word(name) = &value.token
            && self.eat(Op::Open)
        {
            let mut arguments = vec![self.operand()?];
            while self.eat(Op::Comma) {
                arguments.push(self.operand()?);
            }
            let here = self.here();
            if !self.eat(Op::Close) {
                return Err(Fault::new(here, "a ) is missing here"));
            }
            return Ok(Operand::Function(name.clone(), value.at, arguments));
        }
        if let Some((at, Token::Layer(which))) = self.peek() {
            self.at += 1;
            return Ok(Operand::Layer(value, which.clone(), at.clone()));
        }
        Ok(Operand::Value(value))
    }

    fn value(&mut self, missing: &str) -> Result<Literal, Fault> {
        let here = self.here();
        match self.next() {
            Some((at, t @ (Token::Word(_) | Token::Quoted(_) | Token::Char(_)))) => {
                Ok(Literal { token: t.clone(), at: at.clone() })
            }
            _ => Err(Fault::new(here, missing)),
        }
    }

    fn set(&mut self) -> Result<Vec<(Literal, Option<Literal>)>, Fault> {
        let here = self.here();
        if !self.eat(Op::OpenSet) {
            return Err(Fault::new(here, "a set is missing here, such as {1, 4..6}"));
        }
        let mut set = Vec::new();
        loop {
            let here = self.here();
            if self.eat(Op::CloseSet) {
                if set.is_empty() {
                    return Err(Fault::new(here, "the set is empty"));
                }
                return Ok(set);
            }
            let low = self.element("a value or } is missing here")?;
            let high =
                if self.eat(Op::Range) { Some(self.element("the end of the range is missing here")?) } else { None };
            set.push((low, high));
            self.eat(Op::Comma);
        }
    }

    /// A value, perhaps with a sign.
    fn element(&mut self, missing: &str) -> Result<Literal, Fault> {
        let here = self.here();
        let negative = self.eat(Op::Minus);
        if !negative {
            self.eat(Op::Plus);
        }
        let value = self.value(missing)?;
        Ok(if negative { value.negative(here.start) } else { value })
    }
}

impl Literal {
    /// With a minus before it, which stands at `start`.
    pub fn negative(&self, start: usize) -> Self {
        let at = start..self.at.end;
        match &self.token {
            Token::Word(w) => Self { token: Token::Word(format!("-{w}")), at },
            other => Self { token: other.clone(), at },
        }
    }
}
