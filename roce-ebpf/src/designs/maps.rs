//! The programs: one a design, all counting the same things by the same function.

use aya_ebpf::bindings::xdp_action::XDP_PASS;
use aya_ebpf::helpers::generated::{bpf_ktime_get_coarse_ns, bpf_ktime_get_ns, bpf_map_update_elem};
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, HashMap, PerCpuArray, PerCpuHashMap};
use aya_ebpf::programs::XdpContext;
use roce_ebpf::abi::{Direction, Flow};

use super::kernel::count;
use super::kernel::ctx::Ctx;
use super::kernel::outer::{Net, Outer};
use super::kernel::roce::{self, Parsed};
use super::kernel::{packet, reach};

/// A flow of which nothing is known; too large for the stack. Nobody writes it.
#[map]
static FRESH: Array<Flow> = Array::with_max_entries(1, 0);

/// Offset of the driver's state in the frame: round and flow count, in payload that no header reaches.
const STATE: usize = 256;

/// Gives the packet the next flow's QP and PSN: flows come in a scattered order, each flow's PSNs one by one.
#[inline(always)]
fn drive(ctx: &XdpContext) -> bool {
    let data = ctx.data();
    if data + STATE + 16 > ctx.data_end() {
        return false;
    }
    // SAFETY: inside the linear piece; XDP may write to it. BTH lies where the ethertype says, without options.
    unsafe {
        let bth = if *((data + 12) as *const u8) == 0x86 { data + 62 } else { data + 42 };
        let state = (data + STATE) as *mut u8;
        let word = |n: usize| {
            let b = *state.add(n).cast::<[u8; 4]>();
            u32::from_le_bytes(b)
        };
        let (round, mask, shift) = (word(0), word(4), word(8));
        *state.cast::<[u8; 4]>() = round.wrapping_add(1).to_le_bytes();
        // an odd factor makes a permutation of the low bits
        let flow = round.wrapping_mul(0x9e37_79b1) & mask;
        let psn = round >> (shift & 31);
        // whole words: a number that is stored in parts and loaded at once costs the CPU a wait that no packet from a
        // network card does
        *((bth + 4) as *mut [u8; 4]) = (flow & 0x00ff_ffff).to_be_bytes();
        *((bth + 8) as *mut [u8; 4]) = (psn & 0x00ff_ffff).to_be_bytes();
    }
    true
}

#[xdp(frags)]
#[inline(always)]
pub fn empty(ctx: XdpContext) -> u32 {
    drive(&ctx);
    XDP_PASS
}

/// Nothing at all, not even the driver.
#[xdp(frags)]
#[inline(always)]
pub fn nothing(_ctx: XdpContext) -> u32 {
    XDP_PASS
}

/// Sends every frame out where it "came in": with live frames a source of traffic.
#[xdp(frags)]
pub fn send_back(_ctx: XdpContext) -> u32 {
    aya_ebpf::bindings::xdp_action::XDP_TX
}

/// The product's: a per-CPU cache of slot numbers, short keys with the CPU in them, an array that is mapped.
#[xdp(frags)]
#[inline(always)]
pub fn ours(ctx: XdpContext) -> u32 {
    if drive(&ctx) {
        packet(&ctx, Direction::In);
    }
    XDP_PASS
}

#[inline(always)]
fn parsed(ctx: &XdpContext) -> Option<Parsed> {
    if !drive(ctx) {
        return None;
    }
    match reach(ctx) {
        Outer::Roce(at) => roce::read(ctx, &at, Direction::In),
        _ => None,
    }
}

/// The coarse clock.
#[inline(always)]
fn coarse() -> u64 {
    // SAFETY: no arguments, no effects.
    unsafe { bpf_ktime_get_coarse_ns() }
}

/// Counts a packet in a flow that keeps its PSNs itself.
#[inline(always)]
fn counted(ctx: &XdpContext, flow: &mut Flow, p: &mut Parsed, now: u64) {
    if count::account(ctx, flow, p, now) {
        count::follow(ctx, flow, p);
    }
}

