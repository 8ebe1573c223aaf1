//! Experiments.
//!
//! Puts kernels, machines, workloads and analyses together: one run, many runs on all cores, a comparison, a folder of
//! results. This is the first room that touches files, the clock and threads.
//!
//! Must not know: how a result reaches a user; nothing here prints.

pub mod answer;
pub mod booted;
pub mod cells;
mod compare;
pub mod counters;
mod experiment;
pub mod fidelity_cells;
mod folder;
pub mod guest_files;
pub mod host;
pub mod hosts;
pub mod initial_lists;
pub mod kernel;
pub mod merge;
pub mod names;
pub mod oracle;
pub mod provenance;
pub mod read_trace;
mod replay;
mod run;
mod run_store;
mod setting;
pub mod sides;
pub mod source;
pub mod sweep;
pub mod warm_up;
pub mod workloads;

use fairlab_files::{temporary, workers};

pub use compare::{
    CompareOptions, Comparison, ComparisonRow, Pairing, RunRecord, RunSide, TraceCounting, TraceCounts,
    compare, compare_sides, count_tasks, count_trace, decide_family,
};
pub use experiment::{
    Caller, Experiment, ExperimentResults, ExperimentRuns, ExperimentSide, ExperimentStopped, RUNS, RUNS_MAX,
    run_all, run_missing,
};
pub use fairlab_files::{LabError, OutputFile, OutputFolder, Progress, shell, write_whole};
pub use fairlab_machines as machines;
pub use fairlab_recorder as record;
pub use folder::{RunFolder, chance_spec, partial_runs};
pub use kernel::{Kernel, run};
pub use run::{RunResult, RunSpec, run_watched};
pub use run_store::{AskedRun, LookedRun, RunCounting, RunStore};
pub use setting::{DEFAULT_MACHINE, RunSetting, SettingWords};
pub use sides::{LookEnd, LookedAt, RunsLooker, Sets, Sides, Wanted, sides_of};
