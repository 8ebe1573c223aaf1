//! What balancing takes, and where from: the model's decision beside the kernel's.
//!
//! A move is judged when the trace reports it: whether the model takes from that queue, and, given the queue, whether it
//! takes that task. Where probes show tries, each is judged as well: whether there is something to take, in what measure it
//! is counted, and whether a task is moved. The state is the one at the event; averages of CPUs that have reported nothing
//! for long are aged as the kernel's balancing ages them.
//!
//! Must not know: how a task that is taken is queued.

use fairlab_event::{Cpu, Ns, Pid};
use fairlab_kernel::balance::{BalanceDecision, Imbalance, MigrationType};
use fairlab_kernel::core::Mode;
use fairlab_kernel::schedstat::CpuIdleType;
use fairlab_kernel::{Scheduler, TaskId};

use super::super::probe::{At, Key, Probe};
use super::super::record::Record;
use super::super::tally::{Kind, Verdict};
use super::judging::yes_no;
use super::{Judged, Walker};

/// What an average began with is forgotten after so long: `LOAD_AVG_MAX_N` periods of 2^20 ns.
const FORGOTTEN: Ns = Ns(345 << 20);

/// So many tries may have failed in a row, where no probe shows how many: more make no difference.
const FAILURES_MAX: u32 = 10;

/// What code on a CPU balances.
#[derive(Clone, Debug, Default)]
pub(super) struct Balancing {
    shown: Option<Try>,
    batch: Option<Batch>,
    /// The stopper has begun to push its CPU's task.
    pushes: bool,
}

/// One try, as a probe shows it.
#[derive(Clone, Debug)]
struct Try {
    /// The CPU that balances, or for which another does.
    cpu: Cpu,
    level: usize,
    idle: CpuIdleType,
    /// What is to be moved, where that is shown.
    imbalance: Option<Imbalance>,
    /// What the model does, when the kernel looks for the busiest group or begins the pass.
    decision: Option<BalanceDecision>,
}

/// Tasks that leave a queue in one pass.
#[derive(Clone, Debug)]
struct Batch {
    source: Cpu,
    dest: Cpu,
    /// Those that the model takes, in order, and how many the kernel has taken.
    model: Vec<TaskId>,
    taken: usize,
    /// The same if so many tries had failed before, where that is not shown.
    after_failures: Vec<Vec<TaskId>>,
    why_not: Option<&'static str>,
}

impl Batch {
    fn new(source: Cpu, dest: Cpu, model: Vec<TaskId>) -> Batch {
        Batch { source, dest, model, taken: 0, after_failures: Vec::new(), why_not: None }
    }

    /// Whether `task` is the next one, had some number of tries failed before.
    fn admits(&self, task: TaskId) -> bool {
        self.after_failures.iter().any(|tasks| tasks.get(self.taken) == Some(&task))
    }
}

/// On what occasion a task is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    Newidle,
    Periodic,
    Nohz,
    Push,
}

impl Occasion {
    fn case(self, of_task: bool) -> &'static str {
        match (self, of_task) {
            (Occasion::Newidle, false) => "new-idle source",
            (Occasion::Newidle, true) => "new-idle task",
            (Occasion::Periodic, false) => "periodic source",
            (Occasion::Periodic, true) => "periodic task",
            (Occasion::Nohz, false) => "NOHZ source",
            (Occasion::Nohz, true) => "NOHZ task",
            (Occasion::Push, _) => "pushed task",
        }
    }
}

/// Tries.
impl Walker {
    pub(super) fn on_try_probe(&mut self, record: &Record, probe: &Probe) {
        if matches!(probe.at, At::LoadBalance | At::FindBusiestGroupReturn) {
            self.on_balance_probe(probe);
        }
        match probe.at {
            At::LoadBalance => self.begin_try(record, probe),
            At::FindBusiestGroupReturn => self.judge_found(record, probe),
            At::DetachTasks => self.judge_detach(record, probe),
            At::DetachTasksReturn => self.judge_detached(record, probe),
            At::ActiveBalance => self.cpus[record.cpu.index()].balancing.pushes = true,
            _ => self.cpus[record.cpu.index()].balancing = Balancing::default(),
        }
    }

