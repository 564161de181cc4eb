//! Total reads from fixed-size byte arrays: the length is in the type, so nothing can run past the end.

use super::opcode::Header;

/// A header that is not there in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Which header.
    pub header: Header,
    /// Bytes that it takes.
    pub needed: usize,
    /// Bytes that were there.
    pub available: usize,
}

/// The `L` bytes at offset `AT` of an array; out of range is a compile error.
pub const fn part<const AT: usize, const L: usize, const N: usize>(b: &[u8; N]) -> &[u8; L] {
    const { assert!(AT + L <= N, "field outside of its header") };
    // the branches that cannot happen fold away, since every length is a constant
    let (_, tail) = b.split_at(AT);
    match tail.first_chunk::<L>() {
        Some(p) => p,
        None => &[0; L],
    }
}

/// One byte at `AT`.
pub const fn u8_at<const AT: usize, const N: usize>(b: &[u8; N]) -> u8 {
    let [v] = *part::<AT, 1, N>(b);
    v
}

/// Big-endian 16 bits at `AT`.
pub const fn be16<const AT: usize, const N: usize>(b: &[u8; N]) -> u16 {
    u16::from_be_bytes(*part::<AT, 2, N>(b))
}

/// Big-endian 24 bits at `AT`, in the low bits.
pub const fn be24<const AT: usize, const N: usize>(b: &[u8; N]) -> u32 {
    let [x, y, z] = *part::<AT, 3, N>(b);
    u32::from_be_bytes([0, x, y, z])
}

/// Big-endian 32 bits at `AT`.
pub const fn be32<const AT: usize, const N: usize>(b: &[u8; N]) -> u32 {
    u32::from_be_bytes(*part::<AT, 4, N>(b))
}

/// Big-endian 64 bits at `AT`.
pub const fn be64<const AT: usize, const N: usize>(b: &[u8; N]) -> u64 {
    u64::from_be_bytes(*part::<AT, 8, N>(b))
}

/// The first `N` bytes and the rest, or how many were missing.
pub const fn split<const N: usize>(bytes: &[u8], header: Header) -> Result<(&[u8; N], &[u8]), Short> {
    match bytes.split_first_chunk::<N>() {
        Some(both) => Ok(both),
        None => Err(Short { header, needed: N, available: bytes.len() }),
    }
}

/// A 24-bit number as three big-endian bytes; the high byte is dropped.
pub const fn to_be24(v: u32) -> [u8; 3] {
    let [_, x, y, z] = v.to_be_bytes();
    [x, y, z]
}

/// The first bytes of a header that may be cut, with zeros for what is not there.
#[inline]
pub fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    if let Some(whole) = bytes.first_chunk::<N>() {
        return *whole;
    }
    let mut out = [0; N];
    for (o, b) in out.iter_mut().zip(bytes) {
        *o = *b;
    }
    out
}
