//! Every commit of the scheduler against a catalogue of workloads: which commit changed which of them, and how much.
//!
//! 1. **Screen.** One run of each kernel in each case. Neighbours with equal digests run equally, event by event; they are one segment.
//! 2. **Judge.** Neighbouring segments are compared, with more and more runs, until each difference is sure or small. All cases, metrics
//!    and steps are one family.
//! 3. **Confirm.** Each difference is measured anew, with seeds that took no part in finding it.
//!
//! Must not know: how a run is made, how an answer is printed.

pub mod answer;
mod case;
mod case_runs;
mod hypothesis;
mod line;
mod run_maker;
#[cfg(test)]
mod tests;
mod watch;

pub use case::{CASE_KEYS, Catalogue, SkippedCase, WatchCase};
pub use case_runs::{FRESH_SEEDS, Screening};
pub use line::{WatchedLine, listed};
pub use run_maker::WatchCrew;
pub use watch::{WatchEffort, WatchEstimate, WatchSpec, watch};
