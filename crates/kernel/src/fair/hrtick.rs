//! When the running slice is to end by a timer of its own.
//!
//! Must not know: who drives the timer.

use fairlab_event::Ns;

use crate::all_cpus::Shared;
use crate::core::rules::Hrtick;
use crate::entity::CfsRqId;
use crate::generation::Feature;
use crate::rq::LockedRq;
use crate::task::TaskId;

/// No slice is ended by a timer sooner than this, ns.
pub(crate) const SHORTEST: u64 = 10_000;

/// A timer is not moved by less than this, ns.
pub(crate) const TINY: u64 = 5_000;

/// When the slice of a running task would end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceEnd {
    /// No timer is needed: it is off, or the task is alone.
    Never,
    /// It is over.
    Past,
    /// After so much run time, ns.
    After(u64),
}

impl Shared {
    /// When a timer should end the slice of a fair task that runs. Pure.
    ///
    /// Kernel: `hrtick_start_fair()`, kernel/sched/fair.c, from v7.1 (558c18d3fbb6, on by 9213aa4784cf).
    /// Units: run time in ns; the virtual time to the deadline at the task's weight.
    /// Departs: time that interrupts take is not added.
    pub(crate) fn slice_end(&self, task: TaskId) -> SliceEnd {
        if !self.ends_slices_by_timer() {
            return SliceEnd::Never;
        }
        let (entity, cpu) = (self.entity_of(task), self.tasks[task.index()].cpu);
        if self.cfs(CfsRqId::root(cpu)).h_nr_running <= 1 {
            return SliceEnd::Never;
        }
        match entity.deadline.minus(entity.vruntime) {
            left if left < 0 => SliceEnd::Past,
            left => {
                let load = self.competing_load(self.tasks[task.index()].se);
                let run_time = load.raw().wrapping_mul(left as u64) >> 20;
                SliceEnd::After(run_time.max(SHORTEST))
            }
        }
    }

    /// Whether slices may be ended by a timer at all.
    #[inline]
    pub(crate) fn ends_slices_by_timer(&self) -> bool {
        self.has(Feature::Hrtick) && self.generation.core.hrtick != Hrtick::NotFollowed
    }
}

impl LockedRq<'_> {
    /// Starts the timer for a fair task that runs on its CPU, or asks for a reschedule if its slice is over.
    pub(crate) fn hrtick_start_fair(&mut self, task: TaskId) {
        let cpu = self.shared.tasks[task.index()].cpu;
        match self.shared.slice_end(task) {
            SliceEnd::Never => {}
            SliceEnd::Past if self.shared.curr(cpu) == task => {
                self.shared.resched_curr(cpu, "hrtick_start_fair");
            }
            SliceEnd::Past => {}
            SliceEnd::After(run_time) => {
                self.rq.hrtick_time = self.shared.trace.now + Ns(run_time);
                self.hrtick_start();
            }
        }
    }

    /// Sets the timer; only the CPU itself can, and another one interrupts it to do so.
    ///
    /// Kernel: `hrtick_start()`, kernel/sched/core.c.
    fn hrtick_start(&mut self) {
        if self.rq.cpu == self.shared.trace.here {
            self.hrtick_cond_restart();
        } else if self.hrtick_needs_rearm() && !self.rq.hrtick_called {
            self.rq.hrtick_called = true;
            self.shared.hrtick_calls.push(self.rq.cpu);
        }
    }

    /// Kernel: `hrtick_needs_rearm()`, kernel/sched/core.c.
    fn hrtick_needs_rearm(&self) -> bool {
        self.rq.hrtick.is_none_or(|running| running.0.abs_diff(self.rq.hrtick_time.0) > TINY)
    }

    /// Kernel: `hrtick_cond_restart()`, kernel/sched/core.c.
    pub(crate) fn hrtick_cond_restart(&mut self) {
        if self.hrtick_needs_rearm() {
            self.set_hrtick(Some(self.rq.hrtick_time));
        }
    }

    /// Something was queued: the timer is started if none runs.
    ///
    /// Kernel: `hrtick_update()`, kernel/sched/fair.c.
    pub(crate) fn hrtick_update(&mut self) {
        let cpu = self.rq.cpu;
        let curr = self.shared.curr(cpu);
        if self.rq.hrtick.is_none() && self.shared.tasks[curr.index()].policy.is_fair() {
            self.hrtick_start_fair(curr);
        }
    }

    /// The CPU turns idle: the timer is stopped (`hrtick_schedule_exit()`).
    pub(crate) fn hrtick_stop(&mut self) {
        if self.rq.hrtick.is_some() {
            self.set_hrtick(None);
        }
    }

    pub(crate) fn set_hrtick(&mut self, expires: Option<Ns>) {
        let cpu = self.rq.cpu;
        self.rq.hrtick = expires;
        self.shared.hrticks_moved.push(cpu);
    }
}
