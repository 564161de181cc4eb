//! Capture files: both formats in both byte orders, packed, growing, cut, damaged, foreign; and written again.

use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use dissector::capture::error::ReadErrorKind;
use dissector::capture::{Format, OpenError, Reader, Timestamp, WriteError, Writer};

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/captures").join(name)
}

fn read(bytes: Vec<u8>) -> Result<Reader, OpenError> {
    Reader::from_read("test", Cursor::new(bytes))
}

/// What is kept of a record: time, interface, link type, length on the wire, bytes.
type Kept = (Timestamp, u32, u16, u32, Vec<u8>);

fn all(reader: &mut Reader) -> (Vec<Kept>, Option<String>) {
    let mut kept = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(r)) => {
                assert_eq!(r.number, kept.len() as u64 + 1);
                kept.push((r.at, r.interface, r.link, r.wire_len, r.bytes.to_vec()));
            }
            Ok(None) => return (kept, None),
            Err(e) => return (kept, Some(e.to_string())),
        }
    }
}

/// A byte order.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn u16(self, v: u16) -> [u8; 2] {
        if self.0 { v.to_be_bytes() } else { v.to_le_bytes() }
    }

    fn u32(self, v: u32) -> [u8; 4] {
        if self.0 { v.to_be_bytes() } else { v.to_le_bytes() }
    }

    fn u64(self, v: u64) -> [u8; 8] {
        if self.0 { v.to_be_bytes() } else { v.to_le_bytes() }
    }

    fn classic(self, magic: u32, link: u32, records: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let mut b = self.u32(magic).to_vec();
        b.extend(self.u16(2));
        b.extend(self.u16(4));
        b.extend([0; 8]);
        b.extend(self.u32(96));
        b.extend(self.u32(link));
        for (s, f, wire, data) in records {
            for v in [*s, *f, u32::try_from(data.len()).unwrap(), *wire] {
                b.extend(self.u32(v));
            }
            b.extend(*data);
        }
        b
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let len = u32::try_from(12 + body.len().next_multiple_of(4)).unwrap();
        let mut b = [self.u32(kind), self.u32(len)].concat();
        b.extend(body);
        b.resize(len as usize - 4, 0);
        b.extend(self.u32(len));
        b
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut b = [self.u16(code), self.u16(u16::try_from(value.len()).unwrap())].concat();
        b.extend(value);
        b.resize(b.len().next_multiple_of(4), 0);
        b
    }

    fn section(self, options: &[u8]) -> Vec<u8> {
        let mut body = self.u32(0x1a2b_3c4d).to_vec();
        body.extend(self.u16(1));
        body.extend(self.u16(0));
        body.extend([0xff; 8]);
        body.extend(options);
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, link: u16, options: &[Vec<u8>]) -> Vec<u8> {
        let mut body = [self.u16(link), self.u16(0)].concat();
        body.extend(self.u32(0));
        body.extend(options.concat());
        self.block(1, &body)
    }

    fn packet(self, interface: u32, ticks: u64, data: &[u8], wire: u32, options: &[Vec<u8>]) -> Vec<u8> {
        let [hi, lo] = [ticks >> 32, ticks & 0xffff_ffff].map(|v| u32::try_from(v).unwrap());
        let len = u32::try_from(data.len()).unwrap();
        let mut body: Vec<u8> = [interface, hi, lo, len, wire].into_iter().flat_map(|v| self.u32(v)).collect();
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(options.concat());
        self.block(6, &body)
    }
}

const ORDERS: [Order; 2] = [Order(false), Order(true)];

