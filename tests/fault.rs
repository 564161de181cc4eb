//! Fault rules in the kernel, by `BPF_PROG_TEST_RUN`: every action against bytes that were made another way,
//! every match against the dissector, histories against a model, and the same hits in any order of flows.
#![expect(
    clippy::cast_possible_truncation,
    clippy::items_after_statements,
    reason = "sizes and numbers of frames that the test made itself; constants stand where they are used"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};

use dissector::capture::Reader;
use dissector::flow::row::Endpoint;
use dissector::frame::icrc::{self, Verdict};
use dissector::frame::{Encapsulation, Frame, LayerKind, LinkType, NetKind};
use dissector::wire::opcode::byte;
use dissector::wire::outer::{ETH_LEN, IPV4_LEN, IPV6_LEN, MAX_IPV6_EXTENSIONS, MAX_VLAN_TAGS, UDP_LEN};
use dissector::wire::{
    Aeth, AtomicEth, Bth, BthFields, Deth, Header, Kind, Op, Position, ROCE_UDP_PORT, Reth, Role, Syndrome, Transport,
};
use roce_tests::fault::{Fate, Hook, Rig};
use roce_tests::traffic::{ipv4_checksum, seal};
use roce_tests::{all_captures, is_root};

macro_rules! need_root {
    () => {
        if !is_root() {
            eprintln!("skipped: needs root to load programs");
            return;
        }
    };
}

fn parse(frame: &[u8]) -> Frame<'_> {
    Frame::parse(frame, frame.len(), LinkType::ETHERNET, ROCE_UDP_PORT)
}

/// Whether the kernel program is meant to see RoCE here: what it walks is what the fast path walks.
fn is_roce(f: &Frame<'_>) -> bool {
    let count = |k| f.layers.as_slice().iter().filter(|l| l.kind == k).count();
    let plain = f.layers.as_slice().iter().all(|l| {
        use LayerKind::{Ethernet, Grh, Ipv4, Ipv6, Ipv6Extension, Udp, Vlan};
        matches!(l.kind, Ethernet | Vlan | Ipv4 | Ipv6 | Ipv6Extension | Udp | Grh)
    });
    plain
        && count(LayerKind::Vlan) <= MAX_VLAN_TAGS
        && count(LayerKind::Ipv6Extension) <= MAX_IPV6_EXTENSIONS
        && count(LayerKind::Ipv4) + count(LayerKind::Ipv6) + count(LayerKind::Grh) == 1
        && f.net.is_some_and(|n| n.fragment.is_none())
        && matches!(f.packet(), Some(Ok(_)))
}

/// Ethernet frames of all captures; of those that differ in nothing that a program looks at, a few.
fn captured(of_a_kind: usize) -> Vec<Vec<u8>> {
    let mut seen: HashMap<_, usize> = HashMap::new();
    let mut out = Vec::new();
    for path in all_captures() {
        let mut reader = Reader::open(&path).expect("it opens");
        while let Some(r) = reader.next().expect("it is whole") {
            if r.link != LinkType::ETHERNET.0 || r.bytes.len() < ETH_LEN || r.bytes.len() > 3500 {
                continue;
            }
            let f = parse(r.bytes);
            let kinds: Vec<_> = f.layers.as_slice().iter().map(|l| l.kind).collect();
            let p = f.packet().and_then(Result::ok);
            let opcode = p.map(|p| (p.bth.opcode(), p.pad, p.payload_len.min(2), p.ext.aeth.map(Aeth::syndrome)));
            let n = seen.entry((kinds, opcode, f.net.map(|n| n.tos), r.bytes.len() < r.wire_len as usize)).or_default();
            *n += 1;
            if *n <= of_a_kind {
                out.push(r.bytes.to_vec());
            }
        }
    }
    out
}

/// A frame of our own making.
#[derive(Clone)]
struct Make {
    v6: bool,
    vlan: bool,
    v1: bool,
    tos: u8,
    udp_sum: bool,
    src: u8,
    dst: u8,
    bth: BthFields,
    ext: Vec<u8>,
    payload: usize,
    trailer: usize,
}

impl Make {
    fn new(opcode: u8, qp: u32, psn: u32) -> Self {
        let op = Op::of(opcode).expect("a known opcode");
        let mut ext = Vec::new();
        for h in op.headers {
            match h {
                Header::Aeth => ext.extend(Aeth::emit(Syndrome::ACK, 1)),
                h => ext.extend(vec![0; h.len()]),
            }
        }
        let payload = if op.payload == dissector::wire::opcode::Payload::Data { 64 } else { 0 };
        Self {
            v6: false,
            vlan: false,
            v1: false,
            tos: 2,
            udp_sum: false,
            src: 1,
            dst: 2,
            bth: BthFields::new(opcode, qp, psn),
            ext,
            payload,
            trailer: 0,
        }
    }

