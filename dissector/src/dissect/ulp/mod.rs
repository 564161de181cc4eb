//! Upper protocols, on evidence only: the service that communication management called, or the user's word.
//!
//! [`Conversations`] is pushed every packet in the order of the capture and answers with a [`Context`]: what
//! earlier packets say about this one. Tree and one-line builders read the packet again with that context.

pub mod iser;
pub mod nfs;
pub mod nvme;
pub mod rds;
pub mod rpcrdma;
pub mod smbd;
pub mod transfer;
pub mod xdr;

use std::collections::{HashMap, VecDeque};

use self::transfer::Transfers;
use super::{Input, Tree};
use crate::capture::Timestamp;
use crate::connection::{Connections, Id, Side};
use crate::flow::row::Endpoint;
use crate::frame::Frame;
use crate::service::{DecodeAs, Service};
use crate::wire::opcode::Kind;
use crate::wire::{Mad, Packet, Psn, Qpn, cm};

/// Group of these fields.
pub const GROUP: u16 = 13;

/// Groups of everything that a payload may hold.
pub const GROUPS: &[u16] = &[
    super::mad::GROUP,
    super::cm::GROUP,
    super::smp::GROUP,
    super::sa::GROUP,
    super::perf::GROUP,
    GROUP,
    nvme::GROUP,
    rpcrdma::GROUP,
    iser::GROUP,
    smbd::GROUP,
    rds::GROUP,
];

crate::fields! {
    group 13;
    CONNECTION "roce.connection" "Connection" U32 Dec {} "Number of the connection that communication management made, from 0.";
    SERVICE "roce.service" "Service" Str Dec {} "Protocol of the connection, by the port that was called or by --decode-as.";
    SERVICE_PORT "roce.service.port" "Service Port" U16 Dec {} "Port that was called.";
    SRC_QP "roce.srcqp" "Source Queue Pair" U24 Hex {} "Queue pair that sent the packet, as learnt from communication management.";
}

/// What earlier packets say about a packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// Connection that the packet belongs to.
    pub connection: Option<Id>,
    /// Which end of it the packet goes to.
    pub to: Option<Side>,
    /// Queue pair that sent it.
    pub src_qp: Option<u32>,
    /// Protocol on top.
    pub service: Option<Service>,
    /// Port that was called.
    pub port: Option<u16>,
    /// What the protocol on top knows.
    pub upper: Upper,
}

/// What the protocol on top knows about a packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Upper {
    /// Nothing, or the packet carries no message of it.
    #[default]
    None,
    /// NVMe over Fabrics.
    Nvme(Box<nvme::Facts>),
    /// RPC over RDMA.
    Rpc(Box<rpcrdma::Facts>),
    /// iSER.
    Iser(iser::Facts),
    /// SMB Direct.
    Smbd(smbd::Facts),
    /// RDS; whether a message begins.
    Rds(bool),
}

/// Connections whose upper protocol is followed at once; the oldest go first.
const MAX_SESSIONS: usize = 4096;

/// Commands, calls, buffers and READs remembered over all sessions, about 150 bytes each; beyond that the oldest
/// sessions go, whole.
const MAX_REMEMBERED: usize = 100_000;

/// Whom a session belongs to: a connection, or two addresses if only the user's word is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Connection(Id, Service),
    Pair(Endpoint, Endpoint, Service),
}

/// A SEND of several packets, under way.
#[derive(Clone, Debug)]
struct Sending {
    psn: Psn,
    step: u64,
    first: Upper,
}

#[derive(Debug)]
enum Protocol {
    Nvme(nvme::Queue),
    Rpc(rpcrdma::Calls),
    Iser,
    Smbd(smbd::State),
    Rds,
}

#[derive(Debug)]
struct Session {
    protocol: Protocol,
    transfers: Transfers,
    sending: [Option<Sending>; 2],
}

/// Everything that is remembered from packet to packet for the sake of names.
#[derive(Debug, Default)]
pub struct Conversations {
    connections: Connections,
    sessions: HashMap<Key, Session, foldhash::quality::RandomState>,
    order: VecDeque<Key>,
    /// Sum of the sessions' weights.
    remembered: usize,
}

impl Conversations {
    /// Nothing seen yet.
    pub fn new(decode_as: DecodeAs) -> Self {
        Self { connections: Connections::new(decode_as), ..Self::default() }
    }

