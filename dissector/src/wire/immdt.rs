//! Four bytes that the application chose: immediate data (IBTA 9.3.6) and the key to invalidate (9.3.7).

use super::bytes::{self, Short, be32};
use super::opcode::Header;

/// View of an ImmDt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImmDt<'a>(pub &'a [u8; ImmDt::LEN]);

impl<'a> ImmDt<'a> {
    /// Bytes.
    pub const LEN: usize = Header::ImmDt.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::ImmDt) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// The value, big-endian by convention of the verbs API.
    pub const fn value(self) -> u32 {
        be32::<0, 4>(self.0)
    }
}

/// View of an IETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ieth<'a>(pub &'a [u8; Ieth::LEN]);

impl<'a> Ieth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Ieth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Ieth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// The R_Key that the receiver shall invalidate.
    pub const fn r_key(self) -> u32 {
        be32::<0, 4>(self.0)
    }
}
