//! Codes `nak-remote-access`, `nak-invalid-request`, `nak-remote-operational`, `nak-other`: the responder
//! refuses a request for good, and the QP goes into error.

use super::{Finding, Map, Seen, Severity, evidence, name};
use crate::flow::event::Happened;
use crate::flow::row::Endpoint;
use crate::flow::state::Flow;
use crate::wire::{Kind, Op};

const KINDS: &[(Happened, &str, &str, &str)] = &[
    (
        Happened::NakRemoteAccess,
        "nak-remote-access",
        "remote access error",
        "The key is unknown there (wrong R_Key, other protection domain, region deregistered), the region does not grant this access, or the address range leaves it.",
    ),
    (
        Happened::NakInvalidRequest,
        "nak-invalid-request",
        "invalid request",
        "The QP does not allow this operation (qp_access_flags), more READs or atomics were outstanding than max_dest_rd_atomic, the message is longer than the receive buffer, or the packets do not make a message (path MTU of the two ends differs).",
    ),
    (
        Happened::NakRemoteOperational,
        "nak-remote-operational",
        "remote operational error",
        "The responder could not carry the request out: a bad receive work request (its scatter list, its local key), or its own hardware.",
    ),
    (
        Happened::NakOther,
        "nak-other",
        "a reserved or RD reason",
        "The code is not one that a responder of this service should send.",
    ),
];

/// Looks for refusals.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let refusing = |f: &&Flow| {
        f.naks.total() > f.naks.psn_sequence_error || f.events().is_some_and(|e| e.first(Happened::NakOther).is_some())
    };
    // who uses which key of whom, so that a refused key can be shown where it works
    let mut keys: Map<(Endpoint, u32), Vec<&Flow>> = super::map();
    if a.flows().any(|f| refusing(&f)) {
        for o in a.flows() {
            for r_key in o.targets.iter().flat_map(|t| t.keys()) {
                let users = keys.entry((o.dst, r_key)).or_default();
                // one that is refused and one that is not are enough
                if users.len() < 2 && users.last().is_none_or(|u| u.id != o.id) {
                    users.push(o);
                }
            }
        }
    }
    for f in a.flows().filter(refusing) {
        for (what, code, words, meaning) in KINDS {
            let Some(e) = f.trouble.as_ref().and_then(|t| t.events.first(*what)) else { continue };
            let peer = a.peer(f);
            let target = f.trouble.as_ref().and_then(|t| t.refused);
            let culprit = target.map_or_else(
                || "The request that it refuses is not in the capture.".to_owned(),
                |t| {
                    format!(
                        "Refused: packet {}, {} at address {:#x}, R_Key {:#x}, {} bytes.",
                        t.packet,
                        Op::of(t.opcode).map_or("request", |o| o.name),
                        t.va,
                        t.r_key,
                        t.len
                    )
                },
            );
            let other = target.and_then(|t| keys.get(&(f.src, t.r_key))?.iter().find(|o| Some(o.id) != f.pair));
            let key = other.map_or(String::new(), |o| format!(" The same R_Key is used on {}.", name(o)));
            let other_kind = target.is_some_and(|t| Op::of(t.opcode).is_some_and(|o| o.kind == Kind::Send));
            let mut packets = evidence([f], &[*what]);
            if let Some(t) = target
                && !packets.contains(&t.packet)
                && !other_kind
            {
                packets.insert(0, t.packet);
            }
            out.push(Finding {
                code,
                severity: Severity::Error,
                title: format!(
                    "{} refused a request of {} with {words} (PSN {})",
                    f.src,
                    peer.map_or_else(|| f.dst.to_string(), name),
                    e.psn.get()
                ),
                detail: format!("{culprit}{key} {meaning} The requester's QP is in error after this."),
                flow: Some(f.id),
                packets,
            });
        }
    }
}
