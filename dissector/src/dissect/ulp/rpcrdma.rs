//! RPC over RDMA, version 1 (RFC 8166): XID, credits, chunk lists, then the RPC call or reply and the NFS
//! procedure. Everything is big-endian XDR.
//!
//! The position of the RPC message follows from the chunk lists; it is never looked for, and there is no record
//! mark. Wireshark's names where it has them.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use super::nfs::{self, Compound};
use super::transfer::{Buffer, Moved, Transfers, Way};
use super::xdr::Xdr;
use crate::capture::Timestamp;
use crate::dissect::table::span_words;
use crate::dissect::{Tree, Value};

/// Group of these fields.
pub const GROUP: u16 = 15;

/// Segments looked at in one message, all chunks together.
const MAX_SEGMENTS: usize = 256;
/// Calls remembered per connection.
const MAX_CALLS: usize = 1024;

type Words = Option<Cow<'static, str>>;

fn message_name(v: u64) -> Words {
    Some(
        ["RDMA_MSG", "RDMA_NOMSG", "RDMA_MSGP", "RDMA_DONE", "RDMA_ERROR"]
            .get(usize::try_from(v).ok()?)
            .copied()?
            .into(),
    )
}
fn error_name(v: u64) -> Words {
    match v {
        1 => Some("unsupported version (ERR_VERS)".into()),
        2 => Some("bad chunk list (ERR_CHUNK)".into()),
        _ => None,
    }
}
fn direction_name(v: u64) -> Words {
    match v {
        0 => Some("Call".into()),
        1 => Some("Reply".into()),
        _ => None,
    }
}
fn program_name(v: u64) -> Words {
    nfs::program_name(u32::try_from(v).ok()?).map(Into::into)
}
fn replystat_name(v: u64) -> Words {
    match v {
        0 => Some("accepted".into()),
        1 => Some("denied".into()),
        _ => None,
    }
}
fn accept_name(v: u64) -> Words {
    Some(
        [
            "RPC executed successfully",
            "remote has not exported program",
            "remote cannot support this version",
            "program cannot support procedure",
            "procedure cannot decode parameters",
            "system error",
        ]
        .get(usize::try_from(v).ok()?)
        .copied()?
        .into(),
    )
}
fn flavor_name(v: u64) -> Words {
    match v {
        0 => Some("AUTH_NULL".into()),
        1 => Some("AUTH_UNIX".into()),
        6 => Some("RPCSEC_GSS".into()),
        7 => Some("AUTH_TLS".into()),
        _ => None,
    }
}
fn procedure4_name(v: u64) -> Words {
    nfs::procedure_name(nfs::NFS, 4, u32::try_from(v).ok()?).map(Into::into)
}
fn procedure3_name(v: u64) -> Words {
    nfs::procedure_name(nfs::NFS, 3, u32::try_from(v).ok()?).map(Into::into)
}
fn opcode_name(v: u64) -> Words {
    nfs::operation_name(u32::try_from(v).ok()?).map(Into::into)
}
fn status_name(v: u64) -> Words {
    nfs::status_name(u32::try_from(v).ok()?).map(Into::into)
}

