//! Constants that the loader sets before the verifier sees the program: what is off costs nothing.

/// Symbol whose presence says that the object has this layout; the loader asks for it by name.
pub const ABI: &str = "ROCE_ABI_6";
/// What the symbol holds: the number in its name.
pub const ABI_VERSION: u32 = 6;
/// `u16`: UDP destination port of RoCEv2.
pub const PORT: &str = "ROCE_PORT";
/// `u32`: kinds of events to report, bits of [`super::event::kind`].
pub const EVENTS: &str = "ROCE_EVENTS";
/// `u32`: report every n-th RoCE packet of a CPU as [`super::event::kind::SAMPLE`]; 0 none, 1 all.
pub const SAMPLE_EVERY: &str = "ROCE_SAMPLE_EVERY";
/// `u32`: bytes of each packet to report, up to [`super::event::LONG`]; more than [`super::event::SHORT`]
/// takes the long record.
pub const SNAPLEN: &str = "ROCE_SNAPLEN";

/// `u32`: slots of [`FLOWS`].
pub const MAX_FLOWS: &str = "ROCE_MAX_FLOWS";

/// Array of [`super::Flow`], mapped into user space's memory.
pub const FLOWS: &str = "FLOWS";
/// Map of [`super::KeyV4`] to the slot of its flow, a `u32`; under [`super::key::ALL_CPUS`] the entry that keeps its PSNs.
pub const SLOTS_V4: &str = "SLOTS_V4";
/// Map of [`super::KeyV6`] to the slot of its flow.
pub const SLOTS_V6: &str = "SLOTS_V6";
/// Array of one `u64`: slots that were given out for the first time, from 0 on.
pub const USED: &str = "USED";
/// Queue of `u32`: slots whose flows ended; user space clears them first and then puts them here.
pub const FREE: &str = "FREE";
/// Per-CPU array of one [`super::PerCpu`].
pub const CPUS: &str = "CPUS";
/// Ring buffer of [`super::ShortEvent`] and [`super::LongEvent`].
pub const EVENT_RING: &str = "EVENT_RING";

/// XDP program, ingress.
pub const XDP_INGRESS: &str = "roce_xdp";
/// TC program, egress.
pub const TC_EGRESS: &str = "roce_tc_out";
/// TC program, ingress: where the XDP hook is taken.
pub const TC_INGRESS: &str = "roce_tc_in";
