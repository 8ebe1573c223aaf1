//! What each piece of kernel work costs, to the nanosecond: each cost has a decimal digit of its own, so that times tell
//! what they are made of.

use fairlab_event::{Cpu, Event, EventKind, Ns, sink_fn};
use fairlab_kernel::cpufreq::FrequencyDomain;
use fairlab_kernel::topology::SmtNumbering;
use fairlab_kernel::{CpuMask, Topology};

use super::{Script, machine, spec};
use crate::engine::Engine;
use crate::machine::{KernelCosts, Machine};
use crate::workload::{Action, MESSAGE_BYTES, ThreadId, ThreadSpec};

/// A machine whose costs are nothing but these, in ns, and that ticks once in 10 ms.
fn costing(cpus: u32, costs: &[(&str, u64)]) -> Machine {
    let mut machine = Machine { hz: 100, ..machine(cpus) };
    for cost in KernelCosts::default().table() {
        machine.costs.set(cost.name, Ns::ZERO);
    }
    for &(name, ns) in costs {
        assert!(machine.costs.set(name, Ns(ns)), "{name}");
    }
    machine
}

/// The events of the time after `from`: when, on which CPU, what.
fn events(
    kernel: &str,
    machine: Machine,
    threads: Vec<(ThreadSpec, Vec<Action>)>,
    from: Ns,
    end: Ns,
) -> String {
    let mut engine = Engine::new(kernel.parse().expect("a kernel"), machine, 1);
    engine.set_tracing(true);
    engine.start(Script::new(threads));
    let mut text = String::new();
    let mut sink = sink_fn(|event: &Event<'_>| {
        let what = match event.kind {
            EventKind::SchedWaking(wakeup) => format!("waking {}", wakeup.pid.0),
            EventKind::SchedWakeup(wakeup) => format!("wakeup {}", wakeup.pid.0),
            EventKind::SchedWakeupNew(wakeup) => format!("new {}", wakeup.pid.0),
            EventKind::SchedSwitch(switch) => format!("switch {} {}", switch.prev_pid.0, switch.next_pid.0),
            EventKind::SchedMigrateTask { pid, dest_cpu, .. } => format!("migrate {} {}", pid.0, dest_cpu.0),
            EventKind::SchedProcessExit { .. } => "exit".to_string(),
            _ => return,
        };
        if event.time >= from {
            text += &format!("{:>10} {} {what}\n", event.time.0, event.cpu.0);
        }
    });
    engine.run_until(end, &mut sink);
    drop(sink);
    text
}

/// Costs of wakeups, one digit each.
const WAKING: &[(&str, u64)] = &[
    ("syscall_ns", 1),
    ("wakeup_ns", 10),
    ("context_switch_ns", 100),
    ("interrupt_ns", 1_000),
    ("timer_ns", 10_000),
    ("idle_exit_ns", 100_000),
    ("ipi_ns", 1_000_000),
];

fn run(ms: u64) -> Action {
    Action::Run(Ns::from_ms(ms))
}

fn only(cpu: u32) -> Action {
    let allowed = Some(CpuMask::single(Cpu(cpu)));
    Action::SetScheduler { policy: None, nice: None, request: None, allowed }
}

#[test]
fn a_wakeup_of_another_cpu_takes_a_call_an_interrupt_and_two_switches() {
    let waker = vec![run(3), Action::Wake(ThreadId(2)), Action::Run(Ns::from_secs(1))];
    let waiter = vec![Action::Wait, run(4)];
    let threads = vec![(spec(0, "0"), waker), (spec(0, "1"), waiter)];
    // Switched to at 1,101,100: 3 ms and 111 ns later the call is made.
    let expected = "   1101100 0 new 1001
   1101100 0 new 1002
   1101100 0 exit
   1101100 0 switch 1000 1001
   2202100 1 switch 0 1002
   2202201 1 switch 1002 0
   4101211 0 waking 1002
   5201211 1 wakeup 1002
   5202211 1 switch 0 1002
   9202312 1 switch 1002 0
";
    assert_eq!(events("v6.6", costing(2, WAKING), threads, Ns(1_101_100), Ns::from_ms(30)), expected);
}

