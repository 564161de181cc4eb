//! Fault rules: how user space hands them over, and how the kernel program reports what it did.
//!
//! A rule is split by when it is looked at. What depends on one byte of the packet alone (opcode, TOS,
//! AETH syndrome, direction) is turned around: a table indexed by that byte holds a 64-bit word with a bit
//! per rule, so that any number of rules costs one load. What is left is [`FaultMatch`] (addresses, PSN,
//! size), compared for the rules whose bits survived, and [`FaultRule`] (history, choice, action), looked
//! at only for those that match.

/// Rules that can be active at once: a bit each in the words of the tables.
pub const MAX_RULES: usize = 64;
/// Header bytes kept of a packet before and after an action, and of every watched packet.
pub const HEADER_BYTES: usize = 128;
/// Flows whose history is kept. A flow beyond is counted in [`FaultCounters::flows_full`] and met by
/// no rule that needs history.
pub const MAX_FLOWS: u32 = 65_536;
/// (flow, rule) pairs whose counters are kept; see [`FaultCounters::states_full`].
pub const MAX_STATES: u32 = 65_536;
/// (flow, PSN space, PSN) triples whose occurrence is remembered; the least recently used is forgotten.
pub const MAX_SEEN: u32 = 262_144;
/// XDP program, ingress.
pub const XDP_INGRESS: &str = "roce_fault_xdp";
/// TC program, ingress.
pub const TC_INGRESS: &str = "roce_fault_in";
/// TC program, egress.
pub const TC_EGRESS: &str = "roce_fault_out";

/// Names of the maps, for the loader.
pub mod map {
    /// [`super::FaultConfig`], one entry.
    pub const CONFIG: &str = "FAULT_CONFIG";
    /// [`super::FaultOpcode`] by opcode byte.
    pub const OPCODES: &str = "FAULT_OPCODES";
    /// Rules by the last byte of the PSN.
    pub const PSNS: &str = "FAULT_PSNS";
    /// [`super::FaultPicks`], one entry.
    pub const PICKS: &str = "FAULT_PICKS";
    /// Rules by TOS byte.
    pub const TOS: &str = "FAULT_TOS";
    /// Rules by AETH syndrome.
    pub const SYNDROMES: &str = "FAULT_SYNDROMES";
    /// Rules by the last byte of the destination queue pair.
    pub const QPNS: &str = "FAULT_QPNS";
    /// [`super::FaultMatches`], one entry.
    pub const MATCHES: &str = "FAULT_MATCHES";
    /// [`super::FaultRule`] by rule.
    pub const RULES: &str = "FAULT_RULES";
    /// [`super::FaultTally`] by rule.
    pub const TALLIES: &str = "FAULT_TALLIES";
    /// [`super::FaultCounters`], one entry.
    pub const COUNTERS: &str = "FAULT_COUNTERS";
    /// [`super::FaultPassed`], one entry, per CPU.
    pub const PASSED: &str = "FAULT_PASSED";
    /// [`super::FaultFlow`] by [`super::FaultFlowKey`].
    pub const FLOWS: &str = "FAULT_FLOWS";
    /// [`super::FaultSeen`] by [`super::FaultSeenKey`].
    pub const SEEN: &str = "FAULT_SEEN";
    /// [`super::FaultState`] by [`super::FaultStateKey`].
    pub const STATES: &str = "FAULT_STATES";
    /// Ring of [`super::FaultEvent`].
    pub const EVENTS: &str = "FAULT_EVENTS";
    /// Ring of [`super::FaultFrame`] and [`super::FaultLongFrame`].
    pub const FRAMES: &str = "FAULT_FRAMES";
    /// Ring of [`super::FaultWatch`].
    pub const WATCH: &str = "FAULT_WATCH";
}

