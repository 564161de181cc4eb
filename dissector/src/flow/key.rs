//! What makes two packets the same directed flow: source, destination, destination QP; for datagrams the
//! source QP too. Never the UDP source port, which a sender may change at any time.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use crate::flow::row::Endpoint;
use crate::frame::{Encapsulation, Frame};

/// Network that the addresses belong to: equal bytes of two families are two addresses (RoCEv1 writes IPv4
/// addresses as mapped GIDs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Family {
    /// RoCEv2 over IPv4.
    V4 = 4,
    /// RoCEv2 over IPv6.
    V6 = 6,
    /// RoCEv1, addressed by GIDs.
    Gid = 1,
    /// Native InfiniBand with GRH.
    Native = 2,
    /// Native InfiniBand, local identifiers only.
    Lid = 3,
}

/// Source and destination, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Addresses {
    src: [u64; 2],
    dst: [u64; 2],
    family: Family,
}

fn words(e: Endpoint) -> [u64; 2] {
    match e {
        Endpoint::Ip(IpAddr::V4(a)) => [0, u64::from(u32::from(a))],
        Endpoint::Ip(IpAddr::V6(a)) => {
            let v = u128::from(a);
            // the two halves of 128 bits
            #[expect(clippy::cast_possible_truncation, reason = "the upper half is taken by the shift")]
            [(v >> 64) as u64, v as u64]
        }
        Endpoint::Lid(l) => [0, u64::from(l)],
    }
}

impl Addresses {
    /// Of a frame's innermost network header; `None` without one.
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        let (net, t) = (frame.net.as_ref()?, frame.transport.as_ref()?);
        let family = match (t.encapsulation, net.src) {
            (_, Endpoint::Lid(_)) => Family::Lid,
            (Encapsulation::RoceV2, Endpoint::Ip(IpAddr::V4(_))) => Family::V4,
            (Encapsulation::RoceV2, _) => Family::V6,
            (Encapsulation::RoceV1, _) => Family::Gid,
            (Encapsulation::Native, _) => Family::Native,
        };
        Some(Self { src: words(net.src), dst: words(net.dst), family })
    }

    /// The other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src, family: self.family }
    }

    /// The family.
    pub const fn family(self) -> Family {
        self.family
    }

    /// A number that both directions share, for grouping.
    pub fn unordered(self) -> ([u64; 2], [u64; 2], u8) {
        let (a, b) = if self.src <= self.dst { (self.src, self.dst) } else { (self.dst, self.src) };
        (a, b, self.family as u8)
    }

    /// The same shape, in the order of travel.
    pub const fn ordered(self) -> ([u64; 2], [u64; 2], u8) {
        (self.src, self.dst, self.family as u8)
    }

    /// Slot of a table of `2^bits` for these addresses and a PSN; callers check what they find there.
    #[inline]
    pub fn slot(self, psn: u32, bits: u32) -> usize {
        let [a, b] = self.src;
        let [c, d] = self.dst;
        let mixed = a ^ b.rotate_left(17) ^ c.rotate_left(31) ^ d.rotate_left(47) ^ u64::from(psn);
        let h = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(h >> (64 - bits)).unwrap_or(0)
    }
}

/// A directed flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Between whom.
    pub addresses: Addresses,
    /// Destination QP, 24 bits.
    pub dest_qp: u32,
    /// Source QP of datagrams; `None` where packets do not say it.
    pub src_qp: Option<u32>,
}

impl Key {
    /// Slot of a table of `2^bits`; callers check what they find there.
    #[inline]
    pub fn slot(&self, bits: u32) -> usize {
        self.addresses.slot(self.dest_qp ^ self.src_qp.unwrap_or(0).rotate_left(16), bits)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, h: &mut H) {
        let [a, b] = self.addresses.src;
        let [c, d] = self.addresses.dst;
        // IPv4 and LIDs leave the upper words zero
        if a | c != 0 {
            h.write_u64(a);
            h.write_u64(c);
        }
        h.write_u64(b ^ u64::from(self.src_qp.unwrap_or(u32::MAX)) << 32);
        h.write_u64(d ^ u64::from(self.dest_qp) << 32 ^ (self.addresses.family as u64) << 60);
    }
}