/// What queueing costs is paid by the waker on its own CPU, and by an idle CPU that a wakeup is left to.
#[test]
fn whoever_queues_a_woken_task_pays_for_it() {
    let pays = |cpus: &str, expected: &str| {
        let waker = vec![Action::Sleep(Ns::from_ms(1)), Action::Wake(ThreadId(2)), run(2), Action::Exit];
        let threads = vec![(spec(0, "0"), waker), (spec(0, cpus), vec![Action::Wait, run(1), Action::Exit])];
        let costs = &[WAKING, &[("activate_ns", 300_000)]].concat();
        assert_eq!(
            events("v6.6+NO_WAKEUP_PREEMPTION", costing(2, costs), threads, Ns(2_562_202), Ns(9_000_000)),
            expected
        );
    };
    let here = "   2562312 0 waking 1002
   2562312 0 wakeup 1002
   4862312 0 exit
   4862312 0 switch 1001 1002
   5862412 0 exit
";
    pays("0", here);
    let there = "   2562312 0 waking 1002
   3662312 1 wakeup 1002
   3963312 1 switch 0 1002
   4562312 0 exit
   4562312 0 switch 1001 0
   4963412 1 exit
";
    pays("1", there);
}

/// A CPU that computes learns that it is to be preempted when the waker has queued the task: 300,000 ns after the wakeup, and
/// 1,000,000 for the interrupt.
#[test]
fn a_waker_interrupts_another_cpu_when_it_has_queued_the_task() {
    let waker = vec![run(3), Action::Wake(ThreadId(2)), run(2), Action::Exit];
    let threads = vec![
        (spec(0, "0"), waker),
        (spec(-10, "1"), vec![Action::Wait, run(1), Action::Exit]),
        (spec(19, "1"), vec![run(30), Action::Exit]),
    ];
    let costs = &[WAKING, &[("activate_ns", 300_000)]].concat();
    let expected = "   4101211 0 waking 1002
   4101211 0 wakeup 1002
   5402211 1 switch 1003 1002
   6401211 0 exit
   6401211 0 switch 1001 0
   6402311 1 exit
   6402311 1 switch 1002 1003
";
    assert_eq!(events("v6.5", costing(2, costs), threads, Ns(2_203_000), Ns(7_000_000)), expected);
}

#[test]
fn a_sleep_ends_after_its_slack_and_an_idle_cpu_has_to_wake() {
    let threads = vec![(spec(0, "0"), vec![Action::Sleep(Ns::from_ms(3)), run(1)])];
    // 3,050,000 ns from 1,101,201, where the call was made.
    let expected = "   1101201 0 switch 1001 0
   4251201 0 waking 1001
   4251201 0 wakeup 1001
   4262201 0 switch 0 1001
   5262302 0 switch 1001 0
   8412302 0 waking 1001
   8412302 0 wakeup 1001
   8423302 0 switch 0 1001
";
    assert_eq!(events("v6.6", costing(1, WAKING), threads, Ns(1_101_200), Ns(9_000_000)), expected);
}

#[test]
fn an_interrupt_takes_its_time_from_what_it_interrupts() {
    let threads = vec![
        (spec(0, "0"), vec![run(5), Action::Exit]),
        (spec(0, "0"), vec![Action::Sleep(Ns::from_ms(1)), run(9)]),
    ];
    // 5 ms of the hog, and 11,000 ns of the interrupt at 2,151,201.
    let expected = "   1101201 0 switch 1002 1001
   2151201 0 waking 1002
   2151201 0 wakeup 1002
   6112301 0 exit
   6112301 0 switch 1001 1002
";
    let kernel = "v6.5+NO_WAKEUP_PREEMPTION";
    assert_eq!(events(kernel, costing(1, WAKING), threads, Ns(1_101_101), Ns(9_000_000)), expected);
}

