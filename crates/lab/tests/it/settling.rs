//! Workloads settle before anything is measured: nothing from before counts, and whatever ends by a count still does all of it.

use std::sync::atomic::AtomicBool;

use fairlab_analysis::statistics::mean;
use fairlab_event::Ns;
use fairlab_kernel::Topology;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_lab::warm_up::{notices, settling};
use fairlab_lab::{LabError, RunResult, RunSpec, machines, run};
use fairlab_sim::{Engine, Machine};

fn spec(kernel: &str, machine: &str, line: &str, duration: Ns) -> RunSpec {
    let machine = machines::find(machine).expect("a machine");
    let words = line.split(' ').map(str::to_string).collect();
    RunSpec::new(kernel.parse().expect("a kernel"), machine, words, 1, duration)
}

fn try_run(spec: &RunSpec) -> Result<RunResult, LabError> {
    run(spec, &AtomicBool::new(false)).map(|result| result.expect("not stopped"))
}

fn result(spec: &RunSpec) -> RunResult {
    try_run(spec).unwrap_or_else(|error| panic!("{:?}: {error}", spec.workload))
}

/// From the start to when it had settled.
fn settled_after(run: &RunResult) -> Ns {
    Ns(run.settled_ns.expect("it settled")).since(Ns(run.begin_ns.expect("it began")))
}

#[test]
fn a_machine_takes_as_long_as_its_load_averages_or_its_longest_interval() {
    let takes = |kernel: &str, machine: &str| {
        let machine = machines::find(machine).expect("a machine");
        settling(Engine::new(kernel.parse().expect("a kernel"), machine, 1).kernel())
    };
    assert_eq!(takes("v6.6", "laptop8"), Ns(345 * 1024 * 1024), "345 periods of 1024 us");
    // Two ms for each of 192 CPUs; 16 times 48 ms until a cache's busy CPUs have balanced, and two of the longest ticks.
    assert_eq!(takes("v5.19", "xeon-4s192"), Ns::from_ms(384));
    assert_eq!(takes("v6.6+NO_SIS_UTIL", "xeon-4s192"), Ns::from_ms(384));
    assert_eq!(takes("v6.6", "xeon-4s192"), Ns::from_ms(768 + 20));
}

/// The bound of the search is set when busy CPUs balance: nothing is measured before that, so a kernel with the bound does not seem
/// slower than it is.
#[test]
fn what_bounds_the_search_is_known_before_anything_is_measured() {
    let throughput = |warmup| {
        let spec = spec("v6.0", "layout:1x1x24x1", "tbench -c 48 --run-ms 40", Ns::from_secs(5));
        result(&RunSpec { warmup, ..spec }).metric("throughput").expect("it counts")
    };
    let [by_default, early, late] = [None, Some(Ns::from_ms(353)), Some(Ns::from_ms(450))].map(throughput);
    assert!((0.97..1.03).contains(&(by_default / late)), "{by_default} beside {late}");
    assert!(early / late < 0.97, "{early} beside {late}: it shows what it is for");
}

/// Each line, and how many of its own unit it does when it ends by a count.
const LINES: [(&str, Option<u64>); 12] = [
    ("schbench -m 1 -t 2 -c 500 -s 500 -r 0", None),
    ("hackbench -g 2 -f 2 -l 500", Some(2 * 2 * 2 * 500)),
    ("hackbench -g 1 -f 3 -l 700 -p", Some(3 * 3 * 700)),
    ("pipe -l 3000", Some(3000)),
    ("vhost --cpus 4 --run-ms 100", None),
    ("tbench -c 2 --run-ms 100", None),
    ("uperf --cpus 4 --guest-cpus 2 --queues 1 --connections 4 --run-ms 100", None),
    ("jobs sleep -n 4 -r 500 -s 500", None),
    ("sessions 2:500:500 1:1000", None),
    ("periodic -n 3 -c 500 -p 2000 -r 1", None),
    ("cgroup cpu.weight=50 pipe -l 3000", Some(3000)),
    ("daemons -g 2 -c 2 -p 10 pipe -l 3000", Some(3000)),
];

#[test]
fn every_workload_settles_and_then_does_all_of_its_work() {
    for (line, count) in LINES {
        for warmup in [Ns::ZERO, Ns::from_ms(30)] {
            let spec = RunSpec { warmup: Some(warmup), ..spec("v6.12", "laptop8", line, Ns::from_ms(200)) };
            let run = result(&spec);
            let after = settled_after(&run);
            assert!(after >= warmup && (warmup > Ns::ZERO || after == Ns::ZERO), "{line}: {after:?}");
            let seconds = run.simulated_ns as f64 / 1e9;
            let done = run.metric("throughput").expect("it counts") * seconds;
            assert!(done > 0.0, "{line}");
            if let Some(count) = count {
                // Messages that were under way when it had settled are received, too.
                let most = count as f64 * 1.01 + 6.0 * 700.0;
                assert!(done >= count as f64 - 0.5 && done < most, "{line} after {after:?}: {done}");
                assert!(warmup > Ns::ZERO || done < count as f64 + 0.5, "{line}: {done}");
            }
        }
    }
}

