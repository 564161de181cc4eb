//! Counters: per flow and CPU, and per CPU over everything.

use aya_ebpf::helpers::generated::{bpf_jiffies64, bpf_ktime_get_coarse_ns};
use aya_log_ebpf::warn;
use dissector::wire::opcode::{Class, FLAGS, Flags};
use dissector::wire::outer::{dscp, ecn};
use dissector::wire::{Bth, Header, Qpn, Transport, opcode};
use roce_ebpf::abi::counters::{ANSWERED, NAK_RESERVED, NAK_RNR, NAK_UNKNOWN, OP_CNP, OP_OTHER, REQUESTS, RESPONSES};
use roce_ebpf::abi::event::kind;
use roce_ebpf::abi::{Flow, PerCpu, Totals};
use roce_ebpf::sequence::{Rule, Step};

use super::ctx::Ctx;
use super::roce::Parsed;
use super::{ROCE_EVENTS, ROCE_SAMPLE_EVERY, find, sample};

/// Smallest path MTU of the standard: bounds how many PSNs a READ takes while the MTU is not known.
const MIN_MTU: u32 = 256;

/// Counts a packet that is not RoCE; `end` is where it ends by its own lengths, `usize::MAX` if that is not known.
#[inline(always)]
pub fn other<C: Ctx>(ctx: &C, totals: &mut Totals, end: usize) {
    totals.other_packets += 1;
    totals.other_bytes += u64::from(ctx.wire_len_of(end));
}

/// Counts a RoCE packet, and reports it if it is of a kind that was asked for.
#[inline(always)]
pub fn roce<C: Ctx>(ctx: &C, mine: &mut PerCpu, p: &mut Parsed) {
    let found = find::flow(ctx, p, mine);
    let now = now(mine);
    let totals = &mut mine.totals[p.way()];
    totals.opcodes[p.opcode as usize] += 1;
    totals.roce_bytes += u64::from(p.wire_len);
    let reports = ROCE_EVENTS.load() != 0 || ROCE_SAMPLE_EVERY.load() != 0;
    match found {
        Some(flow) => {
            if account(ctx, flow, p, now)
                && let Some(keeper) = find::keeper(flow.home)
            {
                follow(ctx, keeper, p);
            }
        }
        None => {
            totals.overflow_packets += 1;
            totals.overflow_bytes += u64::from(p.wire_len);
            if totals.overflow_packets == 1 {
                warn!(
                    ctx,
                    "the flow table is full: from here on packets of new flows on this CPU count in the totals only"
                );
            }
        }
    }
    if reports {
        if Qpn::new(p.dest_qp).is_management() {
            p.note(kind::MAD);
        }
        sample::report(ctx, totals, p);
    }
}

/// The coarse clock: the precise one costs 25 ns more. It stands still from one tick to the next, and the kernel makes a
/// plain load of the number of ticks: the clock itself is asked once a tick, for a call costs as much as all the counting
/// on a CPU whose returns are made safe.
#[inline(always)]
pub fn now(mine: &mut PerCpu) -> u64 {
    // SAFETY: no arguments, no effects.
    let tick = unsafe { bpf_jiffies64() };
    if mine.tick != tick {
        mine.tick = tick;
        // SAFETY: no arguments, no effects.
        mine.now = unsafe { bpf_ktime_get_coarse_ns() };
    }
    mine.now
}

/// Counts a packet in the entry of its flow and CPU; whether its PSN is to be followed.
#[inline(always)]
pub fn account<C: Ctx>(ctx: &C, flow: &mut Flow, p: &mut Parsed, now: u64) -> bool {
    if flow.first == 0 {
        flow.first = now;
        p.note(kind::NEW_FLOW);
    }
    flow.last = now;
    flow.bytes += u64::from(p.wire_len);
    flow.ecn[ecn(p.tos) as usize] += 1;
    flow.tos = p.tos;
    flow.dscp_seen |= 1 << (dscp(p.tos) & 63);
    if ecn(p.tos) == dissector::wire::outer::ECN_CE {
        p.note(kind::CE);
    }
    flow.src_port = p.src_port;
    flow.vlan = p.vlan;
    let slot = slot(flow, p);
    flow.ops[slot] += 1;
    if slot >= OP_CNP {
        return false;
    }
    if p.flags.class() == Class::Ack as u16 {
        acknowledge(ctx, flow, p);
    }
    true
}

