//! Moves between groups, and idle groups.

use fairlab_event::{Cpu, TaskState};

use crate::core::WakeFlags;
use crate::cpumask::CpuMask;
use crate::decision::PreemptReason;
use crate::group::GroupId;
use crate::task::Policy;
use crate::testbed::{MS, SchedulerTestbed};

fn bed(kernel: &str) -> (SchedulerTestbed, [GroupId; 2]) {
    let mut bed = SchedulerTestbed::new(kernel, 8, 1);
    let groups = [100, 100].map(|weight| bed.scheduler.new_group(GroupId::ROOT, weight));
    (bed, groups)
}

/// A new group's entities weigh nice 0; writing other shares than it has gives them the least that
/// there is, which is what an empty queue earns.
#[test]
fn an_empty_group_weighs_nothing_once_its_shares_are_written() {
    for (kernel, written) in [("v5.10", 2), ("v6.1", 2), ("v6.12", 2)] {
        let weights = [100, 200].map(|weight| {
            let mut bed = SchedulerTestbed::new(kernel, 2, 1);
            bed.at(0);
            let group = bed.scheduler.new_group(GroupId::ROOT, weight);
            let group = &bed.scheduler.shared.groups[group.0 as usize];
            let entity = group.entities[1];
            assert_eq!(group.shares, weight * (1 << 20) / 100, "{kernel}");
            bed.scheduler.se(entity).load.raw()
        });
        assert_eq!(weights, [1 << 20, written], "{kernel}");
    }
}

/// To v6.5 a task keeps its distance to the queue's minimum, from v6.6 its lag.
#[test]
fn a_waiting_task_takes_its_place_along() {
    for (kernel, by_lag) in
        [("v5.10", false), ("v6.5", false), ("v6.6", true), ("v6.12", true), ("v7.2", true)]
    {
        let (mut bed, [from, to]) = bed(kernel);
        let tasks = [from, from, to, to].map(|group| bed.spawn_in(group, 0));
        bed.run(0, 40);
        let waits = tasks[..2].iter().find(|&&task| bed.scheduler.curr(Cpu(0)) != task);
        let &task = waits.expect("one of two waits");
        let place = |bed: &SchedulerTestbed| {
            let (queue, vruntime) = (bed.entity(task).cfs_rq, bed.entity(task).vruntime);
            let zero = if by_lag {
                bed.scheduler.shared.average(queue)
            } else {
                bed.scheduler.cfs(queue).min_vruntime
            };
            zero.minus(vruntime)
        };
        bed.scheduler.account(Cpu(0));
        let before = place(&bed);
        bed.scheduler.move_task_to_group(task, to);
        bed.scheduler.check_invariants().expect("a sound state");
        // The minimum moves on when the task that was behind it has left.
        let moved = place(&bed) - before;
        assert!(
            moved.abs() < 2 || (!by_lag && moved.abs() < 12 * MS as i64),
            "{kernel}: {before}, moved by {moved}"
        );
        assert_eq!(bed.entity(task).cfs_rq, bed.scheduler.shared.cfs_rq_of_group(to, Cpu(0)));
    }
}

#[test]
fn a_running_task_is_rescheduled_in_its_new_group() {
    for (kernel, rescheduled) in [("v5.5", false), ("v5.6", true)] {
        let (mut bed, [from, to]) = bed(kernel);
        let task = bed.spawn_in(from, 0);
        bed.pass(MS);
        bed.scheduler.move_task_to_group(task, to);
        assert_eq!(bed.scheduler.need_resched(Cpu(0)), rescheduled, "{kernel}");
        assert_eq!(bed.scheduler.curr(Cpu(0)), task);
    }
}

/// To v5.5 a task that came to a throttled group while it ran went on (2a4b03ffc69f).
#[test]
fn a_running_task_stops_in_a_throttled_group() {
    for (kernel, goes_on) in
        [("v5.5", true), ("v5.6", false), ("v6.12", false), ("v6.18", false), ("v7.2", false)]
    {
        let (mut bed, [limited, free]) = bed(kernel);
        bed.limit(limited, 5, 500, 0);
        let first = bed.spawn_in(limited, 0);
        bed.run(0, 10);
        assert!(bed.scheduler.runs_idle_task(Cpu(0)), "{kernel}: throttled");
        bed.scheduler.move_task_to_group(first, free);
        bed.schedule(0);
        bed.sleep(0);
        let task = bed.spawn_in(free, 0);
        bed.pass(MS);
        bed.scheduler.account(Cpu(0));
        let before = bed.scheduler.sum_exec_runtime(task).0;
        bed.scheduler.move_task_to_group(task, limited);
        bed.return_to_user(0);
        bed.run(0, 20);
        let ran = bed.scheduler.sum_exec_runtime(task).0 - before;
        assert_eq!(ran > 15 * MS, goes_on, "{kernel}: {ran}");
        bed.scheduler.check_invariants().expect("a sound state");
    }
}

