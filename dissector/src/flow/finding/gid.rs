//! Codes `link-local-gid`, `rocev1`, `dlid-zero`, `gid-changed`: addresses that do not get far, or change.

use super::{Finding, Map, Seen, Severity, count, name, time};
use crate::capture::Timestamp;
use crate::flow::key::Family;
use crate::flow::row::Endpoint;
use crate::flow::state::Flow;
use std::net::IpAddr;

fn link_local(e: Endpoint) -> bool {
    matches!(e, Endpoint::Ip(IpAddr::V6(a)) if a.is_unicast_link_local())
}

/// Whether a flow uses a link-local address.
pub fn is_link_local(f: &Flow) -> bool {
    link_local(f.src) || link_local(f.dst)
}

/// Looks at addresses.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let local: Vec<&Flow> = a.flows().filter(|f| is_link_local(f)).collect();
    if let Some(f) = local.first() {
        // what was captured in one direction only is no sign of trouble
        let answered = local.iter().any(|f| f.acks + f.responses > 0)
            || !local.iter().any(|f| {
                seen.sides.back(f.key.addresses) || super::retry::open_attempts(f).is_some_and(|t| t.times > 2)
            });
        out.push(Finding {
            code: "link-local-gid",
            severity: if answered || !f.reliable() { Severity::Note } else { Severity::Warning },
            title: format!("link-local GIDs (fe80::) are used, first on {}", name(f)),
            detail: "They work within one link and are not routed. On a routed network choose the GID index of the global address (show_gids; NCCL_IB_GID_INDEX and the like).".to_owned(),
            flow: Some(f.id),
            packets: vec![f.first_packet],
        });
    }
    let of = |family: Family| a.flows().filter(move |f| f.key.addresses.family() == family);
    if let Some(f) = of(Family::Gid).next() {
        let v2 = of(Family::V4).chain(of(Family::V6)).next();
        out.push(Finding {
            code: "rocev1",
            severity: if v2.is_some() { Severity::Warning } else { Severity::Note },
            title: if v2.is_some() { "RoCEv1 and RoCEv2 are used beside each other".to_owned() } else { "RoCEv1 is used (EtherType 0x8915)".to_owned() },
            detail: format!(
                "{}, first {}. RoCEv1 is not routed and carries no ECN; a host that expects RoCEv2 does not answer it. Choose a GID index of type RoCE v2 (show_gids; cma_roce_mode).",
                count(of(Family::Gid).count() as u64, "flow", "flows"),
                name(f)
            ),
            flow: Some(f.id),
            packets: vec![f.first_packet],
        });
    }
    changed(seen, out);
    if let Some(f) = a.flows().find(|f| f.dst == Endpoint::Lid(0)) {
        out.push(Finding {
            code: "dlid-zero",
            severity: Severity::Error,
            title: format!("{} is sent to destination LID 0, which is reserved", name(f)),
            detail: "The address handle was made without a LID and without a GRH: the destination's LID was not exchanged, or an Ethernet port's address was used on InfiniBand. No switch delivers it.".to_owned(),
            flow: Some(f.id),
            packets: vec![f.first_packet],
        });
    }
}

/// Silence after which a host that comes back with another address has set itself up anew, nanoseconds.
const AFRESH: i64 = 500_000_000;

/// What one MAC sent from one address.
struct Life<'a> {
    src: Endpoint,
    first: Timestamp,
    last: Timestamp,
    began: &'a Flow,
    /// A flow that was left without an answer.
    stuck: Option<&'a Flow>,
}

/// A host whose requests were no longer answered, and which came back under another address.
fn changed(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let mut lives: Vec<([u8; 6], Life<'_>)> = Vec::new();
    let mut index: Map<([u8; 6], Endpoint), usize> = super::map();
    for f in seen.analysis.flows().filter(|f| f.reliable() && f.requests > 0) {
        let Some(mac) = f.mac else { continue };
        let stuck = super::retry::open_attempts(f).map(|_| f);
        let i = *index.entry((mac, f.src)).or_insert(lives.len());
        match lives.get_mut(i) {
            Some((_, l)) => {
                l.last = l.last.max(f.last);
                l.stuck = l.stuck.or(stuck);
            }
            None => lives.push((mac, Life { src: f.src, first: f.first, last: f.last, began: f, stuck })),
        }
    }
    lives.sort_by_key(|(mac, l)| (*mac, l.first));
    for group in lives.chunk_by(|x, y| x.0 == y.0) {
        for (_, old) in group {
            let Some(stuck) = old.stuck else { continue };
            // others may send through the same router: it is the same host only if it goes on with the same peer
            let next = group.iter().map(|(_, l)| l).find(|l| l.first.since(old.last) >= AFRESH);
            let Some(new) = next.filter(|l| {
                l.src != old.src
                    && (l.began.dst == stuck.dst || l.began.key.addresses.family() != stuck.key.addresses.family())
            }) else {
                continue;
            };
            out.push(Finding {
                code: "gid-changed",
                severity: Severity::Note,
                title: format!(
                    "{} was no longer answered; {} later the same adapter goes on as {}",
                    old.src,
                    time(new.first.since(old.last)),
                    new.src
                ),
                detail: format!(
                    "First {}, then {}. A GID index that moves (a port that flapped, an address that was added) does that: queue pairs made with the old index are dead, and their peers must learn the new GID. Fix the index by type and address instead of its number (NCCL_IB_ROCE_VERSION_NUM, NCCL_IB_ADDR_FAMILY).",
                    name(stuck),
                    name(new.began)
                ),
                flow: Some(new.began.id),
                packets: vec![stuck.last_packet, new.began.first_packet],
            });
        }
    }
}
