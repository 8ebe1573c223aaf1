//! What the tests about the repository share: its files, cargo's account of it, and how violations are reported.
//!
//! This room must not know what any other crate does: it reads the repository as text, and nothing depends on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// Folders that hold what was built, fetched or measured, never sources.
const OUTPUT_FOLDERS: [&str; 4] = [".git", "target", "out", "web/node_modules"];

/// Which of the repository's files are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileScope {
    /// Those that git tracks.
    Tracked,
    /// Those that git tracks or would offer to add: a new source file is held to the rules before it is committed.
    Present,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    house.ancestors().nth(2).unwrap_or(house).to_path_buf()
}

/// Paths of the repository's existing files, relative to [`root`], sorted, with `/` between the parts.
///
/// Where git knows nothing of the root (an unpacked archive), every file beneath it counts.
pub fn files(scope: FileScope) -> Vec<String> {
    let mut files = files_of_git(scope).unwrap_or_else(|| {
        let mut found = Vec::new();
        walk(&root(), "", &mut found);
        found
    });
    files.sort();
    files
}

/// What `git ls-files` lists, or `None` if git is absent or this root is no repository of its own.
fn files_of_git(scope: FileScope) -> Option<Vec<String>> {
    let root = root();
    let mut git = Command::new("git");
    // A container often runs the tests as another user than the one who owns the checkout; git is only asked to list.
    git.args(["-c", "safe.directory=*", "ls-files", "-z", "--cached"]);
    if scope == FileScope::Present {
        git.args(["--others", "--exclude-standard"]);
    }
    let output = git.current_dir(&root).output().ok().filter(|output| output.status.success())?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let files: Vec<String> =
        listed.split('\0').filter(|path| root.join(path).is_file()).map(str::to_owned).collect();
    files.iter().any(|path| path == "Cargo.toml").then_some(files)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(kind) = entry.file_type() else { continue };
        let path = format!("{prefix}{name}");
        if kind.is_dir() && !OUTPUT_FOLDERS.contains(&path.as_str()) {
            walk(&entry.path(), &format!("{path}/"), found);
        } else if kind.is_file() {
            found.push(path);
        }
    }
}

/// The bytes of a file, by its path relative to [`root`].
///
/// # Panics
/// If the file cannot be read.
pub fn bytes(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text of a file, by its path relative to [`root`]; bytes that are no UTF-8 are replaced.
///
/// # Panics
/// If the file cannot be read.
pub fn text(path: &str) -> String {
    String::from_utf8_lossy(&bytes(path)).into_owned()
}

/// Cargo's account of the workspace and of every crate that it builds on this kind of machine.
///
/// Crates that only other systems need (Windows bindings and the like) are never built for Linux and not listed.
///
/// # Panics
/// If cargo fails, with its message: most often `Cargo.lock` is behind a `Cargo.toml`.
pub fn metadata() -> Value {
    let version = cargo(&["-vV"]);
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo -vV names its host");
    let json = cargo(&["metadata", "--format-version", "1", "--locked", "--filter-platform", host]);
    serde_json::from_str(&json).expect("cargo metadata prints JSON")
}

fn cargo(arguments: &[&str]) -> String {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program).args(arguments).current_dir(root()).output().expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The members of an array in cargo's account; nothing if there is no such array.
pub fn members<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    object[name].as_array().into_iter().flatten()
}

/// A string member in cargo's account; empty if there is no such string.
pub fn string<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// Fails a test with the rule and every violation of it, a line each.
///
/// # Panics
/// If there is a violation.
#[track_caller]
pub fn assert_none(rule: &str, violations: &[String]) {
    assert!(
        violations.is_empty(),
        "{} violation(s) of the rule: {rule}\n  {}\n",
        violations.len(),
        violations.join("\n  ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_of_this_repository() {
        for scope in [FileScope::Tracked, FileScope::Present] {
            let files = files(scope);
            assert!(files.iter().any(|path| path == "Cargo.toml"), "{files:?}");
            assert!(!files.iter().any(|path| path.starts_with("target/")), "{files:?}");
        }
    }

    #[test]
    fn a_walk_finds_what_git_lists() {
        let mut walked = Vec::new();
        walk(&root(), "", &mut walked);
        let missed: Vec<String> =
            files(FileScope::Tracked).into_iter().filter(|path| !walked.contains(path)).collect();
        assert_none("the walk for unpacked archives finds every tracked file", &missed);
    }

    #[test]
    #[should_panic(expected = "2 violation(s) of the rule: order\n  a:1\n  b:2")]
    fn violations_are_listed() {
        assert_none("order", &["a:1".to_owned(), "b:2".to_owned()]);
    }
}
