//! Captured traffic, played again: other addresses, other QPs, PSNs that go on from loop to loop, and an
//! ICRC that is right for all of it (or as wrong as it was).

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use dissector::capture::Reader;
use dissector::flow::row::Endpoint;
use dissector::frame::icrc::{self, Verdict};
use dissector::frame::{Frame, LinkType, NetKind};
use dissector::wire::opcode::Header;
use dissector::wire::{Bth, Psn, ROCE_UDP_PORT, Role};

/// One frame of a recording.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Nanoseconds since the first frame of the recording.
    pub after_ns: u64,
    /// Sent by the side whose address comes first in the recording (the client).
    pub from_client: bool,
    /// The frame.
    pub bytes: Vec<u8>,
    /// Whether its ICRC was wrong in the recording.
    pub bad_icrc: bool,
}

/// The RoCE frames of a recording between two hosts.
#[derive(Clone, Debug)]
pub struct Recording {
    /// In the order of the file.
    pub frames: Vec<Timed>,
    /// PSNs that the client's and the server's requests span, answers included.
    spans: [u32; 2],
    /// Messages that either side completes.
    messages: [u32; 2],
}

/// How a copy differs from the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Added to the last byte of both addresses (or the last two of IPv6).
    pub host: u8,
    /// Added to QP numbers above 1.
    pub qp: u32,
    /// How many times the recording has been played before: PSN and MSN go on from there.
    pub round: u32,
    /// Both MACs are replaced by these (source, destination) for frames of the client; the server's the
    /// other way round.
    pub macs: Option<([u8; 6], [u8; 6])>,
}

impl Recording {
    /// Reads a file; what is not RoCE is left out.
    pub fn open(path: &Path) -> Result<Self> {
        let mut reader = Reader::open(path).with_context(|| format!("{}", path.display()))?;
        let mut frames: Vec<Timed> = Vec::new();
        let mut client: Option<Endpoint> = None;
        let mut first = None;
        // lowest and highest PSN of each requester's space, counted from the first one seen
        let mut space: [Option<(Psn, i32, i32)>; 2] = [None; 2];
        let mut msn: BTreeMap<bool, (u32, u32)> = BTreeMap::new();
        while let Some(record) = reader.next()? {
            let frame = Frame::parse(record.bytes, record.wire_len as usize, LinkType(record.link), ROCE_UDP_PORT);
            let (Some(Ok(packet)), Some(net)) = (frame.packet(), frame.net) else { continue };
            let from_client = *client.get_or_insert(net.src) == net.src;
            let start = *first.get_or_insert(record.at);
            let requester_is_client = match packet.op.map(|o| o.role()) {
                Some(Role::Response) => !from_client,
                _ => from_client,
            };
            if packet.bth.dest_qp().get() > 1 {
                let psn = packet.bth.psn();
                let (zero, low, high) = space[usize::from(!requester_is_client)].get_or_insert((psn, 0, 0));
                let d = psn.distance(*zero);
                *low = (*low).min(d);
                *high = (*high).max(d);
            }
            if let Some(aeth) = packet.ext.aeth {
                let m = msn.entry(from_client).or_insert((aeth.msn(), aeth.msn()));
                *m = (m.0.min(aeth.msn()), m.1.max(aeth.msn()));
            }
            frames.push(Timed {
                after_ns: u64::try_from(record.at.since(start)).unwrap_or(0),
                from_client,
                bytes: record.bytes.to_vec(),
                bad_icrc: matches!(icrc::verify(&frame, &packet), Verdict::Bad { .. }),
            });
        }
        let span = |i: usize| space[i].map_or(0, |(_, low, high)| u32::try_from(high - low + 1).unwrap_or(0));
        let completed = |side: bool| msn.get(&side).map_or(0, |(low, high)| high - low + 1);
        Ok(Self { frames, spans: [span(0), span(1)], messages: [completed(true), completed(false)] })
    }

    /// How long the recording is.
    pub fn duration_ns(&self) -> u64 {
        self.frames.iter().map(|f| f.after_ns).max().unwrap_or(0)
    }

