//! What an open-loop driver needs and nobody else: to bring the state to where a real kernel had it.
//!
//! A verifier walks a recording, asks for decisions (`&self`), and then applies what the kernel *did*. Where that is
//! not what the model decides, the methods here force it. The time of a runqueue is then not the trace's clock but the
//! sum of what the kernel charged: [`Scheduler::charge`] takes a run time as the kernel printed it.
//!
//! Must not know: traces, and what counts as agreement.

use fairlab_event::{Cpu, Ns, TaskState};

use crate::core::{DequeueFlags, EnqueueFlags, Mode, Scheduler};
use crate::decision::{PreemptDecision, TickDecision, TickReason};
use crate::entity::{CfsRqId, SeId};
use crate::generation::behaviour::{ForkPlacement, TickPreemption};
use crate::task::{OnRq, Policy, TaskId};
use crate::vruntime::Vruntime;
use crate::weight::LoadWeight;

/// What a task's entity holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityView {
    /// The task; `None` for a group's entity.
    pub task: Option<TaskId>,
    /// Its point on the queue's virtual time line.
    pub vruntime: Vruntime,
    /// When its request should be done (EEVDF).
    pub deadline: Vruntime,
    /// Lag when it last left a queue, virtual ns.
    pub vlag: i64,
    /// Its distance to its deadline between two queues, virtual ns (`rel_deadline`).
    pub relative_deadline: Option<i64>,
    /// Its request, ns.
    pub slice: u64,
    /// Asleep, but still competing.
    pub delayed: bool,
    /// Its weight, scaled down.
    pub weight: u64,
    /// Whether it counts on its queue.
    pub on_rq: bool,
}

/// One queue as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// The zero of its virtual time line.
    pub min_vruntime: Vruntime,
    /// The running entity, if it is still on the queue.
    pub curr: Option<EntityView>,
    /// The waiting ones, in order of the time line.
    pub waiting: Vec<EntityView>,
}

/// Time.
impl Scheduler {
    /// The time of a CPU's runqueue.
    pub fn rq_clock(&self, cpu: Cpu) -> Ns {
        self.rqs[cpu.index()].clock
    }

    /// Sets the time of a CPU's runqueue.
    pub fn set_rq_clock(&mut self, cpu: Cpu, clock: Ns) {
        self.rqs[cpu.index()].clock = clock;
    }

    /// Stands on `cpu` at the time of its own runqueue, so that no step charges anything by itself.
    fn stand_on(&mut self, cpu: Cpu) {
        let clock = self.rq_clock(cpu);
        self.set_here(cpu, Mode::Task, clock);
    }

    /// Charges the running fair task of `cpu` with `runtime`, at its own level, as the kernel reported it. The queue's
    /// clock follows. Returns where that leads; `None` when no fair task runs.
    pub fn charge(&mut self, cpu: Cpu, runtime: Ns) -> Option<Vruntime> {
        let task = self.curr(cpu);
        if !self.task(task).policy.is_fair() {
            return None;
        }
        let entity = self.entity_of(task);
        let cfs_rq = entity.cfs_rq;
        self.rqs[cpu.index()].clock = Ns(entity.exec_start + runtime.0);
        self.update_curr(cfs_rq);
        Some(self.entity_of(task).vruntime)
    }

    /// Virtual time that `task`'s weight makes of `runtime`.
    pub fn virtual_time(&self, task: TaskId, runtime: Ns) -> u64 {
        self.calc_delta_fair(self.entity_of(task).load, runtime.0)
    }
}

/// Looking.
impl Scheduler {
    /// What a task's entity holds.
    pub fn entity_view(&self, task: TaskId) -> EntityView {
        self.view(self.task(task).se)
    }

    fn view(&self, se: SeId) -> EntityView {
        let entity = self.se(se);
        EntityView {
            task: entity.task,
            vruntime: entity.vruntime,
            deadline: entity.deadline,
            vlag: entity.vlag,
            relative_deadline: entity.relative_deadline,
            slice: entity.slice,
            delayed: entity.sched_delayed,
            weight: entity.load.scaled_down(),
            on_rq: entity.on_rq,
        }
    }

    /// A CPU's root queue as it stands.
    pub fn queue_view(&self, cpu: Cpu) -> QueueView {
        let root = self.rqs[cpu.index()].cfs;
        let queue = self.cfs(root);
        QueueView {
            min_vruntime: queue.min_vruntime,
            curr: self.running_entity(root).map(|se| self.view(se)),
            waiting: queue.timeline.iter().map(|entry| self.view(entry.se)).collect(),
        }
    }

