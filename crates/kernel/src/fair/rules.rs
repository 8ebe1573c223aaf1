//! Rules of the fair class.
//!
//! Must not know: commits and releases.

use crate::cfs_rq::tree::AugmentedFields;
use crate::generation::rules::rules;
use crate::generation::{Feature, FeatureSet};

rules! {
    /// The rules of the fair class of one kernel.
    FairRules, FairEffect, "{point}: {rule}" {
        /// Where an entity joins its queue's virtual time line.
        placement: Placement = MinVruntime, "placement" {
            /// At the queue's minimum, new tasks a slice later; sleepers get a bonus.
            MinVruntime = "at min_vruntime, sleepers up to half a latency before it",
            AverageWithCredit = "at avg_vruntime, sleepers up to half a latency before it",
            LagOnWakeup = "wakeups at avg_vruntime less their lag, other moves relative to min_vruntime",
            Lag = "every enqueue at avg_vruntime less its lag, with a new deadline",
        }
        /// How the next entity is picked.
        pick: Pick = Leftmost, "pick" {
            Leftmost = "least vruntime, buddies within the wakeup granularity first",
            /// Of equals whom the search comes upon first; the running one mostly.
            EarliestEligibleDeadline = "earliest deadline among those with no negative lag, by the tree's shape among equals",
            /// The same, searched in a tree ordered by deadline; a waiting one wins ties.
            EarliestEligibleInDeadlineOrder = "earliest deadline among those with no negative lag, the running one last among equals",
        }
        /// When the tick takes the CPU away.
        tick_preemption: TickPreemption = IdealSlice, "tick preemption" {
            IdealSlice = "after the entity's share of the scheduling period, tested at the tick",
            IdealSliceWithinLatency = "after the entity's share of the scheduling period, at most the latency, tested at the tick",
            Deadline = "when vruntime reaches the deadline, tested whenever run time is accounted",
        }
        /// When a wakeup takes the CPU away.
        wakeup_preemption: WakeupPreemption = Granularity, "wakeup preemption" {
            Granularity = "when the running entity is ahead by more than the wakeup granularity",
            PickDecides = "when the woken entity would be picked next",
        }
        /// Whether a new task may preempt.
        fork_preemption: ForkPreemption = LikeWakeup, "fork preemption", "a new task preempts {rule}" {
            LikeWakeup = "as one that wakes",
            /// Only by a shorter request or an idle policy, and so do those that sleep on their queue.
            OnlyShorter = "only by a shorter request",
        }
        /// What `sched_yield` does.
        yielding: Yield = SkipBuddy, "yield" {
            SkipBuddy = "the caller is skipped at the next pick if another is about as deserving",
            PushDeadline = "the caller's deadline moves one slice on",
            ForfeitRequest = "an eligible caller gives up the rest of its request and gets a new one",
        }
        /// From which end a picked task's levels are made the running ones, where the task before is of another class.
        set_next_order: SetNextOrder = FromRoot, "levels of a pick", "a picked task's levels get the CPU {rule}" {
            /// As the pick goes down.
            FromRoot = "from the root down, after a task of another class",
            FromTask = "from the task up",
        }
        /// When an entity stops being anybody's buddy.
        buddy_clearing: BuddyClearing = AtPick, "buddies", "buddies are cleared {rule}" {
            /// When it is picked, even if it is the running one and just goes on.
            AtPick = "at each pick",
            AtSetNext = "when it gets the CPU",
        }
        /// What a change of weight does to an entity's place in virtual time.
        reweight: Reweight = KeepVruntime, "reweight" {
            KeepVruntime = "vruntime stays",
            ScaleLagOffQueue = "vruntime stays; off the queue the lag scales with 1/weight",
            ScaleDeadline = "vruntime stays, the distance to the deadline scales with 1/weight; off the queue only the lag scales",
            /// Lag and deadline scale around an average that leaves out a waiting entity itself.
            ScaleAroundOthers = "lag and deadline scale with 1/weight around the average of the others; off the queue only the lag scales",
            /// Lag, within its limit, and deadline scale around the average.
            ScaleAroundAverage = "lag and deadline scale with 1/weight around the average; off the queue only the lag scales",
            ScaleAllAroundAverage = "lag and deadline scale with 1/weight around the average; off the queue lag and relative deadline",
            PlaceAnew = "lag and relative deadline scale with 1/weight, and the entity is placed again",
            /// As `ScaleDeadline`, and off the queue the deadline scales as well: what would have been right.
            ScaleDeadlineAlways = "vruntime stays, the distance to the deadline scales with 1/weight, on and off the queue",
        }
        /// In what numbers virtual time is computed.
        arithmetic: Arithmetic = InverseTable, "arithmetic", "virtual time is computed {rule}" {
            /// By scaled-down weights and a table of inverses, which truncates twice.
            InverseTable = "by scaled-down weights and their inverses",
            WholeWeight = "by whole weights and one division",
        }
        /// What a weight counts in a queue's average.
        average_weight: AverageWeight = ScaledDown, "weights in the average" {
            ScaledDown = "scaled-down weights in the average",
            Whole = "whole weights in the average",
        }
        /// Whom the queue's minimum takes along as it stands, however late it was.
        long_sleepers: LongSleepers = Nobody, "sleepers placed anew" {
            Nobody = "nobody",
            /// By `exec_start`, which a wakeup on another CPU, and a fork, have just cleared.
            MinuteOrMoved = "who has slept for a minute, came from another CPU, or is new",
        }
        /// Where the virtual zero goes when an entity joins that weighs more than its queue.
        heavy_arrival: HeavyArrival = StaysAtAverage, "zero beside a heavy arrival" {
            StaysAtAverage = "it stays at the average",
            /// So that distances from it, times weights, fit into 64 bits.
            GoesAlong = "it goes where the entity is placed",
        }
        /// How long a picked entity is protected from others that are about as deserving.
        slice_protection: SliceProtection = UntilNewDeadline, "slice protection" {
            UntilNewDeadline = "as long as it has the deadline that it was picked with and is eligible",
            UntilShortestRequest = "until it has run for the shortest request on the queue, as long as it is eligible",
        }
        /// When the protection of a running entity's slice begins.
        protection_start: ProtectionStart = SetNext, "protection begins", "slice protection begins {rule}" {
            /// Whenever it is made the running one, also after a change of its weight or group.
            SetNext = "whenever it becomes the running one",
            Pick = "when it is picked",
        }
        /// What a change of weight does to a running entity's protection that ends at a place on the time line.
        reweight_protection: ReweightProtection = Lost, "protection after a reweight" {
            /// Lag and protection stand in one field, and the lag is noted there.
            Lost = "the lag that is noted stands in its place: it is lost",
            Stays = "it ends where it did",
            Scales = "what is left of it scales with 1/weight",
        }
        /// How large a request is.
        request: Request = BaseSlice, "request" {
            BaseSlice = "the base slice",
            /// What a task asked for with `sched_setattr()`.
            OwnOfTasks = "a task's own or the base slice; for groups the base slice",
            OwnAndLeastBelow = "a task's own or the base slice; for groups the least request of what is queued below",
        }
        /// How soon a running fair task makes way for another.
        reschedule: Reschedule = AtOnce, "reschedule", "a running fair task makes way {rule}" {
            AtOnce = "as soon as possible",
            /// When its CPU next goes back to user mode for any reason; at the tick as soon as possible.
            Lazily = "when its CPU next returns to user mode, at the latest after the tick",
        }
        /// Whom a test for preemption asks the woken task to beat.
        test_pick: TestPick = Deadlines, "pick of a preemption test", "a preemption test is won by {rule}" {
            /// The one with the earliest deadline, protection considered.
            Deadlines = "the pick by deadlines",
            BuddyFirst = "the eligible buddy, else the pick by deadlines",
        }
        /// Whom `NEXT_BUDDY` prefers after a wakeup.
        woken_buddy: WokenBuddy = Latest, "buddy by wakeup", "a wakeup makes preferred {rule}" {
            Latest = "whoever was woken last",
            /// Whoever was woken, unless one is preferred whose deadline is earlier; before the test picks.
            EarlierDeadline = "of those that were woken the one whose deadline is earliest; a waker that is about to sleep is let",
        }
        /// What a sleeper that stays queued comes to when it leaves or wakes.
        delayed_lag: DelayedLag = OfThen, "delayed sleeper", "lag of a delayed sleeper: {rule}" {
            /// Its lag of then; leaving, no credit; waking with credit, it is placed again without.
            OfThen = "its lag when it leaves or wakes, credit dropped",
            /// Awake, it is placed again only where its lag is what was noted.
            NeverWorseUnlessAwake = "the greater of its lag when it fell asleep and of then when it leaves; awake, it is moved only where that is the former",
            NeverWorse = "the greater of its lag when it fell asleep and of then, credit dropped",
        }
        /// Whether the running entity is charged before a sleeper that stayed queued wakes.
        requeue_charge: RequeueCharge = None, "charge before a delayed sleeper wakes" {
            None = "the running entity is not charged: its lag is by the average as last known",
            First = "the running entity is charged first",
        }
        /// What the pick of a test for preemption does with a sleeper that it comes upon.
        delayed_in_test: DelayedInTest = Wins, "delayed sleeper in a preemption test", "a delayed sleeper in a preemption test: {rule}" {
            Wins = "it wins, and no task is preempted",
            Leaves = "it leaves its queue, and the pick is repeated",
        }
        /// How lag is inflated for an entity that joins, so that it has that lag afterwards.
        lag_inflation: LagInflation = MixedUnits, "lag inflation", "lag is inflated {rule}" {
            /// By weights of which some are in scaled-up units: entities that wait hardly count.
            MixedUnits = "by scaled-down weights of those that wait and scaled-up weights of the running and the joining one",
            OneUnit = "by scaled-down weights",
        }
        /// What a node of a queue's tree takes over of requests from the one whose place it takes when the tree is turned or a node
        /// taken out.
        tree_copy: TreeCopy = Nothing, "requests in a turn of the tree" {
            /// The least vruntime alone is handed on.
            Nothing = "the node that comes up knows only of those that were below it, until something below it changes",
            All = "the node that comes up takes over what was known in its place",
        }
        /// Of what largest request a leaf of a queue's tree knows.
        tree_leaf: TreeLeaf = AsBefore, "largest request at a new leaf of the tree" {
            AsBefore = "the one that it knew of when it last left a tree",
            Own = "its own",
        }
        /// How much lag an entity may keep.
        lag_limit: LagLimit = None, "lag limit" {
            None = "no limit",
            TwoRequests = "two of its own requests or a tick, whichever is more",
            LargestRequest = "the largest request on its queue and a tick",
        }
        /// How a queue's average is rounded.
        average_rounding: AverageRounding = TowardsZero, "average", "avg_vruntime is rounded {rule}" {
            TowardsZero = "towards min_vruntime",
            Down = "down",
        }
        /// What a queue's virtual zero follows.
        virtual_zero: VirtualZero = LeastVruntime, "virtual zero" {
            LeastVruntime = "min_vruntime: the least vruntime on the queue, never back",
            /// The average, with whoever has come or gone: one that begins to run is gone, and one that ceases to run still counts
            /// as running as well.
            AverageAtQueueing = "zero_vruntime: the average after each arrival and departure on the time line",
            AverageAtTick = "zero_vruntime: the average as last computed, for which ticks compute it",
            Average = "zero_vruntime: the average as last computed, for which new requests compute it",
        }
        /// Where a new task is placed.
        fork_placement: ForkPlacement = OnParentsQueue, "fork placement" {
            OnParentsQueue = "on the parent's queue, and where it is queued as any other task",
            WhereQueued = "where it is queued, with half a request",
        }
        /// From where a new task has the distance to its first deadline.
        fork_deadline: ForkDeadline = MayBeParents, "distance of a new task's deadline" {
            /// A parent has one noted while it is of another class.
            MayBeParents = "its parent's, where that has one noted; else its request",
            Own = "its request",
        }
        /// What weight a group that has just become empty on a CPU has there.
        empty_group: EmptyGroup = TakesShare, "empty group", "weight of an empty group: {rule}" {
            TakesShare = "its share by the load that is left",
            KeepsWeight = "the one that it had",
        }
        /// What a queued fair task's other nice level leads to.
        nice_change: NiceChange = Reschedules, "other nice level" {
            Reschedules = "the running task is rescheduled if a waiting task comes to weigh more, or if it comes to weigh less itself",
            Tested = "if it waits, it is tested as if woken; if it runs and weighs less, it is rescheduled",
        }
        /// How many tasks are said to fit into one latency (`sched_nr_latency`) where latency or granularity have been written.
        latency_count: LatencyCount = Written, "tasks of a latency" {
            Written = "tasks of a latency are recounted when it is written",
            /// As many as before: the files are plain numbers.
            Unwritten = "as many tasks fit into a latency as before it was written",
        }
        /// What a change of priority of a fair task leads to that is alone on its CPU.
        lone_prio_change: LonePrioChange = LikeOthers, "other priority of a lone task" {
            LikeOthers = "it is tested against what runs, as beside other tasks",
            Ignored = "it is not tested",
        }
    }
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

impl DelayedLag {
    /// Whether the lag of one that falls asleep is noted.
    pub(crate) const fn is_noted(self) -> bool {
        !matches!(self, DelayedLag::OfThen)
    }
}

/// How the time lines of a kernel's queues are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimelineKind {
    pub order: TimelineOrder,
    /// What nodes of the tree know, where something comes of its shape.
    pub tree: Option<AugmentedFields>,
}

