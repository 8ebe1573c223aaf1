//! cpu.max: what groups with a quota do.

use fairlab_event::{Cpu, Ns};

use super::CfsLimit;
use crate::ablation::AblationSituation;
use crate::cpumask::CpuMask;
use crate::decision::ThrottleReason;
use crate::group::GroupId;
use crate::task::{Policy, TaskId};
use crate::testbed::{MS, SchedulerTestbed};

const KERNELS: [&str; 7] = ["v4.18", "v5.3", "v5.10", "v6.6", "v6.12", "v6.18", "v7.2"];

fn bed(kernel: &str, cpus: u32) -> (SchedulerTestbed, GroupId) {
    let mut bed = SchedulerTestbed::new(kernel, cpus, 1);
    let group = bed.scheduler.new_group(GroupId::ROOT, 100);
    (bed, group)
}

/// Who ran each 2 ms: a letter for a task, a dot for none.
fn picture(bed: &mut SchedulerTestbed, tasks: &[TaskId], milliseconds: u64) -> String {
    let ran = bed.run(0, milliseconds);
    let letter =
        |task: &TaskId| tasks.iter().position(|known| known == task).map_or('.', |at| ['A', 'B', 'C'][at]);
    ran.iter().step_by(2).map(letter).collect()
}

/// Whole-queue throttling ends at the tick that finds the slice used; so does that of tasks, for a hog.
#[test]
fn a_hog_runs_for_its_quota_each_period() {
    for kernel in KERNELS {
        let (mut bed, group) = bed(kernel, 1);
        bed.limit(group, 20, 50, 0);
        let hog = bed.spawn_in(group, 0);
        // From v6.18 a queue starts with a nanosecond, which the last tick finds left.
        let drawn = picture(&mut bed, &[hog], 150).replacen("AAAAAAAAAAA.", "AAAAAAAAAA..", 1);
        assert_eq!(
            drawn, "AAAAAAAAAA...............AAAAAAAAAA...............AAAAAAAAAA...............",
            "{kernel}"
        );
        bed.run(0, 850);
        let ran = bed.scheduler.sum_exec_runtime(hog).0;
        assert!(ran.abs_diff(400 * MS) <= 2 * MS, "{kernel}: {ran} ns of 400 ms");
        bed.scheduler.check_invariants().expect("a sound state");
    }
}

/// A queue that has used its runtime up is throttled when somebody looks at it, which a task of a higher class forestalls.
#[test]
fn nothing_is_throttled_by_a_pick_of_a_higher_class() {
    for policy in [Policy::Fifo(1), Policy::Deadline] {
        let (mut bed, group) = bed("v6.12", 1);
        bed.limit(group, 1, 50, 0);
        let hog = bed.spawn_in(group, 0);
        let queue = bed.scheduler.se(bed.scheduler.shared.tasks[hog.index()].se).cfs_rq;
        bed.pass(20 * MS);
        bed.at(0);
        bed.scheduler.account(Cpu(0));
        bed.spawn_with(0, 0, policy, CpuMask::ALL);
        bed.scheduler.before_pick(Cpu(0));
        assert!(!bed.scheduler.cfs(queue).runtime.throttled, "{policy:?}");
        bed.schedule(0);
        let throttled_as_it_was_put = bed.scheduler.cfs(queue).runtime.throttled;
        bed.sleep(0);
        assert!(throttled_as_it_was_put || bed.scheduler.cfs(queue).runtime.throttled, "{policy:?}");
    }
}

#[test]
fn others_run_while_a_group_is_throttled() {
    for kernel in KERNELS {
        let (mut bed, group) = bed(kernel, 1);
        bed.limit(group, 10, 50, 0);
        let (limited, free) = (bed.spawn_in(group, 0), bed.spawn(0, 0));
        bed.run(0, 1000);
        let (limited, free) =
            (bed.scheduler.sum_exec_runtime(limited).0, bed.scheduler.sum_exec_runtime(free).0);
        assert!(limited.abs_diff(200 * MS) < 10 * MS, "{kernel}: {limited}");
        assert!((limited + free).abs_diff(1000 * MS) < 2 * MS, "{kernel}: no time is lost: {free}");
    }
}

/// A quota of a group is shared by its CPUs.
#[test]
fn the_pool_is_one_for_all_cpus() {
    for kernel in KERNELS {
        let (mut bed, group) = bed(kernel, 2);
        bed.limit(group, 20, 100, 0);
        let tasks = [bed.spawn_in(group, 0), bed.spawn_in(group, 1)];
        for _ in 0..1000 {
            bed.run(0, 1);
            bed.tick(1);
            bed.return_to_user(1);
        }
        let ran = tasks.map(|task| bed.scheduler.sum_exec_runtime(task).0);
        let total = ran.iter().sum::<u64>();
        assert!(
            total.abs_diff(200 * MS) <= 20 * MS && ran.iter().all(|&ran| ran > 60 * MS),
            "{kernel}: {ran:?}"
        );
    }
}

