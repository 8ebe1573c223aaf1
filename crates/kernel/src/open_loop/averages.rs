//! Load tracking in open loop: from the averages that a snapshot holds, and in step with the kernel's periods.
//!
//! Must not know: traces.

use fairlab_event::{Cpu, Ns};

use super::snapshot_averages::{NotedAverages, SnapshotAverages};
use super::{EntityId, QueueId};
use crate::entity::SeId;
use crate::group::GroupId;
use crate::pelt::{RemovedLoad, RunnableKind, SchedAvg, decayed};
use crate::scheduler::Scheduler;
use crate::task::TaskId;

/// Averages as the kernel prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedAverages {
    /// `load_avg`.
    pub load: u64,
    /// `runnable_avg`, or `runnable_load_avg`.
    pub runnable: u64,
    /// `util_avg`.
    pub util: u64,
    /// `load_sum`, `runnable_sum` and `util_sum`, where they are printed.
    pub sums: Option<[u64; 3]>,
    /// `util_est.enqueued` and `util_est.ewma`.
    pub estimates: [u32; 2],
    /// Of a queue: `removed.load_avg`, `removed.runnable_avg` and `removed.util_avg`.
    pub removed: [u64; 3],
}

impl RecordedAverages {
    /// Takes off a queue's what a task counts there that has run, or waited, since it began and has exited since the
    /// recording: its weight as load, and as much of the rest.
    pub fn take_off_running(&mut self, weight: u64) {
        let left = self.load.saturating_sub(weight);
        let share = |value: u64| (value * left).checked_div(self.load).unwrap_or(0);
        (self.load, self.runnable, self.util) = (left, share(self.runnable), share(self.util));
    }
}

/// How long a period of load tracking is, ns.
pub(super) const PERIOD: u64 = 1 << 20;

/// The most that an average or its sum can be, whatever is printed: weights of many tasks, and periods of them.
const AVERAGE_MAX: u64 = 1 << 31;
const SUM_MAX: u64 = AVERAGE_MAX << 16;

/// What a task can use at most.
const CAPACITY: u64 = 1024;

/// What an estimate can have: a utilization, and the mark in the highest bit.
const ESTIMATE_BITS: u32 = (1 << 31) | ((1 << 20) - 1);

/// In so long averages count half, ns of load tracking.
const HALF_LIFE: u64 = 32 << 20;

/// After more half-lives nothing is left of an average.
const HALVES_MAX: u64 = 16;

impl RecordedAverages {
    /// As far as they can be.
    fn limited(self) -> RecordedAverages {
        let limit = |value: u64| value.min(AVERAGE_MAX);
        RecordedAverages {
            load: limit(self.load),
            runnable: limit(self.runnable),
            util: limit(self.util),
            sums: self.sums.map(|sums| sums.map(|sum| sum.min(SUM_MAX))),
            estimates: self.estimates.map(|estimate| estimate & ESTIMATE_BITS),
            removed: self.removed.map(limit),
        }
    }
}

impl Scheduler {
    /// The recorded kernel's clock is `behind` the one given here, ns: its periods of load tracking begin at whole multiples
    /// of their length on its own clock. To be called before anything has averages.
    pub fn align_periods(&mut self, behind: u64) {
        let phase = 0u64.wrapping_sub(behind) % PERIOD;
        self.shared.pelt_epoch = (self.shared.pelt_epoch & !(PERIOD - 1)) + phase;
        for rq in self.rqs.iter_mut() {
            rq.pelt.clock_pelt = self.shared.pelt_epoch + rq.clock.0;
        }
    }

