//! Records of the event ring: one packet each, with its first bytes. The kernel program writes, one reader
//! in user space consumes. What does not fit is counted in [`super::Totals::events_lost`].

use super::layout;

/// Why a packet is reported; several may hold.
pub mod kind {
    /// NAK of any code.
    pub const NAK: u32 = 1;
    /// RNR NAK.
    pub const RNR: u32 = 2;
    /// Congestion notification packet.
    pub const CNP: u32 = 4;
    /// PSNs are missing before it.
    pub const GAP: u32 = 8;
    /// Its PSN came before.
    pub const REPEAT: u32 = 16;
    /// First arrival of a PSN that lies before one seen earlier.
    pub const LATE: u32 = 32;
    /// Marked CE.
    pub const CE: u32 = 64;
    /// To a management queue pair (QP 0 or 1).
    pub const MAD: u32 = 128;
    /// Chosen by [`super::super::global::SAMPLE_EVERY`].
    pub const SAMPLE: u32 = 256;
    /// First packet of a flow (on this CPU).
    pub const NEW_FLOW: u32 = 512;
}

/// Bytes of packet in a short record: every header chain without IP options.
pub const SHORT: usize = 128;
/// Bytes of packet in a long record: a management datagram in its IPv6 frame.
pub const LONG: usize = 464;

/// What precedes the bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHead {
    /// Precise monotonic clock, nanoseconds.
    pub at: u64,
    /// Bits of [`kind`].
    pub kinds: u32,
    /// Bytes on the wire.
    pub wire_len: u32,
    /// PSN.
    pub psn: u32,
    /// Destination QP.
    pub dest_qp: u32,
    /// CPU.
    pub cpu: u32,
    /// Bytes of packet in this record.
    pub cap_len: u16,
    /// Where BTH starts in the bytes.
    pub bth_at: u16,
    /// Opcode.
    pub opcode: u8,
    /// [`super::Direction`].
    pub direction: u8,
    /// Nothing.
    pub pad: [u8; 2],
    /// PSNs missing before this packet, for [`kind::GAP`].
    pub missing: u32,
    /// VLAN tag that is on the wire and not among the bytes, as [`super::tag`] has it; 0 if there is none.
    pub tag: u32,
    /// Nothing.
    pub pad2: [u8; 4],
}
layout!(EventHead, 48, 8);

/// Record with up to [`SHORT`] bytes of packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ShortEvent {
    /// What and when.
    pub head: EventHead,
    /// The packet from its link header on, [`EventHead::cap_len`] bytes of it.
    pub bytes: [u8; SHORT],
}
layout!(ShortEvent, 176, 8);

/// Record with up to [`LONG`] bytes of packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LongEvent {
    /// What and when.
    pub head: EventHead,
    /// The packet from its link header on, [`EventHead::cap_len`] bytes of it.
    pub bytes: [u8; LONG],
}
layout!(LongEvent, 512, 8);
