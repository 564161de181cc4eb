//! Code `timeouts`: repeats that no NAK asked for, and the timer that they show.

use super::{Finding, Seen, Severity, count, evidence, name, time, timeout_code};
use crate::flow::event::Happened;
use crate::flow::state::Cause;

/// Looks for time-outs that were survived.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.reliable()) {
        let rewinds = |c: Cause| f.repairs().rewinds.get(c as usize).copied().unwrap_or(0);
        // before the two directions were joined, the cause of a repeat was not known
        let n = rewinds(Cause::Timeout) + if f.pair.is_some() { rewinds(Cause::Unknown) } else { 0 };
        if n == 0 || super::retry::open_attempts(f).is_some_and(|t| t.times > 2) {
            continue;
        }
        let Some(t) = f.trouble.as_ref() else { continue };
        let waits: Vec<u64> = t.events.of(Happened::AgainAfterSilence).map(|e| e.value).filter(|v| *v > 0).collect();
        let (Some(shortest), Some(longest)) = (waits.iter().min(), waits.iter().max()) else { continue };
        let code = timeout_code(*longest);
        let said = f
            .connection
            .and_then(|c| a.connections().get(c))
            .and_then(|c| c.ack_timeout.filter(|t| *t != 0))
            .map(|c| format!(" The connection was made with code {c} ({}).", time(4096i64 << c.min(31))))
            .unwrap_or_default();
        out.push(Finding {
            code: "timeouts",
            severity: Severity::Warning,
            title: format!(
                "{}: {} before sending again, {} at the most",
                name(f),
                count(n, "wait", "waits"),
                time(i64::try_from(*longest).unwrap_or(i64::MAX))
            ),
            detail: format!(
                "From {} to {} between the first sending and the repeat; the longest is nearest to a time-out code of {code}.{said} A time-out means that the last packets of a burst, or the answer, were lost: a NAK would have come sooner. While it lasts the QP stands still.",
                time(i64::try_from(*shortest).unwrap_or(i64::MAX)),
                time(i64::try_from(*longest).unwrap_or(i64::MAX)),
            ),
            flow: Some(f.id),
            packets: evidence([f], &[Happened::AgainAfterSilence]),
        });
    }
}
