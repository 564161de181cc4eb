//! What RoCE may be wrapped in: MPLS, PPPoE, GRE, ERSPAN, VXLAN, GENEVE, ERF records.

use super::Tree;
use crate::frame::LayerKind;
use crate::wire::bytes::{be16, be24, be32, u8_at};

/// Group of these fields.
pub const GROUP: u16 = 5;

fn gre_name(v: u64) -> Option<std::borrow::Cow<'static, str>> {
    match v {
        0x0800 => Some("IP".into()),
        0x86dd => Some("IPv6".into()),
        0x6558 => Some("Transparent Ethernet bridging".into()),
        0x88be => Some("ERSPAN".into()),
        0x22eb => Some("ERSPAN type III".into()),
        _ => None,
    }
}

crate::fields! {
    group 5;
    MPLS "mpls" "MultiProtocol Label Switching Header" None Dec {} "MPLS label stack entry.";
    MPLS_LABEL "mpls.label" "MPLS Label" U24 Dec { mask: 0xffff_f000 } "Label.";
    MPLS_EXP "mpls.exp" "MPLS Experimental Bits" U8 Dec { mask: 0x0000_0e00 } "Traffic class.";
    MPLS_BOTTOM "mpls.bottom" "MPLS Bottom Of Label Stack" U8 Dec { mask: 0x0000_0100 } "1: the last label.";
    MPLS_TTL "mpls.ttl" "MPLS TTL" U8 Dec { mask: 0x0000_00ff } "Hops left.";
    PPPOE "pppoes" "PPP-over-Ethernet Session" None Dec {} "PPPoE header.";
    PPPOE_SESSION "pppoe.session_id" "Session ID" U16 Hex {} "Session.";
    GRE "gre" "Generic Routing Encapsulation" None Dec {} "GRE header.";
    GRE_PROTO "gre.proto" "Protocol Type" U16 Hex { names: Some(gre_name) } "EtherType of the data.";
    GRE_KEY "gre.key" "Key" U32 Hex {} "Key; NVGRE keeps its network number in the upper 24 bits.";
    ERSPAN "erspan" "Encapsulated Remote Switch Packet ANalysis" None Dec {} "ERSPAN header of a mirrored packet.";
    ERSPAN_VERSION "erspan.version" "Version" U16 Dec { mask: 0xf000 } "1: type II, 2: type III.";
    ERSPAN_VLAN "erspan.vlan" "Vlan" U16 Dec { mask: 0x0fff } "VLAN of the mirrored port.";
    ERSPAN_SPANID "erspan.spanid" "SpanID" U16 Dec { mask: 0x03ff } "Session of the mirror.";
    VXLAN "vxlan" "Virtual eXtensible Local Area Network" None Dec {} "VXLAN header.";
    VXLAN_FLAGS "vxlan.flags" "Flags" U16 Hex {} "Flags; 0x0800: the VNI counts.";
    VXLAN_VNI "vxlan.vni" "VXLAN Network Identifier (VNI)" U24 Dec {} "Network number.";
    GENEVE "geneve" "Generic Network Virtualization Encapsulation" None Dec {} "GENEVE header.";
    GENEVE_VNI "geneve.vni" "Virtual Network Identifier (VNI)" U24 Hex {} "Network number.";
    GENEVE_PROTO "geneve.proto_type" "Protocol Type" U16 Hex {} "EtherType of the data.";
    ERF "erf" "Extensible Record Format" None Dec {} "Record header of an Endace capture card.";
    ERF_TYPE "erf.types.type" "type" U8 Dec { mask: 0x7f } "Record type: 2 Ethernet, 21 InfiniBand.";
    ERF_RLEN "erf.rlen" "record length" U16 Dec {} "Bytes of the record.";
    ERF_WLEN "erf.wlen" "wire length" U16 Dec {} "Bytes on the wire.";
}

