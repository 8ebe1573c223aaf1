//! Whose turn it is, what affinity leaves behind, and what is counted and remembered of a try.

use super::*;
use crate::cpumask::CpuMask;
use crate::task::{Policy, TaskId};
use crate::testbed::{MS, SchedulerTestbed};
use crate::topology::{SmtNumbering, Topology};

/// Two caches, each with two cores of two threads: CPUs 0-3 and 4-7.
fn caches(kernel: &str) -> SchedulerTestbed {
    SchedulerTestbed::on(kernel, Topology::regular(1, 2, 2, 2, SmtNumbering::Adjacent).expect("a machine"))
}

fn decide(bed: &mut SchedulerTestbed, cpu: u32, level: usize, idle: CpuIdleType) -> BalanceDecision {
    bed.pass(20 * MS);
    bed.at(cpu);
    bed.scheduler.decide_balance(Cpu(cpu), level, idle)
}

fn apply(bed: &mut SchedulerTestbed, cpu: u32, level: usize, idle: CpuIdleType) -> BalanceDecision {
    let decision = decide(bed, cpu, level, idle);
    bed.scheduler.apply_balance(&decision);
    decision
}

/// The CPUs whose turn it is to balance between the caches, where `busy` ones run a task.
fn balancers(kernel: &str, busy: &[u32]) -> Vec<u32> {
    let mut bed = caches(kernel);
    for &cpu in busy {
        bed.spawn(0, cpu);
    }
    (0..4)
        .filter(|&cpu| {
            decide(&mut bed, cpu, 2, CpuIdleType::Idle).balanced != Some(BalancedReason::NotItsTurn)
        })
        .collect()
}

#[test]
fn one_cpu_balances_for_its_group() {
    for kernel in ["v5.10", "v6.5", "v6.6", "v6.7"] {
        assert_eq!(balancers(kernel, &[]), [0], "{kernel}");
        assert_eq!(balancers(kernel, &[0, 1, 2, 3]), [0], "{kernel}: the first if none idles");
        assert_eq!(balancers(kernel, &[0, 1]), [2], "{kernel}: the first that idles");
    }
    assert_eq!(
        ["v6.5", "v6.6", "v6.7"].map(|kernel| balancers(kernel, &[0])),
        [vec![1], vec![2], vec![2]],
        "on an idle core"
    );
    let threads = ["v6.5", "v6.6", "v6.7"].map(|kernel| balancers(kernel, &[0, 2]));
    assert_eq!(
        threads,
        [vec![1], vec![0, 1], vec![1]],
        "no core idles: the first idle thread, in v6.6 the first CPU too"
    );
}

#[test]
fn between_threads_of_a_core_the_other_need_not_idle() {
    for kernel in ["v6.5", "v6.7"] {
        let mut bed = caches(kernel);
        bed.spawn(0, 0);
        let turn = |bed: &mut SchedulerTestbed, cpu| {
            decide(bed, cpu, 0, CpuIdleType::Idle).balanced != Some(BalancedReason::NotItsTurn)
        };
        assert!(turn(&mut bed, 1) && turn(&mut bed, 0), "{kernel}: each thread is a group of its own");
    }
}

#[test]
fn a_cpu_that_goes_idle_needs_no_turn_but_a_wakeup_on_its_way_ends_it_from_v6_0_on() {
    let ended = |kernel, disturb: fn(&mut SchedulerTestbed)| {
        let mut bed = caches(kernel);
        disturb(&mut bed);
        decide(&mut bed, 3, 2, CpuIdleType::NewlyIdle).balanced
    };
    let disturbances: [fn(&mut SchedulerTestbed); 2] =
        [|bed| bed.scheduler.ttwu_pending(Cpu(3)), |bed| _ = bed.spawn(0, 3)];
    for disturb in disturbances {
        assert_eq!(
            ["v5.19", "v6.0"].map(|kernel| ended(kernel, disturb)),
            [Some(BalancedReason::NothingToTake), Some(BalancedReason::Woken)]
        );
    }
    assert_eq!(ended("v6.0", |_| ()), Some(BalancedReason::NothingToTake));
    let mut bed = caches("v6.0");
    bed.scheduler.ttwu_pending(Cpu(3));
    assert!(!decide(&mut bed, 3, 2, CpuIdleType::NewlyIdle).continues, "levels above are not looked at");
    assert!(decide(&mut bed, 0, 2, CpuIdleType::Idle).continues);
}

