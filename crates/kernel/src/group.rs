//! Task groups (`struct task_group`): one queue and one entity a CPU, and how a group's weight is shared out among them.

pub(crate) mod idle;
mod joining;
mod moving;
mod shares;
mod task_group;
mod weights;

pub(crate) mod rules;

#[cfg(test)]
mod tests;

use fairlab_event::Cpu;

use crate::cfs_rq::CfsRq;
use crate::cpumask::CpuMask;
use crate::entity::{CfsRqId, SchedEntity, SeId};
use crate::fair::bandwidth::CfsBandwidth;
use crate::fair::load_update::LoadUpdate;
use crate::scheduler::Scheduler;
use crate::task::TaskId;
use crate::weight::LoadWeight;

pub use crate::ids::GroupId;
pub use rules::{
    Competition, ExitMove, GroupEffect, GroupRules, IdleCredit, IdleGroups, IdlePreemption, IdleProtection,
    IdleReweight, MovedRunning, MovedWaiting, ReweightCharge, ReweightLag, ReweightMinimum,
};
pub(crate) use shares::shares_of_cgroup_weight;
pub(crate) use task_group::TaskGroup;

impl Scheduler {
    /// Creates a group below `parent` with cgroup v2 weight `weight` (1…10000, 100 by default).
    ///
    /// Kernel: `sched_create_group()`, `init_tg_cfs_entry()`, `cpu_weight_write_u64()`.
    pub fn new_group(&mut self, parent: GroupId, weight: u64) -> GroupId {
        let id = GroupId(self.shared.groups.len() as u32);
        assert!(parent < id, "group {} is to have group {} above it", id.0, parent.0);
        let (mut cfs_rqs, mut entities) = (Vec::new(), Vec::new());
        for cpu in self.shared.topology.cpus() {
            let above = &self.shared.groups[parent.0 as usize];
            let (queue, entity) = (above.cfs_rqs[cpu.index()], above.entities.get(cpu.index()).copied());
            let cfs_rq = CfsRqId(self.shared.cfs_rqs.len() as u32);
            let se = SeId(self.shared.entities.len() as u32);
            let kind = self.shared.generation.fair.timeline_kind();
            self.shared.cfs_rqs.push(CfsRq::of_group(cpu, kind, id, se));
            let depth = entity.map_or(0, |above| self.se(above).depth + 1);
            self.shared.entities.push(SchedEntity::for_group(cfs_rq, queue, entity, depth));
            self.queue_rq_lock(queue).sync_throttle(queue, cfs_rq);
            cfs_rqs.push(cfs_rq);
            entities.push(se);
        }
        let shares = LoadWeight::of_nice(0).raw();
        let (children, pool) = (Vec::new(), CfsBandwidth::new());
        let (load_avg, runnable_avg) = (0, 0);
        let nr_cpus = self.shared.groups[parent.0 as usize].nr_cpus;
        self.shared.groups.push(TaskGroup {
            shares,
            idle: false,
            autogroup: false,
            load_avg,
            runnable_avg,
            cfs_rqs,
            entities,
            nr_cpus,
            children,
            pool,
        });
        self.shared.groups[parent.0 as usize].children.push(id);
        self.online_fair_sched_group(id);
        self.set_group_weight(id, weight);
        id
    }

    /// Creates the group of a new session, which stands for the root group to its tasks; `None` where autogroups are off.
    /// `nice` is what `/proc/PID/autogroup` says, whose weight it has.
    ///
    /// Kernel: `autogroup_create()`, `proc_sched_autogroup_set_nice()`, kernel/sched/autogroup.c.
    pub fn new_autogroup(&mut self, nice: i32) -> Option<GroupId> {
        if !self.shared.generation.autogroup {
            return None;
        }
        let id = self.new_group(GroupId::ROOT, 100);
        self.shared.groups[id.0 as usize].autogroup = true;
        self.set_group_shares(id, LoadWeight::of_nice(nice).raw());
        Some(id)
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

    /// Tells where tasks of a group may run (`cpuset.cpus.effective`). It counts where a group's weight goes by its CPUs, from its
    /// next use on; tasks are moved by their own masks.
    pub fn set_group_cpus(&mut self, group: GroupId, effective: &CpuMask) {
        self.shared.groups[group.0 as usize].nr_cpus = effective.weight();
    }

    /// Changes a group's cgroup v2 weight; that of an idle group stays. Kernel: `sched_group_set_shares()`.
    pub fn set_group_weight(&mut self, group: GroupId, weight: u64) {
        if !self.shared.groups[group.0 as usize].idle {
            self.set_group_shares(group, shares_of_cgroup_weight(weight));
        }
    }

    /// Nothing is computed for the shares that a group has: those of a new one are nice 0's, and so is its entities' weight, until
    /// somebody writes another.
    fn set_group_shares(&mut self, group: GroupId, shares: u64) {
        if self.shared.groups[group.0 as usize].shares == shares {
            return;
        }
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
