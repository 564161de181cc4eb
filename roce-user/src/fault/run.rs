//! A run: attach, start the command, watch, detach, judge.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dissector::capture::WriteError;
use dissector::wire::ROCE_UDP_PORT;

use super::command::Running;
use super::engine::{Engine, Injection, Setup};
use super::judge::{COMMAND_STATUS, Evidence, Witness, judge};
use super::lock::{Holder, Lock, LockError};
use super::report::{self, Report};
use super::rule::Direction;
use super::scenario::{DEFAULT_LIMIT, Expect, Scenario};
use super::words::{quoted, show_duration};
use super::{login, rule::Fault};
use crate::attach::{Mode, Tc};
use crate::error::Error;
use crate::iface::Interface;
use crate::stop::Stop;

/// Injections that are kept for the report; those beyond are counted.
const MOST_LISTED: usize = 100_000;
/// Bytes of whole packets that are kept for the capture file; of those beyond the headers are written.
const MOST_FRAME_BYTES: usize = 1 << 28;
/// Exit status of a run that a signal ended before its command did: there is no verdict (what a shell makes of SIGINT).
const INTERRUPTED: u8 = 130;
/// How long one look at the rings waits.
const TICK: Duration = Duration::from_millis(10);
/// How often it is checked that the interfaces are still there.
const LOOK: Duration = Duration::from_millis(500);

/// What the command line adds to a scenario.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Interfaces.
    pub interfaces: Vec<String>,
    /// Time limit; the scenario's, else the default.
    pub limit: Option<Duration>,
    /// XDP mode.
    pub mode: Mode,
    /// How TC programs are attached.
    pub tc: Tc,
    /// Count and report, change nothing.
    pub dry: bool,
    /// Also on the interface that carries the login.
    pub force: bool,
    /// Where the pcapng goes.
    pub pcap: Option<PathBuf>,
    /// Standard output is ours for data.
    pub quiet_stdout: bool,
}

/// Why a run did not come to a verdict.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The words do not fit together.
    #[error("{0}")]
    Usage(String),
    /// The kernel side is not to be had.
    #[error(transparent)]
    Kernel(#[from] Error),
    /// Another roce-fault has the interface.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The interface carries the operator's login.
    #[error(
        "{interface} carries your login ({address}): a fault there can cut you off; use another interface, or --force"
    )]
    Login {
        /// Interface.
        interface: String,
        /// Its address.
        address: std::net::IpAddr,
    },
}

impl RunError {
    /// The exit status that says so.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Kernel(_) | Self::Lock(_) | Self::Login { .. } => 3,
        }
    }
}

/// A run that came to its end.
#[derive(Debug)]
pub struct Outcome {
    /// All there is to say.
    pub report: Report,
    /// Exit status.
    pub code: u8,
    /// Why the packets could not be written, if they could not.
    pub pcap: Option<WriteError>,
}

/// Whether any expectation needs the packets that no rule acts on.
fn needs_witness(e: &Expect) -> bool {
    e.retransmission_within.is_some()
        || e.nak_within.is_some()
        || e.cnp_within.is_some()
        || e.no_message_lost
        || e.go_back_n
}

