//! From cumulative snapshots to what happened in an interval: deltas, rates, histories, ended flows.
//!
//! Pure: time is an argument, nothing is read or printed. A source hands in counters that only grow, except
//! when a flow was forgotten and came back (its counters start again) or went away. Both are normal.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use dissector::flow::row::{Endpoint, FlowRow, OpcodeCounts, Totals};

/// A counter of a flow that the views show as total or as rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Metric {
    /// Packets.
    Packets,
    /// Bytes on the wire.
    Bytes,
    /// Completed messages.
    Messages,
    /// Packets marked "congestion experienced".
    Ce,
    /// Congestion notification packets.
    Cnps,
    /// NAKs of any reason.
    Naks,
    /// RNR NAKs.
    RnrNaks,
    /// Data that came again: sent again by the sender or copied by the network.
    Repeats,
    /// PSNs that never came.
    Missing,
    /// First arrivals out of order.
    Reordered,
    /// Request packets.
    Requests,
    /// READ and atomic responses.
    Responses,
    /// Positive acknowledges.
    Acks,
    /// Packets whose ICRC is wrong.
    IcrcBad,
    /// Packets that cannot take part in ECN.
    NotEct,
    /// Packets that can and are not marked.
    Ect,
}

impl Metric {
    /// All of them, in the order of their slots.
    pub const ALL: [Self; 16] = [
        Self::Packets,
        Self::Bytes,
        Self::Messages,
        Self::Ce,
        Self::Cnps,
        Self::Naks,
        Self::RnrNaks,
        Self::Repeats,
        Self::Missing,
        Self::Reordered,
        Self::Requests,
        Self::Responses,
        Self::Acks,
        Self::IcrcBad,
        Self::NotEct,
        Self::Ect,
    ];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// What a healthy flow has none of.
    pub const fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::Ce
                | Self::Cnps
                | Self::Naks
                | Self::RnrNaks
                | Self::Repeats
                | Self::Missing
                | Self::Reordered
                | Self::IcrcBad
        )
    }
}

/// One value a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Metric::COUNT]);

impl Counts {
    /// The counters of a row.
    pub fn of(row: &FlowRow) -> Self {
        let mut c = Self::default();
        for m in Metric::ALL {
            c.0[m as usize] = match m {
                Metric::Packets => row.packets,
                Metric::Bytes => row.bytes,
                Metric::Messages => row.messages,
                Metric::Ce => row.ecn.ce,
                Metric::Cnps => row.cnps,
                Metric::Naks => row.naks.total(),
                Metric::RnrNaks => row.rnr_naks,
                Metric::Repeats => row.retransmitted.saturating_add(row.duplicates),
                Metric::Missing => row.missing,
                Metric::Reordered => row.reordered,
                Metric::Requests => row.requests,
                Metric::Responses => row.responses,
                Metric::Acks => row.acks,
                Metric::IcrcBad => row.icrc.bad,
                Metric::NotEct => row.ecn.not_ect,
                Metric::Ect => row.ecn.ect0.saturating_add(row.ecn.ect1),
            };
        }
        c
    }

    /// One of them.
    pub const fn get(&self, m: Metric) -> u64 {
        self.0[m as usize]
    }

    /// Sets one of them.
    pub const fn set(&mut self, m: Metric, n: u64) {
        self.0[m as usize] = n;
    }

    /// Takes away another set.
    pub fn subtract(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a = a.saturating_sub(b);
        }
    }

    /// Adds another set.
    pub fn add(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a = a.saturating_add(b);
        }
    }

    /// What came since `before`. A counter that fell was started again: then all of it is new. `missing`
    /// may fall by itself, when a late packet closes a gap; that is no restart and nothing new.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let restarted = self.get(Metric::Packets) < before.get(Metric::Packets);
        if restarted {
            return *self;
        }
        let mut d = Self::default();
        for ((d, now), then) in d.0.iter_mut().zip(self.0).zip(before.0) {
            *d = now.saturating_sub(then);
        }
        d
    }

    /// Sum of what a healthy flow has none of.
    pub fn trouble(&self) -> u64 {
        Metric::ALL.iter().filter(|m| m.is_trouble()).fold(0, |n, m| n.saturating_add(self.get(*m)))
    }
}