    fn syndrome(mut self, s: u8) -> Self {
        self.ext = Aeth::emit(Syndrome(s), 1).to_vec();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut ib = self.bth.emit().to_vec();
        ib.extend(&self.ext);
        ib.extend((0..self.payload).map(|n| (n * 7 + 3) as u8));
        ib.extend([0; 4]);
        let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        if self.vlan {
            f.extend([0x81, 0x00, 0x00, 0x64]);
        }
        if self.v1 {
            f.extend([0x89, 0x15]);
            f.extend([0x60 | self.tos >> 4, self.tos << 4, 0, 0]);
            f.extend((ib.len() as u16).to_be_bytes());
            f.extend([0x1b, 64]);
            f.extend(v6(self.src));
            f.extend(v6(self.dst));
            f.extend(&ib);
            seal(&mut f, false);
            f.extend(vec![0xee; self.trailer]);
            return f;
        }
        let udp_len = (UDP_LEN + ib.len()) as u16;
        let net = f.len() + 2;
        if self.v6 {
            f.extend([0x86, 0xdd, 0x60 | self.tos >> 4, self.tos << 4 | 3, 0x12, 0x34]);
            f.extend(udp_len.to_be_bytes());
            f.extend([17, 64]);
            f.extend(v6(self.src));
            f.extend(v6(self.dst));
        } else {
            f.extend([0x08, 0x00]);
            let mut ip = vec![0x45, self.tos];
            ip.extend((IPV4_LEN as u16 + udp_len).to_be_bytes());
            ip.extend([0x12, 0x34, 0x40, 0x00, 64, 17, 0, 0, 10, 0, 0, self.src, 10, 0, 0, self.dst]);
            let sum = ipv4_checksum(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            f.extend(ip);
        }
        let udp = f.len();
        f.extend(0xc123u16.to_be_bytes());
        f.extend(ROCE_UDP_PORT.to_be_bytes());
        f.extend(udp_len.to_be_bytes());
        f.extend([0, 0]);
        f.extend(&ib);
        seal(&mut f, false);
        if self.udp_sum {
            let sum = udp_checksum(&f, net, udp, self.v6);
            f[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
        }
        f.extend(vec![0xee; self.trailer]);
        f
    }
}

fn v6(n: u8) -> [u8; 16] {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()).octets()
}

/// From scratch, over pseudo header and datagram (RFC 768, RFC 8200).
fn udp_checksum(frame: &[u8], net: usize, udp: usize, v6: bool) -> u16 {
    let len = usize::from(u16::from_be_bytes([frame[udp + 4], frame[udp + 5]]));
    let mut all = if v6 { frame[net + 8..net + 40].to_vec() } else { frame[net + 12..net + 20].to_vec() };
    all.extend([0, 17]);
    all.extend((len as u16).to_be_bytes());
    all.extend(&frame[udp..udp + 6]);
    all.extend([0, 0]);
    all.extend(&frame[udp + 8..udp + len]);
    let mut sum: u32 = all.chunks(2).map(|c| u32::from(c[0]) << 8 | c.get(1).map_or(0, |b| u32::from(*b))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xffff,
        s => s,
    }
}

fn verdict(frame: &[u8]) -> Verdict {
    let f = parse(frame);
    f.packet().and_then(Result::ok).map_or(Verdict::Unchecked(icrc::Why::Absent), |p| icrc::verify(&f, &p))
}

/// What a frame becomes, made without the kernel: header fields set, checksums from scratch.
fn with_tos(frame: &[u8], tos: u8) -> Vec<u8> {
    let f = parse(frame);
    let net = f.net.expect("RoCE has a network header");
    let mut out = frame.to_vec();
    let n = net.start;
    if let NetKind::Ipv4 { .. } = net.kind {
        out[n + 1] = tos;
        fix_ipv4(&mut out, n);
    } else {
        out[n] = out[n] & 0xf0 | tos >> 4;
        out[n + 1] = out[n + 1] & 0x0f | tos << 4;
    }
    out
}

fn fix_ipv4(frame: &mut [u8], net: usize) {
    let len = usize::from(frame[net] & 15) * 4;
    let sum = ipv4_checksum(&frame[net..net + len]);
    frame[net + 10..net + 12].copy_from_slice(&sum.to_be_bytes());
}

/// With a byte inverted in places, and a UDP checksum from scratch if it had one.
fn with_flip(frame: &[u8], at: usize, bits: u8) -> Vec<u8> {
    let f = parse(frame);
    let mut out = frame.to_vec();
    out[at] ^= bits;
    if let (Some(u), Some(net)) = (f.udp, f.net)
        && u.checksum != 0
    {
        let sum = udp_checksum(&out, net.start, u.start, matches!(net.kind, NetKind::Ipv6 { .. }));
        out[u.start + 6..u.start + 8].copy_from_slice(&sum.to_be_bytes());
    }
    out
}

/// All shapes of frame that we make: both IP versions, tagged, RoCEv1, with and without UDP checksum, trailer.
fn shapes(base: &Make) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for vlan in [false, true] {
        for trailer in [0, 9] {
            for udp_sum in [false, true] {
                for v6 in [false, true] {
                    out.push(Make { v6, vlan, udp_sum, trailer, ..base.clone() }.bytes());
                }
            }
            out.push(Make { v1: true, vlan, trailer, ..base.clone() }.bytes());
        }
    }
    out
}

/// Captured frames and made ones.
fn corpus() -> Vec<Vec<u8>> {
    let mut all = captured(3);
    for op in dissector::wire::opcode::ROWS {
        all.extend(shapes(&Make::new(op.byte, 0x11, 100)));
    }
    all
}

