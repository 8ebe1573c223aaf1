//! What balancing knows of a group of CPUs and of a domain, and what state a group is in: sums and thresholds.
//!
//! Must not know: runqueues, tasks, how the sums are put together.

use crate::domain::SchedGroupId;

use super::rules::{BalanceRules, Comparison, GroupRunnable, SmtGroups};

/// Capacity of the biggest CPU (`SCHED_CAPACITY_SCALE`).
pub(crate) const CAPACITY_SCALE: u64 = 1024;

/// What state a group is in, the least reason to take from it first (`enum group_type`).
///
/// Before 0b0695f2b34a there were only `HasSpare` (then "other"), `MisfitTask`, `Imbalanced` and `Overloaded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupType {
    /// It has capacity to spare.
    #[default]
    HasSpare,
    /// It is used to the full, and nothing has to wait for capacity.
    FullyBusy,
    /// A task is too large for its CPU, or other classes leave it too little there.
    MisfitTask,
    /// More than one task runs on the threads of a core.
    SmtBalance,
    /// Another group is preferred.
    AsymPacking,
    /// Affinity kept tasks from being spread within it.
    Imbalanced,
    /// It runs tasks that prefer the last-level cache of the CPU that balances.
    LlcBalance,
    /// More wants to run than it can do.
    Overloaded,
}

impl GroupType {
    /// The state in one clause.
    pub const fn describe(self) -> &'static str {
        match self {
            GroupType::HasSpare => "has capacity to spare",
            GroupType::FullyBusy => "is fully busy",
            GroupType::MisfitTask => "has a task that is too large for its CPU",
            GroupType::SmtBalance => "runs several tasks on one core",
            GroupType::AsymPacking => "is less preferred",
            GroupType::Imbalanced => "is imbalanced because tasks are pinned",
            GroupType::LlcBalance => "runs tasks that prefer this cache",
            GroupType::Overloaded => "is overloaded",
        }
    }
}

/// Sums over the CPUs of a group (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SgLbStats {
    /// Load for each unit of capacity, times 1024; by group types only of overloaded groups.
    pub avg_load: u64,
    /// Σ load of the CPUs, with the bias of LB_BIAS.
    pub group_load: u64,
    /// Σ load of the CPUs, without it.
    pub unbiased_load: u64,
    /// Σ capacity left for fair tasks.
    pub group_capacity: u64,
    /// The least that one of its CPUs has left.
    pub min_capacity: u64,
    /// The most that one of its CPUs has left.
    pub max_capacity: u64,
    /// Σ utilization.
    pub group_util: u64,
    /// Σ runnable_avg.
    pub group_runnable: u64,
    /// Queued tasks of all classes; before 5e23e4744315 of the fair class.
    pub sum_nr_running: u32,
    /// Queued fair tasks.
    pub sum_h_nr_running: u32,
    /// CPUs that are idle.
    pub idle_cpus: u32,
    /// CPUs.
    pub group_weight: u32,
    /// Cores.
    pub cores: u32,
    /// It stands for the threads of a core.
    pub is_smt: bool,
    /// Its state.
    pub group_type: GroupType,
    /// It has more to run than it can do, or is treated so to be relieved (before 0b0695f2b34a).
    pub group_no_capacity: bool,
    /// Load of its average task (before fcf0553db6f4).
    pub load_per_task: u64,
    /// Load of the largest task that is too large for its CPU or has too little left there; 0 if there is none.
    pub misfit_load: u64,
    /// Affinity kept tasks from being spread within it (`sgc->imbalance`).
    pub imbalanced: bool,
    /// It is a core that runs several tasks.
    pub smt_balance: bool,
    /// Its tasks that prefer the last-level cache of the CPU that balances should be moved there (`group_llc_balance`).
    pub llc_balance: bool,
    /// How many such tasks it has queued.
    pub nr_pref_dst_llc: u32,
    /// Its tasks should be moved to the preferred CPU that balances (`group_asym_packing`).
    pub asym_packing: bool,
    /// The priority of its most preferred CPU, where some are preferred.
    pub priority: u32,
    /// Some CPU of it has more to do than it can.
    pub overutilized: bool,
    /// No CPU of it is overutilized, and that keeps it from being overloaded (d3d663faa1d4).
    pub within_capacity: bool,
}

