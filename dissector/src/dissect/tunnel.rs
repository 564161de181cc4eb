//! What RoCE may be wrapped in: MPLS, PPPoE, GRE, ERSPAN, VXLAN, GENEVE, ERF records.

use super::Tree;
use super::table::{self, Row, number, part};
use crate::frame::LayerKind;
use crate::wire::bytes::{be16, be24, be32, padded, u8_at};

/// Group of these fields.
pub const GROUP: u16 = 5;

fn gre_name(v: u64) -> Option<std::borrow::Cow<'static, str>> {
    match v {
        0x0800 => Some("IP".into()),
        0x86dd => Some("IPv6".into()),
        0x6558 => Some("Transparent Ethernet bridging".into()),
        0x88be => Some("ERSPAN".into()),
        0x22eb => Some("ERSPAN III".into()),
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
    PPPOE_VERSION "pppoe.version" "Version" U8 Dec { mask: 0xf0 } "1.";
    PPPOE_TYPE "pppoe.type" "Type" U8 Dec { mask: 0x0f } "1.";
    PPPOE_CODE "pppoe.code" "Code" U8 Hex {} "0: session data.";
    PPPOE_SESSION "pppoe.session_id" "Session ID" U16 Hex {} "Session.";
    PPPOE_LENGTH "pppoe.payload_length" "Payload Length" U16 Dec {} "Bytes behind the header, the PPP protocol included.";
    GRE "gre" "Generic Routing Encapsulation" None Dec {} "GRE header.";
    GRE_FLAGS "gre.flags_and_version" "Flags and Version" U16 Hex {} "What optional words follow.";
    GRE_FLAG_CHECKSUM "gre.flags.checksum" "Checksum Bit" Bool Dec { mask: 0x8000 } "A checksum follows.";
    GRE_FLAG_ROUTING "gre.flags.routing" "Routing Bit" Bool Dec { mask: 0x4000 } "Routes follow.";
    GRE_FLAG_KEY "gre.flags.key" "Key Bit" Bool Dec { mask: 0x2000 } "A key follows.";
    GRE_FLAG_SEQUENCE "gre.flags.sequence_number" "Sequence Number Bit" Bool Dec { mask: 0x1000 } "A sequence number follows.";
    GRE_VERSION "gre.flags.version" "Version" U16 Dec { mask: 0x0007 } "0.";
    GRE_PROTO "gre.proto" "Protocol Type" U16 Hex { names: Some(gre_name) } "EtherType of the data.";
    GRE_CHECKSUM "gre.checksum" "Checksum" U16 Hex {} "Checksum; it is not verified.";
    GRE_OFFSET "gre.offset" "Offset" U16 Dec {} "Offset of the route.";
    GRE_KEY "gre.key" "Key" U32 Hex {} "Key; NVGRE keeps its network number in the upper 24 bits.";
    GRE_SEQUENCE "gre.sequence_number" "Sequence Number" U32 Dec {} "Sequence number: what a mirror lost.";
    ERSPAN "erspan" "Encapsulated Remote Switch Packet ANalysis" None Dec {} "ERSPAN header of a mirrored packet.";
    ERSPAN_VERSION "erspan.version" "Version" U16 Dec { mask: 0xf000 } "1: type II, 2: type III.";
    ERSPAN_VLAN "erspan.vlan" "Vlan" U16 Dec { mask: 0x0fff } "VLAN of the mirrored port.";
    ERSPAN_COS "erspan.cos" "COS" U16 Dec { mask: 0xe000 } "Class of service of the mirrored packet.";
    ERSPAN_ENCAP "erspan.encap" "Encap" U16 Dec { mask: 0x1800 } "How the mirrored packet was tagged (type II).";
    ERSPAN_BSO "erspan.bso" "Bad/Short/Oversized" U16 Dec { mask: 0x1800 } "What was wrong with the mirrored packet (type III).";
    ERSPAN_TRUNCATED "erspan.truncated" "Truncated" U16 Dec { mask: 0x0400 } "The switch cut the mirrored packet.";
    ERSPAN_SPANID "erspan.spanid" "SpanID" U16 Dec { mask: 0x03ff } "Session of the mirror.";
    ERSPAN_RESERVED "erspan.reserved" "Reserved" U32 Dec { mask: 0xfff0_0000 } "Reserved (type II).";
    ERSPAN_INDEX "erspan.index" "Index" U32 Dec { mask: 0x000f_ffff } "Port that was mirrored (type II).";
    ERSPAN_TIMESTAMP "erspan.timestamp" "Timestamp" U32 Dec {} "When the switch saw the packet (type III).";
    ERSPAN_SGT "erspan.sgt" "Security Group Tag" U16 Dec {} "Security group (type III).";
    ERSPAN_P "erspan.p" "Has Ethernet PDU" U16 Dec { mask: 0x8000 } "An Ethernet frame is carried (type III).";
    ERSPAN_FT "erspan.ft" "Frame Type" U16 Dec { mask: 0x7c00 } "0 Ethernet, 2 IP (type III).";
    ERSPAN_HW "erspan.hw" "Hardware ID" U16 Dec { mask: 0x03f0 } "Which part of the switch (type III).";
    ERSPAN_DIRECTION "erspan.direction" "Direction" Bool Dec { mask: 0x0008 } "0 ingress, 1 egress (type III).";
    ERSPAN_GRA "erspan.gra" "Timestamp granularity" U16 Dec { mask: 0x0006 } "Unit of the timestamp (type III).";
    ERSPAN_O "erspan.o" "Optional Sub headers" U16 Dec { mask: 0x0001 } "A further header follows (type III).";
    VXLAN "vxlan" "Virtual eXtensible Local Area Network" None Dec {} "VXLAN header.";
    VXLAN_FLAGS "vxlan.flags" "Flags" U16 Hex {} "Flags; 0x0800: the VNI counts.";
    VXLAN_FLAG_G "vxlan.flag_g" "GBP Extension" Bool Dec { mask: 0x8000 } "The group policy counts.";
    VXLAN_FLAG_I "vxlan.flag_i" "VXLAN Network ID (VNI)" Bool Dec { mask: 0x0800 } "The VNI counts.";
    VXLAN_FLAG_D "vxlan.flag_d" "Don't Learn" Bool Dec { mask: 0x0040 } "The receiver shall not learn the source.";
    VXLAN_FLAG_A "vxlan.flag_a" "Policy Applied" Bool Dec { mask: 0x0008 } "The group policy was applied.";
    VXLAN_GBP "vxlan.gbp" "Group Policy ID" U16 Dec {} "Group policy.";
    VXLAN_VNI "vxlan.vni" "VXLAN Network Identifier (VNI)" U24 Dec {} "Network number.";
    GENEVE "geneve" "Generic Network Virtualization Encapsulation" None Dec {} "GENEVE header.";
    GENEVE_VERSION "geneve.version" "Version" U8 Dec { mask: 0xc0 } "0.";
    GENEVE_FLAGS "geneve.flags" "Flags" U8 Hex {} "Flags.";
    GENEVE_OAM "geneve.flags.oam" "Operations, Administration and Management Frame" Bool Dec { mask: 0x80 } "A control packet.";
    GENEVE_CRITICAL "geneve.flags.critical" "Critical Options Present" Bool Dec { mask: 0x40 } "Options that the receiver must understand.";
    GENEVE_PROTO "geneve.proto_type" "Protocol Type" U16 Hex {} "EtherType of the data.";
    GENEVE_VNI "geneve.vni" "Virtual Network Identifier (VNI)" U24 Hex {} "Network number.";
    GENEVE_OPTIONS "geneve.options" "Options" Bytes Dec {} "All options.";
    PPP "ppp" "Point-to-Point Protocol" None Dec {} "PPP header.";
    CHDLC "chdlc" "Cisco HDLC" None Dec {} "Cisco HDLC header.";
    NFLOG "nflog" "Linux Netfilter NFLOG" None Dec {} "Head of a record of the kernel's packet filter.";
    BACKBONE "ieee8021ah" "IEEE 802.1ah" None Dec {} "Tag of a provider's backbone.";
    NSH "nsh" "Network Service Header" None Dec {} "Header of a chain of services.";
    NSH_VERSION "nsh.version" "Version" U16 Dec { mask: 0xc000 } "0.";
    NSH_OAM "nsh.Obit" "O Bit" U16 Dec { mask: 0x2000 } "A control packet.";
    NSH_TTL "nsh.ttl" "Time to live" U16 Hex { mask: 0x0fc0 } "Hops left.";
    NSH_LENGTH "nsh.length" "Length" U16 Dec { mask: 0x003f } "Words of four bytes in this header.";
    NSH_MDTYPE "nsh.mdtype" "MD Type" U8 Dec {} "1: four context words, 2: fields of their own lengths.";
    NSH_NEXT "nsh.nextproto" "Next Protocol" U8 Dec {} "1 IPv4, 2 IPv6, 3 Ethernet, 4 NSH, 5 MPLS.";
    NSH_SPI "nsh.spi" "SPI" U24 Dec {} "Path through the services.";
    NSH_SI "nsh.si" "SI" U8 Dec {} "Place on the path.";
    HSR "hsr" "High-availability Seamless Redundancy (IEC62439 Part 3)" None Dec {} "Tag of a seamless ring.";
    CISCO_META "cmd" "Cisco MetaData" None Dec {} "Tag with a security group.";
    TZSP "tzsp" "Tazmen Sniffer Protocol" None Dec {} "Header of a mirrored frame.";
    GTP "gtp" "GPRS Tunneling Protocol" None Dec {} "GTP-U header.";
    ERF "erf" "Extensible Record Format" None Dec {} "Record header of an Endace capture card.";
    ERF_TYPE "erf.types.type" "type" U8 Dec { mask: 0x7f } "Record type: 2 Ethernet, 21 InfiniBand.";
    ERF_FLAGS "erf.flags" "Flags" U8 Hex {} "Port and errors of the record.";
    ERF_CAP "erf.flags.cap" "Capture interface" U8 Dec { mask: 0x03 } "Port of the card.";
    ERF_TRUNC "erf.flags.trunc" "Truncated" U8 Dec { mask: 0x08 } "The card had no room for the whole packet.";
    ERF_RXE "erf.flags.rxe" "RX error" U8 Dec { mask: 0x10 } "The packet came with an error.";
    ERF_RLEN "erf.rlen" "record length" U16 Dec {} "Bytes of the record.";
    ERF_LCTR "erf.lctr" "Loss counter" U16 Dec {} "Packets that the card lost before this one.";
    ERF_WLEN "erf.wlen" "wire length" U16 Dec {} "Bytes on the wire.";
}

