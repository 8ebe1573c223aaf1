//! Decisions as extra events, for answers to why a task waited: `decided_pick`, `decided_preempt`, and so on.
//!
//! A run without a listener pays one branch per decision. Must not know: who reads it, and what was decided.

use fairlab_event::{Cpu, Ns, Pid, UntypedTracepoint};

use crate::all_cpus::Shared;
use crate::decision::{CpuDecision, PickReason, PreemptDecision, PreemptReason, TickDecision, TickReason};
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::Placement;
use crate::scheduler::Scheduler;
use crate::select::rules::IdleMask;
use crate::task::TaskId;
use crate::work_events::SchedulerWork;

impl Scheduler {
    /// Whether decisions are emitted with their reasons, beside the kernel's events; a run without them is faster.
    pub fn set_decisions(&mut self, enabled: bool) {
        self.shared.trace.decisions = enabled;
        self.shared.trace.balancing = enabled;
    }

    /// Whether the tries of balancing alone are told, and what becomes of masks of idle CPUs.
    pub fn set_balancing_told(&mut self, enabled: bool) {
        self.shared.trace.balancing = enabled;
    }

    /// A driver charges for work of the scheduler: how much it was, and how long it takes at full speed.
    #[inline]
    pub fn tell_work(&mut self, work: SchedulerWork, units: u64, took: Ns) {
        if self.shared.trace.decisions && (units, took) != (0, Ns::ZERO) {
            let text = || format!("work={work:?} units={units} ns={}", took.0);
            self.shared.report_text(UntypedTracepoint::DoneWork.name(), text);
        }
    }

    /// `next` is about to run on `cpu`: why, at each level from the root.
    #[cold]
    pub(crate) fn tell_pick(&mut self, cpu: Cpu, next: TaskId) {
        let above = self.shared.pick_above_fair(&self.rqs[cpu.index()]);
        let reasons = match above {
            Some(pick) => vec![pick.reason],
            None => self.shared.reasons_for(self.rqs[cpu.index()].cfs, next),
        };
        let reasons = reasons.iter().map(|reason| format!("{reason:?}")).collect::<Vec<_>>().join(",");
        let pid = self.shared.tasks[next.index()].pid;
        self.shared.report_text(UntypedTracepoint::DecidedPick.name(), || {
            format!("cpu={cpu} pid={pid} reasons={reasons}")
        });
    }
}

impl Scheduler {
    /// What decides whether a queued fair task, or the running one, is picked on its queue, beside its members: its lag of now, ns, whether
    /// it is eligible, 0 or 1, and its slice, ns.
    pub fn standing_of(&self, task: TaskId) -> Vec<(&'static str, i64)> {
        let known = &self.shared.tasks[task.index()];
        let entity = self.shared.se(known.se);
        if !known.policy.is_fair() || !entity.on_rq {
            return Vec::new();
        }
        let queue = entity.cfs_rq;
        if self.shared.generation.fair.placement != Placement::Lag {
            return vec![("slice", self.shared.sched_slice(queue, known.se) as i64)];
        }
        let eligible = self.shared.cfs(queue).is_eligible(entity.vruntime, self.shared.running(queue));
        let lag = self.shared.average(queue).minus(entity.vruntime);
        vec![("lag", lag), ("eligible", i64::from(eligible)), ("slice", entity.slice as i64)]
    }

    /// A task's name and id, as events have them.
    pub fn label_of(&self, task: TaskId) -> String {
        let known = &self.shared.tasks[task.index()];
        format!("{}:{}", known.comm, known.pid)
    }
}

impl Shared {
    /// Why the entities above a task, and at last its own, are the next of their queues.
    fn reasons_for(&self, root: CfsRqId, next: TaskId) -> Vec<PickReason> {
        let mut reasons = Vec::new();
        let mut queue = Some(root).filter(|_| self.tasks[next.index()].policy.is_fair());
        while let Some((se, reason)) = queue.and_then(|queue| self.pick_next_entity(queue)) {
            reasons.push(reason);
            queue = self.se(se).my_q;
        }
        if reasons.is_empty() {
            reasons.push(PickReason::Nothing);
        }
        reasons
    }

