//! Types: which field is meant, what a literal is for it, and whether the relation makes sense.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use regex::bytes::{Regex, RegexBuilder};

use super::Vocabulary;
use super::error::Fault;
use super::lexer::{Op, Token};
use super::parser::{Expr, Literal, Operand, Span};
use crate::dissect::{Field, Type, Wanted};

/// Memory that a regular expression may take, bytes.
const MAX_REGEX: usize = 1 << 20;

/// A filter ready to run.
#[derive(Debug)]
pub enum Test {
    And(Vec<Test>),
    Or(Vec<Test>),
    Xor(Vec<Test>),
    Not(Box<Test>),
    Present(Source),
    Compare { left: Source, relation: Relation, all: bool, right: Constant },
    CompareFields { left: Source, relation: Relation, all: bool, right: Source },
    In { left: Source, set: Vec<Element>, all: bool },
    Contains { left: Source, needle: Vec<u8>, all: bool },
    Matches { left: Source, regex: Regex, all: bool },
}

/// How two values relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
}

/// Where values come from: a field, a part of one, or what is made of several.
#[derive(Debug)]
pub enum Source {
    /// Its values.
    Field(&'static Field),
    /// Those in some of the layers of its protocol.
    Layer(&'static Field, Layer),
    /// Bytes: of text as it prints, of everything else as it stands in the frame.
    Slice(Box<Source>, Vec<Slice>),
    Function(Function, Vec<Source>),
    Negative(Box<Source>),
    /// Each value of the one with each of the other.
    Arithmetic(Arithmetic, Box<(Source, Source)>),
    Constant(Constant, Kind),
}

/// Which of several layers of a protocol, counted from 1; from the last if negative.
#[derive(Debug)]
pub struct Layer {
    /// The protocol's own field, one in each layer.
    pub header: &'static Field,
    pub which: Vec<Slice>,
}

/// What is done with two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    And,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Source {
    /// What kind of value comes out.
    fn kind(&self) -> Kind {
        match self {
            Self::Field(f) | Self::Layer(f, _) => Kind::of(f.ty),
            Self::Slice(..) => Kind::Bytes,
            Self::Function(Function::Count | Function::Len, _) => Kind::Number,
            Self::Function(Function::Text | Function::Upper | Function::Lower, _) => Kind::Text,
            Self::Function(_, arguments) => arguments.first().map_or(Kind::Number, Self::kind),
            Self::Negative(inner) => inner.kind(),
            Self::Arithmetic(_, both) => match &both.0 {
                Self::Constant(..) => both.1.kind(),
                left => left.kind(),
            },
            Self::Constant(_, kind) => *kind,
        }
    }

    /// The field whose values these are as they stand: its names and limits go for literals.
    const fn plain(&self) -> Option<&'static Field> {
        match self {
            Self::Field(f) | Self::Layer(f, _) => Some(f),
            _ => None,
        }
    }

    /// The first field in it, for messages.
    fn field(&self) -> Option<&'static Field> {
        match self {
            Self::Field(f) | Self::Layer(f, _) => Some(f),
            Self::Slice(inner, _) | Self::Negative(inner) => inner.field(),
            Self::Function(_, arguments) => arguments.iter().find_map(Self::field),
            Self::Arithmetic(_, both) => both.0.field().or_else(|| both.1.field()),
            Self::Constant(..) => None,
        }
    }

    /// What it is, in words.
    fn is(&self) -> String {
        match (self.plain(), self.field()) {
            (Some(f), _) => format!("{} is {}", f.name, f.ty.name()),
            (None, Some(f)) => format!("what is made of {} is {}", f.name, self.kind().name()),
            (None, None) => format!("this is {}", self.kind().name()),
        }
    }
}

/// Kinds of values that can be compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Number,
    Ether,
    Ipv4,
    Ipv6,
    Bytes,
    Text,
    Nanoseconds,
    Header,
}

