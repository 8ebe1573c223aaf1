//! Rules of load tracking.
//!
//! Must not know: commits and releases.

use crate::generation::rules::{choice, rules};

choice! {
    /// How a queue's sum follows when its average changes by an entity's.
    SumSync {
        Difference = "the sum changes by the entity's sum, not below 0",
        FromAverage = "the sum is computed again from the average",
        FlooredNarrow = "by the entity's sum, then at least average times minimal divider, the larger cut to 32 bits",
        Floored = "by the entity's sum, then at least average times minimal divider",
    }
}

rules! {
    /// The rules of load tracking that one kernel follows.
    PeltRules, PeltEffect, "load tracking: {rule}" {
        /// How slow CPUs and low frequencies count for less.
        invariance: Invariance = Contribution, "invariance" {
            Contribution = "each contribution is scaled by frequency, utilization also by capacity; time is the task clock",
            PeltClock = "a clock of its own runs slower on a slow CPU and catches up when the CPU idles",
        }
        /// What the signal beside load and utilization measures.
        runnable: RunnableKind = LoadWeighted, "third signal" {
            LoadWeighted = "load of runnable entities only (runnable_load_avg)",
            TaskCount = "number of runnable tasks over time (runnable_avg)",
        }
        /// Whether a queue's and a group's number of runnable tasks counts those whose dequeue is delayed; such an entity itself
        /// never counts as runnable.
        delayed_tasks: DelayedTasks = Runnable, "delayed sleepers of a queue" {
            Runnable = "sleepers that have not left their queue count as runnable for it and for its groups",
            NotRunnable = "sleepers that have not left their queue do not count as runnable",
        }
        /// When the PELT clock of an idle CPU is set to the task clock.
        idle_sync: IdleSync = NextUpdate, "clock of an idle CPU" {
            NextUpdate = "at the first clock update while idle",
            WhenIdling = "as soon as the CPU turns idle, with the time noted for others to read",
        }
        /// When a CPU that was full is found to have no idle time to catch up on.
        lost_idle_check: LostIdleCheck = FairPick, "lost idle time" {
            FairPick = "when the fair class, asked first, has nothing to run",
            /// Who leaves is put only then: the time that a real-time task ran at low speed counts as if at full speed.
            EveryPick = "whenever nothing is left to run, before who ran last has been counted",
            EveryIdling = "whenever the CPU turns idle, whichever class ran last",
        }
        /// Whose time it was when a running task turns to another class.
        class_change: ClassChange = CountsBefore, "a running task's class" {
            CountsBefore = "the class it turns to is taken to have run since its averages were last made",
            CountsAfter = "the averages of the class it turns to are made first",
        }
        /// Which clock stands still while a group is throttled.
        throttle_clock: ThrottleClock = Task, "clock while throttled" {
            Task = "throttled time is measured by the task clock",
            Pelt = "throttled time is measured by the PELT clock",
        }
        /// Whether a task that wakes elsewhere is aged by the time its old CPU has been idle.
        migration_lag: MigrationLag = Ignored, "age at a migration" {
            Ignored = "aged up to its old queue's last update",
            Estimated = "aged further by the time that its old CPU has been idle since",
        }
        /// How a queue's sum of load follows its average when an entity joins, or its load with its new weight (`enqueue_load_avg()`).
        attach_load: AttachLoadSync(SumSync) = Difference, "load sum at attach"
        /// How a queue's sum of load follows its average when an entity leaves, or its load with its old weight (`dequeue_load_avg()`).
        detach_load: DetachLoadSync(SumSync) = Difference, "load sum at detach"
        /// How a queue's sum of utilization follows its average when an entity leaves (`detach_entity_load_avg()`).
        detach_util: DetachUtilSync(SumSync) = Difference, "util sum at detach"
        /// How a queue's sum of runnability follows its average when an entity leaves (`detach_entity_load_avg()`).
        detach_runnable: DetachRunnableSync(SumSync) = Difference, "runnable sum at detach"
        /// How a queue's sum of load follows its average when entities leave that woke elsewhere (`update_cfs_rq_load_avg()`).
        removed_load: RemovedLoadSync(SumSync) = Difference, "load sum when removed"
        /// How a queue's sum of utilization follows its average when entities leave that woke elsewhere (`update_cfs_rq_load_avg()`).
        removed_util: RemovedUtilSync(SumSync) = Difference, "util sum when removed"
        /// How a queue's sum of runnability follows its average when entities leave that woke elsewhere (`update_cfs_rq_load_avg()`).
        removed_runnable: RemovedRunnableSync(SumSync) = Difference, "runnable sum when removed"
        /// How a queue's sum of load follows its average when a group's change is passed up (`update_tg_cfs_load()`).
        group_load: GroupLoadSync(SumSync) = Difference, "load sum of a group"
        /// How a queue's sum of utilization follows its average when a group's change is passed up (`update_tg_cfs_util()`).
        group_util: GroupUtilSync(SumSync) = FromAverage, "util sum of a group"
        /// How a queue's sum of runnability follows its average when a group's change is passed up (`update_tg_cfs_runnable()`).
        group_runnable: GroupRunnableSync(SumSync) = FromAverage, "runnable sum of a group"
        /// What divides a sum when a group's change is passed up.
        group_divider: GroupDivider = Maximum, "divider of a group" {
            Maximum = "the maximum of a sum",
            WithinPeriod = "the maximum at this point of the period",
        }
        /// What happens when a group's load average would not change.
        group_load_unchanged: GroupLoadUnchanged = Continue, "group load unchanged" {
            Continue = "sums are set nevertheless",
            StopAfterSum = "only the entity's sum is set",
            StopBeforeSum = "nothing is set",
        }
        /// The width in which a group's new runnable sum is computed.
        group_runnable_sum: GroupRunnableSum = Wide, "width of a group's sum" {
            Wide = "64 bits",
            Narrow = "cut to 32 bits",
        }
        /// The load sum of an entity that joins a queue.
        attach_load_sum: AttachLoadSum = UnlessWeightless, "load sum that joins" {
            UnlessWeightless = "its average times divider over weight, or the divider if it has no weight",
            AtLeastOne = "its average times divider over weight, at least 1",
        }
        /// When a running or waiting task that is moved leaves its queue's averages.
        detach_point: DetachPoint = Migration, "detach of a moved task" {
            Migration = "when its CPU changes, in an update of its own",
            Dequeue = "when it is dequeued, in the same update",
        }
        /// When a new task joins its queue's averages.
        attach_point: AttachPoint = Fork, "attach of a new task" {
            Fork = "at fork, in an update of its own",
            FirstEnqueue = "when it is first enqueued, in the same update",
        }
        /// The weight that extrapolates a new task's utilization.
        initial_util_weight: InitialUtilWeight = ScaledUp, "weight of a new task" {
            ScaledUp = "the weight with its 10 extra bits, so that the limit nearly always decides",
            ScaledDown = "the plain weight",
        }
        /// A new task's runnable average (task count only).
        initial_runnable: InitialRunnable = Capacity, "runnable of a new task" {
            Capacity = "the CPU's capacity",
            Util = "its utilization",
        }
        /// How often a queue tells its group its load.
        tg_contribution: TgContribution = EveryUpdate, "report to the group" {
            EveryUpdate = "at each update that changes it by more than 1/64",
            OncePerMillisecond = "at each update that changes it by more than 1/64, at most once per ms and queue",
        }
        /// What a queue tells its group.
        tg_told: TgTold = Load, "reported to the group" {
            Load = "its load",
            LoadAndRunnable = "its load and how many tasks are runnable, if either has changed",
        }
        /// By which clock a millisecond since the last report counts.
        tg_clock: TgClock = Machine, "clock of reports to the group" {
            Machine = "the machine's",
            /// Which a switch does not set that a wakeup has asked for.
            Queue = "the queue's",
        }
        /// When a queue without tasks needs no more updates.
        queue_decay: QueueDecay = Sums, "queue decay" {
            Never = "queues are never dropped",
            Sums = "when its sums are 0",
            NoChild = "when its sums are 0 and no queue of a child group is listed",
            NoContribution = "when its sums are 0, no queue of a child group is listed, and its group counts nothing for it",
        }
        /// Whether and how runnability raises a CPU's utilization on request.
        runnable_boost: RunnableBoost = None, "boost by waiting" {
            None = "it does not",
            Estimate = "runnable_avg raises both utilization and its estimate",
            Util = "runnable_avg raises utilization",
            WithTask = "runnable_avg, with the task in question added or taken out, raises utilization",
        }
        /// What is remembered of a task's utilization.
        util_est_form: UtilEstForm = EnqueuedAndEwma, "estimate form" {
            EnqueuedAndEwma = "its value at the last dequeue and a moving average",
            EwmaOnly = "a moving average that rises at once",
        }
        /// Where the mark sits that says that utilization has not changed since the last estimate.
        util_est_flag: UtilEstFlag = LowBitInQueue, "estimate flag" {
            LowBitInQueue = "bit 0, visible in a task's estimate, always added to the queue's",
            LowBit = "bit 0, always set in an estimate",
            HighBit = "bit 31, cleared before use",
        }
        /// What happens when the moving average would hardly change (`EnqueuedAndEwma`).
        util_est_margin: UtilEstMargin = Discard, "estimate margin" {
            Discard = "the new value is dropped",
            KeepLargeStep = "the new value is kept if it is far from the last one",
        }
        /// Whether an overloaded CPU's samples count.
        util_est_capacity: UtilEstCapacity = Any, "estimate and capacity" {
            Any = "all samples count",
            Within = "samples above the CPU's capacity are dropped",
        }
        /// Whether samples of a task that had to wait count.
        util_est_waiting: UtilEstWaiting = Counted, "estimate and waiting" {
            Counted = "they count",
            Skipped = "the average stays as it is",
        }
        /// Whether the moving average rises at once (`EnqueuedAndEwma`).
        util_est_rise: UtilEstRise = ByFeature, "estimate rise" {
            ByFeature = "if the feature UTIL_EST_FASTUP is on",
            AtOnce = "it does",
        }
        /// When a dequeued task's estimate leaves the queue's, and its own is renewed.
        util_est_dequeue: UtilEstDequeue = After, "estimate at dequeue" {
            After = "both after its entities are dequeued",
            Around = "the queue's before, its own after its entities are dequeued",
        }
        /// By what utilization a task that goes to sleep renews its own estimate.
        util_est_sample: UtilEstSample = Aged, "sample at sleep" {
            Aged = "what it is at the dequeue",
            AsLastAged = "what it was when it was aged last, before the dequeue",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules_of;
    use super::*;

    #[test]
    fn releases_and_builds() {
        assert_eq!(rules_of("v4.18"), PeltRules::BASE);
        assert_eq!(rules_of("v5.0").invariance, Invariance::Contribution);
        assert_eq!(rules_of("v5.6").runnable, RunnableKind::LoadWeighted);
        assert_eq!(rules_of("v5.7").group_divider, GroupDivider::Maximum);
        let debian = rules_of("debian-5.10");
        assert_eq!(debian.removed_load, SumSync::FromAverage);
        assert_eq!(debian.removed_util, SumSync::FlooredNarrow);
        assert_eq!(debian.detach_load, SumSync::Difference, "dequeue_load_avg() was left as it was");
        assert_eq!(debian.detach_util, SumSync::FromAverage);
        assert_eq!(debian.group_load_unchanged, GroupLoadUnchanged::Continue);
        assert_eq!(debian.util_est_flag, UtilEstFlag::HighBit);
        assert_eq!(rules_of("debian-6.12").group_runnable_sum, GroupRunnableSum::Narrow);
    }
}
