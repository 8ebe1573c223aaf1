//! Tasks that balancing moves, as the trace reports them: from which queue, and which task of it.
//!
//! Must not know: how a task that is taken is queued.

use std::collections::BTreeSet;

use fairlab_event::Cpu;
use fairlab_kernel::balance::{BalanceDecision, DetachPass, Imbalance, MigrationType, PullEnd};
use fairlab_kernel::schedstat::CpuIdleType;
use fairlab_kernel::{Scheduler, TaskId};

use super::super::super::record::{EventRecord, RecordKind};
use super::super::super::tally::DecisionKind;
use super::super::super::verdict::{DecisionVerdict, ModelAnswers};
use super::super::truth::in_interrupt;
use super::super::{AFFINITY_HIDDEN, DecisionPlace, Walker};
use super::looking::{PossibleDecisions, mode_of};
use super::{describe, takes};

/// How many tries may have failed in a row, where no probe shows how many: more make no difference.
const FAILURES_MAX: u32 = 10;

/// Tasks that leave a queue in one pass.
#[derive(Clone, Debug)]
pub(super) struct DetachedTasks {
    source: Cpu,
    dest: Cpu,
    /// What the model takes, and what the kernel has taken.
    model: ModelledPass,
    taken: Vec<TaskId>,
    /// What it takes after another number of failed tries, where that is not shown, or with the imbalance of another state that
    /// it could find.
    otherwise: Vec<ModelledPass>,
    /// The tasks that may move are asked for their load.
    by_load: bool,
    why_not: Option<&'static str>,
}

impl DetachedTasks {
    fn new(source: Cpu, dest: Cpu, model: ModelledPass) -> DetachedTasks {
        let (taken, otherwise) = (Vec::new(), Vec::new());
        DetachedTasks { source, dest, model, taken, otherwise, by_load: false, why_not: None }
    }

    /// The next task in each case that agrees with the tasks taken so far; in all cases, where none agrees.
    fn next_tasks(&self) -> ModelAnswers {
        let cases = || std::iter::once(&self.model).chain(&self.otherwise);
        let fits = |case: &ModelledPass| case.moved.starts_with(&self.taken);
        let some_fit = cases().any(fits);
        let left = cases().filter(|case| !some_fit || fits(case));
        ModelAnswers::of(left.map(|case| case.moved.get(self.taken.len()).copied()))
    }

    /// Which tasks the pass has looked at after the last one that it took. One that never has enough looks at as many tasks
    /// whatever it takes.
    fn left_at_last(&self) -> &[TaskId] {
        let mut cases = std::iter::once(&self.model).chain(&self.otherwise);
        let case = cases.find(|case| !case.has_enough || case.moved == self.taken);
        let looks = case.map_or(&[][..], |case| &case.looks);
        let last = looks.iter().position(|task| self.taken.last() == Some(task));
        last.map_or(&[], |last| &looks[last + 1..])
    }
}

/// A pass: which tasks it takes, and which it looks at, in order.
#[derive(Clone, Debug, Default)]
struct ModelledPass {
    moved: Vec<TaskId>,
    looks: Vec<TaskId>,
    has_enough: bool,
}

impl From<DetachPass> for ModelledPass {
    fn from(pull: DetachPass) -> ModelledPass {
        let looks = pull.looks.iter().map(|look| look.task).collect();
        let has_enough = matches!(pull.end, PullEnd::Enough | PullEnd::OneForNewidle);
        ModelledPass { moved: pull.moved().collect(), looks, has_enough }
    }
}

/// On what occasion a task is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveOccasion {
    Newidle,
    Periodic,
    Nohz,
    Push,
}

impl MoveOccasion {
    fn case(self, of_task: bool) -> &'static str {
        match (self, of_task) {
            (MoveOccasion::Newidle, false) => "new-idle source",
            (MoveOccasion::Newidle, true) => "new-idle task",
            (MoveOccasion::Periodic, false) => "periodic source",
            (MoveOccasion::Periodic, true) => "periodic task",
            (MoveOccasion::Nohz, false) => "NOHZ source",
            (MoveOccasion::Nohz, true) => "NOHZ task",
            (MoveOccasion::Push, _) => "pushed task",
        }
    }
}

