//! When a commit was made, and who says so.
//!
//! Must not know: what the commit changes.

use std::fmt;

/// Who says when a commit was made, and where it stands in its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatedBy {
    /// The mail of the commit itself, or the log of a push.
    Git,
    /// A public page that names its date, its series or its neighbours.
    Page,
    /// Memory: date and place are uncertain.
    Memory,
}

impl DatedBy {
    /// The word in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            DatedBy::Git => "git",
            DatedBy::Page => "page",
            DatedBy::Memory => "memory",
        }
    }
}

/// The day on which a maintainer committed a change, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// `2019-10-21`, `2019-10` or `2019`; `<=2019-10-21` where only a later day is known by which it was there.
    pub text: &'static str,
    /// Who says so.
    pub by: DatedBy,
}

impl Date {
    /// Whether day and place in the release are from memory.
    pub fn is_uncertain(self) -> bool {
        self.by == DatedBy::Memory
    }

    /// Whether it was before `other`, as far as both are known: a day is not before its own month.
    pub fn is_before(self, other: Date) -> bool {
        let latest = self.text.trim_start_matches("<=");
        !other.text.starts_with("<=") && latest < other.text && !other.text.starts_with(latest)
    }
}

/// The date; a question mark behind it says that it is uncertain.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_uncertain() { "?" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_before_another_only_if_every_day_that_it_may_mean_is() {
        let is_before = |one, other| {
            let [one, other] = [one, other].map(|text| Date { text, by: DatedBy::Git });
            one.is_before(other)
        };
        assert!(is_before("2019-10-21", "2019-10-22") && is_before("2019-09", "2019-10-01"));
        assert!(is_before("2018", "2019-01-01") && is_before("<=2019-10-21", "2019-11"));
        assert!(!is_before("2019-10-21", "2019-10-21") && !is_before("2019-10-22", "2019-10-21"));
        assert!(!is_before("2019-10", "2019-10-21") && !is_before("2019-10-21", "2019-10"));
        assert!(!is_before("2019-10-21", "<=2019-11-01"), "it may have been there for long");
    }
}
