//! `cargo xtask bench`: each target of the design is a line, measured as a ratio within one run.
//!
//! A bench is a program of the tests crate, `bench-NAME`, that prints one JSON array of
//! `{name, value, unit, target, ok}`; this command builds it in release, runs it and prints the table.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::run::{built, cargo, must, root};
use crate::setup;

/// Every bench there is.
const ALL: &[&str] = &["xdp", "dissect", "flows", "top", "soak", "fault"];

/// What to measure.
#[derive(clap::Args)]
pub struct Args {
    /// Which ones; all if none is named.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(ALL))]
    names: Vec<String>,
    /// One JSON array instead of the table.
    #[arg(long)]
    json: bool,
}

/// One measured line.
#[derive(Debug, Deserialize, Serialize)]
struct Line {
    name: String,
    value: f64,
    unit: String,
    /// The promise, a number or words; null for figures that stand beside it.
    target: serde_json::Value,
    /// Whether it is kept; null where nothing was promised.
    ok: Option<bool>,
}

/// Runs them; the exit code is 1 if a target is missed.
pub fn main(args: &Args) -> Result<ExitCode> {
    setup::ensure(setup::For::Tests)?;
    let names: Vec<&str> =
        if args.names.is_empty() { ALL.to_vec() } else { args.names.iter().map(String::as_str).collect() };
    let mut lines: Vec<Line> = Vec::new();
    for name in names {
        let bin = format!("bench-{name}");
        must(cargo().args(["build", "--release", "--quiet", "-p", "roce-tests", "--bin", &bin]))?;
        // what a bench runs beside itself
        must(cargo().args(["build", "--release", "--quiet", "-p", "dissector", "-p", "roce-user"]))?;
        let out = Command::new(built("release", &bin))
            .current_dir(root())
            .stderr(std::process::Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {bin}"))?;
        ensure!(out.status.success(), "{bin} ended with {}", out.status);
        let part: Vec<Line> =
            serde_json::from_slice(&out.stdout).with_context(|| format!("{bin} did not print its lines"))?;
        if !args.json {
            table(name, &part);
        }
        lines.extend(part);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&lines)?);
    }
    let missed = lines.iter().any(|l| l.ok == Some(false));
    Ok(ExitCode::from(u8::from(missed)))
}

fn table(name: &str, lines: &[Line]) {
    println!("{name}");
    for l in lines {
        let target = match &l.target {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(s) => s.clone(),
            other => other.to_string(),
        };
        let verdict = match l.ok {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "",
        };
        println!("  {:<58} {:>12.2} {:<10} {:<28} {verdict}", l.name, l.value, l.unit, target);
    }
}
