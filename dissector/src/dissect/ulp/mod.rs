//! Upper protocols, on evidence only: the service that communication management called, or the user's word.
//!
//! [`Conversations`] is pushed every packet in the order of the capture and answers with a [`Context`]: what
//! earlier packets say about this one. Tree and one-line builders read the packet again with that context.

use super::{Input, Tree};
use crate::capture::Timestamp;
use crate::connection::{Connections, Id, Side};
use crate::frame::Frame;
use crate::service::{DecodeAs, Service};
use crate::wire::{Mad, Packet};

/// Group of these fields.
pub const GROUP: u16 = 13;

/// Groups of everything that a payload may hold.
pub const GROUPS: &[u16] = &[super::mad::GROUP, super::cm::GROUP, GROUP];

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
}

/// Everything that is remembered from packet to packet for the sake of names.
#[derive(Debug, Default)]
pub struct Conversations {
    connections: Connections,
}

impl Conversations {
    /// Nothing seen yet.
    pub fn new(decode_as: DecodeAs) -> Self {
        Self { connections: Connections::new(decode_as) }
    }

    /// Connections seen.
    pub const fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Takes a packet.
    pub fn push(&mut self, number: u64, at: Timestamp, frame: &Frame<'_>, packet: &Packet<'_>) -> Context {
        let mut context = Context::default();
        if packet.bth.dest_qp().is_management() || packet.ext.deth.is_some() {
            context.connection = self.connections.push(number, at, frame, packet);
            if context.connection.is_some() {
                return context;
            }
        }
        if let Some(net) = frame.net
            && let Some((c, to)) = self.connections.find(net.dst, packet.bth.dest_qp())
        {
            context.connection = Some(c.id);
            context.to = Some(to);
            context.src_qp = c.end(to.other()).qpn.map(|q| q.get());
            context.service = c.service;
            context.port = c.port();
        }
        if let Some(said) = self.connections.decode_as().of_qp(packet.bth.dest_qp().get()) {
            context.service = Some(said);
        }
        context
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
    let _ = input;
    if let Some(m) = Mad::in_packet(p) {
        super::mad::build(m, p, o, tree);
        return true;
    }
    false
}

/// One line about the payload, and the name of its protocol for the protocol column; `None` if it is plain data.
pub fn info(input: &Input<'_, '_>, p: &Packet<'_>, out: &mut String) -> Option<&'static str> {
    if let Some(m) = Mad::in_packet(p) {
        super::mad::info(m, out);
        return Some(m.class().short());
    }
    let _ = input;
    None
}
