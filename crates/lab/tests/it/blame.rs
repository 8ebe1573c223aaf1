//! Waits of modelled runs in sums: they are those of `latency`, and a trace with decisions says by which rules tasks wait.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_analysis::blame::report::BlameReport;
use fairlab_analysis::blame::{Blame, BlameOptions};
use fairlab_analysis::causes::{CauseDecision, WaitBehind};
use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable};
use fairlab_analysis::selector::TraceSelector;
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_event::Ns;
use fairlab_lab::{RunSpec, machines, run};
use fairlab_trace::{ReadOptions, read_path};

fn words(decision: CauseDecision, reason: &str) -> String {
    format!("{decision:?} {reason}")
}

/// The trace of a run.
fn traced(kernel: &str, workload: &str, name: &str, decisions: bool) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("blame-{name}"));
    fs::create_dir_all(&place).expect("a folder");
    let trace = place.join("trace.txt");
    let words = workload.split(' ').map(ToString::to_string).collect();
    let (kernel, machine) = (kernel.parse().expect("a kernel"), machines::find("vm4").expect("a machine"));
    let spec = RunSpec {
        warmup: Some(Ns::ZERO),
        trace: Some(trace.clone()),
        decisions,
        ..RunSpec::new(kernel, machine, words, 1, Ns::from_ms(300))
    };
    run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped");
    trace
}

fn answers(trace: &Path, whose: &[&str]) -> (BlameReport, LatencyTable) {
    let whose = whose.iter().map(|name| TaskSelector::parse(name)).collect();
    let chosen = TraceSelector { whose, ..TraceSelector::default() };
    let mut sinks = (
        Blame::new(BlameOptions { chosen: chosen.clone(), by_thread: false, rule_words: words }),
        Latency::new(LatencyOptions::default()).of(chosen),
    );
    let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
    read_path(trace, &options, &mut sinks).expect("a trace");
    (sinks.0.finish().expect("switches"), sinks.1.finish().expect("switches"))
}

fn agree(trace: &Path, whose: &[&str]) -> BlameReport {
    let (report, table) = answers(trace, whose);
    let waited = table.rows.iter().map(|row| row.total_delay.0).sum::<u64>();
    assert_eq!(report.latency_wait_ns, waited, "{}", trace.display());
    assert_eq!(report.culprits.iter().map(|row| row.time_ns).sum::<u64>(), report.wait_ns);
    assert_eq!(report.rules.iter().map(|row| row.time_ns).sum::<u64>(), report.wait_ns);
    assert_eq!(report.ends.iter().map(|row| row.time_ns).sum::<u64>(), report.wait_ns);
    report
}

/// The time of rules that are told.
fn told(report: &BlameReport) -> u64 {
    let is_told = |decision: Option<CauseDecision>| {
        decision.is_some_and(|one| !matches!(one, CauseDecision::Unknown | CauseDecision::Pending))
    };
    report.rules.iter().filter(|row| is_told(row.decision)).map(|row| row.time_ns).sum()
}

#[test]
fn the_waits_of_a_modelled_run_come_to_those_of_latency() {
    for kernel in ["v5.4", "v6.6", "v6.12"] {
        let workload = "schbench -m 2 -t 8 -c 3000 -s 1000";
        let [with, without] = [true, false]
            .map(|decisions| traced(kernel, workload, &format!("{kernel}-{decisions}"), decisions));
        let (report, plain) = (agree(&with, &[]), agree(&without, &[]));
        assert!(report.waits > 100, "{kernel}");
        // The rules that kept the CPU are known for nearly all of the time behind tasks, and only where they are told.
        let behind_tasks = |report: &BlameReport| {
            report.rules.iter().filter(|row| row.decision.is_some()).map(|row| row.time_ns).sum::<u64>()
        };
        assert!(told(&report) * 10 > behind_tasks(&report) * 9, "{kernel}: {:#?}", report.rules);
        assert_eq!(told(&plain), 0, "{kernel}");
        // Decisions tell of the waits and change none.
        assert_eq!((report.waits, report.wait_ns), (plain.waits, plain.wait_ns), "{kernel}");
        assert_eq!((&report.culprits, &report.ends), (&plain.culprits, &plain.ends), "{kernel}");
        let workers = agree(&with, &["schbench"]);
        assert!(workers.wait_ns <= report.wait_ns && workers.waits > 100, "{kernel}");
    }
}

#[test]
fn a_quota_is_a_culprit_only_where_there_is_one() {
    let throttled = |workload: &str, name: &str| {
        let report = agree(&traced("v6.6", workload, name, false), &["periodic"]);
        let share = report.culprits.iter().filter(|row| row.behind == WaitBehind::Throttled);
        share.map(|row| row.share).sum::<f64>()
    };
    let with = throttled("cgroup cpu.max=20000/100000 periodic -n 6 -c 3000 -p 10000 -r 4", "quota");
    assert!(with > 0.3, "{with}");
    assert_eq!(throttled("cgroup cpu.weight=50 periodic -n 6 -c 3000 -p 10000 -r 4", "no-quota"), 0.0);
}

/// Probes show some of what the kernel decided, and nothing is told where there are no probes.
#[test]
fn probes_show_the_rules_that_decisions_tell() {
    for kernel in ["v6.1", "v6.6", "v6.12"] {
        let place = |name: &str| {
            let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("blame-probed-{kernel}-{name}"));
            fs::create_dir_all(&place).expect("a folder");
            place.join("trace.txt")
        };
        let trace = place("both");
        let words = "schbench -m 2 -t 8 -c 3000 -s 1000".split(' ').map(ToString::to_string).collect();
        let machine = machines::find("vm4").expect("a machine");
        let spec = RunSpec {
            warmup: Some(Ns::ZERO),
            trace: Some(trace.clone()),
            decisions: true,
            probes: true,
            ..RunSpec::new(kernel.parse().expect("a kernel"), machine, words, 1, Ns::from_ms(300))
        };
        run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped");
        let text = fs::read_to_string(&trace).expect("a trace");
        let without = |name: &str, is_left_out: &dyn Fn(&str) -> bool| {
            let path = place(name);
            let kept = text.lines().filter(|line| !is_left_out(line)).collect::<Vec<_>>().join("\n");
            fs::write(&path, kept + "\n").expect("written");
            agree(&path, &[])
        };
        let is_decision = |line: &str| line.contains(": decided_") || line.contains(": done_");
        let is_probe = |line: &str| line.contains("+0x0/0x0");
        let told_by_kernel = without("told", &is_probe);
        let probed = without("probed", &is_decision);
        let neither = without("neither", &|line| is_decision(line) || is_probe(line));
        assert_eq!(told(&neither), 0, "{kernel}");
        assert_eq!((neither.waits, neither.wait_ns), (probed.waits, probed.wait_ns), "{kernel}");
        assert_eq!(&neither.culprits, &probed.culprits, "{kernel}");
        // They show fewer decisions, and no pick.
        assert!(told(&probed) > 0 && told(&probed) < told(&told_by_kernel), "{kernel}");
    }
}
