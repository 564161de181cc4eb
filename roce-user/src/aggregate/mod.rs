//! From cumulative snapshots to what happened in an interval: deltas, rates, histories, ended flows.
//!
//! Pure: time is an argument, nothing is read or printed. A source hands in counters that only grow, except
//! when a flow was forgotten and came back (its counters start again) or went away. Both are normal.

mod counts;
mod flow;
mod history;
mod pair;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dissector::flow::row::{FlowRow, OpcodeCounts, Totals};
use foldhash::fast::RandomState;

pub use self::counts::{Counts, Metric};
pub use self::flow::{Flow, FlowKey, Phase};
pub use self::history::{History, Sample};
pub use self::pair::{HostPair, by_host_pair};

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
    /// How many of them had packets in the interval.
    pub active: usize,
    /// Which report it is, from 1 on.
    pub number: u64,
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
        per_second(flow.delta(m), self.interval_s)
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
#[derive(Debug)]
pub struct Aggregate {
    keep: Keep,
    last: Option<Arc<Report>>,
    /// Sums over all flows that ever were.
    sum: Counts,
    opcodes: [u64; 256],
    other_opcodes: u64,
    /// Flows that have a history.
    histories: usize,
    forgotten: u64,
}

impl Default for Aggregate {
    fn default() -> Self {
        Self::new(Keep::default())
    }
}

impl Aggregate {
    /// With limits other than the usual ones.
    pub fn new(keep: Keep) -> Self {
        Self {
            keep,
            last: None,
            sum: Counts::default(),
            opcodes: [0; 256],
            other_opcodes: 0,
            histories: 0,
            forgotten: 0,
        }
    }

