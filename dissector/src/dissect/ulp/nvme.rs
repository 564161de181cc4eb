//! NVMe over Fabrics on RDMA: command capsules with keyed buffers and in-capsule data, completions, and the
//! private data of the connection. Everything is little-endian (NVMe base specification, NVMe-oF 1.1).
//!
//! Wireshark's names where it has them.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use super::transfer::{Moved, Transfers, Way};
use crate::capture::Timestamp;
use crate::connection::Side;
use crate::dissect::Tree;
use crate::dissect::table::{self, At, Row, bytes, little, number, part, span_words};

/// Group of these fields.
pub const GROUP: u16 = 14;

/// Bytes of a submission queue entry.
const SQE: usize = 64;
/// Bytes of a completion queue entry.
const CQE: usize = 16;
/// Opcode of fabrics commands.
const FABRICS: u8 = 0x7f;
/// Commands remembered per queue.
const MAX_COMMANDS: usize = 1024;

type Words = Option<Cow<'static, str>>;

fn byte(v: u64) -> Option<u8> {
    u8::try_from(v).ok()
}

/// Name of a fabrics command.
const fn fabrics_name(fctype: u8) -> &'static str {
    match fctype {
        0x00 => "Property Set",
        0x01 => "Connect",
        0x04 => "Property Get",
        0x05 => "Authentication Send",
        0x06 => "Authentication Receive",
        0x08 => "Disconnect",
        _ => "fabrics command",
    }
}

const fn admin_name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "Delete I/O Submission Queue",
        0x01 => "Create I/O Submission Queue",
        0x02 => "Get Log Page",
        0x04 => "Delete I/O Completion Queue",
        0x05 => "Create I/O Completion Queue",
        0x06 => "Identify",
        0x08 => "Abort",
        0x09 => "Set Features",
        0x0a => "Get Features",
        0x0c => "Async Event Request",
        0x0d => "Namespace Management",
        0x10 => "Firmware Commit",
        0x11 => "Firmware Image Download",
        0x14 => "Device Self-test",
        0x15 => "Namespace Attachment",
        0x18 => "Keep Alive",
        0x19 => "Directive Send",
        0x1a => "Directive Receive",
        0x1c => "Virtualization Management",
        0x1d => "NVMe-MI Send",
        0x1e => "NVMe-MI Receive",
        0x20 => "Capacity Management",
        0x24 => "Lockdown",
        0x7c => "Doorbell Buffer Config",
        0x80 => "Format NVM",
        0x81 => "Security Send",
        0x82 => "Security Receive",
        0x84 => "Sanitize",
        0x86 => "Get LBA Status",
        _ => return None,
    })
}

const fn io_name(opcode: u8) -> Option<&'static str> {
    Some(match opcode {
        0x00 => "Flush",
        0x01 => "Write",
        0x02 => "Read",
        0x04 => "Write Uncorrectable",
        0x05 => "Compare",
        0x08 => "Write Zeroes",
        0x09 => "Dataset Management",
        0x0c => "Verify",
        0x0d => "Reservation Register",
        0x0e => "Reservation Report",
        0x11 => "Reservation Acquire",
        0x15 => "Reservation Release",
        0x19 => "Copy",
        0x79 => "Zone Management Send",
        0x7a => "Zone Management Receive",
        0x7d => "Zone Append",
        _ => return None,
    })
}

const fn property_text(offset: u32) -> Option<&'static str> {
    Some(match offset {
        0x00 => "Controller Capabilities",
        0x08 => "Version",
        0x14 => "Controller Configuration",
        0x1c => "Controller Status",
        0x20 => "NVM Subsystem Reset",
        _ => return None,
    })
}

const fn cns_text(cns: u8) -> Option<&'static str> {
    Some(match cns {
        0x00 => "Namespace",
        0x01 => "Controller",
        0x02 => "Active Namespace List",
        0x03 => "Namespace Identification Descriptor List",
        0x04 => "NVM Set List",
        0x05 => "I/O Command Set Namespace",
        0x06 => "I/O Command Set Controller",
        0x07 => "I/O Command Set Active Namespace List",
        0x08 => "I/O Command Set Independent Namespace",
        0x10 => "Allocated Namespace List",
        0x11 => "Allocated Namespace",
        0x12 => "Namespace Attached Controller List",
        0x13 => "Controller List",
        0x14 => "Primary Controller Capabilities",
        0x15 => "Secondary Controller List",
        0x16 => "Namespace Granularity List",
        0x17 => "UUID List",
        0x18 => "Domain List",
        0x19 => "Endurance Group List",
        0x1c => "I/O Command Set",
        _ => return None,
    })
}

const fn log_text(lid: u8) -> Option<&'static str> {
    Some(match lid {
        0x01 => "Error Information",
        0x02 => "SMART/Health Information",
        0x03 => "Firmware Slot Information",
        0x04 => "Changed Namespace List",
        0x05 => "Commands Supported and Effects",
        0x06 => "Device Self-test",
        0x07 => "Telemetry Host-Initiated",
        0x08 => "Telemetry Controller-Initiated",
        0x09 => "Endurance Group Information",
        0x0a => "Predictable Latency Per NVM Set",
        0x0b => "Predictable Latency Event Aggregate",
        0x0c => "Asymmetric Namespace Access",
        0x0d => "Persistent Event",
        0x0e => "LBA Status Information",
        0x0f => "Endurance Group Event Aggregate",
        0x70 => "Discovery",
        0x80 => "Reservation Notification",
        0x81 => "Sanitize Status",
        _ => return None,
    })
}

