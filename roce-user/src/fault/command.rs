//! The command under test: a process group of its own, that ends with us and at the time limit.

use std::io::{self, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use serde::Serialize;

/// How long a process group has between the polite and the other signal.
const GRACE: Duration = Duration::from_secs(1);

/// A running command.
#[derive(Debug)]
pub struct Running {
    child: Child,
    argv: Vec<String>,
    started: Instant,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ended {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Exit status, if it exited.
    pub status: Option<i32>,
    /// Signal, if one ended it.
    pub signal: Option<i32>,
    /// Seconds.
    pub duration_s: f64,
    /// It ran into the time limit, or we were interrupted, and was killed.
    pub killed: bool,
}

impl Ended {
    /// What a shell would make of it.
    pub fn code(&self) -> i32 {
        self.status.unwrap_or_else(|| 128 + self.signal.unwrap_or(0))
    }
}

impl Running {
    /// Starts it. Its input is ours unless that is a terminal, which a process group in the background cannot read; its
    /// outputs are ours (standard output goes to standard error if `quiet_stdout`, where ours is data).
    pub fn start(argv: &[String], quiet_stdout: bool) -> io::Result<Self> {
        let Some((program, args)) = argv.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        let mut command = Command::new(program);
        let input = if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
        command.args(args).stdin(input).process_group(0);
        if quiet_stdout {
            command.stdout(io::stderr());
        }
        let us = std::process::id();
        // SAFETY: between fork and exec only async-signal-safe calls: sigprocmask, prctl and getppid.
        unsafe {
            command.pre_exec(move || {
                // we block the signals that we wait for, and a child would inherit that: nothing polite could end it
                SigSet::empty().thread_set_mask()?;
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                    return Err(io::Error::last_os_error());
                }
                // died before we asked to be told
                if u32::try_from(libc::getppid()) != Ok(us) {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                Ok(())
            });
        }
        Ok(Self { child: command.spawn()?, argv: argv.to_vec(), started: Instant::now() })
    }

    /// How it ended, if it has.
    pub fn poll(&mut self) -> io::Result<Option<Ended>> {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX));
        let looked = waitid(Id::Pid(group), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT);
        if matches!(looked, Ok(WaitStatus::StillAlive)) {
            return Ok(None);
        }
        // what it left in the background ends with it, lest it keep our outputs open; not yet waited for, so the
        // number of the group is still its own
        let _ = killpg(group, Signal::SIGTERM);
        Ok(self.child.try_wait()?.map(|s| self.ended(s, false)))
    }

    fn ended(&self, s: ExitStatus, killed: bool) -> Ended {
        Ended {
            argv: self.argv.clone(),
            status: s.code(),
            signal: s.signal(),
            duration_s: self.started.elapsed().as_secs_f64(),
            killed,
        }
    }

    /// Ends the process group: asks, waits a second, kills.
    pub fn kill(mut self) -> io::Result<Ended> {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX));
        let _ = killpg(group, Signal::SIGTERM);
        let until = Instant::now() + GRACE;
        let status = loop {
            if let Some(s) = self.child.try_wait()? {
                break s;
            }
            if Instant::now() >= until {
                let _ = killpg(group, Signal::SIGKILL);
                break self.child.wait()?;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // children that did not listen
        let _ = killpg(group, Signal::SIGKILL);
        Ok(self.ended(status, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(argv: &[&str]) -> Vec<String> {
        argv.iter().map(|s| (*s).to_owned()).collect()
    }

    #[test]
    fn status_and_signal() {
        let wait = |argv: &[&str]| {
            let mut r = Running::start(&words(argv), true).unwrap();
            loop {
                if let Some(e) = r.poll().unwrap() {
                    return e;
                }
                std::thread::yield_now();
            }
        };
        assert_eq!(wait(&["sh", "-c", "exit 7"]).code(), 7);
        assert_eq!(wait(&["sh", "-c", "kill -TERM $$"]).code(), 143);
        assert!(Running::start(&words(&["/nonexistent"]), true).is_err());
        assert!(Running::start(&[], true).is_err());
    }

    #[test]
    fn signals_that_we_block_reach_it() {
        let mut ours = SigSet::empty();
        ours.add(Signal::SIGTERM);
        ours.thread_block().unwrap();
        let mut r = Running::start(&words(&["sh", "-c", "kill -TERM $$; exit 0"]), true).unwrap();
        let ended = loop {
            if let Some(e) = r.poll().unwrap() {
                break e;
            }
            std::thread::yield_now();
        };
        ours.thread_unblock().unwrap();
        assert_eq!(ended.signal, Some(libc::SIGTERM));
    }

    #[test]
    fn what_it_leaves_in_the_background_ends_with_it() {
        let (read, write) = io::pipe().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&write);
        // the background process keeps the pipe open: the read below ends only with it
        nix::fcntl::fcntl(&write, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
        let script = format!("sleep 1000 >&{fd} & exit 5");
        let mut r = Running::start(&words(&["sh", "-c", &script]), true).unwrap();
        drop(write);
        let ended = loop {
            if let Some(e) = r.poll().unwrap() {
                break e;
            }
            std::thread::yield_now();
        };
        assert_eq!((ended.code(), ended.killed), (5, false));
        assert_eq!(io::Read::read(&mut &read, &mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn a_group_that_ignores_the_polite_signal() {
        let r = Running::start(&words(&["sh", "-c", "trap '' TERM; sleep 1000 & wait; sleep 1000"]), true).unwrap();
        let e = r.kill().unwrap();
        assert!(e.killed && e.code() != 0, "{e:?}");
    }
}
