//! A rule of the file.

use toml::de::{DeTable, DeValue};

use super::keys;
use super::value::{At, Value, bad, boolean, duration, get, integer, known, parsed, positive, table, text, word};
use crate::fault::rule::{Burst, Direction, Fault, Per, PhantomQueue, Rule};
use crate::fault::words::{self, Opcodes, Prefix, PsnRange, Range, Wrong, quoted};

pub(super) fn rule(t: &DeTable<'_>, whole: &Value<'_>, index: usize) -> Result<Rule, At> {
    known(t, "[[rule]]", keys::RULE)?;
    let Some(kind) = get(t, "type") else {
        return bad(whole, Wrong::new("the rule has no `type`: say what happens (drop, ce, icrc, corrupt …)"));
    };
    let kind_word = text(kind, "type")?;
    let name = match get(t, "name") {
        Some(v) => {
            let n = text(v, "name")?;
            if n.is_empty() || n.len() > 100 {
                return bad(v, Wrong::new("a rule's name has 1 to 100 bytes"));
            }
            n
        }
        None => format!("rule-{}", index + 1),
    };
    let mut r = Rule::new(name, fault(t, kind, &kind_word)?);
    if let Some(v) = get(t, "interface") {
        let n = text(v, "interface")?;
        if n.is_empty() || n.len() > 15 || n.contains(['/', ' ']) {
            return bad(v, Wrong::new(format!("{} cannot be the name of an interface", quoted(&n))));
        }
        r.interface = Some(n);
    }
    if let Some(v) = get(t, "direction") {
        let w = text(v, "direction")?;
        r.direction = direction(&w).or_else(|w| bad(v, w))?;
    }
    let prefix = |key: &str| get(t, key).map(|v| parsed(v, key, "an address or prefix", Prefix::parse)).transpose();
    r.src = prefix("src")?;
    r.dst = prefix("dst")?;
    if let (Some(a), Some(b)) = (r.src, r.dst)
        && a.address.is_ipv4() != b.address.is_ipv4()
        && a.length > 0
        && b.length > 0
        && let Some(v) = get(t, "dst")
    {
        return bad(v, Wrong::new("`src` and `dst` are of different IP versions, so nothing can match both"));
    }
    if let Some(v) = get(t, "qpn") {
        let n = integer(v, "qpn", "a queue pair number")?;
        r.qpn = Some(words::in_24_bits("queue pair", n).or_else(|w| bad(v, w))?);
    }
    let small = |key: &str| -> Result<Option<u32>, At> {
        let Some(v) = get(t, key) else { return Ok(None) };
        match u32::try_from(positive(v, key)?) {
            Ok(n) => Ok(Some(n)),
            Err(_) => bad(v, Wrong::new(format!("`{key}` is too large"))),
        }
    };
    r.flow = small("flow")?;
    r.message = small("message")?;
    if let (Some(_), Some(v)) = (r.qpn, get(t, "flow")) {
        return bad(v, Wrong::new("`flow` counts the queue pairs seen and `qpn` names one: write one of the two"));
    }
    if let Some(v) = get(t, "transport") {
        r.transport = Some(parsed(v, "transport", "a transport service", words::transport)?);
    }
    if let Some(v) = get(t, "opcode") {
        let list: Vec<String> = match v.get_ref() {
            DeValue::Array(a) => {
                let mut out = Vec::new();
                for v in a {
                    let w = word(v, "opcode", "a name, class or number")?;
                    Opcodes::parse(&w).or_else(|e| bad(v, e))?;
                    out.push(w);
                }
                out
            }
            _ => vec![word(v, "opcode", "a name, class or number, or a list of them")?],
        };
        r.opcodes = Some(Opcodes::parse_all(list.iter().map(String::as_str)).or_else(|w| bad(v, w))?);
        if (0..=255).all(|b| !r.takes(b)) {
            return bad(v, Wrong::new("no opcode of this transport is among them, so the rule could never match"));
        }
    }
    if let Some(v) = get(t, "psn") {
        r.psn = Some(match v.get_ref() {
            DeValue::Integer(_) => {
                let n = integer(v, "psn", "a PSN")?;
                let n = words::in_24_bits("PSN", n).or_else(|w| bad(v, w))?;
                PsnRange { relative: false, first: n, last: n }
            }
            _ => parsed(v, "psn", "a PSN or a range such as \"104-110\" or \"+4\"", PsnRange::parse)?,
        });
    }
    if let Some(v) = get(t, "iter") {
        let i = parsed(v, "iter", "a number or a range such as \"2-\"", Range::parse)?;
        if i.max == 0 {
            return bad(v, Wrong::new("`iter` counts from 1: 1 is the first transmission, 2 the first retransmission"));
        }
        r.iter = Some(Range { min: i.min.max(1), max: i.max });
    }
    if let Some(v) = get(t, "dscp") {
        r.dscp = Some(dscp(v, "dscp")?);
    }
    if let Some(v) = get(t, "size") {
        r.size = Some(parsed(v, "size", "a number or range of bytes", Range::parse)?);
    }
    if let Some(v) = get(t, "after") {
        r.after = duration(v, "after")?;
    }
    if let Some(v) = get(t, "for") {
        let d = duration(v, "for")?;
        if d.is_zero() {
            return bad(v, Wrong::new("`for` of nothing: the rule would never match"));
        }
        r.lasting = Some(d);
    }
    match (get(t, "period"), get(t, "down")) {
        (None, None) => {}
        (Some(p), Some(d)) => {
            let (period, down) = (duration(p, "period")?, duration(d, "down")?);
            if down.is_zero() || down >= period {
                return bad(d, Wrong::new("`down` must be more than nothing and less than `period`"));
            }
            r.flap = Some((period, down));
        }
        (Some(v), None) => return bad(v, Wrong::new("`period` needs `down`: how long of each period it is active")),
        (None, Some(v)) => return bad(v, Wrong::new("`down` needs `period`: how often it happens")),
    }
    if kind_word == "flap" && r.flap.is_none() {
        return bad(kind, Wrong::new("`flap` needs `period` and `down`"));
    }
    let count = |key: &str| get(t, key).map(|v| positive(v, key)).transpose();
    r.nth = count("nth")?;
    r.every = count("every")?;
    r.count = count("count")?;
    if let (Some(_), Some(v)) = (r.nth, get(t, "every")) {
        return bad(
            v,
            Wrong::new("`nth` and `every` exclude each other: the n-th comes once, every n-th again and again"),
        );
    }
    if let Some(v) = get(t, "probability") {
        r.probability = Some(parsed(v, "probability", "a number from 0 to 1", words::chance)?);
    }
    if let Some(v) = get(t, "burst") {
        r.burst = Some(burst(v)?);
        if let Some(p) = get(t, "probability") {
            return bad(p, Wrong::new("`burst` has its own probabilities: write one of the two"));
        }
    }
    if let Some(v) = get(t, "rate") {
        r.rate = Some(parsed(v, "rate", "a rate such as \"100/s\"", words::packet_rate)?);
    }
    if let Some(v) = get(t, "per") {
        r.per = match text(v, "per")?.as_str() {
            "flow" => Per::Flow,
            "rule" => Per::Rule,
            w => return bad(v, Wrong::unknown("word for `per`", w, ["flow", "rule"])),
        };
    }
    Ok(r)
}

