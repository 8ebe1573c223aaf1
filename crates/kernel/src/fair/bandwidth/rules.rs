//! Named behaviours of bandwidth control, and [`BandwidthRules`], one choice for each.
//!
//! Must not know: releases (see `changes.rs` for which commit brought what).

use crate::generation::behaviour::{behaviours, rules};

behaviours! {
    /// What happens to the tasks of a group that has run out of runtime on a CPU.
    Throttling {
        /// All at once.
        WholeQueue = "the group leaves the CPU's queue with all that is below it, wherever its tasks are",
        /// One by one.
        TasksAtUserReturn = "each task leaves as it returns to user mode; in the kernel they go on",
    }

    /// When a queue without runtime is found.
    ThrottlePoint {
        /// Accounting only asks for a reschedule.
        PickAndPut = "at the next pick, or when its running entity is put back",
        /// As soon as it is charged.
        Accounting = "as soon as it is charged",
    }

    /// Whether runtime that a CPU has taken from the pool outlives the period.
    SliceExpiry {
        /// It does not.
        WithPeriod = "runtime taken in an earlier period is void, unless it is a debt",
        /// It does.
        Never = "runtime taken from the pool stays good",
    }

    /// Who is served first of the queues that wait for runtime.
    ThrottledOrder {
        /// The last one.
        NewestFirst = "the queue that was throttled last",
        /// The first one.
        OldestFirst = "the queue that was throttled first",
    }

    /// Whether a throttled queue that is charged may take runtime from the pool.
    ThrottledAssign {
        /// It may, and stays throttled.
        Taken = "taken, though the queue stays throttled",
        /// It waits for the distribution.
        Refused = "refused until it is distributed",
    }

    /// What another return of runtime does to a slack timer that runs.
    SlackRestart {
        /// Starts it anew.
        PushesForward = "starts the timer anew",
        /// Nothing.
        LeavesAlone = "leaves it alone",
    }

    /// Whether a queue asks the pool once more before it is throttled.
    LastRequest {
        /// It does not.
        None = "it does not",
        /// For the least that keeps it running.
        OneNanosecond = "for one nanosecond",
    }

    /// What a new period makes of the pool.
    Refill {
        /// The quota.
        Replaces = "the pool holds the quota",
        /// What is left is kept.
        Accumulates = "the quota is added, up to quota and burst, in idle periods too",
    }

    /// How the time to the end of the period is compared.
    RefreshSoon {
        /// A period that is over looks endless.
        Unsigned = "unsigned: a period that is over looks far from its end",
        /// As it is.
        Signed = "signed",
    }

    /// What levels above a throttled group do that stay queued.
    UpperLevels {
        /// Count their tasks anew.
        CountsOnly = "they only count their tasks anew",
        /// Averages are aged, too.
        Aged = "they age their averages and count their tasks anew",
        /// Averages are aged and told.
        Told = "the same, and tell their groups when the group comes back",
    }

    /// How a pick goes on that has found a queue without runtime.
    PickRestart {
        /// Like after a sleep.
        PutsFirst = "queues with a running entity are looked at, which is put back first",
        /// With the running entity as a candidate.
        KeepsRunning = "every queue on the way is looked at; the running entity stays a candidate",
    }

    /// Who brings a group back to a CPU.
    Unthrottling {
        /// The timer's CPU.
        ByTimer = "the CPU of the timer, for all CPUs",
        /// Each CPU for itself.
        ByItsCpu = "each CPU itself, called by an interrupt",
    }

    /// When periods begin.
    PeriodStart {
        /// Together.
        Together = "at multiples of the period",
        /// Apart.
        Interleaved = "at multiples of the period after a random offset of the group",
    }

    /// The weight of a group's entity while it is throttled.
    ThrottledWeight {
        /// Stays.
        Kept = "kept",
        /// Follows its share.
        Follows = "its share",
    }

    /// How far a change of load below a throttled queue is passed up.
    ThrottledPropagation {
        /// Not beyond.
        Stops = "up to the throttled queue",
        /// All the way.
        GoesOn = "up to the root",
    }

    /// Runtime of a queue whose group has just got a quota.
    InitialRuntime {
        /// None.
        None = "none",
        /// The least that counts.
        OneNanosecond = "one nanosecond",
    }

    /// Which tasks of throttled groups are not moved by balancing.
    ThrottledMigration {
        /// Neither from nor to.
        NeitherEnd = "none whose group is throttled on either CPU",
        /// Any.
        Free = "any task may be moved",
        /// Not to.
        NotThere = "none to a CPU on which its group is throttled",
    }

    /// Whose wakeup is not asked whether it preempts, and which group is not preferred after a sleep.
    ThrottledPreemption {
        /// Queues count.
        ByQueue = "no task of a throttled group",
        /// Tasks count.
        ByTask = "no task that is throttled itself",
    }

    /// The clock of averages of a queue that is made below a throttled one.
    JoinThrottled {
        /// Runs.
        ClockRuns = "runs until the queue has run empty once",
        /// Stands still.
        ClockStopped = "stands still until something is queued",
    }
}

rules! {
    /// The rules of bandwidth control of one kernel.
    BandwidthRules,
    /// One rule of bandwidth control that a commit replaces.
    BandwidthEffect {
        throttling: Throttling = WholeQueue, "throttling";
        throttle_point: ThrottlePoint = PickAndPut, "throttle point";
        slice_expiry: SliceExpiry = WithPeriod, "slice expiry";
        throttled_order: ThrottledOrder = NewestFirst, "throttled order";
        throttled_assign: ThrottledAssign = Taken, "throttled assignment";
        slack_restart: SlackRestart = PushesForward, "slack timer";
        last_request: LastRequest = None, "last request";
        refill: Refill = Replaces, "refill";
        refresh_soon: RefreshSoon = Unsigned, "refresh soon";
        upper_levels: UpperLevels = CountsOnly, "levels above";
        pick_restart: PickRestart = PutsFirst, "pick restart";
        unthrottling: Unthrottling = ByTimer, "unthrottling";
        period_start: PeriodStart = Together, "period start";
        throttled_weight: ThrottledWeight = Kept, "throttled weight";
        throttled_propagation: ThrottledPropagation = Stops, "throttled propagation";
        initial_runtime: InitialRuntime = None, "initial runtime";
        throttled_migration: ThrottledMigration = NeitherEnd, "throttled migration";
        throttled_preemption: ThrottledPreemption = ByQueue, "throttled preemption";
        join_throttled: JoinThrottled = ClockRuns, "below a throttled one";
    }
}
