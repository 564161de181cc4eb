//! The ICRC of a frame: computed, compared, or the reason why not.

use super::{Encapsulation, Frame, NetKind};
use crate::wire::outer::{IPV4_LEN, IPV6_LEN, UDP_LEN};
use crate::wire::{Bth, Grh, Header, Lrh, Packet, icrc};

/// Verdict about a packet's ICRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Right.
    Good,
    /// Wrong: what the packet says and what was computed, both as `infiniband.invariant.crc` is read
    /// (the four wire bytes, big-endian).
    Bad {
        /// On the wire.
        found: u32,
        /// By the rule.
        calculated: u32,
    },
    /// Not checked.
    Unchecked(Why),
}

/// Why an ICRC was not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The capture cut the packet.
    Truncated,
    /// A fragment of an IP datagram.
    Fragment,
    /// The IPv4 header has options: no implementation's behaviour is known.
    Ipv4Options,
    /// IPv6 extension headers: likewise.
    Ipv6Extensions,
    /// The packet has no room for one.
    Absent,
    /// Checking was off.
    Off,
}

impl Why {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Fragment => "fragment",
            Self::Ipv4Options => "IP options",
            Self::Ipv6Extensions => "IPv6 extension headers",
            Self::Absent => "no ICRC in the packet",
            Self::Off => "not asked for",
        }
    }
}

/// Checks the ICRC of a frame and its packet.
pub fn verify(frame: &Frame<'_>, packet: &Packet<'_>) -> Verdict {
    match calculate(frame, packet) {
        Err(why) => Verdict::Unchecked(why),
        Ok(crc) => {
            // least significant byte first on the wire
            let calculated = crc.swap_bytes();
            match packet.icrc.map(|b| u32::from_be_bytes(*b)) {
                None => Verdict::Unchecked(Why::Absent),
                Some(found) if found == calculated => Verdict::Good,
                Some(found) => Verdict::Bad { found, calculated },
            }
        }
    }
}

/// The CRC value (its least significant byte goes first on the wire).
pub fn calculate(frame: &Frame<'_>, packet: &Packet<'_>) -> Result<u32, Why> {
    let (Some(t), Some(net)) = (frame.transport, frame.net) else { return Err(Why::Absent) };
    if net.fragment.is_some() {
        return Err(Why::Fragment);
    }
    let end = t.start.saturating_add(t.declared);
    if end > frame.bytes.len() {
        return Err(Why::Truncated);
    }
    let body_end = end.checked_sub(Header::Icrc.len()).ok_or(Why::Absent)?;
    let body = frame.bytes.get(t.start + Bth::LEN..body_end).ok_or(Why::Absent)?;
    let bth = packet.bth.0;
    let mut crc = crc32fast::Hasher::new();
    match (net.kind, t.encapsulation) {
        (NetKind::Ipv4 { options: true }, _) => return Err(Why::Ipv4Options),
        (NetKind::Ipv6 { extensions: true }, _) => return Err(Why::Ipv6Extensions),
        (NetKind::Ipv4 { .. }, _) => {
            let (ip, udp) = both::<IPV4_LEN>(frame.bytes, net.start).ok_or(Why::Absent)?;
            crc.update(&icrc::ipv4_head(ip, udp, bth));
        }
        (NetKind::Ipv6 { .. }, _) => {
            let (ip, udp) = both::<IPV6_LEN>(frame.bytes, net.start).ok_or(Why::Absent)?;
            crc.update(&icrc::ipv6_head(ip, udp, bth));
        }
        (NetKind::Grh, Encapsulation::RoceV1 | Encapsulation::Native | Encapsulation::RoceV2) => {
            let grh = frame.bytes.get(net.start..).and_then(|b| b.first_chunk::<{ Grh::LEN }>()).ok_or(Why::Absent)?;
            crc.update(&icrc::grh_head(grh, bth));
        }
        (NetKind::Lrh, _) => {
            let lrh = frame.bytes.get(net.start..).and_then(|b| b.first_chunk::<{ Lrh::LEN }>()).ok_or(Why::Absent)?;
            crc.update(&icrc::lrh_head(lrh, bth));
        }
    }
    crc.update(body);
    Ok(crc.finalize())
}

fn both<const N: usize>(bytes: &[u8], start: usize) -> Option<(&[u8; N], &[u8; UDP_LEN])> {
    let (ip, rest) = bytes.get(start..)?.split_first_chunk::<N>()?;
    Some((ip, rest.first_chunk()?))
}
