//! Faults: the programs of roce-fault. They share the parse with those of roce-top, and nothing else, so that
//! neither pays for the other.
//!
//! The cheap questions come first (see [`roce_ebpf::abi::fault`]): tables indexed by a byte of the packet leave
//! the rules that may care, [`FaultMatch`] those that match, and only then is the history of the flow looked
//! up. Rules are asked in order; the first that fires acts, and the others do not see the packet.

mod apply;
mod choose;
mod history;
mod hook;
mod matching;
mod report;

use aya_ebpf::bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC, xdp_action};
use aya_ebpf::helpers::generated::{bpf_ktime_get_ns, bpf_redirect};
use aya_ebpf::macros::{classifier, map, xdp};
use aya_ebpf::maps::{Array, HashMap, LruHashMap, PerCpuArray, RingBuf};
use aya_ebpf::programs::{TcContext, XdpContext};
use dissector::wire::{Qpn, Syndrome};
use roce_ebpf::abi::Direction;
use roce_ebpf::abi::fault::{
    self as abi, FaultConfig, FaultCounters, FaultFlow, FaultFlowKey, FaultMatches, FaultOpcode, FaultPassed,
    FaultPicks, FaultRule, FaultSeen, FaultSeenKey, FaultState, FaultStateKey, FaultTally, MAX_RULES,
};

use self::choose::chosen;
use self::history::history;
use self::hook::Act;
use self::matching::{by_addresses, key, matching, told_by};
use self::report::{act, watch};
use super::outer::Outer;
use super::roce::{self, Parsed};

/// One rule set, written by user space before the programs are attached.
#[map]
static FAULT_CONFIG: Array<FaultConfig> = Array::with_max_entries(1, 0);
#[map]
static FAULT_OPCODES: Array<FaultOpcode> = Array::with_max_entries(256, 0);
#[map]
static FAULT_PSNS: Array<u64> = Array::with_max_entries(256, 0);
#[map]
static FAULT_PICKS: Array<FaultPicks> = Array::with_max_entries(1, 0);
#[map]
static FAULT_TOS: Array<u64> = Array::with_max_entries(256, 0);
#[map]
static FAULT_SYNDROMES: Array<u64> = Array::with_max_entries(256, 0);
#[map]
static FAULT_QPNS: Array<u64> = Array::with_max_entries(256, 0);
#[map]
static FAULT_MATCHES: Array<FaultMatches> = Array::with_max_entries(1, 0);
#[map]
static FAULT_RULES: Array<FaultRule> = Array::with_max_entries(MAX_RULES as u32, 0);
/// Shared by all CPUs, changed by atomic adds only.
#[map]
static FAULT_TALLIES: Array<FaultTally> = Array::with_max_entries(MAX_RULES as u32, 0);
#[map]
static FAULT_COUNTERS: Array<FaultCounters> = Array::with_max_entries(1, 0);
/// What the programs saw, per CPU.
#[map]
static FAULT_PASSED: PerCpuArray<FaultPassed> = PerCpuArray::with_max_entries(1, 0);
/// Rules that match, while they are looked at: wholly, and but for PSN and size.
#[map]
static FAULT_MASKS: PerCpuArray<[u64; 2]> = PerCpuArray::with_max_entries(1, 0);
/// A flow without history: too large for the stack.
#[map]
static FAULT_BLANK: PerCpuArray<FaultFlow> = PerCpuArray::with_max_entries(1, 0);
/// These have the sizes of an object without rules; the loader of a scenario sets those of the ABI.
#[map]
static FAULT_FLOWS: HashMap<FaultFlowKey, FaultFlow> = HashMap::with_max_entries(1, 0);
#[map]
static FAULT_SEEN: LruHashMap<FaultSeenKey, FaultSeen> = LruHashMap::with_max_entries(1, 0);
#[map]
static FAULT_STATES: HashMap<FaultStateKey, FaultState> = HashMap::with_max_entries(1, 0);
/// The state of a rule that has seen nothing. Nobody writes it. On the stack it would be filled by a call of memset, whose
/// loop the verifier of 6.1 follows anew on every path.
#[map]
static FAULT_UNTOUCHED: Array<FaultState> = Array::with_max_entries(1, 0);
#[map]
static FAULT_EVENTS: RingBuf = RingBuf::with_byte_size(4096, 0);
#[map]
static FAULT_FRAMES: RingBuf = RingBuf::with_byte_size(4096, 0);
#[map]
static FAULT_WATCH: RingBuf = RingBuf::with_byte_size(4096, 0);

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Goes on.
    Pass,
    /// Is dropped.
    Drop,
}

/// Adds one to a field of the engine's counters.
macro_rules! bump {
    ($field:ident) => {
        if let Some(c) = FAULT_COUNTERS.get_ptr_mut(0) {
            // SAFETY: a field of a map value.
            unsafe { fetch_add(&raw mut (*c).$field, 1) };
        }
    };
}

/// Adds one to a field of a rule's tally.
macro_rules! tally {
    ($rule:expr, $field:ident) => {
        if let Some(t) = FAULT_TALLIES.get_ptr_mut($rule) {
            // SAFETY: a field of a map value.
            unsafe { fetch_add(&raw mut (*t).$field, 1) };
        }
    };
}

use {bump, tally};

