//! Reading the maps: the table of flows lies in our memory, so that thousands of flows cost no system call.

use std::io;
use std::mem::size_of;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use aya::Ebpf;
use aya::maps::{Array, Map, MapData, MapInfo, PerCpuArray};
use roce_ebpf::abi::key::{ALL_CPUS, family};
use roce_ebpf::abi::{self, Flow, KeyV4, KeyV6, global};

use crate::error::Error;

// commands of bpf(2) that aya offers only on a loaded object that is ours alone
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_DELETE_ELEM: libc::c_long = 3;

/// `union bpf_attr` of the commands on one element.
#[repr(C)]
struct Element {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The table of flows in our memory; it stays there when the object is gone.
#[derive(Debug)]
pub struct Mapping {
    first: NonNull<Flow>,
    bytes: usize,
    map: u32,
    /// Slots that there are.
    pub room: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread, and is read and written by volatile accesses only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// The flows of a loaded object, as the kernel program writes them.
pub struct Table<'a> {
    ebpf: &'a Ebpf,
    mapping: Arc<Mapping>,
}

impl Deref for Table<'_> {
    type Target = Mapping;

    fn deref(&self) -> &Mapping {
        &self.mapping
    }
}

fn bad(name: &str, why: impl Into<String>) -> Error {
    Error::Map { name: name.to_owned(), why: why.into() }
}

fn fd_of<'a>(ebpf: &'a Ebpf, name: &str) -> Result<BorrowedFd<'a>, Error> {
    match ebpf.map(name) {
        Some(Map::HashMap(d) | Map::Array(d) | Map::Queue(d)) => Ok(data_fd(d)),
        _ => Err(bad(name, "it is not there")),
    }
}

fn data_fd(data: &MapData) -> BorrowedFd<'_> {
    data.fd().as_fd()
}

impl Mapping {
    fn of(data: &MapData, info: &MapInfo) -> Result<Self, Error> {
        let name = global::FLOWS;
        if info.value_size() as usize != size_of::<Flow>() {
            return Err(bad(name, format!("its flows have {} bytes", info.value_size())));
        }
        let room = info.max_entries() as usize;
        let bytes = (room * size_of::<Flow>()).next_multiple_of(page());
        // SAFETY: a new mapping, shared with the kernel, of a size that the map has.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                data_fd(data).as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Error::system("cannot map the table of flows", io::Error::last_os_error()));
        }
        let first = NonNull::new(at.cast()).ok_or_else(|| bad(name, "it was mapped to nowhere"))?;
        Ok(Self { first, bytes, map: info.id(), room })
    }

    fn at(&self, slot: usize) -> Option<*mut Flow> {
        // SAFETY: inside the mapping.
        (slot < self.room).then(|| unsafe { self.first.as_ptr().add(slot) })
    }

    /// What a slot holds now. Each number is whole; the kernel may be between two of them.
    pub fn get(&self, slot: usize) -> Option<Flow> {
        // SAFETY: inside the mapping; the kernel writes aligned words, and any bits make a flow.
        self.at(slot).map(|f| unsafe { f.read_volatile() })
    }

    /// The bytes that a slot has counted: they grow with every packet, and are 0 in a slot without a flow.
    pub fn bytes(&self, slot: usize) -> u64 {
        // SAFETY: as above, one aligned word.
        self.at(slot).map_or(0, |f| unsafe { (&raw const (*f).bytes).read_volatile() })
    }
}

impl<'a> Table<'a> {
    /// Maps the table of an object.
    pub fn of(ebpf: &'a Ebpf) -> Result<Self, Error> {
        Self::again(ebpf, None)
    }

    /// The same over a mapping that was made before, if it is this object's.
    pub fn again(ebpf: &'a Ebpf, mapping: Option<Arc<Mapping>>) -> Result<Self, Error> {
        let name = global::FLOWS;
        let Some(Map::Array(data)) = ebpf.map(name) else { return Err(bad(name, "it is not there")) };
        let info = data.info().map_err(|e| bad(name, e.to_string()))?;
        let mapping = match mapping.filter(|m| m.map == info.id()) {
            Some(m) => m,
            None => Arc::new(Mapping::of(data, &info)?),
        };
        Ok(Self { ebpf, mapping })
    }

    /// The mapping, to be used again.
    pub fn mapping(&self) -> Arc<Mapping> {
        Arc::clone(&self.mapping)
    }

    /// Slots that were ever given out.
    pub fn used(&self) -> Result<usize, Error> {
        let map = self.ebpf.map(global::USED).ok_or_else(|| bad(global::USED, "it is not there"))?;
        let map: Array<_, u64> = Array::try_from(map).map_err(|e| bad(global::USED, e.to_string()))?;
        let used = map.get(&0, 0).map_err(|e| bad(global::USED, e.to_string()))?;
        // CPUs that found the table full may have counted on
        Ok(usize::try_from(used).unwrap_or(usize::MAX).min(self.room))
    }

