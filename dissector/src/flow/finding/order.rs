//! Codes `reordering` and `network-duplicates`: the network changed order or number of packets.

use std::fmt::Write as _;

use super::{Finding, Seen, Severity, count, evidence, name};
use crate::flow::event::Happened;

/// Looks for reordering and copies.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let doubled = out.iter().any(|f| f.code == "capture-doubled");
    let unsorted = a.quality().backwards > 0;
    for f in a.flows().filter(|f| f.ordered()) {
        let first = f.reordered.saturating_sub(f.repairs().late_repairs + f.repairs().early_repairs);
        let overtaken = f.repairs().overtaken;
        let late = first + overtaken;
        if late > 0 {
            let mut detail = format!(
                "{} of {} came after a later PSN, without having been asked for by a NAK.",
                first,
                count(f.requests + f.responses, "packet", "packets")
            );
            if overtaken > 0 {
                let _ = write!(detail, " {overtaken} came after they had been sent again, so they had only been late.");
            }
            if f.repairs().late_naks > 0 {
                let _ = write!(
                    detail,
                    " {} answered by a sequence NAK, so whole windows were sent again for nothing.",
                    count(f.repairs().late_naks, "was", "were")
                );
            }
            if unsorted {
                detail.push_str(" The capture's clock goes backwards: this may be the order of the file only.");
            }
            detail.push_str(" Look at per-packet load balancing (adaptive routing, packet spraying), a changing UDP source port, LAG members; RC needs order unless both ends support out-of-order placement.");
            out.push(Finding {
                code: "reordering",
                severity: if unsorted { Severity::Note } else { Severity::Warning },
                title: format!("{}: {} out of order", name(f), count(late, "packet", "packets")),
                detail,
                flow: Some(f.id),
                packets: evidence([f], &[Happened::Late]),
            });
        }
        // where the recorder doubles everything, nothing is known of the network
        if f.duplicates > 0 && !doubled {
            out.push(Finding {
                code: "network-duplicates",
                severity: Severity::Warning,
                title: format!("{}: {} by the network", name(f), count(f.duplicates, "packet was copied", "packets were copied")),
                detail: "The same packet came twice (same IP identification, or at once and without cause), so it was not the sender. Look for a loop, a flooding switch, a bond in the wrong mode, or a mirror that records twice.".to_owned(),
                flow: Some(f.id),
                packets: evidence([f], &[Happened::Duplicate]),
            });
        }
    }
}
