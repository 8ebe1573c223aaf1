//! One set of averages, and how time adds to it and takes from it.
//!
//! Must not know: which queue it belongs to, groups, clocks.

use super::rules::{Invariance, PeltRules, RunnableKind};
use super::series::{CAPACITY_SHIFT, PELT_MIN_DIVIDER, PERIOD, PeltSpan, cap_scale};
use super::util_est::UtilEst;

/// Averages of an entity, a queue or a scheduling class on a CPU (`struct sched_avg`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAvg {
    /// Up to when the sums hold, ns of the PELT clock. 0: not attached to a queue.
    pub last_update_time: u64,
    /// Time wanted, decayed; for a queue times weight. Units of 1024 ns.
    pub load_sum: u64,
    /// `runnable_load_sum`: as `load_sum`, runnable entities only; or from task counts on `runnable_sum`: time times
    /// runnable tasks times 1024.
    pub runnable_sum: u64,
    /// Time run, decayed, times 1024 (or the CPU's capacity, when contributions are scaled).
    pub util_sum: u32,
    /// How far the sums reach into the current period, 0…1023 units of 1024 ns.
    pub period_contrib: u32,
    /// Weight times the share of time wanted.
    pub load_avg: u64,
    /// `runnable_load_avg`, a weight; or from task counts on `runnable_avg`: 1024 times the mean of runnable tasks.
    pub runnable_avg: u64,
    /// Share of time run, 0…1024.
    pub util_avg: u64,
    /// What is remembered of a task's utilization, or summed up for a root queue.
    pub util_est: UtilEst,
}

/// How much a CPU computes now, 0…1024 each. Contributions are scaled by it; a PELT clock is instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuScale {
    /// Frequency against its maximum (`arch_scale_freq_capacity()`).
    pub frequency: u64,
    /// Capacity at maximal frequency against the biggest CPU's (`arch_scale_cpu_capacity()`).
    pub capacity: u64,
}

impl CpuScale {
    /// A biggest CPU at its highest frequency.
    pub const FULL: CpuScale = CpuScale { frequency: 1024, capacity: 1024 };
}

/// What multiplies an entity's sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntityWeight {
    /// Scaled down (`se_weight()`).
    pub weight: u64,
    /// Scaled down (`se_runnable()`); used only while runnability is load-weighted. A task's is its weight.
    pub runnable_weight: u64,
}

impl EntityWeight {
    /// A task's, both the same.
    pub const fn of_task(weight: u64) -> EntityWeight {
        EntityWeight { weight, runnable_weight: weight }
    }
}

/// An entity as its averages see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityState {
    /// Its weights.
    pub weight: EntityWeight,
    /// Counted on its queue (`se->on_rq`), also while its dequeue is delayed.
    pub on_rq: bool,
    /// Runnable tasks that it stands for (`se_runnable()` from task counts on): a task's `on_rq`; a group's
    /// `se->runnable_weight`, which is the number noted by the last `se_update_runnable()`; 0 while its dequeue is
    /// delayed.
    pub runnable_tasks: u64,
    /// `cfs_rq->curr == se`.
    pub running: bool,
}

/// A queue as its averages see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Σ weight of its entities, scaled down.
    pub weight: u64,
    /// Σ `runnable_weight` of its entities, scaled down; used only while runnability is load-weighted.
    pub runnable_weight: u64,
    /// Runnable tasks on it and below it: `h_nr_running`, from delayed dequeue on without delayed ones.
    pub runnable_tasks: u64,
    /// `cfs_rq->curr != NULL`.
    pub running: bool,
}

/// What accrues while time passes.
#[derive(Clone, Copy)]
struct Accrual {
    load: u64,
    runnable: u64,
    running: bool,
}

impl SchedAvg {
    /// What divides the sums at this point of the period (`get_pelt_divider()`).
    pub const fn divider(&self) -> u32 {
        PELT_MIN_DIVIDER + self.period_contrib
    }