/// Runs a rule over the corpus at all hooks; `want` says what a RoCE frame becomes (`None`: unchanged).
fn each(rule: &str, want: impl Fn(&[u8], &Frame<'_>) -> Option<Fate>) -> u64 {
    let corpus = corpus();
    let mut hits = 0;
    for hook in [Hook::Xdp, Hook::TcIn, Hook::TcOut] {
        let mut rig = Rig::new(&format!("[[rule]]\n{rule}"));
        let mut expected = 0;
        for frame in &corpus {
            let f = parse(frame);
            let wanted = if is_roce(&f) { want(frame, &f) } else { None };
            expected += u64::from(wanted.is_some());
            let Some(got) = rig.run(hook, frame) else { continue };
            let wanted = wanted.unwrap_or_else(|| Fate::Passed(frame.clone()));
            assert_eq!(got, wanted, "{rule} at {hook:?}: {frame:02x?}");
        }
        let tally = rig.engine.tallies().expect("readable")[0];
        assert_eq!(tally.injected, expected, "{rule} at {hook:?}");
        assert!(expected > 0, "{rule}");
        hits += tally.injected;
        // every injection was reported, with the bytes before and after
        let events = rig.injections();
        let lost = rig.engine.counters().expect("readable").events_lost;
        assert_eq!(events.len() as u64 + lost, tally.injected);
        for e in events {
            let n = e.event.before_len as usize;
            assert!(corpus.iter().any(|f| f.len() == e.event.length as usize && f.starts_with(&e.event.before[..n])));
        }
    }
    hits
}

#[test]
fn drop_takes_every_roce_packet_and_nothing_else() {
    need_root!();
    each("type = 'drop'", |_, _| Some(Fate::Dropped));
}

#[test]
fn ce_marks_ect_keeps_checksum_and_icrc() {
    need_root!();
    each("type = 'ce'", |frame, f| {
        let tos = f.net?.tos;
        if !matches!(tos & 3, 1 | 2) {
            return None;
        }
        let out = with_tos(frame, tos | 3);
        assert_eq!(verdict(&out), verdict(frame));
        Some(Fate::Passed(out))
    });
    each("type = 'ce'\nany_ecn = true", |frame, f| {
        let tos = f.net?.tos;
        (tos & 3 != 3).then(|| Fate::Passed(with_tos(frame, tos | 3)))
    });
}

#[test]
fn clear_ect_and_dscp() {
    need_root!();
    each("type = 'clear-ect'", |frame, f| {
        let tos = f.net?.tos;
        (tos & 3 != 0).then(|| Fate::Passed(with_tos(frame, tos & !3)))
    });
    each("type = 'dscp'\nvalue = 46", |frame, f| Some(Fate::Passed(with_tos(frame, 46 << 2 | f.net?.tos & 3))));
}

#[test]
fn icrc_alone_fails() {
    need_root!();
    each("type = 'icrc'", |frame, f| {
        let (net, t) = (f.net?, f.transport?);
        let out = if let NetKind::Ipv4 { .. } = net.kind {
            let mut out = frame.to_vec();
            out[net.start + 4] ^= 0xff;
            out[net.start + 5] ^= 0xff;
            fix_ipv4(&mut out, net.start);
            out
        } else {
            let at = (t.start + t.declared).checked_sub(4)?;
            if t.declared < 16 || at >= frame.len() {
                return None;
            }
            with_flip(frame, at, 1)
        };
        match (verdict(frame), verdict(&out)) {
            (Verdict::Good, Verdict::Bad { .. }) | (Verdict::Bad { .. } | Verdict::Unchecked(_), _) => {}
            other => panic!("{other:?}"),
        }
        Some(Fate::Passed(out))
    });
}

#[test]
fn corrupt_changes_one_payload_byte_and_the_udp_checksum_with_it() {
    need_root!();
    for (offset, xor) in [(0usize, 1u8), (1, 0x80), (37, 0xff)] {
        each(&format!("type = 'corrupt'\noffset = {offset}\nxor = {xor}"), |frame, f| {
            let t = f.transport?;
            let bth = &frame[t.start..t.start + Bth::LEN];
            let headers = Op::of(bth[0]).map_or(0, Op::headers_len);
            let pad = usize::from(bth[1] >> 4 & 3);
            let at = t.start + Bth::LEN + headers + offset;
            // inside the payload by the packet's own length, and inside what there is of the frame
            if at + pad + 4 >= t.start + t.declared || at >= frame.len() {
                return None;
            }
            let out = with_flip(frame, at, xor);
            if verdict(frame) == Verdict::Good {
                assert!(matches!(verdict(&out), Verdict::Bad { .. }));
            }
            Some(Fate::Passed(out))
        });
    }
}

#[test]
fn truncate_cuts_the_frame() {
    need_root!();
    each("type = 'truncate'\nlength = 60", |frame, _| (frame.len() > 60).then(|| Fate::Passed(frame[..60].to_vec())));
}

#[test]
fn a_dry_run_counts_and_changes_nothing() {
    need_root!();
    for kind in ["drop", "ce", "icrc", "corrupt", "clear-ect", "duplicate"] {
        let mut rig = Rig::with(&format!("[[rule]]\ntype = '{kind}'"), true, false);
        let frame = Make::new(byte::RcWriteOnly, 0x11, 5).bytes();
        assert_eq!(rig.xdp(&frame), Fate::Passed(frame.clone()), "{kind}");
        assert_eq!(rig.engine.tallies().unwrap()[0].injected, 1, "{kind}");
        assert_eq!(rig.injections().len(), 1);
    }
}

/// A stateless rule against a predicate over what the dissector says.
fn matches(
    rule: &str,
    hook: Hook,
    corpus: &[Vec<u8>],
    want: impl Fn(&Frame<'_>, &dissector::wire::Packet<'_>, usize) -> bool,
) {
    let mut rig = Rig::new(&format!("[[rule]]\ntype = 'drop'\n{rule}"));
    let mut hits = 0;
    for frame in corpus {
        let f = parse(frame);
        let Some(Ok(p)) = f.packet() else { continue };
        if !is_roce(&f) {
            continue;
        }
        let Some(got) = rig.run(hook, frame) else { continue };
        let wanted = want(&f, &p, frame.len());
        hits += usize::from(wanted);
        assert_eq!(got == Fate::Dropped, wanted, "{rule}: {:?} {frame:02x?}", p.op.map(|o| o.name));
    }
    assert!(hits > 0, "{rule} hits nothing of the corpus");
}

#[test]
fn matches_agree_with_the_dissector() {
    need_root!();
    let mut corpus = corpus();
    for s in [0x00, 0x1f, 0x20, 0x3f, 0x60, 0x61, 0x64] {
        corpus.push(Make::new(byte::RcAcknowledge, 0x12, 9).syndrome(s).bytes());
    }
    corpus.push(Make { tos: 26 << 2, ..Make::new(byte::RcSendOnly, 0x12, 104) }.bytes());
    corpus.push(Make::new(byte::RcSendOnly, 0x12, 0xff_ffff).bytes());
    corpus.push(Make::new(byte::RcSendOnly, 0x12, 1).bytes());
    corpus.push(Make::new(byte::UdSendOnly, 1, 1).bytes());
    let c = corpus.as_slice();
    let op = |p: &dissector::wire::Packet<'_>, k: Kind| p.op.is_some_and(|o| o.kind == k);
    let pos = |p: &dissector::wire::Packet<'_>, k: Position| {
        p.op.is_some_and(|o| o.position == k && o.payload == dissector::wire::opcode::Payload::Data)
    };
    let syn = |p: &dissector::wire::Packet<'_>| p.ext.aeth.map(Aeth::syndrome);
    let x = Hook::Xdp;
    matches("opcode = 'write'", x, c, |_, p, _| op(p, Kind::Write));
    matches("opcode = 'send'", x, c, |_, p, _| op(p, Kind::Send));
    matches("opcode = 'read-request'", x, c, |_, p, _| op(p, Kind::ReadRequest));
    matches("opcode = 'read-response'", x, c, |_, p, _| op(p, Kind::ReadResponse));
    matches("opcode = 'cnp'", x, c, |_, p, _| op(p, Kind::Cnp));
    matches("opcode = 'atomic'", x, c, |_, p, _| op(p, Kind::Atomic) || op(p, Kind::AtomicWrite));
    matches("opcode = 'flush'", x, c, |_, p, _| op(p, Kind::Flush));
    matches("opcode = 'first'", x, c, |_, p, _| pos(p, Position::First));
    matches("opcode = 'middle'", x, c, |_, p, _| pos(p, Position::Middle));
    matches("opcode = 'last'", x, c, |_, p, _| pos(p, Position::Last));
    matches("opcode = 'only'", x, c, |_, p, _| pos(p, Position::Only));
    let data =
        |p: &dissector::wire::Packet<'_>| p.op.is_some_and(|o| o.payload == dissector::wire::opcode::Payload::Data);
    matches("opcode = 'data'", x, c, |_, p, _| data(p));
    matches("opcode = 'starts'", x, c, |_, p, _| pos(p, Position::First) || pos(p, Position::Only));
    matches("opcode = 'ends'", x, c, |_, p, _| pos(p, Position::Last) || pos(p, Position::Only));
    matches("opcode = 'response'", x, c, |_, p, _| op(p, Kind::ReadResponse) || op(p, Kind::AtomicAck));
    matches("opcode = 'atomic-ack'", x, c, |_, p, _| op(p, Kind::AtomicAck));
    for t in [Transport::Rc, Transport::Uc, Transport::Rd, Transport::Ud, Transport::Cnp, Transport::Xrc] {
        matches(&format!("transport = '{}'", t.name()), x, c, |_, p, _| p.op.is_some_and(|o| o.transport == t));
    }
    matches("opcode = 'request'", x, c, |_, p, _| p.op.is_some_and(|o| o.role() == Role::Request));
    matches("opcode = 'ack'", x, c, |_, p, _| op(p, Kind::Ack) && syn(p).is_some_and(Syndrome::is_ack));
    matches("opcode = 'nak'", x, c, |_, p, _| op(p, Kind::Ack) && syn(p).is_some_and(Syndrome::is_nak));
    matches("opcode = 'rnr'", x, c, |_, p, _| op(p, Kind::Ack) && syn(p).is_some_and(Syndrome::is_rnr));
    matches("opcode = ['nak', 'RC RDMA WRITE Only']", x, c, |_, p, _| {
        op(p, Kind::Ack) && syn(p).is_some_and(Syndrome::is_nak) || p.bth.opcode() == byte::RcWriteOnly
    });
    matches("opcode = 'mad'", x, c, |_, p, _| {
        p.op.is_some_and(|o| o.transport == Transport::Ud) && p.bth.dest_qp().is_management()
    });
    matches("opcode = 0x0c", x, c, |_, p, _| p.bth.opcode() == 0x0c);
    matches("qpn = 0x12", x, c, |_, p, _| p.bth.dest_qp().get() == 0x12);
    matches("psn = 104", x, c, |_, p, _| p.bth.psn().get() == 104);
    matches("psn = '0xffffff-1'", x, c, |_, p, _| matches!(p.bth.psn().get(), 0xff_ffff | 0 | 1));
    matches("psn = '90-110'", x, c, |_, p, _| (90..=110).contains(&p.bth.psn().get()));
    matches("dscp = 26", x, c, |f, _, _| f.net.is_some_and(|n| n.tos >> 2 == 26));
    matches("size = '100-200'", x, c, |_, _, n| (100..=200).contains(&n));
    matches("direction = 'out'", Hook::TcOut, c, |_, _, _| true);
    matches("direction = 'in'", Hook::TcIn, c, |_, _, _| true);
    let prefix = |e: Endpoint, net: IpAddr, bits: u32| match (e, net) {
        (Endpoint::Ip(IpAddr::V4(a)), IpAddr::V4(n)) => (a.to_bits() ^ n.to_bits()) >> (32 - bits) == 0,
        (Endpoint::Ip(IpAddr::V6(a)), IpAddr::V6(n)) => (a.to_bits() ^ n.to_bits()) >> (128 - bits) == 0,
        _ => false,
    };
    // a GID of RoCEv1 may be an IPv4 address in IPv6 notation: the same address
    let v4_prefix = |e: Endpoint, net: [u8; 4], bits: u32| match e {
        Endpoint::Ip(a) => prefix(Endpoint::Ip(a.to_canonical()), IpAddr::from(net), bits),
        Endpoint::Lid(_) => false,
    };
    matches("src = '10.0.0.0/8'", x, c, |f, _, _| f.net.is_some_and(|n| v4_prefix(n.src, [10, 0, 0, 0], 8)));
    matches("dst = '10.0.0.2'", x, c, |f, _, _| f.net.is_some_and(|n| v4_prefix(n.dst, [10, 0, 0, 2], 32)));
    let fd00: IpAddr = "fd00::".parse().unwrap();
    matches("src = 'fd00::/17'", x, c, |f, _, _| f.net.is_some_and(|n| prefix(n.src, fd00, 17)));
    matches("dst = 'fd00::2'", x, c, |f, _, _| {
        f.net.is_some_and(|n| n.dst == Endpoint::Ip("fd00::2".parse().unwrap()))
    });
}

