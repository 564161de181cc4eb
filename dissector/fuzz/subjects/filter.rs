//! What the fuzzer does with a display filter, and what the corpus replay on stable does.

use dissector::capture::{Record, Timestamp};
use dissector::cli::session::{Job, Session};
use dissector::filter::Filter;
use dissector::output::Format;
use dissector::service::DecodeAs;
use dissector::wire::ROCE_UDP_PORT;

/// The text of a filter up to the first zero byte, then a frame of Ethernet that it is asked about. What is refused
/// is refused in plain text; a negation turns the answer round.
pub fn filter(data: &[u8]) {
    let (text, frame) = data.split_at(data.iter().position(|b| *b == 0).unwrap_or(data.len()));
    let Ok(text) = std::str::from_utf8(text) else { return };
    let frame = frame.get(1..).unwrap_or(&[]);
    let answer = |text: &str| {
        let filter = Filter::compile(text).map_err(|e| e.to_string())?;
        let mut session =
            Session::new(Job::new(Format::Quiet, Some(filter), ROCE_UDP_PORT, false), DecodeAs::default());
        let record = Record {
            number: 1,
            at: Timestamp::default(),
            link: 1,
            bytes: frame,
            wire_len: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            ..Record::default()
        };
        Ok::<bool, String>(session.packet(&record, 6, &mut Vec::new(), |_, _| {}))
    };
    match (answer(text), answer(&format!("not ({text})"))) {
        (Ok(yes), Ok(no)) => assert_ne!(yes, no, "{text}"),
        // two more levels may be too deep or too long
        (Ok(_), Err(e)) => assert!(e.contains("deep") || e.contains("longer"), "{text}: {e}"),
        // `a) or (b` has no meaning alone
        (Err(_), _) => {}
    }
}
