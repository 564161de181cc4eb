//! Fields that are described rather than coded: management datagrams have hundreds of them, and they must be
//! readable from a message that the capture cut anywhere.
//!
//! Bits count from the most significant of the first byte, as the IBTA tables and the kernel's
//! `ibta_vol1_c12.h` write them.

/// Where a number stands in a message: at most 64 bits, big-endian, anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// First byte.
    pub at: u16,
    /// Bits skipped in that byte, 0 to 7.
    pub bit: u8,
    /// Width in bits, 1 to 64.
    pub width: u8,
}

impl Bits {
    /// `width` bits from the start of byte `at`.
    pub const fn new(at: u16, width: u8) -> Self {
        Self::within(at, 0, width)
    }

    /// `width` bits, `bit` bits into byte `at`. More than 57 bits must start at a byte.
    ///
    /// # Panics
    /// When the compiler evaluates it with a width that is no field; never at run time in a `const`.
    #[expect(clippy::arithmetic_side_effects, reason = "two bytes do not overflow 16 bits")]
    pub const fn within(at: u16, bit: u8, width: u8) -> Self {
        assert!(bit < 8 && width > 0 && width <= 64, "not a field");
        assert!(width as u16 + bit as u16 <= 64, "a field spans more than eight bytes");
        Self { at, bit, width }
    }

    /// Bytes that the field touches.
    #[expect(clippy::arithmetic_side_effects, reason = "at most 71 / 8")]
    pub const fn len(self) -> usize {
        (self.bit as usize + self.width as usize).div_ceil(8)
    }

    /// Never: a field has at least one bit.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// First byte, as an offset.
    pub const fn start(self) -> usize {
        self.at as usize
    }

    /// The same field `bytes` further on (rows of a table).
    #[must_use]
    pub const fn shifted(self, bytes: u16) -> Self {
        Self { at: self.at.saturating_add(bytes), ..self }
    }

    /// The number, if the message reaches that far.
    #[expect(clippy::arithmetic_side_effects, reason = "shifts are below 64 by the constructor's checks")]
    pub fn get(self, message: &[u8]) -> Option<u64> {
        let bytes = message.get(self.start()..self.start().saturating_add(self.len()))?;
        let whole = bytes.iter().fold(0u64, |v, b| v << 8 | u64::from(*b));
        let below = bytes.len() * 8 - usize::from(self.bit) - usize::from(self.width);
        let mask = u64::MAX >> (64 - u32::from(self.width));
        Some(whole >> below & mask)
    }
}

/// `N` bytes at `at`, if the message reaches that far.
pub fn bytes_at<const N: usize>(message: &[u8], at: usize) -> Option<&[u8; N]> {
    message.get(at..)?.first_chunk::<N>()
}

/// What is there of `len` bytes at `at`; empty if nothing is.
pub fn tail(message: &[u8], at: usize, len: usize) -> &[u8] {
    let end = at.saturating_add(len).min(message.len());
    message.get(at.min(end)..end).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anywhere_in_a_message() {
        let m = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x11];
        assert_eq!(Bits::new(0, 64).get(&m), Some(0x1234_5678_9abc_def0));
        assert_eq!(Bits::new(1, 24).get(&m), Some(0x34_5678));
        assert_eq!(Bits::within(1, 4, 8).get(&m), Some(0x45));
        assert_eq!(Bits::within(0, 3, 1).get(&m), Some(1));
        assert_eq!(Bits::within(8, 7, 1).get(&m), Some(1));
        assert_eq!(Bits::within(0, 5, 3).get(&m), Some(2));
        assert_eq!(Bits::new(8, 16).get(&m), None);
        assert_eq!(Bits::new(0, 16).shifted(2).get(&m), Some(0x5678));
        assert_eq!((Bits::within(1, 4, 8).len(), Bits::new(0, 20).len()), (2, 3));
    }

    #[test]
    fn ends_where_the_message_ends() {
        let m = [1, 2, 3];
        assert_eq!(tail(&m, 1, 9), &[2, 3]);
        assert_eq!(tail(&m, 3, 1), &[] as &[u8]);
        assert_eq!(tail(&m, usize::MAX, 2), &[] as &[u8]);
        assert_eq!(bytes_at::<2>(&m, 1), Some(&[2, 3]));
        assert_eq!(bytes_at::<3>(&m, 1), None);
    }
}