/// CPUs 0 and 1 are a core; the tasks of CPU 2 may run there or not.
fn pinned(kernel: &str, allowed: &[u32], tasks: u32) -> SchedulerTestbed {
    let mut bed = caches(kernel);
    for _ in 0..tasks {
        bed.spawn_with(0, 2, Policy::Normal, allowed.iter().map(|&cpu| Cpu(cpu)).collect());
    }
    bed
}

/// Whether affinity kept tasks of the core of `cpu` from being spread, as the level above sees it.
fn marked(bed: &SchedulerTestbed, cpu: u32, level: usize) -> bool {
    let group = bed.scheduler.domains.local_group(bed.scheduler.domain_id(Cpu(cpu), level));
    bed.scheduler.domains.capacity_of_group(group).imbalance
}

#[test]
fn a_source_whose_tasks_are_all_pinned_makes_way_for_the_next() {
    let mut bed = pinned("v5.10", &[2], 4);
    for _ in 0..3 {
        bed.spawn(0, 3);
    }
    // Both are of the same core.
    let decision = apply(&mut bed, 0, 1, CpuIdleType::Idle);
    let sources = decision.pulls.iter().map(|pull| (pull.source, pull.moved().count())).collect::<Vec<_>>();
    assert_eq!(sources[0], (Cpu(2), 0));
    assert!(sources.last().is_some_and(|last| last.0 == Cpu(3) && last.1 > 0), "{sources:?}");
    assert!(marked(&bed, 0, 2), "the level above is told");
    assert!(!marked(&bed, 4, 2));
    assert_eq!([0, 1].map(|look| decision.found_at(look).is_some()), [true, true]);
    let alone = apply(&mut pinned("v5.10", &[2], 4), 0, 1, CpuIdleType::Idle);
    assert_eq!([0, 1].map(|look| alone.found_at(look).is_some()), [true, false], "there is no next");
}

#[test]
fn if_every_task_is_pinned_the_interval_doubles_and_failures_are_forgotten() {
    let (mut bed, _) = stuck("v5.10", true);
    bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 7;
    bed.scheduler.domain_state_mut(Cpu(0), 0).balance_interval = 64;
    let decision = apply(&mut bed, 0, 0, CpuIdleType::Idle);
    assert_eq!((decision.balanced, decision.moved()), (Some(BalancedReason::AllPinned), 0));
    let state = bed.scheduler.domain_state(Cpu(0), 0);
    assert_eq!((state.nr_balance_failed, state.balance_interval), (0, 128), "beyond what others may");
    let lb = bed.scheduler.domain(Cpu(0), 0).counters.lb[CpuIdleType::Idle.index()];
    assert_eq!((lb.count, lb.balanced, lb.failed, lb.nobusyg, lb.nobusyq), (1, 1, 0, 0, 0));
}

#[test]
fn the_mark_is_cleared_by_a_balanced_look_but_not_by_pinned_tasks() {
    let mut bed = pinned("v5.10", &[2], 4);
    apply(&mut bed, 0, 1, CpuIdleType::Idle);
    assert!(marked(&bed, 0, 2));
    apply(&mut bed, 0, 1, CpuIdleType::Idle);
    assert!(marked(&bed, 0, 2), "they are pinned still");
    let mut calm = caches("v5.10");
    let local = calm.scheduler.domains.local_group(calm.scheduler.domain_id(Cpu(0), 2));
    calm.scheduler.domains.capacity_of_group_mut(local).imbalance = true;
    apply(&mut calm, 0, 1, CpuIdleType::Idle);
    assert!(!marked(&calm, 0, 2));
}

#[test]
fn the_highest_level_tells_nobody_of_pinned_tasks() {
    let mut bed = caches("v5.10");
    for _ in 0..4 {
        bed.spawn_with(0, 4, Policy::Normal, CpuMask::single(Cpu(4)));
    }
    let decision = apply(&mut bed, 0, 2, CpuIdleType::Idle);
    assert!(decision.pulls.iter().any(|pull| !pull.looks.is_empty()) && !decision.left_pinned);
}

#[test]
fn tasks_that_may_not_come_here_go_to_the_other_thread() {
    let mut bed = pinned("v5.10", &[1, 2], 5);
    let decision = apply(&mut bed, 0, 1, CpuIdleType::Idle);
    assert_eq!(decision.pulls.iter().map(|pull| pull.dest).collect::<Vec<_>>(), [Cpu(0), Cpu(1)]);
    assert!(decision.moved() > 0);
    assert_eq!(bed.scheduler.nr_running(Cpu(1)), decision.moved());
    assert_eq!(bed.scheduler.nr_running(Cpu(0)), 0);
    let newly = decide(&mut pinned("v5.10", &[1, 2], 5), 0, 1, CpuIdleType::NewlyIdle);
    assert_eq!(newly.moved(), 0, "a CPU that goes idle looks for itself only");
}

