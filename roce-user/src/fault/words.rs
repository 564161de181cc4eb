//! Numbers, durations, ranges, prefixes and opcode selections as people write them in a scenario or on the
//! command line.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use dissector::wire::opcode::{Payload, ROWS};
use dissector::wire::{Header, Kind, Op, Position, Role, Transport};

/// What is wrong with a word, in words, and perhaps the word that was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The sentence.
    pub message: String,
    /// The word meant.
    pub meant: Option<String>,
}

impl Wrong {
    /// Without a suggestion.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), meant: None }
    }

    /// `word` is none of `known`.
    pub fn unknown<'a>(what: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { message: format!("unknown {what} {}", quoted(word)), meant: closest(word, known).map(str::to_owned) }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.meant {
            Some(m) => write!(f, "; did you mean `{m}`?"),
            None => Ok(()),
        }
    }
}

/// A user's word for a message: in back-ticks, shortened, control characters escaped.
pub fn quoted(word: &str) -> String {
    let mut out = String::from("`");
    for (n, c) in word.chars().enumerate() {
        if n == 60 {
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.push('`');
    out
}

/// The known word nearest to `word`, if it is near enough to be what was meant.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|k| (distance(&word, &k.to_lowercase()), k))
        .filter(|(d, k)| *d <= (k.len().max(word.len()) / 3).max(1))
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Edit distance with neighbours swapped as one edit (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// A whole number, decimal or `0x…`; underscores may group digits.
pub fn number(word: &str) -> Result<u64, Wrong> {
    let clean = word.trim().replace('_', "");
    let parsed = match clean.strip_prefix("0x").or_else(|| clean.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16),
        _ if clean.starts_with('+') => return Err(Wrong::new(format!("{} is not a plain number", quoted(word)))),
        _ => clean.parse(),
    };
    parsed.map_err(|_| Wrong::new(format!("{} is not a whole number (decimal or 0x…)", quoted(word))))
}

/// A whole number of at most 24 bits.
pub fn number24(what: &str, word: &str) -> Result<u32, Wrong> {
    in_24_bits(what, number(word)?)
}

/// The number if it fits 24 bits.
pub fn in_24_bits(what: &str, v: u64) -> Result<u32, Wrong> {
    u32::try_from(v)
        .ok()
        .filter(|v| *v <= 0xff_ffff)
        .ok_or_else(|| Wrong::new(format!("{what} {v} does not fit 24 bits (at most 16777215, 0xffffff)")))
}

/// From a to b, both included; open ends are the type's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Lowest.
    pub min: u64,
    /// Highest.
    pub max: u64,
}

impl Range {
    /// Exactly one value.
    pub const fn exactly(v: u64) -> Self {
        Self { min: v, max: v }
    }

    /// Whether it holds `v`.
    pub const fn contains(self, v: u64) -> bool {
        self.min <= v && v <= self.max
    }

    /// `4`, `4-9`, `4-` (and more), `-9`, `>=4`, `<=9`, `>4`, `<9`.
    pub fn parse(word: &str) -> Result<Self, Wrong> {
        let w = word.trim();
        let open = |r: &str, up: bool, strict: u64| -> Result<Self, Wrong> {
            let v = number(r)?;
            let none = || Wrong::new(format!("{} holds no number at all", quoted(word)));
            Ok(if up {
                Self { min: v.checked_add(strict).ok_or_else(none)?, max: u64::MAX }
            } else {
                Self { min: 0, max: v.checked_sub(strict).ok_or_else(none)? }
            })
        };
        if let Some(r) = w.strip_prefix(">=") {
            return open(r, true, 0);
        }
        if let Some(r) = w.strip_prefix("<=") {
            return open(r, false, 0);
        }
        if let Some(r) = w.strip_prefix('>') {
            return open(r, true, 1);
        }
        if let Some(r) = w.strip_prefix('<') {
            return open(r, false, 1);
        }
        match w.split_once('-') {
            None => number(w).map(Self::exactly),
            Some(("", b)) => open(b, false, 0),
            Some((a, "")) => open(a, true, 0),
            Some((a, b)) => {
                let r = Self { min: number(a)?, max: number(b)? };
                if r.min > r.max {
                    return Err(Wrong::new(format!("{} runs backwards", quoted(word))));
                }
                Ok(r)
            }
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (a, b) if a == b => write!(f, "{a}"),
            (a, u64::MAX) => write!(f, "at least {a}"),
            (0, b) => write!(f, "at most {b}"),
            (a, b) => write!(f, "{a} to {b}"),
        }
    }
}

/// PSNs: absolute, or counted from the flow's first. May run over the wrap (`0xfffffe-1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PsnRange {
    /// Counted from the first PSN of the flow that was seen.
    pub relative: bool,
    /// First of the range.
    pub first: u32,
    /// Last of the range.
    pub last: u32,
}

