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
    /// Averages of a new entity: a task starts as if it had always wanted to run, a group (`None`) with nothing.
    ///
    /// Kernel: `init_entity_runnable_average()`, kernel/sched/fair.c. Units: `task_weight` scaled down.
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
    /// What follows is the caller's: a task of another class gets the queue's clock as `last_update_time` and stays
    /// unattached (from v6.1, e4fe074d6c35, without this guess); a fair one is attached to the aged queue (`AttachPoint`).
    ///
    /// Kernel: `post_init_entity_util_avg()`, kernel/sched/fair.c. Variants: `ScaledUp` weight to v6.9, `ScaledDown` from
    /// v6.10 (72bffbf57c52); runnability from v5.7, `Util` from v5.8 (68f7b5cc835d).
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
    /// Kernel: `sync_entity_load_avg()`, kernel/sched/fair.c.
    pub fn sync_entity_load_avg(&self, se: &mut SchedAvg, weight: EntityWeight, queue_last_update_time: u64) {
        self.update_blocked_se(queue_last_update_time, se, weight);
    }

    /// A sleeping task leaves its queue without the queue's lock, to wake on another CPU or to exit: it is aged, and what
    /// it counts is noted for the queue's next update.
    ///
    /// Kernel: `remove_entity_load_avg()`, kernel/sched/fair.c.
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
    /// been idle; `idle` is `None` if it does not run its idle task. The caller then sets `last_update_time` to 0, so that
    /// the task is attached again.
    ///
    /// Kernel: `migrate_se_pelt_lag()`, kernel/sched/fair.c (v6.0, e2f3e35f1f5a).
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

    /// An entity changes groups: it is aged to its old queue's last update (`previous`) and takes the new one's (`next`).
    /// Nothing happens to one without a `last_update_time`.
    ///
    /// Kernel: `set_task_rq_fair()`, kernel/sched/fair.c.
    pub fn set_task_rq_fair(&self, se: &mut SchedAvg, weight: EntityWeight, previous: u64, next: u64) {
        if se.last_update_time != 0 {
            self.update_blocked_se(previous, se, weight);
            se.last_update_time = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::average::{CpuScale, EntityState};
    use super::*;

    const WEIGHT: EntityWeight = EntityWeight::of_task(1024);
    const PERIOD_NS: u64 = 1 << 20;

    fn rules(major: u32, minor: u32) -> PeltRules {
        crate::pelt::rules_of(&format!("v{major}.{minor}"))
    }

    /// A task that ran for 64 periods and sleeps since.
    fn sleeper(rules: &PeltRules) -> SchedAvg {
        let mut avg = SchedAvg::default();
        let runs = EntityState { weight: WEIGHT, on_rq: true, runnable_tasks: 1, running: true };
        rules.update_se(64 * PERIOD_NS, CpuScale::FULL, &mut avg, runs, true);
        avg
    }

    fn from(queue_util_avg: u64, queue_load_avg: u64) -> FairInitialUtil {
        let weight_scaled_up = 1024 << 10;
        FairInitialUtil { capacity: 1024, queue_util_avg, queue_load_avg, weight: 1024, weight_scaled_up }
    }

    #[test]
    fn new_entities() {
        assert_eq!(rules(5, 6).init_entity_runnable_average(Some(1024)).runnable_avg, 1024);
        let task = rules(5, 7).init_entity_runnable_average(Some(1024));
        assert_eq!((task.load_avg, task.runnable_avg, task.util_avg), (1024, 0, 0));
        assert_eq!(rules(5, 7).init_entity_runnable_average(None), SchedAvg::default());
    }

    #[test]
    fn initial_utilization() {
        let guess = |rules: PeltRules, from| {
            let mut se = rules.init_entity_runnable_average(Some(1024));
            rules.post_init_entity_util_avg(&mut se, from);
            (se.util_avg, se.runnable_avg)
        };
        assert_eq!(guess(rules(6, 6), from(0, 0)), (512, 512), "half of an unused CPU");
        assert_eq!(
            guess(rules(6, 6), from(100, 1023)),
            (462, 462),
            "the unscaled weight is too big to matter"
        );
        assert_eq!(guess(rules(6, 10), from(100, 1023)), (100, 100), "as big as the one that is there");
        assert_eq!(guess(rules(6, 10), from(800, 1023)), (112, 112));
        assert_eq!(guess(rules(6, 10), from(1023, 1023)), (0, 0));
        assert_eq!(guess(rules(6, 10), from(1100, u64::MAX)), (0, 0));
        assert_eq!(guess(rules(5, 7), from(0, 0)), (512, 1024), "v5.7.0 began with the capacity");
        assert_eq!(guess(rules(5, 6), from(0, 0)), (512, 1024), "there it is a weight");
    }

    #[test]
    fn a_sleeper_is_aged_when_somebody_asks() {
        let rules = rules(5, 10);
        let mut se = sleeper(&rules);
        let before = se.util_avg;
        rules.sync_entity_load_avg(&mut se, WEIGHT, 96 * PERIOD_NS);
        assert_eq!(se.util_avg, before / 2);
        rules.sync_entity_load_avg(&mut se, WEIGHT, 96 * PERIOD_NS);
        assert_eq!(se.util_avg, before / 2);
    }

    #[test]
    fn who_wakes_elsewhere_is_noted() {
        for (rules, runnable_avg) in [(rules(5, 6), 0), (rules(5, 10), 384)] {
            let mut queue = CfsRqLoad::default();
            queue.avg.last_update_time = 96 * PERIOD_NS;
            let mut se = sleeper(&rules);
            rules.remove_entity_load_avg(&mut queue, &mut se, WEIGHT);
            rules.remove_entity_load_avg(&mut queue, &mut se, WEIGHT);
            let removed = queue.removed;
            assert_eq!(
                (removed.nr, removed.util_avg, removed.load_avg),
                (2, 2 * se.util_avg, 2 * se.load_avg)
            );
            assert!((removed.runnable_avg / 2).abs_diff(runnable_avg) <= 1);
            assert_eq!(removed.runnable_sum, if runnable_avg == 0 { 2 * se.load_sum } else { 0 });
        }
    }

    #[test]
    fn time_that_an_idle_cpu_did_not_see() {
        let times = IdleCpuTimes {
            clock_pelt_idle: 70 * PERIOD_NS,
            clock_idle: 1000 * PERIOD_NS,
            throttled_when_idle: Some(0),
            queue_last_update_time: 69 * PERIOD_NS,
            sched_clock: 1026 * PERIOD_NS,
        };
        let lagged = |rules: PeltRules, times| {
            let mut se = sleeper(&rules);
            rules.sync_entity_load_avg(&mut se, WEIGHT, 69 * PERIOD_NS);
            rules.migrate_se_pelt_lag(&mut se, WEIGHT, times);
            se.last_update_time / PERIOD_NS
        };
        assert_eq!(lagged(rules(5, 19), Some(times)), 69, "not before v6.0");
        assert_eq!(lagged(rules(6, 0), Some(times)), 96, "70 and 26 idle");
        assert_eq!(lagged(rules(6, 0), None), 69, "not idle");
        let throttled = IdleCpuTimes { throttled_when_idle: None, ..times };
        assert_eq!(lagged(rules(6, 0), Some(throttled)), 69);
        let stale = IdleCpuTimes { clock_pelt_idle: 60 * PERIOD_NS, ..times };
        assert_eq!(lagged(rules(6, 0), Some(stale)), 69, "the queue is newer than the note");
    }

    #[test]
    fn another_group_has_another_time() {
        let rules = rules(5, 10);
        let mut se = sleeper(&rules);
        let before = se.util_avg;
        rules.set_task_rq_fair(&mut se, WEIGHT, 96 * PERIOD_NS, 5 * PERIOD_NS);
        assert_eq!((se.util_avg, se.last_update_time), (before / 2, 5 * PERIOD_NS));
        let mut fresh = SchedAvg::default();
        rules.set_task_rq_fair(&mut fresh, WEIGHT, 96 * PERIOD_NS, 5 * PERIOD_NS);
        assert_eq!(fresh, SchedAvg::default());
    }
}
