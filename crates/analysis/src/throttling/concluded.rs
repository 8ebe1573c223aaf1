//! Infers throttling from groups' quotas and their tasks' run times, for traces without probes.
//!
//! The start of periods is unknown, so nothing is inferred until a throttled group shows it. The sign: a task of the group is
//! queued on an idle CPU, the group's run time has reached the quota, and then the task runs. From then on the rest of the
//! quota is known. If a task runs while its group should be throttled, nothing is known until the next sign.
//!
//! Must not know: probes, what a conclusion is used for.

use std::collections::BTreeMap;

use fairlab_event::{Cpu, Event, EventKind, GroupLimit, Ns, Pid, Switch};

use super::budget::{Budget, BudgetRefill};
use super::{ThrottleChange, Throttling};
use crate::tracker::CPUS_MAX;

/// A CPU does not idle for so long beside a task that may run there.
const IDLE_BESIDE: Ns = Ns::from_ms(1);
/// A refill shows within this time: by so much may what was known of its time be off.
const DRIFT: Ns = Ns::from_ms(1);
/// A task of a throttled group runs for so long until it is back in user mode and leaves, from v6.18.
const WAY_BACK: Ns = Ns::from_ms(4);

/// What is known of quotas, and which tasks run and are queued where.
#[derive(Clone, Debug, Default)]
pub(super) struct QuotaConclusions {
    /// By the group's number.
    budgets: BTreeMap<u32, Budget>,
    cpus: Vec<QuotaCpu>,
    /// Where tasks are queued that do not run, and since when.
    queued: BTreeMap<Pid, (Cpu, Ns)>,
    /// When a group was found to be back on a CPU.
    back: BTreeMap<(u32, Cpu), Ns>,
    /// What a CPU has left of a slice is void when the period ends (to v5.3).
    pub(super) slices_expire: bool,
    /// The trace has `sched_stat_runtime`: what has run is told.
    is_charged: bool,
    /// Something has been concluded.
    pub(super) has_any: bool,
}

/// What runs on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct QuotaCpu {
    /// None: not known.
    running: Option<Pid>,
    since: Ns,
    /// Since when it idles, or has idled but for short stays of tasks without a quota.
    idles: Option<Ns>,
    /// Up to when what runs there has been charged.
    charged: Ns,
}

impl QuotaConclusions {
    pub(super) fn limit(&mut self, group: u32, limit: GroupLimit) {
        if limit.period > Ns::ZERO && limit.quota > Ns::ZERO {
            self.budgets.insert(group, Budget::new(limit));
        }
    }

    /// Whether no group has a quota.
    pub(super) fn is_empty(&self) -> bool {
        self.budgets.is_empty()
    }

    fn cpu(&mut self, cpu: Cpu) -> &mut QuotaCpu {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, QuotaCpu::default());
        }
        &mut self.cpus[cpu.index()]
    }
}

impl Throttling {
    /// Takes an event: what follows from it, and from the time that has passed.
    pub(super) fn conclude(&mut self, event: &Event<'_>) {
        if event.kind.is_task_record() || event.cpu.index() >= CPUS_MAX {
            return;
        }
        self.pass_refills(event.time);
        match &event.kind {
            EventKind::SchedStatRuntime { pid, runtime, .. } => self.charged(*pid, runtime.0, event),
            EventKind::SchedSwitch(switch) => self.switched(switch, event.cpu, event.time),
            EventKind::SchedWakeup(wakeup) | EventKind::SchedWakeupNew(wakeup) => {
                self.is_queued(wakeup.pid, wakeup.target_cpu, event.time);
            }
            EventKind::SchedMigrateTask { pid, dest_cpu, .. }
                if self.conclusions.queued.contains_key(pid) =>
            {
                self.is_queued(*pid, *dest_cpu, event.time);
            }
            EventKind::Lost { .. } => self.doubt_all(event.time),
            _ => {}
        }
    }

    /// A group with a quota and those above it that have one, the innermost first.
    fn limited(&self, pid: Pid) -> Vec<u32> {
        let mut found = Vec::new();
        let mut above = self.of_task.get(&pid).copied();
        for _ in 0..self.groups.len() {
            let Some(group) = above else { break };
            if self.conclusions.budgets.contains_key(&group) {
                found.push(group);
            }
            above = self.groups[group as usize].parent;
        }
        found
    }

    /// Budgets are filled up to now, in order of time.
    fn pass_refills(&mut self, now: Ns) {
        loop {
            let next = |(group, budget): (&u32, &Budget)| Some((budget.next()?, *group));
            let due = self.conclusions.budgets.iter().filter_map(next).min_by_key(|(by, _)| by.at());
            let Some((by, group)) = due.filter(|(by, _)| by.at() <= now) else { return };
            if !self.conclusions.is_charged {
                self.charge_running(by.at());
            }
            self.fill(group, by);
        }
    }

