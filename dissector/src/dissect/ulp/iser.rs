//! iSCSI Extensions for RDMA (RFC 7145): the iSER header with its steering tags, then the iSCSI header.
//! Big-endian; Wireshark's names where it has them.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::transfer::{Moved, Transfers, Way};
use crate::dissect::Tree;
use crate::dissect::table::{self, Row, bytes, number, part};
use crate::wire::Bits;

/// Group of these fields.
pub const GROUP: u16 = 16;

/// Bytes of an iSER header.
const HEADER: usize = 28;
/// Bytes of an iSCSI basic header segment.
const BHS: usize = 48;

type Words = Option<Cow<'static, str>>;

const fn kind_text(v: u64) -> Option<&'static str> {
    match v {
        1 => Some("iSCSI control-type PDU"),
        2 => Some("Hello"),
        3 => Some("HelloReply"),
        _ => None,
    }
}

const fn opcode_text(v: u64) -> Option<&'static str> {
    Some(match v & 0x3f {
        0x00 => "NOP Out",
        0x01 => "SCSI Command",
        0x02 => "Task Management Request",
        0x03 => "Login Request",
        0x04 => "Text Request",
        0x05 => "SCSI Data Out",
        0x06 => "Logout Request",
        0x10 => "SNACK Request",
        0x20 => "NOP In",
        0x21 => "SCSI Response",
        0x22 => "Task Management Response",
        0x23 => "Login Response",
        0x24 => "Text Response",
        0x25 => "SCSI Data In",
        0x26 => "Logout Response",
        0x31 => "Ready To Transfer",
        0x32 => "Asynchronous Message",
        0x3f => "Reject",
        _ => return None,
    })
}

fn kind_name(v: u64) -> Words {
    kind_text(v).map(Into::into)
}
fn opcode_name(v: u64) -> Words {
    opcode_text(v).map(Into::into)
}

crate::fields! {
    group 16;
    ISER "iser" "iSER" None Dec {} "Header of iSCSI over RDMA.";
    FLAGS "iser.flags" "Flags" U8 Hex {} "Kind of message and which tags are valid.";
    OPCODE "iser.flags.opcode" "Opcode" U8 Hex { mask: 0xf0, names: Some(kind_name) } "Kind of message.";
    WSV "iser.flags.wsv" "WSV" Bool Dec { mask: 0x08 } "The write tag is valid.";
    RSV "iser.flags.rsv" "RSV" Bool Dec { mask: 0x04 } "The read tag is valid.";
    REJ "iser.flags.rej" "REJ" Bool Dec { mask: 0x01 } "HelloReply: the connection is refused.";
    WRITE_STAG "iser.write_stag" "Write STag" U32 Hex {} "R_Key of the data that the target reads.";
    WRITE_BASE "iser.write_base_offset" "Write Base Offset" U64 Hex {} "Address of the data that the target reads.";
    READ_STAG "iser.read_stag" "Read STag" U32 Hex {} "R_Key of the buffer that the target writes.";
    READ_BASE "iser.read_base_offset" "Read Base Offset" U64 Hex {} "Address of the buffer that the target writes.";
    IRD "iser.ird" "iSER-IRD" U16 Dec {} "Hello: READs that the initiator takes at once.";
    ORD "iser.ord" "iSER-ORD" U16 Dec {} "HelloReply: READs that the target makes at once.";
    ISCSI "iscsi" "iSCSI" None Dec {} "iSCSI header.";
    ISCSI_OPCODE "iscsi.opcode" "Opcode" U8 Hex { mask: 0x3f, names: Some(opcode_name) } "Kind of PDU.";
    ISCSI_IMMEDIATE "iscsi.I" "Immediate" Bool Dec { mask: 0x40 } "Delivered out of order.";
    ISCSI_AHS "iscsi.totalahslength" "TotalAHSLength" U8 Dec {} "Four-byte words of additional headers.";
    ISCSI_DATALEN "iscsi.datasegmentlength" "DataSegmentLength" U24 Dec {} "Bytes of data behind the headers.";
    ISCSI_LUN "iscsi.lun_bytes" "LUN" Bytes Dec {} "Logical unit.";
    ISCSI_ITT "iscsi.initiatortasktag" "InitiatorTaskTag" U32 Hex {} "Joins command and response.";
    ISCSI_WORDS "iscsi.header" "Header words" Bytes Dec {} "What depends on the kind of PDU.";
    DATA "iser.data" "Data" Bytes Dec {} "Data of a command.";
    DATA_OFFSET "iser.data.offset" "Offset" U64 Dec {} "Where in the buffer these data belong.";
    TASK "iser.data.task" "Task" U32 Hex {} "Task whose data these are.";
}

