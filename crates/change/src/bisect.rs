//! Bisection: which commit of the log changed a metric.
//!
//! It first compares the two kernels, as a comparison does; without a difference there is nothing to find. Then it walks the
//! log as `git bisect` walks commits, with as many runs per kernel as a sure answer needs. Some kernels in between are judged
//! first, to notice a metric that changes back. Only a commit that makes most of the difference is named.
//!
//! Must not know: how an answer looks.

mod answer;
mod ends;
mod json;
mod judge;
mod question;
mod walk;

pub use answer::{Bisection, Crossing, JudgedKernel, KernelState, SearchFinding, SkippedCommit};
pub use json::{BisectAnswer, CandidateCommit, CrossingAnswer, EndsAnswer, JudgedAnswer, SkippedAnswer};
pub use question::{BisectQuestion, MetricClaim, amount, misfit};
pub use walk::{NAME, bisect};

pub(crate) use answer::mean_ends;
pub(crate) use ends::{is_sure, looks as looks_at_ends, verdict_of};
pub(crate) use judge::{KernelCriterion, LineTests, looks, values as values_of, values_in};

use fairlab_lab::{Kernel, LabError, RunSetting};

/// What is looked for, and where.
#[derive(Clone, Debug)]
pub struct BisectSpec {
    /// A kernel on which all is well.
    pub good: Kernel,
    /// A kernel on which it is not.
    pub bad: Kernel,
    /// What is asked of each kernel.
    pub question: BisectQuestion,
    /// Machine, workload, duration, first seed.
    pub setting: RunSetting,
    /// The share of the good kernel's value below which a difference is of no interest.
    pub margin: f64,
    /// How often the answer may be wrong.
    pub error: f64,
    /// The most runs of a kernel.
    pub runs_max: usize,
}

/// Fewer runs tell nothing of how they scatter.
const RUNS_MIN: u64 = 4;

/// The most runs of a kernel, if these are enough for a search.
///
/// # Errors
/// They are not.
pub fn runs_enough(runs: u64) -> Result<usize, LabError> {
    if runs < RUNS_MIN {
        let problem = format!("{runs} runs do not tell how runs scatter");
        return Err(LabError::new(problem, format!("give --runs {RUNS_MIN} or more")));
    }
    Ok(usize::try_from(runs).unwrap_or(usize::MAX))
}
