//! Small stories, and what the tracker makes of them.

use super::*;
use crate::testbed;
use fairlab_event::sink_fn;

/// What each event of a story came to, in one line each; events that change nothing are left out.
fn changes(story: &str) -> (Vec<String>, Tracker) {
    let mut tracker = Tracker::default();
    let mut lines = Vec::new();
    testbed::feed(
        story,
        &mut sink_fn(|event: &Event<'_>| {
            let change = tracker.event(event);
            check_places(&tracker);
            let line = describe(&tracker, &change);
            lines.extend((!line.is_empty()).then(|| format!("{} {line}", event.time.0 / 1000)));
        }),
    );
    (lines, tracker)
}

/// A task runs where a CPU runs it, and nowhere else.
fn check_places(tracker: &Tracker) {
    let on_cpus = (0..).zip(tracker.cpus()).filter(|(_, state)| state.known);
    let mut by_cpu: Vec<(u32, Cpu)> =
        on_cpus.filter_map(|(cpu, state)| Some((state.running?, Cpu(cpu)))).collect();
    by_cpu.sort();
    let place = |(task, known): (u32, &TrackedTask)| match known.doing {
        TrackedTaskPhase::Running(cpu) => Some((task, cpu)),
        _ => None,
    };
    assert_eq!((0..).zip(&tracker.tasks).filter_map(place).collect::<Vec<_>>(), by_cpu);
}

fn describe(tracker: &Tracker, change: &TrackerChange) -> String {
    let name = |task: &u32| tracker.task(*task).comm.to_str().into_owned();
    match change {
        TrackerChange::None => String::new(),
        TrackerChange::Lost => "lost".to_string(),
        TrackerChange::Woken { task, seemed, .. } => {
            let seemed = seemed.map_or(String::new(), |(seemed, _)| format!(", not {seemed:?}"));
            format!("woken {}{seemed}", name(task))
        }
        TrackerChange::Queued { task, cpu, begins } => {
            format!("queued {} on {cpu}{}", name(task), if *begins { " anew" } else { "" })
        }
        TrackerChange::Moved { task, from, to, cause } => {
            format!("moved {} {from} => {to} {cause:?}", name(task))
        }
        TrackerChange::Switched { cpu, left, entered, .. } => {
            let left = left.as_ref().map(|left| {
                let by = left.resched.map_or(String::new(), |resched| format!(" by {:?}", resched.by));
                format!(" -{} {:?}{by}", name(&left.task), left.how)
            });
            let entered = entered.as_ref().map(|entered| {
                let wait = entered.wait.as_ref().map(|wait| {
                    let lost = if wait.crossed_loss { " across a loss" } else { "" };
                    format!(" after {} us {:?}{lost}", wait.length.0 / 1000, wait.wait.cause)
                });
                format!(" +{}{}", name(&entered.task), wait.unwrap_or_default())
            });
            format!("switch {cpu}{}{}", left.unwrap_or_default(), entered.unwrap_or_default())
        }
    }
}

#[track_caller]
fn check(story: &str, expected: &[&str]) -> Tracker {
    let (lines, tracker) = changes(story);
    assert_eq!(lines, expected);
    tracker
}

#[test]
fn a_wakeup_is_followed_from_waking_to_running() {
    let tracker = check(
        "w-9 0 d..2. 10 switch a:65 S ==> w:9
         w-9 0 d..3. 30 waking a:65 on 0
         w-9 0 d..3. 31 migrate a:65 0 => 1
         w-9 0 d..4. 32 wakeup a:65 on 1
         <idle>-0 1 d..2. 70 switch swapper/1:0 R ==> a:65",
        &[
            "10 switch 0 -a Slept(S) +w",
            "30 woken a",
            "31 moved a 0 => 1 Wakeup",
            "32 queued a on 1",
            "70 switch 1 +a after 40 us Wakeup",
        ],
    );
    let depths: Vec<u32> = tracker.cpus().iter().map(TrackedCpu::depth).collect();
    assert_eq!(depths, [1, 1]);
}

