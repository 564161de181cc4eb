//! Management datagrams and upper protocols against tshark 4.0: every field that both know has the same values, on
//! the captures and on generated datagrams of every class and attribute. What differs stands in [`DIFFERENCES`] with
//! its reason; an entry that no longer differs fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use dissector::capture::Reader;
use dissector::dissect::ulp::Conversations;
use dissector::dissect::{self, Input, RecordInfo, Tree, Wanted, registry};
use dissector::frame::{Frame, LinkType};
use dissector::output::columns::Columns;
use dissector::wire::{BthFields, Deth, Qpn, ROCE_UDP_PORT};

/// How a value differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// tshark has no value.
    Ours,
    /// We have none.
    Theirs,
    /// Both have one.
    Both,
    /// tshark has ours, and once more.
    Twice,
}

/// Fields whose values differ (a star ends a prefix), how, and why.
const DIFFERENCES: &[(&str, Kind, &str)] = &[
    ("infiniband.cm.rej.reserved0", Kind::Both, "six bits are reserved; tshark masks two"),
    ("infiniband.cm.req.prim_flowlabel", Kind::Both, "tshark reads the word two bytes before it"),
    ("infiniband.cm.req.prim_reserved0", Kind::Both, "tshark reads the word two bytes before it"),
    ("infiniband.cm.req.prim_pktrate", Kind::Both, "tshark reads the word two bytes before it"),
    ("infiniband.cm.req.alt_flowlabel", Kind::Both, "tshark reads the word two bytes before it"),
    ("infiniband.cm.req.alt_reserved0", Kind::Both, "tshark reads the word two bytes before it"),
    ("infiniband.cm.req.alt_pktrate", Kind::Both, "tshark reads the word two bytes before it"),
    ("infiniband.cm.req.ip_cm*", Kind::Ours, "SIDR_REQ has the header too; tshark does not read SIDR"),
    ("infiniband.cm.req.serviceid*", Kind::Ours, "SIDR_REQ has a service id too; tshark does not read SIDR"),
    ("infiniband.cm.req.prim_localgid", Kind::Ours, "not IPv4-mapped; tshark goes by the frame"),
    ("infiniband.cm.req.prim_remotegid", Kind::Ours, "not IPv4-mapped; tshark goes by the frame"),
    ("infiniband.cm.req.prim_localgid_ipv4", Kind::Theirs, "not IPv4-mapped; tshark goes by the frame"),
    ("infiniband.cm.req.prim_remotegid_ipv4", Kind::Theirs, "not IPv4-mapped; tshark goes by the frame"),
    ("infiniband.linkspeedwidthpairstable.speed*", Kind::Both, "eight bits of widths; tshark masks one"),
    ("infiniband.multicastforwardingtable.portmask", Kind::Both, "a block has 32 masks; tshark shows 16"),
    ("infiniband.rmpp*", Kind::Ours, "vendor classes from 0x30 on carry RMPP; tshark reads it in SA only"),
    ("infiniband.sa.drdlid", Kind::Both, "tshark adds the name once more inside some records"),
    ("infiniband.smpdirected.d", Kind::Both, "one bit of 16; tshark declares 64 bits"),
    ("infiniband.smplid.smpdata", Kind::Theirs, "tshark gives this name to CM messages and SA records"),
    ("infiniband.smplid.smpdata", Kind::Both, "tshark adds the name again inside some attributes, for other bytes"),
    ("infiniband.smplid.smpdata", Kind::Twice, "tshark adds the name once more inside some attributes"),
    ("nfs.*", Kind::Theirs, "the reply is in chunks, which we name but do not put together; or operations of replies"),
    ("nfs.status", Kind::Twice, "tshark adds one for each operation"),
    ("nfs.status", Kind::Both, "tshark adds one for each operation"),
    ("nfs.*", Kind::Ours, "a call with a read chunk: tshark shows the RPC where the chunk ends, we where it stands"),
    ("nvme-rdma.cm.req.*", Kind::Ours, "private data behind the RDMA-CM header: tshark leaves them as bytes"),
    ("nvme.*", Kind::Ours, "capsules in several packets, registers and data by one name, which tshark has not"),
    ("rpc.*", Kind::Theirs, "the reply is in chunks, which we name but do not put together"),
    (
        "rpc.*",
        Kind::Twice,
        "tshark has the program version again under NFS, and reads a reply with a write chunk twice",
    ),
    ("rpc.repframe", Kind::Both, "the call is the SEND; tshark takes the end of its read chunk for it"),
    ("rpc.time", Kind::Both, "the call is the SEND; tshark takes the end of its read chunk for it"),
    ("nfs.procedure_v4", Kind::Twice, "tshark reads a reply with a write chunk twice"),
    ("rpc.programversion", Kind::Both, "tshark has it again under NFS, four times where it reads a reply twice"),
    ("rpc.*", Kind::Ours, "a call with a read chunk: tshark shows the RPC where the chunk ends, we where it stands"),
    ("rpcordma.*", Kind::Theirs, "RDS that tshark takes for RPC over RDMA by its bytes"),
];

