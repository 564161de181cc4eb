//! `-w FILE.pcapng`: what the kernel program reports, with the losses written into the file.

use std::path::Path;

use anyhow::{Context as _, Result};
use dissector::capture::options::{PacketOptions, code};
use dissector::capture::{Interface, Record, Writer};
use dissector::frame::LinkType;

use crate::ring;

/// Capture file of a live view.
#[derive(Debug)]
pub struct Recorder {
    writer: Option<Writer>,
    name: String,
    interfaces: Vec<Interface>,
    number: u64,
    lost: u64,
}

impl Recorder {
    /// Makes the file. `taps` are the interfaces, in the order of their indices.
    pub fn create(path: &Path, taps: &[String], snaplen: u32) -> Result<Self> {
        let named_pcapng = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("pcapng"));
        if !named_pcapng {
            anyhow::bail!(
                "-w {}: the file has to be named .pcapng, since only that format holds losses and directions",
                path.display()
            );
        }
        let writer = Writer::create(path, None)?;
        let interfaces = taps
            .iter()
            .map(|name| {
                let mut i = Interface::new(LinkType::ETHERNET.0, snaplen);
                i.name = Some(name.clone());
                // nanoseconds
                i.ts_resolution = 9;
                i.description = Some("RoCE packets seen by roce-top, at XDP (in) and TC (out)".to_owned());
                i
            })
            .collect();
        Ok(Self { writer: Some(writer), name: path.display().to_string(), interfaces, number: 0, lost: 0 })
    }

    /// Writes a packet. `lost_so_far` is how many the ring could not take since the start; what was lost since
    /// the packet before is noted at this one.
    pub fn packet(&mut self, tap: usize, event: &ring::Event, lost_so_far: u64) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        self.number += 1;
        let mut options = Vec::with_capacity(24);
        let direction: u32 = if event.outgoing { 2 } else { 1 };
        option(&mut options, code::FLAGS, &direction.to_le_bytes());
        if lost_so_far > self.lost {
            option(&mut options, code::DROP_COUNT, &(lost_so_far - self.lost).to_le_bytes());
            self.lost = lost_so_far;
        }
        option(&mut options, code::END, &[]);
        let record = Record {
            number: self.number,
            at: event.at,
            interface: u32::try_from(tap).unwrap_or(0),
            link: LinkType::ETHERNET.0,
            bytes: &event.bytes,
            wire_len: event.wire_len,
            options: PacketOptions::new(&options, false),
        };
        writer.write(&record, &self.interfaces).with_context(|| format!("cannot record to {}", self.name))
    }

    /// Packets written.
    pub const fn packets(&self) -> u64 {
        self.number
    }

    /// Packets lost that the file notes.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Completes the file.
    pub fn finish(&mut self) -> Result<()> {
        match self.writer.take() {
            Some(w) => w.finish().with_context(|| format!("cannot complete {}", self.name)),
            None => Ok(()),
        }
    }
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend(u16::try_from(value.len()).unwrap_or(0).to_le_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}
