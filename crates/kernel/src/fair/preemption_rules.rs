//! Named behaviours of tests for preemption and of the protection that they end, and [`PreemptionRules`], one choice for each.
//!
//! Must not know: releases.

use crate::generation::behaviour::{behaviours, rules};

behaviours! {
    /// From where a test that fails leaves the running entity's protection the shortest request.
    ProtectionUpdate {
        /// Wherever it stands.
        OwnPlace = "from where the running entity stands",
        /// It may have run ahead.
        AverageIfEarlier = "from where the running entity stands, or from the average if that is earlier",
    }

    /// What becomes of a test while a reschedule is pending.
    PendingTest {
        /// Nothing.
        Ends = "there is none",
        /// With `PREEMPT_SHORT` it may end a protection all the same.
        GoesOn = "it goes on, if shorter requests may preempt",
    }

    /// Which tests that fail shorten the running entity's protection.
    FailedTest {
        /// Those that come to the pick; one that succeeds by it leaves the protection.
        AtPick = "one that comes to the pick",
        /// Those of new tasks, of idle and batch tasks, and of sleepers as well; one that succeeds ends it.
        Any = "any; and one that succeeds ends it",
    }

    /// When a woken entity with a shorter request preempts.
    ShortTest {
        /// If the pick, which sees no protection, comes upon it.
        Picked = "if it would be picked",
        /// Also if it only might be.
        PickedOrEligible = "if it would be picked, or is eligible",
    }

    /// Whom the pick prefers after an entity with a shorter request has preempted.
    ShortBuddy {
        /// Nobody, and the preempted one is no longer preferred.
        Nobody = "nobody",
        /// The one with the shortest request.
        Shortest = "the one that has preempted, unless one with a shorter request is preferred",
    }

    /// How long an entity is protected that is picked beside others with shorter requests.
    ShorterBeside {
        /// For so long.
        ForRequest = "until it has run for the shortest of them",
        /// While nobody is owed more.
        WhileEligible = "until it is past the average of those that wait",
    }

    /// Whether a sleeper on its queue preempts by a shorter request.
    DelayedShort {
        /// As any other.
        MayPreempt = "as others",
        /// It owes time.
        Never = "not at all",
    }
}

rules! {
    /// The rules of one kernel for tests for preemption.
    PreemptionRules,
    /// One such rule that a commit replaces.
    PreemptionEffect {
        protection_update: ProtectionUpdate = OwnPlace, "protection after a failed test counts";
        pending_test: PendingTest = Ends, "preemption test while a reschedule is pending";
        failed_test: FailedTest = AtPick, "protection is shortened by a failed test";
        short_test: ShortTest = Picked, "a shorter request preempts";
        short_buddy: ShortBuddy = Nobody, "preferred after preemption by a shorter request";
        shorter_beside: ShorterBeside = ForRequest, "protection beside shorter requests";
        delayed_short: DelayedShort = MayPreempt, "sleeper on its queue with a shorter request";
    }
}
