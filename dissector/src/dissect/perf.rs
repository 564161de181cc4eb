//! Performance management (IBTA 16.1): ClassPortInfo, PortCounters and PortCountersExtended, with Wireshark's names.

use super::Tree;
use super::cm::time_name;
use super::table::{self, At, Row, number, part};
use crate::wire::mad::Mad;

/// Group of these fields.
pub const GROUP: u16 = 12;

/// Where attributes start behind the common header.
const ATTRIBUTE: usize = 40;

crate::fields! {
    group 12;
    CLASSPORTINFO "infiniband.classportinfo" "ClassPortInfo (Performance Management MAD)" None Dec {} "Performance management: what the port can.";
    CLASSPORTINFO_BASEVERSION "infiniband.classportinfo.baseversion" "BaseVersion" U8 Hex {} "ClassPortInfo: BaseVersion.";
    CLASSPORTINFO_CLASSVERSION "infiniband.classportinfo.classversion" "ClassVersion" U8 Hex {} "ClassPortInfo: ClassVersion.";
    CLASSPORTINFO_CAPABILITYMASK "infiniband.classportinfo.capabilitymask" "CapabilityMask" U16 Hex {} "ClassPortInfo: CapabilityMask.";
    CLASSPORTINFO_CAPABILITYMASK2 "infiniband.classportinfo.capabilitymask2" "CapabilityMask2" U32 Hex { mask: 0xffff_ffe0 } "ClassPortInfo: CapabilityMask2.";
    CLASSPORTINFO_RESPTIMEVALUE "infiniband.classportinfo.resptimevalue" "RespTimeValue" U8 Hex { mask: 0x1f, names: Some(time_name) } "ClassPortInfo: RespTimeValue.";
    CLASSPORTINFO_REDIRECTGID "infiniband.classportinfo.redirectgid" "RedirectGID" Ipv6 Dec {} "ClassPortInfo: RedirectGID.";
    CLASSPORTINFO_REDIRECTTC "infiniband.classportinfo.redirecttc" "RedirectTC" U8 Hex {} "ClassPortInfo: RedirectTC.";
    CLASSPORTINFO_REDIRECTSL "infiniband.classportinfo.redirectsl" "RedirectSL" U8 Hex { mask: 0xf0 } "ClassPortInfo: RedirectSL.";
    CLASSPORTINFO_REDIRECTFL "infiniband.classportinfo.redirectfl" "RedirectFL" U24 Hex { mask: 0xf_ffff } "ClassPortInfo: RedirectFL.";
    CLASSPORTINFO_REDIRECTLID "infiniband.classportinfo.redirectlid" "RedirectLID" U16 Hex {} "ClassPortInfo: RedirectLID.";
    CLASSPORTINFO_REDIRECTPKEY "infiniband.classportinfo.redirectpkey" "RedirectP_Key" U16 Hex {} "ClassPortInfo: RedirectP_Key.";
    CLASSPORTINFO_RESERVED "infiniband.classportinfo.reserved" "Reserved" U8 Hex {} "ClassPortInfo: Reserved.";
    CLASSPORTINFO_REDIRECTQP "infiniband.classportinfo.redirectqp" "RedirectQP" U24 Hex {} "ClassPortInfo: RedirectQP.";
    CLASSPORTINFO_REDIRECTQKEY "infiniband.classportinfo.redirectqkey" "RedirectQ_Key" U32 Hex {} "ClassPortInfo: RedirectQ_Key.";
    CLASSPORTINFO_TRAPGID "infiniband.classportinfo.trapgid" "TrapGID" Ipv6 Dec {} "ClassPortInfo: TrapGID.";
    CLASSPORTINFO_TRAPTC "infiniband.classportinfo.traptc" "TrapTC" U8 Hex {} "ClassPortInfo: TrapTC.";
    CLASSPORTINFO_TRAPSL "infiniband.classportinfo.trapsl" "TrapSL" U8 Hex { mask: 0xf0 } "ClassPortInfo: TrapSL.";
    CLASSPORTINFO_TRAPFL "infiniband.classportinfo.trapfl" "TrapFL" U24 Hex { mask: 0xf_ffff } "ClassPortInfo: TrapFL.";
    CLASSPORTINFO_TRAPLID "infiniband.classportinfo.traplid" "TrapLID" U16 Hex {} "ClassPortInfo: TrapLID.";
    CLASSPORTINFO_TRAPPKEY "infiniband.classportinfo.trappkey" "TrapP_Key" U16 Hex {} "ClassPortInfo: TrapP_Key.";
    CLASSPORTINFO_TRAPQP "infiniband.classportinfo.trapqp" "TrapQP" U24 Hex {} "ClassPortInfo: TrapQP.";
    CLASSPORTINFO_TRAPQKEY "infiniband.classportinfo.trapqkey" "TrapQ_Key" U32 Hex {} "ClassPortInfo: TrapQ_Key.";
    PORTCOUNTERS "infiniband.portcounters" "Port Counters (Performance Management MAD)" None Dec {} "Performance management: counters of a port, 32 bits.";
    PORTCOUNTERS_PORTSELECT "infiniband.portcounters.portselect" "PortSelect" U8 Hex {} "PortCounters: PortSelect.";
    PORTCOUNTERS_COUNTERSELECT "infiniband.portcounters.counterselect" "CounterSelect" U16 Hex {} "PortCounters: CounterSelect.";
    PORTCOUNTERS_SYMBOLERRORCOUNTER "infiniband.portcounters.symbolerrorcounter" "SymbolErrorCounter" U16 Dec {} "PortCounters: SymbolErrorCounter.";
    PORTCOUNTERS_LINKERRORRECOVERYCOUNTER "infiniband.portcounters.linkerrorrecoverycounter" "LinkErrorRecoveryCounter" U8 Dec {} "PortCounters: LinkErrorRecoveryCounter.";
    PORTCOUNTERS_LINKDOWNEDCOUNTER "infiniband.portcounters.linkdownedcounter" "LinkDownedCounter" U8 Dec {} "PortCounters: LinkDownedCounter.";
    PORTCOUNTERS_PORTRCVERRORS "infiniband.portcounters.portrcverrors" "PortRcvErrors" U16 Dec {} "PortCounters: PortRcvErrors.";
    PORTCOUNTERS_PORTRCVREMOTEPHYSICALERRORS "infiniband.portcounters.portrcvremotephysicalerrors" "PortRcvRemotePhysicalErrors" U16 Dec {} "PortCounters: PortRcvRemotePhysicalErrors.";
    PORTCOUNTERS_PORTRCVSWITCHRELAYERRORS "infiniband.portcounters.portrcvswitchrelayerrors" "PortRcvSwitchRelayErrors" U16 Dec {} "PortCounters: PortRcvSwitchRelayErrors.";
    PORTCOUNTERS_PORTXMITDISCARDS "infiniband.portcounters.portxmitdiscards" "PortXmitDiscards" U16 Dec {} "PortCounters: PortXmitDiscards.";
    PORTCOUNTERS_PORTXMITCONSTRAINTERRORS "infiniband.portcounters.portxmitconstrainterrors" "PortXmitConstraintErrors" U8 Dec {} "PortCounters: PortXmitConstraintErrors.";
    PORTCOUNTERS_PORTRCVCONSTRAINTERRORS "infiniband.portcounters.portrcvconstrainterrors" "PortRcvConstraintErrors" U8 Dec {} "PortCounters: PortRcvConstraintErrors.";
    PORTCOUNTERS_LOCALLINKINTEGRITYERRORS "infiniband.portcounters.locallinkintegrityerrors" "LocalLinkIntegrityErrors" U8 Dec { mask: 0xf0 } "PortCounters: LocalLinkIntegrityErrors.";
    PORTCOUNTERS_EXCESSIVEBUFFEROVERRUNERRORS "infiniband.portcounters.excessivebufferoverrunerrors" "ExcessiveBufferOverrunErrors" U8 Dec { mask: 0xf } "PortCounters: ExcessiveBufferOverrunErrors.";
    PORTCOUNTERS_VL15DROPPED "infiniband.portcounters.vl15dropped" "VL15Dropped" U16 Dec {} "PortCounters: VL15Dropped.";
    PORTCOUNTERS_PORTXMITDATA "infiniband.portcounters.portxmitdata" "PortXmitData" U32 Dec {} "PortCounters: PortXmitData.";
    PORTCOUNTERS_PORTRCVDATA "infiniband.portcounters.portrcvdata" "PortRcvData" U32 Dec {} "PortCounters: PortRcvData.";
    PORTCOUNTERS_PORTXMITPKTS "infiniband.portcounters.portxmitpkts" "PortXmitPkts" U32 Dec {} "PortCounters: PortXmitPkts.";
    PORTCOUNTERS_PORTRCVPKTS "infiniband.portcounters.portrcvpkts" "PortRcvPkts" U32 Dec {} "PortCounters: PortRcvPkts.";
    PORTCOUNTERS_PORTXMITWAIT "infiniband.portcounters.portxmitwait" "PortXmitWait" U32 Dec {} "PortCounters: ticks in which there was data but no credit.";
    PORTCOUNTERS_EXT "infiniband.portcounters_ext" "Port Counters Extended (Performance Management MAD)" None Dec {} "Performance management: counters of a port, 64 bits.";
    PORTCOUNTERS_EXT_PORTSELECT "infiniband.portcounters_ext.portselect" "PortSelect" U8 Hex {} "PortCountersExtended: PortSelect.";
    PORTCOUNTERS_EXT_COUNTERSELECT "infiniband.portcounters_ext.counterselect" "CounterSelect" U16 Hex {} "PortCountersExtended: CounterSelect.";
    PORTCOUNTERS_EXT_PORTXMITDATA "infiniband.portcounters_ext.portxmitdata" "PortXmitData" U64 Dec {} "PortCountersExtended: PortXmitData.";
    PORTCOUNTERS_EXT_PORTRCVDATA "infiniband.portcounters_ext.portrcvdata" "PortRcvData" U64 Dec {} "PortCountersExtended: PortRcvData.";
    PORTCOUNTERS_EXT_PORTXMITPKTS "infiniband.portcounters_ext.portxmitpkts" "PortXmitPkts" U64 Dec {} "PortCountersExtended: PortXmitPkts.";
    PORTCOUNTERS_EXT_PORTRCVPKTS "infiniband.portcounters_ext.portrcvpkts" "PortRcvPkts" U64 Dec {} "PortCountersExtended: PortRcvPkts.";
    PORTCOUNTERS_EXT_PORTUNICASTXMITPKTS "infiniband.portcounters_ext.portunicastxmitpkts" "PortUnicastXmitPkts" U64 Dec {} "PortCountersExtended: PortUnicastXmitPkts.";
    PORTCOUNTERS_EXT_PORTUNICASTRCVPKTS "infiniband.portcounters_ext.portunicastrcvpkts" "PortUnicastRcvPkts" U64 Dec {} "PortCountersExtended: PortUnicastRcvPkts.";
    PORTCOUNTERS_EXT_PORTMULTICASTXMITPKTS "infiniband.portcounters_ext.portmulticastxmitpkts" "PortMulticastXmitPkts" U64 Dec {} "PortCountersExtended: PortMulticastXmitPkts.";
    PORTCOUNTERS_EXT_PORTMULTICASTRCVPKTS "infiniband.portcounters_ext.portmulticastrcvpkts" "PortMulticastRcvPkts" U64 Dec {} "PortCountersExtended: PortMulticastRcvPkts.";
}

