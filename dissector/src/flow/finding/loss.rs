//! Code `loss`: packets that did not arrive, by pair of hosts and direction.

use std::fmt::Write as _;

use super::{Finding, Map, Seen, Severity, count, evidence, name};
use crate::flow::event::Happened;
use crate::flow::state::{Cause, Flow};
use crate::wire::Transport;

/// Losses of one flow, by how they are known.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    nak: u64,
    silence: u64,
    gap: u64,
}

impl Lost {
    const fn total(self) -> u64 {
        self.nak + self.silence + self.gap
    }

    fn of(f: &Flow, peer: Option<&Flow>, answered: bool) -> Self {
        if f.transport == Transport::Uc {
            return Self { gap: f.req.missing, ..Self::default() };
        }
        let rewinds = |c: Cause| f.repairs().rewinds.get(c as usize).copied().unwrap_or(0);
        let nak = f.repairs().loss_naks;
        // a flow that nobody answers is another matter
        let silence = if answered {
            (rewinds(Cause::Timeout) + rewinds(Cause::Unknown))
                .saturating_sub(f.repairs().rewinds_acked + f.repairs().response_losses)
        } else {
            0
        };
        // attempts at a PSN that never got through are told as such
        let stuck = super::retry::open_attempts(f).map_or(0, |t| u64::from(t.times) - 1);
        let silence = silence.saturating_sub(stuck);
        let silence = silence + peer.map_or(0, |p| p.repairs().response_losses);
        let never = f.req.missing.saturating_sub(f.req.missing_acked) + f.rsp.missing - only_unrecorded(f, peer);
        // what was repaired shows as a NAK or a repeat; holes that nobody asked about only count on top
        let gap = (never + f.repairs().late_repairs).saturating_sub(nak + silence);
        Self { nak, silence, gap }
    }
}

/// Packets of READ responses that only the recorder missed: the requester goes on with new requests and asks for
/// nothing again, which it cannot do with a hole in an answer.
pub fn only_unrecorded(f: &Flow, requester: Option<&Flow>) -> u64 {
    let latest = f.rsp.holes().iter().filter(|h| h.due).map(|h| h.packet).max();
    let (Some(latest), Some(p)) = (latest, requester) else { return 0 };
    let asked_again = p.retransmitted > 0 || p.repairs().read_restarts > 0 || p.repairs().late_repairs > 0;
    if !asked_again && p.last_request.1 > latest { f.rsp.missing } else { 0 }
}