    fn begin_try(&mut self, record: &Record, probe: &Probe) {
        let shown = probe.get(Key::OtherCpu).zip(probe.get(Key::Level)).zip(probe.get(Key::IdleType));
        let shown = shown.and_then(|((cpu, level), idle)| {
            let cpu = self.cpu_numbered(cpu)?;
            let domains = self.sched.domains().domains_of(cpu);
            let level = domains.iter().position(|sd| i64::from(sd.level) == level)?;
            let idle = self.rules.idle_type(idle)?;
            Some(Try { cpu, level, idle, imbalance: None, decision: None })
        });
        if let (Some(shown), Some(failed)) = (&shown, probe.get(Key::Failures)) {
            self.sched.force_balance_failures(shown.cpu, shown.level, failed as u32);
        }
        self.cpus[record.cpu.index()].balancing = Balancing { shown, ..Balancing::default() };
    }

    /// The kernel has looked for the busiest group.
    fn judge_found(&mut self, record: &Record, probe: &Probe) {
        let Some(mut shown) = self.cpus[record.cpu.index()].balancing.shown.take() else { return };
        let Some(mask) = probe.get(Key::Mask) else { return };
        let decision =
            self.as_balancing_finds(record, shown.cpu).decide_balance(shown.cpu, shown.level, shown.idle);
        let case = if mask != 0 { "something to take" } else { "nothing to take" };
        let agrees = decision.group.is_some() == (mask != 0);
        self.judge_try(record, &shown, case, agrees, &decision, &format!("CPUs {mask:#x}"));
        shown.imbalance = shown_imbalance(probe).filter(|_| mask != 0);
        if let Some(imbalance) = shown.imbalance.filter(|_| decision.group.is_some()) {
            let agrees = decision.imbalance.migration == imbalance.migration;
            self.judge_try(record, &shown, "measure", agrees, &decision, &format!("{imbalance:?}"));
        }
        shown.decision = Some(decision);
        self.cpus[record.cpu.index()].balancing.shown = Some(shown);
    }

    /// A pass over a queue begins, and the probe shows for what.
    fn judge_detach(&mut self, record: &Record, probe: &Probe) {
        self.cpus[record.cpu.index()].balancing = Balancing::default();
        let Some(mut shown) = self.try_of_detach(probe) else { return };
        let Some(source) = probe.get(Key::SourceCpu).and_then(|cpu| self.cpu_numbered(cpu)) else { return };
        if let Some(failed) = probe.get(Key::ShortFailures) {
            self.sched.force_balance_failures(shown.cpu, shown.level, failed as u32);
        }
        let decision =
            self.as_balancing_finds(record, shown.cpu).decide_balance(shown.cpu, shown.level, shown.idle);
        let imbalance = shown.imbalance.unwrap_or_default();
        let kernel = format!("{imbalance:?} from {source}");
        self.judge_try(record, &shown, "source", decision.source == Some(source), &decision, &kernel);
        if probe.get(Key::ShortMigrationType).is_some() {
            let agrees = decision.group.is_some() && decision.imbalance.migration == imbalance.migration;
            self.judge_try(record, &shown, "measure", agrees, &decision, &kernel);
        }
        shown.decision = Some(decision);
        self.cpus[record.cpu.index()].balancing.shown = Some(shown);
    }

