//! Who is who: the flow that a packet belongs to, queue pair numbers that are used again, flows that make room,
//! and which two flows are one queue pair.

use super::key::{Addresses, Key};
use super::pairing;
use super::reads::packets_of;
use super::row::Endpoint;
use super::sequence::Arrival;
use super::state::{Flow, PairedBy};
use super::{Analyzer, IDLE, LATEST_BITS, Place, UNDER_WAY};
use crate::frame::{Frame, Net};
use crate::wire::aeth::Verdict as Said;
use crate::wire::{Kind, NakCode, Op, Packet, Qpn, Role, cm};

impl Analyzer {
    /// The flow that a key belongs to.
    #[inline]
    pub(super) fn find(&mut self, key: &Key) -> Option<u32> {
        let latest = self.latest.get_mut(key.slot(LATEST_BITS))?;
        // a flow that has its key no longer is another one, and what comes into the index comes here too
        if self.flows.get(*latest as usize).is_some_and(|f| f.key == *key) {
            return Some(*latest);
        }
        let found = *self.index.get(key)?;
        *latest = found;
        Some(found)
    }

    pub(super) fn enter(&mut self, key: Key, id: u32) {
        self.index.insert(key, id);
        if let Some(latest) = self.latest.get_mut(key.slot(LATEST_BITS)) {
            *latest = id;
        }
    }

    pub(super) fn flow_of(
        &mut self,
        key: Key,
        net: &Net,
        place: Place,
        packet: &Packet<'_>,
        believe: bool,
    ) -> Option<u32> {
        let found = self.find(&key);
        let reuse_of = found;
        if let Some(i) = found {
            let f = self.flows.get(i as usize)?;
            let anew = f.retired || believe && begins_anew(f, place, packet);
            if !anew {
                return Some(i);
            }
            self.retire(i);
        }
        if self.index.len() >= self.limit && reuse_of.is_none() {
            return self.take_idle(key, net, place);
        }
        if self.flows.len() >= self.limit.saturating_mul(2) {
            return found; // reused numbers without end
        }
        let id = u32::try_from(self.flows.len()).ok()?;
        let mut f = Flow::new(id, key, net.src, net.dst, place.at, place.number);
        f.reuse_of = reuse_of;
        f.from_start = place.at.since(self.quality.begin()) < UNDER_WAY;
        self.flows.push(Box::new(f));
        self.enter(key, id);
        self.introduce(id);
        Some(id)
    }

    /// What communication management tells: a queue pair that it hands out is a new one, whoever had its
    /// number before.
    pub(super) fn manage(&mut self, place: Place, frame: &Frame<'_>, packet: &Packet<'_>, addresses: Addresses) {
        let Some(id) = self.connections.push(place.number, place.at, frame, packet) else { return };
        let Some(c) = self.connections.get(id) else { return };
        let Some(seen) = c.messages.iter().rfind(|m| m.number == place.number) else { return };
        if seen.repeat || !matches!(seen.kind, cm::Kind::Req | cm::Kind::Rep) {
            return;
        }
        let Some(qpn) = c.end(seen.from).qpn else { return };
        let key = Key { addresses: addresses.reversed(), dest_qp: qpn.get(), src_qp: None };
        if let Some(old) = self.index.get(&key).copied() {
            self.retire(old);
        }
    }

    /// A flow and its other half have ended; the next packet with their keys begins new ones.
    pub(super) fn retire(&mut self, id: u32) {
        let Some(f) = self.flows.get_mut(id as usize) else { return };
        f.retired = true;
        let pair = f.pair;
        if let Some(p) = pair.and_then(|p| self.flows.get_mut(p as usize)) {
            p.retired = true;
        }
    }

    /// Gives a new flow what communication management said about its queue pair.
    pub(super) fn introduce(&mut self, id: u32) {
        let Some(f) = self.flows.get_mut(id as usize) else { return };
        if f.key.src_qp.is_some() {
            return;
        }
        let Some((c, side)) = self.connections.find(f.dst, Qpn::new(f.key.dest_qp)) else { return };
        let far = c.end(side.other());
        if c.datagram || canonical(far.address) != canonical(f.src) {
            return;
        }
        f.connection = Some(c.id);
        f.cm_mtu = c.path_mtu.unwrap_or(0);
        let Some(qpn) = far.qpn else { return };
        f.src_qp = Some(qpn.get());
        let reverse = Key { addresses: f.key.addresses.reversed(), dest_qp: qpn.get(), src_qp: None };
        if let Some(r) = self.index.get(&reverse)
            && self.flows.get(*r as usize).is_some_and(|r| r.pair.is_none())
        {
            pairing::link(&mut self.flows, id, *r, PairedBy::Cm);
        }
    }

