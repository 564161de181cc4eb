//! Invariant CRC: which bytes go in, and how (IBTA 7.8.1, annexes A16 and A17; `rxe_icrc.c`).
//!
//! CRC-32 as in Ethernet (reflected 0xEDB88320, initial and final inversion) over a pseudo packet: what
//! routers may change is set to ones, and eight bytes of ones stand in for the LRH. The result is on the
//! wire with its least significant byte first; `infiniband.invariant.crc` reads it big-endian, swapped.
//!
//! This module only makes the masked head; whoever has a CRC feeds the head, then everything after BTH up
//! to the ICRC as it was sent.

use super::bth::Bth;
use super::grh::Grh;
use super::lrh::Lrh;
use super::outer::{IPV4_LEN, IPV6_LEN, UDP_LEN};

/// Bytes of ones in front, for the LRH that Ethernet does not have.
pub const DUMMY_LRH: [u8; 8] = [0xff; 8];

/// Bytes of [`ipv4_head`].
pub const IPV4_HEAD_LEN: usize = 8 + IPV4_LEN + UDP_LEN + Bth::LEN;
/// Bytes of [`ipv6_head`].
pub const IPV6_HEAD_LEN: usize = 8 + IPV6_LEN + UDP_LEN + Bth::LEN;
/// Bytes of [`grh_head`].
pub const GRH_HEAD_LEN: usize = 8 + Grh::LEN + Bth::LEN;

const fn put<const AT: usize, const L: usize, const N: usize>(out: &mut [u8; N], part: &[u8; L]) {
    const { assert!(AT + L <= N) };
    let (_, tail) = out.split_at_mut(AT);
    if let Some(slot) = tail.first_chunk_mut::<L>() {
        *slot = *part;
    }
}

const fn masked_bth(bth: &[u8; Bth::LEN]) -> [u8; Bth::LEN] {
    let mut b = *bth;
    put::<4, 1, 12>(&mut b, &[0xff]); // FECN, BECN, Resv6
    b
}

const fn masked_udp(udp: &[u8; UDP_LEN]) -> [u8; UDP_LEN] {
    let mut u = *udp;
    put::<6, 2, 8>(&mut u, &[0xff; 2]); // checksum
    u
}

const fn masked_ipv6(ip: &[u8; IPV6_LEN]) -> [u8; IPV6_LEN] {
    let mut i = *ip;
    let [first, ..] = i;
    put::<0, 4, 40>(&mut i, &[first | 0x0f, 0xff, 0xff, 0xff]); // traffic class, flow label
    put::<7, 1, 40>(&mut i, &[0xff]); // hop limit
    i
}

/// RoCEv2 over IPv4 without options.
pub const fn ipv4_head(ip: &[u8; IPV4_LEN], udp: &[u8; UDP_LEN], bth: &[u8; Bth::LEN]) -> [u8; IPV4_HEAD_LEN] {
    let mut i = *ip;
    put::<1, 1, 20>(&mut i, &[0xff]); // TOS
    put::<8, 1, 20>(&mut i, &[0xff]); // TTL
    put::<10, 2, 20>(&mut i, &[0xff; 2]); // header checksum
    let mut out = [0xff; IPV4_HEAD_LEN];
    put::<8, 20, IPV4_HEAD_LEN>(&mut out, &i);
    put::<28, 8, IPV4_HEAD_LEN>(&mut out, &masked_udp(udp));
    put::<36, 12, IPV4_HEAD_LEN>(&mut out, &masked_bth(bth));
    out
}

/// RoCEv2 over IPv6 without extension headers.
pub const fn ipv6_head(ip: &[u8; IPV6_LEN], udp: &[u8; UDP_LEN], bth: &[u8; Bth::LEN]) -> [u8; IPV6_HEAD_LEN] {
    let mut out = [0xff; IPV6_HEAD_LEN];
    put::<8, 40, IPV6_HEAD_LEN>(&mut out, &masked_ipv6(ip));
    put::<48, 8, IPV6_HEAD_LEN>(&mut out, &masked_udp(udp));
    put::<56, 12, IPV6_HEAD_LEN>(&mut out, &masked_bth(bth));
    out
}

/// RoCEv1, and native InfiniBand with a GRH: the LRH is ones altogether.
pub const fn grh_head(grh: &[u8; Grh::LEN], bth: &[u8; Bth::LEN]) -> [u8; GRH_HEAD_LEN] {
    let mut out = [0xff; GRH_HEAD_LEN];
    put::<8, 40, GRH_HEAD_LEN>(&mut out, &masked_ipv6(grh));
    put::<48, 12, GRH_HEAD_LEN>(&mut out, &masked_bth(bth));
    out
}

/// Native InfiniBand without a GRH: only the virtual lane of the LRH is masked.
pub const fn lrh_head(lrh: &[u8; Lrh::LEN], bth: &[u8; Bth::LEN]) -> [u8; Lrh::LEN + Bth::LEN] {
    let mut l = *lrh;
    let [first, ..] = l;
    put::<0, 1, 8>(&mut l, &[first | 0xf0]);
    let mut out = [0xff; Lrh::LEN + Bth::LEN];
    put::<0, 8, 20>(&mut out, &l);
    put::<8, 12, 20>(&mut out, &masked_bth(bth));
    out
}
