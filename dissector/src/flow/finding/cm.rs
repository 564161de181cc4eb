//! Codes `cm-reject`, `cm-repeated-request`, `cm-reconnect-storm`, `cm-unanswered`, `rnr-retry-zero`: what
//! communication management says.

use super::{Finding, Seen, Severity, count};
use crate::connection::{Connection, State};
use crate::wire::cm::{self, Kind};

/// Connections of one pair of hosts and service within a second from which on it is a storm.
const STORM: usize = 8;

fn words(c: &Connection) -> String {
    let port = c.port().map(|p| format!(" port {p}")).unwrap_or_default();
    format!("{} -> {}{port}", c.active.address, c.passive.address)
}

/// Looks at connections.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let all: Vec<&Connection> = a.connections().iter().collect();
    let not_ready: std::collections::BTreeSet<u64> =
        a.flows().filter(|f| f.rnr_naks > 0).filter_map(|f| f.connection).collect();
    for c in &all {
        let packets: Vec<u64> = c.messages.iter().map(|m| m.number).collect();
        if let State::Rejected { by, reason } = c.state {
            let who = c.end(by).address;
            let why = if c.datagram {
                format!("status {reason}")
            } else {
                format!("{} (reason {reason})", cm::reject_reason(reason))
            };
            let ours = reason == 28;
            out.push(Finding {
                code: "cm-reject",
                severity: Severity::Error,
                title: format!("{}: {who} rejected the connection: {why}", words(c)),
                detail: if ours {
                    "The application behind it said no (consumer reject): its private data may hold the reason; nobody listening on that port shows as this or as invalid service id.".to_owned()
                } else {
                    "Invalid service id: nobody listens on that port. Stale connection: the peer still holds an old QP of this caller. No resources: a limit of the device or of the backlog.".to_owned()
                },
                flow: None,
                packets: packets.clone(),
            });
        }
        let requests = c.messages.iter().filter(|m| m.kind == Kind::Req && m.repeat).count() as u64;
        if requests > 0 {
            let answered = c.first(Kind::Rep).is_some() || c.first(Kind::Rej).is_some();
            out.push(Finding {
                code: "cm-repeated-request",
                severity: Severity::Warning,
                title: format!("{}: the connection request was sent {} more {}", words(c), requests, if requests == 1 { "time" } else { "times" }),
                detail: if answered {
                    "The answer took longer than the CM time-out, or a request was lost; QP 1 has no retransmission of its own.".to_owned()
                } else {
                    "It was never answered: the peer does not run CM on that address, a firewall stops UDP 4791, or the answer goes another way.".to_owned()
                },
                flow: None,
                packets: packets.clone(),
            });
        }
        let rnr_zero = c.active.rnr_retry == Some(0) || c.passive.rnr_retry == Some(0);
        if rnr_zero && not_ready.contains(&c.id) {
            out.push(Finding {
                code: "rnr-retry-zero",
                severity: Severity::Error,
                title: format!("{}: made with an RNR retry count of 0, and a receiver was not ready", words(c)),
                detail: "The first RNR NAK kills such a connection. Set rnr_retry_count in the connection parameters (7 is endless), or post receives before the peer may send.".to_owned(),
                flow: None,
                packets,
            });
        }
    }
    storms(&all, out);
}

fn storms(all: &[&Connection], out: &mut Vec<Finding>) {
    let mut begun: Vec<(crate::flow::row::Endpoint, crate::flow::row::Endpoint, Option<u16>, i64, u64)> = all
        .iter()
        .filter(|c| {
            matches!(
                c.state,
                State::Rejected { .. } | State::Disconnected | State::Disconnecting { .. } | State::Requested
            )
        })
        .filter_map(|c| {
            let m = c.first(Kind::Req)?;
            Some((c.active.address, c.passive.address, c.port(), m.at.0, m.number))
        })
        .collect();
    begun.sort_unstable();
    for g in begun.chunk_by(|x, y| (x.0, x.1, x.2) == (y.0, y.1, y.2)) {
        let fast = g.windows(STORM).any(|w| match (w.first(), w.last()) {
            (Some(x), Some(y)) => y.3 - x.3 < 1_000_000_000,
            _ => false,
        });
        let Some(first) = g.first().filter(|_| fast) else { continue };
        out.push(Finding {
            code: "cm-reconnect-storm",
            severity: Severity::Warning,
            title: format!("{} calls {} over and over: {} that did not last", first.0, first.1, count(g.len() as u64, "connection", "connections")),
            detail: format!("{STORM} or more within a second. Each takes QPs and registrations on both hosts; the cause is in the first rejections, the storm only hides it. Let the caller back off."),
            flow: None,
            packets: g.iter().take(24).map(|x| x.4).collect(),
        });
    }
}
