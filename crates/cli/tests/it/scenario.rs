//! `fairlab scenario` as its users meet it; what scenarios measure is tested where they are.

use std::process::Output;

use serde_json::Value;

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
        (&["scenario", "run", "public", "--reports", "/nonexistent"], "no reports in /nonexistent"),
        (&["scenario", "run", "public", "--exact"], "--exact is not for reports that are files"),
        (&["scenario", "run", "absent.toml"], "report absent.toml: No such file"),
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
    let arguments =
        ["scenario", "run", "load-balance-rework", "--quick", "--kernel", "debian-6.1", "--format", "json"];
    let answer: Value = serde_json::from_str(&stdout(&arguments)).expect("JSON");
    let mut rows = answer["metrics"].as_array().expect("rows").iter();
    assert!(
        rows.any(|row| row["kernel"] == "debian-6.1" && row["name"] == "schbench_latency_us_p99"),
        "{answer:#}"
    );
}

#[test]
fn this_hosts_kernel_stands_beside_those_of_a_report() {
    let own = ["scenario", "run", "lb-bias", "--quick", "--kernel", "host", "--workload", "pipe -T -l 500"];
    let json: Value =
        serde_json::from_str(&stdout(&[&own[..], &["--format", "json"]].concat())).expect("JSON");
    let rows = json["metrics"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["kernel"] == "host" && row["name"] == "throughput"), "{json:#}");
}

/// By the own code of 6.1, in both ways: beside the report's two under its small workload, and in the report's own run.
#[test]
fn a_trees_own_code_makes_a_reports_runs() {
    let own = "src:debian:6.1";
    let beside = ["scenario", "run", "wasted-cores", "--quick", "--kernel", own, "--format", "json"];
    let json: Value = serde_json::from_str(&stdout(&beside)).expect("JSON");
    let rows = json["metrics"].as_array().expect("rows");
    let row =
        rows.iter().find(|row| row["kernel"] == own && row["name"] == "unconserved_share").expect("a row");
    // It has the rework that ends the report's effect.
    let [before, now] = ["baseline_mean", "mean"].map(|name| row[name].as_f64().expect("a share"));
    assert!(before > 0.02 && now < before / 4.0, "{row}");
    let pages = std::env::temp_dir().join(format!("fairlab-own-code-{}", std::process::id()));
    std::fs::create_dir_all(&pages).expect("a folder");
    let folder = pages.to_str().expect("a plain name");
    let reported = ["scenario", "run", "eevdf-vhost", "--quick", "--reported", "--kernel", own];
    let text = stdout(&[&reported[..], &["--pages", folder]].concat());
    assert!(
        text.contains("layout:1x1x24x1") && text.contains("v6.5, published") && !text.contains("Claims"),
        "{text}"
    );
    let page = std::fs::read_to_string(pages.join("eevdf-vhost-own-code.md")).expect("a page");
    let line = page.lines().find(|line| line.starts_with(&format!("| {own} | "))).expect("a row");
    let speed = line.split('|').nth(2).and_then(|cell| cell.trim().parse::<f64>().ok());
    assert!(speed.is_some_and(|speed| speed > 10.0), "{line}");
    std::fs::remove_dir_all(&pages).expect("removed");
    for (arguments, told) in [
        (&["scenario", "run", "lb-bias", "--reported", "--kernel", own][..], "tells of no single run"),
        (&["scenario", "run", "eevdf-vhost", "--reported", "--kernel", "host"], "a report's own run takes"),
        (&["scenario", "run", "lb-bias", "--kernel", own, "--pages", "."], "--kernel alone writes no page"),
    ] {
        let output = fairlab(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(told), "{arguments:?}: {errors}");
    }
}

/// A file of a report, and what stands beside it.
const REPORT: &str = "\
title = 'Delayed dequeue costs pairs that talk over pipes'
source = 'a test'
machine = 'four.toml'
workload = 'hackbench -p -g 4 -f 1 -l 3000'
duration_ms = 20000

[[claim]]
text = 'less is done'
metric = 'throughput'
kernels = ['v6.6', 'v6.12']
published = [1, 0.66]
commit = '152e11f6df29'

[[claim]]
text = 'more is done'
metric = 'throughput'
kernels = ['v6.6', 'v6.12']
published = 'rises'
";

