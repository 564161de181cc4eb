//! What can go wrong between us and the kernel, as sentences for the person at the terminal.

use std::io;

use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::{Btf, EbpfError};
use thiserror::Error;

use crate::iface::XdpHolder;

/// Oldest kernel whose XDP can do what the program asks for (`bpf_xdp_get_buff_len`, multi-buffer XDP).
pub const OLDEST_KERNEL: (u32, u32) = (5, 18);

/// Lines of the verifier's log that are shown.
const VERIFIER_LINES: usize = 6;

/// Why the kernel side is not there.
#[derive(Debug, Error)]
pub enum Error {
    /// Built with `AYA_BUILD_SKIP=1`.
    #[error(
        "this program was built without its kernel object (AYA_BUILD_SKIP); build it again without that variable, after `cargo xtask setup`"
    )]
    NoObject,
    /// No such interface in this network namespace.
    #[error("no interface {name} in this network namespace{}", there_are(.there))]
    NoInterface {
        /// Asked for.
        name: String,
        /// Those that exist.
        there: Vec<String>,
    },
    /// A capability is missing.
    #[error("no privilege to {what}: {} missing; run as root, or give the program {SETCAP}", join(.missing))]
    NoPrivilege {
        /// What was tried.
        what: &'static str,
        /// Capabilities, as `capabilities(7)` names them.
        missing: Vec<&'static str>,
    },
    /// The kernel says no although the capabilities are there.
    #[error(
        "the kernel refused to {what} although the capabilities are there (a security module, a container's seccomp filter, or kernel lockdown)"
    )]
    Refused {
        /// What was tried.
        what: &'static str,
    },
    /// Another XDP program is attached.
    #[error("cannot attach to {interface}: an XDP program is already there ({holder}); {}", taken_advice(.interface, .holder))]
    XdpTaken {
        /// Interface.
        interface: String,
        /// Whose program.
        holder: XdpHolder,
    },
    /// The driver cannot take packets of this size in its XDP mode.
    #[error(
        "{interface}'s driver takes no XDP program at MTU {mtu}: {source}; lower the MTU (`ip link set {interface} mtu 3498`), or use --xdp-mode skb"
    )]
    MtuTooLarge {
        /// Interface.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// The kernel's word.
        source: io::Error,
    },
    /// The driver has no XDP.
    #[error("{interface}'s driver takes no XDP program: {source}; use --xdp-mode skb")]
    NoDriverXdp {
        /// Interface.
        interface: String,
        /// The kernel's word.
        source: io::Error,
    },
    /// Attaching failed otherwise.
    #[error("cannot attach to {interface} ({hook}): {source}")]
    Attach {
        /// Interface.
        interface: String,
        /// XDP or TC.
        hook: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
    /// The kernel is too old.
    #[error(
        "kernel {have} is too old: counting at XDP needs {}.{} or later; captures can be read with `roce-top -r FILE` and roce-dissect",
        OLDEST_KERNEL.0, OLDEST_KERNEL.1
    )]
    KernelTooOld {
        /// As `uname -r` says.
        have: String,
    },
    /// The verifier rejected a program.
    #[error("the kernel does not load program {program}: {source}{}", log_end(.log))]
    Rejected {
        /// Name of the program.
        program: String,
        /// The kernel's word.
        source: io::Error,
        /// The verifier's.
        log: String,
    },
    /// The object itself is not usable.
    #[error("the kernel object does not load: {0}")]
    Object(String),
    /// A map that must be there is not, or has another shape.
    #[error("the kernel object has no usable map {name}: {why}")]
    Map {
        /// Name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The kernel's word.
        source: io::Error,
    },
}

impl Error {
    /// A system call that failed.
    pub fn system(what: impl Into<String>, source: io::Error) -> Self {
        Self::System { what: what.into(), source }
    }

    /// What the loader's error means.
    pub fn of_load(e: EbpfError) -> Self {
        match e {
            EbpfError::MapError(MapError::CreateError { name, io_error }) => match io_error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => refused("create maps"),
                Some(libc::ENOMEM | libc::E2BIG) => {
                    Self::Map { name, why: format!("{io_error}; ask for fewer flows (--max-flows)") }
                }
                _ => Self::Map { name, why: io_error.to_string() },
            },
            EbpfError::ProgramError(e) => Self::of_program("", e),
            other => Self::Object(chain(&other)),
        }
    }

    /// What an error from loading a program means.
    pub fn of_program(program: &str, e: ProgramError) -> Self {
        match e {
            ProgramError::LoadError { io_error, verifier_log } => {
                let log = verifier_log.to_string();
                if matches!(io_error.raw_os_error(), Some(libc::EPERM)) && log.trim().is_empty() {
                    return refused("load the program");
                }
                Self::Rejected { program: program.to_owned(), source: io_error, log }
            }
            other => Self::Object(chain(&other)),
        }
    }
}