const fn feature_text(fid: u8) -> Option<&'static str> {
    Some(match fid {
        0x01 => "Arbitration",
        0x02 => "Power Management",
        0x03 => "LBA Range Type",
        0x04 => "Temperature Threshold",
        0x05 => "Error Recovery",
        0x06 => "Volatile Write Cache",
        0x07 => "Number of Queues",
        0x08 => "Interrupt Coalescing",
        0x09 => "Interrupt Vector Configuration",
        0x0a => "Write Atomicity",
        0x0b => "Asynchronous Event Configuration",
        0x0c => "Autonomous Power State Transition",
        0x0d => "Host Memory Buffer",
        0x0e => "Timestamp",
        0x0f => "Keep Alive Timer",
        0x16 => "Host Behavior Support",
        0x80 => "Software Progress Marker",
        0x81 => "Host Identifier",
        0x82 => "Reservation Notification Mask",
        0x83 => "Reservation Persistence",
        _ => return None,
    })
}

fn property_name(v: u64) -> Words {
    property_text(u32::try_from(v).ok()?).map(Into::into)
}
fn cns_name(v: u64) -> Words {
    cns_text(byte(v)?).map(Into::into)
}
fn log_name(v: u64) -> Words {
    log_text(byte(v)?).map(Into::into)
}
fn feature_name(v: u64) -> Words {
    feature_text(byte(v)?).map(Into::into)
}
fn fctype_name(v: u64) -> Words {
    Some(fabrics_name(byte(v)?).into())
}
fn property_size_name(v: u64) -> Words {
    match v {
        0 => Some("4 bytes".into()),
        1 => Some("8 bytes".into()),
        _ => None,
    }
}
fn queue_name(v: u64) -> Words {
    (v == 0).then_some("admin queue".into())
}
fn sgl_type_name(v: u64) -> Words {
    Some(match v {
        0 => "Data Block".into(),
        1 => "Bit Bucket".into(),
        2 => "Segment".into(),
        3 => "Last Segment".into(),
        4 => "Keyed Data Block".into(),
        5 => "Transport Data Block".into(),
        0xf => "Vendor Specific".into(),
        _ => return None,
    })
}
fn sgl_subtype_name(v: u64) -> Words {
    Some(match v {
        0 => "Address".into(),
        1 => "Offset (in the capsule)".into(),
        0xf => "Transport specific (the key is invalidated by the completion)".into(),
        _ => return None,
    })
}
fn zero_based_name(v: u64) -> Words {
    v.checked_add(1).map(|n| n.to_string().into())
}
fn status_type_name(v: u64) -> Words {
    Some(
        ["Generic Command Status", "Command Specific Status", "Media and Data Integrity Errors", "Path Related Status"]
            .get(usize::try_from(v).ok()?)
            .copied()?
            .into(),
    )
}

/// Status code in words: type, then code.
const fn status_text(kind: u8, code: u8) -> Option<&'static str> {
    Some(match (kind, code) {
        (0, 0x00) => "success",
        (0, 0x01) => "invalid command opcode",
        (0, 0x02) => "invalid field in command",
        (0, 0x03) => "command ID conflict",
        (0, 0x04) => "data transfer error",
        (0, 0x05) => "aborted: power loss notification",
        (0, 0x06) => "internal error",
        (0, 0x07) => "command abort requested",
        (0, 0x08) => "aborted: submission queue deleted",
        (0, 0x0b) => "invalid namespace or format",
        (0, 0x0c) => "command sequence error",
        (0, 0x0d) => "invalid SGL segment descriptor",
        (0, 0x0e) => "invalid number of SGL descriptors",
        (0, 0x0f) => "data SGL length invalid",
        (0, 0x11) => "SGL descriptor type invalid",
        (0, 0x16) => "SGL offset invalid",
        (0, 0x18) => "host identifier inconsistent format",
        (0, 0x19) => "keep alive timer expired",
        (0, 0x1a) => "keep alive timeout invalid",
        (0, 0x80) => "LBA out of range",
        (0, 0x81) => "capacity exceeded",
        (0, 0x82) => "namespace not ready",
        (0, 0x83) => "reservation conflict",
        (0, 0x84) => "format in progress",
        (1, 0x80) => "incompatible format, or conflicting attributes",
        (1, 0x81) => "controller busy, or invalid protection information",
        (1, 0x82) => "connect invalid parameters, or write to a read-only range",
        (1, 0x83) => "connect restart discovery",
        (1, 0x84) => "connect invalid host",
        (1, 0x90) => "discovery restart",
        (1, 0x91) => "authentication required",
        (1, 0x05) => "asynchronous event request limit exceeded",
        (2, 0x80) => "write fault",
        (2, 0x81) => "unrecovered read error",
        (2, 0x85) => "compare failure",
        (2, 0x86) => "access denied",
        (3, 0x00) => "internal path error",
        (3, 0x01) => "asymmetric access persistent loss",
        (3, 0x02) => "asymmetric access inaccessible",
        (3, 0x03) => "asymmetric access transition",
        (3, 0x70) => "host pathing error",
        (3, 0x71) => "command aborted by host",
        _ => return None,
    })
}

