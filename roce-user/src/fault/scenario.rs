//! The scenario file: rules, the command to run, what is expected. Errors name line and column and the
//! word that was probably meant.
//!
//! ```toml
//! name = "the third WRITE survives the loss of two transmissions"
//! seed = 1
//!
//! [[rule]]
//! name = "lose-last"
//! type = "drop"              # Lumina's words: qpn, psn, iter, type
//! opcode = "RC RDMA WRITE Last"
//! flow = 2                   # the second flow seen
//! message = 3                # its third WRITE
//! iter = "1-2"               # the first transmission and the first retransmission
//!
//! [run]
//! command = ["./app", "--peer", "10.0.0.2"]
//! limit = "30s"
//!
//! [expect]
//! injections = { lose-last = 2 }
//! finish_within = "2s"
//! exit = 0
//! ```

use std::fmt::{self, Write as _};
use std::ops::Range as Span;
use std::path::Path;
use std::time::Duration;

use roce_ebpf::abi::fault::MAX_RULES;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::rule::{Burst, Direction, Fault, Per, PhantomQueue, Rule};
use super::words::{self, Opcodes, Prefix, PsnRange, Range, Wrong, quoted};

/// Largest file that is read.
pub const MAX_BYTES: u64 = 1 << 20;
/// How long a run lasts if nobody says.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(30);

/// What to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Program and arguments; empty: nothing is run.
    pub command: Vec<String>,
    /// The whole run ends then.
    pub limit: Option<Duration>,
}

/// What must be true at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    /// Injections of all rules together.
    pub injections: Option<Range>,
    /// Injections of single rules.
    pub per_rule: Vec<(usize, Range)>,
    /// The command's exit status.
    pub exit: Option<u8>,
    /// The command ends within this time.
    pub finish_within: Option<Duration>,
    /// Each dropped or corrupted PSN comes again within this time.
    pub retransmission_within: Option<Duration>,
    /// Each dropped or corrupted request is answered by a sequence NAK within this time.
    pub nak_within: Option<Duration>,
    /// Each CE mark is answered by a CNP within this time.
    pub cnp_within: Option<Duration>,
    /// No PSN is missing at the end.
    pub no_message_lost: bool,
    /// After a sequence NAK the sender starts again exactly there.
    pub go_back_n: bool,
}

impl Expect {
    /// What must be true, a sentence each.
    fn sentences(&self, name_of: impl Fn(usize) -> String) -> Vec<String> {
        let mut out = Vec::new();
        let time = words::show_duration;
        if self.injections.is_none() && self.per_rule.is_empty() {
            out.push("at least one packet was hit".to_owned());
        }
        if let Some(r) = self.injections {
            out.push(format!("packets hit by all rules together: {r}"));
        }
        for (rule, r) in &self.per_rule {
            out.push(format!("packets hit by rule {}: {r}", name_of(*rule)));
        }
        if let Some(c) = self.exit {
            out.push(format!("the command exits with status {c}"));
        }
        if let Some(t) = self.finish_within {
            out.push(format!("the command ends within {}", time(t)));
        }
        if let Some(t) = self.retransmission_within {
            out.push(format!("every packet that was lost to its receiver is sent again within {}", time(t)));
        }
        if let Some(t) = self.nak_within {
            out.push(format!("every lost request is answered by a sequence NAK within {}", time(t)));
        }
        if let Some(t) = self.cnp_within {
            out.push(format!("every CE mark is answered by a CNP within {}", time(t)));
        }
        if self.no_message_lost {
            out.push("no PSN is missing at the end".to_owned());
        }
        if self.go_back_n {
            out.push("after a sequence NAK the sender goes back to exactly the PSN that it names".to_owned());
        }
        out
    }
}

/// A scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Name in reports.
    pub name: String,
    /// Why it exists.
    pub description: Option<String>,
    /// Seed of the random decisions.
    pub seed: u64,
    /// UDP destination port that means RoCEv2.
    pub port: Option<u16>,
    /// Rules, in order: the first that fires acts.
    pub rules: Vec<Rule>,
    /// The command.
    pub run: Run,
    /// The expectations.
    pub expect: Expect,
}

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// File, as it was named.
    pub file: String,
    /// Line and column, from 1; `None` if it is the file itself.
    pub at: Option<(usize, usize)>,
    /// The sentence.
    pub wrong: Wrong,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.wrong)
    }
}

