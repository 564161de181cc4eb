//! What a hook can do to a packet: XDP and TC.

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::{BPF_F_INGRESS, BPF_F_MARK_MANGLED_0, BPF_F_RECOMPUTE_CSUM};
use aya_ebpf::helpers::generated::{
    bpf_clone_redirect, bpf_l4_csum_replace, bpf_skb_change_tail, bpf_skb_store_bytes, bpf_xdp_adjust_tail,
    bpf_xdp_store_bytes,
};
use aya_ebpf::programs::{TcContext, XdpContext};
use roce_ebpf::abi::fault::CLONE_MARK;
use roce_ebpf::checksum;

use crate::kernel::ctx::Ctx;

/// What an action needs of a hook.
pub trait Act: Ctx {
    /// Whether this is a copy made by [`Act::duplicate`]; takes the mark off.
    fn is_clone(&self) -> bool;
    /// Interface index.
    fn ifindex(&self) -> u32;
    /// Overwrites bytes. `neutral` says that the Internet checksum over the whole packet stays the same
    /// (because a checksum in it is changed as well).
    fn store<const N: usize>(&self, at: u32, bytes: &[u8; N], neutral: bool) -> bool;
    /// Keeps the UDP checksum at `at` right after a 16-bit word under it changed.
    fn fix_udp(&self, at: u32, old: u16, new: u16) -> bool;
    /// Cuts the frame to `len` bytes, which are fewer than it has.
    fn truncate(&self, len: u32) -> bool;
    /// Sends a copy the same way, out or in.
    fn duplicate(&self, out: bool) -> bool;
}

impl Act for XdpContext {
    #[inline(always)]
    fn is_clone(&self) -> bool {
        false
    }

    #[inline(always)]
    fn ifindex(&self) -> u32 {
        self.ingress_ifindex() as u32
    }

    #[inline(always)]
    fn store<const N: usize>(&self, at: u32, bytes: &[u8; N], _neutral: bool) -> bool {
        // SAFETY: the context is the kernel's; the N bytes are there.
        unsafe { bpf_xdp_store_bytes(self.ctx, at, bytes.as_ptr().cast_mut().cast(), N as u32) == 0 }
    }

    #[inline(always)]
    fn fix_udp(&self, at: u32, old: u16, new: u16) -> bool {
        let Some(sum) = load::<2, Self>(self, at) else { return false };
        let sum = checksum::update_udp(u16::from_be_bytes(sum), old, new);
        self.store(at, &sum.to_be_bytes(), true)
    }

    #[inline(always)]
    fn truncate(&self, len: u32) -> bool {
        let less = len as i32 - self.buffer_len() as i32;
        // SAFETY: the context is the kernel's.
        unsafe { bpf_xdp_adjust_tail(self.ctx, less) == 0 }
    }

    #[inline(always)]
    fn duplicate(&self, _out: bool) -> bool {
        // an XDP program cannot make packets; the loader takes TC for such rules
        false
    }
}

impl Act for TcContext {
    #[inline(always)]
    fn is_clone(&self) -> bool {
        // SAFETY: plain context fields.
        unsafe {
            if (*self.skb.skb).mark != CLONE_MARK {
                return false;
            }
            (*self.skb.skb).mark = 0;
        }
        true
    }

    #[inline(always)]
    fn ifindex(&self) -> u32 {
        // SAFETY: a plain context field.
        unsafe { (*self.skb.skb).ifindex }
    }

    #[inline(always)]
    fn store<const N: usize>(&self, at: u32, bytes: &[u8; N], neutral: bool) -> bool {
        let flags = if neutral { 0 } else { BPF_F_RECOMPUTE_CSUM as u64 };
        // SAFETY: the context is the kernel's; the N bytes are there.
        unsafe { bpf_skb_store_bytes(self.as_ptr().cast(), at, bytes.as_ptr().cast(), N as u32, flags) == 0 }
    }

    #[inline(always)]
    fn fix_udp(&self, at: u32, old: u16, new: u16) -> bool {
        // the helper knows about sums that the device is still to fill in
        let flags = BPF_F_MARK_MANGLED_0 as u64 | 2;
        let (old, new) = (u64::from(old.to_be()), u64::from(new.to_be()));
        // SAFETY: the context is the kernel's.
        unsafe { bpf_l4_csum_replace(self.as_ptr().cast(), at, old, new, flags) == 0 }
    }

    #[inline(always)]
    fn truncate(&self, len: u32) -> bool {
        // SAFETY: the context is the kernel's.
        unsafe { bpf_skb_change_tail(self.as_ptr().cast(), len, 0) == 0 }
    }

    #[inline(always)]
    fn duplicate(&self, out: bool) -> bool {
        let flags = if out { 0 } else { BPF_F_INGRESS as u64 };
        let skb = self.skb.skb;
        // SAFETY: the context is the kernel's. The copy passes this program again and is known by its mark.
        unsafe {
            let mark = (*skb).mark;
            (*skb).mark = CLONE_MARK;
            let sent = bpf_clone_redirect(skb, (*skb).ifindex, flags) == 0;
            (*skb).mark = mark;
            sent
        }
    }
}

#[inline(always)]
pub(super) fn load<const N: usize, C: Ctx>(ctx: &C, at: u32) -> Option<[u8; N]> {
    let mut out = [0; N];
    // SAFETY: `out` has N bytes.
    unsafe { ctx.load(at, out.as_mut_ptr(), N as u32) }.then_some(out)
}
