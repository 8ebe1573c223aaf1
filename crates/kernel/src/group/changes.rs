//! What each upstream commit changed for groups and their tasks, oldest first, as data for the change log to fold.
//!
//! Must not know: what the rules do.

use super::rules::{
    Competition, ExitMove, GroupEffect, IdleCredit, IdleGroups, IdlePreemption, IdleProtection, IdleReweight,
    MovedRunning, MovedWaiting, ReweightCharge, ReweightLag, ReweightMinimum, SharedShares,
};
use crate::generation::{Change, Effect, change};

/// The effect of one rule.
macro_rules! becomes {
    ($rule:ident::$variant:ident) => {
        Effect::Group(GroupEffect::$rule($rule::$variant))
    };
}

/// Every change for groups and for what counts as idle since v4.18, oldest first.
#[rustfmt::skip]
pub const GROUP_CHANGES: &[Change] = &[
    change("43e9f7f231e4", "idle-count", (5, 4), "sched/fair: Start tracking SCHED_IDLE tasks count in cfs_rq", &[
        Effect::Groundwork("a count that nothing reads yet"),
    ]),
    change("2a4b03ffc69f", "moved-running", (5, 6), "sched/fair: Prevent unlimited runtime on throttled group", &[
        becomes!(MovedRunning::Rescheduled),
    ]),
    change("26cf52229efc", "least-weight", (5, 7), "sched: Avoid scale real weight down to zero", &[
        Effect::NotModelled("before, a group's entity below 1/1024 of nice 0 weighed nothing"),
    ]),
    change("304000390f88", "cgroup-idle", (5, 15), "sched: Cgroup SCHED_IDLE support", &[
        becomes!(IdleGroups::Known),
        becomes!(IdlePreemption::TasksThenGroups),
    ]),
    change("a480addecc0d", "idle-entities", (5, 16), "sched: Account number of SCHED_IDLE entities on each cfs_rq", &[
        Effect::Groundwork("a count that 2cae3948edd4 is the first to read"),
    ]),
    change("2cae3948edd4", "idle-credit", (5, 16), "sched: adjust sleeper credit for SCHED_IDLE entities", &[
        becomes!(IdleCredit::MinGranularity),
    ]),
    change("eff6c8ce8d4d", "same-autogroup", (6, 4), "sched/core: Reduce cost of sched_move_task when config autogroup", &[
        becomes!(ExitMove::IfGroupChanges),
    ]),
    change("5068d84054b7", "reweight-minimum", (6, 8), "sched/fair: Update min_vruntime for reweight_entity() correctly", &[
        becomes!(ReweightMinimum::Queued),
    ]),
    change("11b1b8bc2b98", "reweight-charge", (6, 9), "sched/eevdf: Always update V if se->on_rq when reweighting", &[
        becomes!(ReweightCharge::Queued),
    ]),
    change("1560d1f6eb6b", "reweight-lag-limit", (6, 9), "sched/eevdf: Prevent vlag from going out of bounds in reweight_eevdf()", &[
        becomes!(ReweightLag::Limited),
    ]),
    change("d32960528702", "idle-reweight", (6, 11), "sched/fair: set_load_weight() must also call reweight_task() for SCHED_IDLE tasks", &[
        becomes!(IdleReweight::WithLoad),
    ]),
    change("faa42d29419d", "idle-hierarchy", (6, 12), "sched/fair: Make SCHED_IDLE entity be preempted in strict hierarchy", &[
        becomes!(IdlePreemption::Competitors),
    ]),
    change("76f970ce51c8", "any-autogroup", (6, 14), "Revert \"sched/core: Reduce cost of sched_move_task when config autogroup\"", &[
        becomes!(ExitMove::Always),
    ]),
    change("f553741ac8c0", "idle-protection", (6, 15), "sched: Cancel the slice protection of the idle entity", &[
        becomes!(IdleProtection::Cancelled),
    ]),
    change("e34881c84c25", "moved-waiting", (7, 0), "sched: Re-evaluate scheduling when migrating queued tasks out of throttled cgroups", &[
        becomes!(MovedWaiting::MayPreempt),
    ]),
    change("4161cb2d867b", "cgroup-mode", (7, 3), "sched/fair: Add cgroup_mode switch", &[
        Effect::Groundwork("a switch that stands as before"),
    ]),
    change("80ad6d3338eb", "cgroup-mode-up", (7, 3), "sched/fair: Add cgroup_mode: up", &[
        Effect::Groundwork("a way to share that is not the default"),
    ]),
    change("90ac22ffef48", "cgroup-mode-max", (7, 3), "sched/fair: Add cgroup_mode: max", &[
        Effect::Groundwork("a way to share that is not the default"),
    ]),
    change("507f910a4e1f", "cgroup-mode-tasks", (7, 3), "sched/fair: Add cgroup_mode: tasks", &[
        Effect::Groundwork("a way to share that is not the default"),
    ]),
    change("fb1050ac8e40", "concurrent-shares", (7, 3), "sched/fair: Change the default cgroup_mode to concur", &[
        becomes!(SharedShares::Concurrent),
    ]),
    change("85570f10a4c6", "one-queue", (7, 3), "sched/eevdf: Move to a single runqueue", &[
        becomes!(Competition::OneQueue),
    ]),
];
