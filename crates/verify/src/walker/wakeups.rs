//! Wakeups and moves between queues.

use fairlab_event::{Comm, Cpu, Pid, Prio, Wakeup};
use fairlab_kernel::TaskId;
use fairlab_kernel::open_loop::EntityId;

use super::super::probe::{At, ProbeHit, ReschedCaller};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::DecisionOutcome;
use super::Walker;
use super::judging::JoiningEntity;

impl Walker {
    pub(super) fn on_waking(&mut self, record: &EventRecord, wakeup: Wakeup) {
        let task = self.task(wakeup.pid, Some(wakeup.prio), wakeup.comm, wakeup.target_cpu);
        self.seen.hotplug |= wakeup.comm.as_bytes().starts_with(b"cpuhp/");
        let cpu = &mut self.cpus[record.cpu.index()];
        cpu.waking_began = record.number;
        cpu.requeued = None;
        cpu.asked_resched = None;
        let runs = self.sched.curr(self.sched.task(task).cpu()) == task;
        if let Some(info) = self.info(task) {
            info.waking = true;
            info.woken_running |= runs;
            info.waking_since = record.number;
            info.moved = false;
        }
    }

    pub(super) fn on_migrate(&mut self, record: &EventRecord, pid: Pid, prio: Prio, orig: Cpu, dest: Cpu) {
        let task = self.task(pid, Some(prio), Comm::default(), orig);
        if self.sched.is_on_queue(task) && self.sched.curr(self.sched.task(task).cpu()) == task {
            // It is moved, so it does not run: the core's state is wrong.
            self.seen.lost += 1;
            self.take_off(task);
        }
        if self.sched.is_on_queue(task) {
            self.leave_before_pull(record, dest);
            let why = "what balancing finds is not shown";
            self.count(DecisionKind::Balance, "move", DecisionOutcome::NotJudged(why));
            self.detach(record, task, dest);
        } else {
            self.migrate_waking(record, task, orig, dest);
        }
    }

    /// A CPU that pulls a task outside of interrupts has nothing to run: its own task has left the queue, even if nothing was
    /// charged for that.
    fn leave_before_pull(&mut self, record: &EventRecord, dest: Cpu) {
        let cpu = record.cpu;
        let pulls = dest == cpu && !record.flags.in_hardirq() && !record.flags.in_softirq();
        if !pulls || self.cpus[cpu.index()].blocked {
            return;
        }
        let mut before =
            self.window.on_cpu(cpu).take_while(|next| !matches!(next.what, RecordKind::Switch(_)));
        let runs_on = before.any(|next| {
            matches!(next.what, RecordKind::Waking(_) | RecordKind::Wakeup(_) | RecordKind::Fork { .. })
        });
        drop(before);
        let switch = self.next_switch(cpu).filter(|switch| self.blocks(switch) && !runs_on);
        let running = self.pid_of(self.sched.curr(cpu));
        if let Some(switch) = switch.filter(|switch| switch.prev_pid == running) {
            self.block(cpu, switch.prev_state);
        }
    }

    /// A sleeping task that is being woken changes CPUs: its vruntime becomes a distance from the old queue's minimum, which is read
    /// without a lock. Unless a probe shows it where the task is queued, it is not known.
    fn migrate_waking(&mut self, record: &EventRecord, task: TaskId, orig: Cpu, dest: Cpu) {
        if self.sched.task(task).cpu() != orig {
            self.sched.lay_asleep(task, orig);
            self.set_known(task, false);
        }
        self.sched.migrate_waking(task, dest, record.time);
        if !self.by_lag {
            self.set_known(task, false);
        }
        if let Some(info) = self.info(task) {
            info.moved = true;
        }
    }

    /// Code on this CPU takes a waiting task off its queue, to queue it on another soon.
    fn detach(&mut self, record: &EventRecord, task: TaskId, dest: Cpu) {
        let queue = self.queue_of(task);
        let cpu = self.sched.task(task).cpu();
        if self.info(task).is_some_and(|info| info.waking) {
            // A sleeper that is still queued is woken where it is.
            self.sched.force_delayed_out(task);
        }
        self.doubt_running_groups(cpu);
        let lag_known = self.average_known(queue) && self.is_known(task);
        let known = self.is_known(task) && (self.by_lag || self.min_known(queue));
        let levels = self.sched.levels(task);
        let averages = self.averages_known(&levels);
        if self.sched.is_on_queue(task) {
            self.sched.detach(task, dest);
        } else {
            self.sched.migrate_waking(task, dest, record.time);
        }
        self.know_lags_of_gone(&levels[1..], &averages[1..]);
        self.note_detached(record, task, cpu);
        let info = self.knowledge.entity_mut(self.sched.task_entity(task));
        (info.known, info.lag_known) = (known, lag_known);
    }

