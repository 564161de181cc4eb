//! Link layers: Ethernet, VLAN tags, Linux cooked headers, BSD loopback.

use super::{Field, Tree};
use crate::frame::{Carries, Frame, Layer, LayerKind};
use crate::wire::bytes::{be16, be32, padded, part, u8_at};
use crate::wire::outer::ETHERTYPE_QINQ;

/// Group of these fields.
pub const GROUP: u16 = 1;

fn ethertype_name(v: u64) -> Option<std::borrow::Cow<'static, str>> {
    Some(
        match v {
            0x0800 => "IPv4",
            0x0806 => "ARP",
            0x8100 => "802.1Q Virtual LAN",
            0x86dd => "IPv6",
            0x8808 => "MAC Control",
            0x8847 => "MPLS label switched packet",
            0x8864 => "PPPoE Session",
            0x88a8 => "802.1ad Provider Bridge (Q-in-Q)",
            0x88cc => "802.1 Link Layer Discovery Protocol (LLDP)",
            0x8915 => "RDMA over Converged Ethernet (RoCE)",
            _ => return None,
        }
        .into(),
    )
}

fn status_name(v: u64) -> Option<std::borrow::Cow<'static, str>> {
    Some(["Bad", "Good", "Unverified", "Not present"].get(usize::try_from(v).ok()?).copied()?.into())
}

/// Smallest value that is a type and not a length.
const FIRST_ETHERTYPE: u16 = 0x0600;

crate::fields! {
    group 1;
    ETH "eth" "Ethernet II" None Dec {} "Ethernet header.";
    ETH_DST "eth.dst" "Destination" Ether Dec {} "Destination MAC address.";
    ETH_SRC "eth.src" "Source" Ether Dec {} "Source MAC address.";
    ETH_ADDR "eth.addr" "Address" Ether Dec { hidden: true } "Source or destination MAC address.";
    ETH_DST_LG "eth.dst.lg" "LG bit" Bool Dec {} "Destination address is locally administered.";
    ETH_DST_IG "eth.dst.ig" "IG bit" Bool Dec {} "Destination address is a group.";
    ETH_SRC_LG "eth.src.lg" "LG bit" Bool Dec {} "Source address is locally administered.";
    ETH_SRC_IG "eth.src.ig" "IG bit" Bool Dec {} "Source address is a group.";
    ETH_LG "eth.lg" "LG bit" Bool Dec { hidden: true } "Address is locally administered.";
    ETH_IG "eth.ig" "IG bit" Bool Dec { hidden: true } "Address is a group.";
    ETH_DST_RESOLVED "eth.dst_resolved" "Destination (resolved)" Str Dec { hidden: true } "Destination MAC address; names are not resolved.";
    ETH_SRC_RESOLVED "eth.src_resolved" "Source (resolved)" Str Dec { hidden: true } "Source MAC address; names are not resolved.";
    ETH_ADDR_RESOLVED "eth.addr_resolved" "Address (resolved)" Str Dec { hidden: true } "Source or destination MAC address; names are not resolved.";
    ETH_DST_OUI "eth.dst.oui" "Destination OUI" U24 Dec { hidden: true } "Manufacturer's number of the destination.";
    ETH_SRC_OUI "eth.src.oui" "Source OUI" U24 Dec { hidden: true } "Manufacturer's number of the source.";
    ETH_ADDR_OUI "eth.addr.oui" "Address OUI" U24 Dec { hidden: true } "Manufacturer's number of source or destination.";
    ETH_LEN "eth.len" "Length" U16 Dec {} "Bytes of data of an IEEE 802.3 frame, which has no EtherType.";
    ETH_TYPE "eth.type" "Type" U16 Hex { names: Some(ethertype_name) } "EtherType.";
    ETH_TRAILER "eth.trailer" "Trailer" Bytes Dec {} "Bytes behind the network packet: padding or FCS.";
    ETH_PADDING "eth.padding" "Padding" Bytes Dec {} "Zeros behind the network packet that bring the frame up to 60 bytes.";
    ETH_FCS "eth.fcs" "Frame check sequence" U32 Hex {} "Last four bytes of a frame that has at least as many behind the network packet, is 64 bytes long or more, and so may have it.";
    ETH_FCS_STATUS "eth.fcs.status" "FCS Status" U8 Dec { names: Some(status_name) } "Always 2, unverified, as tshark's default is.";
    VLAN "vlan" "802.1Q Virtual LAN" None Dec {} "VLAN tag.";
    VLAN_PRIORITY "vlan.priority" "Priority" U16 Dec { mask: 0xe000 } "Priority code point.";
    VLAN_DEI "vlan.dei" "DEI" Bool Dec { mask: 0x1000 } "Drop eligible.";
    VLAN_ID "vlan.id" "ID" U16 Dec { mask: 0x0fff } "VLAN number.";
    VLAN_ETYPE "vlan.etype" "Type" U16 Hex { names: Some(ethertype_name) } "EtherType behind the tag.";
    VLAN_LEN "vlan.len" "Length" U16 Dec {} "Bytes of data where no EtherType is behind the tag.";
    VLAN_TRAILER "vlan.trailer" "Trailer" Bytes Dec {} "Bytes behind the network packet of a tagged frame.";
    AD "ieee8021ad" "IEEE 802.1ad" None Dec {} "Service provider's VLAN tag.";
    AD_PRIORITY "ieee8021ad.priority" "Priority" U16 Dec { mask: 0xe000 } "Priority code point.";
    AD_DEI "ieee8021ad.dei" "DEI" Bool Dec { mask: 0x1000 } "Drop eligible.";
    AD_ID "ieee8021ad.id" "ID" U16 Dec { mask: 0x0fff } "Service VLAN number.";
    AD_ETYPE "ieee8021ad.etype" "Type" U16 Hex { names: Some(ethertype_name) } "EtherType behind the tag.";
    SLL "sll" "Linux cooked capture" None Dec {} "Header of captures on the \"any\" device.";
    SLL_PKTTYPE "sll.pkttype" "Packet type" U16 Dec {} "0 to us, 1 broadcast, 2 multicast, 3 to another, 4 from us.";
    SLL_HATYPE "sll.hatype" "Link-layer address type" U16 Dec {} "ARPHRD number of the device.";
    SLL_HALEN "sll.halen" "Link-layer address length" U16 Dec {} "Bytes of the address.";
    SLL_SRC_ETH "sll.src.eth" "Source" Ether Dec {} "Sender's MAC address.";
    SLL_SRC_IPV4 "sll.src.ipv4" "Source" Ipv4 Dec {} "Sender's address where the device has no MAC address.";
    SLL_UNUSED "sll.unused" "Unused" Bytes Dec {} "Rest of the room for an address.";
    SLL_ETYPE "sll.etype" "Protocol" U16 Hex { names: Some(ethertype_name) } "EtherType.";
    SLL_IFINDEX "sll.ifindex" "Interface index" U32 Dec {} "Interface on which it was captured (version 2).";
    NULL "null" "Null/Loopback" None Dec {} "BSD loopback header.";
    NULL_FAMILY "null.family" "Family" U32 Dec {} "Address family, in the capturing machine's byte order.";
}