/// Bytes of the ring buffer for injections.
pub const EVENT_RING_BYTES: u32 = 1 << 20;
/// Bytes of the ring buffer for whole packets, if they are wanted.
pub const FRAME_RING_BYTES: u32 = 1 << 25;
/// Bytes of the ring buffer for watched packets.
pub const WATCH_RING_BYTES: u32 = 1 << 23;
/// A PSN that lies further than this from the last one of its space is of another life of the queue pair: its PSNs, their
/// transmissions and its messages count anew. More than [`crate::sequence::RESTART`], for here nobody looks at how many
/// PSNs a READ takes. UD has no order and no such thing.
pub const RESTART: u32 = 1 << 18;
/// Mark on a packet that the duplicate action has cloned, so that the clone is not looked at again.
pub const CLONE_MARK: u32 = 0x524f_4345;

/// Packets on their way into the host.
pub const DIRECTION_IN: u32 = 0;
/// Packets on their way out.
pub const DIRECTION_OUT: u32 = 1;

/// PSN space of requests (the sender's own).
pub const SPACE_REQUEST: u32 = 0;
/// READ responses and atomic acknowledges (in the peer's space).
pub const SPACE_RESPONSE: u32 = 1;
/// Acknowledges that are positive.
pub const SPACE_ACK: u32 = 2;
/// NAKs and RNR NAKs.
pub const SPACE_NAK: u32 = 3;
/// CNPs and opcodes without a row; their PSN means nothing, so each copy counts as a repetition.
pub const SPACE_NONE: u32 = 4;
/// How many spaces there are.
pub const SPACES: usize = 5;
/// Room in the arrays indexed by space (a power of two, so that a mask bounds the index).
pub const SPACE_SLOTS: usize = 8;
/// Room in the array indexed by opcode class.
pub const CLASS_SLOTS: usize = 16;

/// What a rule does; the numbers go into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Action {
    /// The packet vanishes.
    Drop = 1,
    /// ECN becomes CE; the IPv4 header checksum is kept right.
    MarkCe = 2,
    /// Only the ICRC becomes wrong.
    FailIcrc = 3,
    /// One payload byte is changed by exclusive or; the UDP checksum, if there is one, is kept right.
    Corrupt = 4,
    /// ECN becomes not-ECT.
    ClearEct = 5,
    /// DSCP is set, ECN stays.
    SetDscp = 6,
    /// The frame is cut; the length fields stay.
    Truncate = 7,
    /// The packet is sent twice (TC only).
    Duplicate = 8,
}

impl Action {
    /// From the number in a rule or an event.
    pub const fn of(v: u32) -> Option<Self> {
        Some(match v {
            1 => Self::Drop,
            2 => Self::MarkCe,
            3 => Self::FailIcrc,
            4 => Self::Corrupt,
            5 => Self::ClearEct,
            6 => Self::SetDscp,
            7 => Self::Truncate,
            8 => Self::Duplicate,
            _ => return None,
        })
    }

    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::MarkCe => "ce",
            Self::FailIcrc => "icrc",
            Self::Corrupt => "corrupt",
            Self::ClearEct => "clear-ect",
            Self::SetDscp => "dscp",
            Self::Truncate => "truncate",
            Self::Duplicate => "duplicate",
        }
    }
}

/// Header of the rule set: one entry.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FaultConfig {
    /// Bits of the rules that exist. Zero: nothing else is looked at.
    pub active: u64,
    /// Rules that apply to packets coming in, and going out.
    pub direction: [u64; 2],
    /// Rules that do not name a queue pair.
    pub any_qpn: u64,
    /// Rules that name an address or prefix.
    pub addressed: u64,
    /// Rules that take UD SENDs only as management datagrams (queue pairs 0 and 1).
    pub mad_only: u64,
    /// Rules that number flows and do not mean those of queue pairs 0 and 1.
    pub not_management: u64,
    /// Seed of all random decisions.
    pub seed: u64,
    /// `bpf_ktime_get_ns` when the run began; time windows count from here.
    pub started_ns: u64,
    /// After this time nothing fires any more, whatever is still attached.
    pub until_ns: u64,
    /// `CONFIG_*` bits.
    pub flags: u32,
    /// For [`FaultPicks::v4`]: how far the byte is shifted in the word of source and destination as it lies in memory.
    pub picks_v4: [u8; PICKS],
    /// For [`FaultPicks::v6`]: how far the byte is shifted in its word.
    pub picks_v6: [u8; PICKS],
    /// Explicit padding.
    pub pad: u32,
}