    /// A task has left a queue of `cpu`, and the same code queues it on another soon.
    pub(super) fn note_detached(&mut self, record: &EventRecord, task: TaskId, cpu: Cpu) {
        self.sched.flush_given_weights(cpu);
        let pid = self.pid_of(task);
        let by = &mut self.cpus[record.cpu.index()];
        by.detached.push((pid, record.number));
        by.tested = None;
        by.detached_in = contexts(record);
    }

    /// Queues what code on this CPU has taken off other queues, as soon as its next event shows that it has done so.
    pub(super) fn attach_before(&mut self, record: &EventRecord) {
        let cpu = record.cpu;
        let by = &self.cpus[cpu.index()];
        if by.detached.is_empty() {
            return;
        }
        match &record.what {
            RecordKind::Migrate { pid, .. } if !self.tasks.get(pid).is_some_and(|info| info.waking) => {}
            RecordKind::OtherProbe => {}
            RecordKind::Probe(probe) if !follows_attach(probe) => {}
            // The outcome of the test of one of them.
            RecordKind::Probe(probe)
                if probe.by == Some(ReschedCaller::Preemption) && by.tested.is_some() => {}
            // Accounting of the queue that they join comes first. What is accounted in another context is no part of it.
            RecordKind::Runtime { pid, .. }
                if contexts(record) == by.detached_in
                    && self.detached_dest(cpu).is_some_and(|dest| self.runs_on(*pid, dest)) => {}
            // The others are attached after it.
            RecordKind::Probe(probe) if probe.at == At::WakeupPreempt => {
                self.attach_until(record, cpu, probe.task());
            }
            // An idle CPU is asked without a test, once for each.
            RecordKind::Probe(probe) if probe.by == Some(ReschedCaller::Preemption) => {
                let last = by.queues.filter(|pid| by.detached.iter().any(|(detached, _)| detached == pid));
                self.attach_until(record, cpu, last);
            }
            _ => self.attach_detached(record, cpu),
        }
    }

    fn runs_on(&self, pid: Pid, cpu: Cpu) -> bool {
        self.tasks.get(&pid).is_some_and(|info| self.sched.task(info.id).cpu() == cpu)
    }

    /// Where what code on `cpu` has taken off queues will be queued.
    pub(super) fn detached_dest(&self, cpu: Cpu) -> Option<Cpu> {
        let (first, _) = self.cpus[cpu.index()].detached.first()?;
        self.tasks.get(first).map(|info| self.sched.task(info.id).cpu())
    }

    /// A task that runs has been attached, whether or not the CPU that moved it has reported anything since.
    pub(super) fn attach_task(&mut self, record: &EventRecord, task: TaskId) {
        let pid = self.pid_of(task);
        if let Some(by) =
            self.cpus.iter().position(|info| info.detached.iter().any(|(detached, _)| *detached == pid))
        {
            self.attach_detached(record, Cpu(by as u32));
        }
    }

    /// Queues them in the order in which they were taken off, last first, as they hang on the balancer's list.
    pub(super) fn attach_detached(&mut self, record: &EventRecord, by: Cpu) {
        self.attach_until(record, by, None);
    }

    /// Attaches detached tasks up to a certain one.
    fn attach_until(&mut self, record: &EventRecord, by: Cpu, last: Option<Pid>) {
        let detached = &mut self.cpus[by.index()].detached;
        let from = last
            .map_or(0, |last| detached.iter().position(|(pid, _)| *pid == last).unwrap_or(detached.len()));
        for (pid, event) in detached.split_off(from).into_iter().rev() {
            let Some(task) = self.tasks.get(&pid).map(|info| info.id) else { continue };
            if self.sched.is_on_queue(task) {
                continue;
            }
            let dest = self.sched.task(task).cpu();
            let (entity, queue) = (self.sched.task_entity(task), self.queue_of(task));
            self.doubt_running_groups(dest);
            let known = match self.by_lag {
                true => self.place_known(entity, queue),
                false => self.is_known(task) && self.min_known(queue),
            };
            let joining =
                self.joining(task, dest, JoiningEntity { entity, case: "moved", known, since: event });
            self.sched.attach(task);
            self.sched.flush_given_weights(dest);
            self.judge_placements(record, joining);
            let joins_group = self.info(task).is_some_and(|info| std::mem::take(&mut info.joins_group));
            if !joins_group || self.sched.tests_regrouped() {
                let decision = self.sched.wakeup_preempt(task);
                self.sched.apply_preempt(task, decision);
            }
        }
    }

