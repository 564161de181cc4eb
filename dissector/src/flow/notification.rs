//! Congestion notifications (CNPs): their spacing, and what the flow that they are about does.

use super::context::Context;
use super::event::Happened;
use super::state::Flow;

pub(super) fn notification(f: &mut Flow, peer: Option<&mut Flow>, c: &Context<'_>) {
    f.cnps += 1;
    let at = c.place.at;
    let n = f.notifications.get_or_insert_default();
    if f.cnps > 1
        && let Ok(d) = u64::try_from(at.since(n.latest))
    {
        n.spacing = Some(n.spacing.map_or(d, |s| s.min(d)));
    }
    n.latest = at;
    if let Some(p) = peer {
        p.notified = true;
        n.reaction.notified(at, &p.pace, p.bytes);
    }
    f.note(c.event(Happened::Cnp, 0, 0));
}
