//! Which wakeups a waker leaves to the target CPU (the wake list, an IPI) instead of queueing the task there itself.
//!
//! Must not know: how an interrupt gets there, and when.

use fairlab_event::Cpu;

use super::decide;
use super::rules::{LeavingWakee, StopperWakeup, WakeList, WakeListAllowed};
use crate::all_cpus::SharedLine;
use crate::decision::{CpuDecision, SelectReason};
use crate::generation::Feature;
use crate::scheduler::Scheduler;
use crate::task::{Policy, TaskId};

impl Scheduler {
    /// Whether a wakeup of `task` on `cpu` is left to that CPU (an IPI, the wake list) instead of queueing from here.
    /// `leaving`: the task has blocked and its CPU has not switched to another yet (`WF_ON_CPU`).
    ///
    /// Kernel: `ttwu_queue_cond()`, kernel/sched/core.c. Variants: other caches only to v5.7; tasks about to leave a CPU
    /// from v5.8 (2ebb17717550); CPUs with nothing queued from v6.0 (f3dd3f674555); never stoppers from v6.7 (f0498d2a54e7).
    pub fn ttwu_queue_cond(&self, task: TaskId, cpu: Cpu, leaving: bool) -> bool {
        let (here, rules) = (self.shared.trace.here, self.shared.generation.select);
        if !self.has(Feature::TtwuQueue) {
            return false;
        }
        let at_once = rules.stopper_wakeup == StopperWakeup::AtOnce;
        if at_once && self.shared.tasks[task.index()].policy == Policy::Stop {
            return false;
        }
        let asks = rules.wake_list_allowed == WakeListAllowed::Asked;
        if asks && !self.shared.tasks[task.index()].allowed.contains(cpu) {
            return false;
        }
        if !self.domains.cpus_share_cache(here, cpu) {
            return true;
        }
        let queued = self.nr_running(cpu);
        match rules.wake_list {
            WakeList::OtherCache => false,
            WakeList::OrLeaving => leaving && queued <= 1,
            WakeList::OrLeavingEmpty => leaving && queued == 0,
            WakeList::OrEmpty => cpu != here && queued == 0,
        }
    }

    /// Where a task is woken that has blocked on a CPU which has not switched to another yet: it is left to that CPU, or
    /// `None` if the waker waits for the switch and then selects.
    ///
    /// Kernel: `try_to_wake_up()`, kernel/sched/core.c, from v5.8 (c6e7bd7afaeb).
    pub fn queue_where_leaving(&self, task: TaskId) -> Option<CpuDecision> {
        let cpu = self.shared.tasks[task.index()].cpu;
        let may = self.shared.generation.select.leaving_wakee == LeavingWakee::LeftThere;
        let left = may && self.ttwu_queue_cond(task, cpu, true);
        left.then(|| decide(cpu, SelectReason::LeavingItsCpu, 0))
    }

    /// Notes that a wakeup is on its way to `cpu` through the wake list: the CPU no longer looks idle.
    pub fn ttwu_pending(&mut self, cpu: Cpu) {
        self.shared.note_line(SharedLine::WakeList(cpu), true);
        self.rqs[cpu.index()].ttwu_pending += 1;
        self.rq_lock(cpu).note_idle();
    }

    /// The wakeup noted by [`ttwu_pending`](Self::ttwu_pending) has arrived.
    pub fn ttwu_arrived(&mut self, cpu: Cpu) {
        self.shared.note_line(SharedLine::WakeList(cpu), true);
        let pending = &mut self.rqs[cpu.index()].ttwu_pending;
        assert!(*pending > 0, "CPU {cpu}: a wakeup arrives that nobody left to it");
        *pending -= 1;
        self.rq_lock(cpu).note_idle();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::SchedulerTestbed;
    use crate::topology::{SmtNumbering, Topology};
    use fairlab_event::{Cpu, Ns};

    /// Whether a wakeup from CPU 0 is left to CPU 1, on which `queued` tasks are queued.
    fn left(kernel: &str, queued: u32, leaving: bool) -> bool {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        let task = bed.spawn(0, 0);
        bed.sleep(0);
        for _ in 0..queued {
            bed.spawn(0, 1);
        }
        bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, Ns(1000));
        bed.scheduler.ttwu_queue_cond(task, Cpu(1), leaving)
    }

    #[test]
    fn within_a_cache_ever_more_is_left_to_the_target() {
        let cases = |kernel| {
            [(0, false), (0, true), (1, true), (2, true)].map(|(queued, on)| left(kernel, queued, on))
        };
        assert_eq!(cases("v5.7"), [false; 4]);
        assert_eq!(cases("v5.8"), [false, true, true, false]);
        assert_eq!(cases("debian-5.10"), [false, true, false, false]);
        assert_eq!(cases("v6.0"), [true, true, false, false]);
        assert_eq!(cases("v6.0+NO_TTWU_QUEUE"), [false; 4]);
    }

    /// The same in another cache, of a task that may use some CPUs.
    pub(crate) fn left_across_caches(kernel: &str, allowed: CpuMask) -> bool {
        let topology = Topology::regular(1, 2, 1, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        let task = bed.spawn_with(0, 1, Policy::Normal, allowed);
        bed.at(0);
        bed.scheduler.ttwu_queue_cond(task, Cpu(1), false)
    }

    /// Whether the stopper of a CPU of another cache is woken by that CPU.
    pub(crate) fn stopper_is_left(kernel: &str) -> bool {
        let topology = Topology::regular(1, 2, 1, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        let task = bed.spawn(0, 1);
        bed.scheduler.shared.tasks[task.index()].policy = Policy::Stop;
        bed.at(0);
        bed.scheduler.ttwu_queue_cond(task, Cpu(1), false)
    }

    #[test]
    fn a_stopper_is_left_to_another_cache_to_v6_6() {
        assert_eq!(
            ["v5.7", "v6.1", "v6.6", "v6.7", "v7.2"].map(stopper_is_left),
            [true, true, true, false, false]
        );
    }

    /// Whether a task that is just leaving a CPU of another cache is left there without a selection.
    pub(crate) fn left_where_leaving(kernel: &str) -> bool {
        let topology = Topology::regular(1, 2, 1, 1, SmtNumbering::Adjacent).expect("a machine");
        let mut bed = SchedulerTestbed::on(kernel, topology);
        let task = bed.spawn(0, 1);
        bed.leave(1);
        bed.at(0);
        bed.scheduler.queue_where_leaving(task).is_some()
    }

    #[test]
    fn across_caches_everything_is_unless_the_task_may_not_run_there() {
        for (kernel, expected) in [("v5.7", true), ("v5.19", true), ("v6.0", false)] {
            assert!(left_across_caches(kernel, CpuMask::ALL));
            assert_eq!(left_across_caches(kernel, CpuMask::single(Cpu(0))), expected, "{kernel}");
        }
    }

    #[test]
    fn a_task_that_is_still_leaving_needs_no_selection_from_v5_8_on() {
        for (kernel, expected) in [("v5.7", None), ("v5.8", Some(Cpu(1))), ("v6.6", Some(Cpu(1)))] {
            let mut bed = SchedulerTestbed::new(kernel, 2, 1);
            let task = bed.spawn(0, 1);
            bed.leave(1);
            bed.scheduler.set_here(Cpu(0), crate::core::KernelContext::Task, Ns(1000));
            let decision = bed.scheduler.queue_where_leaving(task);
            assert_eq!(decision.map(|decision| decision.cpu), expected, "{kernel}");
        }
    }
}
