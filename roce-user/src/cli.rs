//! The command line of roce-top.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dissector::wire::ROCE_UDP_PORT;

use crate::say;
use crate::units::Throughput;

/// Which RoCEv2 queue pairs run on this wire now, how fast, and which of them suffer.
#[derive(Debug, Parser)]
#[command(
    name = "roce-top",
    version,
    args_conflicts_with_subcommands = true,
    allow_negative_numbers = true,
    after_help = "\
Examples:
  roce-top -i eth0                             the live view; ? shows the keys
  roce-top -i eth0 -i eth1 -w seen.pcapng      two interfaces, headers recorded
  roce-top -i eth0 --batch -n 5                five reports of a second each, as text
  roce-top -i eth0 --batch --json | jq .totals one JSON object a line, until Ctrl-C
  roce-top -r trace.pcapng --speed max         the same view over a capture
  roce-top -i eth0 --prometheus 127.0.0.1:9879 metrics beside the view (or beside --batch)
  roce-top doctor -i eth0                      can RoCE be seen here, and if not, why

Hardware RDMA cards move RoCE past the kernel: roce-top sees it on a mirror port, in a Linux box on the path, on
veth and virtio, and with soft-RoCE. `roce-top doctor` says what an interface can show.

Exit: 0 after a quiet end, 2 for usage, unreadable input or when it cannot attach; doctor: 0, or 3 if RoCE cannot
be seen."
)]
pub struct Cli {
    /// Another question than "who talks".
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to watch and how to show it.
    #[command(flatten)]
    pub top: Top,
}

/// Other questions.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Can RoCE be seen here, and if not, why? Exit 0 if it can, 3 if not.
    Doctor(Doctor),
}

/// `roce-top doctor`.
#[derive(Clone, Debug, Args)]
pub struct Doctor {
    /// Interface to look at; all if none is named.
    #[arg(short, long = "interface", value_name = "IF")]
    pub interface: Vec<String>,
    /// As JSON: an array of {check, interface, status, says, advice}.
    #[arg(long)]
    pub json: bool,
}

/// The view itself.
#[derive(Clone, Debug, Args)]
pub struct Top {
    /// Interface to watch; may be given several times.
    #[arg(short, long = "interface", value_name = "IF", conflicts_with = "read")]
    pub interface: Vec<String>,
    /// Show a capture instead (pcap, pcapng, also packed; - is standard input).
    #[arg(short, long, value_name = "FILE")]
    pub read: Option<PathBuf>,
    /// With -r: how fast, as a multiple of its own pace, or "max" [default: 1, with --batch max].
    #[arg(long, value_name = "N|max", requires = "read", value_parser = speed)]
    pub speed: Option<Speed>,
    /// Seconds between reports.
    #[arg(short, long = "delay", value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub delay: Duration,
    /// How the XDP program is attached.
    #[arg(long, value_name = "MODE", default_value = "auto")]
    pub xdp_mode: XdpMode,
    /// Watch what comes in only.
    #[arg(long)]
    pub no_egress: bool,
    /// UDP destination port of RoCEv2.
    #[arg(long, value_name = "PORT", default_value_t = ROCE_UDP_PORT)]
    pub port: u16,
    /// Flows that are kept apart; more are counted in the totals alone.
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pub max_flows: u32,
    /// Record what is seen (pcapng): the first bytes of each packet.
    #[arg(short, long, value_name = "FILE.pcapng", conflicts_with = "read")]
    pub write: Option<PathBuf>,
    /// With -w: bytes of each packet.
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=464))]
    pub snaplen: u32,
    /// No screen: a report an interval, as text.
    #[arg(short, long)]
    pub batch: bool,
    /// With --batch: end after so many reports.
    #[arg(short = 'n', long, value_name = "N", requires = "batch", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// With --batch: one JSON object a line.
    #[arg(long, requires = "batch")]
    pub json: bool,
    /// With --batch: list the busiest flows only.
    #[arg(long, value_name = "N", requires = "batch")]
    pub top: Option<usize>,
    /// Show only flows that pass this filter, e.g. "src == 10.0.0.1 && nak > 0".
    #[arg(short = 'Y', long, value_name = "FILTER", default_value = "")]
    pub filter: String,
    /// Throughput in bits or bytes.
    #[arg(long, value_name = "UNIT", default_value = "bits")]
    pub units: Throughput,
    /// Serve metrics to Prometheus at http://ADDR:PORT/metrics (and /healthz).
    #[arg(long, value_name = "ADDR:PORT")]
    pub prometheus: Option<SocketAddr>,
    /// With --prometheus: flows that get series of their own, the busiest first; the rest is summed.
    #[arg(long, value_name = "N", requires = "prometheus", default_value_t = 100)]
    pub prometheus_flows: usize,
}

