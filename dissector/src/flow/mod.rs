//! Analysis per queue pair, sans-IO: push a packet, read the state. No clock, no file, no thread; the same
//! packets give the same answers however they were cut into pieces.
//!
//! One directed flow carries two PSN spaces: the requests of its sender, and the responses of its sender to
//! the peer's requests, which are numbered in the peer's space. Both are followed apart ([`sequence`]). A
//! READ takes as many PSNs as its response has packets ([`reads`]), which needs the path MTU: from the
//! connection manager, from the payload of First and Middle packets, or from where the next request lies.
//!
//! The two directions of a queue pair are joined by what the packets prove ([`pairing`]).

pub mod asides;
pub mod event;
pub mod finding;
pub mod flight;
pub mod histogram;
pub mod key;
pub mod pairing;
pub mod quality;
pub mod reaction;
pub mod reads;
pub mod recent;
pub mod report;
pub mod row;
pub mod sequence;
pub mod stall;
pub mod standing;
pub mod state;

use hashbrown::HashMap;

use self::asides::Asides;
use self::event::{Event, Happened};
use self::flight::Request;
use self::key::{Addresses, Key};
use self::pairing::Waiting;
use self::quality::Quality;
use self::reads::{MTUS, Read, packets_of, span_from_jump};
use self::recent::Sent;
use self::row::{Endpoint, FlowRow, Totals};
use self::sequence::Arrival;
use self::state::{Alarm, Cause, Flow, PairedBy, Target};
use crate::capture::Timestamp;
use crate::connection::Connections;
use crate::frame::icrc::Verdict;
use crate::frame::mistake::{self, Mistake};
use crate::frame::{Frame, Net};
use crate::wire::aeth::Verdict as Said;
use crate::wire::opcode::Payload;
use crate::wire::{Kind, NakCode, Op, Packet, Position, Psn, Qpn, Role, Stop, Transport, cm, outer};

/// Flows that are followed at the same time, unless the caller says otherwise.
pub const DEFAULT_FLOWS: usize = 65_536;

/// Slots of [`Analyzer`]'s shortcut to its flows, as a power of two.
const LATEST_BITS: u32 = 9;

/// A flow that was silent for so long gives way to a new one when the table is full, nanoseconds.
pub const IDLE: i64 = 60_000_000_000;

/// A flow that is seen so soon after the capture began was most likely under way before, nanoseconds.
const UNDER_WAY: i64 = 10_000_000;

/// Where a packet stands in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number, from 1.
    pub number: u64,
    /// When.
    pub at: Timestamp,
}

/// What a repeat is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Sent again by the sender.
    Sent(Cause),
    /// Copied by the network.
    Copied,
}

/// What the analysis says about one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInfo {
    /// `roce.flow`: id of its flow; `None` if the table was full.
    pub flow: Option<u32>,
    /// `roce.retransmission`, `roce.duplicate`: the PSN came before.
    pub repeat: Option<Repeat>,
    /// `roce.gap`: PSNs that were passed over before this packet and that were due.
    pub gap: u32,
    /// `roce.reordered`: first arrival with a lower PSN than one seen before.
    pub reordered: bool,
    /// Sent again, although no copy of it came before: the first one was lost before the recorder, or it is the
    /// rest of a READ that is asked for again.
    pub repair: Option<Cause>,
    /// `roce.ack_of`: number of the request that this packet answers (the latest that it covers).
    pub ack_of: Option<u64>,
    /// `roce.rtt`: nanoseconds since that request.
    pub rtt: Option<i64>,
}

/// The analysis of one capture or one live view.
#[derive(Debug)]
pub struct Analyzer {
    flows: Vec<Box<Flow>>,
    index: HashMap<Key, u32, foldhash::fast::RandomState>,
    /// What `index` said last about some key, by its [`Key::slot`]: packets of a flow come in runs.
    latest: Box<[u32; 1 << LATEST_BITS]>,
    waiting: Waiting,
    believed: Box<[u64; 64]>,
    limit: usize,
    clock_hand: usize,
    totals: Totals,
    expired: Expired,
    quality: Quality,
    connections: Connections,
    asides: Asides,
    classes: stall::Classes,
}

/// Flows that left the table to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// How many.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sent again or copied.
    pub repeats: u64,
    /// Missing PSNs.
    pub missing: u64,
    /// NAKs and RNR NAKs.
    pub naks: u64,
}

impl Default for Analyzer {
    fn default() -> Self {
        Self::with_limit(DEFAULT_FLOWS)
    }
}

