//! Lets the BPF code generator use wide loads at any address: packet headers lie at odd multiples of two, and
//! every machine that the kernel's JIT serves well can do this (the verifier allows it where the kernel says
//! `CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS`; elsewhere the feature stays off).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CARGO_CFG_BPF_TARGET_ARCH");
    let bpf = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|a| a == "bpf");
    let host = std::env::var("CARGO_CFG_BPF_TARGET_ARCH").unwrap_or_default();
    if bpf && matches!(host.as_str(), "x86_64" | "aarch64" | "s390x" | "powerpc64") {
        println!("cargo:rustc-link-arg-bins=--cpu-features=+allows-misaligned-mem-access");
    }
}
