//! What is remembered of one task (or of one CPU's idle task) from one switch to the next.
//!
//! The rules are those of `perf sched timehist` 6.12 (tools/perf/builtin-sched.c): time off the CPU is split by the
//! state in which the task left it; the scheduling delay counts from the first wakeup since then, or, when the task
//! left runnable, from its leaving.
//!
//! Must not know: names, filters, rows.

use fairlab_event::{Ns, TaskState};

/// A task's last switch out and what has made it runnable since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    left_at: Option<Ns>,
    left_as: TaskState,
    /// Since when it is ready to run, `sched_wakeup` passed over; and with it.
    ready: Ready,
}

/// A time by both readings of the trace: where it has `sched_waking`, `sched_wakeup` is passed over.
#[derive(Clone, Copy, Debug, Default)]
struct Ready {
    by_waking: Option<Ns>,
    by_wakeup: Option<Ns>,
}

/// Which event begins a task's readiness to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadyBy {
    Waking,
    Wakeup,
}

/// One stay on a CPU and the time before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stay {
    pub(super) run: Ns,
    pub(super) off: OffCpu,
    delay_by_waking: Ns,
    delay_by_wakeup: Ns,
}

/// The time that a task spent off the CPU before a stay, under the one heading that its state gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffCpu {
    /// It left in any other state.
    pub sleep: Ns,
    /// It left in uninterruptible sleep, which perf takes for waiting for I/O.
    pub iowait: Ns,
    /// It left runnable.
    pub preempt: Ns,
}

impl OffCpu {
    /// All of it: perf's "wait time".
    pub fn total(&self) -> Ns {
        self.sleep.saturating_add(self.iowait).saturating_add(self.preempt)
    }
}

impl Stay {
    /// Time between being ready to run and running.
    pub(super) const fn delay(&self, by: ReadyBy) -> Ns {
        match by {
            ReadyBy::Waking => self.delay_by_waking,
            ReadyBy::Wakeup => self.delay_by_wakeup,
        }
    }
}

impl History {
    /// `sched_waking`, `sched_wakeup_new`.
    pub(super) fn waking(&mut self, now: Ns) {
        self.ready.by_waking.get_or_insert(now);
        self.ready.by_wakeup.get_or_insert(now);
    }

    /// `sched_wakeup`.
    pub(super) fn wakeup(&mut self, now: Ns) {
        self.ready.by_wakeup.get_or_insert(now);
    }

    /// The stay that ends at `end`; it began at `start`, unless the trace begins later.
    pub(super) fn stay(&self, start: Option<Ns>, end: Ns) -> Stay {
        let Some(start) = start else { return Stay::default() };
        let since = |ready: Option<Ns>| ready.map_or(Ns::ZERO, |ready| start.since(ready));
        let off = self.left_at.map_or(Ns::ZERO, |left| start.since(left));
        let mut stay = Stay {
            run: end.since(start),
            off: OffCpu::default(),
            delay_by_waking: since(self.ready.by_waking),
            delay_by_wakeup: since(self.ready.by_wakeup),
        };
        *match self.left_as {
            state if state.is_runnable() => &mut stay.off.preempt,
            state if state.contains(TaskState::UNINTERRUPTIBLE) => &mut stay.off.iowait,
            _ => &mut stay.off.sleep,
        } = off;
        stay
    }

    /// It leaves the CPU at `now`; when runnable, it is ready to run from `ready` on.
    pub(super) fn leave(&mut self, state: TaskState, now: Ns, ready: Ns) {
        let ready = state.is_runnable().then_some(ready);
        *self = History {
            left_at: Some(now),
            left_as: state,
            ready: Ready { by_waking: ready, by_wakeup: ready },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_off_the_cpu_goes_by_the_state_in_which_the_task_left() {
        for (state, expected) in
            [("R", [0, 0, 40]), ("R+", [0, 0, 40]), ("D|K", [0, 40, 0]), ("S", [40, 0, 0])]
        {
            let mut history = History::default();
            history.leave(TaskState::parse(state.as_bytes()).expect(state), Ns(10), Ns(10));
            let OffCpu { sleep, iowait, preempt } = history.stay(Some(Ns(50)), Ns(70)).off;
            assert_eq!([sleep.0, iowait.0, preempt.0], expected, "{state}");
        }
    }

    #[test]
    fn the_first_wakeup_counts_and_leaving_runnable_is_one() {
        let mut history = History::default();
        history.leave(TaskState::INTERRUPTIBLE, Ns(10), Ns(10));
        history.wakeup(Ns(20));
        history.waking(Ns(30));
        let stay = history.stay(Some(Ns(50)), Ns(70));
        assert_eq!((stay.delay(ReadyBy::Wakeup), stay.delay(ReadyBy::Waking)), (Ns(30), Ns(20)));
        history.leave(TaskState::PREEMPTED, Ns(70), Ns(65));
        history.waking(Ns(80));
        assert_eq!(history.stay(Some(Ns(90)), Ns(95)).delay(ReadyBy::Waking), Ns(25));
    }

    #[test]
    fn a_stay_whose_begin_is_unknown_has_no_length_and_time_does_not_run_back() {
        let mut history = History::default();
        assert_eq!(history.stay(None, Ns(70)), Stay::default());
        history.leave(TaskState::INTERRUPTIBLE, Ns(60), Ns(60));
        history.waking(Ns(65));
        let stay = history.stay(Some(Ns(50)), Ns(40));
        assert_eq!((stay.run, stay.off.total(), stay.delay(ReadyBy::Waking)), (Ns(0), Ns(0), Ns(0)));
    }
}
