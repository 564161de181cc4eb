//! `flows` against a bare loop over the same mapped file, and whether it finds every fault that was put in.
//! Ratios of CPU time within one run; the file is in the page cache.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use dissector::capture::{Reader, Timestamp};
use dissector::cli::analyse;
use dissector::flow::asides::DEFAULT_GBIT;
use dissector::flow::{Analyzer, Place};
use dissector::frame::{Frame, LinkType, icrc};
use dissector::wire::{Header, Kind, ROCE_UDP_PORT};
use roce_tests::synth::Traffic;
use serde_json::json;

/// Packets of the file: 1 GB, which stays in the page cache.
const PACKETS: u64 = 1_000_000;
/// Packets with faults among them.
const FAULTY: u64 = 10_000_000;
const ROUNDS: usize = 5;

fn cpu() -> Duration {
    let t =
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("every process has a CPU clock");
    Duration::new(t.tv_sec().unsigned_abs(), u32::try_from(t.tv_nsec()).unwrap_or(0))
}

fn timed(f: impl FnOnce() -> Result<u64>) -> Result<(f64, f64)> {
    let (wall, start) = (std::time::Instant::now(), cpu());
    let packets = f()?;
    anyhow::ensure!(packets == PACKETS, "{packets} of {PACKETS} packets were read");
    Ok(((cpu() - start).as_secs_f64(), wall.elapsed().as_secs_f64()))
}

/// What any reader must do: follow the records and look at the headers of each packet.
fn bare(file: &Path) -> Result<u64> {
    let f = std::fs::File::open(file)?;
    // SAFETY: the file is this program's own and nobody changes it while it is mapped.
    let map = unsafe { memmap2::Mmap::map(&f)? };
    let mut rest = map.get(24..).context("a pcap header")?;
    let (mut n, mut sum) = (0u64, 0u64);
    while let Some((head, after)) = rest.split_first_chunk::<16>() {
        let [.., a, b, c, d, _, _, _, _] = *head;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        let Some((packet, next)) = after.split_at_checked(len) else { break };
        if let Some(headers) = packet.first_chunk::<64>() {
            sum = sum.wrapping_add(headers.iter().map(|b| u64::from(*b)).sum::<u64>());
        }
        n += 1;
        rest = next;
    }
    std::hint::black_box(sum);
    Ok(n)
}

fn flows(file: &Path, verify: bool, threads: usize) -> Result<u64> {
    let read = analyse::read_with(file, verify, ROCE_UDP_PORT, DEFAULT_GBIT, threads, &mut ())?;
    std::hint::black_box(read.analyzer.rows());
    Ok(read.analyzer.totals().packets)
}

/// Reading alone, and down to the transport packet: what is left to the analysis.
fn reading(file: &Path, parse: bool) -> Result<u64> {
    let mut reader = Reader::open(file)?;
    while let Some(r) = reader.next()? {
        if parse {
            let frame = Frame::parse(r.bytes, r.wire_len as usize, LinkType(r.link), ROCE_UDP_PORT);
            std::hint::black_box(frame.packet());
        } else {
            std::hint::black_box(r.bytes.first());
        }
    }
    Ok(reader.packets())
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v.get(v.len() / 2).copied().unwrap_or(0.0)
}

