//! Every answer for programs is as docs/schemas says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::program;
use crate::schema;

const WORKLOAD: &str = "hackbench -g 1 -f 4 -l 5 --machine vm4 --duration 50ms --warmup 0";

/// Commands that need no rights and no other program, each with the schema of its answer. `DATA` is testdata, `NEW` a folder.
const COMMANDS: &[(&str, &str)] = &[
    ("run WORKLOAD --kernel v6.6 --seeds 2 --out NEW/run", "run-1"),
    ("compare WORKLOAD --kernel v6.5 --kernel v6.6 --runs 3", "compare-1"),
    ("compare WORKLOAD --kernel v6.5 --kernel v6.6 --runs 3 --attribute", "attribute-1"),
    ("compare WORKLOAD --kernel v6.5 --kernel v6.6 --runs 3 --attribute --explain", "attribute-1"),
    ("compare WORKLOAD --kernel v6.5 --kernel v6.6 --runs 3 --explain", "compare-1"),
    ("compare --folder NEW/run --folder NEW/run", "compare-1"),
    ("compare --schedstat NEW/run/v6.6/seed-1 --schedstat NEW/run/v6.6/seed-2", "schedstat-1"),
    ("bisect WORKLOAD --good v6.5 --bad v6.6 --runs 4", "bisect-1"),
    ("bisect WORKLOAD --vary base_slice_ns=700000,100000000 --kernel v6.6 --runs 4", "threshold-1"),
    ("sweep NEW/sweep.toml", "query-1"),
    ("query NEW/sweep", "query-1"),
    ("merge NEW/run", "merge-1"),
    ("latency DATA/perf-hackbench.data", "latency-1"),
    ("latency NEW/run/v6.6/seed-1", "latency-1"),
    ("timehist DATA/perf-hackbench.data -w -M", "timehist-1"),
    ("timehist DATA/perf-lost.data -s", "timehist-1"),
    ("explain DATA/perf-hackbench.data --worst 40", "explain-1"),
    ("explain NEW/run/v6.6/seed-1", "explain-1"),
    ("blame DATA/perf-hackbench.data --each", "blame-1"),
    ("blame DATA/perf-lost.data NEW/run/v6.6/seed-1", "blame-1"),
    ("summary DATA/perf-hackbench.data", "summary-1"),
    ("summary DATA/perf-lost.data", "summary-1"),
    ("verify DATA/recordings/6.12-nice-2", "verify-1"),
    ("verify DATA/recordings/6.12-nice-2-probed", "verify-1"),
    ("convert DATA/perf-hackbench.data NEW/copy.pftrace", "convert-1"),
    ("view DATA/perf-lost.data NEW/run/v6.6/seed-1 --output NEW/view.html", "view-1"),
    ("kernels list", "kernels-1"),
    ("kernels log", "kernels-1"),
    ("kernels list --built", "built-kernels-1"),
    ("kernels show v6.6", "kernel-1"),
    ("kernels show v4.18", "kernel-1"),
    ("kernels diff v6.5 v6.6", "kernel-diff-1"),
    ("machines list", "machines-1"),
    ("machines show chromebook8 --kernel v6.6", "machine-1"),
    ("machines show vm40", "machine-1"),
    ("workloads list", "workloads-1"),
    ("workloads show hackbench", "workload-1"),
    ("scenario list", "scenarios-1"),
    ("scenario show lb-bias", "scenario-about-1"),
    ("live hackbench -g 1 -l 5", "live-1"),
];

/// Schemas of answers that need more, each with the test that holds it against one, and of files that experiments leave.
const ELSEWHERE: &[(&str, &str)] = &[
    ("boot-1", "boot.rs"),
    ("watch-1", "watch.rs"),
    ("catalogue-1", "watch.rs"),
    ("record-1", "record.rs"),
    ("calibrate-1", "live.rs"),
    ("fidelity-1", "fidelity.rs"),
    ("fidelity-booted-1", "fidelity.rs"),
    ("boots-1", "fidelity.rs"),
    ("oracle-1", "fidelity.rs"),
    ("try-1", "trees.rs"),
    ("fidelity-oracle-1", "kernels_build.rs"),
    ("scenario-1", "scenario.rs"),
    ("public-1", "scenario.rs"),
    ("partial-1", "compare.rs"),
    ("sweep-journal-3", "sweep.rs"),
    ("sweep-journal-cell-3", "sweep.rs"),
];

