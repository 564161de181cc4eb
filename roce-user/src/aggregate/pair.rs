//! Flows by host pair.

use std::collections::HashMap;

use dissector::flow::row::Endpoint;
use foldhash::fast::RandomState;

use super::counts::Counts;
use super::flow::{Flow, Phase};

/// Flows between the same two hosts in the same direction, as one line.
#[derive(Clone, Debug)]
pub struct HostPair {
    /// Source.
    pub src: Endpoint,
    /// Destination.
    pub dst: Endpoint,
    /// Flows between them.
    pub flows: usize,
    /// Their transports, in the order met.
    pub transports: Vec<&'static str>,
    /// Sums since the source began.
    pub total: Counts,
    /// Sums of the interval.
    pub delta: Counts,
    /// Any of them had packets in the interval.
    pub active: bool,
}

/// Groups flows by source and destination.
pub fn by_host_pair<'a>(flows: impl Iterator<Item = &'a Flow>) -> Vec<HostPair> {
    let mut index: HashMap<(Endpoint, Endpoint), usize, RandomState> = HashMap::default();
    let mut pairs: Vec<HostPair> = Vec::new();
    for f in flows {
        let i = *index.entry((f.row.src, f.row.dst)).or_insert_with(|| {
            pairs.push(HostPair {
                src: f.row.src,
                dst: f.row.dst,
                flows: 0,
                transports: Vec::new(),
                total: Counts::default(),
                delta: Counts::default(),
                active: false,
            });
            pairs.len() - 1
        });
        if let Some(p) = pairs.get_mut(i) {
            p.flows += 1;
            if !p.transports.contains(&f.row.transport) {
                p.transports.push(f.row.transport);
            }
            p.total.add(&Counts::of(&f.row));
            if let Some(news) = f.news() {
                p.delta.add(news);
            }
            p.active |= f.phase == Phase::Active;
        }
    }
    pairs
}
