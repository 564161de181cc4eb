//! A capture as a source: its own clock, the analyser's counts.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use dissector::capture::{Reader, Timestamp};
use dissector::flow::row::FlowRow;
use dissector::flow::{Analyzer, PacketInfo, Place, finding};
use dissector::frame::icrc;
use dissector::frame::{Frame, LinkType};
use dissector::wire::aeth::Verdict as Said;
use dissector::wire::{Kind, Packet};

use crate::cli::Speed;
use crate::source::{Cumulative, Event, Notice, Source, State, Tap, Whom};
use crate::stop::Stop;

/// Bytes of a packet that an event keeps: every header.
const HEADER: usize = 256;
/// Least time between two runs of the rules.
const RULES: Duration = Duration::from_secs(2);
/// Most findings that are shown.
const FINDINGS: usize = 200;
/// Events that are kept between two reports; later ones push out earlier ones.
const EVENTS: usize = 4096;

/// A packet that was read ahead of its time.
#[derive(Debug, Default)]
struct Ahead {
    number: u64,
    at: Timestamp,
    link: u16,
    wire_len: usize,
    bytes: Vec<u8>,
}

/// A capture that is played.
#[derive(Debug)]
pub struct Replay {
    reader: Reader,
    analyzer: Analyzer,
    port: u16,
    speed: Speed,
    ahead: Option<Ahead>,
    /// Capture time of the last report's end.
    now: Timestamp,
    /// Wall clock of the same moment.
    due: Option<Instant>,
    ended: bool,
    reported: bool,
    broken: Option<String>,
    /// As of the last report.
    rows: Vec<Arc<FlowRow>>,
    /// When the rules were last asked, and what they said.
    findings: Option<(Instant, Vec<Notice>)>,
    events: std::collections::VecDeque<Event>,
}

impl Replay {
    /// Opens a capture. Its first packet's time is the start.
    pub fn open(path: &Path, port: u16, speed: Speed) -> Result<Self> {
        let reader = Reader::open(path)?;
        let mut replay = Self {
            reader,
            analyzer: Analyzer::default(),
            port,
            speed,
            ahead: None,
            now: Timestamp::default(),
            due: None,
            ended: false,
            reported: false,
            broken: None,
            rows: Vec::new(),
            findings: None,
            events: std::collections::VecDeque::new(),
        };
        replay.read_ahead();
        replay.now = replay.ahead.as_ref().map_or(Timestamp::default(), |a| a.at);
        Ok(replay)
    }

    fn read_ahead(&mut self) {
        let mut buffer = self.ahead.take().map(|a| a.bytes).unwrap_or_default();
        match self.reader.next() {
            Ok(Some(r)) => {
                buffer.clear();
                buffer.extend_from_slice(r.bytes);
                self.ahead = Some(Ahead {
                    number: r.number,
                    at: r.at,
                    link: r.link,
                    wire_len: r.wire_len as usize,
                    bytes: buffer,
                });
            }
            Ok(None) => self.end(None),
            Err(e) => self.end(Some(e.to_string())),
        }
    }

    fn end(&mut self, broken: Option<String>) {
        self.ended = true;
        self.findings = None;
        self.analyzer.settle();
        self.analyzer.recorder(self.reader.dropped().unwrap_or(0), broken.is_some());
        self.broken = broken;
    }

    /// Plays what was on the wire up to `until` (a clock that goes backwards counts as the time reached);
    /// `false` if the wish to stop came first.
    fn play(&mut self, until: Timestamp, stop: &Stop) -> bool {
        let mut since = 0u32;
        while let Some(a) = self.ahead.take_if(|a| a.at <= until) {
            let place = Place { number: a.number, at: a.at };
            let link = LinkType(a.link);
            let frame = Frame::parse(&a.bytes, a.wire_len, link, self.port);
            match frame.packet() {
                Some(Ok(packet)) => {
                    let verdict = icrc::verify(&frame, &packet);
                    let info = self.analyzer.push(place, &frame, &packet, verdict);
                    if let Some(kind) = notable(&packet, &info) {
                        if self.events.len() == EVENTS {
                            self.events.pop_front();
                        }
                        self.events.push_back(Event {
                            at: a.at.seconds(),
                            kind,
                            header: a.bytes.get(..HEADER).unwrap_or(&a.bytes).to_vec(),
                            wire_len: a.wire_len,
                            link,
                        });
                    }
                }
                _ => self.analyzer.other(place, &frame),
            }
            // the buffer is used again
            self.ahead = Some(a);
            self.read_ahead();
            since += 1;
            if since.is_multiple_of(4096) && stop.is_set() {
                return false;
            }
        }
        true
    }
}

