//! The main command: packets of a capture, one line each or in another format, filtered, or written to a file.
//!
//! The file is read in chunks. Where what a packet prints depends on others only through [`Clock`], chunks are printed
//! by several threads and put in order again.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context as _, anyhow, bail};
use indicatif::ProgressBar;

use super::session::{Clock, Job, Lane, Session};
use crate::capture::{Chunk, Interface, Reader, Record, Writer};
use crate::filter::Filter;
use crate::output::text::{Line, TimeStyle};
use crate::output::xml::{Pdml, Psml};
use crate::output::{Format, columns::Columns, csv::Csv, field, json::Json, tree::Detail};
use crate::service::DecodeAs;
use crate::wire::ROCE_UDP_PORT;

/// Output format (`-T`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// One line a packet, or the tree with -V.
    #[default]
    Text,
    /// One line a packet, with tabs between the columns.
    Tabs,
    /// The columns of that line as XML.
    Psml,
    /// Every field as XML.
    Pdml,
    /// The fields of -e, in columns.
    Fields,
    /// JSON, nested as the tree is.
    Json,
    /// JSON for Elasticsearch's bulk interface, one line a packet.
    Ek,
    /// The fields of -e as CSV (RFC 4180), with a header.
    Csv,
}

/// Kind of file (`-F`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileType {
    /// Classic, with nanoseconds if the input has them.
    Pcap,
    /// The same under tshark's name for it with nanoseconds.
    Nsecpcap,
    /// pcapng.
    Pcapng,
}

