//! What the fuzzer does with the analysis, and what the corpus replay on stable does.

use crate::packets;
use dissector::capture::Timestamp;
use dissector::flow::{Analyzer, Place, finding};
use dissector::frame::{Frame, LinkType, icrc};
use dissector::wire::ROCE_UDP_PORT;

/// Packets of five bytes: direction and queue pair, opcode, PSN from 24 bits around the wrap, step of time (also
/// backwards), length; then so many bytes after BTH. Every packet is counted once, and the findings are plain text
/// that names packets that exist.
pub fn flow(data: &[u8]) {
    let mut analyzer = Analyzer::with_limit(6);
    let (mut rest, mut now, mut number) = (data, 1_000_000_000_i64, 0);
    while let Some(([side, opcode, psn, step, len], tail)) = rest.split_first_chunk::<5>() {
        let (bytes, tail) = tail.split_at(tail.len().min(usize::from(*len)));
        rest = tail;
        number += 1;
        now += 10_i64.pow(u32::from(step & 7)) * if step & 8 == 0 { 1 } else { -1 };
        let qp = if side & 2 == 0 { packets::QP } else { side >> 2 };
        let mut frame = packets::packet(side & 1 != 0, *opcode, qp, *psn, bytes);
        // far jumps and the wrap of the PSN: its upper two bytes
        if let Some([high, low]) = frame.get_mut(51..53) {
            (*high, *low) = match step >> 4 {
                0 => (0xff, 0xff),
                1 => (0x7f, 0xff),
                n => (0, n & 3),
            };
        }
        let frame = Frame::parse(&frame, frame.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
        let place = Place { number, at: Timestamp(now) };
        match frame.packet() {
            Some(Ok(p)) => {
                let verdict = match step & 0xc0 {
                    0xc0 => icrc::verify(&frame, &p),
                    _ => icrc::Verdict::Good,
                };
                analyzer.push(place, &frame, &p, verdict);
            }
            _ => analyzer.other(place, &frame),
        }
    }
    analyzer.settle();
    let rows = analyzer.rows();
    for l in analyzer.lines() {
        serde_json::to_string(&l).expect("JSON");
    }
    let packets: u64 = rows.iter().map(|r| r.packets).sum();
    assert!(packets <= number, "{packets} of {number}");
    for r in &rows {
        let by_opcode: u64 = r.opcodes.iter().map(|(_, n)| n).sum();
        // what a packet with a bad ICRC says of itself is not believed
        assert!((r.packets - r.icrc.bad..=r.packets).contains(&(by_opcode + r.opcodes.other)), "{r:?}");
        assert!(r.retransmitted + r.duplicates + r.reordered <= r.packets, "{r:?}");
    }
    for f in finding::check(&analyzer) {
        assert!(!f.title.is_empty());
        assert!(!f.title.chars().chain(f.detail.chars()).any(char::is_control), "{f:?}");
        assert!(f.packets.iter().all(|n| (1..=number).contains(n)), "{f:?} of {number}");
    }
}
