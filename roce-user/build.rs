//! Builds the kernel object with aya-build, with whichever toolchain of this machine can.
//!
//! In this order: the toolchain named by `ROCE_BPF_TOOLCHAIN`; the linked toolchain `roce-bpf` (a
//! distribution's rustc that brings a ready `core` for the BPF target); `nightly` with `rust-src`, which
//! builds `core` itself. `AYA_BUILD_SKIP=1` builds the host side alone: the programs then say that they have
//! no kernel object.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};
use aya_build::{Package, Toolchain, build_ebpf};

const TARGET: &str = if cfg!(target_endian = "big") { "bpfeb-unknown-none" } else { "bpfel-unknown-none" };
/// Crates that use unstable features when the compiler is not a nightly.
const UNSTABLE_CRATES: &str = "aya_ebpf,aya_ebpf_cty,aya_ebpf_bindings,roce,roce_designs";
const LINKED: &str = "roce-bpf";
const NIGHTLY: &str = "nightly";
const HOW: &str = "`cargo xtask setup` installs what is missing; AYA_BUILD_SKIP=1 builds the host side alone";

fn main() -> Result<()> {
    println!("cargo:rerun-if-env-changed=ROCE_BPF_TOOLCHAIN");
    println!("cargo:rerun-if-env-changed=AYA_BUILD_SKIP");
    println!("cargo:rustc-check-cfg=cfg(kernel_object)");
    // aya-build watches the package itself; what the package is made of stands here
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("roce-user has no parent directory")?;
    for part in ["dissector/src/wire", "dissector/src/lib.rs", "dissector/Cargo.toml", "Cargo.lock", "Cargo.toml"] {
        println!("cargo:rerun-if-changed={}", root.join(part).display());
    }
    if env::var("AYA_BUILD_SKIP").is_ok_and(|v| v == "1" || v.eq_ignore_ascii_case("true")) {
        println!("cargo:warning=AYA_BUILD_SKIP is set: built without the kernel object");
        return Ok(());
    }
    let toolchain = toolchain()?;
    if which("bpf-linker").is_none() {
        bail!("bpf-linker is not installed; {HOW}");
    }
    if toolchain.ready_core {
        // SAFETY: the build script has no other thread yet.
        // aya-build adds `-Z build-std` unless this is a list of crate names
        unsafe { env::set_var("RUSTC_BOOTSTRAP", UNSTABLE_CRATES) };
    }
    let ebpf = root.join("roce-ebpf");
    let package = Package {
        name: "roce-ebpf",
        root_dir: ebpf.to_str().context("the path of the repository is not UTF-8")?,
        ..Package::default()
    };
    build_ebpf([package], Toolchain::Custom(&toolchain.name))
        .with_context(|| format!("the kernel object does not build with toolchain {}; {HOW}", toolchain.name))?;
    let object = PathBuf::from(env::var("OUT_DIR")?).join("roce");
    let size = fs::metadata(&object).with_context(|| format!("no kernel object at {}", object.display()))?.len();
    if size == 0 {
        bail!("the kernel object at {} is empty", object.display());
    }
    println!("cargo:rustc-cfg=kernel_object");
    Ok(())
}

/// A compiler for the BPF target.
struct Found {
    name: String,
    /// It brings `core`, so nothing has to be built from source.
    ready_core: bool,
}

fn toolchain() -> Result<Found> {
    if let Ok(name) = env::var("ROCE_BPF_TOOLCHAIN") {
        let ready_core = has_core(&name);
        if !ready_core && !has_source(&name) {
            bail!(
                "ROCE_BPF_TOOLCHAIN={name}: no such toolchain, or it has neither a core for {TARGET} nor rust-src; {HOW}"
            );
        }
        return Ok(Found { name, ready_core });
    }
    if has_core(LINKED) {
        return Ok(Found { name: LINKED.into(), ready_core: true });
    }
    if has_source(NIGHTLY) {
        return Ok(Found { name: NIGHTLY.into(), ready_core: false });
    }
    bail!(
        "no compiler for {TARGET}: neither a linked toolchain {LINKED} with a ready core nor {NIGHTLY} with rust-src; {HOW}"
    );
}

fn has_core(toolchain: &str) -> bool {
    let Some(dir) = ask(toolchain, &["--print", "target-libdir", "--target", TARGET]) else { return false };
    fs::read_dir(dir).is_ok_and(|d| d.flatten().any(|e| e.file_name().to_string_lossy().starts_with("libcore-")))
}

fn has_source(toolchain: &str) -> bool {
    let Some(root) = ask(toolchain, &["--print", "sysroot"]) else { return false };
    Path::new(&root).join("lib/rustlib/src/rust/library/core/Cargo.toml").exists()
}

/// What that toolchain's rustc answers; without rustup there is only the one in the path, as aya-build does it.
fn ask(toolchain: &str, args: &[&str]) -> Option<String> {
    let mut cmd = match which("rustup") {
        Some(rustup) => {
            let mut c = Command::new(rustup);
            c.args(["run", toolchain, "rustc"]);
            c
        }
        None => Command::new("rustc"),
    };
    let out = cmd.args(args).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn which(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|d| d.join(program)).find(|p| p.is_file())
}
