//! The verdict: what was expected, what was seen. No clock, no file, no kernel in here.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use dissector::flow::row::{Endpoint, FlowRow};
use dissector::flow::{Analyzer, Place};
use dissector::frame::icrc::{Verdict, Why};
use dissector::frame::{Frame, LinkType};
use dissector::wire::{Kind, Psn, Qpn, Role};
use roce_ebpf::abi::fault::{Action, FaultCounters, FaultTally};
use serde::Serialize;

use super::command::Ended;
use super::engine::{Injection, Seen};
use super::rule::{Fault, Rule};
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

/// A directed flow, as far as every packet tells it.
type Directed = (Endpoint, Endpoint, u32);

/// What matters about a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fact {
    at: i64,
    /// Interface and direction: a box in the path sees a packet twice, and it is one transmission all the same.
    hook: (u32, u32),
    src: Endpoint,
    dst: Endpoint,
    dest_qp: u32,
    psn: Psn,
    what: What,
    /// A rule took it from its receiver.
    lost: bool,
}

/// A PSN of a flow at one place: what a retransmission has in common with the packet that was lost.
type Transmission = ((u32, u32), Directed, Psn, What);

impl Fact {
    const fn flow(&self) -> Directed {
        (self.src, self.dst, self.dest_qp)
    }

    const fn transmission(&self) -> Transmission {
        (self.hook, self.flow(), self.psn, self.what)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    /// In the sender's PSN space.
    Request,
    /// Data in the peer's.
    Response,
    /// All up to this PSN has arrived.
    Ack,
    SequenceNak,
    Cnp,
    Other,
}

fn fact(at: i64, hook: (u32, u32), lost: bool, bytes: &[u8], port: u16) -> Option<Fact> {
    let frame = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, port);
    let net = frame.net?;
    let packet = frame.packet()?.ok()?;
    let op = packet.op;
    let what = match op.map(|o| (o.kind, o.role())) {
        Some((Kind::Cnp, _)) => What::Cnp,
        Some((Kind::Ack, _)) => match packet.ext.aeth.map(dissector::wire::Aeth::syndrome) {
            Some(s) if s.is_ack() => What::Ack,
            // IBTA table 45, code 0
            Some(s) if s.0 & 0x7f == 0x60 => What::SequenceNak,
            _ => What::Other,
        },
        Some((_, Role::Notification)) | None => What::Other,
        Some((_, Role::Request)) => What::Request,
        Some((_, Role::Response)) => What::Response,
    };
    let (dest_qp, psn) = (packet.bth.dest_qp().get(), packet.bth.psn());
    Some(Fact { at, hook, src: net.src, dst: net.dst, dest_qp, psn, what, lost })
}

/// A packet that a rule acted on.
#[derive(Clone, Copy, Debug)]
struct Hit {
    fact: Fact,
    action: u32,
    occurrence: u32,
}

/// What was seen on the wire, as it left the faults.
#[derive(Debug)]
pub struct Witness {
    /// One an interface: what is lost between two of them is missing at the second only.
    analyzers: HashMap<u32, Analyzer>,
    facts: Vec<Fact>,
    hits: Vec<Hit>,
    omitted: u64,
    number: u64,
    port: u16,
    /// Rules that take packets from their receivers.
    losses: Vec<bool>,
}

impl Witness {
    /// `port` is the UDP port of RoCEv2.
    pub fn new(port: u16, rules: &[Rule]) -> Self {
        let losses = rules
            .iter()
            .map(|r| matches!(r.fault, Fault::Drop | Fault::FailIcrc | Fault::Corrupt { .. } | Fault::Truncate(_)))
            .collect();
        Self { analyzers: HashMap::new(), facts: Vec::new(), hits: Vec::new(), omitted: 0, number: 0, port, losses }
    }

    /// Takes an injection in.
    pub fn hit(&mut self, i: &Injection) {
        let e = &i.event;
        let length = e.before.len().min(e.before_len as usize);
        let lost = is_loss(e.action);
        let Some(fact) = fact(i.at.0, (e.ifindex, e.direction), lost, e.before.get(..length).unwrap_or(&[]), self.port)
        else {
            return;
        };
        if self.hits.len() < MOST_WITNESSED {
            self.hits.push(Hit { fact, action: e.action, occurrence: e.occurrence });
        } else {
            self.omitted += 1;
        }
    }

