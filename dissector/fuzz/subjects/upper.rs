//! What the fuzzer does with upper protocols, and what the corpus replay on stable does.

use crate::packets;
use dissector::service::{DecodeAs, Service};

/// Which protocol, then packets: a byte of direction and PSN, opcode, length in units of four, and so many bytes
/// after BTH.
pub fn upper(data: &[u8]) {
    let Some((which, mut rest)) = data.split_first() else { return };
    let Some(service) = Service::ALL.get(usize::from(*which) % Service::ALL.len()) else { return };
    let mut rules = DecodeAs::default();
    for qp in [packets::QP, packets::PEER_QP] {
        rules.add(&format!("qp:{qp}={}", service.word())).expect("a rule");
    }
    let mut all = Vec::new();
    while let Some(([turn, opcode, len], tail)) = rest.split_first_chunk::<3>() {
        let (bytes, tail) = tail.split_at(tail.len().min(usize::from(*len) * 4));
        rest = tail;
        let back = turn & 0x80 != 0;
        let qp = if back { packets::PEER_QP } else { packets::QP };
        all.push(packets::packet(back, *opcode, qp, turn & 0x7f, bytes));
        if all.len() == 64 {
            break;
        }
    }
    packets::show(&all, &rules);
}
