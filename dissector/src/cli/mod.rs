//! Arguments of roce-dissect, one file a subcommand, and how it ends: 0 done, 1 findings (`check`), 2 usage or input
//! that could not be read, with one line on stderr. A closed pipe ends quietly.

pub mod analyse;
pub mod check;
mod completions;
mod fields;
pub mod flows;
mod man;
mod progress;
pub mod session;
pub mod show;
pub mod stats;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  roce-dissect trace.pcap                                    one line a packet
  roce-dissect trace.pcap -Y 'infiniband.bth.opcode == \"RC Acknowledge\" && roce.nak'
  roce-dissect -r trace.pcap -V -c 5                         all fields of five packets
  roce-dissect trace.pcap -T fields -e frame.number -e infiniband.bth.psn -E header=y
  roce-dissect trace.pcap -Y 'roce.icrc.status == bad' -w bad.pcapng
  zstdcat trace.zst | roce-dissect -                         standard input (packed or not)
  roce-dissect check trace.pcap                              what went wrong, with the packets that prove it

A file that is named like a subcommand is read with -r.";

/// See and explain RoCEv2 traffic in a capture.
#[derive(Debug, Parser)]
#[command(
    name = "roce-dissect",
    version,
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = EXAMPLES,
    max_term_width = 120
)]
pub struct Cli {
    /// Print the version.
    #[arg(short = 'v', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    show: show::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    Flows(flows::Args),
    Check(check::Args),
    Stats(stats::Args),
    /// List every field: name, type, meaning.
    Fields(fields::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Print the manual page.
    Man(man::Args),
}

/// The definitions of all arguments, for completions and the manual page.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    // this process is ours: large files are read in place, where the system can
    crate::capture::mapped::enable();
    run(std::env::args_os())
}

/// Runs the program.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match command().try_get_matches_from(args).and_then(|m| Cli::from_arg_matches(&m)) {
        Ok(cli) => cli,
        Err(e) if !e.use_stderr() => {
            // help and version; a closed pipe is nobody's fault
            let _ = e.print();
            return ExitCode::SUCCESS;
        }
        Err(e) => return usage(&e),
    };
    let result = match cli.command {
        None => show::run(&cli.show),
        Some(Command::Flows(a)) => a.run(&mut io::BufWriter::new(io::stdout().lock())).map(|()| ExitCode::SUCCESS),
        Some(Command::Check(a)) => a.run(&mut io::BufWriter::new(io::stdout().lock())),
        Some(Command::Stats(a)) => a.run(&mut io::BufWriter::new(io::stdout().lock())).map(|()| ExitCode::SUCCESS),
        Some(Command::Fields(a)) => fields::run(&a),
        Some(Command::Completions(a)) => completions::run(&a),
        Some(Command::Man(a)) => man::run(&a),
    };
    match result {
        Ok(code) => code,
        Err(e) if is_closed_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            // one line, save for a filter with the mark below it
            let text = sentence(&e);
            let lines: Vec<_> = text.lines().map(crate::output::value::printable).collect();
            eprintln!("roce-dissect: {}", lines.join("\n"));
            ExitCode::from(2)
        }
    }
}

/// Whether an error only says that the reader of our output went away.
pub fn is_closed_pipe(e: &anyhow::Error) -> bool {
    let kind = |c: &(dyn std::error::Error + 'static)| {
        // what serialises JSON hides the error of the operating system
        let json = || c.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        c.downcast_ref::<io::Error>().map(io::Error::kind).or_else(json)
    };
    e.chain().any(|c| kind(c) == Some(io::ErrorKind::BrokenPipe))
}

/// An error and its causes in one line; a cause whose words are there already is not repeated.
fn sentence(e: &anyhow::Error) -> String {
    e.chain().fold(String::new(), |text, cause| {
        let cause = cause.to_string();
        match text {
            t if t.is_empty() => cause,
            t if t.contains(&cause) => t,
            t => format!("{t}: {cause}"),
        }
    })
}

/// Letters of tshark that this program has not, and what to do instead.
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &["-z"],
        "statistics have commands of their own: `roce-dissect stats FILE`, `flows FILE`, `check FILE`, with --json",
    ),
    (
        &["-i", "-f", "-D", "-L", "-p", "-I", "-B", "-s", "-a", "-b"],
        "captures are read here; `roce-top -i IF` shows live traffic",
    ),
    (&["-j", "-J"], "-e FIELD picks the fields of -T json"),
    (
        &["--disable-protocol", "--enable-protocol", "--only-protocols", "--enable-heuristic"],
        "every protocol is always on and nothing is guessed; --decode-as says what RoCE carries",
    ),
    (&["--no-duplicate-keys"], "-T ek and -e FIELD with -T json print the values of one name as a list"),
    (&["--export-objects", "-U"], "only packets are written (-w)"),
    (&["-G"], "`roce-dissect fields` lists the fields"),
    (&["-X", "-K", "-H", "-C"], "no scripts, keys, host names or profiles change what is shown here"),
];

/// One line about wrong arguments.
fn usage(e: &clap::Error) -> ExitCode {
    if let Some(clap::error::ContextValue::String(argument)) = e.get(clap::error::ContextKind::InvalidArg)
        && e.kind() == clap::error::ErrorKind::UnknownArgument
        && let Some((_, instead)) = INSTEAD.iter().find(|(letters, _)| letters.contains(&argument.as_str()))
    {
        eprintln!("roce-dissect: there is no {argument}: {instead}");
        return ExitCode::from(2);
    }
    let text = e.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    // the message proper ends at the first empty line
    let message: Vec<&str> = text.lines().take_while(|l| !l.trim().is_empty()).map(str::trim).collect();
    let message = crate::output::value::printable(&message.join(" ")).into_owned();
    eprintln!("roce-dissect: {message}; `roce-dissect --help` explains");
    ExitCode::from(2)
}