#[test]
fn what_a_try_came_to_is_counted_once() {
    let counted = |tasks: u32, allowed: &[u32], idle| {
        let mut bed = pinned("v5.10", allowed, tasks);
        bed.spawn(0, 3);
        let decision = apply(&mut bed, 0, 1, idle);
        let counters = bed.scheduler.domain(Cpu(0), 1).counters;
        let others = CpuIdleType::ALL
            .into_iter()
            .filter(|&other| other != idle)
            .map(|other| counters.lb[other.index()].count);
        assert_eq!(others.sum::<u64>(), 0, "for one kind of idleness");
        (counters.lb[idle.index()], decision)
    };
    for idle in CpuIdleType::ALL {
        let (lb, decision) = counted(6, &[0, 1, 2, 3], idle);
        assert!(decision.moved() > 0, "{idle:?}");
        assert_eq!((lb.count, lb.balanced, lb.failed), (1, 0, 0));
        assert_eq!((lb.gained, lb.hot_gained), (decision.moved().into(), 0));
        assert_eq!(
            lb.imbalance_task,
            decision.imbalance.amount as u64 * u64::from(decision.imbalance.migration == MigrationType::Task)
        );
        let summed = lb.imbalance_load + lb.imbalance_util + lb.imbalance_task + lb.imbalance_misfit;
        assert_eq!(summed, decision.imbalance.amount as u64);
        let (lb, _) = counted(0, &[0], idle);
        assert_eq!((lb.count, lb.balanced, lb.nobusyg, lb.nobusyq, lb.failed, lb.gained), (1, 1, 1, 0, 0, 0));
    }
}

#[test]
fn hot_tasks_that_are_moved_are_counted_apart() {
    let mut bed = SchedulerTestbed::new("v5.10", 2, 1);
    for _ in 0..4 {
        bed.spawn(0, 1);
    }
    bed.run(1, 20);
    bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 9;
    bed.scheduler.shared.sysctl.migration_cost = 1_000 * MS;
    bed.pass(MS);
    bed.at(0);
    let decision = bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::Idle);
    assert_eq!(bed.scheduler.apply_balance(&decision), 2);
    let lb = bed.scheduler.domain(Cpu(0), 0).counters.lb[CpuIdleType::Idle.index()];
    assert_eq!((lb.gained, lb.hot_gained), (2, 2));
    assert_eq!(bed.scheduler.domain_state(Cpu(0), 0).nr_balance_failed, 0, "a success");
    assert_eq!(bed.scheduler.rqs[0].clock, bed.scheduler.rqs[1].clock, "both clocks stand at now");
}

/// One task runs on CPU 1, and one that is bound waits there.
fn stuck(kernel: &str, bound: bool) -> (SchedulerTestbed, TaskId) {
    let mut bed = SchedulerTestbed::new(kernel, 2, 1);
    let allowed = if bound { CpuMask::single(Cpu(1)) } else { CpuMask::ALL };
    let running = bed.spawn_with(0, 1, Policy::Normal, allowed);
    bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
    (bed, running)
}

#[test]
fn a_try_that_moves_nothing_is_a_failure_except_of_a_cpu_that_goes_idle() {
    for (idle, failed) in [(CpuIdleType::Idle, 1), (CpuIdleType::NewlyIdle, 0)] {
        let (mut bed, _) = stuck("v5.12", false);
        let decision = apply(&mut bed, 0, 0, idle);
        assert_eq!((decision.balanced, decision.moved(), decision.push), (None, 0, false), "{idle:?}");
        let sd = bed.scheduler.domain(Cpu(0), 0);
        assert_eq!(
            (sd.balance.nr_balance_failed, sd.counters.lb[idle.index()].failed),
            (failed, 1),
            "{idle:?}"
        );
    }
}

#[test]
fn a_push_begins_after_enough_failures_and_is_not_begun_twice() {
    let after = |kernel, failed, under_way: bool| {
        let (mut bed, _) = stuck(kernel, false);
        bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = failed;
        bed.scheduler.balance.cpus[1].push_cpu = under_way.then_some(Cpu(0));
        let decision = apply(&mut bed, 0, 0, CpuIdleType::Idle);
        (
            decision.push,
            bed.scheduler.domain_state(Cpu(0), 0).nr_balance_failed,
            bed.scheduler.push_cpu(Cpu(1)),
        )
    };
    assert_eq!(after("v5.12", 2, false), (false, 3, None));
    assert_eq!(after("v5.12", 3, false), (true, 2, Some(Cpu(0))), "one more than hot tasks stay");
    assert_eq!(after("v5.13", 3, false), (true, 4, Some(Cpu(0))), "the count stays");
    assert_eq!(after("v5.12", 3, true), (false, 2, Some(Cpu(0))));
}

