//! The states that a CPU can find while it balances. It reads others' queues without their locks, some time before it reports
//! a result.
//!
//! From the last report of the CPU before a pass, the model's decision is computed again after each change of a queue. The
//! state of each group is the one at the group's turn, or the one in the middle of that time. The kernel may have found any
//! state in between. A CPU that took a task did not find a state in which there was nothing to take.
//!
//! Must not know: what the kernel did.

use fairlab_event::{Cpu, Ns};
use fairlab_kernel::Scheduler;
use fairlab_kernel::balance::{BalanceDecision, SgLbStats};
use fairlab_kernel::core::KernelContext;
use fairlab_kernel::schedstat::CpuIdleType;
use fairlab_sim::machine::KernelCosts;

use super::super::super::probe::{At, Key};
use super::super::super::record::{EventRecord, RecordKind};
use super::super::Walker;
use super::MoveOccasion;

/// A CPU that was idle reports nothing before it balances: it is taken to have begun so long before it reports a pass. Twice the
/// length of a pass over 16 CPUs that all balance at once, on a machine with one instruction a ns.
const LOOKS_MAX: Ns = Ns(200_000);

/// A CPU that looks for something to take, until it reports what it takes.
#[derive(Clone, Debug)]
pub(in super::super) struct BalanceSearch {
    cpu: Cpu,
    idle: CpuIdleType,
    /// `None` where no probe shows it.
    level: Option<usize>,
    mode: KernelContext,
    /// The event that reports it, and when that is.
    report: (u64, Ns),
    /// What the model does, each since when.
    found: PossibleDecisions,
    /// What the groups of each level were, each since when.
    seen: Vec<Vec<GroupHistory>>,
    /// It has begun to take: from where, it has found before.
    takes: bool,
    /// Probes show where it begins to look at this level, and that it has looked at all groups of it.
    shown: bool,
}

impl BalanceSearch {
    fn new(
        cpu: Cpu,
        idle: CpuIdleType,
        level: Option<usize>,
        mode: KernelContext,
        report: (u64, Ns),
    ) -> BalanceSearch {
        let (found, seen) = (PossibleDecisions::default(), Vec::new());
        BalanceSearch { cpu, idle, level, mode, report, found, seen, takes: false, shown: false }
    }
}

/// A task that has been charged for the last time, and is to leave its queues.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct LeavingTask {
    /// The last step of that that is shown.
    last: Ns,
    /// When it is likely not to be counted any more, and when it is not in any case.
    at: Ns,
    until: Ns,
    /// The former has come.
    left: bool,
}

/// What a group was, in order, each since when.
type GroupHistory = Vec<(Ns, SgLbStats)>;

/// What a CPU does in the states that it could find, in order, each with its begin.
#[derive(Clone, Debug, Default)]
pub(super) struct PossibleDecisions {
    states: Vec<(Ns, BalanceDecision)>,
    /// What it does if it looks at one group after the other.
    in_turn: Option<BalanceDecision>,
    /// What it does if every CPU has just computed what other classes leave of it.
    computed: Option<BalanceDecision>,
    /// What it does if tasks that leave have done so sooner or later than is likely.
    otherwise: Vec<BalanceDecision>,
}

impl PossibleDecisions {
    /// What it does in the only state that it can find.
    pub fn only(since: Ns, decision: BalanceDecision) -> PossibleDecisions {
        PossibleDecisions { states: vec![(since, decision)], ..PossibleDecisions::default() }
    }

