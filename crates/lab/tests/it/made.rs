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
use fairlab_lab::{Experiment, RunFolder, run_all};
use fairlab_sim::Machine;
use fairlab_verify::{Agreement, DecisionKind, VerifyOptions, recorded_kernel, verify};

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
    let experiment = Experiment {
        kernels: vec![kernel(name).into()],
        machine,
        workload: workload.iter().map(ToString::to_string).collect(),
        seeds: vec![1],
        warmup: Some(Ns::ZERO),
        duration,
        by_name: Default::default(),
        time: Default::default(),
    };
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

/// How many decisions of a kind are judged, and how many of them missed: neither shared nor admissible.
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

/// A new thread goes to the idle CPU that wakes soonest, and states are told as they are entered and left.
#[test]
fn forks_go_by_the_idle_states_that_a_trace_shows() {
    let path = std::env::temp_dir().join(format!("fairlab-{}-made-idle", std::process::id()));
    let machine = Machine { topology: smt8(), ..Machine::preset("laptop8").expect("a preset").exact() };
    let made = make_with(machine, &path, "v5.2", WORKLOADS[0], Ns::from_ms(400), false);
    let agreement = agreement(&made, "v5.2");
    std::fs::remove_dir_all(&path).expect("removed");
    let forks = &agreement.kind(DecisionKind::WakeupCpu).expect("every kind is there").cases["fork"];
    assert!(forks.judged >= 20, "{forks:?}");
    assert_eq!(forks.missed(), 0, "{:#?}", agreement.misses);
}

/// Kernels whose traces show all that their decisions rest on.
const SHOWN: [&str; 5] = ["v4.18", "v5.2", "v5.5", "v5.10", "v6.1"];

#[test]
fn a_made_trace_agrees_with_its_own_kernel() {
    let mut judged = BTreeMap::<&str, u64>::new();
    with_each(&SHOWN, |workload, own, made| {
        let agreement = agreement(made, own);
        assert_eq!(agreement.state_set_right, 0, "{workload} on {own}");
        for kind in DecisionKind::ALL {
            let (of, misses) = missed(&agreement, kind);
            // How far a search goes hangs on what shows nowhere, nor does what a CPU finds on others while it balances.
            let excused = match kind {
                DecisionKind::WakeupCpu if own == "v6.1" => of / 1000,
                DecisionKind::Balance => of / 10,
                _ => 0,
            };
            assert!(
                misses <= excused,
                "{workload} on {own}: {misses} of {of} {}: {:#?}",
                kind.name(),
                agreement.misses.iter().filter(|m| m.kind == kind).collect::<Vec<_>>()
            );
            *judged.entry(kind.name()).or_default() += of;
        }
    });
    let least = [
        ("vruntime", 10_000),
        ("placement", 10_000),
        ("pick", 3_000),
        ("wakeup_preempt", 4_000),
        ("tick_preempt", 2_000),
        ("wakeup_cpu", 10_000),
        ("balance", 5),
    ];
    assert_judged(&judged, &least);
}

