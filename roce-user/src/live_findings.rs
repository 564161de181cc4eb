//! What counters and sampled headers can say of what `roce-dissect check` finds, under the same codes.
//!
//! A live view has sums and some headers, not all packets: it says what happened and how often, and that a recording
//! (`-w`) tells the rest. Rules that need the order of packets are not here.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use dissector::flow::row::{Endpoint, FlowRow};
use dissector::flow::{Analyzer, Place, finding};
use dissector::frame::icrc::{Verdict, Why};
use dissector::frame::{Frame, LinkType};
use foldhash::fast::RandomState;

use crate::ring;
use crate::source::{Notice, Whom};

/// Most findings that are listed.
const LISTED: usize = 200;
/// Most findings of one code that are told one by one.
const OF_A_CODE: usize = 32;

/// What may be wrong with a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    RemoteAccess,
    InvalidRequest,
    RemoteOperational,
    NakOther,
    Rnr,
    /// The receiver asked for what is missing.
    Loss,
    /// Nobody can ask: the service has no acknowledges.
    LossUnreliable,
    /// Gaps that nobody asked about.
    Unseen,
    /// Sent again, and nobody had asked.
    Timeouts,
    /// Sent again and again, and nothing came back.
    OneWayRepeats,
    /// Nothing came back.
    OneWay,
    Reordering,
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

/// Hits of one severity and code; only the worst are kept, all are counted.
#[derive(Debug)]
struct Kind<'a> {
    severity: Severity,
    code: &'static str,
    count: usize,
    kept: Vec<Hit<'a>>,
    /// The last of the worst, once there were more: what comes after it is not kept.
    limit: Option<(Reverse<u64>, u32)>,
}

impl<'a> Kind<'a> {
    fn push(&mut self, h: Hit<'a>) {
        self.count += 1;
        if self.limit.is_some_and(|l| h.order() > l) {
            return;
        }
        self.kept.push(h);
        if self.kept.len() > 4 * OF_A_CODE {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.kept.len() > OF_A_CODE {
            let (_, last, _) = self.kept.select_nth_unstable_by_key(OF_A_CODE - 1, Hit::order);
            self.limit = Some(last.order());
            self.kept.truncate(OF_A_CODE);
        }
    }
}

/// All that was hit, by kind.
#[derive(Debug, Default)]
struct Hits<'a> {
    kinds: Vec<Kind<'a>>,
    /// The kind of the latest: flows of the same trouble come one after the other.
    latest: Option<(Rule, usize)>,
}

impl<'a> Hits<'a> {
    fn push(&mut self, h: Hit<'a>) {
        let at = match self.latest {
            Some((rule, at)) if rule == h.rule => at,
            _ => self.place(h.rule),
        };
        self.latest = Some((h.rule, at));
        if let Some(k) = self.kinds.get_mut(at) {
            k.push(h);
        }
    }

    fn place(&mut self, rule: Rule) -> usize {
        let (severity, code) = (rule.severity(), rule.code());
        if let Some(at) = self.kinds.iter().position(|k| (k.severity, k.code) == (severity, code)) {
            return at;
        }
        self.kinds.push(Kind { severity, code, count: 0, kept: Vec::new(), limit: None });
        self.kinds.len() - 1
    }
}

