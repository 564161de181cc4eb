//! Capture files.
#![no_main]

#[path = "../subjects/capture.rs"]
mod subject;

libfuzzer_sys::fuzz_target!(|data: &[u8]| subject::capture(data));