/// What ends by a time runs on for all of it; what ends by itself, without anybody knowing when, counts from its start.
#[test]
fn runtimes_begin_when_it_has_settled() {
    let warmup = Some(Ns::from_ms(300));
    for line in ["spinners -n 0,0 -r 1", "periodic -r 1", "tbench -c 2 --run-ms 1000", "vhost --run-ms 1000"]
    {
        let run = result(&RunSpec { warmup, ..spec("v6.6", "vm4", line, Ns::from_secs(9)) });
        let measured = Ns(run.simulated_ns);
        // A period of `periodic`, 10 ms, is finished.
        assert!(measured >= Ns::from_ms(999) && measured < Ns::from_ms(1015), "{line}: {measured:?}");
    }
    let file = "rt-app ../../testdata/rt-app/pipeline.json";
    let run = result(&RunSpec { warmup, ..spec("v6.6", "vm4", file, Ns::from_secs(9)) });
    assert!(run.metric("throughput").is_some_and(|rate| rate > 0.0));
}

/// The events are those of a run that is measured from its start and lasts as long in all.
#[test]
fn what_is_measured_changes_nothing_of_what_happens() {
    let line = "jobs sleep -n 6 -r 500 -s 700";
    let whole = |warmup, duration| {
        let spec = spec("v6.12", "laptop8", line, duration);
        result(&RunSpec { warmup: Some(warmup), ..spec })
    };
    let settled = whole(Ns::from_ms(50), Ns::from_ms(100));
    let from_start = whole(Ns::ZERO, settled_after(&settled) + Ns::from_ms(100));
    assert_eq!(settled.digest, from_start.digest);
    assert_eq!((settled.simulated_ns, settled.counts.observed_ns), (100_000_000, 100_000_000));
    assert!(settled.counts.switches < from_start.counts.switches);
    assert!(settled.switches < from_start.switches);
}

/// Its duration begins when it has settled.
#[test]
fn an_rt_app_file_with_a_duration_runs_on() {
    let file = std::env::temp_dir().join(format!("fairlab-settling-{}.json", std::process::id()));
    let text = r#"{ "tasks": { "ends": { "loop": 1, "run": 1000 }, "endless": { "loop": -1, "run": 1000, "sleep": 1000 } },
                   "global": { "duration": 1 } }"#;
    std::fs::write(&file, text).expect("written");
    let line = format!("rt-app {}", file.display());
    let told = |duration, warmup| {
        let spec = spec("v6.6", "vm4", &line, duration);
        try_run(&RunSpec { warmup: Some(warmup), ..spec })
    };
    let run = told(Ns::from_secs(9), Ns::from_ms(300)).expect("it runs on");
    assert!((1_000_000_000..1_010_000_000).contains(&run.simulated_ns), "{}", run.simulated_ns);
    std::fs::remove_file(&file).expect("removed");
}

/// A machine of 8 CPUs in two sockets.
fn of_8_cpus() -> Machine {
    let topology = Topology::regular(2, 1, 2, 2, SmtNumbering::Spread).expect("a machine");
    Machine { topology, idle_states: Vec::new(), ..machines::find("lkp-bdw-ep3").expect("a machine") }
}

/// A run of 0.3 s says what one of 1.2 s does.
#[test]
fn a_short_run_agrees_with_a_long_one() {
    let rate = |ms: u64, seed: u64| {
        let line = format!("tbench -c 8 --run-ms {ms}");
        let spec = spec("v6.6", "vm4", &line, Ns::from_ms(ms + 1000));
        let run = result(&RunSpec { seed, machine: of_8_cpus(), ..spec });
        run.metric("megabytes_per_s").expect("it counts")
    };
    let of_seeds = |ms: u64| mean(&[rate(ms, 1), rate(ms, 2)]);
    let (short, long) = (of_seeds(300), of_seeds(1_200));
    assert!((short / long - 1.0).abs() < 0.02, "{short} and {long} MB/s");
}

/// Of many kernels whose runs do as much in their first fifth as later, next to none is said to differ; of those that begin
/// with a tenth more, nearly all are.
#[test]
fn what_differs_is_said_and_nothing_else() {
    let line = "jobs sleep -n 4 -r 500 -s 500";
    let one = result(&spec("v6.6", "vm4", line, Ns::from_ms(100)));
    let mut stream = fairlab_sim::rng::RandomStream::new(5, "noise");
    let mut alarms = |mean: f64, spread: f64| {
        let mut said = 0;
        for _ in 0..2_000 {
            let mut noise = || {
                let sum = (0..12).map(|_| stream.below(1_000_000) as f64 / 1e6).sum::<f64>();
                mean + (sum - 6.0) * spread
            };
            let runs = (0..10).map(|_| RunResult { early_excess: Some(noise()), ..one.clone() });
            said += notices(&runs.collect::<Vec<_>>()).len();
        }
        said
    };
    // Two in two thousand at most by the level, and a difference below one per cent is of no interest.
    assert!(alarms(0.0, 0.05) <= 4);
    assert!(alarms(0.0, 0.005) == 0);
    assert!(alarms(0.1, 0.02) >= 1_990);
    let few = (0..4).map(|_| RunResult { early_excess: Some(0.5), ..one.clone() }).collect::<Vec<_>>();
    assert!(notices(&few).is_empty(), "of few runs, and of equal ones, nothing is concluded");
}
