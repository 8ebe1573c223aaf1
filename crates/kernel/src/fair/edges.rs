//! Tests of rules at their edges: where one value more or less, or one condition left out, would decide otherwise.

mod aftermath;

use fairlab_event::Cpu;

use crate::cpumask::CpuMask;
use crate::decision::{PickReason, PreemptDecision, PreemptReason, TickReason};
use crate::entity::{CfsRqId, SeId};
use crate::fair::granularity::WakeupPreemptionTest;
use crate::group::GroupId;
use crate::rq::DequeueFlags;
use crate::task::{Policy, TaskId};
use crate::testbed::{MS, SchedulerTestbed};
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

/// Some place on a time line, virtual ns.
const HERE: u64 = 1 << 40;

const CPU: Cpu = Cpu(0);

/// Tasks of these nice levels on one CPU of eight; the first runs, and the others stand as far from `HERE` as it is said.
fn bed(kernel: &str, tasks: &[(i32, i64)]) -> (SchedulerTestbed, Vec<TaskId>) {
    let mut bed = SchedulerTestbed::new(kernel, 8, 1);
    let ids = tasks.iter().map(|&(nice, _)| bed.spawn(nice, 0)).collect::<Vec<_>>();
    bed.at(0);
    assert_eq!(bed.scheduler.curr(CPU), ids[0]);
    for (&task, &(_, off)) in ids.iter().zip(tasks) {
        stand(&mut bed, task, off);
    }
    (bed, ids)
}

fn stand(bed: &mut SchedulerTestbed, task: TaskId, off: i64) {
    let entity = bed.scheduler.task_entity(task);
    bed.scheduler.force_vruntime(entity, Vruntime(HERE).plus(off));
}

fn deadline(bed: &mut SchedulerTestbed, task: TaskId, off: i64) {
    let entity = bed.scheduler.task_entity(task);
    bed.scheduler.force_deadline(entity, Vruntime(HERE).plus(off));
}

fn se(bed: &SchedulerTestbed, task: TaskId) -> SeId {
    bed.scheduler.shared.tasks[task.index()].se
}

fn new(bed: &mut SchedulerTestbed, task: TaskId) {
    bed.scheduler.shared.tasks[task.index()].is_new = true;
}

fn asleep(bed: &mut SchedulerTestbed, task: TaskId) {
    let se = se(bed, task);
    bed.scheduler.se_mut(se).sched_delayed = true;
}

fn root(bed: &SchedulerTestbed) -> CfsRqId {
    bed.scheduler.rqs[0].cfs
}

fn off(vruntime: Vruntime) -> i64 {
    vruntime.minus(Vruntime(HERE))
}

const fn ms(milliseconds: i64) -> i64 {
    milliseconds * MS as i64
}

/// Two requests of 3 ms, or a tick of 1 ms; late kernels: the largest request on the queue and a tick.
#[test]
fn lag_is_limited_both_ways() {
    let second = ms(1000);
    let lag = |kernel: &str, slices: [u64; 2], which: usize| {
        let (mut bed, tasks) = bed(kernel, &[(0, -second), (0, second)]);
        for (&task, slice) in tasks.iter().zip(slices) {
            bed.scheduler.force_slice(task, slice);
        }
        let (root, se) = (root(&bed), se(&bed, tasks[which]));
        bed.scheduler.shared.update_entity_lag(root, se);
        bed.entity(tasks[which]).vlag
    };
    let base = 3 * MS;
    assert_eq!(lag("v6.12", [base, base], 0), ms(6));
    assert_eq!(lag("v6.12", [base, base], 1), ms(-6));
    assert_eq!(lag("v6.12", [base, MS / 10], 1), ms(-1));
    assert_eq!(lag("v7.2", [100 * MS, MS], 1), ms(-101));
}

