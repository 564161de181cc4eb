//! Generated packets: all 256 opcodes and every way in, as capture files of one link type each.
//!
//! Written from the layouts alone, not with the dissector's builders: what reads them is what is tested.
#![expect(clippy::cast_possible_truncation, reason = "lengths and numbers of small made-up packets")]

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Every opcode over Ethernet, IPv4 and UDP.
    Opcodes,
    /// Values at the edges of every field.
    Edges,
    /// VLAN tags, IPv6, RoCEv1, MPLS, PPPoE and tunnels, all in Ethernet.
    Ethernet,
    /// Linux cooked.
    Sll,
    /// Linux cooked, version 2.
    Sll2,
    /// Raw IP.
    Raw,
    /// BSD loopback.
    Null,
    /// ERF records: InfiniBand and Ethernet.
    Erf,
    /// PPP, with and without address and control, and with a short protocol word.
    Ppp,
    /// Cisco HDLC.
    Hdlc,
    /// Records of the Linux packet filter's log.
    Nflog,
    /// Cut by the capture.
    Cut,
    /// Every opcode with payloads that are too short, odd or padded, over changing ways in; seeded.
    Mixed,
    /// Management datagrams: every class, attribute and RMPP type that is known, patterned and seeded.
    Mads,
    /// What is no RoCE, and what looks like it: ARP, ICMP, TCP, MAC control, LLC, fragments, UDP from port 4791.
    Beside,
}

impl Way {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Opcodes,
        Self::Edges,
        Self::Ethernet,
        Self::Sll,
        Self::Sll2,
        Self::Raw,
        Self::Null,
        Self::Erf,
        Self::Ppp,
        Self::Hdlc,
        Self::Nflog,
        Self::Cut,
        Self::Mixed,
        Self::Mads,
        Self::Beside,
    ];

    const fn link(self) -> u32 {
        match self {
            Self::Opcodes | Self::Edges | Self::Ethernet | Self::Cut | Self::Mixed | Self::Mads | Self::Beside => 1,
            Self::Sll => 113,
            Self::Sll2 => 276,
            Self::Raw => 101,
            Self::Null => 0,
            Self::Erf => 197,
            Self::Ppp => 9,
            Self::Hdlc => 104,
            Self::Nflog => 239,
        }
    }
}

/// BTH with these first two bytes, then `rest`, then a made-up ICRC.
fn transport(opcode: u8, flags: u8, rest: &[u8]) -> Vec<u8> {
    let mut b = vec![opcode, flags, 0xff, 0xff, 0, 0, 0x12, 0x34, 0x80, 0x01, 0x02, 0x03];
    b.extend_from_slice(rest);
    b.extend_from_slice(&[0xaa, 0xbb, 0xcc, 0xdd]);
    b
}

/// Bytes that no upper protocol takes for its own.
fn filler(n: usize) -> Vec<u8> {
    (0..n).map(|i| 0xa1u8.wrapping_add((i * 37) as u8)).collect()
}

fn udp(src: u16, dst: u16, data: &[u8]) -> Vec<u8> {
    let mut b = vec![];
    b.extend(src.to_be_bytes());
    b.extend(dst.to_be_bytes());
    b.extend((8 + data.len() as u16).to_be_bytes());
    b.extend([0, 0]);
    b.extend(data);
    b
}

