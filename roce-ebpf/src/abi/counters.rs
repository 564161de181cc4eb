//! Counters of a flow and of a CPU. Only the kernel program writes them; they grow and never go back.

use super::layout;
use crate::sequence::Track;

/// Which way packets went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Direction {
    /// Into the host.
    In = 0,
    /// Out of it.
    Out = 1,
}

impl Direction {
    /// How many there are.
    pub const COUNT: u32 = 2;
}

/// Slot of [`Flow::ops`] for CNPs.
pub const OP_CNP: usize = 32;
/// Slot of [`Flow::ops`] for opcodes of another transport than the flow's.
pub const OP_OTHER: usize = 33;
/// Slots of [`Flow::ops`].
pub const OPS: usize = 34;

/// Slot of [`Flow::naks`] for reserved NAK codes; 0 to 4 are the codes themselves.
pub const NAK_RESERVED: usize = 5;
/// Slot of [`Flow::naks`] for RNR NAKs.
pub const NAK_RNR: usize = 6;
/// Slot of [`Flow::naks`] for the reserved syndrome kind.
pub const NAK_UNKNOWN: usize = 7;

/// [`Flow::vlan`] of an untagged packet.
pub const NO_VLAN: u16 = u16::MAX;

/// Bit of [`Flow::answered`]: an answer came.
pub const ANSWERED: u32 = 1 << 31;

/// Slot of [`Flow::tracks`] for requests.
pub const REQUESTS: usize = 0;
/// Slot of [`Flow::tracks`] for READ responses and atomic acknowledges.
pub const RESPONSES: usize = 1;

/// What is known of a flow. Packets = sum of `ops`; messages, requests, responses and acknowledges follow
/// from `ops` by the opcode table. What every packet touches stands together at the front.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Which flow, the words of a [`super::KeyV4`] (and zeros) or of a [`super::KeyV6`].
    pub key: [u64; 6],
    /// TOS or traffic class of the latest packet. This field and the four after it are one word to the kernel program: a
    /// packet that brings the same word changes none of them.
    pub tos: u8,
    /// Transport of `ops` plus 1 (top three bits of the opcode); 0 while only CNPs came.
    pub transport: u8,
    /// UDP source port of the latest packet; 0 for RoCEv1.
    pub src_port: u16,
    /// TCI of the latest packet's innermost tag without the priority bits, or [`NO_VLAN`].
    pub vlan: u16,
    /// Nothing; 0.
    pub pad: u16,
    /// Slot, plus 1, of the entry that keeps the PSNs of this flow for all CPUs: `tracks`, `mtu`, `answered` and
    /// `messages` are written there, whichever CPU a packet came over; all else in the CPU's own entry.
    pub home: u32,
    /// PSN of the latest acknowledge or response, with bit 31 once one came: it lies in the PSN space of the
    /// flow that it answers, and so tells which one that is.
    pub answered: u32,
    /// Bytes on the wire, link header included.
    pub bytes: u64,
    /// Latest packet, coarse monotonic clock, nanoseconds.
    pub last: u64,
    /// Messages completed: request and READ response packets that end one, repeats not counted.
    pub messages: u64,
    /// Path MTU as the payload of a First or Middle packet shows it; 0 if none came.
    pub mtu: u16,
    /// Opcode of the latest packet in [`OP_OTHER`].
    pub other_opcode: u8,
    /// Nothing.
    pub pad2: [u8; 5],
    /// Packets by ECN codepoint: 00, 01 ECT(1), 10 ECT(0), 11 CE.
    pub ecn: [u64; 4],
    /// PSNs of requests and of responses.
    pub tracks: [Track; 2],
    /// Packets by operation (low five bits of the opcode), then [`OP_CNP`] and [`OP_OTHER`].
    pub ops: [u64; OPS],
    /// Negative acknowledges: codes 0 to 4, [`NAK_RESERVED`], [`NAK_RNR`], [`NAK_UNKNOWN`].
    pub naks: [u64; 8],
    /// DSCPs that occurred, a bit each.
    pub dscp_seen: u64,
    /// First packet, as `last`.
    pub first: u64,
}
layout!(Flow, 960, 8);

impl Flow {
    /// [`super::KeyV4::family`]; 0 if the slot holds no flow.
    pub const fn family(&self) -> u16 {
        let [_, place, ..] = self.key;
        let [.., a, b] = place.to_ne_bytes();
        // the last field of the second word
        u16::from_ne_bytes([a, b])
    }
}

/// Places of a CPU's cache of slot numbers, a power of two.
pub const PLACES: usize = 4096;

/// What a CPU has for itself, in one map value: one look-up finds all of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PerCpu {
    /// By [`Direction`].
    pub totals: [Totals; Direction::COUNT as usize],
    /// The CPU's number plus 1; 0 before its first packet.
    pub cpu: u32,
    /// Nothing.
    pub pad: u32,
    /// Tick (`bpf_jiffies64`) of `now`.
    pub tick: u64,
    /// Coarse monotonic clock at that tick, nanoseconds.
    pub now: u64,
    /// Slots of [`super::global::FLOWS`] plus 1 (24 bits) by a hash of the key, and more of that hash (8 bits); 0 is none. A hint: the
    /// key in the slot decides.
    pub cache: [u32; PLACES],
}
layout!(PerCpu, 20_632, 8);

/// Everything that one CPU saw in one direction.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Packets by opcode; their sum is the RoCE packets.
    pub opcodes: [u64; 256],
    /// Bytes of RoCE packets, link header included.
    pub roce_bytes: u64,
    /// Packets that are not RoCE.
    pub other_packets: u64,
    /// Their bytes.
    pub other_bytes: u64,
    /// RoCE packets that found no room in the flow maps.
    pub overflow_packets: u64,
    /// Their bytes.
    pub overflow_bytes: u64,
    /// Fragments of UDP datagrams, among `other_packets`: what they carry cannot be told.
    pub fragments: u64,
    /// Packets to the RoCE port without a whole BTH, among `other_packets`.
    pub malformed: u64,
    /// Events that the ring buffer could not take.
    pub events_lost: u64,
}
layout!(Totals, 2112, 8);

impl Totals {
    /// Nothing yet.
    pub const ZERO: Self = Self {
        opcodes: [0; 256],
        roce_bytes: 0,
        other_packets: 0,
        other_bytes: 0,
        overflow_packets: 0,
        overflow_bytes: 0,
        fragments: 0,
        malformed: 0,
        events_lost: 0,
    };

    /// RoCE packets.
    pub fn roce_packets(&self) -> u64 {
        self.opcodes.iter().fold(0, |n, v| n.wrapping_add(*v))
    }

    /// Adds another CPU's.
    pub fn add(&mut self, other: &Self) {
        for (a, b) in self.opcodes.iter_mut().zip(&other.opcodes) {
            *a = a.wrapping_add(*b);
        }
        for (a, b) in [
            (&mut self.roce_bytes, other.roce_bytes),
            (&mut self.other_packets, other.other_packets),
            (&mut self.other_bytes, other.other_bytes),
            (&mut self.overflow_packets, other.overflow_packets),
            (&mut self.overflow_bytes, other.overflow_bytes),
            (&mut self.fragments, other.fragments),
            (&mut self.malformed, other.malformed),
            (&mut self.events_lost, other.events_lost),
        ] {
            *a = a.wrapping_add(b);
        }
    }
}