    /// The average of a CPU's root queue, where lag is zero.
    pub fn root_average(&self, cpu: Cpu) -> Vruntime {
        self.average(self.rqs[cpu.index()].cfs)
    }

    /// The zero of the virtual time line of a CPU's root queue.
    pub fn min_vruntime(&self, cpu: Cpu) -> Vruntime {
        self.cfs(self.rqs[cpu.index()].cfs).min_vruntime
    }

    /// The idle task of a CPU.
    pub fn idle_task(&self, cpu: Cpu) -> TaskId {
        self.rqs[cpu.index()].idle
    }

    /// A task's policy.
    pub fn policy(&self, task: TaskId) -> Policy {
        self.task(task).policy
    }

    /// Whether a task sleeps on its queue.
    pub fn is_delayed(&self, task: TaskId) -> bool {
        matches!(self.task(task).on_rq, OnRq::Delayed(_))
    }

    /// Whether a task is on a runqueue: running, waiting, or left there asleep.
    pub fn is_on_queue(&self, task: TaskId) -> bool {
        matches!(self.task(task).on_rq, OnRq::Queued | OnRq::Delayed(_))
    }

    /// Whether the tick would take `cpu` from its running task, by rules that have a test of their own at the tick.
    /// Pure; `None` where accounting decides.
    pub fn tick_test(&self, cpu: Cpu) -> Option<TickDecision> {
        if self.generation.behaviours.tick_preemption == TickPreemption::Deadline {
            return None;
        }
        let mut decided = TickDecision { resched: false, reason: TickReason::Alone };
        let mut level = Some(self.task(self.curr(cpu)).se);
        while let Some(se) = level {
            let decision = self.check_preempt_tick(self.se(se).cfs_rq, se);
            if decision.resched {
                return Some(decision);
            }
            decided = decision;
            level = self.se(se).parent;
        }
        Some(decided)
    }
}

/// Forcing values.
impl Scheduler {
    /// Puts a task's entity where the kernel had it on the virtual time line.
    pub fn force_vruntime(&mut self, task: TaskId, vruntime: Vruntime) {
        self.change_entity(task, |entity| entity.vruntime = vruntime);
    }

    /// The same for its deadline; a protected slice stays protected.
    pub fn force_deadline(&mut self, task: TaskId, deadline: Vruntime) {
        self.change_entity(task, |entity| {
            entity.deadline_at_pick =
                entity.deadline_at_pick.map(|at_pick| match at_pick == entity.deadline {
                    true => deadline,
                    false => at_pick,
                });
            entity.deadline = deadline;
        });
    }

    /// Sets the lag with which a task left its queue.
    pub fn force_vlag(&mut self, task: TaskId, vlag: i64) {
        let se = self.task(task).se;
        self.se_mut(se).vlag = vlag;
    }

    /// Sets a task's distance to its deadline while it is between two queues.
    pub fn force_relative_deadline(&mut self, task: TaskId, distance: Option<i64>) {
        let se = self.task(task).se;
        self.se_mut(se).relative_deadline = distance;
    }

    /// Sets a task's request; `custom` says that it is kept.
    pub fn force_slice(&mut self, task: TaskId, slice: u64, custom: bool) {
        let se = self.task(task).se;
        let entity = self.se_mut(se);
        (entity.slice, entity.custom_slice) = (slice, custom);
    }

    /// Ends the protection of the running task's slice where the kernel had it end.
    pub fn force_protection(&mut self, task: TaskId, until: Vruntime) {
        let se = self.task(task).se;
        let entity = self.se_mut(se);
        entity.protected_until = until;
        entity.deadline_at_pick = Some(until);
    }

    fn change_entity(&mut self, task: TaskId, change: impl FnOnce(&mut crate::entity::SchedEntity)) {
        let se = self.task(task).se;
        let cfs_rq = self.se(se).cfs_rq;
        let waits = self.se(se).on_rq && self.cfs(cfs_rq).curr != Some(se);
        if waits {
            self.remove_waiting(cfs_rq, se);
        }
        change(self.se_mut(se));
        if waits {
            self.insert_waiting(cfs_rq, se);
        }
    }

