//! What the XDP program costs, in nanoseconds a packet by `BPF_PROG_TEST_RUN`, beside the empty program and other
//! designs of the flow map in the same run. Prints one JSON array of `{name, value, unit, target, ok}`.

use std::time::Duration;

use anyhow::{Context, Result};
use aya::programs::{TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use dissector::wire::opcode::byte;
use dissector::wire::{BthFields, outer};
use serde_json::{Value, json};

/// Where the designs' driver keeps its state in the frame.
const STATE: usize = 256;
/// Packets a run: every flow of the largest case, and short enough to fit between what else the machine does.
const REPEAT: u32 = 1 << 16;
/// Runs of each program, interleaved; the fastest counts, as everything else on the machine only adds.
const ROUNDS: usize = 80;

/// A 1 KiB RC WRITE Middle; as IPv6 if `v6`. The driver spreads it over `flows` (a power of two).
fn frame(v6: bool, flows: u32) -> Vec<u8> {
    let mut b = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let payload = 1024usize;
    let transport = 12 + payload + 4;
    let udp = u16::try_from(8 + transport).expect("short");
    if v6 {
        b.extend(outer::ETHERTYPE_IPV6.to_be_bytes());
        b.extend([0x60, 0x20, 0, 0]);
        b.extend(udp.to_be_bytes());
        b.extend([outer::IPPROTO_UDP, 64]);
        b.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        b.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    } else {
        b.extend(outer::ETHERTYPE_IPV4.to_be_bytes());
        b.extend([0x45, 0x02]);
        b.extend((20 + udp).to_be_bytes());
        b.extend([0, 1, 0x40, 0, 64, outer::IPPROTO_UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    b.extend(0xc001u16.to_be_bytes());
    b.extend(dissector::wire::ROCE_UDP_PORT.to_be_bytes());
    b.extend(udp.to_be_bytes());
    b.extend([0, 0]);
    b.extend(BthFields::new(byte::RcWriteMiddle, 0, 0).emit());
    b.resize(b.len() + payload + 4, 0);
    b[STATE + 4..STATE + 8].copy_from_slice(&(flows - 1).to_le_bytes());
    b[STATE + 8..STATE + 12].copy_from_slice(&flows.trailing_zeros().to_le_bytes());
    b
}

/// A TCP segment.
fn tcp() -> Vec<u8> {
    let mut b = frame(false, 1);
    b[23] = 6;
    b
}

struct Case {
    name: &'static str,
    program: &'static str,
    frame: Vec<u8>,
    flows: u32,
    best: f64,
}

fn main() -> Result<()> {
    let mut one = nix::sched::CpuSet::new();
    one.set(0)?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &one)?;
    let case = |name, program, v6, flows| Case { name, program, frame: frame(v6, flows), flows, best: f64::INFINITY };
    let mut cases = vec![
        case("empty, 1 flow", "empty", false, 1),
        case("ours, IPv4, 1 flow", "ours", false, 1),
        case("plain design, IPv4, 1 flow", "plain", false, 1),
        case("per-CPU hash, short key, 1 flow", "percpu", false, 1),
        case("hash to slot of a mapped array, 1 flow", "slot", false, 1),
        case("per-CPU cache in front, 1 flow", "cache", false, 1),
        case("ours, IPv6, 1 flow", "ours", true, 1),
        case("plain design, IPv6, 1 flow", "plain", true, 1),
        case("ours, 1,024 flows", "ours", false, 1024),
        case("plain design, 1,024 flows", "plain", false, 1024),
        case("per-CPU hash, short key, 1,024 flows", "percpu", false, 1024),
        case("hash to slot of a mapped array, 1,024 flows", "slot", false, 1024),
        case("per-CPU cache in front, 1,024 flows", "cache", false, 1024),
        case("ours, 65,536 flows", "ours", false, 65_536),
        case("plain design, 65,536 flows", "plain", false, 65_536),
        case("per-CPU hash, short key, 65,536 flows", "percpu", false, 65_536),
        case("hash to slot of a mapped array, 65,536 flows", "slot", false, 65_536),
        case("per-CPU cache in front, 65,536 flows", "cache", false, 65_536),
        Case { name: "nothing, TCP", program: "nothing", frame: tcp(), flows: 1, best: f64::INFINITY },
        Case { name: "ours, TCP", program: "roce_xdp", frame: tcp(), flows: 1, best: f64::INFINITY },
    ];
    let quick = std::env::args().any(|a| a == "--quick");
    if quick {
        cases.retain(|c| c.flows == 1);
    }
    // the maps of one flow count at a time, so that all fit
    for flows in [1, 1024, 65_536] {
        if cases.iter().all(|c| c.flows != flows) {
            continue;
        }
        let mut ebpf = load(flows)?;
        let names: Vec<_> = cases.iter().filter(|c| c.flows == flows).map(|c| c.program).collect();
        for name in names {
            let p = program(&mut ebpf, name)?;
            if p.fd().is_err() {
                p.load().with_context(|| format!("design {name} does not load"))?;
            }
        }
        for round in 0..ROUNDS {
            if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
                eprint!("\r{flows} flows, round {}/{ROUNDS} ", round + 1);
            }
            for c in cases.iter_mut().filter(|c| c.flows == flows) {
                // the flows go on where the last run left them
                let begin = u32::try_from(round).unwrap_or(0).wrapping_mul(REPEAT);
                c.frame[STATE..STATE + 4].copy_from_slice(&begin.to_le_bytes());
                let took = run(program(&mut ebpf, c.program)?, &c.frame)?;
                // the first round fills the maps
                if round > 0 {
                    c.best = c.best.min(took);
                }
            }
        }
    }
    eprintln!();
    let of = |name: &str| cases.iter().find(|c| c.name == name).map_or(f64::NAN, |c| c.best);
    let empty = of("empty, 1 flow");
    let mut out = Vec::new();
    let mut target = |name: &str, value: f64, most: f64| {
        out.push(json!({"name": name, "value": tenth(value), "unit": "ns", "target": format!("≤ {most}"), "ok": value <= most}));
    };
    target("known IPv4 RC flow, more than the empty program", of("ours, IPv4, 1 flow") - empty, 20.0);
    target("known IPv6 RC flow, more than the empty program", of("ours, IPv6, 1 flow") - empty, 35.0);
    target("not RoCE, more than the empty program", of("ours, TCP") - of("nothing, TCP"), 3.0);
    for c in &cases {
        out.push(json!({"name": c.name, "value": tenth(c.best), "unit": "ns/packet", "target": Value::Null, "ok": Value::Null}));
    }
    println!("{}", serde_json::to_string(&out)?);
    Ok(())
}

fn tenth(v: f64) -> f64 {
    (v * 10.0).round() / 10.0
}

fn load(flows: u32) -> Result<Ebpf> {
    let mut loader = EbpfLoader::new();
    let level = 0u8;
    // twice as many as needed: a full hash is another thing to measure
    let room = flows * 2;
    for map in ["FLOWS", "SLOTS_V4", "SLOTS_V6", "PLAIN", "SHORT", "SLOTS", "TABLE", "BEHIND"] {
        // ours has a second key a flow
        loader.map_max_entries(map, if map.starts_with("SLOTS_") { room * 2 } else { room });
    }
    loader.override_global("AYA_LOG_LEVEL", &level, false).override_global("ROCE_MAX_FLOWS", &room, true);
    loader.load(roce_user::load::DESIGNS).context("the designs do not load (built without the kernel object?)")
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp> {
    ebpf.program_mut(name).context("no such design")?.try_into().context("not an XDP program")
}

fn run(program: &mut Xdp, frame: &[u8]) -> Result<f64> {
    let options = TestRunOptions { data_in: Some(frame), repeat: REPEAT, ..TestRunOptions::new() };
    let r = program.test_run(options)?;
    // the kernel gives the mean of one run in whole nanoseconds; that of the loop is finer
    Ok(r.duration.max(Duration::from_nanos(1)).as_nanos() as f64)
}