#[test]
fn the_other_direction_is_left_alone() {
    need_root!();
    let frame = Make::new(byte::RcWriteOnly, 0x11, 5).bytes();
    let mut rig = Rig::new("[[rule]]\ntype = 'drop'\ndirection = 'out'");
    assert!(!rig.drops(&frame));
    assert_eq!(rig.run(Hook::TcIn, &frame), Some(Fate::Passed(frame.clone())));
    assert_eq!(rig.run(Hook::TcOut, &frame), Some(Fate::Dropped));
    let mut rig = Rig::new("[[rule]]\ntype = 'drop'\ninterface = 'nowhere'\n[[rule]]\ntype = 'drop'\nqpn = 7");
    assert!(rig.drops(&frame), "an interface that the loader does not know means any; run refuses it before");
}

/// Positions in `frames` that XDP drops.
fn hits(rig: &mut Rig, frames: &[Vec<u8>]) -> Vec<usize> {
    frames.iter().enumerate().filter(|(_, f)| rig.drops(f)).map(|(n, _)| n).collect()
}

fn rule(text: &str) -> Rig {
    Rig::new(&format!("seed = 7\n[[rule]]\ntype = 'drop'\n{text}"))
}

fn sends(qp: u32, psns: impl IntoIterator<Item = u32>) -> Vec<Vec<u8>> {
    psns.into_iter().map(|p| Make::new(byte::RcSendOnly, qp, p).bytes()).collect()
}

#[test]
fn nth_every_and_count_go_by_flow_or_by_rule() {
    need_root!();
    // two flows, interleaved: a b a b …
    let frames: Vec<_> = (0..10).flat_map(|p| [sends(1, [p]), sends(2, [p])].concat()).collect();
    assert_eq!(hits(&mut rule("nth = 3"), &frames), [4, 5]);
    assert_eq!(hits(&mut rule("nth = 3\nper = 'rule'"), &frames), [2]);
    assert_eq!(hits(&mut rule("every = 4"), &frames), [6, 7, 14, 15]);
    assert_eq!(hits(&mut rule("every = 4\nper = 'rule'"), &frames), [3, 7, 11, 15, 19]);
    assert_eq!(hits(&mut rule("count = 2"), &frames), [0, 1, 2, 3]);
    assert_eq!(hits(&mut rule("count = 2\nper = 'rule'"), &frames), [0, 1]);
    assert_eq!(hits(&mut rule("every = 2\ncount = 1"), &frames), [2, 3]);
    assert_eq!(hits(&mut rule("qpn = 2\nnth = 3"), &frames), [5]);
    // a rate of one a minute lets one through
    assert_eq!(hits(&mut rule("rate = '1/min'\nqpn = 1"), &frames), [0]);
}

#[test]
fn occurrences_of_a_psn() {
    need_root!();
    // 104 is lost twice; go-back-N; the wrap is inside
    let psns = [0xff_fffe, 0xff_ffff, 0, 1, 0xff_ffff, 0, 1, 2, 0xff_ffff, 0];
    let frames = sends(5, psns);
    assert_eq!(hits(&mut rule("iter = 1"), &frames), [0, 1, 2, 3, 7]);
    assert_eq!(hits(&mut rule("iter = 2"), &frames), [4, 5, 6]);
    assert_eq!(hits(&mut rule("iter = '2-'"), &frames), [4, 5, 6, 8, 9]);
    assert_eq!(hits(&mut rule("psn = 0\niter = '1-2'"), &frames), [2, 5]);
    assert_eq!(hits(&mut rule("psn = 0xffffff\niter = 3"), &frames), [8]);
    // an answer in the peer's space is not a transmission of the request of the same number
    let mut mixed = frames.clone();
    mixed.insert(1, Make::new(byte::RcReadResponseOnly, 5, 0xff_ffff).bytes());
    mixed.insert(2, Make::new(byte::RcAcknowledge, 5, 0xff_ffff).bytes());
    assert_eq!(hits(&mut rule("opcode = 'send'\niter = 2"), &mixed), [6, 7, 8]);
    assert_eq!(hits(&mut rule("opcode = 'ack'\niter = 1"), &mixed), [2]);
    // a full lap later the number is a new one, while the last lap's is remembered
    let laps = (0..6).chain([5]).map(|i| (i * 0x40_0000) & 0xff_ffff);
    assert_eq!(hits(&mut rule("iter = 2"), &sends(6, laps)), [6]);
}

#[test]
fn a_box_in_the_path_sees_a_packet_twice_and_counts_it_once() {
    need_root!();
    let mut rig = rule("iter = 2");
    for frame in sends(4, 0..3) {
        assert!(!rig.drops(&frame));
        assert_eq!(rig.run(Hook::TcOut, &frame), Some(Fate::Passed(frame.clone())));
    }
    assert!(rig.drops(&sends(4, [1])[0]));
}

#[test]
fn relative_psns() {
    need_root!();
    let frames = [sends(8, 0xff_fffd..0x100_0005), sends(9, 50..55)].concat();
    assert_eq!(hits(&mut rule("psn = '+0'"), &frames), [0, 8]);
    assert_eq!(hits(&mut rule("psn = '+3-+4'"), &frames), [3, 4, 11, 12]);
    assert_eq!(hits(&mut rule("psn = '+3-4'\nqpn = 9"), &frames), [11, 12]);
    // counted from the flow's first request, whatever the opcode of the rule
    let mixed = vec![
        Make::new(byte::RcWriteFirst, 3, 70).bytes(),
        Make::new(byte::RcWriteLast, 3, 71).bytes(),
        Make::new(byte::RcSendOnly, 3, 72).bytes(),
    ];
    assert_eq!(hits(&mut rule("psn = '+2'\nopcode = 'send'"), &mixed), [2]);
}