#[test]
fn classic_files_in_every_order_and_unit() {
    for o in ORDERS {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let bytes = o.classic(magic, 113, &[(7, 999_999, 90, b"abc"), (8, 1, 3, b"xyz"), (9, 0, 0, b"")]);
            let mut r = read(bytes).unwrap();
            assert_eq!((r.format(), r.interfaces()[0].link, r.interfaces()[0].snaplen), (Format::Pcap, 113, 96));
            let (kept, error) = all(&mut r);
            assert_eq!(error, None);
            assert_eq!(
                kept,
                [
                    (Timestamp(7_000_000_000 + 999_999 * unit), 0, 113, 90, b"abc".to_vec()),
                    (Timestamp(8_000_000_000 + unit), 0, 113, 3, b"xyz".to_vec()),
                    (Timestamp(9_000_000_000), 0, 113, 0, vec![]),
                ]
            );
        }
    }
    // the high bits of the link type say that an FCS of 4 bytes follows each packet
    let r = read(ORDERS[0].classic(0xa1b2_c3d4, 0x2400_0001, &[])).unwrap();
    assert_eq!((r.interfaces()[0].link, r.interfaces()[0].fcs_bits), (1, Some(32)));
}

/// Two sections in different byte orders, four interfaces with different units, and what else there may be.
fn rich_pcapng() -> Vec<u8> {
    let [le, be] = ORDERS;
    let mut b = le.section(&le.option(1, b"a file"));
    b.extend(le.interface(1, &[le.option(2, b"eth0"), le.option(9, &[9]), le.option(0, &[])]));
    b.extend(le.interface(101, &[le.option(3, b"second"), le.option(14, &le.u64(100))]));
    b.extend(le.block(4, &[0; 8])); // names
    b.extend(le.packet(
        0,
        1_700_000_000_123_456_789,
        b"first",
        5,
        &[
            le.option(1, b"look here"),
            le.option(1, "and \u{e9}".as_bytes()),
            le.option(2, &le.u32(1)),
            le.option(4, &le.u64(17)),
            le.option(0, &[]),
        ],
    ));
    b.extend(le.packet(1, 1_000_001, b"cut", 1500, &[]));
    // a comment that is no UTF-8 hides nothing
    b.extend(le.packet(1, 2_000_000, b"odd", 3, &[le.option(1, &[0xff, 0xfe])]));
    b.extend(
        le.block(5, &[le.u32(0).to_vec(), vec![0; 8], le.option(4, &le.u64(1000)), le.option(5, &le.u64(9))].concat()),
    );
    b.extend(be.section(&[]));
    // the name is no UTF-8, which the crate refuses
    b.extend(be.interface(276, &[be.option(2, &[0xff]), be.option(9, &[0x8a])]));
    b.extend(be.interface(1, &[]));
    b.extend(be.packet(0, 3 * 1024 + 512, b"half", 4, &[be.option(4, &be.u64(3))]));
    b.extend(be.block(3, &[&be.u32(6)[..], b"simple"].concat()));
    // the old packet block: 16-bit interface and drop count
    b.extend(be.block(2, &[&[0, 1, 0, 2][..], &be.u64(5_000_000), &be.u32(3), &be.u32(3), b"old"].concat()));
    b
}

#[test]
fn pcapng_with_everything() {
    let mut r = read(rich_pcapng()).unwrap();
    assert_eq!(r.format(), Format::PcapNg);
    let first = r.next().unwrap().unwrap();
    assert_eq!(first.options.comments().collect::<Vec<_>>(), ["look here", "and \u{e9}"]);
    assert_eq!((first.options.flags(), first.options.drop_count()), (Some(1), Some(17)));
    let mut r = read(rich_pcapng()).unwrap();
    let (kept, error) = all(&mut r);
    assert_eq!(error, None);
    assert_eq!(
        kept,
        [
            (Timestamp(1_700_000_000_123_456_789), 0, 1, 5, b"first".to_vec()),
            (Timestamp(101_000_001_000), 1, 101, 1500, b"cut".to_vec()),
            (Timestamp(102_000_000_000), 1, 101, 3, b"odd".to_vec()),
            (Timestamp(3_500_000_000), 2, 276, 4, b"half".to_vec()),
            (Timestamp(0), 2, 276, 6, b"simple".to_vec()),
            (Timestamp(5_000_000_000), 3, 1, 3, b"old".to_vec()),
        ]
    );
    assert_eq!(r.interfaces().len(), 4);
    assert_eq!(r.interfaces()[0].name.as_deref(), Some("eth0"));
    assert_eq!(r.comments(), ["a file"]);
    assert_eq!((r.dropped(), r.interfaces()[0].received), (Some(9), Some(1000)));
    // in chunks it is the same
    let mut r = read(rich_pcapng()).unwrap();
    let mut chunked = Vec::new();
    while let Some(c) = r.next_chunk().unwrap() {
        assert!(!c.is_empty());
        chunked.extend(c.records().map(|r| (r.at, r.interface, r.link, r.wire_len, r.bytes.to_vec())));
    }
    assert_eq!(chunked, kept);
}

