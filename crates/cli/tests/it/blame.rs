//! `fairlab blame` as its users meet it: the sentence, the tables, two traces, refusals.

use std::path::Path;

use serde_json::Value;

use crate::program::program;

fn testdata(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name).to_string_lossy().into_owned()
}

fn stdout(arguments: &[&str]) -> String {
    let output = program().args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn refused(arguments: &[&str], fragment: &str) {
    let output = program().args(arguments).output().expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arguments:?}: {errors}");
    assert!(errors.lines().count() == 1 && errors.contains(fragment), "{arguments:?}: {errors}");
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[arguments, &["--format", "json"]].concat())).expect("JSON")
}

const STARVED: &str = "ftrace-6.6-vhost-starved.txt.zst";

#[test]
fn a_sentence_then_tables() {
    let text = stdout(&["blame", &testdata(STARVED), "--task", "kworker/2"]);
    let sentence = text.lines().find(|line| line.starts_with("kworker/2 waited")).expect("a sentence");
    assert!(sentence.contains("in 2 waits") && sentence.contains("behind 'vhost'"), "{sentence}");
    for title in ["Culprits (msec)", "Rules (msec)", "Ends (msec)", "Beginnings (msec)", "Wakers (msec)"] {
        assert!(text.contains(title), "{title}:\n{text}");
    }
    assert!(text.contains("not told by this trace") && text.contains("another CPU was idle"), "{text}");
    let each = stdout(&["blame", &testdata(STARVED), "--task", "kworker/2", "--each"]);
    assert!(each.contains("vhost-2:143"), "{each}");
    let short = stdout(&["blame", &testdata("perf-hackbench.data"), "--top", "1"]);
    assert!(short.contains(" more\n"), "{short}");
}

#[test]
fn the_end_says_the_largest_cause_and_how_to_go_on() {
    let trace = testdata(STARVED);
    let text = stdout(&["blame", &trace, "--task", "kworker/2"]);
    assert!(text.contains("\nLargest cause: vhost, 157.13 ms, 100 % of the waiting.\n"), "{text}");
    assert!(text.ends_with("What to record for the rules: docs/traces.md, 'Rules'\n"), "{text}");
    // A thread is called as explain prints it.
    let one = stdout(&["blame", &trace, "--task", "vhost-2:143", "--time", "0..1000000"]);
    assert!(one.contains("vhost-2:143 waited"), "{one}");
    let explained = stdout(&["explain", &trace, "--task", "vhost-2:143", "--worst", "1"]);
    assert!(explained.contains("vhost-2:143 waited"), "{explained}");
    refused(&["blame", &trace, "--task", "vhost-2:144"], "no task is called 'vhost-2:144'");
}

/// A task waits 199 times for 50 us behind another, and three times for 3 ms for its group's quota.
fn waits_for_quota() -> String {
    let switch = |at_us: u64, (prev, pid, state): (&str, u32, &str), (next, next_pid): (&str, u32)| {
        format!(
            "{prev}-{pid} [000] dN.2. {:.6}: sched_switch: prev_comm={prev} prev_pid={pid} prev_prio=120 prev_state={state} ==> \
             next_comm={next} next_pid={next_pid} next_prio=120\n",
            at_us as f64 / 1e6
        )
    };
    let (api, other) = (("api", 65), ("z", 9));
    let mut trace = "# tracer: nop\n#\n\
        x-1 [000] ..... 0.000001: cgroup_mkdir: root=0 id=7 level=1 path=/a\n\
        x-1 [000] ..... 0.000003: cgroup_attach_task: dst_root=0 dst_id=7 dst_level=1 dst_path=/a pid=65 comm=api\n"
        .to_string();
    trace += &switch(10, ("x", 1, "S"), api);
    for wait in 0..199 {
        trace += &switch(100 * wait + 100, ("api", 65, "R"), other);
        trace += &switch(100 * wait + 150, ("z", 9, "S"), api);
    }
    for start in [30_000, 40_000, 50_000] {
        let line = |task: &str, at: u64, what: &str| {
            format!("{task} [000] dN.2. {:.6}: {what}_cfs_rq: cg=7 cpu=0\n", at as f64 / 1e6)
        };
        trace += &line("api-65", start, "throttle");
        trace += &switch(start, ("api", 65, "R"), other);
        trace += &line("z-9", start + 3_000, "unthrottle");
        trace += &switch(start + 3_000, ("z", 9, "S"), api);
    }
    trace + &switch(55_000, ("api", 65, "S"), ("swapper/0", 0))
}

