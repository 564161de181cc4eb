//! What the kernel has counted so far, as rows: CPUs added up, ended flows remembered, directions joined.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{SystemTime, UNIX_EPOCH};

use dissector::capture::Timestamp;
use dissector::flow::row::{Ecn, Endpoint, FlowRow, IcrcCounts, Naks, OpcodeCounts, Totals};
use dissector::wire::opcode::{FLAGS, Flags, byte};
use dissector::wire::{Class, Transport, outer};
use roce_ebpf::abi::counters::{
    ANSWERED, NAK_RESERVED, NAK_RNR, NAK_UNKNOWN, NO_VLAN, OP_CNP, OP_OTHER, REQUESTS, RESPONSES,
};
use roce_ebpf::abi::key::{NO_QP, family};
use roce_ebpf::abi::{self, Direction, Flow};
use roce_ebpf::sequence::Track;

use crate::attach::{Attach, Tap};
use crate::error::Error;
use crate::load::Options;
use crate::maps::{self, Key, Table};
use crate::ring::{Event, Events};

/// A flow that was silent for so long may leave the kernel's map when that gets full, nanoseconds.
const IDLE: u64 = 10_000_000_000;
/// Ended flows whose rows are kept; the packets of older ones count as overflow.
const REMEMBERED: usize = 1 << 18;
/// How close an answer's PSN must lie to a request's for the two flows to be one queue pair's.
const NEAR: u32 = 1 << 9;

/// Cumulative counts.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When.
    pub at: Timestamp,
    /// Sums. `roce_packets` is the sum over `flows` plus `overflow_packets`.
    pub totals: Totals,
    /// All flows that were ever seen (since the start).
    pub flows: Vec<FlowRow>,
    /// Where each of `flows` was seen: index of the tap, and whether outgoing.
    pub places: Vec<Place>,
    /// RoCE packets by opcode.
    pub opcodes: Vec<(u8, u64)>,
    /// Fragments of UDP datagrams, among the other packets.
    pub fragments: u64,
    /// Packets to the RoCE port without a whole BTH, among the other packets.
    pub malformed: u64,
    /// RoCE packets that the programs' own sum has and the flows lack (or the other way round, negative). Always 0 unless
    /// something is wrong.
    pub unexplained: i64,
}

/// Where a flow was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index of the tap.
    pub tap: u16,
    /// Leaving the host.
    pub outgoing: bool,
}

/// From the kernel's monotonic clock to the time of day.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds between the epoch and the monotonic clock's zero.
    offset: i64,
}

impl Clock {
    /// As of now.
    pub fn now() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let offset = i128::try_from(wall).unwrap_or(0) - i128::from(monotonic());
        Self { offset: i64::try_from(offset).unwrap_or(0) }
    }

    /// Time of day of a monotonic time.
    pub fn wall(self, mono: u64) -> Timestamp {
        Timestamp(i64::try_from(mono).unwrap_or(i64::MAX).saturating_add(self.offset))
    }
}

/// Nanoseconds of the monotonic clock, which the kernel program stamps with.
pub(crate) fn monotonic() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    let seconds = u64::try_from(t.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(t.tv_nsec).unwrap_or(0))
}

/// A flow, whichever CPU counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct FlowId {
    tap: u16,
    direction: u16,
    v1: bool,
    src: IpAddr,
    dst: IpAddr,
    dest_qp: u32,
    src_qp: u32,
}

/// What one flow comes to over all CPUs.
#[derive(Clone)]
struct Sum {
    flow: Flow,
}

impl FlowId {
    /// Of a flow in a tap's table; `None` if the slot is empty.
    fn of(flow: &Flow, tap: u16) -> Option<Self> {
        Some(match maps::key(flow)? {
            Key::V4(k) => Self {
                tap,
                direction: k.direction,
                v1: false,
                src: IpAddr::V4(Ipv4Addr::from(k.src)),
                dst: IpAddr::V4(Ipv4Addr::from(k.dst)),
                dest_qp: k.dest_qp,
                src_qp: k.src_qp,
            },
            Key::V6(k) => Self {
                tap,
                direction: k.direction,
                v1: k.family == family::GID,
                src: IpAddr::V6(Ipv6Addr::from(k.src)),
                dst: IpAddr::V6(Ipv6Addr::from(k.dst)),
                dest_qp: k.dest_qp,
                src_qp: k.src_qp,
            },
        })
    }
}

/// A flow that was taken out of the kernel's sight, whose slot some CPU may still be at.
struct Retired {
    tap: u16,
    slot: usize,
    id: FlowId,
}

