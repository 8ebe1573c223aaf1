//! Small stories, told whole.

use fairlab_event::sink_fn;
use fairlab_trace::{ReadOptions, ftrace_text, read_path};

use super::*;
use crate::testbed;

fn explain(options: ExplainOptions, story: &str) -> Explanation {
    let mut explain = Explain::new(options);
    testbed::feed(story, &mut explain);
    explain.finish().expect("switches")
}

#[track_caller]
fn check(story: &str, expected: &str) -> Explanation {
    let explanation = explain(ExplainOptions { worst: 1, ..ExplainOptions::default() }, story);
    let text = explanation.to_string();
    for (line, expected) in text.lines().zip(expected.lines()) {
        assert_eq!(line, expected, "\n{text}");
    }
    assert_eq!(text, expected);
    explanation
}

/// The timer of a slice ends a:65's, between two ticks that decide nothing.
#[test]
fn slices_end_by_a_timer_of_their_own_where_one_is_seen() {
    let explanation = explain(
        ExplainOptions { worst: 2, ..ExplainOptions::default() },
        "a-65 0 d..2. 100 switch swapper/0:0 R ==> a:65
         a-65 0 d..3. 200 waking w:70 on 0
         a-65 0 d..3. 201 wakeup w:70 on 0
         a-65 0 d.h1. 2000 runtime a:65 1900000
         a-65 0 d.h1. 3100 hrtimer_expire_entry hrtimer=0x0 function=hrtick now=3100000
         a-65 0 d.h1. 3101 runtime a:65 1101000
         a-65 0 dN.1. 3105 runtime a:65 900
         a-65 0 d..2. 3106 switch a:65 R ==> w:70
         w-70 0 d.h1. 4000 hrtimer_expire_entry hrtimer=0x0 function=tick_nohz_handler now=4000000
         w-70 0 d.h1. 4001 runtime w:70 900000
         w-70 0 dN.1. 4002 runtime w:70 900
         w-70 0 d..2. 4003 switch w:70 R ==> a:65
         a-65 0 d..2. 5000 switch a:65 S ==> w:70",
    );
    let text = explanation.to_string();
    let has = |part: &str| assert!(text.contains(part), "{part}\n{text}");
    has("was preempted on the way to user mode (R) by the timer of its slice (hrtick) at 0.003101");
    has(
        "1 tick passed and did not preempt it, since its slice ends by a timer of its own (hrtick): 0.002000",
    );
    has("by the tick at 0.004001");
    let answer = answer::to_json(&explanation, &serde_json::Value::Null).to_string();
    assert!(answer.contains("\"hrtick\"") && answer.contains("\"tick\""), "{answer}");
}

/// Whatever a CPU's number is, and though nothing ended there before: nobody slept, idled or came from elsewhere.
#[test]
fn a_tick_counts_before_anything_else_on_its_cpu_did() {
    for cpu in [0, 1, 7] {
        let story = "a-65 CPU d..2. 100 switch swapper/CPU:0 R ==> a:65
             a-65 CPU d..3. 200 waking w:70 on CPU
             a-65 CPU d..3. 201 wakeup w:70 on CPU
             a-65 CPU d.h1. 2000 runtime a:65 1900000
             a-65 CPU d.h1. 4000 runtime a:65 2000000
             a-65 CPU dN.1. 4001 runtime a:65 900
             a-65 CPU d..2. 4002 switch a:65 R ==> w:70"
            .replace("CPU", &cpu.to_string());
        let text = explain(ExplainOptions { worst: 1, ..ExplainOptions::default() }, &story).to_string();
        assert!(text.contains("1 tick passed and did not preempt it: 0.002000"), "{text}");
    }
}

