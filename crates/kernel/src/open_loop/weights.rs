//! Weights that groups and their entities have because a recording says so, in open loop: each CPU stands at the time of its
//! own runqueue.
//!
//! Must not know: how a recording shows them.

use std::collections::BTreeMap;

use fairlab_event::Cpu;

use super::EntityId;
use crate::core::Scheduler;
use crate::entity::SeId;
use crate::generation::behaviour::Reweight;
use crate::group::GroupId;
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

/// No entity weighs nothing; where a recording says so, it is damaged.
const LEAST_WEIGHT: u64 = 1;

/// Weights that the next update of a group's entity takes instead of computing one; without one it keeps its weight.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenWeights(BTreeMap<SeId, u64>);

impl Scheduler {
    /// From now on groups' entities have the weights that [`give_weight`](Self::give_weight) says.
    pub fn take_weights_as_given(&mut self) {
        self.given_weights = Some(GivenWeights::default());
    }

    /// The next update of a group's entity gives it `weight`, scaled up.
    pub fn give_weight(&mut self, entity: EntityId, weight: u64) {
        if let Some(given) = &mut self.given_weights {
            given.0.insert(entity.0, weight.max(LEAST_WEIGHT));
        }
    }

    /// Gives the weights that no update has taken, of entities on queues of `cpu`.
    pub fn flush_given_weights(&mut self, cpu: Cpu) {
        let given = self.given_weights.iter().flat_map(|given| given.0.keys().copied());
        let left = given.filter(|&se| self.cfs(self.se(se).cfs_rq).cpu == cpu).collect::<Vec<_>>();
        for se in left {
            self.update_cfs_group(se);
        }
    }

    /// The same for one entity.
    pub fn flush_given_weight(&mut self, entity: EntityId) {
        if self.given_weights.as_ref().is_some_and(|given| given.0.contains_key(&entity.0)) {
            self.update_cfs_group(entity.0);
        }
    }

    /// Whether updates give groups' entities only weights that are given.
    pub(crate) fn weights_are_given(&self) -> bool {
        self.given_weights.is_some()
    }

    /// The weight that an update has to give a group's entity, if one is given.
    pub(crate) fn take_given_weight(&mut self, se: SeId) -> Option<u64> {
        self.given_weights.as_mut()?.0.remove(&se)
    }

    /// Gives a group's entity that is off its queue another weight, with all that this changes.
    pub fn reweigh_off_queue(&mut self, entity: EntityId, weight: u64) {
        if !self.se(entity.0).on_rq && self.se(entity.0).load.raw() != weight {
            self.reweight_entity(entity.0, LoadWeight::from_raw(weight.max(LEAST_WEIGHT)));
        }
    }

    /// The point around which a change of weight scales an entity's distances on the time line, for one that stood at
    /// `vruntime`, on its queue or off it; `None` where it scales none.
    pub fn reweight_pivot(&self, entity: EntityId, vruntime: Vruntime, queued: bool) -> Option<Vruntime> {
        match self.generation.behaviours.reweight {
            Reweight::KeepVruntime | Reweight::ScaleLagOffQueue => None,
            Reweight::ScaleDeadlineAlways => Some(vruntime),
            _ if !queued => None,
            Reweight::ScaleDeadline => Some(vruntime),
            Reweight::ScaleAroundOthers
            | Reweight::ScaleAroundAverage
            | Reweight::PlaceAnew
            | Reweight::ScaleAllAroundAverage => Some(self.average(self.se(entity.0).cfs_rq)),
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
    }

    /// A group has `shares` from now on, scaled up; entities get the weights that this earns them. Those of an idle group
    /// stay.
    ///
    /// Kernel: `sched_group_set_shares()`, kernel/sched/fair.c.
    pub fn force_group_shares(&mut self, group: GroupId, shares: u64) {
        if self.groups[group.0 as usize].idle {
            return;
        }
        self.groups[group.0 as usize].shares = shares;
        for cpu in self.topology.cpus() {
            self.stand_on(cpu);
            self.take_new_shares(group, cpu);
        }
    }
}
