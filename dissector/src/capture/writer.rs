//! Writes captures: pcap or pcapng.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapTsResolution, PcapWriter, RawPcapPacket};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

use super::ng::Interface;
use super::reader::Format;
use super::{Record, Timestamp};

impl WriteError {
    /// Whether whoever read the output went away: no reason to complain.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The operating system refused.
    #[error("{name}: {source}")]
    Io {
        /// File.
        name: String,
        /// Its words.
        source: io::Error,
    },
    /// The output is the input.
    #[error("{name}: is also the file that is read; give another name to write to")]
    SameFile {
        /// File.
        name: String,
    },
    /// Packets of several link types in a format with one.
    #[error(
        "{name}: packets of link types {first} and {second} do not fit into one pcap file; write pcapng (a name that ends in .pcapng)"
    )]
    LinkTypes {
        /// File.
        name: String,
        /// Of the first packet.
        first: u16,
        /// Of this one.
        second: u16,
    },
    /// The format has no room for this.
    #[error("{name}: {what}")]
    Refused {
        /// File.
        name: String,
        /// What does not fit.
        what: String,
    },
}

type Out = BufWriter<Box<dyn Write + Send>>;

enum Kind {
    /// Not started: the first packet tells link type and resolution.
    Waiting(Option<Out>),
    Pcap(Box<PcapWriter<Out>>, u16),
    Ng(Box<PcapNgWriter<Out>>),
}

/// Writes records to a file.
pub struct Writer {
    name: String,
    format: Format,
    kind: Kind,
    /// Interfaces written so far (pcapng).
    interfaces: Vec<Option<u32>>,
    written: u32,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("name", &self.name).field("format", &self.format).finish_non_exhaustive()
    }
}

impl Writer {
    /// The format that a name asks for: pcapng for `.pcapng` and `.ntar`, else pcap.
    pub fn format_of(path: &Path) -> Format {
        match path.extension().and_then(|e| e.to_str()) {
            Some(e) if e.eq_ignore_ascii_case("pcapng") || e.eq_ignore_ascii_case("ntar") => Format::PcapNg,
            _ => Format::Pcap,
        }
    }

