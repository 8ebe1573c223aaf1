//! `fairlab verify` and `fairlab fidelity` on recordings that are whole, broken, or of kernels without a model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::program::program;
use crate::schema;

fn fairlab(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program runs")
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(name)
}

/// A folder of this test's own, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fairlab-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a plain name")
    }

    /// A copy of a recording in testdata, but for the files called `without`.
    fn copy(&self, from: &str, to: &str, without: &[&str]) -> PathBuf {
        let target = self.0.join(to);
        fs::create_dir_all(&target).expect("a folder");
        for entry in fs::read_dir(recording(from)).expect("the recording") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name");
            if !without.iter().any(|left_out| name == *left_out) {
                fs::copy(&path, target.join(name)).expect("copied");
            }
        }
        target
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What stands on standard error: one line, and the exit status of bad input.
fn refusal(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("fairlab: ") && text.contains("; "), "{text}");
    text
}

fn verify(folder: &Path, kernel: &str) -> Output {
    fairlab(&["verify", folder.to_str().expect("a plain name"), "--kernel", kernel])
}

#[test]
fn a_trace_without_what_is_needed_is_refused_in_one_line() {
    let folder = Folder::new("verify-lacks");
    let bare = folder.copy("6.1-yield-2", "bare", &["trace.txt.zst"]);
    assert!(refusal(&verify(&bare, "debian-6.1")).contains("holds no trace"));
    let header = "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n";
    for (event, missing) in [
        ("sched_process_free", "no sched_switch, no sched_wakeup, no sched_stat_runtime"),
        ("sched_waking", "no sched_switch, no sched_wakeup, no sched_stat_runtime"),
    ] {
        let line =
            format!("          <idle>-0       [000] d....     1.000001: {event}: comm=a pid=7 prio=120");
        fs::write(bare.join("trace.txt"), format!("{header}{line} target_cpu=000\n")).expect("written");
        let told = refusal(&verify(&bare, "debian-6.1"));
        assert!(told.contains(&format!("the trace has {missing}")), "{told}");
    }
    fs::write(bare.join("trace.txt"), "nothing like a trace\n").expect("written");
    assert!(refusal(&verify(&bare, "debian-6.1")).contains("trace.txt: "));
    for (missing, fragment) in [("sched_info.txt", "describes the CPUs"), ("meta.json", "the tick rate")] {
        let lacks = folder.copy("6.1-yield-2", missing, &[missing]);
        assert!(refusal(&verify(&lacks, "debian-6.1")).contains(fragment), "{missing}");
    }
    assert!(refusal(&verify(&recording("6.1-yield-2"), "v9.9")).contains("unknown kernel 'v9.9'"));
    assert!(refusal(&verify(&folder.0.join("not-there"), "v6.6")).contains("no such file or folder"));
}

#[test]
fn a_missing_snapshot_is_told_in_a_line_and_the_rest_is_judged() {
    let folder = Folder::new("verify-snapshot");
    let lacks = folder.copy("6.1-yield-2", "x", &["sched_debug-start.txt"]);
    let output = verify(&lacks, "debian-6.1");
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("no snapshot (sched_debug-start.txt)") && told.lines().count() <= 3, "{told}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("vruntime"));
}

