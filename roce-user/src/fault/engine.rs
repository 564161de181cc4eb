//! The rules in the kernel: loaded, armed, attached; what they did; and nothing of it left afterwards.

use std::mem::size_of;
use std::os::fd::AsFd;
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, Map, MapData, PerCpuArray, RingBuf};
use aya::programs::TcAttachType;
use dissector::capture::Timestamp;
use dissector::wire::ROCE_UDP_PORT;
use dissector::wire::outer::VLAN_LEN;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use roce_ebpf::abi::fault::{
    self as abi, FOREVER, FaultConfig, FaultCounters, FaultEvent, FaultMatch, FaultMatches, FaultPassed, FaultTally,
    FaultWatch, FrameHead, MAX_RULES, map,
};

use roce_ebpf::abi::tag::put_back;

use super::lower;
use super::rule::{Direction, Fault, Rule};
use crate::attach::{Mode, Tc, attach_tc, attach_xdp};
use crate::error::Error;
use crate::iface::{Interface, XdpHolder};
use crate::load::{self, Options};
use crate::ring::on_the_wire;
use crate::snapshot::{Clock, monotonic};

/// How often the kernel is told that we are still there, where a program could outlive us.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a program that outlived us goes on.
const ALONE: Duration = Duration::from_secs(5);

/// What to load.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Rules.
    pub rules: &'a [Rule],
    /// Seed.
    pub seed: u64,
    /// UDP port of RoCEv2.
    pub port: Option<u16>,
    /// Count and report, change nothing.
    pub dry: bool,
    /// Report every RoCE packet, not only those that a rule acts on.
    pub watch: bool,
    /// Report the packets that rules act on in full.
    pub frames: bool,
    /// XDP mode.
    pub mode: Mode,
    /// How TC programs are attached.
    pub tc: Tc,
}

/// A packet that a rule acted on.
#[derive(Clone, Debug)]
pub struct Whole {
    /// [`FaultEvent::serial`] of the injection.
    pub serial: u64,
    /// As it was if it is gone, else as it went on.
    pub bytes: Vec<u8>,
}

/// An injection, as the kernel reports it.
#[derive(Clone, Debug)]
pub struct Injection {
    /// Wall clock.
    pub at: Timestamp,
    /// The record.
    pub event: FaultEvent,
}

/// A RoCE packet that went by.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Wall clock.
    pub at: Timestamp,
    /// The record.
    pub record: FaultWatch,
}

/// Bytes of a tag.
#[expect(clippy::cast_possible_truncation, reason = "a constant of 4")]
const TAG: u32 = VLAN_LEN as u32;

/// Puts a tag back into reported bytes; how many there are then.
fn with_tag(tag: u32, bytes: &mut [u8], len: u32) -> u32 {
    u32::try_from(put_back(tag, bytes, len as usize)).unwrap_or(len)
}

/// What a report says of a frame whose VLAN tag the kernel keeps beside it, as it is on the wire.
fn tagged(e: &mut FaultEvent) {
    if e.tag == 0 {
        return;
    }
    e.length += TAG;
    e.length_after += TAG;
    e.bth += TAG;
    e.before_len = with_tag(e.tag, &mut e.before, e.before_len);
    e.after_len = with_tag(e.tag, &mut e.after, e.after_len);
}

/// Rules in the kernel. Dropping it takes them out.
pub struct Engine {
    ebpf: Ebpf,
    config: Array<MapData, FaultConfig>,
    tallies: Array<MapData, FaultTally>,
    counters: Array<MapData, FaultCounters>,
    passed: PerCpuArray<MapData, FaultPassed>,
    events: RingBuf<MapData>,
    watch: RingBuf<MapData>,
    frames: RingBuf<MapData>,
    tables: lower::Tables,
    rules: usize,
    clock: Clock,
    /// Ends of the run on the monotonic clock, ns.
    ends: u64,
    /// A program may outlive us (no BPF link on this kernel).
    may_outlive: bool,
    told: u64,
    /// Packets before the rules were active.
    before: u64,
    needs_tc: bool,
    mode: Mode,
    tc: Tc,
    inward: bool,
    outward: bool,
    wants_in: bool,
}

fn unusable(name: &str, why: impl std::fmt::Display) -> Error {
    Error::Map { name: name.to_owned(), why: why.to_string() }
}

fn take(ebpf: &mut Ebpf, name: &str) -> Result<Map, Error> {
    ebpf.take_map(name).ok_or_else(|| unusable(name, "it is not there"))
}