crate::fields! {
    group 14;
    NVME "nvme-rdma" "NVMe over RDMA" None Dec {} "Capsule, completion, data or private data of NVMe over RDMA.";
    QID "nvme-rdma.cmd.qid" "Cmd Qid" U16 Hex { names: Some(queue_name) } "Queue of the connection; 0 is the admin queue.";
    REQ_RECFMT "nvme-rdma.cm.req.recfmt" "Record Format" U16 Dec {} "REQ private data: format.";
    REQ_QID "nvme-rdma.cm.req.qid" "Queue Id" U16 Dec { names: Some(queue_name) } "REQ private data: queue.";
    REQ_HRQSIZE "nvme-rdma.cm.req.hrqsize" "RDMA QP Host Receive Queue Size" U16 Dec {} "REQ private data: receives that the host posts.";
    REQ_HSQSIZE "nvme-rdma.cm.req.hsqsize" "RDMA QP Host Send Queue Size" U16 Dec { names: Some(zero_based_name) } "REQ private data: sends that the host posts, less one.";
    REQ_CNTLID "nvme-rdma.cm.req.cntlid" "Controller ID" U16 Hex {} "REQ private data: controller.";
    REQ_RESERVED "nvme-rdma.cm.req.reserved" "Reserved" Bytes Dec {} "REQ private data: reserved.";
    RSP_RECFMT "nvme-rdma.cm.rsp.recfmt" "Record Format" U16 Dec {} "REP private data: format.";
    RSP_CRQSIZE "nvme-rdma.cm.rsp.crqsize" "RDMA QP Controller Receive Queue Size" U16 Dec {} "REP private data: receives that the controller posts.";
    RSP_RESERVED "nvme-rdma.cm.rsp.reserved" "Reserved" Bytes Dec {} "REP private data: reserved.";
    REJ_RECFMT "nvme-rdma.cm.rej.recfmt" "Record Format" U16 Dec {} "REJ private data: format.";
    REJ_STATUS "nvme-rdma.cm.rej.status" "Status" U16 Hex { names: Some(cm_status_name) } "REJ private data: why.";
    FCMD "nvme.fabrics.cmd" "Fabrics Command" None Dec {} "Fabrics command.";
    FCMD_OPC "nvme.fabrics.cmd.opc" "Opcode" Bytes Dec {} "0x7f.";
    FCMD_RSVD "nvme.fabrics.cmd.rsvd" "Reserved" U8 Hex {} "Flags of the command.";
    FCMD_CID "nvme.fabrics.cmd.cid" "Command Identifier" U16 Hex {} "Joins command and completion.";
    FCTYPE "nvme.fabrics.cmd.fctype" "Fabric Command Type" U8 Hex { names: Some(fctype_name) } "Which fabrics command.";
    CONNECT_RECFMT "nvme.fabrics.cmd.connect.recfmt" "Record Format" U16 Dec {} "Connect: format of the data.";
    CONNECT_QID "nvme.fabrics.cmd.connect.qid" "Queue ID" U16 Dec { names: Some(queue_name) } "Connect: queue to make.";
    CONNECT_SQSIZE "nvme.fabrics.cmd.connect.sqsize" "Submission Queue Size" U16 Dec { names: Some(zero_based_name) } "Connect: entries, less one.";
    CONNECT_CATTR "nvme.fabrics.cmd.connect.cattr" "Connect Attributes" U8 Hex {} "Connect: attributes.";
    CONNECT_KATO "nvme.fabrics.cmd.connect.kato" "Keep Alive Timeout" U32 Dec {} "Connect: milliseconds.";
    CONNECT_HOSTID "nvme.fabrics.cmd.connect.data.hostid" "Host Identifier" Bytes Dec {} "Connect data: host.";
    CONNECT_CNTLID "nvme.fabrics.cmd.connect.data.cntrlid" "Controller ID" U16 Hex {} "Connect data: controller, 0xffff for any.";
    CONNECT_SUBNQN "nvme.fabrics.cmd.connect.data.subnqn" "Subsystem NQN" Str Dec {} "Connect data: subsystem.";
    CONNECT_HOSTNQN "nvme.fabrics.cmd.connect.data.hostnqn" "Host NQN" Str Dec {} "Connect data: host's name.";
    PROP_ATTRIB "nvme.fabrics.cmd.prop_get_set.attrib" "Attributes" U8 Hex { mask: 0x07 } "Property: attributes.";
    PROP_SIZE "nvme.fabrics.cmd.prop_get_set.attrib.size" "Property Size" U8 Hex { mask: 0x07, names: Some(property_size_name) } "Property: 0 four bytes, 1 eight.";
    PROP_OFFSET "nvme.fabrics.cmd.prop_get_set.offset" "Offset" U32 Hex { names: Some(property_name) } "Property: which register.";
    PROP_VALUE "nvme.fabrics.cmd.prop_set.value" "Value" U64 Hex {} "Property Set: value.";
    CMD_OPC "nvme.cmd.opc" "Opcode" U8 Hex {} "Opcode of an admin or I/O command.";
    CMD_FUSE "nvme.cmd.fuse_op" "Fuse Operation" U8 Hex { mask: 0x03 } "Fused with the next command.";
    CMD_RSVD "nvme.cmd.rsvd" "Reserved" U8 Hex { mask: 0x3c } "Reserved.";
    CMD_PSDT "nvme.cmd.psdt" "PRP Or SGL" U8 Hex { mask: 0xc0 } "1: the data pointer is an SGL.";
    CMD_CID "nvme.cmd.cid" "Command ID" U16 Hex {} "Joins command and completion.";
    CMD_NSID "nvme.cmd.nsid" "Namespace Id" U32 Hex {} "Namespace.";
    CMD_RSVD1 "nvme.cmd.rsvd1" "Reserved" Bytes Dec {} "Command dwords 2 and 3.";
    CMD_MPTR "nvme.cmd.mptr" "Metadata Pointer" U64 Hex {} "Where metadata are.";
    SGL1 "nvme.cmd.sgl1" "SGL1" None Dec {} "Where the data are.";
    SGL_TYPE "nvme.cmd.sgl.type" "Descriptor Type" U8 Hex { mask: 0xf0, names: Some(sgl_type_name) } "Kind of descriptor.";
    SGL_SUBTYPE "nvme.cmd.sgl.subtype" "Descriptor Sub Type" U8 Hex { mask: 0x0f, names: Some(sgl_subtype_name) } "Meaning of the address.";
    SGL_ADDR "nvme.cmd.sgl1.addr" "Address" U64 Hex {} "Address in the host's memory, or offset in the capsule.";
    SGL_LEN "nvme.cmd.sgl1.len" "Length" U32 Dec {} "Bytes.";
    SGL_KEY "nvme.cmd.sgl1.key" "Key" U32 Hex {} "R_Key of the buffer: RDMA WRITEs and READs carry it.";
    SLBA "nvme.cmd.slba" "Start LBA" U64 Hex {} "First logical block.";
    NLB "nvme.cmd.nlb" "Absolute Number of Logical Blocks" U16 Dec {} "Blocks.";
    IDENTIFY_DW10 "nvme.cmd.identify.dword10" "DWORD10" U32 Hex {} "Identify: command dword 10.";
    IDENTIFY_CNS "nvme.cmd.identify.dword10.cns" "Controller or Namespace Structure (CNS)" U32 Hex { mask: 0xff, names: Some(cns_name) } "Identify: what to return.";
    IDENTIFY_CNTID "nvme.cmd.identify.dword10.cntid" "Controller Identifier (CNTID)" U32 Hex { mask: 0xffff_0000 } "Identify: controller.";
    LOG_DW10 "nvme.cmd.get_logpage.dword10" "DWORD 10" U32 Hex {} "Get Log Page: command dword 10.";
    LOG_LID "nvme.cmd.get_logpage.dword10.id" "Log Page Identifier (LID)" U32 Dec { mask: 0xff, names: Some(log_name) } "Get Log Page: which.";
    LOG_NUMDL "nvme.cmd.get_logpage.dword10.numdl" "Number of Dwords Lower (NUMDL)" U32 Hex { mask: 0xffff_0000 } "Get Log Page: dwords, less one.";
    LOG_LPO "nvme.cmd.get_logpage.lpo" "Log Page Offset (DWORD 12 and DWORD 13)" U64 Dec {} "Get Log Page: offset.";
    SET_DW10 "nvme.cmd.set_features.dword10" "DWORD 10" U32 Hex {} "Set Features: command dword 10.";
    SET_FID "nvme.cmd.set_features.dword10.fid" "Feature Identifier" U32 Hex { mask: 0xff, names: Some(feature_name) } "Set Features: which.";
    GET_FID "nvme.cmd.get_features.dword10.fid" "Feature Identifier" U32 Hex { mask: 0xff, names: Some(feature_name) } "Get Features: which.";
    DW10 "nvme.cmd.dword10" "DWORD10" U32 Hex {} "Command dword 10.";
    DW11 "nvme.cmd.dword11" "DWORD11" U32 Hex {} "Command dword 11.";
    DW12 "nvme.cmd.dword12" "DWORD12" U32 Hex {} "Command dword 12.";
    DW13 "nvme.cmd.dword13" "DWORD13" U32 Hex {} "Command dword 13.";
    DW14 "nvme.cmd.dword14" "DWORD14" U32 Hex {} "Command dword 14.";
    DW15 "nvme.cmd.dword15" "DWORD15" U32 Hex {} "Command dword 15.";
    CQE_ "nvme.cqe" "Completion" None Dec {} "Completion queue entry.";
    CQE_DW0 "nvme.cqe.dword0" "DWORD0" U32 Hex {} "Completion: command specific.";
    CQE_DW1 "nvme.cqe.dword1" "DWORD1" U32 Hex {} "Completion: command specific.";
    CQE_STS "nvme.fabrics.cqe.sts" "Cmd specific Status" U64 Hex {} "Completion of a fabrics command: value.";
    CQE_CNTLID "nvme.fabrics.cqe.connect.cntrlid" "Controller ID" U16 Hex {} "Completion of Connect: controller.";
    CQE_AUTHREQ "nvme.fabrics.cqe.connect.authreq" "Authentication Required" U16 Hex {} "Completion of Connect: authentication that is wanted.";
    CQE_VALUE4 "nvme.fabrics.prop_get_set.data.4B" "Value" U32 Hex {} "Completion of Property Get: value of four bytes.";
    CQE_VALUE8 "nvme.fabrics.prop_get_set.data.8B" "Value" U64 Hex {} "Completion of Property Get: value of eight bytes.";
    CQE_SQHD "nvme.cqe.sqhd" "SQ Head Pointer" U16 Hex {} "Completion: how far the submission queue was read.";
    CQE_SQID "nvme.cqe.sqid" "SQ Identifier" U16 Hex {} "Completion: submission queue; reserved on fabrics.";
    CQE_CID "nvme.cqe.cid" "Command Identifier" U16 Hex {} "Completion: command.";
    CQE_STATUS "nvme.cqe.status" "Status Field" U16 Hex {} "Completion: status.";
    CQE_STATUS_RSVD "nvme.cqe.status.rsvd" "Reserved" U16 Hex { mask: 0x0001 } "Completion: reserved.";
    CQE_SC "nvme.cqe.status.sc" "Status Code" U16 Hex { mask: 0x01fe } "Completion: status code.";
    CQE_SCT "nvme.cqe.status.sct" "Status Code Type" U16 Hex { mask: 0x0e00, names: Some(status_type_name) } "Completion: which table the code is of.";
    CQE_CRD "nvme.cqe.status.crd" "Command Retry Delay" U16 Hex { mask: 0x3000 } "Completion: when to try again.";
    CQE_M "nvme.cqe.status.m" "More Information in Log Page" Bool Dec { mask: 0x4000 } "Completion: the error log says more.";
    CQE_DNR "nvme.cqe.status.dnr" "Do not Retry" Bool Dec { mask: 0x8000 } "Completion: trying again is of no use.";
    CMD_NAME "nvme.cmd.name" "Command" Str Dec {} "Command that the capsule, completion or data belong to.";
    CMD_FRAME "nvme.cmd_pkt" "Cmd in" U32 Dec {} "Frame of the command.";
    FCMD_FRAME "nvme.fabrics.cmd_pkt" "Fabric Cmd in" U32 Dec {} "Frame of the command, if it is one of fabrics or moves data.";
    LATENCY "nvme.cmd_latency_ns" "Latency" Duration Dec {} "Time from command to completion, seconds.";
    DATA "nvme-rdma.data" "Data" Bytes Dec {} "Data of a command.";
    DATA_OFFSET "nvme-rdma.data.offset" "Offset" U64 Dec {} "Where in the buffer of the command these data belong.";
    ICD "nvme.capsule.data" "In-capsule Data" Bytes Dec {} "Data behind the command, in the capsule.";
}

