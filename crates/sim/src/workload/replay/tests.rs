//! Scripts under modelled kernels: what follows what, and what keeps to the clock.

use fairlab_event::{Event, EventKind, sink_fn};

use super::*;
use crate::{Engine, Machine};

/// `waiter` sleeps until `waker` has computed for 2 ms of its own, again and again; a device wakes `waker`.
const PAIR: &str = "\
fairlab-replay 1 30000000
note made by hand
group - 100 0 max 100000000 /pair
task other 120 0 - user 0 waker
until 1000000
run 2000000
wake 1
until 11000000
run 2000000
wake 1
run 500000
fork 2
task batch 110 1 0-3 user 0 waiter
block
run 3000000
block
run 3000000
task other 120 - - forked - child
run 1000000
prio 130
device 29000000
run 1000000
";

fn run(script: &str, kernel: &str, until: Ns) -> (String, Vec<(Ns, String, String)>) {
    let script = Arc::new(Script::parse(script).expect("a script"));
    let mut engine =
        Engine::new(kernel.parse().expect("a kernel"), Machine::preset("vm4").expect("a machine").exact(), 1);
    let number = engine.start(Box::new(Replay::new(script, ReplayOptions::default())));
    let mut seen = Vec::new();
    engine.set_tracing(true);
    let mut sink = sink_fn(|event: &Event<'_>| match event.kind {
        EventKind::SchedWaking(wakeup) => {
            let waker = event.context.comm.to_str().into_owned();
            seen.push((event.time, waker, wakeup.comm.to_str().into_owned()));
        }
        EventKind::SchedProcessExit { comm, .. } => {
            seen.push((event.time, "exit".to_string(), comm.to_str().into_owned()));
        }
        _ => {}
    });
    engine.run_until(until, &mut sink);
    drop(sink);
    (engine.workload(number).output(engine.now()), seen)
}

#[test]
fn a_script_reads_back_as_it_was_written() {
    let script = Script::parse(PAIR).expect("a script");
    assert_eq!(script.to_string(), PAIR);
    assert_eq!(script.work(), Ns(2_000_000 + 2_000_000 + 500_000 + 6_000_000 + 2_000_000));
    assert_eq!(script.sleeps(), (2, 3, 0));
}

#[test]
fn a_script_that_cannot_be_is_told_with_its_line() {
    for (text, expected) in [
        ("", "line 1: it is not 'fairlab-replay 1' with a length in ns"),
        ("fairlab-replay 1 x", "line 1: it is not 'fairlab-replay 1' with a length in ns"),
        ("fairlab-replay 1 5\nrun 3", "line 2: 'run 3' stands before the first task"),
        ("fairlab-replay 1 5\ntask other 120 0 - user - a\nrun", "line 3: 'run' is nothing that a task does"),
        (
            "fairlab-replay 1 5\ntask other 120 0 - user 0 a",
            "task 0 is in a group that is not there; there are 0",
        ),
        (
            "fairlab-replay 1 5\ngroup 0 100 0 max 100000000 /a",
            "line 2: 'group 0 100 0 max 100000000 /a' is no group",
        ),
        ("fairlab-replay 1 5\ntask other 120 0 a", "line 2: 'task other 120 0 a' is no task"),
        ("fairlab-replay 1 5\ntask other 120 0 - user - a\nwake 1", "there is no task 1; the last is 0"),
        ("fairlab-replay 1 5\ntask other 120 0 - forked - a", "task 0 is created by 0 tasks"),
        ("fairlab-replay 1 5\ntask other 120 0 - user - a\nfork 0", "task 0 is created by 1 tasks"),
    ] {
        assert_eq!(Script::parse(text).expect_err(text), expected);
    }
}

