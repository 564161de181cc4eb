//! FLUSH Extended Transport Header (IBTA annex A19).
//!
//! ```text
//!   0..4   reserved 26 | selectivity 2 | placement type 4
//! ```
//!
//! The widths are those of the Linux kernel (`rxe_hdr.h`); newer Wireshark reads three and two bits
//! and so takes the selectivity of a real packet for another.

use super::bytes::{self, Short, be32};
use super::opcode::Header;

/// View of a FETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feth<'a>(pub &'a [u8; Feth::LEN]);

impl<'a> Feth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Feth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Feth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// Placement type: bit 0 global visibility, bit 1 persistence.
    pub const fn placement(self) -> u8 {
        (be32::<0, 4>(self.0) & 0x0f) as u8
    }

    /// Selectivity: 0 the range of the RETH, 1 the whole memory region.
    pub const fn selectivity(self) -> u8 {
        ((be32::<0, 4>(self.0) >> 4) & 3) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_region_visible() {
        let f = Feth(&[0, 0, 0, 0x11]);
        assert_eq!((f.selectivity(), f.placement()), (1, 1));
    }
}
