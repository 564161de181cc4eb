//! What is kept of one directed flow. Fixed in size but for small bounded lists, 2 KiB at the most.

use super::echo::Ids;
use super::event::{Event, Events, Happened};
use super::flight::Flight;
use super::histogram::Histogram;
use super::key::Key;
use super::reaction::{Pace, Reaction};
use super::reads::{MTUS, Reads, packets_of};
use super::recent::Recent;
use super::row::{Ecn, Endpoint, FlowRow, IcrcCounts, Naks, OpcodeCounts};
use super::sequence::{Arrival, Sequence};
use super::standing::Standing;
use crate::capture::Timestamp;
use crate::frame::mistake::Mistake;
use crate::wire::{Op, Psn, Role, Transport};

/// Why a sender sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The responder named a missing PSN.
    SequenceNak,
    /// The responder had no receive buffer.
    RnrNak,
    /// Nothing came back in time, as far as the capture shows.
    Timeout,
    /// The answers are not in the capture.
    Unknown,
}

impl Cause {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SequenceNak => "sequence NAK",
            Self::RnrNak => "RNR NAK",
            Self::Timeout => "time-out",
            Self::Unknown => "unknown",
        }
    }
}

/// How two directions were found to belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairedBy {
    /// The connection manager's messages say so.
    Cm,
    /// The source QP of datagrams.
    SourceQp,
    /// Responses with PSNs that were just requested, and no other candidate.
    Psn,
    /// The only unjoined flow in each direction between these addresses.
    Elimination,
}

impl PairedBy {
    /// As `flows --json` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cm => "cm",
            Self::SourceQp => "source-qp",
            Self::Psn => "psn",
            Self::Elimination => "elimination",
        }
    }
}

/// The IPv4 identifications of a flow: constant, counted, or without order.
#[derive(Clone, Copy, Debug, Default)]
pub struct IpId {
    latest: u16,
    seen: bool,
    up: u32,
    down: u32,
}

impl IpId {
    /// Takes the next packet's.
    pub fn take(&mut self, id: u16) {
        if !self.seen {
            (self.seen, self.latest) = (true, id);
            return;
        }
        match id.wrapping_sub(self.latest).cast_signed() {
            0 => {}
            1.. => {
                self.up = self.up.saturating_add(1);
                self.latest = id;
            }
            _ => self.down = self.down.saturating_add(1),
        }
    }

    /// They differ from packet to packet.
    pub const fn varies(self) -> bool {
        self.up > 0
    }

    /// The highest so far.
    pub fn latest(self) -> Option<u16> {
        self.seen.then_some(self.latest)
    }

    /// The sender counts its packets.
    pub const fn counts(self) -> bool {
        self.up >= 3 && self.up > self.down.saturating_mul(2)
    }

    /// The sender counts, and gave this packet its number before one that has come already.
    pub const fn is_behind(self, id: u16) -> bool {
        self.counts() && id.wrapping_sub(self.latest).cast_signed() < 0
    }

    /// The sender counts, and sent this packet after all that have come.
    pub const fn is_ahead(self, id: u16) -> bool {
        self.counts() && id.wrapping_sub(self.latest).cast_signed() > 0
    }
}

/// A NAK or RNR NAK that the sender has not reacted to yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Which.
    pub cause: Cause,
    /// PSN that it names.
    pub psn: Psn,
    /// When.
    pub at: Timestamp,
    /// Its packet.
    pub packet: u64,
}

/// Attempts to get one PSN across.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    /// Which PSN.
    pub psn: Psn,
    /// How often it was sent.
    pub times: u32,
    /// When, the first eight.
    pub at: Vec<Timestamp>,
    /// Packets, the first eight.
    pub packets: Vec<u64>,
    /// RNR NAKs for it.
    pub rnr: u32,
    /// When it was sent last.
    pub last: Timestamp,
}

