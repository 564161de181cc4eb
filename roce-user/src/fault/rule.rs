//! A rule: which packets, which of them, and what happens to them. And the sentence that says so.

use std::fmt::Write as _;
use std::time::Duration;

use dissector::wire::Transport;

use super::words::{Opcodes, Prefix, PsnRange, Range, show_duration};

/// Which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Into the host (XDP, or TC ingress where XDP is taken).
    In,
    /// Out of the host (TC egress).
    Out,
    /// Either.
    #[default]
    Both,
}

/// A network's two-state loss model, with netem's parameter names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Good to bad.
    pub p: f64,
    /// Bad to good.
    pub r: f64,
    /// Chance of firing in the bad state: 1-h.
    pub bad: f64,
    /// Chance of firing in the good state: 1-k.
    pub good: f64,
}

/// A queue that is not there: it drains at a rate, and marks as RED does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhantomQueue {
    /// Below so many bytes nothing is marked.
    pub kmin: u64,
    /// From so many on everything is.
    pub kmax: u64,
    /// Chance just below kmax.
    pub pmax: f64,
    /// Bits per second at which it drains.
    pub rate: u64,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It vanishes.
    Drop,
    /// CE.
    MarkCe {
        /// Also where the sender does not take part in ECN.
        any: bool,
        /// Only when this queue says so.
        queue: Option<PhantomQueue>,
    },
    /// Only the ICRC fails.
    FailIcrc,
    /// A payload byte changes.
    Corrupt {
        /// Which, from the first byte of payload.
        offset: u32,
        /// Which bits.
        xor: u8,
    },
    /// ECN becomes not-ECT.
    ClearEct,
    /// DSCP is set.
    SetDscp(u8),
    /// The frame is cut to so many bytes.
    Truncate(u32),
    /// It is sent twice.
    Duplicate,
}

/// Whose counters `nth`, `every`, `count`, `burst` and `rate` use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// Each flow its own: the same packets are hit however flows interleave.
    #[default]
    Flow,
    /// All flows together, in the order of arrival.
    Rule,
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Name in reports.
    pub name: String,
    /// What happens.
    pub fault: Fault,
    /// Only on this interface.
    pub interface: Option<String>,
    /// Which way.
    pub direction: Direction,
    /// Source.
    pub src: Option<Prefix>,
    /// Destination.
    pub dst: Option<Prefix>,
    /// Destination queue pair.
    pub qpn: Option<u32>,
    /// The n-th flow that the rule sees, from 1.
    pub flow: Option<u32>,
    /// Transport service.
    pub transport: Option<Transport>,
    /// Opcodes; `None` all.
    pub opcodes: Option<Opcodes>,
    /// PSNs.
    pub psn: Option<PsnRange>,
    /// Which transmissions of a PSN: 1 the first, 2 the first retransmission.
    pub iter: Option<Range>,
    /// The n-th message of its kind on the flow, from 1.
    pub message: Option<u32>,
    /// DSCP.
    pub dscp: Option<u8>,
    /// Frame length, link header included.
    pub size: Option<Range>,
    /// Not before, from the start of the run.
    pub after: Duration,
    /// For so long, from `after`.
    pub lasting: Option<Duration>,
    /// Period, and how long of it the rule is active.
    pub flap: Option<(Duration, Duration)>,
    /// Only once this rule (by index) has fired.
    pub armed_by: Option<usize>,
    /// The n-th match.
    pub nth: Option<u64>,
    /// Every n-th match.
    pub every: Option<u64>,
    /// By chance.
    pub probability: Option<f64>,
    /// In bursts.
    pub burst: Option<Burst>,
    /// At most so many.
    pub count: Option<u64>,
    /// At most so many a second.
    pub rate: Option<f64>,
    /// Whose counters.
    pub per: Per,
}

impl Rule {
    /// A rule that does this to every RoCE packet.
    pub fn new(name: impl Into<String>, fault: Fault) -> Self {
        Self {
            name: name.into(),
            fault,
            interface: None,
            direction: Direction::Both,
            src: None,
            dst: None,
            qpn: None,
            flow: None,
            transport: None,
            opcodes: None,
            psn: None,
            iter: None,
            message: None,
            dscp: None,
            size: None,
            after: Duration::ZERO,
            lasting: None,
            flap: None,
            armed_by: None,
            nth: None,
            every: None,
            probability: None,
            burst: None,
            count: None,
            rate: None,
            per: Per::Flow,
        }
    }

    /// Whether an opcode byte meets the opcode and transport conditions.
    pub fn takes(&self, byte: u8) -> bool {
        self.transport.is_none_or(|t| t == Transport::of(byte))
            && self.opcodes.as_ref().is_none_or(|o| o.contains(byte))
    }

    /// What the rule does, in a sentence. `name_of` gives the name of another rule.
    pub fn sentence(&self, name_of: impl Fn(usize) -> String) -> String {
        let mut s = match self.fault {
            Fault::Drop => "drop".to_owned(),
            Fault::MarkCe { any, queue } => {
                let mut s = String::from("mark CE on");
                if !any {
                    s.push_str(" (where the sender takes part in ECN)");
                }
                if let Some(q) = queue {
                    let _ = write!(
                        s,
                        " (when a queue drained at {} Gbit/s holds more than {} bytes, with a chance that grows to {} % at {} bytes, and always beyond)",
                        q.rate as f64 / 1e9,
                        q.kmin,
                        q.pmax * 100.0,
                        q.kmax
                    );
                }
                s
            }
            Fault::FailIcrc => "make only the ICRC wrong in".into(),
            Fault::Corrupt { offset, xor } => format!("invert bits 0x{xor:02x} of payload byte {offset} in"),
            Fault::ClearEct => "clear ECN (not-ECT) on".into(),
            Fault::SetDscp(d) => format!("set DSCP {d} on"),
            Fault::Truncate(n) => format!("cut to {n} bytes"),
            Fault::Duplicate => "send twice".into(),
        };
        s.push(' ');
        s.push_str(&self.which());
        s.push_str(&self.conditions(name_of));
        s
    }

