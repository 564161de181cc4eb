//! Protocols beside RoCE: ARP, ICMP, IGMP, TCP, MAC control with the fields that filters ask for, the rest by name.
//!
//! A filter such as `!(arp or icmp) and infiniband` must mean what it means elsewhere. What announces a protocol
//! (EtherType, LLC, IP protocol, port) stands once, in [`NAMED`]; text about such packets is [`crate::frame::Aside`]'s.

use super::{Field, Input, Tree, Value};
use crate::frame::{Carries, Frame, Net, NetKind};
use crate::wire::bytes::{be16, be32, part, u8_at};

/// Group of these fields.
pub const GROUP: u16 = 19;

fn arp_name(v: u64) -> Option<std::borrow::Cow<'static, str>> {
    match v {
        1 => Some("request".into()),
        2 => Some("reply".into()),
        3 => Some("reverse request".into()),
        4 => Some("reverse reply".into()),
        _ => None,
    }
}

fn macc_name(v: u64) -> Option<std::borrow::Cow<'static, str>> {
    match v {
        0x0001 => Some("Pause".into()),
        0x0101 => Some("Class Based Flow Control [CBFC] Pause".into()),
        _ => None,
    }
}

fn status_name(v: u64) -> Option<std::borrow::Cow<'static, str>> {
    Some(["Bad", "Good", "Unverified", "Not present"].get(usize::try_from(v).ok()?).copied()?.into())
}

