//! What XDP and TC have in common: a linear piece of packet, its length on the wire, and reading beyond.

use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::generated::{bpf_skb_load_bytes, bpf_xdp_get_buff_len, bpf_xdp_load_bytes};
use aya_ebpf::programs::{TcContext, XdpContext};
use roce_ebpf::abi::counters::NO_VLAN;
use roce_ebpf::abi::tag::tag;

/// Furthest byte that a header may start at. The verifier wants a bound; two VLAN tags and four of the longest
/// IPv6 extension headers stay below.
const FURTHEST: usize = 0x3fff;

/// A packet at a hook.
pub trait Ctx: EbpfContext {
    /// First byte of the linear piece.
    fn data(&self) -> usize;
    /// Byte after the linear piece.
    fn data_end(&self) -> usize;
    /// Bytes on the wire from the link header on.
    fn wire_len(&self) -> u32;
    /// Bytes on the wire of a packet that, by its own lengths, reaches at least to `end`. What lies in the linear
    /// piece up to there has no fragments, and needs no helper to be measured.
    #[inline(always)]
    fn wire_len_of(&self, end: usize) -> u32 {
        let linear = self.data_end() - self.data();
        if Self::TELLS_BY_LINEAR && end <= linear { linear as u32 } else { self.wire_len() }
    }
    /// Whether a packet without fragments is as long as its linear piece.
    const TELLS_BY_LINEAR: bool;
    /// Bytes in memory: without a tag that was lifted out.
    fn buffer_len(&self) -> u32;
    /// VLAN tag that the network card took out of the packet: TCI, or [`NO_VLAN`].
    fn lifted_vlan(&self) -> u16;
    /// The whole of that tag, as [`roce_ebpf::abi::tag`] has it; 0 if there is none.
    fn lifted_tag(&self) -> u32;
    /// Brings `len` bytes, or as many as the packet has, into the linear piece; `false` if it had them already or cannot.
    /// Pointers made before are void.
    fn pull(&self, len: usize) -> bool;
    /// Copies bytes out, linear or not; `false` if the packet does not have them.
    ///
    /// # Safety
    /// `to` must be valid for `len` bytes.
    unsafe fn load(&self, at: u32, to: *mut u8, len: u32) -> bool;

    /// `N` bytes of the linear piece; the one bounds-checked access.
    #[inline(always)]
    fn at<const N: usize>(&self, offset: usize) -> Option<&[u8; N]> {
        if offset > FURTHEST {
            return None;
        }
        let start = self.data() + offset;
        if start + N > self.data_end() {
            return None;
        }
        // SAFETY: the N bytes end before data_end; bytes have no alignment.
        Some(unsafe { &*(start as *const [u8; N]) })
    }

    /// Copies the first bytes of the frame to `to`, as many as there are and fit; how many.
    ///
    /// # Safety
    /// `to` must have room for `ROOM` bytes.
    #[inline(always)]
    unsafe fn head<const ROOM: usize>(&self, to: *mut u8) -> u32 {
        let there = self.buffer_len();
        let len = if there < ROOM as u32 { there } else { ROOM as u32 };
        // The verifier wants a length that it can see is neither 0 nor too large. That of 6.1 learns nothing from `!= 0`,
        // so the bound is put on the length less one, which the compiler must not see through.
        let less = (len as u64).wrapping_sub(1);
        // SAFETY: a local variable.
        let less = unsafe { core::ptr::read_volatile(&raw const less) };
        // SAFETY: the caller vouches for `to`.
        if less < ROOM as u64 && unsafe { self.load(0, to, less as u32 + 1) } { less as u32 + 1 } else { 0 }
    }
}

impl Ctx for XdpContext {
    const TELLS_BY_LINEAR: bool = true;

    #[inline(always)]
    fn data(&self) -> usize {
        Self::data(self)
    }

    #[inline(always)]
    fn data_end(&self) -> usize {
        Self::data_end(self)
    }

    #[inline(always)]
    fn wire_len(&self) -> u32 {
        // SAFETY: the context is the one the kernel passed. Counts fragments too
        unsafe { bpf_xdp_get_buff_len(self.ctx) as u32 }
    }

    #[inline(always)]
    fn buffer_len(&self) -> u32 {
        self.wire_len()
    }

    #[inline(always)]
    fn lifted_vlan(&self) -> u16 {
        // XDP runs before a tag could be lifted, or cannot see that it was
        NO_VLAN
    }

    #[inline(always)]
    fn lifted_tag(&self) -> u32 {
        0
    }

    #[inline(always)]
    fn pull(&self, _len: usize) -> bool {
        false
    }

    #[inline(always)]
    unsafe fn load(&self, at: u32, to: *mut u8, len: u32) -> bool {
        // SAFETY: the caller vouches for `to`.
        unsafe { bpf_xdp_load_bytes(self.ctx, at, to.cast(), len) == 0 }
    }
}

impl Ctx for TcContext {
    const TELLS_BY_LINEAR: bool = false;

    #[inline(always)]
    fn data(&self) -> usize {
        Self::data(self)
    }

    #[inline(always)]
    fn data_end(&self) -> usize {
        Self::data_end(self)
    }

    #[inline(always)]
    fn wire_len(&self) -> u32 {
        // a tag that the device will put in is on the wire as well
        let tag = if self.lifted_vlan() == NO_VLAN { 0 } else { dissector::wire::outer::VLAN_LEN as u32 };
        self.len() + tag
    }

    #[inline(always)]
    fn buffer_len(&self) -> u32 {
        self.len()
    }

    #[inline(always)]
    fn lifted_vlan(&self) -> u16 {
        // SAFETY: plain context fields.
        unsafe { if (*self.skb.skb).vlan_present != 0 { (*self.skb.skb).vlan_tci as u16 } else { NO_VLAN } }
    }

    #[inline(always)]
    fn lifted_tag(&self) -> u32 {
        // SAFETY: plain context fields; the protocol is in network byte order.
        unsafe {
            let skb = self.skb.skb;
            if (*skb).vlan_present == 0 { 0 } else { tag((*skb).vlan_proto as u16, (*skb).vlan_tci as u16) }
        }
    }

    #[inline(always)]
    fn pull(&self, len: usize) -> bool {
        let whole = self.len() as usize;
        let len = if len > whole { whole } else { len };
        // not for nothing: the helper copies a packet that is shared
        self.data_end() - self.data() < len && self.pull_data(len as u32).is_ok()
    }

    #[inline(always)]
    unsafe fn load(&self, at: u32, to: *mut u8, len: u32) -> bool {
        // SAFETY: the caller vouches for `to`.
        unsafe { bpf_skb_load_bytes(self.as_ptr().cast(), at, to.cast(), len) == 0 }
    }
}