/// What sleeps on its queue keeps the better of both lags, but no credit.
#[test]
fn a_delayed_sleepers_lag_gets_no_worse() {
    for (stands, before, after) in [(ms(3), ms(-1), ms(-1)), (ms(1), ms(-3), ms(-1)), (ms(-3), ms(-1), 0)] {
        let (mut bed, tasks) = bed("v7.2", &[(0, -stands), (0, stands)]);
        let (root, se) = (root(&bed), se(&bed, tasks[1]));
        let entity = bed.scheduler.se_mut(se);
        (entity.sched_delayed, entity.vlag) = (true, before);
        // Both weigh the same, so that the average is halfway.
        bed.scheduler.shared.update_entity_lag(root, se);
        let found = bed.entity(tasks[1]).vlag;
        assert_eq!(found, after, "{stands} from the average, lag {before} before");
    }
}

#[test]
fn a_distance_to_the_deadline_is_used_once() {
    let (mut bed, tasks) = bed("v6.12", &[(0, 0), (0, 0)]);
    let sleeper = bed.sleep(0);
    assert_eq!(sleeper, tasks[0]);
    let se = se(&bed, sleeper);
    bed.scheduler.se_mut(se).relative_deadline = Some(12_345);
    bed.wake(sleeper, 0);
    let entity = bed.entity(sleeper);
    assert_eq!(entity.deadline.minus(entity.vruntime), 12_345);
    assert_eq!(entity.relative_deadline, None);
}

/// To v6.5 a child begins where its parent is, if that is past the minimum.
#[test]
fn a_child_begins_at_its_parent() {
    let (mut bed, _) = bed("v6.5+NO_START_DEBIT", &[(0, ms(3)), (0, 0)]);
    let queue = bed.scheduler.group_queue(GroupId::ROOT, CPU).expect("a queue");
    bed.scheduler.force_min_vruntime(queue, Vruntime(HERE));
    let child = bed.spawn(0, 0);
    assert!((off(bed.entity(child).vruntime) - ms(3)).abs() <= 1);
}

/// 4 ms of granularity on 8 CPUs.
#[test]
fn a_buddy_must_be_about_as_deserving() {
    for (next, picked) in [(ms(4), 2), (ms(4) + 1, 1)] {
        let (mut bed, tasks) = bed("v6.5", &[(0, ms(20)), (0, 0), (0, next)]);
        let (root, buddy) = (root(&bed), se(&bed, tasks[2]));
        bed.scheduler.cfs_mut(root).next = Some(buddy);
        let (entity, _) = bed.scheduler.shared.pick_next_entity(root).expect("somebody");
        assert_eq!(entity, se(&bed, tasks[picked]), "{next}");
    }
}

/// Who is passed over makes way for the next in line, which may be the running one.
#[test]
fn the_running_one_may_be_second() {
    let (mut bed, tasks) = bed("v6.5", &[(0, ms(1)), (0, 0), (0, ms(3))]);
    let (root, leftmost) = (root(&bed), se(&bed, tasks[1]));
    bed.scheduler.cfs_mut(root).skip = Some(leftmost);
    let picked = bed.scheduler.shared.pick_next_entity(root).expect("somebody");
    assert_eq!(picked, (se(&bed, tasks[0]), PickReason::YielderSkipped));
}

#[test]
fn a_buddy_past_the_average_is_not_preferred() {
    for (stands, preferred) in [(ms(-1), true), (ms(9), false)] {
        let (mut bed, tasks) = bed("v6.12+NEXT_BUDDY", &[(0, 0), (0, 0), (0, stands)]);
        let (root, buddy) = (root(&bed), se(&bed, tasks[2]));
        bed.scheduler.cfs_mut(root).next = Some(buddy);
        assert_eq!(bed.scheduler.shared.eligible_buddy(root).is_some(), preferred, "{stands}");
    }
}

/// From v6.14 `PICK_BUDDY` alone says whether preferences count.
#[test]
fn one_switch_says_whether_preferences_count() {
    for (kernel, counts) in [
        ("v6.12", false),
        ("v6.12+NEXT_BUDDY", true),
        ("v6.14", true),
        ("v6.14+NO_PICK_BUDDY+NEXT_BUDDY", false),
        ("v7.2+NO_PICK_BUDDY+NEXT_BUDDY", false),
    ] {
        let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0), (0, ms(-1))]);
        let (root, buddy) = (root(&bed), se(&bed, tasks[2]));
        bed.scheduler.cfs_mut(root).next = Some(buddy);
        assert_eq!(bed.scheduler.shared.eligible_buddy(root).is_some(), counts, "{kernel}");
    }
}

