//! The reader: one record after the other, or chunks of records for several threads.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use super::classic::{Classic, HEADER_LEN};
use super::error::{OpenError, ReadError, ReadErrorKind};
use super::magic::{self, Magic};
use super::ng::{Interface, Ng};
use super::options::PacketOptions;
use super::source::{self, Source, Taken};
use super::window::{Pool, Window};
use super::{Record, Timestamp};

/// Where a record is, relative to the start of its header or block.
#[derive(Clone, Debug)]
pub struct Place {
    /// When.
    pub at: Timestamp,
    /// Packet.
    pub data: Range<usize>,
    /// Options after it.
    pub options: Range<usize>,
    /// Byte order of the options.
    pub big_endian: bool,
    /// Interface.
    pub interface: u32,
    /// Link type.
    pub link: u16,
    /// Bytes on the wire.
    pub wire_len: u32,
    /// Bytes that the record takes in the file.
    pub end: usize,
}

impl Place {
    #[inline]
    fn record<'a>(&self, whole: &'a [u8], number: u64) -> Record<'a> {
        Record {
            number,
            at: self.at,
            interface: self.interface,
            link: self.link,
            bytes: whole.get(self.data.clone()).unwrap_or(&[]),
            wire_len: self.wire_len,
            options: PacketOptions::new(whole.get(self.options.clone()).unwrap_or(&[]), self.big_endian),
        }
    }
}

/// What stands at the start of some bytes.
pub enum Step {
    /// A record.
    Record(Place),
    /// Something without a packet, this long.
    Skip(usize),
    /// Incomplete: it takes so many bytes altogether (as far as known).
    More(usize),
    /// Longer than makes sense.
    TooLong {
        /// Its word.
        says: u64,
        /// The limit.
        limit: u64,
    },
    /// Damaged.
    Malformed(String),
}

/// Kind of capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap.
    Pcap,
    /// pcapng.
    PcapNg,
}

enum State {
    Classic(Classic),
    Ng(Box<Ng>),
}