#[test]
fn waking_a_task_that_runs_or_waits_begins_nothing() {
    check(
        "x-7 1 d..2. 5 wakeup y:8 on 1
         a-65 0 d..2. 10 switch swapper/0:0 R ==> a:65
         w-9 1 d..2. 20 waking a:65 on 0
         w-9 1 d..2. 21 wakeup a:65 on 0
         a-65 0 dN.2. 30 runtime a:65 5000
         a-65 0 d..2. 31 switch a:65 R+ ==> b:66
         w-9 1 d..2. 40 waking a:65 on 0
         b-66 0 d..2. 50 switch b:66 S ==> a:65",
        &[
            "5 queued y on 1 anew",
            "10 switch 0 +a",
            "31 switch 0 -a PreemptedInKernel by Other +b",
            "50 switch 0 -b Slept(S) +a after 19 us PreemptedInKernel",
        ],
    );
}

/// A trace without `sched_wakeup` does not tell whether a task that is woken as it runs was about to sleep, or had left already.
#[test]
fn a_waking_of_a_task_that_runs_is_its_wakeup_if_it_sleeps_then() {
    let start = "a-65 0 d..2. 10 switch swapper/0:0 R ==> a:65
         w-9 1 d..2. 20 waking a:65 on 0\n";
    let of = |rest: &str| changes(&format!("{start}{rest}")).0.split_off(1);
    let enters = "b-66 0 d..2. 60 switch b:66 S ==> a:65";
    for (rest, expected) in [
        (
            format!("a-65 0 d..2. 40 switch a:65 S ==> b:66\n{enters}"),
            &["40 switch 0 -a Slept(S) +b", "60 switch 0 -b Slept(S) +a after 20 us Wakeup"][..],
        ),
        // It slept on: another waking comes.
        (
            format!("a-65 0 d..2. 40 switch a:65 S ==> b:66\nw-9 1 d..2. 55 waking a:65 on 0\n{enters}"),
            &["40 switch 0 -a Slept(S) +b", "55 woken a", "60 switch 0 -b Slept(S) +a after 5 us Wakeup"],
        ),
        // It was preempted meanwhile, or has run anew: the waking was for what it did then.
        (
            format!(
                "a-65 0 d..2. 40 switch a:65 R+ ==> b:66\n{enters}\na-65 0 d..2. 70 switch a:65 S ==> b:66"
            ),
            &[
                "40 switch 0 -a PreemptedInKernel +b",
                "60 switch 0 -b Slept(S) +a after 20 us PreemptedInKernel",
                "70 switch 0 -a Slept(S) +b",
            ],
        ),
        // As R it left by itself or to another task, whoever was at it.
        (
            format!("a-65 0 d..2. 40 switch a:65 R ==> b:66\n{enters}"),
            &["40 switch 0 -a Runnable +b", "60 switch 0 -b Slept(S) +a after 20 us LeftRunnable"],
        ),
        (
            format!("a-65 0 d..2. 40 switch a:65 X ==> b:66\n{enters}"),
            &["40 switch 0 -a Exited +b", "60 switch 0 -b Slept(S) +a"],
        ),
    ] {
        assert_eq!(of(&rest), expected, "{rest}");
    }
    let story =
        format!("{start}a-65 0 d..2. 40 switch a:65 S ==> b:66\nw-9 1 d..2. 55 waking a:65 on 0\n{enters}");
    assert_eq!(changes(&story).1.oddities(), Oddities::default());
}

