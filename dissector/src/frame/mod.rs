//! From a captured frame to where BTH starts.
//!
//! Two ways to the same [`Frame`]: [`fast`] walks what nearly every RoCE packet looks like (Ethernet, up to
//! two VLAN tags, IPv4 or IPv6, UDP 4791; RoCEv1) with the kernel program's own constants; everything else
//! goes through the slower, complete walk. A frame is never an error: [`Frame::notes`] say what was odd.

pub mod arp;
pub mod aside;
pub mod fast;
pub mod icmp;
pub mod icrc;
mod link;
pub mod lldp;
pub mod mistake;
pub mod pause;
mod tunnel;
mod walk;

pub use aside::{Aside, Carries};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::flow::row::Endpoint;
use crate::wire::{Packet, Stop};

/// Link type as captures number it (tcpdump's LINKTYPE values).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// BSD loopback.
    pub const NULL: Self = Self(0);
    /// Raw IP.
    pub const RAW: Self = Self(101);
    /// Linux cooked.
    pub const SLL: Self = Self(113);
    /// Linux cooked, version 2.
    pub const SLL2: Self = Self(276);
    /// Endace ERF records.
    pub const ERF: Self = Self(197);
    /// InfiniBand, starting with LRH.
    pub const INFINIBAND: Self = Self(247);
    /// IP over InfiniBand.
    pub const IPOIB: Self = Self(242);
}

/// One layer of a frame, outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// What it is.
    pub kind: LayerKind,
    /// First byte, from the start of the frame.
    pub start: u32,
    /// Bytes of the header (not of what it carries).
    pub len: u16,
}

/// Kinds of layers down to BTH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LayerKind {
    /// Nothing (unused slot).
    #[default]
    None,
    /// Ethernet II header.
    Ethernet,
    /// A VLAN tag (the four bytes after the EtherType field that announced it: TCI, then EtherType).
    Vlan,
    /// IPv4 header with options.
    Ipv4,
    /// IPv6 header.
    Ipv6,
    /// IPv6 extension header.
    Ipv6Extension,
    /// UDP header.
    Udp,
    /// GRH.
    Grh,
    /// LRH.
    Lrh,
    /// Linux cooked header.
    Sll,
    /// Linux cooked header, version 2.
    Sll2,
    /// BSD loopback word.
    Null,
    /// ERF record header, extensions included.
    Erf,
    /// MPLS label stack entry.
    Mpls,
    /// PPPoE session header with the PPP protocol word.
    Pppoe,
    /// GRE header.
    Gre,
    /// ERSPAN header.
    Erspan,
    /// VXLAN header.
    Vxlan,
    /// GENEVE header with options.
    Geneve,
    /// IEEE 802.2 LLC header, with the SNAP extension if there is one.
    Llc,
    /// IP authentication header.
    Ah,
    /// EtherIP header.
    EtherIp,
    /// Pseudowire control word between MPLS and Ethernet.
    ControlWord,
    /// Raw header of native InfiniBand: an EtherType after the LRH.
    Rwh,
    /// Head of an IP-over-InfiniBand record.
    Ipoib,
    /// PPP header: address and control if they are there, protocol.
    Ppp,
    /// Cisco HDLC header.
    Chdlc,
    /// Head of a Netfilter log record, up to the packet in it.
    Nflog,
    /// IEEE 802.1AE tag of a frame that is not encrypted, with the EtherType behind it.
    Macsec,
    /// Tag of a provider backbone (IEEE 802.1ah), up to the customer's frame.
    Backbone,
    /// Network service header (RFC 8300).
    Nsh,
    /// Tag of a seamless ring (IEC 62439-3, HSR), with the EtherType behind it.
    Hsr,
    /// Cisco metadata, with the EtherType behind them.
    CiscoMeta,
    /// TaZmen Sniffer Protocol: header and tags before the mirrored frame.
    Tzsp,
    /// GTP-U header with its extensions.
    Gtp,
}

