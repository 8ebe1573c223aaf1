//! Rules of bandwidth control.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of bandwidth control of one kernel.
    BandwidthRules, BandwidthEffect, "{point}: {rule}" {
        /// What happens to the tasks of a group that has run out of runtime on a CPU.
        throttling: Throttling = WholeQueue, "throttling" {
            WholeQueue = "the group leaves the CPU's queue with all that is below it, wherever its tasks are",
            TasksAtUserReturn = "each task leaves as it returns to user mode; in the kernel they go on",
        }
        /// When a queue without runtime is found.
        throttle_point: ThrottlePoint = PickAndPut, "throttle point" {
            /// Accounting only asks for a reschedule.
            PickAndPut = "at the next pick, or when its running entity is put back",
            Accounting = "as soon as it is charged",
        }
        /// Whether runtime that a CPU has taken from the pool outlives the period.
        slice_expiry: SliceExpiry = SeldomEver, "slice expiry" {
            /// A pool that has another end of its period than the CPU remembers is taken for a clock that is ahead.
            SeldomEver = "runtime taken in an earlier period stays good, for the end of a period is taken for a fast clock",
            WithPeriod = "runtime taken in an earlier period is void, unless it is a debt",
            Never = "runtime taken from the pool stays good",
        }
        /// Who is served first of the queues that wait for runtime.
        throttled_order: ThrottledOrder = NewestFirst, "throttled order" {
            NewestFirst = "the queue that was throttled last",
            OldestFirst = "the queue that was throttled first",
        }
        /// Whether a throttled queue that is charged may take runtime from the pool.
        throttled_assign: ThrottledAssign = Taken, "throttled assignment" {
            Taken = "taken, though the queue stays throttled",
            Refused = "refused until it is distributed",
        }
        /// What another return of runtime does to a slack timer that runs.
        slack_restart: SlackRestart = PushesForward, "slack timer" {
            PushesForward = "restarts the timer",
            LeavesAlone = "leaves it alone",
        }
        /// Whether a queue asks the pool once more before it is throttled.
        last_request: LastRequest = None, "last request" {
            None = "it does not",
            OneNanosecond = "for one nanosecond",
        }
        /// What a new period makes of the pool.
        refill: Refill = Replaces, "refill" {
            Replaces = "the pool holds the quota",
            Accumulates = "the quota is added, up to quota and burst, in idle periods too",
        }
        /// How the time to the end of the period is compared.
        refresh_soon: RefreshSoon = Unsigned, "refresh soon" {
            Unsigned = "unsigned: a period that is over looks far from its end",
            Signed = "signed",
        }
        /// What levels above a throttled group do that stay queued.
        upper_levels: UpperLevels = CountsOnly, "levels above" {
            CountsOnly = "they only recount their tasks",
            Aged = "they age their averages and recount their tasks",
            Told = "they age their averages, recount their tasks, and tell their groups when the group comes back",
        }
        /// How a pick goes on that has found a queue without runtime.
        pick_restart: PickRestart = PutsFirst, "pick restart" {
            PutsFirst = "queues with a running entity are looked at, which is put back first",
            KeepsRunning = "every queue on the way is looked at; the running entity stays a candidate",
        }
        /// Who brings a group back to a CPU.
        unthrottling: Unthrottling = ByTimer, "unthrottling" {
            ByTimer = "the CPU of the timer, for all CPUs",
            ByItsCpu = "each CPU itself, called by an interrupt",
        }
        /// When periods begin.
        period_start: PeriodStart = Together, "period start" {
            Together = "at multiples of the period",
            Interleaved = "at multiples of the period after a random offset of the group",
        }
        /// The weight of a group's entity while it is throttled.
        throttled_weight: ThrottledWeight = Kept, "throttled weight" {
            Kept = "kept",
            Follows = "its share",
        }
        /// How far a change of load below a throttled queue is passed up.
        throttled_propagation: ThrottledPropagation = Stops, "throttled propagation" {
            Stops = "up to the throttled queue",
            GoesOn = "up to the root",
        }
        /// Where the queues of a throttled group, and of those below it, are meanwhile.
        throttled_ageing: ThrottledAgeing = PassedOver, "queues of a throttled group" {
            PassedOver = "they stay where they are aged, and are passed over",
            Leave = "they leave the list of those that are aged",
        }
        /// Which queues come back to that list with their group.
        relisting: Relisting = Queued, "aged again after throttling" {
            Queued = "those on which something is queued",
            QueuedOrUndecayed = "those on which something is queued, or of whose averages something is left",
        }
        /// What comes with a queue that comes back with nothing but averages.
        undecayed_branch: UndecayedBranch = Alone, "queues above one that comes back with averages only" {
            Alone = "they stay as they are",
            WithAncestors = "they are aged as well",
        }
        /// Which queues are aged from when a task joins a group that is throttled.
        throttled_arrival: ThrottledArrival = WhereItEnds, "ageing after an arrival below a throttled group" {
            WhereItEnds = "queues that were empty, and from where the way up ends",
            Joined = "queues that something joins, and from where the way up ends",
            WholeWay = "all on the way up",
        }
        /// Whether the queue of a throttled group is aged while nothing runs on it.
        throttled_listing: ThrottledListing = Joins, "ageing of throttled queues" {
            Joins = "it is from when something is queued there, or from when averages join or leave it",
            StaysOut = "not before its group comes back",
        }
        /// From when a queue is aged while nothing runs on it, with those above it.
        attach_listing: AttachListing = Queued, "ageing after a change of averages" {
            Queued = "from when something is queued there",
            QueuedOrAttached = "also from when averages join or leave it",
        }
        /// Runtime of a queue whose group has just got a quota.
        initial_runtime: InitialRuntime = None, "initial runtime" {
            None = "none",
            OneNanosecond = "one nanosecond",
        }
        /// Which tasks of throttled groups are not moved by balancing.
        throttled_migration: ThrottledMigration = NeitherEnd, "throttled migration" {
            NeitherEnd = "none whose group is throttled on either CPU",
            Free = "any task may be moved",
            NotThere = "none to a CPU on which its group is throttled",
        }
        /// Whose wakeup is not asked whether it preempts, and which group is not preferred after a sleep.
        throttled_preemption: ThrottledPreemption = ByQueue, "throttled preemption" {
            ByQueue = "no task of a throttled group",
            ByTask = "no task that is throttled itself",
        }
        /// The clock of averages of a queue that is made below a throttled one.
        join_throttled: JoinThrottled = ClockRuns, "below a throttled one" {
            ClockRuns = "runs until the queue has run empty once",
            ClockStopped = "stands still until something is queued",
        }
    }
}
