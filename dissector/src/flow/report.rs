//! A flow as `roce-dissect flows` prints it: the row that all views share, and what only the analysis of a
//! capture knows.

use serde::Serialize;

use super::Analyzer;
use super::histogram::Histogram;
use super::row::FlowRow;
use super::state::{Cause, Flow};

/// Times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// How many were measured.
    pub count: u64,
    /// Shortest.
    pub min: f64,
    /// Half of them are shorter; within an eighth.
    pub p50: f64,
    /// 99 of 100 are shorter; within an eighth.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

impl Times {
    /// Of a histogram; `None` if nothing was measured.
    pub fn of(h: &Histogram) -> Option<Self> {
        let s = |ns: u64| ns as f64 / 1e9;
        Some(Self {
            count: h.count(),
            min: s(h.min()?),
            p50: s(h.percentile(50.0)?),
            p99: s(h.percentile(99.0)?),
            max: s(h.max()?),
        })
    }
}

/// Repeats of the sender by what made it send again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// A sequence NAK.
    pub sequence_nak: u64,
    /// An RNR NAK.
    pub rnr_nak: u64,
    /// Nothing came back in time.
    pub timeout: u64,
    /// The answers are not in the capture.
    pub unknown: u64,
}

impl Causes {
    fn of(counts: [u64; 4]) -> Self {
        let at = |c: Cause| counts.get(c as usize).copied().unwrap_or(0);
        Self {
            sequence_nak: at(Cause::SequenceNak),
            rnr_nak: at(Cause::RnrNak),
            timeout: at(Cause::Timeout),
            unknown: at(Cause::Unknown),
        }
    }
}

/// A row with the findings of the analysis beside it.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The shared row.
    #[serde(flatten)]
    pub row: FlowRow,
    /// How `pair` was found: "cm", "source-qp", "psn" (answers to what was just requested) or "elimination"
    /// (no other flow is left between these addresses).
    pub pair_by: Option<&'static str>,
    /// How sure that is, 0 to 1.
    pub pair_confidence: Option<f64>,
    /// Flow that had the same addresses and QP number before.
    pub reuse_of: Option<u32>,
    /// Packets with a wrong ICRC whose headers are not believed. `opcodes` and this add up to `packets`; so do
    /// `icrc` good, bad and unchecked. A sender of which no packet is right is believed all the same (something
    /// rewrites its packets, or computes the ICRC wrongly), so this may be less than `icrc.bad`.
    pub disbelieved: u64,
    /// Path MTU, bytes; learnt from CM or from full packets.
    pub path_mtu: Option<u32>,
    /// Payload bytes of requests and responses, repeats left out.
    pub goodput_bytes: u64,
    /// `retransmitted` by cause.
    pub retransmitted_after: Causes,
    /// READs that were asked for again from their middle on.
    pub read_restarts: u64,
    /// Most READs and atomics under way at a time.
    pub reads_outstanding: u32,
    /// Bits per second (with headers) in the millisecond before CNPs began to come for this flow, on average over
    /// their series; `null` without CNPs, or too near to the beginning of the capture.
    pub bps_before_cnp: Option<f64>,
    /// Bits per second while they came.
    pub bps_after_cnp: Option<f64>,
    /// Requests begun and not answered when the capture ends; `null` where no answers are in the capture.
    pub outstanding_requests: Option<u32>,
    /// Their bytes: payload sent, and what READs asked for.
    pub outstanding_bytes: Option<u64>,
    /// The most of them at a time.
    pub outstanding_requests_max: Option<u32>,
    /// The most bytes under way at a time.
    pub outstanding_bytes_max: Option<u64>,
    /// Packet that made it so.
    pub outstanding_bytes_max_packet: Option<u64>,
    /// Request to its acknowledge.
    pub ack_rtt: Option<Times>,
    /// READ or atomic request to the end of its answer.
    pub read_latency: Option<Times>,
}

impl Line {
    /// Of one flow.
    pub fn of(f: &Flow, peer: Option<&Flow>) -> Self {
        let mtu = match (f.path_mtu(), peer.map_or(0, Flow::path_mtu)) {
            (0, 0) => None,
            (0, p) => Some(p),
            (m, _) => Some(m),
        };
        // without answers everything would seem to be under way
        let flight = f.flight.as_deref().filter(|_| f.acked.is_some());
        let slowed = peer.and_then(|p| p.notifications.as_deref()).and_then(|n| n.reaction.rates());
        Self {
            row: f.row(),
            pair_by: f.paired_by.map(super::state::PairedBy::name),
            pair_confidence: f.pair_confidence(),
            reuse_of: f.reuse_of,
            disbelieved: f.trouble.as_ref().map_or(0, |t| t.disbelieved),
            path_mtu: mtu,
            goodput_bytes: f.goodput,
            retransmitted_after: Causes::of(f.repairs().causes),
            read_restarts: f.repairs().read_restarts,
            reads_outstanding: f.read_depth.0,
            bps_before_cnp: slowed.map(|s| s.0.round()),
            bps_after_cnp: slowed.map(|s| s.1.round()),
            outstanding_requests: flight.map(|w| w.now().requests),
            outstanding_bytes: flight.map(|w| w.now().bytes),
            outstanding_requests_max: flight.map(|w| w.most.requests),
            outstanding_bytes_max: flight.map(|w| w.most.bytes),
            outstanding_bytes_max_packet: flight.map(|w| w.packet).filter(|p| *p != 0),
            ack_rtt: f.rtt.as_deref().and_then(Times::of),
            read_latency: f.read_latency.as_deref().and_then(Times::of),
        }
    }
}

impl Analyzer {
    /// All flows as they are printed, in the order in which they began.
    pub fn lines(&self) -> impl Iterator<Item = Line> {
        self.flows().map(|f| Line::of(f, f.pair.and_then(|p| self.flow(p))))
    }
}
