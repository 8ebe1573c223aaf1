//! Runs as a whole: determinism, traces that read back to the same answers, comparisons.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::latency::{Latency, LatencyOptions};
use fairlab_event::{Cpu, DigestSink, Event, EventKind, Filter, Ns};
use fairlab_lab::{CompareOptions, Experiment, RunSetting, RunSpec, compare, machines, run, run_all};
use fairlab_sim::Machine;
use fairlab_trace::{ReadOptions, read_path};

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(String::from).collect()
}

fn experiment(kernels: &[&str], machine: &str, workload: &str, seeds: u64, duration: Ns) -> Experiment {
    Experiment::of_setting(
        kernels.iter().map(|name| name.parse().expect("a kernel")).collect(),
        &RunSetting {
            warmup: Some(Ns::ZERO),
            ..RunSetting::new(machines::find(machine).expect("a machine"), words(workload), duration)
        },
        (1..=seeds).collect(),
    )
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fairlab-{}-{name}", std::process::id()))
}

/// Two tasks that may use one CPU only wait for each other beside idle CPUs: no work is left undone there. Where they may use
/// another one, it is, until something moves one of them.
#[test]
fn pinned_tasks_beside_idle_cpus_leave_no_work_undone() {
    let file = temporary("pinned.json");
    let share = |cpus: &str| {
        let task = |name: &str| format!("\"{name}\": {{ \"cpus\": [{cpus}], \"run\": 1000 }}");
        let tasks = [task("one"), task("other")].join(", ");
        let text = format!("{{ \"tasks\": {{ {tasks} }}, \"global\": {{ \"duration\": 1 }} }}");
        std::fs::write(&file, text).expect("written");
        let workload = format!("rt-app {}", file.display());
        let experiment = experiment(&["v6.6"], "vm4", &workload, 1, Ns::from_ms(500));
        let result = run(&experiment.specs()[0], &AtomicBool::new(false)).expect("a run").expect("whole");
        assert!(result.metric("idle_share").is_some_and(|share| share > 0.4), "{cpus}: CPUs idle");
        (result.metric("unconserved_share").expect("a share"), result.metric("idle_share").expect("a share"))
    };
    let (pinned, idle) = share("0");
    // But for the instant in which the program starts them.
    assert!(pinned < 0.001 && idle > 0.7, "{pinned} {idle}");
    let (free, idle) = share("0, 1");
    assert!(free < 0.05 && idle < 0.6, "{free} {idle}");
    std::fs::remove_file(file).expect("removed");
}

/// A thread that sleeps on for ever so long keeps a run from ending: what it did a second is no number then.
#[test]
fn a_run_that_does_not_end_in_its_time_is_an_error() {
    let file = temporary("endless.json");
    let text = r#"{ "tasks": { "t": { "run": 1000, "sleep": 500000000 } }, "global": { "duration": 1 } }"#;
    std::fs::write(&file, text).expect("written");
    let rtapp = format!("rt-app {}", file.display());
    let ended = |workload: &str, duration: Ns| {
        let experiment = experiment(&["v6.6"], "vm4", workload, 1, duration);
        run(&experiment.specs()[0], &AtomicBool::new(false)).map(|result| result.is_some())
    };
    let beyond = |seconds: u64, wanted: &str| {
        let error = ended(&rtapp, Ns::from_secs(seconds)).expect_err("it has not ended").to_string();
        let told = format!(
            "the workload has not ended on v6.6 with seed 1: it runs for 1 s, and still ran {wanted} s later; "
        );
        assert!(error.starts_with(&told) && !error.contains('\n'), "{error}");
    };
    beyond(61, "60");
    beyond(5, "4");
    // A part of it is one.
    for duration in [Ns::from_ms(500), Ns::from_secs(1)] {
        assert!(ended(&rtapp, duration).expect("a part"), "{duration}");
    }
    // What never ends by itself, and what ends in its time.
    for (workload, duration) in [("hackbench -g 1 -l 1000000000", 100), ("periodic -n 2 -r 1", 3000)] {
        assert!(ended(workload, Ns::from_ms(duration)).expect(workload), "{workload}");
    }
    std::fs::remove_file(file).expect("removed");
}

