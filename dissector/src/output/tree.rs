//! Every field of a packet (`-V`), with the bytes below it (`-x`).

use std::borrow::Cow;
use std::io::Write as _;

use super::value::{self, Style, printable};
use crate::dissect::{Field, Input, Node, Tree, Type, Value};

/// The tree format.
#[derive(Clone, Debug)]
pub struct Detail {
    /// The hex dump follows, and each line starts with offset and length of its bytes.
    pub hex: bool,
    /// If there are any: only these protocols in full, one line each of the others.
    pub only: Vec<String>,
}

impl Detail {
    /// One packet.
    pub fn packet(&self, input: &Input<'_, '_>, tree: &Tree<'_>, out: &mut Vec<u8>) {
        let mut full = true;
        for n in tree.nodes().iter().filter(|n| !n.field.hidden) {
            if n.depth == 0 {
                full = self.only.is_empty() || self.only.iter().any(|o| o == n.field.name);
            } else if !full {
                continue;
            }
            if self.hex {
                // writing to a Vec cannot fail
                let _ = match n.range.end.saturating_sub(n.range.start) {
                    0 => write!(out, "          "),
                    len => write!(out, "{:04x}+{len:<4} ", n.range.start),
                };
            }
            for _ in 0..n.depth {
                out.extend_from_slice(b"    ");
            }
            line(n, out);
            out.push(b'\n');
        }
        if self.hex {
            out.push(b'\n');
            super::hex::dump(input.frame.bytes, None, out);
        }
    }
}

/// Bytes of a value that a line shows.
const MAX_BYTES: usize = 32;

fn line(n: &Node<'_>, out: &mut Vec<u8>) {
    if n.generated {
        out.push(b'[');
    }
    words(n, out);
    if n.generated {
        out.push(b']');
    }
}

/// What a line says, without the brackets of what was derived.
pub(super) fn words(n: &Node<'_>, out: &mut Vec<u8>) {
    picture(n, out);
    if let Some(label) = &n.label {
        out.extend_from_slice(printable(label).as_bytes());
    } else {
        match &n.value {
            Value::None => out.extend_from_slice(n.field.title.as_bytes()),
            Value::Str(s) if n.field.name == "roce.note" => out.extend_from_slice(printable(s).as_bytes()),
            // a header: its fields show its bytes
            Value::Bytes(b) if b.len() > 2 && is_header(n.field) => out.extend_from_slice(n.field.title.as_bytes()),
            v => {
                out.extend_from_slice(n.field.title.as_bytes());
                out.extend_from_slice(b": ");
                meaning(n, v, out);
            }
        }
    }
}

fn is_header(field: &Field) -> bool {
    field.title.contains("Header")
}

fn meaning(n: &Node<'_>, v: &Value<'_>, out: &mut Vec<u8>) {
    let name = match v {
        Value::Uint(v) => n.field.value_name(*v),
        Value::Bool(v) => n.field.value_name(u64::from(*v)).or(Some(Cow::Borrowed(if *v { "True" } else { "False" }))),
        _ => None,
    };
    match (v, name) {
        (Value::Bool(_), Some(name)) => out.extend_from_slice(name.as_bytes()),
        (_, Some(name)) => {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b" (");
            value::write(n, Style::Plain, out);
            out.push(b')');
        }
        (Value::Bytes(b), None) if b.len() > MAX_BYTES => {
            value::bytes(b.get(..MAX_BYTES).unwrap_or(b), b"", out);
            out.extend_from_slice("…".as_bytes());
            let _ = write!(out, " ({} bytes)", b.len());
        }
        (Value::Duration(_), None) => {
            value::write(n, Style::Plain, out);
            out.extend_from_slice(b" seconds");
        }
        _ => value::write(n, Style::Plain, out),
    }
}

/// `0... .... = ` for a field that is part of its bytes.
fn picture(n: &Node<'_>, out: &mut Vec<u8>) {
    let mask = n.field.mask;
    let v = match n.value {
        Value::Uint(v) => v,
        Value::Bool(v) => u64::from(v),
        _ => return,
    };
    if mask == 0 {
        return;
    }
    let bits = match n.field.ty {
        Type::Bool | Type::U8 if mask <= 0xff => 8,
        Type::U8 | Type::U16 | Type::Bool if mask <= 0xffff => 16,
        Type::U64 => 64,
        _ if mask <= 0xff => 8,
        _ if mask <= 0xffff => 16,
        _ => 32,
    };
    let placed = v.checked_shl(mask.trailing_zeros()).unwrap_or(0);
    for bit in (0..bits).rev() {
        out.push(match (mask >> bit & 1, placed >> bit & 1) {
            (0, _) => b'.',
            (_, 0) => b'0',
            _ => b'1',
        });
        if bit % 4 == 0 && bit > 0 {
            out.push(b' ');
        }
    }
    out.extend_from_slice(b" = ");
}
