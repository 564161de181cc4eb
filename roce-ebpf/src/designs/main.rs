//! Designs of the flow map, beside the one that the product uses, for `cargo xtask bench xdp`. Every program first
//! changes the packet (see [`drive`]), so that a test run over one frame is traffic of many flows in order of their
//! PSNs; `empty` does only that.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

#[cfg(target_arch = "bpf")]
#[path = "../kernel/mod.rs"]
#[expect(dead_code, reason = "the product's programs are here too, and not all of it is used")]
mod kernel;

#[cfg(target_arch = "bpf")]
mod maps;

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(not(target_arch = "bpf"))]
fn main() {}
