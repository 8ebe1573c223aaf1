//! Recordings that have lost lines, or hold them in another order or with other numbers: never the end of the program. And
//! those of fewer events: what is judged is right, and what is missing is told.

use std::path::{Path, PathBuf};
use std::{env, fs};

use fairlab_kernel::Generation;
use fairlab_sim::rng::RandomStream;
use fairlab_verify::{Agreement, DecisionKind, JudgedShare, VerifyOptions, verify};

const RECORDINGS: [(&str, &str); 4] = [
    ("5.10-quota-2", "debian-5.10"),
    ("6.1-idle-2", "debian-6.1"),
    ("6.12-hackbench-4-probed", "debian-6.12"),
    ("7.2-quota-2-probed", "debian-7.2"),
];

/// A copy of a recording without its trace, and that trace.
fn copied(name: &str, to: &Path) -> Vec<String> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(name);
    fs::create_dir_all(to).expect("a folder");
    let mut trace = String::new();
    for entry in fs::read_dir(from).expect("the recording") {
        let path = entry.expect("an entry").path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some("trace.txt.zst") => {
                let packed = fs::File::open(&path).expect("the trace");
                trace = String::from_utf8(zstd::decode_all(packed).expect("unpacked")).expect("text");
            }
            Some(name) => drop(fs::copy(&path, to.join(name)).expect("copied")),
            None => panic!("a file's name is text"),
        }
    }
    trace.lines().map(str::to_string).collect()
}

/// What comes of the recording where its trace is `lines`, or the refusal.
fn verified(folder: &Path, lines: &[String], kernel: &str) -> Result<Agreement, String> {
    fs::write(folder.join("trace.txt"), lines.join("\n") + "\n").expect("written");
    let generation = kernel.parse::<Generation>().expect("a kernel");
    let options = VerifyOptions { misses: 0, ..VerifyOptions::default() };
    verify(folder, &generation, &options).map_err(|error| error.to_string())
}

fn folder(test: &str, name: &str) -> PathBuf {
    env::temp_dir().join(format!("fairlab-{test}-{}-{name}", std::process::id()))
}

/// What a recording lacks may contradict what it has; that is said in a line.
fn is_contradiction(refusal: &str) -> bool {
    !refusal.contains('\n') && refusal.contains("contradicts what came before it")
}

#[test]
fn lost_lines_are_walked_over_or_told() {
    for (name, kernel) in RECORDINGS {
        let folder = folder("lost", name);
        let lines = copied(name, &folder);
        for seed in 1..=6 {
            let mut stream = RandomStream::new(seed, "lost lines");
            let kept = lines.iter().filter(|line| line.starts_with('#') || stream.below(50) > 0);
            let outcome = verified(&folder, &kept.cloned().collect::<Vec<_>>(), kernel);
            let is_walked = match &outcome {
                Ok(agreement) => agreement.state_set_right > 0,
                Err(refusal) => is_contradiction(refusal),
            };
            assert!(is_walked, "{name}, seed {seed}: {:?}", outcome.err());
        }
        fs::remove_dir_all(folder).expect("removed");
    }
}

