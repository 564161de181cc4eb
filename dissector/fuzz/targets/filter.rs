//! Display filters: the text, a zero byte, then an Ethernet frame.
#![no_main]

#[path = "../subjects/filter.rs"]
mod subject;

libfuzzer_sys::fuzz_target!(|data: &[u8]| subject::filter(data));
