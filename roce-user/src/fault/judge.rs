//! The verdict: what was expected, what was seen. No clock, no file, no kernel in here.

use std::collections::HashMap;
use std::time::Duration;

use dissector::flow::row::Endpoint;
use dissector::flow::{Analyzer, Place};
use dissector::frame::icrc::{Verdict, Why};
use dissector::frame::{Frame, LinkType};
use dissector::wire::{Kind, Psn, Role};
use roce_ebpf::abi::fault::{Action, FaultCounters, FaultTally};
use serde::Serialize;

use super::command::Ended;
use super::engine::{Injection, Seen};
use super::rule::Rule;
use super::scenario::Expect;
use super::words::{Range, show_duration};

/// Packets that are remembered for the verdict; those beyond are counted, and the verdict says so.
pub const MOST_WITNESSED: usize = 1_000_000;

/// One expectation and whether it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name.
    pub name: String,
    /// Held.
    pub ok: bool,
    /// What was expected, and what was found.
    pub detail: String,
}

/// What matters about a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fact {
    at: i64,
    src: Endpoint,
    dst: Endpoint,
    dest_qp: u32,
    psn: Psn,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// In the sender's PSN space.
    Request,
    /// Data in the peer's.
    Response,
    SequenceNak,
    Cnp,
    Other,
}

fn fact(at: i64, bytes: &[u8], port: u16) -> Option<Fact> {
    let frame = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, port);
    let net = frame.net?;
    let packet = frame.packet()?.ok()?;
    let op = packet.op;
    let what = match op.map(|o| (o.kind, o.role())) {
        Some((Kind::Cnp, _)) => What::Cnp,
        // IBTA table 45, code 0
        Some((Kind::Ack, _)) if packet.ext.aeth.is_some_and(|a| a.syndrome().0 & 0x7f == 0x60) => What::SequenceNak,
        Some((Kind::Ack, _) | (_, Role::Notification)) | None => What::Other,
        Some((_, Role::Request)) => What::Request,
        Some((_, Role::Response)) => What::Response,
    };
    Some(Fact { at, src: net.src, dst: net.dst, dest_qp: packet.bth.dest_qp().get(), psn: packet.bth.psn(), what })
}

/// What was seen on the wire, as it left the faults.
#[derive(Debug)]
pub struct Witness {
    analyzer: Analyzer,
    facts: Vec<Fact>,
    omitted: u64,
    number: u64,
    port: u16,
}

impl Witness {
    /// `port` is the UDP port of RoCEv2.
    pub fn new(port: u16) -> Self {
        Self { analyzer: Analyzer::default(), facts: Vec::new(), omitted: 0, number: 0, port }
    }

    /// Takes a packet in, in the order of time.
    pub fn push(&mut self, seen: &Seen) {
        let length = seen.record.head.len().min(seen.record.head_len as usize);
        let head = seen.record.head.get(..length).unwrap_or(&[]);
        let wire = (seen.record.length as usize).max(length);
        // sent, if not received: a packet that a rule dropped is a transmission all the same
        if let Some(f) = fact(seen.at.0, head, self.port) {
            if self.facts.len() < MOST_WITNESSED { self.facts.push(f) } else { self.omitted += 1 }
        }
        if seen.record.dropped == 0 {
            self.number += 1;
            let frame = Frame::parse(head, wire, LinkType::ETHERNET, self.port);
            if let Some(Ok(packet)) = frame.packet() {
                let place = Place { number: self.number, at: seen.at };
                self.analyzer.push(place, &frame, &packet, Verdict::Unchecked(Why::Off));
            }
        }
    }
}

/// Everything that the verdict rests on.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// Rules of the scenario.
    pub rules: &'a [Rule],
    /// What they did.
    pub tallies: &'a [FaultTally],
    /// Losses of the engine.
    pub counters: FaultCounters,
    /// RoCE packets that came by.
    pub roce_packets: u64,
    /// Injections that were reported.
    pub injections: &'a [Injection],
    /// What went by, if it was watched.
    pub witness: Option<&'a mut Witness>,
    /// The command, if there was one.
    pub command: Option<&'a Ended>,
    /// Nothing was changed, only counted.
    pub dry: bool,
    /// A signal ended the run before its command did.
    pub interrupted: bool,
}

fn check(name: &str, ok: bool, detail: String) -> Check {
    Check { name: name.into(), ok, detail }
}

