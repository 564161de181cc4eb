//! IPv4.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use super::Tree;
use crate::wire::bytes::{be16, padded, part, u8_at};
use crate::wire::outer::{IPV4_LEN, dscp, ecn};

/// Group of these fields.
pub const GROUP: u16 = 2;

/// Names of IP protocols.
pub(super) fn protocol_name(v: u64) -> Option<Cow<'static, str>> {
    Some(
        match v {
            0 => "IPv6 Hop-by-Hop Option",
            1 => "ICMP",
            2 => "IGMP",
            4 => "IPIP",
            6 => "TCP",
            17 => "UDP",
            41 => "IPv6",
            43 => "Routing Header for IPv6",
            44 => "Fragment Header for IPv6",
            47 => "Generic Routing Encapsulation",
            58 => "ICMPv6",
            59 => "IPv6 No Next Header",
            60 => "Destination Options for IPv6",
            _ => return None,
        }
        .into(),
    )
}

/// Names of DSCP values (RFC 2474, 2597, 3246, 8622).
pub(super) fn dscp_name(v: u64) -> Option<Cow<'static, str>> {
    Some(match v {
        0 => "Default".into(),
        1 => "LE".into(),
        44 => "VOICE-ADMIT".into(),
        46 => "EF".into(),
        v if v < 64 && v % 8 == 0 => format!("CS{}", v / 8).into(),
        v if (8..40).contains(&v) && v % 2 == 0 && v % 8 <= 6 => format!("AF{}{}", v / 8, v % 8 / 2).into(),
        _ => return None,
    })
}

/// Names of ECN codepoints (RFC 3168).
pub(super) fn ecn_name(v: u64) -> Option<Cow<'static, str>> {
    Some(
        match v {
            0 => "Not-ECT",
            1 => "ECT(1)",
            2 => "ECT(0)",
            3 => "CE",
            _ => return None,
        }
        .into(),
    )
}

fn status_name(v: u64) -> Option<Cow<'static, str>> {
    Some(["Bad", "Good", "Unverified", "Not present"].get(usize::try_from(v).ok()?).copied()?.into())
}

crate::fields! {
    group 2;
    IP "ip" "Internet Protocol Version 4" None Dec {} "IPv4 header.";
    VERSION "ip.version" "Version" U8 Dec { mask: 0xf0 } "4.";
    HDR_LEN "ip.hdr_len" "Header Length" U8 Dec {} "Bytes of the header, options included.";
    DSFIELD "ip.dsfield" "Differentiated Services Field" U8 Hex {} "DSCP and ECN.";
    DSCP "ip.dsfield.dscp" "Differentiated Services Codepoint" U8 Dec { mask: 0xfc, names: Some(dscp_name) } "Traffic class of RoCE: which priority switches use.";
    ECN "ip.dsfield.ecn" "Explicit Congestion Notification" U8 Dec { mask: 0x03, names: Some(ecn_name) } "3: a switch marked congestion.";
    LEN "ip.len" "Total Length" U16 Dec {} "Bytes of header and data; where it is 0, those up to the end.";
    ID "ip.id" "Identification" U16 Hex {} "Identification of the datagram.";
    FLAGS "ip.flags" "Flags" U8 Hex { mask: 0xe0 } "Flags of fragmentation.";
    FLAGS_RB "ip.flags.rb" "Reserved bit" Bool Dec { mask: 0x80 } "Reserved.";
    FLAGS_DF "ip.flags.df" "Don't fragment" Bool Dec { mask: 0x40 } "Routers must not fragment.";
    FLAGS_MF "ip.flags.mf" "More fragments" Bool Dec { mask: 0x20 } "Not the last fragment.";
    FRAG_OFFSET "ip.frag_offset" "Fragment Offset" U16 Dec {} "Offset of this fragment, in units of 8 bytes.";
    TTL "ip.ttl" "Time to Live" U8 Dec {} "Hops left.";
    PROTO "ip.proto" "Protocol" U8 Dec { names: Some(protocol_name) } "Protocol of the data.";
    CHECKSUM "ip.checksum" "Header Checksum" U16 Hex {} "Checksum of the header.";
    CHECKSUM_STATUS "ip.checksum.status" "Header checksum status" U8 Dec { names: Some(status_name) } "Always 2, unverified, as tshark's default is.";
    SRC "ip.src" "Source Address" Ipv4 Dec {} "Source address.";
    ADDR "ip.addr" "Source or Destination Address" Ipv4 Dec { hidden: true } "Source or destination address.";
    SRC_HOST "ip.src_host" "Source Host" Str Dec { hidden: true } "Source address; names are not resolved.";
    HOST "ip.host" "Source or Destination Host" Str Dec { hidden: true } "Source or destination address; names are not resolved.";
    DST "ip.dst" "Destination Address" Ipv4 Dec {} "Destination address.";
    DST_HOST "ip.dst_host" "Destination Host" Str Dec { hidden: true } "Destination address; names are not resolved.";
    OPTIONS "ip.options" "Options" Bytes Dec {} "Options; the ICRC of such packets is not checked.";
}

