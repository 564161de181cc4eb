//! The two XML formats of tshark: `psml`, the columns of the one-line text, and `pdml`, every field with its place and
//! its bytes.
//!
//! Both are what tshark 4.0 writes, element by element and attribute by attribute, save that the head of `pdml` has no
//! time of its own making: the same capture gives the same text.

use std::io::Write as _;

use super::text::TimeStyle;
use super::value::{self, Style, printable};
use super::{time, tree};
use crate::dissect::{Input, Node, Tree, Type, Value, summary};

const DECLARATION: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

/// Appends text that is safe between tags and in quotes, and on a terminal.
fn escaped(text: &str, out: &mut Vec<u8>) {
    for c in printable(text).chars() {
        match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\'' => out.extend_from_slice(b"&apos;"),
            // no character of XML 1.0, however it is written
            '\u{fffe}' | '\u{ffff}' => out.extend_from_slice("\u{fffd}".as_bytes()),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Appends what `write` appends, escaped.
fn escape_of(write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    let mut text = Vec::new();
    write(&mut text);
    escaped(&String::from_utf8_lossy(&text), out);
}

/// The columns of the one-line text.
#[derive(Clone, Debug)]
pub struct Psml {
    /// Time column.
    pub time: TimeStyle,
}

impl Psml {
    /// What comes before the first packet.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(DECLARATION);
        out.extend_from_slice(
            concat!("<psml version=\"0\" creator=\"roce-dissect/", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        out.extend_from_slice(b"\">\n<structure>\n");
        for column in ["No.", "Time", "Source", "Destination", "Protocol", "Length", "Info"] {
            section(column, out);
        }
        out.extend_from_slice(b"</structure>\n\n");
    }

    /// One packet.
    pub fn packet(&self, input: &Input<'_, '_>, out: &mut Vec<u8>) {
        let mut at = Vec::with_capacity(32);
        self.time.write(&input.record, &mut at);
        let (src, dst) = summary::endpoints(input);
        let mut info = String::new();
        summary::info(input, &mut info);
        out.extend_from_slice(b"<packet>\n");
        section(&input.record.number.to_string(), out);
        section(&String::from_utf8_lossy(&at), out);
        section(&src, out);
        section(&dst, out);
        section(summary::protocol(input), out);
        section(&input.frame.lengths().1.to_string(), out);
        section(info.trim_end(), out);
        out.extend_from_slice(b"</packet>\n\n");
    }

    /// What comes after the last packet.
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"</psml>\n");
    }
}

fn section(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<section>");
    escaped(text, out);
    out.extend_from_slice(b"</section>\n");
}

/// Every field.
#[derive(Clone, Debug)]
pub struct Pdml {
    /// Name of the capture, for the head.
    pub file: String,
}

impl Pdml {
    /// What comes before the first packet.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(DECLARATION);
        out.extend_from_slice(b"<?xml-stylesheet type=\"text/xsl\" href=\"pdml2html.xsl\"?>\n");
        out.extend_from_slice(
            concat!("<pdml version=\"0\" creator=\"roce-dissect/", env!("CARGO_PKG_VERSION")).as_bytes(),
        );
        out.extend_from_slice(b"\" capture_file=\"");
        escaped(&self.file, out);
        out.extend_from_slice(b"\">\n");
    }

    /// One packet.
    pub fn packet(&self, input: &Input<'_, '_>, tree: &Tree<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<packet>\n");
        general(input, out);
        nodes(tree.nodes(), input.frame.bytes, 1, out);
        out.extend_from_slice(b"</packet>\n\n\n");
    }

    /// What comes after the last packet.
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"</pdml>\n");
    }
}

/// What tshark says of the record before any protocol.
fn general(input: &Input<'_, '_>, out: &mut Vec<u8>) {
    let (captured, wire) = input.frame.lengths();
    let number = input.record.number;
    // writing to a Vec cannot fail
    let _ = writeln!(out, "  <proto name=\"geninfo\" pos=\"0\" showname=\"General information\" size=\"{wire}\">");
    let mut field = |name: &str, show: &str, title: &str, value: &str| {
        let _ = writeln!(
            out,
            "    <field name=\"{name}\" pos=\"0\" show=\"{show}\" showname=\"{title}\" value=\"{value}\" size=\"{wire}\"/>"
        );
    };
    let mut words = Vec::new();
    time::wireshark(input.record.at.0, &mut words);
    let mut seconds = Vec::new();
    time::seconds(input.record.at.0, 9, &mut seconds);
    field("num", &number.to_string(), "Number", &format!("{number:x}"));
    field("len", &wire.to_string(), "Frame Length", &format!("{wire:x}"));
    field("caplen", &captured.to_string(), "Captured Length", &format!("{captured:x}"));
    field("timestamp", &String::from_utf8_lossy(&words), "Captured Time", &String::from_utf8_lossy(&seconds));
    out.extend_from_slice(b"  </proto>\n");
}

