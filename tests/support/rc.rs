//! A reliable connection in a few lines: a requester that sends WRITEs and READs, waits, and sends again, and a responder
//! that acknowledges, asks for what is missing, and answers congestion marks. Whole frames over packet sockets, so
//! that faults on the way hit what an RDMA application would send, on machines without RDMA.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dissector::frame::icrc::{self, Verdict};
use dissector::frame::{Frame, LinkType};
use dissector::wire::opcode::byte;
use dissector::wire::outer::{ECN_CE, IPV4_LEN, UDP_LEN, ecn};
use dissector::wire::{Aeth, BthFields, Deth, Kind, Position, Psn, Qpn, ROCE_UDP_PORT, Reth, Role, Syndrome};

use crate::netns::Pair;
use crate::raw::RawSocket;
use crate::traffic::{ipv4_checksum, seal};

/// Payload of a packet.
const MTU: u32 = 1024;
/// Packets of a WRITE and of a READ's response.
pub const PACKETS: u32 = 3;
/// First queue pair of the requester; that of its connection `n` is this plus `n`.
pub const REQUESTER_QP: u32 = 0x100;
/// First queue pair of the responder.
pub const RESPONDER_QP: u32 = 0x200;
/// First PSN of connection `n`: this times `n + 1`.
pub const FIRST_PSN: u32 = 1000;

/// A frame between the hosts of a [`Pair`]: from a to b, or back. `ext` is what follows BTH.
pub fn frame(back: bool, bth: &BthFields, ext: &[u8], payload: usize) -> Vec<u8> {
    let (src_mac, dst_mac, src, dst) =
        if back { (Pair::MAC_B, Pair::MAC_A, 2, 1) } else { (Pair::MAC_A, Pair::MAC_B, 1, 2) };
    let mut ib = bth.emit().to_vec();
    ib.extend(ext);
    ib.extend(vec![0x5a; payload]);
    ib.extend([0; 4]);
    let mut f = dst_mac.to_vec();
    f.extend(src_mac);
    f.extend([0x08, 0x00]);
    let udp_len = u16::try_from(UDP_LEN + ib.len()).expect("a packet is short");
    let [.., id] = bth.psn.get().to_be_bytes();
    let mut ip = vec![0x45, 2];
    ip.extend((u16::try_from(IPV4_LEN).expect("20") + udp_len).to_be_bytes());
    ip.extend([0x33, id, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, src, 10, 77, 0, dst]);
    let sum = ipv4_checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    f.extend(ip);
    f.extend(0xc777u16.to_be_bytes());
    f.extend(ROCE_UDP_PORT.to_be_bytes());
    f.extend(udp_len.to_be_bytes());
    f.extend([0, 0]);
    f.extend(ib);
    seal(&mut f, false);
    f
}

/// What a host needs to know of a packet that arrived whole.
struct Arrived {
    kind: Kind,
    position: Position,
    request: bool,
    qp: u32,
    psn: Psn,
    ack_req: bool,
    syndrome: Option<Syndrome>,
    dma_len: u32,
    ce: bool,
}

/// A packet that a network card would take: whole, and with a good ICRC. `bad` counts the others.
fn arrived(bytes: &[u8], bad: &mut u64) -> Option<Arrived> {
    let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
    let p = f.packet()?.ok()?;
    if icrc::verify(&f, &p) != Verdict::Good {
        *bad += 1;
        return None;
    }
    let op = p.op?;
    Some(Arrived {
        kind: op.kind,
        position: op.position,
        request: op.role() == Role::Request,
        qp: p.bth.dest_qp().get(),
        psn: p.bth.psn(),
        ack_req: p.bth.ack_req(),
        syndrome: p.ext.aeth.map(Aeth::syndrome),
        dma_len: p.ext.reth.map_or(0, Reth::dma_len),
        ce: f.net.is_some_and(|n| ecn(n.tos) == ECN_CE),
    })
}

/// The answer to a congestion mark.
fn cnp(back: bool, qp: u32) -> Vec<u8> {
    let mut bth = BthFields::new(byte::Cnp, qp, 0);
    bth.becn = true;
    frame(back, &bth, &[0; 16], 0)
}

/// What a responder saw.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// How often each request packet arrived, by queue pair and PSN.
    pub requests: BTreeMap<(u32, u32), u32>,
    /// Packets with a wrong ICRC, which it threw away.
    pub bad: u64,
    /// CNPs that it sent, and those that came back for marks on its responses.
    pub cnps: u64,
    /// Sequence NAKs that it sent.
    pub naks: u64,
}