    /// Takes a packet in, in the order of time.
    pub fn push(&mut self, seen: &Seen) {
        let r = &seen.record;
        let length = r.head.len().min(r.head_len as usize);
        let head = r.head.get(..length).unwrap_or(&[]);
        let wire = (r.length as usize).max(length);
        let by = (r.rule as usize).checked_sub(1).and_then(|n| self.losses.get(n)).copied();
        let lost = r.dropped != 0 || by == Some(true);
        // sent, if not received: a packet that a rule took is a transmission all the same
        if let Some(f) = fact(seen.at.0, (r.ifindex, r.direction), lost, head, self.port) {
            if self.facts.len() < MOST_WITNESSED { self.facts.push(f) } else { self.omitted += 1 }
        }
        if !lost {
            self.number += 1;
            let frame = Frame::parse(head, wire, LinkType::ETHERNET, self.port);
            if let Some(Ok(packet)) = frame.packet() {
                let place = Place { number: self.number, at: seen.at };
                let analyzer = self.analyzers.entry(r.ifindex).or_default();
                analyzer.push(place, &frame, &packet, Verdict::Unchecked(Why::Off));
            }
        }
    }
}

/// Which flows are the two directions of a connection, as far as the packets told.
#[derive(Debug, Default)]
struct Pairs(HashMap<Directed, Vec<u32>>);

impl Pairs {
    fn of(rows: &[FlowRow]) -> Self {
        let mut pairs = Self::default();
        let by_id: HashMap<u32, &FlowRow> = rows.iter().map(|r| (r.id, r)).collect();
        for r in rows {
            if let Some(back) = r.pair.and_then(|p| by_id.get(&p)) {
                pairs.0.entry((r.src, r.dst, r.dest_qp)).or_default().push(back.dest_qp);
            }
        }
        pairs
    }

