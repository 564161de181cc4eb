//! Whether an interface carries the login of whoever types: a fault there may be the last thing they see.

use std::fs;
use std::net::IpAddr;

/// Addresses at which the operator's remote login arrives, by what sshd leaves in the environment of this
/// process or of those that started it (sudo cleans its own).
pub fn addresses() -> Vec<IpAddr> {
    let mut out: Vec<IpAddr> = std::env::var("SSH_CONNECTION").ok().as_deref().and_then(server).into_iter().collect();
    let mut pid = std::process::id();
    // a chain of processes is never this long; a ring would be a lie of /proc
    for _ in 0..64 {
        let Some(parent) = parent(pid) else { break };
        if parent <= 1 {
            break;
        }
        pid = parent;
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        let value = environ.split(|b| *b == 0).find_map(|v| v.strip_prefix(b"SSH_CONNECTION="));
        if let Some(a) = value.and_then(|v| std::str::from_utf8(v).ok()).and_then(server)
            && !out.contains(&a)
        {
            out.push(a);
        }
    }
    out
}

/// The third word of `SSH_CONNECTION`: client, its port, server, its port.
fn server(value: &str) -> Option<IpAddr> {
    let word = value.split_whitespace().nth(2)?;
    let word = word.split('%').next()?;
    let address: IpAddr = word.parse().ok()?;
    Some(address.to_canonical())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name in parentheses may hold anything
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Whether an interface has one of these addresses.
pub fn is_on(interface: &str, addresses: &[IpAddr]) -> Option<IpAddr> {
    let all = nix::ifaddrs::getifaddrs().ok()?;
    all.filter(|a| a.interface_name == interface)
        .filter_map(|a| {
            let storage = a.address?;
            let v4 = storage.as_sockaddr_in().map(|s| IpAddr::V4(s.ip()));
            v4.or_else(|| storage.as_sockaddr_in6().map(|s| IpAddr::V6(s.ip()).to_canonical()))
        })
        .find(|a| addresses.contains(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_sshd() {
        assert_eq!(server("10.0.0.9 50222 10.0.0.1 22"), Some("10.0.0.1".parse().unwrap()));
        assert_eq!(server("fe80::9%eth0 50222 fe80::1%eth0 22"), Some("fe80::1".parse().unwrap()));
        assert_eq!(server("::ffff:10.0.0.9 1 ::ffff:10.0.0.1 22"), Some("10.0.0.1".parse().unwrap()));
        assert_eq!(server("nonsense"), None);
        assert_eq!(server(""), None);
    }

    #[test]
    fn the_loopback_is_on_the_loopback() {
        let localhost: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(is_on("lo", &[localhost]), Some(localhost));
        assert_eq!(is_on("lo", &["192.0.2.1".parse().unwrap()]), None);
        assert!(parent(std::process::id()).is_some());
    }
}
