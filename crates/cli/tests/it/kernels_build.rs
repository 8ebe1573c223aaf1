//! `fairlab kernels build`: what it answers, what it refuses. Fetches Debian's sources of 6.1 once, and fails where it cannot.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::limit;
use crate::program::program;
use crate::schema;

fn fairlab(words: &[&str]) -> Output {
    program().args(words).output().expect("the program starts")
}

/// A name that is given to a kernel, and taken away again; the kernel stays.
struct Name(String);

impl Drop for Name {
    fn drop(&mut self) {
        if let Ok(place) = fairlab_files::cache::CacheFolder::place() {
            let _ = std::fs::remove_file(place.join("kernel-names").join(&self.0));
        }
    }
}

#[test]
fn a_kernel_is_built_and_listed() {
    let name = Name(format!("test-{}", std::process::id()));
    let output = fairlab(&["kernels", "build", "debian:6.1", "--name", &name.0, "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    schema::holds(&answer, "built-kernels-1");
    assert!(answer["built"][0]["release"].as_str().is_some_and(|release| release.starts_with("6.1.")));
    let output = fairlab(&["kernels", "list", "--built"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains(&name.0)).expect("a line of it");
    assert!(
        line.contains("Linux 6.1.") && line.contains("HZ 250") && line.contains("of debian:6.1"),
        "{line}"
    );
}

/// The answer of a command that succeeds.
fn answered(line: &str) -> Value {
    let output = fairlab(&line.split(' ').collect::<Vec<_>>());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{line}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn a_trees_own_code_runs_and_a_seed_says_how() {
    let digest = |seed: &str| {
        let answer = answered(&format!(
            "run hackbench -g 1 -l 20 --machine layout:1x1x4x1 --kernel src:debian:6.1 --seed {seed} --format json"
        ));
        schema::holds(&answer, "run-1");
        assert!(answer["runs"][0]["switches"].as_u64() > Some(100), "{answer}");
        answer["runs"][0]["digest"].clone()
    };
    assert_eq!(digest("1"), digest("1"));
    assert_ne!(digest("1"), digest("2"));
    let folder = std::env::temp_dir().join(format!("fairlab-probed-{}", std::process::id()));
    let out = folder.display().to_string();
    let words = [
        "run",
        "pipe",
        "--kernel",
        "src:debian:6.1",
        "--machine",
        "layout:1x1x4x1",
        "--probes",
        "--out",
        &out,
    ];
    let output = fairlab(&words);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && errors.contains("prints no probes"), "{errors}");
    let _ = std::fs::remove_dir_all(folder);
}

/// Ctrl-C in a terminal reaches the processes in which own code runs, too, and they have no handler for it.
#[test]
fn a_signal_to_all_processes_of_a_comparison_leaves_its_answer() {
    let line = "compare schbench -m 1 -t 4 --machine layout:1x1x4x1 --duration 1s --runs 900 --jobs 2 --kernel src:debian:6.1 --kernel v6.1";
    let mut command = program();
    command.args(line.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = CommandExt::process_group(&mut command, 0).spawn().expect("the program starts");
    std::thread::sleep(std::time::Duration::from_secs(5));
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-TERM", "--", &group]).status().expect("kill runs");
    assert!(sent.success(), "it has ended by itself");
    let output = limit::output(child);
    let [answer, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert_eq!(output.status.code(), Some(143), "{errors}");
    assert!(answer.starts_with("partial: ") && !errors.contains("system call"), "{answer}{errors}");
}

/// What each of these once showed: the plain case; tasks that have not run are cold at the very start; new-idle balancing throws
/// dice, and takes one task in a preemptible kernel; wakee_flips are halved by jiffies after a second.
#[test]
fn the_model_follows_a_trees_own_code() {
    for workload in [
        "pipe -l 300 --machine layout:1x1x4x2",
        "spinners -n 0,0,5,-5,0,0,0,0,10 -r 1 --machine layout:1x1x4x2",
        "random -t 12 -r 300 --machine laptop8",
        "spinners -n 0,0,0,0,0,0,0,0,0,0 -r 1 --machine layout:1x1x4x1",
        "schbench -m 2 -t 4 -r 1 --machine layout:1x1x4x2 --duration 1.03s",
        // A stopper of another cache is woken by its CPU; a CPU to which a wakeup is on its way has no idle_stamp.
        "spinners -n 0,0,0,0,0,0,0,0,0,0,5,5,-5,10 -r 1 --machine layout:2x1x4x2",
        "hackbench -g 2 -l 100 --machine layout:2x1x4x2 --duration 4ms",
        // What was moved may be moved on at once.
        "random -t 40 -r 200 --run-us 1000 --sleep-us 1000 --machine layout:1x1x4x2 --duration 100ms",
        // Programs are replaced: sched_exec() ages the average of a task that runs.
        "random -t 12 -r 300 --execs --machine layout:1x1x4x2",
        "random -t 16 -r 200 --execs --policies --nice --groups 3 --machine layout:2x1x4x2",
    ] {
        let answer = answered(&format!(
            "verify --kernel debian-6.1 --against src:debian:6.1 {workload} --format json"
        ));
        schema::holds(&answer, "oracle-1");
        assert_eq!(answer["difference"], Value::Null, "{workload}");
        let judged =
            answer["checks"].as_array().expect("checks").iter().filter_map(|check| check["judged"].as_u64());
        assert!(judged.sum::<u64>() > 20_000, "{workload}: {answer}");
    }
}

/// Cases by chance in which the model once did otherwise: weights of empty groups, queues that are aged, exits, attributes that a task has
/// already, CPUs in turn, buddies, a new-idle search by the idle task.
#[test]
fn what_following_a_tree_has_found_stays_mended() {
    for seed in CASES {
        let answer = answered(&format!(
            "verify --kernel debian-6.1+NO_NI_RANDOM --against src:debian:6.1+NO_NI_RANDOM --cases 1 --seed {seed} --format json"
        ));
        assert_eq!(answer["difference"], Value::Null, "case {seed}: {answer}");
    }
}

/// Small ones of them, by number.
const CASES: [u64; 5] = [12, 14, 23, 25, 39];

/// Runs in which nothing differs, on each machine and of cases by chance: these must not become fewer.
const ALIKE: [(&str, u64); 5] = [
    ("layout:1x1x4x1", 15),
    ("layout:1x1x20x2", 16),
    ("layout:2x1x20x2", 16),
    ("layout:4x1x24x2", 15),
    ("by chance", 10),
];

#[test]
fn a_survey_counts_runs_in_which_nothing_differs() {
    let answer = answered("fidelity --oracle 6.1 --seeds 1 --cases 12 --duration 20ms --format json");
    schema::holds(&answer, "fidelity-oracle-1");
    let [release] = &answer["releases"].as_array().expect("releases")[..] else {
        panic!("one release: {answer}")
    };
    let rows = release["rows"].as_array().expect("rows");
    for ((machine, least), row) in ALIKE.iter().zip(rows) {
        assert_eq!(row["machine"].as_str().unwrap_or("by chance"), *machine);
        let (runs, alike) = (row["runs"].as_u64().expect("runs"), row["alike"].as_u64().expect("alike"));
        let differences = row["differences"].as_array().expect("differences");
        assert_eq!(row["failed"], Value::Array(Vec::new()), "{machine}");
        assert_eq!(alike + differences.len() as u64, runs, "{machine}");
        assert!(alike >= *least, "{machine}: {alike} of {runs} alike: {differences:#?}");
    }
    let refused = fairlab(&["fidelity", "--oracle", "9.9"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// By words of its sources, and by how it is built.
#[test]
fn a_tree_chooses_its_model_itself() {
    let line = "verify --kernel v6.1 --against src:debian:6.1 periodic -n 2 --machine vm4 --duration 1ms";
    let output = fairlab(&line.split(' ').collect::<Vec<_>>());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in [
        "src:debian:6.1 has ",
        " 1c0482707c42 (newidle-next)",
        ", which v6.1 lacks: --kernel v6.1+",
        "src:debian:6.1 is followed as v6.1+preemptible, for it is built so",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let line =
        "verify --kernel v6.1+PREEMPT --against src:debian:6.1 periodic -n 2 --machine vm4 --duration 1ms";
    let output = fairlab(&line.split(' ').collect::<Vec<_>>());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("is built with preemption 'dynamic', v6.1+PREEMPT is not"), "{told}");
    let answer = answered("fidelity --oracle src:debian:6.1 --cases 2 --duration 1ms --format json");
    schema::holds(&answer, "fidelity-oracle-1");
    let release = &answer["releases"][0];
    assert_eq!(release["sources"], "debian:6.1");
    let backports = release["backports"].as_array().expect("names");
    assert!(backports.len() >= 10 && backports.contains(&Value::from("newidle-next")), "{backports:?}");
    assert!(release["kernel"].as_str().is_some_and(|name| name.ends_with("+preemptible")), "{release}");
}

/// What a replay on the model and on its tree's own code miss alike is no fault of the model's.
#[test]
fn a_recording_is_replayed_by_its_trees_own_code() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/6.1-storm-2");
    let line = format!("verify {} --against src:debian:6.1 --format json", recording.display());
    let answer = answered(&line);
    schema::holds(&answer, "verify-1");
    let between = answer["replay"]["between_kernels"].as_array().expect("rows");
    let apart = |metric: &str| {
        let row = between.iter().find(|row| row["metric"] == metric).expect(metric);
        row["distance"].as_f64().expect("a distance")
    };
    for (metric, most) in [("wakeup_latency_ns", 0.1), ("run_stretch_ns", 0.06), ("switches_per_s", 0.05)] {
        assert!(apart(metric) < most, "{metric}: {between:?}");
    }
    let origins = answer["provenance"]["origin"].as_array().expect("several");
    assert!(origins.contains(&Value::from("driven")), "{origins:?}");
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