#[test]
fn a_collection_is_walked_whole_and_what_fails_is_named() {
    let folder = Folder::new("fidelity");
    folder.copy("6.1-yield-2", "set/6.1-yield-2", &[]);
    folder.copy("6.1-yield-2", "set/broken", &["sched_info.txt"]);
    let other = folder.copy("6.1-yield-2", "other/kernel", &[]);
    let meta = fs::read_to_string(other.join("meta.json")).expect("meta.json");
    fs::write(other.join("meta.json"), meta.replace("6.1.0-56-cloud-amd64", "3.10.0-1160.el7"))
        .expect("written");
    fs::create_dir_all(folder.0.join("notes")).expect("a folder");
    let output = fairlab(&["fidelity", folder.text(), "--format", "json"]);
    let told = refusal(&output);
    assert!(
        told.contains("one recording could not be read (set/broken: ") && told.contains("describes the CPUs")
    );
    let answer = serde_json::from_slice::<Value>(&output.stdout).expect("JSON");
    schema::holds(&answer, "fidelity-1");
    assert_eq!(answer["unknown_kernels"][0]["recording"], "other/kernel");
    assert_eq!(answer["without_recording"][0], "notes");
    let figures = answer["figures"].as_array().expect("figures");
    assert!(figures.iter().all(|figure| figure["recording"] == "set/6.1-yield-2"), "{figures:?}");
    let pick = figures.iter().find(|figure| figure["kind"] == "pick").expect("picks");
    assert!(pick["agree"].as_u64() > Some(1000) && pick["kernel"] == "debian-6.1", "{pick}");
    let verified = fairlab(&[
        "verify",
        recording("6.1-yield-2").to_str().expect("a name"),
        "--kernel",
        "debian-6.1",
        "--format",
        "json",
    ]);
    let verified = serde_json::from_slice::<Value>(&verified.stdout).expect("JSON");
    let same = verified["decisions"].as_array().expect("kinds").iter().find(|kind| kind["kind"] == "pick");
    assert_eq!(same.map(|kind| &kind["agree"]), Some(&pick["agree"]), "verify and fidelity count alike");
}

#[test]
fn the_tables_go_between_the_marks_of_a_page() {
    let folder = Folder::new("fidelity-page");
    folder.copy("6.1-yield-2", "6.1-yield-2", &[]);
    let page = folder.0.join("page.md");
    let path = page.to_str().expect("a plain name");
    let refused = fairlab(&["fidelity", folder.text(), "--page", path]);
    assert!(refusal(&refused).contains("name a page that is there"));
    fs::write(&page, "before\nafter\n").expect("written");
    let refused = fairlab(&["fidelity", folder.text(), "--page", path]);
    assert!(refusal(&refused).contains("has no part 'collection'"));
    fs::write(&page, "before\n<!-- figures: mine -->\n<!-- end of figures: mine -->\nafter\n")
        .expect("written");
    let output = fairlab(&["fidelity", folder.text(), "--page", path, "--part", "mine", "--sums"]);
    assert_eq!(
        (output.status.code(), output.stderr.len()),
        (Some(0), 0),
        "no progress where there is no terminal"
    );
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        shown.contains("tick_preempt: yes") && shown.contains("1 recordings judged, 0 of kernels"),
        "{shown}"
    );
    let written = fs::read_to_string(&page).expect("the page");
    assert!(
        written.starts_with("before\n<!-- figures: mine -->\n") && written.ends_with("-->\nafter\n"),
        "{written}"
    );
    assert!(written.contains("| 6.1-yield-2 | debian-6.1 |"), "{written}");
}

/// The answer of `verify --against`.
fn followed(arguments: &str) -> Value {
    let line = format!("verify --format json {arguments}");
    let output = fairlab(&line.split(' ').collect::<Vec<_>>());
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    schema::holds(&answer, "oracle-1");
    answer
}

#[test]
fn a_kernel_is_followed_to_the_end_or_to_the_first_difference() {
    let whole = followed("--kernel v6.12 --against v6.12 hackbench -g 1 -l 20 --machine vm4 --seeds 2");
    assert_eq!((&whole["difference"], &whole["runs"]), (&Value::Null, &Value::from(2)));
    let checks = whole["checks"].as_array().expect("checks");
    assert!(checks.iter().all(|check| check["judged"] == check["agree"]), "{checks:?}");
    let judged =
        |name: &str| checks.iter().find(|check| check["check"] == name).map(|check| &check["judged"]);
    assert!(judged("pick").and_then(Value::as_u64) > Some(100), "{checks:?}");
    let cases = followed("--kernel v6.6 --against v6.6 --cases 3 --seed 5");
    assert_eq!((&cases["difference"], &cases["runs"]), (&Value::Null, &Value::from(3)));
    let cut = followed("--kernel v6.12+NO_DELAY_DEQUEUE --against v6.12 hackbench -g 1 -l 20 --machine vm4");
    let difference = &cut["difference"];
    let again =
        difference["command"].as_str().expect("a command").strip_prefix("fairlab verify ").expect("verify");
    assert_eq!(followed(again)["difference"], *difference, "the command makes it again");
    assert_eq!((&difference["call"], &difference["seed"]), (&Value::from("schedule"), &Value::from(1)));
    assert!(difference["state"].as_array().is_some_and(|state| state.len() > 20), "{difference}");
}

