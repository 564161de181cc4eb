//! The program roce-fault: break exactly these packets, and say whether what uses them survived.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use roce_user::attach::{Mode, Tc};
use roce_user::fault::rule::{Fault, Per, Rule};
use roce_user::fault::run::{self, Options, Outcome};
use roce_user::fault::scenario::{self, Run, Scenario};
use roce_user::fault::words::{self, Opcodes, Prefix, PsnRange, Range, Wrong};
use roce_user::stop::Stop;

/// Break exactly these RoCE packets, and prove what happened.
///
/// Faults live in the kernel while this process lives and no longer. Packets that are not RoCE are never touched.
#[derive(Debug, Parser)]
#[command(name = "roce-fault", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  roce-fault check loss.toml                          say in plain words what a scenario does
  roce-fault run loss.toml -i eth1 --junit r.xml -- ./app --peer 10.0.0.2
  roce-fault once -i eth1 --drop --qp 0x11 --psn 104 --iter 1 -- ./app
  roce-fault once -i eth1 --ce --probability 1% --seed 7 --for 10s
  roce-fault once -i eth1 --corrupt icrc --opcode 'read-response last' --nth 3

Exit status: 0 all expectations held; 1 one failed, or nothing was injected; 2 usage or scenario error;
3 cannot attach here; 130 a signal ended the run before its command; else the command's own status, when it failed
and no expectation says otherwise.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Carry out a scenario: attach, run the command, watch, detach, judge.
    Run(RunArgs),
    /// Read a scenario and say what it does; attaches nothing.
    Check {
        /// Scenario file.
        scenario: PathBuf,
    },
    /// One rule from the command line.
    Once(Box<OnceArgs>),
}