    fn add(&mut self, since: Ns, decision: BalanceDecision) {
        self.states.push((since, decision));
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// What it does if it finds each group as it is when its turn comes; else, in the state in the middle of the time.
    pub fn likely(&self) -> Option<&BalanceDecision> {
        let (begin, end) = (self.states.first()?.0, self.states.last()?.0);
        let middle = middle(begin, end);
        let in_middle = || self.states.iter().rev().find(|(since, _)| *since <= middle);
        self.in_turn.as_ref().or_else(|| in_middle().map(|(_, decision)| decision))
    }

    /// What it does in the likely one of the states in which it does so: of a CPU that is seen to take something, those in which
    /// there is nothing to take were not what it found. Without such a state, what it likely does.
    pub fn likely_that(&self, does: impl Fn(&BalanceDecision) -> bool) -> Option<&BalanceDecision> {
        let likely = self.likely()?;
        if does(likely) {
            return Some(likely);
        }
        let middle = middle(self.states.first()?.0, self.states.last()?.0);
        let ends = self.states.iter().skip(1).map(|(since, _)| *since).chain([Ns::MAX]);
        let away = |since: Ns, end: Ns| since.since(middle).max(middle.since(end));
        let possible = self.states.iter().zip(ends).filter(|((_, decision), _)| does(decision));
        let nearest = possible.min_by_key(|((since, _), end)| away(*since, *end));
        nearest.map(|((_, decision), _)| decision).or(Some(likely))
    }

    /// What it may do.
    pub fn all(&self) -> impl Iterator<Item = &BalanceDecision> {
        let states = self.states.iter().map(|(_, decision)| decision);
        self.in_turn.iter().chain(states).chain(&self.computed).chain(&self.otherwise)
    }

    /// Whether it may do so.
    pub fn any(&self, agrees: impl Fn(&BalanceDecision) -> bool) -> bool {
        self.all().any(agrees)
    }
}

impl Walker {
    /// Before an event: tasks that have been charged for the last time have left their queues by then, and CPUs that look find
    /// that.
    pub(in super::super) fn leave_until(&mut self, record: &EventRecord) {
        let here = &mut self.cpus[record.cpu.index()];
        here.was_blocked = here.blocked;
        for index in 0..self.cpus.len() {
            let Some(leaving) = &mut self.cpus[index].leaving else { continue };
            let (at, until) = (leaving.at, leaving.until);
            if at <= record.time && !leaving.left {
                leaving.left = true;
                self.look_again(Cpu(index as u32), at, None);
            }
            self.cpus[index].leaving.take_if(|_| until <= record.time);
        }
    }

    /// After an event: its CPU may begin to look for something to take, and CPUs that do may find another state.
    pub(in super::super) fn look_around(&mut self, record: &EventRecord) {
        let here = record.cpu;
        let info = &self.cpus[here.index()];
        let left = matches!(record.what, RecordKind::Runtime { .. }) && info.blocked && !info.was_blocked;
        let leaving = if left { self.leaves(record) } else { None };
        let left = leaving.as_ref().map(|leaving| (here, leaving.at));
        if leaving.is_some() && self.selection_shown {
            self.cpus[here.index()].leaving = leaving;
        }
        if !self.is_aside(record, here) {
            self.cpus[here.index()].looking = self.begins_to_look(record);
        } else if let Some(looking) = &mut self.cpus[here.index()].looking {
            looking.takes |= is_of_another(record);
        }
        if changes_queues(&record.what) {
            let change = self.queued_at(record).or(left);
            self.look_again(here, record.time, change);
        }
        self.cpus[here.index()].reported_at = record.time;
    }

    /// Code on `here` has changed a queue: other CPUs that look find another state.
    pub(in super::super) fn look_again(&mut self, here: Cpu, time: Ns, change: Option<(Cpu, Ns)>) {
        for index in 0..self.cpus.len() {
            let Some(mut looking) = self.cpus[index].looking.take() else { continue };
            let starts_late = looking.report.1.since(time) > LOOKS_MAX;
            if index != here.index() && !starts_late && !looking.takes {
                self.look(&mut looking, time, change);
            }
            self.cpus[index].looking = Some(looking);
        }
    }

    /// What a CPU could find before the pass that it now reports, up to the state as it is.
    pub(super) fn has_found(
        &mut self,
        record: &EventRecord,
        cpu: Cpu,
        idle: CpuIdleType,
        level: Option<usize>,
    ) -> PossibleDecisions {
        let looking = self.cpus[record.cpu.index()].looking.take();
        let known = looking.filter(|looking| {
            (looking.cpu, looking.idle, looking.level, looking.report.0) == (cpu, idle, level, record.number)
        });
        let mode = mode_of(record);
        let report = (record.number, record.time);
        let mut looking = known.unwrap_or_else(|| BalanceSearch::new(cpu, idle, level, mode, report));
        if !looking.takes || looking.found.is_empty() {
            self.look(&mut looking, record.time, None);
            self.look_in_turn(&mut looking, record.time);
            self.look_with_capacities(&mut looking, record.time);
        }
        looking.found
    }

