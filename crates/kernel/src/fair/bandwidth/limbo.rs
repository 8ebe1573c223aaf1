//! Tasks that leave one by one while their group is throttled (from v6.18).

use fairlab_event::Cpu;

use super::{JoinThrottled, ThrottlePoint, Throttling};
use crate::entity::CfsRqId;
use crate::rq::{DequeueFlags, EnqueueFlags, LockedRq};
use crate::scheduler::Scheduler;
use crate::task::TaskId;

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
        self.note_sched_idle(|rq| {
            rq.dequeue_task_fair(task, flags);
            rq.count_running(-1);
        });
        self.cfs_mut(cfs_rq).runtime.limbo.push(task);
        self.shared.tasks[task.index()].throttled = true;
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
    /// The running task of `cpu` is about to return to user mode. If its group is throttled it leaves its queue instead,
    /// and a reschedule is pending. Returns whether it does.
    ///
    /// Kernel: `throttle_cfs_rq_work()`, kernel/sched/fair.c (e1fad12dcb66).
    #[inline]
    pub(crate) fn throttle_at_user_return(&mut self, cpu: Cpu) -> bool {
        if !self.shared.bandwidth_used || !self.rq_lock(cpu).throttle_cfs_rq_work() {
            return false;
        }
        self.balance_early(cpu);
        true
    }
}
