//! The event ring: packets that the kernel program found worth a look, with their first bytes.

use std::mem::{offset_of, size_of};

use aya::Ebpf;
use aya::maps::{MapData, RingBuf};
use dissector::capture::Timestamp;
use dissector::wire::outer::VLAN_LEN;
use roce_ebpf::abi::event::EventHead;
use roce_ebpf::abi::tag::put_back;
use roce_ebpf::abi::{LongEvent, ShortEvent, global};

use crate::error::Error;
use crate::snapshot::Clock;

/// One reported packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it went by.
    pub at: Timestamp,
    /// Why it was reported, bits of [`roce_ebpf::abi::event::kind`].
    pub kinds: u32,
    /// Bytes on the wire.
    pub wire_len: u32,
    /// Out of the host (else into it).
    pub outgoing: bool,
    /// Opcode byte.
    pub opcode: u8,
    /// Destination QP.
    pub dest_qp: u32,
    /// PSN.
    pub psn: u32,
    /// PSNs missing before it.
    pub missing: u32,
    /// Its first bytes, from the link header on.
    pub bytes: Vec<u8>,
}

/// Reads the ring of one object. There may be one reader of each.
pub struct Events {
    ring: RingBuf<MapData>,
    clock: Clock,
    /// Records that no kernel program of ours can have written.
    pub malformed: u64,
}

impl Events {
    /// Takes the ring out of a loaded object.
    pub fn of(ebpf: &mut Ebpf) -> Result<Self, Error> {
        let bad = |why: &str| Error::Map { name: global::EVENT_RING.to_owned(), why: why.to_owned() };
        let map = ebpf.take_map(global::EVENT_RING).ok_or_else(|| bad("it is not there, or was taken before"))?;
        let ring = RingBuf::try_from(map).map_err(|e| bad(&e.to_string()))?;
        Ok(Self { ring, clock: Clock::now(), malformed: 0 })
    }

    /// The next event, if there is one.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            let item = self.ring.next()?;
            match decode(&item, self.clock) {
                Some(e) => return Some(e),
                None => self.malformed += 1,
            }
        }
    }

    /// For waiting until there is one.
    pub fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.ring)
    }
}

/// A copy of reported bytes, with the VLAN tag that the kernel kept beside them.
pub fn on_the_wire(tag: u32, bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(bytes.len() + VLAN_LEN);
    whole.extend_from_slice(bytes);
    if tag != 0 {
        whole.resize(bytes.len() + VLAN_LEN, 0);
        let there = put_back(tag, &mut whole, bytes.len());
        whole.truncate(there);
    }
    whole
}

fn decode(record: &[u8], clock: Clock) -> Option<Event> {
    if record.len() != size_of::<ShortEvent>() && record.len() != size_of::<LongEvent>() {
        return None;
    }
    const { assert!(offset_of!(ShortEvent, bytes) == size_of::<EventHead>()) };
    const { assert!(offset_of!(LongEvent, bytes) == size_of::<EventHead>()) };
    let (head, bytes) = record.split_at_checked(size_of::<EventHead>())?;
    // SAFETY: as long as the struct, which is plain data; unaligned reads are allowed.
    let head = unsafe { head.as_ptr().cast::<EventHead>().read_unaligned() };
    Some(Event {
        at: clock.wall(head.at),
        kinds: head.kinds,
        wire_len: head.wire_len,
        outgoing: head.direction != 0,
        opcode: head.opcode,
        dest_qp: head.dest_qp,
        psn: head.psn,
        missing: head.missing,
        bytes: on_the_wire(head.tag, bytes.get(..usize::from(head.cap_len))?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_any_length_are_looked_at() {
        let clock = Clock::now();
        for n in 0..600 {
            let mut b = vec![0u8; n];
            if let Some(len) = b.get_mut(offset_of!(EventHead, cap_len)..).and_then(|b| b.first_chunk_mut()) {
                *len = 500u16.to_ne_bytes();
            }
            assert!(decode(&b, clock).is_none(), "{n}");
        }
        let mut b = vec![7u8; size_of::<ShortEvent>()];
        if let Some(len) = b.get_mut(offset_of!(EventHead, cap_len)..).and_then(|b| b.first_chunk_mut()) {
            *len = 3u16.to_ne_bytes();
        }
        assert_eq!(decode(&b, clock).unwrap().bytes, [7, 7, 7]);
    }
}
