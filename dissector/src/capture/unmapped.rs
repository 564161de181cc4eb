//! Where files are not mapped: they are read through a buffer.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// Files are not mapped here.
pub fn enable() -> bool {
    false
}

/// They are not.
pub fn enabled() -> bool {
    false
}

/// There is none.
#[derive(Debug)]
pub enum Part {}

impl Part {
    /// Cannot be.
    pub fn new(_: &File, _: u64, _: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never.
    pub fn torn(&self) -> bool {
        match *self {}
    }
}

impl Deref for Part {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match *self {}
    }
}

/// Nothing to be fetched early.
#[inline]
pub fn expect(_: &[u8]) {}
