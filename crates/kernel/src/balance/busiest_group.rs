//! Which group is the busiest of a domain, and whether anything should be taken from it.
//!
//! Must not know: runqueues, tasks.

#[cfg(test)]
mod tests;

use super::reasons::BalancedReason;
use super::rules::{
    BalanceRules, Comparison, CoreSpreading, FullTie, MisfitTie, SingleCpuGroups, SmtGroups, SpareTie,
};
use super::statistics::{GroupType, SdLbStats, SgLbStats};
use crate::schedstat::CpuIdleType;

impl BalanceRules {
    /// Whether `group` is busier than the busiest so far.
    ///
    /// Kernel: `update_sd_pick_busiest()`, kernel/sched/fair.c. Variants: by type and average load to v5.4, then each type by
    /// its own (0b0695f2b34a). What different capacities forbid is told before.
    pub(crate) fn is_busier(&self, sds: &SdLbStats, group: &SgLbStats) -> bool {
        let busiest = &sds.busiest_stat;
        let by_types = self.comparison == Comparison::GroupTypes;
        if by_types && group.sum_h_nr_running == 0 {
            return false;
        }
        if sds.busiest.is_none() && !by_types {
            // The worst busiest group has no load.
            return group.group_type > GroupType::HasSpare || group.avg_load > 0;
        }
        if group.group_type != busiest.group_type || (sds.busiest.is_none() && by_types) {
            return match sds.busiest {
                Some(_) => group.group_type > busiest.group_type,
                None => group.group_type > GroupType::HasSpare || self.has_fewer_idle(sds, group),
            };
        }
        if !by_types {
            let larger_misfit =
                group.group_type != GroupType::MisfitTask || group.misfit_load >= busiest.misfit_load;
            return group.avg_load > busiest.avg_load && larger_misfit;
        }
        self.is_busier_of_type(sds, group)
    }

    /// The same of two groups in the same state.
    fn is_busier_of_type(&self, sds: &SdLbStats, group: &SgLbStats) -> bool {
        let busiest = &sds.busiest_stat;
        match group.group_type {
            GroupType::Overloaded => group.avg_load > busiest.avg_load,
            GroupType::LlcBalance => group.nr_pref_dst_llc > busiest.nr_pref_dst_llc,
            GroupType::Imbalanced => false,
            // Tasks of the least preferred CPUs are moved first.
            GroupType::AsymPacking => group.priority <= busiest.priority,
            GroupType::MisfitTask => match self.misfit_tie {
                MisfitTie::LastOfEquals => group.misfit_load >= busiest.misfit_load,
                MisfitTie::FirstOfEquals => group.misfit_load > busiest.misfit_load,
            },
            GroupType::SmtBalance if self.smt_groups == SmtGroups::RelievedByIdle => {
                if group.idle_cpus != 0 || busiest.idle_cpus != 0 {
                    self.has_fewer_idle(sds, group)
                } else {
                    self.is_fuller(busiest, group)
                }
            }
            GroupType::SmtBalance | GroupType::FullyBusy => self.is_fuller(busiest, group),
            GroupType::HasSpare => {
                let mixed = self.smt_groups != SmtGroups::LikeOthers && busiest.is_smt != group.is_smt;
                if mixed {
                    return !(group.is_smt && group.sum_h_nr_running <= 1);
                }
                self.has_fewer_idle(sds, group)
            }
        }
    }

    fn is_fuller(&self, busiest: &SgLbStats, group: &SgLbStats) -> bool {
        match self.full_tie {
            FullTie::First => group.avg_load > busiest.avg_load,
            FullTie::LastUnlessSmt => {
                group.avg_load > busiest.avg_load || (group.avg_load == busiest.avg_load && !busiest.is_smt)
            }
        }
    }

    fn has_fewer_idle(&self, sds: &SdLbStats, group: &SgLbStats) -> bool {
        let Some(_) = sds.busiest else { return true };
        let busiest = &sds.busiest_stat;
        match self.spare_tie {
            SpareTie::FewestIdle => group.idle_cpus < busiest.idle_cpus,
            SpareTie::FewestIdleMostTasks => {
                group.idle_cpus < busiest.idle_cpus
                    || (group.idle_cpus == busiest.idle_cpus && group.sum_nr_running > busiest.sum_nr_running)
            }
        }
    }

    /// Whether something should be taken from the busiest group.
    ///
    /// Kernel: `find_busiest_group()`, kernel/sched/fair.c.
    ///
    /// # Errors
    /// Why nothing should be.
    pub(crate) fn is_unbalanced(
        &self,
        sds: &mut SdLbStats,
        idle: CpuIdleType,
        imbalance_pct: u64,
    ) -> Result<(), BalancedReason> {
        if sds.busiest.is_none() || sds.busiest_stat.sum_h_nr_running == 0 {
            return Err(BalancedReason::NothingToTake);
        }
        match self.comparison {
            Comparison::GroupTypes => self.is_unbalanced_by_types(sds, idle, imbalance_pct),
            Comparison::Load | Comparison::LoadInSteps => {
                self.is_unbalanced_by_load(sds, idle, imbalance_pct)
            }
        }
    }

