//! Load tracking in open loop: from the averages that a snapshot holds, and in step with the kernel's periods.
//!
//! Must not know: traces.

use fairlab_event::{Cpu, Ns};

use super::{EntityId, QueueId};
use crate::core::Scheduler;
use crate::group::GroupId;
use crate::pelt::{Removed, SchedAvg, UtilEst};
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
const PERIOD: u64 = 1 << 20;

/// The most that an average or its sum can be, whatever is printed: weights of many tasks, and periods of them.
const AVERAGE_MAX: u64 = 1 << 31;
const SUM_MAX: u64 = AVERAGE_MAX << 16;

/// What an estimate can have: a utilization, and the mark in the highest bit.
const ESTIMATE_BITS: u32 = (1 << 31) | ((1 << 20) - 1);

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
        self.pelt_epoch = (self.pelt_epoch & !(PERIOD - 1)) + phase;
        for rq in self.rqs.iter_mut() {
            rq.pelt.clock_pelt = self.pelt_epoch + rq.clock.0;
        }
    }

    /// A queue's averages, up to when the model has updated it last, or else up to `clock` of its runqueue.
    pub fn lay_queue_averages(&mut self, queue: QueueId, given: RecordedAverages, clock: Ns) {
        // Only a listed queue is aged while nothing is queued there.
        self.list_add_leaf_cfs_rq(queue.0);
        let now = self.pelt_epoch.wrapping_add(clock.0);
        let tracked = &mut self.cfs_mut(queue.0).tracked;
        let computed = match tracked.avg.last_update_time {
            0 => now & !1023,
            computed => computed,
        };
        lay(&mut tracked.avg, given, computed, 1);
        let [load_avg, runnable_avg, util_avg] = given.limited().removed;
        let nr = u32::from(load_avg > 0 || util_avg > 0);
        tracked.removed = Removed { nr, load_avg, runnable_avg, util_avg, runnable_sum: 0 };
    }

    /// What a group's queue has told its group, and all of them together.
    pub fn lay_group_load(&mut self, group: GroupId, queue: QueueId, told: u64, all: u64) {
        self.cfs_mut(queue.0).tracked.tg_load_avg_contrib = told.min(AVERAGE_MAX);
        if let Some(group) = self.groups.get_mut(group.0 as usize) {
            group.load_avg = all.min(AVERAGE_MAX << 8) as i64;
        }
    }

    /// Averages of the entity that stands for a group's queue, as old as those of the queue that it is on.
    pub fn lay_entity_averages(&mut self, entity: EntityId, given: RecordedAverages, clock: Ns) {
        let weight = self.se(entity.0).load.scaled_down().max(1);
        let now = self.pelt_epoch.wrapping_add(clock.0);
        let of_queue = self.cfs(self.se(entity.0).cfs_rq).tracked.avg.last_update_time;
        let computed = if of_queue == 0 { now } else { of_queue };
        lay(&mut self.se_mut(entity.0).avg, given, computed, weight);
    }

    /// Load of a group's queue, and that of the entity which stands for it.
    pub fn force_group_load(&mut self, queue: QueueId, load: u64, of_entity: u64) {
        self.cfs_mut(queue.0).tracked.avg.load_avg = load;
        if let Some(entity) = self.cfs(queue.0).entity {
            self.se_mut(entity).avg.load_avg = of_entity;
        }
    }

    /// A task's averages up to `clock`; those that the model has of a later time stay.
    pub fn lay_task_averages(&mut self, task: TaskId, given: RecordedAverages, clock: Ns) {
        let se = self.tasks[task.index()].se;
        let computed = self.pelt_epoch.wrapping_add(clock.0) & !1023;
        if self.se(se).avg.last_update_time <= computed.saturating_add(PERIOD / 4) {
            let weight = self.se(se).load.scaled_down().max(1);
            lay(&mut self.se_mut(se).avg, given, computed, weight);
        }
    }

    /// What a CPU was expected to be used in all, by `tasks` that were queued there: those of which it is not known have equal
    /// parts of what the others leave.
    pub fn lay_estimate(&mut self, tasks: &[TaskId], estimate: u64) {
        let rules = self.generation.pelt.util_est;
        let known = |task: &TaskId| self.entity_of(*task).avg.util_est != UtilEst::default();
        let (known, unknown) = tasks.iter().copied().partition::<Vec<_>, _>(known);
        let of_known = known.iter().map(|&task| self.entity_of(task).avg.util_est.estimate(&rules));
        let left = estimate.min(AVERAGE_MAX).saturating_sub(of_known.sum::<u64>());
        let part = (left / unknown.len().max(1) as u64) as u32;
        for task in unknown {
            let se = self.tasks[task.index()].se;
            self.se_mut(se).avg.util_est = UtilEst { enqueued: part, ewma: part };
        }
    }

    /// A CPU is expected to be used as much as all tasks are that are queued there.
    pub fn sum_estimates(&mut self, cpu: Cpu) {
        let root = self.rqs[cpu.index()].cfs;
        self.cfs_mut(root).tracked.avg.util_est.enqueued = 0;
        for task in self.rqs[cpu.index()].cfs_tasks.oldest_first(&self.tasks).collect::<Vec<_>>() {
            if !self.entity_of(task).sched_delayed {
                self.util_est_enqueue(task);
            }
        }
    }

    /// An ended task has left its CPU: what it counted goes with its queue's next update (`task_dead_fair()`).
    pub fn leave_averages_for_good(&mut self, task: TaskId) {
        if self.task(task).policy.is_fair() && self.entity_of(task).avg.last_update_time != 0 {
            self.remove_entity_load_avg(task);
        }
    }

    /// Averages that sleepers left on a CPU's queues are aged, at `clock` of its runqueue.
    pub fn age_blocked(&mut self, cpu: Cpu, clock: Ns) {
        self.set_rq_clock(cpu, clock);
        self.stand_on(cpu);
        self.update_blocked_averages(cpu);
    }
}