/// Ingress by XDP.
#[xdp(frags)]
pub fn roce_fault_xdp(ctx: XdpContext) -> u32 {
    match packet(&ctx, Direction::In) {
        Verdict::Pass => xdp_action::XDP_PASS,
        Verdict::Drop => xdp_action::XDP_DROP,
    }
}

/// Ingress by TC: where XDP is taken, or where packets are to be made.
#[classifier]
pub fn roce_fault_in(ctx: TcContext) -> i32 {
    tc(&ctx, Direction::In)
}

/// Egress.
#[classifier]
pub fn roce_fault_out(ctx: TcContext) -> i32 {
    tc(&ctx, Direction::Out)
}

#[inline(always)]
fn tc(ctx: &TcContext, direction: Direction) -> i32 {
    // UNSPEC lets the next program of the hook decide, with TCX and with cls_bpf alike
    match packet(ctx, direction) {
        Verdict::Pass => TC_ACT_UNSPEC,
        // TC_ACT_SHOT tells the sender on this host, and rdma_rxe of 6.12 then fails the queue pair. What the network
        // loses is lost in silence: a redirection to an interface that does not exist is, under TC and TCX alike.
        // SAFETY: arguments by value.
        Verdict::Drop if matches!(direction, Direction::Out) => unsafe { bpf_redirect(0, 0) as i32 },
        Verdict::Drop => TC_ACT_SHOT as i32,
    }
}

/// The whole way of a packet.
#[inline(always)]
fn packet<C: Act>(ctx: &C, direction: Direction) -> Verdict {
    let Some(passed) = FAULT_PASSED.get_ptr_mut(0) else { return Verdict::Pass };
    // SAFETY: a per-CPU element: this CPU alone writes it, and packet programs do not interrupt each other.
    let passed = unsafe { &mut *passed };
    passed.packets += 1;
    let Some(config) = FAULT_CONFIG.get(0) else { return Verdict::Pass };
    if config.active == 0 {
        return Verdict::Pass;
    }
    let Outer::Roce(at) = super::reach(ctx) else { return Verdict::Pass };
    let Some(parsed) = roce::parse(ctx, &at, direction) else { return Verdict::Pass };
    if ctx.is_clone() {
        return Verdict::Pass;
    }
    passed.roce += 1;
    let (verdict, rule) = faulted(ctx, parsed, config);
    if config.flags & abi::CONFIG_WATCH != 0 {
        watch(ctx, parsed, verdict, rule);
    }
    verdict
}

/// The verdict, and the rule that acted plus one.
#[inline(always)]
fn faulted<C: Act>(ctx: &C, p: &Parsed, config: &FaultConfig) -> (Verdict, u32) {
    let passed = (Verdict::Pass, 0);
    let Some(opcode) = FAULT_OPCODES.get(p.opcode as u32) else { return passed };
    let Some(tos) = FAULT_TOS.get(p.tos as u32) else { return passed };
    let mut common = config.direction[p.way()];
    if (opcode.full | opcode.scope) & common == 0 {
        return passed;
    }
    let mut space = opcode.space;
    let mut told = u64::MAX;
    if opcode.flags & abi::OPCODE_ACK != 0 {
        let syndrome = p.syndrome(ctx);
        if let Some(s) = syndrome
            && !Syndrome(s).is_ack()
        {
            space = abi::SPACE_NAK;
        }
        // one that is cut off meets the rules that take any
        told = match syndrome {
            Some(s) => told_by(s),
            None => told_by(0x1f) & told_by(0x20) & told_by(0x60),
        };
    }
    if opcode.flags & abi::OPCODE_DETH != 0 {
        common &= if Qpn::new(p.dest_qp).is_management() { !config.not_management } else { !config.mad_only };
    }
    let mut full = opcode.full & common & told & *tos;
    let mut scope = opcode.scope & common;
    if (full | scope) & !config.any_qpn != 0 {
        let Some(by_qpn) = FAULT_QPNS.get(p.dest_qp & 0xff) else { return passed };
        full &= *by_qpn;
        scope &= *by_qpn;
    }
    if full | scope == 0 {
        return passed;
    }
    if (full | scope) & config.addressed != 0 {
        let Some(here) = by_addresses(ctx, p, config) else { return passed };
        full &= here;
        scope &= here;
    }
    let Some(by_psn) = FAULT_PSNS.get(p.psn & 0xff) else { return passed };
    full &= *by_psn;
    if full | scope == 0 {
        return passed;
    }
    let Some(key) = key(ctx, p) else { return passed };
    let Some((full, scope)) = matching(p, ctx.ifindex(), &key, full, scope) else { return passed };
    if full | scope == 0 {
        return passed;
    }
    let Some(seen) = history(p, opcode, &key, space) else { return passed };
    let masks = FAULT_MASKS.get_ptr_mut(0);
    let Some(masks) = masks else { return passed };
    let found = chosen(p, &seen, full, scope);
    // by way of memory, so that the verifier looks at the actions once and not once a rule
    // SAFETY: a per-CPU element: this CPU alone uses it.
    let fired = unsafe {
        let place = (&raw mut (*masks)[0]).cast::<u64>();
        place.write_volatile(found as u64);
        place.read_volatile() as u32
    };
    // SAFETY: no arguments, no effects.
    if fired == 0 || unsafe { bpf_ktime_get_ns() } > config.until_ns {
        return passed;
    }
    match act(ctx, p, config, opcode, &key, &seen, fired - 1) {
        Some(verdict) => (verdict, fired),
        None => passed,
    }
}