#[test]
fn calls_take_what_they_cost() {
    use Action::{Exit, Receive, Send, SystemCall, Wake, WakeSync, Yield};
    const CALLS: &[(&str, u64)] = &[
        ("syscall_ns", 1),
        ("wakeup_ns", 10),
        ("send_ns", 100),
        ("receive_ns", 1_000),
        ("fork_ns", 10_000),
        ("exit_ns", 100_000),
        ("tick_ns", 1_000_000),
    ];
    let ends = |actions: Vec<Action>, kernel: &str| {
        let threads = vec![(spec(0, "0"), actions)];
        events(kernel, costing(1, CALLS), threads, Ns(10_000), Ns::from_ms(90))
    };
    let before = "     10000 0 new 1001\n    110000 0 exit\n    110000 0 switch 1000 1001\n";
    // One message out and two in, 5 ms of a call, three wakeups, one of them at the end of a write: eight calls.
    let there = ThreadId(7);
    let calls = vec![
        Send(MESSAGE_BYTES),
        Receive(1),
        Receive(MESSAGE_BYTES),
        SystemCall(Ns(5_000_000)),
        Yield,
        WakeSync(there),
        Wake(there),
        Wake(there),
        only(0),
        Exit,
    ];
    assert_eq!(ends(calls, "v6.6"), format!("{before}   5212138 0 exit\n"));
    // Two ticks on the way.
    assert_eq!(ends(vec![run(25), Exit], "v6.6"), format!("{before}  27210000 0 exit\n"));
    // What is longer than a hundred bytes is copied, 12 bytes a ns.
    assert_eq!(ends(vec![Send(1_300), Exit], "v6.6"), format!("{before}    210201 0 exit\n"));
    let polls = vec![Action::SpinUntil(Ns::from_ms(25)), Exit];
    assert_eq!(ends(polls, "v6.6"), format!("{before}  25100000 0 exit\n"), "the clock waits for nobody");
}

/// Costs of balancing, one digit each.
const BALANCE: &[(&str, u64)] = &[
    ("newidle_ns", 1),
    ("balance_cpu_ns", 10),
    ("blocked_cpu_ns", 1_000),
    ("blocked_queue_ns", 10_000),
    ("migrate_ns", 100_000),
    ("context_switch_ns", 1_000_000),
];

#[test]
fn going_idle_takes_a_look_at_each_cpu_and_what_is_pulled_its_move() {
    let hog = || vec![Action::Run(Ns::from_secs(1))];
    let threads =
        vec![(spec(0, "0"), hog()), (spec(0, "1"), vec![run(4), Action::Exit]), (spec(0, "0-1"), hog())];
    // Its own load is aged and two CPUs are looked at; then one task, which is moved.
    let expected = "   6000000 1 exit
   6011021 1 migrate 1003 1
   6111031 1 switch 1002 1003
";
    assert_eq!(events("v6.6", costing(2, BALANCE), threads, Ns::from_ms(5), Ns::from_ms(10)), expected);
}

#[test]
fn the_stopper_takes_a_switch_and_a_move() {
    const PUSH: &[(&str, u64)] = &[
        ("syscall_ns", 1),
        ("context_switch_ns", 10),
        ("interrupt_ns", 100),
        ("migrate_ns", 1_000),
        ("newidle_ns", 10_000),
        ("idle_exit_ns", 100_000),
        ("ipi_ns", 1_000_000),
    ];
    let threads = vec![(spec(0, "0"), vec![run(3), only(1), run(1), Action::Exit])];
    let expected = "   1100110 0 switch 1000 1001
   4100121 0 waking 500000
   4100121 0 wakeup 500000
   4100121 0 switch 1001 500000
   4101131 0 migrate 1001 1
   4111131 0 switch 500000 0
   5201231 1 switch 0 1001
   6201241 1 exit
";
    let made = events("v6.6", costing(2, PUSH), threads, Ns(1_100_110), Ns::from_ms(30));
    assert_eq!(made.split_once("exit\n").map(|(_, after)| after), Some(expected));
}