/// Up to v5.17 a task that blocks while a waker is at it leaves as R.
#[test]
fn a_task_woken_while_it_goes_to_sleep_was_not_preempted() {
    check(
        "w-9 1 d..2. 5 wakeup y:8 on 1
         a-65 0 d..2. 10 switch swapper/0:0 R ==> a:65
         w-9 1 d..2. 20 waking a:65 on 0
         a-65 0 d..2. 22 switch a:65 R ==> b:66
         w-9 1 d..2. 25 wakeup a:65 on 1
         w-9 1 d..2. 32 switch w:9 S ==> a:65",
        &[
            "5 queued y on 1 anew",
            "10 switch 0 +a",
            "22 switch 0 -a Slept(R) +b",
            "25 queued a on 1",
            "32 switch 1 -w Slept(S) +a after 10 us Wakeup",
        ],
    );
    // The same told the other way round: the waking is the task's next event.
    check(
        "w-9 1 d..2. 5 wakeup y:8 on 1
         a-65 0 d..2. 10 switch swapper/0:0 R ==> a:65
         a-65 0 d..2. 22 switch a:65 R ==> b:66
         w-9 1 d..2. 24 waking a:65 on 0
         w-9 1 d..2. 25 wakeup a:65 on 0
         b-66 0 d..2. 32 switch b:66 S ==> a:65",
        &[
            "5 queued y on 1 anew",
            "10 switch 0 +a",
            "22 switch 0 -a Runnable +b",
            "24 woken a, not Runnable",
            "25 queued a on 0",
            "32 switch 0 -b Slept(S) +a after 8 us Wakeup",
        ],
    );
}

#[test]
fn a_yield_is_told_from_a_preemption_by_the_mark_on_the_accounting_before() {
    check(
        "a-65 0 d..2. 10 switch swapper/0:0 R ==> a:65
         a-65 0 d..1. 20 runtime a:65 9000
         a-65 0 d..2. 21 sched_stat_wait comm=b pid=66 delay=5 [ns]
         a-65 0 d..2. 22 switch a:65 R ==> b:66
         b-66 0 d.h1. 30 runtime b:66 9000
         b-66 0 dN.2. 31 runtime b:66 9000
         b-66 0 d..2. 32 switch b:66 R ==> a:65
         a-65 0 dN.4. 41 wakeup b:66 on 0
         a-65 0 d..2. 42 switch a:65 R ==> b:66
         b-66 0 d..2. 50 switch b:66 R ==> a:65",
        &[
            "10 switch 0 +a",
            "22 switch 0 -a Yielded +b",
            "32 switch 0 -b Preempted by Tick +a after 10 us Yielded",
            "41 queued b on 0",
            "42 switch 0 -a Preempted by Wakeup(Pid(66)) +b after 10 us Preempted",
            "50 switch 0 -b Runnable +a after 8 us Preempted",
        ],
    );
}

/// `perf sched record` leaves out sched_wakeup: the accounting of a wakeup is not that of a yield.
#[test]
fn without_sched_wakeup_the_waking_tells_who_makes_way() {
    check(
        "a-65 0 d..2. 10 switch b:66 S ==> a:65
         a-65 0 d..4. 20 waking b:66 on 0
         a-65 0 d..5. 21 runtime a:65 9000
         a-65 0 d..3. 22 switch a:65 R ==> b:66
         b-66 0 d..4. 30 waking c:67 on 1
         b-66 0 d..4. 31 migrate c:67 1 => 2
         b-66 0 d..5. 32 runtime b:66 9000
         b-66 0 d..3. 33 switch b:66 R ==> a:65
         c-67 2 d..3. 40 switch swapper/2:0 R ==> c:67",
        &[
            "10 switch 0 -b Slept(S) +a",
            "20 woken b",
            "22 switch 0 -a Preempted +b after 2 us Wakeup",
            "30 woken c",
            "31 moved c 1 => 2 Wakeup",
            "33 switch 0 -b Runnable +a after 11 us Preempted",
            "40 switch 2 +c after 10 us Wakeup",
        ],
    );
}

