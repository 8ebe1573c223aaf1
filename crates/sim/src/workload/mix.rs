//! Several workloads that run side by side, each in its place.
//!
//! Must not know: what the workloads do, files.

pub mod place;
