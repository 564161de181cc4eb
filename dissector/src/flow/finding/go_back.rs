//! Codes `go-back-n-violated` and `nak-unanswered`: a sequence NAK names the PSN to go back to, and the sender
//! does not.

use super::{Finding, Seen, Severity, count, name, time};
use crate::flow::event::Happened;

/// A packet that others overtook comes within such a time, nanoseconds.
const OVERTAKEN_WITHIN: i64 = 10_000_000;

/// Looks for senders that did not go back.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.reliable()) {
        let Some((psn, nak)) = f.repairs().owed else { continue };
        let mut packets = vec![nak];
        let at = a
            .peer(f)
            .and_then(|p| p.trouble.as_ref()?.events.of(Happened::NakSequence).find(|e| e.packet == nak).map(|e| e.at));
        let silence = at.map_or(0, |at| a.quality().end().since(at));
        if f.repairs().past_owed > 0 {
            // a capture that ends at once may lack what was only overtaken
            if silence < OVERTAKEN_WITHIN {
                continue;
            }
            packets.extend(f.evidence(&[Happened::AgainAfterNak]).into_iter().filter(|n| *n > nak));
            out.push(Finding {
                code: "go-back-n-violated",
                severity: Severity::Error,
                title: format!("{}: told to go back to PSN {}, it sent later PSNs again instead", name(f), psn.get()),
                detail: format!(
                    "After the sequence NAK {} later than the PSN that it names, which never came again. The transfer cannot go on from there: a fault of the sender's retransmission (firmware, FPGA, driver).",
                    count(f.repairs().past_owed, "repeat came", "repeats came")
                ),
                flow: Some(f.id),
                packets,
            });
            continue;
        }
        if silence > 1_000_000_000 || (silence > 0 && f.last_request.1 < nak && a.quality().last_number > nak) {
            out.push(Finding {
                code: "nak-unanswered",
                severity: Severity::Error,
                title: format!("{}: a sequence NAK for PSN {} was never answered by a repeat", name(f), psn.get()),
                detail: format!(
                    "The capture goes on for {} without it. The NAK was lost on its way back, or the sender has stopped (its retransmission buffer, its firmware).",
                    time(silence)
                ),
                flow: Some(f.id),
                packets,
            });
        }
    }
}