/// Looks for losses.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let mut lossy: Vec<(&Flow, Lost)> = a
        .flows()
        .filter(|f| f.ordered())
        .map(|f| {
            let peer = a.peer(f);
            let answered = peer.is_none_or(|p| p.acks + p.responses + p.naks.total() + p.rnr_naks > 0);
            let stuck = peer.is_none() && f.req.next().distance(f.req.low()) <= 1;
            (f, Lost::of(f, peer, answered && !stuck))
        })
        .filter(|(_, l)| l.total() > 0)
        .collect();
    lossy.sort_by_key(|(f, _)| f.key.addresses.ordered());
    let mut sent_to: Map<_, u64> = super::map();
    for f in a.flows().filter(|f| f.ordered() && !lossy.is_empty()) {
        *sent_to.entry(f.key.addresses).or_insert(0) += (f.requests + f.responses).saturating_sub(f.duplicates);
    }
    let mut groups: Vec<&[(&Flow, Lost)]> = lossy.chunk_by(|x, y| x.0.key.addresses == y.0.key.addresses).collect();
    // the worst pair of hosts first
    groups.sort_by_key(|g| std::cmp::Reverse(g.iter().map(|(_, l)| l.total()).sum::<u64>()));
    for g in groups {
        let Some((worst, _)) = g.iter().max_by_key(|(_, l)| l.total()) else { continue };
        let sum = |f: fn(&Lost) -> u64| g.iter().map(|(_, l)| f(l)).sum::<u64>();
        let (nak, silence, gap) = (sum(|l| l.nak), sum(|l| l.silence), sum(|l| l.gap));
        let total = nak + silence + gap;
        let sent = sent_to.get(&worst.key.addresses).copied().unwrap_or(0);
        // repeats alone may have been asked for: by RNR NAKs, or because acknowledges were lost
        let suspected = nak == 0 && gap == 0 && !seen.sides.back(worst.key.addresses);
        let mut how = vec![];
        if nak > 0 {
            how.push(format!("{nak} answered by a sequence NAK"));
        }
        if silence > 0 {
            how.push(format!("{silence} noticed by the sender only (time-out or missing response)"));
        }
        if gap > 0 {
            how.push(format!("{gap} seen as a hole in the PSNs only"));
        }
        let uc = g.iter().all(|(f, _)| f.transport == Transport::Uc);
        let mut flows: Vec<&Flow> = g.iter().map(|(f, _)| *f).collect();
        let peers: Vec<&Flow> = flows.iter().filter_map(|f| a.peer(f)).collect();
        flows.extend(peers);
        let mut detail = format!("Of {}: {}.", count(total, "loss", "losses"), how.join(", "));
        if uc {
            detail.push_str(" UC does not repair: the receiver drops the rest of each message that has a hole.");
        } else {
            let again: u64 = g.iter().map(|(f, _)| f.retransmitted).sum();
            let _ = write!(detail, " {} sent again because of it.", count(again, "packet was", "packets were"));
        }
        let late: u64 =
            g.iter().map(|(f, _)| f.reordered.saturating_sub(f.repairs().late_repairs) + f.repairs().overtaken).sum();
        if late > 0 && nak > 0 {
            let _ = write!(detail, " {late} packets came late, so some of it may be reordering.");
        }
        if g.len() == 1 {
            let _ = write!(detail, " All on {}.", name(worst));
        } else {
            let _ = write!(detail, " By queue pair of {}: {}.", worst.dst, by_queue_pair(g));
        }
        if !uc && !seen.sides.back(worst.key.addresses) {
            detail.push_str(
                " Only this direction was captured, so this is what repeats and gaps suggest, not what NAKs prove.",
            );
        }
        let broken: u64 = g.iter().map(|(f, _)| f.icrc.bad).sum();
        if broken > 0 {
            let _ = write!(
                detail,
                " {} wrong: a receiver drops such packets, and the sender sees a loss. Damage on the way, not a full queue, explains as many.",
                count(broken, "ICRC among them is", "ICRCs among them are")
            );
        }
        if a.quality().dropped > 0 {
            detail.push_str(" The recorder itself dropped packets; some of the gaps may be its own.");
        }
        detail.push_str(" Look at drops and pauses on the way from the one to the other: switch port counters, PFC on this priority, buffer thresholds, cabling (symbol and FCS errors).");
        out.push(Finding {
            code: "loss",
            severity: if suspected { Severity::Note } else { Severity::Warning },
            title: format!(
                "{}{} from {} to {} ({:.2} % of {})",
                if suspected { "perhaps " } else { "" },
                count(total, "packet lost", "packets lost"),
                worst.src,
                worst.dst,
                total as f64 * 100.0 / (sent + gap).max(1) as f64,
                count(sent, "packet", "packets")
            ),
            detail,
            flow: Some(worst.id),
            packets: evidence(
                flows,
                &[Happened::NakSequence, Happened::AgainAfterNak, Happened::AgainAfterSilence, Happened::Gap],
            ),
        });
    }
    unseen(seen, out);
}

/// How many of the losses fell to which queue pair, the worst first.
fn by_queue_pair(lossy: &[(&Flow, Lost)]) -> String {
    const TOLD: usize = 8;
    let mut order: Vec<(u64, u32)> = lossy.iter().map(|(f, l)| (l.total(), f.key.dest_qp)).collect();
    order.sort_by_key(|(n, qp)| (std::cmp::Reverse(*n), *qp));
    let mut parts: Vec<String> = order.iter().take(TOLD).map(|(n, qp)| format!("{qp:#x} lost {n}")).collect();
    if let Some(more) = order.len().checked_sub(TOLD).filter(|n| *n > 0) {
        let rest: u64 = order.iter().skip(TOLD).map(|(n, _)| n).sum();
        parts.push(format!("{more} more together {rest}"));
    }
    parts.join(", ")
}

/// Where only the answers were captured, their sequence NAKs tell of losses all the same.
fn unseen(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    for f in seen.analysis.flows().filter(|f| f.pair.is_none() && f.naks.psn_sequence_error > 0) {
        if seen.sides.back(f.key.addresses) {
            continue; // other flows may be the other half
        }
        let naks = count(f.naks.psn_sequence_error, "sequence NAK tells", "sequence NAKs tell");
        out.push(Finding {
            code: "loss",
            severity: Severity::Warning,
            title: format!("{naks} of packets lost from {} to {}", f.dst, f.src),
            detail: format!(
                "Each names a PSN that {} had not received when a later one came. Only the answers were captured, so what was lost and how it was repaired cannot be seen. Look at drops and pauses on the way from the one to the other: switch port counters, PFC on this priority, buffer thresholds, cabling (symbol and FCS errors).",
                f.src
            ),
            flow: Some(f.id),
            packets: f.evidence(&[Happened::NakSequence]),
        });
    }
}
