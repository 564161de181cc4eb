//! Developer commands: `cargo xtask setup | test | demo | bench | lab | golden`.

mod bench;
mod demo;
mod lab;
mod run;
mod setup;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer commands of roce-top.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask demo             roce-top on live RoCEv2 traffic in network namespaces of its own
  cargo xtask demo --batch     the same without a screen: five reports, then the end
  cargo xtask test             install what is missing, then run every test
  cargo xtask bench dissect    measure what the design promises, as ratios within one run";

#[derive(Subcommand)]
enum Command {
    /// Install what is missing for building and testing (without root: print the commands).
    Setup {
        /// Only say what is missing.
        #[arg(long)]
        check: bool,
    },
    /// Set up, then run every test of the workspace.
    Test(test::Args),
    /// Set up, then show roce-top on live traffic.
    Demo(demo::Args),
    /// Measure; each target of the design is a line.
    Bench(bench::Args),
    /// A real RoCE stack in two emulated machines.
    Lab {
        /// build, run SCENARIO, shell; see `cargo xtask lab --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Setup { check } => setup::main(check),
        Command::Test(args) => test::main(&args),
        Command::Demo(args) => demo::main(&args),
        Command::Bench(args) => bench::main(&args),
        Command::Lab { args } => lab::main(&args),
    };
    match done {
        Ok(code) => code,
        Err(e) => {
            eprintln!("xtask: {e:#}");
            ExitCode::from(2)
        }
    }
}
