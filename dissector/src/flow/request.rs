//! Requests: where they stand in the PSNs of their sender, what is sent again and why, messages, READs.

use super::context::{Context, event, is_copy, learn_mtu};
use super::event::Happened;
use super::flight::Request;
use super::reads::{Read, packets_of, span_from_jump};
use super::recent::Sent;
use super::sequence::{self, Arrival};
use super::state::{self, Cause, Flow, Target};
use super::{PacketInfo, Repeat};
use crate::wire::opcode::Payload;
use crate::wire::{Kind, Position, Psn, Reth, Role};

pub(super) fn request(f: &mut Flow, peer: Option<&mut Flow>, c: &Context<'_>, info: &mut PacketInfo) {
    if f.requests == 0 {
        f.asked_after = u32::try_from(c.place.at.since(f.first) / 1000).unwrap_or(u32::MAX);
    }
    f.requests += 1;
    f.ack_reqs = f.ack_reqs.saturating_add(u32::from(c.packet.bth.ack_req()));
    let (psn, at, number) = (c.psn(), c.place.at, c.place.number);
    let answered = matches!(c.op.kind, Kind::ReadRequest | Kind::Atomic | Kind::Flush | Kind::AtomicWrite);
    if !f.ordered() {
        f.messages += u64::from(c.op.position.ends());
        f.goodput += c.packet.payload_len as u64;
        f.last_request = (at, number);
        return;
    }
    learn_mtu(f, c);
    let peers_mtu = peer.as_ref().map_or(0, |p| p.path_mtu());
    let mtu = if f.path_mtu() != 0 { f.path_mtu() } else { peers_mtu };
    settle_open_read(f, psn, mtu);

    let mut span = 1;
    if c.op.kind == Kind::ReadRequest {
        let len = c.packet.ext.reth.map_or(0, Reth::dma_len);
        span = if mtu != 0 || len <= 256 { packets_of(len, mtu.max(256)) } else { 0 };
        if let Some(r) = f.reads.starting_at(psn)
            && r.len == len
            && r.span != 0
        {
            span = r.span;
        }
    }
    let mut arrival = f.req.classify(psn);
    let mut restart = false;
    if arrival == Arrival::Repeat
        && c.op.kind == Kind::ReadRequest
        && f.reads.starting_at(psn).is_none()
        && f.reads.holding(psn).is_some()
    {
        // an interrupted READ goes on where its response ended: no PSN comes twice, and nothing is late
        restart = true;
    }
    let recent = f.recent.get_or_insert_default();
    let before = recent.get(psn, Role::Request);
    let mut again = false;
    match arrival {
        Arrival::Repeat if restart => {
            f.repairs_mut().read_restarts += 1;
            again = true;
            let cause = why_again(f, peer.as_deref(), c);
            info.repair = Some(cause);
            note_again(f, c, cause, before);
        }
        Arrival::Repeat => {
            again = true;
            if is_copy(f, c, before) {
                f.duplicates += 1;
                info.repeat = Some(Repeat::Copied);
                f.note(c.event(Happened::Duplicate, before.map_or(0, |b| b.number), 0));
                // a copy says nothing about the sender
                f.last_request = (at, number);
                return;
            }
            f.retransmitted += 1;
            let unsure = c.echo || before.is_some_and(|b| b.point != c.point);
            f.recorded_at.unsure = f.recorded_at.unsure.saturating_add(u16::from(unsure));
            if c.is_behind(f) && before.is_some() {
                overtaken(f, c, before);
                info.repeat = Some(Repeat::Sent(f.rewinding.unwrap_or(Cause::Unknown)));
                return;
            }
            let cause = why_again(f, peer.as_deref(), c);
            info.repeat = Some(Repeat::Sent(cause));
            f.repairs_mut().count(cause);
            note_again(f, c, cause, before);
        }
        Arrival::Gap(n) => {
            info.gap = n;
            let acked = f.acked;
            let start = f.req.next();
            f.note(event(Happened::Gap, c.place, start, 0, u64::from(n)));
            f.rewinding = None;
            f.req.take(psn, span, arrival, number, true);
            if let Some(a) = acked {
                f.req.acknowledged(a);
            }
            arrival = Arrival::Next;
            // taken already
            after_request(f, c, span, false, answered, false);
            finish_request(f, c, arrival);
            return;
        }
        Arrival::Late { .. } => {
            f.reordered += 1;
            info.reordered = true;
            f.note(c.event(Happened::Late, 0, 0));
            info.repair = repairs(f, peer.is_some(), c, arrival);
        }
        Arrival::First | Arrival::Next => {
            f.rewinding = None;
        }
        Arrival::Far => {
            f.rewinding = None;
            f.note(c.event(Happened::Restart, 0, 0));
        }
    }
    f.req.take(psn, span, arrival, number, true);
    after_request(f, c, span, again, answered, info.reordered);
    if !again {
        finish_request(f, c, arrival);
    }
    if let Some(p) = peer
        && p.cm_mtu == 0
    {
        p.cm_mtu = f.cm_mtu;
    }
}