#[test]
fn who_ran_instead_in_order_and_why_each_left() {
    check(
        "x-1 1 d..2. 1 waking y:2 on 9
         x-1 1 d..2. 1 wakeup y:2 on 9
         a-65 0 d..2. 100 switch swapper/0:0 R ==> a:65
         <idle>-0 1 d..2. 150 switch x:1 S ==> swapper/1:0
         a-65 0 d.h3. 1000 waking w:70 on 1
         a-65 0 d.h3. 1001 migrate w:70 1 => 0
         a-65 0 d.h3. 1002 wakeup w:70 on 0
         a-65 0 d.h1. 2000 runtime a:65 1900000
         a-65 0 d.h1. 4000 runtime a:65 2000000
         a-65 0 dN.1. 4001 runtime a:65 900
         a-65 0 d..2. 4002 switch a:65 R ==> b:66
         b-66 0 d..1. 5000 runtime b:66 998000
         b-66 0 d..2. 5001 switch b:66 R ==> c:67
         <idle>-0 1 dN.2. 5500 switch swapper/1:0 R ==> d:68
         c-67 0 d..2. 6000 switch c:67 D ==> w:70
         w-70 0 d..2. 6001 switch w:70 S ==> a:65",
        "2 waits measured; the longest:

1. w:70 (prio 120) waited 5.000 ms, from 0.001000 to 0.006000, and ran on CPU 0
   Woken by an interrupt on top of a:65 on CPU 0; it had slept on CPU 1.
   At 0.001002 queued on CPU 0, where a:65 ran.
   Who ran instead:
     0.001002  a:65 ran on for 3.000 ms, was preempted on the way to user mode (R) by the tick at 0.004000
       1 tick passed and did not preempt it: 0.002000 (after 1.900 ms)
     0.004002  b:66 ran for 0.999 ms, yielded
     0.005001  c:67 ran for 0.999 ms, blocked (D)
   Idle meanwhile (affinity is not in the trace; it is taken as allowed there):
     CPU 1 for 4.498 ms, from 0.001002
   What ended it: c:67 blocked (D).

Still waiting when the trace ends: 2
   y:2 since 0.000001, for 6.000 ms so far, on CPU 9
",
    );
}

#[test]
fn moves_of_the_waiting_task_are_part_of_the_story() {
    check(
        "x-1 1 d..2. 1 wakeup y:2 on 9
         a-65 0 d..2. 100 switch w:70 R+ ==> a:65
         b-66 1 d..2. 200 switch swapper/1:0 R ==> b:66
         <idle>-0 2 d.s2. 1100 migrate w:70 0 => 1
         b-66 1 d..2. 2200 switch b:66 S ==> w:70
         a-65 0 d..2. 2300 switch a:65 S ==> swapper/0:0",
        "1 wait measured; the longest:

1. w:70 (prio 120) waited 2.100 ms, from 0.000100 to 0.002200, and ran on CPU 1
   Preempted inside the kernel (R+).
   At 0.000100 queued on CPU 0, where a:65 ran; it waited there for 1.000 ms.
   At 0.001100 pulled by the balancer in softirq context (on top of the idle task) to CPU 1, where b:66 ran; it waited there for 1.100 ms.
   Who ran instead:
     0.000100  CPU 0: a:65 ran for 1.000 ms and went on
     0.001100  CPU 1: b:66 ran on for 1.100 ms, slept (S)
   Idle meanwhile (affinity is not in the trace; it is taken as allowed there):
     CPU 2 for 1.100 ms, from 0.001100
   What ended it: it was pulled by the balancer in softirq context (on top of the idle task) from CPU 0 to CPU 1; there b:66 slept (S).

Still waiting when the trace ends: 1
   y:2 since 0.000001, for 2.299 ms so far, on CPU 9
",
    );
}

