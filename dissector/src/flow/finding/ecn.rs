//! Codes `ce-without-cnp`, `cnp-without-ce`, `cnp-ignored`, `congestion`, `not-ect`: marking and its echo.

use super::{Finding, Map, Seen, Severity, count, evidence, name, rate, time};
use crate::flow::event::Happened;
use crate::flow::state::Flow;

/// Looks at ECN.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    // ways on which CNPs came that could not be assigned to a queue pair
    let mut unassigned: Map<_, ()> = super::map();
    unassigned.extend(a.flows().filter(|o| o.cnps > 0 && o.pair.is_none()).map(|o| (o.key.addresses, ())));
    for f in a.flows() {
        let [_, _, _, ce] = f.ecn;
        let peer = a.peer(f);
        let cnps = peer.map_or(0, |p| p.cnps);
        if ce > 0 && cnps == 0 {
            // CNPs may be there, but not assigned to this QP
            let elsewhere = unassigned.contains_key(&f.key.addresses.reversed());
            let back = seen.sides.back(f.key.addresses);
            let severity = if back && !elsewhere { Severity::Warning } else { Severity::Note };
            out.push(Finding {
                code: "ce-without-cnp",
                severity,
                title: format!("{}: {} marked CE, no CNP came back", name(f), count(ce, "packet is", "packets are")),
                detail: if back {
                    "The receiver does not tell the sender to slow down: congestion notification is off at its port (roce_np), it does not support it (soft-RoCE does not), or CNPs are lost in their own queue. PFC then does all the work.".to_owned()
                } else {
                    "Only this direction was captured, so CNPs could not be seen.".to_owned()
                },
                flow: Some(f.id),
                packets: evidence([f], &[Happened::Ce]),
            });
        }
        if f.cnps == 0 {
            continue;
        }
        let rates = f.notifications.as_deref().and_then(|n| n.reaction.rates());
        ignored(f, peer, rates, out);
        let slowed = rates.map(|(x, y)| {
            format!(" It sent at {} in the millisecond before the CNPs, at {} while they came.", rate(x), rate(y))
        });
        let slowed = slowed.unwrap_or_default();
        let (marked, sent, naks) = peer.map_or((0, 0, 0), |p| (p.ecn[3], p.packets, f.naks.psn_sequence_error));
        if marked == 0 {
            let known = peer.is_some_and(|p| p.requests + p.responses > 0);
            out.push(Finding {
                code: "cnp-without-ce",
                severity: if known && naks == 0 { Severity::Warning } else { Severity::Note },
                title: format!("{}: {}, but no packet of that QP is marked CE", name(f), count(f.cnps, "CNP", "CNPs")),
                detail: if naks > 0 {
                    format!("{} went the same way: some adapters send a CNP with a sequence NAK (slow restart). The cause is loss, not congestion marking.", count(naks, "sequence NAK", "sequence NAKs"))
                } else if known {
                    "Marked packets were not captured (marking behind this point of the path), or somebody else makes these CNPs.".to_owned()
                } else {
                    "The data of that QP is not in the capture.".to_owned()
                },
                flow: Some(f.id),
                packets: evidence([f], &[Happened::Cnp]),
            });
        } else {
            out.push(Finding {
                code: "congestion",
                severity: Severity::Note,
                title: format!(
                    "{}: {} marked CE ({:.1} %), {} in answer",
                    peer.map_or_else(|| name(f), name),
                    count(marked, "packet", "packets"),
                    marked as f64 * 100.0 / sent.max(1) as f64,
                    count(f.cnps, "CNP", "CNPs")
                ),
                detail: format!(
                    "Congestion control is at work{}.{slowed} Look for the queue that marks: incast towards {}, ECN thresholds of the last switch.",
                    f.notifications.as_deref().and_then(|n| n.spacing).map(|s| format!("; CNPs are {} apart at the least", time(i64::try_from(s).unwrap_or(i64::MAX)))).unwrap_or_default(),
                    f.src
                ),
                flow: Some(f.id),
                packets: evidence(peer.into_iter().chain([f]), &[Happened::Ce, Happened::Cnp]),
            });
        }
    }
    not_capable(seen, out);
}

