//! Responses: data, ACKs, NAKs and RNR NAKs, and what the requester's flow learns from them.

use super::context::{Context, event, is_copy, learn_mtu};
use super::event::Happened;
use super::reads::packets_of;
use super::sequence::{self, Arrival};
use super::state::{Alarm, Cause, Flow};
use super::{PacketInfo, Repeat};
use crate::wire::aeth::Verdict as Said;
use crate::wire::{Kind, NakCode, Packet, Position, Psn, Role};

pub(super) fn response(f: &mut Flow, mut peer: Option<&mut Flow>, c: &Context<'_>, info: &mut PacketInfo) {
    let psn = c.psn();
    count(f, c.packet);
    if c.op.kind != Kind::Ack {
        data_response(f, peer.as_deref_mut(), c, info);
    }
    f.last_response = c.place.at;
    let Some(aeth) = c.packet.ext.aeth else {
        // cut before it says whether it is a NAK; at least everything before was taken
        if let Some(p) = peer {
            acknowledge(p, f, c, if c.op.kind == Kind::Ack { psn.plus(-1) } else { psn }, info);
        }
        return;
    };
    if c.op.kind == Kind::Ack {
        let standing = f.standing.get_or_insert_default();
        standing.take(aeth.syndrome().verdict(), psn, aeth.msn(), c.place.number);
    }
    // up to where this acknowledges
    let mut covered = psn;
    let mut alarm = None;
    match aeth.syndrome().verdict() {
        Said::Rnr(code) => {
            f.trouble.get_or_insert_default().rnr_zero += u64::from(code == 0);
            let other = peer.as_ref().and_then(|p| p.recent.as_ref()?.get(psn, Role::Request)).map_or(0, |s| s.number);
            f.note(c.event(Happened::Rnr, other, u64::from(code)));
            covered = psn.plus(-1);
            alarm = Some(Cause::RnrNak);
        }
        Said::Nak(code) => {
            let what = match code {
                NakCode::PsnSequenceError => {
                    alarm = Some(Cause::SequenceNak);
                    Happened::NakSequence
                }
                NakCode::InvalidRequest => Happened::NakInvalidRequest,
                NakCode::RemoteAccessError => Happened::NakRemoteAccess,
                NakCode::RemoteOperationalError => Happened::NakRemoteOperational,
                NakCode::InvalidRdRequest | NakCode::Reserved(_) => Happened::NakOther,
            };
            let mut other = 0;
            if let Some(p) = peer.as_deref_mut() {
                other = p.recent.as_ref().and_then(|r| r.get(psn, Role::Request)).map_or(0, |s| s.number);
                if what != Happened::NakSequence {
                    let refused = p.refused(psn);
                    if let Some(r) = refused {
                        other = if other == 0 { r.packet } else { other };
                        info.ack_of = Some(r.packet);
                    }
                    let t = f.trouble.get_or_insert_default();
                    t.refused = t.refused.or(refused);
                }
            }
            f.note(c.event(what, other, 0));
            covered = psn.plus(-1);
        }
        Said::Ack(_) | Said::Reserved(_) => {}
    }
    let Some(p) = peer else { return };
    match alarm {
        Some(cause) => {
            if p.req.started() && p.req.next().distance(covered) > 0 {
                settle_acked(p, covered);
            }
            let again = p.recent.as_ref().and_then(|r| r.get(psn, Role::Request));
            info.ack_of = again.map(|s| s.number);
            info.rtt = again.map(|s| c.place.at.since(s.at));
            if cause == Cause::RnrNak && p.trouble.as_ref().is_some_and(|t| t.attempts.psn == psn) {
                p.trouble.get_or_insert_default().attempts.rnr += 1;
            }
            // a second NAK before the sender could react is a copy of the first
            let told_before = p.repairs().alarm.is_some_and(|a| (a.cause, a.psn) == (cause, psn));
            // the packets behind one that met RNR draw sequence NAKs for the same PSN: the cause stays RNR
            let behind_rnr = cause == Cause::SequenceNak && p.repairs().rnr_psn == Some(psn);
            if cause == Cause::RnrNak {
                p.repairs_mut().rnr_psn = Some(psn);
            } else if !behind_rnr && !told_before {
                let late = again.is_some_and(|s| s.late);
                p.repairs_mut().late_naks += u64::from(late);
                p.repairs_mut().loss_naks += u64::from(!late);
            }
            if behind_rnr {
                p.repairs_mut().alarm =
                    Some(Alarm { cause: Cause::RnrNak, psn, at: c.place.at, packet: c.place.number });
            } else {
                p.repairs_mut().alarm = Some(Alarm { cause, psn, at: c.place.at, packet: c.place.number });
            }
            if cause == Cause::SequenceNak && !behind_rnr {
                p.repairs_mut().owed = Some((psn, c.place.number));
                p.repairs_mut().past_owed = 0;
            }
        }
        None => acknowledge(p, f, c, covered, info),
    }
}

