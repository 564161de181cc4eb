//! Constants of Ethernet, IP and UDP for the walk down to BTH, shared by the kernel program and the fast
//! path of `frame`.

/// Ethernet header without tags, bytes.
pub const ETH_LEN: usize = 14;
/// One VLAN tag.
pub const VLAN_LEN: usize = 4;
/// VLAN tags that the kernel program and the fast path walk through.
pub const MAX_VLAN_TAGS: usize = 2;
/// IPv4 header without options.
pub const IPV4_LEN: usize = 20;
/// IPv6 header.
pub const IPV6_LEN: usize = 40;
/// UDP header.
pub const UDP_LEN: usize = 8;
/// IPv6 extension headers that the kernel program and the fast path walk through.
pub const MAX_IPV6_EXTENSIONS: usize = 4;

/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of a customer VLAN tag (802.1Q).
pub const ETHERTYPE_VLAN: u16 = 0x8100;
/// EtherType of a service VLAN tag (802.1ad).
pub const ETHERTYPE_QINQ: u16 = 0x88a8;
/// EtherType of stacked tags on older switches.
pub const ETHERTYPE_QINQ_OLD: u16 = 0x9100;

/// Whether an EtherType is that of a VLAN tag.
pub const fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ | ETHERTYPE_QINQ_OLD)
}

/// IP protocol number of UDP.
pub const IPPROTO_UDP: u8 = 17;
/// IPv6 hop-by-hop options.
pub const IPPROTO_HOPOPTS: u8 = 0;
/// IPv6 routing header.
pub const IPPROTO_ROUTING: u8 = 43;
/// IPv6 fragment header.
pub const IPPROTO_FRAGMENT: u8 = 44;
/// IPv6 destination options.
pub const IPPROTO_DSTOPTS: u8 = 60;

/// IPv4 flags and offset: more fragments, or an offset.
pub const IPV4_FRAGMENT_MASK: u16 = 0x3fff;
/// IPv4: the offset alone.
pub const IPV4_OFFSET_MASK: u16 = 0x1fff;

/// ECN of a TOS or traffic class byte (RFC 3168).
pub const fn ecn(tos: u8) -> u8 {
    tos & 3
}
/// DSCP of a TOS or traffic class byte (RFC 2474).
pub const fn dscp(tos: u8) -> u8 {
    tos >> 2
}
/// ECN: the sender does not take part.
pub const ECN_NOT_ECT: u8 = 0;
/// ECN: ECT(1).
pub const ECN_ECT1: u8 = 1;
/// ECN: ECT(0).
pub const ECN_ECT0: u8 = 2;
/// ECN: congestion experienced.
pub const ECN_CE: u8 = 3;