/// `in`, `out`, `both`.
pub fn direction(word: &str) -> Result<Direction, Wrong> {
    match word {
        "in" | "ingress" => Ok(Direction::In),
        "out" | "egress" => Ok(Direction::Out),
        "both" => Ok(Direction::Both),
        w => Err(Wrong::unknown("direction", w, ["in", "out", "both"])),
    }
}

fn dscp(v: &Value<'_>, key: &str) -> Result<u8, At> {
    match u8::try_from(integer(v, key, "a DSCP")?) {
        Ok(d) if d < 64 => Ok(d),
        _ => bad(v, Wrong::new(format!("`{key}`: a DSCP lies between 0 and 63"))),
    }
}

/// Keys that only some types take.
pub(super) const OWN_KEYS: &[(&str, &[&str])] = &[
    ("offset", &["corrupt"]),
    ("xor", &["corrupt"]),
    ("value", &["dscp"]),
    ("length", &["truncate"]),
    ("any_ecn", &["ce", "ecn"]),
    ("queue", &["ce", "ecn"]),
];

fn fault(t: &DeTable<'_>, kind: &Value<'_>, name: &str) -> Result<Fault, At> {
    for (key, types) in OWN_KEYS {
        if let Some(v) = get(t, key)
            && !types.contains(&name)
        {
            return bad(
                v,
                Wrong::new(format!("`{key}` belongs to type {}, not to {}", types.join(" or "), quoted(name))),
            );
        }
    }
    Ok(match name {
        "drop" | "blackhole" | "flap" => Fault::Drop,
        "ce" | "ecn" => Fault::MarkCe {
            any: get(t, "any_ecn").map_or(Ok(false), |v| boolean(v, "any_ecn"))?,
            queue: get(t, "queue").map(queue).transpose()?,
        },
        "icrc" | "bit-error" => Fault::FailIcrc,
        "corrupt" => {
            let offset = match get(t, "offset") {
                None => 0,
                Some(v) => match u32::try_from(integer(v, "offset", "a payload offset")?) {
                    Ok(o) if o < 65_536 => o,
                    _ => return bad(v, Wrong::new("`offset`: no packet has a payload of 65536 bytes")),
                },
            };
            let xor = match get(t, "xor") {
                None => 1,
                Some(v) => match u8::try_from(integer(v, "xor", "a byte")?) {
                    Ok(x) if x > 0 => x,
                    _ => return bad(v, Wrong::new("`xor` is one byte, and not 0 (that would change nothing)")),
                },
            };
            Fault::Corrupt { offset, xor }
        }
        "clear-ect" => Fault::ClearEct,
        "dscp" => match get(t, "value") {
            Some(v) => Fault::SetDscp(dscp(v, "value")?),
            None => return bad(kind, Wrong::new("type `dscp` needs `value`: the new DSCP")),
        },
        "truncate" => match get(t, "length") {
            Some(v) => match u32::try_from(integer(v, "length", "a frame length")?) {
                Ok(n @ 14..=65_535) => Fault::Truncate(n),
                _ => {
                    return bad(
                        v,
                        Wrong::new("`length`: a frame has at least its 14 bytes of Ethernet header, at most 65535"),
                    );
                }
            },
            None => return bad(kind, Wrong::new("type `truncate` needs `length`: bytes of the frame that stay")),
        },
        "duplicate" => Fault::Duplicate,
        _ => {
            let all = keys::TYPES.iter().map(|(w, _)| *w).chain(["ecn", "bit-error"]);
            return bad(kind, Wrong::unknown("type", name, all));
        }
    })
}

