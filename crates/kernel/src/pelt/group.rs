//! How a change below a group reaches the averages of its entity and of the queue that the entity competes on.
//!
//! Must not know: how deep the hierarchy is.

use super::average::{EntityWeight, SchedAvg};
use super::queue::{CfsRqLoad, Change};
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
    /// Kernel: `propagate_entity_load_avg()`, kernel/sched/fair.c. `parent`: the queue that the entity competes on;
    /// `group`: the queue that it stands for. Utilization first, then runnability, then load, whose new sum is at least
    /// what the new utilization says.
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
    /// Kernel: `update_tg_cfs_util()`, kernel/sched/fair.c.
    pub fn update_tg_cfs_util(&self, parent: &mut SchedAvg, se: &mut SchedAvg, group: &SchedAvg) {
        let avg = group.util_avg.wrapping_sub(se.util_avg) as i64;
        if avg == 0 {
            return;
        }
        let divider = self.group_divider(parent);
        let new_sum = group.util_avg.wrapping_mul(divider.into()) as u32;
        let change = Change { avg, sum: i64::from(new_sum) - i64::from(se.util_sum), divider };
        se.util_avg = group.util_avg;
        se.util_sum = new_sum;
        self.group.util.apply_util(&mut parent.util_avg, &mut parent.util_sum, change);
    }

    /// The entity takes its group's runnability; the queue above changes by the difference. Task counts only.
    ///
    /// Kernel: `update_tg_cfs_runnable()`, kernel/sched/fair.c (9f68395333ad).
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
        let change = Change { avg, sum: (new_sum as i64).wrapping_sub(se.runnable_sum as i64), divider };
        se.runnable_avg = group.runnable_avg;
        se.runnable_sum = new_sum;
        self.group.runnable.apply(&mut parent.runnable_avg, &mut parent.runnable_sum, change);
    }

    /// The entity's load sum follows the change below; the queue above changes by the difference.
    ///
    /// Kernel: `update_tg_cfs_load()`, kernel/sched/fair.c, with task counts; before, the whole of
    /// `update_tg_cfs_runnable()`. What joins is added, up to the maximum; what leaves is estimated, since nobody knows
    /// how the rest overlaps: at most the mean over the group's weight.
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
        let change = Change { avg, sum, divider };
        self.group.load.apply(&mut parent.load_avg, &mut parent.load_sum, change);
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
        let change = Change {
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
