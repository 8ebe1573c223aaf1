//! The commands of pages that teach, and the lines that stand under them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of the page and the lines that its output must hold, in this order.
struct Shown {
    line: usize,
    command: String,
    expected: Vec<String>,
}

fn shown(page: &str) -> Vec<Shown> {
    let mut all = Vec::new();
    let mut inside = false;
    for (number, text) in page.lines().enumerate() {
        match text {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (text.strip_prefix("$ fairlab "), all.last_mut()) {
                (Some(command), _) => {
                    let command = command.to_string();
                    all.push(Shown { line: number + 1, command, expected: Vec::new() });
                }
                (None, Some(Shown { expected, .. })) => expected.push(words(text)),
                (None, None) => panic!("line {}: output before a command", number + 1),
            },
        }
    }
    all
}

/// A line without the widths of its columns.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_guide_shows_what_the_program_prints() {
    shows_what_is_printed("docs/guide.md", 6);
}

#[test]
fn the_first_workload_is_the_example_and_prints_what_is_shown() {
    let page = std::fs::read_to_string(root().join("docs/first-workload.md")).expect("the page");
    let example = std::fs::read_to_string(root().join("examples/workloads/first.toml")).expect("the example");
    assert!(page.contains(&format!("```toml\n{example}```\n")), "the page shows the example as it is");
    shows_what_is_printed("docs/first-workload.md", 4);
}

/// Also the exit statuses that the page tells.
#[test]
fn the_page_on_ci_shows_what_the_program_prints() {
    std::fs::create_dir_all(root().join("target/tmp")).expect("a folder for what the page writes");
    shows_what_is_printed("docs/ci.md", 5);
}

/// Runs the commands of a page, which are `least` or more.
fn shows_what_is_printed(page: &str, least: usize) {
    let root = root();
    let text = std::fs::read_to_string(root.join(page)).expect("the page");
    let all = shown(&text);
    assert!(all.len() >= least, "{page} shows its commands");
    for Shown { line, command, expected } in all {
        assert!(!expected.is_empty(), "{page}:{line}: a command without output");
        let output = Command::new(env!("CARGO_BIN_EXE_fairlab"))
            .args(shlex::split(&command).expect("words"))
            .current_dir(&root)
            .output()
            .expect("the program runs");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).lines().map(words).collect::<Vec<_>>();
        let mut rest = printed.iter();
        for wanted in expected {
            assert!(
                rest.any(|line| *line == wanted),
                "{page}:{line}: 'fairlab {command}' does not print\n{wanted}\nbut\n{}",
                printed.join("\n")
            );
            if let Some((_, status)) = wanted.rsplit_once("exit status ") {
                let ended = output.status.code().map(|code| code.to_string());
                assert_eq!(ended.as_deref(), Some(status), "{page}:{line}");
            }
        }
    }
}
