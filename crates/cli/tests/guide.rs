//! The commands of docs/guide.md, and the lines that stand under them.

use std::path::Path;
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

#[test]
fn the_guide_shows_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/guide.md")).expect("the guide");
    let all = shown(&page);
    assert!(all.len() >= 6, "the guide shows its commands");
    for Shown { line, command, expected } in all {
        assert!(!expected.is_empty(), "line {line}: a command without output");
        let output = Command::new(env!("CARGO_BIN_EXE_fairlab"))
            .args(command.split(' '))
            .current_dir(&root)
            .output()
            .expect("the program runs");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).lines().map(words).collect::<Vec<_>>();
        let mut rest = printed.iter();
        for wanted in expected {
            assert!(
                rest.any(|line| *line == wanted),
                "line {line}: 'fairlab {command}' does not print\n{wanted}\nbut\n{}",
                printed.join("\n")
            );
        }
    }
}