/// A CPU that is about to idle takes tasks on that sleep on their queues, and lets them go when it would pick them: its own task, which
/// has left before, is charged for either.
#[test]
fn sleepers_that_are_pulled_leave_where_they_arrive() {
    let path = std::env::temp_dir().join(format!("fairlab-{}-made-pulled", std::process::id()));
    let made = make(&path, "v6.12", WORKLOADS[0], Ns::from_ms(400));
    let agreement = agreement(&made, "v6.12");
    std::fs::remove_dir_all(&path).expect("removed");
    let least = [
        (DecisionKind::Pick, 1000),
        (DecisionKind::WakeupPreempt, 1000),
        (DecisionKind::DelayedDequeue, 2000),
    ];
    assert_no_miss(&agreement, &least);
    // Where two leave in one pick, what is left of their queue's time may be the other's.
    let (of, misses) = missed(&agreement, DecisionKind::Placement);
    assert!(of >= 2000 && misses <= of / 500, "{misses} of {of} placements: {:#?}", agreement.misses);
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

/// A CPU that balances in its soft interrupt reports nothing until its next tick, and others wake tasks there, or take the task on,
/// meanwhile. A task that is woken where it slept is charged with the test for its preemption, which may ask for the reschedule, and
/// so may the charge of a CPU that takes a task, before the tick shows its flag.
#[test]
fn what_other_cpus_do_between_two_events_of_one_is_told_apart() {
    let schbench = ["schbench", "-m", "2", "-t", "4", "-r", "2"];
    let least = [
        (DecisionKind::Placement, 100),
        (DecisionKind::Pick, 200),
        (DecisionKind::WakeupPreempt, 50),
        (DecisionKind::TickPreempt, 500),
    ];
    assert_no_miss(&on_four("debian-6.12", &schbench, Ns::from_ms(1000), false), &least);
    let hackbench = ["hackbench", "-g", "2", "-f", "4", "-l", "3000"];
    let least = [
        (DecisionKind::Placement, 1000),
        (DecisionKind::Pick, 1000),
        (DecisionKind::WakeupPreempt, 800),
        (DecisionKind::TickPreempt, 50),
    ];
    assert_no_miss(&on_four("debian-6.12", &hackbench, Ns::from_ms(200), false), &least);
}

/// The task that was woken last is noted once, where the probe shows the selection: the count of wakings keeps it apart from the
/// present one. A reschedule that was pending lazily is so at once as the timer that ends a slice asks for it.
#[test]
fn probes_show_wakers_that_wake_many_and_reschedules_that_do_not_wait() {
    let hackbench = ["hackbench", "-g", "2", "-f", "4", "-l", "3000"];
    let least = [(DecisionKind::WakeupCpu, 400), (DecisionKind::WakeupPreempt, 300)];
    assert_no_miss(&on_four("debian-6.12", &hackbench, Ns::from_ms(40), true), &least);
    assert_no_miss(&on_four("debian-7.2", &hackbench, Ns::from_ms(110), true), &least);
}

/// Without probes: what is printed of a task that leaves its queue late, or is woken on it, tells that it slept there.
#[test]
fn a_made_trace_tells_who_sleeps_on_its_queue_and_its_kernel() {
    let own = ["v6.12", "debian-6.12", "v7.2"];
    with_each(&own, |workload, own, made| {
        let options = VerifyOptions { misses: 0, ..VerifyOptions::default() };
        assert_eq!(recorded_kernel(made, &options).expect("a kernel").generation.name(), own);
        let (of, misses) = missed(&agreement(made, own), DecisionKind::DelayedDequeue);
        // With what lag tasks are moved no event tells, and eligibility hangs on it.
        assert!(misses <= of / 100, "{workload} on {own}: {misses} of {of}");
        assert!(workload != "hackbench" || of > 1000, "{of} on {own}");
    });
}

/// Where rules differ: by what kind of decision a trace made by the first shows that it is not of the second.
const FOREIGN: [(&str, &str, &[DecisionKind]); 12] = [
    ("v4.18", "v5.5", &[DecisionKind::WakeupCpu]),
    ("v5.2", "v5.10", &[DecisionKind::WakeupCpu]),
    ("v5.5", "v4.18", &[DecisionKind::WakeupCpu]),
    ("v5.5", "v5.10", &[DecisionKind::WakeupCpu]),
    ("v5.10", "v5.2", &[DecisionKind::WakeupCpu]),
    ("v5.10", "v6.6", &[DecisionKind::Placement, DecisionKind::WakeupPreempt]),
    ("v6.1", "v5.10", &[DecisionKind::WakeupCpu]),
    ("v6.1", "v6.6", &[DecisionKind::Placement, DecisionKind::Pick, DecisionKind::WakeupPreempt]),
    ("v6.1", "v6.12", &[DecisionKind::Placement, DecisionKind::Pick, DecisionKind::WakeupPreempt]),
    ("v6.6", "v6.1", &[DecisionKind::Placement, DecisionKind::Pick, DecisionKind::WakeupPreempt]),
    ("v6.6", "v6.12", &[DecisionKind::Placement, DecisionKind::DelayedDequeue]),
    ("v6.6", "v7.2", &[DecisionKind::Placement, DecisionKind::DelayedDequeue]),
];

#[test]
fn a_made_trace_tells_its_kernel_from_others() {
    for own in ["v4.18", "v5.2", "v5.5", "v5.10", "v6.1", "v6.6"] {
        let path = std::env::temp_dir().join(format!("fairlab-{}-foreign-{own}", std::process::id()));
        let made = make(&path, own, WORKLOADS[0], Ns::from_ms(400));
        let right = agreement(&made, own);
        for (_, other, kinds) in FOREIGN.iter().filter(|(made_by, ..)| *made_by == own) {
            let wrong = agreement(&made, other);
            for &kind in *kinds {
                let share = |agreement| {
                    let (of, misses) = missed(agreement, kind);
                    misses as f64 / of.max(1) as f64
                };
                let (right, wrong) = (share(&right), share(&wrong));
                assert!(
                    wrong > 0.006 && wrong > 5.0 * right,
                    "{own} by {other}: {wrong:.4} of {} missed, {right:.4} by its own rules",
                    kind.name()
                );
            }
        }
        std::fs::remove_dir_all(&path).expect("removed");
    }
}

/// Six tasks that wake up by a timer, eight that compute all the time, two less important ones in between.
const PERIODIC: &str = r#"{"tasks": {
    "timer": {"instance": 6, "loop": -1, "run": 1500, "timer": {"ref": "t", "period": 7000}},
    "hog": {"instance": 8, "loop": -1, "run": 100000},
    "nice": {"instance": 2, "loop": -1, "priority": 5, "run": 3000, "sleep": 4000}}, "global": {"duration": 1}}"#;

