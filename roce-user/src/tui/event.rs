//! Events in words: the frame's first bytes, decoded by the dissector.

use dissector::flow::row::{Endpoint, FlowRow};
use dissector::frame::Frame;
use dissector::wire::Packet;
use dissector::wire::aeth::{self, Verdict};

use jiff::tz::TimeZone;

use crate::batch::clock;
use crate::source::Event;

/// An event, told.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Time of day with microseconds.
    pub time: String,
    /// Why it was picked.
    pub kind: &'static str,
    /// Source address, if the frame shows it.
    pub src: Option<Endpoint>,
    /// Destination address.
    pub dst: Option<Endpoint>,
    /// Destination QP.
    pub dest_qp: Option<u32>,
    /// What the packet says.
    pub text: String,
}

impl Told {
    /// Decodes an event; `port` is the UDP port of RoCEv2.
    pub fn of(event: &Event, port: u16, zone: &TimeZone) -> Self {
        let frame = Frame::parse(&event.header, event.wire_len, event.link, port);
        let packet = frame.packet().and_then(Result::ok);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the fraction of a second")]
        let micros = (event.at.fract() * 1e6) as u32;
        Self {
            time: format!("{}.{micros:06}", clock(event.at, zone)),
            kind: event.kind,
            src: frame.net.map(|n| n.src),
            dst: frame.net.map(|n| n.dst),
            dest_qp: packet.map(|p| p.bth.dest_qp().get()),
            text: packet.map_or_else(|| "not decodable".to_owned(), |p| words(&p)),
        }
    }

    /// Whether it belongs to a flow or to what comes back for it.
    pub fn is_about(&self, row: &FlowRow) -> bool {
        let (Some(src), Some(dst)) = (self.src, self.dst) else { return false };
        let forward = (src, dst) == (row.src, row.dst) && self.dest_qp == Some(row.dest_qp);
        let back = (dst, src) == (row.src, row.dst) && row.src_qp.is_some() && self.dest_qp == row.src_qp;
        forward || back
    }
}

fn words(p: &Packet<'_>) -> String {
    let name = p.op.map_or_else(|| format!("opcode {:#04x}", p.bth.opcode()), |o| o.name.to_owned());
    let mut parts = vec![format!("{name} PSN {}", p.bth.psn().get())];
    if let Some(a) = p.ext.aeth {
        parts.push(match a.syndrome().verdict() {
            Verdict::Ack(_) => "ACK".to_owned(),
            Verdict::Rnr(timer) => {
                format!("RNR NAK, wait {:.2} ms", f64::from(aeth::rnr_timer_10us(timer)) / 100.0)
            }
            Verdict::Nak(code) => format!("NAK: {}", code.name()),
            Verdict::Reserved(value) => format!("reserved syndrome {value:#x}"),
        });
        parts.push(format!("MSN {}", a.msn()));
    }
    if p.payload_len > 0 {
        parts.push(format!("{} bytes", p.payload_len));
    }
    parts.join(", ")
}
