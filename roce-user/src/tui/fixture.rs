//! A fixed state for tests of the screen.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use dissector::flow::row::{Ecn, Endpoint, FlowRow, IcrcCounts, Naks, Totals};
use dissector::frame::LinkType;
use dissector::wire::opcode::byte;

use super::app::App;
use super::theme::Theme;
use crate::aggregate::{Aggregate, Report};
use crate::source::{Event, State, Tap};
use crate::units::Throughput;

fn ip(text: &str) -> Endpoint {
    Endpoint::Ip(text.parse::<IpAddr>().expect("an address"))
}

/// A row with `packets` packets of one opcode.
pub fn row(id: u32, src: &str, dst: &str, dest_qp: u32, opcode: u8, packets: u64) -> FlowRow {
    FlowRow {
        id,
        src: ip(src),
        dst: ip(dst),
        dest_qp,
        src_qp: None,
        pair: None,
        transport: "RC",
        ip_version: Some(if src.contains(':') { 6 } else { 4 }),
        vlan: None,
        dscp: Some(26),
        udp_srcport: Some(49_152 + u16::try_from(id).unwrap_or(0)),
        packets,
        bytes: packets * 1082,
        first: 1_000_000.0,
        last: 1_000_010.0,
        messages: packets / 4,
        opcodes: [(opcode, packets)].into_iter().collect(),
        requests: packets,
        responses: 0,
        acks: 0,
        naks: Naks::default(),
        rnr_naks: 0,
        cnps: 0,
        ecn: Ecn { ect0: packets, ..Ecn::default() },
        retransmitted: 0,
        missing: 0,
        reordered: 0,
        duplicates: 0,
        icrc: IcrcCounts::default(),
        truncated: 0,
        full_payload: 1024,
    }
}

/// Rows as of one moment; `n` grows from one to the next.
pub fn rows(n: u64) -> Vec<FlowRow> {
    let mut write = row(1, "10.0.0.1", "10.0.0.2", 0x11, byte::RcWriteMiddle, 120_000 * n);
    write.src_qp = Some(0x12);
    write.pair = Some(2);
    write.retransmitted = 3 * n;
    write.missing = 1;
    write.ecn.ce = 40 * n;
    write.ecn.ect0 -= 40 * n;
    let mut back = row(2, "10.0.0.2", "10.0.0.1", 0x12, byte::RcAcknowledge, 30_000 * n);
    back.src_qp = Some(0x11);
    back.pair = Some(1);
    back.bytes = back.packets * 62;
    back.requests = 0;
    back.acks = back.packets - n;
    back.naks.psn_sequence_error = n;
    back.cnps = 5 * n;
    back.opcodes.add(byte::Cnp, 5 * n);
    back.packets += 5 * n;
    let mut datagram = row(3, "10.0.0.3", "10.0.0.2", 1, byte::UdSendOnly, 12);
    datagram.transport = "UD";
    datagram.src_qp = Some(1);
    datagram.dscp = Some(0);
    let mut long = row(4, "fd00::1234:5678:9abc:def0", "fd00::2", 0x77_4411, byte::RcReadResponseMiddle, 900 * n);
    long.responses = long.packets;
    long.requests = 0;
    long.vlan = Some(100);
    long.rnr_naks = 2;
    vec![write, back, datagram, long]
}

/// As a source gives them.
pub fn shared(rows: Vec<FlowRow>) -> Vec<Arc<FlowRow>> {
    rows.into_iter().map(Arc::new).collect()
}

/// Sums of rows, and a few packets that are not RoCE.
pub fn totals(rows: &[FlowRow]) -> Totals {
    let packets = rows.iter().map(|r| r.packets).sum();
    let bytes = rows.iter().map(|r| r.bytes).sum();
    Totals {
        packets: packets + 17,
        bytes: bytes + 1700,
        roce_packets: packets,
        roce_bytes: bytes,
        other_packets: 17,
        ..Totals::default()
    }
}

/// The report of the tenth interval of one second.
pub fn report() -> Arc<Report> {
    let mut a = Aggregate::default();
    let mut last = Arc::default();
    let mut n = 0;
    for second in 0..=10u32 {
        n += u64::from(second * second % 7);
        let rows = rows(n);
        last = a.push(1_000_000.0 + f64::from(second), totals(&rows), shared(rows));
    }
    last
}

/// A screen that shows that report.
pub fn app() -> App {
    let mut app = App::new(Theme::COLOUR, Duration::from_secs(1), Throughput::Bits);
    app.zone = jiff::tz::TimeZone::UTC;
    let state = State {
        taps: vec![Tap { name: "eth0".to_owned(), how: "XDP driver, TC egress".to_owned() }],
        ..State::default()
    };
    app.take(report(), state, &[nak()]);
    app.elapsed_s = 10.0;
    app
}

/// A NAK with PSN sequence error from 10.0.0.2 to QP 0x12 at 10.0.0.1.
pub fn nak() -> Event {
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    // IPv4: 48 bytes in all
    f.extend([0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
    // UDP to 4791
    f.extend([0xc0, 0, 0x12, 0xb7, 0, 28, 0, 0]);
    // BTH: acknowledge, P_Key ffff, QP 0x12, PSN 1000; AETH: NAK PSN sequence error, MSN 7; ICRC
    f.extend([0x11, 0, 0xff, 0xff, 0, 0, 0, 0x12, 0, 0, 3, 0xe8, 0x60, 0, 0, 7, 0, 0, 0, 0]);
    Event { at: 1_000_009.25, kind: "NAK", wire_len: f.len(), header: f, link: LinkType::ETHERNET }
}
