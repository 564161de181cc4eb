//! The kernel programs against the dissector and the analyser, frame by frame, by `BPF_PROG_TEST_RUN`: one
//! oracle, two implementations.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use aya::programs::{TestRun, TestRunAttrs, TestRunOptions};
use dissector::capture::Reader;
use dissector::flow::row::{Endpoint, FlowRow};
use dissector::flow::{Analyzer, Place};
use dissector::frame::{Encapsulation, Frame, LayerKind, LinkType, icrc};
use dissector::wire::{Kind, ROCE_UDP_PORT, Role, outer};
use roce_ebpf::abi::key::{NO_QP, family};
use roce_ebpf::abi::{Direction, event};
use roce_tests::bench::{Bench, SHORTEST};
use roce_tests::netns::Pair;
use roce_tests::{all_captures, is_root};
use roce_user::attach::Attach;
use roce_user::load::Options;
use roce_user::maps;
use roce_user::ring::Events;
use roce_user::snapshot::{Live, Snapshot};

const XDP_PASS: u32 = 2;
const TC_ACT_UNSPEC: i32 = -1;

macro_rules! need_root {
    () => {
        if !is_root() {
            eprintln!("skipped: needs root to load programs");
            return;
        }
    };
}

fn options() -> Options {
    Options { max_flows: 256, ..Options::default() }
}

/// Ethernet frames of a capture, with their times.
fn frames(path: &Path) -> Vec<(dissector::capture::Timestamp, Vec<u8>)> {
    let mut reader = Reader::open(path).expect("a capture of the repository opens");
    let mut out = Vec::new();
    while let Some(r) = reader.next().expect("a capture of the repository is whole") {
        if r.link == LinkType::ETHERNET.0 && r.bytes.len() >= SHORTEST {
            out.push((r.at, r.bytes.to_vec()));
        }
    }
    out
}

type FlowKey = (IpAddr, IpAddr, u32, Option<u32>, bool);

/// What the frame is by the dissector, where the kernel program is meant to see the same: the flow and the opcode of
/// a RoCE packet; `Err` if it is none, with whether it is a fragment.
fn meant(bytes: &[u8]) -> Option<Result<(FlowKey, u8), bool>> {
    let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
    // what the kernel program does not walk: tunnels, deeper stacks of tags and of extension headers
    let count = |k| f.layers.as_slice().iter().filter(|l| l.kind == k).count();
    let plain = f.layers.as_slice().iter().all(|l| {
        matches!(
            l.kind,
            LayerKind::Ethernet
                | LayerKind::Vlan
                | LayerKind::Ipv4
                | LayerKind::Ipv6
                | LayerKind::Ipv6Extension
                | LayerKind::Udp
                | LayerKind::Grh
        )
    });
    if !plain
        || count(LayerKind::Ethernet) > 1
        || count(LayerKind::Ipv4) + count(LayerKind::Ipv6) + count(LayerKind::Grh) > 1
        || count(LayerKind::Vlan) > outer::MAX_VLAN_TAGS
        || count(LayerKind::Ipv6Extension) > outer::MAX_IPV6_EXTENSIONS
    {
        return None;
    }
    let fragment = f.net.is_some_and(|n| n.fragment.is_some());
    let (Some(net), Some(t), false) = (f.net, f.transport, fragment) else { return Some(Err(fragment)) };
    let Some(Ok(p)) = f.packet() else { return Some(Err(false)) };
    let (Endpoint::Ip(src), Endpoint::Ip(dst)) = (net.src, net.dst) else { return Some(Err(false)) };
    let v1 = t.encapsulation == Encapsulation::RoceV1;
    let src_qp = p.ext.deth.map(|d| d.src_qp().get());
    Some(Ok(((src, dst, p.bth.dest_qp().get(), src_qp, v1), p.bth.opcode())))
}

