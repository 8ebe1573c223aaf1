//! Decisions: what would be done, and why.

use fairlab_event::Cpu;

use crate::domain::{DomainId, SharedId};
use crate::task::TaskId;

/// Declares an enum of reasons with the clause that explains each.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $name { $(#[doc = $text] $variant,)* }

            impl $name {
                /// All reasons, by name, each with its clause.
                pub const CLAUSES: &[(&str, &str)] = &[$((stringify!($variant), $text),)*];

                /// The reason in one clause.
                pub const fn describe(self) -> &'static str {
                    match self { $($name::$variant => $text,)* }
                }
            }
        )*
    };
}

pub(crate) use reasons;

reasons! {
    /// Why a task is the next to run.
    PickReason {
        MostUrgent = "it is the most urgent real-time task",
        StopClass = "a stopper goes before everything",
        DeadlineClass = "a thread that sets a clock goes before everything but a stopper",
        Nothing = "nothing is runnable",
        OnlyCandidate = "no other entity is on the queue",
        Leftmost = "it has the least vruntime",
        NextBuddy = "it is the next buddy and about as deserving as the leftmost",
        LastBuddy = "it was preempted by a wakeup and is about as deserving as the leftmost",
        YielderSkipped = "the leftmost yielded and this one is about as deserving",
        RunToParity = "it is eligible and has not used its slice yet",
        EarliestDeadline = "it has the earliest deadline of the eligible ones",
    }

    /// Why a woken or moved task takes the CPU, or does not.
    PreemptReason {
        HigherClass = "it is of a higher class",
        LowerClass = "it is of a lower class",
        MoreUrgent = "it is of a higher real-time priority",
        LessUrgent = "it is not of a higher real-time priority",
        SameEntity = "it is the running task",
        Throttled = "its group is throttled",
        AlreadyPending = "a reschedule is already pending",
        CurrIsIdlePolicy = "the running task is SCHED_IDLE and the other is not",
        PolicyNeverPreempts = "SCHED_BATCH and SCHED_IDLE tasks do not preempt by waking",
        NewTask = "new tasks preempt only by a shorter request",
        AsleepOnQueue = "who sleeps on its queue preempts only by a shorter request",
        WakerSleeps = "its waker is about to sleep, and is let",
        CurrNotEligible = "the running entity has had more than its share, and a task woke this one",
        WakerRanLong = "its waker is about to sleep, but has run for long, and its own deadline is earlier",
        FeatureOff = "WAKEUP_PREEMPTION is off",
        WithinGranularity = "it is not behind by more than the wakeup granularity",
        BeyondGranularity = "it is behind by more than the wakeup granularity",
        WouldBePicked = "it would be picked",
        ShorterRequest = "its request is shorter and it is eligible: it would be picked without slice protection",
        WouldNotBePicked = "it would not be picked",
    }

    /// Why the tick takes the CPU away, or does not.
    TickReason {
        Alone = "no other entity is on the queue",
        SliceUsed = "it has used its slice",
        BelowMinGranularity = "it has run less than the minimal granularity",
        LeftmostAhead = "it is still behind the leftmost",
        SliceTimer = "the timer that ends its slice has expired",
        FarAhead = "it is ahead of the leftmost by more than its slice",
        WithinSlice = "its slice is not used up",
    }

    /// Why a group's queue is throttled, or is not.
    ThrottleReason {
        NoQuota = "its group has no quota",
        RuntimeLeft = "it has runtime left",
        PoolRefilled = "it has none left, but its group's pool has been filled meanwhile",
        OutOfRuntime = "it has no runtime left, and its group's pool is empty",
        ThrottledAlready = "it is throttled already",
    }

    /// Why a CPU was selected for a task.
    SelectReason {
        OnlyAllowed = "the task may run nowhere else",
        TargetIdle = "the target is idle",
        PrevIdle = "the CPU it last ran on is idle and shares the cache",
        PerCpuKthread = "the waker is a kthread of this CPU that worked for the task",
        RecentUsedIdle = "the CPU it used before is idle and shares the cache",
        IdleCore = "a wholly idle core",
        IdleSibling = "an idle thread of the core it last ran on",
        IdleInLlc = "an idle CPU in the cache domain",
        NoIdle = "no idle CPU was found: the target",
        LessUrgentThere = "what runs where it was is less urgent",
        LeastUrgent = "it runs the least urgent task",
        LeastEnergy = "the roomiest CPU of its clock domain, where the task takes the least energy",
        PrevEnergy = "the CPU it last ran on: nowhere else does the task take enough less energy",
        NotAffine = "the waker wakes too many: the CPU it last ran on",
        FittingIdle = "an idle CPU that is big enough",
        BiggestIdle = "the biggest idle CPU, as none is big enough",
        IdleInOtherCluster = "the CPU it last ran on or used before is idle, though in another cluster",
        LeavingItsCpu = "it is about to leave its CPU, which will queue it itself",
        NoDomain = "no domain is searched",
        LocalIdlest = "no other group of CPUs is idler",
        IdlestInGroup = "the idlest CPU of the idlest group",
        Disallowed = "the chosen CPU is not allowed: the first allowed one",
    }
}

/// The next task of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickDecision {
    /// The task; the idle task when nothing is runnable.
    pub task: TaskId,
    /// Why.
    pub reason: PickReason,
}

/// Whether a newly queued task takes the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptDecision {
    /// Whether it does.
    pub preempt: bool,
    /// Why.
    pub reason: PreemptReason,
}

/// Whether the tick takes the CPU away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickDecision {
    /// Whether it does.
    pub resched: bool,
    /// Why.
    pub reason: TickReason,
}

/// Whether a group's queue is throttled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleDecision {
    /// Whether it is.
    pub throttle: bool,
    /// Why.
    pub reason: ThrottleReason,
}

/// The CPU on which a task should be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuDecision {
    /// The CPU.
    pub cpu: Cpu,
    /// Why.
    pub reason: SelectReason,
    /// How many CPUs were looked at; the engine charges the time for it.
    pub scanned: u32,
    /// A last-level cache that was searched for a wholly idle core and has none.
    pub no_idle_core_in: Option<SharedId>,
    /// How it was found, as far as an idle CPU was looked for.
    pub search: IdleCpuSearch,
}

/// How an idle CPU was looked for (`select_idle_sibling()`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleCpuSearch {
    /// It was: the selection was that of a wakeup.
    pub entered: bool,
    /// The waker may be followed: it does not wake too many (`want_affine`).
    pub affine: bool,
    /// The lowest domain of both, where the wakeup was pulled to its waker.
    pub pulled_in: Option<DomainId>,
    /// Both CPUs' loads were weighed (`wake_affine_weight()`), and whether the waker's own was taken off.
    pub weighed: Option<bool>,
    /// The task's own load was taken off its CPU's (`cpu_load_without()`).
    pub own_load_asked: bool,
    /// The CPU that the class had chosen, which the task may not use.
    pub refused: Option<Cpu>,
    /// The recently used CPU was looked at as another candidate than target and previous CPU: whether it was taken.
    pub recent: Option<bool>,
    /// The wakeup came to the point where the recently used CPU is looked at.
    pub reached_recent: bool,
    /// The cache domain was searched.
    pub domain: bool,
    /// A wholly idle core was searched: whether one was found.
    pub core: Option<bool>,
    /// CPUs looked at in the search of the cache domain.
    pub looked_at: u32,
    /// The time that the search took counts for its average cost.
    pub timed: bool,
    /// No idle CPU was found.
    pub failed: bool,
}
