//! Verdicts: comparing what the core decided with what the kernel did, and applying the latter.

use fairlab_kernel::decision::{PreemptDecision, PreemptReason};
use fairlab_kernel::open_loop::{EntityId, EntityView, QueueId};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::record::EventRecord;
use super::super::tally::{DecisionKind, MissedDecision};
use super::super::verdict::DecisionOutcome;
use super::Walker;

/// Where a decision is judged.
#[derive(Clone, Copy)]
pub(super) struct DecisionPlace<'r> {
    pub record: &'r EventRecord,
    pub kind: DecisionKind,
    pub case: &'static str,
    /// Which queue is shown with a miss.
    pub queue: QueueId,
}

/// An entity that joins a queue, before it does.
#[derive(Clone, Debug)]
pub(super) struct JoiningEntity {
    pub entity: EntityId,
    pub case: &'static str,
    /// Whether all that its place depends on is known.
    pub known: bool,
    /// A probe shows its place if it comes after this event.
    pub since: u64,
}

impl Walker {
    /// Counts an outcome, unless all of its kind hangs on what the recording does not show.
    pub(super) fn count(
        &mut self,
        kind: DecisionKind,
        case: &'static str,
        outcome: DecisionOutcome,
    ) -> DecisionOutcome {
        let on_queue = kind.is_on_queue();
        let outcome = outcome
            .unless((!self.warm).then_some("warm-up"))
            .unless(
                (self.by_lag && !self.probed && on_queue)
                    .then_some("probes do not show where entities stand"),
            )
            .unless((self.groups_hidden && on_queue).then_some("groups of tasks are not shown"));
        self.tally.count(kind, case, outcome);
        outcome
    }

    /// Counts an outcome, and keeps its circumstances if it is one of the first misses: what the model said, what the kernel
    /// did.
    pub(super) fn judge(
        &mut self,
        judged: DecisionPlace<'_>,
        outcome: DecisionOutcome,
        circumstances: impl FnOnce(&Walker) -> [String; 2],
    ) -> DecisionOutcome {
        let throttled = outcome.is_judged() && self.hides_throttling(judged.kind, judged.case, judged.queue);
        let outcome = outcome.unless(throttled.then_some("a group may be throttled"));
        let outcome = self.count(judged.kind, judged.case, outcome);
        let DecisionOutcome::Missed(reason) = outcome else { return outcome };
        if !self.tally.keeps_misses() {
            return outcome;
        }
        let [model, kernel] = circumstances(self);
        self.tally.misses.push(MissedDecision {
            event: judged.record.number,
            time: judged.record.time,
            cpu: self.sched.cpu_of(judged.queue),
            kind: judged.kind,
            case: judged.case,
            reason,
            model,
            kernel,
            state: self.describe_queue(judged.queue),
        });
        outcome
    }

    /// Compares two points of a time line, the model's and the kernel's. `known` says whether the model could know.
    pub(super) fn compare(
        &mut self,
        judged: DecisionPlace<'_>,
        known: bool,
        [model, kernel]: [Vruntime; 2],
        what: &str,
    ) {
        let outcome = DecisionOutcome::of(model, kernel, judged.case)
            .unless((!known).then_some("state before not known"));
        self.judge(judged, outcome, |_| {
            [format!("{what} {}", model.0), format!("{} ({:+})", kernel.0, kernel.minus(model))]
        });
    }

    /// A queue in words, vruntimes relative to its minimum.
    fn describe_queue(&self, queue: QueueId) -> Vec<String> {
        let view = self.sched.queue_view(queue);
        let known = |known: bool| if known { "" } else { " (not known)" };
        let mut lines = vec![format!("min_vruntime {}{}", view.min_vruntime.0, known(self.min_known(queue)))];
        if view.curr.is_none() {
            let curr = self.sched.curr(self.sched.cpu_of(queue));
            lines.push(format!("curr {} (not queued)", self.name_of(curr)));
        }
        let roles = view.curr.iter().map(|view| ("curr", view));
        for (role, entity) in roles.chain(view.waiting.iter().map(|view| ("waits", view))) {
            let buddy = view.buddies.iter().zip([" next", " last", " skip"]);
            let buddy = buddy.filter(|(buddy, _)| **buddy == Some(entity.id)).map(|(_, name)| name);
            lines.push(format!(
                "{role} {} vruntime {:+}{} deadline {:+} weight {}{}{}",
                self.name_of_entity(entity),
                entity.vruntime.minus(view.min_vruntime),
                known(self.is_entity_known(entity.id)),
                entity.deadline.minus(view.min_vruntime),
                entity.weight,
                if entity.delayed { " delayed" } else { "" },
                buddy.collect::<String>(),
            ));
        }
        lines
    }

