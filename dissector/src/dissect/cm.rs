//! Communication management: REQ, REP, REJ and the rest, with Wireshark's names; those it does not decode
//! (MRA, SIDR, LAP, APR) have names in the same spirit.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::Tree;
use super::table::{self, At, Row, bytes, named, span_words};
use super::transport::BTH_RESERVED8;
use crate::wire::bits::bytes_at;
use crate::wire::cm::{
    self, ConnectionType, Kind, LOCAL_COMM_ID, Message, REMOTE_COMM_ID, apr, dreq, ip_cm, lap, mra, rej, rep, req,
    sidr_rep, sidr_req,
};
use crate::wire::mad::{self, Mad};

/// Group of these fields.
pub const GROUP: u16 = 9;

type Words = Option<Cow<'static, str>>;

fn byte(v: u64) -> Option<u8> {
    u8::try_from(v).ok()
}

/// Code of a time, 4.096 µs · 2^n.
pub(super) fn time_name(v: u64) -> Words {
    byte(v).filter(|v| *v < 32).map(|v| span_words(mad::timeout_ns(v)).into())
}

fn ack_timeout_name(v: u64) -> Words {
    if v == 0 { Some("none: waits for ever".into()) } else { time_name(v) }
}

/// Code of a path MTU.
pub(super) fn mtu_name(v: u64) -> Words {
    Some(mad::mtu_bytes(byte(v)?).map_or(Cow::Borrowed("reserved"), |n| format!("{n} bytes").into()))
}

/// Code of a static rate.
pub(super) fn rate_name(v: u64) -> Words {
    let m = mad::rate_mbps(byte(v)?)?;
    Some(
        if m % 1000 == 0 { format!("{} Gbit/s", m / 1000) } else { format!("{}.{} Gbit/s", m / 1000, m % 1000 / 100) }
            .into(),
    )
}

fn rnr_name(v: u64) -> Words {
    (v == 7).then_some("endless".into())
}

fn type_name(v: u64) -> Words {
    Some(["RC", "UC", "RD", "see Extended Transport"].get(usize::try_from(v).ok()?).copied()?.into())
}

fn extended_name(v: u64) -> Words {
    (v == 1).then_some("XRC".into())
}

fn failover_name(v: u64) -> Words {
    Some(["accepted", "not supported", "rejected", "reserved"].get(usize::try_from(v).ok()?).copied()?.into())
}

fn reason_name(v: u64) -> Words {
    Some(cm::reject_reason(u16::try_from(v).ok()?).into())
}

fn rejected_name(v: u64) -> Words {
    Some(cm::rejected_message(byte(v)?).into())
}

fn mraed_name(v: u64) -> Words {
    Some(cm::acknowledged_message(byte(v)?).into())
}

fn sidr_name(v: u64) -> Words {
    Some(cm::sidr_status(byte(v)?).into())
}

fn apr_name(v: u64) -> Words {
    Some(cm::apr_status(byte(v)?).into())
}

fn protocol_name(v: u64) -> Words {
    match v {
        6 => Some("TCP port space".into()),
        17 => Some("UDP port space".into()),
        0x3f => Some("IB port space".into()),
        _ => None,
    }
}

fn port_name(v: u64) -> Words {
    let port = u16::try_from(v).ok()?;
    let service = crate::service::DecodeAs::default().of_service_id(cm::ServiceId::ip(6, port));
    Some(service.map_or_else(|| format!("{port}"), |s| format!("{port}, {s}")).into())
}

fn plain_port_name(v: u64) -> Words {
    u16::try_from(v).ok().map(|port| port.to_string().into())
}

