//! What the recorder's probes show: announcements of what is to come, and the kernel's own values to compare with.

use fairlab_event::{Cpu, Ns, Pid};
use fairlab_kernel::open_loop::EntityId;
use fairlab_kernel::{TaskId, Vruntime};

use super::super::probe::{At, Key, ProbeHit, ReschedCaller};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::DecisionOutcome;
use super::judging::yes_no;
use super::selections::promises_sleep;
use super::state::PreemptionTest;
use super::switching::DEQUEUE_SLEEP;
use super::{DecisionPlace, ReturnedPlacement, Walker};

impl Walker {
    pub(super) fn on_probe(&mut self, record: &EventRecord, probe: &ProbeHit) {
        self.take_clock(probe);
        match probe.at {
            At::Tick => {
                self.seen.tick_probe = true;
                self.cpus[record.cpu.index()].in_tick = true;
                self.compare_entity(record, probe);
            }
            At::Resched | At::ReschedLazy => {
                // Where it is not told who asks, flags tell more.
                self.seen.resched_probe |= !self.recording.hides_callers;
                match probe.by {
                    Some(ReschedCaller::Preemption) => {
                        self.cpus[record.cpu.index()].asked_resched = probe.cpu();
                    }
                    _ => self.on_resched(probe),
                }
            }
            At::WakeupPreempt => {
                let pending = probe.cpu().is_some_and(|cpu| self.sched.need_resched_at_once(cpu));
                let tested = |pid| PreemptionTest { pid, pending, sync: promises_sleep(probe) };
                self.cpus[record.cpu.index()].tested = probe.task().map(tested);
                self.activate_tested(record, probe);
            }
            At::Nice => self.on_nice(record, probe),
            At::SetScheduler => self.on_set_scheduler(record, probe),
            At::MoveGroup => self.on_move_group(record, probe),
            At::Yield => self.on_yield(probe),
            At::SetShares => self.on_set_shares(probe),
            At::SelectTaskRq => self.on_select(record, probe),
            At::QueueWakelist => self.on_wake_list(record, probe),
            At::QueueWakelistReturn => self.leave_wakeup(record.cpu),
            At::SetAffinity => self.on_set_affinity(record, probe),
            At::SetAllowed => self.on_set_allowed(probe),
            At::LoadBalance | At::FindBusiestGroupReturn => self.on_balance_probe(probe),
            _ => self.on_queue_probe(record, probe),
        }
    }