/// A message under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message {
    /// A First was seen, its Last not yet.
    pub open: bool,
    /// Packet of the First.
    pub packet: u64,
    /// Bytes that its RETH announces; 0 for SEND.
    pub want: u32,
    /// Bytes that have come.
    pub got: u64,
    /// Latest packet of it.
    pub latest: u64,
    /// PSN of that.
    pub psn: Psn,
}

/// A request that a NAK may refuse: what its RETH or AtomicETH says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// PSN of the packet that carried it.
    pub psn: Psn,
    /// Packet.
    pub packet: u64,
    /// Virtual address.
    pub va: u64,
    /// Key.
    pub r_key: u32,
    /// Bytes.
    pub len: u32,
    /// Opcode byte.
    pub opcode: u8,
}

/// The request that a NAK refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Packet that began it where that names remote memory, else the packet with the refused PSN.
    pub packet: u64,
    /// Opcode byte of that packet.
    pub opcode: u8,
    /// The remote memory that it names; a SEND names none.
    pub target: Option<Target>,
}

const TARGETS: usize = 4;

/// Everything about a flow's troubles, made when the first one comes.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// Evidence.
    pub events: Events,
    /// Of these, with timer code 0.
    pub rnr_zero: u64,
    /// Packets whose wrong ICRC makes what they say about themselves unbelievable: they are in no count of
    /// opcodes, requests, responses or PSNs.
    pub disbelieved: u64,
    /// Acknowledged PSNs beyond everything that the capture has.
    pub acked_unseen: u64,
    /// RNR NAKs that are copies of others.
    pub copied_rnr: u64,
    /// Attempts for the PSN that is stuck.
    pub attempts: Attempts,
    /// The longest series of attempts that ended well or was overtaken.
    pub worst: Attempts,
    /// Nanoseconds from the first sending to the acknowledge of packets that were sent again.
    pub repair: Histogram,
    /// What explains the first wrong ICRC, if it was looked into.
    pub mistake: Option<Mistake>,
    /// It was looked into.
    pub explained: bool,
    /// The wrong ICRC of all packets that have one, as long as it is the same.
    pub icrc: Option<u32>,
    /// They differ.
    pub icrcs_differ: bool,
    /// Request refused by the first NAK other than a sequence error.
    pub refused: Option<Refused>,
}

/// What a flow that sends again leaves behind; made when that first happens, so that healthy flows stay small.
#[derive(Clone, Debug)]
pub struct Repairs {
    /// By cause: sequence NAK, RNR NAK, time-out, unknown.
    pub causes: [u64; 4],
    /// Times that the sender went back, by the same causes.
    pub rewinds: [u64; 4],
    /// Of the time-outs and unknown causes, those whose packet had been acknowledged here.
    pub rewinds_acked: u64,
    /// READs that were asked for again although an answer had passed: data lost on its way to this sender.
    pub response_losses: u64,
    /// Sequence NAKs to this sender that tell of a loss: neither behind an RNR NAK nor about a packet that
    /// came late.
    pub loss_naks: u64,
    /// Sequence NAKs about packets that were overtaken.
    pub late_naks: u64,
    /// PSN of the latest RNR NAK to this sender, until it is acknowledged.
    pub rnr_psn: Option<Psn>,
    /// READ requests that continue an interrupted READ at a later PSN.
    pub read_restarts: u64,
    /// Sent again although acknowledged.
    pub again_acked: u64,
    /// NAK or RNR NAK to react to.
    pub alarm: Option<Alarm>,
    /// PSN named by a sequence NAK and not sent again yet, and later ones that were since.
    pub owed: Option<(Psn, u64)>,
    /// Repeats later than the owed PSN.
    pub past_owed: u64,
    /// Packets that came after their own repetition: delayed, not lost.
    pub overtaken: u64,
    /// Where the sender went back to last, and when it repeated something last.
    pub rewound: Option<(Psn, Timestamp)>,
    /// Late requests that repaired a loss before the capture point, rather than overtaken ones.
    pub late_repairs: u64,
    /// Late requests whose first sending was before the capture began: nothing is known of their reasons.
    pub early_repairs: u64,
}