crate::fields! {
    group 9;
    CM "infiniband.cm" "Communication Management" None Dec {} "Message that makes or ends a connection.";
    KIND "infiniband.cm.message" "Message" Str Dec {} "The standard's name of the message: REQ, REP, REJ …";
    REQ "infiniband.cm.req" "Local Communication ID" U32 Hex {} "REQ: id of the connection at the sender.";
    SERVICEID "infiniband.cm.req.serviceid" "ServiceID" U64 Hex {} "Service that is called.";
    SERVICEID_PREFIX "infiniband.cm.req.serviceid.prefix" "Prefix" Bytes Dec {} "0000000001 for RDMA-CM.";
    SERVICEID_PROTOCOL "infiniband.cm.req.serviceid.protocol" "Protocol" U8 Hex { names: Some(protocol_name) } "IP protocol whose port space is meant.";
    SERVICEID_DPORT "infiniband.cm.req.serviceid.dport" "Destination Port" U16 Hex { names: Some(port_name) } "Port that is called.";
    LOCALCAGUID "infiniband.cm.req.localcaguid" "Local CA GUID" U64 Hex {} "GUID of the sender's channel adapter.";
    LOCALQKEY "infiniband.cm.req.localqkey" "Local Q_Key" U32 Hex {} "Q_Key, for datagrams.";
    LOCALQPN "infiniband.cm.req.localqpn" "Local QPN" U24 Hex {} "Queue pair of the sender.";
    RESPONDERRES "infiniband.cm.req.responderres" "Responder Resources" U8 Hex {} "READs and atomics that the sender takes at once.";
    LOCALEECN "infiniband.cm.req.localeecn" "Local EECN" U24 Hex {} "End-to-end context of the sender.";
    INITDEPTH "infiniband.cm.req.initdepth" "Initiator Depth" U8 Hex {} "READs and atomics that the sender wants outstanding.";
    REMOTEEECN "infiniband.cm.req.remoteeecn" "Remote EECN" U24 Hex {} "End-to-end context of the receiver.";
    REMOTERESPTOUT "infiniband.cm.req.remoteresptout" "Remote CM Response Timeout" U8 Hex { mask: 0xf8, names: Some(time_name) } "Time within which the receiver's CM must answer, 4.096 µs * 2^n.";
    TRANSPSVCTYPE "infiniband.cm.req.transpsvctype" "Transport Service Type" U8 Hex { mask: 0x06, names: Some(type_name) } "RC, UC, RD, or the extended type.";
    E2EFLOWCTRL "infiniband.cm.req.e2eflowctrl" "End-to-End Flow Control" U8 Hex { mask: 0x01 } "Whether the sender counts credits.";
    STARTPSN "infiniband.cm.req.startpsn" "Starting PSN" U24 Hex {} "PSN with which the receiver begins to send.";
    LOCALRESPTOUT "infiniband.cm.req.localresptout" "Local CM Response Timeout" U8 Hex { mask: 0xf8, names: Some(time_name) } "Time within which the sender's CM answers, 4.096 µs * 2^n.";
    RETRCOUNT "infiniband.cm.req.retrcount" "Retry Count" U8 Hex { mask: 0x07 } "Retries after a time-out or sequence NAK.";
    PKEY "infiniband.cm.req.pkey" "Partition Key" U16 Hex {} "Partition of the connection.";
    PPPMTU "infiniband.cm.req.pppmtu" "Path Packet Payload MTU" U8 Hex { mask: 0xf0, names: Some(mtu_name) } "Largest payload of a packet.";
    RDCEXIST "infiniband.cm.req.rdcexist" "RDC Exists" U8 Hex { mask: 0x08 } "Reliable datagram channel exists.";
    RNRRETRCOUNT "infiniband.cm.req.rnrretrcount" "RNR Retry Count" U8 Hex { mask: 0x07, names: Some(rnr_name) } "Retries after RNR NAKs that the receiver shall make; 7 is endless.";
    MAXCMRETR "infiniband.cm.req.maxcmretr" "Max CM Retries" U8 Hex { mask: 0xf0 } "How often the CM repeats a message.";
    SRQ "infiniband.cm.req.srq" "SRQ" U8 Hex { mask: 0x08 } "The sender uses a shared receive queue.";
    EXT_TRANSPORT "infiniband.cm.req.ext_transport" "Extended Transport" U8 Hex { mask: 0x07, names: Some(extended_name) } "1: XRC.";
    PRIM_LOCALLID "infiniband.cm.req.prim_locallid" "Primary Local Port LID" U16 Dec {} "Sender's LID.";
    PRIM_REMOTELID "infiniband.cm.req.prim_remotelid" "Primary Remote Port LID" U16 Dec {} "Receiver's LID.";
    PRIM_LOCALGID "infiniband.cm.req.prim_localgid" "Primary Local Port GID" Ipv6 Dec {} "Sender's GID.";
    PRIM_REMOTEGID "infiniband.cm.req.prim_remotegid" "Primary Remote Port GID" Ipv6 Dec {} "Receiver's GID.";
    PRIM_LOCALGID_IPV4 "infiniband.cm.req.prim_localgid_ipv4" "Primary Local Port GID" Ipv4 Dec {} "Sender's GID, if it is an IPv4 address.";
    PRIM_REMOTEGID_IPV4 "infiniband.cm.req.prim_remotegid_ipv4" "Primary Remote Port GID" Ipv4 Dec {} "Receiver's GID, if it is an IPv4 address.";
    PRIM_FLOWLABEL "infiniband.cm.req.prim_flowlabel" "Primary Flow Label" U32 Hex { mask: 0xffff_f000 } "Flow label.";
    PRIM_RESERVED0 "infiniband.cm.req.prim_reserved0" "Reserved" U32 Hex { mask: 0x0fc0 } "Reserved.";
    PRIM_PKTRATE "infiniband.cm.req.prim_pktrate" "Primary Packet Rate" U32 Hex { mask: 0x3f, names: Some(rate_name) } "Static rate.";
    PRIM_TFCCLASS "infiniband.cm.req.prim_tfcclass" "Primary Traffic Class" U8 Hex {} "Traffic class: DSCP and ECN of the data.";
    PRIM_HOPLIM "infiniband.cm.req.prim_hoplim" "Primary Hop Limit" U8 Hex {} "Hop limit.";
    PRIM_SL "infiniband.cm.req.prim_sl" "Primary SL" U8 Hex { mask: 0xf0 } "Service level.";
    PRIM_SUBNETLOCAL "infiniband.cm.req.prim_subnetlocal" "Primary Subnet Local" U8 Hex { mask: 0x08 } "Both ports are in one subnet.";
    PRIM_RESERVED1 "infiniband.cm.req.prim_reserved1" "Reserved" U8 Hex { mask: 0x07 } "Reserved.";
    PRIM_LOCALACKTOUT "infiniband.cm.req.prim_localacktout" "Primary Local ACK Timeout" U8 Hex { mask: 0xf8, names: Some(ack_timeout_name) } "Time-out of acknowledges, 4.096 µs * 2^n; 0: none.";
    PRIM_RESERVED2 "infiniband.cm.req.prim_reserved2" "Reserved" U8 Hex { mask: 0x07 } "Reserved.";
    ALT_LOCALLID "infiniband.cm.req.alt_locallid" "Alternate Local Port LID" U16 Dec {} "Alternate path: sender's LID.";
    ALT_REMOTELID "infiniband.cm.req.alt_remotelid" "Alternate Remote Port LID" U16 Dec {} "Alternate path: receiver's LID.";
    ALT_LOCALGID "infiniband.cm.req.alt_localgid" "Alternate Local Port GID" Bytes Dec {} "Alternate path: sender's GID.";
    ALT_REMOTEGID "infiniband.cm.req.alt_remotegid" "Alternate Remote Port GID" Bytes Dec {} "Alternate path: receiver's GID.";
    ALT_FLOWLABEL "infiniband.cm.req.alt_flowlabel" "Alternate Flow Label" U32 Hex { mask: 0xffff_f000 } "Alternate path: flow label.";
    ALT_RESERVED0 "infiniband.cm.req.alt_reserved0" "Reserved" U32 Hex { mask: 0x0fc0 } "Reserved.";
    ALT_PKTRATE "infiniband.cm.req.alt_pktrate" "Alternate Packet Rate" U32 Hex { mask: 0x3f, names: Some(rate_name) } "Alternate path: static rate.";
    ALT_TFCCLASS "infiniband.cm.req.alt_tfcclass" "Alternate Traffic Class" U8 Hex {} "Alternate path: traffic class.";
    ALT_HOPLIM "infiniband.cm.req.alt_hoplim" "Alternate Hop Limit" U8 Hex {} "Alternate path: hop limit.";
    ALT_SL "infiniband.cm.req.alt_sl" "Alternate SL" U8 Hex { mask: 0xf0 } "Alternate path: service level.";
    ALT_SUBNETLOCAL "infiniband.cm.req.alt_subnetlocal" "Alternate Subnet Local" U8 Hex { mask: 0x08 } "Alternate path: both ports are in one subnet.";
    ALT_RESERVED1 "infiniband.cm.req.alt_reserved1" "Reserved" U8 Hex { mask: 0x07 } "Reserved.";
    ALT_LOCALACKTOUT "infiniband.cm.req.alt_localacktout" "Alternate Local ACK Timeout" U8 Hex { mask: 0xf8 } "Alternate path: time-out of acknowledges.";
    REQ_PRIVATE "infiniband.cm.req.private" "PrivateData" Bytes Dec {} "REQ: data of the consumer.";
    IP_CM "infiniband.cm.req.ip_cm" "IP CM Private Data" Bytes Dec {} "Header of RDMA-CM and the consumer's data.";
    IP_CM_MAJV "infiniband.cm.req.ip_cm.majv" "IP CM Major Version" U8 Hex { mask: 0xf0 } "Major version.";
    IP_CM_MINV "infiniband.cm.req.ip_cm.minv" "IP CM Minor Version" U8 Hex { mask: 0x0f } "Minor version.";
    IP_CM_IPV "infiniband.cm.req.ip_cm.ipv" "IP CM IP Version" U8 Hex { mask: 0xf0 } "4 or 6.";
    IP_CM_RESERVED "infiniband.cm.req.ip_cm.reserved" "IP CM Reserved" U8 Hex { mask: 0x0f } "Reserved.";
    IP_CM_SPORT "infiniband.cm.req.ip_cm.sport" "IP CM Source Port" U16 Hex { names: Some(plain_port_name) } "Port of the caller.";
    IP_CM_SIP6 "infiniband.cm.req.ip_cm.sip6" "IP CM Source IP" Ipv6 Dec {} "Address of the caller.";
    IP_CM_DIP6 "infiniband.cm.req.ip_cm.dip6" "IP CM Destination IP" Ipv6 Dec {} "Address that is called.";
    IP_CM_SIP4 "infiniband.cm.req.ip_cm.sip4" "IP CM Source IP" Ipv4 Dec {} "Address of the caller.";
    IP_CM_DIP4 "infiniband.cm.req.ip_cm.dip4" "IP CM Destination IP" Ipv4 Dec {} "Address that is called.";
    IP_CM_PRIVATE "infiniband.cm.req.ip_cm.private" "IP CM Consumer PrivateData" Bytes Dec {} "Data of the consumer.";
    REP "infiniband.cm.rep" "Local Communication ID" U32 Hex {} "REP: id of the connection at the sender.";
    REP_REMOTECOMMID "infiniband.cm.rep.remotecommid" "Remote Communication ID" U32 Hex {} "REP: id of the REQ that is answered.";
    REP_LOCALQKEY "infiniband.cm.rep.localqkey" "Local Q_Key" U32 Hex {} "REP: Q_Key, for datagrams.";
    REP_LOCALQPN "infiniband.cm.rep.localqpn" "Local QPN" U24 Hex {} "REP: queue pair of the sender.";
    REP_LOCALEECN "infiniband.cm.rep.localeecn" "Local EE Context Number" U24 Hex {} "REP: end-to-end context.";
    REP_STARTPSN "infiniband.cm.rep.startpsn" "Starting PSN" U24 Hex {} "REP: PSN with which the receiver begins to send.";
    REP_RESPRES "infiniband.cm.rep.respres" "Responder Resources" U8 Hex {} "REP: READs and atomics that the sender takes at once.";
    REP_INITDEPTH "infiniband.cm.rep.initdepth" "Initiator Depth" U8 Hex {} "REP: READs and atomics that the sender wants outstanding.";
    REP_TGTACKDELAY "infiniband.cm.rep.tgtackdelay" "Target ACK Delay" U8 Hex { mask: 0xf8, names: Some(time_name) } "REP: longest time from receipt to acknowledge, 4.096 µs * 2^n.";
    REP_FAILOVERACC "infiniband.cm.rep.failoveracc" "Failover Accepted" U8 Hex { mask: 0x06, names: Some(failover_name) } "REP: what became of the alternate path.";
    REP_E2EFLOWCTRL "infiniband.cm.rep.e2eflowctrl" "End-To-End Flow Control" U8 Hex { mask: 0x01 } "REP: whether the sender counts credits.";
    REP_RNRRETRCOUNT "infiniband.cm.rep.rnrretrcount" "RNR Retry Count" U8 Hex { mask: 0xe0, names: Some(rnr_name) } "REP: retries after RNR NAKs that the receiver shall make; 7 is endless.";
    REP_SRQ "infiniband.cm.rep.srq" "SRQ" U8 Hex { mask: 0x10 } "REP: the sender uses a shared receive queue.";
    REP_RESERVED "infiniband.cm.rep.reserved" "Reserved" U8 Hex { mask: 0x0f } "Reserved.";
    REP_LOCALCAGUID "infiniband.cm.rep.localcaguid" "Local CA GUID" U64 Hex {} "REP: GUID of the sender's channel adapter.";
    REP_PRIVATE "infiniband.cm.rep.private" "PrivateData" Bytes Dec {} "REP: data of the consumer.";
    RTU_LOCALCOMMID "infiniband.cm.rtu.localcommid" "Local Communication ID" U32 Hex {} "RTU: id at the sender.";
    RTU_REMOTECOMMID "infiniband.cm.rtu.remotecommid" "Remote Communication ID" U32 Hex {} "RTU: id at the receiver.";
    RTU_PRIVATE "infiniband.cm.rtu.private" "PrivateData" Bytes Dec {} "RTU: data of the consumer.";
    REJ_LOCALCOMMID "infiniband.cm.rej.localcommid" "Local Communication ID" U32 Hex {} "REJ: id at the sender, 0 if it has none.";
    REJ_REMOTECOMMID "infiniband.cm.rej.remotecommid" "Remote Communication ID" U32 Hex {} "REJ: id of the message that is rejected.";
    REJ_MSGREJ "infiniband.cm.rej.msgrej" "Message REJected" U8 Hex { mask: 0xc0, names: Some(rejected_name) } "REJ: what is rejected.";
    REJ_RESERVED0 "infiniband.cm.rej.reserved0" "Reserved" U8 Hex { mask: 0x3f } "Reserved.";
    REJ_REJINFOLEN "infiniband.cm.rej.rejinfolen" "Reject Info Length" U8 Hex { mask: 0xfe } "REJ: bytes of additional information.";
    REJ_RESERVED1 "infiniband.cm.rej.reserved1" "Reserved" U8 Hex { mask: 0x01 } "Reserved.";
    REJ_REASON "infiniband.cm.rej.reason" "Reason" U16 Hex { names: Some(reason_name) } "REJ: why.";
    REJ_ARI "infiniband.cm.rej.ari" "Additional Reject Information (ARI)" Bytes Dec {} "REJ: what would have been accepted, for some reasons.";
    REJ_PRIVATE "infiniband.cm.rej.private" "PrivateData" Bytes Dec {} "REJ: data of the consumer.";
    DREQ_LOCALCOMMID "infiniband.cm.dreq.localcommid" "Local Communication ID" U32 Hex {} "DREQ: id at the sender.";
    DREQ_REMOTECOMMID "infiniband.cm.dreq.remotecommid" "Remote Communication ID" U32 Hex {} "DREQ: id at the receiver.";
    DREQ_REMOTEQPN "infiniband.cm.req.remoteqpneecn" "Remote QPN/EECN" U24 Hex {} "DREQ: queue pair of the receiver.";
    DREQ_PRIVATE "infiniband.cm.dreq.private" "PrivateData" Bytes Dec {} "DREQ: data of the consumer.";
    DREP_LOCALCOMMID "infiniband.cm.drsp.localcommid" "Local Communication ID" U32 Hex {} "DREP: id at the sender.";
    DREP_REMOTECOMMID "infiniband.cm.drsp.remotecommid" "Remote Communication ID" U32 Hex {} "DREP: id at the receiver.";
    DREP_PRIVATE "infiniband.cm.drsp.private" "PrivateData" Bytes Dec {} "DREP: data of the consumer.";
    MRA_LOCALCOMMID "infiniband.cm.mra.localcommid" "Local Communication ID" U32 Hex {} "MRA: id at the sender.";
    MRA_REMOTECOMMID "infiniband.cm.mra.remotecommid" "Remote Communication ID" U32 Hex {} "MRA: id at the receiver.";
    MRA_MSG "infiniband.cm.mra.msgmraed" "Message MRAed" U8 Hex { mask: 0xc0, names: Some(mraed_name) } "MRA: what was received.";
    MRA_TIMEOUT "infiniband.cm.mra.servicetimeout" "Service Timeout" U8 Hex { mask: 0xf8, names: Some(time_name) } "MRA: time that the sender needs, 4.096 µs * 2^n.";
    MRA_PRIVATE "infiniband.cm.mra.private" "PrivateData" Bytes Dec {} "MRA: data of the consumer.";
    SIDRREQ_REQUESTID "infiniband.cm.sidrreq.requestid" "Request ID" U32 Hex {} "SIDR_REQ: id of the request.";
    SIDRREQ_PKEY "infiniband.cm.sidrreq.pkey" "Partition Key" U16 Hex {} "SIDR_REQ: partition.";
    SIDRREQ_SERVICEID "infiniband.cm.sidrreq.serviceid" "ServiceID" U64 Hex {} "SIDR_REQ: service that is looked for.";
    SIDRREQ_PRIVATE "infiniband.cm.sidrreq.private" "PrivateData" Bytes Dec {} "SIDR_REQ: data of the consumer.";
    SIDRREP_REQUESTID "infiniband.cm.sidrrep.requestid" "Request ID" U32 Hex {} "SIDR_REP: id of the request.";
    SIDRREP_STATUS "infiniband.cm.sidrrep.status" "Status" U8 Hex { names: Some(sidr_name) } "SIDR_REP: what became of the request.";
    SIDRREP_INFOLEN "infiniband.cm.sidrrep.infolen" "Additional Information Length" U8 Hex {} "SIDR_REP: bytes of additional information.";
    SIDRREP_QPN "infiniband.cm.sidrrep.qpn" "QPN" U24 Hex {} "SIDR_REP: queue pair that serves.";
    SIDRREP_SERVICEID "infiniband.cm.sidrrep.serviceid" "ServiceID" U64 Hex {} "SIDR_REP: service.";
    SIDRREP_QKEY "infiniband.cm.sidrrep.q_key" "Q_Key" U32 Hex {} "SIDR_REP: Q_Key to send with.";
    SIDRREP_INFO "infiniband.cm.sidrrep.info" "Additional Information" Bytes Dec {} "SIDR_REP: where to go instead, for some statuses.";
    SIDRREP_PRIVATE "infiniband.cm.sidrrep.private" "PrivateData" Bytes Dec {} "SIDR_REP: data of the consumer.";
    LAP_LOCALCOMMID "infiniband.cm.lap.localcommid" "Local Communication ID" U32 Hex {} "LAP: id at the sender.";
    LAP_REMOTECOMMID "infiniband.cm.lap.remotecommid" "Remote Communication ID" U32 Hex {} "LAP: id at the receiver.";
    LAP_REMOTEQPN "infiniband.cm.lap.remoteqpn" "Remote QPN/EECN" U24 Hex {} "LAP: queue pair of the receiver.";
    LAP_TIMEOUT "infiniband.cm.lap.remoteresptout" "Remote CM Response Timeout" U8 Hex { mask: 0xf8, names: Some(time_name) } "LAP: time within which the receiver must answer.";
    LAP_LOCALLID "infiniband.cm.lap.locallid" "Alternate Local Port LID" U16 Dec {} "LAP: sender's LID.";
    LAP_REMOTELID "infiniband.cm.lap.remotelid" "Alternate Remote Port LID" U16 Dec {} "LAP: receiver's LID.";
    LAP_LOCALGID "infiniband.cm.lap.localgid" "Alternate Local Port GID" Ipv6 Dec {} "LAP: sender's GID.";
    LAP_REMOTEGID "infiniband.cm.lap.remotegid" "Alternate Remote Port GID" Ipv6 Dec {} "LAP: receiver's GID.";
    LAP_FLOWLABEL "infiniband.cm.lap.flowlabel" "Alternate Flow Label" U24 Hex { mask: 0xff_fff0 } "LAP: flow label.";
    LAP_TFCCLASS "infiniband.cm.lap.tfcclass" "Alternate Traffic Class" U8 Hex {} "LAP: traffic class.";
    LAP_HOPLIM "infiniband.cm.lap.hoplim" "Alternate Hop Limit" U8 Hex {} "LAP: hop limit.";
    LAP_PKTRATE "infiniband.cm.lap.pktrate" "Alternate Packet Rate" U8 Hex { mask: 0x3f, names: Some(rate_name) } "LAP: static rate.";
    LAP_SL "infiniband.cm.lap.sl" "Alternate SL" U8 Hex { mask: 0xf0 } "LAP: service level.";
    LAP_SUBNETLOCAL "infiniband.cm.lap.subnetlocal" "Alternate Subnet Local" U8 Hex { mask: 0x08 } "LAP: both ports are in one subnet.";
    LAP_LOCALACKTOUT "infiniband.cm.lap.localacktout" "Alternate Local ACK Timeout" U8 Hex { mask: 0xf8, names: Some(ack_timeout_name) } "LAP: time-out of acknowledges.";
    LAP_PRIVATE "infiniband.cm.lap.private" "PrivateData" Bytes Dec {} "LAP: data of the consumer.";
    APR_LOCALCOMMID "infiniband.cm.apr.localcommid" "Local Communication ID" U32 Hex {} "APR: id at the sender.";
    APR_REMOTECOMMID "infiniband.cm.apr.remotecommid" "Remote Communication ID" U32 Hex {} "APR: id at the receiver.";
    APR_INFOLEN "infiniband.cm.apr.infolen" "Additional Information Length" U8 Hex {} "APR: bytes of additional information.";
    APR_STATUS "infiniband.cm.apr.status" "AP Status" U8 Hex { names: Some(apr_name) } "APR: what became of the path.";
    APR_INFO "infiniband.cm.apr.info" "Additional Information" Bytes Dec {} "APR: what would have been accepted.";
    APR_PRIVATE "infiniband.cm.apr.private" "PrivateData" Bytes Dec {} "APR: data of the consumer.";
}

