//! What crosses the border between kernel and user space: map keys, values, events, load-time constants;
//! and the PSN bookkeeping of a flow, which is pure and so is tested on the host.
//!
//! Everything in [`abi`] is `repr(C)`, without implicit padding, native byte order unless it says otherwise.
#![no_std]

pub mod abi;
pub mod checksum;
pub mod sequence;
