//! Code `psn-disagree`: the two ends of a connection began with different PSNs. Everything is acknowledged as a
//! repeat and nothing delivered, or everything is refused.

use super::{Finding, Seen, Severity, count, name};
use crate::flow::state::PairedBy;

/// So many answers that say the same; one more if others follow, which a duplicated acknowledge at the start of
/// a capture would look like.
const SAME: u32 = 2;

/// Looks for responders that wait for a PSN which was never sent.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.reliable()) {
        let (Some(s), Some(p)) = (f.standing.as_ref().filter(|s| s.times >= SAME), a.peer(f)) else { continue };
        let fresh = p.requests.saturating_sub(p.retransmitted + p.duplicates);
        // inside of what was sent, or before the capture began: a repeated acknowledge, no disagreement
        let sent = s.psn.distance(p.req.low()) >= 0 && s.psn.distance(p.req.next()) < 0;
        if !p.req.started() || sent || p.first_packet > s.packets.0 || s.over && s.times <= SAME {
            continue;
        }
        let (title, detail) = if s.nak {
            // the sender would have gone back to it, had it ever sent it
            let took_it = p.acked.is_some_and(|a| a.distance(s.psn) >= 0);
            if s.psn.distance(p.req.low()) >= 0 || p.retransmitted == 0 || took_it {
                continue;
            }
            (
                format!("{}: the responder waits for PSN {}, which was never sent", name(p), s.psn.get()),
                format!(
                    "The requester began with PSN {}; {} name{} an earlier one, and it cannot go back to what it does not have.",
                    p.req.low().get(),
                    count(u64::from(s.times), "sequence NAK", "sequence NAKs"),
                    if s.times == 1 { "s" } else { "" }
                ),
            )
        } else {
            if fresh < u64::from(SAME) {
                continue;
            }
            (
                format!(
                    "{}: answers acknowledge PSN {}, which was never sent, and their MSN stands still at {}",
                    name(p),
                    s.psn.get(),
                    s.msn
                ),
                format!(
                    "{} from PSN {} on were answered by {} that all say the same: the responder takes new requests for repeats. They count as done here, and were not delivered there.",
                    count(fresh, "request", "requests"),
                    p.req.low().get(),
                    count(u64::from(s.times), "ACK", "ACKs"),
                ),
            )
        };
        let doubt = if f.paired_by == Some(PairedBy::Elimination) {
            " (That the two directions are one connection is inferred: there is no other.)"
        } else {
            ""
        };
        out.push(Finding {
            code: "psn-disagree",
            severity: Severity::Error,
            title,
            detail: format!(
                "{detail} The two ends began with different PSNs: compare sq_psn of the one with rq_psn of the other (ibv_modify_qp to RTR and RTS, or what was exchanged out of band), and look for a QP that only one side made anew.{doubt}"
            ),
            flow: Some(p.id),
            packets: [p.first_packet, s.packets.0, s.packets.1].into(),
        });
    }
}
