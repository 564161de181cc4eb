//! Management datagrams and upper protocols against tshark 4.0: every field that both know has the same values, on
//! the captures and on generated datagrams of every class and attribute. What differs stands in [`DIFFERENCES`] with
//! its reason; an entry that no longer differs fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use dissector::capture::{Reader, Timestamp};
use dissector::dissect::ulp::Conversations;
use dissector::dissect::{self, Input, RecordInfo, Tree, Wanted, registry};
use dissector::frame::{Frame, LinkType};
use dissector::output::columns::Columns;
use dissector::service::DecodeAs;
use dissector::wire::cm::ServiceId;
use dissector::wire::{BthFields, Deth, Qpn, ROCE_UDP_PORT, Reth};

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
    ("iscsi.*", Kind::Ours, "tshark stops behind the iSER header of this packet"),
    ("iser.*", Kind::Ours, "tshark does not take Hello and HelloReply for iSER"),
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

/// REQ, REP and RTU of the kernel's CM for another port and other numbers, then SENDs, the first from the client.
fn served(port: u16, number: u8, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut all = vec![];
    let mut add = |f: &[u8]| {
        let len = u32::try_from(f.len()).expect("small").to_le_bytes();
        all.extend([&[0; 8][..], &len, &len, f].concat());
    };
    let mut reader = Reader::open(roce_tests::captures().join("cm_rping.pcap")).expect("a capture");
    for n in 0..3 {
        let mut f = reader.next().expect("a whole capture").expect("three CM messages").bytes.to_vec();
        // the datagram starts at 62: transaction id at 8, CM message at 24
        f[62 + 15] = number;
        let cm = 62 + 24;
        f[cm] = number;
        f[cm + 4] = if n == 0 { 0 } else { number };
        match n {
            0 => {
                f[cm + 14..cm + 16].copy_from_slice(&port.to_be_bytes());
                f[cm + 32..cm + 35].copy_from_slice(&[0, 1, number]);
            }
            1 => f[cm + 12..cm + 15].copy_from_slice(&[0, 2, number]),
            _ => {}
        }
        add(&f);
    }
    for (n, m) in (0..).zip(messages) {
        let client = n % 2 == 0;
        let mut f = frame(1, SEND, if client { 0x200 } else { 0x100 } + u32::from(number), n, &[], m);
        // the addresses of that capture
        let (src, dst) = if client { ([10, 10, 0, 1], [10, 10, 0, 2]) } else { ([10, 10, 0, 2], [10, 10, 0, 1]) };
        f[26..30].copy_from_slice(&src);
        f[30..34].copy_from_slice(&dst);
        add(&f);
    }
    all
}

fn iser_command() -> Vec<u8> {
    let mut m = vec![0x1c, 0, 0, 0];
    m.extend(1..=24);
    let mut bhs: Vec<u8> = (0x41..0x41 + 48).collect();
    bhs[0] = 0x01;
    bhs[4..8].copy_from_slice(&[0, 0, 0, 4]);
    m.extend(bhs);
    m.extend(b"data");
    m
}

fn iser_hello(kind: u8) -> Vec<u8> {
    // versions are 10 (RFC 7145)
    let mut m = vec![kind << 4 | kind & 1, 0xaa, 0, 32];
    m.extend([0; 24]);
    m
}