    /// A probe where entities join and leave queues, and are weighed.
    fn on_queue_probe(&mut self, record: &EventRecord, probe: &ProbeHit) {
        self.follow_slice(probe);
        match probe.at {
            At::ReweightEntity => self.on_reweight(record, probe),
            At::ReweightEntityReturn => self.after_reweight(record, probe),
            At::EnqueueEntity | At::EnqueueTask => self.on_enqueue_probe(record, probe),
            At::PutPrevEntity if probe.group_entity().is_some() => self.learn_departed(probe),
            At::DequeueEntity if probe.group_entity().is_some() => {}
            // The charge before has told that it is taken off and put back: the core has done both.
            At::DequeueEntity if self.is_put_back_already(record, probe) => {}
            At::DequeueEntity if self.leaves_late_here(probe) => {
                self.compare_entity(record, probe);
                self.cpus[record.cpu.index()].leaves_late = self.probed_entity(probe);
                self.give_coming_weights(record.cpu, ends_late_dequeue);
                self.leave_late(record.cpu);
            }
            At::DequeueEntity | At::SetNextEntity | At::SetNextTask | At::PutPrevEntity => {
                self.note_taken_off(record, probe);
                self.charge_passed_over(probe);
                if !self.is_done(probe) {
                    self.compare_minimum(record, probe);
                }
                self.compare_entity(record, probe);
                if probe.at == At::DequeueEntity {
                    self.doubt_charged(probe);
                    self.block_uncharged(record, probe);
                }
            }
            // Off the time line to be placed again: the core has done so already.
            At::Remove
                if probe.task().is_some() && probe.task() == self.cpus[record.cpu.index()].requeued => {}
            At::Remove | At::Insert => self.compare_entity(record, probe),
            At::Place => {
                self.take_off_old_group(record, probe);
                self.put_waiting_back(record, probe);
                self.compare_minimum(record, probe);
                self.before_place(record, probe);
                if !self.by_lag {
                    self.return_if_placed(record);
                }
            }
            At::PlaceReturn => {
                self.after_place(record, probe);
                if let Some(joined) = self.cpus[record.cpu.index()].put_back.take() {
                    self.judge_placements(record, vec![joined]);
                }
                self.return_if_placed(record);
            }
            At::AverageReturn if probe.in_place => self.compare_average(record, probe),
            At::DequeueEntities => {
                self.cpus[record.cpu.index()].in_dequeue = true;
                self.leave_late(record.cpu);
                self.note_taken_off(record, probe);
                self.note_throttled_leave(record, probe);
                self.on_dequeue_entities(record, probe);
                self.doubt_charged(probe);
            }
            At::DequeueEntitiesReturn => {
                self.cpus[record.cpu.index()].in_dequeue = false;
                self.leave_late(record.cpu);
                self.leave_throttled(record);
                self.block_before_sleepers(record, probe);
                self.take_off_old_group(record, probe);
                self.compare_lag_at_dequeue(record, probe);
            }
            At::PickReturn if !self.by_lag => self.charge_for_pick(record.cpu),
            At::Throttle => self.on_throttle(record, probe),
            At::Unthrottle => self.on_unthrottle(record, probe),
            At::RequeueDelayed => self.on_requeue(record, probe),
            _ => {}
        }
    }

    /// A probe shows something joining a queue.
    fn on_enqueue_probe(&mut self, record: &EventRecord, probe: &ProbeHit) {
        self.take_off_old_group(record, probe);
        if probe.task().is_some() {
            self.cpus[record.cpu.index()].queues = probe.task();
        }
        self.take_distance(probe);
        self.note_return_of_task(record, probe);
        self.compare_minimum(record, probe);
        self.doubt_charged(probe);
        self.put_waiting_back(record, probe);
    }

    /// What a probe shows joining or leaving a queue has the group's entity charged that runs there, unless that leaves itself.
    fn doubt_charged(&mut self, probe: &ProbeHit) {
        let entity = self.probed_entity(probe);
        if self.clocks_shown || entity.is_some_and(|entity| self.sched.is_current(entity)) {
            return;
        }
        match self.probed_queue(probe) {
            Some(queue) => {
                let runs = self.sched.current_of(queue).filter(|curr| curr.task.is_none());
                if let Some(curr) = runs {
                    self.knowledge.entity_mut(curr.id).known = false;
                    self.knowledge.set_minimum_known(queue, false);
                }
            }
            None => probe.cpu().into_iter().for_each(|cpu| self.doubt_running_groups(cpu)),
        }
    }

    /// A task joins a queue at a distance from its minimum that was another queue's: how far that was the probe shows.
    fn take_distance(&mut self, probe: &ProbeHit) {
        if self.by_lag || probe.at != At::EnqueueEntity || probe.task().is_none() {
            return;
        }
        let Some((entity, vruntime)) = self.probed_entity(probe).zip(probe.unsigned(Key::Vruntime)) else {
            return;
        };
        if !self.sched.entity_view(entity).on_rq && probe.get(Key::OnRq) == Some(0) {
            self.force_vruntime(entity, Vruntime(vruntime));
        }
    }