impl Analyzer {
    /// An analysis that follows at most `limit` flows at a time.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            flows: Vec::new(),
            index: HashMap::default(),
            latest: Box::new([0; 1 << LATEST_BITS]),
            waiting: Waiting::default(),
            believed: Box::new([0; 64]),
            limit,
            clock_hand: 0,
            totals: Totals::default(),
            expired: Expired::default(),
            quality: Quality::default(),
            connections: Connections::default(),
            asides: Asides::default(),
            classes: stall::Classes::default(),
        }
    }

    /// Notes a packet that is not RoCE, or whose BTH is cut.
    pub fn other(&mut self, place: Place, frame: &Frame<'_>) {
        self.totals.packets += 1;
        self.totals.bytes += frame.lengths().1 as u64;
        self.totals.other_packets += 1;
        self.quality.clock(place);
        self.asides.take(place, frame);
    }

    /// Notes a RoCE packet.
    pub fn push(&mut self, place: Place, frame: &Frame<'_>, packet: &Packet<'_>, icrc: Verdict) -> PacketInfo {
        let len = frame.lengths().1 as u64;
        self.totals.packets += 1;
        self.totals.bytes += len;
        self.quality.clock(place);
        let (Some(addresses), Some(net)) = (Addresses::of(frame), frame.net.as_ref()) else {
            self.totals.other_packets += 1;
            return PacketInfo::default();
        };
        self.totals.roce_packets += 1;
        self.totals.roce_bytes += len;
        let odd_flush = flush_of_rxe(frame, packet, icrc);
        let believe = self.believe(addresses, icrc) || odd_flush;
        let key =
            Key { addresses, dest_qp: packet.bth.dest_qp().get(), src_qp: packet.ext.deth.map(|d| d.src_qp().get()) };
        let Some(i) = self.flow_of(key, net, place, packet, believe) else {
            self.totals.overflow_packets += 1;
            return PacketInfo::default();
        };
        self.outer(i, place, frame, net, packet, icrc);
        let mut info = PacketInfo { flow: Some(i), ..PacketInfo::default() };
        if let Verdict::Bad { found, .. } = icrc
            && let Some(f) = self.flows.get_mut(i as usize)
        {
            f.icrc_flush += u64::from(odd_flush);
            let t = f.trouble.get_or_insert_default();
            t.icrcs_differ |= *t.icrc.get_or_insert(found) != found;
            // dear to find out, so once a flow
            if !t.explained && !odd_flush {
                t.explained = true;
                t.mistake = mistake::explain(frame, packet);
            }
            f.note(event(
                if odd_flush { Happened::OddFlush } else { Happened::BadIcrc },
                place,
                packet.bth.psn(),
                0,
                0,
            ));
        }
        if !believe {
            // what a broken packet says about itself is not believed: another PSN or opcode may have been meant
            if let Some(f) = self.flows.get_mut(i as usize) {
                f.disbelieved += 1;
            }
            return info;
        }
        let pair = self.flows.get(i as usize).and_then(|f| f.pair);
        let pair = match (pair, packet.op) {
            (None, Some(op)) => self.join(i, place, packet, op),
            (p, _) => p,
        };
        let (f, mut peer) = match pair {
            Some(p) if p != i => match self.flows.get_disjoint_mut([i as usize, p as usize]) {
                Ok([f, p]) => (&mut **f, Some(&mut **p)),
                Err(_) => return info,
            },
            _ => match self.flows.get_mut(i as usize) {
                Some(f) => (&mut **f, None),
                None => return info,
            },
        };
        f.count_opcode(packet.bth.opcode());
        if f.notified
            && let Some(n) = peer.as_deref_mut().and_then(|p| p.notifications.as_deref_mut())
        {
            n.reaction.sent(place.at, f.bytes);
        }
        let Some(op) = packet.op else { return info };
        if packet.ext.deth.is_some() && packet.bth.dest_qp().is_management() {
            self.manage(place, frame, packet, addresses);
            // the borrow of the flow ends here: management datagrams have no PSN order to follow
            if let Some(f) = self.flows.get_mut(i as usize) {
                f.requests += 1;
                f.messages += 1;
                f.goodput += packet.payload_len as u64;
                f.last_request = (place.at, place.number);
            }
            return info;
        }
        let ctx = Context { place, net, packet, op };
        match op.role() {
            Role::Request => {
                let unjoined = peer.is_none();
                request(f, peer, &ctx, &mut info);
                if unjoined && f.reliable() {
                    self.waiting.expect(addresses, packet.bth.psn(), i);
                }
            }
            Role::Response => response(f, peer, &ctx, &mut info),
            Role::Notification => notification(f, peer, &ctx),
        }
        if let Some(id) = net.ip_id {
            f.ip_id.take(id);
        }
        if op.payload == Payload::Data && f.ordered() {
            self.classes.take(outer::dscp(net.tos), i, place, op.position, info.repeat.is_some());
        }
        info
    }

    /// Joins what can only be joined when everything was seen. Further packets may follow.
    pub fn settle(&mut self) {
        pairing::by_elimination(&mut self.flows);
        self.asides.settle(self.quality.end());
        for n in self.flows.iter_mut().filter_map(|f| f.notifications.as_deref_mut()) {
            n.reaction.close(self.quality.end());
        }
    }

    /// Tells what the recorder said about itself: packets that it dropped, and whether its file is cut.
    pub fn recorder(&mut self, dropped: u64, unfinished: bool) {
        self.quality.dropped = dropped;
        self.quality.unfinished = unfinished;
    }

    /// Sums over everything.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Sums over flows that left the table.
    pub const fn expired(&self) -> &Expired {
        &self.expired
    }

    /// How far the capture can be trusted.
    pub const fn quality(&self) -> &Quality {
        &self.quality
    }

    /// Connections that communication management made.
    pub const fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Tells the speed of the link, Gbit/s: pauses are counted in bit times.
    pub fn link_speed(&mut self, gbit: f64) {
        self.asides.gbit = gbit;
    }

    /// Classes that stood still.
    pub fn stalls(&self) -> &[stall::Stall] {
        &self.classes.stalls
    }

    /// What frames without RoCE said about it.
    pub const fn asides(&self) -> &Asides {
        &self.asides
    }

    /// The other direction of a flow.
    pub fn peer(&self, f: &Flow) -> Option<&Flow> {
        self.flow(f.pair?)
    }

    /// All flows, in the order in which they began.
    pub fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().map(|f| &**f)
    }

    /// One of them.
    pub fn flow(&self, id: u32) -> Option<&Flow> {
        self.flows.get(id as usize).map(|f| &**f)
    }

    /// Rows of all flows.
    pub fn rows(&self) -> Vec<FlowRow> {
        self.flows.iter().map(|f| f.row()).collect()
    }

    /// Whether a packet with this verdict is to be believed. A sender that never had a right ICRC is believed
    /// all the same: then the capture, or a device in between, has broken them all.
    fn believe(&mut self, addresses: Addresses, icrc: Verdict) -> bool {
        let slot = addresses.slot(0, 12);
        let Some(word) = self.believed.get_mut(slot / 64) else { return true };
        let bit = 1u64 << (slot % 64);
        match icrc {
            Verdict::Good => {
                *word |= bit;
                true
            }
            Verdict::Bad { .. } => *word & bit == 0,
            Verdict::Unchecked(_) => true,
        }
    }

    /// The flow that a key belongs to.
    #[inline]
    fn find(&mut self, key: &Key) -> Option<u32> {
        let latest = self.latest.get_mut(key.slot(LATEST_BITS))?;
        // a flow that has its key no longer is another one, and what comes into the index comes here too
        if self.flows.get(*latest as usize).is_some_and(|f| f.key == *key) {
            return Some(*latest);
        }
        let found = *self.index.get(key)?;
        *latest = found;
        Some(found)
    }

    fn enter(&mut self, key: Key, id: u32) {
        self.index.insert(key, id);
        if let Some(latest) = self.latest.get_mut(key.slot(LATEST_BITS)) {
            *latest = id;
        }
    }

    fn flow_of(&mut self, key: Key, net: &Net, place: Place, packet: &Packet<'_>, believe: bool) -> Option<u32> {
        let found = self.find(&key);
        let reuse_of = found;
        if let Some(i) = found {
            let f = self.flows.get(i as usize)?;
            let anew = f.retired || believe && begins_anew(f, place, packet);
            if !anew {
                return Some(i);
            }
            self.retire(i);
        }
        if self.index.len() >= self.limit && reuse_of.is_none() {
            return self.take_idle(key, net, place);
        }
        if self.flows.len() >= self.limit.saturating_mul(2) {
            return found; // reused numbers without end
        }
        let id = u32::try_from(self.flows.len()).ok()?;
        let mut f = Flow::new(id, key, net.src, net.dst, place.at, place.number);
        f.reuse_of = reuse_of;
        f.from_start = place.at.since(self.quality.begin()) < UNDER_WAY;
        self.flows.push(Box::new(f));
        self.enter(key, id);
        self.introduce(id);
        Some(id)
    }

    /// What communication management tells: a queue pair that it hands out is a new one, whoever had its
    /// number before.
    fn manage(&mut self, place: Place, frame: &Frame<'_>, packet: &Packet<'_>, addresses: Addresses) {
        let Some(id) = self.connections.push(place.number, place.at, frame, packet) else { return };
        let Some(c) = self.connections.get(id) else { return };
        let Some(seen) = c.messages.iter().rfind(|m| m.number == place.number) else { return };
        if seen.repeat || !matches!(seen.kind, cm::Kind::Req | cm::Kind::Rep) {
            return;
        }
        let Some(qpn) = c.end(seen.from).qpn else { return };
        let key = Key { addresses: addresses.reversed(), dest_qp: qpn.get(), src_qp: None };
        if let Some(old) = self.index.get(&key).copied() {
            self.retire(old);
        }
    }

    /// A flow and its other half have ended; the next packet with their keys begins new ones.
    fn retire(&mut self, id: u32) {
        let Some(f) = self.flows.get_mut(id as usize) else { return };
        f.retired = true;
        let pair = f.pair;
        if let Some(p) = pair.and_then(|p| self.flows.get_mut(p as usize)) {
            p.retired = true;
        }
    }

    /// Gives a new flow what communication management said about its queue pair.
    fn introduce(&mut self, id: u32) {
        let Some(f) = self.flows.get_mut(id as usize) else { return };
        if f.key.src_qp.is_some() {
            return;
        }
        let Some((c, side)) = self.connections.find(f.dst, Qpn::new(f.key.dest_qp)) else { return };
        let far = c.end(side.other());
        if c.datagram || canonical(far.address) != canonical(f.src) {
            return;
        }
        f.connection = Some(c.id);
        f.cm_mtu = c.path_mtu.unwrap_or(0);
        let Some(qpn) = far.qpn else { return };
        f.src_qp = Some(qpn.get());
        let reverse = Key { addresses: f.key.addresses.reversed(), dest_qp: qpn.get(), src_qp: None };
        if let Some(r) = self.index.get(&reverse)
            && self.flows.get(*r as usize).is_some_and(|r| r.pair.is_none())
        {
            pairing::link(&mut self.flows, id, *r, PairedBy::Cm);
        }
    }

    /// Lets a silent flow go and puts the new one in its place.
    fn take_idle(&mut self, key: Key, net: &Net, place: Place) -> Option<u32> {
        // a few at a time, so that a flood of new numbers costs little
        for _ in 0..8 {
            let n = self.clock_hand;
            self.clock_hand = if n + 1 < self.flows.len() { n + 1 } else { 0 };
            let id = u32::try_from(n).ok()?;
            let Some(f) = self.flows.get_mut(n) else { continue };
            if place.at.since(f.last) <= IDLE || self.index.get(&f.key) != Some(&id) {
                continue;
            }
            let e = &mut self.expired;
            e.flows += 1;
            e.packets += f.packets;
            e.bytes += f.bytes;
            e.repeats += f.retransmitted + f.duplicates;
            e.missing += f.missing();
            e.naks += f.naks.total() + f.rnr_naks;
            let old = std::mem::replace(&mut **f, Flow::new(id, key, net.src, net.dst, place.at, place.number));
            self.index.remove(&old.key);
            self.enter(key, id);
            if let Some(p) = old.pair.and_then(|p| self.flows.get_mut(p as usize)) {
                p.pair = None;
                p.paired_by = None;
            }
            return Some(id);
        }
        None
    }

    /// Everything that does not need to understand the transport.
    fn outer(&mut self, i: u32, place: Place, frame: &Frame<'_>, net: &Net, packet: &Packet<'_>, icrc: Verdict) {
        let Some(f) = self.flows.get_mut(i as usize) else { return };
        f.packets += 1;
        f.pace.take(place.at, f.bytes);
        f.bytes += frame.lengths().1 as u64;
        f.last = place.at;
        f.last_packet = place.number;
        match icrc {
            Verdict::Good => f.icrc.good += 1,
            Verdict::Bad { .. } => f.icrc.bad += 1,
            Verdict::Unchecked(_) => f.icrc.unchecked += 1,
        }
        if let Some(n) = f.ecn.get_mut(usize::from(outer::ecn(net.tos))) {
            *n += 1;
        }
        if outer::ecn(net.tos) == outer::ECN_CE && f.ecn[usize::from(outer::ECN_CE)] <= 6 {
            f.note(event(Happened::Ce, place, packet.bth.psn(), 0, 0));
        }
        let cut = matches!(packet.stop, Some(Stop::Truncated(_) | Stop::PayloadCut { .. }));
        f.truncated += u64::from(cut);
        self.quality.cut(cut, frame.bytes.len());
        let dscp = outer::dscp(net.tos);
        f.dscp = Some(dscp);
        f.vlan = frame.vlan();
        if let Some(tci) = frame.vlan_tci {
            f.pcps |= 1 << (tci >> 13);
        }
        let port = frame.udp.map(|u| u.src_port);
        if f.port != port {
            f.port_changes += u64::from(f.port.is_some());
            f.port = port;
        }
        let p_key = packet.bth.p_key().0;
        if f.packets == 1 {
            f.p_key = p_key;
        } else if f.p_key != p_key && icrc_ok(icrc) {
            let value = u64::from(f.p_key) << 32 | u64::from(p_key);
            f.note(event(Happened::PKeyChanged, place, packet.bth.psn(), 0, value));
        }
        let bit = 1u64 << dscp;
        match packet.op.map(|o| o.kind) {
            Some(Kind::Cnp) => {
                let n = f.notifications.get_or_insert_default();
                n.dscp |= bit;
                n.ttl = net.ttl;
                n.mac = source_mac(frame);
            }
            kind => {
                if kind == Some(Kind::Ack) {
                    f.dscp_ack |= bit;
                } else {
                    f.dscp_data |= bit;
                }
                f.ttl = (f.ttl.0.min(net.ttl), f.ttl.1.max(net.ttl));
                f.mig_req |= if packet.bth.mig_req() { 2 } else { 1 };
                if f.mac.is_none() {
                    f.mac = source_mac(frame);
                }
            }
        }
    }

    /// The other direction of flow `i`, if this packet proves it.
    fn join(&mut self, i: u32, place: Place, packet: &Packet<'_>, op: &Op) -> Option<u32> {
        let f = self.flows.get(i as usize)?;
        let psn = packet.bth.psn();
        // a sequence NAK names what has not come; the one before it has
        let lacking = packet.ext.aeth.is_some_and(|a| a.syndrome().verdict() == Said::Nak(NakCode::PsnSequenceError));
        let answered = if lacking { psn.plus(-1) } else { psn };
        let (found, by) = if let Some(src_qp) = f.key.src_qp {
            // datagrams: look once, when the flow begins
            if f.packets > 1 {
                return None;
            }
            let reverse = Key { addresses: f.key.addresses.reversed(), dest_qp: src_qp, src_qp: Some(f.key.dest_qp) };
            (*self.index.get(&reverse)?, PairedBy::SourceQp)
        } else {
            if op.role() != Role::Response || op.kind == Kind::ReadResponse && !op.position.starts() {
                return None;
            }
            let there = f.key.addresses.reversed();
            (self.waiting.who_expects(there, answered)?, PairedBy::Psn)
        };
        let c = self.flows.get(found as usize)?;
        if found == i || c.pair.is_some() || c.key.addresses != f.key.addresses.reversed() {
            return None;
        }
        if by == PairedBy::Psn {
            let sent = c.recent.as_ref()?.get(answered, Role::Request)?;
            if place.at.since(sent.at) > IDLE || self.index.get(&c.key) != Some(&found) {
                return None;
            }
        }
        pairing::link(&mut self.flows, i, found, by);
        Some(found)
    }
}