fn ipv4(proto: u8, tos: u8, options: &[u8], data: &[u8]) -> Vec<u8> {
    let len = 20 + options.len();
    let mut b = vec![0x40 | (len / 4) as u8, tos];
    b.extend(((len + data.len()) as u16).to_be_bytes());
    b.extend([0x12, 0x34, 0x40, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    b.extend(options);
    b.extend(data);
    b
}

fn ipv6(next: u8, class: u8, flow: u32, data: &[u8]) -> Vec<u8> {
    let mut b = (6u32 << 28 | u32::from(class) << 20 | flow).to_be_bytes().to_vec();
    b.extend((data.len() as u16).to_be_bytes());
    b.extend([next, 63]);
    b.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    b.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    b.extend(data);
    b
}

fn ethernet(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut b = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    b.extend(kind.to_be_bytes());
    b.extend(data);
    b
}

fn roce_v2(t: &[u8]) -> Vec<u8> {
    ipv4(17, 0, &[], &udp(49152, 4791, t))
}

fn write_only() -> Vec<u8> {
    let mut rest = vec![0, 0, 0x7f, 0, 0x11, 0x22, 0x33, 0x44, 0, 0xab, 0xcd, 0xef, 0, 0, 0, 40];
    rest.extend(filler(40));
    transport(0x0a, 0x40, &rest)
}

fn ack() -> Vec<u8> {
    transport(0x11, 0, &[0x1f, 0, 0, 7])
}

/// Numbers that look random and are the same every time (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }

    /// Bytes that no upper protocol takes for its own.
    fn payload(&mut self, n: usize) -> Vec<u8> {
        let mut b = self.bytes(n);
        for (b, bits) in b.iter_mut().zip([0x81, 0, 0x41, 0x21]) {
            *b |= bits;
        }
        b
    }
}

fn mixed(r: &mut Random) -> Vec<Vec<u8>> {
    let mut out = vec![];
    for i in 0..1024_u64 {
        let opcode = i as u8;
        let len = [0, 1, 3, 4, 8, 12, 16, 20, 24, 28, 32, 44, 61, 100][r.below(14) as usize];
        let pad = if r.below(4) == 0 { r.below(4) as usize } else { (4 - len % 4) % 4 };
        let mut t = vec![opcode, (r.next() as u8) & 0xc0 | (pad as u8) << 4];
        t.extend(r.bytes(10));
        t[5..8].copy_from_slice(&[0, 0x12, 0x34]);
        t.extend(r.payload(len));
        t.extend(vec![0; pad]);
        t.extend(r.bytes(4));
        let six = |r: &mut Random, next: u8, data: &[u8]| {
            let mut b = ipv6(next, r.next() as u8, r.next() as u32 & 0xf_ffff, data);
            b[8..40].copy_from_slice(&r.bytes(32));
            b
        };
        // source ports of real ones: lower numbers are other protocols' for tshark
        let datagram = udp(0xc000 | r.next() as u16, 4791, &t);
        let (kind, ip) = if r.below(3) == 0 {
            (0x86dd, six(r, 17, &datagram))
        } else {
            (0x0800, ipv4(17, r.next() as u8, &[], &datagram))
        };
        let tag = |kind: u16, data: &[u8]| [&[0x60, 7][..], &kind.to_be_bytes(), data].concat();
        let bridged = |head: &[u8], r: &mut Random| {
            let mut inner = ethernet(kind, &ip);
            inner[..12].copy_from_slice(&r.bytes(12));
            [head, &inner].concat()
        };
        let mut frame = match r.below(14) {
            0 => ethernet(0x8100, &tag(kind, &ip)),
            1 => ethernet(0x88a8, &tag(0x8100, &tag(kind, &ip))),
            2 => ethernet(0x8847, &[&[0, 1, 1, 64][..], &ip].concat()),
            3 => ethernet(0x0800, &ipv4(if kind == 0x0800 { 4 } else { 41 }, 0, &[], &ip)),
            4 => {
                let gre = [0xb0, 0, kind.to_be_bytes()[0], kind.to_be_bytes()[1], 1, 2, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9];
                ethernet(0x0800, &ipv4(47, 0, &[], &[&gre[..], &ip].concat()))
            }
            5 => {
                let head = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0x64, 0xa8, 1, 0, 0, 1, 0, 0, 9, 0x83, 0x08];
                ethernet(0x0800, &ipv4(47, 0, &[], &bridged(&head, r)))
            }
            6 => {
                let vxlan = bridged(&[0x88, 0x08, 0, 9, 0, 0x12, 0x34, 0], r);
                ethernet(0x86dd, &six(r, 17, &udp(40000, 4789, &vxlan)))
            }
            7 => {
                let geneve = bridged(&[2, 0xc0, 0x65, 0x58, 0, 0x12, 0x34, 0, 0xff, 0xff, 1, 1, 1, 2, 3, 4], r);
                ethernet(0x0800, &ipv4(17, 0, &[], &udp(40001, 6081, &geneve)))
            }
            8 => ethernet(0x8915, &six(r, 0x1b, &t)),
            _ => ethernet(kind, &ip),
        };
        match r.below(6) {
            0 => frame.resize(frame.len().max(60), 0),
            1 => frame.extend(r.bytes(4)),
            _ => {}
        }
        out.push(frame);
    }
    out
}

