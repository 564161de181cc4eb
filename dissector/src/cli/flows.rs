//! `roce-dissect flows`: one row a directed flow, the two directions of a queue pair joined.

use std::io::{self, Write};

use super::analyse::{Input, Read};
use crate::flow::report::{Line, Times};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
#[command(
    about = "One row a flow: packets, messages, repeats, losses, NAKs, ECN, times; queue pairs joined",
    after_help = "Examples:\n  roce-dissect flows capture.pcap\n  roce-dissect flows capture.pcap.zst --json | jq '.[] | select(.retransmitted > 0)'\n  roce-dissect flows - --csv --no-icrc < capture.pcap\n  roce-dissect -r capture.pcap -Y 'infiniband.bth.destqp == 0x11' -w - | roce-dissect flows -"
)]
pub struct Args {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// An array of objects
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Comma-separated values with a header line
    #[arg(long)]
    pub csv: bool,
}

impl Args {
    /// Reads and prints. What could be read of a broken file is printed before its error is returned.
    pub fn run(&self, out: &mut impl Write) -> anyhow::Result<()> {
        let Read { analyzer, error } = self.input.read(&mut ())?;
        let lines = analyzer.lines();
        if self.json {
            json(out, lines)?;
        } else if self.csv {
            csv(out, lines)?;
        } else {
            text(out, lines)?;
        }
        out.flush()?;
        if let Some(e) = error {
            // one line: where the file ends tells the rest
            return Err(e.into());
        }
        for w in crate::flow::finding::about_the_capture(&analyzer) {
            eprintln!("roce-dissect: {}", w.title);
        }
        Ok(())
    }
}

/// An array, one element a line, so that it streams and diffs well.
fn json(out: &mut impl Write, lines: impl Iterator<Item = Line>) -> io::Result<()> {
    let mut first = true;
    out.write_all(b"[")?;
    for l in lines {
        out.write_all(if first { b"\n" } else { b",\n" })?;
        first = false;
        serde_json::to_writer(&mut *out, &l)?;
    }
    out.write_all(if first { b"]\n" } else { b"\n]\n" })
}

/// Nested objects become columns with a dot; opcodes are one column of `name=count` pairs.
fn csv(out: &mut impl Write, lines: impl Iterator<Item = Line>) -> anyhow::Result<()> {
    let mut w = csv::Writer::from_writer(out);
    w.write_record(COLUMNS.iter().map(|(name, _)| name))?;
    for l in lines {
        w.write_record(COLUMNS.iter().map(|(_, f)| f(&l)))?;
    }
    w.flush()?;
    Ok(())
}

fn some<T: ToString>(v: Option<T>) -> String {
    v.map(|v| v.to_string()).unwrap_or_default()
}

fn seconds(v: Option<Times>, f: impl Fn(Times) -> f64) -> String {
    v.map(|t| format!("{:.9}", f(t))).unwrap_or_default()
}