#[test]
fn the_issues_own_sentence() {
    need_root!();
    // "drop the second retransmission of the last packet of the third WRITE on the second QP"
    let write = |qp: u32, first: u32| {
        vec![
            Make::new(byte::RcWriteFirst, qp, first).bytes(),
            Make::new(byte::RcWriteMiddle, qp, first + 1).bytes(),
            Make::new(byte::RcWriteLast, qp, first + 2).bytes(),
        ]
    };
    let mut frames = Vec::new();
    for n in 0..4 {
        frames.extend(write(0x21, 10 + 3 * n));
        frames.extend(write(0x22, 500 + 3 * n));
    }
    let third_last = Make::new(byte::RcWriteLast, 0x22, 508).bytes();
    assert_eq!(frames[17], third_last);
    frames.push(third_last.clone()); // first retransmission
    frames.push(third_last.clone()); // second
    frames.push(third_last); // third
    let mut rig = rule("opcode = 'RC RDMA WRITE Last'\nflow = 2\nmessage = 3\niter = 3");
    assert_eq!(hits(&mut rig, &frames), [25]);
    let e = rig.injections().remove(0).event;
    assert_eq!((e.psn, e.occurrence, e.opcode, e.flow.dest_qp), (508, 3, u32::from(byte::RcWriteLast), 0x22));
}

#[test]
fn flows_are_numbered_among_those_that_the_rule_cares_for() {
    need_root!();
    let frames = vec![
        Make::new(byte::UdSendOnly, 1, 1).bytes(),
        Make::new(byte::RcAcknowledge, 0x90, 1).bytes(),
        Make::new(byte::RcSendOnly, 0x91, 1).bytes(),
        Make::new(byte::RcReadRequest, 0x92, 1).bytes(),
        Make::new(byte::RcSendOnly, 0x93, 1).bytes(),
        Make::new(byte::RcSendOnly, 0x92, 2).bytes(),
    ];
    assert_eq!(hits(&mut rule("flow = 2\nopcode = 'send'\ntransport = 'RC'"), &frames), [4]);
    // without an opcode: flows that carry messages, not those of acknowledges or management
    assert_eq!(hits(&mut rule("flow = 2"), &frames), [3, 5]);
    assert_eq!(hits(&mut rule("flow = 1\nopcode = 'mad'"), &frames), [0]);
}

#[test]
fn rules_in_order_and_arming() {
    need_root!();
    let frames = sends(4, 0..6);
    let text = "[[rule]]\nname = 'a'\ntype = 'drop'\npsn = 2\n\
                [[rule]]\nname = 'b'\ntype = 'drop'\narmed_by = 'a'\nnth = 2";
    let mut rig = Rig::new(text);
    assert_eq!(hits(&mut rig, &frames), [2, 4]);
    // the first that fires acts, the others do not see the packet
    let mut rig = Rig::new("[[rule]]\ntype = 'drop'\npsn = '0-2'\n[[rule]]\ntype = 'drop'\nnth = 1");
    assert_eq!(hits(&mut rig, &frames), [0, 1, 2, 3]);
    let t = rig.engine.tallies().unwrap();
    assert_eq!((t[0].matched, t[0].injected, t[1].matched, t[1].injected), (3, 3, 3, 1));
}

#[test]
fn time_windows() {
    need_root!();
    let frames = sends(4, 0..3);
    assert!(hits(&mut rule("after = '1h'"), &frames).is_empty());
    assert_eq!(hits(&mut rule("for = '1h'"), &frames).len(), 3);
    assert_eq!(hits(&mut Rig::new("[[rule]]\ntype = 'flap'\nperiod = '2h'\ndown = '1h'"), &frames).len(), 3);
    assert!(hits(&mut Rig::new("[[rule]]\ntype = 'flap'\nperiod = '2h'\ndown = '1ns'"), &frames).is_empty());
    // after the end of the run nothing fires
    let mut rig = rule("psn = '0-9'");
    rig.engine.arm(std::time::Duration::ZERO).unwrap();
    assert!(hits(&mut rig, &frames).is_empty());
    rig.engine.arm(std::time::Duration::from_mins(1)).unwrap();
    assert_eq!(hits(&mut rig, &frames).len(), 3);
    rig.engine.disarm().unwrap();
    assert!(hits(&mut rig, &frames).is_empty());
}

#[test]
fn chances_are_about_right_and_depend_on_the_seed() {
    need_root!();
    let frames = sends(4, 0..4000);
    let run = |seed: u64, rule: &str| {
        hits(&mut Rig::new(&format!("seed = {seed}\n[[rule]]\ntype = 'drop'\n{rule}")), &frames)
    };
    let a = run(1, "probability = 0.1");
    // six standard deviations
    assert!((290..=510).contains(&a.len()), "{}", a.len());
    assert_eq!(a, run(1, "probability = 0.1"));
    assert_ne!(a, run(2, "probability = 0.1"));
    assert!(run(1, "probability = 0").is_empty());
    assert_eq!(run(1, "probability = 1").len(), 4000);
    // bursts: p = 1 %, r = 25 %: bad for p/(p+r) = 3.85 % of the time, in runs of 4
    let b = run(3, "burst = { p = 0.01, r = 0.25 }");
    let runs = b.windows(2).filter(|w| w[1] != w[0] + 1).count() + 1;
    let mean = b.len() as f64 / runs as f64;
    assert!((60..=280).contains(&b.len()) && (2.5..=6.0).contains(&mean), "{} in runs of {mean}", b.len());
}

#[test]
fn a_phantom_queue_marks_more_the_faster_the_packets_come() {
    need_root!();
    let mark = |rate: &str, frames: usize| {
        let mut rig = Rig::new(&format!(
            "[[rule]]\ntype = 'ce'\nqueue = {{ rate = '{rate}', kmin = '10KB', kmax = '20KB', pmax = 0.1 }}"
        ));
        for f in sends(4, 0..frames as u32) {
            rig.xdp(&f);
        }
        rig.engine.tallies().unwrap()[0].injected
    };
    // at 1 kbit/s nothing drains: all marked beyond kmax, none below kmin, a few between
    let length = sends(4, [0])[0].len() as u64;
    let slow = mark("1kbit", 300);
    assert!((300 - 20_000 / length - 1..300 - 10_000 / length).contains(&slow), "{slow}");
    assert_eq!(mark("1Tbit", 300), 0);
}

