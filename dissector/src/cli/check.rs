//! `roce-dissect check`: what went wrong, on which queue pair, proved by which packets.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use super::analyse::{Input, Read};
use crate::flow::finding::{self, Finding, Severity};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
#[command(
    about = "What went wrong: findings with severity, explanation and the packets that prove them",
    after_help = "Exit status: 0 nothing found at or above --fail-on, 1 something found, 2 the file could not be read to its end.\n\nExamples:\n  roce-dissect check capture.pcap\n  roce-dissect check capture.pcap --json | jq -r '.[] | [.severity, .code, .title] | @tsv'\n  roce-dissect check capture.pcap --fail-on error\n  roce-dissect -r capture.pcap -Y 'ip.addr == 10.0.0.1' -w - | roce-dissect check -"
)]
pub struct Args {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// An array of objects
    #[arg(long)]
    pub json: bool,
    /// Lowest severity that makes the exit status 1
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t = FailOn::Warning)]
    pub fail_on: FailOn,
}

/// Lowest severity that counts as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Something failed
    Error,
    /// Costs performance, or looks wrong
    Warning,
    /// Worth knowing
    Note,
}

impl FailOn {
    const fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Warning => Severity::Warning,
            Self::Note => Severity::Note,
        }
    }
}

impl Args {
    /// Reads and prints; 1 if something was found. What could be read of a broken file is printed before its
    /// error is returned.
    pub fn run(&self, out: &mut impl Write) -> anyhow::Result<ExitCode> {
        let Read { analyzer, error } = self.input.read(&mut ())?;
        let findings = finding::check(&analyzer);
        if self.json {
            json(out, &findings)?;
        } else {
            let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            text(out, &findings, colour)?;
        }
        out.flush()?;
        if let Some(e) = error {
            return Err(e.into());
        }
        let found = findings.iter().any(|f| f.severity >= self.fail_on.severity());
        Ok(if found { ExitCode::from(1) } else { ExitCode::SUCCESS })
    }
}

fn json(out: &mut impl Write, findings: &[Finding]) -> io::Result<()> {
    let mut first = true;
    out.write_all(b"[")?;
    for f in findings {
        out.write_all(if first { b"\n" } else { b",\n" })?;
        first = false;
        serde_json::to_writer(&mut *out, f)?;
    }
    out.write_all(if first { b"]\n" } else { b"\n]\n" })
}

fn text(out: &mut impl Write, findings: &[Finding], colour: bool) -> io::Result<()> {
    let mut order: Vec<&Finding> = findings.iter().collect();
    // the worst first; the order of the rules within
    order.sort_by_key(|f| std::cmp::Reverse(f.severity));
    for f in order {
        let severity = match (colour, f.severity) {
            (true, Severity::Error) => "\x1b[1;31merror\x1b[0m".to_owned(),
            (true, Severity::Warning) => "\x1b[1;33mwarning\x1b[0m".to_owned(),
            (true, Severity::Note) => "\x1b[36mnote\x1b[0m".to_owned(),
            (false, s) => s.name().to_owned(),
        };
        writeln!(out, "{severity}[{}] {}", f.code, f.title)?;
        for line in wrap(&f.detail, 96) {
            writeln!(out, "    {line}")?;
        }
        if let Some(id) = f.flow {
            write!(out, "    flow {id}")?;
        }
        if !f.packets.is_empty() {
            let list = f.packets.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            write!(out, "{}packets {list}", if f.flow.is_some() { "; " } else { "    " })?;
        }
        if f.flow.is_some() || !f.packets.is_empty() {
            writeln!(out)?;
        }
    }
    let n = |s: Severity| findings.iter().filter(|f| f.severity == s).count();
    let (e, w, t) = (n(Severity::Error), n(Severity::Warning), n(Severity::Note));
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    writeln!(out, "{}, {}, {}", plural(e, "error"), plural(w, "warning"), plural(t, "note"))
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(l) if l.is_empty() => l.push_str(word),
            Some(l) if l.len() + 1 + word.len() <= width => {
                l.push(' ');
                l.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
