//! Names the commit that the program is built from, so that `--version` and every answer can say it.
//!
//! Must not know: whether files are changed since; two builds of one commit say one thing.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = package.ancestors().nth(2).expect("crates/cli in a workspace").to_path_buf();
    let commit = commit(&root).unwrap_or_default();
    println!("cargo::rustc-env=FAIRLAB_COMMIT={commit}");
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