/// Three tasks, of which the first runs and the third has its deadline after 5 ms; what is decided of the second, whose deadline
/// is `ends` away, and who is preferred then.
fn woken_beside(
    kernel: &str,
    ends: i64,
    before: Option<usize>,
    set: impl Fn(&mut SchedulerTestbed, TaskId),
) -> (PreemptReason, Option<usize>) {
    let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, ms(-1)), (0, ms(-1))]);
    for (&task, ends) in tasks.iter().zip([ms(3), ends, ms(5)]) {
        deadline(&mut bed, task, ends);
    }
    let (root, curr) = (root(&bed), se(&bed, tasks[0]));
    bed.scheduler.se_mut(curr).protected_until = Vruntime(HERE).plus(ms(2));
    bed.scheduler.cfs_mut(root).next = before.map(|index| se(&bed, tasks[index]));
    set(&mut bed, tasks[1]);
    let competitors = bed.scheduler.shared.competitors(tasks[0], tasks[1]);
    let decision = bed.scheduler.shared.check_preempt_wakeup(tasks[1], competitors);
    bed.scheduler.shared.set_buddies_after(tasks[1], decision);
    let next = bed.scheduler.cfs(root).next;
    (decision.reason, tasks.iter().position(|&task| next == Some(se(&bed, task))))
}

/// To v6.18 the task woken last is preferred, but no new task, none that is asleep on its queue, and none of a throttled group.
#[test]
fn only_who_is_awake_and_may_run_is_preferred() {
    for kernel in ["v6.12+NEXT_BUDDY", "v6.18+NEXT_BUDDY"] {
        let preferred =
            |set: &dyn Fn(&mut SchedulerTestbed, TaskId)| woken_beside(kernel, ms(9), None, set).1;
        assert_eq!(preferred(&|_, _| {}), Some(1), "{kernel}");
        assert_eq!((preferred(&new), preferred(&asleep)), (None, None), "{kernel}");
        let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0)]);
        let throttled = PreemptDecision { preempt: false, reason: PreemptReason::Throttled };
        bed.scheduler.shared.set_buddies_after(tasks[1], throttled);
        let root = root(&bed);
        assert_eq!(bed.scheduler.cfs(root).next, None, "{kernel}");
    }
}

/// From v6.19 one that is woken is preferred, and so wins its test, unless one is preferred whose deadline is earlier; to v6.18
/// the task woken last is, after its test.
#[test]
fn the_woken_one_with_the_earliest_deadline_is_preferred() {
    use PreemptReason::{WouldBePicked, WouldNotBePicked};
    let test = |kernel: &str, ends, before| woken_beside(kernel, ends, before, |_, _| {});
    for kernel in ["v6.19+NEXT_BUDDY", "v7.2+NEXT_BUDDY"] {
        assert_eq!(test(kernel, ms(9), None), (WouldBePicked, Some(1)), "{kernel}");
        assert_eq!(test(kernel, ms(9), Some(2)), (WouldNotBePicked, Some(2)), "{kernel}");
        assert_eq!(test(kernel, ms(5), Some(2)), (WouldBePicked, Some(1)), "{kernel}: not earlier");
    }
    assert_eq!(test("v6.18+NEXT_BUDDY", ms(9), Some(2)), (WouldNotBePicked, Some(1)));
    assert_eq!(test("v7.2", ms(9), None), (WouldNotBePicked, None));
}

/// A waker that is about to sleep is not preempted by whom it has made preferred, unless moving tasks costs nothing.
#[test]
fn a_waker_that_is_about_to_sleep_is_let() {
    use PreemptReason::{WakerRanLong, WakerSleeps, WouldBePicked, WouldNotBePicked};
    let test = |kernel: &str, ends, before| {
        woken_beside(kernel, ends, before, |bed, task| bed.scheduler.force_woken_sync(task, true))
    };
    let kernel = "v7.2+NEXT_BUDDY";
    assert_eq!(test(kernel, ms(2), None), (WakerSleeps, Some(1)));
    assert_eq!(
        test(kernel, ms(9), Some(2)),
        (WouldNotBePicked, Some(2)),
        "an older buddy has nothing to do with it"
    );
    assert_eq!(test("v6.18+NEXT_BUDDY", ms(2), None), (WouldBePicked, Some(1)));
    assert_eq!(woken_beside(kernel, ms(2), None, |_, _| {}), (WouldBePicked, Some(1)));
    let free = |ends| {
        woken_beside(kernel, ends, None, |bed, task| {
            bed.scheduler.force_woken_sync(task, true);
            bed.scheduler.shared.sysctl.migration_cost = 0;
        })
    };
    assert_eq!(free(ms(2)), (WakerRanLong, Some(1)));
    assert_eq!(free(ms(3)), (WakerSleeps, Some(1)), "its deadline is not earlier");
}

