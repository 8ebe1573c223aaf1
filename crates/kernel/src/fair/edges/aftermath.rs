//! What operations leave behind besides their decision: buddies, minima, lag, who counts as runnable.

use super::*;
use crate::core::{WakeFlags, WakeStart};

fn prefer(bed: &mut SchedulerTestbed, task: TaskId) {
    let (root, se) = (root(bed), se(bed, task));
    bed.scheduler.cfs_mut(root).next = Some(se);
}

fn is_preferred(bed: &SchedulerTestbed, task: TaskId) -> bool {
    bed.scheduler.cfs(root(bed)).next == Some(se(bed, task))
}

fn minimum(bed: &SchedulerTestbed) -> i64 {
    off(bed.scheduler.cfs(root(bed)).min_vruntime)
}

/// Who has used up its slice is no longer preferred; who is only far ahead still is.
#[test]
fn a_tick_ends_a_preference_with_the_slice() {
    for (ran, ahead, reason) in
        [(HALF + 1, 0, TickReason::SliceUsed), (ms(3), HALF + 1, TickReason::FarAhead)]
    {
        let (mut bed, tasks) = bed("v6.1", &[(0, ahead), (0, 0)]);
        let curr = se(&bed, tasks[0]);
        let entity = bed.scheduler.se_mut(curr);
        entity.sum_exec_runtime = entity.prev_sum_exec_runtime + ran as u64;
        prefer(&mut bed, tasks[0]);
        assert_eq!(bed.tick(0).reason, reason);
        assert_eq!(is_preferred(&bed, tasks[0]), reason == TickReason::FarAhead, "{reason:?}");
    }
}

/// A request is used when virtual time reaches the deadline, not only when it is past it; with it a preference ends.
#[test]
fn a_request_ends_at_the_deadline() {
    for kernel in ["v6.6", "v6.12", "v7.2"] {
        for (ran, used) in [(2 * MS - 1, false), (2 * MS, true)] {
            let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0)]);
            deadline(&mut bed, tasks[0], ms(2));
            let curr = se(&bed, tasks[0]);
            let entity = bed.scheduler.se_mut(curr);
            (entity.deadline_at_pick, entity.protected_until) = (Some(entity.deadline), entity.deadline);
            prefer(&mut bed, tasks[0]);
            bed.pass(ran);
            bed.tick(0);
            assert_eq!(off(bed.entity(tasks[0]).deadline) > ms(2), used, "{kernel}: {ran}");
            assert_eq!(bed.scheduler.need_resched(CPU), used, "{kernel}: {ran}");
            assert_eq!(is_preferred(&bed, tasks[0]), !used, "{kernel}: {ran}");
        }
    }
}

#[test]
fn who_yields_is_no_longer_preferred() {
    for kernel in ["v6.1", "v6.6", "v7.2"] {
        let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0)]);
        prefer(&mut bed, tasks[0]);
        bed.scheduler.yield_task(CPU);
        assert!(!is_preferred(&bed, tasks[0]), "{kernel}");
    }
}

/// Whoever leaves the queue or gets the CPU has had the preference.
#[test]
fn a_preference_ends_with_a_departure_or_an_arrival() {
    for kernel in ["v6.1", "v6.6"] {
        let (mut sleeping, tasks) = bed(kernel, &[(0, 0), (0, 0)]);
        prefer(&mut sleeping, tasks[0]);
        sleeping.leave(0);
        assert!(!is_preferred(&sleeping, tasks[0]), "{kernel}: it leaves");
        prefer(&mut sleeping, tasks[1]);
        assert_eq!(sleeping.schedule(0).task, tasks[1]);
        assert!(!is_preferred(&sleeping, tasks[1]), "{kernel}: it gets the CPU");
    }
}

