//! What is kept from one snapshot to the next must not show: kept or read anew, the counts are the same.

use std::collections::BTreeMap;
use std::time::Duration;

use dissector::flow::row::FlowRow;
use dissector::wire::opcode::byte;
use roce_tests::bench::{Bench, SHORTEST};
use roce_tests::traffic::Recording;
use roce_tests::{all_captures, captures, is_root};
use roce_user::load::Options;
use roce_user::snapshot::{Counts, Snapshot};

macro_rules! need_root {
    () => {
        if !is_root() {
            eprintln!("skipped: needs root to load programs");
            return;
        }
    };
}

/// Everything of a row that does not depend on when it was first read.
fn of(s: &Snapshot) -> BTreeMap<(String, String, u32, String), FlowRow> {
    let mut out = BTreeMap::new();
    for (row, place) in s.flows.iter().zip(&s.places) {
        let mut r = FlowRow::clone(row);
        let own = if r.transport == "UD" { format!("{:?}", r.src_qp) } else { String::new() };
        // who answers whom may be known from an earlier look; and times of day are told by the clock of then
        (r.id, r.pair, r.first, r.last) = (0, None, 0.0, 0.0);
        if r.transport != "UD" {
            r.src_qp = None;
        }
        let key = (
            r.src.to_string(),
            r.dst.to_string(),
            r.dest_qp,
            own + &format!("{:?} {place:?}", r.udp_srcport.is_none()),
        );
        assert!(out.insert(key, r).is_none(), "a flow is one row");
    }
    out
}

/// After every few packets of every capture.
#[test]
fn kept_state_equals_a_fresh_look() {
    need_root!();
    let mut bench = Bench::new(&Options { max_flows: 8192, ..Options::default() });
    let mut kept = Counts::default();
    let (mut looks, mut same) = (0, 0);
    let mut before: Option<Snapshot> = None;
    for (n, path) in all_captures().iter().enumerate() {
        let recording = Recording::open(path).expect("a capture of the repository opens");
        let part = 10 + n % 97;
        for frames in recording.frames.chunks(part) {
            for f in frames.iter().filter(|f| f.bytes.len() >= SHORTEST) {
                if n % 3 == 0 && !f.from_client {
                    bench.tc(&f.bytes);
                } else {
                    bench.xdp(&f.bytes);
                }
            }
            let s = kept.take(&[&bench.ebpf]).expect("readable");
            let fresh = bench.snapshot();
            assert_eq!(of(&s), of(&fresh), "{}", path.display());
            let sums =
                |s: &Snapshot| (s.totals.roce_packets, s.totals.roce_bytes, s.totals.other_packets, s.unexplained);
            assert_eq!(sums(&s), sums(&fresh));
            assert_eq!(s.totals.roce_packets, s.flows.iter().map(|f| f.packets).sum::<u64>());
            if let Some(b) = &before {
                same += s.flows.iter().zip(&b.flows).filter(|(a, b)| std::sync::Arc::ptr_eq(a, b)).count();
                assert!(s.flows.iter().zip(&b.flows).all(|(a, b)| a.id == b.id), "the order stays");
            }
            before = Some(s);
            looks += 1;
        }
    }
    assert!(looks > 200 && same > 5_000, "{looks} looks, {same} rows left alone");
}

/// A table of 64 slots, thousands of flows one after the other, some of which come back: no packet is lost, and a flow
/// that comes back counts on.
#[test]
fn flows_that_leave_the_table_keep_their_counts() {
    need_root!();
    const ROUNDS: u32 = 60;
    let mut bench = Bench::new(&Options { max_flows: 64, ..Options::default() });
    // silent flows may go at once
    let mut kept = Counts::new(Duration::ZERO);
    let recording = Recording::open(&captures().join("many_qps.pcap")).expect("it is there");
    let mut frame = recording
        .frames
        .iter()
        .map(|f| f.bytes.clone())
        .find(|b| b.len() > 60 && b[12..14] == [8, 0] && b[42] == byte::RcWriteOnly)
        .or_else(|| recording.frames.iter().map(|f| f.bytes.clone()).find(|b| b[12..14] == [8, 0] && b[42] < 0x20))
        .expect("an RC packet over IPv4");
    let mut want: BTreeMap<u32, u64> = BTreeMap::new();
    let mut sent = 0;
    for round in 0..ROUNDS {
        // 40 new flows a round, and every second round the first ten again
        let back = if round % 2 == 0 { 0..10 } else { 0..0 };
        for qp in (100 + round * 40..140 + round * 40).chain(back) {
            frame[47..50].copy_from_slice(&qp.to_be_bytes()[1..]);
            for _ in 0..=qp % 3 {
                bench.xdp(&frame);
                *want.entry(qp).or_default() += 1;
                sent += 1;
            }
        }
        let s = kept.take(&[&bench.ebpf]).expect("readable");
        assert_eq!((s.totals.roce_packets, s.unexplained), (sent, 0), "round {round}");
        let rows: u64 = s.flows.iter().map(|f| f.packets).sum();
        assert_eq!(rows + s.totals.overflow_packets, sent, "round {round}");
        for f in &s.flows {
            assert!(f.packets <= want[&f.dest_qp], "QP {} has {} packets", f.dest_qp, f.packets);
        }
    }
    let s = kept.take(&[&bench.ebpf]).expect("readable");
    let got: BTreeMap<u32, u64> = s.flows.iter().map(|f| (f.dest_qp, f.packets)).collect();
    assert!(s.flows.len() > 1000, "{} flows went through 64 slots", s.flows.len());
    // what found no room in its round is overflow; every flow that ever had a slot has all that came while it had one
    let missing: u64 = want.iter().map(|(qp, n)| n - got.get(qp).copied().unwrap_or(0)).sum();
    assert_eq!(missing, s.totals.overflow_packets);
    assert!(got[&0] > 10, "a flow that comes back counts on: {}", got[&0]);
}
