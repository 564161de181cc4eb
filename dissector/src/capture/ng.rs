//! pcapng: sections, interfaces, packets with options, statistics.
//!
//! The crate splits the file into blocks. The insides of a block are read here, leniently: an unknown or
//! damaged option (a comment that is no UTF-8, say) must not hide the packet beside it.

use pcap_file::pcapng::{PcapNgParseError, PcapNgParser, RawBlock};

use super::Timestamp;
use super::options::PacketOptions;
use super::reader::{Place, Step};

/// Block types (pcapng draft, section 11.1).
mod block {
    pub const SECTION: u32 = 0x0a0d_0d0a;
    pub const INTERFACE: u32 = 1;
    pub const PACKET: u32 = 2;
    pub const SIMPLE: u32 = 3;
    pub const STATISTICS: u32 = 5;
    pub const ENHANCED: u32 = 6;
}

/// Option codes of interface and statistics blocks.
mod code {
    pub const COMMENT: u16 = 1;
    pub const IF_NAME: u16 = 2;
    pub const IF_DESCRIPTION: u16 = 3;
    pub const IF_TSRESOL: u16 = 9;
    pub const IF_FILTER: u16 = 11;
    pub const IF_OS: u16 = 12;
    pub const IF_FCSLEN: u16 = 13;
    pub const IF_TSOFFSET: u16 = 14;
    pub const IF_HARDWARE: u16 = 15;
    pub const ISB_RECEIVED: u16 = 4;
    pub const ISB_DROPPED: u16 = 5;
    pub const ISB_OS_DROPPED: u16 = 7;
}

/// A block longer than this is damage.
pub const MAX_BLOCK: usize = 8 << 20;
/// More interfaces than this is damage.
const MAX_INTERFACES: usize = 65_536;

/// What a file says about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Link type (LINKTYPE number).
    pub link: u16,
    /// Longest packet that was to be kept; 0 is no limit.
    pub snaplen: u32,
    /// Name.
    pub name: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Operating system.
    pub os: Option<String>,
    /// Hardware.
    pub hardware: Option<String>,
    /// Capture filter, in text.
    pub filter: Option<String>,
    /// Comments.
    pub comments: Vec<String>,
    /// `if_tsresol` as it stands: high bit base 2, else base 10; 6 (microseconds) if absent.
    pub ts_resolution: u8,
    /// Seconds to add to each time.
    pub ts_offset: i64,
    /// Bits of frame check sequence at the end of each packet.
    pub fcs_bits: Option<u8>,
    /// Packets that the interface received, by the last statistics.
    pub received: Option<u64>,
    /// Packets that were lost for want of room, by the last statistics.
    pub dropped: Option<u64>,
    /// Packets that the operating system dropped, by the last statistics.
    pub os_dropped: Option<u64>,
}

impl Interface {
    /// An interface of which only link type and snap length are known.
    pub const fn new(link: u16, snaplen: u32) -> Self {
        Self {
            link,
            snaplen,
            name: None,
            description: None,
            os: None,
            hardware: None,
            filter: None,
            comments: Vec::new(),
            ts_resolution: 6,
            ts_offset: 0,
            fcs_bits: None,
            received: None,
            dropped: None,
            os_dropped: None,
        }
    }

    /// Nanoseconds since the epoch of a time in this interface's unit; stays at the ends of the range.
    fn time(&self, ticks: u64) -> Timestamp {
        const NANOS: i128 = 1_000_000_000;
        let ticks = i128::from(ticks);
        let exponent = u32::from(self.ts_resolution & 0x7f);
        let nanos = if self.ts_resolution & 0x80 != 0 {
            // 2^-exponent seconds; 64 + 30 bits fit
            if exponent > 96 { 0 } else { (ticks * NANOS) >> exponent }
        } else if exponent <= 9 {
            ticks * 10_i128.pow(9 - exponent)
        } else {
            10_i128.checked_pow(exponent - 9).map_or(0, |d| ticks / d)
        };
        let nanos = nanos + i128::from(self.ts_offset) * NANOS;
        Timestamp(i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX }))
    }
}

/// State of a pcapng file.
pub struct Ng {
    parser: PcapNgParser,
    big_endian: bool,
    /// Every interface so far, of all sections.
    pub interfaces: Vec<Interface>,
    /// Where the current section's interfaces begin.
    first: usize,
    /// Comments of section headers.
    pub comments: Vec<String>,
}

impl Ng {
    /// From the first bytes of the file.
    pub fn new(start: &[u8]) -> Result<Self, String> {
        let big_endian = match start.get(8..12) {
            Some([0x1a, 0x2b, 0x3c, 0x4d]) => true,
            Some([0x4d, 0x3c, 0x2b, 0x1a]) => false,
            _ => return Err("a pcapng section header without its byte-order mark".to_owned()),
        };
        Ok(Self { parser: parser(big_endian)?, big_endian, interfaces: Vec::new(), first: 0, comments: Vec::new() })
    }

