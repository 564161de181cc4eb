//! Rates of the last intervals.

use std::collections::VecDeque;

use super::counts::{Counts, Metric};
use super::per_second;

/// Rates of the last intervals, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    samples: VecDeque<Sample>,
    /// Number of the report that the latest sample is of; nothing came since.
    pub(super) end: u64,
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

    /// Oldest first, up to report number `now`.
    pub fn iter(&self, now: u64) -> impl DoubleEndedIterator<Item = &Sample> + ExactSizeIterator {
        const NONE: &Sample = &Sample { pps: 0.0, bps: 0.0, ce: 0.0, trouble: 0.0 };
        // a flow that rests is not written to
        let kept = self.samples.len();
        let rest = usize::try_from(now.saturating_sub(self.end)).unwrap_or(usize::MAX).min(Self::LEN);
        let rest = if kept == 0 { 0 } else { rest };
        let all = kept.saturating_add(rest);
        (all.saturating_sub(Self::LEN)..all).map(move |i| self.samples.get(i).unwrap_or(NONE))
    }

    #[expect(clippy::cast_possible_truncation, reason = "a plot needs no more than a float's precision")]
    pub(super) fn push(&mut self, now: u64, delta: &Counts, interval_s: f64) {
        if self.samples.is_empty() {
            self.end = now.saturating_sub(1);
        }
        let rest = usize::try_from(now.saturating_sub(self.end)).unwrap_or(usize::MAX).saturating_sub(1);
        for _ in 0..rest.min(Self::LEN) {
            self.append(Sample::default());
        }
        self.end = now;
        let rate = |n: u64| per_second(n, interval_s) as f32;
        self.append(Sample {
            pps: rate(delta.get(Metric::Packets)),
            bps: rate(delta.get(Metric::Bytes).saturating_mul(8)),
            ce: rate(delta.get(Metric::Ce)),
            trouble: rate(delta.trouble().saturating_sub(delta.get(Metric::Ce))),
        });
    }

    fn append(&mut self, sample: Sample) {
        if self.samples.len() == Self::LEN {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}
