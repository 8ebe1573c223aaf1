//! The order of the table's rows.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::table::LatencyRow;

/// What rows are sorted by, each from the largest to the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// CPU time.
    Runtime,
    /// Number of waits.
    Count,
    /// Average wait.
    Avg,
    /// Longest wait.
    Max,
    /// Task id.
    Pid,
}

/// A word that names no sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSortKey(pub String);

impl SortKey {
    /// perf's default: `avg,max,switch,runtime`.
    pub const DEFAULT: [SortKey; 4] = [SortKey::Avg, SortKey::Max, SortKey::Count, SortKey::Runtime];

    /// Reads keys between commas or blanks; the first decides, each next one among equals.
    ///
    /// # Errors
    /// A word is no key, or there is none.
    pub fn parse_list(text: &str) -> Result<Vec<SortKey>, UnknownSortKey> {
        let words = text.split([',', ' ']).filter(|word| !word.is_empty());
        let keys = words.map(str::parse).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(UnknownSortKey(text.to_string())) } else { Ok(keys) }
    }

    /// Puts `rows` in order; rows equal by all `keys` stay as they are.
    pub(super) fn sort(rows: &mut [LatencyRow], keys: &[SortKey]) {
        rows.sort_by(|left, right| {
            keys.iter()
                .map(|key| key.compare(right, left))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        });
    }

    fn compare(self, left: &LatencyRow, right: &LatencyRow) -> Ordering {
        match self {
            SortKey::Runtime => left.runtime.cmp(&right.runtime),
            SortKey::Count => left.count.cmp(&right.count),
            SortKey::Avg => left.avg_delay().cmp(&right.avg_delay()),
            SortKey::Max => left.max_delay.cmp(&right.max_delay),
            SortKey::Pid => left.pid.cmp(&right.pid),
        }
    }
}

impl FromStr for SortKey {
    type Err = UnknownSortKey;

    fn from_str(word: &str) -> Result<SortKey, UnknownSortKey> {
        match word {
            "runtime" => Ok(SortKey::Runtime),
            "switch" | "count" => Ok(SortKey::Count),
            "avg" => Ok(SortKey::Avg),
            "max" => Ok(SortKey::Max),
            "pid" => Ok(SortKey::Pid),
            _ => Err(UnknownSortKey(word.to_string())),
        }
    }
}

impl fmt::Display for UnknownSortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no sort key: {:?}; the keys are runtime, switch (or count), avg, max, pid", self.0)
    }
}

impl std::error::Error for UnknownSortKey {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_perf_reads_them() {
        assert_eq!(SortKey::parse_list("avg, max, switch, runtime"), Ok(SortKey::DEFAULT.to_vec()));
        assert_eq!(SortKey::parse_list("pid,count"), Ok(vec![SortKey::Pid, SortKey::Count]));
        for wrong in ["", ",", "Max", "max,mean"] {
            assert!(SortKey::parse_list(wrong).is_err(), "{wrong}");
        }
        let error = SortKey::parse_list("max,mean").expect_err("no key");
        assert_eq!(
            error.to_string(),
            "no sort key: \"mean\"; the keys are runtime, switch (or count), avg, max, pid"
        );
    }
}
