//! How well models agree with real kernels: with recordings, and with the code of releases.
//!
//! Must not know: how answers look, who runs cells.

use std::path::PathBuf;

use fairlab_change::releases::{Extent, NAMED_RUN, OracleTable, survey};
use fairlab_lab::LabError;
use fairlab_lab::fidelity_cells::measure;
use fairlab_lab::provenance::Origin;
use pyo3::prelude::*;
use serde_json::json;

use crate::crew::by_crew;
use crate::failed::CallError;
use crate::request::provenance;

/// Where what is done is kept, and who does it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct FidelityRequest {
    out: Option<PathBuf>,
    jobs: Option<usize>,
    crew: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    /// The words of the command line that asks for the same.
    words: Vec<String>,
}

/// Holds every recording below a folder against the model of its kernel: the answer as JSON, and a line for each that cannot be read.
#[pyfunction]
pub fn fidelity(
    py: Python<'_>,
    folder: PathBuf,
    at: FidelityRequest,
) -> Result<(String, Vec<String>), CallError> {
    let FidelityRequest { out, jobs, crew, progress, words } = at;
    by_crew(py, jobs, crew, progress, move |place, on_progress, stop| {
        let found = measure(&folder, out.as_deref(), place, on_progress, stop)?.ok_or_else(stopped)?;
        let told = found.unreadable().map(|(name, error)| format!("{name}: {error}")).collect();
        Ok((provenance(words).of_fidelity(&found).within(found.to_json()).to_string(), told))
    })
}

/// Follows the code of releases by their models, call by call.
#[pyfunction]
pub fn oracle(
    py: Python<'_>,
    only: String,
    seeds: u64,
    cases: u64,
    at: FidelityRequest,
) -> Result<String, CallError> {
    let FidelityRequest { out, jobs, crew, progress, words } = at;
    by_crew(py, jobs, crew, progress, move |place, on_progress, stop| {
        let extent = Extent { seeds, cases, duration: NAMED_RUN };
        let all = survey(&[only], extent, out.as_deref(), place, on_progress, stop)?.ok_or_else(stopped)?;
        let told = provenance(words).by(Origin::Modelled).by(Origin::Driven);
        let told = all.iter().fold(told, |sum, one| sum.kernel(&one.against).kernel(&one.kernel));
        Ok(told.within(json!(OracleTable::new(extent, &all))).to_string())
    })
}

/// Nobody reads it: Python raises what its handler of the signal did.
fn stopped() -> LabError {
    LabError::new("it was stopped", "the same call goes on where out= is given")
}
