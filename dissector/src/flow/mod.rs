//! Analysis per queue pair, sans-IO: push a packet, read the state. No clock, no file, no thread; the same
//! packets give the same answers however they were cut into pieces.
//!
//! One directed flow carries two PSN spaces: the requests of its sender, and the responses of its sender to
//! the peer's requests, which are numbered in the peer's space. Both are followed apart ([`sequence`]). A
//! READ takes as many PSNs as its response has packets ([`reads`]), which needs the path MTU: from the
//! connection manager, from the payload of First and Middle packets, or from where the next request lies.
//!
//! The two directions of a queue pair are joined by what the packets prove ([`pairing`]).
//!
//! This file takes a packet and gives it to the right room: `who` finds its flow, `request`, `response` and
//! `notification` follow it, [`state`] keeps what is known, [`finding`] says what went wrong.

pub mod asides;
mod context;
pub mod echo;
pub mod event;
pub mod finding;
pub mod flight;
pub mod histogram;
pub mod key;
mod notification;
pub mod pairing;
pub mod quality;
pub mod reaction;
pub mod reads;
pub mod recent;
pub mod report;
mod request;
mod response;
pub mod row;
pub mod sequence;
pub mod stall;
pub mod standing;
pub mod state;
pub mod vantage;
mod who;

use hashbrown::HashMap;

use self::asides::Asides;
use self::context::{Context, event};
use self::echo::Echoes;
use self::event::Happened;
use self::key::{Addresses, Key};
use self::pairing::Waiting;
use self::quality::Quality;
use self::row::{FlowRow, Totals};
use self::state::{Cause, Flow};
use crate::capture::Timestamp;
use crate::connection::Connections;
use crate::frame::icrc::Verdict;
use crate::frame::mistake::{self, Mistake};
use crate::frame::{Frame, Net};
use crate::wire::opcode::Payload;
use crate::wire::{Kind, Packet, Role, Stop, outer};

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
    #[expect(clippy::vec_box, reason = "flows are large and would all be moved when the table grows")]
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
    echoes: Echoes,
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
            echoes: Echoes::default(),
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
            f.icrc_flush = f.icrc_flush.saturating_add(u32::from(odd_flush));
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
                f.trouble.get_or_insert_default().disbelieved += 1;
            }
            return info;
        }
        let mut echo = None;
        // one CNP is like the other
        if let Some(op) = packet.op.filter(|o| o.role() != Role::Notification)
            && let Some(f) = self.flows.get_mut(i as usize)
        {
            let came;
            if let Some(id) = net.ip_id.filter(|_| f.ip_id.counts()) {
                came = !f.ip_id.is_ahead(id) && f.came_before(packet.bth.psn(), op.role(), id);
                self.echoes.told(came);
            } else {
                echo = self.echoes.hear(place, f.recorded_at.point(), frame, net, packet);
                let numbered = f.ip_id.varies() && net.ip_id != Some(0);
                came = self.echoes.is_copy(echo, numbered, f.recorded_at.alternates());
            }
            if came {
                f.count_opcode(packet.bth.opcode());
                copied(f, place, packet, echo);
                info.repeat = Some(Repeat::Copied);
                return info;
            }
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
        let ctx = Context { place, net, packet, op, point: f.recorded_at.point(), echo: echo.is_some() };
        match op.role() {
            Role::Request => {
                let unjoined = peer.is_none();
                request::request(f, peer, &ctx, &mut info);
                if unjoined && f.reliable() {
                    self.waiting.expect(addresses, packet.bth.psn(), i);
                }
            }
            Role::Response => response::response(f, peer, &ctx, &mut info),
            Role::Notification => notification::notification(f, peer, &ctx),
        }
        if let Some(id) = net.ip_id {
            f.ids.get_or_insert_default().take(f.ip_id.latest().unwrap_or(id), id);
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

    /// Which packets came twice.
    pub const fn echoes(&self) -> &Echoes {
        &self.echoes
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
        self.quality.answers_cut +=
            u64::from(packet.op.is_some_and(|o| o.kind == Kind::Ack) && packet.ext.aeth.is_none());
        let cut = matches!(packet.stop, Some(Stop::Truncated(_) | Stop::PayloadCut { .. }));
        f.truncated = f.truncated.saturating_add(u32::from(cut));
        self.quality.cut(cut, frame.bytes.len());
        let dscp = outer::dscp(net.tos);
        f.dscp = Some(dscp);
        f.vlan = frame.vlan();
        f.recorded_at.take(frame, net.ttl);
        if let Some(tci) = frame.vlan_tci {
            f.pcps |= 1 << (tci >> 13);
        }
        let port = frame.udp.map(|u| u.src_port);
        if f.port != port {
            f.port_changes = f.port_changes.saturating_add(u32::from(f.port.is_some()));
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

/// Counts a packet that came before, byte for byte; it says nothing that the first one did not.
fn copied(f: &mut Flow, place: Place, packet: &Packet<'_>, echo: Option<echo::Echo>) {
    let Some(op) = packet.op else { return };
    match op.role() {
        Role::Request => {
            f.requests += 1;
            f.last_request = (place.at, place.number);
        }
        Role::Response => {
            let before = f.rnr_naks;
            response::count(f, packet);
            if f.rnr_naks > before {
                f.trouble.get_or_insert_default().copied_rnr += 1;
            }
        }
        Role::Notification => {}
    }
    // an acknowledge may come twice for many reasons; copies of it are not counted
    if op.kind != Kind::Ack {
        f.duplicates += 1;
        let psn = packet.bth.psn();
        let remembered = || f.recent.as_ref().and_then(|r| r.get(psn, op.role())).map(|s| s.number);
        let other = echo.map(|e| e.of).or_else(remembered).unwrap_or(0);
        f.note(event(Happened::Duplicate, place, psn, other, 0));
    }
}

fn source_mac(frame: &Frame<'_>) -> Option<[u8; 6]> {
    frame.bytes.get(frame.ethernet?..)?.get(6..)?.first_chunk().copied()
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
            + size_of::<flight::Flight>()
            + size_of::<echo::Ids>();
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
