//! How a change below a group reaches the averages of its entity and of the queue that the entity competes on.
//!
//! Must not know: how deep the hierarchy is.

use super::average::{EntityWeight, SchedAvg};
use super::queue::{AverageChange, CfsRqLoad};
use super::rules::{
    GroupDivider, GroupLoadUnchanged, GroupRunnableSum, Invariance, PeltRules, RunnableKind, SumSync,
};
use super::series::{CAPACITY_SHIFT, LOAD_AVG_MAX};

/// A group's entity as propagation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEntity {
    /// Its weights.
    pub weight: EntityWeight,
    /// Counted on its queue.
    pub on_rq: bool,
    /// Σ weight on the group's own queue, scaled down (`gcfs_rq->load.weight`).
    pub group_weight: u64,
    /// The CPU's capacity, 0…1024; used only when contributions are scaled.
    pub capacity: u64,
}

impl PeltRules {
    /// Passes what was attached or detached below a group on to its entity and the queue above. True if there was anything.
    ///
    /// `parent` is the queue that the entity competes on, `group` the one that it stands for. Utilization first, then
    /// runnability, then load, whose new sum is at least what the new utilization says.
    ///
    /// Kernel: `propagate_entity_load_avg()`, kernel/sched/fair.c.
    pub fn propagate_entity_load_avg(
        &self,
        parent: &mut CfsRqLoad,
        se: &mut SchedAvg,
        group: &mut CfsRqLoad,
        entity: GroupEntity,
    ) -> bool {
        if !group.propagate {
            return false;
        }
        group.propagate = false;
        parent.add_tg_cfs_propagate(group.prop_runnable_sum);
        self.update_tg_cfs_util(&mut parent.avg, se, &group.avg);
        if self.runnable == RunnableKind::TaskCount {
            self.update_tg_cfs_runnable(&mut parent.avg, se, &group.avg);
        }
        self.update_tg_cfs_load(&mut parent.avg, se, group, entity);
        true
    }

    fn group_divider(&self, parent: &SchedAvg) -> u32 {
        match self.group_divider {
            GroupDivider::Maximum => LOAD_AVG_MAX,
            GroupDivider::WithinPeriod => parent.divider(),
        }
    }

    /// The entity takes its group's utilization; the queue above changes by the difference.
    ///
    /// Kernel: `update_tg_cfs_util()`, kernel/sched/fair.c. Variants: divided by the `Maximum` to v5.7, `WithinPeriod` from
    /// v5.8 (95d685935a2e).
    pub fn update_tg_cfs_util(&self, parent: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
        let avg = group.util_avg.wrapping_sub(se.util_avg) as i64;
        if avg == 0 {
            return;
        }
        let divider = self.group_divider(parent);
        let new_sum = group.util_avg.wrapping_mul(divider.into()) as u32;
        let change = AverageChange { avg, sum: i64::from(new_sum) - i64::from(se.util_sum), divider };
        se.util_avg = group.util_avg;
        se.util_sum = new_sum;
        self.group_util.apply_util(&mut parent.util_avg, &mut parent.util_sum, change);
    }

    /// The entity takes its group's runnability; the queue above changes by the difference. Task counts only.
    ///
    /// Kernel: `update_tg_cfs_runnable()`, kernel/sched/fair.c (9f68395333ad). Variants: a `Narrow` sum from v5.17
    /// (95246d1ec80b) to v7.1.
    pub fn update_tg_cfs_runnable(&self, parent: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
        let avg = group.runnable_avg.wrapping_sub(se.runnable_avg) as i64;
        if avg == 0 {
            return;
        }
        let divider = self.group_divider(parent);
        let wide = group.runnable_avg.wrapping_mul(divider.into());
        let new_sum = match self.group_runnable_sum {
            GroupRunnableSum::Wide => wide,
            GroupRunnableSum::Narrow => u64::from(wide as u32),
        };
        let change =
            AverageChange { avg, sum: (new_sum as i64).wrapping_sub(se.runnable_sum as i64), divider };
        se.runnable_avg = group.runnable_avg;
        se.runnable_sum = new_sum;
        self.group_runnable.apply(&mut parent.runnable_avg, &mut parent.runnable_sum, change);
    }

