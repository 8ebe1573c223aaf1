//! Where tasks may run and what moves them, in traces that print no masks. Also what else other CPUs do to a CPU.

use crate::texts::Trace;
use fairlab_verify::{DecisionKind, KindTally};

/// What the wakeups in a trace came to, by the rules of a kernel, on two CPUs.
fn wakeups(trace: &Trace, test: &str) -> KindTally {
    trace.verified(test, 2, "v6.12").kind(DecisionKind::WakeupCpu).expect("wakeups").clone()
}

/// A program runs on CPU 1 all the time; CPU 0 idles, and has run something lately.
fn with_a_busy_cpu() -> Trace {
    let mut trace = Trace::default();
    trace.switch(1, ["<idle>-0", "hog-70"], "R");
    for _ in 0..40 {
        trace.switch(0, ["<idle>-0", "other-71"], "R");
        trace.charge("other-71", 0);
        trace.switch(0, ["other-71", "<idle>-0"], "S");
    }
    trace
}

const ONE_CPU: &str = "it may run on one CPU only";

/// `taskset 2 PROGRAM` that begins on CPU 0, seen from outside: it comes back to its queue, and the stopper takes it away.
fn pins(trace: &mut Trace, asks_for_it: bool) {
    trace.switch(0, ["<idle>-0", "task-80"], "R");
    trace.charge("task-80", 0);
    if asks_for_it {
        trace.line("task-80", 0, "d..2.", "sched_stat_wait: comm=task pid=80 delay=0 [ns]");
    }
    trace.line("task-80", 0, "d..4.", "sched_waking: comm=migration/0 pid=21 prio=0 target_cpu=000");
    trace.line("task-80", 0, "dN.5.", "sched_wakeup: comm=migration/0 pid=21 prio=0 target_cpu=000");
    trace.charge("task-80", 0);
    trace.switch(0, ["task-80", "migration/0-21"], "R+");
    let moved = "sched_migrate_task: comm=task pid=80 prio=120 orig_cpu=0 dest_cpu=1";
    trace.line("migration/0-21", 0, "d..3.", moved);
    trace.switch(0, ["migration/0-21", "<idle>-0"], "S");
    trace.charge("hog-70", 1);
    trace.switch(1, ["hog-70", "task-80"], "R+");
    trace.charge("task-80", 1);
    trace.switch(1, ["task-80", "hog-70"], "S");
}

#[test]
fn who_leaves_its_queue_comes_back_and_calls_the_stopper_may_not_run_there_any_more() {
    for (asks_for_it, expected) in [(true, (0, 0, 12)), (false, (12, 12, 0))] {
        let mut trace = with_a_busy_cpu();
        pins(&mut trace, asks_for_it);
        (0..12).for_each(|_| trace.naps("task-80", 1, "hog-70"));
        let wakeups = wakeups(&trace, &format!("taskset-{asks_for_it}"));
        let pinned = wakeups.not_judged.get(ONE_CPU).copied().unwrap_or(0);
        let off = wakeups.all.admissible + wakeups.misses.values().sum::<u64>();
        assert_eq!((wakeups.all.judged, off, pinned), expected, "an idle CPU beside it tells the difference");
    }
}

#[test]
fn a_kthread_belongs_to_the_cpu_in_its_name_once_it_has_slept() {
    for (maker, expected) in [("kthreadd-2", (0, 12)), ("shell-3", (12, 0))] {
        let mut trace = with_a_busy_cpu();
        let (comm, pid) = maker.rsplit_once('-').expect("a pid");
        let made = format!("sched_process_fork: comm={comm} pid={pid} child_comm=kworker/1:1 child_pid=90");
        trace.switch(0, ["<idle>-0", maker], "R");
        trace.line(maker, 0, ".....", &made);
        trace.line(maker, 0, "d..2.", "sched_wakeup_new: comm=kworker/1:1 pid=90 prio=120 target_cpu=000");
        trace.charge(maker, 0);
        trace.switch(0, [maker, "kworker/1:1-90"], "S");
        trace.charge("kworker/1:1-90", 0);
        trace.switch(0, ["kworker/1:1-90", "<idle>-0"], "D");
        let woken = "comm=kworker/1:1 pid=90 prio=120";
        trace.line("hog-70", 1, "d.h2.", &format!("sched_waking: {woken} target_cpu=000"));
        trace.line("hog-70", 1, "d.h2.", &format!("sched_migrate_task: {woken} orig_cpu=0 dest_cpu=1"));
        trace.line("hog-70", 1, "dNh3.", &format!("sched_wakeup: {woken} target_cpu=001"));
        trace.charge("hog-70", 1);
        trace.switch(1, ["hog-70", "kworker/1:1-90"], "R+");
        trace.charge("kworker/1:1-90", 1);
        trace.switch(1, ["kworker/1:1-90", "hog-70"], "I");
        (0..11).for_each(|_| trace.naps("kworker/1:1-90", 1, "hog-70"));
        let wakeups = wakeups(&trace, comm);
        let pinned = wakeups.not_judged.get(ONE_CPU).copied().unwrap_or(0);
        let judged = wakeups.all.judged - wakeups.cases["fork"].judged;
        assert_eq!((judged, pinned), expected, "made by {maker}");
    }
}

