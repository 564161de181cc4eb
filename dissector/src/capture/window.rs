//! A moving window over a stream: records are parsed where they lie, and only the unread tail moves.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// First size of the window, bytes: large enough that reads are few, small enough for the cache.
const SIZE: usize = 1 << 20;

pub struct Window {
    input: Box<dyn Read + Send>,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the stream before `buf[start]`.
    offset: u64,
    ended: bool,
}

impl Window {
    pub fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, buf: vec![0; SIZE], start: 0, end: 0, offset: 0, ended: false }
    }

    /// What is there and not yet consumed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or(&[])
    }

    /// Position in the stream of the first byte of [`Self::bytes`].
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes that [`Self::consume`] moved over last are still there until the next [`Self::fill`].
    #[inline]
    pub fn consumed(&self, len: usize) -> &[u8] {
        self.buf.get(self.start.saturating_sub(len)..self.start).unwrap_or(&[])
    }

    #[inline]
    pub fn consume(&mut self, len: usize) {
        let len = len.min(self.end - self.start);
        self.start += len;
        self.offset += len as u64;
    }

    /// Reads once more from the stream; `false` at its end. The window grows when it is full of one record.
    pub fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
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
            match self.input.read(room) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                r => break r?,
            }
        };
        self.end += n.min(self.buf.len() - self.end);
        self.ended = n == 0;
        Ok(n > 0)
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
