//! Charging run time: vruntime, deadline, `min_vruntime`.

use fairlab_event::{Cpu, EventKind, Ns};

use crate::core::Scheduler;
use crate::entity::{CfsRqId, SeId};
use crate::generation::Feature;
use crate::generation::behaviour::{SliceProtection, TickPreemption, VirtualZero};
use crate::task::TaskId;
use crate::vruntime::Vruntime;

impl Scheduler {
    /// Accounts the run time of `cpu`'s running fair task at every level.
    pub(crate) fn update_curr_of(&mut self, cpu: Cpu) {
        let task = self.curr(cpu);
        if !self.tasks[task.index()].policy.is_fair() {
            return;
        }
        let mut level = Some(self.tasks[task.index()].se);
        while let Some(se) = level {
            if self.se(se).on_rq {
                self.update_curr(self.se(se).cfs_rq);
            }
            level = self.se(se).parent;
        }
    }

    /// Charges the running entity of a queue for the time since it was last charged.
    ///
    /// Kernel: `update_curr()`, kernel/sched/fair.c.
    /// Units: run time in ns of the CPU's task clock; vruntime in virtual ns, truncated as the kernel truncates.
    /// Departs: interrupt and steal time are not taken off the task clock.
    #[inline(always)]
    pub(crate) fn update_curr(&mut self, cfs_rq: CfsRqId) {
        let queue = self.cfs(cfs_rq);
        let Some(curr) = queue.curr else { return };
        let now = self.rqs[queue.cpu.index()].clock.0;
        if now > self.se(curr).exec_start {
            self.charge_curr(cfs_rq, curr, now);
        }
    }

    #[inline(never)]
    fn charge_curr(&mut self, cfs_rq: CfsRqId, curr: SeId, now: u64) {
        let behaviours = self.generation.behaviours;
        let entity = &mut self.entities[curr.0 as usize];
        let delta = now - entity.exec_start;
        let virtual_delta = behaviours.arithmetic.calc_delta_fair(entity.load, delta) as i64;
        entity.exec_start = now;
        entity.sum_exec_runtime += delta;
        entity.vruntime = entity.vruntime.plus(virtual_delta);
        let (of_task, vruntime, on_rq) = (entity.task, entity.vruntime, entity.on_rq);
        let by_deadline = behaviours.tick_preemption == TickPreemption::Deadline;
        let request_used = by_deadline && self.update_deadline(cfs_rq, curr);
        if behaviours.virtual_zero != VirtualZero::Average {
            self.cfs_mut(cfs_rq).update_min_vruntime(on_rq.then_some(vruntime));
        }
        if let (true, Some(task)) = (self.trace.enabled, of_task) {
            self.report_runtime(task, Ns(delta), vruntime);
        }
        if self.bandwidth_used {
            self.account_cfs_rq_runtime(cfs_rq, delta);
        }
        // It depends on *this* queue having others: a lone task in a group is never preempted by its own deadline.
        if by_deadline
            && self.cfs(cfs_rq).nr_running > 1
            && (request_used || self.lost_protection(cfs_rq, curr))
        {
            self.resched_curr_lazy(self.cfs(cfs_rq).cpu, "update_curr");
            self.clear_buddies(curr);
        }
    }

    #[inline(never)]
    fn report_runtime(&mut self, task: TaskId, runtime: Ns, vruntime: Vruntime) {
        let task = &self.tasks[task.index()];
        let (comm, pid, vruntime) = (task.comm, task.pid, Some(vruntime.0));
        self.report(EventKind::SchedStatRuntime { comm, pid, runtime, vruntime });
    }

    /// Gives an entity that has used its request a new one. Returns whether it has.
    ///
    /// Kernel: `update_deadline()`, kernel/sched/fair.c (147f3efaa241).
    pub(crate) fn update_deadline(&mut self, cfs_rq: CfsRqId, se: SeId) -> bool {
        if self.se(se).vruntime.is_before(self.se(se).deadline) {
            return false;
        }
        let request = self.request(se);
        let distance = self.calc_delta_fair(self.se(se).load, request) as i64;
        let entity = self.se_mut(se);
        entity.slice = request;
        entity.deadline = entity.vruntime.plus(distance);
        if self.generation.behaviours.virtual_zero == VirtualZero::Average {
            self.average_vruntime(cfs_rq);
        }
        true
    }

    /// Whether the running entity is no longer protected and has to make way at the next occasion.
    ///
    /// Kernel: `did_preempt_short()` in v6.12 (`PREEMPT_SHORT`); `!protect_slice()` from v6.17, eligible or not.
    fn lost_protection(&self, cfs_rq: CfsRqId, curr: SeId) -> bool {
        match self.generation.behaviours.slice_protection {
            SliceProtection::UntilShortestRequest => !self.protects_slice(curr),
            SliceProtection::UntilNewDeadline => {
                self.has(Feature::PreemptShort)
                    && self.se(curr).deadline_at_pick != Some(self.se(curr).deadline)
                    && !self.cfs(cfs_rq).is_eligible(self.se(curr).vruntime, self.running(cfs_rq))
            }
        }
    }

    /// Moves a queue's `min_vruntime` up. Kernel: `update_min_vruntime()`.
    pub(crate) fn update_min_vruntime(&mut self, cfs_rq: CfsRqId) {
        if self.generation.behaviours.virtual_zero == VirtualZero::Average {
            return;
        }
        let curr = self.running_entity(cfs_rq).map(|curr| self.se(curr).vruntime);
        self.cfs_mut(cfs_rq).update_min_vruntime(curr);
    }
}
