//! How run time fades, when a process looks at all CPUs, and what it comes to prefer.

use super::*;
use crate::task::TaskId;
use crate::testbed::{MS, SchedulerTestbed};
use crate::topology::SmtNumbering;

/// As many last-level caches of four CPUs.
fn machine(kernel: &str, nodes: u32, caches: u32) -> SchedulerTestbed {
    SchedulerTestbed::on(
        kernel,
        Topology::regular(nodes, caches, 4, 1, SmtNumbering::Adjacent).expect("a machine"),
    )
}

fn process_of(bed: &SchedulerTestbed, task: TaskId) -> Option<ProcessId> {
    bed.scheduler.shared.tasks[task.index()].process
}

fn preferred(bed: &SchedulerTestbed, task: TaskId) -> Option<Cpu> {
    process_of(bed, task).and_then(|process| bed.scheduler.shared.processes.preferred_cpu(process))
}

#[test]
fn half_of_the_run_time_fades_with_each_epoch() {
    let mut cpu = CpuEpoch { runtime: 800, epoch: 3, next: 30 };
    let mut time = CacheTime { runtime: 80, epoch: 3 };
    cpu.update(&mut time, 30, 10);
    assert_eq!((cpu.epoch, time.runtime), (3, 80), "an epoch includes its last tick");
    cpu.update(&mut time, 31, 10);
    assert_eq!((cpu.epoch, cpu.next, cpu.runtime, time.runtime), (4, 40, 400, 40));
    let mut other = CacheTime { runtime: 64, epoch: 1 };
    cpu.update(&mut other, 31, 10);
    assert_eq!(other, CacheTime { runtime: 8, epoch: 4 }, "a process that has not run here since");
    cpu.update(&mut time, 31 + 10 * 70, 10);
    assert_eq!((cpu.epoch, cpu.runtime, time.runtime), (74, 0, 0));
}

/// `HZ / 100` jiffies, rounded down, and one at least: 8 ms at 250 Hz.
#[test]
fn an_epoch_is_of_whole_jiffies() {
    for (hz, jiffies) in [(1000, 10), (300, 3), (250, 2), (100, 1), (24, 1)] {
        let topology = Topology::regular(1, 2, 4, 1, SmtNumbering::Adjacent).expect("a machine");
        let bed = SchedulerTestbed::on("v7.2", topology.clone());
        let processes = Processes::new(true, &topology, &bed.scheduler.domains, hz);
        assert_eq!(processes.period, jiffies, "{hz} Hz");
    }
}

#[test]
fn processes_gather_where_there_are_several_caches_of_several_cpus() {
    let gathers = |kernel, nodes, caches| machine(kernel, nodes, caches).scheduler.shared.processes.active();
    assert_eq!(
        [("v7.1", 2), ("v7.2-cache-aware", 2), ("v7.2", 1), ("v7.2", 2)]
            .map(|(kernel, caches)| gathers(kernel, 1, caches)),
        [false, false, false, true]
    );
    assert!(gathers("v7.2", 2, 1), "one cache a node");
    let alone = Topology::regular(1, 4, 1, 1, SmtNumbering::Adjacent).expect("a machine");
    assert!(!SchedulerTestbed::on("v7.2", alone).scheduler.shared.processes.active(), "a CPU's own cache");
}

/// Two threads under the first cache, one under the second.
#[test]
fn a_process_prefers_the_cache_under_which_most_of_it_ran() {
    let mut bed = machine("v7.2", 1, 2);
    let first = bed.spawn(0, 1);
    let others = [2, 5].map(|cpu| bed.spawn_thread(first, cpu));
    assert_eq!(preferred(&bed, first), None, "no look was taken yet");
    bed.run_all(8, 30);
    assert!(matches!(preferred(&bed, first), Some(Cpu(1 | 2))));
    let queues = [1, 2, 5].map(|cpu| {
        let rq = &bed.scheduler.rqs[cpu];
        (rq.llc_counts[0], rq.llc_counts[4], rq.nr_pref_llc_running)
    });
    assert_eq!(queues, [(1, 0, 1), (1, 0, 1), (1, 0, 0)], "the third stands elsewhere");
    assert_eq!(others.map(|task| bed.scheduler.shared.tasks[task.index()].preferred_llc), [Some(0); 2]);
}

