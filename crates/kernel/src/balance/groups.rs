//! The sums over the groups of a domain, from the runqueues.
//!
//! Must not know: what is made of them.

#[cfg(test)]
mod tests;

use std::cell::Ref;

use fairlab_event::Cpu;

use crate::balance::decided::LbEnv;
use crate::balance::kept_sums::{KeptSums, QueueSums};
use crate::balance::rules::{
    BiggerCpus, CapacityMargin, Comparison, CountedTasks, EnergyOverload, Misfit, ReducedCapacity,
    SiblingPreference,
};
use crate::balance::statistics::{GroupType, SdLbStats, SgLbStats};
use crate::domain::{GroupExtent, SchedDomain, SchedGroupId, SdFlags, fits_capacity};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

/// What a look at the groups of a domain goes by.
struct DomainLook<'s> {
    sd: &'s SchedDomain,
    /// The group of the CPU that balances.
    local: SchedGroupId,
    kept: Ref<'s, KeptSums>,
    /// All CPUs of the domain take part.
    is_whole: bool,
    /// Which of the loads of the past count; 0 is none.
    load_index: usize,
    /// CPUs differ in capacity, and a task that is too large for its own is a state of its group.
    asym: bool,
    /// Tasks may prefer another cache than that of their CPU.
    beyond_cache: bool,
    /// Only groups with fair tasks can be the busiest, and the others are asked for nothing but their sums.
    passes_empty: bool,
}

