//! Packets that other dissectors read wrongly, and what is right: each test is one kind of fault.

use dissector::capture::{Record, Timestamp};
use dissector::cli::session::{Job, Session};
use dissector::filter::Filter;
use dissector::output::columns::Columns;
use dissector::output::text::{Line, TimeStyle};
use dissector::output::{Format, field};
use dissector::service::DecodeAs;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect()
}

fn print(frame: &[u8], wire: usize, link: u16, format: Format) -> String {
    let record = Record {
        number: 1,
        at: Timestamp(0),
        link,
        bytes: frame,
        wire_len: u32::try_from(wire).unwrap(),
        ..Record::default()
    };
    let mut out = Vec::new();
    Session::new(Job::new(format, None, 4791, false), DecodeAs::default()).packet(&record, 6, &mut out, |_, _| {});
    String::from_utf8(out).unwrap().trim_end_matches('\n').to_owned()
}

/// Fields of an Ethernet frame, joined by blanks.
fn fields(frame: &[u8], names: &[&str]) -> String {
    let mut c = Columns::new(names.iter().map(|n| field(n).unwrap()).collect());
    c.separator = b' ';
    print(frame, frame.len(), 1, Format::Columns(c))
}

/// The one-line text from the protocol on.
fn line_of(frame: &[u8], wire: usize, link: u16) -> String {
    let text = print(frame, wire, link, Format::Line(Line { time: TimeStyle::Relative, hex: false, tabs: false }));
    text.split_once("→").unwrap().1.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

fn line(frame: &[u8]) -> String {
    line_of(frame, frame.len(), 1)
}

/// Ethernet, IPv4 and UDP to 4791 around a transport packet.
fn v2(transport: &[u8]) -> Vec<u8> {
    v2_ports(transport, 49152, 4791)
}

fn v2_ports(transport: &[u8], src: u16, dst: u16) -> Vec<u8> {
    let udp = u16::try_from(8 + transport.len()).unwrap();
    let mut b = bytes("020000000002 020000000001 0800 4500");
    b.extend((20 + udp).to_be_bytes());
    b.extend(bytes("12344000 4011 0000 0a000001 0a000002"));
    b.extend(src.to_be_bytes());
    b.extend(dst.to_be_bytes());
    b.extend(udp.to_be_bytes());
    b.extend([0, 0]);
    b.extend(transport);
    b
}

/// BTH with this opcode and second byte, the rest, four bytes of ICRC.
fn bth(opcode: u8, flags: u8, rest: &[u8]) -> Vec<u8> {
    let mut b = vec![opcode, flags];
    b.extend(bytes("ffff 00 000012 80 000064"));
    b.extend(rest);
    b.extend(bytes("11223344"));
    b
}

/// A CNP of a ConnectX-4 Lx.
const CNP: &str = "e41d2dab2bc2 7cfe90643b32 0800 45c2003c718c4000401191610a0011010a001201 000012b700280000
    8100ffff4000011800000000 00000000000000000000000000000000 82fd002a";
/// RoCEv1, WRITE Only with five bytes of payload and three of pad.
const V1_WRITE: &str = "7cfe90753cd8 7cfe90753cd8 8915 6020000000281b4000000000000000000000ffff0f000002
    00000000000000000000ffff0f000002 0a70ffff0000010a80a788bc 000055d4c0726000000047b300000005 0000000001 000000 e3d856bb";

#[test]
fn a_cnp_is_a_cnp() {
    let f = bytes(CNP);
    assert!(line(&f).starts_with("RRoCE 74 CNP QP=0x000118 PSN=0 BECN"), "{}", line(&f));
    assert_eq!(
        fields(
            &f,
            &[
                "infiniband.bth.becn",
                "infiniband.bth.fecn",
                "infiniband.cnp.reserved",
                "infiniband.invariant.crc",
                "roce.icrc.status"
            ]
        ),
        "1 0 00000000000000000000000000000000 0x82fd002a good"
    );
}

#[test]
fn a_payload_is_not_guessed_at() {
    // shorter than an RPC-over-RDMA header; EtherTypes; zeros that look like SMB Direct
    for n in 0..40usize {
        for start in ["", "08000000", "08060000", "86dd0000", "00000030 00000001"] {
            let mut payload = bytes(start);
            payload.resize(payload.len().max(n / 4 * 4), 0);
            let f = v2(&bth(0x04, 0, &payload));
            let want = if payload.is_empty() { " ".to_owned() } else { format!("{} {}", payload.len(), payload.len()) };
            let got = fields(&f, &["data.len", "roce.payload_len"]);
            assert_eq!(got.replace(" 0", " "), want.replace(" 0", " "), "{start} {n}");
            assert!(!line(&f).contains("truncated"));
        }
    }
}

#[test]
fn a_cut_packet_shows_what_is_there_and_says_where_it_ends() {
    let mut rest = bytes("00007f0011223344 00abcdef 00000028");
    rest.extend([0x5a; 40]);
    let whole = v2(&bth(0x0a, 0x40, &rest));
    let cut = |n: usize| line_of(&whole[..n], whole.len(), 1);
    assert!(
        cut(100).contains("DMALen=40") && cut(100).contains("[truncated: 30 of 40 bytes of payload]"),
        "{}",
        cut(100)
    );
    assert!(
        cut(64).contains("PSN=100") && cut(64).contains("[RETH: needs 16 bytes, 10 captured (frame cut at 64 of 114)]"),
        "{}",
        cut(64)
    );
    assert!(cut(54).contains("[RETH: needs 16 bytes, 0 captured (frame cut at 54 of 114)]"), "{}", cut(54));
    // every length prints something and nothing panics
    for n in 0..=whole.len() {
        cut(n);
    }
}

#[test]
fn a_short_packet_says_what_it_lacks() {
    // an Acknowledge is complete with 20 bytes
    for n in [0usize, 1, 11, 12, 13, 15, 16, 19, 20] {
        let mut t = bth(0x11, 0, &bytes("1f000007"));
        t.truncate(n);
        let text = line(&v2(&t));
        match n {
            0..12 => assert!(text.contains("BTH: needs 12 bytes"), "{n}: {text}"),
            12..16 => assert!(text.contains("AETH: needs 4 bytes"), "{n}: {text}"),
            16..20 => assert!(text.contains("ACK MSN=7") && text.contains("ICRC: needs 4 bytes"), "{n}: {text}"),
            _ => assert!(text.contains("ACK MSN=7") && !text.contains("needs"), "{n}: {text}"),
        }
    }
}

#[test]
fn rocev1_ends_by_its_grh_and_pad_is_not_payload() {
    let mut f = bytes(V1_WRITE);
    let names = ["infiniband.invariant.crc", "data.data", "infiniband.pad", "roce.icrc.status"];
    assert_eq!(fields(&f, &names), "0xe3d856bb 0000000001 000000 good");
    f.extend(bytes("deadbeef")); // a captured FCS
    assert_eq!(fields(&f, &names), "0xe3d856bb 0000000001 000000 good");
    assert!(line(&f).starts_with("RoCE "), "{}", line(&f));
}

#[test]
fn only_the_destination_port_means_roce() {
    let t = bth(0x04, 0, &[1, 2, 3, 4]);
    assert_eq!(fields(&v2_ports(&t, 4791, 53123), &["infiniband.bth.opcode", "udp.srcport"]), " 4791");
    // well-known source ports do not matter, and 0 is one like any other
    for src in [0, 53, 69, 123, 500, 2049, 4789, 4791] {
        assert_eq!(fields(&v2_ports(&t, src, 4791), &["infiniband.bth.opcode"]), "4", "{src}");
    }
}

#[test]
fn headers_of_every_service() {
    let rest = bytes("00112233 44556677 00889900 000102030405060708090a0b0c0d0e0f 1011121314151617");
    let f = |op| v2(&bth(op, 0, &rest));
    assert_eq!(
        fields(&f(0x44), &["infiniband.rdeth.eecnxt", "infiniband.deth.q_key", "infiniband.deth.srcqp"]),
        "1122867 0x44556677 0x00889900"
    );
    assert_eq!(
        fields(&f(0x51), &["infiniband.rdeth.eecnxt", "infiniband.aeth.syndrome", "infiniband.aeth.msn"]),
        "1122867 68 5596791"
    );
    assert_eq!(fields(&f(0xa6), &["infiniband.xrceth.xrcsrq", "infiniband.reth.va"]), "0x112233 0x4455667700889900");
    assert_eq!(fields(&f(0xb1), &["infiniband.xrceth.xrcsrq", "infiniband.aeth.syndrome"]), " 0");
    assert_eq!(fields(&f(0x65), &["infiniband.deth.q_key", "infiniband.immdt"]), "0x00112233 00889900");
    assert_eq!(fields(&f(0x17), &["infiniband.ieth"]), "00112233");
    let flush = v2(&bth(0x1c, 0, &bytes("00000011 00007f0011223344 00abcdef 00000064")));
    assert_eq!(fields(&flush, &["infiniband.feth.sel", "infiniband.feth.plt", "infiniband.reth.dmalen"]), "1 1 100");
}

#[test]
fn atomics_in_the_right_order() {
    let f = v2(&bth(0x13, 0, &bytes("1122334455667788 99aabbcc 0102030405060708 1112131415161718")));
    assert_eq!(
        fields(
            &f,
            &[
                "infiniband.reth.va",
                "infiniband.reth.r_key",
                "infiniband.atomiceth.swapdt",
                "infiniband.atomiceth.cmpdt"
            ]
        ),
        format!("0x1122334455667788 0x99aabbcc {} {}", 0x0102_0304_0506_0708u64, 0x1112_1314_1516_1718u64)
    );
    let f = v2(&bth(0x12, 0, &bytes("1f000001 2122232425262728")));
    assert_eq!(fields(&f, &["infiniband.atomicacketh.origremdt"]), 0x2122_2324_2526_2728u64.to_string());
}

#[test]
fn a_write_with_immediate_and_no_data() {
    let f = v2(&bth(0x0b, 0, &bytes("0000000000000000 00000000 00000000 00400000")));
    assert_eq!(
        fields(&f, &["infiniband.reth.dmalen", "infiniband.immdt", "roce.payload_len", "data"]),
        "0 00400000 0 "
    );
    assert!(line(&f).contains("RDMA WRITE Only with Immediate") && line(&f).contains("Imm=0x00400000"));
}

#[test]
fn unknown_services_keep_their_bth_and_icrc() {
    for (op, name) in
        [(0xc4u8, "reserved"), (0xe4, "manufacturer specific"), (0x80, "CNP reserved"), (0x15, "RC reserved")]
    {
        let f = v2(&bth(op, 0, &bytes("00112233")));
        assert!(line(&f).contains(name) && line(&f).contains(&format!("{op:#04x}")), "{}", line(&f));
        assert_eq!(
            fields(&f, &["infiniband.bth.opcode", "infiniband.vendor", "infiniband.invariant.crc"]),
            format!("{op} 00112233 0x11223344")
        );
    }
}

#[test]
fn a_datagram_from_queue_pair_1_is_management_only_if_it_goes_to_one() {
    let datagram = |qp: u8| {
        let mut t = bth(0x64, 0, &[&bytes("11111111 00 000001")[..], &[1; 256]].concat());
        t[7] = qp;
        v2(&t)
    };
    assert_eq!(fields(&datagram(0x55), &["infiniband.mad", "data.len"]), " 256");
    assert_eq!(fields(&datagram(1), &["data.len"]), "");
    // the same in a connected service
    let mut t = bth(0x04, 0, &[1; 256]);
    t[7] = 1;
    assert_eq!(fields(&v2(&t), &["infiniband.mad", "data.len"]), " 256");
}

#[test]
fn link_type_247_is_infiniband() {
    // LRH (service level 2, BTH follows, 11 words), BTH, AETH, ICRC, VCRC
    let mut f = bytes("0022000400080003");
    f.extend(bth(0x11, 0, &bytes("60000007")));
    f.extend([0xab, 0xcd]);
    let text = line_of(&f, f.len(), 247);
    assert!(text.starts_with("InfiniBand") || text.contains("InfiniBand"), "{text}");
    assert!(text.contains("NAK, PSN sequence error MSN=7"), "{text}");
}

#[test]
fn syndromes_in_words() {
    for (syndrome, words) in [
        (0x1fu8, "ACK MSN"),
        (0x05, "ACK, 6 credits"),
        (0x20, "RNR NAK, wait 655.36 ms"),
        (0x2d, "RNR NAK, wait 0.96 ms"),
        (0x60, "NAK, PSN sequence error"),
        (0x61, "NAK, invalid request"),
        (0x62, "NAK, remote access error"),
        (0x63, "NAK, remote operational error"),
        (0x64, "NAK, invalid RD request"),
        (0x7f, "NAK, reserved code 31"),
        (0x41, "reserved kind, value 1"),
    ] {
        let f = v2(&bth(0x11, 0, &[syndrome, 0, 0, 1]));
        assert!(line(&f).contains(words), "{syndrome:#x}: {}", line(&f));
    }
}

#[test]
fn what_should_not_be_there_is_said() {
    // an Acknowledge with data behind it; TVer 3; a pad count without payload
    assert!(
        line(&v2(&bth(0x11, 0, &bytes("1f000001 0102030405060708"))))
            .contains("8 bytes follow where the opcode has no payload")
    );
    assert!(fields(&v2(&bth(0x04, 0x03, &[1; 4])), &["roce.note"]).contains("version 3"));
    let odd = v2(&bth(0x11, 0x60, &bytes("1f000001")));
    assert!(line(&odd).contains("ACK MSN=1"), "{}", line(&odd));
    assert_eq!(
        fields(&v2(&bth(0x04, 0x30, &[1])), &["roce.note"]),
        "pad count is larger than what follows the headers"
    );
}

#[test]
fn trailers_are_not_payload() {
    // a SEND without data is padded to 60 bytes on the wire
    let mut f = v2(&bth(0x04, 0, &[]));
    f.resize(60, 0xee);
    assert_eq!(fields(&f, &["roce.payload_len", "infiniband.invariant.crc"]), "0 0x11223344");
}

#[test]
fn filters_for_what_operators_look_for() {
    let nak = v2(&bth(0x11, 0, &bytes("60000001")));
    let rnr = v2(&bth(0x11, 0, &bytes("2d000001")));
    let ack = v2(&bth(0x11, 0, &bytes("1f000001")));
    let passes = |filter: &str, frame: &[u8]| {
        let f = Filter::compile(filter).unwrap();
        let mut passed = false;
        let record = Record {
            number: 1,
            link: 1,
            bytes: frame,
            wire_len: u32::try_from(frame.len()).unwrap(),
            ..Record::default()
        };
        let mut session = Session::new(Job::new(Format::Quiet, None, 4791, false), DecodeAs::default());
        session.want(&f);
        session.packet(&record, 6, &mut Vec::new(), |tree, bytes| passed = f.matches(tree, bytes));
        passed
    };
    for (filter, want) in [
        ("roce.nak", [true, true, false]),
        ("infiniband.aeth.syndrome == 0x60", [true, false, false]),
        ("infiniband.aeth.syndrome.opcode in {1, 3}", [true, true, false]),
        ("infiniband.bth.psn in {90..110} && infiniband.bth.destqp == 0x12", [true, true, true]),
    ] {
        assert_eq!([&nak, &rnr, &ack].map(|f| passes(filter, f)), want, "{filter}");
    }
}

/// Every prefix of a packet shows the fields of its headers that end inside it, with the values that they have.
#[test]
fn a_cut_header_shows_its_fields_up_to_the_cut() {
    // the worked vectors V4 and V5: a WRITE Only over IPv4 and IPv6; and the first inside VLAN and VXLAN
    let four = bytes(concat!(
        "0200000000020200000000010800456a004c00014000401126340a0000010a000002c12312b7003800000a40ffff0000012380000010",
        "00007f001122334400abcdef00000010000102030405060708090a0b0c0d0e0fc835316f"
    ));
    let six = bytes(concat!(
        "02000000000202000000000186dd66a1234500381140fd000000000000000000000000000001fd000000000000000000000000000002",
        "c12312b70038beef0a40ffff000001238000001000007f001122334400abcdef00000010000102030405060708090a0b0c0d0e0f379cd137"
    ));
    let tagged = [&four[..12], &[0x81, 0, 0x60, 7], &four[12..]].concat();
    let mut outer =
        bytes("020000000009020000000008080045000086000040004011000ac0a80001c0a800029c4012b500720000080000000000");
    outer.extend([9, 0]);
    let tunnel = [outer, four.clone()].concat();
    let headers = |frame: &[u8], wire: usize| {
        let mut wanted = dissector::dissect::Wanted::NONE;
        let groups = ["eth", "vlan", "ip", "ipv6", "udp", "vxlan"];
        let all = dissector::dissect::registry::all();
        let of_headers = |f: &&dissector::dissect::Field| {
            let whole = ["eth.trailer", "eth.padding", "eth.fcs", "vlan.trailer", "udp.payload"].contains(&f.name);
            f.name.contains('.') && groups.contains(&f.name.split('.').next().unwrap()) && !whole
        };
        all.filter(of_headers).for_each(|f| wanted.insert(f));
        let f = dissector::frame::Frame::parse(frame, wire, dissector::frame::LinkType::ETHERNET, 4791);
        let packet = f.packet();
        let input = dissector::dissect::Input {
            record: dissector::dissect::RecordInfo::default(),
            frame: &f,
            packet: packet.as_ref(),
            icrc: None,
            context: None,
            analysis: None,
        };
        let mut tree = dissector::dissect::Tree::for_fields(&wanted);
        dissector::dissect::dissect(&input, &mut tree);
        let read = tree.nodes().iter().filter(|n| !n.generated);
        read.map(|n| (n.field.name, n.range.clone(), format!("{:?}", n.value))).collect::<Vec<_>>()
    };
    for frame in [four, six, tagged, tunnel] {
        let whole = headers(&frame, frame.len());
        assert!(whole.len() > 30, "{}", whole.len());
        for n in 0..frame.len() {
            let expected: Vec<_> = whole.iter().filter(|(_, r, _)| r.end as usize <= n).cloned().collect();
            assert_eq!(headers(&frame[..n], frame.len()), expected, "cut at {n} of {}", frame.len());
        }
    }
}
