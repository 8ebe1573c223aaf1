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
    change("6d4d22468dae", "counts-after-averages", (5, 7), "sched/fair: Reorder enqueue/dequeue_task_fair path", &[
        Effect::Groundwork("tasks are counted after averages are aged, no longer before: what was aged did not count tasks"),
    ]),
    change("765047932f15", "thermal-pressure", (5, 7), "sched/pelt: Add support to track thermal pressure", &[
        Effect::NotModelled("capacity that heat takes away"),
    ]),
    change("87e867b4269f", "divider-name", (5, 9), "sched/pelt: Cleanup PELT divider", &[
        Effect::Groundwork("one function instead of copies of one expression"),
    ]),
    change("1724b95b9297", "reweight-in-place", (5, 10), "sched/fair: Simplify the work when reweighting entity", &[
        Effect::Groundwork("the number of entities is no longer lowered and raised again: nothing in between reads it"),
    ]),
    change("9abb897345ce", "buddies-in-order", (5, 10), "sched/fair: Tweak pick_next_entity()", &[
        Effect::Groundwork("the preferred entity comes before the last one, as it did"),
    ]),
    change("fe7491580d7c", "no-forced-report", (5, 10), "sched/fair: Remove the force parameter of update_tg_load_avg()", &[
        Effect::Groundwork("a parameter that was not set where averages are followed"),
    ]),
    change("e0ee463c93c4", "hrtick-by-class", (5, 12), "sched/features: Distinguish between NORMAL and DEADLINE hrtick", &[
        Effect::Groundwork("no slice ends by a timer by default before 9213aa4784cf"),
    ]),
    change("156ec6f42b8d", "hrtick-reprogrammed", (5, 12), "sched/features: Fix hrtick reprogramming", &[
        Effect::Groundwork("no slice ends by a timer by default before 9213aa4784cf"),
    ]),
    change("ab2dde5e98db", "ilb-result", (5, 13), "sched/fair: Remove unused return of _nohz_idle_balance", &[
        Effect::Groundwork("a result that nobody reads is no longer returned"),
    ]),
    change("39b6a429c304", "ilb-tick-noted-first", (5, 13), "sched/fair: Reduce the window for duplicated update", &[
        Effect::Groundwork("the tick of an update is noted before it and no longer after it: here no other CPU looks meanwhile"),
    ]),
    change("4ef0c5c6b5ba", "fork-in-its-group", (5, 16), "kernel/sched: Fix sched_fork() access an invalid sched_task_group", &[
        Effect::Groundwork("a new task is placed later in its fork, by the same rules"),
    ]),
    change("b1e8206582f9", "fork-races", (5, 17), "sched: Fix yet more sched_fork() races", &[
        Effect::Groundwork("a new task is placed later in its fork, by the same rules"),
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
    change("99d4d26551b5", "augmented-tree", (6, 6), "rbtree: Add rb_add_augmented_cached() helper", &[
        Effect::Groundwork("a function for trees"),
    ]),
    change("2f2fc17bab00", "slice-at-placement", (6, 6), "sched/eevdf: Also update slice on placement", &[
        Effect::NotModelled("between 147f3efaa241 and this a placed entity had the request of its last deadline"),
    ]),
    change("8dafa9d0eb1a", "heap-after-reweight", (6, 6), "sched/eevdf: Fix min_deadline heap integrity", &[
        Effect::NotModelled("between 147f3efaa241 and this a search could miss deadlines that a reweight had moved"),
    ]),
    change("b01db23d5923", "whole-search", (6, 6), "sched/eevdf: Fix pick_eevdf()", &[
        Effect::NotModelled("between 147f3efaa241 and this a search could miss the earliest deadline"),
    ]),
    change("d2929762cc3f", "heap-of-waiting", (6, 6), "sched/eevdf: Fix heap corruption more", &[
        Effect::NotModelled("between 8dafa9d0eb1a and this a search could go astray after the running entity's reweight"),
    ]),
    change("ee4373dc902c", "first-looked-at-first", (6, 8), "sched/eevdf: O(1) fastpath for task selection", &[
        Effect::Groundwork("the first in order is looked at before the tree is searched, for the same answer"),
    ]),
    change("f0e1a0643a59", "sched-ext", (6, 12), "sched_ext: Implement BPF extensible scheduler class", &[
        Effect::NotModelled("schedulers written in BPF"),
    ]),
    change("fc1892becd56", "delayed-entity-not-runnable", (6, 12), "sched/eevdf: Fixup PELT vs DELAYED_DEQUEUE", &[
        Effect::NotModelled("between 152e11f6df29 and this a sleeper that had not left counted as runnable itself, too"),
    ]),
    change("d4ac164bde7a", "alone-on-its-queue", (6, 12), "sched/eevdf: Fix wakeup-preempt by checking cfs_rq->nr_running", &[
        Effect::NotModelled("between 85e511df3cec and this a used request did not count only where the CPU had one task"),
    ]),
    change("4423af84b297", "no-lag-no-product", (6, 13), "sched/fair: optimize the PLACE_LAG when se->vlag is zero", &[
        Effect::Groundwork("no lag is not inflated, for the same place"),
    ]),
    change("c2a295bffeaf", "h-nr-runnable-counted", (6, 14), "sched/fair: Add new cfs_rq.h_nr_runnable", &[
        Effect::Groundwork("a difference is counted by itself"),
    ]),
    change("3429dd57f0de", "delayed-group-counted-once", (6, 14), "sched/fair: Fix inaccurate h_nr_runnable accounting with delayed dequeue", &[
        Effect::NotModelled("in v6.13 a delayed group was taken off what counts as runnable beside its tasks"),
    ]),
    change("6d2051403d6c", "util-est-in-update", (7, 2), "sched/fair: Update util_est after updating util_avg during dequeue", &[
        Effect::Groundwork("a step of a dequeue comes sooner, and nothing in between reads what it writes"),
    ]),
    change("fa02b2868420", "class-that-is-told", (7, 3), "sched/core: Fix inter-class wakeup_preempt()", &[
        Effect::NotModelled("which class is told when a task comes to a higher one"),
    ]),
    change("3cd1f657fae5", "buddy-arguments", (7, 3), "sched/fair: Remove unused arguments from set_preempt_buddy()", &[
        Effect::Groundwork("arguments that nothing reads"),
    ]),
];