/// The kernel's rdma_rxe runs the headers of a FLUSH through the CRC twice: wrong by the standard, but no sign
/// of damage.
fn flush_of_rxe(frame: &Frame<'_>, packet: &Packet<'_>, icrc: Verdict) -> bool {
    !icrc_ok(icrc)
        && packet.op.is_some_and(|o| o.kind == Kind::Flush)
        && mistake::explain(frame, packet) == Some(Mistake::HeadersTwice)
}

fn icrc_ok(v: Verdict) -> bool {
    !matches!(v, Verdict::Bad { .. })
}

fn source_mac(frame: &Frame<'_>) -> Option<[u8; 6]> {
    frame.bytes.get(frame.ethernet?..)?.get(6..)?.first_chunk().copied()
}

const fn event(what: Happened, place: Place, psn: Psn, other: u64, value: u64) -> Event {
    Event { what, packet: place.number, other, at: place.at, psn, value }
}

/// An IPv4 address may come as a mapped GID.
fn canonical(e: Endpoint) -> Endpoint {
    match e {
        Endpoint::Ip(a) => Endpoint::Ip(a.to_canonical()),
        Endpoint::Lid(_) => e,
    }
}

/// Whether a packet belongs to a new queue pair that got the number of an old one.
fn begins_anew(f: &Flow, place: Place, packet: &Packet<'_>) -> bool {
    let Some(op) = packet.op else { return false };
    if op.role() != Role::Request || !op.position.starts() || !f.ordered() || !f.req.started() {
        return false;
    }
    if op.transport != f.transport {
        return false;
    }
    let psn = packet.bth.psn();
    // behind a READ of unknown length anything may follow
    if let Some(r) = f.reads.last()
        && r.span == 0
        && (0..=i64::from(packets_of(r.len, 256))).contains(&i64::from(psn.distance(r.psn)))
    {
        return false;
    }
    let idle = place.at.since(f.last_request.0);
    match f.req.classify(psn) {
        Arrival::Far => true,
        Arrival::Gap(n) => n > 4096 && idle > 1_000_000_000,
        // from its very first PSN again, long after all of that was acknowledged
        Arrival::Repeat => {
            psn == f.req.low()
                && f.req.next().distance(psn) > 64
                && idle > 100_000_000
                && f.acked.is_some_and(|a| a.next() == f.req.next())
        }
        _ => false,
    }
}

