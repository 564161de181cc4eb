//! One line about a packet: source, destination, protocol, and what it says.

use std::fmt::Write as _;

use super::Input;
use super::transport::{opcode_name, stop_words, syndrome_words};
use crate::flow::{PacketInfo, Repeat};
use crate::frame::icrc::Verdict;
use crate::frame::{Encapsulation, LayerKind, mistake};
use crate::wire::{Packet, Stop};

/// Source and destination as text: network addresses, else MAC addresses.
pub fn endpoints(input: &Input<'_, '_>) -> (String, String) {
    if let Some(net) = input.frame.net {
        return (net.src.to_string(), net.dst.to_string());
    }
    let mac = |o: usize| {
        let at = input.frame.ethernet? + o;
        let b = input.frame.bytes.get(at..at + 6)?;
        Some(b.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":"))
    };
    (mac(6).unwrap_or_default(), mac(0).unwrap_or_default())
}

/// Name of the protocol, as Wireshark's column has it.
pub fn protocol(input: &Input<'_, '_>) -> &'static str {
    match input.frame.transport.map(|t| t.encapsulation) {
        Some(Encapsulation::RoceV2) => "RRoCE",
        Some(Encapsulation::RoceV1) => "RoCE",
        Some(Encapsulation::Native) => "InfiniBand",
        None if let Some(aside) = &input.frame.aside => aside.protocol(),
        None if let Some(name) = input.frame.carries.name() => name,
        None => match input.frame.layers.as_slice().last().map(|l| l.kind) {
            Some(LayerKind::Udp) => "UDP",
            Some(LayerKind::Ipv4) => "IPv4",
            Some(LayerKind::Ipv6 | LayerKind::Ipv6Extension) => "IPv6",
            Some(LayerKind::Ethernet | LayerKind::Vlan) => "Ethernet",
            Some(LayerKind::Lrh | LayerKind::Grh) => "InfiniBand",
            _ => "Frame",
        },
    }
}

/// What the packet says.
pub fn info(input: &Input<'_, '_>, out: &mut String) {
    match input.packet {
        None => {
            if let Some(aside) = &input.frame.aside {
                let _ = write!(out, "{aside} ");
            }
            for n in &input.frame.notes {
                let _ = write!(out, "[{}] ", super::analysis::note_words(n));
            }
        }
        Some(Err(stop)) => {
            let _ = write!(out, "[{}]", stop_words(stop, input.frame));
        }
        Some(Ok(p)) => {
            // what the payload says comes first, the transport's numbers behind it
            let before = out.len();
            if super::ulp::info(input, p, out).is_some() && out.len() > before {
                out.push_str(" | ");
            }
            roce(p, out);
            if let Some(stop) = &p.stop {
                let _ = match stop {
                    Stop::PayloadCut { declared, captured } => {
                        write!(out, " [truncated: {captured} of {declared} bytes of payload]")
                    }
                    other => write!(out, " [{}]", stop_words(other, input.frame)),
                };
            }
            if let Some(Verdict::Bad { found, calculated }) = input.icrc {
                let _ = write!(out, " [ICRC bad: {found:#010x}, should be {calculated:#010x}");
                if let Some(mistake) = mistake::explain(input.frame, p) {
                    let _ = write!(out, ": {mistake}");
                }
                out.push(']');
            }
            if let Some(a) = input.analysis {
                analysis(a, out);
            }
        }
    }
}

/// What the analysis says, in brackets.
fn analysis(a: &PacketInfo, out: &mut String) {
    let _ = match a.repeat {
        Some(Repeat::Sent(cause)) => write!(out, " [retransmission: {}]", cause.name()),
        Some(Repeat::Copied) => write!(out, " [duplicate made by the network]"),
        None => Ok(()),
    };
    if a.gap > 0 {
        let _ = write!(out, " [{} PSN{} missing before this]", a.gap, if a.gap == 1 { "" } else { "s" });
    }
    if let Some(cause) = a.repair {
        let _ = write!(out, " [sent again: {}]", cause.name());
    } else if a.reordered {
        out.push_str(" [reordered]");
    }
    if let Some(n) = a.ack_of {
        let _ = write!(out, " [answers {n}]");
    }
}

// writing to a String cannot fail
fn roce(p: &Packet<'_>, out: &mut String) {
    let op = p.bth.opcode();
    let _ = write!(out, "{}", opcode_name(op.into()).unwrap_or_default());
    if p.op.is_none() {
        let _ = write!(out, " {op:#04x}");
    }
    let _ = write!(out, " QP={:#08x} PSN={}", p.bth.dest_qp().get(), p.bth.psn().get());
    if let Some(d) = p.ext.deth {
        let _ = write!(out, " SrcQP={:#08x} Q_Key={:#010x}", d.src_qp().get(), d.q_key());
    }
    if let Some(r) = p.ext.rdeth {
        let _ = write!(out, " EE={}", r.ee_context());
    }
    if let Some(x) = p.ext.xrceth {
        let _ = write!(out, " SRQ={:#08x}", x.srq());
    }
    if let Some(f) = p.ext.feth {
        let _ = write!(out, " SEL={} PLT={}", f.selectivity(), f.placement());
    }
    if let Some(r) = p.ext.reth {
        let _ = write!(out, " VA={:#018x} R_Key={:#010x} DMALen={}", r.va(), r.r_key(), r.dma_len());
    }
    if let Some(a) = p.ext.atomic {
        let _ = write!(out, " VA={:#018x} R_Key={:#010x}", a.va(), a.r_key());
        let _ = if p.op.is_some_and(|o| o.name.ends_with("CmpSwap")) {
            write!(out, " Swap={} Compare={}", a.swap_add(), a.compare())
        } else {
            write!(out, " Add={}", a.swap_add())
        };
    }
    if let Some(a) = p.ext.aeth {
        let _ = write!(out, " {} MSN={}", syndrome_words(a.syndrome().0), a.msn());
    }
    if let Some(a) = p.ext.atomic_ack {
        let _ = write!(out, " Original={}", a.original());
    }
    if let Some(i) = p.ext.immdt {
        let _ = write!(out, " Imm={:#010x}", i.value());
    }
    if let Some(i) = p.ext.ieth {
        let _ = write!(out, " Invalidate={:#010x}", i.r_key());
    }
    if p.payload_len > 0 {
        let _ = write!(out, " Len={}", p.payload_len);
    }
    if p.bth.ack_req() {
        out.push_str(" AckReq");
    }
    if p.bth.solicited() {
        out.push_str(" Solicited");
    }
    if p.bth.becn() {
        out.push_str(" BECN");
    }
    if p.bth.fecn() {
        out.push_str(" FECN");
    }
}
