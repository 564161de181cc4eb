//! The filter of the flow table: the display filter's language over the fields of a flow.
//!
//! `qp == 0x11` · `nak > 0 && src == 10.0.0.1` · `ip.addr == 10.0.0.0/24 and not transport == ud` · `dscp in {26 46}`.
//! A single word that is no field is looked for in addresses, queue pairs and the transport, as htop does.

use std::net::IpAddr;
use std::sync::Arc;

use dissector::dissect::{Field, Tree};
use dissector::filter::{Filter, Vocabulary};
use dissector::flow::row::{Endpoint, FlowRow};

use crate::aggregate::{Flow, Metric, Phase, per_second};

dissector::fields! {
    group 0;
    SRC "src" "Source" Ipv4 Dec {} "source address, IPv4 or IPv6";
    SRC6 "src" "Source" Ipv6 Dec {} "source address";
    DST "dst" "Destination" Ipv4 Dec {} "destination address, IPv4 or IPv6";
    DST6 "dst" "Destination" Ipv6 Dec {} "destination address";
    ADDR "addr" "Address" Ipv4 Dec {} "source or destination address";
    ADDR6 "addr" "Address" Ipv6 Dec {} "source or destination address";
    QP "qp" "Queue pair" U24 Hex {} "destination queue pair, or source queue pair if it is known";
    DEST_QP "dest_qp" "Destination QP" U24 Hex {} "destination queue pair";
    SRC_QP "src_qp" "Source QP" U24 Hex {} "source queue pair, if it is known";
    TRANSPORT "transport" "Transport" Str Dec {} "RC, UC, UD, XRC, CNP";
    DSCP "dscp" "DSCP" U8 Dec {} "DSCP of the latest packet";
    SPORT "sport" "UDP source port" U16 Dec {} "UDP source port of the latest packet";
    VLAN "vlan" "VLAN" U16 Dec {} "VLAN id";
    ACTIVE "active" "Active" Bool Dec {} "had packets in the interval";
    PPS "pps" "Packets/s" U64 Dec {} "packets per second in the interval";
    BPS "bps" "Bits/s" U64 Dec {} "bits per second in the interval";
    PACKETS "packets" "Packets" U64 Dec {} "packets since the start, as all that follow";
    BYTES "bytes" "Bytes" U64 Dec {} "bytes on the wire";
    MESSAGES "messages" "Messages" U64 Dec {} "messages completed";
    REQUESTS "requests" "Requests" U64 Dec {} "request packets";
    RESPONSES "responses" "Responses" U64 Dec {} "READ and atomic responses";
    ACKS "acks" "Acknowledges" U64 Dec {} "positive acknowledges";
    CE "ce" "CE" U64 Dec {} "packets marked congestion experienced";
    CNP "cnp" "CNP" U64 Dec {} "congestion notification packets";
    NAK "nak" "NAK" U64 Dec {} "NAKs of any reason but receiver not ready";
    RNR "rnr" "RNR NAK" U64 Dec {} "receiver-not-ready NAKs";
    REPEAT "repeat" "Repeats" U64 Dec {} "data that came again";
    MISSING "missing" "Missing" U64 Dec {} "packets that never came";
    REORDERED "reordered" "Reordered" U64 Dec {} "first arrivals out of order";
    NOT_ECT "not_ect" "Not ECT" U64 Dec {} "packets that are not ECN capable";
    ICRC_BAD "icrc_bad" "ICRC wrong" U64 Dec {} "packets whose ICRC is wrong (captures only)";
}

/// Other names of the same: the display filter's of a packet's fields, and those of the JSON report.
const ALSO: &[(&str, &Field)] = &[
    ("ip.src", &SRC),
    ("ip.dst", &DST),
    ("ip.addr", &ADDR),
    ("ipv6.src", &SRC6),
    ("ipv6.dst", &DST6),
    ("ipv6.addr", &ADDR6),
    ("infiniband.bth.destqp", &DEST_QP),
    ("infiniband.deth.srcqp", &SRC_QP),
    ("type", &TRANSPORT),
    ("ip.dsfield.dscp", &DSCP),
    ("ipv6.tclass.dscp", &DSCP),
    ("udp_srcport", &SPORT),
    ("udp.srcport", &SPORT),
    ("vlan.id", &VLAN),
    ("naks", &NAK),
    ("rnr_naks", &RNR),
    ("cnps", &CNP),
    ("repeats", &REPEAT),
    ("retransmitted", &REPEAT),
];

/// Counters among the fields.
const COUNTERS: &[(&Field, Metric)] = &[
    (&PACKETS, Metric::Packets),
    (&BYTES, Metric::Bytes),
    (&MESSAGES, Metric::Messages),
    (&REQUESTS, Metric::Requests),
    (&RESPONSES, Metric::Responses),
    (&ACKS, Metric::Acks),
    (&CE, Metric::Ce),
    (&CNP, Metric::Cnps),
    (&NAK, Metric::Naks),
    (&RNR, Metric::RnrNaks),
    (&REPEAT, Metric::Repeats),
    (&MISSING, Metric::Missing),
    (&REORDERED, Metric::Reordered),
    (&NOT_ECT, Metric::NotEct),
    (&ICRC_BAD, Metric::IcrcBad),
];