    /// Connections seen.
    pub const fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Takes a packet.
    pub fn push(&mut self, number: u64, at: Timestamp, frame: &Frame<'_>, packet: &Packet<'_>) -> Context {
        let mut context = Context::default();
        if packet.ext.deth.is_some() {
            context.connection = self.connections.push(number, at, frame, packet);
            if let Some(c) = context.connection.and_then(|id| self.connections.get(id)) {
                context.service = c.service;
                context.port = c.port();
                return context;
            }
        }
        let Some(net) = frame.net else { return context };
        let qpn = packet.bth.dest_qp();
        let mut mtu = None;
        let mut private = None;
        // after the goodbye the number may belong to another queue pair, of which nothing is known
        if let Some((c, to)) = self.connections.find(net.dst, qpn).filter(|(c, _)| !c.state.is_over()) {
            context.connection = Some(c.id);
            context.to = Some(to);
            context.src_qp = c.end(to.other()).qpn.map(Qpn::get);
            context.service = c.service;
            context.port = c.port();
            mtu = c.path_mtu;
            private = Some(&c.active.private_data);
        }
        if let Some(said) = self.connections.decode_as().of_qp(qpn.get()) {
            context.service = Some(said);
        }
        let Some(service) = context.service.filter(|s| *s != Service::Data) else { return context };
        let key = match context.connection {
            Some(id) => Key::Connection(id, service),
            None => Key::Pair(net.src.min(net.dst), net.src.max(net.dst), service),
        };
        if !self.sessions.contains_key(&key) {
            let session = Session::new(service, private.map(|p| &**p));
            if self.order.len() >= MAX_SESSIONS {
                self.forget_oldest();
            }
            self.order.push_back(key);
            self.sessions.insert(key, session);
        }
        if let Some(session) = self.sessions.get_mut(&key) {
            // without a connection the order of the addresses tells the directions apart
            let to_passive = context.to.map_or(net.src < net.dst, |s| s == Side::Passive);
            let before = session.weight();
            context.upper = session.push(packet, context.to, to_passive, number, at, mtu);
            self.remembered = (self.remembered + session.weight()).saturating_sub(before);
            while self.remembered > MAX_REMEMBERED && self.order.len() > 1 {
                self.forget_oldest();
            }
        }
        context
    }

    fn forget_oldest(&mut self) {
        if let Some(old) = self.order.pop_front()
            && let Some(gone) = self.sessions.remove(&old)
        {
            self.remembered = self.remembered.saturating_sub(gone.weight());
        }
    }
}

impl Session {
    fn new(service: Service, private: Option<&[u8]>) -> Self {
        let protocol = match service {
            Service::Nvme => {
                let mut queue = nvme::Queue::default();
                if let Some(p) = private {
                    queue.announced(p);
                }
                Protocol::Nvme(queue)
            }
            Service::RpcRdma => Protocol::Rpc(rpcrdma::Calls::default()),
            Service::SmbDirect => Protocol::Smbd(smbd::State::new(private.is_some())),
            Service::Iser => Protocol::Iser,
            Service::Rds | Service::Data => Protocol::Rds,
        };
        Self { protocol, transfers: Transfers::default(), sending: [None, None] }
    }

    /// How much it remembers.
    fn weight(&self) -> usize {
        self.transfers.len()
            + match &self.protocol {
                Protocol::Nvme(q) => q.len(),
                // the names of a COMPOUND's operations are longer
                Protocol::Rpc(c) => 4 * c.len(),
                Protocol::Iser | Protocol::Smbd(_) | Protocol::Rds => 0,
            }
    }

