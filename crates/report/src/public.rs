//! Public reports as files: a workload, a machine, kernels, and published results.
//!
//! A report is a TOML file. Each of its claims says how a metric differed between two kernels. Runs of both are compared, the
//! commit is searched for, and one judge says how far the claim is reproduced. No report has code.
//!
//! Must not know: any report, how a result reaches a user.

mod answer;
mod file;
mod judge;
mod page;
mod reproduce;

pub use answer::{ClaimAnswer, CommitAnswer, PartialReport, PublicAnswer, PublishedAnswer, ReportAnswer};
pub use file::{KEYS, PublicClaim, PublicReport, PublishedDifference, PublishedDirection, read, read_all};
pub use judge::{ClaimVerdict, ReproductionOutcome};
pub use reproduce::{ReproductionEffort, reproduce};
