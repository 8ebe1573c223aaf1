//! Whether something is throttled, and what that prevents.
//!
//! Must not know: runtime, and why a group is throttled.

use fairlab_event::Cpu;

use crate::all_cpus::Shared;
use crate::entity::CfsRqId;
use crate::fair::bandwidth::Throttling;
use crate::fair::bandwidth::rules::{ThrottledMigration, ThrottledPreemption};
use crate::group::GroupId;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl Shared {
    /// Whether a queue's group, or one that it is in, is throttled on its CPU (`throttled_hierarchy()`).
    pub(crate) fn throttled_hierarchy(&self, cfs_rq: CfsRqId) -> bool {
        self.bandwidth_used && self.cfs(cfs_rq).runtime.throttle_count > 0
    }

    /// Whether the way up from a queue ends there: it is throttled, and its entity off the queue above.
    pub(crate) fn cuts_off(&self, cfs_rq: CfsRqId) -> bool {
        self.bandwidth_used
            && self.cfs(cfs_rq).runtime.throttled
            && self.generation.bandwidth.throttling == Throttling::WholeQueue
    }

    /// A task will leave its queue when it returns to user mode (`task_throttle_setup_work()`).
    pub(crate) fn set_throttle_work(&mut self, task: TaskId) {
        self.tasks[task.index()].throttle_work = true;
    }

    /// Whether bandwidth control keeps a task that waits where it is, when balancing would move it to `dest`. Pure.
    ///
    /// Kernel: `throttled_lb_pair()` to v6.17, `lb_throttled_hierarchy()` from v6.18 (0d4eaf8caf8c), kernel/sched/fair.c.
    pub(crate) fn throttled_for_balance(&self, task: TaskId, dest: Cpu) -> bool {
        let known = &self.tasks[task.index()];
        let on = |cpu: Cpu| self.throttled_hierarchy(self.cfs_rq_of_group(known.group, cpu));
        self.bandwidth_used
            && match self.generation.bandwidth.throttled_migration {
                ThrottledMigration::NeitherEnd => on(known.cpu) || on(dest),
                ThrottledMigration::Free => false,
                ThrottledMigration::NotThere => on(dest),
            }
    }

    /// Whether a task that was just queued cannot preempt, since it or its group is throttled. Pure.
    pub(crate) fn throttled_for_preemption(&self, task: TaskId) -> bool {
        match self.generation.bandwidth.throttled_preemption {
            ThrottledPreemption::ByQueue => self.throttled_hierarchy(self.entity_of(task).cfs_rq),
            ThrottledPreemption::ByTask => self.tasks[task.index()].throttled,
        }
    }

    /// Whether a group that a task has just left may be preferred at the next pick. Pure.
    pub(crate) fn may_be_preferred(&self, cfs_rq: CfsRqId) -> bool {
        self.generation.bandwidth.throttled_preemption == ThrottledPreemption::ByTask
            || !self.throttled_hierarchy(cfs_rq)
    }

    /// A group's queue on a CPU.
    pub(crate) fn cfs_rq_of_group(&self, group: GroupId, cpu: Cpu) -> CfsRqId {
        self.groups[group.0 as usize].cfs_rqs[cpu.index()]
    }
}

impl Scheduler {
    /// Whether the running task of `cpu` has to look for a throttled group before it returns to user mode.
    #[inline]
    pub(crate) fn has_throttle_work(&self, cpu: Cpu) -> bool {
        self.shared.bandwidth_used && self.shared.tasks[self.curr(cpu).index()].throttle_work
    }
}
