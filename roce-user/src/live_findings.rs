//! What counters alone can say of what `roce-dissect check` finds, under the same codes.
//!
//! A live view has sums, not packets: it says what happened and how often, and that a recording (`-w`) tells the
//! rest. Rules that need the order of packets are not here.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use dissector::flow::row::{Endpoint, FlowRow};
use foldhash::fast::RandomState;

use crate::source::Notice;

/// Most findings that are listed.
const LISTED: usize = 200;

/// What may be wrong with a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    RemoteAccess,
    InvalidRequest,
    RemoteOperational,
    NakOther,
    Rnr,
    Loss,
    CeWithoutCnp,
    Congestion,
    CnpWithoutCe,
    DscpAsymmetric,
    /// So many of so many connections do not use the DSCP of the others.
    DscpMixed {
        of: usize,
        main: u8,
    },
}

/// A rule that holds for a flow. Nothing is put into words yet: there may be one for each of a million flows.
#[derive(Clone, Copy, Debug)]
struct Hit<'a> {
    rule: Rule,
    /// Packets, or whatever the rule counts.
    n: u64,
    row: &'a FlowRow,
    back: Option<&'a FlowRow>,
}

/// Looks at all flows, in the order of their numbers. Errors come first, then what concerns most packets.
pub fn of(rows: &[Arc<FlowRow>]) -> Vec<Notice> {
    let by_id = |id: u32| rows.binary_search_by_key(&id, |r| r.id).ok().and_then(|i| rows.get(i)).map(|r| &**r);
    let mut hits: Vec<Hit<'_>> = Vec::new();
    for row in rows {
        let back = row.pair.and_then(by_id);
        let mut hit = |rule: Rule, n: u64| {
            if n > 0 {
                hits.push(Hit { rule, n, row, back });
            }
        };
        hit(Rule::RemoteAccess, row.naks.remote_access_error);
        hit(Rule::InvalidRequest, row.naks.invalid_request);
        hit(Rule::RemoteOperational, row.naks.remote_operational_error);
        hit(Rule::NakOther, row.naks.invalid_rd_request);
        hit(Rule::Rnr, row.rnr_naks);
        let again = again(row);
        if again > 0 || asked(back) > 0 {
            hit(Rule::Loss, again.saturating_add(row.missing));
        }
        let Some(back) = back else { continue };
        match (row.ecn.ce, back.cnps) {
            (0, cnps) => hit(Rule::CnpWithoutCe, cnps),
            (ce, 0) => hit(Rule::CeWithoutCnp, ce),
            (ce, _) => hit(Rule::Congestion, ce),
        }
        if row.id < back.id
            && row.requests > 0
            && back.acks + back.responses > 0
            && row.dscp.zip(back.dscp).is_some_and(|(there, here)| there != here)
        {
            hit(Rule::DscpAsymmetric, row.packets);
        }
    }
    classes(rows, &mut hits);
    let order = |h: &Hit<'_>| (h.rule.severity(), Reverse(h.n), h.rule, h.row.id);
    if hits.len() > LISTED {
        hits.select_nth_unstable_by_key(LISTED, order);
        hits.truncate(LISTED);
    }
    hits.sort_unstable_by_key(order);
    hits.iter().map(Hit::told).collect()
}

fn again(r: &FlowRow) -> u64 {
    r.retransmitted.saturating_add(r.duplicates)
}

fn asked(back: Option<&FlowRow>) -> u64 {
    back.map_or(0, |b| b.naks.psn_sequence_error)
}

fn name(r: &FlowRow) -> String {
    format!("{} > {} qp {:#x}", r.src, r.dst, r.dest_qp)
}

/// The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Error,
    Warning,
    Note,
}

impl Rule {
    const fn severity(self) -> Severity {
        match self {
            Self::RemoteAccess | Self::InvalidRequest | Self::RemoteOperational | Self::NakOther => Severity::Error,
            Self::Rnr | Self::Loss | Self::CeWithoutCnp | Self::DscpMixed { .. } => Severity::Warning,
            Self::Congestion | Self::CnpWithoutCe | Self::DscpAsymmetric => Severity::Note,
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::RemoteAccess => "nak-remote-access",
            Self::InvalidRequest => "nak-invalid-request",
            Self::RemoteOperational => "nak-remote-operational",
            Self::NakOther => "nak-other",
            Self::Rnr => "rnr",
            Self::Loss => "loss",
            Self::CeWithoutCnp => "ce-without-cnp",
            Self::Congestion => "congestion",
            Self::CnpWithoutCe => "cnp-without-ce",
            Self::DscpAsymmetric => "dscp-asymmetric",
            Self::DscpMixed { .. } => "dscp-mixed",
        }
    }
}

