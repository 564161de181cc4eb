//! User side: loader, snapshots, views, fault engine.

pub mod aggregate;
pub mod attach;
pub mod batch;
pub mod cli;
pub mod columns;
pub mod doctor;
pub mod error;
pub mod ethtool;
pub mod export;
pub mod fault;
pub mod iface;
pub mod live;
pub mod load;
pub mod maps;
pub mod matcher;
pub mod privileges;
pub mod rdma;
pub mod record;
pub mod replay;
pub mod ring;
pub mod snapshot;
pub mod source;
pub mod stop;
pub mod tui;
pub mod units;
