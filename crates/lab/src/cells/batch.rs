//! Batches: cells as text that another process or machine can run.
//!
//! Must not know: how batches travel.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use fairlab_sim::Machine;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::runs::TrialBatch;
use crate::fidelity_cells::RecordingBatch;
use crate::oracle::OracleBatch;
use crate::sweep::SweepBatch;
use crate::{Kernel, LabError};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Some cells of one kind, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellBatch {
    /// The version of the program that made it: another one may give other results.
    fairlab: String,
    work: BatchWork,
}

/// Cells of each kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BatchWork {
    /// Of a sweep.
    Sweep(SweepBatch),
    /// Runs of a search.
    Trials(TrialBatch),
    /// Runs in which a model follows another kernel.
    Oracle(OracleBatch),
    /// Recordings that are held against the model of their kernel.
    Recordings(RecordingBatch),
}

impl CellBatch {
    /// A batch of this version.
    pub(crate) fn of(work: BatchWork) -> CellBatch {
        CellBatch { fairlab: VERSION.to_string(), work }
    }

    /// Runs the cells and gives their records; `None`: `stop` was set before the end.
    ///
    /// # Errors
    /// It was made by another version, a cell fails, or a file that it names is not there.
    pub fn run(&self, stop: &AtomicBool) -> Result<Option<Vec<Value>>, LabError> {
        if self.fairlab != VERSION {
            let problem = format!("cells of fairlab {} cannot be run by fairlab {VERSION}", self.fairlab);
            return Err(LabError::new(problem, "install one version everywhere"));
        }
        match &self.work {
            BatchWork::Sweep(batch) => batch.run(stop),
            BatchWork::Trials(batch) => batch.run(stop),
            BatchWork::Oracle(batch) => batch.run(stop),
            BatchWork::Recordings(batch) => batch.run(stop),
        }
    }
}

/// Kernels that are built from sources where cells of them run: their code has to be that of the host that gave the cells out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct BuiltKernels(Vec<BatchKernel>);

/// One of them, for a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchKernel {
    kernel: String,
    machine: usize,
    /// A hash of sources, configuration and compiler.
    key: String,
}

impl BuiltKernels {
    /// Notes a kernel that runs on the machine of that number, if it is built from sources.
    pub(crate) fn note(&mut self, kernel: &Kernel, number: usize, machine: &Machine) {
        let name = kernel.name();
        if self.0.iter().any(|known| known.kernel == name && known.machine == number) {
            return;
        }
        if let Some(key) = kernel.key(machine) {
            self.0.push(BatchKernel { kernel: name.to_string(), machine: number, key });
        }
    }

    /// Builds them here. `machine` gives a machine by its number.
    ///
    /// # Errors
    /// One cannot be built, or is other code here.
    pub(crate) fn build(
        &self,
        machine: &dyn Fn(usize) -> Result<Machine, LabError>,
        stop: &AtomicBool,
    ) -> Result<BTreeMap<&str, Kernel>, LabError> {
        let mut kernels = BTreeMap::<&str, Kernel>::new();
        for BatchKernel { kernel: name, machine: number, key } in &self.0 {
            let elsewhere = |error: LabError| {
                LabError::new(format!("on a host of the cluster: {}", error.problem), error.hint)
            };
            let kernel = match kernels.get(name.as_str()) {
                Some(kernel) => kernel.clone(),
                None => Kernel::parse(name).map_err(elsewhere)?,
            };
            let machine = machine(*number)?;
            kernel.prepare(&machine, &|_, _| {}, stop).map_err(elsewhere)?;
            let own = kernel.key(&machine).unwrap_or_default();
            if own != *key {
                return Err(LabError::new(
                    format!("{name} is other code on a host of the cluster: {own} instead of {key}"),
                    "sources, configuration and compiler have to be equal on every host",
                ));
            }
            kernels.insert(name, kernel);
        }
        Ok(kernels)
    }
}