/// Neither new tasks nor sleepers on their queue become preferred or preempt, but by a shorter request, and then unpreferred.
#[test]
fn who_never_preempts_is_not_preferred() {
    let shorter = |bed: &mut SchedulerTestbed, task: TaskId| bed.scheduler.force_slice(task, MS / 2);
    let test =
        |set: &dyn Fn(&mut SchedulerTestbed, TaskId)| woken_beside("v7.2+NEXT_BUDDY", ms(2), None, set);
    assert_eq!(test(&new), (PreemptReason::NewTask, None));
    assert_eq!(test(&asleep), (PreemptReason::AsleepOnQueue, None));
    assert_eq!(test(&shorter), (PreemptReason::ShorterRequest, None));
    assert_eq!(woken_beside("v6.18", ms(2), None, asleep).0, PreemptReason::WouldBePicked);
}

/// From v6.17 the protection ends with the shortest request on the queue; without parity with the smallest slice.
#[test]
fn protection_lasts_for_the_shortest_request() {
    for (kernel, lasts) in [("v7.2", ms(1) / 2), ("v7.2+NO_RUN_TO_PARITY", 700_000)] {
        let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0)]);
        bed.scheduler.force_slice(tasks[1], MS / 2);
        stand(&mut bed, tasks[1], 0);
        deadline(&mut bed, tasks[0], ms(2));
        let (root, se) = (root(&bed), se(&bed, tasks[0]));
        assert_eq!(off(bed.scheduler.shared.protection(root, se)), lasts, "{kernel}");
    }
    for (before, after) in [(ms(1) / 10, ms(1) / 10), (ms(10), ms(1) / 2)] {
        let (mut bed, tasks) = bed("v7.2", &[(0, 0), (0, 0)]);
        bed.scheduler.force_slice(tasks[1], MS / 2);
        stand(&mut bed, tasks[1], 0);
        let (root, curr) = (root(&bed), se(&bed, tasks[0]));
        bed.scheduler.se_mut(curr).protected_until = Vruntime(HERE).plus(before);
        bed.scheduler.shared.update_protection(root, curr);
        assert_eq!(off(bed.scheduler.se(curr).protected_until), after, "only ever shortened");
    }
}

/// 4 ms, in virtual time of the woken one.
#[test]
fn the_granularity_is_the_woken_ones() {
    let test = |nice: i32, distance: i64| {
        let (bed, tasks) = bed("v6.5", &[(0, distance), (nice, 0)]);
        bed.scheduler.shared.wakeup_preempt_entity(se(&bed, tasks[0]), se(&bed, tasks[1]))
    };
    assert_eq!(test(0, ms(4)), WakeupPreemptionTest::Close);
    assert_eq!(test(0, ms(4) + 1), WakeupPreemptionTest::Behind);
    assert_eq!(test(0, 0), WakeupPreemptionTest::Ahead);
    assert_eq!(test(-10, ms(1)), WakeupPreemptionTest::Behind);
    assert_eq!(test(19, ms(200)), WakeupPreemptionTest::Close);
}

#[test]
fn a_pending_reschedule_ends_the_test() {
    let (bed, tasks) = bed("v6.5", &[(0, ms(20)), (0, 0)]);
    let reason = |pending| {
        let decided = bed.scheduler.shared.preempts_without_vruntime(tasks[0], tasks[1], pending);
        decided.map(|decision| (decision.preempt, decision.reason))
    };
    assert_eq!(reason(true), Some((false, PreemptReason::AlreadyPending)));
    assert_eq!(reason(false), None);
}

