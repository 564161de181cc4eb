//! Management datagrams (IBTA 13.4): the common header, and when a packet is one.
//!
//! ```text
//!   0       base version         8    1
//!   1       management class     8
//!   2       class version        8
//!   3       R bit and method     8
//!   4..6    status              16    (directed route: D bit and 15 bits of status)
//!   6..8    class specific      16    (directed route: hop pointer, hop count)
//!   8..16   transaction id      64
//!   16..18  attribute id        16
//!   18..20  reserved
//!   20..24  attribute modifier  32
//!   24..256 data of the class
//! ```

use super::bytes::{be16, be32, be64, u8_at};
use super::opcode::Transport;
use super::packet::Packet;

/// Q_Key of QP 1 and of every QP that general services are redirected to (IBTA 10.2.5, kernel
/// `IB_QP1_QKEY`).
pub const GSI_Q_KEY: u32 = 0x8001_0000;

/// Bytes of a management datagram, header included.
pub const MAD_LEN: usize = 256;

/// Common header, and what was captured of the data behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad<'a> {
    header: &'a [u8; Mad::HEADER_LEN],
    /// Everything behind the common header, as far as it was captured.
    pub data: &'a [u8],
}

impl<'a> Mad<'a> {
    /// Bytes of the common header.
    pub const HEADER_LEN: usize = 24;

    /// Takes the header off; `None` if it is not complete.
    pub fn split(bytes: &'a [u8]) -> Option<Self> {
        let (header, data) = bytes.split_first_chunk()?;
        Some(Self { header, data })
    }

    /// The management datagram in a packet, if it is one.
    ///
    /// It is, if it is a datagram to QP 0, or to QP 1, or to another QP with the Q_Key of general services
    /// (redirection). Who sent it proves nothing: an application's answer may come from anywhere. A datagram
    /// to QP 1 with another Q_Key, or to another QP, must also have the size and version of one.
    pub fn in_packet(packet: &Packet<'a>) -> Option<Self> {
        if packet.op?.transport != Transport::Ud {
            return None;
        }
        let q_key = packet.ext.deth?.q_key();
        let to = packet.bth.dest_qp();
        let mad = Self::split(packet.payload)?;
        let shape = packet.payload_len == MAD_LEN && mad.base_version() == 1;
        let sure = to.is_management() && (q_key == GSI_Q_KEY || to.get() == 0);
        let known = to.is_management() || q_key == GSI_Q_KEY;
        (sure || known && shape).then_some(mad)
    }

    /// 1 for every datagram of InfiniBand.
    pub const fn base_version(self) -> u8 {
        u8_at::<0, 24>(self.header)
    }

    /// Management class.
    pub const fn class(self) -> Class {
        Class(u8_at::<1, 24>(self.header))
    }

    /// Version of the class.
    pub const fn class_version(self) -> u8 {
        u8_at::<2, 24>(self.header)
    }

    /// Method, the response bit included.
    pub const fn method(self) -> Method {
        Method(u8_at::<3, 24>(self.header))
    }

    /// Status; of a directed route SMP the top bit is the direction.
    pub const fn status(self) -> u16 {
        be16::<4, 24>(self.header)
    }

    /// Class specific 16 bits.
    pub const fn class_specific(self) -> u16 {
        be16::<6, 24>(self.header)
    }

    /// Transaction id.
    pub const fn transaction_id(self) -> u64 {
        be64::<8, 24>(self.header)
    }

    /// Attribute id.
    pub const fn attribute_id(self) -> u16 {
        be16::<16, 24>(self.header)
    }

    /// Reserved 16 bits.
    pub const fn reserved(self) -> u16 {
        be16::<18, 24>(self.header)
    }

    /// Attribute modifier.
    pub const fn attribute_modifier(self) -> u32 {
        be32::<20, 24>(self.header)
    }

    /// What the attribute is called in this class.
    pub fn attribute_name(self) -> Option<&'static str> {
        attribute_name(self.class(), self.attribute_id())
    }
}

