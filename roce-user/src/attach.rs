//! Attaching: XDP for what comes in, TC for what goes out. Everything hangs on BPF links where the kernel has
//! them, so that nothing stays behind when this process ends, however it ends.

use std::io;

use aya::Ebpf;
use aya::programs::links::LinkOrder;
use aya::programs::tc::{self, NlOptions, SchedClassifierLinkId, TcAttachOptions, TcAttachType, TcError};
use aya::programs::xdp::{XdpError, XdpMode as AyaMode};
use aya::programs::{ProgramError, ProgramInfo};
use roce_ebpf::abi::global;

use crate::error::{Error, refused};
use crate::iface::{self, Interface, Xdp, XdpHolder, XdpMode};
use crate::kernel_log::KernelLog;
use crate::load::{self, Options};

/// Which XDP mode is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The driver's if it has one that works here, else skb.
    #[default]
    Auto,
    /// The driver's or none.
    Driver,
    /// Generic.
    Skb,
}

/// How a TC program is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tc {
    /// By a link (TCX, since 6.6), else as a filter.
    #[default]
    Auto,
    /// As a filter of a clsact qdisc, by netlink: what kernels before 6.6 have.
    Netlink,
}

impl Tc {
    /// Whether a link holds the program, that ends with us.
    pub(crate) fn is_link(self) -> bool {
        // TCX came with 6.6
        self == Self::Auto
            && aya::util::KernelVersion::current().is_ok_and(|v| v >= aya::util::KernelVersion::new(6, 6, 0))
    }
}

/// How to attach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attach {
    /// XDP mode.
    pub mode: Mode,
    /// Leave outgoing packets alone.
    pub no_egress: bool,
    /// Where another XDP program holds the hook, take incoming packets at TC instead of failing.
    pub tc_if_taken: bool,
}

/// Where incoming packets are seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ingress {
    /// XDP, in this mode.
    Xdp(XdpMode),
    /// TC, because of this holder of the XDP hook.
    Tc(XdpHolder),
}

/// An interface with our programs on it. Dropping it detaches them.
pub struct Tap {
    /// As it was when attaching.
    pub interface: Interface,
    /// Object and maps of this interface.
    pub ebpf: Ebpf,
    /// Where incoming packets are seen.
    pub ingress: Ingress,
    /// Whether outgoing ones are.
    pub egress: bool,
    /// What the person should know about it, as sentences.
    pub notes: Vec<String>,
    /// Id of our XDP program.
    xdp_id: u32,
    /// What the programs say of the unexpected.
    pub log: Option<KernelLog>,
}

impl Tap {
    /// Loads the object and attaches its programs to an interface.
    pub fn new(name: &str, options: &Options, how: &Attach) -> Result<Self, Error> {
        let interface = Interface::named(name)?;
        let mut ebpf = load::load(options)?;
        let log = KernelLog::of(&mut ebpf);
        let mut notes = Vec::new();
        let mut xdp_id = 0;
        let ingress = match attach_xdp(&mut ebpf, &interface, global::XDP_INGRESS, how.mode, &mut notes) {
            Ok(id) => {
                xdp_id = id;
                let mode = Interface::named(name)?.xdp.map_or(XdpMode::Skb, |x| x.mode);
                Ingress::Xdp(mode)
            }
            Err(Error::XdpTaken { holder, .. }) if how.tc_if_taken || holder.is_fault() => {
                attach_tc(&mut ebpf, &interface, global::TC_INGRESS, TcAttachType::Ingress, Tc::Auto)?;
                notes.push(format!(
                    "an XDP program is already on {name} ({holder}): incoming packets are seen at TC, after it"
                ));
                Ingress::Tc(holder)
            }
            Err(e) => return Err(e),
        };
        if !how.no_egress {
            attach_tc(&mut ebpf, &interface, global::TC_EGRESS, TcAttachType::Egress, Tc::Auto)?;
        }
        if !interface.up {
            notes.push(format!("{name} is down (`ip link set {name} up`)"));
        }
        Ok(Self { interface, ebpf, ingress, egress: !how.no_egress, notes, xdp_id, log })
    }

    /// How it sees packets, in words: "XDP driver, TC egress".
    pub fn how(&self) -> String {
        let mut out = match &self.ingress {
            Ingress::Xdp(m) => format!("XDP {}", m.name()),
            Ingress::Tc(_) => "TC ingress".to_owned(),
        };
        if self.egress {
            out.push_str(", TC egress");
        }
        out
    }

