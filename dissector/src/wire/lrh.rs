//! Local Routing Header (IBTA 7.7): native InfiniBand only.
//!
//! ```text
//!   0      VL 4 | LVer 4
//!   1      SL 4 | reserved 2 | LNH 2
//!   2..4   DLID
//!   4..6   reserved 5 | PktLen 11   four-byte words from LRH through ICRC
//!   6..8   SLID
//! ```

use super::bytes::{self, Short, be16, u8_at};
use super::opcode::Header;

/// View of an LRH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lrh<'a>(pub &'a [u8; Lrh::LEN]);

impl<'a> Lrh<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Lrh.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Lrh) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// Virtual lane.
    pub const fn vl(self) -> u8 {
        u8_at::<0, 8>(self.0) >> 4
    }

    /// Link version.
    pub const fn lver(self) -> u8 {
        u8_at::<0, 8>(self.0) & 15
    }

    /// Service level.
    pub const fn sl(self) -> u8 {
        u8_at::<1, 8>(self.0) >> 4
    }

    /// Reserved, two bits.
    pub const fn resv2(self) -> u8 {
        (u8_at::<1, 8>(self.0) >> 2) & 3
    }

    /// Link next header: 0 raw, 1 IPv6 without IBA transport, 2 BTH, 3 GRH.
    pub const fn lnh(self) -> u8 {
        u8_at::<1, 8>(self.0) & 3
    }

    /// Destination LID.
    pub const fn dlid(self) -> u16 {
        be16::<2, 8>(self.0)
    }

    /// Reserved, five bits.
    pub const fn resv5(self) -> u8 {
        u8_at::<4, 8>(self.0) >> 3
    }

    /// Length in four-byte words, LRH through ICRC.
    pub const fn pkt_len(self) -> u16 {
        be16::<4, 8>(self.0) & 0x07ff
    }

    /// Source LID.
    pub const fn slid(self) -> u16 {
        be16::<6, 8>(self.0)
    }
}