/// The largest cause of all waits may be another than that of the longest ones.
#[test]
fn the_end_tells_the_cause_of_the_longest_waits_too() {
    let trace = std::env::temp_dir().join(format!("fairlab-blame-quota-{}.txt", std::process::id()));
    std::fs::write(&trace, waits_for_quota()).expect("written");
    let text = stdout(&["blame", &trace.to_string_lossy(), "--task", "api"]);
    let _ = std::fs::remove_file(trace);
    let told = text.lines().find(|line| line.starts_with("Largest cause: ")).expect("a cause");
    assert!(told.starts_with("Largest cause: z (another group), 9.95 ms, 53 % of the waiting;"), "{told}");
    assert!(told.contains("; of the longest waits: its group's quota was used up, "), "{told}");
    assert!(text.contains("\nMore quota, or fewer threads: docs/limits.md tries both."), "{text}");
}

const HACKBENCH: &str = "hackbench -g 1 -f 4 -l 5";

/// A run of a workload that leaves what these options say there.
fn run_into(workload: &str, options: &str, place: &str) {
    let run = format!("run {workload} --machine vm4 --warmup 0 --kernel v6.12 {options}");
    stdout(&run.split(' ').chain([place]).collect::<Vec<_>>());
}

#[test]
fn a_folder_of_runs_names_one_of_them() {
    let folder = std::env::temp_dir().join(format!("fairlab-blame-runs-{}", std::process::id()));
    let path = folder.to_str().expect("a path in UTF-8");
    run_into(HACKBENCH, "--duration 20ms --seeds 2 --out", path);
    for command in ["blame", "explain", "summary", "latency"] {
        refused(
            &[command, path],
            "this is a folder of runs, and the answer is about one trace; give one of them, such as",
        );
        refused(&[command, path], "v6.12/seed-1");
    }
    let seed = format!("{path}/v6.12/seed-1");
    assert!(stdout(&["blame", &seed]).contains("Largest cause: "));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn two_traces_are_set_beside_each_other() {
    let (before, after) = (testdata("perf-hackbench.data"), testdata("perf-make.data"));
    let text = stdout(&["blame", &before, &after]);
    assert!(text.contains("of waiting in each second that the tasks ran, of it "), "{text}");
    assert!(text.contains("Before (") && text.contains("After (") && text.contains("no verdict"), "{text}");
    let answer = json(&["blame", &before, &after]);
    assert_eq!(answer["sides"].as_array().map(Vec::len), Some(2));
    let rows = answer["change"]["culprits"].as_array().expect("rows").clone();
    let sizes = rows.iter().map(|row| row["added_ns"].as_f64().expect("a number").abs()).collect::<Vec<_>>();
    assert!(sizes.len() > 2 && sizes.windows(2).all(|pair| pair[0] >= pair[1]), "{sizes:?}");
    let same = json(&["blame", &before, &before]);
    assert_eq!(same["change"]["total"]["added_ns"], 0.0);
    assert!(json(&["blame", &before])["change"].is_null());
}

#[test]
fn what_cannot_be_answered_is_one_line() {
    let trace = testdata(STARVED);
    refused(&["blame", &trace, "--task", "nobody"], "no task is called 'nobody'");
    refused(
        &["blame", &trace, &testdata("perf-make.data"), "--task", "kworker/2"],
        "perf-make.data: no task",
    );
    refused(&["blame", "-", "-"], "standard input is one trace");
    refused(&["blame", "/nonexistent"], "/nonexistent: No such file");
    refused(&["run", "pipe", "--kernel", "v6.6", "--decisions"], "give --trace or --out");
    refused(
        &["run", "pipe", "--kernel", "host", "--decisions", "--trace", "/tmp/never.txt"],
        "takes modelled kernels",
    );
}

#[test]
fn a_run_with_decisions_tells_its_rules() {
    let trace = std::env::temp_dir().join(format!("fairlab-blame-{}.dat", std::process::id()));
    let file = trace.to_str().expect("a path in UTF-8");
    let blamed = |workload: &str, options: &str, task: &str| {
        run_into(workload, options, file);
        let text = stdout(&["blame", file, "--task", task]);
        std::fs::remove_file(&trace).expect("removed");
        text
    };
    let text = blamed(HACKBENCH, "--duration 50ms --decisions --trace", "hackbench");
    assert!(
        text.contains("the other was picked, since ") && text.contains("its wakeup did not preempt"),
        "{text}"
    );
    assert!(
        text.contains("The worst waits: fairlab explain ") && text.ends_with(" --task hackbench --worst 3\n"),
        "{text}"
    );
    let untold = blamed("jobs spin -n 8", "--duration 50ms --trace", "job");
    assert!(untold.ends_with("\nThe rules: fairlab run … --decisions --trace FILE\n"), "{untold}");
}