#[test]
fn a_search_takes_a_look_at_each_cpu_and_the_softirq_what_it_balances() {
    const SEARCH: &[(&str, u64)] =
        &[("scan_cpu_ns", 2), ("softirq_ns", 1_000), ("balance_cpu_ns", 10_000), ("tick_ns", 100_000)];
    let threads = vec![
        (spec(0, "0"), vec![run(3), Action::Wake(ThreadId(2)), Action::Exit]),
        (spec(0, "0-3"), vec![Action::Wait, Action::Exit]),
        (spec(0, "1"), vec![run(9), Action::Exit]),
    ];
    // One CPU was looked at; whoever goes idle looks at four.
    let expected = "   3000000 2 exit
   3000002 0 exit
   3040000 2 switch 1002 0
   3040002 0 switch 1001 0
   9000000 1 exit
";
    let made = events("v6.6", costing(4, SEARCH), threads, Ns::from_ms(2), Ns::from_ms(9));
    assert_eq!(made.split_once("switch 0 1002\n").map(|(_, after)| after), Some(expected));
    let hogs = vec![(spec(0, "0"), vec![run(95)]), (spec(0, "0"), vec![run(95)])];
    // Every tick; the softirq at two of the first three, with two CPUs to look at in the second.
    let expected = "  10101000 0 switch 1001 1002
  30121000 0 switch 1002 1001
  40100000 0 switch 1001 1002
";
    assert_eq!(events("v6.6", costing(2, SEARCH), hogs, Ns::from_ms(1), Ns::from_ms(41)), expected);
}

#[test]
fn a_thread_that_is_woken_on_its_way_to_sleep_goes_on() {
    let threads = vec![
        (spec(0, "0"), vec![Action::Run(Ns(1_500_000)), Action::Wake(ThreadId(2)), Action::Exit]),
        (spec(0, "1"), vec![run(2), Action::Wait, run(1), Action::Exit]),
    ];
    // Both calls take 1 ms, and that of the waker is over half a millisecond before the other's.
    let expected = "   2500000 0 waking 1002
   2500000 0 wakeup 1002
   2500000 0 exit
   2500000 0 switch 1001 0
   4000000 1 exit
";
    let machine = costing(2, &[("syscall_ns", 1_000_000)]);
    assert_eq!(events("v6.6", machine, threads, Ns(1), Ns::from_ms(9)), expected);
}

/// A thread sleeps, and its CPU looks for other work for 1 ms before it switches; it is woken in between.
#[test]
fn a_waker_waits_for_the_switch_or_leaves_the_wakeup_to_the_other_cpu() {
    const LEAVING: &[(&str, u64)] =
        &[("newidle_ns", 1_000_000), ("interrupt_ns", 1), ("ipi_ns", 10), ("wakeup_ns", 100)];
    let woken = |kernel: &str| {
        let threads = vec![
            (spec(0, "0"), vec![Action::Run(Ns(2_500_000)), Action::Wake(ThreadId(2)), Action::Exit]),
            (spec(0, "1"), vec![run(2), Action::Wait, run(1), Action::Exit]),
        ];
        events(kernel, costing(2, LEAVING), threads, Ns(23), Ns::from_ms(9))
    };
    // To v5.7 it spins until 1 ns after the switch, queues the thread and sends an interrupt.
    let spins = "   2500111 0 waking 1002
   3000022 1 switch 1002 0
   3000023 0 wakeup 1002
   3000023 0 exit
   3000034 1 switch 0 1002
   4000023 0 switch 1001 0
   4000034 1 exit
";
    assert_eq!(woken("v5.4"), spins);
    let leaves = "   2500111 0 waking 1002
   2500111 0 exit
   3000022 1 switch 1002 0
   3000022 1 wakeup 1002
   3000023 1 switch 0 1002
   3500111 0 switch 1001 0
   4000023 1 exit
";
    assert_eq!(woken("v6.6"), leaves);
}

#[test]
fn searches_of_cpus_that_run_out_of_work_are_counted_with_their_time() {
    const SEARCH: &[(&str, u64)] =
        &[("newidle_ns", 1_000), ("blocked_queue_ns", 100), ("balance_cpu_ns", 10), ("blocked_cpu_ns", 1)];
    let threads = vec![
        (spec(0, "0"), vec![Action::Run(Ns::from_secs(1))]),
        (spec(0, "1"), vec![run(4), Action::Sleep(Ns::from_ms(3))]),
    ];
    let mut engine = Engine::new("v6.6".parse().expect("a kernel"), costing(2, SEARCH), 1);
    engine.start(Script::new(threads));
    engine.run_until(Ns::from_ms(30), &mut ());
    let counters = engine.counters();
    assert_eq!((counters.newidle, counters.switches, counters.occurrences), (4, 11, 58));
    // Where a CPU expects to idle too short, it does not look at the two CPUs, nor at its queue before.
    assert_eq!((counters.newidle_longest, counters.newidle_time), (Ns(1_121), Ns(1_121 + 3 * 1_000)));
}

