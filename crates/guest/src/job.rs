//! What host and guest agree on: what is asked of the guest, and where its answers lie.
//!
//! Must not know: how either of them goes about it.

use serde::{Deserialize, Serialize};

/// Where the job lies in the guest.
pub const JOB_FILE: &str = "/job.json";

/// Where modules lie that the guest loads before anything else, in the order of their names.
pub const MODULES_FOLDER: &str = "/modules";

/// What a guest is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The program and its arguments.
    pub workload: Vec<String>,
    /// The root seed of the workload's own randomness.
    pub seed: u64,
    /// When to stop a workload that has not ended by itself, ns.
    pub duration_ns: Option<u64>,
    /// The clock of the trace, by its name in `trace_clock`.
    pub trace_clock: String,
    /// The buffer of each CPU, KiB.
    pub buffer_kb: u32,
    /// Probes of what the scheduler decides by, not only its events.
    pub probes: bool,
    /// How long the guest rests before recording begins, ns: what a kernel does after its start is over by then.
    pub settle_ns: u64,
    /// A timer that bounds how long one CPU may run before the others, ns; none where CPUs run at the same time.
    pub slice_ns: Option<u64>,
    /// Wait until the first process has forgotten whom it woke: idle time passes at once.
    pub forgets_wakees: bool,
    /// Files of the kernel's that are written before anything is recorded, and what into each.
    pub settings: Vec<(String, String)>,
}

/// The guest's state, in the shared memory's first bytes.
///
/// The layout: [`DONE`] once all is there; the archive's length, 8 bytes; how far the guest is, 4 bytes; and from
/// [`ARCHIVE_AT`] on the archive.
pub const DONE: &[u8; 8] = b"FAIRLAB1";

/// In place of [`DONE`] when the guest gives up: the archive is a text that says why.
pub const FAILED: &[u8; 8] = b"FAIRLAB0";

/// Where the length of the archive stands.
pub const LENGTH_AT: usize = 8;

/// Where the number of the guest's [`Stage`] stands.
pub const STAGE_AT: usize = 16;

/// Where the archive begins.
pub const ARCHIVE_AT: usize = 4096;

/// How far a guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Stage {
    /// Its kernel has not started the first process.
    Kernel = 0,
    /// It prepares.
    Started = 1,
    /// The workload runs.
    Workload = 2,
    /// The workload has ended, and its results are brought out.
    Results = 3,
}

impl Stage {
    /// A number that a guest left.
    pub fn of(number: u32) -> Stage {
        match number {
            0 => Stage::Kernel,
            1 => Stage::Started,
            2 => Stage::Workload,
            _ => Stage::Results,
        }
    }

    /// What a guest was doing, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Stage::Kernel => "while the kernel started",
            Stage::Started => "while recording was prepared",
            Stage::Workload => "while the workload ran",
            Stage::Results => "while results were brought out",
        }
    }
}