/// `ClassPortInfo`, an attribute of every class but subnet management.
pub static CLASS_PORT_INFO: &[Row] = &[
    number(&CLASSPORTINFO_BASEVERSION, 0, 8),
    number(&CLASSPORTINFO_CLASSVERSION, 1, 8),
    number(&CLASSPORTINFO_CAPABILITYMASK, 2, 16),
    number(&CLASSPORTINFO_CAPABILITYMASK2, 4, 27),
    part(&CLASSPORTINFO_RESPTIMEVALUE, 7, 3, 5),
    Row(&CLASSPORTINFO_REDIRECTGID, At::Gid(8)),
    number(&CLASSPORTINFO_REDIRECTTC, 24, 8),
    number(&CLASSPORTINFO_REDIRECTSL, 25, 4),
    part(&CLASSPORTINFO_REDIRECTFL, 25, 4, 20),
    number(&CLASSPORTINFO_REDIRECTLID, 28, 16),
    number(&CLASSPORTINFO_REDIRECTPKEY, 30, 16),
    number(&CLASSPORTINFO_RESERVED, 32, 8),
    number(&CLASSPORTINFO_REDIRECTQP, 33, 24),
    number(&CLASSPORTINFO_REDIRECTQKEY, 36, 32),
    Row(&CLASSPORTINFO_TRAPGID, At::Gid(40)),
    number(&CLASSPORTINFO_TRAPTC, 56, 8),
    number(&CLASSPORTINFO_TRAPSL, 57, 4),
    part(&CLASSPORTINFO_TRAPFL, 57, 4, 20),
    number(&CLASSPORTINFO_TRAPLID, 60, 16),
    number(&CLASSPORTINFO_TRAPPKEY, 62, 16),
    number(&CLASSPORTINFO_RESERVED, 64, 8),
    number(&CLASSPORTINFO_TRAPQP, 65, 24),
    number(&CLASSPORTINFO_TRAPQKEY, 68, 32),
];

