//! The opcode table: the only place that knows BTH opcodes.
//!
//! The byte is `sss ooooo`: three bits of transport service, five of operation. Sources: IBTA volume 1
//! table 38 as the Linux kernel spells it (`include/rdma/ib_pack.h`), annex A14 (XRC), A17 (CNP) and
//! A19 (FLUSH, ATOMIC WRITE). Names, header chains, roles, message positions, the classes that the kernel
//! program counts, filter values and the documentation all derive from the list at the end of this file.

/// Transport service, from the top three bits of the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Transport {
    /// Reliable connection.
    Rc = 0,
    /// Unreliable connection.
    Uc = 1,
    /// Reliable datagram.
    Rd = 2,
    /// Unreliable datagram.
    Ud = 3,
    /// Congestion notification (0x81); the group has no other member.
    Cnp = 4,
    /// Extended reliable connection.
    Xrc = 5,
    /// Reserved by the standard.
    Reserved = 6,
    /// Manufacturer specific: the layout after BTH is not known.
    Manufacturer = 7,
}

impl Transport {
    /// From an opcode byte; every byte has one.
    pub const fn of(opcode: u8) -> Self {
        match opcode >> 5 {
            0 => Self::Rc,
            1 => Self::Uc,
            2 => Self::Rd,
            3 => Self::Ud,
            4 => Self::Cnp,
            5 => Self::Xrc,
            6 => Self::Reserved,
            _ => Self::Manufacturer,
        }
    }

    /// As engineers write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Rd => "RD",
            Self::Ud => "UD",
            Self::Cnp => "CNP",
            Self::Xrc => "XRC",
            Self::Reserved => "reserved",
            Self::Manufacturer => "manufacturer",
        }
    }
}

/// What the packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// SEND of any position.
    Send,
    /// RDMA WRITE of any position.
    Write,
    /// RDMA READ request.
    ReadRequest,
    /// RDMA READ response; also answers FLUSH and ATOMIC WRITE.
    ReadResponse,
    /// Acknowledge: ACK, NAK or RNR NAK by its AETH.
    Ack,
    /// Answer to CmpSwap and FetchAdd.
    AtomicAck,
    /// CmpSwap or FetchAdd.
    Atomic,
    /// FLUSH (annex A19).
    Flush,
    /// ATOMIC WRITE (annex A19).
    AtomicWrite,
    /// RD resynchronisation.
    Resync,
    /// Congestion notification packet.
    Cnp,
}

/// Who speaks, for PSN logic: requests carry the sender's PSN space, responses the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sent by the requester, in its own PSN space.
    Request,
    /// Sent by the responder, in the requester's PSN space.
    Response,
    /// Outside of any PSN space (CNP).
    Notification,
}

/// Position within a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// First of several packets.
    First,
    /// Neither first nor last.
    Middle,
    /// Last of several.
    Last,
    /// The whole message.
    Only,
}

impl Position {
    /// A message begins with this packet.
    pub const fn starts(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// A message ends with this packet.
    pub const fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// A header after the outer network; [`Header::len`] is the only list of their lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// Local routing header (native InfiniBand).
    Lrh,
    /// Global routing header (RoCEv1, native InfiniBand).
    Grh,
    /// Base transport header.
    Bth,
    /// Reliable datagram extended header.
    Rdeth,
    /// Datagram extended header.
    Deth,
    /// XRC extended header.
    XrcEth,
    /// RDMA extended header.
    Reth,
    /// Atomic request.
    AtomicEth,
    /// Acknowledge extended header.
    Aeth,
    /// Original value of an atomic.
    AtomicAckEth,
    /// Immediate data.
    ImmDt,
    /// Key to invalidate.
    Ieth,
    /// Flush: placement type and selectivity.
    Feth,
    /// 16 reserved bytes of a CNP.
    CnpPad,
    /// Invariant CRC.
    Icrc,
}

impl Header {
    /// Length in bytes; fixed for all of them.
    #[expect(clippy::len_without_is_empty, reason = "no header is empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::Rdeth | Self::XrcEth | Self::Aeth | Self::ImmDt | Self::Ieth | Self::Feth | Self::Icrc => 4,
            Self::Lrh | Self::Deth | Self::AtomicAckEth => 8,
            Self::Bth => 12,
            Self::Reth | Self::CnpPad => 16,
            Self::AtomicEth => 28,
            Self::Grh => 40,
        }
    }

    /// As the standard abbreviates it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lrh => "LRH",
            Self::Grh => "GRH",
            Self::Bth => "BTH",
            Self::Rdeth => "RDETH",
            Self::Deth => "DETH",
            Self::XrcEth => "XRCETH",
            Self::Reth => "RETH",
            Self::AtomicEth => "AtomicETH",
            Self::Aeth => "AETH",
            Self::AtomicAckEth => "AtomicAckETH",
            Self::ImmDt => "ImmDt",
            Self::Ieth => "IETH",
            Self::Feth => "FETH",
            Self::CnpPad => "CNP reserved",
            Self::Icrc => "ICRC",
        }
    }
}

