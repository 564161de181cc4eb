//! Why an ICRC is wrong: which common mistake of its maker gives the value that was found.

use std::fmt;

use super::icrc::{self, Verdict};
use super::{Encapsulation, Frame, NetKind};
use crate::wire::outer::{IPV4_LEN, IPV6_LEN, UDP_LEN};
use crate::wire::{Bth, Packet};

/// A mistake that explains a wrong ICRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mistake {
    /// The four bytes are zero: nobody filled them in.
    AllZero,
    /// A value that programmers write where something is still missing.
    Placeholder,
    /// The right value with its bytes in the other order.
    ByteOrder,
    /// Without the final inversion.
    NotInverted,
    /// Without the eight bytes of ones for the LRH.
    NoDummyLrh,
    /// The eight bytes for the LRH were zeros.
    ZeroDummyLrh,
    /// TOS or traffic class went in as it was sent.
    TosNotMasked,
    /// TTL or hop limit went in as it was sent.
    TtlNotMasked,
    /// IPv4 header checksum went in as it was sent.
    IpChecksumNotMasked,
    /// UDP checksum went in as it was sent.
    UdpChecksumNotMasked,
    /// FECN, BECN and the bits beside them went in as they were sent.
    Resv8aNotMasked,
    /// Flow label went in as it was sent.
    FlowLabelNotMasked,
    /// Nothing was masked.
    NothingMasked,
    /// Masked with zeros instead of ones.
    MaskedWithZeros,
    /// IPv4 identification was masked as well.
    IdentificationMasked,
    /// IPv4 identification was still zero.
    IdentificationZero,
    /// Pad bytes did not go in.
    PadLeftOut,
    /// IP and UDP length did not yet count the ICRC.
    LengthsWithoutIcrc,
    /// Only BTH and what follows it went in.
    TransportOnly,
    /// The transport headers went in twice: what the Linux kernel's soft-RoCE (rxe) does for FLUSH.
    HeadersTwice,
    /// The CRC of the Ethernet frame.
    EthernetFcs,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllZero => {
                "all zero: not filled in, by a sender that does not calculate it or a capture before it was written"
            }
            Self::Placeholder => "a placeholder: the sender does not calculate it",
            Self::ByteOrder => "right but for the byte order",
            Self::NotInverted => "the final inversion is missing",
            Self::NoDummyLrh => "the eight bytes of ones for the LRH are missing",
            Self::ZeroDummyLrh => "the eight bytes for the LRH were zeros, not ones",
            Self::TosNotMasked => "TOS or traffic class was not masked",
            Self::TtlNotMasked => "TTL or hop limit was not masked",
            Self::IpChecksumNotMasked => "the IPv4 header checksum was not masked",
            Self::UdpChecksumNotMasked => "the UDP checksum was not masked",
            Self::Resv8aNotMasked => "the byte with FECN and BECN was not masked",
            Self::FlowLabelNotMasked => "the flow label was not masked",
            Self::NothingMasked => "nothing was masked",
            Self::MaskedWithZeros => "masked with zeros instead of ones",
            Self::IdentificationMasked => "the IPv4 identification was masked, which it must not be",
            Self::IdentificationZero => "calculated while the IPv4 identification was still zero",
            Self::PadLeftOut => "the pad bytes were left out",
            Self::LengthsWithoutIcrc => "calculated with lengths that do not count the ICRC",
            Self::TransportOnly => "calculated over BTH and what follows only",
            Self::HeadersTwice => "the transport headers were counted twice (what Linux soft-RoCE does for FLUSH)",
            Self::EthernetFcs => "it is the CRC of the Ethernet frame",
        })
    }
}

/// Values that stand where nothing was calculated, in either byte order.
const PLACEHOLDERS: [u32; 8] =
    [0xffff_ffff, 0xdead_beef, 0xefbe_adde, 0xbaad_f00d, 0xcafe_babe, 0xdead_c0de, 0x1234_5678, 0x7856_3412];

