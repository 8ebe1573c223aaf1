//! `fairlab sweep`, `query` and `merge` as their users meet them: interrupted, gone on with, asked, added up.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::answer;
use crate::limit;
use crate::program::program;
use crate::schema;

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

fn stdout(arguments: &[&str]) -> String {
    let output = fairlab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(arguments)).expect("JSON")
}

fn assert_refused(arguments: &[&str], fragment: &str) {
    let output = fairlab(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arguments:?}: {errors}");
    assert!(errors.lines().count() == 1 && errors.contains(fragment), "{arguments:?}: {errors}");
}

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-sweep-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_string()
    }

    fn sweep(&self, seeds: u32) -> String {
        let text = format!(
            "kernels = ['v6.5', 'v6.6']\nmachines = ['vm4']\nworkloads = ['schbench -m 1 -t {{threads}} -c 500 -s 300']\n\
             seeds = {seeds}\nduration_ms = 300\noptions = {{ threads = [2, 6] }}\n"
        );
        std::fs::write(self.path("sweep.toml"), text).expect("written");
        self.path("sweep.toml")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whole lines of a journal behind its head, each a cell.
fn cells(path: &str) -> usize {
    std::fs::read_to_string(Path::new(path)).map_or(0, |text| text.matches('\n').count().saturating_sub(1))
}

#[test]
fn an_interrupted_sweep_is_gone_on_with() {
    let folder = Folder::new("interrupt");
    let file = folder.sweep(150);
    let journal = folder.path("sweep/cells.jsonl");
    let child =
        program().args(["sweep", &file, "--jobs", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    limit::until("three cells", || cells(&journal) >= 3);
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    let output = limit::output(child);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains(" of 600 cells are done and kept"), "{errors}");
    let kept = cells(&journal);
    assert!((3..600).contains(&kept), "{kept}");
    // What is done is an answer, marked as partial, from the sweep and from whoever asks it.
    let partial = format!("partial: {kept} of the sweep's 600 cells are done\n");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.starts_with(&partial) && printed.contains("wakeup_latency_ns_p99"), "{printed}");
    let asked = json(&["query", &folder.path("sweep"), "--format", "json"]);
    assert_eq!(asked["partial"], serde_json::json!({ "cells": kept, "wanted": 600 }));
    assert!(stdout(&["query", &folder.path("sweep"), "--by", "threads"]).starts_with(&partial));
    let text = answer::body(&stdout(&["sweep", &file]));
    assert!(text.starts_with(&format!("600 cells, {kept} of them done before; ")), "{text}");
    assert_eq!(cells(&journal), 600);
    assert!(json(&["query", &folder.path("sweep"), "--format", "json"])["partial"].is_null());
    // The journal is as its schemas say, line by line.
    let lines = std::fs::read_to_string(&journal).expect("a journal");
    for (number, line) in lines.lines().enumerate().step_by(37) {
        let record = serde_json::from_str(line).expect("JSON");
        schema::holds(&record, if number == 0 { "sweep-journal-3" } else { "sweep-journal-cell-3" });
    }
}

#[test]
fn a_sweep_is_asked_and_added_up() {
    let folder = Folder::new("ask");
    let file = folder.sweep(5);
    let out = folder.path("out");
    let answer = json(&["sweep", &file, "--out", &out, "--metric", "throughput", "--format", "json"]);
    assert_eq!((answer["schema"].as_str(), answer["cells"].as_u64()), (Some("fairlab/query/1"), Some(20)));
    assert_eq!(answer["rows"].as_array().map(Vec::len), Some(4));
    let asked = json(&["query", &out, "--where", "threads=6", "--by", "kernel", "--format", "json"]);
    assert_eq!(
        (asked["cells"].as_u64(), &asked["rows"][1]["group"]["kernel"]),
        (Some(10), &Value::from("v6.6"))
    );
    assert!(stdout(&["query", &out, "--by", "threads,kernel"]).contains("wakeup_latency_ns_p99"));
    let merged = json(&["merge", &out, "--format", "json"]);
    assert_eq!(
        (merged["schema"].as_str(), merged["groups"].as_array().map(Vec::len)),
        (Some("fairlab/merge/1"), Some(4))
    );
    let all = folder.path("all.json");
    assert_refused(&["merge", &out, &out], "is there twice: its runs would count twice");
    let other = folder.path("other.json");
    std::fs::copy(format!("{out}/counts.json"), &other).expect("copied");
    let text = stdout(&["merge", &out, &other, "--all", "--out", &all]);
    assert!(text.contains("any on vm4, any: modelled, 40 runs of 12.0 s together"), "{text}");
    assert_eq!(json(&["merge", &all, "--format", "json"])["groups"][0]["runs"], 40);
    assert_refused(
        &["query", &out, "--by", "colour"],
        "no column 'colour'; it has kernel, machine, workload",
    );
    assert_refused(&["query", &out, "--metric", "frames"], "no metric 'frames'");
    assert_refused(&["query", &out, "--where", "threads"], "a filter is COLUMN=VALUE");
    assert_refused(&["sweep", &folder.sweep(6), "--out", &out], "is the folder of another sweep");
}

#[test]
fn a_run_leaves_counts() {
    let folder = Folder::new("counts");
    let out = folder.path("runs");
    stdout(&[
        "run",
        "schbench",
        "-t",
        "2",
        "-c",
        "500",
        "--kernel",
        "v6.6",
        "--seeds",
        "2",
        "--duration",
        "300ms",
        "--out",
        &out,
    ]);
    let merged = json(&["merge", &out, "--format", "json"]);
    assert_eq!((merged["files"].as_u64(), merged["groups"][0]["runs"].as_u64()), (Some(2), Some(2)));
}

/// A fleet's hosts each send some ten kilobytes of what they recorded: numbers of the host, and of its tasks by name.
#[test]
fn recordings_leave_counts_too() {
    let folder = Folder::new("recorded");
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/perf-hackbench.data");
    let trace = trace.to_str().expect("a path in UTF-8");
    let files = ["one.json", "two.json"].map(|name| folder.path(name));
    for file in &files {
        stdout(&["summary", trace, "--counts", file]);
        assert!(std::fs::metadata(file).expect("a file").len() < 40_000, "some ten kilobytes");
    }
    let group =
        |paths: &[&str]| json(&[&["merge"], paths, &["--format", "json"]].concat())["groups"][0].clone();
    let (one, both) = (group(&[&files[0]]), group(&[&files[0], &files[1]]));
    assert_eq!((one["runs"].as_u64(), both["runs"].as_u64()), (Some(1), Some(2)));
    assert_eq!(one["metrics"]["wakeup_latency_ns_p99"], both["metrics"]["wakeup_latency_ns_p99"]);
    assert_refused(
        &["summary", trace, "--counts", "/nonexistent/counts.json"],
        "cannot write /nonexistent/counts.json",
    );
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = Folder::new("bad");
    assert_refused(&["sweep", "/nonexistent.toml"], "/nonexistent.toml");
    let file = folder.sweep(0);
    assert_refused(&["sweep", &file], "a sweep without seeds has no cells");
    std::fs::write(&file, "kernels = 3").expect("written");
    assert_refused(&["sweep", &file], "line 1");
    assert_refused(&["query", &folder.path("")], "give the folder of a sweep");
    assert_refused(&["merge", &folder.path("")], "no counts.json in it");
    assert_refused(&["merge", &file], "sweep.toml");
    assert_refused(&["merge"], "FILE");
}

/// A journal is refused whose figures were changed, one by one bit in a digit, and one from before its lines had checks.
#[test]
fn a_changed_journal_is_refused() {
    let folder = Folder::new("changed");
    let file = folder.sweep(2);
    let out = folder.path("out");
    stdout(&["sweep", &file, "--out", &out]);
    let path = folder.path("out/cells.jsonl");
    let journal = std::fs::read_to_string(&path).expect("a journal");
    // '9' and '1' differ by a bit.
    let at = journal.find("\"simulated_ns\":").expect("a figure") + "\"simulated_ns\":".len();
    let digit = journal.as_bytes()[at];
    let mut changed = journal.clone().into_bytes();
    changed[at] ^= 1;
    assert!(digit.is_ascii_digit() && changed[at].is_ascii_digit());
    std::fs::write(&path, &changed).expect("written");
    for command in [vec!["query", &out], vec!["sweep", &file, "--out", &out]] {
        assert_refused(&command, "line 2 is not what was written");
    }
    let old = journal
        .lines()
        .skip(1)
        .filter_map(|line| line.strip_prefix("{\"record\":")?.split_once(",\"check\"").map(|(cell, _)| cell));
    std::fs::write(&path, old.map(|cell| format!("{cell}\n")).collect::<String>()).expect("written");
    for command in [vec!["query", &out], vec!["sweep", &file, "--out", &out]] {
        assert_refused(&command, "line 1 is no head of a journal");
    }
}