/// Answers at `b0` of a pair until `stop`.
pub fn respond(socket: &RawSocket, stop: &AtomicBool) -> io::Result<Log> {
    struct Side {
        expected: Psn,
        asked: bool,
    }
    let mut log = Log::default();
    let mut sides: HashMap<u32, Side> = HashMap::new();
    let mut buffer = vec![0; 9000];
    loop {
        // what arrived before the end is looked at all the same
        let ending = stop.load(Ordering::Relaxed);
        let wait = Duration::from_millis(if ending { 0 } else { 20 });
        let Some((n, outgoing)) = socket.receive(&mut buffer, wait)? else {
            if ending {
                return Ok(log);
            }
            continue;
        };
        if outgoing {
            continue;
        }
        let Some(p) = arrived(&buffer[..n], &mut log.bad) else { continue };
        if p.qp == 1 {
            // a management datagram is answered by one
            let ext = Deth::emit(0x8001_0000, Qpn::new(1));
            socket.send(&frame(true, &BthFields::new(byte::UdSendOnly, 1, p.psn.get()), &ext, 256))?;
            continue;
        }
        log.cnps += u64::from(p.kind == Kind::Cnp);
        if !p.request {
            continue;
        }
        *log.requests.entry((p.qp, p.psn.get())).or_default() += 1;
        let back = REQUESTER_QP + (p.qp - RESPONDER_QP);
        if p.ce {
            socket.send(&cnp(true, back))?;
            log.cnps += 1;
        }
        let first = FIRST_PSN * (p.qp - RESPONDER_QP + 1);
        let side = sides.entry(p.qp).or_insert(Side { expected: Psn::new(first), asked: false });
        let packets = if p.kind == Kind::ReadRequest { p.dma_len.div_ceil(MTU) } else { 1 };
        let ahead = p.psn.distance(side.expected);
        let acknowledge = |syndrome, psn: Psn| {
            socket.send(&frame(
                true,
                &BthFields::new(byte::RcAcknowledge, back, psn.get()),
                &Aeth::emit(syndrome, 1),
                0,
            ))
        };
        if ahead > 0 {
            if !side.asked {
                side.asked = true;
                log.naks += 1;
                acknowledge(Syndrome(0x60), side.expected)?;
            }
            continue;
        }
        if ahead == 0 {
            side.expected = Psn::new(p.psn.get().wrapping_add(packets));
            side.asked = false;
        }
        if p.kind == Kind::ReadRequest {
            for n in 0..packets {
                let opcode = match (n, packets) {
                    (_, 1) => byte::RcReadResponseOnly,
                    (0, _) => byte::RcReadResponseFirst,
                    (n, all) if n + 1 == all => byte::RcReadResponseLast,
                    _ => byte::RcReadResponseMiddle,
                };
                let aeth = Aeth::emit(Syndrome(0x1f), 1);
                let ext: &[u8] = if opcode == byte::RcReadResponseMiddle { &[] } else { &aeth };
                let psn = p.psn.get().wrapping_add(n);
                socket.send(&frame(true, &BthFields::new(opcode, back, psn), ext, MTU as usize))?;
            }
        } else if p.ack_req {
            // of a request that came before: what was reached is said again
            acknowledge(Syndrome(0x1f), Psn::new(side.expected.get().wrapping_sub(1)))?;
        }
    }
}

/// What a requester is to do.
#[derive(Clone, Debug)]
pub struct Work {
    /// Connections.
    pub qps: u32,
    /// WRITEs of each, in turn.
    pub writes: u32,
    /// READs after them.
    pub reads: u32,
    /// How long it waits for an answer before it sends again.
    pub timeout: Duration,
    /// How often it sends again before it gives up.
    pub retries: u32,
    /// It begins anew until so much time has passed.
    pub at_least: Duration,
    /// Whether a management datagram is answered before the first request.
    pub connect: bool,
}

struct Connection {
    n: u32,
    /// Operations done.
    done: u32,
    /// First PSN that is not acknowledged, and the first after the operation.
    base: Psn,
    end: Psn,
    tries: u32,
    deadline: Instant,
}

impl Connection {
    fn is_read(&self, work: &Work) -> bool {
        self.done % (work.writes + work.reads) >= work.writes
    }