/// Count and report, change nothing.
pub const CONFIG_DRY: u32 = 1;
/// Report every RoCE packet to the watch ring.
pub const CONFIG_WATCH: u32 = 2;
/// Report each packet that a rule acts on in full, as [`FaultFrame`] or [`FaultLongFrame`].
pub const CONFIG_FRAMES: u32 = 4;

/// What user space knows about an opcode, out of the opcode table: one entry a byte.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FaultOpcode {
    /// Rules whose opcode condition this one meets.
    pub full: u64,
    /// Rules that must see it to know the history of their flows (first PSN, message numbers).
    pub scope: u64,
    /// Bytes of extended headers after BTH.
    pub headers_len: u32,
    /// `SPACE_*`; an acknowledge is told by its syndrome.
    pub space: u32,
    /// Counter of messages that this opcode belongs to ([`FaultFlow::messages`]).
    pub class: u32,
    /// `OPCODE_*` bits.
    pub flags: u32,
}

/// Starts a message.
pub const OPCODE_STARTS: u32 = 1;
/// An acknowledge: the syndrome table applies.
pub const OPCODE_ACK: u32 = 2;
/// A datagram: the source queue pair tells flows apart, and queue pairs 0 and 1 are management.
pub const OPCODE_DETH: u32 = 4;

/// Address bytes that are looked at before addresses are compared.
pub const PICKS: usize = 4;

/// Rules that may match by single bytes of the addresses. Which bytes, [`FaultConfig::picks`] says: those that leave the
/// fewest rules. A rule about an address or prefix is in few of the entries, so that most packets leave by them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FaultPicks {
    /// IPv4, by pick and byte.
    pub v4: [[u64; 256]; PICKS],
    /// IPv6 and GRH: the n-th pick is a byte of the n-th word of source and destination.
    pub v6: [[u64; 256]; PICKS],
}

/// The part of a rule that one look at the packet decides. Addresses are in network byte order, IPv4 as
/// `::ffff:a.b.c.d`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FaultMatch {
    /// Source address and the bits of it that count.
    pub src: [u64; 2],
    /// Mask of `src`.
    pub src_mask: [u64; 2],
    /// Destination address.
    pub dst: [u64; 2],
    /// Mask of `dst`.
    pub dst_mask: [u64; 2],
    /// First PSN of the range.
    pub psn: u32,
    /// PSNs after the first, modulo 2^24; `0xff_ffff` is any. Ignored if the range is relative.
    pub psn_span: u32,
    /// Fewest bytes of the frame, link header included.
    pub size_min: u32,
    /// Most bytes.
    pub size_max: u32,
    /// Interface index, 0 any.
    pub ifindex: u32,
    /// Destination queue pair, [`ANY_QPN`] any.
    pub dest_qp: u32,
}

/// No queue pair has this number of 32 bits.
pub const ANY_QPN: u32 = u32::MAX;

/// All of them in one map value: walking it costs no look-up a rule.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FaultMatches {
    /// By rule.
    pub rows: [FaultMatch; MAX_RULES],
}

/// `u64::MAX` as "no upper limit" of a window.
pub const FOREVER: u64 = u64::MAX;
/// One as a fraction of a random draw.
pub const CERTAIN: u64 = 1 << 32;

