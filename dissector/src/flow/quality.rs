//! How far a capture can be trusted: cut packets, clock, drops of the recorder itself.

use super::Place;
use crate::capture::Timestamp;

/// What is known about the capture as such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    latest: Timestamp,
    begin: Timestamp,
    started: bool,
    /// Times that the clock went backwards.
    pub backwards: u64,
    /// By how much at the most, nanoseconds.
    pub backwards_max: i64,
    /// The first packet that is earlier than the one before it.
    pub backwards_packet: u64,
    /// RoCE packets that the capture cut.
    pub cut: u64,
    /// Bytes kept of the longest cut packet: the snap length, if the capture had one.
    pub snap: usize,
    /// Acknowledges that were cut before they say whether they acknowledge or refuse.
    pub answers_cut: u64,
    /// Packets that the recorder says it dropped (pcapng statistics); set by whoever reads the file.
    pub dropped: u64,
    /// The file ends inside a record; set by whoever reads the file.
    pub unfinished: bool,
    /// Number of the last packet.
    pub last_number: u64,
}

impl Quality {
    /// Looks at a packet's time.
    pub fn clock(&mut self, place: Place) {
        self.last_number = place.number;
        let back = self.latest.since(place.at);
        if self.started && back > 0 {
            if self.backwards == 0 {
                self.backwards_packet = place.number;
            }
            self.backwards += 1;
            self.backwards_max = self.backwards_max.max(back);
        } else {
            self.latest = place.at;
        }
        if !self.started {
            (self.started, self.begin) = (true, place.at);
        }
    }

    /// Time of the first packet.
    pub const fn begin(&self) -> Timestamp {
        self.begin
    }

    /// Time of the latest packet.
    pub const fn end(&self) -> Timestamp {
        self.latest
    }

    /// Looks at whether a packet is cut, and how much of it was captured.
    pub fn cut(&mut self, cut: bool, captured: usize) {
        if cut {
            self.cut += 1;
            self.snap = self.snap.max(captured);
        }
    }
}
