//! `__schedule()` in its steps, and the tick.

use fairlab_event::{Cpu, EventKind, Switch, TaskState};

use crate::balance::rules::IdleReentry;
use crate::balance::{ArrivalUse, RepickedTask};
use crate::core::rules::SkippedClock;
use crate::decision::{PickDecision, PickReason, TickDecision, TickReason};
use crate::fair::rules::BuddyClearing;
use crate::fair_server::rules::IdleCharge;
use crate::pelt::LostIdleCheck;
use crate::rq::{DequeueFlags, DequeueOutcome, EnqueueFlags};
use crate::scheduler::Scheduler;
use crate::task::{OnRq, Policy, Task, TaskId};

impl Scheduler {
    /// Accounts the run time of `cpu`'s running task up to now.
    pub fn account(&mut self, cpu: Cpu) {
        self.rq_lock(cpu).update_rq_clock();
        self.rq_lock(cpu).update_curr_of();
    }

    /// A switch begins on `cpu`, whose running task sleeps in `prev_state` from now on or stays runnable; its run time is
    /// accounted.
    ///
    /// Where a wakeup that takes the CPU has set the queue's clock, it is not set again: so the woken task is charged for all
    /// that lies between the wakeup and its first instruction. To v6.6 neither a search for work nor another CPU sets it meanwhile.
    ///
    /// Kernel: `__schedule()` up to the pick, `update_rq_clock()` under `RQCF_ACT_SKIP`, kernel/sched/core.c. Variants:
    /// `ToTheSwitch` to v6.6, `AtItsBeginning` from v6.7 (5ebde09d9170).
    #[inline]
    pub fn begin_schedule(&mut self, cpu: Cpu, prev_state: TaskState) {
        let rq = &mut self.rqs[cpu.index()];
        rq.clock_stands = std::mem::take(&mut rq.skips_clock_update);
        self.rq_lock(cpu).update_rq_clock();
        if self.shared.generation.core.skipped_clock == SkippedClock::AtItsBeginning {
            self.rqs[cpu.index()].clock_stands = false;
        }
        if !prev_state.is_runnable() {
            self.deactivate_task(cpu, prev_state);
        }
        self.rq_lock(cpu).charge_before_pick();
    }

    /// The running task of `cpu` goes to sleep in `state`, by the clock of its queue: it leaves that, the switch follows.
    ///
    /// Kernel: `deactivate_task(DEQUEUE_SLEEP | DEQUEUE_NOCLOCK)`.
    #[inline]
    pub fn deactivate_task(&mut self, cpu: Cpu, state: TaskState) {
        let task = self.curr(cpu);
        assert!(!state.is_runnable(), "CPU {cpu}: a runnable task does not sleep");
        let known = &self.shared.tasks[task.index()];
        debug_assert_eq!(known.on_rq, OnRq::Queued, "CPU {cpu}: task {} runs, and goes to sleep", known.pid);
        // Before the dequeue: its statistics depend on how the task sleeps.
        self.shared.tasks[task.index()].on_rq = OnRq::Sleeping(state);
        // The states of an ending task do not suffer a wakeup that was not meant.
        let special = [TaskState::DEAD, TaskState::ZOMBIE].into_iter().any(|special| state.contains(special));
        let flags = DequeueFlags { sleep: true, special, ..DequeueFlags::default() };
        if !self.dequeue_task(task, flags) {
            self.shared.tasks[task.index()].on_rq = OnRq::Delayed(state);
        }
    }

    /// The task that `cpu` should run next. Pure: run time must be accounted ([`begin_schedule`](Self::begin_schedule)).
    ///
    /// Kernel: `pick_next_task()`, kernel/sched/core.c.
    /// Departs: of the deadline class there are only the threads that set clocks, which have no deadlines.
    pub fn pick_next_task(&self, cpu: Cpu) -> PickDecision {
        let rq = &self.rqs[cpu.index()];
        let idle = self.shared.cpus[cpu.index()].idle;
        let nothing = PickDecision { task: idle, reason: PickReason::Nothing };
        let fair = || self.shared.pick_task_fair(rq.cfs);
        self.shared.pick_above_fair(rq).or_else(fair).unwrap_or(nothing)
    }

    /// The idle task of `cpu` is picked while it runs. To v6.11 that sets it anew.
    ///
    /// Kernel: `set_next_task_idle()`, kernel/sched/idle.c.
    fn stay_idle(&mut self, cpu: Cpu) {
        if self.shared.generation.balance.idle_reentry == IdleReentry::Searches {
            self.rqs[cpu.index()].counters.sched_goidle += 1;
            self.update_idle_core(cpu);
        }
    }

