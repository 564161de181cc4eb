//! `roce-dissect stats`: packets by opcode, transport, ECN, ICRC verdict, encapsulation; pauses by device.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::analyse::{Input, Look, Read};
use crate::flow::asides::WHOLE_LINK;
use crate::flow::row::{Ecn, IcrcCounts, OpcodeCounts};
use crate::flow::{PacketInfo, Place};
use crate::frame::icrc::Verdict;
use crate::frame::{Encapsulation, Frame, NetKind};
use crate::wire::{Op, Packet, Transport, outer};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
#[command(
    about = "Packets by opcode, transport, ECN, ICRC verdict, encapsulation; PFC pauses by device",
    after_help = "Examples:\n  roce-dissect stats capture.pcap\n  roce-dissect stats capture.pcap --json | jq .opcodes\n  roce-dissect stats capture.pcap --link-speed 25"
)]
pub struct Args {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// One object
    #[arg(long)]
    pub json: bool,
}

/// What is counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    /// All packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// With a complete BTH.
    pub roce_packets: u64,
    /// Their bytes on the wire.
    pub roce_bytes: u64,
    /// Everything else.
    pub other_packets: u64,
    /// Seconds from the first packet to the last.
    pub seconds: f64,
    /// By opcode.
    pub opcodes: OpcodeCounts,
    /// By transport service.
    pub transports: BTreeMap<&'static str, u64>,
    /// By ECN codepoint.
    pub ecn: Ecn,
    /// By DSCP.
    pub dscp: BTreeMap<u8, u64>,
    /// By verdict.
    pub icrc: IcrcCounts,
    /// Why not checked.
    pub icrc_unchecked: BTreeMap<&'static str, u64>,
    /// By encapsulation.
    pub encapsulation: BTreeMap<&'static str, u64>,
    /// By network header.
    pub network: BTreeMap<&'static str, u64>,
    /// Cut packets.
    pub truncated: u64,
    /// Packets that are no RoCE, by what they are.
    pub other: BTreeMap<&'static str, u64>,
    /// Pauses.
    pub pauses: Vec<Pause>,
    #[serde(skip)]
    first: Option<f64>,
}

/// Pauses of one device and priority.
#[derive(Clone, Debug, Serialize)]
pub struct Pause {
    /// Source MAC.
    pub mac: String,
    /// Priority; `null` for a PAUSE of the whole link.
    pub priority: Option<u8>,
    /// Frames that stop.
    pub xoff: u64,
    /// Frames that let go.
    pub xon: u64,
    /// Seconds paused, at the link speed that was given.
    pub paused_s: f64,
    /// Seconds of the longest pause without a break.
    pub longest_s: f64,
}

impl Look for Stats {
    fn look(&mut self, place: Place, frame: &Frame<'_>, packet: Option<(&Packet<'_>, Verdict, &PacketInfo)>) {
        self.packets += 1;
        self.bytes += frame.wire_len as u64;
        let at = place.at.seconds();
        let first = *self.first.get_or_insert(at);
        self.seconds = self.seconds.max(at - first);
        let Some((p, verdict, _)) = packet else {
            self.other_packets += 1;
            let what = match (frame.transport, frame.aside.as_deref()) {
                (Some(_), _) => "RoCE, cut before the end of BTH",
                (None, Some(a)) => a.protocol(),
                (None, None) => frame.carries.name().unwrap_or("other"),
            };
            *self.other.entry(what).or_insert(0) += 1;
            return;
        };
        self.roce_packets += 1;
        self.roce_bytes += frame.wire_len as u64;
        let opcode = p.bth.opcode();
        self.opcodes.add(opcode, 1);
        *self.transports.entry(Transport::of(opcode).name()).or_insert(0) += 1;
        match verdict {
            Verdict::Good => self.icrc.good += 1,
            Verdict::Bad { .. } => self.icrc.bad += 1,
            Verdict::Unchecked(why) => {
                self.icrc.unchecked += 1;
                *self.icrc_unchecked.entry(why.name()).or_insert(0) += 1;
            }
        }
        if let Some(t) = frame.transport {
            let name = match t.encapsulation {
                Encapsulation::RoceV2 => "RoCEv2",
                Encapsulation::RoceV1 => "RoCEv1",
                Encapsulation::Native => "InfiniBand",
            };
            *self.encapsulation.entry(name).or_insert(0) += 1;
        }
        if let Some(net) = frame.net {
            let name = match net.kind {
                NetKind::Ipv4 { .. } => "IPv4",
                NetKind::Ipv6 { .. } => "IPv6",
                NetKind::Grh => "GRH",
                NetKind::Lrh => "LRH",
            };
            *self.network.entry(name).or_insert(0) += 1;
            match outer::ecn(net.tos) {
                outer::ECN_NOT_ECT => self.ecn.not_ect += 1,
                outer::ECN_ECT1 => self.ecn.ect1 += 1,
                outer::ECN_ECT0 => self.ecn.ect0 += 1,
                _ => self.ecn.ce += 1,
            }
            *self.dscp.entry(outer::dscp(net.tos)).or_insert(0) += 1;
        }
        self.truncated += u64::from(
            p.stop.is_some_and(|s| matches!(s, crate::wire::Stop::Truncated(_) | crate::wire::Stop::PayloadCut { .. })),
        );
    }
}

