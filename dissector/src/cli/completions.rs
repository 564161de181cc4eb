//! `roce-dissect completions`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap_complete::Shell;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which shell.
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "roce-dissect", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