/// What a response is counted as, whether or not it came before.
pub(super) fn count(f: &mut Flow, packet: &Packet<'_>) {
    let ack = packet.op.is_some_and(|o| o.kind == Kind::Ack);
    f.responses += u64::from(!ack);
    match packet.ext.aeth.map(|a| a.syndrome().verdict()) {
        // cut off, or positive
        None | Some(Said::Ack(_)) => f.acks += u64::from(ack),
        Some(Said::Rnr(_)) => f.rnr_naks += 1,
        Some(Said::Nak(code)) => match code {
            NakCode::PsnSequenceError => f.naks.psn_sequence_error += 1,
            NakCode::InvalidRequest => f.naks.invalid_request += 1,
            NakCode::RemoteAccessError => f.naks.remote_access_error += 1,
            NakCode::RemoteOperationalError => f.naks.remote_operational_error += 1,
            NakCode::InvalidRdRequest => f.naks.invalid_rd_request += 1,
            NakCode::Reserved(_) => {}
        },
        Some(Said::Reserved(_)) => {}
    }
}

fn settle_acked(p: &mut Flow, psn: Psn) {
    if p.acked.is_none_or(|a| psn.is_after(a)) {
        p.acked = Some(psn);
        if let Some(w) = p.flight.as_deref_mut() {
            w.covered(psn);
        }
    }
    if !p.req.holes().is_empty() {
        p.req.acknowledged(psn);
    }
    if let Some(r) = p.repairs.as_deref_mut() {
        r.owed = r.owed.filter(|(o, _)| o.is_after(psn));
        r.rnr_psn = r.rnr_psn.filter(|r| r.is_after(psn));
    }
}

/// The requester `p` learns that everything up to `psn` arrived; `f` is the flow that says so.
fn acknowledge(p: &mut Flow, f: &mut Flow, c: &Context<'_>, psn: Psn, info: &mut PacketInfo) {
    if !p.req.started() {
        return;
    }
    let beyond = psn.distance(p.req.next());
    if (0..sequence::FAR).contains(&beyond) {
        f.pair_fits.1 = f.pair_fits.1.saturating_add(1);
        // a request that the capture lacks
        let unseen = u64::from(beyond.unsigned_abs()) + 1;
        if p.acked.is_none_or(|a| psn.is_after(a)) {
            let t = p.trouble.get_or_insert_default();
            t.acked_unseen = t.acked_unseen.max(unseen);
            f.note(c.event(Happened::AckOfUnseen, 0, unseen));
        }
    } else if beyond.unsigned_abs() <= sequence::FAR.unsigned_abs() {
        f.pair_fits.0 = f.pair_fits.0.saturating_add(1);
    } else {
        f.pair_fits.1 = f.pair_fits.1.saturating_add(1);
        return;
    }
    let fresh = p.acked.is_none_or(|a| psn.is_after(a));
    settle_acked(p, psn);
    if fresh {
        if p.repairs().alarm.is_some_and(|a| psn.distance(a.psn) >= 0) {
            p.repairs_mut().alarm = None;
        }
        if let Some(t) = p.trouble.as_mut()
            && t.attempts.times > 0
            && psn.distance(t.attempts.psn) >= 0
        {
            if let Some(first) = t.attempts.at.first() {
                t.repair.add(u64::try_from(c.place.at.since(*first)).unwrap_or(0));
            }
            let done = std::mem::take(&mut t.attempts);
            if done.times > t.worst.times {
                t.worst = done;
            }
        }
    }
    if c.op.kind == Kind::ReadResponse {
        return; // matched with its READ elsewhere
    }
    let Some(sent) = p.recent.as_ref().and_then(|r| r.get(psn, Role::Request)) else { return };
    p.small_acked |= !p.message.open || p.message.psn != psn;
    let rtt = c.place.at.since(sent.at);
    if rtt < 0 {
        return;
    }
    info.ack_of = Some(sent.number);
    info.rtt = Some(rtt);
    // an answer to a request that was sent twice may belong to either
    if fresh && !sent.again {
        p.rtt.get_or_insert_default().add(rtt.unsigned_abs());
    }
}

