//! The short way: a packet of the most frequent shape that goes on where the last one of its flow left off. It decides
//! everything before it counts anything; whatever is unusual about a packet sends it the long way, where all of it is
//! found out again. Both ways count the same.

use dissector::wire::bytes::{be16, be32, part, u8_at};
use dissector::wire::opcode::{Class, FLAGS, Flags};
use dissector::wire::outer::{
    ECN_CE, ETH_LEN, ETHERTYPE_IPV4, IPPROTO_UDP, IPV4_FRAGMENT_MASK, IPV4_LEN, UDP_LEN, ecn,
};
use dissector::wire::{Bth, Header, Qpn, Syndrome, Transport};
use roce_ebpf::abi::counters::{ANSWERED, NO_VLAN, REQUESTS, RESPONSES};
use roce_ebpf::abi::event::kind;
use roce_ebpf::abi::key::{NO_QP, family};
use roce_ebpf::abi::{Direction, Flow, PerCpu};

use super::count::{self, now};
use super::ctx::Ctx;
use super::find::{pair, place, place_of};
use super::{FLOWS, ROCE_EVENTS, ROCE_PORT, ROCE_SAMPLE_EVERY, SLOTS_V4};

/// What became of a packet on the short way.
pub enum Way {
    /// It is counted.
    Done,
    /// It is not RoCE, and by its own lengths reaches to this byte (`usize::MAX` if they are nonsense); nothing is counted yet.
    Other(usize),
    /// It goes the long way; nothing is counted yet.
    Long,
}

const NET: usize = ETH_LEN;
const UDP: usize = NET + IPV4_LEN;
const BTH: usize = UDP + UDP_LEN;
/// Bytes that are looked at: the least that any RoCE packet of this shape has.
const BYTES: usize = BTH + Bth::LEN + Header::Icrc.len();

/// Ethertype, IP version and header length, at byte 12.
const SHAPE: u32 = {
    let [a, b] = ETHERTYPE_IPV4.to_be_bytes();
    u32::from_ne_bytes([a, b, 0x40 | (IPV4_LEN / 4) as u8, 0])
};
const SHAPE_MASK: u32 = u32::from_ne_bytes([0xff, 0xff, 0xff, 0]);
/// Fragment, TTL, protocol, six bytes into the IP header.
const PROTOCOL: u32 = u32::from_ne_bytes([0, 0, 0, IPPROTO_UDP]);
const PROTOCOL_MASK: u32 = u32::from_ne_bytes([0, 0, 0, 0xff]);
const FRAGMENT_MASK: u32 = {
    let [a, b] = IPV4_FRAGMENT_MASK.to_be_bytes();
    u32::from_ne_bytes([a, b, 0, 0])
};

/// [`STEPS`]: takes the short way.
const SHORT: u8 = 1;
/// An acknowledge: has an AETH and no place in a sequence of its own.
const ACK: u8 = 2;
/// A response, acknowledges included.
const RESPONSE: u8 = 4;
/// Ends a message.
const MESSAGE: u8 = 8;

/// What a packet of each opcode does to its flow. Long ways: READ requests (their length counts), datagrams (their
/// source), CNPs and opcodes without a row.
static STEPS: [u8; 256] = {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let flags = FLAGS[n];
        let class = flags.class();
        let transport = (n >> 5) as u8;
        let connected =
            transport == Transport::Rc as u8 || transport == Transport::Uc as u8 || transport == Transport::Xrc as u8;
        let plain = connected && flags.has(Flags::KNOWN) && !flags.has(Flags::DETH);
        if plain && class != Class::ReadRequest as u16 && class != Class::Cnp as u16 {
            let mut step = SHORT;
            if class == Class::Ack as u16 {
                step |= ACK;
            }
            if flags.has(Flags::RESPONSE) {
                step |= RESPONSE;
            }
            let message = flags.has(Flags::REQUEST) || class == Class::ReadResponse as u16;
            if flags.has(Flags::ENDS) && message {
                step |= MESSAGE;
            }
            table[n] = step;
        }
        n += 1;
    }
    table
};

/// The words of [`Flow`] from `tos` on, as one.
#[inline(always)]
const fn stamp(tos: u8, opcode: u8, src_port: u16, vlan: u16) -> u64 {
    let [p, q] = src_port.to_ne_bytes();
    let [v, w] = vlan.to_ne_bytes();
    u64::from_ne_bytes([tos, (opcode >> 5) + 1, p, q, v, w, 0, 0])
}

const _: () = assert!(core::mem::offset_of!(Flow, tos) % 8 == 0 && core::mem::offset_of!(Flow, home) % 8 == 0);

/// Where the IP packet ends by its own length. Giant packets that are still to be cut up have none.
#[inline(always)]
fn end(b: &[u8; BYTES]) -> usize {
    let length = be16::<{ NET + 2 }, BYTES>(b) as usize;
    if length < IPV4_LEN { usize::MAX } else { NET + length }
}

