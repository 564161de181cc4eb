//! Map layouts. Each struct says who writes it and who reads it; sizes are asserted at compile time.

pub mod counters;
pub mod event;
pub mod fault;
pub mod global;
pub mod key;
pub mod tag;

pub use counters::{Direction, Flow, PerCpu, Totals};
pub use event::{EventHead, LongEvent, ShortEvent};
pub use key::{KeyV4, KeyV6};

/// Asserts size and alignment of a struct that both sides lay out.
macro_rules! layout {
    ($t:ty, $size:expr, $align:expr) => {
        const _: () = assert!(core::mem::size_of::<$t>() == $size, "size changed: raise the ABI version");
        const _: () = assert!(core::mem::align_of::<$t>() == $align, "alignment changed: raise the ABI version");
        #[cfg(feature = "user")]
        // SAFETY: repr(C), Copy, 'static, made of integers only and without implicit padding (the size assertion).
        unsafe impl aya::Pod for $t {}
    };
}
pub(crate) use layout;
