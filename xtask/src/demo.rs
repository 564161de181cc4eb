//! `cargo xtask demo`: roce-top on live RoCEv2 traffic, in network namespaces of its own.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::run::{built, cargo, must, status};
use crate::setup;

/// How to show it.
#[derive(clap::Args)]
pub struct Args {
    /// No screen: five reports, then the end.
    #[arg(long)]
    batch: bool,
    /// With --batch: one JSON object a report.
    #[arg(long, requires = "batch")]
    json: bool,
    /// Handed on to roce-top.
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds and runs it; the exit code is roce-top's.
pub fn main(args: &Args) -> Result<ExitCode> {
    setup::ensure(setup::For::Demo)?;
    must(cargo().args(["build", "-p", "roce-user", "-p", "roce-tests", "--bin", "roce-top", "--bin", "roce-demo"]))?;
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "the demonstration makes network namespaces and attaches programs: run it as root (sudo -E cargo xtask demo)"
        );
    }
    // the one who started us may be killed: then we end, and with us all the rest
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM)?;
    let mut c = Command::new(built("debug", "roce-demo"));
    c.arg("--").arg(built("debug", "roce-top")).args(["-i", "b0"]);
    if args.batch {
        c.args(["--batch", "-n", "5", "-d", "1"]);
        if args.json {
            c.arg("--json");
        }
    }
    c.args(&args.rest);
    let s = status(&mut c)?;
    Ok(s.code().and_then(|c| u8::try_from(c).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
