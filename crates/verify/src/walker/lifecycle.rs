//! Fork, exit, and changes of nice level, affinity and group.

use fairlab_event::{Comm, Cpu, Pid, Prio, Wakeup};
use fairlab_kernel::TaskId;
use fairlab_kernel::generation::Feature;

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::Walker;
use super::bandwidth::is_part_of_step;
use super::judging::JoiningEntity;
use super::state::TaskParameters;

impl Walker {
    /// A task is created by the running one of `cpu`: it is placed beside it now, and reported later.
    pub(super) fn place_child(&mut self, parent: TaskId, child: Pid, comm: Comm, cpu: Cpu) {
        let prio = self.prio_shown_later(child).unwrap_or_else(|| self.sched.task(parent).prio());
        let id = self.new_task(child, prio, comm, cpu);
        let known = self.is_known(parent);
        let group = self.group_from_start(child).unwrap_or_else(|| self.sched.group_of(parent));
        self.sched.set_task_group(id, group);
        self.inherit_affinity(parent, id);
        self.take_mask_from_start(child);
        self.inherit(parent, id, prio);
        if self.sched.curr(cpu) == parent {
            self.sched.place_forked(id, cpu);
        }
        self.set_known(id, known);
    }

    /// What a child of the fair class has from its parent besides its nice level, which its priority shows.
    fn inherit(&mut self, parent: TaskId, child: TaskId, prio: Prio) {
        let policy = self.sched.policy(parent);
        if let (Some(nice), true) = (prio.nice(), policy.is_fair()) {
            self.sched.force_nice(child, nice, policy);
        }
        if let Some(request) = self.sched.own_request(parent) {
            self.sched.force_slice(child, request.0);
        }
    }

    pub(super) fn on_fork(&mut self, record: &EventRecord, parent: Pid, child: Pid, comm: Comm) {
        let fresh = self.tasks.get(&child).is_some_and(|info| !info.exiting && !info.printed);
        if !fresh {
            let cpu = record.cpu;
            let parent = self.task(parent, None, record.comm, cpu);
            self.place_child(parent, child, comm, cpu);
        }
    }

    /// A new task is queued for the first time; its test for preemption follows.
    pub(super) fn on_wakeup_new(&mut self, record: &EventRecord, wakeup: Wakeup) {
        let target = wakeup.target_cpu;
        let task = self.task(wakeup.pid, Some(wakeup.prio), wakeup.comm, target);
        if self.sched.is_on_queue(task) {
            self.seen.lost += 1;
            return;
        }
        let (entity, orig) = (self.sched.task_entity(task), self.queue_of(task));
        let queue = self.sched.task_queue_on(task, target);
        self.doubt_running_groups(target);
        let known = match self.by_lag {
            true => self.average_known(queue),
            false => self.is_known(task) && self.min_known(orig) && self.min_known(queue),
        };
        let joining = self.joining(task, target, JoiningEntity { entity, case: "fork", known, since: 0 });
        self.sched.activate_new(task, target);
        self.sched.flush_given_weights(target);
        self.judge_placements(record, joining);
        let pending = self.sched.need_resched(target);
        let shown = self.asks_resched_next(record.cpu, wakeup.pid, target);
        let truth = shown.or_else(|| self.flag_set_next(target).filter(|_| target == record.cpu));
        self.judge_preempt(record, task, pending, truth);
    }

    pub(super) fn on_exit(&mut self, pid: Pid) {
        if let Some(info) = self.tasks.get_mut(&pid) {
            info.exiting = true;
            self.sched.exit_signals(info.id);
        }
    }

    pub(super) fn on_yield_call(&mut self, record: &EventRecord) {
        // Alone on its CPU, it goes on without a word.
        let alone = self.sched.nr_running(record.cpu) <= 1;
        if let Some(info) = self.tasks.get_mut(&record.context) {
            info.yielding = !alone;
        }
    }