#[test]
fn equal_levels_of_virtual_time_are_compared_and_wrap() {
    let explanation = explain(
        ExplainOptions::default(),
        "a-65 0 d..2. 100 switch swapper/0:0 R ==> a:65
         a-65 0 d..2. 101 place a:65 sev=18446744073709551610 sed=2999994 sel=0 avg=18446744073709551610 min=18446744073709551610 cpu=0 nr=0
         a-65 0 d..2. 200 waking w:70 on 0
         a-65 0 d..2. 201 place w:70 sev=4 sed=3000004 sel=-5 avg=18446744073709551614 min=18446744073709551610 cpu=0 nr=1
         a-65 0 d..2. 202 wakeup w:70 on 0
         a-65 0 d..2. 300 switch a:65 S ==> w:70",
    );
    let view = explanation.stories[0].virtual_time.as_ref().expect("placements");
    assert_eq!((view.gap(), view.is_comparable()), (Some(10), Some(true)));
    let text = explanation.to_string();
    for part in [
        "w:70 was placed at 0.000201 at vruntime 4, deadline 3000004 (3.000 ms ahead), lag -5: 6 ns behind the average of \
         its queue, 18446744073709551614: not eligible",
        "w:70 stood 10 ns of virtual time behind a:65 (4 against 18446744073709551610)",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("cannot be compared"), "{text}");
}

/// Without placements (mainline, CFS) the waiting task's vruntime is known from its first accounting afterwards.
#[test]
fn the_vruntime_of_a_cfs_task_is_reckoned_back() {
    let story = "a-65 0 d..2. 100 switch swapper/0:0 R ==> a:65
         a-65 0 d..2. 190 waking x:71 on 3
         a-65 0 d..2. 192 wakeup x:71 on 3
         a-65 0 d..2. 200 waking w:70 on 0
         a-65 0 d..2. 201 runtime a:65 5000 vruntime=1000
         a-65 0 d..2. 202 wakeup w:70 on 0
         a-65 0 d..2. 300 switch a:65 S ==> w:70
         w-70 0 d.h1. 400 runtime w:70 3000 vruntime=7000
         w-70 0 d.h1. 500 runtime w:70 3000 vruntime=10000";
    let explanation = explain(ExplainOptions::default(), story);
    let view = explanation.stories[0].virtual_time.as_ref().expect("vruntimes");
    assert_eq!((view.waiter_vruntime, view.gap(), view.is_comparable()), (Some(4000), Some(3000), None));
    // A move in between gives it another one.
    let moved = story.replace("400 runtime", "350 migrate w:70 0 => 1\n w-70 1 d.h1. 400 runtime");
    let explanation = explain(ExplainOptions::default(), &moved);
    assert_eq!(explanation.stories[0].virtual_time.as_ref().and_then(|view| view.waiter_vruntime), None);
}

#[test]
fn waits_across_losses_are_counted_and_not_told() {
    let explanation = explain(
        ExplainOptions::default(),
        "a-65 0 d..2. 100 switch w:70 R+ ==> a:65
         x 1 - 150 lost 3
         a-65 0 d..2. 200 switch a:65 S ==> w:70
         w-70 0 d..2. 300 switch w:70 R+ ==> a:65
         a-65 0 d..2. 350 switch a:65 S ==> w:70",
    );
    assert_eq!((explanation.measured, explanation.crossed, explanation.stories.len()), (1, 1, 1));
    assert_eq!(explanation.stories[0].length(), Ns::from_us(50));
    assert!(explanation.to_string().contains("1 more waits are not measured: events are missing"));
}

/// Whatever happens while one task waits on and on, what is remembered has a bound.
#[test]
fn memory_does_not_grow_with_a_wait() {
    let mut explain = Explain::new(ExplainOptions::default());
    testbed::feed(
        "<idle>-0 0 d..2. 1 wakeup w:70 on 0
         <idle>-0 0 d..2. 2 switch swapper/0:0 R ==> a:65",
        &mut explain,
    );
    let switch = |prev: &str, next: &str, at: u64| {
        format!("{} 0 d..2. {at} switch {prev} R ==> {next}", prev.replace(':', "-"))
    };
    for round in 0..6_000 {
        let (one, other) = (switch("a:65", "b:66", 3 + 2 * round), switch("b:66", "a:65", 4 + 2 * round));
        testbed::feed(&format!("{one}\n{other}"), &mut explain);
    }
    testbed::feed("a-65 0 d..2. 100000 switch a:65 S ==> w:70", &mut explain);
    let explanation = explain.finish().expect("switches");
    let story = &explanation.stories[0];
    assert_eq!((story.task.pid, story.length()), (Pid(70), Ns::from_us(99_999)));
    assert!(story.incomplete && story.runs.len() <= 48);
    let (left_out, _) = story.runs_left_out;
    assert!((1000..4096).contains(&left_out), "{left_out}");
    assert!(story.to_string().contains("Part of what happened meanwhile is left out"));
}

