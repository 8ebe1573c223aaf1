//! Task groups (`struct task_group`): one queue and one entity a CPU, and how a group's weight is shared out among them.

pub(crate) mod idle;
mod moving;
pub(crate) mod rules;
#[cfg(test)]
mod tests;

use crate::rq::LockedRq;
use crate::shared::Shared;
use fairlab_event::Cpu;

use crate::cfs_rq::CfsRq;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::bandwidth::{Pool, ThrottledWeight};
use crate::fair::load::LoadUpdate;
use crate::fair::rules::{EmptyGroup, Reweight};
use crate::pelt::{GroupLoad, calc_group_shares};
use crate::scheduler::Scheduler;
use crate::task::TaskId;
use crate::weight::LoadWeight;

pub use rules::{
    Competition, ExitMove, GroupEffect, GroupRules, IdleCredit, IdleGroups, IdlePreemption, IdleProtection,
    IdleReweight, MovedRunning, MovedWaiting, ReweightCharge, ReweightLag, ReweightMinimum, SharedShares,
};

/// Index of a task group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The root group: every CPU's own `cfs_rq`.
    pub const ROOT: GroupId = GroupId(0);
}

/// One task group.
#[derive(Clone, Debug)]
pub(crate) struct TaskGroup {
    /// Weight of the whole group, scaled up (`tg->shares`).
    pub shares: u64,
    /// Everything in it counts as `SCHED_IDLE` (`cpu.idle`).
    pub idle: bool,
    /// Sum of what its queues contribute, scaled down (`tg->load_avg`).
    pub load_avg: i64,
    /// Sum of what they tell of runnable tasks, 1024 for each that always is (`tg->runnable_avg`).
    pub runnable_avg: i64,
    /// Its queue on each CPU.
    pub cfs_rqs: Vec<CfsRqId>,
    /// Its entity on each CPU; none for the root.
    pub entities: Vec<SeId>,
    /// Groups right below it, the oldest first.
    pub children: Vec<GroupId>,
    /// What `cpu.max` allows it.
    pub pool: Pool,
}

impl TaskGroup {
    /// The root group over the CPUs' own queues.
    pub fn root(nr_cpus: usize) -> TaskGroup {
        TaskGroup {
            shares: LoadWeight::of_nice(0).raw(),
            idle: false,
            load_avg: 0,
            runnable_avg: 0,
            cfs_rqs: (0..nr_cpus as u32).map(CfsRqId).collect(),
            entities: Vec::new(),
            children: Vec::new(),
            pool: Pool::new(),
        }
    }
}

impl Shared {
    /// Makes a task's entity compete on its group's queue of `cpu` (`set_task_rq()`).
    pub(crate) fn set_task_rq(&mut self, task: TaskId, cpu: Cpu) {
        let group = &self.groups[self.tasks[task.index()].group.0 as usize];
        let (cfs_rq, parent) = (group.cfs_rqs[cpu.index()], group.entities.get(cpu.index()).copied());
        let se = self.tasks[task.index()].se;
        self.change_clock(se, cfs_rq);
        let depth = parent.map_or(0, |above| self.se(above).depth + 1);
        let entity = self.se_mut(se);
        (entity.cfs_rq, entity.parent, entity.depth) = (cfs_rq, parent, depth);
    }

    /// What the entity of `queue` is to weigh, scaled up; `None` where it keeps its weight.
    #[inline]
    pub(crate) fn shares_now(&self, queue: &CfsRq) -> Option<u64> {
        self.shares_of(queue, self.group_load(queue))
    }

    /// The same, where what it is computed from is known.
    #[inline(always)]
    pub(crate) fn shares_of(&self, queue: &CfsRq, load: GroupLoad) -> Option<u64> {
        let throttled = self.bandwidth_used
            && self.generation.bandwidth.throttled_weight == ThrottledWeight::Kept
            && queue.runtime.throttle_count > 0;
        let keeps =
            throttled || (load.weight == 0 && self.generation.fair.empty_group == EmptyGroup::KeepsWeight);
        (!keeps).then(|| calc_group_shares(load) as u64)
    }

    /// How many times its shares a group's queues share.
    ///
    /// Kernel: `calc_concur_shares()`, kernel/sched/fair.c (5c0b58bd1c9f, by default from fb1050ac8e40).
    /// Departs: groups are bound to no CPUs; `cgroup_mode` is what it is by default.
    fn concurrency(&self, group: &TaskGroup) -> i64 {
        match self.generation.groups.shared_shares {
            SharedShares::Group => 1,
            SharedShares::Concurrent => {
                let cpus = self.topology.online().weight() as i64;
                (group.runnable_avg >> 10).max(1).min(cpus)
            }
        }
    }

    /// What the weight of a group's entity is computed from; `queue` is the one that it stands for.
    pub(crate) fn group_load(&self, queue: &CfsRq) -> GroupLoad {
        let group = &self.groups[queue.group.0 as usize];
        GroupLoad {
            tg_shares: group.shares as i64 * self.concurrency(group),
            tg_load_avg: group.load_avg,
            tg_load_avg_contrib: queue.tracked.tg_load_avg_contrib as i64,
            weight: queue.load.scaled_down() as i64,
            load_avg: queue.tracked.avg.load_avg as i64,
        }
    }
}