static PORT_COUNTERS: &[Row] = &[
    number(&PORTCOUNTERS_PORTSELECT, 1, 8),
    number(&PORTCOUNTERS_COUNTERSELECT, 2, 16),
    number(&PORTCOUNTERS_SYMBOLERRORCOUNTER, 4, 16),
    number(&PORTCOUNTERS_LINKERRORRECOVERYCOUNTER, 6, 8),
    number(&PORTCOUNTERS_LINKDOWNEDCOUNTER, 7, 8),
    number(&PORTCOUNTERS_PORTRCVERRORS, 8, 16),
    number(&PORTCOUNTERS_PORTRCVREMOTEPHYSICALERRORS, 10, 16),
    number(&PORTCOUNTERS_PORTRCVSWITCHRELAYERRORS, 12, 16),
    number(&PORTCOUNTERS_PORTXMITDISCARDS, 14, 16),
    number(&PORTCOUNTERS_PORTXMITCONSTRAINTERRORS, 16, 8),
    number(&PORTCOUNTERS_PORTRCVCONSTRAINTERRORS, 17, 8),
    number(&PORTCOUNTERS_LOCALLINKINTEGRITYERRORS, 19, 4),
    part(&PORTCOUNTERS_EXCESSIVEBUFFEROVERRUNERRORS, 19, 4, 4),
    number(&PORTCOUNTERS_VL15DROPPED, 22, 16),
    number(&PORTCOUNTERS_PORTXMITDATA, 24, 32),
    number(&PORTCOUNTERS_PORTRCVDATA, 28, 32),
    number(&PORTCOUNTERS_PORTXMITPKTS, 32, 32),
    number(&PORTCOUNTERS_PORTRCVPKTS, 36, 32),
    number(&PORTCOUNTERS_PORTXMITWAIT, 40, 32),
];

