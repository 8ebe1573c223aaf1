//! Verdicts about traced steps: averages, lags, places, and where changes of weight put entities.

use fairlab_event::Cpu;
use fairlab_kernel::Vruntime;
use fairlab_kernel::open_loop::{EntityId, EntityView, QueueId};

use super::super::super::probe::{Key, ProbeHit};
use super::super::super::record::EventRecord;
use super::super::super::tally::DecisionKind;
use super::super::super::verdict::{DecisionVerdict, ModelAnswers};
use super::super::{DecisionPlace, ReturnedPlacement, Walker};
use super::{UNSEEN_ROUNDING, printed};

impl Walker {
    /// A lag was scaled by weights that are not shown to the last bit.
    pub(super) fn note_lag_scaled(&mut self, entity: EntityId, old: u64, new: u64) {
        let lag = self.sched.entity_view(entity).vlag;
        let info = self.knowledge.entity_mut(entity);
        if !is_shown(old) || !is_shown(new) {
            info.lag_known = false;
        }
        info.lag_slack = info.lag_slack.saturating_mul(old) / new.max(1) + slack(lag, old, new);
    }

    pub(super) fn compare_traced_average(&mut self, cpu: Cpu, entity: EntityId, probe: &ProbeHit) {
        let queue = self.sched.queue_of(entity);
        let tells_clock = self.sched.queue_view(queue).curr.is_some_and(|curr| curr.task.is_none());
        let is_empty = self.sched.queue_view(queue).entities().next().is_none();
        let Some(kernel) = probe.unsigned(Key::Average).map(Vruntime) else { return };
        let model = self.sched.queue_average_at(queue, self.sched.rq_clock(cpu));
        let Some(record) = self.record_now(cpu) else { return };
        let judged = DecisionPlace { record: &record, kind: DecisionKind::QueueTime, case: "average", queue };
        let is_near = model.minus(kernel).unsigned_abs() <= UNSEEN_ROUNDING;
        match (self.average_known(queue), model == kernel) {
            (true, true) if tells_clock => {}
            (true, false) if is_near && (tells_clock || is_empty) => {
                let verdict =
                    DecisionVerdict::of(ModelAnswers::within(model, [UNSEEN_ROUNDING, 0]), kernel, "average");
                self.judge(judged, verdict, |_| [String::new(), String::new()]);
                self.take_average_of_one(queue, kernel);
            }
            (known, _) => {
                self.compare(judged, known, [model, kernel], self.queue_tolerance(queue), "average");
            }
        }
    }

    /// A queue's only entity stands at the average.
    fn take_average_of_one(&mut self, queue: QueueId, average: Vruntime) {
        let cpu = self.sched.cpu_of(queue);
        let view = self.sched.queue_view(queue);
        if let (Some(curr), true) = (view.curr, view.waiting.is_empty()) {
            let charged = self.sched.queue_average_at(queue, self.sched.rq_clock(cpu)).minus(curr.vruntime);
            self.sched.force_vruntime(curr.id, average.plus(-charged));
        }
    }

    pub(super) fn compare_traced_lag(&mut self, entity: EntityId, kernel: i64) {
        let view = self.sched.entity_view(entity);
        let info = self.knowledge.entity(entity);
        let verdict =
            DecisionVerdict::of(ModelAnswers::within(view.vlag, [info.lag_slack, 0]), kernel, "kept")
                .unless((!info.lag_known).then_some("state before not known"));
        let queue = self.sched.queue_of(entity);
        let Some(record) = self.record_now(self.sched.cpu_of(queue)) else { return };
        let judged = DecisionPlace { record: &record, kind: DecisionKind::Lag, case: "kept", queue };
        self.judge(judged, verdict, |walker| {
            let name = walker.name_of_entity(&view);
            [
                format!("{name} {} ± {}", view.vlag, info.lag_slack),
                format!("{kernel} ({:+})", kernel.wrapping_sub(view.vlag)),
            ]
        });
        self.sched.force_vlag(entity, kernel);
        let info = self.knowledge.entity_mut(entity);
        (info.lag_known, info.lag_slack) = (true, 0);
    }

    /// An entity that is still its queue's current one is placed before it is charged and reweighted: what comes of all
    /// three is not where it was placed.
    pub(in super::super) fn judge_place_of_current(&mut self, entity: EntityId, kernel: ReturnedPlacement) {
        let queue = self.sched.queue_of(entity);
        let (vruntime, deadline) = self.sched.placement_of(entity);
        let missed = if vruntime == kernel.vruntime { "deadline" } else { "still current" };
        let answers = ModelAnswers::one((vruntime, deadline.unwrap_or_default()));
        let placed = (kernel.vruntime, kernel.deadline.unwrap_or_default());
        let verdict = DecisionVerdict::of(answers, placed, missed)
            .unless((!self.place_known(entity, queue)).then_some("state before not known"));
        let view = self.sched.entity_view(entity);
        let Some(record) = self.record_now(self.sched.cpu_of(queue)) else { return };
        let judged = DecisionPlace {
            record: &record,
            kind: DecisionKind::Placement,
            case: "group entity, still current",
            queue,
        };
        self.judge(judged, verdict, |walker| {
            [
                format!("{} at {}, deadline {deadline:?}", walker.name_of_entity(&view), vruntime.0),
                format!("{}, deadline {:?}", kernel.vruntime.0, kernel.deadline),
            ]
        });
        self.knowledge.entity_mut(entity).place_judged = true;
    }