    /// The running task leaves its queue and comes back at once: why is told by what was announced before.
    ///
    /// `by`: the CPU whose code does so.
    pub(super) fn requeue_running(&mut self, task: TaskId, by: Cpu) {
        let (pid, cpu) = (self.pid_of(task), self.sched.task(task).cpu());
        let shown = self.prio_shown_later(pid);
        let Some(info) = self.tasks.get_mut(&pid) else { return };
        let moved = info.moving_group.take().is_some() || info.exiting;
        let announced = info.announced.take();
        let ends = self.window.on_cpu(by).find(|record| ends_wait(record)).map_or(0, |record| record.number);
        self.cpus[by.index()].ahead_until = ends;
        let unannounced = shown.and_then(Prio::nice).filter(|_| !self.next_charge_fits(task));
        let announced = announced.filter(|parameters| self.differs(task, parameters));
        let announced = announced.or_else(|| unannounced.and_then(|nice| self.reniced(task, nice, cpu)));
        // What it counts leaves the queue and joins it again, even where the group stays the same.
        let stays = moved.then(|| self.sched.group_of(task));
        let group = self.group_moved_to(pid).filter(|_| moved).or(stays);
        match announced {
            Some(parameters) if !moved => {
                self.give_coming_weights(by, |record| matches!(record.what, RecordKind::WaitEnds(..)));
                self.give_parameters(task, parameters);
            }
            _ => {
                self.give_coming_weights(by, |record| joins(record) || ends_wait(record));
                let left = self.sched.take_running_off(cpu, moved);
                self.sched.flush_given_weights(cpu);
                self.give_coming_weights(by, ends_wait);
                self.throttle_before(by, ends_wait);
                if left {
                    self.sched.put_running_back(cpu, group);
                }
            }
        }
        self.sched.flush_given_weights(cpu);
        if moved {
            // Where its groups come to stand is shown later, if at all: each is given a weight twice in one step, and rounded twice.
            self.forget_running_groups(cpu);
        }
        if moved && by == cpu {
            // The group may be throttled: sched_move_task() has the task picked again.
            self.cpus[cpu.index()].resched_due = true;
        } else if moved && !self.seen.resched_probe {
            self.sched.force_need_resched(cpu, true, false);
        }
        let queue = self.queue_of(task);
        if self.groups_hidden || (moved && !self.by_lag && !self.min_known(queue)) {
            self.set_known(task, false);
        }
        self.force_if_shown(task);
    }

    /// A probe shows a task being taken off its queue, to be put back: notes it if the task waits there.
    pub(super) fn note_taken_off(&mut self, record: &EventRecord, probe: &ProbeHit) {
        /// `DEQUEUE_SAVE` without `DEQUEUE_SLEEP`.
        const SAVED: i64 = 2;
        let saved = probe.get(Key::Flags).is_some_and(|flags| flags & 3 == SAVED);
        let task = probe.task().and_then(|pid| self.tasks.get(&pid)).map(|info| info.id);
        if saved && task.is_some_and(|task| self.waits(task)) {
            self.cpus[record.cpu.index()].taken_off = probe.task();
        }
    }

    pub(super) fn waits(&self, task: TaskId) -> bool {
        self.sched.is_on_queue(task) && self.sched.curr(self.sched.task(task).cpu()) != task
    }

    /// A probe shows a task joining a queue on which the core has it waiting: it has been taken off there for a change of
    /// its nice level or of something else, and is put back.
    pub(super) fn put_waiting_back(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(pid) = self.cpus[record.cpu.index()].taken_off.take_if(|pid| probe.task() == Some(*pid))
        else {
            return;
        };
        let Some((task, announced)) = self.tasks.get_mut(&pid).map(|info| (info.id, info.announced.take()))
        else {
            return;
        };
        let cpu = self.sched.task(task).cpu();
        if !self.waits(task) || !self.is_fair(task) {
            return;
        }
        let queue = self.queue_of(task);
        self.doubt_running_groups(cpu);
        let known = self.average_known(queue) && self.is_known(task);
        let (entity, old_prio) = (self.sched.task_entity(task), self.sched.task(task).prio());
        // What leaving the queue has changed comes before what joining it does.
        self.sched.stand_on(cpu);
        self.sched.flush_given_weights(cpu);
        self.give_coming_weights(record.cpu, |later| !is_part_of_step(later));
        match announced {
            Some(parameters) => self.give_parameters(task, parameters),
            None => {
                let nice = self.sched.task(task).prio().nice().unwrap_or(0);
                self.sched.force_nice(task, nice, self.sched.policy(task));
            }
        }
        self.sched.flush_given_weights(cpu);
        if self.by_lag {
            let own = JoiningEntity { entity, case: "put back", known, since: record.number };
            self.cpus[record.cpu.index()].put_back = Some(own);
        }
        self.test_new_prio(record, task, old_prio);
    }