/// Time format (`-t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TimeFormat {
    /// Seconds since the first packet.
    R,
    /// Local time of day.
    A,
    /// Local date and time.
    Ad,
    /// Seconds since the packet before.
    D,
    /// Seconds since the packet shown before.
    Dd,
    /// UTC time of day.
    U,
    /// UTC date and time.
    Ud,
    /// Seconds since 1970 UTC.
    E,
}

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Showing packets")]
pub struct Args {
    /// Capture: pcap or pcapng, also packed with gzip, zstd or lz4; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "read")]
    file: Option<PathBuf>,
    /// Capture, as tshark spells it.
    #[arg(short = 'r', value_name = "FILE", conflicts_with = "file")]
    read: Option<PathBuf>,
    /// Only packets that match this display filter (Wireshark's syntax).
    #[arg(short = 'Y', value_name = "FILTER")]
    filter: Option<String>,
    /// Not supported: tshark numbers packets anew behind a read filter.
    #[arg(short = 'R', value_name = "FILTER", hide = true)]
    read_filter: Option<String>,
    /// Stop after so many packets of the file.
    #[arg(short = 'c', value_name = "N")]
    count: Option<u64>,
    /// Every field of every packet.
    #[arg(short = 'V')]
    tree: bool,
    /// Bytes in hex, with the place of each field.
    #[arg(short = 'x')]
    hex: bool,
    /// As -V, but only these protocols in full (names separated by commas), the others one line each.
    #[arg(short = 'O', value_name = "PROTOCOLS", value_delimiter = ',')]
    only: Vec<String>,
    /// Accepted for tshark's sake: names are never resolved.
    #[arg(short = 'n')]
    no_names: bool,
    /// Accepted for tshark's sake: names are never resolved.
    #[arg(short = 'N', value_name = "FLAGS", hide = true)]
    names: Option<String>,
    /// Accepted for tshark's sake: every line is written at once where somebody reads along.
    #[arg(short = 'l', hide = true)]
    line_buffered: bool,
    /// Accepted for tshark's sake: there is one pass.
    #[arg(short = '2', hide = true)]
    two_passes: bool,
    /// Accepted for tshark's sake: standard error has errors only.
    #[arg(short = 'Q', hide = true)]
    very_quiet: bool,
    /// Accepted for tshark's sake: what a payload is, is never guessed.
    #[arg(long = "disable-heuristic", value_name = "NAME", hide = true)]
    no_guess: Vec<String>,
    /// Accepted for tshark's sake: times are in seconds.
    #[arg(short = 'u', value_name = "FORMAT", value_parser = ["s"], hide = true)]
    seconds: Option<String>,
    /// Accepted for tshark's sake: memory is bounded without it.
    #[arg(short = 'M', value_name = "N", hide = true)]
    reset_after: Option<u64>,
    /// Accepted for tshark's sake: no line is coloured, as none is by tshark where nobody looks on.
    #[arg(long = "color", hide = true)]
    colour: bool,
    /// Print no packets, unless -P, -V, -x, -O or -T asks for them.
    #[arg(short = 'q')]
    quiet: bool,
    /// Write the packets (those that match) to a file: pcapng if its name ends so, else pcap.
    #[arg(short = 'w', value_name = "OUT")]
    write: Option<PathBuf>,
    /// Kind of file that -w writes, if its name does not say: pcap or pcapng.
    #[arg(short = 'F', value_name = "TYPE", value_enum, requires = "write", hide_possible_values = true)]
    file_type: Option<FileType>,
    /// Print packets although -w or -q is given (so do -V, -x, -O and -T).
    #[arg(short = 'P')]
    print: bool,
    /// Time column: r relative, a absolute, ad with date, u UTC, ud with date, d delta, dd delta shown, e epoch.
    #[arg(short = 't', value_name = "FORMAT", value_enum, default_value = "r", hide_possible_values = true)]
    time: TimeFormat,
    /// Format: text (unless said otherwise), tabs, fields, json, ek, csv, psml or pdml.
    #[arg(short = 'T', value_name = "FORMAT", value_enum, hide_possible_values = true)]
    format: Option<OutputFormat>,
    /// A field to print (several -e: several columns).
    #[arg(short = 'e', value_name = "FIELD")]
    fields: Vec<String>,
    /// Setting of -T fields: header=y|n, separator=/t|/s|CHAR, occurrence=f|l|a, aggregator=CHAR, quote=d|s|n, bom=y|n.
    #[arg(short = 'E', value_name = "NAME=VALUE")]
    columns: Vec<String>,
    /// What a payload is, where communication management does not say: port:N=PROTOCOL, qp:N=PROTOCOL or
    /// service:N=PROTOCOL (nvme, rpcrdma, iser, smbdirect, rds, data).
    #[arg(long, value_name = "RULE")]
    decode_as: Vec<String>,
    /// As tshark: udp.port==N,infiniband makes N the port of RoCEv2.
    #[arg(short = 'd', value_name = "udp.port==N,infiniband")]
    decode: Vec<String>,
    /// Preference: roce.port:N is the UDP destination port that means RoCEv2 (4791).
    #[arg(short = 'o', value_name = "NAME:VALUE")]
    preferences: Vec<String>,
}

