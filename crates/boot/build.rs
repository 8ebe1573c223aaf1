//! Makes what is loaded into QEMU.
//!
//! Must not know: what it does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The architecture of the machines that are booted.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    let of = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(of("OUT_DIR"));
    let package = PathBuf::from(of("CARGO_MANIFEST_DIR"));
    let shim = out.join("lockstep.so");
    let source = package.join("src/lockstep.c");
    println!("cargo::rerun-if-changed={}", source.display());
    if of("TARGET") == TARGET {
        make_shim(&source, &shim);
    } else {
        fs::write(&shim, []).expect("an empty file");
    }
}

/// The C compiler is the one that links Rust's programs.
fn make_shim(source: &Path, to: &Path) {
    let mut command = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-O2", "-Wall", "-shared", "-fPIC", "-o"]).arg(to).arg(source).args(["-ldl", "-lpthread"]);
    let output =
        command.output().unwrap_or_else(|error| panic!("what is loaded into QEMU: {command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "what is loaded into QEMU could not be made: {command:?}\n{said}");
}