#[test]
fn the_place_that_reports_a_migration_tells_its_cause() {
    let (lines, _) = changes(
        "x-7 1 d..2. 1 waking y:8 on 1
         x-7 1 d..2. 2 wakeup y:8 on 1
         <idle>-0 0 d.s3. 10 migrate y:8 1 => 0
         p-70 1 d..2. 20 migrate y:8 0 => 1
         migration/1-14 1 d..1. 30 migrate y:8 1 => 0
         migration/0-13 0 d..1. 31 migrate y:8 0 => 0
         migration/0-13 0 d..1. 32 migrate y:8 1 => 0
         ksoftirqd/1-22 1 d..1. 40 migrate y:8 0 => 1
         p-70 0 d..2. 50 migrate y:8 1 => 3
         t-80 0 d..2. 60 waking migration/0:13@0 on 0
         t-80 0 dN.2. 61 wakeup migration/0:13@0 on 0
         t-80 0 d..2. 62 switch t:80 R+ ==> migration/0:13@0
         migration/0-13 0 d..1. 63 migrate t:80 0 => 1",
    );
    let causes: Vec<&str> = lines
        .iter()
        .filter(|line| line.contains("moved"))
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    assert_eq!(
        causes,
        ["Softirq", "NewIdle", "Stopper", "Stopper", "NewIdle", "Softirq", "Other", "Asked"],
        "{lines:#?}"
    );
}

#[test]
fn a_wait_across_lost_events_is_no_measurement() {
    let tracker = check(
        "w-9 0 d..2. 10 switch a:65 S ==> w:9
         w-9 0 d..3. 30 waking a:65 on 0
         w-9 0 d..3. 31 wakeup a:65 on 0
         x 1 - 40 lost 7
         w-9 0 d..2. 50 switch w:9 R+ ==> a:65
         a-65 0 d..2. 60 switch a:65 S ==> w:9",
        &[
            "10 switch 0 -a Slept(S) +w",
            "30 woken a",
            "31 queued a on 0",
            "40 lost",
            "50 switch 0 -w PreemptedInKernel +a after 20 us Wakeup across a loss",
            "60 switch 0 -a Slept(S) +w after 10 us PreemptedInKernel",
        ],
    );
    assert_eq!((tracker.losses(), tracker.oddities()), (1, Oddities::default()));
}

#[test]
fn what_does_not_fit_is_counted_and_forgotten() {
    let tracker = check(
        "a-65 0 d..2. 10 switch swapper/0:0 R ==> a:65
         c-67 0 d..2. 20 switch b:66 S ==> c:67
         w-9 1 d..2. 30 waking a:65 on 0
         w-9 1 d..2. 25 wakeup a:65 on 0
         a-65 1 d..2. 28 switch w:9 S ==> a:65",
        &[
            "10 switch 0 +a",
            "20 switch 0 -b Slept(S) +c",
            "30 woken a",
            "25 queued a on 0",
            "28 switch 1 -w Slept(S) +a",
        ],
    );
    assert_eq!(tracker.oddities(), Oddities { late_events: 2, switch_gaps: 1, unseen_runs: 0 });
}

/// Whatever shows a task elsewhere than it was thought to run ends its stay there, for as long as events showed it.
#[test]
fn nobody_runs_in_two_places() {
    let begins = "a-65 0 d..2. 10 switch swapper/0:0 R ==> a:65
                  a-65 0 d..2. 30 waking b:66 on 2\n";
    for shows in [
        "a-65 1 d..2. 90 switch a:65 S ==> c:67",
        "c-67 1 d..2. 90 switch c:67 S ==> a:65",
        "a-65 1 d..2. 90 waking c:67 on 2",
        "p-7 1 ..... 90 sched_process_fork comm=p pid=7 child_comm=p child_pid=65",
    ] {
        let (_, tracker) = changes(&format!("{begins}{shows}"));
        let left =
            UnfinishedStay { task: 0, cpu: Cpu(0), number: 1, since: Ns::from_us(10), ran: Ns::from_us(20) };
        assert_eq!(tracker.vanished(), [left], "{shows}");
        assert!(tracker.cpu(Cpu(0)).is_some_and(|cpu| !cpu.known && cpu.running.is_none()), "{shows}");
    }
}

