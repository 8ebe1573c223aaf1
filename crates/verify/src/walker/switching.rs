//! `sched_switch`: the task that runs next.

use fairlab_event::{Cpu, Pid, Switch, TaskState};
use fairlab_kernel::open_loop::{EntityId, LevelPick, QueueId, QueueView};
use fairlab_kernel::{Policy, TaskId};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::{DecisionVerdict, ModelAnswers};
use super::accounting::ends_dequeue;
use super::{DecisionPlace, Walker};

impl Walker {
    pub(super) fn on_switch(&mut self, record: &EventRecord, switch: Switch) {
        let cpu = record.cpu;
        self.leave_late(cpu);
        let prev = self.task(switch.prev_pid, Some(switch.prev_prio), switch.prev_comm, cpu);
        let prev = if switch.prev_pid == Pid::IDLE { self.sched.idle_task(cpu) } else { prev };
        let next = match switch.next_pid {
            Pid::IDLE => self.sched.idle_task(cpu),
            pid => self.task(pid, Some(switch.next_prio), switch.next_comm, cpu),
        };
        if switch.prev_comm.as_bytes().starts_with(b"migration/") {
            self.end_push(cpu);
        }
        self.cpus[cpu.index()].wanted_work |= switch.next_pid == Pid::IDLE;
        if !switch.next_comm.as_bytes().starts_with(b"ksoftirqd/") {
            self.cpus[cpu.index()].idled_at_tick = None;
        }
        self.attach_task(record, next);
        self.return_unseen(next);
        if self.blocks(&switch) {
            if !self.cpus[cpu.index()].blocked && self.sched.curr(cpu) == prev {
                self.block(record, cpu, switch.prev_state);
            }
        } else {
            self.apply_unseen_yield(record, &switch, prev);
        }
        // A task of a higher class goes before fair ones are looked at.
        let asks_fair = self.is_fair(next) || switch.next_pid == Pid::IDLE;
        if asks_fair {
            self.finish_delayed_dequeues(record, cpu);
        }
        self.follow_clock_after_limbo(record, cpu, next);
        self.judge_pick(record, next);
        if switch.next_pid == Pid::IDLE {
            self.follow_newidle(record);
        }
        self.switch_to(record, next, switch.prev_state);
        // One that sleeps on its way out counts until it has ended.
        let ended = [TaskState::ZOMBIE, TaskState::DEAD].iter().any(|&end| switch.prev_state.contains(end));
        if ended && self.info(prev).is_some_and(|info| info.exiting) && !self.sched.is_on_queue(prev) {
            self.sched.leave_averages_for_good(prev);
        }
        if switch.next_pid == Pid::IDLE {
            self.cpus[cpu.index()].idle_since = Some(record.time);
            self.cpus[cpu.index()].idle_time_known = true;
            self.sched.force_idle_since(cpu, record.time);
            self.know_idle_core(cpu);
        }
        self.regroup_departed(prev);
        self.end_announcement(cpu);
        if let Some(info) = self.info(prev) {
            info.yielding = false;
            info.yielded = false;
            info.woken_running = false;
            // What code on another CPU has announced is still to come.
            info.announced = info.announced.filter(|parameters| parameters.by != cpu);
        }
    }

    /// The running task of `cpu` leaves its queue.
    pub(super) fn block(&mut self, record: &EventRecord, cpu: Cpu, state: TaskState) {
        // A kernel up to v5.17 may have shown the state of a task that is being woken.
        let state = if state.is_runnable() { TaskState::INTERRUPTIBLE } else { state };
        let task = self.sched.curr(cpu);
        if self.sched.policy(task) == Policy::Swapper || !self.sched.is_on_queue(task) {
            return;
        }
        self.sched.stand_on(cpu);
        let levels = self.sched.levels(task);
        let averages = self.averages_known(&levels);
        let known = averages.first() == Some(&true) && self.is_known(task);
        self.sched.deactivate_task(cpu, state);
        self.follow_delay(record, task, state, known);
        self.sched.flush_given_weights(cpu);
        self.cpus[cpu.index()].blocked = true;
        self.know_lags_of_gone(&levels, &averages);
        self.note_minima(task);
    }

