//! How much is to be moved to even out two groups, and in what measure.
//!
//! Must not know: runqueues, tasks.

#[cfg(test)]
mod tests;

use super::rules::{
    BalanceRules, Comparison, CoreSpreading, Halving, LocalAverage, NumaAllowance, SpareCapacity,
};
use super::statistics::{CAPACITY_SCALE, GroupType, SdLbStats, SgLbStats};
use crate::domain::SdFlags;
use crate::schedstat::CpuIdleType;

/// What is counted when tasks are moved (`enum migration_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MigrationType {
    /// Load; the only measure to v5.4.
    #[default]
    Load,
    /// Utilization.
    Util,
    /// Tasks.
    Task,
    /// One task that is too large for its CPU.
    Misfit,
    /// Tasks that prefer the last-level cache to which they go (`migrate_llc_task`).
    LlcTask,
}

impl MigrationType {
    /// Its name in the kernel, without `migrate_`.
    pub const fn name(self) -> &'static str {
        match self {
            MigrationType::Load => "load",
            MigrationType::Util => "util",
            MigrationType::Task => "task",
            MigrationType::Misfit => "misfit",
            MigrationType::LlcTask => "llc_task",
        }
    }
}

/// How much of what is to be moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Imbalance {
    /// Of what.
    pub migration: MigrationType,
    /// How much (`env.imbalance`).
    pub amount: i64,
}

impl Imbalance {
    const fn new(migration: MigrationType, amount: u64) -> Imbalance {
        Imbalance { migration, amount: amount as i64 }
    }
}

/// Where it is to be moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImbalanceTarget {
    pub idle: CpuIdleType,
    pub flags: SdFlags,
    pub imb_numa_nr: u32,
    /// Load of the average task of the CPU that balances (before fcf0553db6f4).
    pub load_per_task_here: u64,
}

impl BalanceRules {
    /// How much of what is to be moved from the busiest to the local group.
    ///
    /// Kernel: `calculate_imbalance()`, kernel/sched/fair.c. Variants: `LoadInSteps` to v5.4, `Load` between two commits of
    /// v5.5 (fcf0553db6f4), `GroupTypes` from v5.5 (0b0695f2b34a).
    pub(crate) fn calculate_imbalance(&self, sds: &mut SdLbStats, how: ImbalanceTarget) -> Imbalance {
        match self.comparison {
            Comparison::LoadInSteps | Comparison::Load => {
                Imbalance::new(MigrationType::Load, self.imbalance_by_load(sds, how))
            }
            Comparison::GroupTypes => self.imbalance_by_types(sds, how),
        }
    }

    fn imbalance_by_types(&self, sds: &mut SdLbStats, how: ImbalanceTarget) -> Imbalance {
        let (local, busiest) = (sds.local_stat, sds.busiest_stat);
        match busiest.group_type {
            // Not that it is too large: other classes leave it too little.
            GroupType::MisfitTask if !how.flags.has(SdFlags::ASYM_CPUCAPACITY) => {
                return Imbalance::new(MigrationType::Load, busiest.misfit_load);
            }
            GroupType::MisfitTask => {
                let amount = match self.misfit_size {
                    super::rules::MisfitSize::ByLoad => busiest.misfit_load,
                    super::rules::MisfitSize::ByCapacity => 1,
                };
                return Imbalance::new(MigrationType::Misfit, amount);
            }
            GroupType::AsymPacking => {
                return Imbalance::new(MigrationType::Task, busiest.sum_h_nr_running.into());
            }
            GroupType::LlcBalance => return Imbalance::new(MigrationType::LlcTask, 1),
            GroupType::SmtBalance | GroupType::Imbalanced => return Imbalance::new(MigrationType::Task, 1),
            _ => {}
        }
        if local.group_type == GroupType::HasSpare {
            return self.fill_spare_capacity(sds, how);
        }
        self.even_out_load(sds)
    }

    /// The local group has capacity to spare: it is filled without emptying the busiest.
    fn fill_spare_capacity(&self, sds: &SdLbStats, how: ImbalanceTarget) -> Imbalance {
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        let by_util = match self.spare {
            SpareCapacity::AtEveryLevel => true,
            SpareCapacity::BeyondCache => !how.flags.has(SdFlags::SHARE_LLC),
        };
        if busiest.group_type > GroupType::FullyBusy && by_util {
            let spare = local.group_capacity.saturating_sub(local.group_util);
            return match spare {
                0 if how.idle != CpuIdleType::NotIdle => Imbalance::new(MigrationType::Task, 1),
                spare => Imbalance::new(MigrationType::Util, spare),
            };
        }
        let difference = if busiest.group_weight == 1 || sds.prefer_sibling {
            match self.cores {
                CoreSpreading::ByTasks => {
                    i64::from(busiest.sum_nr_running.saturating_sub(local.sum_nr_running))
                }
                CoreSpreading::ByCores => self.sibling_imbalance(how.idle, busiest, local),
            }
        } else {
            (i64::from(local.idle_cpus) - i64::from(busiest.idle_cpus)).max(0)
        };
        let (first, then) = match self.halving {
            Halving::BeforeAllowance => (1, 0),
            Halving::AfterAllowance => (0, 1),
        };
        let mut amount = difference >> first;
        if how.flags.has(SdFlags::NUMA) {
            amount = self.adjust_numa_imbalance(amount, busiest, local, how.imb_numa_nr);
        }
        Imbalance { migration: MigrationType::Task, amount: amount >> then }
    }