    /// Lets `cpu` run `next`. `prev_state` is what the switch reports of the task that leaves. Returns whether tasks
    /// changed.
    ///
    /// Kernel: `put_prev_task()`, `set_next_task()`, `clear_tsk_need_resched()`, `context_switch()`.
    pub fn context_switch(&mut self, cpu: Cpu, next: TaskId, prev_state: TaskState) -> bool {
        let prev = self.curr(cpu);
        let known = &self.shared.tasks[next.index()];
        debug_assert_eq!(known.cpu, cpu, "task {} is given a CPU that is not its own", known.pid);
        if self.shared.trace.decisions {
            self.tell_pick(cpu, next);
        }
        if self.shared.generation.core.skipped_clock == SkippedClock::ToTheSwitch {
            self.rqs[cpu.index()].skips_clock_update = false;
            self.rqs[cpu.index()].clock_stands = false;
        }
        self.rqs[cpu.index()].counters.sched_count += 1;
        let is_fair = self.shared.tasks[next.index()].policy.is_fair();
        if is_fair && self.shared.generation.fair.buddy_clearing == BuddyClearing::AtPick {
            // Also at levels whose running entity stays.
            self.shared.clear_buddies_of_task(next);
        }
        if prev == next {
            if is_fair && self.shared.generation.balance.repicked == RepickedTask::InFront {
                self.task_rq_lock(next).note_picked(next);
            }
            if next == self.shared.cpus[cpu.index()].idle {
                self.stay_idle(cpu);
            }
            self.shared.clear_need_resched(cpu);
            return false;
        }
        let both_fair = [prev, next].iter().all(|task| self.shared.tasks[task.index()].policy.is_fair());
        if both_fair {
            self.task_rq_lock(prev).switch_fair(prev, next);
        } else {
            let turns_idle = next == self.shared.cpus[cpu.index()].idle;
            let first = self.shared.generation.pelt.lost_idle_check == LostIdleCheck::EveryPick;
            if turns_idle && first {
                self.rq_lock(cpu).turn_idle(prev);
            }
            self.put_prev_task(prev);
            if prev == self.shared.cpus[cpu.index()].idle {
                self.idle_ends_by_switch(cpu);
            }
            if turns_idle {
                self.rqs[cpu.index()].counters.sched_goidle += 1;
                if !first {
                    self.rq_lock(cpu).turn_idle(prev);
                }
                self.idle_begins(cpu);
                self.rq_lock(cpu).hrtick_stop();
            }
            self.set_next_task(next, true);
        }
        self.rq_lock(cpu).account_new_levels(Some(prev), next);
        // Only now: what the two report still shows the pending reschedule.
        self.shared.clear_need_resched(cpu);
        if self.shared.trace.enabled {
            let (leaves, starts) = (&self.shared.tasks[prev.index()], &self.shared.tasks[next.index()]);
            let switch = Switch {
                prev_comm: leaves.comm,
                prev_pid: leaves.pid,
                prev_prio: leaves.prio(),
                prev_state,
                next_comm: starts.comm,
                next_pid: starts.pid,
                next_prio: starts.prio(),
            };
            self.shared.report(EventKind::SchedSwitch(switch));
        }
        self.rq_lock(cpu).sched_info_switch(prev, next);
        self.shared.tasks[next.index()].in_iowait = false;
        self.shared.cpus[cpu.index()].curr = next;
        self.rq_lock(cpu).note_idle();
        self.finish_task_switch(prev);
        true
    }

    /// An ended task counts until its CPU runs another: what that looked for before has found its load.
    ///
    /// Kernel: `finish_task_switch()`, kernel/sched/core.c; `task_dead_fair()`, kernel/sched/fair.c.
    fn finish_task_switch(&mut self, prev: TaskId) {
        let prev_task = &self.shared.tasks[prev.index()];
        if prev_task.on_rq == OnRq::Dead && prev_task.policy.is_fair() {
            self.shared.remove_entity_load_avg(prev);
        }
        if self.shared.tasks[prev.index()].on_rq == OnRq::Dead
            && let Some(ended) = &mut self.ended
        {
            ended.push(prev);
        }
    }

    /// The periodic tick of `cpu`: accounts, and takes the CPU away where the rules say so.
    ///
    /// Kernel: `scheduler_tick()`, `task_tick_fair()`.
    pub fn scheduler_tick(&mut self, cpu: Cpu) -> TickDecision {
        let decision = self.decide_at_tick(cpu);
        if self.shared.trace.decisions {
            self.shared.tell_tick(cpu, decision);
        }
        decision
    }