impl Kind {
    fn of(ty: Type) -> Self {
        match ty {
            Type::None => Self::Header,
            Type::Bool => Self::Bool,
            Type::Ether => Self::Ether,
            Type::Ipv4 => Self::Ipv4,
            Type::Ipv6 => Self::Ipv6,
            Type::Bytes => Self::Bytes,
            Type::Str => Self::Text,
            Type::Time | Type::Duration => Self::Nanoseconds,
            _ => Self::Number,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Bool => "yes or no",
            Self::Number => "a number",
            Self::Ether => "an Ethernet address",
            Self::Ipv4 => "an IPv4 address",
            Self::Ipv6 => "an IPv6 address",
            Self::Bytes | Self::Header => "bytes",
            Self::Text => "text",
            Self::Nanoseconds => "time",
        }
    }

    /// Some bytes, and no address that is written in a way of its own.
    const fn is_bytes(self) -> bool {
        matches!(self, Self::Bytes | Self::Header | Self::Ether)
    }

    /// Can be compared with the other.
    fn goes_with(self, other: Self) -> bool {
        self == other || self.is_bytes() && other.is_bytes()
    }
}

/// Functions of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// How often it comes.
    Count,
    /// Bytes of its value.
    Len,
    /// In capitals.
    Upper,
    /// Without capitals.
    Lower,
    /// As text.
    Text,
    /// Without its sign.
    Abs,
    /// The least of all values of all arguments.
    Min,
    /// The greatest.
    Max,
}

/// Functions by name.
const FUNCTIONS: &[(&str, Function)] = &[
    ("count", Function::Count),
    ("len", Function::Len),
    ("upper", Function::Upper),
    ("lower", Function::Lower),
    ("string", Function::Text),
    ("abs", Function::Abs),
    ("min", Function::Min),
    ("max", Function::Max),
];

/// A part of some bytes; negative offsets count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub from: i64,
    /// Exclusive; `None`: to the end.
    pub to: Option<i64>,
}

/// What a literal stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    Number(i128),
    /// A name that several values have.
    OneOf(Vec<u64>),
    /// Ether, IP (with a prefix mask) and bytes compare as bytes.
    Bytes(Vec<u8>),
    Masked {
        value: Vec<u8>,
        mask: Vec<u8>,
    },
    Text(String),
}

/// One element of a set.
#[derive(Debug)]
pub enum Element {
    One(Constant),
    Range(Constant, Constant),
}

/// The names that a filter may use, and the fields that it reads so far.
pub struct Reading<'v> {
    pub vocabulary: &'v Vocabulary,
    pub wanted: Wanted,
}

/// Gives types to a filter and notes the fields it reads.
pub fn check(e: &Expr, names: &mut Reading<'_>) -> Result<Test, Fault> {
    Ok(match e {
        Expr::And(all) => Test::And(all.iter().map(|e| check(e, names)).collect::<Result<_, _>>()?),
        Expr::Or(all) => Test::Or(all.iter().map(|e| check(e, names)).collect::<Result<_, _>>()?),
        Expr::Xor(all) => Test::Xor(all.iter().map(|e| check(e, names)).collect::<Result<_, _>>()?),
        Expr::Not(a) => Test::Not(Box::new(check(a, names)?)),
        Expr::Present(o) => Test::Present(must_be_source(o, names)?),
        Expr::In { left, set, all } => {
            let left = must_be_source(left, names)?;
            let elements = |left: &Source| set.iter().map(|(low, high)| element(left, low, high.as_ref())).collect();
            let (left, set) = typed(left, names, elements)?;
            Test::In { left, set, all: *all }
        }
        Expr::Relation { left, op, place, right, all } => relation(left, *op, place, right, *all, names)?,
    })
}

fn element(left: &Source, low: &Literal, high: Option<&Literal>) -> Result<Element, Fault> {
    let one = constant(left, low)?;
    let Some(high) = high else { return Ok(Element::One(one)) };
    let two = constant(left, high)?;
    if matches!(one, Constant::OneOf(_) | Constant::Masked { .. })
        || matches!(two, Constant::OneOf(_) | Constant::Masked { .. })
    {
        return Err(Fault::new(low.at.start..high.at.end, "a range goes from one value to another"));
    }
    Ok(Element::Range(one, two))
}