    /// Puts the zero of the virtual time line of a CPU's root queue where the kernel had it.
    pub fn force_min_vruntime(&mut self, cpu: Cpu, min_vruntime: Vruntime) {
        let root = self.rqs[cpu.index()].cfs;
        self.cfs_mut(root).move_zero_to(min_vruntime);
    }

    /// Sets or clears the pending reschedule of a CPU.
    pub fn force_need_resched(&mut self, cpu: Cpu, pending: bool) {
        self.rqs[cpu.index()].need_resched = pending;
    }

    /// Gives a task another nice level or policy while it is off its queue, or on it as the kernel does.
    pub fn force_nice(&mut self, task: TaskId, nice: i32, policy: Policy) {
        let cpu = self.task(task).cpu;
        self.stand_on(cpu);
        if policy.is_fair() && self.task(task).policy.is_fair() {
            self.off_and_on(task, true, |scheduler| {
                scheduler.tasks[task.index()].nice = nice;
                scheduler.tasks[task.index()].policy = policy;
                scheduler.reweight_task(task);
            });
        } else if !self.is_on_queue(task) {
            self.tasks[task.index()].policy = policy;
            self.tasks[task.index()].nice = nice;
            let se = self.task(task).se;
            let load = if policy.is_fair() { self.task(task).load_weight() } else { LoadWeight::of_nice(0) };
            self.se_mut(se).load = load;
        }
    }
}

/// Forcing places.
impl Scheduler {
    /// Puts a task on `cpu`'s queue where its vruntime says, without placing it: as a snapshot shows it.
    pub fn lay_on_queue(&mut self, task: TaskId, cpu: Cpu) {
        if self.is_on_queue(task) || self.task(task).policy == Policy::Swapper {
            return;
        }
        self.move_entity_to(task, cpu);
        if !self.task(task).policy.is_fair() {
            self.stand_on(cpu);
            self.enqueue_task(task, EnqueueFlags::default());
            return;
        }
        self.tasks[task.index()].on_rq = OnRq::Queued;
        self.count_task(cpu);
        let mut level = Some(self.task(task).se);
        while let Some(se) = level {
            let cfs_rq = self.se(se).cfs_rq;
            if !self.se(se).on_rq {
                self.lay_entity(cfs_rq, se);
            }
            self.cfs_mut(cfs_rq).h_nr_running += 1;
            level = self.se(se).parent;
        }
        let mut list = self.rqs[cpu.index()].cfs_tasks;
        list.push_newest(&mut self.tasks, task);
        self.rqs[cpu.index()].cfs_tasks = list;
    }

    fn count_task(&mut self, cpu: Cpu) {
        self.rqs[cpu.index()].nr_running += 1;
        self.nr_overloaded += u32::from(self.rqs[cpu.index()].nr_running == 2);
    }

    fn lay_entity(&mut self, cfs_rq: CfsRqId, se: SeId) {
        let load = self.se(se).load;
        let queue = self.cfs_mut(cfs_rq);
        queue.load.add(load);
        queue.nr_running += 1;
        self.se_mut(se).on_rq = true;
        self.insert_waiting(cfs_rq, se);
    }

    /// Lets a task sleep on `cpu` that is known to sleep there.
    pub fn lay_asleep(&mut self, task: TaskId, cpu: Cpu) {
        if self.is_on_queue(task) {
            return;
        }
        self.move_entity_to(task, cpu);
        self.tasks[task.index()].on_rq = OnRq::Sleeping(TaskState::INTERRUPTIBLE);
    }

    /// Lets `cpu` run `task`, whatever it ran.
    pub fn force_curr(&mut self, cpu: Cpu, task: TaskId) {
        if !self.is_on_queue(task) {
            self.lay_on_queue(task, cpu);
        }
        if self.task(task).cpu == cpu {
            self.stand_on(cpu);
            self.context_switch(cpu, task, TaskState::RUNNABLE);
        }
    }

    /// Takes a waiting task off its queue and gives it to `dest`, where it is not queued yet.
    ///
    /// Kernel: `detach_task()`, the first half of `move_queued_task()`.
    pub fn detach(&mut self, task: TaskId, dest: Cpu) {
        let cpu = self.task(task).cpu;
        self.stand_on(cpu);
        self.dequeue_task(task, DequeueFlags::default());
        self.tasks[task.index()].on_rq = OnRq::Waking;
        self.move_entity_to(task, dest);
    }

