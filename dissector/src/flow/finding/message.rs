//! Code `message-stopped`: a message began and never ended.

use super::{Finding, Seen, Severity, name, time};
use crate::flow::state::Flow;
use crate::wire::Transport;

/// Looks for messages without an end.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.ordered() && f.message.open) {
        let m = &f.message;
        let silence = a.quality().end().since(f.last_request.0);
        let others_go_on = a.quality().last_number > f.last_packet + 2;
        if silence < 100_000_000 && !(others_go_on && silence > 10_000_000) {
            continue;
        }
        // its end was acknowledged, so only the recorder missed it
        if f.acked.is_some_and(|a| a.is_after(m.psn)) {
            continue;
        }
        // a refusal ends a message too, and is told as such; so are retries that ran out
        let refused = a.peer(f).map_or(0, |p| p.naks.total() - p.naks.psn_sequence_error);
        if refused > 0 || super::retry::open_attempts(f).is_some_and(|t| t.times > 2) {
            continue;
        }
        if f.transport == Transport::Uc {
            out.push(cut_off(f, silence));
            continue;
        }
        let of = if m.want > 0 { format!(" of {} bytes", m.want) } else { String::new() };
        let asked = a.peer(f).map_or(0, |p| p.naks.total() + p.rnr_naks);
        let repeats = f.retransmitted;
        out.push(Finding {
            code: "message-stopped",
            // where answers were not captured, one of them may have refused it
            severity: if seen.sides.back(f.key.addresses) { Severity::Error } else { Severity::Note },
            title: format!("{}: a message{of} stopped after {} bytes, at PSN {}", name(f), m.got, m.psn.get()),
            detail: format!(
                "Nothing follows on this QP for {}. {} came back, {} sent again. The sender has stopped by itself: its retransmission or flow control (credits, congestion control at rate zero, PFC) holds it, or its process is gone.",
                time(silence),
                super::count(asked, "NAK", "NAKs"),
                super::count(repeats, "packet was", "packets were"),
            ),
            flow: Some(f.id),
            packets: vec![m.packet, m.latest],
        });
    }
}

/// On UC nothing comes again and nothing comes back, so what a message lacks is most likely lost.
fn cut_off(f: &Flow, silence: i64) -> Finding {
    let m = &f.message;
    let of = if m.want > 0 { format!(" of {} bytes", m.want) } else { String::new() };
    Finding {
        code: "message-stopped",
        severity: Severity::Warning,
        title: format!(
            "{}: the end of a message{of} is missing: {} bytes came, up to PSN {}",
            name(f),
            m.got,
            m.psn.get()
        ),
        detail: format!(
            "Nothing follows on this QP for {}. UC has no answers and no repeats, so nothing proves it: the last packets of the message were most likely lost, or the sender has stopped. The receiver drops a message without an end in silence.",
            time(silence)
        ),
        flow: Some(f.id),
        packets: vec![m.packet, m.latest],
    }
}
