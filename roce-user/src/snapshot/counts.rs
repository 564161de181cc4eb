//! The state of the kernel's tables from one snapshot to the next: only flows that moved are read anew.
//!
//! The bytes that a slot has counted grow with every packet, so a slot whose bytes are as before costs one look. A
//! slot that moved is read once more at the next snapshot, also if it rests then: the kernel may have been in the middle
//! of a packet.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use dissector::flow::row::{FlowRow, Totals};
use foldhash::fast::RandomState;
use roce_ebpf::abi::counters::{ANSWERED, REQUESTS};
use roce_ebpf::abi::key::family;
use roce_ebpf::abi::{self, Direction, Flow};
use roce_ebpf::sequence::Track;

use super::join::{Joiner, NOBODY};
use super::row::{merge, row};
use super::{Clock, Place, Snapshot, monotonic};
use crate::error::Error;
use crate::maps::{self, Key, Mapping, Table};

/// A flow that was silent for so long may leave the kernel's map when that gets full.
const IDLE: Duration = Duration::from_secs(10);
/// Flows without a slot whose rows are kept; the packets of older ones count as overflow.
const REMEMBERED: usize = 1 << 16;
/// A packet is in its CPU's totals a moment before it is in its flow: one for each CPU that may be at it.
const IN_FLIGHT: u64 = 1024;

/// A flow, whichever CPU counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId {
    pub tap: u16,
    pub direction: u16,
    pub v1: bool,
    pub src: IpAddr,
    pub dst: IpAddr,
    pub dest_qp: u32,
    pub src_qp: u32,
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

/// A flow over all its CPUs and lives.
#[derive(Debug)]
pub struct Known {
    pub id: FlowId,
    /// Position of the flow of the other direction.
    pub pair: Option<u32>,
    /// Who it is between, in the joiner's list.
    pub hosts: u32,
    /// Transport of its packets, as the kernel writes it.
    pub transport: u8,
    /// PSN that its next request will have.
    pub next: Option<u32>,
    /// PSN of its latest answer.
    pub answered: Option<u32>,
    number: u32,
    /// Slots of its tap's table.
    slots: Vec<u32>,
    /// Counts of slots that were taken away.
    ended: Option<Box<Flow>>,
    /// Latest packet, monotonic clock.
    last: u64,
    row: Arc<FlowRow>,
    /// To be read anew.
    moved: bool,
}

/// What a slot held when it was looked at.
#[derive(Clone, Copy, Debug)]
struct Slot {
    bytes: u64,
    /// Position of its flow.
    flow: u32,
    /// It moved when it was looked at last.
    moving: bool,
}

const EMPTY: Slot = Slot { bytes: 0, flow: NOBODY, moving: false };

/// The table of one tap.
#[derive(Debug, Default)]
struct Seen {
    mapping: Option<Arc<Mapping>>,
    slots: Vec<Slot>,
    /// How many of them hold a flow.
    taken: usize,
}

/// A slot that was taken out of the kernel's sight, at which some CPU may still be.
#[derive(Debug)]
struct Retired {
    tap: u16,
    slot: u32,
}

/// Reads loaded objects and remembers what has left their maps. The same objects have to be given each time.
#[derive(Debug)]
pub struct Counts {
    /// Nanoseconds of silence after which a flow may leave a table that gets full.
    idle: u64,
    clock: Option<Clock>,
    taps: Vec<Seen>,
    flows: Vec<Known>,
    index: HashMap<FlowId, u32, RandomState>,
    /// Number of the flow met last.
    last_number: u32,
    joiner: Joiner,
    /// Positions of flows to be read anew.
    moved: Vec<u32>,
    retired: Vec<Retired>,
    /// Flows without a slot.
    ended: usize,
    /// Packets and bytes of all rows.
    sum: (u64, u64),
    /// Packets and bytes of flows that are not even remembered.
    forgotten: (u64, u64),
}

fn position(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NOBODY)
}

impl Default for Counts {
    fn default() -> Self {
        Self::new(IDLE)
    }
}

