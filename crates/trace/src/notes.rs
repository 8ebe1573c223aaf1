//! What Fairlab's writers note beside what other tools read of their files: lines of words, the first of which names the
//! version.
//!
//! Must not know: in which file, which notes there are.

use std::fmt::Write;

use fairlab_event::System;

use crate::described;

const FIRST_LINE: &str = "fairlab 1";

/// What every list of notes may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceNotes {
    /// The number of flag columns that every event has.
    pub(crate) flag_columns: Option<usize>,
    /// What the format has no place for of a run and its machine.
    pub(crate) system: System,
}

/// How every list of notes begins: the version, and what is known of that.
pub(crate) fn begin(flag_columns: Option<usize>, system: &System) -> String {
    let mut text = FIRST_LINE.to_string();
    // Text takes everything.
    if let Some(columns) = flag_columns {
        let _ = write!(text, "\nflags {columns}");
    }
    for line in described::lines(system) {
        let _ = write!(text, "\n{line}");
    }
    text
}

/// Hands the words of each note of a format's own to `note`, which gives `None` for what it does not understand: that says
/// nothing. Gives `None` where the notes are of another version.
pub(crate) fn parse<'t>(
    bytes: &'t [u8],
    mut note: impl FnMut(&'t str, &mut std::str::Split<'t, char>) -> Option<()>,
) -> Option<TraceNotes> {
    let mut lines = std::str::from_utf8(bytes).ok()?.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let mut noted = TraceNotes::default();
    for line in lines.filter(|line| described::take(&mut noted.system, line).is_none()) {
        let mut words = line.split(' ');
        match words.next() {
            Some("flags") => {
                let columns = words.next().and_then(|columns| columns.parse().ok());
                noted.flag_columns = columns.or(noted.flag_columns);
            }
            Some(first) => {
                let _ = note(first, &mut words);
            }
            None => {}
        }
    }
    Some(noted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_and_other_text_says_nothing() {
        let read = |text: &str| {
            let mut kept = Vec::new();
            let noted = parse(text.as_bytes(), |first, words| {
                kept.push(format!("{first} {}", words.next()?));
                Some(())
            });
            noted.map(|noted| (noted.flag_columns, noted.system.seed, kept.join(",")))
        };
        let system = System { seed: Some(3), ..System::default() };
        assert_eq!(read(&begin(Some(4), &system)), Some((Some(4), Some(3), String::new())));
        let text = begin(None, &System::default()) + "\nidle 3 x\nwhat\nflags x\nflags 5";
        assert_eq!(read(&text), Some((Some(5), None, "idle 3".to_string())));
        assert_eq!(read("fairlab 2\nflags 4"), None);
        assert_eq!(read(""), None);
    }
}