    fn fill(&mut self, group: u32, by: BudgetRefill) {
        let throttled = self.throttled_cpus(group);
        let expires = self.conclusions.slices_expire;
        let Some(budget) = self.conclusions.budgets.get_mut(&group) else { return };
        for cpu in budget.fill(by, &throttled, expires) {
            let change = self.is_back(group, cpu, by.at());
            self.changes.push(change);
            self.conclusions.back.insert((group, cpu), by.at());
        }
    }

    fn throttled_cpus(&self, group: u32) -> Vec<Cpu> {
        let states = self.groups[group as usize].cpus.iter();
        (0..).zip(states).filter(|(_, state)| state.since.is_some()).map(|(cpu, _)| Cpu(cpu)).collect()
    }

    fn charged(&mut self, pid: Pid, run: u64, event: &Event<'_>) {
        self.conclusions.is_charged = true;
        if !self.of_task.contains_key(&pid) {
            return;
        }
        // A waker on another CPU charges what runs there, too.
        let runs = |state: &QuotaCpu| state.running == Some(pid);
        let cpu = match self.conclusions.cpus.get(event.cpu.index()).is_some_and(runs) {
            true => event.cpu,
            false => self.conclusions.cpus.iter().position(runs).map_or(event.cpu, |cpu| Cpu(cpu as u32)),
        };
        self.charge(pid, cpu, run, event.time);
    }

    fn charge(&mut self, pid: Pid, cpu: Cpu, run: u64, now: Ns) {
        for group in self.limited(pid) {
            let is_throttled = self.on(group, cpu).since.is_some();
            let Some(budget) = self.conclusions.budgets.get_mut(&group) else { continue };
            budget.charge(cpu, run, now, is_throttled);
            if is_throttled && self.leaves_by_task && run > WAY_BACK.0 {
                self.disproved(group, cpu, now);
            }
        }
    }

    /// Charges what runs for the time since it was last charged, where no event tells.
    fn charge_running(&mut self, now: Ns) {
        for cpu in 0..self.conclusions.cpus.len() {
            self.charge_until(Cpu(cpu as u32), now);
        }
    }

    fn charge_until(&mut self, cpu: Cpu, now: Ns) {
        let state = self.conclusions.cpu(cpu);
        let run = now.since(state.charged).0;
        state.charged = now.max(state.charged);
        if let Some(pid) = state.running.filter(|pid| !pid.is_idle() && run > 0) {
            self.charge(pid, cpu, run, now);
        }
    }

    /// A task is queued on a CPU and does not run.
    fn is_queued(&mut self, pid: Pid, cpu: Cpu, now: Ns) {
        if cpu.index() >= CPUS_MAX || self.conclusions.cpu(cpu).running == Some(pid) {
            return;
        }
        if self.conclusions.queued.get(&pid).is_some_and(|(on, _)| *on == cpu) {
            return;
        }
        self.conclusions.queued.insert(pid, (cpu, now));
        let runs = self.conclusions.cpu(cpu).running;
        for group in self.limited(pid) {
            if self.on(group, cpu).since.is_some() || runs.is_some_and(|pid| self.is_of(group, pid)) {
                continue;
            }
            if let Some(budget) = self.conclusions.budgets.get_mut(&group) {
                budget.take(cpu);
            }
            self.is_throttled_if_used_up(group, cpu, now);
        }
    }

    fn is_throttled_if_used_up(&mut self, group: u32, cpu: Cpu, now: Ns) {
        let is_used_up = self.conclusions.budgets.get(&group).is_some_and(|budget| budget.is_used_up(cpu));
        if is_used_up && self.on(group, cpu).since.is_none() {
            self.begin(group, cpu, now);
            self.conclusions.has_any = true;
            self.changes.push(ThrottleChange::Changed(cpu));
        }
    }

    fn switched(&mut self, switch: &Switch, cpu: Cpu, now: Ns) {
        if !self.conclusions.is_charged {
            self.charge_until(cpu, now);
        }
        let before = *self.conclusions.cpu(cpu);
        let idles = self.idles_since(&before, switch, now);
        *self.conclusions.cpu(cpu) =
            QuotaCpu { running: Some(switch.next_pid), since: now, charged: now, idles };
        if switch.prev_state.is_runnable() && !switch.prev_pid.is_idle() {
            self.conclusions.queued.insert(switch.prev_pid, (cpu, now));
        } else {
            self.conclusions.queued.remove(&switch.prev_pid);
        }
        self.has_left(switch, cpu, now);
        let since = self.conclusions.queued.remove(&switch.next_pid);
        if !switch.next_pid.is_idle() {
            let idles = before.idles.filter(|_| switch.prev_pid.is_idle());
            self.gets_cpu(switch.next_pid, cpu, now, since.map(|(_, since)| since), idles);
        }
    }