#[test]
fn digests_do_not_depend_on_threads_or_on_the_time_of_day() {
    let experiment =
        experiment(&["v6.5", "v6.6"], "laptop8", "schbench -m 2 -t 4 -c 5000 -s 2000", 3, Ns::from_secs(2));
    let digests = |jobs| {
        let (results, stopped) =
            run_all(&experiment.specs(), jobs, &|_| {}, &AtomicBool::new(false)).expect("runs");
        assert!(!stopped.0);
        results.into_iter().map(|run| (run.kernel, run.seed, run.digest, run.metrics)).collect::<Vec<_>>()
    };
    let (one, four) = (digests(1), digests(4));
    assert_eq!(one, four);
    assert_eq!(one, digests(4));
    let mut distinct = one.iter().map(|(_, _, digest, _)| digest.clone()).collect::<Vec<_>>();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), one.len(), "every kernel and seed gives a run of its own");
}

#[test]
fn runs_on_emulated_machines_begin_where_and_when_they_are_told() {
    let spinners = "spinners -n -10,-5,0,0,5,10,19 --run-us 3000 -s 1000 -r 1";
    let begun = |seed: u64, first_cpu: Cpu| {
        let experiment = experiment(&["debian-6.1"], "emulated:2", spinners, 1, Ns::from_secs(3));
        let spec = RunSpec { seed, first_cpu: Some(first_cpu), ..experiment.specs().remove(0) };
        let result = run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped");
        assert!((1_100_000_000..1_200_000_000).contains(&result.simulated_ns), "{}", result.simulated_ns);
        (result.metric("nice-10_share").expect("measured"), result.digest)
    };
    let (first, second) = (begun(1, Cpu(0)), begun(1, Cpu(1)));
    assert!(
        second.0 > first.0 + 0.1,
        "nice -10 is sent to the other CPU, the faster one is 0: {first:?}, {second:?}"
    );
    assert_ne!(begun(2, Cpu(0)).1, first.1, "a seed is when it begins");
    assert_eq!(begun(1, Cpu(7)), first, "there is no such CPU");
}

/// A digest that was computed once holds on every machine and in every build.
#[test]
fn a_digest_is_the_same_everywhere() {
    let digest = |machine: Machine| {
        let words = words("schbench -m 1 -t 6 -c 1000 -s 500");
        let spec = RunSpec::new("v6.6".parse().expect("a kernel"), machine, words, 1, Ns::from_ms(200));
        let spec = RunSpec { warmup: Some(Ns::ZERO), ..spec };
        run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped").digest
    };
    let machine = machines::find("laptop8").expect("a machine");
    assert_eq!(digest(machine.clone()), "92c42fa4beaa0eb89de41f3aa9cdadee");
    assert_eq!(digest(machine.exact()), "d7f7370a780d61a4fe6506a40f018b6d");
}

/// Columns of `cpuN` lines: yields, 0, schedules, switches to idle, wakeups, local ones, time run, time waited, switches to
/// tasks.
#[test]
fn schedstat_counts_what_happened() {
    for kernel in ["v5.4", "v6.6", "v7.2"] {
        let experiment =
            experiment(&[kernel], "laptop8", "schbench -m 2 -t 6 -c 2000 -s 700", 1, Ns::from_secs(1));
        let (results, _) = run_all(&experiment.specs(), 1, &|_| {}, &AtomicBool::new(false)).expect("runs");
        let run = &results[0];
        let lines = run.schedstat.lines().filter(|line| line.starts_with("cpu"));
        let column = |number: usize| {
            let cell = |line: &str| line.split(' ').nth(number).and_then(|cell| cell.parse::<u64>().ok());
            lines.clone().map(|line| cell(line).expect("a number")).sum::<u64>()
        };
        assert_eq!(lines.clone().count(), 8);
        assert_eq!(column(4) + column(9), run.switches, "{kernel}: each switch is to a task or to idle");
        assert!(column(3) >= run.switches && column(6) <= column(5), "{kernel}");
        assert!(column(7) > 0 && column(7) <= 8 * run.simulated_ns, "{kernel}");
        let remote = column(5) - column(6);
        let domains = run.schedstat.lines().filter(|line| line.starts_with("domain"));
        let from_the_end = |line: &str| line.rsplit(' ').nth(2).and_then(|cell| cell.parse::<u64>().ok());
        let by_domain = domains.map(|line| from_the_end(line).expect("a number")).sum::<u64>();
        assert_eq!(by_domain, remote, "{kernel}: a remote wakeup is counted in one domain");
    }
}

