//! Rules by which a governor chooses frequencies.
//!
//! Must not know: commits and releases.

use crate::generation::rules::rules;

rules! {
    /// The rules of one kernel for frequencies.
    FrequencyRules, FrequencyEffect, "{point}: {rule}" {
        /// Where the room above the measured utilization is added when a frequency is chosen.
        headroom: Headroom = OnFrequency, "headroom" {
            /// A quarter of the highest frequency, before utilization is taken of it.
            OnFrequency = "a quarter more frequency than utilization asks for",
            /// A quarter of the utilization, which is then a part of the highest frequency.
            OnUtilization = "a quarter more utilization of the busiest CPU",
        }
        /// Where that room ends.
        headroom_end: HeadroomEnd = Nowhere, "end of headroom" {
            Nowhere = "a full CPU asks for a quarter more than the whole of it",
            /// So that where the scheduler does not know the frequency in force, it never asks for more than that.
            AtCapacity = "a full CPU asks for the whole of it",
        }
        /// What the whole of a CPU is taken to need where the scheduler does not know the frequency in force.
        reference: Reference = Current, "reference without invariance" {
            Current = "the frequency in force",
            QuarterAboveCurrent = "a quarter more than the frequency in force",
        }
        /// What a governor makes of the time that threads of the deadline class run.
        deadline_use: DeadlineUse = FillsCpu, "use by the deadline class" {
            /// Only whether the CPU is full with it.
            FillsCpu = "counts only where it fills the CPU",
            Counts = "counts as any other",
        }
        /// What a governor begins with when a task comes back from I/O.
        io_boost: IoBoost = LowestFrequency, "boost after I/O" {
            LowestFrequency = "with the lowest frequency",
            Eighth = "with an eighth of the CPU",
        }
        /// At which changes of utilization a governor is asked.
        governor_hook: GovernorHook = EveryQueueUpdate, "governor" {
            EveryQueueUpdate = "at each decay of a root queue, one by one",
            /// Where an entity's update has changed its root queue; after blocked averages once for the CPU.
            EntityUpdate = "after an entity's update, once after all blocked averages",
        }
    }
}