fn cm_status_name(v: u64) -> Words {
    Some(match v {
        1 => "invalid private data length".into(),
        2 => "invalid record format".into(),
        3 => "invalid queue ID".into(),
        4 => "invalid host submission queue size".into(),
        5 => "invalid host receive queue size".into(),
        6 => "no resources".into(),
        7 => "invalid interrupt vector or IRD".into(),
        8 => "invalid ORD".into(),
        9 => "invalid controller ID".into(),
        _ => return None,
    })
}

/// A command that waits for its completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Command id.
    pub cid: u16,
    /// Name with its most telling argument.
    pub name: String,
    opcode: u8,
    fctype: u8,
    /// Property of Property Get, to read the value.
    property_size: u8,
    /// Frame.
    pub frame: u64,
    at: Timestamp,
}

/// What is remembered of one queue (one connection).
#[derive(Debug, Default)]
pub struct Queue {
    qid: Option<u16>,
    commands: HashMap<u16, Command, foldhash::quality::RandomState>,
    order: VecDeque<u16>,
}

/// What earlier packets say about this one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    qid: Option<u16>,
    kind: What,
    command: Option<Command>,
    latency: Option<i64>,
    moved: Option<Moved>,
    offset: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum What {
    #[default]
    Unknown,
    Capsule,
    Completion,
    InCapsuleData,
    Data,
}