impl Walker {
    /// A waiting task is about to be taken off its queue by another than itself.
    pub(in super::super) fn judge_move(
        &mut self,
        record: &EventRecord,
        task: TaskId,
        source: Cpu,
        dest: Cpu,
    ) {
        let Some(occasion) = self.occasion(record, dest) else {
            let why = "it is not balancing, as far as the trace shows";
            self.count(DecisionKind::Balance, "move", DecisionVerdict::not_judged(why));
            return;
        };
        let here = record.cpu.index();
        self.cpus[here].wanted_work |= occasion == MoveOccasion::Newidle;
        let continues = !self.cpus[here].detached.is_empty();
        let batch = self.cpus[here].balancing.batch.take();
        let batch = batch.filter(|batch| continues && (batch.source, batch.dest) == (source, dest));
        let mut batch = match batch {
            Some(batch) => batch,
            None if occasion == MoveOccasion::Push => self.push_of(record, source, dest),
            None => self.judge_source(record, occasion, source, dest),
        };
        self.judge_taken(record, occasion, task, &batch);
        if batch.by_load {
            self.sched.note_load_asked(task);
        }
        self.note_move(task, dest);
        self.sched.note_moved(dest, source);
        batch.taken.push(task);
        self.cpus[here].balancing.batch = Some(batch);
        self.sched.pass_over_until(source, task);
    }

    /// Code on `cpu` has come to the end of a pass: what it has looked at last stays where it is.
    pub(in super::super) fn end_pass(&mut self, cpu: Cpu) {
        if let Some(batch) = self.cpus[cpu.index()].balancing.batch.take() {
            self.sched.pass_over(batch.source, batch.left_at_last());
        }
    }

    /// A CPU pulls a task in new-idle balancing: its task has left the queue, even if nothing was charged for that, and so have
    /// sleepers.
    pub(in super::super) fn leave_before_pull(&mut self, record: &EventRecord, dest: Cpu) {
        let cpu = record.cpu;
        let pulls = self.occasion(record, dest) == Some(MoveOccasion::Newidle);
        if pulls {
            self.leave_before_search(record);
        }
        if pulls && self.cpus[cpu.index()].blocked && self.by_lag && !self.seen.dequeue_probe {
            // Sleepers on its queues were picked first, and have left them.
            self.sched.finish_delayed_dequeues(cpu);
        }
    }

    /// A CPU begins new-idle balancing: its task has left the queue.
    pub(super) fn leave_before_search(&mut self, record: &EventRecord) {
        let cpu = record.cpu;
        let leaves = self.next_switch(cpu).filter(|switch| self.blocks(switch));
        let runs = leaves.filter(|switch| self.pid_of(self.sched.curr(cpu)) == switch.prev_pid);
        if let Some(switch) = runs.filter(|_| !self.cpus[cpu.index()].blocked) {
            self.block(record, cpu, switch.prev_state);
        }
    }

    /// For what the CPU of an event balances that reports a move.
    pub(super) fn idle_type(&self, record: &EventRecord, occasion: MoveOccasion) -> CpuIdleType {
        match occasion {
            MoveOccasion::Newidle => CpuIdleType::NewlyIdle,
            MoveOccasion::Periodic if !self.balances_idle(record.cpu) => CpuIdleType::NotIdle,
            _ => CpuIdleType::Idle,
        }
    }

    /// What moves a waiting task; `None` where it is not, or not surely, balancing.
    pub(super) fn occasion(&self, record: &EventRecord, dest: Cpu) -> Option<MoveOccasion> {
        let info = &self.cpus[record.cpu.index()];
        // A stopper moves what runs here elsewhere; what it takes, its CPU pulls when it is done.
        if record.comm.as_bytes().starts_with(b"migration/") && dest != record.cpu {
            let asked = self.sched.push_cpu(record.cpu).is_some();
            return (info.balancing.pushes || asked).then_some(MoveOccasion::Push);
        }
        if let Some(shown) = &info.balancing.shown {
            return Some(match shown.idle {
                CpuIdleType::NewlyIdle => MoveOccasion::Newidle,
                _ if shown.cpu == record.cpu => MoveOccasion::Periodic,
                _ => MoveOccasion::Nohz,
            });
        }
        if record.flags.in_hardirq() {
            return None;
        }
        if record.flags.in_softirq() {
            return Some(if dest == record.cpu { MoveOccasion::Periodic } else { MoveOccasion::Nohz });
        }
        (dest == record.cpu && (info.blocked || self.leaves_after_pull(record)))
            .then_some(MoveOccasion::Newidle)
    }

