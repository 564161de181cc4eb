//! Faults: the programs of roce-fault. They share the parse with those of roce-top, and nothing else, so that
//! neither pays for the other.
//!
//! The cheap questions come first (see [`roce_ebpf::abi::fault`]): tables indexed by a byte of the packet leave
//! the rules that may care, [`FaultMatch`] those that match, and only then is the history of the flow looked
//! up. Rules are asked in order; the first that fires acts, and the others do not see the packet.

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::{
    BPF_F_INGRESS, BPF_F_MARK_MANGLED_0, BPF_F_RECOMPUTE_CSUM, BPF_NOEXIST, TC_ACT_SHOT, TC_ACT_UNSPEC, xdp_action,
};
use aya_ebpf::helpers::generated::{
    bpf_clone_redirect, bpf_ktime_get_ns, bpf_l4_csum_replace, bpf_redirect, bpf_skb_change_tail, bpf_skb_store_bytes,
    bpf_xdp_adjust_tail, bpf_xdp_store_bytes,
};
use aya_ebpf::macros::{classifier, map, xdp};
use aya_ebpf::maps::{Array, HashMap, LruHashMap, PerCpuArray, RingBuf};
use aya_ebpf::programs::{TcContext, XdpContext};
use dissector::wire::bytes::part;
use dissector::wire::outer::{IPV4_LEN, IPV6_LEN, UDP_LEN};
use dissector::wire::{Bth, Header, Psn, Qpn, Syndrome};
use roce_ebpf::abi::Direction;
use roce_ebpf::abi::fault::{
    self as abi, Action, CERTAIN, CLONE_MARK, FaultConfig, FaultCounters, FaultEvent, FaultFlow, FaultFlowKey,
    FaultFrame, FaultLongFrame, FaultMatches, FaultOpcode, FaultPassed, FaultPicks, FaultRule, FaultSeen, FaultSeenKey,
    FaultState, FaultStateKey, FaultTally, FaultWatch, FrameHead, HEADER_BYTES, MAX_RULES, PICKS, draw,
};
use roce_ebpf::abi::key::NO_QP;
use roce_ebpf::checksum;

use super::atomic::{fetch_add, replace};
use super::ctx::Ctx;
use super::outer::{Net, Outer};
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
static FAULT_QPNS: HashMap<u32, u64> = HashMap::with_max_entries(MAX_RULES as u32, 0);
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

/// What an action needs of a hook.
pub trait Act: Ctx {
    /// Whether this is a copy made by [`Act::duplicate`]; takes the mark off.
    fn is_clone(&self) -> bool;
    /// Interface index.
    fn ifindex(&self) -> u32;
    /// Overwrites bytes. `neutral` says that the Internet checksum over the whole packet stays the same
    /// (because a checksum in it is changed as well).
    fn store<const N: usize>(&self, at: u32, bytes: &[u8; N], neutral: bool) -> bool;
    /// Keeps the UDP checksum at `at` right after a 16-bit word under it changed.
    fn fix_udp(&self, at: u32, old: u16, new: u16) -> bool;
    /// Cuts the frame to `len` bytes, which are fewer than it has.
    fn truncate(&self, len: u32) -> bool;
    /// Sends a copy the same way.
    fn duplicate(&self, direction: Direction) -> bool;
}

impl Act for XdpContext {
    #[inline(always)]
    fn is_clone(&self) -> bool {
        false
    }

    #[inline(always)]
    fn ifindex(&self) -> u32 {
        self.ingress_ifindex() as u32
    }

    #[inline(always)]
    fn store<const N: usize>(&self, at: u32, bytes: &[u8; N], _neutral: bool) -> bool {
        // SAFETY: the context is the kernel's; the N bytes are there.
        unsafe { bpf_xdp_store_bytes(self.ctx, at, bytes.as_ptr().cast_mut().cast(), N as u32) == 0 }
    }

    #[inline(always)]
    fn fix_udp(&self, at: u32, old: u16, new: u16) -> bool {
        let Some(sum) = load::<2, Self>(self, at) else { return false };
        let sum = checksum::update_udp(u16::from_be_bytes(sum), old, new);
        self.store(at, &sum.to_be_bytes(), true)
    }