fn le(b: &[u8], at: usize, len: usize) -> Option<u64> {
    Some(b.get(at..at + len)?.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)))
}

fn le16(b: &[u8], at: usize) -> Option<u16> {
    le(b, at, 2).and_then(|v| u16::try_from(v).ok())
}

fn le32(b: &[u8], at: usize) -> Option<u32> {
    le(b, at, 4).and_then(|v| u32::try_from(v).ok())
}

impl Queue {
    /// Commands that are remembered.
    #[expect(clippy::len_without_is_empty, reason = "a weight, nobody asks whether it is nothing")]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The queue that the private data of REQ announce.
    pub fn announced(&mut self, private: &[u8]) {
        self.qid = le16(private, 2);
    }

    /// Takes the first packet of a SEND. `to` is the end it goes to, if that is known.
    pub fn message(
        &mut self,
        b: &[u8],
        to: Option<Side>,
        frame: u64,
        at: Timestamp,
        transfers: &mut Transfers,
    ) -> Facts {
        // the host is who called; without that knowledge the size decides: a completion has 16 bytes
        let capsule = match to {
            Some(Side::Passive) => true,
            Some(Side::Active) => false,
            None => b.len() >= SQE,
        };
        if capsule { self.capsule(b, frame, at, transfers) } else { self.completion(b, at) }
    }

    fn capsule(&mut self, b: &[u8], frame: u64, at: Timestamp, transfers: &mut Transfers) -> Facts {
        let mut facts = Facts { qid: self.qid, kind: What::Capsule, ..Facts::default() };
        let (Some(&opcode), Some(cid)) = (b.first(), le16(b, 2)) else { return facts };
        let fctype = b.get(4).copied().unwrap_or(0);
        if opcode == FABRICS && fctype == 0x01 {
            self.qid = le16(b, 42).or(self.qid);
            facts.qid = self.qid;
        }
        let command = Command {
            cid,
            name: command_name(b, self.qid),
            opcode,
            fctype,
            property_size: b.get(40).map_or(0, |v| v & 7),
            frame,
            at,
        };
        // keyed data block: key, address and length tie the data to the command
        if b.get(39).is_some_and(|t| t >> 4 == 4)
            && let (Some(va), Some(len), Some(key)) = (le(b, 24, 8), le(b, 32, 3), le32(b, 35))
            && len > 0
        {
            transfers.advertise(key, cid.into(), va, len, frame);
        }
        facts.command = Some(command.clone());
        if self.commands.insert(cid, command).is_none() {
            self.order.push_back(cid);
            if self.order.len() > MAX_COMMANDS
                && let Some(old) = self.order.pop_front()
            {
                self.commands.remove(&old);
            }
        }
        facts
    }