/// Bytes of the PPPoE header, without the PPP protocol word.
const PPPOE_LEN: usize = 6;

static PPPOE_ROWS: &[Row] = &[
    part(&PPPOE_VERSION, 0, 0, 4),
    part(&PPPOE_TYPE, 0, 4, 4),
    number(&PPPOE_CODE, 1, 8),
    number(&PPPOE_SESSION, 2, 16),
    number(&PPPOE_LENGTH, 4, 16),
];

static NSH_ROWS: &[Row] = &[
    part(&NSH_VERSION, 0, 0, 2),
    part(&NSH_OAM, 0, 2, 1),
    part(&NSH_TTL, 0, 4, 6),
    part(&NSH_LENGTH, 1, 2, 6),
    number(&NSH_MDTYPE, 2, 8),
    number(&NSH_NEXT, 3, 8),
    number(&NSH_SPI, 4, 24),
    number(&NSH_SI, 7, 8),
];

static GRE_ROWS: &[Row] = &[
    number(&GRE_FLAGS, 0, 16),
    part(&GRE_FLAG_CHECKSUM, 0, 0, 1),
    part(&GRE_FLAG_ROUTING, 0, 1, 1),
    part(&GRE_FLAG_KEY, 0, 2, 1),
    part(&GRE_FLAG_SEQUENCE, 0, 3, 1),
    part(&GRE_VERSION, 1, 5, 3),
    number(&GRE_PROTO, 2, 16),
];

