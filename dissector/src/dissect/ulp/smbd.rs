//! SMB Direct ([MS-SMBD]): negotiation, then data transfer messages that carry SMB2. Little-endian; Wireshark's
//! names where it has them.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::transfer::{Moved, Way};
use crate::connection::Side;
use crate::dissect::Tree;
use crate::dissect::table::{self, Row, little};

/// Group of these fields.
pub const GROUP: u16 = 17;

type Words = Option<Cow<'static, str>>;

const COMMANDS: [&str; 20] = [
    "Negotiate",
    "Session Setup",
    "Logoff",
    "Tree Connect",
    "Tree Disconnect",
    "Create",
    "Close",
    "Flush",
    "Read",
    "Write",
    "Lock",
    "Ioctl",
    "Cancel",
    "Echo",
    "Query Directory",
    "Change Notify",
    "Query Info",
    "Set Info",
    "Oplock Break",
    "Server to Client Notification",
];

fn command_name(v: u64) -> Words {
    COMMANDS.get(usize::try_from(v).ok()?).map(|s| (*s).into())
}
fn status_name(v: u64) -> Words {
    match v {
        0 => Some("STATUS_SUCCESS".into()),
        0xc000_00bb => Some("STATUS_NOT_SUPPORTED".into()),
        0xc000_009a => Some("STATUS_INSUFFICIENT_RESOURCES".into()),
        _ => None,
    }
}

crate::fields! {
    group 17;
    SMBD "smb_direct" "SMB Direct" None Dec {} "Message of SMB Direct.";
    NEG_REQ "smb_direct.negotiate_request" "NegotiateRequest" None Dec {} "First message of the client.";
    NEG_RSP "smb_direct.negotiate_response" "NegotiateResponse" None Dec {} "First message of the server.";
    DATA_MSG "smb_direct.data_message" "DataMessage" None Dec {} "Message that carries SMB, or credits only.";
    MIN "smb_direct.version.min" "MinVersion" U16 Hex {} "Lowest version.";
    MAX "smb_direct.version.max" "MaxVersion" U16 Hex {} "Highest version.";
    NEGOTIATED "smb_direct.version.negotiated" "NegotiatedVersion" U16 Hex {} "Version that is used.";
    REQUESTED "smb_direct.credits.requested" "CreditsRequested" U16 Dec {} "Credits that the sender would like.";
    GRANTED "smb_direct.credits.granted" "CreditsGranted" U16 Dec {} "Credits that the sender gives.";
    STATUS "smb_direct.status" "Status" U32 Hex { names: Some(status_name) } "Whether the server agrees.";
    MAX_RW "smb_direct.max_read_write_size" "MaxReadWriteSize" U32 Dec {} "Bytes that one RDMA READ or WRITE may move.";
    PREFERRED "smb_direct.preferred_send_size" "PreferredSendSize" U32 Dec {} "Bytes that the sender would like to send at once.";
    MAX_RECV "smb_direct.max_receive_size" "MaxReceiveSize" U32 Dec {} "Bytes that the sender receives at once.";
    MAX_FRAG "smb_direct.max_fragmented_size" "MaxFragmentedSize" U32 Dec {} "Bytes that the sender puts together.";
    FLAGS "smb_direct.flags" "Flags" U16 Hex {} "Flags.";
    RESPONSE "smb_direct.flags.response_requested" "ResponseRequested" Bool Dec { mask: 0x0001 } "The sender wants to hear that the other lives.";
    REMAINING "smb_direct.remaining_length" "RemainingLength" U32 Dec {} "Bytes of the SMB message that are still to come.";
    OFFSET "smb_direct.data_offset" "DataOffset" U32 Dec {} "Where the data start.";
    LENGTH "smb_direct.data_length" "DataLength" U32 Dec {} "Bytes of data.";
    SMB2_CMD "smb2.cmd" "Command" U16 Dec { names: Some(command_name) } "SMB2 command.";
    SMB2_STATUS "smb2.nt_status" "NT Status" U32 Hex {} "SMB2 status.";
    SMB2_MSGID "smb2.msg_id" "Message ID" U64 Dec {} "Joins SMB2 request and response.";
    SMB2_RESPONSE "smb2.flags.response" "Response" Bool Dec { mask: 0x0000_0001 } "SMB2 response, not request.";
    DATA "smb_direct.data" "Data" Bytes Dec {} "Data of the message, or that RDMA moves.";
}

static REQUEST: &[Row] = &[
    little(&MIN, 0, 2),
    little(&MAX, 2, 2),
    little(&REQUESTED, 6, 2),
    little(&PREFERRED, 8, 4),
    little(&MAX_RECV, 12, 4),
    little(&MAX_FRAG, 16, 4),
];
static RESPONSE_ROWS: &[Row] = &[
    little(&MIN, 0, 2),
    little(&MAX, 2, 2),
    little(&NEGOTIATED, 4, 2),
    little(&REQUESTED, 8, 2),
    little(&GRANTED, 10, 2),
    little(&STATUS, 12, 4),
    little(&MAX_RW, 16, 4),
    little(&PREFERRED, 20, 4),
    little(&MAX_RECV, 24, 4),
    little(&MAX_FRAG, 28, 4),
];
static DATA_ROWS: &[Row] = &[
    little(&REQUESTED, 0, 2),
    little(&GRANTED, 2, 2),
    little(&FLAGS, 4, 2),
    little(&RESPONSE, 4, 2),
    little(&REMAINING, 8, 4),
    little(&OFFSET, 12, 4),
    little(&LENGTH, 16, 4),
];