fn relation(
    left: &Operand,
    op: Op,
    place: &Span,
    right: &Operand,
    all: Option<bool>,
    names: &mut Reading<'_>,
) -> Result<Test, Fault> {
    let (relation, mut every) = match op {
        Op::Equal => (Relation::Equal, false),
        Op::AllEqual => (Relation::Equal, true),
        Op::NotEqual => (Relation::NotEqual, true),
        Op::AnyNotEqual => (Relation::NotEqual, false),
        Op::Greater => (Relation::Greater, false),
        Op::Less => (Relation::Less, false),
        Op::GreaterEqual => (Relation::GreaterEqual, false),
        Op::LessEqual => (Relation::LessEqual, false),
        Op::Contains | Op::Matches => {
            let source = must_be_source(left, names)?;
            let every = all == Some(true);
            return if op == Op::Contains {
                contains(source, right, every, names)
            } else {
                matches(source, right, every, names)
            };
        }
        _ => return Err(Fault::new(place.clone(), "no relation")),
    };
    if let Some(a) = all {
        every = a;
    }
    match (source(left, names)?, source(right, names)?) {
        (Some(l), Some(r)) => {
            if !l.kind().goes_with(r.kind()) {
                return Err(Fault::new(place.clone(), format!("{}, {}: they cannot be compared", l.is(), r.is())));
            }
            Ok(Test::CompareFields { left: l, relation, all: every, right: r })
        }
        (Some(l), None) => {
            let right = literal_only(right, names)?;
            let (l, constant) = typed(l, names, |l| constant(l, &right))?;
            ordered(relation, &constant, place)?;
            Ok(Test::Compare { left: l, relation, all: every, right: constant })
        }
        (None, Some(r)) => {
            let turned = match relation {
                Relation::Greater => Relation::Less,
                Relation::Less => Relation::Greater,
                Relation::GreaterEqual => Relation::LessEqual,
                Relation::LessEqual => Relation::GreaterEqual,
                same => same,
            };
            let left = literal_only(left, names)?;
            let (r, constant) = typed(r, names, |r| constant(r, &left))?;
            ordered(turned, &constant, place)?;
            Ok(Test::Compare { left: r, relation: turned, all: every, right: constant })
        }
        (None, None) => Err(unknown_field(left, names)),
    }
}

/// What literals mean for the values of a source; where they mean nothing and the name stands for a field of another
/// type, too, what they mean for that.
fn typed<T>(
    mut source: Source,
    names: &mut Reading<'_>,
    read: impl Fn(&Source) -> Result<T, Fault>,
) -> Result<(Source, T), Fault> {
    let wrong = match read(&source) {
        Ok(t) => return Ok((source, t)),
        Err(e) => e,
    };
    let Source::Field(field) = source else { return Err(wrong) };
    let Some(other) = (names.vocabulary.other)(field) else { return Err(wrong) };
    source = Source::Field(other);
    let Ok(t) = read(&source) else { return Err(wrong) };
    names.wanted.insert(other);
    Ok((source, t))
}

fn ordered(relation: Relation, constant: &Constant, place: &Span) -> Result<(), Fault> {
    let equality = matches!(relation, Relation::Equal | Relation::NotEqual);
    if !equality && matches!(constant, Constant::OneOf(_) | Constant::Masked { .. }) {
        return Err(Fault::new(place.clone(), "only == and != make sense with several values"));
    }
    Ok(())
}