    pub(super) fn name_of(&self, task: TaskId) -> String {
        format!("{}-{}", self.sched.task(task).comm(), self.pid_of(task))
    }

    pub(super) fn name_of_entity(&self, view: &EntityView) -> String {
        view.task.map_or_else(|| format!("group entity {}", view.id.index()), |task| self.name_of(task))
    }

    /// Sets an entity's vruntime to the kernel's; from now on it is known.
    pub(super) fn force_vruntime(&mut self, entity: EntityId, vruntime: Vruntime) {
        if self.sched.entity_view(entity).vruntime != vruntime {
            self.sched.force_vruntime(entity, vruntime);
        }
        self.knowledge.entity_mut(entity).known = true;
    }

    /// The levels of a task that will join queues of `cpu` when it is queued there; `own` is its own.
    pub(super) fn joining(
        &self,
        task: TaskId,
        cpu: fairlab_event::Cpu,
        own: JoiningEntity,
    ) -> Vec<JoiningEntity> {
        let mut joining = vec![own];
        for entity in self.sched.levels_on(task, cpu).into_iter().skip(1) {
            let below = joining.last().map(|below: &JoiningEntity| self.sched.queue_of(below.entity));
            let (view, since) = (self.sched.entity_view(entity), joining[0].since);
            if below.is_some_and(|below| self.sched.ends_at(below)) || (view.on_rq && !view.delayed) {
                break;
            }
            let (case, known) = match view.delayed {
                // It is where it was, and is placed anew if it is ahead of the others.
                true => ("delayed requeue", self.average_known(self.sched.queue_of(entity))),
                false => ("group entity", self.group_place_known(entity)),
            };
            joining.push(JoiningEntity { entity, case, known, since });
            if view.on_rq {
                break;
            }
        }
        joining
    }

    /// Whether where a group's entity, which never stands relative to a minimum, would be placed is known.
    pub(super) fn group_place_known(&self, entity: EntityId) -> bool {
        let queue = self.sched.queue_of(entity);
        match self.by_lag {
            true => self.place_known(entity, queue),
            false => self.is_entity_known(entity) && self.min_known(queue),
        }
    }

    /// Whether where an entity would be placed by its lag is known.
    pub(super) fn place_known(&self, entity: EntityId, queue: QueueId) -> bool {
        let is_empty = self.sched.queue_view(queue).entities().next().is_none();
        self.average_known(queue) && (is_empty || self.knowledge.entity(entity).lag_known)
    }

    /// Compares the places of entities that have just been queued, and puts them where the kernel had them.
    pub(super) fn judge_placements(&mut self, record: &EventRecord, joined: Vec<JoiningEntity>) {
        for joined in joined {
            self.judge_placement(record, &joined);
        }
    }

    fn judge_placement(&mut self, record: &EventRecord, joined: &JoiningEntity) {
        let view = self.sched.entity_view(joined.entity);
        if view.task.is_some_and(|task| !self.is_fair(task)) {
            return;
        }
        let info = self.knowledge.entity_mut(joined.entity);
        info.stay_hidden = false;
        let placed = info.placed.take();
        if std::mem::take(&mut info.place_judged) {
            return;
        }
        let model = view.vruntime;
        let placed = placed.filter(|placed| placed.event > joined.since);
        let shown = placed.map(|placed| placed.vruntime).or_else(|| match view.task {
            Some(task) => self.vruntime_shown_later(task),
            None => self.group_vruntime_shown_later(joined.entity),
        });
        let deadline = placed.and_then(|placed| placed.deadline).filter(|_| self.by_lag);
        let outcome = match (shown, deadline) {
            (None, _) => DecisionOutcome::NotJudged("vruntime not shown"),
            (Some(kernel), Some(deadline)) if kernel == model => {
                DecisionOutcome::of(view.deadline, deadline, "deadline")
            }
            (Some(kernel), _) => DecisionOutcome::of(model, kernel, joined.case),
        };
        let outcome = outcome.unless((!joined.known).then_some("state before not known"));
        let queue = self.sched.queue_of(joined.entity);
        let judged = DecisionPlace { record, kind: DecisionKind::Placement, case: joined.case, queue };
        self.judge(judged, outcome, |walker| describe_placement(walker, &view, shown, deadline));
        let beside = shown.filter(|&kernel| self.by_lag && kernel != model);
        let beside = beside.map(|kernel| view.deadline.plus(kernel.minus(model)));
        if let Some(deadline) = deadline.or(beside) {
            self.sched.force_deadline(joined.entity, deadline);
        }
        match shown {
            Some(kernel) => {
                self.learn_minimum(joined, queue, kernel.minus(model));
                self.force_vruntime(joined.entity, kernel);
                // What it is placed by is not known, nor is its deadline then unless it is shown.
                let known = joined.known || !self.by_lag || deadline.is_some();
                self.knowledge.entity_mut(joined.entity).known = known;
            }
            None => self.knowledge.entity_mut(joined.entity).known = joined.known,
        }
    }

