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

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};

use crate::run::{built, cargo, must, output, root};

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
        #[arg(long)]
        no_programs: bool,
    },
    /// Show the scenarios.
    List,
}

/// Arguments after `lab`.
pub fn main(args: &[String]) -> Result<ExitCode> {
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
            for s in &scenarios {
                let kernels = kernel.clone().map_or_else(|| s.kernels.clone(), |k| vec![k]);
                for k in &kernels {
                    let to = match &out {
                        Some(o) if kernels.len() > 1 => o.join(k),
                        Some(o) => o.clone(),
                        None => work().join("runs").join(format!("{}-{k}", s.name)),
                    };
                    good &= run(s, k, &to, &how)?;
                }
            }
            Ok(ExitCode::from(u8::from(!good)))
        }
        Lab::Shell { kernel, mtu, no_programs } => {
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
        bail!("the lab's machines are made of Debian packages, and this host has no apt; run it on Debian or Ubuntu");
    }
    if !missing.is_empty() {
        let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
        let command = format!("apt-get install --no-install-recommends -y {}", packages.join(" "));
        if !nix::unistd::geteuid().is_root() {
            bail!("the lab needs {} on this host; install them with: sudo {command}", packages.join(", "));
        }
        eprintln!("lab: {command}");
        if must(
            Command::new("apt-get")
                .args(["install", "--no-install-recommends", "-y", "-q"])
                .args(&packages)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .stdout(Stdio::null()),
        )
        .is_err()
        {
            must(Command::new("apt-get").arg("update").stdout(Stdio::null()))?;
            must(
                Command::new("apt-get")
                    .args(["install", "--no-install-recommends", "-y", "-q"])
                    .args(&packages)
                    .env("DEBIAN_FRONTEND", "noninteractive")
                    .stdout(Stdio::null()),
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
    must(Command::new("bash").arg(sources().join("build.sh")).arg(work()).stdout(Stdio::null()))
        .context("the lab's machines could not be made")?;
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
    build.args(["build", "-q", "-p", "roce-user", "-p", "dissector", "--bins"]);
    if profile == "release" {
        build.arg("--release");
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

/// The folder that both machines see as /share, filled for one run.
fn share() -> Result<PathBuf> {
    let share = work().join("share");
    let _ = fs::remove_dir_all(&share);
    fs::create_dir_all(share.join("out"))?;
    must(Command::new("cp").arg("-r").arg(sources()).arg(share.join("lab")))?;
    Ok(share)
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
        let initrd = work().join("initramfs");
        let mut whole = File::create(&initrd).with_context(|| format!("cannot make {}", initrd.display()))?;
        for part in [boot.join(format!("initramfs-{}", self.kernel)), work().join("programs.cpio")] {
            if self.programs || part.starts_with(&boot) {
                let mut from = File::open(&part).with_context(|| format!("cannot open {}", part.display()))?;
                std::io::copy(&mut from, &mut whole)
                    .with_context(|| format!("cannot write {}", initrd.display()))?;
            }
        }
        // the cable: a stream loses nothing, however far behind a machine is
        let (a, b) = UnixStream::pair().context("cannot make a pair of sockets")?;
        Ok([self.machine('a', &initrd, a)?, self.machine('b', &initrd, b)?])
    }

    fn machine(&self, role: char, initrd: &Path, cable: UnixStream) -> Result<Machine> {
        let boot = work().join("boot");
        let share = self.share.display();
        let console = if self.shell && role == 'a' {
            "mon:stdio".to_owned()
        } else {
            format!("file:{share}/out/console-{role}.txt")
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
        // only for this child: the flag goes with our end of the cable, which is closed when this returns
        fcntl(&cable, FcntlArg::F_SETFD(FdFlag::empty())).context("cannot hand a socket on")?;
        let qemu = c.spawn().with_context(|| format!("cannot start machine {role}"))?;
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

/// Runs one scenario with one kernel. Whether everything in it was as it should.
fn run(s: &Scenario, kernel: &str, to: &Path, how: &How) -> Result<bool> {
    let share = share()?;
    fs::copy(&s.path, share.join("scenario.sh"))?;
    if let Some(only) = &how.only {
        fs::write(share.join("only"), only)?;
    }
    let limit = Duration::from_secs(how.timeout.unwrap_or(s.timeout));
    let began = Instant::now();
    eprintln!("lab: {} with kernel {kernel}", s.name);
    let mut machines = Pair { kernel, mtu: s.mtu, memory: s.memory, share: &share, programs: s.programs, shell: false }.start()?;
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
    let _ = fs::remove_dir_all(&share);
    let took = began.elapsed().as_secs_f64();
    let ended = ["done-a", "done-b"].iter().all(|f| to.join(f).exists());
    if late || !ended {
        eprintln!(
            "lab: {} with kernel {kernel} did not come to its end in {took:.0} s; console-a.txt, log-a.txt and their like in {} say how far it came",
            s.name,
            to.display()
        );
        return Ok(false);
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
    Ok(judge.status().context("cannot run python3")?.success())
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

fn shell(kernel: &str, mtu: u32, with_programs: bool) -> Result<ExitCode> {
    let share = share()?;
    eprintln!(
        "lab: booting, about ten seconds; files in {} are in /share/out of both machines",
        share.join("out").display()
    );
    let [mut a, b] = Pair { kernel, mtu, memory: 1024, share: &share, programs: with_programs, shell: true }.start()?;
    a.qemu.wait().context("cannot wait for machine a")?;
    drop(b);
    Ok(ExitCode::SUCCESS)
}