fn mads(r: &mut Random) -> Vec<Vec<u8>> {
    let attributes: [(u8, &[u16]); 6] = [
        (0x01, &[0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x20, 0x30, 0x31, 0x02]),
        (0x81, &[0x10, 0x11, 0x12, 0x15, 0x16, 0x17, 0x18, 0x20]),
        (
            0x03,
            &[
                0x01, 0x02, 0x03, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x20, 0x30, 0x31, 0x33, 0x35,
                0x36, 0x38, 0x39, 0x3a, 0x3b, 0xf3,
            ],
        ),
        (0x04, &[0x01, 0x12, 0x1d, 0x15]),
        (0x07, &[0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a]),
        (0x32, &[0x1234]),
    ];
    let mut out = vec![];
    for (class, ids) in attributes {
        for id in ids {
            for turn in 0..4_u8 {
                let mut m = vec![1, class, 2, [1, 0x81, 0x12, 0x92][usize::from(turn)], 0, 0, 0, turn];
                m.extend(r.bytes(8));
                m.extend(id.to_be_bytes());
                m.extend([0, 0, 0, 0, 0, turn]);
                m.extend(if turn == 3 { vec![0; 232] } else { r.bytes(232) });
                if class == 3 {
                    m[24..26].copy_from_slice(&[1, turn]);
                }
                if class == 7 && turn == 1 {
                    m[32..40].copy_from_slice(&[0, 0, 0, 0, 1, 6, 0x11, 0x5c]);
                    m[164] = 0; // RDMA-CM data of version 0 about IPv4
                    m[165] = 0x40;
                }
                let qp = u8::from(class & 0x7f != 1);
                let deth = [if qp == 0 { 0 } else { 0x80 }, u8::from(qp != 0), 0, 0, 0, 0, 0, qp];
                let mut t = transport(0x64, 0, &[&deth[..], &m].concat());
                t[7] = qp;
                t[6] = 0;
                out.push(ethernet(0x0800, &roce_v2(&t)));
            }
        }
    }
    out
}

