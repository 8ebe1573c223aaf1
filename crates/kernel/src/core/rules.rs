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
    }
}