/// The same, by the one flow that the kernel program has counted.
fn counted(bench: &Bench) -> Result<(FlowKey, u8), bool> {
    let t = bench.totals(Direction::In);
    let opcode = (0..=255u8).zip(t.opcodes).find(|(_, n)| *n > 0);
    let Some((opcode, n)) = opcode else {
        assert_eq!(t.other_packets, 1, "every packet is counted");
        return Err(t.fragments > 0);
    };
    assert_eq!((n, t.roce_packets(), t.other_packets, t.overflow_packets), (1, 1, 0, 0));
    let qp = |q: u32| (q != NO_QP).then_some(q);
    let mut keys: Vec<FlowKey> = bench
        .flows()
        .iter()
        .filter_map(maps::key)
        .map(|k| match k {
            maps::Key::V4(k) => (IpAddr::from(k.src), IpAddr::from(k.dst), k.dest_qp, qp(k.src_qp), false),
            maps::Key::V6(k) => {
                (IpAddr::from(k.src), IpAddr::from(k.dst), k.dest_qp, qp(k.src_qp), k.family == family::GID)
            }
        })
        .collect();
    assert_eq!(keys.len(), 1, "one packet, one flow");
    Ok((keys.remove(0), opcode))
}

fn agree(bench: &mut Bench, bytes: &[u8], what: &dyn std::fmt::Display) {
    assert_eq!(bench.xdp(bytes), XDP_PASS, "{what}");
    if let Some(want) = meant(bytes) {
        let got = counted(bench);
        // a fragment is told from other packets only where it is one of a UDP datagram
        let same = match (&got, &want) {
            (Err(_), Err(true)) => true,
            (g, w) => g == w,
        };
        assert!(same, "{what}: the kernel says {got:?}, the dissector {want:?}\n{bytes:02x?}");
    }
    bench.clear();
}

#[test]
fn every_prefix_of_every_kind_of_frame() {
    need_root!();
    let mut bench = Bench::new(&options());
    // frames that differ in nothing but addresses, QPs and payload have the same prefixes
    let mut seen = BTreeSet::new();
    for path in all_captures() {
        for (n, (_, frame)) in frames(&path).iter().enumerate() {
            let kind = frame.get(12..).map_or(&[][..], |r| r.get(..2).unwrap_or(&[])).to_vec();
            let f = Frame::parse(frame, frame.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
            let opcode = f.packet().and_then(Result::ok).map(|p| p.bth.opcode());
            if !seen.insert((kind, opcode, f.layers.as_slice().len(), frame.len() > 200)) {
                continue;
            }
            for cut in SHORTEST..=frame.len().min(180) {
                let name = format!("{} frame {} cut at {cut}", path.display(), n + 1);
                agree(&mut bench, &frame[..cut], &name);
            }
        }
    }
    assert!(seen.len() > 50, "the captures have many kinds of frames");
}

#[test]
fn every_program_passes_the_verifier_with_everything_on() {
    need_root!();
    let looked_at = roce_user::load::verify().expect("the kernel accepts them");
    assert!(looked_at.len() >= 6, "{looked_at:?}");
    for (name, steps) in looked_at {
        eprintln!("{name}: {steps} instructions verified");
        // the kernel gives up at a million, and that of 6.1 has needed seven times the steps of this one for a program
        assert!((1..140_000).contains(&steps), "{name}: {steps}");
    }
}

/// A small generator with a seed: the same frames every time.
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).expect("below a usize")
    }
}

#[test]
fn a_hundred_thousand_mutations() {
    need_root!();
    let mut bench = Bench::new(&options());
    let mut all = Vec::new();
    for path in all_captures() {
        all.extend(frames(&path).into_iter().map(|(_, f)| f));
    }
    all.extend(shapes());
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    for n in 0..100_000 {
        let mut frame = all[random.below(all.len())].clone();
        frame.truncate(256);
        for _ in 0..=random.below(4) {
            // most of the meaning lies in the first bytes
            let at = random.below(frame.len().min(90));
            match random.below(4) {
                0 => frame[at] ^= 1 << random.below(8),
                1 => frame[at] = random.next().to_le_bytes()[0],
                2 => {
                    let interesting =
                        [0x00, 0x06, 0x11, 0x1b, 0x2b, 0x2c, 0x3c, 0x40, 0x45, 0x60, 0x81, 0x86, 0xdd, 0xff];
                    frame[at] = interesting[random.below(interesting.len())];
                }
                _ => frame.truncate(SHORTEST.max(at)),
            }
        }
        agree(&mut bench, &frame, &format_args!("mutation {n}"));
    }
}

