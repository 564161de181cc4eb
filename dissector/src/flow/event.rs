//! What a flow remembers of its troubles: the packets that findings point at. Bounded, whatever happens.

use crate::capture::Timestamp;
use crate::wire::Psn;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// PSNs were passed over; `value` of them, `psn` the first.
    Gap,
    /// A PSN came after a later one.
    Late,
    /// A copy made by the network; `other` is the first.
    Duplicate,
    /// Sent again after a sequence NAK; `other` is the packet that it repeats.
    AgainAfterNak,
    /// Sent again after an RNR NAK.
    AgainAfterRnr,
    /// Sent again after nothing: a time-out; `value` nanoseconds since it was sent before.
    AgainAfterSilence,
    /// Sent again although its acknowledge had passed here.
    AgainThoughAcked,
    /// NAK of this kind (flow of the responder); `other` is the packet that it refuses.
    NakSequence,
    /// Likewise.
    NakInvalidRequest,
    /// Likewise.
    NakRemoteAccess,
    /// Likewise.
    NakRemoteOperational,
    /// Likewise, RD and reserved codes.
    NakOther,
    /// RNR NAK; `value` is the timer code.
    Rnr,
    /// CE mark.
    Ce,
    /// CNP.
    Cnp,
    /// Wrong ICRC.
    BadIcrc,
    /// A FLUSH with the ICRC of rdma_rxe.
    OddFlush,
    /// An acknowledge covers PSNs that are not in the capture; `value` of them, `psn` the last.
    AckOfUnseen,
    /// After a NAK the sender did not go back to the PSN that it names; `psn` came instead.
    NotGoneBack,
    /// The sequence started anew far away.
    Restart,
    /// A message ended with other bytes than its RETH says, or its order of First, Middle, Last is broken.
    BrokenMessage,
    /// Time-out or NAK repaired; `value` nanoseconds from the first sending to the acknowledge.
    Repaired,
    /// A management field that others of the flow do not have: value old << 32 | new.
    PKeyChanged,
    /// MigReq changed.
    MigReqChanged,
    /// DSCP changed: value old << 8 | new.
    DscpChanged,
    /// The source MAC of a CNP differs from that of the peer's other packets, or its TTL does.
    StrangeCnp,
    /// More READs and atomics in flight than before: `value` of them.
    ReadDepth,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub what: Happened,
    /// Its packet.
    pub packet: u64,
    /// The packet that it refers to, 0 if none is known.
    pub other: u64,
    /// When.
    pub at: Timestamp,
    /// Which PSN.
    pub psn: Psn,
    /// As the kind says.
    pub value: u64,
}

/// At most so many of a kind are kept.
const OF_A_KIND: usize = 6;
/// At most so many in all.
const IN_ALL: usize = 24;

/// The first events of each kind.
#[derive(Clone, Debug, Default)]
pub struct Events(Vec<Event>);

impl Events {
    /// Keeps one, if there is room for its kind.
    pub fn add(&mut self, event: Event) {
        if self.0.len() < IN_ALL && self.0.iter().filter(|e| e.what == event.what).count() < OF_A_KIND {
            self.0.push(event);
        }
    }

    /// Those of a kind, in the order of the capture.
    pub fn of(&self, what: Happened) -> impl Iterator<Item = &Event> {
        self.0.iter().filter(move |e| e.what == what)
    }

    /// The first of a kind.
    pub fn first(&self, what: Happened) -> Option<&Event> {
        self.of(what).next()
    }

    /// Packets of these kinds, ascending, without repetition.
    pub fn packets(&self, kinds: &[Happened]) -> Vec<u64> {
        let mut all: Vec<u64> = self
            .0
            .iter()
            .filter(|e| kinds.contains(&e.what))
            .flat_map(|e| [e.other, e.packet])
            .filter(|n| *n != 0)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
