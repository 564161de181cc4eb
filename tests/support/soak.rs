//! roce-top under the highest rate that the machine can offer, for a time: what it counted beside what was sent, and
//! its memory meanwhile.
//!
//! Frames of eight queue pairs are made in the kernel (live frames of `BPF_PROG_TEST_RUN`) and cross a veth pair; between
//! them come frames of others, more than the flow table holds.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions};
use dissector::frame::{Frame, LinkType};
use dissector::wire::ROCE_UDP_PORT;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use roce_user::attach::Attach;
use roce_user::load::{self, Options};
use roce_user::snapshot::Live;
use serde_json::Value;

use crate::captures;
use crate::netns::{NetNs, Pair};
use crate::raw::RawSocket;
use crate::traffic::Recording;

/// Packets of a frame that are made by one call: a call has its price, whatever it makes.
const TIMES: u32 = 8192;
/// Queue pairs that talk all the time.
const STEADY: u32 = 8;
/// Flows that the table holds.
pub const TABLE: u32 = 1024;
/// Queue pairs that come and go, and come back: more than the table holds.
const PASSING: u32 = 3000;
/// Of them in a round, one packet each.
const NEW: u32 = 500;
/// Most that memory may grow once all flows were there, KiB: pages that an allocator keeps, and the histories of flows.
pub const GROWTH: u64 = 2048;

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Seconds that it took.
    pub seconds: f64,
    /// Packets that were handed to the interface.
    pub sent: u64,
    /// Of those, what the far end's queue had no room for: no program saw them.
    pub dropped: u64,
    /// RoCE packets of the last report.
    pub counted: u64,
    /// The last report.
    pub last: Value,
    /// How many reports there were.
    pub reports: u64,
    /// Flows that were met.
    pub flows: u32,
    /// Memory of roce-top once a second after all flows were there and half of the time was over, KiB.
    pub memory: Vec<u64>,
}

impl Outcome {
    /// By how much memory grew, KiB.
    pub fn growth(&self) -> i64 {
        let signed = |n: Option<&u64>| n.map_or(0, |n| n.cast_signed());
        signed(self.memory.last()) - signed(self.memory.first())
    }

    /// Packets of the flows in the last report, if that lists them all.
    pub fn sum_of_flows(&self) -> u64 {
        self.last["flows"].as_array().into_iter().flatten().filter_map(|f| f["packets"].as_u64()).sum()
    }
}

/// `roce-top` in a namespace, up to where it says that it watches, and its reports.
fn start(program: &Path, ns: &NetNs) -> (Child, std::thread::JoinHandle<(String, u64)>) {
    let mut top = ns
        .run(|| {
            Command::new(program)
                .args(["-i", "b0", "--batch", "--json", "-d", "1", "--no-egress"])
                .args(["--max-flows", &TABLE.to_string()])
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
    (top, reports)
}

/// Runs it for as long as said, and in any case until all flows have come by.
pub fn run(program: &Path, time: Duration) -> Outcome {
    let pair = Pair::with_mtu(1500).expect("a veth pair");
    let (mut top, reports) = start(program, &pair.b);
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
    let (mut sent, mut rounds, mut memory) = (0u64, 0u32, Vec::new());
    pair.a
        .run(|| {
            let mut ebpf = aya::EbpfLoader::new().load(load::DESIGNS).expect("the designs load");
            let program = load::xdp(&mut ebpf, "send_back").expect("it loads");
            let len = u32::try_from(frame.len()).expect("short");
            let context: Vec<u8> = [0, len, 0, index, 0, 0].iter().flat_map(|v: &u32| v.to_ne_bytes()).collect();
            let socket = RawSocket::open("a0").expect("a packet socket");
            let mut sampled = Instant::now();
            while begun.elapsed() < time || rounds * NEW < PASSING || memory.is_empty() {
                for qp in 16..16 + STEADY {
                    of_qp(&mut frame, qp);
                    let run = TestRunOptions {
                        data_in: Some(&frame),
                        ctx_in: Some(&context),
                        repeat: TIMES,
                        attrs: TestRunAttrs::new().xdp_live_frames(64),
                        ..TestRunOptions::new()
                    };
                    program.test_run(run).expect("live frames");
                }
                for n in rounds * NEW..(rounds + 1) * NEW {
                    of_qp(&mut frame, 1000 + n % PASSING);
                    socket.send(&frame).expect("sent");
                }
                sent += u64::from(STEADY * TIMES + NEW);
                rounds += 1;
                let settled = rounds * NEW >= PASSING && begun.elapsed() >= time / 2;
                if settled && sampled.elapsed() >= Duration::from_secs(1) {
                    sampled = Instant::now();
                    memory.push(resident(top.id()));
                }
            }
        })
        .expect("entered");
    let seconds = begun.elapsed().as_secs_f64();
    // what is on its way arrives within a moment: the interfaces themselves say when
    let end = Instant::now() + Duration::from_secs(20);
    while received(&pair) + refused(&pair) < sent && Instant::now() < end {
        std::thread::yield_now();
    }
    kill(Pid::from_raw(top.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let (last, reports) = reports.join().expect("readable");
    assert!(top.wait().expect("it ends").success());
    let last: Value = serde_json::from_str(&last).expect("JSON");
    let counted = last["totals"]["roce_packets"].as_u64().expect("a count");
    let flows = (rounds * NEW).min(PASSING) + STEADY;
    Outcome { seconds, sent, dropped: refused(&pair), counted, last, reports, flows, memory }
}

/// Gives a frame another destination QP.
fn of_qp(frame: &mut [u8], qp: u32) {
    let at = 14 + 20 + 8 + 5;
    if let (Some(b), [_, qp @ ..]) = (frame.get_mut(at..at + 3), qp.to_be_bytes()) {
        b.copy_from_slice(&qp);
    }
}

/// Anonymous memory of a process, KiB: maps of the kernel that it looks into do not count.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).expect("the kernel says so");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

/// Packets that arrived at the far end, by the interface's own count.
fn received(pair: &Pair) -> u64 {
    counter(&pair.b, "b0", 1)
}

/// Packets that the far end's queue had no room for, by the near interface's own count.
fn refused(pair: &Pair) -> u64 {
    counter(&pair.a, "a0", 11)
}

/// A column of `/proc/net/dev`: 1 packets received, 11 packets dropped on the way out.
fn counter(ns: &NetNs, interface: &str, column: usize) -> u64 {
    ns.run(|| {
        let all = std::fs::read_to_string("/proc/thread-self/net/dev").expect("readable");
        let line = all.lines().find_map(|l| l.trim().strip_prefix(interface)?.strip_prefix(':')).expect("it is there");
        line.split_whitespace().nth(column).and_then(|n| n.parse().ok()).expect("a number")
    })
    .expect("entered")
}

fn ipv4_rc(bytes: &[u8]) -> bool {
    let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
    f.vlan_tci.is_none()
        && f.transport.is_some_and(|t| t.start == 14 + 20 + 8)
        && f.packet().is_some_and(|p| p.is_ok_and(|p| p.op.is_some_and(|o| o.name.starts_with("RC"))))
}