    #[inline(always)]
    fn truncate(&self, len: u32) -> bool {
        let less = len as i32 - self.buffer_len() as i32;
        // SAFETY: the context is the kernel's.
        unsafe { bpf_xdp_adjust_tail(self.ctx, less) == 0 }
    }

    #[inline(always)]
    fn duplicate(&self, _direction: Direction) -> bool {
        // an XDP program cannot make packets; the loader takes TC for such rules
        false
    }
}

impl Act for TcContext {
    #[inline(always)]
    fn is_clone(&self) -> bool {
        // SAFETY: plain context fields.
        unsafe {
            if (*self.skb.skb).mark != CLONE_MARK {
                return false;
            }
            (*self.skb.skb).mark = 0;
        }
        true
    }

    #[inline(always)]
    fn ifindex(&self) -> u32 {
        // SAFETY: a plain context field.
        unsafe { (*self.skb.skb).ifindex }
    }

    #[inline(always)]
    fn store<const N: usize>(&self, at: u32, bytes: &[u8; N], neutral: bool) -> bool {
        let flags = if neutral { 0 } else { BPF_F_RECOMPUTE_CSUM as u64 };
        // SAFETY: the context is the kernel's; the N bytes are there.
        unsafe { bpf_skb_store_bytes(self.as_ptr().cast(), at, bytes.as_ptr().cast(), N as u32, flags) == 0 }
    }

    #[inline(always)]
    fn fix_udp(&self, at: u32, old: u16, new: u16) -> bool {
        // the helper knows about sums that the device is still to fill in
        let flags = BPF_F_MARK_MANGLED_0 as u64 | 2;
        let (old, new) = (u64::from(old.to_be()), u64::from(new.to_be()));
        // SAFETY: the context is the kernel's.
        unsafe { bpf_l4_csum_replace(self.as_ptr().cast(), at, old, new, flags) == 0 }
    }

    #[inline(always)]
    fn truncate(&self, len: u32) -> bool {
        // SAFETY: the context is the kernel's.
        unsafe { bpf_skb_change_tail(self.as_ptr().cast(), len, 0) == 0 }
    }

    #[inline(always)]
    fn duplicate(&self, direction: Direction) -> bool {
        let flags = match direction {
            Direction::In => BPF_F_INGRESS as u64,
            Direction::Out => 0,
        };
        let skb = self.skb.skb;
        // SAFETY: the context is the kernel's. The copy passes this program again and is known by its mark.
        unsafe {
            let mark = (*skb).mark;
            (*skb).mark = CLONE_MARK;
            let sent = bpf_clone_redirect(skb, (*skb).ifindex, flags) == 0;
            (*skb).mark = mark;
            sent
        }
    }
}

#[inline(always)]
fn load<const N: usize, C: Ctx>(ctx: &C, at: u32) -> Option<[u8; N]> {
    let mut out = [0; N];
    // SAFETY: `out` has N bytes.
    unsafe { ctx.load(at, out.as_mut_ptr(), N as u32) }.then_some(out)
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

/// What is known of the flow and the PSN once the history has been looked up.
struct Seen {
    /// [`FaultFlow::id`].
    flow: u32,
    /// [`FaultFlowKey::hash`].
    hash: u64,
    space: u32,
    /// PSN counted from the flow's first, modulo 2^24.
    relative: u32,
    occurrence: u64,
    message: u64,
}

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
    let Outer::Roce(at) = super::reach(ctx) else { return Verdict::Pass };
    let Some(parsed) = roce::parse(ctx, &at, direction) else { return Verdict::Pass };
    decide(ctx, &parsed, passed)
}

#[inline(always)]
fn decide<C: Act>(ctx: &C, p: &Parsed, passed: &mut FaultPassed) -> Verdict {
    let Some(config) = FAULT_CONFIG.get(0) else { return Verdict::Pass };
    if config.active == 0 {
        return Verdict::Pass;
    }
    if ctx.is_clone() {
        return Verdict::Pass;
    }
    passed.roce += 1;
    let (verdict, rule) = faulted(ctx, p, config);
    if config.flags & abi::CONFIG_WATCH != 0 {
        watch(ctx, p, verdict, rule);
    }
    verdict
}