/// An error with its place in the text.
type At = (Span<usize>, Wrong);

impl Scenario {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let whole = |message: String| ScenarioError { file: file.clone(), at: None, wrong: Wrong::new(message) };
        let meta = std::fs::metadata(path).map_err(|e| whole(format!("cannot read the scenario: {e}")))?;
        if meta.is_dir() {
            return Err(whole("is a directory, not a scenario".into()));
        }
        if meta.len() > MAX_BYTES {
            return Err(whole(format!("{} bytes are no scenario (at most {MAX_BYTES})", meta.len())));
        }
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(path).map_err(|e| whole(format!("cannot read the scenario: {e}")))?;
        std::io::Read::read_to_end(&mut std::io::Read::take(opened, MAX_BYTES + 1), &mut bytes)
            .map_err(|e| whole(format!("cannot read the scenario: {e}")))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(whole(format!("more than {MAX_BYTES} bytes are no scenario")));
        }
        let text = String::from_utf8(bytes)
            .map_err(|e| whole(format!("is not UTF-8 text (byte {})", e.utf8_error().valid_up_to())))?;
        Self::parse(&file, &text)
    }

    /// What the scenario does, in plain sentences.
    pub fn explain(&self) -> String {
        let mut s = String::new();
        let _ = writeln!(s, "{}", self.name);
        if let Some(d) = &self.description {
            for line in d.lines() {
                let _ = writeln!(s, "  {line}");
            }
        }
        let name = |n: usize| self.rules.get(n).map_or_else(String::new, |r| quoted(&r.name));
        let _ = writeln!(s, "Rules, in order; the first that fires acts on the packet, and the others do not see it:");
        for (n, r) in self.rules.iter().enumerate() {
            let _ = writeln!(s, "  {}. {}: {}.", n + 1, r.name, r.sentence(name));
        }
        if self.rules.iter().any(|r| r.probability.is_some() || r.burst.is_some()) {
            let _ = writeln!(
                s,
                "Chances are drawn from seed {}, the flow, the PSN and its transmission: the same traffic is hit in the same places.",
                self.seed
            );
        }
        match self.run.command.as_slice() {
            [] => s.push_str("Runs no command of its own.\n"),
            argv => {
                let shown: Vec<_> = argv.iter().map(|a| escape(a)).collect();
                let _ = writeln!(s, "Runs: {}", shown.join(" "));
            }
        }
        let limit = self.run.limit.unwrap_or(DEFAULT_LIMIT);
        let _ = writeln!(s, "Ends after {} at the latest, unless --for says otherwise.", words::show_duration(limit));
        let expected = self.expect.sentences(name);
        let _ = writeln!(s, "Holds if:");
        for e in expected {
            let _ = writeln!(s, "  - {e}");
        }
        s
    }

    /// Reads a text. `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let located =
            |(span, wrong): At| ScenarioError { file: file.to_owned(), at: Some(place(text, span.start)), wrong };
        let doc = DeTable::parse(text).map_err(|e| {
            let message = escape(e.message());
            located((e.span().unwrap_or(0..0), Wrong::new(message)))
        })?;
        let stem = Path::new(file).file_stem().map_or_else(String::new, |s| escape(&s.to_string_lossy()));
        scenario(doc.get_ref(), &doc.span(), stem).map_err(located)
    }
}

fn escape(s: &str) -> String {
    s.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

fn place(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = text.get(..offset).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    (line, column)
}

/// A value with its place.
type Value<'a> = Spanned<DeValue<'a>>;

fn bad<T>(v: &Value<'_>, wrong: Wrong) -> Result<T, At> {
    Err((v.span(), wrong))
}

fn want<T>(v: &Value<'_>, key: &str, what: &str) -> Result<T, At> {
    bad(v, Wrong::new(format!("`{key}` must be {what}, not {}", article(v.get_ref().type_str()))))
}

fn article(kind: &str) -> String {
    let an = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if an { "an" } else { "a" })
}