/// How the XDP program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum XdpMode {
    /// In the driver if it can, else behind the socket buffer.
    Auto,
    /// In the driver, or not at all.
    Driver,
    /// Behind the socket buffer (generic), slower, on every driver.
    Skb,
}

/// Pace of a capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// A multiple of its own.
    Times(f64),
    /// As fast as it can be read.
    Max,
}

fn speed(text: &str) -> Result<Speed, String> {
    if text.eq_ignore_ascii_case("max") {
        return Ok(Speed::Max);
    }
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(n) if (1e-6..=1e9).contains(&n) => Ok(Speed::Times(n)),
        _ => Err("a number from 0.000001 to 1000000000, or max".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.trim_end_matches('s').parse::<f64>() {
        Ok(s) if (0.01..=86_400.0).contains(&s) => Ok(Duration::from_secs_f64(s)),
        _ => Err("seconds from 0.01 to 86400".to_owned()),
    }
}

impl Cli {
    /// Reads the arguments. Help and version are printed; a mistake is one line on standard error and exit 2.
    pub fn read() -> Result<Self, std::process::ExitCode> {
        match Self::try_parse() {
            Ok(mut cli) => {
                // named twice is watched once
                let mut named = std::collections::HashSet::new();
                cli.top.interface.retain(|i| named.insert(i.clone()));
                Ok(cli)
            }
            Err(e) if e.use_stderr() => {
                say!("{}", one_line(&e.to_string()));
                Err(std::process::ExitCode::from(2))
            }
            Err(e) => {
                // a closed pipe is no mistake
                let _ = e.print();
                Err(std::process::ExitCode::SUCCESS)
            }
        }
    }
}

/// The message, its particulars and its tip, without usage, on one line.
fn one_line(message: &str) -> String {
    let said: Vec<&str> = message
        .lines()
        .map(str::trim)
        .take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more information"))
        .filter(|l| !l.is_empty())
        .collect();
    let text = said.join(" ");
    format!("{} (--help lists the options)", text.strip_prefix("error: ").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn paces_and_delays() {
        assert_eq!(speed("max"), Ok(Speed::Max));
        assert_eq!(speed("2.5"), Ok(Speed::Times(2.5)));
        assert_eq!(speed("10x"), Ok(Speed::Times(10.0)));
        for bad in ["0", "-1", "NaN", "inf", "", "1e-300", "1e300"] {
            assert!(speed(bad).is_err(), "{bad}");
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("0.2"), Ok(Duration::from_millis(200)));
    }

    #[test]
    fn a_mistake_is_one_line() {
        for args in [
            vec!["roce-top", "--nonsense"],
            vec!["roce-top", "-d", "x"],
            vec!["roce-top", "-n", "1"],
            vec!["roce-top", "doctr"],
        ] {
            let said = one_line(&Cli::try_parse_from(&args).expect_err("a mistake").to_string());
            assert!(!said.contains('\n') && said.len() > 10, "{said}");
        }
    }
}
