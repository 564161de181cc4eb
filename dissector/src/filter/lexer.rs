//! Text to tokens.

use std::ops::Range;

use super::error::Fault;

/// Longest filter, bytes.
const MAX_LEN: usize = 64 << 10;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// Field name, number, address, bytes, bare word.
    Word(String),
    /// Text in quotes: its bytes, escapes resolved.
    Quoted(Vec<u8>),
    /// One character in single quotes.
    Char(u8),
    /// What stands between `[` and `]`.
    Slice(String),
    /// What stands behind `#`: which of several layers of a protocol.
    Layer(String),
    /// Operator or bracket, canonical.
    Op(Op),
}

/// Operators and brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Open,
    Close,
    OpenSet,
    CloseSet,
    Comma,
    And,
    Or,
    Xor,
    Not,
    Equal,
    AllEqual,
    NotEqual,
    AnyNotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Contains,
    Matches,
    In,
    BitAnd,
    Plus,
    Minus,
    Star,
    Divide,
    Modulo,
    Range,
    Any,
    All,
}

const SYMBOLS: &[(&str, Op)] = &[
    ("===", Op::AllEqual),
    ("!==", Op::AnyNotEqual),
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
    ("~=", Op::AnyNotEqual),
    (">=", Op::GreaterEqual),
    ("<=", Op::LessEqual),
    ("&&", Op::And),
    ("||", Op::Or),
    ("^^", Op::Xor),
    ("..", Op::Range),
    ("(", Op::Open),
    (")", Op::Close),
    ("{", Op::OpenSet),
    ("}", Op::CloseSet),
    (",", Op::Comma),
    ("!", Op::Not),
    (">", Op::Greater),
    ("<", Op::Less),
    ("~", Op::Matches),
    ("&", Op::BitAnd),
    ("+", Op::Plus),
    ("-", Op::Minus),
    ("*", Op::Star),
    ("/", Op::Divide),
    ("%", Op::Modulo),
];

const WORDS: &[(&str, Op)] = &[
    ("and", Op::And),
    ("or", Op::Or),
    ("xor", Op::Xor),
    ("not", Op::Not),
    ("eq", Op::Equal),
    ("any_eq", Op::Equal),
    ("all_eq", Op::AllEqual),
    ("ne", Op::NotEqual),
    ("all_ne", Op::NotEqual),
    ("any_ne", Op::AnyNotEqual),
    ("gt", Op::Greater),
    ("lt", Op::Less),
    ("ge", Op::GreaterEqual),
    ("le", Op::LessEqual),
    ("contains", Op::Contains),
    ("matches", Op::Matches),
    ("in", Op::In),
    ("bitand", Op::BitAnd),
    ("any", Op::Any),
    ("all", Op::All),
];

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-')
}

/// Takes a filter apart.
pub fn tokens(text: &str) -> Result<Vec<(Range<usize>, Token)>, Fault> {
    if text.len() > MAX_LEN {
        return Err(Fault::new(0..1, format!("the filter is longer than {MAX_LEN} bytes")));
    }
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|r| !r.is_empty()) {
        let Some(c) = rest.chars().next() else { break };
        let start = at;
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        // a raw string: r"..."
        if let Some(body) = rest.strip_prefix("r\"") {
            let end = body.find('"').ok_or_else(|| Fault::new(start..text.len(), "the string has no end"))?;
            at += 2 + end + 1;
            out.push((start..at, Token::Quoted(body.get(..end).unwrap_or("").as_bytes().to_vec())));
            continue;
        }
        if c == '"' || c == '\'' {
            let (bytes, len) = quoted(rest, start)?;
            at += len;
            let token = match (c, bytes.as_slice()) {
                ('\'', [b]) => Token::Char(*b),
                ('\'', _) => {
                    return Err(Fault::new(start..at, "single quotes hold one character; text takes double quotes"));
                }
                _ => Token::Quoted(bytes),
            };
            out.push((start..at, token));
            continue;
        }
        if c == '[' {
            let end = rest.find(']').ok_or_else(|| Fault::new(start..text.len(), "the slice has no ]"))?;
            at += end + 1;
            out.push((start..at, Token::Slice(rest.get(1..end).unwrap_or("").to_owned())));
            continue;
        }
        if let Some(which) = rest.strip_prefix('#') {
            // #[1-2] or #1
            let (layer, len) = if let Some(inner) = which.strip_prefix('[') {
                let end = inner.find(']').ok_or_else(|| Fault::new(start..text.len(), "the layers have no ]"))?;
                (inner.get(..end), end + 3)
            } else {
                let end = which.find(|c: char| !c.is_ascii_digit()).unwrap_or(which.len());
                (which.get(..end), end + 1)
            };
            at += len;
            out.push((start..at, Token::Layer(layer.unwrap_or("").to_owned())));
            continue;
        }
        if let Some((symbol, op)) = SYMBOLS.iter().find(|(s, _)| rest.starts_with(s)) {
            at += symbol.len();
            out.push((start..at, Token::Op(*op)));
            continue;
        }
        let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if len == 0 {
            let end = start + c.len_utf8();
            return Err(Fault::new(start..end, format!("{c:?} means nothing here")));
        }
        // `1..5` is a range, `10.0.0.1` is not
        let word = rest.get(..len).unwrap_or("");
        let len = word.find("..").filter(|i| *i > 0).unwrap_or(len);
        let word = word.get(..len).unwrap_or("");
        at += len;
        let token = match WORDS.iter().find(|(w, _)| w.eq_ignore_ascii_case(word)) {
            Some((_, op)) => Token::Op(*op),
            None => Token::Word(word.to_owned()),
        };
        out.push((start..at, token));
    }
    Ok(out)
}

/// A string or character with C's escapes; its bytes and how long it is with its quotes.
fn quoted(rest: &str, start: usize) -> Result<(Vec<u8>, usize), Fault> {
    let mut chars = rest.char_indices();
    let quote = chars.next().map_or('"', |(_, c)| c);
    let mut out = Vec::new();
    let mut utf8 = [0; 4];
    while let Some((i, c)) = chars.next() {
        if c == quote {
            return Ok((out, i + 1));
        }
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
            continue;
        }
        let Some((_, e)) = chars.next() else { break };
        out.push(match e {
            'a' => 0x07,
            'b' => 0x08,
            'f' => 0x0c,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 0x0b,
            '0'..='7' => {
                let digits = rest.get(i + 1..).unwrap_or("").bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b));
                let (v, n) = digits.fold((0u32, 0), |(v, n), b| (v * 8 + u32::from(b - b'0'), n + 1));
                let Ok(v) = u8::try_from(v) else {
                    return Err(Fault::new(start + i..start + i + 4, "an octal escape goes to \\377"));
                };
                for _ in 1..n {
                    chars.next();
                }
                v
            }
            'x' => {
                let digits = rest.get(i + 2..i + 4).and_then(|d| u8::from_str_radix(d, 16).ok());
                let Some(v) = digits else {
                    return Err(Fault::new(start + i..start + i + 2, "\\x takes two hexadecimal digits"));
                };
                chars.next();
                chars.next();
                v
            }
            // \\, \", \' and whatever a regular expression wants to keep
            '\\' | '"' | '\'' => e as u8,
            other => {
                out.push(b'\\');
                out.extend_from_slice(other.encode_utf8(&mut utf8).as_bytes());
                continue;
            }
        });
    }
    Err(Fault::new(start..start + rest.len(), "the string has no end"))
}
