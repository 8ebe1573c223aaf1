//! Decisions as extra events, for answers to why a task waited: `decided_pick`, `decided_preempt`, and so on.
//!
//! A run without a listener pays one branch per decision. Must not know: who reads it, and what was decided.

use fairlab_event::{Cpu, Ns, Pid, Untyped};

use crate::all_cpus::Shared;
use crate::balance::BalanceDecision;
use crate::decision::{CpuDecision, PickReason, PreemptDecision, PreemptReason, TickDecision, TickReason};
use crate::entity::{CfsRqId, SeId};
use crate::fair::rules::Placement;
use crate::scheduler::Scheduler;
use crate::task::TaskId;
use crate::work::Work;

impl Scheduler {
    /// Whether decisions are told with their reasons, beside the events; a run without them is faster.
    pub fn set_decisions(&mut self, enabled: bool) {
        self.shared.trace.decisions = enabled;
    }

    /// A driver charges for work of the scheduler: how much it was, and how long it takes at full speed.
    #[inline]
    pub fn tell_work(&mut self, work: Work, units: u64, took: Ns) {
        if self.shared.trace.decisions && (units, took) != (0, Ns::ZERO) {
            let text = || format!("work={work:?} units={units} ns={}", took.0);
            self.shared.report_text(Untyped::DoneWork.name(), text);
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
        self.shared
            .report_text(Untyped::DecidedPick.name(), || format!("cpu={cpu} pid={pid} reasons={reasons}"));
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
        self.report_text(Untyped::DecidedPreempt.name(), || {
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
        self.report_text(Untyped::DecidedTick.name(), || {
            format!("cpu={cpu} takes={} reason={reason:?}", u32::from(resched))
        });
    }

    /// A CPU was selected for a task that wakes.
    #[cold]
    pub(crate) fn tell_cpu(&mut self, task: TaskId, decision: CpuDecision) {
        let pid = self.tasks[task.index()].pid;
        self.report_text(Untyped::DecidedCpu.name(), || {
            format!("pid={pid} cpu={} reason={:?}", decision.cpu, decision.reason)
        });
    }

    /// A CPU looked for tasks to take.
    #[cold]
    pub(crate) fn tell_balance(&mut self, level: &str, decision: &BalanceDecision) {
        let reason = match decision.balanced {
            Some(reason) => format!("{reason:?}"),
            None if decision.moved() > 0 => "Moved".to_string(),
            None if decision.push => "Pushed".to_string(),
            None => decision.pulls.last().map_or_else(
                || "NoQueue".to_string(),
                |pull| {
                    let refused = pull.looks.last().map(|look| format!("{:?}", look.reason));
                    refused.unwrap_or_else(|| format!("{:?}", pull.end))
                },
            ),
        };
        let (cpu, moved) = (decision.cpu, decision.moved());
        self.report_text(Untyped::DecidedBalance.name(), || {
            format!("cpu={cpu} level={level} idle={:?} moved={moved} reason={reason}", decision.idle)
        });
    }
}