/// Key of 48 bytes for both families.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct LongKey {
    src: [u8; 16],
    dst: [u8; 16],
    dest_qp: u32,
    src_qp: u32,
    place: u64,
}

#[map]
static PLAIN: PerCpuHashMap<LongKey, Flow> = PerCpuHashMap::with_max_entries(1, 0);

/// The plain design: one per-CPU hash with a 48-byte key, precise clock.
#[xdp(frags)]
#[inline(always)]
pub fn plain(ctx: XdpContext) -> u32 {
    let Some(mut p) = parsed(&ctx) else { return XDP_PASS };
    let mut key = LongKey { src: [0; 16], dst: [0; 16], dest_qp: p.dest_qp, src_qp: p.src_qp, place: 0 };
    if p.kind == Net::V4 {
        let Some(a) = ctx.at::<8>(p.net_at + 12) else { return XDP_PASS };
        let [s0, s1, s2, s3, d0, d1, d2, d3] = *a;
        // the mapped prefix is left out: stores to the stack that straddle its words are not allowed
        key.src = [0, 0, 0, 0, 0, 0, 0, 0, s0, s1, s2, s3, 0, 0, 0, 0];
        key.dst = [0, 0, 0, 0, 0, 0, 0, 0, d0, d1, d2, d3, 0, 0, 0, 0];
    } else {
        let (Some(s), Some(d)) = (ctx.at::<16>(p.net_at + 8), ctx.at::<16>(p.net_at + 24)) else { return XDP_PASS };
        key.src = *s;
        key.dst = *d;
    }
    // SAFETY: no arguments, no effects.
    let now = unsafe { bpf_ktime_get_ns() };
    let flow = match PLAIN.get_ptr_mut(&key) {
        Some(f) => Some(f),
        None => add(core::ptr::from_ref(&PLAIN).cast_mut().cast(), &key).and_then(|()| PLAIN.get_ptr_mut(&key)),
    };
    if let Some(f) = flow {
        // SAFETY: this CPU's element.
        counted(&ctx, unsafe { &mut *f }, &mut p, now);
    }
    XDP_PASS
}

/// Key of 16 bytes, IPv4.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct ShortKey {
    src: [u8; 4],
    dst: [u8; 4],
    dest_qp: u32,
    src_qp: u32,
}

#[inline(always)]
fn short_key(ctx: &XdpContext, p: &Parsed) -> Option<ShortKey> {
    let [s0, s1, s2, s3, d0, d1, d2, d3] = *ctx.at::<8>(p.net_at + 12)?;
    Some(ShortKey { src: [s0, s1, s2, s3], dst: [d0, d1, d2, d3], dest_qp: p.dest_qp, src_qp: p.src_qp })
}

#[map]
static SHORT: PerCpuHashMap<ShortKey, Flow> = PerCpuHashMap::with_max_entries(1, 0);

/// Per-CPU hash with a short key, coarse clock.
#[xdp(frags)]
#[inline(always)]
pub fn percpu(ctx: XdpContext) -> u32 {
    let Some(mut p) = parsed(&ctx) else { return XDP_PASS };
    let Some(key) = short_key(&ctx, &p) else { return XDP_PASS };
    let flow = match SHORT.get_ptr_mut(&key) {
        Some(f) => Some(f),
        None => add(core::ptr::from_ref(&SHORT).cast_mut().cast(), &key).and_then(|()| SHORT.get_ptr_mut(&key)),
    };
    if let Some(f) = flow {
        // SAFETY: this CPU's element.
        counted(&ctx, unsafe { &mut *f }, &mut p, coarse());
    }
    XDP_PASS
}

#[map]
static SLOTS: HashMap<ShortKey, u32> = HashMap::with_max_entries(1, 0);
/// `BPF_F_MMAPABLE`: user space reads it without a system call.
#[map]
static TABLE: Array<Flow> = Array::with_max_entries(1, 1 << 10);
#[map]
static NEXT_SLOT: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);