/// Checks that every key is known.
fn known(table: &DeTable<'_>, section: &str, keys: &[&str]) -> Result<(), At> {
    for key in table.keys() {
        if !keys.contains(&key.get_ref().as_ref()) {
            return Err((
                key.span(),
                Wrong::unknown(&format!("key in {section}"), key.get_ref(), keys.iter().copied()),
            ));
        }
    }
    Ok(())
}

fn get<'t, 'a>(table: &'t DeTable<'a>, key: &str) -> Option<&'t Value<'a>> {
    table.get(key)
}

/// A text, or a number as its digits: what the word parsers read.
fn word(v: &Value<'_>, key: &str, what: &str) -> Result<String, At> {
    match v.get_ref() {
        DeValue::String(s) => Ok(s.to_string()),
        DeValue::Integer(_) => integer(v, key, what).map(|n| n.to_string()),
        DeValue::Float(f) => Ok(f.as_str().to_owned()),
        _ => want(v, key, what),
    }
}

fn integer(v: &Value<'_>, key: &str, what: &str) -> Result<u64, At> {
    match v.get_ref() {
        DeValue::Integer(i) => match i128::from_str_radix(&i.as_str().replace('_', ""), i.radix()) {
            Ok(n) => u64::try_from(n).or_else(|_| bad(v, Wrong::new(format!("`{key}` must be {what}, not {n}")))),
            Err(_) => bad(v, Wrong::new(format!("`{key}` is too large a number"))),
        },
        // numbers in quotes are as good
        DeValue::String(s) => words::number(s).or_else(|w| bad(v, w)),
        _ => want(v, key, what),
    }
}

fn positive(v: &Value<'_>, key: &str) -> Result<u64, At> {
    match integer(v, key, "a number from 1")? {
        0 => bad(v, Wrong::new(format!("`{key}` counts from 1"))),
        n => Ok(n),
    }
}

fn boolean(v: &Value<'_>, key: &str) -> Result<bool, At> {
    v.get_ref().as_bool().map_or_else(|| want(v, key, "true or false"), Ok)
}

fn text(v: &Value<'_>, key: &str) -> Result<String, At> {
    let Some(s) = v.get_ref().as_str() else { return want(v, key, "text") };
    if s.chars().any(char::is_control) && key != "command" {
        return bad(v, Wrong::new(format!("`{key}` holds control characters")));
    }
    if s.contains('\0') {
        return bad(v, Wrong::new(format!("`{key}` holds a NUL character")));
    }
    Ok(s.to_owned())
}

fn parsed<T>(v: &Value<'_>, key: &str, what: &str, parse: impl Fn(&str) -> Result<T, Wrong>) -> Result<T, At> {
    parse(&word(v, key, what)?).or_else(|w| bad(v, Wrong { message: format!("`{key}`: {}", w.message), ..w }))
}

/// A duration in words, or seconds as a number.
fn duration(v: &Value<'_>, key: &str) -> Result<Duration, At> {
    match v.get_ref() {
        DeValue::Integer(_) | DeValue::Float(_) => parsed(v, key, "a duration", |w| {
            words::seconds(
                w.replace('_', "").parse().map_err(|_| Wrong::new(format!("{} is not a duration", quoted(w))))?,
            )
        }),
        _ => parsed(v, key, "a duration such as \"200ms\"", words::duration),
    }
}

fn table<'t, 'a>(v: &'t Value<'a>, key: &str) -> Result<&'t DeTable<'a>, At> {
    match v.get_ref().as_table() {
        Some(t) => Ok(t),
        None => want(v, key, "a table"),
    }
}

const TOP_KEYS: &[&str] = &["name", "description", "seed", "port", "rule", "run", "expect"];

