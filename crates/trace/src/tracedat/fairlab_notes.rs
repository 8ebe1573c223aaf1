//! What Fairlab's writer notes in an option of its own, so that its reader returns what was written. A trace.dat has one name
//! per task, no thread groups, and always five flag columns.
//!
//! The notes are lines of words:
//!
//! * `fairlab 1`;
//! * `flags N`: the flag columns of every event;
//! * `tgid PID TGID`;
//! * `comm PID NAME`: a first name that differs from the saved one;
//! * `name`, `start`, `exit`: what was known of tasks before the first event. They have time, CPU, id, thread group and name
//!   of the reporting task, then id and thread group of the task, and its name or parent.
//!
//! Must not know: records.

use std::fmt::Write;

use fairlab_event::{Comm, Context, Cpu, Event, EventKind, Ns, Pid, System};

use crate::comm_word::{escape, unescape};
use crate::notes::{self, TraceNotes};

/// The notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TraceDatNotes {
    /// How many flag columns every event has; all that the format can tell when not said.
    pub(super) flag_columns: Option<usize>,
    /// Thread groups.
    pub(super) tgids: Vec<(Pid, Pid)>,
    /// Names in the beginning.
    pub(super) comms: Vec<(Pid, Comm)>,
    /// What was known of tasks before the first event.
    pub(super) early: Vec<Event<'static>>,
    /// What the format has no place for of a run and its machine.
    pub(super) system: System,
}

impl TraceDatNotes {
    /// Reads the notes; `None` when they are of another version.
    pub(super) fn parse(bytes: &[u8]) -> Option<TraceDatNotes> {
        let mut own = TraceDatNotes::default();
        let TraceNotes { flag_columns, system } = notes::parse(bytes, |first, words| own.note(first, words))?;
        Some(TraceDatNotes { flag_columns, system, ..own })
    }

    fn note<'t>(&mut self, first: &str, words: &mut impl Iterator<Item = &'t str>) -> Option<()> {
        match first {
            "tgid" => self.tgids.push((pid(words)?, pid(words)?)),
            "comm" => self.comms.push((pid(words)?, unescape(words.next()?))),
            kind @ ("name" | "start" | "exit") => {
                let time = Ns(words.next()?.parse().ok()?);
                let cpu = Cpu(words.next()?.parse().ok()?);
                let (reporter, tgid, comm) = (pid(words)?, pid(words)?, unescape(words.next()?));
                let context = Context { comm, pid: reporter, tgid, ..Context::default() };
                let (task, tgid) = (pid(words)?, pid(words)?);
                let kind = match kind {
                    "name" => EventKind::TaskName { pid: task, tgid, comm: unescape(words.next()?) },
                    "start" => EventKind::TaskStart { pid: task, tgid, parent_pid: pid(words)? },
                    _ => EventKind::TaskExit { pid: task, tgid },
                };
                self.early.push(Event { time, cpu, context, kind });
            }
            _ => {}
        }
        Some(())
    }

    /// The notes as text.
    pub(super) fn text(&self) -> String {
        let mut text = notes::begin(self.flag_columns, &self.system);
        // Text takes everything.
        for (pid, tgid) in &self.tgids {
            let _ = write!(text, "\ntgid {pid} {tgid}");
        }
        for (pid, comm) in &self.comms {
            let _ = write!(text, "\ncomm {pid} {}", escape(comm));
        }
        for Event { time, cpu, context, kind } in &self.early {
            let Context { comm, pid: reporter, tgid: group, .. } = context;
            let reported = format!("{} {cpu} {reporter} {group} {}", time.0, escape(comm));
            let _ = match kind {
                EventKind::TaskName { pid, tgid, comm } => {
                    write!(text, "\nname {reported} {pid} {tgid} {}", escape(comm))
                }
                EventKind::TaskStart { pid, tgid, parent_pid } => {
                    write!(text, "\nstart {reported} {pid} {tgid} {parent_pid}")
                }
                EventKind::TaskExit { pid, tgid } => write!(text, "\nexit {reported} {pid} {tgid}"),
                _ => Ok(()),
            };
        }
        text
    }
}

fn pid<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Pid> {
    words.next()?.parse().ok().map(Pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back() {
        let names =
            ["", " a  b ", "line\nfeed\\n", "\\", "\"", "'äöü\r\t", "0123456789abcde"].map(Comm::from);
        let context = |comm| Context { comm, pid: Pid(-6), tgid: Pid(3), ..Context::default() };
        let kinds = [
            EventKind::TaskStart { pid: Pid(1), tgid: Pid(2), parent_pid: Pid(-1) },
            EventKind::TaskExit { pid: Pid(i32::MAX), tgid: Pid(i32::MIN) },
        ];
        let kinds = kinds.into_iter().chain(names.map(|comm| EventKind::TaskName {
            pid: Pid(7),
            tgid: Pid(6),
            comm,
        }));
        let early = kinds.zip(names.iter().cycle());
        let own = TraceDatNotes {
            flag_columns: Some(4),
            tgids: vec![(Pid(2), Pid(1)), (Pid(-1), Pid(-1))],
            comms: names.iter().map(|&name| (Pid(7), name)).collect(),
            system: System { seed: Some(7), hz: Some(250), ..System::default() },
            early: early
                .map(|(kind, &comm)| Event { time: Ns(u64::MAX), cpu: Cpu(9), context: context(comm), kind })
                .collect(),
        };
        assert_eq!(TraceDatNotes::parse(own.text().as_bytes()), Some(own));
        assert_eq!(
            TraceDatNotes::parse(TraceDatNotes::default().text().as_bytes()),
            Some(TraceDatNotes::default())
        );
    }

    #[test]
    fn other_text_says_nothing() {
        assert_eq!(TraceDatNotes::parse(b""), None);
        assert_eq!(TraceDatNotes::parse(b"fairlab 2\nflags 4"), None);
        let text =
            b"fairlab 1\n\nflags x\ntgid 1\ncomm x y\nname 1 2\nwhat 1 2\nflags\nexit 1 2 3 4 5\ntgid 5 4";
        let own = TraceDatNotes { tgids: vec![(Pid(5), Pid(4))], ..TraceDatNotes::default() };
        assert_eq!(TraceDatNotes::parse(text), Some(own));
    }
}
