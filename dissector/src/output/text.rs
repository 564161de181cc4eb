//! One line a packet: number, time, source, destination, protocol, length, info.

use std::io::Write as _;

use super::time;
use super::value::printable;
use crate::dissect::{Input, RecordInfo, Tree, Wanted, summary};

/// How the time column counts (`-t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeStyle {
    /// Since the first packet.
    #[default]
    Relative,
    /// Local time of day.
    Absolute,
    /// Local date and time.
    AbsoluteDate,
    /// UTC time of day.
    Utc,
    /// UTC date and time.
    UtcDate,
    /// Since the packet before.
    Delta,
    /// Since the packet shown before.
    DeltaShown,
    /// Since 1970 UTC.
    Epoch,
}

impl TimeStyle {
    /// The time of a record in this style.
    pub fn write(self, r: &RecordInfo<'_>, out: &mut Vec<u8>) {
        let d = usize::from(r.decimals);
        match self {
            Self::Relative => time::seconds(r.at.since(r.first), d, out),
            Self::Absolute => time::clock(r.at.0, false, false, d, out),
            Self::AbsoluteDate => time::clock(r.at.0, true, false, d, out),
            Self::Utc => time::clock(r.at.0, false, true, d, out),
            Self::UtcDate => time::clock(r.at.0, true, true, d, out),
            Self::Delta => time::seconds(r.at.since(r.previous), d, out),
            Self::DeltaShown => time::seconds(r.shown.map_or(0, |s| r.at.since(s)), d, out),
            Self::Epoch => time::seconds(r.at.0, d, out),
        }
    }
}

/// The one-line format.
#[derive(Clone, Debug)]
pub struct Line {
    /// Time column.
    pub time: TimeStyle,
    /// Bytes below the line.
    pub hex: bool,
    /// A tab between columns in place of a space (`-T tabs`).
    pub tabs: bool,
}

impl Line {
    /// Which fields it reads from the tree: those that the hex dump marks.
    pub fn wanted(&self) -> Wanted {
        if self.hex { Wanted::ALL } else { Wanted::NONE }
    }

    /// One packet.
    pub fn packet(&self, input: &Input<'_, '_>, tree: &Tree<'_>, out: &mut Vec<u8>) {
        let r = &input.record;
        let mut time = Vec::with_capacity(32);
        self.time.write(r, &mut time);
        let (src, dst) = summary::endpoints(input);
        let mut info = String::new();
        summary::info(input, &mut info);
        let gap = if self.tabs { '\t' } else { ' ' };
        // writing to a Vec cannot fail; the digits of a time are ASCII
        let _ = writeln!(
            out,
            "{:>5}{gap}{:>10}{gap}{src:>12}{gap}→{gap}{dst:<12}{gap}{}{gap}{}{gap}{}",
            r.number,
            String::from_utf8_lossy(&time),
            summary::protocol(input),
            input.frame.lengths().1,
            printable(&info).trim_end(),
        );
        if self.hex {
            super::hex::dump(input.frame.bytes, Some(tree), out);
            out.push(b'\n');
        }
    }
}
