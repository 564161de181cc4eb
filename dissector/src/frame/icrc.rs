//! The ICRC of a frame: computed, compared, or the reason why not.

use super::{Encapsulation, Frame, NetKind};
use crate::wire::outer::{IPV4_LEN, IPV6_LEN, UDP_LEN};
use crate::wire::{Bth, Grh, Header, Lrh, Packet, icrc};

/// Bytes of the VCRC that ends a native packet.
pub const VCRC_LEN: usize = 2;

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
    let body = body(frame)?;
    let mut crc = crc32fast::Hasher::new();
    with_head(frame, packet, |head| crc.update(head))?;
    crc.update(body);
    Ok(crc.finalize())
}

/// The exact bytes that go through the CRC: eight of ones (or the LRH), network headers, UDP and BTH with
/// what may change on the way set to ones, then the rest of the packet as it was sent. For whoever builds
/// an ICRC of their own.
pub fn pseudo_packet(frame: &Frame<'_>, packet: &Packet<'_>) -> Result<Vec<u8>, Why> {
    let body = body(frame)?;
    let mut out = Vec::with_capacity(icrc::IPV6_HEAD_LEN + body.len());
    with_head(frame, packet, |head| out.extend_from_slice(head))?;
    out.extend_from_slice(body);
    Ok(out)
}

/// What follows BTH, without the ICRC.
fn body<'a>(frame: &Frame<'a>) -> Result<&'a [u8], Why> {
    let (Some(t), Some(net)) = (frame.transport, frame.net) else { return Err(Why::Absent) };
    if net.fragment.is_some() {
        return Err(Why::Fragment);
    }
    let end = t.start.saturating_add(t.declared);
    if end > frame.bytes.len() {
        return Err(Why::Truncated);
    }
    let body_end = end.checked_sub(Header::Icrc.len()).ok_or(Why::Absent)?;
    frame.bytes.get(t.start + Bth::LEN..body_end).ok_or(Why::Absent)
}

/// Hands the masked head to `f`.
fn with_head(frame: &Frame<'_>, packet: &Packet<'_>, f: impl FnOnce(&[u8])) -> Result<(), Why> {
    let (Some(t), Some(net)) = (frame.transport, frame.net) else { return Err(Why::Absent) };
    let bth = packet.bth.0;
    match (net.kind, t.encapsulation) {
        (NetKind::Ipv4 { options: true }, _) => return Err(Why::Ipv4Options),
        (NetKind::Ipv6 { extensions: true }, _) => return Err(Why::Ipv6Extensions),
        (NetKind::Ipv4 { .. }, _) => {
            let (ip, udp) = both::<IPV4_LEN>(frame.bytes, net.start).ok_or(Why::Absent)?;
            f(&icrc::ipv4_head(ip, udp, bth));
        }
        (NetKind::Ipv6 { .. }, _) => {
            let (ip, udp) = both::<IPV6_LEN>(frame.bytes, net.start).ok_or(Why::Absent)?;
            f(&icrc::ipv6_head(ip, udp, bth));
        }
        (NetKind::Grh, Encapsulation::RoceV1 | Encapsulation::Native | Encapsulation::RoceV2) => {
            let grh = frame.bytes.get(net.start..).and_then(|b| b.first_chunk::<{ Grh::LEN }>()).ok_or(Why::Absent)?;
            f(&icrc::grh_head(grh, bth));
        }
        (NetKind::Lrh, _) => {
            let lrh = frame.bytes.get(net.start..).and_then(|b| b.first_chunk::<{ Lrh::LEN }>()).ok_or(Why::Absent)?;
            f(&icrc::lrh_head(lrh, bth));
        }
    }
    Ok(())
}

/// The VCRC of a native InfiniBand packet: as it is on the wire and as it should be, both read with the
/// first byte as the high one (`infiniband.variant.crc`). `None` for other packets and where it was cut.
///
/// CRC-16 with the polynomial 0x100b, reflected, from ones, inverted, low byte first, over LRH through ICRC
/// (IBTA 7.8.2).
pub fn vcrc(frame: &Frame<'_>) -> Option<(u16, u16)> {
    let t = frame.transport.filter(|t| t.encapsulation == Encapsulation::Native)?;
    let lrh = frame.layers.as_slice().iter().find(|l| l.kind == super::LayerKind::Lrh)?.start as usize;
    let end = t.start.checked_add(t.declared)?;
    if frame.wire_len < end.checked_add(VCRC_LEN)? {
        return None;
    }
    let found = u16::from_be_bytes(*frame.bytes.get(end..)?.first_chunk()?);
    let crc = frame.bytes.get(lrh..end)?.iter().fold(0xffff_u16, |crc, b| {
        (0..8).fold(crc ^ u16::from(*b), |c, _| if c & 1 == 1 { c >> 1 ^ VCRC_POLYNOMIAL } else { c >> 1 })
    });
    Some((found, (!crc).swap_bytes()))
}

/// 0x100b with its bits in the other order.
const VCRC_POLYNOMIAL: u16 = 0x100b_u16.reverse_bits();

fn both<const N: usize>(bytes: &[u8], start: usize) -> Option<(&[u8; N], &[u8; UDP_LEN])> {
    let (ip, rest) = bytes.get(start..)?.split_first_chunk::<N>()?;
    Some((ip, rest.first_chunk()?))
}
