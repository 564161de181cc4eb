//! What the fuzzer does with a management datagram, and what the corpus replay on stable does.

use crate::packets;
use dissector::service::DecodeAs;

/// A MAD of QP 1 and of QP 0, in every format.
pub fn mad(data: &[u8]) {
    for qp in [1, 0] {
        let one = packets::packet(false, 0x64, qp, 0, &[&[0x80, 1, 0, 0, 0, 0, 0, qp], data].concat());
        packets::show(&[one.clone(), one], &DecodeAs::default());
    }
}
