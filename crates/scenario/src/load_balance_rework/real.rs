//! What real kernels did: figures of recordings under a virtual machine whose clock counts instructions.
//!
//! Must not know: what the model does.

use fairlab_kernel::balance::MigrationType::{self, Load, Task, Util};
use fairlab_kernel::schedstat::CpuIdleType::{self, Idle, NewlyIdle};

use crate::schbench_table::SchbenchTable;

/// A recorded kernel, and the modelled one that stands for it.
pub(super) struct Real {
    /// The release that was recorded.
    pub release: &'static str,
    pub kernel: &'static str,
    /// The recorded v5.2.1 took its clock for good enough to have high-resolution timers and to stop ticks.
    pub machine: &'static str,
    pub cpus: u32,
    /// schbench's table.
    pub table: SchbenchTable,
    /// The share of workers' wakeups that waited longer than 2 ms: with 16 CPUs counted in a traced window of 5.0 s, with 8
    /// the most that the table allows.
    pub stacked: Option<f64>,
    /// How long those waited, µs.
    pub slice_us: Option<f64>,
    /// Passes over queues in 5.0 s: for what the CPU balances, level, measure, tries, tries that moved something.
    pub passes: &'static [(CpuIdleType, &'static str, MigrationType, u64, u64)],
}

/// The most that the table of 5.7.14 with 8 CPUs allows: what lies above its 75th percentile.
pub(super) const MOST_STACKED_8: f64 = 122.0 / 489.0;

const fn table(samples: u64, percentiles: [u64; 7], max: u64) -> SchbenchTable {
    SchbenchTable { runtime_s: 16, samples, percentiles, counts: [0; 7], max, min: None }
}

/// Every recorded run, one each; v5.2.1 has one measure only, which is load.
pub(super) const REAL: &[Real] = &[
    Real {
        release: "5.2.1",
        kernel: "v5.2",
        machine: "qemu16-hres",
        cpus: 16,
        table: table(979, [28, 40, 58, 75, 163, 205, 745], 744),
        stacked: Some(0.0),
        slice_us: None,
        passes: &[
            (NewlyIdle, "SMT", Load, 20, 1),
            (NewlyIdle, "MC", Load, 248, 23),
            (Idle, "SMT", Load, 7, 1),
            (Idle, "MC", Load, 52, 19),
        ],
    },
    Real {
        release: "5.7.14",
        kernel: "v5.7",
        machine: "qemu16",
        cpus: 16,
        table: table(980, [56, 76, 100, 12976, 13008, 13008, 21024], 21013),
        stacked: Some(34.0 / 352.0),
        slice_us: Some(12976.0),
        passes: &[
            (NewlyIdle, "SMT", Util, 38, 0),
            (NewlyIdle, "MC", Util, 146, 0),
            (NewlyIdle, "MC", Task, 81, 4),
            (Idle, "SMT", Util, 43, 0),
            (Idle, "MC", Util, 175, 0),
            (Idle, "MC", Task, 89, 40),
        ],
    },
    Real {
        release: "5.10 without the fix",
        kernel: "debian-5.10-16b0a7a1a0af",
        machine: "qemu16",
        cpus: 16,
        table: table(980, [39, 54, 68, 12976, 12976, 13008, 20960], 20989),
        stacked: None,
        slice_us: Some(12976.0),
        passes: &[
            (NewlyIdle, "SMT", Util, 36, 0),
            (NewlyIdle, "MC", Util, 152, 0),
            (NewlyIdle, "MC", Task, 83, 3),
            (Idle, "SMT", Util, 40, 0),
            (Idle, "MC", Util, 193, 2),
            (Idle, "MC", Task, 123, 61),
        ],
    },
    Real {
        release: "5.10",
        kernel: "debian-5.10",
        machine: "qemu16",
        cpus: 16,
        table: table(979, [51, 72, 87, 98, 137, 1015, 12976], 12982),
        stacked: None,
        slice_us: None,
        passes: &[
            (NewlyIdle, "SMT", Task, 76, 75),
            (NewlyIdle, "MC", Task, 51, 8),
            (Idle, "SMT", Task, 3, 3),
            (Idle, "MC", Task, 7, 1),
        ],
    },
    Real {
        release: "5.2.1",
        kernel: "v5.2",
        machine: "qemu8-hres",
        cpus: 8,
        table: table(490, [16, 21, 32, 35, 53, 56, 91], 91),
        stacked: Some(0.0),
        slice_us: None,
        passes: &[],
    },
    Real {
        release: "5.7.14",
        kernel: "v5.7",
        machine: "qemu8",
        cpus: 8,
        table: table(489, [33, 50, 13008, 13008, 15024, 15024, 15024], 15025),
        stacked: Some(MOST_STACKED_8),
        slice_us: Some(13008.0),
        passes: &[],
    },
    Real {
        release: "5.10 without the fix",
        kernel: "debian-5.10-16b0a7a1a0af",
        machine: "qemu8",
        cpus: 8,
        table: table(491, [26, 36, 13008, 13008, 15024, 15024, 15024], 15024),
        stacked: Some(121.0 / 491.0),
        slice_us: Some(13008.0),
        passes: &[],
    },
    Real {
        release: "5.10",
        kernel: "debian-5.10",
        machine: "qemu8",
        cpus: 8,
        table: table(491, [28, 37, 47, 47, 51, 54, 55], 55),
        stacked: None,
        slice_us: None,
        passes: &[],
    },
];