impl Engine {
    /// Loads the object and writes the rules; nothing is attached yet, and nothing fires.
    pub fn new(setup: &Setup<'_>, interfaces: &[Interface]) -> Result<Self, Error> {
        let options = Options {
            port: setup.port.unwrap_or(ROCE_UDP_PORT),
            max_flows: 1,
            ring_bytes: 4096,
            faults: true,
            fault_frames: setup.frames,
            ..Options::default()
        };
        let mut ebpf = load::load(&options)?;
        let index = |name: &str| interfaces.iter().find(|i| i.name == name).map(|i| i.index);
        let mut tables = lower::lower(setup.rules, setup.seed, index);
        if setup.dry {
            tables.config.flags |= abi::CONFIG_DRY;
        }
        if setup.watch {
            tables.config.flags |= abi::CONFIG_WATCH;
        }
        fill(&mut ebpf, map::OPCODES, &tables.opcodes)?;
        if setup.frames {
            tables.config.flags |= abi::CONFIG_FRAMES;
        }
        fill(&mut ebpf, map::PSNS, &tables.psns)?;
        fill(&mut ebpf, map::PICKS, std::slice::from_ref(&*tables.picks))?;
        fill(&mut ebpf, map::TOS, &tables.tos)?;
        fill(&mut ebpf, map::SYNDROMES, &tables.syndromes)?;
        let mut rows = [FaultMatch::default(); MAX_RULES];
        for (row, m) in rows.iter_mut().zip(&tables.matches) {
            *row = *m;
        }
        fill(&mut ebpf, map::MATCHES, &[FaultMatches { rows }])?;
        fill(&mut ebpf, map::RULES, &tables.rules)?;
        fill(&mut ebpf, map::QPNS, &tables.qpns)?;
        let has = |d: Direction| {
            setup.watch || setup.rules.iter().any(|r| r.direction == d || r.direction == Direction::Both)
        };
        Ok(Self {
            config: Array::try_from(take(&mut ebpf, map::CONFIG)?).map_err(|e| unusable(map::CONFIG, e))?,
            tallies: Array::try_from(take(&mut ebpf, map::TALLIES)?).map_err(|e| unusable(map::TALLIES, e))?,
            counters: Array::try_from(take(&mut ebpf, map::COUNTERS)?).map_err(|e| unusable(map::COUNTERS, e))?,
            passed: PerCpuArray::try_from(take(&mut ebpf, map::PASSED)?).map_err(|e| unusable(map::PASSED, e))?,
            events: RingBuf::try_from(take(&mut ebpf, map::EVENTS)?).map_err(|e| unusable(map::EVENTS, e))?,
            watch: RingBuf::try_from(take(&mut ebpf, map::WATCH)?).map_err(|e| unusable(map::WATCH, e))?,
            frames: RingBuf::try_from(take(&mut ebpf, map::FRAMES)?).map_err(|e| unusable(map::FRAMES, e))?,
            rules: setup.rules.len(),
            clock: Clock::now(),
            ends: FOREVER,
            may_outlive: false,
            told: 0,
            before: 0,
            needs_tc: setup.rules.iter().any(|r| {
                let in_tc = match r.fault {
                    // an XDP program cannot make packets
                    Fault::Duplicate => true,
                    // where a frame lies in fragments, veth (6.18: veth_xdp_rcv_skb) forgets to shorten what XDP has cut
                    Fault::Truncate(_) => setup.mode != Mode::Driver,
                    _ => false,
                };
                in_tc && r.direction != Direction::Out
            }),
            mode: setup.mode,
            tc: setup.tc,
            wants_in: setup.rules.iter().any(|r| r.direction == Direction::In),
            inward: has(Direction::In),
            outward: has(Direction::Out),
            tables,
            ebpf,
        })
    }

    /// Attaches to an interface; says how, in words. The rules do not fire before [`Engine::arm`].
    pub fn attach(&mut self, interface: &Interface) -> Result<String, Error> {
        let mut how = Vec::new();
        // what goes out on the loopback comes in again: one look is enough
        let inward = self.inward && !(self.outward && interface.name == "lo" && !self.wants_in);
        if inward {
            let mut notes = Vec::new();
            let xdp = if self.needs_tc {
                None
            } else {
                match attach_xdp(&mut self.ebpf, interface, abi::XDP_INGRESS, self.mode, &mut notes) {
                    Ok(_) => Some(Interface::named(&interface.name)?.xdp.map_or("XDP", |x| x.mode.name())),
                    // another user's roce-fault, whose lock is not where ours is
                    Err(Error::XdpTaken { holder, .. }) if !holder.is_fault() => {
                        how.push(taken(&holder));
                        None
                    }
                    Err(e) => return Err(e),
                }
            };
            if let Some(mode) = xdp {
                how.push(format!("XDP {mode}"));
            } else {
                attach_tc(&mut self.ebpf, interface, abi::TC_INGRESS, TcAttachType::Ingress, self.tc)?;
                self.may_outlive |= !self.tc.is_link();
                how.push("TC ingress".into());
            }
        }
        if self.outward {
            attach_tc(&mut self.ebpf, interface, abi::TC_EGRESS, TcAttachType::Egress, self.tc)?;
            self.may_outlive |= !self.tc.is_link();
            how.push("TC egress".into());
        }
        Ok(how.join(", "))
    }