    /// A task was queued on `cpu`: whether it takes that from who runs there.
    #[cold]
    pub(crate) fn tell_preempt(
        &mut self,
        cpu: Cpu,
        (curr, task): (TaskId, TaskId),
        decision: PreemptDecision,
    ) {
        let PreemptDecision { preempt, reason } = decision;
        // Who would be picked in its place, and why, says more than that it would not be.
        let instead = match reason {
            PreemptReason::WouldNotBePicked => {
                let (running, _): (SeId, SeId) = self.competitors(curr, task);
                self.pick_next_entity(self.se(running).cfs_rq).map(|(_, why)| format!(":{why:?}"))
            }
            _ => None,
        };
        let instead = instead.unwrap_or_default();
        let pids: [Pid; 2] = [task, curr].map(|task| self.tasks[task.index()].pid);
        let [pid, running] = pids;
        self.report_text(UntypedTracepoint::DecidedPreempt.name(), || {
            let preempt = u32::from(preempt);
            format!("cpu={cpu} pid={pid} curr_pid={running} preempt={preempt} reason={reason:?}{instead}")
        });
    }

    /// A tick on `cpu` takes that away from who runs there, or lets it run.
    #[cold]
    pub(crate) fn tell_tick(&mut self, cpu: Cpu, decision: TickDecision) {
        let TickDecision { resched, reason } = decision;
        if reason == TickReason::Alone {
            return;
        }
        self.report_text(UntypedTracepoint::DecidedTick.name(), || {
            format!("cpu={cpu} takes={} reason={reason:?}", u32::from(resched))
        });
    }

    /// A CPU was selected for a task that wakes.
    #[cold]
    pub(crate) fn tell_cpu(&mut self, task: TaskId, decision: CpuDecision) {
        let pid = self.tasks[task.index()].pid;
        self.report_text(UntypedTracepoint::DecidedCpu.name(), || {
            format!("pid={pid} cpu={} reason={:?}", decision.cpu, decision.reason)
        });
    }
}

impl Scheduler {
    /// The mask of idle CPUs of the cache of `of`: `of` was set or cleared in it (`update_idle_cpumask()`), or it was scanned.
    #[cold]
    pub(crate) fn tell_idle_mask(&mut self, of: Cpu, set: Option<bool>) {
        let shared = self.domains.of_cpu(of).sd_llc_shared;
        let Some(shared) = shared.filter(|_| self.shared.generation.select.idle_mask != IdleMask::None)
        else {
            return;
        };
        let mask = self.idle_masks[shared.0 as usize];
        let marked = mask.weight();
        match set {
            Some(set) => {
                let text = || format!("set={} marked={marked} mask={mask}", u32::from(set));
                self.shared.report_text(UntypedTracepoint::DoneIdleMask.name(), text);
            }
            None => {
                let text = || format!("marked={marked} mask={mask}");
                self.shared.report_text(UntypedTracepoint::DoneIdleMaskScan.name(), text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpumask::CpuMask;
    use crate::testbed::{MS, SchedulerTestbed};

    /// What was printed of masks since the last call: whether a CPU was set, and whether CPU 1 is in it.
    fn updates(bed: &mut SchedulerTestbed) -> Vec<(bool, bool)> {
        let printed = std::mem::take(&mut bed.scheduler.shared.trace.printed);
        let of_masks = printed
            .into_iter()
            .filter(|(.., printed)| printed.name == UntypedTracepoint::DoneIdleMask.name());
        let update = |text: &str| {
            let mask = text.rsplit_once('=').map_or("", |(_, mask)| mask);
            let contains = CpuMask::parse_list(mask).is_ok_and(|mask| mask.contains(Cpu(1)));
            (text.starts_with("set=1"), contains)
        };
        of_masks.map(|(.., printed)| update(&printed.text)).collect()
    }

    /// Set by going idle, cleared by the tick of a busy CPU and by nothing else; an update that changes nothing is none.
    #[test]
    fn masks_are_set_by_idle_cpus_and_cleared_by_ticks() {
        let mut bed = SchedulerTestbed::new("v5.10+idle-cpumask-v7", 4, 1);
        bed.scheduler.set_tracing(true);
        bed.scheduler.set_balancing_told(true);
        let sleeper = bed.spawn(0, 1);
        bed.pass(MS);
        bed.sleep(1);
        let first = updates(&mut bed);
        bed.wake(sleeper, 1);
        bed.schedule(1);
        bed.pass(MS);
        let woken = updates(&mut bed);
        assert!(first.iter().all(|(set, contains)| set == contains), "{first:?}");
        assert!(woken.iter().all(|(set, _)| !set), "waking does not set: {woken:?}");
    }
}
