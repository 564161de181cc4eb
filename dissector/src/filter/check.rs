//! Types: which field is meant, what a literal is for it, and whether the relation makes sense.

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
    In { left: Source, set: Vec<Element> },
    Contains { left: Source, needle: Vec<u8> },
    Matches { left: Source, regex: Regex },
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

/// Where values come from: a field, perhaps a part or a function of it.
#[derive(Debug)]
pub struct Source {
    pub field: &'static Field,
    /// Bytes of the frame in place of the value.
    pub slice: Option<Vec<Slice>>,
    pub function: Option<Function>,
    pub mask: Option<u64>,
}

impl Source {
    /// What kind of value comes out.
    fn kind(&self) -> Kind {
        match (&self.function, &self.slice) {
            (Some(Function::Count | Function::Len), _) => Kind::Number,
            (_, Some(_)) => Kind::Bytes,
            _ => Kind::of(self.field.ty),
        }
    }
}

/// Kinds of values that can be compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
}

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
        Expr::In { left, set } => {
            let left = must_be_source(left, names)?;
            let elements = |left: &Source| set.iter().map(|(low, high)| element(left, low, high.as_ref())).collect();
            let (left, set) = typed(left, names, elements)?;
            Test::In { left, set }
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
            return if op == Op::Contains { contains(source, right, names) } else { matches(source, right, names) };
        }
        _ => return Err(Fault::new(place.clone(), "no relation")),
    };
    if let Some(a) = all {
        every = a;
    }
    match (source(left, names)?, source(right, names)?) {
        (Some(l), Some(r)) => {
            if l.kind() != r.kind() {
                return Err(Fault::new(
                    place.clone(),
                    format!(
                        "{} is {}, {} is {}: they cannot be compared",
                        l.field.name,
                        l.field.ty.name(),
                        r.field.name,
                        r.field.ty.name()
                    ),
                ));
            }
            Ok(Test::CompareFields { left: l, relation, all: every, right: r })
        }
        (Some(l), None) => {
            let right = literal_only(right, names)?;
            let (l, constant) = typed(l, names, |l| constant(l, right))?;
            ordered(&l, relation, &constant, place)?;
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
            let (r, constant) = typed(r, names, |r| constant(r, left))?;
            ordered(&r, turned, &constant, place)?;
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
    let Some(other) = (names.vocabulary.other)(source.field) else { return Err(wrong) };
    source.field = other;
    let Ok(t) = read(&source) else { return Err(wrong) };
    names.wanted.insert(other);
    Ok((source, t))
}

fn ordered(source: &Source, relation: Relation, constant: &Constant, place: &Span) -> Result<(), Fault> {
    let equality = matches!(relation, Relation::Equal | Relation::NotEqual);
    if !equality && matches!(constant, Constant::OneOf(_) | Constant::Masked { .. }) {
        return Err(Fault::new(place.clone(), "only == and != make sense with several values"));
    }
    if !equality && source.kind() == Kind::Bool {
        return Err(Fault::new(
            place.clone(),
            format!("{} is yes or no: only == and != make sense", source.field.name),
        ));
    }
    Ok(())
}

fn contains(left: Source, right: &Operand, names: &Reading<'_>) -> Result<Test, Fault> {
    let literal = literal_only(right, names)?;
    let needle = match (left.kind(), &literal.token) {
        (Kind::Text, t) => text_of(t).into_bytes(),
        (Kind::Bytes | Kind::Header | Kind::Ether, Token::Quoted(b)) => b.clone(),
        (Kind::Bytes | Kind::Header | Kind::Ether, Token::Char(c)) => vec![*c],
        (Kind::Bytes | Kind::Header | Kind::Ether, Token::Word(w)) => {
            hex_bytes(w).unwrap_or_else(|| w.clone().into_bytes())
        }
        _ => {
            return Err(Fault::new(
                literal.at.clone(),
                format!("{} is {}: contains is for text and bytes", left.field.name, left.field.ty.name()),
            ));
        }
    };
    if needle.is_empty() {
        return Err(Fault::new(literal.at.clone(), "nothing to look for"));
    }
    Ok(Test::Contains { left, needle })
}

fn matches(left: Source, right: &Operand, names: &Reading<'_>) -> Result<Test, Fault> {
    let literal = literal_only(right, names)?;
    if !matches!(left.kind(), Kind::Text | Kind::Bytes | Kind::Header) {
        return Err(Fault::new(
            literal.at.clone(),
            format!("{} is {}: matches is for text and bytes", left.field.name, left.field.ty.name()),
        ));
    }
    let pattern = text_of(&literal.token);
    // as Wireshark: without regard to case, bytes rather than characters
    let regex = RegexBuilder::new(&pattern).case_insensitive(true).unicode(false).size_limit(MAX_REGEX).build();
    match regex {
        Ok(regex) => Ok(Test::Matches { left, regex }),
        Err(e) => {
            // the last line of the error says what is wrong
            let text = e.to_string();
            let why = text.lines().last().unwrap_or("").trim_start_matches("error: ").to_owned();
            Err(Fault::new(literal.at.clone(), format!("no regular expression: {why}")))
        }
    }
}

fn text_of(t: &Token) -> String {
    match t {
        Token::Word(w) => w.clone(),
        Token::Quoted(b) => String::from_utf8_lossy(b).into_owned(),
        Token::Char(c) => char::from(*c).to_string(),
        Token::Slice(_) | Token::Op(_) => String::new(),
    }
}

fn literal_only<'o>(o: &'o Operand, names: &Reading<'_>) -> Result<&'o Literal, Fault> {
    if o.function.is_some() || o.slice.is_some() || o.mask.is_some() {
        return Err(unknown_field(o, names));
    }
    Ok(&o.value)
}

fn unknown_field(o: &Operand, names: &Reading<'_>) -> Fault {
    Fault::new(o.value.at.clone(), (names.vocabulary.unknown)(&text_of(&o.value.token)))
}

fn must_be_source(o: &Operand, names: &mut Reading<'_>) -> Result<Source, Fault> {
    source(o, names)?.ok_or_else(|| unknown_field(o, names))
}

/// The field that an operand names; `None` if it is a literal.
fn source(o: &Operand, names: &mut Reading<'_>) -> Result<Option<Source>, Fault> {
    let Token::Word(name) = &o.value.token else { return Ok(None) };
    let Some(field) = (names.vocabulary.find)(name) else { return Ok(None) };
    names.wanted.insert(field);
    let function = match &o.function {
        None => None,
        Some((f, at)) => Some(match f.to_ascii_lowercase().as_str() {
            "count" => Function::Count,
            "len" => Function::Len,
            "upper" => Function::Upper,
            "lower" => Function::Lower,
            _ => {
                return Err(Fault::new(
                    at.clone(),
                    format!("no function is called {f}; there are count, len, upper, lower"),
                ));
            }
        }),
    };
    if matches!(function, Some(Function::Upper | Function::Lower)) && field.ty != Type::Str {
        return Err(Fault::new(o.value.at.clone(), format!("{name} is {}, not text", field.ty.name())));
    }
    let slice = o.slice.as_ref().map(|(text, at)| slices(text, at)).transpose()?;
    let mask = match &o.mask {
        None => None,
        Some(m) => {
            if !(field.ty.is_integer() || field.ty == Type::Bool) || slice.is_some() {
                return Err(Fault::new(o.span(), format!("{name} is {}: & is for numbers", field.ty.name())));
            }
            let n = number(&text_of(&m.token)).and_then(|n| u64::try_from(n).ok());
            Some(n.ok_or_else(|| Fault::new(m.at.clone(), "a mask is a number, such as 0x8000"))?)
        }
    };
    Ok(Some(Source { field, slice, function, mask }))
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
    let field = source.field;
    let text = text_of(&l.token);
    let is_text = matches!(l.token, Token::Quoted(_));
    let wrong = |want: &str| Fault::new(l.at.clone(), format!("{} is {}: {want}", field.name, field.ty.name()));
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
                if source.function.is_none() {
                    fits(field, n, &l.at)?;
                }
                return Ok(Constant::Number(n));
            }
            match field.values_of_name(&text).as_slice() {
                [] => {
                    let known = field.some_names(3);
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
        Kind::Nanoseconds => seconds(&text)
            .or_else(|| if field.ty == Type::Time { date(&text) } else { None })
            .map(Constant::Number)
            .ok_or_else(|| {
                wrong(if field.ty == Type::Time {
                    "\"2026-11-30 20:26:14.5\" or seconds since 1970"
                } else {
                    "seconds, such as 0.0015"
                })
            }),
        Kind::Ether => match hex_bytes(&text) {
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