fn smb_direct() -> Vec<Vec<u8>> {
    let request = [0, 1, 0, 1, 0, 0, 255, 0, 0x54, 5, 0, 0, 0, 0x20, 0, 0, 0, 0, 16, 0].to_vec();
    let response =
        [0, 1, 0, 1, 0, 1, 0, 0, 255, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x54, 5, 0, 0, 0, 0x20, 0, 0, 0, 0, 16, 0]
            .to_vec();
    let mut smb = b"\xfeSMB\x40\0".to_vec();
    smb.extend([0; 58]);
    smb[12] = 0x0d; // Echo
    smb[24] = 7;
    smb.extend([4, 0, 0, 0]);
    let len = u8::try_from(smb.len()).expect("small");
    let data = [&[255, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, len, 0, 0, 0, 0, 0, 0, 0][..], &smb].concat();
    vec![request, response, data]
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
    all.extend(served(3260, 1, &[iser_command(), iser_hello(2), iser_hello(3)]));
    all.extend(served(5445, 2, &smb_direct()));
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

/// Two machines that talk: a packet of one to a QP of the other, and what we say about it.
struct Talk {
    memory: Conversations,
    number: u64,
}

impl Talk {
    fn new(rules: &[&str]) -> Self {
        let mut d = DecodeAs::default();
        for r in rules {
            d.add(r).expect("a rule");
        }
        Self { memory: Conversations::new(d), number: 0 }
    }

    /// `from` is the last byte of the sender's address, 1 or 2; `ext` what stands between BTH and payload.
    fn say(&mut self, from: u8, op: u8, qp: u32, psn: u32, ext: &[u8], payload: &[u8]) -> String {
        let bytes = frame(from, op, qp, psn, ext, payload);
        self.frame(&bytes, bytes.len()).0
    }

    /// The line about a frame, and its tree as `name=value` lines.
    fn frame(&mut self, bytes: &[u8], wire_len: usize) -> (String, Vec<String>) {
        self.number += 1;
        let at = Timestamp(i64::try_from(self.number).expect("few") * 1_000_000);
        let frame = Frame::parse(bytes, wire_len, LinkType::ETHERNET, ROCE_UDP_PORT);
        let packet = frame.packet();
        let Some(Ok(p)) = &packet else { return (String::new(), vec![]) };
        let context = self.memory.push(self.number, at, &frame, p);
        let record = RecordInfo { number: self.number, at, ..RecordInfo::default() };
        let input = Input {
            record,
            frame: &frame,
            packet: packet.as_ref(),
            icrc: None,
            context: Some(&context),
            analysis: None,
        };
        let mut tree = Tree::new();
        dissect::dissect(&input, &mut tree);
        for n in tree.nodes() {
            let (start, end) = (n.range.start as usize, n.range.end as usize);
            assert!(
                start <= end && (end <= bytes.len() || n.generated),
                "{}: {:?} of {}",
                n.field.name,
                n.range,
                bytes.len()
            );
        }
        let mut line = String::new();
        let known = dissect::ulp::info(&input, p, &mut line);
        let fields = tree.nodes().iter().map(|n| format!("{}={:?}", n.field.name, n.value)).collect();
        (known.map_or_else(|| "data".to_owned(), |_| line), fields)
    }
}

fn frame(from: u8, op: u8, qp: u32, psn: u32, ext: &[u8], payload: &[u8]) -> Vec<u8> {
    let pad = payload.len().next_multiple_of(4) - payload.len();
    let mut p =
        BthFields { pad_count: u8::try_from(pad).expect("0 to 3"), ..BthFields::new(op, qp, psn) }.emit().to_vec();
    p.extend(ext);
    p.extend(payload);
    p.extend(vec![0; pad + 4]);
    let udp = u16::try_from(p.len() + 8).expect("small");
    let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    f.extend((udp + 20).to_be_bytes());
    f.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from, 0xc0, 0, 0x12, 0xb7]);
    f.extend(udp.to_be_bytes());
    f.extend([0, 0]);
    f.extend(p);
    f
}

fn words(list: &[u32]) -> Vec<u8> {
    list.iter().flat_map(|w| w.to_be_bytes()).collect()
}

/// RC SEND Only, WRITE First, Middle, Last; AETH of a plain acknowledge is not needed here.
const SEND: u8 = 0x04;
const WRITE: [u8; 3] = [0x06, 0x07, 0x08];

fn nvme_read(cid: u16, key: u32, len: u32) -> Vec<u8> {
    let mut c = vec![0; 64];
    c[0] = 0x02;
    c[1] = 0x40;
    c[2..4].copy_from_slice(&cid.to_le_bytes());
    c[4] = 1;
    c[24..32].copy_from_slice(&0x7f00_0000_1000u64.to_le_bytes());
    c[32..35].copy_from_slice(&len.to_le_bytes()[..3]);
    c[35..39].copy_from_slice(&key.to_le_bytes());
    c[39] = 0x4f;
    c[40..48].copy_from_slice(&77u64.to_le_bytes());
    c[48] = 7;
    c
}