    /// What of an imbalance between two nodes is worth the distance.
    ///
    /// Kernel: `adjust_numa_imbalance()`, kernel/sched/fair.c.
    fn adjust_numa_imbalance(
        &self,
        amount: i64,
        busiest: &SgLbStats,
        local: &SgLbStats,
        imb_numa_nr: u32,
    ) -> i64 {
        /// Two tasks that talk to each other (`NUMA_IMBALANCE_MIN`).
        const PAIR: i64 = 2;
        let pair_or_less = amount <= PAIR;
        let target = local.sum_nr_running + 1;
        let allowed = match self.numa {
            NumaAllowance::Nothing => false,
            NumaAllowance::PairInSource => i64::from(busiest.sum_nr_running) <= PAIR,
            NumaAllowance::QuarterOfSource => {
                busiest.sum_nr_running < busiest.group_weight >> 2 && pair_or_less
            }
            NumaAllowance::QuarterOfTarget => target < local.group_weight >> 2 && pair_or_less,
            NumaAllowance::PerCache => target <= imb_numa_nr && pair_or_less,
        };
        if allowed { 0 } else { amount }
    }

    /// Both groups are or will be overloaded: both are brought to the average of the domain.
    fn even_out_load(&self, sds: &mut SdLbStats) -> Imbalance {
        if sds.local_stat.group_type < GroupType::Overloaded {
            sds.local_stat.avg_load = sds.local_stat.average();
            sds.avg_load = sds.average();
            let local = sds.local_stat.avg_load;
            let none = match self.local_average {
                LocalAverage::Any => false,
                LocalAverage::BelowSource => local >= sds.busiest_stat.avg_load,
                LocalAverage::BelowDomain => local >= sds.busiest_stat.avg_load || local >= sds.avg_load,
            };
            if none {
                return Imbalance::new(MigrationType::Load, 0);
            }
        }
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        let above = busiest.avg_load.wrapping_sub(sds.avg_load).wrapping_mul(busiest.group_capacity);
        let below = sds.avg_load.wrapping_sub(local.avg_load).wrapping_mul(local.group_capacity);
        Imbalance::new(MigrationType::Load, above.min(below) / CAPACITY_SCALE)
    }

    /// To v5.4: towards the average load, but at least what a task weighs if moving one would help.
    fn imbalance_by_load(&self, sds: &mut SdLbStats, how: ImbalanceTarget) -> u64 {
        if sds.busiest_stat.group_type == GroupType::Imbalanced {
            sds.busiest_stat.load_per_task = sds.busiest_stat.load_per_task.min(sds.avg_load);
        }
        let (local, busiest) = (sds.local_stat, sds.busiest_stat);
        let misfit = busiest.group_type == GroupType::MisfitTask;
        if !misfit && (busiest.avg_load <= sds.avg_load || local.avg_load >= sds.avg_load) {
            return self.smaller_step(sds, how, 0);
        }
        let pull = busiest.avg_load.wrapping_sub(sds.avg_load).min(load_above_capacity(&busiest, &local));
        let above = pull.wrapping_mul(busiest.group_capacity);
        let below = sds.avg_load.wrapping_sub(local.avg_load).wrapping_mul(local.group_capacity);
        let mut amount = above.min(below) / CAPACITY_SCALE;
        if misfit {
            amount = (amount as i64).max(busiest.misfit_load as i64) as u64;
        }
        if amount < busiest.load_per_task { self.smaller_step(sds, how, amount) } else { amount }
    }

    /// Less than a task's load is out of balance: a task's load if moving one gains anything, else what there is.
    ///
    /// Kernel: `fix_small_imbalance()`, kernel/sched/fair.c, to v5.4.
    fn smaller_step(&self, sds: &SdLbStats, how: ImbalanceTarget, amount: u64) -> u64 {
        if self.comparison == Comparison::Load {
            return amount;
        }
        let (mut local, busiest) = (sds.local_stat, &sds.busiest_stat);
        let mut steps = 2;
        if local.sum_h_nr_running == 0 {
            local.load_per_task = how.load_per_task_here;
        } else if busiest.load_per_task > local.load_per_task {
            steps = 1;
        }
        let step = busiest.load_per_task * CAPACITY_SCALE / busiest.group_capacity.max(1);
        if busiest.avg_load + step >= local.avg_load + step * steps {
            return busiest.load_per_task;
        }
        if gains_throughput(&local, busiest, step) { busiest.load_per_task } else { amount }
    }
}

/// How far a group may be pulled down without idling CPUs, if this one is no better off.
fn load_above_capacity(busiest: &SgLbStats, local: &SgLbStats) -> u64 {
    let both = busiest.group_type == GroupType::Overloaded && local.group_type == GroupType::Overloaded;
    let running = u64::from(busiest.sum_h_nr_running) * CAPACITY_SCALE;
    if both && running > busiest.group_capacity {
        (running - busiest.group_capacity) * CAPACITY_SCALE / busiest.group_capacity.max(1)
    } else {
        u64::MAX
    }
}

/// Whether more capacity would be used if a task of average load were moved.
fn gains_throughput(local: &SgLbStats, busiest: &SgLbStats, step: u64) -> bool {
    let used = |group: &SgLbStats, load: u64| group.group_capacity * group.load_per_task.min(load);
    let now = (used(busiest, busiest.avg_load) + used(local, local.avg_load)) / CAPACITY_SCALE;
    let mut moved = if busiest.avg_load > step { used(busiest, busiest.avg_load - step) } else { 0 };
    let whole = busiest.avg_load * busiest.group_capacity;
    let one = busiest.load_per_task * CAPACITY_SCALE;
    moved += used(local, local.avg_load + whole.min(one) / local.group_capacity.max(1));
    moved / CAPACITY_SCALE > now
}
