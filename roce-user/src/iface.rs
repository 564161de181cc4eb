//! Network interfaces of this namespace: index, MTU, state, and who holds the XDP hook, asked over rtnetlink.
//!
//! Read by hand and not by a netlink crate: three attributes are wanted, and a parser of all of them refuses the whole
//! message when a kernel newer than itself lengthens one that nobody here asked for.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use aya::programs::loaded_programs;
use roce_ebpf::abi::global;

use crate::error::Error;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Bytes that a packet may have above the link layer.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// With a carrier.
    pub running: bool,
    /// Takes packets that are not for it.
    pub promiscuous: bool,
    /// The XDP program there, if any.
    pub xdp: Option<Xdp>,
}

/// An XDP program on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xdp {
    /// Id of the program; 0 if the kernel does not say.
    pub id: u32,
    /// How it runs.
    pub mode: XdpMode,
}

/// How an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver.
    Driver,
    /// After the socket buffer is made (generic); slower.
    Skb,
    /// On the card.
    Hardware,
    /// Several at once.
    Multi,
}

impl XdpMode {
    /// As the command line names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Skb => "skb",
            Self::Hardware => "hardware",
            Self::Multi => "multi",
        }
    }
}

/// Whose XDP program is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpHolder {
    /// Id of the program.
    pub id: u32,
    /// Its name, if we may know it.
    pub name: Option<String>,
}

impl XdpHolder {
    /// Looks an id up. Names need `CAP_SYS_ADMIN`.
    pub fn of(id: u32) -> Self {
        let name = loaded_programs()
            .flatten()
            .find(|p| p.id() == id)
            .and_then(|p| p.name_as_str().map(str::to_owned))
            .filter(|n| !n.is_empty());
        Self { id, name }
    }

    /// Whether it is a running roce-fault, beside which we can see what it lets pass.
    pub fn is_fault(&self) -> bool {
        self.name.as_deref() == Some(roce_ebpf::abi::fault::XDP_INGRESS)
    }

    /// Whether it is a program of ours.
    pub fn ours(&self) -> bool {
        // the kernel keeps 15 bytes of a name
        self.name.as_deref().is_some_and(|n| n == global::XDP_INGRESS)
    }
}

impl fmt::Display for XdpHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(n) => write!(f, "id {}, \"{}\"", self.id, n.escape_debug()),
            None => write!(f, "id {}", self.id),
        }
    }
}

impl Interface {
    /// The interface of this name.
    pub fn named(name: &str) -> Result<Self, Error> {
        let all = all()?;
        match all.iter().position(|i| i.name == name) {
            Some(n) => all.into_iter().nth(n).ok_or_else(|| no_interface(name, &[])),
            None => Err(no_interface(name, &all)),
        }
    }
}

fn no_interface(name: &str, there: &[Interface]) -> Error {
    Error::NoInterface { name: name.escape_debug().to_string(), there: there.iter().map(|i| i.name.clone()).collect() }
}

/// All interfaces of this namespace.
pub fn all() -> Result<Vec<Interface>, Error> {
    dump().map_err(|e| Error::system("cannot list the network interfaces", e))
}

// rtnetlink numbers (linux/if_link.h, linux/rtnetlink.h) that libc does not have everywhere
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const NLA_TYPE_MASK: u16 = 0x3fff;
const NLMSG_HEADER: usize = 16;
const IFINFO: usize = 16;

fn dump() -> io::Result<Vec<Interface>> {
    let socket = open()?;
    let mut request = Vec::with_capacity(NLMSG_HEADER + IFINFO);
    let len = u32::try_from(NLMSG_HEADER + IFINFO).unwrap_or(0);
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_DUMP;
    request.extend(len.to_ne_bytes());
    request.extend(libc::RTM_GETLINK.to_ne_bytes());
    request.extend(u16::try_from(flags).unwrap_or(0).to_ne_bytes());
    request.extend(1u32.to_ne_bytes());
    request.extend([0; 4 + IFINFO]);
    // SAFETY: the buffer is alive and as long as said.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut out = Vec::new();
    let mut buffer = vec![0u8; 256 << 10];
    loop {
        // SAFETY: the buffer is alive and as long as said.
        let n = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let Ok(n) = usize::try_from(n) else { return Err(io::Error::last_os_error()) };
        if n == 0 || take(buffer.get(..n).unwrap_or(&[]), &mut out)? {
            return Ok(out);
        }
    }
}

