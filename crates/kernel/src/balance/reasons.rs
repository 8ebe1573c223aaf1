//! Why balancing did what it did, in clauses.
//!
//! Must not know: how it is found out.

use crate::decision::reasons;

reasons! {
    /// Why nothing is taken from any group of a domain.
    BalancedReason {
        NotItsTurn = "another CPU balances for this group",
        Woken = "a task was woken here meanwhile",
        NothingToTake = "no other group has a task to give",
        LocalIsBusier = "this group is the busier one",
        AboveAverage = "this group is above the average of the domain",
        WithinPercent = "the busiest group is ahead by less than imbalance_pct",
        LeftToIdleCpus = "this CPU is busy and the busiest group not overloaded: an idle CPU may take from it",
        IdleCpusEven = "the groups have about as many idle CPUs",
        NothingWaits = "the busiest group runs a single task",
        NoImbalance = "what there is to move is nothing",
        NoQueue = "no queue of the busiest group fits",
        AllPinned = "every task of the busiest queues is pinned",
        LeftToWakeups = "no CPU has more to do than it can: tasks stay where wakeups have put them by energy",
    }

    /// What becomes of a task that balancing looks at.
    TaskReason {
        Moved = "it is moved",
        MovedHot = "it is moved although it ran there a moment ago: too many tries have failed",
        Running = "it is running",
        NotAllowed = "it may not run there",
        PercpuKthread = "it belongs to its CPU",
        CacheHot = "it ran there a moment ago",
        Buddy = "it is about to run there next",
        LoadTooLarge = "its load is more than what is to be moved",
        UtilTooLarge = "its utilization is more than what is to be moved",
        FitsItsCpu = "it is not too large for its CPU",
        SleepsQueued = "it sleeps and is only still queued",
        Throttled = "its group has run out of quota",
        Ineligible = "it would have to wait there, too",
        PrefersOtherCache = "it does not prefer the last-level cache to which tasks are moved",
        StaysWithProcess = "most of its process ran under the last-level cache where it is, or it would crowd that where it prefers to be",
    }

    /// Why a pass over a queue ended.
    PullEnd {
        Enough = "enough was moved",
        Exhausted = "every task was looked at",
        LookLimit = "as many were looked at as may be",
        LeavesOne = "an idle CPU leaves one task where it is",
        OneForNewidle = "a preemptible kernel that goes idle takes one task at a time",
    }
}

impl TaskReason {
    /// Whether the task is moved.
    pub const fn is_moved(self) -> bool {
        matches!(self, TaskReason::Moved | TaskReason::MovedHot)
    }
}
