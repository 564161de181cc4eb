//! Connections as communication management makes them: who talks to whom, on which queue pairs, from which
//! PSN, with which path MTU, for which service.
//!
//! [`Connections`] is pushed every packet (those that are no CM message cost one comparison) and is asked by
//! address and queue pair. It keeps at most as many connections as it was told to; the oldest go first
//! and are counted.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use crate::capture::Timestamp;
use crate::flow::row::Endpoint;
use crate::frame::Frame;
use crate::service::{DecodeAs, Service};
use crate::wire::cm::{self, ConnectionType, Kind, Message, ServiceId};
use crate::wire::{Mad, Packet, Psn, Qpn, mad};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Sent REQ (or SIDR_REQ): the client.
    Active,
    /// Answered: the server.
    Passive,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Active => Self::Passive,
            Self::Passive => Self::Active,
        }
    }
}

/// What is known of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Address its packets come from.
    pub address: Endpoint,
    /// Queue pair.
    pub qpn: Option<Qpn>,
    /// Communication id.
    pub comm_id: Option<u32>,
    /// GUID of its channel adapter.
    pub ca_guid: Option<u64>,
    /// PSN of the first request that it sends (what the other end's message said).
    pub first_psn: Option<Psn>,
    /// RNR retries that it makes before it gives up; 7 is endless (what the other end's message said).
    pub rnr_retry: Option<u8>,
    /// Incoming READs and atomics it takes at once.
    pub responder_resources: Option<u8>,
    /// READs and atomics it wants outstanding.
    pub initiator_depth: Option<u8>,
    /// Private data of its REQ or REP, without the RDMA-CM header, as far as captured.
    pub private_data: Box<[u8]>,
}

impl End {
    fn at(address: Endpoint) -> Self {
        Self {
            address,
            qpn: None,
            comm_id: None,
            ca_guid: None,
            first_psn: None,
            rnr_retry: None,
            responder_resources: None,
            initiator_depth: None,
            private_data: Box::default(),
        }
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// REQ or SIDR_REQ seen.
    Requested,
    /// REP seen.
    Replied,
    /// RTU seen.
    Established,
    /// SIDR_REP with a queue pair seen: datagrams may flow.
    Resolved,
    /// REJ, or a SIDR_REP that refuses.
    Rejected {
        /// By whom.
        by: Side,
        /// Reason of the REJ (see [`cm::reject_reason`]); status of the SIDR_REP.
        reason: u16,
    },
    /// DREQ seen.
    Disconnecting {
        /// Who began it.
        by: Side,
    },
    /// DREP seen.
    Disconnected,
}

impl State {
    /// One word or two.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Replied => "replied",
            Self::Established => "established",
            Self::Resolved => "resolved",
            Self::Rejected { .. } => "rejected",
            Self::Disconnecting { .. } => "disconnecting",
            Self::Disconnected => "disconnected",
        }
    }

    /// Whether its queue pairs no longer carry anything of it; their numbers may soon mean something else.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Rejected { .. } | Self::Disconnected)
    }
}

/// A CM message that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which.
    pub kind: Kind,
    /// Who sent it.
    pub from: Side,
    /// Packet number.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// The same message was seen before.
    pub repeat: bool,
}

/// Messages kept per connection; a connection has seven if nothing goes wrong.
pub const MAX_MESSAGES: usize = 16;

/// Communication management waits for milliseconds at the least before it sends again; what comes sooner was
/// copied by the network or recorded twice, nanoseconds.
const COPIED_WITHIN: i64 = 1_000_000;

/// Identity of a connection within one [`Connections`], in the order of their first message, from 0.
pub type Id = u64;