impl Repairs {
    /// Counts a PSN that came again for this cause.
    pub fn count(&mut self, cause: Cause) {
        if let Some(n) = self.causes.get_mut(cause as usize) {
            *n += 1;
        }
    }
}

/// Of a flow that never sent again.
static NONE: Repairs = Repairs {
    causes: [0; 4],
    rewinds: [0; 4],
    rewinds_acked: 0,
    response_losses: 0,
    loss_naks: 0,
    late_naks: 0,
    rnr_psn: None,
    read_restarts: 0,
    again_acked: 0,
    alarm: None,
    owed: None,
    past_owed: 0,
    overtaken: 0,
    rewound: None,
    late_repairs: 0,
    early_repairs: 0,
};

/// What is known of CNPs that a flow carries.
#[derive(Clone, Debug, Default)]
pub struct Notifications {
    /// When the latest came.
    pub latest: Timestamp,
    /// Shortest time between two, nanoseconds.
    pub spacing: Option<u64>,
    /// Their DSCPs (bit set).
    pub dscp: u64,
    /// Their TTL.
    pub ttl: u8,
    /// Their source MAC.
    pub mac: Option<[u8; 6]>,
    /// Rate of the flow that they tell to slow down.
    pub reaction: Reaction,
}

/// One directed flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Identity within the report, from 0.
    pub id: u32,
    /// Key.
    pub key: Key,
    /// Source, as printed.
    pub src: Endpoint,
    /// Destination, as printed.
    pub dst: Endpoint,
    /// Service; the first that is not CNP.
    pub transport: Transport,
    /// The other direction.
    pub pair: Option<u32>,
    /// How it was found.
    pub paired_by: Option<PairedBy>,
    /// Answers that fitted the pairing, and that did not.
    pub pair_fits: (u32, u32),
    /// Source QP.
    pub src_qp: Option<u32>,
    /// Connection that made its queue pair.
    pub connection: Option<u64>,
    /// Its queue pair is gone; the next packet with this key belongs to a new one.
    pub retired: bool,
    /// It was seen as soon as the capture began, so its beginning may be lacking.
    pub from_start: bool,
    /// Another flow with the same key came before (the QP number was used again).
    pub reuse_of: Option<u32>,

    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes of payload of requests and responses, repeats left out.
    pub goodput: u64,
    /// First packet.
    pub first: Timestamp,
    /// Its number.
    pub first_packet: u64,
    /// Latest packet.
    pub last: Timestamp,
    /// Its number.
    pub last_packet: u64,
    /// Microseconds from the first packet to the first request.
    pub asked_after: u32,
    /// Time and number of the latest request.
    pub last_request: (Timestamp, u64),
    /// Time of the latest response.
    pub last_response: Timestamp,
    /// By the low five bits of opcodes of `transport`; what overflows goes into `others`.
    pub opcodes: [u32; 32],
    /// Opcodes of other services on the same QP: CNP, mostly.
    pub others: Vec<(u8, u64)>,
    /// Messages completed.
    pub messages: u64,
    /// Requests.
    pub requests: u64,
    /// Data-bearing responses.
    pub responses: u64,
    /// ACKs.
    pub acks: u64,
    /// Requests with AckReq.
    pub ack_reqs: u32,
    /// NAKs.
    pub naks: Naks,
    /// RNR NAKs.
    pub rnr_naks: u64,
    /// CNPs.
    pub cnps: u64,
    /// ECN codepoints, as numbered on the wire.
    pub ecn: [u64; 4],
    /// ICRC verdicts.
    pub icrc: IcrcCounts,
    /// Of the wrong ones, FLUSHes with the kernel's own way of computing it.
    pub icrc_flush: u32,
    /// Messages of one packet were acknowledged.
    pub small_acked: bool,
    /// Cut packets.
    pub truncated: u32,

    /// PSN space of the sender.
    pub req: Sequence,
    /// PSN space of the peer, as far as data-bearing responses show it.
    pub rsp: Sequence,
    /// Sent again.
    pub retransmitted: u64,
    /// Copies.
    pub duplicates: u64,
    /// Late first arrivals.
    pub reordered: u64,

    /// Highest PSN of this sender that was acknowledged.
    pub acked: Option<Psn>,
    /// One after the latest request.
    pub cursor: Psn,
    /// The latest request was a repeat, for this cause.
    pub rewinding: Option<Cause>,
    /// Message under way.
    pub message: Message,
    /// The latest response left a READ response unfinished.
    pub responding: bool,
    /// The first answers, as long as they say one thing.
    pub standing: Option<Box<Standing>>,

    /// Largest First or Middle payload that is a path MTU, bytes; 0 while unknown.
    pub mtu: u32,
    /// Path MTU that CM agreed upon.
    pub cm_mtu: u32,
    /// Most READs and atomics in flight, and the packet that made it so.
    pub read_depth: (u32, u32),

    /// DSCPs of requests and data (bit set).
    pub dscp_data: u64,
    /// Of ACKs.
    pub dscp_ack: u64,
    /// DSCP of the latest packet.
    pub dscp: Option<u8>,
    /// VLAN of the latest packet.
    pub vlan: Option<u16>,
    /// PCPs seen (bit set).
    pub pcps: u8,
    /// UDP source port of the latest packet.
    pub port: Option<u16>,
    /// How often it changed.
    pub port_changes: u32,
    /// Where its packets were recorded, as far as they show it.
    pub recorded_at: super::vantage::Vantage,
    /// TTLs of packets other than CNPs: lowest and highest.
    pub ttl: (u8, u8),
    /// Source MAC of packets other than CNPs.
    pub mac: Option<[u8; 6]>,
    /// P_Key of the first packet.
    pub p_key: u16,
    /// MigReq values: bit 0 clear seen, bit 1 set seen.
    pub mig_req: u8,
    /// How the sender numbers its IPv4 packets.
    pub ip_id: IpId,
    /// Which of them have come.
    pub ids: Option<Box<Ids>>,

    /// Its rate of late.
    pub pace: Pace,
    /// Its CNPs.
    pub notifications: Option<Box<Notifications>>,
    /// CNPs came for it: what it sends now is its reaction.
    pub notified: bool,
    /// What it sent again, and why.
    pub repairs: Option<Box<Repairs>>,
    /// Latest packets by PSN.
    pub recent: Option<Box<Recent>>,
    /// What it has under way.
    pub flight: Option<Box<Flight>>,
    /// READs and the like.
    pub reads: Reads,
    /// Requests that name remote memory.
    pub targets: Option<Box<Targets>>,
    /// Request to its acknowledge.
    pub rtt: Option<Box<Histogram>>,
    /// READ or atomic request to its last response.
    pub read_latency: Option<Box<Histogram>>,
    /// Troubles.
    pub trouble: Option<Box<Trouble>>,
}

