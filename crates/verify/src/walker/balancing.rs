//! What balancing takes, and from where: the model's decision compared with the kernel's.
//!
//! A move is judged when the trace reports it. Does the model take from that queue, and, given the queue, does it take that
//! task? If probes show tries, each is judged, too: whether there is something to take, in which unit it is counted, and
//! whether a task is moved. Averages of CPUs without recent reports are aged as the kernel's balancing ages them.
//!
//! Must not know: how a task that is taken is queued.

mod hidden;
mod looking;
mod moves;
mod periodic;
mod shown;

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::Scheduler;
use fairlab_kernel::balance::{BalanceDecision, Imbalance, MigrationType};
use fairlab_kernel::schedstat::CpuIdleType;

use super::super::probe::{At, Key, ProbeHit};
use super::super::record::{EventRecord, RecordKind};
use super::super::tally::DecisionKind;
use super::super::verdict::{DecisionAnswer, DecisionVerdict, ModelAnswers};
use super::judging::yes_no;
use super::{CPUS_CHANGE, DecisionPlace, Walker};
pub(super) use looking::{BalanceSearch, LeavingTask};
use looking::{PossibleDecisions, mode_of};
use moves::{DetachedTasks, MoveOccasion};

/// What an average began with is forgotten after so long: `LOAD_AVG_MAX_N` periods of 2^20 ns.
pub(super) const FORGOTTEN: Ns = Ns(345 << 20);

/// How many events later another CPU may report that it asks this stopper at this time.
const ASKED_WITHIN: usize = 16;

/// What code on a CPU balances.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuBalancing {
    shown: Option<BalanceTry>,
    batch: Option<DetachedTasks>,
    /// The stopper has begun to push its CPU's task.
    pushes: bool,
}

/// One try, as a probe shows it.
#[derive(Clone, Debug)]
struct BalanceTry {
    /// The CPU that balances, or for which another does.
    cpu: Cpu,
    level: usize,
    idle: CpuIdleType,
    /// What is to be moved, and from where, where that is shown.
    imbalance: Option<Imbalance>,
    source: Option<Cpu>,
    /// How often the kernel has looked for the busiest group.
    looks: usize,
    /// What the model does, when the kernel looks for the busiest group or begins the pass.
    found: PossibleDecisions,
    /// The state that the kernel found, where the probe shows all of it.
    exact: Option<Box<Scheduler>>,
    /// Whether that moves something: the likely, and then all that it may do.
    moves: Vec<bool>,
}

/// Tries.
impl Walker {
    pub(super) fn on_try_probe(&mut self, record: &EventRecord, probe: &ProbeHit) {
        self.seen.tries_shown |= probe.at == At::LoadBalance;
        if matches!(probe.at, At::LoadBalance | At::FindBusiestGroupReturn) {
            self.on_balance_probe(probe);
        }
        match probe.at {
            At::LoadBalance => self.begin_try(record, probe),
            At::FindBusiestGroupReturn => self.judge_found(record, probe),
            At::DetachTasks => self.judge_detach(record, probe),
            At::DetachTasksReturn => self.judge_detached(record, probe),
            At::ActiveBalance => {
                self.show_push_state(probe);
                self.cpus[record.cpu.index()].balancing.pushes = true;
            }
            _ => self.cpus[record.cpu.index()].balancing = CpuBalancing::default(),
        }
    }