    /// What comes of it if a CPU looks at the groups one after the other, at each queue for as long as costs say. Whether it
    /// looks at all, it finds before.
    fn look_in_turn(&self, looking: &mut BalanceSearch, time: Ns) {
        if looking.found.states.len() < 2 {
            return;
        }
        let first = looking.found.states.first().map(|(_, first)| first);
        if let Some(first) = first.filter(|first| looking.shown && first.left_to_others()) {
            looking.found.in_turn = Some(first.clone());
            return;
        }
        let finds = self.as_balancing_finds(time, looking.mode, looking.cpu);
        let (cpu, idle) = (looking.cpu, looking.idle);
        let decide =
            |level| finds.decide_balance_seeing(cpu, level, idle, self.seen_in_turn(looking, level, time));
        let in_turn = match looking.level {
            Some(level) => Some(decide(level)),
            None => first_try(&finds, cpu, decide),
        };
        // Where both find the same, the queue is looked for sooner than in the end.
        let what = |decision: &BalanceDecision| (decision.group, decision.imbalance.migration);
        let differs = looking.found.likely().map(what) != in_turn.as_ref().map(what);
        looking.found.in_turn = in_turn.filter(|_| differs);
    }

    /// What comes of it if every CPU has just computed what other classes leave of it: without probes, when they did is
    /// not shown.
    fn look_with_capacities(&self, looking: &mut BalanceSearch, time: Ns) {
        let others_use = |index: usize| self.sched.others_use(Cpu(index as u32));
        if self.seen.tries_shown || !(0..self.cpus.len()).any(others_use) {
            return;
        }
        let mut finds = self.as_balancing_finds(time, looking.mode, looking.cpu);
        finds.compute_capacities();
        looking.found.computed = self.decide(&finds, looking);
    }

    /// What a CPU that looks does in a state: at its level, or at the first where there is something to take.
    fn decide(&self, finds: &Scheduler, looking: &BalanceSearch) -> Option<BalanceDecision> {
        let decide = |level| finds.decide_balance(looking.cpu, level, looking.idle);
        match looking.level {
            Some(level) => Some(decide(level)),
            None => first_try(finds, looking.cpu, decide),
        }
    }

    /// What a CPU sees of a level's groups until `end`. It has left its own task and looked at lower levels, and not yet looked
    /// for a queue in one of them.
    fn seen_in_turn(&self, looking: &BalanceSearch, level: usize, end: Ns) -> Vec<SgLbStats> {
        let Some((begin, _)) = looking.found.states.first() else { return Vec::new() };
        let costs = KernelCosts::default();
        let cost = |queues: u32| u64::from(queues) * costs.balance_cpu.0;
        let of_group = |group: &GroupHistory| cost(group.first().map_or(0, |(_, sums)| sums.group_weight));
        let groups = &looking.seen[level];
        let below = &self.sched.domains().domains_of(looking.cpu)[..level];
        let before = costs.newidle.0 + below.iter().map(|sd| cost(sd.span_weight)).sum::<u64>();
        let after = groups.first().map_or(0, of_group);
        let (mut spent, after) = if looking.shown { (0, 0) } else { (before, after) };
        let all = spent + groups.iter().map(of_group).sum::<u64>() + after;
        let mut seen = Vec::new();
        for group in groups {
            let at = Ns(begin.0 + end.since(*begin).0 * (spent + of_group(group) / 2) / all.max(1));
            let then = group.iter().rev().find(|(since, _)| *since <= at).or(group.first());
            seen.extend(then.map(|(_, sums)| *sums));
            spent += of_group(group);
        }
        seen
    }

