//! Which of the rules that match fires: nth, chance, bursts, queues, limits.

use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use roce_ebpf::abi::fault::{self as abi, CERTAIN, FaultConfig, FaultRule, FaultState, FaultStateKey, MAX_RULES, draw};

use super::history::Seen;
use super::{FAULT_CONFIG, FAULT_COUNTERS, FAULT_RULES, FAULT_STATES, FAULT_TALLIES, FAULT_UNTOUCHED, bump, tally};
use crate::kernel::atomic::{fetch_add, replace};
use crate::kernel::roce::Parsed;

#[inline(always)]
pub(super) fn state(flow: u32, rule: u32) -> Option<*mut FaultState> {
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

/// What [`fault_fires`] needs to know of the packet; by way of memory, since the verifier looks at a function with
/// numbers as arguments once, however often it is called.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Asked {
    seen: Seen,
    psn: u32,
    wire_len: u32,
}

#[map]
static FAULT_ASKED: PerCpuArray<Asked> = PerCpuArray::with_max_entries(1, 0);

/// The first rule that fires, plus one; 0 none.
#[inline(always)]
pub(super) fn chosen(p: &Parsed, seen: &Seen, full: u64, scope: u64) -> u32 {
    let Some(asked) = FAULT_ASKED.get_ptr_mut(0) else { return 0 };
    // SAFETY: a per-CPU element: this CPU alone uses it.
    unsafe { asked.write(Asked { seen: *seen, psn: p.psn, wire_len: p.wire_len }) };
    let mut left = full | scope;
    let mut wanted = full;
    let mut cared = scope;
    let mut i = 0;
    while i < MAX_RULES as u32 {
        if left == 0 {
            break;
        }
        if left & 1 != 0 && fault_fires(i, (wanted & 1) as u32, (cared & 1) as u32) != 0 {
            return i + 1;
        }
        left >>= 1;
        wanted >>= 1;
        cared >>= 1;
        i += 1;
    }
    0
}

/// Whether rule `i` fires, 1 or 0: `full` says that it matches, `scope` that it must see the packet.
///
/// A function of its own in the kernel, verified by itself and once.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn fault_fires(i: u32, full: u32, scope: u32) -> u32 {
    let Some(asked) = FAULT_ASKED.get_ptr_mut(0) else { return 0 };
    let Some(config) = FAULT_CONFIG.get(0) else { return 0 };
    let Some(rule) = FAULT_RULES.get(i) else { return 0 };
    // SAFETY: a per-CPU element that the caller has filled.
    fires(unsafe { &*asked }, config, i, rule, full != 0, scope != 0) as u32
}

#[inline(always)]
fn fires(p: &Asked, config: &FaultConfig, i: u32, rule: &FaultRule, full: bool, scope: bool) -> bool {
    let seen = &p.seen;
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
pub(super) unsafe fn occupy(at: *mut u64, now: u64, cost: u64) -> u64 {
    // SAFETY: the caller vouches for `at`.
    unsafe {
        if at.read_volatile() < now {
            at.write_volatile(now);
        }
        fetch_add(at, cost).saturating_sub(now)
    }
}
