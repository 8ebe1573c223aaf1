//! Commits that v5.8 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("5a6d6a6ccb5f", memory("2020-04"), "refill-before-scaling", "sched/fair: Refill bandwidth before scaling", &[NotModelled(&[Quotas], SCALED_PERIOD)]),
    commit("e98fa02c4f2e", git("2020-04-30"), "last-request", "sched/fair: Eliminate bandwidth race between throttling and distribution", &[
        Bandwidth(LastRequest::OneNanosecond.effect()),
    ]),
    commit("ab93a4bc955b", memory("2020-04-30"), "no-distribute-running", "sched/fair: Remove distribute_running from CFS bandwidth", &[
        OutOfSight(RACE),
    ]),
    commit("36c5bdc43870", git("2020-04-30"), "no-load-balance-flag", "sched/topology: Kill SD_LOAD_BALANCE", &[
        Domain(LoadBalanceFlag::Gone.effect()),
        Domain(FlagsShown::NumberFromNewidle.effect()),
    ]),
    commit("95d685935a2e", git("2020-05-19"), "group-divider", "sched/pelt: Sync util/runnable_sum with PELT window when propagating", &[
        Pelt(GroupDivider::WithinPeriod.effect()),
    ]),
    commit("c6e7bd7afaeb", git("2020-05-25"), "leaving-wakee", "sched/core: Optimize ttwu() spinning on p->on_cpu", &[
        Select(LeavingWakee::LeftThere.effect()),
    ]),
    commit("2ebb17717550", git("2020-05-25"), "queue-leaving", "sched/core: Offload wakee task activation if it the wakee is descheduling", &[
        Select(WakeList::OrLeaving.effect()),
    ]),
    commit("126c2092e5c8", memory("2020-05"), "ttwu-pending", "sched: Add rq::ttwu_pending", &[
        NotModelled(&[Apart("d6962c4fe8f9")], "between an interrupt's arrival and the enqueue of what it brings, the CPU looks idle"),
    ]),
    commit("19a1f5ec6999", memory("2020-06"), "ilb-told", "sched: Fix smp_call_function_single_async() usage for ILB", &[
        Balance(IlbTold::OnceThere.effect()),
    ]),
    commit("68f7b5cc835d", git("2020-06-25"), "initial-runnable", "sched/cfs: change initial value of runnable_avg", &[
        Pelt(InitialRunnable::Util.effect()),
    ]),
    commit("dbfb089d360b", git("2020-07-08"), "loadavg-race", "sched: Fix loadavg accounting race", &[
        OutOfSight("load averages of the whole machine"),
    ]),
    commit("01cfcde9c26d", git("2020-07-16"), "no-load", "sched/fair: handle case of task_h_load() returning 0", &[Balance(NoLoad::One.effect())]),
];
