//! What a CPU has queued: how many tasks, whether any goes before all fair ones, and whether it has nothing to do at all.

use crate::all_cpus::Shared;
use crate::decision::{PickDecision, PickReason};
use crate::rq::{LockedRq, Rq};

impl Shared {
    /// The task that goes before all of the fair class on a CPU; none if a fair server does. That is stopped before a pick where no
    /// fair task is left.
    #[inline]
    pub(crate) fn pick_above_fair(&self, rq: &Rq) -> Option<PickDecision> {
        if let Some(&task) = rq.stop.first() {
            return Some(PickDecision { task, reason: PickReason::StopClass });
        }
        if let Some(&task) = rq.dl.first() {
            return Some(PickDecision { task, reason: PickReason::DeadlineClass });
        }
        if rq.fair_server.queued {
            return None;
        }
        let rt = &self.cpus[rq.cpu.index()].rt;
        rt.first().map(|task| PickDecision { task, reason: PickReason::MostUrgent })
    }

    pub(crate) fn has_nothing_to_do(&self, rq: &Rq) -> bool {
        self.runs_idle_task(rq.cpu) && rq.nr_running == 0 && rq.ttwu_pending == 0
    }
}

impl LockedRq<'_> {
    /// Runnable tasks have come or left (`add_nr_running()`, `sub_nr_running()`).
    #[inline]
    pub(crate) fn count_running(&mut self, change: i32) {
        let was_overloaded = self.rq.nr_running > 1;
        let nr_running = self.rq.nr_running.checked_add_signed(change);
        let nr_running = nr_running.unwrap_or_else(|| {
            panic!("CPU {}: {} tasks are counted, and {} leave", self.rq.cpu, self.rq.nr_running, -change)
        });
        self.rq.nr_running = nr_running;
        if !was_overloaded && nr_running > 1 {
            self.shared.set_overloaded(true);
        }
        self.note_idle();
    }

    /// Whether any fair task is queued here, be it asleep, that no throttled group cuts off.
    pub(crate) fn has_fair_tasks(&self) -> bool {
        self.cfs(self.rq.cfs).h_nr_running > 0
    }

    /// What the CPU runs, has queued or expects has changed.
    #[inline]
    pub(crate) fn note_idle(&mut self) {
        self.shared.cfs_rqs.touch(self.rq.cpu.index());
        match self.shared.has_nothing_to_do(self.rq) {
            true => self.shared.idle_cpus.set(self.rq.cpu),
            false => self.shared.idle_cpus.clear(self.rq.cpu),
        }
    }
}