    /// Takes a cumulative snapshot: `at` in seconds since the epoch, sums, and all flows of the source. What did not
    /// change costs little: rows in the order of the time before, and the same ones where nothing came.
    pub fn push(&mut self, at: f64, totals: Totals, rows: Vec<Arc<FlowRow>>) -> Arc<Report> {
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
            number: before.number + 1,
            ..Report::default()
        };
        let mut places = Places::of(&before.flows);
        for (i, row) in rows.into_iter().enumerate() {
            let (key, old) = places.find(i, &row, &report.flows);
            let flow = match old {
                Some(old) if Arc::ptr_eq(&old.row, &row) => Flow {
                    row,
                    news: None,
                    packets: [old.packets[0], 0],
                    phase: Phase::Idle,
                    key,
                    history: self.rest(old, report.number),
                },
                old => self.moved(&mut report, key, row, old, first),
            };
            report.flows.push(flow);
        }
        self.retire(before, &places.touched, at, &mut report);
        report.total = self.sum;
        report.opcodes = (0..=255).zip(self.opcodes).collect();
        report.opcodes.other = self.other_opcodes;
        if !first {
            report.opcodes_delta = opcodes_since(&report.opcodes, &before.opcodes);
        }
        if interval_s > 0.0 {
            let mut d = report.delta;
            d.set(Metric::Packets, report.totals_delta.roce_packets);
            d.set(Metric::Bytes, report.totals_delta.roce_bytes);
            report.history.push(report.number, &d, interval_s);
        }
        report.forgotten = self.forgotten;
        let report = Arc::new(report);
        self.last = Some(Arc::clone(&report));
        report
    }

    /// The history of a flow without news: kept until it is all silence.
    fn rest(&mut self, old: &Flow, now: u64) -> Option<Arc<History>> {
        let history = old.history.as_ref()?;
        if now.saturating_sub(history.end) > History::LEN as u64 {
            self.histories = self.histories.saturating_sub(1);
            return None;
        }
        Some(Arc::clone(history))
    }

    /// A flow that is new, or whose row is another one than before.
    fn moved(&mut self, report: &mut Report, key: FlowKey, row: Arc<FlowRow>, old: Option<&Flow>, first: bool) -> Flow {
        let total = Counts::of(&row);
        let then = old.map(|o| Counts::of(&o.row));
        let delta = match &then {
            Some(then) => total.since(then),
            None => total,
        };
        match then {
            // counted on. It may be that it was only missed for a while: its counts are still in the sums
            Some(then) if total.get(Metric::Packets) >= then.get(Metric::Packets) => {
                self.sum.replace(&then, &total);
                self.count_opcodes(&row.opcodes, old.map(|o| &o.row.opcodes));
            }
            // new, or counted anew: what it had stays in the sums
            _ => {
                self.sum.add(&total);
                self.count_opcodes(&row.opcodes, None);
            }
        }
        let news = (!first && delta != Counts::default()).then(|| Box::new(delta));
        let active = !first && delta.get(Metric::Packets) > 0;
        report.active += usize::from(active);
        let mut history = match old {
            Some(o) => self.rest(o, report.number),
            None => None,
        };
        if let Some(delta) = &news {
            report.delta.add(delta);
            if history.is_none() && active && self.histories < self.keep.histories {
                self.histories += 1;
                history = Some(Arc::default());
            }
            if let Some(h) = &mut history
                && report.interval_s > 0.0
            {
                Arc::make_mut(h).push(report.number, delta, report.interval_s);
            }
        }
        let packets = [total.get(Metric::Packets), news.as_ref().map_or(0, |n| n.get(Metric::Packets))];
        Flow { key, row, news, packets, phase: if active { Phase::Active } else { Phase::Idle }, history }
    }

    fn count_opcodes(&mut self, now: &OpcodeCounts, before: Option<&OpcodeCounts>) {
        for (opcode, n) in before.into_iter().flat_map(OpcodeCounts::iter) {
            if let Some(o) = self.opcodes.get_mut(usize::from(opcode)) {
                *o = o.wrapping_sub(n);
            }
        }
        for (opcode, n) in now.iter() {
            if let Some(o) = self.opcodes.get_mut(usize::from(opcode)) {
                *o = o.wrapping_add(n);
            }
        }
        self.other_opcodes = self.other_opcodes.wrapping_sub(before.map_or(0, |b| b.other)).wrapping_add(now.other);
    }

    /// Flows that the source no longer names stay listed for a while, the latest first to stay. Their counts stay in
    /// the sums for ever.
    fn retire(&mut self, before: &Report, touched: &[bool], at: f64, report: &mut Report) {
        let mut ended: Vec<(f64, &Flow)> = Vec::new();
        let mut dropped: Vec<&Flow> = Vec::new();
        for (old, touched) in before.flows.iter().zip(touched) {
            if *touched {
                continue;
            }
            let since = match old.phase {
                Phase::Ended { since } => since,
                Phase::Active | Phase::Idle => at,
            };
            if at - since <= self.keep.ended_s {
                ended.push((since, old));
            } else {
                dropped.push(old);
            }
        }
        ended.sort_by(|a, b| b.0.total_cmp(&a.0));
        dropped.extend(ended.iter().skip(self.keep.ended).map(|(_, f)| *f));
        self.forgotten += dropped.len() as u64;
        self.histories = self.histories.saturating_sub(dropped.iter().filter(|f| f.history.is_some()).count());
        for (since, old) in ended.into_iter().take(self.keep.ended) {
            let history = self.rest(old, report.number);
            report.flows.push(Flow {
                news: None,
                packets: [old.packets[0], 0],
                phase: Phase::Ended { since },
                history,
                ..old.clone()
            });
        }
    }
}

/// Where the flows of the report before stand. A source names them in the same order each time, so that the place
/// is right nearly always; what is not there is looked up.
struct Places<'a> {
    before: &'a [Flow],
    touched: Vec<bool>,
    by_key: Option<HashMap<FlowKey, usize, RandomState>>,
    /// Keys of the report that is being made; once it is needed.
    taken: Option<HashSet<FlowKey, RandomState>>,
}

impl<'a> Places<'a> {
    fn of(before: &'a [Flow]) -> Self {
        Self { before, touched: vec![false; before.len()], by_key: None, taken: None }
    }

