//! The clocks of runqueues in traces that do not print each charge. A running group's entity is charged whenever an entity
//! joins or leaves its queue, and only a task's charge is printed.
//!
//! A probe of such a queue shows the clock. Without one, the time of the charge is known only roughly. The sum is right again
//! at the next printed charge, except for rounding, since each part is rounded by itself.
//!
//! Must not know: how a decision is judged.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::open_loop::{EntityId, QueueId};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::Walker;
use super::bandwidth::is_part_of_step;

/// How far from what a probe shows the state at the best clock may be, virtual ns: rounding of earlier charges.
const ROUNDING: u64 = 4;

/// How many events ahead a probe of a queue is looked for.
const SHOWN_WITHIN: usize = 256;

impl Walker {
    /// Some probes show the clock of the runqueue itself.
    pub(super) fn take_clock(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some((cpu, clock)) = probe.cpu().zip(probe.unsigned(Key::Clock)) else { return };
        self.clocks_shown = true;
        self.cpus[cpu.index()].clock_shown = record.number;
        let clock = Ns(clock.wrapping_add(self.behind.unwrap_or(0)));
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

    /// `avg_vruntime()` returns: where a group's entity runs on that queue, it tells the clock. Returns whether it did.
    pub(super) fn learn_clock(&mut self, record: &EventRecord, probe: &ProbeHit) -> bool {
        let shown = self.probed_queue(probe).zip(probe.unsigned(Key::Average).map(Vruntime));
        let Some((queue, kernel)) = shown.filter(|(queue, _)| self.average_known(*queue)) else {
            return false;
        };
        let charged = probe.in_charge;
        self.learn_clock_by(record, queue, kernel, charged, |walker, clock| {
            walker.sched.queue_average_at(queue, clock)
        })
    }

    /// Learns the clock of a queue on which a sleeper is about to be woken.
    pub(super) fn learn_requeue_clock(&mut self, record: &EventRecord) {
        let RecordKind::Probe(probe) = &record.what else { return };
        if probe.in_requeue && self.cpus[record.cpu.index()].requeue_due.is_some() {
            self.learn_clock(record, probe);
        }
    }

    /// Whether an average is computed after a charge that may not be printed: with a deadline, a weight, or the lag of what
    /// code on another CPU takes off a queue or what leaves late.
    pub(super) fn tells_clock(&self, record: &EventRecord, probe: &ProbeHit) -> bool {
        let by = &self.cpus[record.cpu.index()];
        let dequeues = by.dequeues.is_some_and(|cpu| cpu != record.cpu || by.leaves_late.is_some());
        let weighs = probe.in_reweight || (probe.in_lag && by.reweighting.is_some());
        weighs || probe.in_requeue || probe.in_charge || (probe.in_lag && dequeues)
    }

    /// A group's entity that is still its queue's current one joins it again: it has been placed, then charged, and is about
    /// to be given its weight. How much it was charged tells the clock.
    pub(super) fn learn_clock_of_placed(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(entity) = self.probed_entity(probe).filter(|_| self.by_lag && !self.clocks_shown) else {
            return;
        };
        let joins = !self.sched.entity_view(entity).on_rq && self.sched.is_current(entity);
        let placed = self.knowledge.entity(entity).placed.filter(|_| joins);
        let Some((placed, vruntime)) = placed.zip(probe.unsigned(Key::Vruntime)) else { return };
        self.follow_weight(entity, probe);
        self.learn_clock_by_gain(record, entity, Vruntime(vruntime).minus(placed.vruntime));
    }

    /// Another task is looked for on `cpu`: before, the running groups' entities are charged, up to where the task below them
    /// will be.
    pub(super) fn charge_for_pick(&mut self, cpu: Cpu) {
        let curr = self.sched.curr(cpu);
        if self.clocks_shown || self.cpus[cpu.index()].blocked || !self.is_fair(curr) {
            return;
        }
        // Without a charge to come no time has passed since the last one, which may not have been that of the groups.
        match self.clock_of_charge_at_pick(cpu) {
            Some(clock) => self.charge_groups(cpu, clock),
            None => self.account_levels(cpu),
        }
    }

    /// Charges the running groups' entities of `cpu` up to a clock.
    pub(super) fn charge_groups(&mut self, cpu: Cpu, clock: Ns) {
        let curr = self.sched.curr(cpu);
        if clock > self.sched.rq_clock(cpu) {
            self.sched.set_rq_clock(cpu, clock);
        }
        self.sched.stand_on(cpu);
        for entity in self.sched.levels(curr).into_iter().skip(1) {
            if self.sched.entity_view(entity).on_rq {
                self.sched.charge_queue(self.sched.queue_of(entity));
            }
        }
    }

    /// A group's entity that ran is put back on its queue's time line when another is picked: it has been charged.
    pub(super) fn learn_clock_of_put(&mut self, record: &EventRecord, entity: EntityId, vruntime: Vruntime) {
        let view = self.sched.entity_view(entity);
        let is_put = view.task.is_none() && self.by_lag && self.sched.is_current(entity);
        if is_put && !self.clocks_shown && self.is_entity_known(entity) {
            self.learn_clock_by_gain(record, entity, vruntime.minus(view.vruntime));
        }
    }

    /// A group's entity that is still its queue's current one joins it again. The kernel has charged it up to `vruntime` before
    /// it places it.
    pub(super) fn charge_current(&mut self, record: &EventRecord, entity: EntityId, vruntime: Vruntime) {
        let (known, queue) = (self.is_entity_known(entity), self.sched.queue_of(entity));
        if known && !self.clocks_shown {
            let gained = vruntime.minus(self.sched.entity_view(entity).vruntime);
            self.learn_clock_by_gain(record, entity, gained);
        }
        self.sched.stand_on(self.sched.cpu_of(queue));
        self.sched.charge_queue(queue);
    }

    /// Something is about to join or leave a queue on which a group's entity runs, which is charged then: the queue's minimum
    /// is shown next by a probe of something else.
    pub(super) fn learn_clock_of_next_minimum(&mut self, record: &EventRecord, queue: QueueId) {
        let known = self.min_known(queue) && self.all_known(queue);
        if self.by_lag || self.clocks_shown || !self.runs_group(queue) || !known {
            return;
        }
        let cpu = self.sched.cpu_of(queue);
        let shown = self.minimum_shown_next(queue, cpu);
        let moved = shown.filter(|&shown| shown != self.sched.queue_view(queue).min_vruntime);
        let Some((shown, next)) = moved.zip(self.clock_of_next_charge(cpu)) else { return };
        if let Some(clock) = self.clock_of_minimum(queue, shown, next) {
            self.sched.set_rq_clock(cpu, clock);
            self.cpus[cpu.index()].clock_shown = record.number;
        }
    }

    /// The clock at which a queue's minimum comes to `shown`, with what leaves the queue or without it.
    fn clock_of_minimum(&self, queue: QueueId, shown: Vruntime, latest: Ns) -> Option<Ns> {
        let reached = |clock| !self.sched.queue_minimum_at(queue, clock).is_before(shown);
        let clock = first_clock(self.sched.rq_clock(self.sched.cpu_of(queue)), latest, reached);
        if self.sched.queue_minimum_at(queue, clock) == shown {
            return Some(clock);
        }
        let view = self.sched.queue_view(queue);
        let curr = view.curr.filter(|_| view.waiting.iter().all(|waiting| waiting.vruntime != shown))?;
        self.sched.clock_after(curr.id, shown.minus(curr.vruntime), latest, false)
    }

    /// A task whose place is a distance from its queue's minimum is about to join a queue: learns how far the group's entity
    /// that runs there, if one does, is charged first. Returns whether something else than the place of the task tells it,
    /// or nothing hangs on it.
    pub(super) fn learn_clock_of_join(&mut self, record: &EventRecord, task: TaskId, queue: QueueId) -> bool {
        self.learn_clock_of_next_minimum(record, queue);
        let cpu = self.sched.cpu_of(queue);
        let told = self.clocks_shown || self.cpus[cpu.index()].clock_shown == record.number;
        if self.by_lag || told || !self.recording.shows_weights || !self.runs_group(queue) {
            return true;
        }
        let Some(next) = self.clock_of_next_charge(cpu) else { return true };
        let latest = next.min(record.time);
        if self.sched.queue_minimum_at(queue, latest) == self.sched.queue_view(queue).min_vruntime {
            return true;
        }
        let relative = self.sched.entity_view(self.sched.task_entity(task)).vruntime;
        let minimum = self.vruntime_shown_later(task).map(|shown| Vruntime(shown.0.wrapping_sub(relative.0)));
        if let Some(clock) = minimum.and_then(|minimum| self.clock_of_minimum(queue, minimum, latest)) {
            self.sched.set_rq_clock(cpu, clock);
            self.cpus[cpu.index()].clock_shown = record.number;
        }
        false
    }

    /// Code on this CPU takes something off a queue and puts it back: how far it has charged the running group's entity
    /// shows where it reweights it.
    pub(super) fn learn_clock_of_step(&mut self, record: &EventRecord) {
        if self.by_lag || self.clocks_shown {
            return;
        }
        let coming = self.window.on_cpu(record.cpu).take_while(|later| is_part_of_step(later));
        let weighs = coming.filter_map(|later| match &later.what {
            RecordKind::Probe(probe) if probe.at == At::ReweightEntity && probe.get(Key::OnRq) == Some(1) => {
                Some(probe.clone())
            }
            _ => None,
        });
        for probe in weighs.collect::<Vec<_>>() {
            let shown = self.probed_entity(&probe).zip(probe.unsigned(Key::Vruntime).map(Vruntime));
            let Some((entity, vruntime)) = shown.filter(|(entity, _)| self.sched.is_current(*entity)) else {
                continue;
            };
            let gained = vruntime.minus(self.sched.entity_view(entity).vruntime);
            if self.is_entity_known(entity) && gained > 0 {
                self.learn_clock_by_gain(record, entity, gained);
            }
        }
    }

    /// Something joins a queue of `cpu`, whose running task has left with its group's entity: that is charged on, without
    /// a word, and the minimum moves up to what waits.
    pub(super) fn charge_departed(&mut self, record: &EventRecord, cpu: Cpu) {
        let info = &self.cpus[cpu.index()];
        let levels = self.sched.levels(self.sched.curr(cpu));
        let departed = levels.into_iter().skip(1).any(|entity| !self.sched.entity_view(entity).on_rq);
        let told = self.clocks_shown || self.recording.traces_places;
        if self.by_lag || told || !info.blocked || !departed {
            return;
        }
        if let Some(ahead) = info.clock_ahead {
            self.advance_until(cpu, record.time, ahead);
        }
    }

    /// A group's entity that has left its queue is put away: how far it was charged since then shows now.
    pub(super) fn learn_departed(&mut self, probe: &ProbeHit) {
        let shown = self.probed_entity(probe).zip(probe.unsigned(Key::Vruntime).map(Vruntime));
        let Some((entity, vruntime)) = shown.filter(|_| !self.by_lag && !self.clocks_shown) else { return };
        if !self.sched.entity_view(entity).on_rq && probe.get(Key::OnRq) == Some(0) {
            self.sched.force_vruntime(entity, vruntime);
        }
    }

    /// The minimum of a queue that a probe shows before anything else is charged on its CPU.
    fn minimum_shown_next(&self, queue: QueueId, cpu: Cpu) -> Option<Vruntime> {
        for later in self.window.all().take(SHOWN_WITHIN) {
            match &later.what {
                RecordKind::Switch(_) if later.cpu == cpu => return None,
                RecordKind::Runtime { pid, .. } => {
                    let task = self.tasks.get(pid).map(|info| info.id);
                    if task.is_some_and(|task| self.sched.task(task).cpu() == cpu) {
                        return None;
                    }
                }
                RecordKind::Probe(probe) if self.probed_queue(probe) == Some(queue) => {
                    if let Some(minimum) = probe.unsigned(Key::MinVruntime) {
                        return Some(Vruntime(minimum));
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn learn_clock_by_gain(&mut self, record: &EventRecord, entity: EntityId, gained: i64) {
        let cpu = self.sched.cpu_of(self.sched.queue_of(entity));
        let latest =
            record.time.0.wrapping_add(self.cpus[cpu.index()].clock_ahead.unwrap_or(0).max(0) as u64);
        let clock = self.sched.clock_after(entity, gained, Ns(latest), true);
        // A printed charge is exact; this is the earliest of some that lead there.
        let told = self.sched.rq_clock(cpu) + Ns(ROUNDING);
        if let Some(clock) = clock.filter(|&clock| clock > told) {
            self.sched.set_rq_clock(cpu, clock);
            self.cpus[cpu.index()].clock_shown = record.number;
        }
    }

    /// The task that leaves a CPU had left its queue before, since its group is throttled: time went on until the next one
    /// was looked for, and what its groups have been charged since shows only later, if they run on.
    pub(super) fn follow_clock_after_limbo(&mut self, record: &EventRecord, cpu: Cpu, next: TaskId) {
        if self.clocks_shown || !self.sched.is_in_limbo(self.sched.curr(cpu)) {
            return;
        }
        if let Some(clock) = self.clock_of_start(record, cpu, next) {
            self.sched.set_rq_clock(cpu, clock.max(self.sched.rq_clock(cpu)));
        }
    }

    /// The runqueue's clock when a task gets the CPU: where it is charged first, an average tells it.
    fn clock_of_start(&self, record: &EventRecord, cpu: Cpu, task: TaskId) -> Option<Ns> {
        let pid = self.pid_of(task);
        let ahead = self.cpus[cpu.index()].clock_ahead.unwrap_or(0);
        let began = self.time_of_start(task)?.min(record.time);
        let about = Ns(began.0.wrapping_add(ahead as u64));
        let mut coming =
            self.window.on_cpu(cpu).take_while(|later| !matches!(later.what, RecordKind::Switch(_)));
        let runtime = coming.find_map(|later| match &later.what {
            RecordKind::Runtime { pid: charged, runtime, .. } if *charged == pid => Some(*runtime),
            _ => None,
        })?;
        let shown = coming.find_map(|later| match &later.what {
            RecordKind::Probe(probe) if probe.at == At::AverageReturn => {
                let queue = self.probed_queue(probe).filter(|&queue| self.runs_group(queue))?;
                Some((queue, Vruntime(probe.unsigned(Key::Average)?)))
            }
            _ => None,
        });
        let exact = shown.filter(|(queue, _)| self.average_known(*queue)).and_then(|(queue, average)| {
            let clock = self.clock_of_average(queue, average, began + runtime + runtime);
            let off = self.sched.queue_average_at(queue, clock).minus(average).unsigned_abs();
            (off <= ROUNDING).then(|| Ns(clock.0.saturating_sub(runtime.0)))
        });
        Some(exact.unwrap_or(about))
    }

    /// Learns a queue's clock where a probe of `place_entity()` shows its minimum.
    pub(super) fn learn_clock_from_minimum(
        &mut self,
        record: &EventRecord,
        probe: &ProbeHit,
        queue: QueueId,
        kernel: Vruntime,
    ) -> bool {
        let moved = kernel != self.sched.queue_view(queue).min_vruntime;
        let known = self.min_known(queue) && self.all_known(queue);
        // What is put back has been taken off with a charge.
        let put_back = probe.at == At::EnqueueEntity
            && probe.task().is_some()
            && probe.task() == self.cpus[record.cpu.index()].taken_off;
        let follows_charge = probe.at == At::Place || (put_back && !self.by_lag);
        if !follows_charge || !moved || !known {
            return false;
        }
        self.learn_clock_by(record, queue, kernel, put_back, |walker, clock| {
            walker.sched.queue_minimum_at(queue, clock)
        })
    }

    /// Finds the clock at which what `shown` tells of a queue is what the kernel had. `charged`: it has just been charged.
    fn learn_clock_by(
        &mut self,
        record: &EventRecord,
        queue: QueueId,
        kernel: Vruntime,
        charged: bool,
        shown: impl Fn(&Walker, Ns) -> Vruntime,
    ) -> bool {
        let cpu = self.sched.cpu_of(queue);
        let by = &self.cpus[record.cpu.index()];
        let charged =
            charged || self.is_charged_unprinted(cpu) || by.dequeues == Some(cpu) || by.weighs == Some(cpu);
        if self.clocks_shown || !self.runs_group(queue) || !charged {
            return false;
        }
        let now = self.sched.rq_clock(cpu);
        let off = |clock| shown(self, clock).minus(kernel).unsigned_abs();
        // The charge of what has left was printed, and no time goes by until another is looked for. By then the core has
        // reweighted what the kernel is about to.
        let leaves = by.dequeues == Some(cpu) || off(now) <= ROUNDING;
        if record.cpu == cpu && self.cpus[cpu.index()].blocked && leaves {
            return true;
        }
        // A charge that was printed in the same step has told it.
        let (_, charged_at) = self.cpus[cpu.index()].pending_before_charge;
        if by.dequeues == Some(cpu) && charged_at > by.dequeues_since {
            return false;
        }
        let ahead = self.cpus[cpu.index()].clock_ahead.unwrap_or(0).max(0) as u64;
        let latest = match self.cpus[cpu.index()].blocked {
            true => Some(Ns(record.time.0 + ahead)),
            false => self.clock_of_next_charge(cpu),
        };
        let Some(latest) = latest else { return false };
        let clock = first_clock(now, latest, |clock| !shown(self, clock).is_before(kernel));
        if off(clock) > ROUNDING {
            return false;
        }
        // The earliest of some that lead there.
        self.note_unprinted_charge(cpu);
        self.sched.set_rq_clock(cpu, clock);
        self.cpus[cpu.index()].clock_shown = record.number;
        true
    }

    /// The clock at which a queue's average reaches `average` if its running entity is charged up to then, the earliest up
    /// to `latest`.
    pub(super) fn clock_of_average(&self, queue: QueueId, average: Vruntime, latest: Ns) -> Ns {
        let earliest = self.sched.rq_clock(self.sched.cpu_of(queue));
        first_clock(earliest, latest, |clock| !self.sched.queue_average_at(queue, clock).is_before(average))
    }

    /// Lets a runqueue's clock follow the trace's to `time` and `ahead`, but not beyond where the next accounting puts it.
    pub(super) fn advance_until(&mut self, cpu: Cpu, time: Ns, ahead: i64) {
        let next =
            self.clock_of_next_charge(cpu).or_else(|| self.clock_of_next_start(cpu)).unwrap_or(Ns::MAX);
        let clock = Ns(time.0.wrapping_add(ahead as u64)).min(next);
        if clock > self.sched.rq_clock(cpu) {
            self.sched.set_rq_clock(cpu, clock);
        }
    }

    /// From when on the task is charged that a CPU which idles runs next: its runqueue's clock was not read again since that
    /// was queued.
    fn clock_of_next_start(&self, cpu: Cpu) -> Option<Ns> {
        if self.sched.curr(cpu) != self.sched.idle_task(cpu) {
            return None;
        }
        let mut coming = self.window.on_cpu(cpu);
        let next = coming.find_map(|record| match &record.what {
            RecordKind::Switch(switch) => Some(switch.next_pid),
            _ => None,
        })?;
        let mut runs = coming.take_while(|record| !matches!(record.what, RecordKind::Switch(_)));
        runs.find_map(|record| match &record.what {
            RecordKind::Runtime { pid, runtime, .. } if *pid == next => {
                record.time.0.checked_sub(runtime.0).map(Ns)
            }
            _ => None,
        })
    }

    /// How much a runqueue's clock is ahead of the trace's, ns, as its last accounting told. Charges of a running task are as
    /// late as those before. Where nothing is charged, a clock that was too late is not set as late again.
    pub(super) fn clock_ahead(&self, cpu: Cpu) -> Option<i64> {
        let ahead = self.cpus[cpu.index()].clock_ahead?;
        let kept = self.clocks_shown || self.is_fair(self.sched.curr(cpu));
        Some(if kept { ahead } else { ahead.min(0) })
    }

    /// Whether every charge is printed: there are no groups whose entities are charged without a word, at moments that are
    /// told by how late the printed ones were reported.
    pub(super) fn prints_every_charge(&self) -> bool {
        self.groups.is_flat() && !self.groups_hidden
    }

    fn runs_group(&self, queue: QueueId) -> bool {
        self.sched.queue_view(queue).curr.is_some_and(|curr| curr.task.is_none())
    }

    /// Whether something has been queued on a CPU since the last printed charge there.
    fn is_charged_unprinted(&self, cpu: Cpu) -> bool {
        let info = &self.cpus[cpu.index()];
        let (_, charged_at) = info.pending_before_charge;
        info.enqueued.is_some_and(|enqueued| charged_at <= enqueued.event)
    }

    /// While a CPU runs no fair task, nothing is charged there: its runqueue's clock follows the trace's.
    pub(super) fn follow_clock(&mut self, record: &EventRecord, cpu: Cpu) {
        if self.is_fair(self.sched.curr(cpu)) || self.recording.traces_places {
            return;
        }
        let next = self.clock_of_next_start(cpu).unwrap_or(Ns::MAX);
        let now = self.scheduler_time(record.time, cpu).min(next);
        if now > self.sched.rq_clock(cpu) {
            self.sched.set_rq_clock(cpu, now);
        }
    }

    /// A new task, or one that was taken from another CPU, joins a queue of `cpu` while what runs there is in a group: queues above
    /// that are charged without a word, and by how much decides where it is placed.
    pub(super) fn follow_unprinted_clock(&mut self, record: &EventRecord, cpu: Cpu) {
        let curr = self.sched.curr(cpu);
        let in_group = self.by_lag && self.is_fair(curr) && self.sched.levels(curr).len() > 1;
        let told =
            self.points_shown || self.clocks_shown || self.cpus[record.cpu.index()].charged == Some(cpu);
        if let (true, false, Some(ahead)) = (in_group, told, self.cpus[cpu.index()].clock_ahead) {
            self.advance_until(cpu, record.time, ahead);
        }
    }

    /// A CPU balances: first it ages what sleepers left on its queues (`update_blocked_averages()`). Where a task runs, its
    /// charges and the tick do so as well for its own queues. The other queues count only where groups' weights are the model's
    /// own: what a task left on one CPU is part of its group's weight on all.
    pub(super) fn on_balances(&mut self, record: &EventRecord) {
        let cpu = record.cpu;
        if self.is_fair(self.sched.curr(cpu)) && !self.weights_simulated(self.root_queue(cpu)) {
            return;
        }
        let now = self.scheduler_time(record.time, cpu);
        let latest = self.clock_of_next_charge(cpu).unwrap_or(Ns::MAX);
        let clock = now.min(latest).max(self.sched.rq_clock(cpu));
        self.sched.age_blocked(cpu, clock);
    }

    /// Something joins or leaves queues of `cpu`: running groups' entities are charged there, by a part that is not printed.
    pub(super) fn note_unprinted_charge(&mut self, cpu: Cpu) {
        if self.clocks_shown {
            return;
        }
        for entity in self.sched.levels(self.sched.curr(cpu)).into_iter().skip(1) {
            let info = self.knowledge.entity_mut(entity);
            info.unprinted = info.unprinted.saturating_add(1);
        }
    }

    /// How far an entity's place may be from the kernel's by rounding alone, virtual ns.
    pub(super) fn tolerance(&self, entity: EntityId) -> u64 {
        2 * u64::from(self.knowledge.entity(entity).unprinted)
    }

    /// Whether rounding decides if a waiting entity is past its queue's average.
    pub(super) fn is_close(&self, entity: EntityId) -> bool {
        let queue = self.sched.queue_of(entity);
        let distance = self.sched.entity_view(entity).vruntime.minus(self.sched.queue_average(queue));
        let tolerance = self.queue_tolerance(queue).max(self.tolerance(entity));
        self.by_lag && tolerance > 0 && distance.unsigned_abs() <= tolerance
    }

    /// How far a queue's average may be off by rounding.
    pub(super) fn queue_tolerance(&self, queue: QueueId) -> u64 {
        let view = self.sched.queue_view(queue);
        let largest = view.entities().map(|view| self.tolerance(view.id)).max().unwrap_or(0);
        largest + u64::from(largest > 0)
    }
}

/// The first of a range of clocks at which something has come about, or its last.
fn first_clock(earliest: Ns, latest: Ns, reached: impl Fn(Ns) -> bool) -> Ns {
    let (mut low, mut high) = (earliest.0, latest.0);
    while low < high {
        let middle = low + (high - low) / 2;
        match reached(Ns(middle)) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ns(low)
}
