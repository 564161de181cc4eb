//! Where packets were recorded. A sender that repeats a packet sends it the same way, so at one recorder a repeat
//! looks like the first sending down to the link layer; a copy from another recorder came over other hops.

use crate::frame::{Frame, LinkType};

/// Points at which packets of one flow were recorded, told apart by TTL, link-layer addresses and VLAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vantage {
    /// 0: nothing yet.
    first: u8,
    latest: u8,
    /// Packets that were recorded elsewhere than the first one.
    pub elsewhere: u32,
    /// Repeats that may be copies (from another place than the first sending, or the same bytes), taken for repeats all the same.
    pub unsure: u16,
    /// How often the place changed from one packet to the next.
    pub switches: u32,
}

impl Vantage {
    /// The place of the latest packet, in so few bits that two places are alike once in 255 times.
    pub const fn point(&self) -> u8 {
        self.latest
    }

    /// Whether packets came from one place, from another and from the first again: no change of the path.
    pub const fn alternates(&self) -> bool {
        self.switches >= 2
    }

    /// Looks at a packet.
    pub fn take(&mut self, frame: &Frame<'_>, ttl: u8) {
        let mark = mark(frame, ttl);
        if self.first == 0 {
            (self.first, self.latest) = (mark, mark);
        }
        self.elsewhere = self.elsewhere.saturating_add(u32::from(mark != self.first));
        self.switches = self.switches.saturating_add(u32::from(mark != self.latest));
        self.latest = mark;
    }
}

/// Never zero. A cooked header says in place of two addresses whether the packet came or went, and over which
/// interface.
fn mark(frame: &Frame<'_>, ttl: u8) -> u8 {
    let start = match frame.ethernet {
        Some(at) => Some(at),
        None if matches!(frame.link, LinkType::SLL | LinkType::SLL2) => Some(0),
        None => None,
    };
    let head = start.and_then(|at| frame.bytes.get(at..)?.first_chunk::<12>());
    let head = head.map_or(0, |h| {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *h;
        let low = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        low.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(u32::from_le_bytes([i, j, k, l]))
    });
    let tag = frame.vlan_tci.map_or(0, |t| u64::from(t & 0xfff) + 1);
    let [.., best] = (head ^ u64::from(ttl) ^ tag << 16).wrapping_mul(0xff51_afd7_ed55_8ccd).to_le_bytes();
    best.max(1)
}