/// One packet, as the functions below need it.
struct Context<'a> {
    place: Place,
    net: &'a Net,
    packet: &'a Packet<'a>,
    op: &'static Op,
}

impl Context<'_> {
    fn psn(&self) -> Psn {
        self.packet.bth.psn()
    }

    fn event(&self, what: Happened, other: u64, value: u64) -> Event {
        event(what, self.place, self.psn(), other, value)
    }

    /// The sender sent it before something that has come already.
    fn is_behind(&self, f: &Flow) -> bool {
        self.net.ip_id.is_some_and(|id| f.ip_id.is_behind(id))
    }

    fn sent(&self, again: bool, late: bool) -> Sent {
        Sent {
            number: self.place.number,
            at: self.place.at,
            ip_id: self.net.ip_id.unwrap_or(0),
            again,
            late,
            opcode: self.op.byte,
        }
    }
}

/// Learns the path MTU from a packet that is full by its position; whether it did.
fn learn_mtu(f: &mut Flow, c: &Context<'_>) -> bool {
    if matches!(c.op.position, Position::First | Position::Middle)
        && let Ok(len) = u32::try_from(c.packet.payload_len)
        && len > f.mtu
        && MTUS.contains(&len)
    {
        f.mtu = len;
        return true;
    }
    false
}

/// Copied by the network, or sent again? Certain by the IP identification where the sender counts it; else
/// a copy comes at once, without cause and sooner than any answer could.
fn is_copy(f: &Flow, c: &Context<'_>, before: Option<Sent>) -> bool {
    if f.transport == Transport::Uc {
        return true; // UC never sends again
    }
    let Some(before) = before else { return false };
    if let Some(id) = c.net.ip_id {
        if f.ip_id.varies() {
            return id == before.ip_id;
        }
        // too early to know whether it counts, but few senders use a constant other than zero
        if id != 0 && id == before.ip_id && f.packets <= 4 {
            return true;
        }
    }
    let passed = c.place.at.since(before.at);
    let floor = f.rtt.as_ref().and_then(|h| h.min()).and_then(|m| i64::try_from(m).ok());
    f.repairs().alarm.is_none() && f.rewinding.is_none() && passed < floor.unwrap_or(20_000).min(1_000_000)
}

fn request(f: &mut Flow, mut peer: Option<&mut Flow>, c: &Context<'_>, info: &mut PacketInfo) {
    if f.requests == 0 {
        f.asked_after = u32::try_from(c.place.at.since(f.first) / 1000).unwrap_or(u32::MAX);
    }
    f.requests += 1;
    f.ack_reqs += u64::from(c.packet.bth.ack_req());
    let (psn, at, number) = (c.psn(), c.place.at, c.place.number);
    let answered = matches!(c.op.kind, Kind::ReadRequest | Kind::Atomic | Kind::Flush | Kind::AtomicWrite);
    if !f.ordered() {
        f.messages += u64::from(c.op.position.ends());
        f.goodput += c.packet.payload_len as u64;
        f.last_request = (at, number);
        return;
    }
    learn_mtu(f, c);
    let peers_mtu = peer.as_ref().map_or(0, |p| p.path_mtu());
    let mtu = if f.path_mtu() != 0 { f.path_mtu() } else { peers_mtu };
    settle_open_read(f, psn, mtu);

    let mut span = 1;
    if c.op.kind == Kind::ReadRequest {
        let len = c.packet.ext.reth.map_or(0, |r| r.dma_len());
        span = if mtu != 0 || len <= 256 { packets_of(len, mtu.max(256)) } else { 0 };
        if let Some(r) = f.reads.starting_at(psn)
            && r.len == len
            && r.span != 0
        {
            span = r.span;
        }
    }
    let mut arrival = f.req.classify(psn);
    let mut restart = false;
    if arrival == Arrival::Repeat
        && c.op.kind == Kind::ReadRequest
        && f.reads.starting_at(psn).is_none()
        && f.reads.holding(psn).is_some()
    {
        // an interrupted READ goes on where its response ended: no PSN comes twice, and nothing is late
        restart = true;
    }
    let recent = f.recent.get_or_insert_default();
    let before = recent.get(psn, Role::Request);
    let mut again = false;
    match arrival {
        Arrival::Repeat if restart => {
            f.repairs_mut().read_restarts += 1;
            again = true;
            let cause = why_again(f, peer.as_deref(), c);
            info.repair = Some(cause);
            note_again(f, c, cause, before);
        }
        Arrival::Repeat => {
            again = true;
            if is_copy(f, c, before) {
                f.duplicates += 1;
                info.repeat = Some(Repeat::Copied);
                f.note(c.event(Happened::Duplicate, before.map_or(0, |b| b.number), 0));
                // a copy says nothing about the sender
                f.last_request = (at, number);
                return;
            }
            f.retransmitted += 1;
            if c.is_behind(f) && before.is_some() {
                overtaken(f, c, before);
                info.repeat = Some(Repeat::Sent(f.rewinding.unwrap_or(Cause::Unknown)));
                return;
            }
            let cause = why_again(f, peer.as_deref(), c);
            info.repeat = Some(Repeat::Sent(cause));
            f.repairs_mut().count(cause);
            note_again(f, c, cause, before);
        }
        Arrival::Gap(n) => {
            info.gap = n;
            let acked = f.acked;
            let start = f.req.next();
            f.note(event(Happened::Gap, c.place, start, 0, u64::from(n)));
            f.rewinding = None;
            f.req.take(psn, span, arrival, number, true);
            if let Some(a) = acked {
                f.req.acknowledged(a);
            }
            arrival = Arrival::Next;
            // taken already
            after_request(f, c, span, false, answered, false);
            finish_request(f, c, arrival);
            return;
        }
        Arrival::Late { .. } => {
            f.reordered += 1;
            info.reordered = true;
            f.note(c.event(Happened::Late, 0, 0));
            info.repair = repairs(f, peer.is_some(), c, arrival);
        }
        Arrival::First | Arrival::Next => {
            f.rewinding = None;
        }
        Arrival::Far => {
            f.rewinding = None;
            f.note(c.event(Happened::Restart, 0, 0));
        }
    }
    f.req.take(psn, span, arrival, number, true);
    after_request(f, c, span, again, answered, info.reordered);
    if !again {
        finish_request(f, c, arrival);
    }
    if let Some(p) = peer.as_deref_mut()
        && p.cm_mtu == 0
    {
        p.cm_mtu = f.cm_mtu;
    }
}

