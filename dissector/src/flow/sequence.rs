//! Which PSNs of one space have come: the next one, the holes, what came twice.
//!
//! Exact as long as the holes fit (16); then the oldest are given up, they stay counted as missing.

use crate::wire::Psn;

/// Jumps further than this are no loss: another queue pair with the same number, or a capture that stopped.
pub const FAR: i32 = 1 << 16;

const MAX_HOLES: usize = 16;

/// Numbers behind the end that still count as come: a quarter of the circle.
const WINDOW: i32 = 1 << 22;

/// PSNs that have not come while later ones did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// First of them.
    pub start: Psn,
    /// How many.
    pub len: u32,
    /// Whether a packet was due for each: a hole among responses may belong to acknowledged writes.
    pub due: bool,
    /// The receiver has acknowledged them: they were sent and arrived, the capture lacks them.
    pub acked: bool,
    /// Packet that revealed it (number in the capture).
    pub packet: u64,
}

/// What a PSN is to its space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// First packet of the space.
    First,
    /// The one expected.
    Next,
    /// Later than expected; so many were passed over.
    Gap(u32),
    /// Fills a hole (`due` as the hole had it), or precedes everything seen so far.
    Late {
        /// A packet was due there.
        due: bool,
    },
    /// Came before.
    Repeat,
    /// Too far off to be of the same space.
    Far,
}

/// One PSN space of a directed flow.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    started: bool,
    low: Psn,
    next: Psn,
    holes: Vec<Hole>,
    /// PSNs that never came, of those that were due.
    pub missing: u64,
    /// Of these, acknowledged by the receiver.
    pub missing_acked: u64,
}

impl Sequence {
    /// Whether anything came.
    pub const fn started(&self) -> bool {
        self.started
    }

    /// Lowest PSN that came (or the first one).
    pub const fn low(&self) -> Psn {
        self.low
    }

    /// One after the highest PSN that came.
    pub const fn next(&self) -> Psn {
        self.next
    }

    /// Holes, oldest first.
    pub fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// What `psn` would be, without taking note of it.
    pub fn classify(&self, psn: Psn) -> Arrival {
        if !self.started {
            return Arrival::First;
        }
        let d = psn.distance(self.next);
        match d {
            0 => Arrival::Next,
            1.. if d > FAR => Arrival::Far,
            1.. => Arrival::Gap(d.unsigned_abs()),
            _ if d < -FAR && psn.distance(self.low) < 0 => Arrival::Far,
            _ => {
                if let Some(h) = self.hole_of(psn) {
                    return Arrival::Late { due: h.due };
                }
                if psn.distance(self.low) < 0 { Arrival::Late { due: true } } else { Arrival::Repeat }
            }
        }
    }

    /// Takes note of `psn`, which occupies `span` numbers. A gap becomes a hole in which packets were due
    /// or not; [`Sequence::jump`] is for gaps of which only a part was due.
    pub fn take(&mut self, psn: Psn, span: u32, arrival: Arrival, packet: u64, due: bool) {
        let span = i32::try_from(span.clamp(1, 1 << 23)).unwrap_or(1);
        match arrival {
            Arrival::First | Arrival::Far => {
                self.started = true;
                self.low = psn;
                self.next = psn.plus(span);
                self.holes.clear();
            }
            Arrival::Next => self.advance(psn.plus(span)),
            Arrival::Gap(n) => {
                self.passed_over(self.next, n, due, packet);
                self.advance(psn.plus(span));
            }
            Arrival::Late { .. } => {
                if psn.distance(self.low) < 0 {
                    let between = self.low.distance(psn.plus(span));
                    if between > 0 {
                        // what lies between may have come before the capture began; nothing says it was lost
                        self.passed_over(psn.plus(span), between.unsigned_abs(), false, packet);
                    }
                    self.low = psn;
                }
                // a READ fills as many numbers as its response has packets
                self.fill(psn, span);
                self.extend_to(psn.plus(span));
            }
            // a longer span than was known before (a READ whose length in packets has been learnt)
            Arrival::Repeat => {
                self.fill(psn, span);
                self.extend_to(psn.plus(span));
            }
        }
    }

