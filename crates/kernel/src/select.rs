//! `select_task_rq_fair()`: the CPU on which a woken or new task is queued, and what wakeups know of idle CPUs.

mod bound;
mod capacity;
mod energy;
mod exec;
mod given;
mod given_cpu;
mod idle_average;
mod idle_choice;
mod idle_sibling;
mod idle_time;
mod idlest;
pub mod rules;
mod scan;
#[cfg(test)]
mod situations;
mod span;
mod statistics;
mod wake_affine;
mod wake_list;
mod wakee;

use fairlab_event::{Cpu, Ns};

use crate::all_cpus::SharedLine;
use crate::core::WakeKind;
use crate::decision::{CpuDecision, IdleCpuSearch, SelectReason};
use crate::domain::SdFlags;
use crate::ids::TaskId;
use crate::scheduler::Scheduler;
use crate::select::rules::RecentUsed;
use crate::select::wakee::{Wakee, decide};
use crate::task::Policy;

pub use given_cpu::{GivenCpu, GivenLoad};
pub(crate) use idle_average::IdleTime;
pub use rules::{SelectEffect, SelectRules};
#[cfg(test)]
pub(crate) use situations::SITUATIONS;
pub use statistics::{Percent, SisSummary};

impl Scheduler {
    /// The CPU on which `task` should be queued, asked on `here` by its running task. Pure.
    ///
    /// Kernel: `select_task_rq()`, kernel/sched/core.c; `select_task_rq_fair()`, kernel/sched/fair.c.
    /// Variants: by energy, where there is a model of it, from v5.0 (732cd75b8c92).
    /// Departs: tasks whose migration is disabled do not exist.
    pub fn select_task_rq(&self, task: TaskId, here: Cpu, kind: WakeKind) -> CpuDecision {
        let woken = &self.shared.tasks[task.index()];
        let prev = woken.cpu;
        let pinned = woken.allowed.only_one_in_both(self.shared.topology.online());
        if woken.policy.is_rt() && !pinned {
            return self.select_task_rq_rt(task, here);
        }
        if woken.policy == Policy::Deadline && !pinned {
            // There is no other one of its class (`select_task_rq_dl()`).
            return decide(prev, SelectReason::LessUrgentThere, 0);
        }
        if pinned || !woken.policy.is_fair() {
            let cpu = if woken.allowed.contains(prev) { Some(prev) } else { woken.allowed.lowest() };
            return decide(cpu.expect("a task is allowed somewhere"), SelectReason::OnlyAllowed, 0);
        }
        let wakee = Wakee { task, here, prev };
        let decision = self.select_task_rq_fair(wakee, kind);
        if woken.allowed.contains(decision.cpu) {
            return decision;
        }
        let search = IdleCpuSearch { refused: Some(decision.cpu), ..decision.search };
        CpuDecision { cpu: self.fallback_rq(wakee), reason: SelectReason::Disallowed, search, ..decision }
    }

    /// An allowed CPU, if possible on the node of the previous one.
    ///
    /// Kernel: `select_fallback_rq()`, kernel/sched/core.c.
    fn fallback_rq(&self, wakee: Wakee) -> Cpu {
        let allowed = self.shared.tasks[wakee.task.index()].allowed.and(self.shared.topology.online());
        let on_node = allowed.and(self.shared.topology.node_mask(wakee.prev)).lowest();
        on_node.or_else(|| allowed.lowest()).expect("a task is allowed somewhere")
    }

