//! Stories in ftrace lines, and what their tasks did.

use super::*;
use crate::testbed::feed;

/// What the tasks of a story did, as lines: `name cpu pinned forked: deeds`.
fn told(story: &str) -> Vec<String> {
    let mut behaviours = Behaviours::default();
    feed(story, &mut behaviours);
    let tasks = behaviours.finish().expect("switches").tasks;
    let line = |task: &Behaviour| {
        let deed = |deed: &BehaviourStep| match *deed {
            BehaviourStep::Run(work) => format!("run {}", work.0 / 1_000),
            BehaviourStep::Wake(whom) => format!("wake {}", tasks[whom as usize].comm),
            BehaviourStep::Block => "block".to_string(),
            BehaviourStep::SleepUntil { time, uninterruptible } => {
                format!("{} {}", if uninterruptible { "device" } else { "until" }, time.0 / 1_000)
            }
            BehaviourStep::SleepFor { length, uninterruptible, .. } => {
                format!("{} {}", if uninterruptible { "io" } else { "for" }, length.0 / 1_000)
            }
            BehaviourStep::Fork(child) => format!("fork {}", tasks[child as usize].comm),
            BehaviourStep::Prio(prio) => format!("prio {prio}"),
        };
        let place = match (task.forked, task.cpu, task.pinned) {
            (true, None, None) => "new".to_string(),
            (false, Some(cpu), None) => format!("cpu {cpu}"),
            (_, cpu, pinned) => format!("{cpu:?} {pinned:?}"),
        };
        let deeds = task.deeds.iter().map(deed).collect::<Vec<_>>().join(", ");
        format!("{} {} {place}: {deeds}", task.comm, task.prio)
    };
    tasks.iter().map(line).collect()
}

/// b sleeps until a wakes it; a is woken by a timer, once inside of another task.
#[test]
fn sleeps_end_by_tasks_and_by_interrupts() {
    let story = "
        <idle>-0  0 d.h2. 100 waking a:65 on 0
        <idle>-0  0 dNh2. 100 wakeup a:65 on 0
        <idle>-0  0 d..2. 110 switch swapper/0:0 R ==> a:65
        a-65      0 d..2. 150 waking b:66 on 1
        a-65      0 d..2. 151 wakeup b:66 on 1
        <idle>-0  1 d..2. 155 switch swapper/1:0 R ==> b:66@110
        a-65      0 d..2. 170 switch a:65 D ==> swapper/0:0
        b-66      1 d.h2. 300 waking a:65 on 0
        <idle>-0  0 dNh2. 302 wakeup a:65 on 0
        <idle>-0  0 d..2. 310 switch swapper/0:0 R ==> a:65
        b-66      1 d..2. 405 switch b:66@110 S ==> swapper/1:0
        a-65      0 d..2. 410 switch a:65 S ==> swapper/0:0";
    assert_eq!(
        told(story),
        [
            "a 120 cpu 0: until 0, run 40, wake b, run 20, io 130, run 100",
            "b 120 cpu 1: block, prio 110, run 250",
        ]
    );
}

/// A preempted task's computation goes on; what runs when the trace begins has run since then, and what runs at its end too.
#[test]
fn computation_is_counted_across_preemptions_and_at_both_ends() {
    let story = "
        a-65      0 d.h2. 100 waking b:66 on 0
        a-65      0 dNh2. 101 wakeup b:66 on 0
        a-65      0 d..2. 110 switch a:65 R ==> b:66
        b-66      0 d..2. 160 switch b:66 S ==> a:65
        a-65      0 d..2. 200 runtime a:65 5";
    assert_eq!(told(story), ["b 120 cpu 0: until 0, run 50", "a 120 cpu 0: run 50"]);
}

/// A task that is woken while it is about to sleep: the sleep is there, at the place of its work where it would have begun.
#[test]
fn a_wakeup_that_comes_before_the_sleep_is_kept() {
    let story = "
        <idle>-0  0 d..2. 100 switch swapper/0:0 R ==> a:65
        <idle>-0  1 d..2. 100 switch swapper/1:0 R ==> b:66
        a-65      0 d..2. 150 waking b:66 on 1
        a-65      0 d..2. 151 wakeup b:66 on 1
        b-66      1 d..2. 190 switch b:66 S ==> swapper/1:0
        a-65      0 d..2. 190 switch a:65 S ==> swapper/0:0";
    assert_eq!(told(story), ["a 120 cpu 0: run 50, wake b, run 40", "b 120 cpu 1: run 50, block, run 40"]);
}

