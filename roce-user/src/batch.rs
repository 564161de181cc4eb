//! Reports without a screen, one an interval: text as `top -b`, or one JSON object a line.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use anyhow::{Context as _, Result};
use dissector::flow::row::{FlowRow, Totals};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde::ser::SerializeSeq;

use crate::aggregate::{Aggregate, Flow, Keep, Metric, Report, per_second};
use crate::columns::{self, Align, Column, Line, Mode, Style};
use crate::matcher::Matcher;
use crate::say;
use crate::source::{Source, State};
use crate::stop::Stop;
use crate::units::{self, Throughput};

/// How to report.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between reports.
    pub interval: Duration,
    /// How many; without end if `None`.
    pub reports: Option<u64>,
    /// One JSON object a line instead of text.
    pub json: bool,
    /// List at most so many flows, the busiest first; all if `None`.
    pub top: Option<usize>,
    /// Bits or bytes in text.
    pub throughput: Throughput,
    /// Characters a line of text may take.
    pub width: usize,
    /// Only flows that pass are listed.
    pub filter: Option<Matcher>,
}

/// Reports until enough were written, the source ends, the stop comes, or nobody reads any more. When it
/// is stopped, what came until then is reported too, also if the stop came while a report was written: no packet is
/// missing.
pub fn run(
    source: &mut dyn Source,
    options: &Options,
    stop: &Stop,
    out: impl Write,
    mut seen: impl FnMut(&Report),
) -> Result<()> {
    let mut out = BufWriter::new(out);
    // nobody sees plots here
    let mut aggregate = Aggregate::new(Keep { histories: 0, ..Keep::default() });
    let begin = source.counts()?;
    seen(&aggregate.push(begin.at, begin.totals, begin.flows));
    let mut written = 0u64;
    let mut said = Vec::new();
    while options.reports.is_none_or(|n| written < n) {
        let Some(counts) = source.next(options.interval, stop)? else { break };
        let last = counts.last;
        let report = aggregate.push(counts.at, counts.totals, counts.flows);
        seen(&report);
        let result = if options.json {
            // text carries them itself; why a source broke is said once, at the end
            if source.broken().is_none() {
                said = warn(&source.state().notices, &said);
            }
            json(&mut out, &report, options)
        } else {
            text(&mut out, &report, &source.state(), options)
        };
        match result.and_then(|()| out.flush()) {
            Ok(()) => written += 1,
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(e) => return Err(e).context("cannot write the report"),
        }
        if last {
            break;
        }
    }
    source.finish()?;
    match source.broken() {
        Some(why) => Err(anyhow::anyhow!(why)),
        None => Ok(()),
    }
}

/// Says what the person should know on standard error, unless it stood there an interval before (with other
/// numbers); gives what to compare with next time.
fn warn(notices: &[String], before: &[String]) -> Vec<String> {
    let shape = |n: &str| n.replace(|c: char| c.is_ascii_digit(), "");
    for n in notices.iter().filter(|n| !before.contains(&shape(n))) {
        say!("{n}");
    }
    notices.iter().map(|n| shape(n)).collect()
}

/// Flows of a report, busiest first where there is a limit.
fn listed<'a>(report: &'a Report, options: &Options, style: &Style) -> Vec<Line<'a>> {
    let wanted = |f: &Flow| options.filter.as_ref().is_none_or(|m| m.matches(f, report.interval_s));
    let lines = report.flows.iter().enumerate().filter(|(_, f)| wanted(f)).map(|(i, f)| (i, Line::Flow(f)));
    let order = columns::order(lines, Column::Metric(Metric::Packets), true, style);
    let flow = |i: usize| report.flows.get(i).map(Line::Flow);
    order.into_iter().take(options.top.unwrap_or(usize::MAX)).filter_map(flow).collect()
}

#[derive(Serialize)]
struct JsonReport<'a> {
    at: f64,
    interval_s: f64,
    totals: JsonTotals<'a>,
    flows: JsonFlows<'a>,
}

#[derive(Serialize)]
struct JsonTotals<'a> {
    #[serde(flatten)]
    totals: &'a Totals,
    pps: f64,
    bps: f64,
}

struct JsonFlows<'a> {
    lines: Vec<Line<'a>>,
    interval_s: f64,
}

#[derive(Serialize)]
struct JsonFlow<'a> {
    #[serde(flatten)]
    row: &'a FlowRow,
    pps: f64,
    bps: f64,
}

impl Serialize for JsonFlows<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(Some(self.lines.len()))?;
        for line in &self.lines {
            if let Line::Flow(f) = line {
                seq.serialize_element(&JsonFlow {
                    row: &f.row,
                    pps: per_second(f.delta(Metric::Packets), self.interval_s),
                    bps: per_second(f.delta(Metric::Bytes).saturating_mul(8), self.interval_s),
                })?;
            }
        }
        seq.end()
    }
}

