//! Bisection: which commit of the log changed a metric.
//!
//! It walks the log as `git bisect` walks commits, but each kernel is judged by as many runs as it takes to be sure, and
//! some kernels on the way are judged first, so that a metric that goes there and back is noticed.
//!
//! Must not know: how an answer looks.

mod answer;
mod judge;
mod question;
mod walk;

pub use answer::{Bisection, Crossing, Judged, State};
pub use question::{Claim, Question};
pub use walk::bisect;

pub(crate) use judge::values as values_of;

use fairlab_kernel::Generation;

use crate::trials::Setting;

/// What is looked for, and where.
#[derive(Clone, Debug)]
pub struct BisectSpec {
    /// A kernel on which all is well.
    pub good: Generation,
    /// A kernel on which it is not.
    pub bad: Generation,
    /// What is asked of each kernel.
    pub question: Question,
    /// Machine, workload, duration, first seed.
    pub setting: Setting,
    /// How often the answer may be wrong.
    pub error: f64,
    /// The most runs that one kernel gets.
    pub runs_max: usize,
}