fn scenario(doc: &DeTable<'_>, span: &Span<usize>, stem: String) -> Result<Scenario, At> {
    // Lumina's file calls its list of events so
    known(doc, "the scenario", TOP_KEYS)?;
    let mut s = Scenario { name: stem, ..Scenario::default() };
    if let Some(v) = get(doc, "name") {
        s.name = text(v, "name")?;
    }
    if let Some(v) = get(doc, "description") {
        let Some(d) = v.get_ref().as_str() else { return want(v, "description", "text") };
        s.description = Some(d.lines().map(escape).collect::<Vec<_>>().join("\n"));
    }
    if let Some(v) = get(doc, "seed") {
        s.seed = integer(v, "seed", "a number")?;
    }
    if let Some(v) = get(doc, "port") {
        match u16::try_from(integer(v, "port", "a UDP port")?) {
            Ok(p) if p > 0 => s.port = Some(p),
            _ => return bad(v, Wrong::new("`port` must be a UDP port, 1 to 65535")),
        }
    }
    let Some(rules) = get(doc, "rule") else {
        return Err((span.start..span.start, Wrong::new("no [[rule]]: the scenario does nothing")));
    };
    let Some(list) = rules.get_ref().as_array() else {
        return bad(rules, Wrong::new("`rule` must be a list of tables: write [[rule]] with two brackets"));
    };
    if list.len() > MAX_RULES {
        return bad(rules, Wrong::new(format!("{} rules, and the kernel program takes {MAX_RULES}", list.len())));
    }
    let mut arming = Vec::new();
    for v in list {
        let t = table(v, "rule")?;
        let r = rule(t, v, s.rules.len())?;
        if let Some(n) = get(t, "name")
            && s.rules.iter().any(|o: &Rule| o.name == r.name)
        {
            return bad(n, Wrong::new(format!("two rules are named {}", quoted(&r.name))));
        }
        arming.push(get(t, "armed_by"));
        s.rules.push(r);
    }
    for (n, v) in arming.into_iter().enumerate() {
        let Some(v) = v else { continue };
        let name = text(v, "armed_by")?;
        let Some(by) = s.rules.iter().position(|r| r.name == name) else {
            let names = s.rules.iter().map(|r| r.name.as_str());
            return bad(v, Wrong::unknown("rule", &name, names));
        };
        if by == n {
            return bad(v, Wrong::new("a rule cannot arm itself: it would never fire"));
        }
        if let Some(r) = s.rules.get_mut(n) {
            r.armed_by = Some(by);
        }
    }
    // a ring of rules that wait for each other never starts
    for n in 0..s.rules.len() {
        let mut at = n;
        for _ in 0..=s.rules.len() {
            match s.rules.get(at).and_then(|r| r.armed_by) {
                None => break,
                Some(next) if next == n => {
                    let v = list.get(n).map_or(0..0, Spanned::span);
                    return Err((v, Wrong::new("rules that arm each other in a ring never fire")));
                }
                Some(next) => at = next,
            }
        }
    }
    if let Some(v) = get(doc, "run") {
        s.run = run(table(v, "run")?)?;
    }
    if let Some(v) = get(doc, "expect") {
        s.expect = expect(table(v, "expect")?, &s.rules)?;
    }
    Ok(s)
}

const RUN_KEYS: &[&str] = &["command", "limit"];

fn run(t: &DeTable<'_>) -> Result<Run, At> {
    known(t, "[run]", RUN_KEYS)?;
    let mut r = Run::default();
    if let Some(v) = get(t, "command") {
        r.command = match v.get_ref() {
            DeValue::String(_) => vec!["/bin/sh".into(), "-c".into(), text(v, "command")?],
            DeValue::Array(a) => a.iter().map(|v| text(v, "command")).collect::<Result<_, _>>()?,
            _ => return want(v, "command", "a list of words, or a line for the shell"),
        };
        if r.command.first().is_none_or(String::is_empty) {
            return bad(v, Wrong::new("`command` is empty"));
        }
    }
    if let Some(v) = get(t, "limit") {
        let d = duration(v, "limit")?;
        if d.is_zero() {
            return bad(v, Wrong::new("`limit` of nothing: the run would end before it begins"));
        }
        r.limit = Some(d);
    }
    Ok(r)
}

