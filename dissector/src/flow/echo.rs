//! Packets that are in the capture twice: recorded at two places (interface `any`, a mirror of both ports, the merged captures
//! of both ends), or copied by the network. What a sender sends again has the same PSN and payload, and so, by the IBTA's
//! ICRC over all that does not change on the way, the same bytes from BTH on; what tells a copy from it is
//!
//! - the IP identification, where the sender numbers its packets: the ICRC covers it, and a copy has the same; where it counts
//!   them, one that is behind was sent before, and the table need not be asked,
//! - the point of recording, where packets come from two of them in turn: a sender has one way at a time,
//! - the company it is in, once most packets were copies, or both requests and answers came in pairs.

use super::Place;
use crate::frame::{Frame, Net};
use crate::wire::{Packet, Role};

/// Packets that are remembered, as a power of two: so many may lie between a packet and its copy, or nearly.
const BITS: u32 = 16;
/// What tells fingerprints apart that fall into the same place.
const TAG: u64 = 0xffff_ff00_0000_0000;
/// Where a packet was recorded, a few bits of it.
const VANTAGE: u64 = 0xff << VANTAGE_AT;
const VANTAGE_AT: u32 = 32;
/// A copy of it came.
const TWICE: u64 = 1 << 31;
/// The number of a packet, its low bits.
const NUMBER: u64 = TWICE - 1;
/// Fewest packets of which, if all came twice, that tells what a capture is like.
const FEW: u64 = 6;
/// Fewest packets that tell what a capture is like.
const ENOUGH: u64 = 32;

/// A packet that came before, byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Number of the earlier one; the low 31 bits.
    pub of: u64,
    /// It was recorded elsewhere: another link header, or another TTL.
    pub elsewhere: bool,
}

/// What was recorded lately.
#[derive(Debug)]
pub struct Echoes {
    /// Tag, vantage, packet number; two to a place, of which the older gives way.
    table: Box<[[u64; 2]]>,
    /// Packets that were asked about and can be told from what is sent again.
    asked: u64,
    /// Copies among them.
    copies: u64,
    /// How often the same bytes came: responses, requests.
    came: [Came; 2],
}

/// How many packets there are, and how many of them came a second time, and how often one came again after that.
#[derive(Clone, Copy, Debug, Default)]
struct Came {
    once: u64,
    twice: u64,
    more: u64,
}

impl Came {
    /// Everything came twice and nothing more often: that is not how anybody repeats. Of few packets all must.
    const fn in_pairs(self) -> bool {
        let all = self.twice == self.once && self.more == 0;
        let most = self.once >= ENOUGH / 4 && self.twice * 5 >= self.once * 4 && self.more * 20 <= self.once;
        self.once > 0 && (all || most)
    }
}

impl Default for Echoes {
    fn default() -> Self {
        Self {
            table: vec![[0; 2]; 1 << (BITS - 1)].into_boxed_slice(),
            asked: 0,
            copies: 0,
            came: [Came::default(); 2],
        }
    }
}

impl Echoes {
    /// Notes a packet, and the point at which it was recorded ([`super::vantage::Vantage::point`]); what it repeats, if it does.
    pub fn hear(&mut self, place: Place, point: u8, frame: &Frame<'_>, net: &Net, packet: &Packet<'_>) -> Option<Echo> {
        let print = fingerprint(frame, net, packet);
        let vantage = u64::from(point) << VANTAGE_AT;
        let at = usize::try_from(print & ((1 << (BITS - 1)) - 1)).unwrap_or(0);
        let [one, other] = self.table.get_mut(at)?;
        // the low word is the number of a packet, which begins at 1
        let is_it = |entry: u64| entry != 0 && (entry ^ print) & TAG == 0;
        let entry = if is_it(*one) || !is_it(*other) && *one & NUMBER <= *other & NUMBER { one } else { other };
        let before = *entry;
        let again = is_it(before);
        *entry = print & TAG | vantage | place.number & NUMBER | if again { TWICE } else { 0 };
        if let Some(op) = packet.op
            && let Some(c) = self.came.get_mut(usize::from(op.role() == Role::Request))
        {
            match (again, before & TWICE != 0) {
                (false, _) => c.once += 1,
                (true, false) => c.twice += 1,
                (true, true) => c.more += 1,
            }
        }
        again.then_some(Echo { of: before & NUMBER, elsewhere: before & VANTAGE != vantage })
    }

