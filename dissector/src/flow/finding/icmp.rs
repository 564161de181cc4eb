//! Codes `icmp-unreachable` and `packet-too-big`: routers and hosts that say why RoCE does not arrive.

use super::{Finding, Seen, Severity, count};

/// Looks at ICMP errors.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    for r in &seen.analysis.asides().refusals {
        let by = r.by.map_or_else(|| "somebody".to_owned(), |b| b.to_string());
        let qp = r.qp.map(|q| format!(" QP {q:#x}")).unwrap_or_default();
        let flow = seen.analysis.flows().find(|f| {
            crate::flow::row::Endpoint::Ip(r.src) == f.src
                && crate::flow::row::Endpoint::Ip(r.dst) == f.dst
                && r.qp.is_none_or(|q| q == f.key.dest_qp)
        });
        let (code, detail) = match r.mtu {
            Some(mtu) => (
                "packet-too-big",
                format!(
                    "A hop carries IP packets of {mtu} bytes at the most. RoCE is never fragmented, so full packets of that QP cannot arrive. Lower the path MTU of the QP or raise the MTU of the hop."
                ),
            ),
            None => (
                "icmp-unreachable",
                "The packet was refused, not lost. Port unreachable or prohibited: no RoCE on that host, or a firewall on UDP 4791. Host or network unreachable: routes. TTL exceeded: hop limit of the address handle, or a routing loop.".to_owned(),
            ),
        };
        out.push(Finding {
            code,
            severity: Severity::Error,
            title: format!(
                "{by} says {} about RoCE from {} to {}{qp} ({})",
                r.what,
                r.src,
                r.dst,
                count(r.count, "time", "times")
            ),
            detail,
            flow: flow.map(|f| f.id),
            packets: vec![r.packet],
        });
    }
}
