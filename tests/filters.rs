//! The same display filters let the same packets pass as in tshark.
//!
//! tshark counts the packets and bytes of many filters in one run (`-z io,stat`); where a filter has a comma, which
//! separates them there, it gets a run of its own. Where tshark is not installed the test says so and has compared
//! nothing.

use std::path::Path;
use std::process::Command;

use dissector::capture::{Reader, Writer};
use dissector::cli::session::{Job, Session};
use dissector::filter::Filter;
use dissector::output::Format;
use dissector::service::DecodeAs;

/// Packets of all kinds, with and without RoCE.
const CAPTURES: &[&str] = &[
    "op_mixed.pcap",
    "op_write.pcap",
    "rnr_then_ok.pcap",
    "cm_reconnect.pcap",
    "vlan_write.pcap",
    "ipv6_nak.pcap",
    "uc_send_imm.pcap",
    "ecn_ce_in.pcap",
    "op_dscp26.pcap",
    "cm_perftest_write.pcap",
    "loss_cas_deep.pcap",
];

const FILTERS: &[&str] = &[
    // relations, how several occurrences count, names of the operators
    "infiniband.bth.opcode == 0x11",
    "infiniband.bth.opcode eq 021",
    "infiniband.bth.opcode == \"Reliable Connection (RC) - Acknowledge\"",
    "infiniband.aeth.syndrome.opcode == \"Nak\"",
    "ip.addr == 10.10.0.1",
    "ip.addr != 10.10.0.1",
    "ip.addr ~= 10.10.0.1",
    "ip.addr === 10.10.0.1",
    "ip.addr !== 10.10.0.1",
    "ip.addr any_ne 10.10.0.1",
    "ip.addr all_ne 10.10.0.1",
    "not ip.addr == 10.10.0.1",
    "any ip.addr == 10.10.0.1",
    "all ip.addr == 10.10.0.0/24",
    "any udp.port > 5000",
    "all udp.port > 4000",
    "all udp.port != 4791",
    "any udp.port != 4791",
    "all udp.port in {1000..60000}",
    "all frame.protocols matches \"udp\"",
    "udp.srcport > udp.dstport",
    "ip.src < ip.dst",
    "ip.src > 10.10.0.1",
    "infiniband.bth.a >= 1",
    "infiniband.bth.a < 1",
    "ip.ttl not in {64}",
    "infiniband.bth.opcode in {4 .. 6}",
    "ip.src in {10.10.0.0/24}",
    "ip.src in {10.10.0.1..10.10.0.3}",
    "frame.time_delta in {0..0.001}",
    "frame.time_relative < 0.001",
    "!ip.ttl",
    "not not ip.ttl",
    "frame.number==1||frame.number==2&&frame.number==3",
    // slices: what goes beyond the end is not there
    "frame[12:2] == \"\\x08\\x00\"",
    "frame[0:6] == eth.dst",
    "frame[0:2] == eth.dst[0:2]",
    "frame[30:] contains 12:b7",
    "frame[30:20000] contains 12:b7",
    "eth.src[4:10] contains 00",
    "eth.src[5:1] contains 0a",
    "eth.src[-2:2] == 00:0a",
    "eth.src[-1] == 0a",
    "eth.src[:3] == eth.dst[:3]",
    "udp[8] >= 0",
    "udp[0] >= 0",
    "infiniband[0] == 17",
    "infiniband[40] >= 0",
    "ip[0] == 'E'",
    "ip[0] == '\\x45'",
    "ip[0] == '\\105'",
    // text and bytes; a protocol is searched through to its end
    "frame contains 08:00:45",
    "frame contains \"\\x12\\xb7\"",
    "frame contains \"\\022\\267\"",
    "frame matches \"\\x12\\xb7\"",
    "frame matches r\"\\x12\\xb7\"",
    "frame matches \"(?s)\\x02.*\\xb7\"",
    "frame matches \"[[:alpha:]]{3}\"",
    "frame matches \"(?-i)A\"",
    "eth contains 12:b7",
    "ip contains 12:b7",
    "ip matches \"\\\\x12\\\\xb7\"",
    "ipv6 contains ff:ff",
    "udp contains 08:00",
    "vlan contains 12:b7",
    "tcp contains 01:01",
    "infiniband contains ff:ff",
    "infiniband.bth contains ff:ff",
    "infiniband.aeth contains 00",
    "infiniband.immdt contains 00",
    // functions
    "len(ip.src) == 4",
    "len(udp) == 8",
    "len(infiniband.bth) == 12",
    "len(infiniband) > 20",
    "count(ip.addr) == 2",
    "count(tcp.port) == 0",
    "count(ip.addr) & 1",
    "lower(frame.protocols) contains \"infiniband\"",
    "upper(frame.protocols) contains \"INFINIBAND\"",
    "string(frame.number) matches \"[13579]$\"",
    "string(ip.src) matches \"0.1$\"",
    "string(ip.src) == \"10.10.0.1\"",
    "string(eth.src) contains \":00\"",
    "string(ip.ttl)[0] == \"6\"",
    "string(infiniband.bth.opcode) == \"17\"",
    "string(infiniband.bth.destqp) contains \"1\"",
    "abs(frame.time_delta) > 0.001",
    "abs(ip.ttl - 100) == 36",
    "max(udp.port) == 4791",
    "min(udp.port) == 4791",
    // arithmetic
    "infiniband.bth.psn & 1",
    "infiniband.aeth.syndrome & 0x60 == 0x20",
    "udp.length & 0x18 == 0x18 && ip",
    "udp.length & 4 + 4",
    "udp.length & 0xff & 0x10",
    "all udp.port & 1 == 1",
    "ip.src & 255.255.255.0 == 10.10.0.0",
    "ip.src[0] & 0x0f == 0a",
    "eth.dst[0] & 1",
    "infiniband.bth.psn % 2 == 0",
    "frame.len - 14 == ip.len",
    "frame.len==ip.len+14",
    "frame.len * 3 / 2 > 100",
    "ip.ttl / 0 == 1",
    "ip.ttl - 100 == -36",
    "ip.ttl == -1",
    "udp.length - {8 + 12} == 8",
    "{udp.length + 2} * 3 > 90",
    "udp.srcport + udp.dstport > 10000",
    "infiniband.bth.psn - 1 > infiniband.bth.destqp",
    "frame.time_delta + frame.time_delta > 0.002",
    "frame.time_relative - frame.time_delta > 0",
    // layers
    "ip.addr#1 == 10.10.0.1",
    "ip.addr#[1] == 10.10.0.1",
    "ip.addr#[-1] == 10.10.0.1",
    "udp.port#[1-2] == 4791",
    "udp.port#[1:] == 4791",
    "udp.port#[:1] == 4791",
    "ip#1",
    "ip#2",
    "all ip.addr#1 == 10.10.0.1",
    // with commas
    "infiniband.bth.opcode in {4..6,17}",
    "max(udp.srcport, udp.dstport) == 4791",
    "min(udp.srcport, udp.dstport) > 1024",
    "max(ip.len, udp.length) == ip.len",
    "max(frame.len, 100) == 100",
    "eth.src[1-2,5:] == 54:00:0a",
];

