//! Named behaviours: which algorithm stands at a decision point. Policy code matches on these, never on a release.

/// Declares the behaviours once; each has a short description for `kernels show`.
macro_rules! behaviours {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name { $($(#[$variant_doc])* $variant,)* }

            impl $name {
                /// The rule in one clause.
                pub const fn describe(self) -> &'static str {
                    match self { $($name::$variant => $text,)* }
                }
            }
        )*
    };
}

behaviours! {
    /// Where an entity joins its queue's virtual time line.
    Placement {
        /// At the queue's minimum; sleepers get a bonus.
        MinVruntime = "at min_vruntime, sleepers up to half a latency before it",
        /// Wakeups at the queue's average shifted by lag; other moves keep their distance to the minimum.
        LagOnWakeup = "wakeups at avg_vruntime less their lag, other moves relative to min_vruntime",
        /// Every enqueue at the queue's average shifted by lag, with a new deadline.
        Lag = "every enqueue at avg_vruntime less its lag, with a new deadline",
    }

    /// How the next entity is picked.
    Pick {
        /// The leftmost, unless a buddy is about as deserving.
        Leftmost = "least vruntime, buddies within the wakeup granularity first",
        /// Of the eligible ones the one with the earliest deadline.
        EarliestEligibleDeadline = "earliest deadline among those with no negative lag",
    }

    /// When the tick takes the CPU away.
    TickPreemption {
        /// After the entity's share of the period.
        IdealSlice = "after the entity's share of the scheduling period, tested at the tick",
        /// After the entity's share of the period, but no more than the latency.
        IdealSliceWithinLatency = "after the entity's share of the scheduling period, at most the latency, tested at the tick",
        /// When its deadline passes.
        Deadline = "when vruntime reaches the deadline, tested whenever run time is accounted",
    }

    /// When a wakeup takes the CPU away.
    WakeupPreemption {
        /// When the woken entity is further behind than the wakeup granularity.
        Granularity = "when the running entity is ahead by more than the wakeup granularity",
        /// When it would be picked.
        PickDecides = "when the woken entity would be picked next",
    }

    /// What `sched_yield` does.
    Yield {
        /// Skips the caller at the next pick.
        SkipBuddy = "the caller is skipped at the next pick if another is about as deserving",
        /// Moves the caller's deadline one slice on.
        PushDeadline = "the caller's deadline moves one slice on",
    }
}

/// The behaviours of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviours {
    /// See [`Placement`].
    pub placement: Placement,
    /// See [`Pick`].
    pub pick: Pick,
    /// See [`TickPreemption`].
    pub tick_preemption: TickPreemption,
    /// See [`WakeupPreemption`].
    pub wakeup_preemption: WakeupPreemption,
    /// See [`Yield`].
    pub yielding: Yield,
}

impl Behaviours {
    /// Each decision point with the rule that stands there, for listing and for diffs.
    pub fn describe(&self) -> [(&'static str, &'static str); 5] {
        [
            ("placement", self.placement.describe()),
            ("pick", self.pick.describe()),
            ("tick preemption", self.tick_preemption.describe()),
            ("wakeup preemption", self.wakeup_preemption.describe()),
            ("yield", self.yielding.describe()),
        ]
    }
}
