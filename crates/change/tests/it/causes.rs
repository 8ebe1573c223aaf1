//! Causes of made differences: what was made is what is told, and nothing is told where nothing was made.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::causes::{CauseDecision, WaitBehind, WaitKind};
use fairlab_change::causes::{causes_between, compare_causes, parting};
use fairlab_event::{Cpu, Ns};
use fairlab_lab::answer::causes::{CauseAnswer, CausesAnswer, ScopeAnswer, WaitSelection};
use fairlab_lab::{Kernel, RunRecord, RunResult, RunSetting, RunSide, RunSpec, machines, run, sides_of};

fn spec(kernel: &str, machine: &str, workload: &[&str], seed: u64) -> RunSpec {
    RunSpec {
        first_cpu: Some(Cpu(0)),
        warmup: Some(Ns::from_ms(100)),
        causes: true,
        ..RunSpec::new(
            kernel.parse().expect("a kernel"),
            machines::find(machine).expect("a machine"),
            workload.iter().map(ToString::to_string).collect(),
            seed,
            Ns::from_ms(200),
        )
    }
}

fn one(kernel: &str, machine: &str, workload: &[&str], seed: u64) -> RunResult {
    let result = run(&spec(kernel, machine, workload, seed), &AtomicBool::new(false));
    result.expect("a run").expect("not stopped")
}

fn runs(kernel: &str, machine: &str, workload: &[&str]) -> Vec<RunResult> {
    (1..=4).map(|seed| one(kernel, machine, workload, seed)).collect()
}

fn compared(base: &[RunResult], new: &[RunResult]) -> CausesAnswer {
    let side = |name: &str, runs: &[RunResult]| RunSide {
        name: name.to_string(),
        records: runs.iter().map(RunRecord::of_run).collect(),
        ..RunSide::default()
    };
    causes_between(&side("a", base), &side("b", new)).expect("causes")
}

fn all(answer: &CausesAnswer) -> &ScopeAnswer {
    answer.scopes.iter().find(|scope| scope.waits == WaitSelection::All).expect("all waits")
}

fn first(answer: &CausesAnswer) -> &CauseAnswer {
    all(answer).behind.first().unwrap_or_else(|| panic!("{answer:#?}"))
}

/// Parts come to what the metrics have: all waits are there, each once.
#[test]
fn causes_come_to_all_waits() {
    for kernel in ["v5.10", "v6.12"] {
        for seed in [1, 2] {
            let result = one(kernel, "vm4", &["hackbench", "-g", "1", "-l", "1000000"], seed);
            let causes = result.causes.as_ref().expect("causes");
            let counted = causes.lengths.iter().map(|length| length.waits).sum::<u64>();
            assert_eq!(counted, causes.waits);
            let woken = causes.lengths.iter().filter(|length| length.wait == WaitKind::Wakeup);
            let woken = woken.map(|length| length.waits).sum::<u64>();
            // Those of what runs in the background, and those that go on at the end, are none of the metric's.
            let metric = result.counts.wakeup_latency.total();
            assert!(woken.abs_diff(metric) * 500 < metric && woken > 1_000, "{kernel}: {woken} {metric}");
            for part in &causes.parts {
                assert!(part.time_ns > 0 && part.beside_idle_ns <= part.time_ns, "{part:?}");
                assert!(part.behind != WaitBehind::Unknown, "{part:?}");
            }
        }
    }
}

