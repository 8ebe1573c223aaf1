//! Makes what a booted machine is given, so that the program carries it: the guest's first process, linked so that it
//! needs nothing else, and what is loaded into QEMU.
//!
//! Must not know: what either of them does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the guest's program is made of, relative to the workspace.
const GUEST_SOURCES: [&str; 7] = [
    "crates/guest",
    "crates/live",
    "crates/sim/src",
    "crates/kernel/src",
    "crates/files/src",
    "crates/event/src",
    "Cargo.lock",
];

/// The architecture of the machines that are booted.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    let of = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(of("OUT_DIR"));
    let package = PathBuf::from(of("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().nth(2).expect("crates/boot in a workspace");
    let shim = out.join("lockstep.so");
    let source = package.join("src/lockstep.c");
    println!("cargo::rerun-if-changed={}", source.display());
    if of("TARGET") == TARGET {
        make_shim(&source, &shim);
    } else {
        fs::write(&shim, []).expect("an empty file");
    }
    let carries = of("TARGET") == TARGET && of("PROFILE") == "release";
    let list = carried(&root.join("target/guest/carried"));
    for (architecture, file) in [("amd64", "fairlab-guest"), ("arm64", "fairlab-guest-arm64")] {
        // In a build for development the guest's program would be made again after each change of the model: there it is made
        // by who needs it, and named by an environment variable.
        if carries && list.contains(architecture) {
            let made = run(Command::new(root.join("scripts/guest")).arg(architecture), "the guest's program");
            let made = made.trim();
            fs::copy(made, out.join(file)).unwrap_or_else(|error| panic!("{made}: {error}"));
        } else {
            fs::write(out.join(file), []).expect("an empty file");
        }
    }
    if carries {
        for source in GUEST_SOURCES {
            println!("cargo::rerun-if-changed={}", root.join(source).display());
        }
    }
}

/// The architectures for which a guest's program is carried: `make guest-arm64` adds one, since not every toolchain can build it.
fn carried(list: &Path) -> String {
    println!("cargo::rerun-if-changed={}", list.display());
    fs::read_to_string(list).unwrap_or_else(|_| {
        let usual = "amd64\n".to_string();
        let made = list.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(list, &usual));
        made.unwrap_or_else(|error| panic!("{}: {error}", list.display()));
        usual
    })
}

/// The C compiler is the one that links Rust's programs.
fn make_shim(source: &Path, to: &Path) {
    let mut command = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-O2", "-Wall", "-shared", "-fPIC", "-o"]).arg(to).arg(source).args(["-ldl", "-lpthread"]);
    run(&mut command, "what is loaded into QEMU");
}

fn run(command: &mut Command, what: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{what}: {command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what} could not be made: {command:?}\n{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