fn queue(v: &Value<'_>) -> Result<PhantomQueue, At> {
    let t = table(v, "queue")?;
    known(t, "queue", keys::QUEUE)?;
    let need = |key: &str| -> Result<&Value<'_>, At> {
        get(t, key).map_or_else(|| bad(v, Wrong::new(format!("`queue` needs `{key}`"))), Ok)
    };
    let q = PhantomQueue {
        rate: parsed(need("rate")?, "rate", "a bit rate such as \"10Gbit\"", words::bit_rate)?,
        kmin: parsed(need("kmin")?, "kmin", "bytes such as \"100KB\"", words::bytes)?,
        kmax: parsed(need("kmax")?, "kmax", "bytes such as \"400KB\"", words::bytes)?,
        pmax: parsed(need("pmax")?, "pmax", "a number from 0 to 1", words::chance)?,
    };
    if q.kmin > q.kmax {
        return bad(need("kmin")?, Wrong::new("`kmin` is larger than `kmax`"));
    }
    Ok(q)
}

fn burst(v: &Value<'_>) -> Result<Burst, At> {
    let t = table(v, "burst")?;
    known(t, "burst", keys::BURST)?;
    let one = |key: &str| get(t, key).map(|v| parsed(v, key, "a number from 0 to 1", words::chance)).transpose();
    let Some(p) = one("p")? else {
        return bad(v, Wrong::new("`burst` needs `p`: the chance that a good spell turns bad"));
    };
    // netem's defaults: r = 1-p, 1-h = 1, 1-k = 0
    Ok(Burst { p, r: one("r")?.unwrap_or(1.0 - p), bad: one("1-h")?.unwrap_or(1.0), good: one("1-k")?.unwrap_or(0.0) })
}
