//! Communication management (IBTA 12.6): the messages that make and end connections.
//!
//! Layouts are those of the kernel's `include/rdma/ibta_vol1_c12.h`. Every field is a [`Bits`], so a message
//! that the capture cut gives what it has. Offsets count from the end of the common header.

use super::bits::{Bits, bytes_at, tail};
use super::mad::{Class, Mad};
use super::{Psn, Qpn};

/// Which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Request for communication.
    Req,
    /// Message receipt acknowledgement.
    Mra,
    /// Reject.
    Rej,
    /// Reply to a request.
    Rep,
    /// Ready to use.
    Rtu,
    /// Request to disconnect.
    Dreq,
    /// Reply to that.
    Drep,
    /// Service id resolution request.
    SidrReq,
    /// Service id resolution response.
    SidrRep,
    /// Load alternate path.
    Lap,
    /// Alternate path response.
    Apr,
}

impl Kind {
    /// By attribute id.
    pub const fn of(attribute: u16) -> Option<Self> {
        Some(match attribute {
            0x10 => Self::Req,
            0x11 => Self::Mra,
            0x12 => Self::Rej,
            0x13 => Self::Rep,
            0x14 => Self::Rtu,
            0x15 => Self::Dreq,
            0x16 => Self::Drep,
            0x17 => Self::SidrReq,
            0x18 => Self::SidrRep,
            0x19 => Self::Lap,
            0x1a => Self::Apr,
            _ => return None,
        })
    }

    /// The standard's abbreviation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Req => "REQ",
            Self::Mra => "MRA",
            Self::Rej => "REJ",
            Self::Rep => "REP",
            Self::Rtu => "RTU",
            Self::Dreq => "DREQ",
            Self::Drep => "DREP",
            Self::SidrReq => "SIDR_REQ",
            Self::SidrRep => "SIDR_REP",
            Self::Lap => "LAP",
            Self::Apr => "APR",
        }
    }

    /// What it is, in words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Req => "connection request",
            Self::Mra => "message receipt acknowledgement",
            Self::Rej => "connection reject",
            Self::Rep => "connection reply",
            Self::Rtu => "ready to use",
            Self::Dreq => "disconnection request",
            Self::Drep => "disconnection reply",
            Self::SidrReq => "service id resolution request",
            Self::SidrRep => "service id resolution response",
            Self::Lap => "load alternate path",
            Self::Apr => "alternate path response",
        }
    }

    /// Where the consumer's private data starts, and how many bytes it has.
    pub const fn private_data(self) -> (usize, usize) {
        match self {
            Self::Req => (140, 92),
            Self::Mra => (10, 222),
            Self::Rej | Self::Apr => (84, 148),
            Self::Rep => (36, 196),
            Self::Rtu | Self::Drep => (8, 224),
            Self::Dreq => (12, 220),
            Self::SidrReq => (16, 216),
            Self::SidrRep => (96, 136),
            Self::Lap => (64, 168),
        }
    }
}

/// Communication id of the sender, in every message of a connection; request id of SIDR.
pub const LOCAL_COMM_ID: Bits = Bits::new(0, 32);
/// Communication id of the receiver, in every message but REQ and SIDR.
pub const REMOTE_COMM_ID: Bits = Bits::new(4, 32);