const VOCABULARY: Vocabulary = Vocabulary {
    find,
    other: |field| [(&SRC, &SRC6), (&DST, &DST6), (&ADDR, &ADDR6)].into_iter().find(|(f, _)| f.is(field)).map(|f| f.1),
    unknown: |name| {
        format!("no field of a flow is called {name}; there are {}", names().collect::<Vec<_>>().join(", "))
    },
};

fn find(name: &str) -> Option<&'static Field> {
    let name = name.to_ascii_lowercase();
    // the first of a name is the IPv4 one
    let own = FIELDS.iter().copied().find(|f| f.name == name);
    own.or_else(|| ALSO.iter().find(|(n, _)| *n == name).map(|(_, f)| *f))
}

/// Names of fields, each once.
fn names() -> impl Iterator<Item = &'static str> {
    fields().map(|f| f.0)
}

/// Names and meanings of the fields, for the help.
pub fn fields() -> impl Iterator<Item = (&'static str, &'static str)> {
    FIELDS.iter().filter(|f| ![SRC6.id, DST6.id, ADDR6.id].contains(&f.id)).map(|f| (f.name, f.help))
}

/// A filter that was understood.
#[derive(Clone, Debug)]
pub struct Matcher(Test);

#[derive(Clone, Debug)]
enum Test {
    Filter(Arc<Filter>),
    /// In small letters.
    Word(String),
}

impl Matcher {
    /// Reads a filter; the error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ".:_-".contains(c));
        if word && find(text).is_none() {
            return Ok(Self(Test::Word(text.to_ascii_lowercase())));
        }
        match Filter::compile_for(&with_whole_numbers(text), &VOCABULARY) {
            Ok(f) => Ok(Self(Test::Filter(Arc::new(f)))),
            Err(e) => Err(e.sentence().to_owned()),
        }
    }

    /// Whether a flow passes; `interval_s` turns counts into rates.
    pub fn matches(&self, flow: &Flow, interval_s: f64) -> bool {
        match &self.0 {
            Test::Filter(f) => {
                let mut tree = Tree::for_fields(f.wanted());
                values(&mut tree, flow, interval_s);
                f.matches(&tree, &[])
            }
            Test::Word(w) => occurs(w, &flow.row),
        }
    }
}

fn occurs(word: &str, r: &FlowRow) -> bool {
    r.transport.eq_ignore_ascii_case(word)
        || r.src.to_string().contains(word)
        || r.dst.to_string().contains(word)
        || format!("{:#x}", r.dest_qp).contains(word)
        || r.dest_qp.to_string() == word
        || r.src_qp.is_some_and(|q| format!("{q:#x}").contains(word))
}

/// The fields of a flow that are asked for.
fn values(tree: &mut Tree<'_>, flow: &Flow, interval_s: f64) {
    let r = &*flow.row;
    for (end, v4, v6) in [(r.src, [&SRC, &ADDR], [&SRC6, &ADDR6]), (r.dst, [&DST, &ADDR], [&DST6, &ADDR6])] {
        match end {
            Endpoint::Ip(IpAddr::V4(a)) => v4.into_iter().for_each(|f| tree.derive(f, a.octets())),
            Endpoint::Ip(IpAddr::V6(a)) => v6.into_iter().for_each(|f| tree.derive(f, a.octets())),
            // a host of native InfiniBand has a number and no address
            Endpoint::Lid(_) => {}
        }
    }
    tree.derive(&QP, r.dest_qp);
    tree.derive(&DEST_QP, r.dest_qp);
    if let Some(q) = r.src_qp {
        tree.derive(&QP, q);
        tree.derive(&SRC_QP, q);
    }
    if tree.wants(&TRANSPORT) {
        // people write it either way
        tree.derive(&TRANSPORT, r.transport.to_owned());
        tree.derive(&TRANSPORT, r.transport.to_ascii_lowercase());
    }
    if let Some(d) = r.dscp {
        tree.derive(&DSCP, d);
    }
    if let Some(p) = r.udp_srcport {
        tree.derive(&SPORT, p);
    }
    if let Some(v) = r.vlan {
        tree.derive(&VLAN, v);
    }
    tree.derive(&ACTIVE, flow.phase == Phase::Active);
    for (field, n) in [(&PPS, flow.delta(Metric::Packets)), (&BPS, flow.delta(Metric::Bytes).saturating_mul(8))] {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate as a whole number")]
        tree.derive(field, per_second(n, interval_s).round() as u64);
    }
    for (field, metric) in COUNTERS {
        if tree.wants(field) {
            tree.derive(field, flow.total(*metric));
        }
    }
}