impl LayerKind {
    /// Name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "frame",
            Self::Ethernet => "Ethernet",
            Self::Vlan => "VLAN tag",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Ipv6Extension => "IPv6 extension header",
            Self::Udp => "UDP",
            Self::Grh => "GRH",
            Self::Lrh => "LRH",
            Self::Sll | Self::Sll2 => "Linux cooked header",
            Self::Null => "loopback header",
            Self::Erf => "ERF record header",
            Self::Mpls => "MPLS label",
            Self::Pppoe => "PPPoE",
            Self::Gre => "GRE",
            Self::Erspan => "ERSPAN",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "GENEVE",
            Self::Llc => "LLC",
            Self::Ah => "IP authentication header",
            Self::EtherIp => "EtherIP",
            Self::ControlWord => "pseudowire control word",
            Self::Rwh => "RWH",
            Self::Ipoib => "IPoIB header",
            Self::Ppp => "PPP",
            Self::Chdlc => "Cisco HDLC",
            Self::Nflog => "NFLOG header",
            Self::Macsec => "MACsec tag",
            Self::Backbone => "802.1ah tag",
            Self::Nsh => "NSH",
            Self::Hsr => "HSR tag",
            Self::CiscoMeta => "Cisco metadata",
            Self::Tzsp => "TZSP",
            Self::Gtp => "GTP-U",
        }
    }
}

/// How many layers are kept; deeper nesting is noted and ends the walk.
pub const MAX_LAYERS: usize = 20;

/// Layers, outermost first, without allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    all: [Layer; MAX_LAYERS],
    count: u8,
}

impl Layers {
    /// Adds one; `false` if there is no room.
    #[inline]
    pub fn push(&mut self, kind: LayerKind, start: usize, len: usize) -> bool {
        let Some(slot) = self.all.get_mut(usize::from(self.count)) else { return false };
        // frames are bounded by the capture formats' 32-bit lengths
        *slot = Layer {
            kind,
            start: u32::try_from(start).unwrap_or(u32::MAX),
            len: u16::try_from(len).unwrap_or(u16::MAX),
        };
        self.count += 1;
        true
    }

    /// Innermost layer so far.
    pub fn last(&self) -> Option<Layer> {
        self.as_slice().last().copied()
    }

    /// Those that are there.
    pub fn as_slice(&self) -> &[Layer] {
        self.all.get(..usize::from(self.count)).unwrap_or(&[])
    }
}

/// Which network header is innermost, before the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetKind {
    /// IPv4; `options` if the header is longer than 20 bytes.
    Ipv4 {
        /// Header longer than 20 bytes.
        options: bool,
    },
    /// IPv6; `extensions` if headers stand between it and UDP.
    Ipv6 {
        /// Extension headers present.
        extensions: bool,
    },
    /// GRH (RoCEv1 or native).
    Grh,
    /// LRH without GRH.
    Lrh,
}

/// The innermost network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    /// Which.
    pub kind: NetKind,
    /// Its first byte in the frame.
    pub start: usize,
    /// Source.
    pub src: Endpoint,
    /// Destination.
    pub dst: Endpoint,
    /// TOS or traffic class byte: DSCP 6, ECN 2.
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4 identification.
    pub ip_id: Option<u16>,
    /// Flow label of IPv6 and GRH.
    pub flow_label: Option<u32>,
    /// Byte after the last one that the header's length field says belongs to it.
    pub end: usize,
    /// Part of a fragmented datagram: offset in bytes and whether more follow.
    pub fragment: Option<Fragment>,
}

/// Fragment of an IP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset, bytes.
    pub offset: u32,
    /// More fragments follow.
    pub more: bool,
}

/// The UDP header in front of BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// First byte in the frame.
    pub start: usize,
    /// Source port: path entropy, 0 is legal.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Length field: header and data.
    pub len: u16,
    /// Checksum field.
    pub checksum: u16,
}

