//! Reliable Datagram Sockets on RDMA: the 48-byte header (kernel `struct rds_header`), big-endian. Wireshark has no
//! dissector for it.

use std::fmt::Write as _;

use crate::dissect::Tree;
use crate::dissect::table::{self, Row, bytes, number, part};
use crate::wire::Bits;

/// Group of these fields.
pub const GROUP: u16 = 18;

const HEADER: usize = 48;

crate::fields! {
    group 18;
    RDS "rds" "Reliable Datagram Sockets" None Dec {} "Header of RDS.";
    SEQUENCE "rds.sequence" "Sequence" U64 Dec {} "Number of the message.";
    ACK "rds.ack" "Acknowledges" U64 Dec {} "Highest number that the sender has received.";
    LEN "rds.len" "Length" U32 Dec {} "Bytes of data; 0 in an acknowledge or congestion update.";
    SPORT "rds.srcport" "Source Port" U16 Dec {} "Port of the sender.";
    DPORT "rds.dstport" "Destination Port" U16 Dec {} "Port of the receiver.";
    FLAGS "rds.flags" "Flags" U8 Hex {} "Flags.";
    CONG "rds.flags.congestion" "Congestion Bitmap" Bool Dec { mask: 0x01 } "The data are a map of congested ports.";
    ACK_REQ "rds.flags.ack_required" "Acknowledge Required" Bool Dec { mask: 0x02 } "The sender wants an acknowledge.";
    RETRANS "rds.flags.retransmitted" "Retransmitted" Bool Dec { mask: 0x04 } "Sent before.";
    CREDIT "rds.credit" "Credit" U8 Dec {} "Receives that the sender gives.";
    CSUM "rds.csum" "Checksum" U16 Hex {} "Checksum of the header.";
    EXTENSIONS "rds.extensions" "Extension Headers" Bytes Dec {} "16 bytes of extension headers.";
    DATA "rds.data" "Data" Bytes Dec {} "Data of the message.";
}

static ROWS: &[Row] = &[
    number(&SEQUENCE, 0, 64),
    number(&ACK, 8, 64),
    number(&LEN, 16, 32),
    number(&SPORT, 20, 16),
    number(&DPORT, 22, 16),
    number(&FLAGS, 24, 8),
    part(&RETRANS, 24, 5, 1),
    part(&ACK_REQ, 24, 6, 1),
    part(&CONG, 24, 7, 1),
    number(&CREDIT, 25, 8),
    number(&CSUM, 30, 16),
    bytes(&EXTENSIONS, 32, 16),
];

/// Adds the payload of a packet; `start` says whether a message begins with it.
pub fn build<'a>(start: bool, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    tree.open_header(&RDS, o..o + b.len());
    let data = if start {
        if !table::add(ROWS, b, o, tree) && b.len() < HEADER {
            tree.note(o..o + b.len(), || format!("RDS: needs {HEADER} bytes, {} are there", b.len()));
        }
        HEADER
    } else {
        0
    };
    if let Some(rest) = b.get(data..).filter(|r| !r.is_empty()) {
        tree.add(&DATA, o + data..o + b.len(), rest);
    }
    tree.close();
}

/// One line about the payload.
pub fn info(start: bool, b: &[u8], out: &mut String) {
    if !start {
        out.push_str("RDS data");
        return;
    }
    let n = |at, width| Bits::new(at, width).get(b);
    // writing to a String cannot fail
    match (n(0, 64), n(8, 64), n(16, 32), n(20, 16), n(22, 16), n(24, 8)) {
        (Some(_), Some(ack), Some(0), _, _, _) => _ = write!(out, "RDS acknowledge of {ack}"),
        (Some(seq), Some(_), Some(len), Some(s), Some(d), Some(flags)) => {
            _ = write!(out, "RDS {s} → {d} sequence {seq} length {len}");
            if flags & 1 != 0 {
                out.push_str(" congestion bitmap");
            }
            if flags & 4 != 0 {
                out.push_str(" retransmitted");
            }
        }
        _ => out.push_str("RDS, cut"),
    }
}
