//! RDMA WRITEs and READs tied to the buffers that an upper protocol advertised: by R_Key, then by PSN.
//!
//! The owner of a buffer advertises key, address and length in a message; the peer writes there or reads from
//! there. Which message a data packet belongs to is known by the key of its RETH; Middle and Last packets and
//! READ responses have none, so they are placed by their distance in PSNs from the packet that had.

use std::collections::{HashMap, VecDeque};

use crate::wire::opcode::{Kind, Position};
use crate::wire::{Packet, Psn};

/// Buffers remembered per connection; the oldest go first.
const MAX_BUFFERS: usize = 4096;
/// READ requests remembered per direction.
const MAX_READS: usize = 256;

/// A buffer that a message advertised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// What the message is called by: NVMe command id, RPC XID, iSCSI task tag.
    pub tag: u32,
    /// Start.
    pub va: u64,
    /// Bytes.
    pub len: u64,
    /// Frame of the message.
    pub advertised: u64,
    /// First and last frame that moved data, 0 if none did.
    pub frames: (u64, u64),
    /// Bytes moved, repeats included.
    pub moved: u64,
}

/// Which way data move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// RDMA WRITE into the buffer.
    Write,
    /// RDMA READ request for the buffer.
    ReadRequest,
    /// Data out of the buffer.
    ReadResponse,
}

/// What a data packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Which way.
    pub way: Way,
    /// Key of the buffer.
    pub r_key: u32,
    /// Buffer that was advertised under the key; `None` if its message was not seen.
    pub buffer: Option<Buffer>,
    /// Offset in the buffer (from the address of the RETH if the buffer is unknown).
    pub offset: u64,
    /// Frame of the READ request that a response answers.
    pub request: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    r_key: u32,
    psn: Psn,
    /// Packets that the message has at most.
    packets: u32,
    offset: u64,
    /// Bytes of a full packet; 0 until known.
    step: u64,
    frame: u64,
}

#[derive(Debug, Default)]
struct Direction {
    write: Option<Running>,
    reads: VecDeque<Running>,
}

/// Buffers and running transfers of one connection.
#[derive(Debug, Default)]
pub struct Transfers {
    buffers: HashMap<u32, Buffer, foldhash::quality::RandomState>,
    order: VecDeque<u32>,
    /// By whether the packet goes to the passive end.
    ways: [Direction; 2],
}

impl Transfers {
    /// Remembers a buffer; a key that is advertised again means the new one.
    pub fn advertise(&mut self, r_key: u32, tag: u32, va: u64, len: u64, frame: u64) {
        let buffer = Buffer { tag, va, len, advertised: frame, frames: (0, 0), moved: 0 };
        match self.buffers.entry(r_key) {
            std::collections::hash_map::Entry::Occupied(mut e) => {
                // the same message sent again keeps what is known
                let known = e.get_mut();
                if known.tag != tag || known.va != va || known.len != len {
                    *known = buffer;
                }
            }
            std::collections::hash_map::Entry::Vacant(e) => {
                e.insert(buffer);
                self.order.push_back(r_key);
            }
        }
        if self.order.len() > MAX_BUFFERS
            && let Some(old) = self.order.pop_front()
        {
            self.buffers.remove(&old);
        }
    }

    /// Buffers and READs that are remembered.
    #[expect(clippy::len_without_is_empty, reason = "a weight, nobody asks whether it is nothing")]
    pub fn len(&self) -> usize {
        self.order.len() + self.ways.iter().map(|w| w.reads.len()).sum::<usize>()
    }

    /// The buffer under a key.
    pub fn buffer(&self, r_key: u32) -> Option<Buffer> {
        self.buffers.get(&r_key).copied()
    }

    /// Takes a data packet; `to_passive` says which way it goes, `mtu` is the path MTU if it is known.
    pub fn push(&mut self, p: &Packet<'_>, frame: u64, to_passive: bool, mtu: Option<u32>) -> Option<Moved> {
        let op = p.op?;
        let psn = p.bth.psn();
        let bytes = p.payload_len as u64;
        let full = mtu.map_or(0, u64::from);
        match op.kind {
            Kind::Write => {
                let running = if let Some(reth) = p.ext.reth {
                    let step = if op.position == Position::First { bytes } else { full };
                    let packets = count(reth.dma_len().into(), step);
                    let offset = self.offset(reth.r_key(), reth.va());
                    let r = Running { r_key: reth.r_key(), psn, packets, offset, step, frame };
                    self.ways[usize::from(to_passive)].write = Some(r);
                    r
                } else {
                    self.ways[usize::from(to_passive)].write?
                };
                let offset = running.place(psn)?;
                Some(self.moved(Way::Write, running.r_key, offset, bytes, frame, None))
            }
            Kind::ReadRequest => {
                let reth = p.ext.reth?;
                let offset = self.offset(reth.r_key(), reth.va());
                let packets = if full == 0 { 0 } else { count(reth.dma_len().into(), full) };
                let reads = &mut self.ways[usize::from(to_passive)].reads;
                reads.push_back(Running { r_key: reth.r_key(), psn, packets, offset, step: full, frame });
                if reads.len() > MAX_READS {
                    reads.pop_front();
                }
                Some(self.moved(Way::ReadRequest, reth.r_key(), offset, 0, frame, None))
            }
            Kind::ReadResponse => {
                // the answer comes the other way
                let reads = &mut self.ways[usize::from(!to_passive)].reads;
                let run = reads.iter_mut().rev().find(|r| {
                    let d = psn.distance(r.psn);
                    d >= 0 && (r.packets == 0 || d.cast_unsigned() < r.packets)
                })?;
                if op.position == Position::First && run.step == 0 {
                    run.step = bytes;
                }
                let (r_key, request, offset) = (run.r_key, run.frame, run.place(psn)?);
                Some(self.moved(Way::ReadResponse, r_key, offset, bytes, frame, Some(request)))
            }
            _ => None,
        }
    }