fn contains(left: Source, right: &Operand, all: bool, names: &Reading<'_>) -> Result<Test, Fault> {
    let literal = literal_only(right, names)?;
    let needle = match (left.kind(), &literal.token) {
        (Kind::Text, t) => text_of(t).into_bytes(),
        (Kind::Bytes | Kind::Header | Kind::Ether, Token::Quoted(b)) => b.clone(),
        (Kind::Bytes | Kind::Header | Kind::Ether, Token::Char(c)) => vec![*c],
        (Kind::Bytes | Kind::Header | Kind::Ether, Token::Word(w)) => {
            hex_bytes(w).unwrap_or_else(|| w.clone().into_bytes())
        }
        _ => {
            return Err(Fault::new(literal.at.clone(), format!("{}: contains is for text and bytes", left.is())));
        }
    };
    if needle.is_empty() {
        return Err(Fault::new(literal.at.clone(), "nothing to look for"));
    }
    Ok(Test::Contains { left, needle, all })
}

fn matches(left: Source, right: &Operand, all: bool, names: &Reading<'_>) -> Result<Test, Fault> {
    let literal = literal_only(right, names)?;
    if !matches!(left.kind(), Kind::Text | Kind::Bytes | Kind::Header) {
        return Err(Fault::new(literal.at.clone(), format!("{}: matches is for text and bytes", left.is())));
    }
    let pattern = pattern_of(&literal.token);
    // as Wireshark: without regard to case, bytes rather than characters
    let regex = RegexBuilder::new(&pattern).case_insensitive(true).unicode(false).size_limit(MAX_REGEX).build();
    match regex {
        Ok(regex) => Ok(Test::Matches { left, regex, all }),
        Err(e) => {
            // the last line of the error says what is wrong
            let text = e.to_string();
            let why = text.lines().last().unwrap_or("").trim_start_matches("error: ").to_owned();
            Err(Fault::new(literal.at.clone(), format!("no regular expression: {why}")))
        }
    }
}

/// A regular expression over bytes: those that are no ASCII stand for themselves.
fn pattern_of(t: &Token) -> String {
    let Token::Quoted(bytes) = t else { return text_of(t) };
    bytes.iter().fold(String::new(), |mut out, b| {
        if b.is_ascii() {
            out.push(char::from(*b));
        } else {
            let _ = write!(out, "\\x{b:02x}");
        }
        out
    })
}

fn text_of(t: &Token) -> String {
    match t {
        Token::Word(w) => w.clone(),
        Token::Quoted(b) => String::from_utf8_lossy(b).into_owned(),
        Token::Char(c) => char::from(*c).to_string(),
        Token::Slice(_) | Token::Layer(_) | Token::Op(_) => String::new(),
    }
}

fn literal_only(o: &Operand, names: &Reading<'_>) -> Result<Literal, Fault> {
    match o {
        Operand::Value(l) => Ok(l.clone()),
        Operand::Negative(inner, at) => match inner.as_ref() {
            Operand::Value(l) => Ok(l.negative(at.start)),
            _ => Err(unknown_field(o, names)),
        },
        _ => Err(unknown_field(o, names)),
    }
}

/// An error about the first literal of an operand, which ought to be a field.
fn unknown_field(o: &Operand, names: &Reading<'_>) -> Fault {
    match o {
        Operand::Value(l) | Operand::Layer(l, ..) => {
            Fault::new(l.at.clone(), (names.vocabulary.unknown)(&text_of(&l.token)))
        }
        Operand::Slice(inner, ..) | Operand::Negative(inner, _) => unknown_field(inner, names),
        Operand::Function(_, at, arguments) => arguments
            .first()
            .map_or_else(|| Fault::new(at.clone(), "a field is missing here"), |a| unknown_field(a, names)),
        Operand::Arithmetic(_, _, both) => unknown_field(&both.0, names),
    }
}

fn must_be_source(o: &Operand, names: &mut Reading<'_>) -> Result<Source, Fault> {
    source(o, names)?.ok_or_else(|| unknown_field(o, names))
}

