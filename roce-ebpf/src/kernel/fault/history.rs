//! What a flow has seen: its first PSN, transmissions of a PSN, messages.

use aya_ebpf::bindings::BPF_NOEXIST;
use dissector::wire::Psn;
use roce_ebpf::abi::fault::{self as abi, FaultFlow, FaultFlowKey, FaultOpcode, FaultSeen, FaultSeenKey};

use super::{FAULT_BLANK, FAULT_COUNTERS, FAULT_FLOWS, FAULT_SEEN, bump};
use crate::kernel::atomic::fetch_add;
use crate::kernel::roce::Parsed;

/// What is known of the flow and the PSN once the history has been looked up.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Seen {
    /// [`FaultFlow::id`].
    pub(super) flow: u32,
    /// [`FaultFlowKey::hash`].
    pub(super) hash: u64,
    pub(super) space: u32,
    /// PSN counted from the flow's first, modulo 2^24.
    pub(super) relative: u32,
    pub(super) occurrence: u64,
    pub(super) message: u64,
}

/// Looks the flow and the PSN up, and counts this packet in. `None` if there is no room for the flow.
#[inline(always)]
pub(super) fn history(p: &Parsed, opcode: &FaultOpcode, key: &FaultFlowKey, space: u32) -> Option<Seen> {
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
pub(super) fn flow(key: &FaultFlowKey) -> Option<*mut FaultFlow> {
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