/// Of so many decisions even probes leave one open at most: to v6.5 a task that is woken on another CPU is placed by a minimum that is
/// read without a lock, and how far a search goes is not known before a probe has shown it.
const LEFT_OPEN: u64 = 20;
/// Of placements more: they go by a queue's minimum, which other CPUs advance between the probe and the placement.
const LEFT_OPEN_PLACES: u64 = 4;
/// How many decisions come before probes have shown what they hang on, however short a trace is.
const FIRST: u64 = 5;

/// Whatever a trace with probes shows is decided by its own rules as it was: no miss, and next to nothing left open.
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
            let left_open = if kind == DecisionKind::Placement { LEFT_OPEN_PLACES } else { LEFT_OPEN };
            assert!(left_open * all.admissible <= all.judged + left_open * FIRST, "{all:?} {shown:#?}");
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
        ("vruntime", 10_000),
        ("placement", 10_000),
        ("pick", 3_000),
        ("wakeup_preempt", 4_000),
        ("tick_preempt", 2_000),
        ("queue_time", 10_000),
        ("lag", 5_000),
        ("delayed_dequeue", 2_000),
        ("wakeup_cpu", 10_000),
        ("balance", 5_000),
        ("balance_try", 13_000),
    ];
    assert_judged(&judged, &least);
}

/// Where a change of weight places a group's entity again, its queue is charged before that: one minimum in 20 depends on it.
#[test]
fn minima_are_known_where_groups_are_placed_anew() {
    let groups = ["cgroup", "cpu.weight=50", "/", "cpu.weight=300", "hackbench", "-g", "1", "-l", "11"];
    for own in ["v6.15", "v6.18"] {
        let path = std::env::temp_dir().join(format!("fairlab-{}-anew-{own}", std::process::id()));
        let made = make_on(smt8(), &path, own, &groups, Ns::from_ms(300), true);
        let (of, misses) = missed(&agreement(&made, own), DecisionKind::QueueTime);
        assert!(of > 2_000 && 200 * misses < of, "{own}: {misses} of {of} missed");
        std::fs::remove_dir_all(&path).expect("removed");
    }
}

/// Traces with probes: made by the first, not of the second, and in which kinds that shows.
const FOREIGN_PROBED: [(&str, &str, &[DecisionKind]); 10] = [
    ("v5.2", "v5.10", &[DecisionKind::WakeupCpu, DecisionKind::Balance, DecisionKind::BalanceTry]),
    ("v5.10", "v5.2", &[DecisionKind::WakeupCpu, DecisionKind::Balance, DecisionKind::BalanceTry]),
    ("v5.10", "v6.6", &[DecisionKind::Balance]),
    ("v6.6", "v6.1", &[DecisionKind::Balance]),
    ("v6.6", "v6.12", &[DecisionKind::DelayedDequeue]),
    ("v6.12", "v6.6", &[DecisionKind::Placement, DecisionKind::Lag, DecisionKind::DelayedDequeue]),
    ("v6.12", "v6.1", &[DecisionKind::Balance]),
    ("v6.12", "v7.2", &[DecisionKind::Placement, DecisionKind::QueueTime, DecisionKind::Balance]),
    ("v7.2", "v6.12", &[DecisionKind::Placement]),
    ("v7.2+NEXT_BUDDY", "v7.2", &[DecisionKind::Pick, DecisionKind::WakeupPreempt]),
];

#[test]
fn a_made_trace_with_probes_tells_its_kernel_from_others() {
    for own in ["v5.2", "v5.10", "v6.6", "v6.12", "v7.2", "v7.2+NEXT_BUDDY"] {
        let path = std::env::temp_dir().join(format!("fairlab-{}-foreign-probed-{own}", std::process::id()));
        let made = make_on(smt8(), &path, own, WORKLOADS[0], Ns::from_ms(400), true);
        let right = agreement(&made, own);
        for (_, other, kinds) in FOREIGN_PROBED.iter().filter(|(made_by, ..)| *made_by == own) {
            let wrong = agreement(&made, other);
            for &kind in *kinds {
                let ((_, none), (of, misses)) = (missed(&right, kind), missed(&wrong, kind));
                assert_eq!(none, 0, "{own} by its own rules: {}", kind.name());
                assert!(20 * misses > of, "{own} by {other}: {misses} of {of} {} missed", kind.name());
            }
        }
        std::fs::remove_dir_all(&path).expect("removed");
    }
}
