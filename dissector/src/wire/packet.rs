//! A transport packet: BTH, extended headers, payload, pad, ICRC, and where it stopped.

use super::bytes::{self, Short};
use super::deth::{Rdeth, XrcEth};
use super::opcode::{Header, Op, Payload};
use super::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Feth, Ieth, ImmDt, Reth};

/// Why a packet could not be read to its end. What came before is there all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The capture ends inside: `header` takes `needed` bytes, `available` were captured.
    Truncated(Short),
    /// The packet itself (by the length that IP, UDP or GRH declare) is too short for its opcode.
    TooShort(Short),
    /// The payload is cut by the capture; headers are complete.
    PayloadCut {
        /// Bytes of payload that the packet has.
        declared: usize,
        /// Bytes that were captured.
        captured: usize,
    },
    /// Between headers and ICRC are fewer bytes than PadCnt says.
    PadTooLong,
    /// An opcode that has no data is followed by some.
    Excess(usize),
}

/// Extended headers that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extended<'a> {
    /// Reliable datagram context.
    pub rdeth: Option<Rdeth<'a>>,
    /// Datagram header.
    pub deth: Option<Deth<'a>>,
    /// XRC header.
    pub xrceth: Option<XrcEth<'a>>,
    /// RDMA address, key, length.
    pub reth: Option<Reth<'a>>,
    /// Atomic request.
    pub atomic: Option<AtomicEth<'a>>,
    /// Acknowledge.
    pub aeth: Option<Aeth<'a>>,
    /// Atomic answer.
    pub atomic_ack: Option<AtomicAckEth<'a>>,
    /// Immediate data.
    pub immdt: Option<ImmDt<'a>>,
    /// Key to invalidate.
    pub ieth: Option<Ieth<'a>>,
    /// Flush.
    pub feth: Option<Feth<'a>>,
    /// Reserved bytes of a CNP.
    pub cnp: Option<&'a [u8; 16]>,
}

/// A transport packet taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Base transport header.
    pub bth: Bth<'a>,
    /// Row of the opcode table; `None` for reserved and manufacturer specific opcodes.
    pub op: Option<&'static Op>,
    /// Extended headers.
    pub ext: Extended<'a>,
    /// Payload as far as it was captured, without pad. For opcodes without a row: everything between BTH
    /// and ICRC.
    pub payload: &'a [u8],
    /// Bytes of payload that the packet has on the wire.
    pub payload_len: usize,
    /// Pad bytes on the wire.
    pub pad: usize,
    /// The four ICRC bytes as on the wire, if they were captured.
    pub icrc: Option<&'a [u8; 4]>,
    /// Bytes after BTH that all headers of the chain take (those that are there).
    pub headers_len: usize,
    /// Why reading ended early.
    pub stop: Option<Stop>,
}

impl<'a> Packet<'a> {
    /// Reads a packet. `bytes` starts with BTH and holds what was captured; `declared` is how long the
    /// packet is from BTH through ICRC by the enclosing length field. Bytes beyond it are not looked at.
    pub fn parse(bytes: &'a [u8], declared: usize) -> Result<Self, Stop> {
        let whole = bytes.len() >= declared;
        let seen = if whole { bytes.get(..declared).unwrap_or(bytes) } else { bytes };
        let stop_of = |s: Short| if whole { Stop::TooShort(s) } else { Stop::Truncated(s) };
        let (bth, after) = Bth::split(seen).map_err(stop_of)?;
        // without room for an ICRC there is none to split off; the headers have precedence
        let body_declared = declared.saturating_sub(Bth::LEN).saturating_sub(Header::Icrc.len());
        let op = bth.op();
        let mut p = Packet {
            bth,
            op,
            ext: Extended::default(),
            payload: &[],
            payload_len: 0,
            pad: 0,
            icrc: None,
            headers_len: 0,
            stop: None,
        };
        let mut rest = after;
        if let Some(op) = op {
            for header in op.headers {
                match p.take(*header, rest) {
                    Ok(r) => {
                        p.headers_len = p.headers_len.saturating_add(header.len());
                        rest = r;
                    }
                    Err(s) => {
                        p.stop = Some(stop_of(s));
                        return Ok(p);
                    }
                }
            }
        }
        if whole {
            if let Some((body, icrc)) = rest.split_last_chunk::<4>() {
                p.icrc = Some(icrc);
                rest = body;
            } else {
                p.payload = rest;
                p.payload_len = rest.len();
                p.stop = Some(Stop::TooShort(Short {
                    header: Header::Icrc,
                    needed: Header::Icrc.len(),
                    available: rest.len(),
                }));
                return Ok(p);
            }
        }
        let body_len = body_declared.saturating_sub(p.headers_len);
        if let Some(op) = op {
            p.pad = usize::from(bth.pad_count());
            if op.payload == Payload::None {
                if p.pad > body_len {
                    p.pad = 0; // a pad count on a packet without payload: a finding of its own, not a length
                }
                if body_len > p.pad {
                    p.stop = Some(Stop::Excess(body_len.saturating_sub(p.pad)));
                }
            } else if p.pad > body_len {
                p.stop = Some(Stop::PadTooLong);
                p.pad = body_len;
            }
        }
        p.payload_len = body_len.saturating_sub(p.pad);
        p.payload = rest.get(..p.payload_len).unwrap_or(rest);
        if p.payload.len() < p.payload_len {
            p.stop = Some(Stop::PayloadCut { declared: p.payload_len, captured: p.payload.len() });
        } else if !whole && p.stop.is_none() {
            // payload complete, pad or ICRC cut
            p.stop = Some(Stop::Truncated(Short {
                header: Header::Icrc,
                needed: Header::Icrc.len(),
                available: rest.len().saturating_sub(body_len),
            }));
        }
        Ok(p)
    }

