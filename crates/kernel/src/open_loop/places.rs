//! Tasks that come, go and change groups as a real kernel had them do, in open loop.
//!
//! Must not know: what the model would have done with them.

use fairlab_event::{Cpu, Ns, TaskState};

use super::EntityId;
use crate::core::KernelContext;
use crate::decision::{PreemptDecision, TickDecision};
use crate::entity::{CfsRqId, SeId};
use crate::fair::load_update::LoadUpdate;
use crate::fair::rules::ForkPlacement;
use crate::group::{GroupId, MovedWaiting};
use crate::rq::{DequeueFlags, EnqueueFlags};
use crate::scheduler::Scheduler;
use crate::task::{OnRq, Policy, TaskId};

impl Scheduler {
    /// Puts a task on `cpu`'s queue where its vruntime says, without placing it: as a snapshot shows it.
    pub fn lay_on_queue(&mut self, task: TaskId, cpu: Cpu) {
        if self.is_on_queue(task) || self.task(task).policy == Policy::Swapper {
            return;
        }
        self.bring(task, cpu);
        if !self.task(task).policy.is_fair() {
            self.stand_on(cpu);
            self.enqueue_task(task, EnqueueFlags::default());
            return;
        }
        self.shared.tasks[task.index()].on_rq = OnRq::Queued;
        self.rqs[cpu.index()].nr_running += 1;
        self.shared.overloaded |= self.rqs[cpu.index()].nr_running == 2;
        self.rq_lock(cpu).note_idle();
        // What its averages were is not known; they count on this queue from now on.
        self.stand_on(cpu);
        let (se, joins) = (self.task(task).se, LoadUpdate { attach: true, ..LoadUpdate::AGE });
        self.rq_lock(cpu).update_load_avg(se, joins);
        self.shared.util_est_enqueue(task);
        let mut level = Some(self.task(task).se);
        let mut idle = self.task(task).policy == Policy::Idle;
        self.shared.idle_policy_used |= idle;
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            if !self.se(se).on_rq {
                self.shared.enqueue_runnable_load_avg(se);
                self.lay_entity(cfs_rq, se);
            } else if self.se(se).sched_delayed {
                self.entity_rq_lock(se).clear_delayed(se);
            }
            self.cfs_mut(cfs_rq).h_nr_running += 1;
            self.cfs_mut(cfs_rq).h_nr_idle += u32::from(idle);
            idle |= self.shared.counts_as_idle(cfs_rq);
            level = self.se(se).parent;
        }
        if self.shared.competes_on_one_queue() {
            self.shared.lay_on_line(self.task(task).se);
        }
        let mut list = self.rqs[cpu.index()].cfs_tasks;
        list.push_newest(&mut self.shared.tasks, task);
        self.rqs[cpu.index()].cfs_tasks = list;
    }

    fn lay_entity(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let load = self.se(se).load;
        let queue = self.cfs_mut(cfs_rq);
        queue.load.add(load);
        queue.nr_running += 1;
        self.se_mut(se).on_rq = true;
        // Nothing has placed it here: what it asks for may be anything.
        self.shared.own_requests = true;
        if self.cfs(cfs_rq).curr != Some(se) && !self.shared.competes_on_one_queue() {
            self.shared.lay_on_timeline(cfs_rq, se);
        }
    }

    /// A task that is on no queue goes to `cpu`. Where it was the running one of another, that one idles until the
    /// recording shows what it runs; a sleep on a queue that it no longer stands on is over.
    fn bring(&mut self, task: TaskId, cpu: Cpu) {
        if self.task(task).cpu != cpu {
            self.leave_cpu(task);
        }
        let se = self.task(task).se;
        self.se_mut(se).sched_delayed = false;
        self.shared.move_entity_to(task, cpu);
    }

    fn leave_cpu(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        let idle = self.shared.cpus[cpu.index()].idle;
        if self.curr(cpu) == task && task != idle {
            self.stand_on(cpu);
            self.context_switch(cpu, idle, TaskState::RUNNABLE);
        }
    }

    /// Lets a task sleep on `cpu` that is known to sleep there.
    pub fn lay_asleep(&mut self, task: TaskId, cpu: Cpu) {
        if self.is_on_queue(task) {
            return;
        }
        self.bring(task, cpu);
        self.shared.tasks[task.index()].on_rq = OnRq::Sleeping(TaskState::INTERRUPTIBLE);
    }

    /// Lets `cpu` run `task`, whatever it ran.
    pub fn force_curr(&mut self, cpu: Cpu, task: TaskId) {
        if !self.is_on_queue(task) {
            self.lay_on_queue(task, cpu);
        }
        if self.task(task).cpu == cpu {
            // Whoever runs has been woken.
            self.force_delayed_awake(task);
            self.stand_on(cpu);
            self.context_switch(cpu, task, TaskState::RUNNABLE);
        }
    }

    /// Takes a waiting task off its queue and gives it to `dest`, where it is not queued yet; also one that sleeps there.
    ///
    /// Kernel: `detach_task()`, the first half of `move_queued_task()`.
    pub fn detach(&mut self, task: TaskId, dest: Cpu) {
        self.leave_cpu(task);
        let cpu = self.task(task).cpu;
        self.stand_on(cpu);
        self.dequeue_task(task, DequeueFlags { migrating: true, ..DequeueFlags::default() });
        self.shared.tasks[task.index()].on_rq = OnRq::Waking;
        if self.task(task).policy.is_fair() {
            self.task_rq_lock(task).leave_averages_while_moving(task);
        }
        self.shared.move_entity_to(task, dest);
    }

    /// Queues a detached task on its CPU.
    ///
    /// Kernel: `attach_task()`, without its test for preemption.
    pub fn attach(&mut self, task: TaskId) {
        self.stand_on(self.task(task).cpu);
        let se = self.task(task).se;
        self.se_mut(se).exec_start = 0;
        self.enqueue_task(task, EnqueueFlags::default());
        if self.entity_of(task).sched_delayed {
            self.shared.tasks[task.index()].on_rq = OnRq::Delayed(TaskState::INTERRUPTIBLE);
        }
    }

    /// A sleeping task's CPU becomes `dest`, before it is queued there, at `now`.
    ///
    /// Kernel: `set_task_cpu()`, `migrate_task_rq_fair()`.
    pub fn migrate_waking(&mut self, task: TaskId, dest: Cpu, now: Ns) {
        self.leave_cpu(task);
        self.set_here(dest, KernelContext::Task, now);
        self.shared.leave_queue_while_waking(task);
        if self.task(task).policy.is_fair() {
            self.task_rq_lock(task).leave_averages_while_waking(task);
        }
        self.bring(task, dest);
    }

    /// Queues a woken task on its CPU.
    ///
    /// Kernel: `ttwu_do_activate()`, without its test for preemption.
    pub fn activate_woken(&mut self, task: TaskId, migrated: bool) {
        self.stand_on(self.task(task).cpu);
        let se = self.task(task).se;
        self.se_mut(se).sched_delayed = false;
        self.enqueue_task(task, EnqueueFlags { wakeup: true, migrated, initial: false });
    }

    /// Places a new task on the queue of the running task of `cpu`, which creates it.
    pub fn place_forked(&mut self, child: TaskId, cpu: Cpu) {
        self.stand_on(cpu);
        self.fork(child);
    }

    /// Queues a new task on `cpu` for the first time, without its test for preemption
    /// ([`apply_preempt`](Self::apply_preempt) ends that).
    pub fn activate_new(&mut self, task: TaskId, cpu: Cpu) {
        self.bring(task, cpu);
        self.stand_on(cpu);
        self.task_rq_lock(task).init_task_load(task);
        let initial = self.shared.generation.fair.fork_placement == ForkPlacement::WhereQueued;
        self.enqueue_task(task, EnqueueFlags { initial, ..EnqueueFlags::default() });
        self.shared.tasks[task.index()].is_new = true;
    }

    /// The running task of `cpu` leaves its queue, to come back at once. Returns whether it was there.
    ///
    /// Kernel: the first half of `sched_move_task()`, also at a task's exit with autogroups (`moved`); or of a change of
    /// affinity.
    pub fn take_running_off(&mut self, cpu: Cpu, moved: bool) -> bool {
        let task = self.curr(cpu);
        let queued = self.is_on_queue(task) && self.task(task).policy.is_fair();
        if queued {
            self.stand_on(cpu);
            self.dequeue_task(task, DequeueFlags { save: !moved, ..DequeueFlags::default() });
            self.put_prev_task(task);
        }
        queued
    }

    /// It comes back to its queue, or to that of another group: the second half.
    pub fn put_running_back(&mut self, cpu: Cpu, group: Option<GroupId>) {
        let task = self.curr(cpu);
        self.stand_on(cpu);
        self.change_group(task, group);
        self.enqueue_task(task, EnqueueFlags::default());
        self.set_next_task(task, false);
    }

    /// A waiting task leaves its queue for that of another group, which it joins by [`attach`](Self::attach).
    ///
    /// Kernel: `sched_move_task()`, up to where the task is queued again.
    pub fn leave_for_group(&mut self, task: TaskId, group: Option<GroupId>) {
        self.stand_on(self.task(task).cpu);
        self.dequeue_task(task, DequeueFlags::default());
        self.shared.tasks[task.index()].on_rq = OnRq::Waking;
        self.change_group(task, group);
    }

    /// Whether a waiting task that has changed groups is tested for preemption (`MovedWaiting`).
    pub fn tests_regrouped(&self) -> bool {
        self.shared.generation.groups.moved_waiting == MovedWaiting::MayPreempt
    }

    /// A task that does not run changes groups.
    ///
    /// Kernel: `sched_move_task()`, `task_move_group_fair()`.
    pub fn regroup_sleeping(&mut self, task: TaskId, group: GroupId) {
        let relative = self.shared.vruntime_is_relative_off_queue() && self.task(task).policy.is_fair();
        let se = self.task(task).se;
        if self.is_on_queue(task) {
            self.stand_on(self.task(task).cpu);
            self.off_and_on(task, false, |scheduler| scheduler.change_group(task, Some(group)));
            return;
        }
        if relative {
            let cfs_rq = self.se(se).cfs_rq;
            self.queue_rq_lock(cfs_rq).place_entity(cfs_rq, se, EnqueueFlags::default());
            self.shared.make_relative(cfs_rq, se);
        }
        self.change_group(task, Some(group));
        if relative {
            self.shared.make_absolute(self.se(se).cfs_rq, se);
        }
    }

    pub(super) fn change_group(&mut self, task: TaskId, group: Option<GroupId>) {
        if let Some(group) = group.filter(|group| (group.0 as usize) < self.shared.groups.len()) {
            let se = self.task(task).se;
            self.entity_rq_lock(se).detach_entity_cfs_rq(se);
            self.se_mut(se).avg.last_update_time = 0;
            self.set_task_group(task, group);
            self.entity_rq_lock(se).attach_entity_cfs_rq(se);
        }
    }

    /// Takes a task off its queue, lets `change` work on it, and puts it back.
    pub(super) fn off_and_on(&mut self, task: TaskId, save: bool, change: impl FnOnce(&mut Scheduler)) {
        let (queued, runs) = (self.is_on_queue(task), self.curr(self.task(task).cpu) == task);
        if queued {
            self.dequeue_task(task, DequeueFlags { save, ..DequeueFlags::default() });
        }
        if runs {
            self.put_prev_task(task);
        }
        change(self);
        if queued {
            self.enqueue_task(task, EnqueueFlags::default());
        }
        if runs {
            self.set_next_task(task, false);
        }
    }

    /// A task that sleeps on its queue is woken there, without its test for preemption (`ttwu_runnable()`).
    pub fn force_delayed_awake(&mut self, task: TaskId) {
        if self.is_delayed(task) {
            self.stand_on(self.task(task).cpu);
            self.shared.tasks[task.index()].on_rq = OnRq::Queued;
            let se = self.task(task).se;
            self.entity_rq_lock(se).requeue_delayed_entity(se);
        }
    }

    /// A group's entity that stays on its queue though nothing is below it is about to have something again.
    pub fn force_delayed_group_awake(&mut self, entity: EntityId) {
        let view = self.se(entity.0);
        if view.task.is_none() && view.on_rq && view.sched_delayed {
            self.stand_on(self.cfs(view.cfs_rq).cpu);
            self.entity_rq_lock(entity.0).requeue_delayed_entity(entity.0);
        }
    }

    /// A task that sleeps on its queue leaves it now.
    pub fn force_delayed_out(&mut self, task: TaskId) {
        if let OnRq::Delayed(state) = self.task(task).on_rq {
            self.stand_on(self.task(task).cpu);
            self.shared.tasks[task.index()].on_rq = OnRq::Sleeping(state);
            self.dequeue_task(task, DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() });
        }
    }

    /// A group's entity that stays on its queue though nothing is below it leaves it now.
    pub fn force_delayed_group_out(&mut self, entity: EntityId) {
        let view = self.se(entity.0);
        if view.task.is_none() && view.on_rq && view.sched_delayed {
            self.stand_on(self.cfs(view.cfs_rq).cpu);
            self.entity_rq_lock(entity.0).dequeue_entities(
                entity.0,
                DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() },
            );
        }
    }

    /// A task that has just left its queue is on it again, asleep: the kernel has put its dequeue off.
    pub fn lay_delayed(&mut self, task: TaskId, cpu: Cpu) {
        let OnRq::Sleeping(state) = self.task(task).on_rq else { return };
        self.lay_on_queue(task, cpu);
        self.shared.util_est_dequeue(task);
        let se = self.task(task).se;
        self.shared.tasks[task.index()].on_rq = OnRq::Delayed(state);
        self.entity_rq_lock(se).set_delayed(se);
    }

    /// Whether the waker of `task`, which is tested for preemption next, is about to sleep ([`apply_preempt`](Self::apply_preempt)
    /// ends that).
    pub fn force_woken_sync(&mut self, task: TaskId, sync: bool) {
        self.shared.tasks[task.index()].woken_sync = sync;
    }

    /// Whether a promise of its waker would decide the test of `task` for preemption.
    pub fn heeds_promises(&self, task: TaskId) -> bool {
        let compared = self.compared_entities(task);
        compared.is_some_and(|(curr, woken)| self.shared.becomes_buddy(task, (curr.0, woken.0)))
    }

    /// Applies what a test for preemption found, or what the kernel did instead.
    pub fn apply_preempt(&mut self, task: TaskId, decision: PreemptDecision) {
        if self.task(task).policy.is_fair() {
            self.shared.set_buddies_after(task, decision);
            self.task_rq_lock(task).protection_after(task, decision);
        }
        let tested = &mut self.shared.tasks[task.index()];
        (tested.is_new, tested.woken_sync) = (false, false);
        self.resched_after(task, decision);
    }

    /// The tick of `cpu`, at the time of its runqueue: accounts what is not accounted yet, and asks at every level.
    pub fn tick_here(&mut self, cpu: Cpu) -> TickDecision {
        self.stand_on(cpu);
        self.scheduler_tick(cpu)
    }
}
