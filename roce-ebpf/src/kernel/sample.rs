//! Packets that are worth a look, into the event ring.

use aya_ebpf::helpers::generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns};
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use roce_ebpf::abi::Totals;
use roce_ebpf::abi::event::{self, EventHead, LongEvent, ShortEvent, kind};

use super::ctx::Ctx;
use super::roce::Parsed;
use super::{EVENT_RING, ROCE_EVENTS, ROCE_SAMPLE_EVERY, ROCE_SNAPLEN};

/// RoCE packets of this CPU since the last one sampled.
#[map]
static SAMPLED: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);

/// Reports the packet if it is of a kind that was asked for, or the n-th.
#[inline(always)]
pub fn report<C: Ctx>(ctx: &C, totals: &mut Totals, p: &Parsed) {
    let mut kinds = p.report & ROCE_EVENTS.load();
    let every = ROCE_SAMPLE_EVERY.load();
    if every != 0 && nth(every) {
        kinds |= kind::SAMPLE;
    }
    if kinds == 0 {
        return;
    }
    // a management datagram is short and says who talks to whom: it is kept whole
    let written = if kinds & kind::MAD != 0 || ROCE_SNAPLEN.load() > event::SHORT as u32 {
        long(ctx, p, kinds)
    } else {
        short(ctx, p, kinds)
    };
    if !written {
        totals.events_lost += 1;
    }
}

#[inline(always)]
fn nth(every: u32) -> bool {
    let Some(n) = SAMPLED.get_ptr_mut(0) else { return false };
    // SAFETY: a per-CPU element, this CPU alone writes it.
    unsafe {
        *n += 1;
        if *n < every {
            return false;
        }
        *n = 0;
    }
    true
}

#[inline(always)]
fn head(p: &Parsed, kinds: u32, cap_len: u32, tag: u32) -> EventHead {
    EventHead {
        // SAFETY: no arguments, no effects.
        at: unsafe { bpf_ktime_get_ns() },
        kinds,
        wire_len: p.wire_len,
        psn: p.psn,
        dest_qp: p.dest_qp,
        // SAFETY: no arguments, no effects.
        cpu: unsafe { bpf_get_smp_processor_id() },
        cap_len: cap_len as u16,
        bth_at: p.bth_at as u16,
        opcode: p.opcode,
        direction: p.direction as u8,
        pad: [0; 2],
        missing: p.missing,
        tag,
        pad2: [0; 4],
    }
}

macro_rules! writer {
    ($name:ident, $event:ty, $room:expr) => {
        #[inline(always)]
        fn $name<C: Ctx>(ctx: &C, p: &Parsed, kinds: u32) -> bool {
            let Some(mut slot) = EVENT_RING.reserve::<$event>(0) else { return false };
            let event = slot.as_mut_ptr();
            // SAFETY: the slot is as large as the event; of its bytes only those are read that were written.
            let copied = unsafe {
                // the frame as it is in memory: a tag that was lifted out is not in it
                let len = ctx.head::<{ $room }>((&raw mut (*event).bytes).cast());
                core::ptr::write(&raw mut (*event).head, head(p, kinds, len, ctx.lifted_tag()));
                len > 0
            };
            if copied {
                slot.submit(0);
            } else {
                slot.discard(0);
            }
            copied
        }
    };
}

writer!(short, ShortEvent, event::SHORT);
writer!(long, LongEvent, event::LONG);