    /// A queue's averages when they were `noted`; where nothing was, up to `clock` of its runqueue, or up to when the model has
    /// updated it last if that was before.
    pub fn lay_queue_averages(
        &mut self,
        queue: QueueId,
        given: RecordedAverages,
        clock: Ns,
        noted: &SnapshotAverages,
    ) {
        // Only a listed queue is aged while nothing is queued there.
        self.queue_rq_lock(queue.0).list_branch(queue.0);
        let now = self.shared.pelt_epoch.wrapping_add(clock.0);
        let [noted, _] = noted.of(queue);
        let tracked = &mut self.cfs_mut(queue.0).tracked;
        let computed = match tracked.avg.last_update_time {
            0 => now & !1023,
            computed => computed.min(now & !1023),
        };
        lay_or_shift(&mut tracked.avg, given, computed, [1; 2], noted);
        let [load_avg, runnable_avg, util_avg] = given.limited().removed;
        let nr = u32::from(load_avg > 0 || util_avg > 0);
        tracked.removed = RemovedLoad { nr, load_avg, runnable_avg, util_avg, runnable_sum: 0 };
    }

    /// What a group's queue has contributed to its group, and all of them together.
    pub fn lay_group_load(&mut self, group: GroupId, queue: QueueId, told: u64, all: u64) {
        self.cfs_mut(queue.0).tracked.tg_load_avg_contrib = told.min(AVERAGE_MAX);
        if let Some(group) = self.shared.groups.get_mut(group.0 as usize) {
            group.load_avg = all.min(AVERAGE_MAX << 8) as i64;
        }
    }

    /// Averages of the entity that stands for a group's queue when they were `noted`, or as old as those of the queue that it is
    /// on.
    pub fn lay_entity_averages(
        &mut self,
        entity: EntityId,
        given: RecordedAverages,
        clock: Ns,
        noted: &SnapshotAverages,
    ) {
        let weights = self.weights_in_sums(entity.0);
        let now = self.shared.pelt_epoch.wrapping_add(clock.0);
        let of_queue = self.cfs(self.se(entity.0).cfs_rq).tracked.avg.last_update_time;
        let below = self.se(entity.0).my_q.map(QueueId);
        let noted = below.map_or(NotedAverages::default(), |queue| noted.of(queue)[1]);
        let computed = if of_queue == 0 { now } else { of_queue };
        lay_or_shift(&mut self.se_mut(entity.0).avg, given, computed, weights, noted);
    }

    /// Load of a group's queue, and that of the entity which stands for it.
    pub fn force_group_load(&mut self, queue: QueueId, load: u64, of_entity: u64) {
        bring_load(&mut self.cfs_mut(queue.0).tracked.avg, load, 1);
        if let Some(entity) = self.cfs(queue.0).entity {
            self.bring_entity_load(entity, of_entity);
        }
    }

    /// An entity's load is known, and with it how it goes on.
    pub(crate) fn bring_entity_load(&mut self, se: SeId, load: u64) {
        let [weight, _] = self.weights_in_sums(se);
        bring_load(&mut self.se_mut(se).avg, load, weight);
    }

    /// A task's averages up to `clock`; those that the model has of a later time stay.
    pub fn lay_task_averages(&mut self, task: TaskId, given: RecordedAverages, clock: Ns) {
        let se = self.shared.tasks[task.index()].se;
        let computed = self.shared.pelt_epoch.wrapping_add(clock.0) & !1023;
        if self.se(se).avg.last_update_time <= computed.saturating_add(PERIOD / 4) {
            let weights = self.weights_in_sums(se);
            lay(&mut self.se_mut(se).avg, given, computed, weights);
        }
    }

    /// A task, and with it its CPU, has used, and has been runnable for, `more` than the core has it by now: what it began with
    /// was another guess.
    pub fn add_task_util(&mut self, task: TaskId, more: i64) {
        for (level, entity) in self.levels(task).into_iter().enumerate() {
            let queue = self.queue_of(entity).0;
            let aged = self.cfs(queue).tracked.avg.last_update_time;
            let [_, weight] = self.weights_in_sums(entity.0);
            let avg = &mut self.se_mut(entity.0).avg;
            // A sleeper's averages are as old as its sleep.
            let halves = if level == 0 { aged.saturating_sub(avg.last_update_time) / HALF_LIFE } else { 0 };
            add_usage(avg, more << halves.min(HALVES_MAX), weight);
            add_usage(&mut self.cfs_mut(queue).tracked.avg, more, 1);
        }
    }

