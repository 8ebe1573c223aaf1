//! Which tasks a pass over a queue takes, and when it ends.

use super::*;
use crate::balance::BalancedReason;
use crate::cpumask::CpuMask;
use crate::group::GroupId;
use crate::task::Policy;
use crate::testbed::{MS, SchedulerTestbed};

fn idle_cpu_0(bed: &mut SchedulerTestbed) -> crate::balance::BalanceDecision {
    bed.pass(MS);
    bed.at(0);
    bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::Idle)
}

#[test]
fn the_task_that_ran_longest_ago_goes_first_and_arrives_last() {
    let mut bed = SchedulerTestbed::new("v5.10", 2, 1);
    let running = bed.spawn(0, 1);
    let waiting = (0..4).map(|_| bed.spawn(0, 1)).collect::<Vec<_>>();
    let decision = idle_cpu_0(&mut bed);
    let seen = decision.pulls[0].looks.iter().map(|look| (look.task, look.reason)).collect::<Vec<_>>();
    let (running, moved) = ((running, TaskReason::Running), TaskReason::Moved);
    assert_eq!(seen, [running, (waiting[0], moved), (waiting[1], moved)], "5 and 0: half of the difference");
    assert_eq!(bed.scheduler.apply_balance(&decision), 2);
    let arrived =
        bed.scheduler.rqs[0].cfs_tasks.oldest_first(&bed.scheduler.shared.tasks).collect::<Vec<_>>();
    assert_eq!(arrived, [waiting[1], waiting[0]]);
    assert!(bed.scheduler.need_resched(Cpu(0)), "the idle CPU is told");
}

#[test]
fn a_task_that_is_picked_again_goes_to_the_front_to_v6_11() {
    let oldest = |kernel| {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let running = bed.spawn(0, 1);
        let waiting = bed.spawn(0, 1);
        let pick = bed.schedule(1);
        assert_eq!(pick.task, running, "{kernel}: it has only begun");
        let oldest = bed.scheduler.rqs[1].cfs_tasks.oldest_first(&bed.scheduler.shared.tasks).next();
        if oldest == Some(waiting) { "waiting" } else { "running" }
    };
    assert_eq!(
        ["v4.18", "v5.10", "v6.11", "v6.12", "v7.2"].map(oldest),
        ["waiting", "waiting", "waiting", "running", "running"]
    );
}

/// How many tasks a CPU takes that goes idle beside one with five.
pub(crate) fn moved_when_newly_idle(kernel: &str) -> u64 {
    let mut bed = SchedulerTestbed::new(kernel, 2, 1);
    for _ in 0..5 {
        bed.spawn(0, 1);
    }
    bed.pass(MS);
    bed.at(0);
    bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::NewlyIdle).moved() as u64
}

#[test]
fn a_cpu_that_goes_idle_takes_one_task_of_a_preemptible_kernel() {
    let preemptible = ["v6.1+preemptible", "debian-6.1", "debian-6.12", "v7.0", "debian-7.2"];
    let others = ["v6.1", "debian-5.10", "v6.19"];
    assert_eq!(preemptible.map(moved_when_newly_idle), [1; 5]);
    assert_eq!(others.map(moved_when_newly_idle), [2; 3]);
}

#[test]
fn a_pass_ends_after_32_tasks_if_none_of_them_is_allowed() {
    for (kernel, moves) in [("v6.0", false), ("v6.1", true), ("v6.10", false)] {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        for _ in 0..40 {
            bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
        }
        let free = bed.spawn(0, 1);
        let decision = idle_cpu_0(&mut bed);
        assert_eq!(decision.moved() > 0, moves, "{kernel}");
        if moves {
            assert!(decision.pulls[0].moved().eq([free]));
        } else {
            assert_eq!(decision.balanced, Some(BalancedReason::AllPinned));
        }
    }
}

