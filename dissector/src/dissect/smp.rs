//! Subnet management packets (IBTA 14.2): LID routed and directed route, and their attributes, with Wireshark's
//! names. RoCE has no subnet manager; these come in captures of native InfiniBand.

use std::borrow::Cow;

use super::Tree;
use super::cm::{mtu_name, time_name};
use super::table::{self, At, Row, bytes, number, part};
use super::transport::BTH_RESERVED8;
use crate::wire::bits::tail;
use crate::wire::mad::{Class, Mad, status_words};

/// Group of these fields.
pub const GROUP: u16 = 10;

type Words = Option<Cow<'static, str>>;

fn word(list: &[&'static str], v: u64) -> Words {
    list.get(usize::try_from(v).ok()?).map(|w| (*w).into())
}

pub(super) fn node_type(v: u64) -> Words {
    word(&["reserved", "channel adapter", "switch", "router"], v)
}

fn port_state(v: u64) -> Words {
    word(&["no change", "Down", "Initialize", "Armed", "Active"], v)
}

fn physical_state(v: u64) -> Words {
    let all = ["no change", "Sleep", "Polling", "Disabled", "training", "LinkUp", "LinkErrorRecovery", "Phy Test"];
    word(&all, v)
}

fn sm_state(v: u64) -> Words {
    word(&["not active", "discovering", "standby", "master"], v)
}

fn width_name(v: u64) -> Words {
    match v {
        1 => Some("1x".into()),
        2 => Some("4x".into()),
        4 => Some("8x".into()),
        8 => Some("12x".into()),
        16 => Some("2x".into()),
        0xff => Some("all that are supported".into()),
        _ => None,
    }
}

fn speed_name(v: u64) -> Words {
    match v {
        1 => Some("2.5 Gbit/s".into()),
        2 => Some("5 Gbit/s".into()),
        4 => Some("10 Gbit/s".into()),
        3 => Some("2.5 or 5 Gbit/s".into()),
        5 => Some("2.5 or 10 Gbit/s".into()),
        7 => Some("2.5, 5 or 10 Gbit/s".into()),
        15 => Some("all that are supported".into()),
        _ => None,
    }
}

fn vl_name(v: u64) -> Words {
    word(&["no change", "VL0", "VL0, VL1", "VL0 to VL3", "VL0 to VL7", "VL0 to VL14"], v)
}

fn notice_type(v: u64) -> Words {
    word(&["fatal", "urgent", "security", "subnet management", "informational"], v)
}

fn trap_name(v: u64) -> Words {
    Some(
        match v {
            64 => "port is in service",
            65 => "port is out of service",
            66 => "multicast group made",
            67 => "multicast group gone",
            68 => "paths changed",
            69 => "paths recovered",
            128 => "link state of a port changed",
            129 => "local link integrity threshold reached",
            130 => "excessive buffer overrun threshold reached",
            131 => "flow control update watchdog expired",
            144 => "capabilities changed",
            145 => "system image GUID changed",
            256 => "bad M_Key",
            257 => "bad P_Key",
            258 => "bad Q_Key",
            259 => "bad P_Key at a switch port",
            _ => return None,
        }
        .into(),
    )
}

fn status_name(v: u64) -> Words {
    Some(status_words(u16::try_from(v).ok()?).into())
}

crate::fields! {
    group 10;
    NODEDESCRIPTION_NODESTRING "infiniband.nodedescription.nodestring" "NodeString" Str Dec {} "NodeDescription: NodeString.";
    NODEINFO_BASEVERSION "infiniband.nodeinfo.baseversion" "BaseVersion" U8 Hex {} "NodeInfo: BaseVersion.";
    NODEINFO_CLASSVERSION "infiniband.nodeinfo.classversion" "ClassVersion" U8 Hex {} "NodeInfo: ClassVersion.";
    NODEINFO_NODETYPE "infiniband.nodeinfo.nodetype" "NodeType" U8 Hex { names: Some(node_type) } "NodeInfo: NodeType.";
    NODEINFO_NUMPORTS "infiniband.nodeinfo.numports" "NumPorts" U8 Hex {} "NodeInfo: NumPorts.";
    NODEINFO_SYSTEMIMAGEGUID "infiniband.nodeinfo.systemimageguid" "SystemImageGUID" U64 Hex {} "NodeInfo: SystemImageGUID.";
    NODEINFO_NODEGUID "infiniband.nodeinfo.nodeguid" "NodeGUID" U64 Hex {} "NodeInfo: NodeGUID.";
    NODEINFO_PORTGUID "infiniband.nodeinfo.portguid" "PortGUID" U64 Hex {} "NodeInfo: PortGUID.";
    NODEINFO_PARTITIONCAP "infiniband.nodeinfo.partitioncap" "PartitionCap" U16 Hex {} "NodeInfo: PartitionCap.";
    NODEINFO_DEVICEID "infiniband.nodeinfo.deviceid" "DeviceID" U16 Hex {} "NodeInfo: DeviceID.";
    NODEINFO_REVISION "infiniband.nodeinfo.revision" "Revision" U32 Hex {} "NodeInfo: Revision.";
    NODEINFO_LOCALPORTNUM "infiniband.nodeinfo.localportnum" "LocalPortNum" U8 Hex {} "NodeInfo: LocalPortNum.";
    NODEINFO_VENDORID "infiniband.nodeinfo.vendorid" "VendorID" U24 Hex {} "NodeInfo: VendorID.";
    SWITCHINFO_LINEARFDBCAP "infiniband.switchinfo.linearfdbcap" "LinearFDBCap" U16 Hex {} "SwitchInfo: LinearFDBCap.";
    SWITCHINFO_RANDOMFDBCAP "infiniband.switchinfo.randomfdbcap" "RandomFDBCap" U16 Hex {} "SwitchInfo: RandomFDBCap.";
    SWITCHINFO_MULTICASTFDBCAP "infiniband.switchinfo.multicastfdbcap" "MulticastFDBCap" U16 Hex {} "SwitchInfo: MulticastFDBCap.";
    SWITCHINFO_LINEARFDBTOP "infiniband.switchinfo.linearfdbtop" "LinearFDBTop" U16 Hex {} "SwitchInfo: LinearFDBTop.";
    SWITCHINFO_DEFAULTPORT "infiniband.switchinfo.defaultport" "DefaultPort" U8 Hex {} "SwitchInfo: DefaultPort.";
    SWITCHINFO_DEFAULTMULTICASTPRIMARYPORT "infiniband.switchinfo.defaultmulticastprimaryport" "DefaultMulticastPrimaryPort" U8 Hex {} "SwitchInfo: DefaultMulticastPrimaryPort.";
    SWITCHINFO_DEFAULTMULTICASTNOTPRIMARYPORT "infiniband.switchinfo.defaultmulticastnotprimaryport" "DefaultMulticastNotPrimaryPort" U8 Hex {} "SwitchInfo: DefaultMulticastNotPrimaryPort.";
    SWITCHINFO_LIFETIMEVALUE "infiniband.switchinfo.lifetimevalue" "LifeTimeValue" U8 Hex { mask: 0xf8, names: Some(time_name) } "SwitchInfo: LifeTimeValue.";
    SWITCHINFO_PORTSTATECHANGE "infiniband.switchinfo.portstatechange" "PortStateChange" U8 Hex { mask: 0x4 } "SwitchInfo: PortStateChange.";
    SWITCHINFO_OPTIMIZEDSLTOVLMAPPINGPROGRAMMING "infiniband.switchinfo.optimizedsltovlmappingprogramming" "OptimizedSLtoVLMappingProgramming" U8 Hex { mask: 0x3 } "SwitchInfo: OptimizedSLtoVLMappingProgramming.";
    SWITCHINFO_LIDSPERPORT "infiniband.switchinfo.lidsperport" "LIDsPerPort" U16 Hex {} "SwitchInfo: LIDsPerPort.";
    SWITCHINFO_PARTITIONENFORCEMENTCAP "infiniband.switchinfo.partitionenforcementcap" "PartitionEnforcementCap" U16 Hex {} "SwitchInfo: PartitionEnforcementCap.";
    SWITCHINFO_INBOUNDENFORCEMENTCAP "infiniband.switchinfo.inboundenforcementcap" "InboundEnforcementCap" U8 Hex { mask: 0x80 } "SwitchInfo: InboundEnforcementCap.";
    SWITCHINFO_OUTBOUNDENFORCEMENTCAP "infiniband.switchinfo.outboundenforcementcap" "OutboundEnforcementCap" U8 Hex { mask: 0x40 } "SwitchInfo: OutboundEnforcementCap.";
    SWITCHINFO_FILTERRAWINBOUNDCAP "infiniband.switchinfo.filterrawinboundcap" "FilterRawInboundCap" U8 Hex { mask: 0x20 } "SwitchInfo: FilterRawInboundCap.";
    SWITCHINFO_FILTERRAWOUTBOUNDCAP "infiniband.switchinfo.filterrawoutboundcap" "FilterRawOutboundCap" U8 Hex { mask: 0x10 } "SwitchInfo: FilterRawOutboundCap.";
    SWITCHINFO_ENHANCEDPORTZERO "infiniband.switchinfo.enhancedportzero" "EnhancedPortZero" U8 Hex { mask: 0x8 } "SwitchInfo: EnhancedPortZero.";
    SWITCHINFO_GUID "infiniband.switchinfo.guid" "GUID" U64 Hex {} "GUIDInfo: GUID.";
    PORTINFO_M_KEY "infiniband.portinfo.m_key" "M_Key" U64 Hex {} "PortInfo: M_Key.";
    PORTINFO_GUID "infiniband.portinfo.guid" "GidPrefix" U64 Hex {} "PortInfo: GidPrefix.";
    PORTINFO_LID "infiniband.portinfo.lid" "LID" U16 Hex {} "PortInfo: LID.";
    PORTINFO_MASTERSMLID "infiniband.portinfo.mastersmlid" "MasterSMLID" U16 Hex {} "PortInfo: MasterSMLID.";
    PORTINFO_CAPABILITYMASK "infiniband.portinfo.capabilitymask" "CapabilityMask" U32 Hex {} "PortInfo: CapabilityMask.";
    PORTINFO_CAPABILITYMASK_ISSM "infiniband.portinfo.capabilitymask.issm" "SM" U32 Hex { mask: 0x2 } "PortInfo: capability SM.";
    PORTINFO_CAPABILITYMASK_NOTICESUPPORTED "infiniband.portinfo.capabilitymask.noticesupported" "NoticeSupported" U32 Hex { mask: 0x4 } "PortInfo: capability NoticeSupported.";
    PORTINFO_CAPABILITYMASK_TRAPSUPPORTED "infiniband.portinfo.capabilitymask.trapsupported" "TrapSupported" U32 Hex { mask: 0x8 } "PortInfo: capability TrapSupported.";
    PORTINFO_CAPABILITYMASK_OPTIONALIPDSUPPORTED "infiniband.portinfo.capabilitymask.optionalipdsupported" "OptionalIPDSupported" U32 Hex { mask: 0x10 } "PortInfo: capability OptionalIPDSupported.";
    PORTINFO_CAPABILITYMASK_AUTOMATICMIGRATIONSUPPORTED "infiniband.portinfo.capabilitymask.automaticmigrationsupported" "AutomaticMigrationSupported" U32 Hex { mask: 0x20 } "PortInfo: capability AutomaticMigrationSupported.";
    PORTINFO_CAPABILITYMASK_SLMAPPINGSUPPORTED "infiniband.portinfo.capabilitymask.slmappingsupported" "SLMappingSupported" U32 Hex { mask: 0x40 } "PortInfo: capability SLMappingSupported.";
    PORTINFO_CAPABILITYMASK_MKEYNVRAM "infiniband.portinfo.capabilitymask.mkeynvram" "MKeyNVRAM" U32 Hex { mask: 0x80 } "PortInfo: capability MKeyNVRAM.";
    PORTINFO_CAPABILITYMASK_PKEYNVRAM "infiniband.portinfo.capabilitymask.pkeynvram" "PKeyNVRAM" U32 Hex { mask: 0x100 } "PortInfo: capability PKeyNVRAM.";
    PORTINFO_CAPABILITYMASK_LEDINFOSUPPORTED "infiniband.portinfo.capabilitymask.ledinfosupported" "LEDInfoSupported" U32 Hex { mask: 0x200 } "PortInfo: capability LEDInfoSupported.";
    PORTINFO_CAPABILITYMASK_SMDISABLED "infiniband.portinfo.capabilitymask.smdisabled" "SMdisabled" U32 Hex { mask: 0x400 } "PortInfo: capability SMdisabled.";
    PORTINFO_CAPABILITYMASK_SYSTEMIMAGEGUIDSUPPORTED "infiniband.portinfo.capabilitymask.systemimageguidsupported" "SystemImageGUIDSupported" U32 Hex { mask: 0x800 } "PortInfo: capability SystemImageGUIDSupported.";
    PORTINFO_CAPABILITYMASK_PKEYSWITCHEXTERNALPORTTRAPSUPPORTED "infiniband.portinfo.capabilitymask.pkeyswitchexternalporttrapsupported" "PKeySwitchExternalPortTrapSupported" U32 Hex { mask: 0x1000 } "PortInfo: capability PKeySwitchExternalPortTrapSupported.";
    PORTINFO_CAPABILITYMASK_COMMUNICATIONMANAGEMENTSUPPORTED "infiniband.portinfo.capabilitymask.communicationmanagementsupported" "CommunicationManagementSupported" U32 Hex { mask: 0x1_0000 } "PortInfo: capability CommunicationManagementSupported.";
    PORTINFO_CAPABILITYMASK_SNMPTUNNELINGSUPPORTED "infiniband.portinfo.capabilitymask.snmptunnelingsupported" "SNMPTunnelingSupported" U32 Hex { mask: 0x2_0000 } "PortInfo: capability SNMPTunnelingSupported.";
    PORTINFO_CAPABILITYMASK_REINITSUPPORTED "infiniband.portinfo.capabilitymask.reinitsupported" "ReinitSupported" U32 Hex { mask: 0x4_0000 } "PortInfo: capability ReinitSupported.";
    PORTINFO_CAPABILITYMASK_DEVICEMANAGEMENTSUPPORTED "infiniband.portinfo.capabilitymask.devicemanagementsupported" "DeviceManagementSupported" U32 Hex { mask: 0x8_0000 } "PortInfo: capability DeviceManagementSupported.";
    PORTINFO_CAPABILITYMASK_VENDORCLASSSUPPORTED "infiniband.portinfo.capabilitymask.vendorclasssupported" "VendorClassSupported" U32 Hex { mask: 0x10_0000 } "PortInfo: capability VendorClassSupported.";
    PORTINFO_CAPABILITYMASK_DRNOTICESUPPORTED "infiniband.portinfo.capabilitymask.drnoticesupported" "DRNoticeSupported" U32 Hex { mask: 0x20_0000 } "PortInfo: capability DRNoticeSupported.";
    PORTINFO_CAPABILITYMASK_CAPABILITYMASKNOTICESUPPORTED "infiniband.portinfo.capabilitymask.capabilitymasknoticesupported" "CapabilityMaskNoticeSupported" U32 Hex { mask: 0x40_0000 } "PortInfo: capability CapabilityMaskNoticeSupported.";
    PORTINFO_CAPABILITYMASK_BOOTMANAGEMENTSUPPORTED "infiniband.portinfo.capabilitymask.bootmanagementsupported" "BootManagementSupported" U32 Hex { mask: 0x80_0000 } "PortInfo: capability BootManagementSupported.";
    PORTINFO_CAPABILITYMASK_LINKROUNDTRIPLATENCYSUPPORTED "infiniband.portinfo.capabilitymask.linkroundtriplatencysupported" "LinkRoundTripLatencySupported" U32 Hex { mask: 0x100_0000 } "PortInfo: capability LinkRoundTripLatencySupported.";
    PORTINFO_CAPABILITYMASK_CLIENTREGISTRATIONSUPPORTED "infiniband.portinfo.capabilitymask.clientregistrationsupported" "ClientRegistrationSupported" U32 Hex { mask: 0x200_0000 } "PortInfo: capability ClientRegistrationSupported.";
    PORTINFO_CAPABILITYMASK_OTHERLOCALCHANGESNOTICESUPPORTED "infiniband.portinfo.capabilitymask.otherlocalchangesnoticesupported" "OtherLocalChangesNoticeSupported" U32 Hex { mask: 0x400_0000 } "PortInfo: capability OtherLocalChangesNoticeSupported.";
    PORTINFO_CAPABILITYMASK_LINKSPEEDWIDTHPAIRSTABLESUPPORTED "infiniband.portinfo.capabilitymask.linkspeedwidthpairstablesupported" "LinkSpeedWIdthPairsTableSupported" U32 Hex { mask: 0x800_0000 } "PortInfo: capability LinkSpeedWIdthPairsTableSupported.";
    PORTINFO_DIAGCODE "infiniband.portinfo.diagcode" "DiagCode" U16 Hex {} "PortInfo: DiagCode.";
    PORTINFO_M_KEYLEASEPERIOD "infiniband.portinfo.m_keyleaseperiod" "M_KeyLeasePeriod" U16 Hex {} "PortInfo: M_KeyLeasePeriod.";
    PORTINFO_LOCALPORTNUM "infiniband.portinfo.localportnum" "LocalPortNum" U8 Hex {} "PortInfo: LocalPortNum.";
    PORTINFO_LINKWIDTHENABLED "infiniband.portinfo.linkwidthenabled" "LinkWidthEnabled" U8 Hex { names: Some(width_name) } "PortInfo: LinkWidthEnabled.";
    PORTINFO_LINKWIDTHSUPPORTED "infiniband.portinfo.linkwidthsupported" "LinkWidthSupported" U8 Hex { names: Some(width_name) } "PortInfo: LinkWidthSupported.";
    PORTINFO_LINKWIDTHACTIVE "infiniband.portinfo.linkwidthactive" "LinkWidthActive" U8 Hex { names: Some(width_name) } "PortInfo: LinkWidthActive.";
    PORTINFO_LINKSPEEDSUPPORTED "infiniband.portinfo.linkspeedsupported" "LinkSpeedSupported" U8 Hex { mask: 0xf0, names: Some(speed_name) } "PortInfo: LinkSpeedSupported.";
    PORTINFO_PORTSTATE "infiniband.portinfo.portstate" "PortState" U8 Hex { mask: 0xf, names: Some(port_state) } "PortInfo: PortState.";
    PORTINFO_PORTPHYSICALSTATE "infiniband.portinfo.portphysicalstate" "PortPhysicalState" U8 Hex { mask: 0xf0, names: Some(physical_state) } "PortInfo: PortPhysicalState.";
    PORTINFO_LINKDOWNDEFAULTSTATE "infiniband.portinfo.linkdowndefaultstate" "LinkDownDefaultState" U8 Hex { mask: 0xf, names: Some(physical_state) } "PortInfo: LinkDownDefaultState.";
    PORTINFO_M_KEYPROTECTBITS "infiniband.portinfo.m_keyprotectbits" "M_KeyProtectBits" U8 Hex { mask: 0xc0 } "PortInfo: M_KeyProtectBits.";
    PORTINFO_LMC "infiniband.portinfo.lmc" "LMC" U8 Hex { mask: 0x7 } "PortInfo: LMC.";
    PORTINFO_LINKSPEEDACTIVE "infiniband.portinfo.linkspeedactive" "LinkSpeedActive" U8 Hex { mask: 0xf0, names: Some(speed_name) } "PortInfo: LinkSpeedActive.";
    PORTINFO_LINKSPEEDENABLED "infiniband.portinfo.linkspeedenabled" "LinkSpeedEnabled" U8 Hex { mask: 0xf, names: Some(speed_name) } "PortInfo: LinkSpeedEnabled.";
    PORTINFO_NEIGHBORMTU "infiniband.portinfo.neighbormtu" "NeighborMTU" U8 Hex { mask: 0xf0, names: Some(mtu_name) } "PortInfo: NeighborMTU.";
    PORTINFO_MASTERSMSL "infiniband.portinfo.mastersmsl" "MasterSMSL" U8 Hex { mask: 0xf } "PortInfo: MasterSMSL.";
    PORTINFO_VLCAP "infiniband.portinfo.vlcap" "VLCap" U8 Hex { mask: 0xf0, names: Some(vl_name) } "PortInfo: VLCap.";
    PORTINFO_INITTYPE "infiniband.portinfo.inittype" "InitType" U8 Hex { mask: 0xf } "PortInfo: InitType.";
    PORTINFO_VLHIGHLIMIT "infiniband.portinfo.vlhighlimit" "VLHighLimit" U8 Hex {} "PortInfo: VLHighLimit.";
    PORTINFO_VLARBITRATIONHIGHCAP "infiniband.portinfo.vlarbitrationhighcap" "VLArbitrationHighCap" U8 Hex {} "PortInfo: VLArbitrationHighCap.";
    PORTINFO_VLARBITRATIONLOWCAP "infiniband.portinfo.vlarbitrationlowcap" "VLArbitrationLowCap" U8 Hex {} "PortInfo: VLArbitrationLowCap.";
    PORTINFO_INITTYPEREPLY "infiniband.portinfo.inittypereply" "InitTypeReply" U8 Hex { mask: 0xf0 } "PortInfo: InitTypeReply.";
    PORTINFO_MTUCAP "infiniband.portinfo.mtucap" "MTUCap" U8 Hex { mask: 0xf, names: Some(mtu_name) } "PortInfo: MTUCap.";
    PORTINFO_VLSTALLCOUNT "infiniband.portinfo.vlstallcount" "VLStallCount" U8 Hex { mask: 0xe0 } "PortInfo: VLStallCount.";
    PORTINFO_HOQLIFE "infiniband.portinfo.hoqlife" "HOQLife" U8 Hex { mask: 0x1f, names: Some(time_name) } "PortInfo: HOQLife.";
    PORTINFO_OPERATIONALVLS "infiniband.portinfo.operationalvls" "OperationalVLs" U8 Hex { mask: 0xf0, names: Some(vl_name) } "PortInfo: OperationalVLs.";
    PORTINFO_PARTITIONENFORCEMENTINBOUND "infiniband.portinfo.partitionenforcementinbound" "PartitionEnforcementInbound" U8 Hex { mask: 0x8 } "PortInfo: PartitionEnforcementInbound.";
    PORTINFO_PARTITIONENFORCEMENTOUTBOUND "infiniband.portinfo.partitionenforcementoutbound" "PartitionEnforcementOutbound" U8 Hex { mask: 0x4 } "PortInfo: PartitionEnforcementOutbound.";
    PORTINFO_FILTERRAWINBOUND "infiniband.portinfo.filterrawinbound" "FilterRawInbound" U8 Hex { mask: 0x2 } "PortInfo: FilterRawInbound.";
    PORTINFO_FILTERRAWOUTBOUND "infiniband.portinfo.filterrawoutbound" "FilterRawOutbound" U8 Hex { mask: 0x1 } "PortInfo: FilterRawOutbound.";
    PORTINFO_M_KEYVIOLATIONS "infiniband.portinfo.m_keyviolations" "M_KeyViolations" U16 Hex {} "PortInfo: M_KeyViolations.";
    PORTINFO_P_KEYVIOLATIONS "infiniband.portinfo.p_keyviolations" "P_KeyViolations" U16 Hex {} "PortInfo: P_KeyViolations.";
    PORTINFO_Q_KEYVIOLATIONS "infiniband.portinfo.q_keyviolations" "Q_KeyViolations" U16 Hex {} "PortInfo: Q_KeyViolations.";
    PORTINFO_GUIDCAP "infiniband.portinfo.guidcap" "GUIDCap" U8 Hex {} "PortInfo: GUIDCap.";
    PORTINFO_CLIENTREREGISTER "infiniband.portinfo.clientreregister" "ClientReregister" U8 Hex { mask: 0x80 } "PortInfo: ClientReregister.";
    PORTINFO_SUBNETTIMEOUT "infiniband.portinfo.subnettimeout" "SubnetTimeOut" U8 Hex { mask: 0x1f, names: Some(time_name) } "PortInfo: SubnetTimeOut.";
    PORTINFO_RESPTIMEVALUE "infiniband.portinfo.resptimevalue" "RespTimeValue" U8 Hex { mask: 0x1f, names: Some(time_name) } "PortInfo: RespTimeValue.";
    PORTINFO_LOCALPHYERRORS "infiniband.portinfo.localphyerrors" "LocalPhyErrors" U8 Hex { mask: 0xf0 } "PortInfo: LocalPhyErrors.";
    PORTINFO_OVERRUNERRORS "infiniband.portinfo.overrunerrors" "OverrunErrors" U8 Hex { mask: 0xf } "PortInfo: OverrunErrors.";
    PORTINFO_MAXCREDITHINT "infiniband.portinfo.maxcredithint" "MaxCreditHint" U16 Hex {} "PortInfo: MaxCreditHint.";
    PORTINFO_LINKROUNDTRIPLATENCY "infiniband.portinfo.linkroundtriplatency" "LinkRoundTripLatency" U24 Hex {} "PortInfo: LinkRoundTripLatency.";
    P_KEYTABLE_MEMBERSHIPTYPE "infiniband.p_keytable.membershiptype" "MembershipType" U8 Hex { mask: 0x80 } "P_KeyTable: MembershipType.";
    P_KEYTABLE_P_KEYBASE "infiniband.p_keytable.p_keybase" "P_KeyBase" U16 Hex { mask: 0x7fff } "P_KeyTable: P_KeyBase.";
    SLTOVLMAPPINGTABLE_SLTOVLHIGHBITS "infiniband.sltovlmappingtable.sltovlhighbits" "SL(x)toVL" U8 Hex { mask: 0xf0 } "SLtoVLMappingTable: SL(x)toVL.";
    SLTOVLMAPPINGTABLE_SLTOVLLOWBITS "infiniband.sltovlmappingtable.sltovllowbits" "SL(x)toVL" U8 Hex { mask: 0xf } "SLtoVLMappingTable: SL(x)toVL.";
    VLARBITRATIONTABLE_VL "infiniband.vlarbitrationtable.vl" "VL" U8 Hex { mask: 0xf } "VLArbitrationTable: VL.";
    VLARBITRATIONTABLE_WEIGHT "infiniband.vlarbitrationtable.weight" "Weight" U8 Hex {} "VLArbitrationTable: Weight.";
    LINEARFORWARDINGTABLE_PORT "infiniband.linearforwardingtable.port" "Port" U8 Hex {} "LinearForwardingTable: Port.";
    RANDOMFORWARDINGTABLE_LID "infiniband.randomforwardingtable.lid" "LID" U16 Hex {} "RandomForwardingTable: LID.";
    RANDOMFORWARDINGTABLE_VALID "infiniband.randomforwardingtable.valid" "Valid" U8 Hex { mask: 0x80 } "RandomForwardingTable: Valid.";
    RANDOMFORWARDINGTABLE_LMC "infiniband.randomforwardingtable.lmc" "LMC" U8 Hex { mask: 0x70 } "RandomForwardingTable: LMC.";
    RANDOMFORWARDINGTABLE_PORT "infiniband.randomforwardingtable.port" "Port" U8 Hex {} "RandomForwardingTable: Port.";
    MULTICASTFORWARDINGTABLE_PORTMASK "infiniband.multicastforwardingtable.portmask" "PortMask" U16 Hex {} "MulticastForwardingTable: PortMask.";
    SMINFO_GUID "infiniband.sminfo.guid" "GUID" U64 Hex {} "SMInfo: GUID.";
    SMINFO_SM_KEY "infiniband.sminfo.sm_key" "SM_Key" U64 Hex {} "SMInfo: SM_Key.";
    SMINFO_ACTCOUNT "infiniband.sminfo.actcount" "ActCount" U32 Hex {} "SMInfo: ActCount.";
    SMINFO_PRIORITY "infiniband.sminfo.priority" "Priority" U8 Hex { mask: 0xf0 } "SMInfo: Priority.";
    SMINFO_SMSTATE "infiniband.sminfo.smstate" "SMState" U8 Hex { mask: 0xf, names: Some(sm_state) } "SMInfo: SMState.";
    VENDORDIAG_NEXTINDEX "infiniband.vendordiag.nextindex" "NextIndex" U16 Hex {} "VendorDiag: NextIndex.";
    VENDORDIAG_DIAGDATA "infiniband.vendordiag.diagdata" "DiagData" Bytes Dec {} "VendorDiag: DiagData.";
    LEDINFO_LEDMASK "infiniband.ledinfo.ledmask" "LedMask" U8 Hex { mask: 0x80 } "LedInfo: LedMask.";
    LINKSPEEDWIDTHPAIRSTABLE_NUMTABLES "infiniband.linkspeedwidthpairstable.numtables" "NumTables" U8 Hex {} "LinkSpeedWidthPairsTable: NumTables.";
    LINKSPEEDWIDTHPAIRSTABLE_PORTMASK "infiniband.linkspeedwidthpairstable.portmask" "PortMask" Bytes Dec {} "LinkSpeedWidthPairsTable: PortMask.";
    LINKSPEEDWIDTHPAIRSTABLE_SPEEDTWOFIVE "infiniband.linkspeedwidthpairstable.speedtwofive" "Speed 2.5 Gbps" U8 Hex {} "LinkSpeedWidthPairsTable: Speed 2.5 Gbps.";
    LINKSPEEDWIDTHPAIRSTABLE_SPEEDFIVE "infiniband.linkspeedwidthpairstable.speedfive" "Speed 5 Gbps" U8 Hex {} "LinkSpeedWidthPairsTable: Speed 5 Gbps.";
    LINKSPEEDWIDTHPAIRSTABLE_SPEEDTEN "infiniband.linkspeedwidthpairstable.speedten" "Speed 10 Gbps" U8 Hex {} "LinkSpeedWidthPairsTable: Speed 10 Gbps.";
    NOTICE_ISGENERIC "infiniband.notice.isgeneric" "IsGeneric" U8 Hex { mask: 0x80 } "Notice: IsGeneric.";
    NOTICE_TYPE "infiniband.notice.type" "Type" U8 Hex { mask: 0x7f, names: Some(notice_type) } "Notice: Type.";
    NOTICE_PRODUCERTYPEVENDORID "infiniband.notice.producertypevendorid" "ProducerTypeVendorID" U24 Hex {} "Notice: ProducerTypeVendorID.";
    NOTICE_TRAPNUMBERDEVICEID "infiniband.notice.trapnumberdeviceid" "TrapNumberDeviceID" U16 Hex { names: Some(trap_name) } "Notice: TrapNumberDeviceID.";
    NOTICE_ISSUERLID "infiniband.notice.issuerlid" "IssuerLID" U16 Hex {} "Notice: IssuerLID.";
    NOTICE_NOTICETOGGLE "infiniband.notice.noticetoggle" "NoticeToggle" U8 Hex { mask: 0x80 } "Notice: NoticeToggle.";
    NOTICE_NOTICECOUNT "infiniband.notice.noticecount" "NoticeCount" U16 Hex { mask: 0x7fff } "Notice: NoticeCount.";
    NOTICE_DATADETAILS "infiniband.notice.datadetails" "DataDetails" Bytes Dec {} "Notice: DataDetails.";
    SMPDIRECTED_D "infiniband.smpdirected.d" "D (Direction Bit)" U16 Hex { mask: 0x8000 } "Directed route SMP: 0 on the way out, 1 on the way back.";
    SMPDIRECTED_SMPSTATUS "infiniband.smpdirected.smpstatus" "Status" U16 Hex { mask: 0x7fff, names: Some(status_name) } "Directed route SMP: status.";
    SMPDIRECTED_HOPPOINTER "infiniband.smpdirected.hoppointer" "Hop Pointer" U8 Hex {} "Directed route SMP: hop that the packet is at.";
    SMPDIRECTED_HOPCOUNT "infiniband.smpdirected.hopcount" "Hop Count" U8 Hex {} "Directed route SMP: hops of the path.";
    SMPLID "infiniband.smplid" "SMP (Subnet Management Packet, LID routed)" Bytes Dec {} "Subnet management packet, LID routed.";
    SMPDIRECTED "infiniband.smpdirected" "SMP (Subnet Management Packet, directed route)" Bytes Dec {} "Subnet management packet, directed route.";
    SMPLID_MKEY "infiniband.smplid.mkey" "M_Key" U64 Hex {} "Key that allows changes.";
    SMPLID_SMPDATA "infiniband.smplid.smpdata" "SMP Data" Bytes Dec {} "Attribute of the SMP.";
    SMPDIRECTED_DRSLID "infiniband.smpdirected.drslid" "DrSLID" U16 Hex {} "Directed route SMP: DrSLID.";
    SMPDIRECTED_DRDLID "infiniband.smpdirected.drdlid" "DrDLID" U16 Hex {} "Directed route SMP: DrDLID.";
    SMPDIRECTED_INITIALPATH "infiniband.smpdirected.initialpath" "Initial Path" Bytes Dec {} "Directed route SMP: Initial Path.";
    SMPDIRECTED_RETURNPATH "infiniband.smpdirected.returnpath" "Return Path" Bytes Dec {} "Directed route SMP: Return Path.";
}

/// Attribute NodeDescription, 64 bytes.
pub(super) static NODE_DESCRIPTION: &[Row] = &[Row(&NODEDESCRIPTION_NODESTRING, At::Text(0, 64))];

/// Attribute NodeInfo, 40 bytes.
pub(super) static NODE_INFO: &[Row] = &[
    number(&NODEINFO_BASEVERSION, 0, 8),
    number(&NODEINFO_CLASSVERSION, 1, 8),
    number(&NODEINFO_NODETYPE, 2, 8),
    number(&NODEINFO_NUMPORTS, 3, 8),
    number(&NODEINFO_SYSTEMIMAGEGUID, 4, 64),
    number(&NODEINFO_NODEGUID, 12, 64),
    number(&NODEINFO_PORTGUID, 20, 64),
    number(&NODEINFO_PARTITIONCAP, 28, 16),
    number(&NODEINFO_DEVICEID, 30, 16),
    number(&NODEINFO_REVISION, 32, 32),
    number(&NODEINFO_LOCALPORTNUM, 36, 8),
    number(&NODEINFO_VENDORID, 37, 24),
];

/// Attribute SwitchInfo.
pub(super) static SWITCH_INFO: &[Row] = &[
    number(&SWITCHINFO_LINEARFDBCAP, 0, 16),
    number(&SWITCHINFO_RANDOMFDBCAP, 2, 16),
    number(&SWITCHINFO_MULTICASTFDBCAP, 4, 16),
    number(&SWITCHINFO_LINEARFDBTOP, 6, 16),
    number(&SWITCHINFO_DEFAULTPORT, 8, 8),
    number(&SWITCHINFO_DEFAULTMULTICASTPRIMARYPORT, 9, 8),
    number(&SWITCHINFO_DEFAULTMULTICASTNOTPRIMARYPORT, 10, 8),
    number(&SWITCHINFO_LIFETIMEVALUE, 11, 5),
    part(&SWITCHINFO_PORTSTATECHANGE, 11, 5, 1),
    part(&SWITCHINFO_OPTIMIZEDSLTOVLMAPPINGPROGRAMMING, 11, 6, 2),
    number(&SWITCHINFO_LIDSPERPORT, 12, 16),
    number(&SWITCHINFO_PARTITIONENFORCEMENTCAP, 14, 16),
    number(&SWITCHINFO_INBOUNDENFORCEMENTCAP, 16, 1),
    part(&SWITCHINFO_OUTBOUNDENFORCEMENTCAP, 16, 1, 1),
    part(&SWITCHINFO_FILTERRAWINBOUNDCAP, 16, 2, 1),
    part(&SWITCHINFO_FILTERRAWOUTBOUNDCAP, 16, 3, 1),
    part(&SWITCHINFO_ENHANCEDPORTZERO, 16, 4, 1),
];

/// One GUID of GUIDInfo, which has eight.
static GUID: &[Row] = &[number(&SWITCHINFO_GUID, 0, 64)];

/// Attribute PortInfo, as far as Wireshark names it.
pub(super) static PORT_INFO: &[Row] = &[
    number(&PORTINFO_M_KEY, 0, 64),
    number(&PORTINFO_GUID, 8, 64),
    number(&PORTINFO_LID, 16, 16),
    number(&PORTINFO_MASTERSMLID, 18, 16),
    number(&PORTINFO_CAPABILITYMASK, 20, 32),
    part(&PORTINFO_CAPABILITYMASK_ISSM, 23, 6, 1),
    part(&PORTINFO_CAPABILITYMASK_NOTICESUPPORTED, 23, 5, 1),
    part(&PORTINFO_CAPABILITYMASK_TRAPSUPPORTED, 23, 4, 1),
    part(&PORTINFO_CAPABILITYMASK_OPTIONALIPDSUPPORTED, 23, 3, 1),
    part(&PORTINFO_CAPABILITYMASK_AUTOMATICMIGRATIONSUPPORTED, 23, 2, 1),
    part(&PORTINFO_CAPABILITYMASK_SLMAPPINGSUPPORTED, 23, 1, 1),
    number(&PORTINFO_CAPABILITYMASK_MKEYNVRAM, 23, 1),
    part(&PORTINFO_CAPABILITYMASK_PKEYNVRAM, 22, 7, 1),
    part(&PORTINFO_CAPABILITYMASK_LEDINFOSUPPORTED, 22, 6, 1),
    part(&PORTINFO_CAPABILITYMASK_SMDISABLED, 22, 5, 1),
    part(&PORTINFO_CAPABILITYMASK_SYSTEMIMAGEGUIDSUPPORTED, 22, 4, 1),
    part(&PORTINFO_CAPABILITYMASK_PKEYSWITCHEXTERNALPORTTRAPSUPPORTED, 22, 3, 1),
    part(&PORTINFO_CAPABILITYMASK_COMMUNICATIONMANAGEMENTSUPPORTED, 21, 7, 1),
    part(&PORTINFO_CAPABILITYMASK_SNMPTUNNELINGSUPPORTED, 21, 6, 1),
    part(&PORTINFO_CAPABILITYMASK_REINITSUPPORTED, 21, 5, 1),
    part(&PORTINFO_CAPABILITYMASK_DEVICEMANAGEMENTSUPPORTED, 21, 4, 1),
    part(&PORTINFO_CAPABILITYMASK_VENDORCLASSSUPPORTED, 21, 3, 1),
    part(&PORTINFO_CAPABILITYMASK_DRNOTICESUPPORTED, 21, 2, 1),
    part(&PORTINFO_CAPABILITYMASK_CAPABILITYMASKNOTICESUPPORTED, 21, 1, 1),
    number(&PORTINFO_CAPABILITYMASK_BOOTMANAGEMENTSUPPORTED, 21, 1),
    part(&PORTINFO_CAPABILITYMASK_LINKROUNDTRIPLATENCYSUPPORTED, 20, 7, 1),
    part(&PORTINFO_CAPABILITYMASK_CLIENTREGISTRATIONSUPPORTED, 20, 6, 1),
    part(&PORTINFO_CAPABILITYMASK_OTHERLOCALCHANGESNOTICESUPPORTED, 20, 5, 1),
    part(&PORTINFO_CAPABILITYMASK_LINKSPEEDWIDTHPAIRSTABLESUPPORTED, 20, 4, 1),
    number(&PORTINFO_DIAGCODE, 24, 16),
    number(&PORTINFO_M_KEYLEASEPERIOD, 26, 16),
    number(&PORTINFO_LOCALPORTNUM, 28, 8),
    number(&PORTINFO_LINKWIDTHENABLED, 29, 8),
    number(&PORTINFO_LINKWIDTHSUPPORTED, 30, 8),
    number(&PORTINFO_LINKWIDTHACTIVE, 31, 8),
    number(&PORTINFO_LINKSPEEDSUPPORTED, 32, 4),
    part(&PORTINFO_PORTSTATE, 32, 4, 4),
    number(&PORTINFO_PORTPHYSICALSTATE, 33, 4),
    part(&PORTINFO_LINKDOWNDEFAULTSTATE, 33, 4, 4),
    number(&PORTINFO_M_KEYPROTECTBITS, 34, 2),
    part(&PORTINFO_LMC, 34, 5, 3),
    number(&PORTINFO_LINKSPEEDACTIVE, 35, 4),
    part(&PORTINFO_LINKSPEEDENABLED, 35, 4, 4),
    number(&PORTINFO_NEIGHBORMTU, 36, 4),
    part(&PORTINFO_MASTERSMSL, 36, 4, 4),
    number(&PORTINFO_VLCAP, 37, 4),
    part(&PORTINFO_INITTYPE, 37, 4, 4),
    number(&PORTINFO_VLHIGHLIMIT, 38, 8),
    number(&PORTINFO_VLARBITRATIONHIGHCAP, 39, 8),
    number(&PORTINFO_VLARBITRATIONLOWCAP, 40, 8),
    number(&PORTINFO_INITTYPEREPLY, 41, 4),
    part(&PORTINFO_MTUCAP, 41, 4, 4),
    number(&PORTINFO_VLSTALLCOUNT, 42, 3),
    part(&PORTINFO_HOQLIFE, 42, 3, 5),
    number(&PORTINFO_OPERATIONALVLS, 43, 4),
    part(&PORTINFO_PARTITIONENFORCEMENTINBOUND, 43, 4, 1),
    part(&PORTINFO_PARTITIONENFORCEMENTOUTBOUND, 43, 5, 1),
    part(&PORTINFO_FILTERRAWINBOUND, 43, 6, 1),
    part(&PORTINFO_FILTERRAWOUTBOUND, 43, 7, 1),
    number(&PORTINFO_M_KEYVIOLATIONS, 44, 16),
    number(&PORTINFO_P_KEYVIOLATIONS, 46, 16),
    number(&PORTINFO_Q_KEYVIOLATIONS, 48, 16),
    number(&PORTINFO_GUIDCAP, 50, 8),
    number(&PORTINFO_CLIENTREREGISTER, 51, 1),
    part(&PORTINFO_SUBNETTIMEOUT, 51, 3, 5),
    part(&PORTINFO_RESPTIMEVALUE, 52, 3, 5),
    number(&PORTINFO_LOCALPHYERRORS, 53, 4),
    part(&PORTINFO_OVERRUNERRORS, 53, 4, 4),
    number(&PORTINFO_MAXCREDITHINT, 54, 16),
    number(&PORTINFO_LINKROUNDTRIPLATENCY, 57, 24),
];

/// One entry of P_KeyTable, which has 32.
static P_KEY: &[Row] = &[number(&P_KEYTABLE_MEMBERSHIPTYPE, 0, 1), part(&P_KEYTABLE_P_KEYBASE, 0, 1, 15)];

/// Two entries of SLtoVLMappingTable, which has 16.
static SL_TO_VL: &[Row] =
    &[number(&SLTOVLMAPPINGTABLE_SLTOVLHIGHBITS, 0, 4), part(&SLTOVLMAPPINGTABLE_SLTOVLLOWBITS, 0, 4, 4)];

/// One entry of VLArbitrationTable, which has 32.
static VL_ARBITRATION: &[Row] = &[part(&VLARBITRATIONTABLE_VL, 0, 4, 4), number(&VLARBITRATIONTABLE_WEIGHT, 1, 8)];

/// One port of LinearForwardingTable, which has 64.
static LINEAR: &[Row] = &[number(&LINEARFORWARDINGTABLE_PORT, 0, 8)];

/// One entry of RandomForwardingTable, which has 16.
static RANDOM: &[Row] = &[
    number(&RANDOMFORWARDINGTABLE_LID, 0, 16),
    number(&RANDOMFORWARDINGTABLE_VALID, 2, 1),
    part(&RANDOMFORWARDINGTABLE_LMC, 2, 1, 3),
    number(&RANDOMFORWARDINGTABLE_PORT, 3, 8),
];

/// One port mask of MulticastForwardingTable, which has 32.
static MULTICAST: &[Row] = &[number(&MULTICASTFORWARDINGTABLE_PORTMASK, 0, 16)];

/// Attribute SMInfo, 21 bytes.
pub(super) static SM_INFO: &[Row] = &[
    number(&SMINFO_GUID, 0, 64),
    number(&SMINFO_SM_KEY, 8, 64),
    number(&SMINFO_ACTCOUNT, 16, 32),
    number(&SMINFO_PRIORITY, 20, 4),
    part(&SMINFO_SMSTATE, 20, 4, 4),
];

/// Attribute VendorDiag.
static VENDOR_DIAG: &[Row] = &[number(&VENDORDIAG_NEXTINDEX, 0, 16), bytes(&VENDORDIAG_DIAGDATA, 2, 62)];

/// Attribute LedInfo.
static LED_INFO: &[Row] = &[number(&LEDINFO_LEDMASK, 0, 1)];

/// Attribute LinkSpeedWidthPairsTable.
pub(super) static LINK_SPEED_WIDTH: &[Row] = &[
    number(&LINKSPEEDWIDTHPAIRSTABLE_NUMTABLES, 0, 8),
    bytes(&LINKSPEEDWIDTHPAIRSTABLE_PORTMASK, 1, 32),
    number(&LINKSPEEDWIDTHPAIRSTABLE_SPEEDTWOFIVE, 33, 8),
    number(&LINKSPEEDWIDTHPAIRSTABLE_SPEEDFIVE, 34, 8),
    number(&LINKSPEEDWIDTHPAIRSTABLE_SPEEDTEN, 35, 8),
];

/// Attribute Notice, 64 bytes.
pub(super) static NOTICE: &[Row] = &[
    number(&NOTICE_ISGENERIC, 0, 1),
    part(&NOTICE_TYPE, 0, 1, 7),
    number(&NOTICE_PRODUCERTYPEVENDORID, 1, 24),
    number(&NOTICE_TRAPNUMBERDEVICEID, 4, 16),
    number(&NOTICE_ISSUERLID, 6, 16),
    number(&NOTICE_NOTICETOGGLE, 8, 1),
    part(&NOTICE_NOTICECOUNT, 8, 1, 15),
    bytes(&NOTICE_DATADETAILS, 10, 54),
];

/// What stands in the common header instead of status and class specific words.
static DIRECTED_HEAD: &[Row] = &[
    number(&SMPDIRECTED_D, 4, 1),
    part(&SMPDIRECTED_SMPSTATUS, 4, 1, 15),
    number(&SMPDIRECTED_HOPPOINTER, 6, 8),
    number(&SMPDIRECTED_HOPCOUNT, 7, 8),
];

/// Behind the common header of LID routed SMPs.
static LID_BODY: &[Row] = &[
    number(&SMPLID_MKEY, 0, 64),
    bytes(&BTH_RESERVED8, 8, 32),
    bytes(&SMPLID_SMPDATA, 40, 64),
    bytes(&BTH_RESERVED8, 104, 128),
];

/// Behind the common header of directed route SMPs.
static DIRECTED_BODY: &[Row] = &[
    number(&SMPLID_MKEY, 0, 64),
    number(&SMPDIRECTED_DRSLID, 8, 16),
    number(&SMPDIRECTED_DRDLID, 10, 16),
    bytes(&BTH_RESERVED8, 12, 28),
    bytes(&SMPLID_SMPDATA, 40, 64),
    bytes(&SMPDIRECTED_INITIALPATH, 104, 64),
    bytes(&SMPDIRECTED_RETURNPATH, 168, 64),
];

/// Adds an SMP; `whole` is the datagram, which starts at `o`.
pub fn build<'a>(m: Mad<'a>, whole: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    let directed = m.class() == Class::SUBN_DIRECTED;
    let field = if directed { &SMPDIRECTED } else { &SMPLID };
    tree.open(field, o..o + whole.len(), whole);
    if directed {
        table::add(DIRECTED_HEAD, whole, o, tree);
    }
    let o = o + Mad::HEADER_LEN;
    table::add(if directed { DIRECTED_BODY } else { LID_BODY }, m.data, o, tree);
    attribute(m.attribute_id(), tail(m.data, 40, 64), o + 40, tree);
    tree.close();
}