/// Parts of answers, which schemas of answers refer to.
const PARTS: [&str; 3] = ["provenance-1.json", "causes-1.json", "waiting-1.json"];

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn answer(line: &str, folder: &Path) -> Value {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let line = line.replace("WORKLOAD", WORKLOAD);
    let of = |word: &str| {
        let word = word.replace("DATA", data.to_str().expect("UTF-8"));
        word.replace("NEW", folder.to_str().expect("UTF-8"))
    };
    let output = program()
        .args(line.split(' ').map(of))
        .args(["--format", "json"])
        .output()
        .expect("the program starts");
    // A search that finds nothing answers so, with status 1, and one that is undecided with 3.
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{line}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn answers_are_as_their_schemas_say() {
    let folder = Folder(std::env::temp_dir().join(format!("fairlab-schemas-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let sweep = "kernels = [\"v6.5\", \"v6.6\"]\nmachines = [\"vm4\"]\nworkloads = [\"hackbench -g 1 -l 5\"]\n\
                 seeds = 2\nduration_ms = 20\nwarmup_ms = 0\n";
    std::fs::write(folder.0.join("sweep.toml"), sweep).expect("written");
    for (line, name) in COMMANDS {
        let answer = answer(line, &folder.0);
        let (noun, version) = name.rsplit_once('-').expect("a version");
        assert_eq!(answer["schema"], format!("fairlab/{noun}/{version}"), "{line}");
        let schema = schema::read(&format!("{name}.json")).expect("a schema");
        assert!(
            schema["required"].as_array().is_some_and(|names| names.contains(&json!("provenance"))),
            "{name}"
        );
        schema::holds(&answer, name);
    }
}

#[test]
fn every_schema_is_held_against_an_answer() {
    for (name, test) in ELSEWHERE {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(test);
        let text = std::fs::read_to_string(path).expect("a test");
        assert!(text.contains(&format!("\"{name}\"")), "{test} does not hold anything against {name}");
    }
    let names = COMMANDS.iter().map(|(_, name)| name).chain(ELSEWHERE.iter().map(|(name, _)| name));
    let tried = names.map(|name| format!("{name}.json")).collect::<BTreeSet<_>>();
    let files = std::fs::read_dir(schema::folder()).expect("schemas");
    let names = files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned());
    let schemas = names.filter(|name| name.ends_with(".json") && !PARTS.contains(&name.as_str()));
    assert_eq!(schemas.collect::<BTreeSet<_>>(), tried);
}

#[test]
fn what_is_not_as_a_schema_says_is_noticed() {
    let schema = json!({
        "type": "object", "required": ["a"], "additionalProperties": { "type": "integer" },
        "properties": {
            "a": { "type": ["string", "null"] }, "list": { "type": "array", "items": { "enum": [1, 2] } },
            "name": { "const": "x" }, "came": { "$ref": "provenance-1.json" },
        },
    });
    let problem = |value: Value| schema::check(&schema, &value, "it").expect_err("noticed");
    schema::check(&schema, &json!({ "a": null, "list": [1, 2, 1], "b": 3, "name": "x" }), "it")
        .expect("right");
    assert_eq!(problem(json!([])), "it: [] is not of type \"object\"");
    assert_eq!(problem(json!({ "b": 1 })), "it: there is no 'a'");
    assert!(problem(json!({ "a": 1 })).starts_with("it.a: 1 is not of type"));
    assert!(problem(json!({ "a": "", "list": [1, 3] })).starts_with("it.list[1]: 3 is none of"));
    assert!(problem(json!({ "a": "", "b": 0.5 })).starts_with("it.b: 0.5"));
    assert!(problem(json!({ "a": "", "name": "y" })).starts_with("it.name"));
    assert!(problem(json!({ "a": "", "came": {} })).starts_with("it.came: there is no"));
    let unknown = json!({ "maximum": 3 });
    assert!(schema::check(&unknown, &json!(4), "it").is_err(), "words that are not checked are refused");
}