#[test]
fn what_cannot_be_followed_is_refused_in_one_line() {
    for (line, told) in [
        ("verify --kernel v6.1 --against host pipe", "verify --against takes modelled kernels"),
        ("verify --kernel host --against v6.1 pipe", "verify --kernel takes modelled kernels"),
        ("verify --kernel v6.1 --against v6.1 nothing", "unknown workload 'nothing'"),
        ("verify --kernel v6.1 --against v6.1 pipe --machine layout:0x1x1x1", "layout:0x1x1x1"),
        ("verify --kernel v6.1 one two", "verify takes one recording"),
    ] {
        let output = fairlab(&line.split(' ').collect::<Vec<_>>());
        assert!(refusal(&output).contains(told), "{line}: {output:?}");
    }
}

/// What booted kernels did.
fn boots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/booted")
}

/// On 6.1, whose sources every test run has. What was booted is kept, so that nothing is booted here.
#[test]
fn a_trees_own_code_stands_beside_booted_and_modelled_kernels() {
    let folder = boots();
    let words = ["fidelity", "--booted", "bookworm periodic", "--boots", folder.to_str().expect("a name")];
    let output = fairlab(&[&words[..], &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answer = serde_json::from_slice::<Value>(&output.stdout).expect("JSON");
    schema::holds(&answer, "fidelity-booted-1");
    let run = &answer["runs"][0];
    assert!(run["own_release"].as_str().is_some_and(|release| release.starts_with("6.1.")), "{run}");
    let kept = fs::read(folder.join("debian-6.1-periodic.json")).expect("boots");
    let kept = serde_json::from_slice::<Value>(&kept).expect("JSON");
    assert_eq!(run["release"], kept["release"]);
    let rows = run["metrics"].as_array().expect("rows");
    assert!(rows.len() >= 5 && rows.iter().all(|row| row["own_is"] != "further"), "{rows:#?}");
    for row in rows {
        let (error, bar) = (row["own"]["error"].as_f64(), row["bar"].as_f64());
        assert!(error < bar && row["own"]["runs"].as_array().is_some_and(|runs| runs.len() > 20), "{row:#}");
    }
}

#[test]
fn what_booted_kernels_did_is_as_its_schema_says() {
    let mut read = 0;
    for entry in fs::read_dir(boots()).expect("the folder") {
        let path = entry.expect("an entry").path();
        let boots = serde_json::from_slice::<Value>(&fs::read(&path).expect("a file")).expect("JSON");
        schema::holds(&boots, "boots-1");
        let name = format!(
            "{}-{}.json",
            boots["kernel"].as_str().expect("a kernel"),
            boots["name"].as_str().expect("a name")
        );
        assert!(path.ends_with(&name), "{}", path.display());
        read += 1;
    }
    assert!(read > 0);
}

#[test]
fn a_folder_of_boots_that_is_none_is_refused() {
    let refused = fairlab(&["fidelity", "--booted", "bookworm", "--boots", "/nonexistent"]);
    assert!(refusal(&refused).contains("/nonexistent is no folder"));
    let folder = Folder::new("boots");
    fs::write(folder.0.join("debian-6.1-periodic.json"), "{}").expect("written");
    let refused = fairlab(&["fidelity", "--booted", "bookworm periodic", "--boots", folder.text()]);
    assert!(refusal(&refused).contains("debian-6.1-periodic.json: missing field"));
}