    /// Moves the end, and the beginning with it once the space is so long that numbers would seem to lie before
    /// what they follow: half of the 24-bit circle is all that an order can be told in.
    fn advance(&mut self, next: Psn) {
        self.next = next;
        let length = next.distance(self.low);
        if !(0..=WINDOW).contains(&length) {
            self.low = next.plus(-WINDOW);
        }
    }

    /// Moves the end forward without a packet, for a READ whose span became known afterwards.
    pub fn extend_to(&mut self, next: Psn) {
        if self.started && next.is_after(self.next) {
            self.advance(next);
        }
    }

    /// Takes note of a PSN after a gap whose holes the caller adds.
    pub fn jump(&mut self, psn: Psn) {
        self.advance(psn.next());
    }

    /// Adds a hole.
    pub fn passed_over(&mut self, start: Psn, len: u32, due: bool, packet: u64) {
        if len == 0 {
            return;
        }
        if due {
            self.missing += u64::from(len);
        }
        if self.holes.len() == MAX_HOLES {
            self.holes.remove(0);
        }
        self.holes.push(Hole { start, len, due, acked: false, packet });
    }

    /// The receiver has everything up to `psn`: returns how many PSNs of holes that settles.
    pub fn acknowledged(&mut self, psn: Psn) -> u64 {
        let mut n = 0;
        for h in &mut self.holes {
            let last = h.start.plus(i32::try_from(h.len).unwrap_or(1) - 1);
            if h.due && !h.acked && last.distance(psn) <= 0 {
                h.acked = true;
                n += u64::from(h.len);
            }
        }
        self.missing_acked += n;
        n
    }

    /// Forgets holes whose PSNs are all before `psn`: nothing is expected to fill them.
    pub fn settle_before(&mut self, psn: Psn) {
        self.holes.retain(|h| h.start.plus(i32::try_from(h.len).unwrap_or(0)).is_after(psn));
    }

    /// Whether all of `len` numbers from `start` on came, or were taken by a READ.
    pub fn knows(&self, start: Psn, len: u32) -> bool {
        let end = start.plus(i32::try_from(len).unwrap_or(0));
        let hole = |h: &Hole| end.is_after(h.start) && h.start.plus(i32::try_from(h.len).unwrap_or(0)).is_after(start);
        self.started && start.distance(self.low) >= 0 && end.distance(self.next) <= 0 && !self.holes.iter().any(hole)
    }

    fn hole_of(&self, psn: Psn) -> Option<Hole> {
        self.holes
            .iter()
            .rev()
            .find(|h| {
                let d = psn.distance(h.start);
                d >= 0 && d.unsigned_abs() < h.len
            })
            .copied()
    }

