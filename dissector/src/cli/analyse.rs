//! Reads a capture through the analysis: what `flows`, `check` and `stats` have in common.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use indicatif::ProgressBar;

use crate::capture::{Chunk, OpenError, ReadError, Reader, Record};
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
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    read_with(file, verify, port, gbit, threads.min(4), look)
}

/// The same with a number of threads: one reads and analyses, the others verify ICRCs. The analysis sees the
/// packets in the order of the file, so its answers do not depend on the number.
pub fn read_with(
    file: &Path,
    verify: bool,
    port: u16,
    gbit: f64,
    threads: usize,
    look: &mut impl Look,
) -> Result<Read, OpenError> {
    let mut reader = Reader::open(file)?;
    let mut analyzer = Analyzer::default();
    analyzer.link_speed(gbit);
    // results come when everything is read, so the terminal is free until then
    let bar = super::progress::bar(&reader, true);
    let error = if verify && threads > 1 {
        in_threads(&mut reader, &mut analyzer, port, threads - 1, look, &bar)
    } else {
        let mut n = 0u32;
        loop {
            n = n.wrapping_add(1);
            if n.is_multiple_of(1 << 14) {
                bar.set_position(reader.progress().0);
            }
            match reader.next() {
                Ok(Some(r)) => one(&r, &mut analyzer, port, look, |frame, packet| {
                    if verify { icrc::verify(frame, packet) } else { Verdict::Unchecked(Why::Off) }
                }),
                Ok(None) => break None,
                Err(e) => break Some(e),
            }
        }
    };
    bar.finish_and_clear();
    analyzer.settle();
    analyzer.recorder(reader.dropped().unwrap_or(0), error.is_some());
    Ok(Read { analyzer, error })
}

fn one(
    r: &Record<'_>,
    analyzer: &mut Analyzer,
    port: u16,
    look: &mut impl Look,
    verdict: impl FnOnce(&Frame<'_>, &Packet<'_>) -> Verdict,
) {
    let place = Place { number: r.number, at: r.at };
    let mut frame = Frame::new(r.bytes, r.wire_len as usize, LinkType(r.link));
    frame.walk(port);
    // looked at where it is: moving it costs as much as reading it
    if let Some(Ok(packet)) = &frame.packet() {
        let verdict = verdict(&frame, packet);
        let info = analyzer.push(place, &frame, packet, verdict);
        look.look(place, &frame, Some((packet, verdict, &info)));
    } else {
        analyzer.other(place, &frame);
        look.look(place, &frame, None);
    }
}

/// Chunks go round the workers and come back in the same order. What is under way is bounded: a few chunks a
/// worker.
fn in_threads(
    reader: &mut Reader,
    analyzer: &mut Analyzer,
    port: u16,
    workers: usize,
    look: &mut impl Look,
    bar: &ProgressBar,
) -> Option<ReadError> {
    const WAITING: usize = 2;
    std::thread::scope(|scope| {
        let lines: Vec<_> = (0..workers)
            .map(|_| {
                let (give, take) = sync_channel::<Chunk>(WAITING);
                let (done, back) = sync_channel::<(Chunk, Vec<Verdict>)>(WAITING);
                scope.spawn(move || {
                    for chunk in take {
                        let verdicts = chunk
                            .records()
                            .filter_map(|r| {
                                let frame = Frame::parse(r.bytes, r.wire_len as usize, LinkType(r.link), port);
                                let packet = frame.packet()?.ok()?;
                                Some(icrc::verify(&frame, &packet))
                            })
                            .collect();
                        if done.send((chunk, verdicts)).is_err() {
                            return;
                        }
                    }
                });
                (give, back)
            })
            .collect();
        let (mut given, mut taken) = (0usize, 0usize);
        let mut end: Option<Option<ReadError>> = None;
        loop {
            while end.is_none() && given - taken < workers * WAITING {
                match reader.next_chunk() {
                    Ok(Some(chunk)) => {
                        bar.set_position(reader.progress().0);
                        let (give, _) = lines.get(given % workers)?;
                        if give.send(chunk).is_err() {
                            return None;
                        }
                        given += 1;
                    }
                    Ok(None) => end = Some(None),
                    Err(e) => end = Some(Some(e)),
                }
            }
            if taken == given {
                return end.flatten();
            }
            let (chunk, verdicts) = lines.get(taken % workers).and_then(|(_, back)| back.recv().ok())?;
            taken += 1;
            let mut verdicts = verdicts.into_iter();
            for r in chunk.records() {
                one(&r, analyzer, port, look, |_, _| verdicts.next().unwrap_or(Verdict::Unchecked(Why::Off)));
            }
        }
    })
}