fn notable(packet: &Packet<'_>, info: &PacketInfo) -> Option<&'static str> {
    let op = packet.op?;
    match (op.kind, packet.ext.aeth.map(|a| a.syndrome().verdict())) {
        (Kind::Cnp, _) => Some("CNP"),
        (_, Some(Said::Nak(_))) => Some("NAK"),
        (_, Some(Said::Rnr(_))) => Some("RNR"),
        _ if info.repeat.is_some() => Some("repeat"),
        _ if info.gap > 0 => Some("gap"),
        _ if info.reordered => Some("late"),
        _ => None,
    }
}

fn after(at: Timestamp, d: Duration) -> Timestamp {
    Timestamp(at.0.saturating_add(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)))
}

impl Replay {
    /// The rules look at the whole analysis: not more often than a person reads, and once more at the end.
    fn findings(&mut self) -> Vec<Notice> {
        if let Some((at, said)) = &self.findings
            && at.elapsed() < RULES
        {
            return said.clone();
        }
        let said: Vec<Notice> = finding::check(&self.analyzer)
            .into_iter()
            .take(FINDINGS)
            .map(|f| Notice {
                code: f.code.to_owned(),
                severity: f.severity.name(),
                title: f.title,
                detail: f.detail,
                flow: f.flow.and_then(|id| self.analyzer.flow(id)).map(|f| Whom::of(&f.row())),
            })
            .collect();
        self.findings = Some((Instant::now(), said.clone()));
        said
    }
}

impl Source for Replay {
    fn counts(&mut self) -> Result<Cumulative> {
        // the rows of flows that rest stay the same ones
        let mut before = std::mem::take(&mut self.rows).into_iter();
        let share = |row: FlowRow| before.next().filter(|b| **b == row).unwrap_or_else(|| Arc::new(row));
        self.rows = self.analyzer.rows().into_iter().map(share).collect();
        Ok(Cumulative {
            at: self.now.seconds(),
            totals: *self.analyzer.totals(),
            flows: self.rows.clone(),
            last: false,
        })
    }

    fn next(&mut self, interval: Duration, stop: &Stop) -> Result<Option<Cumulative>> {
        // a capture without packets is one report, too
        if self.ended && self.reported {
            return Ok(None);
        }
        self.reported = true;
        let mut until = after(self.now, interval);
        match self.speed {
            Speed::Max => {
                // an interval in which nothing was on the wire makes no report of its own
                if let Some(a) = &self.ahead
                    && a.at > until
                {
                    until = a.at;
                }
            }
            Speed::Times(speed) => {
                let wait = interval.div_f64(speed);
                let due = self.due.unwrap_or_else(Instant::now) + wait;
                self.due = Some(due);
                if !stop.sleep_until(due) {
                    return Ok(None);
                }
            }
        }
        if !self.play(until, stop) {
            return Ok(None);
        }
        // the last interval ends with the last packet
        let last = self.ahead.is_none().then(|| self.analyzer.flows().map(|f| f.row().last).fold(0.0, f64::max));
        let counts = self.counts()?;
        let at = match last {
            Some(last) if last > self.now.seconds() => last.min(until.seconds()),
            Some(_) => self.now.seconds(),
            None => until.seconds(),
        };
        self.now = until;
        Ok(Some(Cumulative { at, ..counts }))
    }

    fn state(&mut self) -> State {
        let (read, size) = self.reader.progress();
        let how = match (self.ended, size) {
            (true, _) => "capture, at its end".to_owned(),
            (false, Some(size)) if size > 0 => format!("capture, {} %", (read.saturating_mul(100) / size).min(100)),
            (false, _) => "capture".to_owned(),
        };
        let findings = self.findings();
        State {
            taps: vec![Tap { name: self.reader.name().to_owned(), how }],
            finished: self.ended,
            notices: self.broken.iter().map(|b| format!("the file is not whole: {b}")).collect(),
            findings,
            every_packet: true,
            faults: Vec::new(),
        }
    }

    fn broken(&self) -> Option<String> {
        self.broken.clone()
    }

    fn events(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }
}
