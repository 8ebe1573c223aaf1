//! A queue's averages as its entities come, go and change their weight.
//!
//! Must not know: the entities' virtual time, which queue it is, the group above it.

use super::average::{CpuScale, EntityState, EntityWeight, QueueState, SchedAvg};
use super::rules::{AttachLoadSum, PeltRules, RunnableKind, SumSync};
use super::series::{CAPACITY_SHIFT, PELT_MIN_DIVIDER};

/// The load tracking part of a queue (fields of `struct cfs_rq`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CfsRqLoad {
    /// Averages over all attached entities, blocked ones included.
    pub avg: SchedAvg,
    /// Σ `runnable_weight` of queued entities, scaled up (while runnability is load-weighted).
    pub runnable_weight: u64,
    /// What is to be taken off at the next update.
    pub removed: RemovedLoad,
    /// What the group counts for this queue.
    pub tg_load_avg_contrib: u64,
    /// What the group counts of its runnable tasks, 1024 for each that always is.
    pub tg_runnable_avg_contrib: u64,
    /// When it was last updated, ns.
    pub last_update_tg_load_avg: u64,
    /// Something was attached or detached that the entities above have not seen (`propagate`).
    pub propagate: bool,
    /// The change of unweighted load sums that goes with it.
    pub prop_runnable_sum: i64,
}

/// What an entity counts as runnable while runnability is load-weighted: a task its weight, a group its runnable weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunnableLoad {
    /// Scaled down (`se_runnable()`).
    pub weight: u64,
    /// `se->runnable_weight`.
    pub scaled_up: u64,
}

/// Averages of tasks that slept here and woke elsewhere, not yet taken off (`cfs_rq->removed`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedLoad {
    /// How many tasks.
    pub nr: u32,
    /// Σ `load_avg`.
    pub load_avg: u64,
    /// Σ `util_avg`.
    pub util_avg: u64,
    /// Σ `runnable_avg` (task counts).
    pub runnable_avg: u64,
    /// Σ `load_sum` (load-weighted).
    pub runnable_sum: u64,
}

/// By how much an average and its sum change, and what divides the sum now.
#[derive(Clone, Copy)]
pub(super) struct AverageChange {
    pub avg: i64,
    pub sum: i64,
    pub divider: u32,
}

impl AverageChange {
    fn minus(avg: u64, sum: u64, divider: u32) -> AverageChange {
        AverageChange { avg: (avg as i64).wrapping_neg(), sum: (sum as i64).wrapping_neg(), divider }
    }
}

/// Adds, not below 0 when `delta` is negative (`add_positive()`, `sub_positive()`).
pub(super) const fn add_positive(value: u64, delta: i64) -> u64 {
    if delta < 0 { value.saturating_sub(delta.unsigned_abs()) } else { value.wrapping_add(delta as u64) }
}

const fn add_positive_narrow(value: u32, delta: i64) -> u32 {
    if delta < 0 {
        value.saturating_sub(delta.unsigned_abs() as u32)
    } else {
        value.wrapping_add(delta as u32)
    }
}

impl SumSync {
    /// Changes `avg` and the 64-bit `sum` that belongs to it.
    pub(super) fn apply(self, avg: &mut u64, sum: &mut u64, change: AverageChange) {
        *avg = add_positive(*avg, change.avg);
        *sum = self.sum_beside(*avg, add_positive(*sum, change.sum), change.divider);
    }

    /// Takes a load off that may be too large for a sign, as unsigned numbers (`sub_positive()`).
    fn take_off(self, avg: &mut u64, sum: &mut u64, (less, less_sum): (u64, u64), divider: u32) {
        if self == SumSync::Floored {
            return self.apply(avg, sum, AverageChange::minus(less, less_sum, divider));
        }
        *avg = avg.saturating_sub(less);
        *sum = self.sum_beside(*avg, sum.saturating_sub(less_sum), divider);
    }

