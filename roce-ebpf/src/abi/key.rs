//! Flow keys. The kernel program writes them, user space reads and deletes by them.
//!
//! The CPU is part of the key: each CPU counts in entries of its own, without locks and without losing a
//! packet, and memory is taken only for the CPUs that really see a flow (a per-CPU map takes it for all
//! possible ones). User space adds the entries of one flow up.

use super::layout;

/// `src_qp` of a flow whose packets do not carry one (all but UD and RD).
pub const NO_QP: u32 = u32::MAX;

/// A directed flow over IPv4, on one CPU.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyV4 {
    /// Source address, as on the wire.
    pub src: [u8; 4],
    /// Destination address, as on the wire.
    pub dst: [u8; 4],
    /// Destination QP.
    pub dest_qp: u32,
    /// Source QP of a datagram, else [`NO_QP`].
    pub src_qp: u32,
    /// CPU that counted.
    pub cpu: u32,
    /// [`super::Direction`].
    pub direction: u16,
    /// 1 for RoCEv1, whose addresses are GIDs.
    pub v1: u16,
}
layout!(KeyV4, 24, 8);

/// A directed flow over IPv6 or GRH, on one CPU.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyV6 {
    /// Source address or GID, as on the wire.
    pub src: [u8; 16],
    /// Destination address or GID, as on the wire.
    pub dst: [u8; 16],
    /// Destination QP.
    pub dest_qp: u32,
    /// Source QP of a datagram, else [`NO_QP`].
    pub src_qp: u32,
    /// CPU that counted.
    pub cpu: u32,
    /// [`super::Direction`].
    pub direction: u16,
    /// 1 for RoCEv1, whose addresses are GIDs.
    pub v1: u16,
}
layout!(KeyV6, 48, 8);
