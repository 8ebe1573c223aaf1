//! When things happen.
//!
//! Virtual time, machines with the costs of their kernel work, workload programs, and the loop that drives a scheduler. The
//! loop lets the scheduler do what is due, charges the cost, and lets time pass. A run is a pure function of kernel × machine
//! × workload × seed.
//!
//! Must not know: files, real clocks, the environment, what an analysis computes.

pub mod engine;
pub mod inspect;
pub mod machine;
mod model;
pub mod rng;
pub mod scheduler_core;
pub mod workload;

pub use engine::{Engine, EngineCounters};
pub use inspect::Inspect;
pub use machine::Machine;
pub use model::{Model, ModelMessage};
pub use scheduler_core::SchedulerCore;
