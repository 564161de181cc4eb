//! What counters alone can say of what `roce-dissect check` finds, under the same codes.
//!
//! A live view has sums, not packets: it says what happened and how often, and that a recording (`-w`) tells the
//! rest. Rules that need the order of packets are not here.

use std::collections::HashMap;

use dissector::flow::row::{Endpoint, FlowRow};

use crate::source::Notice;

/// Most findings that are listed.
const LISTED: usize = 200;

/// Looks at all flows. Errors come first, then what concerns most packets.
pub fn of(rows: &[FlowRow]) -> Vec<Notice> {
    let by_id: HashMap<u32, &FlowRow> = rows.iter().map(|r| (r.id, r)).collect();
    let mut out: Vec<(u64, Notice)> = Vec::new();
    for r in rows {
        let back = r.pair.and_then(|p| by_id.get(&p).copied());
        refusals(r, &mut out);
        losses(r, back, &mut out);
        congestion(r, back, &mut out);
    }
    classes(rows, &mut out);
    let weight = |n: &Notice| match n.severity {
        "error" => 0,
        "warning" => 1,
        _ => 2,
    };
    out.sort_by(|a, b| weight(&a.1).cmp(&weight(&b.1)).then(b.0.cmp(&a.0)).then_with(|| a.1.title.cmp(&b.1.title)));
    out.truncate(LISTED);
    out.into_iter().map(|(_, n)| n).collect()
}

fn name(r: &FlowRow) -> String {
    format!("{} > {} qp {:#x}", r.src, r.dst, r.dest_qp)
}

fn note(code: &str, severity: &'static str, title: String, detail: &str, r: &FlowRow) -> Notice {
    Notice { code: code.to_owned(), severity, title, detail: detail.to_owned(), flow: Some(name(r)) }
}

fn refusals(r: &FlowRow, out: &mut Vec<(u64, Notice)>) {
    let kinds = [
        (
            r.naks.remote_access_error,
            "nak-remote-access",
            "remote access error",
            "The key is unknown there, the region does not grant this access, or the address range leaves it. The requester's QP is in error after this.",
        ),
        (
            r.naks.invalid_request,
            "nak-invalid-request",
            "invalid request",
            "The QP does not allow this operation, too many READs or atomics were outstanding, the message is longer than the receive buffer, or the path MTUs differ.",
        ),
        (
            r.naks.remote_operational_error,
            "nak-remote-operational",
            "remote operational error",
            "The responder could not carry the request out: a bad receive work request, or its own hardware.",
        ),
        (
            r.naks.invalid_rd_request,
            "nak-other",
            "a reason of reliable datagrams",
            "A responder of this service should not send it.",
        ),
    ];
    for (n, code, words, detail) in kinds {
        if n > 0 {
            let title = format!("{} refused {n} requests of {} with {words}", r.src, r.dst);
            out.push((n, note(code, "error", title, detail, r)));
        }
    }
    if r.rnr_naks > 0 {
        let title = format!("{} was not ready to receive {} times", r.src, r.rnr_naks);
        out.push((
            r.rnr_naks,
            note("rnr", "warning", title, "The receiver posts its buffers too late or too few: each time the sender waits for as long as the RNR timer says.", r),
        ));
    }
}

fn losses(r: &FlowRow, back: Option<&FlowRow>, out: &mut Vec<(u64, Notice)>) {
    let sequence = back.map_or(0, |b| b.naks.psn_sequence_error);
    let again = r.retransmitted.saturating_add(r.duplicates);
    if again == 0 && (r.missing == 0 || sequence == 0) {
        return;
    }
    let title =
        format!("{} sent {again} packets again, {} are missing, the receiver asked {sequence} times", r.src, r.missing);
    let detail = if sequence > 0 {
        "Packets are lost between the sender and the receiver: the receiver saw gaps. Look at drops on the way and at PFC on this traffic class."
    } else {
        "The sender repeats without having been asked: acknowledges are lost or late, or its timer is too short; or the network copies packets."
    };
    out.push((again.saturating_add(r.missing), note("loss", "warning", title, detail, r)));
}

