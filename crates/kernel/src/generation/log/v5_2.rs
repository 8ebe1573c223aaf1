//! Commits that v5.2 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("9eca544b1491", memory("2019-04"), "io-boost", "cpufreq: schedutil: Simplify iowait boosting", &[Frequency(IoBoost::Eighth.effect())]),
    commit("9b019acb72e4", page("2019-04-29"), "ilb-first-idle", "sched/nohz: Run NOHZ idle load balancer on HK_FLAG_MISC CPUs", &[
        Balance(IlbChoice::FirstIdle.effect()),
    ]),
];
