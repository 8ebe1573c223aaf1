//! Small stories, summed.

use super::change::BlameChange;
use super::report::{BlameReport, CulpritRow, PlaceRow};
use super::text::{BlameText, ChangeText, headline};
use super::*;
use crate::causes::{StretchEnd, WaitKind};
use crate::task_selector::TaskSelector;
use crate::testbed;

fn plain(decision: CauseDecision, reason: &str) -> String {
    format!("{decision:?} {reason}")
}

fn options(whose: &str) -> BlameOptions {
    let whose = whose.split_whitespace().map(TaskSelector::parse).collect();
    let chosen = TraceSelector { whose, ..TraceSelector::default() };
    BlameOptions { chosen, by_thread: false, rule_words: plain }
}

fn blame_with(options: BlameOptions, allowed: &[(Pid, &[Cpu])], story: &str) -> BlameReport {
    let mut blame = Blame::new(options);
    for &(pid, cpus) in allowed {
        blame.allowed(pid, cpus);
    }
    testbed::feed(BOTH_WAKEUPS, &mut blame);
    testbed::feed(story, &mut blame);
    blame.check().expect("chosen");
    let report = blame.finish().expect("switches");
    whole(&report);
    report
}

/// A wakeup before each story: the trace has both of its events.
const BOTH_WAKEUPS: &str = "w-1 3 d..2. 0 waking w:2 on 3
     w-1 3 d..2. 0 wakeup w:2 on 3
     w-1 3 d..2. 0 switch w:1 S ==> w:2";

fn blame(whose: &str, story: &str) -> BlameReport {
    blame_with(options(whose), &[], story)
}

/// Each table comes to all waiting.
fn whole(report: &BlameReport) {
    let all = report.wait_ns;
    assert_eq!(report.culprits.iter().map(|row| row.time_ns).sum::<u64>(), all, "{report:#?}");
    assert_eq!(report.rules.iter().map(|row| row.time_ns).sum::<u64>(), all, "{report:#?}");
    assert_eq!(report.ends.iter().map(|row| row.time_ns).sum::<u64>(), all, "{report:#?}");
    assert_eq!(report.begun.iter().map(|row| row.wait_ns).sum::<u64>(), all);
    assert_eq!(report.waiters.iter().map(|row| row.wait_ns).sum::<u64>(), all);
    assert_eq!(report.culprits.iter().map(|row| row.tail_ns).sum::<u64>(), report.tail.wait_ns);
}

/// The culprits as `kind name microseconds`.
fn culprits(report: &BlameReport) -> Vec<String> {
    let line = |row: &CulpritRow| format!("{:?} {} {}", row.behind, row.runner, row.time_ns / 1000);
    report.culprits.iter().map(line).collect()
}

fn ended(report: &BlameReport, ended: StretchEnd) -> u64 {
    report.ends.iter().filter(|row| row.ended == ended).map(|row| row.time_ns / 1000).sum()
}

/// The service is woken on CPU 0, where `runner` runs until 1000, and runs until 2000.
fn behind(runner: &str) -> String {
    format!(
        "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
         x-9 0 d..2. 10 switch swapper/0:0 R ==> {runner}
         y-1 1 d..2. 100 waking api-1:70 on 0
         y-1 1 d..2. 103 wakeup api-1:70 on 0
         x-9 0 d..2. 1000 switch {runner} S ==> api-1:70
         api-1-70 0 d..2. 2000 switch api-1:70 S ==> swapper/0:0"
    )
}

#[test]
fn who_has_the_cpu_is_told_by_kind() {
    let first = |runner: &str| culprits(&blame("api", &behind(runner)))[0].clone();
    assert_eq!(first("batch-2:9"), "OtherName batch 897");
    assert_eq!(first("api-2:9"), "OwnName api 897");
    assert_eq!(first("kworker/0:1:9"), "KernelThread kworker 897");
    assert_eq!(first("pulse:9@10"), "RealTime pulse 897");
}

