//! One packet as the analysis of requests and responses needs it, and what can be told from it alone.

use super::Place;
use super::event::{Event, Happened};
use super::reads::MTUS;
use super::recent::Sent;
use super::state::Flow;
use crate::frame::Net;
use crate::wire::{Op, Packet, Position, Psn, Transport};

/// One packet, as the functions below need it.
pub(super) struct Context<'a> {
    pub(super) place: Place,
    pub(super) net: &'a Net,
    pub(super) packet: &'a Packet<'a>,
    pub(super) op: &'static Op,
    /// Where it was recorded.
    pub(super) point: u8,
    /// The same bytes came before.
    pub(super) echo: bool,
}

impl Context<'_> {
    pub(super) fn psn(&self) -> Psn {
        self.packet.bth.psn()
    }

    pub(super) fn event(&self, what: Happened, other: u64, value: u64) -> Event {
        event(what, self.place, self.psn(), other, value)
    }

    /// The sender sent it before something that has come already.
    pub(super) fn is_behind(&self, f: &Flow) -> bool {
        self.net.ip_id.is_some_and(|id| f.ip_id.is_behind(id))
    }

    pub(super) fn sent(&self, again: bool, late: bool) -> Sent {
        Sent {
            number: self.place.number,
            at: self.place.at,
            ip_id: self.net.ip_id.unwrap_or(0),
            again,
            late,
            opcode: self.op.byte,
            point: self.point,
        }
    }
}

pub(super) const fn event(what: Happened, place: Place, psn: Psn, other: u64, value: u64) -> Event {
    Event { what, packet: place.number, other, at: place.at, psn, value }
}

/// Learns the path MTU from a packet that is full by its position; whether it did.
pub(super) fn learn_mtu(f: &mut Flow, c: &Context<'_>) -> bool {
    if matches!(c.op.position, Position::First | Position::Middle)
        && let Ok(len) = u32::try_from(c.packet.payload_len)
        && len > f.mtu
        && MTUS.contains(&len)
    {
        f.mtu = len;
        return true;
    }
    false
}

/// Copied by the network, or sent again? Certain by the IP identification where the sender counts it; else
/// a copy comes at once, without cause and sooner than any answer could.
pub(super) fn is_copy(f: &Flow, c: &Context<'_>, before: Option<Sent>) -> bool {
    if f.transport == Transport::Uc {
        return true; // UC never sends again
    }
    let Some(before) = before else {
        // too long ago to be remembered
        return c.is_behind(f);
    };
    if let Some(id) = c.net.ip_id {
        if f.ip_id.varies() {
            return id == before.ip_id;
        }
        // too early to know whether it counts, but few senders use a constant other than zero
        if id != 0 && id == before.ip_id && f.packets <= 4 {
            return true;
        }
    }
    // a repeat goes the way of the first sending, unless the path has changed for good in between
    if before.point != c.point && f.recorded_at.alternates() {
        return true;
    }
    let passed = c.place.at.since(before.at);
    let floor = f.rtt.as_ref().and_then(|h| h.min()).and_then(|m| i64::try_from(m).ok());
    f.repairs().alarm.is_none() && f.rewinding.is_none() && passed < floor.unwrap_or(20_000).min(1_000_000)
}
