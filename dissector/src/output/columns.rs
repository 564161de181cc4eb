//! Columns of fields (`-T fields`), with tshark's `-E` options.

use super::value::{self, Style};
use crate::dissect::{Field, Node, Tree};

/// Which occurrences of a field are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Occurrence {
    /// The first.
    First,
    /// The last.
    Last,
    /// All.
    #[default]
    All,
}

/// Columns and how they are set.
#[derive(Clone, Debug)]
pub struct Columns {
    /// What to print.
    pub fields: Vec<&'static Field>,
    /// A first line with their names.
    pub header: bool,
    /// Between columns.
    pub separator: u8,
    /// Between occurrences.
    pub aggregator: u8,
    /// Which occurrences.
    pub occurrence: Occurrence,
    /// Around values.
    pub quote: Option<u8>,
    /// A byte order mark first.
    pub bom: bool,
}

impl Columns {
    /// These fields in tshark's default setting.
    pub fn new(fields: Vec<&'static Field>) -> Self {
        Self {
            fields,
            header: false,
            separator: b'\t',
            aggregator: b',',
            occurrence: Occurrence::All,
            quote: None,
            bom: false,
        }
    }

    /// Applies one `-E` option, `name=value`.
    pub fn set(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').ok_or_else(|| format!("-E {option}: an option is name=value"))?;
        let yes = || match value {
            "y" => Ok(true),
            "n" => Ok(false),
            _ => Err(format!("-E {option}: y or n")),
        };
        let one = |words: &[(&str, u8)]| {
            if let Some((_, b)) = words.iter().find(|(w, _)| *w == value) {
                return Ok(*b);
            }
            match value.as_bytes() {
                [b] if b.is_ascii() => Ok(*b),
                _ => Err(format!("-E {option}: one character, or /t or /s")),
            }
        };
        match name {
            "header" => self.header = yes()?,
            "bom" => self.bom = yes()?,
            "separator" => self.separator = one(&[("/t", b'\t'), ("/s", b' ')])?,
            "aggregator" => self.aggregator = one(&[("/s", b' '), ("/t", b'\t')])?,
            "occurrence" => {
                self.occurrence = match value {
                    "f" => Occurrence::First,
                    "l" => Occurrence::Last,
                    "a" => Occurrence::All,
                    _ => return Err(format!("-E {option}: f (first), l (last) or a (all)")),
                }
            }
            "quote" => {
                self.quote = match value {
                    "d" => Some(b'"'),
                    "s" => Some(b'\''),
                    "n" => None,
                    _ => return Err(format!("-E {option}: d (double), s (single) or n (none)")),
                }
            }
            _ => {
                return Err(format!("-E {option}: known are header, separator, occurrence, aggregator, quote and bom"));
            }
        }
        Ok(())
    }

    /// The line of names.
    pub fn header(&self, out: &mut Vec<u8>) {
        if self.bom {
            out.extend_from_slice("\u{feff}".as_bytes());
        }
        if !self.header {
            return;
        }
        for (i, f) in self.fields.iter().enumerate() {
            if i > 0 {
                out.push(self.separator);
            }
            out.extend_from_slice(f.name.as_bytes());
        }
        out.push(b'\n');
    }

    /// One packet.
    pub fn packet(&self, tree: &Tree<'_>, out: &mut Vec<u8>) {
        for (i, field) in self.fields.iter().enumerate() {
            if i > 0 {
                out.push(self.separator);
            }
            let mut found = tree.nodes().iter().filter(|n| n.field.is(field));
            match self.occurrence {
                Occurrence::First => self.values(found.next().into_iter(), out),
                Occurrence::Last => self.values(found.next_back().into_iter(), out),
                Occurrence::All => self.values(found, out),
            }
        }
        out.push(b'\n');
    }

    fn values<'n>(&self, nodes: impl Iterator<Item = &'n Node<'n>>, out: &mut Vec<u8>) {
        let mut any = false;
        for n in nodes {
            match (any, self.quote) {
                (false, Some(q)) => out.push(q),
                (true, _) => out.push(self.aggregator),
                _ => {}
            }
            any = true;
            value::write(n, Style::Plain, out);
        }
        if let (true, Some(q)) = (any, self.quote) {
            out.push(q);
        }
    }
}