/// The field that a literal names.
fn field(l: &Literal, names: &mut Reading<'_>) -> Option<&'static Field> {
    let Token::Word(name) = &l.token else { return None };
    let field = (names.vocabulary.find)(name)?;
    names.wanted.insert(field);
    Some(field)
}

/// What an operand takes from a packet; `None` if it is a literal.
fn source(o: &Operand, names: &mut Reading<'_>) -> Result<Option<Source>, Fault> {
    Ok(Some(match o {
        Operand::Value(l) => match field(l, names) {
            Some(f) => Source::Field(f),
            None => return Ok(None),
        },
        Operand::Layer(l, which, at) => {
            let field = field(l, names).ok_or_else(|| unknown_field(o, names))?;
            let protocol = field.name.split('.').next().unwrap_or("");
            let header = (names.vocabulary.find)(protocol)
                .filter(|f| f.ty == Type::None)
                .ok_or_else(|| Fault::new(at.clone(), format!("{} belongs to no layer", field.name)))?;
            names.wanted.insert(header);
            Source::Layer(field, Layer { header, which: slices(which, at)? })
        }
        Operand::Slice(inner, text, at) => {
            let inner = must_be_source(inner, names)?;
            let slices = slices(text, at)?;
            // a number has bytes in the frame, but what is made of one has not
            if inner.plain().is_none() && !inner.kind().is_bytes() && inner.kind() != Kind::Text {
                return Err(Fault::new(at.clone(), format!("{}: it has no bytes", inner.is())));
            }
            Source::Slice(Box::new(inner), slices)
        }
        Operand::Function(name, at, arguments) => call(name, at, arguments, names)?,
        Operand::Negative(inner, at) => match source(inner, names)? {
            None => return Ok(None),
            Some(inner) if matches!(inner.kind(), Kind::Number | Kind::Nanoseconds) => {
                Source::Negative(Box::new(inner))
            }
            Some(inner) => return Err(Fault::new(at.clone(), format!("{}: - is for numbers", inner.is()))),
        },
        Operand::Arithmetic(op, at, both) => arithmetic(*op, at, both, names)?,
    }))
}

fn call(name: &str, at: &Span, arguments: &[Operand], names: &mut Reading<'_>) -> Result<Source, Fault> {
    let Some((_, function)) = FUNCTIONS.iter().find(|(f, _)| f.eq_ignore_ascii_case(name)) else {
        let known = FUNCTIONS.iter().map(|(f, _)| *f).collect::<Vec<_>>().join(", ");
        return Err(Fault::new(at.clone(), format!("no function is called {name}; there are {known}")));
    };
    let several = matches!(function, Function::Min | Function::Max);
    if let Some(second) = arguments.get(1).filter(|_| !several) {
        return Err(Fault::new(second.span(), format!("{name} takes one argument")));
    }
    // literals mean what they mean for the fields among the arguments
    let mut first = None;
    for a in arguments {
        if first.is_none() {
            first = source(a, names)?;
        }
    }
    let Some(first) = first else {
        return Err(arguments
            .first()
            .map_or_else(|| Fault::new(at.clone(), "a field is missing here"), |a| unknown_field(a, names)));
    };
    let mut sources = Vec::with_capacity(arguments.len());
    for a in arguments {
        sources.push(match source(a, names)? {
            Some(s) => s,
            None => Source::Constant(free_constant(&first, &literal_only(a, names)?)?, first.kind()),
        });
    }
    let wrong = |s: &Source, want: &str| Err(Fault::new(at.clone(), format!("{}: {name} is for {want}", s.is())));
    for s in &sources {
        let kind = s.kind();
        match function {
            Function::Count if s.plain().is_none() => return wrong(s, "fields"),
            Function::Upper | Function::Lower if kind != Kind::Text => return wrong(s, "text"),
            Function::Abs if !matches!(kind, Kind::Number | Kind::Nanoseconds) => return wrong(s, "numbers"),
            Function::Text if matches!(kind, Kind::Header | Kind::Nanoseconds) => {
                return wrong(s, "numbers, addresses and bytes");
            }
            _ if !kind.goes_with(first.kind()) => return wrong(s, "values of one type"),
            _ => {}
        }
    }
    Ok(Source::Function(*function, sources))
}

fn arithmetic(op: Op, at: &Span, both: &(Operand, Operand), names: &mut Reading<'_>) -> Result<Source, Fault> {
    let (left, right) = (source(&both.0, names)?, source(&both.1, names)?);
    let constant = |other: &Source, o: &Operand, names: &Reading<'_>| -> Result<Source, Fault> {
        Ok(Source::Constant(free_constant(other, &literal_only(o, names)?)?, other.kind()))
    };
    let (left, right) = match (left, right) {
        (Some(l), Some(r)) => (l, r),
        (Some(l), None) => {
            let r = constant(&l, &both.1, names)?;
            (l, r)
        }
        (None, Some(r)) => (constant(&r, &both.0, names)?, r),
        (None, None) => {
            // numbers among themselves
            let number = |o: &Operand| -> Result<Source, Fault> {
                let l = literal_only(o, names)?;
                let n = number(&text_of(&l.token)).ok_or_else(|| unknown_field(o, names))?;
                Ok(Source::Constant(Constant::Number(n), Kind::Number))
            };
            (number(&both.0)?, number(&both.1)?)
        }
    };
    let (operation, sign) = match op {
        Op::BitAnd => (Arithmetic::And, "&"),
        Op::Plus => (Arithmetic::Add, "+"),
        Op::Minus => (Arithmetic::Subtract, "-"),
        Op::Star => (Arithmetic::Multiply, "*"),
        Op::Divide => (Arithmetic::Divide, "/"),
        _ => (Arithmetic::Modulo, "%"),
    };
    for side in [&left, &right] {
        let fits = match (side.kind(), operation) {
            (Kind::Number, _) | (Kind::Nanoseconds, Arithmetic::Add | Arithmetic::Subtract) => true,
            (Kind::Bool | Kind::Bytes | Kind::Header | Kind::Ether | Kind::Ipv4 | Kind::Ipv6, op) => {
                op == Arithmetic::And
            }
            _ => false,
        };
        if !fits {
            return Err(Fault::new(at.clone(), format!("{}: {sign} is for numbers", side.is())));
        }
    }
    if !left.kind().goes_with(right.kind()) {
        return Err(Fault::new(at.clone(), format!("{}, {}: {sign} takes one type", left.is(), right.is())));
    }
    Ok(Source::Arithmetic(operation, Box::new((left, right))))
}