/// Nodes of one depth and what is below them.
fn nodes(all: &[Node<'_>], frame: &[u8], indent: usize, out: &mut Vec<u8>) {
    let Some(depth) = all.first().map(|n| n.depth) else { return };
    for group in all.chunk_by(|_, next| next.depth > depth) {
        let Some((n, below)) = group.split_first() else { continue };
        // to tshark the payload is no protocol here, and what stands beside the protocols is put into one
        let payload = n.field.name == "data";
        let protocol = n.field.ty == Type::None && !payload;
        let wrapped = depth == 0 && !protocol;
        let indent = if wrapped {
            spaces(indent, out);
            out.extend_from_slice(b"<proto name=\"fake-field-wrapper\">\n");
            indent + 1
        } else {
            indent
        };
        let bytes = frame.get(n.range.start as usize..n.range.end as usize).unwrap_or_default();
        spaces(indent, out);
        if wrapped && payload {
            out.extend_from_slice(b"<field name=\"data\" value=\"");
            value::bytes(bytes, b"", out);
            out.extend_from_slice(b"\">\n");
            nodes(below, frame, indent + 1, out);
            spaces(indent, out);
            out.extend_from_slice(b"</field>\n  </proto>\n");
            continue;
        }
        let tag = if protocol && depth == 0 { "proto" } else { "field" };
        let _ = write!(out, "<{tag} name=\"{}\" showname=\"", n.field.name);
        escape_of(|o| tree::words(n, o), out);
        out.push(b'"');
        // these repeat others, and tshark shows them all the same
        if n.field.hidden && !matches!(n.field.name, "eth.addr" | "frame.marked" | "frame.ignored") {
            out.extend_from_slice(b" hide=\"yes\"");
        }
        let size = n.range.end.saturating_sub(n.range.start);
        let _ = write!(out, " size=\"{size}\" pos=\"{}\"", n.range.start);
        if tag == "field" {
            out.extend_from_slice(b" show=\"");
            if !protocol {
                escape_of(|o| value::write(n, Style::Json, o), out);
            }
            out.push(b'"');
            raw(n, bytes, out);
        }
        if below.is_empty() && !(protocol && depth == 0) {
            out.extend_from_slice(b"/>\n");
        } else {
            out.extend_from_slice(b">\n");
            nodes(below, frame, indent + 1, out);
            spaces(indent, out);
            let _ = writeln!(out, "</{tag}>");
        }
        if wrapped {
            spaces(indent - 1, out);
            out.extend_from_slice(b"</proto>\n");
        }
    }
}

/// The bytes of a field, and its number where it takes a part of them.
fn raw(n: &Node<'_>, bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let number = match n.value {
        Value::Uint(v) => v,
        Value::Bool(v) => u64::from(v),
        _ => 0,
    };
    if has_mask(n) {
        let _ = write!(out, " value=\"{number:X}\" unmaskedvalue=\"");
    } else {
        out.extend_from_slice(b" value=\"");
    }
    value::bytes(bytes, b"", out);
    out.push(b'"');
}

/// Whether tshark declares the field as a part of its bytes. Some it cuts out by other means, and of some the picture
/// is too wide for a line of ours.
fn has_mask(n: &Node<'_>) -> bool {
    match n.field.name {
        "ip.version" | "ip.hdr_len" | "tcp.hdr_len" | "ipv6.version" => false,
        "eth.lg" | "eth.ig" | "eth.dst.lg" | "eth.dst.ig" | "eth.src.lg" | "eth.src.ig" | "ip.frag_offset" => true,
        _ => n.field.mask != 0,
    }
}

fn spaces(depth: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + 2 * depth, b' ');
}
