//! Which known name a misspelt one may be: for errors that tell what to write instead.
//!
//! Must not know: what the names are of.

use std::fmt;

/// Why a name means nothing, in one line that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub hint: String,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.hint)
    }
}

impl std::error::Error for NameError {}

/// The name that `word` is meant to be, if one of `known` is close enough: one letter in three may be wrong.
pub fn meant<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let likely = |one: &&str| {
        edits(&word.to_lowercase(), &one.to_lowercase()) <= word.len().div_ceil(3).min(one.len() / 2)
    };
    closest(word, known, 1).into_iter().find(likely)
}

/// The error's words for [`meant`]: `v6.6 may be meant; `, or nothing.
pub fn may_be_meant<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    meant(word, known).map_or(String::new(), |name| format!("{name} may be meant; "))
}

/// The `count` names that are closest to `word`, the closest first.
pub fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>, count: usize) -> Vec<&'k str> {
    let mut ranked = known.into_iter().map(|one| (distance(word, one), one)).collect::<Vec<_>>();
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().take(count).map(|(_, one)| one).collect()
}

/// Twice the [`edits`], less what both begin with: names that begin alike are closer.
fn distance(one: &str, other: &str) -> usize {
    let alike =
        one.bytes().zip(other.bytes()).take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count();
    (2 * edits(&one.to_lowercase(), &other.to_lowercase())).saturating_sub(alike)
}

/// How many letters are to be put in, taken out, changed, or exchanged with their neighbour.
fn edits(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut rows = vec![(0..=other.len()).collect::<Vec<_>>()];
    for (index, letter) in one.iter().enumerate() {
        let mut row = vec![index + 1];
        for (place, wanted) in other.iter().enumerate() {
            let changed = rows[index][place] + usize::from(letter != wanted);
            let mut least = changed.min(rows[index][place + 1] + 1).min(row[place] + 1);
            if index > 0 && place > 0 && *letter == other[place - 1] && one[index - 1] == *wanted {
                least = least.min(rows[index - 1][place - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_guessed_and_strange_ones_are_not() {
        let known = ["schbench", "hackbench", "pipe", "laptop8", "run-to-parity", "wakeup_latency_ns_p99"];
        for (word, expected) in [
            ("shcbench", Some("schbench")),
            ("hackbenchs", Some("hackbench")),
            ("laptop", Some("laptop8")),
            ("run-to-partiy", Some("run-to-parity")),
            ("PIPE", Some("pipe")),
            ("wakup_latency_ns_p99", Some("wakeup_latency_ns_p99")),
            ("dance", None),
            ("pdp11", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(meant(word, known), expected, "{word}");
        }
        assert_eq!(may_be_meant("pip", known), "pipe may be meant; ");
        assert_eq!(may_be_meant("dance", known), "");
    }

    #[test]
    fn the_closest_come_first() {
        assert_eq!(closest("hackbensh", ["schbench", "hackbench", "pipe"], 2), ["hackbench", "schbench"]);
    }

    #[test]
    fn what_looks_alike_comes_first() {
        let known = ["hackbench slowdown", "cyclictest slowdown", "cyclictest wakeup_latency_ns_p99"];
        assert_eq!(closest("cylictest slowdown", known, 1), ["cyclictest slowdown"]);
        assert_eq!(closest("cyclictest wakeup_latency_ns_p9", known, 2)[0], known[2]);
    }

    #[test]
    fn letters_in_turn_are_one_edit() {
        assert_eq!(
            [edits("ab", "ba"), edits("abc", "abd"), edits("", "ab"), edits("kitten", "sitting")],
            [1, 1, 2, 3]
        );
    }
}
