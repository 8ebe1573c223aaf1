//! The time of a traced step by its queue's clock, to the nanosecond. All levels are charged at one moment, which shows in
//! averages, minima, and the places of running entities.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::Vruntime;
use fairlab_kernel::open_loop::{EntityId, QueueId};

use super::super::super::probe::{Key, ProbeHit};
use super::super::Walker;
use super::{TracedLevel, UNSEEN_ROUNDING};

/// How much later than the event that reports it a step cannot have been, ns.
const REPORTED_WITHIN: Ns = Ns(2_000_000);

impl Walker {
    /// The clock of a step: it is one for all levels, and shows in averages, minima and changes of weight of entities that run.
    pub(super) fn traced_clock(&self, cpu: Cpu, step: &[TracedLevel], deadlines: &[&ProbeHit]) -> Option<Ns> {
        let latest = self.latest(cpu);
        // Each is the earliest that leads to what it is read from.
        let clock = |near| {
            let passed =
                deadlines.iter().filter_map(|probe| self.clock_of_deadline(cpu, probe, latest, near));
            let levels = step.iter().flat_map(|level| self.clocks_of_level(level, latest, near));
            passed.chain(levels).max()
        };
        clock(false).or_else(|| clock(true))
    }

    fn clocks_of_level(&self, level: &TracedLevel, latest: Ns, near: bool) -> Vec<Ns> {
        let place = level
            .place
            .as_ref()
            .and_then(|(_, place)| self.clock_of_place(level.entity, place, latest, near));
        let changes = level.before.iter().chain(&level.after);
        let changes = changes.filter_map(|probe| self.clock_of_reweight(level, probe, latest, near));
        place.into_iter().chain(changes).collect()
    }

    /// The clock up to which a running entity had been charged when its weight was changed.
    fn clock_of_reweight(&self, level: &TracedLevel, probe: &ProbeHit, latest: Ns, near: bool) -> Option<Ns> {
        let runs = probe.get(Key::Curr) == Some(1) && self.sched.is_current(level.entity);
        // One that joins its queue again is placed before it is charged.
        let placed =
            level.place.as_ref().filter(|_| self.by_lag).and_then(|(_, place)| place.unsigned(Key::Vruntime));
        let from = placed.map(Vruntime).or_else(|| {
            let known = self.is_entity_known(level.entity);
            known.then(|| self.sched.entity_view(level.entity).vruntime)
        });
        let gained = Vruntime(probe.unsigned(Key::OldVruntime)?).minus(from?);
        self.sched.clock_after(level.entity, gained, latest, near).filter(|_| runs)
    }

    /// The clock at which the running entity of a level was found to have used its request.
    fn clock_of_deadline(&self, cpu: Cpu, probe: &ProbeHit, latest: Ns, near: bool) -> Option<Ns> {
        let levels = self.sched.levels(self.sched.curr(cpu));
        let depth = usize::try_from(probe.get(Key::Depth)?).ok()?;
        let entity = *levels.iter().rev().nth(depth)?;
        self.clock_where(entity, Vruntime(probe.unsigned(Key::Vruntime)?), latest, near)
    }

    /// The clock at which an entity that runs stands at `vruntime`.
    fn clock_where(&self, entity: EntityId, vruntime: Vruntime, latest: Ns, near: bool) -> Option<Ns> {
        let gained = vruntime.minus(self.sched.entity_view(entity).vruntime);
        let clock = self.sched.clock_after(entity, gained, latest, near);
        clock.filter(|_| self.is_entity_known(entity))
    }

    fn latest(&self, cpu: Cpu) -> Ns {
        let reported = self.now.as_ref().map_or(Ns::ZERO, |record| record.time);
        let bound = reported.max(self.sched.rq_clock(cpu)) + REPORTED_WITHIN;
        // What a task that has blocked is charged next belongs to its next turn.
        let next = self.clock_of_next_charge(cpu).filter(|_| !self.cpus[cpu.index()].blocked);
        next.unwrap_or(Ns::MAX).min(bound)
    }

    fn clock_of_place(&self, entity: EntityId, probe: &ProbeHit, latest: Ns, near: bool) -> Option<Ns> {
        let queue = self.sched.queue_of(entity);
        let Some(curr) = self.sched.queue_view(queue).curr.filter(|curr| curr.task.is_none()) else {
            // It is the running one itself, charged before it is placed by kernels that place by the minimum.
            let own = probe.unsigned(Key::Vruntime).filter(|_| !self.by_lag && self.sched.is_current(entity));
            return self.clock_where(entity, Vruntime(own?), latest, near);
        };
        if self.by_lag {
            let average = Vruntime(probe.unsigned(Key::Average)?);
            let clock = self.clock_of_average(queue, average, latest);
            let off = self.sched.queue_average_at(queue, clock).minus(average).unsigned_abs();
            let allowed = if near { UNSEEN_ROUNDING + self.sched.average_step(queue) } else { 0 };
            return Some(clock).filter(|_| off <= allowed && self.average_known(queue));
        }
        let minimum = Vruntime(probe.unsigned(Key::MinVruntime)?);
        let moved = self.sched.queue_view(queue).min_vruntime.is_before(minimum);
        self.clock_where(curr.id, minimum, latest, near).filter(|_| moved)
    }

    /// Whether the clock of a queue is known at the event that is being walked: where its running entity is a group's, what
    /// it is charged may show nowhere.
    pub(in super::super) fn clock_told(&self, queue: QueueId) -> bool {
        let cpu = self.sched.cpu_of(queue);
        let shown = self.cpus[cpu.index()].clock_shown == self.seen.events;
        let charges_group = self.sched.current_of(queue).is_some_and(|curr| curr.task.is_none());
        !self.recording.traces_places || shown || !charges_group
    }
}
