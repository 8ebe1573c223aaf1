//! Why an experiment cannot be done.

use std::fmt;
use std::ops::Range;

use fairlab_event::Shown;

/// Bad use or input: one line that says what is wrong and where, and one clause that says what to do. Whoever shows it escapes what
/// a terminal would obey, as its `Display` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabError {
    /// What is wrong, and where.
    pub problem: String,
    /// What to do.
    pub hint: String,
    /// Lines that show it, such as the last of a console.
    pub lines: Vec<String>,
}

impl LabError {
    /// An error from its two parts.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> LabError {
        LabError { problem: problem.into(), hint: hint.into(), lines: Vec::new() }
    }

    /// The same, with lines below it that show more.
    pub fn with_lines(self, lines: Vec<String>) -> LabError {
        LabError { lines, ..self }
    }
}

/// The line of a text that a parser's complaint begins at, the first one being 1; 0 if it does not say where.
pub fn line_at(text: &str, span: Option<Range<usize>>) -> usize {
    span.map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1)
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", Shown(&self.problem), Shown(&self.hint))?;
        self.lines.iter().try_for_each(|line| write!(f, "\n{}", Shown(line)))
    }
}

impl std::error::Error for LabError {}

impl From<fairlab_kernel::generation::NameError> for LabError {
    fn from(error: fairlab_kernel::generation::NameError) -> LabError {
        LabError::new(error.problem, error.hint)
    }
}