#[test]
fn a_task_that_just_ran_is_hot_for_a_while_but_not_for_the_other_thread() {
    let hot = |kernel: &str, threads, wait| {
        let mut bed = SchedulerTestbed::new(kernel, 2 / threads, threads);
        let first = bed.spawn(0, 1);
        bed.spawn(0, 1);
        while bed.scheduler.curr(Cpu(1)) == first {
            bed.run(1, 1);
        }
        bed.pass(wait);
        bed.at(0);
        let decision = bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::NewlyIdle);
        decision.pulls[0].looks.iter().any(|look| look.task == first && look.reason == TaskReason::CacheHot)
    };
    assert!(hot("v5.9", 1, 400_000) && !hot("v5.9", 1, 600_000));
    assert!(hot("v5.9", 2, 400_000) && !hot("v5.10", 2, 400_000), "ec73240b1627");
    assert!(hot("v5.10", 1, 400_000));
}

/// How many tasks are pulled after 64 failures, of a queue whose waiting task is more than twice the imbalance.
pub(crate) fn moved_after_64_failures(kernel: &str) -> u64 {
    let mut bed = SchedulerTestbed::new(kernel, 2, 1);
    for _ in 0..2 {
        bed.spawn(-20, 1);
        bed.spawn(-18, 0);
    }
    for _ in 0..200 {
        bed.run(0, 1);
        bed.tick(1);
        bed.return_to_user(1);
    }
    bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = 64;
    bed.scheduler.decide_balance(Cpu(0), 0, CpuIdleType::NotIdle).moved() as u64
}

#[test]
fn the_more_failures_the_larger_a_task_may_be() {
    assert_eq!(["v5.12", "v5.13"].map(moved_after_64_failures), [0, 1], "39a2a6eb5c9b");
}

#[test]
fn shifts_are_bound_by_the_word() {
    assert_eq!((shr_bound(1024, 3), shr_bound(u64::MAX, 64), shr_bound(u64::MAX, 1000)), (128, 1, 1));
    assert_eq!(1024_u64.wrapping_shr(64), 1024, "what x86 did before 39a2a6eb5c9b");
}

/// What a pass over the queue of CPU 1 comes to for CPU 0, which is to take `imbalance` of something.
fn pass_over(
    bed: &mut SchedulerTestbed,
    idle: CpuIdleType,
    (migration, imbalance): (MigrationType, i64),
) -> (Vec<(TaskReason, u64)>, PullEnd, i64, bool) {
    bed.pass(20 * MS);
    bed.at(0);
    let mut attempt = LbEnv {
        cpus: CpuMask::first(2),
        migration,
        imbalance,
        lb_bias: false,
        ..bed.scheduler.attempt(Cpu(0), 0, idle)
    };
    let mut queue = bed.scheduler.source_queue(Cpu(1));
    let mut pinned = LbfFlags { all: true, ..LbfFlags::default() };
    let pull = bed.scheduler.detach_tasks(&mut attempt, &mut queue, &mut pinned);
    let looks = pull.looks.iter().map(|look| (look.reason, look.size)).collect();
    (looks, pull.end, attempt.imbalance, pinned.all)
}

const RUNNING: (TaskReason, u64) = (TaskReason::Running, 0);

/// Tasks on CPU 1, of which the first runs.
fn queue(kernel: &str, tasks: u32) -> (SchedulerTestbed, Vec<TaskId>) {
    let mut bed = SchedulerTestbed::new(kernel, 2, 1);
    let tasks = (0..tasks).map(|_| bed.spawn(0, 1)).collect();
    (bed, tasks)
}

#[test]
fn a_pass_ends_when_enough_is_moved_or_one_is_left_for_its_own_cpu() {
    let moved = (TaskReason::Moved, 1);
    let of = |idle, imbalance| {
        let (looks, end, left, _) =
            pass_over(&mut queue("v5.10", 4).0, idle, (MigrationType::Task, imbalance));
        (looks, end, left)
    };
    assert_eq!(of(CpuIdleType::Idle, 2), (vec![RUNNING, moved, moved], PullEnd::Enough, 0));
    assert_eq!(of(CpuIdleType::Idle, 9), (vec![RUNNING, moved, moved, moved], PullEnd::LeavesOne, 6));
    let (looks, end, left) = of(CpuIdleType::NotIdle, 9);
    assert_eq!((looks, left), (vec![RUNNING, moved, moved, moved], 6));
    assert_eq!(end, PullEnd::LookLimit, "four of four tasks");
    assert_eq!(of(CpuIdleType::Idle, 0), (vec![], PullEnd::Enough, 0));
}

