//! The kernel's counters as a source, with what can be said about their interfaces.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use dissector::frame::LinkType;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use roce_ebpf::abi::Direction;
use roce_ebpf::abi::event::kind;

use crate::attach::{Attach, Mode};
use crate::cli::{Top, XdpMode};
use crate::iface;
use crate::live_findings::Headers;
use crate::load::{NOTABLE, Options};
use crate::maps;
use crate::rdma;
use crate::record::Recorder;
use crate::say;
use crate::snapshot;
use crate::source::{Cumulative, Event, Notice, Source, State, Tap};
use crate::stop::Stop;
use crate::{fault, live_findings};

/// Seconds without RoCE after which something is said about it.
const QUIET: Duration = Duration::from_secs(5);
/// Least time between two runs of the rules.
const RULES: Duration = Duration::from_secs(2);
/// Events that are kept between two reports.
const EVENTS: usize = 4096;
/// Longest wait on the ring before the wish to stop is looked at.
const SLICE_MS: u16 = 100;
/// Bytes of the event ring when packets are recorded.
const RECORDING_RING: u32 = 64 << 20;

/// Interfaces that are being watched.
pub struct Live {
    kernel: snapshot::Live,
    recorder: Option<Recorder>,
    started: Instant,
    due: Instant,
    events: std::collections::VecDeque<Event>,
    last: Option<Last>,
    hint: Option<(Instant, Vec<String>)>,
    /// `None` when nobody looks at them.
    findings: Option<Findings>,
}

/// What the rules say, asked no more often than a person reads.
struct Findings {
    headers: Headers,
    asked: Option<Instant>,
    said: Vec<Notice>,
}

/// What the latest snapshot said beside the counts.
#[derive(Clone, Copy, Default)]
struct Last {
    packets: u64,
    roce: u64,
    overflow: u64,
    lost: u64,
    unexplained: i64,
}

impl Live {
    /// Attaches to the interfaces; `events` if somebody looks at them.
    pub fn start(top: &Top, events: bool) -> Result<Self> {
        let recording = top.write.is_some();
        let options = Options {
            port: top.port,
            max_flows: top.max_flows,
            events: if events { NOTABLE | kind::NEW_FLOW } else { 0 },
            sample_every: u32::from(recording),
            snaplen: top.snaplen,
            ring_bytes: if recording { RECORDING_RING } else { Options::default().ring_bytes },
            ..Options::default()
        };
        let how = Attach {
            mode: match top.xdp_mode {
                XdpMode::Auto => Mode::Auto,
                XdpMode::Driver => Mode::Driver,
                XdpMode::Skb => Mode::Skb,
            },
            no_egress: top.no_egress,
            ..Attach::default()
        };
        let live = snapshot::Live::start(&top.interface, &options, &how)?;
        // only now: a roce-top that is refused leaves an older recording as it is
        let recorder =
            top.write.as_deref().map(|path| Recorder::create(path, &top.interface, top.snaplen)).transpose()?;
        let now = Instant::now();
        Ok(Self {
            kernel: live,
            recorder,
            started: now,
            due: now,
            events: std::collections::VecDeque::new(),
            last: None,
            hint: None,
            findings: events.then(|| Findings { headers: Headers::new(top.port), asked: None, said: Vec::new() }),
        })
    }

    /// "eth0 (XDP driver, TC egress)", for each interface.
    pub fn describe(&self) -> Vec<Tap> {
        self.kernel.taps().iter().map(|t| Tap { name: t.interface.name.clone(), how: t.how() }).collect()
    }

    fn drain(&mut self) -> Result<()> {
        let lost = self.last.map_or(0, |l| l.lost);
        while let Some((tap, e)) = self.kernel.next_event() {
            if let Some(r) = &mut self.recorder
                && let Err(e) = r.packet(tap, &e, lost)
            {
                // said once
                self.recorder = None;
                return Err(e);
            }
            if let Some(f) = &mut self.findings {
                f.headers.push(&e);
            }
            let Some(kind) = word(e.kinds) else { continue };
            if self.events.len() == EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(Event {
                at: e.at.seconds(),
                kind,
                header: e.bytes,
                wire_len: e.wire_len as usize,
                link: LinkType::ETHERNET,
            });
        }
        Ok(())
    }

