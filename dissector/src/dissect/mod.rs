//! From a frame to named fields with byte ranges.
//!
//! [`dissect`] fills a [`Tree`] with what [`Frame`] and [`Packet`] know. It cannot fail: a cut packet gives the fields
//! that are there and a note that says where it ends. One builder a header, in the file of its protocol, next to
//! the declarations of its fields.

pub mod analysis;
pub mod beside;
pub mod cm;
pub mod columns;
pub mod ipv4;
pub mod ipv6;
pub mod link;
pub mod mad;
pub mod perf;
pub mod record;
pub mod registry;
pub mod sa;
pub mod smp;
pub mod summary;
pub mod table;
pub mod transport;
pub mod tree;
pub mod tunnel;
pub mod udp;
pub mod ulp;

pub use registry::{Base, Field, Type, Wanted};
pub use tree::{Node, Tree, Value};

use crate::capture::{Interface, PacketOptions, Timestamp};
use crate::flow::PacketInfo;
use crate::frame::icrc::Verdict;
use crate::frame::{Frame, Layer, LayerKind, Note};
use crate::wire::{Packet, Stop};

/// What is known about a record besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordInfo<'i> {
    /// Number in the file, from 1.
    pub number: u64,
    /// When it was captured.
    pub at: Timestamp,
    /// Interface of a pcapng file.
    pub interface: Option<u32>,
    /// What a pcapng file says about that interface.
    pub on: Option<&'i Interface>,
    /// What else a pcapng file says about the packet.
    pub options: PacketOptions<'i>,
    /// The UDP conversations of its UDP headers, outermost first, if anybody asks for them.
    pub streams: &'i [udp::Stream],
    /// Time of the first record of the file.
    pub first: Timestamp,
    /// Time of the record before.
    pub previous: Timestamp,
    /// Time of the last record that was shown, if one was.
    pub shown: Option<Timestamp>,
    /// The time column, if anybody asks for it.
    pub time: &'i str,
    /// Decimals of a second that its times are worth: 6 or 9.
    pub decimals: u8,
}

/// A packet and all that is known about it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'i, 'a> {
    /// From the capture file.
    pub record: RecordInfo<'i>,
    /// The frame.
    pub frame: &'i Frame<'a>,
    /// Its transport packet; `None` if it has none, `Err` if not even BTH is complete.
    pub packet: Option<&'i Result<Packet<'a>, Stop>>,
    /// What the ICRC check said.
    pub icrc: Option<Verdict>,
    /// What earlier packets say about this one (see [`ulp::Conversations`]).
    pub context: Option<&'i ulp::Context>,
    /// What the analysis of its flow says.
    pub analysis: Option<&'i PacketInfo>,
}

impl<'i, 'a> Input<'i, 'a> {
    /// The transport packet if at least BTH is there.
    pub fn roce(&self) -> Option<&'i Packet<'a>> {
        self.packet.and_then(|p| p.as_ref().ok())
    }
}

/// Fills a tree with the fields of a packet.
pub fn dissect<'a>(input: &Input<'_, 'a>, tree: &mut Tree<'a>) {
    if tree.wants_group(columns::GROUP) {
        columns::build(input, tree);
    }
    if tree.wants_group(record::GROUP) {
        record::build(input, tree);
    }
    for layer in input.frame.layers.as_slice() {
        let start = layer.start as usize;
        let bytes = input.frame.slice(start..start.saturating_add(usize::from(layer.len)));
        header(input, layer, bytes, tree);
    }
    // the header in which the capture ends, as far as it goes
    for note in &input.frame.notes {
        if let Note::Truncated { layer: kind, available, .. } = *note
            && !matches!(kind, LayerKind::Ipv6Extension | LayerKind::Sll | LayerKind::Sll2)
        {
            let end = input.frame.bytes.len();
            let start = end.saturating_sub(available);
            // frames are bounded by the capture formats' 32-bit lengths
            let layer = Layer {
                kind,
                start: u32::try_from(start).unwrap_or(u32::MAX),
                len: u16::try_from(available).unwrap_or(u16::MAX),
            };
            tree.cut_at(Some(end));
            header(input, &layer, input.frame.slice(start..end), tree);
            tree.cut_at(None);
        }
    }
    if tree.wants_group(beside::GROUP) && input.frame.transport.is_none() {
        beside::build(input, tree);
    }
    // the transport's builders also make remarks
    let above = ulp::GROUPS.iter().any(|g| tree.wants_group(*g));
    if tree.wants_group(transport::GROUP)
        || above
        || tree.wants_any(&[&analysis::NOTE, &analysis::EXPERT, &analysis::EXPERT_MESSAGE])
    {
        transport::build(input, tree);
    }
    if tree.wants_group(analysis::GROUP) || tree.wants_group(ulp::GROUP) {
        analysis::build(input, tree);
    }
}

/// Adds one header of those in front of the transport.
fn header<'a>(input: &Input<'_, 'a>, layer: &Layer, bytes: &'a [u8], tree: &mut Tree<'a>) {
    let start = layer.start as usize;
    match layer.kind {
        LayerKind::Ethernet | LayerKind::Vlan | LayerKind::Sll | LayerKind::Sll2 | LayerKind::Null => {
            if tree.wants_group(link::GROUP) {
                link::build(input.frame, layer, bytes, tree);
            }
        }
        LayerKind::Ipv4 => {
            if tree.wants_group(ipv4::GROUP) {
                ipv4::build(start, bytes, input.frame.wire_len, tree);
            }
        }
        LayerKind::Ipv6 | LayerKind::Ipv6Extension => {
            if tree.wants_group(ipv6::GROUP) || tree.wants(&ipv4::VERSION) {
                ipv6::build(input.frame, layer, start, bytes, tree);
            }
        }
        LayerKind::Udp => {
            if tree.wants_group(udp::GROUP) {
                udp::build(input, start, bytes, tree);
            }
        }
        LayerKind::Macsec => {
            if tree.wants_group(beside::GROUP) {
                tree.open_header(&beside::MACSEC, start..start + bytes.len());
                tree.close();
            }
        }
        // part of the transport
        LayerKind::Grh | LayerKind::Lrh | LayerKind::None => {}
        _ => {
            if tree.wants_group(tunnel::GROUP) {
                tunnel::build(layer.kind, start, bytes, tree);
            }
        }
    }
}
