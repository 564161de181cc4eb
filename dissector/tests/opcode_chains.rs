//! Every chain of headers that the opcode table knows: built, read back, and cut at every byte.

use dissector::wire::opcode::{Header, Op, Payload};
use dissector::wire::packet::Stop;
use dissector::wire::{Bth, BthFields, Packet};
use proptest::prelude::*;

fn ops() -> Vec<&'static Op> {
    (0..=255).filter_map(Op::of).collect()
}

/// A packet of one opcode: headers filled with these bytes, payload, pad, ICRC.
fn build(op: &Op, fill: &[u8], payload: &[u8], pad: u8) -> Vec<u8> {
    let mut b = BthFields { pad_count: pad, ..BthFields::new(op.byte, 0x12_3456, 0xab_cdef) }.emit().to_vec();
    b.extend(fill.iter().cycle().take(op.headers_len()));
    b.extend(payload);
    b.extend(std::iter::repeat_n(0, usize::from(pad)));
    b.extend([0xde, 0xad, 0xbe, 0xef]);
    b
}

/// Headers that were found, by name.
fn found(p: &Packet<'_>) -> Vec<Header> {
    let e = &p.ext;
    let mut all = Vec::new();
    for (there, header) in [
        (e.rdeth.is_some(), Header::Rdeth),
        (e.deth.is_some(), Header::Deth),
        (e.xrceth.is_some(), Header::XrcEth),
        (e.reth.is_some(), Header::Reth),
        (e.atomic.is_some(), Header::AtomicEth),
        (e.aeth.is_some(), Header::Aeth),
        (e.atomic_ack.is_some(), Header::AtomicAckEth),
        (e.immdt.is_some(), Header::ImmDt),
        (e.ieth.is_some(), Header::Ieth),
        (e.feth.is_some(), Header::Feth),
        (e.cnp.is_some(), Header::CnpPad),
    ] {
        if there {
            all.push(header);
        }
    }
    all
}

fn same(mut a: Vec<Header>, b: &[Header]) -> bool {
    let mut b = b.to_vec();
    a.sort_by_key(|h| *h as u8);
    b.sort_by_key(|h| *h as u8);
    a == b
}

