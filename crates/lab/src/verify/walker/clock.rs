//! The clocks of runqueues where the trace does not print what was charged: a running group's entity is charged whenever
//! something joins or leaves the queue that it is on, and only a task's charge is printed.
//!
//! What a probe shows of such a queue tells the clock. Where nothing does, the charge is made at a moment that is only
//! known roughly; its sum is right again at the next printed charge, but for rounding: each part is rounded by itself.
//!
//! Must not know: how a decision is judged.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::Vruntime;
use fairlab_kernel::open_loop::{EntityId, QueueId};

use super::super::probe::{At, Key, Probe};
use super::super::record::{Record, What};
use super::Walker;

/// How far from what a probe shows the state at the best clock may be, virtual ns: rounding of earlier charges.
const ROUNDING: u64 = 4;

impl Walker {
    /// Some probes show the clock of the runqueue itself.
    pub(super) fn take_clock(&mut self, record: &Record, probe: &Probe) {
        let shown = probe.cpu().zip(probe.unsigned(Key::Clock));
        let Some((cpu, clock)) = shown.filter(|(cpu, _)| cpu.index() < self.cpus.len()) else { return };
        self.clocks_shown = true;
        self.cpus[cpu.index()].clock_shown = record.number;
        let clock = Ns(clock.wrapping_add(self.behind.unwrap_or(0)));
        if clock > self.sched.rq_clock(cpu) && !self.prints_charges(cpu, probe) {
            self.sched.set_rq_clock(cpu, clock);
        }
    }

    /// Whether all that the step is charged which a probe is about is printed: what runs on its queue is a task.
    fn prints_charges(&self, cpu: Cpu, probe: &Probe) -> bool {
        let curr = self.sched.curr(cpu);
        let runs = match self.probed_queue(probe) {
            Some(queue) => self.sched.current_of(queue).is_some_and(|curr| curr.task.is_some()),
            None => self.sched.levels(curr).len() == 1,
        };
        // When another is picked, everything has been charged.
        self.is_fair(curr) && runs && probe.at != At::SetNextEntity
    }

    /// `avg_vruntime()` returns: where a group's entity runs on that queue, it tells the clock. Returns whether it did.
    pub(super) fn learn_clock(&mut self, record: &Record, probe: &Probe) -> bool {
        let shown = self.probed_queue(probe).zip(probe.unsigned(Key::Average).map(Vruntime));
        let Some((queue, kernel)) = shown.filter(|(queue, _)| self.average_known(*queue)) else {
            return false;
        };
        let charged = probe.in_charge;
        self.learn_clock_by(record, queue, kernel, charged, |walker, clock| {
            walker.sched.queue_average_at(queue, clock)
        })
    }

    /// The same for a sleeper that is about to be woken on its queue.
    pub(super) fn learn_requeue_clock(&mut self, record: &Record) {
        let What::Probe(probe) = &record.what else { return };
        if probe.in_requeue && self.cpus[record.cpu.index()].requeue_due.is_some() {
            self.learn_clock(record, probe);
        }
    }

    /// Whether an average is computed after a charge that may not be printed: with a deadline, a weight, or the lag of what
    /// code on another CPU takes off a queue or what leaves late.
    pub(super) fn tells_clock(&self, record: &Record, probe: &Probe) -> bool {
        let by = &self.cpus[record.cpu.index()];
        let dequeues = by.dequeues.is_some_and(|cpu| cpu != record.cpu || by.leaves_late.is_some());
        probe.in_reweight || probe.in_requeue || probe.in_charge || (probe.in_lag && dequeues)
    }

    /// The same where a probe of `place_entity()` shows a queue's minimum.
    pub(super) fn learn_clock_from_minimum(
        &mut self,
        record: &Record,
        probe: &Probe,
        queue: QueueId,
        kernel: Vruntime,
    ) -> bool {
        let moved = kernel != self.sched.queue_view(queue).min_vruntime;
        let known = self.min_known(queue) && self.all_known(queue);
        if self.by_lag || probe.at != At::Place || !moved || !known {
            return false;
        }
        self.learn_clock_by(record, queue, kernel, false, |walker, clock| {
            walker.sched.queue_minimum_at(queue, clock)
        })
    }

    /// Finds the clock at which what `shown` tells of a queue is what the kernel had. `charged`: it has just been charged.
    fn learn_clock_by(
        &mut self,
        record: &Record,
        queue: QueueId,
        kernel: Vruntime,
        charged: bool,
        shown: impl Fn(&Walker, Ns) -> Vruntime,
    ) -> bool {
        let cpu = self.sched.cpu_of(queue);
        let charged =
            charged || self.is_charged_unprinted(cpu) || self.cpus[record.cpu.index()].dequeues == Some(cpu);
        if self.clocks_shown || !self.runs_group(queue) || !charged {
            return false;
        }
        let Some(next) = self.clock_of_next_charge(cpu) else { return false };
        let clock =
            first_clock(self.sched.rq_clock(cpu), next, |clock| !shown(self, clock).is_before(kernel));
        if shown(self, clock).minus(kernel).unsigned_abs() > ROUNDING {
            return false;
        }
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

    fn runs_group(&self, queue: QueueId) -> bool {
        self.sched.queue_view(queue).curr.is_some_and(|curr| curr.task.is_none())
    }

    /// Whether something has been queued on a CPU since the last printed charge there.
    fn is_charged_unprinted(&self, cpu: Cpu) -> bool {
        let info = &self.cpus[cpu.index()];
        let (_, charged_at) = info.pending_before_charge;
        info.enqueued.is_some_and(|(event, _)| charged_at <= event)
    }

    /// While a CPU runs no fair task, nothing is charged there: its runqueue's clock follows the trace's.
    pub(super) fn follow_clock(&mut self, record: &Record, cpu: Cpu) {
        if self.is_fair(self.sched.curr(cpu)) || self.recording.traces_places {
            return;
        }
        let ahead = self.cpus[cpu.index()].clock_ahead.unwrap_or(0);
        let now = Ns(record.time.0.wrapping_add(ahead as u64));
        if now > self.sched.rq_clock(cpu) {
            self.sched.set_rq_clock(cpu, now);
        }
    }

    /// A CPU balances: first it ages what sleepers left on its queues (`update_blocked_averages()`). Where a task runs, its
    /// charges and the tick do so as well. Left out where groups' weights are the model's own: at
    /// another moment than the kernel's they would become others.
    pub(super) fn on_balances(&mut self, record: &Record) {
        let cpu = record.cpu;
        if self.is_fair(self.sched.curr(cpu)) || self.weights_simulated(self.root_queue(cpu)) {
            return;
        }
        let ahead = self.cpus[cpu.index()].clock_ahead.unwrap_or(0);
        let now = Ns(record.time.0.wrapping_add(ahead as u64));
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

    /// The same of a queue's average.
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
