//! What the fuzzer does with a capture file, and what the corpus replay on stable does.

use std::io::Cursor;

use dissector::capture::Reader;

/// A capture file, record by record and in chunks, which must tell the same.
pub fn capture(data: &[u8]) {
    let Ok(mut whole) = Reader::from_read("whole", Cursor::new(data.to_vec())) else { return };
    let Ok(mut parts) = Reader::from_read("whole", Cursor::new(data.to_vec())) else { return };
    let mut records = 0;
    // packed data may unpack to very much
    let end = loop {
        match whole.next() {
            Ok(Some(r)) if records < 10_000 => {
                records += 1;
                let _ = (r.options.comments().count(), r.options.flags(), r.options.drop_count());
            }
            Ok(_) => break None,
            Err(e) => break Some(e.to_string()),
        }
    };
    let mut chunked = 0;
    while let Ok(Some(c)) = parts.next_chunk() {
        chunked += c.records().count();
        if chunked >= 10_000 {
            return;
        }
    }
    assert!(records >= 10_000 || chunked == records, "{chunked} in chunks, {records} one by one, then {end:?}");
}
