//! Code `source-port-entropy`: many queue pairs on one UDP source port take one path.

use hashbrown::HashSet;

use super::{Finding, Seen, Severity};
use crate::flow::Analyzer;
use crate::flow::key::Addresses;
use crate::flow::state::Flow;

/// Queue pairs between two hosts from which on one port is an oversight.
const MANY: usize = 4;

/// Ways on which answers came that could not be assigned to a queue pair.
pub fn unjoined_answers(a: &Analyzer) -> HashSet<Addresses, foldhash::fast::FixedState> {
    let mut ways = HashSet::with_hasher(foldhash::fast::FixedState::with_seed(0));
    ways.extend(
        a.flows().filter(|o| o.pair.is_none() && o.acks + o.responses + o.naks.total() > 0).map(|o| o.key.addresses),
    );
    ways
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
