//! `fairlab kernels build`: what it answers, what it refuses. Fetches Debian's sources of 6.1 once, and fails where it cannot.

#[path = "schema/checker.rs"]
mod schema;

use std::process::{Command, Output};

use serde_json::Value;

fn fairlab(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairlab")).args(words).output().expect("the program starts")
}

#[test]
fn a_kernel_is_built_and_listed() {
    let output = fairlab(&["kernels", "build", "debian:6.1", "--name", "fairlab-test", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    schema::holds(&answer, "built-kernels-1");
    assert!(answer["built"][0]["release"].as_str().is_some_and(|release| release.starts_with("6.1.")));
    let output = fairlab(&["kernels", "list", "--built"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("fairlab-test")).expect("a line of it");
    assert!(
        line.contains("Linux 6.1.") && line.contains("HZ 250") && line.contains("of debian:6.1"),
        "{line}"
    );
}

#[test]
fn what_cannot_be_built_is_told_in_one_line() {
    let folder = std::env::temp_dir().join(format!("fairlab-no-kernel-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let name = folder.display().to_string();
    for (words, told) in [
        (vec!["/no/such/tree"], "there is no such tree"),
        (vec![&name], "is no kernel's tree"),
        (vec![&name, "--hz", "123"], "cannot tick 123 times a second"),
        (vec!["debian:bookworm"], "'bookworm' is no release"),
    ] {
        let output = fairlab(&[&["kernels", "build"], words.as_slice()].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(told), "{errors}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}