/// The verdict, and the rule that acted plus one.
#[inline(always)]
fn faulted<C: Act>(ctx: &C, p: &Parsed, config: &FaultConfig) -> (Verdict, u32) {
    let passed = (Verdict::Pass, 0);
    let Some(opcode) = FAULT_OPCODES.get(p.opcode as u32) else { return passed };
    let Some(tos) = FAULT_TOS.get(p.tos as u32) else { return passed };
    let mut common = match p.direction {
        Direction::In => config.direction[0],
        Direction::Out => config.direction[1],
    };
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
    let named = (full | scope) & !config.any_qpn;
    if named != 0 {
        // SAFETY: the entry is written before the program runs.
        let here = unsafe { FAULT_QPNS.get(&p.dest_qp) }.copied().unwrap_or(0) | config.any_qpn;
        full &= here;
        scope &= here;
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
    let found = chosen(p, config, &seen, full, scope);
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

#[inline(always)]
fn told_by(syndrome: u8) -> u64 {
    FAULT_SYNDROMES.get(syndrome as u32).copied().unwrap_or(0)
}

/// Rules that may match by the picked bytes of the addresses.
#[inline(always)]
fn by_addresses<C: Ctx>(ctx: &C, p: &Parsed, config: &FaultConfig) -> Option<u64> {
    let table = FAULT_PICKS.get(0)?;
    let mut rules = u64::MAX;
    // source and destination stand beside each other
    if p.kind == Net::V4 {
        let both = u64::from_ne_bytes(*ctx.at::<8>(p.net_at + 12)?);
        let mut n = 0;
        while n < PICKS {
            rules &= table.v4[n][(both >> (config.picks_v4[n] & 63)) as usize & 0xff];
            n += 1;
        }
    } else {
        let both = ctx.at::<32>(p.net_at + 8)?;
        let words = [part::<0, 8, 32>(both), part::<8, 8, 32>(both), part::<16, 8, 32>(both), part::<24, 8, 32>(both)];
        let mut n = 0;
        while n < PICKS {
            rules &= table.v6[n][(u64::from_ne_bytes(*words[n]) >> (config.picks_v6[n] & 63)) as usize & 0xff];
            n += 1;
        }
    }
    Some(rules)
}

/// Addresses in memory order, IPv4 as `::ffff:a.b.c.d`.
#[inline(always)]
fn key<C: Ctx>(ctx: &C, p: &Parsed) -> Option<FaultFlowKey> {
    let src_qp = if p.src_qp == NO_QP { 0 } else { p.src_qp };
    let (src, dst) = match p.kind {
        Net::V4 => {
            let ip = ctx.at::<IPV4_LEN>(p.net_at)?;
            (mapped(part::<12, 4, 20>(ip)), mapped(part::<16, 4, 20>(ip)))
        }
        Net::V6 | Net::Grh => {
            let ip = ctx.at::<IPV6_LEN>(p.net_at)?;
            (words(part::<8, 16, 40>(ip)), words(part::<24, 16, 40>(ip)))
        }
    };
    Some(FaultFlowKey { src, dst, dest_qp: p.dest_qp, src_qp, direction: p.direction as u32, pad: 0 })
}

#[inline(always)]
fn mapped(v4: &[u8; 4]) -> [u64; 2] {
    let [a, b, c, d] = *v4;
    [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, a, b, c, d])]
}

#[inline(always)]
fn words(v6: &[u8; 16]) -> [u64; 2] {
    [u64::from_ne_bytes(*part::<0, 8, 16>(v6)), u64::from_ne_bytes(*part::<8, 8, 16>(v6))]
}

