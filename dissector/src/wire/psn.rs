//! Packet sequence numbers: 24 bits that wrap, so order exists only within half the range.

/// A packet sequence number. Not `Ord`: only [`Psn::distance`] compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// How many numbers there are.
    pub const COUNT: u32 = 1 << 24;

    /// Keeps the low 24 bits.
    pub const fn new(v: u32) -> Self {
        Self(v & 0xff_ffff)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `n` further on (or back, if negative), modulo 2^24.
    #[must_use]
    pub const fn plus(self, n: i32) -> Self {
        Self(self.0.wrapping_add_signed(n) & 0xff_ffff)
    }

    /// The one after.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// How far `self` lies behind `from`: 0 the same, positive later, negative earlier;
    /// from -2^23 to 2^23 - 1.
    pub const fn distance(self, from: Self) -> i32 {
        let d = self.0.wrapping_sub(from.0) << 8;
        d.cast_signed() >> 8
    }

    /// Later than `other` within half the range.
    pub const fn is_after(self, other: Self) -> bool {
        self.distance(other) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps() {
        let last = Psn::new(0xff_ffff);
        assert_eq!(last.next(), Psn::new(0));
        assert_eq!(Psn::new(2).distance(last), 3);
        assert_eq!(last.distance(Psn::new(2)), -3);
        assert!(Psn::new(0).is_after(last));
        assert_eq!(Psn::new(0).plus(-1), last);
    }

    #[test]
    fn half_the_range() {
        let z = Psn::new(0);
        assert_eq!(Psn::new(0x7f_ffff).distance(z), 0x7f_ffff);
        assert_eq!(Psn::new(0x80_0000).distance(z), -0x80_0000);
    }
}