#[test]
fn a_preemptible_kernel_takes_one_task_when_it_goes_idle() {
    let taken = |preemptible, idle| {
        let (mut bed, _) = queue("v5.10", 4);
        bed.scheduler.set_preemption(preemptible);
        let (looks, end, ..) = pass_over(&mut bed, idle, (MigrationType::Task, 9));
        (looks.len() - 1, end == PullEnd::OneForNewidle)
    };
    assert_eq!(taken(true, CpuIdleType::NewlyIdle), (1, true));
    assert_eq!(taken(true, CpuIdleType::Idle), (3, false));
    assert_eq!(taken(false, CpuIdleType::NewlyIdle), (3, false));
}

#[test]
fn a_queue_that_has_shrunk_to_a_single_task_is_not_called_pinned_from_v5_12_on() {
    let pinned = |kernel, tasks| {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        for _ in 0..tasks {
            bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
        }
        pass_over(&mut bed, CpuIdleType::NotIdle, (MigrationType::Task, 1)).3
    };
    assert_eq!(["v5.11", "v5.12"].map(|kernel| pinned(kernel, 1)), [true, false]);
    assert_eq!(["v5.11", "v5.12"].map(|kernel| pinned(kernel, 2)), [true, true]);
}

#[test]
fn tasks_are_taken_as_long_as_their_utilization_fits() {
    let of = |kernel, failed, imbalance| {
        let (mut bed, tasks) = queue(kernel, 3);
        for (&task, util) in tasks.iter().zip([100, 300, 200]) {
            bed.use_task(task, util);
        }
        bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = failed;
        let (looks, _, left, _) = pass_over(&mut bed, CpuIdleType::Idle, (MigrationType::Util, imbalance));
        (looks[1..].to_vec(), left)
    };
    let (moved, too_large) = (|util| (TaskReason::Moved, util), |util| (TaskReason::UtilTooLarge, util));
    assert_eq!(of("v6.7", 0, 299), (vec![too_large(300), moved(200)], 99));
    assert_eq!(of("v6.7", 0, 300), (vec![moved(300)], 0));
    assert_eq!(of("v6.7", 0, 400), (vec![moved(300), too_large(200)], 100));
    assert_eq!(of("v6.7", 1, 299).0, [too_large(300), moved(200)], "failures do not matter");
    assert_eq!(of("v6.8", 1, 150).0, [moved(300)], "half of it fits after a failure");
    assert_eq!(of("v6.8", 1, 149).0, [too_large(300), moved(200)]);
}

#[test]
fn how_heavy_a_task_may_be_against_the_imbalance() {
    let load = {
        let (mut bed, _) = queue("v5.4", 2);
        let looks = pass_over(&mut bed, CpuIdleType::Idle, (MigrationType::Load, 1 << 40)).0;
        looks[1].1 as i64
    };
    assert!(load > 900, "{load}");
    let of = |kernel, failed, imbalance| {
        let (mut bed, _) = queue(kernel, 2);
        bed.scheduler.domain_state_mut(Cpu(0), 0).nr_balance_failed = failed;
        let (looks, _, left, _) = pass_over(&mut bed, CpuIdleType::Idle, (MigrationType::Load, imbalance));
        assert_eq!(left, if looks[1].0.is_moved() { imbalance - load } else { imbalance });
        looks[1].0.is_moved()
    };
    let at = |kernel, failed, limit: i64| [limit - 1, limit].map(|imbalance| of(kernel, failed, imbalance));
    assert_eq!(at("v5.4", 0, load / 2), [false, true], "twice the imbalance");
    assert_eq!(at("v5.4", 9, load / 2), [false, true]);
    assert_eq!(at("v5.5", 1, load / 2), [false, true]);
    assert_eq!(at("v5.5", 2, load / 2), [true, true], "any after more failures than cache_nice_tries");
    for kernel in ["v5.10", "v5.13"] {
        assert_eq!(at(kernel, 0, load), [false, true], "{kernel}");
        assert_eq!(at(kernel, 2, load / 4), [false, true], "{kernel}: twice that after each failure");
    }
}

