//! Wakeups and moves between queues.

use fairlab_event::{Comm, Cpu, Ns, Pid, Prio, Wakeup};
use fairlab_kernel::decision::{PreemptDecision, PreemptReason};
use fairlab_kernel::open_loop::{EntityId, QueueId};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::probe::{At, ProbeHit, ReschedCaller};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::{DecisionVerdict, ModelAnswers};
use super::judging::{JoiningEntity, yes_no};
use super::{DecisionPlace, MovedWhileWaking, Walker};

impl Walker {
    pub(super) fn on_waking(&mut self, record: &EventRecord, wakeup: Wakeup) {
        let task = self.task(wakeup.pid, Some(wakeup.prio), wakeup.comm, wakeup.target_cpu);
        self.seen.hotplug |= wakeup.comm.as_bytes().starts_with(b"cpuhp/");
        let cpu = &mut self.cpus[record.cpu.index()];
        cpu.waking = Some(wakeup.pid);
        cpu.waking_seen = record.number;
        cpu.waking_began = record.number;
        cpu.sleep_ended = None;
        cpu.requeued = None;
        cpu.asked_resched = None;
        let runs = self.sched.curr(self.sched.task(task).cpu()) == task;
        if let Some(info) = self.info(task) {
            info.waking = true;
            info.woken_running |= runs;
            info.waking_since = record.number;
            info.moved = None;
        }
        self.bind_new_kthread(task, wakeup.comm);
        self.begin_selection(record, task);
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
            self.judge_move(record, task, orig, dest);
            self.detach(record, task, dest);
        } else {
            self.end_selection(record, pid, dest);
            self.migrate_waking(record, task, orig, dest);
        }
    }

    /// A sleeping task that is being woken changes CPUs: its vruntime becomes a distance from the old queue's minimum.
    fn migrate_waking(&mut self, record: &EventRecord, task: TaskId, orig: Cpu, dest: Cpu) {
        if self.sched.task(task).cpu() != orig {
            self.sched.lay_asleep(task, orig);
            self.set_known(task, false);
        }
        let queue = self.queue_of(task);
        self.note_minimum(queue);
        let moved = MovedWhileWaking {
            orig: queue,
            vruntime: self.sched.entity_view(self.sched.task_entity(task)).vruntime,
            event: record.number,
            orig_known: self.min_known(queue),
        };
        self.sched.migrate_waking(task, dest, record.time);
        if let Some(info) = self.info(task) {
            info.moved = Some(moved);
        }
    }

    /// Code on this CPU takes a waiting task off its queue, to queue it on another soon.
    fn detach(&mut self, record: &EventRecord, task: TaskId, dest: Cpu) {
        let levels = self.sched.levels(task);
        let queue = self.queue_of(task);
        let lag_known = self.average_known(queue) && self.is_known(task);
        let by_minimum = self.is_known(task) && self.min_known(queue);
        self.note_unprinted_charge(self.sched.task(task).cpu());
        if self.info(task).is_some_and(|info| info.waking) {
            // A sleeper that is still queued is woken where it is.
            self.sched.force_delayed_out(task);
        }
        self.follow_clock(record, self.sched.task(task).cpu());
        self.advance_moves_clock(record, self.sched.task(task).cpu());
        self.learn_clock_of_next_minimum(record, queue);
        // Where a group's entity runs, what it has been charged by now shows nowhere but in the clock.
        let runs_group = self.sched.current_of(queue).is_some_and(|curr| curr.task.is_none());
        let told = self.clocks_shown || self.recording.traces_places;
        let clock_known = self.prepare_detach(record.cpu, task);
        let known = if self.by_lag { self.is_known(task) } else { by_minimum && clock_known };
        if self.sched.is_on_queue(task) {
            self.sched.detach(task, dest);
        } else {
            self.sched.migrate_waking(task, dest, record.time);
        }
        self.note_detached(record, task, queue, levels);
        let info = self.knowledge.entity_mut(self.sched.task_entity(task));
        (info.known, info.lag_known) = (known, lag_known && clock_known && (told || !runs_group));
    }

    /// A task has left `queue`, of whose `levels` it was part, and the same code queues it on another soon.
    pub(super) fn note_detached(
        &mut self,
        record: &EventRecord,
        task: TaskId,
        queue: QueueId,
        levels: Vec<EntityId>,
    ) {
        self.sched.flush_given_weights(self.sched.cpu_of(queue));
        for entity in levels {
            self.note_minimum(self.sched.queue_of(entity));
        }
        self.note_minimum(queue);
        let pid = self.pid_of(task);
        let by = &mut self.cpus[record.cpu.index()];
        by.detached.push((pid, record.number));
        by.tested = None;
        by.detached_in = contexts(record);
    }

    /// Queues what code on this CPU has taken off other queues, as soon as its next event shows that it has done so.
    pub(super) fn attach_before(&mut self, record: &EventRecord) {
        let cpu = record.cpu;
        if self.cpus[cpu.index()].detached.is_empty() {
            return;
        }
        match &record.what {
            RecordKind::Migrate { pid, .. } if !self.tasks.get(pid).is_some_and(|info| info.waking) => return,
            RecordKind::OtherProbe => return,
            RecordKind::Probe(probe) if !follows_attach(probe) => return,
            // The outcome of the test of one of them.
            RecordKind::Probe(probe)
                if probe.by == Some(ReschedCaller::Preemption) && self.cpus[cpu.index()].tested.is_some() =>
            {
                return;
            }
            // What is accounted in another context is no part of it; traced steps tell their own clock.
            RecordKind::Runtime { .. }
                if contexts(record) != self.cpus[cpu.index()].detached_in
                    && !self.recording.traces_places => {}
            RecordKind::Runtime { pid, .. } => {
                // Accounting of the queue that they join comes first.
                let task = self.tasks.get(pid).map(|info| info.id);
                let charged = task.map(|task| self.sched.task(task).cpu());
                if charged.is_some() && charged == self.detached_dest(cpu) {
                    return;
                }
            }
            _ => {}
        }
        match &record.what {
            // The others are attached after it.
            RecordKind::Probe(probe) if probe.at == At::WakeupPreempt => {
                self.attach_until(record, cpu, probe.task());
            }
            // An idle CPU is asked without a test, once for each.
            RecordKind::Probe(probe) if probe.by == Some(ReschedCaller::Preemption) => {
                let queued = self.cpus[cpu.index()].queues;
                let detached = &self.cpus[cpu.index()].detached;
                let last = queued.filter(|pid| detached.iter().any(|(detached, _)| detached == pid));
                self.attach_until(record, cpu, last);
            }
            _ => self.attach_detached(record, cpu),
        }
    }

    /// Before an event: what code on other CPUs has taken off queues is on another by now, unless those report more of that. A CPU
    /// that balances in a soft interrupt may report nothing else for long.
    pub(super) fn attach_elsewhere(&mut self, record: &EventRecord) {
        for by in (0..self.cpus.len()).map(|index| Cpu(index as u32)).filter(|&by| by != record.cpu) {
            let info = &self.cpus[by.index()];
            let time = Ns(info.reported.0 + ATTACHED_AFTER.0);
            if info.detached.is_empty() || time > record.time || self.moves_on(by) {
                continue;
            }
            let attached = EventRecord { time, cpu: by, what: RecordKind::Other, ..record.clone() };
            self.attach_detached(&attached, by);
            self.look_again(by, time, None);
        }
    }

    /// Whether the next that `cpu` reports is part of moving what its code has taken off queues.
    fn moves_on(&self, cpu: Cpu) -> bool {
        let next = self.window.on_cpu(cpu).next();
        next.filter(|next| contexts(next) == self.cpus[cpu.index()].detached_in).is_some_and(|next| {
            matches!(
                next.what,
                RecordKind::Migrate { .. }
                    | RecordKind::Runtime { .. }
                    | RecordKind::Probe(_)
                    | RecordKind::OtherProbe
            )
        })
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
        self.end_pass(by);
        let detached = &self.cpus[by.index()].detached;
        let from = match last {
            Some(last) => detached.iter().position(|(pid, _)| *pid == last).unwrap_or(detached.len()),
            None => 0,
        };
        let detached = &mut self.cpus[by.index()].detached;
        for (pid, event) in detached.split_off(from).into_iter().rev() {
            let Some(task) = self.tasks.get(&pid).map(|info| info.id) else { continue };
            if self.sched.is_on_queue(task) {
                continue;
            }
            let dest = self.sched.task(task).cpu();
            self.prepare_enqueue(by, task, dest);
            let (entity, queue) = (self.sched.task_entity(task), self.queue_of(task));
            self.follow_clock(record, dest);
            self.follow_unprinted_clock(record, dest);
            self.charge_departed(record, dest);
            let told = self.learn_clock_of_join(record, task, queue) && self.clock_told(queue);
            let known = match self.by_lag {
                true => self.place_known(entity, queue),
                false => self.is_known(task) && self.min_known(queue) && told,
            };
            let own =
                JoiningEntity { entity, case: "moved", known, stood: None, others: Vec::new(), since: event };
            let joining = self.joining(task, dest, own);
            self.note_unprinted_charge(dest);
            self.sched.attach(task);
            self.sched.flush_given_weights(dest);
            self.judge_placements(record, joining);
            self.judge_traced(record);
            let shown = by == dest && self.seen.resched_probe;
            if !shown && self.cpus[dest.index()].pending_since > event {
                // The destination has reported the flag before this CPU reported anything again.
                self.sched.force_need_resched(dest, false, false);
            }
            let joins_group = self.info(task).is_some_and(|info| std::mem::take(&mut info.joins_group));
            if joins_group && !self.sched.tests_regrouped() {
                continue;
            }
            let decision = self.sched.wakeup_preempt(task);
            self.sched.apply_preempt(task, decision);
        }
    }

    pub(super) fn on_wakeup(&mut self, record: &EventRecord, wakeup: Wakeup) {
        let target = wakeup.target_cpu;
        let task = self.task(wakeup.pid, Some(wakeup.prio), wakeup.comm, target);
        self.end_selection(record, wakeup.pid, target);
        self.wakeup_arrives(wakeup.pid);
        if let Some(since) = self.cpus[target.index()].idle_since.take() {
            self.sched.end_idle_after(target, record.time.since(since));
        }
        if self.sched.is_on_queue(task) && self.sched.task(task).cpu() != target {
            self.seen.lost += 1;
            self.take_off(task);
        }
        let slept_on_queue = self.slept_on_queue(record, wakeup.pid, task);
        if self.sched.is_delayed(task) && !slept_on_queue {
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
        self.leave_in_test(record.cpu);
        self.judge_wakeup_preempt(record, task, target, was_queued);
        self.cpus[record.cpu.index()].waking = None;
        if let Some(info) = self.info(task) {
            info.waking = false;
            info.moved = None;
        }
    }

    /// Compares whether a task that has just been woken takes the CPU.
    fn judge_wakeup_preempt(&mut self, record: &EventRecord, task: TaskId, target: Cpu, was_queued: bool) {
        let local = target == record.cpu;
        let waker = &mut self.cpus[record.cpu.index()];
        let interrupted =
            waker.preempts.is_some_and(|(cpu, event)| cpu == target && event > waker.waking_began);
        let asked = waker.asked_resched.take() == Some(target);
        // Interrupts that come while a probe is being handled are not probed.
        let tested = waker.tested.take();
        let (began, seen) = (waker.waking_began, waker.waking_seen);
        let pid = self.pid_of(task);
        let tested = tested.filter(|tested| tested.pid == pid);
        let sync = tested.and_then(|tested| tested.sync);
        let pending_at_test = tested.filter(|_| self.seen.resched_probe).map(|tested| tested.pending);
        let probed = pending_at_test.is_some();
        // The target may have reported the flag that this wakeup set before the wakeup itself was reported.
        let set_meanwhile = !probed && !local && self.cpus[target.index()].pending_since > seen;
        let (pending_before, charged_at) = self.cpus[target.index()].pending_before_charge;
        // Where the task was queued already, accounting came with the test, after it had looked for a pending reschedule.
        let charged_by_test = was_queued && charged_at > began;
        let asked_by_test = pending_at_test == Some(false);
        let asked_by_charge = (charged_by_test && !pending_before && self.sched.need_resched(target))
            .then(|| self.sched.need_resched_at_once(target));
        if asked || set_meanwhile || asked_by_test || (charged_by_test && !pending_before) {
            self.sched.force_need_resched(target, false, false);
        }
        // Flags do not tell whether one that was set lazily was asked for again.
        let pending = match probed {
            true => self.sched.need_resched_at_once(target),
            false => self.sched.need_resched(target),
        };
        let truth = match (probed, local) {
            (true, _) => Some(asked),
            (false, true) if self.seen.concluded_wakeups => self.flag_shown_next(target),
            (false, true) => self.flag_set_here(record),
            (false, false) if self.interrupts_tell() => Some(interrupted),
            (false, false) if set_meanwhile => Some(true),
            (false, false) => self.resched_shown_by(target),
        };
        if self.sched.curr(target) != task {
            let was_pending = self.sched.need_resched(target);
            self.charge_for_test(record, task, target, was_queued);
            // Whether one is pending was asked before that charge, and flags do not tell the two apart.
            let charge_asks = asked_by_charge.is_some() || (!was_pending && self.sched.need_resched(target));
            let at_once = asked_by_charge.unwrap_or_else(|| self.sched.need_resched_at_once(target));
            if charge_asks {
                self.sched.force_need_resched(target, false, false);
            }
            let truth = truth.filter(|_| probed || !charge_asks);
            let certain = probed || local || self.interrupts_tell() || !self.is_taken_unseen(pid, target);
            self.sched.force_woken_sync(task, sync == Some(true));
            // What rests on a promise that is not shown is not judged.
            let truth = truth.filter(|_| sync.is_some() || !self.sched.heeds_promises(task));
            // What shows nothing is no evidence, neither against the model nor for it.
            let truth = truth.filter(|&asks| asks || certain);
            self.judge_preempt(record, task, pending, truth);
            if charge_asks && !self.sched.need_resched(target) {
                self.sched.force_need_resched(target, at_once, !at_once);
            }
        }
    }

    /// Whether a task that is woken had slept on its queue: a probe shows it, or that its sleep is not reported as ended. Where
    /// neither is reported of any task, the model's word is taken.
    fn slept_on_queue(&mut self, record: &EventRecord, pid: Pid, task: TaskId) -> bool {
        let cpu = &mut self.cpus[record.cpu.index()];
        let (ended, requeued) = (cpu.sleep_ended.take() == Some(pid), cpu.requeued.take() == Some(pid));
        let shown = match (self.seen.dequeue_probe, self.seen.sleeps_end) {
            (true, _) => requeued,
            (false, true) => !ended,
            (false, false) => self.sched.is_delayed(task),
        };
        let judged_then = self.info(task).is_some_and(|info| std::mem::take(&mut info.stay_shown));
        let may_stay = self.sched.may_delay_dequeues() && self.is_fair(task);
        if may_stay && !self.seen.dequeue_probe && !judged_then {
            let model = self.sched.is_delayed(task);
            let known = self.lag_known(task);
            let verdict = match known {
                _ if !self.seen.sleeps_end => DecisionVerdict::not_judged("the trace does not show it"),
                _ if self.sched.is_on_queue(task) && !model => {
                    DecisionVerdict::not_judged("it had not gone to sleep")
                }
                false => DecisionVerdict::not_judged("state before not known"),
                true => DecisionVerdict::of(ModelAnswers::one(model), shown, "at wakeup"),
            };
            let judged = DecisionPlace {
                record,
                kind: DecisionKind::DelayedDequeue,
                case: yes_no(shown),
                queue: self.queue_of(task),
            };
            self.judge(judged, verdict, |walker| {
                [format!("{} for {}", yes_no(model), walker.name_of(task)), yes_no(shown).to_string()]
            });
        }
        shown
    }

    /// Wakes a task where it slept on its queue, before the running task is accounted.
    pub(super) fn requeue(&mut self, task: TaskId) {
        if self.sched.is_delayed(task) {
            let known = self.average_known(self.queue_of(task));
            self.note_unprinted_charge(self.sched.task(task).cpu());
            self.sched.force_delayed_awake(task);
            self.sched.flush_given_weights(self.sched.task(task).cpu());
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
                self.note_unprinted_charge(cpu);
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
        let Some(info) = self.info(task) else { return };
        let since = info.waking_since;
        if let Some(known) = info.requeued.take() {
            let entity = self.sched.task_entity(task);
            let own = JoiningEntity {
                entity,
                case: "delayed requeue",
                known,
                stood: None,
                others: Vec::new(),
                since,
            };
            self.judge_placements(record, vec![own]);
        }
    }

    /// The task that code on `cpu` is waking, if it sleeps on its queue in the kernel, too.
    pub(super) fn woken_on_queue(&self, cpu: Cpu) -> Option<TaskId> {
        let pid = self.cpus[cpu.index()].waking?;
        let task = self.tasks.get(&pid).map(|info| info.id).filter(|&task| self.sched.is_delayed(task))?;
        let queued = self.window.on_cpu(cpu).find_map(|record| match &record.what {
            RecordKind::SleepEnds(ended) if *ended == pid => Some(false),
            RecordKind::Wakeup(wakeup) if wakeup.pid == pid => Some(true),
            // That wakeup was left to another CPU, and is over; one that is concluded may stand later than it was.
            RecordKind::Switch(_) if !self.seen.concluded_wakeups => Some(false),
            _ => None,
        });
        (queued == Some(true)).then_some(task)
    }

    /// Queues a woken task and compares its place.
    fn activate(&mut self, record: &EventRecord, task: TaskId, target: Cpu) {
        if self.sched.task(task).cpu() != target {
            // A move that the trace does not show.
            self.sched.lay_asleep(task, target);
            self.set_known(task, false);
        }
        self.prepare_enqueue(record.cpu, task, target);
        let (entity, queue) = (self.sched.task_entity(task), self.queue_of(task));
        let moved = self.info(task).and_then(|info| info.moved);
        let known = match self.by_lag {
            true => self.place_known(entity, queue),
            false => {
                self.is_known(task) && self.min_known(queue) && moved.is_none_or(|moved| moved.orig_known)
            }
        };
        // A place by lag hangs on no minimum.
        let raced = moved.filter(|_| !self.by_lag);
        let others = raced.map_or_else(Vec::new, |moved| self.racing_places(queue, moved));
        let since = self.tasks.get(&self.pid_of(task)).map_or(0, |info| info.waking_since);
        let case = if moved.is_some() { "wakeup on another CPU" } else { "wakeup" };
        let stood = moved.is_none().then(|| self.sched.entity_view(entity).vruntime);
        let joining = self.joining(task, target, JoiningEntity { entity, case, known, stood, others, since });
        self.advance_clock_to_enqueue(record, task, target);
        self.follow_clock(record, target);
        self.charge_departed(record, target);
        self.note_unprinted_charge(target);
        self.sched.activate_woken(task, moved.is_some());
        self.sched.flush_given_weights(target);
        self.judge_placements(record, joining);
    }

    /// A test for preemption charges the running entity that it compares: that of a group is not printed. A task that
    /// `was_queued` has waited since before it was woken.
    fn charge_for_test(&mut self, record: &EventRecord, task: TaskId, target: Cpu, was_queued: bool) {
        let compared = self.sched.compared_entities(task).map(|(running, _)| self.sched.entity_view(running));
        if let Some(running) = compared.filter(|running| running.task.is_none() && running.on_rq) {
            match was_queued {
                true => self.advance_clock(record, target),
                false => self.advance_clock_to_enqueue(record, task, target),
            }
            self.note_unprinted_charge(target);
            self.sched.stand_on(target);
            self.sched.charge_queue(self.sched.queue_of(running.id));
        }
    }

    /// Advances the clock of a queue that code on this CPU takes a task off, or puts it on, where no probe shows more.
    fn advance_moves_clock(&mut self, record: &EventRecord, cpu: Cpu) {
        let shown = self.recording.shows_weights || self.recording.traces_places || self.groups_hidden;
        let charged = self.cpus[record.cpu.index()].charged == Some(cpu);
        let curr = self.sched.curr(cpu);
        // What a task is charged that runs on the root queue itself is printed: what is moved for its affinity's sake leaves at the
        // clock at which that was changed.
        if shown || charged || !self.is_fair(curr) || self.sched.levels(curr).len() == 1 {
            return;
        }
        let Some(ahead) = self.clock_ahead(cpu) else { return };
        self.advance_until(cpu, record.time, ahead);
    }

    /// Lets the clock of a runqueue come to when a task is queued there, where a group's entity is charged then.
    fn advance_clock_to_enqueue(&mut self, record: &EventRecord, task: TaskId, target: Cpu) {
        if !self.come_to_enqueue(task, target) {
            self.advance_clock(record, target);
        }
    }

    /// Lets that clock come as far as the task's wait tells it. Returns whether the wait tells it.
    pub(super) fn come_to_enqueue(&mut self, task: TaskId, target: Cpu) -> bool {
        let curr = self.sched.curr(target);
        let in_group = self.is_fair(curr) && self.sched.levels(curr).len() > 1;
        let told = self.clock_of_enqueue(self.pid_of(task), target).filter(|_| in_group);
        let told = told.filter(|&clock| clock >= self.sched.rq_clock(target));
        if let Some(clock) = told {
            self.sched.set_rq_clock(target, clock);
        }
        told.is_some()
    }

    /// Lets the clock of a runqueue follow the trace's where an enqueue accounts only levels that print nothing.
    pub(super) fn advance_clock(&mut self, record: &EventRecord, target: Cpu) {
        let info = &self.cpus[target.index()];
        let (_, charged_at) = info.pending_before_charge;
        let began = self.cpus[record.cpu.index()].waking_began;
        let told = charged_at.max(info.clock_shown) > began;
        // What a task is charged that runs on the root queue itself is printed.
        let curr = self.sched.curr(target);
        let printed = self.is_fair(curr) && self.sched.levels(curr).len() == 1;
        // Where groups are hidden, what is accounted without a word is not what the core has there.
        let silent = !told && !printed && !self.groups_hidden;
        let Some(ahead) = self.clock_ahead(target).filter(|_| silent) else { return };
        let enqueued = info.enqueued.filter(|enqueued| enqueued.event > began);
        let (time, least) = enqueued.map_or((record.time, i64::MIN), |enqueued| {
            (enqueued.time, enqueued.not_before.0.wrapping_sub(enqueued.time.0) as i64)
        });
        self.advance_until(target, time, ahead.max(least));
    }

    /// Where a task that was moved while waking may stand. The old queue's minimum may have been read, without its lock, at
    /// another moment between the move and now.
    fn racing_places(&self, queue: QueueId, moved: MovedWhileWaking) -> Vec<Vruntime> {
        /// Reports of two CPUs about one time stand in the trace in either order, so many events apart.
        const OUT_OF_ORDER: u64 = 24;
        let Some(old) = self.knowledge.queue(moved.orig) else { return Vec::new() };
        let here = self.sched.queue_view(queue).min_vruntime;
        let from = moved.event.saturating_sub(OUT_OF_ORDER);
        // The last one before counts as well: it held until the next.
        let first = old.minima.iter().rposition(|(_, since)| *since <= from).unwrap_or(0);
        let since = old.minima.iter().skip(first);
        since.map(|&(minimum, _)| here.plus(moved.vruntime.minus(minimum))).collect()
    }
}

/// How long after code has taken a task off a queue it is on the other: where that charges a running task, it does so 1.0 to 22 us
/// later in recordings, half of 558 times within 2.3 us.
const ATTACHED_AFTER: Ns = Ns(2_000);

/// A decision as the kernel took it where the model decided otherwise.
pub(super) fn decision_for(preempt: bool) -> PreemptDecision {
    let reason = if preempt { PreemptReason::BeyondGranularity } else { PreemptReason::WithinGranularity };
    PreemptDecision { preempt, reason }
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
