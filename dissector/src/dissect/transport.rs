//! `infiniband.*`: LRH, GRH, BTH, extended headers, payload, pad, ICRC.

use std::borrow::Cow;

use super::{Input, Tree};
use crate::frame::{Encapsulation, Frame, LayerKind};
use crate::wire::aeth::{Verdict, credits, rnr_timer_10us};
use crate::wire::bytes::be16;
use crate::wire::{Bth, Grh, Header, Lrh, NakCode, Op, Packet, Stop, Transport};

/// Group of these fields.
pub const GROUP: u16 = 6;

fn byte(v: u64) -> Option<u8> {
    u8::try_from(v).ok()
}

/// Name of an opcode; those without a row say whose they are.
pub fn opcode_name(v: u64) -> Option<Cow<'static, str>> {
    let b = byte(v)?;
    Some(match Op::of(b) {
        Some(op) => Cow::Borrowed(op.name),
        None if Transport::of(b) == Transport::Manufacturer => Cow::Borrowed("manufacturer specific"),
        None => Cow::Owned(format!("{} reserved opcode", Transport::of(b).name())),
    })
}

/// Wireshark's name of an opcode, and the name without the transport's long form.
fn opcode_alias(v: u64) -> Option<Cow<'static, str>> {
    let op = Op::of(byte(v)?)?;
    let long = match op.transport {
        Transport::Rc => "Reliable Connection (RC)",
        Transport::Uc => "Unreliable Connection (UC)",
        Transport::Rd => "Reliable Datagram (RD)",
        Transport::Ud => "Unreliable Datagram (UD)",
        Transport::Xrc => "Extended Reliable Connection (XRC)",
        _ => return None,
    };
    let operation = op.name.strip_prefix(op.transport.name())?.trim_start();
    Some(format!("{long} - {operation}").into())
}

fn syndrome_name(v: u64) -> Option<Cow<'static, str>> {
    Some(syndrome_words(byte(v)?).into())
}

/// What a syndrome says, in words.
pub fn syndrome_words(syndrome: u8) -> String {
    match crate::wire::Syndrome(syndrome).verdict() {
        Verdict::Ack(31) => "ACK".to_owned(),
        Verdict::Ack(code) => format!("ACK, {} credits", credits(code).unwrap_or(0)),
        Verdict::Rnr(code) => format!("RNR NAK, wait {}", timer_text(code)),
        Verdict::Reserved(v) => format!("reserved kind, value {v}"),
        Verdict::Nak(NakCode::Reserved(v)) => format!("NAK, reserved code {v}"),
        Verdict::Nak(code) => format!("NAK, {}", code.name()),
    }
}

fn timer_text(code: u8) -> String {
    let t = rnr_timer_10us(code);
    format!("{}.{:02} ms", t / 100, t % 100)
}

fn timer_name(v: u64) -> Option<Cow<'static, str>> {
    byte(v).filter(|v| *v < 32).map(|v| timer_text(v).into())
}

fn kind_name(v: u64) -> Option<Cow<'static, str>> {
    Some(["Ack", "RNR Nak", "Reserved", "Nak"].get(usize::try_from(v).ok()?).copied()?.into())
}

fn credit_name(v: u64) -> Option<Cow<'static, str>> {
    let code = byte(v).filter(|v| *v < 32)?;
    Some(credits(code).map_or(Cow::Borrowed("no credits are counted"), |n| format!("{n} credits").into()))
}

fn error_name(v: u64) -> Option<Cow<'static, str>> {
    match NakCode::of(byte(v).filter(|v| *v < 32)?) {
        NakCode::Reserved(_) => None,
        code => Some(code.name().into()),
    }
}

fn lnh_name(v: u64) -> Option<Cow<'static, str>> {
    Some(["raw", "IPv6 without IBA transport", "BTH", "GRH"].get(usize::try_from(v).ok()?).copied()?.into())
}

fn selectivity_name(v: u64) -> Option<Cow<'static, str>> {
    match v {
        0 => Some("memory region range".into()),
        1 => Some("whole memory region".into()),
        _ => None,
    }
}

fn placement_name(v: u64) -> Option<Cow<'static, str>> {
    match v {
        1 => Some("global visibility".into()),
        2 => Some("persistence".into()),
        3 => Some("global visibility, persistence".into()),
        _ => None,
    }
}

