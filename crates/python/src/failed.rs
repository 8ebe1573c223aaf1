//! What Python raises: bad use and input as `fairlab.Error`, with the words that the program prints.
//!
//! Must not know: what failed.

use fairlab_lab::LabError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pyo3::create_exception!(
    fairlab,
    Error,
    PyValueError,
    "Bad use or input: what is wrong, where, and what to do, in the words that the program prints."
);

/// Why a call has no answer.
#[derive(Debug)]
pub enum CallError {
    /// Bad use or input.
    Lab(LabError),
    /// What Python raised meanwhile.
    Python(PyErr),
}

impl From<LabError> for CallError {
    fn from(error: LabError) -> CallError {
        CallError::Lab(error)
    }
}

impl From<PyErr> for CallError {
    fn from(error: PyErr) -> CallError {
        CallError::Python(error)
    }
}

impl From<CallError> for PyErr {
    fn from(failed: CallError) -> PyErr {
        match failed {
            CallError::Lab(error) => Error::new_err(error.to_string()),
            CallError::Python(error) => error,
        }
    }
}