static PORT_COUNTERS_EXT: &[Row] = &[
    number(&PORTCOUNTERS_EXT_PORTSELECT, 1, 8),
    number(&PORTCOUNTERS_EXT_COUNTERSELECT, 2, 16),
    number(&PORTCOUNTERS_EXT_PORTXMITDATA, 8, 64),
    number(&PORTCOUNTERS_EXT_PORTRCVDATA, 16, 64),
    number(&PORTCOUNTERS_EXT_PORTXMITPKTS, 24, 64),
    number(&PORTCOUNTERS_EXT_PORTRCVPKTS, 32, 64),
    number(&PORTCOUNTERS_EXT_PORTUNICASTXMITPKTS, 40, 64),
    number(&PORTCOUNTERS_EXT_PORTUNICASTRCVPKTS, 48, 64),
    number(&PORTCOUNTERS_EXT_PORTMULTICASTXMITPKTS, 56, 64),
    number(&PORTCOUNTERS_EXT_PORTMULTICASTRCVPKTS, 64, 64),
];

/// Adds what follows the common header; `o` is where that starts.
pub fn build<'a>(m: Mad<'a>, o: usize, tree: &mut Tree<'a>) {
    let (field, rows) = match m.attribute_id() {
        0x0001 => (&CLASSPORTINFO, CLASS_PORT_INFO),
        0x0012 => (&PORTCOUNTERS, PORT_COUNTERS),
        0x001d => (&PORTCOUNTERS_EXT, PORT_COUNTERS_EXT),
        _ => return,
    };
    let Some(b) = m.data.get(ATTRIBUTE..) else { return };
    let start = o + ATTRIBUTE;
    tree.open_header(field, start..start + b.len());
    table::add(rows, b, start, tree);
    tree.close();
}