    fn is_unbalanced_by_load(
        &self,
        sds: &mut SdLbStats,
        idle: CpuIdleType,
        imbalance_pct: u64,
    ) -> Result<(), BalancedReason> {
        sds.avg_load = sds.average();
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        if busiest.group_type == GroupType::Imbalanced {
            return Ok(());
        }
        if idle != CpuIdleType::NotIdle
            && self.group_has_capacity(imbalance_pct, local)
            && busiest.group_no_capacity
        {
            return Ok(());
        }
        if busiest.group_type == GroupType::MisfitTask {
            return Ok(());
        }
        if local.avg_load >= busiest.avg_load {
            return Err(BalancedReason::LocalIsBusier);
        }
        if local.avg_load >= sds.avg_load {
            return Err(BalancedReason::AboveAverage);
        }
        if idle == CpuIdleType::Idle {
            if busiest.group_type != GroupType::Overloaded && local.idle_cpus <= busiest.idle_cpus + 1 {
                return Err(BalancedReason::IdleCpusEven);
            }
        } else if 100 * busiest.avg_load <= imbalance_pct * local.avg_load {
            return Err(BalancedReason::WithinPercent);
        }
        Ok(())
    }

    fn is_unbalanced_by_types(
        &self,
        sds: &mut SdLbStats,
        idle: CpuIdleType,
        imbalance_pct: u64,
    ) -> Result<(), BalancedReason> {
        let (local, busiest) = (sds.local_stat, sds.busiest_stat);
        if matches!(
            busiest.group_type,
            GroupType::MisfitTask | GroupType::AsymPacking | GroupType::Imbalanced
        ) {
            return Ok(());
        }
        if local.group_type > busiest.group_type {
            return Err(BalancedReason::LocalIsBusier);
        }
        if local.group_type == GroupType::Overloaded {
            if local.avg_load >= busiest.avg_load {
                return Err(BalancedReason::LocalIsBusier);
            }
            sds.avg_load = sds.average();
            if local.avg_load >= sds.avg_load {
                return Err(BalancedReason::AboveAverage);
            }
            if 100 * busiest.avg_load <= imbalance_pct * local.avg_load {
                return Err(BalancedReason::WithinPercent);
            }
        }
        if sds.prefer_sibling
            && local.group_type == GroupType::HasSpare
            && (busiest.group_type == GroupType::LlcBalance
                || self.sibling_imbalance(idle, &busiest, &local) > 1)
        {
            return Ok(());
        }
        if busiest.group_type == GroupType::Overloaded {
            return Ok(());
        }
        self.is_worth_an_idle_cpu(&busiest, &local, idle)
    }

    /// The busiest group is not overloaded: whether an idle CPU should take from it all the same.
    fn is_worth_an_idle_cpu(
        &self,
        busiest: &SgLbStats,
        local: &SgLbStats,
        idle: CpuIdleType,
    ) -> Result<(), BalancedReason> {
        if idle == CpuIdleType::NotIdle {
            return Err(BalancedReason::LeftToIdleCpus);
        }
        if busiest.group_type == GroupType::SmtBalance && local.is_smt != busiest.is_smt {
            return Ok(());
        }
        let even = local.idle_cpus <= busiest.idle_cpus.saturating_add(1);
        match self.single_cpu {
            SingleCpuGroups::ByIdleCpus if even => Err(BalancedReason::IdleCpusEven),
            SingleCpuGroups::ByIdleCpus => Ok(()),
            SingleCpuGroups::ByWaiting if busiest.group_weight > 1 && even => {
                Err(BalancedReason::IdleCpusEven)
            }
            SingleCpuGroups::ByWaiting if busiest.sum_h_nr_running == 1 => Err(BalancedReason::NothingWaits),
            SingleCpuGroups::ByWaiting => Ok(()),
        }
    }

    /// By how many tasks the busiest group is ahead, in proportion to the groups' cores.
    ///
    /// Kernel: `sibling_imbalance()`, kernel/sched/fair.c, from v6.6 (7ff1693236f5); before, the plain difference.
    pub(crate) fn sibling_imbalance(&self, idle: CpuIdleType, busiest: &SgLbStats, local: &SgLbStats) -> i64 {
        let (theirs, ours) = (i64::from(busiest.sum_nr_running), i64::from(local.sum_nr_running));
        if self.cores == CoreSpreading::ByTasks {
            return (theirs - ours).max(0);
        }
        if idle == CpuIdleType::NotIdle || theirs == 0 {
            return 0;
        }
        let (their_cores, our_cores) = (i64::from(busiest.cores), i64::from(local.cores));
        if their_cores == our_cores {
            return (theirs - ours).max(0);
        }
        let ahead = (our_cores * theirs - their_cores * ours).max(0);
        let imbalance = (2 * ahead + our_cores + their_cores) / (our_cores + their_cores);
        if imbalance <= 1 && ours == 0 && theirs > 1 { 2 } else { imbalance }
    }
}