fn tshark(home: &Path) -> Command {
    let mut c = Command::new("tshark");
    c.env("HOME", home).env("XDG_CONFIG_HOME", home).env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
    c
}

/// Packets and bytes for each filter, as tshark counts them.
fn theirs(home: &Path, file: &Path, filters: &[&str]) -> Vec<(u64, u64)> {
    let statistic = format!("io,stat,0,{}", filters.join(","));
    let out = tshark(home).arg("-r").arg(file).args(["-q", "-z", &statistic]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let row = text
        .lines()
        .find(|l| l.contains("<>"))
        .unwrap_or_else(|| panic!("{statistic}: {text}{}", String::from_utf8_lossy(&out.stderr)));
    let cells: Vec<u64> = row.split('|').filter_map(|c| c.trim().parse().ok()).collect();
    assert_eq!(cells.len(), 2 * filters.len(), "{text}");
    cells.chunks(2).map(|c| (c[0], c[1])).collect()
}

#[test]
fn the_same_packets_pass_as_in_tshark() {
    let dir = tempfile::tempdir().unwrap();
    if !tshark(dir.path()).arg("-v").output().is_ok_and(|o| o.status.success()) {
        eprintln!("tshark is not installed: nothing was compared with it (apt install tshark)");
        return;
    }
    let file = dir.path().join("all.pcap");
    let mut writer = Writer::create(&file, None).unwrap();
    for name in CAPTURES {
        let mut reader = Reader::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("captures").join(name)).unwrap();
        while let Some(chunk) = reader.next_chunk().unwrap() {
            chunk.records().for_each(|r| writer.write(&r, reader.interfaces()).unwrap());
        }
    }
    writer.finish().unwrap();

    let compiled: Vec<Filter> = FILTERS.iter().map(|f| Filter::compile(f).unwrap_or_else(|e| panic!("{e}"))).collect();
    let mut ours = vec![(0u64, 0u64); FILTERS.len()];
    let mut session = Session::new(Job::new(Format::Quiet, None, 4791, false), DecodeAs::default());
    for f in &compiled {
        session.want(f);
    }
    let mut reader = Reader::open(&file).unwrap();
    while let Some(chunk) = reader.next_chunk().unwrap() {
        for record in chunk.records() {
            session.packet(&record, 6, &mut Vec::new(), |tree, frame| {
                for (count, filter) in ours.iter_mut().zip(&compiled) {
                    if filter.matches(tree, frame) {
                        count.0 += 1;
                        count.1 += u64::from(record.wire_len);
                    }
                }
            });
        }
    }
    assert!(ours.iter().filter(|o| o.0 > 0).count() > FILTERS.len() * 3 / 4, "most filters must find something");

    let (with_comma, plain): (Vec<&str>, Vec<&str>) = FILTERS.iter().partition(|f| f.contains(','));
    let mut expected: Vec<(&str, (u64, u64))> = Vec::new();
    for some in plain.chunks(24) {
        expected.extend(some.iter().copied().zip(theirs(dir.path(), &file, some)));
    }
    for f in with_comma {
        let out = tshark(dir.path())
            .arg("-r")
            .arg(&file)
            .args(["-Y", f, "-T", "fields", "-e", "frame.len"])
            .output()
            .unwrap();
        let lengths: Vec<u64> = String::from_utf8_lossy(&out.stdout).lines().map(|l| l.parse().unwrap()).collect();
        expected.push((f, (lengths.len() as u64, lengths.iter().sum())));
    }
    let wrong: Vec<String> = expected
        .iter()
        .filter_map(|(f, theirs)| {
            let ours = ours[FILTERS.iter().position(|g| g == f).unwrap()];
            (ours != *theirs).then(|| format!("{f}: {ours:?}, tshark {theirs:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
