//! Scripted exchanges between two hosts, and what the analysis must say about them: exact numbers a flow, and
//! exactly these findings of warning and above. Each `scenarios/*.toml` is one; `scenarios/README.md` explains
//! the script.

use std::collections::BTreeMap;
use std::path::Path;

use dissector::capture::Timestamp;
use dissector::flow::finding::{self, Severity};
use dissector::flow::row::FlowRow;
use dissector::flow::{Analyzer, Place};
use dissector::frame::{Frame, LinkType, icrc};
use dissector::wire::opcode::{Header, Op, ROWS};
use dissector::wire::{Aeth, BthFields, Deth, Kind, PKey, Position, Qpn, ROCE_UDP_PORT, Reth, Syndrome, Transport};
use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    /// What happens, for people.
    story: String,
    /// The exchange, a line a packet.
    script: String,
    /// Codes of all findings of warning and above, any order.
    #[serde(default)]
    findings: Vec<String>,
    /// Notes that must be among the findings.
    #[serde(default)]
    notes: Vec<String>,
    /// Codes that must not be among the findings, whatever their severity.
    #[serde(default)]
    silent: Vec<String>,
    /// How many findings a code has.
    #[serde(default)]
    count: BTreeMap<String, usize>,
    /// Packets that a finding must name, by its code.
    #[serde(default)]
    proof: BTreeMap<String, Vec<u64>>,
    /// Words that the title or detail of a finding must hold, by its code.
    #[serde(default)]
    says: BTreeMap<String, Vec<String>>,
    /// How many flows.
    #[serde(default)]
    flows: Option<usize>,
    /// Flows, in the order in which they begin; what is not named is 0 for repeats, losses and order, and free
    /// otherwise.
    #[serde(default, rename = "flow")]
    expected: Vec<toml::Table>,
}

/// A word of the script and the opcode it stands for.
fn opcode(word: &str) -> Option<&'static Op> {
    let (transport, word) = match word.split_once('.') {
        Some(("uc", w)) => (Transport::Uc, w),
        Some(("xrc", w)) => (Transport::Xrc, w),
        _ => (Transport::Rc, word),
    };
    let (kind, position) = match word.trim_end_matches("+imm").trim_end_matches("+inv") {
        "send" => (Kind::Send, Position::Only),
        "send-first" => (Kind::Send, Position::First),
        "send-middle" => (Kind::Send, Position::Middle),
        "send-last" => (Kind::Send, Position::Last),
        "write" => (Kind::Write, Position::Only),
        "write-first" => (Kind::Write, Position::First),
        "write-middle" => (Kind::Write, Position::Middle),
        "write-last" => (Kind::Write, Position::Last),
        "read" => (Kind::ReadRequest, Position::Only),
        "data" => (Kind::ReadResponse, Position::Only),
        "data-first" => (Kind::ReadResponse, Position::First),
        "data-middle" => (Kind::ReadResponse, Position::Middle),
        "data-last" => (Kind::ReadResponse, Position::Last),
        "ack" | "nak" | "rnr" => (Kind::Ack, Position::Only),
        "faa" => return Op::of(0x14),
        "atomic-ack" => (Kind::AtomicAck, Position::Only),
        "flush" => (Kind::Flush, Position::Only),
        "atomic-write" => (Kind::AtomicWrite, Position::Only),
        "cnp" => return Op::of(0x81),
        "datagram" => return Op::of(0x64),
        _ => return None,
    };
    let (imm, inv) = (word.ends_with("+imm"), word.ends_with("+inv"));
    ROWS.iter().find(|o| {
        o.transport == transport
            && o.kind == kind
            && o.position == position
            && o.has(Header::ImmDt) == imm
            && o.has(Header::Ieth) == inv
    })
}

/// Microseconds, milliseconds, seconds, nanoseconds.
fn duration(text: &str) -> Option<i64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    #[expect(clippy::cast_possible_truncation, reason = "a few seconds in nanoseconds")]
    Some((number.parse::<f64>().ok()? * scale) as i64)
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no number"))
}

/// A frame of the script.
struct Made {
    at: Timestamp,
    bytes: Vec<u8>,
    wire_len: usize,
}

