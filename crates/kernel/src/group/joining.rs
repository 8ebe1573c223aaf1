//! A task's entity competes on its group's queue of a CPU.
//!
//! Must not know: how it is queued there.

use fairlab_event::Cpu;

use crate::all_cpus::Shared;
use crate::task::TaskId;

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

    /// Makes `cpu` the task's CPU (`__set_task_cpu()`); it must not be queued.
    pub(crate) fn move_entity_to(&mut self, task: TaskId, cpu: Cpu) {
        debug_assert!(!self.entity_of(task).on_rq, "a queued task does not change queues");
        self.tasks[task.index()].cpu = cpu;
        self.set_task_rq(task, cpu);
    }
}
