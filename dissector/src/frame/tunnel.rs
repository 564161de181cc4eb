//! Headers that wrap another frame or packet: MPLS, PPPoE, GRE, ERSPAN, VXLAN, GENEVE, EtherIP.

use super::LayerKind;
use super::walk::{Next, Step, Walk, ethertype};
use crate::wire::bytes::{be16, be32, u8_at};
use crate::wire::outer::{self, ETH_LEN};

impl Walk<'_, '_> {
    /// The whole label stack (RFC 3032). What follows is known to the switches only, so it is told by its
    /// first four bits, as routers do for load balancing (RFC 4928).
    pub(super) fn mpls(&mut self, mut o: usize) -> Step {
        loop {
            let label: &[u8; 4] = self.at(LayerKind::Mpls, o)?;
            self.push(LayerKind::Mpls, o, 4)?;
            o += 4;
            if be32::<0, 4>(label) & 0x100 != 0 {
                break;
            }
        }
        let rest = self.rest(o);
        let ethernet = rest.get(12..ETH_LEN).is_some_and(|t| {
            let t = u16::from(t[0]) << 8 | u16::from(t[1]);
            matches!(t, outer::ETHERTYPE_IPV4 | outer::ETHERTYPE_IPV6 | crate::wire::ETHERTYPE_ROCE_V1)
                || outer::is_vlan(t)
        });
        match rest.first() {
            // a MAC address may begin with a 4 or a 6 as well
            Some(b) if b >> 4 == 4 && !ethernet => Some((Next::Ipv4, o)),
            Some(b) if b >> 4 == 6 && !ethernet => Some((Next::Ipv6, o)),
            Some(0..16) if !ethernet => {
                self.at::<4>(LayerKind::ControlWord, o)?;
                self.push(LayerKind::ControlWord, o, 4)?;
                Some((Next::Ethernet, o + 4))
            }
            Some(_) => Some((Next::Ethernet, o)),
            None => {
                self.cut(LayerKind::Ethernet, ETH_LEN, 0);
                None
            }
        }
    }

    /// PPPoE session stage (RFC 2516) and the PPP protocol word.
    pub(super) fn pppoe(&mut self, o: usize) -> Step {
        self.ppp_protocol(LayerKind::Pppoe, o, 6)
    }

    /// The PPP protocol word behind the first `head` bytes of a header.
    pub(super) fn ppp_protocol(&mut self, kind: LayerKind, o: usize, head: usize) -> Step {
        // a protocol below 0x100 may be sent in one byte (RFC 1661, 6.5)
        let (protocol, len) = match *self.rest(o + head) {
            [p, ..] if p & 1 != 0 => (p.into(), head + 1),
            [high, low, ..] => (u16::from_be_bytes([high, low]), head + 2),
            _ => {
                let available = self.rest(o).len();
                self.cut(kind, head + 2, available);
                return None;
            }
        };
        self.push(kind, o, len)?;
        match protocol {
            0x0021 => Some((Next::Ipv4, o + len)),
            0x0057 => Some((Next::Ipv6, o + len)),
            0x0281 | 0x0283 => Some((Next::Mpls, o + len)),
            p => {
                self.f.carries = super::Carries::Ppp(p);
                None
            }
        }
    }

    /// GRE (RFC 2784, 2890), also version 1 (RFC 2637).
    pub(super) fn gre(&mut self, o: usize) -> Step {
        let h: &[u8; 4] = self.at(LayerKind::Gre, o)?;
        let flags = be16::<0, 4>(h);
        let set = |bit: u16| usize::from(flags & bit != 0);
        let checksum_or_routing = set(0x8000) | set(0x4000);
        let (sequence, version) = (set(0x1000), flags & 7);
        let mut len = 4 + 4 * (checksum_or_routing + set(0x2000) + sequence);
        if version == 1 {
            len += 4 * set(0x0080);
        }
        let there = self.rest(o).len();
        if there < len {
            self.cut(LayerKind::Gre, len, there);
            return None;
        }
        self.push(LayerKind::Gre, o, len)?;
        let o = o + len;
        match be16::<2, 4>(h) {
            // type I has no header of its own, and GRE no sequence number
            ethertype::ERSPAN if sequence == 0 => Some((Next::Ethernet, o)),
            ethertype::ERSPAN => Some((Next::Erspan, o)),
            ethertype::ERSPAN_III => Some((Next::Erspan3, o)),
            t => Some((Next::EtherType(t), o)),
        }
    }

