//! `select_task_rq_fair()`: the CPU on which a woken or new task is queued.

mod idle_sibling;
mod idlest;
mod wake_affine;

use fairlab_event::Cpu;

use crate::core::{Scheduler, WakeKind};
use crate::decision::{CpuDecision, SelectReason};
use crate::task::TaskId;

impl Scheduler {
    /// The CPU on which `task` should be queued, asked on `here` by its running task. Pure.
    ///
    /// Kernel: `select_task_rq()`, kernel/sched/core.c; `select_task_rq_fair()`, kernel/sched/fair.c.
    /// Departs: no energy-aware placement; the affine domain is the whole machine.
    pub fn select_task_rq(&self, task: TaskId, here: Cpu, kind: WakeKind) -> CpuDecision {
        let woken = &self.tasks[task.index()];
        let prev = woken.cpu;
        let pinned = woken.allowed.and(self.topology.online()).weight() == 1;
        if woken.policy.is_rt() && !pinned {
            return self.select_task_rq_rt(task, here);
        }
        if pinned || !woken.policy.is_fair() {
            let cpu = if woken.allowed.contains(prev) { Some(prev) } else { woken.allowed.lowest() };
            return decide(cpu.expect("a task is allowed somewhere"), SelectReason::OnlyAllowed, 0);
        }
        let decision = match kind {
            WakeKind::Fork | WakeKind::Exec => self.find_idlest_cpu(task, here),
            WakeKind::Wakeup { sync } => self.select_for_wakeup(task, here, prev, sync),
        };
        if woken.allowed.contains(decision.cpu) {
            return decision;
        }
        let allowed = woken.allowed.and(self.topology.online()).lowest();
        decide(allowed.expect("a task is allowed somewhere"), SelectReason::Disallowed, decision.scanned)
    }

    fn select_for_wakeup(&self, task: TaskId, here: Cpu, prev: Cpu, sync: bool) -> CpuDecision {
        let waker = self.curr(here);
        let affine = !self.wake_wide(waker, task, here) && self.tasks[task.index()].allowed.contains(here);
        let target = if affine && here != prev { self.wake_affine(task, here, prev, sync) } else { prev };
        let mut decision = self.select_idle_sibling(task, here, prev, target);
        if !affine && decision.reason == SelectReason::NoIdle {
            decision.reason = SelectReason::NotAffine;
        }
        decision
    }
}

fn decide(cpu: Cpu, reason: SelectReason, scanned: u32) -> CpuDecision {
    CpuDecision { cpu, reason, scanned, no_idle_core_in: None }
}