crate::fields! {
    group 15;
    RPCORDMA "rpcordma" "RPC over RDMA" None Dec {} "Transport header of RPC over RDMA.";
    XID "rpcordma.xid" "XID" U32 Hex {} "Joins call and reply.";
    VERSION "rpcordma.version" "Version" U32 Dec {} "Version of RPC over RDMA, 1.";
    CREDITS "rpcordma.flow_control" "Flow Control" U32 Dec {} "Credits: asked for in calls, granted in replies.";
    MSG_TYPE "rpcordma.msg_type" "Message Type" U32 Dec { names: Some(message_name) } "Whether the RPC message follows, is in a chunk, or something failed.";
    READS "rpcordma.reads_count" "Read list" U32 Dec {} "Read chunks: buffers that the receiver is to read.";
    WRITES "rpcordma.writes_count" "Write list" U32 Dec {} "Write chunks: buffers for the results.";
    REPLY "rpcordma.reply_count" "Reply chunk" U32 Dec {} "1 if there is a buffer for the whole reply.";
    POSITION "rpcordma.position" "Position in XDR" U32 Dec {} "Where in the message the data of the read chunk belong.";
    SEGMENTS "rpcordma.segment_count" "Write chunk segment count" U32 Dec {} "Segments of a chunk.";
    HANDLE "rpcordma.rdma_handle" "RDMA handle" U32 Hex {} "R_Key of a segment: RDMA WRITEs and READs carry it.";
    LENGTH "rpcordma.rdma_length" "RDMA length" U32 Dec {} "Bytes of a segment.";
    OFFSET "rpcordma.rdma_offset" "RDMA offset" U64 Hex {} "Address of a segment.";
    ALIGN "rpcordma.rdma_align" "RDMA align" U32 Dec {} "RDMA_MSGP: alignment.";
    THRESH "rpcordma.rdma_thresh" "RDMA threshold" U32 Dec {} "RDMA_MSGP: threshold.";
    ERRCODE "rpcordma.errcode" "Error code" U32 Dec { names: Some(error_name) } "What failed.";
    VERS_LOW "rpcordma.vers_low" "Version low" U32 Dec {} "Lowest version that the sender knows.";
    VERS_HIGH "rpcordma.vers_high" "Version high" U32 Dec {} "Highest version that the sender knows.";
    CHUNK_FRAMES "rpcordma.chunk.frames" "Frames of the chunk" Str Dec {} "Frames that moved the data of a segment.";
    CHUNK_DATA "rpcordma.chunk.data" "Chunk data" Bytes Dec {} "Data that RDMA moves into or out of a chunk.";
    CHUNK_OFFSET "rpcordma.chunk.offset" "Offset in the chunk" U64 Dec {} "Where in the segment these data belong.";
    CHUNK_CALL "rpcordma.chunk.call" "Chunk of" Str Dec {} "Procedure whose chunk it is.";
    RPC "rpc" "Remote Procedure Call" None Dec {} "RPC message.";
    RPC_XID "rpc.xid" "XID" U32 Hex {} "Joins call and reply.";
    RPC_MSGTYP "rpc.msgtyp" "Message Type" U32 Dec { names: Some(direction_name) } "Call or reply.";
    RPC_VERSION "rpc.version" "RPC Version" U32 Dec {} "2.";
    RPC_PROGRAM "rpc.program" "Program" U32 Dec { names: Some(program_name) } "Program.";
    RPC_PROGVERS "rpc.programversion" "Program Version" U32 Dec {} "Version of the program.";
    RPC_PROCEDURE "rpc.procedure" "Procedure" U32 Dec {} "Procedure.";
    RPC_FLAVOR "rpc.auth.flavor" "Flavor" U32 Dec { names: Some(flavor_name) } "Kind of credentials or verifier.";
    RPC_AUTHLEN "rpc.auth.length" "Length" U32 Dec {} "Bytes of credentials or verifier.";
    RPC_REPLYSTAT "rpc.replystat" "Reply State" U32 Dec { names: Some(replystat_name) } "Accepted or denied.";
    RPC_ACCEPT "rpc.state_accept" "Accept State" U32 Dec { names: Some(accept_name) } "What became of an accepted call.";
    RPC_REPFRAME "rpc.repframe" "This is a reply to a request in frame" U32 Dec {} "Frame of the call.";
    RPC_TIME "rpc.time" "Time from request" Duration Dec {} "Seconds from call to reply.";
    NFS_ "nfs" "Network File System" None Dec {} "NFS call or reply.";
    NFS_PROC4 "nfs.procedure_v4" "V4 Procedure" U32 Dec { names: Some(procedure4_name) } "NFSv4: NULL or COMPOUND.";
    NFS_PROC3 "nfs.procedure_v3" "V3 Procedure" U32 Dec { names: Some(procedure3_name) } "NFSv3: procedure.";
    NFS_MINOR "nfs.minorversion" "minorversion" U32 Dec {} "NFSv4: minor version.";
    NFS_OPS "nfs.ops.count" "Operations" U32 Dec {} "NFSv4: operations of the COMPOUND.";
    NFS_OPCODE "nfs.opcode" "Opcode" U32 Dec { names: Some(opcode_name) } "NFSv4: operation.";
    NFS_STATUS "nfs.status" "Status" U32 Dec { names: Some(status_name) } "What became of the call.";
    NFS_WORDS "nfs.operations" "Operations" Str Dec {} "NFSv4: operations by name, as the call had them.";
    DATA "rpcordma.data" "Data" Bytes Dec {} "Arguments or results.";
}