    /// The pass has ended.
    fn judge_detached(&mut self, record: &Record, probe: &Probe) {
        let balancing = std::mem::take(&mut self.cpus[record.cpu.index()].balancing);
        let Some((shown, moved)) = balancing.shown.zip(probe.get(Key::Count)) else { return };
        let Some(moves) = shown.decision.map(|decision| decision.moved() > 0) else { return };
        let case = if moved > 0 { "moves a task" } else { "moves none" };
        let judged = Judged { record, kind: Kind::BalanceTry, case, queue: self.root_queue(shown.cpu) };
        let verdict = match (self.cannot_balance(record, shown.cpu, shown.level), moves == (moved > 0)) {
            (Some(why), _) => Verdict::NotJudged(why),
            (None, true) => Verdict::Hit,
            (None, false) => Verdict::Miss(case),
        };
        self.judge(judged, verdict, |_| [yes_no(moves).to_string(), format!("{moved}")]);
    }

    fn try_of_detach(&self, probe: &Probe) -> Option<Try> {
        let number = |key| probe.get(key);
        let cpu = self.cpu_numbered(number(Key::DestCpu)?)?;
        let source = self.cpu_numbered(number(Key::SourceCpu)?)?;
        let (percent, idle) = (number(Key::ImbalancePct)?, number(Key::IdleType)?);
        let domains = self.sched.domains().domains_of(cpu);
        let level = domains
            .iter()
            .position(|sd| sd.span.contains(source) && i64::from(sd.imbalance_pct) == percent)?;
        let imbalance = shown_imbalance(probe);
        Some(Try { cpu, level, idle: self.rules.idle_type(idle)?, imbalance, decision: None })
    }

    fn judge_try(
        &mut self,
        record: &Record,
        shown: &Try,
        case: &'static str,
        agrees: bool,
        decision: &BalanceDecision,
        kernel: &str,
    ) {
        let verdict = match (self.cannot_balance(record, shown.cpu, shown.level), agrees) {
            (Some(why), _) => Verdict::NotJudged(why),
            (None, true) => Verdict::Hit,
            (None, false) => Verdict::Miss(case),
        };
        let judged = Judged { record, kind: Kind::BalanceTry, case, queue: self.root_queue(shown.cpu) };
        let model = describe(decision);
        self.judge(judged, verdict, |_| [model, kernel.to_string()]);
    }
}

/// Moves.
impl Walker {
    /// A waiting task is about to be taken off its queue by another than itself.
    pub(super) fn judge_move(&mut self, record: &Record, task: TaskId, source: Cpu, dest: Cpu) {
        let Some(occasion) = self.occasion(record, dest) else {
            let why = "it is not balancing, as far as the trace shows";
            self.count(Kind::Balance, "move", Verdict::NotJudged(why));
            return;
        };
        let here = record.cpu.index();
        let continues = !self.cpus[here].detached.is_empty();
        let batch = self.cpus[here].balancing.batch.take();
        let batch = batch.filter(|batch| continues && (batch.source, batch.dest) == (source, dest));
        let mut batch = match batch {
            Some(batch) => batch,
            None if occasion == Occasion::Push => self.push_of(record, source, dest),
            None => self.judge_source(record, occasion, source, dest),
        };
        self.judge_taken(record, occasion, task, &batch);
        batch.taken += 1;
        self.cpus[here].balancing.batch = Some(batch);
        self.sched.pass_over_until(source, task);
    }

    /// Who moves a waiting task; `None` where it is not, or not surely, balancing.
    fn occasion(&self, record: &Record, dest: Cpu) -> Option<Occasion> {
        let info = &self.cpus[record.cpu.index()];
        if record.comm.as_bytes().starts_with(b"migration/") {
            return info.balancing.pushes.then_some(Occasion::Push);
        }
        if let Some(shown) = &info.balancing.shown {
            return Some(match shown.idle {
                CpuIdleType::NewlyIdle => Occasion::Newidle,
                _ if shown.cpu == record.cpu => Occasion::Periodic,
                _ => Occasion::Nohz,
            });
        }
        if record.flags.in_hardirq() {
            return None;
        }
        if record.flags.in_softirq() {
            return Some(if dest == record.cpu { Occasion::Periodic } else { Occasion::Nohz });
        }
        let leaves = || self.next_switch(record.cpu).is_some_and(|switch| self.blocks(&switch));
        (dest == record.cpu && (info.blocked || leaves())).then_some(Occasion::Newidle)
    }

