//! One try of one CPU at one level of its domains: decided as a whole, then applied.
//!
//! Must not know: when it is made, and what follows at other levels.

#[cfg(test)]
mod tests;

use fairlab_event::Cpu;

use crate::all_cpus::SharedLine;
use crate::balance::decided::{BalanceDecision, BusiestGroup, DetachPass, LbEnv, TaskLook};
use crate::balance::imbalance::{ImbalanceTarget, MigrationType};
use crate::balance::migrate::LbfFlags;
use crate::balance::reasons::{BalancedReason, TaskReason};
use crate::balance::rules::{
    AllPinned, Balancer, Comparison, CountedFailures, EnergyBalance, PendingWakeup, PushFailures,
};
use crate::balance::statistics::{GroupType, SdLbStats};
use crate::domain::SdFlags;
use crate::generation::Feature;
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

impl LbEnv {
    pub(super) fn imbalance_pct(&self, scheduler: &Scheduler) -> u64 {
        scheduler.domain(self.cpu, self.level).imbalance_pct.into()
    }
}

impl Scheduler {
    /// What `cpu` would do at `level` of its domains. Pure; run time and averages must be up to date.
    ///
    /// Kernel: `load_balance()` (v6.10: `sched_balance_rq()`), kernel/sched/fair.c.
    /// Departs: the queues stand still while they are looked at, and levels with SD_SERIALIZE never wait.
    pub fn decide_balance(&self, cpu: Cpu, level: usize, idle: CpuIdleType) -> BalanceDecision {
        self.decide_balance_by(cpu, level, idle, self.has(Feature::LbBias))
    }

    /// The same, with loads of the past or without.
    pub(super) fn decide_balance_by(
        &self,
        cpu: Cpu,
        level: usize,
        idle: CpuIdleType,
        lb_bias: bool,
    ) -> BalanceDecision {
        self.decide_attempt(LbEnv { lb_bias, ..self.attempt(cpu, level, idle) })
    }

    /// A try with everything still to be found.
    pub(super) fn attempt(&self, cpu: Cpu, level: usize, idle: CpuIdleType) -> LbEnv {
        LbEnv {
            cpu,
            level,
            idle,
            dest: cpu,
            cpus: self.domain(cpu, level).span,
            migration: MigrationType::Load,
            imbalance: 0,
            pushes: false,
            pushes_llc_task: false,
            takes_misfit: false,
            lb_bias: self.has(Feature::LbBias),
            extent: None,
            seen: Vec::new(),
            cache_use: Vec::new(),
        }
    }

    /// The same, of a try as it begins.
    pub(super) fn decide_attempt(&self, mut attempt: LbEnv) -> BalanceDecision {
        let LbEnv { cpu, level, .. } = attempt;
        let mut decision = BalanceDecision::new(&attempt);
        loop {
            // Who has seen groups has found before that it is its turn.
            let looks = if attempt.seen.is_empty() { self.should_we_balance(&attempt) } else { Ok(()) };
            if let Err(reason) = looks {
                decision.continues = false;
                decision.balanced = Some(reason);
                return decision;
            }
            attempt.extent = self.extent_found(&attempt);
            decision.extent = attempt.extent;
            let source = match self.find_busiest(&mut attempt, &mut decision) {
                Ok(source) => source,
                Err(reason) => {
                    decision.balanced = Some(reason);
                    return decision;
                }
            };
            let pinned = self.pull_from(&mut attempt, source, &mut decision);
            decision.all_pinned = pinned.all;
            decision.llc_pinned |= pinned.llc;
            decision.forgets.extend(pinned.forgets);
            let tried = self.nr_running(source) > 1;
            if tried && pinned.all {
                attempt.cpus.clear(source);
                attempt.seen.clear();
                let group = self.local_group(cpu, level).span;
                if !group.contains_all(&attempt.cpus) {
                    decision.redone.push(decision.imbalance);
                    decision.group = None;
                    continue;
                }
                decision.balanced = Some(BalancedReason::AllPinned);
                return decision;
            }
            self.decide_push(&attempt, source, &mut decision);
            return decision;
        }
    }

