//! What was found: each cause with its counts and times, as it goes from process to process and into JSON.
//!
//! Must not know: how causes were found.

use serde::{Deserialize, Serialize};

use super::cause::{CauseDecision, StretchEnd, WaitBehind, WaitKind, WakeupPlacement};

/// All waits of a run or a trace, by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitCauses {
    /// For how long it was looked.
    pub observed_ns: u64,
    /// Waits that ended, or that went on at the end.
    pub waits: u64,
    /// Waits across a hole in the trace, which are not measured.
    pub crossed: u64,
    /// The waits by their length.
    pub lengths: Vec<LengthCount>,
    /// Their parts, in order of the cause.
    pub parts: Vec<CausePart>,
    /// What wakeups chose.
    pub placements: Vec<PlacementTally>,
    /// What balancing tried.
    pub balancing: Vec<BalanceTries>,
    /// What the scheduler itself was busy with, where its kernel tells.
    #[serde(default)]
    pub work: Vec<WorkDone>,
}

/// How many waits of a kind lasted from `2^log2` ns to below twice that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LengthCount {
    /// The name of the task that waited.
    #[serde(default)]
    pub waiter: String,
    /// Why they began.
    pub wait: WaitKind,
    /// The logarithm.
    pub log2: u8,
    /// How many.
    pub waits: u64,
}

/// All parts of waits that have one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CausePart {
    /// The name of the task that waited.
    pub waiter: String,
    /// Why the wait began.
    pub wait: WaitKind,
    /// What had the CPU.
    pub behind: WaitBehind,
    /// Its name; empty where no task had it.
    pub runner: String,
    /// The decision that left the waiter waiting.
    pub decision: CauseDecision,
    /// That decision's reason, as the kernel's model calls it; empty where it is not known.
    pub reason: String,
    /// What ended it.
    pub ended: StretchEnd,
    /// The length of the whole wait: from `2^length_log2` ns to below twice that.
    pub length_log2: u8,
    /// How many such parts there were.
    pub count: u64,
    /// Their time.
    pub time_ns: u64,
    /// How much of that another CPU was idle.
    pub beside_idle_ns: u64,
}

/// Wakeups by what they chose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementTally {
    /// What kind of CPU.
    pub placed: WakeupPlacement,
    /// Why, as the kernel's model calls it; empty where it is not known.
    pub reason: String,
    /// How many wakeups.
    pub count: u64,
    /// How long they waited in all.
    pub wait_ns: u64,
}

/// Tries of balancing by what came of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceTries {
    /// What the CPU balanced as: `Busy`, `Idle`, `NewlyIdle`.
    pub idle: String,
    /// What came of it, as the kernel's model calls it.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// How many tasks were moved.
    pub moved: u64,
}

/// Work of the scheduler itself, of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkDone {
    /// Which, as the kernel's model calls it.
    pub work: String,
    /// How often it was done.
    pub count: u64,
    /// CPUs looked at, queues aged, tasks moved: what the kind counts.
    pub units: u64,
    /// How long that took, at full speed.
    pub time_ns: u64,
}