/// The kernel said no: for lack of a capability, if one is missing.
pub fn refused(what: &'static str) -> Error {
    let missing = missing_capabilities();
    if missing.is_empty() { Error::Refused { what } } else { Error::NoPrivilege { what, missing } }
}

/// Capabilities that counting needs and this process lacks.
pub fn missing_capabilities() -> Vec<&'static str> {
    use caps::{CapSet, Capability};
    let has = |c| caps::has_cap(None, CapSet::Effective, c).unwrap_or(false);
    if has(Capability::CAP_SYS_ADMIN) {
        // stands for CAP_BPF and CAP_PERFMON, not for CAP_NET_ADMIN
        return if has(Capability::CAP_NET_ADMIN) { Vec::new() } else { vec!["CAP_NET_ADMIN"] };
    }
    [
        (Capability::CAP_BPF, "CAP_BPF"),
        (Capability::CAP_NET_ADMIN, "CAP_NET_ADMIN"),
        (Capability::CAP_PERFMON, "CAP_PERFMON"),
    ]
    .into_iter()
    .filter_map(|(c, name)| (!has(c)).then_some(name))
    .collect()
}

/// `Err` if a kernel of this release (as `uname -r` says) is too old; what cannot be read is let through.
pub fn check_kernel(release: &str) -> Result<(), Error> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else { return Ok(()) };
    if (major, minor) < OLDEST_KERNEL { Err(Error::KernelTooOld { have: release.to_owned() }) } else { Ok(()) }
}

/// Whether the kernel describes its own types, which the doctor reports.
pub fn kernel_has_btf() -> bool {
    Btf::from_sys_fs().is_ok()
}

/// An error with its causes, in one line.
pub fn chain(e: &dyn std::error::Error) -> String {
    let mut out = e.to_string();
    let mut next = e.source();
    while let Some(s) = next {
        let word = s.to_string();
        // many repeat their cause
        if !out.ends_with(&word) {
            out.push_str(": ");
            out.push_str(&word);
        }
        next = s.source();
    }
    out.replace('\n', " ")
}

fn log_end(log: &str) -> String {
    let lines: Vec<_> = log.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    let from = lines.len().saturating_sub(VERIFIER_LINES);
    let shown = lines.get(from..).unwrap_or(&[]);
    if shown.is_empty() { String::new() } else { format!("; the verifier's last words: {}", shown.join(" | ")) }
}

fn there_are(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; there are {}", names.join(", ")) }
}

fn join(missing: &[&str]) -> String {
    match missing {
        [] => "nothing is".into(),
        [one] => format!("{one} is"),
        many => format!("{} are", many.join(", ")),
    }
}

/// All that is needed, not only what is missing: setcap replaces what the file has.
const SETCAP: &str = "these (`setcap cap_bpf,cap_net_admin,cap_perfmon+ep PROGRAM`)";

fn taken_advice(interface: &str, holder: &XdpHolder) -> String {
    if holder.is_fault() {
        "another roce-fault has the interface: wait for it, or end it".into()
    } else if holder.ours() {
        "another roce-top or roce-fault counts here already: end it first".into()
    } else {
        format!("detach it (`ip link set dev {interface} xdp off`, if no program holds it by a link), or end its owner")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_by_name() {
        for (release, old) in [
            ("5.10.0-28-amd64", true),
            ("5.17.15", true),
            ("5.18.0", false),
            ("6.1.0-18-amd64", false),
            ("6.18-rc3", false),
            ("10.0.0", false),
            ("4.19", true),
            ("strange", false),
        ] {
            assert_eq!(check_kernel(release).is_err(), old, "{release}");
        }
        let said = check_kernel("5.10.0-28-amd64").unwrap_err().to_string();
        assert!(said.contains("5.10.0-28-amd64") && said.contains("5.18") && said.contains("roce-top -r"), "{said}");
    }

    #[test]
    fn a_missing_capability_is_named() {
        let said = Error::NoPrivilege { what: "load the program", missing: vec!["CAP_BPF"] }.to_string();
        assert!(
            said.contains("CAP_BPF is missing") && said.contains("setcap cap_bpf,cap_net_admin,cap_perfmon+ep"),
            "{said}"
        );
    }

    #[test]
    fn the_end_of_the_verifiers_log() {
        let log = (0..100).map(|i| format!("line {i}")).collect::<Vec<_>>().join("\n");
        let end = log_end(&log);
        assert!(end.contains("line 99") && end.contains("line 94") && !end.contains("line 93"), "{end}");
        assert!(!end.contains('\n'));
        assert_eq!(log_end(""), "");
    }
}
