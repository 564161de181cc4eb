//! What this process may do, reduced to what it still needs once everything is attached.

use anyhow::{Context as _, Result};
use caps::{CapSet, Capability, CapsHashSet};

use crate::load;

/// Since this kernel a process without `CAP_BPF` may read the maps that it holds, also where unprivileged BPF is
/// switched off (commit c8644cd0efe7).
const MAPS_WITHOUT_CAPABILITY: (u32, u32) = (5, 19);
/// Since this kernel TC programs hang on links, which detach without `CAP_NET_ADMIN` when they are closed.
const TC_LINKS: (u32, u32) = (6, 6);

/// Gives up everything but what reading and detaching need on this kernel. Root gives it up too.
pub fn drop_unneeded() -> Result<()> {
    let release = load::release();
    let mut keep = CapsHashSet::new();
    if !at_least(&release, MAPS_WITHOUT_CAPABILITY) {
        keep.insert(Capability::CAP_BPF);
        keep.insert(Capability::CAP_SYS_ADMIN);
    }
    if !at_least(&release, TC_LINKS) {
        keep.insert(Capability::CAP_NET_ADMIN);
    }
    let had = caps::read(None, CapSet::Permitted).context("cannot read this process's capabilities")?;
    let keep: CapsHashSet = had.intersection(&keep).copied().collect();
    let sentence = "cannot give up capabilities that are no longer needed";
    caps::set(None, CapSet::Effective, &keep).context(sentence)?;
    caps::set(None, CapSet::Permitted, &keep).context(sentence)?;
    caps::set(None, CapSet::Inheritable, &CapsHashSet::new()).context(sentence)
}

/// Whether a kernel release is this one or a later one; what cannot be read counts as later.
pub fn at_least(release: &str, (major, minor): (u32, u32)) -> bool {
    let mut parts = release.split(['.', '-']).map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(a)), Some(Ok(b))) => (a, b) >= (major, minor),
        _ => true,
    }
}
