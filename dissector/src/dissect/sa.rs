//! Subnet administration (IBTA 15.2): RMPP, the SA header, and the records, with Wireshark's names.

use std::borrow::Cow;

use super::Tree;
use super::cm::{mtu_name, rate_name, time_name};
use super::smp::{self, node_type};
use super::table::{self, At, Row, bytes, number, part};
use super::transport::BTH_RESERVED8;
use crate::wire::Bits;
use crate::wire::mad::Mad;

/// Group of these fields.
pub const GROUP: u16 = 11;

/// Where records start behind the common header.
const RECORD: usize = 32;

fn selector_name(v: u64) -> Option<Cow<'static, str>> {
    let all = ["greater than", "less than", "exactly", "largest available"];
    Some(all.get(usize::try_from(v).ok()?).copied()?.into())
}

crate::fields! {
    group 11;
    DATAGRAM "infiniband.sa.drdlid" "SA Packet (Subnet Administration)" Bytes Dec {} "Subnet administration datagram; below it, the record.";
    SA_SMKEY "infiniband.sa.smkey" "SM_Key (Verification Key)" U64 Hex {} "SA: key of the subnet manager.";
    SA_ATTRIBUTEOFFSET "infiniband.sa.attributeoffset" "Attribute Offset" U16 Hex {} "SA: eight-byte words from one record to the next.";
    SA_COMPONENTMASK "infiniband.sa.componentmask" "Component Mask" U64 Hex {} "SA: which fields of the record count.";
    SA_LID "infiniband.sa.lid" "LID" U16 Hex {} "SA record: LID.";
    SA_ENDPORTLID "infiniband.sa.endportlid" "EndportLID" U16 Hex {} "PortInfoRecord: EndportLID.";
    SA_PORTNUM "infiniband.sa.portnum" "PortNum" U8 Hex {} "PortInfoRecord: PortNum.";
    SA_INPUTPORTNUM "infiniband.sa.inputportnum" "InputPortNum" U8 Hex {} "SA record: InputPortNum.";
    SA_OUTPUTPORTNUM "infiniband.sa.outputportnum" "OutputPortNum" U8 Hex {} "SA record: OutputPortNum.";
    SA_BLOCKNUM_SIXTEENBIT "infiniband.sa.blocknum_sixteenbit" "BlockNum_SixteenBit" U16 Hex {} "SA record: BlockNum_SixteenBit.";
    SA_POSITION "infiniband.sa.position" "Position" U8 Hex { mask: 0xf0 } "SA record: Position.";
    SA_BLOCKNUM_NINEBIT "infiniband.sa.blocknum_ninebit" "BlockNum_NineBit" U16 Hex { mask: 0x1ff } "SA record: BlockNum_NineBit.";
    SA_BLOCKNUM_EIGHTBIT "infiniband.sa.blocknum_eightbit" "BlockNum_EightBit" U8 Hex {} "SA record: BlockNum_EightBit.";
    INFORMINFORECORD_SUBSCRIBERGID "infiniband.informinforecord.subscribergid" "SubscriberGID" Ipv6 Dec {} "InformInfoRecord: SubscriberGID.";
    INFORMINFORECORD_ENUM "infiniband.informinforecord.enum" "Enum" U16 Hex {} "InformInfoRecord: Enum.";
    INFORMINFO_GID "infiniband.informinfo.gid" "GID" Ipv6 Dec {} "InformInfo: GID.";
    INFORMINFO_LIDRANGEBEGIN "infiniband.informinfo.lidrangebegin" "LIDRangeBegin" U16 Hex {} "InformInfo: LIDRangeBegin.";
    INFORMINFO_LIDRANGEEND "infiniband.informinfo.lidrangeend" "LIDRangeEnd" U16 Hex {} "InformInfo: LIDRangeEnd.";
    INFORMINFO_ISGENERIC "infiniband.informinfo.isgeneric" "IsGeneric" U8 Hex {} "InformInfo: IsGeneric.";
    INFORMINFO_SUBSCRIBE "infiniband.informinfo.subscribe" "Subscribe" U8 Hex {} "InformInfo: Subscribe.";
    INFORMINFO_TYPE "infiniband.informinfo.type" "Type" U16 Hex {} "InformInfo: Type.";
    INFORMINFO_TRAPNUMBERDEVICEID "infiniband.informinfo.trapnumberdeviceid" "TrapNumberDeviceID" U16 Hex {} "InformInfo: TrapNumberDeviceID.";
    INFORMINFO_QPN "infiniband.informinfo.qpn" "QPN" U24 Hex {} "InformInfo: QPN.";
    INFORMINFO_RESPTIMEVALUE "infiniband.informinfo.resptimevalue" "RespTimeValue" U8 Hex { mask: 0x1f, names: Some(time_name) } "InformInfo: RespTimeValue.";
    INFORMINFO_PRODUCERTYPEVENDORID "infiniband.informinfo.producertypevendorid" "ProducerTypeVendorID" U24 Hex {} "InformInfo: ProducerTypeVendorID.";
    LINKRECORD_FROMLID "infiniband.linkrecord.fromlid" "FromLID" U16 Hex {} "LinkRecord: FromLID.";
    LINKRECORD_FROMPORT "infiniband.linkrecord.fromport" "FromPort" U8 Hex {} "LinkRecord: FromPort.";
    LINKRECORD_TOPORT "infiniband.linkrecord.toport" "ToPort" U8 Hex {} "LinkRecord: ToPort.";
    LINKRECORD_TOLID "infiniband.linkrecord.tolid" "ToLID" U16 Hex {} "LinkRecord: ToLID.";
    LINKRECORD_SERVICEID "infiniband.linkrecord.serviceid" "ServiceID" U64 Hex {} "ServiceRecord: ServiceID.";
    LINKRECORD_SERVICEGID "infiniband.linkrecord.servicegid" "ServiceGID" Ipv6 Dec {} "ServiceRecord: ServiceGID.";
    LINKRECORD_SERVICEP_KEY "infiniband.linkrecord.servicep_key" "ServiceP_Key" U16 Hex {} "ServiceRecord: ServiceP_Key.";
    LINKRECORD_SERVICELEASE "infiniband.linkrecord.servicelease" "ServiceLease" U32 Hex {} "ServiceRecord: ServiceLease.";
    LINKRECORD_SERVICEKEY "infiniband.linkrecord.servicekey" "ServiceKey" Bytes Dec {} "ServiceRecord: ServiceKey.";
    LINKRECORD_SERVICENAME "infiniband.linkrecord.servicename" "ServiceName" Bytes Dec {} "ServiceRecord: ServiceName.";
    LINKRECORD_SERVICEDATA "infiniband.linkrecord.servicedata" "ServiceData" Bytes Dec {} "ServiceRecord: ServiceData.";
    PATHRECORD_DGID "infiniband.pathrecord.dgid" "DGID" Ipv6 Dec {} "PathRecord: DGID.";
    PATHRECORD_SGID "infiniband.pathrecord.sgid" "SGID" Ipv6 Dec {} "PathRecord: SGID.";
    PATHRECORD_DLID "infiniband.pathrecord.dlid" "DLID" U16 Hex {} "PathRecord: DLID.";
    PATHRECORD_SLID "infiniband.pathrecord.slid" "SLID" U16 Hex {} "PathRecord: SLID.";
    PATHRECORD_RAWTRAFFIC "infiniband.pathrecord.rawtraffic" "RawTraffic" U8 Hex { mask: 0x80 } "PathRecord: RawTraffic.";
    PATHRECORD_FLOWLABEL "infiniband.pathrecord.flowlabel" "FlowLabel" U24 Hex { mask: 0xf_ffff } "PathRecord: FlowLabel.";
    PATHRECORD_HOPLIMIT "infiniband.pathrecord.hoplimit" "HopLimit" U8 Hex {} "PathRecord: HopLimit.";
    PATHRECORD_TCLASS "infiniband.pathrecord.tclass" "TClass" U8 Hex {} "PathRecord: TClass.";
    PATHRECORD_REVERSIBLE "infiniband.pathrecord.reversible" "Reversible" U8 Hex { mask: 0x80 } "PathRecord: Reversible.";
    PATHRECORD_NUMBPATH "infiniband.pathrecord.numbpath" "NumbPath" U8 Hex { mask: 0x7f } "PathRecord: NumbPath.";
    PATHRECORD_P_KEY "infiniband.pathrecord.p_key" "P_Key" U16 Hex {} "PathRecord: P_Key.";
    PATHRECORD_SL "infiniband.pathrecord.sl" "SL" U16 Hex { mask: 0xf } "PathRecord: SL.";
    PATHRECORD_MTUSELECTOR "infiniband.pathrecord.mtuselector" "MTUSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "PathRecord: MTUSelector.";
    PATHRECORD_MTU "infiniband.pathrecord.mtu" "MTU" U8 Hex { mask: 0x3f, names: Some(mtu_name) } "PathRecord: MTU.";
    PATHRECORD_RATESELECTOR "infiniband.pathrecord.rateselector" "RateSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "PathRecord: RateSelector.";
    PATHRECORD_RATE "infiniband.pathrecord.rate" "Rate" U8 Hex { mask: 0x3f, names: Some(rate_name) } "PathRecord: Rate.";
    PATHRECORD_PACKETLIFETIMESELECTOR "infiniband.pathrecord.packetlifetimeselector" "PacketLifeTimeSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "PathRecord: PacketLifeTimeSelector.";
    PATHRECORD_PACKETLIFETIME "infiniband.pathrecord.packetlifetime" "PacketLifeTime" U8 Hex { mask: 0x3f, names: Some(time_name) } "PathRecord: PacketLifeTime.";
    PATHRECORD_PREFERENCE "infiniband.pathrecord.preference" "Preference" U8 Hex {} "PathRecord: Preference.";
    MCMEMBERRECORD_MGID "infiniband.mcmemberrecord.mgid" "MGID" Ipv6 Dec {} "MCMemberRecord: MGID.";
    MCMEMBERRECORD_PORTGID "infiniband.mcmemberrecord.portgid" "PortGID" Ipv6 Dec {} "MCMemberRecord: PortGID.";
    MCMEMBERRECORD_Q_KEY "infiniband.mcmemberrecord.q_key" "Q_Key" U32 Hex {} "MCMemberRecord: Q_Key.";
    MCMEMBERRECORD_MLID "infiniband.mcmemberrecord.mlid" "MLID" U16 Hex {} "MCMemberRecord: MLID.";
    MCMEMBERRECORD_MTUSELECTOR "infiniband.mcmemberrecord.mtuselector" "MTUSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "MCMemberRecord: MTUSelector.";
    MCMEMBERRECORD_MTU "infiniband.mcmemberrecord.mtu" "MTU" U8 Hex { mask: 0x3f, names: Some(mtu_name) } "MCMemberRecord: MTU.";
    MCMEMBERRECORD_TCLASS "infiniband.mcmemberrecord.tclass" "TClass" U8 Hex {} "MCMemberRecord: TClass.";
    MCMEMBERRECORD_P_KEY "infiniband.mcmemberrecord.p_key" "P_Key" U16 Hex {} "MCMemberRecord: P_Key.";
    MCMEMBERRECORD_RATESELECTOR "infiniband.mcmemberrecord.rateselector" "RateSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "MCMemberRecord: RateSelector.";
    MCMEMBERRECORD_RATE "infiniband.mcmemberrecord.rate" "Rate" U8 Hex { mask: 0x3f, names: Some(rate_name) } "MCMemberRecord: Rate.";
    MCMEMBERRECORD_PACKETLIFETIMESELECTOR "infiniband.mcmemberrecord.packetlifetimeselector" "PacketLifeTimeSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "MCMemberRecord: PacketLifeTimeSelector.";
    MCMEMBERRECORD_PACKETLIFETIME "infiniband.mcmemberrecord.packetlifetime" "PacketLifeTime" U8 Hex { mask: 0x3f, names: Some(time_name) } "MCMemberRecord: PacketLifeTime.";
    MCMEMBERRECORD_SL "infiniband.mcmemberrecord.sl" "SL" U8 Hex { mask: 0xf0 } "MCMemberRecord: SL.";
    MCMEMBERRECORD_FLOWLABEL "infiniband.mcmemberrecord.flowlabel" "FlowLabel" U24 Hex { mask: 0xf_ffff } "MCMemberRecord: FlowLabel.";
    MCMEMBERRECORD_HOPLIMIT "infiniband.mcmemberrecord.hoplimit" "HopLimit" U8 Hex {} "MCMemberRecord: HopLimit.";
    MCMEMBERRECORD_SCOPE "infiniband.mcmemberrecord.scope" "Scope" U8 Hex { mask: 0xf0 } "MCMemberRecord: Scope.";
    MCMEMBERRECORD_JOINSTATE "infiniband.mcmemberrecord.joinstate" "JoinState" U8 Hex { mask: 0xf } "MCMemberRecord: JoinState.";
    MCMEMBERRECORD_PROXYJOIN "infiniband.mcmemberrecord.proxyjoin" "ProxyJoin" U8 Hex { mask: 0x80 } "MCMemberRecord: ProxyJoin.";
    TRACERECORD_GIDPREFIX "infiniband.tracerecord.gidprefix" "GidPrefix" U64 Hex {} "TraceRecord: GidPrefix.";
    TRACERECORD_IDGENERATION "infiniband.tracerecord.idgeneration" "IDGeneration" U16 Hex {} "TraceRecord: IDGeneration.";
    TRACERECORD_NODETYPE "infiniband.tracerecord.nodetype" "NodeType" U8 Hex { names: Some(node_type) } "TraceRecord: NodeType.";
    TRACERECORD_NODEID "infiniband.tracerecord.nodeid" "NodeID" U64 Hex {} "TraceRecord: NodeID.";
    TRACERECORD_CHASSISID "infiniband.tracerecord.chassisid" "ChassisID" U64 Hex {} "TraceRecord: ChassisID.";
    TRACERECORD_ENTRYPORTID "infiniband.tracerecord.entryportid" "EntryPortID" U64 Hex {} "TraceRecord: EntryPortID.";
    TRACERECORD_EXITPORTID "infiniband.tracerecord.exitportid" "ExitPortID" U64 Hex {} "TraceRecord: ExitPortID.";
    TRACERECORD_ENTRYPORT "infiniband.tracerecord.entryport" "EntryPort" U8 Hex {} "TraceRecord: EntryPort.";
    TRACERECORD_EXITPORT "infiniband.tracerecord.exitport" "ExitPort" U8 Hex {} "TraceRecord: ExitPort.";
    MULTIPATHRECORD_RAWTRAFFIC "infiniband.multipathrecord.rawtraffic" "RawTraffic" U8 Hex { mask: 0x80 } "MultiPathRecord: RawTraffic.";
    MULTIPATHRECORD_FLOWLABEL "infiniband.multipathrecord.flowlabel" "FlowLabel" U24 Hex { mask: 0xf_ffff } "MultiPathRecord: FlowLabel.";
    MULTIPATHRECORD_HOPLIMIT "infiniband.multipathrecord.hoplimit" "HopLimit" U8 Hex {} "MultiPathRecord: HopLimit.";
    MULTIPATHRECORD_TCLASS "infiniband.multipathrecord.tclass" "TClass" U8 Hex {} "MultiPathRecord: TClass.";
    MULTIPATHRECORD_REVERSIBLE "infiniband.multipathrecord.reversible" "Reversible" U8 Hex { mask: 0x80 } "MultiPathRecord: Reversible.";
    MULTIPATHRECORD_NUMBPATH "infiniband.multipathrecord.numbpath" "NumbPath" U8 Hex { mask: 0x7f } "MultiPathRecord: NumbPath.";
    MULTIPATHRECORD_P_KEY "infiniband.multipathrecord.p_key" "P_Key" U16 Hex {} "MultiPathRecord: P_Key.";
    MULTIPATHRECORD_SL "infiniband.multipathrecord.sl" "SL" U8 Hex { mask: 0xf } "MultiPathRecord: SL.";
    MULTIPATHRECORD_MTUSELECTOR "infiniband.multipathrecord.mtuselector" "MTUSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "MultiPathRecord: MTUSelector.";
    MULTIPATHRECORD_MTU "infiniband.multipathrecord.mtu" "MTU" U8 Hex { mask: 0x3f, names: Some(mtu_name) } "MultiPathRecord: MTU.";
    MULTIPATHRECORD_RATESELECTOR "infiniband.multipathrecord.rateselector" "RateSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "MultiPathRecord: RateSelector.";
    MULTIPATHRECORD_RATE "infiniband.multipathrecord.rate" "Rate" U8 Hex { mask: 0x3f, names: Some(rate_name) } "MultiPathRecord: Rate.";
    MULTIPATHRECORD_PACKETLIFETIMESELECTOR "infiniband.multipathrecord.packetlifetimeselector" "PacketLifeTimeSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "MultiPathRecord: PacketLifeTimeSelector.";
    MULTIPATHRECORD_PACKETLIFETIME "infiniband.multipathrecord.packetlifetime" "PacketLifeTime" U8 Hex { mask: 0x3f, names: Some(time_name) } "MultiPathRecord: PacketLifeTime.";
    MULTIPATHRECORD_INDEPENDENCESELECTOR "infiniband.multipathrecord.independenceselector" "IndependenceSelector" U8 Hex { mask: 0xc0, names: Some(selector_name) } "MultiPathRecord: IndependenceSelector.";
    MULTIPATHRECORD_GIDSCOPE "infiniband.multipathrecord.gidscope" "GIDScope" U8 Hex { mask: 0x3f } "MultiPathRecord: GIDScope.";
    MULTIPATHRECORD_SGIDCOUNT "infiniband.multipathrecord.sgidcount" "SGIDCount" U8 Hex {} "MultiPathRecord: SGIDCount.";
    MULTIPATHRECORD_DGIDCOUNT "infiniband.multipathrecord.dgidcount" "DGIDCount" U8 Hex {} "MultiPathRecord: DGIDCount.";
    MULTIPATHRECORD_SDGID "infiniband.multipathrecord.sdgid" "SDGID" Ipv6 Dec {} "MultiPathRecord: SDGID.";
    SERVICEASSOCIATIONRECORD_SERVICEKEY "infiniband.serviceassociationrecord.servicekey" "ServiceKey" Bytes Dec {} "ServiceAssociationRecord: ServiceKey.";
    SERVICEASSOCIATIONRECORD_SERVICENAME "infiniband.serviceassociationrecord.servicename" "ServiceName" Str Dec {} "ServiceAssociationRecord: ServiceName.";
}

