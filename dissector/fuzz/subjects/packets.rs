//! Packets of two hosts around what the fuzzer made up, shown in every format.

use dissector::capture::{Record, Timestamp};
use dissector::cli::session::{Job, Session};
use dissector::output::text::{Line, TimeStyle};
use dissector::output::xml::{Pdml, Psml};
use dissector::output::{Format, json::Json, tree::Detail};
use dissector::service::DecodeAs;
use dissector::wire::ROCE_UDP_PORT;

/// Queue pair of one side; the packets that are not `back` go to it.
pub const QP: u8 = 0x11;
/// Of the other.
pub const PEER_QP: u8 = 0x12;

/// A frame: Ethernet, IPv4, UDP, BTH, then these bytes and four of ICRC.
pub fn packet(back: bool, opcode: u8, qp: u8, psn: u8, after: &[u8]) -> Vec<u8> {
    let (src, dst) = if back { (2, 1) } else { (1, 2) };
    let udp = 8 + 12 + after.len() + 4;
    let mut f = vec![2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 8, 0];
    f.extend([0x45, 0]);
    // what is longer than the field can say is cut short there
    let length = |n: usize| u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes();
    f.extend(length(20 + udp));
    f.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
    f.extend([0xc0, 0, 0x12, 0xb7]);
    f.extend(length(udp));
    f.extend([0, 0]);
    f.extend([opcode, 0x40, 0xff, 0xff, 0, 0, 0, qp, 0x80, 0, 0, psn]);
    f.extend(after);
    f.extend([0; 4]);
    f
}

/// Shows packets as a line, as a tree with bytes and as JSON. Every range lies in its frame, no control byte but the
/// ends of lines comes out, and what claims to be UTF-8 is.
pub fn show(frames: &[Vec<u8>], rules: &DecodeAs) {
    let formats = [
        Format::Line(Line { time: TimeStyle::Relative, hex: false, tabs: false }),
        Format::Tree(Detail { hex: true, only: Vec::new() }),
        Format::Json(Json { fields: Vec::new(), ek: false }),
        Format::Json(Json { fields: Vec::new(), ek: true }),
        Format::Psml(Psml { time: TimeStyle::Relative }),
        Format::Pdml(Pdml { file: String::new() }),
    ];
    for format in formats {
        let mut session = Session::new(Job::new(format, None, ROCE_UDP_PORT, false), rules.clone());
        for (number, bytes) in (1_u32..).zip(frames) {
            let at = Timestamp(i64::from(number) * 1000);
            let wire_len = u32::try_from(bytes.len()).expect("short");
            let record = Record { number: u64::from(number), at, link: 1, bytes, wire_len, ..Record::default() };
            let mut out = Vec::new();
            session.packet(&record, 6, &mut out, |tree, bytes| {
                for n in tree.nodes() {
                    assert!(n.range.start <= n.range.end, "{n:?}");
                    assert!(n.range.end as usize <= bytes.len(), "{n:?} of {}", bytes.len());
                }
            });
            let text = std::str::from_utf8(&out).expect("text");
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
            // one packet must not fill a disk
            assert!(out.len() < 1 << 20, "{} bytes of text", out.len());
        }
    }
}