const MACHINE: &str = "name = 'four'\nhz = 250\n[topology]\ncores_per_llc = 4\n";

/// A report is judged by its file alone: what holds, and what goes the other way; its machine is found beside it.
#[test]
fn a_report_is_a_file() {
    let folder = std::env::temp_dir().join(format!("fairlab-report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("pipes.toml");
    std::fs::write(&path, REPORT).expect("a report");
    std::fs::write(folder.join("four.toml"), MACHINE).expect("a machine");
    let run = |more: &[&str]| {
        let path = path.to_str().expect("UTF-8");
        let output = fairlab(&[&["scenario", "run", path, "--quick", "--format", "json"][..], more].concat());
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (output.status.code(), answer)
    };
    let (code, answer) = run(&["--pages", folder.to_str().expect("UTF-8")]);
    schema::holds(&answer, "public-1");
    let claims = &answer["reports"][0]["claims"];
    assert_eq!((code, claims[0]["outcome"].as_str()), (Some(1), Some("reproduced")), "{answer:#}");
    assert_eq!(
        (claims[1]["outcome"].as_str(), answer["reports"][0]["outcome"].as_str()),
        (Some("contrary"), Some("contrary"))
    );
    assert_eq!(claims[0]["commit"]["finding"], Value::Null, "the quick form searches for nothing");
    let page = std::fs::read_to_string(folder.join("public.md")).expect("a page");
    assert!(
        page.contains("| pipes | less is done | 0.66 times |") && page.contains("1 the other way"),
        "{page}"
    );
    std::fs::remove_dir_all(&folder).expect("removed");
}

const WITH_A_STORY: &str = "\
title = 'pairs that alternate'
source = 'a test'
commit = 'none'
pair = ['v6.5', 'v6.6']
measured = 'From the start.'
machine = 'vm4'
kernels = ['v6.5', 'v6.6']
workload = 'pipe -l 200'
duration_ms = 200
warmup_ms = 0
small = { workload = 'pipe -l 10', machine = 'emulated:4', duration_ms = 100 }

[side.pairs]

[figure]
switches = 'run.switches_per_s | mean'

[[claim]]
text = 'both switch'
measured = \"[switches('pairs', 'v6.5'), switches('pairs', 'v6.6')] | least\"
unit = 'a second'
above = 0

[[claim]]
text = 'one of them hardly'
measured = \"switches('pairs', 'v6.6')\"
at_most = 1
";

/// A file with sides has figures, claims and a story.
#[test]
fn a_report_with_sides_has_claims_and_a_story() {
    let folder = std::env::temp_dir().join(format!("fairlab-story-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (path, place) = (folder.join("pairs.toml"), folder.to_str().expect("UTF-8"));
    let story = "## Pairs\n\n| kernel | switches |\n|---|---|\n{% for name in side.pairs %}\n| {{ name }} | {{ switches('pairs', name) | whole }} |\n{% endfor %}\n";
    std::fs::write(folder.join("pairs.md"), story).expect("a story");
    let run = |text: &str, more: &[&str]| {
        std::fs::write(&path, text).expect("a report");
        fairlab(&[&["scenario", "run", path.to_str().expect("UTF-8")][..], more].concat())
    };
    let output = run(WITH_A_STORY, &["--format", "json", "--pages", place]);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    schema::holds(&answer, "scenario-1");
    let holds = answer["claims"].as_array().expect("claims").iter().map(|claim| claim["holds"].as_bool());
    assert!(holds.eq([Some(true), Some(false)]) && output.status.code() == Some(1), "{answer:#}");
    let page = std::fs::read_to_string(folder.join("pairs.md")).expect("a page");
    assert!(page.contains("| v6.5 | ") && page.contains("| both switch | - |"), "{page}");
    std::fs::write(folder.join("pairs.md"), story).expect("a story");
    for (from, to, said) in [
        ("[side.pairs]", "[side.pairs]\nrunz = 1", "side 'pairs'"),
        ("switches('pairs', 'v6.6')", "switches('pairs', 'v9.9')", "no run of side 'pairs' is called 'v9.9'"),
        ("title =", "titel =", "line 1"),
    ] {
        let output = run(&WITH_A_STORY.replace(from, to), &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(said), "{to}: {errors}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}