#[test]
fn interface_times_at_their_limits() {
    let o = ORDERS[0];
    for (resolution, ticks, expected) in [
        (0, 5, 5_000_000_000),
        (3, 5, 5_000_000),
        (12, 5_000, 5),
        (127, u64::MAX, 0),
        (0xff, u64::MAX, 0),
        (0x80, 3, 3_000_000_000),
        (0, u64::MAX, i64::MAX),
    ] {
        let mut b = o.section(&[]);
        b.extend(o.interface(1, &[o.option(9, &[resolution])]));
        b.extend(o.packet(0, ticks, b"x", 1, &[]));
        assert_eq!(all(&mut read(b).unwrap()).0[0].0, Timestamp(expected), "{resolution}");
    }
}

#[test]
fn packed_files_are_the_same() {
    let plain = std::fs::read(capture("op_mixed.pcap")).unwrap();
    let expected = all(&mut read(plain.clone()).unwrap());
    assert_eq!(expected.0.len(), 56);
    let gzip = |b: &[u8]| {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        e.write_all(b).unwrap();
        e.finish().unwrap()
    };
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(&plain).unwrap();
    let (a, b) = plain.split_at(plain.len() / 2);
    for (name, packed) in [
        ("gzip", gzip(&plain)),
        // as `cat a.gz b.gz` makes it
        ("gzip", [gzip(a), gzip(b)].concat()),
        // padded to a whole block
        ("gzip", [gzip(&plain), vec![0; 200_000]].concat()),
        ("lz4", lz4.finish().unwrap()),
        #[cfg(feature = "zstd")]
        ("zstd", zstd::encode_all(&plain[..], 1).unwrap()),
        #[cfg(feature = "zstd")]
        ("zstd", [zstd::encode_all(a, 1).unwrap(), zstd::encode_all(b, 1).unwrap()].concat()),
    ] {
        let mut r = read(packed.clone()).unwrap();
        assert_eq!(r.packing(), Some(name));
        assert_eq!(all(&mut r), expected, "{name}");
        if packed.ends_with(&[0; 4096]) {
            let mut r = read([&packed[..], &b"this is no member of it"[..]].concat()).unwrap();
            let (kept, error) = all(&mut r);
            assert_eq!(kept, expected.0);
            assert!(error.unwrap().contains("gzip"));
            continue;
        }
        // cut in its middle: packets first, then one sentence
        let mut r = match read(packed[..packed.len() / 2].to_vec()) {
            Ok(r) => r,
            // so small a file is a single block, of which a half is nothing
            Err(e) => {
                assert!(name != "gzip" && matches!(e, OpenError::Packing { packing, .. } if packing == name), "{e}");
                continue;
            }
        };
        let (kept, error) = all(&mut r);
        assert!(kept.len() < 56 && kept[..] == expected.0[..kept.len()]);
        let error = error.unwrap_or_default();
        assert!(error.starts_with("test: byte ") && error.contains("of the unpacked data"), "{name}: {error}");
    }
    let twice = read(gzip(&gzip(&plain))).unwrap_err().to_string();
    assert!(twice.contains("a packed file inside a packed file"), "{twice}");
}

