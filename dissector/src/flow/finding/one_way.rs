//! Codes `one-way` and `ttl-one`: requests that nobody answers.

use super::{Finding, Seen, Severity, count, name};
use crate::flow::state::Flow;

/// Queue pairs between two hosts from which on they are told together.
const TOGETHER: usize = 4;

/// Within such a time an answer comes, or a sender repeats itself, nanoseconds: a little more than the ACK
/// time-out that most applications use (code 14, 67 ms).
const ANSWERED_WITHIN: i64 = 100_000_000;

/// Why nothing came back, as far as it can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Repeats,
    OthersAnswer,
    Unassigned,
    NothingBack,
}

impl Why {
    const fn words(self) -> &'static str {
        match self {
            Self::Repeats => "The sender repeats itself, so no answer reached it either.",
            Self::OthersAnswer => {
                "Other packets from that host are in the capture, so its answers would have been seen."
            }
            Self::Unassigned => "Answers between these hosts are in the capture but could not be assigned to a QP.",
            Self::NothingBack => {
                "No packet from that host is in the capture, and the sender does not repeat one PSN over and over: most likely only one direction was captured."
            }
        }
    }
}

struct Unanswered<'a> {
    flow: &'a Flow,
    severity: Severity,
    why: Why,
    group: (([u64; 2], [u64; 2], u8), Severity, Why),
}

const NEXT: &str = "If it is real: is a QP with that number open at the peer, is its GID index (RoCE version, subnet, VLAN) the right one, does a firewall stop UDP 4791, does the way back exist?";

/// A sender that goes back over and over to the very first PSN that it sent: not even its own view is that anything
/// was answered. Where only its direction was captured, nothing less says so.
pub fn never_answered(f: &Flow) -> bool {
    super::retry::open_attempts(f).is_some_and(|t| t.times > 4 && t.psn == f.req.low())
}

/// Looks for flows without answers.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    // once for all: made-up QP numbers make tens of thousands of flows without an answer
    let unjoined = super::entropy::unjoined_answers(a);
    let mut silent: Vec<Unanswered<'_>> = Vec::new();
    for f in a.flows().filter(|f| f.reliable() && f.requests > 0) {
        let answers = a.peer(f).map_or(0, |p| p.acks + p.responses + p.naks.total() + p.rnr_naks);
        let ttl_one = f.ttl.0 == 1;
        if answers > 0 {
            if ttl_one {
                out.push(Finding {
                    code: "ttl-one",
                    severity: Severity::Note,
                    title: format!("{} is sent with TTL 1", name(f)),
                    detail: "It arrives, so no router lies between; it would not cross one. Set the hop limit of the address handle (hop_limit of the GRH attributes) to 64.".to_owned(),
                    flow: Some(f.id),
                    packets: vec![f.first_packet],
                });
            }
            continue;
        }
        let unasked = f.ack_reqs == 0 && f.reads.is_empty();
        let back = seen.sides.back(f.key.addresses);
        // where no answers were captured, repeats may have had their reasons
        let retries = if back { f.retransmitted > 0 && f.rewinding.is_some() } else { never_answered(f) };
        // what was asked at the very end of a capture may still be answered
        let waited = a.quality().end().since(f.first) - i64::from(f.asked_after) * 1000;
        let young = if back { waited < ANSWERED_WITHIN } else { waited < 1_000_000 && f.requests < 4 };
        if (unasked || young) && !retries && !ttl_one {
            continue;
        }
        let (severity, why) = match (retries, back) {
            (true, _) => (Severity::Error, Why::Repeats),
            (false, true) if unjoined.contains(&f.key.addresses.reversed()) => (Severity::Note, Why::Unassigned),
            (false, true) => (Severity::Warning, Why::OthersAnswer),
            (false, false) => (Severity::Note, Why::NothingBack),
        };
        let severity = if ttl_one { severity.max(Severity::Warning) } else { severity };
        silent.push(Unanswered { flow: f, severity, why, group: (f.key.addresses.ordered(), severity, why) });
    }
    silent.sort_by_key(|u| (u.group, u.flow.id));
    let mut groups: Vec<&[Unanswered<'_>]> = silent.chunk_by(|x, y| x.group == y.group).collect();
    groups.sort_by_key(|g| g.first().map(|u| u.flow.id));
    for g in groups {
        if g.len() < TOGETHER {
            out.extend(g.iter().map(alone));
        } else {
            out.extend(together(g));
        }
    }
}

fn hints(f: &Flow) -> String {
    let ttl = if f.ttl.0 == 1 { " It is sent with TTL 1, which no router forwards." } else { "" };
    let gid = if super::gid::is_link_local(f) { " A link-local GID is used, which no router forwards." } else { "" };
    format!("{ttl}{gid}")
}

fn alone(u: &Unanswered<'_>) -> Finding {
    let f = u.flow;
    Finding {
        code: "one-way",
        severity: u.severity,
        title: format!(
            "{}: {} ({} asking for an acknowledge), no answer",
            name(f),
            count(f.requests, "request", "requests"),
            u64::from(f.ack_reqs)
        ),
        detail: format!("{}{} {NEXT}", u.why.words(), hints(f)),
        flow: Some(f.id),
        packets: vec![f.first_packet, f.last_request.1],
    }
}

fn together(g: &[Unanswered<'_>]) -> Option<Finding> {
    let first = g.first()?;
    let f = first.flow;
    let sum = |of: fn(&Flow) -> u64| g.iter().map(|u| of(u.flow)).sum::<u64>();
    let some: Vec<String> = g.iter().take(6).map(|u| format!("{:#x}", u.flow.key.dest_qp)).collect();
    let mut packets: Vec<u64> = g.iter().take(12).map(|u| u.flow.first_packet).collect();
    packets.sort_unstable();
    Some(Finding {
        code: "one-way",
        severity: first.severity,
        title: format!(
            "{} -> {}: {} QPs with requests and no answer ({}, {} asking for an acknowledge)",
            f.src,
            f.dst,
            g.len(),
            count(sum(|f| f.requests), "request", "requests"),
            sum(|f| f.ack_reqs.into())
        ),
        detail: format!(
            "QP {}{}. {}{} {NEXT}",
            some.join(", "),
            if g.len() > some.len() { " and others" } else { "" },
            first.why.words(),
            hints(f)
        ),
        flow: Some(f.id),
        packets,
    })
}