impl Flow {
    /// A new flow.
    pub fn new(id: u32, key: Key, src: Endpoint, dst: Endpoint, at: Timestamp, packet: u64) -> Self {
        Self {
            id,
            key,
            src,
            dst,
            transport: Transport::Cnp,
            pair: None,
            paired_by: None,
            pair_fits: (0, 0),
            src_qp: key.src_qp,
            connection: None,
            retired: false,
            reuse_of: None,
            from_start: false,
            packets: 0,
            bytes: 0,
            goodput: 0,
            first: at,
            first_packet: packet,
            last: at,
            last_packet: packet,
            asked_after: 0,
            last_request: (Timestamp(0), 0),
            last_response: Timestamp(0),
            opcodes: [0; 32],
            others: Vec::new(),
            messages: 0,
            requests: 0,
            responses: 0,
            acks: 0,
            ack_reqs: 0,
            naks: Naks::default(),
            rnr_naks: 0,
            cnps: 0,
            ecn: [0; 4],
            icrc: IcrcCounts::default(),
            icrc_flush: 0,
            small_acked: false,
            truncated: 0,
            req: Sequence::default(),
            rsp: Sequence::default(),
            retransmitted: 0,
            duplicates: 0,
            reordered: 0,
            acked: None,
            cursor: Psn::default(),
            rewinding: None,
            message: Message::default(),
            responding: false,
            standing: None,
            mtu: 0,
            cm_mtu: 0,
            read_depth: (0, 0),
            dscp_data: 0,
            dscp_ack: 0,
            dscp: None,
            vlan: None,
            pcps: 0,
            port: None,
            port_changes: 0,
            recorded_at: super::vantage::Vantage::default(),
            ttl: (u8::MAX, 0),
            mac: None,
            p_key: 0,
            mig_req: 0,
            ip_id: IpId::default(),
            ids: None,
            pace: Pace::default(),
            notifications: None,
            notified: false,
            repairs: None,
            recent: None,
            flight: None,
            reads: Reads::default(),
            targets: None,
            rtt: None,
            read_latency: None,
            trouble: None,
        }
    }