#[test]
fn a_single_thread_prefers_nothing() {
    let mut bed = machine("v7.2", 1, 2);
    let task = bed.spawn(0, 1);
    bed.run_all(8, 40);
    assert_eq!(preferred(&bed, task), None);
}

/// More threads run than the cache has room for: four fifths of its CPUs. Their average, which is cut off, stays one below.
#[test]
fn a_process_that_is_too_large_prefers_nothing() {
    let prefers = |threads: u32| {
        let mut bed = machine("v7.2", 1, 2);
        let first = bed.spawn(0, 0);
        (1..threads).for_each(|cpu| {
            bed.spawn_thread(first, cpu);
        });
        bed.run_all(8, 200);
        preferred(&bed, first).is_some()
    };
    assert_eq!([2, 4, 5].map(prefers), [true, true, false]);
}

#[test]
fn a_preference_is_forgotten_when_nobody_looks() {
    let mut bed = machine("v7.2", 1, 2);
    let first = bed.spawn(0, 1);
    bed.spawn_thread(first, 2);
    bed.run_all(8, 40);
    assert!(preferred(&bed, first).is_some());
    bed.pass(49 * MS);
    bed.at(1);
    bed.scheduler.account(Cpu(1));
    assert!(preferred(&bed, first).is_some());
    bed.pass(30 * MS);
    bed.at(1);
    bed.scheduler.account(Cpu(1));
    assert_eq!(preferred(&bed, first), None);
}

/// Threads that sleep on their queues count for the cache, but not as runnable there.
#[test]
fn counts_follow_tasks_on_and_off_queues() {
    let mut bed = machine("v7.2", 1, 2);
    let first = bed.spawn(0, 1);
    for cpu in [1, 2] {
        bed.spawn_thread(first, cpu);
    }
    bed.run_all(8, 40);
    let counts = |bed: &SchedulerTestbed| {
        (bed.scheduler.rqs[1].llc_counts[0], bed.scheduler.rqs[1].nr_pref_llc_running)
    };
    // The waiting one takes the preference over when it runs.
    assert_eq!(counts(&bed), (2, 2));
    let sleeper = bed.sleep(1);
    let delayed = bed.scheduler.task(sleeper).is_delayed();
    assert_eq!(counts(&bed), if delayed { (2, 1) } else { (1, 1) });
    bed.wake(sleeper, 1);
    assert_eq!(counts(&bed), (2, 2));
}

#[test]
fn a_process_ends_with_its_last_thread() {
    let mut bed = machine("v7.2", 1, 2);
    let first = bed.spawn(0, 1);
    let second = bed.spawn_thread(first, 2);
    let other = bed.spawn(0, 3);
    let id = process_of(&bed, first);
    assert!(id.is_some() && id == process_of(&bed, second) && id != process_of(&bed, other));
    let threads = |bed: &SchedulerTestbed| bed.scheduler.shared.processes.processes[0].nr_threads;
    bed.at(1);
    bed.scheduler.exit_signals(first);
    assert_eq!(process_of(&bed, first), None);
    assert_eq!(threads(&bed), 2, "the first thread counts until the last is gone");
    let third = bed.spawn_thread(second, 4);
    assert_eq!(threads(&bed), 3);
    for (task, cpu) in [(third, 4), (second, 2)] {
        bed.at(cpu);
        bed.scheduler.exit_signals(task);
    }
    let next = bed.spawn(0, 5);
    assert_eq!(process_of(&bed, next), id, "its place is given away again");
}
