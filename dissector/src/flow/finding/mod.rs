//! What went wrong, in the operator's words, with the packets that prove it. One file a rule; a rule is a
//! function and its line in [`RULES`].
//!
//! Every rule asks first whether the capture can show what it looks for: [`capture`] says what is lacking, and
//! [`Sides`] whether both directions between two hosts are there.

use hashbrown::HashMap;
use serde::Serialize;

use super::Analyzer;
use super::event::Happened;
use super::key::Addresses;
use super::state::Flow;

pub mod capture;
pub mod certainty;
pub mod cm;
pub mod cnp_forged;
pub mod dscp;
pub mod ecn;
pub mod entropy;
pub mod gid;
pub mod go_back;
pub mod icmp;
pub mod icrc;
pub mod loss;
pub mod message;
pub mod mixed;
pub mod mtu;
pub mod nak;
pub mod needless;
pub mod one_way;
pub mod order;
pub mod pause;
pub mod psn_disagree;
pub mod read_depth;
pub mod retry;
pub mod rnr;
pub mod stall;
pub mod timeout;

/// How bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Costs performance, or looks wrong.
    Warning,
    /// Something failed.
    Error,
}

impl Severity {
    /// In small letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name of the rule.
    pub code: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What happened, in one sentence.
    pub title: String,
    /// How it is known, and what to look at next.
    pub detail: String,
    /// The flow that it is about, as `roce-dissect flows` numbers them.
    pub flow: Option<u32>,
    /// Packets that prove it.
    pub packets: Vec<u64>,
}

/// A rule: looks at the whole analysis, adds what it finds.
pub type Rule = fn(&Seen<'_>, &mut Vec<Finding>);

/// All rules, in the order in which their findings are told: first how far the capture can be trusted.
pub const RULES: &[Rule] = &[
    capture::find,
    cm::find,
    retry::find,
    nak::find,
    psn_disagree::find,
    one_way::find,
    icmp::find,
    rnr::find,
    loss::find,
    timeout::find,
    needless::find,
    go_back::find,
    order::find,
    message::find,
    icrc::find,
    mtu::find,
    read_depth::find,
    ecn::find,
    cnp_forged::find,
    pause::find,
    stall::find,
    dscp::find,
    entropy::find,
    gid::find,
    mixed::find,
];

/// A map or a set that gives the same order in every run.
type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// An empty one.
fn map<K, V>() -> Map<K, V> {
    HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0))
}

/// What rules look at.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The analysis.
    pub analysis: &'a Analyzer,
    /// Which directions were captured.
    pub sides: Sides,
}

/// Between which hosts both directions were captured.
#[derive(Debug, Default)]
pub struct Sides(Map<([u64; 2], [u64; 2], u8), u8>);

impl Sides {
    fn of(a: &Analyzer) -> Self {
        let mut map: Map<_, u8> = map();
        // management datagrams may take another way than data; only connected services count
        for f in a.flows().filter(|f| f.ordered() || f.cnps > 0) {
            *map.entry(f.key.addresses.unordered()).or_insert(0) |= Self::bit(f.key.addresses);
        }
        Self(map)
    }

    fn bit(a: Addresses) -> u8 {
        if a.unordered() == a.ordered() { 1 } else { 2 }
    }

    /// Whether packets in the other direction were captured between these hosts.
    pub fn back(&self, a: Addresses) -> bool {
        self.0.get(&a.unordered()).is_some_and(|b| b & Self::bit(a.reversed()) != 0)
    }
}

/// Findings of one code that are told one by one; of what goes beyond only the number is told.
const OF_A_CODE: usize = 32;

/// All findings. Of a code that hundreds of flows share, the first are told, and how many more there are.
pub fn check(a: &Analyzer) -> Vec<Finding> {
    let seen = Seen { analysis: a, sides: Sides::of(a) };
    let mut out = Vec::new();
    for rule in RULES {
        let before = out.len();
        rule(&seen, &mut out);
        fold(&mut out, before);
    }
    certainty::lower(a, &mut out);
    out
}

