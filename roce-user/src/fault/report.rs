//! A run in words, as JSON, as JUnit, and its packets as pcapng.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::BuildHasher;
use std::path::Path;

use dissector::capture::{Interface as CaptureInterface, PacketOptions, Record, WriteError, Writer};
use dissector::frame::{Frame, LinkType};
use dissector::wire::{Op, ROCE_UDP_PORT};
use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use roce_ebpf::abi::fault::{Action, DIRECTION_OUT, FaultTally};
use serde::Serialize;

use super::command::Ended;
use super::engine::Injection;
use super::judge::Check;
use super::rule::Rule;

/// A rule and what it did.
#[derive(Clone, Debug, Serialize)]
pub struct RuleRow {
    /// Name.
    pub name: String,
    /// What it does, in words.
    pub sentence: String,
    /// Packets that met its conditions.
    pub matched: u64,
    /// Packets that it changed (in a dry run: would have).
    pub injected: u64,
    /// Packets that it chose and could not change.
    pub not_applicable: u64,
}

/// An injection.
#[derive(Clone, Debug, Serialize)]
pub struct InjectionRow {
    /// Seconds since the epoch.
    pub at: f64,
    /// Name of the rule.
    pub rule: String,
    /// drop, ce, icrc …
    pub action: &'static str,
    /// in or out.
    pub direction: &'static str,
    /// Interface.
    pub interface: String,
    /// Source address.
    pub src: Option<String>,
    /// Destination address.
    pub dst: Option<String>,
    /// Destination queue pair.
    pub dest_qp: u32,
    /// Opcode, IBTA name.
    pub opcode: String,
    /// PSN.
    pub psn: u32,
    /// Which transmission of the PSN it was.
    pub occurrence: u32,
    /// Frame length before.
    pub length: u32,
    /// Header bytes before, hex.
    pub before: String,
    /// Header bytes after, hex; `None` for a packet that is gone.
    pub after: Option<String>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// Interfaces.
    pub interfaces: Vec<String>,
    /// Seconds since the epoch.
    pub started: f64,
    /// Seconds.
    pub duration_s: f64,
    /// A signal ended the run before its command did.
    pub interrupted: bool,
    /// Nothing was changed, only counted.
    pub dry_run: bool,
    /// All expectations held.
    pub passed: bool,
    /// Expectations.
    pub checks: Vec<Check>,
    /// Rules.
    pub rules: Vec<RuleRow>,
    /// The command.
    pub command: Option<Ended>,
    /// Packets that came by.
    pub packets: u64,
    /// RoCE packets among them.
    pub roce_packets: u64,
    /// Injections whose report was lost (they are counted in the rules).
    pub events_lost: u64,
    /// Injections beyond those listed.
    pub injections_omitted: u64,
    /// Injections.
    pub injections: Vec<InjectionRow>,
}

