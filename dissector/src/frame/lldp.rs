//! LLDP (IEEE 802.1AB) and what DCBX says in it about priorities: IEEE 802.1Qaz, and the older CEE form.

use std::fmt;

use super::aside::{Mac, clean};

/// An LLDP frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lldp {
    /// Chassis, in words.
    pub chassis: Option<String>,
    /// Port, in words.
    pub port: Option<String>,
    /// Seconds that this stays valid.
    pub ttl: Option<u16>,
    /// Name of the system.
    pub system: Option<String>,
    /// Priority flow control.
    pub pfc: Option<PfcConfig>,
    /// Bandwidth classes.
    pub ets: Option<Ets>,
    /// Which traffic gets which priority.
    pub applications: Vec<Application>,
    /// The older CEE form of DCBX was used.
    pub cee: bool,
    /// The frame ends before its end marker.
    pub cut: bool,
}

/// PFC as a port is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcConfig {
    /// Takes the peer's configuration.
    pub willing: bool,
    /// How many priorities may have it.
    pub capability: u8,
    /// Bit n: priority n is lossless.
    pub enabled: u8,
}

/// Enhanced transmission selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ets {
    /// Takes the peer's configuration.
    pub willing: bool,
    /// Traffic class of each priority.
    pub class: [u8; 8],
    /// Per cent of bandwidth of each class.
    pub percent: [u8; 8],
    /// How a class is served: 0 strict, 1 credit based shaper, 2 by bandwidth.
    pub algorithm: [u8; 8],
}

/// One row of the application priority table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application {
    /// 1 EtherType, 2 TCP or SCTP port, 3 UDP port, 4 any port, 5 DSCP.
    pub selector: u8,
    /// EtherType, port or DSCP.
    pub value: u16,
    /// Priority.
    pub priority: u8,
}

/// More rows than a real table has are not kept (64 DSCPs and some).
const MAX_APPLICATIONS: usize = 128;

/// From what follows the EtherType.
pub fn parse(mut bytes: &[u8]) -> Lldp {
    let mut l = Lldp::default();
    loop {
        let Some((head, rest)) = bytes.split_first_chunk::<2>() else {
            l.cut = true;
            return l;
        };
        let head = u16::from_be_bytes(*head);
        let (kind, len) = (head >> 9, usize::from(head & 0x1ff));
        let Some((v, rest)) = rest.split_at_checked(len) else {
            l.cut = true;
            return l;
        };
        bytes = rest;
        match kind {
            0 => return l,
            1 => l.chassis = id(v, 4, 5),
            2 => l.port = id(v, 3, 4),
            3 => l.ttl = v.first_chunk().map(|b| u16::from_be_bytes(*b)),
            5 => l.system = Some(clean(v)),
            127 => match v {
                [0x00, 0x80, 0xc2, 0x09, b @ ..] => l.ets = ets(b),
                [0x00, 0x80, 0xc2, 0x0b, a, enabled, ..] => {
                    l.pfc = Some(PfcConfig { willing: a & 0x80 != 0, capability: a & 15, enabled: *enabled });
                }
                [0x00, 0x80, 0xc2, 0x0c, _, rows @ ..] => {
                    for [a, v0, v1] in rows.as_chunks::<3>().0 {
                        l.application(Application {
                            selector: a & 7,
                            value: u16::from_be_bytes([*v0, *v1]),
                            priority: a >> 5,
                        });
                    }
                }
                [0x00, 0x1b, 0x21, 0x02, b @ ..] => l.cee(b),
                _ => {}
            },
            _ => {}
        }
    }
}

/// A chassis or port id by its subtype; `mac` and `address` are the subtypes of those.
fn id(v: &[u8], mac: u8, address: u8) -> Option<String> {
    let (subtype, v) = v.split_first()?;
    Some(match (*subtype, v) {
        (s, [a, b, c, d, e, f]) if s == mac => Mac([*a, *b, *c, *d, *e, *f]).to_string(),
        (s, [1, a, b, c, d]) if s == address => std::net::Ipv4Addr::new(*a, *b, *c, *d).to_string(),
        (s, [2, rest @ ..]) if s == address && rest.len() == 16 => {
            std::net::Ipv6Addr::from(<[u8; 16]>::try_from(rest).unwrap_or_default()).to_string()
        }
        _ => clean(v),
    })
}

fn nibbles(b: [u8; 4]) -> [u8; 8] {
    let [a, b, c, d] = b;
    [a >> 4, a & 15, b >> 4, b & 15, c >> 4, c & 15, d >> 4, d & 15]
}

fn ets(b: &[u8]) -> Option<Ets> {
    let (flags, rest) = b.split_first()?;
    let (classes, rest) = rest.split_first_chunk::<4>()?;
    let (percent, rest) = rest.split_first_chunk::<8>()?;
    Some(Ets {
        willing: flags & 0x80 != 0,
        class: nibbles(*classes),
        percent: *percent,
        algorithm: rest.first_chunk().copied()?,
    })
}

impl Lldp {
    fn application(&mut self, a: Application) {
        if self.applications.len() < MAX_APPLICATIONS {
            self.applications.push(a);
        }
    }

