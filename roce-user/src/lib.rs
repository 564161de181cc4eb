//! User side: loader, snapshots, views, fault engine.

pub mod aggregate;
pub mod attach;
pub mod batch;
pub mod columns;
pub mod error;
pub mod fault;
pub mod iface;
pub mod load;
pub mod maps;
pub mod ring;
pub mod snapshot;
pub mod source;
pub mod stop;
pub mod tui;
pub mod units;
