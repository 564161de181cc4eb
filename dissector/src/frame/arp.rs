//! ARP for IPv4 over Ethernet (RFC 826).

use std::fmt;
use std::net::Ipv4Addr;

use etherparse::ArpPacketSlice;

use super::aside::Mac;

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// 1 request, 2 reply.
    pub operation: u16,
    /// Sender's MAC address.
    pub sender_mac: [u8; 6],
    /// Sender's address.
    pub sender: Ipv4Addr,
    /// Target's MAC address.
    pub target_mac: [u8; 6],
    /// Target's address.
    pub target: Ipv4Addr,
}

/// From what follows the EtherType; `None` if it is cut or not about IPv4 and MAC addresses.
pub fn parse(bytes: &[u8]) -> Option<Arp> {
    let a = ArpPacketSlice::from_slice(bytes).ok()?;
    Some(Arp {
        operation: a.operation().0,
        sender_mac: a.sender_hw_addr().try_into().ok()?,
        sender: <[u8; 4]>::try_from(a.sender_protocol_addr()).ok()?.into(),
        target_mac: a.target_hw_addr().try_into().ok()?,
        target: <[u8; 4]>::try_from(a.target_protocol_addr()).ok()?.into(),
    })
}

impl fmt::Display for Arp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            1 if self.sender == self.target => {
                write!(f, "{} is at {} (announcement)", self.sender, Mac(self.sender_mac))
            }
            1 => write!(f, "Who has {}? Tell {}", self.target, self.sender),
            2 => write!(f, "{} is at {}", self.sender, Mac(self.sender_mac)),
            o => write!(f, "ARP operation {o}, {} to {}", self.sender, self.target),
        }
    }
}
