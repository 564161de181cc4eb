//! What the build and the tests need, and how it gets here.
//!
//! The kernel object needs a Rust compiler with a `core` for `bpfel-unknown-none`, and bpf-linker. Two
//! routes: Debian's `rustc-web` with its prebuilt core, linked into rustup as toolchain `roce-bpf`; or
//! rustup's nightly with `rust-src`, from which cargo builds core itself.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::run::{must, output, works};

/// The rustup name under which Debian's compiler is linked; `roce-user/build.rs` looks for it too.
const LINKED: &str = "roce-bpf";
/// Version of bpf-linker that this was tried with.
const BPF_LINKER: &str = "0.13.0";
/// Versions of LLVM that this bpf-linker can link against, best first; 22 is that of the compilers above.
const LLVM: [u32; 3] = [22, 23, 21];

/// An option of apt: waits so many seconds while another apt has the lock, as it often has on a machine just started.
pub const LOCK: &str = "DPkg::Lock::Timeout=300";

/// One thing that is missing and the commands that bring it.
struct Missing {
    what: &'static str,
    commands: Vec<Vec<String>>,
}

/// How far to set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Building, and running roce-top in namespaces.
    Demo,
    /// The same, and everything that tests compare with.
    Tests,
}

/// `cargo xtask setup`.
pub fn main(check: bool) -> Result<ExitCode> {
    if check {
        let missing = missing(For::Tests);
        for m in &missing {
            println!("missing: {}", m.what);
            for c in &m.commands {
                println!("    {}", c.join(" "));
            }
        }
        if missing.is_empty() {
            println!("everything is there");
        }
        return Ok(ExitCode::from(u8::from(!missing.is_empty())));
    }
    ensure(For::Tests)?;
    println!("everything is there");
    Ok(ExitCode::SUCCESS)
}

/// Installs what is missing; without root, prints the commands and fails.
pub fn ensure(goal: For) -> Result<()> {
    let found = missing(goal);
    if found.is_empty() {
        return Ok(());
    }
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("These commands bring what is missing (those with sudo need root):");
        for m in &found {
            eprintln!("  # {}", m.what);
            for c in &m.commands {
                let sudo = if c[0] == "apt-get" { "sudo " } else { "" };
                eprintln!("  {sudo}{}", c.join(" "));
            }
        }
        bail!("something is missing; run the commands above, then this one again");
    }
    for m in found {
        eprintln!("setup: {}", m.what);
        for c in m.commands {
            let mut command = Command::new(&c[0]);
            command.args(&c[1..]);
            if c[0] == "apt-get" {
                command.env("DEBIAN_FRONTEND", "noninteractive");
            }
            if let Some(version) = llvm()
                && c[0] == "cargo"
            {
                command.env("LLVM_PREFIX", format!("/usr/lib/llvm-{version}"));
            }
            must(&mut command)?;
        }
    }
    let still = missing(goal);
    if let Some(m) = still.first() {
        bail!("after setting up, this is still missing: {}", m.what);
    }
    Ok(())
}

