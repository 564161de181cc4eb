//! Where a frame starts, by the link type of the capture.

use super::aside::{Aside, IbLink};
use super::walk::{Next, Step, Walk};
use super::{LayerKind, LinkType};
use crate::wire::bytes::{be16, be32, part, u8_at};

/// ERF record types (Endace, "ERF types reference").
mod erf {
    pub const ETHERNET: u8 = 2;
    pub const COLOR_ETHERNET: u8 = 11;
    pub const DSM_COLOR_ETHERNET: u8 = 16;
    pub const COLOR_HASH_ETHERNET: u8 = 20;
    pub const INFINIBAND: u8 = 21;
    pub const IPV4: u8 = 22;
    pub const IPV6: u8 = 23;
    pub const INFINIBAND_LINK: u8 = 25;
    /// Record header.
    pub const HEADER: usize = 16;
    /// One extension header.
    pub const EXTENSION: usize = 8;
    /// More extension headers than this is damage.
    pub const MAX_EXTENSIONS: usize = 64;
    /// Offset and pad bytes between the headers and an Ethernet frame.
    pub const ETHERNET_PAD: usize = 2;
}

impl Walk<'_, '_> {
    /// First step by the link type.
    pub(super) fn link(&mut self, link: LinkType) -> Step {
        match link.0 {
            1 => Some((Next::Ethernet, 0)),
            0 => self.null(false),
            108 => self.null(true),
            // BSD's own numbers for raw IP too: they get into files
            101 | 12 | 14 => Some((Next::IpByVersion, 0)),
            228 => Some((Next::Ipv4, 0)),
            229 => Some((Next::Ipv6, 0)),
            113 => {
                let h: &[u8; 16] = self.at(LayerKind::Sll, 0)?;
                self.push(LayerKind::Sll, 0, 16)?;
                Some((Next::EtherType(be16::<14, 16>(h)), 16))
            }
            276 => {
                let h: &[u8; 20] = self.at(LayerKind::Sll2, 0)?;
                self.push(LayerKind::Sll2, 0, 20)?;
                Some((Next::EtherType(be16::<0, 20>(h)), 20))
            }
            9 | 50 => self.ppp(0),
            // a byte that tells the direction, in place of the address or before it
            166 => self.ppp_directed(1),
            204 => self.ppp_directed(0),
            51 => Some((Next::Pppoe, 0)),
            104 => {
                let h: &[u8; 4] = self.at(LayerKind::Chdlc, 0)?;
                self.push(LayerKind::Chdlc, 0, 4)?;
                Some((Next::EtherType(be16::<2, 4>(h)), 4))
            }
            239 => self.nflog(),
            197 => self.erf(),
            247 => Some((Next::Lrh, 0)),
            242 => self.ipoib(),
            n => self.other(format!("link type {n} is not read here")),
        }
    }

    /// BSD loopback: an address family in the byte order of the machine that captured (or, for link type
    /// 108, big-endian).
    fn null(&mut self, network_order: bool) -> Step {
        let h: &[u8; 4] = self.at(LayerKind::Null, 0)?;
        self.push(LayerKind::Null, 0, 4)?;
        let big = u32::from_be_bytes(*h);
        let little = u32::from_le_bytes(*h);
        let family = if network_order || little > 0xffff { big } else { little };
        match family {
            2 => Some((Next::Ipv4, 4)),
            // NetBSD and OpenBSD, FreeBSD, macOS
            24 | 28 | 30 => Some((Next::Ipv6, 4)),
            f => self.other(format!("loopback header with address family {f}, which is not IP")),
        }
    }

    /// PPP in HDLC-like framing (RFC 1662), address and control perhaps left out.
    fn ppp(&mut self, o: usize) -> Step {
        let head = if self.rest(o).starts_with(&[0xff, 0x03]) { 2 } else { 0 };
        self.ppp_protocol(LayerKind::Ppp, o, head)
    }

    /// The same behind a byte of the capture, which may stand where the address would.
    fn ppp_directed(&mut self, instead_of_address: usize) -> Step {
        self.at::<1>(LayerKind::Ppp, 0)?;
        match self.rest(1) {
            [0x03, ..] if instead_of_address == 1 => self.ppp_protocol(LayerKind::Ppp, 0, 2),
            _ => self.ppp(1),
        }
    }