#[test]
fn new_tasks_and_ids_that_come_back_are_other_tasks() {
    let (lines, tracker) = changes(
        "p-7 0 ..... 5 sched_process_fork comm=p pid=7 child_comm=p child_pid=65
         p-7 0 d..2. 10 wakeup_new p:65 on 1
         <idle>-0 1 d..2. 12 switch swapper/1:0 R ==> p:65
         p-65 1 d..2. 20 switch p:65 Z ==> swapper/1:0
         p-7 0 ..... 25 sched_process_fork comm=p pid=7 child_comm=p child_pid=65
         p-7 0 d..2. 30 wakeup_new q:65 on 1
         <idle>-0 1 d..2. 37 switch swapper/1:0 R ==> q:65",
    );
    let expected = [
        "10 queued p on 1 anew",
        "12 switch 1 +p after 2 us New",
        "20 switch 1 -p Exited",
        "30 queued q on 1 anew",
        "37 switch 1 +q after 7 us New",
    ];
    assert_eq!(lines, expected);
    assert_eq!(tracker.open_waits().count(), 0);
    assert_eq!(tracker.index(Pid(65)).map(|task| tracker.task(task).comm), Some(Comm::from("q")));
}

#[test]
fn an_event_tells_what_its_cpu_runs() {
    let tracker = check("a-65 3 d..2. 10 waking b:66 on 1", &["10 woken b"]);
    assert!(tracker.cpu(Cpu(3)).is_some_and(|cpu| cpu.known && cpu.running == Some(0)));
    assert_eq!(tracker.task(0).comm, Comm::from("a"));
    let tracker = check("<idle>-0 2 d..2. 10 waking b:66 on 1", &["10 woken b"]);
    assert!(tracker.cpu(Cpu(2)).is_some_and(TrackedCpu::is_idle));
}

/// What may be reported between the `sched_switch` of a task and the change of stacks: event by event, with its flags.
const WHILE_LEAVING: [&str; 9] = [
    "d..2. T tlb_flush pages:-1 reason:flush on task switch (0)",
    "d..2. T x86_fpu_regs_deactivated x86/fpu: 00000000abc load: 1 xfeatures: 3 xcomp_bv: 8000000000000003",
    "d..2. T switch_mm_irqs_off <-__schedule",
    "d..2. T kernel_stack <stack trace>",
    "dNz2. T cycles period=4000",
    "d.h2. T irq_handler_entry irq=4 name=timer",
    "d.h2. T waking z:90 on 2",
    "d.s2. T softirq_entry vec=1 [action=TIMER]",
    "D..2. T bprint hello",
];

/// A task leaves for another one and comes back; `{}`: what stands behind the first switch, in the context that leaves.
fn two_switches(prev: &str, prev_task: &str, between: &str) -> String {
    let between = between.replacen(" T ", " 21 ", 1);
    let (flags, rest) = between.split_once(' ').expect("flags");
    format!(
        "x-7 1 d..2. 5 wakeup y:8 on 1
         b-66 0 d..2. 10 switch b:66 S ==> {prev_task}
         x-7 1 d..2. 12 waking b:66 on 0
         x-7 1 d..2. 13 wakeup b:66 on 0
         {prev} 0 d..2. 20 switch {prev_task} R+ ==> b:66
         {prev} 0 {flags} {rest}
         b-66 0 d..2. 50 switch b:66 S ==> {prev_task}"
    )
}

#[test]
fn an_event_between_a_switch_and_the_change_of_stacks_is_no_hole() {
    for between in WHILE_LEAVING {
        let tracker = check_leaving("a-65", "a:65", between);
        assert_eq!(tracker.oddities(), Oddities::default(), "{between}");
        let tracker = check_leaving("<idle>-0", "swapper/0:0", between);
        assert_eq!(tracker.oddities(), Oddities::default(), "{between}");
    }
}

#[track_caller]
fn check_leaving(prev: &str, prev_task: &str, between: &str) -> Tracker {
    let (lines, tracker) = changes(&two_switches(prev, prev_task, between));
    let switches: Vec<&String> = lines.iter().filter(|line| line.contains("switch")).collect();
    let (left, back) = match prev_task.starts_with('a') {
        true => (" -a PreemptedInKernel", " +a after 30 us PreemptedInKernel"),
        false => ("", ""),
    };
    let expected =
        [format!("20 switch 0{left} +b after 8 us Wakeup"), format!("50 switch 0 -b Slept(S){back}")];
    assert_eq!(switches[1..], expected.each_ref(), "{between}");
    tracker
}

