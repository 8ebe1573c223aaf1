//! Commits that v5.7 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("bec2860a2bd6", git("2020-01-28"), "core-scan-until-busy", "sched/fair: Optimize select_idle_core()", &[Select(CoreScan::UntilBusy.effect())]),
    commit("b7a331615d25", git("2020-02-20"), "asymmetric-scan", "sched/fair: Add asymmetric CPU capacity wakeup scan", &[
        Select(Asymmetric::BestIdleNearPrev.effect()),
    ]),
    commit("a526d466798d", git("2020-02-20"), "asym-no-balance-wake", "sched/topology: Remove SD_BALANCE_WAKE on asymmetric capacity systems", &[
        Domain(AsymWakeup::Ignores.effect()),
    ]),
    commit("000619680c37", git("2020-02-20"), "no-wake-cap", "sched/fair: Remove wake_cap()", &[Select(Asymmetric::BestIdle.effect())]),
    commit("6d4d22468dae", git("2020-02-24"), "counts-after-averages", "sched/fair: Reorder enqueue/dequeue_task_fair path", &[
        Groundwork("tasks are counted after averages are aged, no longer before: what was aged did not count tasks"),
    ]),
    commit("9f68395333ad", git("2020-02-24"), "runnable-avg", "sched/pelt: Add a new runnable average signal", &[Pelt(RunnableKind::TaskCount.effect())]),
    commit("070f5e860ee2", git("2020-02-24"), "group-runnable", "sched/fair: Take into account runnable_avg to classify group", &[
        Balance(GroupRunnable::Counts.effect()),
    ]),
    commit("0dacee1bfa70", git("2020-02-24"), "no-runnable-load", "sched/pelt: Remove unused runnable load average", &[
        Groundwork("an average that nothing reads since 9f68395333ad"),
    ]),
    commit("6499b1b2dd1b", git("2020-02-24"), "numa-load", "sched/numa: Replace runnable_load_avg by load_avg", &[
        NotModelled(&[Nodes], "NUMA balancing of tasks and memory"),
    ]),
    commit("765047932f15", memory("2020-03-06"), "thermal-pressure", "sched/pelt: Add support to track thermal pressure", &[
        NotModelled(&[Frequencies], "capacity that heat takes away"),
    ]),
    commit("6212437f0f60", git("2020-03-06"), "throttled-runnable", "sched/fair: Fix runnable_avg for throttled cfs", &[Bandwidth(UpperLevels::Aged.effect())]),
    commit("38502ab4bf3c", git("2020-03-06"), "no-energy-with-smt", "sched/topology: Don't enable EAS on SMT systems", &[
        NotModelled(&[EnergyModel, Smt], "that machines with threads do not go by energy"),
    ]),
    commit("467b7d01c469", git("2020-03-06"), "thermal-capacity", "sched/fair: Update cpu_capacity to reflect thermal pressure", &[
        NotModelled(&[Frequencies], "capacity that heat takes away"),
    ]),
    commit("c32b4308295a", git("2020-03-20"), "util-source", "sched/fair: Improve spreading of utilization", &[
        Balance(UtilSource::QueueWithWaiting.effect()),
    ]),
    commit("fe61468b2cbc", git("2020-03-20"), "leaf-list-joined", "sched/fair: Fix enqueue_task_fair warning", &[
        Bandwidth(ThrottledArrival::Joined.effect()),
    ]),
    commit("46a87b3851f0", memory("2020-03-20"), "affinity-in-turn", "sched/core: Distribute tasks within affinity masks", &[
        Core(AffinityDest::InTurn.effect()),
    ]),
    commit("26cf52229efc", memory("2020-03"), "least-weight", "sched: Avoid scale real weight down to zero", &[
        NotModelled(&[Groups], "before, a group's entity below 1/1024 of nice 0 weighed nothing"),
    ]),
    commit("6c8116c914b6", git("2020-03-20"), "idlest-load", "sched/fair: Fix condition of avg_load calculation", &[Select(IdlestLoad::WhenBusy.effect())]),
    commit("d76343c6b2b7", git("2020-04-08"), "average-rounding", "sched/fair: Align rq->avg_idle and rq->avg_scan_cost", &[
        Select(IdleAverage::TowardsZero.effect()),
    ]),
    commit("26a8b12747c9", memory("2020-04"), "distribution-takes-at-once", "sched/fair: Fix race between runtime distribution and assignment", &[
        OutOfSight(RACE),
    ]),
    commit("111688ca1c4a", git("2020-04-08"), "negative-imbalance", "sched/fair: Fix negative imbalance in imbalance calculation", &[
        Balance(LocalAverage::BelowSource.effect()),
    ]),
    commit("b34cb07dde7c", git("2020-05-19"), "leaf-list-whole-way", "sched/fair: Fix enqueue_task_fair() warning some more", &[
        Bandwidth(ThrottledArrival::WholeWay.effect()),
    ]),
    commit("39f23ce07b93", git("2020-05-19"), "unthrottle-tells", "sched/fair: Fix unthrottle_cfs_rq() for leaf_cfs_rq list", &[
        Bandwidth(UpperLevels::Told.effect()),
    ]),
];
