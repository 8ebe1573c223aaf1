//! What fair tasks get beside a real-time hog, and what becomes of a server while it is not needed.

use fairlab_event::Cpu;

use crate::Generation;
use crate::ablation::AblationSituation;
use crate::cpumask::CpuMask;
use crate::rt::bandwidth::tests::shares;
use crate::task::Policy;
use crate::testbed::{MS, SchedulerTestbed};

pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
    ("fair-server", with_a_fifth),
    ("server-less-eager", |kernel| watches_after_sleep(kernel).into()),
    ("server-not-counted", |kernel| counted_while_it_runs(kernel).into()),
    ("server-stops-after-idling", |kernel| stops_idle(kernel).into()),
    ("server-starts-deferred", |kernel| starts_at_once(kernel).into()),
];

/// CPU 0 with a real-time task asleep, so that servers watch.
fn watching(kernel: &str) -> SchedulerTestbed {
    let mut bed = SchedulerTestbed::new(kernel, 1, 1);
    bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
    bed.sleep(0);
    bed
}

/// Whether a server is active whose only fair task sleeps.
fn watches_after_sleep(kernel: &str) -> bool {
    let mut bed = watching(kernel);
    bed.spawn(0, 0);
    bed.pass(MS);
    bed.sleep(0);
    bed.scheduler.rqs[0].fair_server.active
}

/// How many tasks a CPU counts while the server lets one run beside a real-time one.
fn counted_while_it_runs(kernel: &str) -> u32 {
    let mut bed = SchedulerTestbed::new(kernel, 1, 1);
    let fair = bed.spawn(0, 0);
    bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
    bed.schedule(0);
    while bed.scheduler.curr(Cpu(0)) != fair {
        bed.run(0, 1);
    }
    bed.scheduler.nr_running(Cpu(0))
}

/// Whether the server of a CPU that idles is stopped by its timer, without being queued.
fn stops_idle(kernel: &str) -> bool {
    let mut bed = watching(kernel);
    bed.spawn(0, 0);
    bed.pass(MS);
    bed.sleep(0);
    let mut queued = false;
    for _ in 0..3000 {
        bed.pass(MS);
        bed.expire_timers();
        bed.tick(0);
        queued |= bed.scheduler.rqs[0].fair_server.queued;
    }
    !queued && !bed.scheduler.rqs[0].fair_server.active
}

/// What a fair task gets of 3 s, in ms, where its server has 200 ms of each.
fn with_a_fifth(kernel: &str) -> u64 {
    let asked = format!("{kernel},fair_server_runtime=200000000");
    shares(if asked.parse::<Generation>().is_ok() { &asked } else { kernel }, 2)[1]
}

/// As with the throttling of real-time tasks, which there was before; nothing where it is turned off.
#[test]
fn fair_tasks_have_a_twentieth_beside_a_hog() {
    for kernel in ["v6.12", "v6.16", "v6.17", "v6.18", "v7.2"] {
        let [hog, fair] = shares(kernel, 2);
        assert!(fair.abs_diff(150) <= 8 && hog.abs_diff(2850) <= 8, "{kernel}: {hog} ms and {fair} ms");
        assert_eq!(shares(&format!("{kernel},fair_server_runtime=0"), 2), [3000, 0], "{kernel}, turned off");
    }
    assert!(with_a_fifth("v6.12").abs_diff(600) <= 20, "{} ms", with_a_fifth("v6.12"));
}

/// Not at the beginning of a period, as with throttling, but as late as may be: after 950 ms.
#[test]
fn a_server_waits_as_long_as_it_can() {
    let mut bed = SchedulerTestbed::new("v7.2", 1, 1);
    let fair = bed.spawn(0, 0);
    bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
    bed.schedule(0);
    let ran = bed.run(0, 1500);
    let first = ran.iter().position(|&task| task == fair);
    assert!(first.is_some_and(|first| (948..953).contains(&first)), "{first:?}");
}

/// Fair tasks that run by themselves use up the runtime, and the server never takes the CPU from a real-time task.
#[test]
fn a_server_is_put_off_while_fair_tasks_run() {
    for kernel in ["v6.12", "v6.17", "v7.2"] {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        bed.spawn(0, 0);
        let urgent = bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
        bed.schedule(0);
        for _ in 0..30 {
            let ran = bed.run(0, 80);
            assert!(ran.iter().all(|&task| task == urgent), "{kernel}: it is not interrupted");
            bed.sleep(0);
            bed.run(0, 20);
            bed.wake(urgent, 0);
            bed.schedule(0);
        }
        bed.scheduler.check_invariants().expect("a sound state");
    }
}

#[test]
fn a_server_that_is_not_needed_stops() {
    assert_eq!(["v6.16", "v6.17", "v7.2"].map(watches_after_sleep), [false, true, true]);
    assert_eq!(["v6.18", "v7.2"].map(stops_idle), [false, true]);
    assert_eq!(["v6.16", "v6.18", "v7.2"].map(counted_while_it_runs), [3, 2, 2]);
}

/// Whether a server that once let a starved task run is queued as soon as that wakes up again, a period later.
fn starts_at_once(kernel: &str) -> bool {
    let mut bed = SchedulerTestbed::new(kernel, 1, 1);
    let fair = bed.spawn(0, 0);
    bed.spawn_with(0, 0, Policy::Fifo(1), CpuMask::single(Cpu(0)));
    bed.schedule(0);
    for _ in 0..2000 {
        if bed.scheduler.curr(Cpu(0)) == fair {
            break;
        }
        bed.run(0, 1);
    }
    if bed.scheduler.curr(Cpu(0)) == fair {
        bed.sleep(0);
    }
    bed.run(0, 2000);
    if bed.scheduler.task(fair).is_asleep() {
        bed.wake(fair, 0);
    }
    bed.scheduler.rqs[0].fair_server.queued
}

#[test]
fn a_server_that_ran_starts_deferred_from_v6_19() {
    assert_eq!(["v6.12", "v6.18", "v6.19", "v7.2"].map(starts_at_once), [true, true, false, false]);
}
