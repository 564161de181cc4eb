use std::path::Path;

use super::*;
use crate::capture::Reader;
use crate::dissect::{self, Input, RecordInfo};
use crate::frame::{Frame, LinkType, icrc};

/// How many packets of a capture pass.
fn count(capture: &str, filter: &str) -> usize {
    let f = Filter::compile(filter).unwrap_or_else(|e| panic!("{e}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/captures").join(capture);
    let mut reader = Reader::open(path).unwrap();
    let mut n = 0;
    while let Some(r) = reader.next().unwrap() {
        let frame = Frame::parse(r.bytes, r.wire_len as usize, LinkType(r.link), 4791);
        let packet = frame.packet();
        let icrc = match &packet {
            Some(Ok(p)) => Some(icrc::verify(&frame, p)),
            _ => None,
        };
        let record = RecordInfo { number: r.number, at: r.at, ..RecordInfo::default() };
        let input = Input { record, frame: &frame, packet: packet.as_ref(), icrc, context: None, analysis: None };
        let mut tree = Tree::for_fields(f.wanted());
        dissect::dissect(&input, &mut tree);
        n += usize::from(f.matches(&tree, r.bytes));
    }
    n
}

fn error(filter: &str) -> String {
    Filter::compile(filter).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn numbers_and_names_of_opcodes() {
    // rnr_then_ok.pcap: 41 Acknowledges, of them 16 NAK and 21 RNR NAK; 41 SEND Only (tests/captures/INDEX.md)
    let f = "rnr_then_ok.pcap";
    for filter in [
        "infiniband.bth.opcode == 17",
        "infiniband.bth.opcode == 0x11",
        "infiniband.bth.opcode eq 021",
        "infiniband.bth.opcode == \"RC Acknowledge\"",
        "infiniband.bth.opcode == \"Reliable Connection (RC) - Acknowledge\"",
        "infiniband.bth.opcode == \"rc acknowledge\"",
        "infiniband.bth.opcode == Acknowledge",
        "17 == infiniband.bth.opcode",
        "infiniband.bth.opcode in {0x11}",
        "infiniband.bth.opcode in {16..18, 0x13}",
        "infiniband.aeth",
        "infiniband.bth.opcode >= 17 && infiniband.bth.opcode<18",
        "16 < infiniband.bth.opcode < 18",
    ] {
        assert_eq!(count(f, filter), 41, "{filter}");
    }
    assert_eq!(count(f, "infiniband.bth.opcode == SEND"), 41);
    assert_eq!(count(f, "infiniband.bth.opcode != SEND"), 41);
    assert_eq!(count(f, "infiniband.aeth.syndrome == NAK"), 37);
    assert_eq!(count(f, "infiniband.aeth.syndrome == RNR"), 21);
    assert_eq!(count(f, "infiniband.aeth.syndrome >= 0x60"), 16);
    assert_eq!(count(f, "infiniband.aeth.syndrome.opcode == \"RNR Nak\""), 21);
    assert_eq!(count(f, "infiniband.aeth.syndrome & 0x60 == 0x20"), 21);
    assert_eq!(count(f, "infiniband.aeth.syndrome & 0x40"), 16);
    assert_eq!(count(f, "roce.nak"), 37);
    assert_eq!(count(f, "roce.nak == RNR or roce.nak matches \"psn.*ERROR\""), 37);
    assert_eq!(count(f, "not roce.nak and infiniband"), 45);
    assert_eq!(count(f, "!(roce.nak == RNR) && infiniband.aeth"), 20);
    assert_eq!(count(f, "infiniband.aeth xor infiniband"), 41);
}

#[test]
fn addresses_bytes_slices_and_functions() {
    let f = "op_write.pcap"; // 4 WRITE Only 10.10.0.1 → .2, 4 ACKs back, TCP around them
    for (filter, n) in [
        ("infiniband && ip.src == 10.10.0.1", 4),
        ("infiniband && ip.addr == 10.10.0.1", 8),
        ("infiniband && ip.addr != 10.10.0.1", 0),
        ("infiniband && ip.addr !== 10.10.0.1", 8),
        ("infiniband && ip.addr === 10.10.0.1", 0),
        ("infiniband && ip.addr === 10.10.0.0/24", 8),
        ("infiniband && any ip.addr == 10.10.0.1", 8),
        ("infiniband && all ip.addr == 10.10.0.1", 0),
        ("infiniband && ip.addr == 10.10.0.2/31", 8),
        ("infiniband && ip.src == 11.0.0.0/8", 0),
        ("infiniband && ip.src in {10.10.0.2..10.10.0.9}", 4),
        ("infiniband && eth.src == 52:54:00:00:00:0a", 4),
        ("infiniband && eth.src[0:3] == 52:54:00", 8),
        ("infiniband && eth.src[-1] == 0a", 4),
        ("infiniband && eth.src[5] == 0b", 4),
        ("infiniband && eth.src[1-2,5:] == 54:00:0a", 4),
        ("udp.port == 4791", 8),
        ("udp.srcport == udp.dstport", 0),
        ("infiniband.bth[0:1] == 11", 4),
        ("infiniband.bth[0] == 0x0a", 4),
        ("infiniband.aeth == 1f:00:00:04", 1),
        ("infiniband.aeth contains 00:04", 1),
        ("infiniband[12:1] == 1f", 4),
        ("infiniband.bth[200:1] == 00", 0),
        ("len(data.data) == 100", 4),
        ("count(ip.addr) == 2 && infiniband", 8),
        ("lower(roce.encapsulation) == \"rocev2\"", 8),
        ("infiniband.bth.a == true", 4),
        ("infiniband.bth.a == 0", 4),
        ("roce.icrc.status == good", 8),
        ("frame.number == 17", 1),
        ("infiniband.bth.p_key == 0xffff", 8),
    ] {
        assert_eq!(count(f, filter), n, "{filter}");
    }
    assert_eq!(count("ipv6_write.pcap", "ipv6.src == fd00::1 && infiniband"), 12);
    assert_eq!(count("ipv6_write.pcap", "infiniband && ipv6.addr == fd00::/16"), 16);
    assert_eq!(count("corrupt_a_send.pcap", "roce.icrc.status == \"bad\""), 6);
}

#[test]
fn errors_show_the_place_and_the_nearest_name() {
    assert_eq!(
        error("ip.src == 1.2.3.4 && infiniband.bth.opcod == 4"),
        "no field is called infiniband.bth.opcod; did you mean infiniband.bth.opcode?\n  \
         ip.src == 1.2.3.4 && infiniband.bth.opcod == 4\n                       ^~~~~~~~~~~~~~~~~~~~"
    );
    for (filter, says) in [
        ("", "empty"),
        ("infiniband.bth.opcode ==", "missing here"),
        ("(infiniband", "a ) is missing"),
        ("infiniband)", "closes nothing"),
        ("infiniband.bth.opcode == 256", "goes from 0 to 255"),
        ("infiniband.bth.opcode == \"RC Frobnicate\"", "no value of it"),
        ("ip.src == 10.0.0.1/33", "prefix"),
        ("ip.src == udp.srcport", "cannot be compared"),
        ("infiniband.bth.psn contains 1", "contains is for text and bytes"),
        ("roce.note matches \"(\"", "no regular expression"),
        ("infiniband.bth.opcode >= SEND", "only == and !="),
        ("infiniband.bth.psn#[ == 1", "no ]"),
        ("infiniband.bth.psn#[x] == 1", "a slice is"),
        ("ip.src + 1 == 2", "an IPv4 address"),
        ("{infiniband.bth.psn + 1 == 2", "a } is missing"),
        ("upper(ip.src) == \"A\"", "upper is for text"),
        ("count(udp.srcport + 1) > 1", "count is for fields"),
        ("len(ip.src, ip.dst) == 4", "len takes one argument"),
        ("max(udp.srcport, ip.src) > 1", "values of one type"),
        ("{udp.srcport + 1}[0] == 1", "it has no bytes"),
        ("roce.note == \"\\777\"", "octal"),
        ("infiniband infiniband", "operator is missing"),
        ("infiniband.bth.opcode in {}", "the set is empty"),
        ("infiniband.bth.opcode in 5", "a set is missing"),
        ("roce.note == \"abc", "no end"),
        ("infiniband.bth[", "no ]"),
        ("infiniband.bth[x] == 1", "a slice is"),
        ("infiniband.bth.psn == $", "means nothing"),
        ("frobnicate(infiniband) == 1", "no function is called"),
        ("eth.src == 1:2:3", "six bytes"),
        ("\"a\" == \"b\"", "no field is called"),
        ("'ab' == 1", "one character"),
    ] {
        let e = error(filter);
        assert!(e.contains(says), "{filter}: {e}");
        assert!(e.lines().count() == 3, "{e}");
    }
    // what would move the cursor is written out
    assert!(!error("ip.src == \u{1b}[31m").contains('\u{1b}'));
}

#[test]
fn nesting_has_an_end() {
    let deep = |n: usize| format!("{}infiniband{}", "(".repeat(n), ")".repeat(n));
    assert!(Filter::compile(&deep(49)).is_ok());
    assert!(error(&deep(100_000 / 4)).contains("nested more than"));
    assert!(error(&format!("{} infiniband", "!".repeat(5000))).contains("nested more than"));
    assert!(error(&"a".repeat(70_000)).contains("longer than"));
    // long is not deep
    assert!(Filter::compile(&vec!["infiniband"; 2000].join(" or ")).is_ok());
}

#[test]
fn protocols_beside_roce() {
    // ulp_nfs_rdma.pcap: 2 ARP, 2 ICMPv6 (tshark); perftest exchanges numbers over TCP 18515
    let all = count("ulp_nfs_rdma.pcap", "frame");
    assert_eq!(count("ulp_nfs_rdma.pcap", "arp"), 2);
    assert_eq!(count("ulp_nfs_rdma.pcap", "icmpv6"), 2);
    assert_eq!(count("ulp_nfs_rdma.pcap", "icmp || tcp || igmp || dns || lldp || macc || stp || ssh"), 0);
    assert_eq!(count("ulp_nfs_rdma.pcap", "!(arp or icmpv6) and infiniband"), all - 4);
    assert_eq!(count("ulp_nfs_rdma.pcap", "!tcp && !arp && !icmp && !icmpv6"), all - 4);
    assert_eq!(count("ulp_nfs_rdma.pcap", "arp.opcode == request && arp.src.proto_ipv4 == 10.10.0.0/16"), 1);
    assert_eq!(count("cm_mckey.pcap", "igmp.type == 0x22 && igmp.checksum.status == 1"), 6);
    assert_eq!(count("rc_write_bw.pcap", "tcp.flags.syn == 1 && tcp.port == 18515"), 2);
}