/// Name of an opcode, or its number.
pub fn opcode_name(byte: u32) -> String {
    u8::try_from(byte).ok().and_then(Op::of).map_or_else(|| format!("0x{byte:02x}"), |op| op.name.to_owned())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

fn part(bytes: &[u8], len: u32) -> &[u8] {
    bytes.get(..bytes.len().min(len as usize)).unwrap_or(bytes)
}

/// Rows of the rules.
pub fn rule_rows(rules: &[Rule], tallies: &[FaultTally]) -> Vec<RuleRow> {
    let name = |n: usize| rules.get(n).map_or_else(String::new, |r| format!("{:?}", r.name));
    rules
        .iter()
        .zip(tallies)
        .map(|(r, t)| RuleRow {
            name: r.name.clone(),
            sentence: r.sentence(name),
            matched: t.matched,
            injected: t.injected,
            not_applicable: t.not_applicable,
        })
        .collect()
}

/// Row of an injection. `interface` gives the name of an interface index.
pub fn injection_row(i: &Injection, rules: &[Rule], interface: impl Fn(u32) -> String) -> InjectionRow {
    let e = &i.event;
    let before = part(&e.before, e.before_len);
    let frame = Frame::parse(before, e.length as usize, LinkType::ETHERNET, ROCE_UDP_PORT);
    InjectionRow {
        at: i.at.seconds(),
        rule: rules.get(e.rule as usize).map_or_else(|| e.rule.to_string(), |r| r.name.clone()),
        action: Action::of(e.action).map_or("?", Action::name),
        direction: if e.direction == DIRECTION_OUT { "out" } else { "in" },
        interface: interface(e.ifindex),
        src: frame.net.map(|n| n.src.to_string()),
        dst: frame.net.map(|n| n.dst.to_string()),
        dest_qp: e.flow.dest_qp,
        opcode: opcode_name(e.opcode),
        psn: e.psn,
        occurrence: e.occurrence,
        length: e.length,
        before: hex(before),
        after: (e.after_len > 0).then(|| hex(part(&e.after, e.after_len))),
    }
}

impl Report {
    /// For people.
    pub fn text(&self) -> String {
        const SHOWN: usize = 20;
        let mut s = String::new();
        let dry = if self.dry_run { " (dry run: nothing was changed)" } else { "" };
        let _ = writeln!(
            s,
            "{}{dry}: {} RoCE packets of {} on {} in {:.3} s, seed {}",
            self.scenario,
            self.roce_packets,
            self.packets,
            self.interfaces.join(", "),
            self.duration_s,
            self.seed
        );
        for r in &self.rules {
            let _ = write!(s, "  rule {:<20} matched {:>8}  injected {:>8}", r.name, r.matched, r.injected);
            if r.not_applicable > 0 {
                let _ = write!(s, "  not applicable {}", r.not_applicable);
            }
            s.push('\n');
        }
        for i in self.injections.iter().take(SHOWN) {
            let _ = writeln!(
                s,
                "  {:>10.6} {} {}: {} {} → {} QP 0x{:06x} {} PSN {} (transmission {})",
                i.at - self.started,
                i.rule,
                i.direction,
                i.action,
                i.src.as_deref().unwrap_or("?"),
                i.dst.as_deref().unwrap_or("?"),
                i.dest_qp,
                i.opcode,
                i.psn,
                i.occurrence
            );
        }
        let more = self.injections.len().saturating_sub(SHOWN) as u64 + self.injections_omitted;
        if more > 0 {
            let _ = writeln!(s, "  … {more} more injections");
        }
        if self.events_lost > 0 {
            let _ = writeln!(
                s,
                "  {} injections are counted but not listed: their reports found no room",
                self.events_lost
            );
        }
        if let Some(c) = &self.command {
            let how = match (c.status, c.signal) {
                (Some(0), _) => "ended well".to_owned(),
                (Some(n), _) => format!("ended with status {n}"),
                (None, Some(n)) => format!("was ended by signal {n}"),
                (None, None) => "ended".to_owned(),
            };
            let whose = if self.interrupted { " (interrupted: ended together with this run)" } else { "" };
            let _ = writeln!(s, "  command {how} after {:.3} s{whose}", c.duration_s);
        }
        for c in &self.checks {
            let _ = writeln!(s, "  {} {}: {}", if c.ok { "ok  " } else { "FAIL" }, c.name, c.detail);
        }
        let verdict = match (self.interrupted, self.passed) {
            (true, _) => "interrupted: no verdict",
            (_, true) => "passed",
            _ => "FAILED",
        };
        let _ = writeln!(s, "{verdict}");
        s
    }

    /// For CI.
    pub fn junit(&self) -> Result<String, String> {
        let mut junit = Junit::new("roce-fault");
        let duration = std::time::Duration::try_from_secs_f64(self.duration_s).unwrap_or_default();
        junit.set_time(duration);
        let mut suite = TestSuite::new(self.scenario.clone());
        suite.set_time(duration);
        suite.add_property(("seed", self.seed.to_string().as_str()));
        suite.add_property(("interfaces", self.interfaces.join(",").as_str()));
        suite.add_property(("interrupted", if self.interrupted { "true" } else { "false" }));
        for c in &self.checks {
            let mut status =
                if c.ok { TestCaseStatus::success() } else { TestCaseStatus::non_success(NonSuccessKind::Failure) };
            if !c.ok {
                status.set_message(c.detail.clone()).set_type("expectation");
            }
            let mut case = TestCase::new(c.name.clone(), status);
            case.set_classname(self.scenario.clone());
            case.set_system_out(c.detail.clone());
            suite.add_test_case(case);
        }
        if let Some(c) = self.command.as_ref().filter(|c| c.code() != 0) {
            // the status may be expected; the checks say so, this is for the reader
            suite.set_system_err(format!("{:?} ended with {}", c.argv, c.code()));
        }
        junit.add_test_suite(suite);
        junit.to_string().map_err(|e| e.to_string())
    }
}

/// Writes one packet an injection: as it was for a drop, as it went on for anything else, with a comment that names the
/// rule. A packet that is not in `frames` is written as far as its headers were reported.
pub fn pcap(
    path: &Path,
    injections: &[Injection],
    frames: &HashMap<u64, Vec<u8>, impl BuildHasher>,
    rules: &[Rule],
    interfaces: &[(u32, String)],
) -> Result<(), WriteError> {
    let mut writer = Writer::create(path, None)?;
    let described: Vec<CaptureInterface> = interfaces
        .iter()
        .map(|(_, name)| {
            let mut i = CaptureInterface::new(LinkType::ETHERNET.0, 0);
            i.name = Some(name.clone());
            i.ts_resolution = 9;
            i
        })
        .collect();
    for (n, i) in (1u64..).zip(injections) {
        let e = &i.event;
        let gone = e.after_len == 0;
        let (head, wire_len) = if gone {
            (part(&e.before, e.before_len), e.length)
        } else {
            (part(&e.after, e.after_len), e.length_after)
        };
        let bytes = frames.get(&e.serial).filter(|f| f.len() >= head.len()).map_or(head, Vec::as_slice);
        let rule = rules.get(e.rule as usize).map_or("?", |r| r.name.as_str());
        let action = Action::of(e.action).map_or("?", Action::name);
        let shown = if gone { "as it was" } else { "as it went on" };
        let mut comment =
            format!("rule {rule:?}: {action}, transmission {} of PSN {}; the packet {shown}", e.occurrence, e.psn);
        if !gone {
            // what changed, as far as the reported headers show it
            let _ = changes(&mut comment, part(&e.before, e.before_len), part(&e.after, e.after_len));
        }
        if bytes.len() < wire_len as usize {
            let _ = write!(comment, "; cut to {} of {wire_len} bytes by roce-fault", bytes.len());
        }
        let options = option(1, comment.as_bytes());
        let slot = interfaces.iter().position(|(x, _)| *x == e.ifindex).unwrap_or(0);
        let record = Record {
            number: n,
            at: i.at,
            interface: u32::try_from(slot).unwrap_or(0),
            link: LinkType::ETHERNET.0,
            bytes,
            wire_len: wire_len.max(u32::try_from(bytes.len()).unwrap_or(0)),
            options: PacketOptions::new(&options, false),
        };
        writer.write(&record, &described)?;
    }
    writer.finish()
}

/// The bytes that differ, as "byte 15: 02 -> 03".
fn changes(s: &mut String, before: &[u8], after: &[u8]) -> std::fmt::Result {
    const SHOWN: usize = 8;
    let differing = before.iter().zip(after).enumerate().filter(|(_, (b, a))| a != b);
    for (n, (at, (b, a))) in differing.enumerate() {
        match n {
            0 => write!(s, "; byte {at}: {b:02x} -> {a:02x}")?,
            SHOWN.. => return write!(s, ", ..."),
            _ => write!(s, ", byte {at}: {b:02x} -> {a:02x}")?,
        }
    }
    if before.len() > after.len() {
        write!(s, "; shorter than it was")?;
    }
    Ok(())
}

/// A pcapng option, little-endian, padded to four bytes.
fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let len = value.len().min(4096);
    let mut out = code.to_le_bytes().to_vec();
    out.extend(u16::try_from(len).unwrap_or(0).to_le_bytes());
    out.extend(value.iter().take(len));
    out.resize(out.len().next_multiple_of(4), 0);
    out
}