    /// Goes up the domains of the selecting CPU: to the first in which the waker may pull the task, or to the last that
    /// is searched on this occasion.
    fn select_task_rq_fair(&self, wakee: Wakee, kind: WakeKind) -> CpuDecision {
        let Wakee { task, here, prev } = wakee;
        let (flag, sync) = match kind {
            WakeKind::Fork => (SdFlags::BALANCE_FORK, None),
            WakeKind::Exec => (SdFlags::BALANCE_EXEC, None),
            WakeKind::Wakeup { sync } => {
                let sleeps = !self.shared.tasks[self.curr(here).index()].exiting;
                (SdFlags::BALANCE_WAKE, Some(sync && sleeps))
            }
        };
        if sync.is_some()
            && let Some(decision) = self.find_energy_efficient_cpu(wakee)
        {
            return decision;
        }
        let affine = sync.is_some()
            && !self.wake_wide(self.curr(here), task, here)
            && !self.wake_cap(wakee)
            && self.shared.tasks[task.index()].allowed.contains(here);
        let mut target = prev;
        let mut searched = None;
        let (mut pulled_in, mut weighed) = (None, None);
        for id in self.domains.ids_of(here) {
            let domain = self.domains.domain(id);
            if affine && domain.flags.has(SdFlags::WAKE_AFFINE) && domain.span.contains(prev) {
                if here != prev {
                    let sync = sync == Some(true);
                    let (chosen, by_weight) = self.wake_affine(wakee, sync, i64::from(domain.imbalance_pct));
                    target = chosen;
                    weighed = by_weight.then_some(sync);
                    pulled_in = (target == here).then_some(id);
                }
                searched = None;
                break;
            }
            if domain.flags.has(flag) {
                searched = Some(id);
            } else if !affine {
                break;
            }
        }
        match (searched, sync) {
            (Some(domain), _) => self.find_idlest_cpu(domain, wakee, flag),
            (None, None) => decide(prev, SelectReason::NoDomain, 0),
            (None, Some(_)) => {
                let mut decision = self.select_idle_sibling(wakee, target);
                decision.search.affine = affine;
                decision.search.pulled_in = pulled_in;
                decision.search.weighed = weighed;
                if !affine && decision.reason == SelectReason::NoIdle {
                    decision.reason = SelectReason::NotAffine;
                }
                decision
            }
        }
    }

    /// What a selection on `here` leaves behind: the CPU used before, whether a cache has an idle core, and counts.
    ///
    /// Kernel: `select_idle_sibling()`, `set_idle_cores()`; `select_task_rq_fair()` for the waker, to v5.14.
    pub(crate) fn remember_selection(&mut self, here: Cpu, task: TaskId, decision: CpuDecision) {
        let search = decision.search;
        self.rqs[here.index()].counters.sis.count(&search);
        if let Some(domain) = search.pulled_in {
            self.domains.domain_mut(domain).counters.ttwu_move_affine += 1;
        }
        if let Some(sync) = search.weighed {
            self.remember_weighing(here, task, sync);
        }
        if search.own_load_asked {
            self.shared.update_cfs_rq_h_load(self.entity_of(task).cfs_rq);
        }
        let prev = self.shared.tasks[task.index()].cpu;
        match self.shared.generation.select.recent_used {
            RecentUsed::OnUse if search.entered => {
                if search.recent == Some(true) {
                    self.shared.tasks[task.index()].recent_used_cpu = prev;
                }
                if search.affine {
                    let waker = self.curr(here);
                    self.shared.tasks[waker.index()].recent_used_cpu = here;
                }
            }
            RecentUsed::WhenSeen if search.reached_recent => {
                self.shared.tasks[task.index()].recent_used_cpu = prev;
            }
            RecentUsed::OnUse | RecentUsed::WhenSeen => {}
        }
        if decision.scanned > 0
            && let Some(shared) = self.domains.of_cpu(decision.cpu).sd_llc_shared
        {
            self.shared.note_line(SharedLine::CacheState(shared.0), false);
        }
        if let Some(shared) = decision.no_idle_core_in {
            self.shared.note_line(SharedLine::CacheState(shared.0), true);
            self.domains.shared_mut(shared).has_idle_cores = false;
        }
    }

    /// The search of a decision, made on `here`, has taken `time`: what it costs on average bounds the next ones.
    pub fn account_search(&mut self, here: Cpu, decision: CpuDecision, time: Ns) {
        if decision.search.timed {
            self.account_scan(here, time);
        }
        if self.shared.trace.balancing && decision.search.domain {
            self.tell_idle_mask(decision.cpu, None);
        }
    }
}
