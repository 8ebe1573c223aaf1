//! Every machine and every workload: seeds make a difference by default, and none where nothing is left to chance.

use std::sync::atomic::AtomicBool;

use fairlab_event::Ns;
use fairlab_lab::{RunSpec, machines, run};
use fairlab_sim::Machine;
use fairlab_sim::machine::PRESETS;
use fairlab_sim::workload::catalogue::WORKLOADS;

/// A small size of every workload, and whether it draws something itself.
const SIZES: [(&str, &str, bool); 19] = [
    ("schbench", "-m 1 -t 2 -c 500 -s 500 -r 1", true),
    ("hackbench", "-g 1 -f 2 -l 20", false),
    ("pipe", "-l 100", false),
    ("vhost", "--cpus 4", false),
    ("tbench", "-c 2", true),
    ("uperf", "--cpus 4 --guest-cpus 2 --queues 1 --connections 4", true),
    ("jobs", "sleep -n 4 -r 500 -s 500", true),
    ("sessions", "2:500:500 1:1000", true),
    ("rt-app", "../../testdata/rt-app/pipeline.json", false),
    ("replay", "../../testdata/recordings/6.1-idle-2", true),
    ("periodic", "-n 3 -c 500 -p 2000 -r 1", false),
    ("spinners", "-n 0,0,5 --run-us 500 -s 500 -r 1", false),
    ("random", "-t 6 -r 200 --nice --forks", true),
    ("cgroup", "cpu.weight=50 cpu.max=2000,4000 pipe -l 100", false),
    ("daemons", "-g 2 -c 2 -p 10 pipe -l 100", true),
    ("schbench2", "-m 1 -t 2 -r 1", true),
    ("stream", "-n 2 -s 100000", false),
    ("tasks", "../../examples/workloads/web-server.toml", true),
    ("mix", "../../examples/workloads/hackbench-and-cyclictest.toml", false),
];

fn words(name: &str, arguments: &str) -> Vec<String> {
    let arguments = arguments.split(' ').map(|word| match word {
        // A value with a blank.
        "cpu.max=2000,4000" => "cpu.max=2000 4000".to_string(),
        word => word.to_string(),
    });
    std::iter::once(name.to_string()).chain(arguments).collect()
}

fn digest(machine: &Machine, words: &[String], seed: u64) -> String {
    let kernel = "v6.12".parse().expect("a kernel");
    let spec = RunSpec::new(kernel, machine.clone(), words.to_vec(), seed, Ns::from_ms(10));
    let spec = RunSpec { warmup: Some(Ns::ZERO), ..spec };
    let result = run(&spec, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    result.expect("not stopped").digest
}

fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name).chain(["host", "emulated:1x2x2"])
}

#[test]
fn every_workload_has_a_size_here() {
    let sizes = SIZES.map(|(name, ..)| name);
    let missing = WORKLOADS.iter().filter(|kind| !sizes.contains(&kind.name)).map(|kind| kind.name);
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn seeds_differ_on_every_machine_under_every_workload() {
    for name in names() {
        let machine = machines::find(name).expect(name);
        for (workload, arguments, _) in SIZES {
            // The others of the table name more CPUs than a small host may have.
            if machine.topology.nr_cpus() < 4 && ["vhost", "uperf"].contains(&workload) {
                continue;
            }
            let words = words(workload, arguments);
            let one = digest(&machine, &words, 1);
            assert_ne!(one, digest(&machine, &words, 2), "{name}: {workload}");
            assert_eq!(one, digest(&machine, &words, 1), "{name}: {workload}");
        }
    }
}

#[test]
fn nothing_differs_where_nothing_is_left_to_chance() {
    for name in names() {
        let machine = machines::find(name).expect(name).exact();
        assert!(machine.chance.is_none());
        for (workload, arguments, draws) in SIZES {
            if machine.topology.nr_cpus() < 4 && ["vhost", "uperf"].contains(&workload) {
                continue;
            }
            let words = words(workload, arguments);
            let digests = [1, 2].map(|seed| digest(&machine, &words, seed));
            let is_one = digests.iter().all(|digest| *digest == digests[0]);
            assert!(is_one || draws, "{name}: {workload} draws nothing, and its runs differ: {digests:?}");
        }
    }
}

/// Each source alone makes a difference, and only where it is switched on.
#[test]
fn each_source_alone_makes_runs_differ() {
    let exact = machines::find("laptop8").expect("a machine").exact();
    let words = words("periodic", "-n 3 -c 500 -p 2000 -r 1");
    for source in fairlab_sim::machine::Chance::USUAL.table() {
        let needs = match source.name {
            // Lengths of what has to come first.
            "device_irq_ns" => Some(("device_irqs_per_s", 1000)),
            "device_irqs_per_s" => Some(("device_irq_ns", 5_000)),
            "kworker_ns" => Some(("kworker_period_ns", 2_000_000)),
            "steal_ns" => Some(("steal_per_s", 1000)),
            "steal_per_s" => Some(("steal_ns", 100_000)),
            _ => None,
        };
        let mut machine = exact.clone();
        for (name, amount) in needs.into_iter().chain([(source.name, source.default)]) {
            machine.chance.set(name, amount).expect("an amount");
        }
        if source.name == "device_irqs_per_s" {
            machine.chance.device_irqs_per_s = 1000;
        }
        if source.name == "kworker_period_ns" {
            machine.chance.kworker_period_ns = 2_000_000;
        }
        if source.name == "steal_per_s" {
            machine.chance.steal_per_s = 1000;
        }
        if source.name == "steal_ns" {
            machine.chance.steal_ns = 100_000;
        }
        let digests = [1, 2, 3, 4, 5].map(|seed| digest(&machine, &words, seed));
        assert!(digests.iter().any(|digest| *digest != digests[0]), "{}", source.name);
    }
}