/// Shapes that the captures lack: tags, options, extension headers, RoCEv1.
fn shapes() -> Vec<Vec<u8>> {
    let path = all_captures().into_iter().find(|p| p.ends_with("ipv6_write.pcap")).expect("it is there");
    let v6 = frames(&path).into_iter().map(|(_, f)| f).find(|f| meant(f).is_some_and(|m| m.is_ok())).expect("RoCE");
    let path = all_captures().into_iter().find(|p| p.ends_with("ecn_ect0.pcap")).expect("it is there");
    let v4 = frames(&path).into_iter().map(|(_, f)| f).find(|f| meant(f).is_some_and(|m| m.is_ok())).expect("RoCE");
    let mut out = Vec::new();
    for f in [&v4, &v6] {
        for tags in [&[0x8100u16][..], &[0x88a8, 0x8100], &[0x9100, 0x8100], &[0x8100, 0x8100, 0x8100]] {
            let mut b = f[..12].to_vec();
            for t in tags {
                b.extend(t.to_be_bytes());
                b.extend([0x60, 0x64]);
            }
            b.extend(&f[12..]);
            out.push(b);
        }
    }
    for words in 1..=10u8 {
        let mut b = v4.clone();
        b[14] = 0x45 + words;
        let options = vec![1u8; usize::from(words) * 4];
        b.splice(34..34, options);
        let len = u16::from_be_bytes([b[16], b[17]]) + u16::from(words) * 4;
        b[16..18].copy_from_slice(&len.to_be_bytes());
        out.push(b);
    }
    for chain in [&[0u8][..], &[60], &[43], &[0, 60], &[0, 60, 43], &[0, 60, 43, 60], &[0, 60, 43, 60, 60]] {
        let mut b = v6.clone();
        let mut headers = Vec::new();
        for (i, _) in chain.iter().enumerate() {
            let next = chain.get(i + 1).copied().unwrap_or(17);
            headers.extend([next, 0, 1, 4, 0, 0, 0, 0]);
        }
        b[20] = chain[0];
        let len = u16::from_be_bytes([b[18], b[19]]) + u16::try_from(headers.len()).expect("short");
        b[18..20].copy_from_slice(&len.to_be_bytes());
        b.splice(54..54, headers);
        out.push(b);
    }
    // RoCEv1: the IPv6 header becomes the GRH
    let mut b = v6.clone();
    b[12..14].copy_from_slice(&[0x89, 0x15]);
    b[20] = 0x1b;
    let len = u16::from_be_bytes([b[18], b[19]]) - 8;
    b[18..20].copy_from_slice(&len.to_be_bytes());
    b.drain(54..62);
    out.push(b);
    out
}

#[test]
fn shapes_that_the_captures_lack() {
    need_root!();
    let mut bench = Bench::new(&options());
    let mut roce = 0;
    for (n, frame) in shapes().iter().enumerate() {
        roce += usize::from(matches!(meant(frame), Some(Ok(_))));
        for cut in SHORTEST..=frame.len().min(200) {
            agree(&mut bench, &frame[..cut], &format_args!("shape {n} cut at {cut}"));
        }
    }
    assert!(roce > 20, "they are RoCE: {roce}");
}

/// Counts of one flow that do not need an analysis, made from the dissector's frames alone.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plain {
    packets: u64,
    bytes: u64,
    opcodes: BTreeMap<u8, u64>,
    ecn: [u64; 4],
    requests: u64,
    responses: u64,
    acks: u64,
    naks: u64,
    rnr: u64,
    cnps: u64,
    port: Option<u16>,
}