/// Counts a packet, if it is of an expected kind.
#[inline(always)]
pub fn packet<C: Ctx>(ctx: &C, mine: &mut PerCpu, direction: Direction) -> Way {
    if ROCE_SAMPLE_EVERY.load() != 0 {
        return Way::Long;
    }
    let Some(b) = ctx.at::<BYTES>(0) else { return Way::Long };
    let word = |bytes: &[u8; 4]| u32::from_ne_bytes(*bytes);
    let shape = word(part::<12, 4, BYTES>(b));
    if shape & SHAPE_MASK != SHAPE {
        return Way::Long;
    }
    let protocol = word(part::<{ NET + 6 }, 4, BYTES>(b));
    if protocol & (PROTOCOL_MASK | FRAGMENT_MASK) != PROTOCOL {
        return if protocol & PROTOCOL_MASK == PROTOCOL { Way::Long } else { Way::Other(end(b)) };
    }
    if be16::<{ UDP + 2 }, BYTES>(b) != ROCE_PORT.load() {
        return Way::Other(end(b));
    }
    let length = be16::<{ UDP + 4 }, BYTES>(b) as usize;
    if length < UDP_LEN + Bth::LEN {
        return Way::Long;
    }
    let linear = ctx.data_end() - ctx.data();
    if C::TELLS_BY_LINEAR && UDP + length > linear {
        // cut, or in fragments
        return Way::Long;
    }
    let wire_len = if C::TELLS_BY_LINEAR { linear as u64 } else { u64::from(ctx.wire_len()) };
    let opcode = u8_at::<BTH, BYTES>(b);
    let step = STEPS[opcode as usize];
    if step & SHORT == 0 {
        return Way::Long;
    }
    let tos = u8_at::<{ NET + 1 }, BYTES>(b);
    let dest_qp = be32::<{ BTH + 4 }, BYTES>(b) & 0x00ff_ffff;
    let psn = be32::<{ BTH + 8 }, BYTES>(b) & 0x00ff_ffff;
    if step & ACK != 0 && !Syndrome(u8_at::<{ BTH + Bth::LEN }, BYTES>(b)).is_ack() {
        return Way::Long;
    }
    // what is reported
    let events = ROCE_EVENTS.load();
    if events & kind::CE != 0 && ecn(tos) == ECN_CE || events & kind::MAD != 0 && Qpn::new(dest_qp).is_management() {
        return Way::Long;
    }
    let vlan = match ctx.lifted_vlan() {
        NO_VLAN => NO_VLAN,
        tag => tag & 0x0fff,
    };
    let stamp = stamp(tos, opcode, be16::<UDP, BYTES>(b), vlan);
    let qps = pair(dest_qp, NO_QP);
    let place_word = place_of(mine, direction as u32, family::V4);
    let addresses = u64::from_ne_bytes(*part::<{ NET + 12 }, 8, BYTES>(b));
    let mut place = place(mine, qps ^ addresses);
    let mut slot = place.slot();
    let key = [qps, place_word, addresses];
    let mut found = FLOWS.get_ptr_mut(slot.wrapping_sub(1));
    // SAFETY: the key of an entry changes only while nobody has its slot.
    if !found.is_some_and(|f| unsafe { (*f).key[0] == key[0] && (*f).key[1] == key[1] && (*f).key[2] == key[2] }) {
        // SAFETY: written before it was inserted, never after.
        let Some(kept) = SLOTS_V4.get_ptr(&key).map(|s| unsafe { *s }) else { return Way::Long };
        slot = kept.wrapping_add(1);
        place.keep(slot);
        found = FLOWS.get_ptr_mut(kept);
    }
    let Some(flow) = found else { return Way::Long };
    // SAFETY: the CPU is part of the key: if it is this flow, nothing else writes it, but for what its `home` keeps.
    let flow = unsafe { &mut *flow };
    // SAFETY: a word of the entry, aligned.
    let stamped = unsafe { *(&raw const flow.tos).cast::<u64>() };
    if stamped != stamp || flow.home != slot {
        return Way::Long;
    }
    if step & ACK == 0 {
        let track = if step & RESPONSE != 0 { RESPONSES } else { REQUESTS };
        if !flow.tracks[track].push_expected(psn) {
            return Way::Long;
        }
        if step & RESPONSE == 0 && flow.mtu == 0 {
            flow.mtu = count::mtu_of(opcode, (length - UDP_LEN) as u32);
        }
        if step & MESSAGE != 0 {
            flow.messages += 1;
        }
    }
    if step & RESPONSE != 0 {
        flow.answered = psn | ANSWERED;
    }
    flow.bytes += wire_len;
    flow.last = now(mine);
    flow.ecn[ecn(tos) as usize] += 1;
    flow.ops[(opcode & 31) as usize] += 1;
    let totals = &mut mine.totals[direction as usize];
    totals.opcodes[opcode as usize] += 1;
    totals.roce_bytes += wire_len;
    Way::Done
}