/// Fields of REQ.
pub mod req {
    use super::Bits;
    /// Service id.
    pub const SERVICE_ID: Bits = Bits::new(8, 64);
    /// GUID of the channel adapter.
    pub const LOCAL_CA_GUID: Bits = Bits::new(16, 64);
    /// Q_Key (datagram service).
    pub const LOCAL_Q_KEY: Bits = Bits::new(28, 32);
    /// Queue pair.
    pub const LOCAL_QPN: Bits = Bits::new(32, 24);
    /// READs and atomics the sender can take at once.
    pub const RESPONDER_RESOURCES: Bits = Bits::new(35, 8);
    /// End-to-end context.
    pub const LOCAL_EECN: Bits = Bits::new(36, 24);
    /// READs and atomics the sender wants outstanding.
    pub const INITIATOR_DEPTH: Bits = Bits::new(39, 8);
    /// End-to-end context of the other side.
    pub const REMOTE_EECN: Bits = Bits::new(40, 24);
    /// Time in which the remote CM must answer.
    pub const REMOTE_CM_RESPONSE_TIMEOUT: Bits = Bits::within(43, 0, 5);
    /// 0 RC, 1 UC, 2 RD, 3 see the extended type.
    pub const TRANSPORT_SERVICE_TYPE: Bits = Bits::within(43, 5, 2);
    /// Whether the sender's CA implements end-to-end flow control.
    pub const END_TO_END_FLOW_CONTROL: Bits = Bits::within(43, 7, 1);
    /// PSN with which the receiver of the REQ begins to send.
    pub const STARTING_PSN: Bits = Bits::new(44, 24);
    /// Time in which the local CM answers.
    pub const LOCAL_CM_RESPONSE_TIMEOUT: Bits = Bits::within(47, 0, 5);
    /// Retries after a time-out or sequence NAK.
    pub const RETRY_COUNT: Bits = Bits::within(47, 5, 3);
    /// Partition.
    pub const PARTITION_KEY: Bits = Bits::new(48, 16);
    /// Code of the path MTU.
    pub const PATH_MTU: Bits = Bits::within(50, 0, 4);
    /// RDC exists.
    pub const RDC_EXISTS: Bits = Bits::within(50, 4, 1);
    /// RNR retries of the receiver's sends; 7 is endless.
    pub const RNR_RETRY_COUNT: Bits = Bits::within(50, 5, 3);
    /// How often the CM repeats a message.
    pub const MAX_CM_RETRIES: Bits = Bits::within(51, 0, 4);
    /// Uses a shared receive queue.
    pub const SRQ: Bits = Bits::within(51, 4, 1);
    /// 1 XRC.
    pub const EXTENDED_TRANSPORT_TYPE: Bits = Bits::within(51, 5, 3);
    /// Local LID of the primary path; the first of 44 bytes of path.
    pub const PRIMARY_LOCAL_LID: Bits = Bits::new(52, 16);
    /// Remote LID.
    pub const PRIMARY_REMOTE_LID: Bits = Bits::new(54, 16);
    /// First byte of the local GID.
    pub const PRIMARY_LOCAL_GID: usize = 56;
    /// First byte of the remote GID.
    pub const PRIMARY_REMOTE_GID: usize = 72;
    /// Flow label.
    pub const PRIMARY_FLOW_LABEL: Bits = Bits::new(88, 20);
    /// Reserved between flow label and rate.
    pub const PRIMARY_RESERVED0: Bits = Bits::within(90, 4, 6);
    /// Static rate.
    pub const PRIMARY_PACKET_RATE: Bits = Bits::within(91, 2, 6);
    /// Traffic class.
    pub const PRIMARY_TRAFFIC_CLASS: Bits = Bits::new(92, 8);
    /// Hop limit.
    pub const PRIMARY_HOP_LIMIT: Bits = Bits::new(93, 8);
    /// Service level.
    pub const PRIMARY_SL: Bits = Bits::within(94, 0, 4);
    /// Same subnet.
    pub const PRIMARY_SUBNET_LOCAL: Bits = Bits::within(94, 4, 1);
    /// Reserved.
    pub const PRIMARY_RESERVED1: Bits = Bits::within(94, 5, 3);
    /// ACK time-out.
    pub const PRIMARY_LOCAL_ACK_TIMEOUT: Bits = Bits::within(95, 0, 5);
    /// Reserved.
    pub const PRIMARY_RESERVED2: Bits = Bits::within(95, 5, 3);
    /// Bytes from a field of the primary path to the same field of the alternate path.
    pub const ALTERNATE: u16 = 44;
}