fn qp_name(v: u64) -> Option<Cow<'static, str>> {
    match v {
        0 => Some("SMI".into()),
        1 => Some("GSI".into()),
        0xff_ffff => Some("multicast".into()),
        _ => None,
    }
}

crate::fields! {
    group 6;
    INFINIBAND "infiniband" "InfiniBand" None Dec {} "InfiniBand transport: BTH through ICRC, with LRH and GRH where they are.";
    LRH "infiniband.lrh" "Local Route Header" Bytes Dec {} "Local routing header of native InfiniBand.";
    LRH_VL "infiniband.lrh.vl" "Virtual Lane" U8 Hex { mask: 0xf0 } "Virtual lane.";
    LRH_LVER "infiniband.lrh.lver" "Link Version" U8 Dec { mask: 0x0f } "Link version.";
    LRH_SL "infiniband.lrh.sl" "Service Level" U8 Dec { mask: 0xf0 } "Service level.";
    LRH_RESERVED2 "infiniband.lrh.reserved2" "Reserved (2 bits)" U8 Dec { mask: 0x0c } "Reserved.";
    LRH_LNH "infiniband.lrh.lnh" "Link Next Header" U8 Hex { mask: 0x03, names: Some(lnh_name) } "What follows the LRH.";
    LRH_DLID "infiniband.lrh.dlid" "Destination Local ID" U16 Dec {} "Destination LID.";
    LRH_RESERVED5 "infiniband.lrh.reserved5" "Reserved (5 bits)" U16 Dec { mask: 0xf800 } "Reserved.";
    LRH_PKTLEN "infiniband.lrh.pktlen" "Packet Length" U16 Dec { mask: 0x07ff } "Four-byte words from LRH through ICRC.";
    LRH_SLID "infiniband.lrh.slid" "Source Local ID" U16 Dec {} "Source LID.";
    GRH "infiniband.grh" "Global Route Header" Bytes Dec {} "Global routing header of RoCEv1 and native InfiniBand.";
    GRH_IPVER "infiniband.grh.ipver" "IP Version" U8 Dec { mask: 0xf0 } "6.";
    GRH_TCLASS "infiniband.grh.tclass" "Traffic Class" U16 Dec { mask: 0x0ff0 } "Traffic class.";
    GRH_FLOWLABEL "infiniband.grh.flowlabel" "Flow Label" U32 Dec { mask: 0x000f_ffff } "Flow label.";
    GRH_PAYLEN "infiniband.grh.paylen" "Payload Length" U16 Dec {} "Bytes behind the GRH up to and including the ICRC.";
    GRH_NXTHDR "infiniband.grh.nxthdr" "Next Header" U8 Dec {} "27: BTH follows.";
    GRH_HOPLMT "infiniband.grh.hoplmt" "Hop Limit" U8 Dec {} "Hops left.";
    GRH_SGID "infiniband.grh.sgid" "Source GID" Ipv6 Dec {} "Source GID.";
    GRH_DGID "infiniband.grh.dgid" "Destination GID" Ipv6 Dec {} "Destination GID.";
    BTH "infiniband.bth" "Base Transport Header" Bytes Dec {} "Base transport header.";
    BTH_OPCODE "infiniband.bth.opcode" "Opcode" U8 Dec { names: Some(opcode_name), aliases: Some(opcode_alias) } "Transport service and operation.";
    BTH_SE "infiniband.bth.se" "Solicited Event" Bool Dec { mask: 0x80 } "The receiver's completion shall raise an event.";
    BTH_M "infiniband.bth.m" "MigReq" Bool Dec { mask: 0x40 } "Migration state; senders differ, harmlessly.";
    BTH_PADCNT "infiniband.bth.padcnt" "Pad Count" U8 Dec { mask: 0x30 } "Pad bytes between payload and ICRC.";
    BTH_TVER "infiniband.bth.tver" "Header Version" U8 Dec { mask: 0x0f } "Version of the transport header, 0.";
    BTH_P_KEY "infiniband.bth.p_key" "Partition Key" U16 Dec {} "Partition; the top bit says full member.";
    BTH_RESERVED8 "infiniband.reserved" "Reserved" Bytes Dec {} "Reserved bytes; in BTH the byte that holds FECN and BECN.";
    BTH_FECN "infiniband.bth.fecn" "FECN" Bool Dec { mask: 0x80 } "Forward congestion notification.";
    BTH_BECN "infiniband.bth.becn" "BECN" Bool Dec { mask: 0x40 } "Backward congestion notification: set in a CNP.";
    BTH_RESV6 "infiniband.bth.reserved6" "Reserved (6 bits)" U8 Dec { mask: 0x3f } "Reserved bits beside FECN and BECN; some hardware sets one.";
    BTH_DESTQP "infiniband.bth.destqp" "Destination Queue Pair" U24 Hex { names: Some(qp_name) } "Queue pair that the packet is for.";
    BTH_A "infiniband.bth.a" "Acknowledge Request" Bool Dec { mask: 0x80 } "The sender asks for an acknowledge.";
    BTH_RESERVED7 "infiniband.bth.reserved7" "Reserved (7 bits)" U8 Dec { mask: 0x7f } "Reserved.";
    BTH_PSN "infiniband.bth.psn" "Packet Sequence Number" U24 Dec {} "Packet sequence number, modulo 2^24.";
    RDETH "infiniband.rdeth" "RDETH - Reliable Datagram Extended Transport Header" Bytes Dec {} "Reliable datagram header.";
    RDETH_EECNXT "infiniband.rdeth.eecnxt" "E2E Context" U24 Dec {} "End-to-end context.";
    DETH "infiniband.deth" "DETH - Datagram Extended Transport Header" Bytes Dec {} "Datagram header.";
    DETH_Q_KEY "infiniband.deth.q_key" "Queue Key" U32 Hex {} "Key that the receiving queue pair asks for.";
    DETH_SRCQP "infiniband.deth.srcqp" "Source Queue Pair" U32 Hex { names: Some(qp_name) } "Queue pair that sent the datagram.";
    XRCETH "infiniband.xrceth" "XRCETH - XRC Extended Transport Header" Bytes Dec {} "XRC header.";
    XRCETH_SRQ "infiniband.xrceth.xrcsrq" "XRC Shared Receive Queue" U24 Hex {} "Receive queue that the message is for.";
    RETH "infiniband.reth" "RETH - RDMA Extended Transport Header" Bytes Dec {} "RDMA header.";
    RETH_VA "infiniband.reth.va" "Virtual Address" U64 Hex {} "Address in the responder's memory.";
    RETH_R_KEY "infiniband.reth.r_key" "Remote Key" U32 Hex {} "Key of the responder's memory region.";
    RETH_DMALEN "infiniband.reth.dmalen" "DMA Length" U32 Dec {} "Bytes of the whole message.";
    ATOMICETH "infiniband.atomiceth" "AtomicETH - Atomic Extended Transport Header" Bytes Dec {} "Atomic request.";
    ATOMICETH_SWAPDT "infiniband.atomiceth.swapdt" "Swap (Or Add) Data" U64 Dec {} "Value to write or to add.";
    ATOMICETH_CMPDT "infiniband.atomiceth.cmpdt" "Compare Data" U64 Dec {} "Value to compare with.";
    AETH "infiniband.aeth" "AETH - ACK Extended Transport Header" Bytes Dec {} "Acknowledge header.";
    AETH_SYNDROME "infiniband.aeth.syndrome" "Syndrome" U8 Dec { names: Some(syndrome_name) } "ACK, RNR NAK or NAK, and why.";
    AETH_RESERVED "infiniband.aeth.syndrome.reserved" "Reserved" U8 Dec { mask: 0x80 } "Reserved bit.";
    AETH_OPCODE "infiniband.aeth.syndrome.opcode" "OpCode" U8 Dec { mask: 0x60, names: Some(kind_name) } "Kind: 0 ACK, 1 RNR NAK, 3 NAK.";
    AETH_CREDIT "infiniband.aeth.syndrome.credit_count" "Credit Count" U8 Dec { mask: 0x1f, names: Some(credit_name) } "Code of the credits in an ACK; 31: none are counted.";
    AETH_TIMER "infiniband.aeth.syndrome.timer" "Timer" U8 Dec { mask: 0x1f, names: Some(timer_name) } "Code of the time to wait after an RNR NAK; 0 is the longest.";
    AETH_RESERVED_VALUE "infiniband.aeth.syndrome.reserved_value" "Reserved" U8 Dec { mask: 0x1f } "Value of the reserved kind.";
    AETH_ERROR "infiniband.aeth.syndrome.error_code" "Error Code" U8 Dec { mask: 0x1f, names: Some(error_name) } "Reason of a NAK.";
    AETH_MSN "infiniband.aeth.msn" "Message Sequence Number" U24 Dec {} "Messages that the responder has completed, modulo 2^24.";
    ATOMICACKETH "infiniband.atomicacketh" "AtomicAckETH - Atomic ACK Extended Transport Header" Bytes Dec {} "Answer to an atomic request.";
    ATOMICACKETH_ORIGREMDT "infiniband.atomicacketh.origremdt" "Original Remote Data" U64 Dec {} "What the memory held before.";
    IMMDT "infiniband.immdt" "Immediate Data" Bytes Dec {} "Four bytes that the application chose.";
    IETH "infiniband.ieth" "RKey" Bytes Dec {} "Key that the receiver shall invalidate.";
    FETH "infiniband.feth" "FETH - FLUSH Extended Transport Header" Bytes Dec {} "FLUSH header.";
    FETH_RESERVED "infiniband.feth.reserved26" "Reserved (26 bits)" U32 Dec { mask: 0xffff_ffc0 } "Reserved.";
    FETH_SEL "infiniband.feth.sel" "Selectivity Level" U32 Dec { mask: 0x0000_0030, names: Some(selectivity_name) } "What is flushed: 0 the range of the RETH, 1 the whole memory region.";
    FETH_PLT "infiniband.feth.plt" "Placement Type" U32 Dec { mask: 0x0000_000f, names: Some(placement_name) } "Bit 0 global visibility, bit 1 persistence.";
    CNP "infiniband.cnp.reserved" "Reserved" Bytes Dec {} "The 16 reserved bytes of a CNP.";
    VENDOR "infiniband.vendor" "Unknown/Vendor Specific Data" Bytes Dec {} "What follows the BTH of an opcode whose layout is not known, without the ICRC.";
    PAYLOAD "infiniband.payload" "Payload" Bytes Dec { hidden: true } "Payload, without pad.";
    DATA "data" "Data" None Dec {} "Payload that nothing takes apart.";
    DATA_DATA "data.data" "Data" Bytes Dec {} "Bytes of that payload.";
    DATA_LEN "data.len" "Length" I64 Dec {} "How many were captured.";
    PAD "infiniband.pad" "Pad" Bytes Dec {} "Pad bytes between payload and ICRC.";
    INVARIANT_CRC "infiniband.invariant.crc" "Invariant CRC" U32 Hex {} "The four bytes of the ICRC, read big-endian.";
    VARIANT_CRC "infiniband.variant.crc" "Variant CRC" U16 Hex {} "VCRC of native InfiniBand.";
}