impl PsnRange {
    /// `104`, `104-110`, `0xfffffe-1` absolute; `+0`, `+4-+9`, `+4-9` from the flow's first.
    pub fn parse(word: &str) -> Result<Self, Wrong> {
        let w = word.trim();
        let relative = w.starts_with('+');
        let (a, b) = w.split_once('-').unwrap_or((w, w));
        if !relative && b.starts_with('+') {
            return Err(Wrong::new(format!("{} mixes an absolute and a relative PSN", quoted(word))));
        }
        let one = |s: &str| number24("PSN", s.strip_prefix('+').filter(|_| relative).unwrap_or(s));
        Ok(Self { relative, first: one(a)?, last: one(b)? })
    }
}

impl fmt::Display for PsnRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.relative { "first " } else { "" };
        let plus = if self.relative { "+ " } else { "" };
        if self.first == self.last {
            write!(f, "PSN {sign}{plus}{}", self.first)
        } else {
            write!(f, "PSN {sign}{plus}{} to {sign}{plus}{}", self.first, self.last)
        }
    }
}

/// `1.5s`, `200ms`, `10us`, `50ns`, `2m`, `1h`.
pub fn duration(word: &str) -> Result<Duration, Wrong> {
    let w = word.trim();
    let split = w.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(w.len());
    let (digits, unit) = w.split_at(split);
    let scale = match unit.trim() {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(Wrong::new(format!("{} is not a duration (write 500us, 20ms, 1.5s, 2m)", quoted(word)))),
    };
    let v: f64 = digits
        .parse()
        .map_err(|_| Wrong::new(format!("{} is not a duration (write 500us, 20ms, 1.5s, 2m)", quoted(word))))?;
    seconds(v * scale)
}

/// So many seconds, at most a year.
pub fn seconds(v: f64) -> Result<Duration, Wrong> {
    if !(0.0..=31_536_000.0).contains(&v) {
        return Err(Wrong::new(format!("{v} s is not a usable duration (0 to a year)")));
    }
    Duration::try_from_secs_f64(v).map_err(|e| Wrong::new(e.to_string()))
}

