//! RDMA Extended Transport Header (IBTA 9.3.3): where an RDMA operation reads or writes.
//!
//! ```text
//!   0..8    virtual address   64
//!   8..12   R_Key             32
//!   12..16  DMA length        32   bytes of the whole message
//! ```

use super::bytes::{self, Short, be32, be64};
use super::opcode::Header;

/// View of a RETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth<'a>(pub &'a [u8; Reth::LEN]);

impl<'a> Reth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Reth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Reth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// Virtual address at the responder.
    pub const fn va(self) -> u64 {
        be64::<0, 16>(self.0)
    }

    /// Key of the memory region.
    pub const fn r_key(self) -> u32 {
        be32::<8, 16>(self.0)
    }

    /// Length of the message, bytes.
    pub const fn dma_len(self) -> u32 {
        be32::<12, 16>(self.0)
    }

    /// The 16 bytes of these values.
    pub const fn emit(va: u64, r_key: u32, dma_len: u32) -> [u8; 16] {
        // one big-endian number of 16 bytes: VA, key, length
        (((va as u128) << 64) | ((r_key as u128) << 32) | dma_len as u128).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let b = Reth::emit(0x7f00_1122_3344, 0xab_cdef, 21);
        let (r, rest) = Reth::split(&b).unwrap();
        assert!(rest.is_empty());
        assert_eq!((r.va(), r.r_key(), r.dma_len()), (0x7f00_1122_3344, 0xab_cdef, 21));
        assert!(Reth::split(&b[..15]).is_err());
    }
}