    /// Lets a span of time pass, in which the sums decay and grow, and says whether a period ended.
    ///
    /// Kernel: `accumulate_sum()`, kernel/sched/pelt.c. Variants: `LoadWeighted` to v5.6, `TaskCount` from v5.7
    /// (9f68395333ad).
    #[inline(always)]
    fn pass(&mut self, span: &PeltSpan, runnable: RunnableKind, scale: CpuScale, what: Accrual) -> bool {
        self.last_update_time = self.last_update_time.wrapping_add(span.units << 10);
        self.period_contrib = span.rest;
        if span.periods > 0 {
            self.load_sum = span.decay(self.load_sum);
            self.runnable_sum = span.decay(self.runnable_sum);
            self.util_sum = span.decay(self.util_sum.into()) as u32;
        }
        if what.load != 0 {
            self.accrue(runnable, span.contrib, scale, what);
        }
        span.periods > 0
    }

    /// Adds a contribution to the sums.
    #[inline(always)]
    fn accrue(&mut self, runnable: RunnableKind, contrib: u32, scale: CpuScale, what: Accrual) {
        let contrib = cap_scale(contrib.into(), scale.frequency) as u32;
        let shift = match runnable {
            RunnableKind::LoadWeighted => 0,
            RunnableKind::TaskCount => CAPACITY_SHIFT,
        };
        self.load_sum = self.load_sum.wrapping_add(what.load.wrapping_mul(contrib.into()));
        let runnable = what.runnable.wrapping_mul(contrib.into()) << shift;
        self.runnable_sum = self.runnable_sum.wrapping_add(runnable);
        if what.running {
            self.util_sum = self.util_sum.wrapping_add(contrib.wrapping_mul(scale.capacity as u32));
        }
    }

    /// Brings the sums up to `now` and says whether a period ended, so that averages are due.
    ///
    /// Whoever wants nothing is neither runnable nor running. Less than 1024 ns are left for the next time; a clock that
    /// went back is followed without any accrual.
    ///
    /// Kernel: `___update_load_sum()`, kernel/sched/pelt.c.
    #[inline]
    fn update_load_sum(&mut self, rules: &PeltRules, now: u64, scale: CpuScale, what: Accrual) -> bool {
        let scale = rules.contribution_scale(scale);
        match self.units_within_period(now) {
            Some(units) => {
                self.grow(rules.runnable, units, scale, what);
                false
            }
            None => self.update_load_sum_across(rules.runnable, now, scale, what),
        }
    }

    /// How many units of 1024 ns have passed up to `now`, if no period has ended: averages stay then.
    #[inline(always)]
    pub fn units_within_period(&self, now: u64) -> Option<u32> {
        // A clock that went back gives a number of units beyond any period.
        let units = now.wrapping_sub(self.last_update_time) >> 10;
        (units + u64::from(self.period_contrib) < u64::from(PERIOD)).then_some(units as u32)
    }

    /// Lets so many units pass, after which the period still lasts.
    #[inline(always)]
    fn grow(&mut self, runnable: RunnableKind, units: u32, scale: CpuScale, what: Accrual) {
        self.last_update_time = self.last_update_time.wrapping_add(u64::from(units) << 10);
        self.period_contrib += units;
        if what.load != 0 {
            self.accrue(runnable, units, scale, what);
        }
    }

    /// The same wherever the time since the last update lies in its period.
    #[inline(never)]
    fn update_load_sum_across(
        &mut self,
        runnable: RunnableKind,
        now: u64,
        scale: CpuScale,
        what: Accrual,
    ) -> bool {
        self.span_until(now).is_some_and(|span| self.pass(&span, runnable, scale, what))
    }

    /// What the time since the last update does, if it is not less than a unit.
    #[inline(always)]
    fn span_until(&mut self, now: u64) -> Option<PeltSpan> {
        self.units_until(now).map(|units| PeltSpan::new(self.period_contrib, units))
    }