#[test]
fn a_limit_above_holds_for_the_groups_below() {
    for kernel in KERNELS {
        let (mut bed, group) = bed(kernel, 1);
        let below = bed.scheduler.new_group(group, 100);
        bed.limit(group, 10, 50, 0);
        bed.limit(below, 40, 50, 0);
        let hog = bed.spawn_in(below, 0);
        bed.run(0, 500);
        let ran = bed.scheduler.sum_exec_runtime(hog).0;
        assert!(ran.abs_diff(100 * MS) <= 2 * MS, "{kernel}: {ran}");
    }
}

/// A running task comes into a group that is throttled as soon as it does: so nothing is queued on the group above, and its queue gets
/// runtime all the same.
#[test]
fn a_moved_running_task_brings_runtime_to_the_queues_above_a_throttled_one() {
    // From v6.18 on tasks are throttled one by one, on their way to user mode.
    for kernel in KERNELS.into_iter().filter(|kernel| !["v6.18", "v7.2"].contains(kernel)) {
        let (mut bed, outer) = bed(kernel, 2);
        let inner = bed.scheduler.new_group(outer, 100);
        bed.limit(outer, 20, 100, 0);
        bed.limit(inner, 1, 100, 0);
        bed.spawn_in(inner, 1);
        bed.run(1, 8);
        let task = bed.spawn(0, 0);
        let remaining = |bed: &SchedulerTestbed| {
            let queue = bed.scheduler.shared.groups[outer.0 as usize].cfs_rqs[0];
            bed.scheduler.cfs(queue).runtime.remaining
        };
        let before = remaining(&bed);
        bed.at(0);
        bed.scheduler.move_task_to_group(task, inner);
        assert!(before <= 1 && remaining(&bed) == 5_000_000, "{kernel}: {before}, then {}", remaining(&bed));
    }
}

/// The rest of an idle period may be used later from v5.14 (f4183717b370).
#[test]
fn a_burst_is_what_was_saved() {
    let in_a_period = |kernel: &str| {
        let (mut bed, group) = bed(kernel, 1);
        bed.limit(group, 10, 50, 10);
        let task = bed.spawn_in(group, 0);
        bed.run(0, 2);
        bed.sleep(0);
        bed.run(0, 58);
        let before = bed.scheduler.sum_exec_runtime(task).0;
        bed.wake(task, 0);
        bed.return_to_user(0);
        bed.run(0, 38);
        (bed.scheduler.sum_exec_runtime(task).0 - before).div_ceil(MS)
    };
    assert_eq!(in_a_period("v5.13"), 11, "the quota, and the millisecond that was kept");
    assert_eq!(
        in_a_period("v5.14"),
        18,
        "of the period before 7 are left: slices return what is beyond a millisecond"
    );
}

/// Runtime that a queue holds is void in the next period from v4.18 (512ac999d275) to v5.3 (de53fd7aedb1).
#[test]
fn slices_expired_once() {
    let left = |kernel: &str| {
        let (mut bed, group) = bed(kernel, 1);
        bed.limit(group, 20, 50, 0);
        let task = bed.spawn_in(group, 0);
        bed.run(0, 2);
        bed.sleep(0);
        bed.run(0, 158);
        bed.wake(task, 0);
        let queue = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(0));
        bed.scheduler.cfs(queue).runtime.remaining
    };
    assert_eq!(left("v4.18-512ac999d275"), MS as i64, "taken for a clock that is ahead");
    assert_eq!(left("v5.3"), 5 * MS as i64, "a new slice, the kept millisecond is gone");
    assert_eq!(left("v5.4"), MS as i64);
}

/// In the kernel a task goes on from v6.18 (e1fad12dcb66); before, its group has left with it.
#[test]
fn a_task_in_the_kernel_is_not_stopped() {
    let ran = |kernel: &str| {
        let (mut bed, group) = bed(kernel, 1);
        bed.limit(group, 10, 50, 0);
        let task = bed.spawn_in(group, 0);
        for _ in 0..30 {
            bed.pass(MS);
            bed.expire_timers();
            bed.tick(0);
            // Preempted in the kernel, it never gets to user mode.
            if bed.scheduler.need_resched(Cpu(0)) {
                bed.schedule(0);
            }
        }
        bed.return_to_user(0);
        assert!(bed.scheduler.runs_idle_task(Cpu(0)), "{kernel}");
        bed.scheduler.sum_exec_runtime(task).0.div_ceil(MS)
    };
    assert_eq!([ran("v6.17"), ran("v6.18"), ran("v7.2")], [10, 30, 30]);
}

