//! Parts of a regular file, mapped: its pages are read where the page cache has them, without a copy. Who looks at the
//! headers of packets only touches a tenth of the bytes.
//!
//! A file that is made shorter while a part of it is mapped raises SIGBUS where the pages were. That must not end the
//! program, so a program that wants files to be mapped says so once with [`enable`]: from then on a handler puts pages
//! of zeros in the place of those that went away, notes it in the part, and the reader stops with an error at the next
//! record. A program that does not ask, or a system other than Linux, reads files through a buffer.

// with `unsafe` in the handler and around the calls of the system: the only ones of the crate
#![expect(unsafe_code, reason = "maps and signal handlers are calls of the system")]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use memmap2::{Mmap, MmapOptions};

/// What the handler knows of a mapped part; a `start` of 0 is a free slot.
struct Slot {
    taken: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    torn: AtomicBool,
}

impl Slot {
    const fn free() -> Self {
        Self {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            torn: AtomicBool::new(false),
        }
    }
}

/// Parts that can be mapped at the same time; a reader has one. Who gets none reads through a buffer.
static SLOTS: [Slot; 32] = [const { Slot::free() }; 32];

/// What was there before, and the size of a page.
static GUARD: OnceLock<Option<(libc::sigaction, usize)>> = OnceLock::new();

/// Lets readers map files, which takes a handler for SIGBUS: for a program to say when it starts. A SIGBUS that is no
/// mapped part's goes to the handler that was there before. Returns whether files are mapped from now on.
pub fn enable() -> bool {
    GUARD.get_or_init(install).is_some()
}

/// Whether files are mapped.
pub fn enabled() -> bool {
    GUARD.get().is_some_and(Option::is_some)
}

fn install() -> Option<(libc::sigaction, usize)> {
    // SAFETY: `sigaction` is plain data, for which zeros are the default action with no flags; the handler has the
    // signature that SA_SIGINFO asks for and does nothing that a handler may not do. SA_ONSTACK: it runs where std
    // lets its own handler run.
    unsafe {
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).ok().filter(|p| p.is_power_of_two())?;
        let mut before: libc::sigaction = std::mem::zeroed();
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_bus_error as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut ours.sa_mask);
        (libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut before) == 0).then_some((before, page))
    }
}

/// Zeros for what is gone of a mapped part.
extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let guard = GUARD.get().copied().flatten();
    // SAFETY: the kernel hands a handler with SA_SIGINFO a valid `siginfo_t`.
    let address = unsafe { (*info).si_addr() } as usize;
    if let Some((_, page)) = guard {
        for slot in &SLOTS {
            let (start, end) = (slot.start.load(Ordering::Relaxed), slot.end.load(Ordering::Relaxed));
            if start == 0 || !(start..end).contains(&address) {
                continue;
            }
            let first = address & !(page - 1);
            let len = end.next_multiple_of(page) - first;
            // SAFETY: from the page of the fault to the last page of the part, all of which the part's own map covers
            // and nothing else does; the part is borrowed by who touched it, so it stays until we return. The call
            // is one of the system and takes no lock of ours.
            let new = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                libc::mmap(first as *mut libc::c_void, len, libc::PROT_READ, flags, -1, 0)
            };
            if new != libc::MAP_FAILED {
                slot.torn.store(true, Ordering::Relaxed);
                return;
            }
        }
    }
    // SAFETY: puts the handler back that was there before, or the default; the instruction is tried again and finds it.
    unsafe {
        let before = guard.map_or_else(|| std::mem::zeroed(), |(before, _)| before);
        libc::sigaction(libc::SIGBUS, &raw const before, std::ptr::null_mut());
    }
}

/// A mapped part of a file.
#[derive(Debug)]
pub struct Part {
    slot: &'static Slot,
    map: Mmap,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("torn", &self.torn).finish_non_exhaustive()
    }
}

impl Part {
    /// Maps `len` bytes from `offset` on, which must lie inside the file as it is now.
    pub fn new(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        if !enabled() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // SAFETY: read only, and private to the reader that owns it. What nobody can rule out is another program that
        // changes the file meanwhile. Bytes that change are read as whatever they are then: all that is read out of a
        // capture is checked against the length of its slice, and against nothing that was read out of it earlier.
        // Pages that go away are what the handler is for; nothing touches them before they stand in a slot.
        let map = unsafe { MmapOptions::new().offset(offset).len(len).map(file)? };
        let free = |s: &&Slot| s.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let slot = SLOTS.iter().find(free).ok_or(io::ErrorKind::ResourceBusy)?;
        let start = map.as_ptr() as usize;
        slot.torn.store(false, Ordering::Relaxed);
        slot.end.store(start + map.len(), Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Ok(Self { slot, map })
    }

    /// Whether something that was looked at is no longer in the file: then it was read as zeros.
    #[inline]
    pub fn torn(&self) -> bool {
        // the handler runs on the thread that reads, between two of its instructions
        compiler_fence(Ordering::SeqCst);
        self.slot.torn.load(Ordering::Relaxed)
    }
}

impl Deref for Part {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // before the map goes, and its addresses with it
        self.slot.start.store(0, Ordering::Relaxed);
        self.slot.taken.store(false, Ordering::Release);
    }
}

/// Has the processor fetch the first two cache lines, where a record's headers are, while something else is done.
#[inline]
pub fn expect(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = bytes.as_ptr().cast::<i8>();
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address; SSE is part of x86-64.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start);
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(64));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
