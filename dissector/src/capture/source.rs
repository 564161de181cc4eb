//! From a name to a stream of unpacked bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::OpenError;
use super::magic::{self, Magic};
use super::mapped;

/// An opened capture before its format is looked at.
pub struct Source {
    /// What to call it in messages.
    pub name: String,
    /// Unpacked bytes.
    pub input: Input,
    /// How it was packed.
    pub packing: Option<&'static str>,
    /// Bytes of the file itself, if it is a regular one.
    pub size: Option<u64>,
    /// Bytes of the file that were read so far.
    pub taken: Taken,
    /// First unpacked bytes, which `input` yields again.
    pub start: Vec<u8>,
}

/// Where unpacked bytes come from.
pub enum Input {
    /// One after the other.
    Stream(Box<dyn Read + Send>),
    /// A regular file that is not packed and may be mapped. Who does says how far that went.
    File(File, Taken),
}

/// Files that are shorter than this are read faster than mapped, bytes.
const WORTH_MAPPING: u64 = 1 << 20;

/// How far the file itself (packed, if it is) has been read.
#[derive(Clone, Debug, Default)]
pub struct Taken(Arc<AtomicU64>);

impl Taken {
    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Says how far.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

struct Counting<R> {
    inner: R,
    taken: Taken,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.taken.0.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A stream that says how far it has been read.
pub fn counted(inner: impl Read, taken: Taken) -> impl Read {
    Counting { inner, taken }
}

/// The members of a gzip file, which are one file if there are several in a row, as gzip -d reads it. Zeros behind the
/// last one are padding (tapes, copies by the block).
struct Members<R> {
    /// `None` only while one member gives its input to the next.
    current: Option<flate2::bufread::GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    fn new(input: R) -> Self {
        Self { current: Some(flate2::bufread::GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = self.current.as_mut() else { return Ok(0) };
            match member.read(buf)? {
                0 if !buf.is_empty() => {}
                n => return Ok(n),
            }
            let Some(mut input) = self.current.take().map(flate2::bufread::GzDecoder::into_inner) else {
                return Ok(0);
            };
            loop {
                let there = input.fill_buf()?;
                match there.iter().position(|b| *b != 0) {
                    Some(zeros) => {
                        input.consume(zeros);
                        break;
                    }
                    None if there.is_empty() => return Ok(0),
                    None => {
                        let zeros = there.len();
                        input.consume(zeros);
                    }
                }
            }
            self.current = Some(flate2::bufread::GzDecoder::new(input));
        }
    }
}

type Restarted<R> = Chain<Cursor<Vec<u8>>, R>;

/// The first bytes, and a reader that starts with them.
fn peek<R: Read>(mut input: R) -> io::Result<(Vec<u8>, Restarted<R>)> {
    let mut start = Vec::with_capacity(magic::LEN);
    input.by_ref().take(magic::LEN as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(input)))
}

/// Opens a path, or standard input for `-`.
pub fn open(path: &Path) -> Result<Source, OpenError> {
    if path.as_os_str() == "-" {
        return from_read("standard input".to_owned(), Box::new(io::stdin()), None);
    }
    let name = path.display().to_string();
    let failed = |source| OpenError::Io { name: name.clone(), source };
    let mut file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if meta.is_dir() {
        return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "is a directory, not a capture file")));
    }
    let size = meta.is_file().then_some(meta.len());
    if mapped::enabled() && size.is_some_and(|s| s >= WORTH_MAPPING) {
        let mut start = Vec::with_capacity(magic::LEN);
        file.by_ref().take(magic::LEN as u64).read_to_end(&mut start).map_err(failed)?;
        file.rewind().map_err(failed)?;
        if !matches!(magic::sniff(&start), Magic::Gzip | Magic::Zstd | Magic::Lz4) {
            let taken = Taken::default();
            return Ok(Source { name, input: Input::File(file, taken.clone()), packing: None, size, taken, start });
        }
    }
    from_read(name, Box::new(file), size)
}

/// From any stream.
pub fn from_read(name: String, input: Box<dyn Read + Send>, size: Option<u64>) -> Result<Source, OpenError> {
    let taken = Taken::default();
    let counting = Counting { inner: input, taken: taken.clone() };
    let (start, input) = match peek(counting) {
        Ok(both) => both,
        Err(source) => return Err(OpenError::Io { name, source }),
    };
    let (packing, unpacked): (_, Box<dyn Read + Send>) = match magic::sniff(&start) {
        Magic::Gzip => ("gzip", Box::new(Members::new(BufReader::with_capacity(128 << 10, input)))),
        #[cfg(feature = "zstd")]
        Magic::Zstd => match zstd::stream::read::Decoder::new(input) {
            Ok(d) => ("zstd", Box::new(d)),
            Err(source) => return Err(OpenError::Packing { name, packing: "zstd", source }),
        },
        #[cfg(not(feature = "zstd"))]
        Magic::Zstd => {
            return Err(OpenError::Foreign {
                name,
                what: "a zstd file",
                hint: "this build has no zstd: unpack it with zstd -d",
            });
        }
        Magic::Lz4 => ("lz4", Box::new(lz4_flex::frame::FrameDecoder::new(BufReader::with_capacity(128 << 10, input)))),
        _ => return Ok(Source { name, input: Input::Stream(Box::new(input)), packing: None, size, taken, start }),
    };
    match peek(unpacked) {
        Ok((start, input)) => {
            Ok(Source { name, input: Input::Stream(Box::new(input)), packing: Some(packing), size, taken, start })
        }
        Err(source) => Err(OpenError::Packing { name, packing, source }),
    }
}