    /// Whether the running task of the CPU of a move, whose charge has not shown that it leaves, does so with what is pulled now: nothing
    /// else happens there before the switch. Code that moves a task for another reason, and sleeps soon after, is charged
    /// once more for that.
    fn leaves_after_pull(&self, record: &EventRecord) -> bool {
        let RecordKind::Migrate { pid: pulled, .. } = record.what else { return false };
        let leaves = self.next_switch(record.cpu).filter(|switch| self.blocks(switch));
        let Some(switch) = leaves else { return false };
        let mut before =
            self.window.on_cpu(record.cpu).take_while(|next| !matches!(next.what, RecordKind::Switch(_)));
        let alone = before.all(|next| {
            !in_interrupt(next)
                && !matches!(
                    next.what,
                    RecordKind::Waking(_) | RecordKind::Wakeup(_) | RecordKind::Fork { .. }
                )
        });
        alone && !self.is_charged_again(record.cpu, &switch, Some(pulled))
    }

    /// Compares from which queue the first task of a pass is taken. Returns what the model takes from the kernel's queue.
    fn judge_source(
        &mut self,
        record: &EventRecord,
        occasion: MoveOccasion,
        source: Cpu,
        dest: Cpu,
    ) -> DetachedTasks {
        let idle = self.idle_type(record, occasion);
        let shown = self.cpus[record.cpu.index()].balancing.shown.clone();
        let shown = shown.as_ref();
        let cpu = shown.map_or(dest, |shown| shown.cpu);
        let finds = match shown.and_then(|shown| shown.exact.as_deref()) {
            Some(exact) => exact.clone(),
            None => self.as_balancing_finds(record.time, mode_of(record), cpu),
        };
        let by_chance = self.level_by_chance(occasion, source, dest).filter(|_| shown.is_none());
        let found = match shown.filter(|shown| !shown.found.is_empty()) {
            Some(shown) => shown.found.clone(),
            None => {
                let (idle, level) = shown.map_or((idle, by_chance), |shown| (shown.idle, Some(shown.level)));
                self.has_found(record, cpu, idle, level)
            }
        };
        let decision = found.likely_that(takes).cloned();
        let common = self.sched.domains().domains_of(cpu).iter().position(|sd| sd.span.contains(source));
        let Some(common) = common else {
            let why_not = Some("no domain has both CPUs");
            return DetachedTasks { why_not, ..DetachedTasks::new(source, dest, ModelledPass::default()) };
        };
        let why_not = self.cannot_balance(record, cpu, common);
        let looked_at = shown.map(|shown| shown.level).or(by_chance);
        let hidden = decision.as_ref().and_then(|decision| self.hides_source(&finds, decision, looked_at));
        // That level may have been left out, and a higher one looked at.
        let higher = if by_chance.is_some() { common + 1..finds.nr_domains(cpu) } else { 0..0 };
        let higher = higher.map(|level| finds.decide_balance(cpu, level, idle).source);
        let answers = ModelAnswers::of(found.all().map(|decision| decision.source)).and(higher);
        let takes = decision.as_ref().is_some_and(takes);
        let missed = if takes { "another queue" } else { "nothing to take" };
        let verdict = DecisionVerdict::of(answers, Some(source), missed).unless(why_not.or(hidden));
        let judged = DecisionPlace {
            record,
            kind: DecisionKind::Balance,
            case: occasion.case(false),
            queue: self.root_queue(source),
        };
        let model = decision.as_ref().map_or_else(|| "no domain".to_string(), describe);
        self.judge(judged, verdict, |_| [model, format!("{source} to {dest}")]);
        let why_not = why_not.or(hidden);
        let level = shown.map_or(common, |shown| shown.level);
        let idle = shown.map_or(idle, |shown| shown.idle);
        let imbalance = shown.map(|shown| shown.imbalance);
        let pass = QueuePass { cpu, dest, level, idle, source };
        self.batch_of(pass, finds, &found, imbalance, why_not)
    }

