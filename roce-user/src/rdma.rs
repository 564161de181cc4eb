//! RDMA devices of this machine and the interface that each stands on, out of `/sys/class/infiniband`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// An RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name.
    pub name: String,
    /// What moves its packets.
    pub kind: Kind,
    /// Interfaces that its addresses belong to.
    pub interfaces: BTreeSet<String>,
}

/// What moves the packets of an RDMA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Soft-RoCE: the kernel does, in view of XDP and TC.
    Rxe,
    /// Soft-iWARP: TCP, no RoCE.
    Siw,
    /// A card, with this driver: past the kernel.
    Hardware(String),
    /// InfiniBand link layer: no Ethernet at all.
    InfiniBand(String),
}

/// All devices; none if there is no RDMA subsystem.
pub fn devices() -> Vec<Device> {
    devices_in(Path::new("/sys/class/infiniband"))
}

fn devices_in(class: &Path) -> Vec<Device> {
    let mut out: Vec<Device> = names(class).into_iter().map(|name| device(class, name)).collect();
    out.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

fn device(class: &Path, name: String) -> Device {
    let path = class.join(&name);
    let mut interfaces = BTreeSet::new();
    let mut link_layer = String::new();
    // the interface that a software device was made on
    if let Some(parent) = read(&path.join("parent")) {
        interfaces.insert(parent);
    }
    interfaces.extend(names(&path.join("device/net")));
    for port in names(&path.join("ports")) {
        let port = path.join("ports").join(port);
        if let Some(l) = read(&port.join("link_layer")) {
            link_layer = l;
        }
        // one file a GID; those without an interface cannot be read
        let ndevs = port.join("gid_attrs/ndevs");
        interfaces.extend(names(&ndevs).into_iter().filter_map(|n| read(&ndevs.join(n))));
    }
    let driver = fs::read_link(path.join("device/driver"))
        .ok()
        .and_then(|p: PathBuf| p.file_name().map(|n| n.to_string_lossy().into_owned()));
    let kind = match driver {
        Some(driver) if link_layer == "InfiniBand" => Kind::InfiniBand(driver),
        Some(driver) => Kind::Hardware(driver),
        // node type 4 is iWARP (enum rdma_node_type)
        None if read(&path.join("node_type")).is_some_and(|t| t.starts_with('4')) => Kind::Siw,
        None => Kind::Rxe,
    };
    Device { name, kind, interfaces }
}

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir)
        .map(|d| d.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default()
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|s| s.trim().to_owned()).filter(|s| !s.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        put("rxe0/parent", "eth0\n");
        put("rxe0/node_type", "1: CA\n");
        put("rxe0/ports/1/link_layer", "Ethernet\n");
        put("rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n");
        put("siw0/node_type", "4: RNIC\n");
        put("mlx5_0/ports/1/link_layer", "Ethernet\n");
        put("mlx5_0/ports/1/gid_attrs/ndevs/0", "ens1\n");
        put("mlx5_0/ports/1/gid_attrs/ndevs/1", "ens1.100\n");
        put("mlx5_0/device/net/ens1/mtu", "1500\n");
        std::os::unix::fs::symlink("/drivers/mlx5_core", dir.path().join("mlx5_0/device/driver")).expect("a link");
        let all = devices_in(dir.path());
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].kind, Kind::Hardware("mlx5_core".to_owned()));
        assert_eq!(all[0].interfaces, ["ens1", "ens1.100"].map(str::to_owned).into());
        assert_eq!(all[1], Device { name: "rxe0".to_owned(), kind: Kind::Rxe, interfaces: ["eth0".to_owned()].into() });
        assert_eq!(all[2].kind, Kind::Siw);
        assert!(devices_in(&dir.path().join("nothing")).is_empty());
    }
}