/// A queue pair that is used again starts at a PSN of its own, as connections do.
#[test]
fn another_life_of_a_queue_pair_counts_anew() {
    need_root!();
    let write = |qp: u32, first: u32| {
        [(byte::RcWriteFirst, 0), (byte::RcWriteLast, 1)].map(|(op, n)| Make::new(op, qp, first + n).bytes())
    };
    // three WRITEs, then a life that begins further down, and goes over numbers that the first had used
    let mut frames: Vec<_> = (0..3).flat_map(|n| write(7, 0x90_0000 + 2 * n)).collect();
    frames.extend((0..3).flat_map(|n| write(7, 0x10_0000 + 2 * n)));
    frames.extend((0..3).flat_map(|n| write(7, 0x90_0000 + 2 * n)));
    assert_eq!(hits(&mut rule("opcode = 'write'\niter = 2"), &frames), [] as [usize; 0]);
    assert_eq!(hits(&mut rule("opcode = 'write last'\nmessage = 3"), &frames), [5, 11, 17]);
    assert_eq!(hits(&mut rule("psn = '+1'"), &frames), [1, 7, 13]);
    // a loss of many packets and the step back after it are of one life
    let far = [10, 11, 70_000, 70_001, 12, 13];
    assert_eq!(hits(&mut rule("psn = '+3'"), &sends(8, far)), [5]);
    assert_eq!(hits(&mut rule("iter = 2"), &sends(8, [10, 70_000, 10, 70_000])), [2, 3]);
    // datagrams have no order: a queue pair that also sends elsewhere leaves numbers out
    let ud: Vec<_> = [5, 0x70_0000, 6, 0x70_0000].map(|p| Make::new(byte::UdSendOnly, 0x30, p).bytes()).into();
    assert_eq!(hits(&mut rule("iter = 2"), &ud), [3]);
}

#[test]
fn faults_on_answers_atomics_notifications_and_datagrams() {
    need_root!();
    let response = |op, psn| Make::new(op, 0x12, psn).bytes();
    // a READ answered by three packets, the last two once more
    let read = [
        response(byte::RcReadResponseFirst, 50),
        response(byte::RcReadResponseMiddle, 51),
        response(byte::RcReadResponseLast, 52),
        response(byte::RcReadResponseFirst, 51),
        response(byte::RcReadResponseLast, 52),
    ];
    assert_eq!(hits(&mut rule("opcode = 'read-response'\niter = 2"), &read), [3, 4]);
    assert_eq!(hits(&mut rule("opcode = 'read-response last'\nnth = 2"), &read), [4]);
    assert_eq!(hits(&mut rule("opcode = 'read-response'\npsn = '+1'"), &read), [1, 3]);
    let atomics: Vec<_> = [9, 10, 9].into_iter().map(|p| Make::new(byte::RcFetchAdd, 0x12, p).bytes()).collect();
    assert_eq!(hits(&mut rule("opcode = 'atomic'\niter = 2"), &atomics), [2]);
    assert_eq!(hits(&mut rule("opcode = 'atomic'\nmessage = 2"), &atomics), [1]);
    let acks: Vec<_> = [9, 10].map(|p| Make::new(byte::RcAtomicAcknowledge, 0x12, p).bytes()).into();
    assert_eq!(hits(&mut rule("opcode = 'atomic-ack'\nnth = 2"), &acks), [1]);
    // CNPs all have PSN 0: none of them is a retransmission
    let cnps: Vec<_> = (0..4).map(|_| Make::new(byte::Cnp, 0x12, 0).bytes()).collect();
    assert_eq!(hits(&mut rule("opcode = 'cnp'\nnth = 3"), &cnps), [2]);
    assert_eq!(hits(&mut rule("opcode = 'cnp'\nevery = 2"), &cnps), [1, 3]);
    // the flow of a datagram is its sender's queue pair too
    let from = |src_qp: u32, psn: u32| {
        let mut m = Make::new(byte::UdSendOnly, 0x40, psn);
        m.ext = Deth::emit(0x1111, dissector::wire::Qpn::new(src_qp)).to_vec();
        m.bytes()
    };
    let ud = [from(1, 7), from(2, 7), from(1, 8), from(2, 8), from(1, 8)];
    assert_eq!(hits(&mut rule("transport = 'UD'\nnth = 2"), &ud), [2, 3]);
    assert_eq!(hits(&mut rule("transport = 'UD'\nflow = 2\nnth = 2"), &ud), [3]);
    assert_eq!(hits(&mut rule("transport = 'UD'\niter = 2"), &ud), [4]);
    let mads: Vec<_> = [1, 1, 0x30].map(|qp| Make::new(byte::UdSendOnly, qp, 3).bytes()).into();
    assert_eq!(hits(&mut rule("opcode = 'mad'"), &mads), [0, 1]);
}

#[test]
fn another_port_is_roce_if_the_scenario_says_so() {
    need_root!();
    let usual = Make::new(byte::RcSendOnly, 4, 1).bytes();
    let mut other = usual.clone();
    other[ETH_LEN + IPV4_LEN + 2..ETH_LEN + IPV4_LEN + 4].copy_from_slice(&4792u16.to_be_bytes());
    let mut rig = Rig::new("port = 4792\n[[rule]]\ntype = 'drop'");
    assert_eq!(hits(&mut rig, &[usual.clone(), other.clone()]), [1]);
    assert_eq!(hits(&mut rule(""), &[usual, other]), [0]);
}

#[test]
fn what_comes_by_before_and_after_is_not_counted() {
    need_root!();
    let mut rig = rule("");
    let frames = sends(4, 0..3);
    hits(&mut rig, &frames);
    rig.engine.disarm().unwrap();
    hits(&mut rig, &frames);
    assert_eq!(rig.engine.passed().unwrap().roce, 3);
    let mut rig = rule("");
    rig.engine.disarm().unwrap();
    hits(&mut rig, &frames);
    rig.engine.arm(std::time::Duration::from_mins(1)).unwrap();
    assert_eq!(rig.engine.passed().unwrap(), roce_ebpf::abi::fault::FaultPassed::default());
}

#[test]
fn rules_that_wait_for_rules_that_wait() {
    need_root!();
    let text = "[[rule]]\nname = 'c'\ntype = 'drop'\narmed_by = 'b'\ncount = 1\n\
                [[rule]]\nname = 'b'\ntype = 'drop'\narmed_by = 'a'\ncount = 1\n\
                [[rule]]\nname = 'a'\ntype = 'drop'\npsn = 3";
    let mut rig = Rig::new(text);
    assert_eq!(hits(&mut rig, &sends(4, 0..10)), [3, 4, 5]);
    let by: Vec<_> = rig.injections().iter().map(|i| i.event.rule).collect();
    assert_eq!(by, [2, 1, 0]);
}

/// Packets one after another for so long: for each whether it was dropped, and the times between which the program
/// looked at the clock, from before and from after the rules were armed.
fn over_time(text: &str, long: std::time::Duration) -> Vec<(bool, std::time::Duration, std::time::Duration)> {
    let mut rig = rule(text);
    // the program is loaded with its first packet
    rig.xdp(&[0; 64]);
    let frame = Make::new(byte::RcSendOnly, 4, 1).bytes();
    let before = std::time::Instant::now();
    rig.engine.arm(std::time::Duration::from_mins(1)).unwrap();
    let after = std::time::Instant::now();
    let mut out = Vec::new();
    while after.elapsed() < long {
        let earliest = after.elapsed();
        let dropped = rig.drops(&frame);
        out.push((dropped, earliest, before.elapsed()));
        // the ring must not fill up
        rig.injections();
    }
    out
}

