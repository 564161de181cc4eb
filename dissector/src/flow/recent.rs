//! The last packets of a flow by PSN: what a repeat repeats, what an acknowledge covers, and when it was sent.

use crate::capture::Timestamp;
use crate::wire::{Psn, Role};

const SLOTS: usize = 32;

/// A packet that was sent a short while ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Number in the capture.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// IPv4 identification, 0 without one.
    pub ip_id: u16,
    /// It had been sent before.
    pub again: bool,
    /// It came after a later PSN.
    pub late: bool,
    /// Opcode byte.
    pub opcode: u8,
    /// Where it was recorded: [`super::vantage::Vantage::point`].
    pub point: u8,
}

/// Direct-mapped: PSN modulo 32, requests and responses apart. Older entries give way.
#[derive(Clone, Debug)]
pub struct Recent {
    tags: [u64; SLOTS],
    at: [Timestamp; SLOTS],
    /// The low 32 bits: evidence in a file of more packets than that is not worth the room.
    number: [u32; SLOTS],
}

const VALID: u64 = 1 << 63;
const AGAIN: u64 = 1 << 62;
const RESPONSE: u64 = 1 << 61;
const LATE: u64 = 1 << 60;
/// Bits above the PSN.
const OPCODE: u32 = 40;
/// Bits above the opcode.
const POINT: u32 = 48;

impl Default for Recent {
    fn default() -> Self {
        Self { tags: [0; SLOTS], at: [Timestamp(0); SLOTS], number: [0; SLOTS] }
    }
}

fn place(psn: Psn, role: Role) -> (usize, u64) {
    let response = matches!(role, Role::Response);
    let i = (psn.get() as usize ^ usize::from(response) << 4) & (SLOTS - 1);
    (i, VALID | if response { RESPONSE } else { 0 } | u64::from(psn.get()) << 16)
}

const IDENTITY: u64 = VALID | RESPONSE | 0xff_ffff << 16;

impl Recent {
    /// The latest packet with this PSN in this role.
    pub fn get(&self, psn: Psn, role: Role) -> Option<Sent> {
        let (i, want) = place(psn, role);
        let tag = *self.tags.get(i)?;
        if tag & IDENTITY != want {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low 16 bits hold the identification, eight more the opcode, and eight the point"
        )]
        Some(Sent {
            number: u64::from(*self.number.get(i)?),
            at: *self.at.get(i)?,
            ip_id: tag as u16,
            again: tag & AGAIN != 0,
            late: tag & LATE != 0,
            opcode: (tag >> OPCODE) as u8,
            point: (tag >> POINT) as u8,
        })
    }

    /// Notes one.
    pub fn put(&mut self, psn: Psn, role: Role, sent: Sent) {
        let (i, tag) = place(psn, role);
        let (Some(t), Some(a), Some(n)) = (self.tags.get_mut(i), self.at.get_mut(i), self.number.get_mut(i)) else {
            return;
        };
        *t = tag
            | u64::from(sent.ip_id)
            | u64::from(sent.opcode) << OPCODE
            | u64::from(sent.point) << POINT
            | if sent.again { AGAIN } else { 0 }
            | if sent.late { LATE } else { 0 };
        *a = sent.at;
        #[expect(clippy::cast_possible_truncation, reason = "the low half is kept")]
        {
            *n = sent.number as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_age() {
        let mut r = Recent::default();
        let sent =
            |n| Sent { number: n, at: Timestamp(5), ip_id: 7, again: n == 2, late: n == 1, opcode: 0x15, point: 0xfe };
        r.put(Psn::new(3), Role::Request, sent(1));
        r.put(Psn::new(3), Role::Response, sent(2));
        assert_eq!(r.get(Psn::new(3), Role::Request), Some(sent(1)));
        assert_eq!(r.get(Psn::new(3), Role::Response), Some(sent(2)));
        r.put(Psn::new(35), Role::Request, sent(3));
        assert_eq!(r.get(Psn::new(3), Role::Request), None);
    }
}