fn plain(all: &[(dissector::capture::Timestamp, Vec<u8>)]) -> (BTreeMap<FlowKey, Plain>, u64) {
    let mut flows: BTreeMap<FlowKey, Plain> = BTreeMap::new();
    let mut other = 0;
    for (_, bytes) in all {
        let Some(Ok((key, opcode))) = meant(bytes) else {
            other += 1;
            continue;
        };
        let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
        let p = f.packet().expect("RoCE").expect("whole");
        let flow = flows.entry(key).or_default();
        flow.packets += 1;
        flow.bytes += bytes.len() as u64;
        *flow.opcodes.entry(opcode).or_default() += 1;
        flow.ecn[usize::from(outer::ecn(f.net.expect("RoCE has one").tos))] += 1;
        flow.port = f.udp.map(|u| u.src_port);
        let Some(op) = p.op else { continue };
        match (op.role(), op.kind, p.ext.aeth.map(dissector::wire::Aeth::syndrome)) {
            (Role::Request, ..) => flow.requests += 1,
            (Role::Notification, ..) => flow.cnps += 1,
            (_, Kind::Ack, Some(s)) if s.is_nak() => flow.naks += 1,
            (_, Kind::Ack, Some(s)) if s.is_rnr() => flow.rnr += 1,
            (_, Kind::Ack, _) => flow.acks += 1,
            _ => flow.responses += 1,
        }
    }
    (flows, other)
}

fn key_of(r: &FlowRow) -> FlowKey {
    let ip = |e| match e {
        Endpoint::Ip(a) => a,
        Endpoint::Lid(l) => panic!("the kernel program knows no LID: {l}"),
    };
    // a source QP that came by joining is not part of the identity
    let own = (r.transport == "UD" || r.transport == "RD").then_some(r.src_qp).flatten();
    (ip(r.src), ip(r.dst), r.dest_qp, own, r.udp_srcport.is_none())
}

fn plain_of(r: &FlowRow) -> Plain {
    Plain {
        packets: r.packets,
        bytes: r.bytes,
        opcodes: r.opcodes.iter().collect(),
        ecn: [r.ecn.not_ect, r.ecn.ect1, r.ecn.ect0, r.ecn.ce],
        requests: r.requests,
        responses: r.responses,
        acks: r.acks,
        naks: r.naks.total(),
        rnr: r.rnr_naks,
        cnps: r.cnps,
        port: r.udp_srcport,
    }
}

#[test]
fn counters_equal_the_dissectors_on_every_capture() {
    need_root!();
    let mut bench = Bench::new(&options());
    let mut roce = 0;
    for path in all_captures() {
        let all = frames(&path);
        for (_, f) in &all {
            assert_eq!(bench.xdp(f), XDP_PASS);
        }
        let (want, other) = plain(&all);
        let s = bench.snapshot();
        let got: BTreeMap<FlowKey, Plain> = s.flows.iter().map(|r| (key_of(r), plain_of(r))).collect();
        assert_eq!(got, want, "{}", path.display());
        let t = bench.totals(Direction::In);
        let sum: u64 = want.values().map(|f| f.packets).sum();
        assert_eq!((t.roce_packets(), t.other_packets), (sum, other), "{}", path.display());
        assert_eq!(t.roce_bytes, want.values().map(|f| f.bytes).sum::<u64>());
        for (opcode, n) in (0..=255u8).zip(t.opcodes) {
            let want: u64 = want.values().filter_map(|f| f.opcodes.get(&opcode)).sum();
            assert_eq!(n, want, "opcode {opcode:#04x} in {}", path.display());
        }
        roce += sum;
        bench.clear();
    }
    assert!(roce > 5000, "the captures hold many RoCE packets: {roce}");
}

#[test]
fn egress_counts_as_ingress_does() {
    need_root!();
    let mut bench = Bench::new(&options());
    let mut before = bench.totals(Direction::Out);
    for path in all_captures() {
        let mut ran = Vec::new();
        for (at, f) in frames(&path) {
            if let Some(verdict) = bench.tc(&f) {
                assert_eq!(verdict, TC_ACT_UNSPEC);
                ran.push((at, f));
            }
        }
        let (want, other) = plain(&ran);
        let s = bench.snapshot();
        let got: BTreeMap<FlowKey, Plain> = s.flows.iter().map(|r| (key_of(r), plain_of(r))).collect();
        assert_eq!(got, want, "{}", path.display());
        assert!(s.places.iter().all(|p| p.outgoing));
        let t = bench.totals(Direction::Out);
        assert_eq!(t.other_packets - before.other_packets, other, "{}", path.display());
        before = t;
        bench.clear();
    }
    assert!(before.roce_packets() > 2500);
}

