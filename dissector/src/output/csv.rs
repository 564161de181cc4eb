//! Fields as CSV (RFC 4180): a header line, commas, quotes where they are needed.

use super::value::{self, Style};
use crate::dissect::{Field, Tree};

/// The CSV format.
#[derive(Clone, Debug)]
pub struct Csv {
    /// Columns.
    pub fields: Vec<&'static Field>,
}

impl Csv {
    /// The line of names.
    pub fn header(&self, out: &mut Vec<u8>) {
        for (i, f) in self.fields.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            cell(f.name.as_bytes(), out);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// One packet. Several occurrences of a field share a cell, separated by commas.
    pub fn packet(&self, tree: &Tree<'_>, out: &mut Vec<u8>) {
        let mut text = Vec::new();
        for (i, f) in self.fields.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            text.clear();
            for n in tree.nodes().iter().filter(|n| n.field.is(f)) {
                if !text.is_empty() {
                    text.push(b',');
                }
                value::write(n, Style::Plain, &mut text);
            }
            cell(&text, out);
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn cell(text: &[u8], out: &mut Vec<u8>) {
    if !text.iter().any(|b| matches!(b, b',' | b'"' | b'\r' | b'\n')) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for b in text {
        if *b == b'"' {
            out.push(b'"');
        }
        out.push(*b);
    }
    out.push(b'"');
}