/// `10k`, `1.5M`, `2G` in full: nobody counts the zeros of a rate.
fn with_whole_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quoted = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || ".:_-/".contains(c))).unwrap_or(rest.len());
        let (word, after) = if quoted || end == 0 { rest.split_at(c.len_utf8()) } else { rest.split_at(end) };
        quoted ^= c == '"';
        // both ends of a range
        for (i, part) in word.split("..").enumerate() {
            out.push_str(if i > 0 { ".." } else { "" });
            match whole_number(part).filter(|_| !quoted) {
                Some(n) => out.push_str(&n),
                None => out.push_str(part),
            }
        }
        rest = after;
    }
    out
}

fn whole_number(word: &str) -> Option<String> {
    let zeros = match word.chars().next_back()? {
        'k' | 'K' => 3,
        'M' => 6,
        'G' => 9,
        'T' => 12,
        _ => return None,
    };
    let digits = word.get(..word.len() - 1)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || fraction.len() > zeros || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let number = format!("{whole}{fraction:0<zeros$}");
    // a leading zero would make it octal
    let short = number.trim_start_matches('0');
    Some(if short.is_empty() { "0".to_owned() } else { short.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::fixture;

    fn passes(filter: &str) -> Vec<u32> {
        let m = Matcher::parse(filter).unwrap_or_else(|e| panic!("{filter}: {e}"));
        let report = fixture::report();
        report.flows.iter().filter(|f| m.matches(f, report.interval_s)).map(|f| f.row.dest_qp).collect()
    }

    #[test]
    fn every_field_is_found_by_its_name_and_has_a_value() {
        for f in FIELDS {
            assert!(find(f.name).is_some_and(|found| found.name == f.name));
            assert!(FIELDS.iter().filter(|g| g.id == f.id).count() == 1);
        }
        for (name, f) in ALSO {
            assert!(FIELDS.iter().all(|f| f.name != *name), "{name} stands twice");
            assert!(find(name).is_some_and(|found| found.is(f)));
        }
        for (name, _) in fields() {
            Matcher::parse(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }

    #[test]
    fn words_and_fields() {
        let all = fixture::report().flows.len();
        assert_eq!(passes("src == 10.0.0.1 && dest_qp == 0x11"), [0x11]);
        assert_eq!(passes("dest_qp==17"), [0x11]);
        // either end, as far as the other one is known
        let known: Vec<_> =
            fixture::report().flows.iter().filter_map(|f| Some((f.row.dest_qp, f.row.src_qp?))).collect();
        assert!(known.len() > 2);
        for (dest, src) in known {
            assert!(passes(&format!("qp == {src}")).contains(&dest));
            assert!(passes(&format!("qp == {dest}")).contains(&dest));
            assert!(passes(&format!("src_qp == {src} and qp == {dest}")).contains(&dest));
        }
        assert_eq!(passes("infiniband.bth.destqp == 0x11"), [0x11]);
        assert_eq!(passes("transport == ud"), passes("UD"));
        assert_eq!(passes("not transport == UD").len() + passes("ud").len(), all);
        assert_eq!(passes("transport in {\"RC\" \"UD\"}").len(), all);
        assert_eq!(passes("src == 10.0.0.0/8 or src == fd00::/16").len(), all);
        assert_eq!(passes("src == fd00::/16"), passes("ipv6.src == fd00::/16"));
        assert_eq!(passes("addr == 10.0.0.1"), passes("10.0.0.1"));
        assert!(!passes("addr == 10.0.0.1").is_empty());
        assert_eq!(passes("src in {10.0.0.1 10.0.0.3}").len(), 2);
        assert_eq!(passes("vlan"), passes("vlan == 100"));
        assert!(passes("nak > 0").len() < all);
        assert_eq!(passes("bps >= 1k").len(), passes("not bps < 1000").len());
        assert_eq!(passes("active && dscp == 26"), passes("active and dscp == 0x1a"));
    }

    #[test]
    fn numbers_may_be_short() {
        for (short, long) in [
            ("bps > 1.5M", "bps > 1500000"),
            ("pps in {10k..2G}", "pps in {10000..2000000000}"),
            ("bps > 0.5k", "bps > 500"),
            ("transport == \"10k\"", "transport == \"10k\""),
            ("src == fd00::10M", "src == fd00::10M"),
            ("qp == 0x1k", "qp == 0x1k"),
            ("é > 1k", "é > 1000"),
        ] {
            assert_eq!(with_whole_numbers(short), long);
        }
    }

    #[test]
    fn mistakes_are_sentences() {
        for bad in [
            "qp ==",
            "(qp == 1",
            "foo == 1",
            "src > 1.1.1.1 1",
            "src == nonsense",
            "qp == x",
            "&&",
            "qp == 1 )",
            "\"open",
            "",
        ] {
            let e = Matcher::parse(bad).expect_err(bad);
            assert!(!e.is_empty() && !e.contains('\n'), "{bad}: {e}");
        }
        assert!(Matcher::parse(&"(".repeat(1000)).is_err());
        assert!(Matcher::parse(&"!".repeat(100_000)).is_err());
    }
}
