//! `roce-top doctor`: can RoCE be seen here, and if not, why? Facts first, then what to do, a sentence each.

use std::io::{self, Write};
use std::time::Instant;

use serde::Serialize;

use crate::error::{self, Error};
use crate::iface::{self, Interface, XdpHolder};
use crate::privileges::at_least;
use crate::{ethtool, load, rdma};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, with a limit worth knowing.
    Note,
    /// RoCE cannot be seen because of it.
    Problem,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name.
    pub check: &'static str,
    /// Interface that it is about; `None` for the machine.
    pub interface: Option<String>,
    /// How it came out.
    pub status: Status,
    /// What was found.
    pub says: String,
    /// What to do.
    pub advice: Option<String>,
}

/// Instructions that the kernel's verifier looks at before it gives up (BPF_COMPLEXITY_LIMIT_INSNS).
const VERIFIER_LIMIT: u32 = 1_000_000;
/// Oldest kernel with TCX (`bpf_link` on TC hooks).
const TCX: (u32, u32) = (6, 6);

/// What is known of XDP in the drivers (docs.ebpf.io, table "driver support"): oldest kernel with it, with
/// multi-buffer ("frags"), and the largest MTU without and with frags; `None` where there is no limit.
const DRIVERS: &[Driver] = &[
    Driver::new("mlx5_core", (4, 9), Some((5, 18)), Some(3498), None),
    Driver::new("mlx4_en", (4, 8), None, Some(1500), None),
    Driver::new("bnxt_en", (4, 11), Some((5, 19)), Some(3502), None),
    Driver::new("ice", (5, 5), Some((6, 3)), Some(3046), None),
    Driver::new("i40e", (4, 13), Some((6, 4)), Some(3046), Some(9702)),
    Driver::new("ixgbe", (4, 12), None, Some(3000), None),
    Driver::new("virtio_net", (4, 10), Some((6, 3)), Some(3506), None),
    Driver::new("veth", (4, 19), Some((5, 18)), Some(3520), Some(73_152)),
    Driver::new("tun", (4, 14), None, Some(1500), None),
    Driver::new("ena", (5, 6), None, Some(3498), None),
    Driver::new("mana", (5, 17), None, Some(3506), None),
    Driver::new("gve", (6, 4), None, None, None),
];

struct Driver {
    name: &'static str,
    since: (u32, u32),
    frags: Option<(u32, u32)>,
    mtu: Option<u32>,
    mtu_frags: Option<u32>,
}

impl Driver {
    const fn new(
        name: &'static str,
        since: (u32, u32),
        frags: Option<(u32, u32)>,
        mtu: Option<u32>,
        mtu_frags: Option<u32>,
    ) -> Self {
        Self { name, since, frags, mtu, mtu_frags }
    }
}

/// Looks at the machine and at these interfaces, at all of them if none is named.
pub fn examine(names: &[String]) -> Result<Vec<Check>, Error> {
    let all = iface::all()?;
    let chosen: Vec<Interface> = if names.is_empty() {
        all.into_iter().filter(|i| i.name != "lo").collect()
    } else {
        names.iter().map(|n| Interface::named(n)).collect::<Result<_, _>>()?
    };
    let release = load::release();
    let mut checks = machine(&release);
    let devices = rdma::devices();
    for i in &chosen {
        interface(i, &release, &devices, &mut checks);
    }
    if chosen.is_empty() {
        checks.push(Check {
            check: "interfaces",
            interface: None,
            status: Status::Problem,
            says: "this network namespace has no interface but the loopback".to_owned(),
            advice: Some(
                "run it in the namespace whose traffic you want to see (ip netns exec NAME roce-top …)".to_owned(),
            ),
        });
    }
    Ok(checks)
}

