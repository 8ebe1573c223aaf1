//! `try_to_wake_up()` in its steps, and a new task's first wakeup.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::TaskId;
use fairlab_kernel::core::{WakeFlags, WakeKind, WakeStart};
use fairlab_kernel::work_events::SchedulerWork;

use super::{Model, ModelMessage};
use crate::scheduler_core::WakeupProgress;

impl Model {
    #[inline]
    pub(super) fn begin_wakeup(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> WakeupProgress {
        let flags = WakeFlags { sync, migrated: false };
        if self.scheduler.ttwu_begin(task, flags) == WakeStart::StillQueued {
            // It runs, or slept on its queue (delayed dequeue) and goes on there.
            return WakeupProgress::Done(self.costs.activate);
        }
        let prev = self.scheduler.task(task).cpu();
        if self.scheduler.curr(prev) != task {
            return WakeupProgress::Done(self.select_and_queue(cpu, task, sync));
        }
        let Some(decision) = self.scheduler.queue_where_leaving(task) else {
            return WakeupProgress::OnCpu(prev);
        };
        self.scheduler.apply_cpu(task, decision);
        self.leave_to(prev, task, false);
        WakeupProgress::Done(Ns::ZERO)
    }

    /// Selects a CPU for a sleeping task and queues it there, or leaves that to the CPU. Returns what it took here.
    pub(super) fn select_and_queue(&mut self, cpu: Cpu, task: TaskId, sync: bool) -> Ns {
        let prev = self.scheduler.task(task).cpu();
        self.scheduler.probe_selection(task, WakeKind::Wakeup { sync });
        self.scheduler.record_wakee(self.scheduler.curr(cpu), task);
        let decision = self.scheduler.select_task_rq(task, cpu, WakeKind::Wakeup { sync });
        self.scheduler.probe_selected(task, decision.cpu);
        self.scheduler.apply_cpu(task, decision);
        let migrated = decision.cpu != prev;
        let took = Ns(u64::from(decision.scanned) * self.costs.scan_cpu.0);
        self.scheduler.account_search(cpu, decision, took);
        self.scheduler.tell_work(SchedulerWork::Search, u64::from(decision.scanned), took);
        if self.scheduler.ttwu_queue_cond(task, decision.cpu, false) {
            self.leave_to(decision.cpu, task, migrated);
            return took;
        }
        self.scheduler.ttwu_do_activate(task, WakeFlags { sync, migrated });
        took + self.costs.activate
    }

    /// Leaves a wakeup to `cpu`, which is interrupted.
    ///
    /// Kernel: `__ttwu_queue_wakelist()`, kernel/sched/core.c. Departs: each wakeup interrupts, where a kernel's next ones join
    /// the first that is on its way.
    pub(super) fn leave_to(&mut self, cpu: Cpu, task: TaskId, migrated: bool) {
        self.scheduler.ttwu_pending(cpu);
        self.wake_lists[cpu.index()].push((task, migrated));
        self.interrupt(cpu, ModelMessage::WakeList);
    }

    /// All wakeups that were left to `cpu` are done there. Returns what that takes.
    ///
    /// Kernel: `sched_ttwu_pending()`, kernel/sched/core.c.
    #[inline]
    pub(super) fn sched_ttwu_pending(&mut self, cpu: Cpu) -> Ns {
        let mut left = std::mem::take(&mut self.wake_lists[cpu.index()]);
        let took = Ns(left.len() as u64 * self.costs.activate.0);
        for (task, migrated) in left.drain(..) {
            self.scheduler.ttwu_arrived(cpu);
            self.scheduler.ttwu_do_activate(task, WakeFlags { sync: false, migrated });
        }
        self.wake_lists[cpu.index()] = left;
        took
    }

    /// Selects a CPU for a new task and queues it there.
    pub(super) fn queue_new_task(&mut self, cpu: Cpu, task: TaskId) {
        self.scheduler.probe_selection(task, WakeKind::Fork);
        let decision = self.scheduler.select_task_rq(task, cpu, WakeKind::Fork);
        self.scheduler.probe_selected(task, decision.cpu);
        self.scheduler.wake_up_new_task(task, decision.cpu);
    }
}
