//! Rules of tests for preemption and of the protection that they end.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of one kernel for tests for preemption.
    PreemptionRules, PreemptionEffect, "{point}: {rule}" {
        /// From where a test that fails leaves the running entity's protection the shortest request.
        protection_update: ProtectionUpdate = OwnPlace, "protection after a failed test counts" {
            OwnPlace = "from where the running entity stands",
            AverageIfEarlier = "from where the running entity stands, or from the average if that is earlier",
        }
        /// What becomes of a test while a reschedule is pending.
        pending_test: PendingTest = Ends, "preemption test while a reschedule is pending" {
            Ends = "there is none",
            /// With `PREEMPT_SHORT` it may end a protection all the same.
            GoesOn = "it goes on, if shorter requests may preempt",
        }
        /// Which tests that fail shorten the running entity's protection.
        failed_test: FailedTest = AtPick, "protection is shortened by a failed test" {
            /// Those that come to the pick; one that succeeds by it leaves the protection.
            AtPick = "one that comes to the pick",
            /// Those of new tasks, of idle and batch tasks, and of sleepers as well; one that succeeds ends it.
            Any = "any; and one that succeeds ends it",
        }
        /// When a woken entity with a shorter request preempts.
        short_test: ShortTest = Picked, "a shorter request preempts" {
            /// If the pick, which sees no protection, comes upon it.
            Picked = "if it would be picked",
            PickedOrEligible = "if it would be picked, or is eligible",
        }
        /// Whom the pick prefers after an entity with a shorter request has preempted.
        short_buddy: ShortBuddy = Nobody, "preferred after preemption by a shorter request" {
            Nobody = "no entity",
            Shortest = "the entity that preempted, unless an entity with a shorter request is preferred",
        }
        /// Whether a wakeup by a task takes the CPU from who is not eligible there, whoever is picked then.
        forced_preemption: ForcedPreemption = Never, "a wakeup by a task takes the CPU" {
            Never = "only from an entity that would not be picked",
            Ineligible = "from an entity that would not be picked, or that has had more than its share",
        }
        /// What preferred entities come to in a test of a shorter request, and when it preempts.
        short_preference: ShortPreference = Counts, "preferred entities beside a shorter request" {
            Counts = "they come before it, and the running entity stays preferred",
            Ignored = "they do not count, and the running entity is no longer preferred",
        }
        /// How long an entity is protected that is picked beside others with shorter requests.
        shorter_beside: ShorterBeside = ForRequest, "protection beside shorter requests" {
            ForRequest = "until it has run for the shortest of them",
            WhileEligible = "until it is past the average of those that wait",
        }
        /// Whether a sleeper on its queue preempts by a shorter request.
        delayed_short: DelayedShort = MayPreempt, "sleeper on its queue with a shorter request" {
            MayPreempt = "as others",
            Never = "not at all",
        }
    }
}