/// Fields of REP.
pub mod rep {
    use super::Bits;
    /// Q_Key.
    pub const LOCAL_Q_KEY: Bits = Bits::new(8, 32);
    /// Queue pair.
    pub const LOCAL_QPN: Bits = Bits::new(12, 24);
    /// End-to-end context.
    pub const LOCAL_EECN: Bits = Bits::new(16, 24);
    /// PSN with which the receiver of the REP begins to send.
    pub const STARTING_PSN: Bits = Bits::new(20, 24);
    /// READs and atomics the sender can take at once.
    pub const RESPONDER_RESOURCES: Bits = Bits::new(24, 8);
    /// READs and atomics the sender wants outstanding.
    pub const INITIATOR_DEPTH: Bits = Bits::new(25, 8);
    /// Longest time between receipt and acknowledge.
    pub const TARGET_ACK_DELAY: Bits = Bits::within(26, 0, 5);
    /// Whether the alternate path was taken.
    pub const FAILOVER_ACCEPTED: Bits = Bits::within(26, 5, 2);
    /// End-to-end flow control.
    pub const END_TO_END_FLOW_CONTROL: Bits = Bits::within(26, 7, 1);
    /// RNR retries of the receiver's sends; 7 is endless.
    pub const RNR_RETRY_COUNT: Bits = Bits::within(27, 0, 3);
    /// Uses a shared receive queue.
    pub const SRQ: Bits = Bits::within(27, 3, 1);
    /// Reserved.
    pub const RESERVED: Bits = Bits::within(27, 4, 4);
    /// GUID of the channel adapter.
    pub const LOCAL_CA_GUID: Bits = Bits::new(28, 64);
}

/// Fields of REJ.
pub mod rej {
    use super::Bits;
    /// What is rejected: 0 REQ, 1 REP, 2 none in particular.
    pub const MESSAGE_REJECTED: Bits = Bits::within(8, 0, 2);
    /// Reserved.
    pub const RESERVED0: Bits = Bits::within(8, 2, 6);
    /// Bytes of additional information that count.
    pub const INFO_LENGTH: Bits = Bits::within(9, 0, 7);
    /// Reserved.
    pub const RESERVED1: Bits = Bits::within(9, 7, 1);
    /// Why.
    pub const REASON: Bits = Bits::new(10, 16);
    /// First byte of the additional reject information.
    pub const ARI: usize = 12;
    /// Its bytes.
    pub const ARI_LEN: usize = 72;
}

/// Fields of MRA.
pub mod mra {
    use super::Bits;
    /// What is acknowledged: 0 REQ, 1 REP, 2 LAP.
    pub const MESSAGE_MRAED: Bits = Bits::within(8, 0, 2);
    /// Time the sender needs.
    pub const SERVICE_TIMEOUT: Bits = Bits::within(9, 0, 5);
}

/// Fields of DREQ.
pub mod dreq {
    use super::Bits;
    /// Queue pair of the receiver.
    pub const REMOTE_QPN: Bits = Bits::new(8, 24);
}

/// Fields of LAP.
pub mod lap {
    use super::Bits;
    /// Queue pair of the receiver.
    pub const REMOTE_QPN: Bits = Bits::new(12, 24);
    /// Time in which the remote CM must answer.
    pub const REMOTE_CM_RESPONSE_TIMEOUT: Bits = Bits::within(15, 0, 5);
    /// Local LID.
    pub const LOCAL_LID: Bits = Bits::new(20, 16);
    /// Remote LID.
    pub const REMOTE_LID: Bits = Bits::new(22, 16);
    /// First byte of the local GID.
    pub const LOCAL_GID: usize = 24;
    /// First byte of the remote GID.
    pub const REMOTE_GID: usize = 40;
    /// Flow label.
    pub const FLOW_LABEL: Bits = Bits::new(56, 20);
    /// Traffic class.
    pub const TRAFFIC_CLASS: Bits = Bits::new(59, 8);
    /// Hop limit.
    pub const HOP_LIMIT: Bits = Bits::new(60, 8);
    /// Static rate.
    pub const PACKET_RATE: Bits = Bits::within(61, 2, 6);
    /// Service level.
    pub const SL: Bits = Bits::within(62, 0, 4);
    /// Same subnet.
    pub const SUBNET_LOCAL: Bits = Bits::within(62, 4, 1);
    /// ACK time-out.
    pub const LOCAL_ACK_TIMEOUT: Bits = Bits::within(63, 0, 5);
}

/// Fields of APR.
pub mod apr {
    use super::Bits;
    /// Bytes of additional information that count.
    pub const INFO_LENGTH: Bits = Bits::new(8, 8);
    /// What became of the path.
    pub const STATUS: Bits = Bits::new(9, 8);
    /// First byte of the additional information.
    pub const INFO: usize = 12;
    /// Its bytes.
    pub const INFO_LEN: usize = 72;
}

/// Fields of SIDR_REQ.
pub mod sidr_req {
    use super::Bits;
    /// Partition.
    pub const PARTITION_KEY: Bits = Bits::new(4, 16);
    /// Service id.
    pub const SERVICE_ID: Bits = Bits::new(8, 64);
}