/// The first sending of a packet whose repetition has come already: what looked like a loss was a delay.
fn overtaken(f: &mut Flow, c: &Context<'_>, before: Option<Sent>) {
    f.repairs_mut().overtaken += 1;
    if f.repairs().loss_naks > 0 {
        f.repairs_mut().loss_naks -= 1;
        f.repairs_mut().late_naks += 1;
    }
    f.repairs_mut().late_repairs = f.repairs().late_repairs.saturating_sub(1);
    let cause = f.rewinding.unwrap_or(Cause::Unknown);
    if let Some(n) = f.repairs_mut().causes.get_mut(cause as usize) {
        *n += 1;
    }
    f.note(c.event(Happened::Late, before.map_or(0, |b| b.number), 0));
}

/// A late request may be no overtaken one but the repair of a loss before the capture point: it answers a NAK,
/// or it comes after a silence in which anything that was only delayed would have come.
fn repairs(f: &mut Flow, joined: bool, c: &Context<'_>, arrival: Arrival) -> Option<Cause> {
    let psn = c.psn();
    if c.is_behind(f) {
        return None;
    }
    // under way when the capture began: why it is sent again was said before that
    let before = f.from_start && (arrival == Arrival::Late { due: false } || psn.distance(f.req.low()) < 0);
    if let Some(cause) = f.rewinding.filter(|_| psn == f.cursor) {
        let r = f.repairs_mut();
        *(if before { &mut r.early_repairs } else { &mut r.late_repairs }) += 1;
        return Some(cause);
    }
    let cause = match f.repairs.as_deref_mut().and_then(|r| r.alarm.take_if(|a| psn.distance(a.psn) >= 0)) {
        Some(alarm) => alarm.cause,
        None if before => {
            f.repairs_mut().early_repairs += 1;
            f.rewinding = Some(Cause::Unknown);
            return f.rewinding;
        }
        None => {
            let floor = f.rtt.as_ref().and_then(|h| h.percentile(90.0)).map_or(0, |r| r.saturating_mul(4));
            let idle = c.place.at.since(f.last_request.0);
            let ahead = c.net.ip_id.is_some_and(|id| f.ip_id.is_ahead(id));
            if !ahead && idle <= i64::try_from(floor).unwrap_or(i64::MAX).max(1_000_000) {
                return None;
            }
            if joined { Cause::Timeout } else { Cause::Unknown }
        }
    };
    f.repairs_mut().late_repairs += 1;
    f.rewinding = Some(cause);
    count_rewind(f, cause);
    Some(cause)
}

/// A READ of unknown span was the latest request: where the next one lies says how long it was.
fn settle_open_read(f: &mut Flow, psn: Psn, mtu: u32) {
    let Some(r) = f.reads.latest() else { return };
    if r.span != 0 {
        return;
    }
    let d = psn.distance(r.psn);
    if mtu != 0 {
        r.span = packets_of(r.len, mtu);
    } else if d > 0 && d.unsigned_abs() <= packets_of(r.len, 256).max(sequence::FAR.unsigned_abs()) {
        let (span, learnt) = span_from_jump(r.len, d.unsigned_abs());
        r.span = span;
        if let Some(m) = learnt {
            f.mtu = m;
        }
    } else {
        return;
    }
    let end = r.psn.plus(i32::try_from(r.span).unwrap_or(1));
    f.req.extend_to(end);
}

fn why_again(f: &mut Flow, peer: Option<&Flow>, c: &Context<'_>) -> Cause {
    let psn = c.psn();
    let last = f.repairs_mut().rewound.replace((psn, c.place.at));
    if f.rewinding.is_some() && psn == f.cursor {
        f.repairs_mut().rewound = last.map(|(start, _)| (start, c.place.at));
        return f.rewinding.unwrap_or(Cause::Unknown);
    }
    let cause = match f.repairs_mut().alarm.take_if(|a| psn.distance(a.psn) >= 0 || a.psn.distance(psn) < 64) {
        Some(a) => a.cause,
        None => {
            // still the same going back, with its packets out of order
            if let (Some((start, at)), Some(cause)) = (last, f.rewinding)
                && psn.distance(start) > 0
                && c.place.at.since(at) < 1_000_000
            {
                f.repairs_mut().rewound = Some((start, c.place.at));
                return cause;
            }
            if peer.is_some() { Cause::Timeout } else { Cause::Unknown }
        }
    };
    count_rewind(f, cause);
    let acked = f.acked.is_some_and(|a| psn.distance(a) <= 0);
    if acked && matches!(cause, Cause::Timeout | Cause::Unknown) {
        // an answered READ that is asked for again: its data was lost on the way back
        if c.op.kind == Kind::ReadRequest {
            f.repairs_mut().response_losses += 1;
        } else {
            f.repairs_mut().rewinds_acked += 1;
        }
    }
    f.rewinding = Some(cause);
    cause
}

fn count_rewind(f: &mut Flow, cause: Cause) {
    if let Some(n) = f.repairs_mut().rewinds.get_mut(cause as usize) {
        *n += 1;
    }
}

fn note_again(f: &mut Flow, c: &Context<'_>, cause: Cause, before: Option<Sent>) {
    let psn = c.psn();
    let other = before.map_or(0, |b| b.number);
    let passed = before.map_or(0, |b| u64::try_from(c.place.at.since(b.at)).unwrap_or(0));
    let what = match cause {
        Cause::SequenceNak => Happened::AgainAfterNak,
        Cause::RnrNak => Happened::AgainAfterRnr,
        Cause::Timeout | Cause::Unknown => Happened::AgainAfterSilence,
    };
    let acked = c.op.kind != Kind::ReadRequest && f.acked.is_some_and(|a| psn.distance(a) <= 0);
    if acked {
        f.repairs_mut().again_acked += 1;
    }
    f.note(c.event(what, other, passed));
    if acked {
        f.note(c.event(Happened::AgainThoughAcked, other, passed));
    }
    if let Some((owed, _)) = f.repairs().owed
        && psn.distance(owed) > 0
    {
        f.repairs_mut().past_owed += 1;
    }
    let place = c.place;
    let t = f.trouble.get_or_insert_default();
    let a = &mut t.attempts;
    if a.times == 0 || psn.distance(a.psn) < 0 {
        if a.times > t.worst.times {
            t.worst = std::mem::take(a);
        }
        *a = state::Attempts { psn, times: 1, ..state::Attempts::default() };
        if let Some(b) = before {
            a.at.push(b.at);
            a.packets.push(b.number);
        }
    }
    if psn == a.psn {
        a.times = a.times.saturating_add(1);
        a.last = place.at;
        if a.at.len() < 8 {
            a.at.push(place.at);
            a.packets.push(place.number);
        }
    }
}

