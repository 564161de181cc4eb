//! Tokens to a tree of tests, still without types.
//!
//! ```text
//!   filter  := or
//!   or      := xor  { ("or" | "||") xor }
//!   xor     := and  { ("xor" | "^^") and }
//!   and     := unary { ("and" | "&&") unary }
//!   unary   := ("not" | "!") unary | "(" or ")" | test
//!   test    := ["any" | "all"] operand [ relation operand { relation operand } | "in" set ]
//!   operand := value [ "[" slice "]" ] [ "&" value ] | function "(" operand ")"
//!   set     := "{" element { [","] element } "}"        element := value [ ".." value ]
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
    },
}

/// One side of a relation.
#[derive(Clone, Debug)]
pub struct Operand {
    pub value: Literal,
    pub function: Option<(String, Span)>,
    pub slice: Option<(String, Span)>,
    pub mask: Option<Literal>,
}

impl Operand {
    pub fn span(&self) -> Span {
        let start = self.function.as_ref().map_or(self.value.at.start, |(_, s)| s.start);
        let end = self.mask.as_ref().map(|m| m.at.end).or(self.slice.as_ref().map(|(_, s)| s.end));
        start..end.unwrap_or(self.value.at.end)
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
        if self.eat(Op::In) {
            return Ok(Expr::In { left, set: self.set()? });
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
        let value = self.value("a field or a value is missing here")?;
        if let Token::Word(name) = &value.token
            && self.eat(Op::Open)
        {
            let inner = self.value("a field is missing here")?;
            let mut inner = self.part(inner)?;
            let here = self.here();
            if !self.eat(Op::Close) {
                return Err(Fault::new(here, "a ) is missing here (functions do not nest)"));
            }
            inner.function = Some((name.clone(), value.at));
            return Ok(inner);
        }
        self.part(value)
    }

    /// A value, perhaps a slice of it or masked.
    fn part(&mut self, value: Literal) -> Result<Operand, Fault> {
        let mut operand = Operand { value, function: None, slice: None, mask: None };
        if let Some((at, Token::Slice(s))) = self.peek() {
            operand.slice = Some((s.clone(), at.clone()));
            self.at += 1;
        }
        if self.eat(Op::BitAnd) {
            operand.mask = Some(self.value("a mask is missing here")?);
        }
        Ok(operand)
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
            let low = self.value("a value or } is missing here")?;
            let high =
                if self.eat(Op::Range) { Some(self.value("the end of the range is missing here")?) } else { None };
            set.push((low, high));
            self.eat(Op::Comma);
        }
    }
}