    fn push(
        &mut self,
        p: &Packet<'_>,
        to: Option<Side>,
        to_passive: bool,
        number: u64,
        at: Timestamp,
        mtu: Option<u32>,
    ) -> Upper {
        let Some(op) = p.op else { return Upper::None };
        match op.kind {
            Kind::Send if op.position.starts() => {
                let b = p.payload;
                let upper = match &mut self.protocol {
                    Protocol::Nvme(q) => Upper::Nvme(Box::new(q.message(b, to, number, at, &mut self.transfers))),
                    Protocol::Rpc(c) => Upper::Rpc(Box::new(c.message(b, number, at, &mut self.transfers))),
                    Protocol::Iser => Upper::Iser(iser::message(b, number, &mut self.transfers)),
                    Protocol::Smbd(s) => Upper::Smbd(s.message(b, to, p.bth.psn().get())),
                    Protocol::Rds => Upper::Rds(true),
                };
                self.sending[usize::from(to_passive)] =
                    Some(Sending { psn: p.bth.psn(), step: p.payload_len as u64, first: upper.clone() });
                upper
            }
            Kind::Send => {
                let Some(s) = &self.sending[usize::from(to_passive)] else { return Upper::None };
                let d = p.bth.psn().distance(s.psn);
                if d <= 0 {
                    return Upper::None;
                }
                let offset = u64::from(d.cast_unsigned()).saturating_mul(s.step);
                match (&self.protocol, &s.first) {
                    (Protocol::Nvme(q), Upper::Nvme(first)) => Upper::Nvme(Box::new(q.continued(first, offset))),
                    (Protocol::Rpc(_), Upper::Rpc(first)) => {
                        Upper::Rpc(Box::new(rpcrdma::Calls::continued(first, offset)))
                    }
                    (Protocol::Iser, _) => Upper::Iser(iser::continued(offset)),
                    (Protocol::Smbd(_), _) => Upper::Smbd(smbd::continued()),
                    (Protocol::Rds, _) => Upper::Rds(false),
                    _ => Upper::None,
                }
            }
            _ => {
                let Some(moved) = self.transfers.push(p, number, to_passive, mtu) else { return Upper::None };
                match &mut self.protocol {
                    Protocol::Nvme(q) => Upper::Nvme(Box::new(q.data(moved))),
                    Protocol::Rpc(c) => Upper::Rpc(Box::new(c.data(moved, p.payload))),
                    Protocol::Iser => Upper::Iser(iser::data(moved)),
                    Protocol::Smbd(_) => Upper::Smbd(smbd::data(moved)),
                    Protocol::Rds => Upper::None,
                }
            }
        }
    }
}

/// Adds what the context says.
pub fn context(input: &Input<'_, '_>, tree: &mut Tree<'_>) {
    let Some(c) = input.context else { return };
    if let Some(id) = c.connection {
        tree.derive(&CONNECTION, id);
    }
    if let Some(qp) = c.src_qp {
        tree.derive(&SRC_QP, qp);
    }
    if let Some(s) = c.service {
        tree.derive(&SERVICE, s.name());
    }
    if let Some(p) = c.port {
        tree.derive(&SERVICE_PORT, p);
    }
}

/// Adds the payload of a packet, if it is known what it is; `o` is where it starts. `false` if it is plain data.
pub fn build<'a>(input: &Input<'_, 'a>, p: &Packet<'a>, o: usize, tree: &mut Tree<'a>) -> bool {
    if let Some(m) = Mad::in_packet(p) {
        super::mad::build(m, p, o, tree);
        if input.context.is_some_and(|c| c.service == Some(Service::Nvme))
            && let Some(message) = cm::Message::of(m)
        {
            let (at, _) = message.kind.private_data();
            let skip = if message.ip_cm().is_some() { cm::ip_cm::LEN } else { 0 };
            nvme::private_data(message.kind, message.consumer_data(), o + Mad::HEADER_LEN + at + skip, tree);
        }
        return true;
    }
    let b = p.payload;
    match input.context.map_or(&Upper::None, |c| &c.upper) {
        Upper::None => return false,
        Upper::Nvme(f) => nvme::build(f, b, o, tree),
        Upper::Rpc(f) => rpcrdma::build(f, b, o, tree),
        Upper::Iser(f) => iser::build(f, b, o, tree),
        Upper::Smbd(f) => smbd::build(f, b, o, tree),
        Upper::Rds(start) => rds::build(*start, b, o, tree),
    }
    true
}

/// One line about the payload, and the name of its protocol for the protocol column; `None` if it is plain data.
pub fn info(input: &Input<'_, '_>, p: &Packet<'_>, out: &mut String) -> Option<&'static str> {
    if let Some(m) = Mad::in_packet(p) {
        super::mad::info(m, out);
        return Some(m.class().short());
    }
    let b = p.payload;
    Some(match &input.context?.upper {
        Upper::None => return None,
        Upper::Nvme(f) => {
            nvme::info(f, b, out);
            "NVMe"
        }
        Upper::Rpc(f) => {
            rpcrdma::info(f, b, out);
            rpcrdma::protocol(f)
        }
        Upper::Iser(f) => {
            iser::info(f, b, out);
            "iSER"
        }
        Upper::Smbd(f) => {
            smbd::info(f, b, out);
            "SMBDirect"
        }
        Upper::Rds(start) => {
            rds::info(*start, b, out);
            "RDS"
        }
    })
}