#[test]
fn an_nvme_read_its_data_and_its_completion() {
    // no CM in sight: the user says what it is
    let mut t = Talk::new(&["qp:0x11=nvme", "qp:0x22=nvme"]);
    let mut connect = vec![0; 64];
    connect[0] = 0x7f;
    connect[4] = 1;
    connect[42] = 1;
    assert_eq!(t.say(1, SEND, 0x22, 1, &[], &connect), "NVMe Connect qid 1 CID 0x0000");
    let line = t.say(1, SEND, 0x22, 2, &[], &nvme_read(5, 0x1234, 4096));
    assert_eq!(line, "NVMe Read CID 0x0005 qid 1 nsid 1 LBA 77 blocks 8 4096 bytes key 0x00001234");
    let reth = Reth::emit(0x7f00_0000_1000, 0x1234, 4096);
    for (n, op) in [WRITE[0], WRITE[1], WRITE[1], WRITE[2]].into_iter().enumerate() {
        let ext: &[u8] = if n == 0 { &reth } else { &[] };
        let psn = u32::try_from(n).expect("few");
        let line = t.say(2, op, 0x11, (0xff_fffe + psn) & 0xff_ffff, ext, &[7; 1024]);
        assert_eq!(line, format!("NVMe data of Read CID 0x0005, offset {}", n * 1024));
    }
    let mut cqe = vec![0; 16];
    cqe[12] = 5;
    assert_eq!(t.say(2, SEND, 0x11, 2, &[], &cqe), "NVMe CQE for Read CID 0x0005: success after 5.00 ms");
    // 2 << 9 | 0x81 << 1: media error, unrecovered read error
    cqe[14..16].copy_from_slice(&(2u16 << 9 | 0x81 << 1).to_le_bytes());
    assert!(t.say(2, SEND, 0x11, 3, &[], &cqe).contains("unrecovered read error"));
    cqe[12] = 6;
    assert!(t.say(2, SEND, 0x11, 4, &[], &cqe).starts_with("NVMe CQE for a command not captured CID 0x0006"));
}

/// RPC call of NFS: version, procedure, then the arguments.
fn call(xid: u32, version: u32, procedure: u32, arguments: &[u32]) -> Vec<u8> {
    [words(&[xid, 0, 2, 100_003, version, procedure, 0, 0, 0, 0]), words(arguments)].concat()
}

#[test]
fn the_rpc_message_is_found_behind_any_chunk_list() {
    for (chunks, name) in [
        (vec![0, 0, 0], "none"),
        (vec![0, 0, 1, 1, 0xa, 4096, 0, 0x1000], "a reply chunk of one segment"),
        (vec![0, 0, 1, 2, 0xa, 4096, 0, 0x1000, 0xb, 4096, 0, 0x3000], "a reply chunk of two"),
        (vec![0, 1, 1, 0xc, 100, 0, 0x10, 0, 0], "a write chunk"),
    ] {
        let mut t = Talk::new(&["qp:0x33=nfs"]);
        // the first word looks like a record mark of RPC over TCP
        let head = [words(&[0x8000_0030, 1, 32, 0]), words(&chunks)].concat();
        let null = [head.clone(), call(0x8000_0030, 3, 0, &[])].concat();
        assert_eq!(t.say(1, SEND, 0x33, 1, &[], &null), "NFS v3 NULL call XID 0x80000030", "{name}");
        let compound = [head, call(0x8000_0030, 4, 1, &[0, 1, 2, 24, 10])].concat();
        let line = t.say(1, SEND, 0x33, 2, &[], &compound);
        assert_eq!(line, "NFS v4.1 COMPOUND (PUTROOTFH, GETFH) call XID 0x80000030", "{name}");
    }
}

