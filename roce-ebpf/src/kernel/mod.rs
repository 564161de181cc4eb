//! Programs and maps.

use aya_ebpf::bindings::xdp_action;
use aya_ebpf::macros::xdp;
use aya_ebpf::programs::XdpContext;

/// Lets everything pass.
#[xdp(frags)]
pub fn roce_ingress(_ctx: XdpContext) -> u32 {
    xdp_action::XDP_PASS
}
