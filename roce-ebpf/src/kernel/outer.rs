//! From the link header to where BTH starts: the same walk as `dissector::frame::fast`, over the same constants.

use dissector::wire::bytes::{be16, u8_at};
use dissector::wire::outer::{
    self, ETH_LEN, ETHERTYPE_IPV4, ETHERTYPE_IPV6, IPPROTO_DSTOPTS, IPPROTO_FRAGMENT, IPPROTO_HOPOPTS, IPPROTO_ROUTING,
    IPPROTO_UDP, IPV4_FRAGMENT_MASK, IPV4_LEN, IPV6_LEN, MAX_IPV6_EXTENSIONS, MAX_VLAN_TAGS, UDP_LEN, VLAN_LEN,
};
use dissector::wire::{Bth, ETHERTYPE_ROCE_V1, Grh};
use roce_ebpf::abi::counters::NO_VLAN;

use super::ctx::Ctx;

/// What a frame is.
pub enum Outer {
    /// RoCE, by its outer headers.
    Roce(At),
    /// Fragment of a UDP datagram: without the others it cannot be told what it carries.
    Fragment,
    /// The linear piece ends before that can be told.
    Short,
    /// Anything else.
    Other,
}

/// IPv6 fragment header, bytes (RFC 8200, 4.5).
const IPV6_FRAGMENT_LEN: usize = 8;
/// Its offset and its more-fragments bit; without both the packet is whole.
const IPV6_FRAGMENT_MASK: u16 = 0xfff9;

/// Where things are in a RoCE frame, and what its outer headers say.
pub struct At {
    /// First byte of the IP header or GRH.
    pub net: usize,
    /// First byte of BTH.
    pub bth: usize,
    /// Bytes from BTH through ICRC by the enclosing length field.
    pub declared: u32,
    /// Network header.
    pub kind: Net,
    /// UDP source port; 0 for RoCEv1.
    pub src_port: u16,
    /// TOS or traffic class.
    pub tos: u8,
    /// VLAN id of the innermost tag, or [`NO_VLAN`].
    pub vlan: u16,
}

/// Network header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Net {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// GRH of RoCEv1.
    Grh,
}

/// Walks the outer headers.
#[inline(always)]
pub fn walk<C: Ctx>(ctx: &C, port: u16) -> Outer {
    let Some(eth) = ctx.at::<ETH_LEN>(0) else { return Outer::Short };
    let mut ethertype = be16::<12, 14>(eth);
    let mut o = ETH_LEN;
    let mut vlan = ctx.lifted_vlan();
    let mut tags = 0;
    while tags < MAX_VLAN_TAGS && outer::is_vlan(ethertype) {
        let Some(tag) = ctx.at::<VLAN_LEN>(o) else { return Outer::Short };
        vlan = be16::<0, 4>(tag);
        ethertype = be16::<2, 4>(tag);
        o += VLAN_LEN;
        tags += 1;
    }
    if vlan != NO_VLAN {
        vlan &= 0x0fff;
    }
    match ethertype {
        ETHERTYPE_IPV4 => v4(ctx, o, vlan, port),
        ETHERTYPE_IPV6 => v6(ctx, o, vlan, port),
        ETHERTYPE_ROCE_V1 => v1(ctx, o, vlan),
        _ => Outer::Other,
    }
}

#[inline(always)]
fn v4<C: Ctx>(ctx: &C, net: usize, vlan: u16, port: u16) -> Outer {
    let Some(ip) = ctx.at::<IPV4_LEN>(net) else { return Outer::Short };
    if u8_at::<9, 20>(ip) != IPPROTO_UDP {
        return Outer::Other;
    }
    let first = u8_at::<0, 20>(ip);
    let header = ((first & 15) as usize) * 4;
    if first >> 4 != 4 || header < IPV4_LEN {
        return Outer::Other;
    }
    if be16::<6, 20>(ip) & IPV4_FRAGMENT_MASK != 0 {
        // its header must be there for that to be said
        return if ctx.at::<1>(net + header - 1).is_some() { Outer::Fragment } else { Outer::Short };
    }
    let tos = u8_at::<1, 20>(ip);
    let end = net + be16::<2, 20>(ip) as usize;
    udp(ctx, At { net, bth: net + header, declared: 0, kind: Net::V4, src_port: 0, tos, vlan }, end, port)
}

