//! PSNs of one flow and role as one observer sees them: in order, missing, seen again, late.
//!
//! A ring of bits remembers the latest [`WINDOW`] PSNs, so that a packet behind the newest one is told from a
//! first arrival. In order, a packet costs a comparison and one bit.
//!
//! What the rules know: the 24 bits wrap; a READ request takes as many PSNs as its response has packets,
//! and none but the first of them is ever sent as a request; responses skip the PSNs of what was
//! acknowledged otherwise, so only inside one READ response do they follow each other; a jump of more than
//! [`RESTART`] is another life of the queue pair, not a loss.

use crate::abi::layout;

/// PSNs that are remembered one by one.
pub const WINDOW: u32 = 512;
/// A PSN that lies further off than this starts anew.
pub const RESTART: u32 = 1 << 16;
const WORDS: usize = (WINDOW / 64) as usize;
const STARTED: u32 = 1 << 31;
const MASK: u32 = 0x00ff_ffff;

/// The lowest `n` bits.
#[inline(always)]
const fn low(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1u64 << n).wrapping_sub(1) }
}

/// State of one flow and role; all zero is "nothing came yet".
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Track {
    /// Next PSN expected, with bit 31 once a packet came.
    next: u32,
    /// How many PSNs after `next` may belong to a READ of unknown packet count.
    slack: u32,
    /// First PSN, or the lowest that came later.
    low: u32,
    /// 1 once a READ took more than one PSN, so that `held` has a say.
    reads: u32,
    /// A bit for each of the latest PSNs that came, at PSN modulo [`WINDOW`].
    seen: [u64; WORDS],
    /// A bit for each of the latest PSNs that belong to a READ without being its first.
    held: [u64; WORDS],
    /// Packets whose PSN came before.
    pub repeats: u64,
    /// PSNs that have not come while later ones did.
    pub missing: u64,
    /// First arrivals behind a later PSN.
    pub late: u64,
    /// New starts at a PSN far off.
    pub restarts: u64,
}
layout!(Track, 176, 8);

/// How a packet continues its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The one expected, or the first ever, or after a skip that is legal.
    Next,
    /// So many PSNs are missing before it.
    Gap(u32),
    /// Came before.
    Repeat,
    /// A READ that goes on from the middle of an earlier one, where its response broke off.
    Resumed,
    /// First arrival behind a later one.
    Late,
    /// Another life of the queue pair.
    Restart,
}

/// What a packet's opcode says about its PSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Follows the one before it; takes one PSN.
    Follows,
    /// Follows; takes `1..=n` PSNs (a READ request of unknown path MTU: at most `n`).
    TakesUpTo(u32),
    /// Follows; takes exactly `n`.
    Takes(u32),
    /// May skip any number (first or only packet of a response).
    MaySkip,
}

impl Track {
    /// Nothing yet.
    pub const ZERO: Self =
        Self {
            next: 0,
            slack: 0,
            low: 0,
            reads: 0,
            seen: [0; WORDS],
            held: [0; WORDS],
            repeats: 0,
            missing: 0,
            late: 0,
            restarts: 0,
        };

    /// Counts a packet.
    #[inline(always)]
    pub fn push(&mut self, psn: u32, rule: Rule) -> Step {
        let psn = psn & MASK;
        if self.next == psn | STARTED {
            self.set(psn);
            self.advance(psn, rule);
            return Step::Next;
        }
        self.push_odd(psn, rule)
    }

