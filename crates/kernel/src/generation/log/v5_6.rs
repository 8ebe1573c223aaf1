//! Commits that v5.6 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("7c2e8bbd87db", git("2019-12-17"), "lone-prio-change", "sched: Spare resched IPI when prio changes on a single fair task", &[
        Fair(LonePrioChange::Ignored.effect()),
    ]),
    commit("5443a0be6121", git("2019-12-17"), "nice-tested", "sched: Use fair:prio_changed() instead of ad-hoc implementation", &[
        Fair(NiceChange::Tested.effect()),
    ]),
    commit("60588bfa223f", git("2019-12-17"), "scan-allowed", "sched/fair: Optimize select_idle_cpu", &[Select(ScanCounts::AllowedCpus.effect())]),
    commit("17346452b25b", git("2019-12-25"), "sched-idle-like-idle", "sched/fair: Make sched-idle CPU selection consistent throughout", &[
        Select(SchedIdleCpu::LikeIdle.effect()),
    ]),
    commit("5f68eb19b571", git("2020-01-17"), "spare-tie", "sched/fair : Improve update_sd_pick_busiest for spare capacity case", &[
        Balance(SpareTie::FewestIdleMostTasks.effect()),
    ]),
    commit("323af6deaf70", git("2020-01-17"), "idle-policy-interval", "sched/fair: Load balance aggressively for SCHED_IDLE CPUs", &[
        Balance(IdlePolicyBusy::Idle.effect()),
    ]),
    commit("4c58f57fa6e9", git("2020-01-17"), "overlap-capacity", "sched/fair: Fix sgc->{min,max}_capacity calculation for SD_OVERLAP", &[
        Domain(OverlapCapacity::EachCpu.effect()),
    ]),
    commit("a4f9a0e51bbf", git("2020-01-17"), "governor-once", "sched/fair: Remove redundant call to cpufreq_update_util()", &[
        OutOfSight("a second call of the governor for one change"),
    ]),
    commit("b396f52326de", git("2020-01-28"), "numa-pair", "sched/fair: Allow a small load imbalance between low utilisation SD_NUMA domains", &[
        Balance(NumaAllowance::PairInSource.effect()),
    ]),
    commit("2a4b03ffc69f", git("2020-01-28"), "moved-running", "sched/fair: Prevent unlimited runtime on throttled group", &[
        Group(MovedRunning::Rescheduled.effect()),
    ]),
    commit("52262ee567ad", git("2020-02-10"), "kthread-stacking", "sched/fair: Allow a per-CPU kthread waking a task to stack on the same CPU, to fix XFS performance regression", &[
        Select(KthreadStacking::AnyContext.effect()),
    ]),
    commit("289de3598481", git("2020-02-27"), "idlest-group-weight", "sched/fair: Fix statistics for find_idlest_group()", &[
        Select(IdlestWeight::Cpus.effect()),
    ]),
];