#[test]
fn a_reply_that_lies_in_its_chunk() {
    let mut t = Talk::new(&["qp:0x33=nfs", "qp:0x44=nfs"]);
    let head = words(&[9, 1, 32, 0, 0, 0, 1, 1, 0xabcd, 3000, 0, 0x1000]);
    t.say(1, SEND, 0x33, 1, &[], &[head, call(9, 3, 17, &[])].concat());
    let reth = Reth::emit(0x1000, 0xabcd, 3000);
    let mut reply = words(&[9, 1, 0, 0, 0, 0, 70]);
    reply.resize(1024, 0);
    assert_eq!(
        t.say(2, WRITE[0], 0x44, 10, &reth, &reply),
        "NFS v3 READDIRPLUS reply STALE in the reply chunk, offset 0 XID 0x00000009"
    );
    t.say(2, WRITE[1], 0x44, 11, &[], &[1; 1024]);
    t.say(2, WRITE[2], 0x44, 12, &[], &[1; 952]);
    let nomsg = words(&[9, 1, 32, 1, 0, 0, 1, 1, 0xabcd, 3000, 0, 0x1000]);
    assert_eq!(
        t.say(2, SEND, 0x44, 13, &[], &nomsg),
        "NFS v3 READDIRPLUS reply of 3000 bytes in the reply chunk (frames 2 to 4) XID 0x00000009 after 4.00 ms"
    );
}

#[test]
fn a_call_that_lies_in_a_read_chunk() {
    let mut t = Talk::new(&["qp:0x33=nfs", "qp:0x44=nfs"]);
    // RDMA_NOMSG: a read chunk at position 0 holds the whole call, 2500 bytes
    let nomsg = words(&[9, 1, 32, 1, 1, 0, 0xabcd, 2500, 0, 0x1000, 0, 0, 0]);
    assert_eq!(
        t.say(1, SEND, 0x33, 1, &[], &nomsg),
        "RPC over RDMA RDMA_NOMSG call of 2500 bytes in a read chunk XID 0x00000009"
    );
    let reth = Reth::emit(0x1000, 0xabcd, 2500);
    t.say(2, 0x0c, 0x44, 10, &reth, &[]);
    let mut whole = call(9, 4, 1, &[0, 1, 2, 24, 6, 0, 0, 0, 0]);
    whole.resize(1024, 0);
    let aeth = words(&[0x1f00_0001]);
    let bytes = frame(1, 0x0d, 0x33, 10, &aeth, &whole);
    let (line, fields) = t.frame(&bytes, bytes.len());
    assert_eq!(line, "NFS v4.1 COMPOUND (PUTROOTFH, CREATE) call in a read chunk, offset 0 XID 0x00000009");
    for f in ["rpc.msgtyp=Uint(0)", "rpc.procedure=Uint(1)", "nfs.opcode=Uint(24)"] {
        assert!(fields.iter().any(|g| g == f), "{f}: {fields:?}");
    }
    assert_eq!(
        t.say(1, 0x0e, 0x33, 11, &[], &[1; 1024]),
        "data out of the chunk of NFS v4.1 COMPOUND (PUTROOTFH, CREATE), offset 1024"
    );
    // and its reply is known by it
    let reply = [words(&[9, 1, 32, 0, 0, 0, 0]), words(&[9, 1, 0, 0, 0, 0, 0])].concat();
    assert!(
        t.say(2, SEND, 0x44, 12, &[], &reply)
            .starts_with("NFS v4.1 COMPOUND (PUTROOTFH, CREATE) reply OK XID 0x00000009 after"),
    );
    // a chunk of a call that was never announced as long stays data
    t.say(2, 0x0c, 0x44, 20, &reth, &[]);
    assert!(!t.say(1, 0x0d, 0x33, 20, &aeth, &[7; 1024]).contains("call in"));
}

#[test]
fn a_rejected_request_says_why_and_which() {
    let mut t = Talk::new(&[]);
    let mad = |attribute: u16, fill: &dyn Fn(&mut [u8])| {
        let mut m = vec![0; 256];
        m[..4].copy_from_slice(&[1, 7, 2, 3]);
        m[16..18].copy_from_slice(&attribute.to_be_bytes());
        fill(&mut m[24..]);
        m
    };
    let deth = Deth::emit(0x8001_0000, Qpn::GSI);
    let req = mad(0x10, &|b| {
        b[..4].copy_from_slice(&words(&[0x1111]));
        b[8..16].copy_from_slice(&ServiceId::ip(6, 4420).0.to_be_bytes());
    });
    assert!(t.say(1, 0x64, 1, 1, &deth, &req).contains("port 4420 (NVMe-oF)"));
    let rej = mad(0x12, &|b| {
        b[4..8].copy_from_slice(&words(&[0x1111]));
        b[10..12].copy_from_slice(&28u16.to_be_bytes());
        b[84] = 6; // record format and status of NVMe
    });
    let line = t.say(2, 0x64, 1, 1, &deth, &rej);
    assert!(line.starts_with("CM REJ of REQ, reason 28: consumer reject"), "{line}");
    assert!(line.contains("peer id=0x00001111"), "{line}");
}