impl Args {
    fn format(&self) -> anyhow::Result<Format> {
        let fields = self.fields.iter().map(|n| field(n)).collect::<Result<Vec<_>, _>>().map_err(|e| anyhow!(e))?;
        let format = self.format.unwrap_or_default();
        if !self.columns.is_empty() && format != OutputFormat::Fields {
            bail!("-E goes with -T fields");
        }
        let line = matches!(format, OutputFormat::Text | OutputFormat::Tabs);
        if !fields.is_empty() && (line || matches!(format, OutputFormat::Psml | OutputFormat::Pdml)) {
            bail!("-e goes with -T fields, json, ek or csv");
        }
        if fields.is_empty() && matches!(format, OutputFormat::Fields | OutputFormat::Csv) {
            bail!("-T fields and -T csv need fields: -e FIELD (`roce-dissect fields` lists all)");
        }
        // as tshark: who asks for a form of printing gets it, whatever else there is
        let asked = self.print || self.tree || self.hex || !self.only.is_empty() || self.format.is_some();
        if !asked && (self.quiet || self.write.is_some()) {
            return Ok(Format::Quiet);
        }
        if self.write.as_ref().is_some_and(|w| w.as_os_str() == "-") {
            bail!("-w - writes packets to standard output, where -P, -V, -x, -O or -T would print: name a file");
        }
        Ok(match format {
            OutputFormat::Text | OutputFormat::Tabs if self.tree || !self.only.is_empty() => {
                for name in &self.only {
                    field(name).map_err(|e| anyhow!("-O: {e}"))?;
                }
                Format::Tree(Detail { hex: self.hex, only: self.only.clone() })
            }
            OutputFormat::Text | OutputFormat::Tabs => {
                Format::Line(Line { time: self.time.into(), hex: self.hex, tabs: format == OutputFormat::Tabs })
            }
            OutputFormat::Psml => Format::Psml(Psml { time: self.time.into() }),
            OutputFormat::Pdml => {
                let file = self.read.as_deref().or(self.file.as_deref()).unwrap_or(std::path::Path::new("-"));
                Format::Pdml(Pdml { file: file.display().to_string() })
            }
            OutputFormat::Fields => {
                let mut c = Columns::new(fields);
                for option in &self.columns {
                    c.set(option).map_err(|e| anyhow!(e))?;
                }
                Format::Columns(c)
            }
            OutputFormat::Json => Format::Json(Json { fields, ek: false }),
            OutputFormat::Ek => Format::Json(Json { fields, ek: true }),
            OutputFormat::Csv => Format::Csv(Csv { fields }),
        })
    }

    fn rules(&self) -> anyhow::Result<DecodeAs> {
        let mut rules = DecodeAs::default();
        for text in &self.decode_as {
            rules.add(text).map_err(|e| anyhow!(e))?;
        }
        Ok(rules)
    }

    fn port(&self) -> anyhow::Result<u16> {
        let mut port = ROCE_UDP_PORT;
        for p in &self.preferences {
            match p.split_once(':') {
                Some(("roce.port" | "infiniband.rroce.port", value)) => {
                    port = value.trim().parse().with_context(|| format!("-o {p}: a port is a number up to 65535"))?;
                }
                _ => bail!("-o {p}: the only preference is roce.port:N"),
            }
        }
        for rule in &self.decode {
            let number = rule.strip_prefix("udp.port==").and_then(|r| r.split_once(','));
            match number.map(|(n, protocol)| (n.trim().parse(), protocol.trim())) {
                Some((Ok(n), "infiniband" | "rroce")) => port = n,
                _ => bail!("-d {rule}: udp.port==N,infiniband; for what RoCE carries there is --decode-as"),
            }
        }
        Ok(port)
    }

    fn filter(&self) -> anyhow::Result<Option<Filter>> {
        if self.read_filter.is_some() {
            bail!("-R: a read filter numbers packets anew, which is not done here; -Y keeps the numbers of the file");
        }
        self.filter.as_deref().map(Filter::compile).transpose().context("-Y")
    }
}

impl From<TimeFormat> for TimeStyle {
    fn from(t: TimeFormat) -> Self {
        match t {
            TimeFormat::R => Self::Relative,
            TimeFormat::A => Self::Absolute,
            TimeFormat::Ad => Self::AbsoluteDate,
            TimeFormat::D => Self::Delta,
            TimeFormat::Dd => Self::DeltaShown,
            TimeFormat::U => Self::Utc,
            TimeFormat::Ud => Self::UtcDate,
            TimeFormat::E => Self::Epoch,
        }
    }
}

/// Puts chunks of text on stdout in their order, with the separator between them.
struct Sink {
    out: io::StdoutLock<'static>,
    separator: &'static [u8],
    any: bool,
}

impl Sink {
    fn put(&mut self, text: &[u8]) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.any {
            self.out.write_all(self.separator)?;
        }
        self.any = true;
        self.out.write_all(text)?;
        self.out.flush()
    }
}