/// Interfaces that are being counted.
pub struct Live {
    taps: Vec<Tap>,
    events: Vec<Events>,
    counts: Counts,
}

impl Live {
    /// Attaches to interfaces.
    pub fn start<S: AsRef<str>>(names: &[S], options: &Options, how: &Attach) -> Result<Self, Error> {
        let mut taps = Vec::new();
        let mut events = Vec::new();
        for name in names {
            let mut tap = Tap::new(name.as_ref(), options, how)?;
            events.push(Events::of(&mut tap.ebpf)?);
            taps.push(tap);
        }
        Ok(Self { taps, events, counts: Counts::default() })
    }

    /// The interfaces.
    pub fn taps(&self) -> &[Tap] {
        &self.taps
    }

    /// Their programs and maps, for the fault engine.
    pub fn taps_mut(&mut self) -> &mut [Tap] {
        &mut self.taps
    }

    /// Counts as of now.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        for log in self.taps.iter_mut().filter_map(|t| t.log.as_mut()) {
            log.drain();
        }
        let objects: Vec<_> = self.taps.iter().map(|t| &t.ebpf).collect();
        self.counts.take(&objects)
    }

    /// The next reported packet and the index of its tap.
    pub fn next_event(&mut self) -> Option<(usize, Event)> {
        self.events.iter_mut().enumerate().find_map(|(i, e)| e.next_event().map(|e| (i, e)))
    }

    /// Descriptors to wait on for events.
    pub fn event_fds(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        self.events.iter().map(Events::fd).collect()
    }

    /// What is wrong with the interfaces now, as sentences.
    pub fn trouble(&self) -> Vec<String> {
        self.taps.iter().flat_map(Tap::trouble).collect()
    }
}

/// Reads loaded objects and remembers what has left their maps.
#[derive(Default)]
pub struct Counts {
    ids: HashMap<FlowId, u32>,
    /// Next of `ids`.
    next_id: u32,
    /// Flows and their other directions, once known.
    pairs: HashMap<FlowId, FlowId>,
    ended: HashMap<FlowId, Sum>,
    retired: Vec<Retired>,
    /// Packets and bytes of flows that are not even remembered.
    forgotten: (u64, u64),
}

impl Counts {
    /// Counts of these objects as of now.
    pub fn take(&mut self, objects: &[&aya::Ebpf]) -> Result<Snapshot, Error> {
        let clock = Clock::now();
        let before = totals(objects)?;
        self.settle(objects)?;
        let mut sums = self.ended.clone();
        for (tap, ebpf) in objects.iter().enumerate() {
            // more interfaces than 65,535 cannot be asked for
            let tap = u16::try_from(tap).unwrap_or(u16::MAX);
            self.read(ebpf, tap, &mut sums)?;
        }
        let after = totals(objects)?;
        Ok(self.rows(clock, sums, &before, &after))
    }

    fn read(&mut self, ebpf: &aya::Ebpf, tap: u16, sums: &mut HashMap<FlowId, Sum>) -> Result<(), Error> {
        let table = Table::of(ebpf)?;
        let now = monotonic();
        let mut there = 0;
        let mut entries = Vec::new();
        let mut latest: HashMap<FlowId, u64> = HashMap::new();
        for slot in 0..table.used()? {
            let Some(flow) = table.get(slot) else { continue };
            let Some(id) = FlowId::of(&flow, tap) else { continue };
            there += 1;
            entries.push((slot, id));
            let last = latest.entry(id).or_insert(flow.last);
            *last = flow.last.max(*last);
            add(sums, id, &flow);
        }
        if there > table.room / 4 * 3 {
            // all entries of a flow go together: one of them keeps the PSNs of all
            for (slot, id) in entries {
                if latest.get(&id).is_some_and(|last| now.saturating_sub(*last) <= IDLE) {
                    continue;
                }
                let Some(flow) = table.get(slot) else { continue };
                table.retire(slot, &flow)?;
                self.retired.push(Retired { tap, slot, id });
            }
        }
        Ok(())
    }