    fn decide_at_tick(&mut self, cpu: Cpu) -> TickDecision {
        self.rq_lock(cpu).update_rq_clock();
        if self.shared.cpus[cpu.index()].need_resched_lazy {
            self.shared.resched_curr(cpu, "sched_tick");
        }
        self.mark_idle_at_tick(cpu);
        let task = self.curr(cpu);
        if self.shared.tasks[task.index()].policy == Policy::Swapper
            && self.shared.generation.server.idle_time == IdleCharge::AsRun
        {
            self.rq_lock(cpu).update_curr_idle();
        }
        if self.shared.tasks[task.index()].policy.is_fair() {
            let decision = self.task_rq_lock(task).task_tick_fair(task);
            self.update_overutilized_status(cpu);
            return decision;
        }
        if self.shared.tasks[task.index()].policy.is_rt() {
            return self.task_tick_rt(task);
        }
        if self.shared.tasks[task.index()].policy == Policy::Deadline {
            self.rq_lock(cpu).update_dl_rq_load_avg(true);
        }
        TickDecision { resched: false, reason: TickReason::Alone }
    }

    /// The running task of `cpu` calls `sched_yield()`; a switch follows.
    pub fn yield_task(&mut self, cpu: Cpu) {
        self.rq_lock(cpu).update_rq_clock();
        self.rqs[cpu.index()].counters.yld_count += 1;
        let task = self.curr(cpu);
        if self.shared.tasks[task.index()].policy.is_fair() {
            self.task_rq_lock(task).yield_task_fair(task);
        } else if self.shared.tasks[task.index()].policy.is_rt() {
            self.requeue_task_rt(task);
        }
    }

    /// Moves a queued task that does not run to `dest`, and lets it preempt there.
    ///
    /// Kernel: `detach_task()` and `attach_task()`, as balancing does.
    pub fn move_queued_task(&mut self, task: TaskId, dest: Cpu) {
        self.rq_lock(self.shared.tasks[task.index()].cpu).update_rq_clock();
        self.detach_task(task, dest);
        self.rq_lock(dest).update_rq_clock();
        self.attach_task(task);
    }