/// A delayed sleeper that wakes stays where it is unless it is owed time: then it joins at the average of the others. From
/// v7.1 it keeps the better lag of when it fell asleep.
#[test]
fn a_delayed_sleeper_wakes_without_credit() {
    for (kernel, stands, after) in
        [("v6.12", ms(1), ms(1)), ("v6.12", ms(-5), ms(-1)), ("v7.2", ms(1), ms(1)), ("v7.2", ms(3), ms(1))]
    {
        let (mut bed, tasks) = bed(kernel, &[(0, ms(1)), (0, ms(-1))]);
        assert_eq!(bed.sleep(0), tasks[0]);
        assert!(bed.entity(tasks[0]).sched_delayed, "{kernel}: it owes time");
        assert_eq!(bed.entity(tasks[0]).vlag, if kernel == "v7.2" { ms(-1) } else { 0 }, "{kernel}");
        stand(&mut bed, tasks[0], stands);
        assert_eq!(bed.scheduler.ttwu_begin(tasks[0], WakeFlags::default()), WakeStart::StillQueued);
        assert_eq!(off(bed.entity(tasks[0]).vruntime), after, "{kernel} from {stands}");
        assert!(!bed.entity(tasks[0]).sched_delayed, "{kernel}");
        assert_eq!(bed.scheduler.cfs(root(&bed)).h_nr_delayed, 0, "{kernel}");
    }
}

/// After a change of weight the queue's minimum is looked at: to v6.5 never, in v6.7 if the entity waits, then always.
#[test]
fn a_change_of_weight_may_move_the_minimum() {
    let moves = |kernel: &str, which: usize| {
        let (mut bed, tasks) = bed(kernel, &[(0, ms(4)), (0, ms(8))]);
        let (root, se) = (root(&bed), se(&bed, tasks[which]));
        bed.scheduler.cfs_mut(root).move_zero_to(Vruntime(HERE));
        bed.scheduler.entity_rq_lock(se).reweight_entity(se, LoadWeight::of_nice(-5));
        minimum(&bed) > 0
    };
    for (kernel, running, waiting) in
        [("v6.5", false, false), ("v6.6", false, false), ("v6.7", false, true), ("v6.9", true, true)]
    {
        assert_eq!([moves(kernel, 0), moves(kernel, 1)], [running, waiting], "{kernel}");
    }
}

/// The zero of the time line follows the average: at v6.19 that of the time line after each arrival and departure, on which one
/// that begins to run is gone and one that ceases to run counts twice; then the average at each tick; then at each new request.
#[test]
fn the_zero_follows_the_average() {
    let zero_after = |kernel: &str, places: [i64; 2], due: i64, step: fn(&mut SchedulerTestbed)| {
        let (mut bed, tasks) = bed(kernel, &[(0, ms(places[0])), (0, ms(places[1]))]);
        deadline(&mut bed, tasks[0], ms(due));
        let root = root(&bed);
        bed.scheduler.cfs_mut(root).move_zero_to(Vruntime(HERE));
        step(&mut bed);
        (minimum(&bed) + ms(1) / 2) / ms(1)
    };
    let tick = |bed: &mut SchedulerTestbed| {
        bed.pass(MS);
        bed.tick(0);
    };
    let switch = |bed: &mut SchedulerTestbed| {
        bed.schedule(0);
    };
    for (kernel, switched, ticked, due) in [("v6.19", 6, 0, 0), ("b3d99f43c72b", 0, 2, 2), ("v7.0", 0, 0, 2)]
    {
        assert_eq!(zero_after(kernel, [6, 0], 9, switch), switched, "{kernel}: a switch");
        assert_eq!(zero_after(kernel, [0, 3], 9, tick), ticked, "{kernel}: a tick");
        assert_eq!(zero_after(kernel, [0, 3], 1, tick), due, "{kernel}: a request is used");
    }
}

/// What leaves to come back at once does not move the minimum; what else leaves does.
#[test]
fn a_departure_moves_the_minimum_unless_it_is_saved() {
    for kernel in ["v6.1", "v6.6"] {
        for save in [false, true] {
            let (mut bed, tasks) = bed(kernel, &[(0, ms(8)), (0, ms(4))]);
            let (root, se) = (root(&bed), se(&bed, tasks[1]));
            bed.scheduler.cfs_mut(root).move_zero_to(Vruntime(HERE));
            bed.scheduler.queue_rq_lock(root).dequeue_entity(
                root,
                se,
                DequeueFlags { save, ..DequeueFlags::default() },
            );
            assert_eq!(minimum(&bed), if save { 0 } else { ms(8) }, "{kernel}");
        }
    }
}