/// Whether bytes of a message follow the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Never: what follows the headers (other than pad and ICRC) does not belong there.
    None,
    /// Zero or more bytes.
    Data,
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Op {
    /// The byte in BTH.
    pub byte: u8,
    /// IBTA name with the transport in front.
    pub name: &'static str,
    /// Transport service.
    pub transport: Transport,
    /// What it does.
    pub kind: Kind,
    /// Place in its message.
    pub position: Position,
    /// Extended headers after BTH, in order.
    pub headers: &'static [Header],
    /// Whether data follows.
    pub payload: Payload,
}

impl Op {
    /// The row of an opcode, `None` for reserved and manufacturer specific ones.
    pub const fn of(byte: u8) -> Option<&'static Op> {
        // TABLE has 256 entries, so a byte is always inside
        #[expect(clippy::indexing_slicing, reason = "a u8 indexes an array of 256")]
        TABLE[byte as usize]
    }

    /// Request, response or notification.
    pub const fn role(&self) -> Role {
        match self.kind {
            Kind::ReadResponse | Kind::Ack | Kind::AtomicAck => Role::Response,
            Kind::Cnp => Role::Notification,
            _ => Role::Request,
        }
    }

    /// Bytes of all extended headers.
    pub const fn headers_len(&self) -> usize {
        let mut rest = self.headers;
        let mut n = 0usize;
        while let [h, tail @ ..] = rest {
            n = n.saturating_add(h.len());
            rest = tail;
        }
        n
    }

    /// Where `header` starts, counted from the end of BTH.
    pub const fn offset_of(&self, header: Header) -> Option<usize> {
        let mut rest = self.headers;
        let mut n = 0usize;
        while let [h, tail @ ..] = rest {
            if *h as u8 == header as u8 {
                return Some(n);
            }
            n = n.saturating_add(h.len());
            rest = tail;
        }
        None
    }

    /// Whether the chain has this header.
    pub const fn has(&self, header: Header) -> bool {
        self.offset_of(header).is_some()
    }
}

/// What a packet is counted as, in the kernel and out of it. The numbers are slots of counter arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// SEND.
    Send = 0,
    /// RDMA WRITE.
    Write = 1,
    /// RDMA READ request.
    ReadRequest = 2,
    /// RDMA READ response.
    ReadResponse = 3,
    /// CmpSwap, FetchAdd, ATOMIC WRITE, FLUSH.
    Atomic = 4,
    /// ATOMIC Acknowledge.
    AtomicAck = 5,
    /// Acknowledge; the AETH tells ACK from NAK and RNR NAK.
    Ack = 6,
    /// CNP.
    Cnp = 7,
    /// Reserved and manufacturer specific opcodes, RESYNC.
    Other = 8,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = 9;
}