    /// Whether it is this CPU's turn to balance for its group.
    ///
    /// Kernel: `should_we_balance()`, kernel/sched/fair.c.
    pub(super) fn should_we_balance(&self, attempt: &LbEnv) -> Result<(), BalancedReason> {
        let rules = &self.shared.generation.balance;
        if !attempt.cpus.contains(attempt.dest) {
            return Err(BalancedReason::NotItsTurn);
        }
        if attempt.idle == CpuIdleType::NewlyIdle {
            let rq = &self.rqs[attempt.dest.index()];
            let woken = rq.nr_running > 0 || rq.ttwu_pending > 0;
            return if woken && rules.pending_wakeup == PendingWakeup::EndsEverywhere {
                Err(BalancedReason::Woken)
            } else {
                Ok(())
            };
        }
        let sd = self.domain(attempt.cpu, attempt.level);
        let local = self.domains.local_group(self.domain_id(attempt.cpu, attempt.level));
        let shared = self.domains.capacity_of_group(local);
        let mask = &shared.balance_mask;
        let whole_cores = rules.balancer != Balancer::FirstIdle && !sd.flags.has(SdFlags::SHARE_CPUCAPACITY);
        let its_turn = |is_its: bool| if is_its { Ok(()) } else { Err(BalancedReason::NotItsTurn) };
        let mut idle_thread = None;
        for cpu in mask.iter_both(&attempt.cpus).filter(|&cpu| self.idle_cpu(cpu)) {
            if whole_cores && !self.is_core_idle_but(cpu) {
                idle_thread = idle_thread.or(Some(cpu));
                continue;
            }
            return its_turn(cpu == attempt.dest);
        }
        let first = shared.balance_cpu == attempt.dest;
        its_turn(match (idle_thread, rules.balancer) {
            (Some(thread), Balancer::IdleCoreOrOthers) => thread == attempt.dest || first,
            (Some(thread), _) => thread == attempt.dest,
            (None, _) => first,
        })
    }

    /// Whether the other threads of a CPU's core are idle (`is_core_idle()`).
    pub(super) fn is_core_idle_but(&self, cpu: Cpu) -> bool {
        self.shared.topology.smt_mask(cpu).iter().all(|thread| thread == cpu || self.idle_cpu(thread))
    }

    /// The busiest queue of the busiest group, and how much should be taken.
    ///
    /// Kernel: `find_busiest_group()`, `find_busiest_queue()`, kernel/sched/fair.c.
    fn find_busiest(
        &self,
        attempt: &mut LbEnv,
        decision: &mut BalanceDecision,
    ) -> Result<Cpu, BalancedReason> {
        let rules = &self.shared.generation.balance;
        let mut sds = self.update_sd_lb_stats(attempt);
        self.note_domain(attempt, &sds, decision);
        decision.cache_use.clone_from(&attempt.cache_use);
        self.leaves_to_wakeups(decision)?;
        let packed = self.check_asym_packing(attempt, &sds);
        if packed.is_none() {
            rules.is_unbalanced(&mut sds, attempt.idle, attempt.imbalance_pct(self))?;
        }
        let Some(busiest) = sds.busiest else { return Err(BalancedReason::NothingToTake) };
        let sd = self.domain(attempt.cpu, attempt.level);
        let here = self.cfs(self.rqs[attempt.dest.index()].cfs);
        let how = ImbalanceTarget {
            idle: attempt.idle,
            flags: sd.flags,
            imb_numa_nr: sd.imb_numa_nr,
            load_per_task_here: self
                .balanced_load(attempt.dest)
                .checked_div(here.h_nr_running.into())
                .unwrap_or(0),
        };
        let imbalance = packed.unwrap_or_else(|| rules.calculate_imbalance(&mut sds, how));
        if imbalance.amount == 0 {
            return Err(BalancedReason::NoImbalance);
        }
        let kind = sds.busiest_stat.group_type;
        decision.group = Some(BusiestGroup {
            first: self.domains.group(busiest).span.lowest().unwrap_or(attempt.cpu),
            kind,
            local: sds.local_stat.group_type,
        });
        decision.imbalance = imbalance;
        attempt.migration = imbalance.migration;
        attempt.imbalance = imbalance.amount;
        // To v5.4, whatever is moved is load.
        let by_load = rules.comparison != Comparison::GroupTypes;
        attempt.takes_misfit =
            kind == GroupType::MisfitTask && (by_load || imbalance.migration == MigrationType::Misfit);
        let source = self.find_busiest_queue(attempt, busiest, imbalance).ok_or(BalancedReason::NoQueue)?;
        decision.source = Some(source);
        Ok(source)
    }

    /// Whether tasks are left where wakeups by energy have put them.
    ///
    /// Kernel: `find_busiest_group()`, kernel/sched/fair.c, from v5.0 (2802bf3cd936).
    fn leaves_to_wakeups(&self, decision: &BalanceDecision) -> Result<(), BalancedReason> {
        if self.energy.is_none() || self.shared.generation.balance.energy == EnergyBalance::Moved {
            return Ok(());
        }
        match decision.overutilized.unwrap_or(self.domains.root().overutilized) {
            true => Ok(()),
            false => Err(BalancedReason::LeftToWakeups),
        }
    }