/// A connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// Identity.
    pub id: Id,
    /// Who called.
    pub active: End,
    /// Who was called.
    pub passive: End,
    /// How far it has come.
    pub state: State,
    /// RC, UC …; `None` for service id resolution (datagrams), or if REQ was not seen.
    pub transport: Option<ConnectionType>,
    /// Service that was called.
    pub service_id: Option<ServiceId>,
    /// Protocol of that service.
    pub service: Option<Service>,
    /// Source port of the RDMA-CM header.
    pub src_port: Option<u16>,
    /// Bytes of the path MTU.
    pub path_mtu: Option<u32>,
    /// Retries after a time-out or sequence NAK, of both ends.
    pub retry_count: Option<u8>,
    /// Code of the ACK time-out, 4.096 µs · 2^n; 0 means endless.
    pub ack_timeout: Option<u8>,
    /// Partition.
    pub p_key: Option<u16>,
    /// Q_Key to send datagrams with (SIDR_REP).
    pub q_key: Option<u32>,
    /// Resolution of a service id for datagrams, not a connection.
    pub datagram: bool,
    /// Messages seen, the first [`MAX_MESSAGES`] of them.
    pub messages: Vec<Seen>,
    /// Messages that were sent again.
    pub repeats: u32,
    /// Transaction id of the first message: tells a repeat from a new request.
    transaction_id: u64,
}

impl Connection {
    /// One end.
    pub const fn end(&self, side: Side) -> &End {
        match side {
            Side::Active => &self.active,
            Side::Passive => &self.passive,
        }
    }

    const fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Active => &mut self.active,
            Side::Passive => &mut self.passive,
        }
    }

    /// Nanoseconds of the ACK time-out; `None` if unknown or endless.
    pub fn ack_timeout_ns(&self) -> Option<u64> {
        self.ack_timeout.filter(|c| *c != 0).map(mad::timeout_ns)
    }

    /// When a message of this kind was first seen.
    pub fn first(&self, kind: Kind) -> Option<&Seen> {
        self.messages.iter().find(|m| m.kind == kind)
    }

    /// Port that was called.
    pub fn port(&self) -> Option<u16> {
        self.service_id.and_then(ServiceId::port)
    }

    fn note(&mut self, seen: Seen) {
        if seen.repeat {
            let copied = |m: &Seen| (0..COPIED_WITHIN).contains(&seen.at.since(m.at));
            if self.messages.iter().any(|m| (m.kind, m.from) == (seen.kind, seen.from) && copied(m)) {
                return;
            }
            self.repeats = self.repeats.saturating_add(1);
        }
        if self.messages.len() < MAX_MESSAGES {
            self.messages.push(seen);
        }
    }
}

