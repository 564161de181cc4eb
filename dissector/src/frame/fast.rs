//! The short way: Ethernet, VLAN tags, IPv4 or IPv6 with extension headers, UDP to the RoCE port; RoCEv1.
//!
//! The same walk as the kernel program's, over the same constants. `false` means "not that shape, take the
//! long way", never "not RoCE".

use super::{Encapsulation, Frame, LayerKind, Net, NetKind, Transport, Udp, v4, v6};
use crate::wire::bytes::{be16, part, u8_at};
use crate::wire::outer::{self, ETH_LEN, IPV4_LEN, IPV6_LEN, UDP_LEN, VLAN_LEN};
use crate::wire::{Bth, ETHERTYPE_ROCE_V1, Grh};

fn at<const N: usize>(bytes: &[u8], start: usize) -> Option<&[u8; N]> {
    bytes.get(start..)?.first_chunk::<N>()
}

/// Walks an Ethernet frame that holds RoCE in its usual shape, complete at least through the BTH. `f` is one
/// of which nothing is known yet, and stays so where the answer is `false`.
#[inline]
pub fn ethernet(f: &mut Frame<'_>, port: u16) -> bool {
    let Some(shape) = shape(f.bytes, port) else { return false };
    let Shape { net, udp, transport, vlan_tci, tags, extensions } = shape;
    let end = transport.start + transport.declared;
    // a UDP length that promises more than there was
    if end > f.wire_len && end != net.end {
        return false;
    }
    f.layers.push(LayerKind::Ethernet, 0, ETH_LEN);
    for t in 0..tags {
        f.layers.push(LayerKind::Vlan, ETH_LEN + t * VLAN_LEN, VLAN_LEN);
    }
    match net.kind {
        NetKind::Ipv4 { .. } => {
            f.layers.push(LayerKind::Ipv4, net.start, udp.map_or(0, |u| u.start - net.start));
        }
        NetKind::Ipv6 { .. } => {
            f.layers.push(LayerKind::Ipv6, net.start, IPV6_LEN);
            let mut e = net.start + IPV6_LEN;
            for _ in 0..extensions {
                let len = (usize::from(f.bytes.get(e + 1).copied().unwrap_or(0)) + 1) * 8;
                f.layers.push(LayerKind::Ipv6Extension, e, len);
                e += len;
            }
        }
        NetKind::Grh | NetKind::Lrh => {
            f.layers.push(LayerKind::Grh, net.start, Grh::LEN);
        }
    }
    if let Some(u) = udp {
        f.layers.push(LayerKind::Udp, u.start, UDP_LEN);
    }
    f.ethernet = Some(0);
    f.vlan_tci = vlan_tci;
    f.net = Some(net);
    f.udp = udp;
    f.transport = Some(transport);
    // nearly always every length agrees and nothing follows
    let agree = net.end == end && f.wire_len == end;
    if !agree {
        f.note_lengths(net.end);
    }
    true
}

/// What a frame of the usual shape consists of.
struct Shape {
    net: Net,
    udp: Option<Udp>,
    transport: Transport,
    vlan_tci: Option<u16>,
    tags: usize,
    extensions: usize,
}

