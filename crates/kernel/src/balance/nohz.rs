//! NOHZ idle balancing: CPUs whose tick is stopped are balanced by one of them, which a busy CPU kicks.
//!
//! Must not know: when a tick is stopped, how an interrupt reaches a CPU.

#[cfg(test)]
pub(super) mod tests;

use fairlab_event::Cpu;

use crate::all_cpus::SharedLine;
use crate::balance::periodic::BalanceWork;
use crate::balance::rules::{
    IdleReentry, IdleTick, IlbAbort, IlbChoice, IlbOrder, IlbTold, IlbUpdate, NewidleUpdate, NextKick,
    NextUpdate,
};
use crate::balance::state::{NohzKick, NohzKind};
use crate::schedstat::CpuIdleType;
use crate::scheduler::Scheduler;

/// After how long blocked load should be aged again, ms (`LOAD_AVG_PERIOD`).
const LOAD_AVG_PERIOD: u64 = 32;

impl Scheduler {
    /// Whether a CPU whose idle states no driver knows stops its tick as it idles on. `got_tick`: a tick has just found it idle.
    ///
    /// Kernel: `cpuidle_idle_call()`, kernel/sched/idle.c.
    pub fn idle_call_stops_tick(&self, got_tick: bool) -> bool {
        match self.shared.generation.balance.idle_tick {
            IdleTick::StopsAtOnce => true,
            IdleTick::StopsAfterOne => got_tick,
        }
    }

    /// Whether a CPU that is asked to switch stays idle without a look for work.
    ///
    /// Kernel: `__schedule()` with `SM_IDLE`, kernel/sched/core.c, from v6.12 (3dcac251b066).
    pub fn stays_idle(&self, cpu: Cpu) -> bool {
        let at_once = self.shared.generation.balance.idle_reentry == IdleReentry::StaysIdle;
        at_once && self.runs_idle_task(cpu) && self.nr_running(cpu) == 0
    }

    /// A CPU stops its tick.
    ///
    /// Kernel: `nohz_balance_enter_idle()`, kernel/sched/fair.c.
    pub fn nohz_balance_enter_idle(&mut self, cpu: Cpu) {
        debug_assert!(self.runs_idle_task(cpu), "CPU {cpu} stops its tick, and runs {:?}", self.curr(cpu));
        let load = self.balanced_load(cpu);
        let state = &mut self.balance.cpus[cpu.index()];
        state.has_blocked_load = true;
        if !state.nohz_tick_stopped {
            state.nohz_tick_stopped = true;
            state.cpu_load.nohz_start(load);
            self.count_busy(cpu, false);
            self.shared.note_line(SharedLine::IdleMask, true);
            self.balance.nohz.idle_cpus.set(cpu);
            self.balance.nohz.needs_update |=
                self.shared.generation.balance.next_update == NextUpdate::Kicked;
        }
        self.shared.note_line(SharedLine::IdleCount, true);
        self.balance.nohz.has_blocked = true;
    }

    /// A CPU has a tick again. Kernel: `nohz_balance_exit_idle()`; from the tick, not from the wakeup.
    fn nohz_balance_exit_idle(&mut self, cpu: Cpu) {
        let (load, jiffies) = (self.balanced_load(cpu), self.shared.jiffies());
        let state = &mut self.balance.cpus[cpu.index()];
        if std::mem::take(&mut state.nohz_tick_stopped) {
            state.cpu_load.nohz_stop(load, jiffies);
            self.count_busy(cpu, true);
            self.shared.note_line(SharedLine::IdleMask, true);
            self.shared.note_line(SharedLine::IdleCount, true);
            self.balance.nohz.idle_cpus.clear(cpu);
        }
    }

    /// Counts the busy CPUs under a cache (`set_cpu_sd_state_busy()`, `set_cpu_sd_state_idle()`).
    fn count_busy(&mut self, cpu: Cpu, busy: bool) {
        if let Some(shared) = self.domains.of_cpu(cpu).sd_llc_shared {
            self.shared.note_line(SharedLine::CacheState(shared.0), true);
            let count = &mut self.domains.shared_mut(shared).nr_busy_cpus;
            *count = if busy { *count + 1 } else { *count - 1 };
        }
    }

    /// The tick of a busy CPU looks whether idle ones should be balanced. Returns the CPU to be kicked.
    ///
    /// Kernel: `nohz_balancer_kick()`, kernel/sched/fair.c.
    pub(super) fn nohz_balancer_kick(&mut self, cpu: Cpu) -> Option<Cpu> {
        if self.balance.cpus[cpu.index()].idle_balance {
            return None;
        }
        self.nohz_balance_exit_idle(cpu);
        self.shared.note_line(SharedLine::IdleCount, false);
        if self.balance.nohz.idle_cpus.is_empty() {
            return None;
        }
        let (nohz, now) = (&self.balance.nohz, self.shared.jiffies());
        let stats = nohz.has_blocked && now > nohz.next_blocked;
        let mut kick = NohzKick { stats, ..NohzKick::default() };
        if now >= nohz.next_balance && self.wants_idle_cpus(cpu) {
            kick = NohzKick::BALANCE;
        }
        kick.next = nohz.needs_update;
        if kick.asks() { self.kick_ilb(kick) } else { None }
    }