#[test]
fn the_wakeup_itself_and_an_idle_cpu_take_time_too() {
    let story = "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
         x-9 0 d..2. 10 switch x:9 S ==> swapper/0:0
         y-1 1 d..2. 100 waking api:70 on 0
         <idle>-0 0 dNh2. 130 wakeup api:70 on 0
         <idle>-0 0 d..2. 150 switch swapper/0:0 R ==> api:70";
    let report = blame("api", story);
    assert_eq!(culprits(&report), ["Waking  30", "Idle  20"]);
    assert_eq!(report.rules.len(), 1, "no task had the CPU: no rule kept it waiting");
    assert_eq!((report.rules[0].decision, report.wakers[0].waker.as_str()), (None, "y"));
    // Queued and run at once: neither.
    let at_once = story.replace(" 130 ", " 100 ").replace(" 150 ", " 100 ");
    assert_eq!(blame("api", &at_once).wait_ns, 0);
}

#[test]
fn another_group_and_a_quota_that_is_used_up() {
    let groups = "x-1 0 ..... 1 cgroup_mkdir root=0 id=7 level=1 path=/a
         x-1 0 ..... 3 cgroup_attach_task dst_root=0 dst_id=7 dst_level=1 dst_path=/a pid=65 comm=api
         x-1 0 d..2. 10 switch x:1 S ==> api:65\n";
    let throttled = "api-65 0 dN.2. 1000 throttle_cfs_rq cg=7 cpu=0
         api-65 0 dN.2. 1000 switch api:65 R ==> z:9
         z-9 0 d..2. 5000 unthrottle_cfs_rq cg=7 cpu=0
         z-9 0 d..2. 6000 switch z:9 S ==> api:65";
    let report = blame("api", &format!("{groups}{throttled}"));
    assert_eq!(culprits(&report), ["Throttled  4000", "OtherGroup z 1000"]);
    assert_eq!(ended(&report, StretchEnd::Unthrottled), 4000);
    let words = "Time for a group's quota: the part of these waits in which it was throttled.";
    let told = |report: &BlameReport| BlameText { report, rows: 5 }.to_string().contains(words);
    assert!(told(&report));
    // Without the quota all of it is behind z.
    let without = throttled.lines().filter(|line| !line.contains("throttle")).collect::<Vec<_>>().join("\n");
    let without = blame("api", &format!("{groups}{without}"));
    assert_eq!(culprits(&without), ["OtherGroup z 5000"]);
    assert!(!told(&without));
}

/// A reschedule that was asked for long ago, and after which the same task was picked, takes nothing from the quota's part.
#[test]
fn what_waits_for_a_quota_is_the_same_with_decisions_and_without() {
    let told = "x-1 0 ..... 1 cgroup_mkdir root=0 id=7 level=1 path=/a
         x-1 0 ..... 3 cgroup_attach_task dst_root=0 dst_id=7 dst_level=1 dst_path=/a pid=65 comm=api
         x-1 0 d..2. 10 switch x:1 S ==> api:65
         api-65 0 dN.2. 1000 throttle_cfs_rq cg=7 cpu=0
         api-65 0 dN.2. 1000 switch api:65 R ==> z:9
         z-9 0 dN.1. 1500 runtime z:9 500
         z-9 0 d..2. 1501 decided_pick cpu=0 pid=9 reasons=OnlyCandidate
         z-9 0 d.h1. 2000 decided_tick cpu=0 takes=0 reason=WithinSlice
         z-9 0 d..2. 5000 unthrottle_cfs_rq cg=7 cpu=0
         z-9 0 d..2. 6000 switch z:9 R ==> api:65";
    let untold = told.lines().filter(|line| !line.contains("decided_")).collect::<Vec<_>>().join("\n");
    for story in [told, &untold] {
        let report = blame("api", story);
        assert_eq!(culprits(&report), ["Throttled  4000", "OtherGroup z 1000"], "{story}");
        assert_eq!(report.culprits[0].stretches, 1);
    }
}

