//! Groups with a quota: a run's trace and its metrics tell when they were throttled, and recordings of real kernels do.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_analysis::explain::{Explain, ExplainOptions, Explanation};
use fairlab_analysis::summary::{Summary, SummaryOptions, SummaryReport};
use fairlab_event::{Cpu, Event, EventKind, Ns, sink_fn};
use fairlab_lab::{RunResult, RunSpec, machines, run};
use fairlab_trace::{ReadOptions, read_path};

fn result(kernel: &str, workload: &str, trace: &Path) -> RunResult {
    let spec = RunSpec {
        kernel: kernel.parse().expect("a kernel"),
        machine: machines::find("vm4").expect("a machine"),
        workload: workload.split(' ').map(ToString::to_string).collect(),
        seed: 1,
        first_cpu: Some(Cpu(0)),
        warmup: Some(Ns::ZERO),
        duration: Ns::from_secs(1),
        trace: Some(trace.to_path_buf()),
        probes: false,
    };
    run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped")
}

fn answers(trace: &Path) -> (SummaryReport, Explanation) {
    let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
    let mut sinks =
        (Summary::new(SummaryOptions::default()), Explain::new(ExplainOptions { task: None, worst: 200 }));
    read_path(trace, &options, &mut sinks).expect("a trace");
    (sinks.0.finish().expect("switches"), sinks.1.finish().expect("switches"))
}

fn place(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&place).expect("a folder");
    place.join("trace.txt")
}

/// Six tasks may use a fifth of a CPU: they wait for their quota, and CPUs that idle meanwhile are not to blame.
#[test]
fn a_run_tells_when_its_group_was_throttled() {
    for kernel in ["v5.4", "v6.6", "v6.12", "v6.18"] {
        let trace = place(&format!("throttled-{kernel}"));
        let run = result(kernel, "cgroup cpu.max=20000/100000 periodic -n 6 -c 3000 -p 10000 -r 4", &trace);
        let (summary, explanation) = answers(&trace);
        assert_eq!((summary.switch_gaps, summary.all.crossed), (0, 0), "{kernel}");
        let sums = summary.throttling.unwrap_or_else(|| panic!("{kernel}: no throttling"));
        assert!(sums.count >= 8 && sums.time > Ns::from_ms(300), "{kernel}: {sums:?}");
        assert!(run.metric("nr_throttled_per_s").is_some_and(|rate| rate >= 8.0), "{kernel}");
        assert!(run.metric("throttled_wait_ns_max").is_some_and(|max| max > 20e6), "{kernel}");
        let worst = &explanation.stories[0];
        let held: u64 = worst.throttled.iter().map(|span| span.to.since(span.from).0).sum();
        assert!(held > worst.length().0 / 2 && held <= worst.length().0, "{kernel}:\n{worst}");
        assert!(worst.throttled.iter().all(|span| span.group.starts_with('/')), "{kernel}:\n{worst}");
        let told = worst.to_string();
        assert!(told.contains("Throttled: its group /"), "{kernel}:\n{told}");
        assert!(!told.contains("perhaps"), "{kernel}:\n{told}");
        // Most CPUs idle most of the time, and nobody waits for one of them.
        let blamed = summary.unconserved[0].time.0 as f64 / summary.span().0 as f64;
        assert!(blamed < 0.08 && summary.idle_share().is_some_and(|share| share > 0.8), "{kernel}: {blamed}");
        assert!(run.metric("unconserved_share").is_some_and(|share| share < 0.08), "{kernel}");
    }
}

#[test]
fn without_a_quota_nothing_of_it_shows() {
    let trace = place("throttled-none");
    let run = result("v6.12", "cgroup cpu.weight=50 periodic -n 6 -c 3000 -p 10000 -r 4", &trace);
    let (summary, explanation) = answers(&trace);
    assert_eq!((summary.throttling, summary.all.throttled.total()), (None, 0));
    assert!(run.metric("nr_throttled_per_s").is_none() && run.metric("throttled_wait_ns_max").is_none());
    for story in &explanation.stories {
        let told = story.to_string();
        assert!(!told.contains("hrottled") && !told.contains("quota"), "{told}");
    }
}

/// Spans between the probes of a recording, by the probes alone: how many there are, and how long.
fn probed(trace: &Path) -> (u64, u64) {
    let mut since = std::collections::BTreeMap::new();
    let (mut count, mut time) = (0, 0);
    let mut look = sink_fn(|event: &Event<'_>| {
        let EventKind::Kprobe { name, fields } = event.kind else { return };
        let key = (fields.unsigned("cg"), fields.unsigned("cpu"));
        match name {
            "thr" => drop(since.insert(key, event.time)),
            "unthr" => {
                if let Some(since) = since.remove(&key) {
                    count += 1;
                    time += event.time.since(since).0;
                }
            }
            _ => {}
        }
    });
    let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
    read_path(trace, &options, &mut look).expect("a trace");
    drop(look);
    (count, time)
}

#[test]
fn probes_of_real_kernels_tell_the_same() {
    for name in ["6.1-quota-2-probed", "6.12-quota-2-probed", "7.2-quota-2-probed"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(name);
        let trace = folder.join("trace.txt.zst");
        let (summary, explanation) = answers(&trace);
        let (count, time) = probed(&trace);
        let sums = summary.throttling.unwrap_or_else(|| panic!("{name}: no throttling"));
        // A few go on when the trace ends; a few tries got runtime after all.
        assert!(count > 10 && sums.count.abs_diff(count) <= 8, "{name}: {sums:?}, {count}");
        let going_on = sums.count.saturating_sub(count) * 60_000_000;
        let plausible = time - time / 10..=time + time / 10 + going_on;
        assert!(plausible.contains(&sums.time.0), "{name}: {sums:?}, {time}");
        assert!(summary.all.throttled.total() > 10, "{name}");
        let told = explanation.stories.iter().filter(|story| !story.throttled.is_empty());
        assert!(told.clone().count() > 5, "{name}");
        for story in told {
            assert!(story.throttled.iter().all(|span| span.from >= story.start && span.to <= story.end));
        }
    }
}

/// Nothing shows throttling there: where a CPU idles beside a task that waits on it, it may be that.
#[test]
fn without_probes_it_is_perhaps_throttling() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/5.10-quota-2");
    let (summary, explanation) = answers(&folder.join("trace.txt.zst"));
    assert_eq!(summary.throttling, None);
    assert!(explanation.stories.iter().any(|story| story.perhaps_throttled));
}
