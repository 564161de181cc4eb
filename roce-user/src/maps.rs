//! Reading the maps: thousands of flows in a few system calls.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use aya::maps::{Map, MapData, PerCpuArray};
use aya::{Ebpf, Pod};
use roce_ebpf::abi::{self, Flow, global};

use crate::error::Error;

/// Entries asked for at once.
const CHUNK: usize = 2048;

// commands of bpf(2) that aya does not wrap
const BPF_MAP_LOOKUP_AND_DELETE_ELEM: libc::c_long = 21;
const BPF_MAP_LOOKUP_BATCH: libc::c_long = 24;

/// A flow map of a loaded object.
pub struct FlowMap<'a> {
    fd: BorrowedFd<'a>,
    /// Entries that fit.
    pub room: u32,
}

/// The flow map of that name, for one of the key types of [`abi`].
pub fn flow_map<'a, K: Pod>(ebpf: &'a Ebpf, name: &str) -> Result<FlowMap<'a>, Error> {
    let bad = |why: String| Error::Map { name: name.to_owned(), why };
    let Some(Map::HashMap(data)) = ebpf.map(name) else { return Err(bad("it is not there".into())) };
    let info = data.info().map_err(|e| bad(e.to_string()))?;
    let (key, value) = (info.key_size() as usize, info.value_size() as usize);
    if (key, value) != (size_of::<K>(), size_of::<Flow>()) {
        return Err(bad(format!("its keys have {key} bytes and its values {value}")));
    }
    Ok(FlowMap { fd: data_fd(data), room: info.max_entries() })
}

fn data_fd(data: &MapData) -> BorrowedFd<'_> {
    data.fd().as_fd()
}

/// `union bpf_attr` of the batch commands.
#[repr(C)]
struct Batch {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// `union bpf_attr` of the commands on one element.
#[repr(C)]
struct Element {
    map_fd: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl FlowMap<'_> {
    /// Calls `each` for every entry. An entry that the kernel adds meanwhile may or may not be among them.
    pub fn for_each<K: Pod>(&self, mut each: impl FnMut(&K, &Flow)) -> io::Result<()> {
        let mut chunk = CHUNK;
        let mut keys: Vec<K> = Vec::with_capacity(chunk);
        let mut values: Vec<Flow> = Vec::with_capacity(chunk);
        // where the kernel goes on: a bucket's number
        let mut token = [0u32; 2];
        let mut first = true;
        loop {
            let mut next = [0u32; 2];
            let mut attr = Batch {
                in_batch: if first { 0 } else { token.as_ptr() as u64 },
                out_batch: next.as_mut_ptr() as u64,
                keys: keys.as_mut_ptr() as u64,
                values: values.as_mut_ptr() as u64,
                // bounded by the chunk
                count: u32::try_from(chunk).unwrap_or(u32::MAX),
                map_fd: self.fd.as_raw_fd().cast_unsigned(),
                elem_flags: 0,
                flags: 0,
            };
            // SAFETY: all pointers are to memory of this function; `count` is the capacity of both vectors.
            let done = unsafe { bpf(BPF_MAP_LOOKUP_BATCH, &raw mut attr) };
            let last = match done {
                Ok(()) => false,
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => true,
                // one bucket holds more than the chunk
                Err(e) if e.raw_os_error() == Some(libc::ENOSPC) && chunk < 1 << 20 => {
                    chunk *= 4;
                    keys.reserve(chunk);
                    values.reserve(chunk);
                    continue;
                }
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => continue,
                Err(e) => return Err(e),
            };
            let count = (attr.count as usize).min(chunk);
            // SAFETY: the kernel wrote `count` whole entries; both types are plain data.
            unsafe {
                keys.set_len(count);
                values.set_len(count);
            }
            for (k, v) in keys.iter().zip(&values) {
                each(k, v);
            }
            keys.clear();
            values.clear();
            if last {
                return Ok(());
            }
            token = next;
            first = false;
        }
    }

    /// Removes an entry and gives its last value; `None` if it is gone.
    pub fn take<K: Pod>(&self, key: &K) -> io::Result<Option<Flow>> {
        let mut value = std::mem::MaybeUninit::<Flow>::uninit();
        let mut attr = Element {
            map_fd: self.fd.as_raw_fd().cast_unsigned(),
            pad: 0,
            key: std::ptr::from_ref(key) as u64,
            value: value.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the key is readable, the value writable, both as long as the map says (checked at `flow_map`).
        match unsafe { bpf(BPF_MAP_LOOKUP_AND_DELETE_ELEM, &raw mut attr) } {
            // SAFETY: the kernel wrote all of it.
            Ok(()) => Ok(Some(unsafe { value.assume_init() })),
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// # Safety
/// `attr` must be what the command takes, with valid pointers.
unsafe fn bpf<A>(command: libc::c_long, attr: *mut A) -> io::Result<()> {
    // SAFETY: the caller vouches for the attributes; the kernel reads no more than their size.
    let r = unsafe { libc::syscall(libc::SYS_bpf, command, attr, size_of::<A>()) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Totals of one direction, all CPUs.
pub fn totals(ebpf: &Ebpf, direction: abi::Direction) -> Result<abi::Totals, Error> {
    let bad = |why: String| Error::Map { name: global::TOTALS.to_owned(), why };
    let map = ebpf.map(global::TOTALS).ok_or_else(|| bad("it is not there".into()))?;
    let map: PerCpuArray<_, abi::Totals> = PerCpuArray::try_from(map).map_err(|e| bad(e.to_string()))?;
    let all = map.get(&(direction as u32), 0).map_err(|e| bad(e.to_string()))?;
    let mut sum = abi::Totals::ZERO;
    for cpu in all.iter() {
        sum.add(cpu);
    }
    Ok(sum)
}
