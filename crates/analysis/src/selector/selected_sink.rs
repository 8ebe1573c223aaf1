//! The events that are chosen, as a trace of their own.
//!
//! Must not know: where they go.

use fairlab_event::{Cpu, Event, EventKind, Pid, Sink, System};

use super::{NothingChosen, SelectorState, TraceSelector, tasks_of};

/// Hands on what is chosen. Of a stretch: its events, and nothing before. Of some tasks: their events and every switch, so that
/// the tasks that ran instead stay known.
#[derive(Debug)]
pub struct SelectedSink<S> {
    choosing: SelectorState,
    /// Where it goes.
    pub sink: S,
    kept: u64,
}

impl<S: Sink> SelectedSink<S> {
    /// Nothing heard yet.
    pub fn new(chosen: TraceSelector, sink: S) -> SelectedSink<S> {
        SelectedSink { choosing: SelectorState::new(chosen), sink, kept: 0 }
    }

    /// How many events were kept.
    ///
    /// # Errors
    /// Nothing is what was asked for.
    pub fn kept(&self) -> Result<u64, NothingChosen> {
        self.choosing.check().map(|()| self.kept)
    }
}

impl<S: Sink> Sink for SelectedSink<S> {
    fn event(&mut self, event: &Event<'_>) {
        self.choosing.hear(event);
        let is_timeless = event.kind.is_task_record();
        let is_in_time = is_timeless || self.choosing.time().has(event.time);
        let is_of_them = || {
            let about = tasks_of(&event.kind).into_iter().flatten().map(|(pid, _)| pid);
            about.chain([event.context.pid]).any(|pid| self.choosing.means(pid))
        };
        let is_needed =
            matches!(event.kind, EventKind::SchedSwitch(_) | EventKind::Lost { .. }) || is_timeless;
        if is_in_time && (is_needed || is_of_them()) {
            self.kept += 1;
            self.sink.event(event);
        }
    }

    fn system(&mut self, system: &System) {
        self.choosing.system(system);
        self.sink.system(system);
    }

    fn allowed(&mut self, pid: Pid, cpus: &[Cpu]) {
        self.sink.allowed(pid, cpus);
    }

    fn member(&mut self, pid: Pid, name: &str) {
        self.choosing.member(pid, name);
        self.sink.member(pid, name);
    }
}
