//! Patches and build options that no release holds.

use super::row::*;

/// In no order: each stands on all commits of the log.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("", NEVER, "idle-cpumask-v7", "[RFC PATCH v7] sched/fair: select idle cpu from idle cpumask for task wakeup", &[
        Select(IdleMask::SetOnIdle.effect()),
    ]),
    commit("000000000001", NEVER, "scale-deadline-off-rq", "counterfactual: reweight_entity() scales the deadline of an entity off its queue, too", &[
        Fair(Reweight::ScaleDeadlineAlways.effect()),
    ]),
    // A choice of who builds the kernel, which 7dadeaa6e851 takes away: since CONFIG_PREEMPT_DYNAMIC most are built so.
    commit("", NEVER, "preemptible", "a build option: CONFIG_PREEMPTION, which CONFIG_PREEMPT_DYNAMIC implies whatever is chosen at boot", &[
        Balance(NewidlePull::OneTask.effect()),
    ]),
    commit("", NEVER, "nohz-blocked-rate-limit", "sched/fair: Rate limit calls to update_blocked_averages() for NOHZ", &[
        Balance(BlockedLimit::Twentieth.effect()),
    ]),
];