impl Scheduler {
    fn look_at_domain(&self, attempt: &LbEnv) -> DomainLook<'_> {
        let (rules, sd) = (&self.shared.generation.balance, self.domain(attempt.cpu, attempt.level));
        let biased =
            if attempt.lb_bias { self.load_index(attempt.cpu, attempt.level, attempt.idle) } else { 0 };
        let (asym_capacity, gathers) =
            (sd.flags.has(SdFlags::ASYM_CPUCAPACITY), self.shared.processes.active());
        DomainLook {
            sd,
            local: self.domains.local_group(self.domain_id(attempt.cpu, attempt.level)),
            kept: self.kept_sums(),
            is_whole: attempt.cpus == sd.span,
            load_index: biased,
            asym: asym_capacity && rules.misfit == Misfit::GroupType,
            beyond_cache: gathers && !sd.flags.has(SdFlags::SHARE_LLC),
            passes_empty: rules.comparison == Comparison::GroupTypes
                && !asym_capacity
                && self.energy.is_none()
                && !gathers,
        }
    }

    /// Sums up the groups of a domain and finds the busiest.
    ///
    /// Kernel: `update_sd_lb_stats()`, kernel/sched/fair.c.
    pub(super) fn update_sd_lb_stats(&self, attempt: &mut LbEnv) -> SdLbStats {
        let rules = &self.shared.generation.balance;
        let below = attempt.level.checked_sub(1).map(|level| self.domain(attempt.cpu, level).flags);
        let child_prefers = below.is_some_and(|flags| flags.has(SdFlags::PREFER_SIBLING));
        let mut sds = SdLbStats::default();
        let look = self.look_at_domain(attempt);
        let domain = self.domain_id(attempt.cpu, attempt.level);
        for (index, id) in self.domains.groups(domain).enumerate() {
            let mut sums = match attempt.seen.get(index) {
                Some(seen) => *seen,
                None => {
                    let bears = self.sums_of_group(attempt, &look, id);
                    sds.scanned += bears.cpus;
                    sds.overload |= bears.overloaded > 0;
                    if index > 0 && bears.waiting == 0 && look.passes_empty {
                        sds.total_load += bears.load;
                        sds.total_capacity += self.domains.capacity_of_group(id).capacity;
                        sds.total_util += bears.util;
                        continue;
                    }
                    self.update_sg_lb_stats(attempt, &look, id, bears, &sds)
                }
            };
            sds.overload |= look.asym && sums.misfit_load > 0;
            self.record_sg_llc_stats(attempt, id, &sums);
            sds.overutilized |= sums.overutilized;
            sds.total_load += sums.group_load;
            sds.total_capacity += sums.group_capacity;
            sds.total_util += sums.group_util;
            if index == 0 {
                sds.local_stat = sums;
                continue;
            }
            self.relieve_sibling(attempt, &sds, &mut sums, child_prefers);
            if self.can_take_from(attempt, look.sd, &sds, &sums)
                && self.packing_allows(attempt, &sds, &sums)
                && rules.is_busier(&sds, &sums)
            {
                (sds.busiest, sds.busiest_stat) = (Some(id), sums);
            }
        }
        sds.prefer_sibling = match (rules.sibling_preference, sds.busiest) {
            (SiblingPreference::OfChild, _) | (_, None) => child_prefers,
            (SiblingPreference::OfBusiest, Some(busiest)) => {
                self.domains.group(busiest).flags.has(SdFlags::PREFER_SIBLING)
            }
        };
        sds
    }

    /// What the CPUs of a group bear that take part.
    #[inline]
    fn sums_of_group(&self, attempt: &LbEnv, look: &DomainLook<'_>, id: SchedGroupId) -> QueueSums {
        let span = &self.domains.group(id).span;
        if !look.is_whole || !look.sd.span.contains_all(span) {
            return self.sums_of_cpus(span.iter_both(&attempt.cpus));
        }
        let sums = look.kept.of_group(id);
        #[cfg(test)]
        assert_eq!(sums, self.sums_of_cpus(span.iter()), "what is kept of CPUs {span} is not what they bear");
        sums
    }

    /// The sums over groups as they are now.
    fn kept_sums(&self) -> Ref<'_, KeptSums> {
        self.balance.sums.fresh(&self.domains, self.rqs.len(), |kept| {
            self.shared.cfs_rqs.take_changed(|cpu| kept.set(cpu, self.sums_of_cpu(cpu)));
        })
    }

    /// What some CPUs bear together.
    fn sums_of_cpus(&self, cpus: impl Iterator<Item = Cpu>) -> QueueSums {
        cpus.fold(QueueSums::default(), |sums, cpu| sums.plus(self.sums_of_cpu(cpu)))
    }

    fn counts_as_idle(&self, cpu: Cpu) -> bool {
        self.rqs[cpu.index()].nr_running == 0 && self.idle_cpu(cpu)
    }

    fn sums_of_cpu(&self, cpu: Cpu) -> QueueSums {
        let rq = &self.rqs[cpu.index()];
        let queue = self.cfs(rq.cfs);
        let (fair, all) = (queue.h_nr_running, rq.nr_running);
        QueueSums {
            load: self.load_of_queue(queue),
            util: self.util_of_queue(cpu, queue, false),
            runnable: queue.tracked.avg.runnable_avg,
            waiting: self.waiting_in(queue),
            running: match self.shared.generation.balance.counted {
                CountedTasks::AllClasses => all,
                CountedTasks::Fair => fair,
            },
            idle: u32::from(self.counts_as_idle(cpu)),
            overloaded: u32::from(all > 1),
            cpus: 1,
        }
    }

    /// What is known of a group beside what its CPUs bear.
    ///
    /// Kernel: `update_sg_lb_stats()`, kernel/sched/fair.c.
    fn update_sg_lb_stats(
        &self,
        attempt: &LbEnv,
        look: &DomainLook<'_>,
        id: SchedGroupId,
        bears: QueueSums,
        sds: &SdLbStats,
    ) -> SgLbStats {
        let is_local = id == look.local;
        let (shared, group) = (self.domains.capacity_of_group(id), self.domains.group(id));
        let known =
            GroupExtent { capacity: shared.capacity, min: shared.min_capacity, max: shared.max_capacity };
        let extent = attempt.extent.filter(|_| is_local).unwrap_or(known);
        let rules = &self.shared.generation.balance;
        let mut sums = SgLbStats {
            group_weight: group.weight,
            cores: group.cores,
            is_smt: group.flags.has(SdFlags::SHARE_CPUCAPACITY),
            imbalanced: shared.imbalance,
            group_capacity: extent.capacity,
            min_capacity: extent.min,
            max_capacity: extent.max,
            unbiased_load: bears.load,
            group_load: bears.load,
            group_util: bears.util,
            group_runnable: bears.runnable,
            sum_h_nr_running: bears.waiting,
            sum_nr_running: bears.running,
            idle_cpus: bears.idle,
            ..SgLbStats::default()
        };
        let cpus = || group.span.iter_both(&attempt.cpus);
        if look.load_index > 0 {
            sums.group_load = self.biased_load(cpus(), look.load_index, is_local);
        }
        if look.beyond_cache {
            sums.nr_pref_dst_llc = cpus().map(|cpu| self.tasks_that_prefer(attempt.dest, cpu)).sum();
        }
        sums.overutilized = self.energy.is_some() && cpus().any(|cpu| self.cpu_overutilized(cpu));
        if look.asym && (!is_local || rules.comparison != Comparison::GroupTypes) {
            sums.misfit_load = self.largest_of_busy(cpus(), |cpu| self.misfit_task_load(cpu));
        } else if !look.asym && !is_local && !self.domains.is_unpressed(group) {
            let taken = |cpu| if self.is_reason_to_take(attempt, cpu) { self.balanced_load(cpu) } else { 0 };
            sums.misfit_load = self.largest_of_busy(cpus(), taken);
        }
        self.note_packing(attempt, is_local, sds, &mut sums, &group.span);
        let needs_one = rules.energy_overload == EnergyOverload::WithOverutilizedCpu;
        sums.within_capacity = needs_one && self.energy.is_some() && !sums.overutilized;
        sums.llc_balance = look.beyond_cache && !is_local && self.llc_balance(attempt, &group.span, &sums);
        self.classify(attempt, look.sd, &mut sums, is_local);
        sums
    }

    /// The largest load that any CPU of a group tells which is not idle.
    fn largest_of_busy(&self, cpus: impl Iterator<Item = Cpu>, load: impl Fn(Cpu) -> u64) -> u64 {
        cpus.filter(|&cpu| !self.counts_as_idle(cpu)).map(load).max().unwrap_or(0)
    }

    fn classify(&self, attempt: &LbEnv, sd: &SchedDomain, sums: &mut SgLbStats, is_local: bool) {
        let (rules, percent) = (&self.shared.generation.balance, sd.imbalance_pct.into());
        sums.smt_balance = !is_local && rules.smt_balance(attempt.idle != CpuIdleType::NotIdle, sums);
        if rules.comparison == Comparison::GroupTypes {
            sums.group_type = rules.group_classify(percent, sums);
            if sums.group_type == GroupType::Overloaded {
                sums.avg_load = sums.average();
            }
        } else {
            sums.avg_load = sums.average();
            sums.load_per_task = sums.unbiased_load.checked_div(sums.sum_h_nr_running.into()).unwrap_or(0);
            sums.group_no_capacity = rules.group_is_overloaded(percent, sums);
            sums.group_type = rules.group_classify(percent, sums);
        }
    }

    /// To v5.4, a group with tasks to spare for its siblings is treated as overloaded.
    fn relieve_sibling(&self, attempt: &LbEnv, sds: &SdLbStats, sums: &mut SgLbStats, prefers: bool) {
        let rules = &self.shared.generation.balance;
        if rules.comparison == Comparison::GroupTypes || !prefers {
            return;
        }
        let (local, percent) = (&sds.local_stat, attempt.imbalance_pct(self));
        if rules.group_has_capacity(percent, local) && sums.sum_nr_running > local.sum_nr_running + 1 {
            sums.group_no_capacity = true;
            sums.group_type = rules.group_classify(percent, sums);
        }
    }

    /// Whether taking from a group makes sense where CPUs differ in capacity.
    ///
    /// Kernel: the tests around capacity in `update_sd_pick_busiest()`, kernel/sched/fair.c.
    fn can_take_from(&self, attempt: &LbEnv, sd: &SchedDomain, sds: &SdLbStats, sums: &SgLbStats) -> bool {
        if !sd.flags.has(SdFlags::ASYM_CPUCAPACITY) {
            return true;
        }
        let rules = &self.shared.generation.balance;
        let by_types = rules.comparison == Comparison::GroupTypes;
        if sums.group_type == GroupType::MisfitTask {
            let local = &sds.local_stat;
            let has_capacity = match by_types {
                true => local.group_type == GroupType::HasSpare,
                false => rules.group_has_capacity(attempt.imbalance_pct(self), local),
            };
            return has_capacity && self.is_bigger_than(attempt, local, sums);
        }
        let lightly_used = match by_types {
            true => sums.group_type <= GroupType::FullyBusy,
            false => sums.sum_nr_running <= sums.group_weight,
        };
        let is_tie = sums.group_type == sds.busiest_stat.group_type;
        !(lightly_used && is_tie && self.is_smaller_than(attempt, &sds.local_stat, sums))
    }

    /// Whether a CPU has one fair task and too little left for it, which an idle CPU would have.
    ///
    /// Kernel: `sched_reduced_capacity()`, kernel/sched/fair.c, from v6.0 (c82a69629c53).
    fn is_reason_to_take(&self, attempt: &LbEnv, cpu: Cpu) -> bool {
        self.shared.generation.balance.reduced_capacity == ReducedCapacity::GroupType
            && attempt.idle != CpuIdleType::NotIdle
            && self.waiting_tasks(cpu) == 1
            && self.has_reduced_capacity(cpu, self.domain(attempt.cpu, attempt.level))
    }

    /// Whether there is a bigger CPU here than any of `group`.
    fn is_bigger_than(&self, attempt: &LbEnv, local: &SgLbStats, group: &SgLbStats) -> bool {
        match self.shared.generation.balance.capacity_margin {
            CapacityMargin::Quarter => fits_capacity(group.max_capacity, local.max_capacity),
            CapacityMargin::Twentieth => {
                capacity_greater(self.capacity_in(attempt, attempt.dest), group.max_capacity)
            }
        }
    }

    /// Whether every CPU of `group` is bigger than here.
    fn is_smaller_than(&self, attempt: &LbEnv, local: &SgLbStats, group: &SgLbStats) -> bool {
        match self.shared.generation.balance.capacity_margin {
            CapacityMargin::Quarter => fits_capacity(local.min_capacity, group.min_capacity),
            CapacityMargin::Twentieth => {
                capacity_greater(group.min_capacity, self.capacity_in(attempt, attempt.dest))
            }
        }
    }

    /// Whether balancing passes over a single task on a CPU that is bigger than this one (`find_busiest_queue()`).
    pub(super) fn spares_bigger_cpu(&self, attempt: &LbEnv, cpu: Cpu) -> bool {
        let rules = &self.shared.generation.balance;
        let asym = self.domain(attempt.cpu, attempt.level).flags.has(SdFlags::ASYM_CPUCAPACITY);
        if !asym || rules.bigger_cpus == BiggerCpus::SparedByGroup {
            return false;
        }
        let (here, there) = (self.capacity_in(attempt, attempt.dest), self.capacity_of(cpu));
        match rules.capacity_margin {
            CapacityMargin::Quarter => here < there,
            CapacityMargin::Twentieth => !capacity_greater(here, there),
        }
    }
}

/// Whether `one` exceeds `other` by about a twentieth (`capacity_greater()`, 4aed8aa41524).
const fn capacity_greater(one: u64, other: u64) -> bool {
    one * 1024 > other * 1078
}
