//! IPv6 and its extension headers.

use std::net::Ipv6Addr;

use super::ipv4::{dscp_name, ecn_name, protocol_name};
use super::table::{self, number, part};
use super::{Tree, ipv4};
use crate::frame::{Frame, Layer, LayerKind};
use crate::wire::Grh;
use crate::wire::bytes::padded;
use crate::wire::outer::{IPPROTO_DSTOPTS, IPPROTO_FRAGMENT, IPPROTO_HOPOPTS, IPPROTO_ROUTING, IPV6_LEN, dscp, ecn};

/// Group of these fields.
pub const GROUP: u16 = 3;

crate::fields! {
    group 3;
    IPV6 "ipv6" "Internet Protocol Version 6" None Dec {} "IPv6 header.";
    VERSION "ipv6.version" "Version" U8 Dec { mask: 0xf0 } "6.";
    TCLASS "ipv6.tclass" "Traffic Class" U32 Hex { mask: 0x0ff0_0000 } "DSCP and ECN.";
    DSCP "ipv6.tclass.dscp" "Differentiated Services Codepoint" U32 Dec { mask: 0x0fc0_0000, names: Some(dscp_name) } "Traffic class of RoCE: which priority switches use.";
    ECN "ipv6.tclass.ecn" "Explicit Congestion Notification" U32 Dec { mask: 0x0030_0000, names: Some(ecn_name) } "3: a switch marked congestion.";
    FLOW "ipv6.flow" "Flow Label" U24 Hex { mask: 0x000f_ffff } "Flow label.";
    PLEN "ipv6.plen" "Payload Length" U16 Dec {} "Bytes behind the header.";
    NXT "ipv6.nxt" "Next Header" U8 Dec { names: Some(protocol_name) } "What follows.";
    HLIM "ipv6.hlim" "Hop Limit" U8 Dec {} "Hops left.";
    SRC "ipv6.src" "Source Address" Ipv6 Dec {} "Source address.";
    ADDR "ipv6.addr" "Source or Destination Address" Ipv6 Dec { hidden: true } "Source or destination address.";
    SRC_HOST "ipv6.src_host" "Source Host" Str Dec { hidden: true } "Source address; names are not resolved.";
    HOST "ipv6.host" "Source or Destination Host" Str Dec { hidden: true } "Source or destination address; names are not resolved.";
    DST "ipv6.dst" "Destination Address" Ipv6 Dec {} "Destination address.";
    DST_HOST "ipv6.dst_host" "Destination Host" Str Dec { hidden: true } "Destination address; names are not resolved.";
    SRC_SLAAC "ipv6.src_slaac_mac" "Source SLAAC MAC" Ether Dec {} "MAC address that the source address was made of (EUI-64).";
    DST_SLAAC "ipv6.dst_slaac_mac" "Destination SLAAC MAC" Ether Dec {} "MAC address that the destination address was made of (EUI-64).";
    SLAAC "ipv6.slaac_mac" "SLAAC MAC" Ether Dec { hidden: true } "MAC address that source or destination address was made of.";
    HOPOPTS "ipv6.hopopts" "IPv6 Hop-by-Hop Option" None Dec {} "Hop-by-hop options; the ICRC of packets with extension headers is not checked.";
    HOPOPTS_NXT "ipv6.hopopts.nxt" "Next Header" U8 Dec { names: Some(protocol_name) } "What follows.";
    HOPOPTS_LEN "ipv6.hopopts.len" "Length" U8 Dec {} "Units of 8 bytes beyond the first.";
    HOPOPTS_LEN_OCT "ipv6.hopopts.len_oct" "Length" U32 Dec {} "Bytes.";
    DSTOPTS "ipv6.dstopts" "Destination Options for IPv6" None Dec {} "Destination options.";
    DSTOPTS_NXT "ipv6.dstopts.nxt" "Next Header" U8 Dec { names: Some(protocol_name) } "What follows.";
    DSTOPTS_LEN "ipv6.dstopts.len" "Length" U8 Dec {} "Units of 8 bytes beyond the first.";
    DSTOPTS_LEN_OCT "ipv6.dstopts.len_oct" "Length" U32 Dec {} "Bytes.";
    ROUTING "ipv6.routing" "Routing Header for IPv6" None Dec {} "Routing header.";
    ROUTING_NXT "ipv6.routing.nxt" "Next Header" U8 Dec { names: Some(protocol_name) } "What follows.";
    ROUTING_LEN "ipv6.routing.len" "Length" U8 Dec {} "Units of 8 bytes beyond the first.";
    ROUTING_LEN_OCT "ipv6.routing.len_oct" "Length" U32 Dec {} "Bytes.";
    ROUTING_TYPE "ipv6.routing.type" "Type" U8 Dec {} "4: segment routing.";
    ROUTING_LEFT "ipv6.routing.segleft" "Segments Left" U8 Dec {} "Stations still to come.";
    FRAGHDR "ipv6.fraghdr" "Fragment Header for IPv6" None Dec {} "Fragment header.";
    FRAGHDR_NXT "ipv6.fraghdr.nxt" "Next header" U8 Dec { names: Some(protocol_name) } "What follows.";
    FRAGHDR_OFFSET "ipv6.fraghdr.offset" "Offset" U16 Dec { mask: 0xfff8 } "Offset of this fragment, in units of 8 bytes.";
    FRAGHDR_MORE "ipv6.fraghdr.more" "More Fragments" Bool Dec { mask: 0x0001 } "Not the last fragment.";
    FRAGHDR_IDENT "ipv6.fraghdr.ident" "Identification" U32 Hex {} "Which datagram.";
}