crate::fields! {
    group 19;
    ARP "arp" "Address Resolution Protocol" None Dec {} "ARP packet.";
    ARP_HW_TYPE "arp.hw.type" "Hardware type" U16 Dec {} "1: Ethernet.";
    ARP_PROTO_TYPE "arp.proto.type" "Protocol type" U16 Hex {} "0x0800: IPv4.";
    ARP_HW_SIZE "arp.hw.size" "Hardware size" U8 Dec {} "Bytes of a hardware address.";
    ARP_PROTO_SIZE "arp.proto.size" "Protocol size" U8 Dec {} "Bytes of a protocol address.";
    ARP_OPCODE "arp.opcode" "Opcode" U16 Dec { names: Some(arp_name) } "1 request, 2 reply.";
    ARP_GRATUITOUS "arp.isgratuitous" "Is gratuitous" Bool Dec {} "Sender and target are the same address. Present only if so.";
    ARP_PROBE "arp.isprobe" "Is probe" Bool Dec {} "A request whose sender has no address yet. Present only if so.";
    ARP_ANNOUNCEMENT "arp.isannouncement" "Is announcement" Bool Dec {} "A gratuitous request. Present only if so.";
    ARP_SRC_MAC "arp.src.hw_mac" "Sender MAC address" Ether Dec {} "Sender's MAC address.";
    ARP_SRC_IP "arp.src.proto_ipv4" "Sender IP address" Ipv4 Dec {} "Sender's address.";
    ARP_DST_MAC "arp.dst.hw_mac" "Target MAC address" Ether Dec {} "Target's MAC address.";
    ARP_DST_IP "arp.dst.proto_ipv4" "Target IP address" Ipv4 Dec {} "Target's address.";
    ICMP "icmp" "Internet Control Message Protocol" None Dec {} "ICMP message.";
    ICMP_TYPE "icmp.type" "Type" U8 Dec {} "Kind of message: 3 unreachable, 8 and 0 echo, 11 time exceeded.";
    ICMP_CODE "icmp.code" "Code" U8 Dec {} "What exactly; 4 of type 3: fragmentation needed.";
    ICMP_CHECKSUM "icmp.checksum" "Checksum" U16 Hex {} "Checksum of the message.";
    ICMP_CHECKSUM_STATUS "icmp.checksum.status" "Checksum Status" U8 Dec { names: Some(status_name) } "0 bad, 1 good, 2 not all of it captured.";
    ICMP_IDENT "icmp.ident" "Identifier (BE)" U16 Dec {} "Identifier of an echo.";
    ICMP_IDENT_LE "icmp.ident_le" "Identifier (LE)" U16 Dec {} "The same, read little-endian.";
    ICMP_SEQ "icmp.seq" "Sequence Number (BE)" U16 Dec {} "Number of an echo.";
    ICMP_SEQ_LE "icmp.seq_le" "Sequence Number (LE)" U16 Dec {} "The same, read little-endian.";
    ICMP_MTU "icmp.mtu" "MTU of next hop" U16 Dec {} "What a router lets through, in type 3, code 4.";
    ICMPV6 "icmpv6" "Internet Control Message Protocol v6" None Dec {} "ICMPv6 message.";
    ICMPV6_TYPE "icmpv6.type" "Type" U8 Dec {} "Kind of message: 1 unreachable, 2 too big, 128 and 129 echo, 133 to 137 neighbour discovery.";
    ICMPV6_CODE "icmpv6.code" "Code" U8 Dec {} "What exactly.";
    ICMPV6_CHECKSUM "icmpv6.checksum" "Checksum" U16 Hex {} "Checksum of the message.";
    ICMPV6_CHECKSUM_STATUS "icmpv6.checksum.status" "Checksum Status" U8 Dec { names: Some(status_name) } "0 bad, 1 good, 2 not all of it captured.";
    ICMPV6_MTU "icmpv6.mtu" "MTU" U32 Dec {} "What a router lets through, in type 2.";
    ICMPV6_IDENT "icmpv6.echo.identifier" "Identifier" U16 Hex {} "Identifier of an echo.";
    ICMPV6_SEQ "icmpv6.echo.sequence_number" "Sequence" U16 Dec {} "Number of an echo.";
    ICMPV6_NS "icmpv6.nd.ns.target_address" "Target Address" Ipv6 Dec {} "Who is asked for.";
    ICMPV6_NA "icmpv6.nd.na.target_address" "Target Address" Ipv6 Dec {} "Who answers.";
    IGMP "igmp" "Internet Group Management Protocol" None Dec {} "IGMP message.";
    IGMP_TYPE "igmp.type" "Type" U8 Hex {} "Kind of message: 0x11 query, 0x16 and 0x22 report, 0x17 leave.";
    IGMP_CHECKSUM "igmp.checksum" "Checksum" U16 Hex {} "Checksum of the message.";
    IGMP_CHECKSUM_STATUS "igmp.checksum.status" "Checksum Status" U8 Dec { names: Some(status_name) } "0 bad, 1 good, 2 not all of it captured.";
    TCP "tcp" "Transmission Control Protocol" None Dec {} "TCP segment.";
    TCP_SRCPORT "tcp.srcport" "Source Port" U16 Dec {} "Source port.";
    TCP_DSTPORT "tcp.dstport" "Destination Port" U16 Dec {} "Destination port.";
    TCP_PORT "tcp.port" "Source or Destination Port" U16 Dec { hidden: true } "Source or destination port.";
    TCP_LEN "tcp.len" "TCP Segment Len" U32 Dec {} "Bytes of data.";
    TCP_SEQ "tcp.seq_raw" "Sequence Number (raw)" U32 Dec {} "Sequence number as it stands in the packet.";
    TCP_ACK "tcp.ack_raw" "Acknowledgment number (raw)" U32 Dec {} "Acknowledge number as it stands in the packet.";
    TCP_HDR_LEN "tcp.hdr_len" "Header Length" U8 Dec { mask: 0xf0 } "Bytes of the header, options included.";
    TCP_FLAGS "tcp.flags" "Flags" U16 Hex { mask: 0x0fff } "All flags.";
    TCP_FLAGS_RES "tcp.flags.res" "Reserved" Bool Dec { mask: 0x0e00 } "Reserved.";
    TCP_FLAGS_AE "tcp.flags.ae" "Accurate ECN" Bool Dec { mask: 0x0100 } "Accurate ECN.";
    TCP_FLAGS_CWR "tcp.flags.cwr" "Congestion Window Reduced" Bool Dec { mask: 0x0080 } "Congestion window reduced.";
    TCP_FLAGS_ECE "tcp.flags.ece" "ECN-Echo" Bool Dec { mask: 0x0040 } "ECN echo.";
    TCP_FLAGS_URG "tcp.flags.urg" "Urgent" Bool Dec { mask: 0x0020 } "The urgent pointer counts.";
    TCP_FLAGS_ACK "tcp.flags.ack" "Acknowledgment" Bool Dec { mask: 0x0010 } "The acknowledge number counts.";
    TCP_FLAGS_PUSH "tcp.flags.push" "Push" Bool Dec { mask: 0x0008 } "To be given to the application at once.";
    TCP_FLAGS_RESET "tcp.flags.reset" "Reset" Bool Dec { mask: 0x0004 } "The connection is refused or broken off.";
    TCP_FLAGS_SYN "tcp.flags.syn" "Syn" Bool Dec { mask: 0x0002 } "The connection begins.";
    TCP_FLAGS_FIN "tcp.flags.fin" "Fin" Bool Dec { mask: 0x0001 } "No more data follow.";
    TCP_FLAGS_STR "tcp.flags.str" "TCP Flags" Str Dec {} "The flags as letters.";
    TCP_WINDOW "tcp.window_size_value" "Window" U16 Dec {} "Window, not scaled.";
    TCP_CHECKSUM "tcp.checksum" "Checksum" U16 Hex {} "Checksum of the segment.";
    TCP_CHECKSUM_STATUS "tcp.checksum.status" "Checksum Status" U8 Dec { names: Some(status_name) } "Always 2, unverified, as tshark's default is.";
    TCP_URGENT "tcp.urgent_pointer" "Urgent Pointer" U16 Dec {} "Where urgent data end.";
    TCP_OPTIONS "tcp.options" "TCP Option" Bytes Dec {} "Options.";
    TCP_PAYLOAD "tcp.payload" "TCP payload" Bytes Dec {} "Data of the segment.";
    MACC "macc" "MAC Control" None Dec {} "MAC control frame: PAUSE or priority flow control.";
    MACC_OPCODE "macc.opcode" "Opcode" U16 Hex { names: Some(macc_name) } "0x0001 PAUSE, 0x0101 priority flow control.";
    MACC_PAUSE_TIME "macc.pause_time" "Pause Time" U16 Dec {} "Quanta of 512 bit times; 0 resumes.";
    MACC_ENBV "macc.cbfc.enbv" "CBFC Class Enable Vector" U16 Hex {} "Bit n: the time of priority n counts.";
    MACC_ENBV_C0 "macc.cbfc.enbv.c0" "C0" Bool Dec { mask: 0x0001 } "The time of priority 0 counts.";
    MACC_ENBV_C1 "macc.cbfc.enbv.c1" "C1" Bool Dec { mask: 0x0002 } "The time of priority 1 counts.";
    MACC_ENBV_C2 "macc.cbfc.enbv.c2" "C2" Bool Dec { mask: 0x0004 } "The time of priority 2 counts.";
    MACC_ENBV_C3 "macc.cbfc.enbv.c3" "C3" Bool Dec { mask: 0x0008 } "The time of priority 3 counts.";
    MACC_ENBV_C4 "macc.cbfc.enbv.c4" "C4" Bool Dec { mask: 0x0010 } "The time of priority 4 counts.";
    MACC_ENBV_C5 "macc.cbfc.enbv.c5" "C5" Bool Dec { mask: 0x0020 } "The time of priority 5 counts.";
    MACC_ENBV_C6 "macc.cbfc.enbv.c6" "C6" Bool Dec { mask: 0x0040 } "The time of priority 6 counts.";
    MACC_ENBV_C7 "macc.cbfc.enbv.c7" "C7" Bool Dec { mask: 0x0080 } "The time of priority 7 counts.";
    MACC_C0 "macc.cbfc.pause_time.c0" "C0" U16 Dec {} "Quanta for priority 0.";
    MACC_C1 "macc.cbfc.pause_time.c1" "C1" U16 Dec {} "Quanta for priority 1.";
    MACC_C2 "macc.cbfc.pause_time.c2" "C2" U16 Dec {} "Quanta for priority 2.";
    MACC_C3 "macc.cbfc.pause_time.c3" "C3" U16 Dec {} "Quanta for priority 3.";
    MACC_C4 "macc.cbfc.pause_time.c4" "C4" U16 Dec {} "Quanta for priority 4.";
    MACC_C5 "macc.cbfc.pause_time.c5" "C5" U16 Dec {} "Quanta for priority 5.";
    MACC_C6 "macc.cbfc.pause_time.c6" "C6" U16 Dec {} "Quanta for priority 6.";
    MACC_C7 "macc.cbfc.pause_time.c7" "C7" U16 Dec {} "Quanta for priority 7.";
    LLDP "lldp" "Link Layer Discovery Protocol" None Dec {} "LLDP frame; roce.aside says what DCBX says in it.";
    LACP "lacp" "Link Aggregation Control Protocol" None Dec {} "LACP frame.";
    SLOW "slow" "Slow Protocols" None Dec {} "Frame of a slow protocol: LACP, OAM and others.";
    STP "stp" "Spanning Tree Protocol" None Dec {} "Spanning tree frame.";
    RARP "rarp" "Reverse Address Resolution Protocol" None Dec {} "RARP packet.";
    EAPOL "eapol" "802.1X Authentication" None Dec {} "EAPOL frame.";
    MACSEC "macsec" "802.1AE Security tag" None Dec {} "MACsec tag; what follows is read if it is not encrypted.";
    PTP "ptp" "Precision Time Protocol (IEEE1588)" None Dec {} "PTP message.";
    FCOE "fcoe" "Fibre Channel over Ethernet" None Dec {} "FCoE frame.";
    FIP "fip" "FCoE Initialization Protocol" None Dec {} "FIP frame.";
    PPPOED "pppoed" "PPP-over-Ethernet Discovery" None Dec {} "PPPoE discovery frame.";
    ESP "esp" "Encapsulating Security Payload" None Dec {} "IPsec: what follows is encrypted.";
    OSPF "ospf" "Open Shortest Path First" None Dec {} "OSPF packet.";
    PIM "pim" "Protocol Independent Multicast" None Dec {} "PIM packet.";
    VRRP "vrrp" "Virtual Router Redundancy Protocol" None Dec {} "VRRP packet.";
    SCTP "sctp" "Stream Control Transmission Protocol" None Dec {} "SCTP packet.";
    DNS "dns" "Domain Name System" None Dec {} "DNS message, by its port.";
    MDNS "mdns" "Multicast Domain Name System" None Dec {} "mDNS message, by its port.";
    LLMNR "llmnr" "Link-local Multicast Name Resolution" None Dec {} "LLMNR message, by its port.";
    DHCP "dhcp" "Dynamic Host Configuration Protocol" None Dec {} "DHCP message, by its port.";
    DHCPV6 "dhcpv6" "DHCPv6" None Dec {} "DHCPv6 message, by its port.";
    NTP "ntp" "Network Time Protocol" None Dec {} "NTP message, by its port.";
    SSDP "ssdp" "Simple Service Discovery Protocol" None Dec {} "SSDP message, by its port.";
    SNMP "snmp" "Simple Network Management Protocol" None Dec {} "SNMP message, by its port.";
    SYSLOG "syslog" "Syslog message" None Dec {} "Syslog message, by its port.";
    NBNS "nbns" "NetBIOS Name Service" None Dec {} "NetBIOS name service message, by its port.";
    BFD "bfd" "Bidirectional Forwarding Detection Control Message" None Dec {} "BFD message, by its port.";
    SSH "ssh" "SSH Protocol" None Dec {} "SSH data, by its port.";
    HTTP "http" "Hypertext Transfer Protocol" None Dec {} "HTTP data, by its port.";
    TLS "tls" "Transport Layer Security" None Dec {} "TLS data, by its port.";
    BGP "bgp" "Border Gateway Protocol" None Dec {} "BGP data, by its port.";
}

