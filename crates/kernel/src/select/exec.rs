//! `sched_exec()`: the CPU on which a task goes on that replaces its program.
//!
//! At that time it has the least in caches, and so it is balanced as a new one is.

use fairlab_event::Cpu;

use crate::core::WakeKind;
use crate::decision::{CpuDecision, SelectReason};
use crate::ids::TaskId;
use crate::scheduler::Scheduler;
use crate::select::wakee::{Wakee, decide};

impl Scheduler {
    /// Chooses the CPU for the running task of this CPU, which replaces its program. Where that is another one, the driver's
    /// stopper moves it ([`exec_cpu_stop`](Self::exec_cpu_stop)).
    ///
    /// Kernel: `sched_exec()`, kernel/sched/core.c, which asks the class itself: only the fair one looks for another CPU.
    pub fn sched_exec(&mut self, task: TaskId) -> CpuDecision {
        let cpu = self.shared.tasks[task.index()].cpu;
        if !self.shared.tasks[task.index()].policy.is_fair() {
            return decide(cpu, SelectReason::OnlyAllowed, 0);
        }
        self.probe_selection(task, WakeKind::Exec);
        let decision = self.select_task_rq_fair(Wakee { task, here: cpu, prev: cpu }, WakeKind::Exec);
        self.remember_selection(cpu, task, decision);
        if decision.reason != SelectReason::NoDomain {
            // find_idlest_cpu() ages the task's averages, though it runs, and leaves them so.
            let aged = self.synced_avg(task);
            let se = self.shared.tasks[task.index()].se;
            self.se_mut(se).avg = aged;
        }
        self.probe_selected(task, decision.cpu);
        if self.shared.trace.decisions {
            self.shared.tell_cpu(task, decision);
        }
        decision
    }

    /// What the stopper of `from` does for a task that goes to `dest` with its new program. Returns whether it went: balancing may have
    /// moved it before, or its mask may have changed.
    ///
    /// Kernel: `migration_cpu_stop()`, `__migrate_task()`, kernel/sched/core.c.
    /// Departs: one that sleeps until then (it was pulled, and came back) is not sent there by its wakeup (`wake_cpu`).
    pub fn exec_cpu_stop(&mut self, task: TaskId, from: Cpu, dest: Cpu) -> bool {
        let known = &self.shared.tasks[task.index()];
        let waits = known.is_queued() && known.cpu == from && self.curr(from) != task;
        let moves = waits && dest != from && known.allowed.contains(dest);
        if moves {
            self.move_queued_task(task, dest);
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;

    use crate::cpumask::CpuMask;
    use crate::decision::SelectReason;
    use crate::task::Policy;
    use crate::testbed::SchedulerTestbed;

    /// Where a task of CPU 0 goes that runs beside another one there, of four CPUs.
    fn goes_to(kernel: &str, policy: Policy, allowed: CpuMask) -> (u32, SelectReason) {
        let mut bed = SchedulerTestbed::new(kernel, 4, 1);
        let task = bed.spawn_with(0, 0, policy, allowed);
        bed.spawn(0, 0);
        bed.at(0);
        let decision = bed.scheduler.sched_exec(task);
        (decision.cpu.0, decision.reason)
    }

    #[test]
    fn a_fair_task_goes_to_an_idle_cpu_and_others_stay() {
        for kernel in ["v4.18", "v5.4", "v5.10", "v6.1", "v6.12", "v7.2"] {
            let (cpu, reason) = goes_to(kernel, Policy::Normal, CpuMask::ALL);
            assert!(cpu != 0 && reason == SelectReason::IdlestInGroup, "{kernel}: {cpu} {reason:?}");
            assert_eq!(goes_to(kernel, Policy::Normal, CpuMask::single(Cpu(0))).0, 0, "{kernel}");
            assert_eq!(goes_to(kernel, Policy::Fifo(1), CpuMask::ALL).0, 0, "{kernel}");
        }
    }

    #[test]
    fn a_task_that_has_left_meanwhile_or_may_not_go_is_not_moved() {
        let mut bed = SchedulerTestbed::new("v6.12", 4, 1);
        bed.spawn(0, 0);
        let waits = bed.spawn(0, 0);
        bed.at(0);
        assert!(!bed.scheduler.exec_cpu_stop(waits, Cpu(1), Cpu(2)), "it is not there");
        assert!(bed.scheduler.exec_cpu_stop(waits, Cpu(0), Cpu(2)));
        assert_eq!(bed.scheduler.task(waits).cpu(), Cpu(2));
        let bound = bed.spawn_with(0, 0, Policy::Normal, CpuMask::single(Cpu(0)));
        bed.at(0);
        assert!(!bed.scheduler.exec_cpu_stop(bound, Cpu(0), Cpu(2)), "it may not go there");
    }
}
