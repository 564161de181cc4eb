//! `roce.*`: what Wireshark has no field for: the ICRC's verdict, remarks, and what only other packets can tell.

use super::{Field, Input, Tree};
use crate::flow::Repeat;
use crate::frame::icrc::Verdict;
use crate::frame::{Encapsulation, Note, mistake};
use crate::wire::aeth;
use crate::wire::{NakCode, Stop};

/// Group of these fields.
pub const GROUP: u16 = 7;

/// Fields that need the analysis of earlier packets.
pub static FROM_ANALYSIS: &[&Field] = &[&FLOW, &RETRANSMISSION, &DUPLICATE, &GAP, &REORDERED, &ACK_OF, &RTT];

crate::fields! {
    group 7;
    ROCE "roce" "RoCE analysis" None Dec {} "What was derived about a RoCE packet.";
    NOTE "roce.note" "Note" Str Dec {} "Remark of the dissector: where a packet is cut, which lengths disagree.";
    ENCAPSULATION "roce.encapsulation" "Encapsulation" Str Dec {} "How the transport is carried: RoCEv2, RoCEv1 or InfiniBand.";
    TRUNCATED "roce.truncated" "Truncated" Bool Dec {} "The capture holds less than the packet.";
    PAYLOAD_LEN "roce.payload_len" "Payload length" U32 Dec {} "Bytes of payload on the wire, without pad.";
    NAK "roce.nak" "NAK" Str Dec {} "Reason of a NAK; `RNR` for receiver not ready. Present only in NAKs.";
    ICRC_STATUS "roce.icrc.status" "ICRC status" Str Dec {} "good, bad or unchecked.";
    ICRC_CALCULATED "roce.icrc.calculated" "Calculated ICRC" U32 Hex {} "What a wrong ICRC should have been, read as infiniband.invariant.crc is.";
    ICRC_REASON "roce.icrc.reason" "Reason" Str Dec {} "Why the ICRC was not checked, or which mistake would explain a wrong one.";
    FLOW "roce.flow" "Flow" U32 Dec {} "Number of the flow, as `roce-dissect flows` has it.";
    RETRANSMISSION "roce.retransmission" "Retransmission" Bool Dec {} "Sent again: this PSN came earlier in the same flow and role.";
    DUPLICATE "roce.duplicate" "Duplicate" Bool Dec {} "A copy of an earlier packet that the network made.";
    GAP "roce.gap" "Missing before this packet" U32 Dec {} "PSNs that were due and were passed over before this packet.";
    REORDERED "roce.reordered" "Reordered" Bool Dec {} "First arrival, with a lower PSN than one seen before.";
    ACK_OF "roce.ack_of" "Acknowledges frame" U32 Dec {} "Frame whose PSN this packet acknowledges.";
    RTT "roce.rtt" "Time since that frame" Duration Dec {} "Seconds from that frame to its acknowledge.";
    EXPERT "_ws.expert" "Expert Info" None Dec { hidden: true } "There is a note: something is cut, or contradicts itself.";
    EXPERT_MESSAGE "_ws.expert.message" "Message" Str Dec { hidden: true } "The note.";
    MALFORMED "_ws.malformed" "Malformed Packet" None Dec { hidden: true } "The packet itself is too short for what it says it is.";
    SHORT "_ws.short" "Short Frame" None Dec { hidden: true } "The capture holds less than the packet.";
    ASIDE "roce.aside" "About RoCE" Str Dec {} "What a frame without RoCE says about it: PFC, PAUSE, LLDP with DCBX, ARP, ICMP errors.";
}