impl Counts {
    /// Nothing yet. A flow that was silent for longer than `idle` may leave a table that gets full; its counts stay.
    pub fn new(idle: Duration) -> Self {
        Self {
            idle: u64::try_from(idle.as_nanos()).unwrap_or(u64::MAX),
            clock: None,
            taps: Vec::new(),
            flows: Vec::new(),
            index: HashMap::default(),
            last_number: 0,
            joiner: Joiner::default(),
            moved: Vec::new(),
            retired: Vec::new(),
            ended: 0,
            sum: (0, 0),
            forgotten: (0, 0),
        }
    }

    /// Counts of these objects as of now.
    pub fn take(&mut self, objects: &[&aya::Ebpf]) -> Result<Snapshot, Error> {
        let now = Clock::now();
        let clock = match self.clock {
            Some(clock) if !clock.is_off(now) => clock,
            _ => {
                // all times of day are told anew
                for n in 0..position(self.flows.len()) {
                    self.touch(n);
                }
                *self.clock.insert(now)
            }
        };
        let before = totals(objects)?;
        self.taps.resize_with(objects.len(), Seen::default);
        let mut tables = Vec::with_capacity(objects.len());
        for (ebpf, seen) in objects.iter().zip(&mut self.taps) {
            let table = Table::again(ebpf, seen.mapping.take())?;
            seen.mapping = Some(table.mapping());
            tables.push(table);
        }
        self.settle(&tables)?;
        for (table, tap) in tables.iter().zip(0u16..) {
            self.look(table, tap, clock)?;
        }
        let moved = std::mem::take(&mut self.moved);
        for n in &moved {
            self.read(*n, &tables, clock);
        }
        for (a, b) in self.joiner.join(&self.flows, &moved) {
            self.pair(a, b);
        }
        for (table, tap) in tables.iter().zip(0u16..) {
            self.make_room(table, tap)?;
        }
        let after = totals(objects)?;
        let mut snapshot = self.snapshot(clock, &before, &after);
        if snapshot.unexplained < 0 {
            // a CPU's totals are copied while it counts on: its overflow may have been read later than its sum. What is
            // in a sum that is read after all of that is explained
            let most = totals(objects)?.roce_packets();
            snapshot.unexplained = (signed(most) - signed(snapshot.totals.roce_packets)).min(0);
        }
        self.forget();
        Ok(snapshot)
    }

    fn touch(&mut self, n: u32) {
        if let Some(k) = self.flows.get_mut(n as usize)
            && !k.moved
        {
            k.moved = true;
            self.moved.push(n);
        }
    }

