//! What each upstream commit changed in wakeups and CPU selection, oldest first.
//!
//! Must not know: what the rules do.

use super::rules::{
    AffineIdle, Asymmetric, Cluster, CoreScan, EnergyAware, EnergyCandidates, EnergyCost, EnergyGain,
    EnergyUtil, ForkNuma, IdleAverage, IdleEnds, IdleMask, IdlestCounts, IdlestGroup, IdlestLoad, IdlestSelf,
    IdlestTie, InefficientStates, KthreadStacking, LeavingWakee, OwnEstimate, RecentAllowed, RecentUsed,
    ScanCost, ScanCounts, ScanIdleTime, ScanStart, SchedIdleCpu, SelectEffect, SiblingScan, SyncAlone,
    WakeList, WakeListAllowed, WakeLoad,
};
use crate::balance::{BalanceEffect, NumaAllowance};
use crate::domain::{DomainEffect, NumaImbalance};
use crate::generation::{Change, Effect, Feature, change};

/// Shortens the list: `rule!(X, Y)` is the effect that puts `X::Y` in force.
macro_rules! rule {
    ($point:ident, $variant:ident) => {
        Effect::Select(SelectEffect::$point($point::$variant))
    };
}

/// Every change since v4.18 that wakeups and CPU selection depend on.
#[rustfmt::skip]
pub const SELECT_CHANGES: &[Change] = &[
    change("c469933e7721", "exec-estimate", (4, 20), "sched/fair: Fix cpu_util_wake() for 'execl' type workloads", &[
        rule!(OwnEstimate, TakenOff),
    ]),
    change("732cd75b8c92", "energy-aware-wakeup", (5, 0), "sched/fair: Select an energy-efficient CPU on task wake-up", &[
        rule!(EnergyAware, WholeMachine),
    ]),
    change("af24bde8df20", "energy-real-time", (5, 3), "sched/uclamp: Add uclamp support to energy_compute()", &[
        rule!(EnergyUtil, RealTimeDrives),
    ]),
    change("eb92692b2544", "energy-by-domain", (5, 4), "sched/fair: Speed-up energy-aware wake-ups", &[
        rule!(EnergyAware, ByDomain),
    ]),
    change("4892f51ad54d", "energy-any-cpu", (5, 4), "sched/fair: Avoid redundant EAS calculation", &[
        rule!(EnergyCandidates, AnyCpu),
    ]),
    change("3c29e651e16d", "sched-idle-fallback", (5, 4), "sched/fair: Fall back to sched-idle CPU if idle CPU isn't found", &[
        rule!(SchedIdleCpu, SecondChoice),
    ]),
    change("57abff067a08", "idlest-by-type", (5, 5), "sched/fair: Rework find_idlest_group()", &[
        rule!(IdlestGroup, ByType),
    ]),
    change("11f10e5420f6", "wake-load", (5, 5), "sched/fair: Use load instead of runnable load in wakeup path", &[
        rule!(WakeLoad, WithBlocked),
    ]),
    change("3318544b721d", "idlest-without-self", (5, 5), "sched/fair: Fix rework of find_idlest_group()", &[
        rule!(IdlestSelf, TakenOff),
    ]),
    change("60588bfa223f", "scan-allowed", (5, 6), "sched/fair: Optimize select_idle_cpu", &[
        rule!(ScanCounts, AllowedCpus),
    ]),
    change("17346452b25b", "sched-idle-like-idle", (5, 6), "sched/fair: Make sched-idle CPU selection consistent throughout", &[
        rule!(SchedIdleCpu, LikeIdle),
    ]),
    change("52262ee567ad", "kthread-stacking", (5, 6), "sched/fair: Allow a per-CPU kthread waking a task to stack on the same CPU, to fix XFS performance regression", &[
        rule!(KthreadStacking, AnyContext),
    ]),
    change("b7a331615d25", "asymmetric-scan", (5, 7), "sched/fair: Add asymmetric CPU capacity wakeup scan", &[
        rule!(Asymmetric, BestIdleNearPrev),
    ]),
    change("000619680c37", "no-wake-cap", (5, 7), "sched/fair: Remove wake_cap()", &[
        rule!(Asymmetric, BestIdle),
    ]),
    change("bec2860a2bd6", "core-scan-until-busy", (5, 7), "sched/fair: Optimize select_idle_core()", &[
        rule!(CoreScan, UntilBusy),
    ]),
    change("6c8116c914b6", "idlest-load", (5, 7), "sched/fair: Fix condition of avg_load calculation", &[
        rule!(IdlestLoad, WhenBusy),
    ]),
    change("d76343c6b2b7", "average-rounding", (5, 7), "sched/fair: Align rq->avg_idle and rq->avg_scan_cost", &[
        rule!(IdleAverage, TowardsZero),
    ]),
    change("c6e7bd7afaeb", "leaving-wakee", (5, 8), "sched/core: Optimize ttwu() spinning on p->on_cpu", &[
        rule!(LeavingWakee, LeftThere),
    ]),
    change("2ebb17717550", "queue-leaving", (5, 8), "sched/core: Offload wakee task activation if it the wakee is descheduling", &[
        rule!(WakeList, OrLeaving),
    ]),
    change("126c2092e5c8", "ttwu-pending", (5, 8), "sched: Add rq::ttwu_pending", &[
        Effect::NotModelled("between an interrupt's arrival and the enqueue of what it brings, the CPU looks idle"),
    ]),
    change("3edecfef0285", "idlest-tie", (5, 9), "sched/fair: update_pick_idlest() Select group with lowest group_util when idle_cpus are equal", &[
        rule!(IdlestTie, LeastUtilized),
    ]),
    change("df3cb4ea1fb6", "isolated-sibling", (5, 10), "sched/fair: Fix wrong cpu selecting from isolated domain", &[
        Effect::NotModelled("isolated CPUs"),
    ]),
    change("b4c9c9f15649", "asymmetric-prev-first", (5, 10), "sched/fair: Prefer prev cpu in asymmetric wakeup path", &[
        rule!(Asymmetric, FittingFirst),
    ]),
    change("d8fcb81f1acf", "affine-prev-idle", (5, 11), "sched/fair: Check for idle core in wake_affine", &[
        rule!(AffineIdle, ThisOrPrev),
    ]),
    change("23e6082a522e", "fork-numa-quarter", (5, 11), "sched: Limit the amount of NUMA imbalance that can exist at fork time", &[
        rule!(ForkNuma, QuarterOfDomain),
    ]),
    change("e6e0dc2d5497", "no-sis-avg-cpu", (5, 12), "sched/fair: Remove SIS_AVG_CPU", &[
        Effect::RemoveFeature(Feature::SisAvgCpu),
    ]),
    change("bae4ec13640b", "scan-cost-sis-prop", (5, 12), "sched/fair: Move avg_scan_cost calculations under SIS_PROP", &[
        rule!(ScanCost, Proportional),
    ]),
    change("6cd56ef1df39", "no-sibling-scan", (5, 12), "sched/fair: Remove select_idle_smt()", &[
        rule!(SiblingScan, None),
    ]),
    change("9fe1f127b913", "one-scan", (5, 12), "sched/fair: Merge select_idle_core/cpu()", &[
        rule!(CoreScan, WithFallback),
    ]),
    change("0372e1cf70c2", "energy-task-apart", (5, 13), "sched/fair: Fix task utilization accountability in compute_energy()", &[
        rule!(EnergyUtil, TaskApart),
    ]),
    change("c722f35b513f", "sibling-scan-of-prev", (5, 13), "sched/fair: Bring back select_idle_smt(), but differently", &[
        rule!(SiblingScan, PrevFirst),
    ]),
    change("94aafc3ee31d", "aged-idle-time", (5, 14), "sched/fair: Age the average idle time", &[
        rule!(ScanIdleTime, SinceWakeup),
    ]),
    change("97886d9dcd86", "core-scheduling", (5, 14), "sched: Migration changes for core scheduling", &[
        Effect::NotModelled("core scheduling: tasks have no cookies"),
    ]),
    change("8d4c97c105ca", "energy-counted-domains", (5, 14), "sched/fair: Only compute base_energy_pd if necessary", &[
        rule!(EnergyCandidates, OfCountedDomains),
    ]),
    change("619e090c8e40", "energy-not-negative", (5, 14), "sched/fair: Fix negative energy delta in find_energy_efficient_cpu()", &[
        rule!(EnergyGain, SixteenthOfMore),
    ]),
    change("7fcc17d0cb12", "energy-precision", (5, 15), "PM: EM: Increase energy calculation precision", &[
        rule!(EnergyCost, Microwatts),
    ]),
    change("89aafd67f28c", "recent-is-prev", (5, 15), "sched/fair: Use prev instead of new target as recent_used_cpu", &[
        rule!(RecentUsed, WhenSeen),
        rule!(RecentAllowed, Previous),
    ]),
    change("56498cfb045d", "scan-after-target", (5, 15), "sched/fair: Avoid a second scan of target in select_idle_cpu", &[
        rule!(ScanStart, AfterTarget),
    ]),
    change("8354eb9eb3dd", "energy-inefficient", (5, 16), "PM: EM: Allow skipping inefficient states", &[
        rule!(InefficientStates, Skipped),
    ]),
    change("8b4e74ccb582", "kthread-in-task", (5, 17), "sched/fair: Fix detection of per-CPU kthreads waking a task", &[
        rule!(KthreadStacking, TaskContext),
    ]),
    change("2cfb7a1b031b", "fork-numa-node", (5, 18), "sched/fair: Improve consistency of allowed NUMA balance calculations", &[
        Effect::Balance(BalanceEffect::NumaAllowance(NumaAllowance::QuarterOfTarget)),
        rule!(ForkNuma, QuarterOfNode),
    ]),
    change("e496132ebedd", "numa-imbalance", (5, 18), "sched/fair: Adjust the allowed NUMA imbalance when SD_NUMA spans multiple LLCs", &[
        Effect::Domain(DomainEffect::NumaImbalance(NumaImbalance::QuarterOrLlcs)),
        Effect::Balance(BalanceEffect::NumaAllowance(NumaAllowance::PerCache)),
        rule!(ForkNuma, ImbNumaNr),
    ]),
    change("3e8c6c9aac42", "energy-busy-time", (6, 0), "sched/fair: Remove task_util from effective utilization in feec()", &[
        Effect::Groundwork("where no time goes to interrupts, the sums are the same"),
    ]),
    change("b812fc9768e0", "energy-any-gain", (6, 0), "sched/fair: Remove the energy margin in feec()", &[
        rule!(EnergyGain, Any),
    ]),
    change("f5b2eeb49991", "fork-numa-affinity", (6, 0), "sched/fair: Consider CPU affinity when allowing NUMA imbalance in find_idlest_group()", &[
        rule!(ForkNuma, SmallDifference),
    ]),
    change("28156108fecb", "queue-empty-leaving", (6, 0), "sched: Fix the check of nr_running at queue wakelist", &[
        rule!(WakeList, OrLeavingEmpty),
    ]),
    change("f3dd3f674555", "queue-empty", (6, 0), "sched: Remove the limitation of WF_ON_CPU on wakelist if wakee cpu is idle", &[
        rule!(WakeList, OrEmpty),
    ]),
    change("70fb5ccf2ebb", "sis-util", (6, 0), "sched/fair: Introduce SIS_UTIL to search idle CPU based on sum of util_avg", &[
        Effect::AddFeature(Feature::SisUtil, true),
        Effect::SetFeature(Feature::SisProp, false),
    ]),
    change("751d4cbc4387", "queue-allowed", (6, 0), "sched/core: Do not requeue task on CPU excluded from cpus_mask", &[
        rule!(WakeListAllowed, Asked),
    ]),
    change("b9bae70440d2", "siblings-of-prev", (6, 1), "sched/fair: Avoid double search on same cpu", &[
        rule!(SiblingScan, OthersOfPrevFirst),
    ]),
    change("d6962c4fe8f9", "pending-until-queued", (6, 2), "sched: Clear ttwu_pending after enqueue_task()", &[
        Effect::NotModelled("before, a CPU looked idle between an interrupt's arrival and the enqueue of what it brings"),
    ]),
    change("ad841e569f5c", "energy-roomier", (6, 2), "sched/fair: Check if prev_cpu has highest spare cap in feec()", &[
        rule!(EnergyCandidates, RoomierThanPrev),
    ]),
    change("ae2ad293d6be", "recent-allowed", (6, 5), "sched/fair: Use recent_used_cpu to test p->cpus_ptr", &[
        rule!(RecentAllowed, Itself),
    ]),
    change("ab83f455f04d", "wake-on-this-cpu", (6, 6), "sched: add WF_CURRENT_CPU and externise ttwu", &[
        Effect::NotModelled("wakeups that ask for the waker's CPU (seccomp notifications)"),
    ]),
    change("8881e1639f1f", "cluster-scan", (6, 7), "sched/fair: Scan cluster before scanning LLC in wake-up path", &[
        rule!(Cluster, First),
    ]),
    change("22165f61d0c4", "cluster-candidates", (6, 7), "sched/fair: Use candidate prev/recent_used CPU if scanning failed for cluster wakeup", &[
        rule!(Cluster, FirstThenCandidates),
    ]),
    change("984ffb6a4366", "no-sis-prop", (6, 7), "sched/fair: Remove SIS_PROP", &[
        Effect::RemoveFeature(Feature::SisProp),
    ]),
    change("6b00a4014765", "energy-full-cpus", (6, 7), "sched/fair: Set max_spare_cap_cpu even if max_spare_cap is 0 in feec()", &[
        Effect::Groundwork("without clamps a CPU that fits has room left"),
    ]),
    change("23d04d8c6b8e", "core-in-domain", (6, 9), "sched/fair: Take the scheduling domain into account in select_idle_core()", &[
        Effect::NotModelled("isolated CPUs"),
    ]),
    change("8aeaffef8c6e", "sibling-in-domain", (6, 9), "sched/fair: Take the scheduling domain into account in select_idle_smt()", &[
        Effect::NotModelled("isolated CPUs"),
    ]),
    change("1b600da51073", "energy-per-performance", (6, 9), "PM: EM: Optimize em_cpu_energy() and remove division", &[
        rule!(EnergyCost, PerPerformance),
    ]),
    change("aa3ee4f0b754", "sync-beside-delayed", (6, 16), "sched/fair: Fixup wake_up_sync() vs DELAYED_DEQUEUE", &[
        rule!(SyncAlone, Runnable),
    ]),
    change("82d6e01a0699", "idlest-allowed", (6, 19), "sched/fair: Only update stats for allowed CPUs when looking for dst group", &[
        rule!(IdlestCounts, AllowedCpus),
    ]),
    change("fd54d81c2c0e", "sched-idle-beside-others", (7, 1), "sched/fair: Skip SCHED_IDLE rq for SCHED_IDLE task", &[
        rule!(SchedIdleCpu, UnlessAlike),
    ]),
    change("4b603f1551a7", "idle-ends-at-switch", (7, 0), "sched: Update rq->avg_idle when a task is moved to an idle CPU", &[
        rule!(IdleEnds, AtSwitchStampedOrNot),
    ]),
    change("c6dcd97c8be7", "idle-stamp-valid", (7, 3), "sched/core: Skip rq->avg_idle update without a valid idle stamp", &[
        rule!(IdleEnds, AtSwitch),
    ]),
    change("25a32e400a14", "asymmetric-cores", (7, 2), "sched/fair: Prefer fully-idle SMT cores in asym-capacity idle selection", &[
        rule!(Asymmetric, FittingCores),
    ]),
    change("61ea17a63719", "asymmetric-bound", (7, 2), "sched/fair: Add SIS_UTIL support to select_idle_capacity()", &[
        rule!(Asymmetric, BoundedCores),
    ]),
    Change {
        commit: "",
        name: "idle-cpumask-v7",
        release: None,
        date: None,
        subject: "[RFC PATCH v7] sched/fair: select idle cpu from idle cpumask for task wakeup",
        effects: &[rule!(IdleMask, SetOnIdle)],
    },
];