/// Hash to a slot of an array that user space maps into memory.
#[xdp(frags)]
#[inline(always)]
pub fn slot(ctx: XdpContext) -> u32 {
    let Some(mut p) = parsed(&ctx) else { return XDP_PASS };
    let Some(key) = short_key(&ctx, &p) else { return XDP_PASS };
    let slot = match SLOTS.get_ptr(&key) {
        // SAFETY: written before it was inserted, never after.
        Some(s) => unsafe { *s },
        None => {
            let Some(next) = NEXT_SLOT.get_ptr_mut(0) else { return XDP_PASS };
            // SAFETY: this CPU's element. (One CPU in the bench: slots of several would need blocks of their own.)
            let s = unsafe { *next };
            if SLOTS.insert(key, s, 0).is_err() {
                return XDP_PASS;
            }
            // SAFETY: as above.
            unsafe { *next = s.wrapping_add(1) };
            s
        }
    };
    if let Some(f) = TABLE.get_ptr_mut(slot) {
        // SAFETY: one writer, as above.
        counted(&ctx, unsafe { &mut *f }, &mut p, coarse());
    }
    XDP_PASS
}

/// What the cache holds in one place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cached {
    key: ShortKey,
    flow: Flow,
}

/// Places of the cache.
const PLACES: u32 = 256;

#[map]
static COPIES: PerCpuArray<Cached> = PerCpuArray::with_max_entries(PLACES, 0);
#[map]
static BEHIND: PerCpuHashMap<ShortKey, Flow> = PerCpuHashMap::with_max_entries(1, 0);

/// A small per-CPU cache in front of a per-CPU hash: a hit needs no hash, a miss writes the old flow back.
#[xdp(frags)]
#[inline(always)]
pub fn cache(ctx: XdpContext) -> u32 {
    let Some(mut p) = parsed(&ctx) else { return XDP_PASS };
    let Some(key) = short_key(&ctx, &p) else { return XDP_PASS };
    let mixed = p.dest_qp.wrapping_mul(0x9e37_79b1) ^ u32::from_le_bytes(key.src).wrapping_mul(0x85eb_ca6b);
    let Some(place) = COPIES.get_ptr_mut(mixed >> 24 & (PLACES - 1)) else { return XDP_PASS };
    // SAFETY: this CPU's element.
    let place = unsafe { &mut *place };
    let same = place.key.src == key.src
        && place.key.dst == key.dst
        && place.key.dest_qp == key.dest_qp
        && place.key.src_qp == key.src_qp;
    if !same {
        let map = core::ptr::from_ref(&BEHIND).cast_mut().cast();
        if place.flow.first != 0 {
            // SAFETY: the map's own types.
            unsafe {
                bpf_map_update_elem(map, (&raw const place.key).cast(), (&raw const place.flow).cast(), 0);
            }
        }
        let old = match BEHIND.get_ptr(&key) {
            Some(f) => f,
            None => match FRESH.get_ptr(0) {
                Some(f) => f,
                None => return XDP_PASS,
            },
        };
        // SAFETY: both are whole elements. Word by word: a copy of this size must not become a call
        unsafe {
            let (from, to) = (old.cast::<u64>(), (&raw mut place.flow).cast::<u64>());
            let mut i = 0;
            while i < size_of::<Flow>() / 8 {
                to.add(i).write_volatile(from.add(i).read_volatile());
                i += 1;
            }
        }
        place.key = key;
    }
    counted(&ctx, &mut place.flow, &mut p, coarse());
    XDP_PASS
}

#[inline(always)]
fn add<K>(map: *mut aya_ebpf::cty::c_void, key: &K) -> Option<()> {
    let fresh = FRESH.get_ptr(0)?;
    // SAFETY: the caller passes a map with this key type and flows as values.
    let r = unsafe { bpf_map_update_elem(map, core::ptr::from_ref(key).cast(), fresh.cast(), 1) };
    (r == 0).then_some(())
}