    fn begin_try(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let shown = probe.get(Key::OtherCpu).zip(probe.get(Key::Level)).zip(probe.get(Key::IdleType));
        let shown = shown.and_then(|((cpu, level), idle)| {
            let cpu = self.cpu_numbered(cpu)?;
            let domains = self.sched.domains().domains_of(cpu);
            let level = domains.iter().position(|sd| i64::from(sd.level) == level)?;
            let idle = self.rules.idle_type(idle)?;
            let found = PossibleDecisions::default();
            let (imbalance, source, exact, moves) = (None, None, None, Vec::new());
            Some(BalanceTry { cpu, level, idle, imbalance, source, looks: 0, found, exact, moves })
        });
        if let (Some(shown), Some(failed)) = (&shown, probe.get(Key::Failures)) {
            self.sched.force_balance_failures(shown.cpu, shown.level, failed as u32);
        }
        if let Some(shown) = &shown {
            self.follow_capacity(record, shown.cpu, |sched| {
                sched.follow_capacity(shown.cpu, shown.level, shown.idle);
            });
        }
        if shown.as_ref().is_some_and(|shown| shown.idle == CpuIdleType::NewlyIdle) {
            self.leave_before_search(record);
        }
        self.cpus[record.cpu.index()].balancing = CpuBalancing { shown, ..CpuBalancing::default() };
        self.show_try_state(record, probe);
    }

    /// A CPU may compute what other classes leave of it for fair tasks, if they use any.
    pub(super) fn follow_capacity(
        &mut self,
        record: &EventRecord,
        cpu: Cpu,
        follow: impl FnOnce(&mut Scheduler),
    ) {
        if !self.sched.others_use(cpu) {
            return;
        }
        let now = self.scheduler_time(record.time, cpu);
        if now > self.sched.rq_clock(cpu) {
            self.sched.set_rq_clock(cpu, now);
        }
        self.sched.stand_on(cpu);
        follow(&mut self.sched);
    }

    /// The kernel has looked for the busiest group.
    fn judge_found(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let Some(mut shown) = self.cpus[record.cpu.index()].balancing.shown.take() else { return };
        let Some(mask) = probe.get(Key::Mask) else { return };
        if shown.exact.is_none() {
            shown.found = self.has_found(record, shown.cpu, shown.idle, Some(shown.level));
        }
        let case = if mask != 0 { "something to take" } else { "nothing to take" };
        let kernel = format!("CPUs {mask:#x}");
        let look = shown.looks;
        let finds = |decision: &BalanceDecision| decision.found_at(look).is_some();
        self.judge_try(record, &shown, (case, &kernel), finds, mask != 0);
        shown.imbalance = shown_imbalance(probe).filter(|_| mask != 0);
        if let Some(imbalance) = shown.imbalance
            && shown.found.any(|decision| decision.found_at(look).is_some())
        {
            self.judge_measure(record, &shown, imbalance, &format!("{imbalance:?}"));
        }
        shown.looks += 1;
        self.cpus[record.cpu.index()].balancing.shown = Some(shown);
    }

    /// A pass over a queue begins, and the probe shows for what.
    fn judge_detach(&mut self, record: &EventRecord, probe: &ProbeHit) {
        self.cpus[record.cpu.index()].balancing = CpuBalancing::default();
        let Some(mut shown) = self.try_of_detach(probe) else { return };
        let Some(source) = probe.get(Key::SourceCpu).and_then(|cpu| self.cpu_numbered(cpu)) else { return };
        if let Some(failed) = probe.get(Key::ShortFailures) {
            self.sched.force_balance_failures(shown.cpu, shown.level, failed as u32);
        }
        shown.found = self.has_found(record, shown.cpu, shown.idle, Some(shown.level));
        let imbalance = shown.imbalance.unwrap_or_default();
        let kernel = format!("{imbalance:?} from {source}");
        self.judge_try(record, &shown, ("source", &kernel), |decision| decision.source, Some(source));
        if probe.get(Key::ShortMigrationType).is_some() {
            self.judge_measure(record, &shown, imbalance, &kernel);
        }
        shown.moves = self.moves_now(record, &shown);
        self.cpus[record.cpu.index()].balancing.shown = Some(shown);
    }

