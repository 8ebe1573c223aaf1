//! What a pick and a switch do about runtime: queues without any are throttled on the way.
//!
//! Must not know: how a queue is throttled.

use fairlab_event::Cpu;

use crate::fair::bandwidth::{PickRestart, ThrottlePoint, Throttling};
use crate::rq::LockedRq;
use crate::scheduler::Scheduler;
use crate::task::{Policy, TaskId};

impl LockedRq<'_> {
    pub(crate) fn throttle_before_pick(&mut self) {
        let checks = self.shared.generation.bandwidth.throttle_point == ThrottlePoint::PickAndPut
            && self.shared.pick_above_fair(self.rq).is_none();
        if checks {
            match self.shared.generation.bandwidth.pick_restart {
                PickRestart::PutsFirst => self.throttle_running_first(),
                PickRestart::KeepsRunning => {
                    self.throttle_on_the_way();
                    // Other queues may stand on the way once a sleeper has left.
                    while self.shared.delayed_candidate(self.rq.cfs).is_some() {
                        self.finish_delayed_dequeues();
                        self.throttle_on_the_way();
                    }
                }
            }
        }
    }

    /// Looks at queues with a running entity; at the first without runtime the running task is put back.
    pub(crate) fn throttle_running_first(&mut self) {
        let cpu = self.rq.cpu;
        let curr = self.shared.curr(cpu);
        if !self.shared.tasks[curr.index()].policy.is_fair() {
            return;
        }
        let root = self.rq.cfs;
        let mut queue = root;
        loop {
            if self.cfs(queue).curr.is_some() && self.check_cfs_rq_runtime(queue) {
                if self.cfs(root).nr_running > 0 {
                    self.put_prev_task_fair(curr);
                }
                return;
            }
            let Some((se, _)) = self.shared.pick_next_entity(queue) else { return };
            let Some(below) = self.se(se).my_q else { return };
            queue = below;
        }
    }

    /// Looks at every queue on the way to the task that would be picked; that task leaves when it returns to user mode
    /// if any is throttled.
    pub(crate) fn throttle_on_the_way(&mut self) {
        let root = self.rq.cfs;
        let (mut queue, mut throttled) = (root, false);
        loop {
            if self.check_cfs_rq_runtime(queue) {
                if self.shared.generation.bandwidth.throttling == Throttling::WholeQueue {
                    // It is off its queue now, so that another is met next time.
                    queue = root;
                    continue;
                }
                throttled = true;
            }
            let Some((se, _)) = self.shared.pick_next_entity(queue) else { return };
            match (self.se(se).task, self.se(se).my_q) {
                _ if self.se(se).sched_delayed => return,
                (Some(task), _) => {
                    if throttled {
                        self.shared.set_throttle_work(task);
                    }
                    return;
                }
                (None, Some(below)) => queue = below,
                (None, None) => return,
            }
        }
    }

    /// A task that takes over from `prev`, or goes on elsewhere, charges the queues that `prev` was not on; any that is
    /// throttled makes it leave when it returns to user mode.
    ///
    /// Kernel: `set_next_task_fair()`, kernel/sched/fair.c, from v7.2.
    #[inline]
    pub(crate) fn account_new_levels(&mut self, prev: Option<TaskId>, next: TaskId) {
        if self.shared.bandwidth_used {
            self.account_levels_since(prev, next);
        }
    }

    pub(crate) fn account_levels_since(&mut self, prev: Option<TaskId>, next: TaskId) {
        let point = self.shared.generation.bandwidth.throttle_point;
        if point == ThrottlePoint::PickAndPut || !self.shared.tasks[next.index()].policy.is_fair() {
            return;
        }
        let next_se = self.shared.tasks[next.index()].se;
        let shares = |prev: &TaskId| {
            let (prev, next) = (&self.shared.tasks[prev.index()], &self.shared.tasks[next.index()]);
            prev.policy.is_fair() && prev.cpu == next.cpu
        };
        let shared = prev.filter(shares).map(|prev| {
            let (_, next) = self.shared.meeting_levels(self.shared.tasks[prev.index()].se, next_se);
            self.se(next).cfs_rq
        });
        let (mut level, mut throttled) = (Some(next_se), false);
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            throttled |= self.account_cfs_rq_runtime(cfs_rq, 0);
            level = self.se(se).parent.filter(|_| Some(cfs_rq) != shared);
        }
        if throttled {
            self.shared.set_throttle_work(next);
        }
    }
}

impl Scheduler {
    /// Does what a pick does beside picking: throttles queues without runtime on its way, and lets delayed sleepers
    /// leave that would be picked. To be called before each [`pick_next_task`](Scheduler::pick_next_task). Where a task of a higher
    /// class is there, nobody looks at fair ones.
    ///
    /// Kernel: `pick_task_fair()`, kernel/sched/fair.c, and to v6.11 the fast path of `pick_next_task_fair()`.
    #[inline]
    pub fn before_pick(&mut self, cpu: Cpu) {
        self.rqs[cpu.index()].newidle_skipped = self.skips_newidle(cpu);
        if self.shared.bandwidth_used {
            self.rq_lock(cpu).throttle_before_pick();
        }
        if self.shared.pick_above_fair(&self.rqs[cpu.index()]).is_none() {
            self.rq_lock(cpu).finish_delayed_dequeues();
            self.balance_early(cpu);
            // Where nothing is counted and nobody of a higher class leaves, only the fair class is looked at (`__pick_next_task()`).
            let rq = &self.rqs[cpu.index()];
            let policy = self.shared.tasks[self.curr(cpu).index()].policy;
            let is_seen = rq.nr_running > 0 || !(policy.is_fair() || policy == Policy::Swapper);
            if rq.fair_server.queued && is_seen && !self.rq_lock(cpu).has_fair_tasks() {
                self.rq_lock(cpu).dl_server_stop();
            }
        }
    }
}