/// Reads a capture from its start to its end.
pub struct Reader {
    name: String,
    window: Window,
    state: State,
    classic_interface: [Interface; 1],
    packing: Option<&'static str>,
    size: Option<u64>,
    taken: Taken,
    number: u64,
    ended: bool,
    pool: Pool,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("name", &self.name).field("number", &self.number).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::from_source(source::open(path.as_ref())?)
    }

    /// Reads from any stream; `name` is what messages call it.
    pub fn from_read(name: impl Into<String>, input: impl Read + Send + 'static) -> Result<Self, OpenError> {
        Self::from_source(source::from_read(name.into(), Box::new(input), None)?)
    }

    fn from_source(source: Source) -> Result<Self, OpenError> {
        let Source { name, input, packing, size, taken, start } = source;
        let short = |needed| OpenError::Cut { name: name.clone(), needed, there: start.len() };
        let malformed = |what| OpenError::Malformed { name: name.clone(), offset: 0, what };
        let mut window = Window::new(input);
        let state = match magic::sniff(&start) {
            Magic::Pcap { .. } => {
                if start.len() < HEADER_LEN {
                    return Err(short(HEADER_LEN));
                }
                let classic = Classic::new(&start).map_err(malformed)?;
                while window.bytes().len() < HEADER_LEN {
                    match window.fill() {
                        Ok(true) => {}
                        Ok(false) => return Err(short(HEADER_LEN)),
                        Err(source) => return Err(OpenError::Io { name, source }),
                    }
                }
                window.consume(HEADER_LEN);
                State::Classic(classic)
            }
            Magic::PcapNg => {
                if start.len() < 12 {
                    return Err(short(28));
                }
                State::Ng(Box::new(Ng::new(&start).map_err(malformed)?))
            }
            Magic::Gzip | Magic::Zstd | Magic::Lz4 => {
                return Err(OpenError::Foreign {
                    name,
                    what: "a packed file inside a packed file",
                    hint: "unpack it once",
                });
            }
            Magic::Foreign(what, hint) => return Err(OpenError::Foreign { name, what, hint }),
            Magic::Unknown if start.is_empty() => return Err(OpenError::Empty { name }),
            Magic::Unknown => {
                let start = start.iter().take(8).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
                return Err(OpenError::NotACapture { name, start });
            }
        };
        let mut classic_interface = Interface::new(0, 0);
        if let State::Classic(c) = &state {
            classic_interface = Interface::new(c.link, c.snaplen);
            classic_interface.ts_resolution = if c.nanos() { 9 } else { 6 };
            classic_interface.fcs_bits = c.fcs_len.map(|b| b.saturating_mul(8));
        }
        Ok(Self {
            name,
            window,
            state,
            classic_interface: [classic_interface],
            packing,
            size,
            taken,
            number: 0,
            ended: false,
            pool: Pool::default(),
        })
    }

    /// What messages call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kind of file.
    pub const fn format(&self) -> Format {
        match self.state {
            State::Classic(_) => Format::Pcap,
            State::Ng(_) => Format::PcapNg,
        }
    }

    /// "gzip", "zstd" or "lz4", if it was packed.
    pub const fn packing(&self) -> Option<&'static str> {
        self.packing
    }

    /// Interfaces that were described so far; one in a classic file.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.state {
            State::Classic(_) => &self.classic_interface,
            State::Ng(ng) => &ng.interfaces,
        }
    }

    /// Comments about the file as a whole (pcapng).
    pub fn comments(&self) -> &[String] {
        match &self.state {
            State::Classic(_) => &[],
            State::Ng(ng) => &ng.comments,
        }
    }

    /// Packets that the recorder says it lost, if it says anything.
    pub fn dropped(&self) -> Option<u64> {
        self.interfaces().iter().filter_map(|i| i.dropped).reduce(u64::saturating_add)
    }

    /// Bytes of the file itself read so far, and its size if it is a regular file: for a progress bar.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.taken.bytes(), self.size)
    }

    /// Packets delivered so far.
    pub const fn packets(&self) -> u64 {
        self.number
    }

    /// The next record; `None` at the end. After an error there is nothing more.
    #[expect(clippy::should_implement_trait, reason = "lends from the reader's own buffer, which Iterator cannot say")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        let Some(place) = self.place()? else { return Ok(None) };
        self.window.consume(place.end);
        Ok(Some(place.record(self.window.consumed(place.end), self.number)))
    }

    /// Finds the next record, at the start of the window.
    #[inline]
    fn place(&mut self) -> Result<Option<Place>, ReadError> {
        loop {
            let step = match &mut self.state {
                State::Classic(c) => c.step(self.window.bytes()),
                State::Ng(ng) => ng.step(self.window.bytes()),
            };
            match step {
                Step::Record(place) => {
                    self.number += 1;
                    return Ok(Some(place));
                }
                other => {
                    if !self.advance(other)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// What to do about anything but a record; `false` at the end.
    #[cold]
    fn advance(&mut self, step: Step) -> Result<bool, ReadError> {
        if self.ended {
            return Ok(false);
        }
        let kind = match step {
            Step::Record(_) => return Ok(true),
            Step::Skip(len) => {
                self.window.consume(len);
                return Ok(true);
            }
            Step::More(needed) => match self.window.fill() {
                Ok(true) => return Ok(true),
                Ok(false) => {
                    self.ended = true;
                    let there = self.window.bytes().len() as u64;
                    if there == 0 {
                        return Ok(false);
                    }
                    ReadErrorKind::Cut { needed: needed as u64, there }
                }
                Err(e) => ReadErrorKind::Io(e),
            },
            Step::TooLong { says, limit } => ReadErrorKind::TooLong { says, limit },
            Step::Malformed(what) => ReadErrorKind::Malformed(what),
        };
        self.ended = true;
        let error = ReadError {
            name: self.name.clone(),
            offset: self.window.offset(),
            unpacked: self.packing.is_some(),
            packets: self.number,
            kind,
        };
        // nothing more comes out of a broken file
        let rest = self.window.bytes().len();
        self.window.consume(rest);
        Err(error)
    }

    /// The next run of records, about as long as the buffer, with its bytes: to be taken apart in another
    /// thread. Order is that of the chunks. `None` at the end. Records before damage come first, as with
    /// [`Self::next`].
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, ReadError> {
        let first = self.number + 1;
        let mut places: Vec<Slot> = Vec::with_capacity(self.window.bytes().len() / 512);
        let mut used = 0;
        loop {
            let rest = self.window.bytes().get(used..).unwrap_or(&[]);
            let step = match &mut self.state {
                State::Classic(c) => c.step(rest),
                State::Ng(ng) => ng.step(rest),
            };
            match step {
                Step::Record(place) => {
                    self.number += 1;
                    let end = place.end;
                    places.push(Slot::new(used, &place));
                    used += end;
                }
                Step::Skip(len) => used += len,
                _ if !places.is_empty() => {
                    let (bytes, start) = self.window.take(used, &self.pool);
                    return Ok(Some(Chunk { bytes, start, first, places, pool: self.pool.clone() }));
                }
                other => {
                    self.window.consume(used);
                    used = 0;
                    if !self.advance(other)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

/// Where a record of a chunk is; windows are far below 4 GiB.
#[derive(Clone, Copy, Debug)]
struct Slot {
    at: Timestamp,
    data: u32,
    data_len: u32,
    options: u32,
    options_len: u32,
    wire_len: u32,
    interface: u32,
    link: u16,
    big_endian: bool,
}

impl Slot {
    fn new(start: usize, p: &Place) -> Self {
        let word = |v: usize| u32::try_from(v).unwrap_or(u32::MAX);
        Self {
            at: p.at,
            data: word(start + p.data.start),
            data_len: word(p.data.len()),
            options: word(start + p.options.start),
            options_len: word(p.options.len()),
            wire_len: p.wire_len,
            interface: p.interface,
            link: p.link,
            big_endian: p.big_endian,
        }
    }
}

/// A run of records with the bytes that they lie in.
#[derive(Debug)]
pub struct Chunk {
    bytes: Vec<u8>,
    start: usize,
    first: u64,
    places: Vec<Slot>,
    pool: Pool,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.bytes));
    }
}

impl Chunk {
    /// How many.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none; never the case for what a reader hands out.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The records, in file order.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = Record<'_>> + ExactSizeIterator {
        let part = |start: u32, len: u32| {
            let start = self.start + start as usize;
            self.bytes.get(start..start + len as usize).unwrap_or(&[])
        };
        self.places.iter().enumerate().map(move |(n, s)| Record {
            number: self.first + n as u64,
            at: s.at,
            interface: s.interface,
            link: s.link,
            bytes: part(s.data, s.data_len),
            wire_len: s.wire_len,
            options: PacketOptions::new(part(s.options, s.options_len), s.big_endian),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captures() -> impl Iterator<Item = std::path::PathBuf> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/captures");
        std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.extension().is_some_and(|e| e == "pcap"))
    }

    #[test]
    fn all_captures_whole_and_in_chunks() {
        let (mut files, mut packets) = (0, 0);
        for path in captures() {
            let mut reader = Reader::open(&path).unwrap();
            let mut seen = Vec::new();
            while let Some(r) = reader.next().unwrap() {
                seen.push((r.number, r.at, r.wire_len, r.bytes.to_vec()));
            }
            packets += seen.len();
            files += 1;
            let mut chunked = Vec::new();
            let mut reader = Reader::open(&path).unwrap();
            while let Some(chunk) = reader.next_chunk().unwrap() {
                chunked.extend(chunk.records().map(|r| (r.number, r.at, r.wire_len, r.bytes.to_vec())));
            }
            assert_eq!(seen, chunked, "{}", path.display());
        }
        let index = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/captures/INDEX.md");
        let index = std::fs::read_to_string(index).unwrap();
        assert!(index.contains(&format!("\n{files} files, {packets} packets (")), "{files} files, {packets} packets");
    }

    #[test]
    fn a_cut_file_gives_what_is_there_first() {
        let path = captures().next().unwrap();
        let whole = std::fs::read(path).unwrap();
        let mut last = 0;
        for cut in 0..whole.len().min(3000) {
            let mut reader = match Reader::from_read("cut", std::io::Cursor::new(whole[..cut].to_vec())) {
                Ok(r) => r,
                Err(e) => {
                    assert!(cut < 24, "{e}");
                    continue;
                }
            };
            let mut n = 0;
            let end = loop {
                match reader.next() {
                    Ok(Some(_)) => n += 1,
                    other => break other.map(|_| ()),
                }
            };
            assert!(n == last || n == last + 1, "{n} after {last} at {cut}");
            match end {
                Ok(()) => assert!(n > last || cut == 24),
                Err(e) => assert!(matches!(e.kind, ReadErrorKind::Cut { .. }) && e.packets == n, "{e}"),
            }
            last = n;
            assert!(matches!(reader.next(), Ok(None)), "an error is said once");
        }
    }
}