/// A segment of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    handle: u32,
    length: u32,
    offset: u64,
    at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Read { position: u32 },
    Write,
    Reply,
}

/// A transport header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Header {
    xid: u32,
    version: u32,
    credits: u32,
    kind: u32,
    segments: Vec<(List, Segment)>,
    /// Numbers that count chunks: place and value.
    counts: [Option<(usize, u32)>; 3],
    /// Segment counts of write and reply chunks: place and value.
    chunks: Vec<(usize, u32)>,
    error: Option<(u32, usize)>,
    /// Bytes of the header: where the RPC message begins; `None` if the header is cut or wrong.
    len: Option<usize>,
}

impl Header {
    fn read(b: &[u8]) -> Option<Self> {
        let mut x = Xdr::new(b);
        let mut h = Self { xid: x.u32()?, version: x.u32()?, credits: x.u32()?, kind: x.u32()?, ..Self::default() };
        if h.version == 1 {
            h.len = h.body(&mut x).map(|()| x.position());
        }
        Some(h)
    }

    fn body(&mut self, x: &mut Xdr<'_>) -> Option<()> {
        match self.kind {
            0..=2 => {
                if self.kind == 2 {
                    x.u64()?; // alignment and threshold
                }
                self.reads(x)?;
                self.writes(x)?;
                self.reply(x)
            }
            3 => Some(()),
            4 => {
                let at = x.position();
                let code = x.u32()?;
                self.error = Some((code, at));
                if code == 1 { x.u64().map(drop) } else { Some(()) }
            }
            _ => None,
        }
    }

    fn room(&self) -> Option<()> {
        (self.segments.len() < MAX_SEGMENTS).then_some(())
    }

    fn segment(&mut self, x: &mut Xdr<'_>, list: List) -> Option<()> {
        self.room()?;
        let at = x.position();
        let s = Segment { handle: x.u32()?, length: x.u32()?, offset: x.u64()?, at };
        self.segments.push((list, s));
        Some(())
    }

    fn reads(&mut self, x: &mut Xdr<'_>) -> Option<()> {
        let at = x.position();
        let mut n = 0;
        while x.u32()? != 0 {
            n += 1;
            self.counts[0] = Some((at, n));
            let position = x.u32()?;
            self.segment(x, List::Read { position })?;
        }
        self.counts[0] = Some((at, n));
        Some(())
    }

    fn writes(&mut self, x: &mut Xdr<'_>) -> Option<()> {
        let at = x.position();
        let mut n = 0;
        while x.u32()? != 0 {
            n += 1;
            self.counts[1] = Some((at, n));
            self.chunk(x, List::Write)?;
        }
        self.counts[1] = Some((at, n));
        Some(())
    }

    fn reply(&mut self, x: &mut Xdr<'_>) -> Option<()> {
        let at = x.position();
        let n = x.u32()?;
        self.counts[2] = Some((at, n.min(1)));
        if n != 0 { self.chunk(x, List::Reply) } else { Some(()) }
    }

    fn chunk(&mut self, x: &mut Xdr<'_>, list: List) -> Option<()> {
        // empty chunks are as many as the list says, so they count against the bound too
        if self.chunks.len() >= MAX_SEGMENTS {
            return None;
        }
        let at = x.position();
        let n = x.u32()?;
        self.chunks.push((at, n));
        for _ in 0..n {
            self.segment(x, list)?;
        }
        Some(())
    }

    /// Where in the message the first read chunk took data out, if it is not the whole message.
    fn moved(&self) -> Option<usize> {
        self.segments.iter().find_map(|(l, _)| match l {
            List::Read { position: p @ 1.. } => usize::try_from(*p).ok(),
            _ => None,
        })
    }
}

/// A call that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    program: u32,
    version: u32,
    procedure: u32,
    minor: u32,
    operations: String,
    frame: u64,
    at: Timestamp,
}