    /// Waits, writing down what the ring brings meanwhile; `false` if the wish to stop came first.
    fn wait(&mut self, stop: &Stop) -> Result<bool> {
        if self.recorder.is_none() {
            return Ok(stop.sleep_until(self.due));
        }
        loop {
            self.drain()?;
            if stop.is_set() {
                return Ok(false);
            }
            let left = self.due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(true);
            }
            let wait = u16::try_from(left.as_millis()).unwrap_or(SLICE_MS).clamp(1, SLICE_MS);
            let fds = self.kernel.event_fds();
            let mut fds: Vec<PollFd<'_>> = fds.iter().map(|f| PollFd::new(f.as_fd(), PollFlags::POLLIN)).collect();
            match poll(&mut fds, PollTimeout::from(wait)) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(e) => return Err(std::io::Error::from(e).into()),
            }
        }
    }

    /// What roce-fault does on these interfaces, by what it says in its lock.
    fn faults(&self) -> Vec<String> {
        let mut out = Vec::new();
        for tap in self.kernel.taps() {
            let Some(h) = fault::lock::holder(&tap.interface) else { continue };
            out.push(format!("{}: scenario \"{}\", process {}", tap.interface.name, h.scenario, h.pid));
            out.extend(h.rules.iter().map(|r| format!("  {r}")));
        }
        out
    }

    /// Why there may be nothing to see, looked up at most every few seconds.
    fn hints(&mut self) -> Vec<String> {
        let Some(last) = self.last else { return Vec::new() };
        let quiet = self.started.elapsed();
        if last.roce > 0 || quiet < QUIET {
            return Vec::new();
        }
        if let Some((at, hint)) = &self.hint
            && at.elapsed() < QUIET
        {
            return hint.clone();
        }
        let mut out = Vec::new();
        let devices = rdma::devices();
        for tap in self.kernel.taps() {
            let name = &tap.interface.name;
            let hardware =
                devices.iter().find(|d| d.interfaces.contains(name) && matches!(d.kind, rdma::Kind::Hardware(_)));
            if let Some(d) = hardware {
                out.push(format!(
                    "no RoCE on {name}: {} moves its RoCE past the kernel, in hardware; use a mirror port",
                    d.name
                ));
            } else if last.packets == 0 {
                out.push(format!("no packet at all on {name} for {} s: is it the right interface?", quiet.as_secs()));
            } else if iface::Interface::named(name).is_ok_and(|i| !i.promiscuous) {
                out.push(format!(
                    "no RoCE on {name} for {} s, {} other packets; on a mirror port: ip link set {name} promisc on",
                    quiet.as_secs(),
                    last.packets
                ));
            } else {
                out.push(format!(
                    "no RoCE on {name} for {} s, {} other packets; try roce-top doctor -i {name}",
                    quiet.as_secs(),
                    last.packets
                ));
            }
        }
        self.hint = Some((Instant::now(), out.clone()));
        out
    }
}

/// Why an event is shown; the worst of its reasons.
fn word(kinds: u32) -> Option<&'static str> {
    [
        (kind::NAK, "NAK"),
        (kind::RNR, "RNR"),
        (kind::REPEAT, "repeat"),
        (kind::GAP, "gap"),
        (kind::CNP, "CNP"),
        (kind::LATE, "late"),
    ]
    .iter()
    .find_map(|(bit, word)| (kinds & bit != 0).then_some(*word))
}

impl Source for Live {
    fn counts(&mut self) -> Result<Cumulative> {
        let s = self.kernel.snapshot()?;
        self.last = Some(Last {
            packets: s.totals.packets,
            roce: s.totals.roce_packets,
            overflow: s.totals.overflow_packets,
            lost: s.totals.events_lost,
            unexplained: s.unexplained,
        });
        self.drain()?;
        if let Some(r) = &mut self.recorder
            && let Err(e) = r.flush()
        {
            self.recorder = None;
            return Err(e);
        }
        if let Some(f) = &mut self.findings
            && f.asked.is_none_or(|t| t.elapsed() >= RULES)
        {
            f.asked = Some(Instant::now());
            f.said = live_findings::merged(live_findings::of(&s.flows), f.headers.findings());
        }
        Ok(Cumulative { at: s.at.seconds(), totals: s.totals, flows: s.flows, last: false })
    }

    fn next(&mut self, interval: Duration, stop: &Stop) -> Result<Option<Cumulative>> {
        let now = Instant::now();
        self.due += interval;
        // after a pause (a stopped process, a longer interval before) there is nothing to catch up
        if self.due < now || self.due > now + interval {
            self.due = now + interval;
        }
        let last = !self.wait(stop)? || stop.is_set();
        let counts = Cumulative { last, ..self.counts()? };
        if last {
            self.finish()?;
        }
        Ok(Some(counts))
    }

    fn state(&mut self) -> State {
        let mut notices = self.kernel.trouble();
        notices.extend(self.hints());
        if let Some(l) = self.last {
            if l.unexplained != 0 {
                notices.push(format!("{} packets are counted that no flow explains: this is a bug", l.unexplained));
            }
            if l.overflow > 0 {
                notices.push(format!(
                    "the flow table is full: {} packets are in the totals only (--max-flows)",
                    l.overflow
                ));
            }
            if l.lost > 0 && self.recorder.is_some() {
                notices.push(format!("{} packets are not in the recording: the ring was full", l.lost));
            }
        }
        notices.extend(self.kernel.taps().iter().flat_map(|t| t.notes.iter().cloned()));
        let findings = self.findings.as_ref().map(|f| f.said.clone()).unwrap_or_default();
        State { taps: self.describe(), notices, findings, faults: self.faults(), ..State::default() }
    }

    fn events(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }

    /// Writes down what the ring still holds, and what it could not hold.
    fn finish(&mut self) -> Result<()> {
        if self.recorder.is_none() {
            return Ok(());
        }
        // whatever comes of it, once is enough
        let drained = self.drain();
        let Some(r) = self.recorder.take() else { return Ok(()) };
        drained?;
        let mut lost = Vec::new();
        for tap in self.kernel.taps() {
            let one = |d| Ok::<u64, crate::error::Error>(maps::totals(&tap.ebpf, d)?.events_lost);
            lost.push(one(Direction::In)? + one(Direction::Out)?);
        }
        r.finish(&lost)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Err(e) = self.finish() {
            say!("{e:#}");
        }
    }
}
