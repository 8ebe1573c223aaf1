//! Traces with holes, as users have them: what is across a hole is unknown.

use fairlab_analysis::explain::{Explain, ExplainOptions};
use fairlab_analysis::latency::{Latency, LatencyOptions, LatencyTable};
use fairlab_analysis::summary::{SummaryOptions, SummaryReport, TraceSummary};
use fairlab_event::{Comm, Ns};
use fairlab_trace::{ReadOptions, ftrace_text};

fn summarized(text: &str) -> SummaryReport {
    let mut summary = TraceSummary::new(SummaryOptions::default());
    ftrace_text::read(text.as_bytes(), &ReadOptions::default(), &mut summary).expect("a trace");
    summary.finish().expect("switches")
}

fn ran(report: &SummaryReport, comm: &str) -> u64 {
    let named = report.comms.iter().find(|row| row.comm == Comm::from(comm));
    named.map_or(0, |row| row.run.0)
}

const LATE_BUFFER: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 10/5000   #P:2
#
            feed-100     [000] d..2.    50.000100: sched_waking: comm=eater pid=200 prio=120 target_cpu=001
            feed-100     [000] d..2.    50.000102: sched_wakeup: comm=eater pid=200 prio=120 target_cpu=001
            feed-100     [000] d..2.    50.000110: sched_switch: prev_comm=feed prev_pid=100 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
##### CPU 1 buffer started ####
           other-300     [001] d..2.    50.900000: sched_switch: prev_comm=other prev_pid=300 prev_prio=120 prev_state=S ==> next_comm=eater next_pid=200 next_prio=120
           eater-200     [001] d..2.    50.900500: sched_switch: prev_comm=eater prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

#[test]
fn before_a_late_buffer_nothing_is_known() {
    let report = summarized(LATE_BUFFER);
    assert_eq!((report.all.wakeups.total(), report.all.crossed), (0, 1));
    assert_eq!((ran(&report, "other"), ran(&report, "eater")), (0, 500_000));
    let observed: Vec<u64> = report.cpus.iter().map(|cpu| cpu.observed.0 / 1_000).collect();
    assert_eq!(observed, [900_400, 500]);
    let mut explain = Explain::new(ExplainOptions::default());
    ftrace_text::read(LATE_BUFFER.as_bytes(), &ReadOptions::default(), &mut explain).expect("a trace");
    assert!(explain.finish().expect("switches").stories.is_empty());
}

const ONE_PROCESS: &str = "\
          python-500 [000]   900.000000: sched_switch: prev_comm=python prev_pid=500 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
          python-501 [001]   900.000100: sched_waking: comm=python pid=500 prio=120 target_cpu=000
          python-500 [000]   900.000900: sched_switch: prev_comm=python prev_pid=500 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
          python-501 [001]   900.001000: sched_waking: comm=helperd pid=70 prio=120 target_cpu=000
          python-500 [000]   900.051000: sched_switch: prev_comm=python prev_pid=500 prev_prio=120 prev_state=S ==> next_comm=helperd next_pid=70 next_prio=120
          python-501 [001]   900.052000: sched_waking: comm=python pid=500 prio=120 target_cpu=000
";

#[test]
fn a_recording_of_one_process_is_named_with_the_option_that_is_missing() {
    let report = summarized(ONE_PROCESS);
    let told: Vec<&String> =
        report.notices.iter().filter(|notice| notice.contains("perf record -a")).collect();
    assert_eq!(told.len(), 1, "{:?}", report.notices);
    assert!(told[0].contains("'python'"));
    // Nothing of what python did on CPU 0 between its switches is known.
    let task = |pid| report.tasks.iter().find(|task| task.pid == Some(fairlab_event::Pid(pid)));
    assert_eq!(task(500).expect("python").run, Ns::ZERO);
    assert_eq!(report.all.wakeups.total(), 0);
    let mut latency = Latency::new(LatencyOptions::default());
    ftrace_text::read(ONE_PROCESS.as_bytes(), &ReadOptions::default(), &mut latency).expect("a trace");
    assert_eq!(latency.finish().expect("switches").rows.iter().map(|row| row.total_delay.0).sum::<u64>(), 0);
}