/// What needs to remember PSNs.
#[derive(Debug, PartialEq, Eq)]
struct Sequenced {
    messages: u64,
    repeats: u64,
    missing: u64,
    reordered: u64,
}

fn sequenced(r: &FlowRow) -> Sequenced {
    Sequenced {
        messages: r.messages,
        // the kernel does not tell copies from repeats
        repeats: r.retransmitted + r.duplicates,
        missing: r.missing,
        reordered: r.reordered,
    }
}

#[test]
fn sequences_equal_the_analysers_on_every_capture() {
    need_root!();
    let mut bench = Bench::new(&options());
    let mut different = Vec::new();
    let (mut flows, mut paired) = (0, 0);
    for path in all_captures() {
        let all = frames(&path);
        let mut analyzer = Analyzer::default();
        for ((at, bytes), number) in all.iter().zip(1..) {
            bench.xdp(bytes);
            let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
            let place = Place { number, at: *at };
            match f.packet() {
                Some(Ok(p)) => {
                    // the kernel program cannot check an ICRC, so it believes every packet
                    analyzer.push(place, &f, &p, icrc::Verdict::Unchecked(icrc::Why::Off));
                }
                _ => analyzer.other(place, &f),
            }
        }
        analyzer.settle();
        let rows = analyzer.rows();
        let other_way = |rows: &[FlowRow], r: &FlowRow| {
            r.pair.map(|p| key_of(rows.iter().find(|r| r.id == p).expect("a pair is a flow of the report")))
        };
        let want: BTreeMap<FlowKey, (Sequenced, Option<FlowKey>)> =
            rows.iter().map(|r| (key_of(r), (sequenced(r), other_way(&rows, r)))).collect();
        let seen: Vec<FlowRow> = bench.snapshot().flows.iter().map(|r| FlowRow::clone(r)).collect();
        for r in &seen {
            flows += 1;
            let (got, pair) = (sequenced(r), other_way(&seen, r));
            paired += usize::from(pair.is_some());
            let Some((want, want_pair)) = want.get(&key_of(r)) else {
                different.push(format!("{}: the analyser has no flow {:?}", path.display(), key_of(r)));
                continue;
            };
            // the analyser sees every packet's PSN, a snapshot only the latest ones: it may know less, never otherwise
            if &got != want || (pair.is_some() && &pair != want_pair) {
                different.push(format!(
                    "{} {} QP {:#x}: kernel {got:?} {pair:?}, analyser {want:?} {want_pair:?}",
                    path.file_name().expect("a name").display(),
                    r.transport,
                    r.dest_qp
                ));
            }
        }
        bench.clear();
    }
    assert!(flows > 150 && paired > flows / 2, "{paired} of {flows} joined");
    assert!(different.is_empty(), "{} of {flows}:\n{}", different.len(), different.join("\n"));
}

/// PSNs belong to the flow, not to the CPU that its packets come over.
#[test]
fn a_flow_that_moves_between_cpus_misses_nothing() {
    need_root!();
    let on = |cpu: usize| {
        let mut one = nix::sched::CpuSet::new();
        one.set(cpu).expect("a CPU");
        nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &one).is_ok()
    };
    let rows = |s: &Snapshot| -> BTreeMap<FlowKey, (u64, Sequenced, Option<u32>)> {
        s.flows.iter().map(|r| (key_of(r), (r.packets, sequenced(r), r.pair.and(r.src_qp)))).collect()
    };
    let mut bench = Bench::new(&options());
    if !on(1) {
        eprintln!("skipped: needs two CPUs");
        return;
    }
    let (mut several, mut odd) = (0, 0);
    for path in all_captures() {
        let all = frames(&path);
        on(0);
        for (_, f) in &all {
            bench.xdp(f);
        }
        let want = rows(&bench.snapshot());
        bench.clear();
        for (n, (_, f)) in all.iter().enumerate() {
            on(n / 3 % 2);
            bench.xdp(f);
        }
        let entries = bench.flows().len();
        let got = rows(&bench.snapshot());
        assert_eq!(got, want, "{}", path.display());
        several += usize::from(entries > got.len());
        odd += want.values().map(|(_, s, _)| s.missing + s.repeats + s.reordered).sum::<u64>();
        bench.clear();
    }
    assert!(several > 50 && odd > 50, "{several} captures over both CPUs, {odd} odd packets");
}