/// A mark of a pending reschedule behind a switch is that of the task which leaves: the next one yields all the same.
#[test]
fn flags_behind_a_switch_are_of_the_task_that_leaves() {
    check(
        "<idle>-0 0 d..2. 10 switch swapper/0:0 R ==> a:65
         a-65 0 d..2. 20 switch a:65 S ==> b:66
         a-65 0 dNz2. 21 cycles period=4000
         b-66 0 d..1. 30 runtime b:66 9000
         b-66 0 d..2. 31 switch b:66 R ==> c:67",
        &["10 switch 0 +a", "20 switch 0 -a Slept(S) +b", "31 switch 0 -b Yielded +c"],
    );
}

/// The mark of a pending reschedule that is gone without a switch was answered: the task was kept, and yields later by itself.
#[test]
fn a_reschedule_that_kept_the_task_is_no_longer_pending() {
    let leaves = |between: &str| {
        let (lines, _) = changes(&format!(
            "<idle>-0 0 d..2. 10 switch swapper/0:0 R ==> a:65
             a-65 0 dN.1. 20 tlb_flush pages:-1
             {between}a-65 0 d..1. 30 runtime a:65 9000
             a-65 0 d..2. 31 switch a:65 R ==> b:66"
        ));
        lines.last().cloned()
    };
    let left = |how: &str| Some(format!("31 switch 0 -a {how} +b"));
    assert_eq!(leaves("a-65 0 ..... 25 sys_enter NR 1 (0)\n"), left("Yielded"));
    assert_eq!(leaves("a-65 0 .N... 25 sys_enter NR 1 (0)\n"), left("Yielded"));
}

/// Where the change of stacks was seen, or cannot have come yet, events of the task before show that it is back: a switch is missing.
#[test]
fn a_task_that_is_back_without_a_switch_shows_a_hole() {
    for (between, is_hole) in [
        ("", false),
        ("b-66 0 d..2. 30 tlb_flush pages:-1\na-65 0 d..2. 31 tlb_flush pages:-1", true),
        ("a-65 0 d..2. 31 tlb_flush pages:-1\na-65 0 d..2. 32 x86_fpu_regs_deactivated x", false),
        ("b-66 0 d..2. 22 sys_enter NR 1\na-65 0 d.h2. 31 irq_handler_entry irq=4 name=timer", true),
        ("c-67 0 d..2. 31 tlb_flush pages:-1", true),
        ("a-65 0 ..... 31 sys_enter NR 1 (0)", true),
        ("a-65 0 b..1. 31 sys_enter NR 1 (0)", true),
        ("a-65 0 d..3. 31 waking z:90 on 2", true),
        ("a-65 0 d..3. 31 wakeup z:90 on 2", true),
        ("a-65 0 d.h3. 31 runtime a:65 9000", true),
        ("a-65 0 d..3. 31 runtime a:65 9000", true),
    ] {
        let (_, tracker) = changes(&format!(
            "<idle>-0 0 d..2. 10 switch swapper/0:0 R ==> a:65
             a-65 0 d..2. 20 switch a:65 R+ ==> b:66
             {between}"
        ));
        assert_eq!(tracker.oddities().switch_gaps, u64::from(is_hole), "{between}");
    }
    // The next switch shows it where nothing else does; what the other task is said to have run until then stays unknown.
    let (lines, tracker) = changes(
        "<idle>-0 0 d..2. 10 switch swapper/0:0 R ==> a:65
         a-65 0 d..2. 20 switch a:65 R+ ==> b:66
         a-65 0 d..2. 21 tlb_flush pages:-1
         a-65 0 d..2. 60 switch a:65 S ==> c:67",
    );
    assert_eq!(
        lines,
        ["10 switch 0 +a", "20 switch 0 -a PreemptedInKernel +b", "60 switch 0 -a Slept(S) +c"]
    );
    assert_eq!(tracker.oddities().switch_gaps, 1);
    let [UnfinishedStay { since, ran, .. }] = tracker.vanished() else { panic!("{:?}", tracker.vanished()) };
    assert_eq!((*since, *ran), (Ns::from_us(20), Ns::ZERO));
}