fn data_response(f: &mut Flow, mut peer: Option<&mut Flow>, c: &Context<'_>, info: &mut PacketInfo) {
    let (psn, number) = (c.psn(), c.place.number);
    let learnt = learn_mtu(f, c);
    if let Some(p) = peer.as_deref_mut() {
        answer(p, f, c, learnt, info);
    }
    let arrival = f.rsp.classify(psn);
    let before = f.recent.get_or_insert_default().get(psn, Role::Response);
    let mut again = false;
    match arrival {
        Arrival::Repeat => {
            again = true;
            if is_copy(f, c, before) {
                f.duplicates += 1;
                info.repeat = Some(Repeat::Copied);
                f.note(c.event(Happened::Duplicate, before.map_or(0, |b| b.number), 0));
            } else {
                f.retransmitted += 1;
                f.recorded_at.unsure = f.recorded_at.unsure.saturating_add(u16::from(c.echo));
                // responses are sent again because their request was
                let cause = peer.as_ref().and_then(|p| p.rewinding).unwrap_or(Cause::Unknown);
                if let Some(n) = f.repairs_mut().causes.get_mut(cause as usize) {
                    *n += 1;
                }
                info.repeat = Some(Repeat::Sent(cause));
            }
        }
        Arrival::Late { .. } => {
            f.reordered += 1;
            info.reordered = true;
            // the answer to a request that was sent again, or to the rest of a READ that was
            let asked = peer.as_deref_mut().and_then(|p| p.reads.holding(psn)).is_some_and(|r| r.again);
            let ahead = c.net.ip_id.is_some_and(|id| f.ip_id.is_ahead(id));
            if (asked || ahead || c.place.at.since(f.last_response) > 1_000_000) && !c.is_behind(f) {
                f.repairs_mut().late_repairs += 1;
                info.repair = Some(peer.as_deref().and_then(|p| p.rewinding).unwrap_or(Cause::Unknown));
            }
            f.note(c.event(Happened::Late, 0, 0));
        }
        _ => {}
    }
    if let Arrival::Gap(n) = arrival {
        let start = f.rsp.next();
        f.rsp.jump(psn);
        let due = gap_in_responses(f, peer.as_deref(), c, start, n);
        info.gap = due;
        if due > 0 {
            f.note(event(Happened::Gap, c.place, start, 0, u64::from(due)));
        }
    } else {
        f.rsp.take(psn, 1, arrival, number, false);
    }
    if !again {
        f.messages += u64::from(c.op.kind == Kind::ReadResponse && c.op.position.ends());
        f.goodput += c.packet.payload_len as u64;
        // a late one is not where the flow stands
        if !matches!(arrival, Arrival::Late { .. }) {
            f.responding = c.op.kind == Kind::ReadResponse && !c.op.position.ends();
        }
    }
    if let Some(recent) = f.recent.as_mut() {
        recent.put(psn, Role::Response, c.sent(again, info.reordered));
    }
}