/// Adds the transport's fields.
pub fn build<'a>(input: &Input<'_, 'a>, tree: &mut Tree<'a>) {
    let frame = input.frame;
    let routing = frame.layers.as_slice().iter().find(|l| matches!(l.kind, LayerKind::Lrh | LayerKind::Grh));
    let Some(start) = frame.transport.map(|t| t.start).or(routing.map(|l| l.start as usize)) else { return };
    let first = routing.map_or(start, |l| l.start as usize);
    let end = frame.transport.map_or(frame.bytes.len(), |t| t.start + t.declared).min(frame.bytes.len()).max(first);
    tree.open_header(&INFINIBAND, first..end);
    for l in frame.layers.as_slice() {
        match l.kind {
            LayerKind::Lrh => lrh(frame, l.start as usize, tree),
            LayerKind::Grh => grh(frame, l.start as usize, tree),
            _ => {}
        }
    }
    let mut plain = false;
    match input.packet {
        None => {}
        Some(Err(stop)) => tree.note(start.min(end)..end, || stop_words(stop, frame)),
        Some(Ok(p)) => plain = transport(input, p, start, tree),
    }
    tree.close();
    if plain && let Some(p) = input.roce() {
        data(p, start + Bth::LEN + p.headers_len, tree);
    }
}

