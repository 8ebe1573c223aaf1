//! The commands of pages that teach, and the lines that stand under them.

use crate::program::program;
use std::path::{Path, PathBuf};

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

/// Pages whose commands are run, and how many each has at least.
const PAGES: [(&str, usize); 11] = [
    ("guide.md", 6),
    ("first-workload.md", 4),
    ("ci.md", 5),
    ("compare-recordings.md", 5),
    ("sweep.md", 2),
    ("report-files.md", 1),
    ("own-machine.md", 2),
    ("kernels.md", 2),
    ("workloads.md", 1),
    ("trust.md", 1),
    ("watch.md", 1),
];

/// Its kernels are booted: tests/boot.rs makes such runs.
const BOOTS: &str = "boot.md";

/// Folders that commands of pages write, which have to be new.
const WRITTEN: [&str; 2] = ["target/tmp/recordings", "target/tmp/threads"];

#[test]
fn every_page_that_shows_commands_is_run() {
    let folder = std::fs::read_dir(root().join("docs")).expect("the book");
    let mut shown: Vec<String> = folder
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| name.ends_with(".md") && name != BOOTS)
        .filter(|name| {
            let text = std::fs::read_to_string(root().join("docs").join(name)).expect("a page");
            text.contains("```console\n$ fairlab")
        })
        .collect();
    shown.sort();
    let mut run: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
    run.sort_unstable();
    assert_eq!(shown, run);
}

#[test]
fn the_guide_shows_what_the_program_prints() {
    shows_what_is_printed("guide.md");
}

#[test]
fn examples_stand_in_pages_as_they_are() {
    for (page, example) in [
        ("first-workload.md", "workloads/first.toml"),
        ("sweep.md", "sweeps/threads.toml"),
        ("limits.md", "workloads/go-service.toml"),
        ("own-machine.md", "machines/xeon-2s64.toml"),
    ] {
        let text = std::fs::read_to_string(root().join("docs").join(page)).expect("the page");
        let example = std::fs::read_to_string(root().join("examples").join(example)).expect("the example");
        assert!(text.contains(&format!("```toml\n{example}```\n")), "{page} shows the example as it is");
    }
}

#[test]
fn the_first_workload_prints_what_is_shown() {
    shows_what_is_printed("first-workload.md");
}

/// Also the exit statuses that the page on CI tells.
#[test]
fn other_pages_show_what_the_program_prints() {
    std::fs::create_dir_all(root().join("target/tmp")).expect("a folder for what pages write");
    for folder in WRITTEN {
        let _ = std::fs::remove_dir_all(root().join(folder));
    }
    for (page, _) in PAGES.iter().filter(|(page, _)| !["guide.md", "first-workload.md"].contains(page)) {
        shows_what_is_printed(page);
    }
}

/// Runs the commands of a page.
fn shows_what_is_printed(page: &str) {
    let root = root();
    let text = std::fs::read_to_string(root.join("docs").join(page)).expect("the page");
    let all = shown(&text);
    let least = PAGES.iter().find(|(name, _)| *name == page).map(|(_, least)| *least);
    assert!(least.is_some_and(|least| all.len() >= least), "{page} shows its commands");
    for Shown { line, command, expected } in all {
        assert!(!expected.is_empty(), "{page}:{line}: a command without output");
        let output = program()
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