    /// Takes a queued task that does not run off its queue and gives it to `dest`.
    ///
    /// Kernel: `detach_task()`, kernel/sched/fair.c.
    pub(crate) fn detach_task(&mut self, task: TaskId, dest: Cpu) {
        let orig_cpu = self.shared.tasks[task.index()].cpu;
        let Task { pid, on_rq, .. } = self.shared.tasks[task.index()];
        assert!(
            self.curr(orig_cpu) != task && self.shared.tasks[task.index()].is_queued(),
            "only waiting tasks are moved: task {pid} of CPU {orig_cpu} runs, or is {on_rq:?}"
        );
        debug_assert_ne!(orig_cpu, dest, "task {pid} is moved to where it is");
        self.dequeue_task(task, DequeueFlags { migrating: true, ..DequeueFlags::default() });
        if self.shared.tasks[task.index()].policy.is_fair() {
            self.task_rq_lock(task).leave_averages_while_moving(task);
        }
        let (comm, pid, prio) = {
            let task = &self.shared.tasks[task.index()];
            (task.comm, task.pid, task.prio())
        };
        self.shared.report(EventKind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu: dest });
        self.shared.move_entity_to(task, dest);
    }

    /// Queues a task that was taken off another queue, and lets it preempt (`attach_task()`). It is not warm here
    /// (`ENQUEUE_MIGRATED`).
    pub(crate) fn attach_task(&mut self, task: TaskId) {
        let se = self.shared.tasks[task.index()].se;
        self.se_mut(se).exec_start = 0;
        self.enqueue_task(task, EnqueueFlags::default());
        self.check_preempt(task);
    }

    pub(crate) fn enqueue_task(&mut self, task: TaskId, flags: EnqueueFlags) {
        let Task { cpu, pid, se, .. } = self.shared.tasks[task.index()];
        debug_assert!(!self.se(se).on_rq, "task {pid} is queued twice on CPU {cpu}");
        self.task_rq_lock(task).sched_info_enqueue(task);
        let counts = match self.shared.tasks[task.index()].policy {
            Policy::Stop => {
                self.rqs[cpu.index()].stop.push(task);
                true
            }
            Policy::Deadline => {
                self.rqs[cpu.index()].dl.push(task);
                true
            }
            Policy::Fifo(_) | Policy::RoundRobin(_) => {
                self.watch_over_fair_tasks();
                self.enqueue_task_rt(task);
                !self.shared.cpus[cpu.index()].rt.is_throttled()
            }
            Policy::Swapper => unreachable!("idle tasks are never queued"),
            _ => {
                let counts = self.task_rq_lock(task).enqueue_task_fair(task, flags);
                if self.energy.is_some()
                    && (flags.wakeup || self.shared.generation.balance.arrival == ArrivalUse::Counts)
                {
                    self.update_overutilized_status(cpu);
                }
                counts
            }
        };
        if !self.entity_of(task).sched_delayed {
            self.shared.tasks[task.index()].on_rq = OnRq::Queued;
        }
        self.rq_lock(cpu).count_running(i32::from(counts));
    }

    /// Returns whether the task has left; otherwise it sleeps on its queue.
    #[inline]
    pub(crate) fn dequeue_task(&mut self, task: TaskId, flags: DequeueFlags) -> bool {
        let known = &self.shared.tasks[task.index()];
        match known.policy.is_fair() && self.shared.idle_policy_used {
            true => self.balancing_early(known.cpu, |scheduler| scheduler.take_off_queue(task, flags)),
            false => self.take_off_queue(task, flags),
        }
    }

    #[inline]
    fn take_off_queue(&mut self, task: TaskId, flags: DequeueFlags) -> bool {
        let Task { cpu, pid, policy, throttled, se, .. } = self.shared.tasks[task.index()];
        let stands = !policy.is_fair() || throttled || self.se(se).on_rq;
        debug_assert!(stands, "task {pid} leaves the queue of CPU {cpu}, on which it does not stand");
        if !flags.save {
            self.task_rq_lock(task).sched_info_dequeue(task);
        }
        let dequeued = match self.shared.tasks[task.index()].policy {
            Policy::Stop => {
                self.rqs[cpu.index()].stop.retain(|&queued| queued != task);
                DequeueOutcome::Counted
            }
            Policy::Deadline => {
                self.rqs[cpu.index()].dl.retain(|&queued| queued != task);
                DequeueOutcome::Counted
            }
            Policy::Fifo(_) | Policy::RoundRobin(_) => {
                self.dequeue_task_rt(task);
                match self.shared.cpus[cpu.index()].rt.is_throttled() {
                    true => DequeueOutcome::Uncounted,
                    false => DequeueOutcome::Counted,
                }
            }
            Policy::Swapper => unreachable!("idle tasks are never queued"),
            Policy::Normal | Policy::Batch | Policy::Idle => {
                self.task_rq_lock(task).dequeue_task_fair(task, flags)
            }
        };
        self.rq_lock(cpu).count_running(-i32::from(dequeued == DequeueOutcome::Counted));
        dequeued != DequeueOutcome::Delayed
    }

    #[inline]
    pub(crate) fn put_prev_task(&mut self, task: TaskId) {
        match self.shared.tasks[task.index()].policy {
            policy if policy.is_fair() => self.task_rq_lock(task).put_prev_task_fair(task),
            policy if policy.is_rt() => {
                self.update_curr_rt(task);
                self.rq_lock(self.shared.tasks[task.index()].cpu).update_rt_rq_load_avg(true);
            }
            Policy::Deadline => {
                self.rq_lock(self.shared.tasks[task.index()].cpu).update_dl_rq_load_avg(true);
            }
            Policy::Swapper => self.rq_lock(self.shared.tasks[task.index()].cpu).idle_time_ends(),
            _ => {}
        }
    }

    #[inline]
    pub(crate) fn set_next_task(&mut self, task: TaskId, picked: bool) {
        match self.shared.tasks[task.index()].policy {
            Policy::Stop => {}
            Policy::Deadline => {
                let cpu = self.shared.tasks[task.index()].cpu;
                if picked && self.shared.tasks[self.curr(cpu).index()].policy != Policy::Deadline {
                    self.rq_lock(cpu).update_dl_rq_load_avg(false);
                }
            }
            Policy::Fifo(_) | Policy::RoundRobin(_) => self.set_next_task_rt(task, picked),
            Policy::Swapper => {
                let (cpu, se) = (self.shared.tasks[task.index()].cpu, self.shared.tasks[task.index()].se);
                self.update_idle_core(cpu);
                self.se_mut(se).exec_start = self.rqs[cpu.index()].clock.0;
            }
            _ => self.task_rq_lock(task).set_next_task_fair(task, picked),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fairlab_event::{Cpu, Ns, TaskState};

    use crate::ablation::AblationSituation;
    use crate::testbed::{MS, SchedulerTestbed};

    pub(crate) const SITUATIONS: &[(&str, AblationSituation)] = &[("clock-stands-once", clock_of_a_search)];

    /// By what clock, in us from the wakeup, a CPU looks for work whose switch goes by the clock of a wakeup 1 ms before.
    fn clock_of_a_search(kernel: &str) -> u64 {
        let mut bed = SchedulerTestbed::new(kernel, 2, 1);
        bed.spawn(0, 0);
        bed.pass(MS);
        bed.at(0);
        bed.scheduler.account(Cpu(0));
        bed.scheduler.rqs[0].skips_clock_update = true;
        let wakeup = bed.scheduler.rqs[0].clock;
        bed.pass(MS);
        bed.leave(0);
        assert_eq!(bed.scheduler.rqs[0].clock, wakeup, "{kernel}: the switch itself");
        bed.scheduler.update_blocked_averages(Cpu(0));
        bed.scheduler.rqs[0].clock.since(wakeup).0 / 1000
    }

    #[test]
    fn a_search_for_work_goes_by_the_clock_of_the_wakeup_to_v6_6() {
        assert_eq!(["v5.10", "v6.6", "v6.7", "v6.12"].map(clock_of_a_search), [0, 0, 1000, 1000]);
    }

    /// When a task slept, and since when it is charged once it has run, us after its wakeup, which takes the CPU; `between`
    /// happens 20 us after that, the switch 50 us after, and it runs for 100 us.
    fn charged_from(kernel: &str, between: impl Fn(&mut SchedulerTestbed)) -> (u64, u64) {
        let mut bed = SchedulerTestbed::new(kernel, 4, 1);
        let (sleeper, runner) = (bed.spawn(0, 0), bed.spawn(0, 0));
        while bed.scheduler.curr(Cpu(0)) != sleeper {
            bed.run(0, 1);
        }
        bed.sleep(0);
        bed.run(0, 40);
        bed.at(0);
        let before = [sleeper, runner].map(|task| bed.scheduler.sum_exec_runtime(task));
        assert!(bed.wake(sleeper, 0), "{kernel}: it takes the CPU");
        bed.pass(20_000);
        between(&mut bed);
        bed.pass(30_000);
        assert_eq!(bed.schedule(0).task, sleeper, "{kernel}");
        bed.pass(100_000);
        bed.at(0);
        bed.scheduler.account(Cpu(0));
        let gained = |at: usize, task| bed.scheduler.sum_exec_runtime(task).since(before[at]).0 / 1000;
        (gained(1, runner), 150 - gained(0, sleeper))
    }

    #[test]
    fn an_ended_task_counts_until_its_cpu_runs_another() {
        let mut bed = SchedulerTestbed::new("v6.1", 1, 1);
        let ends = bed.spawn(0, 0);
        bed.schedule(0);
        bed.pass(10 * MS);
        bed.at(0);
        bed.scheduler.exit(Cpu(0));
        let removed = |bed: &SchedulerTestbed| bed.scheduler.cfs(bed.scheduler.rqs[0].cfs).tracked.removed;
        assert_eq!(removed(&bed).nr, 0, "who looks for work now finds its load");
        let idle = bed.scheduler.idle_task(Cpu(0));
        bed.scheduler.context_switch(Cpu(0), idle, TaskState::DEAD);
        let load = bed.entity(ends).avg.load_avg;
        assert!(load > 0);
        assert_eq!((removed(&bed).nr, removed(&bed).load_avg), (1, load));
    }

    #[test]
    fn a_woken_task_is_charged_from_the_last_clock_before_its_switch() {
        for kernel in ["v5.10", "v6.1"] {
            assert_eq!(charged_from(kernel, |_| ()), (0, 0), "{kernel}: its wakeup");
            let ticks = |bed: &mut SchedulerTestbed| {
                bed.tick(0);
            };
            assert_eq!(charged_from(kernel, ticks), (20, 20), "{kernel}: a tick");
        }
    }

    #[test]
    fn a_switch_that_nobody_asked_for_goes_by_its_own_clock() {
        for kernel in ["v4.18", "v6.1", "v6.12", "v7.0"] {
            let mut bed = SchedulerTestbed::new(kernel, 4, 1);
            let task = bed.spawn(0, 0);
            bed.run(0, 1);
            bed.sleep(0);
            bed.pass(MS);
            assert!(bed.wake(task, 0), "{kernel}: the idle task makes way");
            bed.pass(10_000);
            bed.schedule(0);
            bed.pass(5_000);
            let before = bed.scheduler.sum_exec_runtime(task);
            bed.sleep(0);
            assert_eq!(bed.scheduler.sum_exec_runtime(task).since(before), Ns(15_000), "{kernel}: both once");
        }
    }
}