    /// The pass has ended.
    fn judge_detached(&mut self, record: &EventRecord, probe: &ProbeHit) {
        let balancing = std::mem::take(&mut self.cpus[record.cpu.index()].balancing);
        let Some((shown, moved)) = balancing.shown.zip(probe.get(Key::Count)) else { return };
        let case = if moved > 0 { "moves a task" } else { "moves none" };
        let Some(&likely) = shown.moves.first() else { return };
        let answers = ModelAnswers::of(shown.moves.iter().copied());
        let verdict = DecisionVerdict::of(answers, moved > 0, case).unless(self.cannot_balance(
            record,
            shown.cpu,
            shown.level,
        ));
        let judged =
            DecisionPlace { record, kind: DecisionKind::BalanceTry, case, queue: self.root_queue(shown.cpu) };
        self.judge(judged, verdict, |_| [yes_no(likely).to_string(), format!("{moved}")]);
        if moved == 0 {
            self.judge_push(record, &shown);
        }
    }

    /// Nothing was moved: compares whether the stopper of the source is woken to push the running task. The queue is locked when
    /// that is decided, so it is as it is now. Of two CPUs that fail at once only one asks, mostly the one that reports its pass
    /// first.
    fn judge_push(&mut self, record: &EventRecord, shown: &BalanceTry) {
        let Some((source, imbalance)) = shown.source.zip(shown.imbalance) else { return };
        let finds = self.as_balancing_finds(record.time, mode_of(record), shown.cpu);
        let model = finds.decide_push_after(shown.cpu, shown.level, shown.idle, source, imbalance);
        let next = self.window.on_cpu(record.cpu).find(|next| !matches!(next.what, RecordKind::OtherProbe));
        let kernel = next.and_then(wakes_stopper) == Some(source);
        let asks_as_well =
            |other: &EventRecord| other.cpu != record.cpu && wakes_stopper(other) == Some(source);
        let races = model && self.window.all().take(ASKED_WITHIN).any(asks_as_well);
        let case = if kernel { "pushes" } else { "does not push" };
        let answers = ModelAnswers::one(model).and(races.then_some(!model));
        let verdict = DecisionVerdict::of(answers, kernel, case).unless(self.cannot_balance(
            record,
            shown.cpu,
            shown.level,
        ));
        let judged =
            DecisionPlace { record, kind: DecisionKind::BalanceTry, case, queue: self.root_queue(shown.cpu) };
        self.judge(judged, verdict, |_| [yes_no(model).to_string(), yes_no(kernel).to_string()]);
        if kernel {
            // It asks before it wakes the stopper: who fails in between finds that.
            self.sched.force_push(source, Some(record.cpu));
        }
    }

    /// Balancing wakes a CPU's stopper: it is to push that CPU's running task.
    pub(super) fn note_push(&mut self, record: &EventRecord) {
        if let Some(source) = wakes_stopper(record) {
            self.sched.force_push(source, Some(record.cpu));
        }
    }

    /// A CPU's stopper is done.
    pub(super) fn end_push(&mut self, cpu: Cpu) {
        self.sched.force_push(cpu, None);
    }

    /// Whether something is moved by what the model does, in each state that it may find. The queue that it takes from is locked
    /// when it takes, so it is as it is now.
    fn moves_now(&self, record: &EventRecord, shown: &BalanceTry) -> Vec<bool> {
        let finds = self.as_balancing_finds(record.time, mode_of(record), shown.cpu);
        let moves = |decision: &BalanceDecision| {
            let pull =
                |source| finds.decide_pull(shown.cpu, shown.level, shown.idle, source, decision.imbalance);
            decision.source.is_some_and(|source| pull(source).moved().next().is_some())
        };
        shown.found.likely_that(takes).into_iter().chain(shown.found.all()).map(moves).collect()
    }

    fn try_of_detach(&self, probe: &ProbeHit) -> Option<BalanceTry> {
        let number = |key| probe.get(key);
        let cpu = self.cpu_numbered(number(Key::DestCpu)?)?;
        let source = self.cpu_numbered(number(Key::SourceCpu)?)?;
        let (percent, idle) = (number(Key::ImbalancePct)?, number(Key::IdleType)?);
        let domains = self.sched.domains().domains_of(cpu);
        let level = domains
            .iter()
            .position(|sd| sd.span.contains(source) && i64::from(sd.imbalance_pct) == percent)?;
        let imbalance = shown_imbalance(probe);
        Some(BalanceTry {
            cpu,
            level,
            idle: self.rules.idle_type(idle)?,
            imbalance,
            source: Some(source),
            looks: 0,
            found: PossibleDecisions::default(),
            exact: None,
            moves: Vec::new(),
        })
    }

