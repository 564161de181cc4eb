//! Codes `bad-icrc`, `icrc-not-written` and `icrc-flush`: packets whose invariant CRC is wrong, by sender.
//!
//! A receiver drops such packets in silence. So where the other end takes them, the ICRC on the wire was right,
//! and it is the capture that lacks it: taken inside the sender before the ICRC was written, or edited.

use super::{Finding, Map, Seen, Severity, count, evidence};
use crate::flow::event::Happened;
use crate::flow::row::Endpoint;
use crate::flow::state::Flow;

/// Looks for wrong ICRCs.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let mut bad: Vec<&Flow> = seen.analysis.flows().filter(|f| f.icrc.bad > 0).collect();
    bad.sort_by_key(|f| f.src);
    let mut good_of: Map<Endpoint, u64> = super::map();
    for f in seen.analysis.flows().filter(|_| !bad.is_empty()) {
        *good_of.entry(f.src).or_insert(0) += f.icrc.good;
    }
    for g in bad.chunk_by(|x, y| x.src == y.src) {
        let Some(src) = g.first().map(|f| f.src) else { continue };
        let flushes: u64 = g.iter().map(|f| u64::from(f.icrc_flush)).sum();
        let n: u64 = g.iter().map(|f| f.icrc.bad).sum::<u64>() - flushes;
        let worst = g.iter().max_by_key(|f| f.icrc.bad).map(|f| f.id);
        if flushes > 0 {
            out.push(Finding {
                code: "icrc-flush",
                severity: Severity::Note,
                title: format!("{} from {src} with the ICRC of the kernel's soft-RoCE", count(flushes, "FLUSH", "FLUSHes")),
                detail: "rdma_rxe runs the headers of a FLUSH through the CRC twice. Two such hosts understand each other; other hardware would drop the packets.".to_owned(),
                flow: worst,
                packets: evidence(g.iter().copied(), &[Happened::OddFlush]),
            });
        }
        if n == 0 {
            continue;
        }
        let good = good_of.get(&src).copied().unwrap_or(0);
        let all = good == 0;
        let values: Vec<u32> = g.iter().filter_map(|f| f.trouble.as_ref()?.icrc).collect();
        let differ = g.iter().any(|f| f.trouble.as_ref().is_some_and(|t| t.icrcs_differ));
        let constant =
            values.first().copied().filter(|v| !differ && (n > 1 || *v == 0) && values.iter().all(|w| w == v));
        let taken = seen.analysis.flows().any(|f| f.src == src && is_taken(seen, f));
        let unanswered = g.iter().all(|f| !f.reliable() || !seen.sides.back(f.key.addresses));
        if all && (taken || unanswered && constant.is_some()) {
            let how = match constant {
                Some(v) => format!("All {n} of its packets have {v:#010x} in its place."),
                None => format!("None of its {n} packets is right."),
            };
            let proof = if taken {
                "The other end takes them, so on the wire they were right."
            } else {
                "No answers to them are in the capture, so whether a receiver takes them cannot be told."
            };
            out.push(Finding {
                code: "icrc-not-written",
                severity: Severity::Note,
                title: format!("the capture has no valid ICRC from {src}"),
                detail: format!("{how} {proof} A capture inside the sending host is taken before its adapter writes the ICRC; captures whose addresses were changed look the same. Damage on the way cannot be seen here."),
                flow: worst,
                packets: evidence(g.iter().copied(), &[Happened::BadIcrc]),
            });
            continue;
        }
        let mistake = g.iter().find_map(|f| f.trouble.as_ref()?.mistake);
        let mut why = mistake.map(|m| format!("The first one is explained: {m}. ")).unwrap_or_default();
        if let Some(v) = constant.filter(|_| all) {
            why = format!("All have the same value, {v:#010x}: nobody has calculated it. {why}");
        }
        out.push(Finding {
            code: "bad-icrc",
            severity: if all { Severity::Error } else { Severity::Warning },
            title: format!("{} from {src} with a wrong ICRC", count(n, "packet", "packets")),
            detail: why + &if all {
                "Not one packet of this sender is right: its ICRC is computed wrongly (FPGA, software stack), a device in between rewrites what the ICRC covers (NAT, tunnel offload, UDP port), or the capture was edited. A receiver drops them in silence.".to_owned()
            } else {
                format!("{good} others of this sender are right, so the packets were damaged on the way (receivers drop them in silence, which looks like loss). Look at the FCS and symbol errors of the links between the sender and this capture; memory of switches too, if the FCS is right.")
            },
            flow: worst,
            packets: evidence(g.iter().copied(), &[Happened::BadIcrc]),
        });
    }
}

/// The other end takes what this flow sends: it acknowledges it, or does not wait for the answers in vain.
fn is_taken(seen: &Seen<'_>, f: &Flow) -> bool {
    let answers = f.acks + f.responses > 0;
    let in_vain = |p: &Flow| super::retry::open_attempts(p).is_some_and(|t| t.times > 2);
    f.acked.is_some() || answers && seen.analysis.peer(f).is_some_and(|p| p.requests > 1 && !in_vain(p))
}
