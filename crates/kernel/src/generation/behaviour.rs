//! Named behaviours: which algorithm stands at a decision point. Policy code matches on these, never on a release.

use super::feature::{Feature, Features};

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
        /// At the queue's minimum, new tasks a slice later; sleepers get a bonus.
        MinVruntime = "at min_vruntime, sleepers up to half a latency before it",
        /// At the queue's average; sleepers get a bonus, nobody is moved back.
        AverageWithCredit = "at avg_vruntime, sleepers up to half a latency before it",
        /// Wakeups at the queue's average shifted by lag; other moves keep their distance to the minimum.
        LagOnWakeup = "wakeups at avg_vruntime less their lag, other moves relative to min_vruntime",
        /// Every enqueue at the queue's average shifted by lag, with a new deadline.
        Lag = "every enqueue at avg_vruntime less its lag, with a new deadline",
    }

    /// How the next entity is picked.
    Pick {
        /// The leftmost, unless a buddy is about as deserving.
        Leftmost = "least vruntime, buddies within the wakeup granularity first",
        /// Of the eligible ones the one with the earliest deadline; the running one wins ties.
        EarliestEligibleDeadline = "earliest deadline among those with no negative lag, the running one first among equals",
        /// The same, searched in a tree ordered by deadline; a waiting one wins ties.
        EarliestEligibleInDeadlineOrder = "earliest deadline among those with no negative lag, the running one last among equals",
    }

    /// When an entity stops being anybody's buddy.
    BuddyClearing {
        /// When it is picked, even if it is the running one and just goes on.
        AtPick = "at each pick",
        /// When it gets the CPU.
        AtSetNext = "when it gets the CPU",
    }

    /// What a change of weight does to an entity's place in virtual time.
    Reweight {
        /// Nothing.
        KeepVruntime = "vruntime stays",
        /// Only lag scales, off the queue.
        ScaleLagOffQueue = "vruntime stays; off the queue the lag scales with 1/weight",
        /// The distance to the deadline scales.
        ScaleDeadline = "vruntime stays, the distance to the deadline scales with 1/weight; off the queue only the lag scales",
        /// Lag and deadline scale around an average that leaves out a waiting entity itself.
        ScaleAroundOthers = "lag and deadline scale with 1/weight around the average of the others; off the queue only the lag scales",
        /// Lag, within its limit, and deadline scale around the average.
        ScaleAroundAverage = "lag and deadline scale with 1/weight around the average; off the queue only the lag scales",
        /// The same, and off the queue a relative deadline scales as well.
        ScaleAllAroundAverage = "lag and deadline scale with 1/weight around the average; off the queue lag and relative deadline",
        /// The entity is placed anew with scaled lag and relative deadline.
        PlaceAnew = "lag and relative deadline scale with 1/weight and the entity is placed anew",
        /// As `ScaleDeadline`, and off the queue the deadline scales as well: what would have been right.
        ScaleDeadlineAlways = "vruntime stays, the distance to the deadline scales with 1/weight, on and off the queue",
    }

    /// What a change of weight does to a running entity's protection that ends at a place on the time line.
    ReweightProtection {
        /// Lag and protection stand in one field, and the lag is noted there.
        Lost = "the lag that is noted stands in its place: it is lost",
        /// Nothing, however the entity moves.
        Stays = "it ends where it did",
        /// What is left of it scales, as the distance to the deadline does.
        Scales = "what is left of it scales with 1/weight",
    }

    /// In what numbers virtual time is computed.
    Arithmetic {
        /// By scaled-down weights and a table of inverses, which truncates twice.
        InverseTable = "by scaled-down weights and their inverses",
        /// By whole weights.
        WholeWeight = "by whole weights and one division",
    }

    /// How long a picked entity is protected from others that are about as deserving.
    SliceProtection {
        /// Until it gets another deadline, as long as it is eligible.
        UntilNewDeadline = "as long as it has the deadline that it was picked with and is eligible",
        /// Until it has run for its request or the least one on the queue.
        UntilShortestRequest = "until it has run for the shortest request on the queue, as long as it is eligible",
    }

    /// When the protection of a running entity's slice begins.
    ProtectionStart {
        /// Whenever it is made the running one, also after a change of its weight or group.
        SetNext = "whenever it becomes the running one",
        /// When it is picked.
        Pick = "when it is picked",
    }

    /// How soon a running fair task makes way for another.
    Reschedule {
        /// As soon as that is possible.
        AtOnce = "as soon as possible",
        /// When its CPU next goes back to user mode for any reason; at the tick as soon as possible.
        Lazily = "when its CPU next returns to user mode, at the latest after the tick",
    }

    /// Whom a test for preemption asks the woken task to beat.
    TestPick {
        /// The one with the earliest deadline, protection considered.
        Deadlines = "the pick by deadlines",
        /// The preferred one, if it is eligible; else the one with the earliest deadline.
        BuddyFirst = "the eligible buddy, else the pick by deadlines",
    }

    /// Whom `NEXT_BUDDY` prefers after a wakeup.
    WokenBuddy {
        /// Whoever was woken last.
        Latest = "whoever was woken last",
        /// Whoever was woken, unless one is preferred whose deadline is earlier; before the test picks.
        EarlierDeadline = "of those that were woken the one whose deadline is earliest; a waker that is about to sleep is let",
    }

    /// What the pick of a test for preemption does with a sleeper that it comes upon.
    DelayedInTest {
        /// Takes it for the winner.
        Wins = "it wins, and nobody is preempted",
        /// Takes it off its queue and picks again.
        Leaves = "it leaves its queue, and the pick is repeated",
    }

    /// What weight a group that has just become empty on a CPU has there.
    EmptyGroup {
        /// By its share, which is what blocked load is left.
        TakesShare = "its share by the load that is left",
        /// The one that it had.
        KeepsWeight = "the one that it had",
    }

    /// What a sleeper that stays queued comes to when it leaves or wakes.
    DelayedLag {
        /// Its lag of then; leaving, no credit; waking with credit, it is placed anew without.
        OfThen = "its lag when it leaves or wakes, credit dropped",
        /// The greater of its lag when it fell asleep and of then, no credit.
        NeverWorse = "the greater of its lag when it fell asleep and of then, credit dropped",
    }

    /// Whether a new task may preempt.
    ForkPreemption {
        /// As one that wakes.
        LikeWakeup = "as one that wakes",
        /// Only by a shorter request or an idle policy, and so do those that sleep on their queue.
        OnlyShorter = "only by a shorter request",
    }

    /// How lag is inflated for an entity that joins, so that it has that lag afterwards.
    LagInflation {
        /// By weights of which some are in scaled-up units: entities that wait hardly count.
        MixedUnits = "by scaled-down weights of those that wait and scaled-up weights of the running and the joining one",
        /// By weights in one unit.
        OneUnit = "by scaled-down weights",
    }

    /// How much lag an entity may keep.
    LagLimit {
        /// Any.
        None = "no limit",
        /// Two of its requests, or a tick.
        TwoRequests = "two of its own requests or a tick, whichever is more",
        /// The largest request on its queue and a tick.
        LargestRequest = "the largest request on its queue and a tick",
    }

    /// How a queue's average is rounded.
    AverageRounding {
        /// As C divides.
        TowardsZero = "towards min_vruntime",
        /// Down.
        Down = "down",
    }

    /// What a queue's virtual zero follows.
    VirtualZero {
        /// The least vruntime, never back.
        LeastVruntime = "min_vruntime: the least vruntime on the queue, never back",
        /// The average, with whoever has come or gone: one that begins to run is gone, and one that ceases to run still counts
        /// as running as well.
        AverageAtQueueing = "zero_vruntime: the average after each arrival and departure on the time line",
        /// The average, as it was computed last, at each tick at the latest.
        AverageAtTick = "zero_vruntime: the average as last computed, for which ticks compute it",
        /// The average, as it was computed last, at each new request at the latest.
        Average = "zero_vruntime: the average as last computed, for which new requests compute it",
    }

    /// Where the room above the measured utilization is added when a frequency is chosen.
    Headroom {
        /// A quarter of the highest frequency, before utilization is taken of it.
        OnFrequency = "a quarter more frequency than utilization asks for",
        /// A quarter of the utilization, which is then a part of the highest frequency.
        OnUtilization = "a quarter more utilization of the busiest CPU",
    }

    /// What a governor makes of the time that threads of the deadline class run.
    DeadlineUse {
        /// Only whether the CPU is full with it.
        FillsCpu = "counts only where it fills the CPU",
        /// It counts as any other.
        Counts = "counts as any other",
    }

    /// What a governor begins with when a task comes back from I/O.
    IoBoost {
        /// With the clock's lowest frequency.
        LowestFrequency = "with the lowest frequency",
        /// With an eighth of the CPU.
        Eighth = "with an eighth of the CPU",
    }

    /// What a queued fair task's other nice level leads to.
    NiceChange {
        /// A reschedule, without a test.
        Reschedules = "who runs is rescheduled if the task comes to weigh more, or weighs less and runs itself",
        /// What a change of priority leads to.
        Tested = "if it waits, it is tested as if woken; if it runs and weighs less, it is rescheduled",
    }

    /// How many tasks are said to fit into one latency (`sched_nr_latency`) where latency or granularity have been written.
    LatencyCount {
        /// As many as fit.
        Written = "tasks of a latency are counted anew when it is written",
        /// As many as before: the files are plain numbers.
        Unwritten = "as many tasks fit into a latency as before it was written",
    }

    /// What a change of priority of a fair task leads to that is alone on its CPU.
    LonePrioChange {
        /// The same as of others.
        LikeOthers = "the same as of others",
        /// Nothing.
        Ignored = "nothing",
    }

    /// At which changes of utilization a governor is asked.
    GovernorHook {
        /// Whenever a root queue's averages have decayed, wherever that happens.
        EveryQueueUpdate = "at each decay of a root queue, one by one",
        /// Where an entity's update has changed its root queue; after blocked averages once for the CPU.
        EntityUpdate = "after an entity's update, once after all blocked averages",
    }

    /// How large a request is.
    Request {
        /// The same for all.
        BaseSlice = "the base slice",
        /// What a task asked for with `sched_setattr()`.
        OwnOfTasks = "a task's own or the base slice; for groups the base slice",
        /// The same, and for a group the least of those below it.
        OwnAndLeastBelow = "a task's own or the base slice; for groups the least request of what is queued below",
    }

    /// Where a new task is placed.
    ForkPlacement {
        /// On its parent's queue; where it is queued it is placed as if it came from elsewhere.
        OnParentsQueue = "on the parent's queue, and where it is queued as any other task",
        /// Where it is queued, with half a request.
        WhereQueued = "where it is queued, with half a request",
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

    /// How long real-time tasks may run.
    RtLimit {
        /// 95 %.
        EachPeriod = "0.95 s of each second on a CPU",
        /// Any time.
        None = "without limit",
    }

    /// Whether slices end by a timer of their own, where the feature `HRTICK` is on.
    Hrtick {
        /// As before v7.1, where it is off by default.
        NotFollowed = "not followed",
        /// At the deadline.
        UntilDeadline = "a timer at the deadline, while others are queued",
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
        /// Gives up the rest of the request, if the caller is eligible.
        ForfeitRequest = "an eligible caller gives up the rest of its request and gets a new one",
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
    /// See [`BuddyClearing`].
    pub buddy_clearing: BuddyClearing,
    /// See [`Reweight`].
    pub reweight: Reweight,
    /// See [`ReweightProtection`].
    pub reweight_protection: ReweightProtection,
    /// See [`Arithmetic`].
    pub arithmetic: Arithmetic,
    /// See [`SliceProtection`].
    pub slice_protection: SliceProtection,
    /// See [`ProtectionStart`].
    pub protection_start: ProtectionStart,
    /// See [`Reschedule`].
    pub reschedule: Reschedule,
    /// See [`TestPick`].
    pub test_pick: TestPick,
    /// See [`WokenBuddy`].
    pub woken_buddy: WokenBuddy,
    /// See [`DelayedInTest`].
    pub delayed_in_test: DelayedInTest,
    /// See [`EmptyGroup`].
    pub empty_group: EmptyGroup,
    /// See [`DelayedLag`].
    pub delayed_lag: DelayedLag,
    /// See [`ForkPreemption`].
    pub fork_preemption: ForkPreemption,
    /// See [`LagInflation`].
    pub lag_inflation: LagInflation,
    /// See [`LagLimit`].
    pub lag_limit: LagLimit,
    /// See [`AverageRounding`].
    pub average_rounding: AverageRounding,
    /// See [`VirtualZero`].
    pub virtual_zero: VirtualZero,
    /// See [`ForkPlacement`].
    pub fork_placement: ForkPlacement,
    /// See [`Request`].
    pub request: Request,
    /// See [`Headroom`].
    pub headroom: Headroom,
    /// See [`DeadlineUse`].
    pub deadline_use: DeadlineUse,
    /// See [`IoBoost`].
    pub io_boost: IoBoost,
    /// See [`NiceChange`].
    pub nice_change: NiceChange,
    /// See [`LatencyCount`].
    pub latency_count: LatencyCount,
    /// See [`LonePrioChange`].
    pub lone_prio_change: LonePrioChange,
    /// See [`GovernorHook`].
    pub governor_hook: GovernorHook,
    /// See [`Hrtick`].
    pub hrtick: Hrtick,
    /// See [`RtLimit`].
    pub rt_limit: RtLimit,
}

impl VirtualZero {
    /// Whether it goes where the average is.
    pub(crate) const fn follows_average(self) -> bool {
        !matches!(self, VirtualZero::LeastVruntime)
    }

    /// Whether computing the average moves it.
    pub(crate) const fn moves_when_computed(self) -> bool {
        matches!(self, VirtualZero::AverageAtTick | VirtualZero::Average)
    }
}

impl Pick {
    /// How a queue's waiting entities are ordered.
    pub(crate) const fn timeline_order(self) -> TimelineOrder {
        match self {
            Pick::Leftmost | Pick::EarliestEligibleDeadline => TimelineOrder::Vruntime,
            Pick::EarliestEligibleInDeadlineOrder => TimelineOrder::Deadline,
        }
    }

    /// Whether entities have deadlines.
    pub const fn has_deadlines(self) -> bool {
        !matches!(self, Pick::Leftmost)
    }
}

/// By what a queue's waiting entities are ordered; among equals the first comer is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimelineOrder {
    /// `tasks_timeline` to v6.7.
    Vruntime,
    /// `tasks_timeline` from v6.8 (2227a957e1d5).
    Deadline,
}

