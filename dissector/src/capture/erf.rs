//! Native files of Endace capture cards: records one after the other, no file header. What a record holds is up to
//! the frame's walk, as with ERF records inside of pcap (link type 197).

use super::Timestamp;
use super::reader::{Place, Step};

/// Link type of records that start with an ERF header.
pub const LINK: u16 = 197;
/// Bytes of a record's header, without extensions.
const HEADER_LEN: usize = 16;
/// Record types run from 1 to here, with the highest bit for extension headers.
const LAST_TYPE: u8 = 48;
/// A record of padding: no packet.
const PAD: u8 = 48;
/// Records that are looked at to tell an ERF file, which has no magic number.
const LOOKED_AT: usize = 20;
/// Neighbours in a file are no further apart than this, seconds: other data is.
const APART: u64 = 7 * 24 * 3600;

/// Fields of a record header: time (seconds and a fraction of 2^32, little-endian), type, length of the record and on
/// the wire (big-endian).
fn header(bytes: &[u8]) -> Option<(u64, u8, u16, u16)> {
    let [t0, t1, t2, t3, t4, t5, t6, t7, kind, _, r0, r1, _, _, w0, w1] = *bytes.first_chunk::<HEADER_LEN>()?;
    let time = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
    Some((time, kind & 0x7f, u16::from_be_bytes([r0, r1]), u16::from_be_bytes([w0, w1])))
}

/// Whether a record can start so.
pub fn may_start(bytes: &[u8]) -> bool {
    header(bytes).is_some_and(|(_, kind, len, wire)| {
        (1..=LAST_TYPE).contains(&kind) && usize::from(len) >= HEADER_LEN && (wire > 0 || kind == PAD)
    })
}

/// Whether a file that starts so is one: its first records follow each other without a gap and in time. A single
/// record must be the whole file.
pub fn is_one(mut bytes: &[u8]) -> bool {
    let mut before = None;
    for n in 0..LOOKED_AT {
        if bytes.is_empty() {
            return n > 0;
        }
        let Some((time, _, len, _)) = header(bytes) else { return n > 1 };
        if !may_start(bytes) || before.is_some_and(|b: u64| (time >> 32).abs_diff(b) > APART) {
            return false;
        }
        before = Some(time >> 32);
        match bytes.get(usize::from(len)..) {
            Some(rest) => bytes = rest,
            // cut inside a record, whose header follows the one before
            None => return n > 0,
        }
    }
    true
}

/// The record at the start of `bytes`.
pub fn step(bytes: &[u8]) -> Step {
    let Some((time, kind, len, _)) = header(bytes) else { return Step::More(HEADER_LEN) };
    let end = usize::from(len);
    if end < HEADER_LEN {
        return Step::Malformed(format!("an ERF record that says it is {end} bytes long: the file is damaged here"));
    }
    if bytes.len() < end {
        return Step::More(end);
    }
    if kind == PAD {
        return Step::Skip(end);
    }
    let nanos = ((time & 0xffff_ffff) * 1_000_000_000 + (1 << 31)) >> 32;
    let at = i64::try_from((time >> 32) * 1_000_000_000 + nanos).unwrap_or(i64::MAX);
    Step::Record(Place {
        at: Timestamp(at),
        data: 0..end,
        options: end..end,
        big_endian: true,
        interface: 0,
        link: LINK,
        // the walk knows what of it was on the wire
        wire_len: len.into(),
        end,
    })
}
