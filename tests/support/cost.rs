//! What a program costs: CPU seconds, memory, time; and the loop that others are compared with.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What running a program cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// User and system CPU time of all its threads.
    pub cpu: Duration,
    /// From start to end.
    pub wall: Duration,
    /// Most memory that was resident at once, bytes.
    pub peak: u64,
}

/// Runs a program to its end with its output thrown away. A failure of the program is an error.
pub fn run(command: &mut Command) -> io::Result<Cost> {
    let start = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: a rusage is plain numbers, for which zeros are valid
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals of the right types, and the child is waited for nowhere else
    let done = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    if done != pid {
        return Err(io::Error::last_os_error());
    }
    let wall = start.elapsed();
    if status != 0 {
        return Err(io::Error::other(format!("{command:?} ended with status {status:#x}")));
    }
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs()) + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    // ru_maxrss counts KiB
    Ok(Cost { cpu: time(usage.ru_utime) + time(usage.ru_stime), wall, peak: usage.ru_maxrss.unsigned_abs() * 1024 })
}

/// CPU time that this process has used so far.
pub fn cpu() -> io::Result<Duration> {
    let t = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID)?;
    Ok(t.into())
}

/// CPU time of a bare loop over the mapped file: nothing but the length of each record and one byte of each
/// packet is read. Also how many packets there were.
pub fn bare_loop(path: &Path) -> io::Result<(Duration, u64)> {
    let file = std::fs::File::open(path)?;
    let start = cpu()?;
    // SAFETY: the bench made the file itself and nobody shortens it meanwhile
    let map = unsafe { memmap2::Mmap::map(&file)? };
    let (mut at, mut packets, mut sum) = (24, 0, 0_u64);
    while let Some(head) = map.get(at..).and_then(|b| b.first_chunk::<16>()) {
        let len = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        sum += map.get(at + 28).map_or(0, |b| u64::from(*b));
        at += 16 + len;
        packets += 1;
    }
    std::hint::black_box(sum);
    drop(map);
    Ok((cpu()? - start, packets))
}