/// Facts of an opcode as plain bits, for the kernel program: a table without pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    const CLASS: u16 = 0x000f;
    /// A request (own PSN space of the sender).
    pub const REQUEST: u16 = 0x0010;
    /// A response (PSN space of the peer).
    pub const RESPONSE: u16 = 0x0020;
    /// Starts a message.
    pub const STARTS: u16 = 0x0040;
    /// Ends a message.
    pub const ENDS: u16 = 0x0080;
    /// The row exists.
    pub const KNOWN: u16 = 0x0100;
    /// DETH is in the chain.
    pub const DETH: u16 = 0x0200;
    /// AETH is in the chain.
    pub const AETH: u16 = 0x0400;
    /// RETH is in the chain.
    pub const RETH: u16 = 0x0800;

    /// The class slot.
    pub const fn class(self) -> u16 {
        self.0 & Self::CLASS
    }

    /// Whether a bit is set.
    pub const fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }

    const fn of_row(row: Option<&'static Op>) -> Self {
        let Some(op) = row else { return Self(Class::Other as u16) };
        let class = match op.kind {
            Kind::Send => Class::Send,
            Kind::Write => Class::Write,
            Kind::ReadRequest => Class::ReadRequest,
            Kind::ReadResponse => Class::ReadResponse,
            Kind::Atomic | Kind::AtomicWrite | Kind::Flush => Class::Atomic,
            Kind::AtomicAck => Class::AtomicAck,
            Kind::Ack => Class::Ack,
            Kind::Cnp => Class::Cnp,
            Kind::Resync => Class::Other,
        };
        let mut f = class as u16 | Self::KNOWN;
        match op.role() {
            Role::Request => f |= Self::REQUEST,
            Role::Response => f |= Self::RESPONSE,
            Role::Notification => {}
        }
        if op.position.starts() {
            f |= Self::STARTS;
        }
        if op.position.ends() {
            f |= Self::ENDS;
        }
        if op.has(Header::Deth) {
            f |= Self::DETH;
        }
        if op.has(Header::Aeth) {
            f |= Self::AETH;
        }
        if op.has(Header::Reth) {
            f |= Self::RETH;
        }
        Self(f)
    }
}

/// [`Flags`] of all 256 opcodes.
pub static FLAGS: [Flags; 256] = {
    let mut out = [Flags(0); 256];
    let mut i = 0u8;
    loop {
        #[expect(clippy::indexing_slicing, reason = "a u8 indexes an array of 256; evaluated at compile time")]
        {
            out[i as usize] = Flags::of_row(TABLE[i as usize]);
        }
        match i.checked_add(1) {
            Some(n) => i = n,
            None => break,
        }
    }
    out
};

macro_rules! opcodes {
    ($($byte:literal $id:ident $name:literal $transport:ident $kind:ident $position:ident [$($header:ident),*] $payload:ident;)*) => {
        /// Opcode bytes by name.
        #[expect(non_upper_case_globals, reason = "named as the rows are")]
        pub mod byte {
            $(#[doc = $name] pub const $id: u8 = $byte;)*
        }

        /// All rows, in the order of their bytes.
        pub static ROWS: &[Op] = &[
            $(Op {
                byte: $byte, name: $name, transport: Transport::$transport, kind: Kind::$kind,
                position: Position::$position, headers: &[$(Header::$header),*], payload: Payload::$payload,
            }),*
        ];

        const fn row(byte: u8) -> Option<&'static Op> {
            match byte {
                $($byte => Some(&Op {
                    byte: $byte, name: $name, transport: Transport::$transport, kind: Kind::$kind,
                    position: Position::$position, headers: &[$(Header::$header),*], payload: Payload::$payload,
                }),)*
                _ => None,
            }
        }
    };
}

static TABLE: [Option<&'static Op>; 256] = {
    let mut out = [None; 256];
    let mut i = 0u8;
    loop {
        #[expect(clippy::indexing_slicing, reason = "a u8 indexes an array of 256; evaluated at compile time")]
        {
            out[i as usize] = row(i);
        }
        match i.checked_add(1) {
            Some(n) => i = n,
            None => break,
        }
    }
    out
};