/// Which of the rules match by address, interface, PSN and size; the latter two do not matter for `scope`.
#[inline(always)]
fn matching(p: &Parsed, ifindex: u32, key: &FaultFlowKey, full: u64, scope: u64) -> Option<(u64, u64)> {
    // in a map, not in registers: the verifier would follow every combination of bits
    let masks = FAULT_MASKS.get_ptr_mut(0)?;
    // SAFETY: a per-CPU element: this CPU alone uses it.
    let masks = unsafe { &mut *masks };
    *masks = [0; 2];
    let table = FAULT_MATCHES.get(0)?;
    let [s0, s1] = key.src;
    let [d0, d1] = key.dst;
    let mut left = full | scope;
    let mut cared = scope;
    let mut bit = 1u64;
    let mut i = 0;
    while i < MAX_RULES {
        if left == 0 {
            break;
        }
        let m = &table.rows[i];
        let in_range = p.psn.wrapping_sub(m.psn) & 0xff_ffff <= m.psn_span;
        // what decides most often comes first
        if left & 1 != 0
            && (in_range || cared & 1 != 0)
            && s1 & m.src_mask[1] == m.src[1]
            && d1 & m.dst_mask[1] == m.dst[1]
            && (s0 & m.src_mask[0]) ^ m.src[0] | (d0 & m.dst_mask[0]) ^ m.dst[0] == 0
            && (m.ifindex == 0 || m.ifindex == ifindex)
        {
            masks[1] |= bit;
            if in_range && p.wire_len >= m.size_min && p.wire_len <= m.size_max {
                masks[0] |= bit;
            }
        }
        left >>= 1;
        cared >>= 1;
        bit <<= 1;
        i += 1;
    }
    let [f, s] = *masks;
    Some((f & full, s & scope))
}

/// Looks the flow and the PSN up, and counts this packet in. `None` if there is no room for the flow.
#[inline(always)]
fn history(p: &Parsed, opcode: &FaultOpcode, key: &FaultFlowKey, space: u32) -> Option<Seen> {
    let Some(flow) = flow(key) else {
        bump!(flows_full);
        return None;
    };
    let slot = (space as usize) & (abi::SPACE_SLOTS - 1);
    // SAFETY: a map value; other CPUs may write the same fields, each of which is one word.
    unsafe {
        let known = &raw mut (*flow).known;
        let first = (&raw mut (*flow).first).cast::<u32>().add(slot);
        let latest = (&raw mut (*flow).latest).cast::<u32>().add(slot);
        if known.read_volatile() & 1 << slot == 0 {
            first.write_volatile(p.psn);
            // one lap up, so that an earlier PSN does not fall below zero
            latest.write_volatile(p.psn | 1 << 24);
            known.write_volatile(known.read_volatile() | 1 << slot);
        }
        let newest = latest.read_volatile();
        let ahead = Psn::new(p.psn).distance(Psn::new(newest));
        let mut psn = newest.wrapping_add_signed(ahead);
        if ahead.unsigned_abs() > abi::RESTART && opcode.flags & abi::OPCODE_DETH == 0 {
            // two laps up, where nothing of the life before is remembered
            psn = (newest & 0xff00_0000).wrapping_add(2 << 24) | p.psn;
            first.write_volatile(p.psn);
            latest.write_volatile(psn);
            if space == abi::SPACE_REQUEST {
                (*flow).messages = [0; abi::CLASS_SLOTS];
            }
        } else if ahead > 0 {
            latest.write_volatile(psn);
        }
        let id = (*flow).id;
        let counter = (&raw mut (*flow).messages).cast::<u64>().add((opcode.class as usize) & (abi::CLASS_SLOTS - 1));
        let place = FaultSeenKey { flow: id | space << 24, psn };
        let (occurrence, message) = match FAULT_SEEN.get_ptr_mut(&place) {
            Some(seen) => (fetch_add(&raw mut (*seen).occurrence, 1) + 1, (*seen).message),
            None => {
                let message = if opcode.flags & abi::OPCODE_STARTS != 0 {
                    fetch_add(counter, 1) + 1
                } else {
                    counter.read_volatile()
                };
                let new = FaultSeen { occurrence: 1, message };
                if FAULT_SEEN.insert(&place, &new, BPF_NOEXIST as u64).is_ok() {
                    (1, message)
                } else if let Some(seen) = FAULT_SEEN.get_ptr_mut(&place) {
                    // another CPU was faster
                    (fetch_add(&raw mut (*seen).occurrence, 1) + 1, (*seen).message)
                } else {
                    (1, message)
                }
            }
        };
        let relative = p.psn.wrapping_sub(first.read_volatile()) & 0xff_ffff;
        Some(Seen { flow: id, hash: key.hash(), space, relative, occurrence, message })
    }
}

