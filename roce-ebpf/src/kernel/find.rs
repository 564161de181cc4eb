//! From a packet to the slot of its flow.
//!
//! Three steps, each rarer and dearer than the one before: a small cache of slot numbers on each CPU (right
//! if the flow in that slot has the packet's key, so that nothing ever has to be thrown out of it); a hash from key to
//! slot; a new slot.

use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;
use aya_ebpf::maps::HashMap;
use dissector::wire::bytes::part;
use roce_ebpf::abi::counters::PLACES;
use roce_ebpf::abi::key::{ALL_CPUS, family};
use roce_ebpf::abi::{Flow, PerCpu};

use super::atomic::fetch_add;
use super::ctx::Ctx;
use super::outer::Net;
use super::roce::Parsed;
use super::{FLOWS, FREE, ROCE_MAX_FLOWS, SLOTS_V4, SLOTS_V6, USED};

const BPF_ANY: u64 = 0;
const BPF_NOEXIST: u64 = 1;

/// The entry of a packet's flow and CPU, with its home settled; `None` if there is no room for it.
#[inline(always)]
pub fn flow<'a, C: Ctx>(ctx: &C, p: &Parsed, mine: &mut PerCpu) -> Option<&'a mut Flow> {
    if mine.cpu == 0 {
        // SAFETY: no arguments, no effects.
        mine.cpu = unsafe { bpf_get_smp_processor_id() } + 1;
    }
    match p.kind {
        Net::V4 => v4(ctx, p, mine),
        Net::V6 => v6(ctx, p, mine, family::V6),
        Net::Grh => v6(ctx, p, mine, family::GID),
    }
}

/// Two halves of a word, in the order of a struct's fields.
#[inline(always)]
pub const fn pair(first: u32, second: u32) -> u64 {
    if cfg!(target_endian = "little") {
        first as u64 | (second as u64) << 32
    } else {
        (first as u64) << 32 | second as u64
    }
}

/// The words that both kinds of key begin with. Made in registers: a key that is stored by its fields and
/// read back by words costs the CPU a wait for its own stores.
#[inline(always)]
fn head(p: &Parsed, mine: &PerCpu, family: u16) -> (u64, u64) {
    (pair(p.dest_qp, p.src_qp), place_of(mine, p.way() as u32, family))
}

/// The second word of a key.
#[inline(always)]
pub fn place_of(mine: &PerCpu, direction: u32, family: u16) -> u64 {
    let family = u32::from(family);
    let place = if cfg!(target_endian = "little") { direction | family << 16 } else { direction << 16 | family };
    pair(mine.cpu.wrapping_sub(1), place)
}

#[inline(always)]
fn v4<'a, C: Ctx>(ctx: &C, p: &Parsed, mine: &mut PerCpu) -> Option<&'a mut Flow> {
    let (a, b) = head(p, mine, family::V4);
    // source and destination stand beside each other
    let c = u64::from_ne_bytes(*ctx.at::<8>(p.net_at + 12)?);
    let mut place = place(mine, a ^ c);
    let cached = FLOWS.get_ptr_mut(place.slot().wrapping_sub(1));
    if let Some(f) = cached {
        // SAFETY: the CPU is part of the key: if it is this flow, nothing else writes it.
        let f = unsafe { &mut *f };
        if f.key[0] == a && f.key[1] == b && f.key[2] == c && settled(f, place.slot()) {
            return Some(f);
        }
    }
    let (f, fresh) = find(&SLOTS_V4, &[a, b, c], &mut place)?;
    if fresh {
        f.key = [a, b, c, 0, 0, 0];
    }
    if !settled(f, place.slot()) {
        f.home = home(&SLOTS_V4, &[a, everywhere(b), c], f, place.slot());
    }
    Some(f)
}

#[inline(always)]
fn v6<'a, C: Ctx>(ctx: &C, p: &Parsed, mine: &mut PerCpu, family: u16) -> Option<&'a mut Flow> {
    let (a, b) = head(p, mine, family);
    // source and destination stand beside each other
    let addresses = ctx.at::<32>(p.net_at + 8)?;
    let c = u64::from_ne_bytes(*part::<0, 8, 32>(addresses));
    let d = u64::from_ne_bytes(*part::<8, 8, 32>(addresses));
    let e = u64::from_ne_bytes(*part::<16, 8, 32>(addresses));
    let g = u64::from_ne_bytes(*part::<24, 8, 32>(addresses));
    let mut place = place(mine, a ^ d ^ g);
    let cached = FLOWS.get_ptr_mut(place.slot().wrapping_sub(1));
    if let Some(f) = cached {
        // SAFETY: as above.
        let f = unsafe { &mut *f };
        let same = f.key[0] == a && f.key[1] == b && f.key[2] == c;
        if same && f.key[3] == d && f.key[4] == e && f.key[5] == g && settled(f, place.slot()) {
            return Some(f);
        }
    }
    let words = [a, b, c, d, e, g];
    let (f, fresh) = find(&SLOTS_V6, &words, &mut place)?;
    if fresh {
        f.key = words;
    }
    if !settled(f, place.slot()) {
        f.home = home(&SLOTS_V6, &[a, everywhere(b), c, d, e, g], f, place.slot());
    }
    Some(f)
}