fn main() -> Result<()> {
    // as roce-dissect does
    dissector::capture::mapped::enable();
    let folder = tempfile::tempdir_in(std::env::temp_dir())?;
    let file = folder.path().join("writes.pcap");
    let size = Traffic { packets: PACKETS, ..Traffic::default() }.write_file(&file)?;
    eprintln!("{PACKETS} packets, {size} bytes");
    let (mut read, mut parse) = (vec![], vec![]);
    let (mut off, mut on, mut two, mut rate) = (vec![], vec![], vec![], vec![]);
    bare(&file)?;
    for round in 0..ROUNDS {
        let (base, _) = timed(|| bare(&file))?;
        let (r, _) = timed(|| reading(&file, false))?;
        let (p, _) = timed(|| reading(&file, true))?;
        let (a, _) = timed(|| flows(&file, false, 1))?;
        let (b, wall_one) = timed(|| flows(&file, true, 1))?;
        let (_, wall_two) = timed(|| flows(&file, true, 2))?;
        eprintln!(
            "round {round}: bare {base:.3} s, reading {r:.3} s, frames {p:.3} s, without ICRC {a:.3} s, with ICRC {b:.3} s of CPU"
        );
        read.push(base / r * 100.0);
        parse.push(base / p * 100.0);
        off.push(base / a * 100.0);
        on.push(base / b * 100.0);
        two.push(wall_one / wall_two);
        rate.push(PACKETS as f64 / a / 1e6);
    }
    let (off, on) = (median(off), median(on));
    let (precision, recall, injected) = faults()?;
    eprintln!("{injected} faults among {FAULTY} packets");
    let lines = json!([
        {"name": "flows --no-icrc, of the bare loop", "value": off, "unit": "%", "target": 60, "ok": off >= 60.0},
        {"name": "flows with every ICRC, of the bare loop", "value": on, "unit": "%", "target": 35, "ok": on >= 35.0},
        {"name": "reading records only, of the bare loop", "value": median(read), "unit": "%", "target": null, "ok": null},
        {"name": "records, frames and headers, of the bare loop", "value": median(parse), "unit": "%", "target": null, "ok": null},
        {"name": "flows --no-icrc, one thread", "value": median(rate), "unit": "M packets/CPU s", "target": null, "ok": null},
        {"name": "two threads against one, with ICRC", "value": median(two), "unit": "x", "target": null, "ok": null},
        {"name": "seeded faults: recall", "value": recall * 100.0, "unit": "%", "target": 100, "ok": recall >= 1.0},
        {"name": "seeded faults: precision", "value": precision * 100.0, "unit": "%", "target": 100, "ok": precision >= 1.0},
    ]);
    println!("{lines:#}");
    Ok(())
}

/// What can be done to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Lost,
    Copied,
    SentAgain,
    Late,
    Marked,
    Broken,
}

const FAULTS: [Fault; 6] = [Fault::Lost, Fault::Copied, Fault::SentAgain, Fault::Late, Fault::Marked, Fault::Broken];

/// Counters of faults, in the order missing, duplicates, retransmitted, reordered, CE, wrong ICRC.
type Counts = [u64; 6];

/// A hash of the packet's number decides, so that every run is the same.
fn mixed(n: u64) -> u64 {
    let x = (n ^ 0x5eed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ x >> 32
}

/// One of 512 packets is hurt; what the analysis counts is compared with what was done, flow by flow.
fn faults() -> Result<(f64, f64, u64)> {
    let mut world = World { analyzer: Analyzer::default(), number: 0, done: vec![], held: None };
    let traffic = Traffic { packets: FAULTY, payload: 128, connections: 256, ..Traffic::default() };
    let mut n = 0u64;
    let last = FAULTY - 256 * 40;
    traffic.each(|(at, bytes)| {
        n += 1;
        let at = Timestamp(i64::try_from(at).unwrap_or(0));
        let h = mixed(n);
        // neither the first packets of a flow nor the last: nothing would show that one is missing there
        let fault = (h % 512 == 0 && n > 256 * 40 && n < last).then(|| FAULTS[(h >> 32) as usize % FAULTS.len()]);
        world.packet(at, bytes, fault);
        Ok(())
    })?;
    let rows = world.analyzer.rows();
    let (mut hit, mut found, mut injected) = (0u64, 0u64, 0u64);
    for r in &rows {
        let got: Counts = [r.missing, r.duplicates, r.retransmitted, r.reordered, r.ecn.ce, r.icrc.bad];
        let want = world.done.get(r.id as usize).copied().unwrap_or_default();
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            hit += g.min(w);
            found += g;
            injected += w;
            if g != w {
                eprintln!("flow {}: {:?} done {w} times, {g} found", r.id, FAULTS.get(i));
            }
        }
    }
    Ok((hit as f64 / found.max(1) as f64, hit as f64 / injected.max(1) as f64, injected))
}

struct World {
    analyzer: Analyzer,
    number: u64,
    done: Vec<Counts>,
    /// A packet that comes after the next one of its flow.
    held: Option<(Vec<u8>, u32)>,
}