    /// A waiting task that has been given another priority is tested against what runs. If that leaves buddies, it is judged.
    /// Else it leaves only a flag, which the trace shows.
    fn test_new_prio(&mut self, record: &EventRecord, task: TaskId, old_prio: Prio) {
        let leaves_buddies = !self.by_lag || self.sched.generation().features.enabled(Feature::NextBuddy);
        if !leaves_buddies || !self.is_fair(task) || !self.sched.tests_new_prio(task, old_prio) {
            return;
        }
        let (pid, cpu) = (self.pid_of(task), self.sched.task(task).cpu());
        let pending = self.sched.need_resched(cpu);
        let truth = self.asks_resched_next(record.cpu, pid, cpu);
        self.judge_preempt(record, task, pending, truth);
    }

    /// The wait of a task that waits and goes on waiting ends: where no probe shows it being taken off its queue and put
    /// back, that is the change of its nice level that was announced.
    pub(super) fn renice_waiting(&mut self, record: &EventRecord, pid: Pid) {
        let shown = self.probed;
        let here = |parameters: &mut TaskParameters| {
            parameters.by == record.cpu && (!shown || !parameters.policy.is_fair())
        };
        let Some(info) = self.tasks.get_mut(&pid) else { return };
        let Some(parameters) = info.announced.take_if(here) else { return };
        let task = info.id;
        if self.waits(task) && self.is_fair(task) {
            let old_prio = self.sched.task(task).prio();
            self.give_parameters(task, parameters);
            self.test_new_prio(record, task, old_prio);
        }
    }

    /// Code on another CPU has accounted a running task whose nice level or affinity it is about to change.
    pub(super) fn requeue_from_elsewhere(&mut self, record: &EventRecord, task: TaskId) {
        if self.info(task).is_some_and(|info| info.moving_group == Some(record.cpu)) {
            return self.requeue_running(task, record.cpu);
        }
        let here = |parameters: &mut TaskParameters| parameters.by == record.cpu;
        let announced = self.info(task).and_then(|info| info.announced.take_if(here));
        let announced = announced.filter(|parameters| self.differs(task, parameters));
        let cpu = self.sched.task(task).cpu();
        if announced.is_none() && !self.is_requeued_next(self.pid_of(task)) {
            return;
        }
        let ends = self.window.on_cpu(record.cpu).find(|record| ends_wait(record));
        self.cpus[record.cpu.index()].ahead_until = ends.map_or(0, |record| record.number);
        match announced {
            Some(parameters) => self.give_parameters(task, parameters),
            None if self.sched.take_running_off(cpu, false) => {
                self.sched.put_running_back(cpu, None);
            }
            None => {}
        }
        self.sched.flush_given_weights(cpu);
        self.force_if_shown(task);
    }

    /// Forces a task's vruntime where it is shown later, and keeps the distance to its deadline. Otherwise they stay as the model
    /// has them.
    pub(super) fn force_if_shown(&mut self, task: TaskId) {
        if let Some(shown) = self.vruntime_shown_later(task) {
            let entity = self.sched.task_entity(task);
            let view = self.sched.entity_view(entity);
            if self.by_lag && self.is_entity_known(entity) {
                self.sched.force_deadline(entity, view.deadline.plus(shown.minus(view.vruntime)));
            }
            self.force_vruntime(entity, shown);
        }
    }
}

/// Whether a probe shows something joining a queue.
fn joins(record: &EventRecord) -> bool {
    let RecordKind::Probe(probe) = &record.what else { return false };
    matches!(probe.at, At::EnqueueTask | At::EnqueueEntity | At::Place)
}

fn ends_wait(record: &EventRecord) -> bool {
    matches!(record.what, RecordKind::WaitEnds(..))
}