/// Lag is that of the departure: of no departure to v6.5, of a sleep at 86bfbb7ce4f6, of any from v6.6.
#[test]
fn lag_is_as_old_as_the_last_departure() {
    const OLD: i64 = 7;
    let lag = |kernel: &str, sleeps: bool| {
        let (mut bed, tasks) = bed(kernel, &[(0, ms(-1)), (0, ms(1))]);
        let task = tasks[usize::from(!sleeps)];
        let entity = se(&bed, task);
        bed.scheduler.se_mut(entity).vlag = OLD;
        match sleeps {
            true => bed.leave(0),
            false => bed.scheduler.move_queued_task(task, Cpu(1)),
        }
        bed.entity(task).vlag
    };
    for (kernel, slept, moved) in [("v6.5", OLD, OLD), ("86bfbb7ce4f6", ms(1), OLD), ("v6.6", ms(1), ms(-1))]
    {
        assert_eq!([lag(kernel, true), lag(kernel, false)], [slept, moved], "{kernel}");
    }
}

/// Between 829c1651e9c4 and a53ce18cacb4 that passes for a sleep since the machine came up: it is placed anew, however late it was.
#[test]
fn who_moves_loses_its_place_for_a_while_in_v6_3() {
    let mut went_back = Vec::new();
    for kernel in ["v6.2", "829c1651e9c4", "v6.3-a53ce18cacb4", "v6.3"] {
        for migrated in [false, true] {
            let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0)]);
            bed.pass(MS);
            let sleeper = bed.sleep(0);
            assert_eq!(sleeper, tasks[0]);
            let before = bed.entity(sleeper).vruntime;
            bed.scheduler.ttwu_begin(sleeper, WakeFlags::default());
            bed.scheduler.ttwu_do_activate(sleeper, WakeFlags { migrated, ..WakeFlags::default() });
            if bed.entity(sleeper).vruntime.minus(before) < 0 {
                went_back.push((kernel, migrated));
            }
        }
    }
    assert_eq!(went_back, [("829c1651e9c4", true), ("v6.3-a53ce18cacb4", true)]);
}

/// Who was woken on another CPU than it slept on is not warm there: when it last ran is forgotten.
#[test]
fn a_task_that_wakes_elsewhere_has_never_run_there() {
    for migrated in [false, true] {
        let (mut bed, tasks) = bed("v6.1", &[(0, 0), (0, 0)]);
        bed.pass(MS);
        let sleeper = bed.sleep(0);
        assert_eq!(sleeper, tasks[0]);
        bed.scheduler.ttwu_begin(sleeper, WakeFlags::default());
        bed.scheduler.ttwu_do_activate(sleeper, WakeFlags { migrated, ..WakeFlags::default() });
        assert_eq!(bed.entity(sleeper).exec_start == 0, migrated);
    }
}

/// In v6.12 sleepers that have not left count as runnable for their queue and their group, though not for themselves; from
/// v6.13 for nobody (76f2f783294d).
#[test]
fn delayed_sleepers_counted_as_runnable_once() {
    for (kernel, counted) in [("v6.12", 2), ("v6.13", 1), ("debian-6.12", 1)] {
        let mut bed = SchedulerTestbed::new(kernel, 1, 1);
        let group = bed.scheduler.new_group(GroupId::ROOT, 100);
        let tasks = [bed.spawn_in(group, 0), bed.spawn_in(group, 0)];
        stand(&mut bed, tasks[0], ms(1));
        stand(&mut bed, tasks[1], ms(-1));
        assert_eq!(bed.sleep(0), tasks[0]);
        assert!(bed.entity(tasks[0]).sched_delayed, "{kernel}: it owes time");
        let queue = bed.scheduler.cfs(bed.entity(tasks[0]).cfs_rq);
        let (rules, entity) = (&bed.scheduler.shared.generation.pelt, queue.entity.expect("a group's"));
        assert_eq!(queue.tracked_state(rules).runnable_tasks, counted, "{kernel}: the queue");
        assert_eq!(bed.entity(tasks[0]).tracked_state(false).runnable_tasks, 0, "{kernel}: the sleeper");
        bed.scheduler.shared.se_update_runnable(entity);
        assert_eq!(bed.scheduler.se(entity).runnable_weight, counted, "{kernel}: the group");
    }
}
