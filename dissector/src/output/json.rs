//! JSON in the two shapes that tshark has: `json`, nested as the tree is, and `ek`, one line a packet for
//! Elasticsearch. With fields chosen by `-e` both hold a flat list of them.

use std::io::Write as _;

use super::time;
use super::value::{self, Style};
use crate::dissect::{Field, Input, Node, Tree, Value};

/// The JSON formats.
#[derive(Clone, Debug)]
pub struct Json {
    /// Fields chosen by `-e`; empty: the whole tree.
    pub fields: Vec<&'static Field>,
    /// Elasticsearch's bulk format.
    pub ek: bool,
}

impl Json {
    /// What comes before the first packet.
    pub fn begin(&self, out: &mut Vec<u8>) {
        if !self.ek {
            out.extend_from_slice(b"[\n");
        }
    }

    /// What stands between two packets.
    pub const fn separator(&self) -> &'static [u8] {
        if self.ek { b"" } else { b",\n" }
    }

    /// What comes after the last packet.
    pub fn end(&self, any: bool, out: &mut Vec<u8>) {
        if !self.ek {
            out.extend_from_slice(if any { b"\n]\n" } else { b"]\n" });
        }
    }

    /// One packet.
    pub fn packet(&self, input: &Input<'_, '_>, tree: &Tree<'_>, out: &mut Vec<u8>) {
        let day = {
            let mut t = Vec::new();
            time::clock(input.record.at.0, true, false, 0, &mut t);
            t.truncate("2026-11-30".len());
            t
        };
        if self.ek {
            out.extend_from_slice(b"{\"index\":{\"_index\":\"packets-");
            out.extend_from_slice(&day);
            out.extend_from_slice(b"\",\"_type\":\"doc\"}}\n{\"timestamp\":\"");
            value::decimal(u64::try_from(input.record.at.0 / 1_000_000).unwrap_or(0), out);
            out.extend_from_slice(b"\",\"layers\":{");
            if self.fields.is_empty() {
                ek_layers(tree.nodes(), out);
            } else {
                self.chosen(tree, 0, out);
            }
            out.extend_from_slice(b"}}\n");
            return;
        }
        out.extend_from_slice(b"  {\n    \"_index\": \"packets-");
        out.extend_from_slice(&day);
        out.extend_from_slice(
            b"\",\n    \"_type\": \"doc\",\n    \"_score\": null,\n    \"_source\": {\n      \"layers\": {\n",
        );
        if self.fields.is_empty() {
            nested(tree.nodes(), 8, out);
        } else {
            self.chosen(tree, 8, out);
        }
        out.extend_from_slice(b"\n      }\n    }\n  }");
    }

    /// The fields of `-e`, each with its list of values.
    fn chosen(&self, tree: &Tree<'_>, indent: usize, out: &mut Vec<u8>) {
        let mut first = true;
        for f in &self.fields {
            let mut values = tree.nodes().iter().filter(|n| n.field.is(f)).peekable();
            if values.peek().is_none() {
                continue;
            }
            if !first {
                out.extend_from_slice(if self.ek { b"," } else { b",\n" });
            }
            first = false;
            spaces(indent, out);
            if self.ek {
                quoted(&f.name.replace('.', "_"), out);
                out.extend_from_slice(b":[");
            } else {
                quoted(f.name, out);
                out.extend_from_slice(b": [");
            }
            for (i, n) in values.enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                if !self.ek {
                    out.push(b'\n');
                    spaces(indent + 2, out);
                }
                string_value(n, Style::Plain, out);
            }
            if !self.ek {
                out.push(b'\n');
                spaces(indent, out);
            }
            out.push(b']');
        }
    }
}

