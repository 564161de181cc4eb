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
pub mod kernel_log;
pub mod live;
pub mod live_findings;
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

/// A line of roce-top's on standard error. Unlike `eprintln!` it does not panic when nobody reads that any more.
#[macro_export]
macro_rules! say {
    ($($word:tt)*) => {{
        use std::io::Write as _;
        // there is no other place to complain at
        let _ = writeln!(std::io::stderr(), "roce-top: {}", format_args!($($word)*));
    }};
}
