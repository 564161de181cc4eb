//! A packet socket: frames in and out of one interface, as they are.
#![expect(clippy::cast_possible_truncation, reason = "constants and sizes of the socket API in the types it wants")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// An `AF_PACKET` socket bound to one interface of the thread's network namespace.
#[derive(Debug)]
pub struct RawSocket {
    fd: OwnedFd,
}

/// `ETH_P_ALL` in network byte order, as the socket calls want it.
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

impl RawSocket {
    /// Opens one on an interface; it belongs to the namespace of the calling thread.
    pub fn open(interface: &str) -> io::Result<Self> {
        let index = nix::net::if_::if_nametoindex(interface).map_err(io::Error::from)?;
        // SAFETY: a plain system call with constants; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(ALL)) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut addr: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        addr.sll_family = libc::AF_PACKET as u16;
        addr.sll_protocol = ALL;
        addr.sll_ifindex = index.cast_signed();
        // SAFETY: the pointer and the length are those of one live sockaddr_ll.
        let r = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const addr).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
        };
        if r < 0 {
            return Err(io::Error::last_os_error());
        }
        let s = Self { fd };
        // room for bursts of the tests, so that what is missing was not lost here
        s.option(libc::SO_RCVBUFFORCE, &(64i32 << 20))?;
        Ok(s)
    }

    fn option<T>(&self, name: i32, value: &T) -> io::Result<()> {
        // SAFETY: pointer and length are those of one live value.
        let r = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                name,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends one frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        loop {
            // SAFETY: pointer and length are those of a live slice.
            let r = unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
            if r >= 0 {
                return Ok(());
            }
            let e = io::Error::last_os_error();
            match e.raw_os_error() {
                // the device queue is full: it drains by itself
                Some(libc::ENOBUFS | libc::EINTR) => std::thread::yield_now(),
                _ => return Err(e),
            }
        }
    }

    /// Waits for the next frame that arrives or leaves at the interface; `None` after `timeout` of silence.
    /// The flag is true for frames that this host sends.
    pub fn receive(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<(usize, bool)>> {
        let mut p = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        let r = unsafe { libc::poll(&raw mut p, 1, i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX)) };
        if r < 0 {
            return Err(io::Error::last_os_error());
        }
        if r == 0 {
            return Ok(None);
        }
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the buffer and the address are live and their lengths are passed.
        let n = unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
                (&raw mut from).cast(),
                &raw mut len,
            )
        };
        match usize::try_from(n) {
            Ok(n) => Ok(Some((n, from.sll_pkttype == libc::PACKET_OUTGOING))),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}
