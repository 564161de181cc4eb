//! What happens to a packet: bytes change, and the checksums with them.

use dissector::wire::outer::UDP_LEN;
use dissector::wire::{Bth, Header};
use roce_ebpf::abi::Direction;
use roce_ebpf::abi::fault::{self as abi, Action, FaultConfig, FaultOpcode, FaultRule};
use roce_ebpf::checksum;

use super::Verdict;
use super::hook::{Act, load};
use crate::kernel::outer::Net;
use crate::kernel::roce::Parsed;

/// `None` if the packet has not what the action needs.
#[inline(always)]
pub(super) fn apply<C: Act>(
    ctx: &C,
    p: &Parsed,
    config: &FaultConfig,
    opcode: &FaultOpcode,
    rule: &FaultRule,
) -> Option<Verdict> {
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
        Action::Duplicate => ctx.duplicate(p.direction == Direction::Out as u32),
    };
    done.then_some(Verdict::Pass)
}

/// TOS or traffic class; the IPv4 header checksum follows. The ICRC does not cover it.
#[inline(always)]
pub(super) fn set_tos<C: Act>(ctx: &C, p: &Parsed, tos: u8) -> bool {
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
pub(super) fn fix_ipv4<C: Act>(ctx: &C, net: u32, old: u16, new: u16) -> bool {
    let Some(sum) = load::<2, C>(ctx, net + 10) else { return false };
    ctx.store(net + 10, &checksum::update(u16::from_be_bytes(sum), old, new).to_be_bytes(), true)
}

/// Over IPv4 the identification is inverted: the ICRC covers it, and nobody else minds. Elsewhere a bit of the
/// ICRC itself flips, which lies where the length field says, not at the end of the frame.
#[inline(always)]
pub(super) fn fail_icrc<C: Act>(ctx: &C, p: &Parsed) -> bool {
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
pub(super) fn corrupt<C: Act>(ctx: &C, p: &Parsed, opcode: &FaultOpcode, rule: &FaultRule) -> bool {
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
pub(super) fn flip<C: Act>(ctx: &C, p: &Parsed, at: u32, bits: u8) -> bool {
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