#[test]
fn interrupts_are_told_apart_from_the_task_below_them() {
    let story = "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
         b-9 0 d..2. 10 switch swapper/0:0 R ==> b:9
         y-1 1 d.h1. 20 irq_handler_entry irq=4 name=eth
         y-1 1 d.h1. 30 irq_handler_exit irq=4 ret=handled
         y-1 1 ..s1. 30 softirq_entry vec=3 [action=NET_RX]
         y-1 1 ..s1. 40 softirq_exit vec=3 [action=NET_RX]
         y-1 1 d..2. 100 waking api:70 on 0
         y-1 1 d..2. 100 wakeup api:70 on 0
         b-9 0 d.h1. 200 irq_handler_entry irq=4 name=eth
         b-9 0 d.h1. 250 irq_handler_exit irq=4 ret=handled
         b-9 0 ..s1. 260 softirq_entry vec=3 [action=NET_RX]
         b-9 0 ..s1. 500 softirq_exit vec=3 [action=NET_RX]
         b-9 0 d..2. 1000 switch b:9 S ==> api:70";
    let report = blame("api", story);
    assert_eq!(culprits(&report), ["OtherName b 610", "Interrupts  290"]);
    assert_eq!(ended(&report, StretchEnd::Slept), 900);
    let without = story.lines().filter(|line| !line.contains("irq_")).collect::<Vec<_>>().join("\n");
    assert_eq!(culprits(&blame("api", &without)), ["OtherName b 900"]);
    // How long they take is told by their ends alone.
    let begun = story.lines().filter(|line| !line.contains("_exit")).collect::<Vec<_>>().join("\n");
    assert_eq!(culprits(&blame("api", &begun)), ["OtherName b 900"]);
    // What the thread of soft interrupts handles is that thread's.
    let thread = story.replace("b:9", "ksoftirqd/0:9").replace("b-9", "ksoftirqd/0-9");
    assert_eq!(culprits(&blame("api", &thread)), ["KernelThread ksoftirqd 850", "Interrupts  50"]);
}

