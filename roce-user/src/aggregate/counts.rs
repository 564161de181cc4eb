//! The counters of a flow that the views show, and sets of them.

use dissector::flow::row::FlowRow;

/// A counter of a flow that the views show as total or as rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Metric {
    /// Packets.
    Packets,
    /// Bytes on the wire.
    Bytes,
    /// Completed messages.
    Messages,
    /// Packets marked "congestion experienced".
    Ce,
    /// Congestion notification packets.
    Cnps,
    /// NAKs of any reason.
    Naks,
    /// RNR NAKs.
    RnrNaks,
    /// Data that came again: sent again by the sender or copied by the network.
    Repeats,
    /// PSNs that never came.
    Missing,
    /// First arrivals out of order.
    Reordered,
    /// Request packets.
    Requests,
    /// READ and atomic responses.
    Responses,
    /// Positive acknowledges.
    Acks,
    /// Packets whose ICRC is wrong.
    IcrcBad,
    /// Packets that cannot take part in ECN.
    NotEct,
    /// Packets that can and are not marked.
    Ect,
}

impl Metric {
    /// All of them, in the order of their slots.
    pub const ALL: [Self; 16] = [
        Self::Packets,
        Self::Bytes,
        Self::Messages,
        Self::Ce,
        Self::Cnps,
        Self::Naks,
        Self::RnrNaks,
        Self::Repeats,
        Self::Missing,
        Self::Reordered,
        Self::Requests,
        Self::Responses,
        Self::Acks,
        Self::IcrcBad,
        Self::NotEct,
        Self::Ect,
    ];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Its value in a row.
    pub const fn of(self, row: &FlowRow) -> u64 {
        match self {
            Self::Packets => row.packets,
            Self::Bytes => row.bytes,
            Self::Messages => row.messages,
            Self::Ce => row.ecn.ce,
            Self::Cnps => row.cnps,
            Self::Naks => row.naks.total(),
            Self::RnrNaks => row.rnr_naks,
            Self::Repeats => row.retransmitted.saturating_add(row.duplicates),
            Self::Missing => row.missing,
            Self::Reordered => row.reordered,
            Self::Requests => row.requests,
            Self::Responses => row.responses,
            Self::Acks => row.acks,
            Self::IcrcBad => row.icrc.bad,
            Self::NotEct => row.ecn.not_ect,
            Self::Ect => row.ecn.ect0.saturating_add(row.ecn.ect1),
        }
    }

    /// What a healthy flow has none of.
    pub const fn is_trouble(self) -> bool {
        matches!(
            self,
            Self::Ce
                | Self::Cnps
                | Self::Naks
                | Self::RnrNaks
                | Self::Repeats
                | Self::Missing
                | Self::Reordered
                | Self::IcrcBad
        )
    }
}

/// One value a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; Metric::COUNT]);

impl Counts {
    /// The counters of a row.
    pub fn of(row: &FlowRow) -> Self {
        let mut c = Self::default();
        for m in Metric::ALL {
            c.0[m as usize] = m.of(row);
        }
        c
    }

    /// One of them.
    pub const fn get(&self, m: Metric) -> u64 {
        self.0[m as usize]
    }

    /// Sets one of them.
    pub const fn set(&mut self, m: Metric, n: u64) {
        self.0[m as usize] = n;
    }

    /// Puts other counters of the same flow in the place of earlier ones that are part of a sum.
    pub(super) fn replace(&mut self, before: &Self, now: &Self) {
        for ((a, b), n) in self.0.iter_mut().zip(before.0).zip(now.0) {
            *a = a.wrapping_sub(b).wrapping_add(n);
        }
    }

    /// Adds another set.
    pub fn add(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a = a.saturating_add(b);
        }
    }

    /// What came since `before`. A counter that fell was started again: then all of it is new. `missing`
    /// may fall by itself, when a late packet closes a gap; that is no restart and nothing new.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let restarted = self.get(Metric::Packets) < before.get(Metric::Packets);
        if restarted {
            return *self;
        }
        let mut d = Self::default();
        for ((d, now), then) in d.0.iter_mut().zip(self.0).zip(before.0) {
            *d = now.saturating_sub(then);
        }
        d
    }

    /// Sum of what a healthy flow has none of.
    pub fn trouble(&self) -> u64 {
        Metric::ALL.iter().filter(|m| m.is_trouble()).fold(0, |n, m| n.saturating_add(self.get(*m)))
    }
}
