//! All queue pairs of one traffic class stopping together in the middle of their messages: what a pause of
//! that priority looks like from the outside.

use super::Place;
use crate::capture::Timestamp;
use crate::wire::Position;

/// Silence of a class from which on it is a stall, nanoseconds.
const SILENCE: i64 = 5_000_000;
/// Flows that must be in the middle of a message when it begins, and go on when it ends.
const TOGETHER: u32 = 3;
/// They go on within this time, nanoseconds.
const RESUME: i64 = 2_000_000;
/// Stalls that are kept.
const KEPT: usize = 16;

/// One stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// DSCP of the class.
    pub dscp: u8,
    /// Last packet before it.
    pub before: u64,
    /// First packet after it.
    pub after: u64,
    /// Nanoseconds.
    pub length: i64,
    /// Flows that stopped in the middle of a message (at least).
    pub flows: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Class {
    last: Timestamp,
    packet: u64,
    /// Flows in the middle of a message, by the low six bits of their ids.
    open: u64,
    stall: Option<(Stall, Timestamp, u64, u64)>,
}

/// All classes.
#[derive(Clone, Debug)]
pub struct Classes {
    by_dscp: Box<[Class; 64]>,
    /// What was found, in the order of the capture.
    pub stalls: Vec<Stall>,
}

impl Default for Classes {
    fn default() -> Self {
        Self { by_dscp: Box::new([Class::default(); 64]), stalls: Vec::new() }
    }
}

impl Classes {
    /// Takes a data packet of flow `id`; `again` if it was sent before.
    pub fn take(&mut self, dscp: u8, id: u32, place: Place, position: Position, again: bool) {
        let Some(c) = self.by_dscp.get_mut(usize::from(dscp & 63)) else { return };
        let bit = 1u64 << (id & 63);
        let length = place.at.since(c.last);
        if length > SILENCE && c.open.count_ones() >= TOGETHER {
            let flows = c.open.count_ones();
            let stall = Stall { dscp, before: c.packet, after: place.number, length, flows };
            c.stall = Some((stall, place.at, c.open, 0));
        }
        if let Some((stall, began, stuck, gone_on)) = c.stall.as_mut() {
            *gone_on |= bit & *stuck;
            if again || place.at.since(*began) > RESUME {
                // repeats: packets were lost, not held
                c.stall = None;
            } else if gone_on.count_ones() >= TOGETHER {
                if self.stalls.len() < KEPT {
                    self.stalls.push(*stall);
                }
                c.stall = None;
            }
        }
        if position.ends() {
            c.open &= !bit;
        } else {
            c.open |= bit;
        }
        c.last = place.at;
        c.packet = place.number;
    }
}