impl FairRules {
    /// How queues' time lines are kept.
    pub(crate) fn timeline_kind(&self) -> TimelineKind {
        let fields = AugmentedFields {
            heap_of_deadlines: self.pick.timeline_order() == TimelineOrder::Vruntime,
            least_request: self.request == Request::OwnAndLeastBelow,
            largest_request: self.lag_limit == LagLimit::LargestRequest,
            copies_requests: self.tree_copy == TreeCopy::All,
            leaf_has_own: self.tree_leaf == TreeLeaf::Own,
        };
        let forgets = (fields.least_request || fields.largest_request) && !fields.copies_requests;
        let remembers = fields.largest_request && !fields.leaf_has_own;
        let searched_by_shape = self.pick == Pick::EarliestEligibleDeadline;
        let shape_counts = searched_by_shape || forgets || remembers;
        TimelineKind { order: self.pick.timeline_order(), tree: shape_counts.then_some(fields) }
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

impl FairRules {
    /// `NO_EEVDF`, while both were there: CFS picks, in virtual time as EEVDF places.
    pub(crate) const fn pick_as_before_eevdf(&mut self) {
        self.pick = Pick::Leftmost;
        self.tick_preemption = TickPreemption::IdealSliceWithinLatency;
        self.wakeup_preemption = WakeupPreemption::Granularity;
        self.yielding = Yield::SkipBuddy;
    }

    /// As [`FairRules::describe`], without the decision points that nothing comes to under the other rules and these features.
    pub fn describe_with(&self, features: FeatureSet) -> Vec<(&'static str, &'static str)> {
        let averages = self.placement != Placement::MinVruntime;
        let lags = averages && self.placement != Placement::AverageWithCredit;
        let deadlines = self.pick.has_deadlines();
        let conditions: [(bool, &[&str]); 10] = [
            (averages, &["average", "weights in the average", "zero beside a heavy arrival"]),
            (lags, &["lag inflation", "lag limit"]),
            (self.request == Request::OwnAndLeastBelow, &["requests in a turn of the tree"]),
            (self.lag_limit == LagLimit::LargestRequest, &["largest request at a new leaf of the tree"]),
            (deadlines, &["request", "pick of a preemption test"]),
            (!deadlines, &["tasks of a latency"]),
            (
                deadlines && features.has(Feature::RunToParity),
                &["slice protection", "protection begins", "protection after a reweight"],
            ),
            (features.enabled(Feature::NextBuddy), &["buddy by wakeup"]),
            (features.has(Feature::PlaceRelDeadline), &["distance of a new task's deadline"]),
            (
                features.has(Feature::DelayDequeue),
                &["delayed sleeper", "delayed sleeper in a preemption test"],
            ),
        ];
        let decides =
            |point: &str| conditions.iter().all(|(holds, points)| *holds || !points.contains(&point));
        self.describe().into_iter().filter(|(point, _)| decides(point)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Generation;

    /// The decision points at which a kernel has a rule.
    fn points(kernel: &str) -> Vec<&'static str> {
        let kernel = kernel.parse::<Generation>().expect("a kernel");
        kernel.fair.describe_with(kernel.features).into_iter().map(|(point, _)| point).collect()
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