    /// ERSPAN type II (draft-foschiano-erspan); type III by its version under the same EtherType.
    pub(super) fn erspan(&mut self, o: usize) -> Step {
        let h: &[u8; 8] = self.at(LayerKind::Erspan, o)?;
        if u8_at::<0, 8>(h) >> 4 == 2 {
            return self.erspan3(o);
        }
        self.push(LayerKind::Erspan, o, 8)?;
        Some((Next::Ethernet, o + 8))
    }

    /// ERSPAN type III, with the platform's own eight bytes if the header says so.
    pub(super) fn erspan3(&mut self, o: usize) -> Step {
        let h: &[u8; 12] = self.at(LayerKind::Erspan, o)?;
        let last = be32::<8, 12>(h);
        let len = if last & 1 != 0 { 20 } else { 12 };
        let there = self.rest(o).len();
        if there < len {
            self.cut(LayerKind::Erspan, len, there);
            return None;
        }
        self.push(LayerKind::Erspan, o, len)?;
        // frame type: 0 Ethernet, 2 IP
        match (last >> 10) & 31 {
            0 => Some((Next::Ethernet, o + len)),
            2 => Some((Next::IpByVersion, o + len)),
            t => self.other(format!("ERSPAN frame type {t}, which is neither Ethernet nor IP")),
        }
    }

    /// VXLAN (RFC 7348).
    pub(super) fn vxlan(&mut self, o: usize) -> Step {
        let h: &[u8; 8] = self.at(LayerKind::Vxlan, o)?;
        if u8_at::<0, 8>(h) & 0x08 == 0 {
            self.f.carries = super::Carries::Udp;
            return self.other("UDP port of VXLAN, but the header's I flag is not set: not taken for VXLAN");
        }
        self.push(LayerKind::Vxlan, o, 8)?;
        Some((Next::Ethernet, o + 8))
    }

    /// Network service header (RFC 8300, 2.2): its length counts words of four bytes.
    pub(super) fn nsh(&mut self, o: usize) -> Step {
        let h: &[u8; 8] = self.at(LayerKind::Nsh, o)?;
        let len = 4 * usize::from(be16::<0, 8>(h) & 0x3f);
        if len < 8 {
            return self.other(format!("NSH of {len} bytes, where its fixed part takes eight"));
        }
        let there = self.rest(o).len();
        if there < len {
            self.cut(LayerKind::Nsh, len, there);
            return None;
        }
        self.push(LayerKind::Nsh, o, len)?;
        match u8_at::<3, 8>(h) {
            1 => Some((Next::Ipv4, o + len)),
            2 => Some((Next::Ipv6, o + len)),
            3 => Some((Next::Ethernet, o + len)),
            4 => Some((Next::Nsh, o + len)),
            5 => Some((Next::Mpls, o + len)),
            p => self.other(format!("NSH with next protocol {p}, which is not read here")),
        }
    }

    /// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe): the last byte of the first word says what follows.
    pub(super) fn vxlan_gpe(&mut self, o: usize) -> Step {
        let h: &[u8; 8] = self.at(LayerKind::Vxlan, o)?;
        self.push(LayerKind::Vxlan, o, 8)?;
        match (u8_at::<0, 8>(h) & 0x04 != 0, u8_at::<3, 8>(h)) {
            (true, 1) => Some((Next::Ipv4, o + 8)),
            (true, 2) => Some((Next::Ipv6, o + 8)),
            (true, 4) => Some((Next::Nsh, o + 8)),
            (true, 5) => Some((Next::Mpls, o + 8)),
            _ => Some((Next::Ethernet, o + 8)),
        }
    }

    /// GENEVE (RFC 8926).
    pub(super) fn geneve(&mut self, o: usize) -> Step {
        let h: &[u8; 8] = self.at(LayerKind::Geneve, o)?;
        let first = u8_at::<0, 8>(h);
        if first >> 6 != 0 {
            self.f.carries = super::Carries::Udp;
            return self.other(format!("UDP port of GENEVE, but version {}: not taken for GENEVE", first >> 6));
        }
        let len = 8 + usize::from(first & 0x3f) * 4;
        let there = self.rest(o).len();
        if there < len {
            self.cut(LayerKind::Geneve, len, there);
            return None;
        }
        self.push(LayerKind::Geneve, o, len)?;
        Some((Next::EtherType(be16::<2, 8>(h)), o + len))
    }

