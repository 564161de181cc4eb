//! Codes `nak-remote-access`, `nak-invalid-request`, `nak-remote-operational`, `nak-other`: the responder
//! refuses a request for good, and the QP goes into error.

use super::{Finding, Map, Seen, Severity, evidence, name};
use crate::flow::event::Happened;
use crate::flow::row::Endpoint;
use crate::flow::state::{Flow, Refused};
use crate::wire::opcode::Position;
use crate::wire::{Kind, Op};

const KINDS: &[(Happened, &str, &str)] = &[
    (Happened::NakRemoteAccess, "nak-remote-access", "remote access error"),
    (Happened::NakInvalidRequest, "nak-invalid-request", "invalid request"),
    (Happened::NakRemoteOperational, "nak-remote-operational", "remote operational error"),
    (Happened::NakOther, "nak-other", "a reserved or RD reason"),
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
        for (what, code, words) in KINDS {
            let Some(e) = f.trouble.as_ref().and_then(|t| t.events.first(*what)) else { continue };
            let peer = a.peer(f);
            let refused = f.trouble.as_ref().and_then(|t| t.refused);
            let target = refused.and_then(|r| r.target);
            let culprit = match refused {
                None => "The request that it refuses is not in the capture.".to_owned(),
                Some(r) => {
                    let memory = target.map_or(String::new(), |t| {
                        format!(" at address {:#x}, R_Key {:#x}, {} bytes", t.va, t.r_key, t.len)
                    });
                    format!("Refused: packet {}, {}{memory}.", r.packet, Op::of(r.opcode).map_or("request", |o| o.name))
                }
            };
            let other = target.and_then(|t| keys.get(&(f.src, t.r_key))?.iter().find(|o| Some(o.id) != f.pair));
            let key = other.map_or(String::new(), |o| format!(" The same R_Key is used on {}.", name(o)));
            let mut packets = evidence([f], &[*what]);
            packets.extend(refused.map(|r| r.packet));
            packets.sort_unstable();
            packets.dedup();
            let meaning = meaning(*what, refused, peer);
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

/// What can lead to such a refusal, for this request and after what the flow has shown.
fn meaning(what: Happened, refused: Option<Refused>, requester: Option<&Flow>) -> String {
    let op = refused.and_then(|r| Op::of(r.opcode));
    let kind = op.map(|o| o.kind);
    match what {
        Happened::NakRemoteAccess => "The key is unknown there (wrong R_Key, other protection domain, region deregistered), the region does not grant this access, or the address range leaves it.".to_owned(),
        Happened::NakInvalidRequest => invalid_request(op, refused, requester),
        Happened::NakRemoteOperational if kind == Some(Kind::Send) => "The responder could not take it: its receive work request is bad (shorter than the message, its scatter list, its local key), or its own hardware.".to_owned(),
        Happened::NakRemoteOperational => "The responder could not carry the request out: a bad work request of its own (scatter list, local key), or its own hardware.".to_owned(),
        _ => "The code is not one that a responder of this service should send.".to_owned(),
    }
}

/// Causes of an invalid request NAK, those that the flow itself makes likely first.
fn invalid_request(op: Option<&Op>, refused: Option<Refused>, requester: Option<&Flow>) -> String {
    let mut causes: Vec<String> = Vec::new();
    let kind = op.map(|o| o.kind);
    let remote =
        |k: Kind| matches!(k, Kind::Write | Kind::ReadRequest | Kind::Atomic | Kind::AtomicWrite | Kind::Flush);
    if kind == Some(Kind::Atomic)
        && let Some(t) = refused.and_then(|r| r.target)
        && t.va % 8 != 0
    {
        causes.push("the address of an atomic must be a multiple of 8".to_owned());
    }
    let sizes = || match requester.map_or(0, Flow::path_mtu) {
        0 => "the packets do not make a message (path MTU of the two ends differs)".to_owned(),
        mtu => format!(
            "the packets do not make a message: they carry {mtu} bytes, the path MTU of the responder may be another"
        ),
    };
    let many = op.is_some_and(|o| o.position != Position::Only);
    // messages of one packet were taken: rights are in order, sizes are not
    let sizes_first = many && requester.is_some_and(|p| p.small_acked);
    if sizes_first {
        causes.push(sizes());
    }
    if kind.is_none_or(remote) {
        causes.push("the QP does not allow this operation (qp_access_flags)".to_owned());
    }
    if kind.is_none_or(|k| matches!(k, Kind::ReadRequest | Kind::Atomic)) {
        let depth = requester.map_or(0, |p| p.read_depth.0);
        let most = if depth > 1 { format!(" (up to {depth} here)") } else { String::new() };
        causes.push(format!("more READs or atomics were outstanding{most} than max_dest_rd_atomic"));
    }
    if kind.is_none_or(|k| k == Kind::Send) {
        causes.push("the message is longer than the receive buffer".to_owned());
    }
    if !sizes_first && (kind.is_none() || many) {
        causes.push(sizes());
    }
    if causes.is_empty() {
        causes.push("the operation is not one that this responder or its QP supports".to_owned());
    }
    format!("Possible: {}.", causes.join("; or "))
}
