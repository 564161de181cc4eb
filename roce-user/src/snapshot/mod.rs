//! What the kernel has counted so far, as rows: CPUs added up, ended flows remembered, directions joined.

mod counts;
mod join;
mod row;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dissector::capture::Timestamp;
use dissector::flow::row::{FlowRow, Totals};

pub use self::counts::Counts;
use crate::attach::{Attach, Tap};
use crate::error::Error;
use crate::load::Options;
use crate::ring::{Event, Events};

/// Cumulative counts.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When.
    pub at: Timestamp,
    /// Sums. `roce_packets` is the sum over `flows` plus `overflow_packets`.
    pub totals: Totals,
    /// All flows that were ever seen (since the start).
    ///
    /// In the order in which they were met. A flow that did not change since the snapshot before is the same row.
    pub flows: Vec<Arc<FlowRow>>,
    /// Where each of `flows` was seen: index of the tap, and whether outgoing.
    pub places: Vec<Place>,
    /// RoCE packets by opcode.
    pub opcodes: Vec<(u8, u64)>,
    /// Fragments of UDP datagrams, among the other packets.
    pub fragments: u64,
    /// Packets to the RoCE port without a whole BTH, among the other packets.
    pub malformed: u64,
    /// RoCE packets that the programs' own sum has and the flows lack (or the other way round, negative). Always 0 unless
    /// something is wrong.
    pub unexplained: i64,
}

/// Where a flow was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index of the tap.
    pub tap: u16,
    /// Leaving the host.
    pub outgoing: bool,
}

/// From the kernel's monotonic clock to the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds between the epoch and the monotonic clock's zero.
    offset: i64,
}

impl Clock {
    /// As of now.
    pub fn now() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let offset = i128::try_from(wall).unwrap_or(0) - i128::from(monotonic());
        Self { offset: i64::try_from(offset).unwrap_or(0) }
    }

    /// Whether the time of day was set since, by more than it is worth to make all rows anew.
    fn is_off(self, now: Self) -> bool {
        const WORTH: u64 = 50_000_000;
        self.offset.abs_diff(now.offset) > WORTH
    }

    /// Time of day of a monotonic time.
    pub fn wall(self, mono: u64) -> Timestamp {
        Timestamp(i64::try_from(mono).unwrap_or(i64::MAX).saturating_add(self.offset))
    }
}

/// Nanoseconds of the monotonic clock, which the kernel program stamps with.
pub(crate) fn monotonic() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(t.tv_nsec).unwrap_or(0))
}

/// Interfaces that are being counted.
pub struct Live {
    taps: Vec<Tap>,
    events: Vec<Events>,
    counts: Counts,
}

impl Live {
    /// Attaches to interfaces.
    pub fn start<S: AsRef<str>>(names: &[S], options: &Options, how: &Attach) -> Result<Self, Error> {
        let mut taps = Vec::new();
        let mut events = Vec::new();
        for name in names {
            let mut tap = Tap::new(name.as_ref(), options, how)?;
            events.push(Events::of(&mut tap.ebpf)?);
            taps.push(tap);
        }
        Ok(Self { taps, events, counts: Counts::default() })
    }

    /// The interfaces.
    pub fn taps(&self) -> &[Tap] {
        &self.taps
    }

    /// Their programs and maps, for the fault engine.
    pub fn taps_mut(&mut self) -> &mut [Tap] {
        &mut self.taps
    }

    /// Counts as of now.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        for log in self.taps.iter_mut().filter_map(|t| t.log.as_mut()) {
            log.drain();
        }
        let objects: Vec<_> = self.taps.iter().map(|t| &t.ebpf).collect();
        self.counts.take(&objects)
    }

    /// The next reported packet and the index of its tap.
    pub fn next_event(&mut self) -> Option<(usize, Event)> {
        self.events.iter_mut().enumerate().find_map(|(i, e)| e.next_event().map(|e| (i, e)))
    }

    /// Descriptors to wait on for events.
    pub fn event_fds(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        self.events.iter().map(Events::fd).collect()
    }

    /// What is wrong with the interfaces now, as sentences.
    pub fn trouble(&self) -> Vec<String> {
        self.taps.iter().flat_map(Tap::trouble).collect()
    }
}
