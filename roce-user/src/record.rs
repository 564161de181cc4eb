//! `-w FILE.pcapng`: what the kernel program reports, with the losses written into the file.

use std::path::Path;

use anyhow::Result;
use dissector::capture::options::{PacketOptions, code};
use dissector::capture::{Interface, Record, WriteError, Writer};
use dissector::frame::LinkType;

use crate::ring;
use crate::snapshot::{Clock, monotonic};

/// Capture file of a live view.
#[derive(Debug)]
pub struct Recorder {
    writer: Writer,
    interfaces: Vec<Interface>,
    number: u64,
    /// Packets written, by interface.
    per_interface: Vec<u64>,
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
        let mut r = Self { writer, interfaces, number: 0, per_interface: vec![0; taps.len()], lost: 0 };
        // a file that cannot be written is told at once
        r.flush()?;
        Ok(r)
    }

    /// Puts into the file what was recorded so far: a reader sees it, and it is there whatever becomes of this process.
    pub fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(cannot)
    }

    /// Writes a packet. `lost_so_far` is how many the ring could not take since the start; what was lost since
    /// the packet before is noted at this one.
    pub fn packet(&mut self, tap: usize, event: &ring::Event, lost_so_far: u64) -> Result<()> {
        self.number += 1;
        if let Some(n) = self.per_interface.get_mut(tap) {
            *n += 1;
        }
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
        self.writer.write(&record, &self.interfaces).map_err(cannot)
    }

    /// Packets written.
    pub const fn packets(&self) -> u64 {
        self.number
    }

    /// Packets lost that the file notes.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Completes the file with the sums of each interface: packets recorded, and packets that the ring could not take
    /// (`lost`, in the order of the interfaces). What was lost after the last packet stands nowhere else.
    pub fn finish(mut self, lost: &[u64]) -> Result<()> {
        let now = Clock::now().wall(monotonic());
        for (n, lost) in lost.iter().enumerate() {
            let seen = self.per_interface.get(n).copied().unwrap_or(0);
            self.writer.statistics(n, &self.interfaces, now, seen.saturating_add(*lost), *lost).map_err(cannot)?;
        }
        self.writer.finish().map_err(cannot)
    }
}

/// The error names the file and the reason itself.
#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
fn cannot(e: WriteError) -> anyhow::Error {
    anyhow::anyhow!("cannot record to {e}")
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend(u16::try_from(value.len()).unwrap_or(0).to_le_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use dissector::capture::{Reader, Timestamp};

    use super::*;

    #[test]
    fn losses_stand_at_the_next_packet_and_at_the_end() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("x.pcapng");
        let mut r = Recorder::create(&path, &["eth0".to_owned(), "eth1".to_owned()], 128).expect("created");
        let event = ring::Event {
            at: Timestamp(1_000_000_000),
            kinds: 0,
            wire_len: 100,
            outgoing: false,
            opcode: 0,
            dest_qp: 1,
            psn: 0,
            missing: 0,
            bytes: vec![0; 60],
        };
        for lost in [0, 3, 3] {
            r.packet(1, &event, lost).expect("written");
        }
        // two more after the last packet, and one on the other interface
        r.finish(&[1, 5]).expect("completed");
        let mut reader = Reader::open(&path).expect("it opens");
        let mut losses = Vec::new();
        while let Some(p) = reader.next().expect("whole") {
            losses.push(p.options.drop_count());
        }
        assert_eq!(losses, [None, Some(3), None]);
        assert_eq!(reader.dropped(), Some(6));
        let names: Vec<_> = reader.interfaces().iter().map(|i| (i.name.as_deref(), i.dropped)).collect();
        assert_eq!(names, [(Some("eth1"), Some(5)), (Some("eth0"), Some(1))]);
    }
}