/// The first sending of a packet whose repetition has come already: what looked like a loss was a delay.
fn overtaken(f: &mut Flow, c: &Context<'_>, before: Option<Sent>) {
    f.repairs_mut().overtaken += 1;
    if f.repairs().loss_naks > 0 {
        f.repairs_mut().loss_naks -= 1;
        f.repairs_mut().late_naks += 1;
    }
    f.repairs_mut().late_repairs = f.repairs().late_repairs.saturating_sub(1);
    let cause = f.rewinding.unwrap_or(Cause::Unknown);
    if let Some(n) = f.repairs_mut().causes.get_mut(cause as usize) {
        *n += 1;
    }
    f.note(c.event(Happened::Late, before.map_or(0, |b| b.number), 0));
}

/// A late request may be no overtaken one but the repair of a loss before the capture point: it answers a NAK,
/// or it comes after a silence in which anything that was only delayed would have come.
fn repairs(f: &mut Flow, joined: bool, c: &Context<'_>, arrival: Arrival) -> Option<Cause> {
    let psn = c.psn();
    if c.is_behind(f) {
        return None;
    }
    // under way when the capture began: why it is sent again was said before that
    let before = f.from_start && (arrival == Arrival::Late { due: false } || psn.distance(f.req.low()) < 0);
    if let Some(cause) = f.rewinding.filter(|_| psn == f.cursor) {
        let r = f.repairs_mut();
        *(if before { &mut r.early_repairs } else { &mut r.late_repairs }) += 1;
        return Some(cause);
    }
    let cause = match f.repairs.as_deref_mut().and_then(|r| r.alarm.take_if(|a| psn.distance(a.psn) >= 0)) {
        Some(alarm) => alarm.cause,
        None if before => {
            f.repairs_mut().early_repairs += 1;
            f.rewinding = Some(Cause::Unknown);
            return f.rewinding;
        }
        None => {
            let floor = f.rtt.as_ref().and_then(|h| h.percentile(90.0)).map_or(0, |r| r.saturating_mul(4));
            let idle = c.place.at.since(f.last_request.0);
            let ahead = c.net.ip_id.is_some_and(|id| f.ip_id.is_ahead(id));
            if !ahead && idle <= i64::try_from(floor).unwrap_or(i64::MAX).max(1_000_000) {
                return None;
            }
            if joined { Cause::Timeout } else { Cause::Unknown }
        }
    };
    f.repairs_mut().late_repairs += 1;
    f.rewinding = Some(cause);
    count_rewind(f, cause);
    Some(cause)
}

/// A READ of unknown span was the latest request: where the next one lies says how long it was.
fn settle_open_read(f: &mut Flow, psn: Psn, mtu: u32) {
    let Some(r) = f.reads.latest() else { return };
    if r.span != 0 {
        return;
    }
    let d = psn.distance(r.psn);
    if mtu != 0 {
        r.span = packets_of(r.len, mtu);
    } else if d > 0 && d.unsigned_abs() <= packets_of(r.len, 256).max(sequence::FAR.unsigned_abs()) {
        let (span, learnt) = span_from_jump(r.len, d.unsigned_abs());
        r.span = span;
        if let Some(m) = learnt {
            f.mtu = m;
        }
    } else {
        return;
    }
    let end = r.psn.plus(i32::try_from(r.span).unwrap_or(1));
    f.req.extend_to(end);
}

fn why_again(f: &mut Flow, peer: Option<&Flow>, c: &Context<'_>) -> Cause {
    let psn = c.psn();
    let last = f.repairs_mut().rewound.replace((psn, c.place.at));
    if f.rewinding.is_some() && psn == f.cursor {
        f.repairs_mut().rewound = last.map(|(start, _)| (start, c.place.at));
        return f.rewinding.unwrap_or(Cause::Unknown);
    }
    let alarm = f.repairs_mut().alarm.take_if(|a| psn.distance(a.psn) >= 0 || a.psn.distance(psn) < 64);
    let cause = if let Some(a) = alarm {
        a.cause
    } else {
        // still the same going back, with its packets out of order
        if let (Some((start, at)), Some(cause)) = (last, f.rewinding)
            && psn.distance(start) > 0
            && c.place.at.since(at) < 1_000_000
        {
            f.repairs_mut().rewound = Some((start, c.place.at));
            return cause;
        }
        if peer.is_some() { Cause::Timeout } else { Cause::Unknown }
    };
    count_rewind(f, cause);
    let acked = f.acked.is_some_and(|a| psn.distance(a) <= 0);
    if acked && matches!(cause, Cause::Timeout | Cause::Unknown) {
        // an answered READ that is asked for again: its data was lost on the way back
        if c.op.kind == Kind::ReadRequest {
            f.repairs_mut().response_losses += 1;
        } else {
            f.repairs_mut().rewinds_acked += 1;
        }
    }
    f.rewinding = Some(cause);
    cause
}

pub(super) fn count_rewind(f: &mut Flow, cause: Cause) {
    if let Some(n) = f.repairs_mut().rewinds.get_mut(cause as usize) {
        *n += 1;
    }
}