/// Fields of SIDR_REP.
pub mod sidr_rep {
    use super::Bits;
    /// What became of the request.
    pub const STATUS: Bits = Bits::new(4, 8);
    /// Bytes of additional information that count.
    pub const INFO_LENGTH: Bits = Bits::new(5, 8);
    /// Queue pair that serves.
    pub const QPN: Bits = Bits::new(8, 24);
    /// Service id.
    pub const SERVICE_ID: Bits = Bits::new(12, 64);
    /// Q_Key to use.
    pub const Q_KEY: Bits = Bits::new(20, 32);
    /// First byte of the additional information.
    pub const INFO: usize = 24;
    /// Its bytes.
    pub const INFO_LEN: usize = 72;
}

/// Fields of the RDMA-CM header at the start of the private data of REQ and SIDR_REQ (IBTA annex A11).
pub mod ip_cm {
    use super::Bits;
    /// Bytes of the header; the consumer's own data follow.
    pub const LEN: usize = 36;
    /// Major version.
    pub const MAJOR: Bits = Bits::within(0, 0, 4);
    /// Minor version.
    pub const MINOR: Bits = Bits::within(0, 4, 4);
    /// 4 or 6.
    pub const IP_VERSION: Bits = Bits::within(1, 0, 4);
    /// Reserved.
    pub const RESERVED: Bits = Bits::within(1, 4, 4);
    /// Source port.
    pub const SRC_PORT: Bits = Bits::new(2, 16);
    /// First byte of the source address (an IPv4 address stands in the last four bytes).
    pub const SRC: usize = 4;
    /// First byte of the destination address.
    pub const DST: usize = 20;
}

/// A message of communication management: its kind and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Which.
    pub kind: Kind,
    /// From the communication id on, as far as captured.
    pub bytes: &'a [u8],
    /// Transaction id of the datagram.
    pub transaction_id: u64,
}

impl<'a> Message<'a> {
    /// The message in a datagram, if it is one.
    pub fn of(mad: Mad<'a>) -> Option<Self> {
        if mad.class() != Class::COM_MGT {
            return None;
        }
        let kind = Kind::of(mad.attribute_id())?;
        Some(Self { kind, bytes: mad.data, transaction_id: mad.transaction_id() })
    }

    fn number(self, field: Bits) -> Option<u32> {
        field.get(self.bytes).and_then(|v| u32::try_from(v).ok())
    }

    fn small(self, field: Bits) -> Option<u8> {
        field.get(self.bytes).and_then(|v| u8::try_from(v).ok())
    }

    /// Communication id of the sender; request id of SIDR.
    pub fn local_comm_id(self) -> Option<u32> {
        self.number(LOCAL_COMM_ID)
    }

    /// Communication id of the receiver.
    pub fn remote_comm_id(self) -> Option<u32> {
        match self.kind {
            Kind::Req | Kind::SidrReq | Kind::SidrRep => None,
            _ => self.number(REMOTE_COMM_ID),
        }
    }

    /// Service id of REQ, SIDR_REQ and SIDR_REP.
    pub fn service_id(self) -> Option<ServiceId> {
        let field = match self.kind {
            Kind::Req => req::SERVICE_ID,
            Kind::SidrReq => sidr_req::SERVICE_ID,
            Kind::SidrRep => sidr_rep::SERVICE_ID,
            _ => return None,
        };
        field.get(self.bytes).map(ServiceId)
    }

    /// Queue pair of the sender (REQ, REP, SIDR_REP).
    pub fn local_qpn(self) -> Option<Qpn> {
        let field = match self.kind {
            Kind::Req => req::LOCAL_QPN,
            Kind::Rep => rep::LOCAL_QPN,
            Kind::SidrRep => sidr_rep::QPN,
            _ => return None,
        };
        self.number(field).map(Qpn::new)
    }

    /// Queue pair of the receiver (DREQ, LAP).
    pub fn remote_qpn(self) -> Option<Qpn> {
        let field = match self.kind {
            Kind::Dreq => dreq::REMOTE_QPN,
            Kind::Lap => lap::REMOTE_QPN,
            _ => return None,
        };
        self.number(field).map(Qpn::new)
    }