    pub(super) fn on_wakeup(&mut self, record: &EventRecord, wakeup: Wakeup) {
        let target = wakeup.target_cpu;
        let task = self.task(wakeup.pid, Some(wakeup.prio), wakeup.comm, target);
        self.wakeup_arrives(wakeup.pid);
        if self.sched.is_on_queue(task) && self.sched.task(task).cpu() != target {
            self.seen.lost += 1;
            self.take_off(task);
        }
        // Without probes of sleepers the model's word is taken; what hangs on that is not judged.
        let requeued = self.cpus[record.cpu.index()].requeued.take() == Some(wakeup.pid);
        if self.sched.is_delayed(task) && self.seen.dequeue_probe && !requeued {
            self.sched.force_delayed_out(task);
        }
        let activated = self.info(task).is_some_and(|info| std::mem::take(&mut info.activated));
        let was_queued = self.sched.is_on_queue(task) && !activated;
        if was_queued {
            self.requeue(task);
            self.judge_requeue(record, task);
        } else if !activated {
            self.activate(record, task, target);
        }
        self.judge_wakeup_preempt(record, task, target, was_queued);
        if let Some(info) = self.info(task) {
            (info.waking, info.moved) = (false, false);
        }
    }

    /// Compares whether a task that has just been woken takes the CPU.
    fn judge_wakeup_preempt(&mut self, record: &EventRecord, task: TaskId, target: Cpu, was_queued: bool) {
        let pid = self.pid_of(task);
        let waker = &mut self.cpus[record.cpu.index()];
        let asked = waker.asked_resched.take() == Some(target);
        // Interrupts that come while a probe is being handled are not probed.
        let tested = waker.tested.take().filter(|tested| tested.pid == pid);
        let began = waker.waking_began;
        let sync = tested.and_then(|tested| tested.sync);
        let pending_at_test = tested.filter(|_| self.seen.resched_probe).map(|tested| tested.pending);
        let (pending_before, charged_at) = self.cpus[target.index()].pending_before_charge;
        // Where the task was queued already, accounting came with the test, after it had looked for a pending reschedule.
        let charged_by_test = was_queued && charged_at > began;
        let asked_by_charge = (charged_by_test && !pending_before && self.sched.need_resched(target))
            .then(|| self.sched.need_resched_at_once(target));
        if asked || pending_at_test == Some(false) || (charged_by_test && !pending_before) {
            self.sched.force_need_resched(target, false, false);
        }
        // Flags do not tell whether one that was set lazily was asked for again.
        let probed = pending_at_test.is_some();
        let pending = match probed {
            true => self.sched.need_resched_at_once(target),
            false => self.sched.need_resched(target),
        };
        let truth = match probed {
            true => Some(asked),
            false => self.flag_set_here(record).filter(|_| target == record.cpu),
        };
        if self.sched.curr(target) == task {
            return;
        }
        let was_pending = self.sched.need_resched(target);
        self.charge_for_test(task, target);
        // Whether one is pending was asked before that charge, and flags do not tell the two apart.
        let charge_asks = asked_by_charge.is_some() || (!was_pending && self.sched.need_resched(target));
        let at_once = asked_by_charge.unwrap_or_else(|| self.sched.need_resched_at_once(target));
        if charge_asks {
            self.sched.force_need_resched(target, false, false);
        }
        let truth = truth.filter(|_| probed || !charge_asks);
        self.sched.force_woken_sync(task, sync == Some(true));
        // What rests on a promise that is not shown is not judged.
        let truth = truth.filter(|_| sync.is_some() || !self.sched.heeds_promises(task));
        self.judge_preempt(record, task, pending, truth);
        if charge_asks && !self.sched.need_resched(target) {
            self.sched.force_need_resched(target, at_once, !at_once);
        }
    }

    /// A test for preemption charges the running entity that it compares: that of a group is not printed.
    fn charge_for_test(&mut self, task: TaskId, target: Cpu) {
        let compared = self.sched.compared_entities(task).map(|(running, _)| self.sched.entity_view(running));
        if let Some(running) = compared.filter(|running| running.task.is_none() && running.on_rq) {
            self.doubt_running_groups(target);
            self.sched.stand_on(target);
            self.sched.charge_queue(self.sched.queue_of(running.id));
        }
    }