    /// Lets a silent flow go and puts the new one in its place.
    pub(super) fn take_idle(&mut self, key: Key, net: &Net, place: Place) -> Option<u32> {
        // a few at a time, so that a flood of new numbers costs little
        for _ in 0..8 {
            let n = self.clock_hand;
            self.clock_hand = if n + 1 < self.flows.len() { n + 1 } else { 0 };
            let id = u32::try_from(n).ok()?;
            let Some(f) = self.flows.get_mut(n) else { continue };
            if place.at.since(f.last) <= IDLE || self.index.get(&f.key) != Some(&id) {
                continue;
            }
            let e = &mut self.expired;
            e.flows += 1;
            e.packets += f.packets;
            e.bytes += f.bytes;
            e.repeats += f.retransmitted + f.duplicates;
            e.missing += f.missing();
            e.naks += f.naks.total() + f.rnr_naks;
            let old = std::mem::replace(&mut **f, Flow::new(id, key, net.src, net.dst, place.at, place.number));
            self.index.remove(&old.key);
            self.enter(key, id);
            if let Some(p) = old.pair.and_then(|p| self.flows.get_mut(p as usize)) {
                p.pair = None;
                p.paired_by = None;
            }
            return Some(id);
        }
        None
    }

    /// The other direction of flow `i`, if this packet proves it.
    pub(super) fn join(&mut self, i: u32, place: Place, packet: &Packet<'_>, op: &Op) -> Option<u32> {
        let f = self.flows.get(i as usize)?;
        let psn = packet.bth.psn();
        // a sequence NAK names what has not come; the one before it has
        let lacking = packet.ext.aeth.is_some_and(|a| a.syndrome().verdict() == Said::Nak(NakCode::PsnSequenceError));
        let answered = if lacking { psn.plus(-1) } else { psn };
        let (found, by) = if let Some(src_qp) = f.key.src_qp {
            // datagrams: look once, when the flow begins
            if f.packets > 1 {
                return None;
            }
            let reverse = Key { addresses: f.key.addresses.reversed(), dest_qp: src_qp, src_qp: Some(f.key.dest_qp) };
            (*self.index.get(&reverse)?, PairedBy::SourceQp)
        } else {
            if op.role() != Role::Response || op.kind == Kind::ReadResponse && !op.position.starts() {
                return None;
            }
            let there = f.key.addresses.reversed();
            (self.waiting.who_expects(there, answered)?, PairedBy::Psn)
        };
        let c = self.flows.get(found as usize)?;
        if found == i || c.pair.is_some() || c.key.addresses != f.key.addresses.reversed() {
            return None;
        }
        if by == PairedBy::Psn {
            let sent = c.recent.as_ref()?.get(answered, Role::Request)?;
            if place.at.since(sent.at) > IDLE || self.index.get(&c.key) != Some(&found) {
                return None;
            }
        }
        pairing::link(&mut self.flows, i, found, by);
        Some(found)
    }
}

/// An IPv4 address may come as a mapped GID.
fn canonical(e: Endpoint) -> Endpoint {
    match e {
        Endpoint::Ip(a) => Endpoint::Ip(a.to_canonical()),
        Endpoint::Lid(_) => e,
    }
}

/// Whether a packet belongs to a new queue pair that got the number of an old one.
fn begins_anew(f: &Flow, place: Place, packet: &Packet<'_>) -> bool {
    let Some(op) = packet.op else { return false };
    if op.role() != Role::Request || !op.position.starts() || !f.ordered() || !f.req.started() {
        return false;
    }
    if op.transport != f.transport {
        return false;
    }
    let psn = packet.bth.psn();
    // behind a READ of unknown length anything may follow
    if let Some(r) = f.reads.last()
        && r.span == 0
        && (0..=i64::from(packets_of(r.len, 256))).contains(&i64::from(psn.distance(r.psn)))
    {
        return false;
    }
    let idle = place.at.since(f.last_request.0);
    match f.req.classify(psn) {
        Arrival::Far => true,
        Arrival::Gap(n) => n > 4096 && idle > 1_000_000_000,
        // from its very first PSN again, long after all of that was acknowledged
        Arrival::Repeat => {
            psn == f.req.low()
                && f.req.next().distance(psn) > 64
                && idle > 100_000_000
                && f.acked.is_some_and(|a| a.next() == f.req.next())
        }
        _ => false,
    }
}