/// What explains a bad ICRC; `None` if it is good, was not checked, or nothing known explains it (then bits
/// were changed on the way, or the capture's).
pub fn explain(frame: &Frame<'_>, packet: &Packet<'_>) -> Option<Mistake> {
    let Verdict::Bad { found, calculated } = icrc::verify(frame, packet) else { return None };
    if found == 0 {
        return Some(Mistake::AllZero);
    }
    if PLACEHOLDERS.contains(&found) {
        return Some(Mistake::Placeholder);
    }
    if found == calculated.swap_bytes() {
        return Some(Mistake::ByteOrder);
    }
    if found == !calculated || found == !calculated.swap_bytes() {
        return Some(Mistake::NotInverted);
    }
    let pseudo = icrc::pseudo_packet(frame, packet).ok()?;
    variants(frame, packet, &pseudo, |mistake, parts| {
        let mut crc = crc32fast::Hasher::new();
        for part in parts {
            crc.update(part);
        }
        // who got one thing wrong may have got the byte order wrong too, but one explanation must do
        (crc.finalize().swap_bytes() == found).then_some(mistake)
    })
}

/// A mistake, the offsets at which it puts something else, and what.
type Try<'t> = (Mistake, &'t [usize], &'t dyn Fn(usize) -> u8);

/// Tries every variant on `check` until it says yes. Offsets are those of the pseudo packet.
fn variants(
    frame: &Frame<'_>,
    packet: &Packet<'_>,
    pseudo: &[u8],
    mut check: impl FnMut(Mistake, &[&[u8]]) -> Option<Mistake>,
) -> Option<Mistake> {
    let (net, t) = (frame.net?, frame.transport?);
    let has_dummy = net.kind != NetKind::Lrh;
    let dummy = if has_dummy { 8 } else { 0 };
    // the network header as it was sent, at the same offsets as in the pseudo packet
    let (net_len, udp) = match net.kind {
        NetKind::Ipv4 { .. } => (IPV4_LEN, true),
        NetKind::Ipv6 { .. } => (IPV6_LEN, true),
        NetKind::Grh => (crate::wire::Grh::LEN, false),
        NetKind::Lrh => (crate::wire::Lrh::LEN, false),
    };
    let udp_at = dummy + net_len;
    let bth_at = udp_at + if udp { UDP_LEN } else { 0 };
    let sent_len = net_len + if udp { UDP_LEN } else { 0 };
    let sent_net = frame.bytes.get(net.start..net.start + sent_len)?;
    let sent_bth = packet.bth.0;
    if pseudo.len() < bth_at + Bth::LEN {
        return None;
    }
    let mut work = pseudo.to_vec();
    // puts the bytes that were sent back at these offsets, or other ones
    let original = |at: usize| -> u8 {
        if at < dummy {
            0xff
        } else if at < bth_at {
            sent_net.get(at - dummy).copied().unwrap_or(0)
        } else {
            sent_bth.get(at - bth_at).copied().unwrap_or(0)
        }
    };
    let mut with = |mistake: Mistake, at: &[usize], value: &dyn Fn(usize) -> u8| {
        for a in at {
            if let Some(b) = work.get_mut(*a) {
                *b = value(*a);
            }
        }
        let hit = check(mistake, &[&work]);
        for a in at {
            if let (Some(b), Some(p)) = (work.get_mut(*a), pseudo.get(*a)) {
                *b = *p;
            }
        }
        hit
    };
    let zero = |_| 0;
    let ones = |_| 0xff;
    let resv8a = bth_at + 4;
    let udp_checksum = [udp_at + 6, udp_at + 7];
    let all: Vec<usize> = (dummy..bth_at + Bth::LEN).collect();
    let masked: Vec<usize>;
    match net.kind {
        NetKind::Ipv4 { .. } => {
            masked = [dummy + 1, dummy + 8, dummy + 10, dummy + 11, udp_checksum[0], udp_checksum[1], resv8a].to_vec();
            let id = [dummy + 4, dummy + 5];
            let tries: [Try<'_>; 5] = [
                (Mistake::TosNotMasked, &[dummy + 1], &original),
                (Mistake::TtlNotMasked, &[dummy + 8], &original),
                (Mistake::IpChecksumNotMasked, &[dummy + 10, dummy + 11], &original),
                (Mistake::IdentificationMasked, &id, &ones),
                (Mistake::IdentificationZero, &id, &zero),
            ];
            for (mistake, at, value) in tries {
                if let Some(m) = with(mistake, at, value) {
                    return Some(m);
                }
            }
        }
        NetKind::Ipv6 { .. } | NetKind::Grh => {
            let mut m = vec![dummy, dummy + 1, dummy + 2, dummy + 3, dummy + 7, resv8a];
            if udp {
                m.extend(udp_checksum);
            }
            masked = m;
            let first = [dummy, dummy + 1];
            let (b0, b1) = (original(dummy), original(dummy + 1));
            // the traffic class lies across two bytes, the flow label takes the rest of the second
            let class = move |at| if at == dummy { b0 } else { b1 | 0x0f };
            let label = [dummy + 1, dummy + 2, dummy + 3];
            let label_value = move |at: usize| if at == dummy + 1 { original(at) | 0xf0 } else { original(at) };
            let tries: [Try<'_>; 3] = [
                (Mistake::TosNotMasked, &first, &class),
                (Mistake::FlowLabelNotMasked, &label, &label_value),
                (Mistake::TtlNotMasked, &[dummy + 7], &original),
            ];
            for (mistake, at, value) in tries {
                if let Some(m) = with(mistake, at, value) {
                    return Some(m);
                }
            }
        }
        NetKind::Lrh => masked = vec![resv8a],
    }
    if udp && let Some(m) = with(Mistake::UdpChecksumNotMasked, &udp_checksum, &original) {
        return Some(m);
    }
    if let Some(m) = with(Mistake::Resv8aNotMasked, &[resv8a], &original) {
        return Some(m);
    }
    if let Some(m) = with(Mistake::NothingMasked, &all, &original) {
        return Some(m);
    }
    let zero_mask = |at: usize| match net.kind {
        NetKind::Ipv6 { .. } | NetKind::Grh if at == dummy => 0x60,
        _ => 0,
    };
    if let Some(m) = with(Mistake::MaskedWithZeros, &masked, &zero_mask) {
        return Some(m);
    }
    if has_dummy {
        let dummy_at: Vec<usize> = (0..dummy).collect();
        if let Some(m) = with(Mistake::ZeroDummyLrh, &dummy_at, &zero) {
            return Some(m);
        }
    }
    if t.encapsulation == Encapsulation::RoceV2 {
        let shorter = |at: usize| -> Option<u8> {
            let word = |hi: usize| u16::from(original(hi)) << 8 | u16::from(original(hi + 1));
            let len_at = if matches!(net.kind, NetKind::Ipv4 { .. }) { dummy + 2 } else { dummy + 4 };
            let hi = if at == len_at || at == len_at + 1 { len_at } else { udp_at + 4 };
            let [a, b] = word(hi).checked_sub(4)?.to_be_bytes();
            Some(if at == hi { a } else { b })
        };
        let len_at = if matches!(net.kind, NetKind::Ipv4 { .. }) { dummy + 2 } else { dummy + 4 };
        let at = [len_at, len_at + 1, udp_at + 4, udp_at + 5];
        if at.iter().all(|a| shorter(*a).is_some())
            && let Some(m) = with(Mistake::LengthsWithoutIcrc, &at, &|a| shorter(a).unwrap_or(0))
        {
            return Some(m);
        }
    }
    if has_dummy && let Some(m) = check(Mistake::NoDummyLrh, &[&pseudo[dummy..]]) {
        return Some(m);
    }
    if packet.pad > 0
        && let Some(kept) = pseudo.len().checked_sub(packet.pad).and_then(|n| pseudo.get(..n))
        && let Some(m) = check(Mistake::PadLeftOut, &[kept])
    {
        return Some(m);
    }
    let rest = pseudo.get(bth_at + Bth::LEN..)?;
    if let Some(m) = check(Mistake::HeadersTwice, &[pseudo, sent_bth, rest]) {
        return Some(m);
    }
    if let Some(m) = check(Mistake::TransportOnly, &[&pseudo[bth_at..]]) {
        return Some(m);
    }
    if let Some(m) = check(Mistake::TransportOnly, &[sent_bth, rest]) {
        return Some(m);
    }
    let before = frame.bytes.get(frame.ethernet?..(t.start + t.declared).checked_sub(4)?)?;
    check(Mistake::EthernetFcs, &[before])
}