/// What announces a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    EtherType(u16),
    /// A slow protocol's subtype.
    Slow(u8),
    /// Service access point of LLC.
    Sap(u8),
    Protocol(u8),
    Udp(u16),
    /// Only if the segment has data.
    Tcp(u16),
}

/// Protocols by what announces them (IEEE and IANA numbers).
static NAMED: &[(By, &Field)] = &[
    (By::EtherType(0x0806), &ARP),
    (By::EtherType(0x8035), &RARP),
    (By::EtherType(0x8808), &MACC),
    (By::EtherType(0x8809), &SLOW),
    (By::EtherType(0x8863), &PPPOED),
    (By::EtherType(0x888e), &EAPOL),
    (By::EtherType(0x88cc), &LLDP),
    (By::EtherType(0x88e5), &MACSEC),
    (By::EtherType(0x88f7), &PTP),
    (By::EtherType(0x8906), &FCOE),
    (By::EtherType(0x8914), &FIP),
    (By::Slow(1), &LACP),
    (By::Sap(0x42), &STP),
    (By::Protocol(1), &ICMP),
    (By::Protocol(2), &IGMP),
    (By::Protocol(6), &TCP),
    (By::Protocol(50), &ESP),
    (By::Protocol(58), &ICMPV6),
    (By::Protocol(89), &OSPF),
    (By::Protocol(103), &PIM),
    (By::Protocol(112), &VRRP),
    (By::Protocol(132), &SCTP),
    (By::Udp(53), &DNS),
    (By::Udp(67), &DHCP),
    (By::Udp(68), &DHCP),
    (By::Udp(123), &NTP),
    (By::Udp(137), &NBNS),
    (By::Udp(161), &SNMP),
    (By::Udp(162), &SNMP),
    (By::Udp(319), &PTP),
    (By::Udp(320), &PTP),
    (By::Udp(514), &SYSLOG),
    (By::Udp(546), &DHCPV6),
    (By::Udp(547), &DHCPV6),
    (By::Udp(1900), &SSDP),
    (By::Udp(3784), &BFD),
    (By::Udp(5353), &MDNS),
    (By::Udp(5355), &LLMNR),
    (By::Tcp(22), &SSH),
    (By::Tcp(53), &DNS),
    (By::Tcp(80), &HTTP),
    (By::Tcp(179), &BGP),
    (By::Tcp(443), &TLS),
    (By::Tcp(8080), &HTTP),
];

