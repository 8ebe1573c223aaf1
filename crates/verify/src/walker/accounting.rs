//! `sched_stat_runtime`: accounting, and what the kernel does right after it without an event of its own.

use fairlab_event::{Cpu, Ns, Pid, TaskState};
use fairlab_kernel::decision::{TickDecision, TickReason};
use fairlab_kernel::{Policy, TaskId, Vruntime};

use super::super::probe::At;
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::{DecisionOutcome, DecisionVerdict, ModelAnswers};
use super::judging::yes_no;
use super::truth::in_interrupt;
use super::{DecisionPlace, Walker};

impl Walker {
    pub(super) fn on_runtime(&mut self, record: &EventRecord, pid: Pid, runtime: Ns, vruntime: Option<u64>) {
        let known_cpu = self.tasks.get(&pid).map(|info| self.sched.task(info.id).cpu());
        let cpu = known_cpu.unwrap_or(record.cpu);
        let task = self.task(pid, None, record.comm, cpu);
        if !self.is_fair(task) {
            self.turn_fair(task);
            return;
        }
        if self.sched.curr(cpu) != task {
            // It runs where it was not known to run.
            self.seen.lost += 1;
            if let Some(vruntime) = vruntime {
                self.force_vruntime(self.sched.task_entity(task), Vruntime(vruntime));
            }
            return;
        }
        let woken = self.woken_on_queue(record.cpu).filter(|_| !self.seen.dequeue_probe);
        let charged_first = self.sched.charges_before_requeue();
        if let Some(woken) = woken.filter(|_| !charged_first) {
            self.requeue(woken);
        }
        let was_pending = self.sched.need_resched(cpu);
        self.cpus[cpu.index()].pending_before_charge = (was_pending, record.number);
        self.charge(record, task, cpu, runtime, vruntime);
        self.note_minimum(self.queue_of(task));
        if let Some(woken) = woken.filter(|_| charged_first) {
            self.requeue(woken);
        }
        self.requeue_after_charge(record.cpu);
        self.note_clock_ahead(record, cpu);
        let by = &mut self.cpus[record.cpu.index()];
        by.charged = Some(cpu);
        if record.cpu != cpu && by.waking.is_some() {
            // The woken task is being queued there: its test comes after this.
            by.waking_seen = record.number;
        }
        if self.detached_dest(record.cpu) == Some(cpu) {
            // This was the accounting of the queue that they join; where the rest is shown, that comes first.
            if !self.recording.traces_places && !self.recording.shows_weights {
                self.attach_detached(record, record.cpu);
            }
        } else if record.cpu == cpu {
            self.after_accounting(record, task, pid, cpu, was_pending);
        } else {
            self.requeue_from_elsewhere(record, task);
        }
    }

    /// How far a runqueue's clock is from the event that reports what has just been charged. It was read before that: where
    /// it is past the event it has been set too late, and is not to be set as late again. Where running groups are charged
    /// without a word, later moments are told by how far it is.
    fn note_clock_ahead(&mut self, record: &EventRecord, cpu: Cpu) {
        let ahead = self.sched.rq_clock(cpu).0.wrapping_sub(record.time.0) as i64;
        let kept = self.clocks_shown || !self.prints_every_charge();
        self.cpus[cpu.index()].clock_ahead = Some(if kept { ahead } else { ahead.min(0) });
    }

    /// Charges the running task and compares where that leads.
    fn charge(&mut self, record: &EventRecord, task: TaskId, cpu: Cpu, runtime: Ns, printed: Option<u64>) {
        let entity = self.sched.task_entity(task);
        let before = self.sched.entity_view(entity);
        let Some(model) = self.sched.charge(cpu, runtime) else { return };
        let Some(kernel) = printed.map(Vruntime) else { return };
        let judged = DecisionPlace {
            record,
            kind: DecisionKind::Vruntime,
            case: "accounting",
            queue: self.sched.queue_of(entity),
        };
        let verdict = DecisionVerdict::of(ModelAnswers::one(model), kernel, "vruntime")
            .unless((!self.is_known(task)).then_some("vruntime not known before"));
        let changed = verdict.is_miss() && self.unseen_change(task, before.vruntime, runtime, kernel);
        let verdict = verdict.unless(changed.then_some("nice level or policy changed unseen"));
        self.judge(judged, verdict, |walker| {
            [
                format!("{} at {} after {} ns", walker.name_of_entity(&before), model.0, runtime.0),
                format!("{} ({:+})", kernel.0, kernel.minus(model)),
            ]
        });
        self.force_vruntime(entity, kernel);
        if let Some(info) = self.info(task) {
            info.printed = true;
        }
    }

