//! A run agrees with the kernel that made it: every workload, in groups of weights and quotas, at nice levels, with affinity and
//! real-time tasks, under kernels of each way to schedule. The folder is verified as `fairlab run --probes --out` leaves it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fairlab_event::Ns;
use fairlab_kernel::Generation;
use fairlab_lab::workloads::WORKLOADS;
use fairlab_lab::{Experiment, RunFolder, RunSetting, machines, run_all};
use fairlab_verify::{Agreement, DecisionKind, VerifyOptions, recorded_kernel, verify};

/// By virtual runtime, by lag, and by lag with sleepers that stay queued.
const KERNELS: [&str; 3] = ["v5.10", "v6.6", "v6.12"];

/// Threads of several nice levels and policies, some bound to CPUs, some in groups, that wait for each other and for time.
const THREADS: &str = r#"{"tasks": {
    "timer": {"instance": 4, "loop": -1, "run": 900, "timer": {"ref": "unique", "period": 5000}},
    "low": {"instance": 3, "loop": -1, "priority": 7, "taskgroup": "/low", "run": 3000, "sleep": 1000},
    "high": {"instance": 2, "loop": -1, "priority": -7, "taskgroup": "/high/est", "run": 700, "sleep": 1500},
    "bound": {"instance": 3, "loop": -1, "cpus": [1, 2], "run": 2500, "sleep": 400},
    "fifo": {"policy": "SCHED_FIFO", "priority": 10, "loop": -1, "run": 300, "timer": {"ref": "unique", "period": 8000}},
    "rr": {"instance": 2, "policy": "SCHED_RR", "priority": 5, "loop": -1, "cpus": [3], "run": 400, "timer": {"ref": "unique", "period": 9000}},
    "idle": {"instance": 2, "policy": "SCHED_IDLE", "loop": -1, "run": 5000, "sleep": 300},
    "asks": {"loop": -1, "run": 200, "sem_post": "one", "sleep": 900},
    "answers": {"loop": -1, "sem_wait": "one", "run": 350}},
    "global": {"duration": 1}}"#;

/// What is run: `_` is a blank within a word, and files are named by `{threads}`, `{oltp}` and `{recording}`.
const RUNS: [&str; 25] = [
    "schbench -m 2 -t 6",
    "cgroup cpu.weight=30 / cpu.max=12000_10000 schbench -m 1 -t 6 -c 3000 -s 500",
    "hackbench -g 2 -l 10",
    "cgroup cpu.weight=50 / cpu.weight=300 hackbench -g 1 -l 11",
    "cgroup cpu.max=9000_10000 / cpu.max=4000_5000 cpu.max.burst=1000 hackbench -g 1 -l 9",
    "cgroup cpu.max=3000_10000 / cpu.weight=20 pipe -l 500",
    "vhost --cpus 8 --run-ms 40",
    "cgroup cpu.weight=700 tbench -c 9 --run-ms 12",
    "uperf --cpus 8 --guest-cpus 3 --queues 2 --connections 6 --run-ms 20",
    "cgroup cpu.idle=1 jobs spin -n 10",
    "jobs yield -n 10",
    "cgroup cpu.max=7000_20000 jobs sleep -n 12",
    "jobs io -n 12",
    "cgroup cpu.weight=10 / cpu.weight=10000 jobs pairs -n 6 -r 300 -a 100",
    "cgroup cpu.weight=400 jobs spawn -n 4 -k 3",
    "sessions 5:3000 2:1000:500 9:700:1500",
    "rt-app {threads}",
    "replay {recording}",
    "mix --beside jobs_sleep_-n_5 --beside cgroup_cpu.weight=30_jobs_spin_-n_3 pipe -l 500",
    "daemons -g 3 -c 8 -p 10 periodic -n 12 -d 370",
    "spinners -n 0,5,-5,19 -g 100,300,20 -s 700",
    "schbench2 -m 2 -t 6 -n 1",
    "mix --beside pipe_-l_300 stream -n 4 -s 100000",
    "tasks {oltp}",
    "random -t 12 -r 400 --nice --cpus 4 --policies --forks",
];

/// What the walk is taken to know though it does not, as far as it has been looked into: of groups' entities, when code that moves a task, or
/// queues one, has charged those above it.
const CHARGES: &str = "when running groups are charged is not shown";