    /// Whether `b` may be the way back of `a`: it is, or neither's peer is known.
    fn may_answer(&self, a: &Fact, b: &Fact) -> bool {
        (a.src, a.dst) == (b.dst, b.src)
            && match (self.0.get(&a.flow()), self.0.get(&b.flow())) {
                (Some(back), _) => back.contains(&b.dest_qp),
                (None, Some(back)) => back.contains(&a.dest_qp),
                (None, None) => true,
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
    /// What went by, if it was watched.
    pub witness: Option<&'a mut Witness>,
    /// The command, if there was one.
    pub command: Option<&'a Ended>,
    /// Nothing was changed, only counted.
    pub dry: bool,
    /// A signal ended the run before its command did.
    pub interrupted: bool,
}

/// Name of the check that is red because the command failed, while no expectation is about that: the command's own
/// status is the exit status then.
pub const COMMAND_STATUS: &str = "command-status";

fn packets(n: u64) -> String {
    format!("{n} packet{}", if n == 1 { "" } else { "s" })
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
            wire(expect, &evidence.counters, w, &mut out);
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
            format!(" ({} chosen, but without what the fault changes)", packets(unfit))
        } else if matched > 0 {
            format!(" ({} matched, none of them was chosen)", packets(matched))
        } else {
            let s = if e.roce_packets == 1 { "" } else { "s" };
            format!(" ({} RoCE packet{s} came by, none of them matched)", e.roce_packets)
        };
        out.push(check("something-injected", total > 0, format!("{} {would}hit{why}", packets(total))));
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
            "{} met by no rule, for want of room for their flows: the rules may have missed some",
            packets(e.counters.flows_full + e.counters.states_full)
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
    if expect.exit.is_none() && !c.killed && c.code() != 0 {
        let how = match c.signal {
            Some(s) => format!("signal {s} ended the command"),
            None => format!("the command failed with status {}", c.code()),
        };
        out.push(check(COMMAND_STATUS, false, format!("{how}, and no `exit` in [expect] says that it should")));
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

fn wire(expect: &Expect, counters: &FaultCounters, witness: &mut Witness, out: &mut Vec<Check>) {
    let lost = counters.watch_lost + counters.events_lost + witness.omitted;
    let mut push = |name: &str, ok: bool, mut detail: String| {
        if lost > 0 {
            let _ = write!(detail, "; {lost} packets could not be watched, so nothing is certain");
        }
        out.push(check(name, ok && lost == 0, detail));
    };
    witness.facts.sort_by_key(|f| f.at);
    let mut rows = Vec::new();
    let mut pairs = Pairs::default();
    for a in witness.analyzers.values_mut() {
        a.settle();
        let of_one = a.rows();
        for (flow, back) in Pairs::of(&of_one).0 {
            pairs.0.entry(flow).or_default().extend(back);
        }
        rows.extend(of_one);
    }
    let view = View::new(&witness.facts, &witness.hits, pairs);
    if let Some(t) = expect.retransmission_within {
        let wanted: Vec<_> = view.losses().filter(|h| matches!(h.fact.what, What::Request | What::Response)).collect();
        let (ok, detail) = each(&wanted, t, "lost packet", "sent again", |h| view.sent_again(&h.fact));
        push("retransmission-within", ok, detail);
    }
    if let Some(t) = expect.nak_within {
        let wanted: Vec<_> = view.losses().filter(|h| h.fact.what == What::Request && h.occurrence <= 1).collect();
        let (ok, detail) = each(&wanted, t, "lost request", "answered by a sequence NAK", |h| view.asked_for(&h.fact));
        push("nak-within", ok, detail);
    }
    if let Some(t) = expect.cnp_within {
        let wanted: Vec<_> = witness.hits.iter().filter(|h| Action::of(h.action) == Some(Action::MarkCe)).collect();
        let (ok, detail) = each(&wanted, t, "CE mark", "answered by a CNP", |h| {
            view.answer(&h.fact, What::Cnp, |_| true).map(|g| g.at - h.fact.at)
        });
        push("cnp-within", ok, detail);
    }
    if expect.go_back_n {
        let (ok, detail) = view.go_back_n();
        push("go-back-n", ok, detail);
    }
    if expect.no_message_lost {
        let (ok, detail) = view.nothing_lost(&rows);
        push("no-message-lost", ok, detail);
    }
}

/// What was seen, in order, and where to find it.
struct View<'a> {
    facts: &'a [Fact],
    hits: &'a [Hit],
    pairs: Pairs,
    /// By packets that were hit: when it was sent, and whether it was lost then.
    sent: HashMap<Transmission, Vec<(i64, bool)>>,
    /// By kind and hosts: what may be an answer.
    answers: HashMap<(What, Endpoint, Endpoint), Vec<&'a Fact>>,
}

/// Answers that are looked at for one packet: a flood of them must not take the verdict for ever.
const MOST_ASKED: usize = 4096;

impl<'a> View<'a> {
    /// `facts` are in the order of time.
    fn new(facts: &'a [Fact], hits: &'a [Hit], pairs: Pairs) -> Self {
        let mut sent: HashMap<Transmission, Vec<(i64, bool)>> =
            hits.iter().map(|h| (h.fact.transmission(), Vec::new())).collect();
        let mut answers: HashMap<(What, Endpoint, Endpoint), Vec<&Fact>> = HashMap::new();
        for f in facts {
            if let Some(all) = sent.get_mut(&f.transmission()) {
                all.push((f.at, f.lost));
            }
            if !matches!(f.what, What::Request | What::Other) {
                answers.entry((f.what, f.src, f.dst)).or_default().push(f);
            }
        }
        Self { facts, hits, pairs, sent, answers }
    }

    fn losses(&self) -> impl Iterator<Item = &'a Hit> {
        self.hits.iter().filter(|h| is_loss(h.action))
    }

    /// How long after it was lost a packet came again.
    fn sent_again(&self, f: &Fact) -> Option<i64> {
        let all = self.sent.get(&f.transmission())?;
        // the first is the packet itself: it is witnessed just after it was hit
        all.get(all.partition_point(|(at, _)| *at < f.at)..)?.get(1).map(|(at, _)| at - f.at)
    }

    /// The first of this kind that comes back after a packet and fits.
    fn answer(&self, f: &Fact, what: What, fits: impl Fn(&Fact) -> bool) -> Option<&'a Fact> {
        let all = self.answers.get(&(what, f.dst, f.src))?;
        let later = all.get(all.partition_point(|g| g.at <= f.at)..)?;
        later.iter().take(MOST_ASKED).copied().find(|g| fits(g) && self.pairs.may_answer(f, g))
    }

