//! roce-fault on real interfaces: what the receiver's own socket gets, what the report says, and what is left
//! afterwards (nothing).
#![expect(clippy::cast_possible_truncation, reason = "sizes and numbers of frames that the test made itself")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use dissector::frame::icrc::{self, Verdict};
use dissector::frame::{Frame, LinkType};
use dissector::wire::opcode::byte;
use dissector::wire::outer::{ETH_LEN, IPV4_LEN, UDP_LEN};
use dissector::wire::{Aeth, BthFields, ROCE_UDP_PORT, Role, Syndrome};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use roce_tests::netns::{NetNs, Pair};
use roce_tests::raw::RawSocket;
use roce_tests::traffic::{Change, Recording, ipv4_checksum, seal};
use roce_tests::{captures, is_root};
use serde_json::Value;

macro_rules! need_root {
    () => {
        if !is_root() {
            eprintln!("skipped: needs root to make namespaces and attach programs");
            return;
        }
    };
}

fn program(name: &str) -> PathBuf {
    let mut p = std::env::current_exe().expect("a test has a path");
    p.pop();
    if p.ends_with("deps") {
        p.pop();
    }
    p.join(name)
}

/// A running program; killed when dropped.
struct Running {
    child: Child,
}

impl Running {
    /// Starts it in a namespace, and returns when it says `ready` on standard error.
    fn start(ns: &NetNs, name: &str, args: &[&str], ready: &str) -> Self {
        let mut child = ns
            .run(|| Command::new(program(name)).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
            .expect("the namespace can be entered")
            .unwrap_or_else(|e| panic!("{name} was built (cargo build --workspace --bins): {e}"));
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let n = stderr.read_line(&mut line).expect("readable");
            said.push_str(&line);
            if line.contains(ready) {
                break;
            }
            assert!(n > 0, "{name} ended before it was ready: {said}");
        }
        std::thread::spawn(move || {
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).ok();
        });
        Self { child }
    }

    fn fault(ns: &NetNs, args: &[&str]) -> Self {
        Self::start(ns, "roce-fault", args, "active on")
    }

    /// Ends it as Ctrl-C does; its exit status and standard output.
    fn finish(mut self) -> (i32, String) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT).expect("it runs");
        let mut out = String::new();
        self.child.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
        let status = self.child.wait().expect("it ends");
        (status.code().unwrap_or(-1), out)
    }

    fn report(self) -> (i32, Value) {
        let (code, out) = self.finish();
        (code, serde_json::from_str(&out).unwrap_or_else(|e| panic!("not JSON ({e}): {out}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn run(ns: &NetNs, args: &[&str]) -> Output {
    ns.run(|| Command::new(program("roce-fault")).args(args).output()).expect("entered").expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A packet of the pair: from a to b, or back.
fn packet(back: bool, opcode: u8, qp: u32, psn: u32, ext: &[u8], payload: usize) -> Vec<u8> {
    let (src_mac, dst_mac, src, dst) =
        if back { (Pair::MAC_B, Pair::MAC_A, 2, 1) } else { (Pair::MAC_A, Pair::MAC_B, 1, 2) };
    let mut ib = BthFields::new(opcode, qp, psn).emit().to_vec();
    ib.extend(ext);
    ib.extend(vec![0x5a; payload]);
    ib.extend([0; 4]);
    let mut f = dst_mac.to_vec();
    f.extend(src_mac);
    f.extend([0x08, 0x00]);
    let udp_len = (UDP_LEN + ib.len()) as u16;
    let mut ip = vec![0x45, 2];
    ip.extend((IPV4_LEN as u16 + udp_len).to_be_bytes());
    ip.extend([0x33, psn as u8, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, src, 10, 77, 0, dst]);
    let sum = ipv4_checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    f.extend(ip);
    f.extend(0xc777u16.to_be_bytes());
    f.extend(ROCE_UDP_PORT.to_be_bytes());
    f.extend(udp_len.to_be_bytes());
    f.extend([0, 0]);
    f.extend(ib);
    seal(&mut f, false);
    f
}

fn send_only(psn: u32) -> Vec<u8> {
    packet(false, byte::RcSendOnly, 0x11, psn, &[], 64)
}

/// A marker that no rule of these tests touches, to know that everything before it has arrived.
const END_QP: u32 = 0x00ab_cdef;

fn end() -> Vec<u8> {
    packet(false, byte::RcSendOnly, END_QP, 0, &[], 64)
}

/// PSNs that a UDP socket of the receiver gets, in order, up to the marker.
fn received(socket: &UdpSocket) -> Vec<u32> {
    let mut out = Vec::new();
    let mut b = [0; 2048];
    loop {
        let n = socket.recv(&mut b).expect("the marker arrives");
        let word = |at: usize| u32::from_be_bytes([0, b[at], b[at + 1], b[at + 2]]);
        assert!(n >= 16);
        if word(5) == END_QP {
            return out;
        }
        out.push(word(9));
    }
}

fn udp(ns: &NetNs) -> UdpSocket {
    let s = ns.run(|| UdpSocket::bind(("10.77.0.2", ROCE_UDP_PORT))).expect("entered").expect("the port is free");
    s.set_read_timeout(Some(Duration::from_secs(20))).expect("settable");
    s
}

fn raw(ns: &NetNs, interface: &str) -> RawSocket {
    ns.run(|| RawSocket::open(interface)).expect("entered").expect("it opens")
}

/// RoCE frames that arrive at a packet socket, up to the marker.
fn arrived(socket: &RawSocket) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut b = vec![0; 9000];
    loop {
        let (n, outgoing) =
            socket.receive(&mut b, Duration::from_secs(20)).expect("readable").expect("the marker arrives");
        let f = Frame::parse(&b[..n], n, LinkType::ETHERNET, ROCE_UDP_PORT);
        let Some(Ok(p)) = f.packet() else { continue };
        if outgoing {
            continue;
        }
        if p.bth.dest_qp().get() == END_QP {
            return out;
        }
        out.push(b[..n].to_vec());
    }
}

#[test]
fn the_receivers_own_socket_misses_exactly_what_was_hit() {
    need_root!();
    let pair = Pair::new().unwrap();
    let socket = udp(&pair.b);
    let a = raw(&pair.a, "a0");
    let fault = Running::fault(
        &pair.b,
        &["once", "-i", "b0", "--drop", "--qp", "0x11", "--psn", "40-49", "--iter", "1", "--json", "-", "--for", "60s"],
    );
    for psn in (0..100).chain(40..50) {
        a.send(&send_only(psn)).unwrap();
    }
    a.send(&end()).unwrap();
    let got = received(&socket);
    assert_eq!(got, (0..40).chain(50..100).chain(40..50).collect::<Vec<_>>());
    let (code, report) = fault.report();
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["rules"][0]["injected"], 10);
    assert_eq!(report["roce_packets"], 111);
    let psns: Vec<_> = report["injections"].as_array().unwrap().iter().map(|i| i["psn"].as_u64().unwrap()).collect();
    assert_eq!(psns, (40..50).collect::<Vec<_>>());
    assert!(report["injections"].as_array().unwrap().iter().all(|i| {
        i["occurrence"] == 1 && i["action"] == "drop" && i["direction"] == "in" && i["opcode"] == "RC SEND Only"
    }));
}

#[test]
fn captures_played_again_lose_the_same_packets_that_an_independent_count_names() {
    need_root!();
    for name in ["rc_write_bw", "many_qps", "ipv6_write", "vlan_write", "op_mixed"] {
        let recording = Recording::open(&captures().join(format!("{name}.pcap"))).unwrap();
        let change = Change { macs: Some((Pair::MAC_A, Pair::MAC_B)), ..Change::default() };
        let frames: Vec<_> =
            recording.frames.iter().filter(|f| f.bytes.len() <= 1514).map(|f| recording.changed(f, change)).collect();
        // every third request of a flow, counted here
        let mut seen = std::collections::HashMap::new();
        let mut kept = Vec::new();
        for frame in &frames {
            let f = Frame::parse(frame, frame.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
            let (Some(Ok(p)), Some(net)) = (f.packet(), f.net) else { continue };
            let request = p.op.is_some_and(|o| o.role() == Role::Request);
            let src_qp = p.ext.deth.map(|d| d.src_qp().get());
            let n = seen.entry((net.src, net.dst, p.bth.dest_qp().get(), src_qp)).or_insert(0u64);
            *n += u64::from(request);
            if !(request && *n % 3 == 0) {
                kept.push(frame.clone());
            }
        }
        let pair = Pair::with_mtu(9000).unwrap();
        let (a, b) = (raw(&pair.a, "a0"), raw(&pair.b, "b0"));
        let fault = Running::fault(
            &pair.b,
            &["once", "-i", "b0", "--drop", "--direction", "in", "--opcode", "request", "--every", "3", "--json", "-"],
        );
        for f in &frames {
            a.send(f).unwrap();
        }
        a.send(&end()).unwrap();
        let got = arrived(&b);
        assert_eq!(got.len(), kept.len(), "{name}");
        // a packet socket gets the tag beside the frame, not in it
        let untagged = |f: &Vec<u8>| match f.get(12..14) {
            Some([0x81, 0x00]) => [&f[..12], &f[16..]].concat(),
            _ => f.clone(),
        };
        assert!(
            got == kept.iter().map(untagged).collect::<Vec<_>>(),
            "{name}: other frames than those counted arrived"
        );
        let (code, report) = fault.report();
        assert_eq!((code, report["rules"][0]["injected"].as_u64().unwrap()), (0, (frames.len() - kept.len()) as u64));
    }
}

#[test]
fn ce_on_the_way_out_is_right_at_the_other_end() {
    need_root!();
    let pair = Pair::new().unwrap();
    let (a, b) = (raw(&pair.a, "a0"), raw(&pair.b, "b0"));
    let fault =
        Running::fault(&pair.a, &["once", "-i", "a0", "--ce", "--direction", "out", "--qp", "0x11", "--nth", "2"]);
    for psn in 0..4 {
        a.send(&send_only(psn)).unwrap();
    }
    a.send(&end()).unwrap();
    let got = arrived(&b);
    let tos: Vec<_> = got.iter().map(|f| f[ETH_LEN + 1]).collect();
    assert_eq!(tos, [2, 3, 2, 2]);
    for f in &got {
        let sum = u16::from_be_bytes([f[ETH_LEN + 10], f[ETH_LEN + 11]]);
        assert_eq!(sum, ipv4_checksum(&f[ETH_LEN..ETH_LEN + IPV4_LEN]));
        let frame = Frame::parse(f, f.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
        assert_eq!(icrc::verify(&frame, &frame.packet().unwrap().unwrap()), Verdict::Good);
    }
    assert_eq!(fault.finish().0, 0);
}

#[test]
fn twice_on_the_way_out_and_on_the_way_in() {
    need_root!();
    for (on_a, direction) in [(true, "out"), (false, "in")] {
        let pair = Pair::new().unwrap();
        let socket = udp(&pair.b);
        let a = raw(&pair.a, "a0");
        let (ns, interface) = if on_a { (&pair.a, "a0") } else { (&pair.b, "b0") };
        let fault = Running::fault(
            ns,
            &[
                "once",
                "-i",
                interface,
                "--duplicate",
                "--direction",
                direction,
                "--qp",
                "0x11",
                "--nth",
                "2",
                "--json",
                "-",
            ],
        );
        for psn in 0..4 {
            a.send(&send_only(psn)).unwrap();
        }
        a.send(&end()).unwrap();
        // the copy and its original may change places on their way through the host, nothing else
        let mut got = received(&socket);
        got.sort_unstable();
        let (code, report) = fault.report();
        if got == [0, 1, 2, 3] {
            // a copy on its way in takes the long way round and may come after the marker
            let mut b = [0; 2048];
            let n = socket.recv(&mut b).expect("the copy arrives");
            assert!(n > 0);
            got.push(u32::from_be_bytes([0, b[9], b[10], b[11]]));
            got.sort_unstable();
        }
        assert_eq!(got, [0, 1, 1, 2, 3], "{direction}");
        assert_eq!((code, &report["rules"][0]["injected"]), (0, &Value::from(1)), "{direction}: {report}");
    }
}

/// Ids of our programs on an interface: XDP, TC in, TC out.
fn programs(ns: &NetNs, interface: &str) -> Vec<String> {
    let link = ns.ip(&["-d", "link", "show", interface]).unwrap();
    let mut out: Vec<String> = link.lines().filter(|l| l.contains("xdp")).map(|l| l.trim().to_owned()).collect();
    for at in [aya::programs::TcAttachType::Ingress, aya::programs::TcAttachType::Egress] {
        let there = ns
            .run(|| aya::programs::SchedClassifier::query_tcx(interface, at).map(|(_, p)| p.len()))
            .unwrap()
            .unwrap_or(0);
        out.extend((0..there).map(|n| format!("{at:?} {n}")));
    }
    out
}

#[test]
fn killed_and_gone() {
    need_root!();
    let pair = Pair::new().unwrap();
    let socket = udp(&pair.b);
    let a = raw(&pair.a, "a0");
    let mut fault = Running::fault(&pair.b, &["once", "-i", "b0", "--drop", "--qp", "0x11"]);
    assert_eq!(programs(&pair.b, "b0").len(), 3, "{:?}", programs(&pair.b, "b0"));
    a.send(&send_only(1)).unwrap();
    fault.child.kill().unwrap(); // SIGKILL
    fault.child.wait().unwrap();
    assert_eq!(programs(&pair.b, "b0"), Vec::<String>::new());
    a.send(&send_only(2)).unwrap();
    a.send(&end()).unwrap();
    assert_eq!(received(&socket), [2]);
    // and the interface is free for the next one
    assert_eq!(Running::fault(&pair.b, &["once", "-i", "b0", "--drop"]).finish().0, 1);
}

#[test]
fn a_rule_keeps_to_its_interface() {
    need_root!();
    let pair = Pair::new().unwrap();
    let socket = udp(&pair.b);
    let a = raw(&pair.a, "a0");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.toml");
    let text = "[[rule]]\nname = 'elsewhere'\ntype = 'drop'\ninterface = 'lo'\n\
                [[rule]]\nname = 'here'\ntype = 'drop'\ninterface = 'b0'\nqpn = 0x11\npsn = 2\n";
    std::fs::write(&path, text).unwrap();
    let args = ["run", path.to_str().unwrap(), "-i", "b0", "-i", "lo", "--json", "-"];
    let fault = Running::fault(&pair.b, &args);
    for psn in 0..4 {
        a.send(&send_only(psn)).unwrap();
    }
    a.send(&end()).unwrap();
    assert_eq!(received(&socket), [0, 1, 3]);
    let (code, report) = fault.report();
    assert_eq!((code, &report["rules"][0]["injected"], &report["rules"][1]["injected"]), (0, &0.into(), &1.into()));
}

#[test]
fn the_scenario_s_own_command_and_limit() {
    need_root!();
    let pair = Pair::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let run_it = |text: &str| {
        let path = dir.path().join("s.toml");
        std::fs::write(&path, format!("[[rule]]\ntype = 'drop'\n[run]\n{text}")).unwrap();
        let out = run(&pair.b, &["run", path.to_str().unwrap(), "-i", "b0", "--json", "-"]);
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        (report["command"].clone(), report["duration_s"].as_f64().unwrap())
    };
    let (command, _) = run_it("command = ['sh', '-c', 'exit 4']\n[expect]\ninjections = 0\nexit = 4\n");
    assert_eq!((&command["status"], &command["killed"]), (&4.into(), &false.into()));
    let (command, _) = run_it("command = 'exit $((2 + 3))'\n[expect]\ninjections = 0");
    assert_eq!(command["status"], 5);
    // it reads what comes on our standard input
    let path = dir.path().join("s.toml");
    std::fs::write(
        &path,
        "[[rule]]\ntype = 'drop'\n[run]\ncommand = 'read x; test \"$x\" = hello'\n[expect]\ninjections = 0\nexit = 0\n",
    )
    .unwrap();
    let input = std::fs::File::open({
        let p = dir.path().join("input");
        std::fs::write(&p, "hello\n").unwrap();
        p
    })
    .unwrap();
    let out = pair
        .b
        .run(|| Command::new(program("roce-fault")).arg("run").arg(&path).args(["-i", "b0"]).stdin(input).output())
        .unwrap()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stdout));
    let (command, lasted) = run_it("command = ['sleep', '1000']\nlimit = '400ms'");
    assert_eq!(command["killed"], true);
    assert!((0.4..10.0).contains(&lasted), "{lasted}");
}

/// Filters of the netlink way on an interface.
fn filters(ns: &NetNs, interface: &str) -> usize {
    let said = |at: &str| ns.command("tc", &["filter", "show", "dev", interface, at]).unwrap();
    [said("ingress"), said("egress")].iter().flat_map(|s| s.lines()).filter(|l| l.contains("roce_fault")).count()
}

#[test]
fn filters_of_older_kernels_do_the_same_and_leave_with_us() {
    need_root!();
    for duplicate in [false, true] {
        let pair = Pair::new().unwrap();
        let socket = udp(&pair.b);
        let a = raw(&pair.a, "a0");
        // copies on the way in and losses on the way out take TC
        let (ns, interface) = if duplicate { (&pair.b, "b0") } else { (&pair.a, "a0") };
        let what: &[&str] =
            if duplicate { &["--duplicate", "--direction", "in"] } else { &["--drop", "--direction", "out"] };
        let common = ["--tc-mode", "netlink", "--qp", "0x11", "--nth", "2", "--json", "-"];
        let fault = Running::fault(ns, &[&["once", "-i", interface][..], what, &common].concat());
        assert_eq!(filters(ns, interface), 1);
        assert_eq!(programs(ns, interface), [] as [&str; 0], "no link, no XDP");
        for psn in 0..4 {
            a.send(&send_only(psn)).unwrap();
        }
        a.send(&end()).unwrap();
        let mut got = received(&socket);
        let (code, report) = fault.report();
        assert_eq!((code, &report["rules"][0]["injected"]), (0, &Value::from(1)), "{report}");
        if duplicate {
            let mut b = [0; 2048];
            if got.len() == 4 {
                // the copy takes the long way round
                let n = socket.recv(&mut b).expect("the copy arrives");
                assert!(n > 12);
                got.push(u32::from_be_bytes([0, b[9], b[10], b[11]]));
            }
            got.sort_unstable();
            assert_eq!(got, [0, 1, 1, 2, 3]);
        } else {
            assert_eq!(got, [0, 2, 3]);
        }
        assert_eq!(filters(ns, interface), 0);
    }
}

#[test]
fn a_filter_that_is_left_alone_lets_everything_pass_and_the_next_run_takes_it_away() {
    need_root!();
    let pair = Pair::new().unwrap();
    let socket = udp(&pair.b);
    let a = raw(&pair.a, "a0");
    let args =
        ["once", "-i", "a0", "--drop", "--direction", "out", "--qp", "0x11", "--tc-mode", "netlink", "--for", "1h"];
    let mut fault = Running::fault(&pair.a, &args);
    // longer than it would last alone: it is told that we live
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_secs(6) {
        a.send(&send_only(1)).unwrap();
        a.send(&end()).unwrap();
        assert_eq!(received(&socket), [] as [u32; 0]);
    }
    fault.child.kill().unwrap(); // SIGKILL
    fault.child.wait().unwrap();
    let alone = std::time::Instant::now();
    while {
        a.send(&send_only(2)).unwrap();
        a.send(&end()).unwrap();
        received(&socket).is_empty()
    } {
        assert!(alone.elapsed() < Duration::from_secs(10), "packets are still lost");
    }
    assert!(alone.elapsed() <= Duration::from_secs(6), "{:?}", alone.elapsed());
    assert_eq!(filters(&pair.a, "a0"), 1, "the kernel keeps a filter");
    let next = Running::fault(&pair.a, &args);
    assert_eq!(filters(&pair.a, "a0"), 1, "the one that was left is gone");
    next.finish();
    assert_eq!(filters(&pair.a, "a0"), 0);
}

#[test]
fn the_time_limit_counts_from_when_the_rules_are_active() {
    need_root!();
    let pair = Pair::new().unwrap();
    let spawned = std::time::Instant::now();
    let mut fault = Running::fault(&pair.b, &["once", "-i", "b0", "--drop", "--for", "700ms", "--json", "-"]);
    let loading = spawned.elapsed();
    let mut out = String::new();
    fault.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let all = spawned.elapsed();
    assert_eq!(fault.child.wait().unwrap().code(), Some(1), "nothing came by");
    let report: Value = serde_json::from_str(&out).unwrap();
    let lasted = report["duration_s"].as_f64().unwrap();
    assert!((0.7..5.0).contains(&lasted), "{lasted}");
    // what loading took is not taken from it
    assert!(all >= Duration::from_millis(650) + loading, "{all:?} in all, {loading:?} until active");
}

#[test]
fn large_frames_are_broken_in_their_far_end_on_the_way_out_and_in() {
    need_root!();
    for name in ["mtu4096_write", "mtu4096_read", "mtu4096_ud_send"] {
        let recording = Recording::open(&captures().join(format!("{name}.pcap"))).unwrap();
        let change = Change { macs: Some((Pair::MAC_A, Pair::MAC_B)), ..Change::default() };
        let frames: Vec<_> = recording.frames.iter().map(|f| recording.changed(f, change)).collect();
        let payload = |frame: &[u8]| {
            let f = Frame::parse(frame, frame.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
            let p = f.packet().unwrap().unwrap();
            let start = f.transport.unwrap().start + 12 + p.op.map_or(0, dissector::wire::Op::headers_len);
            (start, p.payload_len)
        };
        for direction in ["out", "in"] {
            for kind in ["payload", "icrc", "truncate"] {
                let pair = Pair::with_mtu(9000).unwrap();
                let (a, b) = (raw(&pair.a, "a0"), raw(&pair.b, "b0"));
                let (ns, interface) = if direction == "out" { (&pair.a, "a0") } else { (&pair.b, "b0") };
                let what: &[&str] = match kind {
                    "payload" => &["--corrupt", "payload", "--offset", "3900"],
                    "icrc" => &["--corrupt", "icrc"],
                    _ => &["--truncate", "3990"],
                };
                let dir = tempfile::tempdir().unwrap();
                let pcap = dir.path().join("hit.pcapng").display().to_string();
                let common = ["once", "-i", interface, "--direction", direction, "--size", ">=4000"];
                let fault = Running::fault(ns, &[&common[..], what, &["--json", "-", "--pcap", &pcap]].concat());
                for f in &frames {
                    a.send(f).unwrap();
                }
                a.send(&end()).unwrap();
                let got = arrived(&b);
                let (code, report) = fault.report();
                assert_eq!(code, 0, "{report}");
                assert_eq!(got.len(), frames.len(), "{name}: {kind} {direction}");
                let mut hit = Vec::new();
                for (sent, got) in frames.iter().zip(&got) {
                    let (start, len) = payload(sent);
                    let mut wanted = sent.clone();
                    if sent.len() >= 4000 {
                        match kind {
                            "payload" if len > 3900 => wanted[start + 3900] ^= 1,
                            "payload" => {}
                            "icrc" => {
                                wanted[ETH_LEN + 4] ^= 0xff;
                                wanted[ETH_LEN + 5] ^= 0xff;
                                wanted[ETH_LEN + 10..ETH_LEN + 12].fill(0);
                                let sum = ipv4_checksum(&wanted[ETH_LEN..ETH_LEN + IPV4_LEN]);
                                wanted[ETH_LEN + 10..ETH_LEN + 12].copy_from_slice(&sum.to_be_bytes());
                            }
                            _ => wanted.truncate(3990),
                        }
                    }
                    // what is cut on its way in is cut at TC, which a packet socket of the receiver comes before
                    let seen = if kind == "truncate" && direction == "in" { sent } else { &wanted };
                    assert!(got == seen, "{name}: {kind} {direction}, {} bytes became {}", sent.len(), got.len());
                    if wanted != *sent {
                        hit.push(wanted);
                    }
                }
                let injected = hit.len() as u64;
                assert!(injected > 0);
                assert_eq!(report["rules"][0]["injected"].as_u64(), Some(injected), "{name}: {kind} {direction}");
                let mut reader = dissector::capture::Reader::open(Path::new(&pcap)).unwrap();
                let mut written = Vec::new();
                while let Some(r) = reader.next().unwrap() {
                    written.push(r.bytes.to_vec());
                }
                assert!(written == hit, "{name}: {kind} {direction}: other frames in the file than on the wire");
            }
        }
    }
}

#[test]
fn the_command_dies_with_us() {
    need_root!();
    let pair = Pair::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let script = format!("echo $$ > {0}.new && mv {0}.new {0} && exec sleep 1000", pid_file.display());
    let mut fault = Running::fault(&pair.b, &["once", "-i", "b0", "--drop", "--", "sh", "-c", &script]);
    let pid = loop {
        if let Ok(p) = std::fs::read_to_string(&pid_file) {
            break p.trim().to_owned();
        }
        std::thread::yield_now();
    };
    fault.child.kill().unwrap();
    fault.child.wait().unwrap();
    // gone, or a zombie that its new parent has yet to collect
    let end = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        if stat.is_err() || stat.is_ok_and(|s| s.contains(") Z ") || s.contains(") X ")) {
            break;
        }
        assert!(std::time::Instant::now() < end, "the command outlives roce-fault");
        std::thread::yield_now();
    }
}

#[test]
fn one_at_a_time() {
    need_root!();
    let pair = Pair::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("first.toml");
    std::fs::write(&scenario, "name = 'the first one'\n[[rule]]\ntype = 'drop'\n").unwrap();
    let first = Running::fault(&pair.b, &["run", scenario.to_str().unwrap(), "-i", "b0"]);
    let second = run(&pair.b, &["once", "-i", "b0", "--drop"]);
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(3), "{said}");
    assert!(said.contains("the first one") && said.contains(&first.child.id().to_string()), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // another interface is another matter
    assert_eq!(run(&pair.b, &["once", "-i", "lo", "--drop", "--for", "10ms"]).status.code(), Some(1));
}

#[test]
fn beside_roce_top_whoever_comes_first() {
    need_root!();
    for top_first in [true, false] {
        let pair = Pair::new().unwrap();
        let socket = udp(&pair.b);
        let a = raw(&pair.a, "a0");
        let top = || {
            Running::start(
                &pair.b,
                "roce-top",
                &["-i", "b0", "--batch", "--json", "-n", "1000", "-d", "0.2"],
                "watching",
            )
        };
        let fault =
            || Running::fault(&pair.b, &["once", "-i", "b0", "--drop", "--qp", "0x11", "--nth", "3", "--json", "-"]);
        let (mut top, fault) = if top_first {
            let t = top();
            (t, fault())
        } else {
            let f = fault();
            (top(), f)
        };
        for psn in 0..5 {
            a.send(&send_only(psn)).unwrap();
        }
        a.send(&end()).unwrap();
        assert_eq!(received(&socket), [0, 1, 3, 4], "top first: {top_first}");
        let (code, report) = fault.report();
        assert_eq!((code, &report["rules"][0]["injected"]), (0, &Value::from(1)));
        // roce-top counts what passes its own hook: all of it where it comes first
        let lines = BufReader::new(top.child.stdout.take().unwrap()).lines();
        let least = if top_first { 6 } else { 5 };
        let enough = lines.map_while(Result::ok).any(|line| {
            let v: Value = serde_json::from_str(&line).unwrap();
            let packets: u64 = v["flows"].as_array().into_iter().flatten().filter_map(|f| f["packets"].as_u64()).sum();
            packets >= least
        });
        assert!(enough, "roce-top saw the packets");
    }
}

#[test]
fn the_interface_of_the_login_needs_force() {
    need_root!();
    let pair = Pair::new().unwrap();
    let login = |args: &[&str]| {
        pair.b
            .run(|| {
                Command::new(program("roce-fault"))
                    .args(args)
                    .env("SSH_CONNECTION", "10.77.0.1 50000 10.77.0.2 22")
                    .output()
            })
            .unwrap()
            .unwrap()
    };
    let refused = login(&["once", "-i", "b0", "--drop", "--for", "10ms"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("carries your login (10.77.0.2)") && said.contains("--force"), "{said}");
    assert_eq!(login(&["once", "-i", "b0", "--drop", "--for", "10ms", "--force"]).status.code(), Some(1));
}

#[test]
fn exit_statuses() {
    need_root!();
    let pair = Pair::new().unwrap();
    let a = raw(&pair.a, "a0");
    // something to hit, for as long as the test runs
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut psn = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                a.send(&send_only(psn)).unwrap();
                psn = (psn + 1) & 0xff_ffff;
                std::thread::yield_now();
            }
        });
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let p = dir.path().join(name);
            std::fs::write(&p, content).unwrap();
            p.display().to_string()
        };
        let code = |args: &[&str]| run(&pair.b, args).status.code();
        // a command that gives traffic the time to be hit
        let hit = "rx=/sys/class/net/b0/statistics/rx_packets; n=$(cat $rx); \
                   while [ $(cat $rx) -lt $((n + 50)) ]; do :; done; exit";
        let results = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assert_eq!(code(&["once", "-i", "b0", "--drop", "--", "sh", "-c", &format!("{hit} 0")]), Some(0));
            assert_eq!(code(&["once", "-i", "b0", "--drop", "--", "sh", "-c", &format!("{hit} 7")]), Some(7));
            assert_eq!(code(&["once", "-i", "b0", "--drop", "--for", "300ms", "--", "sleep", "1000"]), Some(1));
            assert_eq!(code(&["once", "-i", "b0", "--drop", "--qp", "0x999", "--", "true"]), Some(1));
            assert_eq!(code(&["once", "-i", "b0", "--drop", "--qp", "0x999", "--", "sh", "-c", "exit 7"]), Some(1));
            assert_eq!(code(&["once", "-i", "b0", "--drop", "--", "/no/such/program"]), Some(2));
            assert_eq!(code(&["once", "-i", "nowhere", "--drop"]), Some(3));
            assert_eq!(code(&["once", "-i", "b0"]), Some(2));
            assert_eq!(code(&["once", "-i", "b0", "--drop", "--psn", "x"]), Some(2));
            assert_eq!(code(&["once", "-i", "b0", "--drop", "--pcap", "x.pcap"]), Some(2));
            assert_eq!(code(&["run", "/no/such/file.toml", "-i", "b0"]), Some(2));
            let wants_seven = file("seven.toml", "[[rule]]\ntype = 'drop'\n[expect]\nexit = 7\n");
            let seven = run(&pair.b, &["run", &wants_seven, "-i", "b0", "--", "sh", "-c", &format!("{hit} 7")]);
            assert_eq!(seven.status.code(), Some(0), "{} {}", text(&seven.stdout), text(&seven.stderr));
            assert_eq!(code(&["run", &wants_seven, "-i", "b0", "--", "sh", "-c", &format!("{hit} 0")]), Some(1));
            let other = file("other.toml", "[[rule]]\ntype = 'drop'\ninterface = 'eth9'\n");
            assert_eq!(code(&["run", &other, "-i", "b0"]), Some(2));
            // the reports say why the status is not 0
            let junit = dir.path().join("status.xml").display().to_string();
            let script = format!("{hit} 7");
            let args = ["once", "-i", "b0", "--drop", "--json", "-", "--junit", &junit, "--", "sh", "-c", &script];
            let failed = run(&pair.b, &args);
            let v: Value = serde_json::from_slice(&failed.stdout).unwrap();
            let red: Vec<_> = v["checks"].as_array().unwrap().iter().filter(|c| c["ok"] == false).collect();
            assert_eq!((failed.status.code(), &v["passed"], red.len()), (Some(7), &Value::Bool(false), 1), "{v:#}");
            assert!(red[0]["detail"].as_str().unwrap().contains("failed with status 7"), "{v:#}");
            assert!(std::fs::read_to_string(&junit).unwrap().contains("failures=\"1\""));
            // counts what would be hit, and hits nothing
            let dry = run(&pair.b, &["once", "-i", "b0", "--drop", "--dry-run", "--for", "300ms", "--json", "-"]);
            let v: Value = serde_json::from_slice(&dry.stdout).unwrap();
            assert_eq!((dry.status.code(), &v["dry_run"]), (Some(0), &Value::Bool(true)));
            assert!(v["rules"][0]["injected"].as_u64().unwrap() > 0);
        }));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        results.unwrap_or_else(|e| std::panic::resume_unwind(e));
    });
}