    /// What has changed since attaching, as sentences: interface gone or down, our program replaced.
    pub fn trouble(&self) -> Vec<String> {
        let name = &self.interface.name;
        let Ok(all) = iface::all() else { return Vec::new() };
        let Some(now) = all.iter().find(|i| i.index == self.interface.index) else {
            return vec![if all.iter().any(|i| i.name == *name) {
                format!("{name} is another interface now: start again to see it")
            } else {
                format!("{name} is gone; what it counted stays")
            }];
        };
        let mut out = Vec::new();
        if now.name != *name {
            out.push(format!("{name} is called {} now", now.name));
        }
        if !now.up {
            out.push(format!("{name} is down"));
        } else if !now.running {
            out.push(format!("{name} has no carrier"));
        }
        if matches!(self.ingress, Ingress::Xdp(_)) && now.xdp.is_none_or(|x| x.id != self.xdp_id) {
            out.push(match now.xdp {
                Some(Xdp { id, .. }) => {
                    format!(
                        "our XDP program on {name} was replaced by {}: incoming packets are not seen",
                        XdpHolder::of(id)
                    )
                }
                None => format!("our XDP program on {name} was detached: incoming packets are not seen"),
            });
        }
        out
    }
}

/// Attaches the XDP program; gives its id.
pub(crate) fn attach_xdp(
    ebpf: &mut Ebpf,
    i: &Interface,
    program: &str,
    mode: Mode,
    notes: &mut Vec<String>,
) -> Result<u32, Error> {
    if let Some(there) = i.xdp {
        return Err(Error::XdpTaken { interface: i.name.clone(), holder: XdpHolder::of(there.id) });
    }
    let program = load::xdp(ebpf, program)?;
    let id = program.info().as_ref().map_or(0, ProgramInfo::id);
    let first = if mode == Mode::Skb { AyaMode::Skb } else { AyaMode::Driver };
    let refusal = match program.attach_to_if_index(i.index, first) {
        Ok(_) => return Ok(id),
        Err(e) => os_error(e),
    };
    match refusal.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => return Err(refused("attach a program to an interface")),
        // somebody was faster than our look
        Some(libc::EBUSY | libc::EEXIST) => {
            let holder = XdpHolder::of(Interface::named(&i.name)?.xdp.map_or(0, |x| x.id));
            return Err(Error::XdpTaken { interface: i.name.clone(), holder });
        }
        _ => {}
    }
    match mode {
        Mode::Auto => {}
        Mode::Skb => return Err(Error::Attach { interface: i.name.clone(), hook: "XDP skb", source: refusal }),
        // drivers say ERANGE, EINVAL or EOPNOTSUPP when a packet does not fit the buffer that XDP wants
        Mode::Driver if i.mtu > 1500 && refusal.raw_os_error() != Some(libc::EOPNOTSUPP) => {
            return Err(Error::MtuTooLarge { interface: i.name.clone(), mtu: i.mtu, source: refusal });
        }
        Mode::Driver => return Err(Error::NoDriverXdp { interface: i.name.clone(), source: refusal }),
    }
    match program.attach_to_if_index(i.index, AyaMode::Skb) {
        Ok(_) => {
            notes.push(format!(
                "{}'s driver takes no XDP program ({refusal}): generic mode, which costs more per packet",
                i.name
            ));
            Ok(id)
        }
        Err(e) => Err(Error::Attach { interface: i.name.clone(), hook: "XDP skb", source: os_error(e) }),
    }
}

/// Attaches a TC program: a TCX link, or a netlink filter where the kernel has no TCX.
pub(crate) fn attach_tc(
    ebpf: &mut Ebpf,
    i: &Interface,
    program: &str,
    at: TcAttachType,
    how: Tc,
) -> Result<SchedClassifierLinkId, Error> {
    let name = i.name.as_str();
    let hook = if at == TcAttachType::Egress { "TC egress" } else { "TC ingress" };
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => refused("attach a program to an interface"),
        _ => Error::Attach { interface: name.to_owned(), hook, source },
    };
    let classifier = load::classifier(ebpf, program)?;
    if !how.is_link() {
        // a filter outlives a killed process: remove what one left
        let _gone = tc::qdisc_detach_program(name, at, program);
        if let Err(e) = tc::qdisc_add_clsact(name) {
            let e = tc_os_error(e);
            if e.raw_os_error() != Some(libc::EEXIST) {
                return Err(failed(e));
            }
        }
    }
    let options = if how.is_link() {
        TcAttachOptions::TcxOrder(LinkOrder::default())
    } else {
        TcAttachOptions::Netlink(NlOptions::default())
    };
    classifier.attach_with_options(name, at, options).map_err(|e| failed(os_error(e)))
}

fn tc_os_error(e: TcError) -> io::Error {
    match e {
        TcError::NetlinkError(n) => n.raw_os_error().map_or_else(|| io::Error::other(n), io::Error::from_raw_os_error),
        TcError::IoError(e) => e,
        other => io::Error::other(other),
    }
}

fn os_error(e: ProgramError) -> io::Error {
    match e {
        ProgramError::SyscallError(s) => s.io_error,
        ProgramError::XdpError(XdpError::NetlinkError(n)) => {
            n.raw_os_error().map_or_else(|| io::Error::other(n), io::Error::from_raw_os_error)
        }
        ProgramError::TcError(t) => tc_os_error(t),
        other => io::Error::other(other),
    }
}
