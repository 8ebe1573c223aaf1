//! Probes at the selection of a CPU: what it finds of the task and of every CPU.

use std::fmt::Write;

use fairlab_event::Cpu;

use crate::core::{Scheduler, WakeKind};
use crate::task::TaskId;

/// Occasions and promises, as `wake_flags` has them from v5.11.
const WF_EXEC: u32 = 0x2;
pub(super) const WF_FORK: u32 = 0x4;
pub(super) const WF_TTWU: u32 = 0x8;
pub(super) const WF_SYNC: u32 = 0x10;

impl Scheduler {
    /// A CPU is about to be selected for `task` by code on this one: prints what is found, if probes are wanted. A driver
    /// says so before it asks.
    ///
    /// For tasks that may use one CPU only, `select_task_rq_fair()` is not entered.
    #[inline]
    pub fn probe_selection(&mut self, task: TaskId, kind: WakeKind) {
        if self.trace.probes && self.selects_cpu_of(task) {
            self.probe("sel", |scheduler| scheduler.selection_text(task, kind));
        }
    }

    /// It has been selected.
    #[inline]
    pub fn probe_selected(&mut self, task: TaskId, cpu: Cpu) {
        if self.trace.probes && self.selects_cpu_of(task) {
            self.probe("sel_r", |scheduler| {
                let pid = scheduler.pid_number(task);
                format!("(select_task_rq+0x0/0x0 <- select_task_rq_fair) ret={cpu} pid={pid}")
            });
        }
    }

    fn selects_cpu_of(&self, task: TaskId) -> bool {
        let known = self.task(task);
        known.policy.is_fair() && known.allowed.and(self.topology.online()).only().is_none()
    }

    fn selection_text(&self, task: TaskId, kind: WakeKind) -> String {
        let flags = match kind {
            WakeKind::Wakeup { sync: true } => WF_TTWU | WF_SYNC,
            WakeKind::Wakeup { sync: false } => WF_TTWU,
            WakeKind::Fork => WF_FORK,
            WakeKind::Exec => WF_EXEC,
        };
        let (known, avg) = (self.task(task), &self.entity_of(task).avg);
        let mut text = format!(
            "(select_task_rq_fair+0x0/0x0) pid={} prev={} wf={flags:#x} tla={} tra={} tua={} wf_flips={} recent={} thl={}",
            known.pid.0,
            known.cpu,
            avg.load_avg,
            avg.runnable_avg,
            avg.util_avg,
            known.wakee_flips,
            known.recent_used_cpu,
            self.task_h_load(task),
        );
        for cpu in self.topology.cpus() {
            self.add_cpu_text(&mut text, cpu);
        }
        text
    }

    /// What there is of one CPU: the recorder's fields, and what else a selection goes by.
    pub(super) fn add_cpu_text(&self, text: &mut String, cpu: Cpu) {
        let rq = &self.rqs[cpu.index()];
        let (avg, curr) = (&self.cfs(rq.cfs).tracked.avg, self.task(rq.curr));
        let _ = write!(
            text,
            " la{cpu}={} nr{cpu}={} ai{cpu}={} cp{cpu}={} cf{cpu}={}",
            avg.load_avg, rq.nr_running, rq.idle_time.avg_idle, curr.pid.0, curr.wakee_flips,
        );
        let shared = self.domains.of_cpu(cpu).sd_llc_shared.map(|shared| self.domains.shared(shared));
        let _ = write!(
            text,
            " ra{cpu}={} ua{cpu}={} ue{cpu}={} cl{cpu}={} ch{cpu}={} id{cpu}={} is{cpu}={} sc{cpu}={} wi{cpu}={} ni{cpu}={} hi{cpu}={}",
            avg.runnable_avg,
            avg.util_avg,
            avg.util_est.enqueued,
            self.entity_of(rq.curr).avg.load_avg,
            self.task_h_load(rq.curr),
            u8::from(self.idle_cpu(cpu)),
            rq.idle_time.idle_stamp.map_or(0, |stamp| stamp.0 + 1),
            rq.idle_time.avg_scan_cost,
            rq.idle_time.wake_avg_idle_at(self.jiffies()),
            shared.map_or(0, |shared| shared.nr_idle_scan),
            u8::from(shared.is_some_and(|shared| shared.has_idle_cores)),
        );
    }
}
