//! An RDMA application for tests of roce-fault: does work over reliable connections with the peer at the other end of a
//! pair, and fails if it cannot be done. See `roce_tests::rc`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use roce_tests::raw::RawSocket;
use roce_tests::rc::{Work, request};

#[derive(Parser)]
struct Args {
    #[arg(long, default_value = "a0")]
    interface: String,
    #[arg(long, default_value_t = 3)]
    qps: u32,
    #[arg(long, default_value_t = 10)]
    writes: u32,
    #[arg(long, default_value_t = 0)]
    reads: u32,
    #[arg(long, default_value_t = 100)]
    timeout_ms: u64,
    #[arg(long, default_value_t = 7)]
    retries: u32,
    #[arg(long, default_value_t = 0)]
    at_least_ms: u64,
    #[arg(long)]
    connect: bool,
}

fn main() -> ExitCode {
    let a = Args::parse();
    let work = Work {
        qps: a.qps,
        writes: a.writes,
        reads: a.reads,
        timeout: Duration::from_millis(a.timeout_ms),
        retries: a.retries,
        at_least: Duration::from_millis(a.at_least_ms),
        connect: a.connect,
    };
    match RawSocket::open(&a.interface).and_then(|s| request(&s, &work)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("requester: {e}");
            ExitCode::FAILURE
        }
    }
}