/// How the transport is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// UDP 4791.
    RoceV2,
    /// EtherType 0x8915.
    RoceV1,
    /// InfiniBand link.
    Native,
}

/// Where the transport packet (BTH through ICRC) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// How it is carried.
    pub encapsulation: Encapsulation,
    /// First byte of BTH in the frame.
    pub start: usize,
    /// Bytes from BTH through ICRC by the enclosing length field (UDP length, GRH PayLen, LRH PktLen).
    pub declared: usize,
}

/// Something odd about a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The capture ends inside this layer: bytes needed and there.
    Truncated {
        /// Which layer.
        layer: LayerKind,
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that are there.
        available: usize,
    },
    /// Lengths that should agree do not: what the outer one leaves room for, what the inner one says.
    LengthMismatch {
        /// Whose length is odd.
        layer: LayerKind,
        /// Its own word.
        says: usize,
        /// What the layer around it leaves.
        room: usize,
    },
    /// Bytes after the end of the network packet (Ethernet padding or FCS).
    Trailer(usize),
    /// Deeper nesting than [`MAX_LAYERS`].
    TooDeep,
    /// Anything else, in words.
    Other(String),
}

/// A captured frame, walked down to BTH.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<'a> {
    /// What was captured.
    pub bytes: &'a [u8],
    /// Bytes that were on the wire.
    pub wire_len: usize,
    /// Link type it was walked with.
    pub link: LinkType,
    /// Headers before BTH, outermost first.
    pub layers: Layers,
    /// Source and destination MAC of the innermost Ethernet header: its offset in the frame.
    pub ethernet: Option<usize>,
    /// Innermost VLAN tag's TCI: PCP 3, DEI 1, id 12.
    pub vlan_tci: Option<u16>,
    /// Innermost network header.
    pub net: Option<Net>,
    /// UDP header, if there is one.
    pub udp: Option<Udp>,
    /// The RoCE or InfiniBand transport, if this frame has one.
    pub transport: Option<Transport>,
    /// What follows the last layer, if it is not a transport.
    pub carries: Carries,
    /// What a frame without RoCE says about RoCE: pause frames, LLDP, ARP, ICMP errors …
    pub aside: Option<Box<Aside>>,
    /// Oddities.
    pub notes: Vec<Note>,
}

impl<'a> Frame<'a> {
    /// A frame of which nothing is known.
    #[inline]
    pub fn new(bytes: &'a [u8], wire_len: usize, link: LinkType) -> Self {
        Self {
            bytes,
            wire_len,
            link,
            layers: Layers::default(),
            ethernet: None,
            vlan_tci: None,
            net: None,
            udp: None,
            transport: None,
            carries: Carries::Nothing,
            aside: None,
            notes: Vec::new(),
        }
    }

    /// Walks a frame. `port` is the UDP destination port that means RoCEv2.
    #[inline]
    pub fn parse(bytes: &'a [u8], wire_len: usize, link: LinkType, port: u16) -> Self {
        let mut f = Self::new(bytes, wire_len, link);
        f.walk(port);
        f
    }

    /// Walks a [`Self::new`] frame where it is: moving one costs as much as walking it.
    #[inline]
    pub fn walk(&mut self, port: u16) {
        if self.link != LinkType::ETHERNET || !fast::ethernet(self, port) {
            walk::walk(self, port);
        }
    }

    /// Like [`Self::parse`], but never by the short way: both give the same frame.
    pub fn parse_the_long_way(bytes: &'a [u8], wire_len: usize, link: LinkType, port: u16) -> Self {
        let mut f = Self::new(bytes, wire_len, link);
        walk::walk(&mut f, port);
        f
    }

