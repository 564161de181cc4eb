//! roce-top under the highest rate that the machine can offer, for as long as wanted (`ROCE_SOAK_SECONDS`, 60 unless set):
//! the last report is what was sent, to the packet, and memory does not grow.
//!
//! Frames are made in the kernel (live frames of `BPF_PROG_TEST_RUN`) and cross a veth pair: 32 queue pairs all the time,
//! and others that come and go, more than the flow table holds.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions};
use dissector::frame::{Frame, LinkType};
use dissector::wire::ROCE_UDP_PORT;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use roce_tests::captures;
use roce_tests::netns::Pair;
use roce_tests::traffic::Recording;
use roce_user::attach::Attach;
use roce_user::load::{self, Options};
use roce_user::snapshot::Live;
use serde_json::{Value, json};

/// Packets of a frame that are made by one call.
const TIMES: u32 = 512;
/// Queue pairs that talk all the time.
const STEADY: u32 = 32;
/// Flows that the table holds.
const TABLE: &str = "1024";
/// Queue pairs that come and go, and come back: more than the table holds.
const PASSING: u32 = 3000;
/// New ones in a round.
const NEW: u32 = 30;
/// Most that memory may grow from the time when the table is full to the end, KiB: pages that an allocator keeps.
const GROWTH: f64 = 2048.0;

