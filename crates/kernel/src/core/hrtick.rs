//! The high-resolution tick: a slice ends by a timer of its own, not by the next tick.

use fairlab_event::{Cpu, EventKind, Ns, TextFields, UntypedTracepoint};

use crate::decision::{TickDecision, TickReason};
use crate::scheduler::Scheduler;

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

    /// CPUs that are to be interrupted to start that timer, since the last call: each then calls [`Scheduler::hrtick_called`].
    pub fn take_hrtick_calls(&mut self, into: &mut Vec<Cpu>) {
        into.append(&mut self.shared.hrtick_calls);
    }

    /// The interrupt has come: the CPU starts its own timer.
    ///
    /// Kernel: `__hrtick_start()`, kernel/sched/core.c.
    pub fn hrtick_called(&mut self, cpu: Cpu) {
        self.rqs[cpu.index()].hrtick_called = false;
        self.rq_lock(cpu).hrtick_cond_restart();
    }

    /// The timer that ends the running slice has expired: the running task is accounted and asked to make way.
    ///
    /// Kernel: `hrtick()`, kernel/sched/core.c, `entity_tick()`, kernel/sched/fair.c.
    pub fn hrtick(&mut self, cpu: Cpu) -> TickDecision {
        self.rqs[cpu.index()].hrtick = None;
        self.shared.report(EventKind::Other {
            name: UntypedTracepoint::HrtimerExpire.name(),
            fields: TextFields::new("hrtimer=0x0 function=hrtick now=0"),
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
    use crate::testbed::{MS, SchedulerTestbed};
    use fairlab_event::{Cpu, Ns};

    /// From v7.1 a slice ends when the deadline is reached, not at the next tick.
    #[test]
    fn a_slice_ends_between_two_ticks() {
        for (kernel, has_timer) in [("v7.0", false), ("v7.1", true), ("v7.1+NO_HRTICK", false)] {
            let mut bed = SchedulerTestbed::new(kernel, 8, 1);
            let first = bed.spawn(0, 0);
            assert_eq!(bed.scheduler.hrtick_expires(Cpu(0)), None, "alone");
            bed.pass(MS / 3);
            bed.spawn(0, 0);
            let entity = bed.entity(first);
            let ends = entity.exec_start + entity.deadline.minus(entity.vruntime) as u64;
            let expires = bed.scheduler.hrtick_expires(Cpu(0));
            assert_eq!(expires, has_timer.then_some(Ns(ends)), "{kernel}: the second one starts it");
            if let Some(expires) = expires {
                bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Hardirq, expires);
                assert!(bed.scheduler.hrtick(Cpu(0)).resched);
                assert_eq!(bed.scheduler.hrtick_expires(Cpu(0)), None);
            }
        }
    }

    /// The timer is a CPU's own: another one interrupts it, once until the interrupt has come.
    #[test]
    fn another_cpu_is_interrupted_to_start_its_timer() {
        let mut bed = SchedulerTestbed::new("v7.2", 8, 2);
        bed.spawn(0, 1);
        bed.spawn(0, 1);
        let expires = bed.scheduler.hrtick_expires(Cpu(1));
        let now = bed.scheduler.shared.trace.now;
        bed.scheduler.rqs[1].hrtick = None;
        bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, now);
        let mut called = Vec::new();
        bed.scheduler.rq_lock(Cpu(1)).hrtick_update();
        bed.scheduler.rq_lock(Cpu(1)).hrtick_update();
        bed.scheduler.take_hrtick_calls(&mut called);
        assert_eq!((called, bed.scheduler.hrtick_expires(Cpu(1))), (vec![Cpu(1)], None));
        bed.scheduler.set_here(Cpu(1), crate::core::KernelContext::Hardirq, now);
        bed.scheduler.hrtick_called(Cpu(1));
        assert_eq!(bed.scheduler.hrtick_expires(Cpu(1)), expires);
    }

    #[test]
    fn an_idle_cpu_has_no_slice_to_end() {
        let mut bed = SchedulerTestbed::new("v7.2", 8, 1);
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