#[test]
fn policies_decide_before_time_does() {
    let reason = |kernel: &str, curr: Policy, woken: Policy| {
        let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0)]);
        bed.scheduler.set_scheduler(tasks[0], curr, 0, None);
        bed.scheduler.set_scheduler(tasks[1], woken, 0, None);
        let decided = bed.scheduler.shared.preempts_without_vruntime(tasks[0], tasks[1], false);
        decided.map(|decision| decision.reason)
    };
    for kernel in ["v5.10", "v6.1", "v6.12"] {
        let reason = |curr, woken| reason(kernel, curr, woken);
        assert_eq!(reason(Policy::Idle, Policy::Normal), Some(PreemptReason::CurrIsIdlePolicy), "{kernel}");
        assert_eq!(
            reason(Policy::Normal, Policy::Idle),
            Some(PreemptReason::PolicyNeverPreempts),
            "{kernel}"
        );
        assert_eq!(
            reason(Policy::Normal, Policy::Batch),
            Some(PreemptReason::PolicyNeverPreempts),
            "{kernel}"
        );
        assert_eq!(reason(Policy::Normal, Policy::Normal), None, "{kernel}");
    }
}

/// What becomes of the protection when a task with such a slice and deadline is woken beside one that stands there and runs to 3 ms.
fn woken_with_slice(kernel: &str, slice: u64, ends: i64, stands: i64) -> (PreemptReason, bool) {
    let (mut bed, tasks) = bed(kernel, &[(0, stands), (0, 0), (0, 0)]);
    bed.scheduler.force_slice(tasks[1], slice);
    deadline(&mut bed, tasks[0], ms(3));
    deadline(&mut bed, tasks[1], ends);
    deadline(&mut bed, tasks[2], ms(9));
    let curr = se(&bed, tasks[0]);
    let entity = bed.scheduler.se_mut(curr);
    (entity.deadline_at_pick, entity.protected_until) = (Some(entity.deadline), entity.deadline);
    let decision = {
        let competitors = bed.scheduler.shared.competitors(tasks[0], tasks[1]);
        bed.scheduler.shared.check_preempt_wakeup(tasks[1], competitors)
    };
    bed.scheduler.task_rq_lock(tasks[1]).protection_after(tasks[1], decision);
    (decision.reason, bed.scheduler.shared.protects_slice(curr))
}

/// A shorter request takes the protection away, in v6.12 if its deadline is earlier or the running one is past the average.
#[test]
fn a_shorter_request_wins() {
    let test = woken_with_slice;
    assert_eq!(test("v6.12", MS, ms(2), 0), (PreemptReason::ShorterRequest, false));
    assert_eq!(test("v6.12", MS, ms(4), 0), (PreemptReason::WouldNotBePicked, true));
    assert_eq!(test("v6.12", MS, ms(4), ms(1)), (PreemptReason::ShorterRequest, false));
    assert_eq!(test("v6.12", 3 * MS, ms(2), 0), (PreemptReason::WouldNotBePicked, true));
    assert_eq!(test("v6.12+NO_PREEMPT_SHORT", MS, ms(2), 0), (PreemptReason::WouldNotBePicked, true));
    assert_eq!(test("v7.2", MS, ms(2), 0), (PreemptReason::ShorterRequest, false));
}

/// To v7.2 one with a later deadline than the running one's does not win; then it is enough that it is eligible (ba0d3bf5f97b).
#[test]
fn a_shorter_request_need_only_be_eligible_from_v7_3() {
    for (kernel, reason) in
        [("v7.2", PreemptReason::WouldNotBePicked), ("v7.3", PreemptReason::ShorterRequest)]
    {
        assert_eq!(woken_with_slice(kernel, MS, ms(5), 0).0, reason, "{kernel}");
    }
}