    /// The entity's load sum follows the change below; the queue above changes by the difference.
    ///
    /// What joins is added, up to the maximum. What leaves is estimated, since nobody knows how the rest overlaps: at most
    /// the mean over the group's weight is left.
    ///
    /// Kernel: `update_tg_cfs_load()`, kernel/sched/fair.c, to v5.6 `update_tg_cfs_runnable()`. Variants: a change below 1
    /// `Continue`s to v5.13, `StopAfterSum` from v5.14 (83c5e9d573e1), `StopBeforeSum` from v5.17 (2d02fa8cc21a).
    pub fn update_tg_cfs_load(
        &self,
        parent: &mut SchedAvg,
        se: &mut SchedAvg,
        group: &mut CfsRqLoad,
        entity: GroupEntity,
    ) {
        if group.prop_runnable_sum == 0 {
            return;
        }
        let divider = self.group_divider(parent);
        let runnable_sum = self.group_runnable_load(se, group, entity, divider);
        group.prop_runnable_sum = 0;

        let weight = entity.weight.weight as i64;
        let load_sum = weight.wrapping_mul(runnable_sum);
        let load_avg = load_sum / i64::from(divider);
        let avg = load_avg.wrapping_sub(se.load_avg as i64);
        let sum = load_sum.wrapping_sub(weight.wrapping_mul(se.load_sum as i64));
        let unchanged = avg == 0;
        if unchanged && self.group_load_unchanged == GroupLoadUnchanged::StopBeforeSum {
            return;
        }
        se.load_sum = runnable_sum as u64;
        if unchanged && self.group_load_unchanged == GroupLoadUnchanged::StopAfterSum {
            return;
        }
        se.load_avg = load_avg as u64;
        let change = AverageChange { avg, sum, divider };
        self.group_load.apply(&mut parent.load_avg, &mut parent.load_sum, change);
        if self.runnable == RunnableKind::LoadWeighted {
            self.update_runnable_load(parent, se, entity, runnable_sum);
        }
    }

    fn group_runnable_load(
        &self,
        se: &SchedAvg,
        group: &CfsRqLoad,
        entity: GroupEntity,
        divider: u32,
    ) -> i64 {
        let delta = group.prop_runnable_sum;
        let runnable_sum = if delta >= 0 {
            delta.wrapping_add(se.load_sum as i64).min(divider.into())
        } else {
            let mean = group.avg.load_sum.checked_div(entity.group_weight).unwrap_or(0);
            se.load_sum.min(mean) as i64
        };
        let running_sum = match self.invariance {
            Invariance::Contribution => u64::from(se.util_sum) / entity.capacity.max(1),
            Invariance::PeltClock => u64::from(se.util_sum >> CAPACITY_SHIFT),
        };
        runnable_sum.max(running_sum as i64)
    }