type Column = (&'static str, fn(&Line) -> String);

const COLUMNS: &[Column] = &[
    ("id", |l| l.row.id.to_string()),
    ("src", |l| l.row.src.to_string()),
    ("dst", |l| l.row.dst.to_string()),
    ("dest_qp", |l| l.row.dest_qp.to_string()),
    ("src_qp", |l| some(l.row.src_qp)),
    ("pair", |l| some(l.row.pair)),
    ("pair_by", |l| some(l.pair_by)),
    ("transport", |l| l.row.transport.to_owned()),
    ("ip_version", |l| some(l.row.ip_version)),
    ("vlan", |l| some(l.row.vlan)),
    ("dscp", |l| some(l.row.dscp)),
    ("udp_srcport", |l| some(l.row.udp_srcport)),
    ("packets", |l| l.row.packets.to_string()),
    ("bytes", |l| l.row.bytes.to_string()),
    ("first", |l| format!("{:.9}", l.row.first)),
    ("last", |l| format!("{:.9}", l.row.last)),
    ("messages", |l| l.row.messages.to_string()),
    ("opcodes", |l| {
        let name = |o: u8| crate::wire::Op::of(o).map_or_else(|| format!("{o:#04x}"), |op| op.name.to_owned());
        l.row.opcodes.iter().map(|(o, n)| format!("{}={n}", name(o))).collect::<Vec<_>>().join(";")
    }),
    ("requests", |l| l.row.requests.to_string()),
    ("responses", |l| l.row.responses.to_string()),
    ("acks", |l| l.row.acks.to_string()),
    ("naks.psn_sequence_error", |l| l.row.naks.psn_sequence_error.to_string()),
    ("naks.invalid_request", |l| l.row.naks.invalid_request.to_string()),
    ("naks.remote_access_error", |l| l.row.naks.remote_access_error.to_string()),
    ("naks.remote_operational_error", |l| l.row.naks.remote_operational_error.to_string()),
    ("naks.invalid_rd_request", |l| l.row.naks.invalid_rd_request.to_string()),
    ("rnr_naks", |l| l.row.rnr_naks.to_string()),
    ("cnps", |l| l.row.cnps.to_string()),
    ("ecn.not_ect", |l| l.row.ecn.not_ect.to_string()),
    ("ecn.ect0", |l| l.row.ecn.ect0.to_string()),
    ("ecn.ect1", |l| l.row.ecn.ect1.to_string()),
    ("ecn.ce", |l| l.row.ecn.ce.to_string()),
    ("retransmitted", |l| l.row.retransmitted.to_string()),
    ("missing", |l| l.row.missing.to_string()),
    ("reordered", |l| l.row.reordered.to_string()),
    ("duplicates", |l| l.row.duplicates.to_string()),
    ("icrc.good", |l| l.row.icrc.good.to_string()),
    ("icrc.bad", |l| l.row.icrc.bad.to_string()),
    ("icrc.unchecked", |l| l.row.icrc.unchecked.to_string()),
    ("truncated", |l| l.row.truncated.to_string()),
    ("disbelieved", |l| l.disbelieved.to_string()),
    ("path_mtu", |l| some(l.path_mtu)),
    ("goodput_bytes", |l| l.goodput_bytes.to_string()),
    ("bps_before_cnp", |l| some(l.bps_before_cnp)),
    ("bps_after_cnp", |l| some(l.bps_after_cnp)),
    ("outstanding_requests", |l| some(l.outstanding_requests)),
    ("outstanding_bytes", |l| some(l.outstanding_bytes)),
    ("outstanding_requests_max", |l| some(l.outstanding_requests_max)),
    ("outstanding_bytes_max", |l| some(l.outstanding_bytes_max)),
    ("ack_rtt.p50", |l| seconds(l.ack_rtt, |t| t.p50)),
    ("ack_rtt.p99", |l| seconds(l.ack_rtt, |t| t.p99)),
    ("read_latency.p50", |l| seconds(l.read_latency, |t| t.p50)),
    ("read_latency.p99", |l| seconds(l.read_latency, |t| t.p99)),
];

/// A time as people read it.
pub fn brief(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1}us", s * 1e6),
        s if s < 1.0 => format!("{:.1}ms", s * 1e3),
        s => format!("{s:.2}s"),
    }
}

/// Requests and bytes under way, as `4/64K`.
fn under_way(requests: Option<u32>, bytes: Option<u64>) -> String {
    let (Some(n), Some(b)) = (requests, bytes) else { return "-".to_owned() };
    match b {
        0..10_240 => format!("{n}/{b}"),
        10_240..10_485_760 => format!("{n}/{}K", b >> 10),
        _ => format!("{n}/{}M", b >> 20),
    }
}

fn text(out: &mut impl Write, lines: impl Iterator<Item = Line>) -> io::Result<()> {
    let head = [
        "flow",
        "pair",
        "source",
        "destination",
        "QP",
        "type",
        "packets",
        "bytes",
        "msgs",
        "again",
        "dup",
        "miss",
        "late",
        "NAK",
        "RNR",
        "CE",
        "CNP",
        "badICRC",
        "out",
        "outmax",
        "rtt50",
        "rtt99",
    ];
    let mut table: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    for l in lines {
        let r = &l.row;
        let time = |f: fn(Times) -> f64| l.ack_rtt.or(l.read_latency).map_or("-".to_owned(), |t| brief(f(t)));
        table.push(vec![
            r.id.to_string(),
            r.pair.map_or("-".to_owned(), |p| {
                format!("{p}{}", if l.pair_confidence.is_some_and(|c| c < 0.7) { "?" } else { "" })
            }),
            r.src.to_string(),
            r.dst.to_string(),
            format!("{:#x}", r.dest_qp),
            r.transport.to_owned(),
            r.packets.to_string(),
            r.bytes.to_string(),
            r.messages.to_string(),
            r.retransmitted.to_string(),
            r.duplicates.to_string(),
            r.missing.to_string(),
            r.reordered.to_string(),
            r.naks.total().to_string(),
            r.rnr_naks.to_string(),
            r.ecn.ce.to_string(),
            r.cnps.to_string(),
            r.icrc.bad.to_string(),
            under_way(l.outstanding_requests, l.outstanding_bytes),
            under_way(l.outstanding_requests_max, l.outstanding_bytes_max),
            time(|t| t.p50),
            time(|t| t.p99),
        ]);
    }
    let widths: Vec<usize> =
        (0..head.len()).map(|i| table.iter().filter_map(|r| r.get(i)).map(String::len).max().unwrap_or(0)).collect();
    for row in &table {
        let mut line = String::new();
        for (i, (cell, w)) in row.iter().zip(&widths).enumerate() {
            let left = matches!(i, 2..=5);
            let cell = if left { format!("{cell:<w$}") } else { format!("{cell:>w$}") };
            line.push_str(&cell);
            line.push_str("  ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
