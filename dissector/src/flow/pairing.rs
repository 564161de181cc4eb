//! Which two directed flows are one queue pair. Packets of a reliable connection do not carry the sender's
//! QP number, so it must be inferred: a response with a PSN that exactly one unjoined flow in the other
//! direction has just requested. Two candidates are no proof; then the next response decides. The UDP source
//! port is never looked at.

use super::key::Addresses;
use super::state::{Flow, PairedBy};
use crate::wire::Psn;

const BITS: u32 = 13;

/// Unjoined flows by the addresses and the PSN of a request that they sent: a direct-mapped table.
#[derive(Clone, Debug)]
pub struct Waiting(Box<[u32]>);

/// Two flows sent the same PSN between the same addresses.
const AMBIGUOUS: u32 = u32::MAX;

impl Default for Waiting {
    fn default() -> Self {
        Self(vec![0; 1 << BITS].into_boxed_slice())
    }
}

impl Waiting {
    /// Flow `id` sent a request.
    pub fn expect(&mut self, addresses: Addresses, psn: Psn, id: u32) {
        if let Some(slot) = self.0.get_mut(addresses.slot(psn.get(), BITS)) {
            // whatever was there may be another flow's PSN that only shares the slot: it loses a chance, no more
            *slot = if *slot == 0 || *slot == id + 1 { id + 1 } else { AMBIGUOUS };
        }
    }

    /// Who sent a request with this PSN, if only one did; forgets it.
    pub fn who_expects(&mut self, addresses: Addresses, psn: Psn) -> Option<u32> {
        let slot = self.0.get_mut(addresses.slot(psn.get(), BITS))?;
        match std::mem::take(slot) {
            0 | AMBIGUOUS => None,
            id => Some(id - 1),
        }
    }
}

/// Joins two flows.
pub fn link(flows: &mut [Box<Flow>], a: u32, b: u32, by: PairedBy) {
    let Ok([x, y]) = flows.get_disjoint_mut([a as usize, b as usize]) else { return };
    x.pair = Some(b);
    y.pair = Some(a);
    x.paired_by = Some(by);
    y.paired_by = Some(by);
    x.src_qp = Some(y.key.dest_qp);
    y.src_qp = Some(x.key.dest_qp);
}

/// Joins flows that are alone in their direction between two addresses: nothing else can be their other half.
/// Services must agree; a flow of CNPs only fits any.
pub fn by_elimination(flows: &mut [Box<Flow>]) {
    let mut open: Vec<_> = flows
        .iter()
        .filter(|f| f.pair.is_none() && f.key.src_qp.is_none())
        .map(|f| (f.key.addresses.unordered(), f.id))
        .collect();
    open.sort_unstable();
    let mut found = Vec::new();
    for group in open.chunk_by(|a, b| a.0 == b.0) {
        if let [(_, a), (_, b)] = group
            && let (Some(x), Some(y)) = (flows.get(*a as usize), flows.get(*b as usize))
            && x.key.addresses == y.key.addresses.reversed()
            && fits(x, y)
        {
            found.push((*a, *b));
        }
    }
    for (a, b) in found {
        link(flows, a, b, PairedBy::Elimination);
    }
}

fn fits(x: &Flow, y: &Flow) -> bool {
    use crate::wire::Transport::Cnp;
    let services = x.transport == y.transport || x.transport == Cnp || y.transport == Cnp;
    // one must have been alive within a minute of the other
    let apart = x.first.since(y.last).max(y.first.since(x.last));
    services && apart < super::IDLE
}