    /// What the model takes from the kernel's queue. Where a probe has `shown` the try, as much as that. Else as much as it finds
    /// if that is its queue as well, or if that group were the busiest.
    fn batch_of(
        &self,
        pass: QueuePass,
        mut finds: Scheduler,
        found: &PossibleDecisions,
        shown: Option<Option<Imbalance>>,
        why_not: Option<&'static str>,
    ) -> DetachedTasks {
        let QueuePass { dest, source, .. } = pass;
        let measure =
            |decision: &BalanceDecision| (decision.source == Some(source)).then_some(decision.imbalance);
        let measures = found.all().filter_map(measure).collect::<BTreeSet<_>>();
        let likely = found.likely_that(|decision| decision.source == Some(source)).and_then(measure);
        let likely = likely.or(measures.first().copied());
        let imbalance = shown.flatten().or(likely).unwrap_or_else(|| pass.measure(&finds));
        let model = ModelledPass::from(pass.pull(&finds, imbalance));
        let mut otherwise = Vec::new();
        if shown.flatten().is_none() {
            otherwise
                .extend(measures.into_iter().map(|measure| ModelledPass::from(pass.pull(&finds, measure))));
        }
        if shown.is_none() {
            for failures in 0..=FAILURES_MAX {
                finds.force_balance_failures(dest, pass.level, failures);
                otherwise.push(ModelledPass::from(pass.pull(&finds, imbalance)));
            }
        }
        let why_not = why_not.or(self.hides_task(imbalance.migration));
        let by_load = imbalance.migration == MigrationType::Load;
        DetachedTasks { otherwise, by_load, why_not, ..DetachedTasks::new(source, dest, model) }
    }

    fn push_of(&mut self, record: &EventRecord, source: Cpu, dest: Cpu) -> DetachedTasks {
        if !self.cpus[record.cpu.index()].balancing.pushes {
            self.sched.force_push_failures(source, dest);
        }
        let finds = self.as_balancing_finds(record.time, mode_of(record), source);
        let moved = finds.decide_push_to(source, dest).into_iter().collect();
        let model = ModelledPass { moved, ..ModelledPass::default() };
        let why_not = (!self.cpus[source.index()].queue_known).then_some("queue not known");
        DetachedTasks { why_not, ..DetachedTasks::new(source, dest, model) }
    }

    /// Compares which task is taken, given the queue.
    fn judge_taken(
        &mut self,
        record: &EventRecord,
        occasion: MoveOccasion,
        task: TaskId,
        batch: &DetachedTasks,
    ) {
        let model = batch.model.moved.get(batch.taken.len()).copied();
        let missed = match model {
            Some(_) => "another task",
            None if !batch.taken.is_empty() => "enough was taken",
            None => "none",
        };
        let doubted = model.is_some_and(|model| self.doubts_move(model, batch.dest));
        let verdict = DecisionVerdict::of(batch.next_tasks(), Some(task), missed)
            .unless(batch.why_not)
            .unless(doubted.then_some(AFFINITY_HIDDEN));
        let queue = self.root_queue(batch.source);
        let judged = DecisionPlace { record, kind: DecisionKind::Balance, case: occasion.case(true), queue };
        self.judge(judged, verdict, |walker| {
            [model.map_or("none".to_string(), |model| walker.name_of(model)), walker.name_of(task)]
        });
    }
}

/// A pass over the queue of `source` for `dest`, by a try of `cpu`.
#[derive(Clone, Copy, Debug)]
struct QueuePass {
    cpu: Cpu,
    dest: Cpu,
    level: usize,
    idle: CpuIdleType,
    source: Cpu,
}

impl QueuePass {
    /// How much there would be to move if the group of the source were the busiest.
    fn measure(self, finds: &Scheduler) -> Imbalance {
        const ONE: Imbalance = Imbalance { migration: MigrationType::Task, amount: 1 };
        let decision = finds.decide_balance_from(self.cpu, self.level, self.idle, self.source);
        if decision.group.is_some() { decision.imbalance } else { ONE }
    }

    fn pull(self, finds: &Scheduler, imbalance: Imbalance) -> DetachPass {
        finds.decide_pull(self.dest, self.level, self.idle, self.source, imbalance)
    }
}