#[test]
fn nothing_is_guessed() {
    let mut t = Talk::new(&[]);
    let mut state = 0x0123_4567_89ab_cdefu64;
    for n in 0..200u32 {
        let payload: Vec<u8> = (0..n % 90)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        assert_eq!(t.say(1, SEND, 0x55, n, &[], &payload), "data");
    }
    // what tshark takes for IPv4, for SMB Direct and for RPC over RDMA
    for payload in [vec![8, 0, 0, 0, 1, 2, 3, 4], vec![0; 20], vec![0; 40], words(&[1, 1, 32, 0, 0, 0, 0])] {
        assert_eq!(t.say(1, SEND, 0x55, 1, &[], &payload), "data");
    }
    // an application's datagram from QP 1 is no management datagram
    assert_eq!(t.say(1, 0x64, 0x55, 1, &Deth::emit(0x11, Qpn::GSI), &[1; 256]), "data");
}

#[test]
fn hostile_chunk_lists_end() {
    let rules = ["qp:0x33=nfs"];
    // as many chunks and segments as the message can say, empty ones and huge ones
    let endless = [words(&[1, 1, 32, 0, 0]), words(&[1, 0].repeat(150)), words(&[0, 0])].concat();
    let huge = words(&[1, 1, 32, 0, 0, 1, 0xffff_ffff, 1, 2, 3, 4]);
    let reads = [words(&[1, 1, 32, 0]), words(&[1, 0, 7, 9, 0, 0].repeat(160)), words(&[0, 0, 0])].concat();
    for b in [endless, huge, reads] {
        let line = Talk::new(&rules).say(1, SEND, 0x33, 1, &[], &b);
        assert!(line.contains("RPC over RDMA"), "{line}");
    }
}

/// Every prefix of what was captured, and every byte changed: nothing breaks, and no field lies outside of the frame.
#[test]
fn no_bytes_do_harm() {
    let rules = ["qp:0x11=nvme", "qp:0x22=rpcrdma", "qp:0x33=iser", "qp:0x44=smbdirect", "qp:0x55=rds"];
    let rpc = [
        words(&[9, 1, 32, 0, 1, 8, 7, 12, 0, 5, 0, 1, 1, 0xabcd, 3000, 0, 0x1000, 0, 1, 1, 2, 3, 0, 4]),
        call(9, 4, 1, &[0, 1, 3, 53, 1, 2, 3, 4, 5, 6, 7, 8, 38, 0, 0, 0, 0, 0, 2, 4, 12]),
    ]
    .concat();
    let iser = [&[0x1c, 0, 0, 0][..], &[9; 24], &[0x41; 48], b"data"].concat();
    let smb = [&[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0][..], b"\xfeSMB", &[0; 60]]
        .concat();
    let messages: [(u32, Vec<u8>); 5] =
        [(0x11, nvme_read(1, 2, 3)), (0x22, rpc), (0x33, iser), (0x44, smb), (0x55, [&[3; 48][..], b"rds"].concat())];
    let mut t = Talk::new(&rules);
    let names: Vec<String> = messages.iter().map(|(qp, m)| t.say(1, SEND, *qp, 1, &[], m)).collect();
    assert_eq!(
        names.iter().map(|n| n.split(' ').next().unwrap_or_default()).collect::<Vec<_>>(),
        ["NVMe", "NFS", "iSCSI", "SMB", "RDS"],
        "{names:?}"
    );
    for (qp, m) in &messages {
        let whole = frame(1, SEND, *qp, 1, &[], m);
        for n in 0..whole.len() {
            t.frame(&whole[..n], whole.len());
            let mut flipped = whole.clone();
            for v in [0, 0xff, flipped[n] ^ 1] {
                flipped[n] = v;
                t.frame(&flipped, whole.len());
            }
        }
    }
    // generated management datagrams of every kind, cut and changed
    let made = std::fs::read(generated().path()).expect("just written");
    let mut rest = &made[24..];
    while rest.len() > 16 {
        let whole = &rest[16..16 + 322.min(rest.len() - 16)];
        for n in (0..whole.len()).step_by(3) {
            t.frame(&whole[..n], whole.len());
            let mut flipped = whole.to_vec();
            flipped[n] ^= 0xff;
            t.frame(&flipped, whole.len());
        }
        rest = &rest[16 + whole.len()..];
    }
}