    /// Reads flows that were retired at the last report once more, now that no CPU is at them, and gives their slots
    /// back. Their counts stay.
    fn settle(&mut self, objects: &[&aya::Ebpf]) -> Result<(), Error> {
        if self.retired.is_empty() {
            return Ok(());
        }
        let tables = objects.iter().map(|e| Table::of(e)).collect::<Result<Vec<_>, _>>()?;
        for r in std::mem::take(&mut self.retired) {
            let Some(table) = tables.get(usize::from(r.tap)) else { continue };
            if let Some(flow) = table.get(r.slot) {
                add(&mut self.ended, r.id, &flow);
            }
            table.give_back(r.slot)?;
        }
        if self.ended.len() > REMEMBERED {
            let mut ages: Vec<_> = self.ended.iter().map(|(id, s)| (s.flow.last, *id)).collect();
            ages.sort_unstable();
            for (_, id) in ages.iter().take(REMEMBERED / 4) {
                if let Some(s) = self.ended.remove(id) {
                    self.forgotten.0 += packets(&s.flow);
                    self.forgotten.1 += s.flow.bytes;
                    self.ids.remove(id);
                    if let Some(other) = self.pairs.remove(id) {
                        self.pairs.remove(&other);
                    }
                }
            }
        }
        Ok(())
    }

    fn rows(
        &mut self,
        clock: Clock,
        sums: HashMap<FlowId, Sum>,
        before: &abi::Totals,
        after: &abi::Totals,
    ) -> Snapshot {
        let mut all: Vec<(FlowId, Sum)> = sums.into_iter().collect();
        // a steady order: by the time of the first packet
        all.sort_unstable_by_key(|(id, s)| (s.flow.first, *id));
        let mut flows = Vec::with_capacity(all.len());
        let mut places = Vec::with_capacity(all.len());
        let (mut sum_packets, mut sum_bytes) = (0u64, 0u64);
        for (id, s) in &all {
            let next = &mut self.next_id;
            let number = *self.ids.entry(*id).or_insert_with(|| {
                *next = next.wrapping_add(1);
                *next
            });
            let row = row(number, *id, &s.flow, clock);
            sum_packets += row.packets;
            sum_bytes += row.bytes;
            places.push(Place { tap: id.tap, outgoing: id.direction == Direction::Out as u16 });
            flows.push(row);
        }
        join(&all, &mut self.pairs);
        for ((id, _), row) in all.iter().zip(&mut flows) {
            if let Some(other) = self.pairs.get(id) {
                row.pair = self.ids.get(other).copied();
                row.src_qp = row.src_qp.or(Some(other.dest_qp));
            }
        }
        // packets went on while the maps were read: the flows hold at least what was counted before, and at most
        // what was counted after
        let overflow = after.overflow_packets + self.forgotten.0;
        let overflow_bytes = after.overflow_bytes + self.forgotten.1;
        let roce = sum_packets + overflow;
        let (least, most) = (before.roce_packets(), after.roce_packets());
        let unexplained = if roce > most {
            signed(most) - signed(roce)
        } else if roce + IN_FLIGHT < least {
            signed(least) - signed(roce)
        } else {
            0
        };
        let roce_bytes = sum_bytes + overflow_bytes;
        Snapshot {
            at: clock.wall(monotonic()),
            totals: Totals {
                packets: roce + after.other_packets,
                bytes: roce_bytes + after.other_bytes,
                roce_packets: roce,
                roce_bytes,
                other_packets: after.other_packets,
                overflow_packets: overflow,
                events_lost: after.events_lost,
            },
            flows,
            places,
            opcodes: (0..=255).zip(after.opcodes).filter(|(_, n)| *n > 0).collect(),
            fragments: after.fragments,
            malformed: after.malformed,
            unexplained,
        }
    }
}

/// A packet is in its CPU's totals a moment before it is in its flow: one for each CPU that may be at it.
const IN_FLIGHT: u64 = 1024;

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn totals(objects: &[&aya::Ebpf]) -> Result<abi::Totals, Error> {
    let mut sum = abi::Totals::ZERO;
    for ebpf in objects {
        for d in [Direction::In, Direction::Out] {
            sum.add(&maps::totals(ebpf, d)?);
        }
    }
    Ok(sum)
}

fn packets(flow: &Flow) -> u64 {
    flow.ops.iter().fold(0, |n, v| n.wrapping_add(*v))
}

fn add(sums: &mut HashMap<FlowId, Sum>, id: FlowId, flow: &Flow) {
    match sums.entry(id) {
        std::collections::hash_map::Entry::Vacant(v) => {
            v.insert(Sum { flow: *flow });
        }
        std::collections::hash_map::Entry::Occupied(mut o) => {
            merge(&mut o.get_mut().flow, flow);
        }
    }
}

