//! `fairlab scenario` as its users meet it; what scenarios measure is tested where they are.

#[path = "schema/checker.rs"]
mod schema;

use std::process::{Command, Output};

use serde_json::Value;

fn fairlab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairlab")).args(arguments).output().expect("the program starts")
}

fn stdout(arguments: &[&str]) -> String {
    let output = fairlab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

const NAMES: [&str; 6] =
    ["load-balance-rework", "idle-cpumask", "lb-bias", "nohz-blocked-load", "eevdf-vhost", "wasted-cores"];

#[test]
fn every_report_is_listed_and_shown() {
    let text = stdout(&["scenario", "list"]);
    let json: Value = serde_json::from_str(&stdout(&["scenario", "list", "--format", "json"])).expect("JSON");
    let listed = json["scenarios"].as_array().expect("scenarios");
    for name in NAMES {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
        let scenario = listed.iter().find(|scenario| scenario["name"] == name).expect(name);
        // Its kernels and its machine are there to try another workload on.
        let [one, other] =
            [0, 1].map(|index| scenario["pair"][index].as_str().expect("a kernel").to_string());
        stdout(&["kernels", "diff", &one, &other]);
        stdout(&["machines", "show", scenario["machine"].as_str().expect("a machine")]);
        let shown = stdout(&["scenario", "show", name]);
        assert!(shown.contains(&format!("--kernel {one} --kernel {other} --machine")), "{shown}");
    }
}

#[test]
fn bad_use_is_refused_before_anything_runs() {
    for (arguments, fragment) in [
        (&["scenario", "run", "nonsense"][..], "unknown scenario 'nonsense'; known are"),
        (&["scenario", "run", "lb-bias", "--pages", "/nonexistent"][..], "/nonexistent is no folder"),
        (&["scenario", "run", "lb-bias", "--workload", "nonsense -x"], "unknown workload 'nonsense'"),
        (&["scenario", "run", "lb-bias", "--machine", "vm4"], "--workload"),
        (&["scenario", "run", "lb-bias", "--booted"], "name one of load-balance-rework and eevdf-vhost"),
        (&["scenario", "run", "eevdf-vhost", "--booted", "--pages", "."], "cannot be used with"),
        (
            &["scenario", "run", "lb-bias", "--kernel", "host", "--workload", "pipe", "--machine", "vm4"],
            "not on vm4",
        ),
    ] {
        let output = fairlab(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(fragment), "{arguments:?}: {errors}");
    }
}

#[test]
fn another_workload_runs_on_the_kernels_of_a_report() {
    let own = ["scenario", "run", "lb-bias", "--quick", "--workload", "pipe -l 50", "--machine", "vm4"];
    let text = stdout(&own);
    assert!(text.contains("== pipe -l 50 on vm4 ==") && text.contains("v4.18+NO_LB_BIAS"), "{text}");
    let json: Value =
        serde_json::from_str(&stdout(&[&own[..], &["--format", "json"]].concat())).expect("JSON");
    schema::holds(&json, "scenario-1");
    assert_eq!(json["claims"].as_array().map(Vec::len), Some(0));
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(10));
}

#[test]
fn a_recording_runs_on_the_kernels_of_a_report_named_by_its_folder_or_its_file() {
    let folder = format!("{}/../../testdata/recordings/5.10-hackbench-2", env!("CARGO_MANIFEST_DIR"));
    for recording in [folder.clone(), format!("{folder}/trace.txt.zst")] {
        let text =
            stdout(&["scenario", "run", "lb-bias", "--quick", "--workload", &recording, "--machine", "vm4"]);
        assert!(text.contains(&format!("== replay {recording} on vm4 ==")), "{text}");
    }
}

/// On the machine of booted kernels, by modelled ones only: whether a report's workload is there in a small size.
#[test]
fn other_kernels_run_a_reports_workload_in_a_small_size() {
    let json = |name: &str| -> Value {
        let arguments = ["scenario", "run", name, "--quick", "--kernel", "debian-6.1", "--format", "json"];
        serde_json::from_str(&stdout(&arguments)).expect("JSON")
    };
    for (name, metric) in [
        ("load-balance-rework", "schbench_latency_us_p99"),
        ("wasted-cores", "unconserved_share"),
        ("eevdf-vhost", "kworker_wait_ns_max"),
    ] {
        let answer = json(name);
        let rows = answer["metrics"].as_array().expect("rows");
        assert!(rows.iter().any(|row| row["kernel"] == "debian-6.1" && row["name"] == metric), "{answer:#}");
    }
}

#[test]
fn this_hosts_kernel_stands_beside_those_of_a_report() {
    let own = ["scenario", "run", "lb-bias", "--quick", "--kernel", "host", "--workload", "pipe -T -l 500"];
    let json: Value =
        serde_json::from_str(&stdout(&[&own[..], &["--format", "json"]].concat())).expect("JSON");
    let rows = json["metrics"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["kernel"] == "host" && row["name"] == "throughput"), "{json:#}");
}