fn machine(release: &str) -> Vec<Check> {
    let mut out = Vec::new();
    let mut add = |check, status, says: String, advice: Option<String>| {
        out.push(Check { check, interface: None, status, says, advice });
    };
    match error::check_kernel(release) {
        Ok(()) if at_least(release, TCX) => {
            add("kernel", Status::Ok, format!("kernel {release}: XDP with frags, and TCX for what goes out"), None);
        }
        Ok(()) => add(
            "kernel",
            Status::Note,
            format!(
                "kernel {release} has no TCX (that came with 6.6): outgoing packets are watched by a clsact filter"
            ),
            None,
        ),
        Err(e) => add(
            "kernel",
            Status::Problem,
            e.to_string(),
            Some("use a newer kernel, or read captures with -r".to_owned()),
        ),
    }
    if error::kernel_has_btf() {
        add("btf", Status::Ok, "the kernel describes its types (BTF)".to_owned(), None);
    } else {
        add("btf", Status::Note, "the kernel has no BTF: programs load, but are harder to inspect".to_owned(), None);
    }
    if load::has_object() {
        add("object", Status::Ok, "this build has its kernel object".to_owned(), None);
    } else {
        add(
            "object",
            Status::Problem,
            "this build has no kernel object".to_owned(),
            Some("build it again after `cargo xtask setup`, without AYA_BUILD_SKIP".to_owned()),
        );
    }
    let missing = error::missing_capabilities();
    if missing.is_empty() && load::has_object() {
        let (status, says, advice) = programs(Instant::now());
        add("programs", status, says, advice);
    }
    if missing.is_empty() {
        add(
            "capabilities",
            Status::Ok,
            "all capabilities are there (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)".to_owned(),
            None,
        );
    } else {
        add(
            "capabilities",
            Status::Problem,
            format!("missing: {}", missing.join(", ")),
            Some(
                "run as root, or once `setcap cap_bpf,cap_net_admin,cap_perfmon+ep roce-top` for the program"
                    .to_owned(),
            ),
        );
    }
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        add(
            "lockdown",
            Status::Note,
            "the kernel is locked down for confidentiality: programs may not read kernel memory; ours does not"
                .to_owned(),
            None,
        );
    }
    out
}

/// Whether the kernel takes the programs; nothing is attached.
fn programs(began: Instant) -> (Status, String, Option<String>) {
    match load::verify() {
        Ok(looked_at) => {
            let took = began.elapsed().as_secs_f64();
            let largest = looked_at.iter().max_by_key(|(_, n)| *n);
            let steps = largest.filter(|(_, n)| *n != 0).map_or_else(String::new, |(name, n)| {
                format!("; the largest, {name}, takes {n} of the {VERIFIER_LIMIT} steps that it allows")
            });
            let says = format!("the kernel accepts all {} programs (looked at in {took:.2} s{steps})", looked_at.len());
            (Status::Ok, says, None)
        }
        Err(e) => (
            Status::Problem,
            e.to_string(),
            Some(
                "read captures with -r meanwhile, and report this: README.md names the kernels that are tested"
                    .to_owned(),
            ),
        ),
    }
}

fn interface(i: &Interface, release: &str, devices: &[rdma::Device], out: &mut Vec<Check>) {
    let mut add = |check, status, says: String, advice: Option<String>| {
        out.push(Check { check, interface: Some(i.name.clone()), status, says, advice });
    };
    let name = &i.name;
    if name == "lo" {
        add(
            "state",
            Status::Note,
            "the loopback interface: RoCE does not use it (soft-RoCE to the own address stays inside the driver)"
                .to_owned(),
            Some("watch the interface that the peers are reached through".to_owned()),
        );
    } else if !i.up {
        add("state", Status::Problem, "the interface is down".to_owned(), Some(format!("ip link set {name} up")));
    } else if !i.running {
        add(
            "state",
            Status::Problem,
            "the interface is up but has no carrier".to_owned(),
            Some("look at the cable, the switch port, or the other end of the pair".to_owned()),
        );
    } else {
        add("state", Status::Ok, format!("up, MTU {}", i.mtu), None);
    }
    if !i.promiscuous && name != "lo" {
        add(
            "promiscuous",
            Status::Note,
            "not promiscuous: the card may drop frames for other machines before any program sees them".to_owned(),
            Some(format!("on a mirror port: ip link set {name} promisc on")),
        );
    }
    driver(i, release, &mut add);
    match i.xdp {
        None => add("hook", Status::Ok, "no XDP program is attached".to_owned(), None),
        Some(x) => {
            let holder = XdpHolder::of(x.id);
            if holder.ours() {
                add(
                    "hook",
                    Status::Note,
                    format!(
                        "a program of ours is attached ({holder}, {} mode): roce-top or roce-fault runs here already",
                        x.mode.name()
                    ),
                    Some("end the other one first, or watch another interface".to_owned()),
                );
            } else {
                add(
                    "hook",
                    Status::Problem,
                    format!(
                        "another XDP program is attached ({holder}, {} mode); there is room for one",
                        x.mode.name()
                    ),
                    Some(format!("if nothing needs it: ip link set {name} xdp off")),
                );
            }
        }
    }
    if let Ok(o) = ethtool::offloads(name) {
        if o.lro {
            add(
                "lro",
                Status::Note,
                "large receive offload joins packets; drivers refuse XDP then".to_owned(),
                Some(format!("ethtool -K {name} lro off")),
            );
        }
        if o.rx_vlan && !matches!(ethtool::driver(name).as_deref(), Ok("veth")) {
            add(
                "vlan",
                Status::Note,
                "the card takes VLAN tags out before XDP sees a packet: flows show no VLAN".to_owned(),
                Some(format!("if you need the tags: ethtool -K {name} rxvlan off")),
            );
        }
    }
    rdma_devices(i, devices, &mut add);
}