    /// Feature TLVs of the CEE form, each with four bytes of versions, flags and subtype in front.
    fn cee(&mut self, mut bytes: &[u8]) {
        self.cee = true;
        while let Some((head, rest)) = bytes.split_first_chunk::<2>() {
            let head = u16::from_be_bytes(*head);
            let Some((v, rest)) = rest.split_at_checked(usize::from(head & 0x1ff)) else {
                self.cut = true;
                return;
            };
            bytes = rest;
            let willing = v.get(2).is_some_and(|f| f & 0x40 != 0);
            match (head >> 9, v.get(4..)) {
                (2, Some(b)) => {
                    if let Some((groups, rest)) = b.split_first_chunk::<4>()
                        && let Some(percent) = rest.first_chunk::<8>()
                    {
                        // a group of 15 is strict priority
                        let class = nibbles(*groups);
                        self.ets = Some(Ets { willing, class, percent: *percent, algorithm: [2; 8] });
                    }
                }
                (3, Some([enabled, capability, ..])) => {
                    self.pfc = Some(PfcConfig { willing, capability: *capability, enabled: *enabled });
                }
                (4, Some(rows)) => {
                    for [v0, v1, selector, _, _, map] in rows.as_chunks::<6>().0 {
                        let value = u16::from_be_bytes([*v0, *v1]);
                        // 0 EtherType, 1 TCP or UDP port
                        let selector = if selector.is_multiple_of(4) { 1 } else { 4 };
                        for priority in (0..8).filter(|p| map >> p & 1 == 1) {
                            self.application(Application { selector, value, priority });
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.selector {
            1 => write!(f, "EtherType {:#06x}", self.value)?,
            2 => write!(f, "TCP port {}", self.value)?,
            3 => write!(f, "UDP port {}", self.value)?,
            4 => write!(f, "port {}", self.value)?,
            5 => write!(f, "DSCP {}", self.value)?,
            s => write!(f, "selector {s} value {}", self.value)?,
        }
        write!(f, ": priority {}", self.priority)
    }
}

impl fmt::Display for Lldp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LLDP of {}", self.system.as_deref().or(self.chassis.as_deref()).unwrap_or("an unnamed system"))?;
        if let Some(p) = &self.port {
            write!(f, ", port {p}")?;
        }
        if self.cee {
            f.write_str(", DCBX in its CEE form")?;
        }
        if let Some(p) = &self.pfc {
            f.write_str(", PFC on ")?;
            list(f, (0..8).filter(|n| p.enabled >> n & 1 == 1))?;
            if p.willing {
                f.write_str(" (willing)")?;
            }
        }
        if let Some(e) = &self.ets {
            f.write_str(", ETS")?;
            for (class, percent) in e.percent.iter().enumerate() {
                if e.class.iter().any(|c| usize::from(*c) == class) {
                    let strict = e.algorithm.get(class) == Some(&0);
                    if strict {
                        write!(f, " class {class} strict")?;
                    } else {
                        write!(f, " class {class} {percent} %")?;
                    }
                }
            }
            if e.willing {
                f.write_str(" (willing)")?;
            }
        }
        for a in &self.applications {
            write!(f, ", {a}")?;
        }
        if self.cut {
            f.write_str(" [cut]")?;
        }
        Ok(())
    }
}

fn list(f: &mut fmt::Formatter<'_>, all: impl Iterator<Item = u8>) -> fmt::Result {
    let mut any = false;
    for n in all {
        write!(f, "{}{n}", if any { "," } else { "priority " })?;
        any = true;
    }
    if any { Ok(()) } else { f.write_str("no priority") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u16, v: &[u8]) -> Vec<u8> {
        let head = kind << 9 | u16::try_from(v.len()).unwrap();
        [&head.to_be_bytes()[..], v].concat()
    }

    #[test]
    fn dcbx() {
        let mut b = tlv(1, &[4, 2, 0, 0, 0, 0, 9]);
        b.extend(tlv(2, b"\x05swp1\x1b[31m"));
        b.extend(tlv(3, &[0, 120]));
        b.extend(tlv(127, &[0, 0x80, 0xc2, 0x0b, 0x88, 0x08]));
        b.extend(tlv(127, &[0, 0x80, 0xc2, 9, 0, 0, 0x01, 0, 0, 50, 50, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0]));
        b.extend(tlv(127, &[0, 0x80, 0xc2, 0x0c, 0, 0x63, 0x12, 0xb7, 0x65, 0, 26]));
        b.extend([0, 0]);
        let l = parse(&b);
        assert_eq!(
            l.to_string(),
            "LLDP of 02:00:00:00:00:09, port swp1\\u{1b}[31m, PFC on priority 3 (willing), \
             ETS class 0 50 % class 1 50 %, UDP port 4791: priority 3, DSCP 26: priority 3"
        );
        for n in 0..b.len() {
            assert!(parse(&b[..n]).cut);
        }
    }

    #[test]
    fn cee() {
        let mut features = tlv(3, &[0, 0, 0xc0, 0, 0x08, 8]);
        features.extend(tlv(4, &[0, 0, 0xc0, 0, 0x89, 0x15, 0, 0, 0, 0x08]));
        let mut b = tlv(127, &[&[0, 0x1b, 0x21, 2][..], &features].concat());
        b.extend([0, 0]);
        assert_eq!(
            parse(&b).to_string(),
            "LLDP of an unnamed system, DCBX in its CEE form, PFC on priority 3 (willing), EtherType 0x8915: priority 3"
        );
    }
}
