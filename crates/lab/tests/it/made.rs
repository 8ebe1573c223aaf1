//! What the model does, traced and verified: it agrees with its own rules, and with others' clearly less.
//!
//! The folder that a run leaves is verified as it stands, as `fairlab run --out` writes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_lab::{Experiment, RunFolder, RunSetting, run_all};
use fairlab_sim::Machine;
use fairlab_verify::{Agreement, DecisionKind, VerifyOptions, verify};

fn kernel(name: &str) -> Generation {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// 8 CPUs: 4 cores of 2 threads under one cache.
fn smt8() -> Topology {
    Topology::regular(1, 1, 4, 2, SmtNumbering::Adjacent).expect("a machine")
}

/// Runs a workload and leaves its folder at `path`. Returns the folder of its only run.
fn make(path: &Path, name: &str, workload: &[&str], duration: Ns) -> PathBuf {
    make_on(smt8(), path, name, workload, duration, false)
}

/// A machine whose CPUs have no idle states: which of them tick while they idle, no event of the scheduler tells.
fn plain(topology: Topology) -> Machine {
    Machine { topology, idle_states: Vec::new(), ..Machine::preset("laptop8").expect("a preset").exact() }
}

fn make_on(
    topology: Topology,
    path: &Path,
    name: &str,
    workload: &[&str],
    duration: Ns,
    probes: bool,
) -> PathBuf {
    make_with(plain(topology), path, name, workload, duration, probes)
}

fn make_with(
    machine: Machine,
    path: &Path,
    name: &str,
    workload: &[&str],
    duration: Ns,
    probes: bool,
) -> PathBuf {
    let experiment = Experiment::of_setting(
        vec![kernel(name).into()],
        &RunSetting {
            warmup: Some(Ns::ZERO),
            ..RunSetting::new(machine, workload.iter().map(ToString::to_string).collect(), duration)
        },
        vec![1],
    );
    let folder = RunFolder::create(path).expect("a folder");
    let mut specs = experiment.specs();
    for spec in &mut specs {
        spec.trace = Some(folder.trace_path(spec.kernel.name(), spec.seed).expect("a place"));
        spec.probes = probes;
    }
    let (results, _) = run_all(&specs, 1, &|_| (), &AtomicBool::new(false)).expect("a run");
    folder.write(&experiment, &results, &serde_json::Value::Null).expect("written");
    folder.finish().expect("finished");
    path.join(name).join("seed-1")
}

const WORKLOADS: [&[&str]; 2] = [&["hackbench", "-g", "2", "-l", "20"], &["schbench", "-m", "2", "-t", "8"]];

/// Makes a trace of each workload by each kernel, and hands it on.
fn with_each(kernels: &[&str], mut check: impl FnMut(&str, &str, &Path)) {
    for workload in WORKLOADS {
        for own in kernels {
            let name = format!("fairlab-{}-made-{}-{own}", std::process::id(), workload[0]);
            let path = std::env::temp_dir().join(name);
            let made = make(&path, own, workload, Ns::from_ms(400));
            check(workload[0], own, &made);
            std::fs::remove_dir_all(&path).expect("removed");
        }
    }
}

fn agreement(made: &Path, by: &str) -> Agreement {
    let options = VerifyOptions { misses: 3000, ..VerifyOptions::default() };
    verify(made, &kernel(by), &options).unwrap_or_else(|error| panic!("{}: {error}", made.display()))
}

/// How many decisions of a kind are judged, and how many of them missed.
fn missed(agreement: &Agreement, kind: DecisionKind) -> (u64, u64) {
    let tally = agreement.kind(kind).expect("every kind is there");
    (tally.all.judged, tally.all.missed())
}

/// What was judged of each kind is enough to mean something.
fn assert_judged(judged: &BTreeMap<&str, u64>, least: &[(&str, u64)]) {
    for &(kind, least) in least {
        assert!(judged[kind] >= least, "{kind}: {} judged", judged[kind]);
    }
}

/// Kernels whose traces print vruntimes: without probes, too, it shows who runs.
const PRINTED: [&str; 5] = ["v4.18", "v5.2", "v5.5", "v5.10", "v6.1"];

#[test]
fn a_made_trace_agrees_with_its_own_kernel() {
    let mut judged = BTreeMap::<&str, u64>::new();
    with_each(&PRINTED, |workload, own, made| {
        let agreement = agreement(made, own);
        assert_eq!(agreement.state_set_right, 0, "{workload} on {own}");
        for kind in DecisionKind::ALL {
            let (of, misses) = missed(&agreement, kind);
            assert_eq!(misses, 0, "{workload} on {own}: {:#?}", agreement.misses);
            *judged.entry(kind.name()).or_default() += of;
        }
    });
    let least = [("vruntime", 10_000), ("placement", 1_000), ("pick", 1_000), ("wakeup_preempt", 1_000)];
    assert_judged(&judged, &least);
}

/// Four CPUs of an emulator, where code takes long: what happens between two events of a CPU is seen by others.
fn on_four(kernel: &str, workload: &[&str], duration: Ns, probes: bool) -> Agreement {
    let label = format!("fairlab-{}-four-{}-{kernel}-{probes}", std::process::id(), workload[0]);
    let path = std::env::temp_dir().join(label);
    let machine = fairlab_lab::machines::find("emulated:1x4x1").expect("a machine");
    let made = make_with(machine, &path, kernel, workload, duration, probes);
    let agreement = agreement(&made, kernel);
    std::fs::remove_dir_all(&path).expect("removed");
    agreement
}

fn assert_no_miss(agreement: &Agreement, least: &[(DecisionKind, u64)]) {
    for &(kind, least) in least {
        let (of, misses) = missed(agreement, kind);
        assert!(of >= least && misses == 0, "{misses} of {of} {}: {:#?}", kind.name(), agreement.misses);
    }
}

/// The task that was woken last is noted once, where the probe shows the selection: the count of wakings keeps it apart from the
/// present one. A reschedule that was pending lazily is so at once as the timer that ends a slice asks for it.
#[test]
fn probes_show_wakers_that_wake_many_and_reschedules_that_do_not_wait() {
    let hackbench = ["hackbench", "-g", "2", "-f", "4", "-l", "3000"];
    let least = [(DecisionKind::WakeupCpu, 200), (DecisionKind::WakeupPreempt, 200)];
    assert_no_miss(&on_four("debian-6.12", &hackbench, Ns::from_ms(40), true), &least);
    assert_no_miss(&on_four("debian-7.2", &hackbench, Ns::from_ms(110), true), &least);
}

/// Six tasks that wake up by a timer, eight that compute all the time, two less important ones in between.
const PERIODIC: &str = r#"{"tasks": {
    "timer": {"instance": 6, "loop": -1, "run": 1500, "timer": {"ref": "t", "period": 7000}},
    "hog": {"instance": 8, "loop": -1, "run": 100000},
    "nice": {"instance": 2, "loop": -1, "priority": 5, "run": 3000, "sleep": 4000}}, "global": {"duration": 1}}"#;