/// Adds the fields of a header that starts at `o` of a frame of `wire_len` bytes; `bytes` is what was captured of it.
pub fn build<'a>(o: usize, bytes: &'a [u8], wire_len: usize, tree: &mut Tree<'a>) {
    // a cut header is shown as far as it goes: the tree leaves out what lies behind
    let h = &padded::<IPV4_LEN>(bytes);
    let options = bytes.get(IPV4_LEN..).unwrap_or(&[]);
    let (src, dst) = (*part::<12, 4, 20>(h), *part::<16, 4, 20>(h));
    let tos = u8_at::<1, 20>(h);
    let fragment = be16::<6, 20>(h);
    tree.open_header(&IP, o..o + bytes.len().max(IPV4_LEN));
    tree.label(&IP, || {
        format!("Internet Protocol Version 4, Src: {}, Dst: {}", Ipv4Addr::from(src), Ipv4Addr::from(dst))
    });
    tree.add(&VERSION, o..o + 1, u8_at::<0, 20>(h) >> 4);
    tree.add(&HDR_LEN, o..o + 1, (u8_at::<0, 20>(h) & 15) * 4);
    tree.label(&HDR_LEN, || {
        format!("Header Length: {} bytes ({})", (u8_at::<0, 20>(h) & 15) * 4, u8_at::<0, 20>(h) & 15)
    });
    tree.open(&DSFIELD, o + 1..o + 2, tos);
    tree.add(&DSCP, o + 1..o + 2, dscp(tos));
    tree.add(&ECN, o + 1..o + 2, ecn(tos));
    tree.close();
    match be16::<2, 20>(h) {
        // left to the adapter, which cuts a giant packet up: then it goes to the end
        0 => {
            let len = wire_len.saturating_sub(o);
            tree.add(&LEN, o + 2..o + 4, len as u64);
            tree.label(&LEN, || format!("{}: {len} (reported as 0, presumed to be left to the adapter)", LEN.title));
        }
        len => tree.add(&LEN, o + 2..o + 4, len),
    }
    tree.add(&ID, o + 4..o + 6, be16::<4, 20>(h));
    tree.open(&FLAGS, o + 6..o + 7, (fragment >> 13) as u8);
    tree.add(&FLAGS_RB, o + 6..o + 7, fragment & 0x8000 != 0);
    tree.add(&FLAGS_DF, o + 6..o + 7, fragment & 0x4000 != 0);
    tree.add(&FLAGS_MF, o + 6..o + 7, fragment & 0x2000 != 0);
    tree.close();
    tree.add(&FRAG_OFFSET, o + 6..o + 8, fragment & 0x1fff);
    tree.label(&FRAG_OFFSET, || format!("Fragment Offset: {} bytes", (fragment & 0x1fff) * 8));
    tree.add(&TTL, o + 8..o + 9, u8_at::<8, 20>(h));
    tree.add(&PROTO, o + 9..o + 10, u8_at::<9, 20>(h));
    tree.add(&CHECKSUM, o + 10..o + 12, be16::<10, 20>(h));
    tree.derive(&CHECKSUM_STATUS, 2u8);
    for (at, a, field, host) in [(o + 12, src, &SRC, &SRC_HOST), (o + 16, dst, &DST, &DST_HOST)] {
        tree.add(field, at..at + 4, a);
        tree.add(&ADDR, at..at + 4, a);
        if tree.wants(host) || tree.wants(&HOST) {
            let text = Ipv4Addr::from(a).to_string();
            tree.add(host, at..at + 4, text.clone());
            tree.add(&HOST, at..at + 4, text);
        }
    }
    if !options.is_empty() {
        tree.add(&OPTIONS, o + IPV4_LEN..o + bytes.len(), options);
    }
    tree.close();
}
