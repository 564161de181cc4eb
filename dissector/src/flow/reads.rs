//! Requests that are answered with data: READs, atomics, FLUSH, ATOMIC WRITE. They say which PSNs belong to
//! the responder's flow.

use crate::capture::Timestamp;
use crate::wire::Psn;

/// Path MTUs that exist, bytes.
pub const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];

/// Packets that a READ of `len` bytes is answered with.
pub const fn packets_of(len: u32, mtu: u32) -> u32 {
    if len == 0 { 1 } else { len.div_ceil(mtu) }
}

/// One request that waits for data, or has got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Its PSN; the response starts with the same.
    pub psn: Psn,
    /// PSNs that it takes; 0 while the path MTU is unknown.
    pub span: u32,
    /// Bytes asked for; 0 for atomics and the like.
    pub len: u32,
    /// When it was first sent.
    pub at: Timestamp,
    /// Packet.
    pub packet: u64,
    /// Its last response was seen.
    pub done: bool,
    /// Sent more than once.
    pub again: bool,
    /// The time to its last response has been taken, repeats of it included.
    pub timed: bool,
}

const KEPT: usize = 24;

/// The latest of them, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Reads(Vec<Read>);

impl Reads {
    /// Notes a request.
    pub fn add(&mut self, read: Read) {
        if self.0.capacity() == 0 {
            self.0.reserve_exact(KEPT);
        }
        if self.0.len() == KEPT {
            // those that are answered go first, so that a deep queue keeps its open ones
            let i = self.0.iter().position(|r| r.done).unwrap_or(0);
            self.0.remove(i);
        }
        self.0.push(read);
    }

    /// The one that starts at this PSN.
    pub fn starting_at(&mut self, psn: Psn) -> Option<&mut Read> {
        self.0.iter_mut().rev().find(|r| r.psn == psn)
    }

    /// The one whose range holds this PSN.
    pub fn holding(&mut self, psn: Psn) -> Option<&mut Read> {
        self.0.iter_mut().rev().find(|r| {
            let d = psn.distance(r.psn);
            // unknown spans are at most as long as the smallest MTU makes them
            let span = if r.span == 0 { packets_of(r.len, 256) } else { r.span };
            d >= 0 && d.unsigned_abs() < span
        })
    }

    /// The latest one.
    pub fn latest(&mut self) -> Option<&mut Read> {
        self.0.last_mut()
    }

    /// The same, to be looked at.
    pub fn last(&self) -> Option<&Read> {
        self.0.last()
    }

    /// Those without an answer yet.
    pub fn open(&self) -> usize {
        self.0.iter().filter(|r| !r.done).count()
    }

    /// All that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &Read> {
        self.0.iter()
    }

    /// All of them, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Read> {
        self.0.iter_mut()
    }

    /// Whether there were any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parts of `len` PSNs from `start` on in which responses are due, in PSN order.
    pub fn due_within(&self, start: Psn, len: u32) -> Vec<(Psn, u32)> {
        let len = i64::from(len);
        let mut parts: Vec<(i64, i64)> = self
            .0
            .iter()
            .filter_map(|r| {
                let a = i64::from(r.psn.distance(start));
                let b = (a + i64::from(r.span)).min(len);
                let a = a.max(0);
                (a < b).then_some((a, b))
            })
            .collect();
        parts.sort_unstable();
        // a READ that was restarted in its middle overlaps with itself
        let mut out: Vec<(i64, i64)> = Vec::new();
        for (a, b) in parts {
            match out.last_mut() {
                Some((_, end)) if a <= *end => *end = (*end).max(b),
                _ => out.push((a, b)),
            }
        }
        out.into_iter()
            .map(|(a, b)| (start.plus(i32::try_from(a).unwrap_or(0)), u32::try_from(b - a).unwrap_or(0)))
            .collect()
    }
}

/// How many packets a READ of `len` bytes took, if `distance` PSNs later the next request came: the span,
/// and the path MTU if only one explains it. Nothing is lost in between if the span is the distance.
pub fn span_from_jump(len: u32, distance: u32) -> (u32, Option<u32>) {
    let fits = |m: &&u32| packets_of(len, **m) == distance;
    let mut exact = MTUS.iter().filter(fits);
    if let Some(m) = exact.next() {
        return (distance, if exact.next().is_none() { Some(*m) } else { None });
    }
    let best = MTUS.iter().map(|m| packets_of(len, *m)).filter(|n| *n <= distance).max();
    (best.unwrap_or(1), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(packets_of(0, 1024), 1);
        assert_eq!(packets_of(1024, 1024), 1);
        assert_eq!(packets_of(1025, 1024), 2);
        assert_eq!(span_from_jump(8192, 8), (8, Some(1024)));
        assert_eq!(span_from_jump(100, 1), (1, None));
        assert_eq!(span_from_jump(8192, 9), (8, None));
    }

    #[test]
    fn due_parts() {
        let mut r = Reads::default();
        let read = |psn, span| Read {
            psn: Psn::new(psn),
            span,
            len: 0,
            at: Timestamp(0),
            packet: 0,
            done: false,
            again: false,
            timed: false,
        };
        r.add(read(0xff_fffe, 4));
        r.add(read(10, 2));
        assert_eq!(r.due_within(Psn::new(0xff_ffff), 12), [(Psn::new(0xff_ffff), 3), (Psn::new(10), 1)]);
        assert_eq!(r.due_within(Psn::new(2), 8), []);
    }
}