    /// The units of 1024 ns since the last update, if there is one; a clock that went back is followed.
    #[inline(always)]
    fn units_until(&mut self, now: u64) -> Option<u64> {
        let delta = now.wrapping_sub(self.last_update_time);
        if (delta as i64) < 0 {
            self.last_update_time = now;
        }
        (delta as i64 >= 1 << 10).then_some(delta >> 10)
    }

    /// Whether the same span of time does the same to the sums of both.
    #[inline(always)]
    fn is_as_old_as(&self, other: &SchedAvg) -> bool {
        self.last_update_time == other.last_update_time && self.period_contrib == other.period_contrib
    }

    /// Brings sums up to `now` that are 0 and stay it, as those of most CPUs' other classes, and their averages. Says whether a
    /// period ended.
    #[inline(always)]
    fn pass_unused(&mut self, now: u64) -> bool {
        let Some(units) = self.units_until(now) else { return false };
        let position = u64::from(self.period_contrib) + units;
        self.last_update_time = self.last_update_time.wrapping_add(units << 10);
        self.period_contrib = (position % u64::from(PERIOD)) as u32;
        let due = position >= u64::from(PERIOD);
        if due {
            (self.load_avg, self.runnable_avg, self.util_avg) = (0, 0, 0);
        }
        due
    }

    /// Recomputes the averages from the sums.
    ///
    /// Kernel: `___update_load_avg()`, kernel/sched/pelt.c.
    #[inline(always)]
    fn update_load_avg(&mut self, rules: &PeltRules, weight: EntityWeight) {
        let divider = u64::from(PELT_MIN_DIVIDER) + u64::from(self.period_contrib);
        self.load_avg = weight.weight.wrapping_mul(self.load_sum) / divider;
        self.runnable_avg = match rules.runnable {
            RunnableKind::LoadWeighted => weight.runnable_weight.wrapping_mul(self.runnable_sum) / divider,
            RunnableKind::TaskCount => self.runnable_sum / divider,
        };
        self.util_avg = u64::from(self.util_sum) / divider;
    }
}

impl SchedAvg {
    /// Recomputes an entity's runnable average; `runnable_weight`: scaled down. Load-weighted runnability only.
    ///
    /// Kernel: `reweight_entity()`, kernel/sched/fair.c, to v5.6.
    #[inline]
    pub fn update_runnable_avg(&mut self, runnable_weight: u64) {
        self.runnable_avg = runnable_weight.wrapping_mul(self.runnable_sum) / u64::from(self.divider());
    }
}

/// Whether nothing is left in the sums (`load_avg_is_decayed()`).
pub const fn load_avg_is_decayed(avg: &SchedAvg) -> bool {
    avg.load_sum == 0 && avg.util_sum == 0 && avg.runnable_sum == 0
}

impl PeltRules {
    /// What contributions are scaled by on a CPU that computes as much as `scale` says.
    ///
    /// Kernel: `accumulate_sum()`, kernel/sched/pelt.c. Variants: `Contribution` to v5.0, `PeltClock` from v5.1
    /// (23127296889f).
    #[inline(always)]
    pub const fn contribution_scale(&self, scale: CpuScale) -> CpuScale {
        match self.invariance {
            Invariance::Contribution => scale,
            Invariance::PeltClock => CpuScale::FULL,
        }
    }

    /// Ages the averages of an entity that is off its queue. True if averages were recomputed.
    ///
    /// Kernel: `__update_load_avg_blocked_se()`, kernel/sched/pelt.c. Units: `now` in ns of its queue's clock.
    pub fn update_blocked_se(&self, now: u64, avg: &mut SchedAvg, weight: EntityWeight) -> bool {
        let nothing = Accrual { load: 0, runnable: 0, running: false };
        let due = avg.update_load_sum(self, now, CpuScale::FULL, nothing);
        if due {
            avg.update_load_avg(self, weight);
        }
        due
    }

