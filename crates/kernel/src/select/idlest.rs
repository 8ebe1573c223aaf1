//! The slow path, for fork and exec: down the domains to the idlest CPU.

mod by_load;
mod by_type;
#[cfg(test)]
pub(super) mod tests;

use fairlab_event::Cpu;

use super::rules::{IdlestGroup, IdlestSelf, OwnEstimate, SchedIdleCpu};
use super::{Wakee, decide};
use crate::decision::{CpuDecision, SelectReason};
use crate::domain::{DomainId, SchedGroupId, SdFlags};
use crate::generation::Feature;
use crate::pelt::{CpuUtil, SchedAvg, TaskUtil};
use crate::scheduler::Scheduler;
use crate::task::TaskId;

/// Who looks for the idlest CPU.
#[derive(Clone, Copy, Debug)]
struct IdlestSearch {
    wakee: Wakee,
    /// Its averages, aged where the kernel ages them first.
    avg: SchedAvg,
    is_new: bool,
}

impl Scheduler {
    /// The idlest allowed CPU, searched from `domain` downwards: at each level with `flag` the idlest group, in it the
    /// idlest CPU, and from there the levels below. Pure.
    ///
    /// Kernel: `find_idlest_cpu()`, kernel/sched/fair.c; from v6.10 `sched_balance_find_dst_cpu()`.
    pub(super) fn find_idlest_cpu(&self, domain: DomainId, wakee: Wakee, flag: SdFlags) -> CpuDecision {
        let is_new = flag == SdFlags::BALANCE_FORK;
        let allowed = self.shared.tasks[wakee.task.index()].allowed;
        if allowed.and(&self.domains.domain(domain).span).is_empty() {
            return decide(wakee.prev, SelectReason::NoDomain, 0);
        }
        let avg = if is_new { self.entity_of(wakee.task).avg } else { self.synced_avg(wakee.task) };
        let seeker = IdlestSearch { wakee, avg, is_new };
        let takes_off = self.shared.generation.select.idlest_self == IdlestSelf::TakenOff;
        let mut scanned = 0;
        let mut cpu = wakee.here;
        let mut new_cpu = cpu;
        let mut level = Some(domain);
        while let Some(id) = level {
            let sd = self.domains.domain(id);
            let group = sd.flags.has(flag).then(|| {
                scanned += sd.span_weight;
                self.find_idlest_group(id, seeker, cpu)
            });
            let Some(group) = group.flatten() else {
                level = sd.child;
                continue;
            };
            new_cpu = self.find_idlest_group_cpu(group, seeker, cpu, &mut scanned);
            if new_cpu == cpu {
                level = sd.child;
                continue;
            }
            cpu = new_cpu;
            let weight = sd.span_weight;
            let below =
                self.domains.ids_of(cpu).take_while(|id| self.domains.domain(*id).span_weight < weight);
            level = below.filter(|id| self.domains.domain(*id).flags.has(flag)).last();
        }
        let reason =
            if new_cpu == wakee.here { SelectReason::LocalIdlest } else { SelectReason::IdlestInGroup };
        let mut decision = decide(new_cpu, reason, scanned);
        decision.search.own_load_asked = takes_off && scanned > 0 && self.counts_on(wakee.prev, seeker);
        decision
    }

    /// The idlest group of a domain that the task may use; `None` if that is the local one of `cpu`.
    fn find_idlest_group(&self, domain: DomainId, seeker: IdlestSearch, cpu: Cpu) -> Option<SchedGroupId> {
        match self.shared.generation.select.idlest_group {
            IdlestGroup::ByLoad => self.idlest_group_by_load(domain, seeker, cpu),
            IdlestGroup::ByType => self.idlest_group_by_type(domain, seeker, cpu),
        }
    }

    /// The idlest allowed CPU of a group: of those that wake the soonest the one that went idle last, or else the least loaded
    /// one.
    ///
    /// Kernel: `find_idlest_group_cpu()`, kernel/sched/fair.c. Variants: SCHED_IDLE CPUs from v5.4 (3c29e651e16d), before
    /// idle ones from v5.6 (17346452b25b).
    fn find_idlest_group_cpu(
        &self,
        group: SchedGroupId,
        seeker: IdlestSearch,
        this_cpu: Cpu,
        scanned: &mut u32,
    ) -> Cpu {
        let span = self.domains.group(group).span;
        if span.weight() == 1 {
            return span.lowest().unwrap_or(this_cpu);
        }
        let second_choice = self.shared.generation.select.sched_idle_cpu == SchedIdleCpu::SecondChoice;
        let (mut latest, mut idle, mut sched_idle) = (i64::MIN, None, None);
        let mut soonest = u64::MAX;
        let (mut least, mut least_loaded) = (u64::MAX, this_cpu);
        for cpu in span.and(&self.shared.tasks[seeker.wakee.task.index()].allowed).iter() {
            *scanned += 1;
            let chosen = self.sched_idle_chosen(seeker.wakee, cpu);
            if chosen && !second_choice {
                return cpu;
            }
            if self.idle_cpu(cpu) {
                let stamp = self.rqs[cpu.index()].idle_time.idle_stamp;
                let stamp = stamp.map_or(i64::MIN + 1, |stamp| stamp.0 as i64);
                let exit = self.rqs[cpu.index()].exit_latency;
                let is_sooner = exit.is_some_and(|exit| exit < soonest);
                if is_sooner || (exit.is_none_or(|exit| exit == soonest) && stamp > latest) {
                    soonest = exit.unwrap_or(soonest);
                    (latest, idle) = (stamp, Some(cpu));
                }
            } else if idle.is_none() && sched_idle.is_none() {
                if chosen {
                    sched_idle = Some(cpu);
                    continue;
                }
                let load = self.cpu_load(cpu);
                if load < least {
                    (least, least_loaded) = (load, cpu);
                }
            }
        }
        idle.or(sched_idle).unwrap_or(least_loaded)
    }

    /// How much of a CPU others than the task use.
    ///
    /// Kernel: `cpu_util_wake()`, `cpu_util_without()`, kernel/sched/fair.c.
    fn cpu_util_without(&self, cpu: Cpu, seeker: IdlestSearch) -> u64 {
        let task = seeker.wakee.task;
        let is_here = self.counts_on(cpu, seeker);
        let queued = self.shared.tasks[task.index()].is_queued() || self.curr(seeker.wakee.here) == task;
        let takes_off = self.shared.generation.select.own_estimate == OwnEstimate::TakenOff;
        let without =
            TaskUtil { avg: seeker.avg, is_here: true, is_queued: queued && takes_off, comes_here: false };
        self.shared.generation.pelt.cpu_util(CpuUtil {
            queue: &self.cfs(self.rqs[cpu.index()].cfs).tracked.avg,
            task: is_here.then_some(without),
            capacity: self.capacity_orig_of(cpu),
            boost: false,
            util_est_enabled: self.has(Feature::UtilEst),
        })
    }

    /// Whether the task's averages are part of `cpu`'s.
    fn counts_on(&self, cpu: Cpu, seeker: IdlestSearch) -> bool {
        self.shared.tasks[seeker.wakee.task.index()].cpu == cpu && seeker.avg.last_update_time != 0
    }

    fn avg_of(&self, cpu: Cpu) -> &SchedAvg {
        &self.cfs(self.rqs[cpu.index()].cfs).tracked.avg
    }

    fn task_runs_on(&self, task: TaskId, cpu: Cpu) -> bool {
        self.shared.tasks[task.index()].cpu == cpu && self.shared.tasks[task.index()].is_queued()
    }
}