#[test]
fn a_frequency_that_takes_its_time_to_set_is_in_force_after_that() {
    let mut machine = super::with_clock(false);
    machine.costs.frequency_switch = Ns::from_ms(3);
    // All at a quarter of the speed it would be 40 ms, and 10 ms at full speed.
    let slow = super::time_of_ten_milliseconds_work("v6.6", machine).0 / 1_000_000;
    assert!((14..25).contains(&slow), "{slow} ms");
    let of_governor = |ns| {
        let mut machine = super::with_clock(true);
        machine.costs.governor_cpu = Ns(ns);
        super::time_of_ten_milliseconds_work("v6.6", machine).0
    };
    let later = of_governor(1_000) - of_governor(0);
    // It looks at two CPUs each time, slower than at full speed.
    assert_eq!(later, 44_000);
}

#[test]
fn the_thread_that_sets_a_clock_is_woken_where_it_was_asked_for_and_looks_for_work_afterwards() {
    let mut machine = costing(
        2,
        &[
            ("ipi_ns", 1),
            ("interrupt_ns", 10),
            ("wakeup_ns", 100),
            ("context_switch_ns", 1_000),
            ("frequency_switch_ns", 10_000),
            ("newidle_ns", 100_000),
        ],
    );
    machine.frequency_domains = vec![FrequencyDomain {
        frequencies: vec![1_000_000, 2_000_000],
        ..super::with_clock(false).frequency_domains.remove(0)
    }];
    let threads = vec![(spec(0, "1"), vec![Action::Run(Ns::from_secs(1))])];
    // CPU 1 asks in its tick and interrupts itself; the thread is woken on CPU 0. The first time it makes the clock slow: its
    // switch and its work take 11 us, the search for other work after them 200. The second time, the other way round.
    let expected = "  10000001 1 waking 600000
  10000001 1 wakeup 600000
  10000012 0 switch 0 600000
  10211012 0 switch 600000 0
  20000001 1 waking 600000
  20000001 1 wakeup 600000
  20000022 0 switch 0 600000
  20122022 0 switch 600000 0
";
    assert_eq!(events("v5.4", machine, threads, Ns::from_ms(5), Ns::from_ms(100)), expected);
}

#[test]
fn a_search_goes_on_to_the_next_level_where_there_is_nothing() {
    let machine = Machine {
        topology: Topology::regular(1, 2, 2, 1, SmtNumbering::Adjacent).expect("a machine"),
        ..costing(4, BALANCE)
    };
    let hog = || vec![Action::Run(Ns::from_secs(1))];
    let threads =
        vec![(spec(0, "0"), hog()), (spec(0, "3"), vec![run(4), Action::Exit]), (spec(0, "0,3"), hog())];
    // Two CPUs of its cache, then four.
    let expected = "   6000000 3 exit
   6011061 3 migrate 1003 3
   6111071 3 switch 1002 1003
";
    assert_eq!(events("v6.6", machine, threads, Ns::from_ms(5), Ns::from_ms(10)), expected);
}

#[test]
fn a_thread_may_forbid_itself_its_cpu_but_not_all_cpus() {
    let goes_on = |cpu| {
        let threads = vec![(spec(0, "1"), vec![run(3), only(cpu), run(1), Action::Exit])];
        events("v6.6", costing(2, &[]), threads, Ns::from_ms(3), Ns::from_ms(30))
    };
    let moved = "   3000000 1 waking 500001
   3000000 1 wakeup 500001
   3000000 1 switch 1001 500001
   3000000 1 migrate 1001 0
   3000000 0 switch 0 1001
   3000000 1 switch 500001 0
   4000000 0 exit
";
    assert_eq!(goes_on(0), moved);
    assert_eq!(goes_on(7), "   4000000 1 exit\n", "there is no such CPU");
}
