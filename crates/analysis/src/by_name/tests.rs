//! Numbers by name against what was worked out by hand, and against the machine's.

use std::collections::BTreeMap;

use fairlab_event::{Ns, Pid, Sink, System};
use fairlab_trace::ReadOptions;

use super::{CpuDomainNumbers, MachinePlaces, NamesWanted};
use crate::counts::{MoveCounts, NameCounts, RunCounts, StackedTime};
use crate::metrics::Metrics;
use crate::task_selector::TaskSelector;
use crate::testbed::feed;

/// Two sockets of two cores, a thread each.
fn sockets() -> MachinePlaces {
    MachinePlaces::new((0..4).map(|cpu| CpuDomainNumbers {
        core: cpu,
        llc: cpu / 2,
        node: cpu / 2,
        capacity: 1024,
    }))
}

fn counts_of(story: &str, system: &System, wanted: NamesWanted, (start, end): (u64, u64)) -> RunCounts {
    let mut metrics = Metrics::new(4, Ns::ZERO).by_name(wanted, Some(sockets()));
    metrics.system(system);
    let mut begun = Begun { metrics, start: Ns::from_us(start), has_begun: false };
    feed(story, &mut begun);
    begun.metrics.into_counts(Ns::from_us(end))
}

/// Counts from a time on.
struct Begun {
    metrics: Metrics,
    start: Ns,
    has_begun: bool,
}

impl Sink for Begun {
    fn event(&mut self, event: &fairlab_event::Event<'_>) {
        if event.time >= self.start && !std::mem::replace(&mut self.has_begun, true) {
            self.metrics.begin(self.start);
        }
        self.metrics.event(event);
    }
}

fn task(counts: &RunCounts, name: &str) -> NameCounts {
    counts
        .by_name
        .get(&TaskSelector::Task(name.to_string()))
        .unwrap_or_else(|| panic!("no {name}: {counts:?}"))
        .clone()
}

fn metric(counts: &RunCounts, name: &str) -> f64 {
    let all = counts.metrics_by_name();
    all.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}: {all:?}")).1
}

/// a-1 and a-2 run on both CPUs of the first socket for 60 us while the second one is empty, then one of them moves there.
const STORY: &str = "
    idle-0   0 d..2.   0 switch  idle:0 R ==> a-1:11
    idle-0   1 d..2.  10 waking  a-2:12 on 1
    idle-0   1 d..2.  20 wakeup  a-2:12 on 1
    idle-0   1 d..2.  30 switch  idle:0 R ==> a-2:12
    a-1-11   0 d..2.  40 waking  b:13 on 0
    a-1-11   0 d..2.  40 wakeup  b:13 on 0
    a-1-11   0 d..2.  90 switch  a-1:11 R ==> b:13
    b-13     0 d..2.  95 migrate a-1:11 0 => 2
    idle-0   2 d..2. 100 switch  idle:0 R ==> a-1:11
    b-13     0 d..2. 140 switch  b:13 S ==> idle:0
";

#[test]
fn a_story_worked_out_by_hand() {
    let counts = counts_of(STORY, &System::default(), NamesWanted::all(), (0, 200));
    let (a, b) = (task(&counts, "a"), task(&counts, "b"));
    // a-1: 0 to 90 and from 100 on; a-2 from 30 on; a-2 waits from 10, a-1 from 90 to 100.
    assert_eq!((a.tasks, a.run_ns, a.wait_ns), (2, 360_000, 30_000));
    assert_eq!((b.tasks, b.run_ns, b.wait_ns), (1, 50_000, 50_000));
    assert_eq!((a.wakeup_latency.total(), a.wakeup_latency.sum()), (1, 20_000));
    assert_eq!((a.preemption_wait.total(), a.preemption_wait.sum()), (1, 10_000));
    assert_eq!((b.wakeup_latency.max(), b.preemption_wait.total()), (Some(50_000), 0));
    let moves = MoveCounts { smt: None, llc: Some(0), node: None, other_node: Some(1) };
    assert_eq!((a.migrations, a.involuntary_switches, a.moves), (1, 1, Some(moves)));
    let placement = a.placement.expect("the topology is known");
    // Together from 30 to 90 and from 100 on; on one socket in the first of these.
    assert_eq!(placement.several_ns, 160_000);
    assert_eq!(placement.core, None, "a core has one thread");
    let stacked = StackedTime { stacked_ns: 60_000, unknown_ns: 0 };
    assert_eq!((placement.llc, placement.node), (Some(stacked), Some(stacked)));
    assert_eq!(metric(&counts, "a stacked_llc_share"), 0.3);
    assert_eq!(metric(&counts, "a slowdown"), 390.0 / 360.0);
    assert_eq!(metric(&counts, "b wakeup_latency_ns_p99"), 50_000.0);
    assert_eq!(metric(&counts, "a run_ns_per_s"), 1.8e9);
    assert!(
        !counts
            .metrics_by_name()
            .iter()
            .any(|(name, _)| name.contains("stacked_core") || name.contains("smt"))
    );
}

