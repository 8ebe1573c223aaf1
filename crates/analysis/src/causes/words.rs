//! Names and reasons as small numbers.
//!
//! Must not know: what they mean.

use std::collections::BTreeMap;

use fairlab_event::{Comm, Pid};

/// How many names have a number of their own; further ones share one.
const NAMES_MAX: usize = 512;

/// How many reasons are kept apart.
const REASONS_MAX: usize = 512;

/// Names by their numbers; 0 is no task.
#[derive(Clone, Debug, Default)]
pub(super) struct CommNumbers {
    numbers: BTreeMap<(Comm, Option<Pid>), u16>,
}

impl CommNumbers {
    /// The number of a name, or of one task by its name and id.
    pub(super) fn number(&mut self, name: Comm, pid: Option<Pid>) -> u16 {
        let name = (name, pid);
        let next = self.numbers.len() + 1;
        if next > NAMES_MAX && !self.numbers.contains_key(&name) {
            return NAMES_MAX as u16 + 1;
        }
        *self.numbers.entry(name).or_insert(next as u16)
    }

    /// The names in order of their numbers, from 0.
    pub(super) fn list(&self) -> Vec<String> {
        let mut list = vec![String::new(); self.numbers.len() + 1];
        for (&(name, pid), &number) in &self.numbers {
            list[usize::from(number)] = match pid {
                Some(pid) => format!("{name}:{pid}"),
                None => name.to_string(),
            };
        }
        list.push("others".to_string());
        list
    }
}

/// Reasons by their numbers; 0 is an unknown one.
#[derive(Clone, Debug, Default)]
pub(super) struct Reasons {
    texts: Vec<String>,
}

impl Reasons {
    pub(super) fn number(&mut self, text: &str) -> u16 {
        let place = self.texts.iter().position(|known| known == text);
        let place = place.or_else(|| {
            let has_room = self.texts.len() < REASONS_MAX;
            has_room.then(|| self.texts.push(text.to_string())).map(|()| self.texts.len() - 1)
        });
        place.map_or(0, |place| place as u16 + 1)
    }

    pub(super) fn text(&self, number: u16) -> &str {
        usize::from(number).checked_sub(1).and_then(|place| self.texts.get(place)).map_or("", String::as_str)
    }
}
