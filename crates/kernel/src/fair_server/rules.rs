//! Rules of the fair server.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of the fair server of one kernel. Whether there is one, its runtime says.
    ServerRules, ServerEffect, "{point}: {rule}" {
        /// When a server stops that has nothing more to watch over.
        stop: StopServer = WhenEmpty, "fair server stops" {
            WhenEmpty = "when the last fair task leaves its CPU",
            AtPick = "when its turn comes and there is no fair task",
            /// Or when its turn comes and there is none.
            AfterIdling = "when its CPU has idled through its runtime, at the end of the next period",
        }
        /// What becomes of a server's runtime while its CPU idles.
        idle_time: IdleCharge = WhenItEnds, "fair server on an idle CPU" {
            WhenItEnds = "idle time is taken off its runtime when that ends",
            AsRun = "idle time counts as if fair tasks had run",
        }
        /// How a server starts that once took over from who let its tasks starve.
        start: ServerStart = AsItRan, "fair server starts" {
            /// Until it has run out of time beside tasks that run by themselves.
            AsItRan = "at once, if it ran when it stopped",
            Deferred = "as late as may be, in a new period in any case",
        }
        /// Whether a queued server is one of its CPU's tasks.
        count: CountServer = AsTask, "fair server among tasks" {
            AsTask = "a queued one counts as a task",
            NotAtAll = "it does not count",
        }
    }
}
