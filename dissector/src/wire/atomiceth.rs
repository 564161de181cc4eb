//! Atomic headers: the request (IBTA 9.3.4) and the original value in its answer (9.5.3).
//!
//! ```text
//!   AtomicETH     0..8 virtual address 64 | 8..12 R_Key 32 | 12..20 swap or add 64 | 20..28 compare 64
//!   AtomicAckETH  0..8 original value 64
//! ```

use super::bytes::{self, Short, be32, be64};
use super::opcode::Header;

/// View of an AtomicETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth<'a>(pub &'a [u8; AtomicEth::LEN]);

impl<'a> AtomicEth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::AtomicEth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::AtomicEth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// Virtual address at the responder.
    pub const fn va(self) -> u64 {
        be64::<0, 28>(self.0)
    }

    /// Key of the memory region.
    pub const fn r_key(self) -> u32 {
        be32::<8, 28>(self.0)
    }

    /// Value to write (CmpSwap) or to add (FetchAdd).
    pub const fn swap_add(self) -> u64 {
        be64::<12, 28>(self.0)
    }

    /// Value to compare with (CmpSwap).
    pub const fn compare(self) -> u64 {
        be64::<20, 28>(self.0)
    }
}

/// View of an AtomicAckETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicAckEth<'a>(pub &'a [u8; AtomicAckEth::LEN]);

impl<'a> AtomicAckEth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::AtomicAckEth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::AtomicAckEth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// What the memory held before.
    pub const fn original(self) -> u64 {
        be64::<0, 8>(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_order() {
        let mut b = [0u8; 28];
        b[..8].copy_from_slice(&0x1122_3344_5566_7788u64.to_be_bytes());
        b[8..12].copy_from_slice(&0x99aa_bbccu32.to_be_bytes());
        b[12..20].copy_from_slice(&0x0102_0304_0506_0708u64.to_be_bytes());
        b[20..].copy_from_slice(&0x1112_1314_1516_1718u64.to_be_bytes());
        let (a, _) = AtomicEth::split(&b).unwrap();
        assert_eq!(a.va(), 0x1122_3344_5566_7788);
        assert_eq!(a.r_key(), 0x99aa_bbcc);
        assert_eq!(a.swap_add(), 0x0102_0304_0506_0708);
        assert_eq!(a.compare(), 0x1112_1314_1516_1718);
        assert_eq!(AtomicAckEth(&[1, 2, 3, 4, 5, 6, 7, 8]).original(), 0x0102_0304_0506_0708);
    }
}