impl Behaviours {
    /// `NO_EEVDF`, while both were there: CFS picks, in virtual time as EEVDF places.
    pub(super) const fn pick_as_before_eevdf(&mut self) {
        self.pick = Pick::Leftmost;
        self.tick_preemption = TickPreemption::IdealSliceWithinLatency;
        self.wakeup_preemption = WakeupPreemption::Granularity;
        self.yielding = Yield::SkipBuddy;
    }

    /// Each decision point with the rule that stands there, for listing and for diffs; without those that nothing comes
    /// to under the other rules and these features.
    pub fn describe(&self, features: Features) -> Vec<(&'static str, &'static str)> {
        let averages = self.placement != Placement::MinVruntime;
        let lags = averages && self.placement != Placement::AverageWithCredit;
        let deadlines = self.pick.has_deadlines();
        let protects = deadlines && features.has(Feature::RunToParity);
        let delays = features.has(Feature::DelayDequeue);
        let all = [
            ("placement", self.placement.describe(), true),
            ("pick", self.pick.describe(), true),
            ("tick preemption", self.tick_preemption.describe(), true),
            ("wakeup preemption", self.wakeup_preemption.describe(), true),
            ("fork preemption", self.fork_preemption.describe(), true),
            ("yield", self.yielding.describe(), true),
            ("buddies", self.buddy_clearing.describe(), true),
            ("reweight", self.reweight.describe(), true),
            ("arithmetic", self.arithmetic.describe(), true),
            ("slice protection", self.slice_protection.describe(), protects),
            ("protection begins", self.protection_start.describe(), protects),
            ("protection after a reweight", self.reweight_protection.describe(), protects),
            ("request", self.request.describe(), deadlines),
            ("reschedule", self.reschedule.describe(), true),
            ("pick of a preemption test", self.test_pick.describe(), deadlines),
            ("buddy by wakeup", self.woken_buddy.describe(), features.enabled(Feature::NextBuddy)),
            ("delayed sleeper", self.delayed_lag.describe(), delays),
            ("delayed sleeper in a preemption test", self.delayed_in_test.describe(), delays),
            ("lag inflation", self.lag_inflation.describe(), lags),
            ("lag limit", self.lag_limit.describe(), lags),
            ("average", self.average_rounding.describe(), averages),
            ("virtual zero", self.virtual_zero.describe(), true),
            ("fork placement", self.fork_placement.describe(), true),
            ("empty group", self.empty_group.describe(), true),
            ("other nice level", self.nice_change.describe(), true),
            ("tasks of a latency", self.latency_count.describe(), !deadlines),
            ("other priority of a lone task", self.lone_prio_change.describe(), true),
            ("headroom", self.headroom.describe(), true),
            ("use by the deadline class", self.deadline_use.describe(), true),
            ("boost after I/O", self.io_boost.describe(), true),
            ("governor", self.governor_hook.describe(), true),
            ("slice timer", self.hrtick.describe(), true),
            ("real-time limit", self.rt_limit.describe(), true),
        ];
        all.into_iter().filter(|&(.., decides)| decides).map(|(point, rule, _)| (point, rule)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Generation;

    /// The decision points at which a kernel has a rule.
    fn points(kernel: &str) -> Vec<&'static str> {
        let kernel = kernel.parse::<Generation>().expect("a kernel");
        kernel.behaviours.describe(kernel.features).into_iter().map(|(point, _)| point).collect()
    }

    #[test]
    fn what_a_kernel_does_not_have_has_no_rule() {
        let has = |kernel: &str, point: &str| points(kernel).contains(&point);
        for (point, first, last_without) in [
            ("average", "e0c2ff903c32", "v6.5"),
            ("lag limit", "86bfbb7ce4f6", "e0c2ff903c32"),
            ("slice protection", "v6.6", "86bfbb7ce4f6"),
            ("delayed sleeper", "v6.12", "v6.11"),
        ] {
            assert!(has(first, point), "{first} has a rule for {point}");
            assert!(!has(last_without, point), "{last_without} has none for {point}");
        }
        assert!(has("v4.18", "pick") && has("v7.2", "pick"));
    }
}