/// Judges a run.
pub fn judge(expect: &Expect, mut evidence: Evidence<'_>) -> Vec<Check> {
    let mut out = Vec::new();
    injections(expect, &evidence, &mut out);
    if !evidence.dry {
        command(expect, &evidence, &mut out);
        if let Some(w) = evidence.witness.take() {
            w.facts.sort_by_key(|f| f.at);
            wire(expect, &evidence, w, &mut out);
        }
    } else if let Some(c) = evidence.command
        && c.killed
    {
        out.push(not_ended(&evidence));
    }
    out
}

/// The command was ended by us.
fn not_ended(e: &Evidence<'_>) -> Check {
    let why = if e.interrupted {
        "the run was interrupted by a signal, and the command ended with it"
    } else {
        "the command did not end within the time limit and was killed"
    };
    check("command-ended", false, why.into())
}

fn injections(expect: &Expect, e: &Evidence<'_>, out: &mut Vec<Check>) {
    let total: u64 = e.tallies.iter().map(|t| t.injected).sum();
    let none_wanted = expect.injections.is_some_and(|r| r.contains(0))
        || expect.injections.is_none()
            && !expect.per_rule.is_empty()
            && expect.per_rule.iter().all(|(_, r)| r.contains(0));
    let would = if e.dry { "would have been " } else { "" };
    if !none_wanted {
        let matched: u64 = e.tallies.iter().map(|t| t.matched).sum();
        let unfit: u64 = e.tallies.iter().map(|t| t.not_applicable).sum();
        let why = if total > 0 {
            String::new()
        } else if e.roce_packets == 0 {
            " (no RoCE packet came by at all: `roce-top doctor` says whether this interface can show any)".into()
        } else if unfit > 0 {
            format!(" ({unfit} packets were chosen, but had not what the fault changes)")
        } else if matched > 0 {
            format!(" ({matched} packets matched, none of them was chosen)")
        } else {
            format!(" ({} RoCE packets came by, none of them matched)", e.roce_packets)
        };
        out.push(check("something-injected", total > 0, format!("{total} packets {would}hit{why}")));
    }
    let range = |name: String, what: &str, r: Range, n: u64| Check {
        name,
        ok: r.contains(n),
        detail: format!("{what}: expected {r}, {would}injected {n}"),
    };
    if let Some(r) = expect.injections {
        out.push(range("injections".into(), "all rules", r, total));
    }
    for (rule, r) in &expect.per_rule {
        let (Some(rule), Some(t)) = (e.rules.get(*rule), e.tallies.get(*rule)) else { continue };
        out.push(range(format!("injections-{}", rule.name), &format!("rule {:?}", rule.name), *r, t.injected));
    }
    if e.counters.flows_full + e.counters.states_full > 0 {
        let detail = format!(
            "{} packets were met by no rule, for want of room for their flows: the rules may have missed some",
            e.counters.flows_full + e.counters.states_full
        );
        out.push(check("room-for-all-flows", false, detail));
    }
}

fn command(expect: &Expect, e: &Evidence<'_>, out: &mut Vec<Check>) {
    let Some(c) = e.command else {
        for (wanted, name) in [(expect.exit.is_some(), "exit"), (expect.finish_within.is_some(), "finish-within")] {
            if wanted {
                out.push(check(name, false, "there was no command to judge: give one after -- or in [run]".into()));
            }
        }
        return;
    };
    if c.killed {
        out.push(not_ended(e));
    }
    if let Some(code) = expect.exit {
        let detail = match (c.status, c.signal) {
            (Some(s), _) => format!("expected exit status {code}, it was {s}"),
            (None, Some(s)) => format!("expected exit status {code}, signal {s} ended the command"),
            (None, None) => format!("expected exit status {code}, the command has none"),
        };
        out.push(check("exit", c.status == Some(i32::from(code)), detail));
    }
    if let Some(within) = expect.finish_within {
        let ok = !c.killed && c.duration_s <= within.as_secs_f64();
        let detail = format!("expected within {}, it took {:.3} s", show_duration(within), c.duration_s);
        out.push(check("finish-within", ok, detail));
    }
}

/// Whether this action takes the packet from its receiver.
fn is_loss(action: u32) -> bool {
    matches!(Action::of(action), Some(Action::Drop | Action::FailIcrc | Action::Corrupt | Action::Truncate))
}

