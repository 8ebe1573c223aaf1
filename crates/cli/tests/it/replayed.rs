//! Recordings beside replays of them, as `fairlab verify` shows that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::program::program;
use crate::schema;

fn fairlab(line: &str) -> Output {
    program().args(line.split(' ')).output().expect("the program runs")
}

fn answered(line: &str) -> Value {
    let output = fairlab(&format!("{line} --format json"));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"));
    schema::holds(&answer, "verify-1");
    answer
}

fn recording(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(name);
    path.to_str().expect("UTF-8").to_string()
}

/// A trace of this test's own, gone at its end.
struct Trace(PathBuf);

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// How far replays on a kernel lie from the recording, and whether they reproduce it.
fn distance(answer: &Value, metric: &str, kernel: &str) -> (f64, bool) {
    let parts = ["times", "rates"].map(|part| answer["replay"][part].as_array().expect("rows"));
    let row = parts.into_iter().flatten().find(|row| row["metric"] == metric).expect(metric);
    let side = row["kernels"].as_array().expect("kernels").iter().find(|side| side["kernel"] == kernel);
    let side = side.expect(kernel);
    let apart = side["distance"].as_f64().expect("a distance");
    (apart, side["reproduced"].as_bool().expect("several replays"))
}

/// Six tasks on four CPUs that always want to run: v6.12 cuts slices at each tick, v5.2 after three.
#[test]
fn a_run_of_a_model_is_nearer_to_its_own_kernel_than_to_another() {
    let trace = Trace(std::env::temp_dir().join(format!("fairlab-replayed-{}.dat", std::process::id())));
    let path = trace.0.to_str().expect("UTF-8");
    let made = fairlab(&format!(
        "run spinners -n 0,0,0,0,0,0 --kernel v6.12 --machine vm4 --duration 2s --warmup 0 --trace {path}"
    ));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let line = format!("verify {path} --against v5.2");
    let answer = answered(&line);
    assert_eq!(answer, answered(&line), "a replay is a function of its seeds");
    assert_eq!(answer["replay"]["machine"], "virtual machine with 4 CPUs under one last-level cache, HZ 250");
    for metric in ["preemption_wait_ns", "run_stretch_ns", "switches_per_s"] {
        let [(own, _), (other, is_alike)] = ["v6.12", "v5.2"].map(|kernel| distance(&answer, metric, kernel));
        assert!(own < 0.15 && other > 0.5 && !is_alike, "{metric}: {own} {other}");
    }
    assert!(distance(&answer, "preemption_wait_ns", "v6.12").1, "{answer}");
    let between = answer["replay"]["between_kernels"].as_array().expect("rows");
    let stretches = between.iter().find(|row| row["metric"] == "run_stretch_ns").expect("a row");
    assert!(stretches["distance"].as_f64() > Some(0.5), "{between:?}");
    assert_eq!(stretches["reproduced"], false);
}

#[test]
fn a_real_recording_without_probes_is_put_beside_its_replays() {
    let line = format!("verify {}", recording("6.12-forkstorm-4"));
    let output = fairlab(&line);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let part = text.split_once("\nReplayed: ").expect("the part").1;
    for (place, begin) in [
        "0.281232435 s of the recording's tasks on debian-6.12; 5 replays a kernel",
        "machine: 4 CPUs as recorded",
    ]
    .iter()
    .enumerate()
    {
        assert!(part.lines().nth(place).is_some_and(|line| line.starts_with(begin)), "{part}");
    }
    for row in ["wakeup_latency_ns", "preemption_wait_ns", "run_stretch_ns", "switches_per_s", "busy_share"] {
        assert!(part.lines().any(|line| line.starts_with(row)), "{row}: {part}");
    }
    assert!(part.contains("\ndebian-6.12 does not reproduce, the nearest first, "), "{part}");
    let answer = answered(&line);
    assert_eq!(answer["replay"]["length_ns"], 281_232_435);
    let stretches = &answer["replay"]["times"][2];
    assert_eq!(
        (&stretches["metric"], &stretches["recording"]["count"]),
        (&"run_stretch_ns".into(), &773.into())
    );
    for (metric, most) in [("run_stretch_ns", 0.15), ("switches_per_s", 0.1), ("busy_share", 0.05)] {
        let (apart, _) = distance(&answer, metric, "debian-6.12");
        assert!(apart < most, "{metric}: {apart}");
    }
}

/// With probes decisions are judged, and a replay is made where it is asked for.
#[test]
fn a_replay_can_be_had_and_left_out() {
    let (probed, bare) = (recording("6.12-nice-2-probed"), recording("6.12-nice-2"));
    for line in [format!("verify {probed}"), format!("verify {bare} --no-replay")] {
        assert_eq!(answered(&line)["replay"], Value::Null, "{line}");
    }
    let asked = answered(&format!("verify {probed} --replay --seed 7 --seeds 2"));
    assert_eq!(asked["replay"]["seeds"], serde_json::json!([7, 8]));
    let one = answered(&format!("verify {bare} --seeds 1"));
    let latency = &one["replay"]["times"][0]["kernels"][0];
    assert_eq!((&latency["distance_of_replays"], &latency["reproduced"]), (&Value::Null, &Value::Null));
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let bare = recording("6.12-nice-2");
    for (line, told) in [
        (format!("verify {bare} --against host"), "verify --against takes modelled kernels and"),
        (format!("verify {bare} --against v5.2 --duration 1s"), "a replay is as long as its recording"),
        (format!("verify {bare} --against v5.2 --no-replay"), "cannot be used with --no-replay"),
        ("verify --against v5.2 pipe".to_string(), "--against names one"),
    ] {
        let output = fairlab(&line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(told), "{line}: {said}");
    }
    let piped = |option: &str| {
        let trace = fs::File::open(Path::new(&bare).join("trace.txt.zst")).expect("a trace");
        let line = format!("verify - --kernel debian-6.12 --machine vm4 --clock-hz 1000000000 {option}");
        let mut command = program();
        let output = command.args(line.trim().split(' ')).stdin(Stdio::from(trace)).output();
        let output = output.expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = piped("");
    assert!(code == Some(0) && said.contains("not replayed: what comes through a pipe"), "{code:?}: {said}");
    let (code, said) = piped("--replay");
    assert!(code == Some(2) && said.contains("what comes through a pipe is read once"), "{code:?}: {said}");
}
