//! Rules of task groups and of what counts as idle.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of one kernel for groups and their tasks.
    GroupRules, GroupEffect, "{point}: {rule}" {
        /// Whether a group may count as `SCHED_IDLE` (`cpu.idle`).
        idle_groups: IdleGroups = Unknown, "idle groups" {
            Unknown = "groups cannot be made idle",
            Known = "a group may be idle: all in it counts as idle, and it weighs as an idle task",
        }
        /// How the test for preemption by a wakeup sees idle policy.
        idle_preemption: IdlePreemption = Tasks, "idle preemption" {
            Tasks = "an idle task gives way to any other, wherever the two are",
            TasksThenGroups = "an idle task gives way to any other, then an idle group to another; none preempts the other way",
            Competitors = "of the two entities that compete the idle one gives way, and never preempts",
        }
        /// What protection an idle running entity keeps that must give way.
        idle_protection: IdleProtection = Kept, "idle protection" {
            Kept = "what it has, so that the pick may still prefer it",
            Cancelled = "none",
        }
        /// How far before the queue's minimum an idle sleeper is placed.
        idle_credit: IdleCredit = LikeOthers, "idle sleeper" {
            LikeOthers = "as any other, up to half a latency",
            MinGranularity = "up to half a minimal granularity",
        }
        /// What becomes of averages when a task's policy turns to `SCHED_IDLE`.
        idle_reweight: IdleReweight = WeightOnly, "turning idle" {
            WeightOnly = "the task's weight is set, its load stays",
            WithLoad = "the task's load follows its weight",
        }
        /// Whose run time is charged before a weight changes.
        reweight_charge: ReweightCharge = Running, "charged before a reweight" {
            Running = "its own, if it runs",
            Queued = "that of whoever runs on its queue",
        }
        /// How much lag an entity keeps through a change of its weight.
        reweight_lag: ReweightLag = All, "lag through a reweight" {
            All = "all that it has",
            Limited = "as much as one that leaves the queue",
        }
        /// After which changes of weight the queue's minimum is looked at.
        reweight_minimum: ReweightMinimum = Never, "minimum after a reweight" {
            Never = "after none",
            Waiting = "after those of waiting entities",
            Queued = "after those of waiting and running entities",
        }
        /// What happens when a running task has come to another group.
        moved_running: MovedRunning = GoesOn, "moved while running" {
            GoesOn = "it goes on",
            Rescheduled = "a reschedule is asked for",
        }
        /// What happens when a waiting task has come to another group.
        moved_waiting: MovedWaiting = Waits, "moved while waiting" {
            Waits = "it waits for its turn",
            MayPreempt = "it may preempt, as after a wakeup",
        }
        /// What an ending task does about its autogroup, whether it is in one or not.
        exit_move: ExitMove = Always, "autogroup at exit" {
            Always = "it leaves its group's queue and joins that of the group it then belongs to",
            IfGroupChanges = "it moves to the queue of the group it then belongs to, if that is another group",
        }
        /// Where a group's tasks compete.
        competition: Competition = Levels, "competition" {
            Levels = "on their group's queue, and the group on the one above",
            OneQueue = "on their CPU's one queue, each by the part of the CPU's weight that its groups leave it",
        }
        /// What the queues of a group share.
        shared_shares: SharedShares = Group, "what a group's queues share" {
            Group = "the group's shares",
            Concurrent = "the group's shares times its runnable tasks, or the CPUs of its cpuset if those are fewer",
        }
    }
}
