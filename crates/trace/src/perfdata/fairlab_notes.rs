//! What Fairlab's writer notes beside what perf reads, so that its reader returns what was written: events without COMM
//! records or process ids, and fewer flag columns than a record can hold.
//!
//! The notes are the section of a feature that perf skips, as lines of words: `fairlab 1`; `flags N`, the flag columns of
//! every event; `idle CPU NAME`, the name of a CPU's idle task. In files with notes, some bits of `perf_event_header::misc`
//! that perf does not use say more about a record.
//!
//! Must not know: records.

use std::fmt::Write;

use fairlab_event::{Comm, System};

use crate::comm_word::{escape, unescape};
use crate::notes::{self, TraceNotes};

/// The feature's bit, the last one that there is room for.
pub(super) const FEATURE: u32 = 255;

/// Bits of `misc` in files with notes; the kernel has no meaning for them.
pub(super) mod mark {
    /// The process id is made up of the thread's: it was not known.
    pub(in crate::perfdata) const PROCESS_UNKNOWN: u16 = 1 << 3;
    /// COMM that no recorder wrote: it is there since the next events' context has this name.
    pub(in crate::perfdata) const COMM_OF_CONTEXT: u16 = 1 << 4;
    /// COMM that no recorder wrote: it is there so that perf can show names that only tracepoints tell.
    pub(in crate::perfdata) const COMM_SHOWN: u16 = 1 << 5;
    /// LOST that does not know how many.
    pub(in crate::perfdata) const LOST_UNCOUNTED: u16 = 1 << 6;
    /// Who reported it is made up: it was not known.
    pub(in crate::perfdata) const REPORTER_UNKNOWN: u16 = 1 << 7;
}

/// The notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PerfDataNotes {
    /// How many flag columns every event has; all that the format can tell when not said.
    pub(super) flag_columns: Option<usize>,
    /// What the idle task of each CPU is called, from CPU 0 on.
    pub(super) idle: Vec<Option<Comm>>,
    /// What the format has no place for of a run and its machine.
    pub(super) system: System,
}

/// `NR_CPUS` of no kernel is larger.
pub(super) const CPUS_MAX: u32 = 8192;

impl PerfDataNotes {
    /// Reads the notes; `None` when they are of another version.
    pub(super) fn parse(bytes: &[u8]) -> Option<PerfDataNotes> {
        let mut own = PerfDataNotes::default();
        let TraceNotes { flag_columns, system } = notes::parse(bytes, |first, words| own.note(first, words))?;
        Some(PerfDataNotes { flag_columns, system, ..own })
    }

    fn note<'t>(&mut self, first: &str, words: &mut impl Iterator<Item = &'t str>) -> Option<()> {
        if first == "idle" {
            let cpu: u32 = words.next()?.parse().ok()?;
            let name = unescape(words.next()?);
            *self.idle_mut(cpu)? = Some(name);
        }
        Some(())
    }

    /// The place for the name of a CPU's idle task; `None` when no kernel has such a CPU.
    pub(super) fn idle_mut(&mut self, cpu: u32) -> Option<&mut Option<Comm>> {
        if cpu >= CPUS_MAX {
            return None;
        }
        let cpu = cpu as usize;
        if self.idle.len() <= cpu {
            self.idle.resize(cpu + 1, None);
        }
        self.idle.get_mut(cpu)
    }

    /// What the idle task of `cpu` is called.
    pub(super) fn idle(&self, cpu: u32) -> Option<Comm> {
        self.idle.get(cpu as usize).copied().flatten()
    }

    /// The notes as text.
    pub(super) fn text(&self) -> String {
        let mut text = notes::begin(self.flag_columns, &self.system);
        // Text takes everything.
        for (cpu, name) in self.idle.iter().enumerate() {
            if let Some(name) = name {
                let _ = write!(text, "\nidle {cpu} {}", escape(name));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back() {
        let idle = vec![Some(Comm::from("<idle>")), None, Some(Comm::from("swapper/2 x"))];
        let system = System { seed: Some(7), hz: Some(250), ..System::default() };
        let own = PerfDataNotes { flag_columns: Some(4), idle, system };
        assert_eq!(PerfDataNotes::parse(own.text().as_bytes()), Some(own.clone()));
        assert_eq!((own.idle(1), own.idle(2), own.idle(9)), (None, Some(Comm::from("swapper/2 x")), None));
        assert_eq!(
            PerfDataNotes::parse(PerfDataNotes::default().text().as_bytes()),
            Some(PerfDataNotes::default())
        );
    }

    #[test]
    fn other_text_says_nothing() {
        assert_eq!(PerfDataNotes::parse(b""), None);
        assert_eq!(PerfDataNotes::parse(b"fairlab 2\nflags 4"), None);
        let text = b"fairlab 1\n\nflags x\nidle 8192 \"x\"\nidle -1 \"x\"\nidle 0\nwhat 1 2\nflags\nflags 3";
        assert_eq!(
            PerfDataNotes::parse(text),
            Some(PerfDataNotes { flag_columns: Some(3), ..PerfDataNotes::default() })
        );
    }
}
