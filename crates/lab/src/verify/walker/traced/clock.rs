//! When a traced step was done, by its queue's clock, to the nanosecond: all its levels are accounted at the same moment, which
//! shows in averages, minima, and where entities stand that run.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::Vruntime;
use fairlab_kernel::open_loop::EntityId;

use super::super::super::probe::{Key, Probe};
use super::super::Walker;
use super::Level;

/// How much later than its queue's clock a step may be where nothing bounds it, ns.
const STEP_LATEST: Ns = Ns(1_000_000_000);

impl Walker {
    /// The clock of the step: all levels are accounted at the same, which shows in averages, minima and changes of weight
    /// of entities that run.
    pub(super) fn traced_clock(&self, cpu: Cpu, step: &[Level]) -> Option<Ns> {
        let latest = self.latest(cpu);
        let mut clocks = Vec::new();
        for level in step {
            if let Some((_, probe)) = &level.place {
                clocks.extend(self.clock_of_place(level.entity, probe, latest));
            }
            for probe in level.before.iter().chain(&level.after) {
                let runs = probe.get(Key::Curr) == Some(1) && self.sched.is_current(level.entity);
                let vruntime = probe.unsigned(Key::OldVruntime).map(Vruntime);
                if let Some(vruntime) = vruntime.filter(|_| runs && self.is_entity_known(level.entity)) {
                    clocks.extend(self.sched.clock_at(level.entity, vruntime, latest));
                }
            }
        }
        // Each is the earliest that leads to what it is read from.
        clocks.into_iter().max()
    }

    /// The clock at which the running entity of a level was found to have used its request.
    pub(super) fn clock_of_deadline(&self, cpu: Cpu, probe: &Probe) -> Option<Ns> {
        let levels = self.sched.levels(self.sched.curr(cpu));
        let depth = usize::try_from(probe.get(Key::Depth)?).ok()?;
        let entity = *levels.iter().rev().nth(depth)?;
        let vruntime = Vruntime(probe.unsigned(Key::Vruntime)?);
        self.sched.clock_at(entity, vruntime, self.latest(cpu)).filter(|_| self.is_entity_known(entity))
    }

    fn latest(&self, cpu: Cpu) -> Ns {
        self.clock_of_next_charge(cpu).unwrap_or(self.sched.rq_clock(cpu) + STEP_LATEST)
    }

    fn clock_of_place(&self, entity: EntityId, probe: &Probe, latest: Ns) -> Option<Ns> {
        let queue = self.sched.queue_of(entity);
        let Some(curr) = self.sched.queue_view(queue).curr.filter(|curr| curr.task.is_none()) else {
            // It is the running one itself, charged before it is placed by kernels that place by the minimum.
            let own = probe.unsigned(Key::Vruntime).filter(|_| !self.by_lag && self.sched.is_current(entity));
            return self.sched.clock_at(entity, Vruntime(own?), latest);
        };
        if self.by_lag {
            let average = Vruntime(probe.unsigned(Key::Average)?);
            return Some(self.clock_of_average(queue, average, latest)).filter(|_| self.average_known(queue));
        }
        let minimum = Vruntime(probe.unsigned(Key::MinVruntime)?);
        let moved = self.sched.queue_view(queue).min_vruntime.is_before(minimum);
        self.sched.clock_at(curr.id, minimum, latest).filter(|_| moved && self.is_entity_known(curr.id))
    }
}