impl LockedRq<'_> {
    /// Gives a group's entity the weight that its queue's share of the group's load earns. Nothing for a task's entity.
    ///
    /// Kernel: `update_cfs_group()`, kernel/sched/fair.c.
    #[inline]
    pub(crate) fn update_cfs_group(&mut self, se: SeId) {
        if let Some(below) = self.se(se).my_q {
            self.update_group_entity(se, below);
        }
    }

    #[inline]
    fn update_group_entity(&mut self, se: SeId, below: CfsRqId) {
        if self.shared.weights_are_given() {
            self.take_given_shares(se);
        } else if let Some(shares) = self.shared.shares_now(self.cfs(below)) {
            self.take_shares(se, shares);
        }
    }

    #[inline(never)]
    fn take_given_shares(&mut self, se: SeId) {
        if let Some(given) = self.shared.take_given_weight(se) {
            self.take_shares(se, given);
        }
    }

    #[inline(never)]
    pub(crate) fn take_shares(&mut self, se: SeId, shares: u64) {
        if self.se(se).load.raw() != shares {
            self.reweight_entity(se, LoadWeight::from_raw(shares));
        } else if self.shared.generation.fair.reweight == Reweight::KeepVruntime {
            // To v6.5 the weight is set anew all the same.
            self.keep_weight_of_entity(se);
        }
    }
}

impl Scheduler {
    /// Creates a group below `parent` with cgroup v2 weight `weight` (1…10000, 100 by default).
    ///
    /// Kernel: `sched_create_group()`, `init_tg_cfs_entry()`, `cpu_weight_write_u64()`.
    pub fn new_group(&mut self, parent: GroupId, weight: u64) -> GroupId {
        let id = GroupId(self.shared.groups.len() as u32);
        let (mut cfs_rqs, mut entities) = (Vec::new(), Vec::new());
        for cpu in self.shared.topology.cpus() {
            let above = &self.shared.groups[parent.0 as usize];
            let (queue, entity) = (above.cfs_rqs[cpu.index()], above.entities.get(cpu.index()).copied());
            let cfs_rq = CfsRqId(self.shared.cfs_rqs.len() as u32);
            let se = SeId(self.shared.entities.len() as u32);
            let order = self.shared.generation.fair.pick.timeline_order();
            self.shared.cfs_rqs.push(CfsRq::of_group(cpu, order, id, se));
            let depth = entity.map_or(0, |above| self.se(above).depth + 1);
            self.shared.entities.push(SchedEntity::for_group(cfs_rq, queue, entity, depth));
            self.queue_rq_lock(queue).sync_throttle(queue, cfs_rq);
            cfs_rqs.push(cfs_rq);
            entities.push(se);
        }
        let shares = shares_of_cgroup_weight(weight);
        let (children, pool) = (Vec::new(), Pool::new());
        let (load_avg, runnable_avg) = (0, 0);
        self.shared.groups.push(TaskGroup {
            shares,
            idle: false,
            load_avg,
            runnable_avg,
            cfs_rqs,
            entities,
            children,
            pool,
        });
        self.shared.groups[parent.0 as usize].children.push(id);
        self.online_fair_sched_group(id);
        id
    }

    /// A new group's entities join the averages of the queues above, with nothing to bring: what first runs in the group is
    /// not counted a second time when they are first queued.
    ///
    /// Kernel: `online_fair_sched_group()`, kernel/sched/fair.c.
    fn online_fair_sched_group(&mut self, group: GroupId) {
        for cpu in self.shared.topology.cpus() {
            let se = self.shared.groups[group.0 as usize].entities[cpu.index()];
            self.rq_lock(cpu).update_rq_clock();
            self.entity_rq_lock(se).attach_entity_cfs_rq(se);
        }
    }

    /// Changes a group's cgroup v2 weight; that of an idle group stays. Kernel: `sched_group_set_shares()`.
    pub fn set_group_weight(&mut self, group: GroupId, weight: u64) {
        if !self.shared.groups[group.0 as usize].idle {
            self.set_group_shares(group, shares_of_cgroup_weight(weight));
        }
    }

    fn set_group_shares(&mut self, group: GroupId, shares: u64) {
        self.shared.groups[group.0 as usize].shares = shares;
        for cpu in self.shared.topology.cpus() {
            self.rq_lock(cpu).update_rq_clock();
            self.take_new_shares(group, cpu);
        }
    }

    /// A group's entity on `cpu`, and those above it, get the weights that new shares earn them.
    pub(crate) fn take_new_shares(&mut self, group: GroupId, cpu: Cpu) {
        let mut level = self.shared.groups[group.0 as usize].entities.get(cpu.index()).copied();
        while let Some(se) = level {
            self.entity_rq_lock(se).update_load_avg(se, LoadUpdate::TELL);
            self.entity_rq_lock(se).update_cfs_group(se);
            level = self.se(se).parent;
        }
    }

    /// Puts a task that has never been queued into a group.
    pub fn set_task_group(&mut self, task: TaskId, group: GroupId) {
        debug_assert!(!self.entity_of(task).on_rq, "a queued task is moved, not set");
        self.shared.tasks[task.index()].group = group;
        let cpu = self.shared.tasks[task.index()].cpu;
        self.shared.set_task_rq(task, cpu);
    }
}

/// `tg->shares` of a cgroup v2 weight: 100 is nice 0 (`sched_weight_from_cgroup()`, rounded to the nearest).
pub(crate) fn shares_of_cgroup_weight(weight: u64) -> u64 {
    let scaled_down = (weight * 1024 + 50) / 100;
    LoadWeight::from_scaled_down(scaled_down.clamp(2, 1 << 18)).raw()
}
