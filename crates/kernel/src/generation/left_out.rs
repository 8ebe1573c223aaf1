//! Upstream commits that are no part of the model: named, so that it is said what the model leaves out, or that nothing is.

use super::change::{Change, Effect};
use super::log::change;

/// Known commits that alter no decision here, oldest first.
#[rustfmt::skip]
pub(super) const LEFT_OUT_CHANGES: &[Change] = &[
    change("69842cba9ace", "clamped-utilization", (5, 3), "sched/uclamp: Add CPU's clamp buckets refcounting", &[
        Effect::NotModelled("clamped utilization: tasks and groups give no hints (uclamp)"),
    ]),
    change("1c1b8a7b03ef", "no-source-load", (5, 3), "sched/fair: Replace source_load() & target_load() with weighted_cpuload()", &[
        Effect::Groundwork("both had come to the same number since the history of loads was removed"),
    ]),
    change("a3df067974c5", "runnable-load-name", (5, 3), "sched/fair: Rename weighted_cpuload() to cpu_runnable_load()", &[
        Effect::Groundwork("a function gets another name"),
    ]),
    change("87e867b4269f", "divider-name", (5, 8), "sched/pelt: Cleanup PELT divider", &[
        Effect::Groundwork("one function instead of copies of one expression"),
    ]),
    change("ab2dde5e98db", "ilb-result", (5, 13), "sched/fair: Remove unused return of _nohz_idle_balance", &[
        Effect::Groundwork("a result that nobody reads is no longer returned"),
    ]),
    change("39b6a429c304", "ilb-tick-noted-first", (5, 13), "sched/fair: Reduce the window for duplicated update", &[
        Effect::Groundwork("the tick of an update is noted before it and no longer after it: here no other CPU looks meanwhile"),
    ]),
    change("829c1651e9c4", "long-sleepers", (6, 3), "sched/fair: sanitize vruntime of entity being placed", &[
        Effect::NotModelled("sleepers of more than 104 days"),
    ]),
    change("a53ce18cacb4", "long-sleepers-moved", (6, 3), "sched/fair: Sanitize vruntime of entity being migrated", &[
        Effect::NotModelled("sleepers of more than 104 days"),
    ]),
    change("d07f09a1f99c", "placement-flags", (6, 6), "sched/fair: Propagate enqueue flags into place_entity()", &[
        Effect::Groundwork("an argument that nothing reads yet"),
    ]),
    change("f0e1a0643a59", "sched-ext", (6, 12), "sched_ext: Implement BPF extensible scheduler class", &[
        Effect::NotModelled("schedulers written in BPF"),
    ]),
    change("", "util-est-in-update", (7, 1), "util_est_update() becomes a step of update_load_avg()", &[
        Effect::Groundwork("a step of a dequeue comes sooner, and nothing in between reads what it writes"),
    ]),
];
