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

pub mod keys;

mod expect;
mod rules;
mod value;

use std::fmt::{self, Write as _};
use std::ops::Range as Span;
use std::path::Path;
use std::time::Duration;

use roce_ebpf::abi::fault::MAX_RULES;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use self::value::{At, bad, duration, get, integer, known, table, text, want};
use super::rule::Rule;
use super::words::{self, Wrong, quoted};

pub use self::expect::Expect;
pub use self::rules::direction;

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

fn scenario(doc: &DeTable<'_>, span: &Span<usize>, stem: String) -> Result<Scenario, At> {
    // Lumina's file calls its list of events so
    known(doc, "the scenario", keys::TOP)?;
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
        let r = rules::rule(t, v, s.rules.len())?;
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
        s.expect = expect::expect(table(v, "expect")?, &s.rules)?;
    }
    Ok(s)
}

fn run(t: &DeTable<'_>) -> Result<Run, At> {
    known(t, "[run]", keys::RUN)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::rule::{Burst, Fault};
    use crate::fault::words::Range;

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
            for key in keys::RULE.iter().map(|k| k.word) {
                let kind = rules::OWN_KEYS.iter().find(|(k, _)| *k == key).map_or("drop", |(_, t)| t[0]);
                let t = if key == "type" { String::new() } else { format!("type = '{kind}'\n") };
                // no panic, and an error with a place if there is one
                if let Err(e) = Scenario::parse("s.toml", &format!("[[rule]]\n{t}{key} = {v}")) {
                    assert!(e.at.is_some() && e.wrong.message.len() < 400, "{key} = {v}: {e}");
                }
            }
        }
    }

    #[test]
    fn files_of_other_systems_and_of_nobodys_making() {
        let good = "[[rule]]\ntype = 'drop'\n";
        // as editors of Windows leave it
        let crlf = Scenario::parse("s.toml", "\u{feff}[[rule]]\r\ntype = 'drop'\r\nqpn = 5\r\n").unwrap();
        assert_eq!(crlf.rules[0].qpn, Some(5));
        assert!(error("\u{feff}[[rule]]\r\ntype = 'drop'\r\nqpm = 5\r\n").starts_with("s.toml:3:1: "));
        // the same key twice
        assert!(error("[[rule]]\ntype = 'drop'\ntype = 'ce'\n").starts_with("s.toml:3:1: "));
        assert!(error(&format!("{good}[run]\n[run]\n")).starts_with("s.toml:4:"));
        let many = good.repeat(10_000);
        assert!(error(&many).contains("10000 rules, and the kernel program takes 64"));
        for v in ["-1", "-9223372036854775808", "1.5", "1e400", "0x", "1_", "+-1", "\"-1\""] {
            for key in ["qpn", "flow", "message", "nth", "every", "count", "dscp"] {
                let e = error(&format!("{good}{key} = {v}"));
                assert!(e.starts_with("s.toml:3:") && e.lines().count() == 1, "{key} = {v}: {e}");
            }
        }
        for (text, needle) in [
            ("probability = -0.1", "between 0 and 1"),
            ("probability = 1.1", "between 0 and 1"),
            ("probability = '200%'", "between 0 and 1"),
            ("rate = '-5/s'", "rate"),
            ("after = -1", "after"),
            ("after = 1e30", "after"),
            ("for = 'for ever'", "for"),
            ("psn = 16777216", "PSN"),
            ("qpn = 0x1000000", "queue pair"),
            ("size = '9-4'", "size"),
            ("burst = { p = 2 }", "between 0 and 1"),
            ("burst = { q = 0.1 }", "unknown key in burst"),
        ] {
            let e = error(&format!("{good}{text}"));
            assert!(e.contains(needle) && e.starts_with("s.toml:3:"), "{text}: {e}");
        }
        let dir = std::env::temp_dir().join(format!("roce-fault-hostile-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let open = |bytes: &[u8]| {
            let path = dir.join("s.toml");
            std::fs::write(&path, bytes).unwrap();
            Scenario::open(&path).unwrap_err().to_string()
        };
        assert!(open(b"[[rule]]\ntype = 'dr\0op'\n").contains("s.toml:2:"));
        assert!(open(b"\0\0\0\0").contains("s.toml:1:"));
        assert!(open(b"[[rule]]\ntype = '\xff'\n").ends_with("is not UTF-8 text (byte 17)"));
        assert!(open(&vec![b'#'; 2 << 20]).contains("are no scenario"));
        assert!(open(b"").contains("no [[rule]]"));
        assert!(Scenario::open(&dir).unwrap_err().to_string().contains("is a directory"));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn burst_defaults_are_netems() {
        let s = Scenario::parse("x", "[[rule]]\ntype='drop'\nburst = { p = '1%' }").unwrap();
        assert_eq!(s.rules[0].burst, Some(Burst { p: 0.01, r: 0.99, bad: 1.0, good: 0.0 }));
    }
}