    /// Takes a flow out of the kernel's sight: its next packet begins a new one. What the slot holds stays, to be
    /// read once more when no CPU can be at it any longer, before [`Table::give_back`].
    pub fn retire(&self, slot: usize, flow: &Flow) -> Result<(), Error> {
        let Some(own) = key(flow) else { return Ok(()) };
        self.remove(own)?;
        if flow.home as usize == slot + 1 {
            self.remove(match own {
                Key::V4(k) => Key::V4(KeyV4 { cpu: ALL_CPUS, ..k }),
                Key::V6(k) => Key::V6(KeyV6 { cpu: ALL_CPUS, ..k }),
            })?;
        }
        if let Some(f) = self.at(slot) {
            // SAFETY: inside the mapping. The hash no longer leads here, and without a family the caches do not either
            unsafe { (&raw mut (*f).key).cast::<u64>().add(1).write_volatile(0) };
        }
        Ok(())
    }

    fn remove(&self, key: Key) -> Result<(), Error> {
        let removed = match key {
            Key::V4(k) => self.element(BPF_MAP_DELETE_ELEM, global::SLOTS_V4, (&raw const k).cast(), 0),
            Key::V6(k) => self.element(BPF_MAP_DELETE_ELEM, global::SLOTS_V6, (&raw const k).cast(), 0),
        };
        match removed {
            Err(e) if e.raw_os_error() != Some(libc::ENOENT) => {
                Err(Error::system("cannot take a flow out of the map", e))
            }
            _ => Ok(()),
        }
    }

    /// Clears a retired slot and lets the kernel use it again.
    pub fn give_back(&self, slot: usize) -> Result<(), Error> {
        let Some(f) = self.at(slot) else { return Ok(()) };
        // SAFETY: inside the mapping; nobody has the slot.
        unsafe { f.write_bytes(0, 1) };
        let number = u32::try_from(slot).unwrap_or(u32::MAX);
        self.element(BPF_MAP_UPDATE_ELEM, global::FREE, std::ptr::null(), (&raw const number) as u64)
            .map_err(|e| Error::system("cannot give a slot back", e))
    }

    fn element(&self, command: libc::c_long, map: &str, key: *const u8, value: u64) -> io::Result<()> {
        let fd = fd_of(self.ebpf, map).map_err(io::Error::other)?;
        let mut attr = Element { map: fd.as_raw_fd().cast_unsigned(), pad: 0, key: key as u64, value, flags: 0 };
        // SAFETY: key and value are as long as the map's types, which are those of the ABI that the object was
        // checked for when it was loaded.
        let r = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut attr, size_of::<Element>()) };
        if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our mapping, and nobody has a reference into it.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.bytes) };
    }
}

fn page() -> usize {
    // SAFETY: no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Key of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// IPv4.
    V4(KeyV4),
    /// IPv6 or GID.
    V6(KeyV6),
}

/// The key of a flow; `None` if the slot is empty.
pub fn key(flow: &Flow) -> Option<Key> {
    // SAFETY: both are plain data, and the words were written as one of them.
    let v6 = unsafe { std::mem::transmute::<[u64; 6], KeyV6>(flow.key) };
    match v6.family {
        0 => None,
        family::V4 => {
            let [s0, s1, s2, s3, d0, d1, d2, d3, ..] = v6.src;
            Some(Key::V4(KeyV4 {
                dest_qp: v6.dest_qp,
                src_qp: v6.src_qp,
                cpu: v6.cpu,
                direction: v6.direction,
                family: v6.family,
                src: [s0, s1, s2, s3],
                dst: [d0, d1, d2, d3],
            }))
        }
        _ => Some(Key::V6(v6)),
    }
}

/// Totals of one direction, all CPUs.
pub fn totals(ebpf: &Ebpf, direction: abi::Direction) -> Result<abi::Totals, Error> {
    let name = global::CPUS;
    let map = ebpf.map(name).ok_or_else(|| bad(name, "it is not there"))?;
    let map: PerCpuArray<_, abi::PerCpu> = PerCpuArray::try_from(map).map_err(|e| bad(name, e.to_string()))?;
    let all = map.get(&0, 0).map_err(|e| bad(name, e.to_string()))?;
    let mut sum = abi::Totals::ZERO;
    for cpu in all.iter() {
        let [inward, outward] = &cpu.totals;
        sum.add(match direction {
            abi::Direction::In => inward,
            abi::Direction::Out => outward,
        });
    }
    Ok(sum)
}