    /// Queues a detached task on its CPU.
    ///
    /// Kernel: `attach_task()`, without its test for preemption.
    pub fn attach(&mut self, task: TaskId) {
        self.stand_on(self.task(task).cpu);
        self.enqueue_task(task, EnqueueFlags::default());
    }

    /// A sleeping task's CPU becomes `dest`, before it is queued there.
    ///
    /// Kernel: `set_task_cpu()`, `migrate_task_rq_fair()`.
    pub fn migrate_waking(&mut self, task: TaskId, dest: Cpu) {
        self.leave_queue_while_waking(task);
        self.move_entity_to(task, dest);
    }

    /// Queues a woken task on its CPU.
    ///
    /// Kernel: `ttwu_do_activate()`, without its test for preemption.
    pub fn activate_woken(&mut self, task: TaskId, migrated: bool) {
        self.stand_on(self.task(task).cpu);
        self.enqueue_task(task, EnqueueFlags { wakeup: true, migrated, initial: false });
    }

    /// Places a new task on the queue of the running task of `cpu`, which creates it.
    pub fn place_forked(&mut self, child: TaskId, cpu: Cpu) {
        self.stand_on(cpu);
        self.fork(child);
    }

    /// Queues a new task on `cpu` for the first time, without its test for preemption.
    pub fn activate_new(&mut self, task: TaskId, cpu: Cpu) {
        self.move_entity_to(task, cpu);
        self.stand_on(cpu);
        let initial = self.generation.behaviours.fork_placement == ForkPlacement::WhereQueued;
        self.enqueue_task(task, EnqueueFlags { initial, ..EnqueueFlags::default() });
    }

    /// The running task of `cpu` leaves its queue and comes back to it at once.
    ///
    /// Kernel: `sched_move_task()` within one group, as at a task's exit with autogroups (`moved`); or what a change of
    /// affinity does.
    pub fn requeue_running(&mut self, cpu: Cpu, moved: bool) {
        let task = self.curr(cpu);
        if self.is_on_queue(task) && self.task(task).policy.is_fair() {
            self.stand_on(cpu);
            self.off_and_on(task, !moved, |_| {});
        }
    }

    /// Takes a task off its queue, lets `change` work on it, and puts it back.
    fn off_and_on(&mut self, task: TaskId, save: bool, change: impl FnOnce(&mut Scheduler)) {
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
            self.set_next_task(task);
        }
    }

    /// A task that sleeps on its queue is woken there, without its test for preemption (`ttwu_runnable()`).
    pub fn force_delayed_awake(&mut self, task: TaskId) {
        if self.is_delayed(task) {
            self.stand_on(self.task(task).cpu);
            self.tasks[task.index()].on_rq = OnRq::Queued;
            self.requeue_delayed_entity(self.task(task).se);
        }
    }

    /// A task that sleeps on its queue leaves it now.
    pub fn force_delayed_out(&mut self, task: TaskId) {
        if let OnRq::Delayed(state) = self.task(task).on_rq {
            self.stand_on(self.task(task).cpu);
            self.tasks[task.index()].on_rq = OnRq::Sleeping(state);
            self.dequeue_task(task, DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() });
        }
    }

    /// A task that has just left its queue is on it again, asleep: the kernel has put its dequeue off.
    pub fn lay_delayed(&mut self, task: TaskId, cpu: Cpu) {
        let OnRq::Sleeping(state) = self.task(task).on_rq else { return };
        self.lay_on_queue(task, cpu);
        let se = self.task(task).se;
        if self.rqs[cpu.index()].curr == task {
            // It is still the running one, so it does not wait.
            self.remove_waiting(self.se(se).cfs_rq, se);
        }
        self.tasks[task.index()].on_rq = OnRq::Delayed(state);
        self.set_delayed(se);
    }

    /// Applies what a test for preemption found, or what the kernel did instead.
    pub fn apply_preempt(&mut self, task: TaskId, decision: PreemptDecision) {
        if self.task(task).policy.is_fair() {
            self.set_buddies_after(task, decision);
        }
        if decision.preempt {
            self.resched_curr(self.task(task).cpu);
        }
    }

    /// Applies what the tick found, or what the kernel did instead.
    pub fn apply_tick_decision(&mut self, cpu: Cpu, decision: TickDecision) {
        if decision.resched {
            self.resched_curr(cpu);
        }
        if decision.reason == TickReason::SliceUsed {
            self.clear_buddies(self.task(self.curr(cpu)).se);
        }
    }
}
