//! Why an experiment cannot be done.

use std::fmt;
use std::ops::Range;

use fairlab_event::EscapedText;
use fairlab_event::spelling::{NameError, meant};
use serde::{Deserialize, Serialize};

/// Bad use or input: one line that says what is wrong and where, and one clause that says what to do. Show it by `Display`, which
/// escapes what a terminal would obey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// This error with lines below it that show more.
    pub fn with_lines(self, lines: Vec<String>) -> LabError {
        LabError { lines, ..self }
    }
}

/// The line of a text that a parser's complaint begins at, the first one being 1; 0 if it does not say where.
pub fn line_at(text: &str, span: Option<Range<usize>>) -> usize {
    span.map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1)
}

/// A TOML parser's complaint in our words: an unknown key with the one that may be meant, a key that is missing; any other as its
/// first line.
pub fn complaint(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    // Between backticks stand keys: first the one that it is about.
    let mut keys = line.split('`').skip(1).step_by(2);
    match (line.split_whitespace().next(), keys.next()) {
        (Some("unknown"), Some(key)) if line.starts_with("unknown field") => {
            let known = keys.collect::<Vec<_>>();
            match meant(key, known.iter().copied()) {
                Some(name) => format!("unknown key '{key}', '{name}' may be meant"),
                None => format!("unknown key '{key}', there are {}", known.join(", ")),
            }
        }
        (Some("missing"), Some(key)) => format!("the key '{key}' is missing"),
        _ => of_another_type(line).unwrap_or_else(|| line.to_string()),
    }
}

/// The complaint of a value of another type, in a user's words; the unit of a number is in its key's name.
fn of_another_type(line: &str) -> Option<String> {
    let (found, wanted) = line.strip_prefix("invalid type: ")?.rsplit_once(", expected ")?;
    let wanted = match wanted {
        "u64" | "u32" | "u16" | "u8" | "usize" => "a whole number without a unit",
        "i64" | "i32" | "isize" => "a whole number, which may be negative, without a unit",
        "f64" | "f32" => "a number without a unit",
        "a sequence" => "a list in [ ]",
        "a string" => "a text in quotes",
        "a boolean" => "true or false",
        _ => return None,
    };
    Some(format!("{found} stands where {wanted} is wanted"))
}

/// What a TOML file is, and what takes it, if it is another kind of Fairlab's files than `wanted` (`machine`, `sweep`, `report`).
pub fn another_kind(text: &str, wanted: &str) -> Option<LabError> {
    let has =
        |start: &[&str]| text.lines().any(|line| start.iter().any(|start| line.trim().starts_with(start)));
    let kinds: [(&str, &[&str], &str); 4] = [
        ("workload", &["[[workload]]", "[[task]]"], "'fairlab run FILE --kernel K' runs it"),
        ("report", &["[[claim]]"], "'fairlab scenario run FILE' runs it"),
        ("machine", &["[topology]", "[cpus]"], "give it to --machine"),
        ("sweep", &["workloads =", "workloads="], "'fairlab sweep FILE' runs it"),
    ];
    let (kind, _, cure) = kinds.into_iter().find(|(_, start, _)| has(start))?;
    (kind != wanted).then(|| LabError::new(format!("this is a {kind} file, no {wanted} file"), cure))
}

/// A text without the numbers that the system gives its errors: they say nothing beside its words.
pub fn without_numbers(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(" (os error ") {
        let digits = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
        kept += before;
        match digits.strip_prefix(')') {
            Some(behind) => rest = behind,
            None => {
                kept += " (os error ";
                rest = after;
            }
        }
    }
    kept + rest
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; {}",
            EscapedText(&without_numbers(&self.problem)),
            EscapedText(&without_numbers(&self.hint))
        )?;
        self.lines.iter().try_for_each(|line| write!(f, "\n{}", EscapedText(line)))
    }
}

impl std::error::Error for LabError {}

impl From<NameError> for LabError {
    fn from(error: NameError) -> LabError {
        LabError::new(error.problem, error.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_of_keys_say_what_may_be_meant() {
        for (message, told) in [
            ("unknown field `hzz`, expected one of `name`, `hz`", "unknown key 'hzz', 'hz' may be meant"),
            ("unknown field `x`, expected one of `name`, `hz`", "unknown key 'x', there are name, hz"),
            ("missing field `duration_ms`", "the key 'duration_ms' is missing"),
            (
                "invalid type: string \"9ms\", expected u64\nin `x`",
                "string \"9ms\" stands where a whole number without a unit is wanted",
            ),
            (
                "invalid type: string \"a\", expected a sequence",
                "string \"a\" stands where a list in [ ] is wanted",
            ),
            ("invalid type: string \"a\", expected a moon", "invalid type: string \"a\", expected a moon"),
            ("", ""),
        ] {
            assert_eq!(complaint(message), told);
        }
    }

    #[test]
    fn a_file_of_another_kind_is_named() {
        let told = |text: &str| another_kind(text, "machine").map(|error| error.problem);
        for (text, kind) in [
            ("[[workload]]\nrun = 'pipe'\n", Some("workload")),
            ("a = 1\n[[task]]\n", Some("workload")),
            ("workloads = ['pipe']\n", Some("sweep")),
            ("title = 'a'\n[[claim]]\nkernels = ['v6.5']\n", Some("report")),
            ("name = 'm'\n[topology]\n", None),
            ("name = 'm'\n", None),
            ("", None),
        ] {
            assert_eq!(
                told(text),
                kind.map(|kind| format!("this is a {kind} file, no machine file")),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_of_system_errors_are_left_out() {
        assert_eq!(
            without_numbers("a: No such file or directory (os error 2); b"),
            "a: No such file or directory; b"
        );
        assert_eq!(without_numbers("x (os error 5) and (os error 2)"), "x and");
        assert_eq!(without_numbers("a (os error x)"), "a (os error x)");
        assert_eq!(without_numbers("none"), "none");
    }
}