/// Adds `n` entries of `len` bytes each, or those that are there.
pub(super) fn entries<'a>(rows: &[Row], n: usize, len: usize, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    for k in 0..n {
        if k * len >= b.len() {
            break;
        }
        table::add_shifted(rows, k * len, b, o, tree);
    }
}

/// Adds an attribute of subnet management, by its number; records of subnet administration hold the same.
pub(super) fn attribute<'a>(id: u16, b: &'a [u8], o: usize, tree: &mut Tree<'a>) {
    match id {
        0x0002 => _ = table::add(NOTICE, b, o, tree),
        0x0010 => _ = table::add(NODE_DESCRIPTION, b, o, tree),
        0x0011 => _ = table::add(NODE_INFO, b, o, tree),
        0x0012 => _ = table::add(SWITCH_INFO, b, o, tree),
        0x0014 => entries(GUID, 8, 8, b, o, tree),
        0x0015 => _ = table::add(PORT_INFO, b, o, tree),
        0x0016 => entries(P_KEY, 32, 2, b, o, tree),
        0x0017 => entries(SL_TO_VL, 8, 1, b, o, tree),
        0x0018 => entries(VL_ARBITRATION, 32, 2, b, o, tree),
        0x0019 => entries(LINEAR, 64, 1, b, o, tree),
        0x001a => entries(RANDOM, 16, 4, b, o, tree),
        0x001b => entries(MULTICAST, 32, 2, b, o, tree),
        0x001c => _ = table::add(LINK_SPEED_WIDTH, b, o, tree),
        0x0020 => _ = table::add(SM_INFO, b, o, tree),
        0x0030 => _ = table::add(VENDOR_DIAG, b, o, tree),
        0x0031 => _ = table::add(LED_INFO, b, o, tree),
        _ => {}
    }
}
