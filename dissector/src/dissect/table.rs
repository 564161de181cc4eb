//! Fields by table: management datagrams and upper protocols have hundreds, each a place and nothing more.

use super::{Field, Tree, Type, Value};
use crate::wire::Bits;
use crate::wire::bits::{bytes_at, tail};

/// Where a field's value stands in a message.
#[derive(Clone, Copy, Debug)]
pub enum At {
    /// A big-endian number (or a yes/no bit).
    Bits(Bits),
    /// A little-endian number of 1, 2, 4 or 8 bytes at a byte.
    Little(usize, u8),
    /// Bytes: first, count. What is there of them is shown.
    Bytes(usize, usize),
    /// Text with trailing zeros: first, count.
    Text(usize, usize),
    /// A GID or IPv6 address.
    Gid(usize),
    /// An IPv4 address.
    Ipv4(usize),
}

/// A field and its place.
#[derive(Debug)]
pub struct Row(pub &'static Field, pub At);

/// A row of a number that starts at a byte.
pub const fn number(field: &'static Field, at: u16, width: u8) -> Row {
    Row(field, At::Bits(Bits::new(at, width)))
}

/// A row of a number that starts within a byte.
pub const fn part(field: &'static Field, at: u16, bit: u8, width: u8) -> Row {
    Row(field, At::Bits(Bits::within(at, bit, width)))
}

/// A row of a number that the wire description has a name for.
pub const fn named(field: &'static Field, bits: Bits) -> Row {
    Row(field, At::Bits(bits))
}

/// A row of bytes.
pub const fn bytes(field: &'static Field, at: usize, len: usize) -> Row {
    Row(field, At::Bytes(at, len))
}

/// A row of a little-endian number of `len` bytes.
pub const fn little(field: &'static Field, at: usize, len: u8) -> Row {
    Row(field, At::Little(at, len))
}

/// Adds what the message has of a table. `o` is where the message starts in the frame. `false` if a row did not fit.
pub fn add<'a>(rows: &[Row], message: &'a [u8], o: usize, tree: &mut Tree<'a>) -> bool {
    add_shifted(rows, 0, message, o, tree)
}

/// The same with every row `shift` bytes further on.
pub fn add_shifted<'a>(rows: &[Row], shift: usize, message: &'a [u8], o: usize, tree: &mut Tree<'a>) -> bool {
    let message = message.get(shift..).unwrap_or(&[]);
    let o = o + shift;
    let mut complete = true;
    for Row(field, at) in rows {
        complete &= one(field, *at, message, o, tree);
    }
    complete
}

fn one<'a>(field: &'static Field, at: At, message: &'a [u8], o: usize, tree: &mut Tree<'a>) -> bool {
    if !tree.wants(field) {
        return true;
    }
    match at {
        At::Bits(bits) => {
            let Some(v) = bits.get(message) else { return false };
            let (start, end) = container(field, bits);
            // the word around the field may be cut where the field itself is not
            tree.add(field, o + start..o + end.min(message.len()), value(field, v));
        }
        At::Little(at, len) => {
            let (start, len) = (at, usize::from(len));
            let Some(b) = message.get(start..start + len) else { return false };
            let v = b.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
            let v = if field.mask == 0 { v } else { (v & field.mask) >> field.mask.trailing_zeros() };
            tree.add(field, o + start..o + start + len, value(field, v));
        }
        At::Bytes(at, len) => {
            let b = tail(message, at, len);
            if !b.is_empty() {
                let start = o + at;
                tree.add(field, start..start + b.len(), b);
            }
            return b.len() == len;
        }
        At::Text(at, len) => {
            let b = tail(message, at, len);
            if !b.is_empty() {
                let start = o + at;
                let text = b.split(|b| *b == 0).next().unwrap_or(&[]);
                tree.add(field, start..start + b.len(), String::from_utf8_lossy(text));
            }
            return b.len() == len;
        }
        At::Gid(at) => {
            let start = at;
            let Some(b) = bytes_at::<16>(message, start) else { return false };
            tree.add(field, o + start..o + start + 16, *b);
        }
        At::Ipv4(at) => {
            let start = at;
            let Some(b) = bytes_at::<4>(message, start) else { return false };
            tree.add(field, o + start..o + start + 4, *b);
        }
    }
    true
}

fn value<'a>(field: &Field, v: u64) -> Value<'a> {
    if field.ty == Type::Bool { Value::Bool(v != 0) } else { Value::Uint(v) }
}

/// Bytes that the picture of a field shows: those it touches, or the word that its mask belongs to.
fn container(field: &Field, bits: Bits) -> (usize, usize) {
    let (start, end) = (bits.start(), bits.start() + bits.len());
    if field.mask == 0 {
        return (start, end);
    }
    let word = match field.ty {
        Type::U16 => 2,
        Type::U24 => 3,
        Type::U32 => 4,
        Type::U64 => 8,
        _ => return (start, end),
    };
    let last_bit = start * 8 + usize::from(bits.bit) + usize::from(bits.width) + field.mask.trailing_zeros() as usize;
    let end = last_bit.div_ceil(8);
    (end.saturating_sub(word), end)
}

/// Nanoseconds as people write them: three digits and a unit.
pub fn span_words(ns: u64) -> String {
    let (v, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    if v >= 100.0 {
        format!("{v:.0} {unit}")
    } else if v >= 10.0 {
        format!("{v:.1} {unit}")
    } else {
        format!("{v:.2} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(
            [500, 4_096, 67_108, 134_217_728, 4_294_967_296, 8_796_093_022_208].map(span_words),
            ["500 ns", "4.10 µs", "67.1 µs", "134 ms", "4.29 s", "8796 s"]
        );
    }
}