    /// What looking at a domain tells beside its imbalance.
    fn note_domain(&self, attempt: &LbEnv, sds: &SdLbStats, decision: &mut BalanceDecision) {
        decision.scanned += sds.scanned;
        let sd = self.domain(attempt.cpu, attempt.level);
        decision.overload = sd.parent.is_none().then_some(sds.overload);
        let tells = self.energy.is_some() && (sd.parent.is_none() || sds.overutilized);
        decision.overutilized = tells.then_some(sds.overutilized);
        let spans_cache = sd.span_weight == self.domains.of_cpu(attempt.cpu).sd_llc_size;
        let tells = spans_cache && attempt.idle != CpuIdleType::NewlyIdle;
        decision.cache_util = tells.then_some(sds.total_util);
    }

    /// Takes from a queue until enough is moved, also to other CPUs of this group.
    fn pull_from(&self, attempt: &mut LbEnv, source: Cpu, decision: &mut BalanceDecision) -> LbfFlags {
        let until_movable = self.shared.generation.balance.all_pinned == AllPinned::UntilMovable;
        let mut pinned = LbfFlags { all: until_movable, ..LbfFlags::default() };
        if self.nr_running(source) <= 1 {
            return pinned;
        }
        pinned.all = true;
        let mut queue = self.source_queue(source);
        loop {
            let pull = self.detach_tasks(attempt, &mut queue, &mut pinned);
            decision.pulls.push(pull);
            let Some(other) = pinned.other_dest.take().filter(|_| attempt.imbalance > 0) else { break };
            attempt.cpus.clear(attempt.dest);
            attempt.dest = other;
            queue.restart();
        }
        let has_parent = self.domain(attempt.cpu, attempt.level).parent.is_some();
        decision.left_pinned |= has_parent && pinned.some && attempt.imbalance > 0;
        pinned
    }

    /// Nothing or something was moved: whether the running task is to be pushed, and what is remembered.
    pub(super) fn decide_push(&self, attempt: &LbEnv, source: Cpu, decision: &mut BalanceDecision) {
        let rules = &self.shared.generation.balance;
        if decision.moved() > 0 {
            return;
        }
        let state = self.domain_state(attempt.cpu, attempt.level);
        let misfit = attempt.migration == MigrationType::Misfit;
        let counts = attempt.idle != CpuIdleType::NewlyIdle
            && !decision.llc_pinned
            && !(misfit && rules.failures == CountedFailures::NotMisfit);
        decision.nr_balance_failed = state.nr_balance_failed + u32::from(counts);
        decision.voluntary = self.voluntary_active_balance(attempt, source);
        decision.needs_push = !self.push_breaks_preference(attempt, source)
            && (decision.voluntary || self.imbalanced_active_balance(attempt, decision.nr_balance_failed));
        if !decision.needs_push {
            return;
        }
        if !self.shared.tasks[self.curr(source).index()].allowed.contains(attempt.cpu) {
            decision.one_pinned = true;
            decision.all_pinned |= rules.all_pinned == AllPinned::AfterTrying;
            return;
        }
        decision.all_pinned = false;
        decision.push = self.balance.cpus[source.index()].push_cpu.is_none();
        if rules.push_failures == PushFailures::SetToForce {
            decision.nr_balance_failed = self.cache_nice_tries(attempt) + 1;
        }
    }

    /// Applies a decision: moves tasks, remembers successes and failures, sets the next interval. Returns how many tasks
    /// were moved. A push that was begun is the driver's to carry out, by the source's stopper, which may be awake by now.
    pub fn apply_balance(&mut self, decision: &BalanceDecision) -> u32 {
        if self.shared.trace.balancing {
            self.tell_balance(decision);
        }
        if let Some(source) = decision.source {
            self.shared.note_line(SharedLine::QueueLock(source), true);
        }
        for pull in &decision.pulls {
            self.apply_pull(pull);
        }
        let moved = decision.moved();
        self.note_seen(decision);
        if decision.push
            && let Some(source) = decision.source
        {
            let state = &mut self.balance.cpus[source.index()];
            state.push_cpu = Some(decision.cpu);
            state.pushes_llc_task = decision.imbalance.migration == MigrationType::LlcTask;
        }
        self.remember(decision, moved);
        self.count(decision, moved);
        if let Some(source) = decision.source.filter(|_| decision.push) {
            self.stop_one_cpu_nowait(source);
        }
        moved
    }

