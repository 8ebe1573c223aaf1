//! What the kernel would decide.
//!
//! The Linux fair scheduler as a pure state machine: runqueues, entities and the rules of `kernel/sched`, in the kernel's
//! own words and integers. Which rules hold is data: a [`Generation`], folded from a dated log of upstream commits.
//!
//! *Deciding* and *applying* are separate. A decision takes `&self` and returns what would be done and why
//! ([`decision`]); applying it is another call. Two drivers use that: the engine applies what was decided, the verifier
//! compares it with what a real kernel did and applies that instead.
//!
//! Must not know: clocks (time is an argument), I/O, randomness, floating-point numbers, workloads, costs.
#![deny(clippy::float_arithmetic)]

#[cfg(test)]
mod ablation;
mod all_cpus;
pub mod balance;
mod cfs_rq;
mod cfs_rqs;
pub mod core;
pub mod cpufreq;
mod cpumask;
pub mod decision;
mod decision_events;
pub mod domain;
pub mod energy;
mod entity;
mod fair;
mod fair_server;
pub mod generation;
mod group;
mod ids;
pub mod invariant;
pub mod open_loop;
pub mod pelt;
mod probe;
mod process;
#[cfg(test)]
mod random_operations;
mod rq;
mod rt;
pub mod schedstat;
mod scheduler;
pub mod select;
mod state_overrides;
pub mod struct_members;
mod sysctl;
mod table;
mod task;
#[cfg(test)]
mod testbed;
pub mod topology;
mod trace;
mod tracepoint;
mod vruntime;
pub mod weight;
pub mod work_events;

pub use crate::core::{EnqueueFlags, KernelContext, Scheduler, WakeFlags, WakeKind};
pub use all_cpus::{LineUse, SharedLine};
pub use cpumask::{CpuMask, MAX_CPUS};
pub use fair::bandwidth::{BandwidthRules, CfsLimit, GroupTimer, GroupTimerKind};
pub use generation::Generation;
pub use group::GroupId;
pub use task::{Policy, Task, TaskId, TaskSpec};
pub use topology::Topology;
pub use vruntime::Vruntime;
