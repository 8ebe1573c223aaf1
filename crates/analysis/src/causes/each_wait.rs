//! Each wait with its parts, handed out as it ends.
//!
//! Must not know: what is made of it.

use fairlab_event::{Event, Ns};

use super::interrupts::EndsTold;
use super::waiter::{CauseTotal, Waiter};
use super::{Cause, Causes, WaitKind};
use crate::tracker::{EndedWait, EnteredCpu, Tracker, TrackerChange};

/// What is kept where each wait is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct EachWait {
    /// Names are those of single threads.
    pub(super) tells_threads: bool,
    pub(super) ends_told: EndsTold,
    /// The wait that the latest event ended.
    ended: Option<EndedCauses>,
}

/// The wait of a task that got its CPU.
#[derive(Clone, Debug)]
pub(crate) struct EndedCauses {
    pub(crate) task: u32,
    /// None where it crossed a hole: it is no measurement.
    pub(crate) wait: Option<CausedWait>,
}

/// A wait, with its parts.
#[derive(Clone, Debug)]
pub(crate) struct CausedWait {
    pub(crate) length: Ns,
    /// Its task was woken while it still ran.
    pub(crate) woken_while_running: bool,
    /// None, and no parts, where nothing is known but its length.
    pub(crate) kind: Option<WaitKind>,
    pub(crate) parts: Vec<(Cause, CauseTotal)>,
}

impl EachWait {
    pub(super) fn ended(&mut self, entered: &EnteredCpu, waiter: Option<Box<Waiter>>) {
        let Some(EndedWait { wait, length, crossed_loss, .. }) = entered.wait else { return };
        let (kind, parts) = waiter.map_or((None, Vec::new()), |waiter| (Some(waiter.kind), waiter.parts()));
        let woken_while_running = wait.woken_while_running;
        let wait = (!crossed_loss).then_some(CausedWait { length, woken_while_running, kind, parts });
        self.ended = Some(EndedCauses { task: entered.task, wait });
    }
}

impl Causes {
    /// Hands out each wait as it ends, and adds none up; `tells_threads`: names are those of single threads.
    pub(crate) fn of_each_wait(tells_threads: bool) -> Causes {
        Causes { each: Some(EachWait { tells_threads, ..EachWait::default() }), ..Causes::default() }
    }

    /// Takes the next event. Returns what it meant, and the wait that it ended.
    pub(crate) fn next(&mut self, event: &Event<'_>) -> (TrackerChange, Option<EndedCauses>) {
        let change = self.follow(event);
        (change, self.each.as_mut().and_then(|each| each.ended.take()))
    }

    /// What is followed.
    pub(crate) const fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// The time that is looked at ends.
    pub(crate) fn end_at(&mut self, end: Ns) {
        self.tracker.end_at(end);
    }

    /// The number of a task's name.
    pub(crate) fn name_of(&mut self, task: u32) -> u16 {
        self.named(task)
    }

    /// All names by their numbers; further ones share the last.
    pub(crate) fn names(&self) -> Vec<String> {
        self.names.list()
    }

    /// The reason of this number.
    pub(crate) fn reason(&self, number: u16) -> &str {
        self.reasons.text(number)
    }
}