static REQ_HEAD: &[Row] = &[named(&REQ, LOCAL_COMM_ID), bytes(&BTH_RESERVED8, 4, 4)];

static REQ_BODY: &[Row] = &[
    named(&LOCALCAGUID, req::LOCAL_CA_GUID),
    bytes(&BTH_RESERVED8, 24, 4),
    named(&LOCALQKEY, req::LOCAL_Q_KEY),
    named(&LOCALQPN, req::LOCAL_QPN),
    named(&RESPONDERRES, req::RESPONDER_RESOURCES),
    named(&LOCALEECN, req::LOCAL_EECN),
    named(&INITDEPTH, req::INITIATOR_DEPTH),
    named(&REMOTEEECN, req::REMOTE_EECN),
    named(&REMOTERESPTOUT, req::REMOTE_CM_RESPONSE_TIMEOUT),
    named(&TRANSPSVCTYPE, req::TRANSPORT_SERVICE_TYPE),
    named(&E2EFLOWCTRL, req::END_TO_END_FLOW_CONTROL),
    named(&STARTPSN, req::STARTING_PSN),
    named(&LOCALRESPTOUT, req::LOCAL_CM_RESPONSE_TIMEOUT),
    named(&RETRCOUNT, req::RETRY_COUNT),
    named(&PKEY, req::PARTITION_KEY),
    named(&PPPMTU, req::PATH_MTU),
    named(&RDCEXIST, req::RDC_EXISTS),
    named(&RNRRETRCOUNT, req::RNR_RETRY_COUNT),
    named(&MAXCMRETR, req::MAX_CM_RETRIES),
    named(&SRQ, req::SRQ),
    named(&EXT_TRANSPORT, req::EXTENDED_TRANSPORT_TYPE),
    named(&PRIM_LOCALLID, req::PRIMARY_LOCAL_LID),
    named(&PRIM_REMOTELID, req::PRIMARY_REMOTE_LID),
];

