//! Fairlab as a Python module: the native half of the package `fairlab`.
//!
//! Functions take words and give answers as JSON, with the schemas that the program's have, or tables by Arrow's C interface.
//! Classes, types and documentation are in `python/fairlab`.
//!
//! Must not know: how answers look, where they are plotted, what carries cells to other machines.

#![expect(clippy::needless_pass_by_value, reason = "what a Python function is given, it owns")]

mod crew;
mod events;
mod experiments;
mod failed;
mod fidelity;
mod interruptible;
mod request;
mod sweeps;
mod table;
mod traces;

use pyo3::prelude::*;

/// The native half of the package `fairlab`.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fairlab_boot::carry_guests(fairlab_boot::Guests {
        amd64: include_bytes!(concat!(env!("OUT_DIR"), "/fairlab-guest")),
        arm64: include_bytes!(concat!(env!("OUT_DIR"), "/fairlab-guest-arm64")),
    });
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<failed::Error>())?;
    module.add_class::<table::Table>()?;
    module.add_class::<sweeps::Sweep>()?;
    module.add_function(wrap_pyfunction!(experiments::run, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::compare, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::compare_schedstat, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::bisect, module)?)?;
    module.add_function(wrap_pyfunction!(fidelity::fidelity, module)?)?;
    module.add_function(wrap_pyfunction!(fidelity::oracle, module)?)?;
    module.add_function(wrap_pyfunction!(sweeps::query, module)?)?;
    module.add_function(wrap_pyfunction!(sweeps::run_cells, module)?)?;
    module.add_function(wrap_pyfunction!(events::read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(traces::summary, module)?)?;
    module.add_function(wrap_pyfunction!(traces::latency, module)?)?;
    module.add_function(wrap_pyfunction!(traces::explain, module)?)?;
    module.add_function(wrap_pyfunction!(traces::blame, module)?)
}