impl SgLbStats {
    /// Load for each unit of capacity.
    pub(crate) const fn average(&self) -> u64 {
        self.group_load * CAPACITY_SCALE / at_least_one(self.group_capacity)
    }
}

/// What a domain's groups sum up to (`struct sd_lb_stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SdLbStats {
    /// The busiest group.
    pub busiest: Option<SchedGroupId>,
    /// Its sums.
    pub busiest_stat: SgLbStats,
    /// The sums of the group of the CPU that balances.
    pub local_stat: SgLbStats,
    /// Σ load.
    pub total_load: u64,
    /// Σ capacity.
    pub total_capacity: u64,
    /// Σ utilization.
    pub total_util: u64,
    /// Load for each unit of capacity.
    pub avg_load: u64,
    /// Tasks should be spread over the groups.
    pub prefer_sibling: bool,
    /// Some runqueue has two tasks or more.
    pub overload: bool,
    /// Some runqueue is used more than leaves it a fifth of its capacity, where there is an energy model.
    pub overutilized: bool,
    /// Runqueues looked at.
    pub scanned: u32,
}

impl SdLbStats {
    /// Load for each unit of capacity over the whole domain.
    pub(crate) const fn average(&self) -> u64 {
        self.total_load * CAPACITY_SCALE / at_least_one(self.total_capacity)
    }
}

const fn at_least_one(value: u64) -> u64 {
    if value == 0 { 1 } else { value }
}

impl BalanceRules {
    /// Whether a group has capacity to spare.
    ///
    /// Kernel: `group_has_capacity()`, kernel/sched/fair.c; by waiting time from v5.7 (070f5e860ee2).
    pub(crate) fn group_has_capacity(&self, imbalance_pct: u64, group: &SgLbStats) -> bool {
        if group.sum_nr_running < group.group_weight {
            return true;
        }
        if self.waits_too_long(imbalance_pct, group) {
            return false;
        }
        group.group_capacity * 100 > group.group_util * imbalance_pct
    }

    /// Whether more wants to run in a group than it can do.
    ///
    /// Kernel: `group_is_overloaded()`, kernel/sched/fair.c; by waiting time from v5.7 (070f5e860ee2).
    pub(crate) fn group_is_overloaded(&self, imbalance_pct: u64, group: &SgLbStats) -> bool {
        if group.sum_nr_running <= group.group_weight || group.within_capacity {
            return false;
        }
        group.group_capacity * 100 < group.group_util * imbalance_pct
            || self.waits_too_long(imbalance_pct, group)
    }

    fn waits_too_long(&self, imbalance_pct: u64, group: &SgLbStats) -> bool {
        self.waiting == GroupRunnable::Counts
            && group.group_capacity * imbalance_pct < group.group_runnable * 100
    }

    /// The state of a group.
    ///
    /// Kernel: `group_classify()`, kernel/sched/fair.c. Variants: three states to v5.4, then six (0b0695f2b34a), from v6.6
    /// seven (fee1759e4f04), from v7.2 eight (df0d98475954).
    pub(crate) fn group_classify(&self, imbalance_pct: u64, group: &SgLbStats) -> GroupType {
        let by_types = self.comparison == Comparison::GroupTypes;
        let overloaded =
            if by_types { self.group_is_overloaded(imbalance_pct, group) } else { group.group_no_capacity };
        if overloaded {
            GroupType::Overloaded
        } else if group.llc_balance {
            GroupType::LlcBalance
        } else if group.imbalanced {
            GroupType::Imbalanced
        } else if group.asym_packing {
            GroupType::AsymPacking
        } else if group.smt_balance {
            GroupType::SmtBalance
        } else if group.misfit_load > 0 {
            GroupType::MisfitTask
        } else if by_types && !self.group_has_capacity(imbalance_pct, group) {
            GroupType::FullyBusy
        } else {
            GroupType::HasSpare
        }
    }