/// Shows a capture.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let format = args.format()?;
    let port = args.port()?;
    let filter = args.filter()?;
    let path = args.read.clone().or(args.file.clone()).ok_or_else(|| anyhow!("which FILE?"))?;
    let mut reader = Reader::open(&path)?;
    let mut writer = match &args.write {
        Some(w) => {
            let made = Writer::create(w, Some(&path))?;
            Some(match args.file_type {
                None => made,
                Some(FileType::Pcap | FileType::Nsecpcap) => made.in_format(crate::capture::Format::Pcap),
                Some(FileType::Pcapng) => made.in_format(crate::capture::Format::PcapNg),
            })
        }
        None => None,
    };
    let pcapng = reader.format() == crate::capture::Format::PcapNg;
    let job = Job::new(format, filter, port, pcapng).with_time(args.time.into());
    let format = job.format().clone();
    let mut sink = Sink { out: io::stdout().lock(), separator: format.separator(), any: false };
    let mut head = Vec::new();
    format.begin(&mut head);
    sink.out.write_all(&head)?;
    let bar = super::progress::bar(&reader, !io::stdout().is_terminal());
    let limit = args.count.unwrap_or(u64::MAX);
    let several = thread::available_parallelism().map_or(1, usize::from).min(16);
    // what is written keeps the order of the file anyway, and standard input shall show at once
    let alone = writer.is_some() || several == 1 || !job.independent() || path.as_os_str() == "-" || is_small(&path);
    // a wrong rule is an error whether or not it is needed
    let rules = args.rules()?;
    let read = if job.needs_no_tree() && writer.is_none() && path.as_os_str() != "-" {
        straight(&job, &mut reader, limit, &mut sink, &bar)
    } else if alone {
        let mut session = Session::new(job, rules);
        one_thread(&mut session, &mut reader, writer.as_mut(), limit, &mut sink, &bar)
    } else {
        many_threads(&job, &mut reader, several, limit, &mut sink, &bar)
    };
    bar.finish_and_clear();
    // what could be read has been printed; a format that has an end gets it, whatever ended the reading
    let mut tail = Vec::new();
    format.end(sink.any, &mut tail);
    match &read {
        Err(e) if is_our_pipe(e) => {}
        _ => {
            sink.out.write_all(&tail)?;
            sink.out.flush()?;
        }
    }
    if let Some(w) = writer {
        w.finish()?;
    }
    read?;
    Ok(ExitCode::SUCCESS)
}

fn is_our_pipe(e: &anyhow::Error) -> bool {
    super::is_closed_pipe(e)
}

/// Files that one thread reads faster than several start.
fn is_small(path: &std::path::Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() < 2 << 20)
}

/// Decimals of the time column: nine where the interface counts finer than microseconds.
fn decimals(interfaces: &[Interface], record: &Record<'_>) -> u8 {
    interfaces.get(record.interface as usize).map_or(6, |i| if i.ts_resolution & 0x7f > 6 { 9 } else { 6 })
}

fn one_thread(
    session: &mut Session,
    reader: &mut Reader,
    mut writer: Option<&mut Writer>,
    limit: u64,
    sink: &mut Sink,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut out = Vec::with_capacity(1 << 16);
    while let Some(chunk) = reader.next_chunk()? {
        out.clear();
        session.interfaces(reader.interfaces());
        for record in chunk.records() {
            if record.number > limit {
                break;
            }
            let kept = session.packet(&record, decimals(reader.interfaces(), &record), &mut out, |_, _| {});
            if kept && let Some(w) = writer.as_deref_mut() {
                w.write(&record, reader.interfaces())?;
            }
            if out.len() > 1 << 16 {
                sink.put(&out)?;
                out.clear();
            }
        }
        sink.put(&out)?;
        bar.set_position(reader.progress().0);
        if reader.packets() >= limit {
            break;
        }
    }
    Ok(())
}

