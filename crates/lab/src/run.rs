//! One run: kernel × machine × workload × seed → metrics, the program's own output, a digest, and if wanted the trace.
//!
//! `course.rs` is how it goes on an engine, whatever that drives.

mod course;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use fairlab_analysis::by_name::NamesWanted;
use fairlab_analysis::causes::WaitCauses;
use fairlab_analysis::counts::RunCounts;
use fairlab_analysis::selector::TimeRange;
use fairlab_analysis::task_selector::TaskSelector;
use fairlab_event::{Cpu, Ns, Sink};
use fairlab_sim::{Engine, Machine};
use serde::{Deserialize, Deserializer, Serialize};

use crate::initial_lists::InitialLists;
use crate::kernel::origin_of;
use crate::provenance::Origin;
use crate::warm_up::settling;
use crate::{Kernel, LabError, workloads};
pub(crate) use course::{add_work, carry_out, reported};

/// What to run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The side whose run it is; that of its kernel's name, unless it was given another.
    pub side: String,
    /// The kernel, of any kind.
    pub kernel: Kernel,
    /// The machine.
    pub machine: Machine,
    /// The workload's name and its own options.
    pub workload: Vec<String>,
    /// The root seed of all randomness.
    pub seed: u64,
    /// The CPU on which the workload's first thread starts. Without it, or if the machine has no such CPU, the machine's chance
    /// gives one. Modelled kernels know of it.
    pub first_cpu: Option<Cpu>,
    /// How long the workload settles from when all its threads are at work; without, as long as the machine takes
    /// ([`settling`]); zero: all is measured from the start.
    pub warmup: Option<Ns>,
    /// When to stop, in virtual time from when it has settled.
    pub duration: Ns,
    /// Where the trace goes, if it is wanted; the name's end tells the format.
    pub trace: Option<PathBuf>,
    /// Whether the trace holds what a kernel with the recorder's probes would print; the run itself does not change.
    pub probes: bool,
    /// Whether the trace holds what a modelled kernel decides, with its reasons; the run itself does not change.
    pub decisions: bool,
    /// Which numbers by name it measures, beside the machine's.
    pub by_name: NamesWanted,
    /// What ends then is measured, on the trace's clock, as far as the run has settled. The run itself stays as it is.
    pub time: TimeRange,
    /// Whether all waits are added up by cause; the run itself does not change.
    pub causes: bool,
}

impl RunSpec {
    /// A run from the machine's own beginning, without a trace.
    pub fn new(kernel: Kernel, machine: Machine, workload: Vec<String>, seed: u64, duration: Ns) -> RunSpec {
        RunSpec {
            side: kernel.name().to_string(),
            kernel,
            machine,
            workload,
            seed,
            first_cpu: None,
            warmup: None,
            duration,
            trace: None,
            probes: false,
            decisions: false,
            by_name: NamesWanted::default(),
            time: TimeRange::default(),
            causes: false,
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The side whose run it is, where that is not called as its kernel is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    /// The kernel's name.
    pub kernel: String,
    /// The machine's name.
    pub machine: String,
    /// The workload's command line.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// Digest of every event: equal for equal runs on any machine.
    pub digest: String,
    /// When the workload started, on the trace's clock; unknown of real kernels.
    pub begin_ns: Option<u64>,
    /// When it had settled, on the trace's clock: all results were measured from then on.
    pub settled_ns: Option<u64>,
    /// How far the rate of work in the first fifth of that lies above the rate after it, as a share of the latter.
    pub early_excess: Option<f64>,
    /// Virtual time that was measured.
    pub simulated_ns: u64,
    /// Real time that it took.
    pub wall_ns: u64,
    /// Context switches.
    pub switches: u64,
    /// Every metric by name.
    #[serde(serialize_with = "as_map", deserialize_with = "of_map")]
    pub metrics: Vec<(String, f64)>,
    /// All waits by cause, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<WaitCauses>,
    /// The metrics as counters and histograms, which can be added to those of other runs.
    #[serde(skip)]
    pub counts: RunCounts,
    /// What the real program would have printed.
    #[serde(skip)]
    pub output: String,
    /// What the trace does not carry, a line each.
    #[serde(skip)]
    pub trace_losses: String,
    /// `/proc/schedstat` at the end.
    #[serde(skip)]
    pub schedstat: String,
    /// `schedstat` with the counters of searches for idle CPUs at the end of CPUs' lines.
    #[serde(skip)]
    pub schedstat_searches: String,
    /// The control groups and the tasks at the beginning, as the recorder lists them.
    #[serde(skip)]
    pub beginning: InitialLists,
}

impl RunResult {
    /// What the side is called whose run it is.
    pub fn side(&self) -> &str {
        self.side.as_deref().unwrap_or(&self.kernel)
    }

    /// Whether its seed decides everything; on a real kernel chance has its part.
    pub fn has_seed(&self) -> bool {
        self.origin().has_seeds()
    }

    /// How it came about.
    pub fn origin(&self) -> Origin {
        origin_of(&self.kernel)
    }

    /// The names of workloads of a mix that metrics by name are of.
    pub fn workloads(&self) -> Vec<String> {
        let name = |who: &TaskSelector| match who {
            TaskSelector::Workload(name) => Some(name.clone()),
            _ => None,
        };
        self.counts.by_name.keys().filter_map(name).collect()
    }

    /// The metric called `name`, if it was measured.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
    }
}

pub(crate) fn as_map<S: serde::Serializer>(
    metrics: &[(String, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(metrics.iter().map(|(name, value)| (name, value)))
}

/// Metrics in the order in which they stand; one without a number was not measured.
fn of_map<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Vec<(String, f64)>, D::Error> {
    let map = serde_json::Map::deserialize(deserializer)?;
    Ok(map.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect())
}

/// Runs a spec on the model with a sink of its own for the events from the workload's start on. Gives `None`, and leaves no trace, when `stop` was set before the end.
///
/// # Errors
/// The kernel is not modelled, the workload's options are wrong, or the trace cannot be written.
pub fn run_watched(
    spec: &RunSpec,
    stop: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<Option<RunResult>, LabError> {
    let rules = spec.kernel.rules("a sink of events")?.clone();
    let mut engine = Engine::new(rules, spec.machine.clone(), spec.seed);
    let warmup = spec.warmup.unwrap_or_else(|| settling(engine.kernel()));
    let workload = workloads::build(&spec.workload)?;
    let Some(result) = carry_out(spec, workload, &mut engine, warmup, &InitialLists::of, sink, stop)? else {
        return Ok(None);
    };
    let schedstat = |searches| engine.kernel().schedstat(engine.now(), searches);
    Ok(Some(RunResult { schedstat: schedstat(false), schedstat_searches: schedstat(true), ..result }))
}