#[test]
fn more_flows_than_there_is_room_for_lose_no_packet() {
    need_root!();
    let mut bench = Bench::new(&Options { max_flows: 64, ..Options::default() });
    let path = all_captures().into_iter().find(|p| p.ends_with("ecn_ect0.pcap")).expect("it is there");
    let (_, frame) = frames(&path).into_iter().find(|(_, f)| matches!(meant(f), Some(Ok(_)))).expect("RoCE");
    for n in 0..1000u32 {
        let mut f = frame.clone();
        // the destination QP of a BTH behind an IPv4 header without options
        f[47..50].copy_from_slice(&n.to_be_bytes()[1..]);
        assert_eq!(bench.xdp(&f), XDP_PASS);
        bench.xdp(&f);
    }
    let s = bench.snapshot();
    assert_eq!(s.flows.len(), 64);
    let sum: u64 = s.flows.iter().map(|f| f.packets).sum();
    assert_eq!((sum, s.totals.overflow_packets), (128, 2000 - 128));
    assert_eq!(s.totals.roce_packets, 2000);
    assert_eq!(s.totals.roce_bytes, 2000 * frame.len() as u64);
    assert_eq!(s.unexplained, 0);
    // room that is given back is used again
    bench.clear();
    for n in 500..540u32 {
        let mut f = frame.clone();
        f[47..50].copy_from_slice(&n.to_be_bytes()[1..]);
        bench.xdp(&f);
    }
    let s = bench.snapshot();
    assert_eq!((s.flows.len(), s.flows.iter().map(|f| f.packets).sum::<u64>()), (40, 40));
}

#[test]
fn reported_packets_come_with_their_bytes() {
    need_root!();
    let options = Options { events: u32::MAX, sample_every: 1, ..options() };
    let mut bench = Bench::new(&options);
    let mut events = Events::of(&mut bench.ebpf).expect("the ring is there");
    let mut kinds = 0;
    let (mut sent, mut naks) = (0u64, 0);
    for path in all_captures() {
        for (_, f) in frames(&path) {
            bench.xdp(&f);
            let Some(Ok((key, opcode))) = meant(&f) else {
                assert!(events.next_event().is_none(), "only RoCE is reported");
                continue;
            };
            sent += 1;
            let e = events.next_event().expect("every packet is asked for");
            assert_eq!((e.wire_len as usize, e.opcode, e.dest_qp, e.outgoing), (f.len(), opcode, key.2, false));
            assert_eq!(e.bytes, f[..e.bytes.len()]);
            // headers at least; a management datagram whole
            let most = if key.2 <= 1 { event::LONG } else { event::SHORT };
            assert_eq!(e.bytes.len(), f.len().min(most));
            kinds |= e.kinds;
            naks += u64::from(e.kinds & event::kind::NAK != 0);
            assert!(events.next_event().is_none(), "one packet, one event");
        }
    }
    let t = bench.totals(Direction::In);
    assert_eq!((t.roce_packets(), t.events_lost, events.malformed), (sent, 0, 0));
    assert!(naks > 20, "{naks}");
    let all = event::kind::NAK | event::kind::GAP | event::kind::REPEAT | event::kind::MAD | event::kind::NEW_FLOW;
    assert_eq!(kinds & all, all);
    // a ring that nobody reads fills up, and what it cannot take is counted
    let path = all_captures().into_iter().find(|p| p.ends_with("ecn_ect0.pcap")).expect("it is there");
    let (_, frame) = frames(&path).into_iter().find(|(_, f)| matches!(meant(f), Some(Ok(_)))).expect("RoCE");
    for _ in 0..10_000 {
        bench.xdp(&frame);
    }
    let mut kept = 0;
    while events.next_event().is_some() {
        kept += 1;
    }
    let lost = bench.totals(Direction::In).events_lost;
    assert!(lost > 0);
    assert_eq!(kept + lost, 10_000);
}

