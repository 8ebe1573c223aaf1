//! What is remembered of one task (or of one CPU's idle task) from one switch to the next.
//!
//! The rules are those of `perf sched timehist` 6.12 (tools/perf/builtin-sched.c). Time off the CPU is split by the state in
//! which the task left it. The scheduling delay counts from the first wakeup after that. If the task left runnable, it counts
//! from the switch.
//!
//! Must not know: names, filters, rows.

use fairlab_event::{Ns, TaskState};

/// A task's last switch out and what has made it runnable since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    left_at: Option<MeasuredMoment>,
    left_as: TaskState,
    /// Since when it is ready to run, `sched_wakeup` passed over; and with it.
    ready: ReadySince,
}

/// A time by both readings of the trace: where it has `sched_waking`, `sched_wakeup` is passed over.
#[derive(Clone, Copy, Debug, Default)]
struct ReadySince {
    by_waking: Option<MeasuredMoment>,
    by_wakeup: Option<MeasuredMoment>,
}

/// A time, and how many holes the task had crossed until then: between moments that differ in this nothing is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MeasuredMoment {
    pub(super) time: Ns,
    pub(super) holes: u32,
}

/// Which event begins a task's readiness to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadyBy {
    Waking,
    Wakeup,
}

/// One stay on a CPU and the time before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuStay {
    pub(super) run: Ns,
    pub(super) off: OffCpu,
    /// Whether events are missing since it left its CPU, so that `off` is not known.
    pub(super) off_crossed: bool,
    delay_by_waking: Delay,
    delay_by_wakeup: Delay,
}

/// A scheduling delay; not known when events are missing meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delay {
    pub(super) time: Ns,
    pub(super) crossed: bool,
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

impl CpuStay {
    /// Time between being ready to run and running.
    pub(super) const fn delay(&self, by: ReadyBy) -> Delay {
        match by {
            ReadyBy::Waking => self.delay_by_waking,
            ReadyBy::Wakeup => self.delay_by_wakeup,
        }
    }
}

impl History {
    /// `sched_waking`, `sched_wakeup_new`.
    pub(super) fn waking(&mut self, now: MeasuredMoment) {
        self.ready.by_waking.get_or_insert(now);
        self.ready.by_wakeup.get_or_insert(now);
    }

    /// `sched_wakeup`.
    pub(super) fn wakeup(&mut self, now: MeasuredMoment) {
        self.ready.by_wakeup.get_or_insert(now);
    }

    /// The stay as perf measures it, across holes.
    pub(super) fn stay_across(&self, start: Option<MeasuredMoment>, end: Ns) -> CpuStay {
        let blind = |moment: MeasuredMoment| MeasuredMoment { holes: 0, ..moment };
        let ready = ReadySince {
            by_waking: self.ready.by_waking.map(blind),
            by_wakeup: self.ready.by_wakeup.map(blind),
        };
        History { left_at: self.left_at.map(blind), ready, ..*self }.stay(start.map(blind), end)
    }

    /// The stay that ends at `end`; it began at `start`, unless that is not known.
    pub(super) fn stay(&self, start: Option<MeasuredMoment>, end: Ns) -> CpuStay {
        let Some(MeasuredMoment { time: start, holes }) = start else { return CpuStay::default() };
        let since = |moment: Option<MeasuredMoment>| match moment {
            None => Delay::default(),
            Some(moment) if moment.holes == holes => Delay { time: start.since(moment.time), crossed: false },
            Some(_) => Delay { time: Ns::ZERO, crossed: true },
        };
        let off = since(self.left_at);
        let mut stay = CpuStay {
            run: end.since(start),
            off: OffCpu::default(),
            off_crossed: off.crossed,
            delay_by_waking: since(self.ready.by_waking),
            delay_by_wakeup: since(self.ready.by_wakeup),
        };
        *match self.left_as {
            state if state.is_runnable() => &mut stay.off.preempt,
            state if state.contains(TaskState::UNINTERRUPTIBLE) => &mut stay.off.iowait,
            _ => &mut stay.off.sleep,
        } = off.time;
        stay
    }

    /// It leaves the CPU at `now`; when runnable, it is ready to run from `ready` on.
    pub(super) fn leave(&mut self, state: TaskState, now: MeasuredMoment, ready: Ns) {
        let ready = state.is_runnable().then_some(MeasuredMoment { time: ready, ..now });
        *self = History {
            left_at: Some(now),
            left_as: state,
            ready: ReadySince { by_waking: ready, by_wakeup: ready },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64) -> MeasuredMoment {
        MeasuredMoment { time: Ns(time), holes: 0 }
    }

    fn known(time: u64) -> Delay {
        Delay { time: Ns(time), crossed: false }
    }

    #[test]
    fn time_off_the_cpu_goes_by_the_state_in_which_the_task_left() {
        for (state, expected) in
            [("R", [0, 0, 40]), ("R+", [0, 0, 40]), ("D|K", [0, 40, 0]), ("S", [40, 0, 0])]
        {
            let mut history = History::default();
            history.leave(TaskState::parse(state.as_bytes()).expect(state), at(10), Ns(10));
            let OffCpu { sleep, iowait, preempt } = history.stay(Some(at(50)), Ns(70)).off;
            assert_eq!([sleep.0, iowait.0, preempt.0], expected, "{state}");
        }
    }

    #[test]
    fn the_first_wakeup_counts_and_leaving_runnable_is_one() {
        let mut history = History::default();
        history.leave(TaskState::INTERRUPTIBLE, at(10), Ns(10));
        history.wakeup(at(20));
        history.waking(at(30));
        let stay = history.stay(Some(at(50)), Ns(70));
        assert_eq!((stay.delay(ReadyBy::Wakeup), stay.delay(ReadyBy::Waking)), (known(30), known(20)));
        history.leave(TaskState::PREEMPTED, at(70), Ns(65));
        history.waking(at(80));
        assert_eq!(history.stay(Some(at(90)), Ns(95)).delay(ReadyBy::Waking), known(25));
    }

    #[test]
    fn a_stay_whose_begin_is_unknown_has_no_length_and_time_does_not_run_back() {
        let mut history = History::default();
        assert_eq!(history.stay(None, Ns(70)), CpuStay::default());
        history.leave(TaskState::INTERRUPTIBLE, at(60), Ns(60));
        history.waking(at(65));
        let stay = history.stay(Some(at(50)), Ns(40));
        assert_eq!((stay.run, stay.off.total(), stay.delay(ReadyBy::Waking)), (Ns(0), Ns(0), known(0)));
    }

    #[test]
    fn what_goes_on_while_events_are_lost_is_not_measured() {
        let lost = |time: u64| MeasuredMoment { time: Ns(time), holes: 1 };
        let mut history = History::default();
        history.leave(TaskState::INTERRUPTIBLE, at(10), Ns(10));
        history.waking(at(20));
        let stay = history.stay(Some(lost(50)), Ns(70));
        assert_eq!((stay.run, stay.off.total(), stay.off_crossed), (Ns(20), Ns(0), true));
        assert_eq!(stay.delay(ReadyBy::Waking), Delay { time: Ns(0), crossed: true });
        history.leave(TaskState::INTERRUPTIBLE, at(10), Ns(10));
        history.waking(lost(30));
        let stay = history.stay(Some(lost(50)), Ns(70));
        assert_eq!(
            (stay.off.total(), stay.off_crossed, stay.delay(ReadyBy::Waking)),
            (Ns(0), true, known(20))
        );
    }
}
