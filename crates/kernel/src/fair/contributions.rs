//! What entities contribute to the averages of their queues, and what a change of their weight or queue makes of it.
//!
//! Must not know: when that happens, and a runqueue's clock.

use fairlab_event::Cpu;

use crate::all_cpus::Shared;
use crate::cfs_rq::CfsRq;
use crate::entity::{CfsRqId, SchedEntity, SeId, group_runnable_load};
use crate::generation::Feature;
use crate::pelt::rules::{Invariance, PeltRules};
use crate::pelt::{
    CfsRqLoad, CpuScale, EntityWeight, GroupEntity, GroupLoad, RunnableKind, UtilEst, calc_group_runnable,
};
use crate::task::{Task, TaskId};
use crate::weight::LoadWeight;

/// Gives an entity a weight and a runnable weight, by which its averages join its queue; load-weighted runnability only.
///
/// Kernel: `reweight_entity()`, kernel/sched/fair.c, to v5.6.
pub(crate) fn set_runnable_weight(
    rules: &PeltRules,
    queue: &mut CfsRqLoad,
    entity: &mut SchedEntity,
    load: LoadWeight,
    runnable_weight: u64,
) {
    let old = entity.load;
    if entity.on_rq {
        queue.remove_runnable(&entity.avg, entity.runnable_load());
    }
    (entity.load, entity.runnable_weight) = (load, runnable_weight);
    match old.raw() == load.raw() {
        true => rules.rejoin(queue, &mut entity.avg, load.scaled_down()),
        false => rules.reweight_entity(queue, &mut entity.avg, old.scaled_down(), load.scaled_down()),
    }
    let runnable = entity.runnable_load();
    entity.avg.update_runnable_avg(runnable.weight);
    if entity.on_rq {
        queue.add_runnable(&entity.avg, runnable);
    }
}

/// The same for a group's entity that keeps its weight.
#[inline(always)]
pub(crate) fn keep_group_weight(
    rules: &PeltRules,
    queue: &mut CfsRqLoad,
    entity: &mut SchedEntity,
    runnable_weight: u64,
) {
    let [old, new] = [entity.runnable_weight, runnable_weight].map(group_runnable_load);
    entity.runnable_weight = runnable_weight;
    rules.rejoin(queue, &mut entity.avg, entity.load.scaled_down());
    if entity.on_rq {
        queue.remove_runnable(&entity.avg, old);
    }
    entity.avg.update_runnable_avg(new.weight);
    if entity.on_rq {
        queue.add_runnable(&entity.avg, new);
    }
}

/// Ages an entity and its queue up to `now`, if nothing is to be done but to let their sums grow. Returns whether it was so;
/// if not, the entity's may have grown, and the queue is left. `kind` is the rules', where it is known beforehand.
#[inline(always)]
pub(crate) fn grow_sums(
    rules: &PeltRules,
    kind: RunnableKind,
    se: SeId,
    entity: &mut SchedEntity,
    queue: &mut CfsRq,
    (now, scale): (u64, CpuScale),
) -> bool {
    if entity.avg.last_update_time == 0 || queue.tracked.removed.nr > 0 {
        return false;
    }
    match entity.avg.units_within_period(now) {
        None => return false,
        Some(0) => {}
        Some(units) => {
            let state = entity.tracked_state(queue.member == Some(se));
            kind.grow_se(units, scale, &mut entity.avg, state);
        }
    }
    match queue.tracked.avg.units_within_period(now) {
        None => return false,
        Some(0) => {}
        Some(units) => {
            let state = queue.tracked_state(rules);
            kind.grow_cfs_rq(units, scale, &mut queue.tracked.avg, state);
        }
    }
    true
}

impl Shared {
    pub(crate) fn entity_weight(&self, se: SeId) -> EntityWeight {
        self.se(se).tracked_weight()
    }

    /// Whether an entity's CPU is slower than the fastest, and what it contributes is scaled by that.
    #[inline(always)]
    pub(crate) fn scales_contributions(&self, se: SeId) -> bool {
        self.generation.pelt.invariance == Invariance::Contribution
            && self.cpu_scale(self.cfs(self.se(se).cfs_rq).cpu) != CpuScale::FULL
    }

    /// What contributions on a CPU are scaled by; where the clock is scaled instead, the CPU is not asked.
    #[inline]
    pub(crate) fn contribution_scale(&self, cpu: Cpu) -> CpuScale {
        match self.generation.pelt.invariance {
            Invariance::Contribution => self.cpu_scale(cpu),
            Invariance::PeltClock => CpuScale::FULL,
        }
    }

    /// What changed below a group's entity is passed up to it and to its queue.
    pub(crate) fn propagate_entity_load_avg(&mut self, se: SeId) -> bool {
        let (cfs_rq, Some(below)) = (self.se(se).cfs_rq, self.se(se).my_q) else { return false };
        let entity = GroupEntity {
            weight: self.entity_weight(se),
            on_rq: self.se(se).on_rq,
            group_weight: self.cfs(below).load.scaled_down(),
            capacity: self.arch_scale_cpu_capacity(self.cfs(cfs_rq).cpu),
        };
        let (mut parent, mut group) = (self.cfs(cfs_rq).tracked, self.cfs(below).tracked);
        let rules = self.generation.pelt;
        let changed =
            rules.propagate_entity_load_avg(&mut parent, &mut self.se_mut(se).avg, &mut group, entity);
        self.cfs_mut(cfs_rq).tracked = parent;
        self.cfs_mut(below).tracked = group;
        changed
    }