/// What every request leaves behind, repeat or not.
fn after_request(f: &mut Flow, c: &Context<'_>, span: u32, again: bool, answered: bool, late: bool) {
    let (psn, at, number) = (c.psn(), c.place.at, c.place.number);
    f.last_request = (at, number);
    f.cursor = psn.plus(i32::try_from(span.max(1)).unwrap_or(1));
    let cursor = f.cursor;
    if let Some(r) = f.repairs.as_deref_mut() {
        r.owed = r.owed.filter(|(o, _)| !(o.distance(psn) >= 0 && o.distance(cursor) < 0));
    }
    if let Some(recent) = f.recent.as_mut() {
        recent.put(psn, Role::Request, c.sent(again, late));
    }
    if !again && f.reliable() {
        let asked = match c.op.kind {
            Kind::ReadRequest => c.packet.ext.reth.map_or(0, |r| u64::from(r.dma_len())),
            Kind::Atomic => 8,
            _ => c.packet.payload_len as u64,
        };
        let (starts, ends) = (c.op.position.starts(), c.op.position.ends());
        let last = f.cursor.plus(-1);
        f.flight.get_or_insert_default().sent(Request { first: psn, last, bytes: asked, starts, ends, packet: number });
    }
    if answered {
        let len = c.packet.ext.reth.filter(|_| c.op.kind == Kind::ReadRequest).map_or(0, |r| r.dma_len());
        match f.reads.starting_at(psn) {
            Some(r) if again => {
                r.at = at;
                r.again = true;
                r.done = false;
            }
            _ => f.reads.add(Read { psn, span, len, at, packet: number, done: false, again }),
        }
        let open = u32::try_from(f.reads.open()).unwrap_or(u32::MAX);
        if open > f.read_depth.0 {
            f.read_depth = (open, u32::try_from(number).unwrap_or(u32::MAX));
        }
    }
    let target = match (c.packet.ext.reth, c.packet.ext.atomic) {
        (Some(r), _) => Some((r.va(), r.r_key(), r.dma_len())),
        (_, Some(a)) => Some((a.va(), a.r_key(), 8)),
        _ => None,
    };
    if let Some((va, r_key, len)) = target {
        let t = Target { psn, packet: number, va, r_key, len, opcode: c.op.byte };
        f.targets.get_or_insert_default().add(t);
    }
}

/// What only first arrivals count for: messages and their bytes.
fn finish_request(f: &mut Flow, c: &Context<'_>, arrival: Arrival) {
    f.messages += u64::from(c.op.position.ends());
    if c.op.payload == Payload::Data {
        f.goodput += c.packet.payload_len as u64;
    }
    if matches!(arrival, Arrival::Late { .. }) {
        return;
    }
    let m = &mut f.message;
    let payload = c.packet.payload_len as u64;
    match c.op.position {
        Position::First => {
            *m = state::Message {
                open: true,
                packet: c.place.number,
                want: c.packet.ext.reth.map_or(0, |r| r.dma_len()),
                got: payload,
                latest: c.place.number,
                psn: c.psn(),
            };
        }
        Position::Middle | Position::Last if m.open => {
            m.got += payload;
            m.latest = c.place.number;
            m.psn = c.psn();
            m.open = c.op.position != Position::Last;
        }
        _ => m.open = false,
    }
}

fn response(f: &mut Flow, mut peer: Option<&mut Flow>, c: &Context<'_>, info: &mut PacketInfo) {
    let psn = c.psn();
    if c.op.kind != Kind::Ack {
        f.responses += 1;
        data_response(f, peer.as_deref_mut(), c, info);
    }
    f.last_response = c.place.at;
    let Some(aeth) = c.packet.ext.aeth else {
        // cut before it says whether it is a NAK; at least everything before was taken
        f.acks += u64::from(c.op.kind == Kind::Ack);
        if let Some(p) = peer {
            acknowledge(p, f, c, if c.op.kind == Kind::Ack { psn.plus(-1) } else { psn }, info);
        }
        return;
    };
    if c.op.kind == Kind::Ack {
        let standing = f.standing.get_or_insert_default();
        standing.take(aeth.syndrome().verdict(), psn, aeth.msn(), c.place.number);
    }
    // up to where this acknowledges
    let mut covered = psn;
    let mut alarm = None;
    match aeth.syndrome().verdict() {
        Said::Ack(_) => f.acks += u64::from(c.op.kind == Kind::Ack),
        Said::Rnr(code) => {
            f.rnr_naks += 1;
            f.rnr_zero += u64::from(code == 0);
            let other = peer.as_ref().and_then(|p| p.recent.as_ref()?.get(psn, Role::Request)).map_or(0, |s| s.number);
            f.note(c.event(Happened::Rnr, other, u64::from(code)));
            covered = psn.plus(-1);
            alarm = Some(Cause::RnrNak);
        }
        Said::Nak(code) => {
            let what = match code {
                NakCode::PsnSequenceError => {
                    f.naks.psn_sequence_error += 1;
                    alarm = Some(Cause::SequenceNak);
                    Happened::NakSequence
                }
                NakCode::InvalidRequest => {
                    f.naks.invalid_request += 1;
                    Happened::NakInvalidRequest
                }
                NakCode::RemoteAccessError => {
                    f.naks.remote_access_error += 1;
                    Happened::NakRemoteAccess
                }
                NakCode::RemoteOperationalError => {
                    f.naks.remote_operational_error += 1;
                    Happened::NakRemoteOperational
                }
                NakCode::InvalidRdRequest => {
                    f.naks.invalid_rd_request += 1;
                    Happened::NakOther
                }
                NakCode::Reserved(_) => Happened::NakOther,
            };
            let mut other = 0;
            if let Some(p) = peer.as_deref_mut() {
                other = p.recent.as_ref().and_then(|r| r.get(psn, Role::Request)).map_or(0, |s| s.number);
                if what != Happened::NakSequence {
                    let refused = p.refused(psn);
                    if let Some(r) = refused {
                        other = if other == 0 { r.packet } else { other };
                    }
                    let t = f.trouble.get_or_insert_default();
                    t.refused = t.refused.or(refused);
                }
            }
            f.note(c.event(what, other, 0));
            covered = psn.plus(-1);
        }
        Said::Reserved(_) => {}
    }
    let Some(p) = peer else { return };
    match alarm {
        Some(cause) => {
            if p.req.started() && p.req.next().distance(covered) > 0 {
                settle_acked(p, covered);
            }
            let again = p.recent.as_ref().and_then(|r| r.get(psn, Role::Request));
            info.ack_of = again.map(|s| s.number);
            info.rtt = again.map(|s| c.place.at.since(s.at));
            if cause == Cause::RnrNak && p.trouble.as_ref().is_some_and(|t| t.attempts.psn == psn) {
                p.trouble.get_or_insert_default().attempts.rnr += 1;
            }
            // a second NAK before the sender could react is a copy of the first
            let told_before = p.repairs().alarm.is_some_and(|a| (a.cause, a.psn) == (cause, psn));
            // the packets behind one that met RNR draw sequence NAKs for the same PSN: the cause stays RNR
            let behind_rnr = cause == Cause::SequenceNak && p.repairs().rnr_psn == Some(psn);
            if cause == Cause::RnrNak {
                p.repairs_mut().rnr_psn = Some(psn);
            } else if !behind_rnr && !told_before {
                let late = again.is_some_and(|s| s.late);
                p.repairs_mut().late_naks += u64::from(late);
                p.repairs_mut().loss_naks += u64::from(!late);
            }
            if behind_rnr {
                p.repairs_mut().alarm =
                    Some(Alarm { cause: Cause::RnrNak, psn, at: c.place.at, packet: c.place.number });
            } else {
                p.repairs_mut().alarm = Some(Alarm { cause, psn, at: c.place.at, packet: c.place.number });
            }
            if cause == Cause::SequenceNak && !behind_rnr {
                p.repairs_mut().owed = Some((psn, c.place.number));
                p.repairs_mut().past_owed = 0;
            }
        }
        None => acknowledge(p, f, c, covered, info),
    }
}

