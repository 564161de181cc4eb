//! `cargo xtask lab`: the Linux kernel's own RoCE stack (rdma_rxe) on both ends, in two emulated machines.
//!
//! `tests/lab/README.md` says what the machines hold and how a scenario is written. Here: when to build them,
//! how to run them, and that they always end.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::termios;

use crate::run::{built, cargo, must, output, root, status};
use crate::setup;

/// Programs of ours that the machines get.
const PROGRAMS: [&str; 3] = ["roce-top", "roce-fault", "roce-dissect"];
/// Programs that the host needs, and the Debian package of each.
const NEEDS: [(&str, &str); 10] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("cpio", "cpio"),
    ("zstd", "zstd"),
    ("xz", "xz-utils"),
    ("depmod", "kmod"),
    ("gcc", "gcc"),
    ("python3", "python3"),
    ("setpriv", "util-linux"),
];

/// A real RoCE stack in two emulated machines.
#[derive(Parser)]
#[command(name = "cargo xtask lab", bin_name = "cargo xtask lab", after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Lab,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask lab run core                 roce-top, roce-fault and roce-dissect against rdma_rxe, on both kernels
  cargo xtask lab run all                  the same at length, and NVMe-oF, NFS and iSER down to their commands
  cargo xtask lab run loss --out /tmp/x    one scenario; its captures, logs and counters end up in /tmp/x
  cargo xtask lab shell --kernel 6.12      a shell in machine a, with our programs; machine b is its peer
  cargo xtask lab list                     the scenarios";

#[derive(Subcommand)]
enum Lab {
    /// Fetch Debian's kernels and tools, and make the machines of them (kept until something changes).
    Build {
        /// Build again although nothing has changed; newer kernels of the two releases are found this way.
        #[arg(long)]
        fresh: bool,
    },
    /// Run scenarios in both machines, bring back captures, reports and logs, and judge them.
    Run {
        /// Names of scenarios (tests/lab/scenarios/NAME.sh). core: what CI runs; all: every one that judges our programs, at length.
        #[arg(required = true)]
        scenarios: Vec<String>,
        /// Only with this kernel; otherwise with those that the scenario names.
        #[arg(long)]
        kernel: Option<String>,
        /// Folder for what comes back [default: target/lab/runs/SCENARIO-KERNEL].
        #[arg(long)]
        out: Option<PathBuf>,
        /// End both machines after so many seconds [default: what the scenario says, or 600].
        #[arg(long)]
        timeout: Option<u64>,
        /// Only the steps whose names fit, as the shell matches them: 'fault_*'.
        #[arg(long)]
        only: Option<String>,
        /// Take our programs from the debug build, which is there sooner.
        #[arg(long)]
        debug: bool,
    },
    /// A shell in machine a.
    Shell {
        /// Kernel: 6.1 or 6.12.
        #[arg(long, default_value = "6.12")]
        kernel: String,
        /// MTU of eth0 in both machines.
        #[arg(long, default_value_t = 1500)]
        mtu: u32,
        /// Leave our programs out, and so do not build them.
        #[arg(long, conflicts_with = "join")]
        no_programs: bool,
        /// In a second terminal: the console of machine b of the shell that runs.
        #[arg(long)]
        join: bool,
    },
    /// Show the scenarios.
    List,
}

/// The lab cannot be had on this host; what it lacks stands in the words.
#[derive(Debug)]
struct Unavailable(String);

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// Arguments after `lab`. Exit code 0: all that was judged holds; 1: something does not; 3: the lab cannot be had here.
pub fn main(args: &[String]) -> Result<ExitCode> {
    match command(args) {
        Err(e) if e.is::<Unavailable>() => {
            eprintln!("xtask: {e:#}");
            Ok(ExitCode::from(3))
        }
        other => other,
    }
}

