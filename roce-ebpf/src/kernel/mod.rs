//! Programs and maps; and the funnel that they share: outer headers, BTH, key, count, report, fault.

mod count;
mod ctx;
mod fault;
mod outer;
mod roce;
mod sample;

use aya_ebpf::Global;
use aya_ebpf::bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC, xdp_action};
use aya_ebpf::macros::{classifier, map, xdp};
use aya_ebpf::maps::{HashMap, PerCpuArray, RingBuf};
use aya_ebpf::programs::{TcContext, XdpContext};
use dissector::wire::ROCE_UDP_PORT;
use roce_ebpf::abi::{Direction, Flow, KeyV4, KeyV6, Totals};

use self::ctx::Ctx;
use self::fault::Verdict;
use self::outer::Outer;

/// Its name is the version of the map layout ([`roce_ebpf::abi::global::ABI`]).
#[unsafe(no_mangle)]
static ROCE_ABI_1: Global<u32> = Global::new(1);
#[unsafe(no_mangle)]
static ROCE_PORT: Global<u16> = Global::new(ROCE_UDP_PORT);
#[unsafe(no_mangle)]
static ROCE_EVENTS: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static ROCE_SAMPLE_EVERY: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static ROCE_SNAPLEN: Global<u32> = Global::new(roce_ebpf::abi::event::SHORT as u32);
#[unsafe(no_mangle)]
static ROCE_FAULTS: Global<u8> = Global::new(0);

/// Sizes are what the loader sets; these are for an object that is loaded by other means.
#[map]
static FLOWS_V4: HashMap<KeyV4, Flow> = HashMap::with_max_entries(1024, 0);
#[map]
static FLOWS_V6: HashMap<KeyV6, Flow> = HashMap::with_max_entries(1024, 0);
#[map]
static TOTALS: PerCpuArray<Totals> = PerCpuArray::with_max_entries(Direction::COUNT, 0);
#[map]
static EVENT_RING: RingBuf = RingBuf::with_byte_size(1 << 20, 0);

#[xdp(frags)]
pub fn roce_xdp(ctx: XdpContext) -> u32 {
    match packet(&ctx, Direction::In) {
        Verdict::Pass => xdp_action::XDP_PASS,
        Verdict::Drop => xdp_action::XDP_DROP,
    }
}

#[classifier]
pub fn roce_tc_out(ctx: TcContext) -> i32 {
    tc(&ctx, Direction::Out)
}

#[classifier]
pub fn roce_tc_in(ctx: TcContext) -> i32 {
    tc(&ctx, Direction::In)
}

#[inline(always)]
fn tc(ctx: &TcContext, direction: Direction) -> i32 {
    // UNSPEC lets the next program of the hook decide, with TCX and with cls_bpf alike
    match packet(ctx, direction) {
        Verdict::Pass => TC_ACT_UNSPEC,
        Verdict::Drop => TC_ACT_SHOT as i32,
    }
}

/// The whole way of a packet.
#[inline(always)]
fn packet<C: Ctx>(ctx: &C, direction: Direction) -> Verdict {
    let Some(totals) = TOTALS.get_ptr_mut(direction as u32) else { return Verdict::Pass };
    // SAFETY: a per-CPU element: this CPU alone writes it, and packet programs do not interrupt each other.
    let totals = unsafe { &mut *totals };
    let mut outer = outer::walk(ctx, ROCE_PORT.load());
    if let Outer::Roce(at) = &outer
        && ctx.at::<{ roce::COUNTED }>(at.bth).is_none()
        && ctx.pull((at.bth + roce::COUNTED) as u32)
    {
        outer = outer::walk(ctx, ROCE_PORT.load());
    }
    let outer = match outer {
        Outer::Roce(at) => at,
        Outer::Fragment => {
            totals.fragments += 1;
            return count::other(ctx, totals);
        }
        Outer::Other => return count::other(ctx, totals),
    };
    let Some(mut parsed) = roce::parse(ctx, &outer, direction) else {
        totals.malformed += 1;
        return count::other(ctx, totals);
    };
    count::roce(ctx, totals, &mut parsed);
    if ROCE_FAULTS.load() != 0 { fault::decide(ctx, &parsed) } else { Verdict::Pass }
}
