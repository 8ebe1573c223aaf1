//! Threads of a process come together under one cache, others do not, and none where there is no room.

use fairlab_event::TaskState;

use super::*;
use crate::balance::{BalanceDecision, GroupType, MigrationType};
use crate::domain::SharedId;
use crate::task::{OnRq, Policy};
use crate::testbed::SchedulerTestbed;
use crate::topology::{SmtNumbering, Topology};

/// CPUs 0 to 3 share a cache, 4 to 7 another.
fn two_caches(kernel: &str) -> SchedulerTestbed {
    SchedulerTestbed::on(kernel, Topology::regular(1, 2, 4, 1, SmtNumbering::Adjacent).expect("a machine"))
}

/// The level of both caches.
const TOP: usize = 1;

/// CPU 2, which idles, balances both caches.
fn balance(bed: &mut SchedulerTestbed) -> BalanceDecision {
    bed.at(2);
    let decision = bed.scheduler.decide_balance(Cpu(2), TOP, CpuIdleType::Idle);
    bed.scheduler.apply_balance(&decision);
    decision
}

/// Two tasks have run on CPUs 0 and 1 and one on CPU 4 for 40 ms, as threads of one process or by themselves.
fn three(kernel: &str, one_process: bool) -> (SchedulerTestbed, TaskId) {
    let mut bed = two_caches(kernel);
    let first = bed.spawn(0, 0);
    let [_, last] =
        [1, 4].map(|cpu| if one_process { bed.spawn_thread(first, cpu) } else { bed.spawn(0, cpu) });
    bed.run_all(8, 40);
    (bed, last)
}

/// Whether the third of three threads is to be pushed to the cache of the others.
pub(crate) fn pushed_to_its_process(kernel: &str) -> u64 {
    u64::from(balance(&mut three(kernel, true).0).push)
}

#[test]
fn a_thread_that_runs_alone_is_pushed_to_its_process_from_v7_2() {
    assert_eq!(["v7.1", "v7.2-cache-aware", "v7.2"].map(pushed_to_its_process), [0, 0, 1]);
    let (mut bed, last) = three("v7.2", true);
    let decision = balance(&mut bed);
    let kind = decision.group.map(|group| group.kind);
    assert_eq!((kind, decision.imbalance.migration), (Some(GroupType::LlcBalance), MigrationType::LlcTask));
    assert_eq!(bed.scheduler.push_cpu(Cpu(4)), Some(Cpu(2)));
    let stopper = bed.spawn_with(0, 4, Policy::Stop, CpuMask::single(Cpu(4)));
    bed.schedule(4);
    assert_eq!(bed.scheduler.curr(Cpu(4)), stopper);
    bed.at(4);
    assert_eq!(bed.scheduler.apply_push(Cpu(4)), Some(last));
    assert_eq!(bed.scheduler.task(last).cpu(), Cpu(2));
    assert_eq!(bed.scheduler.check_invariants(), Ok(()));
}

#[test]
fn tasks_of_different_processes_stay_where_they_are() {
    assert!(!balance(&mut three("v7.2", false).0).push);
}

#[test]
fn a_push_for_a_process_takes_only_who_prefers_that_cache() {
    let (mut bed, _) = three("v7.2", true);
    // A single thread's process prefers nothing.
    let other = bed.spawn(0, 4);
    balance(&mut bed);
    let mut pinned = LbfFlags::default();
    let pushes = LbEnv {
        pushes: true,
        pushes_llc_task: true,
        ..bed.scheduler.attempt(Cpu(2), TOP, CpuIdleType::Idle)
    };
    assert_eq!(
        bed.scheduler.can_migrate_task(&pushes, other, Cpu(4), &mut pinned),
        TaskReason::PrefersOtherCache
    );
    let load = LbEnv { pushes_llc_task: false, ..pushes };
    assert_eq!(bed.scheduler.can_migrate_task(&load, other, Cpu(4), &mut pinned), TaskReason::Moved);
}

/// Sets what is known of both caches' use, percent of their capacity.
fn used(bed: &mut SchedulerTestbed, percents: [u64; 2]) {
    for (cpu, percent) in [0, 4].into_iter().zip(percents) {
        let shared: SharedId = bed.scheduler.domains.of_cpu(Cpu(cpu)).sd_llc_shared.expect("a cache");
        let shared = bed.scheduler.domains.shared_mut(shared);
        (shared.util_avg, shared.capacity) = (4096 * percent / 100, 4096);
    }
}

/// What is said of a task without weight that would go from the first cache to the second.
fn said(bed: &mut SchedulerTestbed, to_preferred: bool, percents: [u64; 2]) -> LlcMigration {
    used(bed, percents);
    let attempt = bed.scheduler.attempt(Cpu(4), TOP, CpuIdleType::Idle);
    bed.scheduler
        .can_migrate_llc(&attempt, GatheringMove { source: Cpu(0), dest: Cpu(4), util: 0, to_preferred })
}