    /// A frame with other addresses, QPs and PSN, and the ICRC that goes with them.
    pub fn changed(&self, frame: &Timed, change: Change) -> Vec<u8> {
        let mut b = frame.bytes.clone();
        let f = Frame::parse(&frame.bytes, frame.bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
        let (Some(t), Some(net), Some(Ok(packet))) = (f.transport, f.net, f.packet()) else { return b };
        if let Some((client, server)) = change.macs {
            let (src, dst) = if frame.from_client { (client, server) } else { (server, client) };
            // multicast stays multicast
            if b[0] & 1 == 0 {
                b[..6].copy_from_slice(&dst);
            }
            b[6..12].copy_from_slice(&src);
        }
        let (src, dst, len) = match net.kind {
            NetKind::Ipv4 { .. } => (net.start + 12, net.start + 16, 4),
            _ => (net.start + 8, net.start + 24, 16),
        };
        for at in [src, dst] {
            let last = at + len - 1;
            b[last] = b[last].wrapping_add(change.host);
        }
        let bth = t.start;
        let qp = packet.bth.dest_qp();
        if qp.get() > 1 && qp.get() != 0xff_ffff {
            let q = (qp.get() + change.qp).to_be_bytes();
            b[bth + 5..bth + 8].copy_from_slice(&q[1..]);
        }
        let requester_is_client = match packet.op.map(|o| o.role()) {
            Some(Role::Response) => !frame.from_client,
            _ => frame.from_client,
        };
        if qp.get() > 1 {
            let shift = self.spans[usize::from(!requester_is_client)].wrapping_mul(change.round);
            let psn = Psn::new(packet.bth.psn().get().wrapping_add(shift)).get().to_be_bytes();
            b[bth + 9..bth + 12].copy_from_slice(&psn[1..]);
        }
        if let Some(op) = packet.op {
            if let (Some(at), Some(deth)) = (op.offset_of(Header::Deth), packet.ext.deth)
                && deth.src_qp().get() > 1
            {
                let q = (deth.src_qp().get() + change.qp).to_be_bytes();
                let at = bth + Bth::LEN + at + 5;
                b[at..at + 3].copy_from_slice(&q[1..]);
            }
            if let (Some(at), Some(aeth)) = (op.offset_of(Header::Aeth), packet.ext.aeth) {
                let shift = self.messages[usize::from(!frame.from_client)].wrapping_mul(change.round);
                let m = aeth.msn().wrapping_add(shift).to_be_bytes();
                let at = bth + Bth::LEN + at + 1;
                b[at..at + 3].copy_from_slice(&m[1..]);
            }
        }
        if let NetKind::Ipv4 { .. } = net.kind {
            let header = net.start..net.start + usize::from(b[net.start] & 15) * 4;
            let field = net.start + 10..net.start + 12;
            // one that a faulty wire got wrong stays wrong
            if frame.bytes[field.clone()] == ipv4_checksum(&frame.bytes[header.clone()]).to_be_bytes() {
                let sum = ipv4_checksum(&b[header]);
                b[field].copy_from_slice(&sum.to_be_bytes());
            }
        }
        seal(&mut b, frame.bad_icrc);
        b
    }
}

/// The IPv4 header checksum (RFC 1071) with the checksum field taken as zero.
pub fn ipv4_checksum(header: &[u8]) -> u16 {
    let mut sum = 0u32;
    for (i, pair) in header.chunks(2).enumerate() {
        if i != 5 {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// Writes the ICRC of an Ethernet frame with RoCE, right or one bit wrong.
pub fn seal(frame: &mut [u8], wrong: bool) {
    let copy = frame.to_vec();
    let f = Frame::parse(&copy, copy.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
    let (Some(t), Some(Ok(packet))) = (f.transport, f.packet()) else { return };
    let Ok(crc) = icrc::calculate(&f, &packet) else { return };
    let end = t.start + t.declared;
    let mut wire = crc.to_le_bytes();
    wire[0] ^= u8::from(wrong);
    frame[end - 4..end].copy_from_slice(&wire);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changed_is_the_recording_itself() {
        for path in crate::all_captures() {
            let recording = Recording::open(&path).unwrap();
            for (i, frame) in recording.frames.iter().enumerate().filter(|(_, f)| !f.bad_icrc) {
                assert_eq!(recording.changed(frame, Change::default()), frame.bytes, "{} frame {i}", path.display());
            }
        }
    }

    #[test]
    fn a_copy_has_a_right_icrc_and_goes_on_where_the_last_round_ended() {
        let recording = Recording::open(&crate::captures().join("rc_write_bw.pcap")).unwrap();
        let psn = |change| {
            let bytes = recording.changed(&recording.frames[0], change);
            let f = Frame::parse(&bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
            let p = f.packet().unwrap().unwrap();
            assert_eq!(icrc::verify(&f, &p), Verdict::Good);
            (p.bth.psn(), p.bth.dest_qp().get())
        };
        let (first, qp) = psn(Change::default());
        let (second, other) = psn(Change { round: 1, qp: 0x100, host: 3, ..Change::default() });
        // 5 WRITEs of 8 packets each (INDEX.md)
        assert_eq!(second.distance(first), 40);
        assert_eq!(other, qp + 0x100);
    }
}
