//! Fairlab as a Python module.

use pyo3::prelude::*;

/// The native half of the package `fairlab`.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
