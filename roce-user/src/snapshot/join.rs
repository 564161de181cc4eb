//! Which two flows are the two directions of one queue pair's traffic.
//!
//! Datagrams say it themselves: source and destination QP change places. Of connections the packets name one QP only:
//! there the PSNs of the answers tell, which lie where the other direction's requests are; or there is but one flow each
//! way between two hosts. What was joined stays joined.

use std::collections::HashMap;
use std::net::IpAddr;

use foldhash::fast::RandomState;
use roce_ebpf::abi::key::NO_QP;

use super::counts::{FlowId, Known};

/// How close an answer's PSN must lie to a request's for the two flows to be one queue pair's.
const NEAR: u32 = 1 << 9;
const PSNS: u32 = 1 << 24;

/// Two hosts that talk on one tap, the lower address first, and whether by RoCEv1.
type Between = (u16, bool, IpAddr, IpAddr);

/// Connections between two hosts.
#[derive(Debug, Default)]
struct Hosts {
    /// For each way, from the lower address and from the higher one: how many flows there are, and the first.
    ways: [(u32, u32); 2],
    /// Positions of those without a partner.
    alone: Vec<u32>,
    /// One of those answered something.
    answers: bool,
    /// Something changed that may join two.
    changed: bool,
}

/// What is known about partners, kept from one snapshot to the next.
#[derive(Debug, Default)]
pub struct Joiner {
    between: HashMap<Between, u32, RandomState>,
    hosts: Vec<Hosts>,
    /// Positions of datagram flows.
    datagrams: HashMap<FlowId, u32, RandomState>,
    /// Positions below this are known here.
    met: usize,
    changed: Vec<u32>,
}

/// Which way a flow goes: 1 if its source is the higher address.
fn way(id: &FlowId) -> usize {
    usize::from(id.src > id.dst)
}

/// The way back. A host that talks to itself has one way only.
fn way_back(id: &FlowId) -> usize {
    usize::from(id.src < id.dst)
}

impl Joiner {
    /// Looks at flows that are new or have moved (`moved`, positions) and gives the pairs that were found.
    pub fn join(&mut self, flows: &[Known], moved: &[u32]) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for (n, k) in flows.iter().enumerate().skip(self.met) {
            let n = u32::try_from(n).unwrap_or(u32::MAX);
            self.meet(n, k, flows, &mut found);
        }
        self.met = flows.len();
        for n in moved {
            let Some(k) = flows.get(*n as usize) else { continue };
            if k.pair.is_none()
                && let Some(h) = self.hosts.get_mut(k.hosts as usize)
            {
                h.answers |= k.answered.is_some();
                // requests alone join nothing
                if h.answers {
                    self.mark(k.hosts);
                }
            }
        }
        for h in std::mem::take(&mut self.changed) {
            if let Some(h) = self.hosts.get_mut(h as usize) {
                h.changed = false;
                h.alone.retain(|n| flows.get(*n as usize).is_some_and(|k| k.pair.is_none()));
                h.join(flows, &mut found);
            }
        }
        found
    }

    /// Which hosts a flow is between; [`NOBODY`] for a datagram's.
    pub fn hosts_of(&mut self, id: &FlowId) -> u32 {
        if id.src_qp != NO_QP {
            return NOBODY;
        }
        let between = (id.tap, id.v1, id.src.min(id.dst), id.src.max(id.dst));
        let hosts = &mut self.hosts;
        *self.between.entry(between).or_insert_with(|| {
            hosts.push(Hosts::default());
            u32::try_from(hosts.len() - 1).unwrap_or(NOBODY)
        })
    }

    fn mark(&mut self, hosts: u32) {
        if let Some(h) = self.hosts.get_mut(hosts as usize)
            && !h.changed
        {
            h.changed = true;
            self.changed.push(hosts);
        }
    }

    fn meet(&mut self, n: u32, k: &Known, flows: &[Known], found: &mut Vec<(u32, u32)>) {
        if k.hosts == NOBODY {
            // what a datagram's other direction is called, whichever way it was seen
            for direction in [1 - k.id.direction.min(1), k.id.direction] {
                let id = FlowId {
                    src: k.id.dst,
                    dst: k.id.src,
                    dest_qp: k.id.src_qp,
                    src_qp: k.id.dest_qp,
                    direction,
                    ..k.id
                };
                if let Some(m) = self.datagrams.get(&id)
                    && flows.get(*m as usize).is_some_and(|k| k.pair.is_none())
                {
                    found.push((n, *m));
                    break;
                }
            }
            self.datagrams.insert(k.id, n);
            return;
        }
        if let Some(h) = self.hosts.get_mut(k.hosts as usize) {
            let (count, first) = &mut h.ways[way(&k.id)];
            if *count == 0 {
                *first = n;
            }
            *count += 1;
            h.alone.push(n);
            h.answers |= k.answered.is_some();
        }
        self.mark(k.hosts);
    }
}

/// No position.
pub const NOBODY: u32 = u32::MAX;

impl Hosts {
    fn join(&self, flows: &[Known], found: &mut Vec<(u32, u32)>) {
        let known = |n: u32| flows.get(n as usize);
        let alone = |n: u32| known(n).is_some_and(|k| k.pair.is_none());
        if let [(1, a), (1, b)] = self.ways
            && alone(a)
            && alone(b)
        {
            found.push((a, b));
            return;
        }
        if !self.answers {
            return;
        }
        let flow = |n: &u32| known(*n).map(|k| (*n, k));
        // requests by where their PSNs are
        let mut asking: Vec<(usize, u8, u32, u32)> = self
            .alone
            .iter()
            .filter_map(flow)
            .filter_map(|(n, k)| Some((way(&k.id), k.transport, k.next?, n)))
            .collect();
        asking.sort_unstable();
        let mut claims: Vec<(u32, u32)> = Vec::new();
        for (n, k) in self.alone.iter().filter_map(flow) {
            let Some(answered) = k.answered else { continue };
            // what was answered lies just before what is asked next
            let near = |from: u32, to: u32| {
                let back = (way_back(&k.id), k.transport);
                let start = asking.partition_point(|a| (a.0, a.1, a.2) < (back.0, back.1, from));
                asking.get(start..).unwrap_or(&[]).iter().take_while(move |a| (a.0, a.1) == back && a.2 < to)
            };
            let (from, to) = (answered + 1, answered + 1 + NEAR);
            let mut fits = near(from, to.min(PSNS)).chain(near(0, to.saturating_sub(PSNS))).map(|a| a.3);
            if let (Some(m), None) = (fits.next(), fits.next())
                && m != n
            {
                claims.push((n, m));
            }
        }
        // in the order of who claims, one each; an answer that fits two askers, or two answers that fit one, say nothing
        let mut times: HashMap<u32, u32, RandomState> = HashMap::default();
        for (n, m) in &claims {
            *times.entry(*m).or_default() += 1;
            *times.entry(*n).or_default() += 1;
        }
        for (n, m) in &claims {
            let mutual = claims.binary_search(&(*m, *n)).is_ok();
            let most = if mutual { 2 } else { 1 };
            if times.get(n).is_some_and(|c| *c <= most) && times.get(m).is_some_and(|c| *c <= most) {
                found.push((*n, *m));
            }
        }
    }
}