/// Who is woken by a task follows it; who is woken by a device is woken at the recorded time.
#[test]
fn tasks_wake_each_other_and_devices_keep_to_the_clock() {
    for kernel in ["v5.4", "v6.12"] {
        let (output, seen) = run(PAIR, kernel, Ns::from_ms(100));
        assert!(
            output.contains("all ended after") && output.contains("5 sleeps are over"),
            "{kernel}: {output}"
        );
        let wakings = |of: &str| {
            let of_it = seen.iter().filter(|(_, by, whom)| by != "exit" && by != COMM && whom == of);
            of_it.map(|(time, by, _)| (*time, by.clone())).collect::<Vec<_>>()
        };
        let waiter = wakings("waiter");
        assert_eq!(waiter.iter().filter(|(_, by)| by == "waker").count(), 2, "{kernel}: {seen:?}");
        // At 1 and at 11 ms of the recording, and the child at 29 ms.
        let [first, second] = &wakings("waker")[..] else { panic!("{kernel}: {seen:?}") };
        assert_eq!(second.0.since(first.0), Ns::from_ms(10), "{kernel}");
        let [by_device] = &wakings("child")[..] else { panic!("{kernel}: {seen:?}") };
        assert_eq!(by_device.0.since(first.0), Ns::from_ms(28), "{kernel}");
        let exits = seen.iter().filter(|(_, by, _)| by == "exit").count();
        assert_eq!(exits, 4, "{kernel}: with the main thread");
    }
}

/// Who computes longer here than on the recorded kernel ends later if its sleep is its own, and by the clock as it did.
#[test]
fn sleeps_of_a_length_begin_when_the_task_is_done() {
    let text = "fairlab-replay 1 9000000\ntask other 120 0 - user - a\nuntil 1000000\nrun 3000000\nfor 2000000 4000000\nrun 1000000\nio 1000000 6000000\n";
    let script = Script::parse(text).expect("a script");
    assert_eq!((script.to_string(), script.sleeps()), (text.to_string(), (0, 1, 2)));
    let ends = |by_clock| {
        let mut engine = Engine::new(
            "v6.6".parse().expect("a kernel"),
            Machine::preset("vm4").expect("a machine").exact(),
            1,
        );
        let options = ReplayOptions { by_clock, ..ReplayOptions::default() };
        let number = engine.start(Box::new(Replay::new(Arc::new(script.clone()), options)));
        engine.run_until(Ns::from_ms(60), &mut sink_fn(|_: &Event<'_>| {}));
        engine.workload(number).output(engine.now())
    };
    assert!(ends(false).contains("all ended after 0.0080"), "{}", ends(false));
    assert!(ends(true).contains("all ended after 0.0060"), "{}", ends(true));
}

/// A wakeup that comes before its sleep is not lost: the sleep does not take place.
#[test]
fn a_wakeup_before_the_sleep_counts() {
    let text = "fairlab-replay 1 9000000\ntask other 120 0 - user - early\nwake 1\ntask other 120 1 - user - late\nrun 5000000\nblock\nrun 1000000\n";
    let (output, _) = run(text, "v6.6", Ns::from_ms(60));
    assert!(output.contains("all ended after 0.006"), "{output}");
}

/// What never comes is waited for; the run ends all the same, and the output says so.
#[test]
fn a_wakeup_that_never_comes_leaves_the_task_asleep() {
    let text = "fairlab-replay 1 9000000\ntask other 120 0 - user - alone\nblock\n";
    let (output, _) = run(text, "v6.6", Ns::from_ms(60));
    assert!(output.contains("0 of them ended"), "{output}");
}

#[test]
fn cpus_of_a_larger_machine_are_folded() {
    let script = Arc::new(
        Script::parse("fairlab-replay 1 5\ntask other 120 9 - user - a\nrun 3\ntask other 120 6 6 kernel - kworker/6:1\nrun 3\n")
            .expect("a script"),
    );
    let named = |cpus| {
        Replay::new(Arc::clone(&script), ReplayOptions { cpus, ..ReplayOptions::default() }).named_cpus()
    };
    assert_eq!(named(None), CpuMask::parse_list("6,9").expect("a list"));
    assert_eq!(named(Some(4)), CpuMask::parse_list("1-2").expect("a list"));
}