    /// The sum that belongs to an average, where by difference it would be this one.
    fn sum_beside(self, avg: u64, differing: u64, divider: u32) -> u64 {
        let floor = avg.wrapping_mul(PELT_MIN_DIVIDER.into());
        match self {
            SumSync::Difference => differing,
            SumSync::FromAverage => avg.wrapping_mul(divider.into()),
            SumSync::FlooredNarrow => u64::from((differing as u32).max(floor as u32)),
            SumSync::Floored => differing.max(floor),
        }
    }

    /// The same for the 32-bit sum of utilization.
    pub(super) fn apply_util(self, avg: &mut u64, sum: &mut u32, change: AverageChange) {
        *avg = add_positive(*avg, change.avg);
        let differing = match self {
            SumSync::Floored => add_positive_narrow(*sum, i64::from(change.sum as i32)),
            _ => add_positive_narrow(*sum, change.sum),
        };
        let floor = avg.wrapping_mul(PELT_MIN_DIVIDER.into()) as u32;
        *sum = match self {
            SumSync::Difference => differing,
            SumSync::FromAverage => avg.wrapping_mul(change.divider.into()) as u32,
            SumSync::FlooredNarrow | SumSync::Floored => differing.max(floor),
        };
    }
}

impl CfsRqLoad {
    /// Notes a change of unweighted load sums for the entities above (`add_tg_cfs_propagate()`).
    pub(super) const fn add_tg_cfs_propagate(&mut self, runnable_sum: i64) {
        self.propagate = true;
        self.prop_runnable_sum = self.prop_runnable_sum.wrapping_add(runnable_sum);
    }

    /// An entity is queued: it counts as runnable. Load-weighted runnability only.
    ///
    /// Kernel: `enqueue_runnable_load_avg()`, kernel/sched/fair.c, to v5.6.
    #[inline]
    pub fn add_runnable(&mut self, se: &SchedAvg, load: RunnableLoad) {
        self.runnable_weight = self.runnable_weight.wrapping_add(load.scaled_up);
        let avg = &mut self.avg;
        avg.runnable_avg = avg.runnable_avg.wrapping_add(se.runnable_avg);
        avg.runnable_sum = avg.runnable_sum.wrapping_add(load.weight.wrapping_mul(se.runnable_sum));
    }

    /// An entity is dequeued: it no longer counts as runnable. Load-weighted runnability only.
    ///
    /// Kernel: `dequeue_runnable_load_avg()`, kernel/sched/fair.c, to v5.6.
    #[inline]
    pub fn remove_runnable(&mut self, se: &SchedAvg, load: RunnableLoad) {
        self.runnable_weight = self.runnable_weight.wrapping_sub(load.scaled_up);
        let avg = &mut self.avg;
        avg.runnable_avg = avg.runnable_avg.saturating_sub(se.runnable_avg);
        avg.runnable_sum = avg.runnable_sum.saturating_sub(load.weight.wrapping_mul(se.runnable_sum));
    }
}

impl PeltRules {
    /// Takes off what was removed, then ages the queue. True if its averages changed.
    ///
    /// Kernel: `update_cfs_rq_load_avg()`, kernel/sched/fair.c. Variants: what is removed, by `Difference` to v5.13,
    /// `FromAverage` from v5.14 (1c35b07e6d39), `FlooredNarrow` from v5.17 (98b0d890220d, 95246d1ec80b, 2d02fa8cc21a),
    /// `Floored` from v7.0 (089d84203ad4). Units: `now` in ns of the queue's clock.
    #[inline]
    pub fn update_cfs_rq_load_avg(
        &self,
        now: u64,
        scale: CpuScale,
        cfs_rq: &mut CfsRqLoad,
        queue: QueueState,
    ) -> bool {
        let removed = cfs_rq.removed.nr > 0;
        if removed {
            self.apply_removed(cfs_rq);
        }
        self.update_cfs_rq(now, scale, &mut cfs_rq.avg, queue) || removed
    }

    /// Ages an entity (`update_se()`) and the queue that it stands on. True if the queue's averages changed.
    #[inline]
    pub fn update_se_and_queue(
        &self,
        now: u64,
        scale: CpuScale,
        se: (&mut SchedAvg, EntityState),
        (cfs_rq, queue): (&mut CfsRqLoad, QueueState),
        util_est_enabled: bool,
    ) -> bool {
        let removed = cfs_rq.removed.nr > 0;
        if removed {
            self.apply_removed(cfs_rq);
        }
        self.update_se_and_cfs_rq(now, scale, se, (&mut cfs_rq.avg, queue), util_est_enabled) || removed
    }