    /// A probe shows the running task going to sleep: where no time has passed on its runqueue's clock, it leaves its queue
    /// without being charged.
    pub(super) fn block_uncharged(&mut self, record: &EventRecord, probe: &ProbeHit) {
        /// `DEQUEUE_SLEEP`.
        const SLEEP: i64 = 1;
        let cpu = record.cpu;
        let curr = self.sched.curr(cpu);
        let sleeps = probe.get(Key::Flags).is_some_and(|flags| flags & SLEEP != 0);
        let pid = probe.task().filter(|&pid| sleeps && pid == self.pid_of(curr));
        self.cpus[cpu.index()].falling_asleep = pid;
        if pid.is_none() || self.cpus[cpu.index()].blocked || !self.charges_nothing_more(cpu, curr) {
            return;
        }
        let Some(switch) = self.next_switch(cpu).filter(|switch| Some(switch.prev_pid) == pid) else {
            return;
        };
        if self.blocks(&switch) {
            self.give_coming_weights(cpu, ends_dequeue);
            self.block(record, cpu, switch.prev_state);
        }
    }

    /// Blocks the running task where sleepers leave before another task is looked for: they leave a queue on which it is no
    /// longer.
    pub(super) fn block_before_sleepers(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let cpu = record.cpu;
        let pid = self.pid_of(self.sched.curr(cpu));
        let left = probe.task() == Some(pid) && !probe.stays_queued();
        let sleeper_leaves = matches!(
            self.window.on_cpu(cpu).next().map(|next| &next.what),
            Some(RecordKind::Probe(next)) if next.at == At::DequeueEntities && next.get(Key::Delayed) == Some(1)
        );
        if !left || !sleeper_leaves || self.cpus[cpu.index()].blocked {
            return;
        }
        let switch = self.next_switch(cpu).filter(|switch| switch.prev_pid == pid && self.blocks(switch));
        if let Some(switch) = switch {
            self.block(record, cpu, switch.prev_state);
        }
    }

    /// Whether the running task of `cpu` is not charged before another is looked for.
    fn charges_nothing_more(&self, cpu: Cpu, curr: TaskId) -> bool {
        let pid = self.pid_of(curr);
        for later in self.window.on_cpu(cpu) {
            match &later.what {
                RecordKind::Runtime { pid: charged, .. } if *charged == pid => return false,
                RecordKind::Probe(probe) if !matches!(probe.at, At::DequeueEntity | At::ReweightEntity) => {
                    return true;
                }
                RecordKind::Probe(_) | RecordKind::OtherProbe => {}
                _ => return true,
            }
        }
        false
    }

    /// A task that leaves runnable without a pending reschedule has yielded, where calls are not shown and it has not been woken
    /// meanwhile. A task that is woken while about to sleep leaves so, too.
    fn apply_unseen_yield(&mut self, record: &EventRecord, switch: &Switch, prev: TaskId) {
        let cpu = record.cpu;
        let unasked = !switch.prev_state.is_preempted()
            && !self.cpus[cpu.index()].need_resched
            && !record.flags.as_bytes().is_empty()
            && !self.recording.shows_yields
            && !self.info(prev).is_some_and(|info| info.woken_running);
        let yielded = self.info(prev).is_some_and(|info| std::mem::take(&mut info.yielded));
        if self.takes_yield(prev)
            || (unasked && !yielded && self.is_fair(prev) && self.sched.curr(cpu) == prev)
        {
            self.apply_yield(prev, cpu);
        }
    }

    /// Whether a task has called `sched_yield()` and that has not been applied yet.
    pub(super) fn takes_yield(&mut self, task: TaskId) -> bool {
        self.info(task).is_some_and(|info| std::mem::take(&mut info.yielding))
    }

    /// The running task of `cpu` yields; it has been accounted.
    pub(super) fn apply_yield(&mut self, task: TaskId, cpu: Cpu) {
        if self.is_fair(task) && self.sched.curr(cpu) == task {
            self.sched.stand_on(cpu);
            self.sched.yield_task(cpu);
        }
        if let Some(info) = self.info(task) {
            info.yielded = true;
        }
    }

    /// Compares the pick at each level at which the picked task or one of its groups was picked.
    fn judge_pick(&mut self, record: &EventRecord, next: TaskId) {
        let cpu = record.cpu;
        let queued = self.sched.is_on_queue(next) && self.sched.task(next).cpu() == cpu;
        if !self.is_fair(next) || !queued {
            return;
        }
        self.account_levels(cpu);
        for level in self.sched.pick_levels(next) {
            let view = self.sched.queue_view(level.queue);
            if view.entities().count() >= 2 {
                let nearby = self.picks_nearby(next, level.queue, &view);
                self.judge_level(record, &level, &view, nearby);
            }
        }
    }