/// Whole conversations with bytes changed: what is remembered from packet to packet stays sound.
#[test]
fn changed_conversations_do_no_harm() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % below.max(1)
    };
    for name in ["ulp_nvme_rdma.pcap", "ulp_nfs_rdma.pcap", "ulp_rds.pcap", "cm_many.pcap", "cm_udaddy.pcap"] {
        let mut frames = vec![];
        let mut reader = Reader::open(roce_tests::captures().join(name)).expect("a capture");
        while let Some(r) = reader.next().expect("a whole capture") {
            frames.push(r.bytes.to_vec());
        }
        for _ in 0..25 {
            let mut t = Talk::new(&[]);
            for f in &frames {
                let mut f = f.clone();
                // a third as they are, so that the conversations get somewhere
                for _ in 0..next(3) {
                    let at = next(f.len());
                    f[at] ^= 1 << next(8);
                }
                let cut = if next(20) == 0 { next(f.len()) } else { f.len() };
                t.frame(&f[..cut], f.len());
            }
        }
    }
}

/// The names of commands and procedures are those of tshark's info column, where it has one.
#[test]
fn the_same_names_as_tshark() {
    let mut compared = [0, 0];
    for (which, name) in ["ulp_nvme_rdma.pcap", "ulp_nfs_rdma.pcap"].into_iter().enumerate() {
        let path = roce_tests::captures().join(name);
        let out = Command::new("tshark").arg("-r").arg(&path).args(["-T", "fields", "-e", "_ws.col.Info"]).output();
        let out = out.expect("tshark runs: apt-get install tshark");
        let theirs = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut t = Talk::new(&[]);
        let mut reader = Reader::open(&path).expect("a capture");
        for (n, theirs) in (1..).zip(theirs.lines()) {
            let r = reader.next().expect("a whole capture").expect("as many packets as tshark has");
            let bytes = r.bytes.to_vec();
            let ours = t.frame(&bytes, r.wire_len as usize).0;
            let wanted = if which == 0 {
                let Some((_, text)) = theirs.split_once("| NVMe") else { continue };
                let text = text.trim_start_matches("OF").trim_start_matches("oF").trim_start();
                let text = text.split(", offset").next().unwrap_or_default();
                if text.contains("Unknown") {
                    continue; // an Identify that this tshark does not know yet
                }
                text.replace("Data Request for", "data request for").replace("Data for", "data of")
            } else {
                let Some((_, call)) = theirs.split_once("V4 ").filter(|(_, c)| !c.contains("Malformed")) else {
                    continue;
                };
                let call = call.replace("Call ", "").replace("Reply ", "");
                // `(Call In 12) GETATTR FH: …` or `NULL Call`
                let call = call.split(") ").last().unwrap_or_default();
                call.split([' ', ',']).next().unwrap_or_default().to_owned()
            };
            compared[which] += 1;
            let fits = if which == 0 { ours.starts_with(&format!("NVMe {wanted}")) } else { ours.contains(&wanted) };
            // the SEND that a call begins with has the name; tshark gives it where the read chunk ends
            assert!(fits || ours.starts_with("data out of the chunk"), "{name} {n}: {ours:?}, tshark {theirs:?}");
        }
    }
    assert!(compared[0] > 100 && compared[1] > 40, "{compared:?} lines compared");
}

#[test]
fn after_the_goodbye_a_queue_pair_is_anybodys() {
    let mut t = Talk::new(&[]);
    let mut reader = Reader::open(roce_tests::captures().join("ulp_nvme_rdma.pcap")).expect("a capture");
    let mut last = vec![];
    while let Some(r) = reader.next().expect("a whole capture") {
        let bytes = r.bytes.to_vec();
        if t.frame(&bytes, bytes.len()).0.starts_with("NVMe Property") {
            last = bytes;
        }
    }
    assert!(!last.is_empty());
    assert_eq!(t.frame(&last, last.len()).0, "data");
}