/// Management class (IBTA table 113).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class(pub u8);

impl Class {
    /// Subnet management, LID routed.
    pub const SUBN_LID: Self = Self(0x01);
    /// Subnet management, directed route.
    pub const SUBN_DIRECTED: Self = Self(0x81);
    /// Subnet administration.
    pub const SUBN_ADM: Self = Self(0x03);
    /// Performance management.
    pub const PERF: Self = Self(0x04);
    /// Baseboard management.
    pub const BM: Self = Self(0x05);
    /// Device management.
    pub const DEV_MGT: Self = Self(0x06);
    /// Communication management.
    pub const COM_MGT: Self = Self(0x07);
    /// SNMP tunnelling.
    pub const SNMP: Self = Self(0x08);
    /// Congestion control.
    pub const CONGESTION: Self = Self(0x21);

    /// In words.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0x01 => "Subnet Management (LID routed)",
            0x81 => "Subnet Management (directed route)",
            0x03 => "Subnet Administration",
            0x04 => "Performance Management",
            0x05 => "Baseboard Management",
            0x06 => "Device Management",
            0x07 => "Communication Management",
            0x08 => "SNMP Tunneling",
            0x21 => "Congestion Control",
            0x09..=0x0f => "Vendor (0x09-0x0f)",
            0x30..=0x4f => "Vendor (0x30-0x4f, RMPP)",
            0x10..=0x2f => "Application",
            _ => "reserved class",
        }
    }

    /// One word for the packet list.
    pub const fn short(self) -> &'static str {
        match self.0 {
            0x01 | 0x81 => "SMP",
            0x03 => "SA",
            0x04 => "PerfMgt",
            0x05 => "BM",
            0x06 => "DevMgt",
            0x07 => "CM",
            0x08 => "SNMP",
            0x21 => "CongestionControl",
            0x09..=0x0f | 0x30..=0x4f => "Vendor MAD",
            0x10..=0x2f => "Application MAD",
            _ => "MAD",
        }
    }

    /// Whether an RMPP header stands behind the common header.
    pub const fn has_rmpp(self) -> bool {
        matches!(self.0, 0x03 | 0x30..=0x4f)
    }
}

/// Method (IBTA table 114).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method(pub u8);

impl Method {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0x01 => "Get",
            0x02 => "Set",
            0x81 => "GetResp",
            0x03 => "Send",
            0x05 => "Trap",
            0x06 => "Report",
            0x86 => "ReportResp",
            0x07 => "TrapRepress",
            0x12 => "GetTable",
            0x92 => "GetTableResp",
            0x13 => "GetTraceTable",
            0x14 => "GetMulti",
            0x94 => "GetMultiResp",
            0x15 => "Delete",
            0x95 => "DeleteResp",
            _ => "reserved method",
        }
    }
}