    /// The pick on a queue if an entity stands where hidden rounding may have put it.
    fn picks_nearby(&mut self, next: TaskId, queue: QueueId, view: &QueueView) -> Vec<Option<EntityId>> {
        let of_queue = self.queue_tolerance(queue);
        let mut picks = Vec::new();
        for entity in view.entities().filter(|_| of_queue > 0) {
            let by = self.tolerance(entity.id).max(of_queue) as i64;
            for place in [entity.vruntime.plus(-by), entity.vruntime.plus(by)] {
                self.sched.force_vruntime(entity.id, place);
                let levels = self.sched.pick_levels(next);
                let of_level = levels.iter().find(|level| level.queue == queue);
                picks.extend(of_level.map(|level| level.model.map(|(entity, _)| entity)));
            }
            self.sched.force_vruntime(entity.id, entity.vruntime);
        }
        picks
    }

    /// Charges the levels above the running task up to where the task itself has been charged, which was printed.
    pub(super) fn account_levels(&mut self, cpu: Cpu) {
        // After it has blocked, time goes on without it: what was pulled meanwhile was accounted later.
        let left = self.cpus[cpu.index()].blocked || self.sched.is_in_limbo(self.sched.curr(cpu));
        let clock = self.sched.charged_until(cpu).filter(|_| !left);
        self.sched.account_until(cpu, clock.unwrap_or_else(|| self.sched.rq_clock(cpu)));
    }

    fn judge_level(
        &mut self,
        record: &EventRecord,
        level: &LevelPick,
        view: &QueueView,
        nearby: Vec<Option<EntityId>>,
    ) {
        let reason = level.model.map_or("nothing is queued", |(_, reason)| reason.describe());
        let picked = level.model.map(|(entity, _)| entity);
        let why_not = if !self.all_known(level.queue) {
            Some("queue not known")
        } else if !self.protection_known(view) {
            Some("since when it runs is not known")
        } else {
            None
        };
        let verdict = DecisionVerdict::of(ModelAnswers::one(picked).and(nearby), Some(level.picked), reason)
            .unless(why_not);
        let (misses, is_judged) = (verdict.is_miss(), verdict.is_judged());
        let judged = DecisionPlace { record, kind: DecisionKind::Pick, case: reason, queue: level.queue };
        self.judge(judged, verdict, |walker| {
            let name = |entity| walker.name_of_entity(&walker.sched.entity_view(entity));
            let model = picked.map_or("nothing".to_string(), name);
            [format!("{model}: {reason}"), name(level.picked)]
        });
        if misses {
            self.place_before(level.picked, picked);
        }
        if self.warm && is_judged {
            let least = view
                .entities()
                .reduce(|least, view| if view.vruntime.is_before(least.vruntime) { view } else { least });
            let agrees = least.is_some_and(|view| view.id == level.picked);
            self.tally.count_baseline(DecisionKind::Pick, "least vruntime", agrees);
        }
    }

    /// A pick shows where groups' entities stand whose weights nothing shows: the one that was picked not behind the one
    /// that the model would have picked.
    fn place_before(&mut self, kernel: EntityId, model: Option<EntityId>) {
        let Some(model) = model.filter(|&model| !self.by_lag && !self.is_behind(model, kernel)) else {
            return;
        };
        let [kernel, model] = [kernel, model].map(|entity| self.sched.entity_view(entity));
        if !self.weights_simulated(self.sched.queue_of(kernel.id)) {
            return;
        }
        match kernel.task {
            None => self.sched.force_vruntime(kernel.id, model.vruntime),
            Some(_) if model.task.is_none() => self.sched.force_vruntime(model.id, kernel.vruntime),
            Some(_) => {}
        }
    }

    fn is_behind(&self, one: EntityId, other: EntityId) -> bool {
        let [one, other] = [one, other].map(|entity| self.sched.entity_view(entity).vruntime);
        other.is_before(one)
    }