/// What a literal means beside a source, where it need not be one of its values.
fn free_constant(source: &Source, l: &Literal) -> Result<Constant, Fault> {
    match (source.kind(), number(&text_of(&l.token))) {
        (Kind::Number | Kind::Bool, Some(n)) if matches!(l.token, Token::Word(_)) => Ok(Constant::Number(n)),
        // one digit is a byte, as in slices
        _ => match constant(source, l)? {
            Constant::OneOf(_) | Constant::Masked { .. } => {
                Err(Fault::new(l.at.clone(), "several values are meant by this: one is needed here"))
            }
            c => Ok(c),
        },
    }
}

/// `i:len`, `i-j`, `i`, `:len`, `i:`, several with commas.
fn slices(text: &str, at: &Span) -> Result<Vec<Slice>, Fault> {
    let bad = || Fault::new(at.clone(), "a slice is [offset:length], [first-last], [offset:], [:length] or [offset]");
    let int = |s: &str| s.trim().parse::<i32>().map(i64::from).map_err(|_| bad());
    text.split(',')
        .map(|part| {
            let part = part.trim();
            if let Some((from, len)) = part.split_once(':') {
                let from = if from.trim().is_empty() { 0 } else { int(from)? };
                if len.trim().is_empty() {
                    return Ok(Slice { from, to: None });
                }
                let len = int(len)?;
                if len <= 0 {
                    return Err(bad());
                }
                // [-4:2] ends at -2; [-2:2] ends at the end
                let to = from + len;
                return Ok(Slice { from, to: (from >= 0 || to < 0).then_some(to) });
            }
            if let Some(dash) = part.get(1..).and_then(|p| p.find('-')).map(|i| i + 1) {
                let (from, to) = part.split_at(dash);
                let (from, to) = (int(from)?, int(to.get(1..).unwrap_or(""))?);
                if from < 0 || to < from {
                    return Err(bad());
                }
                return Ok(Slice { from, to: Some(to + 1) });
            }
            let from = int(part)?;
            Ok(Slice { from, to: (from != -1).then_some(from + 1) })
        })
        .collect()
}