impl Call {
    /// Out of a message whose data from byte `moved` on are in a chunk; `None` if it is a reply.
    fn new(m: &Rpc<'_>, moved: Option<usize>, frame: u64, at: Timestamp) -> Option<Self> {
        let (program, version, procedure) = m.call?;
        let mut call = Self { program, version, procedure, minor: 0, operations: String::new(), frame, at };
        if call.compound() {
            let moved = moved.and_then(|p| p.checked_sub(m.rest_at));
            if let Some(c) = Compound::read(m.rest, moved, call.callback()) {
                call.minor = c.minor;
                call.operations = c.words(call.callback());
            }
        }
        Some(call)
    }

    /// `NFS v4.1 COMPOUND (SEQUENCE, PUTFH, READ)`.
    fn words(&self, out: &mut String) {
        // writing to a String cannot fail
        let _ = match nfs::program_name(self.program) {
            Some(n) => write!(out, "{n} v{}", self.version),
            None => write!(out, "program {} v{}", self.program, self.version),
        };
        if self.compound() && !self.callback() {
            let _ = write!(out, ".{}", self.minor);
        }
        let _ = match nfs::procedure_name(self.program, self.version, self.procedure) {
            Some(n) => write!(out, " {n}"),
            None => write!(out, " procedure {}", self.procedure),
        };
        if !self.operations.is_empty() {
            let _ = write!(out, " ({})", self.operations);
        }
    }

    fn compound(&self) -> bool {
        self.procedure == 1 && (self.program == nfs::NFS && self.version == 4 || self.callback())
    }

    fn callback(&self) -> bool {
        self.program == nfs::NFS_CALLBACK
    }
}

/// Calls of one connection.
#[derive(Debug, Default)]
pub struct Calls {
    known: HashMap<u32, Call, foldhash::quality::RandomState>,
    order: VecDeque<u32>,
    /// XIDs of calls that lie in a read chunk, with the frame and time of their header.
    long: VecDeque<(u32, u64, Timestamp)>,
}

/// Long calls under way that are remembered.
const MAX_LONG: usize = 64;

/// What earlier packets say about this one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    kind: What,
    call: Option<Call>,
    /// Nanoseconds from call to reply.
    time: Option<i64>,
    /// Buffers of the message's chunks that data were moved for.
    buffers: Vec<(u32, Buffer)>,
    moved: Option<Moved>,
    offset: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum What {
    #[default]
    Message,
    Continued,
    Chunk,
}

/// Parts of an RPC message that are read.
struct Rpc<'a> {
    xid: u32,
    reply: bool,
    /// Program, version, procedure of a call.
    call: Option<(u32, u32, u32)>,
    /// State of a reply, and of its acceptance.
    state: Option<u32>,
    accept: Option<u32>,
    /// Flavour and length of credentials and verifier, with their places.
    auth: Vec<(usize, u32, u32)>,
    /// Arguments or results, and where they begin.
    rest: &'a [u8],
    rest_at: usize,
}

fn rpc(b: &[u8]) -> Option<Rpc<'_>> {
    let mut x = Xdr::new(b);
    let xid = x.u32()?;
    let reply = match x.u32()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let mut r = Rpc { xid, reply, call: None, state: None, accept: None, auth: vec![], rest: &[], rest_at: b.len() };
    // what is missing at the end of a cut message is simply not there
    let _ = rpc_body(&mut x, &mut r);
    if r.call.is_some() && r.auth.len() == 2 || r.accept == Some(0) {
        r.rest_at = x.position();
        r.rest = b.get(r.rest_at..).unwrap_or(&[]);
    }
    Some(r)
}

fn rpc_body(x: &mut Xdr<'_>, r: &mut Rpc<'_>) -> Option<()> {
    let auth = |x: &mut Xdr<'_>, r: &mut Rpc<'_>| {
        let at = x.position();
        let flavor = x.u32()?;
        let body = x.opaque()?;
        r.auth.push((at, flavor, u32::try_from(body.len()).ok()?));
        Some(())
    };
    if r.reply {
        let state = x.u32()?;
        r.state = Some(state);
        if state == 0 {
            auth(x, r)?;
            r.accept = Some(x.u32()?);
        }
    } else {
        if x.u32()? != 2 {
            return None;
        }
        r.call = Some((x.u32()?, x.u32()?, x.u32()?));
        auth(x, r)?;
        auth(x, r)?;
    }
    Some(())
}