    /// Whether this is a copy and not sent again. `numbered`: its sender gives each packet an IP identification of its own;
    /// `alternates`: its packets come from two points of recording in turn, so that a new point is no new path.
    pub fn is_copy(&mut self, echo: Option<Echo>, numbered: bool, alternates: bool) -> bool {
        let certain = numbered || alternates && echo.is_some_and(|e| e.elsewhere);
        if certain {
            self.asked += 1;
            self.copies += u64::from(echo.is_some());
        }
        echo.is_some() && (certain || self.doubled())
    }

    /// Notes a packet of a sender that counts its packets, which tells without a look into the table whether it came before.
    pub fn told(&mut self, copy: bool) {
        self.asked += 1;
        self.copies += u64::from(copy);
    }

    /// Whether most packets so far came twice.
    pub const fn doubled(&self) -> bool {
        let [answers, requests] = self.came;
        let pairs = answers.once + requests.once >= FEW && answers.in_pairs() && requests.in_pairs();
        self.asked >= ENOUGH && self.copies * 5 >= self.asked * 2 || pairs
    }

    /// Packets that are copies for certain, and those that this was asked about.
    pub const fn counts(&self) -> (u64, u64) {
        (self.copies, self.asked)
    }
}

/// Words of [`Ids`].
const WORDS: usize = 4;
/// Identifications that they remember.
const SPAN: u16 = 256;
const _: () = assert!(SPAN as usize == 64 * WORDS);

/// Which of the latest IP identifications of a sender that counts have come, a bit each.
#[derive(Clone, Debug, Default)]
pub struct Ids([u64; WORDS]);

impl Ids {
    fn place(id: u16) -> (usize, u64) {
        (usize::from(id / 64) % WORDS, 1 << (id % 64))
    }

    /// Notes `id`, where `latest` is the highest so far.
    pub fn take(&mut self, latest: u16, id: u16) {
        let ahead = id.wrapping_sub(latest);
        if ahead.cast_signed() > 0 {
            // what was noted a round ago at the places between gives way
            if ahead >= SPAN {
                self.0 = [0; WORDS];
            } else {
                let mut next = latest.wrapping_add(1);
                let mut left = ahead;
                while left > 0 {
                    let here = left.min(64 - next % 64);
                    let (word, bit) = Self::place(next);
                    let mask = if here == 64 { u64::MAX } else { ((1 << here) - 1) * bit };
                    if let Some(w) = self.0.get_mut(word) {
                        *w &= !mask;
                    }
                    next = next.wrapping_add(here);
                    left -= here;
                }
            }
        }
        let (word, bit) = Self::place(id);
        if let Some(w) = self.0.get_mut(word) {
            *w |= bit;
        }
    }