static ERSPAN_ROWS: &[Row] =
    &[part(&ERSPAN_VERSION, 0, 0, 4), part(&ERSPAN_VLAN, 0, 4, 12), part(&ERSPAN_COS, 2, 0, 3)];

static ERSPAN_II_ROWS: &[Row] = &[
    part(&ERSPAN_ENCAP, 2, 3, 2),
    part(&ERSPAN_TRUNCATED, 2, 5, 1),
    part(&ERSPAN_SPANID, 2, 6, 10),
    part(&ERSPAN_RESERVED, 4, 0, 12),
    part(&ERSPAN_INDEX, 5, 4, 20),
];

static ERSPAN_III_ROWS: &[Row] = &[
    part(&ERSPAN_BSO, 2, 3, 2),
    part(&ERSPAN_TRUNCATED, 2, 5, 1),
    part(&ERSPAN_SPANID, 2, 6, 10),
    number(&ERSPAN_TIMESTAMP, 4, 32),
    number(&ERSPAN_SGT, 8, 16),
    part(&ERSPAN_P, 10, 0, 1),
    part(&ERSPAN_FT, 10, 1, 5),
    part(&ERSPAN_HW, 10, 6, 6),
    part(&ERSPAN_DIRECTION, 11, 4, 1),
    part(&ERSPAN_GRA, 11, 5, 2),
    part(&ERSPAN_O, 11, 7, 1),
];

static VXLAN_ROWS: &[Row] = &[
    number(&VXLAN_FLAGS, 0, 16),
    part(&VXLAN_FLAG_G, 0, 0, 1),
    part(&VXLAN_FLAG_I, 0, 4, 1),
    part(&VXLAN_FLAG_D, 1, 1, 1),
    part(&VXLAN_FLAG_A, 1, 4, 1),
    number(&VXLAN_GBP, 2, 16),
    number(&VXLAN_VNI, 4, 24),
];