#[test]
fn records_without_a_time_begin_no_trace() {
    let report = summarized(
        "            init     0 [000]     0.000000000: PERF_RECORD_MMAP2 7/7: [0x55d000000000(0x1000) @ 0 08:01 12 0]: r-xp /bin/init
            feed   100 [000]   900.000100000: sched:sched_waking: comm=eater pid=200 prio=120 target_cpu=001
         swapper     0 [001]   900.000150000: sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=eater next_pid=200 next_prio=120
           eater   200 [001]   900.010000000: sched:sched_switch: prev_comm=eater prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
",
    );
    assert_eq!((report.span().0, report.all.wakeups.max()), (9_900_000, Some(50_000)));
}

/// A task that never stops has run: its own events show it from the first on.
#[test]
fn a_task_without_a_switch_has_run() {
    let tick = |us: u64| {
        format!(
            "  hog-9 [002] d.h1. 7.{us:06}: sched_stat_runtime: comm=hog pid=9 runtime=4000000 [ns] vruntime=1 [ns]\n"
        )
    };
    let switch = |us: u64| {
        format!(
            "  a-5 [000] d..2. 7.{us:06}: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n"
        )
    };
    let text = [switch(0), tick(2_000), tick(6_000), tick(10_000), switch(12_000)].concat();
    let report = summarized(&text.replace("a-5 [000] d..2. 7.012", "a-5 [001] d..2. 7.012"));
    // The first charge reaches back to before the trace.
    assert_eq!(ran(&report, "hog"), 12_000_000);
    assert!(report.cpus[2].observed > Ns::ZERO && report.cpus[2].idle == Ns::ZERO);
}

/// A CPU of the machine that says nothing has idled, where ticks would have told; otherwise it may have.
#[test]
fn all_cpus_count_as_idle_or_unknown() {
    let text = |ticks: bool| {
        let mut text = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 9/9   #P:4\n#\n".to_string();
        for ms in 0..50 {
            if ticks {
                text.push_str(&format!(
                    "  hog-9 [000] d.h1. 7.{:06}: sched_stat_runtime: comm=hog pid=9 runtime=1000000 [ns] vruntime=1 [ns]\n",
                    ms * 1_000
                ));
            }
        }
        text + "  hog-9 [000] d..2. 7.050000: sched_switch: prev_comm=hog prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n  <idle>-0 [000] d..2. 7.050001: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=9 next_prio=120\n"
    };
    let ticking = summarized(&text(true));
    let share = ticking.idle_share().expect("known");
    assert!((0.74..=0.76).contains(&share), "{share}");
    assert!(ticking.notices.iter().any(|notice| notice.contains("taken as idle")), "{:?}", ticking.notices);
    let silent = summarized(&text(false));
    let (least, most) = silent.idle_bounds().expect("known");
    assert!(least <= 0.25 && most >= 0.99, "{least} {most}");
    assert!(silent.notices.iter().any(|notice| notice.contains("idle or busy is unknown")));
}

fn latencies(text: &str) -> LatencyTable {
    let mut latency = Latency::new(LatencyOptions::default());
    ftrace_text::read(text.as_bytes(), &ReadOptions::default(), &mut latency).expect("a trace");
    latency.finish().expect("switches")
}

/// Two tasks take turns every 4 ms; behind each switch stand events of the task that leaves, if `behind` says so.
fn turns(behind: &[&str]) -> String {
    let mut text = "# tracer: nop\n#\n".to_string();
    for turn in 0..12 {
        let us = turn * 4_000;
        let [(prev, prev_pid), (next, next_pid)] = match turn % 2 {
            0 => [("a", 100), ("b", 200)],
            _ => [("b", 200), ("a", 100)],
        };
        text.push_str(&format!(
            "  {prev}-{prev_pid} [000] d..2. 1.{us:06}: sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 \
             prev_state=R ==> next_comm={next} next_pid={next_pid} next_prio=120\n"
        ));
        // The last switch ends the trace: what is behind it would be time that its task runs.
        for (event, at) in behind.iter().zip(us + 1..).filter(|_| turn < 11) {
            text.push_str(&format!("  {prev}-{prev_pid} [000] d..2. 1.{at:06}: {event}\n"));
        }
    }
    text
}