    #[inline(never)]
    fn apply_removed(&self, cfs_rq: &mut CfsRqLoad) {
        let removed = std::mem::take(&mut cfs_rq.removed);
        let avg = &mut cfs_rq.avg;
        let divider = avg.divider();
        let minus =
            |average: u64| AverageChange::minus(average, average.wrapping_mul(divider.into()), divider);
        let less = (removed.load_avg, removed.load_avg.wrapping_mul(divider.into()));
        self.removed_load.take_off(&mut avg.load_avg, &mut avg.load_sum, less, divider);
        self.removed_util.apply_util(&mut avg.util_avg, &mut avg.util_sum, minus(removed.util_avg));
        let runnable_sum = match self.runnable {
            RunnableKind::LoadWeighted => (removed.runnable_sum as i64).wrapping_neg(),
            RunnableKind::TaskCount => {
                let change = minus(removed.runnable_avg);
                self.removed_runnable.apply(&mut avg.runnable_avg, &mut avg.runnable_sum, change);
                change.sum >> CAPACITY_SHIFT
            }
        };
        cfs_rq.add_tg_cfs_propagate(runnable_sum);
    }

    /// Adds an entity's averages to a queue whose age is now; its sums are recomputed from its averages. Follow with
    /// [`PeltRules::update_tg_load_avg`].
    ///
    /// Kernel: `attach_entity_load_avg()`, kernel/sched/fair.c. Variants: `UnlessWeightless` to v5.17, `AtLeastOne` from
    /// v5.18 (40f5aa4c5eae).
    pub fn attach_entity_load_avg(&self, cfs_rq: &mut CfsRqLoad, se: &mut SchedAvg, weight: EntityWeight) {
        let divider = u64::from(cfs_rq.avg.divider());
        se.last_update_time = cfs_rq.avg.last_update_time;
        se.period_contrib = cfs_rq.avg.period_contrib;
        se.util_sum = se.util_avg.wrapping_mul(divider) as u32;
        se.load_sum = self.attached_load_sum(se.load_avg.wrapping_mul(divider), divider, weight.weight);
        se.runnable_sum = match self.runnable {
            RunnableKind::LoadWeighted => se.load_sum,
            RunnableKind::TaskCount => se.runnable_avg.wrapping_mul(divider),
        };
        self.enqueue_load_avg(&mut cfs_rq.avg, se, weight.weight);
        let avg = &mut cfs_rq.avg;
        avg.util_avg = avg.util_avg.wrapping_add(se.util_avg);
        avg.util_sum = avg.util_sum.wrapping_add(se.util_sum);
        if self.runnable == RunnableKind::TaskCount {
            avg.runnable_avg = avg.runnable_avg.wrapping_add(se.runnable_avg);
            avg.runnable_sum = avg.runnable_sum.wrapping_add(se.runnable_sum);
        }
        cfs_rq.add_tg_cfs_propagate(se.load_sum as i64);
    }

    fn attached_load_sum(&self, weighted: u64, divider: u64, weight: u64) -> u64 {
        match self.attach_load_sum {
            AttachLoadSum::UnlessWeightless => weighted.checked_div(weight).unwrap_or(divider),
            AttachLoadSum::AtLeastOne if weight < weighted => weighted / weight.max(1),
            AttachLoadSum::AtLeastOne => 1,
        }
    }