    /// Whether a group is a core that should be relieved (`smt_balance()`, from v6.6).
    pub(crate) fn smt_balance(&self, cpu_is_idle: bool, group: &SgLbStats) -> bool {
        self.smt_groups != SmtGroups::LikeOthers && cpu_is_idle && group.is_smt && group.sum_h_nr_running > 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::BalanceEffect;
    use super::*;

    fn rules(effects: &[BalanceEffect]) -> BalanceRules {
        let mut rules = BalanceRules::BASE;
        effects.iter().for_each(|effect| effect.apply(&mut rules));
        rules
    }

    /// Two CPUs, each used to 90 % by one of `tasks` tasks.
    fn core(tasks: u32) -> SgLbStats {
        SgLbStats {
            group_capacity: 2048,
            group_util: 1840,
            group_runnable: 1840,
            sum_nr_running: tasks,
            sum_h_nr_running: tasks,
            group_weight: 2,
            ..SgLbStats::default()
        }
    }

    #[test]
    fn states_follow_tasks_and_utilization() {
        let types = rules(&[BalanceEffect::Comparison(Comparison::GroupTypes)]);
        let state = |group: &SgLbStats| types.group_classify(117, group);
        assert_eq!(state(&core(1)), GroupType::HasSpare, "a CPU is free");
        assert_eq!(state(&core(2)), GroupType::FullyBusy);
        assert_eq!(state(&core(3)), GroupType::Overloaded);
        let light = SgLbStats { group_util: 400, ..core(3) };
        assert_eq!(state(&light), GroupType::HasSpare, "three tasks that hardly run");
        assert_eq!(state(&SgLbStats { imbalanced: true, ..core(1) }), GroupType::Imbalanced);
        assert_eq!(state(&SgLbStats { misfit_load: 5, ..core(1) }), GroupType::MisfitTask);
        let by_load = rules(&[]);
        let treated = SgLbStats { group_no_capacity: true, ..core(1) };
        assert_eq!(by_load.group_classify(117, &treated), GroupType::Overloaded);
        assert_eq!(by_load.group_classify(117, &core(2)), GroupType::HasSpare, "there is nothing in between");
    }

    #[test]
    fn waiting_makes_a_group_overloaded_where_utilization_does_not() {
        let before = rules(&[BalanceEffect::Comparison(Comparison::GroupTypes)]);
        let after = rules(&[
            BalanceEffect::Comparison(Comparison::GroupTypes),
            BalanceEffect::GroupRunnable(GroupRunnable::Counts),
        ]);
        let waiting = SgLbStats { group_util: 1000, group_runnable: 2500, ..core(3) };
        assert_eq!(before.group_classify(117, &waiting), GroupType::HasSpare);
        assert_eq!(after.group_classify(117, &waiting), GroupType::Overloaded);
        let full = SgLbStats { sum_nr_running: 2, ..waiting };
        assert_eq!(after.group_classify(117, &full), GroupType::FullyBusy);
    }

    #[test]
    fn a_core_with_several_tasks_is_a_state_of_its_own_from_v6_6() {
        let before = rules(&[]);
        let after = rules(&[BalanceEffect::SmtGroups(SmtGroups::Relieved)]);
        let busy = SgLbStats { is_smt: true, ..core(2) };
        assert!(!before.smt_balance(true, &busy) && after.smt_balance(true, &busy));
        assert!(!after.smt_balance(false, &busy) && !after.smt_balance(true, &core(2)));
    }
}
