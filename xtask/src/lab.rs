//! `cargo xtask lab`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Arguments after `lab`.
pub fn main(_args: &[String]) -> Result<ExitCode> {
    bail!("the lab has not been taken over into this workspace")
}
