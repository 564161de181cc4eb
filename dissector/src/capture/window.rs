//! A moving window over a stream or a file: records are parsed where they lie. Of a stream the unread tail moves
//! to the front of the buffer; over a mapped file the window itself moves.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use super::mapped::{self, Part};
use super::source::{Input, Taken};

/// First size of the buffer, bytes: large enough that reads are few, small enough for the cache.
const SIZE: usize = 1 << 20;
/// Bytes that are mapped at a time: mapping is dear, but what is mapped counts as memory.
const PART: usize = 16 << 20;

enum Feed {
    Stream(Box<dyn Read + Send>),
    /// A regular file; the part of it that is mapped.
    File(File, Taken, Option<Part>),
}

pub struct Window {
    feed: Feed,
    /// What a stream gave.
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the stream before `start`.
    offset: u64,
    ended: bool,
}

impl Window {
    pub fn new(input: Input) -> Self {
        let (feed, buf) = match input {
            Input::Stream(s) => (Feed::Stream(s), vec![0; SIZE]),
            Input::File(f, taken) => (Feed::File(f, taken, None), Vec::new()),
        };
        Self { feed, buf, start: 0, end: 0, offset: 0, ended: false }
    }

    #[inline]
    fn whole(&self) -> &[u8] {
        match &self.feed {
            Feed::File(_, _, Some(part)) => part,
            _ => &self.buf,
        }
    }

    /// What is there and not yet consumed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.whole().get(self.start..self.end).unwrap_or(&[])
    }

    /// Position in the stream of the first byte of [`Self::bytes`].
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes that [`Self::consume`] moved over last are still there until the next [`Self::fill`].
    #[inline]
    pub fn consumed(&self, len: usize) -> &[u8] {
        self.whole().get(self.start.saturating_sub(len)..self.start).unwrap_or(&[])
    }

    #[inline]
    pub fn consume(&mut self, len: usize) {
        let len = len.min(self.end - self.start);
        self.start += len;
        self.offset += len as u64;
    }

    /// Has the processor fetch what comes next, if nobody has copied it into its cache yet.
    #[inline]
    pub fn expect(&self) {
        if let Feed::File(_, _, Some(part)) = &self.feed {
            mapped::expect(part.get(self.start..self.end).unwrap_or(&[]));
        }
    }

    /// Whether bytes that were looked at were no longer in the file and were read as zeros.
    #[inline]
    pub fn torn(&self) -> bool {
        matches!(&self.feed, Feed::File(_, _, Some(part)) if part.torn())
    }

    /// Whether the file ends before the part of it that is mapped.
    #[cold]
    pub fn shrunk(&self) -> bool {
        let Feed::File(file, _, Some(part)) = &self.feed else { return false };
        let end = self.offset + (part.len() - self.start) as u64;
        file.metadata().map_or(true, |m| m.len() < end)
    }

    /// Reads once more from the stream, or looks further into the file; `false` at its end. The window grows when
    /// it is full of one record.
    pub fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let there = self.end - self.start;
        if let Feed::File(file, taken, part) = &mut self.feed {
            // asked for every time: a file that is still written may have grown
            let left = file.metadata()?.len().saturating_sub(self.offset);
            self.ended = left <= there as u64;
            if self.ended {
                return Ok(false);
            }
            // the old part goes before the new one comes
            *part = None;
            (self.start, self.end) = (0, 0);
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(PART.max(there.saturating_mul(2)));
            if let Ok(new) = Part::new(file, self.offset, len) {
                self.end = new.len();
                *part = Some(new);
                taken.set(self.offset + len as u64);
                return Ok(true);
            }
            self.copy()?;
        }
        let Feed::Stream(input) = &mut self.feed else { return Ok(false) };
        if self.start > 0 {
            self.buf.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buf.len() {
            self.buf.resize(self.buf.len() * 2, 0);
        }
        let room = self.buf.get_mut(self.end..).unwrap_or(&mut []);
        let n = loop {
            match input.read(room) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                r => break r?,
            }
        };
        self.end += n.min(self.buf.len() - self.end);
        self.ended = n == 0;
        Ok(n > 0)
    }

    /// From here on a file is read through the buffer: what several threads look at must stay when the window
    /// moves on, and to map and unmap under several threads costs more than to copy.
    pub fn copy(&mut self) -> io::Result<()> {
        let Feed::File(file, taken, _) = &self.feed else { return Ok(()) };
        let mut file = file.try_clone()?;
        file.seek(SeekFrom::Start(self.offset))?;
        taken.set(self.offset);
        let input = super::source::counted(file, taken.clone());
        self.feed = Feed::Stream(Box::new(input));
        self.buf = vec![0; SIZE];
        (self.start, self.end) = (0, 0);
        Ok(())
    }

    /// Takes the buffer out, whose first `used` unread bytes go to the caller; the rest stays here, in a
    /// buffer that came back or a new one.
    pub fn take(&mut self, used: usize, pool: &Pool) -> (Vec<u8>, usize) {
        let from = self.start;
        let cut = (from + used).min(self.end);
        let rest = self.end - cut;
        let mut next = pool.get();
        // a window that grew for one record need not stay so
        if next.len() < rest.max(SIZE) {
            next.resize(rest.max(SIZE), 0);
        }
        if let (Some(to), Some(tail)) = (next.get_mut(..rest), self.buf.get(cut..self.end)) {
            to.copy_from_slice(tail);
        }
        let old = std::mem::replace(&mut self.buf, next);
        self.offset += used as u64;
        self.start = 0;
        self.end = rest;
        (old, from)
    }
}

/// Buffers that come back when their chunk is dropped: new ones would cost more page faults than reading
/// costs.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

/// More than this are not kept.
const POOLED: usize = 16;

impl Pool {
    fn get(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub fn put(&self, buffer: Vec<u8>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < POOLED && buffer.len() == SIZE {
            all.push(buffer);
        }
    }
}
