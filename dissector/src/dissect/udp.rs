//! UDP.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Input, Tree, Value};
use crate::capture::Timestamp;
use crate::frame::{Frame, LayerKind};
use crate::wire::bytes::{be16, padded, part};
use crate::wire::outer::UDP_LEN;

/// Group of these fields.
pub const GROUP: u16 = 4;

fn status_name(v: u64) -> Option<Cow<'static, str>> {
    match v {
        2 => Some("Unverified".into()),
        3 => Some("Not present".into()),
        4 => Some("Illegal".into()),
        _ => None,
    }
}

crate::fields! {
    group 4;
    UDP "udp" "User Datagram Protocol" None Dec {} "UDP header.";
    SRCPORT "udp.srcport" "Source Port" U16 Dec {} "Source port: path entropy of RoCEv2, one value a connection.";
    DSTPORT "udp.dstport" "Destination Port" U16 Dec {} "Destination port: 4791 is RoCEv2.";
    PORT "udp.port" "Source or Destination Port" U16 Dec { hidden: true } "Source or destination port.";
    LENGTH "udp.length" "Length" U16 Dec {} "Bytes of header and data.";
    CHECKSUM "udp.checksum" "Checksum" U16 Hex {} "Checksum; RoCEv2 senders leave it 0.";
    CHECKSUM_STATUS "udp.checksum.status" "Checksum Status" U8 Dec { names: Some(status_name) } "3 if there is none (4 over IPv6, which forbids that), else 2: not verified.";
    STREAM "udp.stream" "Stream index" U32 Dec {} "Number of the conversation, by both addresses and ports. The two directions of RoCEv2 are two, since each has a source port of its own: see roce.flow.";
    TIME_RELATIVE "udp.time_relative" "Time since first frame" Duration Dec {} "Seconds since the first packet of the conversation.";
    TIME_DELTA "udp.time_delta" "Time since previous frame" Duration Dec {} "Seconds since the packet of the conversation before.";
    PAYLOAD "udp.payload" "Payload" Bytes Dec {} "Data of the datagram.";
}

/// Place of a packet in its UDP conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Number, from 0; `None` if there were too many.
    pub number: Option<u32>,
    /// Nanoseconds since the first packet of the conversation.
    pub since_first: i64,
    /// Nanoseconds since the one before.
    pub since_previous: i64,
}

/// Conversations that are told apart; later ones have no number.
const MAX_STREAMS: usize = 1 << 17;

/// An address in 16 bytes, whether it is IPv4's, and a port.
type End = ([u8; 16], bool, u16);

/// UDP conversations seen so far, in the order of their first packets.
#[derive(Debug, Default)]
pub struct Streams {
    seen: HashMap<(End, End), (u32, Timestamp, Timestamp), foldhash::quality::RandomState>,
}

impl Streams {
    /// Takes a packet; its UDP headers' places are appended to `out`, outermost first.
    pub fn push(&mut self, at: Timestamp, frame: &Frame<'_>, out: &mut Vec<Stream>) {
        let mut ends: ([u8; 16], [u8; 16], bool) = ([0; 16], [0; 16], false);
        for layer in frame.layers.as_slice() {
            let o = layer.start as usize;
            let bytes = frame.slice(o..o + usize::from(layer.len));
            match layer.kind {
                LayerKind::Ipv4 => {
                    let Some(h) = bytes.first_chunk::<20>() else { continue };
                    let wide = |a: &[u8; 4]| {
                        let mut w = [0; 16];
                        w.iter_mut().zip(a).for_each(|(w, b)| *w = *b);
                        w
                    };
                    ends = (wide(part::<12, 4, 20>(h)), wide(part::<16, 4, 20>(h)), true);
                }
                LayerKind::Ipv6 => {
                    let Some(h) = bytes.first_chunk::<40>() else { continue };
                    ends = (*part::<8, 16, 40>(h), *part::<24, 16, 40>(h), false);
                }
                LayerKind::Udp => {
                    let Some(h) = bytes.first_chunk::<UDP_LEN>() else { continue };
                    let a = (ends.0, ends.2, be16::<0, 8>(h));
                    let b = (ends.1, ends.2, be16::<2, 8>(h));
                    out.push(self.place((a.min(b), a.max(b)), at));
                }
                _ => {}
            }
        }
    }

    fn place(&mut self, key: (End, End), at: Timestamp) -> Stream {
        let next = self.seen.len();
        if next >= MAX_STREAMS && !self.seen.contains_key(&key) {
            return Stream::default();
        }
        let (number, first, previous) =
            self.seen.entry(key).or_insert_with(|| (u32::try_from(next).unwrap_or(u32::MAX), at, at));
        let stream =
            Stream { number: Some(*number), since_first: at.since(*first), since_previous: at.since(*previous) };
        *previous = at;
        stream
    }
}

/// Adds the fields of a header that starts at `o`.
pub fn build<'a>(input: &Input<'_, 'a>, o: usize, bytes: &'a [u8], tree: &mut Tree<'a>) {
    let frame = input.frame;
    let h = &padded::<UDP_LEN>(bytes);
    let (src, dst, len, sum) = (be16::<0, 8>(h), be16::<2, 8>(h), be16::<4, 8>(h), be16::<6, 8>(h));
    tree.open_header(&UDP, o..o + UDP_LEN);
    tree.label(&UDP, || format!("User Datagram Protocol, Src Port: {src}, Dst Port: {dst}"));
    tree.add(&SRCPORT, o..o + 2, src);
    tree.add(&DSTPORT, o + 2..o + 4, dst);
    tree.add(&PORT, o..o + 2, src);
    tree.add(&PORT, o + 2..o + 4, dst);
    tree.add(&LENGTH, o + 4..o + 6, len);
    tree.open(&CHECKSUM, o + 6..o + 8, sum);
    // the network header of this very UDP header: a tunnel has several
    let networks = frame.layers.as_slice().iter().filter(|l| (l.start as usize) < o);
    let network = networks.rev().find(|l| matches!(l.kind, LayerKind::Ipv4 | LayerKind::Ipv6));
    let six = network.is_some_and(|l| l.kind == LayerKind::Ipv6);
    tree.derive(
        &CHECKSUM_STATUS,
        match (sum, six) {
            (0, true) => 4u8,
            (0, false) => 3,
            _ => 2,
        },
    );
    tree.close();
    let before = |l: &&crate::frame::Layer| l.kind == LayerKind::Udp && (l.start as usize) < o;
    if let Some(s) = input.record.streams.get(frame.layers.as_slice().iter().filter(before).count())
        && let Some(number) = s.number
    {
        tree.derive(&STREAM, number);
        tree.derive(&TIME_RELATIVE, Value::Duration(s.since_first));
        tree.derive(&TIME_DELTA, Value::Duration(s.since_previous));
    }
    if tree.wants(&PAYLOAD) {
        let start = o + UDP_LEN;
        let end = (o + usize::from(len)).max(start);
        let data = frame.slice(start..end);
        if !data.is_empty() {
            tree.add(&PAYLOAD, start..start + data.len(), data);
            tree.label(&PAYLOAD, || format!("UDP payload ({} bytes)", data.len()));
        }
    }
    tree.close();
}