    /// A sleeping or ending task leaves its queue; what it counted goes with the queue's next update.
    pub(crate) fn remove_entity_load_avg(&mut self, task: TaskId) {
        let se = self.tasks[task.index()].se;
        let (cfs_rq, weight, rules) = (self.se(se).cfs_rq, self.entity_weight(se), self.generation.pelt);
        let queue = &mut self.cfs_rqs[cfs_rq.0 as usize].tracked;
        rules.remove_entity_load_avg(queue, &mut self.entities[se.0 as usize].avg, weight);
    }

    /// A task's entity will compete on another queue: its age is measured by that queue's clock (`set_task_rq_fair()`).
    pub(crate) fn change_clock(&mut self, se: SeId, next: CfsRqId) {
        let last_update = |cfs_rq: CfsRqId| self.cfs(cfs_rq).tracked.avg.last_update_time;
        let (previous, next) = (last_update(self.se(se).cfs_rq), last_update(next));
        let (weight, rules) = (self.entity_weight(se), self.generation.pelt);
        rules.set_task_rq_fair(&mut self.se_mut(se).avg, weight, previous, next);
    }

    /// Notes how many runnable tasks a group's entity stands for (`se_update_runnable()`).
    pub(crate) fn se_update_runnable(&mut self, se: SeId) {
        if self.generation.pelt.runnable == RunnableKind::TaskCount {
            let entity = &mut self.entities[se.0 as usize];
            if let Some(below) = entity.my_q {
                entity.runnable_weight = self.cfs_rqs[below.0 as usize].runnable_tasks(&self.generation.pelt);
            }
        }
    }

    /// An entity counts as runnable on its queue (`enqueue_runnable_load_avg()`, to v5.6).
    pub(crate) fn enqueue_runnable_load_avg(&mut self, se: SeId) {
        let (rules, entity) = (&self.generation.pelt, &self.entities[se.0 as usize]);
        if rules.runnable == RunnableKind::LoadWeighted {
            let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
            queue.add_runnable(&entity.avg, entity.runnable_load());
        }
    }

    /// It no longer does (`dequeue_runnable_load_avg()`, to v5.6).
    pub(crate) fn dequeue_runnable_load_avg(&mut self, se: SeId) {
        let (rules, entity) = (&self.generation.pelt, &self.entities[se.0 as usize]);
        if rules.runnable == RunnableKind::LoadWeighted {
            let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
            queue.remove_runnable(&entity.avg, entity.runnable_load());
        }
    }

    /// An entity's weight changes, and a group's runnable weight with it: its averages leave the queue with the old ones
    /// and join with the new ones (`reweight_entity()`).
    pub(crate) fn set_entity_weight(&mut self, se: SeId, load: LoadWeight) {
        if self.generation.pelt.runnable == RunnableKind::LoadWeighted {
            return self.set_runnable_weight(se, load);
        }
        let entity = &mut self.entities[se.0 as usize];
        let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
        let (old, new) = (entity.load.scaled_down(), load.scaled_down());
        self.generation.pelt.reweight_entity(queue, &mut entity.avg, old, new);
        entity.load = load;
    }

    /// The same with the weight that the entity has.
    pub(crate) fn keep_entity_weight(&mut self, se: SeId) {
        let entity = &mut self.entities[se.0 as usize];
        if self.generation.pelt.runnable == RunnableKind::LoadWeighted {
            let load = entity.load;
            return self.set_runnable_weight(se, load);
        }
        let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
        self.generation.pelt.rejoin(queue, &mut entity.avg, entity.load.scaled_down());
    }

    /// The same to v5.6, where a group has a runnable weight beside its weight.
    #[inline(never)]
    pub(crate) fn set_runnable_weight(&mut self, se: SeId, load: LoadWeight) {
        let runnable_weight = self.group_runnable(se, load.raw());
        let (rules, entity) = (&self.generation.pelt, &mut self.entities[se.0 as usize]);
        let queue = &mut self.cfs_rqs[entity.cfs_rq.0 as usize].tracked;
        set_runnable_weight(rules, queue, entity, load, runnable_weight);
    }

    /// The runnable weight of a group's entity that weighs `shares`, scaled up; a task's is its weight.
    pub(crate) fn group_runnable(&self, se: SeId, shares: u64) -> u64 {
        let Some(below) = self.se(se).my_q else { return shares };
        let below = self.cfs(below);
        self.group_runnable_of(below, self.group_load(below), shares)
    }

    /// The same, where `below` is the queue that the entity stands for.
    #[inline(always)]
    pub(crate) fn group_runnable_of(&self, below: &CfsRq, load: GroupLoad, shares: u64) -> u64 {
        let queue = &below.tracked;
        let runnable_weight = LoadWeight::from_raw(queue.runnable_weight).scaled_down() as i64;
        calc_group_runnable(load, queue.avg.runnable_avg as i64, runnable_weight, shares as i64) as u64
    }

    /// The root queue expects a queued task's estimate (`util_est_enqueue()`).
    pub(crate) fn util_est_enqueue(&mut self, task: TaskId) {
        self.change_util_est(task, PeltRules::util_est_enqueue);
    }

    /// The root queue no longer expects it (`util_est_dequeue()`).
    pub(crate) fn util_est_dequeue(&mut self, task: TaskId) {
        self.change_util_est(task, PeltRules::util_est_dequeue);
    }

    #[inline(always)]
    pub(crate) fn change_util_est(
        &mut self,
        task: TaskId,
        change: impl Fn(&PeltRules, &mut UtilEst, &UtilEst),
    ) {
        if self.has(Feature::UtilEst) {
            let Task { cpu, se, .. } = self.tasks[task.index()];
            let root = CfsRqId::root(cpu);
            let (entity, queue) = (&self.entities[se.0 as usize], &mut self.cfs_rqs[root.0 as usize]);
            change(&self.generation.pelt, &mut queue.tracked.avg.util_est, &entity.avg.util_est);
        }
    }
}