fn lay(avg: &mut SchedAvg, given: RecordedAverages, computed: u64, weight: u64) {
    let given = given.limited();
    avg.last_update_time = computed;
    avg.period_contrib = ((computed >> 10) & 1023) as u32;
    let times = |average: u64| average * u64::from(avg.divider());
    let [load_sum, runnable_sum, util_sum] =
        given.sums.unwrap_or_else(|| [times(given.load) / weight, times(given.runnable), times(given.util)]);
    (avg.load_avg, avg.runnable_avg, avg.util_avg) = (given.load, given.runnable, given.util);
    (avg.load_sum, avg.runnable_sum) = (load_sum, runnable_sum);
    avg.util_sum = u32::try_from(util_sum).unwrap_or(u32::MAX);
    [avg.util_est.enqueued, avg.util_est.ewma] = given.estimates;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::Bed;

    #[test]
    fn a_queue_expects_what_its_tasks_are_expected_to_use_and_nothing_once_they_sleep() {
        for kernel in ["v5.15", "v6.12"] {
            let mut bed = Bed::new(kernel, 2, 1);
            let tasks = [bed.spawn(0, 0), bed.spawn(0, 0), bed.spawn(0, 0)];
            let expected = |bed: &Bed| bed.scheduler.cfs(bed.scheduler.rqs[0].cfs).tracked.avg.util_est;
            let se = bed.scheduler.task(tasks[1]).se;
            bed.scheduler.se_mut(se).avg.util_est = UtilEst { enqueued: 100, ewma: 100 };
            bed.scheduler.lay_estimate(&tasks, 900);
            assert_eq!(expected(&bed).enqueued, 0, "{kernel}");
            bed.scheduler.sum_estimates(Cpu(0));
            assert_eq!(expected(&bed).enqueued, 900, "{kernel}");
            let own = tasks.map(|task| bed.scheduler.entity_of(task).avg.util_est.ewma);
            assert_eq!(own, [400, 100, 400], "{kernel}");
            for task in tasks {
                bed.scheduler.util_est_dequeue(task);
            }
            assert_eq!(expected(&bed).enqueued, 0, "{kernel}");
        }
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
