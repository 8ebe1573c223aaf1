//! A scheduler beside another, call by call: two of a kind agree to the end, and a rule that only one of them has is found where it
//! first decides.

use fairlab_event::{Event, Ns, sink_fn};
use fairlab_kernel::Generation;
use fairlab_sim::workload::catalogue::{WorkloadFiles, build};
use fairlab_sim::{Engine, Machine};
use fairlab_verify::oracle::{Oracle, OracleCheck, OracleFindings, follower, without_costs};

/// Workloads of this test read no files.
struct NoFiles;

impl WorkloadFiles for NoFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        Err(format!("{path}: this test has no files"))
    }
}

fn generation(name: &str) -> Generation {
    name.parse().expect("a kernel")
}

/// What is found when `follows` follows `leads` through a workload, for so many milliseconds.
fn followed(leads: &str, follows: &str, workload: &str, preset: &str, ms: u64, seed: u64) -> OracleFindings {
    let machine = Machine::preset(preset).expect("a machine");
    let leader = without_costs(generation(leads), &machine);
    let model = follower(generation(follows), &machine, &leader);
    let oracle = Oracle::new(leader, model, machine.topology.nr_cpus());
    let mut engine = Engine::with_core(oracle, machine, seed);
    let command = workload.split(' ').map(|word| word.replace('_', " ")).collect::<Vec<_>>();
    engine.start(build(&command, &NoFiles).expect("a workload"));
    engine.run_until(Ns::from_ms(ms), &mut sink_fn(|_: &Event<'_>| {}));
    engine.core().findings().clone()
}

const WORKLOADS: [&str; 7] = [
    "hackbench -g 2 -l 40",
    "schbench -m 2 -t 4",
    "spinners -n 0,0,5,-5,0,0,0,0,10 -r 1",
    "cgroup cpu.weight=50 / cpu.max=40000_100000 hackbench -g 1 -l 50",
    "pipe",
    // In v7.3 a group's weight counts by its cpuset's CPUs.
    "cgroup cpuset.cpus=0-1 jobs spin -n 8",
    "random -t 12 -r 150 --execs",
];

#[test]
fn two_of_a_kind_agree_to_the_end() {
    for kernel in ["v5.10", "v6.1", "v6.6", "v6.12", "v7.2", "v7.3"] {
        for workload in WORKLOADS {
            // Where messages are sent, much happens.
            let ms = if workload.contains("hackbench") || workload == "pipe" { 100 } else { 200 };
            let findings = followed(kernel, kernel, workload, "laptop8", ms, 1);
            assert_eq!(findings.first, None, "{kernel}, {workload}");
            let judged = |check: OracleCheck| findings.checks.get(&check).map_or(0, |judged| judged.all);
            assert!(
                judged(OracleCheck::Pick) > 50 && judged(OracleCheck::Entity) > 1000,
                "{kernel}, {workload}: {findings:?}"
            );
        }
    }
}

#[test]
fn a_rule_that_one_lacks_is_found_where_it_decides() {
    let found = |follows: &str, workload: &str| {
        followed("v6.12", follows, workload, "laptop8", 300, 1).first.expect("a difference")
    };
    let delayed = found("v6.12+NO_DELAY_DEQUEUE", "hackbench -g 2 -l 40");
    assert!(delayed.state.len() > 20, "both states are told: {delayed:?}");
    assert_eq!(delayed.call, "schedule", "{delayed:?}");
    let older = found("v6.5", "schbench -m 2 -t 4");
    assert!(older.time_ns < 300_000_000, "{older:?}");
}

#[test]
fn after_the_first_difference_the_leader_runs_on_alone() {
    let alone = |follows: &str| {
        let findings = followed("v6.12", follows, "hackbench -g 2 -l 40", "laptop8", 100, 1);
        (findings.total(), findings.first)
    };
    let ((all, differs), (few, differs_soon)) = (alone("v6.12"), alone("v6.5"));
    assert_eq!(differs, None);
    assert!(differs_soon.is_some() && few < all, "{few} of {all}");
}
