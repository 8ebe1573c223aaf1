//! The first signal ends a command, whatever it is at: within a moment, with 128 + the signal's number or 130.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::limit;
use crate::program::program;

/// A machine so large, and a load so heavy, that a few milliseconds of it take long.
const HEAVY: [&str; 8] = ["jobs", "pairs", "-n", "3000", "-r", "20", "--machine", "emulated:8x16x1"];

fn begin(arguments: &[&str]) -> Child {
    program()
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

/// Sends one signal after a while; the command must end soon.
fn ends_by(signal: &str, arguments: &[&str]) {
    let mut child = begin(arguments);
    thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().expect("its state").is_none(), "{arguments:?} ended by itself");
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success(), "{arguments:?}");
    let asked = Instant::now();
    while asked.elapsed() < Duration::from_secs(20) {
        if let Some(status) = child.try_wait().expect("its state") {
            assert!(!status.success(), "{arguments:?} says that all is well");
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    panic!("{arguments:?} goes on after {signal}");
}

fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("fairlab-interrupt-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn heavy<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, &HEAVY, after].concat()
}

#[test]
fn one_signal_ends_any_experiment() {
    let long = ["--duration", "1000s"];
    let kernels = ["--kernel", "v6.5", "--kernel", "v6.6"];
    for signal in ["-INT", "-TERM"] {
        ends_by(signal, &heavy(&["run"], &[&long[..], &kernels[..2]].concat()));
        ends_by(signal, &heavy(&["compare"], &[&long[..], &kernels].concat()));
        ends_by(signal, &heavy(&["bisect"], &[&long[..], &["--good", "v6.5", "--bad", "v6.6"]].concat()));
    }
}

/// An attribution that is stopped says so, and gives what it found by then: here nothing yet. `timeout` sends its signal twice.
#[test]
fn an_interrupted_attribution_answers() {
    let kernels = ["--kernel", "v6.5", "--kernel", "v6.6", "--runs", "3", "--attribute"];
    let arguments =
        heavy(&["compare"], &[&["--duration", "1000s"][..], &kernels, &["--format", "json"]].concat());
    let child = program()
        .args(&arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    thread::sleep(Duration::from_millis(700));
    for _ in 0..2 {
        let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
    }
    let output = limit::output(child);
    assert_eq!(output.status.code(), Some(143));
    let answer = serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON");
    assert_eq!((&answer["schema"], &answer["partial"]), (&"fairlab/attribute/1".into(), &true.into()));
    assert!(answer["unsearched"].as_u64().is_some_and(|changes| changes > 0), "{answer:#}");
}

/// A report that is stopped keeps the claims that were judged.
#[test]
fn an_interrupted_report_keeps_what_is_judged() {
    let folder = folder("report");
    let path = folder.join("two.toml");
    let text = "title = 'a'\nsource = 'a test'\nmachine = 'vm4'\nworkload = 'pipe -l 20'\nduration_ms = 100\nwarmup_ms = 0\nruns = 4\n\
                [[claim]]\ntext = 'short'\nmetric = 'throughput'\nkernels = ['v6.5', 'v6.6']\npublished = 'same'\n\
                [[claim]]\ntext = 'long'\nmetric = 'throughput'\nsides = ['one', 'other']\npublished = 'same'\n\
                [side.one]\nworkload = 'jobs pairs -n 3000 -r 20'\nmachine = 'emulated:8x16x1'\nduration = '1000s'\n\
                [side.other]\nworkload = 'jobs pairs -n 3000 -r 30'\nmachine = 'emulated:8x16x1'\nduration = '1000s'\n";
    fs::write(&path, text).expect("written");
    for (format, told) in [("text", "partial: 1 of 2 claims"), ("json", "\"judged\": 1")] {
        let interrupted = |after_ms: u64| {
            let child = program()
                .args(["scenario", "run", path.to_str().expect("text"), "--format", format])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts");
            thread::sleep(Duration::from_millis(after_ms));
            let pid = child.id().to_string();
            let sent = Command::new("kill").args(["-INT", &pid]).status().expect("kill runs");
            assert!(sent.success());
            let output = limit::output(child);
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.code(), Some(130), "{printed}");
            printed
        };
        // A busy machine has judged nothing by then.
        let mut printed = [1000, 3000, 9000].into_iter().map(interrupted);
        let judged = printed.find(|printed| printed.contains(told)).expect("one claim is judged");
        assert!(judged.contains("short"), "{judged}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn one_signal_ends_a_sweep() {
    let folder = folder("sweep");
    let plan = folder.join("sweep.toml");
    let text = "kernels = ['v6.6']\nmachines = ['emulated:8x16x1']\nworkloads = ['jobs pairs -n 3000 -r 20']\n\
                seeds = 9\nduration_ms = 1000000\n";
    fs::write(&plan, text).expect("written");
    let out = folder.join("out");
    let words = |path: &Path| path.to_str().expect("text").to_string();
    ends_by("-INT", &["sweep", &words(&plan), "--out", &words(&out)]);
    fs::remove_dir_all(folder).expect("removed");
}