fn note_again(f: &mut Flow, c: &Context<'_>, cause: Cause, before: Option<Sent>) {
    let psn = c.psn();
    let other = before.map_or(0, |b| b.number);
    let passed = before.map_or(0, |b| u64::try_from(c.place.at.since(b.at)).unwrap_or(0));
    let what = match cause {
        Cause::SequenceNak => Happened::AgainAfterNak,
        Cause::RnrNak => Happened::AgainAfterRnr,
        Cause::Timeout | Cause::Unknown => Happened::AgainAfterSilence,
    };
    let acked = c.op.kind != Kind::ReadRequest && f.acked.is_some_and(|a| psn.distance(a) <= 0);
    if acked {
        f.repairs_mut().again_acked += 1;
    }
    f.note(c.event(what, other, passed));
    if acked {
        f.note(c.event(Happened::AgainThoughAcked, other, passed));
    }
    if let Some((owed, _)) = f.repairs().owed
        && psn.distance(owed) > 0
    {
        f.repairs_mut().past_owed += 1;
    }
    let place = c.place;
    let t = f.trouble.get_or_insert_default();
    let a = &mut t.attempts;
    if a.times == 0 || psn.distance(a.psn) < 0 {
        if a.times > t.worst.times {
            t.worst = std::mem::take(a);
        }
        *a = state::Attempts { psn, times: 1, ..state::Attempts::default() };
        if let Some(b) = before {
            a.at.push(b.at);
            a.packets.push(b.number);
        }
    }
    if psn == a.psn {
        a.times = a.times.saturating_add(1);
        a.last = place.at;
        if a.at.len() < 8 {
            a.at.push(place.at);
            a.packets.push(place.number);
        }
    }
}

/// What every request leaves behind, repeat or not.
fn after_request(f: &mut Flow, c: &Context<'_>, span: u32, again: bool, answered: bool, late: bool) {
    let (psn, at, number) = (c.psn(), c.place.at, c.place.number);
    f.last_request = (at, number);
    f.cursor = psn.plus(i32::try_from(span.max(1)).unwrap_or(1));
    let cursor = f.cursor;
    if let Some(r) = f.repairs.as_deref_mut() {
        r.owed = r.owed.filter(|(o, _)| !(o.distance(psn) >= 0 && o.distance(cursor) < 0));
    }
    if let Some(recent) = f.recent.as_mut() {
        recent.put(psn, Role::Request, c.sent(again, late));
    }
    if !again && f.reliable() {
        let asked = match c.op.kind {
            Kind::ReadRequest => c.packet.ext.reth.map_or(0, |r| u64::from(r.dma_len())),
            Kind::Atomic => 8,
            _ => c.packet.payload_len as u64,
        };
        let (starts, ends) = (c.op.position.starts(), c.op.position.ends());
        let last = f.cursor.plus(-1);
        f.flight.get_or_insert_default().sent(Request { first: psn, last, bytes: asked, starts, ends, packet: number });
    }
    if answered {
        let len = c.packet.ext.reth.filter(|_| c.op.kind == Kind::ReadRequest).map_or(0, Reth::dma_len);
        match f.reads.starting_at(psn) {
            Some(r) if again => {
                r.again = true;
                r.done = false;
            }
            _ => f.reads.add(Read { psn, span, len, at, packet: number, done: false, again, timed: false }),
        }
        let open = u32::try_from(f.reads.open()).unwrap_or(u32::MAX);
        if open > f.read_depth.0 {
            f.read_depth = (open, u32::try_from(number).unwrap_or(u32::MAX));
        }
    }
    let target = match (c.packet.ext.reth, c.packet.ext.atomic) {
        (Some(r), _) => Some((r.va(), r.r_key(), r.dma_len())),
        (_, Some(a)) => Some((a.va(), a.r_key(), 8)),
        _ => None,
    };
    if let Some((va, r_key, len)) = target {
        let t = Target { psn, packet: number, va, r_key, len, opcode: c.op.byte };
        f.targets.get_or_insert_default().add(t);
    }
}

/// What only first arrivals count for: messages and their bytes.
fn finish_request(f: &mut Flow, c: &Context<'_>, arrival: Arrival) {
    f.messages += u64::from(c.op.position.ends());
    if c.op.payload == Payload::Data {
        f.goodput += c.packet.payload_len as u64;
    }
    if matches!(arrival, Arrival::Late { .. }) {
        return;
    }
    let m = &mut f.message;
    let payload = c.packet.payload_len as u64;
    match c.op.position {
        Position::First => {
            *m = state::Message {
                open: true,
                packet: c.place.number,
                want: c.packet.ext.reth.map_or(0, Reth::dma_len),
                got: payload,
                latest: c.place.number,
                psn: c.psn(),
            };
        }
        Position::Middle | Position::Last if m.open => {
            m.got += payload;
            m.latest = c.place.number;
            m.psn = c.psn();
            m.open = c.op.position != Position::Last;
        }
        _ => m.open = false,
    }
}