    /// Ages the averages of an entity on its queue (or just leaving it). True if averages were recomputed; then, with
    /// `util_est_enabled` (the feature UTIL_EST), an estimate is due.
    ///
    /// Kernel: `__update_load_avg_se()`, kernel/sched/pelt.c. Units: `now` in ns of its queue's clock.
    #[inline]
    pub fn update_se(
        &self,
        now: u64,
        scale: CpuScale,
        avg: &mut SchedAvg,
        se: EntityState,
        util_est_enabled: bool,
    ) -> bool {
        let due = avg.update_load_sum(self, now, scale, self.runnable.accrual_of_se(se));
        if due {
            avg.update_load_avg(self, se.weight);
            if util_est_enabled {
                avg.util_est.util_changed(self);
            }
        }
        due
    }

    /// Ages a queue's averages. True if averages were recomputed.
    ///
    /// Kernel: `__update_load_avg_cfs_rq()`, kernel/sched/pelt.c. Units: `now` in ns of the queue's clock.
    #[inline]
    pub fn update_cfs_rq(&self, now: u64, scale: CpuScale, avg: &mut SchedAvg, queue: QueueState) -> bool {
        self.update_whole(now, scale, avg, self.runnable.accrual_of_queue(queue))
    }

    /// Ages the averages of a CPU's real-time or deadline class; `running`: its task is the one that runs.
    ///
    /// Kernel: `update_rt_rq_load_avg()`, `update_dl_rq_load_avg()`, kernel/sched/pelt.c (v4.19 on).
    #[inline]
    pub fn update_class(&self, now: u64, scale: CpuScale, avg: &mut SchedAvg, running: bool) -> bool {
        if !running && load_avg_is_decayed(avg) {
            return avg.pass_unused(now);
        }
        let one = u64::from(running);
        self.update_whole(now, scale, avg, Accrual { load: one, runnable: one, running })
    }

    /// Ages the averages of a CPU's interrupt and stolen time, of which `running` ns more are known, taken as just past.
    ///
    /// `clock` is the runqueue's, which such time is not taken from; so with a PELT clock the time itself is scaled.
    ///
    /// Kernel: `update_irq_load_avg()`, kernel/sched/pelt.c (v4.19 on).
    pub fn update_irq(&self, clock: u64, scale: CpuScale, avg: &mut SchedAvg, running: u64) -> bool {
        let running = match self.invariance {
            Invariance::Contribution => running,
            Invariance::PeltClock => cap_scale(cap_scale(running, scale.frequency), scale.capacity),
        };
        let before = Accrual { load: 0, runnable: 0, running: false };
        let within = Accrual { load: 1, runnable: 1, running: true };
        let mut due = avg.update_load_sum(self, clock.wrapping_sub(running), scale, before);
        due |= avg.update_load_sum(self, clock, scale, within);
        if due {
            avg.update_load_avg(self, EntityWeight::of_task(1));
        }
        due
    }

    /// [`PeltRules::update_se`] and [`PeltRules::update_cfs_rq`] of the queue that it stands on, which are mostly of one age.
    #[inline(always)]
    pub fn update_se_and_cfs_rq(
        &self,
        now: u64,
        scale: CpuScale,
        (avg, se): (&mut SchedAvg, EntityState),
        (queue_avg, queue): (&mut SchedAvg, QueueState),
        util_est_enabled: bool,
    ) -> bool {
        if !avg.is_as_old_as(queue_avg) {
            self.update_se(now, scale, avg, se, util_est_enabled);
            return self.update_cfs_rq(now, scale, queue_avg, queue);
        }
        let (span, scale) = (avg.span_until(now), self.contribution_scale(scale));
        queue_avg.last_update_time = avg.last_update_time;
        let Some(span) = span else { return false };
        let due = avg.pass(&span, self.runnable, scale, self.runnable.accrual_of_se(se));
        queue_avg.pass(&span, self.runnable, scale, self.runnable.accrual_of_queue(queue));
        if due {
            avg.update_load_avg(self, se.weight);
            if util_est_enabled {
                avg.util_est.util_changed(self);
            }
            queue_avg.update_load_avg(self, EntityWeight::of_task(1));
        }
        due
    }

