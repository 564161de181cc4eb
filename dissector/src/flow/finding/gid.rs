//! Codes `link-local-gid`, `rocev1`, `dlid-zero`: addresses that do not get far.

use super::{Finding, Seen, Severity, count, name};
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
        let answered = local.iter().any(|f| f.acks + f.responses > 0);
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
