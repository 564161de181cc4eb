//! What reading and printing cost: the three-field print beside tshark in the same run, memory on a large file,
//! start-up on a small one. Prints one JSON array of `{name, value, unit, target, ok}`.
//!
//! `ROCE_BENCH_PACKETS` says how many packets the large file has; else 5 million where disk and memory allow
//! it, 1 million elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use dissector::capture::Reader;
use roce_tests::cost::{self, Cost};
use roce_tests::synth::Traffic;
use serde_json::{Value, json};

/// Runs of each thing; the cheapest counts, as everything else on the machine only adds.
const ROUNDS: usize = 3;
/// Packets that tshark is given: enough that its start-up does not matter.
const TSHARK_PACKETS: u64 = 1_000_000;
const FIELDS: [&str; 8] =
    ["-T", "fields", "-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.psn"];
const MIB: f64 = 1024.0 * 1024.0;

fn main() -> Result<()> {
    // as roce-dissect does
    dissector::capture::mapped::enable();
    let dissect = beside("roce-dissect")?;
    let dir = tempfile::tempdir()?;
    let packets = packets(dir.path());
    let file = dir.path().join("large.pcap");
    eprintln!("making {packets} packets");
    let size = Traffic { packets, ..Traffic::default() }.write_file(&file)?;
    eprintln!("{:.2} GB in {}", size as f64 / 1e9, file.display());

    let mut lines: Vec<Value> = Vec::new();
    let mut line = |name: &str, value: f64, unit: &str, target: Value, ok: Option<bool>| {
        lines.push(json!({ "name": name, "value": value, "unit": unit, "target": target, "ok": ok }));
    };

    // before this process maps the file: what it ever had counts for a child until that has started its program
    for args in [&["-r"][..], &["flows"], &["check"], &["stats"]] {
        // findings are no failure here, but have an exit status of their own
        let mut command = Command::new("sh");
        command.args(["-c", "\"$@\"; [ $? -le 1 ]", "sh"]).arg(&dissect).args(args).arg(&file);
        let cost = cost::run(&mut command)?;
        let peak = cost.peak as f64 / MIB;
        let name = match args {
            ["-r"] => "memory, one line a packet".to_owned(),
            other => format!("memory, {}", other.join(" ")),
        };
        line(&name, peak, "MiB", json!("64 or less"), Some(peak <= 64.0));
    }
    let peak = cost::run(Command::new(&dissect).arg("-r").arg(&file).args(FIELDS))?.peak as f64 / MIB;
    line("memory, -T fields", peak, "MiB", json!("64 or less"), Some(peak <= 64.0));

    let small = dir.path().join("small.pcap");
    Traffic { packets: 1, ..Traffic::default() }.write_file(&small)?;
    let mut start = f64::MAX;
    for _ in 0..20 {
        start = cost::run(Command::new(&dissect).arg("-r").arg(&small))?.wall.as_secs_f64().min(start);
    }
    line("start-up on a file of one packet", start * 1e3, "ms", json!("10 or less"), Some(start <= 0.010));

    // rounds take turns, so that what else the machine does falls on all of them
    let tshark = Command::new("tshark").arg("--version").output().is_ok_and(|o| o.status.success());
    let (mut ours, mut theirs, mut bare, mut read): (Option<Cost>, Option<Cost>, _, _) =
        (None, None, f64::MAX, f64::MAX);
    for round in 1..=ROUNDS {
        eprintln!("round {round} of {ROUNDS}");
        let cost = cost::run(Command::new(&dissect).arg("-r").arg(&file).args(FIELDS))?;
        cheaper(&mut ours, cost);
        if tshark && round < ROUNDS {
            let count = TSHARK_PACKETS.min(packets).to_string();
            cheaper(
                &mut theirs,
                cost::run(Command::new("tshark").args(["-c", &count]).arg("-r").arg(&file).args(FIELDS))?,
            );
        }
        let (time, n) = cost::bare_loop(&file)?;
        ensure!(n == packets, "the bare loop saw {n} of {packets} packets");
        bare = time.as_secs_f64().min(bare);
        let start = cost::cpu()?;
        let mut reader = Reader::open(&file)?;
        while reader.next()?.is_some() {}
        ensure!(reader.packets() == packets, "the reader saw {} of {packets} packets", reader.packets());
        read = (cost::cpu()? - start).as_secs_f64().min(read);
    }
    let ours = ours.context("no round")?;
    let rate = packets as f64 / ours.cpu.as_secs_f64();
    line("-T fields, three fields", rate / 1e6, "million packets per CPU second", Value::Null, None);
    line(
        "-T fields, three fields, wall",
        packets as f64 / ours.wall.as_secs_f64() / 1e6,
        "million packets/s",
        Value::Null,
        None,
    );
    match theirs {
        Some(t) => {
            let other = TSHARK_PACKETS.min(packets) as f64 / t.cpu.as_secs_f64();
            line("tshark, the same", other / 1e6, "million packets per CPU second", Value::Null, None);
            let times = rate / other;
            line("-T fields beside tshark", times, "x", json!("60 or more"), Some(times >= 60.0));
        }
        None => eprintln!("no tshark here: not compared"),
    }
    line(
        "bare loop over the mapped file",
        packets as f64 / bare / 1e6,
        "million packets per CPU second",
        Value::Null,
        None,
    );
    line("reader alone, of the bare loop", bare / read * 100.0, "%", Value::Null, None);

    println!("{}", serde_json::to_string(&lines)?);
    Ok(())
}

fn cheaper(best: &mut Option<Cost>, cost: Cost) {
    if best.is_none_or(|b| cost.cpu < b.cpu) {
        *best = Some(cost);
    }
}

/// The program under test, which is built into the same folder.
fn beside(name: &str) -> Result<PathBuf> {
    let me = std::env::current_exe()?;
    let path = me.with_file_name(name);
    ensure!(path.exists(), "{} is not built: cargo build --release -p dissector", path.display());
    Ok(path)
}

fn packets(dir: &Path) -> u64 {
    if let Some(n) = std::env::var("ROCE_BENCH_PACKETS").ok().and_then(|v| v.parse().ok()) {
        return n;
    }
    let disk = nix::sys::statvfs::statvfs(dir).map_or(0, |s| s.blocks_available() * s.fragment_size());
    let memory = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|t| {
            t.lines().find_map(|l| l.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse().ok())
        })
        .unwrap_or(0_u64)
        * 1024;
    // the file must stay in the page cache, or the disk is what is measured
    if disk > 12 << 30 && memory > 8 << 30 { 5_000_000 } else { 1_000_000 }
}