const EXPECT_KEYS: &[&str] = &[
    "injections",
    "exit",
    "finish_within",
    "retransmission_within",
    "nak_within",
    "cnp_within",
    "no_message_lost",
    "go_back_n",
];

fn expect(t: &DeTable<'_>, rules: &[Rule]) -> Result<Expect, At> {
    known(t, "[expect]", EXPECT_KEYS)?;
    let mut e = Expect::default();
    if let Some(v) = get(t, "injections") {
        match v.get_ref() {
            DeValue::Table(each) => {
                for (name, v) in each {
                    let Some(n) = rules.iter().position(|r| r.name == name.get_ref().as_ref()) else {
                        let names = rules.iter().map(|r| r.name.as_str());
                        return Err((name.span(), Wrong::unknown("rule", name.get_ref(), names)));
                    };
                    e.per_rule.push((n, parsed(v, "injections", "a number or a range such as \">=1\"", Range::parse)?));
                }
            }
            _ => e.injections = Some(parsed(v, "injections", "a number, a range or a table of rules", Range::parse)?),
        }
    }
    if let Some(v) = get(t, "exit") {
        let Ok(n) = u8::try_from(integer(v, "exit", "an exit status")?) else {
            return bad(v, Wrong::new("`exit` must be an exit status, 0 to 255"));
        };
        e.exit = Some(n);
    }
    let time = |key: &str| get(t, key).map(|v| duration(v, key)).transpose();
    e.finish_within = time("finish_within")?;
    e.retransmission_within = time("retransmission_within")?;
    e.nak_within = time("nak_within")?;
    e.cnp_within = time("cnp_within")?;
    let flag = |key: &str| get(t, key).map_or(Ok(false), |v| boolean(v, key));
    e.no_message_lost = flag("no_message_lost")?;
    e.go_back_n = flag("go_back_n")?;
    Ok(e)
}

/// Keys of a rule, with what they mean (the list that help, errors and the parser share).
pub const RULE_KEYS: &[(&str, &str)] = &[
    ("name", "what reports call it"),
    ("type", "what happens: see the list of types"),
    ("interface", "only on this interface"),
    ("direction", "in, out or both (both)"),
    ("src", "source address or prefix"),
    ("dst", "destination address or prefix"),
    ("qpn", "destination queue pair, decimal or 0x…"),
    ("flow", "the n-th flow that the rule sees, from 1"),
    ("transport", "RC, UC, UD, RD, XRC"),
    ("opcode", "name, class, number, or a list of them"),
    ("psn", "104, \"104-110\"; \"+4\", \"+4-+9\" from the flow's first"),
    ("iter", "which transmission of the PSN: 1 the first, 2 the first retransmission; \"2-\" any retransmission"),
    ("message", "the n-th message of that kind on the flow, from 1"),
    ("dscp", "DSCP, 0 to 63"),
    ("size", "frame length in bytes: 1000, \"64-128\", \">=1000\""),
    ("after", "not before this time from the start"),
    ("for", "for so long"),
    ("period", "flap: length of a period"),
    ("down", "flap: active for so long at the beginning of each period"),
    ("armed_by", "only once the rule of this name has fired"),
    ("nth", "only the n-th match"),
    ("every", "every n-th match"),
    ("probability", "by chance, 0.01 or \"1%\""),
    ("burst", "Gilbert-Elliott: { p, r, \"1-h\", \"1-k\" } as netem names them"),
    ("count", "at most so many"),
    ("rate", "at most so many: \"100/s\""),
    ("per", "flow (counters of each flow) or rule (of all flows together)"),
    ("offset", "corrupt: which payload byte, from 0"),
    ("xor", "corrupt: which bits of it (1)"),
    ("value", "dscp: the new DSCP"),
    ("length", "truncate: bytes of the frame that stay"),
    ("any_ecn", "ce: mark packets that are not ECT too"),
    ("queue", "ce: { rate, kmin, kmax, pmax }, a queue that marks as RED does"),
];