    /// How long after it was lost a request was asked for: by a NAK that names it or one before it. A receiver that has
    /// asked says nothing more until what it named is there, so what is lost meanwhile is asked for already.
    fn asked_for(&self, f: &Fact) -> Option<i64> {
        let names = |g: &Fact| (0..=MAX_FLIGHT.cast_signed()).contains(&f.psn.distance(g.psn));
        if let Some(g) = self.answer(f, What::SequenceNak, names) {
            return Some(g.at - f.at);
        }
        let all = self.answers.get(&(What::SequenceNak, f.dst, f.src))?;
        let before = all.get(..all.partition_point(|g| g.at <= f.at))?;
        let open = before.iter().rev().take(MOST_ASKED).find(|g| names(g) && self.pairs.may_answer(f, g))?;
        let between = self.facts.partition_point(|g| g.at <= open.at)..self.facts.partition_point(|g| g.at < f.at);
        let came = |g: &Fact| g.what == What::Request && !g.lost && g.flow() == f.flow() && g.psn == open.psn;
        (!self.facts.get(between)?.iter().any(came)).then_some(0)
    }

    /// Whether what was lost came after all.
    fn arrived(&self, h: &Hit) -> bool {
        let f = &h.fact;
        let again = |(at, lost): &(i64, bool)| !lost && (*at > f.at || f.what == What::Response && h.occurrence > 1);
        if self.sent.get(&f.transmission()).is_some_and(|all| all.iter().any(again)) {
            return true;
        }
        // a copy may be lost without harm: the receiver says that it has it
        let covers = |g: &Fact| (0..=MAX_FLIGHT.cast_signed()).contains(&g.psn.distance(f.psn));
        f.what == What::Request
            && [What::Ack, What::Response].iter().any(|what| self.answer(f, *what, covers).is_some())
    }

    /// Whether everything arrived: no PSN is missing, and nothing that a rule took away stayed away.
    fn nothing_lost(&self, rows: &[FlowRow]) -> (bool, String) {
        let missing: Vec<_> = rows.iter().filter(|r| r.missing > 0).collect();
        if let Some(r) = missing.first() {
            let n: u64 = missing.iter().map(|r| r.missing).sum();
            return (
                false,
                format!(
                    "{n} PSNs are missing, the first on the flow from {} to {} QP 0x{:06x}",
                    r.src, r.dst, r.dest_qp
                ),
            );
        }
        // management datagrams are sent again under numbers of their own
        let message = |h: &&Hit| {
            matches!(h.fact.what, What::Request | What::Response) && !Qpn::new(h.fact.dest_qp).is_management()
        };
        let gone: Vec<_> = self.losses().filter(message).filter(|h| !self.arrived(h)).collect();
        match gone.first() {
            None => (true, "no PSN is missing".to_owned()),
            Some(h) => (
                false,
                format!(
                    "{} packets that were hit never arrived, the first PSN {} on the flow from {} to {} QP 0x{:06x}",
                    gone.len(),
                    h.fact.psn.get(),
                    h.fact.src,
                    h.fact.dst,
                    h.fact.dest_qp
                ),
            ),
        }
    }

