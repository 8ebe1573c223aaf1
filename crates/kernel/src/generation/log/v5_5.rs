//! Commits that v5.5 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("490ba971d8b4", git("2019-10-21"), "asym-packing", "sched/fair: Clean up asym packing", &[
        Groundwork("what 0b0695f2b34a takes up; no functional change by itself"),
    ]),
    commit("fcf0553db6f4", git("2019-10-21"), "no-small-imbalance", "sched/fair: Remove meaningless imbalance calculation", &[
        Balance(Comparison::Load.effect()),
    ]),
    commit("0b0695f2b34a", git("2019-10-21"), "rework", "sched/fair: Rework load_balance()", &[Balance(Comparison::GroupTypes.effect())]),
    commit("5e23e4744315", git("2019-10-21"), "all-classes", "sched/fair: Use rq->nr_running when balancing load", &[
        Balance(CountedTasks::AllClasses.effect()),
    ]),
    commit("b0fb1eb4f04a", git("2019-10-21"), "blocked-load", "sched/fair: Use load instead of runnable load in load_balance()", &[
        Balance(BalanceLoad::WithBlocked.effect()),
    ]),
    commit("2ab4092fc82d", git("2019-10-21"), "even-spread", "sched/fair: Spread out tasks evenly when not overloaded", &[
        Balance(SingleCpuGroups::ByWaiting.effect()),
    ]),
    commit("c63be7be59de", git("2019-10-21"), "misfit-by-util", "sched/fair: Use utilization to select misfit task", &[
        Balance(MisfitSize::ByCapacity.effect()),
    ]),
    commit("11f10e5420f6", git("2019-10-21"), "wake-load", "sched/fair: Use load instead of runnable load in wakeup path", &[
        Select(WakeLoad::WithBlocked.effect()),
    ]),
    commit("57abff067a08", git("2019-10-21"), "idlest-by-type", "sched/fair: Rework find_idlest_group()", &[
        Select(IdlestGroup::ByType.effect()),
        Select(IdlestWeight::None.effect()),
    ]),
    commit("b8c96361402a", git("2019-10-29"), "util-est-fastup", "sched/fair/util_est: Implement faster ramp-up EWMA on utilization increases", &[
        AddFeature(Feature::UtilEstFastup, true),
    ]),
    commit("3318544b721d", git("2019-11-18"), "idlest-without-self", "sched/fair: Fix rework of find_idlest_group()", &[
        Select(IdlestSelf::TakenOff.effect()),
    ]),
    commit("bef69dd87828", git("2019-11-18"), "governor-hook", "sched/cpufreq: Move the cfs_rq_util_change() call to cpufreq_update_util()", &[
        Frequency(GovernorHook::EntityUpdate.effect()),
    ]),
    commit("6cf82d559e1a", git("2019-12-17"), "load-step", "sched/cfs: fix spurious active migration", &[Balance(LoadStep::TwiceUnlessFailing.effect())]),
    commit("7ed735c33104", git("2019-12-17"), "idlest-local-not-allowed", "sched/fair: Fix find_idlest_group() to handle CPU affinity", &[
        NotModelled(&[Apart("57abff067a08")], "what chance leaves on the stack is compared where a task may not use its own group's CPUs"),
    ]),
];
