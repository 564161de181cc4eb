//! The analysis against captures of a kernel that somebody else wrote: for every row of
//! `captures/INDEX.md`, whose numbers were found by another program, the same numbers come out here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dissector::capture::{Reader, Timestamp};
use dissector::cli::analyse;
use dissector::flow::asides::DEFAULT_GBIT;
use dissector::flow::finding::{self, Severity};
use dissector::flow::row::Endpoint;
use dissector::flow::{Analyzer, Place};
use dissector::frame::{Frame, LinkType, icrc};
use dissector::wire::opcode::{Header, Op, ROWS};
use dissector::wire::{Kind, Position, ROCE_UDP_PORT, Role};
use libtest_mimic::{Arguments, Failed, Trial};

/// One row of the index.
struct Row {
    file: String,
    packets: u64,
    roce: u64,
    dest_qps: u64,
    opcodes: BTreeMap<String, u64>,
    notable: String,
}

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captures")
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(captures().join("INDEX.md")).expect("captures/INDEX.md is there");
    text.lines()
        .filter_map(|l| l.strip_prefix("| "))
        .map(|l| l.trim_end_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>())
        .filter(|c| c.first().is_some_and(|f| f.ends_with(".pcap")))
        .map(|c| Row {
            file: c[0].to_owned(),
            packets: c[2].parse().expect("a number of packets"),
            roce: c[3].parse().expect("a number of RoCE packets"),
            dest_qps: c[4].parse().expect("a number of QPs"),
            opcodes: c[5]
                .split_whitespace()
                .map(|o| o.rsplit_once(':').expect("NAME:COUNT"))
                .map(|(n, v)| (n.to_owned(), v.parse().expect("a count")))
                .collect(),
            notable: c.get(6).copied().unwrap_or("").to_owned(),
        })
        .collect()
}

impl Row {
    /// The number behind a phrase such as `RNR NAK x`, 0 without it.
    fn number(&self, phrase: &str) -> u64 {
        let Some(at) = self.notable.find(phrase) else { return 0 };
        let digits: String =
            self.notable[at + phrase.len()..].trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }
}

/// The index's spelling of an opcode.
fn spelled(op: &Op) -> String {
    let kind = match op.kind {
        Kind::Send => "SEND",
        Kind::Write => "WRITE",
        Kind::ReadRequest => return format!("{}_READ_REQUEST", op.transport.name()),
        Kind::ReadResponse => "READ_RESP",
        Kind::Ack => return format!("{}_ACK", op.transport.name()),
        Kind::AtomicAck => return format!("{}_ATOMIC_ACK", op.transport.name()),
        Kind::Atomic if op.name.contains("CmpSwap") => return format!("{}_CMP_SWAP", op.transport.name()),
        Kind::Atomic => return format!("{}_FETCH_ADD", op.transport.name()),
        Kind::Flush => return format!("{}_FLUSH", op.transport.name()),
        Kind::AtomicWrite => return format!("{}_ATOMIC_WRITE", op.transport.name()),
        Kind::Resync => "RESYNC",
        Kind::Cnp => return "CNP".to_owned(),
    };
    let position = match op.position {
        Position::First => "FIRST",
        Position::Middle => "MIDDLE",
        Position::Last => "LAST",
        Position::Only => "ONLY",
    };
    let tail = if op.has(Header::ImmDt) {
        "_IMM"
    } else if op.has(Header::Ieth) {
        "_INV"
    } else {
        ""
    };
    format!("{}_{kind}_{position}{tail}", op.transport.name())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T, wrong: &mut Vec<String>) {
    if got != want {
        wrong.push(format!("{what}: got {got:?}, the index says {want:?}"));
    }
}

