//! The columns of the flow table: titles, widths, cells and order, for the screen and for batch reports.

use std::net::IpAddr;

use dissector::flow::row::Endpoint;

use crate::aggregate::{Flow, FlowKey, HostPair, Metric, Phase, per_second};
use crate::units::{self, Throughput};

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// Source address.
    Source,
    /// Destination address.
    Destination,
    /// Destination QP; how many flows when grouped.
    Qp,
    /// Source QP, if known.
    SourceQp,
    /// Transport.
    Transport,
    /// DSCP of the latest packet.
    Dscp,
    /// UDP source port of the latest packet.
    Port,
    /// VLAN id.
    Vlan,
    /// Seconds since the last packet.
    Idle,
    /// A counter.
    Metric(Metric),
}

/// Where a column stands in its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rates of the interval, or sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Packets, bits and messages per second; marks and errors since the start.
    #[default]
    Rates,
    /// Everything since the start.
    Totals,
}

/// How numbers are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Style {
    /// Rates or totals.
    pub mode: Mode,
    /// Bits or bytes.
    pub throughput: Throughput,
    /// Length of the interval, seconds.
    pub interval_s: f64,
    /// Time of the report, seconds since the epoch.
    pub at: f64,
    /// Lines are host pairs, not flows.
    pub grouped: bool,
    /// Marks and errors take as little room as can be (a screen), or are exact up to six digits.
    pub compact: bool,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub enum Line<'a> {
    /// One flow.
    Flow(&'a Flow),
    /// All flows between two hosts.
    Pair(&'a HostPair),
}

impl Line<'_> {
    /// The flow's identity, if it is one.
    pub fn key(&self) -> Option<FlowKey> {
        match self {
            Self::Flow(f) => Some(f.key),
            Self::Pair(_) => None,
        }
    }

    /// Since the start.
    pub fn total(&self, m: Metric) -> u64 {
        match self {
            Self::Flow(f) => f.total(m),
            Self::Pair(p) => p.total.get(m),
        }
    }

    /// In the interval.
    pub fn delta(&self, m: Metric) -> u64 {
        match self {
            Self::Flow(f) => f.delta(m),
            Self::Pair(p) => p.delta.get(m),
        }
    }
}

impl Column {
    /// From the most important to what only a wide screen has room for. The view takes as many as fit.
    pub const BY_IMPORTANCE: [Self; 21] = [
        Self::Source,
        Self::Destination,
        Self::Qp,
        Self::Metric(Metric::Packets),
        Self::Metric(Metric::Bytes),
        Self::Metric(Metric::Naks),
        Self::Metric(Metric::RnrNaks),
        Self::Metric(Metric::Repeats),
        Self::Metric(Metric::Missing),
        Self::Metric(Metric::Ce),
        Self::Metric(Metric::Cnps),
        Self::Transport,
        Self::Metric(Metric::Messages),
        Self::Metric(Metric::Reordered),
        Self::Dscp,
        Self::SourceQp,
        Self::Idle,
        Self::Port,
        Self::Vlan,
        Self::Metric(Metric::Acks),
        Self::Metric(Metric::IcrcBad),
    ];

    /// From left to right.
    pub const IN_ORDER: [Self; 21] = [
        Self::Source,
        Self::Destination,
        Self::Qp,
        Self::SourceQp,
        Self::Transport,
        Self::Vlan,
        Self::Dscp,
        Self::Port,
        Self::Metric(Metric::Packets),
        Self::Metric(Metric::Bytes),
        Self::Metric(Metric::Messages),
        Self::Metric(Metric::Acks),
        Self::Metric(Metric::Ce),
        Self::Metric(Metric::Cnps),
        Self::Metric(Metric::Naks),
        Self::Metric(Metric::RnrNaks),
        Self::Metric(Metric::Repeats),
        Self::Metric(Metric::Missing),
        Self::Metric(Metric::Reordered),
        Self::Metric(Metric::IcrcBad),
        Self::Idle,
    ];