static REQ_PATHS: &[Row] = &[
    named(&PRIM_FLOWLABEL, req::PRIMARY_FLOW_LABEL),
    named(&PRIM_RESERVED0, req::PRIMARY_RESERVED0),
    named(&PRIM_PKTRATE, req::PRIMARY_PACKET_RATE),
    named(&PRIM_TFCCLASS, req::PRIMARY_TRAFFIC_CLASS),
    named(&PRIM_HOPLIM, req::PRIMARY_HOP_LIMIT),
    named(&PRIM_SL, req::PRIMARY_SL),
    named(&PRIM_SUBNETLOCAL, req::PRIMARY_SUBNET_LOCAL),
    named(&PRIM_RESERVED1, req::PRIMARY_RESERVED1),
    named(&PRIM_LOCALACKTOUT, req::PRIMARY_LOCAL_ACK_TIMEOUT),
    named(&PRIM_RESERVED2, req::PRIMARY_RESERVED2),
    named(&ALT_LOCALLID, req::PRIMARY_LOCAL_LID.shifted(req::ALTERNATE)),
    named(&ALT_REMOTELID, req::PRIMARY_REMOTE_LID.shifted(req::ALTERNATE)),
    bytes(&ALT_LOCALGID, 100, 16),
    bytes(&ALT_REMOTEGID, 116, 16),
    named(&ALT_FLOWLABEL, req::PRIMARY_FLOW_LABEL.shifted(req::ALTERNATE)),
    named(&ALT_RESERVED0, req::PRIMARY_RESERVED0.shifted(req::ALTERNATE)),
    named(&ALT_PKTRATE, req::PRIMARY_PACKET_RATE.shifted(req::ALTERNATE)),
    named(&ALT_TFCCLASS, req::PRIMARY_TRAFFIC_CLASS.shifted(req::ALTERNATE)),
    named(&ALT_HOPLIM, req::PRIMARY_HOP_LIMIT.shifted(req::ALTERNATE)),
    named(&ALT_SL, req::PRIMARY_SL.shifted(req::ALTERNATE)),
    named(&ALT_SUBNETLOCAL, req::PRIMARY_SUBNET_LOCAL.shifted(req::ALTERNATE)),
    named(&ALT_RESERVED1, req::PRIMARY_RESERVED1.shifted(req::ALTERNATE)),
    named(&ALT_LOCALACKTOUT, req::PRIMARY_LOCAL_ACK_TIMEOUT.shifted(req::ALTERNATE)),
    named(&ALT_RESERVED1, req::PRIMARY_RESERVED2.shifted(req::ALTERNATE)),
];

