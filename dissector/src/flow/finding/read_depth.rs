//! Code `read-depth-exceeded`: more READs and atomics under way than the responder takes.

use super::{Finding, Seen, Severity, name};
use crate::wire::{Kind, Op};

/// Looks at outstanding READs.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.reliable() && f.read_depth.0 > 0) {
        let limit = a.connections().find(f.dst, crate::wire::Qpn::new(f.key.dest_qp)).and_then(|(c, side)| {
            // what the responder offers
            (f.connection == Some(c.id)).then(|| c.end(side).responder_resources).flatten()
        });
        let refused = a.peer(f).map_or(0, |p| p.naks.invalid_request);
        // a WRITE or a SEND is refused for other reasons
        let reads = a
            .peer(f)
            .and_then(|p| p.trouble.as_ref()?.refused)
            .is_none_or(|r| Op::of(r.opcode).is_none_or(|o| matches!(o.kind, Kind::ReadRequest | Kind::Atomic)));
        let depth = f.read_depth.0;
        match limit {
            Some(l) if depth > u32::from(l) => out.push(Finding {
                code: "read-depth-exceeded",
                severity: if refused > 0 { Severity::Error } else { Severity::Warning },
                title: format!("{}: {depth} READs and atomics under way, the responder takes {l}", name(f)),
                detail: "The responder answers the next one with an invalid request NAK. Set max_rd_atomic of the requester to no more than the responder resources that the connection was made with.".to_owned(),
                flow: Some(f.id),
                packets: vec![u64::from(f.read_depth.1)],
            }),
            None if refused > 0 && depth > 1 && reads => out.push(Finding {
                code: "read-depth-exceeded",
                severity: Severity::Warning,
                title: format!("{}: an invalid request NAK with {depth} READs and atomics under way", name(f)),
                detail: "How many the responder takes is not in the capture (no CM messages). Compare max_rd_atomic of the requester with max_dest_rd_atomic of the responder.".to_owned(),
                flow: Some(f.id),
                packets: vec![u64::from(f.read_depth.1)],
            }),
            _ => {}
        }
    }
}
