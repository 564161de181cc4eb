//! Codes `capture-…` and `flow-table-full`: what the capture itself lacks. Everything else is read in this light.

use super::{Finding, Seen, Severity, count, name, time};
use crate::flow::event::Happened;

/// Looks at the capture.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let q = a.quality();
    let mut note = |code, title: String, detail: &str, flow, packets| {
        out.push(Finding { code, severity: Severity::Note, title, detail: detail.to_owned(), flow, packets });
    };
    if q.unfinished {
        note(
            "capture-unfinished",
            "the file ends inside a record".to_owned(),
            "What happened after its last whole packet is not known; a flow that looks silent may not be.",
            None,
            vec![],
        );
    }
    if q.cut > 0 {
        note(
            "capture-cut-packets",
            format!(
                "{} cut by the capture, at up to {} bytes",
                count(q.cut, "RoCE packet is", "RoCE packets are"),
                q.snap
            ),
            "Their ICRC cannot be checked, and headers behind the cut are unknown. Capture with a larger snap length (tcpdump -s 0) if payload or ICRC matter.",
            None,
            vec![],
        );
    }
    if q.dropped > 0 {
        note(
            "capture-dropped",
            format!("the recorder says that it dropped {}", count(q.dropped, "packet", "packets")),
            "PSNs that are missing here may have been on the wire. Losses without a NAK or a repeat are not to be believed.",
            None,
            vec![],
        );
    }
    if q.backwards > 0 {
        note(
            "capture-clock-backwards",
            format!(
                "time stamps go backwards {}, by {} at the most",
                count(q.backwards, "time", "times"),
                time(q.backwards_max)
            ),
            "Files of two ports were merged, or the recorder's clock was set. Order and times between flows are uncertain by that much; sort the file (reordercap) before trusting reordering or latency.",
            None,
            vec![q.backwards_packet],
        );
    }
    one_sided(seen, &mut note);
    let (mut lacking, mut flows, mut worst) = (0, 0, None);
    for f in a.flows() {
        let n = f.req.missing_acked
            + f.trouble.as_ref().map_or(0, |t| t.acked_unseen)
            + super::loss::only_unrecorded(f, a.peer(f));
        if n > 0 {
            lacking += n;
            flows += 1;
            if worst.is_none_or(|(m, _)| n > m) {
                worst = Some((n, f));
            }
        }
    }
    if let Some((_, f)) = worst {
        let mut packets = f.evidence(&[Happened::Gap]);
        if let Some(p) = a.peer(f) {
            packets.extend(p.evidence(&[Happened::AckOfUnseen]));
        }
        packets.sort_unstable();
        note(
            "capture-incomplete",
            format!(
                "{} taken by the receiver that the capture lacks, in {}",
                count(lacking, "packet was", "packets were"),
                count(flows, "flow", "flows")
            ),
            "The receiver got them, so the recorder lost them, or they went another way. They are no losses of the network.",
            Some(f.id),
            packets,
        );
    }
    if super::certainty::is_doubled(a) {
        note(
            "capture-doubled",
            "most packets are in the capture twice".to_owned(),
            "They were recorded at two places (interface any, a mirror of both ports, files of both ends merged). Rates and copies are not to be believed; capture on one interface, or remove copies (editcap -d).",
            None,
            super::evidence(a.flows(), &[Happened::Duplicate]),
        );
    }
    if super::certainty::is_sampled(a) {
        note(
            "capture-sampled",
            "a third or more of the packets that were due are not in the capture, and nobody asked for them again"
                .to_owned(),
            "A sampler (sFlow, a mirror with a rate), an overloaded recorder or a filter left them out: a sender that lost as much would repeat, or stop. Gaps, silence and unfinished messages are not to be believed.",
            None,
            super::evidence(a.flows(), &[Happened::Gap]),
        );
    }
    if q.answers_cut > 0 {
        note(
            "capture-cut-answers",
            format!("{} cut before the AETH", count(q.answers_cut, "acknowledge is", "acknowledges are")),
            "Whether they acknowledge, or refuse (NAK, RNR NAK), is not known, so neither is why packets were sent again. Capture at least 58 bytes of IPv4 or 78 of IPv6 frames, better all (tcpdump -s 0).",
            None,
            vec![],
        );
    }
    let lost = a.totals().overflow_packets;
    if lost > 0 {
        note(
            "flow-table-full",
            format!("{} found no room in the flow table", count(lost, "packet", "packets")),
            "More queue pairs than the analysis follows at a time; a flood of made-up QP numbers looks like this. The packets are in the totals only.",
            None,
            vec![],
        );
    }
    if a.expired().flows > 0 {
        note(
            "flows-expired",
            format!("{} made room for new ones", count(a.expired().flows, "silent flow", "silent flows")),
            "Their packets are in the totals; their rows are gone.",
            None,
            vec![],
        );
    }
    let single = a.flows().filter(|f| f.packets == 1).count();
    let all = a.flows().count();
    if all > 1_000 && single * 10 > all * 9 {
        note(
            "many-single-packet-flows",
            format!("{single} of {all} flows have one packet"),
            "Random queue pair numbers: a scan, a fuzzer, or damaged packets; no RDMA traffic behaves so.",
            None,
            vec![],
        );
    }
    if let Some(f) = a.flows().find(|f| f.reuse_of.is_some()) {
        let n = a.flows().filter(|f| f.reuse_of.is_some()).count() as u64;
        note(
            "qp-number-reused",
            format!(
                "{} used again for a new queue pair, first {}",
                count(n, "QP number was", "QP numbers were"),
                name(f)
            ),
            "The PSNs begin anew; both lives are rows of their own.",
            Some(f.id),
            vec![f.first_packet],
        );
    }
}

fn one_sided(seen: &Seen<'_>, note: &mut impl FnMut(&'static str, String, &str, Option<u32>, Vec<u64>)) {
    let mut asking = seen.analysis.flows().filter(|f| f.reliable() && f.requests > 1).peekable();
    let Some(first) = asking.peek().copied() else {
        let answers = seen.analysis.flows().find(|f| f.reliable() && f.acks + f.responses > 0);
        if let Some(f) = answers.filter(|f| !seen.sides.back(f.key.addresses)) {
            note(
                "capture-one-sided",
                "only answers were captured, no requests".to_owned(),
                "Loss of requests, retransmissions and latency cannot be seen. Capture the other direction too (both ports of the mirror).",
                Some(f.id),
                vec![f.first_packet],
            );
        }
        return;
    };
    if asking.all(|f| !seen.sides.back(f.key.addresses) && !super::one_way::never_answered(f)) {
        note(
            "capture-one-sided",
            "only requests were captured, no answers".to_owned(),
            "Acknowledges, NAKs, RNR NAKs and CNPs are not there to be seen: a cause of repeats cannot be told, and an unanswered flow need not be one. Capture the other direction too (both ports of the mirror).",
            Some(first.id),
            vec![first.first_packet],
        );
    }
}
