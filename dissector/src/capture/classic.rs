//! Classic pcap: one link type, records of a 16-byte header and the packet.

use pcap_file::pcap::{PcapParseError, PcapParser, PcapTsResolution};

use super::Timestamp;
use super::reader::{Place, Step};

/// A record longer than this is damage, not a packet (libpcap's own limit is 256 KiB).
pub const MAX_RECORD: usize = 16 << 20;

/// Bytes of the file header.
pub const HEADER_LEN: usize = 24;
/// Bytes of a record header.
pub const RECORD_LEN: usize = 16;

/// State of a classic file: its header.
pub struct Classic {
    parser: PcapParser,
    nanos: bool,
    /// Link type (LINKTYPE number).
    pub link: u16,
    /// Longest packet that was to be kept; 0 is no limit.
    pub snaplen: u32,
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
        Ok(Self { nanos, link: (word & 0xffff) as u16, snaplen: h.snaplen, fcs_len, parser })
    }

    /// Whether times are in nanoseconds.
    pub const fn nanos(&self) -> bool {
        self.nanos
    }

    /// The record at the start of `bytes`. The crate's permissive parser is used: a record longer than the
    /// file's own snap length, or with a fraction beyond one second, is odd but readable.
    #[inline]
    pub fn step(&self, bytes: &[u8]) -> Step {
        match self.parser.next_raw_packet(bytes) {
            Ok((_, p)) => {
                if p.data.len() > MAX_RECORD {
                    return Step::TooLong { says: p.data.len() as u64, limit: MAX_RECORD as u64 };
                }
                let unit = if self.nanos { 1 } else { 1000 };
                let at = i64::from(p.ts_sec) * 1_000_000_000 + i64::from(p.ts_frac) * unit;
                let end = RECORD_LEN + p.data.len();
                Step::Record(Place {
                    at: Timestamp(at),
                    data: RECORD_LEN..end,
                    options: end..end,
                    big_endian: false,
                    interface: 0,
                    link: self.link,
                    wire_len: p.orig_len.max(u32::try_from(p.data.len()).unwrap_or(u32::MAX)),
                    end,
                })
            }
            Err(PcapParseError::IncompleteBuffer(needed, _)) => {
                if needed > MAX_RECORD {
                    return Step::TooLong { says: needed as u64, limit: MAX_RECORD as u64 };
                }
                // the crate counts without the record header once it has seen it
                Step::More(if bytes.len() < RECORD_LEN { RECORD_LEN } else { RECORD_LEN + needed })
            }
            Err(e) => Step::Malformed(e.to_string()),
        }
    }
}
