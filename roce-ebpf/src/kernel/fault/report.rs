//! What was done, and what came by: the records in the rings.

use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use roce_ebpf::abi::fault::{
    self as abi, FaultConfig, FaultEvent, FaultFlowKey, FaultFrame, FaultLongFrame, FaultOpcode, FaultWatch, FrameHead,
    HEADER_BYTES,
};

use super::apply::apply;
use super::history::Seen;
use super::hook::Act;
use super::{
    FAULT_COUNTERS, FAULT_EVENTS, FAULT_FRAMES, FAULT_RULES, FAULT_TALLIES, FAULT_WATCH, Verdict, bump, tally,
};
use crate::kernel::atomic::fetch_add;
use crate::kernel::ctx::Ctx;
use crate::kernel::roce::Parsed;

/// Does what the rule says, and reports it; `None` if the packet has not what the action needs.
#[inline(always)]
pub(super) fn act<C: Act>(
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
        (*event).direction = p.direction;
        (*event).ifindex = ctx.ifindex();
        (*event).psn = p.psn;
        (*event).occurrence = seen.occurrence as u32;
        (*event).opcode = p.opcode as u32;
        (*event).length = ctx.buffer_len();
        (*event).bth = p.bth_at as u32;
        (*event).tag = ctx.lifted_tag();
        (*event).pad = 0;
        (*event).before_len = ctx.head::<HEADER_BYTES>((&raw mut (*event).before).cast());
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
            (*event).after_len = ctx.head::<HEADER_BYTES>((&raw mut (*event).after).cast());
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
                let len = ctx.head::<{ $room }>((&raw mut (*record).bytes).cast());
                core::ptr::write(&raw mut (*record).head, FrameHead { serial, len, tag: ctx.lifted_tag() });
            }
            slot.submit(0);
            true
        }
    };
}

frame!(short_frame, FaultFrame, abi::FRAME_BYTES);
frame!(long_frame, FaultLongFrame, abi::LONG_FRAME_BYTES);

/// Reports the packet as it leaves.
#[inline(always)]
pub(super) fn watch<C: Act>(ctx: &C, p: &Parsed, verdict: Verdict, rule: u32) {
    let Some(mut slot) = FAULT_WATCH.reserve::<FaultWatch>(0) else {
        bump!(watch_lost);
        return;
    };
    let w = slot.as_mut_ptr();
    // SAFETY: the slot is as large as the record, and every field that is read is written.
    unsafe {
        (*w).at_ns = bpf_ktime_get_ns();
        (*w).length = ctx.buffer_len();
        (*w).direction = p.direction;
        (*w).ifindex = ctx.ifindex();
        (*w).dropped = (verdict == Verdict::Drop) as u32;
        (*w).rule = rule;
        (*w).tag = ctx.lifted_tag();
        (*w).pad = 0;
        (*w).head_len = ctx.head::<HEADER_BYTES>((&raw mut (*w).head).cast());
    }
    slot.submit(0);
}