fn congestion(r: &FlowRow, back: Option<&FlowRow>, out: &mut Vec<(u64, Notice)>) {
    let Some(back) = back else { return };
    if r.ecn.ce > 0 && back.cnps == 0 {
        let title = format!("{} packets of {} are marked CE and no CNP came back", r.ecn.ce, name(r));
        out.push((
            r.ecn.ce,
            note("ce-without-cnp", "warning", title, "Congestion notification is off at the receiver, it does not support it (soft-RoCE does not), or CNPs are lost.", r),
        ));
    } else if r.ecn.ce > 0 {
        let title = format!("{} packets marked CE, {} CNPs in answer", r.ecn.ce, back.cnps);
        out.push((r.ecn.ce, note("congestion", "note", title, "The path is congested, and the sender is told so.", r)));
    } else if back.cnps > 0 {
        let title = format!("{} CNPs to {}, but no packet of that QP is marked CE here", back.cnps, r.src);
        out.push((
            back.cnps,
            note("cnp-without-ce", "note", title, "Marking happens behind this point of the path, or the adapter sends a CNP with a sequence NAK: then the cause is loss.", back),
        ));
    }
    if let (Some(there), Some(here)) = (r.dscp, back.dscp)
        && there != here
        && r.requests > 0
        && back.acks + back.responses > 0
        && r.id < back.id
    {
        let title = format!("{} sends with DSCP {there}, {} answers with {here}", r.src, r.dst);
        out.push((
            r.packets,
            note(
                "dscp-asymmetric",
                "note",
                title,
                "The two directions go through different queues. Check the traffic class on both ends.",
                r,
            ),
        ));
    }
}

/// Connections between two hosts in several traffic classes.
fn classes(rows: &[FlowRow], out: &mut Vec<(u64, Notice)>) {
    let mut pairs: HashMap<(Endpoint, Endpoint), Vec<&FlowRow>> = HashMap::new();
    for r in rows.iter().filter(|r| r.requests > 0 && r.dscp.is_some() && matches!(r.transport, "RC" | "UC" | "XRC")) {
        pairs.entry((r.src, r.dst)).or_default().push(r);
    }
    for ((src, dst), all) in pairs {
        let mut uses = [0usize; 64];
        for r in &all {
            if let Some(u) = r.dscp.and_then(|d| uses.get_mut(usize::from(d))) {
                *u += 1;
            }
        }
        let Some((main, most)) = uses.iter().enumerate().max_by_key(|(_, n)| **n) else { continue };
        let odd = all.len() - most;
        let Some(first) = all.iter().filter(|r| r.dscp.map(usize::from) != Some(main)).min_by_key(|r| r.id) else {
            continue;
        };
        let title = format!("{src} to {dst}: {odd} of {} connections use another DSCP than {main}", all.len());
        out.push((
            odd as u64,
            note("dscp-mixed", "warning", title, "Their packets go through another queue. Check the traffic class that the application sets on every QP.", first),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::fixture;

    fn codes(rows: &[FlowRow]) -> Vec<String> {
        of(rows).into_iter().map(|n| n.code).collect()
    }

    #[test]
    fn the_fixture_has_loss_congestion_and_rnr() {
        let rows = fixture::rows(2);
        let found = of(&rows);
        assert_eq!(codes(&rows), ["loss", "rnr", "congestion"], "{found:#?}");
    }

    #[test]
    fn quiet_flows_have_no_findings() {
        let mut rows = fixture::rows(2);
        for r in &mut rows {
            r.retransmitted = 0;
            r.missing = 0;
            r.ecn.ce = 0;
            r.cnps = 0;
            r.rnr_naks = 0;
            r.naks = dissector::flow::row::Naks::default();
        }
        assert_eq!(codes(&rows), [""; 0]);
    }

    #[test]
    fn errors_come_first_and_the_list_is_bounded() {
        let mut rows = Vec::new();
        for i in 0..1000 {
            let mut r = fixture::rows(2).swap_remove(3);
            r.id = 100 + i;
            r.dest_qp = i;
            r.naks.remote_access_error = u64::from(i % 2);
            rows.push(r);
        }
        let found = of(&rows);
        assert_eq!(found.len(), LISTED);
        assert!(found.iter().all(|n| n.severity == "error"));
    }

    #[test]
    fn one_connection_in_another_class_is_named() {
        let mut rows = Vec::new();
        for i in 0..4 {
            let mut r = fixture::rows(1).swap_remove(0);
            (r.id, r.pair, r.dest_qp) = (10 + i, None, i);
            (r.retransmitted, r.missing, r.ecn.ce) = (0, 0, 0);
            r.dscp = Some(if i == 2 { 0 } else { 26 });
            rows.push(r);
        }
        assert_eq!(codes(&rows), ["dscp-mixed"]);
    }
}