/// `RETH: needs 16 bytes, 9 captured (frame cut at 74 of 1098)`.
pub fn stop_words(stop: &Stop, frame: &Frame<'_>) -> String {
    let cut = format!("(frame cut at {} of {})", frame.bytes.len(), frame.wire_len);
    match stop {
        Stop::Truncated(s) => format!("{}: needs {} bytes, {} captured {cut}", s.header.name(), s.needed, s.available),
        Stop::TooShort(s) => {
            format!("{}: needs {} bytes, the packet has {} for it", s.header.name(), s.needed, s.available)
        }
        Stop::PayloadCut { declared, captured } => format!("payload: {declared} bytes, {captured} captured {cut}"),
        Stop::PadTooLong => "pad count is larger than what follows the headers".to_owned(),
        Stop::Excess(n) => format!("{n} bytes follow where the opcode has no payload"),
    }
}

fn lrh<'a>(frame: &Frame<'a>, o: usize, tree: &mut Tree<'a>) {
    let Some(bytes) = frame.bytes.get(o..) else { return };
    let Some(h) = bytes.first_chunk::<{ Lrh::LEN }>() else { return };
    let l = Lrh(h);
    tree.open(&LRH, o..o + Lrh::LEN, h.as_slice());
    tree.add(&LRH_VL, o..o + 1, l.vl());
    tree.add(&LRH_LVER, o..o + 1, l.lver());
    tree.add(&LRH_SL, o + 1..o + 2, l.sl());
    tree.add(&LRH_RESERVED2, o + 1..o + 2, l.resv2());
    tree.add(&LRH_LNH, o + 1..o + 2, l.lnh());
    tree.add(&LRH_DLID, o + 2..o + 4, l.dlid());
    tree.add(&LRH_RESERVED5, o + 4..o + 6, l.resv5());
    tree.add(&LRH_PKTLEN, o + 4..o + 6, l.pkt_len());
    tree.add(&LRH_SLID, o + 6..o + 8, l.slid());
    tree.close();
}

