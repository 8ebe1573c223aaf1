//! Events to answers.
//!
//! Each analysis is a [`Sink`](fairlab_event::Sink). It takes the events of any kernel, modelled or real, in the order in
//! which they happened. It keeps only what it knows about tasks and CPUs, and gives its answer at the end. It declares the
//! events that it [needs](Needs); when a trace lacks them, the answer says so.
//!
//! Must not know: files and their formats, how a scheduler decides, how answers reach a user.

pub mod balancing;
pub mod behaviour;
pub mod blame;
mod bucket_counts;
pub mod by_name;
pub mod causes;
mod census;
pub mod clock_skew;
mod columns;
pub mod counts;
mod depth;
pub mod explain;
pub mod histogram;
mod idleness;
pub mod lanes;
pub mod latency;
mod membership;
pub mod metrics;
mod named;
mod needs;
mod pid_map;
pub mod selector;
pub mod statistics;
pub mod summary;
pub mod task_selector;
#[cfg(test)]
mod testbed;
mod throttling;
pub mod timehist;
pub mod timeline;
mod tracker;
mod wakeup_waits;
pub mod watched;

pub use census::Census;
pub use needs::{MissingEvents, Needs};
pub use tracker::begins_a_trace;
pub use wakeup_waits::{WaitFollower, WaitOver};
