//! Codes `mtu-mismatch`, `mtu-exceeds-path` and `mtu-small`: the path MTU of a queue pair.

use super::{Finding, Seen, Severity, name};
use crate::flow::state::Flow;
use crate::wire::Transport;
use crate::wire::opcode::{Op, Payload, Position, ROWS};

/// Looks at path MTUs.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    let mut small: Option<(&Flow, u32)> = None;
    for f in a.flows().filter(|f| f.ordered()) {
        let peer = a.peer(f);
        if let Some(p) = peer
            && f.id < p.id
            && f.mtu != 0
            && p.mtu != 0
            && f.mtu != p.mtu
            && sends_full(f)
            && sends_full(p)
        {
            out.push(Finding {
                code: "mtu-mismatch",
                severity: Severity::Warning,
                title: format!("{}: full packets of {} bytes one way, {} bytes the other", name(f), f.mtu, p.mtu),
                detail: "The two ends of a connection must use one path MTU: a First or Middle packet of another size draws an invalid request NAK, or is dropped. Compare path_mtu in ibv_modify_qp and active_mtu of both ports (ibv_devinfo).".to_owned(),
                flow: Some(f.id),
                packets: vec![f.first_packet, p.first_packet],
            });
        }
        if f.cm_mtu != 0 && f.mtu > f.cm_mtu {
            out.push(Finding {
                code: "mtu-mismatch",
                severity: Severity::Warning,
                title: format!(
                    "{}: full packets of {} bytes, but the connection was made for {}",
                    name(f),
                    f.mtu,
                    f.cm_mtu
                ),
                detail: "The responder may refuse or drop them.".to_owned(),
                flow: Some(f.id),
                packets: vec![f.first_packet],
            });
        }
        if let Some(at) = super::retry::open_attempts(f)
            && at.times >= 3
            && f.mtu >= 1024
            && f.transport != Transport::Uc
            && f.message.open
            && f.acked.is_some_and(|a| at.psn.distance(a) > 0)
            && f.small_acked
        {
            out.push(Finding {
                code: "mtu-exceeds-path",
                severity: Severity::Error,
                title: format!("{}: full packets of {} bytes never arrive, smaller ones do", name(f), f.mtu),
                detail: "Messages of one packet are acknowledged, the first packet of a longer one is repeated for ever: the path carries less than the path MTU of the QP. Look at the MTU of every port on the way (RoCE MTU 4096 needs an Ethernet MTU of 4200 or more, 1024 needs 1100).".to_owned(),
                flow: Some(f.id),
                packets: at.packets.clone(),
            });
        }
        let middles = [Position::Middle].len() as u64 * f.goodput;
        if f.mtu != 0 && f.mtu <= 1024 && middles > 1 << 20 && small.is_none() {
            small = Some((f, f.mtu));
        }
    }
    if let Some((f, mtu)) = small {
        out.push(Finding {
            code: "mtu-small",
            severity: Severity::Note,
            title: format!("large messages travel in packets of {mtu} bytes"),
            detail: "A path MTU of 4096 carries the same data in a quarter of the packets; it needs an Ethernet MTU of 4200 or more on the whole way.".to_owned(),
            flow: Some(f.id),
            packets: vec![f.first_packet],
        });
    }
}

/// It sent packets that are full by their position, so its path MTU was seen, not inferred from distances of READs.
fn sends_full(f: &Flow) -> bool {
    let full = |o: &Op| o.payload == Payload::Data && matches!(o.position, Position::First | Position::Middle);
    ROWS.iter().any(|o| full(o) && f.of_opcode(o.byte) > 0)
}