/// Keeps the first of each code and severity from `from` on, and puts one finding in the place of the others.
fn fold(out: &mut Vec<Finding>, from: usize) {
    if out.len() - from <= OF_A_CODE {
        return;
    }
    let mut counts: Vec<(&'static str, Severity, usize)> = Vec::new();
    let mut rest: Vec<Finding> = Vec::new();
    let told = out.split_off(from);
    for f in told {
        let known = counts.iter().position(|c| (c.0, c.1) == (f.code, f.severity));
        let i = known.unwrap_or_else(|| {
            counts.push((f.code, f.severity, 0));
            counts.len() - 1
        });
        let Some(c) = counts.get_mut(i) else { continue };
        c.2 += 1;
        if c.2 <= OF_A_CODE {
            out.push(f);
            continue;
        }
        let more = c.2 - OF_A_CODE;
        match rest.iter_mut().find(|r| (r.code, r.severity) == (f.code, f.severity)) {
            Some(r) => {
                r.title = format!("{more} more of this kind, told by their number only");
                if r.packets.len() < 24 {
                    r.packets.extend(f.packets.first());
                }
            }
            None => rest.push(Finding {
                title: "1 more of this kind, told by its number only".to_owned(),
                detail: format!("First: {}. `flows --json` has the numbers of every flow.", f.title),
                flow: f.flow,
                packets: f.packets.first().copied().into_iter().collect(),
                ..f
            }),
        }
    }
    for r in &mut rest {
        r.packets.sort_unstable();
        r.packets.dedup();
    }
    out.extend(rest);
}

/// What is to be said about the capture itself, whoever asks.
pub fn about_the_capture(a: &Analyzer) -> Vec<Finding> {
    let seen = Seen { analysis: a, sides: Sides::of(a) };
    let mut out = Vec::new();
    capture::find(&seen, &mut out);
    out
}

/// A flow in words: `10.0.0.1 -> 10.0.0.2 QP 0x11`.
pub fn name(f: &Flow) -> String {
    format!("{} -> {} QP {:#x}", f.src, f.dst, f.key.dest_qp)
}

/// A time in words.
pub fn time(ns: i64) -> String {
    let abs = ns.unsigned_abs();
    match abs {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// A rate in words.
pub fn rate(bits: f64) -> String {
    match bits {
        b if b < 1e6 => format!("{:.0} kbit/s", b / 1e3),
        b if b < 1e9 => format!("{:.1} Mbit/s", b / 1e6),
        b => format!("{:.2} Gbit/s", b / 1e9),
    }
}

/// `n` of something.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Evidence of several flows, ascending, at most 24 packets.
pub fn evidence<'a>(flows: impl IntoIterator<Item = &'a Flow>, kinds: &[Happened]) -> Vec<u64> {
    let mut all: Vec<u64> = flows.into_iter().flat_map(|f| f.evidence(kinds)).collect();
    all.sort_unstable();
    all.dedup();
    all.truncate(24);
    all
}

/// The code n of a time-out of 4.096 us * 2^n that is nearest to a measured one.
pub fn timeout_code(ns: u64) -> u32 {
    let code = (ns.max(1) as f64 / 4096.0).log2().round();
    // between 0 and 31 by the field's five bits
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=31")]
    let code = code.clamp(0.0, 31.0) as u32;
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Timestamp;
    use crate::flow::Place;
    use crate::frame::icrc::{Verdict, Why};
    use crate::frame::{Frame, LinkType};
    use crate::wire::opcode::byte;
    use crate::wire::{Aeth, BthFields, ROCE_UDP_PORT, Reth, Syndrome};

    fn frame(host: u16, back: bool, tos: u8, roce: &[u8]) -> Vec<u8> {
        let [high, low] = host.to_be_bytes();
        let (a, b) = ([10, 0, high, low], [10, 1, 0, 1]);
        let (src, dst) = if back { (b, a) } else { (a, b) };
        let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let len = u16::try_from(28 + roce.len() + 4).unwrap().to_be_bytes();
        f.extend([0x45, tos, len[0], len[1], 0, 1, 0x40, 0, 64, 17, 0, 0]);
        f.extend(src);
        f.extend(dst);
        let len = u16::try_from(8 + roce.len() + 4).unwrap().to_be_bytes();
        f.extend([0xc0, 0, 0x12, 0xb7, len[0], len[1], 0, 0]);
        f.extend(roce);
        f.extend([0; 4]);
        f
    }

    /// `pairs` queue pairs, each with a CE mark, a CNP and a refused WRITE, between `hosts` hosts and one.
    fn troubled(pairs: u32, hosts: u16) -> Analyzer {
        let mut a = Analyzer::with_limit(2 * pairs as usize);
        let mut number = 0;
        for qp in 0..pairs {
            let host = u16::try_from(qp % u32::from(hosts)).unwrap();
            let mut push = |back: bool, tos: u8, roce: Vec<u8>| {
                number += 1;
                let bytes = frame(host, back, tos, &roce);
                let frame = Frame::parse(&bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
                let packet = frame.packet().unwrap().unwrap();
                let verdict =
                    if tos == 1 { Verdict::Bad { found: 0, calculated: 1 } } else { Verdict::Unchecked(Why::Off) };
                let at = Timestamp(i64::try_from(number).unwrap() * 1000);
                a.push(Place { number, at }, &frame, &packet, verdict);
            };
            let write = |psn: u32| {
                let mut w = BthFields { ack_req: true, ..BthFields::new(byte::RcWriteOnly, qp, psn) }.emit().to_vec();
                w.extend(Reth::emit(0x1000, qp, 0));
                w
            };
            push(false, 3, write(qp));
            let mut nak = BthFields::new(byte::RcAcknowledge, qp + 1, qp).emit().to_vec();
            nak.extend(Aeth::emit(Syndrome(0x62), 1));
            push(true, 0, nak);
            let mut cnp = BthFields::new(byte::Cnp, qp + 1, 0).emit().to_vec();
            cnp.extend([0; 16]);
            push(true, 0, cnp);
            push(false, 1, write(qp + 5));
        }
        a.settle();
        a
    }

    #[test]
    fn a_flood_of_findings_is_told_by_its_number() {
        let pairs = 4_000;
        let a = troubled(pairs, 1_000);
        assert_eq!(a.flows().count(), 2 * pairs as usize);
        let found = check(&a);
        let naks: Vec<&Finding> = found.iter().filter(|f| f.code == "nak-remote-access").collect();
        assert_eq!(naks.len(), OF_A_CODE + 1);
        assert!(naks.last().is_some_and(|f| f.title.starts_with("3968 more")), "{:?}", naks.last());
        assert!(found.len() < 20 * OF_A_CODE, "{}", found.len());
        assert!(found.iter().all(|f| f.packets.is_sorted() && f.packets.len() <= 24));
    }
}
