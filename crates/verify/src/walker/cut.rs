//! CPUs with lost events: what they did meanwhile is not known.
//!
//! A recorder whose buffer is full overwrites the oldest events of one CPU, and keeps those of the others. So events that
//! queue tasks on that CPU survive, but not the events that show them running.

use fairlab_event::{Cpu, Ns};

use super::super::record::EventRecord;
use super::{WARM_UP_EVENTS, Walker};

/// How many ticks a CPU that runs a task may be silent, so that one that comes late is no loss.
const SILENT_TICKS: u64 = 2;

impl Walker {
    /// Whether events of the CPU that reports `record`, and that runs another task than was known, have been lost before it: it
    /// has neither ticked nor switched for long.
    pub(super) fn was_cut_off(&self, record: &EventRecord) -> bool {
        let reported = self.cpus[record.cpu.index()].reported;
        let since = if reported == Ns::ZERO { self.began.unwrap_or(record.time) } else { reported };
        record.time.0.saturating_sub(since.0) > SILENT_TICKS * self.tick.0
    }

    /// The tasks that wait on `cpu`, and where its queues stand, are no longer known.
    pub(super) fn forget_cpu(&mut self, cpu: Cpu) {
        for task in self.sched.fair_tasks(cpu) {
            self.take_off(task);
            self.set_known(task, false);
        }
        for queue in self.groups.all().into_iter().filter_map(|group| self.sched.group_queue(group, cpu)) {
            self.knowledge.set_minimum_known(queue, false);
        }
        let known_again = Some(self.seen.events + WARM_UP_EVENTS);
        let info = &mut self.cpus[cpu.index()];
        (info.queue_known, info.known_again) = (false, known_again);
    }

    /// A task that waits on `cpu` has shown by now, or its vruntime is not known, as at the beginning of a trace.
    pub(super) fn know_again(&mut self, cpu: Cpu) {
        let info = &mut self.cpus[cpu.index()];
        if info.known_again.is_some_and(|event| self.seen.events > event) {
            (info.queue_known, info.known_again) = (true, None);
        }
    }
}