type Add<'a> = dyn FnMut(&'static str, Status, String, Option<String>) + 'a;

fn driver(i: &Interface, release: &str, add: &mut Add<'_>) {
    let Ok(name) = ethtool::driver(&i.name) else {
        if i.name != "lo" {
            add(
                "driver",
                Status::Note,
                "the driver does not tell its name: XDP will run in generic mode if it has none of its own".to_owned(),
                None,
            );
        }
        return;
    };
    let Some(d) = DRIVERS.iter().find(|d| d.name == name) else {
        add(
            "driver",
            Status::Note,
            format!("driver {name}: not known to have XDP of its own; generic mode works, slower"),
            None,
        );
        return;
    };
    if !at_least(release, d.since) {
        add(
            "driver",
            Status::Note,
            format!("driver {name} has XDP since kernel {}.{}; here generic mode is used", d.since.0, d.since.1),
            None,
        );
        return;
    }
    let frags = d.frags.is_some_and(|f| at_least(release, f));
    let limit = if frags { d.mtu_frags } else { d.mtu };
    match limit {
        Some(limit) if i.mtu > limit => add(
            "driver",
            Status::Note,
            format!(
                "driver {name}: its XDP takes an MTU of {limit} at most, the interface has {}; generic mode will be used",
                i.mtu
            ),
            Some(format!("for speed: ip link set {} mtu {limit} (a RoCE MTU of 4096 needs 4200)", i.name)),
        ),
        _ => add(
            "driver",
            Status::Ok,
            format!(
                "driver {name}: XDP in the driver, MTU {} fits{}",
                i.mtu,
                if frags { " (frags: jumbo packets too)" } else { "" }
            ),
            None,
        ),
    }
}

fn rdma_devices(i: &Interface, devices: &[rdma::Device], add: &mut Add<'_>) {
    let mine: Vec<&rdma::Device> = devices.iter().filter(|d| d.interfaces.contains(&i.name)).collect();
    if mine.is_empty() && i.name != "lo" {
        add(
            "rdma",
            Status::Ok,
            "no RDMA device of this machine on it: RoCE of others that passes here goes through the kernel and is seen"
                .to_owned(),
            None,
        );
    }
    for d in mine {
        match &d.kind {
            rdma::Kind::Rxe => add(
                "rdma",
                Status::Ok,
                format!(
                    "{} is soft-RoCE: what comes in is seen by XDP, what goes out by TC; what it sends to itself by neither",
                    d.name
                ),
                None,
            ),
            rdma::Kind::Siw => {
                add("rdma", Status::Note, format!("{} is soft-iWARP: RDMA over TCP, no RoCE", d.name), None);
            }
            rdma::Kind::Hardware(driver) => add(
                "rdma",
                Status::Problem,
                format!(
                    "{} ({driver}) is a card that moves its RoCE past the kernel: neither XDP nor tcpdump on {} sees it",
                    d.name, i.name
                ),
                Some(format!(
                    "mirror the switch port to another machine, put a Linux box into the path, or capture on the device (tcpdump -i {}) and read the file with -r",
                    d.name
                )),
            ),
            rdma::Kind::InfiniBand(driver) => add(
                "rdma",
                Status::Problem,
                format!("{} ({driver}) speaks InfiniBand, not Ethernet: there is no RoCE on it", d.name),
                Some("ibdump or the card's sniffer make captures that -r and roce-dissect read".to_owned()),
            ),
        }
    }
}