/// Cores without threads: a cache is busy from three quarters on.
#[test]
fn use_of_both_caches_decides_who_may_go() {
    use LlcMigration::{ForProcess, Forbidden, Unrestricted};
    let mut bed = two_caches("v7.2");
    let mut to = |percents| said(&mut bed, true, percents);
    assert_eq!([[30, 30], [30, 74], [70, 76], [74, 30]].map(&mut to), [ForProcess; 4]);
    assert_eq!([[30, 76], [60, 76]].map(&mut to), [Forbidden; 2], "busier by more than a fifth");
    assert_eq!([[76, 76], [90, 80]].map(&mut to), [Unrestricted; 2], "both are busy");
    let mut from = |percents| said(&mut bed, false, percents);
    assert_eq!([[30, 30], [70, 30], [74, 74]].map(&mut from), [Forbidden; 3], "it would be left idle");
    assert_eq!(from([76, 70]), Forbidden, "by less than a fifth");
    assert_eq!(from([90, 70]), ForProcess);
    assert_eq!(from([76, 76]), Unrestricted);
}

#[test]
fn caches_of_cores_with_threads_are_busy_from_half_on() {
    let said = |threads| {
        let cores = 4 / threads;
        let topology = Topology::regular(1, 2, cores, threads, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on("v7.2", topology);
        said(&mut bed, true, [30, 60])
    };
    assert_eq!([1, 2].map(said), [LlcMigration::ForProcess, LlcMigration::Forbidden]);
}

/// A waiting thread that prefers its cache is not pulled to an idle CPU of the other, until tries have failed.
#[test]
fn a_thread_stays_with_its_process_until_tries_fail() {
    let reason = |kernel: &str, failed| {
        let mut bed = two_caches(kernel);
        let first = bed.spawn(0, 0);
        let waits = bed.spawn_thread(first, 0);
        bed.spawn_thread(first, 1);
        bed.run_all(8, 40);
        let waits = if bed.scheduler.curr(Cpu(0)) == waits { first } else { waits };
        used(&mut bed, [40, 10]);
        bed.at(4);
        bed.scheduler.domain_state_mut(Cpu(4), TOP).nr_balance_failed = failed;
        let attempt =
            LbEnv { migration: MigrationType::Task, ..bed.scheduler.attempt(Cpu(4), TOP, CpuIdleType::Idle) };
        let mut pinned = LbfFlags::default();
        (bed.scheduler.can_migrate_task(&attempt, waits, Cpu(0), &mut pinned), pinned.llc)
    };
    let tries = two_caches("v7.2").scheduler.domain(Cpu(4), TOP).cache_nice_tries;
    assert_eq!(reason("v7.2", 1), (TaskReason::StaysWithProcess, true));
    assert_ne!(reason("v7.2-cache-aware", 1).0, TaskReason::StaysWithProcess);
    assert_ne!(reason("v7.2", tries + 1).0, TaskReason::StaysWithProcess);
}

/// A thread that fits the big CPU on which it waits only, and prefers the cache of small ones: whether it is moved there.
pub(crate) fn moved_to_a_small_cpu(kernel: &str) -> u64 {
    let topology = Topology::regular(1, 2, 4, 1, SmtNumbering::Adjacent).expect("a machine");
    let capacities = [300, 300, 300, 300, 1024, 1024, 1024, 1024];
    let mut bed = SchedulerTestbed::on(kernel, topology.with_capacities(&capacities).expect("capacities"));
    let first = bed.spawn(0, 0);
    for cpu in [1, 2] {
        bed.spawn_thread(first, cpu);
    }
    let waits = bed.spawn_thread(first, 4);
    bed.run_all(8, 40);
    bed.use_task(waits, 600);
    used(&mut bed, [30, 30]);
    bed.at(3);
    let attempt =
        LbEnv { migration: MigrationType::Task, ..bed.scheduler.attempt(Cpu(3), TOP, CpuIdleType::Idle) };
    u64::from(bed.scheduler.degrades_llc(&attempt, waits, Cpu(4), &mut LbfFlags::default()).is_none())
}

#[test]
fn nobody_is_moved_to_a_cpu_that_is_too_small_from_v7_3() {
    assert_eq!(["v7.2", "v7.3"].map(moved_to_a_small_cpu), [1, 0]);
}

#[test]
fn balancing_remembers_how_much_of_each_cache_is_used() {
    let (mut bed, _) = three("v7.2", true);
    balance(&mut bed);
    let known = [0, 4].map(|cpu| {
        let shared = bed.scheduler.domains.of_cpu(Cpu(cpu)).sd_llc_shared.expect("a cache");
        *bed.scheduler.domains.shared(shared)
    });
    assert_eq!(known.map(|shared| shared.capacity), [4096, 4096]);
    assert!(known[0].util_avg > known[1].util_avg && known[1].util_avg > 0, "{known:?}");
}

/// A push goes by load, whatever began it: a sleeper that is still queued goes, too.
#[test]
fn a_push_for_a_process_takes_a_sleeper_that_is_still_queued() {
    let (mut bed, last) = three("v7.2", true);
    balance(&mut bed);
    bed.spawn_with(0, 4, Policy::Stop, CpuMask::single(Cpu(4)));
    bed.schedule(4);
    bed.scheduler.shared.tasks[last.index()].on_rq = OnRq::Delayed(TaskState::INTERRUPTIBLE);
    bed.at(4);
    assert_eq!(bed.scheduler.decide_push_task(Cpu(4)), Some((last, Cpu(2))));
}