#[inline(always)]
fn v6<C: Ctx>(ctx: &C, net: usize, vlan: u16, port: u16) -> Outer {
    let Some(ip) = ctx.at::<IPV6_LEN>(net) else { return Outer::Short };
    let head = Grh(ip); // the same layout
    if head.ip_ver() != 6 {
        return Outer::Other;
    }
    let tos = head.traffic_class();
    let mut next = head.next_header();
    let mut o = net + IPV6_LEN;
    let mut n = 0;
    while n < MAX_IPV6_EXTENSIONS
        && matches!(next, IPPROTO_HOPOPTS | IPPROTO_ROUTING | IPPROTO_DSTOPTS | IPPROTO_FRAGMENT)
    {
        let Some([after, len]) = ctx.at::<2>(o) else { return Outer::Short };
        let mut size = (*len as usize + 1) * 8;
        if next == IPPROTO_FRAGMENT {
            let Some(f) = ctx.at::<IPV6_FRAGMENT_LEN>(o) else { return Outer::Short };
            if be16::<2, 8>(f) & IPV6_FRAGMENT_MASK != 0 {
                return if *after == IPPROTO_UDP { Outer::Fragment } else { Outer::Other };
            }
            // an atomic fragment (RFC 6946) is whole
            size = IPV6_FRAGMENT_LEN;
        }
        next = *after;
        o += size;
        n += 1;
    }
    if next != IPPROTO_UDP {
        return Outer::Other;
    }
    let end = net + IPV6_LEN + head.pay_len() as usize;
    udp(ctx, At { net, bth: o, declared: 0, kind: Net::V6, src_port: 0, tos, vlan }, end, port)
}

/// `at.bth` is where UDP starts, and is moved on; `end` is where the IP packet says that it ends.
#[inline(always)]
fn udp<C: Ctx>(ctx: &C, at: At, end: usize, port: u16) -> Outer {
    let Some(u) = ctx.at::<UDP_LEN>(at.bth) else { return Outer::Short };
    if be16::<2, 8>(u) != port {
        return Outer::Other;
    }
    let len = be16::<4, 8>(u) as usize;
    let bth = at.bth + UDP_LEN;
    let declared = if len < UDP_LEN {
        // 0 is a jumbogram or a packet before segmentation, less than 8 is nonsense: then the IP length counts
        room(bth, end, ctx.wire_len() as usize)
    } else if bth + (len - UDP_LEN) > end && bth + (len - UDP_LEN) > ctx.wire_len() as usize {
        // more than IP says and more than there is: IP knows better, if it says anything
        let room = if end > bth { end - bth } else { room(bth, end, ctx.wire_len() as usize) };
        if room > 0 { room } else { len - UDP_LEN }
    } else {
        len - UDP_LEN
    } as u32;
    Outer::Roce(At { bth, declared, src_port: be16::<0, 8>(u), ..at })
}

/// Bytes from `start` to where IP says that the packet ends, or to the end of the frame if that comes first or IP does not
/// say: a giant packet that is still to be cut up has the length 0.
#[inline(always)]
fn room(start: usize, end: usize, there: usize) -> usize {
    let end = if end > start && end < there { end } else { there };
    if end > start { end - start } else { 0 }
}

#[inline(always)]
fn v1<C: Ctx>(ctx: &C, net: usize, vlan: u16) -> Outer {
    let Some(b) = ctx.at::<{ Grh::LEN }>(net) else { return Outer::Short };
    let grh = Grh(b);
    if grh.ip_ver() != 6 || grh.next_header() != Grh::NEXT_BTH {
        return Outer::Other;
    }
    let declared = grh.pay_len() as u32;
    Outer::Roce(At { net, bth: net + Grh::LEN, declared, kind: Net::Grh, src_port: 0, tos: grh.traffic_class(), vlan })
}

const _: () = assert!(Bth::LEN == 12);