/// A duration as people write it.
pub fn show_duration(d: Duration) -> String {
    let ns = d.as_nanos();
    let (n, unit) = match ns {
        0 => return "0 s".into(),
        n if n >= 1_000_000_000 => (n as f64 / 1e9, "s"),
        n if n >= 1_000_000 => (n as f64 / 1e6, "ms"),
        n if n >= 1_000 => (n as f64 / 1e3, "us"),
        n => (n as f64, "ns"),
    };
    let text = format!("{n:.3}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Bytes: `1500`, `100KB`, `1MB`, `64KiB`.
pub fn bytes(word: &str) -> Result<u64, Wrong> {
    let w = word.trim();
    let split = w.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(w.len());
    let (digits, unit) = w.split_at(split);
    let scale = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        _ => return Err(Wrong::new(format!("{} is not a number of bytes (write 1500, 100KB, 1MB)", quoted(word)))),
    };
    let v: f64 = digits
        .parse()
        .map_err(|_| Wrong::new(format!("{} is not a number of bytes (write 1500, 100KB, 1MB)", quoted(word))))?;
    whole(v * scale, 1e12).ok_or_else(|| Wrong::new(format!("{} is too many bytes", quoted(word))))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn whole(v: f64, most: f64) -> Option<u64> {
    (0.0..=most).contains(&v).then_some(v as u64)
}

/// Bits per second: `10Gbit`, `400Mbit`, `25Gbps`.
pub fn bit_rate(word: &str) -> Result<u64, Wrong> {
    let wrong = || Wrong::new(format!("{} is not a bit rate (write 400Mbit or 25Gbit)", quoted(word)));
    let w = word.trim();
    let split = w.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(w.len());
    let (digits, unit) = w.split_at(split);
    let scale = match unit.trim().to_ascii_lowercase().trim_end_matches("/s") {
        "kbit" | "kbps" => 1e3,
        "mbit" | "mbps" => 1e6,
        "gbit" | "gbps" => 1e9,
        "tbit" | "tbps" => 1e12,
        "bit" | "bps" => 1.0,
        _ => return Err(wrong()),
    };
    let v: f64 = digits.parse().map_err(|_| wrong())?;
    whole(v * scale, 1e14).filter(|v| *v >= 1000).ok_or_else(wrong)
}

/// Packets per second: `100/s`, `5/m`, or a plain number (per second).
pub fn packet_rate(word: &str) -> Result<f64, Wrong> {
    let wrong = || Wrong::new(format!("{} is not a rate (write 100/s or 5/min)", quoted(word)));
    let (n, per) = word.trim().split_once('/').unwrap_or((word.trim(), "s"));
    let per = match per.trim() {
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "ms" => 1e-3,
        _ => return Err(wrong()),
    };
    let n: f64 = n.trim().parse().map_err(|_| wrong())?;
    let v = n / per;
    if v.is_finite() && (1e-6..=1e9).contains(&v) { Ok(v) } else { Err(wrong()) }
}

/// A chance: `0.01` or `1%`.
pub fn chance(word: &str) -> Result<f64, Wrong> {
    let w = word.trim();
    let parsed = match w.strip_suffix('%') {
        Some(p) => p.trim().parse::<f64>().map(|v| v / 100.0),
        None => w.parse(),
    };
    let v = parsed.map_err(|_| Wrong::new(format!("{} is not a probability (write 0.01 or 1%)", quoted(word))))?;
    probability(v)
}

/// A number from 0 to 1.
pub fn probability(v: f64) -> Result<f64, Wrong> {
    if (0.0..=1.0).contains(&v) {
        Ok(v)
    } else {
        Err(Wrong::new(format!("a probability lies between 0 and 1 (0 % and 100 %), and {v} does not")))
    }
}

/// Addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// Bits that count.
    pub length: u8,
}

impl Prefix {
    /// `10.0.0.1`, `10.0.0.0/24`, `fe80::/10`.
    pub fn parse(word: &str) -> Result<Self, Wrong> {
        let w = word.trim();
        let (address, length) = match w.split_once('/') {
            Some((a, l)) => (a, Some(l)),
            None => (w, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| Wrong::new(format!("{} is not an address or prefix (10.0.0.1, 10.0.0.0/24)", quoted(word))))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length =
            match length {
                None => most,
                Some(l) => l.parse().ok().filter(|l| *l <= most).ok_or_else(|| {
                    Wrong::new(format!("{}: the prefix length lies between 0 and {most}", quoted(word)))
                })?,
            };
        Ok(Self { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = if self.address.is_ipv4() { 32 } else { 128 };
        if self.length == most { self.address.fmt(f) } else { write!(f, "{}/{}", self.address, self.length) }
    }
}

/// RC, UC, UD … by name.
pub fn transport(word: &str) -> Result<Transport, Wrong> {
    let all = [Transport::Rc, Transport::Uc, Transport::Rd, Transport::Ud, Transport::Cnp, Transport::Xrc];
    all.into_iter()
        .find(|t| t.name().eq_ignore_ascii_case(word.trim()))
        .ok_or_else(|| Wrong::unknown("transport", word, all.iter().map(|t| t.name())))
}

/// A set of opcodes, with what the opcode alone does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opcodes {
    /// Bit per opcode byte.
    bits: [u64; 4],
    /// Acknowledges with a positive syndrome are in.
    pub acks: bool,
    /// Acknowledges with a NAK syndrome.
    pub naks: bool,
    /// Acknowledges with an RNR syndrome.
    pub rnrs: bool,
    /// UD SENDs are in only as management datagrams (to queue pair 0 or 1).
    pub mad_only: bool,
    /// The words that chose them.
    pub words: Vec<String>,
}

/// Words beside the names of the opcode table.
pub const CLASSES: &[(&str, &str)] = &[
    ("first", "first packet of a message of several"),
    ("middle", "middle packet of a message"),
    ("last", "last packet of a message of several"),
    ("only", "message of one packet"),
    ("starts", "first or only"),
    ("ends", "last or only"),
    ("data", "may carry payload"),
    ("request", "sent by a requester"),
    ("response", "READ response or atomic acknowledge"),
    ("send", "SEND"),
    ("write", "RDMA WRITE"),
    ("read-request", "RDMA READ request"),
    ("read-response", "RDMA READ response"),
    ("atomic", "CmpSwap, FetchAdd, ATOMIC WRITE"),
    ("atomic-ack", "ATOMIC Acknowledge"),
    ("flush", "FLUSH"),
    ("ack", "positive acknowledge"),
    ("nak", "negative acknowledge"),
    ("rnr", "receiver not ready"),
    ("cnp", "congestion notification"),
    ("mad", "management datagram (UD to queue pair 0 or 1)"),
];

impl Opcodes {
    const NONE: Self = Self { bits: [0; 4], acks: false, naks: false, rnrs: false, mad_only: false, words: Vec::new() };

    /// Whether an opcode byte is in.
    pub const fn contains(&self, byte: u8) -> bool {
        let [a, b, c, d] = self.bits;
        let word = match byte >> 6 {
            0 => a,
            1 => b,
            2 => c,
            _ => d,
        };
        word >> (byte & 63) & 1 != 0
    }

    fn insert(&mut self, byte: u8) {
        if let Some(w) = self.bits.get_mut(usize::from(byte >> 6)) {
            *w |= 1 << (byte & 63);
        }
    }

    /// Leaves only the opcodes of a transport.
    pub fn retain(&mut self, keep: impl Fn(u8) -> bool) {
        for byte in 0..=255 {
            if self.contains(byte)
                && !keep(byte)
                && let Some(w) = self.bits.get_mut(usize::from(byte >> 6))
            {
                *w &= !(1 << (byte & 63));
            }
        }
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.bits == [0; 4]
    }

    /// All that any of the words chooses.
    pub fn parse_all<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, Wrong> {
        let mut all = Self::NONE;
        // UD SENDs named otherwise than as management datagrams
        let mut plain_ud = false;
        for w in words {
            let one = Self::parse(w)?;
            for (a, b) in all.bits.iter_mut().zip(one.bits) {
                *a |= b;
            }
            all.acks |= one.acks;
            all.naks |= one.naks;
            all.rnrs |= one.rnrs;
            let has_ud = ROWS.iter().any(|op| op.transport == Transport::Ud && one.contains(op.byte));
            plain_ud |= has_ud && !one.mad_only;
            all.mad_only |= one.mad_only;
            all.words.extend(one.words);
        }
        all.mad_only &= !plain_ud;
        if all.words.is_empty() {
            return Err(Wrong::new("the list of opcodes is empty, so the rule could never match"));
        }
        Ok(all)
    }

    /// A name of the opcode table (`RC RDMA WRITE Last`), a class (`write`, `last`, `nak`), several
    /// together (`rc write last`), or a number.
    pub fn parse(word: &str) -> Result<Self, Wrong> {
        let mut out = Self { words: vec![word.trim().to_owned()], ..Self::NONE };
        if word.trim().starts_with(|c: char| c.is_ascii_digit()) {
            let byte = u8::try_from(number(word)?)
                .map_err(|_| Wrong::new(format!("{} is not an opcode (0 to 255)", quoted(word))))?;
            out.insert(byte);
            out.all_acks(byte);
            return Ok(out);
        }
        let wanted = tokens(word);
        if let Some(op) = ROWS.iter().find(|op| tokens(op.name) == wanted) {
            out.insert(op.byte);
            out.all_acks(op.byte);
            return Ok(out);
        }
        let has = |t: &str| wanted.iter().any(|w| w == t);
        let all = |op: &Op| wanted.iter().all(|t| one(t, op, &has));
        for op in ROWS.iter().filter(|op| all(op)) {
            out.insert(op.byte);
        }
        if wanted.is_empty() || out.is_empty() {
            let names = CLASSES.iter().map(|(w, _)| *w).chain(ROWS.iter().map(|op| op.name));
            return Err(Wrong::unknown("opcode or class", word, names));
        }
        out.mad_only = has("mad");
        let any = !(has("ack") || has("nak") || has("rnr"));
        let acknowledge = ROWS.iter().any(|op| op.kind == Kind::Ack && out.contains(op.byte));
        out.acks = acknowledge && (any || has("ack"));
        out.naks = acknowledge && (any || has("nak")) && !has("rnr");
        out.rnrs = acknowledge && (any || has("rnr"));
        Ok(out)
    }

    fn all_acks(&mut self, byte: u8) {
        if Op::of(byte).is_some_and(|op| op.kind == Kind::Ack) {
            (self.acks, self.naks, self.rnrs) = (true, true, true);
        }
    }
}

fn tokens(name: &str) -> Vec<String> {
    name.split(|c: char| c.is_whitespace() || c == '-' || c == '_')
        .filter(|t| !t.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

/// Whether an opcode meets one word, given the other words beside it.
fn one(token: &str, op: &Op, has: &impl Fn(&str) -> bool) -> bool {
    // position words are about messages that may have several packets
    let placed = |p: &[Position]| op.payload == Payload::Data && p.contains(&op.position);
    match token {
        "rdma" | "with" => true,
        "first" => placed(&[Position::First]),
        "middle" => placed(&[Position::Middle]),
        "last" => placed(&[Position::Last]),
        "only" => placed(&[Position::Only]),
        "starts" => placed(&[Position::First, Position::Only]),
        "ends" => placed(&[Position::Last, Position::Only]),
        "data" => op.payload == Payload::Data,
        "send" => op.kind == Kind::Send,
        "write" if has("atomic") => op.kind == Kind::AtomicWrite,
        "write" => op.kind == Kind::Write,
        "read" => matches!(op.kind, Kind::ReadRequest | Kind::ReadResponse),
        "request" | "requests" => op.role() == Role::Request,
        "response" | "responses" => matches!(op.kind, Kind::ReadResponse | Kind::AtomicAck),
        "atomic" if has("ack") || has("acknowledge") => op.kind == Kind::AtomicAck,
        "atomic" => matches!(op.kind, Kind::Atomic | Kind::AtomicWrite),
        "ack" | "acknowledge" if has("atomic") => op.kind == Kind::AtomicAck,
        "ack" | "acknowledge" | "nak" | "rnr" => op.kind == Kind::Ack,
        "cnp" => op.kind == Kind::Cnp,
        "flush" => op.kind == Kind::Flush,
        "mad" | "mads" => op.transport == Transport::Ud,
        "imm" | "immediate" => op.has(Header::ImmDt),
        "inv" | "invalidate" => op.has(Header::Ieth),
        other => {
            op.transport.name().eq_ignore_ascii_case(other)
                || tokens(op.name).iter().any(|t| t == other) && !is_transport(other)
        }
    }
}

fn is_transport(token: &str) -> bool {
    ["rc", "uc", "rd", "ud", "xrc"].contains(&token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(word: &str) -> Vec<&'static str> {
        let o = Opcodes::parse(word).unwrap();
        ROWS.iter().filter(|r| o.contains(r.byte)).map(|r| r.name).collect()
    }

    #[test]
    fn selections() {
        assert_eq!(names("RC RDMA WRITE Last"), ["RC RDMA WRITE Last"]);
        assert_eq!(names("rc-write-last"), ["RC RDMA WRITE Last", "RC RDMA WRITE Last with Immediate"]);
        assert_eq!(names("UC write only imm"), ["UC RDMA WRITE Only with Immediate"]);
        assert_eq!(names("cnp"), ["CNP"]);
        assert_eq!(names("rc CmpSwap"), ["RC CmpSwap"]);
        assert_eq!(names("rc atomic-ack"), ["RC ATOMIC Acknowledge"]);
        assert_eq!(names("rc atomic write"), ["RC ATOMIC WRITE"]);
        assert_eq!(names("0x0c"), ["RC RDMA READ Request"]);
        assert_eq!(names("rc read-response").len(), 4);
        // an acknowledge has the table's position "Only", yet "only" means messages
        assert!(!names("only").contains(&"RC Acknowledge"));
        assert!(names("first").contains(&"RC RDMA READ response First"));
        // every name of the table means itself alone
        for op in ROWS {
            let o = Opcodes::parse(op.name).unwrap();
            let hit: Vec<_> = ROWS.iter().filter(|r| o.contains(r.byte)).collect();
            assert_eq!(hit, [op], "{}", op.name);
        }
        for (class, _) in CLASSES {
            assert!(!names(class).is_empty(), "{class}");
        }
    }

    #[test]
    fn acknowledges_by_syndrome() {
        let kinds = |w: &str| {
            let o = Opcodes::parse(w).unwrap();
            (o.acks, o.naks, o.rnrs)
        };
        assert_eq!(kinds("ack"), (true, false, false));
        assert_eq!(kinds("nak"), (false, true, false));
        assert_eq!(kinds("rnr nak"), (false, false, true));
        assert_eq!(kinds("RC Acknowledge"), (true, true, true));
        assert_eq!(kinds("acknowledge"), (true, true, true));
        assert_eq!(kinds("write"), (false, false, false));
        assert_eq!(kinds("0x11"), (true, true, true));
        assert!(!Opcodes::parse_all(["mad", "UD SEND Only"]).unwrap().mad_only);
        assert!(Opcodes::parse_all(["mad", "write"]).unwrap().mad_only);
    }

    #[test]
    fn suggestions() {
        let meant = |w: &str| Opcodes::parse(w).unwrap_err().meant;
        assert_eq!(meant("wirte").as_deref(), Some("write"));
        assert_eq!(meant("RC RDMA WRITE Lst").as_deref(), Some("RC RDMA WRITE Last"));
        assert_eq!(meant("elephant"), None);
        assert_eq!(Opcodes::parse("").unwrap_err().meant, None);
        assert_eq!(Opcodes::parse("300").unwrap_err().message, "`300` is not an opcode (0 to 255)");
    }

    #[test]
    fn ranges() {
        assert_eq!(Range::parse("4-9").unwrap(), Range { min: 4, max: 9 });
        assert_eq!(Range::parse(">4").unwrap(), Range { min: 5, max: u64::MAX });
        assert_eq!(Range::parse("<0x10").unwrap(), Range { min: 0, max: 15 });
        assert_eq!(Range::parse("-9").unwrap(), Range { min: 0, max: 9 });
        for bad in ["9-4", "", "-", "x", "<0", ">18446744073709551615", "+4", "1-2-3", "0x+1"] {
            assert!(Range::parse(bad).is_err(), "{bad}");
        }
        let p = PsnRange::parse("0xfffffe-1").unwrap();
        assert_eq!((p.relative, p.first, p.last), (false, 0xff_fffe, 1));
        let p = PsnRange::parse("+4-+9").unwrap();
        assert_eq!((p.relative, p.first, p.last), (true, 4, 9));
        assert_eq!(PsnRange::parse("+4-9").unwrap(), p);
        for bad in ["", "+", "++4", "4-+9", "0x1000000", "-5", "5-", "999999999999999999999"] {
            assert!(PsnRange::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn quantities() {
        assert_eq!(duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("250us").unwrap(), Duration::from_micros(250));
        assert_eq!(bytes("100KB").unwrap(), 100_000);
        assert_eq!(bytes("1.5KiB").unwrap(), 1536);
        assert_eq!(bit_rate("25Gbit").unwrap(), 25_000_000_000);
        assert!((packet_rate("30/min").unwrap() - 0.5).abs() < 1e-12);
        assert!((chance("2.5%").unwrap() - 0.025).abs() < 1e-12);
        for bad in ["", "5", "s", "-1s", "1..2s", "nans", "infs", "1e9s", "99999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "1.1", "-0.1", "NaN", "101%", "inf"] {
            assert!(chance(bad).is_err(), "{bad}");
        }
        for bad in ["", "10", "0Gbit", "infGbit", "1e300Gbit"] {
            assert!(bit_rate(bad).is_err(), "{bad}");
        }
        for bad in ["10.0.0.0/33", "10.0.0", "fe80::/129", "", "1.2.3.4/", "1.2.3.4/-1"] {
            assert!(Prefix::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(show_duration(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!(show_duration(Duration::from_secs(30)), "30 s");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert!(!Opcodes::parse("\x1b[2J").unwrap_err().to_string().contains('\x1b'));
    }
}