fn named(by: By) -> Option<&'static Field> {
    NAMED.iter().find(|(b, _)| *b == by).map(|(_, f)| *f)
}

/// The one of two ports that names a protocol; the lower first, as tshark tries them.
fn of_ports(src: u16, dst: u16, by: fn(u16) -> By) -> Option<&'static Field> {
    named(by(src.min(dst))).or_else(|| named(by(src.max(dst))))
}

/// Where what follows the last layer starts, and where the network packet ends.
fn body<'a>(frame: &Frame<'a>) -> (usize, &'a [u8]) {
    let start = frame.layers.last().map_or(0, |l| l.start as usize + usize::from(l.len));
    let end = match frame.net {
        // 0 is what a packet before segmentation says
        Some(n) if n.end > start => n.end,
        _ => frame.bytes.len(),
    };
    (start, frame.slice(start..end))
}

/// The protocols that follow the layers of a frame without RoCE, outermost first.
pub fn protocols(frame: &Frame<'_>) -> [Option<&'static Field>; 2] {
    if frame.transport.is_some() {
        return [None; 2];
    }
    let (_, body) = body(frame);
    match frame.carries {
        Carries::EtherType(t) => {
            let first = named(By::EtherType(t));
            let inner = match (t, body) {
                (0x8809, [subtype, ..]) => named(By::Slow(*subtype)),
                _ => None,
            };
            [first, inner]
        }
        Carries::Llc => {
            let llc = frame.layers.last().and_then(|l| frame.bytes.get(l.start as usize));
            [llc.and_then(|sap| named(By::Sap(*sap))), None]
        }
        Carries::Protocol(p) => {
            let inner = match (p, body) {
                (6, [s0, s1, d0, d1, rest @ ..]) if rest.len() > data_offset(body).saturating_sub(4) => {
                    of_ports(u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1]), By::Tcp)
                }
                _ => None,
            };
            [named(By::Protocol(p)), inner]
        }
        Carries::Udp => [frame.udp.and_then(|u| of_ports(u.src_port, u.dst_port, By::Udp)), None],
        Carries::Nothing | Carries::Fragment | Carries::Ppp(_) | Carries::ErfType(_) => [None; 2],
    }
}

