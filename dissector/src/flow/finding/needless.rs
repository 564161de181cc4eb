//! Code `needless-retransmission`: sent again although the acknowledge had passed the capture.

use super::{Finding, Seen, Severity, count, evidence, name};
use crate::flow::event::Happened;

/// Looks for repeats of acknowledged packets.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.reliable() && f.repairs().again_acked > 0 && f.repairs().rewinds_acked > 0) {
        let rtt = f.rtt.as_ref().and_then(|h| h.percentile(99.0));
        let first = f.trouble.as_ref().and_then(|t| t.events.first(Happened::AgainThoughAcked));
        let slow = match (rtt, first) {
            (Some(r), Some(e)) if e.value > 0 => format!(
                " The repeat came {} after the packet; acknowledges take {} here (99 of 100).",
                super::time(i64::try_from(e.value).unwrap_or(i64::MAX)),
                super::time(i64::try_from(r).unwrap_or(i64::MAX))
            ),
            _ => String::new(),
        };
        out.push(Finding {
            code: "needless-retransmission",
            severity: Severity::Warning,
            title: format!(
                "{}: {} sent again although acknowledged",
                name(f),
                count(f.repairs().again_acked, "packet was", "packets were")
            ),
            detail: format!(
                "The acknowledge passed the capture before the repeat: it was lost between here and {}, or it arrived after the time-out.{slow} Look at losses towards the sender, or raise the ACK time-out if the path is long.",
                f.src
            ),
            flow: Some(f.id),
            packets: evidence([f], &[Happened::AgainThoughAcked]),
        });
    }
}