/// Looks at all flows, in the order of their numbers. Errors come first, then what concerns most packets.
pub fn of(rows: &[Arc<FlowRow>]) -> Vec<Notice> {
    let by_id = |id: u32| rows.binary_search_by_key(&id, |r| r.id).ok().and_then(|i| rows.get(i)).map(|r| &**r);
    let mut hits = Hits::default();
    let mut ways = Ways::default();
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
        let (again, asked, not_ready) = (again(row), asked(back), back.map_or(0, |b| b.rnr_naks));
        if row.transport == "UC" {
            hit(Rule::LossUnreliable, row.missing);
        } else if asked > 0 {
            hit(Rule::Loss, again.saturating_add(row.missing));
        } else if again > 0 && not_ready == 0 {
            hit(Rule::Timeouts, again);
        } else if again == 0 {
            hit(Rule::Unseen, row.missing);
        }
        hit(Rule::Reordering, row.reordered);
        ways.pass(row);
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
    ways.judge(&mut hits);
    let mut kinds = hits.kinds;
    // the worst first, then the kind that concerns most packets
    kinds.sort_by_key(|k| (k.severity, Reverse(k.kept.iter().map(|h| h.n).max()), k.code));
    let mut out = Vec::new();
    for mut k in kinds {
        k.prune();
        k.kept.sort_unstable_by_key(Hit::order);
        out.extend(k.kept.iter().map(Hit::told));
        if let (more @ 1.., Some(first)) = (k.count - k.kept.len(), k.kept.first()) {
            out.push(Notice {
                title: format!("{more} more of this kind"),
                detail: "Filter the overview to see the flows.".to_owned(),
                flow: None,
                ..first.told()
            });
        }
    }
    out.truncate(LISTED);
    out
}

fn again(r: &FlowRow) -> u64 {
    r.retransmitted.saturating_add(r.duplicates)
}

fn asked(back: Option<&FlowRow>) -> u64 {
    back.map_or(0, |b| b.naks.psn_sequence_error)
}

/// The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Severity {
    Error,
    Warning,
    Note,
}

impl Rule {
    const fn severity(self) -> Severity {
        match self {
            Self::RemoteAccess | Self::InvalidRequest | Self::RemoteOperational | Self::NakOther => Severity::Error,
            Self::Rnr
            | Self::Loss
            | Self::LossUnreliable
            | Self::Timeouts
            | Self::OneWayRepeats
            | Self::Reordering
            | Self::CeWithoutCnp
            | Self::DscpMixed { .. } => Severity::Warning,
            Self::Unseen | Self::OneWay | Self::Congestion | Self::CnpWithoutCe | Self::DscpAsymmetric => {
                Severity::Note
            }
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::RemoteAccess => "nak-remote-access",
            Self::InvalidRequest => "nak-invalid-request",
            Self::RemoteOperational => "nak-remote-operational",
            Self::NakOther => "nak-other",
            Self::Rnr => "rnr",
            Self::Loss | Self::LossUnreliable | Self::Unseen => "loss",
            Self::Timeouts => "timeouts",
            Self::OneWay | Self::OneWayRepeats => "one-way",
            Self::Reordering => "reordering",
            Self::CeWithoutCnp => "ce-without-cnp",
            Self::Congestion => "congestion",
            Self::CnpWithoutCe => "cnp-without-ce",
            Self::DscpAsymmetric => "dscp-asymmetric",
            Self::DscpMixed { .. } => "dscp-mixed",
        }
    }
}

impl Hit<'_> {
    /// The one that concerns most packets comes first.
    fn order(&self) -> (Reverse<u64>, u32) {
        (Reverse(self.n), self.row.id)
    }

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
            flow: Some(Whom::of(self.row)),
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
            Rule::Loss => (
                format!(
                    "{src} sent {} packets again, {} are missing here, the receiver asked {} times",
                    again(r),
                    r.missing,
                    asked(self.back)
                ),
                "Packets are lost between the sender and the receiver: the receiver saw gaps. Look at drops on the way and at PFC on this traffic class.",
            ),
            Rule::LossUnreliable => (
                format!("{n} packets of {} are missing", Whom::of(r)),
                "An unreliable connection has no acknowledges: what is lost is lost, and so is the rest of its message. Look at drops on the way and at PFC on this traffic class.",
            ),
            Rule::Unseen => (
                format!("{n} packets of {} are missing here, and nobody asked for them again", Whom::of(r)),
                "They went past this point of the path, on another link or before the programs were attached; or the receiver has not noticed yet.",
            ),
            Rule::Timeouts => (
                format!("{src} sent {n} packets again without having been asked"),
                "Acknowledges are lost or late, or the sender's timer is too short; or the network copies packets. A recording (-w) tells them apart.",
            ),
            Rule::OneWay | Rule::OneWayRepeats => (
                format!("{src} sends to {dst} qp {:#x} ({n} requests), and nothing comes back from there", r.dest_qp),
                if self.rule == Rule::OneWay {
                    "Most likely only one direction passes here."
                } else {
                    "It repeats itself, so no answer reaches it either: is a QP with that number open at the peer, is its GID index the right one, does a firewall stop UDP 4791, does the way back exist?"
                },
            ),
            Rule::Reordering => (
                format!("{n} packets of {} came out of order", Whom::of(r)),
                "Packets of one queue pair take several paths (LAG, ECMP by packet, adaptive routing). Most adapters answer a packet out of order as if those before it were lost.",
            ),
            Rule::CeWithoutCnp => (
                format!("{n} packets of {} are marked CE and no CNP came back", Whom::of(r)),
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

/// What goes from one host to another.
#[derive(Debug, Default)]
struct Way<'a> {
    /// DSCPs of connections, how many use each, and the first that does. There are few.
    classes: Vec<(u8, usize, &'a FlowRow)>,
    /// Requests of flows to which nothing answers, as far as flows are joined.
    silent: Vec<&'a FlowRow>,
}

/// Hosts and the ways between them.
#[derive(Debug, Default)]
struct Ways<'a> {
    index: HashMap<(Endpoint, Endpoint), usize, RandomState>,
    all: Vec<Way<'a>>,
}