    #[inline]
    fn update_whole(&self, now: u64, scale: CpuScale, avg: &mut SchedAvg, what: Accrual) -> bool {
        let due = avg.update_load_sum(self, now, scale, what);
        if due {
            avg.update_load_avg(self, EntityWeight::of_task(1));
        }
        due
    }
}

impl RunnableKind {
    /// [`PeltRules::update_se`] where no period ends: `units` are what [`SchedAvg::units_within_period`] gives, and `scale` what
    /// [`PeltRules::contribution_scale`] does.
    #[inline(always)]
    pub fn grow_se(self, units: u32, scale: CpuScale, avg: &mut SchedAvg, se: EntityState) {
        avg.grow(self, units, scale, self.accrual_of_se(se));
    }

    /// The same of [`PeltRules::update_cfs_rq`].
    #[inline(always)]
    pub fn grow_cfs_rq(self, units: u32, scale: CpuScale, avg: &mut SchedAvg, queue: QueueState) {
        avg.grow(self, units, scale, self.accrual_of_queue(queue));
    }

    #[inline(always)]
    fn accrual_of_se(self, se: EntityState) -> Accrual {
        let load = u64::from(se.on_rq);
        let runnable = match self {
            RunnableKind::LoadWeighted => load,
            RunnableKind::TaskCount => se.runnable_tasks,
        };
        Accrual { load, runnable, running: se.running }
    }