impl Calls {
    /// Calls that are remembered.
    #[expect(clippy::len_without_is_empty, reason = "a weight, nobody asks whether it is nothing")]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Takes the first packet of a SEND.
    pub fn message(&mut self, b: &[u8], frame: u64, at: Timestamp, transfers: &mut Transfers) -> Facts {
        let mut facts = Facts::default();
        let Some(h) = Header::read(b) else { return facts };
        let message = h.len.and_then(|n| b.get(n..)).filter(|_| h.kind == 0 || h.kind == 2).and_then(rpc);
        let reply = match &message {
            Some(m) => m.reply,
            // the whole message is in a chunk: a call brings a read chunk at position 0
            None => !h.segments.iter().any(|(l, _)| *l == List::Read { position: 0 }),
        };
        for (_, s) in &h.segments {
            if reply {
                if let Some(buffer) = transfers.buffer(s.handle) {
                    facts.buffers.push((s.handle, buffer));
                }
            } else {
                transfers.advertise(s.handle, h.xid, s.offset, s.length.into(), frame);
            }
        }
        if let Some(m) = &message
            && let Some(call) = Call::new(m, h.moved(), frame, at)
        {
            facts.call = Some(call.clone());
            self.remember(m.xid, call);
        } else if !reply && h.kind == 1 {
            if self.long.len() >= MAX_LONG {
                self.long.pop_front();
            }
            self.long.push_back((h.xid, frame, at));
        } else if reply {
            facts.call = self.known.get(&h.xid).cloned();
            facts.time = facts.call.as_ref().map(|c| at.since(c.at));
        }
        facts
    }

    fn remember(&mut self, xid: u32, call: Call) {
        if self.known.insert(xid, call).is_none() {
            self.order.push_back(xid);
            if self.order.len() > MAX_CALLS
                && let Some(old) = self.order.pop_front()
            {
                self.known.remove(&old);
            }
        }
    }

    /// A packet of a SEND after its first.
    pub fn continued(first: &Facts, offset: u64) -> Facts {
        Facts { kind: What::Continued, call: first.call.clone(), offset, ..Facts::default() }
    }

    /// Data that RDMA moves. The start of a long call makes it known for the rest of its chunk and for its reply.
    pub fn data(&mut self, moved: Moved, b: &[u8]) -> Facts {
        if let Some(xid) = moved.buffer.map(|b| b.tag)
            && moved.way == Way::ReadResponse
            && moved.offset == 0
            && let Some(place) = self.long.iter().position(|(x, ..)| *x == xid)
            && let Some(m) = rpc(b).filter(|m| m.xid == xid)
            && let Some((_, frame, at)) = self.long.remove(place)
            && let Some(call) = Call::new(&m, None, frame, at)
        {
            self.remember(xid, call);
        }
        let call = moved.buffer.and_then(|b| self.known.get(&b.tag)).cloned();
        Facts { kind: What::Chunk, call, offset: moved.offset, moved: Some(moved), ..Facts::default() }
    }
}

/// The message at the start of a chunk, if its first words are those of the reply to the call that named the chunk,
/// or of the call itself.
fn message_in_chunk<'a>(facts: &Facts, b: &'a [u8]) -> Option<Rpc<'a>> {
    let moved = facts.moved.filter(|m| m.way != Way::ReadRequest && m.offset == 0)?;
    let xid = moved.buffer?.tag;
    rpc(b).filter(|m| m.reply == (moved.way == Way::Write) && m.xid == xid && (m.reply || facts.call.is_some()))
}

/// What became of a call, in words with a blank or colon in front.
fn outcome(c: &Call, m: &Rpc<'_>, out: &mut String) {
    // writing to a String cannot fail
    if let Some(accept @ 1..) = m.accept {
        let _ = write!(out, ": {}", accept_name(accept.into()).unwrap_or_default());
    } else if m.state == Some(1) {
        out.push_str(": denied");
    } else if c.program == nfs::NFS
        && c.procedure != 0
        && let Some(status) = Xdr::new(m.rest).u32()
    {
        let _ = match nfs::status_name(status) {
            Some(n) => write!(out, " {n}"),
            None => write!(out, " status {status}"),
        };
    }
}

