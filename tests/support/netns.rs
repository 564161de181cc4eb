//! Network namespaces without names: one lives as long as its handle, so that nothing is left behind
//! whatever happens to the test, SIGKILL included.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace; it ends with this handle and the processes that were started in it.
#[derive(Debug)]
pub struct NetNs {
    file: File,
}

impl NetNs {
    /// Makes one, with its loopback up.
    pub fn new() -> Result<Self> {
        let file = thread::spawn(|| -> Result<File> {
            // only this thread moves; the open file keeps the namespace after it has ended
            unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace (root is needed)")?;
            File::open("/proc/thread-self/ns/net").context("cannot open the new namespace")
        })
        .join()
        .expect("the thread does not panic")?;
        let ns = Self { file };
        ns.ip(&["link", "set", "lo", "up"])?;
        Ok(ns)
    }

    /// Runs something with a thread of this namespace. Sockets and processes made there stay in it.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        thread::scope(|s| {
            s.spawn(|| {
                setns(&self.file, CloneFlags::CLONE_NEWNET).context("cannot enter the namespace")?;
                Ok(f())
            })
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `ip` in it.
    pub fn ip(&self, args: &[&str]) -> Result<String> {
        self.command("ip", args)
    }

    /// Runs a command in it and returns what it printed; a failure is an error with what it said.
    pub fn command(&self, program: &str, args: &[&str]) -> Result<String> {
        let out =
            self.run(|| Command::new(program).args(args).output())?.with_context(|| format!("cannot run {program}"))?;
        ensure!(out.status.success(), "{program} {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim());
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    /// A path by which another process of root can name this namespace while the handle lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }
}

/// Two namespaces joined by a veth pair: `a0` in one, `b0` in the other.
#[derive(Debug)]
pub struct Pair {
    /// The side with `a0`, 10.77.0.1, fd77::1.
    pub a: NetNs,
    /// The side with `b0`, 10.77.0.2, fd77::2.
    pub b: NetNs,
}

impl Pair {
    /// MAC of `a0`.
    pub const MAC_A: [u8; 6] = [0x02, 0x77, 0, 0, 0, 0x0a];
    /// MAC of `b0`.
    pub const MAC_B: [u8; 6] = [0x02, 0x77, 0, 0, 0, 0x0b];

    /// With the usual MTU of 1500.
    pub fn new() -> Result<Self> {
        Self::with_mtu(1500)
    }

    /// With an MTU (RoCE MTU 4096 wants 4200 and more).
    pub fn with_mtu(mtu: u32) -> Result<Self> {
        let pair = Self { a: NetNs::new()?, b: NetNs::new()? };
        let mtu = mtu.to_string();
        pair.a.ip(&[
            "link",
            "add",
            "a0",
            "address",
            "02:77:00:00:00:0a",
            "mtu",
            &mtu,
            "type",
            "veth",
            "peer",
            "name",
            "b0",
            "address",
            "02:77:00:00:00:0b",
            "mtu",
            &mtu,
            "netns",
            &pair.b.path(),
        ])?;
        for (ns, dev, v4, v6) in
            [(&pair.a, "a0", "10.77.0.1/24", "fd77::1/64"), (&pair.b, "b0", "10.77.0.2/24", "fd77::2/64")]
        {
            ns.ip(&["addr", "add", v4, "dev", dev])?;
            ns.ip(&["-6", "addr", "add", v6, "dev", dev, "nodad"])?;
            ns.ip(&["link", "set", dev, "up"])?;
        }
        Ok(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_a_name_and_all_is_gone() {
        if !crate::is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let names = || Command::new("ip").args(["netns", "list"]).output().unwrap().stdout;
        let before = names();
        let pair = Pair::new().unwrap();
        assert!(pair.b.ip(&["link", "show", "b0"]).unwrap().contains("02:77:00:00:00:0b"));
        assert_eq!(names(), before);
        let path = pair.b.path();
        drop(pair);
        assert!(!std::path::Path::new(&path).exists());
    }
}
