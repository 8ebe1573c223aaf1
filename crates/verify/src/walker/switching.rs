//! `sched_switch`: the task that runs next.

use fairlab_event::{Cpu, Pid, Switch, TaskState};
use fairlab_kernel::open_loop::{LevelPick, QueueView};
use fairlab_kernel::{Policy, TaskId};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::DecisionOutcome;
use super::accounting::ends_dequeue;
use super::{DecisionPlace, Walker};

/// `DEQUEUE_SLEEP`: without it a sleeper is moved to another CPU as it is.
pub(super) const DEQUEUE_SLEEP: i64 = 1;

impl Walker {
    pub(super) fn on_switch(&mut self, record: &EventRecord, switch: Switch) {
        let cpu = record.cpu;
        self.leave_late(cpu);
        let prev = self.task(switch.prev_pid, Some(switch.prev_prio), switch.prev_comm, cpu);
        let next = self.task(switch.next_pid, Some(switch.next_prio), switch.next_comm, cpu);
        self.attach_task(record, next);
        self.return_unseen(next);
        let throttles = std::mem::take(&mut self.cpus[cpu.index()].throttles);
        let mut hidden = throttles.then_some("something was throttled before or after it");
        if self.blocks(&switch) {
            if !self.cpus[cpu.index()].blocked && self.sched.curr(cpu) == prev {
                self.block(cpu, switch.prev_state);
            }
        } else if self.takes_yield(prev) {
            self.apply_yield(prev, cpu);
        } else if self.may_have_yielded(record, &switch, prev) {
            hidden = Some("whether it yields is not shown");
        }
        self.judge_pick(record, next, hidden);
        self.switch_to(record, next, switch.prev_state);
        if switch.next_pid == Pid::IDLE {
            self.know_idle_core(cpu);
        }
        self.regroup_departed(prev);
        self.end_announcement(cpu);
        if let Some(info) = self.info(prev) {
            (info.yielding, info.yielded, info.woken_running) = (false, false, false);
            // What code on another CPU has announced is still to come.
            info.announced = info.announced.filter(|parameters| parameters.by != cpu);
        }
    }

    /// The running task of `cpu` leaves its queue.
    pub(super) fn block(&mut self, cpu: Cpu, state: TaskState) {
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
        self.sched.flush_given_weights(cpu);
        self.cpus[cpu.index()].blocked = true;
        self.know_lags_of_gone(&levels, &averages);
        if let Some(info) = self.info(task) {
            info.stay_known = known;
        }
    }

    /// A probe shows the running task going to sleep: where no time has passed on its runqueue's clock, it leaves its queue
    /// without being charged.
    pub(super) fn block_uncharged(&mut self, record: &EventRecord, probe: &ProbeHit) {
        // Where sleepers may stay, the probes of dequeue_entities() show who leaves.
        if self.by_lag && self.seen.dequeue_probe {
            return;
        }
        let cpu = record.cpu;
        let curr = self.sched.curr(cpu);
        let sleeps = probe.get(Key::Flags).is_some_and(|flags| flags & DEQUEUE_SLEEP != 0);
        let pid = probe.task().filter(|&pid| sleeps && pid == self.pid_of(curr));
        self.cpus[cpu.index()].falling_asleep = pid;
        if pid.is_none() || self.cpus[cpu.index()].blocked || !self.charges_nothing_more(cpu, curr) {
            return;
        }
        let switch = self.next_switch(cpu).filter(|switch| Some(switch.prev_pid) == pid);
        if let Some(switch) = switch.filter(|switch| self.blocks(switch)) {
            self.give_coming_weights(cpu, ends_dequeue);
            self.block(cpu, switch.prev_state);
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
            self.block(cpu, switch.prev_state);
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

    /// Whether a task that leaves runnable without a pending reschedule may have yielded: calls are not shown, and it has not been
    /// woken while it was about to sleep, which lets it leave so, too.
    fn may_have_yielded(&mut self, record: &EventRecord, switch: &Switch, prev: TaskId) -> bool {
        let untold = !self.recording.shows_yields && !self.probed && !record.flags.as_bytes().is_empty();
        let unasked = !switch.prev_state.is_preempted() && !self.cpus[record.cpu.index()].need_resched;
        untold && unasked && !self.info(prev).is_some_and(|info| info.woken_running || info.yielded)
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
    fn judge_pick(&mut self, record: &EventRecord, next: TaskId, hidden: Option<&'static str>) {
        let cpu = record.cpu;
        let queued = self.sched.is_on_queue(next) && self.sched.task(next).cpu() == cpu;
        if !self.is_fair(next) || !queued {
            return;
        }
        self.account_levels(cpu);
        for level in self.sched.pick_levels(next) {
            let view = self.sched.queue_view(level.queue);
            if view.entities().count() >= 2 {
                self.judge_level(record, &level, &view, hidden);
            }
        }
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
        hidden: Option<&'static str>,
    ) {
        let reason = level.model.map_or("nothing is queued", |(_, reason)| reason.describe());
        let picked = level.model.map(|(entity, _)| entity);
        let known = self.all_known(level.queue);
        let outcome = DecisionOutcome::of(picked, Some(level.picked), reason)
            .unless((!known).then_some("queue not known"))
            .unless(hidden);
        let judged = DecisionPlace { record, kind: DecisionKind::Pick, case: reason, queue: level.queue };
        let outcome = self.judge(judged, outcome, |walker| {
            let name = |entity| walker.name_of_entity(&walker.sched.entity_view(entity));
            let model = picked.map_or("nothing".to_string(), name);
            [format!("{model}: {reason}"), name(level.picked)]
        });
        if outcome.is_judged() {
            let least = view
                .entities()
                .reduce(|least, view| if view.vruntime.is_before(least.vruntime) { view } else { least });
            let agrees = least.is_some_and(|view| view.id == level.picked);
            self.tally.count_baseline(DecisionKind::Pick, "least vruntime", agrees);
        }
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
        if !self.clocks_shown && !self.is_fair(self.sched.curr(cpu)) {
            // Only the distance of later charges from here is looked at.
            self.sched.set_rq_clock(cpu, record.time.max(self.sched.rq_clock(cpu)));
        }
        self.sched.stand_on(cpu);
        self.sched.context_switch(cpu, next, prev_state);
        let info = &mut self.cpus[cpu.index()];
        (info.blocked, info.need_resched, info.pick_seen) = (false, false, true);
        info.falling_asleep = None;
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
        // A group without tasks that the core has there still has left, at a moment that was not shown.
        let root = self.sched.queue_view(self.root_queue(cpu));
        self.cpus[cpu.index()].queue_known = root.entities().next().is_none();
    }

    /// A pending reschedule was acted upon, and the running task was picked again.
    pub(super) fn kept_running(&mut self, curr: TaskId) {
        let cpu = self.sched.task(curr).cpu();
        self.account_levels(cpu);
        self.sched.context_switch(cpu, curr, TaskState::RUNNABLE);
    }
}