    /// Whether a busy CPU has something that an idle one could do.
    fn wants_idle_cpus(&self, cpu: Cpu) -> bool {
        if self.nr_running(cpu) >= 2 {
            return true;
        }
        if self.preferred_cpu_idles(cpu) {
            return true;
        }
        let smallest = self.domains.domains_of(cpu).first();
        if self.waiting_tasks(cpu) > 0 && smallest.is_some_and(|sd| self.has_reduced_capacity(cpu, sd)) {
            return true;
        }
        let domains = self.domains.of_cpu(cpu);
        if domains.sd_asym_cpucapacity.is_some() {
            return self.misfit_task_load(cpu) > 0 && self.kicks_for_misfit(cpu);
        }
        domains.sd_llc_shared.is_some_and(|shared| self.domains.shared(shared).nr_busy_cpus > 1)
    }

    /// Whether an idle CPU is kicked for a task that is too large for this one.
    ///
    /// Kernel: `check_misfit_status()`, kernel/sched/fair.c. From v6.10 on only smaller CPUs have such tasks (22d5607400c6).
    fn kicks_for_misfit(&self, cpu: Cpu) -> bool {
        let asymmetric = self.domains.of_cpu(cpu).sd_asym_cpucapacity.map(|id| self.domains.domain(id));
        self.capacity_orig_of(cpu) < self.domains.root().max_cpu_capacity
            || asymmetric.is_some_and(|sd| self.has_reduced_capacity(cpu, sd))
    }

    /// Asks an idle CPU to do what `kick` says. Returns it if it has to be told.
    ///
    /// Kernel: `kick_ilb()`, `find_new_ilb()`, kernel/sched/fair.c.
    pub(super) fn kick_ilb(&mut self, kick: NohzKick) -> Option<Cpu> {
        match self.shared.generation.balance.next_kick {
            NextKick::OneLater => self.balance.nohz.next_balance += 1,
            NextKick::NextTick if kick.balance => self.balance.nohz.next_balance = self.shared.jiffies() + 1,
            NextKick::NextTick => {}
        }
        let stopped = &self.balance.nohz.idle_cpus;
        let ilb = match self.shared.generation.balance.ilb_choice {
            IlbChoice::FirstOrNone => stopped.lowest().filter(|&ilb| self.idle_cpu(ilb)),
            IlbChoice::FirstIdle => stopped.iter().find(|&ilb| self.idle_cpu(ilb)),
            IlbChoice::FirstOfIdleCore => {
                let idle = || stopped.iter().filter(|&ilb| self.idle_cpu(ilb));
                idle().find(|&ilb| self.is_core_idle_but(ilb)).or_else(|| idle().next())
            }
        }?;
        let asked = &mut self.balance.cpus[ilb.index()].kick;
        let was_asked = asked.asks();
        *asked = asked.with(kick);
        (!was_asked).then_some(ilb)
    }

    /// The kick has reached `cpu`. Returns whether it is to run the SCHED softirq.
    ///
    /// Kernel: `nohz_csd_func()`, kernel/sched/core.c; before v5.8 `scheduler_ipi()`. Variants: see `IlbTold`.
    pub fn nohz_kicked(&mut self, cpu: Cpu) -> bool {
        let (idles, leaves) = (self.idle_cpu(cpu), self.need_resched(cpu));
        let rule = self.shared.generation.balance.ilb_told;
        let state = &mut self.balance.cpus[cpu.index()];
        let does = idles && !leaves;
        match rule {
            IlbTold::OnceAsked => {
                state.idle_balance = does;
                if !does {
                    state.kick = NohzKick { newly_idle: state.kick.newly_idle, ..NohzKick::default() };
                }
            }
            IlbTold::OnceThere => {
                let asked = std::mem::take(&mut state.kick);
                state.idle_balance = idles;
                state.told = if does { asked } else { state.told };
            }
        }
        does
    }

    /// Does for all idle CPUs what `cpu` was asked for. `None` if it was not asked.
    ///
    /// Kernel: `nohz_idle_balance()`, kernel/sched/fair.c.
    pub(super) fn nohz_idle_balance(&mut self, cpu: Cpu) -> Option<BalanceWork> {
        let rule = self.shared.generation.balance.ilb_told;
        let state = &mut self.balance.cpus[cpu.index()];
        let asked = match rule {
            IlbTold::OnceAsked => &mut state.kick,
            IlbTold::OnceThere => &mut state.told,
        };
        if !asked.asks() {
            return None;
        }
        let kick = std::mem::take(asked);
        if !state.idle_balance {
            return None;
        }
        let mut work = BalanceWork::default();
        self.balance_idle_cpus(cpu, kick, NohzKind::Kicked, &mut work);
        Some(work)
    }

