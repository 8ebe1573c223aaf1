//! `try_to_wake_up()` in its steps, so that a driver can let time pass between them.

use std::cmp::Ordering;

use fairlab_event::EventKind;

use crate::core::wake::{WakeFlags, WakeStart};
use crate::decision::{CpuDecision, PreemptDecision, PreemptReason};
use crate::domain::DomainId;
use crate::fair::FailedTest;
use crate::ids::TaskId;
use crate::rq::EnqueueFlags;
use crate::scheduler::Scheduler;
use crate::task::{OnRq, Task};

impl Scheduler {
    /// Begins waking `task`, in the context of this CPU's running task. Only of a task that has not left its queue are the
    /// flags of use here.
    ///
    /// Kernel: `try_to_wake_up()` up to the selection of a CPU, `ttwu_runnable()`.
    pub fn ttwu_begin(&mut self, task: TaskId, flags: WakeFlags) -> WakeStart {
        self.shared.report_that(|shared| EventKind::SchedWaking(shared.wakeup_of(task)));
        match self.shared.tasks[task.index()].on_rq {
            OnRq::Sleeping(_) => {
                self.shared.tasks[task.index()].on_rq = OnRq::Waking;
                WakeStart::Slept
            }
            OnRq::Delayed(_) => {
                let cpu = self.shared.tasks[task.index()].cpu;
                self.rq_lock(cpu).update_rq_clock();
                self.shared.tasks[task.index()].on_rq = OnRq::Queued;
                let se = self.shared.tasks[task.index()].se;
                self.rq_lock(cpu).requeue_delayed_entity(se);
                self.task_rq_lock(task).sched_info_wait(task);
                if self.curr(cpu) != task {
                    self.check_preempt_by_wakeup(task, flags);
                }
                self.shared.report(EventKind::SchedWakeup(self.shared.wakeup_of(task)));
                self.ttwu_stat(task);
                WakeStart::StillQueued
            }
            OnRq::Queued => {
                if self.curr(self.shared.tasks[task.index()].cpu) != task {
                    self.rq_lock(self.shared.tasks[task.index()].cpu).update_rq_clock();
                    self.check_preempt_by_wakeup(task, flags);
                }
                self.shared.report(EventKind::SchedWakeup(self.shared.wakeup_of(task)));
                self.ttwu_stat(task);
                WakeStart::StillQueued
            }
            state => panic!("a task cannot be woken while it is {state:?}"),
        }
    }

