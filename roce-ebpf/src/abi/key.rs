//! Flow keys. The kernel program writes them; user space removes those of flows that ended.
//!
//! The CPU is part of the key: each CPU counts in flows of its own, without locks and without losing a
//! packet, and memory is taken only for the CPUs that really see a flow (a per-CPU map takes it for all
//! possible ones). User space adds up what belongs together. PSNs are of one sequence wherever they are
//! counted: the first CPU's entry keeps them for all.
//!
//! Both keys begin alike, so that the table of flows holds one kind of key: an IPv4 key is an IPv6 key whose last
//! 24 bytes are zero.

use super::layout;

/// `src_qp` of a flow whose packets do not carry one (all but UD and RD).
pub const NO_QP: u32 = u32::MAX;

/// `cpu` of a key that leads to the entry which keeps the flow's PSNs for all CPUs ([`super::Flow::home`]).
pub const ALL_CPUS: u32 = u32::MAX;

/// [`KeyV4::family`] and [`KeyV6::family`]: what the addresses are. 0 is a slot without a flow.
pub mod family {
    /// RoCEv2 over IPv4.
    pub const V4: u16 = 4;
    /// RoCEv2 over IPv6.
    pub const V6: u16 = 6;
    /// RoCEv1, GIDs.
    pub const GID: u16 = 1;
}

/// A directed flow over IPv4, on one CPU.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyV4 {
    /// Destination QP.
    pub dest_qp: u32,
    /// Source QP of a datagram, else [`NO_QP`].
    pub src_qp: u32,
    /// CPU that counted.
    pub cpu: u32,
    /// [`super::Direction`].
    pub direction: u16,
    /// [`family::V4`].
    pub family: u16,
    /// Source address, as on the wire.
    pub src: [u8; 4],
    /// Destination address, as on the wire.
    pub dst: [u8; 4],
}
layout!(KeyV4, 24, 8);

/// A directed flow over IPv6 or GRH, on one CPU.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyV6 {
    /// Destination QP.
    pub dest_qp: u32,
    /// Source QP of a datagram, else [`NO_QP`].
    pub src_qp: u32,
    /// CPU that counted.
    pub cpu: u32,
    /// [`super::Direction`].
    pub direction: u16,
    /// [`family::V6`] or [`family::GID`].
    pub family: u16,
    /// Source address or GID, as on the wire.
    pub src: [u8; 16],
    /// Destination address or GID, as on the wire.
    pub dst: [u8; 16],
}
layout!(KeyV6, 48, 8);