static REP_ROWS: &[Row] = &[
    named(&REP, LOCAL_COMM_ID),
    named(&REP_REMOTECOMMID, REMOTE_COMM_ID),
    named(&REP_LOCALQKEY, rep::LOCAL_Q_KEY),
    named(&REP_LOCALQPN, rep::LOCAL_QPN),
    bytes(&BTH_RESERVED8, 15, 1),
    named(&REP_LOCALEECN, rep::LOCAL_EECN),
    bytes(&BTH_RESERVED8, 19, 1),
    named(&REP_STARTPSN, rep::STARTING_PSN),
    bytes(&BTH_RESERVED8, 23, 1),
    named(&REP_RESPRES, rep::RESPONDER_RESOURCES),
    named(&REP_INITDEPTH, rep::INITIATOR_DEPTH),
    named(&REP_TGTACKDELAY, rep::TARGET_ACK_DELAY),
    named(&REP_FAILOVERACC, rep::FAILOVER_ACCEPTED),
    named(&REP_E2EFLOWCTRL, rep::END_TO_END_FLOW_CONTROL),
    named(&REP_RNRRETRCOUNT, rep::RNR_RETRY_COUNT),
    named(&REP_SRQ, rep::SRQ),
    named(&REP_RESERVED, rep::RESERVED),
    named(&REP_LOCALCAGUID, rep::LOCAL_CA_GUID),
];