    /// Returns whether all idle CPUs were visited: a pending reschedule ends that before the first.
    ///
    /// Kernel: `_nohz_idle_balance()`, kernel/sched/fair.c. Departs: all CPUs are visited at one instant.
    fn balance_idle_cpus(
        &mut self,
        cpu: Cpu,
        kick: NohzKick,
        kind: NohzKind,
        work: &mut BalanceWork,
    ) -> bool {
        let (now, rules) = (self.shared.jiffies(), self.shared.generation.balance);
        let forced = rules.ilb_update == IlbUpdate::Always;
        let mut next_balance = now + 60 * self.ticks_per_second();
        let mut found_next = false;
        let mut has_blocked = false;
        if kick.stats {
            self.balance.nohz.has_blocked = false;
        }
        if kick.next {
            self.balance.nohz.needs_update = false;
        }
        let aborts = self.aborts(cpu);
        let stopped = self.balance.nohz.idle_cpus;
        let from_next = rules.ilb_order == IlbOrder::FromNext;
        for other in stopped.iter_wrap(Cpu(if from_next { cpu.0 + 1 } else { 0 })) {
            if !self.idle_cpu(other) || (other == cpu && !from_next) {
                continue;
            }
            if aborts {
                self.balance.nohz.has_blocked |= kick.stats;
                self.balance.nohz.needs_update |= kick.next;
                return false;
            }
            if kick.stats {
                has_blocked |= self.update_nohz_stats(other, forced, &mut work.blocked);
            }
            if now >= self.balance.cpus[other.index()].next_balance {
                self.rq_lock(other).update_rq_clock();
                let load = self.balanced_load(other);
                self.balance.cpus[other.index()].cpu_load.update_idle(load, now);
                if kick.balance {
                    self.rebalance_domains(other, CpuIdleType::Idle, work);
                }
            }
            let due = self.balance.cpus[other.index()].next_balance;
            found_next |= due < next_balance;
            next_balance = next_balance.min(due);
        }
        if found_next {
            self.balance.nohz.next_balance = next_balance;
        }
        if rules.ilb_order == IlbOrder::FromFirst {
            self.balance_self_last(cpu, kick, kind, work, &mut has_blocked);
        }
        if kick.stats {
            self.balance.nohz.next_blocked = now + self.msecs_to_jiffies(LOAD_AVG_PERIOD);
        }
        self.balance.nohz.has_blocked |= has_blocked;
        true
    }

    /// To v5.12 the CPU that balances for others does so for itself at last, due or not.
    fn balance_self_last(
        &mut self,
        cpu: Cpu,
        kick: NohzKick,
        kind: NohzKind,
        work: &mut BalanceWork,
        has_blocked: &mut bool,
    ) {
        if kind != NohzKind::NewlyIdle {
            work.blocked.add(self.update_blocked_averages(cpu));
            *has_blocked |= self.balance.cpus[cpu.index()].has_blocked_load;
        }
        if kick.balance {
            self.rebalance_domains(cpu, CpuIdleType::Idle, work);
        }
    }

    fn aborts(&self, cpu: Cpu) -> bool {
        self.need_resched(cpu)
            && match self.shared.generation.balance.ilb_abort {
                IlbAbort::NeedResched => true,
                IlbAbort::BusyAndNeedResched => !self.idle_cpu(cpu),
            }
    }

    /// A CPU that goes idle looks whether blocked load of idle CPUs is due. Returns what was done at once, and a CPU that
    /// is to be kicked.
    ///
    /// Kernel: `nohz_newidle_balance()`, kernel/sched/fair.c.
    pub(super) fn nohz_newidle_balance(&mut self, cpu: Cpu, work: &mut BalanceWork) -> Option<Cpu> {
        self.shared.note_line(SharedLine::IdleCount, false);
        let nohz = &self.balance.nohz;
        let due = nohz.has_blocked && self.shared.jiffies() >= nohz.next_blocked;
        if self.avg_idle(cpu) < self.shared.sysctl.migration_cost || !due {
            return None;
        }
        match self.shared.generation.balance.newidle_update {
            NewidleUpdate::WhileLeaving => {
                let visited = self.balance_idle_cpus(cpu, NohzKick::STATS, NohzKind::NewlyIdle, work);
                if visited { None } else { self.kick_ilb(NohzKick::STATS) }
            }
            NewidleUpdate::KicksOther => self.kick_ilb(NohzKick::STATS),
            NewidleUpdate::InIdleLoop => {
                self.balance.cpus[cpu.index()].kick.newly_idle = true;
                None
            }
        }
    }

    /// The idle loop of `cpu` begins: ages idle CPUs' blocked load if new-idle balancing has left that to it.
    ///
    /// Kernel: `nohz_run_idle_balance()`, kernel/sched/fair.c (c6f886546cb8).
    pub fn nohz_run_idle_balance(&mut self, cpu: Cpu) -> BalanceWork {
        let mut work = BalanceWork::default();
        let asked = &mut self.balance.cpus[cpu.index()].kick;
        let only_this = asked.newly_idle && !asked.asks();
        asked.newly_idle = false;
        if only_this && !self.need_resched(cpu) {
            self.balance_idle_cpus(cpu, NohzKick::STATS, NohzKind::Kicked, &mut work);
        }
        work
    }
}