    /// All but the packet that was expected.
    #[inline(always)]
    fn push_odd(&mut self, psn: u32, rule: Rule) -> Step {
        if self.next & STARTED == 0 {
            self.low = psn;
            self.set(psn);
            self.advance(psn, rule);
            return Step::Next;
        }
        let ahead = psn.wrapping_sub(self.next) & MASK;
        let behind = self.next.wrapping_sub(psn) & MASK;
        if ahead < behind {
            // `ahead` is not 0: that was the packet expected
            if ahead > RESTART {
                return self.restart(psn, rule);
            }
            let from = self.next & MASK;
            let in_read = if ahead < self.slack { ahead } else { self.slack };
            let legal = if matches!(rule, Rule::MaySkip) { ahead } else { in_read };
            fill(&mut self.seen, from, ahead, false);
            if self.reads != 0 {
                fill(&mut self.held, from, ahead, false);
            }
            if in_read > 0 {
                self.hold(from, in_read);
            }
            self.set(psn);
            self.advance(psn, rule);
            let missing = ahead.wrapping_sub(legal);
            if missing == 0 {
                return Step::Next;
            }
            self.missing = self.missing.wrapping_add(u64::from(missing));
            return Step::Gap(missing);
        }
        if behind > RESTART {
            return self.restart(psn, rule);
        }
        let before_all = psn.wrapping_sub(self.low) & MASK >= 1 << 23;
        if before_all {
            // what came before the first packet that we saw was never missing
            self.low = psn;
        } else if behind > WINDOW || has(&self.seen, psn) {
            // further back than the memory: senders go back to repeat, not to skip
            let read = matches!(rule, Rule::Takes(_) | Rule::TakesUpTo(_));
            if read && behind <= WINDOW && has(&self.held, psn) {
                return Step::Resumed;
            }
            self.repeats = self.repeats.wrapping_add(1);
            return Step::Repeat;
        } else if self.missing > 0 {
            self.missing = self.missing.wrapping_sub(1);
        }
        if behind <= WINDOW {
            self.set(psn);
        }
        self.late = self.late.wrapping_add(1);
        Step::Late
    }

    #[inline(always)]
    fn restart(&mut self, psn: u32, rule: Rule) -> Step {
        self.seen = [0; WORDS];
        self.held = [0; WORDS];
        self.low = psn;
        self.set(psn);
        self.advance(psn, rule);
        self.restarts = self.restarts.wrapping_add(1);
        Step::Restart
    }

    #[inline(always)]
    fn advance(&mut self, psn: u32, rule: Rule) {
        match rule {
            Rule::Follows | Rule::MaySkip => {
                self.next = (psn.wrapping_add(1) & MASK) | STARTED;
                self.slack = 0;
            }
            Rule::TakesUpTo(n) => {
                self.next = (psn.wrapping_add(1) & MASK) | STARTED;
                self.slack = if n > 1 { n.wrapping_sub(1) } else { 0 };
            }
            Rule::Takes(n) => {
                let first = psn.wrapping_add(1) & MASK;
                let more = if n > 1 { n.wrapping_sub(1) } else { 0 };
                if more > 0 {
                    self.hold(first, more);
                }
                self.next = (first.wrapping_add(more) & MASK) | STARTED;
                self.slack = 0;
            }
        }
    }

    /// PSNs inside a READ are its response's.
    #[inline(always)]
    fn hold(&mut self, first: u32, count: u32) {
        self.reads = 1;
        fill(&mut self.seen, first, count, true);
        fill(&mut self.held, first, count, true);
    }

    #[inline(always)]
    fn set(&mut self, psn: u32) {
        let (w, b) = bit(psn);
        self.seen[w] |= b;
        if self.reads != 0 {
            self.held[w] &= !b;
        }
    }
}

#[inline(always)]
fn bit(psn: u32) -> (usize, u64) {
    (((psn >> 6) as usize) & (WORDS - 1), 1u64 << (psn & 63))
}

#[inline(always)]
fn has(ring: &[u64; WORDS], psn: u32) -> bool {
    let (w, b) = bit(psn);
    ring[w] & b != 0
}