fn command(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse_from(std::iter::once("cargo xtask lab".to_owned()).chain(args.iter().cloned()));
    match args.command {
        Lab::Build { fresh } => {
            let _lock = lock()?;
            build(fresh)?;
            Ok(ExitCode::SUCCESS)
        }
        Lab::Run { scenarios, kernel, out, timeout, only, debug } => {
            ensure!(
                out.is_none() || scenarios.len() == 1,
                "--out takes one scenario's results; {} are named",
                scenarios.len()
            );
            let mut named = Vec::new();
            for n in &scenarios {
                match n.as_str() {
                    "core" => named.extend(all_scenarios()?.into_iter().filter(|s| s.core)),
                    // core is a selection of the others
                    "all" => named.extend(all_scenarios()?.into_iter().filter(|s| s.programs && !s.core)),
                    _ => named.push(Scenario::read(n)?),
                }
            }
            let scenarios = named;
            let how = How { timeout, only, profile: if debug { "debug" } else { "release" } };
            let _lock = lock()?;
            build(false)?;
            if scenarios.iter().any(|s| s.programs) {
                programs(how.profile)?;
            }
            let mut good = true;
            let began = Instant::now();
            let mut runs = 0;
            for s in &scenarios {
                let kernels = kernel.clone().map_or_else(|| s.kernels.clone(), |k| vec![k]);
                for k in &kernels {
                    let to = match &out {
                        Some(o) if kernels.len() > 1 => o.join(k),
                        Some(o) => o.clone(),
                        None => work().join("runs").join(format!("{}-{k}", s.name)),
                    };
                    runs += 1;
                    match run(s, k, &to, &how)? {
                        Outcome::Good => {}
                        Outcome::Red => good = false,
                        Outcome::Interrupted(signal) => {
                            eprintln!("lab: interrupted; both machines have ended");
                            return Ok(ExitCode::from(128 + signal));
                        }
                    }
                }
            }
            let verdict = if good { "everything holds" } else { "NOT everything holds" };
            eprintln!("lab: {runs} runs in {:.0} s, {verdict}", began.elapsed().as_secs_f64());
            Ok(ExitCode::from(u8::from(!good)))
        }
        Lab::Shell { join: true, .. } => join(),
        Lab::Shell { kernel, mtu, no_programs, join: false } => {
            ensure!(
                std::io::stdin().is_terminal(),
                "a shell needs a terminal; `cargo xtask lab run SCENARIO` runs without one"
            );
            let _lock = lock()?;
            build(false)?;
            if !no_programs {
                programs("release")?;
            }
            shell(&kernel, mtu, !no_programs)
        }
        Lab::List => {
            for s in all_scenarios()? {
                let core = if s.core { " (core)" } else { "" };
                println!("{:<8} kernel {:<9} {}{core}", s.name, s.kernels.join(", "), s.about);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn sources() -> PathBuf {
    root().join("tests/lab")
}

/// Where the machines and results live: beside what cargo builds.
fn work() -> PathBuf {
    built("lab", "")
}

fn all_scenarios() -> Result<Vec<Scenario>> {
    let folder = sources().join("scenarios");
    let mut all: Vec<_> = fs::read_dir(&folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "sh"))
        .filter_map(|p| p.file_stem().map(|n| n.to_string_lossy().into_owned()))
        .collect();
    all.sort();
    all.iter().map(|n| Scenario::read(n)).collect()
}

/// What the head of a scenario's file says.
struct Scenario {
    name: String,
    path: PathBuf,
    about: String,
    kernels: Vec<String>,
    mtu: u32,
    /// MiB of each machine.
    memory: u32,
    /// Seconds until both machines are ended.
    timeout: u64,
    /// Whether our own programs take part.
    programs: bool,
    /// Whether `core` means it too.
    core: bool,
}

impl Scenario {
    /// The first line of a scenario is a comment that says what it is about; a line `# lab: WORD=VALUE …` holds what differs
    /// from kernel=6.1 mtu=1500 memory=768 timeout=600.
    fn read(name: &str) -> Result<Self> {
        let path = sources().join("scenarios").join(format!("{name}.sh"));
        let text = fs::read_to_string(&path).with_context(|| {
            format!("no scenario {name}; `cargo xtask lab list` shows them (looked for {})", path.display())
        })?;
        let about = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']).to_owned();
        let mut s = Self {
            name: name.to_owned(),
            path,
            about,
            kernels: vec!["6.1".into()],
            mtu: 1500,
            memory: 768,
            timeout: 600,
            programs: false,
            core: false,
        };
        for word in text.lines().filter_map(|l| l.strip_prefix("# lab:")).flat_map(str::split_whitespace) {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let number =
                || value.parse::<u32>().with_context(|| format!("{}: {word} wants a number", s.path.display()));
            match key {
                "kernel" => s.kernels = value.split(',').map(str::to_owned).collect(),
                "mtu" => s.mtu = number()?,
                "memory" => s.memory = number()?,
                "timeout" => s.timeout = u64::from(number()?),
                "programs" => s.programs = true,
                "core" => s.core = true,
                _ => bail!("{}: unknown word {word:?} after `# lab:`", s.path.display()),
            }
        }
        Ok(s)
    }
}

/// One pair of machines at a time: two pairs on a small host disturb each other's retransmission timers.
fn lock() -> Result<File> {
    fs::create_dir_all(work()).with_context(|| format!("cannot make {}", work().display()))?;
    let path = work().join("lock");
    let file = File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
    if file.try_lock().is_err() {
        eprintln!("lab: another lab runs from this folder; waiting for its end");
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

/// Makes the machines, unless what they are made of is the same as last time.
fn build(fresh: bool) -> Result<()> {
    let missing: Vec<_> = NEEDS.iter().filter(|(program, _)| !on_path(program)).collect();
    if missing.iter().any(|(program, _)| *program == "apt-get" || *program == "dpkg-deb") {
        bail!(Unavailable(
            "the lab's machines are made of Debian packages, and this host has no apt; run it on Debian or Ubuntu"
                .into()
        ));
    }
    if !missing.is_empty() {
        let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
        let command = format!("apt-get install --no-install-recommends -y {}", packages.join(" "));
        if !nix::unistd::geteuid().is_root() {
            bail!(Unavailable(format!(
                "the lab needs {} on this host; install them with: sudo {command}",
                packages.join(", ")
            )));
        }
        eprintln!("lab: {command}");
        let install = || {
            must(
                Command::new("apt-get")
                    .args(["-o", setup::LOCK, "install", "--no-install-recommends", "-y", "-q"])
                    .args(&packages)
                    .env("DEBIAN_FRONTEND", "noninteractive")
                    .stdout(Stdio::null()),
            )
        };
        // a fresh host has no package lists yet
        if install().is_err() {
            must(Command::new("apt-get").arg("update").stdout(Stdio::null())).and_then(|()| install()).map_err(
                |e| {
                    Unavailable(format!(
                        "the lab needs {} on this host, and they cannot be installed: {e:#}",
                        packages.join(", ")
                    ))
                },
            )?;
        }
    }
    let mut content = DefaultHasher::new();
    for name in ["build.sh", "unpack-kernel.py", "vm-init", "rxelab.c", "rdsecho.c"] {
        let path = sources().join(name);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?.hash(&mut content);
    }
    let stamp = format!("{:016x}\n", content.finish());
    let path = work().join("boot/stamp");
    if !fresh && fs::read_to_string(&path).is_ok_and(|s| s == stamp) {
        return Ok(());
    }
    let began = Instant::now();
    let made = status(Command::new("bash").arg(sources().join("build.sh")).arg(work()).stdout(Stdio::null()))?;
    match made.code() {
        Some(0) => {}
        Some(3) => {
            bail!(Unavailable("Debian's packages, of which the lab's machines are made, cannot be fetched".into()))
        }
        _ => bail!("the lab's machines could not be made: build.sh ended with {made}"),
    }
    fs::write(&path, stamp).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("lab: machines made in {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|p| {
        std::env::split_paths(&p).chain(["/usr/sbin".into(), "/sbin".into()]).any(|d| d.join(program).is_file())
    })
}

/// Builds our programs and lays them out with the shared libraries and the loader that they want, since the machines'
/// C library may be older than this host's.
fn programs(profile: &str) -> Result<()> {
    eprintln!("lab: building {}", PROGRAMS.join(", "));
    let mut build = cargo();
    if profile == "release" {
        build.args(["build", "-q", "-p", "roce-user", "-p", "dissector", "--bins", "--release"]);
    } else {
        // the words of `cargo xtask test`, so that what that built is taken
        build.args(["build", "-q", "--workspace", "--bins"]);
    }
    must(&mut build)?;
    let to = work().join("programs");
    let _ = fs::remove_dir_all(&to);
    for folder in ["bin", "real", "lib"] {
        fs::create_dir_all(to.join(folder)).with_context(|| format!("cannot make {}", to.display()))?;
    }
    for name in PROGRAMS {
        let from = built(profile, name);
        let real = to.join("real").join(name);
        must(Command::new("strip").arg("-o").arg(&real).arg(&from))?;
        let ldd = output("ldd", &[&from.to_string_lossy()])
            .with_context(|| format!("ldd cannot say what {} needs", from.display()))?;
        for library in ldd.split_whitespace().filter(|w| w.starts_with('/')) {
            let library = Path::new(library);
            let file = library.file_name().context("a library without a name")?;
            fs::copy(library, to.join("lib").join(file))
                .with_context(|| format!("cannot copy {}", library.display()))?;
        }
        let script = to.join("bin").join(name);
        fs::write(
            &script,
            format!(
                "#!/bin/bash\nP=${{0%/bin/*}}\nexec $P/lib/ld-linux-x86-64.so.2 --library-path $P/lib --argv0 {name} $P/real/{name} \"$@\"\n"
            ),
        )?;
        must(Command::new("chmod").arg("755").arg(&script))?;
    }
    must(
        Command::new("sh")
            .args(["-c", "find programs -print0 | cpio --null -o -H newc --quiet > programs.cpio"])
            .current_dir(work()),
    )
    .context("cannot pack the programs")
}

/// The folder that both machines see as /share, filled for one run and gone after it.
struct Share(PathBuf);

impl Share {
    fn new() -> Result<Self> {
        let share = Self(work().join("share"));
        let _ = fs::remove_dir_all(&share.0);
        fs::create_dir_all(share.0.join("out"))?;
        must(Command::new("cp").arg("-r").arg(sources()).arg(share.0.join("lab")))?;
        Ok(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(initramfs());
    }
}

/// What the machines of a run unpack.
fn initramfs() -> PathBuf {
    work().join("initramfs")
}

/// While this lives, an interrupt ends nobody at once: it is asked for, so that machines and folders end first.
struct Interrupts {
    signals: SignalFd,
    before: SigSet,
}

impl Interrupts {
    fn new() -> Result<Self> {
        let before = SigSet::thread_get_mask().context("cannot read the signal mask")?;
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().context("cannot hold signals back")?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .context("cannot wait for signals")?;
        Ok(Self { signals, before })
    }

    /// The number of a signal that came.
    fn came(&self) -> Option<u8> {
        self.signals.read_signal().ok().flatten().and_then(|s| u8::try_from(s.ssi_signo).ok())
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

/// A machine; dropping it ends it.
struct Machine {
    role: char,
    qemu: Child,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// What both machines have in common.
struct Pair<'a> {
    kernel: &'a str,
    mtu: u32,
    memory: u32,
    share: &'a Path,
    /// Whether the machines hold our programs.
    programs: bool,
    shell: bool,
}

impl Pair<'_> {
    fn start(&self) -> Result<[Machine; 2]> {
        let boot = work().join("boot");
        ensure!(
            boot.join(format!("vmlinux-{}", self.kernel)).exists(),
            "no kernel {}; there are 6.1 and 6.12",
            self.kernel
        );
        // an initramfs is a row of archives: that of the kernel, and our programs
        let initrd = initramfs();
        let mut whole = File::create(&initrd).with_context(|| format!("cannot make {}", initrd.display()))?;
        for part in [boot.join(format!("initramfs-{}", self.kernel)), work().join("programs.cpio")] {
            if self.programs || part.starts_with(&boot) {
                let mut from = File::open(&part).with_context(|| format!("cannot open {}", part.display()))?;
                std::io::copy(&mut from, &mut whole).with_context(|| format!("cannot write {}", initrd.display()))?;
            }
        }
        // the cable: a stream loses nothing, however far behind a machine is
        let (a, b) = UnixStream::pair().context("cannot make a pair of sockets")?;
        Ok([self.machine('a', &initrd, &a)?, self.machine('b', &initrd, &b)?])
    }

    fn machine(&self, role: char, initrd: &Path, cable: &UnixStream) -> Result<Machine> {
        let boot = work().join("boot");
        let share = self.share.display();
        let console = match role {
            'a' if self.shell => "mon:stdio".to_owned(),
            _ if self.shell => format!("unix:{},server=on,wait=off", other_console().display()),
            _ => format!("file:{share}/out/console-{role}.txt"),
        };
        // software emulation: it works where the host is a virtual machine itself
        let mut c = Command::new("setpriv");
        // the kernel ends QEMU when we end, however that happens
        c.args(["--pdeathsig", "KILL", "--", "qemu-system-x86_64"]);
        c.args(["-M", "pc", "-m", &self.memory.to_string(), "-smp", "1"]);
        c.args(["-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max"]);
        c.args(["-nodefaults", "-no-reboot", "-display", "none", "-monitor", "none", "-serial", &console]);
        c.arg("-kernel").arg(boot.join(format!("vmlinux-{}", self.kernel)));
        c.arg("-initrd").arg(initrd);
        // no_timer_check: on a busy host the kernel finds its timer too slow and stops
        c.args([
            "-append",
            &format!(
                "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off random.trust_cpu=on role={role} labmtu={}{}",
                self.mtu,
                if self.shell { " labshell" } else { "" },
            ),
        ]);
        c.args(["-netdev", &format!("socket,id=n0,fd={}", cable.as_raw_fd())]);
        c.args(["-device", &format!("virtio-net-pci,netdev=n0,mac=52:54:00:00:00:0{role},mrg_rxbuf=on")]);
        c.args(["-device", "virtio-rng-pci"]);
        c.args(["-virtfs", &format!("local,path={share},mount_tag=lab,security_model=none,id=lab")]);
        if !(self.shell && role == 'a') {
            c.stdin(Stdio::null());
        }
        // this end of the cable is for this child alone
        fcntl(cable, FcntlArg::F_SETFD(FdFlag::empty())).context("cannot hand a socket on")?;
        let qemu = c.spawn().with_context(|| format!("cannot start machine {role}"))?;
        fcntl(cable, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).context("cannot keep a socket")?;
        Ok(Machine { role, qemu })
    }
}

/// How to run scenarios.
struct How {
    /// Seconds, instead of what the scenario says.
    timeout: Option<u64>,
    /// Pattern of the steps that are wanted.
    only: Option<String>,
    /// Which build of our programs.
    profile: &'static str,
}

/// How a scenario ended.
enum Outcome {
    /// Everything in it was as it should.
    Good,
    Red,
    /// By a signal of this number.
    Interrupted(u8),
}

/// Runs one scenario with one kernel.
fn run(s: &Scenario, kernel: &str, to: &Path, how: &How) -> Result<Outcome> {
    let interrupts = Interrupts::new()?;
    let shared = Share::new()?;
    let share = &shared.0;
    fs::copy(&s.path, share.join("scenario.sh"))?;
    if let Some(only) = &how.only {
        fs::write(share.join("only"), only)?;
    }
    let limit = Duration::from_secs(how.timeout.unwrap_or(s.timeout));
    let began = Instant::now();
    eprintln!("lab: {} with kernel {kernel}", s.name);
    let mut machines =
        Pair { kernel, mtu: s.mtu, memory: s.memory, share, programs: s.programs, shell: false }.start()?;
    let mut steps = Steps::new(share.join("out/log-a.txt"), began);
    let mut late = false;
    // when one machine has ended, the other is at its end too
    let mut one_ended: Option<Instant> = None;
    loop {
        let mut running = 0;
        for m in &mut machines {
            running +=
                u32::from(m.qemu.try_wait().with_context(|| format!("cannot wait for machine {}", m.role))?.is_none());
        }
        steps.show();
        if running == 0 {
            break;
        }
        if running == 1 {
            one_ended.get_or_insert_with(Instant::now);
        }
        if let Some(signal) = interrupts.came() {
            steps.end();
            return Ok(Outcome::Interrupted(signal));
        }
        if began.elapsed() > limit || one_ended.is_some_and(|t| t.elapsed() > Duration::from_mins(1)) {
            late = true;
            break;
        }
        // the pace of looking, not of anything that is waited for
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(machines);
    steps.end();
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    must(Command::new("cp").arg("-r").arg(format!("{}/.", share.join("out").display())).arg(to))?;
    drop(shared);
    drop(interrupts);
    // the signs that the machines gave each other
    for sign in fs::read_dir(to)?.filter_map(Result::ok).filter(|e| e.file_name().to_string_lossy().starts_with('.')) {
        let _ = fs::remove_file(sign.path());
    }
    let took = began.elapsed().as_secs_f64();
    let ended = ["done-a", "done-b"].iter().all(|f| to.join(f).exists());
    if late || !ended {
        eprintln!(
            "lab: {} with kernel {kernel} did not come to its end in {took:.0} s; console-a.txt, log-a.txt and their like in {} say how far it came",
            s.name,
            to.display()
        );
        return Ok(Outcome::Red);
    }
    eprintln!("lab: {} with kernel {kernel} took {took:.0} s; results in {}", s.name, to.display());
    let mut judge = Command::new("python3");
    judge.arg(sources().join("judge.py")).arg(to);
    if s.programs {
        judge.arg("--dissect").arg(built(how.profile, "roce-dissect"));
    }
    if s.core && how.only.is_none() {
        judge.arg("--readme").arg(root().join("README.md"));
    }
    let good = judge.status().context("cannot run python3")?.success();
    Ok(if good { Outcome::Good } else { Outcome::Red })
}

/// The headings of a scenario's log, shown as they come.
struct Steps {
    log: PathBuf,
    seen: u64,
    rest: String,
    began: Instant,
    terminal: bool,
    open: bool,
}

impl Steps {
    fn new(log: PathBuf, began: Instant) -> Self {
        Self { log, seen: 0, rest: String::new(), began, terminal: std::io::stderr().is_terminal(), open: false }
    }

    fn show(&mut self) {
        let Ok(mut file) = File::open(&self.log) else { return };
        let mut more = Vec::new();
        if file.seek(SeekFrom::Start(self.seen)).is_err() || file.read_to_end(&mut more).is_err() {
            return;
        }
        self.seen += more.len() as u64;
        self.rest.push_str(&String::from_utf8_lossy(&more));
        while let Some(end) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=end).collect();
            if let Some(name) = line.strip_prefix("=== ") {
                let name = name.split_whitespace().next().unwrap_or_default().to_owned();
                self.step(&name);
            }
        }
    }

    fn step(&mut self, name: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        if self.terminal {
            eprint!("\r\x1b[K{seconds:7.1} s  {name}");
            let _ = std::io::stderr().flush();
            self.open = true;
        } else {
            eprintln!("{seconds:7.1} s  {name}");
        }
    }

    fn end(&mut self) {
        if self.open {
            eprint!("\r\x1b[K");
        }
    }
}

/// Where the console of machine b is to be had while a shell runs.
fn other_console() -> PathBuf {
    work().join("console-b")
}

fn shell(kernel: &str, mtu: u32, with_programs: bool) -> Result<ExitCode> {
    let terminal = std::io::stdin();
    let before = termios::tcgetattr(&terminal).context("cannot read the terminal's settings")?;
    let shared = Share::new()?;
    eprintln!(
        "lab: booting, about ten seconds; files in {} are in /share/out of both machines\r\n\
         lab: machine b's console, in another terminal: cargo xtask lab shell --join",
        shared.0.join("out").display()
    );
    let pair = Pair { kernel, mtu, memory: 1024, share: &shared.0, programs: with_programs, shell: true };
    let [mut a, mut b] = pair.start()?;
    // after the start: QEMU must hear signals itself, to put the terminal right
    let interrupts = Interrupts::new()?;
    let code = loop {
        if let Some(signal) = interrupts.came() {
            break 128 + signal;
        }
        let ended = [&mut a, &mut b].into_iter().any(|m| !matches!(m.qemu.try_wait(), Ok(None)));
        if ended {
            break 0;
        }
        // the pace of looking, not of anything that is waited for
        std::thread::sleep(Duration::from_millis(100));
    };
    drop((a, b));
    let _ = termios::tcsetattr(&terminal, termios::SetArg::TCSANOW, &before);
    let _ = fs::remove_file(other_console());
    eprintln!("lab: both machines have ended");
    Ok(ExitCode::from(code))
}

/// The terminal becomes the console of machine b, until that ends or Ctrl-] is typed.
fn join() -> Result<ExitCode> {
    ensure!(std::io::stdin().is_terminal(), "a console needs a terminal");
    let path = other_console();
    let mut console = UnixStream::connect(&path)
        .with_context(|| format!("no shell runs whose machine b one could join ({})", path.display()))?;
    eprintln!("lab: the console of machine b; Ctrl-] leaves it, exit ends both machines");
    let terminal = std::io::stdin();
    let before = termios::tcgetattr(&terminal).context("cannot read the terminal's settings")?;
    let mut raw = before.clone();
    termios::cfmakeraw(&mut raw);
    termios::tcsetattr(&terminal, termios::SetArg::TCSANOW, &raw).context("cannot set the terminal")?;
    let mut keys = console.try_clone().context("cannot use the console twice")?;
    std::thread::spawn(move || {
        // a fresh line, so that the prompt is seen
        let _ = keys.write_all(b"\r");
        let mut typed = [0; 256];
        while let Ok(n @ 1..) = std::io::stdin().read(&mut typed) {
            if typed[..n].contains(&0x1d) || keys.write_all(&typed[..n]).is_err() {
                break;
            }
        }
        let _ = keys.shutdown(std::net::Shutdown::Both);
    });
    let mut shown = [0; 4096];
    while let Ok(n @ 1..) = console.read(&mut shown) {
        let mut out = std::io::stdout().lock();
        if out.write_all(&shown[..n]).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    let _ = termios::tcsetattr(&terminal, termios::SetArg::TCSANOW, &before);
    eprintln!();
    Ok(ExitCode::SUCCESS)
}
