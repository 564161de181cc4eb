//! The row that every view of a flow shares: `roce-dissect flows`, `roce-top --batch --json` and the
//! screens. Its JSON names are a contract (scripts are written against them).

use std::net::IpAddr;

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::wire::opcode::Op;

/// NAKs by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Naks {
    /// AETH syndrome 0x60.
    pub psn_sequence_error: u64,
    /// 0x61
    pub invalid_request: u64,
    /// 0x62
    pub remote_access_error: u64,
    /// 0x63
    pub remote_operational_error: u64,
    /// 0x64
    pub invalid_rd_request: u64,
}

impl Naks {
    /// NAKs of any reason.
    pub const fn total(&self) -> u64 {
        self.psn_sequence_error
            + self.invalid_request
            + self.remote_access_error
            + self.remote_operational_error
            + self.invalid_rd_request
    }
}

/// Packets by ECN codepoint of the innermost IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ecn {
    /// 00: the sender does not take part.
    pub not_ect: u64,
    /// 10
    pub ect0: u64,
    /// 01
    pub ect1: u64,
    /// 11: congestion experienced.
    pub ce: u64,
}

/// Packets by ICRC verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IcrcCounts {
    /// Right.
    pub good: u64,
    /// Wrong.
    pub bad: u64,
    /// Not checked: truncated, fragment, IP options, or checking was off.
    pub unchecked: u64,
}

/// Packets by opcode; in JSON an object of IBTA names, unknown opcodes as `0x..`.
///
/// Few opcodes occur in one flow, and a live view holds tens of thousands of flows: a sorted list, no text, and no memory
/// of its own for as many as most flows have.
#[derive(Clone, Debug, Default)]
pub struct OpcodeCounts {
    few: [(u8, u64); FEW],
    /// How many of `few` are there.
    len: usize,
    /// All of them, once there are more.
    many: Vec<(u8, u64)>,
    /// Packets whose opcode the counter did not keep apart ("other" in JSON).
    pub other: u64,
}

const FEW: usize = 4;

impl PartialEq for OpcodeCounts {
    fn eq(&self, other: &Self) -> bool {
        self.other == other.other && self.sorted() == other.sorted()
    }
}

impl Eq for OpcodeCounts {}

impl OpcodeCounts {
    fn sorted(&self) -> &[(u8, u64)] {
        if self.many.is_empty() { self.few.get(..self.len).unwrap_or(&[]) } else { &self.many }
    }

    /// Counts `n` more packets of an opcode.
    pub fn add(&mut self, opcode: u8, n: u64) {
        if n == 0 {
            return;
        }
        let at = match self.sorted().binary_search_by_key(&opcode, |e| e.0) {
            Ok(i) => {
                let all = if self.many.is_empty() { &mut self.few[..] } else { &mut self.many };
                if let Some(e) = all.get_mut(i) {
                    e.1 = e.1.saturating_add(n);
                }
                return;
            }
            Err(i) => i,
        };
        if self.many.is_empty()
            && let Some(room) = self.few.get_mut(at..=self.len)
        {
            room.rotate_right(1);
            if let Some(first) = room.first_mut() {
                *first = (opcode, n);
            }
            self.len += 1;
            return;
        }
        if self.many.is_empty() {
            self.many = self.few.to_vec();
        }
        self.many.insert(at, (opcode, n));
    }

    /// Packets of one opcode.
    pub fn get(&self, opcode: u8) -> u64 {
        let all = self.sorted();
        all.binary_search_by_key(&opcode, |e| e.0).ok().and_then(|i| all.get(i)).map_or(0, |e| e.1)
    }

    /// Opcodes that occur and their packets, in the order of the opcodes.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.sorted().iter().copied()
    }
}

impl FromIterator<(u8, u64)> for OpcodeCounts {
    fn from_iter<I: IntoIterator<Item = (u8, u64)>>(all: I) -> Self {
        let mut counts = Self::default();
        for (opcode, n) in all {
            counts.add(opcode, n);
        }
        counts
    }
}

impl Serialize for OpcodeCounts {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        for (opcode, n) in self.iter() {
            match Op::of(opcode) {
                Some(op) => map.serialize_entry(op.name, &n)?,
                None => map.serialize_entry(&format_args!("{opcode:#04x}"), &n)?,
            }
        }
        if self.other > 0 {
            map.serialize_entry("other", &self.other)?;
        }
        map.end()
    }
}