/// Sets or clears the bits of `count` PSNs from `first` on, word by word.
#[inline(always)]
fn fill(ring: &mut [u64; WORDS], first: u32, count: u32, set: bool) {
    let count = if count > WINDOW { WINDOW } else { count };
    let start = first & (WINDOW - 1);
    let mut w = 0usize;
    while w < WORDS {
        // how far the word's first bit lies behind the range's first
        let off = ((w as u32) << 6).wrapping_sub(start) & (WINDOW - 1);
        let mut bits = low(count.saturating_sub(off));
        if off > WINDOW - 64 {
            // the range begins inside this word; what lies before its begin is its end, if it is that long
            let head = WINDOW.wrapping_sub(off);
            bits = (bits & low(head)) | (low(count) << (head & 63));
        }
        if set {
            ring[w] |= bits;
        } else {
            ring[w] &= !bits;
        }
        w = w.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_over_the_wrap() {
        let mut t = Track::ZERO;
        for i in 0..2000u32 {
            assert_eq!(t.push(0xff_fc00u32.wrapping_add(i), Rule::Follows), Step::Next);
        }
        assert_eq!((t.repeats, t.missing, t.late, t.restarts), (0, 0, 0, 0));
    }

    #[test]
    fn loss_then_the_sender_goes_back() {
        let mut t = Track::ZERO;
        for psn in [10, 11, 14, 15] {
            t.push(psn, Rule::Follows);
        }
        assert_eq!(t.missing, 2);
        assert_eq!(t.push(12, Rule::Follows), Step::Late);
        assert_eq!(t.push(13, Rule::Follows), Step::Late);
        assert_eq!(t.push(14, Rule::Follows), Step::Repeat);
        assert_eq!(t.push(15, Rule::Follows), Step::Repeat);
        assert_eq!(t.push(16, Rule::Follows), Step::Next);
        assert_eq!((t.repeats, t.missing, t.late), (2, 0, 2));
    }

    #[test]
    fn stale_bits_do_not_speak() {
        let mut t = Track::ZERO;
        for psn in 0..WINDOW {
            t.push(psn, Rule::Follows);
        }
        // skips 5 PSNs whose bits were set a window earlier
        assert_eq!(t.push(WINDOW + 5, Rule::Follows), Step::Gap(5));
        assert_eq!(t.push(WINDOW + 2, Rule::Follows), Step::Late);
        assert_eq!(t.push(WINDOW + 2, Rule::Follows), Step::Repeat);
        assert_eq!(t.missing, 4);
    }

    #[test]
    fn a_gap_wider_than_the_memory() {
        let mut t = Track::ZERO;
        for psn in 0..WINDOW {
            t.push(psn, Rule::Follows);
        }
        assert_eq!(t.push(WINDOW * 3, Rule::Follows), Step::Gap(WINDOW * 2));
        assert_eq!(t.push(WINDOW * 3 - 1, Rule::Follows), Step::Late);
    }

    #[test]
    fn reads_take_the_psns_of_their_response() {
        let mut t = Track::ZERO;
        t.push(100, Rule::TakesUpTo(8));
        assert_eq!(t.push(102, Rule::Follows), Step::Next);
        assert_eq!(t.push(103, Rule::Takes(4)), Step::Next);
        assert_eq!(t.push(107, Rule::Follows), Step::Next);
        // from the middle of its range, again from its begin, and something that does not belong there
        assert_eq!(t.push(105, Rule::Takes(2)), Step::Resumed);
        assert_eq!(t.push(103, Rule::Takes(4)), Step::Repeat);
        assert_eq!(t.push(106, Rule::Follows), Step::Repeat);
        assert_eq!((t.repeats, t.late, t.missing), (2, 0, 0));
        t.push(108, Rule::TakesUpTo(8));
        assert_eq!(t.push(118, Rule::Follows), Step::Gap(2));
    }

    #[test]
    fn responses_skip_between_messages_only() {
        let mut t = Track::ZERO;
        assert_eq!(t.push(5, Rule::MaySkip), Step::Next);
        assert_eq!(t.push(6, Rule::Follows), Step::Next);
        assert_eq!(t.push(20, Rule::MaySkip), Step::Next);
        assert_eq!(t.push(23, Rule::Follows), Step::Gap(2));
    }

    #[test]
    fn ranges_by_word_equal_ranges_by_bit() {
        for start in [0, 1, 63, 64, 65, 300, 511] {
            for count in [0, 1, 2, 63, 64, 65, 128, 447, 448, 449, 510, 511, 512, 900] {
                for (seen, all) in [(true, 0), (false, u64::MAX)] {
                    let mut ring = [all; WORDS];
                    fill(&mut ring, start, count, seen);
                    for n in 0..WINDOW {
                        let inside = n < count;
                        assert_eq!(has(&ring, start + n), inside == seen, "start {start} count {count} bit {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn before_the_first_packet_nothing_was_missing() {
        let mut t = Track::ZERO;
        for psn in [10, 13, 8, 9, 8] {
            t.push(psn, Rule::Follows);
        }
        assert_eq!((t.missing, t.late, t.repeats), (1, 2, 1));
    }

    #[test]
    fn another_life() {
        let mut t = Track::ZERO;
        t.push(5, Rule::Follows);
        assert_eq!(t.push(0x70_0000, Rule::Follows), Step::Restart);
        assert_eq!(t.push(0x70_0001, Rule::Follows), Step::Next);
        assert_eq!((t.missing, t.restarts), (0, 1));
    }
}
