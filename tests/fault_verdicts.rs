//! The verdicts of roce-fault on recordings of real stacks that lost packets: each expectation with a yes, and with a no
//! where one thing is wrong. What was lost is read out of the recording: the packet that a NAK, or a READ request in the
//! middle of another, asks for again.
#![expect(clippy::cast_possible_truncation, reason = "sizes and numbers of frames that the test made itself")]

use std::time::Duration;

use dissector::capture::{Reader, Timestamp};
use dissector::frame::{Frame, LinkType};
use dissector::wire::opcode::byte;
use dissector::wire::outer::{ECN_CE, ecn};
use dissector::wire::{Kind, Packet, ROCE_UDP_PORT, Role, Transport};
use roce_ebpf::abi::fault::{Action, FaultCounters, FaultEvent, FaultFlowKey, FaultTally, FaultWatch, HEADER_BYTES};
use roce_tests::captures;
use roce_user::fault::engine::{Injection, Seen};
use roce_user::fault::judge::{Evidence, Witness, judge};
use roce_user::fault::rule::{Fault, Rule};
use roce_user::fault::scenario::Expect;

#[derive(Clone)]
struct Recorded {
    at: i64,
    bytes: Vec<u8>,
    hit: bool,
}

fn packet(bytes: &[u8]) -> Option<(Frame<'_>, Packet<'_>)> {
    let f = Frame::parse(bytes, bytes.len(), LinkType::ETHERNET, ROCE_UDP_PORT);
    let p = f.packet()?.ok()?;
    Some((f, p))
}

fn is_nak(bytes: &[u8]) -> bool {
    packet(bytes).is_some_and(|(_, p)| {
        p.op.is_some_and(|o| o.kind == Kind::Ack) && p.ext.aeth.is_some_and(|a| a.syndrome().0 == 0x60)
    })
}

fn psn(bytes: &[u8]) -> u32 {
    packet(bytes).expect("RoCE").1.bth.psn().get()
}

fn recording(name: &str) -> Vec<Recorded> {
    let mut reader = Reader::open(captures().join(format!("{name}.pcap"))).expect("it opens");
    let mut out = Vec::new();
    while let Some(r) = reader.next().expect("it is whole") {
        if packet(r.bytes).is_some() {
            out.push(Recorded { at: r.at.0, bytes: r.bytes.to_vec(), hit: false });
        }
    }
    out
}

/// Marks the first transmission of each request that a NAK names.
fn lost_requests(name: &str) -> Vec<Recorded> {
    let mut all = recording(name);
    let naks: Vec<u32> = all.iter().filter(|r| is_nak(&r.bytes)).map(|r| psn(&r.bytes)).collect();
    assert!(!naks.is_empty(), "{name}");
    for n in naks {
        let lost = all.iter_mut().find(|r| {
            packet(&r.bytes)
                .is_some_and(|(_, p)| p.bth.psn().get() == n && p.op.is_some_and(|o| o.role() == Role::Request))
        });
        lost.unwrap_or_else(|| panic!("{name}: PSN {n} was sent")).hit = true;
    }
    all
}

fn head(bytes: &[u8]) -> ([u8; HEADER_BYTES], u32) {
    let mut head = [0; HEADER_BYTES];
    let n = bytes.len().min(HEADER_BYTES);
    head[..n].copy_from_slice(&bytes[..n]);
    (head, n as u32)
}