/// An exchange in which b's NAK asks for PSN 3; `resend` says whether a answers.
fn exchange(scenario: &str, nak: u32, resend: &[u32]) -> (i32, Value) {
    let pair = Pair::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.toml");
    std::fs::write(&path, scenario).unwrap();
    let (a, b) = (raw(&pair.a, "a0"), raw(&pair.b, "b0"));
    let socket = udp(&pair.b);
    let fault = Running::fault(&pair.b, &["run", path.to_str().unwrap(), "-i", "b0", "--json", "-"]);
    let send = |psns: &[u32]| {
        for p in psns {
            a.send(&send_only(*p)).unwrap();
        }
        a.send(&end()).unwrap();
        received(&socket)
    };
    assert_eq!(send(&[1, 2, 3, 4, 5]), [1, 2, 4, 5]);
    b.send(&packet(true, byte::RcAcknowledge, 0x12, nak, &Aeth::emit(Syndrome(0x60), 2), 0)).unwrap();
    assert_eq!(send(resend), resend);
    fault.report()
}

#[test]
fn reactions_on_the_wire_are_judged() {
    need_root!();
    let scenario = "name = 'gap'\n[[rule]]\nname = 'lose'\ntype = 'drop'\nqpn = 0x11\npsn = 3\niter = 1\n\
                    [expect]\ninjections = { lose = 1 }\nretransmission_within = '20s'\nnak_within = '20s'\n\
                    no_message_lost = true\ngo_back_n = true\n";
    let verdict = |report: &Value| -> Vec<String> {
        let all = report["checks"].as_array().unwrap();
        all.iter().filter(|c| c["ok"] == false).map(|c| c["name"].as_str().unwrap().to_owned()).collect()
    };
    let (code, good) = exchange(scenario, 3, &[3, 4, 5, 6]);
    assert_eq!((code, verdict(&good)), (0, vec![]), "{good:#}");
    // never sent again
    let (code, lost) = exchange(scenario, 3, &[6, 7]);
    assert_eq!(
        (code, verdict(&lost)),
        (1, vec!["retransmission-within".into(), "go-back-n".into(), "no-message-lost".into()]),
        "{lost:#}"
    );
    // sent again from further back than asked
    let (code, far) = exchange(scenario, 3, &[2, 3, 4, 5, 6]);
    assert_eq!((code, verdict(&far)), (1, vec!["go-back-n".into()]), "{far:#}");
}