fn main() {
    let seconds: u64 =
        std::env::var("ROCE_SOAK_SECONDS").map_or(60, |s| s.parse().expect("ROCE_SOAK_SECONDS is a number"));
    let pair = Pair::with_mtu(1500).expect("a veth pair");
    let mut program = std::env::current_exe().expect("a program has a path");
    program.set_file_name("roce-top");
    let mut top = pair
        .b
        .run(|| {
            Command::new(&program)
                .args(["-i", "b0", "--batch", "--json", "--top", "10", "-d", "1", "--no-egress", "--max-flows", TABLE])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        })
        .expect("entered")
        .expect("roce-top was built");
    let mut stderr = BufReader::new(top.stderr.take().expect("piped"));
    let mut said = String::new();
    while !said.contains("watching") {
        assert!(stderr.read_line(&mut said).expect("readable") > 0, "it ended: {said}");
    }
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|l| eprintln!("{l}")));
    let stdout = BufReader::new(top.stdout.take().expect("piped"));
    let reports = std::thread::spawn(move || {
        let (mut last, mut n) = (String::new(), 0u64);
        for line in stdout.lines().map_while(Result::ok) {
            last = line;
            n += 1;
        }
        (last, n)
    });

    let recording = Recording::open(&captures().join("ecn_ect0.pcap")).expect("the capture is there");
    let short = |b: &Vec<u8>| b.len() < 1200 && ipv4_rc(b);
    let mut frame = recording.frames.into_iter().map(|f| f.bytes).find(short).expect("an IPv4 RC packet");
    let (_keep, index) = pair
        .a
        .run(|| {
            // packets are sent from the side where a program of ours keeps XDP transmission on
            let how = Attach { no_egress: true, ..Attach::default() };
            let live = Live::start(&["a0"], &Options::default(), &how).expect("attached");
            let index = live.taps().first().expect("one").interface.index;
            (live, index)
        })
        .expect("entered");
    let begun = Instant::now();
    let (mut sent, mut rounds, mut samples) = (0u64, 0u32, Vec::new());
    pair.a
        .run(|| {
            let mut ebpf = aya::EbpfLoader::new().load(load::DESIGNS).expect("the designs load");
            let program = load::xdp(&mut ebpf, "send_back").expect("it loads");
            let len = u32::try_from(frame.len()).expect("short");
            let context: Vec<u8> = [0, len, 0, index, 0, 0].iter().flat_map(|v: &u32| v.to_ne_bytes()).collect();
            let mut sampled = Instant::now();
            while begun.elapsed() < Duration::from_secs(seconds) {
                for qp in (16..16 + STEADY).chain((rounds * NEW..(rounds + 1) * NEW).map(|n| 1000 + n % PASSING)) {
                    if let Some(b) = frame.get_mut(47..50) {
                        b.copy_from_slice(qp.to_be_bytes().get(1..).expect("four bytes"));
                    }
                    let repeat = if qp < 1000 { TIMES } else { 64 };
                    let run = TestRunOptions {
                        data_in: Some(&frame),
                        ctx_in: Some(&context),
                        repeat,
                        attrs: TestRunAttrs::new().xdp_live_frames(64),
                        ..TestRunOptions::new()
                    };
                    program.test_run(run).expect("live frames");
                    sent += u64::from(repeat);
                }
                rounds += 1;
                if sampled.elapsed() >= Duration::from_secs(1) {
                    sampled = Instant::now();
                    samples.push(resident(top.id()));
                }
            }
        })
        .expect("entered");
    let passed = begun.elapsed().as_secs_f64();
    // what is on its way arrives within a moment: the interface itself says when
    let end = Instant::now() + Duration::from_secs(10);
    while received(&pair) < sent && Instant::now() < end {
        std::thread::yield_now();
    }
    kill(Pid::from_raw(top.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let (last, n) = reports.join().expect("readable");
    assert!(top.wait().expect("it ends").success());
    let last: Value = serde_json::from_str(&last).expect("JSON");
    let t = &last["totals"];
    let counted = t["roce_packets"].as_u64().expect("a count");
    let other = t["other_packets"].as_u64().expect("a count");
    let dropped = sent.saturating_sub(received(&pair).saturating_sub(other).min(sent));
    // all flows come by in the first part; then nothing may grow
    let settled = samples.len() / 2;
    let growth = samples.last().copied().unwrap_or(0.0) - samples.get(settled).copied().unwrap_or(0.0);
    eprintln!("{sent} sent, {counted} counted, {dropped} dropped by veth, {n} reports, {t}");
    let note = |name: &str, value: f64, unit: &str| json!({ "name": name, "value": value, "unit": unit, "target": null, "ok": null });
    println!(
        "{}",
        json!([
            note("soak: time at full rate", passed, "s"),
            note("soak: packets", sent as f64, "packets"),
            note("soak: rate", sent as f64 / passed, "packets/s"),
            note("soak: flows met, of which the table holds 1,024", f64::from((rounds * NEW).min(PASSING) + STEADY), "flows"),
            note("soak: of the packets in no flow, for want of room", t["overflow_packets"].as_f64().unwrap_or(0.0), "packets"),
            { "name": "soak: counted - sent", "value": counted as f64 - sent as f64 + dropped as f64, "unit": "packets", "target": 0.0, "ok": counted + dropped == sent },
            note("soak: dropped by veth before any program", dropped as f64, "packets"),
            { "name": "soak: growth of memory in the second half", "value": growth, "unit": "KiB", "target": GROWTH, "ok": growth <= GROWTH },
            note("soak: memory at the end", samples.last().copied().unwrap_or(0.0), "KiB"),
        ])
    );
}

/// Anonymous memory of a process, KiB: maps of the kernel that it looks into do not count.
fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).expect("the kernel says so");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

/// Packets that arrived at the far end, by the interface's own count.
fn received(pair: &Pair) -> u64 {
    pair.b
        .run(|| {
            let all = std::fs::read_to_string("/proc/thread-self/net/dev").expect("readable");
            let line = all.lines().find_map(|l| l.trim().strip_prefix("b0:")).expect("b0 is there").to_owned();
            line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
        })
        .expect("entered")
}

fn ipv4_rc(bytes: &[u8]) -> bool {
    let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
    f.vlan_tci.is_none()
        && f.transport.is_some_and(|t| t.start == 14 + 20 + 8)
        && f.packet().is_some_and(|p| p.is_ok_and(|p| p.op.is_some_and(|o| o.name.starts_with("RC"))))
}