impl<'a> Ways<'a> {
    fn pass(&mut self, row: &'a FlowRow) {
        let all = &mut self.all;
        let at = *self.index.entry((row.src, row.dst)).or_insert_with(|| {
            all.push(Way::default());
            all.len() - 1
        });
        let Some(way) = all.get_mut(at) else { return };
        if row.requests == 0 {
            return;
        }
        if let Some(dscp) = row.dscp
            && matches!(row.transport, "RC" | "UC" | "XRC")
        {
            match way.classes.iter_mut().find(|c| c.0 == dscp) {
                Some(c) => c.1 += 1,
                None => way.classes.push((dscp, 1, row)),
            }
        }
        if row.pair.is_none() && row.acks + row.responses == 0 && matches!(row.transport, "RC" | "XRC") {
            way.silent.push(row);
        }
    }

    /// Connections between two hosts in several traffic classes, and requests to hosts from which nothing comes.
    fn judge(&self, hits: &mut Hits<'a>) {
        for ((src, dst), at) in &self.index {
            let Some(way) = self.all.get(*at) else { continue };
            let of: usize = way.classes.iter().map(|c| c.1).sum();
            // of two that are used as often, the higher one: that they differ matters, not which is right
            if let Some((main, most, _)) = way.classes.iter().max_by_key(|c| (c.1, c.0))
                && let Some((_, _, row)) = way.classes.iter().filter(|c| c.0 != *main).min_by_key(|c| c.2.id)
            {
                let n = (of - most) as u64;
                hits.push(Hit { rule: Rule::DscpMixed { of, main: *main }, n, row, back: None });
            }
            if way.silent.is_empty() || self.index.contains_key(&(*dst, *src)) {
                continue;
            }
            for row in &way.silent {
                let rule = if again(row) > 0 { Rule::OneWayRepeats } else { Rule::OneWay };
                hits.push(Hit { rule, n: row.requests, row, back: None });
            }
        }
    }
}

/// Findings that a rule of `check` makes of a few headers as well as of all packets.
const OF_HEADERS: [&str; 10] = [
    "migreq-mixed",
    "pkey-mixed",
    "ttl-one",
    "rnr-timer-zero",
    "rnr-retry-zero",
    "cm-reject",
    "cm-repeated-request",
    "cm-reconnect-storm",
    "link-local-gid",
    "mtu-mismatch",
];
/// Flows whose headers are looked at.
const HEADER_FLOWS: usize = 4096;

/// Headers that the kernel program reports: the first of each flow, those of trouble, and connection management. A
/// sample, so only rules that need no count and no order are asked.
#[derive(Debug)]
pub struct Headers {
    analysis: Analyzer,
    port: u16,
    number: u64,
}

