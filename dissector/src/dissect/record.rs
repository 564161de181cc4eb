//! `frame.*`: what the capture says about a packet.

use super::{Input, Tree, beside};
use crate::frame::{Layer, LayerKind, LinkType};
use crate::wire::Mad;
use crate::wire::outer::{ETHERTYPE_QINQ, IPPROTO_DSTOPTS, IPPROTO_FRAGMENT, IPPROTO_HOPOPTS, IPPROTO_ROUTING};

/// Group of these fields.
pub const GROUP: u16 = 0;

fn direction_name(v: u64) -> Option<std::borrow::Cow<'static, str>> {
    Some(["Unknown", "Inbound", "Outbound"].get(usize::try_from(v).ok()?).copied()?.into())
}

crate::fields! {
    group 0;
    FRAME "frame" "Frame" None Dec {} "One record of the capture.";
    INTERFACE "frame.interface_id" "Interface id" U32 Dec {} "Interface of a pcapng file, from 0.";
    INTERFACE_NAME "frame.interface_name" "Interface name" Str Dec {} "Name of that interface.";
    INTERFACE_DESCRIPTION "frame.interface_description" "Interface description" Str Dec {} "Description of that interface.";
    FLAGS "frame.packet_flags" "Packet flags" U32 Hex {} "Direction and link errors that a pcapng file notes.";
    FLAGS_DIRECTION "frame.packet_flags_direction" "Direction" U32 Hex { mask: 0x3, names: Some(direction_name) } "1 inbound, 2 outbound.";
    FLAGS_RECEPTION "frame.packet_flags_reception_type" "Reception type" U32 Dec { mask: 0x1c } "1 unicast, 2 multicast, 3 broadcast, 4 promiscuous.";
    FLAGS_FCS "frame.packet_flags_fcs_length" "FCS length" U32 Dec { mask: 0x1e0 } "Bytes of frame check sequence at the end; 0: not known.";
    FLAGS_CRC_ERROR "frame.packet_flags_crc_error" "CRC error" Bool Dec { mask: 0x0100_0000 } "The frame check sequence was wrong.";
    DROP_COUNT "frame.drop_count" "Drop Count" U64 Dec {} "Packets lost between the one before and this one.";
    COMMENT "frame.comment" "Comment" Str Dec {} "Comment of a pcapng file on this packet.";
    ENCAP_TYPE "frame.encap_type" "Encapsulation type" I64 Dec {} "Link type, numbered as Wireshark numbers them.";
    TIME "frame.time" "Arrival Time" Time Dec {} "When the packet was captured, in local time.";
    OFFSET_SHIFT "frame.offset_shift" "Time shift for this packet" Duration Dec {} "Always 0: times are shown as captured.";
    TIME_EPOCH "frame.time_epoch" "Epoch Time" Duration Dec {} "When the packet was captured, seconds since 1970 UTC.";
    TIME_DELTA "frame.time_delta" "Time delta from previous captured frame" Duration Dec {} "Seconds since the packet before.";
    TIME_DELTA_DISPLAYED "frame.time_delta_displayed" "Time delta from previous displayed frame" Duration Dec {} "Seconds since the packet shown before.";
    TIME_RELATIVE "frame.time_relative" "Time since reference or first frame" Duration Dec {} "Seconds since the first packet of the file.";
    NUMBER "frame.number" "Frame Number" U32 Dec {} "Number in the file, from 1.";
    LEN "frame.len" "Frame Length" U32 Dec {} "Bytes on the wire.";
    CAP_LEN "frame.cap_len" "Capture Length" U32 Dec {} "Bytes in the file.";
    MARKED "frame.marked" "Frame is marked" Bool Dec { hidden: true } "Always false: nothing marks packets here.";
    IGNORED "frame.ignored" "Frame is ignored" Bool Dec { hidden: true } "Always false: nothing is ignored here.";
    PROTOCOLS "frame.protocols" "Protocols in frame" Str Dec {} "Names of the protocols, outermost first, joined by colons.";
}

/// Adds the record's fields.
pub fn build(input: &Input<'_, '_>, tree: &mut Tree<'_>) {
    let r = &input.record;
    let frame = input.frame;
    let (captured, wire) = frame.lengths();
    tree.open_header(&FRAME, 0..frame.bytes.len());
    tree.label(&FRAME, || {
        let on = r.interface.map_or_else(String::new, |i| format!(" on interface {i}"));
        format!(
            "Frame {}: {} bytes on wire ({} bits), {captured} bytes captured ({} bits){on}",
            r.number,
            wire,
            wire * 8,
            captured * 8
        )
    });
    if let Some(i) = r.interface {
        tree.derive(&INTERFACE, i);
        if let Some(on) = r.on {
            tree.derive(&INTERFACE_NAME, on.name.clone().unwrap_or_else(|| "unknown".to_owned()));
            if let Some(description) = &on.description {
                tree.derive(&INTERFACE_DESCRIPTION, description.clone());
            }
        }
    }
    if let Some(flags) = r.options.flags() {
        tree.derive(&FLAGS, flags);
        tree.derive(&FLAGS_DIRECTION, flags & 3);
        tree.derive(&FLAGS_RECEPTION, flags >> 2 & 7);
        tree.derive(&FLAGS_FCS, flags >> 5 & 15);
        tree.derive(&FLAGS_CRC_ERROR, flags & 0x0100_0000 != 0);
    }
    if let Some(n) = r.options.drop_count() {
        tree.derive(&DROP_COUNT, n);
    }
    if tree.wants(&COMMENT) {
        for c in r.options.comments() {
            tree.derive(&COMMENT, c.into_owned());
        }
    }
    tree.derive(&ENCAP_TYPE, wireshark_encapsulation(frame.link.0));
    tree.derive(&TIME, super::Value::Time(r.at.0));
    tree.derive(&OFFSET_SHIFT, super::Value::Duration(0));
    tree.derive(&TIME_EPOCH, super::Value::Duration(r.at.0));
    tree.derive(&TIME_DELTA, super::Value::Duration(r.at.since(r.previous)));
    tree.derive(&TIME_DELTA_DISPLAYED, super::Value::Duration(r.shown.map_or(0, |s| r.at.since(s))));
    tree.derive(&TIME_RELATIVE, super::Value::Duration(r.at.since(r.first)));
    tree.derive(&NUMBER, r.number);
    tree.derive(&LEN, wire as u64);
    tree.derive(&CAP_LEN, captured as u64);
    tree.derive(&MARKED, false);
    tree.derive(&IGNORED, false);
    if tree.wants(&PROTOCOLS) {
        tree.derive(&PROTOCOLS, protocols(input));
    }
    tree.close();
}