/// The loads that a pass over the queue of CPU 1 tells, and what they turn out to be when each task is detached in turn.
fn loads_told_and_found(bed: &mut SchedulerTestbed) -> (Vec<u64>, Vec<u64>) {
    bed.pass(3 * MS);
    let looks = pass_over(bed, CpuIdleType::Idle, (MigrationType::Load, 1 << 40)).0;
    let told =
        looks.iter().filter(|(reason, _)| reason.is_moved()).map(|(_, load)| *load).collect::<Vec<_>>();
    bed.scheduler.rq_lock(Cpu(1)).update_rq_clock();
    let list = bed.scheduler.rqs[1].cfs_tasks.oldest_first(&bed.scheduler.shared.tasks);
    let running = bed.scheduler.curr(Cpu(1));
    let moved = list.filter(|&task| task != running).take(told.len()).collect::<Vec<_>>();
    let found = moved.into_iter().map(|task| {
        let queue = bed.scheduler.entity_of(task).cfs_rq;
        bed.scheduler.shared.update_cfs_rq_h_load(queue);
        let load = bed.scheduler.shared.task_h_load(task);
        bed.scheduler.detach_task(task, Cpu(0));
        load
    });
    let found = found.collect();
    (told, found)
}

#[test]
fn each_load_is_what_is_left_of_it_when_those_before_have_gone() {
    for kernel in ["v5.10", "v6.1", "v6.11", "v7.2"] {
        let (mut bed, _) = queue(kernel, 1);
        for nice in [5, -3, 0, 8, -10] {
            bed.spawn(nice, 1);
            bed.run(1, 7);
        }
        let (told, found) = loads_told_and_found(&mut bed);
        assert!(told.len() >= 4, "{kernel}: {told:?}");
        assert_eq!(told, found, "{kernel}");
    }
}

#[test]
fn so_it_is_with_groups_whose_weight_changes_as_tasks_leave() {
    for kernel in ["v5.10", "v6.1", "v6.11", "v7.2"] {
        let (mut bed, _) = queue(kernel, 1);
        let groups = [2048, 100].map(|shares| bed.scheduler.new_group(GroupId::ROOT, shares));
        for group in [groups[0], groups[1], GroupId::ROOT, groups[0], groups[1]] {
            bed.spawn_in(group, 1);
            bed.run(1, 7);
        }
        let (told, found) = loads_told_and_found(&mut bed);
        assert!(told.len() >= 4, "{kernel}: {told:?}");
        assert_eq!(told, found, "{kernel}");
    }
}

#[test]
fn a_task_without_load_counts_one_from_v5_8_on() {
    let left = |kernel| {
        let (mut bed, tasks) = queue(kernel, 2);
        let se = bed.scheduler.shared.tasks[tasks[1].index()].se;
        bed.scheduler.se_mut(se).avg.load_avg = 0;
        pass_over(&mut bed, CpuIdleType::Idle, (MigrationType::Load, 10)).2
    };
    assert_eq!(["v5.7", "v5.8"].map(left), [10, 9]);
}

