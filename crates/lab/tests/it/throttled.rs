//! Groups with a quota: a run's trace and its metrics tell when they were throttled, and recordings of real kernels do.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fairlab_analysis::explain::{Explain, ExplainOptions, Explanation};
use fairlab_analysis::lanes::{LaneTask, Lanes, LanesReport};
use fairlab_analysis::summary::{SummaryOptions, SummaryReport, TraceSummary};
use fairlab_event::{Cpu, Event, EventKind, Ns, sink_fn};
use fairlab_lab::{RunResult, RunSpec, machines, run};
use fairlab_recording::read_recorded;
use fairlab_trace::{ReadOptions, read_path};

fn result(kernel: &str, workload: &str, trace: &Path) -> RunResult {
    let words = workload.split(' ').map(ToString::to_string).collect();
    let (kernel, machine) = (kernel.parse().expect("a kernel"), machines::find("vm4").expect("a machine"));
    let spec = RunSpec {
        first_cpu: Some(Cpu(0)),
        warmup: Some(Ns::ZERO),
        trace: Some(trace.to_path_buf()),
        ..RunSpec::new(kernel, machine, words, 1, Ns::from_secs(1))
    };
    run(&spec, &AtomicBool::new(false)).expect("a run").expect("not stopped")
}

fn answers(trace: &Path) -> (SummaryReport, Explanation) {
    let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
    let mut sinks = (
        (
            TraceSummary::new(SummaryOptions::default()),
            Explain::new(ExplainOptions { worst: 200, ..ExplainOptions::default() }),
        ),
        Lanes::new(|_| {}),
    );
    read_path(trace, &options, &mut sinks).expect("a trace");
    let ((summary, explain), lanes) = sinks;
    let (summary, lanes) = (summary.finish().expect("switches"), lanes.finish().expect("switches"));
    draws_what_is_summed(&summary, &lanes);
    (summary, explain.finish().expect("switches"))
}