/// Names of the expectations that do not hold.
fn failed(all: &[Recorded], fault: Fault, expect: &Expect) -> Vec<String> {
    let action = if fault == Fault::Drop { Action::Drop } else { Action::MarkCe } as u32;
    let rules = [Rule::new("it", fault)];
    let mut witness = Witness::new(ROCE_UDP_PORT, &rules);
    let mut hits = 0;
    for r in all {
        let (bytes, len) = head(&r.bytes);
        let length = r.bytes.len() as u32;
        if r.hit {
            hits += 1;
            // how often this packet had been sent
            let key = |b: &[u8]| packet(b).map(|(f, p)| (f.net.map(|n| (n.src, n.dst)), p.bth.dest_qp(), p.bth.psn()));
            let before = all.iter().filter(|o| o.at < r.at && key(&o.bytes) == key(&r.bytes)).count();
            witness.hit(&Injection {
                at: Timestamp(r.at - 1),
                event: FaultEvent {
                    at_ns: 0,
                    serial: hits,
                    flow: FaultFlowKey::default(),
                    rule: 0,
                    action,
                    direction: 0,
                    ifindex: 1,
                    psn: psn(&r.bytes),
                    occurrence: before as u32 + 1,
                    opcode: 0,
                    length,
                    before_len: len,
                    after_len: 0,
                    bth: 0,
                    length_after: 0,
                    tag: 0,
                    pad: 0,
                    before: bytes,
                    after: [0; HEADER_BYTES],
                },
            });
        }
        witness.push(&Seen {
            at: Timestamp(r.at),
            record: FaultWatch {
                at_ns: 0,
                length,
                head_len: len,
                direction: 0,
                ifindex: 1,
                dropped: u32::from(r.hit && fault == Fault::Drop),
                rule: u32::from(r.hit),
                tag: 0,
                pad: 0,
                head: bytes,
            },
        });
    }
    let checks = judge(
        expect,
        Evidence {
            rules: &rules,
            tallies: &[FaultTally { injected: hits, matched: hits, ..FaultTally::default() }],
            counters: FaultCounters::default(),
            roce_packets: all.len() as u64,
            witness: Some(&mut witness),
            command: None,
            dry: false,
            interrupted: false,
        },
    );
    checks.into_iter().filter(|c| !c.ok).map(|c| c.name).collect()
}

fn everything(within: Duration) -> Expect {
    Expect {
        retransmission_within: Some(within),
        nak_within: Some(within),
        no_message_lost: true,
        go_back_n: true,
        ..Expect::default()
    }
}

const LONG: Duration = Duration::from_secs(10);

#[test]
fn a_stack_that_recovers_is_told_from_one_that_does_not() {
    for name in ["loss_in_write", "loss_psn_wrap", "loss_in_read_req"] {
        let all = lost_requests(name);
        let judged = |all: &[Recorded], within| failed(all, Fault::Drop, &everything(within));
        assert_eq!(judged(&all, LONG), [] as [&str; 0], "{name}");
        // the same, and asked to be faster than it was
        assert_eq!(judged(&all, Duration::from_nanos(1)), ["retransmission-within", "nak-within"], "{name}");
        // the recording ends before the last of the lost is sent again
        let last = all.iter().rposition(|r| is_nak(&r.bytes)).unwrap();
        assert_eq!(judged(&all[..=last], LONG), ["retransmission-within", "go-back-n", "no-message-lost"], "{name}");
        // the receiver asks for nothing
        let silent: Vec<_> = all.iter().filter(|r| !is_nak(&r.bytes)).cloned().collect();
        assert_eq!(judged(&silent, LONG), ["nak-within", "go-back-n"], "{name}");
        // it asks for one packet more than is lost, and the sender goes back to where nobody asked
        let mut wrong = all.clone();
        for r in &mut wrong {
            if is_nak(&r.bytes) {
                let earlier = psn(&r.bytes).wrapping_sub(1).to_be_bytes();
                let at = packet(&r.bytes).unwrap().0.transport.unwrap().start;
                r.bytes[at + 9..at + 12].copy_from_slice(&earlier[1..]);
            }
        }
        assert_eq!(judged(&wrong, LONG), ["go-back-n"], "{name}");
    }
}