/// Adds the payload of a packet.
pub fn build<'a>(facts: &Facts, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    match facts.kind {
        What::Message => message(facts, b, o, tree),
        What::Continued | What::Chunk => {
            tree.open_header(&RPCORDMA, o..o + b.len());
            tree.label(&RPCORDMA, || {
                let mut text = String::from("RPC over RDMA: ");
                words(facts, b, &mut text);
                text
            });
            if let Some(c) = &facts.call {
                let mut text = String::new();
                c.words(&mut text);
                tree.derive(&CHUNK_CALL, text);
            }
            tree.derive(&CHUNK_OFFSET, facts.offset);
            if !b.is_empty() {
                tree.add(&CHUNK_DATA, o..o + b.len(), b);
            }
            tree.close();
            if let Some(m) = message_in_chunk(facts, b) {
                call_or_reply(facts, &Header::default(), &m, b, o, tree);
            }
        }
    }
}

fn message<'a>(facts: &Facts, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    let Some(h) = Header::read(b) else {
        tree.open_header(&RPCORDMA, o..o + b.len());
        tree.note(o..o + b.len(), || format!("RPC over RDMA: needs 16 bytes, {} are there", b.len()));
        tree.close();
        return;
    };
    let end = h.len.unwrap_or(b.len());
    tree.open_header(&RPCORDMA, o..o + end);
    for (n, (field, v)) in
        [(&XID, h.xid), (&VERSION, h.version), (&CREDITS, h.credits), (&MSG_TYPE, h.kind)].into_iter().enumerate()
    {
        tree.add(field, o + 4 * n..o + 4 * n + 4, v);
    }
    if h.kind == 2
        && let Some(v) = b.get(16..24).and_then(|b| b.first_chunk::<8>())
    {
        let v = u64::from_be_bytes(*v);
        tree.add(&ALIGN, o + 16..o + 20, v >> 32);
        tree.add(&THRESH, o + 20..o + 24, v & 0xffff_ffff);
    }
    for (n, field) in [&READS, &WRITES, &REPLY].into_iter().enumerate() {
        let Some((at, count)) = h.counts.get(n).copied().flatten() else { continue };
        tree.open(field, o + at..o + at + 4, count);
        let mine = |l: &List| match l {
            List::Read { .. } => n == 0,
            List::Write => n == 1,
            List::Reply => n == 2,
        };
        let mut chunks = h.chunks.iter().peekable();
        for (list, s) in h.segments.iter().filter(|(l, _)| mine(l)) {
            if let List::Read { position } = list {
                tree.add(&POSITION, o + s.at - 4..o + s.at, *position);
            }
            // the count stands right before the first segment of its chunk
            while chunks.peek().is_some_and(|(at, _)| *at < s.at) {
                if let Some((at, n)) = chunks.next()
                    && at + 4 == s.at
                {
                    tree.add(&SEGMENTS, o + at..o + at + 4, *n);
                }
            }
            tree.add(&HANDLE, o + s.at..o + s.at + 4, s.handle);
            tree.add(&LENGTH, o + s.at + 4..o + s.at + 8, s.length);
            tree.add(&OFFSET, o + s.at + 8..o + s.at + 16, s.offset);
            if let Some((_, buffer)) = facts.buffers.iter().find(|(k, buffer)| *k == s.handle && buffer.moved > 0) {
                tree.derive(&CHUNK_FRAMES, format!("{} to {}", buffer.frames.0, buffer.frames.1));
            }
        }
        tree.close();
    }
    if let Some((code, at)) = h.error {
        tree.add(&ERRCODE, o + at..o + at + 4, code);
        if code == 1
            && let Some(v) = b.get(at + 4..).and_then(|b| b.first_chunk::<8>())
        {
            let v = u64::from_be_bytes(*v);
            tree.add(&VERS_LOW, o + at + 4..o + at + 8, v >> 32);
            tree.add(&VERS_HIGH, o + at + 8..o + at + 12, v & 0xffff_ffff);
        }
    }
    if h.version != 1 {
        tree.note(o + 4..o + 8, || format!("version {} of RPC over RDMA is not known", h.version));
    } else if h.len.is_none() {
        tree.note(o..o + b.len(), || "the chunk lists are cut, too long or not well formed".to_owned());
    }
    tree.close();
    let Some(start) = h.len.filter(|_| h.kind == 0 || h.kind == 2) else { return };
    let body = b.get(start..).unwrap_or(&[]);
    let Some(m) = rpc(body) else {
        if !body.is_empty() {
            tree.add(&DATA, o + start..o + b.len(), body);
        }
        return;
    };
    call_or_reply(facts, &h, &m, body, o + start, tree);
}