    fn u16(&self, b: &[u8], at: usize) -> Option<u16> {
        let v = *b.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u16::from_be_bytes(v) } else { u16::from_le_bytes(v) })
    }

    fn u32(&self, b: &[u8], at: usize) -> Option<u32> {
        let v = *b.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u32::from_be_bytes(v) } else { u32::from_le_bytes(v) })
    }

    fn u64(&self, b: &[u8]) -> Option<u64> {
        let v = *b.first_chunk()?;
        Some(if self.big_endian { u64::from_be_bytes(v) } else { u64::from_le_bytes(v) })
    }

    /// The block at the start of `bytes`.
    pub fn step(&mut self, bytes: &[u8]) -> Step {
        let Some(head) = bytes.first_chunk::<8>() else { return Step::More(12) };
        let [t0, t1, t2, t3, ..] = *head;
        let section = [t0, t1, t2, t3] == block::SECTION.to_be_bytes();
        if section {
            // the byte order may change here
            match bytes.get(8..12) {
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => self.big_endian = true,
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => self.big_endian = false,
                Some(_) => return Step::Malformed("a pcapng section header without its byte-order mark".to_owned()),
                None => return Step::More(28),
            }
        }
        let len = self.u32(head, 4).unwrap_or(0) as usize;
        if len > MAX_BLOCK {
            return Step::TooLong { says: len as u64, limit: MAX_BLOCK as u64 };
        }
        if bytes.len() < len {
            return Step::More(len);
        }
        let raw = match self.parser.next_raw_block(bytes) {
            Ok((_, raw)) => raw,
            Err(PcapNgParseError::IncompleteBuffer(needed, _)) => return Step::More(needed.max(len)),
            // the crate refuses the block's contents; the frame around it is sound, and we read it leniently
            Err(PcapNgParseError::StateUpdate(_)) => {
                if section {
                    match parser(self.big_endian) {
                        Ok(p) => self.parser = p,
                        Err(e) => return Step::Malformed(e),
                    }
                }
                let Some(body) = bytes.get(8..len.saturating_sub(4)) else {
                    return Step::Malformed(format!("a pcapng block of {len} bytes"));
                };
                let type_ = if section { block::SECTION } else { self.u32(head, 0).unwrap_or(0) };
                return self.block(type_, body, len);
            }
            Err(PcapNgParseError::InvalidFormat(e)) => return Step::Malformed(format!("damaged pcapng block: {e}")),
            Err(e) => return Step::Malformed(e.to_string()),
        };
        let RawBlock { type_, body, .. } = raw;
        self.block(type_, &body, len)
    }

    /// Takes a block apart; `len` is what it takes in the file, `body` starts at byte 8 of it.
    fn block(&mut self, type_: u32, body: &[u8], len: usize) -> Step {
        match type_ {
            block::SECTION => {
                self.first = self.interfaces.len();
                let options = body.get(16..).unwrap_or(&[]);
                self.comments.extend(PacketOptions::new(options, self.big_endian).comments().map(Into::into));
                Step::Skip(len)
            }
            block::INTERFACE => self.interface(body, len),
            block::STATISTICS => {
                self.statistics(body);
                Step::Skip(len)
            }
            block::ENHANCED => {
                let (Some(i), Some(hi), Some(lo), Some(captured), Some(wire)) =
                    (self.u32(body, 0), self.u32(body, 4), self.u32(body, 8), self.u32(body, 12), self.u32(body, 16))
                else {
                    return Step::Malformed(format!("a pcapng packet block of only {len} bytes"));
                };
                self.packet(i, (hi, lo), (captured, wire), 20, body, len)
            }
            block::PACKET => {
                let (Some(i), Some(hi), Some(lo), Some(captured), Some(wire)) =
                    (self.u16(body, 0), self.u32(body, 4), self.u32(body, 8), self.u32(body, 12), self.u32(body, 16))
                else {
                    return Step::Malformed(format!("a pcapng packet block of only {len} bytes"));
                };
                self.packet(u32::from(i), (hi, lo), (captured, wire), 20, body, len)
            }
            block::SIMPLE => {
                let Some(wire) = self.u32(body, 0) else {
                    return Step::Malformed(format!("a pcapng packet block of only {len} bytes"));
                };
                let Some(interface) = self.interfaces.get(self.first) else {
                    return Step::Malformed("a packet before any interface was described".to_owned());
                };
                let mut captured = wire.min(u32::try_from(body.len() - 4).unwrap_or(u32::MAX));
                if interface.snaplen > 0 {
                    captured = captured.min(interface.snaplen);
                }
                // no time in this kind of block
                let data = 12..12 + captured as usize;
                Step::Record(Place {
                    at: Timestamp::default(),
                    options: data.end..data.end,
                    data,
                    big_endian: self.big_endian,
                    interface: u32::try_from(self.first).unwrap_or(0),
                    link: interface.link,
                    wire_len: wire,
                    end: len,
                })
            }
            // names, secrets, journal entries, custom blocks: nothing about packets
            _ => Step::Skip(len),
        }
    }

    fn packet(
        &self,
        interface: u32,
        (hi, lo): (u32, u32),
        (captured, wire): (u32, u32),
        header: usize,
        body: &[u8],
        len: usize,
    ) -> Step {
        let id = self.first.saturating_add(interface as usize);
        let Some(described) = self.interfaces.get(id) else {
            return Step::Malformed(format!(
                "a packet of interface {interface}, but only {} were described",
                self.interfaces.len() - self.first
            ));
        };
        let captured = captured as usize;
        let end = header.saturating_add(captured);
        if end > body.len() {
            return Step::Malformed(format!(
                "a packet block that says {captured} bytes were captured, with room for {}",
                body.len().saturating_sub(header)
            ));
        }
        // body starts 8 bytes into the block
        let data = 8 + header..8 + end;
        let options = (8 + header + captured.next_multiple_of(4)).min(8 + body.len())..8 + body.len();
        Step::Record(Place {
            at: described.time(u64::from(hi) << 32 | u64::from(lo)),
            data,
            options,
            big_endian: self.big_endian,
            interface: u32::try_from(id).unwrap_or(u32::MAX),
            link: described.link,
            wire_len: wire.max(u32::try_from(captured).unwrap_or(u32::MAX)),
            end: len,
        })
    }

    fn interface(&mut self, body: &[u8], len: usize) -> Step {
        let (Some(link), Some(snaplen)) = (self.u16(body, 0), self.u32(body, 4)) else {
            return Step::Malformed(format!("a pcapng interface block of only {len} bytes"));
        };
        if self.interfaces.len() >= MAX_INTERFACES {
            return Step::Malformed(format!("more than {MAX_INTERFACES} interfaces are described"));
        }
        let mut i = Interface::new(link, snaplen);
        let text = |v: &[u8]| Some(String::from_utf8_lossy(v).trim_end_matches('\0').to_owned());
        for (c, v) in PacketOptions::new(body.get(8..).unwrap_or(&[]), self.big_endian).iter() {
            match c {
                code::COMMENT => i.comments.extend(text(v)),
                code::IF_NAME => i.name = text(v),
                code::IF_DESCRIPTION => i.description = text(v),
                code::IF_OS => i.os = text(v),
                code::IF_HARDWARE => i.hardware = text(v),
                // the first byte tells the kind: 0 is text, 1 is BPF code
                code::IF_FILTER => i.filter = v.strip_prefix(&[0]).and_then(text),
                code::IF_TSRESOL => i.ts_resolution = v.first().copied().unwrap_or(6),
                code::IF_TSOFFSET => i.ts_offset = self.u64(v).map_or(0, u64::cast_signed),
                code::IF_FCSLEN => i.fcs_bits = v.first().copied(),
                _ => {}
            }
        }
        self.interfaces.push(i);
        Step::Skip(len)
    }

    fn statistics(&mut self, body: &[u8]) {
        let Some(id) = self.u32(body, 0) else { return };
        let options = PacketOptions::new(body.get(12..).unwrap_or(&[]), self.big_endian);
        let found: Vec<_> = options.iter().filter_map(|(c, v)| Some((c, self.u64(v)?))).collect();
        let Some(i) = self.interfaces.get_mut(self.first.saturating_add(id as usize)) else { return };
        for (c, v) in found {
            match c {
                code::ISB_RECEIVED => i.received = Some(v),
                code::ISB_DROPPED => i.dropped = Some(v),
                code::ISB_OS_DROPPED => i.os_dropped = Some(v),
                _ => {}
            }
        }
    }
}

/// A parser that expects this byte order: made from the smallest section header.
fn parser(big_endian: bool) -> Result<PcapNgParser, String> {
    let mut b = Vec::with_capacity(28);
    let u32 = |v: u32| if big_endian { v.to_be_bytes() } else { v.to_le_bytes() };
    b.extend(block::SECTION.to_be_bytes());
    b.extend(u32(28));
    b.extend(u32(0x1a2b_3c4d));
    b.extend(if big_endian { [0, 1, 0, 0] } else { [1, 0, 0, 0] });
    b.extend([0xff; 8]);
    b.extend(u32(28));
    PcapNgParser::new(&b).map(|(_, p)| p).map_err(|e| e.to_string())
}