/// A run does not depend on whether its causes are asked for.
#[test]
fn asking_changes_nothing() {
    let asked = spec("v6.12", "vm4", &["hackbench", "-g", "1", "-l", "1000000"], 3);
    let plain = RunSpec { causes: false, ..asked.clone() };
    let [asked, plain] =
        [asked, plain].map(|spec| run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped"));
    assert_eq!((asked.digest, asked.metrics), (plain.digest, plain.metrics));
    assert!(plain.causes.is_none());
}

#[test]
fn a_against_a_has_no_cause() {
    let results = runs("v6.12", "vm4", &["schbench", "-m", "1", "-t", "8"]);
    let answer = compared(&results, &results);
    for scope in &answer.scopes {
        assert!(scope.causes.iter().all(|cause| !cause.sure && cause.added.mean == 0.0), "{scope:#?}");
        assert!(
            scope.sentences.len() == 1 && scope.sentences[0].contains("no cause"),
            "{:?}",
            scope.sentences
        );
    }
    // Of two kernels of equal rules chance makes another course of each seed: still nothing is sure.
    let other = (5..=8).map(|seed| {
        let spec = spec("v6.12", "vm4", &["schbench", "-m", "1", "-t", "8"], seed);
        let result = run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped");
        RunResult { seed: seed - 4, ..result }
    });
    let answer = compared(&results, &other.collect::<Vec<_>>());
    let sure = all(&answer).causes.iter().filter(|cause| cause.sure).collect::<Vec<_>>();
    assert!(sure.is_empty(), "{sure:#?}");
}

#[test]
fn a_quota_is_the_cause_of_waiting_for_it() {
    let spinners = ["spinners", "-n", "0,0"];
    let free = [&["cgroup"][..], &spinners].concat();
    let limited = [&["cgroup", "cpu.max=40000 100000"][..], &spinners].concat();
    let answer = compared(&runs("v6.12", "vm4", &free), &runs("v6.12", "vm4", &limited));
    let cause = first(&answer);
    assert!(cause.behind == WaitBehind::Throttled && cause.sure, "{cause:#?}");
    assert!(cause.share.is_some_and(|share| share > 0.95), "{cause:#?}");
    assert!(all(&answer).sentences[1].contains("for its group's quota"), "{:?}", all(&answer).sentences);
}

#[test]
fn a_real_time_hog_is_the_cause_of_waiting_for_it() {
    let file = |name: &str, hog: &str| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("causes");
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(name);
        let worker = r#""worker": { "loop": -1, "cpus": [0], "run": 1000, "sleep": 3000 }"#;
        fs::write(&path, format!(r#"{{ "global": {{ "duration": 2 }}, "tasks": {{ {worker}{hog} }} }}"#))
            .expect("a file");
        path.to_string_lossy().into_owned()
    };
    let hog = r#", "hog": { "policy": "SCHED_FIFO", "priority": 10, "loop": -1, "cpus": [0], "run": 5000, "sleep": 9000 }"#;
    let (calm, hogged) = (file("calm.json", ""), file("hogged.json", hog));
    let answer =
        compared(&runs("v6.12", "vm4", &["rt-app", &calm]), &runs("v6.12", "vm4", &["rt-app", &hogged]));
    let cause = first(&answer);
    assert!(cause.behind == WaitBehind::RealTime && cause.sure, "{cause:#?}");
    assert_eq!(cause.runners[0].name, "hog");
    assert!(cause.share.is_some_and(|share| share > 0.9), "{cause:#?}");
}

#[test]
fn a_groups_weight_makes_the_other_group_wait() {
    let spinners = |weights| ["spinners", "-n", "0,0,0,0", "-g", weights];
    let answer =
        compared(&runs("v6.12", "vm4", &spinners("100,100")), &runs("v6.12", "vm4", &spinners("100,800")));
    let scope = all(&answer);
    let cause =
        scope.behind.iter().find(|cause| cause.behind == WaitBehind::OtherGroup).expect("another group");
    assert!(cause.sure, "{scope:#?}");
}

#[test]
fn the_protection_of_slices_is_told_where_it_decides() {
    let workload = ["hackbench", "-g", "1", "-l", "1000000"];
    let answer =
        compared(&runs("v6.12", "vm4", &workload), &runs("v6.12+NO_RUN_TO_PARITY", "vm4", &workload));
    let protects = |cause: &&CauseAnswer| cause.reason.ends_with("RunToParity");
    let protected = all(&answer).causes.iter().filter(protects).collect::<Vec<_>>();
    assert!(!protected.is_empty(), "{:#?}", all(&answer).causes);
    for cause in protected {
        assert!(cause.baseline_ns_per_s > 0.0 && cause.ns_per_s == 0.0, "{cause:#?}");
        assert!(matches!(cause.decision, CauseDecision::Pick | CauseDecision::Preempt), "{cause:#?}");
    }
    assert!(
        all(&answer).causes.iter().any(|cause| cause.sure && cause.words.contains("has not used its slice"))
    );
}

/// Runs that count from their begin.
fn setting(machine: &str, workload: &[&str], duration: Ns) -> RunSetting {
    RunSetting {
        machine: machines::find(machine).expect("a machine"),
        machine_name: machine.to_string(),
        workload: workload.iter().map(ToString::to_string).collect(),
        warmup: Some(Ns::ZERO),
        duration,
        first_seed: 1,
        by_name: Default::default(),
        time: Default::default(),
    }
}

/// The first decision in which two modelled kernels part, with what both held.
#[test]
fn modelled_kernels_part_at_a_decision() {
    let kernels = ["v6.12", "v6.12+NO_RUN_TO_PARITY"].map(|name| name.parse::<Kernel>().expect("a kernel"));
    let setting = setting("vm4", &["hackbench", "-g", "1", "-l", "1000"], Ns::from_ms(300));
    let stop = AtomicBool::new(false);
    let found = parting((&kernels[0], &kernels[1]), &setting, &stop).expect("runs").expect("they part");
    assert_ne!(found.baseline, found.kernel);
    assert!(!found.baseline_decisions.is_empty() && !found.decisions.is_empty(), "{found:#?}");
    for member in ["se.vruntime", "se.deadline", "lag", "eligible", "slice", "rq.nr_running"] {
        assert!(found.state.iter().any(|held| held.member.ends_with(member)), "{member} {:#?}", found.state);
    }
    // Before they part, nothing differs.
    let differs = found.state.iter().filter(|held| held.baseline != held.kernel).collect::<Vec<_>>();
    assert!(differs.is_empty(), "{differs:#?}");
    let alike = parting((&kernels[0], &kernels[0]), &setting, &stop).expect("runs");
    assert!(alike.is_none(), "{alike:#?}");
}

/// A wakeup that asks for no reschedule leaves another mark on the events behind it, long before a decision differs.
#[test]
fn kernels_part_at_a_decision_where_marks_differ_before() {
    let kernels =
        ["v6.12", "v6.12+NO_WAKEUP_PREEMPTION"].map(|name| name.parse::<Kernel>().expect("a kernel"));
    let setting = setting("laptop8", &["schbench", "-t", "4"], Ns::from_ms(500));
    let stop = AtomicBool::new(false);
    let found = parting((&kernels[0], &kernels[1]), &setting, &stop).expect("runs").expect("they part");
    assert_ne!(found.baseline, found.kernel);
}

#[test]
fn runs_without_causes_are_refused() {
    let mut results = runs("v6.12", "vm4", &["spinners", "-n", "0"]);
    results[1].causes = None;
    let names = ["v6.12".to_string(), "v6.12".to_string()];
    let refused = compare_causes(&sides_of(&names, &results)).expect_err("no causes");
    assert_eq!(refused.problem, "run 2 of v6.12 was made without --explain");
}
