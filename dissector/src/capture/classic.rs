//! Classic pcap: one link type, records of a 16-byte header and the packet.

use pcap_file::pcap::{PcapParser, PcapTsResolution};

use super::Timestamp;
use super::reader::{Place, Step};

/// A record longer than this is damage, not a packet (libpcap's own limit is 256 KiB). Memory grows with
/// it: a few are held at a time.
pub const MAX_RECORD: usize = 4 << 20;

/// Bytes of the file header.
pub const HEADER_LEN: usize = 24;
/// Bytes of a record header.
pub const RECORD_LEN: usize = 16;

/// State of a classic file: its header.
pub struct Classic {
    big_endian: bool,
    nanos: bool,
    /// Link type (LINKTYPE number).
    pub link: u16,
    /// Longest packet that was to be kept; 0 is no limit.
    pub snaplen: u32,
    /// Minor version of the format: before 4 the two lengths of a record stood in the other order.
    minor: u16,
    /// Bytes of frame check sequence at the end of each packet, if the header says so.
    pub fcs_len: Option<u8>,
}

impl Classic {
    /// From the file header.
    pub fn new(header: &[u8]) -> Result<Self, String> {
        let (_, parser) = PcapParser::new(header).map_err(|e| format!("pcap file header: {e}"))?;
        let h = parser.header();
        // the crate's names for link types fold some numbers together, so the number is read as it stands;
        // the high bits say how long the FCS is (libpcap's LT_FCS_LENGTH)
        let word: [u8; 4] = header.get(20..HEADER_LEN).and_then(|b| b.first_chunk().copied()).unwrap_or_default();
        let word = if h.endianness.is_big() { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
        let fcs_len = (word & 0x0400_0000 != 0).then_some(((word >> 28) & 15) as u8 * 2);
        let nanos = h.ts_resolution == PcapTsResolution::NanoSecond;
        let minor = h.version_minor;
        Ok(Self {
            nanos,
            minor,
            link: (word & 0xffff) as u16,
            snaplen: h.snaplen,
            fcs_len,
            big_endian: h.endianness.is_big(),
        })
    }

    /// Whether times are in nanoseconds.
    pub const fn nanos(&self) -> bool {
        self.nanos
    }

    /// The record at the start of `bytes`.
    ///
    /// Read here and not by the crate's parser: that makes an owned-or-borrowed packet and a large error type
    /// of every record, which shows in the time for a file of millions; and it would have to be asked again
    /// for the length of a record that is not complete yet.
    #[inline]
    pub fn step(&self, bytes: &[u8]) -> Step {
        let Some(head) = bytes.first_chunk::<RECORD_LEN>() else { return Step::More(RECORD_LEN) };
        let word = |b: [u8; 4]| if self.big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) };
        let [s0, s1, s2, s3, f0, f1, f2, f3, c0, c1, c2, c3, w0, w1, w2, w3] = *head;
        let (mut captured, mut on_wire) = (word([c0, c1, c2, c3]), word([w0, w1, w2, w3]));
        // version 2.3 was written with both orders
        if self.minor < 3 || self.minor == 3 && captured > on_wire {
            (captured, on_wire) = (on_wire, captured);
        }
        let len = captured as usize;
        let end = RECORD_LEN.saturating_add(len);
        if bytes.len() < end {
            return if len > MAX_RECORD {
                Step::TooLong { says: captured.into(), limit: MAX_RECORD as u64 }
            } else {
                Step::More(end)
            };
        }
        let unit = if self.nanos { 1 } else { 1000 };
        let at = i64::from(word([s0, s1, s2, s3])) * 1_000_000_000 + i64::from(word([f0, f1, f2, f3])) * unit;
        Step::Record(Place {
            at: Timestamp(at),
            data: RECORD_LEN..end,
            options: end..end,
            big_endian: false,
            interface: 0,
            link: self.link,
            wire_len: on_wire.max(captured),
            end,
        })
    }
}