#[test]
fn reasons_are_given() {
    let (mut bed, group) = bed("v5.10", 1);
    let queue = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(0));
    let reason = |bed: &SchedulerTestbed| bed.scheduler.shared.throttle_decision(queue).reason;
    assert_eq!(reason(&bed), ThrottleReason::NoQuota);
    bed.limit(group, 10, 50, 0);
    bed.spawn_in(group, 0);
    assert_eq!(reason(&bed), ThrottleReason::RuntimeLeft);
    for _ in 0..10 {
        bed.pass(MS);
        bed.tick(0);
    }
    assert_eq!(reason(&bed), ThrottleReason::OutOfRuntime);
    bed.scheduler.shared.pool_mut(group).runtime = 10 * MS;
    assert_eq!(reason(&bed), ThrottleReason::PoolRefilled, "another CPU gave some back");
    bed.schedule(0);
    assert!(!bed.scheduler.runs_idle_task(Cpu(0)));
    bed.scheduler.shared.pool_mut(group).runtime = 0;
    bed.run(0, 1);
    assert_eq!(reason(&bed), ThrottleReason::ThrottledAlready);
}

/// How much later returned runtime is distributed if 3 ms later more of it comes, in ns.
fn second_return_postpones_by(kernel: &str) -> u64 {
    let (mut bed, group) = bed(kernel, 2);
    bed.limit(group, 40, 100, 0);
    bed.spawn_in(group, 0);
    bed.run(0, 1);
    let waiting = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(1));
    bed.scheduler.shared.pool_mut(group).throttled.push(waiting);
    let queue = bed.scheduler.shared.cfs_rq_of_group(group, Cpu(0));
    let returns = |bed: &mut SchedulerTestbed| {
        bed.scheduler.cfs_mut(queue).nr_running = 0;
        bed.scheduler.cfs_mut(queue).runtime.remaining = 4 * MS as i64;
        bed.scheduler.shared.return_cfs_rq_runtime(queue);
        bed.scheduler.shared.pool(group).slack_expires.expect("a slack timer")
    };
    let first = returns(&mut bed);
    bed.run(1, 3);
    returns(&mut bed) - first
}

/// Whether a period that was over 5 ms ago is taken to be near its end.
fn late_period_is_near(kernel: &str) -> bool {
    let (mut bed, group) = bed(kernel, 1);
    bed.limit(group, 10, 50, 0);
    bed.pass(55 * MS);
    bed.tick(0);
    bed.scheduler.shared.refresh_is_near(group)
}

/// Changes that take a timer of another CPU at the right time.
pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[
    ("slack-timer-stays", second_return_postpones_by),
    ("refresh-signed", |kernel| late_period_is_near(kernel).into()),
    ("attached-is-aged", |kernel| aged_after_attach(kernel).into()),
    ("throttled-not-aged", |kernel| aged_below_a_throttled_one(kernel).into()),
];

/// How many queues of CPU 0 are aged when a group has just been made within another.
fn aged_after_attach(kernel: &str) -> u32 {
    let (mut bed, outer) = bed(kernel, 1);
    bed.at(0);
    bed.scheduler.new_group(outer, 100);
    bed.scheduler.update_blocked_averages(Cpu(0)).queues
}

/// How many are aged when a task has joined a group within a throttled one.
fn aged_below_a_throttled_one(kernel: &str) -> u32 {
    let (mut bed, outer) = bed(kernel, 1);
    let inner = bed.scheduler.new_group(outer, 100);
    bed.limit(outer, 5, 500, 0);
    bed.spawn_in(outer, 0);
    bed.run(0, 20);
    assert!(bed.scheduler.runs_idle_task(Cpu(0)), "{kernel}: throttled");
    bed.spawn_in(inner, 0);
    bed.at(0);
    bed.scheduler.update_blocked_averages(Cpu(0)).queues
}

/// From v5.13 a queue is aged as soon as averages join it, with those above it: here the root's and the outer group's.
#[test]
fn queues_are_aged_from_when_averages_join_them() {
    assert_eq!(["v5.12", "v5.13", "v6.1", "v6.12", "v7.2"].map(aged_after_attach), [0, 2, 2, 2, 2]);
}

/// The queue of a throttled group is not aged: nor, from v6.0, is one below it that something joins. Before, that takes it along.
#[test]
fn queues_of_throttled_groups_are_not_aged() {
    assert_eq!(["v5.19", "v6.0", "v6.12"].map(aged_below_a_throttled_one), [3, 1, 1]);
}

/// To v5.2 each return of runtime put the distribution off (66567fcbaeca).
#[test]
fn returned_runtime_is_distributed_within_five_milliseconds() {
    assert_eq!(["v5.2", "v5.3"].map(second_return_postpones_by), [3 * MS, 0]);
}

/// A period that is over but not begun again is not far from its end (72d0ad7cb5ba).
#[test]
fn slack_is_left_to_a_period_that_is_late() {
    assert_eq!(["v5.13", "v5.14"].map(late_period_is_near), [false, true]);
}

#[test]
fn limits_that_the_kernel_refuses() {
    let refused =
        |quota, period, burst| CfsLimit::new(Ns(quota), Ns(period), Ns(burst)).expect_err("refused");
    assert_eq!(refused(MS - 1, 100 * MS, 0), "a quota of 999999 ns is less than 1 ms");
    assert_eq!(refused(MS, 1001 * MS, 0), "a period of 1001000000 ns is outside 1 ms to 1 s");
    assert_eq!(refused(MS, MS, 2 * MS), "a burst of 2000000 ns is more than the quota of 1000000 ns");
}