fn compare(row: &Row) -> Result<(), Failed> {
    let read = analyse::read(&captures().join(&row.file), true, ROCE_UDP_PORT, DEFAULT_GBIT, &mut ())?;
    if let Some(e) = read.error {
        return Err(e.to_string().into());
    }
    let a = &read.analyzer;
    let flows = a.rows();
    let sum = |f: fn(&dissector::flow::row::FlowRow) -> u64| flows.iter().map(f).sum::<u64>();
    let wrong = &mut Vec::new();
    same("packets", a.totals().packets, row.packets, wrong);
    same("RoCE packets", a.totals().roce_packets, row.roce, wrong);
    same("sum over flows and overflow", sum(|f| f.packets) + a.totals().overflow_packets, row.roce, wrong);
    for (l, f) in a.lines().zip(&flows) {
        let id = f.id;
        same(
            &format!("opcodes of flow {id}"),
            f.opcodes.iter().map(|o| o.1).sum::<u64>() + l.disbelieved,
            f.packets,
            wrong,
        );
        same(&format!("verdicts of flow {id}"), f.icrc.good + f.icrc.bad + f.icrc.unchecked, f.packets, wrong);
        same(&format!("ECN of flow {id}"), f.ecn.not_ect + f.ecn.ect0 + f.ecn.ect1 + f.ecn.ce, f.packets, wrong);
    }
    let mut opcodes = BTreeMap::new();
    for (o, n) in flows.iter().flat_map(|f| f.opcodes.iter()) {
        let op = ROWS.iter().find(|r| r.byte == o).expect("the captures have no reserved opcodes");
        *opcodes.entry(spelled(op)).or_insert(0) += n;
    }
    same("opcodes", opcodes, row.opcodes.clone(), wrong);
    let mut qps: Vec<_> =
        flows.iter().filter(|f| f.packets > f.icrc.bad || f.icrc.bad == 0).map(|f| (f.src, f.dest_qp)).collect();
    qps.sort_unstable();
    qps.dedup();
    same("destination QPs", qps.len() as u64, row.dest_qps, wrong);
    let again = |role| {
        a.flows()
            .filter(|f| if role == Role::Request { f.requests > 0 } else { f.responses > 0 && f.requests == 0 })
            .map(|f| f.retransmitted + f.duplicates)
            .sum::<u64>()
    };
    let (requests, responses) = (row.number("request PSNs seen again: "), row.number("response PSNs seen again: "));
    same("PSNs seen again", sum(|f| f.retransmitted + f.duplicates), requests + responses, wrong);
    // a flow that asks and answers mixes both in its numbers
    if !a.flows().any(|f| f.requests > 0 && f.responses > 0) {
        same("requests seen again", again(Role::Request), requests, wrong);
        same("responses seen again", again(Role::Response), responses, wrong);
    }
    same("sequence NAKs", sum(|f| f.naks.psn_sequence_error), row.number("PSN sequence error x"), wrong);
    same("invalid request NAKs", sum(|f| f.naks.invalid_request), row.number("invalid request x"), wrong);
    same("remote access NAKs", sum(|f| f.naks.remote_access_error), row.number("remote access error x"), wrong);
    same("RNR NAKs", sum(|f| f.rnr_naks), row.number("RNR NAK x"), wrong);
    same("CE", sum(|f| f.ecn.ce), row.number("ECN CE: "), wrong);
    same("ECT", sum(|f| f.ecn.ect0 + f.ecn.ect1), row.number("ECT: "), wrong);
    // right by nobody's rule but rxe's
    let flushes = row.number("FLUSH with rxe's own ICRC (headers counted twice, not the standard's): ");
    same("wrong ICRCs", sum(|f| f.icrc.bad), row.number("ICRC wrong: ") + flushes, wrong);
    // what never arrived where it was recorded: UC keeps its holes, of which those at the end do not show
    let never = row.number("not in the file: ");
    let missing = sum(|f| f.missing);
    let keeps = row.opcodes.keys().any(|o| o.starts_with("UC_"));
    let lost = ["loss_net_send.pcap", "corrupt_a_send.pcap"].contains(&row.file.as_str());
    if keeps && never > 0 {
        same("missing, most of what is not in the file", missing > 0 && missing <= never, true, wrong);
    } else if !lost {
        same("missing", missing, 0, wrong);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// What the words of the index ask for, whatever the capture: one of these findings.
const ASKS: &[(&str, &[&str])] = &[
    ("PSN sequence error x", &["loss", "reordering", "rnr"]),
    ("invalid request x", &["nak-invalid-request"]),
    ("remote access error x", &["nak-remote-access"]),
    ("remote operational error x", &["nak-remote-operational"]),
    ("RNR NAK x", &["rnr"]),
    (
        "PSNs seen again: ",
        &["loss", "needless-retransmission", "network-duplicates", "reordering", "rnr", "retry-exceeded"],
    ),
    ("ICRC wrong: ", &["bad-icrc"]),
    ("ECN CE: ", &["ce-without-cnp"]),
    ("REJ x", &["cm-reject"]),
    (" retry_exceeded_err", &["retry-exceeded"]),
    ("retry_rnr_exceeded_err", &["rnr-retry-exceeded"]),
    ("drops the first connection requests", &["cm-repeated-request"]),
    ("UC: gaps stay", &["loss"]),
    ("UC has no repair", &["reordering"]),
    ("about the first PSN", &["psn-disagree"]),
];

/// What the names of scenarios ask for.
const STORIES: &[(&str, &str)] = &[
    ("dup_", "network-duplicates"),
    ("loss_ack_send", "needless-retransmission"),
    ("loss_in_one_by_one", "timeouts"),
    ("loss_in_send", "loss"),
    ("loss_in_write", "loss"),
    ("loss_net_send", "loss"),
    ("loss_both_ends", "loss"),
    ("loss_read_response", "loss"),
    ("reorder_", "reordering"),
    ("timeout_acks_lost", "needless-retransmission"),
];

fn story(row: &Row) -> Result<(), Failed> {
    let read = analyse::read(&captures().join(&row.file), true, ROCE_UDP_PORT, DEFAULT_GBIT, &mut ())?;
    let findings = finding::check(&read.analyzer);
    let told: String = findings
        .iter()
        .map(|f| {
            let (severity, code) = (f.severity.name(), f.code);
            format!("{severity} [{code}] {}\n    {}\n    {:?} {:?}\n", f.title, f.detail, f.flow, f.packets)
        })
        .collect();
    for f in &findings {
        if f.packets.iter().any(|n| *n == 0 || *n > row.packets) || !f.packets.is_sorted() {
            return Err(format!("packets of a finding are not of the capture, or not in order:\n{told}").into());
        }
        if f.flow.is_some_and(|id| read.analyzer.flow(id).is_none()) {
            return Err(format!("a finding about no flow:\n{told}").into());
        }
    }
    let bad: Vec<&str> = findings.iter().filter(|f| f.severity > Severity::Note).map(|f| f.code).collect();
    // its recorder lost nothing, by the counters of the machines
    if !row.notable.contains("not in the file") && findings.iter().any(|f| f.code == "capture-incomplete") {
        return Err(format!("nothing is missing in this capture, but:\n{told}").into());
    }
    let asks: Vec<&[&str]> =
        ASKS.iter().filter(|(words, _)| row.notable.contains(words)).map(|(_, codes)| *codes).collect();
    let clean = asks.is_empty();
    if clean && !bad.is_empty() {
        return Err(format!("a clean capture, but:\n{told}").into());
    }
    for codes in asks {
        if !codes.iter().any(|c| bad.contains(c)) {
            return Err(format!("none of {codes:?} among:\n{told}").into());
        }
    }
    for (prefix, code) in STORIES.iter().filter(|(prefix, _)| row.file.starts_with(prefix) && !clean) {
        if !bad.contains(code) {
            return Err(format!("no `{code}`, as {prefix} asks for, among:\n{told}").into());
        }
    }
    Ok(())
}

/// One thread or four, the whole file or its chunks: the same answers, to the letter.
fn threads(row: &Row) -> Result<(), Failed> {
    let told = |threads| -> Result<String, Failed> {
        let file = captures().join(&row.file);
        let read = analyse::read_with(&file, true, ROCE_UDP_PORT, DEFAULT_GBIT, threads, &mut ())?;
        let lines: Vec<_> = read.analyzer.lines().collect();
        Ok(serde_json::to_string(&(lines, finding::check(&read.analyzer)))?)
    };
    if told(1)? == told(4)? { Ok(()) } else { Err("one thread and four give different answers".into()) }
}

/// What may be done to a clean capture without anything having gone wrong on the wire.
const HARMLESS: &[(&str, fn(&[Kept]) -> Vec<Kept>)] = &[
    ("recorded twice", |all| all.iter().flat_map(|k| [k.clone(), Kept { at: k.at + 2_000, ..k.clone() }]).collect()),
    ("recorded before the first host's ICRCs were written", |all| {
        let first = all.iter().find_map(Kept::source);
        let mut all = all.to_vec();
        for k in all.iter_mut().filter(|k| k.source().is_some() && k.source() == first) {
            if let Some(end) = k.end() {
                k.bytes[end - 4..end].fill(0);
            }
        }
        all
    }),
    ("at both ends, clocks 80 us apart", |all| both_ends(all, 80_000)),
    ("at both ends, clocks 3 ms apart", |all| both_ends(all, 3_000_000)),
    ("at both ends, clocks 70 ms apart", |all| both_ends(all, 70_000_000)),
    ("ended after a third", |all| all[..all.len() / 3].to_vec()),
    ("ended after two thirds", |all| all[..all.len() * 2 / 3].to_vec()),
    ("begun after a third", |all| all[all.len() / 3..].to_vec()),
    ("begun after two thirds", |all| all[all.len() * 2 / 3..].to_vec()),
    ("cut at 64 bytes", |all| {
        let short = |k: &Kept| k.bytes[..k.bytes.len().min(64)].to_vec();
        all.iter().map(|k| Kept { bytes: short(k), ..k.clone() }).collect()
    }),
    ("without the other direction", |all| {
        let first = all.iter().find_map(Kept::source);
        all.iter().filter(|k| k.source().is_none() || k.source() == first).cloned().collect()
    }),
    ("without the first direction", |all| {
        let first = all.iter().find_map(Kept::source);
        all.iter().filter(|k| k.source().is_none() || k.source() != first).cloned().collect()
    }),
];

/// The capture of one end and that of the other, whose clock is so many ns ahead, merged by time.
fn both_ends(all: &[Kept], ahead: i64) -> Vec<Kept> {
    let other = all.iter().map(|k| Kept { at: k.at + ahead, ..k.clone() });
    let mut merged: Vec<Kept> = all.iter().cloned().chain(other).collect();
    merged.sort_by_key(|k| k.at);
    merged
}

/// A packet of a capture, to be changed.
#[derive(Clone)]
struct Kept {
    at: i64,
    bytes: Vec<u8>,
    wire_len: usize,
    link: LinkType,
}

impl Kept {
    fn all(file: &str) -> Result<Vec<Self>, Failed> {
        let mut reader = Reader::open(captures().join(file))?;
        let mut all = Vec::new();
        while let Some(r) = reader.next()? {
            let (bytes, wire_len) = (r.bytes.to_vec(), r.wire_len as usize);
            all.push(Self { at: r.at.0, bytes, wire_len, link: LinkType(r.link) });
        }
        Ok(all)
    }

    fn frame(&self) -> Frame<'_> {
        Frame::parse(&self.bytes, self.wire_len, self.link, ROCE_UDP_PORT)
    }

    /// Who sent it, if it is RoCE.
    fn source(&self) -> Option<std::net::IpAddr> {
        let frame = self.frame();
        frame.packet()?.ok()?;
        match frame.net?.src {
            Endpoint::Ip(a) => Some(a),
            Endpoint::Lid(_) => None,
        }
    }

    /// Where its ICRC ends, if it is there.
    fn end(&self) -> Option<usize> {
        let frame = self.frame();
        let packet = frame.packet()?.ok()?;
        let found = packet.icrc?;
        (0..self.bytes.len().checked_sub(3)?).rev().find(|i| self.bytes[*i..i + 4] == *found).map(|i| i + 4)
    }
}

/// A clean capture stays clean however it was recorded.
fn harmless(row: &Row) -> Result<(), Failed> {
    let findings = |all: &[Kept]| {
        let mut a = Analyzer::default();
        for (n, k) in all.iter().enumerate() {
            let place = Place { number: n as u64 + 1, at: Timestamp(k.at) };
            let frame = k.frame();
            match frame.packet() {
                Some(Ok(p)) => {
                    a.push(place, &frame, &p, icrc::verify(&frame, &p));
                }
                _ => a.other(place, &frame),
            }
        }
        a.settle();
        let mut bad = finding::check(&a);
        bad.retain(|f| f.severity > Severity::Note);
        bad
    };
    let all = Kept::all(&row.file)?;
    if !findings(&all).is_empty() {
        return Ok(());
    }
    let mut wrong = Vec::new();
    for (what, change) in HARMLESS {
        for f in findings(&change(&all)) {
            wrong.push(format!("{what}: {} [{}] {} {:?}", f.severity.name(), f.code, f.title, f.packets));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn main() {
    let arguments = Arguments::from_args();
    let trials = rows()
        .into_iter()
        .zip(rows())
        .zip(rows())
        .zip(rows())
        .flat_map(|(((a, b), c), d)| {
            [
                Trial::test(format!("recordings of {}", d.file), move || harmless(&d)),
                Trial::test(format!("threads and {}", c.file), move || threads(&c)),
                Trial::test(format!("numbers of {}", a.file), move || compare(&a)),
                Trial::test(format!("findings of {}", b.file), move || story(&b)),
            ]
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