#[derive(Debug, Args)]
struct Common {
    /// Interface; may be given several times.
    #[arg(short, long = "interface", value_name = "IF", required = true)]
    interface: Vec<String>,
    /// End after this time at the latest: 500ms, 30s, 2m (the scenario's limit, else 30 s). Counts from the moment at
    /// which the rules are active and the command starts; loading and attaching before it do not count.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    limit: Option<Duration>,
    /// Seed of the random decisions.
    #[arg(long, value_parser = number)]
    seed: Option<u64>,
    /// Write the report as JSON (- for standard output).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the expectations as JUnit XML (- for standard output).
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write each injected packet in full, with a comment that names its rule (pcapng).
    #[arg(long, value_name = "FILE.pcapng", value_parser = pcapng)]
    pcap: Option<PathBuf>,
    /// Count what would be hit, change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Also on the interface that carries your login.
    #[arg(long)]
    force: bool,
    /// Where incoming packets are taken.
    #[arg(long, value_enum, default_value = "auto")]
    xdp_mode: XdpMode,
    /// How TC programs are attached: by a link that ends with this process, or as a filter of a clsact qdisc, as on
    /// kernels before 6.6.
    #[arg(long, value_enum, default_value = "auto")]
    tc_mode: TcMode,
    /// Command to run meanwhile, and its arguments. It reads our standard input, but no terminal.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum XdpMode {
    Auto,
    Driver,
    Skb,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TcMode {
    Auto,
    Netlink,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
struct RunArgs {
    /// Scenario file.
    scenario: PathBuf,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
#[group(id = "what", required = true, multiple = false, args = ["drop", "ce", "corrupt", "clear_ect", "dscp_to", "truncate", "duplicate"])]
struct OnceArgs {
    #[command(flatten)]
    common: Common,
    /// Drop the packet.
    #[arg(long)]
    drop: bool,
    /// Mark it CE (if the sender takes part in ECN; see --any-ecn).
    #[arg(long)]
    ce: bool,
    /// Make only its ICRC wrong, or change a payload byte.
    #[arg(long, value_enum, value_name = "icrc|payload")]
    corrupt: Option<Corrupt>,
    /// Clear ECN (not-ECT).
    #[arg(long)]
    clear_ect: bool,
    /// Set its DSCP.
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(0..64))]
    dscp_to: Option<u8>,
    /// Cut the frame to so many bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(14..65536))]
    truncate: Option<u32>,
    /// Send it twice.
    #[arg(long)]
    duplicate: bool,
    /// With --ce: mark packets that are not ECT too.
    #[arg(long, requires = "ce")]
    any_ecn: bool,
    /// With --corrupt payload: which byte, from 0 [default: 0].
    #[arg(long, value_name = "N", requires = "corrupt")]
    offset: Option<u16>,
    /// in, out or both.
    #[arg(long, default_value = "both", value_parser = direction)]
    direction: roce_user::fault::rule::Direction,
    /// Source address or prefix.
    #[arg(long, value_name = "A", value_parser = prefix)]
    src: Option<Prefix>,
    /// Destination address or prefix.
    #[arg(long, value_name = "A", value_parser = prefix)]
    dst: Option<Prefix>,
    /// Destination queue pair, decimal or 0x….
    #[arg(long, value_name = "N", visible_alias = "qpn", value_parser = qpn)]
    qp: Option<u32>,
    /// The n-th flow seen.
    #[arg(long, value_name = "N", conflicts_with = "qp", value_parser = clap::value_parser!(u32).range(1..))]
    flow: Option<u32>,
    /// Opcode by name, class or number; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = opcode)]
    opcode: Vec<String>,
    /// RC, UC, UD ….
    #[arg(long, value_name = "NAME", value_parser = transport)]
    transport: Option<dissector::wire::Transport>,
    /// PSN: 104, 104-110; +4, +4-+9 from the flow's first.
    #[arg(long, value_name = "A[-B]", value_parser = psn, allow_hyphen_values = true)]
    psn: Option<PsnRange>,
    /// Which transmission of the PSN: 1 the first, 2 the first retransmission, 2- any retransmission.
    #[arg(long, value_name = "N", value_parser = iter)]
    iter: Option<Range>,
    /// DSCP.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    dscp: Option<u8>,
    /// Frame length in bytes: 1000, 64-128, >=1000.
    #[arg(long, value_name = "RANGE", value_parser = range)]
    size: Option<Range>,
    /// Only the n-th match of each flow.
    #[arg(long, value_name = "N", conflicts_with = "every", value_parser = clap::value_parser!(u64).range(1..))]
    nth: Option<u64>,
    /// Every n-th match of each flow.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// By chance: 0.01 or 1%.
    #[arg(long, value_name = "P", value_parser = chance)]
    probability: Option<f64>,
    /// At most so many of each flow.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Whose matches --nth, --every and --count count: each flow's own, or the rule's, over all flows.
    #[arg(long, value_enum, default_value = "flow")]
    per: PerArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Corrupt {
    Icrc,
    Payload,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PerArg {
    Flow,
    Rule,
}

fn say<T>(r: Result<T, Wrong>) -> Result<T, String> {
    r.map_err(|w| w.to_string())
}

fn duration(s: &str) -> Result<Duration, String> {
    // a bare number is seconds
    let d = match s.parse::<f64>() {
        Ok(v) => say(words::seconds(v))?,
        Err(_) => say(words::duration(s))?,
    };
    if d.is_zero() { Err("no time at all: the run would end before it begins".into()) } else { Ok(d) }
}

fn number(s: &str) -> Result<u64, String> {
    say(words::number(s))
}

fn qpn(s: &str) -> Result<u32, String> {
    say(words::number24("queue pair", s))
}

fn prefix(s: &str) -> Result<Prefix, String> {
    say(Prefix::parse(s))
}

fn psn(s: &str) -> Result<PsnRange, String> {
    say(PsnRange::parse(s))
}

fn range(s: &str) -> Result<Range, String> {
    say(Range::parse(s))
}

fn iter(s: &str) -> Result<Range, String> {
    let r = say(Range::parse(s))?;
    if r.max == 0 { Err("counts from 1: 1 is the first transmission".into()) } else { Ok(r) }
}

fn chance(s: &str) -> Result<f64, String> {
    say(words::chance(s))
}

fn direction(s: &str) -> Result<roce_user::fault::rule::Direction, String> {
    say(scenario::direction(s))
}

fn transport(s: &str) -> Result<dissector::wire::Transport, String> {
    say(words::transport(s))
}

fn opcode(s: &str) -> Result<String, String> {
    say(Opcodes::parse(s)).map(|_| s.to_owned())
}

fn pcapng(s: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(s);
    match path.extension().and_then(|e| e.to_str()) {
        Some("pcapng" | "ntar") => Ok(path),
        _ => Err("comments need pcapng: give a name that ends in .pcapng".into()),
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(c) => c,
        Err(e) if e.use_stderr() && e.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _closed = writeln!(io::stderr(), "roce-fault: {}", one_line(&e.to_string()));
            return ExitCode::from(2);
        }
        Err(e) => {
            let _closed = e.print();
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
    };
    let result = match cli.command {
        Command::Check { scenario } => check(&scenario),
        Command::Run(args) => {
            Scenario::open(&args.scenario).map_err(|e| (2, e.to_string())).and_then(|s| go(s, args.common))
        }
        Command::Once(args) => once(&args).map_err(|e| (2, e)).and_then(|s| go(s, args.common)),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err((code, message)) => {
            let _closed = writeln!(io::stderr(), "roce-fault: {message}");
            ExitCode::from(code)
        }
    }
}

/// The sentences of an argument error, without the usage lines.
fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let until = text.find("\n\nUsage:").or_else(|| text.find("\n\nFor more")).unwrap_or(text.len());
    let words: Vec<_> = text.get(..until).unwrap_or(text).split_whitespace().collect();
    let escaped: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    format!("{escaped}; see roce-fault --help")
}

/// Exit status, or exit status and the sentence.
type Ended = Result<u8, (u8, String)>;

fn out(text: &str) -> Result<(), (u8, String)> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // whoever read it went away
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err((2, format!("cannot write to standard output: {e}"))),
        Ok(()) => Ok(()),
    }
}

