//! Code `priority-stalled`: all queue pairs of a class stand still together, in the middle of their messages.

use super::{Finding, Seen, Severity, count, time};

/// Looks at stalls.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let stalls = &seen.analysis.stalls();
    let Some(worst) = stalls.iter().max_by_key(|s| s.length) else { return };
    let mut packets: Vec<u64> = stalls.iter().flat_map(|s| [s.before, s.after]).collect();
    packets.sort_unstable();
    packets.dedup();
    out.push(Finding {
        code: "priority-stalled",
        severity: Severity::Warning,
        title: format!(
            "{} in the middle of messages stood still together for {} (DSCP {})",
            count(u64::from(worst.flows), "flow", "flows"),
            time(worst.length),
            worst.dscp
        ),
        detail: format!(
            "{} of this kind, without losses: something holds the class back. That is what PFC pauses do (look at the pause counters of the ports on the way, and for the one where they begin), or a recorder that slept.",
            count(stalls.len() as u64, "stall", "stalls")
        ),
        flow: None,
        packets,
    });
}