/// Behind RMPP, which takes the first twelve bytes.
static HEADER: &[Row] = &[
    number(&SA_SMKEY, 12, 64),
    number(&SA_ATTRIBUTEOFFSET, 20, 16),
    bytes(&BTH_RESERVED8, 22, 2),
    number(&SA_COMPONENTMASK, 24, 64),
];

static LID: &[Row] = &[number(&SA_LID, 0, 16)];

static PORT_RECORD: &[Row] = &[number(&SA_ENDPORTLID, 0, 16), number(&SA_PORTNUM, 2, 8)];

static SL_RECORD: &[Row] = &[number(&SA_LID, 0, 16), number(&SA_INPUTPORTNUM, 2, 8), number(&SA_OUTPUTPORTNUM, 3, 8)];

static BLOCK_RECORD: &[Row] = &[number(&SA_LID, 0, 16), number(&SA_BLOCKNUM_SIXTEENBIT, 2, 16)];

static MULTICAST_RECORD: &[Row] =
    &[number(&SA_LID, 0, 16), number(&SA_POSITION, 2, 4), part(&SA_BLOCKNUM_NINEBIT, 2, 7, 9)];

static GUID_RECORD: &[Row] = &[number(&SA_LID, 0, 16), number(&SA_BLOCKNUM_EIGHTBIT, 2, 8)];

