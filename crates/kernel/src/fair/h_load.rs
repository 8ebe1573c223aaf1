//! What tasks and queues count of their CPU's load, their groups' weights considered.
//!
//! Must not know: who asks.

use crate::all_cpus::Shared;
use crate::entity::CfsRqId;
use crate::task::{Policy, TaskId};

impl Shared {
    /// What a task counts of its CPU's load where a CPU is selected.
    pub(crate) fn load_in_selection(&self, task: TaskId) -> u64 {
        self.hooks.load_of(task).unwrap_or_else(|| self.task_h_load(task))
    }

    /// What a task counts of its CPU's load, its groups' weights considered. Its queue's part of that load is that of when
    /// it was asked for first in this jiffy, whatever has come and gone since.
    ///
    /// Kernel: `task_h_load()`, kernel/sched/fair.c.
    pub(crate) fn task_h_load(&self, task: TaskId) -> u64 {
        self.task_h_load_after(task, None)
    }

    /// What it counts once others have left its queue, whose average load is this then; the CPU's load still counts them for a while.
    pub(crate) fn task_h_load_after(&self, task: TaskId, load_avg: Option<u64>) -> u64 {
        if self.tasks[task.index()].policy == Policy::Swapper {
            return 0;
        }
        self.part_of(task, self.h_load(self.entity_of(task).cfs_rq), load_avg)
    }

    /// The same if the task's queue counts `load` of its CPU's.
    pub(crate) fn part_of(&self, task: TaskId, load: u64, load_avg: Option<u64>) -> u64 {
        let se = self.entity_of(task);
        let queue = load_avg.unwrap_or_else(|| self.cfs(se.cfs_rq).tracked.avg.load_avg);
        // As unsigned longs are: 5.10's loads in moved groups may run away, and the product wraps.
        se.avg.load_avg.wrapping_mul(load) / (queue + 1)
    }

    /// Whether somebody has asked in this jiffy what a queue counts of its CPU's load.
    pub(crate) fn h_load_known(&self, cfs_rq: CfsRqId) -> bool {
        self.cfs(cfs_rq).h_load.is_some_and(|(_, jiffy)| jiffy == self.jiffies())
    }

    /// What a queue counts of its CPU's load.
    pub(crate) fn h_load(&self, cfs_rq: CfsRqId) -> u64 {
        if let Some((load, _)) = self.cfs(cfs_rq).h_load.filter(|(_, jiffy)| *jiffy == self.jiffies()) {
            return load;
        }
        self.h_load_anew(cfs_rq)
    }

    /// The same as it is now.
    pub(crate) fn h_load_anew(&self, cfs_rq: CfsRqId) -> u64 {
        let Some(entity) = self.cfs(cfs_rq).entity else { return self.cfs(cfs_rq).tracked.avg.load_avg };
        let above = self.se(entity).cfs_rq;
        self.h_load(above).wrapping_mul(self.se(entity).avg.load_avg)
            / (self.cfs(above).tracked.avg.load_avg + 1)
    }

    /// Somebody has asked for what tasks of this queue count: until the jiffy is over, the queue's part stays.
    ///
    /// Kernel: `update_cfs_rq_h_load()`, kernel/sched/fair.c.
    /// Departs: who looks for misfit tasks or balances memory does not ask.
    pub(crate) fn update_cfs_rq_h_load(&mut self, cfs_rq: CfsRqId) {
        let now = self.jiffies();
        let mut next = Some(cfs_rq);
        while let Some(queue) = next {
            if self.h_load_known(queue) {
                return;
            }
            let load = self.h_load(queue);
            self.cfs_mut(queue).h_load = Some((load, now));
            next = self.cfs(queue).entity.map(|entity| self.se(entity).cfs_rq);
        }
    }
}
