//! Analysis per queue pair, sans-IO.

pub mod row;