/// Decimal, hexadecimal (0x), binary (0b) or, with a leading zero, octal, as in C.
fn number(text: &str) -> Option<i128> {
    let (negative, t) = match text.strip_prefix('-') {
        Some(t) => (true, t),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let parse = |digits: &str, radix| {
        if digits.starts_with(['+', '-']) { None } else { u64::from_str_radix(digits, radix).ok() }
    };
    let low = t.to_ascii_lowercase();
    let v = if let Some(h) = low.strip_prefix("0x") {
        parse(h, 16)
    } else if let Some(b) = low.strip_prefix("0b") {
        parse(b, 2)
    } else if t.len() > 1 && t.starts_with('0') {
        parse(t, 8)
    } else {
        parse(t, 10)
    };
    v.map(|v| if negative { -i128::from(v) } else { i128::from(v) })
}

/// `11:22`, `11-22`, `11.22`, `1122`, `0x1122`.
fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let t = text.strip_prefix("0x").unwrap_or(text);
    let two = |s: &str| {
        (s.len() <= 2 && !s.is_empty() && !s.starts_with('+')).then(|| u8::from_str_radix(s, 16).ok()).flatten()
    };
    for separator in [':', '-', '.'] {
        if t.contains(separator) {
            return t.split(separator).map(two).collect();
        }
    }
    if t.len() == 1 {
        return two(t).map(|b| vec![b]);
    }
    if !t.is_ascii() || !t.len().is_multiple_of(2) {
        return None;
    }
    t.as_bytes().chunks(2).map(|c| std::str::from_utf8(c).ok().and_then(two)).collect()
}

/// What a literal means for the values of a source.
fn constant(source: &Source, l: &Literal) -> Result<Constant, Fault> {
    let field = source.plain();
    let text = text_of(&l.token);
    let is_text = matches!(l.token, Token::Quoted(_));
    let wrong = |want: &str| Fault::new(l.at.clone(), format!("{}: {want}", source.is()));
    let is_date = field.is_some_and(|f| f.ty == Type::Time);
    match source.kind() {
        Kind::Text => Ok(Constant::Text(text)),
        Kind::Bool => match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "set" => Ok(Constant::Number(1)),
            "0" | "false" | "no" => Ok(Constant::Number(0)),
            t => match number(t) {
                Some(n) => Ok(Constant::Number(i128::from(n != 0))),
                None => Err(wrong("it is compared with true or false, 1 or 0")),
            },
        },
        Kind::Number => {
            if let Token::Char(c) = l.token {
                return Ok(Constant::Number(i128::from(c)));
            }
            if let Some(n) = number(&text).filter(|_| !is_text) {
                if let Some(field) = field {
                    fits(field, n, &l.at)?;
                }
                return Ok(Constant::Number(n));
            }
            match field.map(|f| f.values_of_name(&text)).unwrap_or_default().as_slice() {
                [] => {
                    let known = field.map(|f| f.some_names(3)).unwrap_or_default();
                    let like = if known.is_empty() {
                        String::new()
                    } else {
                        format!(", or a name such as {}", known.join(", "))
                    };
                    Err(wrong(&format!("{text} is no value of it; a number, decimal or 0x..{like}")))
                }
                [one] => Ok(Constant::Number(i128::from(*one))),
                several => Ok(Constant::OneOf(several.to_vec())),
            }
        }
        Kind::Nanoseconds => {
            seconds(&text).or_else(|| if is_date { date(&text) } else { None }).map(Constant::Number).ok_or_else(|| {
                wrong(if is_date {
                    "\"2026-11-30 20:26:14.5\" or seconds since 1970"
                } else {
                    "seconds, such as 0.0015"
                })
            })
        }
        // 0200.0000.0001 is six bytes, too
        Kind::Ether => match hex_bytes(&text).or_else(|| hex_bytes(&text.replace('.', ""))) {
            Some(b) if b.len() == 6 => Ok(Constant::Bytes(b)),
            _ => Err(wrong("an Ethernet address is six bytes, such as 02:00:00:00:00:01")),
        },
        Kind::Ipv4 => prefix(&text, 32, |a| a.parse::<Ipv4Addr>().ok().map(|a| a.octets().to_vec()))
            .ok_or_else(|| wrong("an IPv4 address, also with a prefix: 10.0.0.0/24")),
        Kind::Ipv6 => prefix(&text, 128, |a| a.parse::<Ipv6Addr>().ok().map(|a| a.octets().to_vec()))
            .ok_or_else(|| wrong("an IPv6 address, also with a prefix: fe80::/10")),
        Kind::Bytes | Kind::Header => match &l.token {
            Token::Quoted(b) => Ok(Constant::Bytes(b.clone())),
            Token::Char(c) => Ok(Constant::Bytes(vec![*c])),
            _ => {
                hex_bytes(&text).map(Constant::Bytes).ok_or_else(|| wrong("bytes are written 11:22:33, text in quotes"))
            }
        },
    }
}