/// What no event tells: balancing found tasks there that are bound to other CPUs, so a fork does not take the group for one with room.
/// With the mark on CPUs 2 and 6 (vhost) and on 1 and 5 (random), each fork that is missed comes to the CPU that it took.
const MARKS: &str = "that affinity has kept a group's tasks from being spread is not shown (sgc->imbalance)";

/// A scan of the cache took another idle CPU than the walk does: nobody has found out why.
const OPEN: &str = "why is not known";

/// Misses of one kind in the runs of one line that are known: what causes them is not mended yet.
struct Gap {
    /// Words of that line.
    of: &'static str,
    kind: DecisionKind,
    /// Under each of the kernels: neither more nor fewer.
    misses: [u64; 3],
    why: &'static str,
}

const fn gap(of: &'static str, kind: DecisionKind, misses: [u64; 3], why: &'static str) -> Gap {
    Gap { of, kind, misses, why }
}

const KNOWN: [Gap; 14] = [
    gap("vhost", DecisionKind::WakeupCpu, [2, 0, 0], MARKS),
    gap("random", DecisionKind::WakeupCpu, [3, 3, 3], MARKS),
    gap("cpu.idle=1 jobs spin", DecisionKind::Vruntime, [0, 0, 2], CHARGES),
    gap("sessions", DecisionKind::Vruntime, [1, 4, 6], CHARGES),
    gap("sessions", DecisionKind::Placement, [0, 1, 1], CHARGES),
    gap("sessions", DecisionKind::Pick, [0, 0, 1], CHARGES),
    gap("sessions", DecisionKind::WakeupPreempt, [0, 0, 1], CHARGES),
    gap("sessions", DecisionKind::QueueTime, [2, 3, 6], CHARGES),
    gap("sessions", DecisionKind::Lag, [0, 2, 0], CHARGES),
    gap("rt-app", DecisionKind::TickPreempt, [0, 0, 1], CHARGES),
    gap("rt-app", DecisionKind::QueueTime, [0, 1, 3], CHARGES),
    gap("rt-app", DecisionKind::WakeupCpu, [0, 1, 0], OPEN),
    gap("-n 0,5,-5,19 -g 100,300,20", DecisionKind::QueueTime, [0, 3, 0], CHARGES),
    gap("-n 0,5,-5,19 -g 100,300,20", DecisionKind::Placement, [0, 1, 0], CHARGES),
];

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/6.12-nice-2")
}

fn oltp() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads/sysbench-oltp.toml")
}

/// One run of a workload under a kernel.
#[derive(Clone, Copy)]
struct Job {
    line: &'static str,
    kernel: usize,
    warmup: Option<Ns>,
}

impl Job {
    fn words(&self, threads: &Path) -> Vec<String> {
        let word = |word: &str| match word {
            "{threads}" => threads.display().to_string(),
            "{oltp}" => oltp().display().to_string(),
            "{recording}" => recording().display().to_string(),
            word => word.replace('_', " "),
        };
        self.line.split(' ').map(word).collect()
    }

    /// Groups that count as SCHED_IDLE came with v5.15.
    fn is_possible(&self) -> bool {
        !self.line.contains("cpu.idle=1") || KERNELS[self.kernel] != "v5.10"
    }

    /// Runs, and is verified by what that leaves.
    fn verified(&self, at: &Path, threads: &Path) -> Agreement {
        let (line, kernel) = (self.line, KERNELS[self.kernel]);
        let experiment = Experiment::of_setting(
            vec![kernel.parse::<Generation>().expect("a kernel").into()],
            &RunSetting {
                warmup: self.warmup,
                ..RunSetting::new(
                    machines::find("laptop8").expect("a machine"),
                    self.words(threads),
                    Ns::from_ms(150),
                )
            },
            vec![3],
        );
        let folder = RunFolder::create(at).expect("a folder");
        let mut specs = experiment.specs();
        for spec in &mut specs {
            spec.trace = Some(folder.trace_path(spec.kernel.name(), spec.seed).expect("a place"));
            spec.probes = true;
        }
        let (results, _) = run_all(&specs, 1, &|_| (), &AtomicBool::new(false)).expect("a run");
        folder.write(&experiment, &results, &serde_json::Value::Null).expect("written");
        folder.finish().expect("finished");
        let run = at.join(kernel).join("seed-3");
        let options = VerifyOptions { misses: 100, ..VerifyOptions::default() };
        let own = recorded_kernel(&run, &options).expect("its kernel").generation;
        assert_eq!(own.name(), kernel, "{line}");
        verify(&run, &own, &options).unwrap_or_else(|error| panic!("{line} under {kernel}: {error}"))
    }