    fn completion(&self, b: &[u8], at: Timestamp) -> Facts {
        let command = le16(b, 12).and_then(|cid| self.commands.get(&cid)).cloned();
        let latency = command.as_ref().map(|c| at.since(c.at));
        Facts { qid: self.qid, kind: What::Completion, command, latency, ..Facts::default() }
    }

    /// A packet of a SEND after its first: data in the capsule.
    pub fn continued(&self, first: &Facts, offset: u64) -> Facts {
        Facts {
            qid: self.qid,
            kind: What::InCapsuleData,
            command: first.command.clone(),
            offset: offset.saturating_sub(SQE as u64),
            ..Facts::default()
        }
    }

    /// Data that RDMA moves.
    pub fn data(&self, moved: Moved) -> Facts {
        let tag = moved.buffer.and_then(|b| u16::try_from(b.tag).ok());
        let command = tag.and_then(|cid| self.commands.get(&cid)).cloned();
        Facts { qid: self.qid, kind: What::Data, command, offset: moved.offset, moved: Some(moved), ..Facts::default() }
    }
}

/// Name of a command: fabrics, admin or I/O, with what it is about.
fn command_name(b: &[u8], qid: Option<u16>) -> String {
    let opcode = b.first().copied().unwrap_or(0);
    if opcode == FABRICS {
        let fctype = b.get(4).copied().unwrap_or(0);
        let name = fabrics_name(fctype);
        return match fctype {
            0x01 => le16(b, 42).map_or_else(|| name.to_owned(), |q| format!("{name} qid {q}")),
            0x00 | 0x04 => match le32(b, 44).map(|o| (o, property_text(o))) {
                Some((_, Some(p))) => format!("{name} {p}"),
                Some((o, None)) => format!("{name} offset {o:#x}"),
                None => name.to_owned(),
            },
            _ => name.to_owned(),
        };
    }
    let argument = b.get(40).copied();
    let (name, admin) = match qid {
        Some(0) => (admin_name(opcode), true),
        Some(_) => (io_name(opcode), false),
        None => {
            // the queue is not known, so neither is which table counts
            return match (admin_name(opcode), io_name(opcode)) {
                (Some(a), Some(i)) => format!("{i} or {a} (queue unknown)"),
                (Some(n), None) | (None, Some(n)) => n.to_owned(),
                (None, None) => format!("opcode {opcode:#04x}"),
            };
        }
    };
    let Some(name) = name else { return format!("opcode {opcode:#04x}") };
    let about = |text: Option<&'static str>, what: &str| match (text, argument) {
        (Some(t), _) => format!("{name} {t}"),
        (None, Some(v)) => format!("{name} {what} {v:#04x}"),
        (None, None) => name.to_owned(),
    };
    match (admin, opcode) {
        (true, 0x06) => about(argument.and_then(cns_text), "CNS"),
        (true, 0x02) => about(argument.and_then(log_text), "log"),
        (true, 0x09 | 0x0a) => about(argument.and_then(feature_text), "feature"),
        _ => name.to_owned(),
    }
}

static FABRICS_HEAD: &[Row] =
    &[bytes(&FCMD_OPC, 0, 1), number(&FCMD_RSVD, 1, 8), little(&FCMD_CID, 2, 2), number(&FCTYPE, 4, 8)];
static CONNECT: &[Row] = &[
    little(&CONNECT_RECFMT, 40, 2),
    little(&CONNECT_QID, 42, 2),
    little(&CONNECT_SQSIZE, 44, 2),
    number(&CONNECT_CATTR, 46, 8),
    little(&CONNECT_KATO, 48, 4),
];
static CONNECT_DATA: &[Row] = &[
    bytes(&CONNECT_HOSTID, 0, 16),
    little(&CONNECT_CNTLID, 16, 2),
    Row(&CONNECT_SUBNQN, At::Text(256, 256)),
    Row(&CONNECT_HOSTNQN, At::Text(512, 256)),
];
static PROPERTY: &[Row] = &[part(&PROP_ATTRIB, 40, 5, 3), part(&PROP_SIZE, 40, 5, 3), little(&PROP_OFFSET, 44, 4)];
static COMMAND_HEAD: &[Row] = &[
    number(&CMD_OPC, 0, 8),
    part(&CMD_FUSE, 1, 6, 2),
    part(&CMD_RSVD, 1, 2, 4),
    part(&CMD_PSDT, 1, 0, 2),
    little(&CMD_CID, 2, 2),
    little(&CMD_NSID, 4, 4),
    bytes(&CMD_RSVD1, 8, 8),
    little(&CMD_MPTR, 16, 8),
];
static SGL_KEYED: &[Row] = &[little(&SGL_ADDR, 24, 8), little(&SGL_LEN, 32, 3), little(&SGL_KEY, 35, 4)];
static SGL_PLAIN: &[Row] = &[little(&SGL_ADDR, 24, 8), little(&SGL_LEN, 32, 4)];
static DWORDS: &[Row] = &[
    little(&DW10, 40, 4),
    little(&DW11, 44, 4),
    little(&DW12, 48, 4),
    little(&DW13, 52, 4),
    little(&DW14, 56, 4),
    little(&DW15, 60, 4),
];
static IDENTIFY: &[Row] = &[
    little(&IDENTIFY_DW10, 40, 4),
    little(&IDENTIFY_CNS, 40, 4),
    little(&IDENTIFY_CNTID, 40, 4),
    little(&DW12, 48, 4),
    little(&DW13, 52, 4),
    little(&DW15, 60, 4),
];
static LOG: &[Row] = &[
    little(&LOG_DW10, 40, 4),
    little(&LOG_LID, 40, 4),
    little(&LOG_NUMDL, 40, 4),
    little(&LOG_LPO, 48, 8),
    little(&DW13, 52, 4),
    little(&DW15, 60, 4),
];
static SET: &[Row] = &[
    little(&SET_DW10, 40, 4),
    little(&SET_FID, 40, 4),
    little(&DW12, 48, 4),
    little(&DW13, 52, 4),
    little(&DW15, 60, 4),
];
static GET: &[Row] = &[little(&DW10, 40, 4), little(&GET_FID, 40, 4)];
static COMPLETION_TAIL: &[Row] = &[
    little(&CQE_SQHD, 8, 2),
    little(&CQE_SQID, 10, 2),
    little(&CQE_CID, 12, 2),
    little(&CQE_STATUS, 14, 2),
    little(&CQE_STATUS_RSVD, 14, 2),
    little(&CQE_SC, 14, 2),
    little(&CQE_SCT, 14, 2),
    little(&CQE_CRD, 14, 2),
    little(&CQE_M, 14, 2),
    little(&CQE_DNR, 14, 2),
];
static REQ_PRIVATE: &[Row] = &[
    little(&REQ_RECFMT, 0, 2),
    little(&REQ_QID, 2, 2),
    little(&REQ_HRQSIZE, 4, 2),
    little(&REQ_HSQSIZE, 6, 2),
    little(&REQ_CNTLID, 8, 2),
    bytes(&REQ_RESERVED, 10, 22),
];
static REP_PRIVATE: &[Row] = &[little(&RSP_RECFMT, 0, 2), little(&RSP_CRQSIZE, 2, 2), bytes(&RSP_RESERVED, 4, 28)];
static REJ_PRIVATE: &[Row] = &[little(&REJ_RECFMT, 0, 2), little(&REJ_STATUS, 2, 2)];

