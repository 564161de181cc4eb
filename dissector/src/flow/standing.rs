//! A responder whose first answers all name one PSN: it waits for something that the requester never sends, or
//! takes everything for repeats.

use crate::wire::aeth::Verdict as Said;
use crate::wire::{NakCode, Psn};

/// The first answers of a responder, as long as each says what the first one said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// How many.
    pub times: u32,
    /// Another answer came after them.
    pub over: bool,
    /// They are sequence NAKs, not ACKs.
    pub nak: bool,
    /// PSN that they name.
    pub psn: Psn,
    /// Their MSN.
    pub msn: u32,
    /// The first of them, and the latest.
    pub packets: (u64, u64),
}

impl Standing {
    /// Takes the next acknowledge packet of the responder.
    pub fn take(&mut self, said: Said, psn: Psn, msn: u32, packet: u64) {
        if self.over {
            return;
        }
        let nak = said == Said::Nak(NakCode::PsnSequenceError);
        let known = nak || matches!(said, Said::Ack(_));
        if self.times == 0 && known {
            *self = Self { times: 1, over: false, nak, psn, msn, packets: (packet, packet) };
        } else if known && (nak, psn, msn) == (self.nak, self.psn, self.msn) {
            self.times = self.times.saturating_add(1);
            self.packets.1 = packet;
        } else {
            self.over = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_the_first_other_answer() {
        let mut s = Standing::default();
        s.take(Said::Ack(31), Psn::new(9), 0, 4);
        s.take(Said::Ack(30), Psn::new(9), 0, 6);
        assert_eq!((s.times, s.over, s.packets), (2, false, (4, 6)));
        s.take(Said::Nak(NakCode::PsnSequenceError), Psn::new(9), 0, 8);
        s.take(Said::Ack(31), Psn::new(9), 0, 10);
        assert_eq!((s.times, s.over, s.packets), (2, true, (4, 6)));
    }
}
