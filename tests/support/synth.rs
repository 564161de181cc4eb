//! Makes RoCEv2 traffic for benches: the same bytes every time, every ICRC right, as a classic pcap file.
//!
//! The pattern is that of one-sided bulk transfer: WRITE First, Middle, Middle, Last, then the ACK of the
//! other side, over many queue pairs in turn.

use std::io::{self, BufWriter, Write};
use std::net::Ipv4Addr;
use std::path::Path;

use dissector::wire::outer::{IPV4_LEN, IPV6_LEN, UDP_LEN};
use dissector::wire::{Aeth, Bth, BthFields, Header, PKey, ROCE_UDP_PORT, Reth, Syndrome, icrc};

/// What a file holds.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Connections; each has one flow a direction.
    pub connections: u32,
    /// Bytes of payload of a full packet, a multiple of 4.
    pub payload: usize,
    /// What is sent.
    pub mix: Mix,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Behind a VLAN tag.
    pub vlan: Option<u16>,
    /// Every so many data packets one is not there, and is sent again right after the message; 0 for none.
    pub lose_every: u64,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// WRITE First, Middle, Middle, Last, ACK.
    Write,
    /// READ request, response First, Middle, Middle, Last.
    Read,
    /// SEND Only and its ACK.
    Send,
}

impl Default for Traffic {
    /// 64 connections that write 4 KiB at a time in 1 KiB packets.
    fn default() -> Self {
        Self {
            packets: 1_000_000,
            connections: 64,
            payload: 1024,
            mix: Mix::Write,
            ipv6: false,
            vlan: None,
            lose_every: 0,
        }
    }
}

/// One side of a connection to another.
#[derive(Clone, Copy)]
struct Way {
    src: u32,
    dst: u32,
    src_port: u16,
    dest_qp: u32,
}

struct Connection {
    there: Way,
    back: Way,
    psn: u32,
    msn: u32,
    step: usize,
    /// A packet that was lost and is due again: step and PSN.
    again: Option<(usize, u32)>,
}

/// One packet: its nanoseconds since the epoch and its bytes.
pub type Packet<'a> = (u64, &'a [u8]);

const FIRST_PSN: u32 = 0x00ff_ff00; // soon wraps
const START: u64 = 1_700_000_000_000_000_000;
const GAP: u64 = 1_000;

impl Traffic {
    /// Makes the packets one after the other.
    pub fn each(&self, mut f: impl FnMut(Packet<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut all: Vec<Connection> = (0..self.connections.max(1)).map(connection).collect();
        let data: Vec<u8> = (0..self.payload).map(|i| (i.wrapping_mul(167) >> 3) as u8).collect();
        let mut frame = Vec::with_capacity(self.payload + 200);
        let (mut made, mut data_packets, mut at, mut ip_id) = (0, 0_u64, START, 0_u16);
        let mut turn = 0;
        while made < self.packets {
            let count = all.len();
            let Some(c) = all.get_mut(turn % count) else { break };
            // each connection has the wire for one message
            let steps = self.steps();
            let (step, psn, resent) = match c.again {
                Some((step, psn)) if c.step == steps.len() - 1 => {
                    c.again = None;
                    (step, psn, true)
                }
                _ => (c.step, c.psn, false),
            };
            let s = steps[step];
            if !resent {
                c.step += 1;
                if s.new_psn {
                    c.psn = (c.psn + 1) & 0x00ff_ffff;
                }
                if c.step == steps.len() {
                    c.step = 0;
                    c.msn = (c.msn + 1) & 0x00ff_ffff;
                    turn += 1;
                    if self.mix == Mix::Read {
                        c.psn = (c.psn + 4) & 0x00ff_ffff;
                    }
                }
                if s.loses && self.lose_every > 0 {
                    data_packets += 1;
                    if data_packets.is_multiple_of(self.lose_every) && c.again.is_none() {
                        c.again = Some((step, psn));
                        continue;
                    }
                }
            }
            ip_id = ip_id.wrapping_add(1);
            at += GAP;
            let psn = (psn + s.psn_offset) & 0x00ff_ffff;
            self.frame(&mut frame, c, s, psn, &data, ip_id);
            f((at, &frame))?;
            made += 1;
        }
        Ok(())
    }

    /// Writes a classic pcap file with microseconds; its size.
    pub fn write(&self, out: impl Write) -> io::Result<u64> {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        out.write_all(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0])?;
        let mut size = 24;
        self.each(|(at, bytes)| {
            let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            let seconds = u32::try_from(at / 1_000_000_000).map_err(io::Error::other)?;
            let micros = u32::try_from(at % 1_000_000_000 / 1000).map_err(io::Error::other)?;
            for word in [seconds, micros, len, len] {
                out.write_all(&word.to_le_bytes())?;
            }
            size += 16 + u64::from(len);
            out.write_all(bytes)
        })?;
        out.flush()?;
        Ok(size)
    }

