//! Cells of a kernel that is built from sources, as they are run on another host. Fetches Debian's sources of 6.1 once, and fails where it
//! cannot.

use std::sync::atomic::AtomicBool;

use fairlab_lab::cells::{CellBatch, CellList};
use fairlab_lab::oracle::{Survey, SurveyCell};
use fairlab_lab::sweep::SweepPlan;
use serde_json::{Value, json};

const SWEEP: &str = r#"
kernels = ["v6.1", "src:debian:6.1"]
machines = ["layout:1x1x4x1"]
workloads = ["hackbench -g 1 -l 20"]
seeds = 1
duration_ms = 50
"#;

/// A batch runs where its code is what it is where it came from, and gives equal records each time; elsewhere it is refused.
#[test]
fn a_kernel_of_sources_travels_by_what_its_code_is() {
    let never = AtomicBool::new(false);
    let plan = SweepPlan::parse(SWEEP).expect("a plan");
    let plan = plan.list(None);
    plan.prepare(&never).expect("it is built");
    let sent = json!(plan.batch(&[0, 1]).expect("a batch"));
    let run = |batch: &Value| {
        let batch = serde_json::from_value::<CellBatch>(batch.clone()).expect("a batch");
        batch.run(&never).map(|records| json!(records.expect("all")))
    };
    let records = run(&sent).expect("runs");
    assert_eq!(records[1]["kernel"], "src:debian:6.1", "{records}");
    assert!(records[1]["digest"].as_str().is_some_and(|digest| !digest.is_empty()), "{records}");
    assert_eq!(run(&sent).expect("runs"), records);
    let mut other = sent.clone();
    other["work"]["sweep"]["ground"]["built"][0]["key"] = json!("of another tree");
    let error = run(&other).expect_err("other code").to_string();
    assert!(error.starts_with("src:debian:6.1 is other code on a host of the cluster"), "{error}");
    other["work"]["sweep"]["ground"]["built"][0]["kernel"] = json!("src:/no/such/tree");
    let error = run(&other).expect_err("no such tree").to_string();
    assert!(error.starts_with("on a host of the cluster: ") && !error.contains('\n'), "{error}");
}

/// A model follows the code of a release on another machine as it does here, and only that code.
#[test]
fn a_model_follows_equal_code_elsewhere() {
    let never = AtomicBool::new(false);
    let cell = SurveyCell::Named {
        pair: 0,
        machine: "layout:1x1x4x1".to_string(),
        workload: ["hackbench", "-g", "1", "-l", "5"].map(String::from).into(),
        seed: 1,
        duration_ns: 20_000_000,
    };
    let pairs = [("debian-6.1", "src:debian:6.1")];
    let survey = Survey::new("layout:1x1x4x1", &pairs, vec![cell], &never).expect("it is built");
    let here = survey.run(0, &never).expect("runs").expect("whole");
    let sent = json!(survey.batch(&[0]).expect("a batch"));
    let run = |batch: Value| serde_json::from_value::<CellBatch>(batch).expect("a batch").run(&never);
    assert_eq!(run(sent.clone()).expect("runs"), Some(vec![here.clone()]));
    assert!(here["run"]["findings"]["checks"]["Pick"]["all"].as_u64() > Some(0), "{here}");
    let mut other = sent;
    other["work"]["oracle"]["built"][0]["key"] = json!("of another tree");
    let error = run(other).expect_err("other code").to_string();
    assert!(error.starts_with("src:debian:6.1 is other code on a host of the cluster"), "{error}");
}
