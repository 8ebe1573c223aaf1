//! The high-resolution tick: a slice ends by a timer of its own, not by the next tick.

use crate::rq::LockedRq;
use crate::shared::Shared;
use fairlab_event::{Cpu, EventKind, Fields, Ns, Untyped};

use crate::core::rules::Hrtick;
use crate::decision::{TickDecision, TickReason};
use crate::entity::CfsRqId;
use crate::generation::Feature;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

/// No slice is ended by a timer sooner than this, ns.
const SHORTEST: u64 = 10_000;
/// A timer is not moved by less than this, ns.
const TINY: u64 = 5_000;

/// When the slice of a running task would end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SliceEnd {
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
    fn slice_end(&self, task: TaskId) -> SliceEnd {
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
                self.shared.resched_curr(cpu, "hrtick_start_fair")
            }
            SliceEnd::Past => {}
            SliceEnd::After(run_time) => {
                let expires = self.shared.trace.now + Ns(run_time);
                let running = self.rq.hrtick;
                if running.is_none_or(|running| running.0.abs_diff(expires.0) > TINY) {
                    self.set_hrtick(Some(expires));
                }
            }
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

    fn set_hrtick(&mut self, expires: Option<Ns>) {
        let cpu = self.rq.cpu;
        self.rq.hrtick = expires;
        self.shared.hrticks_moved.push(cpu);
    }
}

impl Scheduler {
    /// CPUs whose timer was started, moved or stopped since the last call: [`Scheduler::hrtick_expires`] says until when
    /// it runs now.
    pub fn take_moved_hrticks(&mut self, into: &mut Vec<Cpu>) {
        into.append(&mut self.shared.hrticks_moved);
    }

    /// When the timer that ends the running slice expires; `None` while it does not run.
    pub fn hrtick_expires(&self, cpu: Cpu) -> Option<Ns> {
        self.rqs[cpu.index()].hrtick
    }

    /// The timer that ends the running slice has expired: the running task is accounted and asked to make way.
    ///
    /// Kernel: `hrtick()`, kernel/sched/core.c, `entity_tick()`, kernel/sched/fair.c.
    pub fn hrtick(&mut self, cpu: Cpu) -> TickDecision {
        self.rqs[cpu.index()].hrtick = None;
        self.shared.report(EventKind::Other {
            name: Untyped::HrtimerExpire.name(),
            fields: Fields::new("hrtimer=0x0 function=hrtick now=0"),
        });
        self.rq_lock(cpu).update_rq_clock();
        let task = self.curr(cpu);
        if !self.shared.tasks[task.index()].policy.is_fair() {
            return TickDecision { resched: false, reason: TickReason::Alone };
        }
        self.task_rq_lock(task).account_tick(task);
        self.shared.resched_curr(cpu, "task_tick_fair");
        TickDecision { resched: true, reason: TickReason::SliceTimer }
    }
}

#[cfg(test)]
mod tests {
    use crate::testbed::{Bed, MS};
    use fairlab_event::{Cpu, Ns};

    /// From v7.1 a slice ends when the deadline is reached, not at the next tick.
    #[test]
    fn a_slice_ends_between_two_ticks() {
        for (kernel, has_timer) in [("v7.0", false), ("v7.1", true), ("v7.1+NO_HRTICK", false)] {
            let mut bed = Bed::new(kernel, 8, 1);
            let first = bed.spawn(0, 0);
            assert_eq!(bed.scheduler.hrtick_expires(Cpu(0)), None, "alone");
            bed.pass(MS / 3);
            bed.spawn(0, 0);
            let entity = bed.entity(first);
            let ends = entity.exec_start + entity.deadline.minus(entity.vruntime) as u64;
            let expires = bed.scheduler.hrtick_expires(Cpu(0));
            assert_eq!(expires, has_timer.then_some(Ns(ends)), "{kernel}: the second one starts it");
            if let Some(expires) = expires {
                bed.scheduler.set_here(Cpu(0), crate::core::Mode::Hardirq, expires);
                assert!(bed.scheduler.hrtick(Cpu(0)).resched);
                assert_eq!(bed.scheduler.hrtick_expires(Cpu(0)), None);
            }
        }
    }

    #[test]
    fn an_idle_cpu_has_no_slice_to_end() {
        let mut bed = Bed::new("v7.2", 8, 1);
        bed.spawn(0, 0);
        bed.spawn(0, 0);
        assert!(bed.scheduler.hrtick_expires(Cpu(0)).is_some_and(|expires| expires > Ns(MS)));
        bed.sleep(0);
        while !bed.scheduler.runs_idle_task(Cpu(0)) {
            bed.pass(20 * MS);
            bed.sleep(0);
        }
        assert_eq!(bed.scheduler.hrtick_expires(Cpu(0)), None);
    }
}