/// Types of faults: word, meaning.
pub const TYPES: &[(&str, &str)] = &[
    ("drop", "the packet vanishes"),
    ("ce", "ECN becomes CE; also: ecn"),
    ("icrc", "only the ICRC becomes wrong; also: bit-error"),
    ("corrupt", "a payload byte changes"),
    ("clear-ect", "ECN becomes not-ECT"),
    ("dscp", "DSCP is set"),
    ("truncate", "the frame is cut, its length fields stay"),
    ("duplicate", "the packet comes twice"),
    ("blackhole", "everything that matches vanishes, in the time window"),
    ("flap", "everything that matches vanishes during part of each period"),
];

fn rule(t: &DeTable<'_>, whole: &Value<'_>, index: usize) -> Result<Rule, At> {
    let keys: Vec<&str> = RULE_KEYS.iter().map(|(k, _)| *k).collect();
    known(t, "[[rule]]", &keys)?;
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
const OWN_KEYS: &[(&str, &[&str])] = &[
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
            let all = TYPES.iter().map(|(w, _)| *w).chain(["ecn", "bit-error"]);
            return bad(kind, Wrong::unknown("type", name, all));
        }
    })
}

fn queue(v: &Value<'_>) -> Result<PhantomQueue, At> {
    let t = table(v, "queue")?;
    known(t, "queue", &["rate", "kmin", "kmax", "pmax"])?;
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
    known(t, "burst", &["p", "r", "1-h", "1-k"])?;
    let one = |key: &str| get(t, key).map(|v| parsed(v, key, "a number from 0 to 1", words::chance)).transpose();
    let Some(p) = one("p")? else {
        return bad(v, Wrong::new("`burst` needs `p`: the chance that a good spell turns bad"));
    };
    // netem's defaults: r = 1-p, 1-h = 1, 1-k = 0
    Ok(Burst { p, r: one("r")?.unwrap_or(1.0 - p), bad: one("1-h")?.unwrap_or(1.0), good: one("1-k")?.unwrap_or(0.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Scenario::parse("s.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn the_issues_own_example() {
        let s = Scenario::parse(
            "dir/third-write.toml",
            r#"
            [[rule]]
            name = "lose-last"
            type = "drop"
            opcode = "RC RDMA WRITE Last"
            flow = 2
            message = 3
            iter = 3

            [run]
            command = ["app", "-x"]
            [expect]
            injections = { lose-last = 1 }
            finish_within = "2s"
            exit = 0
            "#,
        )
        .unwrap();
        assert_eq!(s.name, "third-write");
        let r = &s.rules[0];
        assert_eq!((r.flow, r.message, r.iter), (Some(2), Some(3), Some(Range::exactly(3))));
        assert_eq!(s.run.command, ["app", "-x"]);
        assert_eq!(s.expect.finish_within, Some(Duration::from_secs(2)));
        assert_eq!(s.expect.per_rule, [(0, Range::exactly(1))]);
    }

    #[test]
    fn luminas_words() {
        let s =
            Scenario::parse("x", "[[rule]]\nqpn = 0x11\npsn = 104\niter = 1\ntype = 'ecn'\n[[rule]]\ntype='bit-error'")
                .unwrap();
        assert_eq!(s.rules[0].qpn, Some(17));
        assert_eq!(s.rules[0].fault, Fault::MarkCe { any: false, queue: None });
        assert_eq!(s.rules[1].fault, Fault::FailIcrc);
    }

    #[test]
    fn errors_say_where_and_what_was_meant() {
        assert_eq!(
            error("[[rule]]\ntype = 'drop'\nopcod = 'write'"),
            "s.toml:3:1: unknown key in [[rule]] `opcod`; did you mean `opcode`?"
        );
        assert_eq!(error("[[rule]]\ntype = 'dorp'"), "s.toml:2:8: unknown type `dorp`; did you mean `drop`?");
        assert_eq!(
            error("[[rule]]\ntype = 'drop'\nopcode = ['ack', 'wirte']"),
            "s.toml:3:18: unknown opcode or class `wirte`; did you mean `write`?"
        );
        assert_eq!(error("[[rule]]\ntype = 'drop'\nnth = 0"), "s.toml:3:7: `nth` counts from 1");
        assert_eq!(
            error("[[rule]]\ntype = 'drop'\nnth = 'x'"),
            "s.toml:3:7: `x` is not a whole number (decimal or 0x…)"
        );
        assert_eq!(
            error("[[rule]]\ntype = 'drop'\noffset = 3"),
            "s.toml:3:10: `offset` belongs to type corrupt, not to `drop`"
        );
        assert_eq!(
            error("[[rule]]\ntype = 'drop'\nqpn = 0x1000000"),
            "s.toml:3:7: queue pair 16777216 does not fit 24 bits (at most 16777215, 0xffffff)"
        );
        assert_eq!(error("[[rule]]\ntype = 'drop'\nqpn = -1"), "s.toml:3:7: `qpn` must be a queue pair number, not -1");
        assert_eq!(error("[[rule]]\ntype = 'drop'\narmed_by = 'b'"), "s.toml:3:12: unknown rule `b`");
        assert_eq!(
            error("[[rule]]\ntype = 'drop'\nname = 'loss'\n[expect]\ninjections = { los = 1 }"),
            "s.toml:5:16: unknown rule `los`; did you mean `loss`?"
        );
        assert_eq!(
            error("[rule]\ntype = 'drop'"),
            "s.toml:1:1: `rule` must be a list of tables: write [[rule]] with two brackets"
        );
        assert!(error("").starts_with("s.toml:1:1: no [[rule]]"));
        assert!(error("a = ").starts_with("s.toml:1:"));
    }

    #[test]
    fn rules_that_cannot_fire_are_refused() {
        for (text, needle) in [
            ("armed_by = 'a'", "cannot arm itself"),
            ("transport = 'UD'\nopcode = 'write'", "never match"),
            ("opcode = []", "empty"),
            ("src = '10.0.0.1'\ndst = 'fe80::1'", "different IP versions"),
            ("for = 0", "never match"),
            ("period = '1s'", "needs `down`"),
            ("period = '1s'\ndown = '2s'", "less than `period`"),
            ("nth = 1\nevery = 2", "exclude"),
            ("qpn = 1\nflow = 1", "one of the two"),
        ] {
            let e = error(&format!("[[rule]]\nname = 'a'\ntype = 'drop'\n{text}"));
            assert!(e.contains(needle), "{e}");
        }
        let ring = "[[rule]]\nname='a'\ntype='drop'\narmed_by='b'\n[[rule]]\nname='b'\ntype='drop'\narmed_by='a'";
        assert!(error(ring).contains("in a ring"));
    }

    #[test]
    fn hostile_files() {
        let many = "[[rule]]\ntype = 'drop'\n".repeat(65);
        assert!(error(&many).contains("65 rules"));
        assert!(error(&format!("x = {}1{}", "[".repeat(5000), "]".repeat(5000))).starts_with("s.toml:"));
        let e = error("[[rule]]\ntype = \"\\u001b[2J\"");
        assert!(!e.contains('\x1b'), "{e:?}");
        let e = error("\"\\u001b[31m\" = 1");
        assert!(!e.contains('\x1b'), "{e:?}");
        for v in [
            "99999999999999999999999999999999999999999",
            "1979-05-27",
            "{}",
            "[]",
            "nan",
            "-inf",
            "''",
            "\"\\u0000\"",
            "true",
        ] {
            for (key, _) in RULE_KEYS {
                let kind = OWN_KEYS.iter().find(|(k, _)| k == key).map_or("drop", |(_, t)| t[0]);
                let t = if *key == "type" { String::new() } else { format!("type = '{kind}'\n") };
                // no panic, and an error with a place if there is one
                if let Err(e) = Scenario::parse("s.toml", &format!("[[rule]]\n{t}{key} = {v}")) {
                    assert!(e.at.is_some() && e.wrong.message.len() < 400, "{key} = {v}: {e}");
                }
            }
        }
    }

    #[test]
    fn burst_defaults_are_netems() {
        let s = Scenario::parse("x", "[[rule]]\ntype='drop'\nburst = { p = '1%' }").unwrap();
        assert_eq!(s.rules[0].burst, Some(Burst { p: 0.01, r: 0.99, bad: 1.0, good: 0.0 }));
    }
}
