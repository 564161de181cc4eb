//! Code `source-port-entropy`: many queue pairs on one UDP source port take one path.

use super::{Finding, Seen, Severity};
use crate::flow::Analyzer;
use crate::flow::state::Flow;

/// Queue pairs between two hosts from which on one port is an oversight.
const MANY: usize = 4;

/// Whether no answer flow between the hosts of `f` is without a partner, so that its own would have been joined.
pub fn only_unjoined(a: &Analyzer, f: &Flow) -> bool {
    !a.flows().any(|o| {
        o.pair.is_none() && o.key.addresses == f.key.addresses.reversed() && o.acks + o.responses + o.naks.total() > 0
    })
}

/// Looks at source ports.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let mut flows: Vec<&Flow> =
        seen.analysis.flows().filter(|f| f.ordered() && f.requests + f.responses > 0 && f.port.is_some()).collect();
    flows.sort_by_key(|f| (f.key.addresses.ordered(), f.id));
    for g in flows.chunk_by(|x, y| x.key.addresses == y.key.addresses) {
        let mut ports: Vec<u16> = g.iter().filter_map(|f| f.port).collect();
        ports.sort_unstable();
        ports.dedup();
        // a sender that changes its ports spreads each flow by itself
        let spread = g.iter().any(|f| f.port_changes > 0);
        let (Some(first), Some(port)) = (g.first(), ports.first()) else { continue };
        if g.len() < MANY || ports.len() * 4 > g.len() || spread {
            continue;
        }
        out.push(Finding {
            code: "source-port-entropy",
            severity: Severity::Warning,
            title: format!(
                "{} to {}: {} queue pairs, {} UDP source {}",
                first.src,
                first.dst,
                g.len(),
                ports.len(),
                if ports.len() == 1 { format!("port ({port})") } else { "ports".to_owned() }
            ),
            detail: "Routers spread flows by addresses and ports (ECMP, LAG), so all of these share the same links. Let the driver derive the source port from the QP numbers (flow label, udp_sport of the QP), or set it.".to_owned(),
            flow: Some(first.id),
            packets: g.iter().take(8).map(|f| f.first_packet).collect(),
        });
    }
}