static P_KEY_RECORD: &[Row] =
    &[number(&SA_LID, 0, 16), number(&SA_BLOCKNUM_SIXTEENBIT, 2, 16), number(&SA_PORTNUM, 4, 8)];

static VL_RECORD: &[Row] =
    &[number(&SA_LID, 0, 16), number(&SA_OUTPUTPORTNUM, 2, 8), number(&SA_BLOCKNUM_EIGHTBIT, 3, 8)];

static INFORM_INFO_RECORD: &[Row] =
    &[Row(&INFORMINFORECORD_SUBSCRIBERGID, At::Gid(0)), number(&INFORMINFORECORD_ENUM, 16, 16)];

static INFORM_INFO: &[Row] = &[
    Row(&INFORMINFO_GID, At::Gid(0)),
    number(&INFORMINFO_LIDRANGEBEGIN, 16, 16),
    number(&INFORMINFO_LIDRANGEEND, 18, 16),
    number(&INFORMINFO_ISGENERIC, 22, 8),
    number(&INFORMINFO_SUBSCRIBE, 23, 8),
    number(&INFORMINFO_TYPE, 24, 16),
    number(&INFORMINFO_TRAPNUMBERDEVICEID, 26, 16),
    number(&INFORMINFO_QPN, 28, 24),
    part(&INFORMINFO_RESPTIMEVALUE, 31, 3, 5),
    number(&INFORMINFO_PRODUCERTYPEVENDORID, 33, 24),
];