fn wire(expect: &Expect, e: &Evidence<'_>, witness: &mut Witness, out: &mut Vec<Check>) {
    let lost = e.counters.watch_lost + e.counters.events_lost + witness.omitted;
    let mut push = |name: &str, ok: bool, mut detail: String| {
        if lost > 0 {
            detail += &format!("; {lost} packets could not be watched, so nothing is certain");
        }
        out.push(check(name, ok && lost == 0, detail));
    };
    let hits: Vec<(Fact, u32, u32)> = e
        .injections
        .iter()
        .filter_map(|i| {
            let n = i.event.before.len().min(i.event.before_len as usize);
            let f = fact(i.at.0, i.event.before.get(..n)?, witness.port)?;
            Some((f, i.event.action, i.event.occurrence))
        })
        .collect();
    let facts = &witness.facts;
    let later = |t: i64| facts.get(facts.partition_point(|f| f.at <= t)..).unwrap_or(&[]);
    if let Some(t) = expect.retransmission_within {
        let wanted: Vec<_> =
            hits.iter().filter(|(f, a, _)| is_loss(*a) && matches!(f.what, What::Request | What::Response)).collect();
        let again = |f: &Fact| {
            later(f.at)
                .iter()
                .filter(|g| (g.src, g.dst, g.dest_qp, g.psn, g.what) == (f.src, f.dst, f.dest_qp, f.psn, f.what))
                // the first is the packet itself: it is witnessed just after it was hit
                .nth(1)
                .map(|g| g.at - f.at)
        };
        let (ok, detail) = each(&wanted, t, "lost packet", "sent again", |(f, _, _)| again(f));
        push("retransmission-within", ok, detail);
    }
    if let Some(t) = expect.nak_within {
        let wanted: Vec<_> =
            hits.iter().filter(|(f, a, n)| is_loss(*a) && f.what == What::Request && *n <= 1).collect();
        let answer = |f: &Fact| {
            later(f.at)
                .iter()
                .find(|g| g.what == What::SequenceNak && (g.src, g.dst) == (f.dst, f.src) && f.psn.distance(g.psn) >= 0)
                .map(|g| g.at - f.at)
        };
        let (ok, detail) = each(&wanted, t, "lost request", "answered by a sequence NAK", |(f, _, _)| answer(f));
        push("nak-within", ok, detail);
    }
    if let Some(t) = expect.cnp_within {
        let wanted: Vec<_> = hits.iter().filter(|(_, a, _)| Action::of(*a) == Some(Action::MarkCe)).collect();
        let answer = |f: &Fact| {
            later(f.at).iter().find(|g| g.what == What::Cnp && (g.src, g.dst) == (f.dst, f.src)).map(|g| g.at - f.at)
        };
        let (ok, detail) = each(&wanted, t, "CE mark", "answered by a CNP", |(f, _, _)| answer(f));
        push("cnp-within", ok, detail);
    }
    if expect.go_back_n {
        let (ok, detail) = go_back_n(facts);
        push("go-back-n", ok, detail);
    }
    if expect.no_message_lost {
        witness.analyzer.settle();
        let missing: Vec<_> = witness.analyzer.rows().into_iter().filter(|r| r.missing > 0).collect();
        let detail = match missing.first() {
            None => "no PSN is missing".to_owned(),
            Some(r) => format!(
                "{} PSNs are missing, the first on the flow from {} to {} QP 0x{:06x}",
                missing.iter().map(|r| r.missing).sum::<u64>(),
                r.src,
                r.dst,
                r.dest_qp
            ),
        };
        push("no-message-lost", missing.is_empty(), detail);
    }
}

/// Whether every one of `wanted` was answered in time; in words.
fn each<T>(
    wanted: &[T],
    within: Duration,
    what: &str,
    answered: &str,
    answer: impl Fn(&T) -> Option<i64>,
) -> (bool, String) {
    if wanted.is_empty() {
        return (false, format!("no {what} was injected, so nothing could be {answered}"));
    }
    let limit = i64::try_from(within.as_nanos()).unwrap_or(i64::MAX);
    let times: Vec<Option<i64>> = wanted.iter().map(answer).collect();
    let in_time = times.iter().flatten().filter(|t| **t <= limit).count();
    let slowest = times.iter().flatten().max().copied().unwrap_or(0);
    let never = times.iter().filter(|t| t.is_none()).count();
    let show = |ns: i64| show_duration(Duration::from_nanos(ns.unsigned_abs()));
    let mut detail = format!("{in_time} of {} ({what}) {answered} within {}", wanted.len(), show_duration(within));
    if never < times.len() {
        detail.push_str(&format!(", the slowest after {}", show(slowest)));
    }
    if never > 0 {
        detail.push_str(&format!(", {never} never"));
    }
    (in_time == wanted.len(), detail)
}