/// One directed flow: packets from `src` to the queue pair `dest_qp` at `dst` (UD: by source QP too).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowRow {
    /// Identity of this flow within the report; `pair` of its reverse refers to it.
    pub id: u32,
    /// Source address (IPv4, IPv6 or GID).
    #[serde(serialize_with = "as_text")]
    pub src: Endpoint,
    /// Destination address.
    #[serde(serialize_with = "as_text")]
    pub dst: Endpoint,
    /// Destination QP.
    pub dest_qp: u32,
    /// Source QP: from DETH, CM or the joined reverse flow; `None` if unknown.
    pub src_qp: Option<u32>,
    /// `id` of the joined reverse flow.
    pub pair: Option<u32>,
    /// "RC", "UC", "UD" …
    pub transport: &'static str,
    /// 4, 6, or `None` for native InfiniBand without GRH.
    pub ip_version: Option<u8>,
    /// VLAN id, if tagged.
    pub vlan: Option<u16>,
    /// DSCP of the latest packet.
    pub dscp: Option<u8>,
    /// UDP source port of the latest packet.
    pub udp_srcport: Option<u16>,
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire, link header included.
    pub bytes: u64,
    /// Time of the first packet, seconds since the epoch.
    pub first: f64,
    /// Time of the last.
    pub last: f64,
    /// Messages completed (packets that end a message of a request or of a READ response).
    pub messages: u64,
    /// Packets by opcode.
    pub opcodes: OpcodeCounts,
    /// Request packets.
    pub requests: u64,
    /// READ and atomic responses.
    pub responses: u64,
    /// Acknowledges that are neither NAK nor RNR NAK.
    pub acks: u64,
    /// NAKs by reason.
    pub naks: Naks,
    /// RNR NAKs.
    pub rnr_naks: u64,
    /// Congestion notification packets.
    pub cnps: u64,
    /// By ECN codepoint.
    pub ecn: Ecn,
    /// Requests and data-bearing responses sent again by the sender.
    pub retransmitted: u64,
    /// PSNs that never came while later ones did.
    pub missing: u64,
    /// First arrivals with a lower PSN than one seen before.
    pub reordered: u64,
    /// Copies made by the network.
    pub duplicates: u64,
    /// ICRC verdicts.
    pub icrc: IcrcCounts,
    /// Packets cut by the capture.
    pub truncated: u64,
    /// Payload of a First or Middle packet, which is the path MTU; 0 if none came. Not in JSON, where the analysis says
    /// more (`path_mtu`).
    #[serde(skip)]
    pub full_payload: u32,
}

/// An address of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// IPv4 or IPv6; a GID is shown as the IPv6 address that it is.
    Ip(IpAddr),
    /// Local identifier (native InfiniBand without GRH).
    Lid(u16),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(a) => a.fmt(f),
            Self::Lid(l) => write!(f, "LID {l}"),
        }
    }
}

fn as_text<S: serde::Serializer>(e: &Endpoint, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(e)
}

/// Sums over everything that was seen. Sum over flows + `overflow_packets` = `roce_packets`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// All packets that came by.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// RoCE packets among them.
    pub roce_packets: u64,
    /// Their bytes.
    pub roce_bytes: u64,
    /// Everything else.
    pub other_packets: u64,
    /// RoCE packets that found no room in the flow table; they are in `roce_packets`.
    pub overflow_packets: u64,
    /// Events that the ring buffer could not take.
    pub events_lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::opcode::byte;

    #[test]
    fn opcode_counts_are_sorted_however_many_and_in_whichever_order() {
        let mut c = OpcodeCounts::default();
        let mut want = std::collections::BTreeMap::new();
        for i in 0..40u8 {
            // equal contents are equal, wherever they lie
            assert_eq!(c, want.iter().map(|(o, n)| (*o, *n)).collect());
            let opcode = i.wrapping_mul(37) % 23;
            c.add(opcode, u64::from(i) + 1);
            *want.entry(opcode).or_insert(0) += u64::from(i) + 1;
            assert!(c.iter().eq(want.iter().map(|(o, n)| (*o, *n))), "{c:?}");
            assert!((0..=255).all(|o| c.get(o) == want.get(&o).copied().unwrap_or(0)));
        }
        assert!(want.len() > FEW && c != OpcodeCounts::default());
    }

    #[test]
    fn opcode_counts_are_an_object_of_names() {
        let mut c = OpcodeCounts::default();
        c.add(byte::RcAcknowledge, 2);
        c.add(0xff, 1);
        c.add(byte::RcSendOnly, 0);
        c.add(byte::RcAcknowledge, 1);
        c.other = 7;
        assert_eq!(c.get(byte::RcAcknowledge), 3);
        assert_eq!(serde_json::to_string(&c).expect("counts serialise"), r#"{"RC Acknowledge":3,"0xff":1,"other":7}"#);
    }
}