#[test]
fn nothing_before_the_beginning_counts_and_time_is_cut_there() {
    let counts = counts_of(STORY, &System::default(), NamesWanted::all(), (60, 200));
    let (a, b) = (task(&counts, "a"), task(&counts, "b"));
    assert_eq!((a.run_ns, a.wait_ns, b.run_ns, b.wait_ns), (270_000, 10_000, 50_000, 30_000));
    // b was woken before.
    assert_eq!((b.wakeup_latency.total(), a.preemption_wait.sum()), (0, 10_000));
    assert_eq!(a.placement.and_then(|placement| placement.llc).map(|llc| llc.stacked_ns), Some(30_000));
}

#[test]
fn where_the_topology_is_unknown_nothing_is_said_of_it() {
    let mut metrics = Metrics::new(4, Ns::ZERO).by_name(NamesWanted::all(), None);
    feed(STORY, &mut metrics);
    let counts = metrics.into_counts(Ns::from_us(200));
    let a = task(&counts, "a");
    assert_eq!((a.moves, a.placement, a.migrations), (None, None, 1));
    let has = |part: &str| counts.metrics_by_name().iter().any(|(name, _)| name.contains(part));
    assert!(!has("stacked") && !has("migrations_llc") && has("a migrations_per_s"));
}

/// An unknown CPU may be idle or not: that time is no part of a share.
#[test]
fn unknown_cpus_are_no_empty_ones() {
    let mut metrics = Metrics::new(4, Ns::ZERO).recorded().by_name(NamesWanted::all(), Some(sockets()));
    feed(
        "
        x-9      0 d..2.   0 switch  x:9 S ==> a-1:11
        x-9      1 d..2.   0 switch  x:9 S ==> a-2:12
        idle-0   2 d..2.  10 waking  c:14 on 2
        idle-0   2 d..2.  20 switch  idle:0 R ==> c:14
        c-14     2 d..2.  30 switch  c:14 S ==> idle:0
        idle-0   3 d..2.  40 waking  c:15 on 3
        idle-0   3 d..2.  60 switch  idle:0 R ==> c:15
        c-15     3 d..2.  80 switch  c:15 S ==> idle:0
        ",
        &mut metrics,
    );
    let counts = metrics.into_counts(Ns::from_us(100));
    let llc = task(&counts, "a").placement.and_then(|placement| placement.llc).expect("known");
    // Up to 20 and from 30 to 40, when an event shows the idle task on CPU 3, the second socket may be empty; it is until 60, and
    // from 80 on.
    assert_eq!((llc.stacked_ns, llc.unknown_ns), (40_000, 30_000));
}

#[test]
fn groups_hold_what_is_below_them_and_tasks_move() {
    let system = System {
        groups: ["/\t1\t-\t-\t-\t-\tcpu\t", "/g\t43\t100\tmax 100000\t0", "/g/a\t44\t100\tmax 100000\t0"]
            .map(String::from)
            .to_vec(),
        members: vec![(Pid(11), "/g/a".to_string())],
        ..System::default()
    };
    let story = format!(
        "{STORY}
        b-13     0 d..2. 150 cgroup_attach_task dst_root=0 dst_id=43 dst_level=1 dst_path=/g pid=12 comm=a-2"
    );
    let wanted = NamesWanted {
        asked: vec![TaskSelector::Pid(Pid(12)), TaskSelector::Task("a-1".to_string())],
        ..NamesWanted::all()
    };
    let counts = counts_of(&story, &system, wanted, (0, 200));
    let run = |who: TaskSelector| counts.by_name.get(&who).map(|counts| counts.run_ns);
    assert_eq!(run(TaskSelector::Group("/g/a".to_string())), Some(190_000));
    assert_eq!(run(TaskSelector::Group("/g".to_string())), Some(190_000 + 50_000));
    assert_eq!(
        (run(TaskSelector::Pid(Pid(12))), run(TaskSelector::Task("a-1".to_string()))),
        (Some(170_000), Some(190_000))
    );
    assert_eq!(task(&counts, "a").run_ns, 360_000);
}

/// Shares of run time by cache and node, which are counted where they are wanted.
#[test]
fn where_tasks_ran_is_counted_where_it_is_wanted() {
    let of = |places: bool| {
        let wanted = NamesWanted { places, ..NamesWanted::all() };
        counts_of(STORY, &System::default(), wanted, (50, 200))
    };
    // a-1 from 50 to 90 on the first socket and from 100 on the second one, a-2 from 50 on the first one.
    let sums = task(&of(true), "a").ran_on;
    let sums = sums.iter().map(|(place, time)| format!("{place}={time}")).collect::<Vec<_>>();
    assert_eq!(sums, ["llc0=190000", "llc1=100000", "node0=190000", "node1=100000"]);
    assert!((metric(&of(true), "a run_node1_share") - 100.0 / 290.0).abs() < 1e-9);
    assert!(of(false).metrics_by_name().iter().all(|(name, _)| !name.ends_with("node1_share")));
}

