//! `kernel/sched/stats.c`: how long tasks wait and sleep, reported as `sched_stat_*`.

use fairlab_event::{EventKind, Ns, TaskState};

use crate::entity::SeId;
use crate::rq::LockedRq;
use crate::task::OnRq;

impl LockedRq<'_> {
    /// A task begins to wait (`__update_stats_wait_start()`).
    pub(crate) fn wait_starts(&mut self, se: SeId) {
        let Some(task) = self.se(se).task else { return };
        let task = &mut self.shared.tasks[task.index()];
        task.stats.wait_start = Some(self.rq.clock);
    }

    /// A task gets the CPU, or leaves its queue: its wait is reported, on both CPUs if it was moved meanwhile
    /// (`__update_stats_wait_end()`).
    pub(crate) fn wait_ends(&mut self, se: SeId) {
        let Some(task) = self.se(se).task else { return };
        let waited = self.take_wait(se);
        self.shared.report_that(|shared| EventKind::SchedStatWait(shared.delay_of(task, waited)));
    }

    /// A waiting task is moved to another queue: what it waited here is kept for later.
    pub(crate) fn wait_is_interrupted(&mut self, se: SeId) {
        let Some(task) = self.se(se).task else { return };
        let waited = self.take_wait(se);
        self.shared.tasks[task.index()].stats.waited = waited;
    }

    fn take_wait(&mut self, se: SeId) -> Ns {
        let Some(task) = self.se(se).task else { return Ns::ZERO };
        let task = &mut self.shared.tasks[task.index()];
        let (clock, stats) = (self.rq.clock, &mut task.stats);
        let here = stats.wait_start.take().map_or(Ns::ZERO, |start| clock.since(start));
        let waited = stats.waited + here;
        stats.waited = Ns::ZERO;
        waited
    }

    /// A task goes to sleep: whether interruptibly decides under which name its sleep will be reported.
    pub(crate) fn sleep_starts(&mut self, se: SeId) {
        let Some(task) = self.se(se).task else { return };
        let task = &mut self.shared.tasks[task.index()];
        let OnRq::Sleeping(state) = task.on_rq else { return };
        let (clock, stats) = (self.rq.clock, &mut task.stats);
        if state.contains(TaskState::INTERRUPTIBLE) {
            stats.sleep_start = Some(clock);
        } else if state.contains(TaskState::UNINTERRUPTIBLE) || state.contains(TaskState::IDLE) {
            // TASK_IDLE includes TASK_UNINTERRUPTIBLE.
            stats.block_start = Some(clock);
        }
    }

    /// A task is woken: its sleep is reported (`__update_stats_enqueue_sleeper()`).
    pub(crate) fn sleep_ends(&mut self, se: SeId) {
        let Some(task) = self.se(se).task else { return };
        let known = &mut self.shared.tasks[task.index()];
        let (clock, stats) = (self.rq.clock, &mut known.stats);
        let (slept, blocked) = (stats.sleep_start.take(), stats.block_start.take());
        if let Some(start) = slept {
            self.shared
                .report_that(|shared| EventKind::SchedStatSleep(shared.delay_of(task, clock.since(start))));
        }
        if let Some(start) = blocked {
            if self.shared.tasks[task.index()].in_iowait {
                self.shared
                    .report(EventKind::SchedStatIowait(self.shared.delay_of(task, clock.since(start))));
            }
            self.shared.report(EventKind::SchedStatBlocked(self.shared.delay_of(task, clock.since(start))));
        }
    }
}