/// Adds the fields of a header or extension header that starts at `o`.
pub fn build<'a>(frame: &Frame<'a>, layer: &Layer, o: usize, bytes: &'a [u8], tree: &mut Tree<'a>) {
    if layer.kind == LayerKind::Ipv6Extension {
        extension(frame, layer, o, bytes, tree);
        return;
    }
    let h = &padded::<IPV6_LEN>(bytes);
    // the same layout as a GRH
    let head = Grh(h);
    let tos = head.traffic_class();
    tree.open_header(&IPV6, o..o + IPV6_LEN);
    tree.label(&IPV6, || {
        format!(
            "Internet Protocol Version 6, Src: {}, Dst: {}",
            Ipv6Addr::from(*head.sgid()),
            Ipv6Addr::from(*head.dgid())
        )
    });
    tree.add(&VERSION, o..o + 1, head.ip_ver());
    tree.add(&ipv4::VERSION, o..o + 1, head.ip_ver());
    tree.open(&TCLASS, o..o + 4, tos);
    tree.add(&DSCP, o..o + 4, dscp(tos));
    tree.add(&ECN, o..o + 4, ecn(tos));
    tree.close();
    tree.add(&FLOW, o..o + 4, head.flow_label());
    tree.add(&PLEN, o + 4..o + 6, head.pay_len());
    tree.add(&NXT, o + 6..o + 7, head.next_header());
    tree.add(&HLIM, o + 7..o + 8, head.hop_limit());
    for (at, a, field, host) in [(o + 8, *head.sgid(), &SRC, &SRC_HOST), (o + 24, *head.dgid(), &DST, &DST_HOST)] {
        tree.add(field, at..at + 16, a);
        tree.add(&ADDR, at..at + 16, a);
        if tree.wants(host) || tree.wants(&HOST) {
            let text = Ipv6Addr::from(a).to_string();
            tree.add(host, at..at + 16, text.clone());
            tree.add(&HOST, at..at + 16, text);
        }
    }
    for (at, a, field) in [(o + 16, *head.sgid(), &SRC_SLAAC), (o + 32, *head.dgid(), &DST_SLAAC)] {
        // an interface identifier with ff:fe in its middle, of a MAC address whose second bit is turned round
        let [.., a, b, c, 0xff, 0xfe, d, e, f] = a else { continue };
        if a & 2 == 0 {
            continue; // made up locally: it may be of anything
        }
        let mac = [a ^ 2, b, c, d, e, f];
        tree.add(field, at..at + 8, mac);
        tree.add(&SLAAC, at..at + 8, mac);
    }
    tree.close();
}

/// The header's number stands in the header before it.
fn announced(frame: &Frame<'_>, layer: &Layer) -> Option<u8> {
    let before = frame.layers.as_slice().iter().rev().find(|l| l.start < layer.start)?;
    let at = before.start as usize + if before.kind == LayerKind::Ipv6 { 6 } else { 0 };
    frame.bytes.get(at).copied()
}

fn extension<'a>(frame: &Frame<'a>, layer: &Layer, o: usize, bytes: &'a [u8], tree: &mut Tree<'a>) {
    let octets = bytes.len() as u64;
    let simple = match announced(frame, layer) {
        Some(IPPROTO_HOPOPTS) => [&HOPOPTS, &HOPOPTS_NXT, &HOPOPTS_LEN, &HOPOPTS_LEN_OCT],
        Some(IPPROTO_DSTOPTS) => [&DSTOPTS, &DSTOPTS_NXT, &DSTOPTS_LEN, &DSTOPTS_LEN_OCT],
        Some(IPPROTO_ROUTING) => [&ROUTING, &ROUTING_NXT, &ROUTING_LEN, &ROUTING_LEN_OCT],
        Some(IPPROTO_FRAGMENT) => {
            tree.open_header(&FRAGHDR, o..o + bytes.len());
            table::add(
                &[
                    number(&FRAGHDR_NXT, 0, 8),
                    number(&FRAGHDR_OFFSET, 2, 13),
                    part(&FRAGHDR_MORE, 3, 7, 1),
                    number(&FRAGHDR_IDENT, 4, 32),
                ],
                bytes,
                o,
                tree,
            );
            tree.close();
            return;
        }
        _ => return, // an authentication header
    };
    let [header, next, len, oct] = simple;
    tree.open_header(header, o..o + bytes.len());
    table::add(&[number(next, 0, 8), number(len, 1, 8)], bytes, o, tree);
    tree.derive(oct, octets);
    if header.is(&ROUTING) {
        table::add(&[number(&ROUTING_TYPE, 2, 8), number(&ROUTING_LEFT, 3, 8)], bytes, o, tree);
    }
    tree.close();
}
