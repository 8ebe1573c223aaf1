//! Traces that stand alone, as `perf record -e 'sched:*'` and `trace-cmd record -e sched` leave them: what is judged agrees,
//! and what hangs on groups, and on what only probes show, is not.

use std::path::{Path, PathBuf};
use std::{env, fs};

use fairlab_kernel::Generation;
use fairlab_sim::Machine;
use fairlab_verify::{Agreement, DecisionKind, KindTally, VerifyOptions, verify};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn agreement(path: &Path, kernel: &str) -> Agreement {
    let kernel = kernel.parse::<Generation>().expect("a kernel");
    let options = VerifyOptions { misses: 100, ..VerifyOptions::default() };
    verify(path, &kernel, &options).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A recording of the test data with these files alone.
fn stripped(name: &str, files: &[&str]) -> Agreement {
    let folder = env::temp_dir().join(format!("fairlab-{}-bare-{name}-{}", std::process::id(), files.len()));
    fs::create_dir_all(&folder).expect("a folder");
    for file in files {
        fs::copy(testdata().join("recordings").join(name).join(file), folder.join(file)).expect(file);
    }
    let kernel = format!("debian-{}", name.split('-').next().expect("a release"));
    let agreement = agreement(&folder, &kernel);
    fs::remove_dir_all(&folder).expect("removed");
    agreement
}

fn tally(agreement: &Agreement, kind: DecisionKind) -> &KindTally {
    agreement.kind(kind).expect("every kind is there")
}

const GROUPS: &str = "groups of tasks are not shown";
const BARE: [&str; 3] = ["trace.txt.zst", "meta.json", "sched_info.txt"];

#[test]
fn what_a_bare_trace_cannot_show_is_not_judged_and_the_rest_agrees() {
    let agreement = stripped("6.1-idle-2", &BARE);
    assert!(agreement.notes.iter().any(|note| note.contains("in which groups tasks compete")));
    for kind in
        [DecisionKind::Pick, DecisionKind::Placement, DecisionKind::WakeupPreempt, DecisionKind::TickPreempt]
    {
        let tally = tally(&agreement, kind);
        assert_eq!(tally.all.judged, 0, "{}", kind.name());
        assert!(tally.not_judged_total() > 10, "{}", kind.name());
    }
    assert!(tally(&agreement, DecisionKind::Pick).not_judged.contains_key(GROUPS));
    let charges = tally(&agreement, DecisionKind::Vruntime).all;
    assert!(charges.judged > 1000 && charges.agree == charges.judged, "{charges:?}");
}

/// Queues of groups are listed as long as they have load, so that a snapshot without the list of groups may show none.
#[test]
fn tasks_that_are_attached_to_groups_that_nothing_lists_are_noticed() {
    let files = [
        "trace.txt.zst",
        "meta.json",
        "sched_info.txt",
        "probes.txt",
        "sched_debug-start.txt",
        "tasks-start.txt",
        "tasks-sched-start.txt.zst",
    ];
    let whole = [&files[..], &["cgroups-start.txt"]].concat();
    for (files, judges) in [(&files[..], false), (&whole[..], true)] {
        let picks = tally(&stripped("6.12-attach-2-probed", files), DecisionKind::Pick).all;
        assert_eq!(picks.judged > 0, judges);
        assert_eq!(picks.agree, picks.judged);
    }
}

/// From EEVDF on, no event shows where entities stand: without probes nothing is judged, and every decision is counted.
#[test]
fn without_probes_little_is_judged_and_every_decision_is_counted() {
    for (name, judged) in [("6.12-forkstorm-4", false), ("5.10-hackbench-4", true)] {
        let agreement = stripped(
            name,
            &["trace.txt.zst", "meta.json", "sched_info.txt", "cgroups-start.txt", "sched_debug-start.txt"],
        );
        assert!(agreement.notes.iter().any(|note| note.contains("no probes show what decisions rest on")));
        let picks = tally(&agreement, DecisionKind::Pick);
        assert_eq!(picks.all.judged > 0, judged, "{name}: {picks:?}");
        assert!(picks.all.judged + picks.not_judged_total() > 100, "{name}: {picks:?}");
        assert_eq!(tally(&agreement, DecisionKind::WakeupCpu).all.judged, 0, "{name}");
    }
}

/// The walk would take the time of all its decisions, and lead to nothing.
#[test]
fn what_is_needed_is_looked_for_before_the_walk() {
    let folder = env::temp_dir().join(format!("fairlab-bare-needed-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let front = |at: u32| {
        format!(
            "          <idle>-0       (-------) [000] d..2. {}.{:06}:",
            10 + at / 1_000_000,
            at % 1_000_000
        )
    };
    let mut text = "# tracer: nop\n".to_string();
    for turn in 0..70_000 {
        text += &format!("{} sched_wakeup: comm=a pid=7 prio=120 target_cpu=000\n", front(2 * turn));
        text += &format!(
            "{} sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=a next_pid=7 next_prio=120\n",
            front(2 * turn + 1)
        );
    }
    // What comes too late to be looked ahead at.
    text += &format!("{} sched_stat_runtime: comm=a pid=7 runtime=5 [ns]\n", front(150_000));
    let path = folder.join("trace.txt");
    fs::write(&path, text).expect("written");
    let machine = Machine::preset("vm4").expect("a preset");
    let options = VerifyOptions { machine: Some(machine), ..VerifyOptions::default() };
    let refused =
        verify(&path, &"v6.12".parse().expect("a kernel"), &options).expect_err("no walk").to_string();
    assert!(refused.contains("the first 131072 events of the trace have no sched_stat_runtime"), "{refused}");
    fs::remove_dir_all(&folder).expect("removed");
}