#[expect(clippy::inline_always, reason = "else a shape is handed over in memory, which costs as much as finding it")]
#[inline(always)]
fn shape(bytes: &[u8], port: u16) -> Option<Shape> {
    let eth: &[u8; ETH_LEN] = bytes.first_chunk()?;
    let mut ethertype = be16::<12, 14>(eth);
    let mut o = ETH_LEN;
    let mut tags = 0;
    let mut tci = None;
    while outer::is_vlan(ethertype) {
        if tags == outer::MAX_VLAN_TAGS {
            return None;
        }
        let tag: &[u8; VLAN_LEN] = at(bytes, o)?;
        tci = Some(be16::<0, 4>(tag));
        ethertype = be16::<2, 4>(tag);
        o += VLAN_LEN;
        tags += 1;
    }
    let net_start = o;
    let (net, udp, encapsulation, start, declared, extensions) = match ethertype {
        outer::ETHERTYPE_IPV4 => {
            let ip: &[u8; IPV4_LEN] = at(bytes, o)?;
            let [b0, tos, ..] = *ip;
            let header = usize::from(b0 & 15) * 4;
            if b0 >> 4 != 4 || header < IPV4_LEN {
                return None;
            }
            if u8_at::<9, 20>(ip) != outer::IPPROTO_UDP || be16::<6, 20>(ip) & outer::IPV4_FRAGMENT_MASK != 0 {
                return None;
            }
            let end = o + usize::from(be16::<2, 20>(ip));
            let net = Net {
                kind: NetKind::Ipv4 { options: header > IPV4_LEN },
                start: o,
                src: v4(*part::<12, 4, 20>(ip)),
                dst: v4(*part::<16, 4, 20>(ip)),
                tos,
                ttl: u8_at::<8, 20>(ip),
                ip_id: Some(be16::<4, 20>(ip)),
                flow_label: None,
                end,
                fragment: None,
            };
            o += header;
            let (udp, declared) = udp(bytes, o, port)?;
            (net, Some(udp), Encapsulation::RoceV2, o + UDP_LEN, declared, 0)
        }
        outer::ETHERTYPE_IPV6 => {
            let ip: &[u8; IPV6_LEN] = at(bytes, o)?;
            let head = Grh(ip); // the same layout
            if head.ip_ver() != 6 {
                return None;
            }
            let end = o + IPV6_LEN + usize::from(head.pay_len());
            let mut next = head.next_header();
            o += IPV6_LEN;
            let mut extensions = 0;
            while matches!(next, outer::IPPROTO_HOPOPTS | outer::IPPROTO_ROUTING | outer::IPPROTO_DSTOPTS) {
                if extensions == outer::MAX_IPV6_EXTENSIONS {
                    return None;
                }
                let [n, l] = *at::<2>(bytes, o)?;
                next = n;
                o += (usize::from(l) + 1) * 8;
                extensions += 1;
            }
            if next != outer::IPPROTO_UDP {
                return None;
            }
            let net = Net {
                kind: NetKind::Ipv6 { extensions: extensions > 0 },
                start: net_start,
                src: v6(*head.sgid()),
                dst: v6(*head.dgid()),
                tos: head.traffic_class(),
                ttl: head.hop_limit(),
                ip_id: None,
                flow_label: Some(head.flow_label()),
                end,
                fragment: None,
            };
            let (udp, declared) = udp(bytes, o, port)?;
            (net, Some(udp), Encapsulation::RoceV2, o + UDP_LEN, declared, extensions)
        }
        ETHERTYPE_ROCE_V1 => {
            let grh = Grh(at(bytes, o)?);
            if grh.ip_ver() != 6 || grh.next_header() != Grh::NEXT_BTH || usize::from(grh.pay_len()) < Bth::LEN {
                return None;
            }
            let net = Net {
                kind: NetKind::Grh,
                start: o,
                src: v6(*grh.sgid()),
                dst: v6(*grh.dgid()),
                tos: grh.traffic_class(),
                ttl: grh.hop_limit(),
                ip_id: None,
                flow_label: Some(grh.flow_label()),
                end: o + Grh::LEN + usize::from(grh.pay_len()),
                fragment: None,
            };
            (net, None, Encapsulation::RoceV1, o + Grh::LEN, usize::from(grh.pay_len()), 0)
        }
        _ => return None,
    };
    bytes.get(start..start.checked_add(Bth::LEN)?)?;
    let transport = Transport { encapsulation, start, declared };
    Some(Shape { net, udp, transport, vlan_tci: tci, tags, extensions })
}

fn udp(bytes: &[u8], start: usize, port: u16) -> Option<(Udp, usize)> {
    let u: &[u8; UDP_LEN] = at(bytes, start)?;
    let dst_port = be16::<2, 8>(u);
    let len = be16::<4, 8>(u);
    if dst_port != port || usize::from(len) < UDP_LEN + Bth::LEN {
        return None;
    }
    let udp = Udp { start, src_port: be16::<0, 8>(u), dst_port, len, checksum: be16::<6, 8>(u) };
    Some((udp, usize::from(len) - UDP_LEN))
}
