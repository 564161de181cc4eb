//! What can be wrong with a capture file, in sentences for the person at the terminal.

use std::fmt;
use std::io;

/// A file could not be opened as a capture.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("{name}: {source}")]
    Io {
        /// File.
        name: String,
        /// Its words.
        source: io::Error,
    },
    /// Nothing in it.
    #[error("{name}: the file is empty, not even a capture file's header is there")]
    Empty {
        /// File.
        name: String,
    },
    /// The header is incomplete.
    #[error("{name}: cut inside the file header: {needed} bytes needed, {there} are there")]
    Cut {
        /// File.
        name: String,
        /// Bytes that the header takes.
        needed: usize,
        /// Bytes in the file.
        there: usize,
    },
    /// A format that is known but not read here.
    #[error("{name}: this is {what}, which is not read here; {hint}")]
    Foreign {
        /// File.
        name: String,
        /// The format.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// Not a capture.
    #[error(
        "{name}: not a capture file: its first bytes are {start}; pcap and pcapng are read, also packed with gzip, zstd or lz4"
    )]
    NotACapture {
        /// File.
        name: String,
        /// First bytes, hex.
        start: String,
    },
    /// Packed data that cannot be unpacked.
    #[error("{name}: {packing} data that cannot be unpacked: {source}")]
    Packing {
        /// File.
        name: String,
        /// Which.
        packing: &'static str,
        /// The unpacker's words.
        source: io::Error,
    },
    /// The header contradicts itself.
    #[error("{name}: byte {offset}: {what}")]
    Malformed {
        /// File.
        name: String,
        /// Where.
        offset: u64,
        /// What is wrong.
        what: String,
    },
}

/// Reading stopped before the end of the file; everything before was delivered.
#[derive(Debug)]
pub struct ReadError {
    /// File.
    pub name: String,
    /// First byte of the record or block that could not be read; in packed files, of the unpacked data.
    pub offset: u64,
    /// Whether `offset` counts unpacked bytes.
    pub unpacked: bool,
    /// Packets that were read before.
    pub packets: u64,
    /// What is wrong there.
    pub kind: ReadErrorKind,
}

/// Why reading stopped.
#[derive(Debug)]
pub enum ReadErrorKind {
    /// The file ends inside a record.
    Cut {
        /// Bytes that the record takes.
        needed: u64,
        /// Bytes that are left.
        there: u64,
    },
    /// A record that claims to be longer than any real one.
    TooLong {
        /// What it claims.
        says: u64,
        /// What is accepted.
        limit: u64,
    },
    /// The record contradicts itself.
    Malformed(String),
    /// The file became shorter, or its disk failed, while it was read in place.
    Shrunk,
    /// The operating system or the unpacker gave up.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}", self.name, self.offset)?;
        if self.unpacked {
            f.write_str(" of the unpacked data")?;
        }
        write!(f, " (after packet {}): ", self.packets)?;
        match &self.kind {
            ReadErrorKind::Cut { needed, there } => {
                write!(f, "the file is cut here: the record takes {needed} bytes, {there} are left")
            }
            ReadErrorKind::TooLong { says, limit } => {
                write!(
                    f,
                    "a record that says it is {says} bytes long (at most {limit} make sense): the file is damaged here"
                )
            }
            ReadErrorKind::Malformed(what) => f.write_str(what),
            ReadErrorKind::Shrunk => f.write_str("the file became shorter, or cannot be read, while it was being read"),
            ReadErrorKind::Io(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ReadErrorKind::Io(e) => Some(e),
            _ => None,
        }
    }
}
