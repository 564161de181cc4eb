//! Codes `migreq-mixed` and `pkey-mixed`: header bits that the two ends should agree on.

use super::{Finding, Seen, Severity, evidence, name};
use crate::flow::event::Happened;

/// Looks at MigReq and P_Key.
pub fn find(seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let a = seen.analysis;
    for f in a.flows().filter(|f| f.ordered() && f.icrc.bad == 0) {
        let peer = a.peer(f);
        if let Some(p) = peer
            && f.id < p.id
            && p.icrc.bad == 0
            && f.mig_req | p.mig_req == 3
        {
            let within = f.mig_req == 3 || p.mig_req == 3;
            out.push(Finding {
                code: "migreq-mixed",
                severity: Severity::Warning,
                title: if within {
                    format!("{}: the MigReq bit changes within the connection", name(f))
                } else {
                    format!("{}: one end sets MigReq, the other does not", name(f))
                },
                detail: "1 means migrated, the usual state. Some adapters take a difference for a path migration and drop packets or slow down; it tells of two implementations that do not agree (hardware and software RoCE).".to_owned(),
                flow: Some(f.id),
                packets: vec![f.first_packet, p.first_packet],
            });
        }
        // where no ICRC vouches for it, one packet may have been damaged
        let often = if f.icrc.unchecked > 0 { 2 } else { 1 };
        let changed = f.events().is_some_and(|e| e.of(Happened::PKeyChanged).count() >= often);
        if changed || peer.is_some_and(|p| f.id < p.id && p.icrc.bad == 0 && p.p_key & 0x7fff != f.p_key & 0x7fff) {
            out.push(Finding {
                code: "pkey-mixed",
                severity: Severity::Warning,
                title: format!("{}: packets of one connection carry different P_Keys", name(f)),
                detail: "A receiver drops packets of another partition in silence and counts a P_Key violation. Both ends must use the same partition (pkey_index).".to_owned(),
                flow: Some(f.id),
                packets: if changed { evidence([f], &[Happened::PKeyChanged]) } else { vec![f.first_packet] },
            });
        }
    }
}
