//! Programs and maps; and the funnel that they share: outer headers, BTH, key, count, report, fault.

pub mod atomic;
pub mod count;
pub mod ctx;
mod fault;
mod find;
mod known;
pub mod outer;
pub mod roce;
mod sample;

use aya_ebpf::Global;
use aya_ebpf::bindings::{TC_ACT_UNSPEC, xdp_action};
use aya_ebpf::macros::{classifier, map, xdp};
use aya_ebpf::maps::{Array, HashMap, PerCpuArray, Queue, RingBuf};
use aya_ebpf::programs::{TcContext, XdpContext};
use aya_log_ebpf::warn;
use dissector::wire::ROCE_UDP_PORT;
use roce_ebpf::abi::{Direction, Flow, KeyV4, KeyV6, PerCpu};

use self::ctx::Ctx;
use self::known::Way;
use self::outer::Outer;

/// Its name is the version of the map layout ([`roce_ebpf::abi::global::ABI`]).
#[unsafe(no_mangle)]
static ROCE_ABI_6: Global<u32> = Global::new(roce_ebpf::abi::global::ABI_VERSION);
#[unsafe(no_mangle)]
static ROCE_PORT: Global<u16> = Global::new(ROCE_UDP_PORT);
#[unsafe(no_mangle)]
static ROCE_MAX_FLOWS: Global<u32> = Global::new(1024);
#[unsafe(no_mangle)]
static ROCE_EVENTS: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static ROCE_SAMPLE_EVERY: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static ROCE_SNAPLEN: Global<u32> = Global::new(roce_ebpf::abi::event::SHORT as u32);

/// User space reads the flows without a system call.
const BPF_F_MMAPABLE: u32 = 1 << 10;

/// Sizes are what the loader sets; these are for an object that is loaded by other means.
#[map]
static FLOWS: Array<Flow> = Array::with_max_entries(1024, BPF_F_MMAPABLE);
#[map]
static SLOTS_V4: HashMap<[u64; size_of::<KeyV4>() / 8], u32> = HashMap::with_max_entries(1024, 0);
#[map]
static SLOTS_V6: HashMap<[u64; size_of::<KeyV6>() / 8], u32> = HashMap::with_max_entries(1024, 0);
#[map]
static USED: Array<u64> = Array::with_max_entries(1, 0);
#[map]
static FREE: Queue<u32> = Queue::with_max_entries(1024, 0);
#[map]
static CPUS: PerCpuArray<PerCpu> = PerCpuArray::with_max_entries(1, 0);
#[map]
static EVENT_RING: RingBuf = RingBuf::with_byte_size(1 << 20, 0);

#[xdp(frags)]
#[inline(always)]
pub fn roce_xdp(ctx: XdpContext) -> u32 {
    packet(&ctx, Direction::In);
    xdp_action::XDP_PASS
}

#[classifier]
#[inline(always)]
pub fn roce_tc_out(ctx: TcContext) -> i32 {
    packet(&ctx, Direction::Out);
    // lets the next program of the hook decide, with TCX and with cls_bpf alike
    TC_ACT_UNSPEC
}

#[classifier]
#[inline(always)]
pub fn roce_tc_in(ctx: TcContext) -> i32 {
    packet(&ctx, Direction::In);
    TC_ACT_UNSPEC
}

/// The whole way of a packet.
#[inline(always)]
pub fn packet<C: Ctx>(ctx: &C, direction: Direction) {
    let Some(mine) = CPUS.get_ptr_mut(0) else { return };
    // SAFETY: a per-CPU element: this CPU alone writes it, and packet programs do not interrupt each other.
    let mine = unsafe { &mut *mine };
    let outer = match known::packet(ctx, mine, direction) {
        Way::Done => return,
        Way::Other(end) => return count::other(ctx, &mut mine.totals[direction as usize], end),
        Way::Long => reach(ctx),
    };
    let totals = &mut mine.totals[direction as usize];
    let at = match outer {
        Outer::Roce(at) => at,
        Outer::Fragment => {
            totals.fragments += 1;
            return count::other(ctx, totals, usize::MAX);
        }
        Outer::Short | Outer::Other => return count::other(ctx, totals, usize::MAX),
    };
    let Some(parsed) = roce::parse(ctx, &at, direction) else {
        totals.malformed += 1;
        if totals.malformed == 1 {
            warn!(ctx, "the first RoCE packet on this CPU that ends before its BTH does");
        }
        return count::other(ctx, totals, usize::MAX);
    };
    count::roce(ctx, mine, parsed);
}

/// Bytes that are brought into the linear piece when it ends before the outer headers do: they and what the counters look
/// at, with two tags and all IPv4 options, or with IPv6 extension headers of the usual lengths.
const HEADERS: usize = 192;

/// Walks the outer headers, and sees to it that what follows them is in the linear piece if the packet has it. Packet
/// sockets hand out frames larger than a page with the link header alone in it.
#[inline(always)]
pub fn reach<C: Ctx>(ctx: &C) -> Outer {
    let outer = outer::walk(ctx, ROCE_PORT.load());
    let wanted = match &outer {
        Outer::Roce(at) => at.bth + roce::COUNTED,
        Outer::Short => HEADERS,
        Outer::Fragment | Outer::Other => return outer,
    };
    if ctx.pull(wanted) { outer::walk(ctx, ROCE_PORT.load()) } else { outer }
}
