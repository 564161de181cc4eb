//! Recordings played on both ends of a [`Pair`], looped, for as long as wanted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::captures;
use crate::netns::Pair;
use crate::raw::RawSocket;
use crate::traffic::{Change, Recording};

/// One connection of the demonstration: a recording under other addresses and QP numbers.
struct Stream {
    recording: Recording,
    /// When each frame is sent, after the start of the round; pauses of the recording are shortened.
    at: Vec<Duration>,
    change: Change,
    next: usize,
    round_start: Instant,
}

/// What was sent, by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames from `a0` to `b0`.
    pub to_b: u64,
    /// Frames from `b0` to `a0`.
    pub to_a: u64,
}

/// The mix of the demonstration: what each line shows, and how many copies of it run side by side.
const MIX: &[(&str, u8)] = &[
    ("rc_write_bw", 3),
    ("rc_read_bw", 1),
    ("rc_send_pingpong", 2),
    ("ud_send_bw", 1),
    ("uc_write_bw", 1),
    ("op_mixed", 1),
    ("ipv6_write", 1),
    ("vlan_write", 1),
    ("ecn_ce_out", 1),
    ("loss_in_write", 1),
    ("loss_uc_send", 1),
    ("rnr_one_outstanding", 1),
    ("op_mtu256", 1),
];

/// Pauses of the recordings are cut to this, so that there is always something to see.
const LONGEST_PAUSE: Duration = Duration::from_millis(4);
/// Frames of one stream are at least this far apart.
const SHORTEST_PAUSE: Duration = Duration::from_micros(100);

/// Plays the mix on a pair until `stop` is set. Ends with what was sent.
pub fn mix(pair: &Pair, stop: &AtomicBool) -> Result<Sent> {
    let a = pair.a.run(|| RawSocket::open("a0"))?.context("cannot open a packet socket on a0")?;
    let b = pair.b.run(|| RawSocket::open("b0"))?.context("cannot open a packet socket on b0")?;
    let start = Instant::now();
    let mut streams = Vec::new();
    for (name, copies) in MIX {
        let recording = Recording::open(&captures().join(format!("{name}.pcap")))?;
        let mut at = Vec::with_capacity(recording.frames.len());
        let mut t = Duration::ZERO;
        let mut before = 0;
        for f in &recording.frames {
            let pause = Duration::from_nanos(f.after_ns.saturating_sub(before));
            before = f.after_ns;
            t += pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            at.push(t);
        }
        for copy in 0..*copies {
            let n = u32::try_from(streams.len())?;
            streams.push(Stream {
                recording: recording.clone(),
                at: at.clone(),
                change: Change {
                    host: copy * 10,
                    qp: n * 0x40,
                    round: 0,
                    macs: Some((Pair::MAC_A, [0x02, 0x77, 0, 0, 0, 0xff])),
                },
                next: 0,
                round_start: start,
            });
        }
    }
    let mut queue: BinaryHeap<Reverse<(Instant, usize)>> =
        streams.iter().enumerate().filter_map(|(i, s)| Some(Reverse((start + *s.at.first()?, i)))).collect();
    let mut sent = Sent::default();
    while !stop.load(Ordering::Relaxed) {
        let Some(Reverse((when, i))) = queue.pop() else { break };
        std::thread::sleep(when.saturating_duration_since(Instant::now()));
        let s = &mut streams[i];
        let frame = &s.recording.frames[s.next];
        let bytes = s.recording.changed(frame, s.change);
        if frame.from_client {
            a.send(&bytes)?;
            sent.to_b += 1;
        } else {
            b.send(&bytes)?;
            sent.to_a += 1;
        }
        s.next += 1;
        if s.next == s.recording.frames.len() {
            s.next = 0;
            s.change.round += 1;
            s.round_start += *s.at.last().unwrap_or(&LONGEST_PAUSE) + LONGEST_PAUSE;
        }
        queue.push(Reverse((s.round_start + s.at[s.next], i)));
    }
    Ok(sent)
}