    /// Whether `id`, which is not above `latest`, has come; `None` if that is too long ago to be known.
    pub fn came(&self, latest: u16, id: u16) -> Option<bool> {
        if latest.wrapping_sub(id) >= SPAN {
            return None;
        }
        let (word, bit) = Self::place(id);
        self.0.get(word).map(|w| w & bit != 0)
    }
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

const fn mix(h: u64, v: u64) -> u64 {
    let h = (h ^ v).wrapping_mul(FACTOR);
    h ^ h >> 29
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

/// Of what does not change on the way: identification, BTH (but for what a switch may mark: BECN and FECN lie in it as a
/// word of their own), the first bytes after it, the last bytes that are there.
fn fingerprint(frame: &Frame<'_>, net: &Net, packet: &Packet<'_>) -> u64 {
    let Some(t) = frame.transport.as_ref() else { return 0 };
    let bytes = frame.bytes;
    let end = bytes.len().min(t.start.saturating_add(t.declared));
    // bits that the ICRC leaves out
    let resv8a = u64::from_le_bytes([0, 0, 0, 0, 0xff, 0, 0, 0]);
    let h = mix(
        u64::from(net.ip_id.unwrap_or(0)) << 32 | packet.payload_len as u64 & 0xffff_ffff,
        word(bytes, t.start) & !resv8a,
    );
    let h = mix(h, word(bytes, t.start + 8));
    let h = mix(h, word(bytes, t.start + 16));
    let h = mix(h, word(bytes, end.saturating_sub(8)));
    // tag and place are taken from bits that all of it reaches
    h ^ h << 40 ^ h >> 20
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Timestamp;
    use crate::frame::LinkType;
    use crate::wire::BthFields;
    use crate::wire::opcode::byte;

    /// A SEND Only over IPv4 in Ethernet.
    fn frame(psn: u32, ip_id: u16, ttl: u8, mac: u8) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, mac, 8, 0];
        f.extend([0x45, 2, 0, 52]);
        f.extend(ip_id.to_be_bytes());
        f.extend([0x40, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        f.extend([0xc0, 0, 0x12, 0xb7, 0, 32, 0, 0]);
        let bth = BthFields::new(byte::RcSendOnly, 9, psn);
        f.extend(bth.emit());
        f.extend([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        f
    }

    fn hear(e: &mut Echoes, number: u64, bytes: &[u8]) -> Option<Echo> {
        let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, 4791);
        let p = f.packet().expect("a transport").expect("a BTH");
        let place = Place { number, at: Timestamp(0) };
        let mut point = crate::flow::vantage::Vantage::default();
        let net = f.net.as_ref().expect("IPv4");
        point.take(&f, net.ttl);
        e.hear(place, point.point(), &f, net, &p)
    }

    #[test]
    fn identifications_are_remembered_for_a_while() {
        let mut ids = Ids::default();
        let mut latest = 65_000_u16;
        ids.take(latest, latest);
        let mut came = std::collections::BTreeSet::from([0]);
        // every third, over the wrap, and one that comes late
        for n in 1..2_000_u16 {
            let (id, late) = (65_000_u16.wrapping_add(n * 3), n % 50 == 0);
            ids.take(latest, id);
            (latest, _) = (id, came.insert(n * 3));
            if late {
                ids.take(latest, id.wrapping_sub(4));
                came.insert(n * 3 - 4);
            }
            for back in 0..600_u16.min(n * 3) {
                let known = ids.came(latest, latest.wrapping_sub(back));
                assert_eq!(known, (back < 256).then(|| came.contains(&(n * 3 - back))), "{n} {back}");
            }
        }
        // a leap forgets everything
        ids.take(latest, latest.wrapping_add(20_000));
        assert_eq!(ids.came(latest.wrapping_add(20_000), latest.wrapping_add(19_990)), Some(false));
    }

    #[test]
    fn the_same_packet_is_known_again_and_no_other() {
        let mut e = Echoes::default();
        assert_eq!(hear(&mut e, 1, &frame(5, 100, 64, 1)), None);
        assert_eq!(hear(&mut e, 2, &frame(6, 101, 64, 1)), None);
        assert_eq!(hear(&mut e, 3, &frame(5, 100, 64, 1)), Some(Echo { of: 1, elsewhere: false }));
        // behind a router
        assert_eq!(hear(&mut e, 4, &frame(6, 101, 63, 7)), Some(Echo { of: 2, elsewhere: true }));
        // sent again: another identification
        assert_eq!(hear(&mut e, 5, &frame(6, 102, 64, 1)), None);
        // congestion notification bits may be set on the way
        let mut marked = frame(6, 102, 64, 1);
        marked[46] = 0x80;
        marked[15] |= 3;
        assert_eq!(hear(&mut e, 6, &marked), Some(Echo { of: 5, elsewhere: false }));
    }

    #[test]
    fn what_cannot_be_told_is_told_by_its_company() {
        let mut e = Echoes::default();
        let echo = Some(Echo { of: 1, elsewhere: false });
        assert!(!e.is_copy(echo, false, false));
        // the path may have changed, unless it changes all the time
        let elsewhere = Some(Echo { of: 1, elsewhere: true });
        assert!(!e.is_copy(elsewhere, false, false) && e.is_copy(elsewhere, false, true));
        for _ in 0..20 {
            assert!(!e.is_copy(None, true, false));
            assert!(e.is_copy(echo, true, false));
        }
        assert!(e.doubled() && e.is_copy(echo, false, false) && !e.is_copy(None, false, false));
        for _ in 0..100 {
            e.is_copy(None, true, false);
        }
        assert!(!e.doubled() && !e.is_copy(echo, false, false));
    }
}