/// `task-80` waits on CPU 1 behind a program, and code of `mover-81` on CPU 0, which sleeps right after, takes it.
fn takes_a_waiting_task(trace: &mut Trace, for_want_of_work: bool) {
    trace.switch(0, ["<idle>-0", "mover-81"], "R");
    let woken = "comm=task pid=80 prio=120 target_cpu=001";
    trace.line("hog-70", 1, "d.h2.", &format!("sched_waking: {woken}"));
    trace.line("hog-70", 1, "d.h3.", &format!("sched_wakeup: {woken}"));
    if for_want_of_work {
        trace.charge("mover-81", 0);
    }
    trace.line("mover-81", 0, "d..2.", "sched_stat_runtime: comm=hog pid=70 runtime=9000 [ns]");
    let moved = "sched_migrate_task: comm=task pid=80 prio=120 orig_cpu=1 dest_cpu=0";
    trace.line("mover-81", 0, "d..2.", moved);
    trace.charge("mover-81", 0);
    if !for_want_of_work {
        trace.charge("mover-81", 0);
    }
    trace.switch(0, ["mover-81", "task-80"], "S");
    trace.charge("task-80", 0);
    trace.switch(0, ["task-80", "<idle>-0"], "S");
}

#[test]
fn who_moves_a_waiting_task_and_is_charged_before_it_sleeps_does_not_balance() {
    for (for_want_of_work, expected) in [(true, (2, 0)), (false, (0, 1))] {
        let mut trace = with_a_busy_cpu();
        takes_a_waiting_task(&mut trace, for_want_of_work);
        let agreement = trace.verified(&format!("mover-{for_want_of_work}"), 2, "v6.1");
        let balance = agreement.kind(DecisionKind::Balance).expect("a move");
        let unknown = balance.not_judged.get("it is not balancing, as far as the trace shows");
        let others = balance.not_judged_total() - unknown.copied().unwrap_or(0);
        assert_eq!((balance.all.judged + others, unknown.copied().unwrap_or(0)), expected);
    }
}

/// A program on CPU 0 makes a child, which begins on `cpu`.
fn forks(trace: &mut Trace, child: u32, cpu: u32) {
    trace.charge("hog-70", 0);
    let made = format!("sched_process_fork: comm=hog pid=70 child_comm=child child_pid={child}");
    trace.line("hog-70", 0, ".....", &made);
    let new = format!("sched_wakeup_new: comm=child pid={child} prio=120 target_cpu={cpu:03}");
    trace.line("hog-70", 0, "d..2.", &new);
    let child = format!("child-{child}");
    trace.switch(cpu, ["<idle>-0", &child], "R");
    trace.charge(&child, cpu);
    trace.switch(cpu, [&child, "<idle>-0"], "Z");
}

#[test]
fn of_cpus_that_idle_since_before_the_trace_nobody_knows_which_went_idle_last() {
    let mut trace = Trace::default();
    trace.switch(0, ["<idle>-0", "hog-70"], "R");
    (0..30).for_each(|_| trace.naps("other-71", 0, "hog-70"));
    forks(&mut trace, 80, 3);
    // From now on CPU 3 is the last that went idle.
    forks(&mut trace, 81, 3);
    let agreement = trace.verified("forks", 4, "v6.12");
    let wakeups = agreement.kind(DecisionKind::WakeupCpu).expect("forks");
    let forks = wakeups.cases["fork"];
    assert_eq!((forks.judged, forks.agree, forks.admissible), (2, 1, 1));
}

