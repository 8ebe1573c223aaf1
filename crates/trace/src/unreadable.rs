//! The scheduler's events in a trace that could not be read: counted by kind, the first one shown, and too many refused.
//!
//! Without this check an answer would be wrong and would not show it: a file whose switches are all unreadable would give
//! zeros. Every reader counts here, and [`read`](crate::read) and [`read_path`](crate::read_path) refuse, so that no command
//! can forget to.
//!
//! Must not know: formats, what an analysis computes.

use std::cmp::Reverse;
use std::fmt;

use fairlab_event::{Event, Sink, System, Tracepoint};

use crate::{ImportError, ImportStats};

/// Records whose kind nothing tells. Any of them may be one of the scheduler's.
const UNDESCRIBED: &str = "undescribed";

/// Of the events of one kind, more than this many of a hundred unreadable are too many.
const PERCENT_MAX: u64 = 1;

/// The events of one kind that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableTally {
    /// The tracepoint's name; "undescribed" for records of which the file does not say what they are.
    pub event: &'static str,
    /// How many could not be read.
    pub count: u64,
    /// How many of this kind were read; for undescribed records, how many events of any kind.
    pub read: u64,
    /// Where the first stands: a line number (text, from 1) or a byte offset (binary).
    pub first_at: u64,
    /// The beginning of that line, with control characters escaped; empty where the trace is binary.
    pub first: String,
}

/// The tracepoint called `name`, if answers are made of it. `sched_place` is none of those: patched kernels only have it,
/// each in a form of its own.
pub(crate) fn needed(name: &str) -> Option<Tracepoint> {
    Tracepoint::by_name(name.as_bytes()).filter(|tracepoint| tracepoint.is_mainline())
}

/// How much of a line is shown.
const SHOWN_CHARS: usize = 160;

/// The beginning of `line`, fit for one line on a terminal.
pub(crate) fn shown(line: &[u8]) -> String {
    let start = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN_CHARS)]);
    let mut text = String::new();
    for (place, char) in start.trim().chars().enumerate() {
        if place == SHOWN_CHARS {
            text.push('…');
            break;
        }
        match char.is_control() {
            true => text.extend(char.escape_default()),
            false => text.push(char),
        }
    }
    text
}

impl UnreadableTally {
    fn is_too_much(&self) -> bool {
        self.count.saturating_mul(100) > self.count.saturating_add(self.read).saturating_mul(PERCENT_MAX)
    }
}

impl fmt::Display for UnreadableTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnreadableTally { event, count, read, first_at, first } = self;
        let all = count.saturating_add(*read);
        match *event {
            UNDESCRIBED => {
                write!(f, "{count} of {all} records are of events that the file does not describe")?;
            }
            event => write!(f, "{count} of {all} {event} events cannot be read")?,
        }
        match first.is_empty() {
            true => write!(f, ", the first at byte {first_at}"),
            false => write!(f, ", the first in line {first_at}: {first}"),
        }
    }
}

impl ImportStats {
    /// Counts an event called `name` that could not be read, in line `at`, whose text is `line`, or at byte `at` of a binary
    /// trace. Events that no answer needs are not counted.
    pub(crate) fn cannot_read(&mut self, name: &str, at: u64, line: &[u8]) {
        if let Some(event) = needed(name) {
            self.add_unreadable(event.name(), at, line);
        }
    }

    /// The same for a record of which nothing tells what event it is.
    pub(crate) fn cannot_tell(&mut self, at: u64) {
        self.add_unreadable(UNDESCRIBED, at, b"");
    }

    fn add_unreadable(&mut self, event: &'static str, at: u64, line: &[u8]) {
        match self.unreadable.iter_mut().find(|known| known.event == event) {
            Some(known) => known.count = known.count.saturating_add(1),
            None => {
                let first = shown(line);
                self.unreadable.push(UnreadableTally { event, count: 1, read: 0, first_at: at, first });
            }
        }
    }

    /// The scheduler's events that could not be read, a kind each, in the order in which they were met first.
    pub fn unreadable(&self) -> &[UnreadableTally] {
        &self.unreadable
    }