/// Columns that stand in the headers: so little is done with a packet that to hand it to another thread costs more
/// than it saves, and the rest of the packet need not even be read where the file is mapped.
fn straight(job: &Job, reader: &mut Reader, limit: u64, sink: &mut Sink, bar: &ProgressBar) -> anyhow::Result<()> {
    const FULL: usize = 1 << 16;
    let mut lane = Lane::default();
    let mut out = Vec::with_capacity(FULL * 2);
    let end = loop {
        match reader.next() {
            Ok(Some(record)) if record.number <= limit => {
                job.packet(&record, &mut lane, None, 6, &mut out);
            }
            Ok(_) => break Ok(()),
            Err(e) => break Err(e),
        }
        if out.len() >= FULL {
            sink.put(&out)?;
            out.clear();
            bar.set_position(reader.progress().0);
        }
    };
    sink.put(&out)?;
    Ok(end?)
}

/// A chunk on its way to a thread.
struct Work {
    chunk: Chunk,
    clock: Clock,
    interfaces: Arc<[Interface]>,
}

fn many_threads(
    job: &Job,
    reader: &mut Reader,
    several: usize,
    limit: u64,
    sink: &mut Sink,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let mut to: Vec<SyncSender<Work>> = Vec::new();
        let mut from: Vec<Receiver<Vec<u8>>> = Vec::new();
        for _ in 0..several {
            let (send_work, work) = sync_channel::<Work>(1);
            let (send_text, text) = sync_channel::<Vec<u8>>(1);
            to.push(send_work);
            from.push(text);
            scope.spawn(move || {
                let mut lane = Lane::default();
                for w in work {
                    let mut out = Vec::with_capacity(w.chunk.len() * 64);
                    lane.clock = w.clock;
                    lane.interfaces = w.interfaces;
                    for record in w.chunk.records().take_while(|r| r.number <= limit) {
                        let d = decimals(&lane.interfaces, &record);
                        job.packet(&record, &mut lane, None, d, &mut out);
                    }
                    if send_text.send(out).is_err() {
                        break; // nobody prints any more
                    }
                }
            });
        }
        let mut clock = Clock::default();
        let mut interfaces: Arc<[Interface]> = Arc::default();
        // chunk n goes to thread n modulo their number; its text is taken in the same order
        let (mut sent, mut taken) = (0usize, 0usize);
        let mut result = Ok(());
        loop {
            let chunk = match reader.next_chunk() {
                Ok(Some(c)) => c,
                Ok(None) => break,
                Err(e) => {
                    result = Err(anyhow::Error::from(e));
                    break;
                }
            };
            let times = chunk.records().next().map(|r| r.at).zip(chunk.records().last().map(|r| r.at));
            let Some((first, last)) = times else { continue };
            clock.first.get_or_insert(first);
            if interfaces.len() != reader.interfaces().len() {
                interfaces = reader.interfaces().into();
            }
            let work = Work { chunk, clock, interfaces: Arc::clone(&interfaces) };
            clock.previous = Some(last);
            // two chunks are with each thread at most: take a text before giving more
            if sent - taken >= 2 * several {
                let Some(text) = from.get(taken % several).and_then(|f| f.recv().ok()) else { break };
                sink.put(&text)?;
                taken += 1;
            }
            let Some(thread) = to.get(sent % several) else { break };
            if thread.send(work).is_err() {
                break;
            }
            sent += 1;
            bar.set_position(reader.progress().0);
            if reader.packets() >= limit {
                break;
            }
        }
        drop(to);
        while taken < sent {
            let Some(text) = from.get(taken % several).and_then(|f| f.recv().ok()) else {
                result = result.and(Err(anyhow!("a worker thread ended before its packets were printed")));
                break;
            };
            sink.put(&text)?;
            taken += 1;
        }
        result
    })
}
