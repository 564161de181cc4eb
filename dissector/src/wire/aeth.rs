//! Acknowledge Extended Transport Header (IBTA 9.3.5): ACK, NAK or RNR NAK, and the message number.
//!
//! ```text
//!   0      syndrome: reserved 1 | kind 2 | value 5
//!   1..4   MSN   24
//! ```

use super::bytes::{self, Short, be24, u8_at};
use super::opcode::Header;

/// View of an AETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth<'a>(pub &'a [u8; Aeth::LEN]);

impl<'a> Aeth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Aeth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Aeth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// What it says.
    pub const fn syndrome(self) -> Syndrome {
        Syndrome(u8_at::<0, 4>(self.0))
    }

    /// Message sequence number: messages that the responder has completed, modulo 2^24.
    pub const fn msn(self) -> u32 {
        be24::<1, 4>(self.0)
    }

    /// The four bytes of these values.
    pub const fn emit(syndrome: Syndrome, msn: u32) -> [u8; 4] {
        let [a, b, c] = bytes::to_be24(msn);
        [syndrome.0, a, b, c]
    }
}

/// The syndrome byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Syndrome(pub u8);

/// What a syndrome says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Acknowledge, with the encoded credit count (31: no end-to-end flow control).
    Ack(u8),
    /// Receiver not ready; the timer code says how long to wait.
    Rnr(u8),
    /// Kind 2, reserved.
    Reserved(u8),
    /// Negative acknowledge.
    Nak(NakCode),
}

/// Reason of a NAK (IBTA table 45).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NakCode {
    /// 0: the PSN in BTH is the one expected.
    PsnSequenceError,
    /// 1
    InvalidRequest,
    /// 2
    RemoteAccessError,
    /// 3
    RemoteOperationalError,
    /// 4
    InvalidRdRequest,
    /// 5 to 31
    Reserved(u8),
}

impl NakCode {
    /// From the five value bits.
    pub const fn of(value: u8) -> Self {
        match value {
            0 => Self::PsnSequenceError,
            1 => Self::InvalidRequest,
            2 => Self::RemoteAccessError,
            3 => Self::RemoteOperationalError,
            4 => Self::InvalidRdRequest,
            v => Self::Reserved(v),
        }
    }

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PsnSequenceError => "PSN sequence error",
            Self::InvalidRequest => "invalid request",
            Self::RemoteAccessError => "remote access error",
            Self::RemoteOperationalError => "remote operational error",
            Self::InvalidRdRequest => "invalid RD request",
            Self::Reserved(_) => "reserved NAK code",
        }
    }
}

impl Syndrome {
    /// The usual ACK: no end-to-end credits.
    pub const ACK: Self = Self(0x1f);

    /// Kind and value.
    pub const fn verdict(self) -> Verdict {
        let value = self.0 & 0x1f;
        match (self.0 >> 5) & 3 {
            0 => Verdict::Ack(value),
            1 => Verdict::Rnr(value),
            2 => Verdict::Reserved(value),
            _ => Verdict::Nak(NakCode::of(value)),
        }
    }

    /// ACK of any credit count.
    pub const fn is_ack(self) -> bool {
        matches!(self.verdict(), Verdict::Ack(_))
    }

    /// NAK of any code (not RNR).
    pub const fn is_nak(self) -> bool {
        matches!(self.verdict(), Verdict::Nak(_))
    }

    /// RNR NAK.
    pub const fn is_rnr(self) -> bool {
        matches!(self.verdict(), Verdict::Rnr(_))
    }
}

/// RNR timer code to time, in units of 10 us (IBTA table 46); code 0 is the longest, 655.36 ms.
pub const fn rnr_timer_10us(code: u8) -> u32 {
    match code & 0x1f {
        0 => 65536,
        1 => 1,
        2 => 2,
        // from 2 on two codes a doubling: 2^k, 3 * 2^(k-1)
        c if c % 2 == 0 => 1 << (c / 2),
        c => 3 << (c.saturating_sub(3) / 2),
    }
}

/// Encoded credit count to credits (IBTA table 47); `None` for 31, "no credits are counted".
pub const fn credits(code: u8) -> Option<u32> {
    match code & 0x1f {
        31 => None,
        c @ 0..=3 => Some(c as u32),
        c if c % 2 == 0 => Some(1 << (c / 2)),
        c => Some(3 << (c.saturating_sub(3) / 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_table() {
        // milliseconds times 100, codes 0 to 31
        let table = [
            65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
            4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
        ];
        for (code, want) in table.into_iter().enumerate() {
            assert_eq!(rnr_timer_10us(u8::try_from(code).unwrap()), want, "code {code}");
        }
    }

    #[test]
    fn credit_table() {
        for (code, want) in
            [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (6, 8), (7, 12), (8, 16), (9, 24), (30, 32768)]
        {
            assert_eq!(credits(code), Some(want), "code {code}");
        }
        assert_eq!(credits(31), None);
    }

    #[test]
    fn verdicts() {
        assert_eq!(Syndrome(0x1f).verdict(), Verdict::Ack(31));
        assert_eq!(Syndrome(0x20).verdict(), Verdict::Rnr(0));
        assert_eq!(Syndrome(0x60).verdict(), Verdict::Nak(NakCode::PsnSequenceError));
        assert_eq!(Syndrome(0x64).verdict(), Verdict::Nak(NakCode::InvalidRdRequest));
        assert_eq!(Syndrome(0x41).verdict(), Verdict::Reserved(1));
        let b = Aeth::emit(Syndrome(0x62), 0x01_0203);
        assert_eq!(Aeth(&b).msn(), 0x01_0203);
        assert_eq!(Aeth(&b).syndrome(), Syndrome(0x62));
    }
}