fn missing(goal: For) -> Vec<Missing> {
    let mut all = Vec::new();
    let mut packages: Vec<String> = Vec::new();
    if !works("rustup", &["--version"]) {
        all.push(Missing {
            what: "rustup, which switches to the compiler of the kernel object (see https://rustup.rs)",
            commands: vec![],
        });
        return all;
    }
    let debian = works("rustc", &[&format!("+{LINKED}"), "--version"]) && has_prebuilt_core();
    let nightly = output("rustup", &["component", "list", "--toolchain", "nightly", "--installed"])
        .is_some_and(|l| l.lines().any(|l| l.starts_with("rust-src")));
    let offered = debian || nightly || apt_offers("libstd-rust-web-dev-bpf");
    if !(debian || nightly) && offered && !has_prebuilt_core() {
        packages.extend(["rustc-web", "libstd-rust-web-dev-bpf"].map(String::from));
    }
    let linker = works("bpf-linker", &["--version"]) || works(&home_bin("bpf-linker"), &["--version"]);
    if !linker {
        if llvm().is_none() {
            match LLVM.iter().find(|v| apt_offers(&format!("llvm-{v}-dev"))) {
                Some(v) => packages.push(format!("llvm-{v}-dev")),
                None => all.push(Missing {
                    what: "LLVM 21, 22 or 23 with its headers, for bpf-linker (https://apt.llvm.org has it where the distribution does not)",
                    commands: vec![],
                }),
            }
        }
        packages.extend(["libzstd-dev", "zlib1g-dev"].map(String::from));
    }
    if !works("ip", &["-V"]) {
        packages.push("iproute2".into());
    }
    if goal == For::Tests {
        for (program, package) in [
            ("tshark", "tshark"),
            ("tmux", "tmux"),
            ("tcpdump", "tcpdump"),
            ("ethtool", "ethtool"),
            ("python3", "python3"),
            ("prometheus", "prometheus"),
        ] {
            if !on_path(program) {
                packages.push(package.into());
            }
        }
    }
    if !packages.is_empty() {
        let mut install: Vec<String> =
            ["apt-get", "-o", LOCK, "install", "-y", "--no-install-recommends"].map(String::from).to_vec();
        install.extend(packages);
        all.insert(
            0,
            Missing {
                what: "packages of the distribution",
                commands: vec![["apt-get", "update"].map(String::from).to_vec(), install],
            },
        );
    }
    if !(debian || nightly) {
        if offered {
            all.push(Missing {
                what: "a rustup name for Debian's compiler with a prebuilt core for eBPF",
                commands: vec![["rustup", "toolchain", "link", LINKED, "/usr"].map(String::from).to_vec()],
            });
        } else {
            all.push(Missing {
                what: "nightly Rust with its library source, from which core is built for eBPF",
                commands: vec![
                    ["rustup", "toolchain", "install", "nightly", "--profile", "minimal", "--component", "rust-src"]
                        .map(String::from)
                        .to_vec(),
                ],
            });
        }
    }
    if !linker {
        let version =
            llvm().or_else(|| LLVM.into_iter().find(|v| apt_offers(&format!("llvm-{v}-dev")))).unwrap_or(LLVM[0]);
        let features = format!("llvm-{version}");
        all.push(Missing {
            what: "bpf-linker",
            commands: vec![
                [
                    "cargo",
                    "install",
                    "bpf-linker",
                    "--locked",
                    "--version",
                    BPF_LINKER,
                    "--no-default-features",
                    "--features",
                    &features,
                ]
                .map(String::from)
                .to_vec(),
            ],
        });
    }
    all
}

fn has_prebuilt_core() -> bool {
    Path::new("/usr/lib/rustlib/bpfel-unknown-none").exists()
}

fn llvm() -> Option<u32> {
    LLVM.into_iter().find(|v| Path::new(&format!("/usr/lib/llvm-{v}/bin/llvm-config")).exists())
}

/// The package lists are fetched once at the most.
static FETCHED: std::sync::Once = std::sync::Once::new();

fn apt_offers(package: &str) -> bool {
    let policy = |()| {
        output("apt-cache", &["policy", package])
            .is_some_and(|p| !p.contains("Candidate: (none)") && p.contains("Candidate:"))
    };
    if policy(()) {
        return true;
    }
    // a fresh machine has no lists yet, and only root can fetch them
    if nix::unistd::geteuid().is_root() {
        FETCHED.call_once(|| {
            if works("apt-get", &["--version"]) {
                eprintln!("setup: fetching the package lists");
                works("apt-get", &["update"]);
            }
        });
        return policy(());
    }
    false
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|p| {
        std::env::split_paths(&p).chain(["/usr/sbin".into(), "/sbin".into()]).any(|d| d.join(program).is_file())
    })
}

fn home_bin(program: &str) -> String {
    let home =
        std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{}/.cargo", std::env::var("HOME").unwrap_or_default()));
    format!("{home}/bin/{program}")
}
