//! What fault rules cost a packet that none of them hits, by `BPF_PROG_TEST_RUN`. All programs are measured in
//! turn, many times, and each is represented by its fastest turn: what other work on the machine adds is not ours.

use aya::programs::{TestRun, TestRunOptions};
use dissector::wire::opcode::byte;
use dissector::wire::outer::{ETH_LEN, IPV4_LEN, UDP_LEN};
use dissector::wire::{BthFields, ROCE_UDP_PORT, Reth};
use roce_ebpf::abi::fault::XDP_INGRESS;
use roce_tests::fault::Rig;
use roce_tests::traffic::{ipv4_checksum, seal};
use roce_user::load;
use serde_json::{Value, json};

const REPEAT: u32 = 200_000;
const TURNS: usize = 15;

/// An RC RDMA WRITE Only with 1024 bytes of payload, as on the wire.
fn write_only(v6: bool) -> Vec<u8> {
    let mut ib = BthFields::new(byte::RcWriteOnly, 0x11, 1000).emit().to_vec();
    ib.extend(Reth::emit(0x7000_0000, 0x1234, 1024));
    ib.extend([0x5a; 1024]);
    ib.extend([0; 4]);
    let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let udp_len = u16::try_from(UDP_LEN + ib.len()).expect("a packet is short");
    if v6 {
        f.extend([0x86, 0xdd, 0x60, 0x20, 0, 0]);
        f.extend(udp_len.to_be_bytes());
        f.extend([17, 64]);
        for host in [1, 2] {
            f.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
    } else {
        f.extend([0x08, 0x00]);
        f.extend(ipv4(udp_len));
    }
    f.extend(0xc000u16.to_be_bytes());
    f.extend(ROCE_UDP_PORT.to_be_bytes());
    f.extend(udp_len.to_be_bytes());
    f.extend([0, 0]);
    f.extend(ib);
    seal(&mut f, false);
    f
}

fn ipv4(udp_len: u16) -> Vec<u8> {
    let mut ip = vec![0x45, 2];
    ip.extend((u16::try_from(IPV4_LEN).expect("short") + udp_len).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = ipv4_checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip
}

fn once(rig: &mut Rig, frame: &[u8]) -> f64 {
    let program = load::xdp(rig.engine.object(), XDP_INGRESS).expect("the XDP program loads");
    let options = TestRunOptions { data_in: Some(frame), repeat: REPEAT, ..TestRunOptions::new() };
    program.test_run(options).expect("a test run").duration.as_nanos() as f64
}

/// Rules, and the frame that meets them.
struct Case<'a> {
    name: &'static str,
    rules: String,
    frame: &'a [u8],
    target: Option<f64>,
}

fn main() {
    if !roce_tests::is_root() {
        eprintln!("bench-fault needs root to load programs");
        std::process::exit(3);
    }
    let v4 = write_only(false);
    let v6 = write_only(true);
    let mut other = v4.clone();
    // another UDP port: not RoCE
    other[ETH_LEN + IPV4_LEN + 2] ^= 0x40;
    let sixteen = |f: &dyn Fn(usize) -> String| -> String {
        (0..16).map(|n| format!("[[rule]]\ntype = 'drop'\n{}\n", f(n))).collect::<Vec<_>>().concat()
    };
    let by_opcode = sixteen(&|n| format!("opcode = 'read-response'\nnth = {}", n + 1));
    let by_qpn = sixteen(&|n| format!("qpn = {}\niter = 2", 0x100 + n));
    let by_psn = sixteen(&|n| format!("opcode = 'write'\npsn = {}", 2000 + n));
    let by_address = sixteen(&|n| format!("opcode = 'write'\nsrc = '192.0.2.{n}'"));
    let by_prefix = sixteen(&|n| format!("opcode = 'write'\nsrc = '192.{n}.0.0/16'"));
    let mixed = sixteen(&|n| match n % 4 {
        0 => format!("opcode = 'read-response'\nnth = {}", n + 1),
        1 => format!("qpn = {}\niter = 2", 0x100 + n),
        2 => format!("opcode = 'write'\npsn = {}", 2000 + n),
        _ => format!("opcode = 'write'\nsrc = '192.0.2.{n}'"),
    });
    let history = "[[rule]]\ntype = 'drop'\nopcode = 'write'\niter = 100000000".to_owned();
    let by_v6_prefix = sixteen(&|n| format!("opcode = 'write'\ndst = 'fd00:0:0:{:x}::/64'", n + 1));
    let inside = sixteen(&|n| format!("opcode = 'write'\nsrc = '10.0.0.0/8'\ndst = '10.0.{}.0/24'", n + 1));
    let case = |name, rules, frame, target| Case { name, rules, frame, target };
    let cases = [
        case("16 rules, none matching: opcode", by_opcode, &v4, Some(30.0)),
        case("16 rules, none matching: queue pair", by_qpn, &v4, Some(30.0)),
        case("16 rules, none matching: PSN", by_psn, &v4, Some(30.0)),
        case("16 rules, none matching: address", by_address, &v4, Some(30.0)),
        case("16 rules, none matching: prefix", by_prefix, &v4, Some(30.0)),
        case("16 rules, none matching: prefix, first bytes the same", inside, &v4, Some(30.0)),
        case("16 rules, none matching: IPv6 prefix", by_v6_prefix, &v6, Some(30.0)),
        case("16 rules, none matching: mixed", mixed, &v4, Some(30.0)),
        case("one rule that keeps history of the flow", history, &v4, None),
        case("not RoCE, 16 rules", sixteen(&|n| format!("psn = {n}")), &other, Some(3.0)),
    ];
    let mut rigs: Vec<Rig> = cases
        .iter()
        .map(|c| {
            eprintln!("loading: {}", c.name);
            Rig::new(&c.rules)
        })
        .collect();
    // the programs are attached and no rule is active
    let mut none = Rig::new("[[rule]]\ntype = 'drop'");
    none.engine.disarm().expect("it can be disarmed");
    let frames: [&[u8]; 3] = [&v4, &v6, &other];
    let mut without = [f64::INFINITY; 3];
    let mut best = vec![f64::INFINITY; cases.len()];
    for turn in 0..TURNS {
        eprintln!("turn {} of {TURNS}", turn + 1);
        for ((rig, case), best) in rigs.iter_mut().zip(&cases).zip(&mut best) {
            *best = best.min(once(rig, case.frame));
        }
        for (frame, best) in frames.iter().zip(&mut without) {
            *best = best.min(once(&mut none, frame));
        }
    }
    for rig in &rigs {
        let injected: u64 = rig.engine.tallies().expect("readable").iter().map(|t| t.injected).sum();
        assert_eq!(injected, 0, "nothing was to be hit");
    }
    let line = |name: String, value: f64, target: Option<f64>| {
        json!({
            "name": name,
            "value": value,
            "unit": "ns",
            "target": target.map_or(Value::Null, |t| json!(t)),
            "ok": target.map(|t| value <= t),
        })
    };
    let mut lines = vec![line("programs without an active rule, RC WRITE over IPv4".into(), without[0], None)];
    for (c, best) in cases.iter().zip(best) {
        let base = frames.iter().position(|f| *f == c.frame).map_or(f64::NAN, |n| without[n]);
        lines.push(line(format!("{}: more than without", c.name), best - base, c.target));
    }
    println!("{}", serde_json::to_string(&lines).expect("plain values"));
}