fn check(path: &Path) -> Ended {
    let s = Scenario::open(path).map_err(|e| (2, e.to_string()))?;
    out(&s.explain())?;
    Ok(0)
}

fn once(args: &OnceArgs) -> Result<Scenario, String> {
    if args.any_ecn && !args.ce {
        return Err("--any-ecn goes with --ce".into());
    }
    if args.offset.is_some() && !matches!(args.corrupt, Some(Corrupt::Payload)) {
        return Err("--offset goes with --corrupt payload".into());
    }
    let fault = match args {
        OnceArgs { ce: true, .. } => Fault::MarkCe { any: args.any_ecn, queue: None },
        OnceArgs { corrupt: Some(Corrupt::Icrc), .. } => Fault::FailIcrc,
        OnceArgs { corrupt: Some(Corrupt::Payload), .. } => {
            Fault::Corrupt { offset: args.offset.unwrap_or(0).into(), xor: 1 }
        }
        OnceArgs { clear_ect: true, .. } => Fault::ClearEct,
        OnceArgs { dscp_to: Some(d), .. } => Fault::SetDscp(*d),
        OnceArgs { truncate: Some(n), .. } => Fault::Truncate(*n),
        OnceArgs { duplicate: true, .. } => Fault::Duplicate,
        _ => Fault::Drop,
    };
    let opcodes = match args.opcode.as_slice() {
        [] => None,
        list => Some(say(Opcodes::parse_all(list.iter().map(String::as_str)))?),
    };
    let rule = Rule {
        direction: args.direction,
        src: args.src,
        dst: args.dst,
        qpn: args.qp,
        flow: args.flow,
        transport: args.transport,
        opcodes,
        psn: args.psn,
        iter: args.iter,
        dscp: args.dscp,
        size: args.size,
        nth: args.nth,
        every: args.every,
        probability: args.probability,
        count: args.count,
        per: match args.per {
            PerArg::Flow => Per::Flow,
            PerArg::Rule => Per::Rule,
        },
        ..Rule::new("once", fault)
    };
    if (0..=255).all(|b| !rule.takes(b)) {
        return Err("no opcode of this transport is among those given, so nothing could match".into());
    }
    Ok(Scenario { name: "once".into(), rules: vec![rule], ..Scenario::default() })
}

