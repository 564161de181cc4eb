//! Codes `one-way` and `ttl-one`: requests that nobody answers.

use super::{Finding, Seen, Severity, count, name};

/// Looks for flows without answers.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    // once for all: made-up QP numbers make tens of thousands of flows without an answer
    let unjoined = super::entropy::unjoined_answers(a);
    for f in a.flows().filter(|f| f.reliable() && f.requests > 0) {
        let answers = a.peer(f).map_or(0, |p| p.acks + p.responses + p.naks.total() + p.rnr_naks);
        let ttl_one = f.ttl.0 == 1;
        if answers > 0 {
            if ttl_one {
                out.push(Finding {
                    code: "ttl-one",
                    severity: Severity::Note,
                    title: format!("{} is sent with TTL 1", name(f)),
                    detail: "It arrives, so no router lies between; it would not cross one. Set the hop limit of the address handle (hop_limit of the GRH attributes) to 64.".to_owned(),
                    flow: Some(f.id),
                    packets: vec![f.first_packet],
                });
            }
            continue;
        }
        let unasked = f.ack_reqs == 0 && f.reads.is_empty();
        let retries = f.retransmitted > 0 && f.rewinding.is_some();
        let back = seen.sides.back(f.key.addresses);
        // a single request at the very end of a capture may still be answered
        let young = a.quality().end().since(f.first) < 1_000_000 && f.requests < 4;
        if (unasked || young) && !retries && !ttl_one {
            continue;
        }
        let only_mine = !unjoined.contains(&f.key.addresses.reversed());
        let (severity, sure) = match (retries, back) {
            (true, _) => (Severity::Error, "The sender repeats itself, so no answer reached it either."),
            (false, true) if !only_mine => {
                (Severity::Note, "Answers between these hosts are in the capture but could not be assigned to a QP.")
            }
            (false, true) => (
                Severity::Warning,
                "Other packets from that host are in the capture, so its answers would have been seen.",
            ),
            (false, false) => (
                Severity::Note,
                "No packet from that host is in the capture, and the sender goes on without repeats: most likely only one direction was captured.",
            ),
        };
        let severity = if ttl_one && severity == Severity::Note { Severity::Warning } else { severity };
        let ttl = if ttl_one { " It is sent with TTL 1, which no router forwards." } else { "" };
        let gid =
            if super::gid::is_link_local(f) { " A link-local GID is used, which no router forwards." } else { "" };
        out.push(Finding {
            code: "one-way",
            severity,
            title: format!(
                "{}: {} ({} asking for an acknowledge), no answer",
                name(f),
                count(f.requests, "request", "requests"),
                f.ack_reqs
            ),
            detail: format!(
                "{sure}{ttl}{gid} If it is real: is a QP with that number open at the peer, is its GID index (RoCE version, subnet, VLAN) the right one, does a firewall stop UDP 4791, does the way back exist?"
            ),
            flow: Some(f.id),
            packets: vec![f.first_packet, f.last_request.1],
        });
    }
}
