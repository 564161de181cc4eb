//! UDP.

use std::borrow::Cow;

use super::Tree;
use crate::frame::{Frame, Net, NetKind};
use crate::wire::bytes::be16;
use crate::wire::outer::UDP_LEN;

/// Group of these fields.
pub const GROUP: u16 = 4;

fn status_name(v: u64) -> Option<Cow<'static, str>> {
    match v {
        2 => Some("Unverified".into()),
        3 => Some("Not present".into()),
        4 => Some("Illegal".into()),
        _ => None,
    }
}

crate::fields! {
    group 4;
    UDP "udp" "User Datagram Protocol" None Dec {} "UDP header.";
    SRCPORT "udp.srcport" "Source Port" U16 Dec {} "Source port: path entropy of RoCEv2, one value a connection.";
    DSTPORT "udp.dstport" "Destination Port" U16 Dec {} "Destination port: 4791 is RoCEv2.";
    PORT "udp.port" "Source or Destination Port" U16 Dec { hidden: true } "Source or destination port.";
    LENGTH "udp.length" "Length" U16 Dec {} "Bytes of header and data.";
    CHECKSUM "udp.checksum" "Checksum" U16 Hex {} "Checksum; RoCEv2 senders leave it 0.";
    CHECKSUM_STATUS "udp.checksum.status" "Checksum Status" U8 Dec { names: Some(status_name) } "3 if there is none (4 over IPv6, which forbids that), else 2: not verified.";
    PAYLOAD "udp.payload" "Payload" Bytes Dec {} "Data of the datagram.";
}

/// Adds the fields of a header that starts at `o`.
pub fn build<'a>(frame: &Frame<'a>, o: usize, bytes: &'a [u8], tree: &mut Tree<'a>) {
    let Some(h) = bytes.first_chunk::<UDP_LEN>() else { return };
    let (src, dst, len, sum) = (be16::<0, 8>(h), be16::<2, 8>(h), be16::<4, 8>(h), be16::<6, 8>(h));
    tree.open_header(&UDP, o..o + UDP_LEN);
    tree.label(&UDP, || format!("User Datagram Protocol, Src Port: {src}, Dst Port: {dst}"));
    tree.add(&SRCPORT, o..o + 2, src);
    tree.add(&DSTPORT, o + 2..o + 4, dst);
    tree.add(&PORT, o..o + 2, src);
    tree.add(&PORT, o + 2..o + 4, dst);
    tree.add(&LENGTH, o + 4..o + 6, len);
    tree.open(&CHECKSUM, o + 6..o + 8, sum);
    let six = matches!(frame.net, Some(Net { kind: NetKind::Ipv6 { .. }, .. }));
    tree.derive(
        &CHECKSUM_STATUS,
        match (sum, six) {
            (0, true) => 4u8,
            (0, false) => 3,
            _ => 2,
        },
    );
    tree.close();
    if tree.wants(&PAYLOAD) {
        let start = o + UDP_LEN;
        let end = (o + usize::from(len)).max(start);
        let data = frame.slice(start..end);
        if !data.is_empty() {
            tree.add(&PAYLOAD, start..start + data.len(), data);
            tree.label(&PAYLOAD, || format!("UDP payload ({} bytes)", data.len()));
        }
    }
    tree.close();
}