fn grh<'a>(frame: &Frame<'a>, o: usize, tree: &mut Tree<'a>) {
    let Some(bytes) = frame.bytes.get(o..) else { return };
    let Some(h) = bytes.first_chunk::<{ Grh::LEN }>() else { return };
    let g = Grh(h);
    tree.open(&GRH, o..o + Grh::LEN, h.as_slice());
    tree.add(&GRH_IPVER, o..o + 1, g.ip_ver());
    tree.add(&GRH_TCLASS, o..o + 2, g.traffic_class());
    tree.add(&GRH_FLOWLABEL, o..o + 4, g.flow_label());
    tree.add(&GRH_PAYLEN, o + 4..o + 6, g.pay_len());
    tree.add(&GRH_NXTHDR, o + 6..o + 7, g.next_header());
    tree.add(&GRH_HOPLMT, o + 7..o + 8, g.hop_limit());
    tree.add(&GRH_SGID, o + 8..o + 24, *g.sgid());
    tree.add(&GRH_DGID, o + 24..o + 40, *g.dgid());
    tree.close();
}

/// BTH through ICRC; whether the payload is plain data, which is a layer of its own.
fn transport<'a>(input: &Input<'_, 'a>, p: &Packet<'a>, start: usize, tree: &mut Tree<'a>) -> bool {
    let frame = input.frame;
    bth(p.bth, start, tree);
    let mut o = start + Bth::LEN;
    let data_end = o + p.headers_len;
    for header in p.op.map_or(&[][..], |op| op.headers) {
        if o >= data_end {
            break; // the packet was cut before this one
        }
        extended(*header, p, o, tree);
        o += header.len();
    }
    if let Some(stop) = &p.stop
        && matches!(stop, Stop::Truncated(s) | Stop::TooShort(s) if s.header != Header::Icrc)
    {
        tree.note(o.min(frame.bytes.len())..frame.bytes.len(), || stop_words(stop, frame));
        return false;
    }
    let payload_end = o + p.payload.len();
    let mut plain = false;
    if !p.payload.is_empty() {
        let field = if p.op.is_some() { &PAYLOAD } else { &VENDOR };
        tree.add(field, o..payload_end, p.payload);
    }
    // a READ request has no payload and may still be part of a protocol on top
    if above(tree) {
        let taken = p.op.is_some() && super::ulp::build(input, p, o, tree);
        plain = p.op.is_some() && !p.payload.is_empty() && !taken;
    }
    if p.pad > 0 {
        let pad = frame.slice(payload_end..payload_end + p.pad);
        if !pad.is_empty() && p.payload.len() == p.payload_len {
            tree.add(&PAD, payload_end..payload_end + pad.len(), pad);
        }
    }
    if let Some(stop) = &p.stop {
        tree.note(payload_end.min(frame.bytes.len())..frame.bytes.len(), || stop_words(stop, frame));
    }
    let Some(t) = frame.transport else { return plain };
    let end = t.start + t.declared;
    if let Some(icrc) = p.icrc {
        tree.add(&INVARIANT_CRC, end - Header::Icrc.len()..end, u32::from_be_bytes(*icrc));
        if t.encapsulation == Encapsulation::Native
            && let Some(v) = frame.bytes.get(end..).and_then(|b| b.first_chunk::<2>())
        {
            tree.add(&VARIANT_CRC, end..end + 2, be16::<0, 2>(v));
        }
    }
    plain
}