#[test]
fn junit_and_pcapng_say_the_same() {
    need_root!();
    let pair = Pair::new().unwrap();
    let a = raw(&pair.a, "a0");
    let socket = udp(&pair.b);
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (pcap, junit, json) = (path("x.pcapng"), path("x.xml"), path("x.json"));
    let fault = Running::fault(
        &pair.b,
        &[
            "once",
            "-i",
            "b0",
            "--corrupt",
            "icrc",
            "--qp",
            "0x11",
            "--every",
            "2",
            "--pcap",
            &pcap,
            "--junit",
            &junit,
            "--json",
            &json,
        ],
    );
    for psn in 0..6 {
        a.send(&send_only(psn)).unwrap();
    }
    a.send(&end()).unwrap();
    assert_eq!(received(&socket).len(), 6);
    let (code, out) = fault.finish();
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("passed") && out.contains("injected        3"), "{out}");
    let v: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(v["injections"].as_array().unwrap().len(), 3);
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(
        xml.contains("tests=\"1\"") && xml.contains("failures=\"0\"") && xml.contains("something-injected"),
        "{xml}"
    );
    let mut reader = dissector::capture::Reader::open(Path::new(&pcap)).unwrap();
    let mut psns = Vec::new();
    while let Some(r) = reader.next().unwrap() {
        let comment: Vec<_> = r.options.comments().collect();
        assert!(comment.len() == 1 && comment[0].contains("\"once\": icrc"), "{comment:?}");
        let f = Frame::parse(r.bytes, r.wire_len as usize, LinkType(r.link), ROCE_UDP_PORT);
        psns.push(f.packet().unwrap().unwrap().bth.psn().get());
    }
    assert_eq!(psns, [1, 3, 5]);
    if let Ok(o) = Command::new("tshark")
        .args(["-r", &pcap, "-T", "fields", "-e", "frame.comment", "-e", "infiniband.bth.psn"])
        .output()
    {
        let lines: BTreeSet<_> = text(&o.stdout).lines().map(str::to_owned).collect();
        assert!(lines.len() == 3 && lines.iter().all(|l| l.contains("rule \"once\": icrc")), "{lines:?}");
    }
}

