//! Named behaviours of load tracking, and [`PeltRules`], one choice for each.
//!
//! Must not know: releases (see `changes.rs` for which commit brought what).

/// Declares behaviours; each variant carries its rule in one clause, for listings and diffs.
macro_rules! behaviours {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident: $clause:literal,)* })*) => { $(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* #[doc = $clause] $variant,)*
        }

        impl $name {
            /// The rule in one clause.
            pub const fn describe(self) -> &'static str {
                match self { $($name::$variant => $clause,)* }
            }
        }
    )* };
}

behaviours! {
    /// How slow CPUs and low frequencies count for less.
    Invariance {
        Contribution: "each contribution is scaled by frequency, utilization also by capacity; time is the task clock",
        PeltClock: "a clock of its own runs slower on a slow CPU and catches up when the CPU idles",
    }

    /// What the signal beside load and utilization measures.
    RunnableKind {
        LoadWeighted: "load of runnable entities only (runnable_load_avg)",
        TaskCount: "number of runnable tasks over time (runnable_avg)",
    }

    /// Whether a queue's and a group's number of runnable tasks counts those whose dequeue is delayed; such an entity itself
    /// never counts as runnable.
    DelayedTasks {
        Runnable: "sleepers that have not left their queue count as runnable for it and for its groups",
        NotRunnable: "sleepers that have not left their queue do not count as runnable",
    }

    /// When the PELT clock of an idle CPU is set to the task clock.
    IdleSync {
        NextUpdate: "at the first clock update while idle",
        WhenIdling: "as soon as the CPU turns idle, with the time noted for others to read",
    }

    /// When a CPU that was full is found to have no idle time to catch up on.
    LostIdleCheck {
        FairPick: "when the fair class, asked first, has nothing to run",
        EveryIdling: "whenever the CPU turns idle, whichever class ran last",
    }

    /// Whose time it was when a running task turns to another class.
    ClassChange {
        CountsBefore: "the class it turns to is taken to have run since its averages were last made",
        CountsAfter: "the averages of the class it turns to are made first",
    }

    /// Which clock stands still while a group is throttled.
    ThrottleClock {
        Task: "throttled time is measured by the task clock",
        Pelt: "throttled time is measured by the PELT clock",
    }

    /// Whether a task that wakes elsewhere is aged by the time its old CPU has been idle.
    MigrationLag {
        Ignored: "aged up to its old queue's last update",
        Estimated: "aged further by the time that its old CPU has been idle since",
    }

    /// How a queue's sum follows when its average changes by an entity's.
    SumSync {
        Difference: "the sum changes by the entity's sum, not below 0",
        FromAverage: "the sum is made anew from the average",
        FlooredNarrow: "by the entity's sum, then at least average times minimal divider, the larger cut to 32 bits",
        Floored: "by the entity's sum, then at least average times minimal divider",
    }

    /// What divides a sum when a group's change is passed up.
    GroupDivider {
        Maximum: "the maximum of a sum",
        WithinPeriod: "the maximum at this point of the period",
    }

    /// What happens when a group's load average would not change.
    GroupLoadUnchanged {
        Continue: "sums are set all the same",
        StopAfterSum: "only the entity's sum is set",
        StopBeforeSum: "nothing is set",
    }

    /// The width in which a group's new runnable sum is computed.
    GroupRunnableSum {
        Wide: "64 bits",
        Narrow: "cut to 32 bits",
    }

    /// The load sum of an entity that joins a queue.
    AttachLoadSum {
        UnlessWeightless: "its average times divider over weight, or the divider if it has no weight",
        AtLeastOne: "its average times divider over weight, at least 1",
    }

    /// When a running or waiting task that is moved leaves its queue's averages.
    DetachPoint {
        Migration: "when its CPU changes, in an update of its own",
        Dequeue: "when it is dequeued, in the same update",
    }

    /// When a new task joins its queue's averages.
    AttachPoint {
        Fork: "at fork, in an update of its own",
        FirstEnqueue: "when it is first enqueued, in the same update",
    }

    /// The weight that extrapolates a new task's utilization.
    InitialUtilWeight {
        ScaledUp: "the weight with its 10 extra bits, so that the limit nearly always decides",
        ScaledDown: "the plain weight",
    }

    /// A new task's runnable average (task count only).
    InitialRunnable {
        Capacity: "the CPU's capacity",
        Util: "its utilization",
    }

    /// How often a queue tells its group its load.
    TgContribution {
        EveryUpdate: "at each update that changes it by more than 1/64",
        OncePerMillisecond: "the same, at most once per ms and queue",
    }

    /// What a queue tells its group.
    TgTold {
        Load: "its load",
        LoadAndRunnable: "its load and how many tasks are runnable, if either has changed",
    }

    /// When a queue without tasks needs no more updates.
    QueueDecay {
        Never: "queues are never dropped",
        Sums: "when its sums are 0",
        NoChild: "when its sums are 0 and no queue of a child group is listed",
        NoContribution: "the same, and its group counts nothing for it any more",
    }

    /// Whether and how runnability raises a CPU's utilization on request.
    RunnableBoost {
        None: "it does not",
        Estimate: "runnable_avg raises both utilization and its estimate",
        Util: "runnable_avg raises utilization",
        WithTask: "runnable_avg, with the task in question added or taken out, raises utilization",
    }

    /// What is remembered of a task's utilization.
    UtilEstForm {
        EnqueuedAndEwma: "its value at the last dequeue and a moving average",
        EwmaOnly: "a moving average that rises at once",
    }

    /// Where the mark sits that says that utilization has not changed since the last estimate.
    UtilEstFlag {
        LowBitInQueue: "bit 0, visible in a task's estimate, always added to the queue's",
        LowBit: "bit 0, always set in an estimate",
        HighBit: "bit 31, cleared before use",
    }

    /// What happens when the moving average would hardly change (`EnqueuedAndEwma`).
    UtilEstMargin {
        Discard: "the new value is dropped",
        KeepLargeStep: "the new value is kept if it is far from the last one",
    }

    /// Whether an overloaded CPU's samples count.
    UtilEstCapacity {
        Any: "all samples count",
        Within: "samples above the CPU's capacity are dropped",
    }

    /// Whether samples of a task that had to wait count.
    UtilEstWaiting {
        Counted: "they count",
        Skipped: "the average stays as it is",
    }

    /// Whether the moving average rises at once (`EnqueuedAndEwma`).
    UtilEstRise {
        ByFeature: "if the feature UTIL_EST_FASTUP is on",
        AtOnce: "it does",
    }

    /// When a dequeued task's estimate leaves the queue's, and its own is renewed.
    UtilEstDequeue {
        After: "both after its entities are dequeued",
        Around: "the queue's before, its own after its entities are dequeued",
    }
}

