//! Which rules a packet meets by itself: queue pair, addresses, interface, PSN, size.

use dissector::wire::bytes::part;
use dissector::wire::outer::{IPV4_LEN, IPV6_LEN};
use roce_ebpf::abi::fault::{ANY_QPN, FaultConfig, FaultFlowKey, MAX_RULES, PICKS};
use roce_ebpf::abi::key::NO_QP;

use super::{FAULT_MASKS, FAULT_MATCHES, FAULT_PICKS, FAULT_SYNDROMES};
use crate::kernel::ctx::Ctx;
use crate::kernel::outer::Net;
use crate::kernel::roce::Parsed;

#[inline(always)]
pub(super) fn told_by(syndrome: u8) -> u64 {
    FAULT_SYNDROMES.get(syndrome as u32).copied().unwrap_or(0)
}

/// Rules that may match by the picked bytes of the addresses.
#[inline(always)]
pub(super) fn by_addresses<C: Ctx>(ctx: &C, p: &Parsed, config: &FaultConfig) -> Option<u64> {
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
pub(super) fn key<C: Ctx>(ctx: &C, p: &Parsed) -> Option<FaultFlowKey> {
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
    Some(FaultFlowKey { src, dst, dest_qp: p.dest_qp, src_qp, direction: p.direction, pad: 0 })
}

#[inline(always)]
pub(super) fn mapped(v4: &[u8; 4]) -> [u64; 2] {
    let [a, b, c, d] = *v4;
    [0, u64::from_ne_bytes([0, 0, 0xff, 0xff, a, b, c, d])]
}

#[inline(always)]
pub(super) fn words(v6: &[u8; 16]) -> [u64; 2] {
    [u64::from_ne_bytes(*part::<0, 8, 16>(v6)), u64::from_ne_bytes(*part::<8, 8, 16>(v6))]
}

/// Which of the rules match by queue pair, address, interface, PSN and size; the latter two do not matter for `scope`.
#[inline(always)]
pub(super) fn matching(p: &Parsed, ifindex: u32, key: &FaultFlowKey, full: u64, scope: u64) -> Option<(u64, u64)> {
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
            && (m.dest_qp == p.dest_qp || m.dest_qp == ANY_QPN)
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
