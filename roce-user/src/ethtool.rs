//! Two questions that ethtool asks of a driver: its name and its offloads.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

// linux/ethtool.h
const ETHTOOL_GDRVINFO: u32 = 3;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;
const ETH_FLAG_LRO: u32 = 1 << 15;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// `struct ethtool_drvinfo`: the command and texts of fixed length.
const DRVINFO_LEN: usize = 196;

/// What the driver does before a program sees a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// VLAN tags are taken out of the packet.
    pub rx_vlan: bool,
    /// Several packets arrive as one.
    pub lro: bool,
}

/// The driver's name, as `ethtool -i` shows it.
pub fn driver(interface: &str) -> io::Result<String> {
    let mut info = [0u8; DRVINFO_LEN];
    if let Some(command) = info.first_chunk_mut() {
        *command = ETHTOOL_GDRVINFO.to_ne_bytes();
    }
    ask(interface, &mut info)?;
    let name = info.get(4..36).unwrap_or(&[]);
    let name = name.split(|b| *b == 0).next().unwrap_or(&[]);
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Offloads in force.
pub fn offloads(interface: &str) -> io::Result<Offloads> {
    let mut value = [0u8; 8];
    if let Some(command) = value.first_chunk_mut() {
        *command = ETHTOOL_GFLAGS.to_ne_bytes();
    }
    ask(interface, &mut value)?;
    let flags = value.last_chunk().map_or(0, |b| u32::from_ne_bytes(*b));
    Ok(Offloads { rx_vlan: flags & ETH_FLAG_RXVLAN != 0, lro: flags & ETH_FLAG_LRO != 0 })
}

/// `data` starts with the command and is as long as the kernel's structure for it.
fn ask(interface: &str, data: &mut [u8]) -> io::Result<()> {
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // SAFETY: no pointers; the descriptor is new and nobody else's.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: all bytes zero is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    // SAFETY: the request and the buffer that it points to live through the call, and the kernel writes no
    // more into the buffer than the structure of its command, which the callers allocated.
    let r = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        assert!(driver("no-such-if0").is_err());
        assert!(offloads("a-name-longer-than-the-kernel-takes").is_err());
    }
}
