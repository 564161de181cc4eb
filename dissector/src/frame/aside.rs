//! What frames without RoCE say about it, each in one line; and what a frame carries when it is no RoCE.

use std::fmt;

use super::arp::Arp;
use super::icmp::Icmp;
use super::lldp::Lldp;
use super::pause::Pfc;
use crate::wire::bytes::part;

/// Something beside RoCE that explains RoCE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aside {
    /// IEEE 802.3x PAUSE: the whole link, for so many quanta of 512 bit times.
    Pause {
        /// Quanta; 0 resumes.
        quanta: u16,
    },
    /// IEEE 802.1Qbb priority flow control.
    Pfc(Pfc),
    /// Another MAC control frame.
    MacControl {
        /// Its opcode.
        opcode: u16,
    },
    /// ARP.
    Arp(Arp),
    /// LLDP with what DCBX says in it.
    Lldp(Lldp),
    /// ICMP or ICMPv6.
    Icmp(Icmp),
    /// InfiniBand link packet (flow control).
    IbLink(IbLink),
    /// A record of IP over InfiniBand: the transport headers were taken off.
    Ipoib,
}

impl Aside {
    /// Name of the protocol.
    pub const fn protocol(&self) -> &'static str {
        match self {
            Self::Pause { .. } | Self::Pfc(_) | Self::MacControl { .. } => "MAC CTRL",
            Self::Arp(_) => "ARP",
            Self::Lldp(_) => "LLDP",
            Self::Icmp(i) => {
                if i.v6 {
                    "ICMPv6"
                } else {
                    "ICMP"
                }
            }
            Self::IbLink(_) => "Infiniband Link",
            Self::Ipoib => "IPoIB",
        }
    }
}

impl fmt::Display for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause { quanta: 0 } => f.write_str("PAUSE 0: the whole link may send again"),
            Self::Pause { quanta } => write!(f, "PAUSE: the whole link stops for {quanta} quanta of 512 bit times"),
            Self::Pfc(p) => p.fmt(f),
            Self::MacControl { opcode } => write!(f, "MAC control, opcode {opcode:#06x}"),
            Self::Arp(a) => a.fmt(f),
            Self::Lldp(l) => l.fmt(f),
            Self::Icmp(i) => i.fmt(f),
            Self::IbLink(l) => l.fmt(f),
            Self::Ipoib => {
                f.write_str("IP over InfiniBand: captured without InfiniBand headers, so there is no transport to show")
            }
        }
    }
}

/// InfiniBand flow control packet (IBTA 7.9.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IbLink {
    /// 0 normal, 1 initialising.
    pub op: u8,
    /// Flow control total blocks sent.
    pub fctbs: u16,
    /// Virtual lane.
    pub vl: u8,
    /// Flow control credit limit.
    pub fccl: u16,
    /// Link packet CRC.
    pub lpcrc: u16,
}

impl IbLink {
    /// From its six bytes.
    pub const fn parse(b: &[u8; 6]) -> Self {
        let [b0, b1, b2, b3, ..] = *b;
        Self {
            op: b0 >> 4,
            fctbs: u16::from_be_bytes([b0 & 15, b1]),
            vl: b2 >> 4,
            fccl: u16::from_be_bytes([b2 & 15, b3]),
            lpcrc: u16::from_be_bytes(*part::<4, 2, 6>(b)),
        }
    }
}

impl fmt::Display for IbLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            0 => "flow control",
            1 => "flow control, initialising",
            _ => "link packet of an unknown kind",
        };
        write!(f, "{op}: VL {}, {} blocks sent, credit limit {}", self.vl, self.fctbs, self.fccl)
    }
}

/// What follows the last layer of a frame without a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Carries {
    /// Nothing, or not known.
    #[default]
    Nothing,
    /// An EtherType that leads nowhere near RoCE.
    EtherType(u16),
    /// LLC without an EtherType.
    Llc,
    /// An IP protocol number.
    Protocol(u8),
    /// UDP to another port.
    Udp,
    /// A later fragment of an IP datagram.
    Fragment,
    /// A PPP protocol.
    Ppp(u16),
    /// A type of ERF record that is not read.
    ErfType(u8),
}

impl Carries {
    /// Name of the protocol, if it has one here.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Nothing | Self::Ppp(_) => return None,
            Self::Llc => "LLC",
            Self::Udp => "UDP",
            Self::Fragment => "IP fragment",
            Self::ErfType(_) => "ERF",
            Self::EtherType(t) => match t {
                0x0806 => "ARP",
                0x8035 => "RARP",
                0x8808 => "MAC CTRL",
                0x8809 => "Slow Protocols",
                0x8863 => "PPPoED",
                0x888e => "EAPOL",
                0x88cc => "LLDP",
                0x88e5 => "MACsec",
                0x88f7 => "PTP",
                0x8906 => "FCoE",
                0x8914 => "FIP",
                _ => return None,
            },
            Self::Protocol(p) => match p {
                1 => "ICMP",
                2 => "IGMP",
                6 => "TCP",
                50 => "ESP",
                58 => "ICMPv6",
                59 => "IPv6 no next header",
                89 => "OSPF",
                103 => "PIM",
                112 => "VRRP",
                132 => "SCTP",
                _ => return None,
            },
        })
    }
}

/// Text out of a packet, safe for a terminal: control characters are escaped.
pub(super) fn clean(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .flat_map(|c| {
            let escape = c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            let (plain, escaped) = if escape { (None, Some(c.escape_default())) } else { (Some(c), None) };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

/// A MAC address with colons.
pub(super) struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