/// Spans that are drawn come to the time for quotas in waits that are over, but for those that go on when the trace ends.
fn draws_what_is_summed(summary: &SummaryReport, lanes: &LanesReport) {
    let length = |&(from, to): &(Ns, Ns)| u128::from(to.since(from).0);
    let of = |task: &LaneTask| task.throttled.iter().map(length).sum::<u128>();
    let drawn = lanes.tasks.iter().map(of).sum::<u128>();
    let open = summary.censored.iter().map(|wait| u128::from(wait.so_far.0)).sum::<u128>();
    let summed = u128::from(summary.all.throttled.sum());
    assert!(
        drawn >= summed && drawn <= summed + open,
        "{drawn} ns are drawn, {summed} ns summed, {open} ns open"
    );
    for task in &lanes.tasks {
        assert!(task.throttled.iter().all(|(from, to)| from < to) && task.throttled.is_sorted(), "{task:?}");
    }
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

/// Nothing shows throttling there, and quotas are not known: where a CPU idles beside a task that waits on it, it may be that.
#[test]
fn without_probes_and_quotas_it_is_perhaps_throttling() {
    let (summary, explanation) = answers(&recording("5.10-quota-2").join("trace.txt.zst"));
    assert_eq!(summary.throttling, None);
    assert!(explanation.stories.iter().any(|story| story.perhaps_throttled));
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(name)
}

/// All waits with the lists that lie beside the trace.
fn answers_beside(trace: &Path) -> (SummaryReport, Explanation) {
    let mut sinks = (
        TraceSummary::new(SummaryOptions::default()),
        Explain::new(ExplainOptions { worst: 100_000, ..ExplainOptions::default() }),
    );
    read_recorded(trace, &ReadOptions::default(), &mut sinks).expect("a trace");
    (sinks.0.finish().expect("switches"), sinks.1.finish().expect("switches"))
}

/// Copies a recording without what shows throttling; `quotas`: with the lists of groups.
fn stripped(text: &str, beside: &[(&str, String)], name: &str) -> PathBuf {
    let trace = place(name);
    let shows = |line: &&str| !line.contains("throttle_cfs_rq");
    let kept: Vec<&str> = text.lines().filter(shows).collect();
    fs::write(&trace, kept.join("\n") + "\n").expect("written");
    for (file, list) in beside {
        fs::write(trace.with_file_name(file), list).expect("written");
    }
    trace
}

/// What part of what is throttled was concluded, wait by wait, and what part of what was concluded is so.
fn agreement(one: &Explanation, other: &Explanation) -> (f64, f64) {
    type Spans = std::collections::BTreeMap<(i32, u64, u32), Vec<(u64, u64)>>;
    let spans = |explanation: &Explanation| {
        let mut spans = Spans::new();
        for story in &explanation.stories {
            for span in &story.throttled {
                let key = (story.task.pid.0, story.start.0, span.cpu.0);
                let known: &mut Vec<(u64, u64)> = spans.entry(key).or_default();
                match known.last_mut() {
                    // A group and one above it: throttled is throttled.
                    Some((_, to)) if *to >= span.from.0 => *to = (*to).max(span.to.0),
                    _ => known.push((span.from.0, span.to.0)),
                }
            }
        }
        spans
    };
    let (one, other) = (spans(one), spans(other));
    let sum = |spans: &Spans| spans.values().flatten().map(|(from, to)| to - from).sum::<u64>();
    let mut both = 0;
    for (key, spans) in &one {
        for (from, to) in spans {
            let theirs = other.get(key).into_iter().flatten();
            both += theirs.map(|(start, end)| (*end).min(*to).saturating_sub(*from.max(start))).sum::<u64>();
        }
    }
    (both as f64 / sum(&one) as f64, both as f64 / sum(&other) as f64)
}

const QUOTAS: [(&str, &str); 5] = [
    ("v5.3", "cgroup cpu.max=20000/100000 periodic -n 6 -c 3000 -p 10000 -r 4"),
    ("v5.10", "cgroup cpu.max=60000/100000 schbench -m 1 -t 3 -r 2"),
    ("v6.6", "cgroup cpu.max=20000/100000 periodic -n 6 -c 3000 -p 10000 -r 4"),
    ("v6.12", "cgroup cpu.max=15000/50000 hackbench -g 1 -l 400"),
    ("v6.18", "cgroup cpu.max=20000/100000 periodic -n 6 -c 3000 -p 10000 -r 4"),
];

/// Without the events that show throttling it is concluded from the quota and what ran; without the quota nothing is told.
#[test]
fn throttling_is_concluded_from_quotas_and_run_time() {
    for (place_of, (kernel, workload)) in QUOTAS.iter().enumerate() {
        let trace = place(&format!("concluded-{place_of}"));
        let run = result(kernel, workload, &trace);
        let text = fs::read_to_string(&trace).expect("a trace");
        let beside = [
            ("cgroups-start.txt", run.beginning.cgroups.clone()),
            ("tasks-start.txt", run.beginning.tasks.clone()),
        ];
        let (_, exact) = answers_beside(&trace);
        let told = stripped(&text, &beside, &format!("concluded-{place_of}-stripped"));
        let (summary, concluded) = answers_beside(&told);
        let (found, right) = agreement(&exact, &concluded);
        println!("{kernel} {workload}: {found:.3} found, {right:.3} of it right");
        assert!(summary.throttling.is_some_and(|sums| sums.is_concluded && sums.count > 3), "{kernel}");
        assert!(found > 0.93 && right > 0.99, "{kernel} {workload}: {found} {right}");
        let without: String =
            text.lines().filter(|line| !line.starts_with("# fairlab : group")).collect::<Vec<_>>().join("\n");
        let bare = stripped(&without, &[], &format!("concluded-{place_of}-bare"));
        let (summary, explanation) = answers_beside(&bare);
        assert_eq!(summary.throttling, None, "{kernel}");
        assert!(explanation.stories.iter().all(|story| story.throttled.is_empty()), "{kernel}");
    }
}

/// What probes of real kernels show is concluded without them, as far as their CPUs idle beside throttled tasks: quotas of 6 ms
/// and CPUs that are busy with others show little.
#[test]
fn real_kernels_throttling_is_concluded() {
    let all = [("6.1-quota-2-probed", 0.25), ("6.12-quota-2-probed", 0.7), ("7.2-quota-2-probed", 0.5)];
    for (name, least) in all {
        let folder = recording(name);
        let (_, exact) = answers_beside(&folder.join("trace.txt.zst"));
        let packed = fs::File::open(folder.join("trace.txt.zst")).expect("a trace");
        let text = String::from_utf8(zstd::decode_all(packed).expect("zstd")).expect("text");
        let list = |file: &str| fs::read_to_string(folder.join(file)).expect(file);
        let beside: Vec<(&str, String)> =
            ["cgroups-start.txt", "tasks-start.txt", "meta.json", "sched_info.txt"]
                .into_iter()
                .map(|file| (file, list(file)))
                .collect();
        let (summary, concluded) = answers_beside(&stripped(&text, &beside, &format!("{name}-stripped")));
        let (found, right) = agreement(&exact, &concluded);
        println!("{name}: {found:.3} found, {right:.3} of it right");
        assert!(summary.throttling.is_some_and(|sums| sums.is_concluded), "{name}");
        assert!(found > least && right > 0.97, "{name}: {found} {right}");
    }
}
