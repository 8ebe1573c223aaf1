//! Why an experiment cannot be done.

use std::fmt;

/// Bad use or input: one line that says what is wrong and where, and one clause that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabError {
    /// What is wrong, and where.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl LabError {
    /// An error from its two parts.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> LabError {
        LabError { problem: problem.into(), hint: hint.into() }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.hint)
    }
}

impl std::error::Error for LabError {}

impl From<fairlab_kernel::generation::NameError> for LabError {
    fn from(error: fairlab_kernel::generation::NameError) -> LabError {
        LabError { problem: error.problem, hint: error.hint }
    }
}