#[test]
fn tasks_are_created_by_those_that_create_them() {
    let story = "
        <idle>-0  0 d..2. 100 switch swapper/0:0 R ==> a:65
        a-65      0 d..2. 120 wakeup_new c:70 on 1
        <idle>-0  1 d..2. 125 switch swapper/1:0 R ==> c:70
        c-70      1 d..2. 145 switch c:70 S ==> swapper/1:0
        a-65      0 d..2. 150 waking c:70 on 1
        a-65      0 d..2. 150 switch a:65 S ==> swapper/0:0";
    assert_eq!(told(story), ["a 120 cpu 0: run 20, fork c, run 30, wake c", "c 120 new: run 20, block"]);
}

/// Over the loopback device each is woken in the other's soft interrupt; a packet from outside comes in that of anybody.
#[test]
fn messages_in_soft_interrupts_are_the_senders_only_between_partners() {
    let story = "
        <idle>-0  0 d..2. 100 switch swapper/0:0 R ==> a:65
        <idle>-0  1 d..2. 100 switch swapper/1:0 R ==> h:77
        a-65      0 d.s2. 110 waking b:66 on 2
        a-65      0 d.s2. 110 wakeup b:66 on 2
        <idle>-0  2 d..2. 112 switch swapper/2:0 R ==> b:66
        a-65      0 d..2. 115 switch a:65 S ==> swapper/0:0
        b-66      2 d.s2. 122 waking a:65 on 0
        b-66      2 d.s2. 122 wakeup a:65 on 0
        b-66      2 d..2. 125 switch b:66 S ==> swapper/2:0
        <idle>-0  0 d..2. 126 switch swapper/0:0 R ==> a:65
        a-65      0 d.s2. 136 waking b:66 on 2
        a-65      0 d.s2. 136 wakeup b:66 on 2
        <idle>-0  2 d..2. 138 switch swapper/2:0 R ==> b:66
        a-65      0 d..2. 140 switch a:65 S ==> swapper/0:0
        b-66      2 d..2. 148 switch b:66 S ==> swapper/2:0
        h-77      1 d.s2. 150 waking b:66 on 2
        h-77      1 d.s2. 150 wakeup b:66 on 2
        <idle>-0  2 d..2. 152 switch swapper/2:0 R ==> b:66
        b-66      2 d..2. 162 switch b:66 S ==> swapper/2:0
        h-77      1 d.s2. 170 waking b:66 on 2
        h-77      1 d.s2. 170 wakeup b:66 on 2
        <idle>-0  2 d..2. 172 switch swapper/2:0 R ==> b:66
        b-66      2 d..2. 182 switch b:66 S ==> swapper/2:0
        h-77      1 d..2. 200 switch h:77 S ==> swapper/1:0";
    assert_eq!(
        told(story),
        [
            "a 120 cpu 0: run 15, block, run 10, wake b, run 4",
            "h 120 cpu 1: run 100",
            "b 120 cpu 2: until 10, run 10, wake a, run 3, block, run 10, until 50, run 10, until 70, run 10",
        ]
    );
}

/// Stopper threads do the kernel's work: whom they wake is woken at the time, and they are not there.
#[test]
fn stoppers_are_left_out() {
    let story = "
        <idle>-0  0 d..2. 100 switch swapper/0:0 R ==> migration/0:12@0
        migration/0-12  0 d..2. 110 waking a:65 on 0
        migration/0-12  0 d..2. 110 wakeup a:65 on 0
        migration/0-12  0 d..2. 120 switch migration/0:12@0 S ==> a:65
        a-65      0 d..2. 150 waking migration/0:12@0 on 0
        a-65      0 d..2. 160 switch a:65 S ==> swapper/0:0";
    assert_eq!(told(story), ["a 120 cpu 0: until 10, run 30, run 10"]);
}

