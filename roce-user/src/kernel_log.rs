//! What the kernel programs say of the unexpected: aya-log's ring, drained onto standard error.
//!
//! Off unless asked for (`ROCE_KERNEL_LOG=warn`): the level is frozen before loading, so that the verifier removes
//! the branches that nobody listens to.

use std::sync::OnceLock;

use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{LevelFilter, Log, Metadata, Record};

/// Environment variable that holds the level: error, warn, info, debug or trace.
pub const VARIABLE: &str = "ROCE_KERNEL_LOG";

/// The level that was asked for.
pub fn level() -> LevelFilter {
    static LEVEL: OnceLock<LevelFilter> = OnceLock::new();
    *LEVEL.get_or_init(|| std::env::var(VARIABLE).ok().and_then(|v| v.parse().ok()).unwrap_or(LevelFilter::Off))
}

/// Writes records as lines of standard error.
struct Lines;

impl Log for Lines {
    fn enabled(&self, m: &Metadata<'_>) -> bool {
        m.level() <= level()
    }

    fn log(&self, r: &Record<'_>) {
        crate::say!("kernel program: {}", r.args());
    }

    fn flush(&self) {}
}

/// The listening end; the map that it reads must outlive the programs' loading.
pub struct KernelLog(EbpfLogger<Lines>);

impl KernelLog {
    /// Listens to an object, if a level was asked for.
    pub fn of(ebpf: &mut Ebpf) -> Option<Self> {
        if level() == LevelFilter::Off {
            return None;
        }
        match EbpfLogger::init_with_logger(ebpf, Lines) {
            Ok(l) => Some(Self(l)),
            Err(e) => {
                crate::say!("the kernel programs cannot be listened to: {e}");
                None
            }
        }
    }

    /// Prints what has come since the last time.
    pub fn drain(&mut self) {
        self.0.flush();
    }
}
