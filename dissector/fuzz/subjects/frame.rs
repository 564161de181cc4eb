//! What the fuzzer does with a frame, and what the corpus replay on stable does.

use dissector::frame::{Frame, LinkType, fast, icrc, mistake};
use dissector::wire::ROCE_UDP_PORT;

/// A frame: link type in two bytes, then its bytes. Both ways down to BTH must agree.
pub fn frame(data: &[u8]) {
    let Some((link, bytes)) = data.split_first_chunk::<2>() else { return };
    let link = LinkType(u16::from_be_bytes(*link));
    let f = Frame::parse(bytes, bytes.len(), link, ROCE_UDP_PORT);
    if link == LinkType::ETHERNET {
        let mut short = Frame::new(bytes, bytes.len(), link);
        if fast::ethernet(&mut short, ROCE_UDP_PORT) {
            assert_eq!(short, Frame::parse_the_long_way(bytes, bytes.len(), link, ROCE_UDP_PORT));
        }
    }
    for l in f.layers.as_slice() {
        assert!(l.start as usize + usize::from(l.len) <= bytes.len());
    }
    if let Some(a) = &f.aside {
        assert!(!a.to_string().chars().any(char::is_control));
    }
    let _ = icrc::vcrc(&f);
    if let Some(Ok(p)) = f.packet() {
        assert!(p.payload.len() <= p.payload_len);
        let _ = mistake::explain(&f, &p);
    }
}
