//! What frames without RoCE say about it: pauses by who sends them and for which priority, ICMP errors that
//! quote RoCE packets. Bounded.

use std::net::IpAddr;

use super::Place;
use crate::capture::Timestamp;
use crate::frame::{Aside, Frame};
use crate::wire::ROCE_UDP_PORT;

/// Senders and priorities that are kept.
const PAUSERS: usize = 1024;
/// ICMP errors that are kept, by what they say about whom.
const ERRORS: usize = 64;

/// Link speed that is assumed, Gbit/s.
pub const DEFAULT_GBIT: f64 = 100.0;

/// Priority that stands for a PAUSE of the whole link.
pub const WHOLE_LINK: u8 = 8;

/// Pauses of one priority that one device asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Pauser {
    /// Source MAC.
    pub mac: [u8; 6],
    /// Priority, or [`WHOLE_LINK`].
    pub priority: u8,
    /// Frames that stop.
    pub xoff: u64,
    /// Frames that let go.
    pub xon: u64,
    /// Nanoseconds paused: each frame's quanta, as far as no other frame ended or renewed them before.
    pub paused_ns: f64,
    open: Option<(Timestamp, u16)>,
    /// Nanoseconds of the longest time without a break, when renewals within [`RENEWAL`] count as none.
    pub longest: i64,
    since: Option<Timestamp>,
    /// First packet.
    pub packet: u64,
    /// Latest packet.
    pub latest: u64,
}

/// A pause that is renewed within its quanta on a link of 10 Gbit/s goes on without a break, whatever the link:
/// senders renew early, so this is generous only where it does no harm.
const SLOW: f64 = 10.0;

/// Nanoseconds that quanta of 512 bit times last on a link.
fn lasting(quanta: u16, gbit: f64) -> f64 {
    f64::from(quanta) * 512.0 / gbit.max(0.001)
}

impl Pauser {
    fn take(&mut self, place: Place, quanta: u16, gbit: f64) {
        self.close(place.at, gbit);
        self.latest = place.number;
        if quanta == 0 {
            self.xon += 1;
            self.since = None;
            return;
        }
        self.xoff += 1;
        self.since = self.since.or(Some(place.at));
        self.open = Some((place.at, quanta));
    }

    /// Counts the pause that is under way up to `now`.
    fn close(&mut self, now: Timestamp, gbit: f64) {
        let Some((from, quanta)) = self.open.take() else { return };
        let passed = now.since(from).max(0) as f64;
        self.paused_ns += passed.min(lasting(quanta, gbit));
        if let Some(since) = self.since {
            if passed <= lasting(quanta, SLOW) {
                self.longest = self.longest.max(now.since(since));
            } else {
                self.since = None;
            }
        }
    }
}

/// An ICMP error about RoCE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Who says it.
    pub by: Option<crate::flow::row::Endpoint>,
    /// What it says.
    pub what: &'static str,
    /// Largest packet that would pass, of "too big".
    pub mtu: Option<u32>,
    /// Sender of the packet that it quotes.
    pub src: IpAddr,
    /// Its destination.
    pub dst: IpAddr,
    /// Its destination QP, if quoted.
    pub qp: Option<u32>,
    /// How many.
    pub count: u64,
    /// The first.
    pub packet: u64,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Asides {
    /// Speed of the link, Gbit/s, for the length of pauses.
    pub gbit: f64,
    /// Pauses.
    pub pausers: Vec<Pauser>,
    /// ICMP errors.
    pub refusals: Vec<Refusal>,
    /// What found no room.
    pub unkept: u64,
}

impl Default for Asides {
    fn default() -> Self {
        Self { gbit: DEFAULT_GBIT, pausers: Vec::new(), refusals: Vec::new(), unkept: 0 }
    }
}

impl Asides {
    /// The capture has ended: pauses under way run out.
    pub fn settle(&mut self, end: Timestamp) {
        for p in &mut self.pausers {
            // quanta run on behind the last packet, but nobody saw it
            p.close(end, self.gbit);
        }
    }

    /// Takes a frame without RoCE.
    pub fn take(&mut self, place: Place, frame: &Frame<'_>) {
        let Some(aside) = frame.aside.as_deref() else { return };
        let mac = || frame.bytes.get(frame.ethernet?..)?.get(6..)?.first_chunk::<6>().copied();
        match aside {
            Aside::Pause { quanta } => self.pause(place, mac(), WHOLE_LINK, *quanta),
            Aside::Pfc(p) => {
                for (priority, quanta) in p.paused() {
                    self.pause(place, mac(), priority, quanta);
                }
                for priority in p.resumed() {
                    self.pause(place, mac(), priority, 0);
                }
            }
            Aside::Icmp(i) => {
                let Some(q) = i.quoted.filter(|_| i.is_error()) else { return };
                if q.ports.is_none_or(|(_, dst)| dst != ROCE_UDP_PORT) {
                    return;
                }
                let (by, what, qp) = (frame.net.map(|n| n.src), i.name(), q.bth.map(|b| b.1));
                let known = |r: &Refusal| (r.what, r.src, r.dst, r.qp) == (what, q.src, q.dst, qp);
                let room = self.refusals.len() < ERRORS;
                let kept = self.refusals.iter().position(known);
                match kept.and_then(|k| self.refusals.get_mut(k)) {
                    Some(r) => r.count += 1,
                    None if room => self.refusals.push(Refusal {
                        by,
                        what,
                        mtu: i.mtu,
                        src: q.src,
                        dst: q.dst,
                        qp,
                        count: 1,
                        packet: place.number,
                    }),
                    None => self.unkept += 1,
                }
            }
            _ => {}
        }
    }

    fn pause(&mut self, place: Place, mac: Option<[u8; 6]>, priority: u8, quanta: u16) {
        let mac = mac.unwrap_or_default();
        let i = match self.pausers.iter().position(|p| p.mac == mac && p.priority == priority) {
            Some(i) => i,
            None if self.pausers.len() < PAUSERS => {
                self.pausers.push(Pauser {
                    mac,
                    priority,
                    xoff: 0,
                    xon: 0,
                    paused_ns: 0.0,
                    open: None,
                    longest: 0,
                    since: None,
                    packet: place.number,
                    latest: place.number,
                });
                self.pausers.len() - 1
            }
            None => {
                self.unkept += 1;
                return;
            }
        };
        let Some(p) = self.pausers.get_mut(i) else { return };
        p.take(place, quanta, self.gbit);
    }
}
