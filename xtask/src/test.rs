//! `cargo xtask test`: set up, then every test of the workspace.

use std::process::ExitCode;

use anyhow::Result;

use crate::run::{cargo, status};
use crate::setup;

/// What to run.
#[derive(clap::Args)]
pub struct Args {
    /// Handed on to `cargo test`, for instance `-p dissector` or a test's name.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Runs it; the exit code is cargo's.
pub fn main(args: &Args) -> Result<ExitCode> {
    setup::ensure(setup::For::Tests)?;
    let mut c = cargo();
    c.arg("test");
    if args.rest.is_empty() {
        // the programs first: tests run them
        let built = status(cargo().args(["build", "--workspace", "--bins"]))?;
        if !built.success() {
            return Ok(ExitCode::FAILURE);
        }
        c.args(["--workspace", "--no-fail-fast"]);
    } else {
        c.args(&args.rest);
    }
    Ok(if status(&mut c)?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