/// A wakeup in vain leaves the running one protected for the shortest request only; to v6.18 if it is one with a shorter request
/// than that of the running one.
#[test]
fn a_wakeup_in_vain_shortens_the_protection() {
    let protected = |kernel: &str, woken: usize| {
        let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0), (0, 0)]);
        bed.scheduler.force_slice(tasks[1], MS / 2);
        stand(&mut bed, tasks[1], 0);
        let curr = se(&bed, tasks[0]);
        bed.scheduler.se_mut(curr).protected_until = Vruntime(HERE).plus(ms(2));
        let decision = PreemptDecision { preempt: false, reason: PreemptReason::WouldNotBePicked };
        bed.scheduler.task_rq_lock(tasks[woken]).protection_after(tasks[woken], decision);
        off(bed.scheduler.se(curr).protected_until)
    };
    for (kernel, by_any) in [("v6.17", ms(2)), ("v6.18", ms(2)), ("v6.19", ms(1) / 2), ("v7.2", ms(1) / 2)] {
        assert_eq!([1, 2].map(|woken| protected(kernel, woken)), [ms(1) / 2, by_any], "{kernel}");
    }
}

/// Half of 24 ms, as the kernel divides.
const HALF: i64 = 11_999_994;

/// Two equal tasks on 8 CPUs: slices of 12 ms, at least 3.
#[test]
fn a_tick_looks_at_run_time_then_at_virtual_time() {
    let test = |ran: i64, ahead: i64| {
        let (mut bed, tasks) = bed("v6.5", &[(0, ahead), (0, 0)]);
        let (root, curr) = (root(&bed), se(&bed, tasks[0]));
        let entity = bed.scheduler.se_mut(curr);
        entity.sum_exec_runtime = entity.prev_sum_exec_runtime + ran as u64;
        let decision = bed.scheduler.shared.check_preempt_tick(root, curr);
        (decision.resched, decision.reason)
    };
    assert_eq!(test(HALF + 1, 0), (true, TickReason::SliceUsed));
    assert_eq!(test(ms(3) - 1, ms(50)), (false, TickReason::BelowMinGranularity));
    assert_eq!(test(ms(3), HALF + 1), (true, TickReason::FarAhead));
    assert_eq!(test(ms(3), HALF), (false, TickReason::WithinSlice));
    assert_eq!(test(ms(3), -1), (false, TickReason::LeftmostAhead));
}

/// A heavy task among ten has nearly all of 30 ms; from v6.3 no more than the latency of 24 ms counts.
#[test]
fn no_slice_is_longer_than_the_latency() {
    for (kernel, reason) in [("v6.2", TickReason::LeftmostAhead), ("v6.3", TickReason::SliceUsed)] {
        let mut tasks = vec![(-20, -1)];
        tasks.resize(10, (19, 0));
        let (mut bed, tasks) = bed(kernel, &tasks);
        let (root, curr) = (root(&bed), se(&bed, tasks[0]));
        let entity = bed.scheduler.se_mut(curr);
        entity.sum_exec_runtime = entity.prev_sum_exec_runtime + 25 * MS;
        assert_eq!(bed.scheduler.shared.check_preempt_tick(root, curr).reason, reason, "{kernel}");
    }
}

/// A task off its queue, as a new one is, counts itself. An idle one gets no more than its least beside others.
#[test]
fn slices_count_who_is_asked_for() {
    let (mut bed_of_two, tasks) = bed("v6.5", &[(0, 0), (0, 0)]);
    let sleeper = bed_of_two.sleep(0);
    assert_eq!(sleeper, tasks[0]);
    let slice = bed_of_two.scheduler.shared.sched_slice(root(&bed_of_two), se(&bed_of_two, sleeper));
    assert_eq!(slice, HALF as u64);
    for (other, slice) in [(Policy::Normal, 750_000), (Policy::Idle, 11_999_999)] {
        let (mut bed, tasks) = bed("v6.5", &[(0, 0), (0, 0)]);
        bed.scheduler.set_scheduler(tasks[0], Policy::Idle, 0, None);
        bed.scheduler.set_scheduler(tasks[1], other, 0, None);
        assert_eq!(bed.scheduler.shared.sched_slice(root(&bed), se(&bed, tasks[0])), slice, "{other:?}");
    }
}