/// Wireshark's own number of a link type (`wiretap/wtap.h`), which differs from the capture's.
fn wireshark_encapsulation(link: u16) -> i64 {
    match link {
        0 => 15,
        1 => 1,
        9 | 50 => 4,
        51 => 139,
        104 => 28,
        101 => 7,
        113 => 25,
        108 => 174,
        166 => 95,
        197 => 98,
        204 => 19,
        239 => 141,
        242 => 180,
        247 => 150,
        276 => 210,
        _ => 0,
    }
}

/// Whether a VLAN tag is a service provider's: the EtherType before it says so.
fn is_service_tag(input: &Input<'_, '_>, layer: &Layer) -> bool {
    let before = (layer.start as usize).checked_sub(2).and_then(|at| input.frame.bytes.get(at..)?.first_chunk::<2>());
    before.map(|b| u16::from_be_bytes(*b)) == Some(ETHERTYPE_QINQ)
}

/// `eth:ethertype:ip:udp:infiniband`.
fn protocols(input: &Input<'_, '_>) -> String {
    let mut out = String::new();
    let mut add = |name: &str| {
        if !out.is_empty() {
            out.push(':');
        }
        out.push_str(name);
    };
    if input.frame.link == LinkType::RAW {
        add("raw");
    }
    let mut next = 0;
    let mut last = LayerKind::None;
    for layer in input.frame.layers.as_slice() {
        let before = std::mem::replace(&mut last, layer.kind);
        let byte = |i: usize| input.frame.bytes.get(layer.start as usize + i).copied().unwrap_or(0);
        match layer.kind {
            LayerKind::Ethernet if matches!((byte(12), byte(13)), (0..6, _)) => add("eth"),
            LayerKind::Ethernet => add("eth:ethertype"),
            LayerKind::Vlan => {
                add(if is_service_tag(input, layer) { "ieee8021ad:ethertype" } else { "vlan:ethertype" });
            }
            LayerKind::Ipv4 => add("ip"),
            LayerKind::Ipv6 => {
                add("ipv6");
                next = byte(6);
            }
            LayerKind::Ipv6Extension => {
                add(match next {
                    IPPROTO_HOPOPTS => "ipv6.hopopts",
                    IPPROTO_ROUTING => "ipv6.routing",
                    IPPROTO_FRAGMENT => "ipv6.fraghdr",
                    IPPROTO_DSTOPTS => "ipv6.dstopts",
                    _ => "ipv6.ext",
                });
                next = byte(0);
            }
            LayerKind::Udp => add("udp"),
            // part of the protocol infiniband
            LayerKind::Grh | LayerKind::Lrh | LayerKind::None => {}
            LayerKind::Sll | LayerKind::Sll2 => add("sll:ethertype"),
            LayerKind::Null => add("null"),
            LayerKind::Erf => add("erf"),
            // a stack of labels is one protocol
            LayerKind::Mpls if before == LayerKind::Mpls => {}
            LayerKind::Mpls => add("mpls"),
            LayerKind::Pppoe => add("pppoes:ppp"),
            LayerKind::Gre => add("gre"),
            LayerKind::Erspan => add("erspan"),
            LayerKind::Vxlan => add("vxlan"),
            LayerKind::Geneve => add("geneve"),
            LayerKind::Llc => add("llc"),
            LayerKind::Ah => add("ah"),
            LayerKind::EtherIp => add("etherip"),
            LayerKind::ControlWord => add("pwethcw"),
            LayerKind::Rwh => add("rwh"),
            LayerKind::Ipoib => add("ipoib"),
            LayerKind::Ppp => add("ppp"),
            LayerKind::Chdlc => add("chdlc"),
            LayerKind::Nflog => add("nflog"),
            LayerKind::Macsec => add("macsec:ethertype"),
            LayerKind::Backbone => add("ieee8021ah"),
            LayerKind::Nsh => add("nsh"),
            LayerKind::Hsr => add("hsr"),
            LayerKind::CiscoMeta => add("cmd:ethertype"),
            LayerKind::Tzsp => add("tzsp"),
            LayerKind::Gtp => add("gtp"),
        }
    }
    for field in beside::protocols(input.frame).into_iter().flatten() {
        add(field.name);
    }
    let routing = matches!(input.frame.layers.last().map(|l| l.kind), Some(LayerKind::Grh | LayerKind::Lrh));
    if input.frame.transport.is_some() || routing {
        add("infiniband");
        if input.roce().is_some_and(|p| p.op.is_some() && !p.payload.is_empty() && Mad::in_packet(p).is_none()) {
            add("data");
        }
    }
    out
}