/// Adds the holes of a gap among responses; returns in how many PSNs of it a packet was due. The requests
/// say it; where they are not in the capture, the positions within READ responses say the least that is
/// certain.
fn gap_in_responses(f: &mut Flow, peer: Option<&Flow>, c: &Context<'_>, start: Psn, n: u32) -> u32 {
    let number = c.place.number;
    if let Some(p) = peer
        && !p.reads.is_empty()
    {
        let (mut due, mut at) = (0, start);
        // where requests are not in the capture, their responses may still come
        let unknown = !p.req.knows(start, n);
        for (psn, len) in p.reads.due_within(start, n) {
            if unknown {
                f.rsp.passed_over(at, psn.distance(at).unsigned_abs(), false, number);
            }
            f.rsp.passed_over(psn, len, true, number);
            due += len;
            at = psn.plus(i32::try_from(len).unwrap_or(0));
        }
        if unknown {
            f.rsp.passed_over(at, c.psn().distance(at).unsigned_abs(), false, number);
        }
        return due;
    }
    let inside = c.op.kind == Kind::ReadResponse && !c.op.position.starts();
    match (f.responding, inside) {
        // within one response
        (true, true) => {
            f.rsp.passed_over(start, n, true, number);
            n
        }
        // the last packet of the response before
        (true, false) => {
            f.rsp.passed_over(start, 1, true, number);
            f.rsp.passed_over(start.next(), n - 1, false, number);
            1
        }
        // the first packet of this response
        (false, true) => {
            f.rsp.passed_over(start, n - 1, false, number);
            f.rsp.passed_over(c.psn().plus(-1), 1, true, number);
            1
        }
        (false, false) => {
            f.rsp.passed_over(start, n, false, number);
            0
        }
    }
}

/// The path MTU is another than the distances between READs made it look: what they seemed to take beyond their
/// own length was passed over.
fn unguess(p: &mut Flow, number: u64) {
    let mtu = p.mtu;
    for r in p.reads.iter_mut().filter(|r| !r.done && r.span > packets_of(r.len, mtu)) {
        let own = packets_of(r.len, mtu);
        p.req.passed_over(r.psn.plus(i32::try_from(own).unwrap_or(1)), r.span - own, true, number);
        r.span = own;
    }
}

/// Matches a data-bearing response with the request in `p` that it answers.
fn answer(p: &mut Flow, f: &Flow, c: &Context<'_>, learnt: bool, info: &mut PacketInfo) {
    let psn = c.psn();
    if f.mtu != 0 && (learnt || c.op.position == Position::First) {
        // a full packet of a response: now every READ's length in packets is known, and where the requester sent no
        // data of its own, what the distance between two READs seemed to say no longer counts
        if p.mtu != 0 && p.mtu != f.mtu && p.goodput == 0 {
            p.mtu = f.mtu;
            unguess(p, c.place.number);
        }
        let mut end = None;
        for r in p.reads.iter_mut().filter(|r| r.span == 0) {
            r.span = packets_of(r.len, f.mtu);
            end = Some(r.psn.plus(i32::try_from(r.span).unwrap_or(1)));
        }
        if let Some(end) = end {
            p.req.extend_to(end);
            p.cursor = end;
        }
    }
    let ends = c.op.position.ends();
    let at = c.place.at;
    let mut end = None;
    let Some(r) = p.reads.holding(psn) else { return };
    info.ack_of = Some(r.packet);
    let passed = at.since(r.at);
    info.rtt = (passed >= 0).then_some(passed);
    if !ends {
        return;
    }
    if r.span == 0 {
        r.span = psn.distance(r.psn).unsigned_abs() + 1;
        end = Some(psn.next());
    }
    // a response with a hole is asked for again, and takes until that is filled
    let whole = psn == r.psn || f.rsp.knows(r.psn, psn.distance(r.psn).unsigned_abs());
    let sample = (whole && !r.timed && passed >= 0).then_some(passed.unsigned_abs());
    r.done = true;
    r.timed |= whole;
    if let Some(end) = end {
        p.req.extend_to(end);
    }
    if let Some(ns) = sample {
        p.read_latency.get_or_insert_default().add(ns);
    }
}