/// What identifies a flow from one snapshot to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source.
    pub src: Endpoint,
    /// Destination.
    pub dst: Endpoint,
    /// Destination QP.
    pub dest_qp: u32,
    /// Source QP, for datagrams only: there it is on the wire, elsewhere it may be learnt later.
    pub datagram_src_qp: Option<u32>,
    /// Tells flows apart that share all of the above (a QP number used again, another interface): the
    /// source's own number.
    pub generation: u32,
}

impl FlowKey {
    fn of(row: &FlowRow) -> Self {
        Self {
            src: row.src,
            dst: row.dst,
            dest_qp: row.dest_qp,
            datagram_src_qp: if row.transport == "UD" { row.src_qp } else { None },
            generation: row.id,
        }
    }
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Phase {
    /// Packets in the last interval.
    Active,
    /// Known to the source, silent in the last interval.
    Idle,
    /// No longer known to the source; shown for a while with its last counts.
    Ended {
        /// Seconds since the epoch when it was first missed.
        since: f64,
    },
}

/// Rates of the last intervals, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    samples: VecDeque<Sample>,
}

/// One interval of a history, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Packets per second.
    pub pps: f32,
    /// Bits per second.
    pub bps: f32,
    /// CE marks per second.
    pub ce: f32,
    /// NAKs, RNR NAKs, repeats, missing … per second.
    pub trouble: f32,
}

impl History {
    /// Intervals that are kept.
    pub const LEN: usize = 240;

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Sample> + ExactSizeIterator {
        self.samples.iter()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a plot needs no more than a float's precision")]
    fn push(&mut self, delta: &Counts, interval_s: f64) {
        if self.samples.len() == Self::LEN {
            self.samples.pop_front();
        }
        let rate = |n: u64| per_second(n, interval_s) as f32;
        self.samples.push_back(Sample {
            pps: rate(delta.get(Metric::Packets)),
            bps: rate(delta.get(Metric::Bytes).saturating_mul(8)),
            ce: rate(delta.get(Metric::Ce)),
            trouble: rate(delta.trouble().saturating_sub(delta.get(Metric::Ce))),
        });
    }
}

/// A flow in a report.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Identity across reports.
    pub key: FlowKey,
    /// Counters since the source began.
    pub row: FlowRow,
    /// The same as numbers by metric.
    pub total: Counts,
    /// What came in the interval.
    pub delta: Counts,
    /// Where it stands.
    pub phase: Phase,
    /// Last intervals; `None` when too many flows are known to keep one for each.
    pub history: Option<History>,
}

/// One interval: what the views and the exporter show.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Seconds since the epoch at its end.
    pub at: f64,
    /// Its length in seconds; 0 for the first, which has nothing before it.
    pub interval_s: f64,
    /// Sums over everything, since the source began.
    pub totals: Totals,
    /// What came in the interval.
    pub totals_delta: Totals,
    /// Sums by metric over flows, those that ended included.
    pub total: Counts,
    /// What came in the interval, by metric.
    pub delta: Counts,
    /// Packets by opcode, since the source began, over flows, those that ended included.
    pub opcodes: OpcodeCounts,
    /// The same in the interval.
    pub opcodes_delta: OpcodeCounts,
    /// All flows, in the order of the source, ended ones last.
    pub flows: Vec<Flow>,
    /// Rates of everything, oldest first.
    pub history: History,
    /// Flows that ended and are no longer listed; their counts are in `total`.
    pub forgotten: u64,
}

impl Report {
    /// RoCE packets per second.
    pub fn pps(&self) -> f64 {
        per_second(self.totals_delta.roce_packets, self.interval_s)
    }

    /// RoCE bits per second.
    pub fn bps(&self) -> f64 {
        per_second(self.totals_delta.roce_bytes.saturating_mul(8), self.interval_s)
    }

    /// A metric over all flows per second.
    pub fn rate(&self, m: Metric) -> f64 {
        per_second(self.delta.get(m), self.interval_s)
    }