    /// Compares from which queue the first task of a pass is taken. Returns what the model takes from the kernel's queue.
    fn judge_source(&mut self, record: &Record, occasion: Occasion, source: Cpu, dest: Cpu) -> Batch {
        let idle = match occasion {
            Occasion::Newidle => CpuIdleType::NewlyIdle,
            Occasion::Periodic if record.context != Pid::IDLE => CpuIdleType::NotIdle,
            _ => CpuIdleType::Idle,
        };
        let shown = self.cpus[record.cpu.index()].balancing.shown.clone();
        let shown = shown.as_ref();
        let cpu = shown.map_or(dest, |shown| shown.cpu);
        let mut finds = self.as_balancing_finds(record, cpu);
        let decision = match shown {
            Some(Try { decision: Some(decision), .. }) => Some(decision.clone()),
            Some(shown) => Some(finds.decide_balance(cpu, shown.level, shown.idle)),
            None => first_try(&finds, cpu, idle),
        };
        let common = self.sched.domains().domains_of(cpu).iter().position(|sd| sd.span.contains(source));
        let Some(common) = common else {
            let why_not = Some("no domain has both CPUs");
            return Batch { why_not, ..Batch::new(source, dest, Vec::new()) };
        };
        let why_not = self.cannot_balance(record, cpu, common);
        let agrees = decision.as_ref().is_some_and(|decision| decision.source == Some(source));
        let verdict = match (why_not, &decision) {
            (Some(why), _) => Verdict::NotJudged(why),
            _ if agrees => Verdict::Hit,
            (None, Some(BalanceDecision { source: Some(_), .. })) => Verdict::Miss("another queue"),
            _ => Verdict::Miss("nothing to take"),
        };
        let judged = Judged {
            record,
            kind: Kind::Balance,
            case: occasion.case(false),
            queue: self.root_queue(source),
        };
        let model = decision.as_ref().map_or_else(|| "no domain".to_string(), describe);
        self.judge(judged, verdict, |_| [model, format!("{source} to {dest}")]);
        let level = shown.map_or(common, |shown| shown.level);
        let one = Imbalance { migration: MigrationType::Task, amount: 1 };
        let imbalance = match (shown.and_then(|shown| shown.imbalance), &decision) {
            (Some(imbalance), _) => imbalance,
            (None, Some(decision)) if decision.group.is_some() => decision.imbalance,
            _ => one,
        };
        let idle = shown.map_or(idle, |shown| shown.idle);
        let model = finds.decide_pull(dest, level, idle, source, imbalance).moved().collect();
        let mut after_failures = Vec::new();
        if shown.is_none() {
            for failures in 1..=FAILURES_MAX {
                finds.force_balance_failures(dest, level, failures);
                after_failures
                    .push(finds.decide_pull(dest, level, idle, source, imbalance).moved().collect());
            }
        }
        Batch { after_failures, why_not, ..Batch::new(source, dest, model) }
    }

    fn push_of(&self, record: &Record, source: Cpu, dest: Cpu) -> Batch {
        let finds = self.as_balancing_finds(record, source);
        let model = finds.decide_push_to(source, dest).into_iter().collect();
        let why_not = (!self.cpus[source.index()].queue_known).then_some("queue not known");
        Batch { why_not, ..Batch::new(source, dest, model) }
    }