#[inline(always)]
fn flow(key: &FaultFlowKey) -> Option<*mut FaultFlow> {
    if let Some(f) = FAULT_FLOWS.get_ptr_mut(key) {
        return Some(f);
    }
    let counters = FAULT_COUNTERS.get_ptr_mut(0)?;
    // SAFETY: a field of a map value.
    let id = unsafe { fetch_add(&raw mut (*counters).flows, 1) } + 1;
    let blank = FAULT_BLANK.get_ptr_mut(0)?;
    // SAFETY: a per-CPU element: this CPU alone writes it.
    let blank = unsafe {
        (*blank).id = id as u32 & 0x00ff_ffff;
        &*blank
    };
    // another CPU may have been faster; then its entry counts
    let _ = FAULT_FLOWS.insert(key, blank, BPF_NOEXIST as u64);
    FAULT_FLOWS.get_ptr_mut(key)
}

#[inline(always)]
fn state(flow: u32, rule: u32) -> Option<*mut FaultState> {
    let key = FaultStateKey { flow, rule };
    if let Some(s) = FAULT_STATES.get_ptr_mut(&key) {
        return Some(s);
    }
    let _ = FAULT_STATES.insert(&key, FAULT_UNTOUCHED.get(0)?, BPF_NOEXIST as u64);
    let s = FAULT_STATES.get_ptr_mut(&key);
    if s.is_none() {
        bump!(states_full);
    }
    s
}

/// The first rule that fires, plus one; 0 none.
#[inline(always)]
fn chosen(p: &Parsed, config: &FaultConfig, seen: &Seen, full: u64, scope: u64) -> u32 {
    let mut left = full | scope;
    let mut wanted = full;
    let mut cared = scope;
    let mut i = 0;
    while i < MAX_RULES as u32 {
        if left == 0 {
            break;
        }
        if left & 1 != 0
            && let Some(rule) = FAULT_RULES.get(i)
            && fires(p, config, seen, i, rule, wanted & 1 != 0, cared & 1 != 0)
        {
            return i + 1;
        }
        left >>= 1;
        wanted >>= 1;
        cared >>= 1;
        i += 1;
    }
    0
}