    /// Where an event tells that a woken task has been queued, and when that was: before that is reported, after its CPU's last
    /// report.
    fn queued_at(&self, record: &EventRecord) -> Option<(Cpu, Ns)> {
        let queue = match &record.what {
            RecordKind::Wakeup(wakeup) | RecordKind::WakeupNew(wakeup) => wakeup.target_cpu,
            RecordKind::Probe(probe) if probe.at == At::WakeupPreempt => probe.cpu()?,
            _ => return None,
        };
        Some((queue, middle(self.cpus[record.cpu.index()].reported_at, record.time)))
    }

    /// A CPU whose task leaves its queue has reported the charge: from when on it is not counted there any more. That is not
    /// shown, but it is after the last step of taking it off that is, and before the CPU's next report.
    fn leaves(&self, record: &EventRecord) -> Option<LeavingTask> {
        let here = record.cpu;
        if self.sched.is_delayed(self.sched.curr(here)) {
            return None;
        }
        let mut last = record.time;
        for next in self.window.on_cpu(here).filter(|next| !self.is_aside(next, here)) {
            match &next.what {
                RecordKind::Probe(probe) if is_step_of_leaving(probe.at) => last = next.time,
                _ => {
                    let (at, until) = (middle(last, next.time), next.time);
                    return Some(LeavingTask { last, at, until, left: false });
                }
            }
        }
        None
    }

    fn look(&self, looking: &mut BalanceSearch, time: Ns, change: Option<(Cpu, Ns)>) {
        let mut finds = self.as_balancing_finds(time, looking.mode, looking.cpu);
        let (cpu, idle) = (looking.cpu, looking.idle);
        self.count_leaving(&mut finds, cpu, |leaving| !leaving.left);
        for level in 0..finds.nr_domains(cpu) {
            let sums = finds.groups_seen(cpu, level, idle);
            if looking.seen.len() <= level {
                looking.seen.push(vec![GroupHistory::new(); sums.len()]);
            }
            let spans = finds.group_spans(cpu, level);
            for ((seen, sums), span) in looking.seen[level].iter_mut().zip(sums).zip(spans) {
                let since = change.filter(|(cpu, _)| span.contains(*cpu)).map_or(time, |(_, since)| since);
                let last = seen.last().map_or(since, |(last, _)| *last);
                seen.push((since.max(last), sums));
            }
        }
        if let Some(decision) = self.decide(&finds, looking) {
            looking.found.add(time, decision);
        }
        let uncertain = |leaving: &LeavingTask| (leaving.last..=leaving.until).contains(&time);
        if self.cpus.iter().filter_map(|info| info.leaving.as_ref()).any(uncertain) {
            let mut finds = self.as_balancing_finds(time, looking.mode, looking.cpu);
            self.count_leaving(&mut finds, cpu, |leaving| leaving.left == uncertain(leaving));
            looking.found.otherwise.extend(self.decide(&finds, looking));
        }
    }

    /// Tasks of other CPUs than the one that looks are counted where they are about to leave.
    fn count_leaving(&self, finds: &mut Scheduler, cpu: Cpu, counts: impl Fn(&LeavingTask) -> bool) {
        for (index, info) in self.cpus.iter().enumerate().filter(|(index, _)| *index != cpu.index()) {
            if info.leaving.as_ref().is_some_and(&counts) {
                finds.count_leaving(Cpu(index as u32));
            }
        }
    }

