//! roce-top on a real interface: what it reports equals what was sent, and what can go wrong is said.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use dissector::capture::Timestamp;
use dissector::flow::{Analyzer, Place};
use dissector::frame::icrc::{Verdict, Why};
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
    let mut analyzer = Analyzer::default();
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
                a.send(&bytes_sent).unwrap();
            } else {
                b.send(&bytes_sent).unwrap();
            }
            assert!(count(&mut expected, &bytes_sent));
            packets += 1;
            let f = Frame::parse(&bytes_sent, bytes_sent.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
            let place = Place { number: packets, at: Timestamp(i64::try_from(packets).unwrap() * 1000) };
            if let Some(Ok(p)) = f.packet() {
                analyzer.push(place, &f, &p, Verdict::Unchecked(Why::Off));
            }
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
    analyzer.settle();
    let analysed: Vec<Value> = analyzer.lines().map(|l| serde_json::to_value(l).unwrap()).collect();
    let key = |f: &Value| {
        let datagram = f["transport"] == "UD";
        (f["src"].to_string(), f["dst"].to_string(), f["dest_qp"].as_u64(), datagram.then(|| f["src_qp"].as_u64()))
    };
    let mut different = Vec::new();
    for live in report["flows"].as_array().unwrap() {
        let mut same = analysed.iter().filter(|f| key(f) == key(live));
        let (Some(want), None) = (same.next(), same.next()) else { panic!("{live} has no one flow of the analysis") };
        for (name, got) in live.as_object().unwrap() {
            let want = &want[name];
            let equal = match name.as_str() {
                // numbers of each side's own, its clock, and rates
                "id" | "first" | "last" | "pps" | "bps" => true,
                // the kernel believes every ICRC
                "icrc" => got["unchecked"] == live["packets"],
                // known less often live, never otherwise
                "src_qp" => got.is_null() || got == want,
                "pair" => got.is_null() || !want.is_null(),
                // copies by the network count as sent again
                "retransmitted" => {
                    got.as_u64() == want.as_u64().zip(want_copies(&analysed, live, key)).map(|(a, b)| a + b)
                }
                "duplicates" => *got == 0,
                _ => got == want,
            };
            if !equal {
                different.push(format!("{:?} {name}: live {got}, analysed {want}", key(live)));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Copies that the analysis found in a flow.
fn want_copies<K: PartialEq>(analysed: &[Value], live: &Value, key: impl Fn(&Value) -> K) -> Option<u64> {
    analysed.iter().find(|f| key(f) == key(live))?["duplicates"].as_u64()
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
    // named twice is watched once
    let _first = Watch::start(&pair.b, &["-i", "b0", "-i", "b0", "--batch", "--json", "-d", "1", "-n", "1000"]);
    let dir = tempfile::tempdir().unwrap();
    let older = dir.path().join("older.pcapng");
    std::fs::write(&older, "what was recorded before").unwrap();
    let mut second = Command::new(roce_top());
    second.args(["-i", "b0", "--batch", "-n", "1", "-w"]).arg(&older);
    let (code, said) = pair.b.run(|| fails(&mut second)).unwrap();
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(std::fs::read(&older).unwrap(), b"what was recorded before");
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

/// Text reports, line by line.
struct Reports {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Reports {
    fn start(ns: &NetNs, args: &[&str]) -> Self {
        let mut child = ns
            .run(|| Command::new(roce_top()).args(args).args(["--batch", "-d", "0.1"]).stdout(Stdio::piped()).spawn())
            .expect("the namespace can be entered")
            .expect("roce-top was built");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (tx, lines) = mpsc::channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).all(|l| tx.send(l).is_ok()));
        Self { child, lines }
    }

    /// The first line with these words.
    fn until(&self, words: &str) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(words) {
                return line;
            }
            seen.push(line);
        }
        seen.drain(..seen.len().saturating_sub(20));
        panic!("{words:?} was not said; the latest lines are\n{}", seen.join("\n"));
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn small_frames() -> Vec<Vec<u8>> {
    let path = all_captures().into_iter().find(|p| p.ends_with("many_qps.pcap")).expect("it is there");
    let all = Recording::open(&path).unwrap().frames;
    all.into_iter().map(|f| f.bytes).filter(|b| b.len() <= 1400).collect()
}

/// Two interfaces at once: a frame that leaves one and enters the other is counted at both, each flow by itself.
#[test]
fn two_interfaces_at_once() {
    need_root!();
    let ns = NetNs::new().unwrap();
    ns.ip(&["link", "add", "x0", "type", "veth", "peer", "name", "x1"]).unwrap();
    for i in ["x0", "x1"] {
        ns.ip(&["link", "set", i, "up"]).unwrap();
    }
    let watch = Watch::start(&ns, &["-i", "x0", "-i", "x1", "--batch", "--json", "-d", "0.1"]);
    let socket = ns.run(|| RawSocket::open("x0")).unwrap().unwrap();
    let frames = small_frames();
    let mut want = BTreeMap::new();
    for f in &frames {
        socket.send(f).unwrap();
        count(&mut want, f);
    }
    let sent = frames.len() as u64;
    let report = watch.report(|r| r["totals"]["roce_packets"].as_u64() >= Some(2 * sent));
    assert_eq!(report["totals"]["roce_packets"], 2 * sent, "{}", report["totals"]);
    let flows = report["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2 * want.len(), "each flow at each interface");
    assert_eq!(reported(&report), want, "both saw the same");
    let ids: std::collections::BTreeSet<u64> = flows.iter().map(|f| f["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), flows.len());
}

/// A driver without XDP: generic mode, which is shown; wanting the driver's is an error that says so.
#[test]
fn generic_mode_is_shown() {
    need_root!();
    let ns = NetNs::new().unwrap();
    let r = Reports::start(&ns, &["-i", "lo"]);
    assert!(r.until("roce-top - ").contains("lo (XDP skb, TC egress)"));
    assert!(r.until("Note: lo's driver takes no XDP program").contains("generic mode"));
    drop(r);
    let (code, said) =
        ns.run(|| fails(Command::new(roce_top()).args(["-i", "lo", "--xdp-mode", "driver", "--batch"]))).unwrap();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("lo") && said.contains("--xdp-mode skb") && said.trim_end().lines().count() == 1, "{said}");
    // asked for, it counts as the driver's does
    let pair = Pair::new().unwrap();
    let watch = Watch::start(&pair.b, &["-i", "b0", "--xdp-mode", "skb", "--batch", "--json", "-d", "0.1"]);
    let a = pair.a.run(|| RawSocket::open("a0")).unwrap().unwrap();
    let frames = small_frames();
    let mut want = BTreeMap::new();
    for f in &frames {
        a.send(f).unwrap();
        count(&mut want, f);
    }
    let report = watch.report(|r| r["totals"]["roce_packets"].as_u64() >= Some(frames.len() as u64));
    assert_eq!(reported(&report), want);
}

/// An interface that goes down and comes up again is told, and counting goes on.
#[test]
fn an_interface_goes_down_and_up_again() {
    need_root!();
    let pair = Pair::new().unwrap();
    let r = Reports::start(&pair.b, &["-i", "b0"]);
    r.until("no RoCE flow seen yet");
    let a = pair.a.run(|| RawSocket::open("a0")).unwrap().unwrap();
    let frames = small_frames();
    let sent = |times: usize| format!("since the start: {} packets", times * frames.len());
    for f in &frames {
        a.send(f).unwrap();
    }
    r.until(&sent(1));
    pair.b.ip(&["link", "set", "b0", "down"]).unwrap();
    r.until("Note: b0 is down");
    pair.b.ip(&["link", "set", "b0", "up"]).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    // a link takes its moment
    while !pair.a.ip(&["link", "show", "a0"]).unwrap().contains("LOWER_UP") {
        assert!(Instant::now() < end, "the link does not come up");
    }
    for f in &frames {
        a.send(f).unwrap();
    }
    r.until(&sent(2));
}

/// An interface that gets another name is counted on; one that is deleted is told, and what it counted stays.
#[test]
fn an_interface_is_renamed_and_deleted() {
    need_root!();
    let pair = Pair::new().unwrap();
    let r = Reports::start(&pair.b, &["-i", "b0"]);
    r.until("no RoCE flow seen yet");
    pair.b.ip(&["link", "set", "b0", "name", "other0"]).unwrap();
    r.until("Note: b0 is called other0 now");
    let a = pair.a.run(|| RawSocket::open("a0")).unwrap().unwrap();
    let frames = small_frames();
    for f in &frames {
        a.send(f).unwrap();
    }
    let all = format!("since the start: {} packets", frames.len());
    r.until(&all);
    pair.b.ip(&["link", "del", "other0"]).unwrap();
    r.until("Note: b0 is gone");
    r.until(&all);
}

/// bpf(2) with the first bytes of its attributes.
fn bpf(command: libc::c_long, attr: &mut [u32; 8]) -> i64 {
    // SAFETY: the attributes are as long as said; the one pointer that is passed in them is to a live buffer.
    unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), size_of::<[u32; 8]>()) }
}

/// Detaches the link of an XDP program as `bpftool link detach` does.
fn detach(program: u32) {
    const GET_INFO: libc::c_long = 15;
    const GET_FD: libc::c_long = 30;
    const NEXT_ID: libc::c_long = 31;
    const DETACH: libc::c_long = 34;
    let mut id = 0;
    loop {
        let mut next = [id, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bpf(NEXT_ID, &mut next), 0, "no link holds program {program}");
        id = next[1];
        let fd = bpf(GET_FD, &mut [id, 0, 0, 0, 0, 0, 0, 0]);
        // it may have gone meanwhile
        let Ok(fd) = u32::try_from(fd) else { continue };
        // type, id, program, …
        let mut info = [0u32; 64];
        let at = (&raw mut info) as u64;
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of an address")]
        let mut ask = [fd, size_of_val(&info) as u32, at as u32, (at >> 32) as u32, 0, 0, 0, 0];
        let found = bpf(GET_INFO, &mut ask) == 0 && info[2] == program;
        let done = found && bpf(DETACH, &mut [fd, 0, 0, 0, 0, 0, 0, 0]) == 0;
        // SAFETY: ours, just opened.
        unsafe { libc::close(fd.cast_signed()) };
        if done {
            return;
        }
    }
}

/// Somebody takes the program off the hook, then puts another one there: both are said.
#[test]
fn a_program_that_is_taken_off_or_replaced_is_told() {
    need_root!();
    let pair = Pair::new().unwrap();
    let r = Reports::start(&pair.b, &["-i", "b0"]);
    r.until("no RoCE flow seen yet");
    let shown = pair.b.ip(&["-d", "link", "show", "b0"]).unwrap();
    let id = shown.split("prog/xdp id ").nth(1).and_then(|s| s.split_whitespace().next()).expect("our program");
    detach(id.parse().unwrap());
    r.until("Note: our XDP program on b0 was detached");
    let _other = Watch::start(&pair.b, &["-i", "b0", "--batch", "--json", "-d", "1", "--no-egress"]);
    r.until("Note: our XDP program on b0 was replaced by");
}

/// The wish to stop comes while a report is stuck in a pipe that nobody reads: what was counted meanwhile is reported.
#[test]
fn the_last_interval_is_never_lost() {
    need_root!();
    use std::os::fd::AsRawFd as _;
    let pair = Pair::new().unwrap();
    let mut child = pair
        .b
        .run(|| {
            Command::new(roce_top())
                .args(["-i", "b0", "--batch", "--json", "-d", "0.01"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        })
        .unwrap()
        .expect("roce-top was built");
    let mut stdout = child.stdout.take().expect("piped");
    // SAFETY: a number for a descriptor that is ours.
    let room = unsafe { libc::fcntl(stdout.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
    assert!(room >= 4096, "a pipe has a page at least");
    let held = || {
        let mut n: libc::c_int = 0;
        // SAFETY: the kernel writes one int.
        assert_eq!(unsafe { libc::ioctl(stdout.as_raw_fd(), libc::FIONREAD, &raw mut n) }, 0);
        n
    };
    let end = Instant::now() + Duration::from_secs(30);
    // a report that does not fit as a whole waits
    while held() + 256 < room {
        assert!(Instant::now() < end, "the pipe does not fill: {} of {room}", held());
        std::thread::yield_now();
    }
    let a = pair.a.run(|| RawSocket::open("a0")).unwrap().unwrap();
    let frames = small_frames();
    for f in &frames {
        a.send(f).unwrap();
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), nix::sys::signal::Signal::SIGINT)
        .unwrap();
    let mut out = String::new();
    stdout.read_to_string(&mut out).unwrap();
    assert!(child.wait().unwrap().success());
    let last: Value = serde_json::from_str(out.lines().last().expect("reports")).expect("whole lines of JSON");
    assert_eq!(last["totals"]["roce_packets"], frames.len());
}
