//! Rules to the tables of the kernel program. What it knows of opcodes comes out of the opcode table here.

use std::net::IpAddr;

use dissector::wire::opcode::{FLAGS, Flags};
use dissector::wire::outer::{ECN_CE, ECN_ECT0, ECN_ECT1, ECN_NOT_ECT, dscp, ecn};
use dissector::wire::{Class, Header, Kind, Op, Role, Syndrome, Transport};
use roce_ebpf::abi::fault::{
    self as abi, Action, CERTAIN, FOREVER, FaultConfig, FaultMatch, FaultOpcode, FaultPicks, FaultRule, MAX_RULES,
    PICKS,
};

use super::rule::{Direction, Fault, Per, Rule};
use super::words::Prefix;

/// Everything that the kernel program reads.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Header.
    pub config: FaultConfig,
    /// By opcode byte.
    pub opcodes: Vec<FaultOpcode>,
    /// By the last byte of the PSN.
    pub psns: Vec<u64>,
    /// By single bytes of the addresses.
    pub picks: Box<FaultPicks>,
    /// By TOS byte.
    pub tos: Vec<u64>,
    /// By AETH syndrome, for acknowledges.
    pub syndromes: Vec<u64>,
    /// By the last byte of the destination queue pair.
    pub qpns: Vec<u64>,
    /// First part of each rule.
    pub matches: Vec<FaultMatch>,
    /// Second part.
    pub rules: Vec<FaultRule>,
}

/// Lowers a rule set. `ifindex_of` resolves the interface that a rule names; there are at most
/// [`MAX_RULES`] rules (the scenario has seen to that).
pub fn lower(rules: &[Rule], seed: u64, ifindex_of: impl Fn(&str) -> Option<u32>) -> Tables {
    let mut t = Tables {
        config: FaultConfig { seed, ..FaultConfig::default() },
        opcodes: (0..=255).map(opcode).collect(),
        psns: vec![0; 256],
        picks: Box::new(FaultPicks { v4: [[0; 256]; PICKS], v6: [[0; 256]; PICKS] }),
        tos: vec![0; 256],
        syndromes: vec![0; 256],
        qpns: vec![0; 256],
        matches: Vec::new(),
        rules: Vec::new(),
    };
    for (n, rule) in rules.iter().take(MAX_RULES).enumerate() {
        let bit = 1u64 << n;
        t.config.active |= bit;
        let [inward, outward] = &mut t.config.direction;
        if rule.direction != Direction::Out {
            *inward |= bit;
        }
        if rule.direction != Direction::In {
            *outward |= bit;
        }
        for (byte, entry) in (0u8..=255).zip(&mut t.opcodes) {
            if rule.takes(byte) {
                entry.full |= bit;
            }
            if needs_history(rule) && in_scope(rule, byte) {
                entry.scope |= bit;
            }
        }
        let (first, span) = psns(rule, false);
        for (byte, word) in (0u8..=255).zip(&mut t.psns) {
            // distance of the byte from the first one's last byte
            if u32::from(byte).wrapping_sub(first) & 0xff <= span {
                *word |= bit;
            }
        }
        if rule.src.or(rule.dst).is_some() {
            t.config.addressed |= bit;
        }
        for (byte, word) in (0u8..=255).zip(&mut t.tos) {
            if rule.dscp.is_none_or(|d| d == dscp(byte)) && ecn_fits(rule.fault, ecn(byte)) {
                *word |= bit;
            }
        }
        for (byte, word) in (0u8..=255).zip(&mut t.syndromes) {
            let s = Syndrome(byte);
            let taken = rule
                .opcodes
                .as_ref()
                .is_none_or(|o| s.is_ack() && o.acks || s.is_nak() && o.naks || s.is_rnr() && o.rnrs);
            if taken {
                *word |= bit;
            }
        }
        if rule.opcodes.as_ref().is_some_and(|o| o.mad_only) {
            t.config.mad_only |= bit;
        }
        if rule.flow.is_some() && rule.opcodes.is_none() {
            t.config.not_management |= bit;
        }
        if rule.qpn.is_none() {
            t.config.any_qpn |= bit;
        }
        for (byte, word) in (0u32..).zip(&mut t.qpns) {
            if rule.qpn.is_none_or(|q| q & 0xff == byte) {
                *word |= bit;
            }
        }
        let flags = flags(rule);
        t.matches.push(first_part(rule, rule.interface.as_deref().and_then(&ifindex_of).unwrap_or(0)));
        t.rules.push(second_part(rule, flags));
    }
    picks(rules, &mut t);
    t
}

