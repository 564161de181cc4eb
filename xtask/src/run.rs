//! Running other programs, and where things are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, ensure};

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository").to_path_buf()
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut c = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    c.current_dir(root());
    c
}

/// Where cargo puts programs of a profile ("debug" or "release").
pub fn built(profile: &str, name: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join(profile).join(name)
}

/// Runs a command with our own output; anything but success is an error.
pub fn must(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    ensure!(status.success(), "{} ended with {status}", words(command));
    Ok(())
}

/// Runs a command with our own output.
pub fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("cannot run {}", words(command)))
}

/// Whether a command runs and succeeds, silently.
pub fn works(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|o| o.status.success())
}

/// What a command prints, if it succeeds.
pub fn output(program: &str, args: &[&str]) -> Option<String> {
    let o = Command::new(program).args(args).output().ok()?;
    o.status.success().then(|| String::from_utf8_lossy(&o.stdout).into_owned())
}

/// A command as one would type it.
pub fn words(command: &Command) -> String {
    let mut s = command.get_program().to_string_lossy().into_owned();
    for a in command.get_args() {
        s.push(' ');
        s.push_str(&a.to_string_lossy());
    }
    s
}
