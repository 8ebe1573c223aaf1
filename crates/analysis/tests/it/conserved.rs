//! Time is conserved: over all recordings, and over made traces cut at every place, no analysis finds more time than there
//! was, and all agree with one another, task by task.

mod judge;
mod made;

use std::path::{Path, PathBuf};

use fairlab_analysis::metrics::Metrics;
use fairlab_event::{Context, Event, EventKind, Sink};
use fairlab_trace::{ReadOptions, read_path};
use judge::{Judged, judge};
use made::{Cut, made};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// Every file of a folder that is a trace by its name, and the traces of the folders in it.
fn traces(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            traces(&path, found);
        } else if folder.ends_with("testdata") && is_trace(&name) || name.starts_with("trace.") {
            found.push(path);
        }
    }
}

/// perf's own tables lie beside the traces.
fn is_trace(name: &str) -> bool {
    let text = [".txt", ".txt.gz", ".txt.xz", ".txt.zst"].iter().any(|end| name.ends_with(end));
    let table = ["latency", "timehist", "sched-domains"].iter().any(|word| name.contains(word));
    name.ends_with(".data") || name.ends_with(".dat") || text && !table
}

#[test]
fn all_recordings() {
    let mut paths = Vec::new();
    traces(&testdata(), &mut paths);
    assert!(paths.len() > 60, "{paths:?}");
    let (mut judged, mut violations) = (0, Vec::new());
    for path in paths {
        // Each is judged, so that all that are wrong are named at once.
        match std::panic::catch_unwind(|| judge_file(&path)) {
            Ok(waits) => judged += waits,
            Err(_) => violations.push(path),
        }
    }
    assert!(violations.is_empty(), "{violations:?}");
    assert!(judged > 50_000, "{judged}");
}

/// First waits of new tasks are counted apart: perf-make.data has 15 of them among 145 waits of woken and new tasks.
#[test]
fn new_tasks_are_not_woken_ones() {
    let counts = |file: &str| {
        let judged = judge_recording(&testdata().join(file)).expect("switches");
        (judged.counts().wakeup_latency.total(), judged.counts().fork_wait.total())
    };
    assert_eq!(counts("perf-make.data"), (130, 15));
    // Of the first waits of its 80 new tasks, 3 are measured: switches are missing.
    assert_eq!(counts("perf-hackbench.data"), (5_129, 3));
}

/// Holds all answers about a recording to one another; gives how many waits it has.
fn judge_file(path: &Path) -> u64 {
    judge_recording(path).map_or(0, |judged| judged.waits())
}

fn judge_recording(path: &Path) -> Option<Judged> {
    let name = path.display().to_string();
    let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
    let read = |sink: &mut dyn Sink| {
        read_path(path, &options, sink).unwrap_or_else(|error| panic!("{name}: {error}"));
    };
    let judged = judge(&name, &read)?;
    judged.check_agreement(&name);
    Some(judged)
}

fn fed<'e>(events: &'e [Event<'static>]) -> impl Fn(&mut dyn Sink) + 'e {
    |sink| events.iter().for_each(|event| sink.event(event))
}

fn judge_cut(whole: &[Event<'static>], cut: Cut) -> Option<Judged> {
    let name = format!("{cut:?}");
    let judged = judge(&name, &fed(&cut.apply(whole)))?;
    judged.check_conservation(&name);
    Some(judged)
}

#[test]
fn a_whole_trace_has_nothing_unknown() {
    for seed in 0..20 {
        let whole = made(seed, 300);
        let judged = judge("whole", &fed(&whole)).expect("switches");
        judged.check_agreement("whole");
        assert!(judged.crossed() == 0 && judged.waits() > 30, "seed {seed}");
        // As a run of a model is counted, of which no event can be missing.
        let mut metrics = Metrics::new(3, whole[0].time);
        whole.iter().for_each(|event| metrics.event(event));
        let (run, counts) = (metrics.into_counts(whole[whole.len() - 1].time), judged.counts());
        assert_eq!(run.wakeup_latency, counts.wakeup_latency, "seed {seed}");
        assert_eq!(run.fork_wait, counts.fork_wait, "seed {seed}");
        assert_eq!(
            (run.switches, run.involuntary_switches, run.migrations),
            (counts.switches, counts.involuntary_switches, counts.migrations),
            "seed {seed}"
        );
        assert!(run.fork_wait.total() > 0, "seed {seed}");
    }
}

/// Where one switch is missing, no wait is measured that was not there.
#[test]
fn one_event_is_missing() {
    for seed in 0..4 {
        let whole = made(seed, 120);
        let truth = judge("whole", &fed(&whole)).expect("switches").measured();
        for (place, event) in whole.iter().enumerate() {
            let Some(judged) = judge_cut(&whole, Cut::Range(place, place + 1)) else { continue };
            if matches!(event.kind, EventKind::SchedSwitch(_)) {
                for wait in judged.measured() {
                    assert!(truth.contains(&wait), "seed {seed}, without event {place}: {wait:?}");
                }
            }
        }
    }
}

/// Cuts of many kinds at every place.
fn judge_all_cuts(whole: &[Event<'static>]) {
    for place in 0..whole.len() {
        for length in [2, 5, 17, 40] {
            judge_cut(whole, Cut::Range(place, (place + length).min(whole.len())));
            judge_cut(whole, Cut::Lost(place, (place + length).min(whole.len())));
        }
        for cpu in 0..3 {
            judge_cut(whole, Cut::Head(cpu, place));
            judge_cut(whole, Cut::MarkedHead(cpu, place));
            judge_cut(whole, Cut::OnCpu(cpu, place, (place + 25).min(whole.len())));
        }
    }
}

#[test]
fn a_stretch_or_a_head_is_missing() {
    for seed in 3..9 {
        judge_all_cuts(&made(seed, 60));
    }
}

/// Conservation where no event tells in whose context it was reported, and a recorder left kinds of events out.
#[test]
fn contexts_and_kinds_of_events_are_missing() {
    type Kept = fn(&EventKind<'_>) -> bool;
    let without: [Kept; 4] = [
        |_| true,
        |kind| !matches!(kind, EventKind::SchedWaking(_)),
        |kind| !matches!(kind, EventKind::SchedStatRuntime { .. }),
        |kind| !matches!(kind, EventKind::SchedWaking(_) | EventKind::SchedStatRuntime { .. }),
    ];
    for (seed, kept) in (0..3).flat_map(|seed| without.map(|kept| (seed, kept))) {
        let mut whole = made(seed, 60);
        whole.retain(|event| kept(&event.kind));
        judge_all_cuts(&whole);
        whole.iter_mut().for_each(|event| event.context = Context::default());
        judge_all_cuts(&whole);
    }
}
