//! IPv6 and its extension headers.

use std::net::Ipv6Addr;

use super::ipv4::{dscp_name, ecn_name, protocol_name};
use super::{Tree, ipv4};
use crate::frame::{Layer, LayerKind};
use crate::wire::Grh;
use crate::wire::outer::{IPV6_LEN, dscp, ecn};

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
    EXTENSION "ipv6.ext" "Extension header" Bytes Dec {} "An extension header; the ICRC of such packets is not checked.";
    EXTENSION_NXT "ipv6.ext.nxt" "Next Header" U8 Dec { names: Some(protocol_name) } "What follows the extension header.";
    EXTENSION_LEN "ipv6.ext.len" "Length" U8 Dec {} "Length field of the extension header: units of 8 bytes beyond the first.";
}

/// Adds the fields of a header or extension header that starts at `o`.
pub fn build<'a>(layer: &Layer, o: usize, bytes: &'a [u8], tree: &mut Tree<'a>) {
    if layer.kind == LayerKind::Ipv6Extension {
        let [next, len, ..] = *bytes else { return };
        tree.open(&EXTENSION, o..o + bytes.len(), bytes);
        tree.label(&EXTENSION, || format!("IPv6 extension header, {} bytes", layer.len));
        tree.add(&EXTENSION_NXT, o..o + 1, next);
        tree.add(&EXTENSION_LEN, o + 1..o + 2, len);
        tree.close();
        return;
    }
    let Some(h) = bytes.first_chunk::<IPV6_LEN>() else { return };
    // the same layout as a GRH
    let head = Grh(h);
    let tos = head.traffic_class();
    tree.open_header(&IPV6, o..o + bytes.len());
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
    tree.close();
}