/// An IPv4 address may also come as a mapped GID; both are one key.
fn canonical(e: Endpoint) -> Endpoint {
    match e {
        Endpoint::Ip(a) => Endpoint::Ip(a.to_canonical()),
        Endpoint::Lid(_) => e,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CommKey {
    /// Address and its communication id.
    Connection(Endpoint, u32),
    /// Address of the asker and its request id.
    Resolution(Endpoint, u32),
}

type Map<K> = HashMap<K, Id, foldhash::quality::RandomState>;

/// All connections seen, up to a number.
#[derive(Debug)]
pub struct Connections {
    all: VecDeque<Connection>,
    /// Identity of the first in `all`.
    first: Id,
    capacity: usize,
    by_qp: Map<(Endpoint, Qpn)>,
    by_comm: Map<CommKey>,
    decode_as: DecodeAs,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(DecodeAs::default())
    }
}

/// Connections kept if not told otherwise: about 1.5 KiB each with messages, maps and private data.
pub const DEFAULT_CAPACITY: usize = 8192;

impl Connections {
    /// None yet.
    pub fn new(decode_as: DecodeAs) -> Self {
        Self::with_capacity(decode_as, DEFAULT_CAPACITY)
    }

    /// None yet; `capacity` (at least one) are kept.
    pub fn with_capacity(decode_as: DecodeAs, capacity: usize) -> Self {
        Self {
            all: VecDeque::new(),
            first: 0,
            capacity: capacity.max(1),
            by_qp: Map::default(),
            by_comm: Map::default(),
            decode_as,
        }
    }

    /// What the user said about services.
    pub const fn decode_as(&self) -> &DecodeAs {
        &self.decode_as
    }

    /// Connections that are kept, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Connection> {
        self.all.iter()
    }

    /// Connections that were dropped for want of room.
    pub const fn evicted(&self) -> u64 {
        self.first
    }

    /// One connection.
    pub fn get(&self, id: Id) -> Option<&Connection> {
        self.all.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    fn get_mut(&mut self, id: Id) -> Option<&mut Connection> {
        self.all.get_mut(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    /// The newest connection with this queue pair at this address, and which end of it that is.
    pub fn find(&self, address: Endpoint, qpn: Qpn) -> Option<(&Connection, Side)> {
        if self.all.is_empty() {
            return None;
        }
        let address = canonical(address);
        let c = self.get(*self.by_qp.get(&(address, qpn))?)?;
        // both ends may be at one address (loopback)
        let side =
            if c.active.qpn == Some(qpn) && (c.passive.qpn != Some(qpn) || canonical(c.active.address) == address) {
                Side::Active
            } else {
                Side::Passive
            };
        Some((c, side))
    }

    /// Takes a packet; the connection that it told about, if it is a CM message that belongs to one.
    pub fn push(&mut self, number: u64, at: Timestamp, frame: &Frame<'_>, packet: &Packet<'_>) -> Option<Id> {
        // nearly all packets leave here
        packet.ext.deth?;
        let message = Message::of(Mad::in_packet(packet)?)?;
        let net = frame.net?;
        self.message(number, at, canonical(net.src), canonical(net.dst), message)
    }

    fn message(&mut self, number: u64, at: Timestamp, src: Endpoint, dst: Endpoint, m: Message<'_>) -> Option<Id> {
        match m.kind {
            Kind::Req => self.request(number, at, src, dst, m),
            Kind::Rep => self.reply(number, at, src, dst, m),
            Kind::SidrReq => self.resolution(number, at, src, dst, m),
            Kind::SidrRep => self.resolved(number, at, src, dst, m),
            _ => self.later(number, at, src, dst, m),
        }
    }

    fn request(&mut self, number: u64, at: Timestamp, src: Endpoint, dst: Endpoint, m: Message<'_>) -> Option<Id> {
        let key = CommKey::Connection(src, m.local_comm_id()?);
        if let Some(id) = self.known(key)
            && let Some(c) = self.get_mut(id)
            && c.transaction_id == m.transaction_id
            && c.active.qpn == m.local_qpn()
            && c.service_id == m.service_id()
        {
            c.note(Seen { kind: m.kind, from: Side::Active, number, at, repeat: true });
            return Some(id);
        }
        let service_id = m.service_id();
        let service = service_id.and_then(|s| self.decode_as.of_service_id(s));
        let id = self.add(src, dst, m.transaction_id);
        let c = self.get_mut(id)?;
        c.state = State::Requested;
        c.transport = m.transport();
        c.service_id = service_id;
        c.service = service;
        c.src_port = m.ip_cm().map(cm::IpCm::src_port);
        c.path_mtu = m.path_mtu_code().and_then(mad::mtu_bytes);
        c.retry_count = m.retry_count();
        c.ack_timeout = m.ack_timeout_code();
        c.p_key = cm::req::PARTITION_KEY.get(m.bytes).and_then(|v| u16::try_from(v).ok());
        c.active.comm_id = m.local_comm_id();
        c.active.qpn = m.local_qpn();
        c.active.ca_guid = cm::req::LOCAL_CA_GUID.get(m.bytes);
        c.active.responder_resources = m.responder_resources();
        c.active.initiator_depth = m.initiator_depth();
        c.active.private_data = m.consumer_data().into();
        c.passive.first_psn = m.starting_psn();
        c.passive.rnr_retry = m.rnr_retry();
        c.note(Seen { kind: m.kind, from: Side::Active, number, at, repeat: false });
        self.by_comm.insert(key, id);
        if let Some(qpn) = m.local_qpn() {
            self.by_qp.insert((src, qpn), id);
            // the path may use another address than the message came from
            if let Some((local, remote)) = m.primary_gids() {
                if let Some(local) = gid(local).filter(|g| *g != src) {
                    self.by_qp.insert((local, qpn), id);
                    self.get_mut(id)?.active.address = local;
                }
                if let Some(remote) = gid(remote).filter(|g| *g != dst) {
                    self.get_mut(id)?.passive.address = remote;
                }
            }
        }
        Some(id)
    }

    fn reply(&mut self, number: u64, at: Timestamp, src: Endpoint, dst: Endpoint, m: Message<'_>) -> Option<Id> {
        let asked = CommKey::Connection(dst, m.remote_comm_id()?);
        let qpn = m.local_qpn()?;
        // a REP whose REQ is not in the capture still says half
        let id = if let Some(id) = self.known(asked) {
            id
        } else {
            let id = self.add(dst, src, m.transaction_id);
            self.by_comm.insert(asked, id);
            self.get_mut(id)?.active.comm_id = m.remote_comm_id();
            id
        };
        let c = self.get_mut(id)?;
        let repeat = c.first(Kind::Rep).is_some() && c.passive.qpn == Some(qpn);
        c.note(Seen { kind: m.kind, from: Side::Passive, number, at, repeat });
        if repeat {
            return Some(id);
        }
        if c.state == State::Requested {
            c.state = State::Replied;
        }
        c.passive.comm_id = m.local_comm_id();
        c.passive.qpn = Some(qpn);
        c.passive.ca_guid = cm::rep::LOCAL_CA_GUID.get(m.bytes);
        c.passive.responder_resources = m.responder_resources();
        c.passive.initiator_depth = m.initiator_depth();
        c.passive.private_data = m.consumer_data().into();
        c.active.first_psn = m.starting_psn();
        c.active.rnr_retry = m.rnr_retry();
        let path = canonical(c.passive.address);
        if let Some(comm) = m.local_comm_id() {
            self.by_comm.insert(CommKey::Connection(src, comm), id);
        }
        self.by_qp.insert((src, qpn), id);
        self.by_qp.insert((path, qpn), id);
        Some(id)
    }

    fn resolution(&mut self, number: u64, at: Timestamp, src: Endpoint, dst: Endpoint, m: Message<'_>) -> Option<Id> {
        let key = CommKey::Resolution(src, m.local_comm_id()?);
        if let Some(id) = self.known(key)
            && let Some(c) = self.get_mut(id)
            && c.transaction_id == m.transaction_id
            && c.service_id == m.service_id()
        {
            c.note(Seen { kind: m.kind, from: Side::Active, number, at, repeat: true });
            return Some(id);
        }
        let service_id = m.service_id();
        let service = service_id.and_then(|s| self.decode_as.of_service_id(s));
        let id = self.add(src, dst, m.transaction_id);
        let c = self.get_mut(id)?;
        c.datagram = true;
        c.service_id = service_id;
        c.service = service;
        c.src_port = m.ip_cm().map(cm::IpCm::src_port);
        c.p_key = cm::sidr_req::PARTITION_KEY.get(m.bytes).and_then(|v| u16::try_from(v).ok());
        c.active.comm_id = m.local_comm_id();
        c.active.private_data = m.consumer_data().into();
        c.note(Seen { kind: m.kind, from: Side::Active, number, at, repeat: false });
        self.by_comm.insert(key, id);
        Some(id)
    }

    fn resolved(&mut self, number: u64, at: Timestamp, src: Endpoint, dst: Endpoint, m: Message<'_>) -> Option<Id> {
        let key = CommKey::Resolution(dst, m.local_comm_id()?);
        let status = m.status()?;
        let id = if let Some(id) = self.known(key) {
            id
        } else {
            let id = self.add(dst, src, m.transaction_id);
            self.by_comm.insert(key, id);
            id
        };
        let known = m.service_id().and_then(|s| self.decode_as.of_service_id(s));
        let c = self.get_mut(id)?;
        let repeat = c.first(Kind::SidrRep).is_some();
        c.note(Seen { kind: m.kind, from: Side::Passive, number, at, repeat });
        c.datagram = true;
        if c.service_id.is_none() {
            c.service_id = m.service_id();
            c.service = known;
        }
        if status != 0 {
            c.state = State::Rejected { by: Side::Passive, reason: u16::from(status) };
            return Some(id);
        }
        c.state = State::Resolved;
        c.passive.qpn = m.local_qpn();
        c.passive.private_data = m.consumer_data().into();
        c.q_key = cm::sidr_rep::Q_KEY.get(m.bytes).and_then(|v| u32::try_from(v).ok());
        if let Some(qpn) = m.local_qpn() {
            self.by_qp.insert((src, qpn), id);
        }
        Some(id)
    }

    /// Messages of a connection that exists: MRA, REJ, RTU, DREQ, DREP, LAP, APR.
    fn later(&mut self, number: u64, at: Timestamp, src: Endpoint, dst: Endpoint, m: Message<'_>) -> Option<Id> {
        // the sender may have no id yet (REJ of a REQ), or the receiver (REJ before anything): either key does
        let by_receiver = m.remote_comm_id().and_then(|c| self.known(CommKey::Connection(dst, c)));
        let id = by_receiver.or_else(|| self.known(CommKey::Connection(src, m.local_comm_id()?)))?;
        let c = self.get_mut(id)?;
        let from = if by_receiver.is_some() {
            // the receiver is the one whose id this is; at one address both ends may have it
            if c.active.comm_id == m.remote_comm_id()
                && (c.passive.comm_id != m.remote_comm_id() || from_passive(c, src))
            {
                Side::Passive
            } else {
                Side::Active
            }
        } else if c.active.comm_id == m.local_comm_id() {
            Side::Active
        } else {
            Side::Passive
        };
        let repeat = c.messages.iter().any(|s| s.kind == m.kind && s.from == from);
        c.note(Seen { kind: m.kind, from, number, at, repeat });
        match m.kind {
            Kind::Rej => {
                if let Some(reason) = m.reject_reason() {
                    c.state = State::Rejected { by: from, reason };
                }
            }
            Kind::Rtu => {
                if matches!(c.state, State::Requested | State::Replied) {
                    c.state = State::Established;
                }
            }
            Kind::Dreq => {
                if c.state != State::Disconnected {
                    c.state = State::Disconnecting { by: from };
                }
                // names the receiver's queue pair: the only word of it if REQ or REP was not captured
                let receiver = c.end_mut(from.other());
                if let Some(qpn) = m.remote_qpn().filter(|_| receiver.qpn.is_none()) {
                    receiver.qpn = Some(qpn);
                    self.by_qp.entry((dst, qpn)).or_insert(id);
                }
            }
            Kind::Drep => c.state = State::Disconnected,
            _ => {}
        }
        Some(id)
    }

    fn known(&self, key: CommKey) -> Option<Id> {
        self.by_comm.get(&key).copied().filter(|id| *id >= self.first)
    }

    fn add(&mut self, active: Endpoint, passive: Endpoint, transaction_id: u64) -> Id {
        if self.all.len() >= self.capacity
            && let Some(old) = self.all.pop_front()
        {
            self.first += 1;
            // a connection has at most a handful of keys; those that a newer one took over stay
            let gone = old.id;
            for end in [&old.active, &old.passive] {
                if let Some(qpn) = end.qpn {
                    remove(&mut self.by_qp, &(canonical(end.address), qpn), gone);
                }
            }
            // keys made from other addresses of the same connection are rare; sweep when they pile up
            if self.by_qp.len() > self.capacity.saturating_mul(4) {
                self.by_qp.retain(|_, id| *id > gone);
            }
            if let Some(comm) = old.active.comm_id {
                remove(&mut self.by_comm, &CommKey::Connection(canonical(old.active.address), comm), gone);
                remove(&mut self.by_comm, &CommKey::Resolution(canonical(old.active.address), comm), gone);
            }
            if let Some(comm) = old.passive.comm_id {
                remove(&mut self.by_comm, &CommKey::Connection(canonical(old.passive.address), comm), gone);
            }
            if self.by_comm.len() > self.capacity.saturating_mul(4) {
                self.by_comm.retain(|_, id| *id > gone);
            }
        }
        let id = self.first + self.all.len() as u64;
        self.all.push_back(Connection {
            id,
            active: End::at(active),
            passive: End::at(passive),
            state: State::Requested,
            transport: None,
            service_id: None,
            service: None,
            src_port: None,
            path_mtu: None,
            retry_count: None,
            ack_timeout: None,
            p_key: None,
            q_key: None,
            datagram: false,
            messages: Vec::new(),
            repeats: 0,
            transaction_id,
        });
        id
    }
}

fn from_passive(c: &Connection, src: Endpoint) -> bool {
    canonical(c.passive.address) == src
}

fn remove<K: Eq + std::hash::Hash>(map: &mut Map<K>, key: &K, id: Id) {
    if map.get(key) == Some(&id) {
        map.remove(key);
    }
}

/// Address of a GID, unless it is empty.
fn gid(bytes: [u8; 16]) -> Option<Endpoint> {
    (bytes != [0; 16]).then(|| canonical(Endpoint::Ip(IpAddr::V6(Ipv6Addr::from(bytes)))))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::frame::LinkType;
    use crate::wire::ROCE_UDP_PORT;

    /// Ethernet frames of a classic little-endian pcap.
    fn frames(file: &str) -> Vec<Vec<u8>> {
        let path = format!("{}/../tests/captures/{file}", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let mut rest = &bytes[24..];
        let mut all = vec![];
        while rest.len() >= 16 {
            let len = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
            all.push(rest[16..16 + len].to_vec());
            rest = &rest[16 + len..];
        }
        all
    }

    /// A second apart.
    fn feed(c: &mut Connections, frames: &[Vec<u8>]) {
        feed_every(1_000_000_000, c, frames);
    }

    fn feed_every(ns: i64, c: &mut Connections, frames: &[Vec<u8>]) {
        for ((n, at), bytes) in (1..).zip((0..).step_by(usize::try_from(ns).unwrap())).zip(frames) {
            let frame = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
            if let Some(Ok(packet)) = frame.packet() {
                c.push(n, Timestamp(at), &frame, &packet);
            }
        }
    }

    fn ip(last: u8) -> Endpoint {
        Endpoint::Ip(IpAddr::V4(Ipv4Addr::new(10, 10, 0, last)))
    }

    fn only(file: &str) -> Connection {
        let mut c = Connections::default();
        feed(&mut c, &frames(file));
        assert_eq!(c.iter().len(), 1, "{file}");
        c.iter().next().unwrap().clone()
    }

    #[test]
    fn rping_from_request_to_goodbye() {
        let c = only("cm_rping.pcap");
        assert_eq!((c.active.address, c.passive.address), (ip(1), ip(2)));
        assert_eq!((c.active.qpn, c.passive.qpn), (Some(Qpn::new(0x2c)), Some(Qpn::new(0x2e8))));
        // the first requests of the capture carry these
        assert_eq!((c.active.first_psn, c.passive.first_psn), (Some(Psn::new(15_320_581)), Some(Psn::new(12_267_494))));
        assert_eq!((c.path_mtu, c.transport, c.state), (Some(1024), Some(ConnectionType::Rc), State::Disconnected));
        assert_eq!((c.active.rnr_retry, c.passive.rnr_retry, c.retry_count), (Some(7), Some(7), Some(7)));
        assert_eq!((c.port(), c.service), (Some(7174), None));
        assert_eq!(
            c.messages.iter().map(|m| (m.kind.name(), m.number, m.from)).collect::<Vec<_>>(),
            [
                ("REQ", 1, Side::Active),
                ("REP", 2, Side::Passive),
                ("RTU", 3, Side::Active),
                ("DREQ", 52, Side::Active),
                ("DREP", 53, Side::Passive)
            ]
        );
        assert_eq!(c.repeats, 0);
    }

    #[test]
    fn refusal() {
        let c = only("cm_reject.pcap");
        assert_eq!(c.state, State::Rejected { by: Side::Passive, reason: 8 });
        assert_eq!((c.port(), c.passive.qpn), (Some(9999), None));
    }

    #[test]
    fn datagram_service() {
        let c = only("cm_udaddy.pcap");
        assert!(c.datagram);
        assert_eq!((c.state, c.passive.qpn, c.q_key), (State::Resolved, Some(Qpn::new(0x2ea)), Some(0x0123_4567)));
        assert_eq!(c.port(), Some(7174));
    }

    #[test]
    fn services_and_who_is_who() {
        let mut c = Connections::default();
        feed(&mut c, &frames("ulp_nvme_rdma.pcap"));
        assert_eq!(c.iter().map(|c| (c.port(), c.service)).collect::<Vec<_>>(), [(Some(4420), Some(Service::Nvme)); 2]);
        let (conn, side) = c.find(ip(2), Qpn::new(0x2ce)).unwrap();
        assert_eq!((conn.id, side, conn.active.qpn), (1, Side::Passive, Some(Qpn::new(0x12))));
        let (conn, side) = c.find(ip(1), Qpn::new(0x11)).unwrap();
        assert_eq!((conn.id, side), (0, Side::Active));
        assert!(c.find(ip(1), Qpn::new(0x2ce)).is_none());
        assert_eq!(only("ulp_nfs_rdma.pcap").service, Some(Service::RpcRdma));
        // over IPv6 as well
        assert_eq!(only("ipv6_cm_rping.pcap").state, State::Disconnected);
    }

    #[test]
    fn a_repeated_request_is_the_same_connection() {
        let mut f = frames("cm_rping.pcap");
        f.insert(1, f[0].clone());
        let mut c = Connections::default();
        feed(&mut c, &f);
        assert_eq!((c.iter().len(), c.iter().next().unwrap().repeats), (1, 1));
        // nobody repeats himself so soon: copies
        let mut copied = Connections::default();
        feed_every(1000, &mut copied, &f);
        assert_eq!((copied.iter().len(), copied.iter().next().unwrap().repeats), (1, 0));
        // the same ids in another transaction are a new one
        let mut again = f[0].clone();
        again[0x3e + 8] ^= 0x80;
        feed(&mut c, &[again]);
        assert_eq!(c.iter().len(), 2);
        assert_eq!(c.find(ip(1), Qpn::new(0x2c)).unwrap().0.id, 1);
    }

    #[test]
    fn a_capture_that_begins_late() {
        let f = frames("cm_rping.pcap");
        let mut c = Connections::default();
        feed(&mut c, &f[1..]);
        assert_eq!(c.iter().len(), 1);
        let conn = c.iter().next().unwrap();
        assert_eq!((conn.active.qpn, conn.passive.qpn), (None, Some(Qpn::new(0x2e8))));
        assert_eq!((conn.active.first_psn, conn.state), (Some(Psn::new(15_320_581)), State::Disconnected));
    }

    #[test]
    fn bounded() {
        let f = frames("cm_rping.pcap");
        let mut c = Connections::with_capacity(DecodeAs::default(), 3);
        for n in 0..100u8 {
            let mut pair = [f[0].clone(), f[1].clone()];
            // communication ids and queue pairs of their own; 0x56 is where CM data start
            pair[0][0x56] = n;
            pair[0][0x56 + 34] = n;
            pair[1][0x56 + 4] = n;
            pair[1][0x56] = n;
            pair[1][0x56 + 14] = n;
            feed(&mut c, &pair);
        }
        assert_eq!((c.iter().len(), c.evicted()), (3, 97));
        assert!(c.by_qp.len() <= 12 && c.by_comm.len() <= 12, "{} {}", c.by_qp.len(), c.by_comm.len());
        assert_eq!(c.find(ip(1), Qpn::new(99)).unwrap().0.passive.qpn, Some(Qpn::new(0x263)));
        assert!(c.find(ip(1), Qpn::new(5)).is_none());
    }

    #[test]
    fn no_bytes_do_harm() {
        let all: Vec<_> = ["cm_rping.pcap", "cm_reject.pcap", "cm_udaddy.pcap"].into_iter().flat_map(frames).collect();
        let mut c = Connections::with_capacity(DecodeAs::default(), 50);
        for f in all.iter().filter(|f| f.len() == 322) {
            for n in 0..f.len() {
                let mut cut = f.clone();
                cut.truncate(n);
                feed(&mut c, &[cut]);
                let mut flipped = f.clone();
                flipped[n] ^= 0xff;
                feed(&mut c, &[flipped]);
            }
        }
        assert!(c.iter().len() <= 50 && c.iter().all(|c| c.messages.len() <= MAX_MESSAGES));
    }
}
