//! Codes `rnr` and `rnr-timer-zero`: the receiver has no receive buffer posted.

use std::fmt::Write as _;

use super::{Finding, Seen, Severity, count, evidence, name, time};
use crate::flow::event::Happened;
use crate::flow::state::Cause;
use crate::wire::aeth::rnr_timer_10us;

/// Looks for RNR NAKs.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.rnr_naks > 0) {
        let peer = a.peer(f);
        let sent = peer.map_or(0, |p| p.requests.saturating_sub(p.duplicates));
        let naks = f.rnr_naks.saturating_sub(f.trouble.as_ref().map_or(0, |t| t.copied_rnr));
        let first = f.trouble.as_ref().and_then(|t| t.events.first(Happened::Rnr));
        let code = first.map_or(0, |e| u8::try_from(e.value).unwrap_or(0));
        let timer = i64::from(rnr_timer_10us(code)) * 10_000;
        let again = peer.map_or(0, |p| p.repairs().causes.get(Cause::RnrNak as usize).copied().unwrap_or(0));
        let who =
            peer.map_or_else(|| format!("{} (QP unknown)", f.src), |p| format!("{} QP {:#x}", p.dst, p.key.dest_qp));
        let mut detail = format!(
            "Timer code {code} ({}). {} sent again because of it{}. Post more receives, or sooner; a longer min_rnr_timer only spaces the attempts.",
            time(timer),
            count(again, "packet was", "packets were"),
            if sent > 0 {
                format!("; {:.0} % of the requests met no buffer", naks as f64 * 100.0 / sent as f64)
            } else {
                String::new()
            },
        );
        let cnps = peer.map_or(0, |p| p.cnps) + f.cnps;
        let ce = peer.map_or(0, |p| p.ecn[3]) + f.ecn[3];
        if cnps > 0 && ce == 0 {
            let _ = write!(
                detail,
                " No packet is CE-marked, though {} came: the receiver, not the network, is the bottleneck.",
                count(cnps, "CNP", "CNPs")
            );
        }
        let packets = evidence(peer.into_iter().chain([f]), &[Happened::Rnr, Happened::AgainAfterRnr]);
        out.push(Finding {
            code: "rnr",
            severity: Severity::Warning,
            title: format!("{who} was not ready to receive: {} to {}", count(naks, "RNR NAK", "RNR NAKs"), f.dst),
            detail,
            flow: Some(f.id),
            packets: packets.clone(),
        });
        let rnr_zero = f.trouble.as_ref().map_or(0, |t| t.rnr_zero);
        if rnr_zero > 0 {
            out.push(Finding {
                code: "rnr-timer-zero",
                severity: Severity::Warning,
                title: format!("{}: RNR timer code 0 means 655.36 ms, not zero: each RNR NAK stalls the QP that long", name(f)),
                detail: format!(
                    "{} with timer code 0. Set min_rnr_timer of the receiving QP (ibv_modify_qp) to what was meant: 1 is 10 us, 12 is 0.64 ms.",
                    count(rnr_zero, "RNR NAK", "RNR NAKs")
                ),
                flow: Some(f.id),
                packets,
            });
        }
    }
}