fn open() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes the messages of one datagram; `true` at the end of the dump.
fn take(mut bytes: &[u8], out: &mut Vec<Interface>) -> io::Result<bool> {
    while let Some(len) = ne32(bytes, 0) {
        let len = len as usize;
        let Some(message) = bytes.get(..len).filter(|m| m.len() >= NLMSG_HEADER) else { break };
        match ne16(message, 4).map(i32::from) {
            Some(libc::NLMSG_DONE) => return Ok(true),
            Some(libc::NLMSG_ERROR) => {
                let code = ne32(message, NLMSG_HEADER).map_or(0, u32::cast_signed);
                return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
            }
            Some(t) if t == i32::from(libc::RTM_NEWLINK) => {
                out.extend(link(message.get(NLMSG_HEADER..).unwrap_or(&[])));
            }
            _ => {}
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

fn link(body: &[u8]) -> Option<Interface> {
    let index = ne32(body, 4)?;
    let flags = ne32(body, 8)?;
    let has = |bit: i32| flags & bit.cast_unsigned() != 0;
    let mut i = Interface {
        index,
        name: String::new(),
        mtu: 0,
        up: has(libc::IFF_UP),
        running: has(libc::IFF_RUNNING),
        promiscuous: has(libc::IFF_PROMISC),
        xdp: None,
    };
    for (kind, value) in attributes(body.get(IFINFO..)?) {
        match kind {
            libc::IFLA_IFNAME => {
                let name = value.split(|b| *b == 0).next().unwrap_or(&[]);
                i.name = String::from_utf8_lossy(name).into_owned();
            }
            libc::IFLA_MTU => i.mtu = ne32(value, 0).unwrap_or(0),
            IFLA_XDP => i.xdp = xdp(value),
            _ => {}
        }
    }
    Some(i)
}

fn xdp(value: &[u8]) -> Option<Xdp> {
    let mut mode = None;
    let mut id = 0;
    for (kind, value) in attributes(value) {
        match kind {
            IFLA_XDP_ATTACHED => {
                mode = match value.first() {
                    Some(1) => Some(XdpMode::Driver),
                    Some(2) => Some(XdpMode::Skb),
                    Some(3) => Some(XdpMode::Hardware),
                    Some(4) => Some(XdpMode::Multi),
                    _ => None,
                }
            }
            IFLA_XDP_PROG_ID => id = ne32(value, 0).unwrap_or(0),
            _ => {}
        }
    }
    mode.map(|mode| Xdp { id, mode })
}

fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(ne16(bytes, 0)?);
        let kind = ne16(bytes, 2)? & NLA_TYPE_MASK;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

fn ne16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn ne32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there() {
        let lo = Interface::named("lo").unwrap();
        assert!(lo.index > 0 && lo.mtu >= 1500, "{lo:?}");
    }

    #[test]
    fn a_name_that_does_not_exist() {
        let said = Interface::named("nope\x1b[2J").unwrap_err().to_string();
        assert!(said.contains("no interface nope") && said.contains("lo"), "{said}");
        assert!(!said.contains('\x1b'), "{said:?}");
    }

    #[test]
    fn cut_messages_end_quietly() {
        let mut out = Vec::new();
        for n in 0..40u8 {
            let mut b = vec![n; usize::from(n)];
            if let Some(head) = b.first_chunk_mut::<4>() {
                *head = 400u32.to_ne_bytes();
            }
            assert!(!take(&b, &mut out).unwrap());
        }
        assert!(out.is_empty());
        assert_eq!(attributes(&[3, 0, 1, 0, 9, 9]).count(), 0);
    }
}
