//! `sched_yield()`.

use crate::core::Scheduler;
use crate::generation::behaviour::Yield;
use crate::task::{Policy, TaskId};

impl Scheduler {
    /// Applies a yield of the running task.
    ///
    /// Kernel: `yield_task_fair()`, kernel/sched/fair.c. Variants: `SkipBuddy` to v6.5, `PushDeadline` from v6.6.
    pub(crate) fn yield_task_fair(&mut self, task: TaskId) {
        let (se, cpu) = (self.tasks[task.index()].se, self.tasks[task.index()].cpu);
        if self.nr_running(cpu) == 1 {
            return;
        }
        self.clear_buddies(se);
        match self.generation.behaviours.yielding {
            Yield::SkipBuddy => {
                if self.tasks[task.index()].policy != Policy::Batch {
                    self.update_curr(self.se(se).cfs_rq);
                }
                self.set_skip_buddy(se);
            }
            Yield::PushDeadline => {
                self.update_curr(self.se(se).cfs_rq);
                let entity = self.se_mut(se);
                entity.deadline = entity.deadline.plus(entity.load.virtual_time(entity.slice) as i64);
            }
        }
    }
}