/// A recorder whose buffer is full overwrites the oldest events of one CPU; what others have queued there meanwhile has run
/// unseen, and waits no longer.
#[test]
fn who_waits_where_events_were_overwritten_is_not_made_up() {
    for (name, kernel, picks) in
        [("6.1-storm-2", "debian-6.1", 800), ("5.10-hackbench-2", "debian-5.10", 300)]
    {
        let folder = folder("overwritten", name);
        let lines = copied(name, &folder);
        let first_kept = lines.len() * 2 / 5;
        let is_kept =
            |at: usize, line: &str| at >= first_kept || line.starts_with('#') || !line.contains("[000]");
        let kept =
            lines.iter().enumerate().filter(|(at, line)| is_kept(*at, line)).map(|(_, line)| line.clone());
        let agreement = verified(&folder, &kept.collect::<Vec<_>>(), kernel).expect("walked");
        let found = share(&agreement, DecisionKind::Pick);
        assert!(found.judged >= picks, "{name}: {found:?}");
        assert!(found.missed() * 100 <= found.judged, "{name}: {found:?}");
        fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn nonsense_is_answered_in_a_line() {
    for (name, kernel) in RECORDINGS {
        let folder = folder("nonsense", name);
        let lines = copied(name, &folder);
        for seed in 1..=6 {
            let mut stream = RandomStream::new(seed, "nonsense");
            let mut nonsense = lines.clone();
            for at in 0..nonsense.len() {
                match (stream.below(20), stream.below(nonsense.len() as u64) as usize) {
                    (0, other) => nonsense.swap(at, other),
                    (1, other) => nonsense[at] = nonsense[at].replace(['1', '7'], &other.to_string()),
                    _ => {}
                }
            }
            if let Err(refusal) = verified(&folder, &nonsense, kernel) {
                assert!(
                    !refusal.contains('\n') && refusal.contains("trace.txt"),
                    "{name}, seed {seed}: {refusal}"
                );
            }
        }
        fs::remove_dir_all(folder).expect("removed");
    }
}

/// What comes of a recording in which the events whose names begin with one of `left_out` were not recorded.
fn without(left_out: &[&str], name: &str, kernel: &str) -> Agreement {
    walked_without(left_out, name, kernel).expect("walked")
}

fn walked_without(left_out: &[&str], name: &str, kernel: &str) -> Result<Agreement, String> {
    let folder = folder(&format!("without-{}", left_out.first().unwrap_or(&"nothing")), name);
    let lines = copied(name, &folder);
    let is_left_out = |line: &String| left_out.iter().any(|event| line.contains(&format!(": {event}")));
    let kept = lines.iter().filter(|line| !is_left_out(line)).cloned().collect::<Vec<_>>();
    let agreement = verified(&folder, &kept, kernel);
    fs::remove_dir_all(folder).expect("removed");
    agreement
}

fn share(agreement: &Agreement, kind: DecisionKind) -> JudgedShare {
    agreement.kind(kind).map(|tally| tally.all).unwrap_or_default()
}

/// What is recorded only with `kernel.sched_schedstats`, which is 0 unless somebody sets it.
const DELAYS: [&str; 4] = ["sched_stat_sleep", "sched_stat_blocked", "sched_stat_iowait", "sched_stat_wait"];

#[test]
fn what_is_judged_without_schedstats_is_right() {
    for (name, kernel) in [
        ("5.10-hackbench-4", "debian-5.10"),
        ("6.1-forkstorm-4-probed", "debian-6.1"),
        ("6.12-hackbench-4-probed", "debian-6.12"),
    ] {
        let agreement = without(&DELAYS, name, kernel);
        for kind in DecisionKind::ALL {
            let share = share(&agreement, kind);
            assert!(share.missed() * 400 <= share.judged, "{name}: {kind:?} {share:?}");
        }
        assert!(agreement.kinds.iter().any(|(_, tally)| !tally.not_judged.is_empty()), "{name}");
    }
}

/// Only a probe shows the state that a wakeup's CPU is selected in.
#[test]
fn a_selection_is_judged_where_a_probe_shows_it() {
    let (name, kernel) = ("6.12-hackbench-4-probed", "debian-6.12");
    let [shown, hidden] = [&[][..], &["sel:", "sel_r:"]]
        .map(|left_out| share(&without(left_out, name, kernel), DecisionKind::WakeupCpu));
    assert!(shown.judged > 50 && hidden.judged == 0, "{shown:?} shown, {hidden:?} hidden");
}

#[test]
fn a_trace_that_does_not_tell_where_tasks_are_woken_to_is_refused() {
    let (name, kernel) = RECORDINGS[1];
    let folder = folder("refused", name);
    let lines = copied(name, &folder);
    let kept = lines.iter().filter(|line| !line.contains("sched_wakeup:")).cloned().collect::<Vec<_>>();
    let refusal = verified(&folder, &kept, kernel).err();
    fs::remove_dir_all(folder).expect("removed");
    let told = "the trace has no sched_wakeup";
    assert!(refusal.as_ref().is_some_and(|refusal| refusal.contains(told)), "{refusal:?}");
}

#[test]
fn events_that_were_not_recorded_are_told() {
    let whole = without(&[], "6.12-hackbench-4-probed", "debian-6.12");
    assert_eq!(whole.notes.iter().find(|note| note.contains("the trace has no")), None);
    for event in
        ["sched_waking", "sched_migrate_task", "sched_process_fork", "sched_wakeup_new", "sched_process_exit"]
    {
        let notes = without(&[event], "6.12-hackbench-4-probed", "debian-6.12").notes;
        let told = format!("the trace has no {event}");
        assert!(notes.iter().any(|note| note.contains(&told)), "{event}: {notes:?}");
    }
}

/// Of each event in turn: what hangs on it is not judged.
#[test]
fn what_is_judged_without_one_of_the_events_is_right() {
    for (name, kernel) in [
        ("5.10-hackbench-4", "debian-5.10"),
        ("6.1-forkstorm-4-probed", "debian-6.1"),
        ("6.12-nice-2-probed", "debian-6.12"),
        ("6.12-hackbench-4-probed", "debian-6.12"),
        ("7.2-quota-2-probed", "debian-7.2"),
    ] {
        let whole = without(&[], name, kernel);
        for event in [
            "sched_waking:",
            "sched_wakeup_new:",
            "sched_migrate_task:",
            "sched_process_fork:",
            "sched_process_exit:",
            "sched_stat_wait:",
            "sched_stat_sleep:",
            "sched_stat_blocked:",
            "cgroup_attach_task:",
        ] {
            let cut = match walked_without(&[event], name, kernel) {
                Ok(cut) => cut,
                Err(refusal) => {
                    assert!(is_contradiction(&refusal), "{name} without {event}: {refusal}");
                    continue;
                }
            };
            for kind in DecisionKind::ALL {
                let missed = |agreement: &Agreement| {
                    let tally = agreement.kind(kind).expect("every kind is there");
                    tally.all.missed()
                };
                let judged = share(&cut, kind).judged;
                let granted = missed(&whole) + judged / 100 + 2;
                assert!(
                    missed(&cut) <= granted,
                    "{name} without {event} {kind:?}: {} of {judged}",
                    missed(&cut)
                );
            }
        }
    }
}

#[test]
fn a_list_of_events_tells_that_the_trace_was_cut() {
    let folder = folder("cut", "6.12-threads-3-probed");
    let lines = copied("6.12-threads-3-probed", &folder);
    let kept = lines.iter().filter(|line| !line.contains(": sched_migrate_task:"));
    let cut = verified(&folder, &kept.cloned().collect::<Vec<_>>(), "debian-6.12").expect("walked");
    fs::remove_dir_all(folder).expect("removed");
    let told = "the trace has no sched_migrate_task: not judged are placement, pick,";
    let note = cut.notes.iter().find(|note| note.contains(told)).expect("it is told");
    assert!(note.ends_with("events.txt says that it was recorded: give the whole trace"), "{note}");
    let pick = cut.kind(DecisionKind::Pick).expect("every kind is there");
    assert_eq!((pick.all.judged, pick.misses.len()), (0, 0));
    assert!(pick.not_judged_total() > 0);
}