/// What the kernel does between `sched_switch` and the change of stacks changes no answer.
#[test]
fn events_of_the_task_that_leaves_change_nothing() {
    let (plain, mixed) = (
        turns(&[]),
        turns(&[
            "tlb_flush: pages:-1 reason:flush on task switch (0)",
            "x86_fpu_regs_deactivated: x86/fpu: 00000000abc load: 1 xfeatures: 3 xcomp_bv: 8000000000000003",
            "switch_mm_irqs_off <-__schedule",
        ]),
    );
    let (without, with) = (latencies(&plain), latencies(&mixed));
    assert_eq!((without.count, without.crossed, without.switch_bugs), (12, 0, 0));
    assert_eq!(without.rows.iter().map(|row| row.total_delay.0).sum::<u64>(), 44_000_000);
    assert_eq!((without.rows, without.notices), (with.rows, with.notices));
    let [without, with] = [plain, mixed].map(|text| summarized(&text));
    assert_eq!((without.all.crossed, with.all.crossed), (0, 0));
    assert_eq!(without.all.preemptions.total(), with.all.preemptions.total());
    assert_eq!(["a", "b"].map(|comm| ran(&without, comm)), ["a", "b"].map(|comm| ran(&with, comm)));
    assert!(!with.notices.iter().any(|notice| notice.contains("do not fit")), "{:?}", with.notices);
}

/// Both kinds of tasks: one that is preempted, and the idle task.
#[test]
fn who_comes_has_run_since_the_switch() {
    let report = summarized(
        "          <idle>-0     [001] d..2.     1.000000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=100 next_prio=120
          <idle>-0     [001] d..2.     1.000001: tlb_flush: pages:-1 reason:flush on task switch (0)
             app-100   [001] d..2.     1.001000: sched_wakeup: comm=hog pid=200 prio=120 target_cpu=001
             app-100   [001] d..2.     1.001500: sched_switch: prev_comm=app prev_pid=100 prev_prio=120 prev_state=R+ ==> next_comm=hog next_pid=200 next_prio=120
             app-100   [001] d..2.     1.001501: tlb_flush: pages:-1 reason:flush on task switch (0)
             app-100   [001] d..2.     1.001502: x86_fpu_regs_deactivated: x86/fpu: 00000000abc load: 1 xfeatures: 3 xcomp_bv: 8000000000000003
             hog-200   [001] d..2.     1.031500: sched_switch: prev_comm=hog prev_pid=200 prev_prio=120 prev_state=S ==> next_comm=app next_pid=100 next_prio=120
             hog-200   [001] d..2.     1.031501: tlb_flush: pages:-1 reason:flush on task switch (0)
             app-100   [001] d..2.     1.040000: sched_switch: prev_comm=app prev_pid=100 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
",
    );
    assert_eq!((ran(&report, "hog"), ran(&report, "app")), (30_000_000, 10_000_000));
    assert_eq!((report.all.wakeups.max(), report.all.preemptions.max()), (Some(500_000), Some(30_000_000)));
    assert_eq!(report.all.crossed, 0);
}

/// Why switches do not fit is said only where it is so.
#[test]
fn a_reason_for_holes_is_given_only_where_it_is_true() {
    let switch = |us: u64, cpu: u32, prev: &str, next: &str| {
        let [(prev, prev_pid), (next, next_pid)] =
            [prev, next].map(|task| task.split_once(':').expect("a pid"));
        format!(
            "  {prev}-{prev_pid} [{cpu:03}] d..2. 7.{us:06}: sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 \
             prev_state=S ==> next_comm={next} next_pid={next_pid} next_prio=120\n"
        )
    };
    let told = |switches: &[(&str, &str)]| {
        let lines = (1..).zip(switches).map(|(at, (prev, next))| switch(at * 1_000, 0, prev, next));
        let report = summarized(&lines.collect::<String>());
        report.notices.into_iter().find(|notice| notice.contains("do not fit")).unwrap_or_default()
    };
    let idle = ("swapper/0:0", "a:5");
    for (switches, said) in [
        (&[("a:5", "swapper/0:0"); 4][..], "tasks called 'a'"),
        (&[("a:5", "c:7"), ("a:6", "c:7"), ("a:5", "c:7")], "tasks called 'a'"),
        (&[("a:5", "swapper/0:0"), ("b:6", "swapper/0:0"), ("a:5", "c:7")], "none of the idle task"),
        (&[idle, ("b:6", "a:5"), ("c:7", "a:5"), ("b:6", "a:5")], "events are missing"),
        (&[("a:5", "b:6"), ("c:7", "a:5"), ("b:6", "c:7")], "events are missing"),
        (&[idle, ("a:5", "swapper/0:0"), idle], ""),
    ] {
        let notice = told(switches);
        assert!(notice.contains(said) && notice.is_empty() == said.is_empty(), "{switches:?}: {notice}");
        assert_eq!(notice.contains("perf record -a"), said.contains("task"), "{notice}");
    }
}