#[test]
fn a_running_task_that_may_not_come_here_is_not_pushed() {
    let after = |kernel, bound| {
        let (mut bed, _) = stuck(kernel, bound);
        bed.at(0);
        let attempt = LbEnv {
            cpus: CpuMask::first(2),
            migration: MigrationType::Task,
            imbalance: 1,
            lb_bias: false,
            ..bed.scheduler.attempt(Cpu(0), 0, CpuIdleType::Idle)
        };
        bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 9;
        bed.scheduler.domain_state_mut(Cpu(0), 0).balance_interval = 256;
        let mut decision = BalanceDecision { source: Some(Cpu(1)), ..BalanceDecision::new(&attempt) };
        bed.scheduler.decide_push(&attempt, Cpu(1), &mut decision);
        bed.scheduler.apply_balance(&decision);
        (decision.push, bed.scheduler.domain_state(Cpu(0), 0).balance_interval)
    };
    assert_eq!(after("v5.11", true), (false, 512), "as if all were pinned");
    assert_eq!(after("v5.12", true), (false, 256));
    assert_eq!(after("v5.12", false), (true, 256), "too long already to double");
    assert_eq!(after("v5.13", false), (true, 2), "reset");
}

#[test]
fn the_highest_level_tells_whether_some_cpu_has_tasks_to_spare() {
    let mut bed = caches("v5.10");
    bed.spawn(0, 6);
    bed.spawn(0, 6);
    bed.scheduler.shared.overloaded = false;
    apply(&mut bed, 4, 1, CpuIdleType::Idle);
    assert!(!bed.scheduler.shared.overloaded, "a lower level tells nothing");
    let mut bed = caches("v5.10");
    bed.spawn(0, 6);
    bed.spawn(0, 6);
    bed.scheduler.shared.overloaded = false;
    apply(&mut bed, 0, 2, CpuIdleType::Idle);
    assert!(bed.scheduler.shared.overloaded);
    let mut calm = caches("v5.10");
    calm.spawn(0, 6);
    calm.scheduler.shared.overloaded = true;
    apply(&mut calm, 0, 2, CpuIdleType::Idle);
    assert!(!calm.scheduler.shared.overloaded);
}

/// How far wakeups search follows the use of the cache when the level that spans it is balanced.
#[test]
fn the_level_of_the_cache_tells_wakeups_how_far_to_search() {
    let scan = |level, idle| {
        let mut bed = caches("v6.6");
        for cpu in 0..4 {
            bed.use_cpu(cpu, 900);
        }
        let shared = bed.scheduler.domains.of_cpu(Cpu(0)).sd_llc_shared.expect("a cache");
        let before = bed.scheduler.domains.shared(shared).nr_idle_scan;
        bed.at(0);
        let decision = bed.scheduler.decide_balance(Cpu(0), level, idle);
        bed.scheduler.apply_balance(&decision);
        (before, bed.scheduler.domains.shared(shared).nr_idle_scan)
    };
    assert_eq!(scan(1, CpuIdleType::Idle), (4, 0), "nine tenths used");
    assert_eq!(scan(1, CpuIdleType::NotIdle), (4, 0));
    assert_eq!(scan(1, CpuIdleType::NewlyIdle), (4, 4), "new-idle balancing tells nothing");
    assert_eq!([0, 2].map(|level| scan(level, CpuIdleType::Idle)), [(4, 4), (4, 4)]);
}

#[test]
fn a_task_too_large_for_its_cpu_is_no_failure_from_v6_10_on() {
    let failed = |kernel: &str| {
        let topology = Topology::regular(1, 1, 2, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed =
            SchedulerTestbed::on(kernel, topology.with_capacities(&[1024, 512]).expect("capacities"));
        let task = bed.spawn(0, 1);
        bed.use_task(task, 500);
        bed.at(0);
        let decision = bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::Idle);
        bed.scheduler.apply_balance(&decision);
        assert_eq!((decision.imbalance.migration, decision.push), (MigrationType::Misfit, true), "{kernel}");
        bed.scheduler.domain_state(Cpu(0), 0).nr_balance_failed
    };
    assert_eq!(["v6.9", "v6.10"].map(failed), [1, 0]);
}