impl Headers {
    /// None yet; `port` is the UDP port of RoCEv2.
    pub fn new(port: u16) -> Self {
        Self { analysis: Analyzer::with_limit(HEADER_FLOWS), port, number: 0 }
    }

    /// One more.
    pub fn push(&mut self, e: &ring::Event) {
        let frame = Frame::parse(&e.bytes, e.wire_len as usize, LinkType::ETHERNET, self.port);
        if let Some(Ok(packet)) = frame.packet() {
            self.number += 1;
            let place = Place { number: self.number, at: e.at };
            self.analysis.push(place, &frame, &packet, Verdict::Unchecked(Why::Off));
        }
    }

    /// What they show.
    pub fn findings(&self) -> Vec<Notice> {
        finding::check(&self.analysis)
            .into_iter()
            .filter(|f| OF_HEADERS.contains(&f.code))
            .map(|f| Notice {
                code: f.code.to_owned(),
                severity: f.severity.name(),
                title: f.title,
                detail: format!("{} (From a sample of headers: others may have it too.)", f.detail),
                flow: f.flow.and_then(|id| self.analysis.flow(id)).map(|f| Whom::of(&f.row())),
            })
            .collect()
    }
}

/// Both together, the worst first.
pub fn merged(mut counted: Vec<Notice>, sampled: Vec<Notice>) -> Vec<Notice> {
    counted.extend(sampled);
    // a stable sort: the order within a severity stays
    counted.sort_by_key(|n| match n.severity {
        "error" => 0,
        "warning" => 1,
        _ => 2,
    });
    counted.truncate(LISTED);
    counted
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
    fn losses_are_told_apart() {
        let quiet = || {
            let mut rows = fixture::rows(2);
            rows.truncate(2);
            for r in &mut rows {
                (r.retransmitted, r.missing, r.ecn.ce, r.cnps, r.rnr_naks) = (0, 0, 0, 0, 0);
                r.naks = dissector::flow::row::Naks::default();
            }
            rows
        };
        let titles = |change: &dyn Fn(&mut Vec<FlowRow>)| {
            let mut rows = quiet();
            change(&mut rows);
            found(&rows).into_iter().map(|n| (n.code, n.severity)).collect::<Vec<_>>()
        };
        let said = |code: &str, severity| vec![(code.to_owned(), severity)];
        assert_eq!(titles(&|r| r[0].missing = 3), said("loss", "note"));
        assert_eq!(titles(&|r| r[0].retransmitted = 3), said("timeouts", "warning"));
        let asked = |r: &mut Vec<FlowRow>| (r[0].retransmitted, r[1].naks.psn_sequence_error) = (3, 1);
        assert_eq!(titles(&asked), said("loss", "warning"));
        let not_ready = |r: &mut Vec<FlowRow>| (r[0].retransmitted, r[1].rnr_naks) = (3, 1);
        assert_eq!(titles(&not_ready), said("rnr", "warning"), "repeats after RNR NAKs are no timeouts");
        assert_eq!(titles(&|r| (r[0].transport, r[0].missing) = ("UC", 2)), said("loss", "warning"));
        assert_eq!(titles(&|r| r[0].reordered = 2), said("reordering", "warning"));
        let alone = |r: &mut Vec<FlowRow>| {
            r.truncate(1);
            (r[0].pair, r[0].retransmitted) = (None, 7);
        };
        assert!(titles(&alone).contains(&("one-way".to_owned(), "warning")));
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
        assert_eq!(found.iter().filter(|n| n.code == "nak-remote-access").count(), OF_A_CODE + 1);
        assert!(found.iter().take(OF_A_CODE + 1).all(|n| n.severity == "error"));
        assert!(found.iter().any(|n| n.title == "468 more of this kind"), "{found:#?}");
        assert!(found.len() <= LISTED);
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
        let found = codes(&rows);
        assert_eq!(found.iter().filter(|c| c.starts_with("dscp")).collect::<Vec<_>>(), ["dscp-mixed"]);
        // four connections without a way back
        assert_eq!(found.len(), 5);
    }
}
