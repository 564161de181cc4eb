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
pub struct Sides(HashMap<([u64; 2], [u64; 2], u8), u8, foldhash::fast::FixedState>);

impl Sides {
    fn of(a: &Analyzer) -> Self {
        let mut map: HashMap<_, u8, _> = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
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

/// All findings.
pub fn check(a: &Analyzer) -> Vec<Finding> {
    let seen = Seen { analysis: a, sides: Sides::of(a) };
    let mut out = Vec::new();
    for rule in RULES {
        rule(&seen, &mut out);
    }
    out
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
