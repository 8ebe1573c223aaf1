//! The first process of a booted kernel, and what it and its host agree on.
//!
//! A guest mounts what it needs, records the scheduler while a workload runs, and leaves everything in memory that it
//! shares with its host. `job`, `archive` and `results` are the common language; the host uses nothing else of this.
//!
//! Must not know: how the host starts a machine, what becomes of a recording.

pub mod archive;
pub mod btf;
mod fetch;
mod files;
pub mod guest;
pub mod job;
mod machine;
mod mapping;
mod probes;
pub mod results;
mod settings;
mod slice;
mod snapshot;
mod symbols;
mod tracing;
mod wakee_flips;
mod workload;

pub use workload::programs;
