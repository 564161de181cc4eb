//! Bytes as hex and text, with the place of every header.

use std::io::Write as _;

use super::value::printable;
use crate::dissect::Tree;

/// Bytes a line.
const WIDTH: usize = 16;

/// Appends a hex dump; with a tree, a list of its headers and their offsets follows.
pub fn dump(bytes: &[u8], tree: Option<&Tree<'_>>, out: &mut Vec<u8>) {
    for (i, line) in bytes.chunks(WIDTH).enumerate() {
        // writing to a Vec cannot fail
        let _ = write!(out, "{:04x}  ", i * WIDTH);
        for at in 0..WIDTH {
            match line.get(at) {
                Some(b) => drop(write!(out, "{b:02x} ")),
                None => out.extend_from_slice(b"   "),
            }
        }
        out.extend_from_slice(b"  ");
        out.extend(line.iter().map(|b| if (0x20..0x7f).contains(b) { *b } else { b'.' }));
        out.push(b'\n');
    }
    let Some(tree) = tree else { return };
    let mut any = false;
    for n in tree.nodes() {
        // headers: what has no own value, or is a header with its bytes; the record itself is all of it
        if n.depth > 1 || n.range.is_empty() || n.generated || n.field.hidden || n.field.name == "frame" {
            continue;
        }
        if n.depth == 1
            && !matches!(n.value, crate::dissect::Value::Bytes(_))
            && n.field.ty != crate::dissect::Type::U32
        {
            continue;
        }
        let title = if n.depth == 0 { n.field.name } else { n.label.as_deref().unwrap_or(n.field.title) };
        let _ = write!(
            out,
            "{}{:04x}-{:04x} {}",
            if any { "  " } else { "" },
            n.range.start,
            n.range.end - 1,
            printable(title)
        );
        any = true;
    }
    if any {
        out.push(b'\n');
    }
}
