//! When things happen.
//!
//! Virtual time, machines with what their kernel work costs, workload programs, and the loop that drives the pure
//! scheduler core: it applies what the core decides, charges the cost, and lets time pass. One run is a pure function
//! of kernel × machine × workload × seed.
//!
//! Must not know: files, real clocks, the environment, what an analysis computes.

pub mod engine;
pub mod machine;
pub mod rng;
pub mod workload;

pub use engine::{Counters, Engine};
pub use machine::Machine;