/// A recording that lacks more than a replay may leave out is refused, with both times.
#[test]
fn a_replay_computes_what_was_recorded() {
    let balance = |story: &str| {
        let mut behaviours = Behaviours::default();
        feed(story, &mut behaviours);
        behaviours.finish().expect("switches").balance()
    };
    let whole = "
        <idle>-0  0 d..2. 0 switch swapper/0:0 R ==> a:65
        a-65      0 d..2. 1000 switch a:65 S ==> swapper/0:0";
    assert_eq!(balance(whole), Ok("0.0010 s of CPU time recorded, 0.0010 s of it replayed".to_string()));
    // b has left unseen, and c come: 100 of 1100 us are unknown.
    let unknown = "
        <idle>-0  0 d..2. 0 switch swapper/0:0 R ==> a:65
        a-65      0 d..2. 1000 switch a:65 S ==> b:66
        c-67      0 d..2. 1100 switch c:67 S ==> swapper/0:0";
    let refused = balance(unknown).expect_err("a hole");
    assert!(refused.starts_with("0.0010 s to 0.0011 s of CPU time were recorded and 0.0010 s"), "{refused}");
    // The kernel has charged them.
    let charged = format!("{unknown}\n c-67 0 d..2. 1101 runtime c:67 100000");
    let refused = balance(&charged).expect_err("charged");
    assert!(refused.starts_with("0.0011 s of CPU time were recorded and 0.0010 s"), "{refused}");
    assert!(balance(&charged.replace("100000", "20000")).is_ok());
}

/// Where events were lost, a task has run up to its last event. How long a task ran that came meanwhile is unknown.
#[test]
fn lost_events_add_nothing() {
    let story = "
        <idle>-0  0 d..2. 100 switch swapper/0:0 R ==> a:65
        a-65      0 d..2. 150 runtime a:65 50
        ?-0 0 .... 160 lost 7
        b-66      0 d..2. 900 switch b:66 S ==> a:65
        a-65      0 d..2. 950 switch a:65 S ==> swapper/0:0";
    assert_eq!(told(story), ["a 120 cpu 0: run 100"]);
}

/// A task that turns up elsewhere has run until its last event where it was: that time is there once, and at its place.
#[test]
fn a_stay_that_ends_unseen_is_counted_once() {
    let begins = "
        <idle>-0  0 d..2. 100 switch swapper/0:0 R ==> a:65
        a-65      0 d..2. 130 waking b:66 on 2
        a-65      0 d..2. 150 wakeup b:66 on 2";
    let leaves = "
        a-65      1 d..2. 800 switch a:65 S ==> swapper/1:0
        <idle>-0  0 d..2. 900 switch swapper/0:0 R ==> c:67
        c-67      0 d..2. 910 switch c:67 S ==> swapper/0:0";
    let told_of =
        |story: &str| told(&format!("{begins}{story}")).into_iter().find(|line| line.starts_with("a "));
    assert_eq!(told_of(leaves).as_deref(), Some("a 120 cpu 0: run 30, wake b, run 20"));
    let is_woken = "
        <idle>-0  0 d.h2. 700 waking a:65 on 0
        a-65      1 d..2. 800 switch a:65 S ==> swapper/1:0";
    assert_eq!(told_of(is_woken).as_deref(), Some("a 120 cpu 0: run 30, wake b, run 20, until 600"));
}

#[test]
fn a_trace_without_switches_is_refused() {
    assert!(Behaviours::default().finish().is_err());
}

/// What a task does on CPU 0 that wakes up and goes to sleep at these times: first its wakeup, then its way back to sleep.
fn days(times: &[(u64, u64)]) -> String {
    let day = |&(wakes, sleeps): &(u64, u64)| {
        format!(
            "
        <idle>-0  0 d.h2. {wakes} waking a:65 on 0
        <idle>-0  0 d..2. {wakes} switch swapper/0:0 R ==> a:65
        a-65      0 d..2. {sleeps} switch a:65 S ==> swapper/0:0"
        )
    };
    told(&times.iter().map(day).collect::<String>()).remove(0)
}

#[test]
fn sleeps_that_are_alike_whenever_they_begin_are_the_tasks_own() {
    let alike = [(100, 130), (230, 330), (430, 440), (541, 600), (700, 790)];
    assert_eq!(
        days(&alike),
        "a 120 cpu 0: until 0, run 30, for 100, run 100, for 100, run 10, for 101, run 59, for 100, run 90"
    );
    // It is woken every 150 us, however long it computes.
    let by_the_clock = [(100, 130), (250, 350), (400, 410), (550, 600), (700, 790)];
    assert_eq!(
        days(&by_the_clock),
        "a 120 cpu 0: until 0, run 30, until 150, run 100, until 300, run 10, until 450, run 50, until 600, run 90"
    );
    // Three sleeps do not tell.
    assert!(days(&alike[..4]).ends_with("until 130, run 100, until 330, run 10, until 441, run 59"));
}