static RTU_ROWS: &[Row] = &[named(&RTU_LOCALCOMMID, LOCAL_COMM_ID), named(&RTU_REMOTECOMMID, REMOTE_COMM_ID)];

static REJ_ROWS: &[Row] = &[
    named(&REJ_LOCALCOMMID, LOCAL_COMM_ID),
    named(&REJ_REMOTECOMMID, REMOTE_COMM_ID),
    named(&REJ_MSGREJ, rej::MESSAGE_REJECTED),
    named(&REJ_RESERVED0, rej::RESERVED0),
    named(&REJ_REJINFOLEN, rej::INFO_LENGTH),
    named(&REJ_RESERVED1, rej::RESERVED1),
    named(&REJ_REASON, rej::REASON),
    bytes(&REJ_ARI, rej::ARI, rej::ARI_LEN),
];

static DREQ_ROWS: &[Row] = &[
    named(&DREQ_LOCALCOMMID, LOCAL_COMM_ID),
    named(&DREQ_REMOTECOMMID, REMOTE_COMM_ID),
    named(&DREQ_REMOTEQPN, dreq::REMOTE_QPN),
    bytes(&BTH_RESERVED8, 11, 1),
];

static DREP_ROWS: &[Row] = &[named(&DREP_LOCALCOMMID, LOCAL_COMM_ID), named(&DREP_REMOTECOMMID, REMOTE_COMM_ID)];

static MRA_ROWS: &[Row] = &[
    named(&MRA_LOCALCOMMID, LOCAL_COMM_ID),
    named(&MRA_REMOTECOMMID, REMOTE_COMM_ID),
    named(&MRA_MSG, mra::MESSAGE_MRAED),
    named(&MRA_TIMEOUT, mra::SERVICE_TIMEOUT),
];

static SIDR_REQ_ROWS: &[Row] =
    &[named(&SIDRREQ_REQUESTID, LOCAL_COMM_ID), named(&SIDRREQ_PKEY, sidr_req::PARTITION_KEY)];

static SIDR_REP_ROWS: &[Row] = &[
    named(&SIDRREP_REQUESTID, LOCAL_COMM_ID),
    named(&SIDRREP_STATUS, sidr_rep::STATUS),
    named(&SIDRREP_INFOLEN, sidr_rep::INFO_LENGTH),
    named(&SIDRREP_QPN, sidr_rep::QPN),
    named(&SIDRREP_SERVICEID, sidr_rep::SERVICE_ID),
    named(&SIDRREP_QKEY, sidr_rep::Q_KEY),
    bytes(&SIDRREP_INFO, sidr_rep::INFO, sidr_rep::INFO_LEN),
];

static LAP_ROWS: &[Row] = &[
    named(&LAP_LOCALCOMMID, LOCAL_COMM_ID),
    named(&LAP_REMOTECOMMID, REMOTE_COMM_ID),
    named(&LAP_REMOTEQPN, lap::REMOTE_QPN),
    named(&LAP_TIMEOUT, lap::REMOTE_CM_RESPONSE_TIMEOUT),
    named(&LAP_LOCALLID, lap::LOCAL_LID),
    named(&LAP_REMOTELID, lap::REMOTE_LID),
    Row(&LAP_LOCALGID, At::Gid(lap::LOCAL_GID)),
    Row(&LAP_REMOTEGID, At::Gid(lap::REMOTE_GID)),
    named(&LAP_FLOWLABEL, lap::FLOW_LABEL),
    named(&LAP_TFCCLASS, lap::TRAFFIC_CLASS),
    named(&LAP_HOPLIM, lap::HOP_LIMIT),
    named(&LAP_PKTRATE, lap::PACKET_RATE),
    named(&LAP_SL, lap::SL),
    named(&LAP_SUBNETLOCAL, lap::SUBNET_LOCAL),
    named(&LAP_LOCALACKTOUT, lap::LOCAL_ACK_TIMEOUT),
];