    /// Writes a file; its size.
    pub fn write_file(&self, path: &Path) -> io::Result<u64> {
        self.write(std::fs::File::create(path)?)
    }

    fn steps(&self) -> &'static [Step] {
        match self.mix {
            Mix::Write => WRITE,
            Mix::Read => READ,
            Mix::Send => SEND,
        }
    }

    fn frame(&self, out: &mut Vec<u8>, c: &Connection, s: Step, psn: u32, data: &[u8], ip_id: u16) {
        let way = if s.back { c.back } else { c.there };
        let extension: &[u8] = match s.header {
            Some(Header::Reth) => {
                let dma_len = u32::try_from(self.payload * 4).unwrap_or(u32::MAX);
                &Reth::emit(0x7f00_0000_0000 + u64::from(psn) * 4096, 0x1234, dma_len)
            }
            Some(Header::Aeth) => &Aeth::emit(Syndrome(0x1f), c.msn),
            _ => &[],
        };
        let data = if s.data { data } else { &[] };
        let bth =
            BthFields { ack_req: s.ack_req, p_key: PKey::DEFAULT, ..BthFields::new(s.opcode, way.dest_qp, psn) }.emit();
        let udp_len = UDP_LEN + Bth::LEN + extension.len() + data.len() + 4;
        out.clear();
        out.extend_from_slice(&[2, 0, 0, 0, 0, if s.back { 1 } else { 2 }]);
        out.extend_from_slice(&[2, 0, 0, 0, 0, if s.back { 2 } else { 1 }]);
        if let Some(vlan) = self.vlan {
            out.extend_from_slice(&[0x81, 0, (vlan >> 8) as u8 | 0x60, vlan as u8]);
        }
        let udp = udp(way.src_port, udp_len);
        let mut crc = crc32fast::Hasher::new();
        if self.ipv6 {
            out.extend_from_slice(&[0x86, 0xdd]);
            let ip = ipv6(way, udp_len);
            crc.update(&icrc::ipv6_head(&ip, &udp, &bth));
            out.extend_from_slice(&ip);
        } else {
            out.extend_from_slice(&[8, 0]);
            let ip = ipv4(way, udp_len, ip_id);
            crc.update(&icrc::ipv4_head(&ip, &udp, &bth));
            out.extend_from_slice(&ip);
        }
        for part in [&udp[..], &bth] {
            out.extend_from_slice(part);
        }
        for part in [extension, data] {
            out.extend_from_slice(part);
            crc.update(part);
        }
        out.extend_from_slice(&crc.finalize().to_le_bytes());
    }
}

/// One packet of a pattern.
#[derive(Clone, Copy)]
struct Step {
    opcode: u8,
    header: Option<Header>,
    data: bool,
    ack_req: bool,
    /// Goes from the responder to the requester.
    back: bool,
    /// The connection's PSN moves on after it.
    new_psn: bool,
    /// PSN of the packet, from the connection's.
    psn_offset: u32,
    /// May be lost.
    loses: bool,
}