/// Whether RoCE can be seen: the machine has no problem, and at least one of the interfaces has none.
pub fn can_see(checks: &[Check]) -> bool {
    let problem = |c: &&Check| c.status == Status::Problem;
    if checks.iter().filter(|c| c.interface.is_none()).any(|c| problem(&c)) {
        return false;
    }
    let bad: std::collections::BTreeSet<_> =
        checks.iter().filter(problem).filter_map(|c| c.interface.as_ref()).collect();
    checks.iter().filter_map(|c| c.interface.as_ref()).any(|i| !bad.contains(i))
}

/// As text, one check a line and its advice below.
pub fn text(out: &mut impl Write, checks: &[Check], colour: bool) -> io::Result<()> {
    let mut about = None;
    for c in checks {
        if c.interface != about {
            about.clone_from(&c.interface);
            if let Some(i) = &about {
                writeln!(out, "\n{i}")?;
            }
        }
        let (sign, on) = match c.status {
            Status::Ok => ("ok", ""),
            Status::Note => ("note", "\x1b[33m"),
            Status::Problem => ("PROBLEM", "\x1b[1;91m"),
        };
        let (on, off) = if colour && !on.is_empty() { (on, "\x1b[0m") } else { ("", "") };
        writeln!(out, "  {on}{sign:<8}{off}{:<13} {}", c.check, c.says)?;
        if let Some(a) = &c.advice {
            writeln!(out, "  {:<21} → {a}", "")?;
        }
    }
    let verdict = if can_see(checks) {
        "RoCE that passes here can be seen."
    } else {
        "RoCE cannot be seen here: see the lines marked PROBLEM."
    };
    writeln!(out, "\n{verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(interface: Option<&str>, status: Status) -> Check {
        Check { check: "x", interface: interface.map(str::to_owned), status, says: String::new(), advice: None }
    }

    #[test]
    fn one_interface_without_a_problem_is_enough() {
        let ok = check(None, Status::Ok);
        assert!(can_see(&[ok.clone(), check(Some("a"), Status::Note)]));
        assert!(can_see(&[ok.clone(), check(Some("a"), Status::Problem), check(Some("b"), Status::Ok)]));
        assert!(!can_see(&[ok.clone(), check(Some("a"), Status::Ok), check(Some("a"), Status::Problem)]));
        assert!(!can_see(&[check(None, Status::Problem), check(Some("a"), Status::Ok)]));
        assert!(!can_see(&[ok]));
    }

    #[test]
    fn kernels_compare() {
        assert!(at_least("6.6.0-rc1", (6, 6)));
        assert!(!at_least("6.1.0-40-amd64", (6, 6)));
        assert!(at_least("6.18.44", (6, 6)));
        assert!(at_least("strange", (6, 6)));
    }

    #[test]
    fn a_card_that_bypasses_the_kernel_is_a_problem() {
        let i = Interface {
            index: 2,
            name: "ens1".to_owned(),
            mtu: 4200,
            up: true,
            running: true,
            promiscuous: true,
            xdp: None,
        };
        let d = rdma::Device {
            name: "mlx5_0".to_owned(),
            kind: rdma::Kind::Hardware("mlx5_core".to_owned()),
            interfaces: ["ens1".to_owned()].into(),
        };
        let mut out = Vec::new();
        interface(&i, "6.6.1", &[d], &mut out);
        assert!(
            out.iter().any(|c| c.check == "rdma" && c.status == Status::Problem && c.says.contains("past the kernel"))
        );
        assert!(!can_see(&out));
    }
}