    /// Applies a selected CPU: notes whom the waker wakes, and moves the sleeping task there.
    ///
    /// Kernel: `record_wakee()`, `set_task_cpu()`, `migrate_task_rq_fair()`.
    pub fn apply_cpu(&mut self, task: TaskId, decision: CpuDecision) {
        let known = &self.shared.tasks[task.index()];
        debug_assert!(
            !known.is_queued(),
            "task {} is queued, and is given CPU {} as if it slept",
            known.pid,
            decision.cpu
        );
        self.remember_selection(self.shared.trace.here, task, decision);
        if self.shared.trace.decisions {
            self.shared.tell_cpu(task, decision);
        }
        let orig_cpu = self.shared.tasks[task.index()].cpu;
        if orig_cpu == decision.cpu {
            self.ttwu_stat(task);
            return;
        }
        let (comm, pid, prio) = {
            let task = &self.shared.tasks[task.index()];
            (task.comm, task.pid, task.prio())
        };
        self.shared.report(EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu: decision.cpu });
        self.shared.leave_queue_while_waking(task);
        if self.shared.tasks[task.index()].policy.is_fair() {
            self.task_rq_lock(task).leave_averages_while_waking(task);
        }
        self.shared.move_entity_to(task, decision.cpu);
        self.ttwu_stat(task);
    }

    /// Counts a wakeup, at the CPU that wakes.
    ///
    /// Kernel: `ttwu_stat()`, kernel/sched/core.c.
    pub fn ttwu_stat(&mut self, task: TaskId) {
        let (here, cpu) = (self.shared.trace.here, self.shared.tasks[task.index()].cpu);
        self.rqs[here.index()].counters.count_wakeup(here == cpu);
        let spans_both = |id: &DomainId| self.domains.domain(*id).span.contains(cpu);
        if let Some(lowest) = (here != cpu).then(|| self.domains.ids_of(here).find(spans_both)).flatten() {
            self.domains.domain_mut(lowest).counters.ttwu_wake_remote += 1;
        }
    }

    /// Queues a woken task on its CPU and lets it preempt.
    ///
    /// Kernel: `ttwu_do_activate()`.
    pub fn ttwu_do_activate(&mut self, task: TaskId, flags: WakeFlags) {
        let known = &self.shared.tasks[task.index()];
        debug_assert_eq!(
            known.on_rq,
            OnRq::Waking,
            "task {} is not being woken, and is queued on CPU {}",
            known.pid,
            known.cpu
        );
        self.rq_lock(known.cpu).update_rq_clock();
        let migrated = flags.migrated;
        self.enqueue_task(task, EnqueueFlags { wakeup: true, migrated, initial: false });
        self.check_preempt_by_wakeup(task, flags);
        self.shared.report_that(|shared| EventKind::SchedWakeup(shared.wakeup_of(task)));
        self.idle_ends_by_wakeup(self.shared.tasks[task.index()].cpu);
    }

    /// Whether `task`, just queued, takes its CPU from the running task.
    ///
    /// The queue's run time must be accounted up to now ([`Scheduler::account`]).
    ///
    /// Kernel: `check_preempt_curr()` (v6.6: `wakeup_preempt()`), kernel/sched/core.c.
    pub fn wakeup_preempt(&self, task: TaskId) -> PreemptDecision {
        self.wakeup_preempt_when(task, self.need_resched_at_once(self.shared.tasks[task.index()].cpu))
    }

    /// The same, with a reschedule `pending` or not.
    fn wakeup_preempt_when(&self, task: TaskId, pending: bool) -> PreemptDecision {
        let curr = self.curr(self.shared.tasks[task.index()].cpu);
        let early = self.wakeup_preempt_early(curr, task, pending);
        early.unwrap_or_else(|| self.shared.check_preempt_wakeup(task, self.shared.competitors(curr, task)))
    }

    /// What is decided without a look at virtual times; only two fair tasks may need one.
    fn wakeup_preempt_early(&self, curr: TaskId, task: TaskId, pending: bool) -> Option<PreemptDecision> {
        let [running, woken] = [curr, task].map(|task| self.shared.tasks[task.index()].policy);
        if running.is_fair() && woken.is_fair() {
            return self.shared.preempts_without_vruntime(curr, task, pending);
        }
        let decide = |preempt, reason| Some(PreemptDecision { preempt, reason });
        match woken.class_rank().cmp(&running.class_rank()) {
            Ordering::Greater => decide(true, PreemptReason::HigherClass),
            Ordering::Less => decide(false, PreemptReason::LowerClass),
            Ordering::Equal if woken.is_rt() => Some(self.wakeup_preempt_rt(curr, task)),
            Ordering::Equal => decide(false, PreemptReason::SameEntity),
        }
    }

    fn check_preempt_by_wakeup(&mut self, task: TaskId, flags: WakeFlags) {
        self.shared.tasks[task.index()].woken_sync = flags.sync;
        self.check_preempt(task);
        self.shared.tasks[task.index()].woken_sync = false;
    }

    /// Decides whether `task` preempts, and applies it.
    ///
    /// Kernel: `check_preempt_curr()` (v6.6: `wakeup_preempt()`), kernel/sched/core.c.
    pub(crate) fn check_preempt(&mut self, task: TaskId) -> PreemptDecision {
        let Task { cpu, policy, .. } = self.shared.tasks[task.index()];
        let context = &self.shared.cpus[cpu.index()];
        // Charging may itself ask for a reschedule; the test goes on all the same.
        let (curr, pending) = (context.curr, context.need_resched);
        if policy.is_fair() && self.shared.tasks[curr.index()].policy.is_fair() {
            self.rq_lock(cpu).probe_test(curr, task);
        }
        let mut decision = match self.wakeup_preempt_early(curr, task, pending) {
            Some(decision) => {
                let charges = self.shared.generation.preemption.failed_test == FailedTest::Any;
                if charges && decision.reason == PreemptReason::PolicyNeverPreempts {
                    self.rq_lock(cpu).update_curr_of();
                }
                decision
            }
            None => {
                // Groups above the two, and those below them, are charged when they are looked at.
                let competitors = self.shared.competitors(curr, task);
                match self.shared.competes_on_one_queue() {
                    true => self.rq_lock(cpu).update_curr_of(),
                    false => {
                        let cfs_rq = self.se(competitors.0).cfs_rq;
                        self.rq_lock(cpu).update_curr(cfs_rq);
                    }
                }
                self.shared.check_preempt_wakeup(task, competitors)
            }
        };
        while self.task_rq_lock(task).dequeue_delayed_in_test(task, decision) {
            decision = self.wakeup_preempt_when(task, pending);
        }
        if self.shared.trace.decisions {
            self.shared.tell_preempt(cpu, (curr, task), decision);
        }
        self.balance_early(cpu);
        if policy.is_fair() {
            self.shared.set_buddies_after(task, decision);
            self.task_rq_lock(task).protection_after(task, decision);
        }
        if decision.preempt {
            self.resched_after(task, decision);
        }
        if self.need_resched_at_once(cpu) && self.shared.tasks[curr.index()].on_rq == OnRq::Queued {
            self.rq_lock(cpu).rq_clock_skip_update();
        }
        decision
    }

    /// Asks the running task to make way if a test for preemption said so; fair tasks do so lazily for each other.
    pub(crate) fn resched_after(&mut self, task: TaskId, decision: PreemptDecision) {
        let cpu = self.shared.tasks[task.index()].cpu;
        match (decision.preempt, decision.reason, self.shared.tasks[task.index()].policy.is_fair()) {
            (false, _, _) => {}
            (true, PreemptReason::HigherClass, _) | (true, _, false) => {
                self.shared.resched_curr(cpu, "wakeup_preempt");
            }
            (true, _, true) => self.shared.resched_curr_lazy(cpu, "check_preempt_wakeup"),
        }
    }

    /// Counts how often a task wakes someone else than last time; halved each second, by jiffies. It counts only whom the fair class
    /// selects a CPU for: nobody of another class, and nobody who is bound to one CPU.
    ///
    /// Kernel: `select_task_rq()`, kernel/sched/core.c; `record_wakee()`, kernel/sched/fair.c.
    pub fn record_wakee(&mut self, waker: TaskId, wakee: TaskId) {
        self.record_wakee_in(self.shared.jiffies(), waker, wakee);
    }

    /// Counts it at this jiffy.
    pub(crate) fn record_wakee_in(&mut self, jiffies: u64, waker: TaskId, wakee: TaskId) {
        let woken = &self.shared.tasks[wakee.index()];
        if !woken.policy.is_fair() || woken.allowed.only_one_in_both(self.shared.topology.online()) {
            return;
        }
        let (second, woken) = (self.ticks_per_second(), woken.pid);
        let task = &mut self.shared.tasks[waker.index()];
        if task.wakee_flip_decay.is_none_or(|halved| jiffies > halved + second) {
            task.wakee_flips >>= 1;
            task.wakee_flip_decay = Some(jiffies);
        }
        if task.last_wakee != Some(woken) {
            task.last_wakee = Some(woken);
            task.wakee_flips += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use fairlab_event::Cpu;

    use crate::cpumask::CpuMask;
    use crate::task::Policy;
    use crate::testbed::SchedulerTestbed;

    #[test]
    fn whoever_has_no_choice_of_cpus_or_is_of_another_class_does_not_count_as_woken() {
        let mut bed = SchedulerTestbed::new("v5.10", 4, 1);
        let waker = bed.spawn(0, 0);
        let free = [bed.spawn(0, 0), bed.spawn(0, 0)];
        let bound = bed.spawn_with(0, 1, Policy::Normal, CpuMask::single(Cpu(1)));
        let urgent = bed.spawn_with(0, 1, Policy::Fifo(1), CpuMask::ALL);
        let mut flips_after = |wakee| {
            bed.scheduler.record_wakee(waker, wakee);
            bed.scheduler.shared.tasks[waker.index()].wakee_flips
        };
        assert_eq!([free[0], bound, urgent, free[0], free[1]].map(&mut flips_after), [1, 1, 1, 1, 2]);
    }

    #[test]
    fn how_often_it_wakes_another_is_halved_by_jiffies() {
        // HZ 1000: the first wakeup halves what there is, and the next one does so a second and a jiffy later.
        let flips_after = |first: u64, second: u64| {
            let mut bed = SchedulerTestbed::new("v6.1", 4, 1);
            let (waker, wakee) = (bed.spawn(0, 0), bed.spawn(0, 0));
            for at in [first, second] {
                bed.scheduler.shared.tasks[waker.index()].wakee_flips = 8;
                bed.pass(at - bed.now.0);
                bed.at(0);
                bed.scheduler.record_wakee(waker, wakee);
            }
            bed.scheduler.shared.tasks[waker.index()].wakee_flips
        };
        assert_eq!(flips_after(900_000, 1_000_950_000), 8, "more than a second, and 1000 jiffies");
        assert_eq!(flips_after(900_000, 1_001_000_000), 4, "and 1001");
    }
}