    /// Makes a file; `-` is standard output (pcap). `input` is what is being read, which is never overwritten.
    pub fn create(path: impl AsRef<Path>, input: Option<&Path>) -> Result<Self, WriteError> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Ok(Self::to_write("standard output", Format::Pcap, io::stdout()));
        }
        let name = path.display().to_string();
        if let Some(input) = input
            && same_file(path, input)
        {
            return Err(WriteError::SameFile { name });
        }
        let file = match File::create(path) {
            Ok(f) => f,
            Err(source) => return Err(WriteError::Io { name, source }),
        };
        Ok(Self::to_write(name, Self::format_of(path), file))
    }

    /// Writes to any stream.
    pub fn to_write(name: impl Into<String>, format: Format, out: impl Write + Send + 'static) -> Self {
        let out: Box<dyn Write + Send> = Box::new(out);
        Self {
            name: name.into(),
            format,
            kind: Kind::Waiting(Some(BufWriter::with_capacity(256 << 10, out))),
            interfaces: Vec::new(),
            written: 0,
        }
    }

    /// The same with another kind of file than the name says, before anything is written.
    #[must_use]
    pub const fn in_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Kind of file that is written.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Writes a record. `interfaces` are those of the reader that it came from.
    pub fn write(&mut self, record: &Record<'_>, interfaces: &[Interface]) -> Result<(), WriteError> {
        let made;
        let interface = if let Some(i) = interfaces.get(record.interface as usize) {
            i
        } else {
            made = Interface::new(record.link, 0);
            &made
        };
        self.start(Some((record, interface)))?;
        let name = &self.name;
        let refused = |e: &(dyn std::error::Error + 'static)| failure(name, e);
        match &mut self.kind {
            Kind::Waiting(_) => Ok(()),
            Kind::Pcap(w, link) => {
                if *link != record.link {
                    return Err(WriteError::LinkTypes { name: self.name.clone(), first: *link, second: record.link });
                }
                let nanos = w.ts_resolution() == PcapTsResolution::NanoSecond;
                let (sec, frac) = split(record.at, nanos);
                let packet = RawPcapPacket {
                    ts_sec: sec,
                    ts_frac: frac,
                    incl_len: u32::try_from(record.bytes.len()).unwrap_or(u32::MAX),
                    orig_len: record.wire_len,
                    data: Cow::Borrowed(record.bytes),
                };
                w.write_raw_packet(&packet).map(drop).map_err(|e| refused(&e))
            }
            Kind::Ng(w) => {
                let slot = record.interface as usize;
                let id = described(name, w, &mut self.interfaces, &mut self.written, slot, interface)?;
                let options = record.options.comments().map(|c| EnhancedPacketOption::Common(CommonOption::Comment(c)));
                let flags = record.options.flags().map(EnhancedPacketOption::Flags);
                let drops = record.options.drop_count().map(EnhancedPacketOption::DropCount);
                let packet = EnhancedPacketBlock {
                    interface_id: id,
                    timestamp: Duration::from_nanos(u64::try_from(record.at.0).unwrap_or(0)),
                    original_len: record.wire_len.max(u32::try_from(record.bytes.len()).unwrap_or(u32::MAX)),
                    data: Cow::Borrowed(record.bytes),
                    options: options.chain(flags).chain(drops).collect(),
                };
                w.write_block(&packet.into_block()).map(drop).map_err(|e| refused(&e))
            }
        }
    }

    /// Writes what an interface has received and lost up to a time, the lost ones among the received. A classic file has
    /// no place for it.
    pub fn statistics(
        &mut self,
        interface: usize,
        interfaces: &[Interface],
        at: Timestamp,
        received: u64,
        dropped: u64,
    ) -> Result<(), WriteError> {
        self.start(None)?;
        let (Kind::Ng(w), Some(i)) = (&mut self.kind, interfaces.get(interface)) else { return Ok(()) };
        let interface_id = described(&self.name, w, &mut self.interfaces, &mut self.written, interface, i)?;
        let block = InterfaceStatisticsBlock {
            interface_id,
            timestamp: Duration::from_nanos(u64::try_from(at.0).unwrap_or(0)),
            options: vec![
                InterfaceStatisticsOption::IsbIfRecv(received),
                InterfaceStatisticsOption::IsbIfDrop(dropped),
            ],
        };
        w.write_block(&block.into_block()).map(drop).map_err(|e| failure(&self.name, &e))
    }

    fn start(&mut self, first: Option<(&Record<'_>, &Interface)>) -> Result<(), WriteError> {
        let Kind::Waiting(out) = &mut self.kind else { return Ok(()) };
        let Some(out) = out.take() else { return Ok(()) };
        self.kind = match self.format {
            // ERF records are written as pcap holds them
            Format::Pcap | Format::Erf => {
                // without any packet the usual link type is as good as another
                let link = first.map_or(1, |(r, _)| r.link);
                let finer = first.is_some_and(|(_, i)| i.ts_resolution > 6);
                let header = PcapHeader {
                    snaplen: first.map_or(0, |(_, i)| i.snaplen).max(262_144),
                    datalink: DataLink::from(u32::from(link)),
                    ts_resolution: if finer { PcapTsResolution::NanoSecond } else { PcapTsResolution::MicroSecond },
                    endianness: Endianness::Little,
                    ..PcapHeader::default()
                };
                let w = PcapWriter::with_header(out, header).map_err(|e| failure(&self.name, &e))?;
                Kind::Pcap(Box::new(w), link)
            }
            Format::PcapNg => {
                let w = PcapNgWriter::with_endianness(out, Endianness::Little).map_err(|e| failure(&self.name, &e))?;
                Kind::Ng(Box::new(w))
            }
        };
        Ok(())
    }

    /// Hands on what is in memory, so that others can read the file up to here; a file without a packet gets its header, unless
    /// only a packet tells which.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.format == Format::PcapNg {
            self.start(None)?;
        }
        let failed = |source| WriteError::Io { name: self.name.clone(), source };
        match &mut self.kind {
            Kind::Waiting(_) => Ok(()),
            Kind::Pcap(w, _) => w.flush().map_err(|e| failure(&self.name, &e)),
            Kind::Ng(w) => w.get_mut().flush().map_err(failed),
        }
    }

    /// Writes what is still in memory; a file without a packet gets its header.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.start(None)?;
        let failed = |source| WriteError::Io { name: self.name.clone(), source };
        match self.kind {
            Kind::Waiting(_) => Ok(()),
            Kind::Pcap(mut w, _) => w.flush().map_err(|e| failure(&self.name, &e)),
            Kind::Ng(w) => w.into_inner().flush().map_err(failed),
        }
    }
}