/// Adds another CPU's (or life's) counts of the same flow.
fn merge(a: &mut Flow, b: &Flow) {
    if a.transport == 0 {
        a.transport = b.transport;
    }
    if b.transport == a.transport || b.transport == 0 {
        for (x, y) in a.ops.iter_mut().zip(b.ops) {
            *x = x.wrapping_add(y);
        }
    } else {
        // two CPUs met different transports first; what cannot be shown by name is still counted
        let (cnps, others) = b.ops.split_at(OP_CNP);
        let unnamed = cnps.iter().chain(others.get(1..).unwrap_or(&[])).fold(0u64, |n, v| n.wrapping_add(*v));
        if let (Some(c), Some(n)) = (a.ops.get_mut(OP_CNP), others.first()) {
            *c = c.wrapping_add(*n);
        }
        if let Some(o) = a.ops.get_mut(OP_OTHER) {
            *o = o.wrapping_add(unnamed);
        }
    }
    for (x, y) in a.naks.iter_mut().zip(b.naks).chain(a.ecn.iter_mut().zip(b.ecn)) {
        *x = x.wrapping_add(y);
    }
    for (x, mut y) in a.tracks.iter_mut().zip(b.tracks) {
        if x.next().is_none() {
            // one entry of a flow follows its PSNs
            std::mem::swap(x, &mut y);
        }
        x.repeats = x.repeats.wrapping_add(y.repeats);
        x.missing = x.missing.wrapping_add(y.missing);
        x.late = x.late.wrapping_add(y.late);
        x.restarts = x.restarts.wrapping_add(y.restarts);
    }
    a.bytes = a.bytes.wrapping_add(b.bytes);
    a.messages = a.messages.wrapping_add(b.messages);
    a.dscp_seen |= b.dscp_seen;
    a.first = a.first.min(b.first);
    a.mtu = a.mtu.max(b.mtu);
    if b.answered != 0 && (b.last > a.last || a.answered == 0) {
        a.answered = b.answered;
    }
    if b.last > a.last {
        a.last = b.last;
        (a.tos, a.src_port, a.vlan) = (b.tos, b.src_port, b.vlan);
        if b.other_opcode != 0 {
            a.other_opcode = b.other_opcode;
        }
    }
}

fn row(number: u32, id: FlowId, f: &Flow, clock: Clock) -> FlowRow {
    let base = f.transport.saturating_sub(1) << 5;
    let (mut requests, mut responses, mut acks) = (0, 0, 0);
    let mut opcodes = OpcodeCounts::default();
    for (n, op) in f.ops.iter().take(OP_CNP).zip(0u8..) {
        let opcode = base | op;
        opcodes.add(opcode, *n);
        let flags = FLAGS.get(usize::from(opcode)).copied().unwrap_or(Flags(0));
        if flags.has(Flags::REQUEST) {
            requests += n;
        } else if flags.class() == Class::Ack as u16 {
            acks += n;
        } else if flags.has(Flags::RESPONSE) {
            responses += n;
        }
    }
    let slot = |all: &[u64], n: usize| all.get(n).copied().unwrap_or(0);
    let cnps = slot(&f.ops, OP_CNP);
    opcodes.add(byte::Cnp, cnps);
    opcodes.other = slot(&f.ops, OP_OTHER);
    let negative: u64 = f.naks.iter().sum();
    let [requested, answered] = [REQUESTS, RESPONSES].map(|i| f.tracks.get(i));
    let both = |of: fn(&Track) -> u64| requested.map_or(0, of) + answered.map_or(0, of);
    let total = packets(f);
    FlowRow {
        id: number,
        src: Endpoint::Ip(id.src),
        dst: Endpoint::Ip(id.dst),
        dest_qp: id.dest_qp,
        src_qp: (id.src_qp != NO_QP).then_some(id.src_qp),
        pair: None,
        transport: if f.transport == 0 { Transport::Cnp.name() } else { Transport::of(base).name() },
        ip_version: Some(if id.src.is_ipv4() { 4 } else { 6 }),
        vlan: (f.vlan != NO_VLAN).then_some(f.vlan),
        dscp: Some(outer::dscp(f.tos)),
        udp_srcport: (!id.v1).then_some(f.src_port),
        packets: total,
        bytes: f.bytes,
        first: clock.wall(f.first).seconds(),
        last: clock.wall(f.last).seconds(),
        messages: f.messages,
        opcodes,
        requests,
        responses,
        acks: acks.saturating_sub(negative),
        naks: Naks {
            psn_sequence_error: slot(&f.naks, 0),
            invalid_request: slot(&f.naks, 1),
            remote_access_error: slot(&f.naks, 2),
            remote_operational_error: slot(&f.naks, 3),
            invalid_rd_request: slot(&f.naks, 4),
        },
        rnr_naks: slot(&f.naks, NAK_RNR),
        cnps,
        ecn: Ecn {
            not_ect: slot(&f.ecn, usize::from(outer::ECN_NOT_ECT)),
            ect0: slot(&f.ecn, usize::from(outer::ECN_ECT0)),
            ect1: slot(&f.ecn, usize::from(outer::ECN_ECT1)),
            ce: slot(&f.ecn, usize::from(outer::ECN_CE)),
        },
        // from one point of view the two cannot be told apart without looking at times
        retransmitted: both(|t| t.repeats),
        missing: both(|t| t.missing),
        reordered: both(|t| t.late),
        duplicates: 0,
        icrc: IcrcCounts { unchecked: total, ..IcrcCounts::default() },
        truncated: 0,
    }
}

