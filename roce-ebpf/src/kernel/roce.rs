//! BTH and what of the extended headers the counters need.

use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use dissector::wire::opcode::{FLAGS, Flags};
use dissector::wire::{Aeth, Bth, Deth, Header, Reth, Transport};
use roce_ebpf::abi::Direction;
use roce_ebpf::abi::key::NO_QP;

use super::atomic::forget;
use super::ctx::Ctx;
use super::outer::{At, Net};

/// Bytes from BTH on that the counters look at: with an XRCETH, a RETH.
pub const COUNTED: usize = Bth::LEN + Header::XrcEth.len() + Reth::LEN;

/// The packet that a CPU is at; see [`parse`].
#[map]
static PARSED: PerCpuArray<Parsed> = PerCpuArray::with_max_entries(1, 0);

/// A RoCE packet at a hook: what everything after the parse may use.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Parsed {
    /// First byte of the IP header or GRH.
    pub net_at: usize,
    /// First byte of BTH.
    pub bth_at: usize,
    /// Bytes from BTH through ICRC by the enclosing length field.
    pub declared: u32,
    /// Bytes on the wire, link header included.
    pub wire_len: u32,
    /// Network header.
    pub kind: Net,
    /// TOS or traffic class.
    pub tos: u8,
    /// UDP source port; 0 for RoCEv1.
    pub src_port: u16,
    /// VLAN id of the innermost tag, or `NO_VLAN`.
    pub vlan: u16,
    /// Which way: a [`Direction`] as a number.
    pub direction: u32,
    /// Opcode byte.
    pub opcode: u8,
    /// Its facts.
    pub flags: Flags,
    /// Destination QP.
    pub dest_qp: u32,
    /// Source QP of a datagram, else `NO_QP`.
    pub src_qp: u32,
    /// PSN.
    pub psn: u32,
    /// What is to be reported about it: bits of `event::kind`.
    pub report: u32,
    /// PSNs missing before it.
    pub missing: u32,
}

impl Parsed {
    /// [`Direction`] as an index that the verifier believes.
    #[inline(always)]
    pub fn way(&self) -> usize {
        (self.direction & (Direction::COUNT - 1)) as usize
    }

    /// Adds a kind to what is to be reported; always by way of memory, for the verifier would follow every combination of
    /// bits in a register by itself.
    #[inline(always)]
    pub fn note(&mut self, kind: u32) {
        let report = &raw mut self.report;
        // SAFETY: a field of this very value.
        unsafe { report.write_volatile(report.read_volatile() | kind) };
    }

    /// AETH syndrome, if the opcode has an AETH right after BTH and the packet holds it.
    #[inline(always)]
    pub fn syndrome<C: Ctx>(&self, ctx: &C) -> Option<u8> {
        let at = self.after_bth(Transport::Rd, Header::Rdeth);
        if self.declared < (Bth::LEN + Aeth::LEN) as u32 {
            return None;
        }
        ctx.at::<{ Aeth::LEN }>(at).map(|b| Aeth(b).syndrome().0)
    }

    /// DMA length of the RETH, if the opcode has one and the packet holds it.
    #[inline(always)]
    pub fn dma_len<C: Ctx>(&self, ctx: &C) -> Option<u32> {
        let at = self.after_bth(Transport::Xrc, Header::XrcEth);
        ctx.at::<{ Reth::LEN }>(at).map(|b| Reth(b).dma_len())
    }

    /// Where the header after BTH starts, if transport `with` puts `first` before it.
    #[inline(always)]
    fn after_bth(&self, with: Transport, first: Header) -> usize {
        let at = self.bth_at + Bth::LEN;
        if self.opcode >> 5 == with as u8 { at + first.len() } else { at }
    }
}

/// Reads BTH; `None` if the packet does not hold a whole one.
///
/// What was read lies in a map, and the compiler is made to take it from there: whichever way led here (tags, extension
/// headers, lengths that do not agree), from here on the verifier sees one packet of which it knows nothing. Otherwise it
/// follows all that comes after once for each way, and that of 6.1 gives up.
#[inline(always)]
pub fn parse<'a, C: Ctx>(ctx: &C, at: &At, direction: Direction) -> Option<&'a mut Parsed> {
    let place = PARSED.get_ptr_mut(0)?;
    let parsed = read(ctx, at, direction)?;
    // SAFETY: a per-CPU element: this CPU alone uses it, and packet programs do not interrupt each other.
    unsafe {
        place.write(parsed);
        Some(&mut *forget(place))
    }
}

/// As [`parse`], in registers.
#[inline(always)]
pub fn read<C: Ctx>(ctx: &C, at: &At, direction: Direction) -> Option<Parsed> {
    if at.declared < Bth::LEN as u32 {
        return None;
    }
    let bth = Bth(ctx.at::<{ Bth::LEN }>(at.bth)?);
    let opcode = bth.opcode();
    let flags = FLAGS[opcode as usize];
    let mut parsed = Parsed {
        net_at: at.net,
        bth_at: at.bth,
        declared: at.declared,
        wire_len: ctx.wire_len_of(at.bth + at.declared as usize),
        kind: at.kind,
        tos: at.tos,
        src_port: at.src_port,
        vlan: at.vlan,
        direction: direction as u32,
        opcode,
        flags,
        dest_qp: bth.dest_qp().get(),
        src_qp: NO_QP,
        psn: bth.psn().get(),
        report: 0,
        missing: 0,
    };
    if flags.has(Flags::DETH) {
        let deth = parsed.after_bth(Transport::Rd, Header::Rdeth);
        if at.declared as usize >= deth + Deth::LEN - at.bth
            && let Some(b) = ctx.at::<{ Deth::LEN }>(deth)
        {
            parsed.src_qp = Deth(b).src_qp().get();
        }
    }
    Some(parsed)
}