    /// Whether a charge shows a change that was not in the trace: to the nice level that the task shows next, or to or from a
    /// policy whose tasks weigh next to nothing.
    fn unseen_change(&mut self, task: TaskId, before: Vruntime, runtime: Ns, kernel: Vruntime) -> bool {
        let pid = self.pid_of(task);
        let old = self.sched.task(task).prio();
        let explains = |virtual_time: u64| before.plus(virtual_time as i64) == kernel;
        if let Some(prio) = self.prio_shown_later(pid).filter(|&prio| prio != old) {
            self.follow_prio(task, Some(prio));
            if explains(self.sched.virtual_time(task, runtime)) {
                return true;
            }
        }
        // No priority shows that policy.
        let other = if self.sched.policy(task) == Policy::Idle { Policy::Normal } else { Policy::Idle };
        let changed = explains(self.sched.virtual_time_under(task, other, runtime));
        if changed {
            let nice = self.sched.task(task).prio().nice().unwrap_or(0);
            self.sched.force_nice(task, nice, other);
        }
        changed
    }

    /// What code of the running task's own CPU does next.
    fn after_accounting(
        &mut self,
        record: &EventRecord,
        task: TaskId,
        pid: Pid,
        cpu: Cpu,
        was_pending: bool,
    ) {
        let in_tick = std::mem::take(&mut self.cpus[cpu.index()].in_tick);
        let in_hrtick = std::mem::take(&mut self.cpus[cpu.index()].in_hrtick);
        let in_group_timer =
            self.cpus[cpu.index()].in_group_timer || self.cpus[cpu.index()].returning.is_some();
        let is_tick = record.flags.in_hardirq() && !in_group_timer && !self.queues_woken_next(cpu);
        if (is_tick || in_tick) && in_hrtick {
            self.count(
                DecisionKind::TickPreempt,
                "hrtick",
                DecisionVerdict::not_judged("the timer at the end of a slice"),
            );
            self.tick_levels(cpu);
            // That timer asks without looking.
            self.sched.force_need_resched(cpu, true, false);
        } else if is_tick || in_tick {
            self.judge_tick(record, task, cpu, was_pending);
        } else if !in_interrupt(record) && self.takes_yield(task) {
            self.apply_yield(task, cpu);
            if self.by_lag && !self.leaves_next(pid, cpu) {
                // It was picked again, without a word.
                self.kept_running(record, task);
            }
        } else if !in_interrupt(record) && self.leaves_class(task) {
            self.leave_class(task);
        } else if self.is_requeued_next(pid) {
            self.requeue_running(task, cpu);
        } else if self.is_requeued_to_end(record, pid, cpu) {
            self.requeue_running(task, cpu);
            if let Some(info) = self.info(task) {
                info.requeued_to_end = true;
            }
        } else if let Some((child, comm)) = self.forks_next(pid, cpu).filter(|_| !in_interrupt(record)) {
            self.place_child(task, child, comm, cpu);
        } else if self.is_dequeue(record, pid, cpu) {
            let state = self.next_switch(cpu).map_or(TaskState::INTERRUPTIBLE, |switch| switch.prev_state);
            self.give_coming_weights(cpu, ends_dequeue);
            self.block(record, cpu, state);
        }
    }

    /// What the tick does at each level: accounts, reweights, asks.
    fn tick_levels(&mut self, cpu: Cpu) -> TickDecision {
        self.give_coming_weights(cpu, |record| {
            !(record.flags.in_hardirq()
                && matches!(record.what, RecordKind::Probe(_) | RecordKind::OtherProbe))
        });
        let decision = self.sched.tick_here(cpu);
        self.sched.flush_given_weights(cpu);
        decision
    }

    /// Whether the tick's answer hangs on the running task's own request alone, and that is known: others wait on the only
    /// queue, and its slice has been protected since it got the CPU.
    fn knows_request(&self, task: TaskId) -> bool {
        let entity = self.sched.task_entity(task);
        let info = self.knowledge.entity(entity);
        self.hangs_on_request(task) && info.request_known && !info.request_hidden
    }

    fn hangs_on_request(&self, task: TaskId) -> bool {
        let cpu = &self.cpus[self.sched.task(task).cpu().index()];
        let view = self.sched.queue_view(self.queue_of(task));
        let others_wait = view.waiting.iter().any(|waiting| !waiting.delayed);
        let runs_protected = cpu.queue_known && cpu.pick_seen && !cpu.picked_again;
        let by_deadline = self.by_lag && self.sched.protects_until_deadline();
        by_deadline
            && !self.groups_hidden
            && others_wait
            && runs_protected
            && self.sched.levels(task).len() == 1
    }