/// The addresses of a rule as bytes of a packet, source and destination beside each other.
struct Addresses {
    /// The rule's bit.
    bit: u64,
    /// Bytes under the mask.
    value: Vec<u8>,
    /// Bits that count.
    mask: Vec<u8>,
    /// How much of it is left by the bytes picked so far, of all values that they could have.
    left: f64,
}

impl Addresses {
    /// `bytes` of each address, counted from its end as IPv6; `None` if what lies before them cannot be that of an
    /// IPv4 address.
    fn of(n: usize, rule: &Rule, bytes: usize) -> Option<Self> {
        let mut all = Self { bit: 1 << n, value: Vec::new(), mask: Vec::new(), left: 1.0 };
        let v4 = std::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets();
        for prefix in [rule.src, rule.dst] {
            let (value, mask) = masked(prefix);
            let ((head, value), (ignored, mask)) = (value.split_at(16 - bytes), mask.split_at(16 - bytes));
            if head.iter().zip(ignored).zip(v4).any(|((v, m), b)| b & m != *v) {
                return None;
            }
            all.value.extend(value);
            all.mask.extend(mask);
        }
        Some(all)
    }

    /// Value and mask of a byte.
    fn at(&self, place: usize) -> (u8, u8) {
        (self.value.get(place).copied().unwrap_or(0), self.mask.get(place).copied().unwrap_or(0))
    }
}

/// Picks the bytes of the addresses that leave the fewest rules, and fills their tables.
fn picks(rules: &[Rule], t: &mut Tables) {
    let family = |bytes| -> Vec<Addresses> {
        rules.iter().take(MAX_RULES).enumerate().filter_map(|(n, r)| Addresses::of(n, r, bytes)).collect()
    };
    // an IPv4 pair is one word, any bytes of which may be picked; of an IPv6 pair one byte a word
    let (mut v4, mut v6) = (family(4), family(16));
    let mut places: Vec<usize> = (0..8).collect();
    for (shift, table) in t.config.picks_v4.iter_mut().zip(&mut t.picks.v4) {
        let place = pick(&mut v4, &places, table);
        places.retain(|p| *p != place);
        *shift = shifted(place);
    }
    for (n, (shift, table)) in t.config.picks_v6.iter_mut().zip(&mut t.picks.v6).enumerate() {
        let places: Vec<usize> = (n * 8..n * 8 + 8).collect();
        *shift = shifted(pick(&mut v6, &places, table));
    }
}

/// How far a byte is shifted in its word, as the word lies in memory.
fn shifted(place: usize) -> u8 {
    let byte = u8::try_from(place % 8).unwrap_or(0);
    if cfg!(target_endian = "little") { byte * 8 } else { 56 - byte * 8 }
}