fn go(mut scenario: Scenario, common: Common) -> Ended {
    if let Some(seed) = common.seed {
        scenario.seed = seed;
    }
    if !common.command.is_empty() {
        scenario.run = Run { command: common.command, ..scenario.run };
    }
    let to_stdout = |p: &Option<PathBuf>| p.as_deref() == Some(Path::new("-"));
    if to_stdout(&common.json) && to_stdout(&common.junit) {
        return Err((2, "--json and --junit cannot both go to standard output".into()));
    }
    let machine = to_stdout(&common.json) || to_stdout(&common.junit);
    // what cannot be written is found out before the run, not after
    let mut made = Made::default();
    for path in [&common.json, &common.junit, &common.pcap].into_iter().flatten() {
        if path.as_os_str() != "-" {
            made.open(path).map_err(|e| (2, format!("cannot write {}: {e}", path.display())))?;
        }
    }
    let options = Options {
        interfaces: common.interface,
        limit: common.limit,
        mode: match common.xdp_mode {
            XdpMode::Auto => Mode::Auto,
            XdpMode::Driver => Mode::Driver,
            XdpMode::Skb => Mode::Skb,
        },
        tc: match common.tc_mode {
            TcMode::Auto => Tc::Auto,
            TcMode::Netlink => Tc::Netlink,
        },
        dry: common.dry_run,
        force: common.force,
        pcap: common.pcap,
        quiet_stdout: true,
    };
    let stop = Stop::default();
    stop.on_signals(&[], |_| {}).map_err(|e| (3, format!("cannot take signals: {e}")))?;
    let mut talk = |line: &str| {
        let _closed = writeln!(io::stderr(), "roce-fault: {line}");
    };
    let Outcome { report, code, pcap } =
        run::run(&scenario, &options, &stop, &mut talk).map_err(|e| (e.code(), e.to_string()))?;
    made.keep();
    let write = |path: &Path, text: &str| {
        if path.as_os_str() == "-" {
            return out(text);
        }
        std::fs::write(path, text).map_err(|e| (2, format!("cannot write {}: {e}", path.display())))
    };
    // one that cannot be written does not take the others with it
    let mut written = Vec::new();
    if !machine {
        written.push(out(&report.text()));
    }
    if let Some(path) = &common.json {
        let text = serde_json::to_string_pretty(&report).map_err(|e| (2, format!("cannot write JSON: {e}")));
        written.push(text.and_then(|t| write(path, &(t + "\n"))));
    }
    if let Some(path) = &common.junit {
        let text = report.junit().map_err(|e| (2, format!("cannot write JUnit: {e}")));
        written.push(text.and_then(|t| write(path, &t)));
    }
    if let Some(e) = pcap {
        written.push(Err((2, e.to_string())));
    }
    written.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(code)
}

/// Files that were made to see whether they can be written; those of a run that never began are taken away again.
#[derive(Default)]
struct Made(Vec<PathBuf>);

impl Made {
    fn open(&mut self, path: &Path) -> io::Result<()> {
        let there = path.exists();
        std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if !there {
            self.0.push(path.to_owned());
        }
        Ok(())
    }

    fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in &self.0 {
            let _gone = std::fs::remove_file(path);
        }
    }
}