    /// How many misses of a kind are known, and why.
    fn known(&self, kind: DecisionKind) -> (u64, &'static str) {
        let mut gaps = KNOWN.iter().filter(|gap| gap.kind == kind && self.line.contains(gap.of));
        gaps.find(|_| self.warmup.is_some()).map_or((0, ""), |gap| (gap.misses[self.kernel], gap.why))
    }
}

/// What is otherwise in a run's agreement than it should be, a line each.
fn wrong(job: &Job, agreement: &Agreement) -> Vec<String> {
    let mut wrong = Vec::new();
    let (line, kernel) = (job.line, &agreement.kernel);
    if agreement.state_set_right > 0 {
        wrong.push(format!("{line} under {kernel}: state set right {} times", agreement.state_set_right));
    }
    for (kind, tally) in &agreement.kinds {
        let (missed, judged, (known, why)) = (tally.all.missed(), tally.all.judged, job.known(*kind));
        if missed != known {
            let first = agreement.misses.iter().find(|miss| miss.kind == *kind);
            wrong.push(format!(
                "{line} under {kernel}: {missed} of {judged} {} missed, {known} known ({why}): {first:?}",
                kind.name()
            ));
        }
        let unsaid = tally.not_judged.keys().filter(|why| why.is_empty());
        wrong.extend(unsaid.map(|_| format!("{line} under {kernel}: {} without a reason", kind.name())));
    }
    wrong
}

#[test]
fn every_workload_is_named() {
    for kind in WORKLOADS {
        let names = |line: &&str| line.split(' ').any(|word| word == kind.name);
        assert!(RUNS.iter().any(names), "{} is in no run", kind.name);
    }
}

#[test]
fn a_run_of_every_workload_agrees_with_its_own_kernel() {
    let cold = RUNS.iter().flat_map(|line| (0..KERNELS.len()).map(|kernel| (*line, kernel, Some(Ns::ZERO))));
    // One settles first, as runs do unless they are told otherwise.
    let settled = (RUNS[0], KERNELS.len() - 1, None);
    let jobs = cold.chain([settled]).map(|(line, kernel, warmup)| Job { line, kernel, warmup });
    let jobs = jobs.filter(Job::is_possible).collect::<Vec<_>>();
    let (wrong, judged) = all_verified(&jobs);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (kind, least) in LEAST {
        assert!(judged.get(&kind).copied().unwrap_or(0) >= least, "{}: {judged:?}", kind.name());
    }
}

/// Runs all on two CPUs. Returns what is wrong, and how many decisions of each kind were judged.
fn all_verified(jobs: &[Job]) -> (Vec<String>, BTreeMap<DecisionKind, u64>) {
    let folder = std::env::temp_dir().join(format!("fairlab-{}-own-kernel", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let threads = folder.join("threads.json");
    std::fs::write(&threads, THREADS).expect("written");
    let (next, found) = (AtomicUsize::new(0), Mutex::new((Vec::new(), BTreeMap::<DecisionKind, u64>::new())));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::SeqCst);
            let Some(job) = jobs.get(index) else { return };
            let at = folder.join(format!("run-{index}"));
            let agreement = job.verified(&at, &threads);
            std::fs::remove_dir_all(&at).expect("removed");
            let mut found = found.lock().expect("no thread has failed");
            found.0.extend(wrong(job, &agreement));
            for (kind, tally) in &agreement.kinds {
                *found.1.entry(*kind).or_default() += tally.all.judged;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    std::fs::remove_dir_all(&folder).expect("removed");
    found.into_inner().expect("no thread has failed")
}

/// How many decisions of a kind are judged in all runs together, so that agreement means something.
const LEAST: [(DecisionKind, u64); 9] = [
    (DecisionKind::Vruntime, 800_000),
    (DecisionKind::Placement, 150_000),
    (DecisionKind::Pick, 75_000),
    (DecisionKind::WakeupPreempt, 80_000),
    (DecisionKind::TickPreempt, 6_000),
    (DecisionKind::QueueTime, 700_000),
    (DecisionKind::Lag, 120_000),
    (DecisionKind::DelayedDequeue, 30_000),
    (DecisionKind::WakeupCpu, 95_000),
];
