//! Groups whose weight changes while the trace runs: every CPU's entity of the group is reweighted, and so are those above
//! it.
//!
//! Must not know: how a decision is judged.

use fairlab_event::Cpu;
use fairlab_kernel::open_loop::QueueId;
use fairlab_kernel::{GroupId, Vruntime};

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::Walker;
use super::wakeups::contexts;

impl Walker {
    /// A group's weight was changed at some time or other: what its entities compete for is not known.
    pub(super) fn doubt_weights(&mut self, group: GroupId) {
        for cpu in 0..self.cpus.len() {
            if let Some(entity) = self.sched.group_entity(group, Cpu(cpu as u32)) {
                let queue = self.sched.queue_of(entity);
                self.knowledge.queue_mut(queue).weights_doubted = true;
            }
        }
    }

    /// Whether a decision of the fair class on a queue hangs on such a weight; the tick asks on those above as well.
    pub(super) fn doubts_weights(&self, kind: DecisionKind, queue: QueueId) -> bool {
        if matches!(
            kind,
            DecisionKind::Vruntime
                | DecisionKind::WakeupCpu
                | DecisionKind::Balance
                | DecisionKind::BalanceTry
        ) {
            return false;
        }
        let doubted = |queue: QueueId| self.knowledge.queue(queue).is_some_and(|info| info.weights_doubted);
        let above =
            |queue: &QueueId| self.sched.entity_above(*queue).map(|entity| self.sched.queue_of(entity));
        match kind {
            DecisionKind::TickPreempt => std::iter::successors(Some(queue), above).any(doubted),
            _ => doubted(queue),
        }
    }

    /// A group is about to get new shares: where probes do not show what weights come of that, the core computes them.
    pub(super) fn on_set_shares(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let group = self.group_given_shares(record, probe);
        let shown = self.recording.shows_weights || self.recording.traces_places;
        let (Some(group), Some(shares), false) = (group, probe.unsigned(Key::Shares), shown) else { return };
        for cpu in 0..self.cpus.len() {
            self.stand_at(record, Cpu(cpu as u32));
        }
        self.sched.force_group_shares(group, shares);
    }

    /// An entity gets another weight in no step of its own: its group has got new shares.
    pub(super) fn begin_new_shares(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(cpu) = probe.cpu() else { return };
        if self.shares_are_set(record) {
            self.follow_idleness(probe);
            self.cpus[record.cpu.index()].weighs = Some(cpu);
        } else if !self.by_lag && probe.group_entity().is_some() && !self.is_in_step(record) {
            self.stand_at(record, cpu);
            self.follow_idleness(probe);
            self.take_new_weight(probe);
        }
    }

    /// Nothing prints that a group becomes idle, or is no longer; the weights do that its entities get.
    fn follow_idleness(&mut self, probe: &ProbeHit) {
        let (Some(entity), Some(weight)) = (self.probed_entity(probe), probe.unsigned(Key::NewWeight)) else {
            return;
        };
        if let Some((group, idle)) = self.sched.idleness_told(entity, weight) {
            self.sched.force_group_idle(group, idle);
        }
    }

    /// It has got it, and the running entity of its queue has been charged before.
    pub(super) fn end_new_shares(&mut self, record: &EventRecord, probe: &ProbeHit) {
        if self.cpus[record.cpu.index()].weighs.take().is_some() && probe.in_set_shares {
            self.take_new_weight(probe);
        }
    }

    fn take_new_weight(&mut self, probe: &ProbeHit) {
        let Some(entity) = self.probed_entity(probe) else { return };
        let queue = self.sched.queue_of(entity);
        let cpu = self.sched.cpu_of(queue);
        let charged_unseen = self.sched.current_of(queue).is_some_and(|curr| curr.id == entity);
        self.note_unprinted_charge(cpu);
        self.sched.stand_on(cpu);
        self.sched.flush_given_weight(entity);
        if charged_unseen && self.by_lag {
            // How much of the time is charged at which weight nothing shows; where that ended is.
            let shown = |key| probe.unsigned(key).map(Vruntime);
            if let (Some(vruntime), Some(deadline)) = (shown(Key::Vruntime), shown(Key::Deadline)) {
                self.sched.force_vruntime(entity, vruntime);
                self.sched.force_deadline(entity, deadline);
            }
        }
        self.note_minimum(queue);
        if charged_unseen && !self.by_lag && !self.clocks_shown {
            // How much of the time is charged at the old weight, and how much at the new one, nothing shows.
            self.knowledge.entity_mut(entity).known = false;
        }
    }

    /// Whether the change of weight that begins here returns to where a group is given shares.
    fn shares_are_set(&self, record: &EventRecord) -> bool {
        let returns = self.window.on_cpu(record.cpu).find_map(|later| match &later.what {
            RecordKind::Probe(probe) if probe.at == At::ReweightEntityReturn => Some(probe.in_set_shares),
            RecordKind::Probe(probe) => match probe.at {
                At::AverageReturn | At::Remove | At::Insert => None,
                At::Resched | At::ReschedLazy | At::ReschedFlag => None,
                _ => Some(false),
            },
            _ => None,
        });
        returns == Some(true)
    }

    /// Whether code on the event's CPU, in the event's context, has begun something that reweights entities.
    fn is_in_step(&self, record: &EventRecord) -> bool {
        self.cpus[record.cpu.index()].step == Some(contexts(record))
    }

    /// Notes steps that reweight entities, as probes show them.
    pub(super) fn follow_steps(&mut self, record: &EventRecord) {
        let step = &mut self.cpus[record.cpu.index()].step;
        match &record.what {
            RecordKind::Probe(probe) => match probe.at {
                At::EnqueueEntity
                | At::EnqueueTask
                | At::DequeueEntity
                | At::DequeueEntities
                | At::Tick
                | At::Throttle
                | At::Unthrottle => *step = Some(contexts(record)),
                At::PickReturn | At::SetNextEntity | At::PutPrevEntity | At::SelectTaskRq => *step = None,
                _ => {}
            },
            RecordKind::Switch(_)
            | RecordKind::Waking(_)
            | RecordKind::Wakeup(_)
            | RecordKind::WakeupNew(_) => *step = None,
            _ => {}
        }
    }

    /// Lets the clock of a runqueue follow the trace's, as far as its next charge allows.
    fn stand_at(&mut self, record: &EventRecord, cpu: Cpu) {
        self.follow_clock(record, cpu);
        let ahead = self.cpus[cpu.index()].clock_ahead.filter(|_| self.is_fair(self.sched.curr(cpu)));
        if let Some(ahead) = ahead {
            self.advance_until(cpu, record.time, ahead);
        }
    }
}
