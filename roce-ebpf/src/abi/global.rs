//! Constants that the loader sets before the verifier sees the program: what is off costs nothing.

/// Symbol whose presence says that the object has this layout; the loader asks for it by name.
pub const ABI: &str = "ROCE_ABI_1";
/// `u16`: UDP destination port of RoCEv2.
pub const PORT: &str = "ROCE_PORT";
/// `u32`: kinds of events to report, bits of [`super::event::kind`].
pub const EVENTS: &str = "ROCE_EVENTS";
/// `u32`: report every n-th RoCE packet of a CPU as [`super::event::kind::SAMPLE`]; 0 none, 1 all.
pub const SAMPLE_EVERY: &str = "ROCE_SAMPLE_EVERY";
/// `u32`: bytes of each packet to report, up to [`super::event::LONG`]; more than [`super::event::SHORT`]
/// takes the long record.
pub const SNAPLEN: &str = "ROCE_SNAPLEN";

/// Map of [`super::KeyV4`] to [`super::Flow`].
pub const FLOWS_V4: &str = "FLOWS_V4";
/// Map of [`super::KeyV6`] to [`super::Flow`].
pub const FLOWS_V6: &str = "FLOWS_V6";
/// Per-CPU array of [`super::Totals`], index [`super::Direction`].
pub const TOTALS: &str = "TOTALS";
/// Ring buffer of [`super::ShortEvent`] and [`super::LongEvent`].
pub const EVENT_RING: &str = "EVENT_RING";

/// XDP program, ingress.
pub const XDP_INGRESS: &str = "roce_xdp";
/// TC program, egress.
pub const TC_EGRESS: &str = "roce_tc_out";
/// TC program, ingress: where the XDP hook is taken.
pub const TC_INGRESS: &str = "roce_tc_in";