/// The rest of a rule: history, choice, action.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FaultRule {
    /// Window from the start of the run, ns.
    pub after_ns: u64,
    /// End of the window, ns; [`FOREVER`] if there is none.
    pub until_ns: u64,
    /// Flap: length of the period, ns; 0 none.
    pub period_ns: u64,
    /// Flap: active for so long at the beginning of each period, ns.
    pub down_ns: u64,
    /// The n-th match only; 0 any.
    pub nth: u64,
    /// Every n-th match; 0 any.
    pub every: u64,
    /// Chance of [`CERTAIN`].
    pub probability: u64,
    /// Gilbert-Elliott: good to bad.
    pub ge_p: u64,
    /// Bad to good.
    pub ge_r: u64,
    /// Chance of firing in the bad state (netem's 1-h).
    pub ge_bad: u64,
    /// Chance of firing in the good state (netem's 1-k).
    pub ge_good: u64,
    /// At most so many; 0 no limit.
    pub count: u64,
    /// Rate limit: ns between two; 0 none.
    pub interval_ns: u64,
    /// Phantom queue: ns that 1024 bytes take to drain; 0 none.
    pub drain_ns_per_kib: u64,
    /// Queue length below which nothing fires, in ns of draining.
    pub kmin_ns: u64,
    /// Queue length from which everything fires, in ns of draining.
    pub kmax_ns: u64,
    /// Chance just below `kmax`.
    pub pmax: u64,
    /// Occurrences of the PSN: fewest.
    pub iter_min: u32,
    /// And most.
    pub iter_max: u32,
    /// The n-th message of its class on the flow; 0 any.
    pub message: u32,
    /// The n-th flow that the rule has seen; 0 any.
    pub flow: u32,
    /// Index of the rule that must have fired, plus one; 0 none.
    pub armed_by: u32,
    /// `RULE_*` bits.
    pub flags: u32,
    /// [`Action`].
    pub action: u32,
    /// Payload offset, DSCP, or frame length.
    pub argument: u32,
    /// Bits that corruption inverts.
    pub xor: u32,
    /// First PSN of a relative range.
    pub psn: u32,
    /// PSNs after it.
    pub psn_span: u32,
    /// Explicit padding.
    pub pad: u32,
}

/// Needs to see packets before they match (occurrence, message number, relative PSN, n-th flow).
pub const RULE_HISTORY: u32 = 1;
/// The PSN range counts from the flow's first.
pub const RULE_RELATIVE: u32 = 2;
/// Counters are the rule's, not the flow's.
pub const RULE_SHARED: u32 = 4;
/// Has a Gilbert-Elliott chain.
pub const RULE_BURST: u32 = 8;
/// Counts its matches or its injections (nth, every, count, burst, rate, queue).
pub const RULE_COUNTS: u32 = 16;
/// Needs the clock (time window, rate, queue).
pub const RULE_CLOCK: u32 = 32;

/// A directed flow. Addresses as in [`FaultMatch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FaultFlowKey {
    /// Source address.
    pub src: [u64; 2],
    /// Destination address.
    pub dst: [u64; 2],
    /// Destination queue pair.
    pub dest_qp: u32,
    /// Source queue pair out of DETH, 0 without.
    pub src_qp: u32,
    /// `DIRECTION_*`: a box in the path sees each packet come in and go out, which is no retransmission.
    pub direction: u32,
    /// Explicit padding.
    pub pad: u32,
}

/// History of a flow.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FaultFlow {
    /// Number by order of appearance, from 1.
    pub id: u32,
    /// Bit per space: `first` and `latest` are set.
    pub known: u32,
    /// First PSN seen per space.
    pub first: [u32; SPACE_SLOTS],
    /// Highest PSN seen per space, counted on over wraps.
    pub latest: [u32; SPACE_SLOTS],
    /// Messages begun per opcode class.
    pub messages: [u64; CLASS_SLOTS],
}

/// Where a PSN of a flow is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FaultSeenKey {
    /// [`FaultFlow::id`], and the space in the top byte.
    pub flow: u32,
    /// PSN counted on over wraps.
    pub psn: u32,
}

/// What is remembered.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FaultSeen {
    /// How often it came.
    pub occurrence: u64,
    /// Which message of its class it belongs to.
    pub message: u64,
}

/// Counters of a rule on a flow, or of the whole rule (flow 0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FaultStateKey {
    /// [`FaultFlow::id`], or 0.
    pub flow: u32,
    /// Index of the rule.
    pub rule: u32,
}

/// See [`FaultStateKey`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FaultState {
    /// Packets that matched.
    pub matched: u64,
    /// Packets that were chosen before the limits.
    pub chosen: u64,
    /// Virtual time of the rate limit, ns.
    pub rate_at: u64,
    /// Virtual time at which the phantom queue is empty, ns.
    pub queue_at: u64,
    /// Gilbert-Elliott: 1 bad.
    pub bad: u32,
    /// Number of the flow among those that the rule saw; 0 not yet.
    pub ordinal: u32,
}