    /// Some probes show the clock of the runqueue itself.
    fn take_clock(&mut self, probe: &ProbeHit) {
        let Some((cpu, clock)) = probe.cpu().zip(probe.unsigned(Key::Clock).map(Ns)) else { return };
        self.clocks_shown = true;
        if clock > self.sched.rq_clock(cpu) && !self.prints_charges(cpu, probe) {
            self.sched.set_rq_clock(cpu, clock);
        }
    }

    /// Whether all that the step is charged which a probe is about is printed: what runs on its queue is a task.
    fn prints_charges(&self, cpu: Cpu, probe: &ProbeHit) -> bool {
        let curr = self.sched.curr(cpu);
        let runs = match self.probed_queue(probe) {
            Some(queue) => self.sched.current_of(queue).is_some_and(|curr| curr.task.is_some()),
            None => self.sched.levels(curr).len() == 1,
        };
        // When another is picked, everything has been charged.
        self.is_fair(curr) && runs && probe.at != At::SetNextEntity
    }

    /// Another task is looked for on `cpu`: before, the running groups' entities are charged, up to where the task below them
    /// will be.
    fn charge_for_pick(&mut self, cpu: Cpu) {
        let curr = self.sched.curr(cpu);
        if self.clocks_shown || self.cpus[cpu.index()].blocked || !self.is_fair(curr) {
            return;
        }
        // Without a charge to come no time has passed since the last one, which may not have been that of the groups.
        let Some(clock) = self.clock_of_charge_at_pick(cpu) else { return self.account_levels(cpu) };
        self.sched.set_rq_clock(cpu, clock.max(self.sched.rq_clock(cpu)));
        self.sched.stand_on(cpu);
        for entity in self.sched.levels(curr).into_iter().skip(1) {
            if self.sched.entity_view(entity).on_rq {
                self.sched.charge_queue(self.sched.queue_of(entity));
            }
        }
    }

    /// Another entity takes the place of a group's that runs on: the look for it has charged that group's up to the runqueue's clock.
    fn charge_passed_over(&mut self, probe: &ProbeHit) {
        let queue = self.probed_queue(probe).filter(|_| probe.at == At::SetNextEntity && self.clocks_shown);
        let Some(queue) = queue else { return };
        let passed_over = self.sched.current_of(queue).filter(|curr| curr.task.is_none() && curr.on_rq);
        if passed_over.is_some_and(|curr| Some(curr.id) != self.probed_entity(probe)) {
            self.sched.stand_on(self.sched.cpu_of(queue));
            self.sched.charge_queue(queue);
        }
    }

    /// A group's entity that has left its queue is put away: how far it was charged since then shows now.
    fn learn_departed(&mut self, probe: &ProbeHit) {
        let shown = self.probed_entity(probe).zip(probe.unsigned(Key::Vruntime).map(Vruntime));
        let Some((entity, vruntime)) = shown.filter(|_| !self.by_lag && !self.clocks_shown) else { return };
        if !self.sched.entity_view(entity).on_rq && probe.get(Key::OnRq) == Some(0) {
            self.sched.force_vruntime(entity, vruntime);
        }
    }

    /// Whether the core has taken the entity off already whose dequeue the probe is about.
    fn is_done(&mut self, probe: &ProbeHit) -> bool {
        let entity = self.probed_entity(probe).filter(|_| probe.at == At::DequeueEntity);
        entity.is_some_and(|entity| !self.sched.entity_view(entity).on_rq)
    }

    fn on_yield(&mut self, probe: &ProbeHit) {
        let caller = probe.get(Key::CurrentPid).and_then(|pid| i32::try_from(pid).ok());
        if let Some(info) = caller.and_then(|pid| self.tasks.get_mut(&Pid(pid))) {
            info.yielding = true;
        }
    }

