//! One roce-fault an interface: a lock that ends with the process, and says whose it is.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::iface::Interface;

/// Where the locks are, if this process may write there.
pub const FOLDER: &str = "/run/roce-fault";

/// Where they may be: with the capabilities and without root, [`FOLDER`] is closed. Whoever holds the interface
/// by a lock that we do not see still holds its XDP hook, which attaching respects.
fn folders() -> [PathBuf; 3] {
    let user = nix::unistd::geteuid();
    [
        PathBuf::from(FOLDER),
        PathBuf::from(format!("/run/user/{user}/roce-fault")),
        std::env::temp_dir().join(format!("roce-fault-{user}")),
    ]
}

/// Makes a folder for locks, or finds it. One that another user made is not ours to write to.
fn make(folder: &Path) -> std::io::Result<()> {
    if folder == Path::new(FOLDER) {
        return fs::create_dir_all(folder);
    }
    match fs::create_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        done => return done,
    }
    let there = fs::symlink_metadata(folder)?;
    if there.is_dir() && there.uid() == nix::unistd::geteuid().as_raw() {
        Ok(())
    } else {
        Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, "the folder belongs to somebody else"))
    }
}

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

/// The file name of an interface: interface numbers repeat between network namespaces.
fn name(interface: &Interface) -> String {
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |m| m.ino());
    format!("{namespace}-{}.lock", interface.index)
}

/// Who holds an interface now; `None` if nobody does.
pub fn holder(interface: &Interface) -> Option<Holder> {
    let name = name(interface);
    folders().iter().find_map(|folder| holder_of(&folder.join(&name)))
}

/// Whoever looks at the locks of a folder or changes them holds this meanwhile, which takes microseconds: a look must not
/// be taken for a hold.
fn quiet(folder: &Path) -> Option<Flock<File>> {
    Flock::lock(File::open(folder).ok()?, FlockArg::LockExclusive).ok()
}

fn holder_of(path: &Path) -> Option<Holder> {
    let _quiet = quiet(path.parent()?)?;
    let mut file = File::open(path).ok()?;
    let mut text = String::new();
    (&mut file).take(1 << 20).read_to_string(&mut text).ok()?;
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => None,
        Err(_) => serde_json::from_str(&text).ok(),
    }
}

/// Removes the locks of a quiet folder that nobody holds: a killed process leaves its file, though not its hold on it.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "lock")) {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC).open(&path);
        if let Ok(file) = opened
            && Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

impl Lock {
    /// Takes an interface.
    pub fn take(interface: &Interface, holder: &Holder) -> Result<Self, LockError> {
        let name = name(interface);
        if let Some(holder) = self::holder(interface) {
            return Err(LockError::Taken { interface: interface.name.clone(), holder: Some(holder) });
        }
        let mut refused = None;
        for folder in folders() {
            match Self::take_in(&folder, &name, interface, holder) {
                Err(LockError::Io { path, source })
                    if matches!(
                        source.kind(),
                        std::io::ErrorKind::PermissionDenied
                            | std::io::ErrorKind::ReadOnlyFilesystem
                            | std::io::ErrorKind::NotFound
                    ) =>
                {
                    refused.get_or_insert(LockError::Io { path, source });
                }
                taken => return taken,
            }
        }
        Err(refused.unwrap_or_else(|| LockError::Taken { interface: interface.name.clone(), holder: None }))
    }

    fn take_in(folder: &Path, name: &str, interface: &Interface, holder: &Holder) -> Result<Self, LockError> {
        let path = folder.join(name);
        let failed = |source: std::io::Error| LockError::Io { path: path.display().to_string(), source };
        make(folder).map_err(failed)?;
        let _quiet = quiet(folder);
        sweep(folder);
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
