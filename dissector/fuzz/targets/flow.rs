//! The analysis: a sequence of short descriptions of packets between two queue pairs.
#![no_main]

#[path = "../subjects/packets.rs"]
mod packets;
#[path = "../subjects/flow.rs"]
mod subject;

libfuzzer_sys::fuzz_target!(|data: &[u8]| subject::flow(data));
