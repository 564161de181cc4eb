//! The reader: one record after the other, or chunks of records for several threads.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use super::classic::{Classic, HEADER_LEN};
use super::erf;
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
    /// Records of an Endace card without a file around them.
    Erf,
}

enum State {
    Classic(Classic),
    Ng(Box<Ng>),
    Erf,
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
            // no magic number tells it
            Magic::Unknown if looks_like_erf(&start, &mut window) => State::Erf,
            Magic::Unknown => {
                let start = start.iter().take(8).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
                return Err(OpenError::NotACapture { name, start });
            }
        };
        let mut classic_interface = Interface::new(erf::LINK, 0);
        classic_interface.ts_resolution = 9;
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
            State::Erf => Format::Erf,
        }
    }

    /// "gzip", "zstd" or "lz4", if it was packed.
    pub const fn packing(&self) -> Option<&'static str> {
        self.packing
    }

    /// Interfaces that were described so far; one in a classic file.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.state {
            State::Classic(_) | State::Erf => &self.classic_interface,
            State::Ng(ng) => &ng.interfaces,
        }
    }

    /// Comments about the file as a whole (pcapng).
    pub fn comments(&self) -> &[String] {
        match &self.state {
            State::Classic(_) | State::Erf => &[],
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
        self.window.expect();
        Ok(Some(place.record(self.window.consumed(place.end), self.number)))
    }

    /// Finds the next record, at the start of the window.
    #[inline]
    fn place(&mut self) -> Result<Option<Place>, ReadError> {
        loop {
            let step = match &mut self.state {
                State::Classic(c) => c.step(self.window.bytes()),
                State::Ng(ng) => ng.step(self.window.bytes()),
                State::Erf => erf::step(self.window.bytes()),
            };
            match step {
                // behind the new end of a shortened file its last page holds zeros, which look like empty records
                Step::Record(place) if !(self.window.torn() || place.data.is_empty() && self.window.shrunk()) => {
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
            // whatever stands there now, it is not what was recorded
            Step::Record(_) => ReadErrorKind::Shrunk,
            _ if self.window.torn() || self.window.shrunk() => ReadErrorKind::Shrunk,
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
        Err(self.stop(kind))
    }

    fn stop(&mut self, kind: ReadErrorKind) -> ReadError {
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
        error
    }

    /// The next run of records, about as long as the buffer, with its bytes: to be taken apart in another
    /// thread. Order is that of the chunks. `None` at the end. Records before damage come first, as with
    /// [`Self::next`].
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, ReadError> {
        let first = self.number + 1;
        if let Err(e) = self.window.copy() {
            return Err(self.stop(ReadErrorKind::Io(e)));
        }
        let mut places: Vec<Slot> = Vec::with_capacity(self.window.bytes().len() / 512);
        let mut used = 0;
        loop {
            let rest = self.window.bytes().get(used..).unwrap_or(&[]);
            let step = match &mut self.state {
                State::Classic(c) => c.step(rest),
                State::Ng(ng) => ng.step(rest),
                State::Erf => erf::step(rest),
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

/// Whether the file is a native ERF one, by its first records.
fn looks_like_erf(start: &[u8], window: &mut Window) -> bool {
    if !erf::may_start(start) {
        return false;
    }
    // enough for several of the longest records, or all there is
    while window.bytes().len() < 256 << 10 {
        match window.fill() {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
    }
    erf::is_one(window.bytes())
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
    use crate::capture::mapped;

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

    /// A classic file of 6000 records, of odd lengths and up to one that is longer than a mapped part.
    fn large() -> Vec<u8> {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        bytes.extend([0; 8]);
        bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        for n in 0..6000u32 {
            let len = if n == 5000 { 4 << 20 } else { n * 7919 % 4001 };
            for word in [n, n % 1000, len, len] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.resize(bytes.len() + len as usize, n.to_le_bytes()[0]);
        }
        bytes
    }

    /// Whether files are read in place here, which is so on Linux only.
    fn in_place() -> bool {
        assert_eq!(mapped::enable(), cfg!(target_os = "linux"));
        mapped::enabled()
    }

    #[test]
    fn a_mapped_file_reads_like_a_stream() {
        in_place();
        let bytes = large();
        let file = tempfile::NamedTempFile::new().unwrap();
        for cut in [0, 1, 700] {
            let bytes = &bytes[..bytes.len() - cut];
            std::fs::write(file.path(), bytes).unwrap();
            let mut stream = Reader::from_read("stream", std::io::Cursor::new(bytes.to_vec())).unwrap();
            let mut mapped = Reader::open(file.path()).unwrap();
            let mut chunks = Reader::open(file.path()).unwrap();
            let mut chunk = chunks.next_chunk().unwrap();
            let mut at = 0;
            loop {
                let (a, b) = match (stream.next(), mapped.next()) {
                    (Ok(Some(a)), Ok(Some(b))) => (a, b),
                    (Ok(None), Ok(None)) => break assert!(cut == 0 && chunks.next_chunk().unwrap().is_none()),
                    (Err(a), Err(b)) => {
                        let c = chunks.next_chunk().unwrap_err();
                        let what = |e: &ReadError| (e.offset, e.packets, format!("{:?}", e.kind));
                        assert_eq!((what(&a), what(&a)), (what(&b), what(&c)));
                        break assert!(cut > 0);
                    }
                    (a, b) => panic!("{a:?} and {b:?}"),
                };
                assert_eq!(a, b);
                if chunk.as_ref().is_some_and(|c| at == c.len()) {
                    chunk = chunks.next_chunk().unwrap();
                    at = 0;
                }
                assert_eq!(a, chunk.as_ref().unwrap().records().nth(at).unwrap());
                at += 1;
            }
            assert_eq!(mapped.progress(), (bytes.len() as u64, Some(bytes.len() as u64)));
            assert_eq!(chunks.progress(), mapped.progress());
        }
    }

    #[test]
    fn single_records_and_chunks_in_turn() {
        in_place();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), large()).unwrap();
        let mut reader = Reader::open(file.path()).unwrap();
        for n in 1..=3000 {
            assert_eq!(reader.next().unwrap().unwrap().number, n);
        }
        let mut next = 3001;
        while let Some(chunk) = reader.next_chunk().unwrap() {
            for r in chunk.records() {
                assert_eq!((r.number, r.at.0 / 1_000_000_000 + 1), (next, i64::try_from(next).unwrap()));
                next += 1;
            }
        }
        assert_eq!(next, 6001);
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_read() {
        let bytes = large();
        let file = tempfile::NamedTempFile::new().unwrap();
        let ends: Vec<usize> = {
            let mut reader = Reader::from_read("all", std::io::Cursor::new(bytes.clone())).unwrap();
            let mut at = 24;
            std::iter::from_fn(move || {
                at += reader.next().unwrap()?.bytes.len() + 16;
                Some(at)
            })
            .collect()
        };
        // inside the mapped part that is being read, at every kind of place within a page, behind it, nothing left
        let near = (0..12).map(|n| (10, 100_000 + n * 1111));
        for (read, left) in near.chain([(10, 5000), (1000, 5 << 20), (5500, 0)]) {
            std::fs::write(file.path(), &bytes).unwrap();
            let in_place = in_place();
            let mut reader = Reader::open(file.path()).unwrap();
            for _ in 0..read {
                reader.next().unwrap().unwrap();
            }
            file.as_file().set_len(left as u64).unwrap();
            let error = loop {
                match reader.next() {
                    // what the program does with a packet: it looks at every byte
                    Ok(Some(r)) => drop(std::hint::black_box(r.bytes.to_vec())),
                    Ok(None) => break None,
                    Err(e) => break Some(e),
                }
            };
            let all = reader.packets();
            assert!(matches!(reader.next(), Ok(None)), "an error is said once");
            // how much a buffer had taken before is not known
            if in_place {
                let kind = error.map(|e| e.kind);
                assert!(matches!(kind, Some(ReadErrorKind::Shrunk | ReadErrorKind::Cut { .. })), "{kind:?}");
                // what is there still comes, and one record at most that is there in part
                let there = read.max(ends.iter().filter(|e| **e <= left).count() as u64);
                assert!(all == there || all == there + 1, "{all} of {there} at {left}");
            } else {
                assert!((read..6000).contains(&all), "{all}");
            }
        }
    }

    #[test]
    fn a_file_that_grows_is_read_on() {
        use std::io::Write;
        in_place();
        let whole = large();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let (first, rest) = whole.split_at(2 << 20);
        file.write_all(first).unwrap();
        let mut reader = Reader::open(file.path()).unwrap();
        assert!(reader.next().unwrap().is_some());
        file.write_all(rest).unwrap();
        while reader.next().unwrap().is_some() {}
        assert_eq!(reader.packets(), 6000);
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
