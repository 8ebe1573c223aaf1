//! Utilization as it was when a task last slept, so that a big task is known as big when it wakes.
//!
//! Must not know: frequencies, energy.

use super::average::SchedAvg;
use super::rules::{
    PeltRules, RunnableBoost, UtilEstCapacity, UtilEstFlag, UtilEstForm, UtilEstMargin, UtilEstRise,
    UtilEstWaiting,
};

/// A new sample counts a quarter (`UTIL_EST_WEIGHT_SHIFT`).
const WEIGHT_SHIFT: u32 = 2;

/// Changes below 1 % are no changes (`UTIL_EST_MARGIN`).
const MARGIN: u32 = 1024 / 100;

/// `struct util_est`, or the one number that it became (11137d384996).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtilEst {
    /// A task's utilization at its last dequeue, with the mark; a root queue's sum over its tasks, in both forms.
    pub enqueued: u32,
    /// A task's moving average; in the form `EwmaOnly` with the mark.
    pub ewma: u32,
}

/// Features that estimates depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtilEstFeatures {
    /// UTIL_EST.
    pub util_est: bool,
    /// UTIL_EST_FASTUP.
    pub fastup: bool,
}

impl PeltRules {
    /// `UTIL_AVG_UNCHANGED`.
    const fn unchanged(&self) -> u32 {
        match self.util_est_flag {
            UtilEstFlag::LowBitInQueue | UtilEstFlag::LowBit => 1,
            UtilEstFlag::HighBit => 1 << 31,
        }
    }
}

/// Whether a signed value is nearer to 0 than the margin (`within_margin()`).
const fn within_margin(value: i64) -> bool {
    (value as i32).unsigned_abs() < MARGIN
}

impl UtilEst {
    fn marked(&mut self, rules: &PeltRules) -> &mut u32 {
        match rules.util_est_form {
            UtilEstForm::EnqueuedAndEwma => &mut self.enqueued,
            UtilEstForm::EwmaOnly => &mut self.ewma,
        }
    }

    /// The task's utilization was recomputed: at its next dequeue there is a sample.
    ///
    /// Kernel: `cfs_se_util_change()`, kernel/sched/pelt.h (d519329f72a6).
    pub(super) fn util_changed(&mut self, rules: &PeltRules) {
        *self.marked(rules) &= !rules.unchanged();
    }

    /// What a sleeping or new task is expected to use, 0…1024 (and the mark, where it is bit 0).
    ///
    /// Kernel: `_task_util_est()`, kernel/sched/fair.c. Variants: `LowBitInQueue` to v4.20, `LowBit` from v5.0
    /// (92a801e5d5b7), `HighBit` from v5.13 (68d7a190682a).
    pub fn estimate(&self, rules: &PeltRules) -> u64 {
        let mark = rules.unchanged();
        let estimate = match (rules.util_est_form, rules.util_est_flag) {
            (UtilEstForm::EwmaOnly, _) => self.ewma & !mark,
            (_, UtilEstFlag::HighBit) => self.ewma.max(self.enqueued & !mark),
            (_, UtilEstFlag::LowBit) => self.ewma.max(self.enqueued) | mark,
            (_, UtilEstFlag::LowBitInQueue) => self.ewma.max(self.enqueued),
        };
        estimate.into()
    }

    /// What a task counts in the sum of its root queue.
    fn in_queue(&self, rules: &PeltRules) -> u32 {
        let mark = if rules.util_est_flag == UtilEstFlag::LowBitInQueue { rules.unchanged() } else { 0 };
        self.estimate(rules) as u32 | mark
    }
}

impl PeltRules {
    /// What a task is expected to use: the more of its average and its estimate (`task_util_est()`).
    pub fn task_util_est(&self, task: &SchedAvg) -> u64 {
        task.util_avg.max(task.util_est.estimate(self))
    }