    /// Something else than a test for preemption asks for a reschedule.
    fn on_resched(&mut self, probe: &ProbeHit) {
        let Some(cpu) = probe.cpu() else { return };
        let at_once = self.sched.need_resched_at_once(cpu);
        let lazy = self.sched.need_resched(cpu) && !at_once;
        match probe.at {
            // Where no task waits for a return to user mode, a lazy request is an ordinary one.
            At::ReschedLazy if self.sched.reschedules_lazily() => {
                self.sched.force_need_resched(cpu, at_once, true);
            }
            _ => self.sched.force_need_resched(cpu, true, lazy),
        }
    }

    fn on_requeue(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let entity = self.probed_entity(probe);
        if entity.is_some_and(|entity| self.sched.entity_view(entity).delayed) {
            self.compare_entity(record, probe);
        }
        if let Some(task) = probe.task() {
            self.cpus[record.cpu.index()].requeued = Some(task);
        }
        if let Some(entity) = entity {
            self.doubt_running_groups(self.sched.cpu_of(self.sched.queue_of(entity)));
        }
        match entity {
            Some(entity) if !self.sched.charges_before_requeue() => self.requeue_entity(entity),
            Some(entity) if probe.task().is_some() => {
                self.cpus[record.cpu.index()].requeue_due = Some(entity);
            }
            // What this charges a group's entity with shows only in where it is placed.
            _ => {}
        }
    }

    /// A probe shows a queued entity's place on the time line: compares and takes it over. Tasks of CFS kernels are left
    /// out: their vruntimes are printed.
    pub(super) fn compare_entity(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(entity) = self.probed_entity(probe) else { return };
        let view = self.sched.entity_view(entity);
        // One that is off its queue here is being taken off and put back: the core has done both already.
        let printed = view.task.is_some() && !self.by_lag;
        if !view.on_rq || probe.get(Key::OnRq) == Some(0) || printed {
            return;
        }
        let queue = self.sched.queue_of(entity);
        let runs = self.sched.queue_view(queue).curr.is_some_and(|curr| curr.id == entity);
        let reweighted =
            self.cpus[record.cpu.index()].reweighting.is_some_and(|(reweighted, _)| reweighted == entity);
        if reweighted && probe.at == At::Remove {
            // The core may have given it its new weight already.
            return;
        }
        if probe.at == At::Insert && view.task.is_none() && self.sched.is_current(entity) {
            self.account_levels(self.sched.cpu_of(queue));
            self.knowledge.entity_mut(entity).known = false;
        } else if probe.at == At::Insert && (view.task.is_none() || !runs) {
            // Put on the time line by a step that the core has not done yet.
            return;
        }
        let view = self.sched.entity_view(entity);
        self.follow_weight(entity, probe);
        let Some(vruntime) = probe.unsigned(Key::Vruntime).map(Vruntime) else { return };
        let known = self.is_entity_known(entity);
        let case = if view.task.is_some() { "accounting" } else { "group entity" };
        let judged = DecisionPlace { record, kind: DecisionKind::Vruntime, case, queue };
        let name = self.name_of_entity(&view);
        self.compare(judged, known, [view.vruntime, vruntime], &name);
        // On the way off the time line for a move, the deadline is a distance already.
        let moved = probe.at == At::Remove && self.cpus[record.cpu.index()].in_dequeue;
        let absolute = !moved && self.by_lag;
        if let Some(deadline) = probe.unsigned(Key::Deadline).map(Vruntime).filter(|_| absolute) {
            let case = if view.task.is_some() { "deadline" } else { "group deadline" };
            self.compare(DecisionPlace { case, ..judged }, known, [view.deadline, deadline], &name);
            if view.deadline != deadline {
                self.sched.force_deadline(entity, deadline);
            }
        }
        self.force_vruntime(entity, vruntime);
        // Up to when a group's entity that runs on has been charged is not shown with it.
        let runs_on = view.task.is_none() && runs && probe.at != At::Insert && !self.clocks_shown;
        if !known && (moved || runs_on) {
            self.knowledge.entity_mut(entity).known = false;
        }
        if let Some(until) = probe.unsigned(Key::Lag).filter(|_| !known && runs && self.by_lag) {
            // While an entity runs, the kernel keeps there where its protection ends.
            self.sched.force_protection(entity, Vruntime(until));
        }
    }

