//! ICMP and ICMPv6 (RFC 792, 1191, 4443): above all the errors, which quote the packet that they are about.

use std::fmt;
use std::net::IpAddr;

use etherparse::{Ipv4HeaderSlice, Ipv6ExtensionsSlice, Ipv6HeaderSlice};

use crate::wire::bytes::be16;
use crate::wire::outer::{IPPROTO_UDP, UDP_LEN};
use crate::wire::{Bth, Op};

/// An ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// ICMPv6, not ICMP.
    pub v6: bool,
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// MTU of "too big" messages.
    pub mtu: Option<u32>,
    /// The packet that an error quotes, as far as it is there.
    pub quoted: Option<Quoted>,
}

/// Head of a packet inside an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Who sent it.
    pub src: IpAddr,
    /// Where it was to go.
    pub dst: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Length that its IP header says, bytes.
    pub len: u32,
    /// UDP ports, source first.
    pub ports: Option<(u16, u16)>,
    /// Opcode, destination QP and PSN, if as much as the BTH is quoted; only meaningful if the port is RoCE's.
    pub bth: Option<(u8, u32, u32)>,
}

impl Icmp {
    /// Whether it is an error about another packet.
    pub const fn is_error(&self) -> bool {
        if self.v6 { self.kind < 128 } else { matches!(self.kind, 3 | 4 | 5 | 11 | 12) }
    }

    /// Type and code in words.
    pub const fn name(&self) -> &'static str {
        match (self.v6, self.kind, self.code) {
            (false, 0, _) | (true, 129, _) => "echo reply",
            (false, 8, _) | (true, 128, _) => "echo request",
            (false, 3, 0) => "network unreachable",
            (false, 3, 1) => "host unreachable",
            (false, 3, 2) => "protocol unreachable",
            (false, 3, 3) | (true, 1, 4) => "port unreachable",
            (false, 3, 4) => "fragmentation needed but not allowed",
            (false, 3, 9 | 10 | 13) | (true, 1, 1) => "administratively prohibited",
            (true, 1, 0) => "no route to destination",
            (true, 1, 3) => "address unreachable",
            (false, 3, _) | (true, 1, _) => "destination unreachable",
            (false, 4, _) => "source quench",
            (false, 5, _) | (true, 137, _) => "redirect",
            (false, 11, 0) => "TTL exceeded",
            (true, 3, 0) => "hop limit exceeded",
            (false, 11, _) | (true, 3, _) => "reassembly time exceeded",
            (false, 12, _) | (true, 4, _) => "parameter problem",
            (true, 2, _) => "packet too big",
            (true, 130..=132 | 143, _) => "multicast listener",
            (true, 133, _) => "router solicitation",
            (true, 134, _) => "router advertisement",
            (true, 135, _) => "neighbour solicitation",
            (true, 136, _) => "neighbour advertisement",
            _ => "other message",
        }
    }
}

/// From the ICMP header on; `None` if that is cut.
pub fn parse(bytes: &[u8], v6: bool) -> Option<Icmp> {
    let (head, body) = bytes.split_first_chunk::<8>()?;
    let [kind, code, _, _, m0, m1, m2, m3] = *head;
    let mut icmp = Icmp { v6, kind, code, mtu: None, quoted: None };
    if icmp.is_error() {
        icmp.quoted = quoted(body);
        icmp.mtu = match (v6, kind, code) {
            (false, 3, 4) => Some(u32::from(u16::from_be_bytes([m2, m3]))),
            (true, 2, _) => Some(u32::from_be_bytes([m0, m1, m2, m3])),
            _ => None,
        };
    }
    Some(icmp)
}

fn quoted(bytes: &[u8]) -> Option<Quoted> {
    let (mut q, rest, later_fragment) = match bytes.first()? >> 4 {
        4 => {
            let ip = Ipv4HeaderSlice::from_slice(bytes).ok()?;
            let q = Quoted {
                src: ip.source_addr().into(),
                dst: ip.destination_addr().into(),
                protocol: ip.protocol().0,
                len: u32::from(ip.total_len()),
                ports: None,
                bth: None,
            };
            (q, bytes.get(ip.slice().len()..)?, ip.fragments_offset().value() > 0)
        }
        6 => {
            let ip = Ipv6HeaderSlice::from_slice(bytes).ok()?;
            let after = bytes.get(ip.slice().len()..)?;
            let (extensions, next, rest, _) = Ipv6ExtensionsSlice::from_slice_lax(ip.next_header(), after);
            let q = Quoted {
                src: ip.source_addr().into(),
                dst: ip.destination_addr().into(),
                protocol: next.0,
                len: u32::from(ip.payload_length()) + 40,
                ports: None,
                bth: None,
            };
            (q, rest, extensions.is_fragmenting_payload())
        }
        _ => return None,
    };
    if q.protocol == IPPROTO_UDP
        && !later_fragment
        && let Some((udp, rest)) = rest.split_first_chunk::<UDP_LEN>()
    {
        q.ports = Some((be16::<0, 8>(udp), be16::<2, 8>(udp)));
        q.bth = Bth::split(rest).ok().map(|(b, _)| (b.opcode(), b.dest_qp().get(), b.psn().get()));
    }
    Some(q)
}

impl Quoted {
    /// Whether it is a RoCEv2 packet by its UDP destination port.
    pub fn is_roce(&self, port: u16) -> bool {
        self.ports.is_some_and(|(_, d)| d == port)
    }
}

impl fmt::Display for Icmp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.name() == "other message" {
            write!(f, " (type {}, code {})", self.kind, self.code)?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, ", MTU {mtu}")?;
        }
        let Some(q) = &self.quoted else { return Ok(()) };
        write!(f, ", about {} to {}", q.src, q.dst)?;
        match q.ports {
            Some((s, d)) => write!(f, ", UDP {s} to {d}, {} bytes", q.len)?,
            None => write!(f, ", IP protocol {}, {} bytes", q.protocol, q.len)?,
        }
        if q.is_roce(crate::wire::ROCE_UDP_PORT) {
            f.write_str(" (RoCE")?;
            if let Some((opcode, qp, psn)) = q.bth {
                match Op::of(opcode) {
                    Some(op) => write!(f, ": {}", op.name)?,
                    None => write!(f, ": opcode {opcode:#04x}")?,
                }
                write!(f, ", QP {qp:#08x}, PSN {psn}")?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}
