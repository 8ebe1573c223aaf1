//! Verdicts: comparing what the core decided with what the kernel did, and applying the latter.

use fairlab_event::Cpu;
use fairlab_kernel::decision::PreemptDecision;
use fairlab_kernel::open_loop::{EntityId, EntityView, QueueId};
use fairlab_kernel::{TaskId, Vruntime};

use super::super::record::EventRecord;
use super::super::tally::{DecisionKind, MissedDecision};
use super::super::verdict::{DecisionOutcome, DecisionVerdict, ModelAnswers};
use super::{GROUPS_HIDDEN, Walker};

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
    /// Where it stood on this queue's time line before; it is never placed before that.
    pub stood: Option<Vruntime>,
    /// Values that the kernel could have come to as well.
    pub others: Vec<Vruntime>,
    /// A probe shows its place if it comes after this event.
    pub since: u64,
}

impl Walker {
    /// Counts a verdict; during the warm-up nothing is judged. Returns whether it was judged.
    pub(super) fn count(&mut self, kind: DecisionKind, case: &'static str, verdict: DecisionVerdict) -> bool {
        let hangs_on_groups =
            !matches!(kind, DecisionKind::Vruntime | DecisionKind::WakeupCpu | DecisionKind::Balance);
        let verdict = verdict
            .unless((!self.warm).then_some("warm-up"))
            .unless((self.groups_hidden && hangs_on_groups).then_some(GROUPS_HIDDEN));
        let is_judged = verdict.is_judged();
        self.tally.count(kind, case, verdict);
        is_judged
    }

    /// Counts a verdict, and keeps its circumstances if it is one of the first misses: what the model said, what the kernel
    /// did.
    pub(super) fn judge(
        &mut self,
        judged: DecisionPlace<'_>,
        verdict: DecisionVerdict,
        circumstances: impl FnOnce(&Walker) -> [String; 2],
    ) {
        let (throttled, weighed) = match verdict.is_judged() {
            true => (
                self.hides_throttling(judged.kind, judged.queue),
                self.doubts_weights(judged.kind, judged.queue),
            ),
            false => (false, false),
        };
        let verdict = verdict
            .unless(throttled.then_some("a group may be throttled"))
            .unless(weighed.then_some("a group's weight was changed unseen"));
        let outcome = verdict.outcome();
        let counted = self.count(judged.kind, judged.case, verdict);
        let DecisionOutcome::Missed(reason) = outcome else { return };
        if !counted || !self.tally.keeps_misses() {
            return;
        }
        let [model, kernel] = circumstances(self);
        let miss = MissedDecision {
            event: judged.record.number,
            time: judged.record.time,
            cpu: self.sched.cpu_of(judged.queue),
            kind: judged.kind,
            case: judged.case,
            reason,
            model,
            kernel,
            state: match judged.kind {
                DecisionKind::Balance | DecisionKind::BalanceTry | DecisionKind::WakeupCpu => {
                    self.describe_cpus(judged.record)
                }
                _ => self.describe_queue(judged.queue),
            },
        };
        self.tally.misses.push(miss);
    }

    /// Compares two values, the model's and the kernel's. `known` says whether the model could know. Rounding that the trace does
    /// not show may put them `tolerance` apart.
    pub(super) fn compare(
        &mut self,
        judged: DecisionPlace<'_>,
        known: bool,
        [model, kernel]: [Vruntime; 2],
        tolerance: u64,
        what: &str,
    ) {
        let verdict = DecisionVerdict::of(ModelAnswers::within(model, [tolerance, 0]), kernel, judged.case)
            .unless((!known).then_some("not known before"));
        self.judge(judged, verdict, |_| {
            [format!("{what} {}", model.0), format!("{} ({:+})", kernel.0, kernel.minus(model))]
        });
    }

    /// A queue in words, vruntimes relative to its minimum.
    pub(super) fn describe_queue(&self, queue: QueueId) -> Vec<String> {
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
        let info = self.knowledge.entity_mut(entity);
        (info.known, info.unprinted) = (true, 0);
    }

