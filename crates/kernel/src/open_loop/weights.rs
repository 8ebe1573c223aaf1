//! Weights that groups and their entities have because a recording says so, in open loop: each CPU stands at the time of its
//! own runqueue.
//!
//! Must not know: how a recording shows them.

use fairlab_event::Cpu;

use super::EntityId;
use crate::entity::SeId;
use crate::group::GroupId;
use crate::pelt::MIN_SHARES;
use crate::scheduler::Scheduler;
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
}