    /// An entity is about to be placed: its lag, and the distance to its deadline, are the kernel's from now on.
    fn before_place(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(entity) = self.probed_entity(probe) else { return };
        if self.knowledge.entity(entity).stay_hidden && probe.get(Key::OnRq) == Some(0) {
            // It had left its queue.
            self.sched.force_delayed_group_out(entity);
        }
        let view = self.sched.entity_view(entity);
        // One that the core has on its queue already is being taken off and put back.
        self.cpus[record.cpu.index()].placing =
            self.probed_queue(probe).filter(|_| !view.on_rq || view.delayed).map(|queue| {
                let sleeps = (view.delayed && view.on_rq).then_some(entity);
                (queue, sleeps)
            });
        if view.on_rq {
            return;
        }
        if self.clocks_shown && self.sched.is_current(entity) {
            // The core charges it as the kernel has done, and then gives it its weight.
            return;
        }
        // A group's entity never leaves its queue's time line where that has a minimum: its vruntime is never relative.
        let absolute = probe.unsigned(Key::Vruntime).filter(|_| !self.by_lag && view.task.is_none());
        if absolute.is_some() && self.sched.is_current(entity) {
            self.sched.stand_on(self.sched.cpu_of(self.sched.queue_of(entity)));
            self.sched.charge_queue(self.sched.queue_of(entity));
        }
        // A group's entity has been given its weight before.
        self.sched.flush_given_weight(entity);
        if let Some(vruntime) = absolute {
            self.force_vruntime(entity, Vruntime(vruntime));
        }
        if !self.by_lag {
            return;
        }
        let Some(lag) = probe.get(Key::Lag) else { return };
        self.compare_lag(record, entity, "kept", [self.sched.lag_at_placement(entity), lag]);
        self.sched.force_scaled(entity);
        if let Some(relative) = probe.get(Key::RelativeDeadline) {
            self.sched.force_relative_deadline(entity, probe.get(Key::Deadline).filter(|_| relative == 1));
        }
    }

    fn compare_lag(
        &mut self,
        record: &EventRecord,
        entity: EntityId,
        case: &'static str,
        [model, kernel]: [i64; 2],
    ) {
        let view = self.sched.entity_view(entity);
        let known = self.knowledge.entity(entity).lag_known;
        let queue = self.sched.queue_of(entity);
        let outcome =
            DecisionOutcome::of(model, kernel, case).unless((!known).then_some("state before not known"));
        let judged = DecisionPlace { record, kind: DecisionKind::Lag, case, queue };
        self.judge(judged, outcome, |walker| {
            let name = walker.name_of_entity(&view);
            [format!("{name} {model}"), format!("{kernel} ({:+})", kernel.wrapping_sub(model))]
        });
        self.sched.force_vlag(entity, kernel);
        self.knowledge.entity_mut(entity).lag_known = true;
    }

    fn after_place(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(vruntime) = probe.unsigned(Key::Vruntime).map(Vruntime) else { return };
        let deadline = probe.unsigned(Key::Deadline).map(Vruntime);
        let Some(entity) = self.probed_entity(probe) else { return };
        let placed = ReturnedPlacement { event: record.number, vruntime, deadline };
        let view = self.sched.entity_view(entity);
        let is_ahead = view.task.is_none() && view.on_rq && !view.delayed && !self.sched.is_current(entity);
        if let Some(deadline) = deadline.filter(|_| self.by_lag && is_ahead && !self.is_entity_known(entity))
        {
            // The core has placed it already, by what was not known.
            self.sched.force_deadline(entity, deadline);
            self.force_vruntime(entity, vruntime);
            return;
        }
        let off_queue = !self.sched.entity_view(entity).on_rq;
        if self.by_lag && off_queue && self.sched.is_current(entity) {
            self.judge_place_of_current(record, entity, (vruntime, deadline));
        }
        self.knowledge.entity_mut(entity).placed = Some(placed);
    }

