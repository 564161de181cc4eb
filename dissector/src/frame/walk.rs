//! The long way: every way in, one step a header, until a transport or something that is none.
//!
//! Each step reads one header and says what follows it and where. Headers that are cut or contradict
//! themselves end the walk with a note; what was found before stays. The number of steps is bounded by
//! [`super::MAX_LAYERS`].

use etherparse::err::ip_auth::HeaderSliceError as AhError;
use etherparse::err::ipv4::HeaderSliceError as Ipv4Error;
use etherparse::err::ipv6::HeaderSliceError as Ipv6Error;
use etherparse::{
    IpAuthHeaderSlice, IpNumber, Ipv4HeaderSlice, Ipv6ExtensionSlice, Ipv6ExtensionsSlice, Ipv6HeaderSlice,
};

use super::aside::Carries;
use super::{
    Aside, Encapsulation, Fragment, Frame, LayerKind, Net, NetKind, Note, Transport, Udp, arp, icmp, lldp, pause, v4,
    v6,
};
use crate::flow::row::Endpoint;
use crate::wire::bytes::{be16, part};
use crate::wire::outer::{self, ETH_LEN, IPV4_LEN, IPV6_LEN, UDP_LEN, VLAN_LEN};
use crate::wire::{Bth, ETHERTYPE_ROCE_V1, Grh, Lrh};

/// What stands at the next offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Ethernet,
    EtherType(u16),
    Ipv4,
    Ipv6,
    /// IPv4 or IPv6 by the first four bits.
    IpByVersion,
    /// A protocol number of IPv4 or IPv6.
    Protocol(u8),
    Mpls,
    Pppoe,
    Nsh,
    Gre,
    Erspan,
    Erspan3,
    Vxlan,
    VxlanGpe,
    Geneve,
    EtherIp,
    Lrh,
    /// GRH after an LRH that started here.
    NativeGrh {
        lrh: usize,
    },
    Rwh,
}

pub(super) type Step = Option<(Next, usize)>;

pub(super) struct Walk<'f, 'a> {
    pub f: &'f mut Frame<'a>,
    port: u16,
    /// Where the outermost network packet ends.
    outer_end: Option<usize>,
}

/// EtherTypes beside those of [`outer`].
pub(super) mod ethertype {
    pub const ARP: u16 = 0x0806;
    pub const MPLS: u16 = 0x8847;
    pub const MPLS_MULTICAST: u16 = 0x8848;
    pub const PPPOE_SESSION: u16 = 0x8864;
    pub const FLOW_CONTROL: u16 = 0x8808;
    pub const LLDP: u16 = 0x88cc;
    pub const MACSEC: u16 = 0x88e5;
    /// IEEE 802.1ah: I-tag, then the customer's frame.
    pub const BACKBONE: u16 = 0x88e7;
    pub const HSR: u16 = 0x892f;
    pub const NSH: u16 = 0x894f;
    pub const CISCO_META: u16 = 0x8909;
    /// Transparent Ethernet bridging: GRE (NVGRE) and GENEVE.
    pub const BRIDGED: u16 = 0x6558;
    pub const ERSPAN: u16 = 0x88be;
    pub const ERSPAN_III: u16 = 0x22eb;
    /// Smallest value that is a type and not an IEEE 802.3 length.
    pub const FIRST: u16 = 0x0600;
}

/// IP protocol numbers beside those of [`outer`].
mod protocol {
    pub const ICMP: u8 = 1;
    pub const IPV4: u8 = 4;
    pub const IPV6: u8 = 41;
    pub const GRE: u8 = 47;
    pub const AH: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const ETHERIP: u8 = 97;
    pub const MPLS: u8 = 137;
}

/// UDP destination ports of tunnels (IANA), and Linux's older one for VXLAN.
mod port {
    pub const VXLAN: u16 = 4789;
    pub const VXLAN_LINUX: u16 = 8472;
    pub const VXLAN_GPE: u16 = 4790;
    pub const GENEVE: u16 = 6081;
    pub const MPLS: u16 = 6635;
    pub const GTP: u16 = 2152;
    pub const TZSP: u16 = 37008;
}

/// Walks a frame of any link type, of which nothing is known yet.
pub(super) fn walk(f: &mut Frame<'_>, port: u16) {
    let link = f.link;
    let mut w = Walk { f, port, outer_end: None };
    let mut at = w.link(link);
    while let Some((next, o)) = at {
        at = w.step(next, o);
    }
    let end = w.outer_end.unwrap_or(0);
    w.f.note_lengths(end);
}

