//! Sleepers that stayed on their queue leave it when they would be picked.
//!
//! Must not know: what is picked then.

use crate::decision::{PreemptDecision, PreemptReason};
use crate::entity::SeId;
use crate::fair::rules::DelayedInTest;
use crate::rq::{DequeueFlags, DequeueOutcome, LockedRq};
use crate::task::{OnRq, TaskId};

/// How a sleeper leaves the queue that it was kept on.
pub(crate) const DELAYED_SLEEPER: DequeueFlags = DequeueFlags {
    sleep: true,
    delayed: true,
    special: false,
    save: false,
    migrating: false,
    throttle: false,
};

impl LockedRq<'_> {
    /// Takes delayed entities that would be picked off their queues, until one would be picked that is awake, or none.
    ///
    /// Kernel: the loop in `pick_task_fair()` around `pick_next_entity()`.
    #[inline]
    pub(crate) fn finish_delayed_dequeues(&mut self) {
        if self.has_delayed() {
            self.finish_delayed_dequeues_but(|_| false);
        }
    }

    /// The same, until it would be the turn of a task that `stays`: for a driver that knows when the kernel did it.
    pub(crate) fn finish_delayed_dequeues_but(&mut self, stays: impl Fn(TaskId) -> bool) {
        while let Some(se) = self.shared.delayed_candidate(self.rq.cfs) {
            if self.se(se).task.is_some_and(&stays) {
                break;
            }
            self.finish_delayed(se);
        }
    }

    /// A delayed entity leaves its queue now.
    pub(crate) fn finish_delayed(&mut self, se: SeId) {
        self.note_sched_idle(|rq| match rq.se(se).task {
            Some(task) => rq.dequeue_delayed(task),
            None => drop(rq.dequeue_entities(se, DELAYED_SLEEPER)),
        });
    }

    /// A task that slept on its queue leaves it now (`dequeue_task()` with `DEQUEUE_DELAYED`, `__block_task()`).
    pub(crate) fn dequeue_delayed(&mut self, task: TaskId) {
        let OnRq::Delayed(state) = self.shared.tasks[task.index()].on_rq else {
            panic!("a delayed entity's task sleeps on its queue")
        };
        self.shared.tasks[task.index()].on_rq = OnRq::Sleeping(state);
        self.sched_info_dequeue(task);
        let dequeued = self.dequeue_task_fair(task, DELAYED_SLEEPER);
        self.count_running(-i32::from(dequeued == DequeueOutcome::Counted));
    }

    /// Takes the delayed sleeper that would win a test for `task`'s preemption off its queue. Returns whether there was one.
    ///
    /// Kernel: `wakeup_preempt_fair()` with `pick_next_entity()`, kernel/sched/fair.c (ac8e69e69363).
    pub(crate) fn dequeue_delayed_in_test(&mut self, task: TaskId, decision: PreemptDecision) -> bool {
        let leaves = self.shared.generation.fair.delayed_in_test != DelayedInTest::Wins;
        // A shorter request may preempt without being picked.
        let picks =
            matches!(decision.reason, PreemptReason::WouldNotBePicked | PreemptReason::ShorterRequest);
        if !leaves || !picks {
            return false;
        }
        if !self.has_delayed() {
            return false;
        }
        let (curr, woken) = self.shared.competitors(self.shared.curr(self.rq.cpu), task);
        let unprotected = self.shared.preempts_by_shorter_request(woken, curr);
        let winner = self.shared.picked_in_test(task, (curr, woken), unprotected);
        match winner.filter(|&se| self.se(se).sched_delayed) {
            Some(delayed) => {
                self.finish_delayed(delayed);
                true
            }
            None => false,
        }
    }
}