fn call_or_reply<'a>(facts: &Facts, h: &Header, m: &Rpc<'a>, body: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    tree.open_header(&RPC, o..o + m.rest_at.min(body.len()));
    tree.add(&RPC_XID, o..o + 4, m.xid);
    tree.add(&RPC_MSGTYP, o + 4..o + 8, u32::from(m.reply));
    if let Some((program, version, procedure)) = m.call {
        tree.add(&RPC_VERSION, o + 8..o + 12, 2u32);
        tree.add(&RPC_PROGRAM, o + 12..o + 16, program);
        tree.add(&RPC_PROGVERS, o + 16..o + 20, version);
        tree.add(&RPC_PROCEDURE, o + 20..o + 24, procedure);
        if let Some(name) = nfs::procedure_name(program, version, procedure) {
            tree.label(&RPC_PROCEDURE, || format!("Procedure: {name} ({procedure})"));
        }
    } else if let Some(c) = &facts.call {
        tree.derive(&RPC_PROGRAM, c.program);
        tree.derive(&RPC_PROGVERS, c.version);
        tree.derive(&RPC_PROCEDURE, c.procedure);
    }
    if let Some(state) = m.state {
        tree.add(&RPC_REPLYSTAT, o + 8..o + 12, state);
        if let Some(c) = &facts.call {
            tree.derive(&RPC_REPFRAME, c.frame);
        }
        if let Some(ns) = facts.time {
            tree.derive(&RPC_TIME, Value::Duration(ns));
        }
    }
    for (at, flavor, len) in &m.auth {
        tree.add(&RPC_FLAVOR, o + at..o + at + 4, *flavor);
        tree.add(&RPC_AUTHLEN, o + at + 4..o + at + 8, *len);
    }
    if let Some(accept) = m.accept {
        let at = o + m.rest_at.min(body.len());
        let start = if accept == 0 { at - 4 } else { o + 20.min(body.len()) };
        tree.add(&RPC_ACCEPT, start..start + 4, accept);
    }
    tree.close();
    let Some(c) = &facts.call else { return };
    if c.program != nfs::NFS && !c.callback() {
        if !m.rest.is_empty() {
            tree.add(&DATA, o + m.rest_at..o + body.len(), m.rest);
        }
        return;
    }
    let start = o + m.rest_at;
    tree.open_header(&NFS_, start..o + body.len());
    tree.label(&NFS_, || {
        let mut text = String::new();
        c.words(&mut text);
        text
    });
    let procedure = if c.version == 3 { &NFS_PROC3 } else { &NFS_PROC4 };
    tree.derive(procedure, c.procedure);
    if m.reply {
        if c.procedure != 0
            && let Some(status) = Xdr::new(m.rest).u32()
        {
            tree.add(&NFS_STATUS, start..start + 4, status);
        }
        if c.compound() {
            tree.derive(&NFS_WORDS, c.operations.clone());
        }
    } else if c.compound() {
        let moved = h.moved().and_then(|p| p.checked_sub(m.rest_at));
        if let Some(all) = Compound::read(m.rest, moved, c.callback()) {
            let minor_at = start + 4 + tag_len(m.rest);
            tree.add(&NFS_MINOR, minor_at..minor_at + 4, all.minor);
            tree.derive(&NFS_WORDS, c.operations.clone());
            let count_at = minor_at + if c.callback() { 8 } else { 4 };
            tree.open(&NFS_OPS, count_at..count_at + 4, all.announced);
            for op in &all.operations {
                tree.add(&NFS_OPCODE, start + op.at..start + op.at + 4, op.number);
            }
            tree.close();
        }
    }
    tree.close();
}

/// Bytes of the tag with its padding.
fn tag_len(arguments: &[u8]) -> usize {
    let mut x = Xdr::new(arguments);
    x.opaque().map_or(0, |_| x.position() - 4)
}

/// One line about the payload.
pub fn info(facts: &Facts, b: &[u8], out: &mut String) {
    words(facts, b, out);
}