    /// PSN with which the receiver of this REQ or REP begins to send.
    pub fn starting_psn(self) -> Option<Psn> {
        let field = match self.kind {
            Kind::Req => req::STARTING_PSN,
            Kind::Rep => rep::STARTING_PSN,
            _ => return None,
        };
        self.number(field).map(Psn::new)
    }

    /// RNR retries that the receiver of this REQ or REP shall make; 7 is endless.
    pub fn rnr_retry(self) -> Option<u8> {
        match self.kind {
            Kind::Req => self.small(req::RNR_RETRY_COUNT),
            Kind::Rep => self.small(rep::RNR_RETRY_COUNT),
            _ => None,
        }
    }

    /// READs and atomics that the sender takes at once.
    pub fn responder_resources(self) -> Option<u8> {
        match self.kind {
            Kind::Req => self.small(req::RESPONDER_RESOURCES),
            Kind::Rep => self.small(rep::RESPONDER_RESOURCES),
            _ => None,
        }
    }

    /// READs and atomics that the sender wants outstanding.
    pub fn initiator_depth(self) -> Option<u8> {
        match self.kind {
            Kind::Req => self.small(req::INITIATOR_DEPTH),
            Kind::Rep => self.small(rep::INITIATOR_DEPTH),
            _ => None,
        }
    }

    /// Retries after a time-out (REQ).
    pub fn retry_count(self) -> Option<u8> {
        if self.kind == Kind::Req { self.small(req::RETRY_COUNT) } else { None }
    }

    /// Code of the path MTU (REQ).
    pub fn path_mtu_code(self) -> Option<u8> {
        if self.kind == Kind::Req { self.small(req::PATH_MTU) } else { None }
    }

    /// Code of the ACK time-out of the primary path (REQ); 0 means none.
    pub fn ack_timeout_code(self) -> Option<u8> {
        if self.kind == Kind::Req { self.small(req::PRIMARY_LOCAL_ACK_TIMEOUT) } else { None }
    }

    /// Kind of connection asked for (REQ).
    pub fn transport(self) -> Option<ConnectionType> {
        if self.kind != Kind::Req {
            return None;
        }
        Some(match (self.small(req::TRANSPORT_SERVICE_TYPE)?, self.small(req::EXTENDED_TRANSPORT_TYPE)) {
            (0, _) => ConnectionType::Rc,
            (1, _) => ConnectionType::Uc,
            (2, _) => ConnectionType::Rd,
            (_, Some(1)) => ConnectionType::Xrc,
            _ => ConnectionType::Reserved,
        })
    }

    /// Local and remote GID of the primary path (REQ): where data will come from and go to.
    pub fn primary_gids(self) -> Option<([u8; 16], [u8; 16])> {
        if self.kind != Kind::Req {
            return None;
        }
        Some((*bytes_at(self.bytes, req::PRIMARY_LOCAL_GID)?, *bytes_at(self.bytes, req::PRIMARY_REMOTE_GID)?))
    }

    /// Why (REJ).
    pub fn reject_reason(self) -> Option<u16> {
        if self.kind != Kind::Rej {
            return None;
        }
        rej::REASON.get(self.bytes).and_then(|v| u16::try_from(v).ok())
    }

    /// Status (SIDR_REP, APR).
    pub fn status(self) -> Option<u8> {
        match self.kind {
            Kind::SidrRep => self.small(sidr_rep::STATUS),
            Kind::Apr => self.small(apr::STATUS),
            _ => None,
        }
    }

    /// Private data with the RDMA-CM header, as far as captured.
    pub fn private_data(self) -> &'a [u8] {
        let (at, len) = self.kind.private_data();
        tail(self.bytes, at, len)
    }

    /// The RDMA-CM header, if the service id says that there is one.
    pub fn ip_cm(self) -> Option<IpCm<'a>> {
        if !matches!(self.kind, Kind::Req | Kind::SidrReq) || !self.service_id()?.has_ip_header() {
            return None;
        }
        self.private_data().first_chunk().map(IpCm)
    }

    /// Private data of the consumer, without the RDMA-CM header.
    pub fn consumer_data(self) -> &'a [u8] {
        let all = self.private_data();
        if self.ip_cm().is_some() { all.get(ip_cm::LEN..).unwrap_or(&[]) } else { all }
    }
}

/// What REQ asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionType {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram.
    Rd,
    /// Extended reliable connection.
    Xrc,
    /// Anything else.
    Reserved,
}