#[test]
fn a_misfit_is_told_by_half_its_load_or_by_what_its_cpu_can_do() {
    let of = |kernel: &str, util, imbalance| {
        let (mut bed, tasks) = queue(kernel, 3);
        for &task in &tasks[1..] {
            bed.use_task(task, util);
            let se = bed.scheduler.shared.tasks[task.index()].se;
            bed.scheduler.se_mut(se).avg.load_avg = 1000;
        }
        let (looks, end, ..) = pass_over(&mut bed, CpuIdleType::Idle, (MigrationType::Misfit, imbalance));
        (looks[1..].iter().map(|look| look.0).collect::<Vec<_>>(), end == PullEnd::Enough)
    };
    let (moved, fits) = ((vec![TaskReason::Moved], true), (vec![TaskReason::FitsItsCpu; 2], false));
    assert_eq!(of("v5.10", 820, 1), moved, "one is enough");
    assert_eq!(of("v5.10", 819, 1), fits, "it leaves a fifth of 1024");
    let by_load = "v5.5-c63be7be59de";
    assert_eq!([499, 500].map(|imbalance| of(by_load, 0, imbalance)), [moved, fits], "half of 999");
}

/// What an attempt has looked at is looked at again for another CPU of the group, up to the limit once more.
#[test]
fn a_pass_for_another_cpu_of_the_group_begins_anew() {
    let mut bed = SchedulerTestbed::new("v5.10", 2, 2);
    for _ in 0..40 {
        bed.spawn_with(0, 2, Policy::Normal, [1, 2].map(Cpu).into_iter().collect());
    }
    bed.pass(20 * MS);
    bed.at(0);
    let decision = bed.scheduler.decide_balance(Cpu(0), 1, CpuIdleType::Idle);
    let ends = decision.pulls.iter().map(|pull| (pull.dest, pull.looks.len() as u32, pull.end));
    let ends = ends.collect::<Vec<_>>();
    assert_eq!(ends[0], (Cpu(0), 32, PullEnd::LookLimit), "none may come here");
    assert_eq!(ends.len(), 2);
    assert_eq!(ends[1].0, Cpu(1));
    assert_eq!(decision.moved() + 1, ends[1].1, "all but the running one may go to the other thread");
    assert!(decision.moved() > 8, "{ends:?}");
}

/// Who is eligible is foretold for as many as have left, with weights of groups that change by it.
#[test]
fn whether_a_task_is_eligible_is_asked_once_others_have_left() {
    let (mut asked, mut changed) = (0, 0);
    for kernel in ["v6.14", "v6.19", "v7.0", "v7.2", "v7.3"] {
        for groups in [0, 2] {
            let mut bed = SchedulerTestbed::new(kernel, 2, 1);
            let mut of = vec![GroupId::ROOT];
            of.extend((0..groups).map(|_| bed.scheduler.new_group(GroupId::ROOT, 1024)));
            for at in 0..7 {
                let task = bed.spawn_in(of[at % of.len()], 1);
                bed.scheduler.set_scheduler(task, Policy::Normal, [0, 5, -5][at % 3], None);
            }
            bed.run(1, 9);
            bed.pass(MS / 3);
            bed.at(0);
            let here = &bed.scheduler;
            let running = here.curr(Cpu(1));
            let waiting =
                here.rqs[1].cfs_tasks.oldest_first(&here.shared.tasks).filter(|&task| task != running);
            let waiting = waiting.collect::<Vec<_>>();
            let migration = MigrationType::Task;
            let attempt = LbEnv { migration, ..here.attempt(Cpu(0), 0, CpuIdleType::Idle) };
            let (mut queue, mut after) = (here.source_queue(Cpu(1)), here.clone());
            after.rq_lock(Cpu(1)).update_rq_clock();
            for (left, &task) in waiting.iter().enumerate() {
                for &stays in &waiting[left..] {
                    let is = after.shared.is_eligible_without(stays, std::iter::empty());
                    assert_eq!(
                        queue.is_eligible(here, stays),
                        is,
                        "{kernel}, {groups} groups, {left} have left"
                    );
                    let was = here.shared.is_eligible_without(stays, std::iter::empty());
                    (asked, changed) = (asked + 1, changed + u32::from(is != was));
                }
                queue.note_leaving(here, task, &attempt);
                after.detach_task(task, Cpu(0));
            }
        }
    }
    assert!(changed * 20 > asked, "{changed} of {asked} are answered otherwise than before");
}