    /// The levels of a task that will join queues of `cpu` when it is queued there; `case` and `known` are those of its own.
    pub(super) fn joining(&self, task: TaskId, cpu: Cpu, own: JoiningEntity) -> Vec<JoiningEntity> {
        let mut joining = vec![own];
        for entity in self.sched.levels_on(task, cpu).into_iter().skip(1) {
            let below = joining.last().map(|below: &JoiningEntity| self.sched.queue_of(below.entity));
            if self.sched.entity_view(entity).on_rq || below.is_some_and(|below| self.sched.ends_at(below)) {
                break;
            }
            let queue = self.sched.queue_of(entity);
            let known = self.group_place_known(entity, queue);
            let since = joining[0].since;
            let stood = Some(self.sched.entity_view(entity).vruntime);
            joining.push(JoiningEntity {
                entity,
                case: "group entity",
                known,
                stood,
                others: Vec::new(),
                since,
            });
        }
        joining
    }

    /// Whether where a group's entity, which never stands relative to a minimum, would be placed is known.
    pub(super) fn group_place_known(&self, entity: EntityId, queue: QueueId) -> bool {
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
        if std::mem::take(&mut self.knowledge.entity_mut(joined.entity).place_judged) {
            self.knowledge.entity_mut(joined.entity).placed = None;
            return;
        }
        let model = view.vruntime;
        let placed = self
            .knowledge
            .entity_mut(joined.entity)
            .placed
            .take()
            .filter(|placed| placed.event > joined.since);
        let shown = placed.map(|placed| placed.vruntime).or_else(|| match view.task {
            Some(task) => self.vruntime_shown_later(task),
            None => self.group_vruntime_shown_later(joined.entity),
        });
        let deadline = placed.and_then(|placed| placed.deadline).filter(|_| self.by_lag);
        self.note_request(joined, &view);
        let verdict = match shown {
            None => DecisionVerdict::not_judged("vruntime not shown"),
            Some(_) if !joined.known => DecisionVerdict::not_judged("state before not known"),
            Some(_) if self.hangs_on_simulated_weights(joined) => {
                DecisionVerdict::not_judged("weights of groups are not shown")
            }
            Some(kernel) => self.placement_verdict(joined, &view, kernel, deadline),
        };
        let queue = self.sched.queue_of(joined.entity);
        let judged = DecisionPlace { record, kind: DecisionKind::Placement, case: joined.case, queue };
        self.judge(judged, verdict, |walker| describe_placement(walker, &view, shown, deadline));
        let beside = shown.filter(|&kernel| self.by_lag && kernel != model);
        let beside = beside.map(|kernel| view.deadline.plus(kernel.minus(model)));
        if let Some(deadline) = deadline.or(beside) {
            self.sched.force_deadline(joined.entity, deadline);
        }
        match shown {
            Some(kernel) => {
                self.learn_minimum(joined, queue, model, kernel);
                self.force_vruntime(joined.entity, kernel);
            }
            None => self.knowledge.entity_mut(joined.entity).known = joined.known,
        }
    }

    /// Compares a place with those that the entity can have come to. A shown deadline counts where the place leaves no choice.
    fn placement_verdict(
        &self,
        joined: &JoiningEntity,
        view: &EntityView,
        kernel: Vruntime,
        deadline: Option<Vruntime>,
    ) -> DecisionVerdict {
        let of_queue = 2 * self.queue_tolerance(self.sched.queue_of(joined.entity));
        let tolerance = self.unseen_rounding(view).max(of_queue);
        let answers = ModelAnswers::within(view.vruntime, [tolerance, 0]).and(joined.others.iter().copied());
        match deadline.filter(|_| kernel == view.vruntime) {
            Some(deadline) if deadline != view.deadline => DecisionVerdict::of(
                ModelAnswers::one((view.vruntime, view.deadline)),
                (kernel, deadline),
                "deadline",
            ),
            _ => DecisionVerdict::of(answers, kernel, joined.case),
        }
    }

    /// Whether a place hangs on weights that are the model's own: of groups on its queue, or, for how far behind a child begins,
    /// of those above.
    fn hangs_on_simulated_weights(&self, joined: &JoiningEntity) -> bool {
        let up = |queue: &QueueId| self.sched.entity_above(*queue).map(|above| self.sched.queue_of(above));
        let queues = std::iter::successors(Some(self.sched.queue_of(joined.entity)), up);
        let levels = if joined.case == "fork" && !self.by_lag { usize::MAX } else { 1 };
        queues.take(levels).any(|queue| self.weights_simulated(queue))
    }

    /// What joins its queue gets a request of its own, unless it brings one from the queue that it was on.
    fn note_request(&mut self, joined: &JoiningEntity, view: &EntityView) {
        let keeps = joined.case == "moved";
        if view.task.is_some() && !keeps {
            // A sleeper that is woken on its queue gets one only if it is past the average.
            let known = joined.known || joined.case != "delayed requeue";
            self.knowledge.entity_mut(joined.entity).request_known = known;
        }
    }

