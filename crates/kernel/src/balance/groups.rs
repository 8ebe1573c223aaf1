//! The sums over the groups of a domain, from the runqueues.
//!
//! Must not know: what is made of them.

#[cfg(test)]
mod tests;

use fairlab_event::Cpu;

use crate::balance::decided::LbEnv;
use crate::balance::rules::{
    BiggerCpus, CapacityMargin, Comparison, CountedTasks, EnergyOverload, Misfit, ReducedCapacity,
    SiblingPreference,
};
use crate::balance::statistics::{GroupType, SdLbStats, SgLbStats};
use crate::domain::{GroupExtent, SchedGroupId, SdFlags, fits_capacity};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Sums up the groups of a domain and finds the busiest.
    ///
    /// Kernel: `update_sd_lb_stats()`, kernel/sched/fair.c.
    pub(super) fn update_sd_lb_stats(&self, attempt: &mut LbEnv) -> SdLbStats {
        let rules = &self.shared.generation.balance;
        let below = attempt.level.checked_sub(1).map(|level| self.domain(attempt.cpu, level).flags);
        let child_prefers = below.is_some_and(|flags| flags.has(SdFlags::PREFER_SIBLING));
        let mut sds = SdLbStats::default();
        let domain = self.domain_id(attempt.cpu, attempt.level);
        for (index, id) in self.domains.groups(domain).enumerate() {
            let mut sums = match attempt.seen.get(index) {
                Some(seen) => *seen,
                None => self.update_sg_lb_stats(attempt, id, index == 0, &mut sds),
            };
            self.record_sg_llc_stats(attempt, id, &sums);
            if index == 0 {
                sds.local_stat = sums;
            } else {
                self.relieve_sibling(attempt, &sds, &mut sums, child_prefers);
                if self.can_take_from(attempt, &sds, &sums)
                    && self.packing_allows(attempt, &sds, &sums)
                    && rules.is_busier(&sds, &sums)
                {
                    (sds.busiest, sds.busiest_stat) = (Some(id), sums);
                }
            }
            sds.overutilized |= sums.overutilized;
            sds.total_load += sums.group_load;
            sds.total_capacity += sums.group_capacity;
            sds.total_util += sums.group_util;
        }
        sds.prefer_sibling = match (rules.sibling_preference, sds.busiest) {
            (SiblingPreference::OfChild, _) | (_, None) => child_prefers,
            (SiblingPreference::OfBusiest, Some(busiest)) => {
                self.domains.group(busiest).flags.has(SdFlags::PREFER_SIBLING)
            }
        };
        sds
    }

    /// Kernel: `update_sg_lb_stats()`, kernel/sched/fair.c.
    fn update_sg_lb_stats(
        &self,
        attempt: &LbEnv,
        group: SchedGroupId,
        is_local: bool,
        sds: &mut SdLbStats,
    ) -> SgLbStats {
        let (shared, group) = (self.domains.capacity_of_group(group), self.domains.group(group));
        let known =
            GroupExtent { capacity: shared.capacity, min: shared.min_capacity, max: shared.max_capacity };
        let extent = attempt.extent.filter(|_| is_local).unwrap_or(known);
        let (rules, sd) = (&self.shared.generation.balance, self.domain(attempt.cpu, attempt.level));
        let asym = sd.flags.has(SdFlags::ASYM_CPUCAPACITY) && rules.misfit == Misfit::GroupType;
        let index = self.load_index(attempt.cpu, attempt.level, attempt.idle);
        let mut sums = SgLbStats {
            group_weight: group.weight,
            cores: group.cores,
            is_smt: group.flags.has(SdFlags::SHARE_CPUCAPACITY),
            imbalanced: shared.imbalance,
            group_capacity: extent.capacity,
            min_capacity: extent.min,
            max_capacity: extent.max,
            ..SgLbStats::default()
        };
        let mut overutilized = false;
        let beyond_cache = self.shared.processes.active() && !sd.flags.has(SdFlags::SHARE_LLC);
        for cpu in group.span.iter_both(&attempt.cpus) {
            sds.scanned += 1;
            let rq = &self.rqs[cpu.index()];
            let queue = self.cfs(rq.cfs);
            let load = self.load_of_queue(queue);
            sums.unbiased_load += load;
            sums.group_load += self.biased_load(attempt, cpu, load, index, is_local);
            sums.group_util += self.util_of_queue(cpu, queue, false);
            sums.group_runnable += queue.tracked.avg.runnable_avg;
            sums.sum_h_nr_running += self.waiting_in(queue);
            let (fair, all) = (queue.h_nr_running, rq.nr_running);
            sums.sum_nr_running += if rules.counted == CountedTasks::AllClasses { all } else { fair };
            sds.overload |= all > 1;
            overutilized |= self.cpu_overutilized(cpu);
            if beyond_cache {
                sums.nr_pref_dst_llc += self.tasks_that_prefer(attempt.dest, cpu);
            }
            if all == 0 && self.idle_cpu(cpu) {
                sums.idle_cpus += 1;
            } else if asym && (!is_local || rules.comparison != Comparison::GroupTypes) {
                sums.misfit_load = sums.misfit_load.max(self.misfit_task_load(cpu));
            } else if !asym && !is_local && self.is_reason_to_take(attempt, cpu) {
                sums.misfit_load = sums.misfit_load.max(load);
            }
        }
        self.note_packing(attempt, is_local, sds, &mut sums, &group.span);
        sds.overload |= asym && sums.misfit_load > 0;
        sums.overutilized = overutilized;
        let needs_one = rules.energy_overload == EnergyOverload::WithOverutilizedCpu;
        sums.within_capacity = needs_one && self.energy.is_some() && !overutilized;
        sums.llc_balance = beyond_cache && !is_local && self.llc_balance(attempt, &group.span, &sums);
        self.classify(attempt, &mut sums, is_local);
        sums
    }

    fn classify(&self, attempt: &LbEnv, sums: &mut SgLbStats, is_local: bool) {
        let (rules, percent) = (&self.shared.generation.balance, attempt.imbalance_pct(self));
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
        let (rules, percent) = (&self.shared.generation.balance, attempt.imbalance_pct(self));
        let local = &sds.local_stat;
        if rules.comparison != Comparison::GroupTypes
            && prefers
            && rules.group_has_capacity(percent, local)
            && sums.sum_nr_running > local.sum_nr_running + 1
        {
            sums.group_no_capacity = true;
            sums.group_type = rules.group_classify(percent, sums);
        }
    }

    /// Whether taking from a group makes sense where CPUs differ in capacity.
    ///
    /// Kernel: the tests around capacity in `update_sd_pick_busiest()`, kernel/sched/fair.c.
    fn can_take_from(&self, attempt: &LbEnv, sds: &SdLbStats, sums: &SgLbStats) -> bool {
        let sd = self.domain(attempt.cpu, attempt.level);
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