/// The RDMA-CM header: which addresses and port the application used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpCm<'a>(pub &'a [u8; ip_cm::LEN]);

impl<'a> IpCm<'a> {
    /// 4 or 6.
    pub fn ip_version(self) -> u8 {
        // one byte of four bits
        ip_cm::IP_VERSION.get(self.0).and_then(|v| u8::try_from(v).ok()).unwrap_or_default()
    }

    /// Source port.
    pub fn src_port(self) -> u16 {
        ip_cm::SRC_PORT.get(self.0).and_then(|v| u16::try_from(v).ok()).unwrap_or_default()
    }

    /// Source address, 16 bytes; IPv4 in the last four.
    pub fn src(self) -> &'a [u8; 16] {
        super::bytes::part::<4, 16, 36>(self.0)
    }

    /// Destination address, 16 bytes; IPv4 in the last four.
    pub fn dst(self) -> &'a [u8; 16] {
        super::bytes::part::<20, 16, 36>(self.0)
    }
}

/// Service id: who is being called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServiceId(pub u64);

impl ServiceId {
    /// The id of a port in an RDMA-CM port space: prefix 0x0000000001, IP protocol, port (annex A11).
    pub const fn ip(protocol: u8, port: u16) -> Self {
        Self(0x0100_0000 | (protocol as u64) << 16 | port as u64)
    }

    /// IP protocol and port, if the id has the prefix of RDMA-CM.
    pub const fn protocol_and_port(self) -> Option<(u8, u16)> {
        if self.0 >> 24 != 1 {
            return None;
        }
        let [_, _, _, _, _, protocol, high, low] = self.0.to_be_bytes();
        Some((protocol, u16::from_be_bytes([high, low])))
    }

    /// Port of the TCP port space (or of the UDP one).
    pub const fn port(self) -> Option<u16> {
        match self.protocol_and_port() {
            Some((_, port)) => Some(port),
            None => None,
        }
    }

    /// Whether private data of a REQ start with the RDMA-CM header.
    pub const fn has_ip_header(self) -> bool {
        self.protocol_and_port().is_some()
    }
}

/// Reason of a REJ in words (IBTA table 109, kernel `enum ib_cm_rej_reason`).
pub const fn reject_reason(code: u16) -> &'static str {
    match code {
        1 => "no QP available",
        2 => "no EE context available",
        3 => "no resources available",
        4 => "timeout: an expected message did not come",
        5 => "unsupported request",
        6 => "invalid communication ID",
        7 => "invalid communication instance",
        8 => "invalid service ID: nobody listens there",
        9 => "invalid transport service type",
        10 => "stale connection: the QP is already in use by another",
        11 => "RDC does not exist",
        12 => "primary remote port GID rejected",
        13 => "primary remote port LID rejected",
        14 => "invalid primary SL",
        15 => "invalid primary traffic class",
        16 => "invalid primary hop limit",
        17 => "invalid primary packet rate",
        18 => "alternate remote port GID rejected",
        19 => "alternate remote port LID rejected",
        20 => "invalid alternate SL",
        21 => "invalid alternate traffic class",
        22 => "invalid alternate hop limit",
        23 => "invalid alternate packet rate",
        24 => "port and CM redirection",
        25 => "port redirection",
        26 => "invalid path MTU",
        27 => "insufficient responder resources",
        28 => "consumer reject: the application refused",
        29 => "RNR retry count rejected",
        30 => "duplicate local communication ID",
        31 => "unsupported class version",
        32 => "invalid primary flow label",
        33 => "invalid alternate flow label",
        34 => "invalid service handle",
        35 => "vendor option not supported",
        _ => "unknown reason",
    }
}

/// What a REJ rejects.
pub const fn rejected_message(code: u8) -> &'static str {
    match code {
        0 => "REQ",
        1 => "REP",
        2 => "no message",
        _ => "reserved",
    }
}

/// What an MRA acknowledges.
pub const fn acknowledged_message(code: u8) -> &'static str {
    match code {
        0 => "REQ",
        1 => "REP",
        2 => "LAP",
        _ => "reserved",
    }
}

/// Status of a SIDR_REP in words (kernel `enum ib_cm_sidr_status`).
pub const fn sidr_status(code: u8) -> &'static str {
    match code {
        0 => "valid QPN",
        1 => "service ID not supported",
        2 => "rejected by the service provider",
        3 => "no QP available",
        4 => "redirected",
        5 => "unsupported version",
        _ => "reserved",
    }
}

