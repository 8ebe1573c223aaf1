//! Tasks that wait for the quota of their group, and not for a CPU.
//!
//! Must not know: how groups and their throttling are found out.

use fairlab_event::{Cpu, Event, Ns};

use super::{TrackedTaskPhase, Tracker};

impl Tracker {
    pub(super) fn follow_throttling(&mut self, event: &Event<'_>) {
        let changes = self.throttling.event(event);
        if changes.is_empty() {
            return;
        }
        let cpus: Vec<Cpu> = changes.iter().filter_map(|change| change.cpu()).collect();
        for task in 0..self.task_count() {
            if let Some(cpu) = self.tasks[task as usize].waits_on().filter(|cpu| cpus.contains(cpu)) {
                // Whether it counts among those that wait for the CPU is another question now.
                self.becomes(task, TrackedTaskPhase::Waiting(cpu));
            }
        }
    }

    /// For how long a task has waited for the quota of its group, in all its waits.
    pub(crate) fn throttled_so_far(&self, task: u32) -> Ns {
        let task = &self.tasks[task as usize];
        let here = task.waits_on().map_or(Ns::ZERO, |cpu| {
            self.throttling.time_of(task.pid, cpu, self.now).since(task.throttled_when_queued)
        });
        task.throttled.saturating_add(here)
    }
}