    /// A metric of a flow per second.
    pub fn flow_rate(&self, flow: &Flow, m: Metric) -> f64 {
        per_second(flow.delta.get(m), self.interval_s)
    }
}

/// Things per second; 0 when there was no time.
pub fn per_second(n: u64, interval_s: f64) -> f64 {
    if interval_s > 0.0 { n as f64 / interval_s } else { 0.0 }
}

/// How long and how many ended flows stay listed.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Seconds an ended flow stays.
    pub ended_s: f64,
    /// At most this many of them.
    pub ended: usize,
    /// At most this many flows have a history.
    pub histories: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self { ended_s: 60.0, ended: 1024, histories: 1024 }
    }
}

/// Turns snapshots into reports.
#[derive(Debug, Default)]
pub struct Aggregate {
    keep: Keep,
    last: Option<Arc<Report>>,
    index: HashMap<FlowKey, usize>,
    /// Counts of flows that the source no longer has.
    gone: Counts,
    gone_opcodes: OpcodeCounts,
    forgotten: u64,
}

impl Aggregate {
    /// With limits other than the usual ones.
    pub fn new(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Takes a cumulative snapshot: `at` in seconds since the epoch, sums, and all flows of the source.
    pub fn push(&mut self, at: f64, totals: Totals, rows: Vec<FlowRow>) -> Arc<Report> {
        let last = self.last.take();
        let empty = Report::default();
        let before = last.as_deref().unwrap_or(&empty);
        let first = last.is_none();
        let interval_s = if first { 0.0 } else { (at - before.at).max(0.0) };
        let mut report = Report {
            at,
            interval_s,
            totals,
            totals_delta: if first { Totals::default() } else { totals_since(&totals, &before.totals) },
            flows: Vec::with_capacity(rows.len()),
            history: before.history.clone(),
            ..Report::default()
        };
        let mut index = HashMap::with_capacity(rows.len());
        let mut touched = vec![false; before.flows.len()];
        let mut histories = 0usize;
        for row in rows {
            let mut key = FlowKey::of(&row);
            let slot = loop {
                match index.entry(key) {
                    Entry::Vacant(v) => break v,
                    Entry::Occupied(_) => key.generation = key.generation.wrapping_add(1),
                }
            };
            slot.insert(report.flows.len());
            let total = Counts::of(&row);
            let old = self.index.get(&key).and_then(|i| {
                *touched.get_mut(*i)? = true;
                before.flows.get(*i)
            });
            let mut delta = match old {
                Some(old) => total.since(&old.total),
                None => total,
            };
            if let Some(old) = old {
                let restarted = total.get(Metric::Packets) < old.total.get(Metric::Packets);
                match (restarted, old.phase) {
                    // counted anew: what it had stays in the sums
                    (true, Phase::Active | Phase::Idle) => self.bury(old),
                    // it was only missed: take back what was buried
                    (false, Phase::Ended { .. }) => self.unbury(old),
                    _ => {}
                }
            }
            if first {
                delta = Counts::default();
            }
            let wanted = histories < self.keep.histories;
            let mut history = if wanted { Some(old.and_then(|o| o.history.clone()).unwrap_or_default()) } else { None };
            if let Some(h) = &mut history {
                histories += 1;
                if interval_s > 0.0 {
                    h.push(&delta, interval_s);
                }
            }
            report.total.add(&total);
            report.delta.add(&delta);
            for (opcode, n) in row.opcodes.iter() {
                report.opcodes.add(opcode, n);
            }
            report.opcodes.other = report.opcodes.other.saturating_add(row.opcodes.other);
            let phase = if delta.get(Metric::Packets) > 0 { Phase::Active } else { Phase::Idle };
            report.flows.push(Flow { key, row, total, delta, phase, history });
        }
        self.retire(before, &touched, at, &mut report, &mut index);
        report.total.add(&self.gone);
        for (opcode, n) in self.gone_opcodes.iter() {
            report.opcodes.add(opcode, n);
        }
        report.opcodes.other = report.opcodes.other.saturating_add(self.gone_opcodes.other);
        if !first {
            report.opcodes_delta = opcodes_since(&report.opcodes, &before.opcodes);
        }
        if interval_s > 0.0 {
            let mut d = report.delta;
            d.set(Metric::Packets, report.totals_delta.roce_packets);
            d.set(Metric::Bytes, report.totals_delta.roce_bytes);
            report.history.push(&d, interval_s);
        }
        report.forgotten = self.forgotten;
        self.index = index;
        let report = Arc::new(report);
        self.last = Some(Arc::clone(&report));
        report
    }

    /// Flows that the source no longer names stay listed for a while, the latest first to stay.
    fn retire(
        &mut self,
        before: &Report,
        touched: &[bool],
        at: f64,
        report: &mut Report,
        index: &mut HashMap<FlowKey, usize>,
    ) {
        let mut ended: Vec<(f64, &Flow)> = Vec::new();
        for (old, touched) in before.flows.iter().zip(touched) {
            if *touched {
                continue;
            }
            let since = match old.phase {
                Phase::Ended { since } => since,
                Phase::Active | Phase::Idle => {
                    self.bury(old);
                    at
                }
            };
            if at - since <= self.keep.ended_s {
                ended.push((since, old));
            } else {
                self.forgotten += 1;
            }
        }
        ended.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.forgotten += ended.len().saturating_sub(self.keep.ended) as u64;
        for (since, old) in ended.into_iter().take(self.keep.ended) {
            index.insert(old.key, report.flows.len());
            report.flows.push(Flow { delta: Counts::default(), phase: Phase::Ended { since }, ..old.clone() });
        }
    }

    fn bury(&mut self, old: &Flow) {
        self.gone.add(&old.total);
        for (opcode, n) in old.row.opcodes.iter() {
            self.gone_opcodes.add(opcode, n);
        }
        self.gone_opcodes.other = self.gone_opcodes.other.saturating_add(old.row.opcodes.other);
    }

    fn unbury(&mut self, old: &Flow) {
        self.gone.subtract(&old.total);
        let mut left: OpcodeCounts = self
            .gone_opcodes
            .iter()
            .map(|(opcode, n)| (opcode, n.saturating_sub(old.row.opcodes.get(opcode))))
            .collect();
        left.other = self.gone_opcodes.other.saturating_sub(old.row.opcodes.other);
        self.gone_opcodes = left;
    }
}

fn totals_since(now: &Totals, before: &Totals) -> Totals {
    // the source was started again: all of it is new
    if now.packets < before.packets {
        return *now;
    }
    Totals {
        packets: now.packets - before.packets,
        bytes: now.bytes.saturating_sub(before.bytes),
        roce_packets: now.roce_packets.saturating_sub(before.roce_packets),
        roce_bytes: now.roce_bytes.saturating_sub(before.roce_bytes),
        other_packets: now.other_packets.saturating_sub(before.other_packets),
        overflow_packets: now.overflow_packets.saturating_sub(before.overflow_packets),
        events_lost: now.events_lost.saturating_sub(before.events_lost),
    }
}

fn opcodes_since(now: &OpcodeCounts, before: &OpcodeCounts) -> OpcodeCounts {
    let mut d: OpcodeCounts = now.iter().map(|(o, n)| (o, n.saturating_sub(before.get(o)))).collect();
    d.other = now.other.saturating_sub(before.other);
    d
}

/// Flows between the same two hosts in the same direction, as one line.
#[derive(Clone, Debug)]
pub struct HostPair {
    /// Source.
    pub src: Endpoint,
    /// Destination.
    pub dst: Endpoint,
    /// Flows between them.
    pub flows: usize,
    /// Their transports, in the order met.
    pub transports: Vec<&'static str>,
    /// Sums since the source began.
    pub total: Counts,
    /// Sums of the interval.
    pub delta: Counts,
    /// Any of them had packets in the interval.
    pub active: bool,
}

/// Groups flows by source and destination.
pub fn by_host_pair<'a>(flows: impl Iterator<Item = &'a Flow>) -> Vec<HostPair> {
    let mut index: HashMap<(Endpoint, Endpoint), usize> = HashMap::new();
    let mut pairs: Vec<HostPair> = Vec::new();
    for f in flows {
        let i = *index.entry((f.row.src, f.row.dst)).or_insert_with(|| {
            pairs.push(HostPair {
                src: f.row.src,
                dst: f.row.dst,
                flows: 0,
                transports: Vec::new(),
                total: Counts::default(),
                delta: Counts::default(),
                active: false,
            });
            pairs.len() - 1
        });
        if let Some(p) = pairs.get_mut(i) {
            p.flows += 1;
            if !p.transports.contains(&f.row.transport) {
                p.transports.push(f.row.transport);
            }
            p.total.add(&f.total);
            p.delta.add(&f.delta);
            p.active |= f.phase == Phase::Active;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use dissector::wire::opcode::byte;

    use dissector::flow::row::{Ecn, IcrcCounts, Naks};

    use super::*;

    fn row(host: u8, dest_qp: u32, packets: u64) -> FlowRow {
        FlowRow {
            id: 0,
            src: Endpoint::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host))),
            dst: Endpoint::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 99))),
            dest_qp,
            src_qp: None,
            pair: None,
            transport: "RC",
            ip_version: Some(4),
            vlan: None,
            dscp: Some(26),
            udp_srcport: Some(49152),
            packets,
            bytes: packets * 1000,
            first: 1.0,
            last: 2.0,
            messages: packets / 2,
            opcodes: [(byte::RcWriteOnly, packets)].into_iter().collect(),
            requests: packets,
            responses: 0,
            acks: 0,
            naks: Naks::default(),
            rnr_naks: 0,
            cnps: 0,
            ecn: Ecn::default(),
            retransmitted: 0,
            missing: 0,
            reordered: 0,
            duplicates: 0,
            icrc: IcrcCounts::default(),
            truncated: 0,
        }
    }

    fn totals(roce: u64) -> Totals {
        Totals { packets: roce, bytes: roce * 1000, roce_packets: roce, roce_bytes: roce * 1000, ..Totals::default() }
    }

    #[test]
    fn the_first_report_has_counts_and_no_rates() {
        let mut a = Aggregate::default();
        let r = a.push(100.0, totals(10), vec![row(1, 5, 10)]);
        assert_eq!((r.interval_s, r.pps()), (0.0, 0.0));
        assert_eq!(r.flows[0].total.get(Metric::Packets), 10);
        assert_eq!(r.flows[0].delta.get(Metric::Packets), 0);
        assert_eq!(r.history.iter().len(), 0);
    }

    #[test]
    fn rates_are_deltas_over_the_time_that_passed() {
        let mut a = Aggregate::default();
        a.push(100.0, totals(10), vec![row(1, 5, 10)]);
        let r = a.push(102.0, totals(110), vec![row(1, 5, 60), row(1, 6, 50)]);
        assert_eq!(r.interval_s, 2.0);
        assert_eq!(r.pps(), 50.0);
        assert_eq!(r.bps(), 400_000.0);
        assert_eq!(r.flow_rate(&r.flows[0], Metric::Packets), 25.0);
        assert_eq!(r.flow_rate(&r.flows[1], Metric::Packets), 25.0, "a new flow is all new");
        assert_eq!(r.opcodes_delta.get(byte::RcWriteOnly), 100);
        assert_eq!(r.history.iter().next_back().map(|s| s.pps), Some(50.0));
    }

    #[test]
    fn a_counter_that_starts_again_is_all_new_and_the_sums_keep_what_it_had() {
        let mut a = Aggregate::default();
        a.push(1.0, totals(100), vec![row(1, 5, 100)]);
        let r = a.push(2.0, totals(107), vec![row(1, 5, 7)]);
        assert_eq!(r.flows[0].delta.get(Metric::Packets), 7);
        assert_eq!(r.total.get(Metric::Packets), 107);
        assert_eq!(r.opcodes.get(byte::RcWriteOnly), 107);
    }

    #[test]
    fn a_flow_that_goes_is_listed_for_a_while_and_stays_in_the_sums() {
        let mut a = Aggregate::new(Keep { ended_s: 5.0, ended: 10, histories: 10 });
        a.push(1.0, totals(100), vec![row(1, 5, 60), row(2, 6, 40)]);
        let r = a.push(2.0, totals(100), vec![row(2, 6, 40)]);
        assert_eq!(r.flows.len(), 2);
        assert_eq!(r.flows[1].phase, Phase::Ended { since: 2.0 });
        assert_eq!(r.total.get(Metric::Packets), 100);
        let r = a.push(8.0, totals(100), vec![row(2, 6, 40)]);
        assert_eq!(r.flows.len(), 1);
        assert_eq!(r.forgotten, 1);
        assert_eq!(r.total.get(Metric::Packets), 100);
        assert_eq!(r.opcodes.get(byte::RcWriteOnly), 100);
    }

    #[test]
    fn a_flow_that_one_snapshot_missed_is_not_counted_twice() {
        let mut a = Aggregate::default();
        a.push(1.0, totals(60), vec![row(1, 5, 60)]);
        a.push(2.0, totals(60), vec![]);
        let r = a.push(3.0, totals(70), vec![row(1, 5, 70)]);
        assert_eq!(r.flows[0].delta.get(Metric::Packets), 10);
        assert_eq!(r.total.get(Metric::Packets), 70);
        assert_eq!(r.opcodes.get(byte::RcWriteOnly), 70);
        // forgotten by the source and counted anew: both parts stay in the sum
        a.push(4.0, totals(70), vec![]);
        let r = a.push(5.0, totals(75), vec![row(1, 5, 5)]);
        assert_eq!(r.flows[0].delta.get(Metric::Packets), 5);
        assert_eq!(r.total.get(Metric::Packets), 75);
    }

    #[test]
    fn ended_flows_are_bounded_and_the_latest_stay() {
        let mut a = Aggregate::new(Keep { ended_s: 100.0, ended: 3, histories: 2 });
        a.push(1.0, totals(0), (0..10).map(|q| row(1, q, 1)).collect());
        a.push(2.0, totals(0), (0..5).map(|q| row(1, q, 1)).collect());
        let r = a.push(3.0, totals(0), vec![]);
        assert_eq!(r.flows.len(), 3);
        assert!(r.flows.iter().all(|f| f.phase == Phase::Ended { since: 3.0 }), "{:?}", r.flows);
        assert_eq!(r.total.get(Metric::Packets), 10);
        assert_eq!(r.forgotten, 7);
    }

    #[test]
    fn flows_that_share_a_key_are_kept_apart() {
        let mut a = Aggregate::default();
        a.push(1.0, totals(30), vec![row(1, 5, 10), row(1, 5, 20)]);
        let r = a.push(2.0, totals(36), vec![row(1, 5, 11), row(1, 5, 25)]);
        let deltas: Vec<u64> = r.flows.iter().map(|f| f.delta.get(Metric::Packets)).collect();
        assert_eq!(deltas, [1, 5]);
        assert_eq!(r.flows[1].key.generation, 1);
    }

    #[test]
    fn a_clock_that_goes_back_gives_no_rates() {
        let mut a = Aggregate::default();
        a.push(10.0, totals(1), vec![row(1, 5, 1)]);
        let r = a.push(9.0, totals(5), vec![row(1, 5, 5)]);
        assert_eq!((r.interval_s, r.pps()), (0.0, 0.0));
    }

    #[test]
    fn a_gap_that_closes_is_no_restart() {
        let mut a = Aggregate::default();
        let mut gap = row(1, 5, 10);
        gap.missing = 3;
        a.push(1.0, totals(10), vec![gap]);
        let r = a.push(2.0, totals(13), vec![row(1, 5, 13)]);
        assert_eq!(r.flows[0].delta.get(Metric::Packets), 3);
        assert_eq!(r.flows[0].delta.get(Metric::Missing), 0);
    }

    #[test]
    fn host_pairs_sum_their_flows() {
        let mut a = Aggregate::default();
        a.push(1.0, totals(0), vec![]);
        let r = a.push(2.0, totals(0), vec![row(1, 5, 10), row(1, 6, 20), row(2, 5, 1)]);
        let pairs = by_host_pair(r.flows.iter());
        assert_eq!(pairs.len(), 2);
        assert_eq!((pairs[0].flows, pairs[0].total.get(Metric::Packets)), (2, 30));
        assert_eq!(pairs[0].transports, ["RC"]);
    }
}