/// Adds the fields of one such header that starts at `o`.
pub fn build<'a>(kind: LayerKind, o: usize, bytes: &'a [u8], tree: &mut Tree<'a>) {
    let end = o + bytes.len();
    match kind {
        LayerKind::Mpls => {
            let Some(h) = bytes.first_chunk::<4>() else { return };
            let word = be32::<0, 4>(h);
            tree.open_header(&MPLS, o..end);
            tree.label(&MPLS, || {
                format!(
                    "{}, Label: {}, Exp: {}, S: {}, TTL: {}",
                    MPLS.title,
                    word >> 12,
                    (word >> 9) & 7,
                    (word >> 8) & 1,
                    word & 0xff
                )
            });
            tree.add(&MPLS_LABEL, o..o + 4, word >> 12);
            tree.add(&MPLS_EXP, o..o + 4, (word >> 9) & 7);
            tree.add(&MPLS_BOTTOM, o..o + 4, (word >> 8) & 1);
            tree.add(&MPLS_TTL, o..o + 4, word & 0xff);
        }
        LayerKind::Pppoe => {
            let Some(h) = bytes.first_chunk::<6>() else { return };
            tree.open_header(&PPPOE, o..end);
            tree.add(&PPPOE_SESSION, o + 2..o + 4, be16::<2, 6>(h));
        }
        LayerKind::Gre => {
            let Some(h) = bytes.first_chunk::<4>() else { return };
            let flags = be16::<0, 4>(h);
            tree.open_header(&GRE, o..end);
            tree.label(&GRE, || {
                let what = be16::<2, 4>(h);
                match gre_name(what.into()) {
                    Some(name) => format!("{} ({name})", GRE.title),
                    None => format!("{} ({what:#06x})", GRE.title),
                }
            });
            tree.add(&GRE_PROTO, o + 2..o + 4, be16::<2, 4>(h));
            // the checksum word, if there is one, comes before the key
            let key = if flags & 0xc000 != 0 { 8 } else { 4 };
            if flags & 0x2000 != 0
                && let Some(k) = bytes.get(key..).and_then(|b| b.first_chunk::<4>())
            {
                tree.add(&GRE_KEY, o + key..o + key + 4, be32::<0, 4>(k));
            }
        }
        LayerKind::Erspan => {
            let Some(h) = bytes.first_chunk::<8>() else { return };
            tree.open_header(&ERSPAN, o..end);
            tree.label(&ERSPAN, || {
                let version = if be16::<0, 8>(h) >> 12 == 2 { "III" } else { "II" };
                format!("{} Type {version}", ERSPAN.title)
            });
            tree.add(&ERSPAN_VERSION, o..o + 2, be16::<0, 8>(h) >> 12);
            tree.add(&ERSPAN_VLAN, o..o + 2, be16::<0, 8>(h) & 0x0fff);
            tree.add(&ERSPAN_SPANID, o + 2..o + 4, be16::<2, 8>(h) & 0x03ff);
        }
        LayerKind::Vxlan => {
            let Some(h) = bytes.first_chunk::<8>() else { return };
            tree.open_header(&VXLAN, o..end);
            tree.add(&VXLAN_FLAGS, o..o + 2, be16::<0, 8>(h));
            tree.add(&VXLAN_VNI, o + 4..o + 7, be24::<4, 8>(h));
        }
        LayerKind::Geneve => {
            let Some(h) = bytes.first_chunk::<8>() else { return };
            tree.open_header(&GENEVE, o..end);
            tree.label(&GENEVE, || format!("{}, VNI: {:#08x}", GENEVE.title, be24::<4, 8>(h)));
            tree.add(&GENEVE_PROTO, o + 2..o + 4, be16::<2, 8>(h));
            tree.add(&GENEVE_VNI, o + 4..o + 7, be24::<4, 8>(h));
        }
        LayerKind::Erf => {
            let Some(h) = bytes.first_chunk::<16>() else { return };
            tree.open_header(&ERF, o..end);
            tree.add(&ERF_TYPE, o + 8..o + 9, u8_at::<8, 16>(h) & 0x7f);
            tree.add(&ERF_RLEN, o + 10..o + 12, be16::<10, 16>(h));
            tree.add(&ERF_WLEN, o + 14..o + 16, be16::<14, 16>(h));
        }
        _ => return,
    }
    tree.close();
}
