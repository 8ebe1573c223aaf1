//! Small stories and their sums.

use super::*;
use crate::testbed;

fn summarize(options: SummaryOptions, story: &str) -> SummaryReport {
    let mut summary = TraceSummary::new(options);
    testbed::feed(story, &mut summary);
    summary.finish().expect("switches")
}

fn us(time: Ns) -> u64 {
    time.0 / 1000
}

#[track_caller]
fn check_unconserved(options: SummaryOptions, story: &str, expected: &[(&str, u64, u64)]) {
    let report = summarize(options, story);
    let found: Vec<(&str, u64, u64)> = report
        .unconserved
        .iter()
        .map(|part| (part.scope.name.as_str(), us(part.time), us(part.cpu_time)))
        .collect();
    assert_eq!(found, expected);
}

/// CPU 1 idles from 0 on; on CPU 0 `b` waits behind `a` from 101 to 301. Before the first sched_wakeup has come a woken
/// task is taken for queued.
const STACKED: &str = "<idle>-0 1 d..2. 0 switch c:67 S ==> swapper/1:0
    a-65 0 d..2. 0 switch swapper/0:0 R ==> a:65
    a-65 0 d..3. 101 waking b:66 on 0
    a-65 0 d..3. 102 wakeup b:66 on 0
    a-65 0 d..2. 301 switch a:65 R+ ==> b:66
    b-66 0 d..2. 501 switch b:66 S ==> a:65
    a-65 0 d..2. 1000 switch a:65 S ==> swapper/0:0";

#[test]
fn waits_are_told_apart_by_how_they_began() {
    let report = summarize(SummaryOptions::default(), STACKED);
    let WaitSpreads { wakeups, preemptions, crossed, .. } = &report.all;
    assert_eq!((wakeups.total(), wakeups.max(), crossed), (1, Some(200_000), &0));
    assert_eq!((preemptions.total(), preemptions.max()), (1, Some(200_000)));
    let row = |name: &str| report.tasks.iter().find(|task| task.comm == Comm::from(name)).expect(name);
    assert_eq!((us(row("a").run), us(row("b").run)), (301 + 499, 200));
    assert_eq!((row("b").waits.wakeups.total(), row("b").waits.preemptions.total()), (1, 0));
    let switches = report.switches;
    assert_eq!((switches.voluntary(), switches.involuntary(), switches.preempted_in_kernel), (3, 1, 1));
}

#[test]
fn depth_and_idleness_are_weighted_by_time() {
    let report = summarize(SummaryOptions::default(), STACKED);
    let at: Vec<u64> = report.depths.at.iter().map(|&time| us(time)).collect();
    // CPU 1 is empty for 1000 us; on CPU 0 two tasks are runnable from 101 to 501.
    assert_eq!(at, [1000, 600, 400]);
    assert_eq!((report.depths.max, report.depths.mean), (2, (600.0 + 2.0 * 400.0) / 2000.0));
    assert_eq!(report.idle_share(), Some(0.5));
    let cpus: Vec<_> = report.cpus.iter().map(|cpu| (us(cpu.observed), us(cpu.idle), cpu.switches)).collect();
    assert_eq!(cpus, [(1000, 0, 4), (1000, 1000, 1)]);
}

#[test]
fn a_wait_beside_an_idle_cpu_is_unconserved_where_both_belong() {
    let lone = |cpu| vec![Cpu(cpu)];
    // b waits from 101 to 301, then a from 301 to 501.
    check_unconserved(SummaryOptions::default(), STACKED, &[("machine", 400, 400)]);
    let apart =
        SummaryOptions { llcs: vec![lone(0), lone(1)], nodes: vec![vec![Cpu(0), Cpu(1)]], places: None };
    check_unconserved(
        apart,
        STACKED,
        &[("machine", 400, 400), ("node 0", 400, 400), ("llc 0", 0, 0), ("llc 1", 0, 0)],
    );
}

