//! PSNs of one flow and role as one observer sees them: in order, missing, seen again, late.
//!
//! A ring of bits remembers the latest [`WINDOW`] PSNs, so that a packet behind the newest one is told from a
//! first arrival. Each word of the ring carries the number of its block of PSNs: a word of an older block counts as
//! empty, so that a gap needs no clearing and every packet costs the same few instructions, without loops that the
//! verifier would have to walk.
//!
//! What the rules know: the 24 bits wrap; a READ request takes as many PSNs as its response has packets,
//! and none but the first of them is ever sent as a request; responses skip the PSNs of what was
//! acknowledged otherwise, so only inside one READ response do they follow each other; a jump of more than
//! [`RESTART`] is another life of the queue pair, not a loss.

#![expect(clippy::inline_always, reason = "the kernel program must not call: the verifier follows inlined code better")]

use crate::abi::layout;

/// PSNs that are remembered one by one.
pub const WINDOW: u32 = 512;
/// A PSN that lies further off than this starts anew.
pub const RESTART: u32 = 1 << 16;
/// READs whose ranges are remembered.
pub const READS: usize = 8;
const WORDS: usize = (WINDOW / 32) as usize;
const STARTED: u32 = 1 << 31;
const MASK: u32 = 0x00ff_ffff;

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
    /// READs that took more than one PSN, so far.
    reads: u32,
    /// The latest PSNs that came: block number (PSN / 32) above, a bit for each PSN of the block below.
    seen: [u64; WORDS],
    /// The latest READs that took more than one PSN: first PSN above, how many below.
    ranges: [u64; READS],
    /// Packets whose PSN came before.
    pub repeats: u64,
    /// PSNs that have not come while later ones did.
    pub missing: u64,
    /// First arrivals behind a later PSN.
    pub late: u64,
    /// New starts at a PSN far off.
    pub restarts: u64,
}
layout!(Track, 240, 8);

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
    pub const ZERO: Self = Self {
        next: 0,
        slack: 0,
        low: 0,
        reads: 0,
        seen: [0; WORDS],
        ranges: [0; READS],
        repeats: 0,
        missing: 0,
        late: 0,
        restarts: 0,
    };

    /// The next PSN expected, if anything came.
    pub const fn next(&self) -> Option<u32> {
        if self.next & STARTED != 0 { Some(self.next & MASK) } else { None }
    }

    /// Counts a packet that is the one expected and takes one PSN. `false` if it is not: then nothing has changed.
    #[inline(always)]
    pub fn push_expected(&mut self, psn: u32) -> bool {
        if self.next != psn | STARTED {
            return false;
        }
        self.set(psn);
        self.next = (psn.wrapping_add(1) & MASK) | STARTED;
        self.slack = 0;
        true
    }

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
            let in_read = if ahead < self.slack { ahead } else { self.slack };
            if in_read > 0 {
                self.resize_read(in_read.wrapping_add(1));
            }
            let legal = if matches!(rule, Rule::MaySkip) { ahead } else { in_read };
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
        if psn.wrapping_sub(self.low) & MASK >= 1 << 23 {
            // what came before the first packet that we saw was never missing
            self.low = psn;
        } else if behind > WINDOW || self.has(psn) {
            // further back than the memory: senders go back to repeat, not to skip
            self.repeats = self.repeats.wrapping_add(1);
            return Step::Repeat;
        } else if self.inside_read(psn) {
            // not its first PSN, which has its bit: the response's place
            if matches!(rule, Rule::Takes(_) | Rule::TakesUpTo(_)) {
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
        // what the ring holds of the life before lies more than the window off; the numbers of its blocks say so
        self.low = psn;
        self.set(psn);
        self.advance(psn, rule);
        self.restarts = self.restarts.wrapping_add(1);
        Step::Restart
    }

    #[inline(always)]
    fn advance(&mut self, psn: u32, rule: Rule) {
        let (span, slack) = match rule {
            Rule::Follows | Rule::MaySkip => (1, 0),
            Rule::TakesUpTo(n) => (1, if n > 1 { n.wrapping_sub(1) } else { 0 }),
            Rule::Takes(n) => (if n > 1 { n } else { 1 }, 0),
        };
        self.next = (psn.wrapping_add(span) & MASK) | STARTED;
        self.slack = slack;
        if span.wrapping_add(slack) > 1 {
            self.ranges[self.reads as usize & (READS - 1)] = u64::from(psn) << 32 | u64::from(span.wrapping_add(slack));
            self.reads = self.reads.wrapping_add(1);
        }
    }

    /// The latest READ turns out to have taken so many PSNs.
    #[inline(always)]
    fn resize_read(&mut self, span: u32) {
        let r = &mut self.ranges[self.reads.wrapping_sub(1) as usize & (READS - 1)];
        *r = *r & !0xffff_ffff | u64::from(span);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of the word is meant")]
    fn inside_read(&self, psn: u32) -> bool {
        if self.reads == 0 {
            return false;
        }
        let mut i = 0usize;
        while i < READS {
            let r = self.ranges[i];
            if psn.wrapping_sub((r >> 32) as u32) & MASK < r as u32 {
                return true;
            }
            i = i.wrapping_add(1);
        }
        false
    }

    #[inline(always)]
    fn set(&mut self, psn: u32) {
        let block = psn >> 5;
        let word = &mut self.seen[block as usize & (WORDS - 1)];
        let kept = if (*word >> 32) as u32 == block { *word } else { u64::from(block) << 32 };
        *word = kept | 1 << (psn & 31);
    }

    #[inline(always)]
    fn has(&self, psn: u32) -> bool {
        let block = psn >> 5;
        let word = self.seen[block as usize & (WORDS - 1)];
        (word >> 32) as u32 == block && word >> (psn & 31) & 1 != 0
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