/// Whether anybody asks what the payload is.
fn above(tree: &Tree<'_>) -> bool {
    super::ulp::GROUPS.iter().any(|g| tree.wants_group(*g)) || tree.wants_any(&[&DATA, &DATA_DATA, &DATA_LEN])
}

/// Payload of which nothing more is known.
fn data<'a>(p: &Packet<'a>, o: usize, tree: &mut Tree<'a>) {
    let end = o + p.payload.len();
    tree.open_header(&DATA, o..end);
    tree.label(&DATA, || format!("Data ({} bytes)", p.payload_len));
    tree.add(&DATA_DATA, o..end, p.payload);
    tree.derive(&DATA_LEN, super::Value::Int(i64::try_from(p.payload.len()).unwrap_or(i64::MAX)));
    tree.close();
}

fn bth<'a>(b: Bth<'a>, o: usize, tree: &mut Tree<'a>) {
    tree.open(&BTH, o..o + Bth::LEN, b.0.as_slice());
    tree.add(&BTH_OPCODE, o..o + 1, b.opcode());
    tree.label(&BTH_OPCODE, || {
        let op = b.opcode();
        format!("Opcode: {} ({op}, {op:#04x})", opcode_name(op.into()).unwrap_or_default())
    });
    tree.add(&BTH_SE, o + 1..o + 2, b.solicited());
    tree.add(&BTH_M, o + 1..o + 2, b.mig_req());
    tree.add(&BTH_PADCNT, o + 1..o + 2, b.pad_count());
    tree.add(&BTH_TVER, o + 1..o + 2, b.tver());
    if b.tver() != 0 {
        tree.note(o + 1..o + 2, || format!("transport header version {}: the standard knows only 0", b.tver()));
    }
    tree.add(&BTH_P_KEY, o + 2..o + 4, b.p_key().0);
    tree.label(&BTH_P_KEY, || {
        let member = if b.p_key().is_full() { "full" } else { "limited" };
        format!("Partition Key: {} ({:#06x}, {member} member)", b.p_key().0, b.p_key().0)
    });
    let [_, _, _, _, resv8, ..] = b.0;
    tree.open(&BTH_RESERVED8, o + 4..o + 5, std::slice::from_ref(resv8));
    tree.add(&BTH_FECN, o + 4..o + 5, b.fecn());
    tree.add(&BTH_BECN, o + 4..o + 5, b.becn());
    tree.add(&BTH_RESV6, o + 4..o + 5, b.resv6());
    tree.close();
    tree.add(&BTH_DESTQP, o + 5..o + 8, b.dest_qp().get());
    tree.add(&BTH_A, o + 8..o + 9, b.ack_req());
    tree.add(&BTH_RESERVED7, o + 8..o + 9, b.resv7());
    tree.add(&BTH_PSN, o + 9..o + 12, b.psn().get());
    tree.label(&BTH_PSN, || format!("Packet Sequence Number: {0} ({0:#08x})", b.psn().get()));
    tree.close();
}