/// Frames that the far end of a0 had no room for, by the driver's own count.
fn not_taken() -> u64 {
    let out = std::process::Command::new("ethtool").args(["-S", "a0"]).output().expect("ethtool is there");
    let text = String::from_utf8_lossy(&out.stdout);
    let counts = text.lines().filter_map(|l| l.trim().split_once("_xdp_xmit_errors: "));
    let counts: Vec<u64> = counts.map(|(_, n)| n.parse().expect("a number")).collect();
    assert!(!counts.is_empty(), "{text}");
    counts.iter().sum()
}

#[test]
fn live_frames_are_counted_to_the_last_one() {
    const TIMES: u32 = 20_000;
    need_root!();
    let pair = Pair::with_mtu(1500).expect("a veth pair");
    let path = all_captures().into_iter().find(|p| p.ends_with("ipv6_write.pcap")).expect("it is there");
    let v6 = frames(&path);
    let path = all_captures().into_iter().find(|p| p.ends_with("ecn_ce_out.pcap")).expect("it is there");
    let all: Vec<Vec<u8>> = frames(&path).into_iter().chain(v6).map(|(_, f)| f).filter(|f| f.len() <= 1514).collect();
    // the far end counts; this end makes the frames, each TIMES times, as fast as the machine can
    let mut counter =
        pair.b.run(|| Live::start(&["b0"], &options(), &Attach::default())).expect("entered").expect("attached");
    let sender = pair.a.run(|| -> (Live, u32) {
        let live =
            Live::start(&["a0"], &options(), &Attach { no_egress: true, ..Attach::default() }).expect("attached");
        let index = live.taps()[0].interface.index;
        (live, index)
    });
    let (_keep, index) = sender.expect("entered");
    let mut want: BTreeMap<FlowKey, (u64, u64)> = BTreeMap::new();
    let mut other = 0;
    pair.a
        .run(|| {
            let mut ebpf = aya::EbpfLoader::new().load(roce_user::load::DESIGNS).expect("the designs load");
            let program = roce_user::load::xdp(&mut ebpf, "send_back").expect("it loads");
            for f in &all {
                // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex
                let len = u32::try_from(f.len()).expect("short");
                let context: Vec<u8> = [0, len, 0, index, 0, 0].iter().flat_map(|v: &u32| v.to_ne_bytes()).collect();
                let mut left = TIMES;
                while left > 0 {
                    let before = not_taken();
                    let run = TestRunOptions {
                        data_in: Some(f),
                        ctx_in: Some(&context),
                        repeat: left,
                        attrs: TestRunAttrs::new().xdp_live_frames(64),
                        ..TestRunOptions::new()
                    };
                    program.test_run(run).expect("live frames");
                    // a far end that is busy elsewhere takes no more than its ring holds: those go again
                    left = u32::try_from(not_taken() - before).expect("no more than were sent");
                }
            }
        })
        .expect("entered");
    for f in &all {
        match meant(f) {
            Some(Ok((key, _))) => {
                let w = want.entry(key).or_default();
                w.0 += u64::from(TIMES);
                w.1 += u64::from(TIMES) * f.len() as u64;
            }
            _ => other += u64::from(TIMES),
        }
    }
    // the last batch may still be on its way through the other CPU
    let total = u64::from(TIMES) * all.len() as u64;
    let begun = std::time::Instant::now();
    let s = loop {
        let s = counter.snapshot().expect("readable");
        if s.totals.packets >= total || begun.elapsed() > std::time::Duration::from_secs(20) {
            break s;
        }
        std::thread::yield_now();
    };
    let got: BTreeMap<FlowKey, (u64, u64)> = s
        .flows
        .iter()
        .zip(&s.places)
        .filter(|(_, p)| !p.outgoing)
        .map(|(r, _)| (key_of(r), (r.packets, r.bytes)))
        .collect();
    assert_eq!(got, want);
    assert_eq!(s.totals.overflow_packets, 0);
    assert_eq!(s.unexplained, 0);
    // the interfaces talk a little by themselves (neighbour discovery)
    assert!(s.totals.other_packets >= other);
}
