//! Experiments.
//!
//! Puts kernels, machines, workloads and analyses together: one run, many runs on all cores, a comparison, a folder of
//! results. This is the first room that touches files, the clock and threads.
//!
//! Must not know: how a result reaches a user; nothing here prints.

pub mod attribute;
pub mod beginning;
mod beside;
pub mod bisect;
pub mod boot;
mod compare;
mod error;
mod experiment;
pub mod fidelity;
mod folder;
pub mod host;
mod journal;
pub mod machines;
pub mod merge;
mod output_file;
pub mod provenance;
pub mod record;
mod replay;
mod run;
pub mod scenario;
pub mod schedstat;
pub mod settling;
pub mod shell;
pub mod sweep;
mod temporary;
mod trace_file;
mod tracks;
mod trials;
pub mod verify;
mod way;
mod workers;
pub mod workloads;

pub use beside::{read_recorded, system_beside};
pub use compare::{
    CompareOptions, Comparison, ComparisonRow, Counted, Pairing, Record, Side, compare, compare_sides,
    count_trace, live_sides, read_side,
};
pub use error::LabError;
pub use experiment::{Experiment, Progress, RealKernel, Stopped, run_all};
pub use folder::{RunFolder, chance_spec, partial_runs};
pub use output_file::{OutputFile, write_whole};
pub use run::{Onlooker, RunResult, RunSpec, run, run_watched};
pub use trace_file::TraceFile;
pub use trials::{Setting, Trials};