/// Adds what is known beyond the bytes.
pub fn build(input: &Input<'_, '_>, tree: &mut Tree<'_>) {
    let frame = input.frame;
    let Some(t) = frame.transport else {
        if let Some(aside) = frame.aside.as_ref().filter(|_| tree.wants(&ASIDE)) {
            tree.derive(&ASIDE, aside.to_string());
        }
        notes(input, tree);
        return;
    };
    tree.open_header(&ROCE, 0..0);
    tree.derive(
        &ENCAPSULATION,
        match t.encapsulation {
            Encapsulation::RoceV2 => "RoCEv2",
            Encapsulation::RoceV1 => "RoCEv1",
            Encapsulation::Native => "InfiniBand",
        },
    );
    super::ulp::context(input, tree);
    notes(input, tree);
    if let Some(p) = input.roce() {
        tree.derive(&TRUNCATED, matches!(p.stop, Some(Stop::Truncated(_) | Stop::PayloadCut { .. })));
        tree.derive(&PAYLOAD_LEN, p.payload_len as u64);
        if let Some(a) = p.ext.aeth {
            match a.syndrome().verdict() {
                aeth::Verdict::Rnr(_) => tree.derive(&NAK, "RNR"),
                aeth::Verdict::Nak(NakCode::Reserved(v)) => tree.derive(&NAK, format!("reserved code {v}")),
                aeth::Verdict::Nak(code) => tree.derive(&NAK, code.name()),
                aeth::Verdict::Ack(_) | aeth::Verdict::Reserved(_) => {}
            }
        }
    }
    match input.icrc {
        None => {}
        Some(Verdict::Good) => tree.derive(&ICRC_STATUS, "good"),
        Some(Verdict::Bad { calculated, .. }) => {
            tree.derive(&ICRC_STATUS, "bad");
            tree.derive(&ICRC_CALCULATED, calculated);
            if tree.wants(&ICRC_REASON)
                && let Some(mistake) = input.roce().and_then(|p| mistake::explain(frame, p))
            {
                tree.derive(&ICRC_REASON, mistake.to_string());
            }
        }
        Some(Verdict::Unchecked(why)) => {
            tree.derive(&ICRC_STATUS, "unchecked");
            tree.derive(&ICRC_REASON, why.name());
        }
    }
    if let Some(a) = input.analysis {
        if let Some(id) = a.flow {
            tree.derive(&FLOW, id);
        }
        match a.repeat {
            Some(Repeat::Sent(cause)) => {
                tree.derive(&RETRANSMISSION, true);
                tree.label(&RETRANSMISSION, || format!("Retransmission: {}", cause.name()));
            }
            Some(Repeat::Copied) => tree.derive(&DUPLICATE, true),
            None => {}
        }
        if a.gap > 0 {
            tree.derive(&GAP, a.gap);
        }
        if a.reordered {
            tree.derive(&REORDERED, true);
        }
        if let Some(n) = a.ack_of {
            tree.derive(&ACK_OF, n);
        }
        if let Some(ns) = a.rtt {
            tree.derive(&RTT, super::Value::Duration(ns));
        }
    }
    tree.close();
}

fn notes(input: &Input<'_, '_>, tree: &mut Tree<'_>) {
    let frame = input.frame;
    let cut = frame.bytes.len() < frame.wire_len;
    let header_cut = frame.notes.iter().any(|n| matches!(n, Note::Truncated { .. }));
    let stop = match input.packet {
        Some(Err(stop)) => Some(stop),
        Some(Ok(p)) => p.stop.as_ref(),
        None => None,
    };
    if matches!(stop, Some(Stop::TooShort(_) | Stop::PadTooLong)) || (header_cut && !cut) {
        tree.derive(&MALFORMED, super::Value::None);
    }
    if matches!(stop, Some(Stop::Truncated(_) | Stop::PayloadCut { .. })) || (header_cut && cut) {
        tree.derive(&SHORT, super::Value::None);
    }
    for n in &frame.notes {
        tree.note(0..0, || note_words(n));
    }
}

/// A frame's note in words.
pub fn note_words(note: &Note) -> String {
    match note {
        Note::Truncated { layer, needed, available } => {
            format!("{}: needs {needed} bytes, {available} captured", layer.name())
        }
        Note::LengthMismatch { layer, says, room } => {
            format!("{} length says {says}, the layer around it leaves {room}", layer.name())
        }
        Note::Trailer(n) => format!("{n} bytes behind the packet (padding or FCS)"),
        Note::TooDeep => "nested too deeply, the rest was not looked at".to_owned(),
        Note::Other(s) => s.clone(),
    }
}