/// Adds the private data of a CM message.
pub fn private_data<'a>(kind: crate::wire::cm::Kind, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    use crate::wire::cm::Kind;
    let rows = match kind {
        Kind::Req => REQ_PRIVATE,
        Kind::Rep => REP_PRIVATE,
        Kind::Rej => REJ_PRIVATE,
        _ => return,
    };
    if b.is_empty() {
        return; // cut before them
    }
    tree.open_header(&NVME, o..o + b.len().min(32));
    table::add(rows, b, o, tree);
    tree.close();
}

/// Adds the payload of a packet.
pub fn build<'a>(facts: &Facts, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    tree.open_header(&NVME, o..o + b.len());
    tree.label(&NVME, || {
        let mut text = String::from("NVMe over RDMA: ");
        words(facts, b, &mut text);
        text
    });
    if let Some(q) = facts.qid {
        tree.derive(&QID, q);
    }
    if let Some(c) = &facts.command {
        tree.derive(&CMD_NAME, c.name.clone());
        if facts.kind != What::Capsule {
            let fabrics = c.opcode == FABRICS || facts.kind != What::Completion;
            tree.derive(if fabrics { &FCMD_FRAME } else { &CMD_FRAME }, c.frame);
        }
    }
    match facts.kind {
        What::Capsule => capsule(facts, b, o, tree),
        What::Completion => completion(facts, b, o, tree),
        What::InCapsuleData | What::Data => {
            if facts.moved.is_none_or(|m| m.way != Way::ReadRequest) {
                tree.derive(&DATA_OFFSET, facts.offset);
                let connect = facts.command.as_ref().is_some_and(|c| c.opcode == FABRICS && c.fctype == 1);
                if connect && facts.offset == 0 {
                    table::add(CONNECT_DATA, b, o, tree);
                } else if !b.is_empty() {
                    tree.add(&DATA, o..o + b.len(), b);
                }
            }
        }
        What::Unknown => {
            if !b.is_empty() {
                tree.add(&DATA, o..o + b.len(), b);
            }
        }
    }
    tree.close();
}

fn capsule<'a>(facts: &Facts, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    let opcode = b.first().copied().unwrap_or(0);
    let fabrics = opcode == FABRICS;
    let fctype = b.get(4).copied().unwrap_or(0);
    if fabrics {
        tree.open_header(&FCMD, o..o + b.len().min(SQE));
        table::add(FABRICS_HEAD, b, o, tree);
        if matches!(fctype, 0x01 | 0x05 | 0x06) {
            sgl(b, o, tree);
        }
        match fctype {
            0x01 => _ = table::add(CONNECT, b, o, tree),
            0x00 | 0x04 => {
                table::add(PROPERTY, b, o, tree);
                if fctype == 0x00 {
                    table::add(&[little(&PROP_VALUE, 48, 8)], b, o, tree);
                }
            }
            _ => {}
        }
        tree.close();
    } else {
        table::add(COMMAND_HEAD, b, o, tree);
        if let Some(c) = &facts.command {
            tree.label(&CMD_OPC, || format!("Opcode: {} ({opcode:#04x})", c.name));
        }
        sgl(b, o, tree);
        match (facts.qid, opcode) {
            (Some(0), 0x06) => _ = table::add(IDENTIFY, b, o, tree),
            (Some(0), 0x02) => _ = table::add(LOG, b, o, tree),
            (Some(0), 0x09) => _ = table::add(SET, b, o, tree),
            (Some(0), 0x0a) => _ = table::add(GET, b, o, tree),
            (Some(1..), 0x01 | 0x02 | 0x04 | 0x05 | 0x08 | 0x0c) => {
                table::add(&[little(&SLBA, 40, 8)], b, o, tree);
                if let Some(n) = le16(b, 48) {
                    // on the wire it is one less
                    tree.add(&NLB, o + 48..o + 50, u64::from(n) + 1);
                }
            }
            _ => _ = table::add(DWORDS, b, o, tree),
        }
    }
    if b.len() < SQE {
        tree.note(o..o + b.len(), || format!("NVMe command: needs {SQE} bytes, {} are there", b.len()));
    } else if b.len() > SQE {
        let data = b.get(SQE..).unwrap_or(&[]);
        tree.add(&ICD, o + SQE..o + b.len(), data);
        if fabrics && fctype == 1 {
            table::add(CONNECT_DATA, data, o + SQE, tree);
        }
    }
}