    /// A task is queued: the root queue expects its estimate. First step of `enqueue_task_fair()`; only with UTIL_EST.
    ///
    /// Kernel: `util_est_enqueue()`, kernel/sched/fair.c.
    pub fn util_est_enqueue(&self, root: &mut UtilEst, task: &UtilEst) {
        root.enqueued = root.enqueued.wrapping_add(task.in_queue(self));
    }

    /// A task is dequeued: the root queue no longer expects its estimate. See `UtilEstDequeue` for when; only with
    /// UTIL_EST.
    ///
    /// Kernel: `util_est_dequeue()`, kernel/sched/fair.c.
    pub fn util_est_dequeue(&self, root: &mut UtilEst, task: &UtilEst) {
        root.enqueued = root.enqueued.saturating_sub(task.in_queue(self));
    }

    /// A task goes to sleep: its estimate takes a new sample, if its average has changed since the last.
    ///
    /// Kernel: `util_est_update()`, kernel/sched/fair.c, to v5.11 the second half of `util_est_dequeue()`. Variants:
    /// `EnqueuedAndEwma` to v6.7, `EwmaOnly` from v6.8 (11137d384996), and the rules of estimates. Units: `capacity` of
    /// the CPU, 0…1024.
    pub fn util_est_update(&self, task: &mut SchedAvg, capacity: u64, features: UtilEstFeatures) {
        if !features.util_est {
            return;
        }
        match self.util_est_form {
            UtilEstForm::EnqueuedAndEwma => self.update_both(task, capacity, features),
            UtilEstForm::EwmaOnly => self.update_ewma(task, capacity),
        }
    }

    fn update_both(&self, task: &mut SchedAvg, capacity: u64, features: UtilEstFeatures) {
        let rules = self;
        let mark = rules.unchanged();
        let UtilEst { enqueued: last, mut ewma } = task.util_est;
        if last & mark != 0 {
            return;
        }
        let util = task.util_avg as u32;
        // A mark in bit 0 is part of the sample from the start.
        let enqueued = if rules.util_est_flag == UtilEstFlag::HighBit { util } else { util | mark };
        let rises = features.fastup || rules.util_est_rise == UtilEstRise::AtOnce;
        let difference = i64::from(enqueued) - i64::from(ewma);
        let moved = i64::from(last) - i64::from(enqueued);
        if rises && ewma < enqueued {
            ewma = enqueued;
        } else if within_margin(difference) {
            if rules.util_est_margin == UtilEstMargin::Discard || within_margin(moved) {
                return;
            }
        } else if rules.util_est_capacity == UtilEstCapacity::Within && task.util_avg > capacity {
            return;
        } else if !self.waited(task, enqueued) {
            ewma = (ewma << WEIGHT_SHIFT).wrapping_add(difference as u32) >> WEIGHT_SHIFT;
        }
        task.util_est = UtilEst { enqueued: enqueued | mark, ewma };
    }

    fn update_ewma(&self, task: &mut SchedAvg, capacity: u64) {
        let rules = self;
        let mark = rules.unchanged();
        let mut ewma = task.util_est.ewma;
        if ewma & mark != 0 {
            return;
        }
        let dequeued = task.util_avg as u32;
        if ewma <= dequeued {
            ewma = dequeued;
        } else if ewma - dequeued >= MARGIN {
            if rules.util_est_capacity == UtilEstCapacity::Within && u64::from(dequeued) > capacity {
                return;
            }
            if !self.waited(task, dequeued) {
                ewma = (ewma << WEIGHT_SHIFT).wrapping_sub(ewma - dequeued) >> WEIGHT_SHIFT;
            }
        }
        task.util_est.ewma = ewma | mark;
    }

    /// Whether a task would have used more than `util` if it had not waited for the CPU (50181c0cff31).
    fn waited(&self, task: &SchedAvg, util: u32) -> bool {
        self.util_est_waiting == UtilEstWaiting::Skipped
            && u64::from(util.wrapping_add(MARGIN)) < task.runnable_avg
    }
}

