//! Faults: what happens to a packet after it was counted.

use super::ctx::Ctx;
use super::roce::Parsed;

/// What becomes of a packet.
pub enum Verdict {
    /// Goes on.
    Pass,
    /// Is dropped.
    Drop,
}

/// Decides; called only when rules are loaded.
#[inline(always)]
pub fn decide<C: Ctx>(_ctx: &C, _parsed: &Parsed) -> Verdict {
    Verdict::Pass
}