static APR_ROWS: &[Row] = &[
    named(&APR_LOCALCOMMID, LOCAL_COMM_ID),
    named(&APR_REMOTECOMMID, REMOTE_COMM_ID),
    named(&APR_INFOLEN, apr::INFO_LENGTH),
    named(&APR_STATUS, apr::STATUS),
    bytes(&APR_INFO, apr::INFO, apr::INFO_LEN),
];

static IP_CM_HEAD: &[Row] = &[
    named(&IP_CM_MAJV, ip_cm::MAJOR),
    named(&IP_CM_MINV, ip_cm::MINOR),
    named(&IP_CM_IPV, ip_cm::IP_VERSION),
    named(&IP_CM_RESERVED, ip_cm::RESERVED),
    named(&IP_CM_SPORT, ip_cm::SRC_PORT),
];

/// Adds the message in a datagram whose data start at `o`.
pub fn build<'a>(datagram: Mad<'a>, o: usize, tree: &mut Tree<'a>) {
    let Some(m) = Message::of(datagram) else { return };
    let b = m.bytes;
    tree.open_header(&CM, o..o + b.len());
    tree.label(&CM, || format!("CM {} ({})", m.kind.name(), m.kind.title()));
    tree.derive(&KIND, m.kind.name());
    let (private, complete) = match m.kind {
        Kind::Req => {
            table::add(REQ_HEAD, b, o, tree);
            service_id(m, &SERVICEID, req::SERVICE_ID.start(), o, tree);
            table::add(REQ_BODY, b, o, tree);
            gid(b, req::PRIMARY_LOCAL_GID, (&PRIM_LOCALGID, &PRIM_LOCALGID_IPV4), o, tree);
            gid(b, req::PRIMARY_REMOTE_GID, (&PRIM_REMOTEGID, &PRIM_REMOTEGID_IPV4), o, tree);
            (&REQ_PRIVATE, table::add(REQ_PATHS, b, o, tree))
        }
        Kind::Rep => (&REP_PRIVATE, table::add(REP_ROWS, b, o, tree)),
        Kind::Rtu => (&RTU_PRIVATE, table::add(RTU_ROWS, b, o, tree)),
        Kind::Rej => (&REJ_PRIVATE, table::add(REJ_ROWS, b, o, tree)),
        Kind::Dreq => (&DREQ_PRIVATE, table::add(DREQ_ROWS, b, o, tree)),
        Kind::Drep => (&DREP_PRIVATE, table::add(DREP_ROWS, b, o, tree)),
        Kind::Mra => (&MRA_PRIVATE, table::add(MRA_ROWS, b, o, tree)),
        Kind::SidrReq => {
            let complete = table::add(SIDR_REQ_ROWS, b, o, tree);
            service_id(m, &SIDRREQ_SERVICEID, sidr_req::SERVICE_ID.start(), o, tree);
            (&SIDRREQ_PRIVATE, complete)
        }
        Kind::SidrRep => (&SIDRREP_PRIVATE, table::add(SIDR_REP_ROWS, b, o, tree)),
        Kind::Lap => (&LAP_PRIVATE, table::add(LAP_ROWS, b, o, tree)),
        Kind::Apr => (&APR_PRIVATE, table::add(APR_ROWS, b, o, tree)),
    };
    let (at, len) = m.kind.private_data();
    let data = m.private_data();
    let start = o + at;
    if m.ip_cm().is_some() {
        rdma_cm(data, start, tree);
    } else if !data.is_empty() {
        tree.add(private, start..start + data.len(), data);
    }
    if !complete || data.len() < len {
        tree.note(o..o + b.len(), || format!("{}: needs {} bytes, {} captured", m.kind.name(), at + len, b.len()));
    }
    tree.close();
}

fn service_id<'a>(m: Message<'a>, field: &'static super::Field, at: usize, o: usize, tree: &mut Tree<'a>) {
    let Some(id) = m.service_id() else { return };
    let start = o + at;
    tree.open(field, start..start + 8, id.0);
    if let Some((protocol, port)) = id.protocol_and_port() {
        tree.label(field, || format!("IP CM ServiceID: {:#018x}", id.0));
        tree.add(&SERVICEID_PREFIX, start..start + 5, m.bytes.get(at..at + 5).unwrap_or(&[]));
        tree.add(&SERVICEID_PROTOCOL, start + 5..start + 6, protocol);
        tree.add(&SERVICEID_DPORT, start + 6..start + 8, port);
    }
    tree.close();
}

/// A GID under one name, or the IPv4 address that it maps under another.
fn gid<'a>(
    b: &'a [u8],
    at: usize,
    names: (&'static super::Field, &'static super::Field),
    o: usize,
    tree: &mut Tree<'a>,
) {
    let Some(g) = bytes_at::<16>(b, at) else { return };
    match Ipv6Addr::from(*g).to_ipv4_mapped() {
        Some(v4) => tree.add(names.1, o + at + 12..o + at + 16, v4.octets()),
        None => tree.add(names.0, o + at..o + at + 16, *g),
    }
}

fn rdma_cm<'a>(data: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    tree.open(&IP_CM, o..o + data.len(), data);
    table::add(IP_CM_HEAD, data, o, tree);
    let addresses: &[Row] = if ip_cm::IP_VERSION.get(data) == Some(4) {
        &[Row(&IP_CM_SIP4, At::Ipv4(ip_cm::SRC + 12)), Row(&IP_CM_DIP4, At::Ipv4(ip_cm::DST + 12))]
    } else {
        &[Row(&IP_CM_SIP6, At::Gid(ip_cm::SRC)), Row(&IP_CM_DIP6, At::Gid(ip_cm::DST))]
    };
    table::add(addresses, data, o, tree);
    let rest = data.get(ip_cm::LEN..).unwrap_or(&[]);
    if !rest.is_empty() {
        tree.add(&IP_CM_PRIVATE, o + ip_cm::LEN..o + data.len(), rest);
    }
    tree.close();
}