/// Bytes of a TCP header.
fn data_offset(tcp: &[u8]) -> usize {
    tcp.get(12).map_or(0, |b| usize::from(b >> 4) * 4)
}

/// Adds what a frame without RoCE carries.
pub fn build<'a>(input: &Input<'_, 'a>, tree: &mut Tree<'a>) {
    let frame = input.frame;
    let (o, bytes) = body(frame);
    for field in protocols(frame).into_iter().flatten() {
        let end = o + bytes.len();
        match field {
            f if f.is(&ARP) => arp(o, bytes, tree),
            f if f.is(&MACC) => macc(o, bytes, tree),
            f if f.is(&ICMP) => icmp(frame, o, bytes, tree),
            f if f.is(&ICMPV6) => icmpv6(frame, o, bytes, tree),
            f if f.is(&IGMP) => igmp(frame, o, bytes, tree),
            f if f.is(&TCP) => tcp(o, bytes, tree),
            _ => {
                let start = if frame.carries == Carries::Protocol(6) { (o + data_offset(bytes)).min(end) } else { o };
                tree.add(field, start..end, Value::None);
                tree.label(field, || field.title.to_owned());
            }
        }
    }
}

/// What an ARP packet is for (RFC 5227: a probe and an announcement are requests without a target's MAC address).
fn arp_kind(operation: u16, bytes: &[u8]) -> Option<&'static str> {
    let ipv4 = bytes.first_chunk::<28>().filter(|a| be32::<2, 28>(a) == 0x0800_0604);
    let same = ipv4.is_some_and(|a| part::<14, 4, 28>(a) == part::<24, 4, 28>(a));
    let asking = ipv4.is_some_and(|a| *part::<18, 6, 28>(a) == [0; 6]);
    let nobody = ipv4.is_some_and(|a| *part::<14, 4, 28>(a) == [0; 4]);
    match operation {
        1 if asking && nobody => Some("ARP Probe"),
        1 if asking && same => Some("ARP Announcement"),
        1 if same => Some("request/gratuitous ARP"),
        2 if same => Some("reply/gratuitous ARP"),
        1 => Some("request"),
        2 => Some("reply"),
        3 => Some("reverse request"),
        4 => Some("reverse reply"),
        _ => None,
    }
}