    /// A MACsec tag (IEEE 802.1AE, 9.3). Only of a frame that is not encrypted is there more to read.
    pub(super) fn macsec(&mut self, o: usize) -> Step {
        const CHANGED_OR_ENCRYPTED: u8 = 0x0c;
        const HAS_SCI: u8 = 0x20;
        let Some([tci, ..]) = self.rest(o).first_chunk::<6>().copied() else {
            return self.carries(super::Carries::EtherType(ethertype::MACSEC));
        };
        if tci & CHANGED_OR_ENCRYPTED != 0 {
            return self.carries(super::Carries::EtherType(ethertype::MACSEC));
        }
        let len = if tci & HAS_SCI != 0 { 14 } else { 6 };
        let t: &[u8; 2] = self.at(LayerKind::Macsec, o + len)?;
        self.push(LayerKind::Macsec, o, len + 2)?;
        Some((Next::EtherType(be16::<0, 2>(t)), o + len + 2))
    }

    /// A tag of `LEN` bytes whose last two are an EtherType.
    pub(super) fn tag<const LEN: usize>(&mut self, kind: LayerKind, o: usize) -> Step {
        let tag: &[u8; LEN] = self.at(kind, o)?;
        self.push(kind, o, LEN)?;
        let t = tag.last_chunk::<2>().map_or(0, |b| u16::from_be_bytes(*b));
        Some((Next::EtherType(t), o + LEN))
    }

    /// TaZmen Sniffer Protocol, as mirrors of some vendors send it: version, type, what is carried, then tags.
    pub(super) fn tzsp(&mut self, start: usize) -> Step {
        const PADDING: u8 = 0;
        const END: u8 = 1;
        const ETHERNET: u16 = 1;
        let h: &[u8; 4] = self.at(LayerKind::Tzsp, start)?;
        let (version, what) = (u8_at::<0, 4>(h), be16::<2, 4>(h));
        if version != 1 || what != ETHERNET {
            return self.carries(super::Carries::Udp);
        }
        let mut o = start + 4;
        loop {
            match *self.rest(o) {
                [PADDING, ..] => o += 1,
                [END, ..] => break,
                [_, len, ..] => o += 2 + usize::from(len),
                _ => {
                    let available = self.rest(start).len();
                    self.cut(LayerKind::Tzsp, available + 1, available);
                    return None;
                }
            }
        }
        self.push(LayerKind::Tzsp, start, o + 1 - start)?;
        Some((Next::Ethernet, o + 1))
    }

    /// GTP-U (3GPP TS 29.281, 5): user data only.
    pub(super) fn gtp(&mut self, start: usize) -> Step {
        const USER_DATA: u8 = 0xff;
        const NO_MORE: u8 = 0;
        let h: &[u8; 8] = self.at(LayerKind::Gtp, start)?;
        let (flags, kind) = (u8_at::<0, 8>(h), u8_at::<1, 8>(h));
        if flags >> 4 != 3 || kind != USER_DATA {
            return self.carries(super::Carries::Udp);
        }
        let mut o = start + 8;
        if flags & 7 != 0 {
            let more: &[u8; 4] = self.at(LayerKind::Gtp, o)?;
            let mut next = if flags & 4 != 0 { u8_at::<3, 4>(more) } else { NO_MORE };
            o += 4;
            while next != NO_MORE {
                // counted in four bytes, the last of which names the next one
                let len = match self.rest(o).first() {
                    Some(n) if *n > 0 => usize::from(*n) * 4,
                    _ => return self.other("a GTP-U extension header without a length"),
                };
                let Some(last) = self.rest(o).get(len - 1) else {
                    let available = self.rest(o).len();
                    self.cut(LayerKind::Gtp, len, available);
                    return None;
                };
                next = *last;
                o += len;
            }
        }
        self.push(LayerKind::Gtp, start, o - start)?;
        Some((Next::IpByVersion, o))
    }

    /// EtherIP (RFC 3378).
    pub(super) fn etherip(&mut self, o: usize) -> Step {
        self.at::<2>(LayerKind::EtherIp, o)?;
        self.push(LayerKind::EtherIp, o, 2)?;
        Some((Next::Ethernet, o + 2))
    }
}