    /// The key of row number `i`, and the flow that it was before.
    fn find(&mut self, i: usize, row: &FlowRow, so_far: &[Flow]) -> (FlowKey, Option<&'a Flow>) {
        if let (Some(old), Some(touched)) = (self.before.get(i), self.touched.get_mut(i))
            && !*touched
            && old.key.is_of(row)
        {
            *touched = true;
            if let Some(taken) = &mut self.taken {
                taken.insert(old.key);
            }
            return (old.key, Some(old));
        }
        let taken = self.taken.get_or_insert_with(|| so_far.iter().map(|f| f.key).collect());
        let mut key = FlowKey::of(row);
        while !taken.insert(key) {
            key.generation = key.generation.wrapping_add(1);
        }
        let before = self.before;
        let by_key = self.by_key.get_or_insert_with(|| before.iter().enumerate().map(|(i, f)| (f.key, i)).collect());
        let old = by_key.get(&key).and_then(|i| {
            let touched = self.touched.get_mut(*i).filter(|t| !**t)?;
            *touched = true;
            before.get(*i)
        });
        (key, old)
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

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use dissector::flow::row::{Ecn, Endpoint, IcrcCounts, Naks};
    use dissector::wire::opcode::byte;

    use super::*;

    fn row(host: u8, dest_qp: u32, packets: u64) -> Arc<FlowRow> {
        Arc::new(FlowRow {
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
            full_payload: 0,
        })
    }

    fn totals(roce: u64) -> Totals {
        Totals { packets: roce, bytes: roce * 1000, roce_packets: roce, roce_bytes: roce * 1000, ..Totals::default() }
    }

    #[test]
    fn the_first_report_has_counts_and_no_rates() {
        let mut a = Aggregate::default();
        let r = a.push(100.0, totals(10), vec![row(1, 5, 10)]);
        assert_eq!((r.interval_s, r.pps()), (0.0, 0.0));
        assert_eq!(r.flows[0].total(Metric::Packets), 10);
        assert_eq!(r.flows[0].delta(Metric::Packets), 0);
        assert_eq!(r.history.iter(r.number).len(), 0);
    }

    #[test]
    fn rates_are_deltas_over_the_time_that_passed() {
        let mut a = Aggregate::default();
        a.push(100.0, totals(10), vec![row(1, 5, 10)]);
        let r = a.push(102.0, totals(110), vec![row(1, 5, 60), row(1, 6, 50)]);
        let rates = [0, 1].map(|i| r.flow_rate(&r.flows[i], Metric::Packets));
        // the second flow is new, and so all new
        assert_eq!((r.interval_s, r.pps(), r.bps(), rates), (2.0, 50.0, 400_000.0, [25.0, 25.0]));
        assert_eq!(r.opcodes_delta.get(byte::RcWriteOnly), 100);
        assert_eq!(r.history.iter(r.number).next_back().map(|s| s.pps), Some(50.0));
    }

    #[test]
    fn a_counter_that_starts_again_is_all_new_and_the_sums_keep_what_it_had() {
        let mut a = Aggregate::default();
        a.push(1.0, totals(100), vec![row(1, 5, 100)]);
        let r = a.push(2.0, totals(107), vec![row(1, 5, 7)]);
        assert_eq!(r.flows[0].delta(Metric::Packets), 7);
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
        assert_eq!(r.flows[0].delta(Metric::Packets), 10);
        assert_eq!(r.total.get(Metric::Packets), 70);
        assert_eq!(r.opcodes.get(byte::RcWriteOnly), 70);
        // forgotten by the source and counted anew: both parts stay in the sum
        a.push(4.0, totals(70), vec![]);
        let r = a.push(5.0, totals(75), vec![row(1, 5, 5)]);
        assert_eq!(r.flows[0].delta(Metric::Packets), 5);
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
        let deltas: Vec<u64> = r.flows.iter().map(|f| f.delta(Metric::Packets)).collect();
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
        Arc::make_mut(&mut gap).missing = 3;
        a.push(1.0, totals(10), vec![gap]);
        let r = a.push(2.0, totals(13), vec![row(1, 5, 13)]);
        assert_eq!(r.flows[0].delta(Metric::Packets), 3);
        assert_eq!(r.flows[0].delta(Metric::Missing), 0);
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
