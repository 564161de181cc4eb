//! roce-top on a real interface: what it reports equals what was sent, and what can go wrong is said.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use dissector::frame::{Frame, LinkType};
use dissector::wire::ROCE_UDP_PORT;
use roce_tests::netns::{NetNs, Pair};
use roce_tests::raw::RawSocket;
use roce_tests::traffic::{Change, Recording};
use roce_tests::{all_captures, is_root};
use serde_json::Value;

/// The program under test: it stands beside the tests' own folder.
fn roce_top() -> PathBuf {
    let mut p = std::env::current_exe().expect("a test has a path");
    p.pop();
    if p.ends_with("deps") {
        p.pop();
    }
    p.join("roce-top")
}

macro_rules! need_root {
    () => {
        if !is_root() {
            eprintln!("skipped: needs root to make namespaces and attach programs");
            return;
        }
    };
}

/// A running `roce-top --batch --json`; killed when dropped.
struct Watch {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Watch {
    /// Starts it in a namespace and returns when it says that it is attached.
    fn start(ns: &NetNs, args: &[&str]) -> Self {
        let mut child = ns
            .run(|| Command::new(roce_top()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
            .expect("the namespace can be entered")
            .expect("roce-top was built: cargo build --workspace --bins");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let n = stderr.read_line(&mut line).expect("readable");
            said.push_str(&line);
            if line.contains("watching") {
                break;
            }
            assert!(n > 0, "roce-top ended before it was attached: {said}");
        }
        std::thread::spawn(move || {
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).ok();
            if !rest.is_empty() {
                eprintln!("{rest}");
            }
        });
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (tx, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tx.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// The first report for which `enough` holds; the last one if that does not come in time.
    fn report(&self, enough: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(20);
        let mut last = Value::Null;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            last = serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}"));
            if enough(&last) {
                return last;
            }
        }
        last
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What a flow is counted as: packets, bytes, packets by opcode name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    packets: u64,
    bytes: u64,
    opcodes: BTreeMap<String, u64>,
}

type Key = (String, String, u64, Option<u64>);

/// Counts a frame as an independent reader of the headers would.
fn count(all: &mut BTreeMap<Key, Count>, frame: &[u8]) -> bool {
    let f = Frame::parse(frame, frame.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
    let (Some(Ok(p)), Some(net)) = (f.packet(), f.net) else { return false };
    let src_qp = p.ext.deth.map(|d| u64::from(d.src_qp().get()));
    let key = (net.src.to_string(), net.dst.to_string(), u64::from(p.bth.dest_qp().get()), src_qp);
    let c = all.entry(key).or_default();
    c.packets += 1;
    c.bytes += frame.len() as u64;
    let name = p.op.map_or_else(|| format!("0x{:02x}", p.bth.opcode()), |o| o.name.to_owned());
    *c.opcodes.entry(name).or_default() += 1;
    true
}

fn reported(report: &Value) -> BTreeMap<Key, Count> {
    report["flows"]
        .as_array()
        .expect("flows is an array")
        .iter()
        .map(|f| {
            let text = |k: &str| f[k].as_str().unwrap_or_else(|| panic!("{k} in {f}")).to_owned();
            // the source QP of a connection may have been learnt; only a datagram's is part of the key
            let src_qp = if f["transport"] == "UD" { f["src_qp"].as_u64() } else { None };
            let key = (text("src"), text("dst"), f["dest_qp"].as_u64().expect("dest_qp"), src_qp);
            let opcodes = f["opcodes"]
                .as_object()
                .expect("opcodes")
                .iter()
                .map(|(k, v)| (k.clone(), v.as_u64().expect("a count")))
                .filter(|(_, n)| *n > 0)
                .collect();
            let n = |k: &str| f[k].as_u64().unwrap_or_else(|| panic!("{k} in {f}"));
            (key, Count { packets: n("packets"), bytes: n("bytes"), opcodes })
        })
        .collect()
}

/// Every capture, one connection after the other under addresses of its own, both directions.
#[test]
fn batch_report_equals_what_was_sent() {
    need_root!();
    let pair = Pair::with_mtu(4500).unwrap();
    let watch = Watch::start(&pair.b, &["-i", "b0", "--batch", "--json", "-d", "0.2", "-n", "1000"]);
    let a = pair.a.run(|| RawSocket::open("a0")).unwrap().unwrap();
    let b = pair.b.run(|| RawSocket::open("b0")).unwrap().unwrap();
    let mut expected = BTreeMap::new();
    let (mut packets, mut bytes) = (0u64, 0u64);
    for (i, path) in all_captures().iter().enumerate() {
        let recording = Recording::open(path).unwrap();
        let change = Change {
            host: u8::try_from(i).unwrap(),
            qp: u32::try_from(i).unwrap() * 0x100,
            round: 0,
            macs: Some((Pair::MAC_A, [0x02, 0x77, 0, 0, 0, 0xff])),
        };
        for frame in &recording.frames {
            let bytes_sent = recording.changed(frame, change);
            if frame.from_client {
                a.send(&bytes_sent).unwrap()
            } else {
                b.send(&bytes_sent).unwrap()
            }
            assert!(count(&mut expected, &bytes_sent));
            packets += 1;
            bytes += bytes_sent.len() as u64;
        }
    }
    let report = watch.report(|r| r["totals"]["roce_packets"].as_u64() >= Some(packets));
    let totals = &report["totals"];
    assert_eq!(totals["roce_packets"], packets, "{totals}");
    assert_eq!(totals["roce_bytes"], bytes, "{totals}");
    assert_eq!(totals["overflow_packets"], 0, "{totals}");
    assert_eq!(
        totals["packets"].as_u64().unwrap(),
        packets + totals["other_packets"].as_u64().unwrap(),
        "RoCE and other packets are all packets: {totals}"
    );
    let got = reported(&report);
    for (key, want) in &expected {
        assert_eq!(got.get(key), Some(want), "{key:?}");
    }
    assert_eq!(got.len(), expected.len(), "no flow that was not sent");
}

fn fails(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.stdin(Stdio::null()).output().expect("roce-top was built");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn no_such_interface() {
    need_root!();
    let (code, said) = fails(Command::new(roce_top()).args(["-i", "nosuch0", "--batch", "-n", "1"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nosuch0"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
}

#[test]
fn no_privilege_names_the_capability() {
    need_root!();
    let mut c = Command::new("setpriv");
    c.args(["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"]);
    c.arg(roce_top()).args(["-i", "lo", "--batch", "-n", "1"]);
    let (code, said) = fails(&mut c);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("CAP_BPF") || said.contains("CAP_NET_ADMIN"), "{said}");
}

#[test]
fn an_xdp_program_that_is_already_there_is_named() {
    need_root!();
    let pair = Pair::new().unwrap();
    let _first = Watch::start(&pair.b, &["-i", "b0", "--batch", "--json", "-d", "1", "-n", "1000"]);
    let (code, said) = pair.b.run(|| fails(Command::new(roce_top()).args(["-i", "b0", "--batch", "-n", "1"]))).unwrap();
    assert_eq!(code, Some(2), "{said}");
    let id = pair.b.ip(&["-d", "link", "show", "b0"]).unwrap();
    let id =
        id.split("prog/xdp id ").nth(1).and_then(|s| s.split_whitespace().next()).expect("ip shows the program's id");
    assert!(said.contains(id), "the program's id is {id}: {said}");
}

/// The kernel takes everything away when the process is gone, however it went.
#[test]
fn nothing_stays_attached_after_a_kill() {
    need_root!();
    let pair = Pair::new().unwrap();
    let shows_xdp = || pair.b.ip(&["-d", "link", "show", "b0"]).unwrap().contains("prog/xdp");
    let mut watch = Watch::start(&pair.b, &["-i", "b0", "--batch", "--json", "-d", "1", "-n", "1000"]);
    assert!(shows_xdp());
    watch.child.kill().unwrap();
    watch.child.wait().unwrap();
    // the kernel detaches in its own time after the process is reaped
    let end = Instant::now() + Duration::from_secs(10);
    while shows_xdp() {
        assert!(Instant::now() < end, "still attached ten seconds after the kill");
        std::thread::yield_now();
    }
}
