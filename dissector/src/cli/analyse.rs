//! Reads a capture through the analysis: what `flows`, `check` and `stats` have in common.

use std::path::{Path, PathBuf};

use crate::capture::{OpenError, ReadError, Reader};
use crate::flow::{Analyzer, PacketInfo, Place};
use crate::frame::icrc::{self, Verdict, Why};
use crate::frame::{Frame, LinkType};
use crate::wire::{Packet, ROCE_UDP_PORT};

/// What to read, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Input {
    /// Capture: pcap or pcapng, also gzip, zstd or lz4; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Do not verify invariant CRCs (about twice as fast)
    #[arg(long)]
    pub no_icrc: bool,
    /// Speed of the links, for the length of pauses
    #[arg(long, value_name = "GBIT/S", default_value_t = crate::flow::asides::DEFAULT_GBIT)]
    pub link_speed: f64,
    /// Preference, as `roce.port:4791`
    #[arg(short = 'o', value_name = "NAME:VALUE", value_parser = preference)]
    pub preference: Vec<u16>,
}

fn preference(text: &str) -> Result<u16, String> {
    let value = text.strip_prefix("roce.port:").ok_or("the only preference is roce.port, as in roce.port:4791")?;
    value.parse().map_err(|_| format!("`{value}` is no UDP port"))
}

/// A capture that has been read.
#[derive(Debug)]
pub struct Read {
    /// The analysis of what could be read.
    pub analyzer: Analyzer,
    /// Where reading stopped, if that was before the end.
    pub error: Option<ReadError>,
}

/// Looks at every packet as well; `None` for the packet when the frame holds no complete BTH.
pub trait Look {
    /// One frame.
    fn look(&mut self, place: Place, frame: &Frame<'_>, packet: Option<(&Packet<'_>, Verdict, &PacketInfo)>);
}

impl Look for () {
    fn look(&mut self, _: Place, _: &Frame<'_>, _: Option<(&Packet<'_>, Verdict, &PacketInfo)>) {}
}

impl Input {
    /// Reads the file to its end, or as far as it goes.
    pub fn read(&self, look: &mut impl Look) -> Result<Read, OpenError> {
        let port = self.preference.last().copied().unwrap_or(ROCE_UDP_PORT);
        read(&self.file, !self.no_icrc, port, self.link_speed, look)
    }
}

/// Reads a capture to its end, or as far as it goes. `gbit` is the speed of its links in Gbit/s.
pub fn read(file: &Path, verify: bool, port: u16, gbit: f64, look: &mut impl Look) -> Result<Read, OpenError> {
    let mut reader = Reader::open(file)?;
    let mut analyzer = Analyzer::default();
    analyzer.link_speed(gbit);
    let error = loop {
        match reader.next() {
            Ok(Some(r)) => {
                let place = Place { number: r.number, at: r.at };
                let frame = Frame::parse(r.bytes, r.wire_len as usize, LinkType(r.link), port);
                match frame.packet() {
                    Some(Ok(packet)) => {
                        let verdict = if verify { icrc::verify(&frame, &packet) } else { Verdict::Unchecked(Why::Off) };
                        let info = analyzer.push(place, &frame, &packet, verdict);
                        look.look(place, &frame, Some((&packet, verdict, &info)));
                    }
                    _ => {
                        analyzer.other(place, &frame);
                        look.look(place, &frame, None);
                    }
                }
            }
            Ok(None) => break None,
            Err(e) => break Some(e),
        }
    };
    analyzer.settle();
    analyzer.recorder(reader.dropped().unwrap_or(0), error.is_some());
    Ok(Read { analyzer, error })
}
