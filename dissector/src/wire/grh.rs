//! Global Routing Header (IBTA 8.3): an IPv6 header in all but name; starts RoCEv1 packets.
//!
//! ```text
//!   0..4    IPVer 4 | traffic class 8 | flow label 20
//!   4..6    PayLen 16   bytes after the GRH up to and including the ICRC
//!   6       next header 8   0x1b: BTH follows
//!   7       hop limit 8
//!   8..24   source GID
//!   24..40  destination GID
//! ```

use super::bytes::{self, Short, be16, be32, part, u8_at};
use super::opcode::Header;

/// View of a GRH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grh<'a>(pub &'a [u8; Grh::LEN]);

impl<'a> Grh<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Grh.len();
    /// `next header` when a BTH follows.
    pub const NEXT_BTH: u8 = 0x1b;

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Grh) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// IPVer, 6.
    pub const fn ip_ver(self) -> u8 {
        u8_at::<0, 40>(self.0) >> 4
    }

    /// Traffic class: DSCP 6, ECN 2.
    pub const fn traffic_class(self) -> u8 {
        ((be16::<0, 40>(self.0) >> 4) & 0xff) as u8
    }

    /// Flow label.
    pub const fn flow_label(self) -> u32 {
        be32::<0, 40>(self.0) & 0x000f_ffff
    }

    /// Bytes after the GRH up to and including the ICRC.
    pub const fn pay_len(self) -> u16 {
        be16::<4, 40>(self.0)
    }

    /// Next header.
    pub const fn next_header(self) -> u8 {
        u8_at::<6, 40>(self.0)
    }

    /// Hop limit.
    pub const fn hop_limit(self) -> u8 {
        u8_at::<7, 40>(self.0)
    }

    /// Source GID.
    pub const fn sgid(self) -> &'a [u8; 16] {
        part::<8, 16, 40>(self.0)
    }

    /// Destination GID.
    pub const fn dgid(self) -> &'a [u8; 16] {
        part::<24, 16, 40>(self.0)
    }
}
