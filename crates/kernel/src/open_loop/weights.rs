//! Weights that groups and their entities have because a recording says so, in open loop: each CPU stands at the time of its
//! own runqueue.
//!
//! Must not know: how a recording shows them.

use fairlab_event::Cpu;

use super::EntityId;
use crate::entity::SeId;
use crate::fair::rules::Reweight;
use crate::group::idle::IDLE_SHARES;
use crate::group::{GroupId, shares_of_cgroup_weight};
use crate::pelt::{GroupLoad, MIN_SHARES};
use crate::scheduler::Scheduler;
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

/// No entity weighs nothing; where a recording says so, it is damaged.
const LEAST_WEIGHT: u64 = 1;

impl Scheduler {
    /// From now on groups' entities have the weights that [`give_weight`](Self::give_weight) says.
    pub fn take_weights_as_given(&mut self) {
        self.shared.hooks.answer_weights();
    }

    /// The next update of a group's entity gives it `weight`, scaled up.
    pub fn give_weight(&mut self, entity: EntityId, weight: u64) {
        self.shared.hooks.set_weight(entity.0, weight.max(LEAST_WEIGHT));
    }

    /// Gives the weights that no update has taken, of entities on queues of `cpu`.
    pub fn flush_given_weights(&mut self, cpu: Cpu) {
        let given = self.shared.hooks.untaken_weights();
        let left = given.filter(|&se| self.cfs(self.se(se).cfs_rq).cpu == cpu).collect::<Vec<_>>();
        for se in left {
            self.entity_rq_lock(se).update_cfs_group(se);
        }
    }

    /// The same for one entity.
    pub fn flush_given_weight(&mut self, entity: EntityId) {
        if self.shared.hooks.weight_of(entity.0).is_some() {
            self.entity_rq_lock(entity.0).update_cfs_group(entity.0);
        }
    }

    /// The lag by which an entity off its queue is placed next. Where all tasks of a CPU compete on one queue, a task has been
    /// given the weight before that it is about to have there, with its groups' entities as heavy as is given.
    pub fn lag_at_placement(&self, entity: EntityId) -> i64 {
        match self.reweighs_before_placing(entity) {
            true => self.shared.lag_reweighed_on_line(entity.0, self.coming_part_of_weight(entity.0)),
            false => self.se(entity.0).vlag,
        }
    }

    /// An entity that is about to be placed has the lag and the distance to its deadline that it is placed by.
    pub fn force_scaled(&mut self, entity: EntityId) {
        self.se_mut(entity.0).scaled_before = self.reweighs_before_placing(entity);
    }

    /// Whether a task is given its weight on its CPU's one time line before it is placed: not if it runs.
    fn reweighs_before_placing(&self, entity: EntityId) -> bool {
        let entity_of_task = self.se(entity.0).task.is_some();
        entity_of_task && self.shared.competes_on_one_queue() && !self.is_current(entity)
    }

    /// [`part_of_weight`](Self::part_of_weight) of a task once it is queued at all levels.
    fn coming_part_of_weight(&self, se: SeId) -> LoadWeight {
        let given = |se: &SeId| self.shared.hooks.weight_of(*se);
        let whole = LoadWeight::of_nice(0).raw();
        let (mut level, mut weight) = (Some(se), whole);
        while let Some(se) = level {
            let entity = self.se(se);
            let now = entity.load.raw();
            let own = given(&se).unwrap_or(now);
            let others = self.cfs(entity.cfs_rq).load.raw() - if entity.on_rq { now } else { 0 };
            let beside = if entity.parent.is_some() { others + own } else { whole };
            weight = (weight.wrapping_mul(own) / beside.max(1)).max(MIN_SHARES as u64);
            level = entity.parent;
        }
        LoadWeight::from_raw(weight)
    }

    /// Gives a group's entity that is off its queue another weight, with all that this changes.
    pub fn reweigh_off_queue(&mut self, entity: EntityId, weight: u64) {
        if !self.se(entity.0).on_rq && self.se(entity.0).load.raw() != weight {
            self.entity_rq_lock(entity.0)
                .reweight_entity(entity.0, LoadWeight::from_raw(weight.max(LEAST_WEIGHT)));
        }
    }

    /// The point around which a change of weight scales an entity's distances on the time line, for one that stood at
    /// `vruntime`, on its queue or off it; `None` where it scales none.
    pub fn reweight_pivot(&self, entity: EntityId, vruntime: Vruntime, queued: bool) -> Option<Vruntime> {
        if self.shared.competes_on_one_queue() && self.se(entity.0).task.is_none() {
            return None;
        }
        match self.shared.generation.fair.reweight {
            Reweight::KeepVruntime | Reweight::ScaleLagOffQueue => None,
            Reweight::ScaleDeadlineAlways => Some(vruntime),
            _ if !queued => None,
            Reweight::ScaleDeadline => Some(vruntime),
            Reweight::ScaleAroundOthers
            | Reweight::ScaleAroundAverage
            | Reweight::PlaceAnew
            | Reweight::ScaleAllAroundAverage => {
                Some(self.shared.average(self.shared.line_of(self.se(entity.0).cfs_rq)))
            }
        }
    }

