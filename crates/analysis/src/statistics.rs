//! Comparing runs: the effect first, then how sure it is.
//!
//! Every number that goes in here is one run's: its p99, its maximum, its throughput. Samples within a run depend on each
//! other, so they are never pooled. Runs of the model that share a seed are compared in pairs ([`paired`]); runs of real
//! kernels are not ([`unpaired`]). No method here resamples: with three runs a percentile bootstrap cries wolf in one
//! comparison of four. Where a side's runs are one course of events, nothing is concluded ([`is_one_course`]).
//!
//! Must not know: what the metrics mean, where the runs come from, how tables look.

mod bound;
mod course;
mod describe;
mod difference;
mod estimate;
mod family;
mod looks;
mod modes;
mod planning;
#[cfg(test)]
mod random;
mod rank;
pub mod rivals;
pub mod sequential;
mod student;

pub use bound::{BoundSide, BoundStanding, BoundedChange, ChangeBound, bounded};
pub use course::is_one_course;
pub use describe::{harmonic_mean, mean, median, standard_deviation};
pub use difference::{MeanDifference, paired_difference, unpaired_difference};
pub use estimate::{BetterDirection, Estimate, IntervalMethod, MetricVerdict, PER_WORK, judge};
pub use family::{FALSE_DISCOVERY_RATE, adjusted};
pub use looks::{LookLevels, LookPlan};
pub use modes::{RunMode, RunModes, two_modes};
pub use planning::{MoreRuns, chance_to_show, more_runs};
pub use rank::{rank_sum_p, shift_of_ranks};
pub use student::{mean_interval, paired, paired_at_look, paired_seeds_at_look, unpaired, unpaired_at_look};

/// Differences smaller than this share of the baseline are of no interest, unless the user says otherwise.
pub const MARGIN: f64 = 0.01;