    fn which(&self) -> String {
        let mut s = match (self.nth, self.every) {
            (Some(n), _) => format!("the {} matching packet", ordinal(n)),
            (None, Some(n)) => format!("every {} matching packet", ordinal(n)),
            (None, None) => "every matching packet".into(),
        };
        let counted = self.nth.is_some()
            || self.every.is_some()
            || self.count.is_some()
            || self.burst.is_some()
            || self.rate.is_some();
        if counted {
            s.push_str(match self.per {
                Per::Flow => " of each flow",
                Per::Rule => " (counted over all flows together)",
            });
        }
        if let Some(p) = self.probability {
            let _ = write!(s, ", with a chance of {} %,", trim(p * 100.0));
        }
        if let Some(b) = self.burst {
            let _ = write!(
                s,
                ", in bursts (a good spell turns bad with {} % a packet and back with {} %; chance {} % while bad, {} % while good),",
                trim(b.p * 100.0),
                trim(b.r * 100.0),
                trim(b.bad * 100.0),
                trim(b.good * 100.0)
            );
        }
        if let Some(c) = self.count {
            let _ = write!(s, ", at most {c} {},", if c == 1 { "time" } else { "times" });
        }
        if let Some(r) = self.rate {
            let _ = write!(s, ", at most {} a second,", trim(r));
        }
        s
    }

    fn conditions(&self, name_of: impl Fn(usize) -> String) -> String {
        let mut parts = Vec::new();
        match self.direction {
            Direction::In => parts.push("coming in".to_owned()),
            Direction::Out => parts.push("going out".to_owned()),
            Direction::Both => parts.push("in either direction".to_owned()),
        }
        if let Some(i) = &self.interface {
            parts.push(format!("on {i}"));
        }
        if let Some(o) = &self.opcodes {
            parts.push(format!("with opcode {}", o.words.join(" or ")));
        }
        if let Some(t) = self.transport {
            parts.push(format!("of transport {}", t.name()));
        }
        if let Some(p) = self.src {
            parts.push(format!("from {p}"));
        }
        if let Some(p) = self.dst {
            parts.push(format!("to {p}"));
        }
        if let Some(q) = self.qpn {
            parts.push(format!("for queue pair 0x{q:06x} ({q})"));
        }
        if let Some(n) = self.flow {
            parts.push(format!("on the {} flow seen", ordinal(u64::from(n))));
        }
        if let Some(n) = self.message {
            parts.push(format!("of the flow's {} message of that kind", ordinal(u64::from(n))));
        }
        if let Some(p) = self.psn {
            parts.push(format!("with {p}"));
        }
        if let Some(i) = self.iter {
            parts.push(match (i.min, i.max) {
                (1, 1) => "when its PSN comes for the first time".into(),
                (2, 2) => "when its PSN comes for the second time (the first retransmission)".into(),
                (a, b) if a == b => {
                    format!("when its PSN comes for the {} time (retransmission {})", ordinal(a), a - 1)
                }
                (2, u64::MAX) => "when it is a retransmission".into(),
                _ => format!("when its PSN comes for the time {i}"),
            });
        }
        if let Some(d) = self.dscp {
            parts.push(format!("with DSCP {d}"));
        }
        if let Some(r) = self.size {
            parts.push(format!("in frames of {r} bytes"));
        }
        if !self.after.is_zero() {
            parts.push(format!("from {} after the start", show_duration(self.after)));
        }
        if let Some(d) = self.lasting {
            parts.push(format!("for {}", show_duration(d)));
        }
        if let Some((period, down)) = self.flap {
            parts.push(format!("during the first {} of every {}", show_duration(down), show_duration(period)));
        }
        if let Some(r) = self.armed_by {
            parts.push(format!("once rule {} has fired", name_of(r)));
        }
        let mut s = String::new();
        for p in parts {
            s.push_str(if s.is_empty() { " " } else { ", " });
            s.push_str(&p);
        }
        s
    }
}

/// 1st, 2nd, 3rd …
pub fn ordinal(n: u64) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

fn trim(v: f64) -> String {
    let s = format!("{v:.6}");
    s.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence() {
        let r = Rule {
            direction: Direction::In,
            opcodes: Some(Opcodes::parse_all(["RC RDMA WRITE Last"]).unwrap()),
            flow: Some(2),
            message: Some(3),
            iter: Some(Range::exactly(3)),
            ..Rule::new("x", Fault::Drop)
        };
        assert_eq!(
            r.sentence(|_| String::new()),
            "drop every matching packet coming in, with opcode RC RDMA WRITE Last, on the 2nd flow seen, of the \
             flow's 3rd message of that kind, when its PSN comes for the 3rd time (retransmission 2)"
        );
    }

    #[test]
    fn ordinals() {
        assert_eq!(
            [1, 2, 3, 4, 11, 12, 13, 21, 111].map(ordinal).join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 21st 111th"
        );
    }
}