#[test]
fn a_deadline_task_that_has_used_its_runtime_up_is_off_its_queue() {
    let mut trace = with_a_busy_cpu();
    let other = |from: &str, to: &str, prios: [i32; 2]| {
        let [(from, one), (to, two)] = [from, to].map(|name| name.rsplit_once('-').expect("a pid"));
        let [old, new] = prios;
        format!(
            "sched_switch: prev_comm={from} prev_pid={one} prev_prio={old} prev_state=R ==> next_comm={to} next_pid={two} next_prio={new}"
        )
    };
    for _ in 0..3 {
        trace.line("<idle>-0", 0, "d..2.", &other("swapper/0-0", "urgent-80", [120, -1]));
        trace.line("urgent-80", 0, "d..2.", &other("urgent-80", "swapper/0-0", [-1, 120]));
    }
    // CPU 0 idles again: a wakeup that it may take goes there.
    (0..4).for_each(|_| trace.naps("task-81", 1, "hog-70"));
    let wakeups = wakeups(&trace, "deadline");
    assert_eq!(
        (wakeups.all.judged, wakeups.all.admissible),
        (4, 4),
        "a model that sees CPU 0 idle may go there, if searches go so far"
    );
}

/// `waiter` waits on `cpu` behind a program there.
fn waits(trace: &mut Trace, [running, waiter]: [&str; 2], cpu: u32) {
    trace.switch(cpu, ["<idle>-0", running], "R");
    let (comm, pid) = waiter.rsplit_once('-').expect("a pid");
    let woken = format!("comm={comm} pid={pid} prio=120 target_cpu={cpu:03}");
    trace.line(running, cpu, "d.h2.", &format!("sched_waking: {woken}"));
    trace.line(running, cpu, "d.h3.", &format!("sched_wakeup: {woken}"));
}

/// CPU 1 wants work; its neighbour CPU 0 has some, and it takes from CPU 2, where a real-time task has run for so long.
fn takes_from_afar(kernel: &str, urgent_us: u32) -> KindTally {
    let mut trace = Trace::default();
    for cpu in (0..4).cycle().take(60) {
        trace.switch(cpu, ["<idle>-0", "first-60"], "R");
        trace.switch(cpu, ["first-60", "<idle>-0"], "S");
    }
    // What was before the trace is forgotten by now.
    trace.lines += 50_000;
    trace.switch(2, ["<idle>-0", "urgent-62"], "R");
    trace.lines += urgent_us / 10;
    trace.switch(2, ["urgent-62", "<idle>-0"], "S");
    trace.switch(1, ["<idle>-0", "last-61"], "R");
    waits(&mut trace, ["hog-70", "near-71"], 0);
    waits(&mut trace, ["hog-72", "far-73"], 2);
    waits(&mut trace, ["hog-74", "more-75"], 3);
    trace.lines += 300;
    trace.charge("last-61", 1);
    trace.line("last-61", 1, "d..2.", "sched_stat_runtime: comm=hog pid=72 runtime=9000 [ns]");
    let moved = "sched_migrate_task: comm=far pid=73 prio=120 orig_cpu=2 dest_cpu=1";
    trace.line("last-61", 1, "d..2.", moved);
    trace.charge("last-61", 1);
    trace.switch(1, ["last-61", "far-73"], "S");
    let agreement = trace.verified(&format!("afar-{kernel}-{urgent_us}"), 4, kernel);
    agreement.kind(DecisionKind::Balance).expect("a move").clone()
}

#[test]
fn where_chance_decides_which_levels_are_searched_a_task_behind_the_same_cache_may_stay() {
    for (kernel, expected) in [("v6.1", 0), ("debian-6.1", 1)] {
        let source = takes_from_afar(kernel, 10).cases["new-idle source"];
        assert_eq!((source.judged, source.agree), (1, expected), "{kernel}");
    }
}

#[test]
fn what_is_taken_is_judged_where_real_time_tasks_leave_less_of_a_cpu_as_well() {
    for urgent_us in [10, 20_000] {
        let balance = takes_from_afar("debian-6.1", urgent_us);
        assert_eq!((balance.all.judged, balance.all.agree), (2, 2), "after {urgent_us} us: source and task");
    }
}

#[test]
fn where_cpus_come_and_go_nobody_knows_the_domains() {
    for (name, expected) in [("kworker/0:1-90", (4, 0)), ("cpuhp/0-90", (0, 5))] {
        let mut trace = with_a_busy_cpu();
        trace.naps(name, 0, "<idle>-0");
        (0..4).for_each(|_| trace.naps("task-80", 0, "<idle>-0"));
        let wakeups = wakeups(&trace, &format!("hotplug-{}", expected.1));
        let unknown = wakeups.not_judged.get("CPUs come and go").copied().unwrap_or(0);
        assert_eq!((wakeups.all.judged, unknown), expected, "{name} is woken");
    }
}