    /// The core has done the steps that were traced: compares where changes of weight have put entities.
    pub(in super::super) fn judge_traced(&mut self, record: &EventRecord) {
        for step in std::mem::take(&mut self.steps) {
            for level in step.levels {
                let changed = match &level.place {
                    Some(_) => level.after,
                    None => level.before,
                };
                if let Some(probe) = changed {
                    self.judge_reweight(record, level.entity, level.place.is_some(), &probe);
                }
            }
        }
    }

    /// How far a group's entity may be off by what accounting at moments that nothing shows has truncated.
    pub(in super::super) fn unseen_rounding(&self, view: &EntityView) -> u64 {
        let unseen = self.recording.traces_places && view.task.is_none();
        if unseen { UNSEEN_ROUNDING } else { 0 }
    }

    fn judge_reweight(&mut self, record: &EventRecord, entity: EntityId, placed: bool, probe: &ProbeHit) {
        let (old, new) = (printed(probe, Key::Weight), printed(probe, Key::NewWeight));
        let view = self.sched.entity_view(entity);
        if !placed && probe.get(Key::OnRq) == Some(0) {
            // It has left: only its lag changes, which shows when it is placed again.
            self.note_lag_scaled(entity, old, new);
            return;
        }
        let (Some(vruntime), Some(deadline)) = (
            probe.unsigned(Key::Vruntime).map(Vruntime),
            probe.unsigned(Key::Deadline).map(Vruntime).filter(|_| view.on_rq),
        ) else {
            return;
        };
        let queue = self.sched.queue_of(entity);
        let verdict = match self.all_known(queue) || (placed && self.is_entity_known(entity)) {
            false => DecisionVerdict::not_judged("queue not known"),
            true if !is_shown(old) && probe.get(Key::OnRq) == Some(1) => {
                DecisionVerdict::not_judged("weight not shown")
            }
            true => self.reweight_verdict(&view, vruntime, deadline, probe),
        };
        let case = if probe.get(Key::OnRq) == Some(1) { "queued" } else { "still current" };
        let judged = DecisionPlace { record, kind: DecisionKind::Reweight, case, queue };
        self.judge(judged, verdict, |walker| {
            let left = view.deadline.minus(view.vruntime);
            [
                format!(
                    "{} {old}->{new} at {}, deadline {left:+}",
                    walker.name_of_entity(&view),
                    view.vruntime.0
                ),
                format!(
                    "{} ({:+}), deadline {:+}",
                    vruntime.0,
                    vruntime.minus(view.vruntime),
                    deadline.minus(vruntime)
                ),
            ]
        });
        if self.by_lag && view.deadline != deadline {
            self.sched.force_deadline(entity, deadline);
        }
        self.force_vruntime(entity, vruntime);
    }

    fn reweight_verdict(
        &self,
        view: &EntityView,
        vruntime: Vruntime,
        deadline: Vruntime,
        probe: &ProbeHit,
    ) -> DecisionVerdict {
        let (old, new) = (printed(probe, Key::Weight), printed(probe, Key::NewWeight));
        let before = |key| Vruntime(printed(probe, key));
        let queued = probe.get(Key::OnRq) == Some(1);
        let pivot = self.sched.reweight_pivot(view.id, before(Key::OldVruntime), queued);
        let slack = |key| pivot.map_or(0, |pivot| slack(before(key).minus(pivot), old, new));
        let within = [Key::OldVruntime, Key::OldDeadline].map(|key| slack(key) + UNSEEN_ROUNDING);
        let is_off = view.vruntime.minus(vruntime).unsigned_abs() > within[0];
        let missed = if is_off { "vruntime" } else { "deadline" };
        match self.by_lag {
            true => DecisionVerdict::of(
                ModelAnswers::within((view.vruntime, view.deadline), within),
                (vruntime, deadline),
                missed,
            ),
            false => {
                DecisionVerdict::of(ModelAnswers::within(view.vruntime, [within[0], 0]), vruntime, missed)
            }
        }
    }

    /// The event that is being walked, where a verdict needs one.
    fn record_now(&self, cpu: Cpu) -> Option<EventRecord> {
        self.now.clone().map(|record| EventRecord { cpu, ..record })
    }
}

/// Whether the printed weight tells anything: smaller ones are printed as the least.
fn is_shown(printed: u64) -> bool {
    printed > 2
}

/// How far a distance that was scaled by the ratio of two weights may be off without their last bits, virtual ns.
fn slack(distance: i64, old: u64, new: u64) -> u64 {
    const ROUNDING: u64 = 2;
    let distance = match distance.unsigned_abs() {
        0 => return 0,
        distance => distance,
    };
    distance / old.max(1) + distance / new.max(1) + ROUNDING
}