/// CNPs after which a sender that reacts has slowed down visibly.
const ENOUGH: u64 = 8;

/// A sender that goes on as before.
fn ignored(f: &Flow, data: Option<&Flow>, rates: Option<(f64, f64)>, out: &mut Vec<Finding>) {
    let (Some(data), Some((before, after))) = (data, rates) else { return };
    if f.cnps < ENOUGH || after < before * 0.95 {
        return;
    }
    out.push(Finding {
        code: "cnp-ignored",
        severity: Severity::Warning,
        title: format!("{}: {} came back, and it did not slow down", name(data), count(f.cnps, "CNP", "CNPs")),
        detail: format!(
            "It sent at {} before the CNPs and at {} while they came. Its reaction point is off (roce_rp, DCQCN at the sender's port), the adapter does not take these CNPs for its own, or the application sends more slowly than the limit that they set.",
            rate(before),
            rate(after)
        ),
        flow: Some(data.id),
        packets: evidence([f], &[Happened::Cnp]),
    });
}

/// Data packets of a pair of hosts below which it does not matter that no switch can mark them.
const FEW: u64 = 16;

/// What the data from one host to another carries.
#[derive(Clone, Copy, Debug)]
struct Marking<'a> {
    first: &'a Flow,
    plain: u64,
    capable: u64,
}

fn not_capable(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let mut ways: Vec<Marking<'_>> = Vec::new();
    let mut index: Map<_, usize> = super::map();
    for f in a.flows().filter(|f| f.ordered() && f.requests + f.responses > 0) {
        let [not, e1, e0, ce] = f.ecn;
        let i = *index.entry(f.key.addresses).or_insert(ways.len());
        if i == ways.len() {
            ways.push(Marking { first: f, plain: 0, capable: 0 });
        }
        let Some(w) = ways.get_mut(i) else { continue };
        if not > 0 && w.plain == 0 {
            w.first = f;
        }
        w.plain += not;
        w.capable += e1 + e0 + ce;
    }
    // somebody here counts on marks
    let in_use = ways.iter().any(|w| w.capable > 0) || a.flows().any(|f| f.cnps > 0);
    let plain = ways.iter().map(|w| w.plain).sum::<u64>();
    let odd: Vec<&Marking<'_>> = ways.iter().filter(|w| w.plain > 0).collect();
    let Some(first) = odd.first() else { return };
    if !in_use && plain < FEW {
        return;
    }
    if odd.len() == ways.len() && odd.iter().all(|w| w.capable == 0) {
        let between = if odd.len() == 1 { String::new() } else { format!(", from and to {} hosts", ends(&odd)) };
        out.push(Finding {
            code: "not-ect",
            severity: Severity::Note,
            title: format!("no data packet is ECN-capable ({}{between})", count(plain, "packet", "packets")),
            detail: SET.to_owned(),
            flow: Some(first.first.id),
            packets: vec![first.first.first_packet],
        });
        return;
    }
    for w in odd {
        out.push(Finding {
            code: "not-ect",
            severity: Severity::Note,
            title: format!(
                "{} to {}: {} of {} are not ECN-capable",
                w.first.src,
                w.first.dst,
                w.plain,
                count(w.plain + w.capable, "packet", "packets")
            ),
            detail: format!("Others in this capture are. {SET}"),
            flow: Some(w.first.id),
            packets: vec![w.first.first_packet],
        });
    }
}

/// What to do about it.
const SET: &str = "A switch cannot mark them, so congestion shows as PFC pauses or drops. Set the traffic class of the QPs (ECT(0): 0x02, with DSCP 26: 0x6a), or the default of the port (cma_roce_tos).";

fn ends(ways: &[&Marking<'_>]) -> usize {
    let mut all: Vec<_> = ways.iter().flat_map(|w| [w.first.src, w.first.dst]).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}
