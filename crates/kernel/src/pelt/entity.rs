//! An entity's averages before it has any, and while it sleeps or moves.
//!
//! Must not know: why it sleeps, where it goes.

use super::average::{EntityWeight, SchedAvg, load_avg_is_decayed};
use super::queue::CfsRqLoad;
use super::rules::{InitialRunnable, InitialUtilWeight, MigrationLag, PeltRules, RunnableKind};

/// What a new task's utilization is guessed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairInitialUtil {
    /// The CPU's capacity, 0…1024 (`arch_scale_cpu_capacity()`).
    pub capacity: u64,
    /// `util_avg` of the queue that it is created on, as last updated.
    pub queue_util_avg: u64,
    /// `load_avg` of the same.
    pub queue_load_avg: u64,
    /// The task's weight, scaled down.
    pub weight: u64,
    /// The same with its 10 extra bits (`se->load.weight`).
    pub weight_scaled_up: u64,
}

/// What another CPU can read of the clocks of one that idles, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleCpuTimes {
    /// `rq->clock_pelt_idle`.
    pub clock_pelt_idle: u64,
    /// `rq->clock_idle`.
    pub clock_idle: u64,
    /// [`CfsRqClock::throttled_when_idle`](super::CfsRqClock::throttled_when_idle) of the entity's queue.
    pub throttled_when_idle: Option<u64>,
    /// `last_update_time` of the entity's queue.
    pub queue_last_update_time: u64,
    /// The time now (`sched_clock_cpu()`).
    pub sched_clock: u64,
}

impl PeltRules {
    /// Averages of a new entity: a task starts as if it had always wanted to run, a group with nothing.
    ///
    /// Kernel: `init_entity_runnable_average()`, kernel/sched/fair.c. `task_weight`: scaled down; `None` for a group.
    pub fn init_entity_runnable_average(&self, task_weight: Option<u64>) -> SchedAvg {
        let load_avg = task_weight.unwrap_or(0);
        let runnable_avg = match self.runnable {
            RunnableKind::LoadWeighted => load_avg,
            RunnableKind::TaskCount => 0,
        };
        SchedAvg { load_avg, runnable_avg, ..SchedAvg::default() }
    }

    /// A new fair task's utilization: what its share of the queue's would be, at most half of what the CPU has left.
    ///
    /// Kernel: `post_init_entity_util_avg()`, kernel/sched/fair.c, without what follows there: a task of another class
    /// gets `last_update_time` = the queue's clock and stays unattached (from e4fe074d6c35, v6.1, without this guess);
    /// a fair one is attached to the aged queue, at once or at its first enqueue (`AttachPoint`).
    pub fn post_init_entity_util_avg(&self, se: &mut SchedAvg, from: FairInitialUtil) {
        let left = (from.capacity as i64).wrapping_sub(from.queue_util_avg as i64) / 2;
        if left > 0 {
            let limit = left as u64;
            let weight = match self.initial_util_weight {
                InitialUtilWeight::ScaledUp => from.weight_scaled_up,
                InitialUtilWeight::ScaledDown => from.weight,
            };
            let share = from.queue_util_avg.wrapping_mul(weight) / from.queue_load_avg.wrapping_add(1).max(1);
            se.util_avg = if from.queue_util_avg == 0 { limit } else { share.min(limit) };
        }
        if self.runnable == RunnableKind::TaskCount {
            se.runnable_avg = match self.initial_runnable {
                InitialRunnable::Capacity => from.capacity,
                InitialRunnable::Util => se.util_avg,
            };
        }
    }

    /// Ages a sleeping entity up to its queue's last update.
    ///
    /// Kernel: `sync_entity_load_avg()`, kernel/sched/fair.c. `queue_last_update_time`: its queue's `last_update_time`.
    pub fn sync_entity_load_avg(&self, se: &mut SchedAvg, weight: EntityWeight, queue_last_update_time: u64) {
        self.update_blocked_se(queue_last_update_time, se, weight);
    }

    /// A sleeping task leaves its queue without the queue's lock: it is aged, and what it counts is noted for the queue's
    /// next update.
    ///
    /// Kernel: `remove_entity_load_avg()`, kernel/sched/fair.c. Wakeup on another CPU, and exit.
    pub fn remove_entity_load_avg(&self, cfs_rq: &mut CfsRqLoad, se: &mut SchedAvg, weight: EntityWeight) {
        self.sync_entity_load_avg(se, weight, cfs_rq.avg.last_update_time);
        let removed = &mut cfs_rq.removed;
        removed.nr = removed.nr.saturating_add(1);
        removed.util_avg = removed.util_avg.wrapping_add(se.util_avg);
        removed.load_avg = removed.load_avg.wrapping_add(se.load_avg);
        match self.runnable {
            RunnableKind::LoadWeighted => {
                removed.runnable_sum = removed.runnable_sum.wrapping_add(se.load_sum);
            }
            RunnableKind::TaskCount => {
                removed.runnable_avg = removed.runnable_avg.wrapping_add(se.runnable_avg);
            }
        }
    }

    /// After [`PeltRules::remove_entity_load_avg`] at a wakeup: ages the task further by the time that its old CPU has
    /// been idle. The caller then sets `last_update_time` to 0, so that it is attached anew.
    ///
    /// Kernel: `migrate_se_pelt_lag()`, kernel/sched/fair.c (e2f3e35f1f5a). `idle`: `None` if the old CPU does not run
    /// its idle task.
    pub fn migrate_se_pelt_lag(&self, se: &mut SchedAvg, weight: EntityWeight, idle: Option<IdleCpuTimes>) {
        if self.migration_lag == MigrationLag::Ignored || load_avg_is_decayed(se) {
            return;
        }
        let Some(times) = idle else { return };
        let Some(throttled) = times.throttled_when_idle else { return };
        let since = times.clock_pelt_idle.wrapping_sub(throttled);
        let now = if since < times.queue_last_update_time {
            times.queue_last_update_time
        } else {
            since.wrapping_add(times.sched_clock.wrapping_sub(times.clock_idle))
        };
        self.update_blocked_se(now, se, weight);
    }

    /// A group entity or task changes groups: it is aged to its old queue's last update and takes the new one's time.
    ///
    /// Kernel: `set_task_rq_fair()`, kernel/sched/fair.c. Nothing happens to an entity without a `last_update_time`, nor
    /// to one that had no queue.
    pub fn set_task_rq_fair(
        &self,
        se: &mut SchedAvg,
        weight: EntityWeight,
        previous: u64,
        next: u64,
    ) {
        if se.last_update_time != 0 {
            self.update_blocked_se(previous, se, weight);
            se.last_update_time = next;
        }
    }
}