fn fits(field: &Field, n: i128, at: &Span) -> Result<(), Fault> {
    // -1 is less than all of them, and no mistake: what is compared with it may be the end of a range
    if n < 0 {
        return Ok(());
    }
    let (low, high) = match field.ty {
        Type::U8 => (0, 0xff),
        Type::U16 => (0, 0xffff),
        Type::U24 => (0, 0xff_ffff),
        Type::U32 => (0, 0xffff_ffff),
        Type::I64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        _ => (0, i128::from(u64::MAX)),
    };
    if n < low || n > high {
        return Err(Fault::new(at.clone(), format!("{} goes from {low} to {high}", field.name)));
    }
    Ok(())
}

fn prefix(text: &str, bits: usize, parse: impl Fn(&str) -> Option<Vec<u8>>) -> Option<Constant> {
    let Some((address, len)) = text.split_once('/') else { return parse(text).map(Constant::Bytes) };
    let value = parse(address)?;
    let len: usize = len.parse().ok().filter(|l| *l <= bits)?;
    let mask = (0..bits / 8).map(|i| {
        let ones = u32::try_from(len.saturating_sub(i * 8).min(8)).unwrap_or(8);
        !0xffu8.checked_shr(ones).unwrap_or(0)
    });
    Some(Constant::Masked { value, mask: mask.collect() })
}

fn seconds(text: &str) -> Option<i128> {
    let (negative, t) = match text.strip_prefix('-') {
        Some(t) => (true, t),
        None => (false, text),
    };
    let (whole, fraction) = t.split_once('.').unwrap_or((t, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.into() };
    let ns = whole * 1_000_000_000 + format!("{fraction:0<9}").parse::<i128>().ok()?;
    Some(if negative { -ns } else { ns })
}

/// A date with a time, local unless it says otherwise, as `frame.time` prints or as ISO 8601.
fn date(text: &str) -> Option<i128> {
    use jiff::civil::DateTime;
    if let Ok(t) = text.parse::<jiff::Timestamp>() {
        return Some(t.as_nanosecond());
    }
    let civil = text.parse::<DateTime>().or_else(|_| DateTime::strptime("%b %d, %Y %H:%M:%S%.f", text)).ok()?;
    civil.to_zoned_datetime(jiff::tz::TimeZone::system()).ok().map(|z| z.timestamp().as_nanosecond())
}
