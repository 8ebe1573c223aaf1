//! Programs of others that read our files, and folders to put these in.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of one test, removed with it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-trace-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file for the test");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A program that scripts/with-peers brings: from where it puts it, else from the path.
fn program(name: &str) -> PathBuf {
    let brought = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/bin").join(name);
    if brought.exists() { brought } else { PathBuf::from(name) }
}

/// What a program prints; it must succeed.
pub fn run(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(program(name))
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{name}: {error}; cure: run the tests with scripts/with-peers"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {}: {errors}", output.status);
    assert!(!errors.contains("rror"), "{name} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