    /// Sends what is left of its operation.
    fn send(&mut self, socket: &RawSocket, work: &Work) -> io::Result<()> {
        let qp = RESPONDER_QP + self.n;
        self.deadline = Instant::now() + work.timeout;
        let left = self.end.distance(self.base).unsigned_abs();
        let start = self.end.get().wrapping_sub(PACKETS);
        if self.is_read(work) {
            let reth = Reth::emit(0x1000, 7, left * MTU);
            return socket.send(&frame(false, &BthFields::new(byte::RcReadRequest, qp, self.base.get()), &reth, 0));
        }
        for n in PACKETS - left..PACKETS {
            let opcode = match n {
                0 => byte::RcWriteFirst,
                n if n + 1 == PACKETS => byte::RcWriteLast,
                _ => byte::RcWriteMiddle,
            };
            let reth = Reth::emit(0x1000, 7, PACKETS * MTU);
            let mut bth = BthFields::new(opcode, qp, start.wrapping_add(n) & 0xff_ffff);
            bth.ack_req = opcode == byte::RcWriteLast;
            socket.send(&frame(false, &bth, if n == 0 { &reth } else { &[] }, MTU as usize))?;
        }
        Ok(())
    }

    /// Begins the next operation.
    fn next(&mut self, socket: &RawSocket, work: &Work) -> io::Result<()> {
        self.base = self.end;
        self.end = Psn::new(self.base.get().wrapping_add(PACKETS));
        self.tries = 0;
        self.send(socket, work)
    }

    fn again(&mut self, socket: &RawSocket, work: &Work) -> io::Result<()> {
        self.tries += 1;
        if self.tries > work.retries {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "transport retry counter exceeded"));
        }
        self.send(socket, work)
    }
}

/// Does the work at `a0` of a pair; an error if it cannot be done in so many tries.
pub fn request(socket: &RawSocket, work: &Work) -> io::Result<()> {
    let begun = Instant::now();
    let mut buffer = vec![0; 9000];
    let mut bad = 0;
    if work.connect {
        let ask = frame(false, &BthFields::new(byte::UdSendOnly, 1, 1), &Deth::emit(0x8001_0000, Qpn::new(1)), 256);
        let mut tries = 0;
        'answered: loop {
            socket.send(&ask)?;
            let until = Instant::now() + work.timeout;
            while Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
                let Some((n, outgoing)) = socket.receive(&mut buffer, left)? else { continue };
                if !outgoing && arrived(&buffer[..n], &mut bad).is_some_and(|p| p.qp == 1) {
                    break 'answered;
                }
            }
            tries += 1;
            if tries > work.retries {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the connection request is not answered"));
            }
        }
    }
    let operations = work.writes + work.reads;
    let mut all: Vec<Connection> = Vec::new();
    for n in 0..work.qps {
        let first = Psn::new(FIRST_PSN * (n + 1));
        let mut c = Connection { n, done: 0, base: first, end: first, tries: 0, deadline: begun };
        c.next(socket, work)?;
        all.push(c);
    }
    while all.iter().any(|c| c.base != c.end) {
        let soonest = all.iter().filter(|c| c.base != c.end).map(|c| c.deadline).min().unwrap_or(begun);
        let left = soonest.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        let mut touched = None;
        if let Some((n, outgoing)) = socket.receive(&mut buffer, left)?
            && !outgoing
            && let Some(p) = arrived(&buffer[..n], &mut bad)
            && p.qp >= REQUESTER_QP
            && let Some(c) = all.get_mut((p.qp - REQUESTER_QP) as usize)
        {
            if p.ce {
                socket.send(&cnp(false, RESPONDER_QP + c.n))?;
            }
            let busy = c.base != c.end;
            let in_flight = |psn: Psn| psn.distance(c.base) >= 0 && c.end.distance(psn) > 0;
            match (p.kind, p.syndrome) {
                (Kind::Ack, Some(s)) if s.is_ack() && in_flight(p.psn) && !c.is_read(work) => {
                    c.base = Psn::new(p.psn.get().wrapping_add(1));
                }
                // asks for this one: what is before has arrived
                (Kind::Ack, Some(s)) if s.is_nak() && in_flight(p.psn) => {
                    c.base = p.psn;
                    c.again(socket, work)?;
                }
                (Kind::ReadResponse, _) if in_flight(p.psn) && p.psn == c.base && c.is_read(work) => {
                    c.base = Psn::new(p.psn.get().wrapping_add(1));
                }
                // a gap in the response: from there on once more
                (Kind::ReadResponse, _) if in_flight(p.psn) && c.is_read(work) && p.position == Position::Last => {
                    c.again(socket, work)?;
                }
                _ => {}
            }
            touched = (busy && c.base == c.end).then_some(c.n);
        }
        let now = Instant::now();
        for c in &mut all {
            if c.base != c.end && c.deadline <= now {
                c.again(socket, work)?;
            }
            if touched == Some(c.n) {
                c.done += 1;
                if c.done < operations || begun.elapsed() < work.at_least {
                    c.next(socket, work)?;
                }
            }
        }
    }
    Ok(())
}