/// Adds the fields of one link header; `bytes` is what was captured of it.
pub fn build<'a>(frame: &Frame<'a>, layer: &Layer, bytes: &'a [u8], tree: &mut Tree<'a>) {
    let o = layer.start as usize;
    let end = o + bytes.len();
    match layer.kind {
        LayerKind::Ethernet => {
            let h = &padded::<14>(bytes);
            let end = o + bytes.len().max(14);
            let (dst, src) = (*part::<0, 6, 14>(h), *part::<6, 6, 14>(h));
            tree.open_header(&ETH, o..end);
            let ieee = be16::<12, 14>(h) < FIRST_ETHERTYPE;
            tree.label(&ETH, || {
                if ieee {
                    return "IEEE 802.3 Ethernet ".to_owned();
                }
                format!("Ethernet II, Src: {}, Dst: {}", mac(src), mac(dst))
            });
            for (at, a, field, lg, ig, resolved, oui) in [
                (o, dst, &ETH_DST, &ETH_DST_LG, &ETH_DST_IG, &ETH_DST_RESOLVED, &ETH_DST_OUI),
                (o + 6, src, &ETH_SRC, &ETH_SRC_LG, &ETH_SRC_IG, &ETH_SRC_RESOLVED, &ETH_SRC_OUI),
            ] {
                let [first, second, third, ..] = a;
                tree.open(field, at..at + 6, a);
                for field in [resolved, &ETH_ADDR_RESOLVED] {
                    if tree.wants(field) {
                        tree.add(field, at..at + 6, mac(a));
                    }
                }
                for field in [oui, &ETH_ADDR_OUI] {
                    tree.add(field, at..at + 3, u32::from_be_bytes([0, first, second, third]));
                }
                tree.add(&ETH_ADDR, at..at + 6, a);
                tree.add(lg, at..at + 3, first & 2 != 0);
                tree.add(&ETH_LG, at..at + 3, first & 2 != 0);
                tree.add(ig, at..at + 3, first & 1 != 0);
                tree.add(&ETH_IG, at..at + 3, first & 1 != 0);
                tree.close();
            }
            // what is no EtherType is the length of an IEEE 802.3 frame
            let field = if ieee { &ETH_LEN } else { &ETH_TYPE };
            tree.add(field, o + 12..o + 14, be16::<12, 14>(h));
            trailer(frame, layer, &ETH_TRAILER, tree);
        }
        LayerKind::Vlan => {
            let h = &padded::<4>(bytes);
            let end = o + bytes.len().max(4);
            let tci = be16::<0, 4>(h);
            // a service provider's tag is announced by its own EtherType, which stands before the tag
            let announced = o.checked_sub(2).and_then(|at| frame.bytes.get(at..)?.first_chunk::<2>());
            if announced.map(|b| u16::from_be_bytes(*b)) == Some(ETHERTYPE_QINQ) {
                tree.open_header(&AD, o..end);
                tree.label(&AD, || {
                    let dei = u8::from(tci & 0x1000 != 0);
                    format!("{}, PRI: {}, DEI: {dei}, ID: {}", AD.title, tci >> 13, tci & 0xfff)
                });
                tree.add(&AD_PRIORITY, o..o + 2, tci >> 13);
                tree.add(&AD_DEI, o..o + 2, tci & 0x1000 != 0);
                tree.add(&AD_ID, o..o + 2, tci & 0xfff);
                tree.add(&AD_ETYPE, o + 2..o + 4, be16::<2, 4>(h));
                trailer(frame, layer, &VLAN_TRAILER, tree);
                tree.close();
                return;
            }
            tree.open_header(&VLAN, o..end);
            tree.label(&VLAN, || {
                format!(
                    "802.1Q Virtual LAN, PRI: {}, DEI: {}, ID: {}",
                    tci >> 13,
                    u8::from(tci & 0x1000 != 0),
                    tci & 0xfff
                )
            });
            tree.add(&VLAN_PRIORITY, o..o + 2, tci >> 13);
            tree.add(&VLAN_DEI, o..o + 2, tci & 0x1000 != 0);
            tree.add(&VLAN_ID, o..o + 2, tci & 0xfff);
            let field = if be16::<2, 4>(h) < FIRST_ETHERTYPE { &VLAN_LEN } else { &VLAN_ETYPE };
            tree.add(field, o + 2..o + 4, be16::<2, 4>(h));
            trailer(frame, layer, &VLAN_TRAILER, tree);
        }
        LayerKind::Sll => {
            let Some(h) = bytes.first_chunk::<16>() else { return };
            tree.open_header(&SLL, o..end);
            tree.label(&SLL, || "Linux cooked capture v1".to_owned());
            tree.add(&SLL_PKTTYPE, o..o + 2, be16::<0, 16>(h));
            tree.add(&SLL_HATYPE, o + 2..o + 4, be16::<2, 16>(h));
            tree.add(&SLL_HALEN, o + 4..o + 6, be16::<4, 16>(h));
            match be16::<4, 16>(h) {
                6 => tree.add(&SLL_SRC_ETH, o + 6..o + 12, *part::<6, 6, 16>(h)),
                4 => tree.add(&SLL_SRC_IPV4, o + 6..o + 10, *part::<6, 4, 16>(h)),
                _ => {}
            }
            let unused = o + 6 + usize::from(be16::<4, 16>(h)).min(8);
            if unused < o + 14 {
                tree.add(&SLL_UNUSED, unused..o + 14, frame.slice(unused..o + 14));
            }
            tree.add(&SLL_ETYPE, o + 14..o + 16, be16::<14, 16>(h));
        }
        LayerKind::Sll2 => {
            let Some(h) = bytes.first_chunk::<20>() else { return };
            tree.open_header(&SLL, o..end);
            tree.label(&SLL, || "Linux cooked capture v2".to_owned());
            tree.add(&SLL_ETYPE, o..o + 2, be16::<0, 20>(h));
            tree.add(&SLL_IFINDEX, o + 4..o + 8, be32::<4, 20>(h));
            tree.add(&SLL_HATYPE, o + 8..o + 10, be16::<8, 20>(h));
            tree.add(&SLL_PKTTYPE, o + 10..o + 11, u16::from(u8_at::<10, 20>(h)));
            tree.add(&SLL_HALEN, o + 11..o + 12, u16::from(u8_at::<11, 20>(h)));
            match u8_at::<11, 20>(h) {
                6 => tree.add(&SLL_SRC_ETH, o + 12..o + 18, *part::<12, 6, 20>(h)),
                4 => tree.add(&SLL_SRC_IPV4, o + 12..o + 16, *part::<12, 4, 20>(h)),
                _ => {}
            }
            let unused = o + 12 + usize::from(u8_at::<11, 20>(h)).min(8);
            if unused < o + 20 {
                tree.add(&SLL_UNUSED, unused..o + 20, frame.slice(unused..o + 20));
            }
        }
        LayerKind::Null => {
            let Some(h) = bytes.first_chunk::<4>() else { return };
            let word = be32::<0, 4>(h);
            // families are small numbers: the half with the bits in it tells the byte order
            let family = if word > 0xffff { word.swap_bytes() } else { word };
            tree.open_header(&NULL, o..end);
            tree.add(&NULL_FAMILY, o..o + 4, family);
        }
        _ => return,
    }
    tree.close();
}