    /// Takes an entity's averages off a queue; both are of the same age. Follow with [`PeltRules::update_tg_load_avg`].
    ///
    /// Kernel: `detach_entity_load_avg()`, kernel/sched/fair.c. Variants: by `Difference` to v5.12, `FromAverage` from v5.13
    /// (fcf6631f3736; load ceb6ba45dc80, v5.14), `FlooredNarrow` from v5.17 (7ceb77103001), `Floored` from v7.0
    /// (089d84203ad4).
    pub fn detach_entity_load_avg(&self, cfs_rq: &mut CfsRqLoad, se: &SchedAvg, weight: EntityWeight) {
        self.dequeue_load_avg(&mut cfs_rq.avg, se, weight.weight);
        let avg = &mut cfs_rq.avg;
        let divider = avg.divider();
        let util = AverageChange::minus(se.util_avg, se.util_sum.into(), divider);
        self.detach_util.apply_util(&mut avg.util_avg, &mut avg.util_sum, util);
        if self.runnable == RunnableKind::TaskCount {
            let runnable = AverageChange::minus(se.runnable_avg, se.runnable_sum, divider);
            self.detach_runnable.apply(&mut avg.runnable_avg, &mut avg.runnable_sum, runnable);
        }
        cfs_rq.add_tg_cfs_propagate((se.load_sum as i64).wrapping_neg());
    }

    /// `enqueue_load_avg()`: an entity's load joins. `weight`: scaled down.
    fn enqueue_load_avg(&self, avg: &mut SchedAvg, se: &SchedAvg, weight: u64) {
        let sum = weight.wrapping_mul(se.load_sum);
        if self.attach_load == SumSync::Difference {
            // A plain sum, also where it overflows: a wrong load of a task that turned idle is multiplied (mended by d32960528702).
            avg.load_avg = avg.load_avg.wrapping_add(se.load_avg);
            avg.load_sum = avg.load_sum.wrapping_add(sum);
            return;
        }
        let change = AverageChange { avg: se.load_avg as i64, sum: sum as i64, divider: avg.divider() };
        self.attach_load.apply(&mut avg.load_avg, &mut avg.load_sum, change);
    }

    /// `dequeue_load_avg()`: an entity's load leaves. `weight`: scaled down.
    fn dequeue_load_avg(&self, avg: &mut SchedAvg, se: &SchedAvg, weight: u64) {
        let less = (se.load_avg, weight.wrapping_mul(se.load_sum));
        self.detach_load.take_off(&mut avg.load_avg, &mut avg.load_sum, less, se.divider());
    }

    /// An entity's weight changes from `old` to `new`, scaled down: its load leaves the queue with the old one and joins with
    /// the new one.
    ///
    /// While runnability is load-weighted, an entity on the queue is taken off with [`CfsRqLoad::remove_runnable`] before and
    /// put back with [`CfsRqLoad::add_runnable`] after, with what [`SchedAvg::update_runnable_avg`] makes of its new weight.
    ///
    /// Kernel: the load tracking part of `reweight_entity()`, kernel/sched/fair.c.
    #[inline(never)]
    pub fn reweight_entity(&self, cfs_rq: &mut CfsRqLoad, se: &mut SchedAvg, old: u64, new: u64) {
        self.dequeue_load_avg(&mut cfs_rq.avg, se, old);
        se.load_avg = new.wrapping_mul(se.load_sum) / u64::from(se.divider());
        self.enqueue_load_avg(&mut cfs_rq.avg, se, new);
    }

