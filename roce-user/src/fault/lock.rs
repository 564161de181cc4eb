//! One roce-fault an interface: a lock that ends with the process, and says whose it is.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::iface::Interface;

/// Where the locks are.
pub const FOLDER: &str = "/run/roce-fault";

/// Who holds an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process.
    pub pid: u32,
    /// Name of its scenario.
    pub scenario: String,
    /// Interface.
    pub interface: String,
    /// Sentences of its rules.
    pub rules: Vec<String>,
}

/// Why an interface cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another roce-fault has it.
    #[error("{interface} is taken by another roce-fault: {}", by(.holder.as_ref()))]
    Taken {
        /// Interface.
        interface: String,
        /// Whose, if it said so.
        holder: Option<Holder>,
    },
    /// The lock file cannot be made.
    #[error("cannot make the lock {path}: {source}")]
    Io {
        /// File.
        path: String,
        /// The kernel's word.
        source: std::io::Error,
    },
}

fn by(holder: Option<&Holder>) -> String {
    match holder {
        Some(h) => {
            format!("scenario {:?}, process {}; wait for it, or end it with `kill {}`", h.scenario, h.pid, h.pid)
        }
        None => "one that did not say its name".into(),
    }
}

/// A held lock; dropping it gives the interface free, and so does the end of the process.
#[derive(Debug)]
pub struct Lock {
    file: Flock<File>,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // still locked: nobody else can have taken it between
        let _ = self.file.set_len(0);
        let _ = fs::remove_file(&self.path);
    }
}

/// The file of an interface: interface numbers repeat between network namespaces.
fn path(interface: &Interface) -> PathBuf {
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |m| m.ino());
    Path::new(FOLDER).join(format!("{namespace}-{}.lock", interface.index))
}

/// Who holds an interface now; `None` if nobody does.
pub fn holder(interface: &Interface) -> Option<Holder> {
    let mut file = File::open(path(interface)).ok()?;
    let mut text = String::new();
    (&mut file).take(1 << 20).read_to_string(&mut text).ok()?;
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => None,
        Err(_) => serde_json::from_str(&text).ok(),
    }
}

impl Lock {
    /// Takes an interface.
    pub fn take(interface: &Interface, holder: &Holder) -> Result<Self, LockError> {
        let path = path(interface);
        let failed = |source: std::io::Error| LockError::Io { path: path.display().to_string(), source };
        fs::create_dir_all(FOLDER).map_err(failed)?;
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o644)
                .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
                .open(&path)
                .map_err(failed)?;
            let mut file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(f) => f,
                Err((mut f, nix::errno::Errno::EWOULDBLOCK)) => {
                    let mut text = String::new();
                    let _ = (&mut f).take(1 << 20).read_to_string(&mut text);
                    let holder = serde_json::from_str(&text).ok();
                    return Err(LockError::Taken { interface: interface.name.clone(), holder });
                }
                Err((_, e)) => return Err(failed(e.into())),
            };
            // the file may have been removed by its last holder between opening and locking
            let same = fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|m| m.ino() == there.ino()));
            if !same {
                continue;
            }
            let text = serde_json::to_string(holder).unwrap_or_default();
            file.set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| file.write_all(text.as_bytes()))
                .map_err(failed)?;
            return Ok(Self { file, path });
        }
    }
}