    /// Starts the clock of the rules, for at most so long.
    pub fn arm(&mut self, limit: Duration) -> Result<(), Error> {
        // what came by while we attached was no business of the rules
        self.before = self.looked_at()?.packets;
        let now = monotonic();
        self.ends = now.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(FOREVER));
        self.tables.config.started_ns = now;
        self.tell(now)
    }

    /// Rules fire no more.
    pub fn disarm(&mut self) -> Result<(), Error> {
        self.tables.config.active = 0;
        self.tell(monotonic())
    }

    fn tell(&mut self, now: u64) -> Result<(), Error> {
        let alone = u64::try_from(ALONE.as_nanos()).unwrap_or(FOREVER);
        self.tables.config.until_ns =
            if self.may_outlive { self.ends.min(now.saturating_add(alone)) } else { self.ends };
        self.told = now;
        self.config.set(0, self.tables.config, 0).map_err(|e| unusable(map::CONFIG, e))
    }

    /// Waits for reports, at most so long; a program that may outlive us is told that we are there.
    pub fn wait(&mut self, most: Duration) -> Result<(), Error> {
        let now = monotonic();
        let beat = u64::try_from(HEARTBEAT.as_nanos()).unwrap_or(FOREVER);
        if self.may_outlive && self.tables.config.active != 0 && now.saturating_sub(self.told) > beat {
            self.tell(now)?;
        }
        let rings = [&self.events, &self.watch, &self.frames];
        let mut fds = rings.map(|r| PollFd::new(r.as_fd(), PollFlags::POLLIN));
        let ms = u16::try_from(most.as_millis().max(1)).unwrap_or(u16::MAX);
        match poll(&mut fds, PollTimeout::from(ms)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(e) => Err(Error::system("cannot wait for the kernel program's reports", e.into())),
        }
    }

    /// The next injection that is reported.
    pub fn next_injection(&mut self) -> Option<Injection> {
        let item = self.events.next()?;
        let mut event = record::<FaultEvent>(&item)?;
        tagged(&mut event);
        Some(Injection { at: self.clock.wall(event.at_ns), event })
    }

    /// The next whole packet. Its injection is reported before it.
    pub fn next_frame(&mut self) -> Option<Whole> {
        let item = self.frames.next()?;
        let (head, bytes) = item.split_at_checked(size_of::<FrameHead>())?;
        let head = record::<FrameHead>(head)?;
        let bytes = bytes.get(..bytes.len().min(head.len as usize))?;
        Some(Whole { serial: head.serial, bytes: on_the_wire(head.tag, bytes) })
    }

    /// The next watched packet.
    pub fn next_seen(&mut self) -> Option<Seen> {
        let item = self.watch.next()?;
        let mut record = record::<FaultWatch>(&item)?;
        if record.tag != 0 {
            record.length += TAG;
            record.head_len = with_tag(record.tag, &mut record.head, record.head_len);
        }
        Some(Seen { at: self.clock.wall(record.at_ns), record })
    }

    /// What each rule has done.
    pub fn tallies(&self) -> Result<Vec<FaultTally>, Error> {
        (0..self.rules)
            .map(|n| {
                let n = u32::try_from(n).unwrap_or(u32::MAX);
                self.tallies.get(&n, 0).map_err(|e| unusable(map::TALLIES, e))
            })
            .collect()
    }

    /// Counters of the engine.
    pub fn counters(&self) -> Result<FaultCounters, Error> {
        self.counters.get(&0, 0).map_err(|e| unusable(map::COUNTERS, e))
    }

    /// Packets that came by while the rules were active, and RoCE packets among them.
    pub fn passed(&self) -> Result<FaultPassed, Error> {
        let all = self.looked_at()?;
        Ok(FaultPassed { packets: all.packets.saturating_sub(self.before), ..all })
    }

    fn looked_at(&self) -> Result<FaultPassed, Error> {
        let all = self.passed.get(&0, 0).map_err(|e| unusable(map::PASSED, e))?;
        Ok(all
            .iter()
            .fold(FaultPassed::default(), |a, b| FaultPassed { packets: a.packets + b.packets, roce: a.roce + b.roce }))
    }

    /// The object, for tests that run its programs on frames of their own.
    pub fn object(&mut self) -> &mut Ebpf {
        &mut self.ebpf
    }
}

fn taken(holder: &XdpHolder) -> String {
    format!("XDP is taken ({holder})")
}

fn fill<T: aya::Pod>(ebpf: &mut Ebpf, name: &str, values: &[T]) -> Result<(), Error> {
    let map = ebpf.map_mut(name).ok_or_else(|| unusable(name, "it is not there"))?;
    let mut array: Array<_, T> = Array::try_from(map).map_err(|e| unusable(name, e))?;
    for (n, v) in (0u32..).zip(values) {
        array.set(n, v, 0).map_err(|e| unusable(name, e))?;
    }
    Ok(())
}

fn record<T: Copy>(bytes: &[u8]) -> Option<T> {
    if bytes.len() != size_of::<T>() {
        return None;
    }
    // SAFETY: as long as the struct, which is plain integers (the ABI asserts its size); unaligned reads are allowed.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
