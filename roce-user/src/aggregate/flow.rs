//! A flow from one report to the next.

use std::sync::Arc;

use dissector::flow::row::{Endpoint, FlowRow};

use super::counts::{Counts, Metric};
use super::history::History;

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
    /// Whether a row of the same source is this flow's. What is learnt later does not make another flow of it.
    pub(super) fn is_of(&self, row: &FlowRow) -> bool {
        (self.generation, self.dest_qp) == (row.id, row.dest_qp) && (self.src, self.dst) == (row.src, row.dst)
    }

    pub(super) fn of(row: &FlowRow) -> Self {
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

/// A flow in a report.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Identity across reports.
    pub key: FlowKey,
    /// Counters since the source began.
    pub row: Arc<FlowRow>,
    /// What came in the interval; `None` if nothing did.
    pub(super) news: Option<Box<Counts>>,
    /// Packets since the source began and in the interval: by these flows are sorted most often, and to look each up in its
    /// row costs more than all else.
    pub(super) packets: [u64; 2],
    /// Where it stands.
    pub phase: Phase,
    /// Last intervals; `None` when too many flows are known to keep one for each.
    pub history: Option<Arc<History>>,
}

impl Flow {
    /// A counter since the source began.
    pub fn total(&self, m: Metric) -> u64 {
        if m == Metric::Packets { self.packets[0] } else { m.of(&self.row) }
    }

    /// What it grew by in the interval.
    pub fn delta(&self, m: Metric) -> u64 {
        if m == Metric::Packets {
            return self.packets[1];
        }
        self.news.as_ref().map_or(0, |n| n.get(m))
    }

    /// What came in the interval, if anything did.
    pub fn news(&self) -> Option<&Counts> {
        self.news.as_deref()
    }
}
