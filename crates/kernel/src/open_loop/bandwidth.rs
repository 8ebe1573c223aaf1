//! Bandwidth control in open loop: the recorded kernel says what is throttled, and no run time is counted.
//!
//! Must not know: quotas, pools, timers.

use super::QueueId;
use crate::fair::bandwidth::Throttling;
use crate::group::GroupId;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl Scheduler {
    /// Whether tasks leave one by one while their group is throttled, and not the group as a whole.
    pub fn throttles_tasks(&self) -> bool {
        self.shared.generation.bandwidth.throttling == Throttling::TasksAtUserReturn
    }

    /// A group's queue is throttled.
    ///
    /// Kernel: `throttle_cfs_rq()` once nothing is left to be had.
    pub fn force_throttled(&mut self, queue: QueueId) {
        if !self.cfs(queue.0).runtime.throttled {
            self.stand_on(self.cfs(queue.0).cpu);
            self.shared.bandwidth_used = true;
            self.queue_rq_lock(queue.0).leave_for_want_of_runtime(queue.0);
        }
    }

    /// It runs again.
    ///
    /// Kernel: `unthrottle_cfs_rq()`.
    pub fn force_unthrottled(&mut self, queue: QueueId) {
        if self.cfs(queue.0).runtime.throttled {
            self.stand_on(self.cfs(queue.0).cpu);
            self.queue_rq_lock(queue.0).unthrottle_cfs_rq(queue.0);
        }
    }

    /// Whether a queue's group, or one that it is in, is throttled on its CPU.
    pub fn is_throttled(&self, queue: QueueId) -> bool {
        self.shared.throttled_hierarchy(queue.0)
    }

    /// The group that a queue is one of.
    pub fn group_of_queue(&self, queue: QueueId) -> GroupId {
        self.cfs(queue.0).group
    }

    /// Whether a queue's own group is throttled, so that its entity is off the queue above.
    pub fn ends_at(&self, queue: QueueId) -> bool {
        self.shared.cuts_off(queue.0)
    }

    /// Whether a task waits for its throttled group.
    pub fn is_in_limbo(&self, task: TaskId) -> bool {
        self.task(task).throttled
    }

    /// A task leaves its queue since its group is throttled.
    ///
    /// Kernel: `throttle_cfs_rq_work()`.
    pub fn force_into_limbo(&mut self, task: TaskId) {
        if self.is_on_queue(task) && !self.is_in_limbo(task) {
            self.stand_on(self.task(task).cpu);
            self.task_rq_lock(task).enter_limbo(task);
        }
    }

    /// A task that waits for its throttled group is moved to another, for which it waits from now on.
    ///
    /// Kernel: `sched_move_task()` of what `dequeue_throttled_task()` and `enqueue_throttled_task()` keep apart.
    pub fn regroup_in_limbo(&mut self, task: TaskId, group: GroupId) {
        if self.is_in_limbo(task) {
            let old = self.entity_of(task).cfs_rq;
            self.cfs_mut(old).runtime.limbo.retain(|&waiting| waiting != task);
            self.change_group(task, Some(group));
            let new = self.entity_of(task).cfs_rq;
            self.cfs_mut(new).runtime.limbo.push(task);
        }
    }

    /// It comes back.
    pub fn force_out_of_limbo(&mut self, task: TaskId) {
        if self.is_in_limbo(task) {
            self.stand_on(self.task(task).cpu);
            let queue = self.entity_of(task).cfs_rq;
            self.cfs_mut(queue).runtime.limbo.retain(|&waiting| waiting != task);
            self.task_rq_lock(task).come_back(task);
        }
    }
}