/// One object and a line feed. Counts are since the start; `pps` and `bps` are of the interval, in `totals`
/// those of RoCE packets.
pub fn json(out: &mut impl Write, report: &Report, options: &Options) -> io::Result<()> {
    let style = Style { interval_s: report.interval_s, at: report.at, ..Style::default() };
    let object = JsonReport {
        at: report.at,
        interval_s: report.interval_s,
        totals: JsonTotals { totals: &report.totals, pps: report.pps(), bps: report.bps() },
        flows: JsonFlows { lines: listed(report, options, &style), interval_s: report.interval_s },
    };
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

/// Seconds since the epoch as time of day.
pub fn clock(at: f64, zone: &TimeZone) -> String {
    jiff::Timestamp::from_duration(jiff::SignedDuration::try_from_secs_f64(at).unwrap_or_default())
        .map_or_else(|_| "--:--:--".to_owned(), |t| t.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S").to_string())
}

/// A head of a few lines and a line a flow.
pub fn text(out: &mut impl Write, report: &Report, state: &State, options: &Options) -> io::Result<()> {
    let style = Style {
        mode: Mode::Rates,
        throughput: options.throughput,
        interval_s: report.interval_s,
        at: report.at,
        ..Style::default()
    };
    let taps: Vec<String> = state.taps.iter().map(|t| format!("{} ({})", t.name, t.how)).collect();
    writeln!(
        out,
        "roce-top - {}, interval {:.3} s, {}",
        clock(report.at, &TimeZone::system()),
        report.interval_s,
        taps.join(", ")
    )?;
    let t = &report.totals;
    writeln!(
        out,
        "RoCE now: {} pkt/s, {}{}, {} msg/s; since the start: {} packets, {} bytes",
        units::si(report.pps()),
        units::si(per_second(t_bytes(report).saturating_mul(options.throughput.per_byte()), report.interval_s)),
        options.throughput.unit(),
        units::si(report.rate(Metric::Messages)),
        t.roce_packets,
        t.roce_bytes,
    )?;
    write!(
        out,
        "Flows: {} active in the interval, {} known; other packets since the start {}",
        report.active,
        report.flows.len(),
        t.other_packets
    )?;
    if t.overflow_packets > 0 {
        write!(out, "; NOT IN ANY FLOW {} (the flow table is full)", t.overflow_packets)?;
    }
    if t.events_lost > 0 {
        write!(out, "; events lost {}", t.events_lost)?;
    }
    writeln!(out)?;
    let marks: Vec<String> =
        [Metric::Ce, Metric::Cnps, Metric::Naks, Metric::RnrNaks, Metric::Repeats, Metric::Missing, Metric::Reordered]
            .iter()
            .map(|m| {
                let (total, new) = (report.total.get(*m), report.delta.get(*m));
                let name = Column::Metric(*m).title(&style);
                if new > 0 { format!("{name} {total} (+{new})") } else { format!("{name} {total}") }
            })
            .collect();
    writeln!(out, "Marks since the start (and in the interval): {}", marks.join(", "))?;
    for notice in &state.notices {
        writeln!(out, "Note: {notice}")?;
    }
    writeln!(out)?;
    let lines = listed(report, options, &style);
    if lines.is_empty() {
        writeln!(
            out,
            "{}\n",
            if options.filter.is_some() { "no flow passes the filter" } else { "no RoCE flow seen yet" }
        )?;
        return Ok(());
    }
    writeln!(out, "Flows, columns with /S per second in the interval, all others since the start:")?;
    table(out, &lines, &style, options.width)?;
    writeln!(out)
}

fn t_bytes(report: &Report) -> u64 {
    report.totals_delta.roce_bytes
}

fn table(out: &mut impl Write, lines: &[Line<'_>], style: &Style, width: usize) -> io::Result<()> {
    let address = lines
        .iter()
        .map(|l| Column::Source.cell(l, style).len().max(Column::Destination.cell(l, style).len()))
        .max()
        .unwrap_or(0);
    let width_of = |c: Column| match c {
        Column::Source | Column::Destination => address.max(usize::from(c.width(style))),
        _ => usize::from(c.width(style)),
    };
    let mut chosen: Vec<Column> = Vec::new();
    let mut used = 0;
    for c in Column::BY_IMPORTANCE {
        let room = width_of(c) + 1;
        // the first ones always: a report without them says nothing
        if used + room > width + 1 && chosen.len() >= 6 {
            break;
        }
        used += room;
        chosen.push(c);
    }
    let line = |cell: &dyn Fn(Column) -> String| {
        let cells = Column::IN_ORDER.iter().filter(|c| chosen.contains(c)).map(|c| {
            let (w, cell) = (width_of(*c), cell(*c));
            match c.align() {
                Align::Left => format!("{cell:<w$}"),
                Align::Right => format!("{cell:>w$}"),
            }
        });
        let mut done = cells.collect::<Vec<_>>().join(" ").trim_end().to_owned();
        done.push('\n');
        done
    };
    out.write_all(line(&|c| c.title(style).to_owned()).as_bytes())?;
    for l in lines {
        out.write_all(line(&|c| c.cell(l, style)).as_bytes())?;
    }
    Ok(())
}

/// How a flow is written in one line of prose.
pub fn describe(flow: &Flow) -> String {
    format!("{} > {} qp {:#x}", flow.row.src, flow.row.dst, flow.row.dest_qp)
}