/// After a sequence NAK the sender's next step back goes exactly to the PSN that the NAK names.
fn go_back_n(facts: &[Fact]) -> (bool, String) {
    // highest PSN per request flow; NAKs by the hosts that wait for the answer
    let mut highest: HashMap<(Endpoint, Endpoint, u32), Psn> = HashMap::new();
    let mut open: Vec<(Endpoint, Endpoint, Psn)> = Vec::new();
    let mut naks = 0u64;
    for f in facts {
        match f.what {
            What::SequenceNak => {
                // a NAK repeated before the sender turned is the same question
                let question = (f.dst, f.src, f.psn);
                if !open.contains(&question) {
                    naks += 1;
                    open.push(question);
                }
            }
            What::Request => {
                let top = highest.entry((f.src, f.dst, f.dest_qp)).or_insert(f.psn);
                if f.psn.is_after(*top) {
                    *top = f.psn;
                } else if *top != f.psn || open.iter().any(|q| (q.0, q.1, q.2) == (f.src, f.dst, f.psn)) {
                    let mine = open
                        .iter()
                        .position(|q| (q.0, q.1) == (f.src, f.dst) && q.2.distance(f.psn).unsigned_abs() <= MAX_FLIGHT);
                    if let Some(n) = mine {
                        let (_, _, wanted) = open.swap_remove(n);
                        if wanted != f.psn {
                            return (
                                false,
                                format!("a NAK named PSN {}, the sender went back to {}", wanted.get(), f.psn.get()),
                            );
                        }
                    }
                }
            }
            _ => {}
        }
    }
    match (naks, open.len()) {
        (0, _) => (false, "no sequence NAK was seen, so nothing could be gone back to".into()),
        (n, 0) => (true, format!("after each of {n} sequence NAKs the sender went back to the PSN named")),
        (n, left) => (false, format!("{left} of {n} sequence NAKs were not followed by going back")),
    }
}

/// PSNs that a sender can have under way.
const MAX_FLIGHT: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const A: Endpoint = Endpoint::Ip(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)));
    const B: Endpoint = Endpoint::Ip(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)));

    fn request(at: i64, psn: u32) -> Fact {
        Fact { at, src: A, dst: B, dest_qp: 17, psn: Psn::new(psn), what: What::Request }
    }

    fn nak(at: i64, psn: u32) -> Fact {
        Fact { at, src: B, dst: A, dest_qp: 18, psn: Psn::new(psn), what: What::SequenceNak }
    }

    #[test]
    fn going_back() {
        let good = [
            request(1, 0xff_ffff),
            request(2, 0),
            request(3, 1),
            nak(4, 0),
            request(5, 2),
            request(6, 0),
            request(7, 1),
        ];
        assert!(go_back_n(&good).0, "{:?}", go_back_n(&good));
        let too_far = [request(1, 10), request(2, 12), nak(3, 11), request(4, 10), request(5, 11)];
        assert_eq!(go_back_n(&too_far), (false, "a NAK named PSN 11, the sender went back to 10".into()));
        let never = [request(1, 10), request(2, 12), nak(3, 11), request(4, 13)];
        assert!(!go_back_n(&never).0);
        assert!(!go_back_n(&[request(1, 1)]).0);
    }

    #[test]
    fn nothing_injected_is_a_failure() {
        fn evidence(tallies: &[FaultTally]) -> Evidence<'_> {
            Evidence {
                rules: &[],
                tallies,
                counters: FaultCounters::default(),
                roce_packets: 5,
                injections: &[],
                witness: None,
                command: None,
                dry: false,
                interrupted: false,
            }
        }
        let none = judge(&Expect::default(), evidence(&[FaultTally::default()]));
        assert!(none.len() == 1 && !none[0].ok && none[0].detail.contains("5 RoCE packets came by"), "{none:?}");
        let one =
            judge(&Expect::default(), evidence(&[FaultTally { injected: 1, matched: 1, ..FaultTally::default() }]));
        assert!(one.iter().all(|c| c.ok));
        // a control run that wants none
        let wants_none = Expect { injections: Some(Range::exactly(0)), ..Expect::default() };
        assert!(judge(&wants_none, evidence(&[FaultTally::default()])).iter().all(|c| c.ok));
    }
}
