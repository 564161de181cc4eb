//! Codes `pfc-storm` and `pfc`: pauses that devices ask for.

use super::{Finding, Seen, Severity, count, time};
use crate::flow::asides::{Pauser, WHOLE_LINK};

/// Continuous pause from which on watchdogs of switches act, nanoseconds.
const STORM: i64 = 400_000_000;

fn what(p: &Pauser) -> String {
    let mac = p.mac.map(|b| format!("{b:02x}")).join(":");
    if p.priority == WHOLE_LINK {
        format!("the whole link (PAUSE) from {mac}")
    } else {
        format!("priority {} from {mac}", p.priority)
    }
}

/// Looks at pauses.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis.asides();
    for p in &a.pausers {
        if p.longest >= STORM {
            out.push(Finding {
                code: "pfc-storm",
                severity: Severity::Error,
                title: format!("{} paused without a break for {}", what(p), time(p.longest)),
                detail: "The device renews its pause before it runs out: it cannot receive (stuck host, slow receiver, PCIe), or it passes on a pause from behind it. Everything on this priority stands still. Follow the pauses to the port where they begin; the PFC watchdog of the switch should act on it.".to_owned(),
                flow: None,
                packets: vec![p.packet, p.latest],
            });
        }
    }
    let paused: Vec<&Pauser> = a.pausers.iter().filter(|p| p.xoff > 0).collect();
    let Some(worst) = paused.iter().max_by(|x, y| x.paused_ns.total_cmp(&y.paused_ns)) else { return };
    #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of a capture")]
    let longest = worst.paused_ns as i64;
    out.push(Finding {
        code: "pfc",
        severity: Severity::Note,
        title: format!(
            "{} asked for pauses, most of all {}: {}, {} in all",
            count(paused.len() as u64, "device and priority", "devices and priorities"),
            what(worst),
            count(worst.xoff, "frame", "frames"),
            time(longest)
        ),
        detail: format!(
            "Times are counted for links of {} Gbit/s (--link-speed). Some pausing is how a lossless class works; much of it means that congestion control reacts too late (ECN thresholds, CNPs).",
            a.gbit
        ),
        flow: None,
        packets: paused.iter().take(12).map(|p| p.packet).collect(),
    });
}