    /// The pass of balancing that the CPU of an event reports next, if its next event is one.
    fn begins_to_look(&mut self, record: &EventRecord) -> Option<BalanceSearch> {
        let here = record.cpu;
        let next = self.window.on_cpu(here).find(|next| !self.is_aside(next, here))?;
        let (mode, report) = (mode_of(next), (next.number, next.time));
        let mut looks_only = false;
        let (cpu, idle, level) = match &next.what {
            RecordKind::Probe(probe) if probe.at == At::FindBusiestGroupReturn => {
                let shown = self.cpus[here.index()].balancing.shown.as_ref();
                let shown = shown.filter(|shown| shown.exact.is_none())?;
                looks_only = matches!(&record.what, RecordKind::Probe(probe) if probe.at == At::LoadBalance);
                (shown.cpu, shown.idle, Some(shown.level))
            }
            RecordKind::Probe(probe) if probe.at == At::DetachTasks => {
                let shown = self.try_of_detach(probe)?;
                if let Some(failed) = probe.get(Key::ShortFailures) {
                    self.sched.force_balance_failures(shown.cpu, shown.level, failed as u32);
                }
                (shown.cpu, shown.idle, Some(shown.level))
            }
            RecordKind::Migrate { pid, orig, dest, .. } => {
                let task = self.tasks.get(pid).map(|info| info.id)?;
                let continues = !self.cpus[here.index()].detached.is_empty();
                let shown = self.cpus[here.index()].balancing.shown.is_some();
                let occasion =
                    self.occasion(next, *dest).filter(|&occasion| occasion != MoveOccasion::Push)?;
                if !self.sched.is_on_queue(task) || continues || shown {
                    return None;
                }
                (*dest, self.idle_type(next, occasion), self.level_by_chance(occasion, *orig, *dest))
            }
            _ => return None,
        };
        // Nothing is charged where a stopper leaves its queue.
        if idle == CpuIdleType::NewlyIdle && !self.is_fair(self.sched.curr(here)) {
            self.leave_before_search(record);
        }
        let mut looking =
            BalanceSearch { shown: looks_only, ..BalanceSearch::new(cpu, idle, level, mode, report) };
        if report.1.since(record.time) <= LOOKS_MAX {
            self.look(&mut looking, record.time, None);
        }
        Some(looking)
    }

    /// The level at which a CPU found what it takes for want of work, where chance decides which levels it looks at: the
    /// lowest that has both CPUs, if no probe tells.
    pub(super) fn level_by_chance(&self, occasion: MoveOccasion, source: Cpu, dest: Cpu) -> Option<usize> {
        let by_chance = occasion == MoveOccasion::Newidle && self.sched.searches_by_chance();
        let domains = self.sched.domains().domains_of(dest);
        domains.iter().position(|sd| sd.span.contains(source)).filter(|_| by_chance)
    }

    /// Whether a CPU's report neither begins nor ends a look around: an interrupt on top of it, or what taking a task from
    /// another CPU does to the queues there.
    fn is_aside(&self, record: &EventRecord, cpu: Cpu) -> bool {
        match &record.what {
            RecordKind::Runtime { pid, .. } => self.pid_of(self.sched.curr(cpu)) != *pid,
            RecordKind::Probe(_) => is_of_another(record),
            RecordKind::Other
            | RecordKind::TimerInterrupt
            | RecordKind::CallInterrupt
            | RecordKind::OtherProbe => record.flags.in_hardirq() == record.flags.in_softirq(),
            _ => false,
        }
    }

