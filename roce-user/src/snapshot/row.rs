//! From the kernel's counters of a flow to its row.

use dissector::flow::row::{Ecn, Endpoint, FlowRow, IcrcCounts, Naks, OpcodeCounts};
use dissector::wire::opcode::{FLAGS, Flags, byte};
use dissector::wire::{Class, Transport, outer};
use roce_ebpf::abi::Flow;
use roce_ebpf::abi::counters::{NAK_RESERVED, NAK_RNR, NAK_UNKNOWN, NO_VLAN, OP_CNP, OP_OTHER, REQUESTS, RESPONSES};
use roce_ebpf::abi::key::NO_QP;
use roce_ebpf::sequence::Track;

use super::Clock;
use super::counts::FlowId;

/// Packets of a flow.
pub fn packets(flow: &Flow) -> u64 {
    flow.ops.iter().fold(0, |n, v| n.wrapping_add(*v))
}

/// Adds another CPU's (or life's) counts of the same flow.
pub fn merge(a: &mut Flow, b: &Flow) {
    if a.transport == 0 {
        a.transport = b.transport;
    }
    if b.transport == a.transport || b.transport == 0 {
        for (x, y) in a.ops.iter_mut().zip(b.ops) {
            *x = x.wrapping_add(y);
        }
    } else {
        // two CPUs met different transports first; what cannot be shown by name is still counted
        let (cnps, others) = b.ops.split_at(OP_CNP);
        let unnamed = cnps.iter().chain(others.get(1..).unwrap_or(&[])).fold(0u64, |n, v| n.wrapping_add(*v));
        if let (Some(c), Some(n)) = (a.ops.get_mut(OP_CNP), others.first()) {
            *c = c.wrapping_add(*n);
        }
        if let Some(o) = a.ops.get_mut(OP_OTHER) {
            *o = o.wrapping_add(unnamed);
        }
    }
    for (x, y) in a.naks.iter_mut().zip(b.naks).chain(a.ecn.iter_mut().zip(b.ecn)) {
        *x = x.wrapping_add(y);
    }
    for (x, mut y) in a.tracks.iter_mut().zip(b.tracks) {
        if x.next().is_none() {
            // one entry of a flow follows its PSNs
            std::mem::swap(x, &mut y);
        }
        x.repeats = x.repeats.wrapping_add(y.repeats);
        x.missing = x.missing.wrapping_add(y.missing);
        x.late = x.late.wrapping_add(y.late);
        x.restarts = x.restarts.wrapping_add(y.restarts);
    }
    a.bytes = a.bytes.wrapping_add(b.bytes);
    a.messages = a.messages.wrapping_add(b.messages);
    a.dscp_seen |= b.dscp_seen;
    a.first = a.first.min(b.first);
    a.mtu = a.mtu.max(b.mtu);
    if b.answered != 0 && (b.last > a.last || a.answered == 0) {
        a.answered = b.answered;
    }
    if b.last > a.last {
        a.last = b.last;
        (a.tos, a.src_port, a.vlan) = (b.tos, b.src_port, b.vlan);
        if b.other_opcode != 0 {
            a.other_opcode = b.other_opcode;
        }
    }
}

/// The row of a flow, without its other direction.
pub fn row(number: u32, id: FlowId, f: &Flow, clock: Clock) -> FlowRow {
    let base = f.transport.saturating_sub(1) << 5;
    let (mut requests, mut responses, mut acks) = (0, 0, 0);
    let mut opcodes = OpcodeCounts::default();
    for (n, op) in f.ops.iter().take(OP_CNP).zip(0u8..) {
        let opcode = base | op;
        opcodes.add(opcode, *n);
        let flags = FLAGS.get(usize::from(opcode)).copied().unwrap_or(Flags(0));
        if flags.has(Flags::REQUEST) {
            requests += n;
        } else if flags.class() == Class::Ack as u16 {
            acks += n;
        } else if flags.has(Flags::RESPONSE) {
            responses += n;
        }
    }
    let slot = |all: &[u64], n: usize| all.get(n).copied().unwrap_or(0);
    let cnps = slot(&f.ops, OP_CNP);
    opcodes.add(byte::Cnp, cnps);
    opcodes.other = slot(&f.ops, OP_OTHER);
    let negative: u64 = f.naks.iter().sum();
    let [requested, answered] = [REQUESTS, RESPONSES].map(|i| f.tracks.get(i));
    let both = |of: fn(&Track) -> u64| requested.map_or(0, of) + answered.map_or(0, of);
    let total = packets(f);
    FlowRow {
        id: number,
        src: Endpoint::Ip(id.src),
        dst: Endpoint::Ip(id.dst),
        dest_qp: id.dest_qp,
        src_qp: (id.src_qp != NO_QP).then_some(id.src_qp),
        pair: None,
        transport: if f.transport == 0 { Transport::Cnp.name() } else { Transport::of(base).name() },
        ip_version: Some(if id.src.is_ipv4() { 4 } else { 6 }),
        vlan: (f.vlan != NO_VLAN).then_some(f.vlan),
        dscp: Some(outer::dscp(f.tos)),
        udp_srcport: (!id.v1).then_some(f.src_port),
        packets: total,
        bytes: f.bytes,
        first: clock.wall(f.first).seconds(),
        last: clock.wall(f.last).seconds(),
        messages: f.messages,
        opcodes,
        requests,
        responses,
        acks: acks.saturating_sub(negative),
        naks: Naks {
            psn_sequence_error: slot(&f.naks, 0),
            invalid_request: slot(&f.naks, 1),
            remote_access_error: slot(&f.naks, 2),
            remote_operational_error: slot(&f.naks, 3),
            invalid_rd_request: slot(&f.naks, 4),
        },
        rnr_naks: slot(&f.naks, NAK_RNR),
        cnps,
        ecn: Ecn {
            not_ect: slot(&f.ecn, usize::from(outer::ECN_NOT_ECT)),
            ect0: slot(&f.ecn, usize::from(outer::ECN_ECT0)),
            ect1: slot(&f.ecn, usize::from(outer::ECN_ECT1)),
            ce: slot(&f.ecn, usize::from(outer::ECN_CE)),
        },
        // from one point of view the two cannot be told apart without looking at times
        retransmitted: both(|t| t.repeats),
        missing: both(|t| t.missing),
        reordered: both(|t| t.late),
        duplicates: 0,
        icrc: IcrcCounts { unchecked: total, ..IcrcCounts::default() },
        truncated: 0,
        full_payload: f.mtu.into(),
    }
}

const _: () = assert!(NAK_RESERVED < NAK_RNR && NAK_RNR < NAK_UNKNOWN && OP_CNP < OP_OTHER);