#[test]
fn a_sleeping_task_wakes_in_its_new_group() {
    for kernel in ["v4.18", "v6.5", "v6.6", "v6.12", "v7.2"] {
        let (mut bed, [from, to]) = bed(kernel);
        let task = bed.spawn_in(from, 0);
        bed.spawn_in(to, 0);
        bed.sleep(0);
        bed.pass(20 * MS);
        bed.scheduler.move_task_to_group(task, to);
        bed.pass(20 * MS);
        bed.wake(task, 0);
        bed.scheduler.check_invariants().expect("a sound state");
        let queue = bed.scheduler.shared.cfs_rq_of_group(to, Cpu(0));
        let distance = bed.scheduler.cfs(queue).min_vruntime.minus(bed.entity(task).vruntime);
        assert!(distance.abs() <= 24 * MS as i64, "{kernel}: {distance}");
    }
}

#[test]
fn an_idle_group_weighs_like_an_idle_task_and_counts_as_idle() {
    let (mut bed, [idle, _]) = bed("v6.12");
    let task = bed.spawn_in(idle, 0);
    assert!(!bed.scheduler.sched_idle_cpu(Cpu(0)));
    assert!(bed.scheduler.set_group_idle(idle, true));
    assert!(bed.scheduler.sched_idle_cpu(Cpu(0)), "all that runs is idle");
    assert_eq!(bed.scheduler.shared.groups[idle.0 as usize].shares, 3 << 10);
    bed.scheduler.set_group_weight(idle, 500);
    assert_eq!(bed.scheduler.shared.groups[idle.0 as usize].shares, 3 << 10, "an idle group has one weight");
    bed.spawn(0, 0);
    assert!(!bed.scheduler.sched_idle_cpu(Cpu(0)));
    bed.run(0, 2000);
    assert!(bed.scheduler.sum_exec_runtime(task).0 < 30 * MS);
    bed.scheduler.set_group_idle(idle, false);
    bed.scheduler.check_invariants().expect("a sound state");
    let (mut old, [group, _]) = self::bed("v5.14");
    assert!(!old.scheduler.set_group_idle(group, true), "v5.15 is the first with cpu.idle");
}

/// From v5.15 an idle group gives way; from v6.12 only what competes at one level is compared.
#[test]
fn idle_groups_give_way_by_hierarchy() {
    let reason = |kernel: &str, running_idle: bool, woken: Policy| {
        let (mut bed, [idle, other]) = bed(kernel);
        bed.scheduler.set_group_idle(idle, running_idle);
        let sleeper = bed.spawn_with(0, 0, woken, CpuMask::ALL);
        bed.scheduler.move_task_to_group(sleeper, other);
        bed.sleep(0);
        bed.pass(MS);
        bed.spawn_in(idle, 0);
        bed.pass(MS / 2);
        bed.scheduler.account(Cpu(0));
        bed.wake(sleeper, 0);
        bed.scheduler.shared.cpus[0].need_resched = false;
        bed.scheduler.wakeup_preempt(sleeper).reason
    };
    use PreemptReason::{CurrIsIdlePolicy, PolicyNeverPreempts};
    assert_eq!(reason("v5.15", true, Policy::Normal), CurrIsIdlePolicy);
    assert_ne!(reason("v5.14", true, Policy::Normal), CurrIsIdlePolicy);
    assert_eq!(reason("v6.11", true, Policy::Idle), PolicyNeverPreempts, "an idle task preempts nobody");
    assert_eq!(reason("v6.12", true, Policy::Idle), CurrIsIdlePolicy, "its group is not idle");
    assert_eq!(reason("v6.12", false, Policy::Batch), PolicyNeverPreempts);
}

/// An ending task is put back once more: the queue's minimum may move on (to v6.3 and from v6.14).
#[test]
fn an_exit_moves_the_minimum_of_its_queue() {
    let moves = |kernel: &str| {
        let (mut bed, _) = bed(kernel);
        let tasks = [bed.spawn(0, 0), bed.spawn(0, 0)];
        bed.run(0, 5);
        bed.pass(MS / 2);
        bed.scheduler.account(Cpu(0));
        let (curr, before) = (bed.scheduler.curr(Cpu(0)), bed.min_vruntime(0));
        let waits = tasks[usize::from(curr == tasks[0])];
        assert!(
            bed.entity(curr).vruntime.is_before(bed.entity(waits).vruntime),
            "{kernel}: the running one is behind"
        );
        bed.scheduler.autogroup_exit_task(curr);
        let after = bed.min_vruntime(0);
        bed.scheduler.deactivate_task(Cpu(0), TaskState::DEAD);
        after.minus(before)
    };
    for (kernel, moved) in [("v5.10", true), ("v6.3", true), ("v6.4", false)] {
        assert_eq!(moves(kernel) > 0, moved, "{kernel}");
    }
}