/// The number that an interface has in the file, where it is described before it is spoken of.
fn described(
    name: &str,
    w: &mut PcapNgWriter<Out>,
    known: &mut Vec<Option<u32>>,
    written: &mut u32,
    slot: usize,
    interface: &Interface,
) -> Result<u32, WriteError> {
    if let Some(id) = known.get(slot).copied().flatten() {
        return Ok(id);
    }
    w.write_block(&description(interface).into_block()).map_err(|e| failure(name, &e))?;
    if known.len() <= slot {
        known.resize(slot + 1, None);
    }
    if let Some(s) = known.get_mut(slot) {
        *s = Some(*written);
    }
    *written += 1;
    Ok(*written - 1)
}

/// Seconds and fraction as a classic record has them; times before the epoch become it.
fn split(at: Timestamp, nanos: bool) -> (u32, u32) {
    let ns = at.0.max(0).cast_unsigned();
    let frac = ns % 1_000_000_000;
    let sec = u32::try_from(ns / 1_000_000_000).unwrap_or(u32::MAX);
    (sec, u32::try_from(if nanos { frac } else { frac / 1000 }).unwrap_or(0))
}

fn description(i: &Interface) -> InterfaceDescriptionBlock<'static> {
    use InterfaceDescriptionOption as O;
    let mut b = InterfaceDescriptionBlock::new(DataLink::from(u32::from(i.link)), i.snaplen);
    b.options.extend(i.name.clone().map(|v| O::IfName(v.into())));
    b.options.extend(i.description.clone().map(|v| O::IfDescription(v.into())));
    b.options.extend(i.os.clone().map(|v| O::IfOs(v.into())));
    b.options.extend(i.hardware.clone().map(|v| O::IfHardware(v.into())));
    b.options.extend(i.filter.clone().map(|v| O::IfFilter([&[0], v.as_bytes()].concat().into())));
    b.options.extend(i.fcs_bits.map(O::IfFcsLen));
    b.options.extend(i.comments.iter().map(|c| O::Common(CommonOption::Comment(c.clone().into()))));
    // inside we count nanoseconds, so nothing coarser loses and nothing finer is kept
    let resolution = if i.ts_resolution == 6 { InterfaceTsResolution::MICRO } else { InterfaceTsResolution::NANO };
    b.options.push(O::IfTsResol(resolution));
    b
}

/// What the operating system said, if it was it that refused; else the words of the crate.
fn failure(name: &str, e: &(dyn std::error::Error + 'static)) -> WriteError {
    let name = name.to_owned();
    let mut cause = e;
    loop {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return WriteError::Io { name, source: io::Error::new(io.kind(), io.to_string()) };
        }
        match cause.source() {
            Some(s) => cause = s,
            None => return WriteError::Refused { name, what: cause.to_string() },
        }
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    let real = |p: &Path| -> Option<PathBuf> { p.canonicalize().ok() };
    match (real(a), real(b)) {
        (Some(x), Some(y)) if x == y => true,
        #[cfg(unix)]
        _ => {
            use std::os::unix::fs::MetadataExt;
            // standard input may be the file as well: `- -w in.pcap < in.pcap`
            let b = if b.as_os_str() == "-" { Path::new("/dev/stdin") } else { b };
            match (a.metadata(), b.metadata()) {
                // hard links
                (Ok(x), Ok(y)) => x.is_file() && (x.dev(), x.ino()) == (y.dev(), y.ino()),
                _ => false,
            }
        }
        #[cfg(not(unix))]
        _ => false,
    }
}