/// Which negotiation messages are still to come.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// The connection's beginning is in the capture.
    from_start: bool,
    request_seen: Option<u32>,
    response_seen: Option<u32>,
    fragments: [bool; 2],
}

/// What earlier packets say about this one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    kind: What,
    moved: Option<Moved>,
    /// The data continue an SMB message.
    fragment: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum What {
    Request,
    Response,
    #[default]
    Data,
    Continued,
    Moved,
}

fn le(b: &[u8], at: usize, len: usize) -> Option<u64> {
    Some(b.get(at..at + len)?.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)))
}

impl State {
    /// The state of a connection whose making was captured (or not).
    pub fn new(from_start: bool) -> Self {
        Self { from_start, ..Self::default() }
    }

    /// Takes the first packet of a SEND; `psn` tells a message sent again from the next one.
    pub fn message(&mut self, b: &[u8], to: Option<Side>, psn: u32) -> Facts {
        let first = |seen: &mut Option<u32>| match *seen {
            None => {
                *seen = Some(psn);
                true
            }
            Some(p) => p == psn,
        };
        let kind = match to {
            Some(Side::Passive) if self.from_start && first(&mut self.request_seen) => What::Request,
            Some(Side::Active) if self.from_start && first(&mut self.response_seen) => What::Response,
            _ => What::Data,
        };
        let way = usize::from(to == Some(Side::Passive));
        let mut facts = Facts { kind, ..Facts::default() };
        if kind == What::Data
            && let Some(slot) = self.fragments.get_mut(way)
        {
            facts.fragment = *slot;
            if le(b, 16, 4).is_some_and(|n| n > 0) {
                *slot = le(b, 8, 4).is_some_and(|n| n > 0);
            }
        }
        facts
    }
}

/// A packet of a SEND after its first.
pub fn continued() -> Facts {
    Facts { kind: What::Continued, ..Facts::default() }
}

/// Data that RDMA moves.
pub fn data(moved: Moved) -> Facts {
    Facts { kind: What::Moved, moved: Some(moved), fragment: false }
}

/// The data of a data transfer message and where they start, as far as they are there.
fn body(b: &[u8]) -> Option<(usize, &[u8])> {
    let start = usize::try_from(le(b, 12, 4)?).ok()?;
    let len = usize::try_from(le(b, 16, 4)?).ok()?;
    let rest = b.get(start..)?;
    (len > 0 && start >= 20).then(|| (start, rest.get(..len).unwrap_or(rest)))
}

fn smb2(data: &[u8]) -> bool {
    data.starts_with(b"\xfeSMB")
}

/// Adds the payload of a packet.
pub fn build<'a>(facts: &Facts, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    tree.open_header(&SMBD, o..o + b.len());
    let (field, rows, needed) = match facts.kind {
        What::Request => (&NEG_REQ, REQUEST, 20),
        What::Response => (&NEG_RSP, RESPONSE_ROWS, 32),
        What::Data => (&DATA_MSG, DATA_ROWS, 20),
        What::Continued | What::Moved => {
            if !b.is_empty() {
                tree.add(&DATA, o..o + b.len(), b);
            }
            tree.close();
            return;
        }
    };
    tree.open_header(field, o..o + b.len().min(needed));
    if !table::add(rows, b, o, tree) && b.len() < needed {
        tree.note(o..o + b.len(), || format!("SMB Direct: needs {needed} bytes, {} are there", b.len()));
    }
    tree.close();
    if facts.kind == What::Data
        && let Some((start, data)) = body(b)
    {
        let at = o + start;
        tree.open(&DATA, at..at + data.len(), data);
        if smb2(data) && !facts.fragment {
            let rows = &[little(&SMB2_CMD, 12, 2), little(&SMB2_RESPONSE, 16, 4), little(&SMB2_MSGID, 24, 8)];
            // a request has its channel sequence in the place of the status
            if le(data, 16, 4).is_some_and(|flags| flags & 1 != 0) {
                table::add(&[little(&SMB2_STATUS, 8, 4)], data, at, tree);
            }
            table::add(rows, data, at, tree);
        }
        tree.close();
    }
    tree.close();
}

/// One line about the payload.
pub fn info(facts: &Facts, b: &[u8], out: &mut String) {
    out.push_str("SMB Direct ");
    // writing to a String cannot fail
    match facts.kind {
        What::Request => out.push_str("Negotiate Request"),
        What::Response => {
            out.push_str("Negotiate Response");
            if let Some(s @ 1..) = le(b, 12, 4) {
                let _ = write!(out, " status {s:#010x}");
            }
        }
        What::Continued => out.push_str("message goes on"),
        What::Moved => {
            out.push_str(match facts.moved.map(|m| m.way) {
                Some(Way::ReadRequest) => "data request",
                _ => "data moved by RDMA",
            });
        }
        What::Data => match body(b) {
            None => out.push_str("credits"),
            Some((_, data)) if smb2(data) && !facts.fragment => {
                let command = le(data, 12, 2).and_then(command_name).unwrap_or("command not known".into());
                let side = if le(data, 16, 4).is_some_and(|f| f & 1 != 0) { "Response" } else { "Request" };
                let _ = write!(out, "SMB2 {command} {side}");
                if let Some(id) = le(data, 24, 8) {
                    let _ = write!(out, " id {id}");
                }
            }
            Some((_, data)) => {
                let _ = write!(out, "data, {} bytes", data.len());
            }
        },
    }
}
