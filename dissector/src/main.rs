//! The program roce-dissect.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dissector::cli::flows;

#[derive(Debug, Parser)]
#[command(name = "roce-dissect", version, about = "See and explain RoCEv2 traffic in captures")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Flows(flows::Args),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let out = &mut std::io::BufWriter::new(std::io::stdout().lock());
    let done = match &arguments.command {
        Command::Flows(a) => a.run(out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.chain().any(|c| c.downcast_ref::<std::io::Error>().is_some_and(closed)) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("roce-dissect: {e:#}");
            ExitCode::from(2)
        }
    }
}

fn closed(e: &std::io::Error) -> bool {
    e.kind() == std::io::ErrorKind::BrokenPipe
}