/// A signal of PELT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Load.
    Load,
    /// Utilization.
    Util,
    /// Runnability (task count only).
    Runnable,
}

/// Where a queue's averages change by those of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncSite {
    /// An entity's load joins, at attachment or with its new weight (`enqueue_load_avg()`). Load only.
    Attach,
    /// An entity leaves (`detach_entity_load_avg()`), or its load with its old weight (`dequeue_load_avg()`).
    Detach,
    /// Entities that woke elsewhere leave (`update_cfs_rq_load_avg()`).
    Removed,
    /// A group's change is passed up (`update_tg_cfs_*()`).
    Group,
}

/// A [`SumSync`] for each signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalSync {
    /// For load.
    pub load: SumSync,
    /// For utilization.
    pub util: SumSync,
    /// For runnability.
    pub runnable: SumSync,
}

impl SignalSync {
    /// The same for all signals.
    pub const fn all(sync: SumSync) -> SignalSync {
        SignalSync { load: sync, util: sync, runnable: sync }
    }

    const fn set(&mut self, signal: Signal, sync: SumSync) {
        match signal {
            Signal::Load => self.load = sync,
            Signal::Util => self.util = sync,
            Signal::Runnable => self.runnable = sync,
        }
    }
}

/// The rules of utilization estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtilEstRules {
    /// See [`UtilEstForm`].
    pub form: UtilEstForm,
    /// See [`UtilEstFlag`].
    pub flag: UtilEstFlag,
    /// See [`UtilEstMargin`].
    pub margin: UtilEstMargin,
    /// See [`UtilEstCapacity`].
    pub capacity: UtilEstCapacity,
    /// See [`UtilEstWaiting`].
    pub waiting: UtilEstWaiting,
    /// See [`UtilEstRise`].
    pub rise: UtilEstRise,
    /// See [`UtilEstDequeue`].
    pub dequeue: UtilEstDequeue,
}