/// Follows the PSNs in the entry that keeps them for all CPUs. There is no lock: a flow is on one CPU at a time but for
/// the moment in which it moves, and two packets that are followed at once cost a wrong repeat or gap at most.
#[inline(always)]
pub fn follow<C: Ctx>(ctx: &C, flow: &mut Flow, p: &mut Parsed) {
    if p.flags.has(Flags::RESPONSE) {
        flow.answered = p.psn | ANSWERED;
    }
    if p.flags.class() == Class::Ack as u16 {
        return;
    }
    let again = sequence(ctx, flow, p);
    let message = p.flags.has(Flags::REQUEST) || p.flags.class() == Class::ReadResponse as u16;
    if p.flags.has(Flags::ENDS) && message && !again {
        flow.messages += 1;
    }
}

/// Slot of `ops`; the first packet that is no CNP fixes the flow's transport.
#[inline(always)]
fn slot(flow: &mut Flow, p: &mut Parsed) -> usize {
    let transport = (p.opcode >> 5) + 1;
    if flow.transport == transport {
        return (p.opcode & 31) as usize;
    }
    if p.opcode == opcode::byte::Cnp {
        p.note(kind::CNP);
        return OP_CNP;
    }
    if flow.transport == 0 {
        flow.transport = transport;
        return (p.opcode & 31) as usize;
    }
    flow.other_opcode = p.opcode;
    OP_OTHER
}

#[inline(always)]
fn acknowledge<C: Ctx>(ctx: &C, flow: &mut Flow, p: &mut Parsed) {
    let Some(syndrome) = p.syndrome(ctx) else { return };
    let value = (syndrome & 0x1f) as usize;
    let slot = match (syndrome >> 5) & 3 {
        0 => return,
        1 => {
            p.note(kind::RNR);
            NAK_RNR
        }
        2 => NAK_UNKNOWN,
        _ => {
            p.note(kind::NAK);
            if value < NAK_RESERVED { value } else { NAK_RESERVED }
        }
    };
    flow.naks[slot & 7] += 1;
}

/// PSN bookkeeping of the connected transports; whether the packet came before.
#[inline(always)]
fn sequence<C: Ctx>(ctx: &C, flow: &mut Flow, p: &mut Parsed) -> bool {
    let transport = p.opcode >> 5;
    let reliable = transport == Transport::Rc as u8 || transport == Transport::Xrc as u8;
    if !p.flags.has(Flags::KNOWN) || !(reliable || transport == Transport::Uc as u8) {
        return false;
    }
    let step = if p.flags.has(Flags::RESPONSE) {
        let rule = if p.flags.has(Flags::STARTS) { Rule::MaySkip } else { Rule::Follows };
        flow.tracks[RESPONSES].push(p.psn, rule)
    } else {
        if flow.mtu == 0 {
            flow.mtu = mtu_of(p.opcode, p.declared);
        }
        let rule = if p.flags.class() == Class::ReadRequest as u16 { read(ctx, flow, p) } else { Rule::Follows };
        flow.tracks[REQUESTS].push(p.psn, rule)
    };
    match step {
        Step::Next | Step::Restart => false,
        Step::Gap(n) => {
            p.note(kind::GAP);
            p.missing = n;
            false
        }
        Step::Repeat => {
            p.note(kind::REPEAT);
            true
        }
        Step::Resumed => true,
        Step::Late => {
            p.note(kind::LATE);
            false
        }
    }
}

/// How many PSNs a READ request takes.
#[inline(always)]
fn read<C: Ctx>(ctx: &C, flow: &Flow, p: &Parsed) -> Rule {
    let len = p.dma_len(ctx).unwrap_or(0);
    if flow.mtu == 0 { Rule::TakesUpTo(len.div_ceil(MIN_MTU)) } else { Rule::Takes(len.div_ceil(u32::from(flow.mtu))) }
}

/// The path MTU that a packet shows, or 0: a First or Middle packet is full, its payload is the path MTU.
#[inline(always)]
pub fn mtu_of(opcode: u8, declared: u32) -> u16 {
    let other_headers = Flags::RETH | Flags::AETH | Flags::DETH | Flags::ENDS;
    if FLAGS[opcode as usize].has(other_headers) {
        return 0;
    }
    let mut around = (Bth::LEN + Header::Icrc.len()) as u32;
    if opcode >> 5 == Transport::Xrc as u8 {
        around += Header::XrcEth.len() as u32;
    }
    let mtu = declared.saturating_sub(around);
    // 256, 512 … 4096; anything else is no path MTU
    if mtu.is_power_of_two() && mtu >= MIN_MTU && mtu <= 4096 { mtu as u16 } else { 0 }
}