    /// Compares which task is taken, given the queue.
    fn judge_taken(&mut self, record: &Record, occasion: Occasion, task: TaskId, batch: &Batch) {
        let model = batch.model.get(batch.taken).copied();
        let verdict = match (batch.why_not, model) {
            (Some(why), _) => Verdict::NotJudged(why),
            (None, Some(model)) if model == task => Verdict::Hit,
            _ if batch.admits(task) => Verdict::Admissible,
            (None, Some(_)) => Verdict::Miss("another task"),
            (None, None) if batch.taken > 0 => Verdict::Miss("enough was taken"),
            (None, None) => Verdict::Miss("none"),
        };
        let queue = self.root_queue(batch.source);
        let judged = Judged { record, kind: Kind::Balance, case: occasion.case(true), queue };
        self.judge(judged, verdict, |walker| {
            [model.map_or("none".to_string(), |model| walker.name_of(model)), walker.name_of(task)]
        });
    }
}

/// The state that balancing finds.
impl Walker {
    /// A copy of the state at an event, in which every CPU's clock has come there and CPUs with nothing to run are aged.
    fn as_balancing_finds(&self, record: &Record, cpu: Cpu) -> Scheduler {
        let mut sched = self.sched.clone();
        let mode = if record.flags.in_softirq() { Mode::Softirq } else { Mode::Task };
        let now = |of: Cpu| {
            let ahead = self.cpus[of.index()].clock_ahead.unwrap_or(0);
            Ns(record.time.0.saturating_add_signed(ahead))
        };
        for other in (0..self.cpus.len()).map(|index| Cpu(index as u32)) {
            sched.set_here(other, mode, now(other));
            if other == cpu || sched.curr(other) == sched.idle_task(other) {
                sched.update_blocked_averages(other);
            } else if now(other) > sched.rq_clock(other) {
                sched.set_rq_clock(other, now(other));
            }
        }
        sched.set_here(cpu, mode, now(cpu));
        sched
    }

    /// What balancing finds on each CPU, a line each.
    pub(super) fn describe_cpus(&self, record: &Record) -> Vec<String> {
        let finds = self.as_balancing_finds(record, record.cpu);
        let cpus = (0..self.cpus.len()).map(|index| Cpu(index as u32));
        let line = |cpu| {
            let (load, runnable, util, tasks) = finds.seen_by_balancing(cpu);
            let running = self.name_of(finds.curr(cpu));
            format!("CPU {cpu}: load {load} runnable {runnable} util {util} tasks {tasks} runs {running}")
        };
        cpus.map(line).collect()
    }

    /// Why what a CPU does at a level cannot be judged.
    fn cannot_balance(&self, record: &Record, cpu: Cpu, level: usize) -> Option<&'static str> {
        let span = self.sched.domains().domains_of(cpu).get(level).map(|sd| sd.span)?;
        if !span.iter().all(|cpu| self.cpus.get(cpu.index()).is_some_and(|info| info.queue_known)) {
            return Some("queue not known");
        }
        let seen = record.time.0.saturating_sub(self.began.unwrap_or(record.time).0);
        (seen < FORGOTTEN.0).then_some("averages of before the trace")
    }

    fn cpu_numbered(&self, number: i64) -> Option<Cpu> {
        let cpu = u32::try_from(number).ok().map(Cpu)?;
        (cpu.index() < self.cpus.len()).then_some(cpu)
    }
}

/// What a CPU does at the lowest level at which it moves a task; without one, at which it tries to.
fn first_try(finds: &Scheduler, cpu: Cpu, idle: CpuIdleType) -> Option<BalanceDecision> {
    let mut tries = (0..finds.nr_domains(cpu)).map(|level| finds.decide_balance(cpu, level, idle));
    let mut first: Option<BalanceDecision> = None;
    let moving = tries.find(|decision| {
        if first.as_ref().is_none_or(|first| first.source.is_none()) {
            first = Some(decision.clone());
        }
        decision.moved() > 0
    });
    moving.or(first)
}

/// What a probe shows is to be moved.
fn shown_imbalance(probe: &Probe) -> Option<Imbalance> {
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