#[test]
fn who_moves_a_running_task_to_another_group_may_have_asked_for_what_the_tick_leaves() {
    let attach = "cgroup_attach_task: dst_root=0 dst_id=87 dst_level=1 dst_path=/a pid=70 comm=hog";
    for (moves, expected) in [(false, 0), (true, 1)] {
        let mut trace = with_a_busy_cpu();
        waits(&mut trace, ["hog-70", "near-71"], 1);
        trace.switch(0, ["<idle>-0", "mover-81"], "R");
        trace.line("hog-70", 1, "d.h1.", "local_timer_entry: vector=236");
        trace.line("hog-70", 1, "d.h2.", "sched_stat_runtime: comm=hog pid=70 runtime=9000 [ns]");
        if moves {
            trace.line("mover-81", 0, "d..1.", attach);
        }
        trace.line("hog-70", 1, "dN.2.", "sched_stat_runtime: comm=hog pid=70 runtime=9000 [ns]");
        let agreement = trace.verified(&format!("tick-{moves}"), 2, "v6.1");
        let ticks = &agreement.kind(DecisionKind::TickPreempt).expect("ticks").not_judged;
        let hidden = ticks.get("the trace does not show it").copied();
        assert_eq!(hidden.unwrap_or(0), expected, "moved: {moves}: {ticks:?}");
    }
}

/// A program on CPU 0 wakes others and one on CPU 1 that wakes one of two each time: so often, and then that one once more, which is
/// `moved` to CPU 0. Before, both wake one other each second for so long. Returns how many wakeups are missed.
fn missed_after_wakeups(seconds: u32, rounds: u32, moved: bool) -> u64 {
    let mut trace = with_a_busy_cpu();
    let woken = |cpu: u32| format!("comm=wakee pid=81 prio=120 target_cpu={cpu:03}");
    trace.switch(0, ["<idle>-0", "waker-80"], "R");
    for round in 0..seconds + rounds {
        let (quick, others) = match round.checked_sub(seconds) {
            Some(round) => {
                (round, ["other-82", "other-83", "other-82", "other-83", "other-82", "other-83"].as_slice())
            }
            None => (0, ["other-82"].as_slice()),
        };
        trace.lines += if round < seconds { 110_000 } else { 0 };
        others.iter().for_each(|other| trace.naps(other, 0, "waker-80"));
        trace.line("waker-80", 0, "d..2.", &format!("sched_waking: {}", woken(1)));
        trace.line("waker-80", 0, "d..3.", &format!("sched_wakeup: {}", woken(1)));
        trace.charge("hog-70", 1);
        trace.switch(1, ["hog-70", "wakee-81"], "R+");
        trace.naps(["next-84", "next-85"][quick as usize % 2], 1, "wakee-81");
        trace.charge("wakee-81", 1);
        trace.switch(1, ["wakee-81", "hog-70"], "S");
    }
    if moved {
        trace.line("waker-80", 0, "d..2.", &format!("sched_waking: {}", woken(1)));
        let moves = "sched_migrate_task: comm=wakee pid=81 prio=120 orig_cpu=1 dest_cpu=0";
        trace.line("waker-80", 0, "d..3.", moves);
        trace.line("waker-80", 0, "dN.3.", &format!("sched_wakeup: {}", woken(0)));
        trace.charge("waker-80", 0);
        trace.switch(0, ["waker-80", "wakee-81"], "R+");
    }
    // Nobody stays queued asleep there.
    let agreement = trace.verified(&format!("flips-{seconds}-{rounds}-{moved}"), 2, "v6.6");
    agreement.kind(DecisionKind::WakeupCpu).expect("wakeups").misses.values().sum()
}

/// The kernel halves each second how often a task has woken others, and when it did so last is not shown: after two rounds half
/// as many would not keep waker and wakee apart, and the wakee may come to the waker. After ten, half as many would. How often
/// both had woken others before the trace is only known once it has been halved away, by the trace's time: these programs are not
/// charged, so their runqueues' clocks stand still.
#[test]
fn how_often_tasks_have_woken_others_is_doubted() {
    let missed = |seconds, rounds| {
        missed_after_wakeups(seconds, rounds, true) - missed_after_wakeups(seconds, rounds, false)
    };
    assert_eq!([missed(0, 2), missed(0, 10), missed(36, 10)], [0, 0, 1]);
}