    /// A queue's minimum that was not known is shown by where a task was placed relative to it.
    fn learn_minimum(&mut self, joined: &JoiningEntity, queue: QueueId, model: Vruntime, kernel: Vruntime) {
        let simulated = self.weights_simulated(queue);
        let depends_on_minimum = match joined.case {
            "fork" | "moved" => true,
            _ => simulated && joined.known && joined.stood != Some(kernel),
        };
        let learns = depends_on_minimum && !self.by_lag && (simulated || self.is_entity_known(joined.entity));
        if !learns || (self.min_known(queue) && (!simulated || kernel == model)) {
            return;
        }
        let view = self.sched.queue_view(queue);
        let minimum = view.min_vruntime.plus(kernel.minus(model));
        // Who made the minimum, by a weight that is not shown, stands there.
        let least = view.entities().find(|least| least.task.is_none() && least.vruntime == view.min_vruntime);
        if let Some(least) = least.filter(|_| simulated) {
            self.sched.force_vruntime(least.id, minimum);
        }
        self.sched.force_min_vruntime(queue, minimum);
        self.knowledge.queue_mut(queue).min_known = true;
        self.note_minimum(queue);
    }

    /// Whether a reschedule of another CPU that the test asks for leaves no trace: the pick that follows at once keeps the
    /// running task, whose slice is protected. So no switch is reported, and the flag is gone when the CPU reports something
    /// again.
    fn may_go_unseen(&self, record: &EventRecord, decision: &PreemptDecision, curr: TaskId) -> bool {
        let cpu = self.sched.task(curr).cpu();
        let tells = self.seen.resched_probe || self.interrupts_tell();
        if !self.by_lag || !decision.preempt || tells || record.cpu == cpu || !self.sched.is_on_queue(curr) {
            return false;
        }
        let levels = self.sched.pick_levels(curr);
        levels.iter().all(|level| level.model.map(|(entity, _)| entity) == Some(level.picked))
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
        let curr = self.sched.curr(cpu);
        let curr_queued = self.sched.is_on_queue(curr) && !self.cpus[cpu.index()].blocked;
        let compared = self.sched.compared_entities(task);
        let known = compared.is_some_and(|(one, other)| match self.by_lag {
            true => self.all_known(self.sched.queue_of(one)),
            false => self.is_entity_known(one) && self.is_entity_known(other),
        });
        let unseen = truth == Some(false) && !pending && self.may_go_unseen(record, &decision, curr);
        let pick_known = compared
            .is_none_or(|(one, _)| self.protection_known(&self.sched.queue_view(self.sched.queue_of(one))));
        let verdict = match truth {
            _ if compared.is_none() => DecisionVerdict::not_judged("another class is concerned"),
            _ if !curr_queued => DecisionVerdict::not_judged("the running task has left its queue"),
            _ if pending => DecisionVerdict::not_judged("a reschedule is already pending"),
            None => DecisionVerdict::not_judged("the trace does not show it"),
            Some(_) if unseen => DecisionVerdict::not_judged("the trace does not show it"),
            Some(_) if !known => DecisionVerdict::not_judged("vruntime not known"),
            Some(_) if !pick_known => DecisionVerdict::not_judged("since when it runs is not known"),
            Some(truth) => {
                let close = compared.is_some_and(|(_, woken)| self.is_close(woken));
                let answers = ModelAnswers::one(decision.preempt).and(close.then_some(!decision.preempt));
                DecisionVerdict::of(answers, truth, decision.reason.describe())
            }
        };
        let is_judged = verdict.is_judged();
        let preempts = truth.unwrap_or(decision.preempt);
        let case = yes_no(preempts);
        let queue = compared.map_or_else(|| self.queue_of(task), |(_, woken)| self.sched.queue_of(woken));
        let judged = DecisionPlace { record, kind: DecisionKind::WakeupPreempt, case, queue };
        self.judge(judged, verdict, |walker| {
            let said = yes_no(decision.preempt);
            [format!("{said} for {}: {}", walker.name_of(task), decision.reason.describe()), case.to_string()]
        });
        let forced = match is_judged && preempts != decision.preempt {
            true => PreemptDecision { preempt: preempts, ..super::wakeups::decision_for(preempts) },
            false => decision,
        };
        self.sched.apply_preempt(task, forced);
        if unseen {
            // It has been picked again by the time that its CPU reports something.
            self.sched.force_need_resched(cpu, false, false);
        }
    }
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