    /// [`PeltRules::reweight_entity`] to the weight that the entity has.
    #[inline(always)]
    pub fn rejoin(&self, cfs_rq: &mut CfsRqLoad, se: &mut SchedAvg, weight: u64) {
        let (sum, queue) = (weight.wrapping_mul(se.load_sum), &cfs_rq.avg);
        // What leaves and joins again by difference leaves no trace, unless more would leave than is there.
        let by_difference =
            self.detach_load == SumSync::Difference && self.attach_load == SumSync::Difference;
        let is_there = queue.load_avg >= se.load_avg && queue.load_sum >= sum;
        let divider = u64::from(se.divider());
        let rest = sum.wrapping_sub(se.load_avg.wrapping_mul(divider));
        // The average is the same if what it does not account for is less than one.
        if !(by_difference && is_there && rest < divider) {
            self.reweight_entity(cfs_rq, se, weight, weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(major: u32, minor: u32) -> PeltRules {
        crate::pelt::rules_of(&format!("v{major}.{minor}"))
    }

    /// A queue 500 units into a period with a given load, runnability and utilization.
    fn queue(load_avg: u64, runnable_avg: u64, util_avg: u64) -> CfsRqLoad {
        let mut queue = CfsRqLoad::default();
        queue.avg.last_update_time = 7 << 20 | 500 << 10;
        queue.avg.period_contrib = 500;
        let divider = u64::from(queue.avg.divider());
        (queue.avg.load_avg, queue.avg.load_sum) = (load_avg, load_avg * divider + 77);
        (queue.avg.runnable_avg, queue.avg.runnable_sum) = (runnable_avg, runnable_avg * divider + 78);
        (queue.avg.util_avg, queue.avg.util_sum) = (util_avg, (util_avg * divider + 79) as u32);
        queue
    }

    fn task(load_avg: u64, runnable_avg: u64, util_avg: u64) -> SchedAvg {
        SchedAvg { load_avg, runnable_avg, util_avg, ..SchedAvg::default() }
    }

    const WEIGHT: EntityWeight = EntityWeight::of_task(335);
    const RUNNABLE: RunnableLoad = RunnableLoad { weight: 335, scaled_up: 335 << 10 };
    const DIVIDER: u64 = PELT_MIN_DIVIDER as u64 + 500;

    #[test]
    fn an_attached_entity_is_as_old_as_its_queue() {
        for rules in [rules(4, 18), rules(5, 7), rules(5, 18), rules(7, 2)] {
            let mut queue = queue(1000, 900, 800);
            let before = queue.avg;
            let mut se = task(200, 300, 100);
            rules.attach_entity_load_avg(&mut queue, &mut se, WEIGHT);
            assert_eq!(se.last_update_time, before.last_update_time);
            assert_eq!(se.period_contrib, 500);
            assert_eq!(u64::from(se.util_sum), 100 * DIVIDER);
            assert_eq!(se.load_sum, 200 * DIVIDER / 335);
            assert_eq!(queue.avg.load_avg, 1200);
            assert_eq!(queue.avg.load_sum, before.load_sum + 335 * se.load_sum);
            assert_eq!((queue.avg.util_avg, queue.avg.util_sum), (900, before.util_sum + se.util_sum));
            assert_eq!((queue.propagate, queue.prop_runnable_sum), (true, se.load_sum as i64));
        }
    }

    /// A task's sum that a weight has made too large: the product has its highest bit set, as a negative change would.
    #[test]
    fn what_joins_is_added_as_it_is_to_v6_19() {
        for (rules, clamped) in
            [(rules(5, 7), false), (rules(5, 15), false), (rules(6, 19), false), (rules(7, 2), true)]
        {
            let mut queue = queue(1000, 900, 800);
            let mut se = task(0, 0, 0);
            (se.period_contrib, se.load_sum) = (500, 1 << 62);
            let before = queue.avg.load_sum;
            rules.enqueue_load_avg(&mut queue.avg, &se, 3);
            let expected =
                if clamped { 1000 * u64::from(PELT_MIN_DIVIDER) } else { before.wrapping_add(3 << 62) };
            assert_eq!(queue.avg.load_sum, expected);
        }
    }

    #[test]
    fn what_leaves_is_unsigned_to_v6_19() {
        for (rules, rest) in
            [(rules(5, 7), 0), (rules(6, 6), 0), (rules(6, 19), 0), (rules(7, 2), 77 + (1 << 62))]
        {
            let mut queue = queue(0, 900, 800);
            let mut se = task(0, 0, 0);
            (se.period_contrib, se.load_sum) = (500, 1 << 62);
            rules.dequeue_load_avg(&mut queue.avg, &se, 3);
            assert_eq!(queue.avg.load_sum, rest);
            let mut left = self::queue(0, 900, 800);
            left.removed = RemovedLoad { nr: 1, load_avg: (3 << 62) / DIVIDER, ..RemovedLoad::default() };
            rules.apply_removed(&mut left);
            assert_eq!(left.avg.load_sum > 77, rest > 77);
        }
    }

    #[test]
    fn joining_again_is_a_new_weight_that_is_the_old_one() {
        let mut unchanged = 0;
        for (rules, load_avg, behind, weight) in [rules(5, 7), rules(5, 16), rules(6, 12), rules(7, 2)]
            .into_iter()
            .flat_map(|rules| [0, 1, 99, 300, 5000].map(|load_avg| (rules, load_avg)))
            .flat_map(|(rules, load_avg)| [0, 1, 700, 60_000].map(|behind| (rules, load_avg, behind)))
            .flat_map(|(rules, load, behind)| {
                [2, 335, 1024, 88_761].map(|weight| (rules, load, behind, weight))
            })
        {
            // Its sum may hold more than its average tells, and the queue less than the entity brought.
            let mut se = task(load_avg, load_avg, load_avg);
            se.period_contrib = 500;
            se.load_sum = load_avg * DIVIDER / weight + behind;
            for of_queue in [0, 150, 20_000] {
                let (mut joined, mut reweighted) = (queue(of_queue, 0, 0), queue(of_queue, 0, 0));
                let (mut one, mut other) = (se, se);
                rules.rejoin(&mut joined, &mut one, weight);
                rules.reweight_entity(&mut reweighted, &mut other, weight, weight);
                assert_eq!(
                    (joined.avg, one),
                    (reweighted.avg, other),
                    "{load_avg} {behind} {weight} {of_queue}"
                );
                unchanged += usize::from(joined.avg == queue(of_queue, 0, 0).avg);
            }
        }
        assert!((1..960).contains(&unchanged), "{unchanged} of 960 leave no trace");
    }

    #[test]
    fn runnability_joins_with_the_task_or_with_its_enqueue() {
        let mut counted = queue(0, 900, 0);
        let mut se = task(200, 300, 100);
        rules(5, 7).attach_entity_load_avg(&mut counted, &mut se, WEIGHT);
        assert_eq!((counted.avg.runnable_avg, se.runnable_sum), (1200, 300 * DIVIDER));

        let rules = rules(5, 6);
        let mut weighted = queue(0, 900, 0);
        let mut se = task(200, 200, 100);
        rules.attach_entity_load_avg(&mut weighted, &mut se, WEIGHT);
        assert_eq!((weighted.avg.runnable_avg, se.runnable_sum), (900, se.load_sum));
        let before = weighted;
        weighted.add_runnable(&se, RUNNABLE);
        assert_eq!(weighted.avg.runnable_avg, 1100);
        assert_eq!(weighted.avg.runnable_sum, before.avg.runnable_sum + 335 * se.load_sum);
        assert_eq!(weighted.runnable_weight, 335 << 10);
        weighted.remove_runnable(&se, RUNNABLE);
        assert_eq!(weighted, before);
    }

    #[test]
    fn a_load_too_small_for_its_weight_still_counts() {
        let mut se = task(0, 0, 0);
        rules(5, 17).attach_entity_load_avg(&mut queue(0, 0, 0), &mut se, WEIGHT);
        assert_eq!(se.load_sum, 0);
        rules(5, 18).attach_entity_load_avg(&mut queue(0, 0, 0), &mut se, WEIGHT);
        assert_eq!(se.load_sum, 1, "from 40f5aa4c5eae on");
        let weightless = EntityWeight::of_task(0);
        rules(5, 17).attach_entity_load_avg(&mut queue(0, 0, 0), &mut se, weightless);
        assert_eq!(se.load_sum, DIVIDER);
        rules(5, 18).attach_entity_load_avg(&mut queue(0, 0, 0), &mut se, weightless);
        assert_eq!(se.load_sum, 1);
    }

    /// Of a queue with 79 beyond 100 · divider, a task with 105 · divider is taken.
    #[test]
    fn how_sums_follow_averages() {
        let removed = |rules: PeltRules| {
            let mut queue = queue(1000, 1000, 1000);
            queue.removed = RemovedLoad { nr: 1, util_avg: 1000, ..RemovedLoad::default() };
            queue.avg.util_sum -= 200;
            rules.update_cfs_rq_load_avg(7 << 20, CpuScale::FULL, &mut queue, QueueState::default());
            (queue.avg.util_avg, queue.avg.util_sum)
        };
        assert_eq!(removed(rules(5, 13)), (0, 0), "the difference, not below 0");
        let detached = |rules: PeltRules, util_sum: u32| {
            let mut queue = queue(0, 0, 1000);
            let se = SchedAvg { util_avg: 400, util_sum, ..SchedAvg::default() };
            rules.detach_entity_load_avg(&mut queue, &se, WEIGHT);
            (queue.avg.util_avg, u64::from(queue.avg.util_sum))
        };
        let sum = (400 * DIVIDER + 5000) as u32;
        assert_eq!(detached(rules(5, 12), sum), (600, 600 * DIVIDER + 79 - 5000));
        assert_eq!(detached(rules(5, 13), sum), (600, 600 * DIVIDER));
        assert_eq!(detached(rules(5, 17), sum), (600, 600 * DIVIDER + 79 - 5000));
        let sum = (500 * DIVIDER) as u32;
        assert_eq!(detached(rules(5, 12), sum), (600, 500 * DIVIDER + 79));
        for floored in [rules(5, 17), rules(7, 0)] {
            assert_eq!(detached(floored, sum), (600, 600 * u64::from(PELT_MIN_DIVIDER)));
        }
    }

    /// `max_t(u32, …)` on a 64-bit sum: from v5.17 to v6.19 a heavy queue loses the upper bits of its load sum.
    #[test]
    fn a_heavy_queue_is_cut_to_32_bits() {
        let detached = |rules: PeltRules| {
            let mut queue = queue(200_000, 0, 0);
            let se = SchedAvg { load_avg: 10, load_sum: 0, ..SchedAvg::default() };
            rules.detach_entity_load_avg(&mut queue, &se, WEIGHT);
            queue.avg.load_sum
        };
        let whole = 200_000 * DIVIDER + 77;
        assert_eq!(detached(rules(5, 16)), 199_990 * u64::from(PELT_MIN_DIVIDER));
        let floor = 199_990 * u64::from(PELT_MIN_DIVIDER);
        assert_eq!(detached(rules(6, 12)), u64::from((whole as u32).max(floor as u32)));
        assert_eq!(detached(rules(7, 0)), whole);
    }

    #[test]
    fn removed_tasks_are_told_upwards_unweighted() {
        let told = |rules: PeltRules| {
            let mut queue = queue(1000, 1000, 1000);
            queue.removed =
                RemovedLoad { nr: 2, load_avg: 100, util_avg: 50, runnable_avg: 60, runnable_sum: 4711 };
            let now = queue.avg.last_update_time;
            assert!(rules.update_cfs_rq_load_avg(now, CpuScale::FULL, &mut queue, QueueState::default()));
            assert_eq!((queue.avg.load_avg, queue.avg.util_avg), (900, 950));
            assert_eq!(queue.removed, RemovedLoad::default());
            assert!(!rules.update_cfs_rq_load_avg(now, CpuScale::FULL, &mut queue, QueueState::default()));
            queue.prop_runnable_sum
        };
        assert_eq!(told(rules(5, 6)), -4711);
        assert_eq!(told(rules(5, 7)), -(60 * DIVIDER as i64) / 1024 - 1, "rounded down");
    }

    #[test]
    fn a_new_weight_changes_load_only() {
        for rules in [rules(5, 6), rules(5, 16), rules(6, 12), rules(7, 2)] {
            let mut queue = queue(0, 0, 0);
            let mut se = task(300, 300, 100);
            rules.attach_entity_load_avg(&mut queue, &mut se, WEIGHT);
            let util = queue.avg.util_avg;
            rules.reweight_entity(&mut queue, &mut se, WEIGHT.weight, 1024);
            assert_eq!(se.load_avg, 1024 * se.load_sum / DIVIDER);
            assert!((916..=917).contains(&se.load_avg), "300 · 1024 / 335 is 917.01");
            assert_eq!((queue.avg.load_avg, queue.avg.util_avg), (se.load_avg, util));
            assert!(queue.avg.load_sum.abs_diff(1024 * se.load_sum) <= DIVIDER);
        }
    }
}
