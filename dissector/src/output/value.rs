//! A field's value as text, the way tshark 4.0 prints it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::time;
use crate::dissect::{Base, Field, Node, Value};

/// Which of tshark's ways of writing a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `-T fields`, and `-e` in JSON: bytes as bare hex, yes and no as 1 and 0.
    Plain,
    /// `-T json`: bytes with colons.
    Json,
    /// `-T ek`: bytes with colons, yes and no as words, times as ISO 8601.
    Ek,
}

/// Appends a decimal number.
#[inline]
pub fn decimal(mut v: u64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    for slot in buffer.iter_mut().rev() {
        // the remainder is below ten
        *slot = b'0' + (v % 10) as u8;
        at -= 1;
        v /= 10;
        if v == 0 {
            break;
        }
    }
    out.extend_from_slice(buffer.get(at..).unwrap_or(&[]));
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

#[inline]
fn digit(v: u64) -> u8 {
    *DIGITS.get((v & 15) as usize).unwrap_or(&b'0')
}

/// Appends `0x` and a hexadecimal number of at least so many digits.
#[inline]
pub fn hexadecimal(mut v: u64, digits: usize, out: &mut Vec<u8>) {
    let needed = (16 - v.leading_zeros() as usize / 4).max(1);
    let mut buffer = *b"0x0000000000000000";
    let end = (2 + digits.max(needed)).min(buffer.len());
    let (text, _) = buffer.split_at_mut(end);
    for slot in text.iter_mut().rev().take(needed) {
        *slot = digit(v);
        v >>= 4;
    }
    out.extend_from_slice(text);
}

/// Appends bytes as hex digits with `between` after each but the last.
pub fn bytes(b: &[u8], between: &[u8], out: &mut Vec<u8>) {
    out.reserve(b.len() * (2 + between.len()));
    for (i, v) in b.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(between);
        }
        out.push(digit(u64::from(v >> 4)));
        out.push(digit(u64::from(*v)));
    }
}

/// What a terminal obeys, or what turns the text around it around.
pub fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text without anything that a terminal would obey: control characters (C0, C1), line separators and the marks that
/// turn text around become `\n` and its like, `\x..` or `\u{..}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_odd(c) {
            if let Some(short) = "\x07\x08\t\n\x0b\x0c\r".find(c) {
                // as C has it, and tshark
                out.push('\\');
                out.extend("abtnvfr".chars().nth(short));
                continue;
            }
            let n = u32::from(c);
            // writing to a String cannot fail
            let _ = if n < 0x100 { write!(out, "\\x{n:02x}") } else { write!(out, "\\u{{{n:x}}}") };
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Appends an integer as the field's base asks.
#[inline]
pub fn integer(field: &Field, v: u64, out: &mut Vec<u8>) {
    match field.base {
        Base::Dec => decimal(v, out),
        Base::Hex => hexadecimal(v, field.ty.hex_digits(), out),
    }
}

/// Appends a node's value. Text is printable; JSON quotes are up to the caller.
pub fn write(node: &Node<'_>, style: Style, out: &mut Vec<u8>) {
    match &node.value {
        Value::None => {
            // as tshark: a protocol's line if it says more than its name, else its short name
            let text = node.label.as_deref().unwrap_or(node.field.name);
            out.extend_from_slice(printable(text).as_bytes());
        }
        Value::Bool(v) if style == Style::Ek => out.extend_from_slice(if *v { b"true" } else { b"false" }),
        Value::Bool(v) => out.push(b'0' + u8::from(*v)),
        Value::Uint(v) => integer(node.field, *v, out),
        Value::Int(v) => {
            if *v < 0 {
                out.push(b'-');
            }
            decimal(v.unsigned_abs(), out);
        }
        Value::Ether(a) => bytes(a, b":", out),
        // writing to a Vec cannot fail
        Value::Ipv4(a) => drop(write!(out, "{}", Ipv4Addr::from(*a))),
        Value::Ipv6(a) => drop(write!(out, "{}", Ipv6Addr::from(*a))),
        Value::Bytes(b) => bytes(b, if style == Style::Plain { b"" } else { b":" }, out),
        Value::Str(s) => out.extend_from_slice(printable(s).as_bytes()),
        Value::Time(ns) if style == Style::Ek => time::iso(*ns, out),
        Value::Time(ns) => time::wireshark(*ns, out),
        Value::Duration(ns) => time::seconds(*ns, 9, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers() {
        assert_eq!(text(|o| decimal(0, o)), "0");
        assert_eq!(text(|o| decimal(u64::MAX, o)), u64::MAX.to_string());
        assert_eq!(text(|o| decimal(4_232_789, o)), "4232789");
        assert_eq!(text(|o| hexadecimal(0x1b, 6, o)), "0x00001b");
        assert_eq!(text(|o| hexadecimal(0, 2, o)), "0x00");
        assert_eq!(text(|o| hexadecimal(0x1ff, 2, o)), "0x1ff");
        assert_eq!(text(|o| bytes(&[0x1f, 0, 4], b":", o)), "1f:00:04");
    }

    #[test]
    fn nothing_that_a_terminal_obeys() {
        assert_eq!(printable("plain → text"), "plain → text");
        assert_eq!(printable("a\x1b]0;x\x07b\u{9b}31m\u{202e}"), "a\\x1b]0;x\\ab\\x9b31m\\u{202e}");
    }
}