    /// After a sequence NAK the sender's next step back goes exactly to the PSN that the NAK names.
    fn go_back_n(&self) -> (bool, String) {
        // highest PSN per request flow and place; NAKs that wait for the sender to turn, by its host and the peer's
        let mut highest: HashMap<((u32, u32), Directed), Psn> = HashMap::new();
        let mut open: HashMap<(Endpoint, Endpoint), Vec<&Fact>> = HashMap::new();
        let (mut naks, mut unheard) = (0u64, 0u64);
        for f in self.facts {
            match f.what {
                // one that a rule took away asks nothing
                What::SequenceNak if !f.lost => {
                    let asked = open.entry((f.dst, f.src)).or_default();
                    // a NAK repeated before the sender turned, or seen on its way in and out, is the same question
                    if asked.iter().any(|q| q.flow() == f.flow() && q.psn == f.psn) {
                        continue;
                    }
                    naks += 1;
                    if asked.len() < MOST_ASKED { asked.push(f) } else { unheard += 1 }
                }
                What::Request => {
                    let top = highest.entry((f.hook, f.flow())).or_insert(f.psn);
                    if f.psn.is_after(*top) {
                        *top = f.psn;
                        continue;
                    }
                    let Some(asked) = open.get_mut(&(f.src, f.dst)) else { continue };
                    let mine = asked.iter().position(|q| {
                        q.psn.distance(f.psn).unsigned_abs() <= MAX_FLIGHT
                            && self.pairs.may_answer(f, q)
                            && (*top != f.psn || q.psn == f.psn)
                    });
                    if let Some(n) = mine {
                        let wanted = asked.swap_remove(n).psn;
                        if wanted != f.psn {
                            let to = f.psn.get();
                            return (false, format!("a NAK named PSN {}, the sender went back to {to}", wanted.get()));
                        }
                    }
                }
                _ => {}
            }
        }
        let left = unheard + open.values().map(|q| q.len() as u64).sum::<u64>();
        match (naks, left) {
            (0, _) => (false, "no sequence NAK was seen, so nothing could be gone back to".into()),
            (n, 0) => (true, format!("after each of {n} sequence NAKs the sender went back to the PSN named")),
            (n, left) => (false, format!("{left} of {n} sequence NAKs were not followed by going back")),
        }
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
        let _ = write!(detail, ", the slowest after {}", show(slowest));
    }
    if never > 0 {
        let _ = write!(detail, ", {never} never");
    }
    (in_time == wanted.len(), detail)
}