/// At TC the kernel keeps a packet's VLAN tag beside it; reports and recordings show the packet as it is on the wire.
#[test]
fn the_tag_that_the_kernel_keeps_beside_a_packet_is_in_reports_and_recordings() {
    need_root!();
    // VLAN 7, priority 5
    let tagged = |f: &[u8]| [&f[..12], &[0x81, 0x00, 0xa0, 0x07], &f[12..]].concat();
    let hex = |b: &[u8]| b.iter().map(|b| format!("{b:02x}")).collect::<String>();
    for top_first in [true, false] {
        let pair = Pair::new().unwrap();
        let socket = raw(&pair.a, "a0");
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let (pcap, recording) = (path("x.pcapng"), path("y.pcapng"));
        // whoever comes second has TC
        let top = || {
            let what = ["-i", "b0", "--batch", "--json", "-d", "0.1", "-w", &recording, "--snaplen", "400"];
            Running::start(&pair.b, "roce-top", &what, "watching")
        };
        let fault = || {
            let what =
                ["once", "-i", "b0", "--direction", "in", "--every", "2", "--ce", "--pcap", &pcap, "--json", "-"];
            Running::fault(&pair.b, &what)
        };
        let (top, fault) = if top_first {
            let top = top();
            (top, fault())
        } else {
            let fault = fault();
            (top(), fault)
        };
        let far = raw(&pair.b, "b0");
        for psn in 0..6 {
            socket.send(&tagged(&send_only(psn))).unwrap();
        }
        socket.send(&end()).unwrap();
        assert_eq!(arrived(&far).len(), 6);
        let (code, report) = fault.report();
        assert_eq!(code, 0, "{report}");
        let rows = report["injections"].as_array().unwrap();
        assert_eq!(rows.len(), 3);
        let mut reader = dissector::capture::Reader::open(Path::new(&pcap)).unwrap();
        for (row, psn) in rows.iter().zip([1, 3, 5]) {
            let sent = tagged(&send_only(psn));
            assert_eq!(row["length"], sent.len());
            assert!(hex(&sent).starts_with(row["before"].as_str().unwrap()), "{row}");
            let r = reader.next().unwrap().expect("three packets");
            assert_eq!((r.bytes.len(), r.wire_len as usize), (sent.len(), sent.len()));
            // but for TOS and checksum of the IPv4 header
            let differ: Vec<_> = (0..sent.len()).filter(|n| sent[*n] != r.bytes[*n]).collect();
            assert!(differ.starts_with(&[19]) && differ.iter().all(|n| [19, 28, 29].contains(n)), "{differ:?}");
        }
        assert!(reader.next().unwrap().is_none());
        let (code, _) = top.finish();
        assert_eq!(code, 0);
        let mut reader = dissector::capture::Reader::open(Path::new(&recording)).unwrap();
        for psn in 0..6 {
            let (sent, r) = (tagged(&send_only(psn)), reader.next().unwrap().expect("six packets"));
            assert_eq!(r.wire_len as usize, sent.len(), "{top_first}");
            assert_eq!(r.bytes[..18], sent[..18], "{top_first}");
        }
    }
}

#[test]
fn every_ready_scenario_reads_and_explains_itself() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("faults");
    let mut n = 0;
    for e in std::fs::read_dir(dir).unwrap() {
        let path = e.unwrap().path();
        if path.extension().is_none_or(|x| x != "toml") {
            continue;
        }
        let s = roce_user::fault::scenario::Scenario::open(&path).unwrap_or_else(|e| panic!("{e}"));
        let words = s.explain();
        assert!(s.rules.iter().all(|r| words.contains(&r.name)) && s.description.is_some(), "{words}");
        n += 1;
    }
    assert!(n >= 8, "{n} scenarios");
}