fn sgl<'a>(b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    let Some(kind) = b.get(39) else { return };
    tree.open_header(&SGL1, o + 24..o + 40);
    tree.add(&SGL_TYPE, o + 39..o + 40, kind >> 4);
    tree.add(&SGL_SUBTYPE, o + 39..o + 40, kind & 15);
    table::add(if kind >> 4 == 4 { SGL_KEYED } else { SGL_PLAIN }, b, o, tree);
    tree.close();
}

fn completion<'a>(facts: &Facts, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    tree.open_header(&CQE_, o..o + b.len().min(CQE));
    if let Some(ns) = facts.latency {
        tree.derive(&LATENCY, crate::dissect::Value::Duration(ns));
    }
    match facts.command.as_ref().map(|c| (c.opcode, c.fctype, c.property_size)) {
        Some((FABRICS, 0x01, _)) => {
            table::add(&[little(&CQE_CNTLID, 0, 2), little(&CQE_AUTHREQ, 2, 2)], b, o, tree);
        }
        Some((FABRICS, 0x04, 0)) => _ = table::add(&[little(&CQE_VALUE4, 0, 4)], b, o, tree),
        Some((FABRICS, 0x04, _)) => _ = table::add(&[little(&CQE_VALUE8, 0, 8)], b, o, tree),
        Some((FABRICS, 0x00, _)) => {}
        Some((FABRICS, _, _)) => _ = table::add(&[little(&CQE_STS, 0, 8)], b, o, tree),
        _ => _ = table::add(&[little(&CQE_DW0, 0, 4), little(&CQE_DW1, 4, 4)], b, o, tree),
    }
    table::add(COMPLETION_TAIL, b, o, tree);
    if b.len() < CQE {
        tree.note(o..o + b.len(), || format!("NVMe completion: needs {CQE} bytes, {} are there", b.len()));
    }
    tree.close();
}

/// One line about the payload.
pub fn info(facts: &Facts, b: &[u8], out: &mut String) {
    out.push_str("NVMe ");
    words(facts, b, out);
}

// writing to a String cannot fail
fn words(facts: &Facts, b: &[u8], out: &mut String) {
    let name = |out: &mut String| match &facts.command {
        Some(c) => _ = write!(out, "{}", c.name),
        None => out.push_str("a command not captured"),
    };
    match facts.kind {
        What::Capsule => {
            let Some(c) = &facts.command else {
                out.push_str("command, cut");
                return;
            };
            let _ = write!(out, "{}", c.name);
            let _ = write!(out, " CID {:#06x}", c.cid);
            if c.opcode != FABRICS {
                if let Some(q) = facts.qid {
                    let _ = write!(out, " qid {q}");
                }
                if facts.qid.is_some_and(|q| q > 0)
                    && matches!(c.opcode, 0x01 | 0x02 | 0x05)
                    && let (Some(nsid), Some(lba), Some(n)) = (le32(b, 4), le(b, 40, 8), le16(b, 48))
                {
                    let _ = write!(out, " nsid {nsid} LBA {lba} blocks {}", u32::from(n) + 1);
                }
            }
            if b.get(39).is_some_and(|t| t >> 4 == 4)
                && let (Some(len @ 1..), Some(key)) = (le(b, 32, 3), le32(b, 35))
            {
                let _ = write!(out, " {len} bytes key {key:#010x}");
            } else if b.get(39).is_some_and(|t| *t == 0x01)
                && let Some(len @ 1..) = le(b, 32, 4)
            {
                let _ = write!(out, " {len} bytes in the capsule");
            }
        }
        What::Completion => {
            out.push_str("CQE for ");
            name(out);
            if let Some(cid) = le16(b, 12) {
                let _ = write!(out, " CID {cid:#06x}");
            }
            if let Some(status) = le16(b, 14) {
                let [code, kind] = (status >> 1).to_le_bytes();
                let kind = kind & 7;
                let _ = match status_text(kind, code) {
                    Some(t) => write!(out, ": {t}"),
                    None => write!(out, ": status type {kind} code {code:#04x}"),
                };
            }
            if let Some(ns) = facts.latency.and_then(|v| u64::try_from(v).ok()) {
                let _ = write!(out, " after {}", span_words(ns));
            }
        }
        What::InCapsuleData => {
            out.push_str("in-capsule data of ");
            name(out);
            let _ = write!(out, ", offset {}", facts.offset);
        }
        What::Data => {
            out.push_str(match facts.moved.map(|m| m.way) {
                Some(Way::ReadRequest) => "data request for ",
                _ => "data of ",
            });
            name(out);
            if let Some(c) = &facts.command {
                let _ = write!(out, " CID {:#06x}", c.cid);
            }
            let _ = write!(out, ", offset {}", facts.offset);
        }
        What::Unknown => out.push_str("data"),
    }
}
