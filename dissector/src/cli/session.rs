//! Packets of a capture, one after the other: dissected, remembered, filtered, printed.

use std::sync::Arc;

use crate::capture::{Interface, Record, Timestamp};
use crate::dissect::tree::Nodes;
use crate::dissect::ulp::{self, Conversations};
use crate::dissect::{
    self, Input, RecordInfo, Tree, Wanted, analysis, columns, record as frame_fields, transport, udp,
};
use crate::filter::Filter;
use crate::flow::{Analyzer, Place};
use crate::frame::{Frame, LinkType, icrc};
use crate::output::Format;
use crate::output::direct::Direct;
use crate::output::text::TimeStyle;
use crate::service::DecodeAs;

/// What a packet's times are counted from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// First packet of the file.
    pub first: Option<Timestamp>,
    /// Packet before.
    pub previous: Option<Timestamp>,
    /// Packet shown before.
    pub shown: Option<Timestamp>,
}

/// What one thread carries from packet to packet.
#[derive(Debug, Default)]
pub struct Lane {
    /// Times.
    pub clock: Clock,
    /// Interfaces that the file has named so far.
    pub interfaces: Arc<[Interface]>,
    nodes: Nodes,
    streams: Vec<udp::Stream>,
}

/// What is remembered from packet to packet for the sake of names and analysis.
#[derive(Debug)]
pub struct Memory {
    conversations: Conversations,
    analyzer: Analyzer,
    streams: udp::Streams,
}

impl Memory {
    /// Nothing seen yet.
    pub fn new(rules: DecodeAs) -> Self {
        Self {
            conversations: Conversations::new(rules),
            analyzer: Analyzer::default(),
            streams: udp::Streams::default(),
        }
    }
}

/// Fields that need the UDP conversations.
static STREAMS: [&dissect::Field; 3] = [&udp::STREAM, &udp::TIME_RELATIVE, &udp::TIME_DELTA];

/// What is done with each packet; several threads may share it.
#[derive(Debug)]
pub struct Job {
    format: Format,
    filter: Option<Filter>,
    wanted: Wanted,
    icrc: bool,
    streams: bool,
    /// How the time column counts.
    time: TimeStyle,
    port: u16,
    pcapng: bool,
    /// The columns, if they need no tree.
    direct: Option<Direct>,
}

impl Job {
    /// Packets that pass the filter are printed in this format; `port` is the UDP port of RoCEv2.
    pub fn new(format: Format, filter: Option<Filter>, port: u16, pcapng: bool) -> Self {
        let mut wanted = format.wanted();
        if let Some(f) = &filter {
            wanted.extend(f.wanted());
        }
        let icrc = matches!(format, Format::Line(_) | Format::Psml(_))
            || wanted.has_group(columns::GROUP)
            || wanted.has_any(&[&analysis::ICRC_STATUS, &analysis::ICRC_CALCULATED, &analysis::ICRC_REASON]);
        let direct = match &format {
            Format::Columns(c) if filter.is_none() => Direct::new(c),
            _ => None,
        };
        let streams = wanted.has_any(&STREAMS);
        let time = TimeStyle::default();
        Self { format, filter, wanted, icrc, streams, time, port, pcapng, direct }
    }

    /// Sets how the time column counts where it is asked for as a field.
    #[must_use]
    pub fn with_time(mut self, time: TimeStyle) -> Self {
        self.time = time;
        self
    }

    /// How packets are printed.
    pub const fn format(&self) -> &Format {
        &self.format
    }

    /// Whether all that is printed is read straight out of the headers.
    pub const fn needs_no_tree(&self) -> bool {
        self.direct.is_some()
    }

    /// Prints one packet, if the filter lets it through.
    #[inline]
    pub fn packet(
        &self,
        record: &Record<'_>,
        lane: &mut Lane,
        memory: Option<&mut Memory>,
        decimals: u8,
        out: &mut Vec<u8>,
    ) -> bool {
        if let Some(direct) = &self.direct {
            let mut frame = Frame::new(record.bytes, record.wire_len as usize, LinkType(record.link));
            frame.walk(self.port);
            direct.packet(frame.packet().as_ref().and_then(|p| p.as_ref().ok()), out);
            return true;
        }
        self.look(record, lane, memory, decimals, out, |_, _| {})
    }