#[test]
fn the_hole_in_a_read_response_is_filled_or_not() {
    for name in ["loss_read_response", "loss_psn_wrap_read"] {
        let mut all = recording(name);
        // READ requests that ask for what a request before them had asked for: their first response was lost
        let mut asked: Vec<u32> = Vec::new();
        let mut again = None;
        for r in &all {
            let Some((_, p)) = packet(&r.bytes) else { continue };
            if p.op.is_some_and(|o| o.kind == Kind::ReadResponse) {
                asked.push(p.bth.psn().get());
            } else if p.op.is_some_and(|o| o.kind == Kind::ReadRequest) && asked.contains(&p.bth.psn().get()) {
                again = Some(p.bth.psn().get());
                break;
            }
        }
        let wanted = again.unwrap_or_else(|| panic!("{name}: something is asked for again"));
        let is_it = |r: &Recorded| {
            packet(&r.bytes)
                .is_some_and(|(_, p)| p.bth.psn().get() == wanted && p.op.is_some_and(|o| o.kind == Kind::ReadResponse))
        };
        let first = all.iter().position(is_it).unwrap();
        all[first].hit = true;
        let expect = Expect { retransmission_within: Some(LONG), no_message_lost: true, ..Expect::default() };
        assert_eq!(failed(&all, Fault::Drop, &expect), [] as [&str; 0], "{name}");
        let never: Vec<_> = all.iter().filter(|r| r.hit || !is_it(r)).cloned().collect();
        assert_eq!(failed(&never, Fault::Drop, &expect), ["retransmission-within", "no-message-lost"], "{name}");
    }
}

#[test]
fn a_datagram_and_an_unreliable_message_do_not_come_back() {
    for (name, transport) in [("ud_send", Transport::Ud), ("uc_send", Transport::Uc)] {
        let mut all = recording(name);
        let last = all.iter().rposition(|r| {
            packet(&r.bytes).is_some_and(|(_, p)| {
                p.op.is_some_and(|o| o.transport == transport) && !p.bth.dest_qp().is_management()
            })
        });
        all[last.unwrap_or_else(|| panic!("{name} has one"))].hit = true;
        let expect = Expect { retransmission_within: Some(LONG), no_message_lost: true, ..Expect::default() };
        assert_eq!(failed(&all, Fault::Drop, &expect), ["retransmission-within", "no-message-lost"], "{name}");
    }
}

#[test]
fn a_mark_that_nobody_answers_is_told_from_one_that_is_answered() {
    let mut all = recording("ecn_ce_out");
    for r in &mut all {
        r.hit = packet(&r.bytes).is_some_and(|(f, _)| f.net.is_some_and(|n| ecn(n.tos) == ECN_CE));
    }
    let expect = Expect { cnp_within: Some(Duration::from_millis(1)), ..Expect::default() };
    let fault = Fault::MarkCe { any: false, queue: None };
    // soft-RoCE sends no CNPs
    assert_eq!(failed(&all, fault, &expect), ["cnp-within"]);
    // an acknowledge of the other side becomes one, some time after each mark
    let ack = all
        .iter()
        .find(|r| packet(&r.bytes).is_some_and(|(_, p)| p.op.is_some_and(|o| o.kind == Kind::Ack)))
        .unwrap()
        .clone();
    let start = packet(&ack.bytes).unwrap().0.transport.unwrap().start;
    let with = |after_ns: i64, other_qp: u8| {
        let mut out = Vec::new();
        for r in &all {
            out.push(r.clone());
            if r.hit {
                let mut cnp = ack.clone();
                cnp.bytes[start] = byte::Cnp;
                cnp.bytes[start + 7] ^= other_qp;
                cnp.at = r.at + after_ns;
                out.push(cnp);
            }
        }
        out.sort_by_key(|r| r.at);
        out
    };
    assert_eq!(failed(&with(50_000, 0), fault, &expect), [] as [&str; 0]);
    assert_eq!(failed(&with(2_000_000, 0), fault, &expect), ["cnp-within"]);
    // for another queue pair
    assert_eq!(failed(&with(50_000, 0x55), fault, &expect), ["cnp-within"]);
}