#[inline(always)]
fn fires(p: &Parsed, config: &FaultConfig, seen: &Seen, i: u32, rule: &FaultRule, full: bool, scope: bool) -> bool {
    if rule.flow != 0 {
        let Some(s) = state(seen.flow, i) else { return false };
        // SAFETY: a map value; the flow's packets come in order, so its number is given once.
        let mut ordinal = unsafe { (*s).ordinal };
        if ordinal == 0 && scope {
            let Some(t) = FAULT_TALLIES.get_ptr_mut(i) else { return false };
            // SAFETY: fields of map values.
            unsafe {
                ordinal = fetch_add(&raw mut (*t).flows, 1) as u32 + 1;
                (*s).ordinal = ordinal;
            }
        }
        if ordinal != rule.flow {
            return false;
        }
    }
    if !full {
        return false;
    }
    if seen.relative.wrapping_sub(rule.psn) & 0xff_ffff > rule.psn_span && rule.flags & abi::RULE_RELATIVE != 0 {
        return false;
    }
    if seen.occurrence < rule.iter_min as u64 || seen.occurrence > rule.iter_max as u64 {
        return false;
    }
    if rule.message != 0 && seen.message != rule.message as u64 {
        return false;
    }
    let mut now = 0;
    if rule.flags & abi::RULE_CLOCK != 0 {
        // SAFETY: no arguments, no effects.
        now = unsafe { bpf_ktime_get_ns() };
        let at = now.wrapping_sub(config.started_ns);
        if at < rule.after_ns || at >= rule.until_ns {
            return false;
        }
        if rule.period_ns != 0 && (at - rule.after_ns) % rule.period_ns >= rule.down_ns {
            return false;
        }
    }
    if rule.armed_by != 0 {
        match FAULT_TALLIES.get(rule.armed_by - 1) {
            Some(t) if t.injected != 0 => {}
            _ => return false,
        }
    }
    tally!(i, matched);
    let s = if rule.flags & abi::RULE_COUNTS != 0 {
        let flow = if rule.flags & abi::RULE_SHARED != 0 { 0 } else { seen.flow };
        let Some(s) = state(flow, i) else { return false };
        s
    } else {
        core::ptr::null_mut()
    };
    let random = |salt: u32| draw(config.seed, i, seen.hash, seen.space, p.psn, seen.occurrence as u32, salt);
    if rule.probability < CERTAIN && random(0) >= rule.probability {
        return false;
    }
    if s.is_null() {
        return true;
    }
    // SAFETY: `s` points into a map value.
    unsafe {
        let n = fetch_add(&raw mut (*s).matched, 1) + 1;
        if rule.nth != 0 && n != rule.nth {
            return false;
        }
        if rule.every != 0 && n % rule.every != 0 {
            return false;
        }
        if rule.flags & abi::RULE_BURST != 0 {
            // as netem: the state before the step decides
            let bad = (*s).bad;
            let (turns, fire) = if bad != 0 { (rule.ge_r, rule.ge_bad) } else { (rule.ge_p, rule.ge_good) };
            if random(1) < turns {
                (*s).bad = bad ^ 1;
            }
            if random(2) >= fire {
                return false;
            }
        }
        if rule.drain_ns_per_kib != 0 {
            let cost = (p.wire_len as u64 * rule.drain_ns_per_kib) >> 10;
            let length = occupy(&raw mut (*s).queue_at, now, cost);
            if length < rule.kmin_ns {
                return false;
            }
            if length < rule.kmax_ns {
                // kmin < kmax here, so the divisor is not zero
                let chance = rule.pmax.wrapping_mul(length - rule.kmin_ns) / (rule.kmax_ns - rule.kmin_ns);
                if random(3) >= chance {
                    return false;
                }
            }
        }
        if rule.interval_ns != 0 {
            let at = &raw mut (*s).rate_at;
            let free = at.read_volatile();
            // where two CPUs come at once, one is too many
            if free > now || !replace(at, free, now + rule.interval_ns) {
                return false;
            }
        }
        rule.count == 0 || fetch_add(&raw mut (*s).chosen, 1) < rule.count
    }
}

/// Puts `cost` ns of work on a queue that is empty at the virtual time `*at`; how long it was before.
///
/// # Safety
/// `at` must point into a map value.
#[inline(always)]
unsafe fn occupy(at: *mut u64, now: u64, cost: u64) -> u64 {
    // SAFETY: the caller vouches for `at`.
    unsafe {
        if at.read_volatile() < now {
            at.write_volatile(now);
        }
        fetch_add(at, cost).saturating_sub(now)
    }
}

/// Does what the rule says, and reports it; `None` if the packet has not what the action needs.
#[inline(always)]
fn act<C: Act>(
    ctx: &C,
    p: &Parsed,
    config: &FaultConfig,
    opcode: &FaultOpcode,
    key: &FaultFlowKey,
    seen: &Seen,
    index: u32,
) -> Option<Verdict> {
    let rule = FAULT_RULES.get(index)?;
    let counters = FAULT_COUNTERS.get_ptr_mut(0);
    // SAFETY: a field of a map value.
    let serial = counters.map_or(0, |c| unsafe { fetch_add(&raw mut (*c).serials, 1) } + 1);
    let Some(mut slot) = FAULT_EVENTS.reserve::<FaultEvent>(0) else {
        bump!(events_lost);
        let done = apply(ctx, p, config, opcode, rule);
        if done.is_some() {
            tally!(index, injected);
        } else {
            tally!(index, not_applicable);
        }
        return done;
    };
    let event = slot.as_mut_ptr();
    // SAFETY: the slot is as large as the event, and every field that is read is written.
    unsafe {
        (*event).at_ns = bpf_ktime_get_ns();
        (*event).serial = serial;
        (*event).flow = *key;
        (*event).rule = index;
        (*event).action = rule.action;
        (*event).direction = p.direction as u32;
        (*event).ifindex = ctx.ifindex();
        (*event).psn = p.psn;
        (*event).occurrence = seen.occurrence as u32;
        (*event).opcode = p.opcode as u32;
        (*event).length = ctx.buffer_len();
        (*event).bth = p.bth_at as u32;
        (*event).before_len = head::<C, HEADER_BYTES>(ctx, (&raw mut (*event).before).cast());
    }
    let Some(verdict) = apply(ctx, p, config, opcode, rule) else {
        slot.discard(0);
        tally!(index, not_applicable);
        return None;
    };
    tally!(index, injected);
    // SAFETY: as above.
    unsafe {
        (*event).length_after = ctx.buffer_len();
        (*event).after_len = 0;
        if verdict == Verdict::Pass {
            (*event).after_len = head::<C, HEADER_BYTES>(ctx, (&raw mut (*event).after).cast());
        }
    }
    slot.submit(0);
    if config.flags & abi::CONFIG_FRAMES != 0 {
        let long = ctx.buffer_len() > abi::FRAME_BYTES as u32;
        if !(if long { long_frame(ctx, serial) } else { short_frame(ctx, serial) }) {
            bump!(frames_lost);
        }
    }
    Some(verdict)
}