const PLAIN: Step = Step {
    opcode: 0,
    header: None,
    data: true,
    ack_req: false,
    back: false,
    new_psn: true,
    psn_offset: 0,
    loses: true,
};
/// The PSN has moved past the packet that it acknowledges.
const ACK: Step = Step {
    opcode: 0x11,
    header: Some(Header::Aeth),
    data: false,
    back: true,
    new_psn: false,
    psn_offset: 0x00ff_ffff,
    loses: false,
    ..PLAIN
};
const WRITE: &[Step] = &[
    Step { opcode: 0x06, header: Some(Header::Reth), ..PLAIN },
    Step { opcode: 0x07, ..PLAIN },
    Step { opcode: 0x07, ..PLAIN },
    Step { opcode: 0x08, ack_req: true, ..PLAIN },
    ACK,
];
const SEND: &[Step] = &[Step { opcode: 0x04, ack_req: true, ..PLAIN }, ACK];
/// The response has the PSNs of the request: as many as it has packets.
const READ: &[Step] = &[
    Step {
        opcode: 0x0c,
        header: Some(Header::Reth),
        data: false,
        ack_req: true,
        new_psn: false,
        loses: false,
        ..PLAIN
    },
    Step { opcode: 0x0d, header: Some(Header::Aeth), back: true, new_psn: false, ..PLAIN },
    Step { opcode: 0x0e, back: true, new_psn: false, psn_offset: 1, ..PLAIN },
    Step { opcode: 0x0e, back: true, new_psn: false, psn_offset: 2, ..PLAIN },
    Step { opcode: 0x0f, header: Some(Header::Aeth), back: true, new_psn: false, psn_offset: 3, loses: false, ..PLAIN },
];

fn connection(n: u32) -> Connection {
    // sixteen hosts a side
    let (a, b) = (n % 16, n / 16 % 16 + 16);
    let port = 49_152 + (n % 16_000) as u16;
    Connection {
        there: Way { src: a, dst: b, src_port: port, dest_qp: 0x2000 + n },
        back: Way { src: b, dst: a, src_port: port.wrapping_add(77), dest_qp: 0x100 + n },
        psn: FIRST_PSN + n % 64,
        msn: 0,
        step: 0,
        again: None,
    }
}

fn ipv4(way: Way, udp_len: usize, id: u16) -> [u8; IPV4_LEN] {
    let mut ip = [0x45, 0x02, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let len = u16::try_from(IPV4_LEN + udp_len).unwrap_or(u16::MAX);
    ip[2..4].copy_from_slice(&len.to_be_bytes());
    ip[4..6].copy_from_slice(&id.to_be_bytes());
    let address = |host: u32| Ipv4Addr::from_bits(0x0a00_0001 + host).octets();
    ip[12..16].copy_from_slice(&address(way.src));
    ip[16..20].copy_from_slice(&address(way.dst));
    let sum: u32 = ip.chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    ip
}

fn ipv6(way: Way, udp_len: usize) -> [u8; IPV6_LEN] {
    let mut ip = [0; IPV6_LEN];
    ip[0..2].copy_from_slice(&[0x60, 0x20]);
    ip[4..6].copy_from_slice(&u16::try_from(udp_len).unwrap_or(u16::MAX).to_be_bytes());
    ip[6..8].copy_from_slice(&[17, 64]);
    for (at, host) in [(8, way.src), (24, way.dst)] {
        ip[at] = 0xfd;
        ip[at + 12..at + 16].copy_from_slice(&(host + 1).to_be_bytes());
    }
    ip
}

fn udp(src_port: u16, len: usize) -> [u8; UDP_LEN] {
    let [s0, s1] = src_port.to_be_bytes();
    let [d0, d1] = ROCE_UDP_PORT.to_be_bytes();
    let [l0, l1] = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    [s0, s1, d0, d1, l0, l1, 0, 0]
}
