//! Where cumulative counts come from: the kernel's maps, or a capture played again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dissector::flow::row::{Endpoint, FlowRow, Totals};
use dissector::frame::LinkType;

use crate::stop::Stop;

/// Counts since the source began.
#[derive(Clone, Debug, Default)]
pub struct Cumulative {
    /// Seconds since the epoch; in a capture its own time.
    pub at: f64,
    /// Sums.
    pub totals: Totals,
    /// All flows, in an order that stays. A row that did not change may be the same one as before.
    pub flows: Vec<Arc<FlowRow>>,
    /// The wish to stop came before they were counted: nothing that was asked for comes after.
    pub last: bool,
}

/// Something that is asked for its counts once an interval.
pub trait Source: Send {
    /// Counts as of now.
    fn counts(&mut self) -> anyhow::Result<Cumulative>;

    /// Waits until `interval` has passed since the last call and gives the counts of then; less of it if the
    /// stop or the source's end comes first. `None` when there is no more.
    fn next(&mut self, interval: Duration, stop: &Stop) -> anyhow::Result<Option<Cumulative>>;

    /// What there is to say about where the counts come from.
    fn state(&mut self) -> State;

    /// Completes what it writes, after the last counts. Once is enough.
    fn finish(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Why it ended before its time, as a sentence.
    fn broken(&self) -> Option<String> {
        None
    }

    /// Packets worth showing since the last call, oldest first.
    fn events(&mut self) -> Vec<Event> {
        Vec::new()
    }
}

/// What there is to say about a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Interfaces, or the file.
    pub taps: Vec<Tap>,
    /// No more packets will come (the capture's end).
    pub finished: bool,
    /// Something the person should know, as sentences; the first is shown first.
    pub notices: Vec<String>,
    /// Findings of the rules that apply to what was seen.
    pub findings: Vec<Notice>,
    /// The findings rest on every packet and its order (a capture), not on counters.
    pub every_packet: bool,
    /// What roce-fault does on these interfaces.
    pub faults: Vec<String>,
}

/// A place where packets are seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tap {
    /// Interface or file name.
    pub name: String,
    /// How: "XDP driver, TC egress", "capture".
    pub how: String,
}

/// A finding in the live view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Stable code.
    pub code: String,
    /// "error", "warning", "note".
    pub severity: &'static str,
    /// The operator's sentence.
    pub title: String,
    /// What to look at next.
    pub detail: String,
    /// The flow it is about.
    pub flow: Option<Whom>,
}

/// A flow that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whom {
    /// Source.
    pub src: Endpoint,
    /// Destination.
    pub dst: Endpoint,
    /// Destination QP.
    pub dest_qp: u32,
}

impl Whom {
    /// The flow of a row.
    pub const fn of(row: &FlowRow) -> Self {
        Self { src: row.src, dst: row.dst, dest_qp: row.dest_qp }
    }
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} qp {:#x}", self.src, self.dst, self.dest_qp)
    }
}

/// A packet worth showing: NAK, RNR NAK, CNP, gap, repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds since the epoch.
    pub at: f64,
    /// Why it was picked: "NAK", "RNR", "CNP", "gap", "repeat".
    pub kind: &'static str,
    /// The frame's first bytes, from the link layer.
    pub header: Vec<u8>,
    /// Bytes that were on the wire.
    pub wire_len: usize,
    /// Link type of the header.
    pub link: LinkType,
}