    /// Counts an opcode.
    pub fn count_opcode(&mut self, opcode: u8) {
        let t = Transport::of(opcode);
        if self.transport == Transport::Cnp && t != Transport::Cnp {
            self.transport = t;
        }
        if t == self.transport
            && t != Transport::Cnp
            && let Some(n) = self.opcodes.get_mut(usize::from(opcode & 0x1f))
            && let Some(more) = n.checked_add(1)
        {
            *n = more;
            return;
        }
        match self.others.iter_mut().find(|(o, _)| *o == opcode) {
            Some((_, n)) => *n += 1,
            None => self.others.push((opcode, 1)),
        }
    }

    /// Packets of one opcode.
    pub fn of_opcode(&self, opcode: u8) -> u64 {
        let direct = if Transport::of(opcode) == self.transport {
            self.opcodes.get(usize::from(opcode & 0x1f)).copied().map_or(0, u64::from)
        } else {
            0
        };
        direct + self.others.iter().find(|(o, _)| *o == opcode).map_or(0, |(_, n)| *n)
    }

    /// Its service keeps PSNs in order.
    pub const fn ordered(&self) -> bool {
        matches!(self.transport, Transport::Rc | Transport::Xrc | Transport::Uc)
    }

    /// Its service acknowledges.
    pub const fn reliable(&self) -> bool {
        matches!(self.transport, Transport::Rc | Transport::Xrc)
    }

    /// What it sent again, and why; all zero if nothing.
    pub fn repairs(&self) -> &Repairs {
        self.repairs.as_deref().unwrap_or(&NONE)
    }

    /// The same, to be changed.
    pub fn repairs_mut(&mut self) -> &mut Repairs {
        self.repairs.get_or_insert_with(|| Box::new(NONE.clone()))
    }

    /// Notes a trouble.
    pub fn note(&mut self, event: Event) {
        self.trouble.get_or_insert_default().events.add(event);
    }

    /// Whether data with an identification that the sender gave it a while ago came then. Where identifications are not remembered
    /// for so long: its PSN has its place, and no other packet is remembered there.
    pub fn came_before(&self, psn: Psn, role: Role, ip_id: u16) -> bool {
        if let Some(came) = self.ids.as_ref().and_then(|ids| ids.came(self.ip_id.latest, ip_id)) {
            return came;
        }
        let arrival = if role == Role::Request { self.req.classify(psn) } else { self.rsp.classify(psn) };
        let before = self.recent.as_ref().and_then(|r| r.get(psn, role));
        arrival == Arrival::Repeat && before.is_none_or(|b| b.ip_id == ip_id)
    }

    /// What a NAK for this PSN refuses, of the requests that this flow sent.
    pub fn refused(&self, psn: Psn) -> Option<Refused> {
        let kind = |opcode: u8| Op::of(opcode).map(|o| o.kind);
        let sent = self.recent.as_ref().and_then(|r| r.get(psn, Role::Request));
        let target = self.targets.as_ref().and_then(|t| t.holding(psn, self.path_mtu()));
        match (target.filter(|t| sent.is_none_or(|s| kind(s.opcode) == kind(t.opcode))), sent) {
            (Some(t), _) => Some(Refused { packet: t.packet, opcode: t.opcode, target: Some(t) }),
            (None, Some(s)) => Some(Refused { packet: s.number, opcode: s.opcode, target: None }),
            (None, None) => None,
        }
    }