    /// Gives an entity a weight, without anything else that a change of weight does.
    pub fn force_weight(&mut self, entity: EntityId, weight: u64) {
        let load = LoadWeight::from_raw(weight.max(LEAST_WEIGHT));
        if self.se(entity.0).on_rq {
            let (cfs_rq, old) = (self.se(entity.0).cfs_rq, self.se(entity.0).load);
            self.cfs_mut(cfs_rq).load.subtract(old);
            self.cfs_mut(cfs_rq).load.add(load);
        }
        self.change_entity(entity, |entity| entity.load = load);
        if self.shared.competes_on_one_queue() && self.se(entity.0).task.is_some() {
            let whole = self.shared.part_of_weight(entity.0);
            self.force_line_weight(entity, whole.raw());
        }
    }

    /// A group has `shares` from now on, scaled up; entities get the weights that this earns them. Those of an idle group
    /// stay.
    ///
    /// Kernel: `sched_group_set_shares()`, kernel/sched/fair.c.
    pub fn force_group_shares(&mut self, group: GroupId, shares: u64) {
        if self.shared.groups[group.0 as usize].idle {
            return;
        }
        self.shared.groups[group.0 as usize].shares = shares;
        for cpu in self.shared.topology.cpus() {
            self.stand_on(cpu);
            self.take_new_shares(group, cpu);
        }
    }

    /// What it tells of a group that its entity on some CPU has been given `weight`, scaled up: that the group has become idle,
    /// or is no longer. `None` where it tells nothing new.
    ///
    /// No entity of an idle group weighs more than the group's shares; and those are far below the least that a group can be
    /// given, so that a weight and the part of the group's load that earned it tell which of the two the shares are.
    pub fn idleness_told(&self, entity: EntityId, weight: u64) -> Option<(GroupId, bool)> {
        let queue = self.cfs(self.se(entity.0).my_q.filter(|_| self.knows_idle_groups())?);
        let (group, is_idle) = (queue.group, self.shared.groups[queue.group.0 as usize].idle);
        if weight > IDLE_SHARES {
            return is_idle.then_some((group, false));
        }
        let least = shares_of_cgroup_weight(1);
        let shares = shares_earning(self.shared.group_load(queue), weight)?;
        (!is_idle && shares < IDLE_SHARES.midpoint(least)).then_some((group, true))
    }

    /// A group is idle from now on, or no longer; the weights of its entities are given.
    pub fn force_group_idle(&mut self, group: GroupId, idle: bool) {
        self.mark_group_idle(group, idle);
        self.shared.groups[group.0 as usize].shares =
            if idle { IDLE_SHARES } else { LoadWeight::of_nice(0).raw() };
    }
}

/// The shares of which a queue's part of its group's load earns `weight`; `None` where the part is nothing, or so small that the
/// weight is the least that there is.
fn shares_earning(group: GroupLoad, weight: u64) -> Option<u64> {
    let load = u64::try_from(group.weight.max(group.load_avg)).ok()?;
    let others = u64::try_from(group.tg_load_avg - group.tg_load_avg_contrib).unwrap_or(0);
    (load > 0 && weight > MIN_SHARES as u64).then(|| weight * (others + load) / load)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{MS, SchedulerTestbed};

    /// A group whose tasks are on two CPUs becomes idle and ceases to be: the new weight of either entity tells it.
    #[test]
    fn a_new_weight_tells_whether_a_group_is_idle() {
        let mut bed = SchedulerTestbed::new("v6.12", 2, 1);
        let group = bed.scheduler.new_group(GroupId::ROOT, 50);
        bed.spawn_in(group, 0);
        bed.spawn_in(group, 1);
        bed.run(0, 50);
        bed.run(1, 50);
        let entities = [0, 1].map(|cpu| bed.scheduler.group_entity(group, Cpu(cpu)).expect("a group's"));
        let weights =
            |bed: &SchedulerTestbed| entities.map(|entity| bed.scheduler.entity_view(entity).weight);
        for idle in [true, false] {
            let mut told = bed.scheduler.clone();
            bed.pass(MS);
            bed.at(0);
            bed.scheduler.set_group_idle(group, idle);
            for (entity, weight) in entities.into_iter().zip(weights(&bed)) {
                assert_eq!(told.idleness_told(entity, weight), Some((group, idle)), "{weight}");
            }
            let root = told.rqs[0].cfs;
            told.force_group_idle(group, idle);
            assert_eq!(told.cfs(root).h_nr_idle, u32::from(idle));
            assert_eq!(told.idleness_told(entities[0], weights(&bed)[0]), None, "no news");
        }
        bed.scheduler.set_group_weight(group, 1);
        assert_eq!(bed.scheduler.idleness_told(entities[0], weights(&bed)[0]), None, "the least weight");
    }
}
