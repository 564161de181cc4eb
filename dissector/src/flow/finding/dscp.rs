//! Codes `dscp-mixed` and `dscp-asymmetric`: packets of one pair of hosts in several traffic classes.

use super::{Finding, Seen, Severity, name};
use crate::flow::state::Flow;

fn list(bits: u64) -> String {
    (0..64).filter(|b| bits >> b & 1 == 1).map(|b| b.to_string()).collect::<Vec<_>>().join(", ")
}

/// Looks at DSCPs.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let mut data: Vec<&Flow> =
        a.flows().filter(|f| f.ordered() && f.requests > 0 && f.dscp_data.count_ones() >= 1).collect();
    data.sort_by_key(|f| (f.key.addresses.ordered(), f.id));
    for g in data.chunk_by(|x, y| x.key.addresses == y.key.addresses) {
        let all = g.iter().fold(0, |b, f| b | f.dscp_data);
        if all.count_ones() < 2 {
            continue;
        }
        // the class that most flows use is the one that was meant
        let usage = |b: u32| g.iter().filter(|f| f.dscp_data >> b & 1 == 1).count();
        let Some(main) = (0..64).filter(|b| all >> b & 1 == 1).max_by_key(|b| usage(*b)) else { continue };
        let odd: Vec<&&Flow> = g.iter().filter(|f| f.dscp_data & !(1 << main) != 0).collect();
        let Some(first) = odd.first() else { continue };
        out.push(Finding {
            code: "dscp-mixed",
            severity: Severity::Warning,
            title: format!(
                "{} to {}: {} of {} data flows use another DSCP ({}) than {main}",
                first.src,
                first.dst,
                odd.len(),
                g.len(),
                list(all & !(1 << main))
            ),
            detail: format!(
                "The first is {}. Its packets go through another queue: without PFC and ECN, or with another share of the link. Check the traffic class that the application sets (NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS, rdma_set_option) on every QP.",
                name(first)
            ),
            flow: Some(first.id),
            packets: odd.iter().take(8).map(|f| f.first_packet).collect(),
        });
    }
    for f in a.flows().filter(|f| f.reliable() && f.requests > 0) {
        let Some(p) = a.peer(f) else { continue };
        let back = p.dscp_ack | if p.responses > 0 { p.dscp_data } else { 0 };
        if back == 0 || f.dscp_data.count_ones() != 1 || back & f.dscp_data != 0 {
            continue;
        }
        let responses = p.responses > 0 && p.dscp_data & f.dscp_data == 0;
        out.push(Finding {
            code: "dscp-asymmetric",
            severity: if responses { Severity::Warning } else { Severity::Note },
            title: format!(
                "{}: requests have DSCP {}, {} come back with {}",
                name(f),
                list(f.dscp_data),
                if responses { "READ responses" } else { "acknowledges" },
                list(back)
            ),
            detail: "The traffic class is set at one end only, so the other direction goes through another queue. Some set-ups do that on purpose for acknowledges; for READ responses it takes bulk data out of the lossless class.".to_owned(),
            flow: Some(f.id),
            packets: vec![f.first_packet, p.first_packet],
        });
    }
}