static LINK: &[Row] = &[
    number(&LINKRECORD_FROMLID, 0, 16),
    number(&LINKRECORD_FROMPORT, 2, 8),
    number(&LINKRECORD_TOPORT, 3, 8),
    number(&LINKRECORD_TOLID, 4, 16),
];

static SERVICE: &[Row] = &[
    number(&LINKRECORD_SERVICEID, 0, 64),
    Row(&LINKRECORD_SERVICEGID, At::Gid(8)),
    number(&LINKRECORD_SERVICEP_KEY, 24, 16),
    number(&LINKRECORD_SERVICELEASE, 28, 32),
    bytes(&LINKRECORD_SERVICEKEY, 32, 16),
    bytes(&LINKRECORD_SERVICENAME, 48, 64),
    bytes(&LINKRECORD_SERVICEDATA, 112, 16),
    bytes(&LINKRECORD_SERVICEDATA, 128, 16),
    bytes(&LINKRECORD_SERVICEDATA, 144, 16),
    bytes(&LINKRECORD_SERVICEDATA, 160, 16),
];

static PATH: &[Row] = &[
    Row(&PATHRECORD_DGID, At::Gid(8)),
    Row(&PATHRECORD_SGID, At::Gid(24)),
    number(&PATHRECORD_DLID, 40, 16),
    number(&PATHRECORD_SLID, 42, 16),
    number(&PATHRECORD_RAWTRAFFIC, 44, 1),
    part(&PATHRECORD_FLOWLABEL, 44, 4, 20),
    number(&PATHRECORD_HOPLIMIT, 47, 8),
    number(&PATHRECORD_TCLASS, 48, 8),
    number(&PATHRECORD_REVERSIBLE, 49, 1),
    part(&PATHRECORD_NUMBPATH, 49, 1, 7),
    number(&PATHRECORD_P_KEY, 50, 16),
    part(&PATHRECORD_SL, 53, 4, 4),
    number(&PATHRECORD_MTUSELECTOR, 54, 2),
    part(&PATHRECORD_MTU, 54, 2, 6),
    number(&PATHRECORD_RATESELECTOR, 55, 2),
    part(&PATHRECORD_RATE, 55, 2, 6),
    number(&PATHRECORD_PACKETLIFETIMESELECTOR, 56, 2),
    part(&PATHRECORD_PACKETLIFETIME, 56, 2, 6),
    number(&PATHRECORD_PREFERENCE, 57, 8),
];