impl World {
    fn deliver(&mut self, at: Timestamp, bytes: &[u8]) -> Option<u32> {
        self.number += 1;
        let frame = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
        let packet = frame.packet()?.ok()?;
        let verdict = icrc::verify(&frame, &packet);
        self.analyzer.push(Place { number: self.number, at }, &frame, &packet, verdict).flow
    }

    fn note(&mut self, flow: Option<u32>, what: &[usize]) {
        let Some(id) = flow else { return };
        if self.done.len() <= id as usize {
            self.done.resize(id as usize + 1, Counts::default());
        }
        for w in what {
            if let Some(n) = self.done.get_mut(id as usize).and_then(|c| c.get_mut(*w)) {
                *n += 1;
            }
        }
    }

    fn packet(&mut self, at: Timestamp, bytes: &[u8], fault: Option<Fault>) {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
        let Some(Ok(packet)) = frame.packet() else { return };
        let data = packet.op.is_some_and(|o| o.kind == Kind::Write);
        // the flow of this packet without counting it anywhere: by its key
        let qp = packet.bth.dest_qp().get();
        let release = self.held.as_ref().is_some_and(|(_, q)| *q == qp) && data;
        let fault = fault.filter(|_| data && self.held.is_none());
        match fault {
            None | Some(Fault::Marked) => {
                let mut copy = bytes.to_vec();
                if fault.is_some()
                    && let Some(ip) = copy.get_mut(14..34)
                {
                    mark(ip);
                }
                let f = self.deliver(at, &copy);
                self.note(f, if fault.is_some() { &[4] } else { &[] });
            }
            Some(Fault::Lost) => {
                let id = self.flow_of(qp);
                self.note(id, &[0]);
            }
            Some(Fault::Copied) => {
                self.deliver(at, bytes);
                let f = self.deliver(at, bytes);
                self.note(f, &[1]);
            }
            Some(Fault::SentAgain) => {
                self.deliver(at, bytes);
                let mut again = bytes.to_vec();
                renumber(&mut again);
                let f = self.deliver(Timestamp(at.0 + 500), &again);
                self.note(f, &[2]);
            }
            Some(Fault::Late) => {
                self.held = Some((bytes.to_vec(), qp));
            }
            Some(Fault::Broken) => {
                let mut broken = bytes.to_vec();
                let middle = broken.len() - 40;
                if let Some(b) = broken.get_mut(middle) {
                    *b ^= 0x10;
                }
                let f = self.deliver(at, &broken);
                // nobody believes it, so its PSN never came
                self.note(f, &[5, 0]);
            }
        }
        if release
            && fault.is_none()
            && let Some((late, _)) = self.held.take()
        {
            let f = self.deliver(Timestamp(at.0 + 300), &late);
            self.note(f, &[3]);
        }
    }

    fn flow_of(&self, qp: u32) -> Option<u32> {
        self.analyzer.flows().find(|f| f.key.dest_qp == qp && f.requests > 0).map(|f| f.id)
    }
}

fn checksum(ip: &mut [u8]) {
    if let Some(c) = ip.get_mut(10..12) {
        c.fill(0);
    }
    let sum: u32 = ip.as_chunks::<2>().0.iter().map(|w| u32::from(u16::from_be_bytes(*w))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    if let Some(c) = ip.get_mut(10..12) {
        c.copy_from_slice(&sum.to_be_bytes());
    }
}

fn mark(ip: &mut [u8]) {
    if let Some(tos) = ip.get_mut(1) {
        *tos |= 3;
    }
    checksum(ip);
}

/// Another IP identification, as a sender gives it when it sends again, with the ICRC that belongs to it.
fn renumber(bytes: &mut Vec<u8>) {
    if let Some(ip) = bytes.get_mut(14..34) {
        if let Some([a, b]) = ip.get_mut(4..6) {
            [*a, *b] = (u16::from_be_bytes([*a, *b]).wrapping_add(7)).to_be_bytes();
        }
        checksum(ip);
    }
    let crc = {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
        frame.packet().and_then(Result::ok).and_then(|p| icrc::calculate(&frame, &p).ok())
    };
    let end = bytes.len();
    if let (Some(crc), Some(tail)) = (crc, bytes.get_mut(end - Header::Icrc.len()..)) {
        tail.copy_from_slice(&crc.to_le_bytes());
    }
}