/// The fields of these groups, as far as tshark has them.
fn common() -> Vec<&'static dissect::Field> {
    let out = Command::new("tshark").args(["-G", "fields"]).output().expect("tshark runs: apt-get install tshark");
    let text = String::from_utf8_lossy(&out.stdout);
    let theirs: BTreeSet<&str> = text.lines().filter_map(|l| l.split('\t').nth(2)).collect();
    let groups = dissect::ulp::GROUPS;
    registry::all()
        .filter(|f| groups.contains(&(f.id >> 8)) && f.ty != dissect::Type::None && theirs.contains(f.name))
        .collect()
}

fn ours(path: &Path, fields: &[&'static dissect::Field]) -> Vec<Vec<String>> {
    let columns = Columns::new(fields.to_vec());
    let mut wanted = Wanted::NONE;
    for f in fields {
        wanted.insert(f);
    }
    let mut memory = Conversations::default();
    let mut rows = vec![];
    let mut reader = Reader::open(path).expect("a capture");
    while let Some(r) = reader.next().expect("a whole capture") {
        let frame = Frame::parse(r.bytes, r.wire_len as usize, LinkType(r.link), ROCE_UDP_PORT);
        let packet = frame.packet();
        let context = match &packet {
            Some(Ok(p)) => Some(memory.push(r.number, r.at, &frame, p)),
            _ => None,
        };
        let record = RecordInfo { number: r.number, at: r.at, ..RecordInfo::default() };
        let input = Input {
            record,
            frame: &frame,
            packet: packet.as_ref(),
            icrc: None,
            context: context.as_ref(),
            analysis: None,
        };
        let mut tree = Tree::for_fields(&wanted);
        dissect::dissect(&input, &mut tree);
        let mut out = vec![];
        columns.packet(&tree, &mut out);
        let line = String::from_utf8(out).expect("text");
        rows.push(line.trim_end_matches('\n').split('\t').map(str::to_owned).collect());
    }
    rows
}

fn theirs(path: &Path, fields: &[&'static dissect::Field]) -> Vec<Vec<String>> {
    let mut c = Command::new("tshark");
    c.arg("-r").arg(path).args(["-T", "fields"]);
    for f in fields {
        c.args(["-e", f.name]);
    }
    let out = c.output().expect("tshark runs");
    String::from_utf8_lossy(&out.stdout).lines().map(|l| l.split('\t').map(str::to_owned).collect()).collect()
}

/// Differences by field and kind: the first example of each.
fn compare(path: &Path, fields: &[&'static dissect::Field]) -> BTreeMap<(&'static str, Kind), String> {
    let (a, b) = (ours(path, fields), theirs(path, fields));
    assert_eq!(a.len(), b.len(), "{}: both read every packet", path.display());
    let mut found = BTreeMap::new();
    for (n, (x, y)) in a.iter().zip(&b).enumerate() {
        for (f, (v, w)) in fields.iter().zip(x.iter().zip(y)) {
            let kind = match (v.is_empty(), w.is_empty()) {
                _ if v == w => continue,
                (_, true) => Kind::Ours,
                (true, _) => Kind::Theirs,
                _ if *w == format!("{v},{v}") => Kind::Twice,
                _ => Kind::Both,
            };
            let name = path.file_name().map(|f| f.to_string_lossy().into_owned()).unwrap_or_default();
            found.entry((f.name, kind)).or_insert_with(|| format!("{name} frame {}: ours {v:?}, tshark {w:?}", n + 1));
        }
    }
    found
}

fn explains(entry: &(&str, Kind, &str), field: &str, kind: Kind) -> bool {
    entry.1 == kind && entry.0.strip_suffix('*').map_or(entry.0 == field, |start| field.starts_with(start))
}

/// One datagram to QP 0 or 1 in an Ethernet frame, with a record header in front.
fn record(class: u8, method: u8, attribute: u16, rmpp: bool, seed: u64) -> Vec<u8> {
    let mut mad = vec![1, class, 1, method, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    mad.extend(attribute.to_be_bytes());
    mad.extend([0; 6]);
    let mut state = seed | 1;
    while mad.len() < 256 {
        // xorshift: any bytes do, as long as they are the same in every run
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // letters: what control bytes look like is another test's subject
        mad.push(b'!' + state.to_le_bytes()[3] % 90);
    }
    if class == 3 {
        mad[24..36].copy_from_slice(&[1, u8::from(rmpp), 0, 0, 0, 0, 0, 1, 0, 0, 0, 40]);
    }
    let to = u32::from(class != 0x01 && class != 0x81);
    let mut p = BthFields::new(0x64, to, 1).emit().to_vec();
    p.extend(Deth::emit(0x8001_0000, Qpn::new(to)));
    p.extend(mad);
    p.extend([0; 4]);
    let udp = u16::try_from(p.len() + 8).expect("small");
    let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    f.extend((udp + 20).to_be_bytes());
    f.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0, 0x12, 0xb7]);
    f.extend(udp.to_be_bytes());
    f.extend([0, 0]);
    f.extend(p);
    let len = u32::try_from(f.len()).expect("small").to_le_bytes();
    [&[0; 8][..], &len, &len, &f].concat()
}

/// A capture of every class and attribute that has a builder.
fn generated() -> tempfile::NamedTempFile {
    let mut all = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    let mut seed = 0x1234_5678_9abc_def0;
    let mut add = |class, method, attribute, rmpp| {
        seed += 0x9e37_79b9;
        all.extend(record(class, method, attribute, rmpp, seed));
    };
    for attribute in (0x10..=0x1c).chain([0x02, 0x20, 0x30, 0x31]) {
        add(0x01, 0x81, attribute, false);
        add(0x81, 0x81, attribute, false);
    }
    for attribute in (0x11..=0x19).chain([0x03, 0x20, 0x30, 0x31, 0x33, 0x35, 0x36, 0x38, 0x39, 0x3a, 0x3b, 0xf3]) {
        add(0x03, 0x81, attribute, true);
    }
    for attribute in [0x01, 0x12, 0x1d] {
        add(0x04, 0x81, attribute, false);
    }
    for attribute in 0x10..=0x1a {
        add(0x07, 0x03, attribute, false);
    }
    for class in [0x05, 0x06, 0x08, 0x09, 0x21, 0x30] {
        add(class, 0x01, 0x11, false);
    }
    let file = tempfile::NamedTempFile::with_suffix(".pcap").expect("a temporary file");
    std::fs::write(file.path(), all).expect("room for it");
    file
}

#[test]
fn the_same_values_as_tshark() {
    let fields = common();
    assert!(fields.len() > 300, "tshark knows {} of our fields", fields.len());
    let mut found = BTreeMap::new();
    let made = generated();
    let captures = roce_tests::all_captures().into_iter().filter(|p| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        ["cm_", "ulp_", "ipv6_cm", "vlan_cm"].iter().any(|w| name.starts_with(w))
    });
    for path in captures.chain([made.path().to_owned()]) {
        for (field, example) in compare(&path, &fields) {
            found.entry(field).or_insert(example);
        }
    }
    let new: Vec<_> = found
        .iter()
        .filter(|((f, k), _)| !DIFFERENCES.iter().any(|d| explains(d, f, *k)))
        .map(|((f, k), e)| format!("{f} ({k:?}): {e}"))
        .collect();
    assert!(new.is_empty(), "{} fields differ:\n{}", new.len(), new.join("\n"));
    let gone: Vec<_> = DIFFERENCES.iter().filter(|d| !found.keys().any(|(f, k)| explains(d, f, *k))).collect();
    assert!(gone.is_empty(), "these no longer differ, take them off the list: {gone:?}");
}