static MC_MEMBER: &[Row] = &[
    Row(&MCMEMBERRECORD_MGID, At::Gid(0)),
    Row(&MCMEMBERRECORD_PORTGID, At::Gid(16)),
    number(&MCMEMBERRECORD_Q_KEY, 32, 32),
    number(&MCMEMBERRECORD_MLID, 36, 16),
    number(&MCMEMBERRECORD_MTUSELECTOR, 38, 2),
    part(&MCMEMBERRECORD_MTU, 38, 2, 6),
    number(&MCMEMBERRECORD_TCLASS, 39, 8),
    number(&MCMEMBERRECORD_P_KEY, 40, 16),
    number(&MCMEMBERRECORD_RATESELECTOR, 42, 2),
    part(&MCMEMBERRECORD_RATE, 42, 2, 6),
    number(&MCMEMBERRECORD_PACKETLIFETIMESELECTOR, 43, 2),
    part(&MCMEMBERRECORD_PACKETLIFETIME, 43, 2, 6),
    number(&MCMEMBERRECORD_SL, 44, 4),
    part(&MCMEMBERRECORD_FLOWLABEL, 44, 4, 20),
    number(&MCMEMBERRECORD_HOPLIMIT, 47, 8),
    number(&MCMEMBERRECORD_SCOPE, 48, 4),
    part(&MCMEMBERRECORD_JOINSTATE, 48, 4, 4),
    number(&MCMEMBERRECORD_PROXYJOIN, 49, 1),
];