#[test]
fn what_is_no_capture_is_called_by_its_name() {
    for (bytes, says) in [
        (&b""[..], "the file is empty"),
        (b"\xd4\xc3\xb2\xa1", "cut inside the file header: 24 bytes needed, 4 are there"),
        (b"\x0a\x0d\x0d\x0a\x1c\0", "cut inside the file header"),
        (b"\x34\xcd\xb2\xa1\x02\0\x04\0", "Kuznetzov"),
        (b"\xa1\xb2\xcd\x34\0\x02\0\x04", "Kuznetzov"),
        (b"snoop\0\0\0\0\0\0\x02", "Solaris snoop"),
        (b"\xac\x01\0\x1c", "IXIA"),
        (b"BZh91AY", "bunzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"hello, world", "first bytes are 68 65 6c 6c 6f 2c 20 77"),
        (b"\x0a\x0d\x0d\x0a\x1c\0\0\0ABCD\0\0\0\0\0\0", "byte-order mark"),
    ] {
        let e = read(bytes.to_vec()).unwrap_err().to_string();
        assert!(e.starts_with("test: ") && e.contains(says) && !e.contains('\n'), "{e}");
    }
    let e = Reader::open("/nowhere/at/all.pcap").unwrap_err().to_string();
    assert!(e.starts_with("/nowhere/at/all.pcap: "), "{e}");
    let e = Reader::open(env!("CARGO_MANIFEST_DIR")).unwrap_err().to_string();
    assert!(e.contains("directory"), "{e}");
}

#[test]
fn damage_is_said_once_with_its_place() {
    let o = ORDERS[0];
    let good = o.classic(0xa1b2_c3d4, 1, &[(1, 0, 3, b"abc"), (2, 0, 3, b"def")]);
    let mut wild = good.clone();
    wild[24 + 19 + 8..][..4].copy_from_slice(&[0xff; 4]);
    let mut r = read(wild).unwrap();
    assert!(r.next().unwrap().is_some());
    let e = r.next().unwrap_err();
    assert!(matches!(e.kind, ReadErrorKind::TooLong { says: 0xffff_ffff, .. }));
    assert_eq!((e.offset, e.packets), (43, 1));
    assert_eq!(r.next().unwrap(), None);
    let mut ng = o.section(&[]);
    ng.extend(o.packet(0, 1, b"abc", 3, &[]));
    let (kept, error) = all(&mut read(ng).unwrap());
    assert_eq!(
        (kept.len(), error.as_deref()),
        (0, Some("test: byte 28 (after packet 0): a packet of interface 0, but only 0 were described"))
    );
    // lengths that contradict each other, at either end of a block
    let mut ng = rich_pcapng();
    let n = ng.len();
    ng[n - 2] = 1;
    let (kept, error) = all(&mut read(ng).unwrap());
    assert_eq!(kept.len(), 5);
    assert!(error.unwrap().contains("pcapng block"));
}

/// A stream that gives what was sent, piece by piece, and waits for more.
struct Pipe(Receiver<Vec<u8>>, Vec<u8>);

impl Read for Pipe {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default();
        }
        let n = self.1.len().min(buf.len());
        buf[..n].copy_from_slice(&self.1[..n]);
        self.1.drain(..n);
        Ok(n)
    }
}

#[test]
fn a_growing_stream_gives_each_packet_as_soon_as_it_is_whole() {
    let bytes = ORDERS[0].classic(0xa1b2_c3d4, 1, &[(1, 0, 3, b"abc"), (2, 0, 3, b"def")]);
    let (send, receive) = channel();
    let (header, rest) = bytes.split_at(24);
    let (first, second) = rest.split_at(19);
    for piece in [&header[..3], &header[3..], &first[..7], &first[7..]] {
        send.send(piece.to_vec()).unwrap();
    }
    let mut r = Reader::from_read("pipe", Pipe(receive, Vec::new())).unwrap();
    // nothing beyond the first packet was sent, so a reader that wants more would wait for ever
    assert_eq!(r.next().unwrap().unwrap().bytes, b"abc");
    send.send(second.to_vec()).unwrap();
    assert_eq!(r.next().unwrap().unwrap().bytes, b"def");
    drop(send);
    assert_eq!(r.next().unwrap(), None);
}

#[test]
fn records_larger_than_the_window() {
    let big: Vec<u8> = (0..3_000_000_u32).map(|i| i.to_le_bytes()[0]).collect();
    let o = ORDERS[0];
    let bytes = o.classic(0xa1b2_c3d4, 1, &[(1, 0, 9, b"small"), (2, 0, 9, &big), (3, 0, 9, b"tail")]);
    let mut r = read(bytes.clone()).unwrap();
    let (kept, error) = all(&mut r);
    assert_eq!((kept.len(), error), (3, None));
    assert!(kept[1].4 == big && kept[2].4 == b"tail");
    let mut r = read(bytes).unwrap();
    let mut n = 0;
    while let Some(c) = r.next_chunk().unwrap() {
        n += c.records().filter(|r| !r.bytes.is_empty()).count();
    }
    assert_eq!(n, 3);
}