    /// Takes over how many events of each kind were read, and refuses the trace if too many of a kind were not.
    fn settle(mut self, read: &[u64; Tracepoint::COUNT], allowed: bool) -> Result<ImportStats, ImportError> {
        for kind in &mut self.unreadable {
            kind.read = needed(kind.event).map_or(self.events, |tracepoint| read[tracepoint as usize]);
        }
        let too_much = self.unreadable.iter().filter(|kind| kind.is_too_much());
        match too_much.max_by_key(|kind| (kind.count, Reverse(kind.first_at))) {
            Some(worst) if !allowed => Err(ImportError::Unreadable(worst.to_string())),
            _ => Ok(self),
        }
    }
}

/// Reads a trace by `read` into `sink`; refuses it when too many of the scheduler's events cannot be read, unless that is
/// `allowed`.
pub(crate) fn refused(
    sink: &mut dyn Sink,
    allowed: bool,
    read: impl FnOnce(&mut UnreadableCounter<'_>) -> Result<ImportStats, ImportError>,
) -> Result<ImportStats, ImportError> {
    let mut counted = UnreadableCounter { sink, read: [0; Tracepoint::COUNT] };
    let stats = read(&mut counted)?;
    stats.settle(&counted.read, allowed)
}

/// Counts the events of each tracepoint on their way.
pub(crate) struct UnreadableCounter<'s> {
    sink: &'s mut dyn Sink,
    read: [u64; Tracepoint::COUNT],
}

impl Sink for UnreadableCounter<'_> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if let Some(tracepoint) = event.kind.tracepoint() {
            self.read[tracepoint as usize] += 1;
        }
        self.sink.event(event);
    }

    fn system(&mut self, system: &System) {
        self.sink.system(system);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, read};

    const SWITCH: &str = "x-1 [000] d... 1.5: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> \
                          next_comm=b next_pid=2 next_prio=120";
    const BROKEN: &str = "x-1 [000] d... 1.5: sched_switch: prev_comm=\x1b[31m prev_pid=one";

    fn text(readable: usize, unreadable: usize, other: &str) -> String {
        let lines = |line: &str, count| format!("{line}\n").repeat(count);
        ["# tracer: nop\n", &lines(SWITCH, readable), &lines(BROKEN, unreadable), other].concat()
    }

    fn import(text: &str, allow_unreadable: bool) -> Result<ImportStats, ImportError> {
        let options = ReadOptions { allow_unreadable, ..ReadOptions::default() };
        read(Box::new(text.as_bytes()), &options, &mut ())
    }

    #[test]
    fn too_many_are_refused_with_the_first_line() {
        let Err(ImportError::Unreadable(fact)) = import(&text(197, 2, ""), false) else {
            panic!("two of 199 are above one per cent")
        };
        let first =
            "the first in line 199: x-1 [000] d... 1.5: sched_switch: prev_comm=\\u{1b}[31m prev_pid=one";
        assert_eq!(fact, format!("2 of 199 sched_switch events cannot be read, {first}"));
        assert!(import(&text(0, 1, ""), false).is_err());
    }

    #[test]
    fn few_are_told_and_many_are_where_that_is_allowed() {
        for (readable, unreadable, allowed) in [(99, 1, false), (198, 2, false), (0, 3, true)] {
            let stats = import(&text(readable, unreadable, ""), allowed).expect("a trace");
            let [kind] = stats.unreadable() else { panic!("{:?}", stats.unreadable()) };
            assert_eq!(
                (kind.event, kind.read, kind.count),
                ("sched_switch", readable as u64, unreadable as u64)
            );
        }
    }

    #[test]
    fn each_kind_is_held_against_its_own_number_and_what_nobody_needs_is_not_counted() {
        let waking = "x-1 [000] d... 1.5: sched_waking: comm=a pid=1 prio=high\n";
        let fact = match import(&text(1000, 1, waking), false) {
            Err(ImportError::Unreadable(fact)) => fact,
            other => panic!("{other:?}"),
        };
        assert!(fact.starts_with("1 of 1 sched_waking events cannot be read"), "{fact}");
        let unneeded = "x-1 [000] d... 1.5: sched_pi_setprio: ?\nx-1 [000] d... 1.5: sched_place: ?\n";
        let stats = import(&text(1, 0, unneeded), false).expect("a trace");
        assert_eq!(stats.unreadable(), []);
    }
}
