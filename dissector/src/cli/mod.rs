//! The program: one file a subcommand.

pub mod analyse;
pub mod flows;