static GENEVE_ROWS: &[Row] = &[
    part(&GENEVE_VERSION, 0, 0, 2),
    number(&GENEVE_FLAGS, 1, 8),
    part(&GENEVE_OAM, 1, 0, 1),
    part(&GENEVE_CRITICAL, 1, 1, 1),
    number(&GENEVE_PROTO, 2, 16),
    number(&GENEVE_VNI, 4, 24),
];

static ERF_ROWS: &[Row] = &[
    part(&ERF_TYPE, 8, 1, 7),
    number(&ERF_FLAGS, 9, 8),
    part(&ERF_CAP, 9, 6, 2),
    part(&ERF_TRUNC, 9, 4, 1),
    part(&ERF_RXE, 9, 3, 1),
    number(&ERF_RLEN, 10, 16),
    number(&ERF_LCTR, 12, 16),
    number(&ERF_WLEN, 14, 16),
];

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
            tree.open_header(&PPPOE, o..end);
            table::add(PPPOE_ROWS, bytes, o, tree);
            if bytes.len() > PPPOE_LEN {
                tree.close();
                tree.open_header(&PPP, o + PPPOE_LEN..end);
            }
        }
        LayerKind::Gre => gre(o, bytes, tree),
        LayerKind::Erspan => {
            let h = &padded::<8>(bytes);
            let three = u8_at::<0, 8>(h) >> 4 == 2;
            tree.open_header(&ERSPAN, o..end);
            tree.label(&ERSPAN, || format!("{} Type {}", ERSPAN.title, if three { "III" } else { "II" }));
            table::add(ERSPAN_ROWS, bytes, o, tree);
            table::add(if three { ERSPAN_III_ROWS } else { ERSPAN_II_ROWS }, bytes, o, tree);
        }
        LayerKind::Vxlan => {
            tree.open_header(&VXLAN, o..end);
            table::add(VXLAN_ROWS, bytes, o, tree);
        }
        LayerKind::Geneve => {
            let h = &padded::<8>(bytes);
            tree.open_header(&GENEVE, o..end);
            tree.label(&GENEVE, || {
                let oam = if u8_at::<1, 8>(h) & 0x80 != 0 { ", OAM" } else { "" };
                format!("{}, VNI: {:#08x}{oam}", GENEVE.title, be24::<4, 8>(h))
            });
            table::add(GENEVE_ROWS, bytes, o, tree);
            if let Some(options) = bytes.get(8..).filter(|o| !o.is_empty()) {
                tree.add(&GENEVE_OPTIONS, o + 8..end, options);
            }
        }
        LayerKind::Ppp => tree.open_header(&PPP, o..end),
        LayerKind::Chdlc => tree.open_header(&CHDLC, o..end),
        LayerKind::Nflog => tree.open_header(&NFLOG, o..end),
        LayerKind::Backbone => tree.open_header(&BACKBONE, o..end),
        LayerKind::Nsh => {
            tree.open_header(&NSH, o..end);
            table::add(NSH_ROWS, bytes, o, tree);
        }
        LayerKind::Hsr => tree.open_header(&HSR, o..end),
        LayerKind::CiscoMeta => tree.open_header(&CISCO_META, o..end),
        LayerKind::Tzsp => {
            tree.open_header(&TZSP, o..end);
            tree.label(&TZSP, || "TZSP: Ethernet ".to_owned());
        }
        LayerKind::Gtp => tree.open_header(&GTP, o..end),
        LayerKind::Erf => {
            tree.open_header(&ERF, o..end);
            table::add(ERF_ROWS, bytes, o, tree);
        }
        _ => return,
    }
    tree.close();
}

fn gre<'a>(o: usize, bytes: &'a [u8], tree: &mut Tree<'a>) {
    tree.open_header(&GRE, o..o + bytes.len());
    let h = &padded::<4>(bytes);
    let (flags, what) = (be16::<0, 4>(h), be16::<2, 4>(h));
    tree.label(&GRE, || match gre_name(what.into()) {
        Some(name) => format!("{} ({name})", GRE.title),
        None => format!("{} ({what:#06x})", GRE.title),
    });
    table::add(GRE_ROWS, bytes, o, tree);
    // checksum with offset, key, sequence number: each only if its flag is set
    let mut at = 4;
    if flags & 0xc000 != 0 {
        table::add_shifted(&[number(&GRE_CHECKSUM, 0, 16), number(&GRE_OFFSET, 2, 16)], at, bytes, o, tree);
        at += 4;
    }
    for (flag, field) in [(0x2000, &GRE_KEY), (0x1000, &GRE_SEQUENCE)] {
        if flags & flag != 0 {
            table::add_shifted(&[number(field, 0, 32)], at, bytes, o, tree);
            at += 4;
        }
    }
}