/// One line about a message; `false` if the datagram holds none that is known.
pub fn info(datagram: Mad<'_>, out: &mut String) -> bool {
    let Some(m) = Message::of(datagram) else { return false };
    // writing to a String cannot fail
    let _ = write!(out, "CM {}", m.kind.name());
    match m.kind {
        Kind::Req | Kind::SidrReq => {
            if let Some(ip) = m.ip_cm() {
                let address = |b: &[u8; 16]| match (ip.ip_version(), b) {
                    (4, [.., a, b, c, d]) => Ipv4Addr::new(*a, *b, *c, *d).to_string(),
                    _ => Ipv6Addr::from(*b).to_string(),
                };
                let _ = write!(out, " {}:{} → {}", address(ip.src()), ip.src_port(), address(ip.dst()));
            }
            service_words(m, out);
        }
        Kind::SidrRep => {
            let _ = write!(out, " {}", m.status().map_or("", cm::sidr_status));
        }
        Kind::Rej => {
            if let Some(code) = rej::MESSAGE_REJECTED.get(m.bytes).and_then(byte) {
                let _ = write!(out, " of {}", cm::rejected_message(code));
            }
            if let Some(reason) = m.reject_reason() {
                let _ = write!(out, ", reason {reason}: {}", cm::reject_reason(reason));
            }
        }
        Kind::Mra => {
            if let Some(code) = mra::MESSAGE_MRAED.get(m.bytes).and_then(byte) {
                let _ = write!(out, " of {}", cm::acknowledged_message(code));
            }
            if let Some(words) = mra::SERVICE_TIMEOUT.get(m.bytes).and_then(time_name) {
                let _ = write!(out, ", needs up to {words}");
            }
        }
        Kind::Apr => {
            let _ = write!(out, " {}", m.status().map_or("", cm::apr_status));
        }
        _ => {}
    }
    if let Some(qp) = m.local_qpn().filter(|q| q.get() != 0) {
        let _ = write!(out, " QP={:#08x}", qp.get());
    }
    if let Some(qp) = m.remote_qpn() {
        let _ = write!(out, " peer QP={:#08x}", qp.get());
    }
    if let Some(psn) = m.starting_psn() {
        let _ = write!(out, " peer's first PSN={}", psn.get());
    }
    if let Some(t) = m.transport().filter(|t| *t != ConnectionType::Rc) {
        let _ = write!(out, " {t:?}");
    }
    if let Some(bytes) = m.path_mtu_code().and_then(mad::mtu_bytes) {
        let _ = write!(out, " MTU={bytes}");
    }
    if let Some(n) = m.retry_count() {
        let _ = write!(out, " retry={n}");
    }
    if let Some(n) = m.rnr_retry() {
        let _ = write!(out, " RNR retry={n}{}", if n == 7 { " (endless)" } else { "" });
    }
    if let Some(id) = m.local_comm_id() {
        let _ = write!(out, " id={id:#010x}");
    }
    if let Some(id) = m.remote_comm_id() {
        let _ = write!(out, " peer id={id:#010x}");
    }
    true
}

fn service_words(m: Message<'_>, out: &mut String) {
    let Some(id) = m.service_id() else { return };
    let _ = match id.protocol_and_port() {
        Some((6, port)) => write!(out, " port {port}"),
        Some((17, port)) => write!(out, " UDP port {port}"),
        Some((_, port)) => write!(out, " port {port} of port space {:#06x}", id.0 >> 16 & 0xffff),
        None => write!(out, " service {:#018x}", id.0),
    };
    if let Some(s) = crate::service::DecodeAs::default().of_service_id(id) {
        let _ = write!(out, " ({s})");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of a message stand one behind the other, none twice, all before the private data.
    #[test]
    fn no_field_overlaps_another() {
        let tables: [(Kind, &[&[Row]]); 11] = [
            (Kind::Req, &[REQ_HEAD, REQ_BODY, REQ_PATHS]),
            (Kind::Rep, &[REP_ROWS]),
            (Kind::Rtu, &[RTU_ROWS]),
            (Kind::Rej, &[REJ_ROWS]),
            (Kind::Dreq, &[DREQ_ROWS]),
            (Kind::Drep, &[DREP_ROWS]),
            (Kind::Mra, &[MRA_ROWS]),
            (Kind::SidrReq, &[SIDR_REQ_ROWS]),
            (Kind::SidrRep, &[SIDR_REP_ROWS]),
            (Kind::Lap, &[LAP_ROWS]),
            (Kind::Apr, &[APR_ROWS]),
        ];
        for (kind, rows) in tables {
            let mut next = 0;
            for Row(field, at) in rows.iter().copied().flatten() {
                let (start, width) = match *at {
                    At::Bits(b) => (b.start() * 8 + usize::from(b.bit), usize::from(b.width)),
                    At::Bytes(at, len) | At::Text(at, len) => (at * 8, len * 8),
                    At::Gid(at) => (at * 8, 128),
                    At::Ipv4(at) => (at * 8, 32),
                    At::Little(at, len) => (at * 8, usize::from(len) * 8),
                };
                assert!(start >= next, "{} {} starts inside the field before", kind.name(), field.name);
                next = start + width;
            }
            assert!(next <= kind.private_data().0 * 8, "{} runs into its private data", kind.name());
        }
    }

    #[test]
    fn codes_in_words() {
        assert_eq!(time_name(20).as_deref(), Some("4.29 s"));
        assert_eq!(ack_timeout_name(0).as_deref(), Some("none: waits for ever"));
        assert_eq!(mtu_name(3).as_deref(), Some("1024 bytes"));
        assert_eq!((rate_name(2).as_deref(), rate_name(16).as_deref()), (Some("2.5 Gbit/s"), Some("100 Gbit/s")));
        assert_eq!((rnr_name(7).as_deref(), rnr_name(3)), (Some("endless"), None));
        assert_eq!(port_name(20049).as_deref(), Some("20049, RPC-over-RDMA"));
    }
}
