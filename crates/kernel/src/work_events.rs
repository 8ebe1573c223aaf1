//! What the scheduler itself is busy with, by kind: what a driver that charges for it tells among the events.
//!
//! Must not know: what each kind costs, who adds it up.

use crate::decision::reasons;

reasons! {
    /// A kind of the scheduler's own work.
    SchedulerWork {
        Search = "wakeups look for a CPU that is idle",
        Newidle = "CPUs about to idle look for tasks to pull",
        NewidleAgeing = "CPUs about to idle age the load of queues",
        Balance = "periodic and NOHZ balancing look for tasks to pull",
        Ageing = "periodic and NOHZ balancing age the load of idle CPUs' queues",
        Moves = "balancing moves tasks",
        Lines = "cache lines that CPUs share come from others: queues' locks, loads of groups",
    }
}

impl SchedulerWork {
    /// What is counted of each kind.
    pub const UNITS: &[(&str, &str)] = &[
        ("Search", "CPUs looked at"),
        ("Newidle", "CPUs looked at"),
        ("NewidleAgeing", "queues aged"),
        ("Balance", "CPUs looked at"),
        ("Ageing", "queues aged"),
        ("Moves", "tasks moved"),
        ("Lines", "stretches of waiting"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_unit() {
        let names = |table: &[(&'static str, &str)]| table.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(SchedulerWork::CLAUSES), names(SchedulerWork::UNITS));
    }
}