    /// A copy of the state, in which every CPU's clock has come to a time and CPUs with nothing to run are aged; `cpu`
    /// balances.
    pub(super) fn as_balancing_finds(&self, time: Ns, mode: KernelContext, cpu: Cpu) -> Scheduler {
        let mut sched = self.sched.clone();
        let now = |of: Cpu| self.scheduler_time(time, of);
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

    /// What a CPU's scheduler takes for the time at a time of the trace.
    pub(in super::super) fn scheduler_time(&self, time: Ns, of: Cpu) -> Ns {
        Ns(time.0.saturating_add_signed(self.clock_ahead(of).unwrap_or(0)))
    }

    /// What balancing finds on each CPU, a line each.
    pub(in super::super) fn describe_cpus(&self, record: &EventRecord) -> Vec<String> {
        let finds = self.as_balancing_finds(record.time, mode_of(record), record.cpu);
        let cpus = (0..self.cpus.len()).map(|index| Cpu(index as u32));
        let line = |cpu| {
            let (load, runnable, util, tasks) = finds.seen_by_balancing(cpu);
            let running = self.name_of(finds.curr(cpu));
            format!("CPU {cpu}: load {load} runnable {runnable} util {util} tasks {tasks} runs {running}")
        };
        cpus.map(line).collect()
    }
}

fn middle(begin: Ns, end: Ns) -> Ns {
    Ns(begin.0 + end.since(begin).0 / 2)
}

/// The code that reports this on its CPU.
pub(super) fn mode_of(record: &EventRecord) -> KernelContext {
    if record.flags.in_softirq() { KernelContext::Softirq } else { KernelContext::Task }
}

/// Whether what is traced of entities, that they are charged or get another weight, is about another CPU's.
fn is_of_another(record: &EventRecord) -> bool {
    let RecordKind::Probe(probe) = &record.what else { return false };
    let traced = matches!(probe.at, At::ReweightTracepoint | At::DeadlineTracepoint);
    traced && probe.cpu().is_some_and(|cpu| cpu != record.cpu)
}

/// Whether a probe stands where a task is taken off its queues, before it is not counted any more.
fn is_step_of_leaving(at: At) -> bool {
    matches!(
        at,
        At::DequeueEntity | At::DequeueEntities | At::ReweightEntity | At::AverageReturn | At::Remove
    )
}

pub(super) fn changes_queues(what: &RecordKind) -> bool {
    match what {
        RecordKind::Switch(_)
        | RecordKind::Wakeup(_)
        | RecordKind::WakeupNew(_)
        | RecordKind::Migrate { .. } => true,
        RecordKind::Runtime { .. } => true,
        // The task that is tested has been queued.
        RecordKind::Probe(probe) => probe.at == At::WakeupPreempt,
        _ => false,
    }
}

/// What a CPU does at the lowest level at which it moves a task, else at the lowest at which it tries to.
pub(super) fn first_try(
    finds: &Scheduler,
    cpu: Cpu,
    decide: impl Fn(usize) -> BalanceDecision,
) -> Option<BalanceDecision> {
    let mut tries = (0..finds.nr_domains(cpu)).map(decide);
    let mut first: Option<BalanceDecision> = None;
    let moving = tries.find(|decision| {
        if first.as_ref().is_none_or(|first| first.source.is_none()) {
            first = Some(decision.clone());
        }
        decision.moved() > 0
    });
    moving.or(first)
}

#[cfg(test)]
mod tests {
    use fairlab_kernel::topology::SmtNumbering;
    use fairlab_kernel::{Generation, Topology};

    use super::*;

    #[test]
    fn the_state_in_the_middle_is_the_likely_one_and_others_are_possible() {
        let topology = Topology::regular(1, 1, 2, 1, SmtNumbering::Adjacent).expect("a machine");
        let generation = "v5.10".parse::<Generation>().expect("a kernel");
        let scheduler = Scheduler::new(generation, topology, Ns::from_ms(1));
        let mut found = PossibleDecisions::default();
        assert!(found.is_empty() && found.likely().is_none());
        for (since, idle) in
            [(100, CpuIdleType::NotIdle), (130, CpuIdleType::Idle), (200, CpuIdleType::NewlyIdle)]
        {
            found.add(Ns(since), scheduler.decide_balance(Cpu(0), 0, idle));
        }
        assert_eq!(found.likely().map(|decision| decision.idle), Some(CpuIdleType::Idle));
        assert!(found.any(|decision| decision.idle == CpuIdleType::NewlyIdle));
        assert!(!found.any(|decision| decision.level == 1));
        let that = |found: &PossibleDecisions, idle| {
            found.likely_that(|decision| decision.idle == idle).map(|found| found.idle)
        };
        assert_eq!(that(&found, CpuIdleType::Idle), Some(CpuIdleType::Idle));
        assert_eq!(
            that(&found, CpuIdleType::NotIdle),
            Some(CpuIdleType::NotIdle),
            "it was not the likely one"
        );
        found.add(Ns(220), scheduler.decide_balance(Cpu(1), 0, CpuIdleType::NotIdle));
        let nearest = found.likely_that(|decision| decision.idle == CpuIdleType::NotIdle);
        assert_eq!(nearest.map(|decision| decision.cpu), Some(Cpu(0)), "CPU 1's is farther from the middle");
        found.states.pop();
        found.in_turn = Some(scheduler.decide_balance(Cpu(1), 0, CpuIdleType::NewlyIdle));
        assert_eq!(found.likely().map(|decision| decision.cpu), Some(Cpu(1)), "groups looked at in turn");
        assert!(found.any(|decision| decision.cpu == Cpu(1)) && found.all().count() == 4);
    }
}