/// In open loop a waiting task leaves and joins in two steps, and comes to stand where one step would put it.
#[test]
fn a_waiting_task_changes_groups_in_two_steps() {
    for kernel in ["v5.10", "v6.6", "v7.2"] {
        let [one_step, two_steps] = [false, true].map(|in_steps| {
            let (mut bed, [from, to]) = bed(kernel);
            let tasks = [from, from, to, to].map(|group| bed.spawn_in(group, 0));
            bed.run(0, 40);
            let waits = tasks[..2].iter().find(|&&task| bed.scheduler.curr(Cpu(0)) != task);
            let &task = waits.expect("one of two waits");
            if in_steps {
                bed.scheduler.leave_for_group(task, Some(to));
                assert!(!bed.entity(task).on_rq && !bed.scheduler.is_on_queue(task), "{kernel}");
                bed.scheduler.attach(task);
            } else {
                bed.scheduler.move_task_to_group(task, to);
            }
            assert_eq!(bed.scheduler.group_of(task), to, "{kernel}");
            let entity = bed.entity(task);
            (entity.on_rq, entity.cfs_rq, entity.vruntime, entity.deadline, entity.vlag)
        });
        assert_eq!(one_step, two_steps, "{kernel}");
    }
}

/// A pick on one queue charges the running task alone, and not its group (85570f10a4c6): that is charged when it is put back.
#[test]
fn a_group_is_charged_before_the_pick_where_groups_are_picked() {
    for (kernel, charged) in [("v7.2", true), ("v7.3", false)] {
        let (mut bed, [group, _]) = bed(kernel);
        let task = bed.spawn_in(group, 0);
        bed.pass(MS / 2);
        bed.schedule(0);
        let entity = bed.scheduler.shared.groups[group.0 as usize].entities[0];
        let [own, of_group] = [bed.entity(task), bed.scheduler.se(entity)].map(|one| one.sum_exec_runtime);
        assert_eq!((own, of_group == own), (MS / 2, charged), "{kernel}: {of_group}");
        bed.pass(MS / 2);
        bed.sleep(0);
        assert_eq!(bed.scheduler.se(entity).sum_exec_runtime, MS, "{kernel}");
    }
}

/// From 85570f10a4c6 on a weight that stays leaves the averages alone; before, they are computed anew.
#[test]
fn averages_are_left_alone_where_the_weight_stays() {
    for (kernel, rounds) in [("v7.2", true), ("v7.3", false)] {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let task = bed.spawn(0, 0);
        bed.run(0, 5);
        bed.sleep(0);
        let se = bed.scheduler.shared.tasks[task.index()].se;
        bed.scheduler.shared.se_mut(se).avg.load_avg += 1;
        let (before, load) = (bed.entity(task).avg.load_avg, bed.entity(task).load);
        bed.scheduler.entity_rq_lock(se).reweight_entity(se, load);
        assert_eq!(bed.entity(task).avg.load_avg != before, rounds, "{kernel}");
    }
}

/// A sleeper that wakes where it stayed is aged with its CPU's root queue from 85570f10a4c6 on, and its group's queue is not.
#[test]
fn a_delayed_sleeper_wakes_by_the_clock_of_its_cpu() {
    for (kernel, of_group) in [("v7.2", true), ("v7.3", false)] {
        let (mut bed, [group, _]) = bed(kernel);
        let (first, _) = (bed.spawn_in(group, 0), bed.spawn_in(group, 0));
        bed.run(0, 30);
        while bed.scheduler.curr(Cpu(0)) != first {
            bed.run(0, 1);
        }
        bed.pass(2 * MS);
        bed.leave(0);
        assert!(bed.entity(first).sched_delayed, "{kernel}: it has run ahead");
        let queue = bed.entity(first).cfs_rq;
        let root = bed.scheduler.rqs[0].cfs;
        bed.pass(MS / 2);
        let time = |bed: &SchedulerTestbed, queue| bed.scheduler.cfs(queue).tracked.avg.last_update_time;
        let before = [queue, root].map(|queue| time(&bed, queue));
        bed.at(0);
        bed.scheduler.ttwu_begin(first, WakeFlags::default());
        let moved =
            [queue, root].map(|queue| time(&bed, queue)).map(|now| before.iter().all(|&then| now > then));
        assert_eq!(moved, [of_group, !of_group], "{kernel}");
    }
}

/// `runnable_avg >> 10`: the average of a task that always runs never quite reaches 1024.
#[test]
fn tasks_that_always_run_count_as_one_less_from_v7_3() {
    let counted = |kernel: &str, tasks: usize| {
        let mut bed = SchedulerTestbed::new(kernel, 8, 1);
        let group = bed.scheduler.new_group(GroupId::ROOT, 1024);
        for _ in 0..tasks {
            bed.spawn_in(group, 0);
        }
        bed.run(0, 1000);
        bed.scheduler.shared.concurrency(&bed.scheduler.shared.groups[group.0 as usize])
    };
    assert_eq!([1, 2, 4, 5].map(|tasks| counted("v7.3", tasks)), [1, 1, 3, 4]);
    assert_eq!(counted("v7.2", 4), 1, "before, a group's shares are one group's");
}
