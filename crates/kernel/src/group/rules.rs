//! Named behaviours of task groups and of what counts as idle, and [`GroupRules`], one choice for each.
//!
//! Must not know: releases (see `changes.rs` for which commit brought what).

use crate::generation::behaviour::{behaviours, rules};

behaviours! {
    /// Whether a group may count as `SCHED_IDLE` (`cpu.idle`).
    IdleGroups {
        /// There is no such file.
        Unknown = "groups cannot be made idle",
        /// It can be set.
        Known = "a group may be idle: all in it counts as idle, and it weighs as an idle task",
    }

    /// How the test for preemption by a wakeup sees idle policy.
    IdlePreemption {
        /// That of the two tasks.
        Tasks = "an idle task gives way to any other, wherever the two are",
        /// That of the two tasks, then that of the groups that compete.
        TasksThenGroups = "an idle task gives way to any other, then an idle group to another; none preempts the other way",
        /// That of the entities that compete.
        Competitors = "of the two entities that compete the idle one gives way, and never preempts",
    }

    /// What protection an idle running entity keeps that must give way.
    IdleProtection {
        /// All.
        Kept = "what it has, so that the pick may still prefer it",
        /// None.
        Cancelled = "none",
    }

    /// How far before the queue's minimum an idle sleeper is placed.
    IdleCredit {
        /// As any other.
        LikeOthers = "as any other, up to half a latency",
        /// Less.
        MinGranularity = "up to half a minimal granularity",
    }

    /// What becomes of averages when a task's policy turns to `SCHED_IDLE`.
    IdleReweight {
        /// Nothing.
        WeightOnly = "the task's weight is set, its load stays",
        /// They follow.
        WithLoad = "the task's load follows its weight",
    }

    /// Whose run time is charged before a weight changes.
    ReweightCharge {
        /// Only its own.
        Running = "its own, if it runs",
        /// That of whoever runs on its queue.
        Queued = "that of whoever runs on its queue",
    }

    /// How much lag an entity keeps through a change of its weight.
    ReweightLag {
        /// All.
        All = "all that it has",
        /// What an entity may keep that leaves.
        Limited = "as much as one that leaves the queue",
    }

    /// After which changes of weight the queue's minimum is looked at.
    ReweightMinimum {
        /// Vruntimes do not change.
        Never = "after none",
        /// Those of entities that wait.
        Waiting = "after those of waiting entities",
        /// All on the queue.
        Queued = "after those of waiting and running entities",
    }

    /// What happens when a running task has come to another group.
    MovedRunning {
        /// Nothing.
        GoesOn = "it goes on",
        /// The pick decides.
        Rescheduled = "a reschedule is asked for",
    }

    /// What happens when a waiting task has come to another group.
    MovedWaiting {
        /// Nothing.
        Waits = "it waits for its turn",
        /// As after a wakeup.
        MayPreempt = "it may preempt, as after a wakeup",
    }

    /// Where a group's tasks compete.
    Competition {
        /// Among themselves, and their group with what it stands beside.
        Levels = "on their group's queue, and the group on the one above",
        /// With all others of their CPU.
        OneQueue = "on their CPU's one queue, each by the part of the CPU's weight that its groups leave it",
    }

    /// What the queues of a group share.
    SharedShares {
        /// What the group weighs.
        Group = "the group's shares",
        /// As much for each task that runs.
        Concurrent = "the group's shares times its runnable tasks, or CPUs if those are fewer",
    }

    /// What an ending task does about its autogroup, whether it is in one or not.
    ExitMove {
        /// It is taken off its queue and put back.
        Always = "it leaves its group's queue and joins that of the group it then belongs to",
        /// Only if the group is another.
        IfGroupChanges = "the same, unless that is the same group",
    }
}

rules! {
    /// The rules of one kernel for groups and their tasks.
    GroupRules,
    /// One rule for groups that a commit replaces.
    GroupEffect {
        idle_groups: IdleGroups = Unknown, "idle groups";
        idle_preemption: IdlePreemption = Tasks, "idle preemption";
        idle_protection: IdleProtection = Kept, "idle protection";
        idle_credit: IdleCredit = LikeOthers, "idle sleeper";
        idle_reweight: IdleReweight = WeightOnly, "turning idle";
        reweight_charge: ReweightCharge = Running, "charged before a reweight";
        reweight_lag: ReweightLag = All, "lag through a reweight";
        reweight_minimum: ReweightMinimum = Never, "minimum after a reweight";
        moved_running: MovedRunning = GoesOn, "moved while running";
        moved_waiting: MovedWaiting = Waits, "moved while waiting";
        exit_move: ExitMove = Always, "autogroup at exit";
        competition: Competition = Levels, "competition";
        shared_shares: SharedShares = Group, "what a group's queues share";
    }
}