/// Plays a script to its frames.
fn play(script: &str) -> Result<Vec<Made>, String> {
    let mut out = vec![];
    let mut at = 1_700_000_000_000_000_000i64;
    let mut ids: BTreeMap<char, u16> = BTreeMap::new();
    for (n, line) in script.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let fail = |e: String| format!("script line {}: {e}: {line}", n + 1);
        let mut words = line.split_whitespace().peekable();
        let mut gap = 10_000;
        if let Some(t) = words.peek().and_then(|w| w.strip_prefix('+')) {
            gap = duration(t).ok_or_else(|| fail(format!("`{t}` is no time")))?;
            words.next();
        } else if let Some(t) = words.peek().and_then(|w| w.strip_prefix('-')) {
            gap = -duration(t).ok_or_else(|| fail(format!("`{t}` is no time")))?;
            words.next();
        }
        let from = words.next().and_then(|w| w.strip_suffix('>')).and_then(|w| w.chars().next());
        let from = from.ok_or_else(|| fail("who sends? `a>` or `b>`".into()))?;
        let word = words.next().ok_or_else(|| fail("what is sent?".into()))?;
        let mut values: BTreeMap<&str, &str> = BTreeMap::new();
        for w in words {
            let (k, v) = w.split_once('=').unwrap_or((w, "1"));
            values.insert(k, v);
        }
        let times = values.get("times").map_or(Ok(1), |v| number(v)).map_err(fail)?;
        for i in 0..times {
            at += gap;
            let id = ids.entry(from).or_insert(match from {
                'a' => 100,
                _ => 20_000,
            });
            let made = packet(from, word, &values, i, *id).map_err(fail)?;
            if !values.contains_key("id") {
                *id = id.wrapping_add(1);
            }
            // sent, but not seen by the recorder
            if values.contains_key("unseen") {
                continue;
            }
            let wire_len = made.len();
            let cut = values.get("cut").map_or(Ok(wire_len as u64), |v| number(v)).map_err(fail)?;
            let mut bytes = made;
            bytes.truncate(usize::try_from(cut).unwrap_or(wire_len));
            out.push(Made { at: Timestamp(at), bytes, wire_len });
        }
    }
    Ok(out)
}

fn host(c: char) -> u8 {
    (c as u8).wrapping_sub(b'a') + 1
}