/// The second word of a key, for all CPUs.
#[inline(always)]
const fn everywhere(b: u64) -> u64 {
    b | pair(ALL_CPUS, 0)
}

/// The entry that keeps the PSNs of a settled one.
#[inline(always)]
pub fn keeper<'a>(home: u32) -> Option<&'a mut Flow> {
    // SAFETY: what several CPUs may write at once says so where it is written; every number is whole.
    FLOWS.get_ptr_mut(home.wrapping_sub(1)).map(|f| unsafe { &mut *f })
}

/// Whether the entry in slot `own - 1` knows who keeps its PSNs: itself, or one that still is of this flow (user space
/// may have taken it away).
#[inline(always)]
fn settled(f: &Flow, own: u32) -> bool {
    f.home == own || FLOWS.get(f.home.wrapping_sub(1)).is_some_and(|keeper| together(keeper, f))
}

/// Whether two entries are of one flow, whatever their CPUs.
#[inline(always)]
fn together(x: &Flow, y: &Flow) -> bool {
    let same = x.key[0] == y.key[0] && everywhere(x.key[1]) == everywhere(y.key[1]) && x.key[2] == y.key[2];
    same && x.key[3] == y.key[3] && x.key[4] == y.key[4] && x.key[5] == y.key[5]
}

/// The slot, plus 1, of the entry that keeps the PSNs of a flow: the first CPU's that asked.
#[inline(always)]
fn home<K>(slots: &HashMap<K, u32>, key: &K, f: &Flow, own: u32) -> u32 {
    let mut mode = BPF_NOEXIST;
    if let Some(s) = slots.get_ptr(key) {
        // SAFETY: a map value; another CPU may write it, a whole number.
        let slot = unsafe { s.read_volatile() };
        if FLOWS.get(slot).is_some_and(|keeper| together(keeper, f)) {
            return slot.wrapping_add(1);
        }
        mode = BPF_ANY;
    }
    if slots.insert(key, own.wrapping_sub(1), mode).is_err() {
        // another CPU was faster; or there is no memory, and then each CPU follows by itself
        if let Some(s) = slots.get_ptr(key) {
            // SAFETY: as above.
            return unsafe { *s }.wrapping_add(1);
        }
    }
    own
}

/// Bits of a cell that hold a slot, plus 1; the others hold the tag.
const SLOT: u32 = 0x00ff_ffff;

/// A cell of the cache, and what tells the keys apart that fall into it.
pub struct Place<'a> {
    cell: &'a mut u32,
    tag: u32,
}

impl Place<'_> {
    /// The slot, plus 1, that was kept for this key, or for one that looks like it; 0 if there is none. Without the tag the key in
    /// the slot would be read to find out that it is another one's, and among many flows that waits for memory.
    #[inline(always)]
    pub fn slot(&self) -> u32 {
        let slot = *self.cell ^ self.tag;
        if slot <= SLOT { slot } else { 0 }
    }

    /// Keeps a slot, plus 1.
    #[inline(always)]
    pub fn keep(&mut self, slot: u32) {
        // a slot beyond is found by the hash each time
        *self.cell = if slot <= SLOT { self.tag | slot } else { 0 };
    }
}

/// The cell of the cache for a key, by words of it that differ from flow to flow.
#[inline(always)]
pub fn place(mine: &mut PerCpu, mixed: u64) -> Place<'_> {
    // the upper bits of the product depend on all bits of the factor
    let hash = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (hash >> 40) as usize & (PLACES - 1);
    Place { cell: &mut mine.cache[n], tag: (hash >> 32) as u32 & !SLOT }
}

/// The slot of a key by the hash, or a new one; whether it is new.
#[inline(always)]
fn find<'a, K>(slots: &HashMap<K, u32>, key: &K, place: &mut Place<'_>) -> Option<(&'a mut Flow, bool)> {
    let (slot, fresh) = match slots.get_ptr(key) {
        // SAFETY: written before it was inserted, never after.
        Some(s) => (unsafe { *s }, false),
        None => {
            let slot = take()?;
            if slots.insert(key, slot, BPF_NOEXIST).is_err() {
                // the hash is as large as the table, so this is lack of memory
                let _lost = FREE.push(slot, 0);
                return None;
            }
            (slot, true)
        }
    };
    place.keep(slot.wrapping_add(1));
    // SAFETY: the CPU is part of the key: nothing else writes this flow.
    FLOWS.get_ptr_mut(slot).map(|f| (unsafe { &mut *f }, fresh))
}

/// A slot that nobody has: never used, or given back by user space, which has cleared it.
#[inline(always)]
fn take() -> Option<u32> {
    let used = USED.get_ptr_mut(0)?;
    let max = u64::from(ROCE_MAX_FLOWS.load());
    // SAFETY: a map value, changed by atomic adds only.
    unsafe {
        if used.read_volatile() < max {
            let slot = fetch_add(used, 1);
            if slot < max {
                return Some(slot as u32);
            }
        }
    }
    FREE.pop().ok().flatten()
}
