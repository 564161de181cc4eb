//! What core lacks for this target: atomic operations, and memory that the compiler does not see through.

use core::arch::asm;

/// Adds, and returns what was there before; atomic over all CPUs.
///
/// # Safety
/// `p` must point into a map value.
#[inline(always)]
pub unsafe fn fetch_add(p: *mut u64, n: u64) -> u64 {
    let mut v = n;
    // SAFETY: the caller vouches for `p`; map values are aligned to eight bytes.
    // core has no atomic add for this target
    unsafe {
        asm!("{v} = atomic_fetch_add((u64 *)({p} + 0), {v})", p = in(reg) p, v = inout(reg) v, options(nostack));
    }
    v
}

/// The same pointer, of whose memory the compiler knows nothing any more.
#[inline(always)]
pub fn forget<T>(mut p: *mut T) -> *mut T {
    // SAFETY: changes nothing. No instruction at all would do, but then two lines of source stand at one place of the program,
    // which the kernel takes for an error.
    unsafe { asm!("{p} = {p}", p = inout(reg) p, options(nostack)) };
    p
}

/// Writes `new` if the value is still `old`; whether it was. Atomic over all CPUs.
///
/// # Safety
/// `p` must point into a map value.
#[inline(always)]
pub unsafe fn replace(p: *mut u64, old: u64, new: u64) -> bool {
    let found: u64;
    // SAFETY: the caller vouches for `p`; map values are aligned to eight bytes. The instruction works on r0.
    unsafe {
        asm!(
            "r0 = cmpxchg_64({p} + 0, r0, {new})",
            p = in(reg) p,
            new = in(reg) new,
            inout("r0") old => found,
            options(nostack)
        );
    }
    found == old
}
