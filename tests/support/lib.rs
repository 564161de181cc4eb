//! What the tests and the demonstration share: network namespaces of their own, a raw socket, captured
//! traffic with other addresses.

pub mod bench;
pub mod cost;
pub mod fault;
pub mod netns;
pub mod packets;
pub mod play;
pub mod raw;
pub mod rc;
pub mod soak;
pub mod synth;
pub mod traffic;

use std::path::PathBuf;

/// The repository's folder of captures.
pub fn captures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("captures")
}

/// All captures, by name.
pub fn all_captures() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(captures())
        .expect("tests/captures is part of the repository")
        .map(|e| e.expect("a readable folder").path())
        .filter(|p| p.extension().is_some_and(|e| e == "pcap" || e == "pcapng"))
        .collect();
    all.sort();
    all
}

/// Whether this process may load programs and make namespaces; tests that need it say so and count
/// themselves as skipped otherwise.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