fn arp(o: usize, bytes: &[u8], tree: &mut Tree<'_>) {
    tree.open_header(&ARP, o..o + bytes.len().min(28));
    if let Some(h) = bytes.first_chunk::<8>() {
        let op = be16::<6, 8>(h);
        tree.label(&ARP, || match arp_kind(op, bytes) {
            Some(kind) => format!("{} ({kind})", ARP.title),
            None => ARP.title.to_owned(),
        });
        tree.add(&ARP_HW_TYPE, o..o + 2, be16::<0, 8>(h));
        tree.add(&ARP_PROTO_TYPE, o + 2..o + 4, be16::<2, 8>(h));
        tree.add(&ARP_HW_SIZE, o + 4..o + 5, u8_at::<4, 8>(h));
        tree.add(&ARP_PROTO_SIZE, o + 5..o + 6, u8_at::<5, 8>(h));
        tree.add(&ARP_OPCODE, o + 6..o + 8, op);
    }
    // IPv4 over Ethernet; other address lengths have other fields
    if let Some(a) = bytes.first_chunk::<28>()
        && be32::<2, 28>(a) == 0x0800_0604
    {
        let (sender, target) = (*part::<14, 4, 28>(a), *part::<24, 4, 28>(a));
        match arp_kind(be16::<6, 28>(a), bytes) {
            Some("ARP Probe") => tree.derive(&ARP_PROBE, true),
            Some("ARP Announcement") => {
                tree.derive(&ARP_GRATUITOUS, true);
                tree.derive(&ARP_ANNOUNCEMENT, true);
            }
            Some("request/gratuitous ARP" | "reply/gratuitous ARP") => tree.derive(&ARP_GRATUITOUS, true),
            _ => {}
        }
        tree.add(&ARP_SRC_MAC, o + 8..o + 14, *part::<8, 6, 28>(a));
        tree.add(&ARP_SRC_IP, o + 14..o + 18, sender);
        tree.add(&ARP_DST_MAC, o + 18..o + 24, *part::<18, 6, 28>(a));
        tree.add(&ARP_DST_IP, o + 24..o + 28, target);
    }
    tree.close();
}

fn macc(o: usize, bytes: &[u8], tree: &mut Tree<'_>) {
    static ENABLED: [&Field; 8] = [
        &MACC_ENBV_C0,
        &MACC_ENBV_C1,
        &MACC_ENBV_C2,
        &MACC_ENBV_C3,
        &MACC_ENBV_C4,
        &MACC_ENBV_C5,
        &MACC_ENBV_C6,
        &MACC_ENBV_C7,
    ];
    static TIMES: [&Field; 8] = [&MACC_C0, &MACC_C1, &MACC_C2, &MACC_C3, &MACC_C4, &MACC_C5, &MACC_C6, &MACC_C7];
    tree.open_header(&MACC, o..o + bytes.len());
    let word = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    if let Some(opcode) = word(0) {
        tree.add(&MACC_OPCODE, o..o + 2, opcode);
        match (opcode, word(2)) {
            (0x0001, Some(time)) => tree.add(&MACC_PAUSE_TIME, o + 2..o + 4, time),
            (0x0101, Some(vector)) => {
                tree.open(&MACC_ENBV, o + 2..o + 4, vector);
                for (bit, field) in ENABLED.iter().enumerate() {
                    tree.add(field, o + 2..o + 4, vector >> bit & 1 == 1);
                }
                tree.close();
                for (i, field) in TIMES.iter().enumerate() {
                    let at = 4 + 2 * i;
                    let Some(time) = word(at) else { break };
                    tree.add(field, o + at..o + at + 2, time);
                }
            }
            _ => {}
        }
    }
    tree.close();
}

