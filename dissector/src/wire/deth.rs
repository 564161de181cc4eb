//! Datagram headers: DETH (IBTA 9.3.2), RDETH (9.3.1) and XRCETH (annex A14).
//!
//! ```text
//!   DETH    0..4 Q_Key 32 | 4 reserved 8 | 5..8 source QP 24
//!   RDETH   0 reserved 8 | 1..4 EE context 24
//!   XRCETH  0 reserved 8 | 1..4 XRC shared receive queue 24
//! ```

use super::Qpn;
use super::bytes::{self, Short, be24, be32};
use super::opcode::Header;

/// View of a DETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deth<'a>(pub &'a [u8; Deth::LEN]);

impl<'a> Deth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Deth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Deth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// Queue key.
    pub const fn q_key(self) -> u32 {
        be32::<0, 8>(self.0)
    }

    /// Source queue pair.
    pub const fn src_qp(self) -> Qpn {
        Qpn::new(be24::<5, 8>(self.0))
    }

    /// The eight bytes of these values.
    pub const fn emit(q_key: u32, src_qp: Qpn) -> [u8; 8] {
        let [k0, k1, k2, k3] = q_key.to_be_bytes();
        let [q0, q1, q2] = bytes::to_be24(src_qp.get());
        [k0, k1, k2, k3, 0, q0, q1, q2]
    }
}

/// View of an RDETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rdeth<'a>(pub &'a [u8; Rdeth::LEN]);

impl<'a> Rdeth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Rdeth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Rdeth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// End-to-end context.
    pub const fn ee_context(self) -> u32 {
        be24::<1, 4>(self.0)
    }
}

/// View of an XRCETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XrcEth<'a>(pub &'a [u8; XrcEth::LEN]);

impl<'a> XrcEth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::XrcEth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::XrcEth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// Number of the XRC shared receive queue.
    pub const fn srq(self) -> u32 {
        be24::<1, 4>(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deth_round_trip() {
        let b = Deth::emit(0x8001_0000, Qpn::new(1));
        let (d, _) = Deth::split(&b).unwrap();
        assert_eq!((d.q_key(), d.src_qp()), (0x8001_0000, Qpn::GSI));
        assert!(Deth::split(&b[..7]).is_err());
    }

    #[test]
    fn contexts() {
        assert_eq!(Rdeth(&[0xff, 1, 2, 3]).ee_context(), 0x01_0203);
        assert_eq!(XrcEth(&[0xff, 4, 5, 6]).srq(), 0x04_0506);
    }
}