    fn offset(&self, r_key: u32, va: u64) -> u64 {
        self.buffers.get(&r_key).map_or(0, |b| va.wrapping_sub(b.va))
    }

    fn moved(&mut self, way: Way, r_key: u32, offset: u64, bytes: u64, frame: u64, request: Option<u64>) -> Moved {
        if let Some(b) = self.buffers.get_mut(&r_key).filter(|_| way != Way::ReadRequest) {
            if b.frames.0 == 0 {
                b.frames.0 = frame;
            }
            b.frames.1 = frame;
            b.moved = b.moved.saturating_add(bytes);
        }
        Moved { way, r_key, buffer: self.buffer(r_key), offset, request }
    }
}

impl Running {
    fn place(&self, psn: Psn) -> Option<u64> {
        let d = psn.distance(self.psn);
        if d < 0 || self.packets != 0 && d.cast_unsigned() >= self.packets {
            return None;
        }
        Some(self.offset.wrapping_add(u64::from(d.cast_unsigned()).saturating_mul(self.step)))
    }
}

/// Packets that `len` bytes take; 0 if that cannot be told.
fn count(len: u64, step: u64) -> u32 {
    if step == 0 { 0 } else { u32::try_from(len.div_ceil(step).max(1)).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{BthFields, Reth};

    fn packet(op: u8, psn: u32, reth: Option<(u64, u32, u32)>, len: usize) -> Vec<u8> {
        let mut b = BthFields::new(op, 7, psn).emit().to_vec();
        if let Some((va, key, dma)) = reth {
            b.extend(Reth::emit(va, key, dma));
        }
        if matches!(op, 0x0d | 0x0f | 0x10) {
            b.extend([0x1f, 0, 0, 1]);
        }
        b.extend(vec![0; len]);
        b.extend([0; 4]);
        b
    }

    fn push(t: &mut Transfers, b: &[u8], frame: u64, to_passive: bool) -> Option<Moved> {
        t.push(&Packet::parse(b, b.len()).unwrap(), frame, to_passive, Some(1024))
    }

    #[test]
    fn a_write_in_three_packets() {
        let mut t = Transfers::default();
        t.advertise(0x1234, 5, 0x1000, 3000, 1);
        let first = packet(0x06, 0xff_fffe, Some((0x1000, 0x1234, 3000)), 1024);
        let m = push(&mut t, &first, 2, false).unwrap();
        assert_eq!((m.buffer.unwrap().tag, m.offset), (5, 0));
        // lost: 0xffffff; over the wrap
        let m = push(&mut t, &packet(0x08, 0, None, 952), 3, false).unwrap();
        assert_eq!((m.offset, m.buffer.unwrap().frames, m.buffer.unwrap().moved), (2048, (2, 3), 1976));
        // the other direction, and beyond the end, are something else
        assert_eq!(push(&mut t, &packet(0x08, 0, None, 10), 4, true), None);
        assert_eq!(push(&mut t, &packet(0x07, 1, None, 1024), 4, false), None);
    }

    #[test]
    fn a_read_answered_the_other_way() {
        let mut t = Transfers::default();
        t.advertise(0x99, 7, 0x8000, 2048, 1);
        let m = push(&mut t, &packet(0x0c, 50, Some((0x8400, 0x99, 1024)), 0), 2, false).unwrap();
        assert_eq!((m.way, m.offset, m.buffer.unwrap().moved), (Way::ReadRequest, 1024, 0));
        let m = push(&mut t, &packet(0x10, 50, None, 1024), 3, true).unwrap();
        assert_eq!((m.way, m.offset, m.request), (Way::ReadResponse, 1024, Some(2)));
        assert_eq!(push(&mut t, &packet(0x10, 51, None, 1024), 4, true), None);
    }

    #[test]
    fn bounded() {
        let mut t = Transfers::default();
        for n in 0..10_000 {
            t.advertise(n, n, 0, 1, 1);
            push(&mut t, &packet(0x0c, n, Some((0, n, 1024)), 0), 2, false);
        }
        assert!(t.buffers.len() <= MAX_BUFFERS && t.ways[0].reads.len() <= MAX_READS);
        assert!(t.buffer(9_999).is_some() && t.buffer(0).is_none());
    }
}
