//! Rules of the real-time class.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of the real-time class of one kernel.
    RtRules, RtEffect, "{point}: {rule}" {
        /// How long real-time tasks may run.
        rt_limit: RtLimit = EachPeriod, "real-time limit", "real-time tasks run {rule}" {
            EachPeriod = "0.95 s of each second on a CPU",
            None = "without limit",
        }
    }
}
