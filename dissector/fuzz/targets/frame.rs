//! Frames: two bytes of link type, then the frame.
#![no_main]

#[path = "../subjects/frame.rs"]
mod subject;

libfuzzer_sys::fuzz_target!(|data: &[u8]| subject::frame(data));