    /// Reads slots that were retired at the last report once more, now that no CPU is at them, and gives them back.
    /// Their counts stay with their flows.
    fn settle(&mut self, tables: &[Table<'_>]) -> Result<(), Error> {
        for r in std::mem::take(&mut self.retired) {
            let tap = usize::from(r.tap);
            let Some(table) = tables.get(tap) else { continue };
            let Some(seen) = self.taps.get_mut(tap) else { continue };
            let Some(slot) = seen.slots.get_mut(r.slot as usize) else { continue };
            let n = std::mem::replace(slot, EMPTY).flow;
            seen.taken -= 1;
            if let Some(k) = self.flows.get_mut(n as usize) {
                if let Some(flow) = table.get(r.slot as usize) {
                    match &mut k.ended {
                        Some(sum) => merge(sum, &flow),
                        None => k.ended = Some(Box::new(flow)),
                    }
                }
                k.slots.retain(|s| *s != r.slot);
                self.ended += usize::from(k.slots.is_empty());
            }
            self.touch(n);
            table.give_back(r.slot as usize)?;
        }
        Ok(())
    }

    /// Looks which slots of a table have moved.
    fn look(&mut self, table: &Table<'_>, tap: u16, clock: Clock) -> Result<(), Error> {
        let used = table.used()?;
        let Some(seen) = self.taps.get_mut(usize::from(tap)) else { return Ok(()) };
        let mut slots = std::mem::take(&mut seen.slots);
        let mut taken = seen.taken;
        slots.resize(used.max(slots.len()), EMPTY);
        for (n, slot) in slots.iter_mut().enumerate() {
            let bytes = table.bytes(n);
            let moving = bytes != slot.bytes;
            if !moving && !slot.moving {
                continue;
            }
            if slot.flow == NOBODY {
                // the key is written before the first packet is counted
                fence(Ordering::Acquire);
                let Some(flow) = table.get(n) else { continue };
                let Some(id) = FlowId::of(&flow, tap) else { continue };
                slot.flow = self.meet(id, position(n), &flow, clock);
                taken += 1;
            }
            (slot.bytes, slot.moving) = (bytes, moving);
            self.touch(slot.flow);
        }
        if let Some(seen) = self.taps.get_mut(usize::from(tap)) {
            seen.slots = slots;
            seen.taken = taken;
        }
        Ok(())
    }

    /// The position of a flow that was met in a slot.
    fn meet(&mut self, id: FlowId, slot: u32, flow: &Flow, clock: Clock) -> u32 {
        if let Some(n) = self.index.get(&id) {
            if let Some(k) = self.flows.get_mut(*n as usize) {
                self.ended -= usize::from(k.slots.is_empty());
                k.slots.push(slot);
            }
            return *n;
        }
        let n = position(self.flows.len());
        self.index.insert(id, n);
        self.last_number = self.last_number.wrapping_add(1);
        let row = row(self.last_number, id, flow, clock);
        self.sum.0 = self.sum.0.wrapping_add(row.packets);
        self.sum.1 = self.sum.1.wrapping_add(row.bytes);
        self.flows.push(Known {
            id,
            pair: None,
            hosts: self.joiner.hosts_of(&id),
            transport: 0,
            next: None,
            answered: None,
            number: self.last_number,
            slots: vec![slot],
            ended: None,
            last: 0,
            row: Arc::new(row),
            moved: false,
        });
        n
    }

    /// Reads all slots of a flow and makes its row, if that differs from the one there is.
    fn read(&mut self, n: u32, tables: &[Table<'_>], clock: Clock) {
        let Some(k) = self.flows.get_mut(n as usize) else { return };
        k.moved = false;
        let Some(table) = tables.get(usize::from(k.id.tap)) else { return };
        let mut sum = k.ended.as_deref().copied();
        for flow in k.slots.iter().filter_map(|s| table.get(*s as usize)) {
            match &mut sum {
                Some(sum) => merge(sum, &flow),
                None => sum = Some(flow),
            }
        }
        let Some(flow) = sum else { return };
        k.last = flow.last;
        k.transport = flow.transport;
        k.next = flow.tracks.get(REQUESTS).and_then(Track::next);
        k.answered = (flow.answered & ANSWERED != 0).then_some(flow.answered & !ANSWERED);
        let mut row = row(k.number, k.id, &flow, clock);
        row.pair = k.row.pair;
        row.src_qp = row.src_qp.or(k.row.src_qp);
        if row != *k.row {
            let (packets, bytes) = &mut self.sum;
            *packets = packets.wrapping_add(row.packets).wrapping_sub(k.row.packets);
            *bytes = bytes.wrapping_add(row.bytes).wrapping_sub(k.row.bytes);
            k.row = Arc::new(row);
        }
    }

    /// Two flows are each other's other direction.
    fn pair(&mut self, a: u32, b: u32) {
        let free = |n: u32| self.flows.get(n as usize).filter(|k| k.pair.is_none()).map(|k| (k.number, k.id.dest_qp));
        let (Some(of_a), Some(of_b)) = (free(a), free(b)) else { return };
        for (n, other, (number, qp)) in [(a, b, of_b), (b, a, of_a)] {
            if let Some(k) = self.flows.get_mut(n as usize) {
                k.pair = Some(other);
                let row = Arc::make_mut(&mut k.row);
                row.pair = Some(number);
                row.src_qp = row.src_qp.or(Some(qp));
            }
        }
    }

    /// Takes silent flows out of a table that gets full.
    fn make_room(&mut self, table: &Table<'_>, tap: u16) -> Result<(), Error> {
        let taken = self.taps.get(usize::from(tap)).map_or(0, |t| t.taken);
        if taken <= table.room / 4 * 3 {
            return Ok(());
        }
        let (now, idle) = (monotonic(), self.idle);
        for k in self.flows.iter().filter(|k| k.id.tap == tap && now.saturating_sub(k.last) > idle) {
            // all slots of a flow go together: one of them keeps the PSNs of all
            for slot in &k.slots {
                let Some(flow) = table.get(*slot as usize) else { continue };
                table.retire(*slot as usize, &flow)?;
                self.retired.push(Retired { tap, slot: *slot });
            }
        }
        Ok(())
    }

    fn snapshot(&self, clock: Clock, before: &abi::Totals, after: &abi::Totals) -> Snapshot {
        let (packets, bytes) = self.sum;
        // packets went on while the maps were read: the flows hold at least what was counted before, and at most
        // what was counted after
        let overflow = after.overflow_packets + self.forgotten.0;
        let overflow_bytes = after.overflow_bytes + self.forgotten.1;
        let roce = packets + overflow;
        let (least, most) = (before.roce_packets(), after.roce_packets());
        let unexplained = if roce > most {
            signed(most) - signed(roce)
        } else if roce + IN_FLIGHT < least {
            signed(least) - signed(roce)
        } else {
            0
        };
        let roce_bytes = bytes + overflow_bytes;
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
            flows: self.flows.iter().map(|k| Arc::clone(&k.row)).collect(),
            places: self
                .flows
                .iter()
                .map(|k| Place { tap: k.id.tap, outgoing: k.id.direction == Direction::Out as u16 })
                .collect(),
            opcodes: (0..=255).zip(after.opcodes).filter(|(_, n)| *n > 0).collect(),
            fragments: after.fragments,
            malformed: after.malformed,
            unexplained,
        }
    }

    /// Drops the rows of flows that ended long ago, when there are too many.
    fn forget(&mut self) {
        if self.ended <= REMEMBERED {
            return;
        }
        let mut ages: Vec<u64> = self.flows.iter().filter(|k| k.slots.is_empty()).map(|k| k.last).collect();
        let quarter = ages.len() / 4;
        let (_, limit, _) = ages.select_nth_unstable(quarter);
        let limit = *limit;
        let mut to = vec![NOBODY; self.flows.len()];
        let mut kept = Vec::with_capacity(self.flows.len());
        for (k, to) in std::mem::take(&mut self.flows).into_iter().zip(&mut to) {
            if k.slots.is_empty() && k.last <= limit && !k.moved {
                self.ended -= 1;
                self.forgotten.0 += k.row.packets;
                self.forgotten.1 += k.row.bytes;
                self.sum.0 = self.sum.0.wrapping_sub(k.row.packets);
                self.sum.1 = self.sum.1.wrapping_sub(k.row.bytes);
            } else {
                *to = position(kept.len());
                kept.push(k);
            }
        }
        let moved_to = |n: u32| to.get(n as usize).copied().filter(|n| *n != NOBODY);
        // the joiner knows flows by their positions: it meets them anew
        self.joiner = Joiner::default();
        self.index.clear();
        for (k, n) in kept.iter_mut().zip(0u32..) {
            if let Some(pair) = k.pair {
                k.pair = moved_to(pair);
                if k.pair.is_none() {
                    Arc::make_mut(&mut k.row).pair = None;
                }
            }
            k.hosts = self.joiner.hosts_of(&k.id);
            self.index.insert(k.id, n);
        }
        for slot in self.taps.iter_mut().flat_map(|t| &mut t.slots).filter(|s| s.flow != NOBODY) {
            slot.flow = moved_to(slot.flow).unwrap_or(NOBODY);
        }
        self.flows = kept;
    }
}

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
