//! Code `cnp-suspicious`: CNPs that do not look as if the peer had sent them.

use super::{Finding, Map, Seen, Severity, count, evidence, name};
use crate::flow::event::Happened;
use crate::flow::state::Flow;

fn mac(m: [u8; 6]) -> String {
    m.map(|b| format!("{b:02x}")).join(":")
}

/// Looks at where CNPs come from.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    if !a.flows().any(|f| f.cnps > 0) {
        return;
    }
    let mut others: Map<_, &Flow> = super::map();
    for o in a.flows().filter(|o| o.mac.is_some()) {
        others.entry(o.key.addresses).or_insert(o);
    }
    for f in a.flows().filter(|f| f.cnps > 0) {
        // the sender's other packets: of this flow, or else of any of its flows to the same host
        let own = Some(f).filter(|f| f.mac.is_some());
        let Some(o) = own.or_else(|| others.get(&f.key.addresses).copied()) else { continue };
        let Some(n) = f.notifications.as_deref() else { continue };
        let mut odd = vec![];
        if let (Some(x), Some(y)) = (n.mac, o.mac)
            && x != y
        {
            odd.push(format!("their source MAC is {}, that of its other packets {}", mac(x), mac(y)));
        }
        if n.ttl < o.ttl.0 || n.ttl > o.ttl.1 {
            odd.push(format!("their TTL is {}, that of its other packets {}", n.ttl, o.ttl.0));
        }
        if odd.is_empty() {
            continue;
        }
        out.push(Finding {
            code: "cnp-suspicious",
            severity: Severity::Warning,
            title: format!("{}: {} that {} may not have sent", name(f), count(f.cnps, "CNP", "CNPs"), f.src),
            detail: format!(
                "{}. A CNP carries no secret: whoever can send UDP to port 4791 slows a QP down with it. Compare the CNP counter of the peer (np_cnp_sent) with what arrives.",
                odd.join(", ")
            ),
            flow: Some(f.id),
            packets: evidence([f], &[Happened::Cnp]),
        });
    }
}