static TRACE: &[Row] = &[
    number(&TRACERECORD_GIDPREFIX, 0, 64),
    number(&TRACERECORD_IDGENERATION, 8, 16),
    number(&TRACERECORD_NODETYPE, 11, 8),
    number(&TRACERECORD_NODEID, 12, 64),
    number(&TRACERECORD_CHASSISID, 20, 64),
    number(&TRACERECORD_ENTRYPORTID, 28, 64),
    number(&TRACERECORD_EXITPORTID, 36, 64),
    number(&TRACERECORD_ENTRYPORT, 44, 8),
    number(&TRACERECORD_EXITPORT, 45, 8),
];

static MULTI_PATH: &[Row] = &[
    number(&MULTIPATHRECORD_RAWTRAFFIC, 0, 1),
    part(&MULTIPATHRECORD_FLOWLABEL, 0, 4, 20),
    number(&MULTIPATHRECORD_HOPLIMIT, 3, 8),
    number(&MULTIPATHRECORD_TCLASS, 4, 8),
    number(&MULTIPATHRECORD_REVERSIBLE, 5, 1),
    part(&MULTIPATHRECORD_NUMBPATH, 5, 1, 7),
    number(&MULTIPATHRECORD_P_KEY, 6, 16),
    part(&MULTIPATHRECORD_SL, 9, 4, 4),
    number(&MULTIPATHRECORD_MTUSELECTOR, 10, 2),
    part(&MULTIPATHRECORD_MTU, 10, 2, 6),
    number(&MULTIPATHRECORD_RATESELECTOR, 11, 2),
    part(&MULTIPATHRECORD_RATE, 11, 2, 6),
    number(&MULTIPATHRECORD_PACKETLIFETIMESELECTOR, 12, 2),
    part(&MULTIPATHRECORD_PACKETLIFETIME, 12, 2, 6),
    number(&MULTIPATHRECORD_INDEPENDENCESELECTOR, 14, 2),
    part(&MULTIPATHRECORD_GIDSCOPE, 14, 2, 6),
    number(&MULTIPATHRECORD_SGIDCOUNT, 15, 8),
    number(&MULTIPATHRECORD_DGIDCOUNT, 16, 8),
];