    /// By what an entity's load and runnable averages are more than its sums tell.
    pub(crate) fn weights_in_sums(&self, se: SeId) -> [u64; 2] {
        let weight = self.se(se).load.scaled_down().max(1);
        match self.shared.generation.pelt.runnable {
            RunnableKind::LoadWeighted => [weight; 2],
            RunnableKind::TaskCount => [weight, 1],
        }
    }

    /// What a CPU bears, and was expected to be used in all, is of `tasks` that are queued there: those of which nothing is
    /// known have equal parts, of the estimate what the others leave. The averages are those up to `clock`.
    pub fn share_queue_averages(&mut self, cpu: Cpu, tasks: &[TaskId], clock: Ns) {
        let rules = self.shared.generation.pelt;
        let known = |task: &TaskId| self.entity_of(*task).avg.last_update_time != 0;
        let (known, unknown) = tasks.iter().copied().partition::<Vec<_>, _>(known);
        let of_known = known.iter().map(|&task| self.entity_of(task).avg.util_est.estimate(&rules));
        let queue = self.cfs(self.rqs[cpu.index()].cfs).tracked.avg;
        let left = u64::from(queue.util_est.enqueued).saturating_sub(of_known.sum::<u64>());
        let (all, parts) = (tasks.len().max(1) as u64, unknown.len().max(1) as u64);
        let estimate = (left / parts) as u32;
        for task in unknown {
            let se = self.shared.tasks[task.index()].se;
            let weight = self.se(se).load.scaled_down();
            let given = RecordedAverages {
                load: (queue.load_avg / all).min(weight),
                runnable: (queue.runnable_avg / all).min(weight.max(CAPACITY)),
                util: (queue.util_avg / all).min(CAPACITY),
                estimates: [estimate; 2],
                ..RecordedAverages::default()
            };
            self.lay_task_averages(task, given, clock);
            self.leave_runnable_load(se);
        }
    }

    /// What an entity counts as runnable, by load, is added when it is queued: a queue that was laid has it until then.
    fn leave_runnable_load(&mut self, se: SeId) {
        let entity = self.se(se);
        if entity.on_rq || self.shared.generation.pelt.runnable != RunnableKind::LoadWeighted {
            return;
        }
        let (cfs_rq, avg, weight) = (entity.cfs_rq, entity.avg, entity.load.scaled_down());
        let queue = &mut self.cfs_mut(cfs_rq).tracked.avg;
        queue.runnable_avg = queue.runnable_avg.saturating_sub(avg.runnable_avg);
        queue.runnable_sum = queue.runnable_sum.saturating_sub(weight * avg.runnable_sum);
    }

    /// A CPU is expected to be used as much as all tasks are that are queued there.
    pub fn sum_estimates(&mut self, cpu: Cpu) {
        let root = self.rqs[cpu.index()].cfs;
        self.cfs_mut(root).tracked.avg.util_est.enqueued = 0;
        for task in self.rqs[cpu.index()].cfs_tasks.oldest_first(&self.shared.tasks).collect::<Vec<_>>() {
            if !self.entity_of(task).sched_delayed {
                self.shared.util_est_enqueue(task);
            }
        }
    }

    /// An ended task has left its CPU: what it counted goes with its queue's next update (`task_dead_fair()`).
    pub fn leave_averages_for_good(&mut self, task: TaskId) {
        if self.task(task).policy.is_fair() && self.entity_of(task).avg.last_update_time != 0 {
            self.shared.remove_entity_load_avg(task);
        }
    }

    /// Averages that sleepers left on a CPU's queues are aged, at `clock` of its runqueue.
    pub fn age_blocked(&mut self, cpu: Cpu, clock: Ns) {
        self.set_rq_clock(cpu, clock);
        self.stand_on(cpu);
        self.update_blocked_averages(cpu);
    }
}