/// A sink that can be looked into afterwards.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, b: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(b);
        Ok(b.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn written(format: Format, bytes: Vec<u8>, keep: impl Fn(u64) -> bool) -> Result<Vec<u8>, WriteError> {
    let out = Shared::default();
    let mut w = Writer::to_write("out", format, out.clone());
    let mut r = read(bytes).unwrap();
    // a chunk owns its records, so the reader can be asked about their interfaces
    while let Some(chunk) = r.next_chunk().unwrap() {
        for record in chunk.records().filter(|r| keep(r.number)) {
            w.write(&record, r.interfaces())?;
        }
    }
    w.finish()?;
    let b = out.0.lock().unwrap().clone();
    Ok(b)
}

#[test]
fn written_pcapng_keeps_interfaces_comments_and_times() {
    let out = written(Format::PcapNg, rich_pcapng(), |n| n != 2 && n != 3).unwrap();
    let mut r = read(out.clone()).unwrap();
    let first = r.next().unwrap().unwrap();
    assert_eq!(first.options.comments().collect::<Vec<_>>(), ["look here", "and \u{e9}"]);
    assert_eq!((first.options.flags(), first.options.drop_count()), (Some(1), Some(17)));
    let mut r = read(out).unwrap();
    let (kept, error) = all(&mut r);
    assert_eq!(error, None);
    // interface 1 had no packet that was kept, so the later ones move up
    assert_eq!(
        kept,
        [
            (Timestamp(1_700_000_000_123_456_789), 0, 1, 5, b"first".to_vec()),
            (Timestamp(3_500_000_000), 1, 276, 4, b"half".to_vec()),
            (Timestamp(0), 1, 276, 6, b"simple".to_vec()),
            (Timestamp(5_000_000_000), 2, 1, 3, b"old".to_vec()),
        ]
    );
    assert_eq!(r.interfaces()[0].name.as_deref(), Some("eth0"));
}

#[test]
fn written_pcap_has_one_link_type() {
    let out = written(Format::Pcap, rich_pcapng(), |n| n == 2 || n == 3).unwrap();
    let (kept, _) = all(&mut read(out).unwrap());
    assert_eq!(kept[0], (Timestamp(101_000_001_000), 0, 101, 1500, b"cut".to_vec()));
    let e = written(Format::Pcap, rich_pcapng(), |_| true).unwrap_err();
    assert!(matches!(e, WriteError::LinkTypes { first: 1, second: 101, .. }), "{e}");
}

#[test]
fn the_input_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.pcap");
    std::fs::copy(capture("op_read.pcap"), &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    let link = dir.path().join("link.pcap");
    std::fs::hard_link(&path, &link).unwrap();
    for out in [path.clone(), dir.path().join(".").join("in.pcap"), link] {
        let e = Writer::create(&out, Some(&path)).unwrap_err();
        assert!(matches!(e, WriteError::SameFile { .. }), "{e}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // a file without packets is a capture too
    let empty = dir.path().join("empty.pcapng");
    Writer::create(&empty, Some(&path)).unwrap().finish().unwrap();
    assert_eq!(all(&mut Reader::open(&empty).unwrap()), (vec![], None));
}

#[test]
fn mutated_files_never_panic_or_grow() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut dice = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let seeds = [
        rich_pcapng(),
        std::fs::read(capture("op_read.pcap")).unwrap(),
        ORDERS[1].classic(0xa1b2_3c4d, 1, &[(1, 2, 3, b"abc")]),
    ];
    for round in 0..1_500 {
        let mut b = seeds[round % seeds.len()].clone();
        for _ in 0..=dice(3) {
            let at = dice(b.len());
            b[at] = if dice(2) == 0 { [0, 0xff, 0x7f, 0x80][dice(4)] } else { u8::try_from(dice(256)).unwrap() };
        }
        b.truncate(b.len() - dice(3) * dice(b.len() / 3));
        let whole = b.len();
        let Ok(mut r) = read(b.clone()) else { continue };
        let (kept, error) = all(&mut r);
        assert!(kept.iter().map(|k| k.4.len()).sum::<usize>() <= whole);
        let mut chunks = read(b).unwrap();
        let mut n = 0;
        let end = loop {
            match chunks.next_chunk() {
                Ok(Some(c)) => n += c.len(),
                Ok(None) => break None,
                Err(e) => break Some(e.to_string()),
            }
        };
        assert_eq!((n, end), (kept.len(), error));
    }
}

#[test]
fn native_erf_needs_records_that_follow_each_other() {
    let record = |seconds: u64, kind: u8, data: &[u8]| {
        let mut b = (seconds << 32 | 1 << 31).to_le_bytes().to_vec();
        b.extend([kind, 4]);
        b.extend((16 + u16::try_from(data.len()).unwrap()).to_be_bytes());
        b.extend([0, 0]);
        b.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        b.extend(data);
        b
    };
    let two = [record(7, 2, &[1; 60]), record(8, 21, &[2; 40])].concat();
    let mut reader = read(two.clone()).unwrap();
    assert_eq!((reader.format(), reader.interfaces()[0].link), (Format::Erf, 197));
    let (whole, error) = all(&mut reader);
    assert_eq!(error, None);
    assert_eq!(
        whole.iter().map(|k| (k.0.0, k.4.len())).collect::<Vec<_>>(),
        [(7_500_000_000, 76), (8_500_000_000, 56)]
    );
    // cut inside the second record: the first comes, then the error
    let (kept, error) = all(&mut read(two[..100].to_vec()).unwrap());
    assert_eq!(kept.len(), 1);
    assert!(error.unwrap().contains("byte 76 (after packet 1): the file is cut here"));
    // one whole record is a file, a part of one is not; nor are records of two years, of no type, of no length
    assert!(read(two[..76].to_vec()).is_ok());
    for bad in [
        two[..60].to_vec(),
        [record(7, 2, &[1; 60]), record(60_000_000, 2, &[1; 60])].concat(),
        [record(7, 2, &[1; 60]), record(8, 0, &[1; 60])].concat(),
        [record(7, 2, &[1; 60]), record(8, 2, &[])].concat(),
        b"What is written here looks like records to nobody, as long as it may be. ".repeat(400),
    ] {
        assert!(matches!(read(bad), Err(OpenError::NotACapture { .. })));
    }
    // written again, it is a pcap of ERF records
    let mut reader = read(two).unwrap();
    let file = tempfile::NamedTempFile::with_suffix(".pcap").unwrap();
    let mut writer = Writer::create(file.path(), None).unwrap();
    while let Some(chunk) = reader.next_chunk().unwrap() {
        chunk.records().for_each(|r| writer.write(&r, reader.interfaces()).unwrap());
    }
    writer.finish().unwrap();
    let mut again = Reader::open(file.path()).unwrap();
    assert_eq!((again.format(), again.interfaces()[0].link), (Format::Pcap, 197));
    assert_eq!(all(&mut again).0, whole);
}

#[test]
fn old_files_have_the_lengths_of_a_record_the_other_way_round() {
    let file = |minor: u16, first: u32, second: u32| {
        let mut b = 0xa1b2_c3d4u32.to_le_bytes().to_vec();
        b.extend(2u16.to_le_bytes());
        b.extend(minor.to_le_bytes());
        for word in [0, 0, 65535, 1, 7, 8, first, second] {
            b.extend(u32::to_le_bytes(word));
        }
        b.extend([0x11; 20]);
        b
    };
    for (minor, first, second) in [(4, 20, 60), (3, 20, 60), (3, 60, 20), (2, 60, 20)] {
        let (kept, error) = all(&mut read(file(minor, first, second)).unwrap());
        assert_eq!((kept.len(), error), (1, None), "2.{minor}");
        assert_eq!((kept[0].3, kept[0].4.len()), (60, 20), "2.{minor}");
    }
}