#[test]
fn windows_open_and_close_when_they_should() {
    need_root!();
    let ms = std::time::Duration::from_millis;
    let inside = |at: std::time::Duration| at >= ms(40) && at < ms(120);
    let seen = over_time("after = '40ms'\nfor = '80ms'", ms(200));
    let certain = |f: &dyn Fn(std::time::Duration) -> bool,
                   seen: &[(bool, std::time::Duration, std::time::Duration)]| {
        let mut n = [0usize; 2];
        for (dropped, a, b) in seen {
            // between the two times the window neither opens nor closes
            if f(*a) == f(*b) && b.saturating_sub(*a) < ms(5) {
                assert_eq!(*dropped, f(*a), "between {a:?} and {b:?}");
                n[usize::from(*dropped)] += 1;
            }
        }
        assert!(n[0] > 100 && n[1] > 100, "{n:?} packets outside and inside the windows");
    };
    certain(&inside, &seen);
    // a flap that starts late and ends: down for 15 of every 40 ms
    let flap = |at: std::time::Duration| {
        at >= ms(20) && at < ms(180) && at.saturating_sub(ms(20)).as_nanos() % ms(40).as_nanos() < ms(15).as_nanos()
    };
    certain(&flap, &over_time("after = '20ms'\nfor = '160ms'\nperiod = '40ms'\ndown = '15ms'", ms(260)));
}

#[test]
fn a_rate_limit_lets_no_more_through() {
    need_root!();
    let ms = std::time::Duration::from_millis;
    let seen = over_time("rate = '200/s'", ms(300));
    let times: Vec<_> = seen.iter().filter(|s| s.0).map(|s| (s.1, s.2)).collect();
    assert_eq!((seen[0].0, seen[1].0), (true, false));
    // 5 ms from one to the next, and soon after they have passed
    assert!(times.windows(2).all(|w| w[1].1.saturating_sub(w[0].0) >= ms(5)), "{times:?}");
    let most = seen.last().unwrap().2.as_millis() / 5 + 1;
    assert!((10..=most).contains(&(times.len() as u128)), "{} of {most}", times.len());
    // and no less: what went on came within 5 ms of the drop before it, whatever the machine was doing meanwhile
    let mut last = seen[0];
    for s in &seen {
        if s.0 {
            last = *s;
        }
        assert!(s.0 || s.1.saturating_sub(last.2) < ms(5), "{s:?} after {last:?}");
    }
    // from two CPUs at once no more than from one
    let mut rig = rule("rate = '1/min'\nper = 'rule'");
    let frame = Make::new(byte::RcSendOnly, 9, 1).bytes();
    let program: &aya::programs::Xdp =
        roce_user::load::xdp(rig.engine.object(), roce_ebpf::abi::fault::XDP_INGRESS).unwrap();
    let start = std::sync::Barrier::new(2);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let options = aya::programs::TestRunOptions {
                    data_in: Some(&frame),
                    repeat: 2_000,
                    ..aya::programs::TestRunOptions::new()
                };
                start.wait();
                aya::programs::TestRun::test_run(program, options).expect("a test run");
            });
        }
    });
    let t = rig.engine.tallies().unwrap()[0];
    assert_eq!((t.matched, t.injected), (4_000, 1));
}

/// Against the stationary state of the two-state chain, computed here: share of bad packets p/(p+r), losses among
/// them 1-h and elsewhere 1-k, runs of losses 1/r long where 1-h is 1 and 1-k is 0.
#[test]
fn bursts_are_gilbert_elliotts() {
    need_root!();
    const PACKETS: u32 = 40_000;
    for (p, r, bad, good) in
        [(0.02_f64, 0.2, 1.0, 0.0), (0.05, 0.5, 0.6, 0.0), (0.1, 0.3, 0.9, 0.05), (1.0, 1.0, 1.0, 0.0)]
    {
        let mut rig = rule(&format!("burst = {{ p = {p}, r = {r}, '1-h' = {bad}, '1-k' = {good} }}"));
        let mut frame = Make::new(byte::RcSendOnly, 4, 0).bytes();
        let psn_at = ETH_LEN + IPV4_LEN + UDP_LEN + 9;
        let lost: Vec<bool> = (0..PACKETS)
            .map(|n| {
                frame[psn_at..psn_at + 3].copy_from_slice(&n.to_be_bytes()[1..]);
                if n % 1000 == 0 {
                    rig.injections();
                }
                rig.drops(&frame)
            })
            .collect();
        let n = f64::from(PACKETS);
        let share_bad = p / (p + r);
        let expected = share_bad * bad + (1.0 - share_bad) * good;
        // packets are not independent of each other: the chain forgets by 1-p-r a packet, which widens the spread
        let memory = (1.0 - p - r).abs();
        let spread = (expected * (1.0 - expected) / n * (1.0 + memory) / (1.0 - memory)).sqrt();
        let found = lost.iter().filter(|l| **l).count() as f64 / n;
        assert!(
            (found - expected).abs() < 5.0 * spread + 1.0 / n,
            "p {p}, r {r}: {found}, expected {expected} ± {spread}"
        );
        // that the one before was lost tells of the next what the chain says
        let pairs = lost.windows(2).filter(|w| w[0]).count() as f64;
        let both = lost.windows(2).filter(|w| w[0] && w[1]).count() as f64;
        let bad_if_lost = share_bad * bad / expected;
        let next_bad = bad_if_lost * (1.0 - r) + (1.0 - bad_if_lost) * p;
        let next = next_bad * bad + (1.0 - next_bad) * good;
        let spread = (next * (1.0 - next) / pairs).sqrt();
        assert!(
            (both / pairs - next).abs() < 5.0 * spread + 1.0 / pairs,
            "p {p}, r {r}: {} after a loss, expected {next}",
            both / pairs
        );
    }
}

/// Frames of 9000 bytes lie in fragments; what is changed and cut is in the last of them. The kernel makes such packets
/// for XDP only; for TC see the test with real interfaces.
#[test]
fn jumbo_frames_are_changed_where_they_lie_in_fragments() {
    need_root!();
    let frames = shapes(&Make { payload: 8600, ..Make::new(byte::RcWriteOnly, 0x11, 100) });
    let payload = |f: &Frame<'_>, at: usize| f.transport.unwrap().start + Bth::LEN + Reth::LEN + at;
    let check = |text: &str, want: &dyn Fn(&[u8], &Frame<'_>) -> Fate| {
        let mut rig = Rig::new(&format!("[[rule]]\n{text}"));
        for frame in &frames {
            let got = rig.run(Hook::Xdp, frame).expect("the kernel makes a packet of it");
            assert!(got == want(frame, &parse(frame)), "{text}, {} bytes", frame.len());
        }
        assert_eq!(rig.engine.tallies().unwrap()[0].injected, frames.len() as u64, "{text}");
    };
    check("type = 'corrupt'\noffset = 8599\nxor = 0x41", &|frame, f| {
        Fate::Passed(with_flip(frame, payload(f, 8599), 0x41))
    });
    check("type = 'corrupt'\noffset = 5000", &|frame, f| Fate::Passed(with_flip(frame, payload(f, 5000), 1)));
    check("type = 'icrc'", &|frame, f| {
        let (net, t) = (f.net.unwrap(), f.transport.unwrap());
        let wrong = if let NetKind::Ipv4 { .. } = net.kind {
            let mut out = frame.to_vec();
            out[net.start + 4] ^= 0xff;
            out[net.start + 5] ^= 0xff;
            fix_ipv4(&mut out, net.start);
            out
        } else {
            with_flip(frame, t.start + t.declared - 4, 1)
        };
        assert!(matches!(verdict(&wrong), Verdict::Bad { .. }));
        Fate::Passed(wrong)
    });
    check("type = 'truncate'\nlength = 8000", &|frame, _| Fate::Passed(frame[..8000].to_vec()));
    check("type = 'truncate'\nlength = 60", &|frame, _| Fate::Passed(frame[..60].to_vec()));
    check("type = 'ce'", &|frame, _| Fate::Passed(with_tos(frame, 3)));
    check("type = 'drop'\nsize = '>=8000'", &|_, _| Fate::Dropped);
}