/// A task whose coming or going is to be imagined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskUtil {
    /// Its averages.
    pub avg: SchedAvg,
    /// It is (or last was) on the CPU asked about: `task_cpu(p) == cpu`.
    pub is_here: bool,
    /// It is queued or is the one that asks: its estimate is part of the queue's.
    pub is_queued: bool,
    /// It is imagined to run on the CPU asked about: `dst_cpu == cpu`.
    pub comes_here: bool,
}

/// What a CPU's utilization is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUtil<'q> {
    /// Averages of its root queue.
    pub queue: &'q SchedAvg,
    /// A task to be put there or taken away.
    pub task: Option<TaskUtil>,
    /// The CPU's capacity, 0…1024 (`capacity_orig_of()`).
    pub capacity: u64,
    /// Waiting counts too (`cpu_util_cfs_boost()`).
    pub boost: bool,
    /// The feature UTIL_EST.
    pub util_est_enabled: bool,
}

impl PeltRules {
    /// How much of a CPU the fair class uses or will use, 0…capacity.
    ///
    /// Kernel: `cpu_util()`, kernel/sched/fair.c; of earlier releases also `cpu_util_without()` (a task is taken away) and
    /// `cpu_util_next()` (it is imagined here or elsewhere). Variants: no boost to v6.4, `Estimate` in v6.5
    /// (7d0583cf9ec7), `Util` from v6.6 (c2e164ac33f7), `WithTask` from v7.2 (29922fdfc2a4).
    #[inline]
    pub fn cpu_util(&self, cpu: CpuUtil<'_>) -> u64 {
        let with = |value: u64, of_task: fn(&SchedAvg) -> u64| match cpu.task {
            Some(task) if task.is_here && !task.comes_here => value.saturating_sub(of_task(&task.avg)),
            Some(task) if !task.is_here && task.comes_here => value.wrapping_add(of_task(&task.avg)),
            _ => value,
        };
        let boost = if cpu.boost { self.runnable_boost } else { RunnableBoost::None };
        let runnable_avg = cpu.queue.runnable_avg;
        let plain = cpu.queue.util_avg;
        let mut util = match boost {
            RunnableBoost::None => with(plain, |avg| avg.util_avg),
            RunnableBoost::Estimate | RunnableBoost::Util => {
                with(plain.max(runnable_avg), |avg| avg.util_avg)
            }
            RunnableBoost::WithTask => {
                with(plain, |avg| avg.util_avg).max(with(runnable_avg, |avg| avg.runnable_avg))
            }
        };
        if cpu.util_est_enabled {
            let floor = if boost == RunnableBoost::Estimate { runnable_avg } else { 0 };
            util = util.max(self.queue_estimate(&cpu, floor));
        }
        util.min(cpu.capacity)
    }