    /// `avg_vruntime()` returns to a placement.
    fn compare_average(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some((queue, sleeps)) = self.cpus[record.cpu.index()].placing else { return };
        let Some(kernel) = probe.unsigned(Key::Average).map(Vruntime) else { return };
        let clock = self.sched.rq_clock(self.sched.cpu_of(queue));
        let model = match sleeps {
            None if self.clocks_shown => self.sched.queue_average_at(queue, clock),
            _ => self.sched.queue_average_without(queue, sleeps),
        };
        let judged = DecisionPlace { record, kind: DecisionKind::QueueTime, case: "average", queue };
        self.compare(judged, self.average_known(queue), [model, kernel], "average");
        if let Some(zero) = probe.unsigned(Key::ZeroVruntime) {
            self.sched.force_min_vruntime(queue, Vruntime(zero));
            self.knowledge.set_minimum_known(queue, true);
        }
    }

    /// An entity that slept on its queue and would be picked leaves it.
    fn on_dequeue_entities(&mut self, record: &EventRecord, probe: &ProbeHit) {
        self.seen.dequeue_probe = true;
        let runs = self.pid_of(self.sched.curr(record.cpu));
        self.cpus[record.cpu.index()].dequeuing = probe.task().filter(|&pid| pid == runs);
        let is_moved = probe.get(Key::Flags).is_some_and(|flags| flags & DEQUEUE_SLEEP == 0);
        if probe.get(Key::Delayed) != Some(1) || is_moved {
            return;
        }
        let Some(entity) = self.probed_entity(probe) else { return };
        self.compare_entity(record, probe);
        if !probe.task().is_some_and(|pid| self.moves_next(record.cpu, pid)) {
            // Otherwise it is taken elsewhere, asleep as it is.
            self.cpus[record.cpu.index()].leaves_late = Some(entity);
        }
    }

    /// Whether a running task is taken off its queue that the core has taken off and put back.
    fn is_put_back_already(&self, record: &EventRecord, probe: &ProbeHit) -> bool {
        let by = &self.cpus[record.cpu.index()];
        let runs = probe.cpu().map(|cpu| self.pid_of(self.sched.curr(cpu)));
        self.by_lag && record.number < by.ahead_until && probe.task().is_some() && probe.task() == runs
    }

    /// Whether a task that slept on its queue leaves it, in a kernel that shows this here first.
    fn leaves_late_here(&self, probe: &ProbeHit) -> bool {
        let sleeps = probe.get(Key::Flags).is_some_and(|flags| flags & DEQUEUE_SLEEP != 0);
        sleeps && probe.get(Key::Delayed) == Some(1) && !self.seen.dequeue_probe
    }

    /// It has left: what its queues were charged and weighed meanwhile has been shown.
    pub(super) fn leave_late(&mut self, cpu: Cpu) {
        let Some(entity) = self.cpus[cpu.index()].leaves_late.take() else { return };
        self.knowledge.entity_mut(entity).stay_hidden = false;
        let view = self.sched.entity_view(entity);
        self.doubt_running_groups(self.sched.cpu_of(self.sched.queue_of(entity)));
        let known = self.average_known(self.sched.queue_of(entity));
        match view.task {
            Some(task) if self.sched.is_delayed(task) => self.sched.force_delayed_out(task),
            None if view.delayed => self.sched.force_delayed_group_out(entity),
            _ => {
                // The kernel had it asleep there, the core has it awake: what else is queued is not known.
                let cpu = self.sched.cpu_of(self.sched.queue_of(entity));
                self.cpus[cpu.index()].queue_known &= !view.on_rq;
                return;
            }
        }
        self.sched.flush_given_weights(self.sched.cpu_of(self.sched.queue_of(entity)));
        let info = self.knowledge.entity_mut(entity);
        info.lag_known = known && info.known;
    }