/// Who talks to whom where: the flows among which a flow's other direction is.
type Group = (u16, bool, IpAddr, IpAddr);

fn group(id: &FlowId) -> Group {
    (id.tap, id.v1, id.src, id.dst)
}

fn reversed((tap, v1, src, dst): Group) -> Group {
    (tap, v1, dst, src)
}

/// Finds the other directions of flows that have none yet: datagrams by their source QP; connections by the
/// PSNs of the answers, which lie where the other direction's requests are; or because no other flow comes into question.
fn join(all: &[(FlowId, Sum)], pairs: &mut HashMap<FlowId, FlowId>) {
    let mut datagrams = HashMap::new();
    let mut groups: HashMap<Group, (u32, usize)> = HashMap::new();
    // requests by where their PSNs are
    let mut asking: HashMap<(Group, u8, u32), Vec<usize>> = HashMap::new();
    for (n, (id, s)) in all.iter().enumerate() {
        if id.src_qp != NO_QP {
            datagrams.insert((group(id), id.dest_qp, id.src_qp), n);
            continue;
        }
        let g = groups.entry(group(id)).or_insert((0, n));
        g.0 += 1;
        if pairs.contains_key(id) {
            continue;
        }
        if let Some(next) = s.flow.tracks.get(REQUESTS).and_then(Track::next) {
            asking.entry((group(id), s.flow.transport, next / NEAR)).or_default().push(n);
        }
    }
    let id_of = |n: usize| all.get(n).map(|(id, _)| *id);
    let mut found = Vec::new();
    for (n, (id, s)) in all.iter().enumerate() {
        if pairs.contains_key(id) {
            continue;
        }
        let back = reversed(group(id));
        if id.src_qp != NO_QP {
            found.extend(datagrams.get(&(back, id.src_qp, id.dest_qp)).map(|m| (n, *m)));
            continue;
        }
        if let (Some((1, _)), Some((1, m))) = (groups.get(&group(id)), groups.get(&back)) {
            found.push((n, *m));
            continue;
        }
        if s.flow.answered & ANSWERED == 0 {
            continue;
        }
        let answered = s.flow.answered & !ANSWERED;
        let mut fits = None;
        let mut several = false;
        for near in [answered / NEAR, (answered.wrapping_add(NEAR) & 0x00ff_ffff) / NEAR] {
            for m in asking.get(&(back, s.flow.transport, near)).into_iter().flatten() {
                let next = all.get(*m).and_then(|(_, s)| s.flow.tracks.get(REQUESTS)).and_then(Track::next);
                // what was answered lies just before what is asked next
                if next.is_some_and(|next| (1..=NEAR).contains(&(next.wrapping_sub(answered) & 0x00ff_ffff))) {
                    several |= fits.is_some_and(|f| f != *m);
                    fits = Some(*m);
                }
            }
        }
        if let (Some(m), false) = (fits, several) {
            found.push((n, m));
        }
    }
    // an answer that fits two askers, or two answers that fit one, say nothing
    let mut claims: HashMap<usize, u32> = HashMap::new();
    for (n, m) in &found {
        *claims.entry(*m).or_default() += 1;
        *claims.entry(*n).or_default() += 1;
    }
    for (n, m) in &found {
        let mutual = found.binary_search(&(*m, *n)).is_ok();
        let most = if mutual { 2 } else { 1 };
        if claims.get(n).is_some_and(|c| *c <= most)
            && claims.get(m).is_some_and(|c| *c <= most)
            && let (Some(a), Some(b)) = (id_of(*n), id_of(*m))
        {
            pairs.insert(a, b);
            pairs.insert(b, a);
        }
    }
}

const _: () = assert!(NAK_RESERVED < NAK_RNR && NAK_RNR < NAK_UNKNOWN && OP_CNP < OP_OTHER);
