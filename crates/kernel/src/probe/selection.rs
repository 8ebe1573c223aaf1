//! Probes at the selection of a CPU: what it finds of the task and of every CPU.

use fairlab_event::Cpu;
use fairlab_event::probes::{CpuField, ProbeField, ProbePoint, ProbeText};

use super::{WF_EXEC, WF_FORK, WF_SYNC, WF_TTWU};
use crate::core::WakeKind;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl Scheduler {
    /// A CPU is about to be selected for `task` by code on this one: prints what is found, if probes are wanted. A driver
    /// says so before it asks.
    ///
    /// For tasks that may use one CPU only, `select_task_rq_fair()` is not entered.
    #[inline]
    pub fn probe_selection(&mut self, task: TaskId, kind: WakeKind) {
        if self.shared.trace.probes && self.selects_cpu_of(task) {
            self.probe(ProbePoint::SelectTaskRq, |scheduler| scheduler.selection_text(task, kind));
        }
    }

    /// It has been selected.
    #[inline]
    pub fn probe_selected(&mut self, task: TaskId, cpu: Cpu) {
        if self.shared.trace.probes && self.selects_cpu_of(task) {
            self.probe(ProbePoint::SelectTaskRqReturn, |scheduler| {
                let mut text = ProbeText::at_return("select_task_rq_fair", "select_task_rq");
                text.put(ProbeField::Returned, cpu).put(ProbeField::Pid, scheduler.shared.pid_number(task));
                text
            });
        }
    }

    fn selects_cpu_of(&self, task: TaskId) -> bool {
        let known = self.task(task);
        known.policy.is_fair() && known.allowed.and(self.shared.topology.online()).only().is_none()
    }

    fn selection_text(&self, task: TaskId, kind: WakeKind) -> ProbeText {
        let flags = match kind {
            WakeKind::Wakeup { sync: true } => WF_TTWU | WF_SYNC,
            WakeKind::Wakeup { sync: false } => WF_TTWU,
            WakeKind::Fork => WF_FORK,
            WakeKind::Exec => WF_EXEC,
        };
        let (known, avg) = (self.task(task), &self.entity_of(task).avg);
        let mut text = ProbeText::entry("select_task_rq_fair");
        text.put(ProbeField::Pid, known.pid.0)
            .put(ProbeField::Previous, known.cpu)
            .hex(ProbeField::WakeFlags, flags.into())
            .put(ProbeField::TaskLoad, avg.load_avg)
            .put(ProbeField::TaskRunnable, avg.runnable_avg)
            .put(ProbeField::TaskUtil, avg.util_avg)
            .put(ProbeField::WakeeFlips, known.wakee_flips)
            .put(ProbeField::RecentUsed, known.recent_used_cpu)
            .put(ProbeField::TaskHierarchyLoad, self.shared.task_h_load(task));
        for cpu in self.shared.topology.cpus() {
            self.show_cpu(&mut text, cpu);
        }
        text
    }

    /// What there is of one CPU: the recorder's fields, and what else a selection goes by.
    pub(super) fn show_cpu(&self, text: &mut ProbeText, cpu: Cpu) {
        let rq = &self.rqs[cpu.index()];
        let running = self.curr(cpu);
        let (avg, curr) = (&self.cfs(rq.cfs).tracked.avg, self.task(running));
        let shared = self.domains.of_cpu(cpu).sd_llc_shared.map(|shared| self.domains.shared(shared));
        text.of_cpu(CpuField::LoadAvg, cpu, avg.load_avg)
            .of_cpu(CpuField::NrRunning, cpu, rq.nr_running)
            .of_cpu(CpuField::AvgIdle, cpu, rq.idle_time.avg_idle)
            .of_cpu(CpuField::CurrentPid, cpu, curr.pid.0)
            .of_cpu(CpuField::WakeeFlips, cpu, curr.wakee_flips)
            .of_cpu(CpuField::RunnableAvg, cpu, avg.runnable_avg)
            .of_cpu(CpuField::UtilAvg, cpu, avg.util_avg)
            .of_cpu(CpuField::UtilEstimate, cpu, avg.util_est.enqueued)
            .of_cpu(CpuField::CurrentLoad, cpu, self.entity_of(running).avg.load_avg)
            .of_cpu(CpuField::CurrentHierarchyLoad, cpu, self.shared.task_h_load(running))
            .of_cpu(CpuField::Idle, cpu, u8::from(self.idle_cpu(cpu)))
            .of_cpu(CpuField::IdleSince, cpu, rq.idle_time.idle_stamp.map_or(0, |stamp| stamp.0 + 1))
            .of_cpu(CpuField::ScanCost, cpu, rq.idle_time.avg_scan_cost)
            .of_cpu(CpuField::WakeIdle, cpu, rq.idle_time.wake_avg_idle_at(self.shared.jiffies()))
            .of_cpu(CpuField::NrIdleScan, cpu, shared.map_or(0, |shared| shared.nr_idle_scan))
            .of_cpu(
                CpuField::HasIdleCores,
                cpu,
                u8::from(shared.is_some_and(|shared| shared.has_idle_cores)),
            );
    }
}