/// PSNs that a sender can have under way.
const MAX_FLIGHT: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const A: Endpoint = Endpoint::Ip(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)));
    const B: Endpoint = Endpoint::Ip(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)));

    fn request(at: i64, psn: u32) -> Fact {
        Fact { at, hook: (1, 0), src: A, dst: B, dest_qp: 17, psn: Psn::new(psn), what: What::Request, lost: false }
    }

    fn nak(at: i64, psn: u32) -> Fact {
        answer(at, 18, psn, What::SequenceNak)
    }

    fn answer(at: i64, dest_qp: u32, psn: u32, what: What) -> Fact {
        Fact { at, hook: (1, 1), src: B, dst: A, dest_qp, psn: Psn::new(psn), what, lost: false }
    }

    fn lost(f: Fact) -> Fact {
        Fact { lost: true, ..f }
    }

    /// A packet that was dropped, its time and transmission.
    fn hit(f: Fact, occurrence: u32) -> Hit {
        Hit { fact: lost(f), action: Action::Drop as u32, occurrence }
    }

    fn go_back_n(facts: &[Fact]) -> (bool, String) {
        View::new(facts, &[], Pairs::default()).go_back_n()
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
    fn going_back_at_a_box_in_the_path_and_with_many_connections() {
        // seen on its way in and on its way out, the second look late
        let out = |f: Fact| Fact { hook: (2, 1), ..f };
        let twice = [
            request(1, 10),
            request(2, 11),
            out(request(3, 10)),
            request(4, 12),
            out(request(5, 11)),
            nak(6, 11),
            out(nak(7, 11)),
            out(request(8, 12)),
            request(9, 11),
            request(10, 12),
            out(request(11, 11)),
        ];
        assert!(go_back_n(&twice).0, "{:?}", go_back_n(&twice));
        // a NAK that never reached the sender asks for nothing, and a time-out goes back as far as it must
        let unheard = [request(1, 10), request(2, 12), lost(nak(3, 11)), request(4, 10), request(5, 11)];
        assert_eq!(go_back_n(&unheard), (false, "no sequence NAK was seen, so nothing could be gone back to".into()));
        // another connection of the same hosts goes back: that is no answer to this one's NAK
        let other = |f: Fact| Fact { dest_qp: 99, ..f };
        let facts = [
            request(1, 10),
            other(request(2, 20)),
            other(request(3, 22)),
            nak(4, 11),
            request(5, 12),
            other(request(6, 21)),
        ];
        let pairs = Pairs([((A, B, 17), vec![18]), ((B, A, 18), vec![17])].into());
        let view = View::new(&facts, &[], pairs);
        assert_eq!(view.go_back_n(), (false, "1 of 1 sequence NAKs were not followed by going back".into()));
    }

    #[test]
    fn answers_belong_to_the_connection_that_was_hit() {
        let facts =
            [lost(request(1, 10)), request(2, 11), answer(5, 77, 10, What::SequenceNak), answer(6, 77, 0, What::Cnp)];
        let hits = [hit(request(1, 10), 1)];
        let known = Pairs([((B, A, 77), vec![99])].into());
        let view = View::new(&facts, &hits, known);
        assert_eq!(view.asked_for(&hits[0].fact), None);
        assert!(view.answer(&hits[0].fact, What::Cnp, |_| true).is_none());
        // where nobody knows whose it is, it may be ours
        let view = View::new(&facts, &hits, Pairs::default());
        assert_eq!(view.asked_for(&hits[0].fact), Some(4));
    }

    #[test]
    fn a_receiver_asks_once_for_all_that_follows() {
        let facts = [lost(request(1, 10)), request(2, 11), nak(3, 10), lost(request(4, 12)), request(5, 10)];
        let hits = [hit(request(1, 10), 1), hit(request(4, 12), 1)];
        let view = View::new(&facts, &hits, Pairs::default());
        assert_eq!([view.asked_for(&hits[0].fact), view.asked_for(&hits[1].fact)], [Some(2), Some(0)]);
        // once what it named is there, it must ask anew
        let facts = [lost(request(1, 10)), nak(3, 10), request(4, 10), lost(request(5, 12))];
        let hits = [hit(request(5, 12), 1)];
        assert_eq!(View::new(&facts, &hits, Pairs::default()).asked_for(&hits[0].fact), None);
    }

    #[test]
    fn the_last_packet_of_all_is_missed_too() {
        let judged = |facts: &[Fact], hits: &[Hit]| View::new(facts, hits, Pairs::default()).nothing_lost(&[]).0;
        let tail = [request(1, 10), lost(request(2, 11))];
        let hits = [hit(request(2, 11), 1)];
        assert!(!judged(&tail, &hits));
        assert!(judged(&[tail[0], tail[1], request(3, 11)], &hits));
        assert!(!judged(&[tail[0], tail[1], lost(request(3, 11))], &hits));
        // a copy that is lost while the receiver has it
        let copy = [request(1, 11), lost(request(2, 11)), answer(3, 18, 11, What::Ack)];
        assert!(judged(&copy, &[hit(request(2, 11), 2)]));
        assert!(!judged(&copy[..2], &[hit(request(2, 11), 2)]));
        // a NAK is no message, and management datagrams have numbers of their own
        assert!(judged(&[lost(nak(1, 1))], &[hit(nak(1, 1), 1)]));
        let mad = Fact { dest_qp: 1, ..request(1, 10) };
        assert!(judged(&[lost(mad)], &[hit(mad, 1)]));
    }

    #[test]
    fn a_box_in_the_path_sees_no_retransmission_in_the_packet_itself() {
        // hit on its way in, seen again on its way out
        let out = |f: Fact| Fact { hook: (2, 1), ..f };
        let facts = [lost(request(2, 10)), out(request(3, 10)), request(9, 10)];
        let hits = [hit(request(1, 10), 1)];
        assert_eq!(View::new(&facts[..2], &hits, Pairs::default()).sent_again(&hits[0].fact), None);
        assert_eq!(View::new(&facts, &hits, Pairs::default()).sent_again(&hits[0].fact), Some(8));
    }

    #[test]
    fn nothing_injected_is_a_failure() {
        fn evidence(tallies: &[FaultTally]) -> Evidence<'_> {
            Evidence {
                rules: &[],
                tallies,
                counters: FaultCounters::default(),
                roce_packets: 5,
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
