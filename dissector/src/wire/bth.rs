//! Base Transport Header: the 12 bytes that start every InfiniBand transport packet (IBTA 9.2).
//!
//! ```text
//!   0       opcode                          8
//!   1       SE | MigReq | PadCnt | TVer     1+1+2+4
//!   2..4    P_Key                           16
//!   4       FECN | BECN | reserved          1+1+6   (Resv8a: the whole byte is masked in the ICRC)
//!   5..8    destination QP                  24
//!   8       AckReq | reserved               1+7
//!   9..12   PSN                             24
//! ```

use super::bytes::{self, Short, be16, be32, u8_at};
use super::opcode::{Header, Op, Transport};
use super::{PKey, Psn, Qpn};

/// View of a BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth<'a>(pub &'a [u8; Bth::LEN]);

impl<'a> Bth<'a> {
    /// Bytes.
    pub const LEN: usize = Header::Bth.len();

    /// The header and what follows it.
    pub const fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Short> {
        match bytes::split(bytes, Header::Bth) {
            Ok((b, rest)) => Ok((Self(b), rest)),
            Err(e) => Err(e),
        }
    }

    /// Opcode byte.
    pub const fn opcode(self) -> u8 {
        u8_at::<0, 12>(self.0)
    }

    /// Its row in the table, if it is not reserved.
    pub const fn op(self) -> Option<&'static Op> {
        Op::of(self.opcode())
    }

    /// Transport service.
    pub const fn transport(self) -> Transport {
        Transport::of(self.opcode())
    }

    /// Solicited event: the receiver's completion raises an event.
    pub const fn solicited(self) -> bool {
        u8_at::<1, 12>(self.0) & 0x80 != 0
    }

    /// Migration request bit (1 = migrated); senders differ, harmlessly.
    pub const fn mig_req(self) -> bool {
        u8_at::<1, 12>(self.0) & 0x40 != 0
    }

    /// Pad bytes between payload and ICRC, 0 to 3.
    pub const fn pad_count(self) -> u8 {
        (u8_at::<1, 12>(self.0) >> 4) & 3
    }

    /// Transport header version, 0 in every version of the standard.
    pub const fn tver(self) -> u8 {
        u8_at::<1, 12>(self.0) & 0x0f
    }

    /// Partition key.
    pub const fn p_key(self) -> PKey {
        PKey(be16::<2, 12>(self.0))
    }

    /// Forward congestion notification (masked in the ICRC).
    pub const fn fecn(self) -> bool {
        u8_at::<4, 12>(self.0) & 0x80 != 0
    }

    /// Backward congestion notification; set in a CNP.
    pub const fn becn(self) -> bool {
        u8_at::<4, 12>(self.0) & 0x40 != 0
    }

    /// The six reserved bits beside FECN and BECN. Some hardware sends 0x10 there.
    pub const fn resv6(self) -> u8 {
        u8_at::<4, 12>(self.0) & 0x3f
    }

    /// Destination queue pair.
    pub const fn dest_qp(self) -> Qpn {
        Qpn::new(be32::<4, 12>(self.0) & 0x00ff_ffff)
    }

    /// The sender asks for an acknowledge.
    pub const fn ack_req(self) -> bool {
        u8_at::<8, 12>(self.0) & 0x80 != 0
    }

    /// The seven reserved bits beside AckReq (covered by the ICRC).
    pub const fn resv7(self) -> u8 {
        u8_at::<8, 12>(self.0) & 0x7f
    }

    /// Packet sequence number.
    pub const fn psn(self) -> Psn {
        Psn::new(be32::<8, 12>(self.0) & 0x00ff_ffff)
    }
}

/// Values of a BTH to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BthFields {
    /// Opcode byte.
    pub opcode: u8,
    /// Solicited event.
    pub solicited: bool,
    /// MigReq.
    pub mig_req: bool,
    /// PadCnt, 0 to 3.
    pub pad_count: u8,
    /// TVer, 0 to 15.
    pub tver: u8,
    /// Partition key.
    pub p_key: PKey,
    /// FECN.
    pub fecn: bool,
    /// BECN.
    pub becn: bool,
    /// Destination QP.
    pub dest_qp: Qpn,
    /// AckReq.
    pub ack_req: bool,
    /// PSN.
    pub psn: Psn,
}

impl BthFields {
    /// An ordinary packet: default partition, MigReq set, nothing else.
    pub const fn new(opcode: u8, dest_qp: u32, psn: u32) -> Self {
        Self {
            opcode,
            solicited: false,
            mig_req: true,
            pad_count: 0,
            tver: 0,
            p_key: PKey::DEFAULT,
            fecn: false,
            becn: false,
            dest_qp: Qpn::new(dest_qp),
            ack_req: false,
            psn: Psn::new(psn),
        }
    }

    /// The 12 bytes.
    pub const fn emit(&self) -> [u8; Bth::LEN] {
        let [k0, k1] = self.p_key.0.to_be_bytes();
        let [q0, q1, q2] = bytes::to_be24(self.dest_qp.get());
        let [p0, p1, p2] = bytes::to_be24(self.psn.get());
        let b1 = (self.solicited as u8) << 7 | (self.mig_req as u8) << 6 | (self.pad_count & 3) << 4 | (self.tver & 15);
        let b4 = (self.fecn as u8) << 7 | (self.becn as u8) << 6;
        [self.opcode, b1, k0, k1, b4, q0, q1, q2, (self.ack_req as u8) << 7, p0, p1, p2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_cnp() {
        // ConnectX-4 Lx: opcode 0x81, P_Key ffff, BECN, QP 0x118
        let b = [0x81, 0x00, 0xff, 0xff, 0x40, 0, 0x01, 0x18, 0, 0, 0, 0];
        let (bth, rest) = Bth::split(&b).unwrap();
        assert!(rest.is_empty());
        assert_eq!(bth.op().unwrap().name, "CNP");
        assert!(bth.becn() && !bth.fecn() && !bth.ack_req() && !bth.mig_req());
        assert_eq!(bth.dest_qp().get(), 0x118);
        assert_eq!(bth.psn().get(), 0);
    }

    #[test]
    fn emit_then_parse() {
        let f = BthFields {
            opcode: 0x0a,
            solicited: true,
            mig_req: false,
            pad_count: 3,
            tver: 5,
            p_key: PKey(0x1234),
            fecn: true,
            becn: false,
            dest_qp: Qpn::new(0xab_cdef),
            ack_req: true,
            psn: Psn::new(0xff_fffe),
        };
        let b = f.emit();
        let bth = Bth(&b);
        assert_eq!((bth.opcode(), bth.solicited(), bth.mig_req(), bth.pad_count()), (0x0a, true, false, 3));
        assert_eq!((bth.tver(), bth.p_key().0, bth.fecn(), bth.becn()), (5, 0x1234, true, false));
        assert_eq!((bth.dest_qp().get(), bth.ack_req(), bth.psn().get()), (0xab_cdef, true, 0xff_fffe));
    }

    #[test]
    fn short() {
        let e = Bth::split(&[0; 11]).unwrap_err();
        assert_eq!((e.needed, e.available, e.header), (12, 11, Header::Bth));
    }
}