    /// Netfilter log: family, version, resource id, then attributes, one of which is the packet.
    fn nflog(&mut self) -> Step {
        const HEAD: usize = 4;
        const PAYLOAD: u16 = 9;
        let h: &[u8; HEAD] = self.at(LayerKind::Nflog, 0)?;
        let family = u8_at::<0, HEAD>(h);
        let mut o = HEAD;
        loop {
            let a: &[u8; 4] = self.at(LayerKind::Nflog, o)?;
            // in the byte order of the machine that captured; lengths are small, so that the order shows
            let little = u16::from_le_bytes(*part::<0, 2, 4>(a));
            let (len, kind) = if usize::from(little) <= self.rest(o).len().max(4) && little >= 4 {
                (little, u16::from_le_bytes(*part::<2, 2, 4>(a)))
            } else {
                (be16::<0, 4>(a), be16::<2, 4>(a))
            };
            if len < 4 {
                return self.other(format!("an NFLOG attribute that says it is {len} bytes long"));
            }
            if kind & 0x7fff == PAYLOAD {
                self.push(LayerKind::Nflog, 0, o + 4)?;
                return match family {
                    2 => Some((Next::Ipv4, o + 4)),
                    10 => Some((Next::Ipv6, o + 4)),
                    f => self.other(format!("NFLOG record of family {f}, which is not IP")),
                };
            }
            o += usize::from(len).next_multiple_of(4);
        }
    }

    fn erf(&mut self) -> Step {
        let h: &[u8; erf::HEADER] = self.at(LayerKind::Erf, 0)?;
        let kind = u8_at::<8, 16>(h);
        let mut o = erf::HEADER;
        let mut more = kind & 0x80 != 0;
        let mut count = 0;
        while more {
            if count == erf::MAX_EXTENSIONS {
                return self.other(format!("an ERF record with more than {} extension headers", erf::MAX_EXTENSIONS));
            }
            let e: &[u8; erf::EXTENSION] = self.at(LayerKind::Erf, o)?;
            more = u8_at::<0, 8>(e) & 0x80 != 0;
            o += erf::EXTENSION;
            count += 1;
        }
        let kind = kind & 0x7f;
        let ethernet =
            matches!(kind, erf::ETHERNET | erf::COLOR_ETHERNET | erf::DSM_COLOR_ETHERNET | erf::COLOR_HASH_ETHERNET);
        if ethernet {
            self.at::<{ erf::ETHERNET_PAD }>(LayerKind::Erf, o)?;
            o += erf::ETHERNET_PAD;
        }
        self.push(LayerKind::Erf, 0, o)?;
        // the record's own word about the wire; the file's length counts record header and padding
        self.f.wire_len = o + usize::from(be16::<14, 16>(h));
        match kind {
            _ if ethernet => Some((Next::Ethernet, o)),
            erf::INFINIBAND => Some((Next::Lrh, o)),
            erf::IPV4 => Some((Next::Ipv4, o)),
            erf::IPV6 => Some((Next::Ipv6, o)),
            erf::INFINIBAND_LINK => {
                let link = self.rest(o).first_chunk().map(IbLink::parse);
                self.f.aside = link.map(|l| Box::new(Aside::IbLink(l)));
                if self.f.aside.is_none() {
                    let there = self.rest(o).len();
                    self.cut(LayerKind::Erf, o + 6, o + there);
                }
                None
            }
            k => {
                self.f.carries = super::Carries::ErfType(k);
                self.other(format!("ERF record type {k} is not read here"))
            }
        }
    }

    /// IP over InfiniBand: a 40-byte head, EtherType, two reserved bytes. The InfiniBand headers were
    /// taken off before the capture.
    fn ipoib(&mut self) -> Step {
        const HEAD: usize = 44;
        let h: &[u8; HEAD] = self.at(LayerKind::Ipoib, 0)?;
        self.push(LayerKind::Ipoib, 0, HEAD)?;
        self.f.aside = Some(Box::new(Aside::Ipoib));
        Some((Next::EtherType((be32::<40, 44>(h) >> 16) as u16), HEAD))
    }
}
