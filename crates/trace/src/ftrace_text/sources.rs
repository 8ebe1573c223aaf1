//! The files, machines and instances that lines of one text say they are of.
//!
//! `trace-cmd report` of several files, or of a file with instances, puts a name before each line; so does `grep -H`.
//! Events of one kind from two of them are two recordings, maybe of two machines: they are not merged.
//!
//! Must not know: how names are found in lines.

use fairlab_event::Tracepoint;

use crate::unreadable::{needed, shown};
use crate::{ImportError, ImportStats};

/// What lines without a name are of.
const TOP: &[u8] = b"top";

/// More sources than a report has.
const SOURCES_MAX: usize = 64;

/// What has been seen of sources.
#[derive(Debug)]
pub(super) struct Sources {
    /// The only one whose lines are taken.
    chosen: Option<Vec<u8>>,
    /// The first is of lines without a name.
    known: Vec<TextSource>,
}

/// One of them.
#[derive(Debug)]
struct TextSource {
    name: Vec<u8>,
    /// How many of its lines were taken.
    lines: u64,
    /// The kinds of events that answers need and that it has.
    events: Vec<Tracepoint>,
}

impl TextSource {
    fn new(name: &[u8]) -> TextSource {
        TextSource { name: name.to_vec(), lines: 0, events: Vec::new() }
    }

    /// A file's name, or a virtual machine's.
    fn is_file(&self) -> bool {
        let ends_as_file = |ending: &[u8]| ending.first().is_some_and(u8::is_ascii_alphabetic);
        let point = self.name.iter().rposition(|&byte| byte == b'.');
        self.name.starts_with(b"VM:")
            || self.name.contains(&b'/')
            || point.is_some_and(|point| ends_as_file(&self.name[point + 1..]))
    }

    /// One line that seems to be of a source is more likely a damaged one.
    fn is_certain(&self) -> bool {
        self.lines > u64::from(self.name != TOP)
    }

    /// Whether events of both would be those of two recordings.
    fn is_apart_from(&self, other: &TextSource) -> bool {
        self.is_file() && other.is_file() || self.events.iter().any(|event| other.events.contains(event))
    }

    fn shown(&self) -> String {
        shown(&self.name)
    }
}

impl Sources {
    /// Of which only the lines of `chosen` are taken, if one is.
    pub(super) fn new(chosen: Option<&str>) -> Sources {
        let chosen = chosen.map(|name| name.as_bytes().to_vec());
        Sources { chosen, known: vec![TextSource::new(TOP)] }
    }

    /// Whether lines must be asked whose they are.
    #[inline]
    pub(super) fn matter(&self) -> bool {
        self.known.len() > 1 || self.chosen.is_some()
    }

    /// Whether a line of `source` with the event called `event` is taken.
    pub(super) fn admit(&mut self, source: Option<&[u8]>, event: &str) -> bool {
        let name = source.unwrap_or(TOP);
        let place = self.known.iter().position(|known| known.name == name);
        let place = place.unwrap_or_else(|| {
            // Garbage may look like any number of names.
            if self.known.len() < SOURCES_MAX {
                self.known.push(TextSource::new(name));
            }
            self.known.len() - 1
        });
        let source = &mut self.known[place];
        if self.chosen.as_ref().is_some_and(|chosen| *chosen != source.name) {
            return false;
        }
        source.lines += 1;
        if let Some(event) = needed(event).filter(|event| !source.events.contains(event)) {
            source.events.push(event);
        }
        true
    }

    /// Says which instances were read, where there were several.
    ///
    /// # Errors
    /// There is nothing of the one that was asked for, or two have events of one kind, or are files.
    pub(super) fn account(&self, stats: &mut ImportStats) -> Result<(), ImportError> {
        let read: Vec<&TextSource> = self.known.iter().filter(|source| source.is_certain()).collect();
        if let Some(chosen) = &self.chosen {
            let has_none = self.known.iter().all(|source| source.lines == 0);
            return if has_none { Err(self.without(chosen)) } else { Ok(()) };
        }
        for (place, first) in read.iter().enumerate() {
            if let Some(second) = read[place + 1..].iter().find(|second| first.is_apart_from(second)) {
                return Err(ImportError::SeveralSources(format!(
                    "lines of {} and of {} stand in one text: two recordings, maybe of two machines, are not merged",
                    first.shown(),
                    second.shown()
                )));
            }
        }
        if read.len() > 1 {
            stats.instances = read.iter().map(|source| source.shown()).collect();
        }
        Ok(())
    }

    fn without(&self, chosen: &[u8]) -> ImportError {
        let chosen = shown(chosen);
        let known: Vec<String> = self.known[1..].iter().map(TextSource::shown).collect();
        ImportError::NoSuchInstance(match known.is_empty() {
            true => format!("there is no trace instance {chosen}: this is no trace.dat"),
            false => format!("there is no trace instance {chosen}; there are {}", known.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of these sources' lines: the instances that are merged, or why they are not.
    fn merged(lines: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut sources = Sources::new(None);
        for &(source, event) in lines {
            assert!(sources.admit(Some(source.as_bytes()).filter(|source| !source.is_empty()), event));
        }
        let mut stats = ImportStats::default();
        sources.account(&mut stats).map_err(|error| error.to_string())?;
        Ok(stats.instances)
    }

    #[test]
    fn sources_are_merged_only_where_they_share_no_kind_of_event() {
        let (waking, switch) = (("lab", "sched_waking"), ("lab", "sched_switch"));
        assert_eq!(merged(&[("", "sched_switch"), ("", "print")]), Ok(vec![]));
        assert_eq!(
            merged(&[("", "sched_switch"), waking, waking]),
            Ok(vec!["top".to_string(), "lab".to_string()])
        );
        let error = merged(&[("", "sched_switch"), waking, switch]).expect_err("two have switches");
        assert!(error.contains("lines of top and of lab"), "{error}");
        // One line is a damaged one.
        assert_eq!(merged(&[("", "sched_switch"), switch]), Ok(vec![]));
    }

    #[test]
    fn files_are_never_merged() {
        for [one, other] in [["host.dat", "guest.dat"], ["a/host", "a/guest"], ["VM:1", "VM:2"]] {
            let lines = [(one, "sched_switch"), (other, "print")];
            assert!(merged(&[lines, lines].concat()).is_err());
            assert!(merged(&lines).is_ok());
        }
    }

    #[test]
    fn one_may_be_chosen() {
        let mut sources = Sources::new(Some("guest.dat"));
        assert!(!sources.admit(Some(b"host.dat"), "sched_switch"));
        let error = sources.account(&mut ImportStats::default()).expect_err("nothing of it").to_string();
        assert!(error.contains("there are host.dat"), "{error}");
        assert!(sources.admit(Some(b"guest.dat"), "sched_switch"));
        assert!(sources.admit(Some(b"guest.dat"), "sched_switch"));
        sources.account(&mut ImportStats::default()).expect("there");
    }

    #[test]
    fn garbage_names_do_not_fill_memory() {
        let mut sources = Sources::new(None);
        for number in 0..1000 {
            sources.admit(Some(format!("x{number}").as_bytes()), "print");
        }
        assert_eq!(sources.known.len(), SOURCES_MAX);
    }
}