impl Hit<'_> {
    fn told(&self) -> Notice {
        let (title, detail) = self.words();
        Notice {
            code: self.rule.code().to_owned(),
            severity: match self.rule.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            },
            title,
            detail: detail.to_owned(),
            flow: Some(name(self.row)),
        }
    }

    fn words(&self) -> (String, &'static str) {
        let (r, n) = (self.row, self.n);
        let (src, dst) = (r.src, r.dst);
        let refused = |words: &str| format!("{src} refused {n} requests of {dst} with {words}");
        match self.rule {
            Rule::RemoteAccess => (
                refused("remote access error"),
                "The key is unknown there, the region does not grant this access, or the address range leaves it. The requester's QP is in error after this.",
            ),
            Rule::InvalidRequest => (
                refused("invalid request"),
                "The QP does not allow this operation, too many READs or atomics were outstanding, the message is longer than the receive buffer, or the path MTUs differ.",
            ),
            Rule::RemoteOperational => (
                refused("remote operational error"),
                "The responder could not carry the request out: a bad receive work request, or its own hardware.",
            ),
            Rule::NakOther => {
                (refused("a reason of reliable datagrams"), "A responder of this service should not send it.")
            }
            Rule::Rnr => (
                format!("{src} was not ready to receive {n} times"),
                "The receiver posts its buffers too late or too few: each time the sender waits for as long as the RNR timer says.",
            ),
            Rule::Loss => {
                let asked = asked(self.back);
                (
                    format!(
                        "{src} sent {} packets again, {} are missing, the receiver asked {asked} times",
                        again(r),
                        r.missing
                    ),
                    if asked > 0 {
                        "Packets are lost between the sender and the receiver: the receiver saw gaps. Look at drops on the way and at PFC on this traffic class."
                    } else {
                        "The sender repeats without having been asked: acknowledges are lost or late, or its timer is too short; or the network copies packets."
                    },
                )
            }
            Rule::CeWithoutCnp => (
                format!("{n} packets of {} are marked CE and no CNP came back", name(r)),
                "Congestion notification is off at the receiver, it does not support it (soft-RoCE does not), or CNPs are lost.",
            ),
            Rule::Congestion => (
                format!("{n} packets marked CE, {} CNPs in answer", self.back.map_or(0, |b| b.cnps)),
                "The path is congested, and the sender is told so.",
            ),
            Rule::CnpWithoutCe => (
                format!("{n} CNPs to {src}, but no packet of that QP is marked CE here"),
                "Marking happens behind this point of the path, or the adapter sends a CNP with a sequence NAK: then the cause is loss.",
            ),
            Rule::DscpAsymmetric => {
                let class = |r: &FlowRow| r.dscp.unwrap_or_default();
                (
                    format!("{src} sends with DSCP {}, {dst} answers with {}", class(r), self.back.map_or(0, class)),
                    "The two directions go through different queues. Check the traffic class on both ends.",
                )
            }
            Rule::DscpMixed { of, main } => (
                format!("{src} to {dst}: {n} of {of} connections use another DSCP than {main}"),
                "Their packets go through another queue. Check the traffic class that the application sets on every QP.",
            ),
        }
    }
}

/// Connections between two hosts in several traffic classes.
fn classes<'a>(rows: &'a [Arc<FlowRow>], hits: &mut Vec<Hit<'a>>) {
    let mut pairs: HashMap<(Endpoint, Endpoint), Vec<&FlowRow>, RandomState> = HashMap::default();
    for r in rows.iter().filter(|r| r.requests > 0 && r.dscp.is_some() && matches!(r.transport, "RC" | "UC" | "XRC")) {
        pairs.entry((r.src, r.dst)).or_default().push(r);
    }
    for all in pairs.into_values() {
        let mut uses = [0usize; 64];
        for r in &all {
            if let Some(u) = r.dscp.and_then(|d| uses.get_mut(usize::from(d))) {
                *u += 1;
            }
        }
        let Some((main, most)) = (0u8..).zip(uses).max_by_key(|(_, n)| *n) else { continue };
        let odd = all.len() - most;
        if let Some(row) = all.iter().find(|r| r.dscp != Some(main)) {
            hits.push(Hit { rule: Rule::DscpMixed { of: all.len(), main }, n: odd as u64, row, back: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::fixture;

    fn found(rows: &[FlowRow]) -> Vec<Notice> {
        of(&fixture::shared(rows.to_vec()))
    }

    fn codes(rows: &[FlowRow]) -> Vec<String> {
        found(rows).into_iter().map(|n| n.code).collect()
    }

    #[test]
    fn the_fixture_has_loss_congestion_and_rnr() {
        let rows = fixture::rows(2);
        let found = found(&rows);
        assert_eq!(codes(&rows), ["loss", "rnr", "congestion"], "{found:#?}");
    }

    #[test]
    fn quiet_flows_have_no_findings() {
        let mut rows = fixture::rows(2);
        for r in &mut rows {
            r.retransmitted = 0;
            r.missing = 0;
            r.ecn.ce = 0;
            r.cnps = 0;
            r.rnr_naks = 0;
            r.naks = dissector::flow::row::Naks::default();
        }
        assert_eq!(codes(&rows), [""; 0]);
    }

    #[test]
    fn errors_come_first_and_the_list_is_bounded() {
        let mut rows = Vec::new();
        for i in 0..1000 {
            let mut r = fixture::rows(2).swap_remove(3);
            r.id = 100 + i;
            r.dest_qp = i;
            r.naks.remote_access_error = u64::from(i % 2);
            rows.push(r);
        }
        let found = found(&rows);
        assert_eq!(found.len(), LISTED);
        assert!(found.iter().all(|n| n.severity == "error"));
    }

    #[test]
    fn one_connection_in_another_class_is_named() {
        let mut rows = Vec::new();
        for i in 0..4 {
            let mut r = fixture::rows(1).swap_remove(0);
            (r.id, r.pair, r.dest_qp) = (10 + i, None, i);
            (r.retransmitted, r.missing, r.ecn.ce) = (0, 0, 0);
            r.dscp = Some(if i == 2 { 0 } else { 26 });
            rows.push(r);
        }
        assert_eq!(codes(&rows), ["dscp-mixed"]);
    }
}