fn settle_acked(p: &mut Flow, psn: Psn) {
    if p.acked.is_none_or(|a| psn.is_after(a)) {
        p.acked = Some(psn);
        if let Some(w) = p.flight.as_deref_mut() {
            w.covered(psn);
        }
    }
    if !p.req.holes().is_empty() {
        p.req.acknowledged(psn);
    }
    if let Some(r) = p.repairs.as_deref_mut() {
        r.owed = r.owed.filter(|(o, _)| o.is_after(psn));
        r.rnr_psn = r.rnr_psn.filter(|r| r.is_after(psn));
    }
}

/// The requester `p` learns that everything up to `psn` arrived; `f` is the flow that says so.
fn acknowledge(p: &mut Flow, f: &mut Flow, c: &Context<'_>, psn: Psn, info: &mut PacketInfo) {
    if !p.req.started() {
        return;
    }
    let beyond = psn.distance(p.req.next());
    if beyond >= 0 && beyond < sequence::FAR {
        f.pair_fits.1 = f.pair_fits.1.saturating_add(1);
        // a request that the capture lacks
        let unseen = u64::from(beyond.unsigned_abs()) + 1;
        if p.acked.is_none_or(|a| psn.is_after(a)) {
            p.acked_unseen = p.acked_unseen.max(unseen);
            f.note(c.event(Happened::AckOfUnseen, 0, unseen));
        }
    } else if beyond.unsigned_abs() as i64 <= i64::from(sequence::FAR) {
        f.pair_fits.0 = f.pair_fits.0.saturating_add(1);
    } else {
        f.pair_fits.1 = f.pair_fits.1.saturating_add(1);
        return;
    }
    let fresh = p.acked.is_none_or(|a| psn.is_after(a));
    settle_acked(p, psn);
    if fresh {
        if p.repairs().alarm.is_some_and(|a| psn.distance(a.psn) >= 0) {
            p.repairs_mut().alarm = None;
        }
        if let Some(t) = p.trouble.as_mut()
            && t.attempts.times > 0
            && psn.distance(t.attempts.psn) >= 0
        {
            if let Some(first) = t.attempts.at.first() {
                t.repair.add(u64::try_from(c.place.at.since(*first)).unwrap_or(0));
            }
            let done = std::mem::take(&mut t.attempts);
            if done.times > t.worst.times {
                t.worst = done;
            }
        }
    }
    if c.op.kind == Kind::ReadResponse {
        return; // matched with its READ elsewhere
    }
    let Some(sent) = p.recent.as_ref().and_then(|r| r.get(psn, Role::Request)) else { return };
    p.small_acked |= !p.message.open || p.message.psn != psn;
    let rtt = c.place.at.since(sent.at);
    if rtt < 0 {
        return;
    }
    info.ack_of = Some(sent.number);
    info.rtt = Some(rtt);
    // an answer to a request that was sent twice may belong to either
    if fresh && !sent.again {
        p.rtt.get_or_insert_default().add(rtt.unsigned_abs());
    }
}

fn data_response(f: &mut Flow, mut peer: Option<&mut Flow>, c: &Context<'_>, info: &mut PacketInfo) {
    let (psn, number) = (c.psn(), c.place.number);
    let learnt = learn_mtu(f, c);
    if let Some(p) = peer.as_deref_mut() {
        answer(p, f, c, learnt, info);
    }
    let arrival = f.rsp.classify(psn);
    let before = f.recent.get_or_insert_default().get(psn, Role::Response);
    let mut again = false;
    match arrival {
        Arrival::Repeat => {
            again = true;
            if is_copy(f, c, before) {
                f.duplicates += 1;
                info.repeat = Some(Repeat::Copied);
                f.note(c.event(Happened::Duplicate, before.map_or(0, |b| b.number), 0));
            } else {
                f.retransmitted += 1;
                // responses are sent again because their request was
                let cause = peer.as_ref().and_then(|p| p.rewinding).unwrap_or(Cause::Unknown);
                if let Some(n) = f.repairs_mut().causes.get_mut(cause as usize) {
                    *n += 1;
                }
                info.repeat = Some(Repeat::Sent(cause));
            }
        }
        Arrival::Late { .. } => {
            f.reordered += 1;
            info.reordered = true;
            // the answer to a request that was sent again, or to the rest of a READ that was
            let asked = peer.as_deref_mut().and_then(|p| p.reads.holding(psn)).is_some_and(|r| r.again);
            let ahead = c.net.ip_id.is_some_and(|id| f.ip_id.is_ahead(id));
            if (asked || ahead || c.place.at.since(f.last_response) > 1_000_000) && !c.is_behind(f) {
                f.repairs_mut().late_repairs += 1;
                info.repair = Some(peer.as_deref().and_then(|p| p.rewinding).unwrap_or(Cause::Unknown));
            }
            f.note(c.event(Happened::Late, 0, 0));
        }
        _ => {}
    }
    if let Arrival::Gap(n) = arrival {
        let start = f.rsp.next();
        f.rsp.jump(psn);
        let due = gap_in_responses(f, peer.as_deref(), c, start, n);
        info.gap = due;
        if due > 0 {
            f.note(event(Happened::Gap, c.place, start, 0, u64::from(due)));
        }
    } else {
        f.rsp.take(psn, 1, arrival, number, false);
    }
    if !again {
        f.messages += u64::from(c.op.kind == Kind::ReadResponse && c.op.position.ends());
        f.goodput += c.packet.payload_len as u64;
        // a late one is not where the flow stands
        if !matches!(arrival, Arrival::Late { .. }) {
            f.responding = c.op.kind == Kind::ReadResponse && !c.op.position.ends();
        }
    }
    if let Some(recent) = f.recent.as_mut() {
        recent.put(psn, Role::Response, c.sent(again, info.reordered));
    }
}

