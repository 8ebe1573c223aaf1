//! `--task`, `--group`, `--time`: every answer takes them, to the same effect, or says why not.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::program::program;
use serde_json::Value;

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = fairlab(&[arguments, &["--format", "json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[track_caller]
fn refused(arguments: &[&str], fragment: &str) {
    let output = fairlab(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arguments:?}: {errors}");
    assert!(errors.contains(fragment) && errors.trim_end().lines().count() == 1, "{arguments:?}: {errors}");
}

fn testdata(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name).to_string_lossy().into_owned()
}

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-chosen-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const TRACE: &str = "ftrace-6.6-vhost-starved.txt.zst";

/// How many waits of a kworker each answer has, and the longest, ns.
fn waits(file: &str, options: &[&str]) -> [(u64, u64); 3] {
    let all = |command: &str| json(&[&[command, file][..], options].concat());
    let latency = all("latency");
    let row = &latency["tasks"][0];
    let summary = all("summary");
    let kinds = ["wakeup_latency", "fork_wait", "preemption_wait"].map(|kind| &summary[kind]);
    let explain = all("explain");
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    [
        (number(&row["count"]), number(&row["max_delay_ns"])),
        (
            kinds.iter().map(|kind| number(&kind["count"])).sum(),
            kinds.iter().map(|kind| number(&kind["max_ns"])).max().unwrap_or(0),
        ),
        (number(&explain["measured"]), number(&explain["stories"][0]["wait_ns"])),
    ]
}

#[test]
fn all_answers_of_a_trace_agree_on_what_is_chosen() {
    let file = testdata(TRACE);
    let [latency, summary, explain] = waits(&file, &["--task", "kworker/2"]);
    assert_eq!((summary, explain), (latency, latency));
    assert_eq!(latency.1 / 1_000, 157_102);
    // It began before, and ends within.
    let [latency, summary, explain] = waits(&file, &["--task", "kworker/2", "--time", "1.6s..1.7s"]);
    assert_eq!((latency, summary, explain), ((1, latency.1), latency, latency));
    assert_eq!(latency.1 / 1_000, 157_102);
    let rows = json(&["timehist", &file, "--task", "kworker/2", "--time", "1.6s..1.7s"]);
    let rows = rows["events"].as_array().expect("rows").clone();
    assert!(
        !rows.is_empty()
            && rows
                .iter()
                .all(|row| row["task"]["comm"].as_str().is_some_and(|comm| comm.starts_with("kworker/2")))
    );
    let machine = json(&["summary", &file, "--task", "kworker/2"]);
    assert!(machine["runqueue_depth"].is_null() && machine["idle_share"].is_null(), "nothing of the machine");
    let part = json(&["summary", &file, "--time", "1.6..1.65"]);
    assert_eq!(
        part["end_ns"].as_u64().zip(part["start_ns"].as_u64()).map(|(end, start)| end - start),
        Some(50_000_000)
    );
}

#[test]
fn what_matches_nothing_is_one_line_and_never_zeros() {
    let file = testdata(TRACE);
    for command in ["latency", "summary", "explain", "blame", "timehist"] {
        refused(
            &[command, &file, "--task", "kworkr/2"],
            "no task is called 'kworkr/2'; closest are kworker/",
        );
        refused(&[command, &file, "--task", "77777"], "no task has the id 77777");
        refused(&[command, &file, "--group", "/nowhere"], "no task is in a group /nowhere");
        refused(&[command, &file, "--group", "nowhere"], "begins with '/'");
        refused(
            &[command, &file, "--time", "500s..501s"],
            "no event lies in 500s..501s; the trace goes from ",
        );
        refused(&[command, &file, "--time", "2..1"], "ends before it begins");
        refused(&[command, &file, "--time", "soon"], "cannot be 'soon': it is no time");
    }
    let folder = Folder::new("nothing");
    let page = folder.path("page.html");
    for (option, word, fragment) in [
        ("--task", "kworkr/2", "no task is called 'kworkr/2'; closest are kworker/"),
        ("--group", "/nowhere", "no task is in a group /nowhere"),
        ("--time", "500s..501s", "no event lies in 500s..501s"),
    ] {
        refused(&["view", &file, "-o", &page, option, word], fragment);
        assert!(!Path::new(&page).exists(), "nothing is written");
    }
    let out = folder.path("out.txt");
    refused(&["convert", &file, &out, "--task", "kworkr/2"], "closest are kworker/");
    assert!(!Path::new(&out).exists(), "nothing is written");
    refused(&["verify", &file, "--time", "1..2"], "--time does not go with verify");
    refused(
        &["compare", "--schedstat", &file, "--schedstat", &file, "--task", "a"],
        "--task does not go with --schedstat",
    );
    refused(
        &["compare", "--counts", "a", "--counts", "b", "--time", "1..2"],
        "--time does not go with --counts",
    );
}

#[test]
fn a_trace_of_what_is_chosen_tells_the_same_of_it() {
    let (file, folder) = (testdata(TRACE), Folder::new("convert"));
    let part = folder.path("part.txt");
    let written = json(&["convert", &file, &part, "--task", "kworker/2"]);
    let whole = json(&["summary", &file]);
    assert!(written["events"].as_u64() < whole["events"].as_u64(), "{written}");
    assert_eq!(waits(&part, &["--task", "kworker/2"]), waits(&file, &["--task", "kworker/2"]));
    let stretch = folder.path("stretch.txt");
    json(&["convert", &file, &stretch, "--time", "1.5..1.7"]);
    let of_stretch = json(&["summary", &stretch]);
    assert!(of_stretch["start_ns"].as_u64().is_some_and(|start| start >= 1_500_000_000));
    assert!(of_stretch["end_ns"].as_u64().is_some_and(|end| end <= 1_700_000_000));
}

/// The data of the page that `view` writes.
fn page(folder: &Folder, file: &str, options: &[&str]) -> Value {
    let path = folder.path("page.html");
    json(&[&["view", file, "-o", &path][..], options].concat());
    let page = std::fs::read_to_string(&path).expect("a page");
    let data = page.split_once("application/json").and_then(|(_, rest)| rest.split_once('>'));
    let data = data.and_then(|(_, rest)| rest.split_once("</script>")).expect("data in the page");
    serde_json::from_str::<Value>(data.0).expect("JSON")["traces"][0].take()
}

#[test]
fn a_page_shows_what_is_chosen() {
    let (file, folder) = (testdata(TRACE), Folder::new("view"));
    let all = page(&folder, &file, &[]);
    let part = page(&folder, &file, &["--task", "kworker/2", "--time", "1.6s..1.6936s"]);
    assert!(all["only"].is_null() && all["length"].as_u64() > Some(100_000_000));
    assert_eq!(part["length"], 93_600_000);
    let comms = |trace: &Value, numbers: &Value| {
        let numbers = numbers.as_array().into_iter().flatten().filter_map(Value::as_u64);
        numbers.map(|number| trace["tasks"]["comm"][number as usize].to_string()).collect::<Vec<_>>()
    };
    let shown = comms(&part, &part["only"]);
    assert!(!shown.is_empty() && shown.iter().all(|comm| comm.starts_with("\"kworker/2")), "{shown:?}");
    let waits = part["waits"].as_array().expect("waits");
    assert_eq!(waits.len(), 1, "that of 157.102 ms, which ends within");
    assert_eq!(waits[0]["who"]["comm"], "kworker/2:1");
    assert!(waits[0]["story"].as_str().is_some_and(|story| story.contains("157.102 ms")), "{waits:?}");
    let everybody = page(&folder, &file, &["--group", "/"]);
    assert_eq!(
        everybody["only"].as_array().map(Vec::len),
        everybody["tasks"]["comm"].as_array().map(Vec::len)
    );
}

const RUN: [&str; 8] = ["run", "schbench", "-m", "1", "-t", "4", "-r", "1"];

/// A run's numbers of a stretch are those that its trace gives of it, and the run is the very run.
#[test]
fn a_run_measures_a_stretch_as_its_trace_tells_it() {
    let folder = Folder::new("run");
    let trace = folder.path("trace.txt");
    let setting = ["--machine", "vm4", "--kernel", "v6.6", "--warmup", "0"];
    let part =
        json(&[&RUN[..], &setting, &["--time", "0.2..0.6", "--trace", &trace, "--by", "task"]].concat());
    let whole = json(&[&RUN[..], &setting].concat());
    let (part, whole) = (&part["runs"][0], &whole["runs"][0]);
    assert_eq!(part["digest"], whole["digest"]);
    assert_ne!(part["metrics"]["wakeup_latency_ns_p99"], whole["metrics"]["wakeup_latency_ns_p99"]);
    assert_eq!(part["simulated_ns"].as_u64(), Some(400_000_000));
    let of_trace = json(&["summary", &trace, "--time", "0.2..0.6", "--task", "schbench"]);
    let longest = of_trace["wakeup_latency"]["max_ns"].as_f64();
    let measured = part["metrics"]["schbench wakeup_latency_ns_max"].as_f64();
    assert!(longest.is_some() && longest == measured, "{longest:?} {measured:?}");
    assert!(part["metrics"].get("schbench_latency_us_p99").is_none(), "the program counts all of its course");
    refused(
        &[&RUN[..], &setting, &["--time", "50s..60s"]].concat(),
        "nothing of the run of v6.6 with seed 1 lies in 50s..60s",
    );
    refused(
        &[&RUN[..], &["--kernel", "host", "--time", "0..1"]].concat(),
        "--time is for kernels in virtual time",
    );
}

#[test]
fn only_those_who_are_asked_for_are_shown_of_runs() {
    let setting = ["--machine", "vm4", "--kernel", "v6.6", "--warmup", "0"];
    let run = json(&[&RUN[..], &setting, &["--task", "schbench"]].concat());
    let names = run["runs"][0]["metrics"].as_object().expect("metrics").keys().cloned().collect::<Vec<_>>();
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("schbench ")), "{names:?}");
    refused(
        &[&RUN[..], &setting, &["--task", "schbnch"]].concat(),
        "no task, group or workload is called 'schbnch'; closest are schbench",
    );
    let compared = json(
        &[
            &["compare"],
            &RUN[1..],
            &["--machine", "vm4", "--kernel", "v6.5", "--kernel", "v6.6", "--runs", "2"][..],
            &["--task", "schbench", "--metric", "p99", "--time", "0.5s.."],
        ]
        .concat(),
    );
    let rows = compared["metrics"].as_array().expect("rows").clone();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["name"], "schbench wakeup_latency_ns_p99");
    assert!(compared["notices"][0].as_str().is_some_and(|notice| notice.contains("0.5s..")), "{compared}");
}