/// Whatever a trace with probes shows is decided by its own rules as it was: no miss.
fn check_probed(topology: &Topology, label: &str, workload: &[&str], judged: &mut BTreeMap<&str, u64>) {
    for own in ["v5.2", "v5.10", "v6.1", "v6.5", "v6.6", "v6.12", "v7.2"] {
        let path = std::env::temp_dir().join(format!("fairlab-{}-probed-{label}-{own}", std::process::id()));
        let made = make_on(topology.clone(), &path, own, workload, Ns::from_ms(300), true);
        let agreement = agreement(&made, own);
        assert_eq!(agreement.state_set_right, 0, "{label} on {own}");
        for kind in DecisionKind::ALL {
            let all = agreement.kind(kind).expect("every kind is there").all;
            let shown = (label, own, kind.name(), &agreement.misses);
            assert_eq!(all.missed(), 0, "{shown:#?}");
            *judged.entry(kind.name()).or_default() += all.judged;
        }
        std::fs::remove_dir_all(&path).expect("removed");
    }
}

#[test]
fn a_made_trace_with_probes_agrees_with_its_own_kernel_in_everything() {
    let nodes = Topology::regular(2, 1, 2, 2, SmtNumbering::Adjacent).expect("a machine");
    let json = std::env::temp_dir().join(format!("fairlab-{}-periodic.json", std::process::id()));
    std::fs::write(&json, PERIODIC).expect("written");
    let json_name = json.to_string_lossy().into_owned();
    let groups = ["cgroup", "cpu.weight=50", "/", "cpu.weight=300", "hackbench", "-g", "1", "-l", "11"];
    let mut judged = BTreeMap::new();
    check_probed(&smt8(), "hackbench", WORKLOADS[0], &mut judged);
    check_probed(&nodes, "schbench", WORKLOADS[1], &mut judged);
    check_probed(&nodes, "periodic", &["rt-app", &json_name], &mut judged);
    check_probed(&smt8(), "groups", &groups, &mut judged);
    std::fs::remove_file(&json).expect("removed");
    let least = [
        ("vruntime", 5_000),
        ("placement", 2_000),
        ("pick", 1_000),
        ("wakeup_preempt", 1_000),
        ("tick_preempt", 500),
        ("queue_time", 2_000),
        ("lag", 500),
        ("wakeup_cpu", 500),
    ];
    assert_judged(&judged, &least);
}

/// Traces with probes: made by the first, not of the second, and in which kinds that shows: more than one decision in so many is missed.
const FOREIGN_PROBED: [(&str, &str, &[DecisionKind], u64); 6] = [
    ("v5.2", "v5.10", &[DecisionKind::WakeupCpu], 20),
    ("v5.10", "v5.2", &[DecisionKind::WakeupCpu], 20),
    ("v6.12", "v6.6", &[DecisionKind::Placement, DecisionKind::Lag, DecisionKind::DelayedDequeue], 20),
    ("v6.12", "v7.2", &[DecisionKind::QueueTime], 20),
    ("v7.2", "v6.12", &[DecisionKind::Placement], 70),
    ("v7.2+NEXT_BUDDY", "v7.2", &[DecisionKind::Pick, DecisionKind::WakeupPreempt], 20),
];

#[test]
fn a_made_trace_with_probes_tells_its_kernel_from_others() {
    for own in ["v5.2", "v5.10", "v6.12", "v7.2", "v7.2+NEXT_BUDDY"] {
        let path = std::env::temp_dir().join(format!("fairlab-{}-foreign-probed-{own}", std::process::id()));
        let made = make_on(smt8(), &path, own, WORKLOADS[0], Ns::from_ms(400), true);
        let right = agreement(&made, own);
        for (_, other, kinds, so_many) in FOREIGN_PROBED.iter().filter(|(made_by, ..)| *made_by == own) {
            let wrong = agreement(&made, other);
            for &kind in *kinds {
                let ((_, none), (of, misses)) = (missed(&right, kind), missed(&wrong, kind));
                assert_eq!(none, 0, "{own} by its own rules: {}", kind.name());
                assert!(so_many * misses > of, "{own} by {other}: {misses} of {of} {} missed", kind.name());
            }
        }
        std::fs::remove_dir_all(&path).expect("removed");
    }
}
