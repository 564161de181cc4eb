//! Codes `bad-icrc` and `icrc-flush`: packets whose invariant CRC is wrong, by sender.

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
        let flushes: u64 = g.iter().map(|f| f.icrc_flush).sum();
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
        let mistake = g.iter().find_map(|f| f.trouble.as_ref()?.mistake);
        let why = mistake.map(|m| format!("The first one is explained: {m}. ")).unwrap_or_default();
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