    /// The transport packet, if there is one; `Err` if not even BTH is complete. Of a fragmented datagram,
    /// what its first fragment holds.
    #[inline]
    pub fn packet(&self) -> Option<Result<Packet<'a>, Stop>> {
        let t = self.transport?;
        let end = match self.net {
            Some(Net { fragment: Some(_), end, .. }) => end.min(self.bytes.len()),
            _ => self.bytes.len(),
        };
        let bytes = self.bytes.get(t.start..end).unwrap_or(&[]);
        Some(Packet::parse(bytes, t.declared))
    }

    /// Packet type of a Linux cooked capture: 0 to us, 1 broadcast, 2 multicast, 3 to somebody else, 4 sent by us.
    pub fn cooked_type(&self) -> Option<u16> {
        let l = *self.layers.as_slice().first()?;
        let start = l.start as usize;
        match l.kind {
            LayerKind::Sll => self.bytes.get(start..start + 2).map(|b| u16::from(b[0]) << 8 | u16::from(b[1])),
            LayerKind::Sll2 => self.bytes.get(start + 10).map(|b| u16::from(*b)),
            _ => None,
        }
    }

    /// Notes about lengths that disagree and about bytes after the packet; `outer_end` is where the outermost
    /// network packet ends by its own word.
    #[cold]
    fn note_lengths(&mut self, outer_end: usize) {
        let mut end = outer_end;
        if let Some(net) = self.net {
            let layer = match net.kind {
                NetKind::Ipv4 { .. } => LayerKind::Ipv4,
                NetKind::Ipv6 { .. } => LayerKind::Ipv6,
                NetKind::Grh => LayerKind::Grh,
                NetKind::Lrh => LayerKind::Lrh,
            };
            let room = self.wire_len.saturating_sub(net.start);
            let says = net.end.saturating_sub(net.start);
            // 0 is what the sending host's kernel has before segmentation, or a packet that never had a length
            let void = self.udp.is_some_and(|u| u.start >= net.end);
            if says > room || void {
                self.notes.push(Note::LengthMismatch { layer, says, room });
            }
            if let Some(u) = self.udp
                && net.fragment.is_none()
                && !void
            {
                let room = net.end.saturating_sub(u.start);
                if room != usize::from(u.len) {
                    self.notes.push(Note::LengthMismatch { layer: LayerKind::Udp, says: usize::from(u.len), room });
                }
            }
            end = end.max(net.end);
        }
        if let Some(t) = self.transport
            && self.net.is_none_or(|n| n.fragment.is_none())
        {
            end = end.max(t.start.saturating_add(t.declared));
            if t.encapsulation == Encapsulation::Native {
                end = end.saturating_add(icrc::VCRC_LEN);
            }
        }
        if end > 0 && self.wire_len > end {
            self.notes.push(Note::Trailer(self.wire_len - end));
        }
    }

    /// Bytes captured and bytes on the wire, without what a capture card puts around a frame (ERF): that is in
    /// [`Self::bytes`] too.
    pub fn lengths(&self) -> (usize, usize) {
        match self.layers.as_slice() {
            [Layer { kind: LayerKind::Erf, len, .. }, ..] => {
                let card = usize::from(*len);
                let wire = self.wire_len.saturating_sub(card);
                (self.bytes.len().saturating_sub(card).min(wire), wire)
            }
            _ => (self.bytes.len(), self.wire_len),
        }
    }

    /// VLAN id of the innermost tag.
    pub fn vlan(&self) -> Option<u16> {
        self.vlan_tci.map(|t| t & 0x0fff)
    }

    /// Bytes of a range, as far as they were captured.
    pub fn slice(&self, r: Range<usize>) -> &'a [u8] {
        self.bytes.get(r.start..r.end.min(self.bytes.len())).unwrap_or(&[])
    }
}

pub(crate) fn v4(b: [u8; 4]) -> Endpoint {
    Endpoint::Ip(IpAddr::V4(Ipv4Addr::from(b)))
}

pub(crate) fn v6(b: [u8; 16]) -> Endpoint {
    Endpoint::Ip(IpAddr::V6(Ipv6Addr::from(b)))
}
