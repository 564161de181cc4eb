//! `roce-dissect fields`.

use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;

use serde::Serialize;

use crate::dissect::registry;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// As an array of JSON objects.
    #[arg(long)]
    json: bool,
    /// Only fields whose name contains one of these.
    words: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    #[serde(rename = "type")]
    ty: &'static str,
    title: &'static str,
    help: &'static str,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted = |name: &str| args.words.is_empty() || args.words.iter().any(|w| name.contains(w.as_str()));
    let rows: Vec<Row> = registry::all()
        .filter(|f| wanted(f.name))
        .map(|f| Row { name: f.name, ty: f.ty.name(), title: f.title, help: f.help })
        .collect();
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        serde_json::to_writer_pretty(&mut out, &rows)?;
        writeln!(out)?;
    } else {
        let name = rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
        for r in &rows {
            writeln!(out, "{:name$}  {:8}  {}", r.name, r.ty, r.help)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
