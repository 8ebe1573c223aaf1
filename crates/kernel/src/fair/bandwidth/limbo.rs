//! Tasks that leave one by one while their group is throttled (from v6.18).

use crate::rq::LockedRq;
use crate::shared::Shared;
use fairlab_event::Cpu;

use super::{JoinThrottled, ThrottlePoint, ThrottledMigration, ThrottledPreemption, Throttling};
use crate::entity::CfsRqId;
use crate::group::GroupId;
use crate::pelt::DetachPoint;
use crate::rq::{DequeueFlags, EnqueueFlags};
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl Shared {
    /// A task will leave its queue when it returns to user mode (`task_throttle_setup_work()`).
    pub(super) fn set_throttle_work(&mut self, task: TaskId) {
        self.tasks[task.index()].throttle_work = true;
    }

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

impl LockedRq<'_> {
    fn throttle_cfs_rq_work(&mut self) -> bool {
        let cpu = self.rq.cpu;
        let task = self.shared.curr(cpu);
        if !std::mem::take(&mut self.shared.tasks[task.index()].throttle_work) {
            return false;
        }
        let cfs_rq = self.entity_of(task).cfs_rq;
        let is_fair = self.shared.tasks[task.index()].policy.is_fair();
        if !is_fair || !self.shared.throttled_hierarchy(cfs_rq) {
            return false;
        }
        self.update_rq_clock();
        self.enter_limbo(task);
        self.shared.resched_curr(cpu, "throttle_cfs_rq_work");
        true
    }

    /// A task leaves its queue, and waits for its group.
    pub(crate) fn enter_limbo(&mut self, task: TaskId) {
        let cfs_rq = self.entity_of(task).cfs_rq;
        let flags = DequeueFlags { sleep: true, throttle: true, ..DequeueFlags::default() };
        self.dequeue_task_fair(task, flags);
        self.count_running(-1);
        self.cfs_mut(cfs_rq).runtime.limbo.push(task);
        self.shared.tasks[task.index()].throttled = true;
    }

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

    /// Tasks that waited for their group are queued as if they woke, the last one to leave first.
    pub(super) fn leave_limbo(&mut self, cfs_rq: CfsRqId) {
        let mut waiting = std::mem::take(&mut self.cfs_mut(cfs_rq).runtime.limbo);
        let stops = self.shared.generation.bandwidth.throttle_point == ThrottlePoint::Accounting;
        while let Some(task) = waiting.pop() {
            // Queueing may have throttled a group above.
            if stops && self.cfs(cfs_rq).runtime.throttle_count > 0 {
                waiting.push(task);
                break;
            }
            self.come_back(task);
        }
        let joined_meanwhile = std::mem::replace(&mut self.cfs_mut(cfs_rq).runtime.limbo, waiting);
        self.cfs_mut(cfs_rq).runtime.limbo.extend(joined_meanwhile);
    }

    /// A task that waited for its group is queued as if it woke.
    pub(crate) fn come_back(&mut self, task: TaskId) {
        self.shared.tasks[task.index()].throttled = false;
        let wakeup = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
        if self.enqueue_task_fair(task, wakeup) {
            self.count_running(1);
        }
    }

    /// A new group's queue is throttled as the one above it. Kernel: `sync_throttle()`, kernel/sched/fair.c.
    pub(crate) fn sync_throttle(&mut self, above: CfsRqId, cfs_rq: CfsRqId) {
        let count = self.cfs(above).runtime.throttle_count;
        self.cfs_mut(cfs_rq).runtime.throttle_count = count;
        let rules = self.shared.generation.bandwidth;
        let stops =
            rules.throttling == Throttling::WholeQueue || rules.join_throttled == JoinThrottled::ClockStopped;
        if count > 0 && stops {
            self.stop_pelt_clock(cfs_rq);
        }
    }
}

impl Scheduler {
    /// Whether the running task of `cpu` has to look for a throttled group before it returns to user mode.
    #[inline]
    pub fn has_throttle_work(&self, cpu: Cpu) -> bool {
        self.shared.bandwidth_used && self.shared.tasks[self.curr(cpu).index()].throttle_work
    }

    /// The running task of `cpu` is about to return to user mode. If its group is throttled it leaves its queue instead,
    /// and a reschedule is pending. Returns whether it does.
    ///
    /// Kernel: `throttle_cfs_rq_work()`, kernel/sched/fair.c (e1fad12dcb66).
    #[inline]
    pub fn throttle_at_user_return(&mut self, cpu: Cpu) -> bool {
        self.shared.bandwidth_used && self.rq_lock(cpu).throttle_cfs_rq_work()
    }
}