/// What a rule has done: one entry a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FaultTally {
    /// Packets that met its conditions.
    pub matched: u64,
    /// Packets that it chose, and (unless dry) changed.
    pub injected: u64,
    /// Packets that it chose but could not change (too short, no copy at this hook).
    pub not_applicable: u64,
    /// Flows that it has seen, for "the n-th flow".
    pub flows: u64,
}

/// Counters of the engine: one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FaultCounters {
    /// Injections that found no room in the ring buffer. They are in [`FaultTally::injected`].
    pub events_lost: u64,
    /// Watched packets that found no room.
    pub watch_lost: u64,
    /// Packets of flows that found no room.
    pub flows_full: u64,
    /// Packets whose rule found no room for its counters.
    pub states_full: u64,
    /// Flows numbered so far.
    pub flows: u64,
    /// Injections numbered so far.
    pub serials: u64,
    /// Whole packets that found no room in their ring.
    pub frames_lost: u64,
}

/// What the programs of one CPU saw: one entry, per CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FaultPassed {
    /// All packets.
    pub packets: u64,
    /// RoCE packets that the active rules were asked about.
    pub roce: u64,
}

/// An injection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FaultEvent {
    /// `bpf_ktime_get_ns`.
    pub at_ns: u64,
    /// Number of the injection, from 1.
    pub serial: u64,
    /// The flow.
    pub flow: FaultFlowKey,
    /// Index of the rule.
    pub rule: u32,
    /// [`Action`].
    pub action: u32,
    /// `DIRECTION_*`.
    pub direction: u32,
    /// Interface index.
    pub ifindex: u32,
    /// PSN.
    pub psn: u32,
    /// How often this PSN had come, this one included; 0 if it was not counted.
    pub occurrence: u32,
    /// Opcode byte.
    pub opcode: u32,
    /// Bytes of the frame before the action.
    pub length: u32,
    /// Bytes of `before` that are there.
    pub before_len: u32,
    /// Bytes of `after` that are there; 0 for a packet that was dropped.
    pub after_len: u32,
    /// Offset of BTH in the frame.
    pub bth: u32,
    /// Bytes of the frame after the action.
    pub length_after: u32,
    /// VLAN tag that is on the wire and in none of these bytes and lengths, as [`super::tag`] has it; 0 if there is none.
    pub tag: u32,
    /// Explicit padding.
    pub pad: u32,
    /// The frame's first bytes before.
    pub before: [u8; HEADER_BYTES],
    /// And after.
    pub after: [u8; HEADER_BYTES],
}

/// What precedes the bytes of a whole packet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FrameHead {
    /// [`FaultEvent::serial`].
    pub serial: u64,
    /// Bytes that are there.
    pub len: u32,
    /// As [`FaultEvent::tag`].
    pub tag: u32,
}

/// Bytes of a [`FaultFrame`].
pub const FRAME_BYTES: usize = 496;
/// Bytes of a [`FaultLongFrame`]: a payload of 4096 bytes within all its headers.
pub const LONG_FRAME_BYTES: usize = 4592;

/// A packet that a rule acted on: as it was if it is gone, else as it went on.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FaultFrame {
    /// Which.
    pub head: FrameHead,
    /// The frame.
    pub bytes: [u8; FRAME_BYTES],
}

/// A longer one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FaultLongFrame {
    /// Which.
    pub head: FrameHead,
    /// The frame.
    pub bytes: [u8; LONG_FRAME_BYTES],
}

/// A RoCE packet that came by, as it left the engine.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FaultWatch {
    /// `bpf_ktime_get_ns`.
    pub at_ns: u64,
    /// Bytes of the frame.
    pub length: u32,
    /// Bytes of `head` that are there.
    pub head_len: u32,
    /// `DIRECTION_*`.
    pub direction: u32,
    /// Interface index.
    pub ifindex: u32,
    /// 1 if a rule dropped it.
    pub dropped: u32,
    /// Index of the rule that acted, plus one; 0 none.
    pub rule: u32,
    /// As [`FaultEvent::tag`].
    pub tag: u32,
    /// Explicit padding.
    pub pad: u32,
    /// The frame's first bytes (before a drop, after anything else).
    pub head: [u8; HEADER_BYTES],
}