    /// Wakes a task where it slept on its queue, before the running task is accounted.
    fn requeue(&mut self, task: TaskId) {
        if self.sched.is_delayed(task) {
            let cpu = self.sched.task(task).cpu();
            self.doubt_running_groups(cpu);
            let known = self.average_known(self.queue_of(task));
            self.sched.force_delayed_awake(task);
            self.sched.flush_given_weights(cpu);
            if let Some(info) = self.info(task) {
                info.requeued = Some(known);
            }
        }
    }

    /// Wakes the task that code on `cpu` was about to wake on its queue: the charge that comes before is done, or there is
    /// none.
    pub(super) fn requeue_after_charge(&mut self, cpu: Cpu) {
        if let Some(entity) = self.cpus[cpu.index()].requeue_due.take() {
            self.requeue_entity(entity);
        }
    }

    /// Wakes what slept on its queue: a task, or a group's entity that gets something to run.
    pub(super) fn requeue_entity(&mut self, entity: EntityId) {
        let view = self.sched.entity_view(entity);
        match view.task {
            Some(task) => self.requeue(task),
            None if view.delayed => {
                let cpu = self.sched.cpu_of(self.sched.queue_of(entity));
                self.doubt_running_groups(cpu);
                let known = self.average_known(self.sched.queue_of(entity));
                self.knowledge.entity_mut(entity).known &= known;
                self.sched.force_delayed_group_awake(entity);
                self.sched.flush_given_weights(cpu);
            }
            None => {}
        }
    }

    /// A probe shows the test for preemption of a woken task: it is queued now, before what that test does to the queue.
    pub(super) fn activate_tested(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(info) = probe.task().and_then(|pid| self.tasks.get(&pid)).filter(|info| info.waking) else {
            return;
        };
        let task = info.id;
        if self.sched.is_on_queue(task) {
            return;
        }
        let target = self.window.on_cpu(record.cpu).find_map(|record| match &record.what {
            RecordKind::Wakeup(wakeup) if Some(wakeup.pid) == probe.task() => Some(wakeup.target_cpu),
            _ => None,
        });
        let Some(target) = target else { return };
        self.activate(record, task, target);
        if let Some(info) = self.info(task) {
            info.activated = true;
        }
    }

    /// Compares the place that a task had when it was woken where it slept on its queue.
    fn judge_requeue(&mut self, record: &EventRecord, task: TaskId) {
        let entity = self.sched.task_entity(task);
        let Some(info) = self.info(task) else { return };
        let since = info.waking_since;
        if let Some(known) = info.requeued.take() {
            let own = JoiningEntity { entity, case: "delayed requeue", known, since };
            self.judge_placements(record, vec![own]);
        }
    }

    /// Queues a woken task and compares its place.
    fn activate(&mut self, record: &EventRecord, task: TaskId, target: Cpu) {
        if self.sched.task(task).cpu() != target {
            // A move that the trace does not show.
            self.sched.lay_asleep(task, target);
            self.set_known(task, false);
        }
        self.doubt_running_groups(target);
        let (entity, queue) = (self.sched.task_entity(task), self.queue_of(task));
        let known = match self.by_lag {
            true => self.place_known(entity, queue),
            false => self.is_known(task) && self.min_known(queue),
        };
        let info = self.tasks.get(&self.pid_of(task));
        let (moved, since) = info.map_or((false, 0), |info| (info.moved, info.waking_since));
        let case = if moved { "wakeup on another CPU" } else { "wakeup" };
        let joining = self.joining(task, target, JoiningEntity { entity, case, known, since });
        self.sched.activate_woken(task, moved);
        self.sched.flush_given_weights(target);
        self.judge_placements(record, joining);
    }
}

/// Whether an event was reported in a hardware and in a soft interrupt.
pub(super) fn contexts(record: &EventRecord) -> (bool, bool) {
    (record.flags.in_hardirq(), record.flags.in_softirq())
}

/// Whether a probe stands at what the kernel does only after it has attached what it detached.
fn follows_attach(probe: &ProbeHit) -> bool {
    // Accounting of the queue that it joins is part of the attach.
    if matches!(probe.at, At::Resched | At::ReschedLazy) {
        return probe.by != Some(ReschedCaller::Accounting);
    }
    matches!(
        probe.at,
        At::Tick
            | At::SetNextEntity
            | At::SetNextTask
            | At::PutPrevEntity
            | At::PickReturn
            | At::NewidleBalanceReturn
            | At::WakeupPreempt
    )
}