impl<'a> Walk<'_, 'a> {
    pub fn at<const N: usize>(&mut self, layer: LayerKind, start: usize) -> Option<&'a [u8; N]> {
        let rest = self.rest(start);
        let b = rest.first_chunk();
        if b.is_none() {
            self.cut(layer, N, rest.len());
        }
        b
    }

    pub fn rest(&self, start: usize) -> &'a [u8] {
        self.f.bytes.get(start..).unwrap_or(&[])
    }

    pub fn cut(&mut self, layer: LayerKind, needed: usize, available: usize) {
        self.f.notes.push(Note::Truncated { layer, needed, available });
    }

    pub fn other(&mut self, what: impl Into<String>) -> Step {
        self.f.notes.push(Note::Other(what.into()));
        None
    }

    /// Adds a layer; `None`, with a note, when there are too many.
    pub fn push(&mut self, kind: LayerKind, start: usize, len: usize) -> Option<()> {
        if self.f.layers.push(kind, start, len) {
            return Some(());
        }
        self.f.notes.push(Note::TooDeep);
        None
    }

    pub fn carries(&mut self, what: Carries) -> Step {
        self.f.carries = what;
        None
    }

    fn aside(&mut self, what: Option<Aside>) {
        self.f.aside = what.map(Box::new);
    }

    fn step(&mut self, next: Next, o: usize) -> Step {
        match next {
            Next::Ethernet => self.ethernet(o),
            Next::EtherType(t) => self.ethertype(t, o),
            Next::Ipv4 => self.ipv4(o),
            Next::Ipv6 => self.ipv6(o),
            Next::IpByVersion => match self.rest(o).first().map(|b| b >> 4) {
                Some(4) => self.ipv4(o),
                Some(6) => self.ipv6(o),
                Some(v) => self.other(format!("IP version {v}, which is neither 4 nor 6")),
                None => {
                    self.cut(LayerKind::Ipv4, IPV4_LEN, 0);
                    None
                }
            },
            Next::Protocol(p) => self.protocol(p, o),
            Next::Mpls => self.mpls(o),
            Next::Pppoe => self.pppoe(o),
            Next::Nsh => self.nsh(o),
            Next::Gre => self.gre(o),
            Next::Erspan => self.erspan(o),
            Next::Erspan3 => self.erspan3(o),
            Next::Vxlan => self.vxlan(o),
            Next::VxlanGpe => self.vxlan_gpe(o),
            Next::Geneve => self.geneve(o),
            Next::EtherIp => self.etherip(o),
            Next::Lrh => self.lrh(o),
            Next::NativeGrh { lrh } => self.grh(o, Some(lrh)),
            Next::Rwh => self.rwh(o),
        }
    }

    fn ethernet(&mut self, o: usize) -> Step {
        let eth: &[u8; ETH_LEN] = self.at(LayerKind::Ethernet, o)?;
        self.push(LayerKind::Ethernet, o, ETH_LEN)?;
        self.f.ethernet = Some(o);
        self.f.vlan_tci = None;
        Some((Next::EtherType(be16::<12, 14>(eth)), o + ETH_LEN))
    }

    fn ethertype(&mut self, t: u16, o: usize) -> Step {
        match t {
            outer::ETHERTYPE_IPV4 => Some((Next::Ipv4, o)),
            outer::ETHERTYPE_IPV6 => Some((Next::Ipv6, o)),
            ETHERTYPE_ROCE_V1 => self.grh(o, None),
            t if outer::is_vlan(t) => {
                let tag: &[u8; VLAN_LEN] = self.at(LayerKind::Vlan, o)?;
                self.push(LayerKind::Vlan, o, VLAN_LEN)?;
                self.f.vlan_tci = Some(be16::<0, 4>(tag));
                Some((Next::EtherType(be16::<2, 4>(tag)), o + VLAN_LEN))
            }
            ethertype::MPLS | ethertype::MPLS_MULTICAST => Some((Next::Mpls, o)),
            ethertype::PPPOE_SESSION => Some((Next::Pppoe, o)),
            ethertype::BRIDGED => Some((Next::Ethernet, o)),
            ethertype::MACSEC => self.macsec(o),
            ethertype::BACKBONE => {
                self.at::<4>(LayerKind::Backbone, o)?;
                self.push(LayerKind::Backbone, o, 4)?;
                Some((Next::Ethernet, o + 4))
            }
            ethertype::NSH => Some((Next::Nsh, o)),
            ethertype::HSR => self.tag::<6>(LayerKind::Hsr, o),
            ethertype::CISCO_META => self.tag::<8>(LayerKind::CiscoMeta, o),
            ethertype::ARP => {
                self.aside(arp::parse(self.rest(o)).map(Aside::Arp));
                self.carries(Carries::EtherType(t))
            }
            ethertype::FLOW_CONTROL => {
                self.aside(pause::parse(self.rest(o)));
                self.carries(Carries::EtherType(t))
            }
            ethertype::LLDP => {
                self.aside(Some(Aside::Lldp(lldp::parse(self.rest(o)))));
                self.carries(Carries::EtherType(t))
            }
            0..ethertype::FIRST => self.llc(o),
            t => self.carries(Carries::EtherType(t)),
        }
    }

    /// IEEE 802.3: LLC, and the EtherType behind it if it is SNAP with one.
    fn llc(&mut self, o: usize) -> Step {
        const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
        let llc: &[u8; 3] = self.at(LayerKind::Llc, o)?;
        if *llc != SNAP {
            self.push(LayerKind::Llc, o, 3)?;
            return self.carries(Carries::Llc);
        }
        let snap: &[u8; 8] = self.at(LayerKind::Llc, o)?;
        self.push(LayerKind::Llc, o, 8)?;
        match *part::<3, 3, 8>(snap) {
            [0, 0, 0] => Some((Next::EtherType(be16::<6, 8>(snap)), o + 8)),
            _ => self.carries(Carries::Llc),
        }
    }

    fn net(&mut self, net: Net) {
        if self.outer_end.is_none() {
            self.outer_end = Some(net.end);
        }
        self.f.net = Some(net);
        self.f.udp = None;
    }

    fn ipv4(&mut self, o: usize) -> Step {
        let rest = self.rest(o);
        let ip = match Ipv4HeaderSlice::from_slice(rest) {
            Ok(ip) => ip,
            Err(Ipv4Error::Len(e)) => {
                self.cut(LayerKind::Ipv4, e.required_len, rest.len());
                return None;
            }
            Err(Ipv4Error::Content(e)) => return self.other(format!("not an IPv4 header: {e}")),
        };
        let len = ip.slice().len();
        self.push(LayerKind::Ipv4, o, len)?;
        let fragment = Fragment {
            offset: u32::from(ip.fragments_offset().value()) * 8, // counted in eight bytes
            more: ip.more_fragments(),
        };
        let fragment = (fragment.more || fragment.offset > 0).then_some(fragment);
        self.net(Net {
            kind: NetKind::Ipv4 { options: len > IPV4_LEN },
            start: o,
            src: v4(ip.source()),
            dst: v4(ip.destination()),
            tos: rest.get(1).copied().unwrap_or(0),
            ttl: ip.ttl(),
            ip_id: Some(ip.identification()),
            flow_label: None,
            end: o + usize::from(ip.total_len()),
            fragment,
        });
        if let Some(Fragment { offset: 1.., .. }) = fragment {
            return self.carries(Carries::Fragment);
        }
        Some((Next::Protocol(ip.protocol().0), o + len))
    }

    fn ipv6(&mut self, o: usize) -> Step {
        let rest = self.rest(o);
        let ip = match Ipv6HeaderSlice::from_slice(rest) {
            Ok(ip) => ip,
            Err(Ipv6Error::Len(e)) => {
                self.cut(LayerKind::Ipv6, e.required_len, rest.len());
                return None;
            }
            Err(Ipv6Error::Content(e)) => return self.other(format!("not an IPv6 header: {e}")),
        };
        self.push(LayerKind::Ipv6, o, IPV6_LEN)?;
        let (extensions, next, _, error) =
            Ipv6ExtensionsSlice::from_slice_lax(ip.next_header(), self.rest(o + IPV6_LEN));
        self.net(Net {
            kind: NetKind::Ipv6 { extensions: !extensions.is_empty() || error.is_some() },
            start: o,
            src: v6(ip.source()),
            dst: v6(ip.destination()),
            tos: ip.traffic_class(),
            ttl: ip.hop_limit(),
            ip_id: None,
            flow_label: Some(ip.flow_label().value()),
            end: o + IPV6_LEN + usize::from(ip.payload_length()),
            fragment: None,
        });
        let mut at = o + IPV6_LEN;
        let mut fragment = None;
        // etherparse's iterator would go on into the header at which the lax walk stopped, past the end of its slice
        let end_of_extensions = at + extensions.slice().len();
        let mut extensions = extensions.into_iter();
        while at < end_of_extensions {
            let Some(e) = extensions.next() else { break };
            let len = match &e {
                Ipv6ExtensionSlice::HopByHop(h)
                | Ipv6ExtensionSlice::Routing(h)
                | Ipv6ExtensionSlice::DestinationOptions(h) => h.slice().len(),
                Ipv6ExtensionSlice::Authentication(h) => h.slice().len(),
                Ipv6ExtensionSlice::Fragment(h) => {
                    if h.is_fragmenting_payload() {
                        let offset = u32::from(h.fragment_offset().value()) * 8;
                        fragment = Some((Fragment { offset, more: h.more_fragments() }, at + h.slice().len()));
                    }
                    h.slice().len()
                }
            };
            // what follows the header of a later fragment is data, whatever it looks like
            if let Some((Fragment { offset: 1.., .. }, end)) = fragment
                && at >= end
            {
                break;
            }
            self.push(LayerKind::Ipv6Extension, at, len)?;
            at += len;
        }
        if let (Some((f, _)), Some(net)) = (fragment, &mut self.f.net) {
            net.fragment = Some(f);
            if f.offset > 0 {
                return self.carries(Carries::Fragment);
            }
        }
        match error {
            None => Some((Next::Protocol(next.0), at)),
            Some((etherparse::err::ipv6_exts::HeaderSliceError::Len(e), _)) => {
                let available = self.rest(at).len();
                self.cut(LayerKind::Ipv6Extension, e.required_len, available);
                None
            }
            Some((e, _)) => self.other(format!("IPv6 extension header: {e}")),
        }
    }

    fn protocol(&mut self, p: u8, o: usize) -> Step {
        match p {
            outer::IPPROTO_UDP => self.udp(o),
            protocol::IPV4 => Some((Next::Ipv4, o)),
            protocol::IPV6 => Some((Next::Ipv6, o)),
            protocol::GRE => Some((Next::Gre, o)),
            protocol::ETHERIP => Some((Next::EtherIp, o)),
            protocol::MPLS => Some((Next::Mpls, o)),
            protocol::AH => {
                let rest = self.rest(o);
                match IpAuthHeaderSlice::from_slice(rest) {
                    Ok(ah) => {
                        let len = ah.slice().len();
                        self.push(LayerKind::Ah, o, len)?;
                        if let Some(Net { kind: NetKind::Ipv4 { options }, .. }) = &mut self.f.net {
                            *options = true; // the ICRC's rule knows nothing between IPv4 and UDP
                        }
                        let IpNumber(next) = ah.next_header();
                        Some((Next::Protocol(next), o + len))
                    }
                    Err(AhError::Len(e)) => {
                        self.cut(LayerKind::Ah, e.required_len, rest.len());
                        None
                    }
                    Err(e) => self.other(format!("IP authentication header: {e}")),
                }
            }
            protocol::ICMP | protocol::ICMPV6 => {
                self.aside(icmp::parse(self.rest(o), p == protocol::ICMPV6).map(Aside::Icmp));
                self.carries(Carries::Protocol(p))
            }
            p => self.carries(Carries::Protocol(p)),
        }
    }

    fn udp(&mut self, o: usize) -> Step {
        let u: &[u8; UDP_LEN] = self.at(LayerKind::Udp, o)?;
        self.push(LayerKind::Udp, o, UDP_LEN)?;
        let udp = Udp {
            start: o,
            src_port: be16::<0, 8>(u),
            dst_port: be16::<2, 8>(u),
            len: be16::<4, 8>(u),
            checksum: be16::<6, 8>(u),
        };
        self.f.udp = Some(udp);
        let start = o + UDP_LEN;
        if udp.dst_port == self.port {
            // the IP length is 0 in a giant packet, too: captured before it is cut up, or after it was joined
            let end = self.f.net.map_or(0, |n| if n.end > start { n.end } else { self.f.wire_len });
            let room = end.max(start) - start;
            let fragmented = self.f.net.is_some_and(|n| n.fragment.is_some());
            let declared = match usize::from(udp.len).checked_sub(UDP_LEN) {
                // more than was on the wire, where the network header knows better
                Some(n) if start + n > self.f.wire_len && room > 0 && !fragmented => n.min(room),
                Some(n) => n,
                // 0 is a jumbogram or a packet before segmentation, less than 8 is nonsense
                None => room.min(self.f.wire_len.max(start) - start),
            };
            self.f.transport = Some(Transport { encapsulation: Encapsulation::RoceV2, start, declared });
            return None;
        }
        match udp.dst_port {
            port::VXLAN | port::VXLAN_LINUX => Some((Next::Vxlan, start)),
            port::VXLAN_GPE => Some((Next::VxlanGpe, start)),
            port::GENEVE => Some((Next::Geneve, start)),
            port::MPLS => Some((Next::Mpls, start)),
            port::GTP => self.gtp(start),
            port::TZSP => self.tzsp(start),
            _ => self.carries(Carries::Udp),
        }
    }

    /// GRH: RoCEv1, or native InfiniBand whose LRH starts at `lrh`.
    fn grh(&mut self, o: usize, lrh: Option<usize>) -> Step {
        let grh = Grh(self.at(LayerKind::Grh, o)?);
        self.push(LayerKind::Grh, o, Grh::LEN)?;
        let start = o + Grh::LEN;
        let says = usize::from(grh.pay_len());
        self.net(Net {
            kind: NetKind::Grh,
            start: o,
            src: v6(*grh.sgid()),
            dst: v6(*grh.dgid()),
            tos: grh.traffic_class(),
            ttl: grh.hop_limit(),
            ip_id: None,
            flow_label: Some(grh.flow_label()),
            end: start + says,
            fragment: None,
        });
        if grh.ip_ver() != 6 {
            self.f.notes.push(Note::Other(format!("GRH with IP version {}, which must be 6", grh.ip_ver())));
        }
        if grh.next_header() != Grh::NEXT_BTH {
            return self.other(format!(
                "GRH with next header {:#04x}: no BTH follows ({:#04x} would say so)",
                grh.next_header(),
                Grh::NEXT_BTH
            ));
        }
        let room = match lrh {
            // the LRH's word counts on an InfiniBand link
            Some(lrh) => self.native_end(lrh, start).saturating_sub(start),
            None => self.f.wire_len.saturating_sub(start),
        };
        let (encapsulation, declared) = match lrh {
            Some(_) => (Encapsulation::Native, room),
            None if says < Bth::LEN && room > says => {
                self.f.notes.push(Note::LengthMismatch { layer: LayerKind::Grh, says, room });
                (Encapsulation::RoceV1, if says == 0 { room } else { says })
            }
            None => (Encapsulation::RoceV1, says),
        };
        if lrh.is_some() && says != room {
            self.f.notes.push(Note::LengthMismatch { layer: LayerKind::Grh, says, room });
        }
        self.f.transport = Some(Transport { encapsulation, start, declared });
        None
    }

    /// Where the ICRC of a native packet ends: by the LRH, or, if its length makes no sense, by the frame.
    fn native_end(&self, lrh: usize, transport: usize) -> usize {
        let words = self.rest(lrh).first_chunk().map_or(0, |b| Lrh(b).pkt_len());
        let end = lrh + usize::from(words) * 4;
        if end < transport + Bth::LEN { self.f.wire_len.max(transport) } else { end }
    }

    fn lrh(&mut self, o: usize) -> Step {
        let lrh = Lrh(self.at(LayerKind::Lrh, o)?);
        self.push(LayerKind::Lrh, o, Lrh::LEN)?;
        let start = o + Lrh::LEN;
        let says = usize::from(lrh.pkt_len()) * 4;
        self.net(Net {
            kind: NetKind::Lrh,
            start: o,
            src: Endpoint::Lid(lrh.slid()),
            dst: Endpoint::Lid(lrh.dlid()),
            tos: 0,
            ttl: 0,
            ip_id: None,
            flow_label: None,
            end: o + says,
            fragment: None,
        });
        if says < Lrh::LEN + Bth::LEN {
            let room = self.f.wire_len.saturating_sub(o);
            self.f.notes.push(Note::LengthMismatch { layer: LayerKind::Lrh, says, room });
        }
        if lrh.dlid() == 0 {
            self.f.notes.push(Note::Other("destination LID 0 is reserved: no port has it".to_owned()));
        }
        match lrh.lnh() {
            0 => Some((Next::Rwh, start)),
            1 => Some((Next::Ipv6, start)),
            2 => {
                let declared = self.native_end(o, start).saturating_sub(start);
                self.f.transport = Some(Transport { encapsulation: Encapsulation::Native, start, declared });
                None
            }
            _ => Some((Next::NativeGrh { lrh: o }, start)),
        }
    }

    fn rwh(&mut self, o: usize) -> Step {
        let rwh: &[u8; 4] = self.at(LayerKind::Rwh, o)?;
        self.push(LayerKind::Rwh, o, 4)?;
        Some((Next::EtherType(be16::<2, 4>(rwh)), o + 4))
    }
}
