//! Names the commit that the program is built from, so that `--version` and every answer can say it; and makes the first process of
//! a booted kernel, which released programs carry.
//!
//! Must not know: whether files are changed since the commit (two builds of one commit say one thing), and what a guest does.

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

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let package = PathBuf::from(of_cargo("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().nth(2).expect("crates/cli in a workspace").to_path_buf();
    let commit = commit(&root).unwrap_or_default();
    println!("cargo::rustc-env=FAIRLAB_COMMIT={commit}");
    carry_guests(&root);
}

fn of_cargo(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// A build for development carries none: the guest would be made again after each change of the model. There it is made by who needs
/// it, and named by an environment variable.
fn carry_guests(root: &Path) {
    let carries = of_cargo("TARGET") == "x86_64-unknown-linux-gnu" && of_cargo("PROFILE") == "release";
    let list = carried(&root.join("target/guest/carried"));
    for (architecture, file) in [("amd64", "fairlab-guest"), ("arm64", "fairlab-guest-arm64")] {
        let file = PathBuf::from(of_cargo("OUT_DIR")).join(file);
        if carries && list.contains(architecture) {
            let made = guest(root, architecture);
            fs::copy(&made, file).unwrap_or_else(|error| panic!("{made}: {error}"));
        } else {
            fs::write(file, []).expect("an empty file");
        }
    }
    for source in GUEST_SOURCES.iter().filter(|_| carries) {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
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

/// Where the guest's program is, linked so that it needs nothing else.
fn guest(root: &Path, architecture: &str) -> String {
    let mut command = Command::new(root.join("scripts/guest"));
    let output = command.arg(architecture).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the guest's program could not be made: {command:?}\n{said}");
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// The commit of the repository at `root`; none where the sources lie in no repository, or in someone else's.
fn commit(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // These change with every commit and checkout. A file that is not there would mean a build each time.
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        let path = root.join(git(root, &["rev-parse", "--git-path", name])?);
        if path.is_file() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    if let Some(branch) = git(root, &["symbolic-ref", "--quiet", "HEAD"]) {
        let path = root.join(git(root, &["rev-parse", "--git-path", &branch])?);
        if path.is_file() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(root, &["rev-parse", "--short=12", "HEAD"])
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string()).filter(|text| !text.is_empty())
}