    /// Since when a CPU idles after a switch.
    fn idles_since(&self, before: &QuotaCpu, switch: &Switch, now: Ns) -> Option<Ns> {
        if before.running != Some(switch.prev_pid) {
            return switch.next_pid.is_idle().then_some(now);
        }
        let was_short = now.since(before.since) < IDLE_BESIDE && self.limited(switch.prev_pid).is_empty();
        match (switch.prev_pid.is_idle(), switch.next_pid.is_idle()) {
            (true, _) => before.idles,
            (false, true) => before.idles.filter(|_| was_short).or(Some(now)),
            (false, false) => None,
        }
    }

    /// A task leaves a CPU: its groups are throttled there if nothing is left, unless another task of them follows.
    fn has_left(&mut self, switch: &Switch, cpu: Cpu, now: Ns) {
        for group in self.limited(switch.prev_pid) {
            if self.is_of(group, switch.next_pid) {
                continue;
            }
            self.is_throttled_if_used_up(group, cpu, now);
            let stays =
                self.conclusions.queued.iter().any(|(pid, (on, _))| *on == cpu && self.is_of(group, *pid));
            let waits = !self.throttled_cpus(group).is_empty();
            if let Some(budget) = self.conclusions.budgets.get_mut(&group).filter(|_| !stays) {
                budget.give_back(cpu, now, waits);
            }
        }
    }

    /// A task runs, queued since then; the CPU has idled since then.
    fn gets_cpu(&mut self, pid: Pid, cpu: Cpu, now: Ns, queued: Option<Ns>, idled: Option<Ns>) {
        let limited = self.limited(pid);
        for &group in &limited {
            if !self.leaves_by_task && self.on(group, cpu).since.is_some() {
                self.runs_though_throttled(group, cpu, now);
            }
        }
        let Some(from) = queued.zip(idled).map(|(queued, idled)| queued.max(idled)) else { return };
        if now.since(from) < IDLE_BESIDE {
            return;
        }
        for &group in &limited {
            let back = self.conclusions.back.get(&(group, cpu)).copied().unwrap_or_default();
            let from = from.max(back);
            let Some(budget) = self.conclusions.budgets.get_mut(&group) else { continue };
            if now.since(from) < DRIFT {
                // What was known of the refill is a bit early.
                budget.was_refilled_at(now);
                return;
            }
            if budget.has_reached(now) {
                self.was_throttled(group, cpu, from, now);
                return;
            }
        }
    }

    /// A CPU idled beside a task of a group that had used up its quota until now: periods begin now.
    fn was_throttled(&mut self, group: u32, cpu: Cpu, from: Ns, now: Ns) {
        if self.on(group, cpu).since.is_none() {
            self.begin(group, cpu, from);
        }
        self.conclusions.has_any = true;
        for cpu in self.throttled_cpus(group) {
            let change = self.is_back(group, cpu, now);
            self.changes.push(change);
        }
        if let Some(budget) = self.conclusions.budgets.get_mut(&group) {
            budget.is_filled_at(now);
        }
    }

    /// A task runs whose group was concluded to be throttled there: the refill is a bit earlier than was known, or that is
    /// disproved.
    fn runs_though_throttled(&mut self, group: u32, cpu: Cpu, now: Ns) {
        let next = self.conclusions.budgets.get(&group).and_then(Budget::next);
        if next.is_some_and(|by| by.at().since(now) < DRIFT) {
            self.fill(group, BudgetRefill::Refill(now));
        }
        if self.on(group, cpu).since.is_some() {
            self.disproved(group, cpu, now);
        }
    }

    /// A conclusion was wrong: what it led to is taken back, and nothing is known of the group any more.
    fn disproved(&mut self, group: u32, cpu: Cpu, now: Ns) {
        self.end(group, cpu, now, false);
        self.changes.push(ThrottleChange::Changed(cpu));
        self.doubt(group, now);
    }

    fn doubt(&mut self, group: u32, now: Ns) {
        for cpu in self.throttled_cpus(group) {
            self.end(group, cpu, now, false);
            self.changes.push(ThrottleChange::Changed(cpu));
        }
        if let Some(budget) = self.conclusions.budgets.get_mut(&group) {
            budget.doubt();
        }
    }

    /// Events are missing.
    fn doubt_all(&mut self, now: Ns) {
        for group in self.conclusions.budgets.keys().copied().collect::<Vec<_>>() {
            self.doubt(group, now);
        }
        self.conclusions.budgets.values_mut().for_each(Budget::forget_all);
        self.conclusions.queued.clear();
        self.conclusions.cpus.clear();
    }
}