    /// The wait of a sleeper that does not get the CPU ends: it leaves the queue on which it was left, and how far it was
    /// behind is forgotten.
    pub(super) fn on_wait_ends(&mut self, record: &EventRecord, pid: Pid) {
        let Some(info) = self.tasks.get(&pid) else { return };
        let (task, shown) = (info.id, info.stay_shown);
        if info.waking && !shown {
            return;
        }
        let cpu = self.sched.task(task).cpu();
        let sleeps = self.sched.is_delayed(task) || !self.sched.is_on_queue(task);
        let gets_cpu = matches!(
            self.window.of_task(pid).next().map(|next| &next.what),
            Some(RecordKind::Switch(switch)) if switch.next_pid == pid
        );
        // Code on another CPU that queues a task there looks for the one to pick as well.
        let tells = cpu == record.cpu || shown;
        if !self.by_lag || !sleeps || self.seen.dequeue_probe || !tells || gets_cpu {
            return;
        }
        let by = &mut self.cpus[record.cpu.index()];
        if by.sleep_ended.is_some() {
            // It leaves in the test for preemption of a task that is queued before that.
            by.leaves_in_test.push(task);
            return;
        }
        self.leave_unpicked(task);
    }

    /// A sleeper leaves its queue late, and how far it was behind is forgotten.
    fn leave_unpicked(&mut self, task: TaskId) {
        self.sched.force_delayed_out(task);
        if self.sched.forgets_delayed_lag() {
            let entity = self.sched.task_entity(task);
            self.sched.force_vlag(entity, 0);
            self.knowledge.entity_mut(entity).lag_known = true;
        }
    }

    /// A woken task has been queued, and the test for its preemption is to come: sleepers that would win it leave before.
    pub(super) fn leave_in_test(&mut self, by: Cpu) {
        for task in std::mem::take(&mut self.cpus[by.index()].leaves_in_test) {
            self.leave_unpicked(task);
        }
    }

    /// Whether it is known whether the slice of the one that runs is protected.
    pub(super) fn protection_known(&self, view: &QueueView) -> bool {
        let Some(curr) = view.curr.filter(|_| self.by_lag && !self.points_shown) else { return true };
        self.cpus[self.sched.cpu_of(self.sched.queue_of(curr.id)).index()].pick_seen
    }

    fn switch_to(&mut self, record: &EventRecord, next: TaskId, prev_state: TaskState) {
        let cpu = record.cpu;
        if self.sched.is_on_queue(next) && self.sched.task(next).cpu() != cpu {
            self.seen.lost += 1;
            self.take_off(next);
        }
        if self.sched.is_delayed(next) {
            // Its wakeup was lost.
            self.seen.lost += 1;
            self.sched.force_delayed_awake(next);
            self.set_known(next, false);
        }
        let is_idle = self.sched.idle_task(cpu) == next;
        if !self.sched.is_on_queue(next) && !is_idle {
            // It was queued before the trace began, or by an event that was lost.
            self.sched.lay_on_queue(next, cpu);
            self.set_known(next, false);
        }
        if is_idle {
            self.forget_queued(cpu);
        }
        let prev = self.sched.curr(cpu);
        if !self.is_fair(prev) {
            let began = match self.prints_every_charge() {
                true => self.start_by_charges(self.pid_of(next)),
                false => self.time_of_start(next),
            };
            let began = began.map_or(record.time, |began| began.min(record.time));
            self.sched.set_rq_clock(cpu, began.max(self.sched.rq_clock(cpu)));
        }
        self.sched.stand_on(cpu);
        self.sched.context_switch(cpu, next, prev_state);
        self.cpus[cpu.index()].blocked = false;
        self.cpus[cpu.index()].falling_asleep = None;
        self.cpus[cpu.index()].need_resched = false;
        self.cpus[cpu.index()].pick_seen = true;
        self.cpus[cpu.index()].picked_again = false;
        self.cpus[cpu.index()].traced.clear();
        if self.is_fair(next) {
            self.note_minima(next);
        }
    }

    /// A CPU that goes idle has nothing queued: what the core has there is wrong, and from now on all is known.
    fn forget_queued(&mut self, cpu: Cpu) {
        for task in self.sched.fair_tasks(cpu) {
            if self.is_throttled_by_now(task) {
                continue;
            }
            if !self.sched.is_delayed(task) {
                self.seen.lost += 1;
            }
            self.take_off(task);
        }
        self.cpus[cpu.index()].queue_known = true;
    }

    /// A pending reschedule was acted upon, and the running task was picked again.
    pub(super) fn kept_running(&mut self, record: &EventRecord, curr: TaskId) {
        let cpu = record.cpu;
        self.account_levels(cpu);
        self.finish_delayed_dequeues(record, cpu);
        self.sched.context_switch(cpu, curr, TaskState::RUNNABLE);
        self.cpus[cpu.index()].picked_again = true;
    }
}