#[test]
fn a_trace_written_and_read_back_gives_the_same_latency_table() {
    for (kernel, suffix) in [("v6.5", "txt"), ("v6.6", "txt.zst")] {
        let experiment =
            experiment(&[kernel], "laptop8", "schbench -m 2 -t 6 -c 3000 -s 1000", 1, Ns::from_secs(1));
        let path = temporary(&format!("trace.{suffix}"));
        let spec = RunSpec { trace: Some(path.clone()), ..experiment.specs().remove(0) };
        let traced = run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped");
        let untraced = RunSpec { trace: None, ..spec };
        let again = run(&untraced, &AtomicBool::new(false)).expect("a run").expect("not stopped");
        assert_eq!(traced.digest, again.digest, "writing a trace changes nothing");

        let mut table = Latency::new(LatencyOptions { by_pid: true, ..LatencyOptions::default() });
        // A run's digest is of events that Fairlab has types for.
        let keep = |event: &Event<'_>| !matches!(event.kind, EventKind::Other { .. });
        let mut digest = Filter { sink: DigestSink::default(), keep };
        let stats =
            read_path(&path, &ReadOptions::default(), &mut (&mut table, &mut digest)).expect("a trace");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(stats.worst(), None, "{stats:?}");
        assert_eq!(digest.sink.digest().to_string(), traced.digest, "what is written is read back unchanged");
        let table = table.finish().expect("a table");
        let longest = table.rows.iter().map(|row| row.max_delay.0).max().expect("rows");
        assert!(longest as f64 >= traced.metric("wakeup_latency_ns_max").expect("measured"));
        assert!(table.rows.iter().filter(|row| row.comm.to_str() == "schbench").count() >= 14);
    }
}

#[test]
fn a_trace_that_was_stopped_leaves_nothing() {
    let experiment = experiment(&["v6.6"], "laptop8", "schbench", 1, Ns::from_secs(5));
    let path = temporary("stopped.txt");
    let spec = RunSpec { trace: Some(path.clone()), ..experiment.specs().remove(0) };
    assert!(run(&spec, &AtomicBool::new(true)).expect("no error").is_none());
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let left = std::fs::read_dir(std::env::temp_dir()).expect("a folder").flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().contains(&name)).count();
    assert_eq!(left, 0);
}

#[test]
fn a_kernel_is_equivalent_to_itself_and_differs_from_one_that_is_crippled() {
    let workload = "schbench -m 2 -t 12 -c 20000 -s 1000";
    let slow = "v6.6+NO_WAKEUP_PREEMPTION,base_slice_ns=50000000";
    let experiment = experiment(&["v6.6", slow], "laptop8", workload, 5, Ns::from_secs(2));
    let (results, _) = run_all(&experiment.specs(), 2, &|_| {}, &AtomicBool::new(false)).expect("runs");
    let verdict = |one: &str, other: &str| {
        let comparison = compare(&[one.to_string(), other.to_string()], &results, &CompareOptions::default())
            .expect("a comparison");
        let row = comparison.rows.into_iter().find(|row| row.name == "wakeup_latency_ns_p99").expect("a row");
        row.verdict.name()
    };
    assert_eq!(verdict("v6.6", "v6.6"), "equivalent");
    assert_eq!(verdict("v6.6", slow), "worse");
    assert_eq!(verdict(slow, "v6.6"), "better");
}
