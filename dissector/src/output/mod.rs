//! Ways to print packets: one file a format, all over the same tree of fields.
//!
//! Formats append to a byte buffer and keep no state, so packets can be printed by several threads and put in order
//! afterwards. What stands between packets (JSON's commas) is [`Format::separator`], put there by whoever orders.

pub mod columns;
pub mod csv;
pub mod direct;
pub mod hex;
pub mod json;
pub mod text;
pub mod time;
pub mod tree;
pub mod value;
pub mod xml;

use crate::dissect::{Field, Input, Tree, Wanted, registry};

/// How packets are printed.
#[derive(Clone, Debug)]
pub enum Format {
    /// One line a packet.
    Line(text::Line),
    /// The whole tree, and the bytes if asked.
    Tree(tree::Detail),
    /// Columns of fields.
    Columns(columns::Columns),
    /// RFC 4180.
    Csv(csv::Csv),
    /// JSON as tshark shapes it.
    Json(json::Json),
    /// The one-line text as XML.
    Psml(xml::Psml),
    /// The whole tree as XML.
    Pdml(xml::Pdml),
    /// Nothing.
    Quiet,
}

impl Format {
    /// Which fields of the tree it reads.
    pub fn wanted(&self) -> Wanted {
        match self {
            Self::Line(l) => l.wanted(),
            Self::Quiet | Self::Psml(_) => Wanted::NONE,
            Self::Tree(_) | Self::Pdml(_) => Wanted::ALL,
            Self::Columns(c) => set(&c.fields),
            Self::Csv(c) => set(&c.fields),
            Self::Json(j) if j.fields.is_empty() => Wanted::ALL,
            Self::Json(j) => {
                let mut w = set(&j.fields);
                w.insert(&crate::dissect::record::TIME_EPOCH);
                w
            }
        }
    }

    /// What comes before the first packet.
    pub fn begin(&self, out: &mut Vec<u8>) {
        match self {
            Self::Columns(c) => c.header(out),
            Self::Csv(c) => c.header(out),
            Self::Json(j) => j.begin(out),
            Self::Psml(p) => p.begin(out),
            Self::Pdml(p) => p.begin(out),
            Self::Line(_) | Self::Tree(_) | Self::Quiet => {}
        }
    }

    /// One packet.
    pub fn packet(&self, input: &Input<'_, '_>, tree: &Tree<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Line(l) => l.packet(input, tree, out),
            Self::Tree(d) => d.packet(input, tree, out),
            Self::Columns(c) => c.packet(tree, out),
            Self::Csv(c) => c.packet(tree, out),
            Self::Json(j) => j.packet(input, tree, out),
            Self::Psml(p) => p.packet(input, out),
            Self::Pdml(p) => p.packet(input, tree, out),
            Self::Quiet => {}
        }
    }

    /// What stands between two packets.
    pub fn separator(&self) -> &'static [u8] {
        match self {
            Self::Json(j) => j.separator(),
            Self::Tree(_) => b"\n",
            _ => b"",
        }
    }

    /// What comes after the last packet; `any` if there was one.
    pub fn end(&self, any: bool, out: &mut Vec<u8>) {
        match self {
            Self::Json(j) => j.end(any, out),
            Self::Psml(p) => p.end(out),
            Self::Pdml(p) => p.end(out),
            _ => {}
        }
    }
}

fn set(fields: &[&Field]) -> Wanted {
    let mut w = Wanted::NONE;
    for f in fields {
        w.insert(f);
    }
    w
}

/// The field that a `-e` means, or a sentence that names the nearest one.
pub fn field(name: &str) -> Result<&'static Field, String> {
    registry::find(name).ok_or_else(|| {
        let name = value::printable(name);
        match registry::nearest(&name) {
            Some(near) => format!("no field is called {name}; did you mean {near}? `roce-dissect fields` lists all"),
            None => format!("no field is called {name}; `roce-dissect fields` lists all"),
        }
    })
}