#[test]
fn rules_are_told_where_the_kernel_tells_its_decisions() {
    let story = "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
         b-9 0 d..2. 10 switch swapper/0:0 R ==> b:9
         b-9 0 d.h3. 1000 waking api:70 on 0
         b-9 0 d.h3. 1002 decided_preempt cpu=0 pid=70 curr_pid=9 preempt=0 reason=NotShorter
         b-9 0 d.h3. 1002 wakeup api:70 on 0
         b-9 0 d.h1. 2000 decided_tick cpu=0 takes=0 reason=WithinSlice
         b-9 0 d.h1. 4000 runtime b:9 2000000
         b-9 0 dN.1. 4001 runtime b:9 900
         b-9 0 d..2. 4004 decided_pick cpu=0 pid=8 reasons=Leftmost
         b-9 0 d..2. 4004 switch b:9 R ==> c:8
         c-8 0 d..2. 5000 switch c:8 S ==> api:70";
    let rules = |report: &BlameReport| {
        report.rules.iter().map(|row| (row.words.clone(), row.time_ns / 1000)).collect::<Vec<_>>()
    };
    let told = |words: &str, time: u64| (words.to_string(), time);
    let report = blame("api", story);
    assert_eq!(
        rules(&report),
        [
            told("Tick WithinSlice", 2000),
            told("Preempt NotShorter", 998),
            told("Pick Leftmost", 996),
            told("Pending ", 4),
            told("no task had the CPU", 2)
        ]
    );
    // A stretch under three decisions is one stretch.
    assert_eq!(report.culprits.iter().map(|row| row.stretches).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(ended(&report, StretchEnd::AtTick), 3002);
    let silent = story.lines().filter(|line| !line.contains("decided_")).collect::<Vec<_>>().join("\n");
    let silent = rules(&blame("api", &silent));
    assert_eq!(
        silent,
        [told("not told by this trace", 3994), told("Pending ", 4), told("no task had the CPU", 2)]
    );
}

#[test]
fn what_ended_a_stretch_is_told() {
    let after = |middle: &str| {
        format!(
            "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
             b-9 0 d..2. 10 switch swapper/0:0 R ==> b:9
             y-1 1 d..2. 100 waking api:70 on 0
             y-1 1 d..2. 100 wakeup api:70 on 0\n{middle}"
        )
    };
    let end = |middle: &str| blame("api", &after(middle)).ends[0].ended;
    assert_eq!(end("b-9 0 d..2. 900 switch b:9 S ==> api:70"), StretchEnd::Slept);
    assert_eq!(end("b-9 0 d..2. 900 switch b:9 X ==> api:70"), StretchEnd::Exited);
    assert_eq!(
        end("y-1 1 d..2. 900 migrate api:70 0 => 1
             y-1 1 d..2. 903 switch y:1 S ==> api:70"),
        StretchEnd::PulledByNewIdle
    );
    assert_eq!(
        end("y-1 1 d.s2. 900 migrate api:70 0 => 1
             y-1 1 d..2. 903 switch y:1 S ==> api:70"),
        StretchEnd::PulledByBalancing
    );
}

#[test]
fn another_cpu_counts_as_idle_where_the_task_may_run() {
    let story = "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
         z-2 2 d..2. 2 switch z:2 S ==> swapper/2:0
         b-9 0 d..2. 10 switch swapper/0:0 R ==> b:9
         y-1 1 d..2. 100 waking api:70 on 0
         y-1 1 d..2. 100 wakeup api:70 on 0
         y-1 1 d..2. 600 switch y:1 S ==> swapper/1:0
         b-9 0 d..2. 1000 switch b:9 S ==> api:70";
    let idle = |allowed: &[(Pid, &[Cpu])]| {
        let idle = blame_with(options("api"), allowed, story).idle;
        (idle.beside_idle_ns / 1000, idle.affinity_known.waits)
    };
    assert_eq!(idle(&[]), (900, 0), "nothing says that it may not run on CPU 2");
    assert_eq!(idle(&[(Pid(70), &[Cpu(0), Cpu(1)])]), (400, 1));
    assert_eq!(idle(&[(Pid(70), &[Cpu(0)])]), (0, 1));
    assert_eq!(idle(&[(Pid(70), &[])]), (900, 0), "an empty list tells nothing");
}

#[test]
fn wakers_are_named_with_the_waits_that_follow() {
    let report = blame("api", &behind("batch:9"));
    let waker = &report.wakers[0];
    assert_eq!((waker.waker.as_str(), waker.wakee.as_str(), waker.waits), ("y", "api", 1));
    assert_eq!((waker.wait_ns, waker.is_task), (900_000, true));
    let by_interrupt = behind("batch:9").replace("y-1 1 d..2. 100", "y-1 1 d.h2. 100");
    let report = blame("api", &by_interrupt);
    assert_eq!((report.wakers[0].waker.as_str(), report.wakers[0].is_task), ("an interrupt", false));
    // Who waits since it was preempted was not woken.
    let preempted = "b-9 0 d..2. 10 switch b:9 S ==> api:70
         api-70 0 d..2. 20 switch api:70 R ==> b:9
         b-9 0 d..2. 90 switch b:9 S ==> api:70";
    let report = blame("api", preempted);
    assert_eq!((report.wait_ns, report.wakers.len()), (70_000, 0));
    assert!(report.begun[0].wait.is_some_and(|wait| wait != WaitKind::Wakeup));
}

/// As the trigger `stacktrace` of both events prints them.
#[test]
fn call_stacks_name_where_tasks_slept_and_were_woken() {
    let story = "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
         api-70 0 d..2. 10 switch api:70 S ==> b:9
         api-70 0 d..2. 10 kernel_stack <stack trace>
         api-70 0 d..2. 10 kernel_stack => trace_event_raw_event_sched_switch
         api-70 0 d..2. 10 kernel_stack => __schedule+0x2f1/0x9e0
         api-70 0 d..2. 10 kernel_stack => schedule
         api-70 0 d..2. 10 kernel_stack => futex_wait_queue+0x65/0x90
         api-70 0 d..2. 10 kernel_stack => do_futex
         y-1 1 d..2. 100 waking api:70 on 0
         y-1 1 d..2. 100 kernel_stack <stack trace>
         y-1 1 d..2. 100 kernel_stack => try_to_wake_up
         y-1 1 d..2. 100 kernel_stack => wake_up_q
         y-1 1 d..2. 100 kernel_stack => futex_wake
         y-1 1 d..2. 103 wakeup api:70 on 0
         b-9 0 d..2. 1000 switch b:9 S ==> api:70";
    let places = |story: &str| {
        let report = blame("api", story);
        let place = |row: &PlaceRow| (row.slept_in.clone(), row.woken_in.clone(), row.wait_ns / 1000);
        report.places.iter().map(place).collect::<Vec<_>>()
    };
    let of = |slept: &str, woken: &str| vec![(slept.to_string(), woken.to_string(), 900)];
    assert_eq!(places(story), of("futex_wait_queue", "futex_wake"));
    let without =
        |what: &str| story.lines().filter(|line| !line.contains(what)).collect::<Vec<_>>().join("\n");
    assert_eq!(places(&without("100 kernel_stack")), of("futex_wait_queue", ""));
    assert_eq!(places(&without("10 kernel_stack")), of("", "futex_wake"));
    assert!(places(&without("kernel_stack")).is_empty());
    let report = blame("api", story);
    assert!(BlameText { report: &report, rows: 9 }.to_string().contains("futex_wait_queue  futex_wake"));
}

/// A hundred short waits behind one task, and a long one behind another.
#[test]
fn the_longest_waits_have_culprits_of_their_own() {
    let mut story = "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1\n".to_string();
    for round in 0..100 {
        let from = 1000 * round + 10;
        story += &format!(
            "b-9 0 d..2. {from} switch swapper/0:0 R ==> b:9
             y-1 1 d..2. {} waking api:70 on 0
             y-1 1 d..2. {} wakeup api:70 on 0
             b-9 0 d..2. {} switch b:9 S ==> api:70
             api-70 0 d..2. {} switch api:70 S ==> swapper/0:0\n",
            from + 10,
            from + 10,
            from + 60,
            from + 80
        );
    }
    story += "k-9 0 d..2. 200000 switch swapper/0:0 R ==> kworker/0:1:8
         y-1 1 d..2. 200010 waking api:70 on 0
         y-1 1 d..2. 200010 wakeup api:70 on 0
         k-9 0 d..2. 203010 switch kworker/0:1:8 I ==> api:70";
    let report = blame("api", &story);
    assert_eq!(culprits(&report), ["OtherName b 5000", "KernelThread kworker 3000"]);
    assert_eq!((report.waits, report.tail.waits, report.tail.wait_ns / 1000), (101, 101, 8000));
    // The longest two of 101 are the long one and all short ones, which are alike; of 100 it is one.
    let from_1 = story.splitn(6, '\n').collect::<Vec<_>>();
    let story = format!("{}\n{}", from_1[0], from_1[5]);
    let report = blame("api", &story.replacen("b-9 0 d..2. 1090", "b-9 0 d..2. 1091", 1));
    assert_eq!((report.waits, report.tail.waits), (100, 1));
    let tail = report.culprits.iter().map(|row| row.tail_ns / 1000).collect::<Vec<_>>();
    assert_eq!(tail, [0, 3000]);
    let sentence = headline(&report);
    assert!(sentence.starts_with("api waited 7.95 ms in 100 waits, "), "{sentence}");
    assert!(sentence.contains("62 % behind 'b', 38 % behind the kernel thread 'kworker'"), "{sentence}");
    assert!(
        sentence.contains("its 1 longest waits (1.0 %, those of about 3.00 ms and more) 100 %"),
        "{sentence}"
    );
    assert!(sentence.ends_with("100 % behind the kernel thread 'kworker'."), "{sentence}");
}

#[test]
fn threads_are_told_apart_on_demand() {
    let story = behind("batch-2:9");
    let names = |by_thread: bool| {
        let report = blame_with(BlameOptions { by_thread, ..options("api") }, &[], &story);
        (report.culprits[0].runner.clone(), report.waiters[0].waiter.clone())
    };
    assert_eq!(names(false), ("batch".to_string(), "api".to_string()));
    assert_eq!(names(true), ("batch-2:9".to_string(), "api-1:70".to_string()));
}

#[test]
fn only_waits_count_that_are_chosen_and_end_within() {
    let story = behind("batch:9");
    assert_eq!(blame("batch", &story).waits, 0);
    let time = "0.0005..0.0009".parse().expect("a time");
    let chosen = TraceSelector { whose: vec![TaskSelector::parse("api")], time };
    let mut blame = Blame::new(BlameOptions { chosen, ..options("") });
    testbed::feed(&story, &mut blame);
    let report = blame.finish().expect("switches");
    assert_eq!((report.waits, report.still_waiting.waits), (0, 1));
    assert_eq!(report.still_waiting.wait_ns, 800_000);
}

#[test]
fn waits_that_latency_counts_otherwise_are_told() {
    let woken_while_running = "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
         b-9 0 d..2. 10 switch b:9 S ==> api:70
         y-1 1 d..2. 20 waking api:70 on 0
         api-70 0 d..2. 30 switch api:70 S ==> b:9
         y-1 1 d..2. 32 wakeup api:70 on 0
         b-9 0 d..2. 90 switch b:9 S ==> api:70";
    let report = blame("api", woken_while_running);
    assert_eq!((report.wait_ns, report.woken_while_running.wait_ns), (60_000, 60_000));
    assert_eq!(report.latency_wait_ns, 0);
    assert!(report.notices.iter().any(|notice| notice.contains("while they still ran")));
    // Up to v5.17 a task may leave as R and have blocked.
    let blocked = "y-1 1 d..2. 1 switch swapper/1:0 R ==> y:1
         b-9 0 d..2. 10 switch b:9 S ==> api:70
         api-70 0 d..2. 30 switch api:70 R ==> b:9
         y-1 1 d..2. 50 waking api:70 on 0
         y-1 1 d..2. 50 wakeup api:70 on 0
         b-9 0 d..2. 90 switch b:9 S ==> api:70";
    let report = blame("api", blocked);
    assert_eq!((report.wait_ns, report.left_as_runnable.wait_ns), (40_000, 20_000));
    assert_eq!(report.latency_wait_ns, 60_000);
}

#[test]
fn waits_across_holes_are_counted_apart() {
    let story = behind("batch:9")
        .replace("         x-9 0 d..2. 1000", "         y-1 1 d..2. 500 lost 7\n         x-9 0 d..2. 1000");
    let report = blame("api", &story);
    assert_eq!((report.waits, report.waits_across_losses, report.is_empty()), (0, 1, false));
    assert!(
        BlameText { report: &report, rows: 10 }.to_string().contains("1 waits in which events are missing")
    );
}

#[test]
fn two_traces_differ_by_culprit() {
    let before = blame("api", &behind("batch:9"));
    let after = blame("api", &behind("kworker/0:1:9").replace(" 1000 ", " 1900 "));
    let change = BlameChange::between([&before, &after]);
    let rows =
        change.culprits.iter().map(|row| (row.words.as_str(), row.added_ns.round())).collect::<Vec<_>>();
    // It ran 1 ms before and 0.1 ms after.
    assert_eq!(
        rows,
        [
            ("kworker (kernel thread)", 17_970_000_000.0),
            ("batch", -897_000_000.0),
            ("the way from its wakeup to a queue", 27_000_000.0)
        ]
    );
    assert!(change.by_run_time);
    assert_eq!(change.total.before_ns_per_wait, Some(900_000.0));
    let text = ChangeText { sides: [("a", &before), ("b", &after)], change: &change, rows: 1 }.to_string();
    let (lead, sides) = text.split_once('\n').expect("lines");
    assert!(sides.starts_with("Before (a): api waited 900.0 us in 1 waits"), "{text}");
    assert!(lead.ends_with(&format!(": {}.", change.culprits[0].words)), "{lead}");
    let added = format!(
        "{:+.3} ms of waiting in each second that the tasks ran, of it ",
        change.total.added_ns / 1e6
    );
    assert!(lead.starts_with(&added), "{lead}");
    assert!(text.contains("… and 2 more") && text.contains("this is no verdict"), "{text}");
    let same = BlameChange::between([&before, &before]);
    assert!(same.culprits.iter().all(|row| row.added_ns == 0.0));
}

#[test]
fn a_trace_without_switches_has_no_answer() {
    let mut blame = Blame::new(options(""));
    testbed::feed("y-1 1 d..2. 100 waking api:70 on 0", &mut blame);
    let missing = blame.finish().expect_err("no switch");
    assert!(
        missing.to_string().starts_with("this trace has no sched_switch events; blame needs"),
        "{missing}"
    );
}
