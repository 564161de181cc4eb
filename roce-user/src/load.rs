//! The kernel object: its load-time constants and map sizes, and its programs verified.

use aya::programs::{SchedClassifier, Xdp};
use aya::{Ebpf, EbpfLoader};
use dissector::wire::ROCE_UDP_PORT;
use roce_ebpf::abi::{event, fault, global};

use crate::error::{Error, check_kernel, missing_capabilities};
use crate::kernel_log;

#[cfg(kernel_object)]
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/roce"));
#[cfg(not(kernel_object))]
static OBJECT: &[u8] = &[];

/// The object with several designs of the flow map, for the bench.
#[cfg(kernel_object)]
pub static DESIGNS: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/roce-designs"));
/// The object with several designs of the flow map, for the bench.
#[cfg(not(kernel_object))]
pub static DESIGNS: &[u8] = &[];

/// What the program is loaded with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// UDP destination port of RoCEv2.
    pub port: u16,
    /// Flows (times the CPUs that see each) that fit.
    pub max_flows: u32,
    /// Kinds of events to report, bits of [`event::kind`].
    pub events: u32,
    /// Report every n-th packet of a CPU; 0 none, 1 all.
    pub sample_every: u32,
    /// Bytes of each reported packet, up to [`event::LONG`].
    pub snaplen: u32,
    /// Bytes of the event ring; rounded up to a power of two.
    pub ring_bytes: u32,
    /// Whether there is room for fault rules to keep their history.
    pub faults: bool,
    /// Whether there is room for whole packets that a fault rule acted on.
    pub fault_frames: bool,
}

/// Events that a person wants to see: all kinds but samples and CE marks.
pub const NOTABLE: u32 = event::kind::NAK
    | event::kind::RNR
    | event::kind::CNP
    | event::kind::GAP
    | event::kind::REPEAT
    | event::kind::LATE
    | event::kind::MAD;

impl Default for Options {
    #[expect(clippy::cast_possible_truncation, reason = "a constant of 128")]
    fn default() -> Self {
        Self {
            port: ROCE_UDP_PORT,
            max_flows: 65_536,
            events: 0,
            sample_every: 0,
            snaplen: event::SHORT as u32,
            ring_bytes: 1 << 20,
            faults: false,
            fault_frames: false,
        }
    }
}

/// Whether this build has a kernel object.
pub const fn has_object() -> bool {
    !OBJECT.is_empty()
}

/// Loads the object and creates its maps; programs are verified when they are asked for.
pub fn load(options: &Options) -> Result<Ebpf, Error> {
    load_object(OBJECT, options)
}

fn load_object(object: &[u8], options: &Options) -> Result<Ebpf, Error> {
    if object.is_empty() {
        return Err(Error::NoObject);
    }
    check_kernel(&release())?;
    let missing = missing_capabilities();
    if !missing.is_empty() {
        return Err(Error::NoPrivilege { what: "load a program into the kernel", missing });
    }
    // every object of this layout has this symbol, and no other has
    let abi = global::ABI_VERSION;
    let max_flows = options.max_flows.max(1);
    let log_level = aya_log_level();
    let mut loader = EbpfLoader::new();
    loader
        .override_global(global::ABI, &abi, true)
        .override_global(global::PORT, &options.port, true)
        .override_global(global::EVENTS, &options.events, true)
        .override_global(global::SAMPLE_EVERY, &options.sample_every, true)
        .override_global(global::SNAPLEN, &options.snaplen, true)
        .override_global("AYA_LOG_LEVEL", &log_level, false)
        .override_global(global::MAX_FLOWS, &max_flows, true)
        .map_max_entries(global::FLOWS, max_flows)
        // a flow has one key a CPU and one for its PSNs
        .map_max_entries(global::SLOTS_V4, max_flows.saturating_mul(2))
        .map_max_entries(global::SLOTS_V6, max_flows.saturating_mul(2))
        .map_max_entries(global::FREE, max_flows)
        .map_max_entries(global::EVENT_RING, options.ring_bytes.max(4096));
    if options.faults {
        loader
            .map_max_entries(fault::map::FLOWS, fault::MAX_FLOWS)
            .map_max_entries(fault::map::SEEN, fault::MAX_SEEN)
            .map_max_entries(fault::map::STATES, fault::MAX_STATES)
            .map_max_entries(fault::map::EVENTS, fault::EVENT_RING_BYTES)
            .map_max_entries(fault::map::WATCH, fault::WATCH_RING_BYTES);
    }
    if options.fault_frames {
        loader.map_max_entries(fault::map::FRAMES, fault::FRAME_RING_BYTES);
    }
    loader.load(object).map_err(Error::of_load)
}

/// The level that was asked for, as the kernel side numbers it.
fn aya_log_level() -> u8 {
    match kernel_log::level() {
        log::LevelFilter::Off => 0,
        log::LevelFilter::Error => 1,
        log::LevelFilter::Warn => 2,
        log::LevelFilter::Info => 3,
        log::LevelFilter::Debug => 4,
        log::LevelFilter::Trace => 5,
    }
}

/// An XDP program of the object, verified.
pub fn xdp<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, Error> {
    let program: &mut Xdp = program(ebpf, name)?;
    if program.fd().is_err() {
        program.load().map_err(|e| Error::of_program(name, e))?;
    }
    Ok(program)
}

/// A TC program of the object, verified.
pub fn classifier<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut SchedClassifier, Error> {
    let program: &mut SchedClassifier = program(ebpf, name)?;
    if program.fd().is_err() {
        program.load().map_err(|e| Error::of_program(name, e))?;
    }
    Ok(program)
}

/// Shows every program of the object to the kernel's verifier, with everything on that makes it look further, and attaches
/// none: names in order, and the instructions that it looked at (of a million that it allows; 0 if it does not say).
pub fn verify() -> Result<Vec<(String, u32)>, Error> {
    let snaplen = u32::try_from(event::LONG).unwrap_or(u32::MAX);
    let everything = Options { max_flows: 1, events: u32::MAX, sample_every: 2, snaplen, ..Options::default() };
    let mut ebpf = load(&everything)?;
    let mut names: Vec<String> = ebpf.programs().map(|(name, _)| name.to_owned()).collect();
    names.sort_unstable();
    let mut out = Vec::new();
    for name in names {
        use aya::programs::Program;
        let info = match ebpf.program_mut(&name) {
            Some(Program::Xdp(p)) => p.load().and_then(|()| p.info()),
            Some(Program::SchedClassifier(p)) => p.load().and_then(|()| p.info()),
            _ => return Err(Error::Object(format!("{name} is no program of a kind that is known"))),
        };
        let info = info.map_err(|e| Error::of_program(&name, e))?;
        out.push((name, info.verified_instruction_count().unwrap_or(0)));
    }
    Ok(out)
}

fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, Error>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
{
    ebpf.program_mut(name)
        .and_then(|p| p.try_into().ok())
        .ok_or_else(|| Error::Object(format!("it has no program {name} of the right kind")))
}

/// `uname -r`.
pub fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").map(|s| s.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_object_says_so() {
        let said = load_object(&[], &Options::default()).unwrap_err().to_string();
        assert!(said.contains("without its kernel object") && said.contains("cargo xtask setup"), "{said}");
    }
}