/// Picks one byte among `places`, and fills its table.
fn pick(rules: &mut [Addresses], places: &[usize], table: &mut [u64; 256]) -> usize {
    let share = |(_, mask): (u8, u8)| 0.5f64.powi(i32::try_from(mask.count_ones()).unwrap_or(0));
    let mut best = (0, f64::INFINITY, 0);
    for place in places.iter().copied() {
        let left: f64 = rules.iter().map(|r| r.left * share(r.at(place))).sum();
        let mut kinds: Vec<_> = rules.iter().map(|r| r.at(place)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        // the more the rules differ in it, the more of them it tells apart; and what is later differs more between hosts
        if left < best.1 || left <= best.1 && kinds.len() >= best.2 {
            best = (place, left, kinds.len());
        }
    }
    let place = best.0;
    for r in rules {
        let (value, mask) = r.at(place);
        r.left *= share((value, mask));
        for (byte, word) in (0u8..=255).zip(table.iter_mut()) {
            if byte & mask == value {
                *word |= r.bit;
            }
        }
    }
    place
}

/// Whether there is anything to do at this ECN codepoint: a switch marks only what is ECT, and what is marked
/// already counts as nobody's match.
fn ecn_fits(fault: Fault, codepoint: u8) -> bool {
    match fault {
        Fault::MarkCe { any: false, .. } => matches!(codepoint, ECN_ECT0 | ECN_ECT1),
        Fault::MarkCe { any: true, .. } => codepoint != ECN_CE,
        Fault::ClearEct => codepoint != ECN_NOT_ECT,
        _ => true,
    }
}

fn opcode(byte: u8) -> FaultOpcode {
    let row = Op::of(byte);
    let bits = FLAGS[usize::from(byte)];
    let mut flags = 0;
    if bits.has(Flags::STARTS) {
        flags |= abi::OPCODE_STARTS;
    }
    if row.is_some_and(|op| op.kind == Kind::Ack) {
        flags |= abi::OPCODE_ACK;
    }
    if row.is_some_and(|op| op.transport == Transport::Ud && op.has(Header::Deth)) {
        flags |= abi::OPCODE_DETH;
    }
    let space = match row.map(Op::role) {
        Some(Role::Request) => abi::SPACE_REQUEST,
        Some(Role::Response) if flags & abi::OPCODE_ACK != 0 => abi::SPACE_ACK,
        Some(Role::Response) => abi::SPACE_RESPONSE,
        Some(Role::Notification) | None => abi::SPACE_NONE,
    };
    FaultOpcode {
        full: 0,
        scope: 0,
        headers_len: u32::try_from(row.map_or(0, Op::headers_len)).unwrap_or(0),
        space,
        class: u32::from(bits.class()),
        flags,
    }
}

/// Whether the rule must see packets that it does not match, to know those that it does.
fn needs_history(rule: &Rule) -> bool {
    rule.iter.is_some() || rule.message.is_some() || rule.flow.is_some() || rule.psn.is_some_and(|p| p.relative)
}

/// The packets that make up a rule's idea of a flow: for PSNs all of the same role, for messages those of the same
/// kind, and without an opcode condition what carries messages (no acknowledges, no CNPs).
fn in_scope(rule: &Rule, byte: u8) -> bool {
    if rule.transport.is_some_and(|t| t != Transport::of(byte)) {
        return false;
    }
    let Some(op) = Op::of(byte) else { return rule.opcodes.as_ref().is_some_and(|o| o.contains(byte)) };
    let Some(chosen) = &rule.opcodes else {
        let carries = op.role() == Role::Request || op.kind == Kind::ReadResponse;
        return carries || rule.flow.is_none() && rule.message.is_none();
    };
    let relative = rule.psn.is_some_and(|p| p.relative);
    let ops = dissector::wire::opcode::ROWS;
    ops.iter().filter(|o| chosen.contains(o.byte)).any(|o| {
        let same_kind = o.transport == op.transport && o.kind == op.kind;
        same_kind || relative && o.transport == op.transport && o.role() == op.role() && op.kind != Kind::Ack
    })
}

fn flags(rule: &Rule) -> u32 {
    let mut f = 0;
    if needs_history(rule) {
        f |= abi::RULE_HISTORY;
    }
    if rule.psn.is_some_and(|p| p.relative) {
        f |= abi::RULE_RELATIVE;
    }
    if rule.per == Per::Rule {
        f |= abi::RULE_SHARED;
    }
    if rule.burst.is_some() {
        f |= abi::RULE_BURST;
    }
    let queue = matches!(rule.fault, Fault::MarkCe { queue: Some(_), .. });
    let counted = rule.nth.is_some() || rule.every.is_some() || rule.count.is_some();
    if counted || rule.burst.is_some() || rule.rate.is_some() || queue {
        f |= abi::RULE_COUNTS;
    }
    let window = !rule.after.is_zero() || rule.lasting.is_some() || rule.flap.is_some();
    if window || rule.rate.is_some() || queue {
        f |= abi::RULE_CLOCK;
    }
    f
}

fn first_part(rule: &Rule, ifindex: u32) -> FaultMatch {
    let (src, src_mask) = words(rule.src);
    let (dst, dst_mask) = words(rule.dst);
    let (psn, psn_span) = psns(rule, false);
    let size = |v: u64| u32::try_from(v).unwrap_or(u32::MAX);
    FaultMatch {
        src,
        src_mask,
        dst,
        dst_mask,
        psn,
        psn_span,
        size_min: rule.size.map_or(0, |r| size(r.min)),
        size_max: rule.size.map_or(u32::MAX, |r| size(r.max)),
        ifindex,
        dest_qp: rule.qpn.unwrap_or(abi::ANY_QPN),
    }
}

/// First PSN and how many follow, if the rule has a range of this sort; else any.
fn psns(rule: &Rule, relative: bool) -> (u32, u32) {
    match rule.psn {
        Some(p) if p.relative == relative => (p.first, p.last.wrapping_sub(p.first) & 0xff_ffff),
        _ => (0, 0xff_ffff),
    }
}

/// Address and mask as bytes of the packet, IPv4 as `::ffff:a.b.c.d`.
fn masked(prefix: Option<Prefix>) -> ([u8; 16], [u8; 16]) {
    let Some(p) = prefix else { return ([0; 16], [0; 16]) };
    let (v6, length) = match p.address {
        IpAddr::V4(a) => (a.to_ipv6_mapped(), u32::from(p.length) + 96),
        IpAddr::V6(a) => (a, u32::from(p.length)),
    };
    let mask = if length == 0 { 0 } else { u128::MAX << (128 - length.min(128)) };
    ((u128::from(v6) & mask).to_be_bytes(), mask.to_be_bytes())
}

/// Address and mask as two words in memory order of the packet.
fn words(prefix: Option<Prefix>) -> ([u64; 2], [u64; 2]) {
    let (value, mask) = masked(prefix);
    let split = |b: [u8; 16]| {
        let (head, tail) = b.split_at(8);
        let word = |s: &[u8]| u64::from_ne_bytes(s.try_into().unwrap_or_default());
        [word(head), word(tail)]
    };
    (split(value), split(mask))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a probability times 2^32 fits")]
fn fraction(p: f64) -> u64 {
    (p.clamp(0.0, 1.0) * CERTAIN as f64).round() as u64
}

fn ns(d: std::time::Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(FOREVER)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the word's range is checked: at most 1e15 ns"
)]
fn interval(rate: f64) -> u64 {
    (1e9 / rate).round() as u64
}

fn second_part(rule: &Rule, flags: u32) -> FaultRule {
    let (action, argument, xor) = match rule.fault {
        Fault::Drop => (Action::Drop, 0, 0),
        Fault::MarkCe { .. } => (Action::MarkCe, 0, 0),
        Fault::FailIcrc => (Action::FailIcrc, 0, 0),
        Fault::Corrupt { offset, xor } => (Action::Corrupt, offset, u32::from(xor)),
        Fault::ClearEct => (Action::ClearEct, 0, 0),
        Fault::SetDscp(d) => (Action::SetDscp, u32::from(d), 0),
        Fault::Truncate(n) => (Action::Truncate, n, 0),
        Fault::Duplicate => (Action::Duplicate, 0, 0),
    };
    let (psn, psn_span) = psns(rule, true);
    let mut r = FaultRule {
        after_ns: ns(rule.after),
        until_ns: rule.lasting.map_or(FOREVER, |d| ns(rule.after.saturating_add(d))),
        period_ns: rule.flap.map_or(0, |(p, _)| ns(p)),
        down_ns: rule.flap.map_or(0, |(_, d)| ns(d)),
        nth: rule.nth.unwrap_or(0),
        every: rule.every.unwrap_or(0),
        probability: rule.probability.map_or(CERTAIN, fraction),
        count: rule.count.unwrap_or(0),
        interval_ns: rule.rate.map_or(0, interval),
        iter_min: rule.iter.map_or(0, |r| u32::try_from(r.min).unwrap_or(u32::MAX)),
        iter_max: rule.iter.map_or(u32::MAX, |r| u32::try_from(r.max).unwrap_or(u32::MAX)),
        message: rule.message.unwrap_or(0),
        flow: rule.flow.unwrap_or(0),
        armed_by: rule.armed_by.and_then(|i| u32::try_from(i + 1).ok()).unwrap_or(0),
        flags,
        action: action as u32,
        argument,
        xor,
        psn,
        psn_span,
        ..FaultRule::default()
    };
    if let Some(b) = rule.burst {
        (r.ge_p, r.ge_r, r.ge_bad, r.ge_good) = (fraction(b.p), fraction(b.r), fraction(b.bad), fraction(b.good));
    }
    if let Fault::MarkCe { queue: Some(q), .. } = rule.fault {
        // 1024 bytes are 8192 bits; a terabit a second still takes 8 ns
        r.drain_ns_per_kib = (8_192_000_000_000 / q.rate.max(1)).max(1);
        let wait =
            |bytes: u64| u64::try_from(u128::from(bytes) * u128::from(r.drain_ns_per_kib) / 1024).unwrap_or(FOREVER);
        r.kmin_ns = wait(q.kmin);
        r.kmax_ns = wait(q.kmax).max(r.kmin_ns);
        r.pmax = fraction(q.pmax);
    }
    r
}

const _: () = assert!(Class::COUNT <= abi::CLASS_SLOTS);