/// A load, of which a sum tells what `weight` is for it, is known.
pub(crate) fn bring_load(avg: &mut SchedAvg, load: u64, weight: u64) {
    let divider = u64::from(avg.divider());
    bring(&mut avg.load_avg, &mut avg.load_sum, load, divider, weight);
}

/// The same for what waits, and what is used.
pub(crate) fn bring_usage(avg: &mut SchedAvg, runnable: u64, util: u64, weight: u64) {
    let divider = u64::from(avg.divider());
    bring(&mut avg.runnable_avg, &mut avg.runnable_sum, runnable, divider, weight);
    let mut sum = u64::from(avg.util_sum);
    bring(&mut avg.util_avg, &mut sum, util, divider, 1);
    avg.util_sum = u32::try_from(sum).unwrap_or(u32::MAX);
}

/// An average is `known`: of all sums that come to it, its own becomes the one nearest to what it was.
fn bring(avg: &mut u64, sum: &mut u64, known: u64, divider: u64, weight: u64) {
    let known = known.min(AVERAGE_MAX);
    if *avg != known {
        let least = (known * divider).div_ceil(weight);
        let most = ((known + 1) * divider - 1) / weight;
        *sum = (*sum).max(least).min(most.max(least));
        *avg = known;
    }
}

/// Runnability and utilization are this much more.
fn add_usage(avg: &mut SchedAvg, more: i64, weight: u64) {
    let [runnable, util] =
        [avg.runnable_avg, avg.util_avg].map(|average| average.saturating_add_signed(more));
    bring_usage(avg, runnable, util, weight);
}

/// Averages were `given` when they were `noted`, and what has been since counts on; where nothing was noted, they are that now.
fn lay_or_shift(
    avg: &mut SchedAvg,
    given: RecordedAverages,
    computed: u64,
    weights: [u64; 2],
    noted: NotedAverages,
) {
    if noted.until == 0 {
        return lay(avg, given, computed, weights);
    }
    let given = given.limited();
    let mut util_sum = u64::from(avg.util_sum);
    let periods = avg.last_update_time / PERIOD - noted.until / PERIOD;
    let mut of = [
        (&mut avg.load_avg, &mut avg.load_sum, given.load, weights[0]),
        (&mut avg.runnable_avg, &mut avg.runnable_sum, given.runnable, weights[1]),
        (&mut avg.util_avg, &mut util_sum, given.util, 1),
    ];
    for ((average, sum, known, weight), (was, was_sum)) in of.iter_mut().zip(noted.averages_and_sums()) {
        if was == *known {
            continue;
        }
        let known_sum = *known * noted.divider() / *weight;
        let left = decayed(known_sum.abs_diff(was_sum), periods);
        let shift = |value: u64, by: u64| match known_sum >= was_sum {
            true => value + by,
            false => value.saturating_sub(by),
        };
        **sum = shift(**sum, left);
        **average = match **average == was {
            true => *known,
            false => shift(**average, left * *weight / noted.divider()),
        };
    }
    avg.util_sum = u32::try_from(util_sum).unwrap_or(u32::MAX);
    [avg.util_est.enqueued, avg.util_est.ewma] = given.estimates;
}