    /// A queue's minimum that was not known is shown by where a task was placed that stands a known distance from it.
    fn learn_minimum(&mut self, joined: &JoiningEntity, queue: QueueId, off: i64) {
        let relative = matches!(joined.case, "fork" | "moved") && self.is_entity_known(joined.entity);
        if self.by_lag || !relative || self.min_known(queue) {
            return;
        }
        let minimum = self.sched.queue_view(queue).min_vruntime.plus(off);
        self.sched.force_min_vruntime(queue, minimum);
        self.knowledge.set_minimum_known(queue, true);
    }

    /// An entity that is still its queue's current one is placed before it is charged and reweighted: what comes of all
    /// three is not where it was placed.
    pub(super) fn judge_place_of_current(
        &mut self,
        record: &EventRecord,
        entity: EntityId,
        kernel: (Vruntime, Option<Vruntime>),
    ) {
        let queue = self.sched.queue_of(entity);
        let model = self.sched.placement_of(entity);
        let missed = if model.0 == kernel.0 { "deadline" } else { "still current" };
        let known = self.place_known(entity, queue);
        let outcome =
            DecisionOutcome::of(model, kernel, missed).unless((!known).then_some("state before not known"));
        let view = self.sched.entity_view(entity);
        let case = "group entity, still current";
        let judged = DecisionPlace { record, kind: DecisionKind::Placement, case, queue };
        self.judge(judged, outcome, |walker| {
            let name = walker.name_of_entity(&view);
            [format!("{name} at {model:?}"), format!("{kernel:?}")]
        });
        self.knowledge.entity_mut(entity).place_judged = true;
    }

    /// Compares whether a task that has just been queued takes the CPU, and applies what the kernel did.
    pub(super) fn judge_preempt(
        &mut self,
        record: &EventRecord,
        task: TaskId,
        pending: bool,
        truth: Option<bool>,
    ) {
        let cpu = self.sched.task(task).cpu();
        let decision = self.sched.wakeup_preempt(task);
        let curr_queued = self.sched.is_on_queue(self.sched.curr(cpu)) && !self.cpus[cpu.index()].blocked;
        let compared = self.sched.compared_entities(task);
        let known = compared.is_some_and(|(one, other)| match self.by_lag {
            true => self.all_known(self.sched.queue_of(one)),
            false => self.is_entity_known(one) && self.is_entity_known(other),
        });
        let outcome = match truth {
            _ if compared.is_none() => DecisionOutcome::NotJudged("another class is concerned"),
            _ if !curr_queued => DecisionOutcome::NotJudged("the running task has left its queue"),
            _ if pending => DecisionOutcome::NotJudged("a reschedule is already pending"),
            None => DecisionOutcome::NotJudged("the trace does not show it"),
            Some(_) if !known => DecisionOutcome::NotJudged("vruntime not known"),
            Some(truth) => DecisionOutcome::of(decision.preempt, truth, decision.reason.describe()),
        };
        let preempts = truth.unwrap_or(decision.preempt);
        let case = yes_no(preempts);
        let queue = compared.map_or_else(|| self.queue_of(task), |(_, woken)| self.sched.queue_of(woken));
        let judged = DecisionPlace { record, kind: DecisionKind::WakeupPreempt, case, queue };
        let outcome = self.judge(judged, outcome, |walker| {
            let said = yes_no(decision.preempt);
            [format!("{said} for {}: {}", walker.name_of(task), decision.reason.describe()), case.to_string()]
        });
        let forced = match outcome {
            DecisionOutcome::Missed(_) => decision_for(preempts),
            _ => decision,
        };
        self.sched.apply_preempt(task, forced);
    }
}

/// A decision as the kernel took it where the model decided otherwise.
fn decision_for(preempt: bool) -> PreemptDecision {
    let reason = if preempt { PreemptReason::BeyondGranularity } else { PreemptReason::WithinGranularity };
    PreemptDecision { preempt, reason }
}

fn describe_placement(
    walker: &Walker,
    view: &EntityView,
    shown: Option<Vruntime>,
    deadline: Option<Vruntime>,
) -> [String; 2] {
    let kernel = shown.unwrap_or(view.vruntime);
    let wanted =
        deadline.map_or(String::new(), |deadline| format!(", deadline {:+}", deadline.minus(kernel)));
    [
        format!(
            "{} at {}, deadline {:+}, lag {}",
            walker.name_of_entity(view),
            view.vruntime.0,
            view.deadline.minus(view.vruntime),
            view.vlag
        ),
        format!("{} ({:+}){wanted}", kernel.0, kernel.minus(view.vruntime)),
    ]
}

pub(super) fn yes_no(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}