/// Name for the protocol column.
pub fn protocol(facts: &Facts) -> &'static str {
    match &facts.call {
        Some(c) if c.program == nfs::NFS || c.callback() => "NFS",
        _ => "RPCoRDMA",
    }
}

// writing to a String cannot fail
fn words(facts: &Facts, b: &[u8], out: &mut String) {
    let name = |out: &mut String| match &facts.call {
        Some(c) => c.words(out),
        None => out.push_str("a call not captured"),
    };
    match facts.kind {
        What::Continued => {
            out.push_str("continues ");
            name(out);
            let _ = write!(out, ", offset {}", facts.offset);
        }
        What::Chunk => {
            if let (Some(c), Some(m)) = (&facts.call, message_in_chunk(facts, b)) {
                c.words(out);
                if m.reply {
                    out.push_str(" reply");
                    outcome(c, &m, out);
                    let _ = write!(out, " in the reply chunk, offset 0 XID {:#010x}", m.xid);
                } else {
                    let _ = write!(out, " call in a read chunk, offset 0 XID {:#010x}", m.xid);
                }
                return;
            }
            out.push_str(match facts.moved.map(|m| m.way) {
                Some(Way::ReadRequest) => "reads the chunk of ",
                Some(Way::ReadResponse) => "data out of the chunk of ",
                _ => "data into the chunk of ",
            });
            name(out);
            let _ = write!(out, ", offset {}", facts.offset);
        }
        What::Message => {
            let Some(h) = Header::read(b) else {
                out.push_str("RPC over RDMA, cut");
                return;
            };
            if h.version != 1 {
                let _ = write!(out, "RPC over RDMA version {}", h.version);
                return;
            }
            if h.kind == 4 {
                let code = h.error.map_or(0, |e| e.0);
                let _ = write!(
                    out,
                    "RPC over RDMA error {code} {} XID {:#010x}",
                    error_name(code.into()).unwrap_or_default(),
                    h.xid
                );
                return;
            }
            let m = h.len.and_then(|n| b.get(n..)).filter(|_| h.kind == 0 || h.kind == 2).and_then(rpc);
            name_message(facts, &h, m.as_ref(), out);
            let _ = write!(out, " XID {:#010x}", h.xid);
            if let Some(ns) = facts.time.and_then(|v| u64::try_from(v).ok()) {
                let _ = write!(out, " after {}", span_words(ns));
            }
            if h.len.is_none() {
                out.push_str(" [chunk lists cut or not well formed]");
            }
        }
    }
}

fn name_message(facts: &Facts, h: &Header, m: Option<&Rpc<'_>>, out: &mut String) {
    let kind = message_name(h.kind.into()).unwrap_or(Cow::Borrowed("message"));
    match (&facts.call, m) {
        (Some(c), Some(m)) => {
            c.words(out);
            out.push_str(if m.reply { " reply" } else { " call" });
            if m.reply {
                outcome(c, m, out);
            }
        }
        (call, None) => {
            if let Some(c) = call {
                c.words(out);
                out.push_str(" reply");
            } else {
                let _ = write!(out, "RPC over RDMA {kind}");
            }
            if h.kind == 1 {
                let len: u64 =
                    h.segments.iter().filter(|(l, _)| *l == List::Reply).map(|(_, s)| u64::from(s.length)).sum();
                let read: u64 = h
                    .segments
                    .iter()
                    .filter(|(l, _)| matches!(l, List::Read { position: 0 }))
                    .map(|(_, s)| u64::from(s.length))
                    .sum();
                if len > 0 {
                    let _ = write!(out, " of {len} bytes in the reply chunk");
                } else if read > 0 {
                    let _ = write!(out, " call of {read} bytes in a read chunk");
                }
                let frames = facts.buffers.iter().filter(|(_, b)| b.moved > 0).map(|(_, b)| b.frames);
                if let Some((a, z)) = frames.reduce(|x, y| (x.0.min(y.0), x.1.max(y.1))) {
                    let _ = write!(out, " (frames {a} to {z})");
                }
            }
        }
        (None, Some(m)) => {
            let _ =
                write!(out, "RPC over RDMA {kind} {} of a call not captured", if m.reply { "reply" } else { "call" });
        }
    }
}