fn lay(avg: &mut SchedAvg, given: RecordedAverages, computed: u64, weights: [u64; 2]) {
    let given = given.limited();
    avg.last_update_time = computed;
    avg.period_contrib = ((computed >> 10) & 1023) as u32;
    let times = |average: u64| average * u64::from(avg.divider());
    let sums = || [times(given.load) / weights[0], times(given.runnable) / weights[1], times(given.util)];
    let [load_sum, runnable_sum, util_sum] = given.sums.unwrap_or_else(sums);
    (avg.load_avg, avg.runnable_avg, avg.util_avg) = (given.load, given.runnable, given.util);
    (avg.load_sum, avg.runnable_sum) = (load_sum, runnable_sum);
    avg.util_sum = u32::try_from(util_sum).unwrap_or(u32::MAX);
    [avg.util_est.enqueued, avg.util_est.ewma] = given.estimates;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pelt::UtilEst;
    use crate::select::GivenLoad;
    use crate::testbed::SchedulerTestbed;

    /// A queue and a task whose averages are known at once go on from there: one of 1 ms later has 97.9 % of them.
    #[test]
    fn averages_that_are_known_go_on_from_there() {
        for kernel in ["v5.4", "v6.12"] {
            let mut bed = SchedulerTestbed::new(kernel, 2, 1);
            let task = bed.spawn(5, 0);
            bed.run(0, 100);
            bed.sleep(0);
            bed.at(0);
            let queue = QueueId(bed.scheduler.rqs[0].cfs);
            bed.scheduler.force_cpu_load(Cpu(0), 3000);
            bed.scheduler.force_cpu_util(Cpu(0), 2000, 800);
            let given = GivenLoad { load: 300, runnable: 200, util: 100 };
            bed.scheduler.force_task_load(task, given);
            let se = bed.scheduler.task(task).se;
            let [of_load, of_runnable] = bed.scheduler.weights_in_sums(se);
            let avg = &bed.scheduler.se(se).avg;
            let divider = u64::from(avg.divider());
            let (load, runnable) =
                (avg.load_sum * of_load / divider, avg.runnable_sum * of_runnable / divider);
            let util = u64::from(avg.util_sum) / divider;
            assert!(
                (298..=300).contains(&load) && (198..=200).contains(&runnable) && util == 100,
                "{kernel}"
            );
            let clock = bed.scheduler.rq_clock(Cpu(0));
            bed.scheduler.age_blocked(Cpu(0), Ns(clock.0 + 1_100_000));
            let [load, runnable, util] = bed.scheduler.root_averages(Cpu(0));
            let kept = |average: u64, was: u64| (was * 96 / 100..was * 99 / 100).contains(&average);
            assert!(
                kept(load, 3000) && kept(runnable, 2000) && kept(util, 800),
                "{kernel}: {load} {runnable} {util}"
            );
            let exact = bed.scheduler.cfs(queue.0).tracked.avg.load_sum;
            bed.scheduler.force_cpu_load(Cpu(0), load);
            assert_eq!(bed.scheduler.cfs(queue.0).tracked.avg.load_sum, exact, "what it is stays exact");
        }
    }

    #[test]
    fn a_known_average_leaves_its_sum_as_near_as_can_be() {
        let brought = |avg: u64, sum: u64, known: u64| {
            let (mut avg, mut sum) = (avg, sum);
            bring(&mut avg, &mut sum, known, 47_000, 2);
            assert_eq!((avg, sum * 2 / 47_000), (known, known));
            sum
        };
        assert_eq!(brought(3, 71_234, 3), 71_234, "what it is stays exact");
        assert_eq!(brought(3, 71_234, 2), 70_499, "the most that comes to 2");
        assert_eq!(brought(3, 71_234, 5), 117_500, "the least that comes to 5");
    }

    /// What a task is guessed to have used counts on its CPU as well; a sleeper's averages are as old as its sleep.
    #[test]
    fn a_task_has_used_more_than_was_guessed() {
        let mut bed = SchedulerTestbed::new("v6.12", 2, 1);
        let task = bed.spawn(0, 0);
        bed.run(0, 5);
        let utils = |bed: &SchedulerTestbed| {
            [bed.scheduler.entity_of(task).avg.util_avg, bed.scheduler.root_averages(Cpu(0))[2]]
        };
        let [own, all] = utils(&bed);
        bed.scheduler.add_task_util(task, -100);
        assert_eq!(utils(&bed), [own - 100, all - 100]);
        bed.sleep(0);
        let [own, _] = utils(&bed);
        let clock = bed.scheduler.rq_clock(Cpu(0));
        bed.scheduler.age_blocked(Cpu(0), Ns(clock.0 + 34_000_000));
        let all = bed.scheduler.root_averages(Cpu(0))[2];
        bed.scheduler.add_task_util(task, 50);
        assert_eq!(utils(&bed), [own + 100, all + 50]);
    }

    #[test]
    fn a_queue_bears_and_expects_what_its_tasks_do_and_expects_nothing_once_they_sleep() {
        for kernel in ["v5.15", "v6.12"] {
            let mut bed = SchedulerTestbed::new(kernel, 2, 1);
            let tasks = [bed.spawn(0, 0), bed.spawn(0, 0), bed.spawn(0, 0)];
            let root = bed.scheduler.rqs[0].cfs;
            let expected = |bed: &SchedulerTestbed| bed.scheduler.cfs(root).tracked.avg.util_est.enqueued;
            let mut lay = |task: TaskId, computed, estimate| {
                let se = bed.scheduler.task(task).se;
                let avg = &mut bed.scheduler.se_mut(se).avg;
                avg.last_update_time = computed;
                avg.util_est = UtilEst { enqueued: estimate, ewma: estimate };
            };
            lay(tasks[0], 0, 0);
            lay(tasks[1], 1 << 20, 100);
            lay(tasks[2], 0, 0);
            let queue = &mut bed.scheduler.cfs_mut(root).tracked.avg;
            (queue.load_avg, queue.runnable_avg, queue.util_avg) = (2700, 2400, 600);
            queue.util_est.enqueued = 900;
            bed.scheduler.share_queue_averages(Cpu(0), &tasks, Ns::from_ms(5));
            bed.scheduler.sum_estimates(Cpu(0));
            assert_eq!(expected(&bed), 900, "{kernel}");
            for task in [tasks[0], tasks[2]] {
                let avg = bed.scheduler.entity_of(task).avg;
                let own = (avg.load_avg, avg.runnable_avg, avg.util_avg, avg.util_est.ewma);
                assert_eq!(own, (900, 800, 200, 400), "{kernel}");
            }
            for task in tasks {
                bed.scheduler.shared.util_est_dequeue(task);
            }
            assert_eq!(expected(&bed), 0, "{kernel}");
        }
    }

    #[test]
    fn what_is_runnable_by_load_comes_with_the_task_that_is_still_to_be_queued() {
        let mut bed = SchedulerTestbed::new("v5.2", 2, 1);
        let tasks = [bed.spawn(0, 0), bed.spawn(0, 0)];
        bed.sleep(0);
        let root = bed.scheduler.rqs[0].cfs;
        let queued = tasks.map(|task| bed.scheduler.entity_of(task).on_rq);
        assert_eq!(queued.iter().filter(|&&queued| queued).count(), 1);
        for task in tasks {
            let se = bed.scheduler.task(task).se;
            bed.scheduler.se_mut(se).avg.last_update_time = 0;
        }
        let queue = &mut bed.scheduler.cfs_mut(root).tracked.avg;
        (queue.load_avg, queue.runnable_avg, queue.runnable_sum) = (2000, 1600, 1600 * 47_000);
        bed.scheduler.share_queue_averages(Cpu(0), &tasks, Ns::from_ms(5));
        let queue = bed.scheduler.cfs(root).tracked.avg;
        assert_eq!((queue.load_avg, queue.runnable_avg), (2000, 800));
        assert!(queue.runnable_sum.abs_diff(800 * 47_000) < 800 * 1024, "{}", queue.runnable_sum);
    }

    #[test]
    fn who_read_a_queue_and_has_gone_takes_its_share_along() {
        let read = |load, util| RecordedAverages {
            load,
            runnable: 2 * util,
            util,
            sums: None,
            estimates: [7, 0],
            removed: [0; 3],
        };
        let left = |load, util| {
            let mut averages = read(load, util);
            averages.take_off_running(1024);
            (averages.load, averages.runnable, averages.util)
        };
        assert_eq!(left(1024, 512), (0, 0, 0), "it was alone");
        assert_eq!(left(2048, 600), (1024, 600, 300));
        assert_eq!(
            (left(900, 512), left(0, 0)),
            ((0, 0, 0), (0, 0, 0)),
            "its load has not grown to its weight"
        );
    }
}
