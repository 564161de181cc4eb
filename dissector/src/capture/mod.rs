//! Capture files in and out. Knows no protocol; the only place that knows pcap-file.

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'a> {
    /// Number in the file, from 1.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Interface (pcapng), 0 in classic files.
    pub interface: u32,
    /// Link type of that interface.
    pub link: u16,
    /// What was captured.
    pub bytes: &'a [u8],
    /// Bytes that were on the wire.
    pub wire_len: u32,
}