/// A yield alone changes nothing; from v6.18 only a caller that is owed time gives up its request.
#[test]
fn a_yield_needs_others_and_a_request_to_give() {
    let (mut alone, tasks) = bed("v6.6", &[(0, 0)]);
    let before = alone.entity(tasks[0]).deadline;
    alone.scheduler.yield_task(CPU);
    assert_eq!(alone.entity(tasks[0]).deadline, before);
    for (stands, gives) in [(ms(-1), true), (ms(1), false)] {
        let (mut bed, tasks) = bed("v7.2", &[(0, stands), (0, 0)]);
        deadline(&mut bed, tasks[0], ms(2));
        bed.scheduler.yield_task(CPU);
        let vruntime = off(bed.entity(tasks[0]).vruntime);
        assert_eq!(vruntime, if gives { ms(2) } else { stands });
    }
}

/// Only an ordinary sleep is put off.
#[test]
fn who_must_leave_at_once_leaves() {
    let sleep = DequeueFlags { sleep: true, ..DequeueFlags::default() };
    let special = DequeueFlags { special: true, ..sleep };
    let throttle = DequeueFlags { throttle: true, ..sleep };
    let (bed, tasks) = bed("v7.2", &[(0, ms(2)), (0, 0)]);
    let delays = |flags| bed.scheduler.shared.delays_dequeue(root(&bed), se(&bed, tasks[0]), flags);
    assert!(delays(sleep) && !delays(special) && !delays(throttle) && !delays(DequeueFlags::default()));
}

/// The running entity is charged with its old weight before it gets another.
#[test]
fn a_change_of_weight_charges_first() {
    for kernel in ["v5.10", "v6.12"] {
        let (mut bed, tasks) = bed(kernel, &[(0, 0), (0, 0)]);
        let se = se(&bed, tasks[0]);
        let before = bed.scheduler.se(se).sum_exec_runtime;
        bed.pass(4 * MS);
        bed.at(0);
        bed.scheduler.rq_lock(CPU).update_rq_clock();
        bed.scheduler.entity_rq_lock(se).reweight_entity(se, LoadWeight::of_nice(-20));
        assert_eq!(bed.scheduler.se(se).sum_exec_runtime - before, 4 * MS, "{kernel}");
    }
}

/// A lone task outlives its deadline; beside another it makes way.
#[test]
fn a_deadline_counts_beside_others() {
    for (tasks, asks) in [(1, false), (2, true)] {
        let (mut bed, _) = bed("v6.12", &vec![(0, 0); tasks]);
        bed.pass(20 * MS);
        bed.tick(0);
        assert_eq!(bed.scheduler.need_resched(CPU), asks, "{tasks}");
    }
}

/// Neither a `SCHED_IDLE` task nor an idle group is preferred when it has been woken.
#[test]
fn idle_entities_are_no_buddies() {
    let mut bed = SchedulerTestbed::new("v6.1", 1, 1);
    let group = bed.scheduler.new_group(GroupId::ROOT, 100);
    let (_, member) = (bed.spawn(0, 0), bed.spawn_in(group, 0));
    bed.at(0);
    for idle in [false, true] {
        bed.scheduler.set_group_idle(group, idle);
        let (root, se) = (root(&bed), se(&bed, member));
        bed.scheduler.cfs_mut(root).next = None;
        bed.scheduler.shared.set_next_buddy(se);
        assert_eq!(bed.scheduler.cfs(root).next.is_none(), idle);
    }
}

/// The pick of a task of a higher class does not look at fair ones, so that a sleeper whose turn it would be stays queued.
#[test]
fn a_delayed_sleeper_stays_while_higher_classes_are_picked() {
    for policy in [Policy::Fifo(1), Policy::Deadline] {
        let mut bed = SchedulerTestbed::new("v6.12", 1, 1);
        bed.spawn(0, 0);
        bed.spawn(0, 0);
        bed.pass(5 * MS);
        let sleeper = bed.sleep(0);
        bed.pass(20 * MS);
        bed.at(0);
        bed.scheduler.account(Cpu(0));
        let turn = bed.scheduler.shared.delayed_candidate(root(&bed));
        assert_eq!(turn, Some(se(&bed, sleeper)), "it would be picked");
        bed.spawn_with(0, 0, policy, CpuMask::ALL);
        assert_ne!(bed.schedule(0).reason, PickReason::Nothing);
        assert!(bed.scheduler.is_delayed(sleeper), "{policy:?}");
        bed.sleep(0);
        assert!(!bed.scheduler.is_on_queue(sleeper), "{policy:?}");
    }
}