/// Tasks that are all woken before the first of them runs: each waits longer than those before.
fn all_wait(count: u32) -> String {
    let mut text = "# tracer: nop\n".to_string();
    let line = |us: u32, event: String| {
        format!("  <idle>-0 [000] d..2. {}.{:06}: {event}\n", us / 1_000_000, us % 1_000_000)
    };
    for task in 0..count {
        let waking = format!("sched_waking: comm=t{task} pid={} prio=120 target_cpu=000", 100 + task);
        text += &line(1_000_000 + task, waking);
    }
    let mut prev = ("swapper/0".to_string(), 0, "R");
    for task in 0..count {
        let (name, pid) = (format!("t{task}"), 100 + task);
        let switch = format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> next_comm={name} next_pid={pid} next_prio=120",
            prev.0, prev.1, prev.2
        );
        text += &line(2_000_000 + 10 * task + task % 3, switch);
        prev = (name, pid, "S");
    }
    text
}

/// What [`Explain`] makes of a trace, and of the same where stories are told whole behind every `often` events: if that is 1, as
/// their waits end.
fn told_late_and_at_once(often: u64, read: impl Fn(&mut dyn Sink)) -> [Explain; 2] {
    let options = || ExplainOptions { worst: 20, ..ExplainOptions::default() };
    let (mut late, mut at_once) = (Explain::new(options()), Explain::new(options()));
    read(&mut late);
    read(&mut sink_fn(|event: &Event<'_>| {
        at_once.event(event);
        if at_once.census.total().is_multiple_of(often) {
            at_once.tell_all();
        }
    }));
    [late, at_once]
}

/// What is told later is what would have been told as the wait ended, though logs have gone on.
#[test]
fn stories_that_are_told_late_are_those_that_were_told_at_once() {
    let data =
        |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name);
    for name in
        ["perf-hackbench.data", "perf-make.data", "trace-cmd-3.1-hackbench.dat", "ftrace-7.2-probed.txt.zst"]
    {
        let options = ReadOptions { clock_hz: Some(1_000_000_000), ..ReadOptions::default() };
        let told =
            told_late_and_at_once(1, |sink| drop(read_path(&data(name), &options, sink).expect("a trace")));
        let [late, at_once] = told.map(|explain| explain.finish().expect("switches"));
        assert_eq!(late.stories.len(), 20, "{name}");
        for (late, at_once) in late.stories.iter().zip(&at_once.stories) {
            assert_eq!(late, at_once, "{name}");
        }
    }
    // More than a log keeps.
    let text = all_wait(7_000);
    let told = told_late_and_at_once(50, |sink| {
        drop(ftrace_text::read(text.as_bytes(), &ReadOptions::default(), sink).expect("a trace"));
    });
    let [late, at_once] = told.map(|explain| explain.finish().expect("switches"));
    assert_eq!(late.stories[0].incomplete, at_once.stories[0].incomplete);
    assert_eq!(late, at_once);
}

/// Each wait is longer than those before, so each is the worst for a time. None is told before it must be.
#[test]
fn waits_that_do_not_stay_the_worst_are_not_told() {
    let mut explain = Explain::new(ExplainOptions::default());
    ftrace_text::read(all_wait(4_000).as_bytes(), &ReadOptions::default(), &mut explain).expect("a trace");
    assert_eq!((explain.measured, explain.kept.len()), (4_000, 5));
    assert!(explain.kept.iter().all(|kept| kept.untold.is_some()));
    let explanation = explain.finish().expect("switches");
    assert_eq!(explanation.stories[0].task.pid, Pid(4_099));
    let runs = explanation.stories[0].runs_left_out.0 + explanation.stories[0].runs.len() as u64;
    assert_eq!(runs, 3_999);
}