/// Name of an attribute in a class.
pub const fn attribute_name(class: Class, id: u16) -> Option<&'static str> {
    Some(match (class.0, id) {
        (0x07, _) => match super::cm::Kind::of(id) {
            Some(k) => k.name(),
            None => match id {
                0x0001 => "ClassPortInfo",
                _ => return None,
            },
        },
        (_, 0x0001) => "ClassPortInfo",
        (0x01 | 0x81 | 0x03, 0x0002) => "Notice",
        (0x03 | 0x06, 0x0003) => "InformInfo",
        (0x01 | 0x81, 0x0010) => "NodeDescription",
        (0x01 | 0x81, 0x0011) => "NodeInfo",
        (0x01 | 0x81, 0x0012) => "SwitchInfo",
        (0x01 | 0x81, 0x0014) => "GUIDInfo",
        (0x01 | 0x81, 0x0015) => "PortInfo",
        (0x01 | 0x81, 0x0016) => "P_KeyTable",
        (0x01 | 0x81, 0x0017) => "SLtoVLMappingTable",
        (0x01 | 0x81, 0x0018) => "VLArbitrationTable",
        (0x01 | 0x81, 0x0019) => "LinearForwardingTable",
        (0x01 | 0x81, 0x001a) => "RandomForwardingTable",
        (0x01 | 0x81, 0x001b) => "MulticastForwardingTable",
        (0x01 | 0x81, 0x001c) => "LinkSpeedWidthPairsTable",
        (0x01 | 0x81, 0x0020) => "SMInfo",
        (0x01 | 0x81, 0x0030) => "VendorDiag",
        (0x01 | 0x81, 0x0031) => "LedInfo",
        (0x03, 0x0011) => "NodeRecord",
        (0x03, 0x0012) => "PortInfoRecord",
        (0x03, 0x0013) => "SLtoVLMappingTableRecord",
        (0x03, 0x0014) => "SwitchInfoRecord",
        (0x03, 0x0015) => "LinearForwardingTableRecord",
        (0x03, 0x0016) => "RandomForwardingTableRecord",
        (0x03, 0x0017) => "MulticastForwardingTableRecord",
        (0x03, 0x0018) => "SMInfoRecord",
        (0x03, 0x0019) => "LinkSpeedWidthPairsTableRecord",
        (0x03, 0x00f3) => "InformInfoRecord",
        (0x03, 0x0020) => "LinkRecord",
        (0x03, 0x0030) => "GuidInfoRecord",
        (0x03, 0x0031) => "ServiceRecord",
        (0x03, 0x0033) => "P_KeyTableRecord",
        (0x03, 0x0035) => "PathRecord",
        (0x03, 0x0036) => "VLArbitrationTableRecord",
        (0x03, 0x0038) => "MCMemberRecord",
        (0x03, 0x0039) => "TraceRecord",
        (0x03, 0x003a) => "MultiPathRecord",
        (0x03, 0x003b) => "ServiceAssociationRecord",
        (0x04, 0x0010) => "PortSamplesControl",
        (0x04, 0x0011) => "PortSamplesResult",
        (0x04, 0x0012) => "PortCounters",
        (0x04, 0x0015) => "PortRcvErrorDetails",
        (0x04, 0x0016) => "PortXmitDiscardDetails",
        (0x04, 0x0017) => "PortOpRcvCounters",
        (0x04, 0x0018) => "PortFlowCtlCounters",
        (0x04, 0x0019) => "PortVLOpPackets",
        (0x04, 0x001a) => "PortVLOpData",
        (0x04, 0x001b) => "PortVLXmitFlowCtlUpdateErrors",
        (0x04, 0x001c) => "PortVLXmitWaitCounters",
        (0x04, 0x001d) => "PortCountersExtended",
        (0x04, 0x001e) => "PortSamplesResultExtended",
        (0x21, 0x0011) => "CongestionInfo",
        (0x21, 0x0012) => "CongestionKeyInfo",
        (0x21, 0x0013) => "CongestionLog",
        (0x21, 0x0014) => "SwitchCongestionSetting",
        (0x21, 0x0015) => "SwitchPortCongestionSetting",
        (0x21, 0x0016) => "CACongestionSetting",
        (0x21, 0x0017) => "CongestionControlTable",
        (0x21, 0x0018) => "TimeStamp",
        _ => return None,
    })
}

/// Status of a datagram in words (IBTA 13.4.7): bits 2 to 4 say what was wrong with the request.
pub const fn status_words(status: u16) -> &'static str {
    match status >> 2 & 7 {
        _ if status << 1 == 0 => "success",
        _ if status & 1 != 0 => "busy",
        _ if status & 2 != 0 => "redirection required",
        1 => "unsupported base or class version",
        2 => "unsupported method",
        3 => "unsupported method and attribute combination",
        7 => "invalid value in attribute or modifier",
        _ => "class specific status",
    }
}

/// Bytes of a code of path MTU (IBTA: 1 is 256 … 5 is 4096).
pub const fn mtu_bytes(code: u8) -> Option<u32> {
    match code {
        1 => Some(256),
        2 => Some(512),
        3 => Some(1024),
        4 => Some(2048),
        5 => Some(4096),
        _ => None,
    }
}

