//! Management datagrams: the common header, RMPP, and the way to the class.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::table::{self, Row, named, number, part};
use super::transport::BTH_RESERVED8;
use super::{Tree, cm, perf, sa, smp};
use crate::wire::mad::{self, Class, MAD_LEN, Mad, Method};
use crate::wire::{Bits, Packet};

/// Group of these fields.
pub const GROUP: u16 = 8;

fn byte(v: u64) -> Option<u8> {
    u8::try_from(v).ok()
}

fn class_name(v: u64) -> Option<Cow<'static, str>> {
    Some(Class(byte(v)?).name().into())
}

fn method_name(v: u64) -> Option<Cow<'static, str>> {
    Some(match Method(byte(v)?).name() {
        "reserved method" => "reserved method".into(),
        n => format!("{n}()").into(),
    })
}

fn status_name(v: u64) -> Option<Cow<'static, str>> {
    Some(mad::status_words(u16::try_from(v).ok()?).into())
}

fn rmpp_type_name(v: u64) -> Option<Cow<'static, str>> {
    Some(["not an RMPP packet", "DATA", "ACK", "STOP", "ABORT"].get(usize::try_from(v).ok()?).copied()?.into())
}

crate::fields! {
    group 8;
    MAD "infiniband.mad" "MAD Header - Common Management Datagram" Bytes Dec {} "The 256 bytes of a management datagram.";
    BASE_VERSION "infiniband.mad.baseversion" "Base Version" U8 Hex {} "Version of the common header, 1.";
    CLASS "infiniband.mad.mgmtclass" "Management Class" U8 Hex { names: Some(class_name) } "Which management this is about.";
    CLASS_VERSION "infiniband.mad.classversion" "Class Version" U8 Hex {} "Version of the class.";
    METHOD "infiniband.mad.method" "Method" U8 Hex { names: Some(method_name) } "What is asked for; the top bit marks a response.";
    STATUS "infiniband.mad.status" "Status" U16 Hex { names: Some(status_name) } "What became of the request.";
    CLASS_SPECIFIC "infiniband.mad.classspecific" "Class Specific" U16 Hex {} "Use depends on the class.";
    TRANSACTION_ID "infiniband.mad.transactionid" "Transaction ID" U64 Hex {} "Joins request and response.";
    ATTRIBUTE_ID "infiniband.mad.attributeid" "Attribute ID" U16 Hex {} "What the method is about.";
    ATTRIBUTE_MODIFIER "infiniband.mad.attributemodifier" "Attribute Modifier" U32 Hex {} "Which part of the attribute.";
    DATA "infiniband.mad.data" "MAD Data Payload" Bytes Dec {} "What follows the common header.";
    RMPP "infiniband.rmpp" "RMPP (Reliable Multi-Packet Transaction Protocol)" Bytes Dec {} "Header of transfers that take several datagrams.";
    RMPP_VERSION "infiniband.rmpp.rmppversion" "RMPP Version" U8 Hex {} "Version of RMPP, 1.";
    RMPP_TYPE "infiniband.rmpp.rmpptype" "RMPP Type" U8 Hex { names: Some(rmpp_type_name) } "0 none, 1 data, 2 ACK, 3 stop, 4 abort.";
    RMPP_RRESPTIME "infiniband.rmpp.rresptime" "R Resp Time" U8 Hex { mask: 0xf8 } "Code of the time within which an answer comes.";
    RMPP_FLAGS "infiniband.rmpp.rmppflags" "RMPP Flags" U8 Hex { mask: 0x07 } "1 active, 2 first, 4 last.";
    RMPP_STATUS "infiniband.rmpp.rmppstatus" "RMPP Status" U8 Hex {} "Reason of stop or abort.";
    RMPP_DATA1 "infiniband.rmpp.data1" "RMPP Data 1" U32 Hex {} "Use depends on the type.";
    RMPP_DATA2 "infiniband.rmpp.data2" "RMPP Data 2" U32 Hex {} "Use depends on the type.";
    RMPP_SEGMENT "infiniband.rmpp.segmentnumber" "Segment Number" U32 Hex {} "Number of the segment, from 1.";
    RMPP_PAYLOADLENGTH "infiniband.rmpp.payloadlength" "Payload Length" U32 Hex {} "First segment: bytes of the transfer; last: bytes in it.";
    RMPP_NEWWINDOWLAST "infiniband.rmpp.newwindowlast" "New Window Last" U32 Hex {} "Last segment that may be sent.";
    RMPP_TRANSFERRED "infiniband.rmpp.transferreddata" "Transferred Data" Bytes Dec {} "Data of the segment.";
    RMPP_EXTENDED "infiniband.rmpp.extendederrordata" "Optional Extended Error Data" Bytes Dec {} "Data of stop or abort.";
}