const _: () = {
    assert!(size_of::<FaultConfig>() == 96);
    assert!(size_of::<FaultOpcode>() == 32);
    assert!(size_of::<FaultPicks>() == 2 * PICKS * 256 * 8);
    assert!(size_of::<FaultFrame>() == 512);
    assert!(size_of::<FaultLongFrame>() == 4608);
    assert!(size_of::<FaultMatch>() == 88);
    assert!(size_of::<FaultMatches>() == 88 * MAX_RULES);
    assert!(size_of::<FaultRule>() == 184);
    assert!(size_of::<FaultFlowKey>() == 48);
    assert!(size_of::<FaultFlow>() == 200);
    assert!(size_of::<FaultSeen>() == 16);
    assert!(size_of::<FaultState>() == 40);
    assert!(size_of::<FaultTally>() == 32);
    assert!(size_of::<FaultCounters>() == 56);
    assert!(size_of::<FaultEvent>() == 120 + 2 * HEADER_BYTES);
    assert!(size_of::<FaultWatch>() == 40 + HEADER_BYTES);
};

/// Spreads the bits of a word (the finaliser of splitmix64).
#[expect(clippy::inline_always, reason = "the kernel program must not call: the verifier follows inlined code better")]
#[inline(always)]
pub const fn mix(mut v: u64) -> u64 {
    v = v.wrapping_add(0x9e37_79b9_7f4a_7c15);
    v = (v ^ (v >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    v = (v ^ (v >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    v ^ (v >> 31)
}

impl FaultFlowKey {
    /// A number that depends on the flow alone, whatever order flows appear in, and whichever way they pass.
    #[expect(
        clippy::inline_always,
        reason = "the kernel program must not call: the verifier follows inlined code better"
    )]
    #[inline(always)]
    pub const fn hash(&self) -> u64 {
        let [s0, s1] = self.src;
        let [d0, d1] = self.dst;
        let h = mix(mix(mix(mix(s0) ^ s1) ^ d0) ^ d1);
        mix(h ^ (self.dest_qp as u64) << 32 ^ self.src_qp as u64)
    }
}

/// A random draw below [`CERTAIN`] that depends on nothing but its arguments. `salt` tells several draws
/// about one packet apart.
#[expect(clippy::inline_always, reason = "the kernel program must not call: the verifier follows inlined code better")]
#[inline(always)]
pub const fn draw(seed: u64, rule: u32, flow: u64, space: u32, psn: u32, occurrence: u32, salt: u32) -> u64 {
    let h = mix(seed ^ mix((rule as u64) << 32 | salt as u64));
    let h = mix(h ^ flow);
    mix(h ^ mix((psn as u64) << 32 | (space as u64) << 28 ^ occurrence as u64)) >> 32
}

#[cfg(feature = "user")]
mod pod {
    use super::{
        FaultConfig, FaultCounters, FaultFlow, FaultFlowKey, FaultMatch, FaultMatches, FaultOpcode, FaultPassed,
        FaultPicks, FaultRule, FaultSeen, FaultSeenKey, FaultState, FaultStateKey, FaultTally,
    };

    macro_rules! pod {
        ($($t:ty),*) => {
            $(
                // SAFETY: repr(C) of integers and arrays of integers without implicit padding (the size
                // assertions above), so every bit pattern is a value and no byte is uninitialised.
                unsafe impl aya::Pod for $t {}
            )*
        };
    }
    pod!(
        FaultConfig,
        FaultOpcode,
        FaultPicks,
        FaultMatch,
        FaultMatches,
        FaultRule,
        FaultFlowKey,
        FaultFlow,
        FaultSeenKey,
        FaultSeen,
        FaultStateKey,
        FaultState,
        FaultTally,
        FaultCounters,
        FaultPassed
    );
}