static SD_GID: &[Row] = &[Row(&MULTIPATHRECORD_SDGID, At::Gid(0))];

static SERVICE_ASSOCIATION: &[Row] =
    &[bytes(&SERVICEASSOCIATIONRECORD_SERVICEKEY, 0, 16), Row(&SERVICEASSOCIATIONRECORD_SERVICENAME, At::Text(16, 64))];

/// Adds a datagram of subnet administration; `whole` starts at `o`.
pub fn build<'a>(m: Mad<'a>, whole: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    let whole_range = o..o + whole.len();
    let o = o + Mad::HEADER_LEN;
    super::mad::rmpp(m.data, o, tree);
    tree.open(&DATAGRAM, whole_range, whole);
    table::add(HEADER, m.data, o, tree);
    let Some(b) = m.data.get(RECORD..) else {
        tree.close();
        return;
    };
    tree.add(&DATAGRAM, o + RECORD..o + m.data.len(), b);
    tree.label(&DATAGRAM, || m.attribute_name().unwrap_or("record").to_owned());
    // a table of several records: the header says how far they lie apart; the first is shown, with a remark
    record(m.attribute_id(), b, o + RECORD, tree);
    let step = Bits::new(20, 16).get(m.data).unwrap_or(0).saturating_mul(8);
    let bytes = Bits::new(8, 32).get(m.data).unwrap_or(0);
    if super::mad::RMPP_TYPE_BITS.get(m.data) == Some(1) && step > 0 && bytes > step + 20 {
        tree.note(o + RECORD..o + m.data.len(), || {
            format!("{} records in the transfer, the first of this packet is shown", (bytes - 20) / step)
        });
    }
    tree.close();
}