/// A quota of 20 us each 100 us, of which 90 us of 200 are used. Its group is throttled on CPU 0 from 40 to 100 and on CPU 1 from 60 to
/// 140: for 100 us on any of them.
#[test]
fn quotas_give_shares_of_time_and_of_themselves() {
    let system = System {
        groups: ["/\t1\t-\t-\t-\t-\tcpu\t", "/g\t43\t100\t20 100\t0"].map(String::from).to_vec(),
        members: vec![(Pid(11), "/g".to_string()), (Pid(12), "/g".to_string())],
        ..System::default()
    };
    let story = "
    idle-0   0 d..2.   0 switch  idle:0 R ==> a-1:11
    idle-0   1 d..2.  10 switch  idle:0 R ==> a-2:12
    a-1-11   0 d..2.  40 throttle_cfs_rq cg=43 cpu=0
    a-1-11   0 d..2.  40 switch  a-1:11 R ==> idle:0
    a-2-12   1 d..2.  60 throttle_cfs_rq cg=43 cpu=1
    a-2-12   1 d..2.  60 switch  a-2:12 R ==> idle:0
    idle-0   0 d..2. 100 unthrottle_cfs_rq cg=43 cpu=0
    idle-0   0 d..2. 140 unthrottle_cfs_rq cg=43 cpu=1
";
    let counts = counts_of(story, &system, NamesWanted::all(), (0, 200));
    let near = |name: &str, expected: f64| {
        let found = metric(&counts, name);
        assert!((found - expected).abs() < 1e-9, "{name}: {found}, not {expected}");
    };
    near("/g throttled_ns_per_s", 140_000.0 / 200e-6);
    near("/g throttled_share", 0.5);
    near("/g quota_used_share", 90.0 / 40.0);
    let mut twice = counts.clone();
    twice.merge(&counts);
    assert!((metric(&twice, "/g throttled_share") - 0.5).abs() < 1e-9);
    assert!((metric(&twice, "/g quota_used_share") - 90.0 / 40.0).abs() < 1e-9);
}

/// A workload that has the name of its tasks is told once; where other tasks have that name, too, it is marked.
#[test]
fn a_workload_and_a_task_of_one_name_are_told_apart() {
    let names = |members: &[i32]| {
        let mut metrics = Metrics::new(4, Ns::ZERO).by_name(NamesWanted::all(), None);
        members.iter().for_each(|&pid| metrics.member(Pid(pid), "a"));
        feed(STORY, &mut metrics);
        let counts = metrics.into_counts(Ns::from_us(200));
        let slowdowns = counts.metrics_by_name().into_iter().filter(|(name, _)| name.ends_with(" slowdown"));
        slowdowns.map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[11, 12]), ["a slowdown", "b slowdown"]);
    assert_eq!(names(&[11]), ["workload:a slowdown", "a slowdown", "b slowdown"]);
}

/// The sums over all names of tasks are the machine's, in recordings with holes and without.
#[test]
fn sums_by_name_are_the_machines() {
    for file in ["perf-hackbench.data", "recordings/6.12-nice-2/trace.txt.zst"] {
        let path = format!("{}/../../testdata/{file}", env!("CARGO_MANIFEST_DIR"));
        let mut reach = (None, Ns::ZERO, 0);
        let mut extent = fairlab_event::sink_fn(|event: &fairlab_event::Event<'_>| {
            if !event.kind.is_task_record() {
                reach = (reach.0.or(Some(event.time)), event.time, reach.2.max(event.cpu.index() + 1));
            }
        });
        let read = |sink: &mut dyn Sink| {
            // A tick of the second one's clock is 1 ns.
            let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
            fairlab_trace::read_path(path.as_ref(), &options, sink).expect("read");
        };
        read(&mut extent);
        drop(extent);
        let (Some(start), end, cpus) = reach else { panic!("{file}: no events") };
        let mut metrics = Metrics::new(cpus, start).recorded().by_name(NamesWanted::all(), None);
        read(&mut metrics);
        let counts = metrics.into_counts(end);
        let mut sums = NameCounts::default();
        counts.by_name.values().for_each(|name| sums.merge(name));
        assert_eq!(sums.wakeup_latency, counts.wakeup_latency, "{file}");
        assert_eq!(
            (sums.involuntary_switches, sums.migrations),
            (counts.involuntary_switches, counts.migrations),
            "{file}"
        );
        assert!(counts.wakeup_latency.total() > 100 && counts.by_name.len() > 3, "{file}");
        assert_eq!(sums.run_ns, counts.cpu_ns - counts.idle_ns, "{file}");
    }
}

/// What is asked of nothing is nothing.
#[test]
fn without_names_nothing_is_counted_by_name() {
    let counts = counts_of(STORY, &System::default(), NamesWanted::default(), (0, 200));
    assert_eq!(counts.by_name, BTreeMap::new());
    assert_eq!(counts.all_metrics().len(), counts.metrics().len());
    let machine = Metrics::new(4, Ns::ZERO).by_name(NamesWanted::all(), None);
    assert!(machine.into_counts(Ns(1)).by_name.is_empty());
}