/// Sum of the Internet checksum over 16-bit words, not yet folded.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let odd = rest.first().map_or(0, |b| u64::from(*b) << 8);
    words.iter().map(|w| u64::from(u16::from_be_bytes(*w))).sum::<u64>() + odd
}

/// 1 if the Internet checksum over these bytes and `before` fits, 0 if not, 2 if the packet is cut or a fragment.
fn checksum_status(frame: &Frame<'_>, bytes: &[u8], before: u64) -> u8 {
    match frame.net {
        Some(Net { end, fragment: None, .. }) if end <= frame.bytes.len() => {
            let mut s = before + sum(bytes);
            while s > 0xffff {
                s = (s & 0xffff) + (s >> 16);
            }
            u8::from(s == 0xffff)
        }
        _ => 2,
    }
}

fn icmp(frame: &Frame<'_>, o: usize, bytes: &[u8], tree: &mut Tree<'_>) {
    tree.open_header(&ICMP, o..o + bytes.len());
    if let Some(h) = bytes.first_chunk::<8>() {
        let (kind, code) = (u8_at::<0, 8>(h), u8_at::<1, 8>(h));
        tree.add(&ICMP_TYPE, o..o + 1, kind);
        tree.add(&ICMP_CODE, o + 1..o + 2, code);
        tree.add(&ICMP_CHECKSUM, o + 2..o + 4, be16::<2, 8>(h));
        tree.derive(&ICMP_CHECKSUM_STATUS, checksum_status(frame, bytes, 0));
        match (kind, code) {
            (0 | 8, _) => {
                let (ident, seq) = (be16::<4, 8>(h), be16::<6, 8>(h));
                tree.add(&ICMP_IDENT, o + 4..o + 6, ident);
                tree.add(&ICMP_IDENT_LE, o + 4..o + 6, ident.swap_bytes());
                tree.add(&ICMP_SEQ, o + 6..o + 8, seq);
                tree.add(&ICMP_SEQ_LE, o + 6..o + 8, seq.swap_bytes());
            }
            (3, 4) => tree.add(&ICMP_MTU, o + 6..o + 8, be16::<6, 8>(h)),
            _ => {}
        }
    }
    tree.close();
}

fn icmpv6(frame: &Frame<'_>, o: usize, bytes: &[u8], tree: &mut Tree<'_>) {
    tree.open_header(&ICMPV6, o..o + bytes.len());
    if let Some(h) = bytes.first_chunk::<8>() {
        let kind = u8_at::<0, 8>(h);
        tree.add(&ICMPV6_TYPE, o..o + 1, kind);
        tree.add(&ICMPV6_CODE, o + 1..o + 2, u8_at::<1, 8>(h));
        tree.add(&ICMPV6_CHECKSUM, o + 2..o + 4, be16::<2, 8>(h));
        if tree.wants(&ICMPV6_CHECKSUM_STATUS) {
            // the pseudo header: both addresses, length, protocol
            let addresses = match frame.net {
                Some(Net { kind: NetKind::Ipv6 { .. }, start, .. }) => frame.slice(start + 8..start + 40),
                _ => &[],
            };
            let before = sum(addresses) + bytes.len() as u64 + 58;
            tree.derive(&ICMPV6_CHECKSUM_STATUS, checksum_status(frame, bytes, before));
        }
        let target = bytes.get(8..).and_then(|b| b.first_chunk::<16>());
        match (kind, target) {
            (2, _) => tree.add(&ICMPV6_MTU, o + 4..o + 8, be32::<4, 8>(h)),
            (128 | 129, _) => {
                tree.add(&ICMPV6_IDENT, o + 4..o + 6, be16::<4, 8>(h));
                tree.add(&ICMPV6_SEQ, o + 6..o + 8, be16::<6, 8>(h));
            }
            (135, Some(a)) => tree.add(&ICMPV6_NS, o + 8..o + 24, *a),
            (136, Some(a)) => tree.add(&ICMPV6_NA, o + 8..o + 24, *a),
            _ => {}
        }
    }
    tree.close();
}

