//! Rules of what all classes share.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of one kernel for what all classes share.
    CoreRules, CoreEffect, "{point}: {rule}" {
        /// Whether slices end by a timer of their own, where the feature `HRTICK` is on.
        hrtick: Hrtick = NotFollowed, "slice timer" {
            /// As before v7.1, where it is off by default.
            NotFollowed = "not followed",
            UntilDeadline = "a timer at the deadline, while others are queued",
        }
        /// To which CPU a task is moved that may no longer use the one on which it is.
        affinity_dest: AffinityDest = First, "where a task goes whose CPUs have changed" {
            First = "to the first that it may use",
            InTurn = "to those that it may use in turn, as the CPU that asks counts",
        }
    }
}