    /// The tick takes the CPU from a task: its request is used up, and it has just got a new one.
    fn learn_request(&mut self, task: TaskId, model: TickReason) {
        let entity = self.sched.task_entity(task);
        if !self.hangs_on_request(task) || self.knowledge.entity(entity).request_known {
            return;
        }
        if model != TickReason::SliceUsed {
            self.sched.force_new_request(entity);
        }
        self.knowledge.entity_mut(entity).request_known = true;
    }

    /// A slice has been used up and nothing makes way: what sleeps on these queues in the core has left them in the kernel.
    fn leave_unseen(&mut self, task: TaskId) {
        for running in self.sched.levels(task) {
            let view = self.sched.queue_view(self.sched.queue_of(running));
            if view.waiting.iter().any(|waiting| !waiting.delayed) {
                continue;
            }
            for gone in view.waiting {
                match gone.task {
                    Some(gone) => self.sched.force_delayed_out(gone),
                    None => self.sched.force_delayed_group_out(gone.id),
                }
                self.knowledge.entity_mut(gone.id).lag_known = false;
            }
        }
    }

    /// The tick: accounts the levels above the task's, and asks at each whether the CPU is taken away.
    fn judge_tick(&mut self, record: &EventRecord, task: TaskId, cpu: Cpu, was_pending: bool) {
        let truth = self.tick_asks(cpu);
        let queues =
            self.sched.levels(task).into_iter().map(|entity| self.sched.queue_of(entity)).collect::<Vec<_>>();
        let known = queues.iter().all(|&queue| self.all_known(queue)) || self.knows_request(task);
        let decision = self.tick_levels(cpu);
        let model = self.sched.need_resched(cpu);
        let pick_seen = self.by_lag || self.cpus[cpu.index()].pick_seen;
        let verdict = match truth {
            _ if was_pending => DecisionVerdict::not_judged("a reschedule is already pending"),
            _ if self.groups.is_limited(self.sched.group_of(task)) => {
                DecisionVerdict::not_judged("its group may have used its runtime")
            }
            None => DecisionVerdict::not_judged("the trace does not show it"),
            Some(_) if !known => DecisionVerdict::not_judged("queue not known"),
            Some(_) if !pick_seen && depends_on_pick(decision.reason) => {
                DecisionVerdict::not_judged("since when it runs is not known")
            }
            Some(truth) => DecisionVerdict::of(ModelAnswers::one(model), truth, decision.reason.describe()),
        };
        let case = yes_no(truth.unwrap_or(model));
        let queue = queues.last().copied().unwrap_or_else(|| self.root_queue(cpu));
        let doubted =
            queues.first().is_some_and(|&queue| self.doubts_weights(DecisionKind::TickPreempt, queue));
        let verdict = verdict.unless(doubted.then_some("a group's weight was changed unseen"));
        let outcome = verdict.outcome();
        let judged = DecisionPlace { record, kind: DecisionKind::TickPreempt, case, queue };
        self.judge(judged, verdict, |_| {
            [format!("{}: {}", yes_no(model), decision.reason.describe()), case.to_string()]
        });
        if outcome == DecisionOutcome::Missed(TickReason::SliceUsed.describe()) && self.by_lag {
            self.leave_unseen(task);
        }
        if truth == Some(true) && !was_pending {
            self.learn_request(task, decision.reason);
        }
        let asks = truth.unwrap_or(model);
        let lazily = self.sched.reschedules_lazily();
        let at_once = self.sched.need_resched_at_once(cpu);
        self.sched.force_need_resched(cpu, was_pending || (asks && !lazily), lazily && (asks || at_once));
        self.note_minima(task);
    }
}

/// Whether a dequeue that leads to a switch is over: the switch, or another step.
pub(super) fn ends_dequeue(record: &EventRecord) -> bool {
    match &record.what {
        RecordKind::Switch(_) | RecordKind::Migrate { .. } => true,
        RecordKind::Probe(probe) if probe.cpu().is_some_and(|cpu| cpu != record.cpu) => true,
        RecordKind::Probe(probe) => {
            matches!(probe.at, At::DequeueEntitiesReturn | At::EnqueueEntity | At::EnqueueTask)
        }
        _ => false,
    }
}

/// Whether the tick's answer could be another one if the running task had been picked earlier.
fn depends_on_pick(reason: TickReason) -> bool {
    !matches!(reason, TickReason::Alone | TickReason::SliceUsed)
}
