//! How a sender reacts to congestion notifications: its rate before the first of a series, and while it lasts.

use crate::capture::Timestamp;

/// Rates are measured over this time at the least, nanoseconds.
pub const SPAN: i64 = 1_000_000;

/// CNPs further apart than this are two series, nanoseconds.
const QUIET: i64 = 10 * SPAN;

/// Bytes sent up to two moments in the past, so that a rate can be told when it is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    at: [Timestamp; 2],
    /// Low half of the flow's bytes: only differences count.
    bytes: [u32; 2],
}

#[expect(clippy::cast_possible_truncation, reason = "only differences count, and they are short")]
const fn low(bytes: u64) -> u32 {
    bytes as u32
}

impl Pace {
    /// A packet comes; `bytes` of the flow came before it.
    pub fn take(&mut self, at: Timestamp, bytes: u64) {
        let [latest, _] = self.at;
        if at.since(latest) >= SPAN || bytes == 0 {
            self.at = [at, latest];
            self.bytes = [low(bytes), self.bytes[0]];
        }
    }

    /// Bytes and nanoseconds up to now, over at least half of [`SPAN`] and not beyond a pause of the flow.
    fn until(&self, at: Timestamp, bytes: u64) -> Option<(u64, i64)> {
        let mut best = None;
        for (t, b) in self.at.into_iter().zip(self.bytes) {
            let passed = at.since(t);
            if passed >= SPAN / 2 && (best.is_none() && passed <= QUIET) {
                best = Some((u64::from(low(bytes).wrapping_sub(b)), passed));
            }
        }
        best
    }
}

/// Sums over all series of CNPs that came back to a sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reaction {
    /// Bytes and nanoseconds before the first CNP of each series.
    before: (u64, i64),
    /// While each series lasted, and [`SPAN`] longer.
    after: (u64, i64),
    /// Series of which both are known.
    pub series: u32,
    /// The one under way: bytes and nanoseconds before it, when it began and what had been sent.
    open: Option<((u64, i64), Timestamp, u64)>,
    /// Its latest CNP.
    latest: Timestamp,
    /// Bytes sent up to the last packet that counts to it.
    reached: u64,
}

impl Reaction {
    /// A CNP reaches the sender, of which `bytes` were seen so far.
    pub fn notified(&mut self, at: Timestamp, pace: &Pace, bytes: u64) {
        if self.open.is_some() && at.since(self.latest) <= QUIET {
            self.latest = at;
            self.reached = bytes;
            return;
        }
        self.close(at);
        self.open = pace.until(at, bytes).map(|before| (before, at, bytes));
        (self.latest, self.reached) = (at, bytes);
    }

    /// The sender sent a packet; `bytes` with it.
    pub fn sent(&mut self, at: Timestamp, bytes: u64) {
        if at.since(self.latest) <= SPAN {
            self.reached = bytes;
        }
    }

    /// Ends the series under way; `end` is as far as the capture goes.
    pub fn close(&mut self, end: Timestamp) {
        let Some((before, began, from)) = self.open.take() else { return };
        let lasted = self.latest.since(began).max(0) + end.since(self.latest).clamp(0, SPAN);
        if lasted < SPAN / 2 {
            return;
        }
        self.before = (self.before.0 + before.0, self.before.1 + before.1);
        self.after = (self.after.0 + self.reached.saturating_sub(from), self.after.1 + lasted);
        self.series += 1;
    }

    /// Bits per second before and after, on average over all series.
    pub fn rates(&self) -> Option<(f64, f64)> {
        let rate = |(bytes, ns): (u64, i64)| bytes as f64 * 8e9 / ns.max(1) as f64;
        (self.series > 0).then(|| (rate(self.before), rate(self.after)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1000 bytes, `gap` microseconds apart from `from` to `to` microseconds.
    fn send(p: &mut Pace, r: &mut Reaction, bytes: &mut u64, from: i64, to: i64, gap: i64) {
        for t in (from..to).step_by(usize::try_from(gap).unwrap()) {
            let at = Timestamp(t * 1000);
            p.take(at, *bytes);
            *bytes += 1000;
            r.sent(at, *bytes);
        }
    }

    #[test]
    fn a_sender_that_halves_its_rate() {
        let (mut p, mut r, mut bytes) = (Pace::default(), Reaction::default(), 0);
        send(&mut p, &mut r, &mut bytes, 1_000_000, 1_004_000, 10);
        r.notified(Timestamp(1_004_000_000), &p, bytes);
        send(&mut p, &mut r, &mut bytes, 1_004_000, 1_006_000, 20);
        r.notified(Timestamp(1_006_000_000), &p, bytes);
        send(&mut p, &mut r, &mut bytes, 1_006_000, 1_050_000, 20);
        r.close(Timestamp(1_050_000_000));
        let (before, after) = r.rates().unwrap();
        assert!((before / 800e6 - 1.0).abs() < 0.02, "{before}");
        assert!((after / 400e6 - 1.0).abs() < 0.02, "{after}");
        assert_eq!(r.series, 1);
    }

    #[test]
    fn a_notification_at_the_very_beginning_tells_nothing() {
        let (mut p, mut r, mut bytes) = (Pace::default(), Reaction::default(), 0);
        send(&mut p, &mut r, &mut bytes, 1_000_000, 1_000_100, 10);
        r.notified(Timestamp(1_000_100_000), &p, bytes);
        send(&mut p, &mut r, &mut bytes, 1_000_100, 1_004_000, 10);
        r.close(Timestamp(1_004_000_000));
        assert_eq!(r.rates(), None);
    }
}