opcodes! {
    0x00 RcSendFirst "RC SEND First" Rc Send First [] Data;
    0x01 RcSendMiddle "RC SEND Middle" Rc Send Middle [] Data;
    0x02 RcSendLast "RC SEND Last" Rc Send Last [] Data;
    0x03 RcSendLastImmediate "RC SEND Last with Immediate" Rc Send Last [ImmDt] Data;
    0x04 RcSendOnly "RC SEND Only" Rc Send Only [] Data;
    0x05 RcSendOnlyImmediate "RC SEND Only with Immediate" Rc Send Only [ImmDt] Data;
    0x06 RcWriteFirst "RC RDMA WRITE First" Rc Write First [Reth] Data;
    0x07 RcWriteMiddle "RC RDMA WRITE Middle" Rc Write Middle [] Data;
    0x08 RcWriteLast "RC RDMA WRITE Last" Rc Write Last [] Data;
    0x09 RcWriteLastImmediate "RC RDMA WRITE Last with Immediate" Rc Write Last [ImmDt] Data;
    0x0a RcWriteOnly "RC RDMA WRITE Only" Rc Write Only [Reth] Data;
    0x0b RcWriteOnlyImmediate "RC RDMA WRITE Only with Immediate" Rc Write Only [Reth, ImmDt] Data;
    0x0c RcReadRequest "RC RDMA READ Request" Rc ReadRequest Only [Reth] None;
    0x0d RcReadResponseFirst "RC RDMA READ response First" Rc ReadResponse First [Aeth] Data;
    0x0e RcReadResponseMiddle "RC RDMA READ response Middle" Rc ReadResponse Middle [] Data;
    0x0f RcReadResponseLast "RC RDMA READ response Last" Rc ReadResponse Last [Aeth] Data;
    0x10 RcReadResponseOnly "RC RDMA READ response Only" Rc ReadResponse Only [Aeth] Data;
    0x11 RcAcknowledge "RC Acknowledge" Rc Ack Only [Aeth] None;
    0x12 RcAtomicAcknowledge "RC ATOMIC Acknowledge" Rc AtomicAck Only [Aeth, AtomicAckEth] None;
    0x13 RcCmpSwap "RC CmpSwap" Rc Atomic Only [AtomicEth] None;
    0x14 RcFetchAdd "RC FetchAdd" Rc Atomic Only [AtomicEth] None;
    0x16 RcSendLastInvalidate "RC SEND Last with Invalidate" Rc Send Last [Ieth] Data;
    0x17 RcSendOnlyInvalidate "RC SEND Only with Invalidate" Rc Send Only [Ieth] Data;
    0x1c RcFlush "RC FLUSH" Rc Flush Only [Feth, Reth] None;
    0x1d RcAtomicWrite "RC ATOMIC WRITE" Rc AtomicWrite Only [Reth] Data;
    0x20 UcSendFirst "UC SEND First" Uc Send First [] Data;
    0x21 UcSendMiddle "UC SEND Middle" Uc Send Middle [] Data;
    0x22 UcSendLast "UC SEND Last" Uc Send Last [] Data;
    0x23 UcSendLastImmediate "UC SEND Last with Immediate" Uc Send Last [ImmDt] Data;
    0x24 UcSendOnly "UC SEND Only" Uc Send Only [] Data;
    0x25 UcSendOnlyImmediate "UC SEND Only with Immediate" Uc Send Only [ImmDt] Data;
    0x26 UcWriteFirst "UC RDMA WRITE First" Uc Write First [Reth] Data;
    0x27 UcWriteMiddle "UC RDMA WRITE Middle" Uc Write Middle [] Data;
    0x28 UcWriteLast "UC RDMA WRITE Last" Uc Write Last [] Data;
    0x29 UcWriteLastImmediate "UC RDMA WRITE Last with Immediate" Uc Write Last [ImmDt] Data;
    0x2a UcWriteOnly "UC RDMA WRITE Only" Uc Write Only [Reth] Data;
    0x2b UcWriteOnlyImmediate "UC RDMA WRITE Only with Immediate" Uc Write Only [Reth, ImmDt] Data;
    0x40 RdSendFirst "RD SEND First" Rd Send First [Rdeth, Deth] Data;
    0x41 RdSendMiddle "RD SEND Middle" Rd Send Middle [Rdeth, Deth] Data;
    0x42 RdSendLast "RD SEND Last" Rd Send Last [Rdeth, Deth] Data;
    0x43 RdSendLastImmediate "RD SEND Last with Immediate" Rd Send Last [Rdeth, Deth, ImmDt] Data;
    0x44 RdSendOnly "RD SEND Only" Rd Send Only [Rdeth, Deth] Data;
    0x45 RdSendOnlyImmediate "RD SEND Only with Immediate" Rd Send Only [Rdeth, Deth, ImmDt] Data;
    0x46 RdWriteFirst "RD RDMA WRITE First" Rd Write First [Rdeth, Deth, Reth] Data;
    0x47 RdWriteMiddle "RD RDMA WRITE Middle" Rd Write Middle [Rdeth, Deth] Data;
    0x48 RdWriteLast "RD RDMA WRITE Last" Rd Write Last [Rdeth, Deth] Data;
    0x49 RdWriteLastImmediate "RD RDMA WRITE Last with Immediate" Rd Write Last [Rdeth, Deth, ImmDt] Data;
    0x4a RdWriteOnly "RD RDMA WRITE Only" Rd Write Only [Rdeth, Deth, Reth] Data;
    0x4b RdWriteOnlyImmediate "RD RDMA WRITE Only with Immediate" Rd Write Only [Rdeth, Deth, Reth, ImmDt] Data;
    0x4c RdReadRequest "RD RDMA READ Request" Rd ReadRequest Only [Rdeth, Deth, Reth] None;
    0x4d RdReadResponseFirst "RD RDMA READ response First" Rd ReadResponse First [Rdeth, Aeth] Data;
    0x4e RdReadResponseMiddle "RD RDMA READ response Middle" Rd ReadResponse Middle [Rdeth] Data;
    0x4f RdReadResponseLast "RD RDMA READ response Last" Rd ReadResponse Last [Rdeth, Aeth] Data;
    0x50 RdReadResponseOnly "RD RDMA READ response Only" Rd ReadResponse Only [Rdeth, Aeth] Data;
    0x51 RdAcknowledge "RD Acknowledge" Rd Ack Only [Rdeth, Aeth] None;
    0x52 RdAtomicAcknowledge "RD ATOMIC Acknowledge" Rd AtomicAck Only [Rdeth, Aeth, AtomicAckEth] None;
    0x53 RdCmpSwap "RD CmpSwap" Rd Atomic Only [Rdeth, Deth, AtomicEth] None;
    0x54 RdFetchAdd "RD FetchAdd" Rd Atomic Only [Rdeth, Deth, AtomicEth] None;
    0x55 RdResync "RD RESYNC" Rd Resync Only [Rdeth, Deth] None;
    0x5c RdFlush "RD FLUSH" Rd Flush Only [Rdeth, Feth, Reth] None;
    0x5d RdAtomicWrite "RD ATOMIC WRITE" Rd AtomicWrite Only [Rdeth, Reth] Data;
    0x64 UdSendOnly "UD SEND Only" Ud Send Only [Deth] Data;
    0x65 UdSendOnlyImmediate "UD SEND Only with Immediate" Ud Send Only [Deth, ImmDt] Data;
    0x81 Cnp "CNP" Cnp Cnp Only [CnpPad] None;
    0xa0 XrcSendFirst "XRC SEND First" Xrc Send First [XrcEth] Data;
    0xa1 XrcSendMiddle "XRC SEND Middle" Xrc Send Middle [XrcEth] Data;
    0xa2 XrcSendLast "XRC SEND Last" Xrc Send Last [XrcEth] Data;
    0xa3 XrcSendLastImmediate "XRC SEND Last with Immediate" Xrc Send Last [XrcEth, ImmDt] Data;
    0xa4 XrcSendOnly "XRC SEND Only" Xrc Send Only [XrcEth] Data;
    0xa5 XrcSendOnlyImmediate "XRC SEND Only with Immediate" Xrc Send Only [XrcEth, ImmDt] Data;
    0xa6 XrcWriteFirst "XRC RDMA WRITE First" Xrc Write First [XrcEth, Reth] Data;
    0xa7 XrcWriteMiddle "XRC RDMA WRITE Middle" Xrc Write Middle [XrcEth] Data;
    0xa8 XrcWriteLast "XRC RDMA WRITE Last" Xrc Write Last [XrcEth] Data;
    0xa9 XrcWriteLastImmediate "XRC RDMA WRITE Last with Immediate" Xrc Write Last [XrcEth, ImmDt] Data;
    0xaa XrcWriteOnly "XRC RDMA WRITE Only" Xrc Write Only [XrcEth, Reth] Data;
    0xab XrcWriteOnlyImmediate "XRC RDMA WRITE Only with Immediate" Xrc Write Only [XrcEth, Reth, ImmDt] Data;
    0xac XrcReadRequest "XRC RDMA READ Request" Xrc ReadRequest Only [XrcEth, Reth] None;
    0xad XrcReadResponseFirst "XRC RDMA READ response First" Xrc ReadResponse First [Aeth] Data;
    0xae XrcReadResponseMiddle "XRC RDMA READ response Middle" Xrc ReadResponse Middle [] Data;
    0xaf XrcReadResponseLast "XRC RDMA READ response Last" Xrc ReadResponse Last [Aeth] Data;
    0xb0 XrcReadResponseOnly "XRC RDMA READ response Only" Xrc ReadResponse Only [Aeth] Data;
    0xb1 XrcAcknowledge "XRC Acknowledge" Xrc Ack Only [Aeth] None;
    0xb2 XrcAtomicAcknowledge "XRC ATOMIC Acknowledge" Xrc AtomicAck Only [Aeth, AtomicAckEth] None;
    0xb3 XrcCmpSwap "XRC CmpSwap" Xrc Atomic Only [XrcEth, AtomicEth] None;
    0xb4 XrcFetchAdd "XRC FetchAdd" Xrc Atomic Only [XrcEth, AtomicEth] None;
    0xb6 XrcSendLastInvalidate "XRC SEND Last with Invalidate" Xrc Send Last [XrcEth, Ieth] Data;
    0xb7 XrcSendOnlyInvalidate "XRC SEND Only with Invalidate" Xrc Send Only [XrcEth, Ieth] Data;
    0xbc XrcFlush "XRC FLUSH" Xrc Flush Only [XrcEth, Feth, Reth] None;
    0xbd XrcAtomicWrite "XRC ATOMIC WRITE" Xrc AtomicWrite Only [XrcEth, Reth] Data;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_once_and_in_its_group() {
        for pair in ROWS.windows(2) {
            assert!(pair[0].byte < pair[1].byte, "{} and {}", pair[0].name, pair[1].name);
        }
        for op in ROWS {
            assert_eq!(op.transport, Transport::of(op.byte), "{}", op.name);
            assert_eq!(Op::of(op.byte), Some(op));
            assert!(op.name.starts_with(op.transport.name()), "{}", op.name);
        }
        assert_eq!((0..=255).filter(|b| Op::of(*b).is_some()).count(), ROWS.len());
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = ROWS.iter().map(|o| o.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROWS.len());
    }

    #[test]
    fn the_standards_numbers() {
        // those that public tutorials get wrong
        for (b, name) in [
            (0x04, "RC SEND Only"),
            (0x06, "RC RDMA WRITE First"),
            (0x0a, "RC RDMA WRITE Only"),
            (0x0c, "RC RDMA READ Request"),
            (0x11, "RC Acknowledge"),
            (0x64, "UD SEND Only"),
            (0x81, "CNP"),
        ] {
            assert_eq!(Op::of(b).unwrap().name, name);
        }
        assert!(Op::of(0x80).is_none());
        assert!(Op::of(0x15).is_none());
    }
}
