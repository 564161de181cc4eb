//! Codes `retry-exceeded` and `rnr-retry-exceeded`: one PSN sent again and again, then silence.

use std::fmt::Write as _;

use super::{Finding, Seen, Severity, count, name, time, timeout_code};
use crate::flow::state::{Attempts, Flow};

/// Attempts that a sender never got an answer to.
pub fn open_attempts(f: &Flow) -> Option<&Attempts> {
    let t = f.trouble.as_ref()?;
    // new packets after the last repeat: it goes on
    f.rewinding?;
    (t.attempts.times >= 2).then_some(&t.attempts)
}

/// Times between attempts, nanoseconds.
pub fn intervals(at: &Attempts) -> Vec<i64> {
    at.at.windows(2).filter_map(|w| Some(w.get(1)?.since(*w.first()?))).collect()
}

/// Looks for flows that gave up.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.reliable() && (f.repairs().owed.is_none() || f.repairs().past_owed == 0)) {
        let Some(at) = open_attempts(f) else { continue };
        let gaps = intervals(at);
        let Some(longest) = gaps.iter().copied().max() else { continue };
        // the head of a go-back-N is repeated last of all only if nothing new followed
        if f.req.next().distance(at.psn) > 0 && f.last_request.0.since(at.last) > longest {
            continue;
        }
        let peer = a.peer(f);
        let rnr = at.rnr > 0 || peer.is_some_and(|p| p.rnr_naks > 0 && f.repairs().rnr_psn == Some(at.psn));
        let silence = a.quality().end().since(f.last_request.0);
        let first = at.at.first().copied().unwrap_or(at.last);
        let heard = match peer {
            Some(p) if p.requests > 0 => " The peer goes on sending requests of its own, so it is alive.",
            Some(p) if p.acks + p.responses + p.naks.total() + p.rnr_naks > 0 => {
                " The peer had answered earlier packets."
            }
            _ if seen.sides.back(f.key.addresses) => {
                " Nothing came back on this QP, while other QPs of the same host do answer."
            }
            _ => " Nothing at all came back from that host.",
        };
        // an ending is certain only if another attempt would have been seen
        let certain = silence > longest * 3 / 2;
        if rnr {
            // answered with ACK in the meantime would have cleared the attempts
            let given_up = f.last_request.0 <= peer.map_or(f.last_request.0, |p| p.last_response);
            if !given_up || !certain {
                continue;
            }
            let conn = f.connection.and_then(|c| a.connections().get(c));
            let limit = conn.and_then(|c| {
                let side = a.connections().find(f.dst, crate::wire::Qpn::new(f.key.dest_qp))?.1;
                c.end(side.other()).rnr_retry
            });
            let mut packets = at.packets.clone();
            if let Some(p) = peer {
                packets.extend(p.evidence(&[crate::flow::event::Happened::Rnr]));
            }
            packets.sort_unstable();
            packets.dedup();
            out.push(Finding {
                code: "rnr-retry-exceeded",
                severity: Severity::Error,
                title: format!(
                    "{} gave up after {} of PSN {}: the receiver had no receive buffer posted",
                    name(f),
                    count(u64::from(at.times), "sending", "sendings"),
                    at.psn.get()
                ),
                detail: format!(
                    "Each was answered by an RNR NAK, the last one by silence.{} Post receives before the peer sends, or raise rnr_retry (7 is endless) and min_rnr_timer.",
                    limit.map(|l| format!(" The connection was made with an RNR retry count of {l}.")).unwrap_or_default()
                ),
                flow: Some(f.id),
                packets,
            });
            continue;
        }
        if at.times < 3 {
            continue;
        }
        let shortest = gaps.iter().copied().min().unwrap_or(longest);
        let code = timeout_code(longest.unsigned_abs());
        let even = longest < shortest * 3 / 2;
        let mut detail = format!(
            "Sent {} times over {}, {} apart: nearest to a time-out code of {code} (4.096 us * 2^{code} = {}){}.{heard}",
            at.times,
            time(at.last.since(first)),
            if even { time(longest) } else { format!("{} to {}", time(shortest), time(longest)) },
            time(4096i64 << code),
            if even { "" } else { "; growing or uneven distances mean adaptive retransmission" },
        );
        if certain {
            let _ = write!(
                detail,
                " Then nothing for {} until the capture ends: the QP is in error (the application sees completion status 12, transport retry counter exceeded; on mlx5 with vendor error 0x81).",
                time(silence)
            );
        } else {
            detail.push_str(" The capture ends before another attempt was due, so it may still be trying.");
        }
        let acked = f.acked.is_some_and(|a| at.psn.distance(a) <= 0);
        if acked {
            let _ = write!(
                detail,
                " Each time it was acknowledged, so the acknowledges are lost between here and {}.",
                f.src
            );
        }
        detail.push_str(" Look at: is the peer's QP alive (application crashed?), GID and route in both directions, firewall on UDP 4791, path MTU if only large packets fail.");
        out.push(Finding {
            code: "retry-exceeded",
            // a capture that just ends says nothing about how it went on
            severity: if certain || at.times > 4 { Severity::Error } else { Severity::Note },
            title: format!("{}: PSN {} was sent {} times and never acknowledged", name(f), at.psn.get(), at.times),
            detail,
            flow: Some(f.id),
            packets: at.packets.clone(),
        });
    }
}