/// Ethernet frames are padded to this many bytes, and have four of FCS behind them.
const MIN_FRAME: usize = 60;

/// Where the packet behind a link header ends by its own word, counted in the frame.
fn payload_end(frame: &Frame<'_>, next: &Layer) -> Option<usize> {
    let o = next.start as usize;
    let word = |at: usize| Some(usize::from(u16::from_be_bytes(*frame.bytes.get(o + at..)?.first_chunk()?)));
    match next.kind {
        LayerKind::Ipv4 => word(2).filter(|n| *n > 0).map(|n| o + n),
        LayerKind::Ipv6 | LayerKind::Grh => word(4).filter(|n| *n > 0).map(|n| o + 40 + n),
        _ => None,
    }
}

/// What stands behind the network packet of an outermost Ethernet frame: padding, then what nobody knows, then perhaps
/// the FCS.
fn trailer<'a>(frame: &Frame<'a>, layer: &Layer, rest: &'static Field, tree: &mut Tree<'a>) {
    if !tree.wants_any(&[rest, &ETH_PADDING, &ETH_FCS, &ETH_FCS_STATUS]) {
        return;
    }
    let layers = frame.layers.as_slice();
    let Some(place) = layers.iter().position(|l| l == layer) else { return };
    if layers.iter().take(place).any(|l| !matches!(l.kind, LayerKind::Ethernet | LayerKind::Vlan | LayerKind::Erf)) {
        return;
    }
    let after = layer.start as usize + usize::from(layer.len);
    let mut above = layers.iter().skip(place + 1).skip_while(|l| l.kind == LayerKind::Mpls);
    let word = frame.bytes.get(after.saturating_sub(2)..).and_then(|b| b.first_chunk::<2>());
    let word = word.map_or(0, |b| u16::from_be_bytes(*b));
    let end = match above.next() {
        Some(next) if next.kind == LayerKind::Llc => Some(after + usize::from(word)),
        Some(next) => payload_end(frame, next),
        // ARP: eight bytes, then two addresses of each kind
        None if frame.carries == Carries::EtherType(0x0806) => match frame.bytes.get(after..).unwrap_or(&[]) {
            [_, _, _, _, hw, proto, ..] => Some(after + 8 + 2 * (usize::from(*hw) + usize::from(*proto))),
            _ => None,
        },
        None => None,
    };
    let Some(mut at) = end else { return };
    let total = frame.wire_len;
    let padding = MIN_FRAME.saturating_sub(at);
    if total >= MIN_FRAME
        && padding > 0
        && let Some(zeros) = frame.bytes.get(at..at + padding)
        && zeros.iter().all(|b| *b == 0)
    {
        tree.add(&ETH_PADDING, at..at + padding, zeros);
        at += padding;
    }
    // behind a tag nothing is taken for the FCS; the records of a capture card always have it
    let card = layers.first().is_some_and(|l| l.kind == LayerKind::Erf);
    let fcs = layer.kind == LayerKind::Ethernet && (card || total >= MIN_FRAME + 4) && total.saturating_sub(at) >= 4;
    let trailer_end = if fcs { total - 4 } else { total };
    let there = frame.slice(at..trailer_end);
    if !there.is_empty() {
        tree.add(rest, at..at + there.len(), there);
    }
    if fcs && let Some(b) = frame.bytes.get(total - 4..).and_then(|b| b.first_chunk::<4>()) {
        tree.open(&ETH_FCS, total - 4..total, u32::from_be_bytes(*b));
        tree.derive(&ETH_FCS_STATUS, 2u8);
        tree.close();
    }
}

fn mac(a: [u8; 6]) -> String {
    let [first, rest @ ..] = a;
    rest.iter().fold(format!("{first:02x}"), |text, b| format!("{text}:{b:02x}"))
}