    fn queue_estimate(&self, cpu: &CpuUtil<'_>, floor: u64) -> u64 {
        let estimate = u64::from(cpu.queue.util_est.enqueued).max(floor);
        let Some(task) = cpu.task else { return estimate };
        let of_task = u64::from(task.avg.util_est.in_queue(self));
        if task.comes_here {
            estimate.wrapping_add(of_task)
        } else if task.is_queued {
            estimate.saturating_sub(of_task)
        } else {
            estimate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: UtilEstFeatures = UtilEstFeatures { util_est: true, fastup: true };
    const SLOW: UtilEstFeatures = UtilEstFeatures { fastup: false, ..ON };

    fn rules(major: u32, minor: u32) -> PeltRules {
        crate::pelt::rules_of(&format!("v{major}.{minor}"))
    }

    /// A task whose utilization was computed since its last estimate.
    fn task(util_avg: u64, enqueued: u32, ewma: u32) -> SchedAvg {
        let util_est = UtilEst { enqueued, ewma };
        SchedAvg { util_avg, runnable_avg: util_avg, util_est, ..SchedAvg::default() }
    }

    fn slept(rules: &PeltRules, mut task: SchedAvg, features: UtilEstFeatures) -> UtilEst {
        rules.util_est_update(&mut task, 1024, features);
        task.util_est
    }

    fn both(enqueued: u32, ewma: u32) -> UtilEst {
        UtilEst { enqueued, ewma }
    }

    const HIGH: u32 = 1 << 31;

    #[test]
    fn a_quarter_of_each_sample_or_all_of_a_rise() {
        assert_eq!(slept(&rules(4, 19), task(600, 0, 0), SLOW), both(601, 150), "the mark is in the sample");
        assert_eq!(slept(&rules(5, 5), task(600, 0, 0), ON), both(601, 601));
        assert_eq!(slept(&rules(5, 5), task(600, 0, 0), SLOW), both(601, 150));
        assert_eq!(slept(&rules(5, 13), task(600, 0, 0), ON), both(600 | HIGH, 600));
        assert_eq!(slept(&rules(6, 8), task(600, 0, 0), SLOW), both(0, 600 | HIGH), "always at once");
        assert_eq!(slept(&rules(5, 13), task(200, 600, 600), ON), both(200 | HIGH, 500));
        assert_eq!(slept(&rules(6, 8), task(200, 0, 600), ON), both(0, 500 | HIGH));
    }

    #[test]
    fn small_changes() {
        assert_eq!(slept(&rules(4, 19), task(596, 2, 600), SLOW), both(2, 600), "dropped");
        assert_eq!(slept(&rules(5, 12), task(596, 2, 600), ON), both(2, 600));
        assert_eq!(slept(&rules(5, 13), task(596, 2, 600), ON), both(596 | HIGH, 600), "far from the last");
        assert_eq!(slept(&rules(5, 13), task(596, 590, 600), ON), both(590, 600), "near the last, no mark");
        assert_eq!(slept(&rules(5, 13), task(590, 590, 600), ON), both(590 | HIGH, 597), "10 is not small");
        assert_eq!(slept(&rules(6, 8), task(596, 0, 600), ON), both(0, 600 | HIGH));
        assert_eq!(
            slept(&rules(6, 8), task(590, 0, 600), ON),
            both(0, 597 | HIGH),
            "10 is not below the margin"
        );
    }

    #[test]
    fn no_new_average_no_sample() {
        for (rules, marked) in [
            (rules(4, 19), both(601, 100)),
            (rules(5, 13), both(600 | HIGH, 100)),
            (rules(6, 8), both(0, 100 | HIGH)),
        ] {
            let mut task = SchedAvg { util_est: marked, ..task(900, 0, 0) };
            assert_eq!(slept(&rules, task, ON), marked);
            task.util_est.util_changed(&rules);
            assert_ne!(slept(&rules, task, ON), marked);
            assert_eq!(slept(&rules, task, UtilEstFeatures { util_est: false, fastup: true }), task.util_est);
        }
    }

    #[test]
    fn samples_above_capacity() {
        let slept = |rules: PeltRules| {
            let mut task = task(300, 0, 800);
            rules.util_est_update(&mut task, 256, ON);
            task.util_est.ewma & !HIGH
        };
        assert_eq!(slept(rules(5, 0)), 675);
        assert_eq!(slept(rules(5, 1)), 800);
        assert_eq!(slept(rules(6, 15)), 800);
        assert_eq!(slept(rules(6, 16)), 675);
    }

    #[test]
    fn samples_of_a_task_that_waited() {
        let waited = SchedAvg { runnable_avg: 500, ..task(200, 0, 600) };
        assert_eq!(
            slept(&rules(6, 7), SchedAvg { util_est: both(600, 600), ..waited }, ON),
            both(200 | HIGH, 500)
        );
        assert_eq!(slept(&rules(6, 8), waited, ON), both(0, 600 | HIGH));
        let nearly = SchedAvg { runnable_avg: 210, ..waited };
        assert_eq!(slept(&rules(6, 8), nearly, ON), both(0, 500 | HIGH));
    }

    #[test]
    fn queues_sum_up_estimates() {
        for rules in [rules(4, 19), rules(5, 0), rules(5, 13), rules(6, 8)] {
            let (first, second) = (both(401, 300), both(0, 200));
            let mut root = UtilEst::default();
            rules.util_est_enqueue(&mut root, &first);
            rules.util_est_enqueue(&mut root, &second);
            assert!((500..=602).contains(&root.enqueued), "{}", root.enqueued);
            rules.util_est_dequeue(&mut root, &first);
            assert!((200..=201).contains(&root.enqueued));
            rules.util_est_dequeue(&mut root, &second);
            assert_eq!(root, UtilEst::default());
            rules.util_est_dequeue(&mut root, &second);
            assert_eq!(root, UtilEst::default(), "not below 0");
        }
    }

    #[test]
    fn a_big_task_is_still_big_when_it_wakes() {
        for rules in [rules(4, 19), rules(5, 4), rules(5, 13), rules(6, 12)] {
            let mut big = task(1023, 0, 0);
            (0..20).for_each(|_| {
                rules.util_est_update(&mut big, 1024, ON);
                big.util_est.util_changed(&rules);
            });
            big.util_avg = 520;
            assert!((1010..=1023).contains(&rules.task_util_est(&big)), "{:?}", big.util_est);
        }
    }

    fn queue(enqueued: u32) -> SchedAvg {
        let mut queue = task_avg(400, 700);
        queue.util_est.enqueued = enqueued;
        queue
    }

    fn cpu(queue: &SchedAvg, task: Option<TaskUtil>, boost: bool) -> CpuUtil<'_> {
        CpuUtil { queue, task, capacity: 1024, boost, util_est_enabled: true }
    }

    fn task_avg(util_avg: u64, runnable_avg: u64) -> SchedAvg {
        SchedAvg { util_avg, runnable_avg, util_est: both(0, 300), ..SchedAvg::default() }
    }

    #[test]
    fn a_cpu_is_used_as_much_as_its_average_or_estimate_says() {
        let rules = rules(6, 12);
        assert_eq!(rules.cpu_util(cpu(&queue(350), None, false)), 400);
        let woken_there = queue(800);
        let woken = cpu(&woken_there, None, false);
        assert_eq!(rules.cpu_util(woken), 800);
        assert_eq!(rules.cpu_util(CpuUtil { util_est_enabled: false, ..woken }), 400);
        assert_eq!(rules.cpu_util(CpuUtil { capacity: 256, ..woken }), 256);
    }

    #[test]
    fn a_task_imagined_here_or_away() {
        let rules = rules(6, 12);
        let avg = task_avg(150, 200);
        let with = |is_here, is_queued, comes_here| {
            rules.cpu_util(cpu(&queue(350), Some(TaskUtil { avg, is_here, is_queued, comes_here }), false))
        };
        assert_eq!(with(true, false, false), 350, "taken away, still expected");
        assert_eq!(with(true, true, false), 250);
        assert_eq!(with(false, false, true), 650, "350 and its estimate");
        assert_eq!(with(true, false, true), 650, "its average is in the queue's, its estimate is not");
        assert_eq!(with(false, false, false), 400);
    }

    #[test]
    fn waiting_may_count_as_use() {
        assert_eq!(rules(6, 4).cpu_util(cpu(&queue(350), None, true)), 400);
        assert_eq!(rules(6, 5).cpu_util(cpu(&queue(350), None, true)), 700);
        assert_eq!(rules(7, 2).cpu_util(cpu(&queue(350), None, true)), 700);
        let avg = task_avg(150, 450);
        let (queue, away) = (queue(350), TaskUtil { avg, is_here: true, is_queued: true, comes_here: false });
        let away = cpu(&queue, Some(away), true);
        assert_eq!(rules(6, 5).cpu_util(away), 550, "the estimate is raised too: 700, less 300");
        assert_eq!(rules(7, 1).cpu_util(away), 550, "700 less the task's utilization");
        assert_eq!(rules(7, 2).cpu_util(away), 250, "250 by either");
    }
}
