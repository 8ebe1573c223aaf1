//! Traces that stand alone, as `perf record -e 'sched:*'` and `trace-cmd record -e sched` leave them: what is judged agrees,
//! and what hangs on groups, on masks and on the time before is not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{Generation, Topology};
use fairlab_sim::Machine;
use fairlab_verify::{Agreement, DecisionKind, KindTally, VerifyOptions, verify};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn agreement(path: &Path, kernel: &str, machine: Option<Machine>) -> Agreement {
    let kernel = kernel.parse::<Generation>().expect("a kernel");
    let options = VerifyOptions { machine, misses: 100, ..VerifyOptions::default() };
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
    let agreement = agreement(&folder, &kernel, None);
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
        assert!(tally.not_judged.get(GROUPS).is_some_and(|&count| count > 10), "{}", kind.name());
    }
    for (kind, least) in
        [(DecisionKind::Vruntime, 1000), (DecisionKind::WakeupCpu, 300), (DecisionKind::Balance, 80)]
    {
        let tally = tally(&agreement, kind);
        assert!(tally.all.judged >= least, "{}: {} judged", kind.name(), tally.all.judged);
        assert!(100 * tally.all.missed() <= 3 * tally.all.judged, "{}: {:?}", kind.name(), tally.all);
        assert!(10 * tally.all.agree >= 9 * tally.all.judged, "{}: {:?}", kind.name(), tally.all);
    }
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

/// The file keeps the tasks' names as events of time 0: the machine was not started then.
#[test]
fn what_a_file_knows_of_tasks_is_not_the_beginning() {
    let topology = Topology::regular(1, 1, 2, 1, SmtNumbering::Adjacent).expect("a machine");
    let machine = Machine { topology, ..Machine::preset("laptop8").expect("a preset") };
    let agreement = agreement(&testdata().join("trace-cmd-3.1-hackbench.dat"), "v6.18", Some(machine));
    let balance = tally(&agreement, DecisionKind::Balance);
    let reasons = balance.not_judged.keys().copied().collect::<BTreeSet<_>>();
    assert_eq!((balance.all.judged, reasons), (0, BTreeSet::from(["averages of before the trace"])));
    let wakeups = tally(&agreement, DecisionKind::WakeupCpu);
    assert!(
        wakeups.all.judged > 1000 && 100 * wakeups.all.missed() < 2 * wakeups.all.judged,
        "{:?}",
        wakeups.all
    );
}

/// Without the calls that change it, the first charge by another weight tells.
#[test]
fn a_policy_that_no_priority_shows_is_told_by_what_its_tasks_are_charged() {
    let from = testdata().join("recordings/5.10-churn-4numa");
    let packed = fs::read(from.join("trace.txt.zst")).expect("a trace");
    let text = String::from_utf8(zstd::decode_all(&packed[..]).expect("zstd")).expect("text");
    let calls = ["sched_setscheduler", "sched_setattr", "labmin_sched"];
    let kept = text.lines().filter(|line| !calls.iter().any(|call| line.contains(call)));
    let folder = env::temp_dir().join(format!("fairlab-{}-bare-policy", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("trace.txt"), kept.collect::<Vec<_>>().join("\n")).expect("written");
    for file in ["meta.json", "sched_info.txt"] {
        fs::copy(from.join(file), folder.join(file)).expect(file);
    }
    let agreement = agreement(&folder, "debian-5.10", None);
    fs::remove_dir_all(&folder).expect("removed");
    let charges = tally(&agreement, DecisionKind::Vruntime);
    let changed = charges.not_judged.get("nice level or policy changed unseen").copied();
    assert!(changed.is_some_and(|changed| (1..40).contains(&changed)), "{changed:?}");
    assert!(charges.all.judged > 1000 && charges.all.judged - charges.all.agree <= 2);
}

/// When a task that waits was queued is told by its wait, what a snapshot's averages had grown by since they were made by the
/// events before it, and what sleepers leave is aged where a CPU balances: so groups' weights, and with them who runs, are
/// those that the probes showed.
#[test]
fn groups_weigh_what_they_do_where_no_probe_shows_it() {
    for (name, least) in [("6.12-cgweight-2-probed", 400), ("7.2-nest-3-probed", 300)] {
        let agreement = without_probes(name);
        let picks = tally(&agreement, DecisionKind::Pick).all;
        assert!(picks.judged >= least, "{name}: {} judged", picks.judged);
        assert!(picks.missed() <= 2, "{name}: {picks:?}");
        // Two entities that are as far apart as weights are rounded may be picked in either order.
        assert!(picks.admissible <= 4, "{name}: {picks:?}");
    }
}

/// A recording of the test data without what its probes at the scheduler's own functions report.
fn without_probes(name: &str) -> Agreement {
    let from = testdata().join("recordings").join(name);
    let folder = env::temp_dir().join(format!("fairlab-{}-bare-probes-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    for file in fs::read_dir(&from).expect("a recording").map(|file| file.expect("a file").file_name()) {
        fs::copy(from.join(&file), folder.join(&file)).expect("copied");
    }
    let is_own = |line: &&str| line.contains(":lab/");
    let probes = fs::read_to_string(from.join("probes.txt")).expect("probes");
    let named = |line: &str| Some(format!(" {}: (", line.split(":lab/").nth(1)?.split(' ').next()?));
    let names = probes.lines().filter(is_own).filter_map(named).collect::<Vec<_>>();
    let others = probes.lines().filter(|line| !is_own(line)).collect::<Vec<_>>();
    fs::write(folder.join("probes.txt"), others.join("\n")).expect("written");
    let packed = fs::read(from.join("trace.txt.zst")).expect("a trace");
    let text = String::from_utf8(zstd::decode_all(&packed[..]).expect("zstd")).expect("text");
    let bare = text.lines().filter(|line| !names.iter().any(|name| line.contains(name.as_str())));
    let packed = zstd::encode_all(bare.collect::<Vec<_>>().join("\n").as_bytes(), 1).expect("zstd");
    fs::write(folder.join("trace.txt.zst"), packed).expect("written");
    let kernel = format!("debian-{}", name.split('-').next().expect("a release"));
    let agreement = agreement(&folder, &kernel, None);
    fs::remove_dir_all(&folder).expect("removed");
    agreement
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