    fn compare_lag_at_dequeue(&mut self, record: &EventRecord, probe: &ProbeHit) {
        self.cpus[record.cpu.index()].dequeuing = None;
        let Some(entity) = self.probed_entity(probe) else { return };
        let view = self.sched.entity_view(entity);
        let delayed = probe.stays_queued();
        let cpu = self.sched.cpu_of(self.sched.queue_of(entity));
        let blocked = self.cpus[cpu.index()].blocked;
        if let Some(task) = view.task.filter(|&task| blocked && self.sched.curr(cpu) == task) {
            self.judge_delay(record, task, delayed);
        }
        let left = !self.sched.entity_view(entity).on_rq && !delayed;
        if let Some(lag) = probe.get(Key::Lag).filter(|_| left) {
            let model = self.sched.entity_view(entity).vlag;
            self.compare_lag(record, entity, "at dequeue", [model, lag]);
        }
    }

    /// Compares whether the task that goes to sleep stays on its queue, and applies what the kernel did.
    fn judge_delay(&mut self, record: &EventRecord, task: TaskId, kernel: bool) {
        let cpu = self.sched.task(task).cpu();
        let model = self.sched.is_delayed(task);
        // One that stays has no lag yet: what the decision rested on counts.
        let known = self.lag_known(task) || (model && self.info(task).is_some_and(|info| info.stay_known));
        let outcome = DecisionOutcome::of(model, kernel, "eligibility")
            .unless((!known).then_some("state before not known"));
        let (case, queue) = (yes_no(kernel), self.queue_of(task));
        let judged = DecisionPlace { record, kind: DecisionKind::DelayedDequeue, case, queue };
        self.judge(judged, outcome, |walker| {
            [format!("{} for {}", yes_no(model), walker.name_of(task)), case.to_string()]
        });
        match (model, kernel) {
            (true, false) => self.sched.force_delayed_out(task),
            (false, true) => self.sched.lay_delayed(task, cpu),
            _ => {}
        }
    }

    /// A probe shows the minimum of a queue: compares and takes it over.
    fn compare_minimum(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(queue) = self.probed_queue(probe) else { return };
        let Some(kernel) = probe.unsigned(Key::MinVruntime).map(Vruntime) else { return };
        let clock = self.sched.rq_clock(self.sched.cpu_of(queue));
        // A sleeper is woken where it is before anything is charged; one that is placed again for another weight has been.
        let entity = self.probed_entity(probe);
        let reweighted = self.cpus[record.cpu.index()].reweighting;
        let reweighs = reweighted.is_some_and(|(reweighted, _)| Some(reweighted) == entity);
        let joins = self.clocks_shown && probe.get(Key::OnRq) == Some(0);
        let model = match probe.at == At::Place && (joins || reweighs) {
            true => self.sched.queue_minimum_at(queue, clock),
            false => self.sched.queue_view(queue).min_vruntime,
        };
        let judged = DecisionPlace { record, kind: DecisionKind::QueueTime, case: "min_vruntime", queue };
        // Whatever is on the queue may have moved it.
        let known = self.min_known(queue) && self.all_known(queue);
        self.compare(judged, known, [model, kernel], "min_vruntime");
        self.sched.force_min_vruntime(queue, kernel);
        self.knowledge.set_minimum_known(queue, true);
    }
}

/// Whether another task is looked for again, or something else has begun, after a sleeper has left its queue.
fn ends_late_dequeue(record: &EventRecord) -> bool {
    let goes_on =
        |at| matches!(at, At::DequeueEntity | At::ReweightEntity | At::ReweightEntityReturn | At::Remove);
    !matches!(&record.what, RecordKind::Probe(probe) if goes_on(probe.at))
}
