//! Management datagrams: the 256 bytes of a MAD, or fewer.
#![no_main]

#[path = "../subjects/packets.rs"]
mod packets;
#[path = "../subjects/mad.rs"]
mod subject;

libfuzzer_sys::fuzz_target!(|data: &[u8]| subject::mad(data));
