//! Commits that v6.1 is the first release to hold.

use super::row::*;

/// In git's order.
#[rustfmt::skip]
pub(super) const COMMITS: &[LoggedCommit] = &[
    commit("e1f078f50478", git("2022-08-23"), "detach-at-dequeue", "sched/fair: Combine detach into dequeue when migrating task", &[
        Pelt(DetachPoint::Dequeue.effect()),
    ]),
    commit("d6531ab6e501", git("2022-08-23"), "attach-at-enqueue", "sched/fair: Move task sched_avg attach to enqueue_task_fair()", &[
        Pelt(AttachPoint::FirstEnqueue.effect()),
    ]),
    commit("df16b71c686c", git("2022-08-23"), "new-task-moves", "sched/fair: Allow changing cgroup of new forked task", &[
        NotModelled(&[Groups], "averages of new tasks that change groups before they run"),
    ]),
    commit("b9bae70440d2", git("2022-09-07"), "siblings-of-prev", "sched/fair: Avoid double search on same cpu", &[
        Select(SiblingScan::OthersOfPrevFirst.effect()),
    ]),
    commit("b0defa7ae03e", git("2022-09-15"), "look-further", "sched/fair: Make sure to try to detach at least one movable task", &[
        Balance(LookLimit::UntilOneAllowed.effect()),
    ]),
];