    /// As [`Self::packet`]; `look` sees the tree and the bytes first.
    fn look(
        &self,
        record: &Record<'_>,
        lane: &mut Lane,
        memory: Option<&mut Memory>,
        decimals: u8,
        out: &mut Vec<u8>,
        look: impl FnOnce(&Tree<'_>, &[u8]),
    ) -> bool {
        let clock = &mut lane.clock;
        let first = *clock.first.get_or_insert(record.at);
        let info = RecordInfo {
            number: record.number,
            at: record.at,
            interface: self.pcapng.then_some(record.interface),
            on: lane.interfaces.get(record.interface as usize),
            options: record.options,
            streams: &[],
            first,
            previous: clock.previous.unwrap_or(record.at),
            shown: clock.shown,
            time: "",
            decimals,
        };
        let mut time = Vec::new();
        if self.wanted.has(&columns::COL_TIME) {
            self.time.write(&info, &mut time);
        }
        clock.previous = Some(record.at);
        let wire_len = record.wire_len as usize;
        let frame = Frame::parse(record.bytes, wire_len, LinkType(record.link), self.port);
        let packet = frame.packet();
        let icrc = match &packet {
            Some(Ok(p)) if self.icrc => Some(icrc::verify(&frame, p)),
            _ => None,
        };
        lane.streams.clear();
        let mut memory = memory;
        if self.streams
            && let Some(m) = memory.as_deref_mut()
        {
            m.streams.push(record.at, &frame, &mut lane.streams);
        }
        let (context, analysis) = match (&packet, memory) {
            (Some(Ok(p)), Some(m)) => {
                let place = Place { number: record.number, at: record.at };
                let verdict = icrc.unwrap_or(icrc::Verdict::Unchecked(icrc::Why::Off));
                let context = m.conversations.push(record.number, record.at, &frame, p);
                (Some(context), Some(m.analyzer.push(place, &frame, p, verdict)))
            }
            _ => (None, None),
        };
        let input = Input {
            record: RecordInfo { streams: &lane.streams, time: std::str::from_utf8(&time).unwrap_or(""), ..info },
            frame: &frame,
            packet: packet.as_ref(),
            icrc,
            context: context.as_ref(),
            analysis: analysis.as_ref(),
        };
        let mut tree = Tree::reusing(&self.wanted, std::mem::take(&mut lane.nodes));
        dissect::dissect(&input, &mut tree);
        look(&tree, record.bytes);
        let passes = self.filter.as_ref().is_none_or(|f| f.matches(&tree, record.bytes));
        if passes {
            if !out.is_empty() {
                out.extend_from_slice(self.format.separator());
            }
            self.format.packet(&input, &tree, out);
            lane.clock.shown = Some(record.at);
        }
        lane.nodes = tree.into_nodes();
        passes
    }

    /// Whether it matters what a payload is, or what became of a flow: then earlier packets do.
    pub fn remembers(&self) -> bool {
        let plain = [&transport::DATA, &transport::DATA_DATA, &transport::DATA_LEN];
        matches!(self.format, Format::Line(_) | Format::Psml(_))
            || self.wanted.has_any(analysis::FROM_ANALYSIS)
            || self.wanted.has_any(&plain)
            || self.streams
            || self.wanted.has_group(columns::GROUP)
            || ulp::GROUPS.iter().any(|g| self.wanted.has_group(*g))
    }

    /// Whether a packet's text needs no other packet.
    pub fn independent(&self) -> bool {
        !self.remembers() && !self.wanted.has(&frame_fields::TIME_DELTA_DISPLAYED)
    }
}

/// One thread's way through a capture.
#[derive(Debug)]
pub struct Session {
    job: Job,
    lane: Lane,
    memory: Option<Memory>,
}

impl Session {
    /// From the start of a capture.
    pub fn new(job: Job, rules: DecodeAs) -> Self {
        let memory = job.remembers().then(|| Memory::new(rules));
        Self { job, lane: Lane::default(), memory }
    }

    /// Makes trees hold what another filter reads as well.
    pub fn want(&mut self, filter: &Filter) {
        self.job.wanted.extend(filter.wanted());
    }

    /// Interfaces that the file has named so far.
    pub fn interfaces(&mut self, all: &[Interface]) {
        if self.lane.interfaces.len() != all.len() {
            self.lane.interfaces = all.into();
        }
    }

    /// What is done with each packet.
    pub const fn job(&self) -> &Job {
        &self.job
    }

    /// Prints one packet, if the filter lets it through; `look` sees every tree and the bytes first.
    pub fn packet(
        &mut self,
        record: &Record<'_>,
        decimals: u8,
        out: &mut Vec<u8>,
        look: impl FnOnce(&Tree<'_>, &[u8]),
    ) -> bool {
        self.job.look(record, &mut self.lane, self.memory.as_mut(), decimals, out, look)
    }
}
