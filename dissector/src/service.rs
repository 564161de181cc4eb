//! Which protocol runs on a connection: by the port or service id that was called, or by the user's word.
//! Never by the bytes of the payload.

use std::fmt;

use crate::wire::cm::ServiceId;

/// A protocol on top of queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// NVMe over Fabrics.
    Nvme,
    /// RPC over RDMA (NFS).
    RpcRdma,
    /// iSCSI Extensions for RDMA.
    Iser,
    /// SMB Direct.
    SmbDirect,
    /// Reliable Datagram Sockets.
    Rds,
    /// Said by the user to be plain data.
    Data,
}

impl Service {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 6] = [Self::Nvme, Self::RpcRdma, Self::Iser, Self::SmbDirect, Self::Rds, Self::Data];

    /// Word of the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nvme => "nvme",
            Self::RpcRdma => "rpcrdma",
            Self::Iser => "iser",
            Self::SmbDirect => "smbdirect",
            Self::Rds => "rds",
            Self::Data => "data",
        }
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvme => "NVMe-oF",
            Self::RpcRdma => "RPC-over-RDMA",
            Self::Iser => "iSER",
            Self::SmbDirect => "SMB Direct",
            Self::Rds => "RDS",
            Self::Data => "data",
        }
    }

    /// Ports on which it usually listens (IANA: nvme, nfsrdma, iscsi-target, smbdirect; RDS: the kernel's
    /// `RDS_CM_PORT` 16385, and 18634 of its older versions).
    pub const fn ports(self) -> &'static [u16] {
        match self {
            Self::Nvme => &[4420],
            Self::RpcRdma => &[20049],
            Self::Iser => &[3260],
            Self::SmbDirect => &[5445],
            Self::Rds => &[16385, 18634],
            Self::Data => &[],
        }
    }

    /// By a word of the command line; other words people use for the same are taken too.
    pub fn of_word(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "nvme" | "nvmeof" | "nvme-of" | "nvme-rdma" => Self::Nvme,
            "rpcrdma" | "rpcordma" | "rpc" | "nfs" | "nfsrdma" => Self::RpcRdma,
            "iser" | "iscsi" => Self::Iser,
            "smbdirect" | "smb_direct" | "smbd" | "smb" => Self::SmbDirect,
            "rds" => Self::Rds,
            "data" | "none" => Self::Data,
            _ => return None,
        })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One `--decode-as` of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Port(u16),
    Qp(u32),
    ServiceId(u64),
}

/// What the user said about services, on top of the usual ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodeAs {
    rules: Vec<(Rule, Service)>,
}

impl DecodeAs {
    /// Adds `port:20049=rpcrdma`, `qp:0x11=nvme` or `service:0x…=iser`; the error is a sentence for the user.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let form = || {
            format!(
                "--decode-as {text:?}: want port:NUMBER=PROTOCOL, qp:NUMBER=PROTOCOL or service:NUMBER=PROTOCOL, such as qp:0x11=nvme"
            )
        };
        let (what, service) = text.split_once('=').ok_or_else(form)?;
        let (kind, number) = what.split_once(':').ok_or_else(form)?;
        let service = Service::of_word(service.trim()).ok_or_else(|| {
            let known: Vec<_> = Service::ALL.iter().map(|s| s.word()).collect();
            format!("--decode-as {text:?}: no protocol is called {:?}; there are {}", service.trim(), known.join(", "))
        })?;
        let number = number.trim();
        let value = match number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => number.parse(),
        }
        .map_err(|_| format!("--decode-as {text:?}: {number:?} is no number"))?;
        let rule = match kind.trim() {
            "port" => {
                Rule::Port(u16::try_from(value).map_err(|_| format!("--decode-as {text:?}: a port is at most 65535"))?)
            }
            "qp" => match u32::try_from(value) {
                Ok(qp) if qp <= 0xff_ffff => Rule::Qp(qp),
                _ => return Err(format!("--decode-as {text:?}: a QP number has 24 bits, at most 0xffffff")),
            },
            "service" => Rule::ServiceId(value),
            _ => return Err(form()),
        };
        self.rules.push((rule, service));
        Ok(())
    }

    /// Whether the user said nothing.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn find(&self, wanted: Rule) -> Option<Service> {
        // the last word counts
        self.rules.iter().rev().find(|(r, _)| *r == wanted).map(|(_, s)| *s)
    }

    /// What the user said about this destination QP.
    pub fn of_qp(&self, qpn: u32) -> Option<Service> {
        self.find(Rule::Qp(qpn))
    }

    /// What is called by this service id: the user's word, else the usual port of the TCP port space.
    pub fn of_service_id(&self, id: ServiceId) -> Option<Service> {
        if let Some(s) = self.find(Rule::ServiceId(id.0)) {
            return Some(s);
        }
        let (_, port) = id.protocol_and_port()?;
        self.find(Rule::Port(port)).or_else(|| Service::ALL.into_iter().find(|s| s.ports().contains(&port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_word_comes_before_the_usual_port() {
        let mut d = DecodeAs::default();
        assert_eq!(d.of_service_id(ServiceId::ip(6, 20049)), Some(Service::RpcRdma));
        assert_eq!(d.of_service_id(ServiceId::ip(6, 4421)), None);
        assert_eq!(d.of_service_id(ServiceId(20049)), None);
        d.add("port:4421=nvme").unwrap();
        d.add("port:20049=data").unwrap();
        d.add("qp:0x11 = iser").unwrap();
        d.add("qp:17=rds").unwrap();
        assert_eq!(d.of_service_id(ServiceId::ip(6, 4421)), Some(Service::Nvme));
        assert_eq!(d.of_service_id(ServiceId::ip(6, 20049)), Some(Service::Data));
        assert_eq!((d.of_qp(0x11), d.of_qp(0x12)), (Some(Service::Rds), None));
    }

    #[test]
    fn errors_say_what_is_wanted() {
        let mut d = DecodeAs::default();
        for (text, says) in [
            ("nvme", "want port:"),
            ("qp=nvme", "want port:"),
            ("mac:1=nvme", "want port:"),
            ("qp:1=ftp", "there are nvme, rpcrdma"),
            ("qp:0x1000000=nvme", "24 bits"),
            ("port:70000=nvme", "65535"),
            ("port:x=nvme", "no number"),
        ] {
            let e = d.add(text).unwrap_err();
            assert!(e.contains(says), "{e}");
        }
        assert!(d.is_empty());
    }
}