    #[inline(always)]
    fn accrual_of_queue(self, queue: QueueState) -> Accrual {
        let runnable = match self {
            RunnableKind::LoadWeighted => queue.runnable_weight,
            RunnableKind::TaskCount => queue.runnable_tasks,
        };
        Accrual { load: queue.weight, runnable, running: queue.running }
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::LOAD_AVG_MAX;
    use super::*;

    const PERIOD_NS: u64 = 1 << 20;
    const ALWAYS: EntityState =
        EntityState { weight: EntityWeight::of_task(1024), on_rq: true, runnable_tasks: 1, running: true };

    fn rules(major: u32, minor: u32) -> PeltRules {
        crate::pelt::rules_of(&format!("v{major}.{minor}"))
    }

    /// An entity that never ran, aged by `steps` steps of `step` ns.
    fn aged(rules: &PeltRules, scale: CpuScale, se: EntityState, step: u64, steps: u64) -> SchedAvg {
        let mut avg = SchedAvg::default();
        for n in 1..=steps {
            rules.update_se(n * step, scale, &mut avg, se, true);
        }
        avg
    }

    /// Load, runnability and utilization, at most `off` below or above.
    fn near(avg: &SchedAvg, expected: [u64; 3], off: u64) {
        let signals = [avg.load_avg, avg.runnable_avg, avg.util_avg];
        let fits = signals.iter().zip(expected).all(|(is, expected)| is.abs_diff(expected) <= off);
        assert!(fits, "{signals:?}, not {expected:?}");
    }

    #[test]
    fn half_of_it_comes_within_32_periods() {
        let rules = rules(6, 6);
        for (periods, expected) in [(32, 512), (64, 768), (96, 896), (16, 300), (500, 1024)] {
            let stepwise = aged(&rules, CpuScale::FULL, ALWAYS, PERIOD_NS, periods);
            near(&stepwise, [expected; 3], 1);
            let at_once = aged(&rules, CpuScale::FULL, ALWAYS, periods * PERIOD_NS, 1);
            near(&at_once, [expected; 3], 1);
        }
    }

    #[test]
    fn it_stays_at_the_maximum_at_any_rhythm() {
        let rules = rules(6, 6);
        for step in [1_000, 100_000, 1_000_000, 4_000_000, 10_000_000] {
            let mut avg = aged(&rules, CpuScale::FULL, ALWAYS, step, 500_000_000 / step);
            for n in 1..500 {
                rules.update_se(500_000_000 + n * step, CpuScale::FULL, &mut avg, ALWAYS, true);
                near(&avg, [1024; 3], 2);
                assert!(avg.load_sum <= LOAD_AVG_MAX.into());
                // Its finer grain is rounded down less than the constants of the series were.
                assert!(avg.util_sum <= (LOAD_AVG_MAX + 32) << CAPACITY_SHIFT);
                assert!(avg.load_sum + 48 >= avg.divider().into(), "{} at {step} ns", avg.load_sum);
            }
        }
    }

    #[test]
    fn within_a_period_sums_grow_and_averages_stay() {
        let rules = rules(5, 4);
        let mut avg = aged(&rules, CpuScale::FULL, ALWAYS, PERIOD_NS, 10);
        let before = avg;
        assert!(!rules.update_se(11 * PERIOD_NS - 1, CpuScale::FULL, &mut avg, ALWAYS, true));
        assert_eq!(avg.load_sum, before.load_sum + 1023);
        assert_eq!((avg.load_avg, avg.period_contrib), (before.load_avg, 1023));
        assert_eq!(avg.last_update_time, 11 * PERIOD_NS - 1024, "less than a unit is left for later");
        assert!(rules.update_se(11 * PERIOD_NS, CpuScale::FULL, &mut avg, ALWAYS, true));
        assert!(avg.load_avg > before.load_avg);
    }

    #[test]
    fn what_waits_is_runnable_but_not_used() {
        let waiting = EntityState { running: false, weight: EntityWeight::of_task(335), ..ALWAYS };
        near(&aged(&rules(5, 7), CpuScale::FULL, waiting, PERIOD_NS, 400), [335, 1024, 0], 1);
        near(&aged(&rules(5, 6), CpuScale::FULL, waiting, PERIOD_NS, 400), [335, 335, 0], 1);
    }

    #[test]
    fn a_group_counts_the_tasks_it_stands_for() {
        let group = EntityState { runnable_tasks: 3, ..ALWAYS };
        near(&aged(&rules(6, 1), CpuScale::FULL, group, PERIOD_NS, 400), [1024, 3072, 1024], 2);
        let delayed = EntityState { runnable_tasks: 0, running: false, ..ALWAYS };
        near(&aged(&rules(6, 12), CpuScale::FULL, delayed, PERIOD_NS, 400), [1024, 0, 0], 1);
    }

    #[test]
    fn contributions_are_scaled_or_the_clock_is() {
        let slow = CpuScale { frequency: 512, capacity: 256 };
        // Capacity counts for utilization only; from the PELT clock on it is the caller's clock that is slow.
        near(&aged(&rules(5, 0), slow, ALWAYS, PERIOD_NS, 400), [512, 512, 128], 1);
        near(&aged(&rules(5, 1), slow, ALWAYS, PERIOD_NS, 400), [1024, 1024, 1024], 1);
    }

    #[test]
    fn queues_add_up_weights_and_tasks() {
        let queue = QueueState { weight: 2048, runnable_weight: 1024, runnable_tasks: 2, running: true };
        for (rules, runnable_avg) in [(rules(5, 6), 1024), (rules(5, 7), 2048)] {
            let mut avg = SchedAvg::default();
            (1..=400).for_each(|n| {
                rules.update_cfs_rq(n * PERIOD_NS, CpuScale::FULL, &mut avg, queue);
            });
            near(&avg, [2048, runnable_avg, 1024], 1);
        }
    }

    /// Times of every distance, and one that lies back.
    const TIMES: [u64; 8] =
        [1_000, 3_000, 900_000, 1_100_000, 1_048_000_000, 40_000_000, 9_000_000_000, 9_000_500_000];

    #[test]
    fn an_entity_and_its_queue_age_together_as_they_do_one_by_one() {
        let queue = QueueState { weight: 3072, runnable_weight: 2048, runnable_tasks: 3, running: true };
        let scale = CpuScale { frequency: 800, capacity: 700 };
        for (rules, apart) in
            [rules(4, 19), rules(5, 6), rules(6, 6)].iter().flat_map(|it| [(it, 0), (it, 5_000)])
        {
            let [mut se, mut cfs_rq] = [0, apart].map(|ahead| SchedAvg {
                last_update_time: ahead,
                period_contrib: 300,
                ..SchedAvg::default()
            });
            for now in TIMES {
                let (mut se_alone, mut cfs_rq_alone) = (se, cfs_rq);
                rules.update_se(now, scale, &mut se_alone, ALWAYS, true);
                let due = rules.update_cfs_rq(now, scale, &mut cfs_rq_alone, queue);
                let both = ((&mut se, ALWAYS), (&mut cfs_rq, queue));
                assert_eq!(rules.update_se_and_cfs_rq(now, scale, both.0, both.1, true), due, "{now}");
                assert_eq!((se, cfs_rq), (se_alone, cfs_rq_alone), "{now}");
            }
            assert!(se.load_avg > 0 && cfs_rq.load_avg > se.load_avg);
        }
    }

    #[test]
    fn what_is_unused_gets_older_like_what_is_used() {
        let (mut unused, mut used) = (SchedAvg::default(), SchedAvg::default());
        let rules = rules(6, 6);
        for now in TIMES {
            let due = rules.update_class(now, CpuScale::FULL, &mut used, true);
            assert_eq!(rules.update_class(now, CpuScale::FULL, &mut unused, false), due, "{now}");
            let SchedAvg { last_update_time, period_contrib, .. } = used;
            assert_eq!(unused, SchedAvg { last_update_time, period_contrib, ..SchedAvg::default() }, "{now}");
        }
    }

    #[test]
    fn whoever_wants_nothing_does_not_run() {
        let rules = rules(6, 6);
        let gone = EntityState { on_rq: false, runnable_tasks: 1, ..ALWAYS };
        assert_eq!(aged(&rules, CpuScale::FULL, gone, PERIOD_NS, 10).util_sum, 0);
        let mut avg = SchedAvg::default();
        let empty = QueueState { weight: 0, runnable_tasks: 1, running: true, ..QueueState::default() };
        rules.update_cfs_rq(10 * PERIOD_NS, CpuScale::FULL, &mut avg, empty);
        assert_eq!((avg.util_sum, avg.runnable_sum), (0, 0));
    }

    #[test]
    fn a_clock_that_goes_back_is_followed() {
        let rules = rules(6, 6);
        let mut avg = aged(&rules, CpuScale::FULL, ALWAYS, PERIOD_NS, 10);
        let before = avg;
        assert!(!rules.update_se(5 * PERIOD_NS, CpuScale::FULL, &mut avg, ALWAYS, true));
        assert_eq!(avg, SchedAvg { last_update_time: 5 * PERIOD_NS, ..before });
        assert!(!rules.update_se(5 * PERIOD_NS + 1023, CpuScale::FULL, &mut avg, ALWAYS, true));
        assert_eq!(avg.last_update_time, 5 * PERIOD_NS);
    }

    #[test]
    fn interrupts_are_taken_as_just_past() {
        let mut avg = SchedAvg::default();
        let rules = rules(6, 6);
        // Half of each millisecond goes to interrupts.
        for n in 1..=800 {
            rules.update_irq(n * PERIOD_NS, CpuScale::FULL, &mut avg, PERIOD_NS / 2);
        }
        assert!((510..=525).contains(&avg.util_avg), "{}", avg.util_avg);
        let mut halved = SchedAvg::default();
        let slow = CpuScale { frequency: 512, capacity: 1024 };
        for n in 1..=800 {
            rules.update_irq(n * PERIOD_NS, slow, &mut halved, PERIOD_NS / 2);
        }
        assert!((255..=270).contains(&halved.util_avg), "{}", halved.util_avg);
    }

    #[test]
    fn classes_are_either_running_or_not() {
        let mut avg = SchedAvg::default();
        let rules = rules(6, 6);
        rules.update_class(400 * PERIOD_NS, CpuScale::FULL, &mut avg, true);
        assert!((1023..=1024).contains(&avg.util_avg));
        rules.update_class(432 * PERIOD_NS, CpuScale::FULL, &mut avg, false);
        assert!((511..=512).contains(&avg.util_avg));
    }
}