fn extended<'a>(header: Header, p: &Packet<'a>, o: usize, tree: &mut Tree<'a>) {
    let end = o + header.len();
    match header {
        Header::Rdeth => {
            let Some(h) = p.ext.rdeth else { return };
            tree.open(&RDETH, o..end, h.0.as_slice());
            tree.add(&BTH_RESERVED8, o..o + 1, h.0.get(..1).unwrap_or(&[]));
            tree.add(&RDETH_EECNXT, o + 1..end, h.ee_context());
        }
        Header::Deth => {
            let Some(h) = p.ext.deth else { return };
            tree.open(&DETH, o..end, h.0.as_slice());
            tree.add(&DETH_Q_KEY, o..o + 4, h.q_key());
            tree.add(&BTH_RESERVED8, o + 4..o + 5, h.0.get(4..5).unwrap_or(&[]));
            tree.add(&DETH_SRCQP, o + 5..end, h.src_qp().get());
        }
        Header::XrcEth => {
            let Some(h) = p.ext.xrceth else { return };
            tree.open(&XRCETH, o..end, h.0.as_slice());
            tree.add(&BTH_RESERVED8, o..o + 1, h.0.get(..1).unwrap_or(&[]));
            tree.add(&XRCETH_SRQ, o + 1..end, h.srq());
        }
        Header::Reth => {
            let Some(h) = p.ext.reth else { return };
            tree.open(&RETH, o..end, h.0.as_slice());
            tree.add(&RETH_VA, o..o + 8, h.va());
            tree.add(&RETH_R_KEY, o + 8..o + 12, h.r_key());
            tree.add(&RETH_DMALEN, o + 12..end, h.dma_len());
        }
        Header::AtomicEth => {
            let Some(h) = p.ext.atomic else { return };
            tree.open(&ATOMICETH, o..end, h.0.as_slice());
            tree.add(&RETH_VA, o..o + 8, h.va());
            tree.add(&RETH_R_KEY, o + 8..o + 12, h.r_key());
            tree.add(&ATOMICETH_SWAPDT, o + 12..o + 20, h.swap_add());
            tree.add(&ATOMICETH_CMPDT, o + 20..end, h.compare());
        }
        Header::Aeth => {
            let Some(h) = p.ext.aeth else { return };
            let s = h.syndrome();
            tree.open(&AETH, o..end, h.0.as_slice());
            tree.open(&AETH_SYNDROME, o..o + 1, s.0);
            tree.add(&AETH_RESERVED, o..o + 1, s.0 >> 7);
            tree.add(&AETH_OPCODE, o..o + 1, (s.0 >> 5) & 3);
            let field = match s.verdict() {
                Verdict::Ack(_) => &AETH_CREDIT,
                Verdict::Rnr(_) => &AETH_TIMER,
                Verdict::Reserved(_) => &AETH_RESERVED_VALUE,
                Verdict::Nak(_) => &AETH_ERROR,
            };
            tree.add(field, o..o + 1, s.0 & 0x1f);
            tree.close();
            tree.add(&AETH_MSN, o + 1..end, h.msn());
        }
        Header::AtomicAckEth => {
            let Some(h) = p.ext.atomic_ack else { return };
            tree.open(&ATOMICACKETH, o..end, h.0.as_slice());
            tree.add(&ATOMICACKETH_ORIGREMDT, o..end, h.original());
        }
        Header::ImmDt => {
            let Some(h) = p.ext.immdt else { return };
            tree.open(&IMMDT, o..end, h.0.as_slice());
            tree.label(&IMMDT, || format!("ImmDt - Immediate Data: {:#010x}", h.value()));
        }
        Header::Ieth => {
            let Some(h) = p.ext.ieth else { return };
            tree.open(&IETH, o..end, h.0.as_slice());
            tree.label(&IETH, || format!("IETH - R_Key to invalidate: {:#010x}", h.r_key()));
        }
        Header::Feth => {
            let Some(h) = p.ext.feth else { return };
            tree.open(&FETH, o..end, h.0.as_slice());
            tree.add(&FETH_RESERVED, o..end, u32::from_be_bytes(*h.0) >> 6);
            tree.add(&FETH_SEL, o..end, h.selectivity());
            tree.add(&FETH_PLT, o..end, h.placement());
        }
        Header::CnpPad => {
            let Some(h) = p.ext.cnp else { return };
            tree.open(&CNP, o..end, h.as_slice());
        }
        Header::Lrh | Header::Grh | Header::Bth | Header::Icrc => return,
    }
    tree.close();
}