/// Status of an APR in words (kernel `enum ib_cm_apr_status`).
pub const fn apr_status(code: u8) -> &'static str {
    match code {
        0 => "path accepted",
        1 => "invalid communication ID",
        2 => "alternate paths not supported",
        3 => "rejected",
        4 => "redirected",
        5 => "already the current path",
        6 => "invalid QPN or EECN",
        7 => "invalid LID",
        8 => "invalid GID",
        9 => "invalid flow label",
        10 => "invalid traffic class",
        11 => "invalid hop limit",
        12 => "invalid packet rate",
        13 => "invalid SL",
        _ => "reserved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SIDR_REQ and SIDR_REP of the kernel's CM, as captured.
    const SIDR_REQ: &[u8] = &[
        0x27, 0xb8, 0xc7, 0x8a, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0x01, 0x11, 0x1c, 0x06, 0x00, 0x40, 0xe3, 0x68, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 10, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 10, 0, 2, 0, 0,
    ];
    const SIDR_REP: &[u8] = &[
        0x27, 0xb8, 0xc7, 0x8a, 0, 0, 0, 0, 0, 0x02, 0xea, 0, 0, 0, 0, 0, 0x01, 0x11, 0x1c, 0x06, 0x01, 0x23, 0x45,
        0x67,
    ];

    fn message(kind: Kind, bytes: &[u8]) -> Message<'_> {
        Message { kind, bytes, transaction_id: 0 }
    }

    #[test]
    fn service_id_resolution() {
        let q = message(Kind::SidrReq, SIDR_REQ);
        assert_eq!(q.local_comm_id(), Some(0x27b8_c78a));
        assert_eq!(q.service_id().unwrap().protocol_and_port(), Some((17, 7174)));
        let ip = q.ip_cm().unwrap();
        assert_eq!((ip.ip_version(), ip.src_port()), (4, 58216));
        assert_eq!((&ip.src()[12..], &ip.dst()[12..]), (&[10, 10, 0, 1][..], &[10, 10, 0, 2][..]));
        assert_eq!(q.consumer_data(), &[0, 0]);
        let r = message(Kind::SidrRep, SIDR_REP);
        assert_eq!((r.status(), r.local_qpn()), (Some(0), Some(Qpn::new(0x2ea))));
        assert_eq!(sidr_rep::Q_KEY.get(r.bytes), Some(0x0123_4567));
    }

    #[test]
    fn service_ids() {
        assert_eq!(ServiceId::ip(6, 20049).port(), Some(20049));
        assert_eq!(ServiceId(0x0001_0000).port(), None);
        assert_eq!(ServiceId(0x0002_0000_0000_0000).port(), None);
        assert_eq!(ServiceId(0x1000_0001_0600_0001).port(), None);
    }

    #[test]
    fn fields_fill_their_messages() {
        // every private area ends at byte 256 of the datagram
        for id in 0x10..=0x1a {
            let k = Kind::of(id).unwrap();
            let (at, len) = k.private_data();
            assert_eq!(at + len, 232, "{}", k.name());
        }
        assert_eq!((Kind::of(0x0f), Kind::of(0x1b)), (None, None));
        assert_eq!(req::PRIMARY_LOCAL_ACK_TIMEOUT.shifted(req::ALTERNATE).at, 139);
    }

    #[test]
    fn every_prefix_is_read() {
        for n in 0..SIDR_REQ.len() {
            for id in 0x10..=0x1a {
                let m = message(Kind::of(id).unwrap(), &SIDR_REQ[..n]);
                let _ = (m.local_comm_id(), m.remote_comm_id(), m.local_qpn(), m.remote_qpn(), m.starting_psn());
                let _ = (m.ip_cm(), m.consumer_data(), m.transport(), m.primary_gids(), m.reject_reason(), m.status());
                assert_eq!(m.local_comm_id().is_some(), n >= 4);
            }
        }
    }

    #[test]
    fn reasons() {
        assert!(reject_reason(28).contains("consumer"));
        assert!((1..=35).all(|c| reject_reason(c) != "unknown reason"));
        assert_eq!(reject_reason(0), "unknown reason");
    }
}