    /// Heading.
    pub const fn title(self, style: &Style) -> &'static str {
        let rates = matches!(style.mode, Mode::Rates);
        match self {
            Self::Source => "SOURCE",
            Self::Destination => "DESTINATION",
            Self::Qp => {
                if style.grouped {
                    "FLOWS"
                } else {
                    "DST QP"
                }
            }
            Self::SourceQp => "SRC QP",
            Self::Transport => "TYPE",
            Self::Dscp => "DSCP",
            Self::Port => "SPORT",
            Self::Vlan => "VLAN",
            Self::Idle => "IDLE",
            Self::Metric(m) => match m {
                Metric::Packets => {
                    if rates {
                        "PKT/S"
                    } else {
                        "PKTS"
                    }
                }
                Metric::Bytes => {
                    if rates {
                        style.throughput.title()
                    } else {
                        "BYTES"
                    }
                }
                Metric::Messages => {
                    if rates {
                        "MSG/S"
                    } else {
                        "MSGS"
                    }
                }
                Metric::Ce => "CE",
                Metric::Cnps => "CNP",
                Metric::Naks => "NAK",
                Metric::RnrNaks => "RNR",
                Metric::Repeats => "RPT",
                Metric::Missing => "MISS",
                Metric::Reordered => "LATE",
                Metric::Requests => "REQ",
                Metric::Responses => "RESP",
                Metric::Acks => "ACK",
                Metric::IcrcBad => "ICRC",
                Metric::NotEct => "NOECT",
                Metric::Ect => "ECT",
            },
        }
    }

    /// In words, for the help screen and the sort indicator.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Source => "source address",
            Self::Destination => "destination address",
            Self::Qp => "destination queue pair",
            Self::SourceQp => "source queue pair, once it is known",
            Self::Transport => "transport service: RC, UC, UD, XRC",
            Self::Dscp => "DSCP, the traffic class",
            Self::Port => "UDP source port",
            Self::Vlan => "VLAN",
            Self::Idle => "time since the last packet",
            Self::Metric(m) => match m {
                Metric::Packets => "packets, per second or since the start",
                Metric::Bytes => "bits or bytes on the wire, likewise",
                Metric::Messages => "completed messages, likewise",
                Metric::Ce => "marked congestion experienced by a switch",
                Metric::Cnps => "congestion notifications sent in answer",
                Metric::Naks => "refusals and reports of a gap (NAK)",
                Metric::RnrNaks => "receiver was not ready (RNR NAK)",
                Metric::Repeats => "data that came again (repeats)",
                Metric::Missing => "packets that never came by here",
                Metric::Reordered => "packets out of order",
                Metric::Requests => "requests",
                Metric::Responses => "responses",
                Metric::Acks => "acknowledges",
                Metric::IcrcBad => "wrong ICRC (captures only)",
                Metric::NotEct => "packets not ECN capable",
                Metric::Ect => "ECN capable packets",
            },
        }
    }

    /// Fewest characters that it needs, without the gap.
    pub const fn width(self, style: &Style) -> u16 {
        match self {
            // an IPv4 address; wider or narrower by the room that there is
            Self::Source | Self::Destination => 15,
            Self::Qp | Self::SourceQp => 8,
            Self::Port => 5,
            Self::Transport | Self::Dscp | Self::Vlan => 4,
            Self::Metric(m) => match m {
                m if m.is_trouble() && style.compact => 4,
                Metric::NotEct => 5,
                _ => 6,
            },
            Self::Idle => 6,
        }
    }

    /// Where the text stands.
    pub const fn align(self) -> Align {
        match self {
            Self::Source | Self::Destination | Self::Transport => Align::Left,
            _ => Align::Right,
        }
    }

    /// Most people want the largest first, and addresses from the lowest.
    pub const fn descending_first(self) -> bool {
        matches!(self, Self::Metric(_))
    }

    /// A rate in this mode, not a sum.
    pub const fn is_rate(self, mode: Mode) -> bool {
        matches!(mode, Mode::Rates) && matches!(self, Self::Metric(Metric::Packets | Metric::Bytes | Metric::Messages))
    }

    /// The text of a line in this column.
    pub fn cell(self, line: &Line<'_>, style: &Style) -> String {
        let optional = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        match (self, line) {
            (Self::Source, Line::Flow(f)) => f.row.src.to_string(),
            (Self::Source, Line::Pair(p)) => p.src.to_string(),
            (Self::Destination, Line::Flow(f)) => f.row.dst.to_string(),
            (Self::Destination, Line::Pair(p)) => p.dst.to_string(),
            (Self::Qp, Line::Flow(f)) => format!("{:#x}", f.row.dest_qp),
            (Self::Qp, Line::Pair(p)) => p.flows.to_string(),
            (Self::SourceQp, Line::Flow(f)) => f.row.src_qp.map_or_else(|| "-".to_owned(), |q| format!("{q:#x}")),
            (Self::Transport, Line::Flow(f)) => f.row.transport.to_owned(),
            (Self::Transport, Line::Pair(p)) => match p.transports.as_slice() {
                [one] => (*one).to_owned(),
                _ => "mix".to_owned(),
            },
            (Self::Dscp, Line::Flow(f)) => optional(f.row.dscp.map(u64::from)),
            (Self::Port, Line::Flow(f)) => optional(f.row.udp_srcport.map(u64::from)),
            (Self::Vlan, Line::Flow(f)) => optional(f.row.vlan.map(u64::from)),
            (Self::Idle, Line::Flow(f)) => idle(f, style.at),
            (Self::SourceQp | Self::Dscp | Self::Port | Self::Vlan | Self::Idle, Line::Pair(_)) => String::new(),
            (Self::Metric(m), line) => {
                if self.is_rate(style.mode) {
                    let n = line.delta(m);
                    let n = if m == Metric::Bytes { n.saturating_mul(style.throughput.per_byte()) } else { n };
                    units::si(per_second(n, style.interval_s))
                } else if style.compact && m.is_trouble() {
                    units::compact(line.total(m))
                } else {
                    units::count(line.total(m))
                }
            }
        }
    }

    /// What lines are sorted by in this column, as a number: the smallest comes first.
    fn rank(self, line: &Line<'_>, style: &Style) -> u128 {
        let optional = |n: Option<u64>| n.map_or(0, |n| u128::from(n) + 1);
        match (self, line) {
            (Self::Metric(m), line) if self.is_rate(style.mode) => shown(line.delta(m)).into(),
            (Self::Metric(m), line) => line.total(m).into(),
            (Self::Source, Line::Flow(f)) => address(f.row.src),
            (Self::Source, Line::Pair(p)) => address(p.src),
            (Self::Destination, Line::Flow(f)) => address(f.row.dst),
            (Self::Destination, Line::Pair(p)) => address(p.dst),
            (Self::Qp, Line::Flow(f)) => f.row.dest_qp.into(),
            (Self::Qp, Line::Pair(p)) => p.flows as u128,
            (Self::Transport, Line::Flow(f)) => word(f.row.transport),
            (Self::Transport, Line::Pair(p)) => p.transports.first().map_or(0, |t| word(t)),
            (Self::SourceQp, Line::Flow(f)) => optional(f.row.src_qp.map(u64::from)),
            (Self::Dscp, Line::Flow(f)) => optional(f.row.dscp.map(u64::from)),
            (Self::Port, Line::Flow(f)) => optional(f.row.udp_srcport.map(u64::from)),
            (Self::Vlan, Line::Flow(f)) => optional(f.row.vlan.map(u64::from)),
            // the longest silence has the oldest last packet; times since the epoch are positive, and so in the
            // order of their bits
            (Self::Idle, Line::Flow(f)) => u128::from(!f.row.last.max(0.0).to_bits()),
            (Self::SourceQp | Self::Dscp | Self::Port | Self::Vlan | Self::Idle, Line::Pair(_)) => 0,
        }
    }
}

