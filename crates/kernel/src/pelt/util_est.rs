//! Utilization as it was when a task last slept, so that a big task is known as big when it wakes.
//!
//! Must not know: frequencies, energy.

use super::average::SchedAvg;
use super::rules::{
    PeltRules, RunnableBoost, UtilEstCapacity, UtilEstFlag, UtilEstForm, UtilEstMargin, UtilEstRise,
    UtilEstRules, UtilEstWaiting,
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

impl UtilEstRules {
    /// `UTIL_AVG_UNCHANGED`.
    const fn unchanged(&self) -> u32 {
        match self.flag {
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
    fn marked(&mut self, rules: &UtilEstRules) -> &mut u32 {
        match rules.form {
            UtilEstForm::EnqueuedAndEwma => &mut self.enqueued,
            UtilEstForm::EwmaOnly => &mut self.ewma,
        }
    }

    /// The task's utilization was computed anew: at its next dequeue there is a sample.
    ///
    /// Kernel: `cfs_se_util_change()`, kernel/sched/pelt.h (d519329f72a6).
    pub(super) fn util_changed(&mut self, rules: &UtilEstRules) {
        *self.marked(rules) &= !rules.unchanged();
    }

    /// What a sleeping or new task is expected to use, 0…1024 (and the mark, where it is bit 0).
    ///
    /// Kernel: `_task_util_est()`, kernel/sched/fair.c.
    pub fn estimate(&self, rules: &UtilEstRules) -> u64 {
        let mark = rules.unchanged();
        let estimate = match (rules.form, rules.flag) {
            (UtilEstForm::EwmaOnly, _) => self.ewma & !mark,
            (_, UtilEstFlag::HighBit) => self.ewma.max(self.enqueued & !mark),
            (_, UtilEstFlag::LowBit) => self.ewma.max(self.enqueued) | mark,
            (_, UtilEstFlag::LowBitInQueue) => self.ewma.max(self.enqueued),
        };
        estimate.into()
    }

    /// What a task counts in the sum of its root queue.
    fn in_queue(&self, rules: &UtilEstRules) -> u32 {
        let mark = if rules.flag == UtilEstFlag::LowBitInQueue { rules.unchanged() } else { 0 };
        self.estimate(rules) as u32 | mark
    }
}

impl PeltRules {
    /// What a task is expected to use: the more of its average and its estimate (`task_util_est()`).
    pub fn task_util_est(&self, task: &SchedAvg) -> u64 {
        task.util_avg.max(task.util_est.estimate(&self.util_est))
    }

    /// A task is queued: the root queue expects its estimate.
    ///
    /// Kernel: `util_est_enqueue()`, kernel/sched/fair.c; first step of `enqueue_task_fair()`. Only with UTIL_EST.
    pub fn util_est_enqueue(&self, root: &mut UtilEst, task: &UtilEst) {
        root.enqueued = root.enqueued.wrapping_add(task.in_queue(&self.util_est));
    }

    /// A task is dequeued: the root queue no longer expects its estimate.
    ///
    /// Kernel: `util_est_dequeue()`, kernel/sched/fair.c; see `UtilEstDequeue` for when. Only with UTIL_EST.
    pub fn util_est_dequeue(&self, root: &mut UtilEst, task: &UtilEst) {
        root.enqueued = root.enqueued.saturating_sub(task.in_queue(&self.util_est));
    }

    /// A task goes to sleep: its estimate takes a new sample, if its average has changed since the last.
    ///
    /// Kernel: `util_est_update()`, kernel/sched/fair.c; before 8c1f560c1ea3 the second half of `util_est_dequeue()`.
    /// `capacity`: the CPU's, 0…1024.
    pub fn util_est_update(&self, task: &mut SchedAvg, capacity: u64, features: UtilEstFeatures) {
        if !features.util_est {
            return;
        }
        match self.util_est.form {
            UtilEstForm::EnqueuedAndEwma => self.update_both(task, capacity, features),
            UtilEstForm::EwmaOnly => self.update_ewma(task, capacity),
        }
    }

    fn update_both(&self, task: &mut SchedAvg, capacity: u64, features: UtilEstFeatures) {
        let rules = &self.util_est;
        let mark = rules.unchanged();
        let UtilEst { enqueued: last, mut ewma } = task.util_est;
        if last & mark != 0 {
            return;
        }
        let util = task.util_avg as u32;
        // A mark in bit 0 is part of the sample from the start.
        let enqueued = if rules.flag == UtilEstFlag::HighBit { util } else { util | mark };
        let rises = features.fastup || rules.rise == UtilEstRise::AtOnce;
        let difference = i64::from(enqueued) - i64::from(ewma);
        let moved = i64::from(last) - i64::from(enqueued);
        if rises && ewma < enqueued {
            ewma = enqueued;
        } else if within_margin(difference) {
            if rules.margin == UtilEstMargin::Discard || within_margin(moved) {
                return;
            }
        } else if rules.capacity == UtilEstCapacity::Within && task.util_avg > capacity {
            return;
        } else if !self.waited(task, enqueued) {
            ewma = (ewma << WEIGHT_SHIFT).wrapping_add(difference as u32) >> WEIGHT_SHIFT;
        }
        task.util_est = UtilEst { enqueued: enqueued | mark, ewma };
    }

    fn update_ewma(&self, task: &mut SchedAvg, capacity: u64) {
        let rules = &self.util_est;
        let mark = rules.unchanged();
        let mut ewma = task.util_est.ewma;
        if ewma & mark != 0 {
            return;
        }
        let dequeued = task.util_avg as u32;
        if ewma <= dequeued {
            ewma = dequeued;
        } else if ewma - dequeued >= MARGIN {
            if rules.capacity == UtilEstCapacity::Within && u64::from(dequeued) > capacity {
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
        self.util_est.waiting == UtilEstWaiting::Skipped
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
pub struct CpuUtil {
    /// Averages of its root queue.
    pub queue: SchedAvg,
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
    /// Kernel: `cpu_util()`, kernel/sched/fair.c; without a task `cpu_util_cfs()`, with one that is taken away
    /// `cpu_util_without()`, with one imagined elsewhere or here `cpu_util_next()` of earlier releases.
    pub fn cpu_util(&self, cpu: CpuUtil) -> u64 {
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

    fn queue_estimate(&self, cpu: &CpuUtil, floor: u64) -> u64 {
        let estimate = u64::from(cpu.queue.util_est.enqueued).max(floor);
        let Some(task) = cpu.task else { return estimate };
        let of_task = u64::from(task.avg.util_est.in_queue(&self.util_est));
        if task.comes_here {
            estimate.wrapping_add(of_task)
        } else if task.is_queued {
            estimate.saturating_sub(of_task)
        } else {
            estimate
        }
    }
}