#[test]
fn a_thread_of_one_cpu_leaves_no_work_undone_elsewhere() {
    let pinned = STACKED.replace("b:66", "kworker/0:1:66").replace("b-66", "kworker/0:1-66");
    // a waits behind the kworker from 301 to 501 and might run elsewhere.
    check_unconserved(SummaryOptions::default(), &pinned, &[("machine", 200, 200)]);
}

#[test]
fn a_cpu_about_to_run_a_task_is_not_idle() {
    let story = "<idle>-0 1 d..2. 0 switch c:67 S ==> swapper/1:0
        a-65 0 d..2. 0 switch swapper/0:0 R ==> a:65
        a-65 0 d..3. 100 waking b:66 on 1
        a-65 0 d..3. 101 wakeup b:66 on 1
        <idle>-0 1 d..2. 150 switch swapper/1:0 R ==> b:66
        a-65 0 d..2. 1000 switch a:65 S ==> swapper/0:0";
    check_unconserved(SummaryOptions::default(), story, &[("machine", 0, 0)]);
}

#[test]
fn migrations_are_counted_by_cause() {
    let report = summarize(
        SummaryOptions::default(),
        "a-65 0 d..2. 0 switch swapper/0:0 R ==> a:65
         a-65 0 d..3. 10 waking b:66 on 0
         a-65 0 d..3. 11 migrate b:66 0 => 1
         a-65 0 d..3. 12 wakeup b:66 on 1
         a-65 0 d..3. 13 wakeup_new c:67 on 2
         a-65 0 d..3. 14 wakeup_new d:68 on 0
         x-70 3 d..2. 15 migrate d:68 0 => 3
         <idle>-0 4 d.s2. 16 migrate d:68 3 => 4
         <idle>-0 4 d.s2. 17 migrate d:68 4 => 4",
    );
    let expected = Migrations { wakeup: 1, fork: 1, new_idle: 1, softirq: 1, ..Migrations::default() };
    assert_eq!(report.migrations, expected);
    assert_eq!(
        (report.migrations.total(), report.migrations.balance()),
        (3, 2),
        "a new task is placed, not moved"
    );
}

#[test]
fn what_is_not_over_or_was_interrupted_by_a_loss_is_not_measured() {
    let report = summarize(
        SummaryOptions::default(),
        "a-65 0 d..2. 0 switch b:66 S ==> a:65
         a-65 0 d..3. 10 waking b:66 on 0
         a-65 0 d..3. 11 wakeup b:66 on 0
         x 1 - 15 lost 3
         a-65 0 d..2. 20 switch a:65 R+ ==> b:66
         b-66 0 d..3. 30 waking c:67 on 0
         b-66 0 d..3. 90 wakeup d:68 on 1",
    );
    assert_eq!((report.all.wakeups.total(), report.all.crossed, report.losses), (0, 1, 1));
    let waiting: Vec<_> = report
        .censored
        .iter()
        .map(|wait| (wait.comm.to_str().into_owned(), us(wait.so_far), wait.cpu, wait.crossed_loss))
        .collect();
    let at = |name: &str, so_far, cpu: Option<u32>| (name.to_string(), so_far, cpu.map(Cpu), false);
    assert_eq!(waiting, [at("a", 70, Some(0)), at("c", 60, None), ("d".to_string(), 0, Some(Cpu(1)), true)]);
}

#[test]
fn the_overall_block_is_schbenchs() {
    let report = summarize(SummaryOptions::default(), STACKED);
    let text = text::SummaryText { report: &report, rows: 20 }.to_string();
    let block: Vec<&str> = text.lines().skip(2).take(9).collect();
    assert_eq!(
        block,
        [
            "Wakeup latency percentiles (usec) runtime 0 (s) (1 total samples)",
            "\\t 50.0th: 200 (1 samples)",
            "\\t 75.0th: 200 (0 samples)",
            "\\t 90.0th: 200 (0 samples)",
            "\\t 95.0th: 200 (0 samples)",
            "\\t*99.0th: 200 (0 samples)",
            "\\t 99.5th: 200 (0 samples)",
            "\\t 99.9th: 200 (0 samples)",
            "\\t min=200, max=200",
        ]
        .map(|line| line.replace("\\t", "\t"))
    );
}