/// Adds the holes of a gap among responses; returns in how many PSNs of it a packet was due. The requests
/// say it; where they are not in the capture, the positions within READ responses say the least that is
/// certain.
fn gap_in_responses(f: &mut Flow, peer: Option<&Flow>, c: &Context<'_>, start: Psn, n: u32) -> u32 {
    let number = c.place.number;
    if let Some(p) = peer
        && !p.reads.is_empty()
    {
        let (mut due, mut at) = (0, start);
        // where requests are not in the capture, their responses may still come
        let unknown = !p.req.knows(start, n);
        for (psn, len) in p.reads.due_within(start, n) {
            if unknown {
                f.rsp.passed_over(at, psn.distance(at).unsigned_abs(), false, number);
            }
            f.rsp.passed_over(psn, len, true, number);
            due += len;
            at = psn.plus(i32::try_from(len).unwrap_or(0));
        }
        if unknown {
            f.rsp.passed_over(at, c.psn().distance(at).unsigned_abs(), false, number);
        }
        return due;
    }
    let inside = c.op.kind == Kind::ReadResponse && !c.op.position.starts();
    match (f.responding, inside) {
        // within one response
        (true, true) => {
            f.rsp.passed_over(start, n, true, number);
            n
        }
        // the last packet of the response before
        (true, false) => {
            f.rsp.passed_over(start, 1, true, number);
            f.rsp.passed_over(start.next(), n - 1, false, number);
            1
        }
        // the first packet of this response
        (false, true) => {
            f.rsp.passed_over(start, n - 1, false, number);
            f.rsp.passed_over(c.psn().plus(-1), 1, true, number);
            1
        }
        (false, false) => {
            f.rsp.passed_over(start, n, false, number);
            0
        }
    }
}

/// The path MTU is another than the distances between READs made it look: what they seemed to take beyond their
/// own length was passed over.
fn unguess(p: &mut Flow, number: u64) {
    let mtu = p.mtu;
    for r in p.reads.iter_mut().filter(|r| !r.done && r.span > packets_of(r.len, mtu)) {
        let own = packets_of(r.len, mtu);
        p.req.passed_over(r.psn.plus(i32::try_from(own).unwrap_or(1)), r.span - own, true, number);
        r.span = own;
    }
}

/// Matches a data-bearing response with the request in `p` that it answers.
fn answer(p: &mut Flow, f: &Flow, c: &Context<'_>, learnt: bool, info: &mut PacketInfo) {
    let psn = c.psn();
    if f.mtu != 0 && (learnt || c.op.position == Position::First) {
        // a full packet of a response: now every READ's length in packets is known, and where the requester sent no
        // data of its own, what the distance between two READs seemed to say no longer counts
        if p.mtu != 0 && p.mtu != f.mtu && p.goodput == 0 {
            p.mtu = f.mtu;
            unguess(p, c.place.number);
        }
        let mut end = None;
        for r in p.reads.iter_mut().filter(|r| r.span == 0) {
            r.span = packets_of(r.len, f.mtu);
            end = Some(r.psn.plus(i32::try_from(r.span).unwrap_or(1)));
        }
        if let Some(end) = end {
            p.req.extend_to(end);
            p.cursor = end;
        }
    }
    let ends = c.op.position.ends();
    let at = c.place.at;
    let mut end = None;
    let Some(r) = p.reads.holding(psn) else { return };
    info.ack_of = Some(r.packet);
    let passed = at.since(r.at);
    info.rtt = (passed >= 0).then_some(passed);
    if !ends {
        return;
    }
    if r.span == 0 {
        r.span = psn.distance(r.psn).unsigned_abs() + 1;
        end = Some(psn.next());
    }
    let sample = (!r.done && !r.again && passed >= 0).then_some(passed.unsigned_abs());
    r.done = true;
    if let Some(end) = end {
        p.req.extend_to(end);
    }
    if let Some(ns) = sample {
        p.read_latency.get_or_insert_default().add(ns);
    }
}

fn notification(f: &mut Flow, peer: Option<&mut Flow>, c: &Context<'_>) {
    f.cnps += 1;
    let at = c.place.at;
    let n = f.notifications.get_or_insert_default();
    if f.cnps > 1
        && let Ok(d) = u64::try_from(at.since(n.latest))
    {
        n.spacing = Some(n.spacing.map_or(d, |s| s.min(d)));
    }
    n.latest = at;
    if let Some(p) = peer {
        p.notified = true;
        n.reaction.notified(at, &p.pace, p.bytes);
    }
    f.note(c.event(Happened::Cnp, 0, 0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::LinkType;
    use crate::frame::icrc::Why;
    use crate::wire::BthFields;
    use crate::wire::opcode::byte;

    /// A SEND Only over IPv4 from 10.0.0.1 to 10.0.0.2.
    fn send(qp: u32, psn: u32) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        f.extend([0x45, 2, 0, 44, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        f.extend([0xc0, 0, 0x12, 0xb7, 0, 24, 0, 0]);
        f.extend(BthFields::new(byte::RcSendOnly, qp, psn).emit());
        f.extend([0; 4]);
        f
    }

    fn push(a: &mut Analyzer, number: u64, at: i64, bytes: &[u8]) -> PacketInfo {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, crate::wire::ROCE_UDP_PORT);
        let packet = frame.packet().unwrap().unwrap();
        a.push(Place { number, at: Timestamp(at) }, &frame, &packet, Verdict::Unchecked(Why::Off))
    }

    #[test]
    fn a_flow_takes_two_kib_at_the_most() {
        // a requester in good health: itself, its latest packets, its latencies
        let healthy = size_of::<Flow>()
            + size_of::<recent::Recent>()
            + size_of::<histogram::Histogram>()
            + size_of::<flight::Flight>();
        assert!(healthy <= 2048, "{healthy} bytes: Flow alone {}", size_of::<Flow>());
        eprintln!("{healthy}");
    }

    #[test]
    fn made_up_queue_pairs_are_bounded() {
        let mut a = Analyzer::with_limit(1000);
        for n in 0..20_000u32 {
            let qp = n.wrapping_mul(7919) & 0xff_ffff;
            push(&mut a, u64::from(n) + 1, i64::from(n), &send(qp, n));
        }
        assert_eq!(a.flows().count(), 1000);
        let kept: u64 = a.flows().map(|f| f.packets).sum();
        assert_eq!(kept + a.totals().overflow_packets, 20_000);
        assert!(finding::check(&a).iter().any(|f| f.code == "flow-table-full"));
    }

    #[test]
    fn silent_flows_make_room() {
        let mut a = Analyzer::with_limit(10);
        for n in 0..10 {
            push(&mut a, u64::from(n) + 1, 0, &send(n, 1));
        }
        let later = push(&mut a, 11, IDLE + 1, &send(77, 1));
        assert!(later.flow.is_some());
        assert_eq!((a.expired().flows, a.expired().packets), (1, 1));
        assert_eq!(a.flows().map(|f| f.packets).sum::<u64>() + a.expired().packets, a.totals().roce_packets);
    }

    #[test]
    fn random_sequence_numbers_stay_bounded() {
        let mut a = Analyzer::with_limit(100);
        let mut x = 1u32;
        for n in 0..50_000u64 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            push(&mut a, n + 1, i64::try_from(n).unwrap() * 1000, &send(5, x >> 8));
        }
        assert!(a.flows().count() <= 200);
        assert_eq!(a.flows().map(|f| f.packets).sum::<u64>() + a.totals().overflow_packets, 50_000);
    }
}
