//! docs/first-rule.md is fresh: its patch applies to the sources, and the tests that it names are there.
//!
//! Knows the page's fences, and no code.

use std::io::Write;
use std::process::{Command, Stdio};

use fairlab_house::{FileScope, assert_none, files, root, text};

const PAGE: &str = "docs/first-rule.md";

/// The lines of all fences of one language, as the page's own `awk` line takes them.
fn fenced(page: &str, language: &str) -> String {
    let open = format!("```{language}");
    let mut inside = false;
    let mut lines = String::new();
    for line in page.lines() {
        match line {
            _ if line.starts_with("```") => inside = line == open,
            _ if inside => lines.extend([line, "\n"]),
            _ => {}
        }
    }
    lines
}

/// Whether `git apply` could apply a patch to the sources; what it says if not.
fn applies(patch: &str, direction: &[&str]) -> Result<(), String> {
    let mut git = Command::new("git");
    git.args(["apply", "--check", "--verbose"]).args(direction).arg("-").current_dir(root());
    let mut child = git.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("git runs");
    child.stdin.take().expect("a pipe").write_all(patch.as_bytes()).expect("git reads");
    let output = child.wait_with_output().expect("git ends");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// It may be applied already: a reader who follows the page runs this test, too.
#[test]
fn the_patch_applies() {
    let patch = fenced(&text(PAGE), "diff");
    assert_eq!(patch.matches("\n+++ b/").count(), 4, "{PAGE}: variant, branch, row and test");
    if let Err(problem) = applies(&patch, &[])
        && applies(&patch, &["--reverse"]).is_err()
    {
        panic!("{PAGE}: bring its diff blocks up to date with the sources:\n{problem}");
    }
}

/// Names of tests in a table of the page, or behind `--test`.
#[test]
fn the_tests_that_it_names_are_there() {
    let page = text(PAGE);
    let sources = files(FileScope::Present)
        .into_iter()
        .filter(|path| path.starts_with("crates/kernel/") && path.ends_with(".rs"))
        .map(|path| text(&path))
        .chain([page.clone()])
        .collect::<Vec<_>>();
    let named = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|word| word.contains('_'))
        .map(|name| format!("fn {name}()"))
        .collect::<Vec<_>>();
    assert!(named.len() >= 5, "{PAGE}: its table of tests: {named:?}");
    let missing = named
        .into_iter()
        .filter(|name| !sources.iter().any(|source| source.contains(name.as_str())))
        .collect::<Vec<_>>();
    assert_none("docs/first-rule.md names tests that exist", &missing);
}