    /// What a decision tells of its domain, whatever is moved.
    pub(super) fn note_seen(&mut self, decision: &BalanceDecision) {
        if let Some(extent) = decision.extent {
            self.set_extent(decision.cpu, decision.level, extent);
        }
        if let Some(util) = decision.cache_util {
            let percent = self.domain(decision.cpu, decision.level).imbalance_pct;
            self.update_idle_cpu_scan(decision.cpu, util, percent.into());
        }
        if let Some(overload) = decision.overload {
            self.shared.set_overloaded(overload);
        }
        if let Some(overutilized) = decision.overutilized {
            self.domains.root_mut().overutilized = overutilized;
        }
        self.note_caches(decision);
        if decision.left_pinned {
            self.mark(decision, true);
        }
    }

    /// Tasks' loads were asked for: their queues' parts stay for this jiffy.
    pub(super) fn remember_loads_asked(&mut self, pull: &DetachPass) {
        let asked = |look: &&TaskLook| look.reason.is_moved() || look.reason == TaskReason::LoadTooLarge;
        for look in pull.looks.iter().filter(asked).filter(|_| pull.by_load) {
            self.shared.update_cfs_rq_h_load(self.entity_of(look.task).cfs_rq);
        }
    }

    fn apply_pull(&mut self, pull: &DetachPass) {
        assert_ne!(pull.source, pull.dest, "a CPU pulls from itself");
        self.rq_lock(pull.source).update_rq_clock();
        self.remember_loads_asked(pull);
        for look in &pull.looks {
            if look.reason.is_moved() {
                self.detach_task(look.task, pull.dest);
            } else {
                self.stand_in_front(pull.source, look.task);
            }
        }
        // Those that left last arrive first.
        let moved = pull.moved().rev().collect::<Vec<_>>();
        if !moved.is_empty() {
            self.rq_lock(pull.dest).update_rq_clock();
        }
        for task in moved {
            self.attach_task(task);
        }
    }

    /// Sets or clears the mark that affinity kept tasks of this domain from being spread, for the level above.
    fn mark(&mut self, decision: &BalanceDecision, marked: bool) {
        let Some(parent) = self.domain(decision.cpu, decision.level).parent else { return };
        let group = self.domains.local_group(parent);
        self.domains.capacity_of_group_mut(group).imbalance = marked;
    }

    fn remember(&mut self, decision: &BalanceDecision, moved: u32) {
        use super::rules::AffinityMark;
        let gave_up = decision.balanced.is_some();
        let all_pinned = decision.balanced == Some(BalancedReason::AllPinned);
        let keeps_mark = decision.all_pinned
            && self.shared.generation.balance.affinity_mark == AffinityMark::ClearedUnlessAllPinned;
        if gave_up && !all_pinned && !keeps_mark {
            self.mark(decision, false);
        }
        let failed = if gave_up || moved > 0 { 0 } else { decision.nr_balance_failed };
        self.domain_state_mut(decision.cpu, decision.level).nr_balance_failed = failed;
        if gave_up || decision.one_pinned {
            self.back_off(decision.cpu, decision.level, decision.idle, decision.back_off_facts());
        } else {
            self.after_trying(decision.cpu, decision.level, decision.push_facts());
        }
    }

    fn count(&mut self, decision: &BalanceDecision, moved: u32) {
        let counters = &mut self.domain_mut(decision.cpu, decision.level).counters;
        let lb = &mut counters.lb[decision.idle.index()];
        lb.count += 1;
        if let Some(amount) = decision.source.map(|_| decision.imbalance.amount as u64) {
            match decision.imbalance.migration {
                MigrationType::Load => lb.imbalance_load += amount,
                MigrationType::Util => lb.imbalance_util += amount,
                MigrationType::Task => lb.imbalance_task += amount,
                MigrationType::Misfit => lb.imbalance_misfit += amount,
                MigrationType::LlcTask => {}
            }
        }
        match decision.balanced {
            Some(BalancedReason::AllPinned | BalancedReason::NotItsTurn | BalancedReason::Woken) => {
                lb.balanced += 1;
            }
            Some(BalancedReason::NoQueue) => (lb.balanced, lb.nobusyq) = (lb.balanced + 1, lb.nobusyq + 1),
            Some(_) => (lb.balanced, lb.nobusyg) = (lb.balanced + 1, lb.nobusyg + 1),
            None if moved == 0 => lb.failed += 1,
            None => {}
        }
        lb.gained += u64::from(moved);
        let looks = decision.pulls.iter().flat_map(|pull| &pull.looks);
        lb.hot_gained += looks.filter(|look| look.reason == TaskReason::MovedHot).count() as u64;
    }
}