    fn judge_measure(
        &mut self,
        record: &EventRecord,
        shown: &BalanceTry,
        imbalance: Imbalance,
        kernel: &str,
    ) {
        let finds = |decision: &BalanceDecision| decision.found_at(shown.looks).map(|found| found.migration);
        self.judge_try(record, shown, ("measure", kernel), finds, Some(imbalance.migration));
    }

    /// Compares the kernel's try with the model's in each state that it may find.
    fn judge_try<A: DecisionAnswer>(
        &mut self,
        record: &EventRecord,
        shown: &BalanceTry,
        (case, told): (&'static str, &str),
        answer: impl Fn(&BalanceDecision) -> A,
        kernel: A,
    ) {
        let Some(likely) = shown.found.likely() else { return };
        let verdict = DecisionVerdict::of(ModelAnswers::of(shown.found.all().map(answer)), kernel, case)
            .unless(self.cannot_balance(record, shown.cpu, shown.level));
        let judged =
            DecisionPlace { record, kind: DecisionKind::BalanceTry, case, queue: self.root_queue(shown.cpu) };
        let model = describe(likely);
        self.judge(judged, verdict, |_| [model, told.to_string()]);
    }

    /// Why what a CPU does at a level cannot be judged.
    fn cannot_balance(&self, record: &EventRecord, cpu: Cpu, level: usize) -> Option<&'static str> {
        if self.seen.hotplug {
            return Some(CPUS_CHANGE);
        }
        let span = self.sched.domains().domains_of(cpu).get(level).map(|sd| sd.span)?;
        if !span.iter().all(|cpu| self.cpus.get(cpu.index()).is_some_and(|info| info.queue_known)) {
            return Some("queue not known");
        }
        let seen = record.time.0.saturating_sub(self.began.unwrap_or(record.time).0);
        (seen < FORGOTTEN.0 && !self.averages_laid).then_some("averages of before the trace")
    }

    pub(super) fn cpu_numbered(&self, number: i64) -> Option<Cpu> {
        let cpu = u32::try_from(number).ok().map(Cpu)?;
        (cpu.index() < self.cpus.len()).then_some(cpu)
    }
}

/// The CPU whose stopper code that balances wakes.
fn wakes_stopper(record: &EventRecord) -> Option<Cpu> {
    let RecordKind::Waking(wakeup) = &record.what else { return None };
    let is_stopper = wakeup.comm.as_bytes().starts_with(b"migration/");
    let balances = record.flags.in_softirq() && !record.flags.in_hardirq();
    (is_stopper && balances).then_some(wakeup.target_cpu)
}

/// What a probe shows is to be moved.
fn shown_imbalance(probe: &ProbeHit) -> Option<Imbalance> {
    let amount = probe.get(Key::Imbalance)?;
    let kind = probe.get(Key::MigrationType).or(probe.get(Key::ShortMigrationType)).unwrap_or(0);
    let migration = match kind {
        0 => MigrationType::Load,
        1 => MigrationType::Util,
        2 => MigrationType::Task,
        3 => MigrationType::Misfit,
        _ => return None,
    };
    Some(Imbalance { migration, amount })
}

/// Whether some queue is taken from.
fn takes(decision: &BalanceDecision) -> bool {
    decision.source.is_some()
}

fn describe(decision: &BalanceDecision) -> String {
    let why = decision.balanced.map_or("", |balanced| balanced.describe());
    let from = decision.source.map_or_else(|| "nowhere".to_string(), |cpu| cpu.to_string());
    format!(
        "level {} {:?} from {from}, {:?} of {:?}: {} moved {why}",
        decision.level,
        decision.idle,
        decision.imbalance,
        decision.group.map(|group| (group.first, group.kind, group.local)),
        decision.moved(),
    )
}