/// Layers of `ek`: each a flat object, values of the same name joined in a list where the first stands.
fn ek_layers(nodes: &[Node<'_>], out: &mut Vec<u8>) {
    let mut done: Vec<&str> = Vec::new();
    for (i, layer) in layers(nodes).enumerate() {
        let Some((head, _)) = layer.split_first() else { continue };
        // a protocol that comes twice (a tunnel) is one key: later ones are numbered no further than the first
        if done.contains(&head.field.name) {
            continue;
        }
        done.push(head.field.name);
        let name = head.field.name.replace('.', "_");
        if i > 0 {
            out.push(b',');
        }
        quoted(&name, out);
        out.push(b':');
        let same: Vec<&Node<'_>> = layers(nodes)
            .filter(|l| l.first().is_some_and(|n| n.field.is(head.field)))
            .flat_map(|l| l.iter().skip(1))
            .collect();
        out.push(b'{');
        let mut seen: Vec<u16> = Vec::new();
        for n in &same {
            if seen.contains(&n.field.id) {
                continue;
            }
            if !seen.is_empty() {
                out.push(b',');
            }
            seen.push(n.field.id);
            quoted(&format!("{name}_{}", n.field.name.replace('.', "_")), out);
            out.push(b':');
            let all: Vec<&&Node<'_>> = same.iter().filter(|m| m.field.is(n.field)).collect();
            let list = all.len() > 1;
            if list {
                out.push(b'[');
            }
            for (j, m) in all.iter().enumerate() {
                if j > 0 {
                    out.push(b',');
                }
                if matches!(m.value, Value::Bool(_)) {
                    value::write(m, Style::Ek, out);
                } else {
                    string_value(m, Style::Ek, out);
                }
            }
            if list {
                out.push(b']');
            }
        }
        out.push(b'}');
    }
}

/// The runs of nodes that start with one of depth 0.
fn layers<'n, 'a>(nodes: &'n [Node<'a>]) -> impl Iterator<Item = &'n [Node<'a>]> {
    nodes.chunk_by(|_, next| next.depth > 0)
}

/// Nodes of one depth and what is below them, as members of an object.
fn nested(nodes: &[Node<'_>], indent: usize, out: &mut Vec<u8>) {
    let Some(depth) = nodes.first().map(|n| n.depth) else { return };
    let mut first = true;
    for group in nodes.chunk_by(|_, next| next.depth > depth) {
        let Some((n, children)) = group.split_first() else { continue };
        if !first {
            out.extend_from_slice(b",\n");
        }
        first = false;
        spaces(indent, out);
        let has_value = !matches!(n.value, Value::None);
        if has_value || children.is_empty() {
            quoted(n.field.name, out);
            out.extend_from_slice(b": ");
            if has_value {
                string_value(n, Style::Json, out);
            } else {
                out.extend_from_slice(b"\"\"");
            }
            if children.is_empty() {
                continue;
            }
            out.extend_from_slice(b",\n");
            spaces(indent, out);
            quoted(&format!("{}_tree", n.field.name), out);
        } else {
            quoted(n.field.name, out);
        }
        out.extend_from_slice(b": {\n");
        nested(children, indent + 2, out);
        out.push(b'\n');
        spaces(indent, out);
        out.push(b'}');
    }
}

fn spaces(n: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + n, b' ');
}

fn string_value(n: &Node<'_>, style: Style, out: &mut Vec<u8>) {
    if let Value::Str(s) = &n.value {
        quoted(s, out);
        return;
    }
    out.push(b'"');
    let start = out.len();
    value::write(n, style, out);
    // everything but text is digits, colons and dots; labels of protocols may be anything
    if matches!(n.value, Value::None) {
        let text = String::from_utf8_lossy(out.get(start..).unwrap_or(&[])).into_owned();
        out.truncate(start - 1);
        quoted(&text, out);
        return;
    }
    out.push(b'"');
}

/// Appends a JSON string. What is legal in JSON and not harmless on a terminal (U+007F, C1 controls, marks that turn
/// text around) is escaped the JSON way, so that the value stays what it is.
fn quoted(text: &str, out: &mut Vec<u8>) {
    let odd = |c: char| c >= '\u{7f}' && value::is_odd(c);
    // serialising a &str cannot fail, and neither can writing to a Vec
    if !text.contains(odd) {
        let _ = serde_json::to_writer(&mut *out, text);
        return;
    }
    let plain = serde_json::to_string(text).unwrap_or_default();
    for c in plain.chars() {
        if odd(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}