    /// Path MTU by all that is known of this direction.
    pub const fn path_mtu(&self) -> u32 {
        if self.mtu != 0 { self.mtu } else { self.cm_mtu }
    }

    /// How sure the joined flow is the other half, 0 to 1: by what says so, and by how many answers fitted.
    pub fn pair_confidence(&self) -> Option<f64> {
        let (yes, no) = self.pair_fits;
        Some(match self.paired_by? {
            PairedBy::Cm | PairedBy::SourceQp => 1.0,
            PairedBy::Psn => (f64::from(yes) + 3.0) / (f64::from(yes) + f64::from(no) + 4.0),
            PairedBy::Elimination => 0.5,
        })
    }

    /// Events of its troubles.
    pub fn events(&self) -> Option<&Events> {
        self.trouble.as_ref().map(|t| &t.events)
    }

    /// Packets of these kinds of trouble.
    pub fn evidence(&self, kinds: &[Happened]) -> Vec<u64> {
        self.events().map(|e| e.packets(kinds)).unwrap_or_default()
    }

    /// Missing PSNs of both spaces.
    pub const fn missing(&self) -> u64 {
        self.req.missing + self.rsp.missing
    }

    /// The row that all views share.
    pub fn row(&self) -> FlowRow {
        let base = (self.transport as u8) << 5;
        let own = (0u8..32).zip(self.opcodes).map(|(low, n)| (base | low, u64::from(n)));
        let opcodes: OpcodeCounts = own.chain(self.others.iter().copied()).collect();
        let [not_ect, ect1, ect0, ce] = self.ecn;
        FlowRow {
            id: self.id,
            src: self.src,
            dst: self.dst,
            dest_qp: self.key.dest_qp,
            src_qp: self.src_qp,
            pair: self.pair,
            transport: self.transport.name(),
            ip_version: match self.key.addresses.family() {
                super::key::Family::V4 => Some(4),
                super::key::Family::Lid => None,
                _ => Some(6),
            },
            vlan: self.vlan,
            dscp: self.dscp,
            udp_srcport: self.port,
            packets: self.packets,
            bytes: self.bytes,
            first: self.first.seconds(),
            last: self.last.seconds(),
            messages: self.messages,
            opcodes,
            requests: self.requests,
            responses: self.responses,
            acks: self.acks,
            naks: self.naks,
            rnr_naks: self.rnr_naks,
            cnps: self.cnps,
            ecn: Ecn { not_ect, ect0, ect1, ce },
            retransmitted: self.retransmitted,
            missing: self.missing(),
            reordered: self.reordered,
            duplicates: self.duplicates,
            icrc: self.icrc,
            truncated: self.truncated.into(),
            full_payload: self.path_mtu(),
        }
    }
}

/// The latest requests that name remote memory, so that a NAK can be traced to one of them.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    ring: [Option<Target>; TARGETS],
    next: usize,
}

impl Targets {
    /// Notes one.
    pub fn add(&mut self, t: Target) {
        if let Some(slot) = self.ring.get_mut(self.next % TARGETS) {
            *slot = Some(t);
        }
        self.next = (self.next + 1) % TARGETS;
    }

    /// Keys that they use.
    pub fn keys(&self) -> impl Iterator<Item = u32> {
        self.ring.iter().flatten().map(|t| t.r_key)
    }

    /// The one whose packets hold this PSN; `mtu` 0 if it is not known.
    pub fn holding(&self, psn: Psn, mtu: u32) -> Option<Target> {
        let mtu = if mtu == 0 { MTUS[0] } else { mtu };
        self.ring
            .iter()
            .flatten()
            .filter(|t| (0..i64::from(packets_of(t.len, mtu))).contains(&i64::from(psn.distance(t.psn))))
            .min_by_key(|t| psn.distance(t.psn))
            .copied()
    }
}