    fn take(&mut self, header: Header, rest: &'a [u8]) -> Result<&'a [u8], Short> {
        let after;
        match header {
            Header::Rdeth => (self.ext.rdeth, after) = some(Rdeth::split(rest)?),
            Header::Deth => (self.ext.deth, after) = some(Deth::split(rest)?),
            Header::XrcEth => (self.ext.xrceth, after) = some(XrcEth::split(rest)?),
            Header::Reth => (self.ext.reth, after) = some(Reth::split(rest)?),
            Header::AtomicEth => (self.ext.atomic, after) = some(AtomicEth::split(rest)?),
            Header::Aeth => (self.ext.aeth, after) = some(Aeth::split(rest)?),
            Header::AtomicAckEth => (self.ext.atomic_ack, after) = some(AtomicAckEth::split(rest)?),
            Header::ImmDt => (self.ext.immdt, after) = some(ImmDt::split(rest)?),
            Header::Ieth => (self.ext.ieth, after) = some(Ieth::split(rest)?),
            Header::Feth => (self.ext.feth, after) = some(Feth::split(rest)?),
            Header::CnpPad => (self.ext.cnp, after) = some(bytes::split::<16>(rest, header)?),
            // outer headers and the ICRC are never part of a chain
            Header::Lrh | Header::Grh | Header::Bth | Header::Icrc => after = rest,
        }
        Ok(after)
    }
}

fn some<T>((v, rest): (T, &[u8])) -> (Option<T>, &[u8]) {
    (Some(v), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{BthFields, Syndrome};

    fn ack() -> [u8; 20] {
        let mut b = [0; 20];
        b[..12].copy_from_slice(&BthFields::new(0x11, 0x12, 100).emit());
        b[12..16].copy_from_slice(&Aeth::emit(Syndrome(0x60), 7));
        b[16..].copy_from_slice(&[1, 2, 3, 4]);
        b
    }

    #[test]
    fn every_prefix_of_an_ack() {
        let b = ack();
        for n in 0..20 {
            // the packet itself is short
            let r = Packet::parse(&b[..n], n);
            match n {
                0..12 => {
                    assert_eq!(r.unwrap_err(), Stop::TooShort(Short { header: Header::Bth, needed: 12, available: n }));
                }
                12..16 => assert_eq!(
                    r.unwrap().stop,
                    Some(Stop::TooShort(Short { header: Header::Aeth, needed: 4, available: n - 12 }))
                ),
                _ => {
                    let p = r.unwrap();
                    assert!(p.icrc.is_none() && p.ext.aeth.is_some());
                    assert_eq!(
                        p.stop,
                        Some(Stop::TooShort(Short { header: Header::Icrc, needed: 4, available: n - 16 }))
                    );
                }
            }
            // the capture is short
            let r = Packet::parse(&b[..n], 20);
            match n {
                0..12 => assert!(matches!(r.unwrap_err(), Stop::Truncated(s) if s.header == Header::Bth)),
                12..16 => assert!(matches!(r.unwrap().stop, Some(Stop::Truncated(s)) if s.header == Header::Aeth)),
                _ => assert!(matches!(r.unwrap().stop, Some(Stop::Truncated(s)) if s.header == Header::Icrc)),
            }
        }
        let p = Packet::parse(&b, 20).unwrap();
        assert_eq!((p.stop, p.icrc, p.payload_len), (None, Some(&[1, 2, 3, 4]), 0));
        assert_eq!(p.ext.aeth.unwrap().syndrome(), Syndrome(0x60));
    }

    #[test]
    fn pad_is_not_payload() {
        let mut b = vec![];
        b.extend(BthFields { pad_count: 3, ..BthFields::new(0x0a, 1, 1) }.emit());
        b.extend(Reth::emit(1, 2, 21));
        b.extend([7; 21]);
        b.extend([0; 3]);
        b.extend([9; 4]);
        let p = Packet::parse(&b, b.len()).unwrap();
        assert_eq!((p.payload.len(), p.payload_len, p.pad, p.stop), (21, 21, 3, None));
        assert_eq!(p.icrc, Some(&[9; 4]));
        // a trailer beyond the declared length is not looked at
        let n = b.len();
        b.extend([0xee; 9]);
        assert_eq!(Packet::parse(&b, n).unwrap().payload_len, 21);
    }

    #[test]
    fn an_ack_with_something_behind_it() {
        let mut b = ack().to_vec();
        b.splice(16..16, [5; 26]);
        let p = Packet::parse(&b, b.len()).unwrap();
        assert_eq!(p.stop, Some(Stop::Excess(26)));
        assert_eq!(p.payload.len(), 26);
    }
}
