//! Capture files in and out. Knows no protocol; the only place that knows pcap-file.
//!
//! [`Reader::open`] takes a path or `-`, looks at the first bytes (not at the name), unpacks gzip, zstd and
//! lz4, and lends one [`Record`] after the other out of a moderate buffer, or out of a mapped part of the file if the
//! program asked for that ([`mapped::enable`]): memory does not grow with the file. Whatever can be read is delivered before an error about the rest.

pub mod classic;
pub mod erf;
pub mod error;
pub mod magic;
#[cfg_attr(not(target_os = "linux"), path = "unmapped.rs")]
pub mod mapped;
pub mod ng;
pub mod options;
pub mod reader;
pub mod source;
mod window;
pub mod writer;

pub use error::{OpenError, ReadError};
pub use ng::Interface;
pub use options::PacketOptions;
pub use reader::{Chunk, Format, Reader};
pub use writer::{WriteError, Writer};

/// Nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Seconds since the epoch.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Nanoseconds from `earlier` to `self`; negative if the clock went backwards.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One record of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Record<'a> {
    /// Number in the file, from 1.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Interface (pcapng), 0 in classic files; counts on through the sections of a file.
    pub interface: u32,
    /// Link type of that interface.
    pub link: u16,
    /// What was captured.
    pub bytes: &'a [u8],
    /// Bytes that were on the wire; at least `bytes.len()`.
    pub wire_len: u32,
    /// What else a pcapng file says about the packet: comments, flags, drop counts.
    pub options: PacketOptions<'a>,
}
