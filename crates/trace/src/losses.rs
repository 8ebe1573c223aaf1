//! What a written trace does not carry of the events that it was made of, counted.
//!
//! Must not know: which format, and why it cannot.

use std::collections::BTreeMap;
use std::fmt;

/// In what way an event will not be read back as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossKind {
    /// It is not in the file at all.
    LeftOut,
    /// It came later than its time, and stands where its time is.
    Order,
    /// Some of its own fields are missing.
    Fields,
    /// Its name or a text in it is cut or changed.
    Text,
    /// Name or process of the task that reported it are others.
    Context,
    /// Its flag columns are others.
    Flags,
}

impl LossKind {
    /// One clause for people, to stand behind a number of events.
    pub const fn describe(self) -> &'static str {
        match self {
            LossKind::LeftOut => "left out",
            LossKind::Order => "moved to where their time is",
            LossKind::Fields => "without some of their fields",
            LossKind::Text => "with a name or text cut or changed",
            LossKind::Context => "with another name or process of the task that reported them",
            LossKind::Flags => "with other flags",
        }
    }

    /// The name in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            LossKind::LeftOut => "left_out",
            LossKind::Order => "order",
            LossKind::Fields => "fields",
            LossKind::Text => "text",
            LossKind::Context => "context",
            LossKind::Flags => "flags",
        }
    }
}

/// The account of one writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterLosses {
    events: u64,
    /// By name, how many events have each loss, in the order of [`ALL`].
    counts: BTreeMap<String, [u64; ALL.len()]>,
    /// What is left out of what was known of the run and its machine, in words.
    system: Vec<String>,
}

/// More names of events are counted as one: traces choose them.
const NAMES_MAX: usize = 1000;
const OTHER_NAMES: &str = "others";

impl WriterLosses {
    /// How many events will not be read back exactly as they were given.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How many events, by what they lose and their name.
    pub fn counts(&self) -> impl Iterator<Item = (LossKind, &str, u64)> {
        let of = |(place, loss): (usize, LossKind)| {
            let counts = self.counts.iter().map(move |(name, counts)| (loss, name.as_str(), counts[place]));
            counts.filter(|&(.., count)| count > 0)
        };
        ALL.into_iter().enumerate().flat_map(of)
    }

    /// How many events lose `loss`.
    pub fn count(&self, loss: LossKind) -> u64 {
        self.counts().filter(|&(known, ..)| known == loss).map(|(.., count)| count).sum()
    }

    /// What is left out of what was known of the run and its machine, in words.
    pub fn of_system(&self) -> &[String] {
        &self.system
    }

    /// The format has no place for this of the run and its machine.
    pub(crate) fn leave_out(&mut self, words: Vec<String>) {
        self.system = words;
    }

    /// Counts one event called `name` that has `losses`, which may be none.
    #[inline]
    pub(crate) fn add(&mut self, name: &str, losses: EventLosses) {
        if losses != EventLosses::default() {
            self.add_some(name, losses);
        }
    }

    #[cold]
    fn add_some(&mut self, name: &str, losses: EventLosses) {
        self.events += 1;
        let add = |counts: &mut [u64; ALL.len()]| {
            for (count, loss) in counts.iter_mut().zip(ALL) {
                *count += u64::from(losses.has(loss));
            }
        };
        if let Some(counts) = self.counts.get_mut(name) {
            return add(counts);
        }
        let name = if self.counts.len() >= NAMES_MAX { OTHER_NAMES } else { name };
        add(self.counts.entry(name.to_string()).or_default());
    }
}

const ALL: [LossKind; 6] = [
    LossKind::LeftOut,
    LossKind::Order,
    LossKind::Fields,
    LossKind::Text,
    LossKind::Context,
    LossKind::Flags,
];

/// What one event loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventLosses(u8);

impl EventLosses {
    /// Notes `loss` unless all is `kept`.
    #[inline]
    pub(crate) fn unless(&mut self, kept: bool, loss: LossKind) {
        self.0 |= u8::from(!kept) << loss as u8;
    }

    /// The one loss alone.
    pub(crate) fn only(loss: LossKind) -> EventLosses {
        EventLosses(1 << loss as u8)
    }

    fn has(self, loss: LossKind) -> bool {
        self.0 & 1 << loss as u8 != 0
    }
}

/// One line for each kind of loss: how many events, and which; one for what was known of the run and its machine.
impl fmt::Display for WriterLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for loss in ALL.into_iter().filter(|&loss| self.count(loss) > 0) {
            let mut names: Vec<(&str, u64)> = self
                .counts()
                .filter(|&(known, ..)| known == loss)
                .map(|(_, name, count)| (name, count))
                .collect();
            names.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
            let shown: Vec<String> =
                names.iter().take(SHOWN_MAX).map(|(name, count)| format!("{count} {name}")).collect();
            let more = if names.len() > SHOWN_MAX { ", …" } else { "" };
            write!(
                f,
                "{separator}{} events {}: {}{more}",
                self.count(loss),
                loss.describe(),
                shown.join(", ")
            )?;
            separator = "\n";
        }
        if !self.system.is_empty() {
            write!(f, "{separator}left out, for the format has no place for it: {}", self.system.join(", "))?;
        }
        Ok(())
    }
}

/// So many names of events stand in a line.
const SHOWN_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_counts_once_and_each_of_its_losses_too() {
        let mut losses = WriterLosses::default();
        losses.add("sched_switch", EventLosses::default());
        assert_eq!((losses.events(), losses.to_string()), (0, String::new()));
        let mut two = EventLosses::only(LossKind::Order);
        two.unless(false, LossKind::Flags);
        two.unless(true, LossKind::Text);
        losses.add("sched_switch", two);
        losses.add("x", EventLosses::only(LossKind::Flags));
        losses.add("x", EventLosses::only(LossKind::Flags));
        assert_eq!((losses.events(), losses.count(LossKind::Flags), losses.count(LossKind::Text)), (3, 3, 0));
        let expected = "1 events moved to where their time is: 1 sched_switch\n\
                        3 events with other flags: 2 x, 1 sched_switch";
        assert_eq!(losses.to_string(), expected);
    }

    #[test]
    fn names_have_a_limit() {
        let mut losses = WriterLosses::default();
        for number in 0..3 * NAMES_MAX {
            losses.add(&number.to_string(), EventLosses::only(LossKind::LeftOut));
        }
        assert!(losses.counts().count() <= NAMES_MAX + 1);
        assert_eq!(losses.count(LossKind::LeftOut), 3 * NAMES_MAX as u64);
        assert!(losses.to_string().ends_with(", …"));
    }
}
