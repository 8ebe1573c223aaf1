//! The tick.

use crate::core::Scheduler;
use crate::decision::{TickDecision, TickReason};
use crate::entity::{CfsRqId, SeId};
use crate::generation::behaviour::TickPreemption;
use crate::task::TaskId;

impl Scheduler {
    /// Accounts a running task at every level and takes the CPU away if any level says so.
    ///
    /// Returns the decision of the level that took it, or else the root's. Kernel: `task_tick_fair()`, `entity_tick()`.
    pub(crate) fn task_tick_fair(&mut self, task: TaskId) -> TickDecision {
        let mut level = Some(self.tasks[task.index()].se);
        let mut decided = TickDecision { resched: false, reason: TickReason::Alone };
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            let pending = self.need_resched(self.cfs(cfs_rq).cpu);
            self.update_curr(cfs_rq);
            let decision = match self.generation.behaviours.tick_preemption {
                TickPreemption::Deadline => self.deadline_passed(cfs_rq, pending),
                TickPreemption::IdealSlice | TickPreemption::IdealSliceWithinLatency => {
                    let decision = self.check_preempt_tick(cfs_rq, se);
                    self.apply_tick(cfs_rq, se, decision);
                    decision
                }
            };
            if !decided.resched {
                decided = decision;
            }
            level = self.se(se).parent;
        }
        decided
    }

    /// What accounting found out: EEVDF has no test of its own at the tick.
    fn deadline_passed(&self, cfs_rq: CfsRqId, was_pending: bool) -> TickDecision {
        let queue = self.cfs(cfs_rq);
        let resched = self.need_resched(queue.cpu) && !was_pending;
        let reason = match (resched, queue.nr_running) {
            (true, _) => TickReason::SliceUsed,
            (false, 1) => TickReason::Alone,
            (false, _) => TickReason::WithinSlice,
        };
        TickDecision { resched, reason }
    }

    /// Whether the running entity of a queue has had its share. Pure; run time must be accounted up to now.
    ///
    /// Kernel: `check_preempt_tick()`, kernel/sched/fair.c; the cap at the latency from v6.3 (79ba1e607d68). Mind that
    /// the last test compares virtual time with run time.
    pub(crate) fn check_preempt_tick(&self, cfs_rq: CfsRqId, se: SeId) -> TickDecision {
        let decide = |resched, reason| TickDecision { resched, reason };
        let queue = self.cfs(cfs_rq);
        if queue.nr_running <= 1 {
            return decide(false, TickReason::Alone);
        }
        let mut ideal = self.sched_slice(cfs_rq, se);
        if self.generation.behaviours.tick_preemption == TickPreemption::IdealSliceWithinLatency {
            ideal = ideal.min(self.sysctl.latency);
        }
        let entity = self.se(se);
        let ran = entity.sum_exec_runtime - entity.prev_sum_exec_runtime;
        if ran > ideal {
            return decide(true, TickReason::SliceUsed);
        }
        if ran < self.sysctl.min_granularity {
            return decide(false, TickReason::BelowMinGranularity);
        }
        let Some(leftmost) = queue.timeline.leftmost() else { return decide(false, TickReason::Alone) };
        match entity.vruntime.minus(leftmost.vruntime) {
            ahead if ahead < 0 => decide(false, TickReason::LeftmostAhead),
            ahead if ahead as u64 > ideal => decide(true, TickReason::FarAhead),
            _ => decide(false, TickReason::WithinSlice),
        }
    }

    fn apply_tick(&mut self, cfs_rq: CfsRqId, se: SeId, decision: TickDecision) {
        if decision.resched {
            self.resched_curr(self.cfs(cfs_rq).cpu);
        }
        if decision.reason == TickReason::SliceUsed {
            // Otherwise a buddy could be picked again at once.
            self.clear_buddies(se);
        }
    }
}
