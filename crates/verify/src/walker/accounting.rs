//! `sched_stat_runtime`: accounting, and what the kernel does right after it without an event of its own.

use fairlab_event::{Cpu, Ns, Pid, TaskState};
use fairlab_kernel::TaskId;
use fairlab_kernel::Vruntime;
use fairlab_kernel::decision::{TickDecision, TickReason};

use super::super::probe::At;
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::DecisionOutcome;
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
        let was_pending = self.sched.need_resched(cpu);
        self.cpus[cpu.index()].pending_before_charge = (was_pending, record.number);
        self.charge(record, task, cpu, runtime, vruntime);
        self.requeue_after_charge(record.cpu);
        if self.detached_dest(record.cpu) == Some(cpu) {
            // This was the accounting of the queue that they join; where the rest is shown, that comes first.
            if !self.probed {
                self.attach_detached(record, record.cpu);
            }
        } else if record.cpu == cpu {
            self.after_accounting(record, task, pid, cpu, was_pending);
        } else {
            self.requeue_from_elsewhere(record, task);
        }
    }

    /// Charges the running task and compares where that leads.
    fn charge(&mut self, record: &EventRecord, task: TaskId, cpu: Cpu, runtime: Ns, printed: Option<u64>) {
        let entity = self.sched.task_entity(task);
        let before = self.sched.entity_view(entity);
        let Some(model) = self.sched.charge(cpu, runtime) else { return };
        let Some(kernel) = printed.map(Vruntime) else { return };
        let queue = self.sched.queue_of(entity);
        let judged = DecisionPlace { record, kind: DecisionKind::Vruntime, case: "accounting", queue };
        let changes = model != kernel && self.changes_unseen(task);
        let outcome = DecisionOutcome::of(model, kernel, "vruntime")
            .unless((!self.is_known(task)).then_some("vruntime not known before"))
            .unless(changes.then_some("nice level changed unseen"));
        self.judge(judged, outcome, |walker| {
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

    /// Whether the task shows another priority next, and nothing has shown when it was given that.
    fn changes_unseen(&mut self, task: TaskId) -> bool {
        let (pid, old) = (self.pid_of(task), self.sched.task(task).prio());
        let prio = self.prio_shown_later(pid).filter(|&prio| prio != old);
        self.follow_prio(task, prio);
        prio.is_some()
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
        let info = &mut self.cpus[cpu.index()];
        let [in_tick, in_hrtick] = [&mut info.in_tick, &mut info.in_hrtick].map(std::mem::take);
        let in_group_timer = info.in_group_timer || info.returning.is_some();
        let is_tick = match self.seen.tick_probe {
            true => in_tick,
            false => record.flags.in_hardirq() && !in_group_timer && !self.queues_woken_next(cpu),
        };
        if is_tick && in_hrtick {
            let why = "the timer at the end of a slice";
            self.count(DecisionKind::TickPreempt, "hrtick", DecisionOutcome::NotJudged(why));
            self.tick_levels(cpu);
            // That timer asks without looking.
            self.sched.force_need_resched(cpu, true, false);
        } else if is_tick {
            self.judge_tick(record, task, cpu, was_pending);
        } else if !in_interrupt(record) && self.takes_yield(task) {
            self.apply_yield(task, cpu);
            if self.by_lag && !self.leaves_next(pid, cpu) {
                // It was picked again, without a word.
                self.kept_running(task);
            }
        } else if !in_interrupt(record) && self.leaves_class(task) {
            self.leave_class(task);
        } else if self.is_requeued_next(pid) {
            self.requeue_running(task, cpu);
        } else if let Some((child, comm)) = self.forks_next(pid, cpu).filter(|_| !in_interrupt(record)) {
            self.place_child(task, child, comm, cpu);
        } else if self.is_dequeue(record, pid, cpu) {
            let state = self.next_switch(cpu).map_or(TaskState::INTERRUPTIBLE, |switch| switch.prev_state);
            self.give_coming_weights(cpu, ends_dequeue);
            self.block(cpu, state);
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

    /// The tick: accounts the levels above the task's, and asks at each whether the CPU is taken away.
    fn judge_tick(&mut self, record: &EventRecord, task: TaskId, cpu: Cpu, was_pending: bool) {
        let truth = self.tick_asks(cpu);
        let levels = self.sched.levels(task);
        let queues = levels.into_iter().map(|entity| self.sched.queue_of(entity)).collect::<Vec<_>>();
        let known = queues.iter().all(|&queue| self.all_known(queue));
        let decision = self.tick_levels(cpu);
        let model = self.sched.need_resched(cpu);
        let since_known = self.by_lag || self.cpus[cpu.index()].pick_seen;
        let outcome = match truth {
            _ if was_pending => DecisionOutcome::NotJudged("a reschedule is already pending"),
            _ if self.groups.is_limited(self.sched.group_of(task)) => {
                DecisionOutcome::NotJudged("its group may have used its runtime")
            }
            None => DecisionOutcome::NotJudged("the trace does not show it"),
            Some(_) if self.sched.has_slice_timer() && !self.seen.names_timers => {
                DecisionOutcome::NotJudged("which timer it was is not shown")
            }
            Some(_) if !known => DecisionOutcome::NotJudged("queue not known"),
            Some(_) if !since_known && depends_on_pick(decision.reason) => {
                DecisionOutcome::NotJudged("since when it runs is not known")
            }
            Some(truth) => DecisionOutcome::of(model, truth, decision.reason.describe()),
        };
        let case = yes_no(truth.unwrap_or(model));
        let queue = queues.last().copied().unwrap_or_else(|| self.root_queue(cpu));
        let judged = DecisionPlace { record, kind: DecisionKind::TickPreempt, case, queue };
        self.judge(judged, outcome, |_| {
            [format!("{}: {}", yes_no(model), decision.reason.describe()), case.to_string()]
        });
        let asks = truth.unwrap_or(model);
        let lazily = self.sched.reschedules_lazily();
        let at_once = self.sched.need_resched_at_once(cpu);
        self.sched.force_need_resched(cpu, was_pending || (asks && !lazily), lazily && (asks || at_once));
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
