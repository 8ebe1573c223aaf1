//! `fairlab compare` as its users meet it: layouts, exports, folders of runs, refusals.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// Exit code 2, nothing on standard output, one line on standard error.
fn assert_refused(arguments: &[&str], fragment: &str) {
    let output = fairlab(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{arguments:?}: {errors}");
    assert!(errors.lines().count() == 1 && errors.contains(fragment), "{arguments:?}: {errors}");
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fairlab-compare-{}-{name}", std::process::id()))
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

const WORKLOAD: [&str; 11] =
    ["schbench", "-m", "2", "-t", "8", "-c", "3000", "-s", "1000", "--duration", "500ms"];
const KERNELS: [&str; 4] = ["--kernel", "v6.5", "--kernel", "v6.6,base_slice_ns=30000000"];

fn command(more: &[&'static str]) -> Vec<&'static str> {
    [&["compare"], &WORKLOAD[..], &KERNELS, more].concat()
}

const POD: &str = r#"
[group."/pod"]
cpu.weight = 39

[[workload]]
name = "container"
group = "/pod"
main = true
cpus = "0"
[[workload.task]]
name = "app"
steps = ["run 2ms", "reply"]

[[workload]]
name = "daemon"
cpus = "0"
[[workload.task]]
name = "agent"
steps = ["run 2ms"]
"#;

/// A group's weight is what differs, and the folder of the runs keeps that.
#[test]
fn sides_differ_in_whatever_they_say() {
    let folder = temporary("sides");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, out) = (folder.join("pod.toml"), folder.join("out"));
    std::fs::write(&file, POD).expect("written");
    let (file, out) = (file.to_str().expect("a path"), out.to_str().expect("a path"));
    let common =
        ["--machine", "vm4", "--warmup", "0", "--duration", "400ms", "--runs", "4", "--metric", "throughput"];
    let of = |more: &[&str]| stdout(&[&["compare"][..], &common, more, &[file]].concat());
    let told = of(&["--vary", "group./pod.cpu.weight=39,100", "--kernel", "v6.12", "--out", out]);
    let differ = "sides differ in the workload (group./pod.cpu.weight=39: '";
    assert!(told.contains(differ) && told.contains("better, 4 paired runs"), "{told}");
    let again =
        of(&["--vary", "group./pod.cpu.weight=39,100", "--kernel", "v6.12", "--out", out, "--resume"]);
    assert!(again.contains("better, 4 paired runs"), "{again}");
    let there = stdout(&["compare", "--folder", out, "--metric", "throughput"]);
    assert!(there.contains("better, 4 paired runs"), "{there}");
    let sides = ["--side", "small: kernel=v6.6", "--side", "many: machine=laptop8 workload.daemon.cpus=1"];
    let told = of(&[&sides[..], &["--format", "json"]].concat());
    let answer: Value = serde_json::from_str(&told).expect("JSON");
    schema::holds(&answer, "compare-1");
    assert_eq!(
        (&answer["baseline"], &answer["metrics"][0]["kernel"]),
        (&Value::from("small"), &Value::from("many"))
    );
    assert_eq!(answer["provenance"]["machines"], serde_json::json!(["vm4", "laptop8"]));
    for (more, fragment) in [
        (&["--side", "a: kernel=v6.6"][..], "a comparison needs two sides"),
        (&["--side", "a:", "--side", "b:"], "sides a and b do not differ"),
        (&["--vary", "group./pod.cpu.wight=1,2"], "cpu.wight"),
        (&["--vary", "x=1"], "1 values are given"),
        (
            &["--vary", "base_slice_ns=1000000,2000000", "--kernel", "v6.6", "--kernel", "v6.7"],
            "more than once",
        ),
    ] {
        assert_refused(&[&["compare"][..], more, &[file]].concat(), fragment);
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// Recordings are sides, too: whose waits grew, and behind whom. One each gives no verdict.
#[test]
fn two_recordings_are_compared_and_explained() {
    let recordings = ["5.10-hackbench-4", "7.2-hackbench-4"]
        .map(|name| format!("{}/../../testdata/recordings/{name}/trace.txt.zst", env!("CARGO_MANIFEST_DIR")));
    let told = stdout(&["compare", &recordings[0], &recordings[1], "--explain"]);
    assert_eq!(
        told.matches("one recording or run each: no verdict; record or run each 5 times or more").count(),
        1,
        "{told}"
    );
    let header = told.lines().find(|line| line.starts_with("metric")).expect("a table");
    assert!(header.ends_with("  ratio"), "{header}");
    // Files and folders stand behind --folder, too.
    let answer =
        |told: &str| told.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let folders = recordings.each_ref().map(|file| file.trim_end_matches("/trace.txt.zst"));
    for sides in [recordings.each_ref().map(String::as_str), folders] {
        let again = stdout(&["compare", "--folder", sides[0], "--folder", sides[1], "--explain"]);
        assert_eq!(answer(&again), answer(&told), "{sides:?}");
    }
    assert!(
        told.contains("hackbench behind hackbench") && told.contains("behind a task of another name"),
        "{told}"
    );
}

#[test]
fn layouts_are_those_that_kernel_people_know() {
    let mmtests = stdout(&command(&["--runs", "3", "--layout", "mmtests"]));
    for row in ["Amean    wakeup_latency_ns_p99", "Hmean    throughput", "CoeffVar idle_share", "(   0.00%)"]
    {
        assert!(mmtests.contains(row), "{row}: {mmtests}");
    }
    assert!(mmtests.contains("mmtests' stars"), "{mmtests}");
    let lkp = stdout(&command(&["--runs", "3", "--layout", "lkp"]));
    assert!(lkp.contains("%stddev     %change         %stddev\n"), "{lkp}");
    assert!(lkp.lines().any(|line| line.ends_with("  wakeup_latency_ns_p99")), "{lkp}");
    assert!(lkp.contains("LKP's rule"), "{lkp}");
}

#[test]
fn a_comparison_is_exported() {
    let files = ["json", "csv", "md"].map(|end| temporary(&format!("export.{end}")));
    let paths = files.each_ref().map(|file| file.to_str().expect("a path in UTF-8"));
    let exports = paths.iter().flat_map(|path| ["--export", path]).collect::<Vec<_>>();
    stdout(&[&command(&["--runs", "2", "--metric", "throughput"])[..], &exports].concat());
    let json = serde_json::from_str::<Value>(&text(&files[0])).expect("JSON");
    assert_eq!(json["metrics"].as_array().map(Vec::len), Some(1));
    let csv = text(&files[1]);
    assert!(
        csv.contains("\nmetric,baseline,kernel,") && csv.contains("\"v6.6,base_slice_ns=30000000\""),
        "{csv}"
    );
    let markdown = text(&files[2]);
    assert!(markdown.contains("\n|---|---:|"), "{markdown}");
    for came_about in [&csv[2..], &markdown] {
        assert!(came_about.starts_with("modelled by fairlab "), "{came_about}");
        assert!(came_about.contains(", machine laptop8, seeds 1..2: fairlab compare "), "{came_about}");
    }
    assert_eq!(json["provenance"]["seeds"], serde_json::json!([1, 2]));
    files.iter().for_each(|file| std::fs::remove_file(file).expect("removed"));
}

/// The line that says how an answer came about.
fn head(arguments: &[&str]) -> String {
    stdout(arguments).lines().next().expect("a line").to_string()
}

/// What the model made, or a booted kernel, is never called recorded: whoever reads it, and whether or not its folder is there.
#[test]
fn answers_about_what_fairlab_made_say_so() {
    let folder = temporary("origin");
    let out = folder.join("a run");
    let out_text = out.to_str().expect("a path in UTF-8");
    std::fs::create_dir_all(&folder).expect("a folder");
    stdout(
        &[&["run"], &WORKLOAD[..], &["--kernel", "v6.6", "--seed", "7", "--seeds", "2", "--out", out_text]]
            .concat(),
    );
    let run = out.join("v6.6/seed-7");
    let alone = folder.join("alone.txt.zst");
    std::fs::copy(run.join("trace.txt.zst"), &alone).expect("copied");
    let mut files = vec![run, alone.clone()];
    for name in ["x.dat", "x.data", "x.txt"] {
        let file = folder.join(name);
        let converted = head(&["convert", &alone.to_string_lossy(), &file.to_string_lossy()]);
        assert!(converted.starts_with("# modelled, read by fairlab"), "{converted}");
        files.push(file);
    }
    for file in &files {
        let file = file.to_str().expect("a path in UTF-8");
        for command in ["latency", "summary", "timehist", "explain"] {
            let head = head(&[command, file]);
            assert!(head.starts_with("# modelled, read by fairlab"), "{command}: {head}");
            assert!(
                head.contains(", kernel v6.6, machine laptop8 (8 CPUs), seed 7: fairlab "),
                "{command}: {head}"
            );
        }
    }
    let counts = folder.join("counts.json");
    let sums =
        head(&["summary", files[2].to_str().expect("UTF-8"), "--counts", counts.to_str().expect("UTF-8")]);
    assert!(sums.starts_with("# modelled, read"), "{sums}");
    for counted in [out_text, counts.to_str().expect("UTF-8")] {
        let merged = head(&["merge", counted]);
        assert!(merged.starts_with("# modelled, read by fairlab"), "{merged}");
        assert!(merged.contains("kernel v6.6, machine laptop8, seed"), "{merged}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings");
    let booted = head(&["summary", recordings.join("6.12-nice-2").to_str().expect("UTF-8")]);
    assert!(booted.starts_with("# booted, read by fairlab"), "{booted}");
    let recorded = head(&["latency", recordings.join("../perf-hackbench.data").to_str().expect("UTF-8")]);
    assert!(recorded.starts_with("# recorded, read by fairlab"), "{recorded}");
}

#[test]
fn runs_that_are_there_are_compared() {
    let folders = ["one", "other"].map(temporary);
    let paths = folders.each_ref().map(|folder| folder.to_str().expect("a path in UTF-8"));
    for (path, kernel) in paths.iter().zip(["v6.5", "v6.6"]) {
        let run = [&["run"], &WORKLOAD[..], &["--kernel", kernel, "--seeds", "3", "--out", path]].concat();
        stdout(&run);
    }
    let compared = stdout(&["compare", "--folder", paths[0], "--folder", paths[1]]);
    let direct =
        [&["compare"], &WORKLOAD[..], &["--kernel", "v6.5", "--kernel", "v6.6", "--runs", "3"]].concat();
    let compared = answer::body(&compared);
    assert!(stdout(&direct).ends_with(&compared), "the same seeds pair:\n{compared}");
    // One trace a run, alone: it tells itself which kernel, machine and seed it is of.
    let traces = temporary("traces");
    for (kernel, folder) in [("v6.5", &folders[0]), ("v6.6", &folders[1])] {
        let to = traces.join(kernel);
        std::fs::create_dir_all(&to).expect("a folder");
        for seed in 1..=3 {
            let trace = folder.join(kernel).join(format!("seed-{seed}/trace.txt.zst"));
            std::fs::copy(trace, to.join(format!("{seed}.txt.zst"))).expect("copied");
        }
    }
    let (one, other) = (traces.join("v6.5"), traces.join("v6.6"));
    let path = |folder: &PathBuf| folder.to_str().expect("a path in UTF-8").to_string();
    let alone = stdout(&["compare", "--folder", &path(&one), "--folder", &path(&other)]);
    let head = alone.lines().next().expect("a line");
    assert!(head.starts_with("# modelled, read by fairlab"), "{head}");
    assert!(head.contains(", kernels v6.5 v6.6, machine laptop8, seeds 1..3: fairlab compare "), "{head}");
    assert!(alone.contains("3 paired runs"), "{alone}");
    // Folders in a folder are looked into; each kernel is a side.
    let both = stdout(&["compare", "--folder", &path(&traces)]);
    assert_eq!(answer::body(&both), answer::body(&alone));
    assert_refused(&["compare", "--folder", paths[0], "--folder", &path(&other)], "'recorded'");
    assert_refused(&["compare", "--folder", paths[0]], "needs the runs of two kernels");
    for folder in folders.iter().chain([&traces]) {
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn what_is_missing_is_said_in_a_line() {
    assert_refused(&command(&["--metric", "frames"]), "have no metric 'frames'; closest are ");
    assert_refused(&command(&["--margin", "2"]), "a share lies between 0 and 1");
    assert_refused(&command(&["--export", "answer.docx"]), "end it in .json, .csv, .md or .html");
    assert_refused(
        &command(&["--export", "/nonexistent/answer.csv"]),
        "cannot write /nonexistent/answer.csv",
    );
    assert_refused(&["compare", "--folder", "/nonexistent"], "/nonexistent");
    let one = stdout(&command(&["--runs", "1", "--metric", "throughput"]));
    assert!(one.contains("no verdict") && !one.contains("undecided"), "{one}");
}

/// What is refused leaves nothing: no file of another export, no folder, no run.
#[test]
fn refused_exports_and_folders_leave_nothing() {
    let folder = temporary("refused");
    std::fs::create_dir_all(&folder).expect("a folder");
    let inside = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_string();
    let (good, bad, there, missing) = (inside("z.md"), inside("z.pdf"), inside("there"), inside("no/z.csv"));
    let refused = |more: &[&str], fragment: &str| {
        let arguments = command(&[]).into_iter().chain(more.iter().copied()).collect::<Vec<_>>();
        assert_refused(&arguments, fragment);
        let left = std::fs::read_dir(&folder).expect("a folder").flatten();
        left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(refused(&["--export", &good, "--export", &bad], "is no name for an export"), [""; 0]);
    assert_eq!(refused(&["--export", &good, "--export", &missing], "cannot write"), [""; 0]);
    std::fs::create_dir(&there).expect("a folder");
    assert_eq!(refused(&["--export", &good, "--out", &there], "exists already"), ["there"]);
    assert_eq!(refused(&["--export", &good, "--out", &there, "--resume"], "spec.json"), ["there"]);
    std::fs::write(&good, "before").expect("a file");
    assert_eq!(refused(&["--export", &good, "--export", &bad], "is no name").len(), 2);
    assert_eq!(text(&folder.join("z.md")), "before", "what was there stays");
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A comparison that is interrupted answers with what is done, says that it is partial wherever it says anything, and goes
/// on: in the end it is the one that was never interrupted.
#[test]
fn an_interrupted_comparison_answers_and_goes_on() {
    let folder = temporary("partial");
    std::fs::create_dir_all(&folder).expect("a folder");
    let inside = |name: &str| folder.join(name).to_str().expect("a path in UTF-8").to_string();
    let (out, whole, csv, md) = (inside("out"), inside("whole"), inside("a.csv"), inside("a.md"));
    let long = |more: &[&str]| {
        let what = "compare schbench -m 2 -t 8 -c 3000 -s 1000 --duration 5s --kernel v6.5 --kernel v6.6 --runs 40 --jobs 2";
        what.split(' ').chain(more.iter().copied()).map(String::from).collect::<Vec<_>>()
    };
    let exports = ["--export", &csv, "--export", &md, "--out", &out, "--format", "json"];
    let interrupted = |after_ms: u64| {
        let _ = std::fs::remove_dir_all(&out);
        let child = program()
            .args(long(&exports))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(std::time::Duration::from_millis(after_ms));
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("a signal");
        let output = limit::output(child);
        assert_eq!(
            output.status.code(),
            Some(130),
            "all runs were made, or the signal came before it was caught"
        );
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    // A busy machine has fewer runs by then.
    let has_some = |answer: &Value| answer["partial"]["runs"].as_u64().is_some_and(|runs| runs >= 4);
    let mut answers = [600, 1200, 2400, 4800].into_iter().map(interrupted);
    let answer = answers.find(has_some).expect("some runs");
    let (runs, of) = (answer["partial"]["runs"].as_u64(), answer["partial"]["wanted"].as_u64());
    assert!(runs.is_some_and(|runs| (4..80).contains(&runs)) && of == Some(80), "{answer:#}");
    // Both sides have runs, about as many.
    let pairs = answer["metrics"][0]["pairs"].as_u64().expect("pairs");
    assert!(runs.is_some_and(|runs| 2 * pairs + 2 >= runs), "{pairs} pairs of {runs:?} runs");
    let csv = text(Path::new(&csv));
    let rows = csv.lines().filter(|line| !line.starts_with('#')).skip(1).collect::<Vec<_>>();
    assert!(!rows.is_empty() && rows.iter().all(|line| line.ends_with(",true")), "{csv}");
    assert!(text(Path::new(&md)).contains("* partial: stopped after"));
    for name in ["metrics.json", "runs.json"] {
        let file = serde_json::from_str::<Value>(&text(&folder.join("out").join(name))).expect("JSON");
        assert_eq!(file["partial"], answer["partial"], "{name}");
    }
    let left = serde_json::from_str::<Value>(&text(&folder.join("out/partial.json"))).expect("JSON");
    schema::holds(&left, "partial-1");
    assert_eq!((&left["runs"], &left["wanted"]), (&answer["partial"]["runs"], &answer["partial"]["wanted"]));
    let run = |more: &[&str]| fairlab(&long(more).iter().map(String::as_str).collect::<Vec<_>>());
    let other = run(&["--out", &out, "--resume", "--seed", "5"]);
    let errors = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(other.status.code() == Some(2) && errors.contains("seeds is [1,2,3"), "{errors}");
    let resumed = run(&["--out", &out, "--resume"]);
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let at_once = run(&["--out", &whole]);
    // The first line has the command.
    let answer = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_once('\n').map(|(_, rest)| rest.to_string()).expect("lines")
    };
    assert_eq!(answer(&resumed), answer(&at_once));
    let metrics = |name: &str| {
        let text = text(&folder.join(name).join("metrics.json"));
        let answer = serde_json::from_str::<Value>(&text).expect("JSON");
        assert!(answer["partial"].is_null(), "{name}");
        answer["metrics"].clone()
    };
    assert_eq!(metrics("out"), metrics("whole"));
    let counts = |name: &str| text(&folder.join(name).join("v6.6/seed-2/counts.json"));
    assert_eq!(counts("out"), counts("whole"));
    std::fs::remove_dir_all(folder).expect("removed");
}

/// The report on the balancer of v5.5, small: one commit made it, another one cured it.
#[test]
fn a_difference_is_attributed_to_commits() {
    let report = "compare schbench -m 2 -t 4 -c 200000 -s 1000 --machine laptop8 --duration 4s --runs 4 --margin 5% --attribute";
    let report = report.split(' ').collect::<Vec<_>>();
    let kernels = |one, other| ["--kernel", one, "--kernel", other];
    let text = stdout(&[&report[..], &kernels("v5.4", "v5.9")].concat());
    let line = text.lines().find(|line| line.starts_with("0b0695f2b34a")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.ends_with("sched/fair: Rework load_balance()") && line.contains(" % "), "{line}");
    let json = stdout(&[&report[..], &kernels("v5.10", "v5.9"), &["--format", "json"]].concat());
    let json = serde_json::from_str::<Value>(&json).expect("JSON");
    assert_eq!(json["schema"], "fairlab/attribute/1");
    let rows = json["metrics"][0]["contributions"].as_array().expect("rows").clone();
    let cure = rows.iter().find(|row| row["commit"] == "-16b0a7a1a0af").expect("the cure, taken out");
    assert_eq!(cure["matters"], true);
    assert!(cure["share"].as_f64().is_some_and(|share| (share - 1.0).abs() < 0.2), "{cure}");
    assert_refused(&[&report[..], &["--kernel", "v5.4"]].concat(), "needs two kernels");
    assert_refused(
        &[&report[..], &kernels("v5.4", "v5.5"), &["--kernel", "v5.6"]].concat(),
        "takes two kernels, and these are 3",
    );
    assert_refused(
        &[&report[..], &kernels("v5.4", "v5.5"), &["--metric", "frames"]].concat(),
        "no metric 'frames'",
    );
}

/// Where only what is not modelled lies between two kernels, every command says so, and none that they are alike. What cannot
/// matter on a machine is not told.
#[test]
fn kernels_that_differ_in_what_is_not_modelled_are_not_equivalent() {
    let (before, after) = ("0dacee1bfa70", "6499b1b2dd1b");
    let setting = ["hackbench", "-g", "1", "-l", "20", "--duration", "50ms", "--warmup", "0"];
    let on = |machine: &'static str, command: &'static str, more: &[&'static str]| {
        fairlab(&[&[command], &setting[..], &["--machine", machine], more].concat())
    };
    let kernels = ["--kernel", before, "--kernel", after, "--runs", "3"];
    let said = "differ only in what is not modelled: 1 commit that can matter here: 6499b1b2dd1b (NUMA balancing of tasks and memory)";
    let gate = [&kernels[..], &["--metric", "p99", "--fail-on", "p99>+5%"]].concat();
    let attribute = [&kernels[..], &["--attribute"]].concat();
    for (command, more, code) in [
        ("compare", &kernels[..], 0),
        ("compare", &gate, 3),
        ("compare", &attribute, 0),
        ("bisect", &["--good", before, "--bad", after], 3),
    ] {
        let output = on("layout:2x1x2x1", command, more);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{command} {more:?}: {text}");
        assert!(text.contains(said) && text.contains("src: can answer"), "{command} {more:?}: {text}");
        assert!(!text.contains("equivalent"), "{command} {more:?}: {text}");
    }
    let json = |machine| {
        let output = on(machine, "compare", &[&kernels[..], &["--format", "json"]].concat());
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let (nodes, one) = (json("layout:2x1x2x1"), json("layout:1x1x4x1"));
    let verdicts = |answer: &Value| {
        let rows = answer["metrics"].as_array().expect("rows").clone();
        rows.iter().map(|row| row["verdict"].as_str().unwrap_or_default().to_string()).collect::<Vec<_>>()
    };
    assert!(verdicts(&nodes).iter().all(|verdict| verdict == "not_modelled"), "{nodes}");
    assert!(!verdicts(&one).iter().any(|verdict| verdict == "not_modelled"), "{one}");
    assert!(
        nodes["notices"].to_string().contains(said) && !one["notices"].to_string().contains("not modelled")
    );
}

/// A folder with one run's files, among them `schedstat.txt`; returns the latter.
fn schedstat_of(kernel: &str, name: &str) -> PathBuf {
    let folder = temporary(name);
    let folder_text = folder.to_str().expect("a path in UTF-8");
    let what = [&["run"], &WORKLOAD[..], &["--kernel", kernel, "--out", folder_text]].concat();
    stdout(&what);
    let mut found = vec![folder];
    while let Some(path) = found.pop() {
        if path.ends_with("schedstat.txt") {
            return path;
        }
        let entries = std::fs::read_dir(&path).into_iter().flatten();
        found.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    panic!("no schedstat.txt in {name}");
}

#[test]
fn schedstats_of_two_kernels_stand_beside_each_other() {
    let (old, new) = (schedstat_of("v5.10", "old"), schedstat_of("v7.2", "new"));
    let [old_text, new_text] = [&old, &new].map(|path| path.to_str().expect("a path in UTF-8"));
    let beside = stdout(&["compare", "--schedstat", old_text, "--schedstat", new_text]);
    for line in [
        &format!("first: {old_text}, version 15, since boot\n"),
        "not compared: imbalances by kind: up to version 16 only their sum is counted\n",
        "\nall ttwu_count ",
        "\ncpu0 domain0 idle lb_count ",
    ] {
        assert!(beside.contains(line), "{line}: {beside}");
    }
    let same = stdout(&["compare", "--schedstat", old_text, "--schedstat", old_text, "--format", "json"]);
    let same: Value = serde_json::from_str(&same).expect("JSON");
    assert_eq!(same["schema"], "fairlab/schedstat/1");
    assert_eq!(same["not_compared"].as_array().map(Vec::len), Some(0));
    let counters = same["counters"].as_array().expect("counters");
    assert!(counters.len() > 100 && counters.iter().all(|row| row["counts"][0] == row["counts"][1]));

    assert_refused(&["compare", "--schedstat", old_text], "takes two files or folders, and these are 1");
    let missing = ["compare", "--schedstat", old_text, "--schedstat", "/nonexistent/schedstat"];
    assert_refused(&missing, "cannot read /nonexistent/schedstat");
    let empty = temporary("new").join("empty");
    std::fs::write(&empty, "").expect("a file");
    let empty = ["compare", "--schedstat", old_text, "--schedstat", empty.to_str().expect("a path")];
    assert_refused(&empty, "is empty; a kernel that was built without CONFIG_SCHEDSTATS has none");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let wrong = ["compare", "--schedstat", manifest, "--schedstat", old_text];
    assert_refused(
        &wrong,
        "Cargo.toml is no schedstat: line 1: '[package]' begins no line of /proc/schedstat",
    );
    let folder = ["compare", "--schedstat", env!("CARGO_MANIFEST_DIR"), "--schedstat", old_text];
    assert_refused(&folder, "holds no schedstat; name a file, or a folder with schedstat-before");
    for name in ["old", "new"] {
        std::fs::remove_dir_all(temporary(name)).expect("removed");
    }
}