/// Three digits of a number, as rates are shown: what looks equal is equal, and does not change places.
fn shown(n: u64) -> u64 {
    let Some(zeros) = n.checked_ilog10().and_then(|digits| digits.checked_sub(2)) else { return n };
    let unit = 10_u64.pow(zeros);
    n / unit * unit
}

/// IPv4 before IPv6 (whose lowest addresses nobody has).
fn address(e: Endpoint) -> u128 {
    match e {
        Endpoint::Lid(l) => l.into(),
        Endpoint::Ip(IpAddr::V4(a)) => (1 << 32) | u128::from(a.to_bits()),
        Endpoint::Ip(IpAddr::V6(a)) => a.to_bits(),
    }
}

/// Its first letters.
fn word(text: &str) -> u128 {
    text.bytes().take(16).fold(0, |n, b| n << 8 | u128::from(b))
}

fn idle(flow: &Flow, at: f64) -> String {
    match flow.phase {
        Phase::Ended { .. } => "ended".to_owned(),
        Phase::Active => String::new(),
        Phase::Idle => units::span(at - flow.row.last),
    }
}

/// The order of lines: by the column, then (but for rates, whose sums take turns) by the packets they carry, then as they were
/// given, so that equal lines do not jump. Gives indices.
pub fn order<'a>(
    lines: impl Iterator<Item = (usize, Line<'a>)>,
    column: Column,
    descending: bool,
    style: &Style,
) -> Vec<usize> {
    let rate = column.is_rate(style.mode);
    let mut all: Vec<(u128, u64, usize)> = lines
        .map(|(i, l)| {
            let rank = column.rank(&l, style);
            (if descending { !rank } else { rank }, if rate { 0 } else { !l.total(Metric::Packets) }, i)
        })
        .collect();
    all.sort_unstable();
    all.into_iter().map(|(_, _, i)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_name_each_column_once() {
        let mut a: Vec<String> = Column::BY_IMPORTANCE.iter().map(|c| format!("{c:?}")).collect();
        let mut b: Vec<String> = Column::IN_ORDER.iter().map(|c| format!("{c:?}")).collect();
        a.sort();
        b.sort();
        assert_eq!(a, b);
        a.dedup();
        assert_eq!(a.len(), Column::IN_ORDER.len());
    }

    #[test]
    fn rates_that_look_equal_keep_their_places() {
        for (n, seen) in
            [(0, 0), (9, 9), (811, 811), (7_041, 7_040), (7_049, 7_040), (u64::MAX, 18_400_000_000_000_000_000)]
        {
            assert_eq!(shown(n), seen);
        }
    }

    #[test]
    fn titles_fit_their_columns() {
        for mode in [Mode::Rates, Mode::Totals] {
            for c in Column::IN_ORDER {
                let style = Style { mode, throughput: Throughput::Bytes, compact: true, ..Style::default() };
                assert!(c.title(&style).len() <= usize::from(c.width(&style)), "{c:?}");
            }
        }
    }
}
