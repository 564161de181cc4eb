//! Upper protocols: one byte that says which, then packets of one connection.
#![no_main]

#[path = "../subjects/packets.rs"]
mod packets;
#[path = "../subjects/upper.rs"]
mod subject;

libfuzzer_sys::fuzz_target!(|data: &[u8]| subject::upper(data));