fn record<'a>(id: u16, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    // a record wraps an attribute of subnet management behind its own key
    let inner = |at: usize, attribute: u16, tree: &mut Tree<'a>| {
        if let Some(rest) = b.get(at..) {
            smp::attribute(attribute, rest, o + at, tree);
        }
    };
    let key = |rows: &[Row], tree: &mut Tree<'a>| _ = table::add(rows, b, o, tree);
    match id {
        0x0001 => key(super::perf::CLASS_PORT_INFO, tree),
        0x0002 => inner(0, 0x0002, tree),
        0x0003 => key(INFORM_INFO, tree),
        0x0011 => {
            key(LID, tree);
            inner(4, 0x0011, tree);
            inner(44, 0x0010, tree);
        }
        0x0012 => {
            key(PORT_RECORD, tree);
            inner(4, 0x0015, tree);
        }
        0x0013 => {
            key(SL_RECORD, tree);
            inner(8, 0x0017, tree);
        }
        0x0014 => {
            key(LID, tree);
            inner(4, 0x0012, tree);
        }
        0x0015 => {
            key(BLOCK_RECORD, tree);
            inner(8, 0x0019, tree);
        }
        0x0016 => {
            key(BLOCK_RECORD, tree);
            inner(8, 0x001a, tree);
        }
        0x0017 => {
            key(MULTICAST_RECORD, tree);
            inner(8, 0x001b, tree);
        }
        0x0018 => {
            key(LID, tree);
            inner(4, 0x0020, tree);
        }
        0x0019 => inner(0, 0x001c, tree),
        0x0020 => key(LINK, tree),
        0x0030 => {
            key(GUID_RECORD, tree);
            inner(8, 0x0014, tree);
        }
        0x0031 => key(SERVICE, tree),
        0x0033 => {
            key(P_KEY_RECORD, tree);
            inner(8, 0x0016, tree);
        }
        0x0035 => key(PATH, tree),
        0x0036 => {
            key(VL_RECORD, tree);
            inner(8, 0x0018, tree);
        }
        0x0038 => key(MC_MEMBER, tree),
        0x0039 => key(TRACE, tree),
        0x003a => {
            key(MULTI_PATH, tree);
            let count = Bits::new(15, 8).get(b).unwrap_or(0) + Bits::new(16, 8).get(b).unwrap_or(0);
            let gids = b.get(24..).unwrap_or(&[]);
            smp::entries(SD_GID, usize::try_from(count).unwrap_or(0).min(gids.len() / 16), 16, gids, o + 24, tree);
        }
        0x003b => key(SERVICE_ASSOCIATION, tree),
        0x00f3 => {
            key(INFORM_INFO_RECORD, tree);
            _ = table::add_shifted(INFORM_INFO, 24, b, o, tree);
        }
        _ => {}
    }
}