#[test]
fn a_trace_without_switches_has_no_answer() {
    let mut summary = TraceSummary::new(SummaryOptions::default());
    testbed::feed("a-65 0 d..3. 10 waking b:66 on 0", &mut summary);
    let missing = summary.finish().expect_err("no switch").to_string();
    assert!(
        missing.starts_with("this trace has no sched_switch events; summary needs sched_switch and"),
        "{missing}"
    );
}

#[test]
fn what_is_missing_and_what_is_assumed_is_said() {
    let report = summarize(
        SummaryOptions::default(),
        "a-65 0 d..2. 0 switch b:66 S ==> a:65\na-65 0 d..2. 9 switch c:67 S ==> a:65",
    );
    let notices = report.notices.join("\n");
    for part in [
        "no sched_waking or sched_wakeup events: there are no wakeup latencies",
        "no sched_migrate_task events: migrations are not counted",
        "does not tell the topology: the machine is taken as one cache domain",
        "1 switches do not fit the one before on their CPU",
    ] {
        assert!(notices.contains(part), "{part}: {notices}");
    }
}

/// A task waited 400 us for its group's quota; the group was throttled for another 150 us, when nobody waited.
#[test]
fn waits_for_a_quota_and_throttled_time_are_told_apart() {
    let story = "x-1 0 ..... 1 cgroup_mkdir root=0 id=7 level=1 path=/g
        x-1 0 ..... 3 cgroup_attach_task dst_root=0 dst_id=7 dst_level=1 dst_path=/g pid=66 comm=b
        x-1 0 d..2. 10 switch x:1 S ==> b:66
        b-66 0 dN.2. 100 throttle_cfs_rq cg=7 cpu=0
        b-66 0 dN.2. 100 switch b:66 R ==> a:65
        a-65 0 d..2. 500 unthrottle_cfs_rq cg=7 cpu=0
        a-65 0 d..2. 600 switch a:65 S ==> b:66
        b-66 0 d..2. 700 switch b:66 S ==> swapper/0:0
        swapper/0-0 0 d..2. 750 throttle_cfs_rq cg=7 cpu=0
        swapper/0-0 0 d..2. 900 unthrottle_cfs_rq cg=7 cpu=0";
    let rows = |text: &str, title: &str| {
        let table = text.lines().skip_while(|line| !line.starts_with(title)).skip(1);
        let table = table.take_while(|line| !line.is_empty());
        table.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let text = |story: &str| {
        text::SummaryText { report: &summarize(SummaryOptions::default(), story), rows: 20 }.to_string()
    };
    let told = text(story);
    let names = rows(&told, "Sums by name");
    assert!(names[0].ends_with("preempted p99 max for quota"), "{told}");
    let of = |rows: &[String], name: &str| {
        rows.iter().find(|row| row.starts_with(name)).unwrap_or_else(|| panic!("{name}: {told}")).clone()
    };
    assert!(of(&names, "b ").ends_with(" 0.400"), "{told}");
    assert!(of(&names, "for quota: the part of their waits").ends_with("blame sums the same"), "{told}");
    let groups = rows(&told, "Sums by group");
    assert!(groups[0].ends_with("for quota throttled"), "{told}");
    assert!(of(&groups, "/g ").ends_with(" 0.400 0.550"), "{told}");
    assert!(of(&groups, "throttled: how long the group was").contains("whether or not"), "{told}");
    // Where nothing is known of quotas, no column stands for them.
    let without =
        story.lines().filter(|line| !line.contains("throttle_cfs_rq")).collect::<Vec<_>>().join("\n");
    assert!(!text(&without).contains("quota") && !text(&without).contains("throttled"), "{}", text(&without));
}