impl Args {
    /// Reads and prints. What could be read of a broken file is printed before its error is returned.
    pub fn run(&self, out: &mut impl Write) -> anyhow::Result<()> {
        let mut stats = Stats::default();
        let Read { analyzer, error } = self.input.read(&mut stats)?;
        stats.pauses = analyzer
            .asides()
            .pausers
            .iter()
            .map(|p| Pause {
                mac: p.mac.map(|b| format!("{b:02x}")).join(":"),
                priority: (p.priority != WHOLE_LINK).then_some(p.priority),
                xoff: p.xoff,
                xon: p.xon,
                paused_s: p.paused_ns / 1e9,
                longest_s: p.longest as f64 / 1e9,
            })
            .collect();
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &stats)?;
            writeln!(out)?;
        } else {
            text(out, &stats)?;
        }
        out.flush()?;
        match error {
            Some(e) => Err(e.into()),
            None => Ok(()),
        }
    }
}

fn section<'a, K: ToString + 'a>(
    out: &mut impl Write,
    title: &str,
    all: u64,
    rows: impl Iterator<Item = (K, u64)>,
) -> io::Result<()> {
    let rows: Vec<(String, u64)> = rows.filter(|(_, n)| *n > 0).map(|(k, n)| (k.to_string(), n)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for (name, n) in rows {
        writeln!(out, "  {name:<36} {n:>12} {:>6.1} %", n as f64 * 100.0 / all.max(1) as f64)?;
    }
    Ok(())
}

fn text(out: &mut impl Write, s: &Stats) -> io::Result<()> {
    writeln!(out, "{} packets, {} bytes in {:.6} s", s.packets, s.bytes, s.seconds)?;
    writeln!(out, "{} RoCE packets, {} bytes; {} others", s.roce_packets, s.roce_bytes, s.other_packets)?;
    if s.truncated > 0 {
        writeln!(out, "{} RoCE packets are cut by the capture", s.truncated)?;
    }
    let all = s.roce_packets;
    section(
        out,
        "Opcode",
        all,
        s.opcodes.iter().map(|(o, n)| (Op::of(o).map_or_else(|| format!("{o:#04x}"), |op| op.name.to_owned()), n)),
    )?;
    section(out, "Transport", all, s.transports.iter().map(|(k, n)| (*k, *n)))?;
    section(out, "Encapsulation", all, s.encapsulation.iter().map(|(k, n)| (*k, *n)))?;
    section(out, "Network header", all, s.network.iter().map(|(k, n)| (*k, *n)))?;
    let ecn = [("not ECT", s.ecn.not_ect), ("ECT(0)", s.ecn.ect0), ("ECT(1)", s.ecn.ect1), ("CE", s.ecn.ce)];
    section(out, "ECN", all, ecn.into_iter())?;
    section(out, "DSCP", all, s.dscp.iter().map(|(k, n)| (*k, *n)))?;
    let icrc = [("good", s.icrc.good), ("bad", s.icrc.bad)].into_iter().map(|(k, n)| (k.to_owned(), n));
    let why = s.icrc_unchecked.iter().map(|(k, n)| (format!("unchecked: {k}"), *n));
    section(out, "ICRC", all, icrc.chain(why))?;
    section(out, "Other packets", s.other_packets, s.other.iter().map(|(k, n)| (*k, *n)))?;
    if !s.pauses.is_empty() {
        writeln!(out, "\nPauses             priority       XOFF        XON     paused s  longest s")?;
        for p in &s.pauses {
            let priority = p.priority.map_or_else(|| "link".to_owned(), |v| v.to_string());
            writeln!(
                out,
                "  {} {priority:>8} {:>10} {:>10} {:>12.6} {:>10.6}",
                p.mac, p.xoff, p.xon, p.paused_s, p.longest_s
            )?;
        }
    }
    Ok(())
}
