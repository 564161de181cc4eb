//! What a requester has under way: messages and bytes that it has sent and that nothing covers yet.
//!
//! Bytes are payload of SENDs and WRITEs, and what READs and atomics ask for. Marks note how much had been sent
//! up to a PSN; between two marks the PSNs are taken for equally full, which is exact at the ends of messages as
//! long as all marks fit, and off by less than a few messages where they were thinned out.

use crate::wire::Psn;

const HALF: u8 = 4;
const MARKS: usize = 2 * HALF as usize;

/// Sent up to and including a PSN.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    bytes: u64,
    psn: Psn,
    /// Messages that had ended there; wrapping, only differences count.
    ended: u32,
}

/// Messages and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Messages begun and not answered to their end.
    pub requests: u32,
    /// Bytes not answered.
    pub bytes: u64,
}

/// A request that comes for the first time.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its first PSN.
    pub first: Psn,
    /// Its last (a READ takes several).
    pub last: Psn,
    /// Bytes that it sends or asks for.
    pub bytes: u64,
    /// It begins a message.
    pub starts: bool,
    /// It ends one.
    pub ends: bool,
    /// Packet.
    pub packet: u64,
}

/// The window of one requester.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    marks: [Mark; MARKS],
    used: u8,
    /// The latest mark is inside a message and moves with it.
    open: bool,
    begun: u32,
    ended: u32,
    bytes: u64,
    /// Up to where all is answered.
    covered: Mark,
    /// The most that was under way.
    pub most: Amount,
    /// Packet that made `most.bytes` so.
    pub packet: u64,
}

impl Flight {
    fn used(&self) -> usize {
        usize::from(self.used)
    }

    /// Takes note of a request.
    pub fn sent(&mut self, r: Request) {
        if self.begun == 0 && self.ended == 0 && self.bytes == 0 {
            self.covered.psn = r.first.plus(-1);
        }
        self.bytes += r.bytes;
        self.begun = self.begun.wrapping_add(u32::from(r.starts));
        if r.ends {
            self.ended = self.ended.wrapping_add(1);
            // its beginning was before the capture
            self.begun = self.begun.max(1);
        }
        let mark = Mark { psn: r.last, bytes: self.bytes, ended: self.ended };
        let used = self.used();
        match self.marks.get_mut(..used).and_then(<[Mark]>::last_mut) {
            // a late one: what lies behind it was sent with it
            Some(latest) if r.last.distance(latest.psn) <= 0 => {
                for m in self.marks.iter_mut().take(used).filter(|m| m.psn.distance(r.last) >= 0) {
                    m.bytes += r.bytes;
                    m.ended = m.ended.wrapping_add(u32::from(r.ends));
                }
                if r.last.distance(self.covered.psn) <= 0 {
                    self.covered.bytes += r.bytes;
                    self.covered.ended = self.covered.ended.wrapping_add(u32::from(r.ends));
                }
            }
            Some(latest) if self.open => {
                *latest = mark;
                self.open = !r.ends;
            }
            _ => {
                self.push(mark);
                self.open = !r.ends;
            }
        }
        let now = self.now();
        self.most.requests = self.most.requests.max(now.requests);
        if now.bytes > self.most.bytes {
            (self.most.bytes, self.packet) = (now.bytes, r.packet);
        }
    }

    fn push(&mut self, mark: Mark) {
        if self.used() == MARKS {
            // every second one goes; the newest stays
            for to in 0..usize::from(HALF) {
                self.marks.copy_within(to * 2 + 1..to * 2 + 2, to);
            }
            self.used = HALF;
        }
        if let Some(slot) = self.marks.get_mut(usize::from(self.used)) {
            *slot = mark;
            self.used += 1;
        }
    }

    /// Everything up to `psn` is answered.
    pub fn covered(&mut self, psn: Psn) {
        let used = self.used();
        let done = self.marks.iter().take(used).take_while(|m| m.psn.distance(psn) <= 0).count();
        if let Some(m) = self.marks.get(..done).and_then(<[Mark]>::last) {
            self.covered = *m;
            self.marks.copy_within(done..used, 0);
            self.used = u8::try_from(used - done).unwrap_or(0);
            self.open &= self.used > 0;
        }
        if self.used == 0 {
            // nothing is under way; what began or ended unseen is made up for
            self.begun = self.ended;
        }
        let Some(next) = self.marks.first().filter(|_| self.used > 0) else { return };
        let from = self.covered;
        let (way, gone) = (next.psn.distance(from.psn), psn.distance(from.psn));
        if gone <= 0 || gone >= way {
            return;
        }
        let share = |n: u64| n * u64::from(gone.unsigned_abs()) / u64::from(way.unsigned_abs());
        let ended = u64::from(next.ended.wrapping_sub(from.ended));
        self.covered = Mark {
            psn,
            bytes: from.bytes + share(next.bytes.saturating_sub(from.bytes)),
            // one message is done when it is done
            ended: from.ended.wrapping_add(u32::try_from(share(ended)).unwrap_or(0)),
        };
    }

    /// Under way now.
    pub fn now(&self) -> Amount {
        Amount {
            requests: self.begun.wrapping_sub(self.covered.ended).cast_signed().max(0).unsigned_abs(),
            bytes: self.bytes.saturating_sub(self.covered.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(f: &mut Flight, psn: u32, bytes: u64) {
        f.sent(Request { first: Psn::new(psn), last: Psn::new(psn), bytes, starts: true, ends: true, packet: 1 });
    }

    #[test]
    fn whole_messages() {
        let mut f = Flight::default();
        for p in 0..8 {
            only(&mut f, 0xff_fffc + p, 100);
        }
        assert_eq!(f.now(), Amount { requests: 8, bytes: 800 });
        f.covered(Psn::new(0xff_fffe));
        assert_eq!(f.now(), Amount { requests: 5, bytes: 500 });
        f.covered(Psn::new(3));
        assert_eq!((f.now(), f.most), (Amount::default(), Amount { requests: 8, bytes: 800 }));
    }

    #[test]
    fn inside_a_message() {
        let mut f = Flight::default();
        only(&mut f, 9, 50);
        f.covered(Psn::new(9));
        for p in 0..100 {
            let psn = Psn::new(10 + p);
            f.sent(Request { first: psn, last: psn, bytes: 1024, starts: p == 0, ends: p == 99, packet: 1 });
        }
        f.covered(Psn::new(59));
        assert_eq!(f.now(), Amount { requests: 1, bytes: 50 * 1024 });
        f.covered(Psn::new(109));
        assert_eq!(f.now(), Amount::default());
    }

    #[test]
    fn more_messages_than_marks() {
        let mut f = Flight::default();
        for p in 0..1000 {
            only(&mut f, p, 4096);
        }
        f.covered(Psn::new(499));
        let now = f.now();
        assert!(now.requests.abs_diff(500) <= 2 && now.bytes.abs_diff(500 * 4096) <= 2 * 4096, "{now:?}");
        f.covered(Psn::new(999));
        assert_eq!(f.now(), Amount::default());
    }

    #[test]
    fn a_late_one_counts_where_it_belongs() {
        let mut f = Flight::default();
        only(&mut f, 1, 10);
        only(&mut f, 3, 10);
        only(&mut f, 2, 7);
        assert_eq!(f.now(), Amount { requests: 3, bytes: 27 });
        f.covered(Psn::new(3));
        assert_eq!(f.now(), Amount::default());
    }
}