/// Hits of a run with flows interleaved by `order`, on two CPUs: (queue pair, PSN, transmission) in order.
fn shuffled(order: u64) -> BTreeSet<(u32, u32, u32, u32)> {
    const TEXT: &str = "seed = 42\n\
        [[rule]]\ntype = 'drop'\nprobability = 0.05\n\
        [[rule]]\ntype = 'drop'\nnth = 17\n\
        [[rule]]\ntype = 'drop'\nevery = 50\ncount = 3\n\
        [[rule]]\ntype = 'drop'\nburst = { p = 0.02, r = 0.3 }\n\
        [[rule]]\ntype = 'drop'\niter = 2\nevery = 2\n\
        [[rule]]\ntype = 'drop'\npsn = '+100-+101'\niter = 1\n\
        [[rule]]\ntype = 'drop'\nopcode = 'send'\nmessage = 33\niter = 1";
    let mut rig = Rig::new(TEXT);
    let flows: Vec<Vec<Vec<u8>>> = (0..8)
        .map(|q| {
            sends(0x100 + q, (0..200u32).flat_map(|p| if p % 10 == 9 { vec![p, p - 2, p - 1, p] } else { vec![p] }))
        })
        .collect();
    // each CPU has flows of its own and takes them in an order that the seed decides
    let program = roce_user::load::xdp(rig.engine.object(), roce_ebpf::abi::fault::XDP_INGRESS).unwrap();
    let program: &aya::programs::Xdp = program;
    std::thread::scope(|s| {
        for cpu in 0..2usize {
            let flows = &flows;
            s.spawn(move || {
                let mut set = nix::sched::CpuSet::new();
                if set.set(cpu % std::thread::available_parallelism().map_or(1, usize::from)).is_ok() {
                    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).expect("a thread may choose");
                }
                let mut random = order.wrapping_mul(2).wrapping_add(cpu as u64) | 1;
                let mut left: Vec<(usize, usize)> =
                    (0..flows.len()).filter(|f| f % 2 == (cpu ^ (order as usize & 1))).map(|f| (f, 0)).collect();
                while !left.is_empty() {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let n = (random % left.len() as u64) as usize;
                    let (f, at) = left[n];
                    let options = aya::programs::TestRunOptions {
                        data_in: Some(&flows[f][at]),
                        ..aya::programs::TestRunOptions::new()
                    };
                    aya::programs::TestRun::test_run(program, options).expect("a test run");
                    if at + 1 == flows[f].len() {
                        left.swap_remove(n);
                    } else {
                        left[n].1 += 1;
                    }
                }
            });
        }
    });
    assert_eq!(rig.engine.counters().unwrap().events_lost, 0);
    rig.injections().iter().map(|i| (i.event.flow.dest_qp, i.event.psn, i.event.occurrence, i.event.rule)).collect()
}

#[test]
fn ten_runs_on_two_cpus_in_any_order_of_flows_hit_the_same_packets() {
    need_root!();
    let first = shuffled(1);
    let rules: BTreeMap<u32, usize> = first.iter().fold(BTreeMap::new(), |mut m, h| {
        *m.entry(h.3).or_default() += 1;
        m
    });
    assert_eq!(rules.len(), 7, "every rule has hits: {rules:?}");
    for order in 2..=10 {
        assert_eq!(shuffled(order), first, "order {order}");
    }
}

#[test]
fn the_nth_is_the_nth_across_cpus() {
    need_root!();
    let mut rig = rule("nth = 1000\nper = 'rule'\nqpn = 9");
    let frame = Make::new(byte::RcSendOnly, 9, 1).bytes();
    let program: &aya::programs::Xdp =
        roce_user::load::xdp(rig.engine.object(), roce_ebpf::abi::fault::XDP_INGRESS).unwrap();
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let options = aya::programs::TestRunOptions {
                    data_in: Some(&frame),
                    repeat: 50_000,
                    ..aya::programs::TestRunOptions::new()
                };
                aya::programs::TestRun::test_run(program, options).expect("a test run");
            });
        }
    });
    let t = rig.engine.tallies().unwrap()[0];
    assert_eq!((t.matched, t.injected), (100_000, 1));
}

#[test]
fn watched_packets_come_with_their_fate() {
    need_root!();
    let mut rig = Rig::with("[[rule]]\ntype = 'drop'\npsn = 1", false, true);
    for f in sends(4, 0..3) {
        rig.xdp(&f);
    }
    let seen: Vec<_> = rig.seen().iter().map(|s| (s.record.dropped, s.record.rule, s.record.length)).collect();
    let length = Make::new(byte::RcSendOnly, 4, 0).bytes().len() as u32;
    assert_eq!(seen, [(0, 0, length), (1, 1, length), (0, 0, length)]);
}

#[test]
fn sixty_four_rules() {
    need_root!();
    let text: String =
        (0..64).map(|n| format!("[[rule]]\ntype = 'drop'\npsn = {n}\niter = 1\n")).collect::<Vec<_>>().concat();
    let mut rig = Rig::new(&text);
    assert_eq!(hits(&mut rig, &sends(4, 0..66)).len(), 64);
    let t = rig.engine.tallies().unwrap();
    assert!(t.iter().all(|t| t.injected == 1), "{t:?}");
}

#[test]
fn a_flood_of_flows_is_counted_and_does_no_harm() {
    need_root!();
    // one byte of state a flow is enough to fill the table with hostile queue pair numbers
    let mut rig = rule("nth = 2");
    let most = roce_ebpf::abi::fault::MAX_FLOWS;
    let mut frame = Make::new(byte::RcSendOnly, 0, 1).bytes();
    let qp_at = ETH_LEN + IPV4_LEN + UDP_LEN + 5;
    for n in 0..most + 50 {
        frame[qp_at..qp_at + 3].copy_from_slice(&n.to_be_bytes()[1..]);
        rig.xdp(&frame);
    }
    let full = rig.engine.counters().unwrap().flows_full + rig.engine.counters().unwrap().states_full;
    assert!(full >= 50, "{full}");
    assert_eq!(rig.engine.passed().unwrap().roce, u64::from(most) + 50);
}

#[test]
fn rocev1_is_roce_too() {
    need_root!();
    let frame = Make { v1: true, ..Make::new(byte::RcSendOnly, 4, 0) }.bytes();
    assert_eq!(parse(&frame).transport.map(|t| t.encapsulation), Some(Encapsulation::RoceV1));
    assert_eq!(frame.len(), ETH_LEN + IPV6_LEN + Bth::LEN + 64 + 4);
    assert!(rule("qpn = 4").drops(&frame));
    // headers that the made frames use have the lengths of the table
    assert_eq!(
        (Deth::LEN, Reth::LEN, AtomicEth::LEN),
        (Header::Deth.len(), Header::Reth.len(), Header::AtomicEth.len())
    );
}
