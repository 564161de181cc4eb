//! Runs a command beside live RoCEv2 traffic: two network namespaces joined by a veth pair, the captures
//! of the repository played through them, the command in the second one.
//!
//! The namespaces have no names and end with this process; so does the command. Nothing is left behind,
//! also after SIGKILL.

use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::Parser;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use roce_tests::netns::Pair;
use roce_tests::play;

/// Play captured RoCEv2 traffic through a veth pair of its own, and run COMMAND beside it.
#[derive(Parser)]
struct Args {
    /// MTU of the veth pair.
    #[arg(long, default_value_t = 4500)]
    mtu: u32,
    /// What to run in the namespace whose interface is b0.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("demo: {e:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    // the one who started us may be killed: then we end, and with us all the rest
    set_pdeathsig(Signal::SIGTERM).context("cannot ask to end with the parent")?;
    let args = Args::parse();
    let pair = Pair::with_mtu(args.mtu)?;
    let Some((program, rest)) = args.command.split_first() else { bail!("no command") };
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let player = s.spawn(|| play::mix(&pair, &stop));
        let status = (|| {
            // this thread stays in the namespace: the kernel ends the command when the thread that
            // started it ends
            let ns = std::fs::File::open(pair.b.path()).context("cannot open the namespace")?;
            nix::sched::setns(&ns, nix::sched::CloneFlags::CLONE_NEWNET).context("cannot enter the namespace")?;
            let mut command = Command::new(program);
            command.args(rest);
            // SAFETY: between fork and exec only one system call is made.
            unsafe {
                command.pre_exec(|| set_pdeathsig(Signal::SIGKILL).map_err(std::io::Error::from));
            }
            command.status().with_context(|| format!("cannot run {program}"))
        })();
        stop.store(true, Ordering::Relaxed);
        let sent = match player.join() {
            Ok(sent) => sent?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let status = status?;
        if let Some(signal) = status.signal() {
            if std::io::stdin().is_terminal() {
                // whoever was killed could not restore the terminal
                Command::new("stty").arg("sane").stdin(Stdio::inherit()).status().ok();
            }
            eprintln!("demo: {program} was ended by signal {signal}");
            return Ok(ExitCode::from(1));
        }
        eprintln!("demo: played {} frames to b0 and {} from it; nothing is left behind", sent.to_b, sent.to_a);
        Ok(status.code().and_then(|c| u8::try_from(c).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
    })
}
