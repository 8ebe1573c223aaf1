//! Commits that v5.1 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("", page("2019-02-04"), "packing-when-idle", "sched/fair: Trigger asym_packing during idle load balance", &[Balance(PackingPush::Idle.effect())]),
    commit("46a745d90585", page("2019-02-04"), "voluntary-interval", "sched/fair: Fix unnecessary increase of balance interval", &[
        Balance(PushInterval::BacksOffUnlessVoluntary.effect()),
    ]),
    commit("23127296889f", page("2019-02-04"), "pelt-clock", "sched/fair: Update scale invariance of PELT", &[Pelt(Invariance::PeltClock.effect())]),
    commit("10a35e6812aa", page("2019-02-04"), "util-est-capacity", "sched/pelt: Skip updating util_est when utilization is higher than CPU's capacity", &[
        Pelt(UtilEstCapacity::Within.effect()),
    ]),
    commit("f6783319737f", memory("2019-02"), "leaf-list-order", "sched/fair: Fix insertion in rq->leaf_cfs_rq_list", &[
        Groundwork("a queue whose place in the list went astray below a throttled group: here each comes before those above it"),
    ]),
    commit("31bc6aeaab1d", memory("2019-02"), "throttled-leave-leaf-list", "sched/fair: Optimize update_blocked_averages()", &[
        Bandwidth(ThrottledAgeing::Leave.effect()),
    ]),
    commit("039ae8bcf7a5", page("2019-02"), "leaf-list-trimmed", "sched/fair: Fix O(nr_cgroups) in the load balancing path", &[
        Pelt(QueueDecay::Sums.effect()),
    ]),
    commit("2e8e19226398", memory("2019-04"), "period-loop-limit", "sched/fair: Limit sched_cfs_period_timer() loop to avoid hard lockup", &[
        NotModelled(&[Quotas], SCALED_PERIOD),
    ]),
];
