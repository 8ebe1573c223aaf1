//! A throttled task comes and goes while it waits for its group: on no queue, only among those that wait.
//!
//! Must not know: how it has left its queue.

use crate::all_cpus::Shared;
use crate::pelt::DetachPoint;
use crate::rq::{DequeueFlags, LockedRq};
use crate::task::TaskId;

impl Shared {
    /// A throttled task is queued: where its group is throttled, too, it only waits. Returns whether it does.
    ///
    /// Kernel: `enqueue_throttled_task()`, kernel/sched/fair.c.
    pub(crate) fn enqueue_throttled_task(&mut self, task: TaskId) -> bool {
        if !self.tasks[task.index()].throttled {
            return false;
        }
        let cfs_rq = self.entity_of(task).cfs_rq;
        let is_current = self.curr(self.tasks[task.index()].cpu) == task;
        if self.throttled_hierarchy(cfs_rq) && !is_current {
            self.cfs_mut(cfs_rq).runtime.limbo.push(task);
            return true;
        }
        self.tasks[task.index()].throttled = false;
        false
    }
}

impl LockedRq<'_> {
    /// A throttled task is taken off: it only waits. Returns whether it was one.
    ///
    /// Kernel: `dequeue_throttled_task()`, kernel/sched/fair.c.
    pub(crate) fn dequeue_throttled_task(&mut self, task: TaskId, flags: DequeueFlags) -> bool {
        if !self.shared.tasks[task.index()].throttled {
            return false;
        }
        let cfs_rq = self.entity_of(task).cfs_rq;
        self.cfs_mut(cfs_rq).runtime.limbo.retain(|&waiting| waiting != task);
        if flags.sleep {
            self.shared.tasks[task.index()].throttled = false;
        } else if flags.migrating && self.shared.generation.pelt.detach_point == DetachPoint::Dequeue {
            self.detach_entity_cfs_rq(self.shared.tasks[task.index()].se);
        }
        true
    }
}