/// Nanoseconds of a time-out code, 4.096 µs · 2^n, n from 0 to 31.
pub const fn timeout_ns(code: u8) -> u64 {
    4096u64.wrapping_shl((code & 31) as u32)
}

/// Megabits per second of a static rate code (kernel `enum ib_rate`).
pub const fn rate_mbps(code: u8) -> Option<u32> {
    Some(match code {
        2 => 2_500,
        3 => 10_000,
        4 => 30_000,
        5 => 5_000,
        6 => 20_000,
        7 => 40_000,
        8 => 60_000,
        9 => 80_000,
        10 => 120_000,
        11 => 14_000,
        12 => 56_000,
        13 => 112_000,
        14 => 168_000,
        15 => 25_000,
        16 => 100_000,
        17 => 200_000,
        18 => 300_000,
        19 => 28_000,
        20 => 50_000,
        21 => 400_000,
        22 => 600_000,
        23 => 800_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{BthFields, Deth, Qpn};

    fn datagram(to: u32, q_key: u32, len: usize) -> Vec<u8> {
        let mut b = BthFields::new(0x64, to, 1).emit().to_vec();
        b.extend(Deth::emit(q_key, Qpn::GSI));
        let mut mad = vec![0; len];
        if let Some(v) = mad.first_mut() {
            *v = 1;
        }
        b.extend(mad);
        b.extend([0; 4]);
        b
    }

    fn is_mad(b: &[u8]) -> bool {
        Mad::in_packet(&Packet::parse(b, b.len()).unwrap()).is_some()
    }

    #[test]
    fn the_destination_decides() {
        assert!(is_mad(&datagram(1, GSI_Q_KEY, 256)));
        assert!(is_mad(&datagram(0, 0, 256)));
        assert!(is_mad(&datagram(1, 0x11, 256)));
        // redirected
        assert!(is_mad(&datagram(0x55, GSI_Q_KEY, 256)));
        // the source QP is 1 in all of them, which proves nothing
        assert!(!is_mad(&datagram(0x55, 0x11, 256)));
        assert!(!is_mad(&datagram(0x55, GSI_Q_KEY, 128)));
        assert!(!is_mad(&datagram(1, 0x11, 64)));
        assert!(!is_mad(&datagram(1, GSI_Q_KEY, 23)));
        // a reliable connection to QP 1 is no datagram
        let mut rc = datagram(1, GSI_Q_KEY, 256);
        rc[0] = 0x04;
        assert!(!is_mad(&rc));
    }

    #[test]
    fn header() {
        let mut b = [0u8; 256];
        b[..24].copy_from_slice(&[
            1, 7, 2, 3, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 2, 0x8a, 0xc7, 0xb8, 0x27, 0, 0x17, 0, 0, 0, 0, 0, 9,
        ]);
        let m = Mad::split(&b).unwrap();
        assert_eq!((m.base_version(), m.class(), m.class_version(), m.method().name()), (1, Class::COM_MGT, 2, "Send"));
        assert_eq!((m.status(), m.class_specific()), (0x1234, 0x5678));
        assert_eq!((m.transaction_id(), m.attribute_id(), m.attribute_modifier()), (0x2_8ac7_b827, 0x17, 9));
        assert_eq!((m.attribute_name(), m.data.len()), (Some("SIDR_REQ"), 232));
        assert!(Mad::split(&b[..23]).is_none());
    }

    #[test]
    fn codes() {
        assert_eq!(timeout_ns(0), 4_096);
        assert_eq!(timeout_ns(20), 4_294_967_296);
        assert_eq!(timeout_ns(31), 8_796_093_022_208);
        assert_eq!((mtu_bytes(3), mtu_bytes(0), mtu_bytes(6)), (Some(1024), None, None));
        assert_eq!((rate_mbps(2), rate_mbps(21), rate_mbps(0x3f)), (Some(2_500), Some(400_000), None));
        assert_eq!(
            (status_words(0), status_words(0x8000), status_words(0x0c)),
            ("success", "success", "unsupported method and attribute combination")
        );
    }
}