    /// Takes `len` numbers from `start` on out of the holes.
    fn fill(&mut self, start: Psn, len: i32) {
        let mut i = 0;
        while let Some(h) = self.holes.get(i).copied() {
            let holes = i32::try_from(h.len).unwrap_or(i32::MAX);
            // of the hole: [from, to) is filled
            let from = start.distance(h.start).max(0);
            let to = (start.distance(h.start).saturating_add(len)).min(holes);
            if from >= to {
                i += 1;
                continue;
            }
            let filled = u64::from(to.abs_diff(from));
            if h.due {
                self.missing = self.missing.saturating_sub(filled);
                if h.acked {
                    self.missing_acked = self.missing_acked.saturating_sub(filled);
                }
            }
            let before = Hole { len: from.unsigned_abs(), ..h };
            let after = Hole { start: h.start.plus(to), len: holes.abs_diff(to), ..h };
            self.holes.remove(i);
            for part in [before, after] {
                if part.len > 0 {
                    self.holes.insert(i, part);
                    i += 1;
                }
            }
            if self.holes.len() > MAX_HOLES {
                self.holes.remove(0);
                i = i.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(s: &mut Sequence, psn: u32) -> Arrival {
        let p = Psn::new(psn);
        let a = s.classify(p);
        s.take(p, 1, a, 0, true);
        a
    }

    #[test]
    fn loss_repair_and_wrap() {
        let mut s = Sequence::default();
        assert_eq!(see(&mut s, 0xff_fffd), Arrival::First);
        assert_eq!(see(&mut s, 0xff_fffe), Arrival::Next);
        // ffffff, 0 and 1 are passed over
        assert_eq!(see(&mut s, 2), Arrival::Gap(3));
        assert_eq!(s.missing, 3);
        assert_eq!(see(&mut s, 0), Arrival::Late { due: true });
        assert_eq!(s.missing, 2);
        assert_eq!(s.holes().len(), 2);
        assert_eq!(see(&mut s, 0), Arrival::Repeat);
        assert_eq!(see(&mut s, 0xff_ffff), Arrival::Late { due: true });
        assert_eq!(see(&mut s, 1), Arrival::Late { due: true });
        assert_eq!((s.missing, s.holes().len()), (0, 0));
        assert_eq!(see(&mut s, 2), Arrival::Repeat);
        assert_eq!(see(&mut s, 3), Arrival::Next);
    }

    #[test]
    fn before_the_first() {
        let mut s = Sequence::default();
        see(&mut s, 100);
        assert_eq!(see(&mut s, 97), Arrival::Late { due: true });
        assert_eq!(s.missing, 0);
        assert_eq!(see(&mut s, 98), Arrival::Late { due: false });
        assert_eq!(see(&mut s, 98), Arrival::Repeat);
        assert_eq!(see(&mut s, 101), Arrival::Next);
    }

    #[test]
    fn a_late_read_fills_its_span() {
        let mut s = Sequence::default();
        see(&mut s, 0xff_fffc);
        // 0xfffffd, a READ of three packets, and two writes are passed over
        assert_eq!(see(&mut s, 2), Arrival::Gap(5));
        let read = Psn::new(0xff_fffd);
        let late = s.classify(read);
        s.take(read, 3, late, 0, true);
        assert_eq!((s.missing, s.holes().first().map(|h| (h.start.get(), h.len))), (2, Some((0, 2))));
        assert_eq!(see(&mut s, 0), Arrival::Late { due: true });
        assert_eq!(see(&mut s, 1), Arrival::Late { due: true });
        assert_eq!((s.missing, s.holes().len()), (0, 0));
    }

    #[test]
    fn half_a_circle_and_more() {
        let mut s = Sequence::default();
        let mut p = Psn::new(77);
        see(&mut s, 77);
        // READs of 64 Ki packets, around the circle three times
        for _ in 0..768 {
            p = s.next();
            let a = s.classify(p);
            assert_eq!(a, Arrival::Next);
            s.take(p, 1 << 16, a, 0, true);
        }
        assert_eq!(s.classify(p), Arrival::Repeat);
        assert_eq!(s.classify(p.plus(-5000)), Arrival::Repeat);
        assert_eq!((s.missing, s.holes().len()), (0, 0));
        let beyond = s.next().plus(2);
        assert_eq!(see(&mut s, beyond.get()), Arrival::Gap(2));
    }

    #[test]
    fn around_the_first() {
        // a capture that begins in the middle of a repetition, just behind the wrap
        let mut s = Sequence::default();
        see(&mut s, 2);
        see(&mut s, 3);
        assert_eq!(see(&mut s, 0xff_fffe), Arrival::Late { due: true });
        // a READ from below the beginning to beyond it
        let read = Psn::new(0xff_ffff);
        assert_eq!(s.classify(read), Arrival::Late { due: false });
        s.take(read, 4, Arrival::Late { due: false }, 0, true);
        assert_eq!((s.missing, s.holes().len(), s.next().get()), (0, 0, 4));
        assert_eq!(see(&mut s, 4), Arrival::Next);
        assert_eq!(see(&mut s, 0xff_fffe), Arrival::Repeat);
    }

    #[test]
    fn far_off() {
        let mut s = Sequence::default();
        see(&mut s, 100);
        assert_eq!(see(&mut s, 100 + 0x20_0000), Arrival::Far);
        assert_eq!(s.missing, 0);
        assert_eq!(see(&mut s, 101 + 0x20_0000), Arrival::Next);
    }

    #[test]
    fn holes_are_bounded() {
        let mut s = Sequence::default();
        for p in (0..2000).step_by(2) {
            see(&mut s, p);
        }
        assert_eq!(s.missing, 999);
        assert_eq!(s.holes().len(), MAX_HOLES);
    }
}