/// Headers of a chain that lie whole within so many bytes after BTH; the next one and what is there of it.
fn within(op: &'static Op, bytes: usize) -> (&'static [Header], Option<(Header, usize)>) {
    let mut at = 0;
    for (i, h) in op.headers.iter().enumerate() {
        if bytes < at + h.len() {
            return (&op.headers[..i], Some((*h, bytes - at)));
        }
        at += h.len();
    }
    (op.headers, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// What was built comes back: opcode, headers with their numbers, payload, pad, ICRC.
    #[test]
    fn a_chain_comes_back(
        op in proptest::sample::select(ops()),
        fill in proptest::collection::vec(any::<u8>(), 61),
        payload in proptest::collection::vec(any::<u8>(), 0..300),
        behind in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let payload = if op.payload == Payload::None { Vec::new() } else { payload };
        let pad = u8::try_from((4 - payload.len() % 4) % 4).unwrap();
        let mut b = build(op, &fill, &payload, pad);
        let declared = b.len();
        // a trailer of the link is no part of the packet
        b.extend(behind);
        let p = Packet::parse(&b, declared).unwrap();
        prop_assert_eq!(p.op, Some(op));
        prop_assert_eq!((p.bth.dest_qp().get(), p.bth.psn().get()), (0x12_3456, 0xab_cdef));
        prop_assert!(same(found(&p), op.headers), "{}: {:?}", op.name, found(&p));
        prop_assert_eq!(p.headers_len, op.headers_len());
        prop_assert_eq!((p.payload, p.payload_len, p.pad), (payload.as_slice(), payload.len(), usize::from(pad)));
        prop_assert_eq!(p.icrc, Some(&[0xde, 0xad, 0xbe, 0xef]));
        prop_assert_eq!(p.stop, None);
        // the numbers are those of the bytes, by their offsets in the chain
        let word = |h: Header, at: usize| {
            let o = Bth::LEN + op.offset_of(h).unwrap() + at;
            u32::from_be_bytes(b[o..o + 4].try_into().unwrap())
        };
        if let Some(d) = p.ext.deth {
            prop_assert_eq!((d.q_key(), d.src_qp().get()), (word(Header::Deth, 0), word(Header::Deth, 4) & 0xff_ffff));
        }
        if let Some(r) = p.ext.reth {
            let va = u64::from(word(Header::Reth, 0)) << 32 | u64::from(word(Header::Reth, 4));
            prop_assert_eq!((r.va(), r.r_key(), r.dma_len()), (va, word(Header::Reth, 8), word(Header::Reth, 12)));
        }
        if let Some(a) = p.ext.aeth {
            let w = word(Header::Aeth, 0);
            prop_assert_eq!((u32::from(a.syndrome().0), a.msn()), (w >> 24, w & 0xff_ffff));
        }
    }

    /// Every prefix stops in the right header with the right numbers, whether the capture ends there or the packet.
    #[test]
    fn every_prefix_stops_where_it_ends(
        op in proptest::sample::select(ops()),
        fill in proptest::collection::vec(any::<u8>(), 61),
        payload in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let payload = if op.payload == Payload::None { Vec::new() } else { payload };
        let pad = u8::try_from((4 - payload.len() % 4) % 4).unwrap();
        let b = build(op, &fill, &payload, pad);
        for n in 0..b.len() {
            let cut = Packet::parse(&b[..n], b.len());
            let short = Packet::parse(&b, n);
            if n < Bth::LEN {
                let (Err(Stop::Truncated(c)), Err(Stop::TooShort(s))) = (cut, short) else {
                    panic!("{}: {n} bytes are no BTH", op.name);
                };
                prop_assert_eq!((c.header, c.needed, c.available), (Header::Bth, Bth::LEN, n));
                prop_assert_eq!(s, c);
                continue;
            }
            let (cut, short) = (cut.unwrap(), short.unwrap());
            let (whole, next) = within(op, n - Bth::LEN);
            prop_assert!(same(found(&cut), whole), "{} at {n}: {:?}", op.name, found(&cut));
            prop_assert!(same(found(&short), whole), "{} at {n}: {:?}", op.name, found(&short));
            if let Some((header, there)) = next {
                let (Some(Stop::Truncated(c)), Some(Stop::TooShort(s))) = (cut.stop, short.stop) else {
                    panic!("{} at {n}: {:?}, {:?}", op.name, cut.stop, short.stop);
                };
                prop_assert_eq!((c.header, c.needed, c.available), (header, header.len(), there));
                prop_assert_eq!(s, c);
                continue;
            }
            let body = n - Bth::LEN - op.headers_len();
            match cut.stop {
                Some(Stop::PayloadCut { declared, captured }) => {
                    prop_assert_eq!((declared, captured), (payload.len(), body));
                    prop_assert_eq!(cut.payload, &payload[..body]);
                }
                Some(Stop::Truncated(c)) => {
                    // the payload is whole; the pad or the ICRC is not
                    prop_assert!(body >= payload.len());
                    prop_assert_eq!((c.header, c.needed), (Header::Icrc, 4));
                    prop_assert_eq!(c.available, body.saturating_sub(payload.len() + usize::from(pad)));
                    prop_assert_eq!(cut.payload, payload.as_slice());
                }
                other => panic!("{} cut at {n}: {other:?}", op.name),
            }
            prop_assert_eq!(cut.icrc, None);
            if body < 4 {
                let Some(Stop::TooShort(s)) = short.stop else { panic!("{} at {n}: {:?}", op.name, short.stop) };
                prop_assert_eq!((s.header, s.needed, s.available), (Header::Icrc, 4, body));
            } else {
                // what looks like a whole packet has its ICRC at its end and no more payload than room
                prop_assert_eq!(short.icrc.map(<[u8; 4]>::as_slice), Some(&b[n - 4..n]));
                prop_assert!(short.payload_len + short.pad <= body - 4);
            }
        }
    }
}