macro_rules! frame {
    ($name:ident, $record:ty, $room:expr) => {
        /// Reports the frame as it is now; `false` if there was no room.
        #[inline(always)]
        fn $name<C: Ctx>(ctx: &C, serial: u64) -> bool {
            let Some(mut slot) = FAULT_FRAMES.reserve::<$record>(0) else { return false };
            let record = slot.as_mut_ptr();
            // SAFETY: the slot is as large as the record; of its bytes only those are read that were written.
            unsafe {
                let len = head::<C, { $room }>(ctx, (&raw mut (*record).bytes).cast());
                core::ptr::write(&raw mut (*record).head, FrameHead { serial, len, pad: 0 });
            }
            slot.submit(0);
            true
        }
    };
}

frame!(short_frame, FaultFrame, abi::FRAME_BYTES);
frame!(long_frame, FaultLongFrame, abi::LONG_FRAME_BYTES);

/// Copies the first bytes of the frame to `to`; how many.
///
/// # Safety
/// `to` must have room for `ROOM` bytes.
#[inline(always)]
unsafe fn head<C: Ctx, const ROOM: usize>(ctx: &C, to: *mut u8) -> u32 {
    let there = ctx.buffer_len();
    let len = if there < ROOM as u32 { there } else { ROOM as u32 };
    // The verifier wants a length that it can see is neither 0 nor too large. That of 6.1 learns nothing from `!= 0`, so
    // the bound is put on the length less one, which the compiler must not see through.
    let less = (len as u64).wrapping_sub(1);
    // SAFETY: a local variable.
    let less = unsafe { core::ptr::read_volatile(&raw const less) };
    // SAFETY: the caller vouches for `to`.
    if less < ROOM as u64 && unsafe { ctx.load(0, to, less as u32 + 1) } { less as u32 + 1 } else { 0 }
}

/// `None` if the packet has not what the action needs.
#[inline(always)]
fn apply<C: Act>(ctx: &C, p: &Parsed, config: &FaultConfig, opcode: &FaultOpcode, rule: &FaultRule) -> Option<Verdict> {
    if config.flags & abi::CONFIG_DRY != 0 {
        return Some(Verdict::Pass);
    }
    let done = match Action::of(rule.action)? {
        Action::Drop => return Some(Verdict::Drop),
        Action::MarkCe => set_tos(ctx, p, p.tos | 3),
        Action::ClearEct => set_tos(ctx, p, p.tos & !3),
        Action::SetDscp => set_tos(ctx, p, (rule.argument as u8) << 2 | p.tos & 3),
        Action::FailIcrc => fail_icrc(ctx, p),
        Action::Corrupt => corrupt(ctx, p, opcode, rule),
        Action::Truncate => rule.argument < ctx.buffer_len() && ctx.truncate(rule.argument),
        Action::Duplicate => ctx.duplicate(p.direction),
    };
    done.then_some(Verdict::Pass)
}