fn igmp(frame: &Frame<'_>, o: usize, bytes: &[u8], tree: &mut Tree<'_>) {
    tree.open_header(&IGMP, o..o + bytes.len());
    if let Some(h) = bytes.first_chunk::<8>() {
        tree.add(&IGMP_TYPE, o..o + 1, u8_at::<0, 8>(h));
        tree.add(&IGMP_CHECKSUM, o + 2..o + 4, be16::<2, 8>(h));
        tree.derive(&IGMP_CHECKSUM_STATUS, checksum_status(frame, bytes, 0));
    }
    tree.close();
}

fn tcp<'a>(o: usize, bytes: &'a [u8], tree: &mut Tree<'a>) {
    static FLAGS: [(&Field, u16); 10] = [
        (&TCP_FLAGS_RES, 0x0e00),
        (&TCP_FLAGS_AE, 0x0100),
        (&TCP_FLAGS_CWR, 0x0080),
        (&TCP_FLAGS_ECE, 0x0040),
        (&TCP_FLAGS_URG, 0x0020),
        (&TCP_FLAGS_ACK, 0x0010),
        (&TCP_FLAGS_PUSH, 0x0008),
        (&TCP_FLAGS_RESET, 0x0004),
        (&TCP_FLAGS_SYN, 0x0002),
        (&TCP_FLAGS_FIN, 0x0001),
    ];
    let Some(h) = bytes.first_chunk::<20>() else {
        tree.add(&TCP, o..o + bytes.len(), Value::None);
        return;
    };
    let header = data_offset(bytes);
    let data = bytes.get(header..).filter(|_| header >= 20).unwrap_or(&[]);
    let (src, dst, flags) = (be16::<0, 20>(h), be16::<2, 20>(h), be16::<12, 20>(h) & 0x0fff);
    tree.open_header(&TCP, o..o + header.clamp(20, bytes.len()));
    tree.label(&TCP, || format!("{}, Src Port: {src}, Dst Port: {dst}, Len: {}", TCP.title, data.len()));
    tree.add(&TCP_SRCPORT, o..o + 2, src);
    tree.add(&TCP_DSTPORT, o + 2..o + 4, dst);
    tree.add(&TCP_PORT, o..o + 2, src);
    tree.add(&TCP_PORT, o + 2..o + 4, dst);
    tree.derive(&TCP_LEN, data.len() as u64);
    tree.add(&TCP_SEQ, o + 4..o + 8, be32::<4, 20>(h));
    tree.add(&TCP_ACK, o + 8..o + 12, be32::<8, 20>(h));
    tree.add(&TCP_HDR_LEN, o + 12..o + 13, header as u64);
    tree.label(&TCP_HDR_LEN, || format!("Header Length: {header} bytes ({})", header / 4));
    tree.open(&TCP_FLAGS, o + 12..o + 14, flags);
    for (field, mask) in FLAGS {
        tree.add(field, o + 12..o + 14, flags & mask != 0);
    }
    if tree.wants(&TCP_FLAGS_STR) {
        let letters = "RRRACEUAPRSF".chars().enumerate();
        let text: String = letters.map(|(i, c)| if flags & 0x800 >> i != 0 { c } else { '·' }).collect();
        tree.add(&TCP_FLAGS_STR, o + 12..o + 14, text);
    }
    tree.close();
    tree.add(&TCP_WINDOW, o + 14..o + 16, be16::<14, 20>(h));
    tree.add(&TCP_CHECKSUM, o + 16..o + 18, be16::<16, 20>(h));
    tree.derive(&TCP_CHECKSUM_STATUS, 2u8);
    tree.add(&TCP_URGENT, o + 18..o + 20, be16::<18, 20>(h));
    if header > 20
        && let Some(options) = bytes.get(20..header)
    {
        tree.add(&TCP_OPTIONS, o + 20..o + header, options);
    }
    if !data.is_empty() {
        tree.add(&TCP_PAYLOAD, o + header..o + bytes.len(), data);
        tree.label(&TCP_PAYLOAD, || format!("TCP payload ({} bytes)", data.len()));
    }
    tree.close();
}
