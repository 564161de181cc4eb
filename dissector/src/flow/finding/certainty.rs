//! What a capture cannot prove is told as a note: packets recorded twice look like repeats, packets that a sampler
//! left out like losses, and an acknowledge that was cut before its AETH may have been a NAK.

use super::{Finding, Severity};
use crate::flow::Analyzer;
use crate::flow::state::Flow;

/// Codes that rest on every packet being there.
const ABSENCE: &[&str] = &[
    "loss",
    "message-stopped",
    "one-way",
    "read-depth-exceeded",
    "timeouts",
    "reordering",
    "retry-exceeded",
    "go-back-n-violated",
];

/// Codes that a copy looks like, however well copies are known.
const COPIES: &[&str] = &["cm-repeated-request", "needless-retransmission", "network-duplicates"];

/// Codes that a copy looks like unless it was known for one.
const REPETITION: &[&str] = &[
    "go-back-n-violated",
    "loss",
    "read-depth-exceeded",
    "reordering",
    "retry-exceeded",
    "rnr-retry-exceeded",
    "timeouts",
];

/// Codes that rest on knowing which answers refuse.
const ANSWERS: &[&str] = &["loss", "needless-retransmission", "retry-exceeded", "timeouts", "go-back-n-violated"];

/// Whether most packets were recorded at two points.
pub fn is_doubled(a: &Analyzer) -> bool {
    if a.echoes().doubled() {
        return true;
    }
    // only where PSNs keep an order is a copy known for one
    let of = |n: fn(&Flow) -> u64| a.flows().filter(|f| f.ordered()).map(n).sum::<u64>();
    let candidates = of(|f| f.requests + f.responses);
    let copies = of(|f| f.duplicates);
    if copies > 0 && copies * 5 >= candidates * 2 {
        return true;
    }
    // acknowledges are counted here as well: they were recorded twice like anything else
    let (packets, elsewhere) = (of(|f| f.packets), of(|f| u64::from(f.recorded_at.elsewhere)));
    let switches = of(|f| u64::from(f.recorded_at.switches));
    let flows = a.flows().filter(|f| f.ordered()).count() as u64;
    let repeats = of(|f| f.duplicates + f.retransmitted);
    // a path that changed for good changes once a flow, and repeats little
    let halves = elsewhere * 5 >= packets * 2 && elsewhere * 5 <= packets * 3;
    halves && switches >= flows && repeats * 10 >= candidates * 3
}

/// Whether so many packets are not there that no transport could have gone on: a sampler took every Nth. Of those
/// that are lacking, and those that are there.
pub fn is_sampled(a: &Analyzer) -> bool {
    let (mut lacking, mut there, mut repaired) = (0, 0, 0);
    for f in a.flows().filter(|f| f.reliable()) {
        lacking += f.req.missing + f.rsp.missing;
        there += f.requests + f.responses;
        repaired += f.retransmitted + f.repairs().loss_naks + f.repairs().late_repairs;
    }
    // a lossy network makes the sender repeat, and stops it where it does not
    lacking >= 3 && lacking * 2 >= there && repaired * 4 < lacking
}

/// Lowers what cannot be proved.
pub fn lower(a: &Analyzer, out: &mut [Finding]) {
    // a receiver that asks for a packet again has said itself that it was lost
    let asked = a.flows().any(|f| f.naks.psn_sequence_error > 0);
    let mut apply = |codes: &[&str], why: &str, of: &dyn Fn(Option<u32>) -> bool| {
        let doubted = |f: &&mut Finding| f.severity > Severity::Note && codes.contains(&f.code) && of(f.flow);
        for f in out.iter_mut().filter(doubted).filter(|f| f.code != "loss" || !asked) {
            f.severity = Severity::Note;
            f.detail.push_str(why);
        }
    };
    let all = |_: Option<u32>| true;
    if is_doubled(a) {
        let why = " A note only: the capture holds most packets twice, and copies look like repeats.";
        apply(COPIES, why, &all);
        let of = |n: fn(&Flow) -> u64| a.flows().filter(|f| f.ordered()).map(n).sum::<u64>();
        // copies that were known for such have been left out of everything else
        let few_known = of(|f| f.duplicates) * 20 < of(|f| f.requests + f.responses) * 9;
        let unsure = |f: &Flow| f.recorded_at.unsure > 0;
        apply(REPETITION, why, &|id| {
            let flow = id.and_then(|id| a.flow(id));
            few_known || flow.is_none_or(|f| unsure(f) || a.peer(f).is_some_and(unsure))
        });
    }
    if is_sampled(a) {
        apply(ABSENCE, " A note only: the capture is a sample, and what it left out looks like loss.", &all);
    }
    if a.quality().answers_cut > 0 {
        apply(
            ANSWERS,
            " A note only: the capture cut acknowledges before the byte that tells an ACK from a NAK.",
            &all,
        );
    }
}