fn beside() -> Vec<Vec<u8>> {
    let mut out = vec![];
    let arp = |op: u8, sender: [u8; 4], mac: u8, target: [u8; 4]| {
        let mut b = vec![0, 1, 8, 0, 6, 4, 0, op, 2, 0, 0, 0, 0, 1];
        b.extend(sender);
        b.extend([mac; 6]);
        b.extend(target);
        b
    };
    for op in [1, 2, 3] {
        for mac in [0, 9] {
            for sender in [[10, 0, 0, 1], [0; 4]] {
                out.push(ethernet(0x0806, &arp(op, sender, mac, [10, 0, 0, 1])));
            }
        }
    }
    let mut padded = ethernet(0x0806, &arp(1, [10, 0, 0, 1], 0, [10, 0, 0, 2]));
    padded.resize(60, 0);
    out.push(padded.clone());
    padded.extend([1, 2, 3, 4]);
    out.push(padded);
    out.push(ethernet(0x8808, &[&[0, 1, 0xff, 0xff][..], &[0; 42]].concat()));
    let pfc = [1, 1, 0, 0x18, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
    out.push(ethernet(0x8808, &[&pfc[..], &[0; 26]].concat()));
    // ICMP echo with a right and a wrong checksum, and an error that quotes no RoCE
    for sum in [0xf7u8, 0xf8] {
        out.push(ethernet(0x0800, &ipv4(1, 0, &[], &[8, 0, sum, 0xfd, 0, 1, 0, 1])));
    }
    // ICMPv6 echo
    out.push(ethernet(0x86dd, &ipv6(58, 0, 0, &[128, 0, 1, 2, 0, 7, 0, 8])));
    let tcp = |flags: u16, options: &[u8], data: &[u8]| {
        let mut b = vec![0xc0, 0, 0x48, 0x53, 1, 2, 3, 4, 5, 6, 7, 8];
        b.extend(((5 + options.len() as u16 / 4) << 12 | flags).to_be_bytes());
        b.extend([0x10, 0, 0xab, 0xcd, 0, 0]);
        b.extend(options);
        b.extend(data);
        b
    };
    out.push(ethernet(0x0800, &ipv4(6, 0, &[], &tcp(0x0002, &[2, 4, 5, 0xb4], &[]))));
    out.push(ethernet(0x86dd, &ipv6(6, 0, 0, &tcp(0x0018, &[], &[0x99; 9]))));
    // spanning tree: IEEE 802.3 with a length, LLC
    let mut stp = vec![0x42, 0x42, 3];
    stp.extend([0; 35]);
    let mut frame = ethernet(38, &stp);
    frame.resize(60, 0);
    out.push(frame);
    // the first fragment of a RoCE packet, and a later one
    let t = write_only();
    let mut first = ipv4(17, 0, &[], &udp(49152, 4791, &t));
    first[6] = 0x20;
    out.push(ethernet(0x0800, &first));
    let mut later = ipv4(17, 0, &[], &[0x55; 64]);
    later[7] = 9;
    out.push(ethernet(0x0800, &later));
    // from port 4791, which says nothing
    out.push(ethernet(0x0800, &ipv4(17, 0, &[], &udp(4791, 33333, &t))));
    // an error that quotes a RoCE packet
    let quoted = roce_v2(&t);
    out.push(ethernet(0x0800, &ipv4(1, 0, &[], &[&[3, 3, 0, 0, 0, 0, 0, 0][..], &quoted].concat())));
    // GRH whose next header is no BTH
    out.push(ethernet(0x8915, &ipv6(0x1c, 0, 0, &t)));
    out
}

/// The frames of a way in, with how long they were on the wire.
pub fn frames(way: Way) -> Vec<(Vec<u8>, usize)> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    match way {
        Way::Opcodes => {
            for op in 0..=255 {
                // long enough for every chain of headers, and data behind it where there is any
                out.push(ethernet(0x0800, &roce_v2(&transport(op, 0x40, &filler(64)))));
            }
        }
        Way::Edges => {
            for flags in [0x80, 0x40, 0x10, 0x20, 0x30, 0x0f] {
                out.push(ethernet(0x0800, &roce_v2(&transport(0x04, flags, &filler(32)))));
            }
            for syndrome in 0..=255 {
                out.push(ethernet(0x0800, &roce_v2(&transport(0x11, 0, &[syndrome, 0xff, 0xff, 0xff]))));
            }
            for pkey in [0u16, 0x7fff, 0x8001] {
                let mut t = write_only();
                t[2..4].copy_from_slice(&pkey.to_be_bytes());
                out.push(ethernet(0x0800, &roce_v2(&t)));
            }
            for resv in [0x80, 0x40, 0x3f, 0xff] {
                let mut t = ack();
                t[4] = resv;
                t[8] = resv;
                out.push(ethernet(0x0800, &roce_v2(&t)));
            }
            for qp in [2u32, 0xff_fffe, 0xff_ffff] {
                let mut t = ack();
                t[5..8].copy_from_slice(&qp.to_be_bytes()[1..]);
                out.push(ethernet(0x0800, &roce_v2(&t)));
            }
            for tos in [0x01, 0x02, 0x03, 0x6a, 0xff] {
                out.push(ethernet(0x0800, &ipv4(17, tos, &[], &udp(0, 4791, &ack()))));
                out.push(ethernet(0x86dd, &ipv6(17, tos, 0xf_abcd, &udp(0, 4791, &ack()))));
            }
        }
        Way::Ethernet => {
            let p = roce_v2(&write_only());
            let six = ipv6(17, 0x6a, 0x1_2345, &udp(49153, 4791, &ack()));
            let tag = |id: u16, kind: u16, data: &[u8]| {
                let mut b = id.to_be_bytes().to_vec();
                b.extend(kind.to_be_bytes());
                b.extend(data);
                b
            };
            out.push(ethernet(0x0800, &p));
            out.push(ethernet(0x86dd, &six));
            out.push(ethernet(0x8100, &tag(0x6064, 0x0800, &p)));
            out.push(ethernet(0x88a8, &tag(0x1001, 0x8100, &tag(0xa002, 0x86dd, &six))));
            // destination options in front of UDP
            let mut options = vec![17, 0, 1, 4, 0, 0, 0, 0];
            options.extend(udp(49152, 4791, &ack()));
            out.push(ethernet(0x86dd, &ipv6(60, 0, 0, &options)));
            // RoCEv1: a GRH is an IPv6 header with next header 0x1b
            out.push(ethernet(0x8915, &ipv6(0x1b, 0, 0, &write_only())));
            out.push(ethernet(0x8100, &tag(5, 0x8915, &ipv6(0x1b, 0x20, 7, &ack()))));
            // MPLS: two labels
            let mut mpls = (16u32 << 12 | 5 << 9 | 64).to_be_bytes().to_vec();
            mpls.extend((17u32 << 12 | 1 << 8 | 63).to_be_bytes());
            mpls.extend(&p);
            out.push(ethernet(0x8847, &mpls));
            // PPPoE session with IPv4
            let mut ppp = vec![0x11, 0, 0, 9];
            ppp.extend((p.len() as u16 + 2).to_be_bytes());
            ppp.extend([0, 0x21]);
            ppp.extend(&p);
            out.push(ethernet(0x8864, &ppp));
            out.push(ethernet(0x0800, &ipv4(4, 0, &[], &p)));
            out.push(ethernet(0x0800, &ipv4(41, 0, &[], &six)));
            let with = |head: &[u8], data: &[u8]| [head, data].concat();
            out.push(ethernet(0x0800, &ipv4(47, 0, &[], &with(&[0, 0, 8, 0], &p))));
            let inner = ethernet(0x0800, &p);
            // NVGRE
            out.push(ethernet(0x0800, &ipv4(47, 0, &[], &with(&[0x20, 0, 0x65, 0x58, 0, 0x12, 0x34, 1], &inner))));
            // ERSPAN type II: sequence number, then eight bytes
            let erspan = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0x64, 0x08, 0x01, 0, 0, 0, 5];
            out.push(ethernet(0x0800, &ipv4(47, 0, &[], &with(&erspan, &inner))));
            let vxlan = with(&[8, 0, 0, 0, 0, 0x12, 0x34, 0], &inner);
            out.push(ethernet(0x0800, &ipv4(17, 0, &[], &udp(40000, 4789, &vxlan))));
            let geneve = with(&[0, 0, 0x65, 0x58, 0, 0x12, 0x34, 0], &inner);
            out.push(ethernet(0x0800, &ipv4(17, 0, &[], &udp(40001, 6081, &geneve))));
            // mirror of a switch: a tag of padding, one of two bytes, the end of the tags
            let tzsp = with(&[1, 0, 0, 1, 0, 41, 2, 1, 2, 1], &inner);
            out.push(ethernet(0x0800, &ipv4(17, 0, &[], &udp(40003, 37008, &tzsp))));
            let len = (p.len() as u16).to_be_bytes();
            let gtp = with(&[0x30, 0xff, len[0], len[1], 0, 0, 0, 7], &p);
            out.push(ethernet(0x0800, &ipv4(17, 0, &[], &udp(2152, 2152, &gtp))));
            let len = (p.len() as u16 + 8).to_be_bytes();
            let gtp = with(&[0x34, 0xff, len[0], len[1], 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 9, 0], &p);
            out.push(ethernet(0x0800, &ipv4(17, 0, &[], &udp(2152, 2152, &gtp))));
            // MACsec, not encrypted, with and without a channel number
            let macsec = |head: &[u8], data: &[u8]| ethernet(0x88e5, &[head, data, &[0xee; 16]].concat());
            out.push(macsec(&[0x20, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 1, 0, 1, 8, 0], &p));
            out.push(macsec(&[0x00, 0, 0, 0, 0, 8, 0x86, 0xdd], &six));
            // a seamless ring's tag, Cisco metadata
            out.push(ethernet(0x894f, &with(&[[0x0f, 0xc6, 1, 1, 0, 0, 100, 255], [1; 8], [2; 8]].concat(), &p)));
            out.push(ethernet(0x892f, &with(&[0x10, 0x50, 0, 5, 8, 0], &p)));
            out.push(ethernet(0x8909, &with(&[1, 1, 0, 1, 0, 0x64, 8, 0], &p)));
            // captured before the adapter cut it up: IP does not know its length
            let mut giant = ipv4(17, 0, &[], &udp(49152, 4791, &transport(0x07, 0x40, &filler(9000))));
            giant[2..4].fill(0);
            out.push(ethernet(0x0800, &giant));
            // IPv4 options: four no-operations
            out.push(ethernet(0x0800, &ipv4(17, 0, &[1, 1, 1, 1], &udp(49152, 4791, &ack()))));
        }
        Way::Sll => {
            let head = [0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
            out.push([&head[..], &roce_v2(&write_only())].concat());
            let head = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x89, 0x15];
            out.push([&head[..], &ipv6(0x1b, 0, 0, &ack())].concat());
        }
        Way::Sll2 => {
            let head = [8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0];
            out.push([&head[..], &roce_v2(&write_only())].concat());
        }
        Way::Raw => {
            out.push(roce_v2(&write_only()));
            out.push(ipv6(17, 0, 0, &udp(1, 4791, &ack())));
        }
        Way::Null => {
            out.push([&[2, 0, 0, 0][..], &roce_v2(&write_only())].concat());
            out.push([&[10, 0, 0, 0][..], &ipv6(17, 0, 0, &udp(1, 4791, &ack()))].concat());
        }
        Way::Erf => {
            let record = |kind: u8, data: &[u8]| {
                let pad = if kind == 2 { 2 } else { 0 };
                let mut b = vec![0; 8];
                b.extend([kind, 4]);
                b.extend((16 + pad as u16 + data.len() as u16).to_be_bytes());
                b.extend([0, 0]);
                b.extend((data.len() as u16).to_be_bytes());
                b.extend(vec![0; pad]);
                b.extend(data);
                b
            };
            // LRH: virtual lane 1, service level 2, BTH follows, LIDs 4 and 3
            let lrh = |next: u8, words: usize, data: &[u8]| {
                let mut b = vec![0x10, 0x20 | next, 0, 4];
                b.extend((words as u16).to_be_bytes());
                b.extend([0, 3]);
                b.extend(data);
                b.extend([0xee, 0xff]); // VCRC
                b
            };
            let t = write_only();
            out.push(record(21, &lrh(2, (8 + t.len()) / 4, &t)));
            let g = ipv6(0x1b, 0, 9, &ack());
            out.push(record(21, &lrh(3, (8 + g.len()) / 4, &g)));
            // the frame check sequence is part of an ERF Ethernet record
            out.push(record(2, &[ethernet(0x0800, &roce_v2(&write_only())), vec![1, 2, 3, 4]].concat()));
        }
        Way::Ppp => {
            let p = roce_v2(&write_only());
            let six = ipv6(17, 0, 0, &udp(1, 4791, &ack()));
            out.push([&[0xff, 3, 0, 0x21][..], &p].concat());
            out.push([&[0xff, 3, 0, 0x57][..], &six].concat());
            out.push([&[0, 0x21][..], &p].concat());
            out.push([&[0x57][..], &six].concat());
        }
        Way::Hdlc => {
            out.push([&[0x0f, 0, 8, 0][..], &roce_v2(&write_only())].concat());
            out.push([&[0x8f, 0, 0x86, 0xdd][..], &ipv6(17, 0, 0, &udp(1, 4791, &ack()))].concat());
        }
        Way::Nflog => {
            let attribute = |kind: u16, data: &[u8]| {
                let mut b = (4 + data.len() as u16).to_le_bytes().to_vec();
                b.extend(kind.to_le_bytes());
                b.extend(data);
                b.resize(b.len().next_multiple_of(4), 0);
                b
            };
            let record = |family: u8, kind: u16, data: &[u8]| {
                let mut b = vec![family, 0, 0, 5];
                b.extend(attribute(1, &[(kind >> 8) as u8, kind as u8, 3, 0]));
                b.extend(attribute(10, b"roce\0"));
                b.extend(attribute(9, data));
                b
            };
            out.push(record(2, 0x0800, &roce_v2(&write_only())));
            out.push(record(10, 0x86dd, &ipv6(17, 0, 0, &udp(1, 4791, &ack()))));
        }
        Way::Mixed => out = mixed(&mut Random(0x5eed_0001)),
        Way::Mads => out = mads(&mut Random(0x5eed_0002)),
        Way::Beside => out = beside(),
        Way::Cut => {
            let whole = ethernet(0x0800, &roce_v2(&write_only()));
            let ack = ethernet(0x0800, &roce_v2(&ack()));
            let cuts = [100, 72, 70, 64, 56, 54].into_iter().map(|n| (whole[..n].to_vec(), whole.len()));
            return cuts.chain([58, 57, 56].into_iter().map(|n| (ack[..n].to_vec(), ack.len()))).collect();
        }
    }
    out.into_iter().map(|f| (f.clone(), f.len())).collect()
}

/// Writes a way's frames into a classic capture in `dir`.
pub fn file(dir: &Path, way: Way) -> PathBuf {
    let path = dir.join(format!("{way:?}.pcap").to_lowercase());
    let mut out = std::fs::File::create(&path).expect("a folder to write to");
    let mut bytes = vec![];
    for word in [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 262_144, way.link()] {
        // version 2.4: two 16-bit words
        bytes.extend(if word == 4 << 16 | 2 { [2, 0, 4, 0] } else { word.to_le_bytes() });
    }
    for (i, (frame, wire)) in frames(way).iter().enumerate() {
        for word in [1_700_000_000, i as u32 * 10, frame.len() as u32, *wire as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    out.write_all(&bytes).expect("room for a small file");
    path
}