/// Runs a scenario.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    stop: &Stop,
    talk: &mut dyn FnMut(&str),
) -> Result<Outcome, RunError> {
    let interfaces = interfaces(scenario, options)?;
    let name = |n: usize| scenario.rules.get(n).map_or_else(String::new, |r| quoted(&r.name));
    let limit = options.limit.or(scenario.run.limit).unwrap_or(DEFAULT_LIMIT);
    let watch = needs_witness(&scenario.expect) && !options.dry;
    let setup = Setup {
        rules: &scenario.rules,
        seed: scenario.seed,
        port: scenario.port,
        dry: options.dry,
        watch,
        frames: options.pcap.is_some(),
        mode: options.mode,
        tc: options.tc,
    };
    let mut engine = Engine::new(&setup, &interfaces)?;
    let mut locks = Vec::new();
    for i in &interfaces {
        let holder = Holder {
            pid: std::process::id(),
            scenario: scenario.name.clone(),
            interface: i.name.clone(),
            rules: scenario.rules.iter().map(|r| format!("{}: {}", r.name, r.sentence(name))).collect(),
        };
        locks.push(Lock::take(i, &holder)?);
    }
    let mut how = Vec::new();
    for i in &interfaces {
        how.push(format!("{} ({})", i.name, engine.attach(i)?));
        if !i.up {
            talk(&format!("{} is down (`ip link set {} up`)", i.name, i.name));
        }
    }
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let begun = Instant::now();
    engine.arm(limit)?;
    let mut command = match scenario.run.command.as_slice() {
        [] => None,
        argv => match Running::start(argv, options.quiet_stdout) {
            Ok(r) => Some(r),
            Err(e) => {
                let program = argv.first().map_or("", String::as_str);
                return Err(RunError::Usage(format!("cannot run {}: {e}", quoted(program))));
            }
        },
    };
    talk(&format!("active on {} for at most {}", how.join(", "), show_duration(limit)));
    let port = scenario.port.unwrap_or(ROCE_UDP_PORT);
    let mut seen = Collected {
        injections: Vec::new(),
        omitted: 0,
        frames: HashMap::new(),
        frame_bytes: 0,
        witness: watch.then(|| Witness::new(port, &scenario.rules)),
    };
    let deadline = begun + limit;
    let mut ended = None;
    let mut interrupted = false;
    let mut look = begun + LOOK;
    let mut gone = Vec::new();
    loop {
        seen.drain(&mut engine);
        if let Some(r) = &mut command
            && let Some(e) = r.poll().map_err(|e| Error::system("cannot wait for the command", e))?
        {
            ended = Some(e);
            command = None;
            break;
        }
        if stop.is_set() {
            interrupted = true;
            break;
        }
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now);
        if left.is_zero() {
            break;
        }
        if now >= look {
            look = now + LOOK;
            for i in &interfaces {
                if !gone.contains(&i.index) && Interface::named(&i.name).map_or(0, |n| n.index) != i.index {
                    gone.push(i.index);
                    talk(&format!("{} is gone: no rule acts there any more", i.name));
                }
            }
        }
        engine.wait(left.min(TICK))?;
    }
    let interrupted = interrupted && command.is_some();
    if let Some(r) = command {
        ended = Some(r.kill().map_err(|e| Error::system("cannot end the command", e))?);
    }
    engine.disarm()?;
    let duration_s = begun.elapsed().as_secs_f64();
    seen.drain(&mut engine);
    let tallies = engine.tallies()?;
    let counters = engine.counters()?;
    let passed = engine.passed()?;
    drop(engine);
    drop(locks);

    let checks = judge(
        &scenario.expect,
        Evidence {
            rules: &scenario.rules,
            tallies: &tallies,
            counters,
            roce_packets: passed.roce,
            witness: seen.witness.as_mut(),
            command: ended.as_ref(),
            dry: options.dry,
            interrupted,
        },
    );
    let all = checks.iter().all(|c| c.ok);
    let code = match &ended {
        // whoever interrupts a command wants no verdict
        Some(_) if interrupted => INTERRUPTED,
        _ if checks.iter().any(|c| !c.ok && c.name != COMMAND_STATUS) => 1,
        Some(c) if scenario.expect.exit.is_none() => u8::try_from(c.code()).unwrap_or(1),
        _ => 0,
    };
    let pcap = options.pcap.as_ref().and_then(|path| {
        let names: Vec<_> = interfaces.iter().map(|i| (i.index, i.name.clone())).collect();
        report::pcap(path, &seen.injections, &seen.frames, &scenario.rules, &names).err()
    });
    let interface_name =
        |index: u32| interfaces.iter().find(|i| i.index == index).map_or_else(|| index.to_string(), |i| i.name.clone());
    let report = Report {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        interfaces: interfaces.iter().map(|i| i.name.clone()).collect(),
        started,
        duration_s,
        interrupted,
        dry_run: options.dry,
        passed: all && !interrupted,
        checks,
        rules: report::rule_rows(&scenario.rules, &tallies),
        command: ended,
        packets: passed.packets,
        roce_packets: passed.roce,
        events_lost: counters.events_lost,
        injections_omitted: seen.omitted,
        injections: seen.injections.iter().map(|i| report::injection_row(i, &scenario.rules, interface_name)).collect(),
    };
    Ok(Outcome { report, code, pcap })
}

struct Collected {
    injections: Vec<Injection>,
    omitted: u64,
    /// By number of the injection.
    frames: HashMap<u64, Vec<u8>>,
    frame_bytes: usize,
    witness: Option<Witness>,
}

impl Collected {
    fn drain(&mut self, engine: &mut Engine) {
        while let Some(i) = engine.next_injection() {
            if let Some(w) = &mut self.witness {
                w.hit(&i);
            }
            if self.injections.len() < MOST_LISTED { self.injections.push(i) } else { self.omitted += 1 }
        }
        while let Some(w) = engine.next_frame() {
            if self.frame_bytes < MOST_FRAME_BYTES {
                self.frame_bytes += w.bytes.len();
                self.frames.insert(w.serial, w.bytes);
            }
        }
        if let Some(w) = &mut self.witness {
            // bounded: a flood must not keep us from looking at the command
            for _ in 0..65_536 {
                let Some(s) = engine.next_seen() else { break };
                w.push(&s);
            }
        }
    }
}

fn interfaces(scenario: &Scenario, options: &Options) -> Result<Vec<Interface>, RunError> {
    let mut out: Vec<Interface> = Vec::new();
    for name in &options.interfaces {
        if !out.iter().any(|i| i.name == *name) {
            out.push(Interface::named(name)?);
        }
    }
    for r in &scenario.rules {
        if let Some(wanted) = &r.interface
            && !out.iter().any(|i| i.name == *wanted)
        {
            return Err(RunError::Usage(format!(
                "rule {} is about interface {wanted}, which is not among those given (-i {wanted})",
                quoted(&r.name)
            )));
        }
        if r.fault == Fault::Duplicate && r.direction != Direction::Out && options.mode == Mode::Driver {
            return Err(RunError::Usage(format!(
                "rule {} sends packets twice on their way in, which XDP cannot: leave --xdp-mode out",
                quoted(&r.name)
            )));
        }
    }
    if !options.force {
        let logins = login::addresses();
        for i in &out {
            if let Some(address) = login::is_on(&i.name, &logins) {
                return Err(RunError::Login { interface: i.name.clone(), address });
            }
        }
    }
    Ok(out)
}
