//! Numbers of the transport that are more than integers.

/// Queue pair number, 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qpn(u32);

impl Qpn {
    /// Subnet management (native InfiniBand only).
    pub const SMI: Self = Self(0);
    /// General services: CM, SA and other management datagrams.
    pub const GSI: Self = Self(1);
    /// Destination of multicast datagrams (IBTA 9.2).
    pub const MULTICAST: Self = Self(0xff_ffff);

    /// Keeps the low 24 bits.
    pub const fn new(v: u32) -> Self {
        Self(v & 0xff_ffff)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether management datagrams arrive there (QP 0 and 1).
    pub const fn is_management(self) -> bool {
        self.0 <= 1
    }
}

/// Partition key: 15 bits of number, the top bit says full membership.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PKey(pub u16);

impl PKey {
    /// The default partition, full member.
    pub const DEFAULT: Self = Self(0xffff);

    /// Full member of the partition (limited members cannot talk to each other).
    pub const fn is_full(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// The partition without the membership bit.
    pub const fn base(self) -> u16 {
        self.0 & 0x7fff
    }
}