static HEADER: &[Row] = &[
    number(&BASE_VERSION, 0, 8),
    number(&CLASS, 1, 8),
    number(&CLASS_VERSION, 2, 8),
    number(&METHOD, 3, 8),
    number(&STATUS, 4, 16),
    number(&CLASS_SPECIFIC, 6, 16),
    number(&TRANSACTION_ID, 8, 64),
];

static RMPP_HEADER: &[Row] = &[
    number(&RMPP_VERSION, 0, 8),
    number(&RMPP_TYPE, 1, 8),
    part(&RMPP_RRESPTIME, 2, 0, 5),
    part(&RMPP_FLAGS, 2, 5, 3),
    number(&RMPP_STATUS, 3, 8),
];

/// Type of an RMPP packet.
pub const RMPP_TYPE_BITS: Bits = Bits::new(1, 8);
/// Bytes of an RMPP header.
pub const RMPP_LEN: usize = 12;

/// Adds a datagram that starts at `o`.
pub fn build<'a>(m: Mad<'a>, p: &Packet<'a>, o: usize, tree: &mut Tree<'a>) {
    let bytes = p.payload;
    tree.open(&MAD, o..o + bytes.len(), bytes);
    table::add(HEADER, bytes, o, tree);
    tree.add(&ATTRIBUTE_ID, o + 16..o + 18, m.attribute_id());
    if let Some(name) = m.attribute_name() {
        tree.label(&ATTRIBUTE_ID, || format!("Attribute ID: {name} ({:#06x})", m.attribute_id()));
    }
    tree.add(&BTH_RESERVED8, o + 18..o + 20, bytes.get(18..20).unwrap_or(&[]));
    tree.add(&ATTRIBUTE_MODIFIER, o + 20..o + 24, m.attribute_modifier());
    let data = o + Mad::HEADER_LEN;
    if !m.data.is_empty() {
        tree.add(&DATA, data..data + m.data.len(), m.data);
    }
    if p.payload_len != MAD_LEN {
        tree.note(o..o + bytes.len(), || {
            format!("a management datagram has {MAD_LEN} bytes, this one {}", p.payload_len)
        });
    }
    tree.close();
    match m.class() {
        Class::COM_MGT => cm::build(m, data, tree),
        Class::SUBN_LID | Class::SUBN_DIRECTED => smp::build(m, bytes, o, tree),
        Class::SUBN_ADM => sa::build(m, bytes, o, tree),
        Class::PERF => perf::build(m, data, tree),
        _ if m.class().has_rmpp() => rmpp(m.data, data, tree),
        _ => {}
    }
}

/// Adds the RMPP header at the start of `data`, and the type's own words.
pub fn rmpp<'a>(data: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    let end = o + data.len().min(RMPP_LEN);
    tree.open(&RMPP, o..end, data.get(..RMPP_LEN.min(data.len())).unwrap_or(&[]));
    table::add(RMPP_HEADER, data, o, tree);
    let words: &[Row] = match RMPP_TYPE_BITS.get(data) {
        Some(1) => &[named(&RMPP_SEGMENT, Bits::new(4, 32)), named(&RMPP_PAYLOADLENGTH, Bits::new(8, 32))],
        Some(2) => &[named(&RMPP_SEGMENT, Bits::new(4, 32)), named(&RMPP_NEWWINDOWLAST, Bits::new(8, 32))],
        _ => &[named(&RMPP_DATA1, Bits::new(4, 32)), named(&RMPP_DATA2, Bits::new(8, 32))],
    };
    table::add(words, data, o, tree);
    let rest = match RMPP_TYPE_BITS.get(data) {
        Some(1) => Some(&RMPP_TRANSFERRED),
        Some(3 | 4) => Some(&RMPP_EXTENDED),
        _ => None,
    };
    if let Some(field) = rest
        && let Some(rest) = data.get(RMPP_LEN..).filter(|r| !r.is_empty())
    {
        tree.add(field, o + RMPP_LEN..o + data.len(), rest);
    }
    tree.close();
}

/// One line about a datagram: class, method, attribute.
pub fn info(m: Mad<'_>, out: &mut String) {
    // writing to a String cannot fail
    if m.class() == Class::COM_MGT && cm::info(m, out) {
        return;
    }
    let _ = write!(out, "{} {}", m.class().short(), m.method().name());
    let _ = match m.attribute_name() {
        Some(name) => write!(out, " {name}"),
        None => write!(out, " attribute {:#06x}", m.attribute_id()),
    };
    if m.attribute_modifier() != 0 {
        let _ = write!(out, " modifier {:#x}", m.attribute_modifier());
    }
    let status = m.status() & 0x7fff;
    if status != 0 && m.method().0 & 0x80 != 0 {
        let _ = write!(out, " status {status:#06x} ({})", mad::status_words(status));
    }
}