/// The rules of load tracking that one kernel follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeltRules {
    /// See [`Invariance`].
    pub invariance: Invariance,
    /// See [`RunnableKind`].
    pub runnable: RunnableKind,
    /// See [`DelayedTasks`].
    pub delayed_tasks: DelayedTasks,
    /// See [`IdleSync`].
    pub idle_sync: IdleSync,
    /// See [`LostIdleCheck`].
    pub lost_idle_check: LostIdleCheck,
    /// See [`ClassChange`].
    pub class_change: ClassChange,
    /// See [`ThrottleClock`].
    pub throttle_clock: ThrottleClock,
    /// See [`MigrationLag`].
    pub migration_lag: MigrationLag,
    /// See [`SyncSite::Attach`].
    pub attach_load: SumSync,
    /// See [`SyncSite::Detach`].
    pub detach: SignalSync,
    /// See [`SyncSite::Removed`].
    pub removed: SignalSync,
    /// See [`SyncSite::Group`].
    pub group: SignalSync,
    /// See [`GroupDivider`].
    pub group_divider: GroupDivider,
    /// See [`GroupLoadUnchanged`].
    pub group_load_unchanged: GroupLoadUnchanged,
    /// See [`GroupRunnableSum`].
    pub group_runnable_sum: GroupRunnableSum,
    /// See [`AttachLoadSum`].
    pub attach_load_sum: AttachLoadSum,
    /// See [`DetachPoint`].
    pub detach_point: DetachPoint,
    /// See [`AttachPoint`].
    pub attach_point: AttachPoint,
    /// See [`InitialUtilWeight`].
    pub initial_util_weight: InitialUtilWeight,
    /// See [`InitialRunnable`].
    pub initial_runnable: InitialRunnable,
    /// See [`TgContribution`].
    pub tg_contribution: TgContribution,
    /// See [`TgTold`].
    pub tg_told: TgTold,
    /// See [`QueueDecay`].
    pub queue_decay: QueueDecay,
    /// See [`RunnableBoost`].
    pub runnable_boost: RunnableBoost,
    /// See [`UtilEstRules`].
    pub util_est: UtilEstRules,
}

impl PeltRules {
    /// The rules before the first of [`PELT_CHANGES`](super::PELT_CHANGES): those of v4.18.
    pub const BASE: PeltRules = PeltRules {
        invariance: Invariance::Contribution,
        runnable: RunnableKind::LoadWeighted,
        delayed_tasks: DelayedTasks::Runnable,
        idle_sync: IdleSync::NextUpdate,
        lost_idle_check: LostIdleCheck::FairPick,
        class_change: ClassChange::CountsBefore,
        throttle_clock: ThrottleClock::Task,
        migration_lag: MigrationLag::Ignored,
        attach_load: SumSync::Difference,
        detach: SignalSync::all(SumSync::Difference),
        removed: SignalSync::all(SumSync::Difference),
        group: SignalSync {
            load: SumSync::Difference,
            util: SumSync::FromAverage,
            runnable: SumSync::FromAverage,
        },
        group_divider: GroupDivider::Maximum,
        group_load_unchanged: GroupLoadUnchanged::Continue,
        group_runnable_sum: GroupRunnableSum::Wide,
        attach_load_sum: AttachLoadSum::UnlessWeightless,
        detach_point: DetachPoint::Migration,
        attach_point: AttachPoint::Fork,
        initial_util_weight: InitialUtilWeight::ScaledUp,
        initial_runnable: InitialRunnable::Capacity,
        tg_contribution: TgContribution::EveryUpdate,
        tg_told: TgTold::Load,
        queue_decay: QueueDecay::Sums,
        runnable_boost: RunnableBoost::None,
        util_est: UtilEstRules {
            form: UtilEstForm::EnqueuedAndEwma,
            flag: UtilEstFlag::LowBitInQueue,
            margin: UtilEstMargin::Discard,
            capacity: UtilEstCapacity::Any,
            waiting: UtilEstWaiting::Counted,
            rise: UtilEstRise::ByFeature,
            dequeue: UtilEstDequeue::After,
        },
    };

    /// Sets how sums follow averages at `site`. At [`SyncSite::Attach`] only load has a rule.
    pub(super) const fn set_sync(&mut self, site: SyncSite, signal: Signal, sync: SumSync) {
        match site {
            SyncSite::Attach => self.attach_load = sync,
            SyncSite::Detach => self.detach.set(signal, sync),
            SyncSite::Removed => self.removed.set(signal, sync),
            SyncSite::Group => self.group.set(signal, sync),
        }
    }
}
