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
        /// Where a task that runs kernel code makes way for another before it is done.
        preemption_model: PreemptionModel = Voluntary, "preemption model", "kernel work is left {rule}" {
            /// `CONFIG_PREEMPT_NONE`.
            None = "where it offers that by cond_resched()",
            /// `CONFIG_PREEMPT_VOLUNTARY`.
            Voluntary = "where it offers that by cond_resched() or might sleep",
            /// `CONFIG_PREEMPT`.
            Full = "as soon as a reschedule is asked for",
            /// `CONFIG_PREEMPT_LAZY`: fair tasks ask lazily, real-time ones at once.
            Lazy = "as soon as a reschedule is asked for that is not lazy; the tick makes a lazy one so",
        }
        /// How long a runqueue's clock stands when a switch is to go by the clock of the wakeup that asked for it.
        skipped_clock: SkippedClock = ToTheSwitch, "clock of a preempting wakeup", "it stands {rule}" {
            /// Whoever looks for work meanwhile goes by it as well; requests that come meanwhile are forgotten.
            ToTheSwitch = "until the switch is over",
            AtItsBeginning = "at the beginning of the switch",
        }
        /// To which CPU a task is moved that may no longer use the one on which it is.
        affinity_dest: AffinityDest = First, "where a task goes whose CPUs have changed" {
            First = "to the first that it may use",
            InTurn = "to those that it may use in turn, as the CPU that asks counts",
        }
    }
}