fn packet(from: char, word: &str, values: &BTreeMap<&str, &str>, i: u64, id: u16) -> Result<Vec<u8>, String> {
    let get = |k: &str, default: u64| values.get(k).map_or(Ok(default), |v| number(v));
    let to = values.get("to").and_then(|v| v.chars().next()).unwrap_or(if from == 'a' { 'b' } else { 'a' });
    let small = |v: u64, what: &str| u32::try_from(v).map_err(|_| format!("{what} is too large"));
    if word == "pause" {
        return pause(from, get("priority", 3)?, get("quanta", 0xffff)?);
    }
    let op = match word.strip_prefix("op") {
        Some(hex) if hex.starts_with("0x") => {
            None.or(Some(u8::try_from(number(hex)?).map_err(|_| "an opcode is a byte")?))
        }
        _ => None,
    };
    let byte = match op {
        Some(b) => b,
        None => opcode(word).ok_or_else(|| format!("`{word}` is no operation"))?.byte,
    };
    let row = Op::of(byte);
    let psn = small(get("psn", 0)? + i * get("step", 1)?, "psn")?;
    let full = row.is_some_and(|o| matches!(o.position, Position::First | Position::Middle));
    let has_data = row.is_some_and(|o| o.payload == dissector::wire::opcode::Payload::Data);
    let payload = match (values.get("pay"), has_data) {
        (Some(v), _) => number(v)?,
        (None, true) if full => 1024,
        (None, true) if row.is_some_and(|o| o.kind == Kind::AtomicWrite) => 8,
        (None, true) => 64,
        (None, false) => 0,
    };
    let payload = usize::try_from(payload).map_err(|_| "pay is too large")?;
    let pad = payload.wrapping_neg() % 4;
    let dest_qp = small(get("qp", if to == 'b' { 0x22 } else { 0x11 })?, "qp")?;
    let fields = BthFields {
        opcode: byte,
        mig_req: get("mig", 1)? == 1,
        pad_count: u8::try_from(pad).unwrap_or(0),
        p_key: PKey(u16::try_from(get("pkey", 0xffff)?).map_err(|_| "pkey is too large")?),
        becn: row.is_some_and(|o| o.kind == Kind::Cnp),
        ack_req: get("ackreq", u64::from(row.is_some_and(|o| o.position.ends() && o.transport == Transport::Rc)))? == 1,
        ..BthFields::new(byte, dest_qp, psn)
    };
    let mut roce = fields.emit().to_vec();
    let dma = small(get("len", payload as u64)?, "len")?;
    for h in row.map_or(&[][..], |o| o.headers) {
        match h {
            Header::Reth => roce.extend(Reth::emit(get("va", 0x10_0000)?, small(get("rkey", 0x1234)?, "rkey")?, dma)),
            Header::Aeth => {
                let code = u8::try_from(get("code", 0)?).map_err(|_| "code is too large")?;
                let syndrome = match word.rsplit('.').next() {
                    Some("nak") => Syndrome(0x60 | code),
                    Some("rnr") => Syndrome(0x20 | code),
                    _ => Syndrome::ACK,
                };
                roce.extend(Aeth::emit(syndrome, small(get("msn", 1)?, "msn")?));
            }
            Header::Deth => roce.extend(Deth::emit(0x11_1111, Qpn::new(small(get("srcqp", 0x11)?, "srcqp")?))),
            Header::AtomicEth => roce
                .extend([0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            Header::AtomicAckEth => roce.extend([0, 0, 0, 0, 0, 0, 0, 7]),
            Header::ImmDt => roce.extend([0, 0, 0, 5]),
            Header::Ieth => roce.extend([0, 0, 0, 6]),
            Header::Feth => roce.extend([0, 0, 0, 1]),
            Header::CnpPad => roce.extend([0; 16]),
            Header::XrcEth => roce.extend([0, 0, 0, 9]),
            Header::Rdeth => roce.extend([0; 4]),
            _ => {}
        }
    }
    roce.extend((0..payload).map(|b| b as u8));
    roce.extend(vec![0; pad + 4]);
    let mac = |c: char| [2, 0, 0, 0, 0, host(c)];
    let src_mac = values.get("mac").map_or(Ok(mac(from)), |v| number(v).map(|n| [2, 0, 0, 0, 9, n as u8]))?;
    let mut f = vec![];
    f.extend(mac(to));
    f.extend(src_mac);
    if let Some(vlan) = values.get("vlan") {
        let pcp = get("pcp", 3)?;
        f.extend([0x81, 0]);
        f.extend((u16::try_from(number(vlan)?).unwrap_or(0) | u16::try_from(pcp).unwrap_or(0) << 13).to_be_bytes());
    }
    let tos = u8::try_from(get("tos", 2)?).map_err(|_| "tos is a byte")?;
    let ttl = u8::try_from(get("ttl", 64)?).map_err(|_| "ttl is a byte")?;
    let id = u16::try_from(get("id", u64::from(id))?).map_err(|_| "id has 16 bits")?;
    let port = u16::try_from(get("port", 50_000 + u64::from(dest_qp % 97))?).map_err(|_| "port has 16 bits")?;
    let udp_len = u16::try_from(8 + roce.len()).map_err(|_| "too long")?;
    let v1 = values.contains_key("v1");
    if values.contains_key("v6") || v1 {
        let local = values.contains_key("local");
        let address = |c: char| {
            let mut a = [0; 16];
            (a[0], a[1]) = if local { (0xfe, 0x80) } else { (0xfd, 0) };
            a[15] = host(c);
            a
        };
        f.extend(if v1 { [0x89, 0x15] } else { [0x86, 0xdd] });
        f.extend([0x60 | tos >> 4, tos << 4, 0, 0]);
        let len = if v1 { udp_len - 8 } else { udp_len };
        f.extend(len.to_be_bytes());
        f.extend([if v1 { 0x1b } else { 17 }, ttl]);
        f.extend(address(from));
        f.extend(address(to));
    } else {
        f.extend([8, 0]);
        let start = f.len();
        f.extend([0x45, tos]);
        f.extend((20 + udp_len).to_be_bytes());
        f.extend(id.to_be_bytes());
        f.extend([0x40, 0, ttl, 17, 0, 0, 10, 0, 0, host(from), 10, 0, 0, host(to)]);
        let sum: u32 = f[start..].as_chunks::<2>().0.iter().map(|w| u32::from(u16::from_be_bytes(*w))).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        f[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
    }
    if !v1 {
        f.extend(port.to_be_bytes());
        f.extend(ROCE_UDP_PORT.to_be_bytes());
        f.extend(udp_len.to_be_bytes());
        f.extend([0, 0]);
    }
    f.extend(roce);
    let crc = {
        let frame = Frame::parse(&f, f.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
        let packet = frame.packet().ok_or("no RoCE in the frame")?.map_err(|s| format!("{s:?}"))?;
        icrc::calculate(&frame, &packet).map_err(|w| w.name())?
    };
    let end = f.len();
    f[end - 4..].copy_from_slice(&(crc ^ u32::from(values.contains_key("broken"))).to_le_bytes());
    Ok(f)
}

fn pause(from: char, priority: u64, quanta: u64) -> Result<Vec<u8>, String> {
    let mut f = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, host(from), 0x88, 8, 1, 1, 0, 1 << (priority & 7)];
    for p in 0..8 {
        let q = if p == priority { u16::try_from(quanta).map_err(|_| "quanta has 16 bits")? } else { 0 };
        f.extend(q.to_be_bytes());
    }
    f.resize(60, 0);
    Ok(f)
}

fn analyse(frames: &[Made]) -> Analyzer {
    let mut a = Analyzer::default();
    for (number, m) in (1..).zip(frames) {
        let place = Place { number, at: m.at };
        let frame = Frame::parse(&m.bytes, m.wire_len, LinkType::ETHERNET, ROCE_UDP_PORT);
        match frame.packet() {
            Some(Ok(p)) => {
                let verdict = icrc::verify(&frame, &p);
                a.push(place, &frame, &p, verdict);
            }
            _ => a.other(place, &frame),
        }
    }
    a.settle();
    a
}

/// A number of a row by its JSON name; nested ones with a dot.
fn value(row: &serde_json::Value, name: &str) -> Option<serde_json::Value> {
    name.split('.').try_fold(row.clone(), |v, part| v.get(part).cloned())
}

fn check(scenario: &Scenario) -> Result<(), Failed> {
    let frames = play(&scenario.script)?;
    let a = analyse(&frames);
    let findings = finding::check(&a);
    let mut wrong = vec![];
    let rows: Vec<FlowRow> = a.rows();
    if let Some(n) = scenario.flows
        && n != rows.len()
    {
        wrong.push(format!("{} flows, not {n}", rows.len()));
    }
    let sum: u64 = rows.iter().map(|r| r.packets).sum();
    if sum + a.totals().overflow_packets != a.totals().roce_packets {
        wrong.push("packets of all flows do not add up to the total".into());
    }
    for (i, line) in a.lines().enumerate() {
        let json = serde_json::to_value(&line)?;
        let mut want: BTreeMap<String, serde_json::Value> = ["retransmitted", "missing", "reordered", "duplicates"]
            .into_iter()
            .map(|k| (k.to_owned(), 0.into()))
            .collect();
        if let Some(t) = scenario.expected.get(i) {
            for (k, v) in t {
                let v = if v.as_str() == Some("null") { serde_json::Value::Null } else { serde_json::to_value(v)? };
                want.insert(k.clone(), v);
            }
        }
        for (k, v) in want {
            let got = value(&json, &k).unwrap_or(serde_json::Value::Null);
            if got != v {
                wrong.push(format!("flow {i} ({} -> {}): {k} is {got}, not {v}", line.row.src, line.row.dst));
            }
        }
    }
    let mut bad: Vec<&str> = findings.iter().filter(|f| f.severity > Severity::Note).map(|f| f.code).collect();
    bad.sort_unstable();
    bad.dedup();
    let mut asked: Vec<&str> = scenario.findings.iter().map(String::as_str).collect();
    asked.sort_unstable();
    if bad != asked {
        wrong.push(format!("findings {bad:?}, not {asked:?}"));
    }
    for n in &scenario.notes {
        if !findings.iter().any(|f| f.code == n && f.severity == Severity::Note) {
            wrong.push(format!("no note `{n}`"));
        }
    }
    for code in &scenario.silent {
        if findings.iter().any(|f| f.code == code) {
            wrong.push(format!("`{code}` is told, though it should not be"));
        }
    }
    for (code, n) in &scenario.count {
        let got = findings.iter().filter(|f| f.code == code).count();
        if got != *n {
            wrong.push(format!("`{code}` is told {got} times, not {n}"));
        }
    }
    for (code, packets) in &scenario.proof {
        let named = findings.iter().find(|f| f.code == code).map(|f| f.packets.clone());
        if !named.as_ref().is_some_and(|n| packets.iter().all(|p| n.contains(p))) {
            wrong.push(format!("`{code}` is proved by {named:?}, not by {packets:?}"));
        }
    }
    for (code, words) in &scenario.says {
        let Some(f) = findings.iter().find(|f| f.code == code) else {
            wrong.push(format!("no finding `{code}`"));
            continue;
        };
        for w in words {
            if !f.title.contains(w) && !f.detail.contains(w) {
                wrong.push(format!("`{code}` does not say `{w}`: {} {}", f.title, f.detail));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = findings
        .iter()
        .map(|f| format!("  {} [{}] {}\n     {} {:?}", f.severity.name(), f.code, f.title, f.detail, f.packets))
        .collect();
    Err(format!("{}\n{}\n{}", scenario.story, wrong.join("\n"), told.join("\n")).into())
}

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("tests/scenarios is part of the repository")
        .map(|e| e.expect("a readable folder").path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    let mut trials: Vec<Trial> = files
        .iter()
        .map(|p| {
            let (name, text) =
                (p.file_stem().unwrap_or_default().to_string_lossy().into_owned(), std::fs::read_to_string(p));
            Trial::test(name, move || check(&toml::from_str(&text?)?))
        })
        .collect();
    let count = files.len();
    trials.push(Trial::test("there are at least sixty", move || {
        if count >= 60 { Ok(()) } else { Err(format!("{count} scenarios").into()) }
    }));
    libtest_mimic::run(&arguments, trials).exit();
}