static CONTROL: &[Row] = &[
    part(&WSV, 0, 4, 1),
    part(&RSV, 0, 5, 1),
    number(&WRITE_STAG, 4, 32),
    number(&WRITE_BASE, 8, 64),
    number(&READ_STAG, 16, 32),
    number(&READ_BASE, 20, 64),
];
static ISCSI_ROWS: &[Row] = &[
    part(&ISCSI_IMMEDIATE, 0, 1, 1),
    part(&ISCSI_OPCODE, 0, 2, 6),
    number(&ISCSI_AHS, 4, 8),
    number(&ISCSI_DATALEN, 5, 24),
    bytes(&ISCSI_LUN, 8, 8),
    number(&ISCSI_ITT, 16, 32),
    bytes(&ISCSI_WORDS, 20, 28),
];

/// What earlier packets say about this one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    moved: Option<Moved>,
    continued: Option<u64>,
}

/// Takes the first packet of a SEND.
pub fn message(b: &[u8], frame: u64, transfers: &mut Transfers) -> Facts {
    let control = Bits::within(0, 0, 4).get(b) == Some(1);
    if let (true, Some(flags), Some(itt)) = (control, b.first(), Bits::new(44, 32).get(b)) {
        let length = Bits::new(48, 32).get(b).unwrap_or(0); // of a SCSI command: what it expects to move
        for (valid, stag, base) in [(flags & 8, 4, 8), (flags & 4, 16, 20)] {
            if let (true, Some(key), Some(va)) = (valid != 0, Bits::new(stag, 32).get(b), Bits::new(base, 64).get(b))
                && let (Ok(key), Ok(tag)) = (u32::try_from(key), u32::try_from(itt))
            {
                transfers.advertise(key, tag, va, length, frame);
            }
        }
    }
    Facts::default()
}

/// A packet of a SEND after its first.
pub fn continued(offset: u64) -> Facts {
    Facts { continued: Some(offset), moved: None }
}

/// Data that RDMA moves.
pub fn data(moved: Moved) -> Facts {
    Facts { moved: Some(moved), continued: None }
}

/// Adds the payload of a packet.
pub fn build<'a>(facts: &Facts, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    tree.open_header(&ISER, o..o + if facts.moved.is_none() { b.len().min(HEADER) } else { b.len() });
    if let Some(offset) = facts.moved.map(|m| m.offset).or(facts.continued) {
        tree.derive(&DATA_OFFSET, offset);
        if let Some(buffer) = facts.moved.and_then(|m| m.buffer) {
            tree.derive(&TASK, buffer.tag);
        }
        if !b.is_empty() {
            tree.add(&DATA, o..o + b.len(), b);
        }
        tree.close();
        return;
    }
    let kind = Bits::within(0, 0, 4).get(b);
    table::add(&[number(&FLAGS, 0, 8), part(&OPCODE, 0, 0, 4)], b, o, tree);
    match kind {
        Some(1) => _ = table::add(CONTROL, b, o, tree),
        Some(2) => _ = table::add(&[number(&IRD, 2, 16)], b, o, tree),
        Some(3) => _ = table::add(&[part(&REJ, 0, 7, 1), number(&ORD, 2, 16)], b, o, tree),
        _ => tree.note(o..o + b.len().min(1), || "not a kind of iSER message".to_owned()),
    }
    if b.len() < HEADER {
        tree.note(o..o + b.len(), || format!("iSER: needs {HEADER} bytes, {} are there", b.len()));
    }
    tree.close();
    let pdu = b.get(HEADER..).unwrap_or(&[]);
    if kind == Some(1) && !pdu.is_empty() {
        let start = o + HEADER;
        tree.open_header(&ISCSI, start..start + pdu.len().min(BHS));
        table::add(ISCSI_ROWS, pdu, start, tree);
        tree.close();
        if let Some(data) = pdu.get(BHS..).filter(|d| !d.is_empty()) {
            tree.add(&DATA, start + BHS..start + pdu.len(), data);
        }
    }
}

// writing to a String cannot fail
/// One line about the payload.
pub fn info(facts: &Facts, b: &[u8], out: &mut String) {
    if let Some(m) = facts.moved {
        out.push_str(if m.way == Way::ReadRequest { "iSER data request" } else { "iSER data" });
        if let Some(buffer) = m.buffer {
            let _ = write!(out, " of task {:#010x}", buffer.tag);
        }
        let _ = write!(out, ", offset {}", m.offset);
        return;
    }
    if let Some(offset) = facts.continued {
        let _ = write!(out, "iSER message goes on, offset {offset}");
        return;
    }
    let kind = Bits::within(0, 0, 4).get(b);
    if kind == Some(1) {
        match b.get(HEADER).map(|v| u64::from(*v)) {
            Some(v) => {
                let _ = match opcode_text(v) {
                    Some(t) => write!(out, "iSCSI {t}"),
                    None => write!(out, "iSCSI opcode {:#04x}", v & 0x3f),
                };
            }
            None => out.push_str("iSER, cut"),
        }
        if let Some(itt) = Bits::new(44, 32).get(b) {
            let _ = write!(out, " ITT {itt:#010x}");
        }
    } else {
        let _ = write!(out, "iSER {}", kind.and_then(kind_text).unwrap_or("message of a kind not known"));
    }
}
