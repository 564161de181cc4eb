//! Which format a file is, by its first bytes.

/// Bytes that are enough to tell.
pub const LEN: usize = 24;

/// What the first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magic {
    /// Classic pcap: byte order and whether times are in nanoseconds.
    Pcap {
        /// Most significant byte first.
        big_endian: bool,
        /// Nanoseconds, not microseconds.
        nanos: bool,
    },
    /// pcapng.
    PcapNg,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard frame (RFC 8878), or a skippable one.
    Zstd,
    /// LZ4 frame, also the legacy one.
    Lz4,
    /// Known, not read: its name and what to do.
    Foreign(&'static str, &'static str),
    /// Unknown.
    Unknown,
}

const EDITCAP: &str = "convert it: editcap -F pcap IN OUT";

/// First bytes of formats that are named but not read.
const FOREIGN: &[(&[u8], &str, &str)] = &[
    (&[0xa1, 0xb2, 0xcd, 0x34], "a pcap file modified by Alexey Kuznetzov's old libpcap patch", EDITCAP),
    (&[0x34, 0xcd, 0xb2, 0xa1], "a pcap file modified by Alexey Kuznetzov's old libpcap patch", EDITCAP),
    (&[0xa1, 0xe2, 0xcb, 0x12], "a pcap file in the AIX or NetBSD variant", EDITCAP),
    (&[0x12, 0xcb, 0xe2, 0xa1], "a pcap file in the AIX or NetBSD variant", EDITCAP),
    (&[0x1c, 0x00, 0x01, 0xac], "an IXIA hardware capture (lcap)", EDITCAP),
    (&[0xac, 0x01, 0x00, 0x1c], "an IXIA hardware capture (lcap)", EDITCAP),
    (&[0x1c, 0x00, 0x01, 0xab], "an IXIA software capture (lcap)", EDITCAP),
    (&[0xab, 0x01, 0x00, 0x1c], "an IXIA software capture (lcap)", EDITCAP),
    (b"snoop\0\0\0", "a Solaris snoop capture", EDITCAP),
    (b"btsnoop\0", "a Bluetooth snoop log", "it holds no network packets"),
    (b"iptrace 1.0", "an AIX iptrace capture", EDITCAP),
    (b"iptrace 2.0", "an AIX iptrace capture", EDITCAP),
    (b"GMBU", "a Microsoft Network Monitor 2 capture", EDITCAP),
    (b"RTSS", "a Microsoft Network Monitor 1 capture", EDITCAP),
    (b"TRSNIFF data", "a Sniffer capture", EDITCAP),
    (b"XCP\0", "a NetXRay or Sniffer capture", EDITCAP),
    (b"\x7fver", "an EtherPeek capture", EDITCAP),
    (b"\x54\x50\x43\x00", "a TamoSoft capture", EDITCAP),
    (b"BZh", "a bzip2 file", "unpack it: bunzip2 -k FILE, or bzcat FILE | roce-dissect -"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "an xz file", "unpack it: unxz -k FILE, or xzcat FILE | roce-dissect -"),
    (b"PK\x03\x04", "a zip archive", "unpack it: unzip FILE"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "unpack it: 7z x FILE"),
    (b"\x7fELF", "a program", "give a capture file"),
];

/// Tells the format. `bytes` is the start of the file, at best [`LEN`] bytes of it.
pub fn sniff(bytes: &[u8]) -> Magic {
    match bytes {
        [0xa1, 0xb2, 0xc3, 0xd4, ..] => Magic::Pcap { big_endian: true, nanos: false },
        [0xa1, 0xb2, 0x3c, 0x4d, ..] => Magic::Pcap { big_endian: true, nanos: true },
        [0xd4, 0xc3, 0xb2, 0xa1, ..] => Magic::Pcap { big_endian: false, nanos: false },
        [0x4d, 0x3c, 0xb2, 0xa1, ..] => Magic::Pcap { big_endian: false, nanos: true },
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => Magic::PcapNg,
        [0x1f, 0x8b, ..] => Magic::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Magic::Zstd,
        [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Magic::Lz4,
        _ => FOREIGN
            .iter()
            .find(|(start, ..)| bytes.starts_with(start))
            .map_or(Magic::Unknown, |(_, what, hint)| Magic::Foreign(what, hint)),
    }
}