/// TOS or traffic class; the IPv4 header checksum follows. The ICRC does not cover it.
#[inline(always)]
fn set_tos<C: Act>(ctx: &C, p: &Parsed, tos: u8) -> bool {
    let net = p.net_at as u32;
    let Some([first, old]) = load::<2, C>(ctx, net) else { return false };
    match p.kind {
        Net::V4 => {
            let new = u16::from_be_bytes([first, tos]);
            ctx.store(net + 1, &[tos], true) && fix_ipv4(ctx, net, u16::from_be_bytes([first, old]), new)
        }
        Net::V6 | Net::Grh => ctx.store(net, &[first & 0xf0 | tos >> 4, old & 0x0f | tos << 4], false),
    }
}

/// Keeps the IPv4 header checksum right after a word of the header changed.
#[inline(always)]
fn fix_ipv4<C: Act>(ctx: &C, net: u32, old: u16, new: u16) -> bool {
    let Some(sum) = load::<2, C>(ctx, net + 10) else { return false };
    ctx.store(net + 10, &checksum::update(u16::from_be_bytes(sum), old, new).to_be_bytes(), true)
}

/// Over IPv4 the identification is inverted: the ICRC covers it, and nobody else minds. Elsewhere a bit of the
/// ICRC itself flips, which lies where the length field says, not at the end of the frame.
#[inline(always)]
fn fail_icrc<C: Act>(ctx: &C, p: &Parsed) -> bool {
    if p.kind == Net::V4 {
        let at = p.net_at as u32;
        let Some(id) = load::<2, C>(ctx, at + 4) else { return false };
        let old = u16::from_be_bytes(id);
        return ctx.store(at + 4, &(!old).to_be_bytes(), true) && fix_ipv4(ctx, at, old, !old);
    }
    if p.declared < (Bth::LEN + Header::Icrc.len()) as u32 {
        return false;
    }
    flip(ctx, p, p.declared - Header::Icrc.len() as u32, 1)
}

#[inline(always)]
fn corrupt<C: Act>(ctx: &C, p: &Parsed, opcode: &FaultOpcode, rule: &FaultRule) -> bool {
    let Some([flags]) = load::<1, C>(ctx, p.bth_at as u32 + 1) else { return false };
    let pad = (flags >> 4 & 3) as u32;
    let at = Bth::LEN as u32 + opcode.headers_len + rule.argument;
    // payload only: neither pad nor ICRC
    if at + pad + Header::Icrc.len() as u32 >= p.declared {
        return false;
    }
    flip(ctx, p, at, rule.xor as u8)
}

/// Inverts bits of the byte `at` bytes after the start of BTH; the UDP checksum, if there is one, follows.
#[inline(always)]
fn flip<C: Act>(ctx: &C, p: &Parsed, at: u32, bits: u8) -> bool {
    let place = p.bth_at as u32 + at;
    let Some([old]) = load::<1, C>(ctx, place) else { return false };
    let new = old ^ bits;
    if p.kind == Net::Grh {
        return ctx.store(place, &[new], false);
    }
    let sum_at = p.bth_at as u32 - UDP_LEN as u32 + 6;
    let Some(sum) = load::<2, C>(ctx, sum_at) else { return false };
    if sum == [0; 2] {
        return ctx.store(place, &[new], false);
    }
    // UDP and BTH have even lengths, so the byte's place in its word is that of its offset
    let shift = if at & 1 == 0 { 8 } else { 0 };
    ctx.store(place, &[new], true) && ctx.fix_udp(sum_at, (old as u16) << shift, (new as u16) << shift)
}

/// Reports the packet as it leaves.
#[inline(always)]
fn watch<C: Act>(ctx: &C, p: &Parsed, verdict: Verdict, rule: u32) {
    let Some(mut slot) = FAULT_WATCH.reserve::<FaultWatch>(0) else {
        bump!(watch_lost);
        return;
    };
    let w = slot.as_mut_ptr();
    // SAFETY: the slot is as large as the record, and every field that is read is written.
    unsafe {
        (*w).at_ns = bpf_ktime_get_ns();
        (*w).length = ctx.buffer_len();
        (*w).direction = p.direction as u32;
        (*w).ifindex = ctx.ifindex();
        (*w).dropped = (verdict == Verdict::Drop) as u32;
        (*w).rule = rule;
        (*w).head_len = head::<C, HEADER_BYTES>(ctx, (&raw mut (*w).head).cast());
    }
    slot.submit(0);
}