    /// The load-weighted half. The kernel takes the old sum off with the entity's weight, not its runnable weight.
    fn update_runnable_load(
        &self,
        parent: &mut SchedAvg,
        se: &mut SchedAvg,
        entity: GroupEntity,
        runnable_sum: i64,
    ) {
        let runnable_load_sum = (entity.weight.runnable_weight as i64).wrapping_mul(runnable_sum);
        let runnable_load_avg = runnable_load_sum / i64::from(LOAD_AVG_MAX);
        let old_sum = entity.weight.weight.wrapping_mul(se.runnable_sum) as i64;
        let change = AverageChange {
            avg: runnable_load_avg.wrapping_sub(se.runnable_avg as i64),
            sum: runnable_load_sum.wrapping_sub(old_sum),
            divider: LOAD_AVG_MAX,
        };
        se.runnable_sum = runnable_sum as u64;
        se.runnable_avg = runnable_load_avg as u64;
        if entity.on_rq {
            SumSync::Difference.apply(&mut parent.runnable_avg, &mut parent.runnable_sum, change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::PELT_MIN_DIVIDER;
    use super::*;

    const DIVIDER: u64 = PELT_MIN_DIVIDER as u64 + 500;
    const TASK: EntityWeight = EntityWeight::of_task(1024);
    const GROUP: GroupEntity =
        GroupEntity { weight: EntityWeight::of_task(512), on_rq: true, group_weight: 1024, capacity: 1024 };

    fn rules(major: u32, minor: u32) -> PeltRules {
        crate::pelt::rules_of(&format!("v{major}.{minor}"))
    }

    fn queue() -> CfsRqLoad {
        let mut queue = CfsRqLoad::default();
        queue.avg.period_contrib = 500;
        queue
    }

    /// A new task joins an empty group: its queue, its entity, and the queue above, before propagation.
    fn joined(rules: &PeltRules) -> (CfsRqLoad, SchedAvg, CfsRqLoad) {
        let mut group = queue();
        let mut task = SchedAvg { load_avg: 1024, runnable_avg: 700, util_avg: 512, ..SchedAvg::default() };
        rules.attach_entity_load_avg(&mut group, &mut task, TASK);
        let se = SchedAvg { period_contrib: 500, ..SchedAvg::default() };
        (group, se, queue())
    }

    #[test]
    fn what_joins_below_joins_above() {
        for (rules, divider, load_avg) in [
            (rules(5, 7), u64::from(LOAD_AVG_MAX), 506),
            (rules(5, 8), DIVIDER, 512),
            (rules(7, 2), DIVIDER, 512),
        ] {
            let (mut group, mut se, mut parent) = joined(&rules);
            assert!(rules.propagate_entity_load_avg(&mut parent, &mut se, &mut group, GROUP));
            assert_eq!((se.util_avg, u64::from(se.util_sum)), (512, 512 * divider));
            assert_eq!((se.runnable_avg, se.runnable_sum), (700, 700 * divider));
            assert_eq!(
                (se.load_avg, se.load_sum),
                (load_avg, DIVIDER),
                "all of the time, at the group's weight"
            );
            assert_eq!((parent.avg.load_avg, parent.avg.load_sum), (load_avg, 512 * DIVIDER));
            assert_eq!((parent.avg.util_avg, parent.avg.util_sum), (512, se.util_sum));
            assert_eq!((parent.avg.runnable_avg, parent.avg.runnable_sum), (700, se.runnable_sum));
            assert_eq!((parent.propagate, parent.prop_runnable_sum), (true, DIVIDER as i64));
            assert_eq!((group.propagate, group.prop_runnable_sum), (false, 0));
            assert!(!rules.propagate_entity_load_avg(&mut parent, &mut se, &mut group, GROUP));
        }
    }

    #[test]
    fn load_weighted_runnability_follows_queued_groups() {
        let rules = rules(5, 6);
        for on_rq in [true, false] {
            let (mut group, mut se, mut parent) = joined(&rules);
            let entity =
                GroupEntity { on_rq, weight: EntityWeight { weight: 512, runnable_weight: 256 }, ..GROUP };
            rules.propagate_entity_load_avg(&mut parent, &mut se, &mut group, entity);
            assert_eq!((se.runnable_avg, se.runnable_sum), (253, DIVIDER), "256 · 47218 / 47742");
            let expected = if on_rq { (253, 256 * DIVIDER) } else { (0, 0) };
            assert_eq!((parent.avg.runnable_avg, parent.avg.runnable_sum), expected);
        }
    }

    /// The kernel takes an entity's old runnable sum off with its weight, though it was added with its runnable weight.
    #[test]
    fn load_weighted_sums_do_not_cancel() {
        let rules = rules(5, 6);
        let mut se = SchedAvg { load_sum: 1000, runnable_sum: 1000, runnable_avg: 5, ..SchedAvg::default() };
        let mut parent = queue();
        (parent.avg.runnable_avg, parent.avg.runnable_sum) = (5, 1_000_000);
        let mut group = CfsRqLoad { prop_runnable_sum: 500, ..queue() };
        let weight = EntityWeight { weight: 512, runnable_weight: 256 };
        rules.update_tg_cfs_load(&mut parent.avg, &mut se, &mut group, GroupEntity { weight, ..GROUP });
        assert_eq!((se.runnable_sum, se.runnable_avg), (1500, 8));
        assert_eq!(parent.avg.runnable_sum, 1_000_000 + 256 * 1500 - 512 * 1000);
        assert_eq!(parent.avg.runnable_avg, 8);
    }

    #[test]
    fn no_more_than_all_of_the_time() {
        let rules = rules(6, 6);
        let (mut group, mut se, mut parent) = joined(&rules);
        rules.propagate_entity_load_avg(&mut parent, &mut se, &mut group, GROUP);
        let mut second = SchedAvg { load_avg: 1024, ..SchedAvg::default() };
        rules.attach_entity_load_avg(&mut group, &mut second, TASK);
        rules.propagate_entity_load_avg(&mut parent, &mut se, &mut group, GROUP);
        assert_eq!((se.load_sum, se.load_avg, parent.avg.load_avg), (DIVIDER, 512, 512));
    }

    /// One of two tasks leaves: the group is taken to want what the other wants, at least what it runs.
    #[test]
    fn what_leaves_below_leaves_above() {
        for rules in [rules(5, 10), rules(5, 14), rules(6, 6), rules(7, 2)] {
            let (mut group, mut se, mut parent) = joined(&rules);
            let mut second = SchedAvg { load_avg: 512, ..SchedAvg::default() };
            rules.attach_entity_load_avg(&mut group, &mut second, TASK);
            rules.propagate_entity_load_avg(&mut parent, &mut se, &mut group, GROUP);
            let mut first = second;
            (first.load_avg, first.load_sum, first.util_avg) = (1024, DIVIDER, 512);
            (first.util_sum, first.runnable_avg, first.runnable_sum) =
                ((512 * DIVIDER) as u32, 700, 700 * DIVIDER);
            rules.detach_entity_load_avg(&mut group, &first, TASK);
            rules.propagate_entity_load_avg(&mut parent, &mut se, &mut group, GROUP);
            assert_eq!((se.util_avg, parent.avg.util_avg, parent.avg.runnable_avg), (0, 0, 0));
            assert!(se.load_sum.abs_diff(DIVIDER / 2) <= 1, "{}", se.load_sum);
            assert!((255..=256).contains(&se.load_avg) && parent.avg.load_avg == se.load_avg);
            assert_eq!(parent.prop_runnable_sum, (DIVIDER / 2) as i64, "told further as it came");
        }
    }

    #[test]
    fn a_group_wants_at_least_what_it_runs() {
        let rules = rules(6, 6);
        let mut se = SchedAvg { load_sum: 100, util_sum: 1 << 20, ..SchedAvg::default() };
        let mut group = CfsRqLoad { prop_runnable_sum: -1, ..queue() };
        rules.update_tg_cfs_load(&mut queue().avg, &mut se, &mut group, GROUP);
        assert_eq!(se.load_sum, 1024);
        let old = crate::pelt::rules_of("v5.0");
        let mut se = SchedAvg { load_sum: 100, util_sum: 1 << 20, ..SchedAvg::default() };
        let mut group = CfsRqLoad { prop_runnable_sum: -1, ..queue() };
        let slow = GroupEntity { capacity: 512, ..GROUP };
        old.update_tg_cfs_load(&mut queue().avg, &mut se, &mut group, slow);
        assert_eq!(se.load_sum, 2048, "its utilization is scaled by capacity");
    }

    /// A change too small for the average: which sums move differs.
    #[test]
    fn a_change_below_one() {
        let after = |rules: PeltRules| {
            let mut parent = queue();
            (parent.avg.load_avg, parent.avg.load_sum) = (1, DIVIDER + 7000);
            let mut se = SchedAvg { load_avg: 1, load_sum: 1000, period_contrib: 500, ..SchedAvg::default() };
            let mut group = CfsRqLoad { prop_runnable_sum: 10, propagate: true, ..queue() };
            let light = GroupEntity { weight: EntityWeight::of_task(50), ..GROUP };
            rules.update_tg_cfs_load(&mut parent.avg, &mut se, &mut group, light);
            assert_eq!((se.load_avg, parent.avg.load_avg, group.prop_runnable_sum), (1, 1, 0));
            (se.load_sum, parent.avg.load_sum - DIVIDER)
        };
        assert_eq!(after(rules(5, 12)), (1010, 7500));
        assert_eq!(after(rules(5, 13)), (1010, 0), "the queue's is recomputed");
        assert_eq!(after(rules(5, 14)), (1010, 7000));
        assert_eq!(after(rules(5, 17)), (1000, 7000));
    }

    /// More than 87 runnable tasks below a group: from v5.17 to v7.1 their sum does not fit.
    #[test]
    fn many_tasks_overflow_a_narrow_sum() {
        let runnable_avg = 100 * 1024;
        let sum = |rules: PeltRules| {
            let mut se = SchedAvg::default();
            let mut group = queue();
            group.avg.runnable_avg = runnable_avg;
            rules.update_tg_cfs_runnable(&mut queue().avg, &mut se, &group.avg);
            se.runnable_sum
        };
        assert_eq!(sum(rules(5, 16)), runnable_avg * DIVIDER);
        assert_eq!(sum(rules(6, 12)), runnable_avg * DIVIDER - (1 << 32));
        assert_eq!(sum(rules(7, 2)), runnable_avg * DIVIDER - (1 << 32));
        assert_eq!(sum(rules(7, 3)), runnable_avg * DIVIDER);
    }
}
